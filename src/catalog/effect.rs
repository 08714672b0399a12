//! What calls of HDF5 do besides their role, and how the library's structures are read.

use crate::catalog::{FieldAt, Src};

/// What a call does to property lists, dataspaces and the shapes of objects, with the values for that.
///
/// In its record they stand where `values` puts them.
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
    /// No dimension of the handle is smaller from now on than in array 0.
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
    /// Does it show nothing that later calls depend on?
    pub(super) const fn stands_alone(self) -> bool {
        matches!(self, Self::Nothing | Self::Result { .. } | Self::Transfer { .. } | Self::Transfers { .. })
    }

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

/// What a call does to a property list, or reads of it. `got` is the value, `len` the index.
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

/// What a call does to a dataspace, or reads of it. `got` is the value.
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
pub const PATH_FIND: &str = "H5T_path_find";
