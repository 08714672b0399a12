//! A call from its record to its row, in stages: what it is about, what it completes or submits, what it waited for; and
//! then its position among the calls of its thread that wait for the end of an enclosing one.

use super::summing::{add_estimates, current, owned};
use super::{Correlator, relative};
use crate::catalog::{self, Copies, Family, Role};
use crate::correlate::aggregate::demoted::{self, Demoted, Estimate, OnStream};
use crate::correlate::aggregate::paused::Paused;
use crate::correlate::aggregate::sums::{Opened, Subject, Sums};
use crate::correlate::calls::asynchronous::Effect;
use crate::correlate::calls::cache;
use crate::correlate::calls::call::{self, CallColumns};
use crate::correlate::calls::operations::{self, Over};
use crate::correlate::calls::phases::Open;
use crate::correlate::calls::stack::{Above, Node, Stack};
use crate::correlate::calls::waiting::{self, Parts, Surroundings};
use crate::correlate::devices::block::Blocks;
use crate::correlate::devices::rpc::Ended;
use crate::correlate::libraries::collectives::Caller;
use crate::correlate::libraries::hdf5;
use crate::correlate::resources::files::Files;
use crate::correlate::resources::processes::{Owned, Owner, ThreadState};
use crate::correlate::seen::{Found, Seen};
use crate::correlate::tracker::ResourceTracker;
use crate::event::{Cached, Call, DeferredCall, Measured, Operation, Wanted};
use crate::rows::{Row, Span, span_id};
use crate::vocabulary::{Kind, Layer, flag};

/// System calls that submit operations of the kernel.
const SUBMIT: [&str; 2] = ["io_uring_enter", "io_submit"];

/// A call on its way.
struct Taken<'a> {
    call: &'a Call,
    /// It is in the sums.
    deferred: Option<&'a DeferredCall>,
    /// What is around it is written.
    late: bool,
    /// Row of the catalog, and which copy of the library.
    row: usize,
    copy: u16,
    start_ns: i64,
    dur_ns: i64,
}

impl Taken<'_> {
    const fn id(&self) -> i64 {
        span_id(self.call.thread, self.call.seq)
    }

    const fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.dur_ns)
    }

    const fn during(&self) -> [u64; 2] {
        during(self.call)
    }

    /// What it changed was changed again since: it only asks.
    fn past(&self) -> bool {
        self.deferred.is_some_and(DeferredCall::past)
    }
}

impl Correlator {
    /// A call is over; `deferred`: it is in the sums.
    pub(super) fn call(&mut self, call: &Call, deferred: Option<&DeferredCall>, late: bool, out: &mut Vec<Row>) {
        let Some((row, copy)) = self.row_of(call.spec) else {
            self.losses.add("spec_unknown", None, 1);
            return;
        };
        // The end of a phase is in time when it comes late: the events that follow on its thread are sent after it.
        let late = late && !self.processes.threads.get(&call.thread).is_some_and(|t| t.phases.contains(call.seq));
        if late {
            // What is not a call serves as well when it is late.
            self.losses.add("late", Some(self.specs[row].layer), 1);
        } else {
            self.close_phases(call.thread, call.seq, call.depth, out);
        }
        let dur_ns = i64::try_from(call.dur).unwrap_or(i64::MAX);
        let taken = Taken { call, deferred, late, row, copy, start_ns: self.since_t0(call.start), dur_ns };
        let (node, from) = self.made(&taken, out);
        self.answered(&taken, &node, out);
        self.link(&taken, node, from, out);
    }

