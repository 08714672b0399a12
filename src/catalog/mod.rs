//! The catalog: one row per traced function, system calls included.
//!
//! A row is data. Its index is the probe's cookie, the index into the kernel side's array of specs and
//! the `spec` of every event. Adding a function adds a row here and nothing in `bpf/`.

mod array;
mod def;
mod effect;
pub mod kernel;
pub mod libraries;
pub mod library;
pub mod phase;
mod recorded;
pub mod role;
mod row;
mod source;
pub mod symbol;
mod user;
pub mod value;
pub mod variables;

pub use array::{
    Array, Count, Deref, JOB_LIST, JOB_READ, JOB_SYNC, JOB_WRITE, OMPIO_OPENED, OPENED_BY, ROMIO_OPENED, Status, When,
};
pub use kernel::number::Layout;
pub use kernel::syscall::COPIES;
pub use libraries::{Family, Version};
pub use library::{Catalog, Library};
pub use phase::{Lines, Phase};
pub use recorded::{Argument, Async, Hints};
pub use role::{Does, InnerValue, Role, Values};
pub use row::Row;
pub use source::{Src, Variable};

use crate::vocabulary::Layer;
use kernel::{fault, number, operation, syscall, vfs};

/// The implementations of MPI-IO.
pub const OMPIO: &str = "OMPIO";
pub const ROMIO: &str = "ROMIO";

/// How a call returns that it failed.
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
    /// A non-zero 32-bit result, which is the library's own code.
    NonZero,
    /// A null or zero result means that nothing was moved, a failure if the stream has its error indicator set.
    Eof,
    /// The same with a 32-bit result of -1.
    EofInt,
}

/// Where the field of a structure is read that an accessor returns, which cannot be probed cheaply itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldAt {
    /// At the entry of this function, of its first two arguments.
    Entry(&'static str),
    /// At calls of the accessor in these functions.
    CallsIn(&'static [&'static str]),
    /// At calls of the accessor everywhere in its file but behind a call of this function in the same one.
    CallsNotAfter(&'static str),
}

impl FieldAt {
    /// The functions that it names.
    pub fn symbols(self) -> impl Iterator<Item = &'static str> {
        let (one, several) = match self {
            Self::Entry(name) | Self::CallsNotAfter(name) => (Some(name), &[][..]),
            Self::CallsIn(names) => (None, names),
        };
        one.into_iter().chain(several.iter().copied())
    }
}

/// How the arguments of a function inside the kernel name a file, and what part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    Nothing,
    /// A `struct file`.
    File,
    /// A `struct file`, then a buffer, its size, and where the position is.
    Buffer,
    /// A `struct file`, then a `struct iov_iter`, and where the position is.
    Iter,
    /// A `struct kiocb`, then a `struct iov_iter`.
    Kiocb,
    /// A `struct path`.
    Path,
    /// The second argument is a `struct dentry`.
    Dentry,
    /// The third is.
    Entry,
    /// The result is a `struct file`.
    Opened,
}

/// What the arguments of a call that copies are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    Nothing,
    /// Descriptor and pointer to an offset of the source, then of the destination; length.
    Ranges,
    /// Destination, source, pointer to an offset of that; length.
    Send,
    /// Source, destination, length.
    Pipes,
    /// Of another row's call, or made by the kernel side.
    Part,
}

/// Every row, libraries first; the position of a row is its number on the wire.
pub fn rows() -> Vec<Row> {
    let kernel = [syscall::ROWS, operation::ROWS, vfs::ROWS, fault::ROWS].concat();
    [libraries::rows(), kernel].concat()
}

/// Are there calls of a layer that are left out unless all are asked for?
pub fn has_secondary(layer: Layer) -> bool {
    layer == Layer::Mpi || rows().iter().any(|row| row.layer == layer && row.secondary)
}

/// The number of a system call on this machine, by name.
pub fn syscall_number(name: &str) -> Option<u32> {
    number::X86_64.iter().find(|(n, _)| *n == name).map(|(_, nr)| *nr)
}

/// The numbers of a system call in 64-bit and x32 tasks.
pub fn long_numbers(name: &str) -> impl Iterator<Item = u32> {
    number::X86_64.iter().chain(number::X32).filter(move |(n, _)| *n == name).map(|(_, nr)| *nr)
}

/// The numbers of a system call in 32-bit tasks, and where these have the arguments.
pub fn short_numbers(name: &str) -> impl Iterator<Item = (u32, Layout)> {
    number::I386.iter().filter(move |(n, ..)| *n == name).map(|(_, nr, layout)| (*nr, *layout))
}

/// The number that the kernel knows an operation of `io_uring` or libaio by.
pub fn opcode(name: &str) -> Option<u8> {
    operation::OPCODES.iter().find(|(n, _)| *n == name).map(|(_, opcode)| *opcode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Role, Src};
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
            let call = row.op.split('.').next().unwrap_or(row.op);
            assert!(syscall_number(call).is_some(), "{} has no number", row.symbol);
        }
    }

    #[test]
    fn every_operation_has_an_opcode_of_its_own() {
        let mut seen = HashSet::new();
        for row in rows().iter().filter(|r| matches!(r.family, Family::Uring | Family::Aio)) {
            let opcode = opcode(row.symbol).unwrap_or_else(|| panic!("{} has no opcode", row.symbol));
            assert!(seen.insert((row.family, opcode)), "{} has another's opcode", row.symbol);
        }
        assert_eq!(seen.len(), operation::OPCODES.len());
    }

    #[test]
    fn opens_have_what_they_open() {
        for row in rows().iter().filter(|r| matches!(r.role(), Role::Open | Role::Reopen)) {
            assert!(row.values().handle != Src::None, "{} opens nothing", row.symbol);
        }
    }
}
