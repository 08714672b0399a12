//! HDF5 rows. Signatures: the public headers of HDF5 1.10 to 2.2; `hid_t` is 64 bits wide, `herr_t` and `htri_t` are
//! `int`s, and negative means failure.
//!
//! Functions that neither do nor decide I/O have no row; `tests/offline/hdf5_functions.rs` names them all, with the reason.

mod data;
mod later;
mod lists;
mod names;

use crate::catalog::Src::{Arg, Ret, RetInt};
use crate::catalog::{Count, Fails, Family, FieldAt, Note, Role, Row, When, Words, row};
use crate::vocabulary::{Kind, Layer};

/// What a call says of property lists, dataspaces and the shapes of objects (`correlate/hdf5.rs` listens).
///
/// Its values have the meanings given here, not those of [`Row`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Nothing.
    Nothing,
    /// `got` is the result and no number of bytes.
    Result,
    /// `got` is how many references there are now to `handle`.
    References,
    /// There is one reference more to `handle`, which is the file of `off`.
    Reference,
    /// An object was made.
    Made,
    /// A dataset was made with the property list `got`; `len` is the size of an element, words 0 are the dimensions.
    Dataset,
    /// An attribute was made in the dataspace `got`; `len` is the size of an element.
    Attribute,
    /// An object was opened: `len` is the size of an element, words 0 are `got` dimensions.
    Opened,
    /// `handle`, made without a name, got one in `off`.
    Named,
    /// Words 0 are the new dimensions of `handle`.
    Extent,
    /// No dimension of `handle` is smaller from now on than words 0 say.
    Grown,
    /// `off` is the transfer property list, `got` the size of an element in the file.
    Transfer,
    /// `off` is the transfer property list; the datasets are words 1, the first of them is `handle`.
    Transfers,
    List(List),
    Space(Space),
}

/// What a call says of a property list, which is `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// `got` is a new one.
    New,
    /// `got` is a new one that nothing is known of.
    Unknown,
    /// `got` is a copy.
    Copy,
    /// `got` is the one that `handle` was made with.
    Of,
    Close,
    /// Words 0 are the dimensions of a chunk.
    Chunk,
    /// `got` is an `H5D_layout_t`.
    Layout,
    /// It has this filter more (`H5Z_filter_t`), of level `got`.
    Filter(i32),
    /// It has filter `got` more, with parameters in words 0.
    AnyFilter,
    /// The parameters of filter `got` are words 0.
    FilterAgain,
    /// It does not have filter `got` any more; 0 means all.
    NoFilter,
    /// `got` is an `H5FD_mpio_xfer_t`.
    Collective,
    /// Asked for at most `len` dimensions of a chunk, it has `got`: words 0.
    ToldChunk,
    /// Asked for its layout, it has `got`.
    ToldLayout,
    /// Asked for the number of its filters, it has `got`.
    ToldFilters,
    /// Asked for its filter number `len`, it has `got`, with parameters in words 0.
    ToldFilter,
}

/// What a call says of a dataspace, which is `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// `got` is a new one of the dimensions in words 0.
    New,
    /// `got` is a new one of class `off`, an `H5S_class_t`.
    Class,
    /// `got` is a copy.
    Copy,
    /// `got` is that of `handle`.
    Of,
    Close,
    /// Words 0 are its dimensions from now on.
    Extent,
    /// It has the dimensions of `got` from now on.
    Same,
    /// It has none from now on.
    None,
    /// Asked for its dimensions, it has `got`: words 0.
    Told,
}

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

/// An object of whatever class its `hid_t` says.
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

