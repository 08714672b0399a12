//! Operations that one call submits and another completes: requests of MPI-IO and `PnetCDF`, split collectives, POSIX AIO.
//!
//! Such an operation is the span of the call that submitted it, written when it is complete: its duration runs to the
//! end of the call that found it complete, its own time is the submitting call's. A system call that a helper thread
//! makes for it (glibc's AIO) is its child.

use crate::HashMap;
use crate::catalog::{self, Async, Family, Status};
use crate::correlate::calls::call::{code, succeeded};
use crate::correlate::calls::stack::Tree;
use crate::correlate::resources::processes::Owner;
use crate::correlate::seen::Seen;
use crate::rows::Span;
use crate::vocabulary::{Kind, Layer, flag};

/// How a library names an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Name {
    /// A request of the process.
    Request(u64),
    /// A request that counts within a handle.
    OfHandle(u64, u64),
    /// The one split operation a handle can have.
    Split(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    owner: Owner,
    family: Family,
    copy: u16,
    name: Name,
}

/// What a helper thread will be seen to do: a system call of this kind on this descriptor, at this offset, this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Job {
    owner: Owner,
    kind: Kind,
    fd: i64,
    offset: i64,
    bytes: i64,
}

/// A span that can be written, and its row of the catalog.
pub struct Done {
    pub span: Box<Span>,
    pub spec: u16,
    /// Aggregate mode: it is wanted by itself.
    pub wanted: bool,
    /// The tree it is the root of in its own thread, which block requests are not assigned to yet.
    pub tree: Option<Tree>,
}

/// An operation that is not written yet.
struct Operation {
    owner: Owner,
    kind: Kind,
    asked: Option<i64>,
    layer: Layer,
    /// Requests that are still to complete: a list call submits several.
    parts: usize,
    /// Bytes moved so far, from completing calls; none once one of them had no count.
    moved: Option<i64>,
    failed: bool,
    /// When the last part was found complete.
    end_ns: Option<i64>,
    /// The span, once its tree was complete.
    span: Option<Done>,
    /// What helper threads did for it before that.
    children: Vec<Done>,
}

/// What a call did to operations.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The operation it submitted, or completed, or asked about: the first of them.
    pub id: Option<i64>,
    /// It submitted one.
    pub submitted: bool,
    /// The layer of the operations it asked about.
    pub layer: Option<Layer>,
    /// It submitted one that there was no room for.
    pub lost: bool,
}

/// Every operation that is not complete, or not written.
#[derive(Default)]
pub struct Asynchronous {
    open: HashMap<Key, i64>,
    operations: HashMap<i64, Operation>,
    /// What helper threads will do, and for which calls.
    jobs: HashMap<Job, Vec<i64>>,
    /// What they did for calls that had not returned yet.
    early: HashMap<i64, Vec<Done>>,
    /// What they did for calls that then submitted nothing.
    refused: Vec<Done>,
}

/// Operations that are held back at most: each takes about 0.5 kB.
const MAX_OPERATIONS: usize = 1 << 20;

/// The requests that `PnetCDF` takes for all, all reads, all writes of a file (`NC_REQ_ALL` and its kin, pnetcdf.h).
const ALL_REQUESTS: i64 = -1;
const ALL_READS: i64 = -2;
const ALL_WRITES: i64 = -3;
/// A request that stands for nothing (`NC_REQ_NULL`, pnetcdf.h).
const NO_REQUEST: i64 = -1;
/// In names of requests that the program did not ask for: a library has `int`s.
const NAMELESS: u64 = 1 << 63;
/// Errors of a wait that did not begin (pnetcdf.h): `NC_EBADID`, `NC_EINDEFINE`, `NC_ENOTINDEP`, `NC_EINDEP`.
const NOT_WAITED: [i32; 4] = [-33, -39, -202, -203];
/// `struct aiocb` of glibc on 64-bit machines, as 64-bit integers: `aio_fildes` and `aio_lio_opcode`, `aio_nbytes`, `aio_offset`.
const AIOCB_LEN: usize = 17;
const AIOCB_NBYTES: usize = 3;
const AIOCB_OFFSET: usize = 16;
/// `aio_lio_opcode` (aio.h).
const LIO_READ: i64 = 0;
const LIO_WRITE: i64 = 1;

