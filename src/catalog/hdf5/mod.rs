//! HDF5 rows. Signatures: the public headers of HDF5 1.10 to 2.2; `hid_t` is 64 bits wide, `herr_t` and `htri_t` are
//! `int`s, and negative means failure.
//!
//! Functions that neither do nor decide I/O have no row; `tests/offline/hdf5_functions.rs` names them all, with the reason.

mod data;
mod later;
mod lists;
mod names;

use crate::catalog::Src::{self, Arg, Ret, RetInt};
use crate::catalog::def::{Def, row, rows};
use crate::catalog::role::{Close, Data, Hdf5, Inner, Note, Open};
use crate::catalog::{Array, Count, Fails, Family, FieldAt, Row, When};
use crate::vocabulary::{Kind, Layer};

/// What a call says of property lists, dataspaces and the shapes of objects, with the values it says it with.
///
/// In its record they stand where [`Effect::values`] puts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    /// The result is no number of bytes.
    Result {
        result: Src,
    },
    /// There are so many references to the handle now.
    References {
        count: Src,
    },
    /// There is one reference more to the handle, which is the file of another one.
    Reference,
    /// An object was made.
    Made,
    /// A dataset was made with a property list; array 0 has the dimensions, `element` is the size of an element.
    Dataset {
        element: Src,
        list: Src,
    },
    /// An attribute was made in a dataspace.
    Attribute {
        element: Src,
        space: Src,
    },
    /// An object was opened: array 0 has `rank` dimensions.
    Opened {
        element: Src,
        rank: Src,
    },
    /// The handle, made without a name, got one in a location.
    Named {
        location: Src,
    },
    /// Array 0 has the new dimensions of the handle.
    Extent,
    /// No dimension of the handle is smaller from now on than array 0 says.
    Grown,
    /// It moves bytes with a transfer property list; `element` is the size of an element in the file.
    Transfer {
        bytes: Src,
        list: Src,
        element: Src,
    },
    /// The same of datasets in array 1, the first of which is the handle.
    Transfers {
        bytes: Src,
        list: Src,
    },
    /// About a property list; of [`ListEffect`] is what `value` and `index` are.
    List {
        list: Src,
        effect: ListEffect,
        value: Src,
        index: Src,
    },
    /// About a dataspace; of [`SpaceEffect`] is what `value` is.
    Space {
        space: Src,
        effect: SpaceEffect,
        value: Src,
    },
}

impl Effect {
    /// Length, offset and bytes moved in the record.
    pub(super) const fn values(self) -> (Src, Src, Src) {
        const NONE: Src = Src::None;
        match self {
            Self::Nothing | Self::Reference | Self::Made | Self::Extent | Self::Grown => (NONE, NONE, NONE),
            Self::Result { result } => (NONE, NONE, result),
            Self::References { count } => (NONE, NONE, count),
            Self::Dataset { element, list } => (element, NONE, list),
            Self::Attribute { element, space } => (element, NONE, space),
            Self::Opened { element, rank } => (element, NONE, rank),
            Self::Named { location } => (NONE, location, NONE),
            Self::Transfer { bytes, list, element } => (bytes, list, element),
            Self::Transfers { bytes, list } => (bytes, list, NONE),
            Self::List { list, value, index, .. } => (index, list, value),
            Self::Space { space, value, .. } => (NONE, space, value),
        }
    }

    /// The same with every source of a value replaced.
    pub(super) fn with_sources(self, of: impl Fn(Src) -> Src) -> Self {
        match self {
            Self::Nothing | Self::Reference | Self::Made | Self::Extent | Self::Grown => self,
            Self::Result { result } => Self::Result { result: of(result) },
            Self::References { count } => Self::References { count: of(count) },
            Self::Dataset { element, list } => Self::Dataset { element: of(element), list: of(list) },
            Self::Attribute { element, space } => Self::Attribute { element: of(element), space: of(space) },
            Self::Opened { element, rank } => Self::Opened { element: of(element), rank: of(rank) },
            Self::Named { location } => Self::Named { location: of(location) },
            Self::Transfer { bytes, list, element } => {
                Self::Transfer { bytes: of(bytes), list: of(list), element: of(element) }
            }
            Self::Transfers { bytes, list } => Self::Transfers { bytes: of(bytes), list: of(list) },
            Self::List { list, effect, value, index } => {
                Self::List { list: of(list), effect, value: of(value), index: of(index) }
            }
            Self::Space { space, effect, value } => Self::Space { space: of(space), effect, value: of(value) },
        }
    }
}

