//! The calls of one rank: values of spans become arguments, handles become variables.

use anyhow::{Result, bail};

use crate::replay_code::calls::{Arg, Does, POSITION, Row, of};
use crate::replay_code::loops::Folder;
use crate::replay_code::program::{Call, Node, Think};
use crate::replay_code::read::{Described, Shared, Slots};
use crate::rows::{Handle, Span};
use crate::vocabulary::{Kind, Layer};
use nix::libc;

/// What `lseek` counts from, in the order of the numbers of Linux.
const WHENCE: [&str; 5] = ["SEEK_SET", "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE"];
/// `MPI_MODE_CREATE` and `MPI_MODE_RDWR` of Open MPI and MPICH.
const MPI_CREATE: i32 = 1;
const MPI_RDWR: i32 = 8;

pub struct Rank {
    folder: Folder,
    pub handles: Slots,
    pub requests: Slots,
}

impl Rank {
    pub fn new(limit: usize) -> Self {
        Self { folder: Folder::new(limit), handles: Slots::default(), requests: Slots::default() }
    }

    pub fn finish(self) -> Vec<Node> {
        self.folder.finish()
    }

    pub fn push(&mut self, call: Call) -> Result<()> {
        self.folder.push(call)
    }

    /// Adds a call; false: there is no row for it, or the trace lacks a value.
    pub fn call(&mut self, span: &Span, think: Think, described: &Described, shared: &mut Shared) -> Result<bool> {
        if waits_for_all(span) {
            for id in self.requests.ids() {
                self.wait(id, span, think)?;
            }
            return Ok(true);
        }
        for (number, row) in of(described.layer, span.op) {
            if row.does != Does::Opens && row.args.contains(&Arg::Handle) {
                self.open_first(span, described, shared)?;
            }
            let Some(args) = self.arguments(span, row, described, shared)? else { continue };
            self.push(Call { row: number, args, think })?;
            if row.does == Does::Closes
                && let Some(id) = span.handle_id
            {
                self.handles.release(id.into());
            }
            if matches!(span.kind, Kind::Read | Kind::Write) {
                shared.buffer = shared.buffer.max(span.req_bytes.unwrap_or(0));
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn wait(&mut self, id: i64, span: &Span, think: Think) -> Result<()> {
        let row = of(Layer::Mpiio, span.op).next();
        if let (Some((number, _)), Some(slot)) = (row, self.requests.release(id)) {
            self.push(Call { row: number, args: vec![slot], think })?;
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        span: &Span,
        row: &Row,
        described: &Described,
        shared: &mut Shared,
    ) -> Result<Option<Vec<i64>>> {
        // The variable of a new handle or request is only taken when nothing else is missing.
        let mut args = Vec::new();
        if row.c.contains("{op}") {
            args.push(row.ops.iter().position(|op| *op == span.op).unwrap_or(0) as i64);
        }
        let mut news = Vec::new();
        for arg in row.args {
            if matches!(arg, Arg::Opened | Arg::Begun) {
                news.push((args.len(), *arg));
                args.push(0);
                continue;
            }
            let Some(value) = self.value(span, *arg, described, shared)? else { return Ok(None) };
            args.push(value);
        }
        for (at, arg) in news {
            let slot = if arg == Arg::Opened {
                span.handle_id.map(|id| self.handles.take(id.into()))
            } else {
                span.async_id.map(|id| self.requests.take(id))
            };
            let Some(slot) = slot else { return Ok(None) };
            args[at] = slot;
        }
        Ok(Some(args))
    }

    fn value(&mut self, span: &Span, arg: Arg, described: &Described, shared: &mut Shared) -> Result<Option<i64>> {
        let handle = span.handle_id.and_then(|id| described.handles.get(&id));
        Ok(match arg {
            Arg::Handle => span.handle_id.and_then(|id| self.handles.get(id.into())),
            Arg::Awaited => span.async_id.and_then(|id| self.requests.release(id)),
            Arg::File => {
                let Some(path) = described.path(span.path_id, span.file_id) else { return Ok(None) };
                let found = found(described, span.file_id, handle, span.op);
                Some(shared.file(path, span.start_ns, found))
            }
            Arg::KnownFile if span.file_id.is_none() => None,
            Arg::KnownFile => {
                let Some(path) = described.path(span.path_id, None) else { return Ok(None) };
                Some(shared.file(path, span.start_ns, described.size(span.file_id)))
            }
            Arg::SecondFile => {
                let Some(path) = described.path(span.path2_id, None) else { return Ok(None) };
                Some(shared.file(path, span.start_ns, None))
            }
            Arg::OpenFlags => Some(open_flags(handle, span.op).into()),
            Arg::Amode => Some(handle.and_then(|handle| handle.mode).unwrap_or(MPI_RDWR).into()),
            Arg::Communicator => Some(communicator(handle, described)?),
            Arg::Hints => Some(handle.and_then(|handle| handle.hints.as_ref()).map_or(0, |hints| shared.hints(hints))),
            Arg::Offset => span.offset,
            Arg::Argument => span.arg,
            Arg::Whence => span.cmd.and_then(|cmd| WHENCE.iter().position(|name| *name == cmd)).map(|at| at as i64),
            Arg::Requested => span.req_bytes.or(span.bytes).map(|bytes| bytes.max(0)),
            Arg::Moved => Some(span.bytes.unwrap_or(-1)),
            Arg::Opened | Arg::Begun | Arg::Object | Arg::Collective | Arg::Selection => None,
        })
    }

    /// Opens what was open when the trace began, or was opened in a way that is not replayed.
    fn open_first(&mut self, span: &Span, described: &Described, shared: &mut Shared) -> Result<()> {
        let Some(id) = span.handle_id.filter(|id| self.handles.get((*id).into()).is_none()) else { return Ok(()) };
        let Some(handle) = described.handles.get(&id).filter(|handle| handle.layer == described.layer) else {
            return Ok(());
        };
        let Some(path) = described.path(None, handle.file_id) else { return Ok(()) };
        let op = if described.layer == Layer::Mpiio { "MPI_File_open" } else { "open" };
        let found = described.size(handle.file_id);
        let file = shared.file(path, span.start_ns, found);
        let slot = self.handles.take(id.into());
        shared.notes.insert(
            "Some handles had no open in the trace, or were copies: the program opens them at first use.".into(),
        );
        let Some((number, row)) = of(described.layer, op).next() else { return Ok(()) };
        let mut args = Vec::new();
        for arg in row.args {
            args.push(match arg {
                Arg::Opened => slot,
                Arg::File => file,
                Arg::OpenFlags => i64::from(open_flags(Some(handle), op) & !(libc::O_EXCL | libc::O_TRUNC)),
                other => self.value(span, *other, described, shared)?.unwrap_or(0),
            });
        }
        self.push(Call { row: number, args, think: Think::default() })?;
        let at = span.offset.filter(|at| *at > 0 && described.layer == Layer::Syscall && is_positional(span.op));
        at.map_or(Ok(()), |at| self.push(Call { row: POSITION, args: vec![slot, at], think: Think::default() }))
    }
}

/// Whether a call uses the position of its descriptor.
fn is_positional(op: &str) -> bool {
    matches!(op, "read" | "write" | "readv" | "writev")
}

fn waits_for_all(span: &Span) -> bool {
    span.layer == Layer::Mpiio && matches!(span.op, "MPI_Waitall" | "MPI_Testall") && span.async_id.is_some()
}

fn open_flags(handle: Option<&Handle>, op: &str) -> i32 {
    match handle.and_then(|handle| handle.mode) {
        Some(mode) => mode,
        None if op == "creat" => libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
        None => libc::O_RDWR,
    }
}

/// The bytes of a file that an open found, where it did not make it.
fn found(described: &Described, file_id: Option<i32>, handle: Option<&Handle>, op: &str) -> Option<i64> {
    let size = described.size(file_id).unwrap_or(0);
    let mode = handle.and_then(|handle| handle.mode).unwrap_or(0);
    let makes = match described.layer {
        Layer::Mpiio => mode & MPI_CREATE != 0,
        _ => op == "creat" || mode & libc::O_CREAT != 0,
    };
    (!makes || size > 0).then_some(size)
}

fn communicator(handle: Option<&Handle>, described: &Described) -> Result<i64> {
    match handle.and_then(|handle| handle.comm_size) {
        Some(1) if described.rank_count() > 1 => Ok(1),
        Some(size) if size as usize != described.rank_count() => bail!(
            "{size} of {} ranks opened a file together, and programs for parts of the ranks cannot be generated at this \
             layer; leave the file out (--file PATTERN), or take --layer posix",
            described.rank_count()
        ),
        _ => Ok(0),
    }
}
