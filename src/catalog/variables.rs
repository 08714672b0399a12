//! What calls of NetCDF-C and `PnetCDF` show of files, variables and dimensions: how the correlator reads their rows.
//!
//! `handle` is the file, or a group in it. `off` is the variable (-1: the file itself) in its low half; above it stands
//! the inner values, as [`Src::PairInner`](crate::catalog::Src::PairInner) has them: the number of the variable's
//! dimensions and, from bit 16 on, the bytes of an element in memory (`PnetCDF`, blocking). The name is the path.

/// Slots of arrays. 0 and 1 are also those of requests and of what became of them.
pub mod slot {
    /// First index in each dimension.
    pub const START: u8 = 0;
    /// Elements in each dimension.
    pub const COUNT: u8 = 1;
    /// Distance of elements in each dimension.
    pub const STRIDE: u8 = 2;
    /// Lengths of the variable's dimensions; in `PnetCDF` the counts of the call. As long as there are dimensions.
    pub const SHAPE: u8 = 3;
    /// Ids: dimensions of a variable, variables, groups, filters.
    pub const IDS: u8 = 4;
    /// Chunk sizes.
    pub const CHUNK: u8 = 5;
    /// Parameters of a filter.
    pub const PARAMETERS: u8 = 6;
    /// What a list of boxes comes to.
    pub const BOXES: u8 = 7;
}

/// Which elements of a variable a call moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// All, as many as there are at that time.
    Whole,
    One,
    /// `START`, `COUNT`, `STRIDE`.
    Box,
    /// Several boxes: `BOXES`, their number is the high half of `off`. `len` is how many elements they have, where an
    /// inner value has it (not with [`Element::Datatype`]).
    List,
    /// Those of an MPI datatype; `got` is how many they are.
    Datatype,
    /// Of each of several variables, `IDS`, a region of its own, whose counts are inner values: `SHAPE` for each.
    Several,
}

/// How large an element is in the program's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// So many bytes, by the function's name.
    Bytes(u8),
    /// As in the file.
    Variable,
    /// `len` is the size of an MPI datatype times the number of them, or times -1 where the region has their number.
    Datatype,
    /// Each variable has an MPI datatype of its own.
    Datatypes,
}

/// What a call means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Nothing,
    /// It opens a file.
    File {
        parallel: bool,
    },
    /// It closes a file.
    End,
    /// It moves elements of a variable.
    Data(Region, Element),
    /// It moves what the reads or writes of its own layer inside it move.
    Inner,
    /// The dimension `off` is `len` long; a new one of length 0 grows.
    Dimension {
        new: bool,
    },
    /// The variable `off`: its type (`len`), how many dimensions it has (`got`) and which (`IDS`). Each may be missing.
    Variable {
        new: bool,
    },
    /// Whether calls on the variable are collective: `len`.
    Access,
    /// How the variable is laid out: `len` is 0 for chunks, which are `CHUNK`.
    Storage,
    /// Filters of the variable: `len` for shuffle, `got` for deflate with the level in its place or in `PARAMETERS`.
    Deflate,
    /// A filter of the variable that is on where `len` is not 0.
    Checksum,
    /// Filter `len` with `PARAMETERS`.
    Filter,
    /// Filters `IDS`.
    Filters,
    /// The type `off` has `len` bytes.
    Type,
    /// The type `off` is one of lists in memory.
    ListType,
    /// The type `off` is another name for the type `len`.
    SameType,
    /// The attribute has `len` elements of type `got`.
    Attribute,
    /// It moves an attribute: of `len` elements, of type `got` in the file. Each may be missing.
    AttributeData(Element),
    /// The attribute is gone.
    NoAttribute,
    /// The group `off` has this name, seen from `handle`.
    Group,
    /// `handle` has this name, as its own or as a path.
    GroupName,
    /// There are groups `IDS` in `handle`, `got` of them; each may be missing.
    Groups,
    /// `handle` is in the group `off`.
    GroupParent,
}

impl Meaning {
    /// Does it show nothing that later calls depend on?
    pub(super) const fn stands_alone(self) -> bool {
        matches!(self, Self::Nothing | Self::Data(..) | Self::Inner | Self::AttributeData(_))
    }
}
