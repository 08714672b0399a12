//! A call with what surrounds it, and what it turned out to be about.

use crate::base::paths::absolute;
use crate::catalog::{Role, Row};
use crate::correlate::calls::stack::Node;
use crate::correlate::resources::files::Files;
use crate::correlate::resources::handles::{Name, New};
use crate::correlate::resources::processes::{Owner, Text};
use crate::event::{Call, TextKind};
use crate::vocabulary::Layer;

pub(super) const O_CLOEXEC: u64 = 0o2_000_000;

/// A call with what surrounds it.
pub struct Seen<'a> {
    pub row: &'a Row,
    /// Which copy of its library.
    pub copy: u16,
    pub call: &'a Call,
    pub owner: Owner,
    pub pid: i32,
    pub span: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub texts: &'a [Text],
    /// The completed calls inside it.
    pub below: &'a [Node],
    /// Of a phase, whose calls are gone: the one file that its system calls named.
    pub phase_file: Option<i32>,
}

impl Seen<'_> {
    pub(super) fn given(&self, what: TextKind) -> Option<&Text> {
        self.texts.iter().find(|t| t.seq == self.call.seq && t.what == what)
    }

    pub fn text(&self, what: TextKind) -> Option<&[u8]> {
        self.given(what).map(|t| t.bytes.as_slice())
    }

    /// An array that goes with the call, from all its pieces.
    pub fn numbers(&self, slot: u8) -> Option<Vec<i64>> {
        self.arrays(slot).reduce(|mut all, piece| {
            all.extend(piece);
            all
        })
    }

    /// The pieces of an array, or short arrays of one slot.
    pub fn arrays(&self, slot: u8) -> impl Iterator<Item = Vec<i64>> {
        self.texts.iter().filter(|t| t.seq == self.call.seq).filter_map(move |text| match text.what {
            TextKind::Ints(s) if s == slot => {
                Some(text.bytes.as_chunks().0.iter().map(|b| i64::from(i32::from_ne_bytes(*b))).collect())
            }
            TextKind::Longs(s) if s == slot => {
                Some(text.bytes.as_chunks().0.iter().map(|b| i64::from_ne_bytes(*b)).collect())
            }
            _ => None,
        })
    }

    /// A path argument as an absolute path, if that is known, and the root it starts from.
    pub(super) fn path(&self, path: TextKind, base: TextKind) -> Option<(u64, Vec<u8>)> {
        let given = self.given(path)?;
        let base = if given.bytes.starts_with(b"/") { b"" } else { self.text(base)? };
        Some((given.root, absolute(base, &given.bytes)))
    }

    pub(super) fn first_path(&self) -> Option<(u64, Vec<u8>)> {
        self.path(TextKind::Path, TextKind::Base)
    }

    /// The name of an object inside a file; that of an attribute follows that of the object which has it.
    pub(super) fn object_path(&self) -> Option<Vec<u8>> {
        let path = self.text(TextKind::Path)?;
        Some(self.text(TextKind::Path2).map_or_else(|| path.to_vec(), |last| [path, b"/", last].concat()))
    }

    /// The one file that all system calls inside this call name. Communication is about none, though its library maps some
    /// to share memory.
    pub(super) fn file_below(&self, files: &Files) -> Option<i32> {
        if self.row.layer == Layer::Mpi {
            return None;
        }
        let below = || self.below.iter().filter(|n| n.span.layer == Layer::Syscall).filter_map(|n| n.span.file_id);
        // What a library asks of the system besides is not what its call is about.
        let besides = |file: &i32| files.role(*file) == "proc";
        let mut first = below().find(|file| !besides(file));
        let only = first.is_none();
        first = first.or_else(|| below().next());
        let Some(first) = first else { return self.phase_file };
        below().all(|file| file == first || (!only && besides(&file))).then_some(first)
    }

    /// A handle of the call's own layer.
    pub fn name(&self, raw: u64) -> Name {
        match self.row.layer {
            _ if self.row.descriptor => (Layer::Syscall, 0, raw),
            Layer::Stdio => (Layer::Stdio, 0, raw), // an address, whichever library made it
            layer => (layer, self.copy, raw),
        }
    }

    /// Will the descriptor that the call made be closed by an exec? For operations of the kernel only the request is known.
    pub(super) fn close_on_exec(&self) -> bool {
        let asked = || self.row.role() == Role::Open && self.call.len.is_some_and(|mode| mode & O_CLOEXEC != 0);
        self.row.layer == Layer::Syscall && self.call.got.map_or_else(asked, |closed| closed != 0)
    }

    pub fn newly(&self, raw: u64) -> New {
        New {
            owner: self.owner,
            pid: self.pid,
            name: self.name(raw),
            mode: None,
            comm_size: None,
            close_on_exec: false,
            file: None,
            span: Some(self.span),
            start_ns: self.start_ns,
            known_from: self.end_ns,
        }
    }

    /// A handle that is used and was not seen opened.
    pub fn older(&self, raw: u64, file: Option<i32>) -> New {
        New { file, span: None, known_from: self.start_ns, ..self.newly(raw) }
    }
}

/// What a call turned out to be about.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub file: Option<i32>,
    pub handle: Option<i32>,
    pub object: Option<i32>,
    /// It made the handle.
    pub opened: bool,
    /// The paths that it names.
    pub paths: [Option<i32>; 2],
    /// Flags of its span.
    pub flags: i32,
    /// What a call of NetCDF-C or `PnetCDF` accesses of a variable.
    pub access: Option<VariableAccess>,
}

/// How a call accesses a variable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VariableAccess {
    /// Bytes in the memory of the program that it was asked to move.
    pub requested: Option<i64>,
    /// Why the bytes of a call that moved data are not known.
    pub unknown_bytes: Option<&'static str>,
    /// The file is open in parallel and the variable in collective mode.
    pub collective: bool,
}
