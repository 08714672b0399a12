//! Arrays of the program that go with a call.

/// How many elements an array of the program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Always this many.
    Const(u8),
    /// An `int` argument.
    Arg(u8),
    /// The result, an `int`.
    Ret,
    /// The `int` an argument points at; where it points at nothing, 256 bytes, those beyond the array's end without meaning.
    At(u8),
    /// One per dimension of something whose rank only the reader knows: it takes as many as there are dimensions, at
    /// least 8 elements are sent, those beyond the array's end without meaning.
    Rank,
}

/// When an array is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Entry,
    /// If the call succeeds.
    Return,
}

/// An array of the program that goes with the call, as `TextKind::Ints` or `TextKind::Longs` of this slot (0 to 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array {
    pub when: When,
    pub arg: u8,
    /// Bytes of an element: 4 or 8, or of a struct of 32-bit integers.
    pub elem: u8,
    pub count: Count,
    pub slot: u8,
    pub deref: Deref,
    /// The number of elements is a rank: where ranks are not known, so many are read from now on.
    pub rank: bool,
}

/// What the elements of an array lead to, which is sent instead of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deref {
    /// They are the values themselves.
    No,
    /// Pointers to as many 64-bit integers (at most 252).
    Longs(u8),
    /// Pointers to the first indices of boxes; those of the next argument, if there are any, lead to their counts, one
    /// per dimension. The values are where the last box ends in the first dimension and then, for 1, 2, 3 and more
    /// dimensions, how many elements all boxes have, as far as counts could be read.
    Boxes,
    /// Ranks in the job of the members of a communicator of Open MPI, as runs of three: the first, the last, and their
    /// distance. The pointer to its group stands `count` 64-bit integers into it.
    Members,
    /// How a dataset of HDF5 is stored: the library's `H5O_layout_t`; of a dataset in chunks the next slot has the
    /// number of its filters and their `H5Z_filter_info_t`.
    Storage,
}

impl Array {
    /// 64-bit elements.
    pub(crate) const fn longs(slot: u8, when: When, arg: u8, count: Count) -> Self {
        Self { when, arg, elem: 8, count, slot, deref: Deref::No, rank: false }
    }
    /// 32-bit elements.
    pub(crate) const fn ints(slot: u8, when: When, arg: u8, count: Count) -> Self {
        Self { when, arg, elem: 4, count, slot, deref: Deref::No, rank: false }
    }
    /// Structs of 32-bit integers, each of so many bytes.
    pub(crate) const fn structs(slot: u8, when: When, arg: u8, count: Count, bytes: u8) -> Self {
        Self { when, arg, elem: bytes, count, slot, deref: Deref::No, rank: false }
    }
    /// What each of the pointers leads to, as many integers.
    pub(crate) const fn behind(slot: u8, when: When, arg: u8, count: Count, longs: u8) -> Self {
        Self { when, arg, elem: 8, count, slot, deref: Deref::Longs(longs), rank: false }
    }
    /// The elements in boxes, whose number is an argument.
    pub(crate) const fn boxes(slot: u8, arg: u8, number: u8) -> Self {
        Self { deref: Deref::Boxes, ..Self::longs(slot, When::Entry, arg, Count::Arg(number)) }
    }
    /// Members of a communicator of Open MPI, whose group stands so many bytes into it.
    pub(crate) const fn members(slot: u8, arg: u8, group: u16) -> Self {
        let count = Count::Const((group / 8) as u8);
        Self { when: When::Return, arg, elem: 4, count, slot, deref: Deref::Members, rank: false }
    }
    /// How the dataset of HDF5 is stored that an argument leads to.
    pub(crate) const fn storage(slot: u8, arg: u8) -> Self {
        Self { when: When::Return, arg, elem: 8, count: Count::Const(0), slot, deref: Deref::Storage, rank: false }
    }
    pub(crate) const fn rank(mut self) -> Self {
        self.rank = true;
        self
    }
    /// The same array of a function with that many arguments in front.
    pub(crate) const fn later(mut self, arguments: u8) -> Self {
        self.arg += arguments;
        self.count = match self.count {
            Count::Arg(a) => Count::Arg(a + arguments),
            Count::At(a) => Count::At(a + arguments),
            other => other,
        };
        self
    }
}

/// Slots of arrays, read at entry, that hold `struct aiocb`s (17 integers of 64 bits each): what a helper thread is going to do.
pub const JOB_SYNC: u8 = 12;
pub const JOB_READ: u8 = 13;
pub const JOB_WRITE: u8 = 14;
/// Each has its own direction (`aio_lio_opcode`).
pub const JOB_LIST: u8 = 15;

/// Slots of arrays of a call that opens a file of MPI-IO: runs of ranks in the job of those that open it together
/// ([`Deref::Members`]); any from the implementation that has opened it.
pub const OPENED_BY: u8 = 0;
pub const OMPIO_OPENED: u8 = 1;
pub const ROMIO_OPENED: u8 = 2;

/// Where the structs in array 2, one for each request in array 0, have what an operation moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// 32-bit integers of a struct.
    pub ints: u8,
    /// The one with the low half of the count; the next has the high half.
    pub at: u8,
    /// The lowest bit of the high half is not part of the count.
    pub split: bool,
}
