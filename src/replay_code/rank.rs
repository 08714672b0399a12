//! The calls of one rank: values of spans become arguments, handles become variables.

use anyhow::{Result, bail};

use crate::HashMap;
use crate::replay_code::calls::{Arg, Does, POSITION, Row, element_type, function, of};
use crate::replay_code::described::{Described, has_objects};
use crate::replay_code::loops::Folder;
use crate::replay_code::program::{Call, Node, Object, Think};
use crate::replay_code::select;
use crate::replay_code::shared::{Shared, Slots};
use crate::rows::{self, Handle, Span};
use crate::vocabulary::{Kind, Layer, flag};
use nix::libc;

/// What `lseek` counts from, in the order of the numbers of Linux.
pub(super) const WHENCE: [&str; 5] = ["SEEK_SET", "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE"];
/// `MPI_MODE_CREATE` and `MPI_MODE_RDWR` of Open MPI and MPICH.
const MPI_CREATE: i32 = 1;
const MPI_RDWR: i32 = 8;

pub struct Rank {
    number: i64,
    folder: Folder,
    /// Transfers so far, by object and kind: where it is not known what they are of, ranks take turns.
    turns: HashMap<(i32, bool), i64>,
    pub handles: Slots,
    pub requests: Slots,
}

impl Rank {
    pub fn new(number: usize, limit: usize) -> Self {
        Self {
            number: number as i64,
            folder: Folder::new(limit),
            turns: HashMap::default(),
            handles: Slots::default(),
            requests: Slots::default(),
        }
    }

    pub fn finish(self) -> Vec<Node> {
        self.folder.finish()
    }

    pub fn push(&mut self, call: Call) -> Result<()> {
        self.folder.push(call)
    }

