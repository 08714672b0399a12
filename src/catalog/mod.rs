//! The catalog: one row per traced function, system calls included.
//!
//! A row is data. Its index is the probe's cookie, the index into the kernel side's array of specs and
//! the `spec` of every event. Adding a function adds a row here and nothing in `bpf/`.

mod hdf5;
pub mod library;
mod mpiio;
pub mod phase;
mod stdio;
pub mod symbol;
mod syscall;
mod user;
pub mod value;

pub use library::{Catalog, Library};
pub use phase::Phase;
pub use user::LIBRARY_LAYERS;

use crate::words::{Kind, Layer};

/// Which set of symbols a row belongs to; a library is recognised by the symbols it exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// libhdf5, any build.
    Hdf5,
    /// Open MPI's libmpi.
    OpenMpi,
    /// The C library.
    Libc,
    /// Not a library: the kernel's system calls.
    Syscall,
    /// A library (or the phases) of the user, by its number in the [`Catalog`].
    User(u16),
}

impl Family {
    /// Built-in families that live in files. Those of a run are in its [`Catalog`].
    pub const LIBRARIES: [Self; 3] = [Self::Hdf5, Self::OpenMpi, Self::Libc];

    /// A file that defines all of these is a library of the family.
    pub const fn sentinels(self) -> &'static [&'static str] {
        match self {
            Self::Hdf5 => &["H5Fopen", "H5Dwrite"],
            Self::OpenMpi => &["MPI_File_open", "ompi_mpi_comm_world"],
            Self::Libc => &["fopen", "fwrite", "fclose"],
            Self::Syscall | Self::User(_) => &[],
        }
    }

    /// The name shown to people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hdf5 => "HDF5",
            Self::OpenMpi => "Open MPI",
            Self::Libc => "C library",
            Self::Syscall => "system calls",
            Self::User(_) => "user",
        }
    }

    /// The layer its rows belong to.
    pub const fn layer(self) -> Layer {
        match self {
            Self::Hdf5 => Layer::Hdf5,
            Self::OpenMpi => Layer::Mpiio,
            Self::Libc => Layer::Stdio,
            Self::Syscall => Layer::Syscall,
            Self::User(_) => Layer::App,
        }
    }
}

/// Where a value of a call comes from. Argument positions count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Src {
    /// There is none.
    None,
    /// The 64-bit argument.
    Arg(u8),
    /// The argument as a signed 32-bit integer.
    Int(u8),
    /// The 64-bit word an argument points at, read at entry.
    In(u8),
    /// The 64-bit word an argument points at, read at return.
    Out(u8),
    /// The product of two arguments.
    Mul(u8, u8),
    /// A count times the size of the Open MPI datatype that the second argument points at.
    Typed(u8, u8),
    /// The length of the string an argument points at, at return.
    Strlen(u8),
    /// The result.
    Ret,
    /// The result times an argument.
    RetTimes(u8),
    /// Bytes transferred, from the Open MPI status that an argument points at.
    Status(u8),
    /// What was asked for, when the call succeeds.
    Asked,
    /// The sum of an I/O vector: pointer, count.
    Iov(u8, u8),
    /// The file position before the call (system calls).
    Pos,
    /// The argument times a number.
    Scaled(u8, u16),
    /// The result times a number.
    RetScaled(u16),
}

/// How a call says that it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    /// It cannot.
    Never,
    /// A negative result (as 32 bits for `int`, as 64 for the kernel and `hid_t`).
    Negative,
    /// A negative 32-bit result.
    NegativeInt,
    /// A null or zero result.
    Zero,
    /// A non-zero 32-bit result.
    NonZero,
    /// A null result is the end of the file, which is no failure: nothing was moved.
    Eof,
}

/// What a call does to handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Nothing; it may name a file by path only.
    None,
    /// Uses `handle`.
    Use,
    /// Makes `handle`; `len` is the mode argument, `off` the handle it is opened in (dataset in file, path below dirfd).
    Open,
    /// Ends `handle`.
    Close,
    /// Makes `handle` another name of the handle in `off`.
    Dup,
    /// Ends the file's name (unlink); the file is known by path.
    Unlink,
    /// Moves a name from path to path2.
    Rename,
}