const fn h5(symbol: &'static str, kind: Kind) -> Row {
    row(Family::Hdf5, Layer::Hdf5, symbol, kind)
}
/// `herr_t f(...)` of no handle.
const fn plain(symbol: &'static str, kind: Kind) -> Row {
    h5(symbol, kind).role(Role::None).fails(Fails::NegativeInt)
}
/// `herr_t f(handle, ...)`.
const fn on(symbol: &'static str, kind: Kind) -> Row {
    h5(symbol, kind).handle(Arg(0)).fails(Fails::NegativeInt)
}
/// The same, where the handle is another argument.
const fn on_arg(symbol: &'static str, arg: u8) -> Row {
    on(symbol, Kind::Meta).handle(Arg(arg))
}
const fn about(symbol: &'static str) -> Row {
    on(symbol, Kind::Meta)
}
/// `int f(handle, ...)`, a number or an answer.
const fn answer(symbol: &'static str) -> Row {
    about(symbol).got(RetInt).tells(Tells::Result)
}
/// The same with a result of 64 bits.
const fn long_answer(symbol: &'static str) -> Row {
    about(symbol).got(Ret).tells(Tells::Result).fails(Fails::Negative)
}
/// `hid_t f(object)`: a property list that says nothing of shapes.
const fn list(symbol: &'static str) -> Row {
    long_answer(symbol).tells(Tells::List(List::Unknown))
}
const fn close(symbol: &'static str) -> Row {
    on(symbol, Kind::Close).role(Role::Close)
}
/// `hid_t f(...)`: opens something without a name.
const fn nameless(symbol: &'static str, class: &'static str) -> Row {
    h5(symbol, Kind::Open).role(Role::Open).handle(Ret).off(Arg(0)).object(class)
}
/// `hid_t f(location, name, ...)`: opens something inside a file.
const fn inside(symbol: &'static str, class: &'static str) -> Row {
    nameless(symbol, class).path(1)
}
const fn dims(when: When, arg: u8, count: Count) -> Words {
    Words::longs(NUMBERS, when, arg, count)
}

/// An inner function that tells what the call it runs in is about. These are exported, because the parts of the library
/// call each other through them.
const fn note(symbol: &'static str, note: Note, value: crate::catalog::Src) -> Row {
    h5(symbol, Kind::Other).note(note, value)
}
/// `size_t f(file, kind of memory, address, size, buffer)`: a read of raw data.
const fn block(symbol: &'static str) -> Row {
    note(symbol, Note::Block, Arg(3)).only(1, RAW_DATA, RAW_DATA).fails(Fails::NegativeInt)
}

/// Functions that return a field of a structure, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accessor {
    /// Of a dataspace: how many points are selected.
    Points,
    /// Of a datatype: bytes of an element.
    TypeSize,
}

impl Accessor {
    /// Where the field is read.
    pub const fn places(self) -> &'static [FieldAt] {
        match self {
            Self::Points => &[FieldAt::CallsIn(&["H5D__read", "H5D__write"])],
            Self::TypeSize => &[FieldAt::Entry(PATH_FIND), FieldAt::CallsNotAfter(PATH_FIND)],
        }
    }
}

/// A function reads messages of an object header into a structure, by `callee(location, message, member)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Messages {
    pub callee: &'static str,
    pub ids: [u32; 2],
}

/// What is read of an object header when a dataset is opened: its filters and its layout (`H5O_PLINE_ID` and
/// `H5O_LAYOUT_ID`, H5Oprivate.h).
pub const STORED: Messages = Messages { callee: "H5O_msg_read", ids: [0xb, 0x8] };

/// `H5T_path_find(source, destination)`: each transfer asks how to convert one type into the other.
const PATH_FIND: &str = "H5T_path_find";
/// Functions whose calls in the library itself are looked for (`FieldAt`, `Messages`).
pub const CALLS_LOOKED_FOR: [&str; 4] = ["H5S_get_select_npoints", "H5T_get_size", PATH_FIND, STORED.callee];

const NOTES: &[Row] = &[
    note("H5S_get_select_npoints", Note::Points, Ret).accessor(Accessor::Points),
    note("H5S_get_simple_extent_npoints", Note::Extent, Ret),
    note("H5T_get_size", Note::TypeSize, Ret).accessor(Accessor::TypeSize),
    // `int f(dataspace, dims, maxdims)`.
    note("H5S_get_simple_extent_dims", Note::Dims, RetInt)
        .fails(Fails::NegativeInt)
        .words(0, dims(When::Return, 1, Count::Ret).rank()),
    // `herr_t f(dataset, access list, creation list)`.
    note("H5D__layout_oh_read", Note::Storage, Arg(0)).fails(Fails::NegativeInt).words(0, Words::storage(LAYOUT, 0)),
    block("H5F_block_read"),
    block("H5F_shared_block_read"),
];

/// All of them.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = [data::ROWS, names::ROWS, lists::ROWS, NOTES].concat();
    let later = later::rows(&rows);
    rows.extend(later);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_looked_for_of_what_accessors_are_read_at() {
        for row in rows() {
            let Some(accessor) = row.accessor else { continue };
            let others = accessor.places().iter().filter_map(|at| match at {
                FieldAt::CallsNotAfter(other) => Some(*other),
                FieldAt::Entry(_) | FieldAt::CallsIn(_) => None,
            });
            assert!(others.chain([row.symbol]).all(|name| CALLS_LOOKED_FOR.contains(&name)), "{}", row.symbol);
        }
    }
}
