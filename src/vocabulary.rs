//! What every part of the program shares: layers, kinds of operation, span flags.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};

/// Where the calls of a layer are made; what can be traced, and how, follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The program: what the user adds.
    Program,
    /// Libraries whose calls are I/O by themselves.
    IoLibrary,
    /// Other libraries.
    Library,
    /// The kernel.
    Kernel,
    /// Functions inside the kernel: each makes page faults or system calls dearer, and they are rarely needed.
    InsideKernel,
}

/// Passes the layers, top to bottom, to a macro: the position is the wire number. Name on the command line and in every table,
/// origin, and the number on the kernel side.
macro_rules! layers {
    ($to:ident) => {
        $to! {
            /// Phases and user probes.
            App "app" Program IOT_LAYER_APP,
            /// NetCDF-C (`nc_*`).
            Netcdf "netcdf" IoLibrary IOT_LAYER_NETCDF,
            /// `PnetCDF` (`ncmpi_*`).
            Pnetcdf "pnetcdf" IoLibrary IOT_LAYER_PNETCDF,
            /// HDF5 (`H5*`).
            Hdf5 "hdf5" IoLibrary IOT_LAYER_HDF5,
            /// MPI-IO (`MPI_File_*`).
            Mpiio "mpiio" IoLibrary IOT_LAYER_MPIIO,
            /// MPI communication inside I/O calls.
            Mpi "mpi" Library IOT_LAYER_MPI,
            /// C standard I/O.
            Stdio "stdio" Library IOT_LAYER_STDIO,
            /// System calls.
            Syscall "syscall" Kernel IOT_LAYER_SYSCALL,
            /// The kernel's virtual file system.
            Vfs "vfs" InsideKernel IOT_LAYER_VFS,
            /// A file system's own functions.
            Fs "fs" InsideKernel IOT_LAYER_FS,
            /// Block requests.
            Block "block" Kernel IOT_LAYER_BLOCK,
        }
    };
}

macro_rules! define {
    ($($(#[$about:meta])* $layer:ident $name:literal $origin:ident $number:ident,)*) => {
        /// A level of the I/O stack, ordered from the application down to the device.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Layer { $($(#[$about])* $layer,)* }

        const TABLE: &[(Layer, &str, Origin)] = &[$((Layer::$layer, $name, Origin::$origin),)*];
    };
}
layers!(define);

/// All layers, top to bottom; the index of a layer here is its wire number.
pub const LAYERS: [Layer; TABLE.len()] = {
    let (mut layers, mut i) = ([Layer::App; TABLE.len()], 0);
    while i < TABLE.len() {
        layers[i] = TABLE[i].0;
        i += 1;
    }
    layers
};

impl Layer {
    /// The name used on the command line and in every table.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    const fn origin(self) -> Origin {
        TABLE[self as usize].2
    }

    /// Are its calls I/O by themselves, made by a library?
    pub const fn is_io_library(self) -> bool {
        matches!(self.origin(), Origin::IoLibrary)
    }

    /// Is it one of libraries?
    pub const fn is_library(self) -> bool {
        matches!(self.origin(), Origin::IoLibrary | Origin::Library)
    }

    /// Are its functions in programs and libraries? They take breakpoints in these.
    pub const fn is_in_files(self) -> bool {
        matches!(self.origin(), Origin::Program) || self.is_library()
    }

    /// Does it have probes by itself?
    pub const fn is_traceable(self) -> bool {
        !matches!(self.origin(), Origin::Program)
    }

    /// Is it traced when no layers are named?
    pub const fn is_usual(self) -> bool {
        self.is_traceable() && !matches!(self.origin(), Origin::InsideKernel)
    }

    /// The names of such layers, top to bottom, with commas.
    pub fn names(such: fn(Self) -> bool) -> String {
        LAYERS.into_iter().filter(|layer| such(*layer)).map(Self::name).collect::<Vec<_>>().join(", ")
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
    /// A page fault that the kernel counts as a major one: it waited for a device.
    pub const MAJOR: i32 = 1 << 8;
    /// It is in the sums, too (`--aggregate`): it must not be counted twice.
    pub const SUMMED: i32 = 1 << 9;
}

/// Names that `intern` takes at most: far more than there are functions to trace.
const MAX_NAMES: usize = 65_536;

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The name of a function or another value of a small vocabulary, kept for the life of the program.
///
/// # Errors
/// When there are more than 65 536 distinct names: what is read is not a vocabulary then, and memory must stay bounded.
pub fn intern(name: &str) -> Result<&'static str> {
    intern_in(&mut NAMES.lock().unwrap_or_else(PoisonError::into_inner), MAX_NAMES, name)
}

fn intern_in(names: &mut BTreeSet<&'static str>, max: usize, name: &str) -> Result<&'static str> {
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    ensure!(names.len() < max, "more than {max} distinct names of functions");
    let name: &'static str = Box::leak(Box::from(name));
    names.insert(name);
    Ok(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let (a, b) = (intern("H5Dwrite").unwrap(), intern(&String::from("H5Dwrite")).unwrap());
        assert!(std::ptr::eq(a, b));
        assert_eq!(a, "H5Dwrite");
    }

    #[test]
    fn too_many_names_are_refused_and_known_ones_still_found() {
        let mut names = BTreeSet::new();
        assert_eq!(intern_in(&mut names, 2, "a").unwrap(), "a");
        assert_eq!(intern_in(&mut names, 2, "b").unwrap(), "b");
        assert!(intern_in(&mut names, 2, "c").unwrap_err().to_string().contains("more than 2"));
        assert_eq!(intern_in(&mut names, 2, "a").unwrap(), "a");
    }
}
