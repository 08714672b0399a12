//! Pure: events in, rows out. No clock, no thread, no file.

mod aggregate;
mod calls;
mod devices;
mod libraries;
mod losses;
mod resources;
mod seen;
mod things;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod testing;

use self::aggregate::demoted;
use self::calls::{cache, call, operations, waiting};
use self::devices::class;
use self::libraries::hdf5;
use self::resources::processes::Owned;
use crate::catalog::{self, Copies, Role};
use crate::correlate::aggregate::demoted::{Demoted, Estimate, OnStream};
use crate::correlate::aggregate::paused::{Paused, Unrecorded};
pub use crate::correlate::aggregate::rollup::CallSums;
use crate::correlate::aggregate::rollup::Rollups;
use crate::correlate::aggregate::sums::{Opened, Subject, Sums};
use crate::correlate::calls::asynchronous::{Asynchronous, Done};
use crate::correlate::calls::cover::Cover;
use crate::correlate::calls::operations::{Operations, Over};
use crate::correlate::calls::order::Order;
pub(crate) use crate::correlate::calls::order::give_back;
use crate::correlate::calls::slow::SlowStacks;
use crate::correlate::calls::stack::{Above, Node, Stack, Tree, WANTED};
use crate::correlate::calls::unknown::Unknown;
use crate::correlate::calls::waiting::Surroundings;
use crate::correlate::devices::block::Blocks;
use crate::correlate::devices::rpc::{Ended, Rpcs};
use crate::correlate::libraries::collectives::{Caller, Collectives};
use crate::correlate::losses::Losses;
use crate::correlate::resources::processes::{Owner, Processes, Program, Text, ThreadState, Variables};
use crate::correlate::seen::Seen;
use crate::correlate::things::Things;
use crate::event::{About, Call, Enter, Event, FileKey, Kept, Operation, Striping, Sum, TextKind, Wanted, Watched};
use crate::rows::{self, BlockBytes, Mount, Row, Span, span_id};
use crate::words::{Kind, Layer, flag};

/// What the correlator needs to know of the run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Start of the trace, `CLOCK_MONOTONIC` nanoseconds.
    pub t0: u64,
    /// The catalog that `spec` numbers refer to.
    pub specs: Vec<catalog::Row>,
    /// Environment variables that hold a process's rank, the preferred first.
    pub rank_vars: Vec<String>,
    /// The same for the number of ranks.
    pub size_vars: Vec<String>,
    /// The same for the job's id.
    pub job_vars: Vec<String>,
    /// Completed calls, over all threads, that may wait for an enclosing call to end.
    pub max_pending: usize,
    /// Calls are summed up, and not written one by one unless they are wanted.
    pub aggregate: bool,
    /// From how many ns on the calls of a layer, or of all, are slow: they get a stack, if one is taken.
    pub slow: Vec<(Option<Layer>, i64)>,
}

impl Default for Config {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Self {
            t0: 0,
            specs: catalog::rows(),
            rank_vars: names(&[
                "OMPI_COMM_WORLD_RANK",
                "PMIX_RANK",
                "PMI_RANK",
                "MV2_COMM_WORLD_RANK",
                "SLURM_PROCID",
                "PALS_RANKID",
                "FLUX_TASK_RANK",
                "JSM_NAMESPACE_RANK",
                "RANK",
            ]),
            size_vars: names(&[
                "OMPI_COMM_WORLD_SIZE",
                "PMI_SIZE",
                "MV2_COMM_WORLD_SIZE",
                "SLURM_NTASKS",
                "FLUX_JOB_SIZE",
                "JSM_NAMESPACE_SIZE",
                "WORLD_SIZE",
            ]),
            job_vars: names(&["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID"]),
            max_pending: 1 << 20,
            aggregate: false,
            slow: Vec::new(),
        }
    }
}

impl Config {
    /// Variables that count before the others: for rank, number of ranks, job.
    #[must_use]
    pub fn before(mut self, rank: &[String], size: &[String], job: &[String]) -> Self {
        self.rank_vars.splice(0..0, rank.iter().cloned());
        self.size_vars.splice(0..0, size.iter().cloned());
        self.job_vars.splice(0..0, job.iter().cloned());
        self
    }
}

/// Turns events into rows.
///
/// The rows do not depend on how the events were batched or in which order threads delivered them, except that
/// sums (rollups, histograms, losses) may be split over more rows.
pub struct Correlator {
    t0: u64,
    specs: Vec<catalog::Row>,
    max_pending: usize,
    order: Order,
    processes: Processes,
    things: Things,
    blocks: Blocks,
    asynchronous: Asynchronous,
    operations: Operations,
    collectives: Collectives,
    cover: Cover,
    slow: SlowStacks,
    rpcs: Rpcs,
    rollups: Rollups,
    /// Aggregate mode.
    sums: Option<Sums>,
    demoted: Demoted,
    paused: Paused,
    /// What their calls come to, where no other sums are written.
    estimates: Sums,
    /// Nodes on their way out; kept for its capacity.
    leaving: Vec<(Node, Tree)>,
    /// Spans on their way out, when they were asynchronous; kept for its capacity.
    written: Vec<Done>,
    /// Operations of the kernel on their way out; kept for its capacity.
    over: Vec<Over>,
    /// Completed calls that wait, over all threads.
    waiting: usize,
    losses: Losses,
    unknown: Unknown,
    cache: Watched,
}