    /// The row of a call, from what it is about and what it waited for, and the first of the completed calls of its thread
    /// that ran inside it.
    fn made(&mut self, taken: &Taken<'_>, out: &mut Vec<Row>) -> (Node, usize) {
        let Taken { call, deferred, late, row, start_ns, dur_ns, .. } = *taken;
        let spec = &self.specs[row];
        let thread = self.processes.threads.entry(call.thread).or_insert_with(|| ThreadState::unknown(call.thread));
        let from = if late { thread.stack.len() } else { thread.stack.inside(call.seq, start_ns) };
        let mut columns = call::columns(spec, call);
        let asks = asked(spec, taken);
        let (seen_row, seen_call) = asks.as_ref().map_or((spec, call), |(row, call)| (row, call));
        let phase = thread.phases.innermost().filter(|open| open.enter.seq == call.seq);
        let seen = Seen {
            row: seen_row,
            copy: taken.copy,
            call: seen_call,
            owner: thread.owner,
            pid: thread.pid,
            span: taken.id(),
            start_ns,
            end_ns: taken.end_ns(),
            texts: &thread.texts,
            below: thread.stack.below(from),
            phase_file: phase.and_then(Open::file),
        };
        let found = self.resources.call(&seen);
        handle_changed(self.sums.as_mut(), &self.resources, &seen, &found, spec.role());
        if let Some(access) = found.access {
            columns.apply_access(spec, call, access.requested, access.collective);
        }
        if let Some(reason) = unknown(spec, call, &columns, &found) {
            self.unknown.add(spec.layer, reason);
        }
        let caller = Caller { rank: thread.rank, run: &thread.run };
        // Their order distinguishes them, and it is not known where some are only summed up.
        let coll_id = match deferred {
            None => self.collectives.call(&seen, found.handle, &self.resources.handles, &caller),
            Some(_) => None,
        };
        communicated(&mut self.paused, spec, taken, owned(thread));
        let on =
            Stream { spec, number: row as u16, call, process: owned(thread), bytes: columns.bytes, past: taken.past() };
        if let Some((subject, estimates)) = on.moved(&mut self.demoted, &self.resources, &seen, &found) {
            let sums = self.sums.as_mut().unwrap_or(&mut self.estimates);
            add_estimates(&mut self.rollups, sums, &self.specs, self.t0, (call.start, &subject), &estimates);
        }
        let effect = self.asynchronous.call(&seen, columns.req_bytes, &mut self.written);
        let first = self.operations.first((call.thread, call.seq)).filter(|_| spec.kind == Kind::Wait);
        self.losses.add("asynchronous", Some(spec.layer), usize::from(effect.lost));
        if effect.submitted || SUBMIT.contains(&spec.symbol) {
            self.cover.begins(call.thread, spec.layer);
        }
        if matches!(spec.layer, Layer::Syscall | Layer::Vfs) && !taken.past() {
            wrote(&mut self.blocks, &self.resources.files, (spec, call), (found.file, columns.bytes), call.seq);
        }
        let cached = thread.cached.take().filter(|(seq, _)| *seq == call.seq).map(|(_, cached)| cached);
        let cached = deferred.map(|k| k.cached).or(cached);
        let cache = cache::columns(self.measured, spec, call, columns.bytes, cached);
        let on = (&mut self.blocks, &self.resources.files, self.measured);
        let waits = waited(on, (spec, taken), found.file, cached, out);
        let cut = thread.texts.extract_if(.., |t| t.seq == call.seq).fold(false, |cut, t| cut | t.cut);
        let mut span = Box::new(thread.span(spec, taken.id(), call.cpu, (start_ns, dur_ns)));
        fill(&mut span, &columns, &found, &waits);
        // Waiting for file I/O is file I/O.
        span.layer = effect.layer.unwrap_or(spec.layer);
        (span.miss_bytes, span.ahead_bytes) = (cache.miss, cache.ahead);
        (span.async_id, span.coll_id) = (effect.id.or(first), coll_id);
        span.probe_ns = Some(i64::try_from(call.probe).unwrap_or(i64::MAX).min(dur_ns));
        span.flags |= flags(&span, cut, deferred.is_some(), &effect);
        let inner = thread.inner.take().filter(|(seq, _)| *seq == call.seq).map(|(_, inner)| inner);
        let node = Node {
            opened: found.opened,
            inner: deferred.map(|deferred| i64::try_from(deferred.inner).unwrap_or(i64::MAX)).or(inner),
            wanted: call.wanted != Wanted::No,
            whole: call.wanted == Wanted::Whole,
            ..Node::new(span, (call.seq, row as u16, call.depth))
        };
        (node, from)
    }