impl Asynchronous {
    /// A call ended that asked for so many bytes. Operations that it completed, and whose spans waited for that, go to
    /// `out`.
    pub fn call(&mut self, seen: &Seen, asked: Option<i64>, out: &mut Vec<Done>) -> Effect {
        let effect = self.effect(seen, asked, out);
        out.append(&mut self.refused);
        effect
    }

    fn effect(&mut self, seen: &Seen, asked: Option<i64>, out: &mut Vec<Done>) -> Effect {
        let key = |name| Key { owner: seen.owner, family: seen.row.family, copy: seen.copy, name };
        let (handle, got, ok) = (seen.call.handle, seen.call.got, succeeded(seen.call));
        match seen.row.asynchronous() {
            Async::No => Effect::default(),
            Async::Submit => {
                self.submit(seen, asked, got.filter(|_| ok).map(|r| key(Name::Request(r))).into_iter().collect())
            }
            Async::SubmitOf => {
                // A request that the program does not want to know is named by its call.
                let request = got.unwrap_or(NAMELESS | seen.span as u64);
                let request = Some(request).filter(|r| ok && *r as i64 != NO_REQUEST);
                let name = request.zip(handle).map(|(r, h)| key(Name::OfHandle(h, r)));
                self.submit(seen, asked, name.into_iter().collect())
            }
            Async::Begin => {
                self.submit(seen, asked, handle.filter(|_| ok).map(|h| key(Name::Split(h))).into_iter().collect())
            }
            Async::SubmitList => {
                let names = seen.numbers(0).unwrap_or_default();
                let keys = names.iter().filter(|n| ok && **n != 0).map(|n| key(Name::Request(*n as u64))).collect();
                self.submit(seen, asked, keys)
            }
            Async::End => self.complete(seen, handle.map(|h| (0, key(Name::Split(h)))).into_iter().collect(), out),
            Async::Wait => {
                let keys: Vec<Key> = before(seen).into_iter().map(|r| key(Name::Request(r))).collect();
                if ok { self.complete(seen, keys.into_iter().enumerate().collect(), out) } else { self.ask(&keys) }
            }
            Async::Test => {
                let (before, after) = (before(seen), after(seen));
                let gone = |i: usize| ok && after.get(i).is_some_and(|a| *a != before[i]);
                let keys = before.iter().enumerate().map(|(i, r)| (i, key(Name::Request(*r))));
                let (gone, left): (Vec<_>, Vec<_>) = keys.partition(|(i, _)| gone(*i));
                let done = self.complete(seen, gone, out);
                if done.id.is_some() { done } else { self.ask(&left.into_iter().map(|(_, k)| k).collect::<Vec<_>>()) }
            }
            Async::Ask => self.ask(&before(seen).into_iter().map(|r| key(Name::Request(r))).collect::<Vec<_>>()),
            Async::Free => {
                let keys: Vec<Key> = before(seen).into_iter().map(|r| key(Name::Request(r))).collect();
                let asked = self.ask(&keys);
                for key in keys.iter().filter(|_| ok) {
                    self.abandon(key, out);
                }
                asked
            }
            Async::WaitIds => {
                let keys = self.ids(seen, key);
                // What was waited for is over even when the call reports an error of a request.
                let over = ok || !seen.call.unfinished && !NOT_WAITED.contains(&code(seen.row, seen.call.status));
                if over { self.complete(seen, keys.into_iter().enumerate().collect(), out) } else { self.ask(&keys) }
            }
            Async::CancelIds | Async::CancelAll => {
                let keys = self.ids(seen, key);
                let asked = self.ask(&keys);
                let ok = ok || seen.row.asynchronous() == Async::CancelAll;
                for key in keys.iter().filter(|_| ok) {
                    self.cancel(key, seen.end_ns, out);
                }
                asked
            }
            Async::Return => self.complete(seen, handle.map(|r| (0, key(Name::Request(r)))).into_iter().collect(), out),
        }
    }

