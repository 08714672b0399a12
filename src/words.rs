//! The words every part of the program shares: layers, kinds of operation, span flags.

use std::fmt;

/// A level of the I/O stack, ordered from the application down to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Layer {
    /// Phases and user probes.
    App,
    /// NetCDF-C (`nc_*`).
    Netcdf,
    /// `PnetCDF` (`ncmpi_*`).
    Pnetcdf,
    /// HDF5 (`H5*`).
    Hdf5,
    /// MPI-IO (`MPI_File_*`).
    Mpiio,
    /// MPI communication inside I/O calls.
    Mpi,
    /// C standard I/O.
    Stdio,
    /// System calls.
    Syscall,
    /// The kernel's virtual file system.
    Vfs,
    /// A file system's own functions.
    Fs,
    /// Block requests.
    Block,
}

/// All layers, top to bottom; the index of a layer here is its wire number.
pub const LAYERS: [Layer; 11] = [
    Layer::App,
    Layer::Netcdf,
    Layer::Pnetcdf,
    Layer::Hdf5,
    Layer::Mpiio,
    Layer::Mpi,
    Layer::Stdio,
    Layer::Syscall,
    Layer::Vfs,
    Layer::Fs,
    Layer::Block,
];

impl Layer {
    /// The name used on the command line and in every table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Netcdf => "netcdf",
            Self::Pnetcdf => "pnetcdf",
            Self::Hdf5 => "hdf5",
            Self::Mpiio => "mpiio",
            Self::Mpi => "mpi",
            Self::Stdio => "stdio",
            Self::Syscall => "syscall",
            Self::Vfs => "vfs",
            Self::Fs => "fs",
            Self::Block => "block",
        }
    }

    /// The layer of that name.
    pub fn parse(name: &str) -> Option<Self> {
        LAYERS.into_iter().find(|l| l.name() == name)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What an operation does, whatever its layer calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Moves data to the program.
    Read,
    /// Moves data from the program.
    Write,
    /// Makes a handle.
    Open,
    /// Ends a handle.
    Close,
    /// Names, attributes, sizes.
    Meta,
    /// Makes data durable or visible.
    Sync,
    /// Moves a position.
    Seek,
    /// Maps memory.
    Mmap,
    /// Waits for an asynchronous operation.
    Wait,
    /// Anything else.
    Other,
}

/// All kinds; the index of a kind here is its wire number.
pub const KINDS: [Kind; 10] = [
    Kind::Read,
    Kind::Write,
    Kind::Open,
    Kind::Close,
    Kind::Meta,
    Kind::Sync,
    Kind::Seek,
    Kind::Mmap,
    Kind::Wait,
    Kind::Other,
];

impl Kind {
    /// The name used in every table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Open => "open",
            Self::Close => "close",
            Self::Meta => "meta",
            Self::Sync => "sync",
            Self::Seek => "seek",
            Self::Mmap => "mmap",
            Self::Wait => "wait",
            Self::Other => "other",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        KINDS.into_iter().find(|k| k.name() == name)
    }
}

/// Bits of `spans.flags`, counted from 0 as in `docs/schema.md`.
pub mod flag {
    /// A collective call.
    pub const COLLECTIVE: i32 = 1 << 0;
    /// A call that returns before its work is done.
    pub const NONBLOCKING: i32 = 1 << 1;
    /// An asynchronous span: submitted by one call, completed by another.
    pub const ASYNC: i32 = 1 << 2;
    /// Bypasses the page cache (`O_DIRECT`).
    pub const DIRECT: i32 = 1 << 3;
    /// A path or payload was cut.
    pub const TRUNCATED: i32 = 1 << 4;
    /// The parent is a guess, or an enclosing call is known to be missing.
    pub const INFERRED_PARENT: i32 = 1 << 5;
    /// Entered, and not returned when it was written.
    pub const UNFINISHED: i32 = 1 << 6;
    /// Read-ahead.
    pub const READAHEAD: i32 = 1 << 7;
}
