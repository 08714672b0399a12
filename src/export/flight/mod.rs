//! Keeps the last rows of a trace, and writes them as a dataset of its own whenever that is asked for.
//!
//! Rows are written by another thread, so that the correlator never waits for the disk, and a disk that is full
//! costs one dataset and not the trace.

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod flight_tests;
pub(crate) mod window;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::base::text;
use crate::export::dataset::described::{Described, Forgotten, RUN};
use crate::export::dataset::stream::Limits;
use crate::export::dataset::{DatasetWriter, Options};
use crate::export::files::directory::Directory;
use crate::export::flight::window::{Window, WindowSnapshot};
use crate::export::reading::shift::{END, shift};
use crate::export::rotating::periods::{Notify, Retention};
use crate::export::rotating::{Moment, fact, nanoseconds, next_name, refuse_dataset};
use crate::inflight::{InFlight, Operation, OperationKind};
use crate::rows::{Coverage, Meta, Row, SEQ_BITS, Span};
use crate::vocabulary::{flag, intern};

/// How long what is over is remembered at least: a device may be asked to write long after the process that wrote is gone.
const REMEMBERED: Duration = Duration::from_mins(2);
/// Datasets that have their rows already and are not written yet: one is being written, one waits.
const ROOM: usize = 2;
/// Operations in flight that are written with their stacks.
const STACKS: usize = 64;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    pub time: Duration,
    /// Bytes of memory.
    pub memory: u64,
}

/// Why a dataset is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// In words.
    pub text: String,
    /// When that was, since the start of the trace.
    pub at_ns: i64,
    /// The call that it was.
    pub span_id: Option<i64>,
}

impl Why {
    /// For this reason and a later one.
    #[must_use]
    pub fn and(self, later: &Self) -> Self {
        let known = self.text.split("; ").any(|text| text == later.text);
        let text = if known { self.text } else { format!("{}; {}", self.text, later.text) };
        // About a call, if one of them is.
        let (at_ns, span_id) = match (self.span_id, later.span_id) {
            (Some(id), None) => (self.at_ns, Some(id)),
            (_, id) => (later.at_ns, id),
        };
        Self { text, at_ns, span_id }
    }
}

/// A dataset to write.
struct Job {
    at: Moment,
    why: Why,
    time: Duration,
    snapshot: WindowSnapshot,
    /// What holds for all of it.
    run: Vec<Row>,
    open: Vec<Span>,
    in_flight: Option<InFlight>,
}

/// Keeps rows. What was not asked for when it is dropped or finished is forgotten.
pub struct FlightWriter {
    window: Window,
    described: Described,
    length: Length,
    /// Verdicts on whole layers, which are on the time until they are given.
    layers: Vec<Coverage>,
    /// When which chunk began.
    numbers: VecDeque<(Duration, u32)>,
    /// A dataset that was asked for, with what was in flight: its rows are taken when there is room.
    asked: Option<(Why, Option<Arc<InFlight>>)>,
    to: Option<Sender<Job>>,
    /// Datasets that have their rows and are not written yet.
    queued: Arc<AtomicUsize>,
    thread: Option<JoinHandle<Result<()>>>,
    /// Rows on their way.
    rows: Vec<Row>,
}