    /// The requests that a call on a file names by a list (slot 0), or by how many there are (`len`).
    fn ids(&self, seen: &Seen, key: impl Fn(Name) -> Key) -> Vec<Key> {
        let Some(handle) = seen.call.handle else { return Vec::new() };
        let count = if seen.row.asynchronous() == Async::CancelAll { Some(ALL_REQUESTS as u64) } else { seen.call.len };
        let Some(count) = count else { return Vec::new() };
        let wanted = match count as i64 {
            ALL_REQUESTS => [Some(Kind::Read), Some(Kind::Write)],
            ALL_READS => [Some(Kind::Read), None],
            ALL_WRITES => [Some(Kind::Write), None],
            _ => {
                let ids = seen.numbers(0).unwrap_or_default();
                return ids.into_iter().map(|id| key(Name::OfHandle(handle, id as u64))).collect();
            }
        };
        let like = key(Name::OfHandle(handle, 0));
        let of_file = |k: &Key| {
            let same = matches!(k.name, Name::OfHandle(h, _) if h == handle);
            same && (k.owner, k.family, k.copy) == (like.owner, like.family, like.copy)
        };
        let kind = |id: &i64| self.operations.get(id).map(|o| o.kind);
        let found = self.open.iter().filter(|(k, id)| of_file(k) && wanted.contains(&kind(id)));
        let mut keys: Vec<Key> = found.map(|(k, _)| *k).collect();
        keys.sort_unstable();
        keys
    }

    fn submit(&mut self, seen: &Seen, asked: Option<i64>, keys: Vec<Key>) -> Effect {
        // What helpers did already.
        let children = self.early.remove(&seen.span).unwrap_or_default();
        if keys.is_empty() || self.operations.len() >= MAX_OPERATIONS {
            self.refused.extend(children);
            self.jobs.retain(|_, ids| {
                ids.retain(|id| *id != seen.span);
                !ids.is_empty()
            });
            return Effect { lost: !keys.is_empty(), ..Effect::default() };
        }
        let operation = Operation {
            owner: seen.owner,
            kind: seen.row.kind,
            layer: seen.row.layer,
            asked,
            parts: keys.len(),
            moved: Some(0),
            failed: false,
            end_ns: None,
            span: None,
            children,
        };
        self.operations.insert(seen.span, operation);
        for key in keys {
            // Whoever had the name before was completed by something that was not seen.
            self.open.insert(key, seen.span);
        }
        Effect { id: Some(seen.span), submitted: true, ..Effect::default() }
    }

    /// A call enters that hands work to a helper thread: `blocks` are its `struct aiocb`s, one after the other.
    ///
    /// The helper may be done before the call returns.
    pub fn announce(&mut self, owner: Owner, id: i64, slot: u8, blocks: &[i64]) {
        for job in blocks.chunks_exact(AIOCB_LEN).filter_map(|block| job(owner, slot, block)) {
            self.jobs.entry(job).or_default().push(id);
        }
    }

    fn ask(&self, keys: &[Key]) -> Effect {
        let id = keys.iter().find_map(|k| self.open.get(k)).copied();
        Effect { id, layer: id.and_then(|id| Some(self.operations.get(&id)?.layer)), ..Effect::default() }
    }