impl Correlator {
    pub fn new(config: Config) -> Self {
        let variables = Variables { rank: config.rank_vars, size: config.size_vars, job: config.job_vars };
        Self {
            t0: config.t0,
            max_pending: config.max_pending,
            order: Order::default(),
            processes: Processes::new(variables),
            things: Things::default(),
            blocks: Blocks::default(),
            asynchronous: Asynchronous::default(),
            operations: Operations::default(),
            collectives: Collectives::default(),
            cover: Cover::default(),
            slow: SlowStacks::new(config.slow),
            rpcs: Rpcs::default(),
            written: Vec::new(),
            over: Vec::new(),
            rollups: Rollups::new(&config.specs),
            sums: config.aggregate.then(Sums::default),
            demoted: Demoted::default(),
            paused: Paused::default(),
            estimates: Sums::default(),
            leaving: Vec::new(),
            specs: config.specs,
            waiting: 0,
            losses: Losses::default(),
            unknown: Unknown::default(),
            cache: Watched::default(),
        }
    }

    /// A stack was taken in calls that are open.
    pub fn stack_taken(&mut self, stack_id: i32, calls: &[i64]) {
        self.slow.taken(stack_id, calls);
    }

    /// The frames of a stack have their names; the innermost first.
    pub fn stack_named(&mut self, stack_id: i32, frames: Vec<String>, out: &mut Vec<Row>) {
        self.slow.named(stack_id, frames, out);
    }

    /// A file system has said how a file is spread.
    pub fn is_striped(&mut self, key: FileKey, striping: Striping) {
        self.things.files.is_striped(key, striping);
    }

    /// The mounts that files are looked up in, and the mount namespace that is the host's; may be called again when they change.
    pub fn set_mounts(&mut self, mounts: Vec<Mount>, namespace: i64) {
        self.things.files.set_mounts(mounts, namespace);
    }

    /// What of the page cache and of requests is watched.
    pub fn set_watched(&mut self, watched: Watched) {
        self.cache = watched;
    }

    /// Takes an event, in any order.
    pub fn push(&mut self, event: Event) {
        self.order.push(event);
    }

    /// Every event earlier than `watermark` has been pushed: works them off.
    pub fn advance(&mut self, watermark: u64, out: &mut Vec<Row>) {
        self.release(Some(watermark), out);
        self.settle_estimates(false);
        if let Some(sums) = &mut self.sums {
            sums.write(relative(watermark, self.t0), false, self.t0, out);
            self.things.write(out);
        }
        self.estimates.write(relative(watermark, self.t0), false, self.t0, out);
        self.rollups.write(Some(self.since_t0(watermark)), out);
        self.losses.report(self.since_t0(watermark), out);
        self.unknown.report(self.since_t0(watermark), out);
        for file in self.things.files.gone() {
            self.blocks.forget(file);
        }
    }