impl FlightWriter {
    /// Makes or takes over the directory that datasets will be in. `keep`: so many bytes at most in all together. `notify` is
    /// given its messages by another thread.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub fn create(
        options: Options<'_>,
        length: Length,
        keep: Option<u64>,
        notify: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self> {
        let privileged = nix::unistd::geteuid().is_root();
        let directory = Arc::new(Directory::take(options.path, options.owner, privileged)?);
        refuse_dataset(options.path, &directory)?;
        let queued = Arc::new(AtomicUsize::new(0));
        let (to, jobs) = mpsc::channel();
        let notify: Notify = Arc::new(notify);
        let writer = Writer {
            datasets: Retention::new(Arc::clone(&directory), keep, Arc::clone(&notify)),
            directory,
            keep,
            path: options.path.to_owned(),
            owner: options.owner,
            privileged,
            host: options.host.to_owned(),
            views: options.views.to_owned(),
            queued: Arc::clone(&queued),
            notify,
        };
        let thread = std::thread::Builder::new().name("datasets".into()).spawn(move || writer.run(&jobs));
        Ok(Self {
            window: Window::new(length.time, usize::try_from(length.memory).unwrap_or(usize::MAX)),
            described: Described::default(),
            length,
            layers: Vec::new(),
            numbers: VecDeque::from([(Duration::ZERO, 0)]),
            asked: None,
            to: Some(to),
            queued,
            thread: Some(thread.context("thread for datasets")?),
            rows: Vec::new(),
        })
    }

    /// Keeps a row.
    pub fn push(&mut self, row: Row) {
        match row {
            Row::Coverage(verdict) if verdict.target.is_empty() && verdict.symbol.is_empty() => {
                if !self.layers.contains(&verdict) {
                    self.layers.push(verdict);
                }
            }
            row => {
                if let Row::Meta(Meta { key, value }) = &row
                    && key == "t0_ns"
                {
                    self.described.push(fact(RUN, value.clone()), &mut self.rows);
                }
                self.described.push(row, &mut self.rows);
                self.rows.drain(..).for_each(|row| self.window.push(row));
            }
        }
    }

    /// Forgets what is too old or too much; returns which entities must be described anew if they are used again. `elapsed` is
    /// the time since the start of the trace.
    ///
    /// # Errors
    /// When rows cannot be packed.
    pub fn tick(&mut self, elapsed: Duration) -> Result<Forgotten> {
        if self.window.is_due(elapsed) { self.seal(elapsed) } else { Ok(Forgotten::default()) }
    }

    fn seal(&mut self, elapsed: Duration) -> Result<Forgotten> {
        self.window.seal(elapsed)?;
        // The first chunk that may still be there, or is not older than what is remembered.
        let remembered = REMEMBERED.max(self.length.time);
        let is_old = |at: &Duration| at.saturating_add(remembered) < elapsed;
        while self.numbers.get(1).is_some_and(|(at, _)| is_old(at)) {
            self.numbers.pop_front();
        }
        let first = self.numbers.front().map_or(0, |(_, number)| *number);
        let forgotten = self.described.end_since(first);
        self.numbers.push_back((elapsed, self.described.number()));
        Ok(forgotten)
    }

    /// The path of a file.
    pub fn path(&self, file_id: i32) -> Option<&str> {
        self.described.file(file_id)?.path.as_deref()
    }

    /// Asks for a dataset of what is there, with what was in flight. One that waits already is written for both reasons.
    pub fn ask(&mut self, why: Why, in_flight: Option<Arc<InFlight>>) {
        self.asked = Some(match self.asked.take() {
            Some((first, before)) => (first.and(&why), in_flight.or(before)),
            None => (why, in_flight),
        });
    }

    /// Is one asked for whose rows were not taken yet?
    pub const fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// May its rows be taken? When the disk is slow, they may not pile up.
    pub fn has_room(&self) -> bool {
        self.queued.load(Ordering::Acquire) < ROOM
    }