/// What a call says of a property list. `got` is the value, `len` the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListEffect {
    /// `got` is a new one.
    New,
    /// `got` is a new one that nothing is known of.
    Unknown,
    /// `got` is a copy.
    Copy,
    /// `got` is the one that `handle` was made with.
    Of,
    Close,
    /// Array 0 are the dimensions of a chunk.
    Chunk,
    /// `got` is an `H5D_layout_t`.
    Layout,
    /// It has this filter more (`H5Z_filter_t`), of level `got`.
    Filter(i32),
    /// It has filter `got` more, with parameters in array 0.
    AnyFilter,
    /// The parameters of filter `got` are array 0.
    ModifyFilter,
    /// It does not have filter `got` any more; 0 means all.
    RemoveFilter,
    /// `got` is an `H5FD_mpio_xfer_t`.
    Collective,
    /// Asked for at most `len` dimensions of a chunk, it has `got`: array 0.
    GetChunk,
    /// Asked for its layout, it has `got`.
    GetLayout,
    /// Asked for the number of its filters, it has `got`.
    GetFilterCount,
    /// Asked for its filter number `len`, it has `got`, with parameters in array 0.
    GetFilter,
}

/// What a call says of a dataspace. `got` is the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceEffect {
    /// `got` is a new one of the dimensions in array 0.
    New,
    /// `got` is a new one of a class, an `H5S_class_t`, which stands in place of the dataspace.
    Class,
    /// `got` is a copy.
    Copy,
    /// `got` is that of `handle`.
    Of,
    Close,
    /// Array 0 are its dimensions from now on.
    Extent,
    /// It has the dimensions of `got` from now on.
    Same,
    /// It has none from now on.
    None,
    /// Asked for its dimensions, it has `got`: array 0.
    GetExtent,
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
/// `hid_t f(...)`: opens something without a name.
const fn nameless(symbol: &'static str, class: &'static str) -> Def<Open> {
    h5(symbol, Kind::Open).opens(Ret).opened_in(Arg(0)).object(class)
}
/// `hid_t f(location, name, ...)`: opens something inside a file.
const fn inside(symbol: &'static str, class: &'static str) -> Def<Open> {
    nameless(symbol, class).path(1)
}
const fn dims(when: When, arg: u8, count: Count) -> Array {
    Array::longs(NUMBERS, when, arg, count)
}

/// An inner function that knows what the call it runs in is about. These are exported, because the parts of the library
/// call each other through them.
const fn note(symbol: &'static str, note: Note, value: Src) -> Def<Inner> {
    h5(symbol, Kind::Other).note(note, value)
}
/// `size_t f(file, kind of memory, address, size, buffer)`: a read of raw data.
const fn block(symbol: &'static str) -> Def<Inner> {
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

const NOTES: &[Row] = rows![
    note("H5S_get_select_npoints", Note::Points, Ret).accessor(Accessor::Points),
    note("H5S_get_simple_extent_npoints", Note::Extent, Ret),
    note("H5T_get_size", Note::TypeSize, Ret).accessor(Accessor::TypeSize),
    // `int f(dataspace, dims, maxdims)`.
    note("H5S_get_simple_extent_dims", Note::Dims, RetInt)
        .fails(Fails::NegativeInt)
        .array(0, dims(When::Return, 1, Count::Ret).rank()),
    // `herr_t f(dataset, access list, creation list)`.
    note("H5D__layout_oh_read", Note::Storage, Arg(0)).fails(Fails::NegativeInt).array(0, Array::storage(LAYOUT, 0)),
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
            let Some(accessor) = row.inner().and_then(|inner| inner.accessor) else { continue };
            let others = accessor.places().iter().filter_map(|at| match at {
                FieldAt::CallsNotAfter(other) => Some(*other),
                FieldAt::Entry(_) | FieldAt::CallsIn(_) => None,
            });
            assert!(others.chain([row.symbol]).all(|name| CALLS_LOOKED_FOR.contains(&name)), "{}", row.symbol);
        }
    }
}