    /// A client may wait for an answer to what this call did: a request to a server.
    fn answered(&mut self, taken: &Taken<'_>, node: &Node, out: &mut Vec<Row>) {
        let Taken { call, start_ns, .. } = *taken;
        if taken.late || !self.rpcs.awaited(call.thread) {
            return;
        }
        let spec = &self.specs[taken.row];
        // A file below, and what copies has two.
        let single = spec.copies == Copies::Nothing && matches!(spec.layer, Layer::Syscall | Layer::Vfs | Layer::Fs);
        let ended = Ended {
            thread: call.thread,
            span: taken.id(),
            start_ns,
            end_ns: taken.end_ns(),
            devs: node.span.file_id.filter(|_| single).map(|file| self.resources.files.devs(file)),
            outermost: call.depth == 0,
        };
        self.rpcs.called(&ended, out);
    }

    /// Puts a call where it waits for those around it, and writes those for which nothing is open any more.
    fn link(&mut self, taken: &Taken<'_>, mut node: Node, from: usize, out: &mut Vec<Row>) {
        let Taken { call, deferred, late, row, .. } = *taken;
        let Some(thread) = self.processes.threads.get_mut(&call.thread) else { return };
        if thread.phases.innermost().is_some_and(|open| open.enter.seq == call.seq) {
            thread.texts.clear();
            self.leave_phase(call.thread, node, out);
            return;
        }
        if late {
            node.span.flags |= flag::INFERRED_PARENT;
            let mut alone = Stack::default();
            alone.push(node, 0);
            alone.take(Above::default(), &mut |node, tree| self.leaving.push((node, tree)));
            self.leave(false, out);
            return;
        }
        let outermost = usize::from(call.depth) == thread.phases.len();
        if deferred.is_some() && !outermost {
            thread.stack.insert(node);
        } else if !thread.stack.push(node, from) {
            self.losses.add("overlap", Some(self.specs[row].layer), 1);
        }
        self.waiting += 1;
        if outermost {
            thread.texts.clear();
            self.settle(call.thread, from, out);
        } else {
            if self.waiting > self.max_pending {
                self.relieve(out);
            }
            self.write(out);
        }
    }

    /// The kernel is done with something that a call submitted.
    pub(super) fn operation(&mut self, operation: &Operation, out: &mut Vec<Row>) {
        let call = &operation.call;
        let Some((row, copy)) = self.row_of(call.spec) else {
            self.losses.add("spec_unknown", None, 1);
            return;
        };
        let spec = &self.specs[row];
        let start_ns = relative(call.start, self.t0);
        let dur_ns = i64::try_from(call.dur).unwrap_or(i64::MAX);
        let thread = self.processes.threads.entry(call.thread).or_insert_with(|| ThreadState::unknown(call.thread));
        let columns = call::columns(spec, call);
        let id = span_id(call.thread, call.seq);
        let texts = self.operations.named((call.thread, call.seq));
        let found = self.resources.call(&Seen {
            row: spec,
            copy,
            call,
            owner: thread.owner,
            pid: thread.pid,
            span: id,
            start_ns,
            end_ns: start_ns.saturating_add(dur_ns),
            texts: &texts,
            below: &[],
            phase_file: None,
        });
        let by = operation.of.unwrap_or(call.seq);
        wrote(&mut self.blocks, &self.resources.files, (spec, call), (found.file, columns.bytes), by);
        let by_itself = found.file.filter(|_| self.measured.requests).map(|file| {
            let [_, journal] = self.resources.files.devices(file);
            self.blocks.by_itself(file, journal, during(call))
        });
        let [writeback, journal] = by_itself.unwrap_or_default();
        if let Some(by) = operation.found_by {
            self.operations.found(by, id);
        }
        let cut = texts.iter().any(|t| t.cut);
        let waits = Parts { writeback, journal, ..Parts::default() };
        let mut span = Box::new(thread.span(spec, id, call.cpu, (start_ns, dur_ns)));
        fill(&mut span, &columns, &found, &waits);
        span.depth = call.depth.min(i8::MAX as u8) as i8;
        // No thread of the program spends it.
        span.self_ns = 0;
        // The half of a call that copies is over with that.
        span.async_id = Some(id).filter(|_| spec.family != Family::Syscall);
        span.flags |= flags(&span, cut, operation.summed, &Effect::default());
        let mut over = Over { span, spec: row as u16, wanted: call.wanted != Wanted::No };
        let over = match operation.of.map(|of| (of, self.blocks.root(call.thread, of))) {
            None => Some(over),
            Some((of, Some(root))) => {
                operations::below(&mut over.span, span_id(call.thread, of), span_id(call.thread, root));
                Some(over)
            }
            Some((of, None)) => self.operations.hold((call.thread, of), over),
        };
        self.over.extend(over);
        self.write(out);
    }
}