    /// Is all written whose rows were taken?
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.queued.load(Ordering::Acquire) == 0
    }

    /// Takes the rows of the dataset that was asked for, and has it written. The trace goes on meanwhile.
    ///
    /// # Errors
    /// When rows cannot be packed, or the thread that writes has failed.
    pub fn write(&mut self, at: Moment) -> Result<Forgotten> {
        let Some((why, in_flight)) = self.asked.take() else { return Ok(Forgotten::default()) };
        let in_flight = in_flight.as_deref();
        let open = in_flight.map_or_else(Vec::new, |now| self.unfinished(now));
        for call in &open {
            // Only for what describes it.
            self.described.push(Row::Span(Box::new(call.clone())), &mut self.rows);
            self.rows.drain(..).filter(|row| !matches!(row, Row::Span(_))).for_each(|row| self.window.push(row));
        }
        let forgotten = self.seal(at.elapsed)?;
        let mut run = Vec::new();
        self.described.run(&mut run);
        run.extend(std::mem::take(&mut self.layers).into_iter().map(Row::Coverage));
        let in_flight = in_flight.filter(|now| !now.operations.is_empty()).map(|now| {
            let operations = now.operations.iter().take(STACKS).cloned().collect();
            InFlight { at_ns: now.at_ns, operations }
        });
        let job = Job { at, why, time: self.length.time, snapshot: self.window.snapshot(), run, open, in_flight };
        self.queued.fetch_add(1, Ordering::AcqRel);
        let sent = self.to.as_ref().is_some_and(|to| to.send(job).is_ok());
        if sent { Ok(forgotten) } else { Err(anyhow!("the thread for datasets has failed")) }
    }

    /// Waits until all that was asked for is on the device.
    ///
    /// # Errors
    /// When one of them could not be written.
    pub fn finish(mut self) -> Result<()> {
        self.to = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().map_err(|_| {
            anyhow!("the thread for datasets panicked: a bug of iotrace-bpf; please report the lines above")
        })?
    }

    /// Calls in flight as rows. The call that waits for a request of a device stands for it.
    fn unfinished(&self, now: &InFlight) -> Vec<Span> {
        let operations = || now.operations.iter().filter(|o| o.kind != OperationKind::Request);
        let named = || operations().flat_map(|o| &o.calls).filter_map(|call| Some((call.id, call.file.as_deref()?)));
        // Of files that had the path one after the other it is the last.
        let mut files: HashMap<&str, Option<i32>> = named().map(|(_, path)| (path, None)).collect();
        for file in self.described.files().filter(|file| !file.unlinked) {
            if let Some(last) = file.path.as_deref().and_then(|path| files.get_mut(path)) {
                *last = (*last).max(Some(file.file_id));
            }
        }
        let files: HashMap<i64, i32> = named().filter_map(|(id, path)| Some((id, (*files.get(path)?)?))).collect();
        let mut open: Vec<Span> = operations().flat_map(|o| self.open(o, now.at_ns)).collect();
        for call in &mut open {
            call.file_id = files.get(&call.span_id).copied();
        }
        open
    }

    /// The calls of an operation, from the outermost to the innermost.
    fn open(&self, operation: &Operation, at_ns: i64) -> Vec<Span> {
        let Operation { calls, tid, pid, .. } = operation;
        let root_id = calls.first().map_or(0, |call| call.id);
        let lasted = |call: &crate::inflight::Open| at_ns.saturating_sub(call.start_ns).max(0);
        let mut open = Vec::new();
        for (depth, call) in calls.iter().enumerate() {
            let (Some(thread), Ok(op)) = (self.described.thread((call.id >> SEQ_BITS) as i32), intern(&call.op)) else {
                continue;
            };
            let process = self.described.process(thread.process_ix);
            let dur_ns = lasted(call);
            open.push(Span {
                parent_id: depth.checked_sub(1).and_then(|outer| Some(calls.get(outer)?.id)),
                root_id,
                depth: i8::try_from(depth).unwrap_or(i8::MAX),
                layer_top: calls[..depth].iter().all(|outer| outer.layer != call.layer),
                pid: *pid as i32,
                tid: if *tid == 0 { thread.tid } else { *tid as i32 },
                rank: process.and_then(|p| p.rank),
                self_ns: dur_ns - calls.get(depth + 1).map_or(0, lasted),
                offset: call.offset,
                req_bytes: call.bytes,
                flags: flag::UNFINISHED,
                ..Span::new(call.id, (call.layer, op, call.kind), thread.process_ix, (call.start_ns, dur_ns))
            });
        }
        open
    }
}