    /// Adds a call; false: there is no row for it, or the trace lacks a value.
    /// `below`: the offset of its data in the file, where a call below shows it.
    pub fn call(
        &mut self,
        span: &Span,
        (think, below): (Think, Option<i64>),
        described: &Described,
        shared: &mut Shared,
    ) -> Result<bool> {
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
            if row.does == Does::Closes && is_one_of_several(span, described) {
                continue;
            }
            let Some(args) = self.arguments((span, below), row, described, shared)? else { continue };
            let function = function(number, shared.op(span.op));
            self.push(Call { function, args, think })?;
            if row.does == Does::Closes
                && let Some(id) = span.handle_id
            {
                self.handles.release(id.into());
            }
            if matches!(span.kind, Kind::Read | Kind::Write) {
                let moved = described.object(span.object_id).and_then(|object| transferred(object, span));
                let bytes = moved.map_or(0, |(count, size)| count.saturating_mul(size));
                shared.buffer = shared.buffer.max(span.req_bytes.unwrap_or(0)).max(bytes);
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn wait(&mut self, id: i64, span: &Span, think: Think) -> Result<()> {
        let row = of(Layer::Mpiio, span.op).next();
        if let (Some((number, _)), Some(slot)) = (row, self.requests.release(id)) {
            self.push(Call { function: function(number, 0), args: vec![slot], think })?;
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        (span, below): (&Span, Option<i64>),
        row: &Row,
        described: &Described,
        shared: &mut Shared,
    ) -> Result<Option<Vec<i64>>> {
        // The variable of a new handle or request is only taken when nothing else is missing.
        let mut args = Vec::new();
        let mut news = Vec::new();
        for arg in row.args {
            if matches!(arg, Arg::Opened | Arg::Begun) {
                news.push((args.len(), *arg));
                args.push(0);
                continue;
            }
            if *arg == Arg::Selection {
                let Some((start, count)) = self.selection(span, below, described, shared) else { return Ok(None) };
                args.extend(start.into_iter().chain(count));
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
            Arg::Mode => Some(handle.and_then(|handle| handle.mode).unwrap_or(0).into()),
            Arg::Object => {
                let object = described.object(span.object_id);
                object.and_then(|object| object_number(object, span, described, shared))
            }
            Arg::Container => described.container(span.handle_id).and_then(|id| self.handles.get(id.into())),
            Arg::Elements | Arg::ElementSize => {
                let moved = described.object(span.object_id).and_then(|object| transferred(object, span));
                moved.map(|(count, size)| if arg == Arg::Elements { count } else { size })
            }
            Arg::Type => element_type(span.op).map(|(_, number)| number),
            Arg::Collective => Some(i64::from(span.flags & flag::COLLECTIVE != 0)),
            Arg::Communicator => Some(communicator(described.mpiio(span.handle_id), described, shared)?),
            Arg::Hints => {
                let handle = described.mpiio(span.handle_id);
                Some(handle.and_then(|handle| handle.hints.as_ref()).map_or(0, |hints| shared.hints(hints)))
            }
            Arg::Offset => span.offset,
            Arg::Argument => span.arg,
            Arg::Whence => span.cmd.and_then(|cmd| WHENCE.iter().position(|name| *name == cmd)).map(|at| at as i64),
            Arg::Requested => span.req_bytes.or(span.bytes).map(|bytes| bytes.max(0)),
            Arg::Moved => Some(span.bytes.unwrap_or(-1)),
            Arg::Opened | Arg::Begun | Arg::Selection => None,
        })
    }

    fn selection(
        &mut self,
        span: &Span,
        below: Option<i64>,
        described: &Described,
        shared: &mut Shared,
    ) -> Option<(Vec<i64>, Vec<i64>)> {
        let object = described.object(span.object_id)?;
        let dims = object.dims.as_deref()?;
        let (count, _) = transferred(object, span)?;
        let turn = self.turns.entry((object.object_id, span.kind == Kind::Write)).or_default();
        let total = select::total(dims);
        let known = described.position(object, below).filter(|at| at.saturating_add(count) <= total);
        if known.is_none() && count < total {
            let note = "Where in a dataset a transfer is, is not in the trace where no call below shows it (collective, chunked): \
                        the ranks take turns there.";
            shared.notes.insert(note.into());
        }
        let ranks = (self.number, described.rank_count() as i64);
        let at = known.unwrap_or_else(|| select::in_turns(*turn, ranks, count, total));
        *turn += 1;
        select::block(dims, at, count)
    }

    /// Opens what was open when the trace began, or was opened in a way that is not replayed.
    fn open_first(&mut self, span: &Span, described: &Described, shared: &mut Shared) -> Result<()> {
        let Some(id) = span.handle_id.filter(|id| self.handles.get((*id).into()).is_none()) else { return Ok(()) };
        let Some(handle) = described.handles.get(&id).filter(|handle| handle.layer == described.layer) else {
            return Ok(());
        };
        let Some(path) = described.path(None, handle.file_id) else { return Ok(()) };
        let op = match described.layer {
            Layer::Mpiio => "MPI_File_open",
            Layer::Syscall => "open",
            _ => return Ok(()),
        };
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
        self.push(Call { function: function(number, 0), args, think: Think::default() })?;
        let at = span.offset.filter(|at| *at > 0 && described.layer == Layer::Syscall && is_positional(span.op));
        at.map_or(Ok(()), |at| {
            self.push(Call { function: function(POSITION, 0), args: vec![slot, at], think: Think::default() })
        })
    }
}

/// Whether a call gives up one of several references to a handle (`H5Iget_file_id` makes them), and does not close it.
fn is_one_of_several(span: &Span, described: &Described) -> bool {
    let handle = span.handle_id.and_then(|id| described.handles.get(&id));
    let closed_by = handle.and_then(|handle| handle.close_span_id);
    has_objects(described.layer) && closed_by.is_some_and(|id| id != span.span_id)
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
        Layer::Syscall => op == "creat" || mode & libc::O_CREAT != 0,
        _ => op.contains("create"),
    };
    (!makes || size > 0 && !has_objects(described.layer)).then_some(size)
}

fn communicator(handle: Option<&Handle>, described: &Described, shared: &mut Shared) -> Result<i64> {
    let all = described.rank_count();
    match handle.and_then(|handle| handle.comm_size) {
        Some(1) if all > 1 => Ok(1),
        Some(size) if size as usize != all => {
            let ranks = handle.and_then(|handle| handle.comm_ranks.as_deref()).and_then(|ranks| ranges(ranks, all));
            match ranks {
                Some(ranks) => Ok(shared.communicator(&ranks)),
                None => bail!(
                    "{size} of {all} ranks opened a file together, and the trace has not which (Open MPI shows it); leave \
                     the file out (--file PATTERN), or take --layer posix"
                ),
            }
        }
        None if has_objects(described.layer) => Ok(-1),
        _ => Ok(0),
    }
}

/// Ranks written as `0-3,8-14:2,20`, as ranges of first, last and distance.
fn ranges(text: &str, ranks: usize) -> Option<Vec<[i64; 3]>> {
    let range = |part: &str| {
        let (range, distance) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some([first.parse().ok()?, last.parse().ok()?, distance.parse().ok()?])
    };
    let fits =
        |[first, last, distance]: &[i64; 3]| 0 <= *first && first <= last && *last < ranks as i64 && *distance > 0;
    text.split(',').map(|part| range(part).filter(|range| fits(range))).collect()
}

/// How many elements a call moves, and their size in memory.
fn transferred(object: &rows::Object, span: &Span) -> Option<(i64, i64)> {
    let bytes = span.bytes.or(span.req_bytes)?;
    if matches!(span.layer, Layer::Netcdf | Layer::Pnetcdf) {
        // The type in memory is in the function's name.
        let (size, _) = element_type(span.op)?;
        return bytes.checked_div(size).filter(|count| *count >= 0).map(|count| (count, size));
    }
    let size = i64::from(object.elem_size?);
    let (count, in_memory) = select::elements(bytes, size, object.dims.as_deref()?)?;
    // HDF5 converts numbers, and no other types that the program could have.
    let converts = [size, in_memory].iter().all(|size| matches!(size, 1 | 2 | 4 | 8));
    Some((count, if converts { in_memory } else { size }))
}

/// The number of an object of the trace in the generated program.
fn object_number(object: &rows::Object, span: &Span, described: &Described, shared: &mut Shared) -> Option<i64> {
    let path = described.path(None, object.file_id.or(span.file_id))?;
    let file = shared.file(path, i64::MAX, None);
    let (path, attribute) = match object.name.rsplit_once('/') {
        Some((of, name)) if object.class == "attribute" => (of.to_owned(), Some(name.to_owned())),
        _ => (object.name.clone(), None),
    };
    let is_group = object.class == "group";
    let known_by_call = attribute.is_some() && described.layer != Layer::Hdf5;
    if !is_group && !known_by_call && (object.dims.is_none() || object.elem_size.is_none()) {
        return None;
    }
    let list = |list: &Option<Vec<i64>>| list.clone().unwrap_or_default();
    let number = shared.object(&Object {
        file,
        path,
        attribute,
        is_group,
        dims: list(&object.dims),
        chunk: list(&object.chunk),
        size: object.elem_size.unwrap_or(0).into(),
        filters: object.filters.clone().unwrap_or_default(),
    });
    if span.op.split('_').any(|part| part == "text") {
        shared.text.insert(number);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_communicator() {
        assert_eq!(ranges("0-3,8-14:2,20", 32), Some(vec![[0, 3, 1], [8, 14, 2], [20, 20, 1]]));
        assert_eq!(ranges("0-3", 3), None);
        assert_eq!(ranges("0-x", 3), None);
    }
}
