//! Everything that happens besides calls: processes and threads, texts, files, requests, sums.

use super::{Correlator, relative};
use crate::catalog;
use crate::correlate::resources::processes::{Owner, Program, Text, ThreadState};
use crate::event::{Dirtied, Event, Request, TextKind};
use crate::rows::{BlockBytes, Row, span_id};

impl Correlator {
    /// Any other event than a call.
    pub(super) fn event(&mut self, event: Event, out: &mut Vec<Row>) {
        let t_ns = self.since_t0(event.time());
        match event {
            Event::Call(_) | Event::Deferred(_) => {}
            Event::Enter(enter) => self.enter(enter, out),
            Event::Operation(operation) => self.operation(&operation, out),
            Event::Text { thread, seq, what, bytes, root, cut, operation, .. } => {
                self.text(thread, operation, Text { seq, what, bytes, root, cut });
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
                self.process_begins(t_ns, process, parent, [pid, ppid, uid], out);
            }
            Event::Thread { thread, process, pid, tid, comm, .. } => {
                self.thread_begins(t_ns, (thread, process), [pid, tid], comm, out);
            }
            Event::Belongs { process, uid, user, cgroup, container, .. } => {
                if let Some(cgroup) = &cgroup {
                    self.blocks.in_cgroup(cgroup);
                }
                let cgroup = cgroup.map(|cgroup| (cgroup.path, container.unwrap_or_default()));
                self.processes.belongs(t_ns, process, (uid, user), cgroup, out);
            }
            Event::Exec { time, process, program, exe, args, env } => {
                self.program_begins(time, process, &Program { number: program, exe, args, env }, out);
            }
            Event::Exit { time, process, status } => self.process_ends(time, process, status, out),
            Event::Mounted(mounted) => self.resources.files.mounted(*mounted),
            Event::File { key, seen, .. } => {
                self.resources.files.seen(t_ns, key, &seen);
            }
            Event::Preopened { process, fd, flags, key, seen, .. } => {
                let pid = self.processes.pid(process);
                self.resources.preopened(t_ns, (Owner::Process(process), pid), (fd, flags), (key, &seen));
            }
            Event::Stream { thread, stream, fd, key, .. } => {
                let thread = self.processes.threads.entry(thread).or_insert_with(|| ThreadState::unknown(thread));
                self.resources.stream(t_ns, (thread.owner, thread.pid), stream, fd, key);
            }
            Event::Bio(time, bio) => {
                let file = bio.file.and_then(|key| self.resources.files.of_data(key));
                // Also one that no call is on: what overlayfs copies to its upper directory.
                file.inspect(|id| self.resources.files.used(*id));
                self.blocks.bio(time, bio, file);
            }
            Event::Dirty(dirty) => self.dirtied(&dirty),
            Event::Message(message) => self.rpcs.message(t_ns, &message, &self.processes, &mut self.losses, out),
            Event::Reply(reply) => {
                let dur_ns = i64::try_from(reply.time.saturating_sub(reply.received)).unwrap_or(i64::MAX);
                self.rpcs.served(t_ns, dur_ns, &reply, &self.processes, out);
            }
            Event::Disk { dev, name, .. } => self.blocks.named(dev, name),
            Event::Request(request) => self.request(request, out),
        }
    }

    /// A text that belongs to a call, or to an `operation`.
    fn text(&mut self, thread: u32, operation: bool, text: Text) {
        let kept = if operation {
            self.operations.names((thread, text.seq), text)
        } else {
            let state = self.processes.threads.entry(thread).or_insert_with(|| ThreadState::unknown(thread));
            if let TextKind::Longs(slot @ catalog::JOB_SYNC..=catalog::JOB_LIST) = text.what {
                let words: Vec<i64> = text.bytes.as_chunks().0.iter().map(|b| i64::from_ne_bytes(*b)).collect();
                self.asynchronous.announce(state.owner, span_id(thread, text.seq), slot, &words);
                return;
            }
            state.keep(text)
        };
        if !kept {
            self.losses.add("text", None, 1);
        }
    }

    /// A process is a target.
    fn process_begins(&mut self, t_ns: i64, process: u32, parent: Option<u32>, ids: [u32; 3], out: &mut Vec<Row>) {
        self.processes.process(t_ns, process, parent, ids, out);
        if let Some(parent) = parent {
            self.resources.handles.fork(Owner::Process(parent), Owner::Process(process));
        }
    }

    /// Pages of a file became dirty other than by a write with a known range.
    fn dirtied(&mut self, dirty: &Dirtied) {
        let known = self.resources.files.of_data(dirty.file);
        let file = known.unwrap_or_else(|| self.resources.files.intern(dirty.file));
        self.blocks.dirtied(file, dirty);
    }

    /// A thread of a target was first seen.
    fn thread_begins(
        &mut self,
        t_ns: i64,
        (thread, process): (u32, u32),
        [pid, tid]: [u32; 2],
        comm: [u8; 16],
        out: &mut Vec<Row>,
    ) {
        self.blocks.thread_begins(thread, Owner::Process(process).process_ix());
        self.rpcs.thread_begins(thread, tid);
        let before = self.processes.thread(t_ns, thread, process, [pid, tid], comm, out);
        if let Some(before) = before {
            self.resources.handles.belong(before, Owner::Process(process));
        }
    }

    /// A process executes another program.
    fn program_begins(&mut self, time: u64, process: u32, program: &Program, out: &mut Vec<Row>) {
        let t_ns = self.since_t0(time);
        self.processes.exec(t_ns, process, program, out);
        self.asynchronous.gone(Owner::Process(process), &mut self.written);
        self.write(out);
        self.forget(Owner::Process(process), time);
        self.resources.gone(Owner::Process(process), t_ns, true);
    }

    /// A process is gone.
    fn process_ends(&mut self, time: u64, process: u32, status: u32, out: &mut Vec<Row>) {
        let t_ns = self.since_t0(time);
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
        self.resources.gone(Owner::Process(process), t_ns, false);
        self.resources.write(out);
    }

    /// A request of a device is over.
    fn request(&mut self, request: Request, out: &mut Vec<Row>) {
        let (t0, before) = (self.t0, out.len());
        self.blocks.request(request, |time| relative(time, t0), out);
        // Their rows may be those of a dataset that has ended since.
        for row in &out[before..] {
            if let Row::BlockBytes(BlockBytes { file_id: Some(file), .. }) = row {
                self.resources.files.used(*file);
            }
        }
        self.resources.files.write(out);
    }

    /// A process is gone, or executes another program.
    fn forget(&mut self, owner: Owner, time: u64) {
        self.demoted.gone(owner.process_ix());
        let unrecorded = self.paused.gone(owner.process_ix(), time);
        self.unrecorded(unrecorded);
        self.resources.hints.gone(owner);
        self.collectives.gone(owner, &self.resources.handles);
    }
}