    /// Completes operations: their keys, and where each stands among the call's requests.
    fn complete(&mut self, seen: &Seen, keys: Vec<(usize, Key)>, out: &mut Vec<Done>) -> Effect {
        let asked = self.ask(&keys.iter().map(|(_, key)| *key).collect::<Vec<_>>());
        let statuses = seen.row.statuses.zip(seen.numbers(2));
        let by_id = seen.numbers(1).unwrap_or_default();
        let completed = match seen.row.asynchronous() {
            Async::WaitIds if succeeded(seen.call) => Moved::All,
            Async::WaitIds => Moved::Failed,
            // A call that completes one operation may return how much it moved.
            _ if keys.len() == 1 => moved(seen),
            _ => Moved::NotTold,
        };
        for (i, key) in keys {
            let Some(id) = self.open.remove(&key) else { continue };
            let Some(operation) = self.operations.get_mut(&id) else { continue };
            operation.parts = operation.parts.saturating_sub(1);
            let of_its_own = match (seen.row.asynchronous(), by_id.get(i)) {
                (Async::WaitIds, Some(status)) if *status != 0 => Some(Moved::Failed),
                _ => statuses.as_ref().and_then(|(layout, ints)| count(*layout, ints, i)).map(Moved::Bytes),
            };
            match of_its_own.unwrap_or(completed) {
                Moved::All => operation.moved = operation.asked,
                Moved::Bytes(bytes) => operation.moved = operation.moved.map(|sum| sum.saturating_add(bytes)),
                Moved::NotTold => operation.moved = None,
                Moved::Failed => (operation.moved, operation.failed) = (None, true),
            }
            if operation.parts == 0 {
                operation.end_ns = Some(seen.end_ns);
                self.write(id, out);
            }
        }
        asked
    }

    fn cancel(&mut self, key: &Key, end_ns: i64, out: &mut Vec<Done>) {
        let Some(id) = self.open.remove(key) else { return };
        if let Some(operation) = self.operations.get_mut(&id) {
            (operation.failed, operation.moved, operation.end_ns) = (true, None, Some(end_ns));
            self.write(id, out);
        }
    }

    /// Its completion will not be seen.
    fn abandon(&mut self, key: &Key, out: &mut Vec<Done>) {
        let Some(id) = self.open.remove(key) else { return };
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.parts = 0;
            operation.moved = None;
            self.write(id, out);
        }
    }

    /// The span of a submitting call is complete, and waits for the operation.
    pub fn submitted(&mut self, done: Done, out: &mut Vec<Done>) {
        let id = done.span.span_id;
        let Some(operation) = self.operations.get_mut(&id) else { return out.push(done) };
        for mut child in operation.children.drain(..) {
            below(&mut child.span, &done.span);
            out.push(child);
        }
        operation.span = Some(done);
        if operation.end_ns.is_some() || operation.parts == 0 {
            self.write(id, out);
        }
    }

    /// Writes an operation if both its ends are known.
    fn write(&mut self, id: i64, out: &mut Vec<Done>) {
        if self.operations.get(&id).is_some_and(|o| o.span.is_some())
            && let Some(operation) = self.operations.remove(&id)
        {
            out.extend(finished(operation));
        }
    }

    /// Are there operations that helper threads make system calls for?
    pub fn awaits_help(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Is this the system call that a helper thread makes for an operation? Gives it back if it is not; it is written, as
    /// the operation's child, when that is known.
    pub fn helped(&mut self, mut done: Done, owner: Owner, fd: Option<i64>, out: &mut Vec<Done>) -> Option<Done> {
        let span = &mut done.span;
        let sync = span.kind == Kind::Sync;
        let Some(fd) = fd else { return Some(done) };
        let job = Job {
            owner,
            kind: span.kind,
            fd,
            offset: span.offset.filter(|_| !sync).unwrap_or(0),
            bytes: span.req_bytes.filter(|_| !sync).unwrap_or(0),
        };
        let Some(waiting) = self.jobs.get_mut(&job) else { return Some(done) };
        let id = waiting.remove(0);
        if waiting.is_empty() {
            self.jobs.remove(&job);
        }
        span.async_id = Some(id);
        span.flags |= flag::INFERRED_PARENT;
        let Some(operation) = self.operations.get_mut(&id) else {
            self.early.entry(id).or_default().push(done);
            return None;
        };
        match &operation.span {
            Some(parent) => {
                below(span, &parent.span);
                out.push(done);
            }
            None => operation.children.push(done),
        }
        None
    }

    /// A process is gone: so are its operations.
    pub fn gone(&mut self, owner: Owner, out: &mut Vec<Done>) {
        self.end(|operation| operation.owner == owner, out);
        self.open.retain(|key, _| key.owner != owner);
        self.jobs.retain(|job, _| job.owner != owner);
    }

    /// The trace ends.
    pub fn finish(&mut self, out: &mut Vec<Done>) {
        self.end(|_| true, out);
        let mut early: Vec<Done> = self.early.drain().flat_map(|(_, done)| done).collect();
        early.sort_unstable_by_key(|done| done.span.span_id);
        out.append(&mut early);
    }

    fn end(&mut self, which: impl Fn(&Operation) -> bool, out: &mut Vec<Done>) {
        let mut ids: Vec<i64> = self.operations.iter().filter(|(_, o)| which(o)).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        for id in ids {
            if let Some(operation) = self.operations.remove(&id) {
                out.extend(finished(operation));
            }
        }
    }
}