/// What is known of every call and operation.
fn fill(span: &mut Span, columns: &CallColumns, found: &Found, waits: &Parts) {
    span.file_id = found.file;
    span.handle_id = found.handle;
    span.object_id = found.object;
    span.path_id = found.paths[0];
    span.path2_id = found.paths[1];
    span.cmd = columns.cmd;
    span.arg = columns.arg;
    span.offset = columns.offset;
    span.bytes = columns.bytes;
    span.req_bytes = columns.req_bytes;
    span.cpu_ns = waits.cpu;
    span.runq_ns = waits.runq;
    span.throttle_ns = waits.throttle;
    span.lock_ns = waits.lock;
    span.writeback_ns = waits.writeback;
    span.journal_ns = waits.journal;
    span.flush_ns = waits.flush;
    span.devqueue_ns = waits.devqueue;
    span.device_ns = waits.device;
    span.remote_ns = waits.remote;
    span.ret = columns.ret;
    span.errno = columns.errno;
    span.flags = columns.flags | found.flags;
}

/// Flags of how a call was recorded, and of what came of it.
fn flags(span: &Span, cut: bool, summed: bool, effect: &Effect) -> i32 {
    let set = |on: bool, bits: i32| if on { bits } else { 0 };
    set(span.ahead_bytes.is_some_and(|n| n > 0), flag::READAHEAD)
        | set(cut, flag::TRUNCATED)
        | set(summed, flag::SUMMED)
        | set(effect.submitted, flag::ASYNC | flag::NONBLOCKING)
}

/// Begin and end of a call, in ns.
const fn during(call: &Call) -> [u64; 2] {
    [call.start, call.start.saturating_add(call.dur)]
}

/// Why it is not known how much a call moved that moves something.
fn unknown(spec: &catalog::Row, call: &Call, columns: &CallColumns, found: &Found) -> Option<&'static str> {
    let moves = spec.layer == Layer::Hdf5 && matches!(spec.kind, Kind::Read | Kind::Write);
    let unknown = found.access.as_ref().and_then(|access| access.unknown_bytes);
    unknown.or_else(|| (moves && columns.bytes.is_none() && call::succeeded(call)).then(|| hdf5::unknown(spec)))
}