/// One traced function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub family: Family,
    pub layer: Layer,
    /// The exported symbol, or the system call's name.
    pub symbol: &'static str,
    /// The name in the output.
    pub op: &'static str,
    pub kind: Kind,
    pub role: Role,
    pub handle: Src,
    pub len: Src,
    pub off: Src,
    pub got: Src,
    /// Argument that points at a path or name.
    pub path: Option<u8>,
    pub path2: Option<u8>,
    /// Arguments with the directory descriptor a relative path starts from (absent: working directory).
    pub base: Option<u8>,
    pub base2: Option<u8>,
    pub fails: Fails,
    /// `flag::COLLECTIVE` and the like.
    pub flags: i32,
    /// Opens an object (dataset, attribute, group) inside a file, of this class.
    pub object: Option<&'static str>,
    /// Only calls whose argument has one of these two values are recorded.
    pub only: Option<(u8, u32, u32)>,
    /// Argument with a `struct stat` (true: `struct statx`) filled at return, which identifies the file.
    pub stat: Option<(u8, bool)>,
}

const fn row(family: Family, layer: Layer, symbol: &'static str, kind: Kind) -> Row {
    Row {
        family,
        layer,
        symbol,
        op: symbol,
        kind,
        role: Role::Use,
        handle: Src::None,
        len: Src::None,
        off: Src::None,
        got: Src::None,
        path: None,
        path2: None,
        base: None,
        base2: None,
        fails: Fails::Negative,
        flags: 0,
        object: None,
        only: None,
        stat: None,
    }
}

impl Row {
    /// A phase: a function that is known for what runs inside it, and may last as long as the program.
    pub fn is_phase(&self) -> bool {
        self.layer == Layer::App && self.kind == Kind::Other && matches!(self.role, Role::None | Role::Use)
    }

    const fn op(mut self, op: &'static str) -> Self {
        self.op = op;
        self
    }
    const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }
    const fn handle(mut self, src: Src) -> Self {
        self.handle = src;
        self
    }
    const fn len(mut self, src: Src) -> Self {
        self.len = src;
        self
    }
    const fn off(mut self, src: Src) -> Self {
        self.off = src;
        self
    }
    const fn got(mut self, src: Src) -> Self {
        self.got = src;
        self
    }
    const fn path(mut self, arg: u8) -> Self {
        self.path = Some(arg);
        self
    }
    const fn path2(mut self, arg: u8) -> Self {
        self.path2 = Some(arg);
        self
    }
    const fn base(mut self, arg: u8) -> Self {
        self.base = Some(arg);
        self
    }
    const fn base2(mut self, arg: u8) -> Self {
        self.base2 = Some(arg);
        self
    }
    const fn fails(mut self, fails: Fails) -> Self {
        self.fails = fails;
        self
    }
    const fn flags(mut self, flags: i32) -> Self {
        self.flags = flags;
        self
    }
    const fn object(mut self, class: &'static str) -> Self {
        self.object = Some(class);
        self
    }
    const fn only(mut self, arg: u8, a: u32, b: u32) -> Self {
        self.only = Some((arg, a, b));
        self
    }
    const fn stat(mut self, arg: u8, extended: bool) -> Self {
        self.stat = Some((arg, extended));
        self
    }
}

/// Every row, libraries first; the position of a row is its number on the wire.
pub fn rows() -> Vec<Row> {
    [hdf5::ROWS, mpiio::ROWS, stdio::ROWS, syscall::ROWS].concat()
}

/// The number of a system call on this machine, by name.
pub fn syscall_number(name: &str) -> Option<u32> {
    syscall::NUMBERS.iter().find(|(n, _)| *n == name).map(|(_, nr)| *nr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_symbol_stands_in_one_row_of_its_family() {
        let mut seen = HashSet::new();
        for row in rows() {
            assert!(seen.insert((row.family, row.symbol)), "{} stands twice", row.symbol);
        }
    }

    #[test]
    fn every_system_call_has_a_number() {
        for row in rows().iter().filter(|r| r.family == Family::Syscall) {
            assert!(syscall_number(row.symbol).is_some(), "{} has no number", row.symbol);
        }
    }

    #[test]
    fn opens_say_what_they_open() {
        for row in rows().iter().filter(|r| r.role == Role::Open) {
            assert!(row.handle != Src::None, "{} opens nothing", row.symbol);
        }
    }
}