/// A span of another thread becomes a child of an operation.
fn below(span: &mut Span, parent: &Span) {
    span.parent_id = Some(parent.span_id);
    span.root_id = parent.root_id;
    span.depth = parent.depth.saturating_add(1);
}

fn finished(operation: Operation) -> Vec<Done> {
    let mut all = operation.children;
    let Some(mut done) = operation.span else { return all };
    for child in &mut all {
        below(&mut child.span, &done.span);
    }
    let span = &mut done.span;
    match operation.end_ns {
        Some(end) => {
            span.dur_ns = span.dur_ns.max(end.saturating_sub(span.start_ns));
            // Hooks were in the call that submitted it.
            span.probe_ns = None;
            // Writes have no short result without an error (MPI-4.0, 14.4); for a read the count must be known.
            span.bytes = match operation.moved {
                Some(moved) => Some(moved),
                None if operation.kind == Kind::Write && !operation.failed => operation.asked,
                None => None,
            };
            if operation.failed {
                span.errno = -1;
            }
        }
        None => span.flags |= flag::UNFINISHED,
    }
    all.push(done);
    all
}

/// What the operation moved that a call completed.
#[derive(Clone, Copy)]
enum Moved {
    /// What was asked for.
    All,
    Bytes(i64),
    NotTold,
    Failed,
}

/// The count in the status of a request.
fn count(layout: Status, ints: &[i64], request: usize) -> Option<i64> {
    let at = request * usize::from(layout.ints) + usize::from(layout.at);
    let (low, high) = (*ints.get(at)? as u32, *ints.get(at + 1)? as u32);
    Some(i64::from(low) | i64::from(if layout.split { high >> 1 } else { high }) << 32)
}

fn moved(seen: &Seen) -> Moved {
    match (seen.row.asynchronous(), seen.call.len) {
        (Async::Return, _) if !succeeded(seen.call) => Moved::Failed,
        (Async::Return, _) => seen.call.got.map_or(Moved::NotTold, |got| Moved::Bytes(got as i64)),
        (Async::Wait | Async::Test | Async::End, Some(len)) => Moved::Bytes(len as i64),
        _ => Moved::NotTold,
    }
}

/// The requests that a call was given, and the values that replaced them when it returned.
fn before(seen: &Seen) -> Vec<u64> {
    seen.numbers(0)
        .map_or_else(|| seen.call.handle.into_iter().collect(), |n| n.into_iter().map(|v| v as u64).collect())
}

fn after(seen: &Seen) -> Vec<u64> {
    seen.numbers(1).map_or_else(|| seen.call.got.into_iter().collect(), |n| n.into_iter().map(|v| v as u64).collect())
}

fn job(owner: Owner, slot: u8, block: &[i64]) -> Option<Job> {
    let kind = match (slot, block.first()? >> 32) {
        (catalog::JOB_SYNC, _) => Kind::Sync,
        (catalog::JOB_READ, _) | (catalog::JOB_LIST, LIO_READ) => Kind::Read,
        (catalog::JOB_WRITE, _) | (catalog::JOB_LIST, LIO_WRITE) => Kind::Write,
        _ => return None,
    };
    let fd = i64::from(*block.first()? as i32);
    let (offset, bytes) =
        if kind == Kind::Sync { (0, 0) } else { (*block.get(AIOCB_OFFSET)?, *block.get(AIOCB_NBYTES)?) };
    Some(Job { owner, kind, fd, offset, bytes })
}

#[cfg(test)]
mod tests;