/// What the time of a call went to. Flushes that it waited for are put to it.
fn waited(
    (blocks, files, measured): (&mut Blocks, &Files, Measured),
    (spec, taken): (&catalog::Row, &Taken<'_>),
    file: Option<i32>,
    cached: Option<Cached>,
    out: &mut Vec<Row>,
) -> Parts {
    let call = taken.call;
    let (waits, flushes) = waiting::of(spec, call, cached, &Surroundings { blocks, files, measured, file });
    if let Some(dev) = flushes {
        blocks.waited_for_flushes(dev, (call.thread, call.seq), taken.during(), out);
    }
    waits
}

/// A call that changed what was changed again since is one that asks.
fn asked(spec: &catalog::Row, taken: &Taken<'_>) -> Option<(catalog::Row, Call)> {
    let changes = !matches!(spec.role(), Role::Use | Role::None);
    let asks = taken.past() && changes;
    if asks { Some((spec.without_effect(), Call { handle: None, ..*taken.call })) } else { None }
}

/// With sums: a handle that a call made or closed, for sums that come later.
fn handle_changed(sums: Option<&mut Sums>, resources: &ResourceTracker, seen: &Seen<'_>, found: &Found, role: Role) {
    let (Some(sums), Some(handle), Owner::Process(process)) = (sums, found.handle, seen.owner) else { return };
    if found.opened {
        sums.opened(process, seen.span, Opened { handle, file: found.file, object: found.object });
    } else if role == Role::Close {
        sums.closed(seen.end_ns, process, handle, |o| current(resources, o));
    }
}

/// Calls of MPI whose probes may be paused, and those of I/O libraries by which the others are estimated.
fn communicated(paused: &mut Paused, spec: &catalog::Row, taken: &Taken<'_>, process: Option<Owned>) {
    if spec.pauses && taken.deferred.is_none() {
        paused.call(process, taken.row as u16);
    } else if spec.layer.is_io_library() {
        paused.outer(process, taken.call.start);
    }
}

/// A call wrote a part of a file, in the call or operation with this number: its write-back belongs to this one.
fn wrote(
    blocks: &mut Blocks,
    files: &Files,
    (spec, call): (&catalog::Row, &Call),
    (file, bytes): (Option<i32>, Option<i64>),
    by: u32,
) {
    if let (Kind::Write, false, Some(file), Some(off), Some(bytes)) = (spec.kind, call.direct, file, call.off, bytes) {
        let file = call.file.and_then(|key| files.of_data(key)).unwrap_or(file);
        blocks.wrote(file, off, bytes as u64, (call.thread, Some((call.seq, by))), during(call));
    }
}

/// A call that may be one on a C stream.
struct Stream<'a> {
    spec: &'a catalog::Row,
    number: u16,
    call: &'a Call,
    process: Option<Owned>,
    bytes: Option<i64>,
    past: bool,
}

impl Stream<'_> {
    /// What calls of demoted functions moved on the stream since the last call on it that was recorded.
    fn moved(
        &self,
        demoted: &mut Demoted,
        resources: &ResourceTracker,
        seen: &Seen<'_>,
        found: &Found,
    ) -> Option<(Subject, Vec<Estimate>)> {
        let handle = found.handle.filter(|_| self.spec.layer == Layer::Stdio && !self.past)?;
        let opened = found.opened.then(|| opened_at(resources, seen, found.file));
        let on = OnStream {
            row: self.spec,
            number: self.number,
            call: self.call,
            handle,
            process_ix: seen.owner.process_ix(),
            bytes: self.bytes,
            opened,
        };
        let subject = Subject { process: self.process, file: found.file, ..Subject::default() };
        let estimates = demoted.call(&on, || subject.clone());
        (!estimates.is_empty()).then_some((subject, estimates))
    }
}

/// How a call opened a stream that it has made.
fn opened_at(resources: &ResourceTracker, seen: &Seen<'_>, file: Option<i32>) -> demoted::Opened {
    let inner = seen.below.iter().find(|node| node.opened && node.span.layer == Layer::Syscall);
    let Some(mode) = inner.and_then(|node| resources.handles.row(node.span.handle_id?)?.mode) else {
        return demoted::Opened::default();
    };
    let size = || file.and_then(|id| resources.files.size(id)).and_then(|size| u64::try_from(size).ok());
    demoted::Opened {
        stands: if mode & O_APPEND == 0 { Some(0) } else { size() },
        writes: match mode & O_ACCMODE {
            O_RDONLY => Some(false),
            O_WRONLY => Some(true),
            _ => None,
        },
    }
}

/// include/uapi/asm-generic/fcntl.h
const O_ACCMODE: i32 = 3;
const O_RDONLY: i32 = 0;
const O_WRONLY: i32 = 1;
const O_APPEND: i32 = 0o2000;