    /// The trace ended at `now`: works everything off and writes what is still open.
    pub fn finish(&mut self, now: u64, out: &mut Vec<Row>) {
        self.release(None, out);
        let unrecorded = self.paused.finish(now);
        self.unrecorded(unrecorded);
        let mut threads: Vec<u32> = self.processes.threads.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.end(thread, self.since_t0(now), out);
        }
        self.asynchronous.finish(&mut self.written);
        self.operations.gone(|_| true, &mut self.over);
        self.write(out);
        self.rpcs.finish(out);
        self.blocks.finish(self.since_t0(now), out);
        self.write_sums(now, out);
        self.things.finish(out);
        self.rollups.write(None, out);
        self.losses.report(self.since_t0(now), out);
        self.unknown.report(self.since_t0(now), out);
    }

    /// Writes the sums over all that was written, also of times that are not over: there will be more rows of these.
    pub fn sum_up(&mut self, now: u64, out: &mut Vec<Row>) {
        self.write_sums(now, out);
        self.rollups.write(None, out);
        self.losses.report(self.since_t0(now), out);
        self.unknown.report(self.since_t0(now), out);
    }

    fn settle_estimates(&mut self, last: bool) {
        for (pending, estimates) in self.demoted.settle(last) {
            let sums = self.sums.as_mut().unwrap_or(&mut self.estimates);
            let of = (pending.until, &pending.subject);
            add_estimates(&mut self.rollups, sums, &self.specs, self.t0, of, &estimates);
        }
    }

    /// Calls that were not recorded one by one. With sums nothing is in windows that is not in these.
    fn unrecorded(&mut self, unrecorded: Vec<Unrecorded>) {
        for Unrecorded { process, until, estimate } in unrecorded {
            let subject = Subject { process, ..Subject::default() };
            let of = (until, &subject);
            add_estimates(&mut self.rollups, &mut self.estimates, &self.specs, self.t0, of, &[estimate]);
        }
    }

    fn write_sums(&mut self, now: u64, out: &mut Vec<Row>) {
        self.settle_estimates(true);
        if let Some(sums) = &mut self.sums {
            sums.write(relative(now, self.t0), true, self.t0, out);
        }
        self.estimates.write(relative(now, self.t0), true, self.t0, out);
    }

    /// Whoever gets the rows has forgotten those of these files, objects, handles and paths: they are told again when a
    /// call is about them.
    pub fn forgotten(&mut self, files: &[i32], objects: &[i32], handles: &[i32], paths: &[i32]) {
        self.things.forgotten(files, objects, handles, paths);
    }

    fn since_t0(&self, time: u64) -> i64 {
        relative(time, self.t0)
    }

    fn release(&mut self, watermark: Option<u64>, out: &mut Vec<Row>) {
        let mut order = std::mem::take(&mut self.order);
        order.release(watermark, |event, late| match event {
            Event::Call(call) => self.call(call, None, late, out),
            Event::Kept(kept) => self.call(&kept.call, Some(kept), late, out),
            other => self.event(std::mem::replace(other, TAKEN), out),
        });
        self.order = order;
    }

    /// Any other event than a call.
    fn event(&mut self, event: Event, out: &mut Vec<Row>) {
        let t_ns = self.since_t0(event.time());
        match event {
            Event::Call(_) | Event::Kept(_) => {}
            Event::Enter(enter) => self.enter(enter, out),
            Event::Operation(operation) => self.operation(&operation, out),
            Event::Text { thread, seq, what, bytes, root, cut, operation: true, .. } => {
                if !self.operations.names((thread, seq), Text { seq, what, bytes, root, cut }) {
                    self.losses.add("text", None, 1);
                }
            }
            Event::Text { thread, seq, what, bytes, root, cut, .. } => {
                let state = self.processes.threads.entry(thread).or_insert_with(|| ThreadState::unknown(thread));
                if let TextKind::Words(slot @ catalog::JOB_SYNC..=catalog::JOB_LIST) = what {
                    let words: Vec<i64> = bytes.as_chunks().0.iter().map(|b| i64::from_ne_bytes(*b)).collect();
                    self.asynchronous.announce(state.owner, span_id(thread, seq), slot, &words);
                } else if !state.keep(Text { seq, what, bytes, root, cut }) {
                    self.losses.add("text", None, 1);
                }
            }
            Event::Cached { thread, seq, cached, .. } => {
                let state = self.processes.threads.entry(thread).or_insert_with(|| ThreadState::unknown(thread));
                state.cached = Some((seq, cached));
            }
            Event::Inner { thread, seq, inner, .. } => {
                let state = self.processes.threads.entry(thread).or_insert_with(|| ThreadState::unknown(thread));
                state.inner = Some((seq, i64::try_from(inner).unwrap_or(i64::MAX)));
            }
            Event::Sum(sum) => self.sum(&sum),
            Event::Counts(counts) => {
                if let Some((layer, op, kind)) = self.summed(counts.row) {
                    let from = self.since_t0(counts.from);
                    self.rollups.counts(from, (layer, op, kind), counts.row, [&counts.durations, &counts.sizes]);
                }
            }
            Event::Demoted { row, .. } => self.demoted.demote(row, self.sums.is_some()),
            Event::Sampled { .. } => self.demoted.sampled(),
            Event::Paused { .. } => self.paused.begin(),
            Event::Looking { time } => self.paused.look(time),
            Event::Looked { time } => {
                let unrecorded = self.paused.looked(time);
                self.unrecorded(unrecorded);
            }
            Event::Resumed { time } => {
                let unrecorded = self.paused.end(time);
                self.unrecorded(unrecorded);
            }
            Event::Process { process, parent, pid, ppid, uid, .. } => {
                self.processes.process(t_ns, process, parent, [pid, ppid, uid], out);
                if let Some(parent) = parent {
                    self.things.handles.fork(Owner::Process(parent), Owner::Process(process));
                }
            }
            Event::Thread { thread, process, pid, tid, comm, .. } => {
                self.blocks.thread_begins(thread, Owner::Process(process).process_ix());
                self.rpcs.thread_begins(thread, tid);
                let before = self.processes.thread(t_ns, thread, process, [pid, tid], comm, out);
                if let Some(before) = before {
                    self.things.handles.belong(before, Owner::Process(process));
                }
            }
            Event::Belongs { process, uid, user, cgroup, .. } => {
                if let Some(cgroup) = &cgroup {
                    self.blocks.in_cgroup(cgroup);
                }
                self.processes.belongs(t_ns, process, uid, user, cgroup.map(|cgroup| cgroup.path), out);
            }
            Event::Exec { time, process, program, exe, args, env } => {
                self.processes.exec(t_ns, process, &Program { number: program, exe, args, env }, out);
                self.asynchronous.gone(Owner::Process(process), &mut self.written);
                self.write(out);
                self.forget(Owner::Process(process), time);
                self.things.gone(Owner::Process(process), t_ns, true);
            }
            Event::Exit { time, process, status } => {
                self.sums_of_gone(t_ns, process);
                for thread in self.processes.exit(t_ns, process, status, out) {
                    self.end(thread, t_ns, out);
                    self.operations.gone(|t| t == thread, &mut self.over);
                    let ended = self.processes.threads.remove(&thread);
                    self.rpcs.thread_ends(thread, ended.map(|t| t.tid), out);
                    self.blocks.thread_ends(thread, out);
                    self.cover.ends(thread);
                }
                self.asynchronous.gone(Owner::Process(process), &mut self.written);
                self.write(out);
                self.forget(Owner::Process(process), time);
                self.things.gone(Owner::Process(process), t_ns, false);
                self.things.write(out);
            }
            Event::File { key, seen, .. } => {
                self.things.files.seen(t_ns, key, &seen);
            }
            Event::Preopened { process, fd, flags, key, seen, .. } => {
                let pid = self.processes.pid(process);
                self.things.preopened(t_ns, (Owner::Process(process), pid), (fd, flags), (key, &seen));
            }
            Event::Stream { thread, stream, fd, key, .. } => {
                let thread = self.processes.threads.entry(thread).or_insert_with(|| ThreadState::unknown(thread));
                self.things.stream(t_ns, (thread.owner, thread.pid), stream, fd, key);
            }
            Event::Bio(time, bio) => {
                let file = bio.file.and_then(|key| self.things.files.of_data(key));
                // Also one that no call is on: what overlayfs copies to its upper directory.
                file.inspect(|id| self.things.files.used(*id));
                self.blocks.bio(time, bio, file);
            }
            Event::Dirty(dirty) => {
                let known = self.things.files.of_data(dirty.file);
                let file = known.unwrap_or_else(|| self.things.files.intern(dirty.file));
                self.blocks.dirtied(file, &dirty);
            }
            Event::Message(message) => self.rpcs.message(t_ns, &message, &self.processes, &mut self.losses, out),
            Event::Reply(reply) => {
                let dur_ns = i64::try_from(reply.time.saturating_sub(reply.received)).unwrap_or(i64::MAX);
                self.rpcs.served(t_ns, dur_ns, &reply, &self.processes, out);
            }
            Event::Disk { dev, name, .. } => self.blocks.named(dev, name),
            Event::Request(request) => {
                let (t0, before) = (self.t0, out.len());
                self.blocks.request(request, |time| relative(time, t0), out);
                // Their rows may be those of a dataset that has ended since.
                for row in &out[before..] {
                    if let Row::BlockBytes(BlockBytes { file_id: Some(file), .. }) = row {
                        self.things.files.used(*file);
                    }
                }
                self.things.files.write(out);
            }
        }
    }

    /// What is known of a process that ends is remembered for the sums that still come.
    fn sums_of_gone(&mut self, t_ns: i64, process: u32) {
        let Self { sums: Some(sums), things, processes, .. } = self else { return };
        let was = (processes.owned(process, None), processes.ranks(process));
        sums.gone(t_ns, process, was, |o| current(things, o));
    }

    /// Layer, operation and kind of a row that is summed up.
    fn summed(&self, row: u32) -> Option<(Layer, &'static str, Kind)> {
        let at = row as usize;
        if let Some(row) = self.specs.get(at) {
            return Some((row.layer, row.op, row.kind));
        }
        let op = class::operation(u32::try_from(at - self.specs.len()).ok()?, 1);
        let kind = match op {
            "read" => Kind::Read,
            "write" => Kind::Write,
            "flush" => Kind::Sync,
            _ => Kind::Other,
        };
        Some((Layer::Block, op, kind))
    }

    /// What the kernel side has summed up.
    fn sum(&mut self, sum: &Sum) {
        let Some(op) = self.summed(sum.row) else { return };
        let Some(sums) = &mut self.sums else { return };
        if let Some(row) = self.specs.get(sum.row as usize).filter(|row| row.brief) {
            self.demoted.summed(sum.row as u16, row.kind == Kind::Write, &sum.figures);
        }
        let process = sum.process.map(|(process, program)| {
            sums.was(process, program).unwrap_or_else(|| self.processes.owned(process, program))
        });
        let mut subject = Subject { process, rest: sum.rest, ..Subject::default() };
        match sum.about {
            About::Nothing => {}
            About::File(key) => {
                let mapped = self.specs.get(sum.row as usize).is_some_and(|row| row.family == catalog::Family::Fault);
                let below = if mapped { self.things.files.of_data(key) } else { None };
                subject.file = Some(below.unwrap_or_else(|| self.things.files.intern(key)));
            }
            About::Handle { raw, opened } => {
                let owner = sum.process.map(|(process, _)| Owner::Process(process));
                let known = opened.and_then(|(thread, seq)| sums.handle(sum.process?.0, span_id(thread, seq)));
                let found = known.map(|o| current(&self.things, &o)).or_else(|| {
                    let handle = self.things.handles.find(owner?, (op.0, 0, raw))?;
                    Some(current(&self.things, &Opened { handle, file: None, object: None }))
                });
                (subject.file, subject.object) = found.map_or((None, None), |o| (o.file, o.object));
            }
            About::Device(dev) => {
                subject.device =
                    Some(self.blocks.name(dev).unwrap_or_else(|| format!("{}:{}", dev >> 20, dev & 0xf_ffff)));
            }
        }
        subject.file.inspect(|id| self.things.files.used(*id));
        subject.object.inspect(|id| self.things.objects.used(*id));
        // Requests have a table of their own, with or without sums.
        if op.0 != Layer::Block {
            self.rollups.sum(relative(sum.from, self.t0), op, sum.row, subject.process, &sum.figures);
        }
        sums.add(op, subject, &sum.figures);
    }

    /// A process is gone, or executes another program.
    fn forget(&mut self, owner: Owner, time: u64) {
        self.demoted.gone(owner.process_ix());
        let unrecorded = self.paused.gone(owner.process_ix(), time);
        self.unrecorded(unrecorded);
        self.things.hints.gone(owner);
        self.collectives.gone(owner, &self.things.handles);
    }

    /// Row of the catalog, and which copy of the library, of a number on the wire.
    fn row_of(&self, spec: u16) -> Option<(usize, u16)> {
        let rows = u16::try_from(self.specs.len()).ok().filter(|rows| *rows > 0)?;
        Some((usize::from(spec % rows), spec / rows))
    }

    /// A call is over; `kept`: it is in the sums.
    fn call(&mut self, call: &Call, kept: Option<&Kept>, late: bool, out: &mut Vec<Row>) {
        // What it changed was changed again since: it only asks.
        let past = kept.is_some_and(Kept::past);
        let Some((row, copy)) = self.row_of(call.spec) else {
            self.losses.add("spec_unknown", None, 1);
            return;
        };
        // The end of a phase is in time when it comes late: what its thread does next is told after it.
        let late = late && !self.processes.threads.get(&call.thread).is_some_and(|t| t.phases.contains(call.seq));
        if late {
            // What is not a call serves as well when it is late.
            self.losses.add("late", Some(self.specs[row].layer), 1);
        } else {
            self.close_phases(call.thread, call.seq, call.depth, out);
        }
        let spec = &self.specs[row];
        let start_ns = self.since_t0(call.start);
        let thread = self.processes.threads.entry(call.thread).or_insert_with(|| ThreadState::unknown(call.thread));
        let phase = thread.phases.innermost().filter(|open| open.enter.seq == call.seq).copied();
        let mut facts = call::facts(spec, call);
        let dur_ns = i64::try_from(call.dur).unwrap_or(i64::MAX);
        let id = span_id(call.thread, call.seq);
        let from = if late { thread.stack.len() } else { thread.stack.inside(call.seq, start_ns) };
        let asks = if past && !matches!(spec.role, Role::Use | Role::None) {
            Some((catalog::Row { role: Role::None, ..*spec }, Call { handle: None, ..*call }))
        } else {
            None
        };
        let (seen_row, seen_call) = asks.as_ref().map_or((spec, call), |(row, call)| (row, call));
        let seen = Seen {
            row: seen_row,
            copy,
            call: seen_call,
            owner: thread.owner,
            pid: thread.pid,
            span: id,
            start_ns,
            end_ns: start_ns.saturating_add(dur_ns),
            texts: &thread.texts,
            below: thread.stack.below(from),
            phase_file: phase.and_then(|open| open.file()),
        };
        let found = self.things.call(&seen);
        if let (Some(sums), Some(handle), Owner::Process(process)) = (&mut self.sums, found.handle, thread.owner) {
            if found.opened {
                sums.opened(process, id, Opened { handle, file: found.file, object: found.object });
            } else if spec.role == Role::Close {
                sums.closed(seen.end_ns, process, handle, |o| current(&self.things, o));
            }
        }
        if let Some(told) = found.told {
            facts.told(spec, call, told.asked, told.collective);
            if let Some(reason) = told.unknown {
                self.unknown.add(spec.layer, reason);
            }
        }
        let caller = Caller { rank: thread.rank, run: &thread.run };
        // They are told apart by their order, which is not known where some are only summed up.
        let coll_id = match kept {
            None => self.collectives.call(&seen, found.handle, &self.things.handles, &caller),
            Some(_) => None,
        };
        if spec.pauses && kept.is_none() {
            self.paused.call(owned(thread), row as u16);
        } else if matches!(spec.layer, Layer::Netcdf | Layer::Pnetcdf | Layer::Hdf5 | Layer::Mpiio) {
            self.paused.outer(owned(thread), call.start);
        }
        if let Some(handle) = found.handle.filter(|_| spec.layer == Layer::Stdio && !past) {
            let opened = found.opened.then(|| opened_at(&self.things, &seen, found.file));
            let process_ix = thread.owner.process_ix();
            let process = owned(thread);
            let on = OnStream { row: spec, number: row as u16, call, handle, process_ix, bytes: facts.bytes, opened };
            let subject = Subject { process, file: found.file, ..Subject::default() };
            let estimates = self.demoted.call(&on, || subject.clone());
            if !estimates.is_empty() {
                let sums = self.sums.as_mut().unwrap_or(&mut self.estimates);
                add_estimates(&mut self.rollups, sums, &self.specs, self.t0, (call.start, &subject), &estimates);
            }
        }
        let effect = self.asynchronous.call(&seen, facts.req_bytes, &mut self.written);
        let first = self.operations.first((call.thread, call.seq)).filter(|_| spec.kind == Kind::Wait);
        if let (Layer::Hdf5, Kind::Read | Kind::Write, None, true) =
            (spec.layer, spec.kind, facts.bytes, call::succeeded(call))
        {
            self.unknown.add(spec.layer, hdf5::unknown(spec));
        }
        self.losses.add("asynchronous", Some(spec.layer), usize::from(effect.lost));
        if effect.submitted || SUBMIT.contains(&spec.symbol) {
            self.cover.begins(call.thread, spec.layer);
        }
        if let (Layer::Syscall | Layer::Vfs, Kind::Write, false, Some(file), Some(off), Some(bytes)) =
            (spec.layer, spec.kind, call.direct || past, found.file, call.off, facts.bytes)
        {
            let writer = (call.thread, Some((call.seq, call.seq)));
            let file = call.file.and_then(|key| self.things.files.of_data(key)).unwrap_or(file);
            self.blocks.wrote(file, off, bytes as u64, writer, [call.start, call.start.saturating_add(call.dur)]);
        }
        let told = thread.cached.take().filter(|(seq, _)| *seq == call.seq).map(|(_, cached)| cached);
        let told = kept.map(|k| k.cached).or(told);
        let cached = cache::facts(self.cache, spec, call, facts.bytes, told);
        let surroundings =
            Surroundings { blocks: &self.blocks, files: &self.things.files, watched: self.cache, file: found.file };
        let (waits, flushes) = waiting::of(spec, call, told, &surroundings);
        if let Some(dev) = flushes {
            let during = [call.start, call.start.saturating_add(call.dur)];
            self.blocks.waited_for_flushes(dev, (call.thread, call.seq), during, out);
        }
        let cut = thread.texts.extract_if(.., |t| t.seq == call.seq).fold(false, |cut, t| cut | t.cut);
        let span = Span {
            // Waiting for file I/O is file I/O.
            layer: effect.layer.unwrap_or(spec.layer),
            file_id: found.file,
            handle_id: found.handle,
            object_id: found.object,
            path_id: found.paths[0],
            path2_id: found.paths[1],
            cmd: facts.cmd,
            arg: facts.arg,
            offset: facts.offset,
            bytes: facts.bytes,
            req_bytes: facts.req_bytes,
            miss_bytes: cached.miss,
            ahead_bytes: cached.ahead,
            cpu_ns: waits.cpu,
            runq_ns: waits.runq,
            throttle_ns: waits.throttle,
            lock_ns: waits.lock,
            writeback_ns: waits.writeback,
            journal_ns: waits.journal,
            flush_ns: waits.flush,
            devqueue_ns: waits.devqueue,
            device_ns: waits.device,
            remote_ns: waits.remote,
            ret: facts.ret,
            errno: facts.errno,
            flags: facts.flags
                | found.flags
                | if cached.ahead.is_some_and(|n| n > 0) { flag::READAHEAD } else { 0 }
                | if cut { flag::TRUNCATED } else { 0 }
                | if kept.is_some() { flag::SUMMED } else { 0 }
                | if call.wanted == Wanted::No { 0 } else { WANTED }
                | if effect.submitted { flag::ASYNC | flag::NONBLOCKING } else { 0 },
            async_id: effect.id.or(first),
            coll_id,
            probe_ns: Some(i64::try_from(call.probe).unwrap_or(i64::MAX).min(dur_ns)),
            ..thread.span(spec, id, call.cpu, (start_ns, dur_ns))
        };
        if !late && self.rpcs.awaited(call.thread) {
            // A file below, and what copies has two.
            let single =
                spec.copies == Copies::Nothing && matches!(spec.layer, Layer::Syscall | Layer::Vfs | Layer::Fs);
            let ended = Ended {
                thread: call.thread,
                span: id,
                start_ns,
                end_ns: start_ns.saturating_add(dur_ns),
                devs: span.file_id.filter(|_| single).map(|file| self.things.files.devs(file)),
                outermost: call.depth == 0,
            };
            self.rpcs.called(&ended, out);
        }
        let mut node = Node {
            span: Box::new(span),
            seq: call.seq,
            spec: row as u16,
            depth: call.depth,
            size: 1,
            opened: found.opened,
            inside: false,
            inner: thread.inner.take().filter(|(seq, _)| *seq == call.seq).map(|(_, inner)| inner),
            whole: call.wanted == Wanted::Whole,
        };
        if let Some(kept) = kept {
            node.inner = Some(i64::try_from(kept.inner).unwrap_or(i64::MAX));
        }
        if phase.is_some() {
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
        if kept.is_some() && !outermost {
            thread.stack.insert(node);
        } else if !thread.stack.push(node, from) {
            self.losses.add("overlap", Some(spec.layer), 1);
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

    /// A phase began. Where only phases enclose it, what runs inside it need not wait for its end.
    fn enter(&mut self, enter: Enter, out: &mut Vec<Row>) {
        let Some((row, _)) = self.row_of(enter.spec).filter(|(row, _)| self.specs[*row].is_phase()) else {
            self.losses.add("spec_unknown", None, 1);
            return;
        };
        let enter = Enter { spec: row as u16, ..enter };
        self.close_phases(enter.thread, enter.seq, enter.depth, out);
        let start_ns = self.since_t0(enter.start);
        let thread = self.processes.threads.entry(enter.thread).or_insert_with(|| ThreadState::unknown(enter.thread));
        if usize::from(enter.depth) != thread.phases.len() {
            return;
        }
        // No call is open that could adopt what waits.
        self.settle(enter.thread, 0, out);
        if let Some(thread) = self.processes.threads.get_mut(&enter.thread) {
            thread.phases.enter(enter, start_ns);
            if enter.depth == 0 {
                self.blocks.phase_begins(enter.thread, enter.seq);
            }
        }
    }

    /// Ends the phases that are over now that a call of this number and depth is seen. Their returns were not: they were
    /// left by a jump.
    fn close_phases(&mut self, thread: u32, seq: u32, depth: u8, out: &mut Vec<Row>) {
        let Some(phases) = self.processes.threads.get(&thread).map(|t| &t.phases).filter(|p| p.len() > 0) else {
            return;
        };
        let (ends, around) = (phases.contains(seq), phases.around(seq, depth));
        self.abandon(thread, around, None, out);
        if ends {
            self.settle(thread, 0, out);
        }
    }

    /// Writes the phases of a thread from `from` on as calls that never returned. Without an `end`, they ended with the
    /// last call inside them.
    fn abandon(&mut self, thread: u32, from: usize, end: Option<i64>, out: &mut Vec<Row>) {
        let open = |s: &Self| s.processes.threads.get(&thread).map_or(0, |t| t.phases.len());
        while open(self) > from {
            self.settle(thread, 0, out);
            let Some(state) = self.processes.threads.get(&thread) else { return };
            let Some(open) = state.phases.innermost().copied() else { return };
            let Some(row) = self.specs.get(usize::from(open.enter.spec)) else { return };
            let dur_ns = end.unwrap_or(open.end_ns).saturating_sub(open.start_ns).max(0);
            let id = span_id(thread, open.enter.seq);
            let mut span = state.span(row, id, open.enter.cpu, (open.start_ns, dur_ns));
            span.file_id = open.file();
            // It did not end: what ran inside it may be wanted.
            span.flags |= row.flags | flag::UNFINISHED | WANTED;
            let (seq, spec, depth) = (open.enter.seq, open.enter.spec, open.enter.depth);
            let span = Box::new(span);
            self.leave_phase(
                thread,
                Node { span, seq, spec, depth, size: 1, opened: false, inside: false, inner: None, whole: false },
                out,
            );
        }
    }

    /// Writes the innermost phase of a thread; what was inside it is written.
    fn leave_phase(&mut self, thread: u32, mut node: Node, out: &mut Vec<Row>) {
        let Some(state) = self.processes.threads.get_mut(&thread) else { return };
        let (tree, fits) = state.phases.leave(&mut node.span);
        if !fits {
            self.losses.add("overlap", Some(node.span.layer), 1);
        }
        let complete = state.phases.len() == 0;
        self.leaving.push((node, tree));
        self.leave(complete, out);
    }

    /// Writes the calls that wait on a thread, below its phases: nothing else can adopt them any more. The trees before
    /// `from` did not end inside the last one.
    fn settle(&mut self, thread: u32, from: usize, out: &mut Vec<Row>) {
        let Some(ThreadState { stack, phases, .. }) = self.processes.threads.get_mut(&thread) else { return };
        self.waiting -= stack.len();
        let above = phases.above();
        let each = &mut |node: Node, tree: Tree| {
            if !idle(&self.specs[usize::from(node.spec)], &node, &tree) {
                phases.hold(&node, &tree);
            }
            self.leaving.push((node, tree));
        };
        stack.take_before(from, above, each);
        stack.take(above, each);
        let complete = phases.len() == 0;
        self.leave(complete, out);
    }

    /// Nothing more comes from this thread.
    fn end(&mut self, thread: u32, t_ns: i64, out: &mut Vec<Row>) {
        self.abandon(thread, 0, Some(t_ns), out);
        self.flush(thread, out);
    }

    /// The kernel is done with something that a call submitted.
    fn operation(&mut self, operation: &Operation, out: &mut Vec<Row>) {
        let call = &operation.call;
        let Some((row, copy)) = self.row_of(call.spec) else {
            self.losses.add("spec_unknown", None, 1);
            return;
        };
        let spec = &self.specs[row];
        let start_ns = self.since_t0(call.start);
        let thread = self.processes.threads.entry(call.thread).or_insert_with(|| ThreadState::unknown(call.thread));
        let facts = call::facts(spec, call);
        let dur_ns = i64::try_from(call.dur).unwrap_or(i64::MAX);
        let id = span_id(call.thread, call.seq);
        let texts = self.operations.named((call.thread, call.seq));
        let found = self.things.call(&Seen {
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
        if let (Kind::Write, false, Some(file), Some(off), Some(bytes)) =
            (spec.kind, call.direct, found.file, call.off, facts.bytes)
        {
            let writer = (call.thread, Some((call.seq, operation.of.unwrap_or(call.seq))));
            let file = call.file.and_then(|key| self.things.files.of_data(key)).unwrap_or(file);
            self.blocks.wrote(file, off, bytes as u64, writer, [call.start, call.start.saturating_add(call.dur)]);
        }
        let by_itself = found.file.filter(|_| self.cache.requests).map(|file| {
            let during = [call.start, call.start.saturating_add(call.dur)];
            let [_, journal] = self.things.files.devices(file);
            self.blocks.by_itself(file, journal, during)
        });
        let by_itself = by_itself.unwrap_or_default();
        if let Some(by) = operation.found_by {
            self.operations.found(by, id);
        }
        let mut span = Box::new(Span {
            span_id: id,
            parent_id: None,
            root_id: id,
            layer: spec.layer,
            op: spec.op,
            kind: spec.kind,
            depth: call.depth.min(i8::MAX as u8) as i8,
            // The call that submitted it moves nothing by itself.
            layer_top: true,
            process_ix: thread.owner.process_ix(),
            pid: thread.pid,
            tid: thread.tid,
            rank: thread.rank,
            cpu: call.cpu as i16,
            start_ns,
            dur_ns,
            probe_ns: None,
            // No thread of the program spends it.
            self_ns: 0,
            layer_ns: None,
            file_id: found.file,
            handle_id: found.handle,
            object_id: found.object,
            path_id: found.paths[0],
            path2_id: found.paths[1],
            cmd: None,
            arg: None,
            offset: facts.offset,
            bytes: facts.bytes,
            req_bytes: facts.req_bytes,
            miss_bytes: None,
            ahead_bytes: None,
            cpu_ns: None,
            runq_ns: None,
            throttle_ns: None,
            lock_ns: None,
            writeback_ns: by_itself[0],
            journal_ns: by_itself[1],
            flush_ns: None,
            devqueue_ns: None,
            device_ns: None,
            remote_ns: None,
            ret: facts.ret,
            errno: facts.errno,
            flags: facts.flags
                | found.flags
                | if operation.summed { flag::SUMMED } else { 0 }
                | if texts.iter().any(|t| t.cut) { flag::TRUNCATED } else { 0 }
                | if call.wanted == Wanted::No { 0 } else { WANTED },
            // The half of a call that copies is over with that.
            async_id: Some(id).filter(|_| spec.family != catalog::Family::Syscall),
            coll_id: None,
            stack_id: None,
        });
        let over = match operation.of.map(|of| (of, self.blocks.root(call.thread, of))) {
            None => Some((span, row as u16)),
            Some((of, Some(root))) => {
                operations::below(&mut span, span_id(call.thread, of), span_id(call.thread, root));
                Some((span, row as u16))
            }
            Some((of, None)) => self.operations.hold((call.thread, of), (span, row as u16)),
        };
        self.over.extend(over);
        self.write(out);
    }

    /// Writes the calls of the thread that keeps most waiting, with the parents known by now.
    fn relieve(&mut self, out: &mut Vec<Row>) {
        let fullest = self.processes.threads.iter().map(|(thread, t)| (t.stack.len(), *thread)).max();
        if let Some((count, thread)) = fullest {
            self.losses.add("pending", None, count);
            self.flush(thread, out);
        }
    }

    fn flush(&mut self, thread: u32, out: &mut Vec<Row>) {
        if let Some(state) = self.processes.threads.get_mut(&thread) {
            self.waiting -= state.stack.len();
            state.stack.take(Above::default(), &mut |node, tree| self.leaving.push((node, tree)));
            self.leave(false, out);
        }
    }

    /// Writes the spans of completed trees, and the rows they refer to: a call before the calls inside it, in the order in
    /// which they began.
    ///
    /// `complete`: no call of the thread that began before their end is still open.
    fn leave(&mut self, complete: bool, out: &mut Vec<Row>) {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.sort_unstable_by_key(|(node, _)| node.span.span_id);
        for (node, tree) in leaving.drain(..) {
            let thread = (node.span.span_id >> rows::SEQ_BITS) as u32;
            let row = &self.specs[usize::from(node.spec)];
            self.operations.release((thread, node.seq), &node.span, &mut self.over);
            let (root, outermost) = (node.seq == tree.root, node.span.parent_id.is_none());
            if idle(row, &node, &tree) {
                if outermost {
                    self.blocks.tree(thread, tree, complete, out);
                }
                continue;
            }
            let Node { mut span, spec, inner, .. } = node;
            if let Some(inner) = inner {
                span.self_ns = span.net_ns().saturating_sub(inner).max(0);
            }
            if span.process_ix < 0 {
                match self.processes.threads.get(&thread).filter(|t| t.owner != Owner::Thread(thread)) {
                    Some(known) => {
                        (span.process_ix, span.pid, span.tid) = (known.owner.process_ix(), known.pid, known.tid);
                        span.rank = known.rank;
                    }
                    None => self.losses.add("thread_unknown", Some(span.layer), 1),
                }
            }
            self.things.complete(&mut span, row.role == Role::Close);
            if complete && root && span.layer == Layer::Syscall && self.asynchronous.awaits_help() {
                let owner = self.processes.threads.get(&thread).map(|t| t.owner);
                let fd = span.handle_id.and_then(|id| self.things.handles.row(id)).map(|h| h.raw);
                if let Some(owner) = owner {
                    match self.asynchronous.helped(Done { span, spec, tree: Some(tree) }, owner, fd, &mut self.written)
                    {
                        Some(other) => span = other.span,
                        None => continue,
                    }
                }
            }
            if outermost {
                self.blocks.tree(thread, tree, complete, out);
            }
            if span.flags & flag::ASYNC != 0 {
                self.asynchronous.submitted(Done { span, spec, tree: None }, &mut self.written);
                continue;
            }
            self.slow.ended(&mut span, out);
            put(&mut self.rollups, self.sums.as_mut(), &mut self.cover, self.t0, span, spec, out);
        }
        self.leaving = leaving;
        self.write(out);
        self.things.write(out);
    }

    /// Writes spans whose operations are complete.
    fn write(&mut self, out: &mut Vec<Row>) {
        for (mut span, spec) in self.over.drain(..) {
            self.things.complete(&mut span, self.specs[usize::from(spec)].role == Role::Close);
            self.slow.ended(&mut span, out);
            put(&mut self.rollups, self.sums.as_mut(), &mut self.cover, self.t0, span, spec, out);
        }
        for Done { mut span, spec, tree } in self.written.drain(..) {
            if let Some(tree) = tree {
                let tree = Tree { id: span.root_id, ..tree };
                self.blocks.tree((span.span_id >> rows::SEQ_BITS) as u32, tree, true, out);
            }
            self.slow.ended(&mut span, out);
            put(&mut self.rollups, self.sums.as_mut(), &mut self.cover, self.t0, span, spec, out);
        }
    }
}

/// System calls that submit operations of the kernel.
const SUBMIT: [&str; 2] = ["io_uring_enter", "io_submit"];

/// A call is over: it is written, or summed up, or both.
fn put(
    rollups: &mut Rollups,
    sums: Option<&mut Sums>,
    cover: &mut Cover,
    t0: u64,
    mut span: Box<Span>,
    spec: u16,
    out: &mut Vec<Row>,
) {
    let wanted = span.flags & WANTED != 0 || sums.is_none();
    span.flags &= !WANTED;
    cover.add(&mut span);
    if span.flags & flag::SUMMED == 0 {
        rollups.add(&span, spec);
        if let Some(sums) = sums {
            sums.span(&span, t0);
            span.flags |= flag::SUMMED;
        }
    }
    if wanted {
        out.push(Row::Span(span));
    }
}

/// A handle with what is known of it now.
fn current(things: &Things, opened: &Opened) -> Opened {
    things.handles.row(opened.handle).map_or(*opened, |row| Opened {
        handle: opened.handle,
        file: row.file_id.or(opened.file),
        object: row.object_id.or(opened.object),
    })
}

/// The process of a thread, where it is known.
fn owned(thread: &ThreadState) -> Option<Owned> {
    let process_ix = thread.owner.process_ix();
    (process_ix >= 0).then_some(Owned { process_ix, pid: thread.pid, rank: thread.rank })
}

/// Adds what calls came to, before this time, that are not told.
fn add_estimates(
    rollups: &mut Rollups,
    sums: &mut Sums,
    specs: &[catalog::Row],
    t0: u64,
    (until, subject): (u64, &Subject),
    estimates: &[Estimate],
) {
    for estimate in estimates {
        let Some(row) = specs.get(usize::from(estimate.row)) else { continue };
        let (op, figures) = ((row.layer, row.op, row.kind), estimate.figures(until));
        rollups.sum(relative(until, t0), op, u32::from(estimate.row), subject.process, &figures);
        sums.add(op, subject.clone(), &figures);
    }
}

/// How a call opened a stream that it has made.
fn opened_at(things: &Things, seen: &Seen<'_>, file: Option<i32>) -> demoted::Opened {
    let inner = seen.below.iter().find(|node| node.opened && node.span.layer == Layer::Syscall);
    let Some(mode) = inner.and_then(|node| things.handles.row(node.span.handle_id?)?.mode) else {
        return demoted::Opened::default();
    };
    let size = || file.and_then(|id| things.files.size(id)).and_then(|size| u64::try_from(size).ok());
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

/// Stands where an event was until it was worked off.
const TAKEN: Event = Event::Exit { time: 0, process: 0, status: 0 };

/// Did a call wait for something that only had the name of one of our requests?
fn idle(row: &catalog::Row, node: &Node, tree: &Tree) -> bool {
    row.inside && !node.inside && node.span.async_id.is_none() && node.seq == tree.root && node.size == 1
}

fn relative(time: u64, t0: u64) -> i64 {
    let ns = i128::from(time) - i128::from(t0);
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}
