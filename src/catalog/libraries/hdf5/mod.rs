//! HDF5 rows. Signatures: the public headers of HDF5 1.10 to 2.2; `hid_t` is 64 bits wide, `herr_t` and `htri_t` are
//! `int`s, and negative means failure.
//!
//! Functions that neither do nor decide I/O have no row; `tests/offline/catalog/hdf5_functions.rs` names them all, with the reason.

mod data;
mod later;
mod lists;
mod names;

pub use crate::catalog::effect::{Accessor, Effect, ListEffect, Messages, STORED, SpaceEffect};

use crate::catalog::Src::{self, Arg, Ret, RetInt};
use crate::catalog::def::{Def, row, rows};
use crate::catalog::effect::PATH_FIND;
use crate::catalog::role::{Close, Data, Hdf5, Inner, InnerValue, Open};
use crate::catalog::{Array, Count, Fails, Family, Row, When};
use crate::vocabulary::{Kind, Layer};

/// Filters of the library (`H5Z_FILTER_*`, H5Zpublic.h).
pub const DEFLATE: i32 = 1;
pub const SHUFFLE: i32 = 2;
pub const FLETCHER32: i32 = 3;
const SZIP: i32 = 4;
const NBIT: i32 = 5;
const SCALEOFFSET: i32 = 6;

/// Their names.
pub const FILTERS: &[(i32, &str)] = &[
    (DEFLATE, "deflate"),
    (SHUFFLE, "shuffle"),
    (FLETCHER32, "fletcher32"),
    (SZIP, "szip"),
    (NBIT, "nbit"),
    (SCALEOFFSET, "scaleoffset"),
];

/// An object of the class that its `hid_t` has.
pub const ANY_CLASS: &str = "object";

/// Where dimensions, and parameters of filters, go.
const NUMBERS: u8 = 0;
/// Where handles of datasets go.
pub const DATASETS: u8 = 1;
/// Where the layout of a dataset that is opened goes, and its filters.
pub const LAYOUT: u8 = 2;
pub const PIPELINE: u8 = LAYOUT + 1;
/// `H5FD_MEM_DRAW`, raw data (H5FDpublic.h).
const RAW_DATA: u32 = 3;

const fn h5(symbol: &'static str, kind: Kind) -> Def<Data> {
    row(Family::Hdf5, Layer::Hdf5, symbol, kind)
}
/// `herr_t f(...)` of no handle.
const fn plain(symbol: &'static str, kind: Kind) -> Def<Data> {
    h5(symbol, kind).unrelated().fails(Fails::NegativeInt)
}
/// `herr_t f(handle, ...)`.
const fn on(symbol: &'static str, kind: Kind) -> Def<Data> {
    h5(symbol, kind).handle(Arg(0)).fails(Fails::NegativeInt)
}
/// The same, where the handle is another argument.
const fn on_arg(symbol: &'static str, arg: u8) -> Def<Data> {
    on(symbol, Kind::Meta).handle(Arg(arg))
}
const fn about(symbol: &'static str) -> Def<Data> {
    on(symbol, Kind::Meta)
}
/// `int f(handle, ...)`, a number or an answer.
const fn answer(symbol: &'static str) -> Def<Hdf5> {
    about(symbol).effect(Effect::Result { result: RetInt })
}
/// The same with a result of 64 bits.
const fn long_answer(symbol: &'static str) -> Def<Hdf5> {
    about(symbol).fails(Fails::Negative).effect(Effect::Result { result: Ret })
}
/// `hid_t f(object)`: a property list.
const fn list(symbol: &'static str, effect: ListEffect) -> Def<Hdf5> {
    let effect = Effect::List { list: Src::None, effect, value: Ret, index: Src::None };
    about(symbol).fails(Fails::Negative).effect(effect)
}
const fn close(symbol: &'static str) -> Def<Close> {
    h5(symbol, Kind::Close).closes(Arg(0)).fails(Fails::NegativeInt)
}
/// `hid_t f(...)`: makes or opens something that no argument names.
const fn unnamed(symbol: &'static str, class: &'static str) -> Def<Open> {
    h5(symbol, Kind::Open).opens(Ret).opened_in(Arg(0)).object(class)
}
/// `hid_t f(location, name, ...)`: opens something inside a file.
const fn inside(symbol: &'static str, class: &'static str) -> Def<Open> {
    unnamed(symbol, class).path(1)
}
const fn dims(when: When, arg: u8, count: Count) -> Array {
    Array::longs(NUMBERS, when, arg, count)
}

/// An inner function that knows what the call it runs in is about. These are exported, because the parts of the library
/// call each other through them.
const fn inner(symbol: &'static str, gives: InnerValue, value: Src) -> Def<Inner> {
    h5(symbol, Kind::Other).gives(gives, value)
}
/// `size_t f(file, kind of memory, address, size, buffer)`: a read of raw data.
const fn block(symbol: &'static str) -> Def<Inner> {
    inner(symbol, InnerValue::Block, Arg(3)).only(1, RAW_DATA, RAW_DATA).fails(Fails::NegativeInt)
}

/// Functions whose calls in the library itself are looked for (`FieldAt`, `Messages`).
pub const CALLS_LOOKED_FOR: [&str; 4] = ["H5S_get_select_npoints", "H5T_get_size", PATH_FIND, STORED.callee];

const INNER: &[Row] = rows![
    inner("H5S_get_select_npoints", InnerValue::Points, Ret).accessor(Accessor::Points),
    inner("H5S_get_simple_extent_npoints", InnerValue::Extent, Ret),
    inner("H5T_get_size", InnerValue::TypeSize, Ret).accessor(Accessor::TypeSize),
    // `int f(dataspace, dims, maxdims)`.
    inner("H5S_get_simple_extent_dims", InnerValue::Dims, RetInt)
        .fails(Fails::NegativeInt)
        .array(0, dims(When::Return, 1, Count::Ret).rank()),
    // `herr_t f(dataset, access list, creation list)`.
    inner("H5D__layout_oh_read", InnerValue::Storage, Arg(0))
        .fails(Fails::NegativeInt)
        .array(0, Array::storage(LAYOUT, 0)),
    block("H5F_block_read"),
    block("H5F_shared_block_read"),
];

/// All of them.
pub(in crate::catalog) fn rows() -> Vec<Row> {
    let mut rows = [data::ROWS, names::ROWS, lists::ROWS, INNER].concat();
    let later = later::rows(&rows);
    rows.extend(later);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::FieldAt;

    #[test]
    fn calls_are_looked_for_of_what_accessors_are_read_at() {
        for row in rows() {
            let Some(accessor) = row.inner().and_then(|inner| inner.accessor) else { continue };
            let others = accessor.places().iter().filter_map(|at| match at {
                FieldAt::CallsNotAfter(other) => Some(*other),
                FieldAt::Entry(_) | FieldAt::CallsIn(_) => None,
            });
            assert!(others.chain([row.symbol]).all(|name| CALLS_LOOKED_FOR.contains(&name)), "{}", row.symbol);
        }
    }
}