/// The thread that writes.
struct Writer {
    directory: Arc<Directory>,
    datasets: Retention,
    keep: Option<u64>,
    path: PathBuf,
    owner: Option<(u32, u32)>,
    privileged: bool,
    host: String,
    views: String,
    queued: Arc<AtomicUsize>,
    notify: Notify,
}

impl Writer {
    fn run(mut self, jobs: &Receiver<Job>) -> Result<()> {
        let (mut written, mut failed, mut last) = (0, 0, String::new());
        for job in jobs {
            let why = text::escape(&job.why.text);
            match self.write(job) {
                Ok((name, since, calls)) => {
                    written += 1;
                    let (to, since) = (self.path.join(name), text::time(nanoseconds(since)));
                    (self.notify)(&format!("{why}: {calls} calls of the last {since} are in {}", to.display()));
                }
                Err(e) => {
                    failed += 1;
                    // What was left of it was removed; the error has the cause.
                    last = format!("{}: {}", self.path.display(), e.root_cause());
                    (self.notify)(&format!(
                        "{why}: warning: no dataset could be written to {last}; the trace goes on, and so does --flight"
                    ));
                }
            }
            self.queued.fetch_sub(1, Ordering::AcqRel);
        }
        if failed > 0 {
            return Err(anyhow!(
                "{failed} of {} datasets could not be written; the last one to {last}",
                written + failed
            ));
        }
        if written == 0 {
            (self.notify)("no dataset was written: nothing asked for one");
        }
        Ok(())
    }

    /// Name, time and calls of the dataset.
    fn write(&mut self, job: Job) -> Result<(String, Duration, usize)> {
        if !self.directory.is_there() {
            self.directory = Arc::new(Directory::take(&self.path, self.owner, self.privileged)?);
            self.datasets = Retention::new(Arc::clone(&self.directory), self.keep, Arc::clone(&self.notify));
        }
        let since = job.at.elapsed.saturating_sub(job.snapshot.from);
        let name = next_name(&self.directory, job.at.wall)?;
        let directory = self.directory.create_within(&name)?;
        let writer = DatasetWriter::create_in(directory, &self.host, &self.views, Limits::default());
        match writer.and_then(|writer| fill(writer, job)) {
            Ok(calls) => {
                self.datasets.written(&name);
                Ok((name, since, calls))
            }
            Err(e) => {
                self.discard(&name);
                Err(e)
            }
        }
    }

    fn discard(&self, name: &str) {
        if let Err(e) = self.directory.discard(name) {
            (self.notify)(&format!("warning: {e:#}"));
        }
    }
}

/// The rows of a dataset, whose times count from a whole second, so that bins of time stay what they are.
fn fill(mut writer: DatasetWriter, job: Job) -> Result<usize> {
    let Job { at, why, time, snapshot, run, open, in_flight } = job;
    let began = Duration::from_secs(snapshot.from.as_secs());
    let shifted = nanoseconds(began);
    let from = nanoseconds(snapshot.from) - shifted;
    let mut facts = at.facts(began).to_vec();
    facts.extend([
        fact(END, nanoseconds(at.elapsed).to_string()),
        fact("trigger", why.text),
        fact("trigger_ns", why.at_ns.saturating_sub(shifted).to_string()),
        fact("flight_ns", nanoseconds(time).to_string()),
        fact("flight_from_ns", from.to_string()),
    ]);
    facts.extend(why.span_id.map(|id| fact("trigger_span_id", id.to_string())));
    facts.extend(in_flight.map(|now| fact("in_flight", now.shifted(shifted).text())));
    let mut push = |row| writer.push(shift(row, shifted));
    run.into_iter().chain(facts).try_for_each(&mut push)?;
    let calls = snapshot.rows(open, push)?;
    writer.finish()?;
    Ok(calls)
}
