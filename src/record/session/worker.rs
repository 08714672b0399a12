//! The thread between the rings and the dataset: decodes, correlates, writes.

use crate::base::notices::Notices;
use crate::baseline::Baseline;
use crate::cli::trigger::Trigger;
use crate::correlate::{Config, Correlator, cgroup, give_back};
use crate::event::wire::{Decoder, Record};
use crate::event::{Event, Mounted};
use crate::export::{Forgotten, Moment};
use crate::loader::kernel::rings::{Batch, Drained, Gauges, now};
use crate::loader::processes::containers::Containers;
use crate::loader::processes::mounts::known::{KnownMounts, NewMounts};
use crate::loader::processes::stripes::Stripes;
use crate::loader::processes::{existing, limits, users};
use crate::metrics::endpoint::Shared;
use crate::record::flight::trigger::{self, Found};
use crate::record::flight::{Alarm, By, SharedAlarm};
use crate::record::output::Output;
use crate::record::output::memory::Memory;
use crate::record::readahead::ReadAhead;
use crate::record::session::detail::Chooser;
use crate::record::session::live::LiveState;
use crate::record::session::note::Note;
use crate::record::session::watch::Watch;
use crate::record::wall;
use crate::rows::{Loss, Row};
use crate::summary::From;
use anyhow::{Context as _, Error, Result};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

/// What the worker needs.
pub struct Worker {
    pub writer: Output,
    pub config: Config,
    pub mounts: KnownMounts,
    pub gauges: Arc<Gauges>,
    /// What the dashboard or `--batch` shows, if one of them runs.
    pub current: Option<Arc<LiveState>>,
    /// Totals for `--metrics`.
    pub totals: Option<Arc<Shared>>,
    /// Triggers of a dataset of what is kept in memory, and what takes their requests.
    pub triggers: Vec<Trigger>,
    /// Calls that are recorded besides sums.
    pub chooser: Option<Chooser>,
    /// Reads ahead for programs, if that is asked for.
    pub ahead: Option<ReadAhead>,
    /// Compares calls with those of earlier runs, if that is asked for.
    pub baseline: Option<Baseline>,
    pub alarm: Option<SharedAlarm>,
    /// Gets the failure when the dataset cannot be written any more.
    pub notices: Notices,
    pub inbox: Receiver<Drained>,
    /// Not bounded, unlike the inbox: the session must never wait here, for targets may be stopped until it acts.
    pub notes: Receiver<Note>,
}

/// How the work ended.
pub struct Ended {
    /// What could not be written.
    pub written: Result<()>,
    /// What was counted in memory since then.
    pub counted: Option<String>,
}

/// Starts the worker; it ends after [`Drained::End`], or when nothing can be written and there is no other consumer.
pub fn start(worker: Worker) -> Result<JoinHandle<Ended>> {
    let alarm = worker.alarm.clone();
    let work = move || {
        let done = run(worker);
        // Also when it has failed: then no dataset is announced as written.
        drop(alarm.map(|alarm| alarm.with(Alarm::end)));
        done
    };
    std::thread::Builder::new().name("worker".into()).spawn(work).context("worker thread")
}

/// A ring that is read later may have files that were opened earlier on the same new mount: rings are read within so long.
const EARLIER_NS: u64 = 100_000_000;

struct State {
    writer: Output,
    correlator: Correlator,
    decoder: Decoder,
    /// Process index to pid, to look up what only /proc knows.
    pids: HashMap<u32, u32>,
    mounts: KnownMounts,
    /// Lists of them that the correlator got.
    lists: u64,
    /// Names of users, as the node has them.
    users: HashMap<u32, Option<String>>,
    /// Names of containers, as their runtimes keep them.
    containers: Containers,
    /// Whether there are control groups that the kernel side does not report: those of version 1.
    version_1: bool,
    stripes: Stripes,
    undecoded: i64,
    rows: Vec<Row>,
    current: Option<Arc<LiveState>>,
    totals: Option<Arc<Shared>>,
    triggers: Vec<Trigger>,
    chooser: Option<Chooser>,
    ahead: Option<ReadAhead>,
    baseline: Option<Baseline>,
    /// Applies rules while the trace goes on, where something waits for findings.
    watch: Option<Watch>,
    alarm: Option<SharedAlarm>,
    notices: Notices,
    /// Why the dataset could not be written any more, and what was counted since.
    failed: Option<Error>,
    memory: Memory,
    t0: u64,
}

fn run(worker: Worker) -> Ended {
    let Worker {
        writer,
        config,
        mounts,
        gauges,
        current,
        totals,
        triggers,
        chooser,
        ahead,
        baseline,
        alarm,
        notices,
        inbox,
        notes,
    } = worker;
    let (t0, aggregate) = (config.t0, config.aggregate);
    let memory = Memory::new(if aggregate { From::Sums } else { From::Spans });
    let finds = totals.is_some()
        || triggers.iter().any(|trigger| matches!(trigger, Trigger::Finding(_)))
        || chooser.as_ref().is_some_and(Chooser::needs_findings);
    // Only metrics have them.
    let own = totals.is_some();
    let mut correlator = Correlator::new(config);
    correlator.set_mounts(mounts.all().to_vec(), mounts.host());
    let mut s = State {
        writer,
        correlator,
        decoder: Decoder::default(),
        pids: HashMap::new(),
        lists: 0,
        rows: mounts.all().iter().cloned().map(|m| Row::Mount(Box::new(m))).collect(),
        mounts,
        users: HashMap::new(),
        containers: Containers::default(),
        version_1: existing::has_version_1(),
        stripes: Stripes::default(),
        undecoded: 0,
        current,
        totals,
        triggers,
        chooser,
        ahead,
        baseline,
        watch: finds.then(|| Watch::new(aggregate, own)),
        alarm,
        notices,
        failed: None,
        memory,
        t0,
    };
    let worked = s.work(&inbox, &notes, &gauges);
    let State { writer, correlator, failed, memory, .. } = s;
    let written = worked.and_then(|()| finish(writer, correlator));
    Ended { written: failed.map_or(written, Err), counted: memory.text() }
}

/// Closes what was written. What is known of files and processes is freed meanwhile, which may take as long; where no
/// thread can be had (`pids.max` of the control group), before.
fn finish(writer: Output, correlator: Correlator) -> Result<()> {
    std::thread::scope(|scope| {
        let _ = std::thread::Builder::new().name("free".into()).spawn_scoped(scope, move || drop(correlator));
        writer.finish()
    })
}

impl State {
    fn work(&mut self, inbox: &Receiver<Drained>, notes: &Receiver<Note>, gauges: &Gauges) -> Result<()> {
        while let Ok(drained) = inbox.recv() {
            self.mounts.begin_batch(now());
            // Notes first: what was known before a batch was drained is there when it is worked off.
            for note in notes.try_iter() {
                self.note(note)?;
            }
            match drained {
                Drained::Batch(batch) => {
                    gauges.records.fetch_add(batch.ends.len() as u64, Ordering::Relaxed);
                    self.batch(&batch);
                    for (key, striping) in self.stripes.take() {
                        self.correlator.is_striped(key, striping);
                    }
                }
                Drained::End => break,
            }
            self.write()?;
        }
        for note in notes.try_iter() {
            self.note(note)?;
        }
        for (key, striping) in self.stripes.last() {
            self.correlator.is_striped(key, striping);
        }
        self.correlator.finish(now(), &mut self.rows);
        self.write()?;
        self.rows.extend(self.ahead.take().map(ReadAhead::finish));
        self.learn();
        self.write()?;
        // What was asked for and is not here yet, and what the last rows asked for.
        if let (Some(why), Some(writer)) = (self.alarm.as_ref().and_then(|a| a.with(Alarm::end)), self.writer.flight())
        {
            writer.ask(why, None);
        }
        self.write_flight(true)
    }

    fn note(&mut self, note: Note) -> Result<()> {
        match note {
            Note::Events(events) => self.events(events),
            Note::Sums(batch) => self.events(batch.events),
            Note::Stack(stack_id, calls) => self.correlator.stack_taken(stack_id, &calls),
            Note::Frames(stack_id, frames) => self.correlator.stack_named(stack_id, frames, &mut self.rows),
            Note::Measured(measured) => self.correlator.set_measured(measured),
            Note::Rows(rows) => self.rows.extend(rows),
            Note::Rotate => {
                // Whole before and after: what is summed up goes with the calls.
                self.correlator.sum_up(now(), &mut self.rows);
                self.write()?;
                self.learn();
                self.write()?;
                let forgotten = self.writer.rotate(self.moment())?;
                self.forgotten(&forgotten);
            }
            Note::Write(why, in_flight) => {
                self.write()?;
                if let Some(writer) = self.writer.flight() {
                    writer.ask(why, in_flight);
                }
                self.write_flight(false)?;
            }
        }
        Ok(())
    }

    /// The calls so far are those of an earlier run from now on. That this fails is no failure of the trace.
    fn learn(&mut self) {
        let Some(baseline) = &mut self.baseline else { return };
        self.rows.extend(baseline.rows(now().saturating_sub(self.t0) as i64));
        let notes = [baseline.left_out(), baseline.learn(wall() as i64).err().map(|why| format!("{why:#}"))];
        for note in notes.into_iter().flatten() {
            self.notices.note(&format!("the baseline: {note}"));
        }
    }

    fn forgotten(&mut self, what: &Forgotten) {
        self.correlator.forgotten(&what.files, &what.objects, &what.handles, &what.paths);
    }

    fn moment(&self) -> Moment {
        let monotonic = now();
        Moment { elapsed: Duration::from_nanos(monotonic.saturating_sub(self.t0)), monotonic, wall: wall() }
    }

    /// Writes what is kept in memory, if that was asked for: when there is room for its rows, and at the `end` in any case.
    fn write_flight(&mut self, end: bool) -> Result<()> {
        let at = self.moment();
        if let Some(writer) = self.writer.flight().filter(|w| w.is_asked() && (end || w.has_room())) {
            let forgotten = writer.write(at)?;
            self.forgotten(&forgotten);
        }
        Ok(())
    }

    /// A row asks for a dataset.
    fn found(&mut self, Found { mut why, file_id }: Found) {
        let (Some(alarm), Some(writer)) = (&self.alarm, self.writer.flight()) else { return };
        if let Some(path) = file_id.and_then(|id| writer.path(id)) {
            why.text = format!("{}, {path}", why.text);
        }
        let elapsed = Duration::from_nanos(now().saturating_sub(self.t0));
        alarm.with(|alarm| alarm.ask(elapsed, why, By::Trigger));
    }

    fn batch(&mut self, batch: &Batch) {
        for record in batch.records() {
            match self.decoder.decode(record) {
                Ok(Record::Event(event)) => self.event(event),
                Ok(Record::Mapped(_) | Record::Busy(_) | Record::Partial) => {}
                Err(_) => self.undecoded += 1,
            }
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.pass_on();
        }
        let missed = self.chooser.as_mut().map_or(0, Chooser::missed);
        for (place, count) in [("decode", std::mem::take(&mut self.undecoded)), ("choice", missed)] {
            if count > 0 {
                let t_ns = now().saturating_sub(self.t0) as i64;
                self.rows.push(Row::Loss(Loss { t_ns, layer: None, cpu: None, place, count, process_ix: None }));
            }
        }
        if batch.watermark > 0 {
            self.correlator.advance(batch.watermark, &mut self.rows);
        }
    }

    fn event(&mut self, mut event: Event) {
        let mut details = Vec::new();
        if let Some(chooser) = &mut self.chooser {
            chooser.see(&event);
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.see(&event);
        }
        match &mut event {
            Event::Process { time, process, pid, runs, .. } => {
                self.pids.insert(*process, *pid);
                if *runs {
                    details = existing::details(*pid, *process, Some(*time));
                }
            }
            Event::Thread { process, pid, .. } => {
                self.pids.insert(*process, *pid);
            }
            Event::Belongs { process, uid, user, cgroup, container, .. } => {
                user.clone_from(self.users.entry(*uid).or_insert_with(|| users::name(*uid)));
                // Of one that is gone the parent's holds.
                if self.version_1 && cgroup.as_ref().is_none_or(|cgroup| cgroup.path == "/") {
                    *cgroup = self.pids.get(process).and_then(|pid| existing::cgroup(*pid));
                }
                let path = cgroup.as_ref().map_or("", |cgroup| cgroup.path.as_str());
                *container = cgroup::of(path).container.and_then(|id| self.containers.of(&id, path));
            }
            Event::File { time, key, pid, seen } => {
                self.stripes.opened(*key, &seen.fstype, *pid, &seen.path);
                self.look_for(*time, (seen.mount, seen.fs_dev.into()), *pid);
            }
            Event::Preopened { time, process, seen, .. } => {
                if let Some(pid) = self.pids.get(process) {
                    self.look_for(*time, (seen.mount, seen.fs_dev.into()), *pid);
                }
            }
            Event::Exit { process, .. } => {
                self.pids.remove(process);
            }
            _ => {}
        }
        self.correlator.push(event);
        for event in details {
            self.event(event);
        }
    }

    fn events(&mut self, events: Vec<Event>) {
        for event in events {
            self.event(event);
        }
    }

    /// Passes new mounts on when a file may be on one of them, in order of time: files on those before may still wait.
    fn look_for(&mut self, time: u64, mount: (i32, i64), pid: u32) {
        let NewMounts { new, replaced, since } = self.mounts.look_for(mount, pid);
        if new.is_empty() {
            return;
        }
        self.rows.extend(new.into_iter().map(|m| Row::Mount(Box::new(m))));
        self.lists += 1;
        let (mounts, host) = (self.mounts.all().to_vec(), self.mounts.host());
        let time = time.saturating_sub(EARLIER_NS).max(since);
        let mounted = Mounted { time, number: self.lists, mounts, host, replaced };
        self.correlator.push(Event::Mounted(Box::new(mounted)));
    }

    /// Applies rules, if something waits for findings and it is time to: a trigger that asks for a dataset.
    fn look(&mut self, elapsed: Duration) -> Option<Found> {
        let watch = self.watch.as_mut()?;
        watch.push(&self.rows);
        if let (Some(totals), Some(own)) = (&self.totals, watch.take_own()) {
            totals.with(|counts| counts.add_own(&own));
        }
        let findings = watch.look(elapsed)?;
        let new = watch.new_ones(&findings, |finding| trigger::wants(&self.triggers, finding));
        let found = new.first().map(|finding| trigger::of_finding(finding, elapsed.as_nanos() as i64));
        if let Some(chooser) = &mut self.chooser {
            chooser.findings(&findings);
        }
        if let Some(totals) = &self.totals {
            totals.with(|counts| counts.set_findings(&findings));
        }
        found
    }

    fn write(&mut self) -> Result<()> {
        if let Some(baseline) = &mut self.baseline {
            baseline.compare(&mut self.rows);
        }
        if let Some(current) = &self.current {
            current.push(&self.rows);
        }
        if let Some(totals) = &self.totals {
            totals.with(|counts| counts.push(&self.rows));
        }
        let elapsed = Duration::from_nanos(now().saturating_sub(self.t0));
        let critical = self.chooser.as_mut().and_then(|chooser| chooser.waits(&self.rows, elapsed));
        self.rows.extend(critical);
        let new = self.look(elapsed);
        let asks = self.alarm.as_ref().is_some_and(|alarm| !alarm.with(|a| a.is_asked()));
        let found = if asks { trigger::first(&self.triggers, &self.rows).or(new) } else { None };
        let mut rows = std::mem::take(&mut self.rows);
        let (many, counts) = (rows.len(), self.writer.may_give_up());
        for row in rows.drain(..) {
            if counts {
                self.memory.push(&row);
            }
            if let Err(why) = self.writer.push(row) {
                self.give_up(why)?;
            }
        }
        give_back(&mut rows, many);
        self.rows = rows;
        // When its file is known.
        if let Some(found) = found {
            self.found(found);
        }
        match self.writer.tick(elapsed) {
            Ok(forgotten) => self.forgotten(&forgotten),
            Err(why) => self.give_up(why)?,
        }
        self.memory.tick(elapsed.as_nanos() as i64);
        self.write_flight(false)
    }

    /// The dataset cannot be written any more: what comes is counted in memory, where that is for us to see to.
    fn give_up(&mut self, why: Error) -> Result<()> {
        let why = limits::explained(why);
        let Some(written) = self.writer.give_up() else { return Err(why) };
        let t_ns = now().saturating_sub(self.t0) as i64;
        let lost = self.memory.begin(t_ns, written);
        // How many calls sums are of that were not written is not known.
        let what = if lost > 0 {
            format!("{lost} calls that were not in closed parts are lost")
        } else {
            "what was not in closed parts is lost".to_owned()
        };
        self.notices.print(&format!("{why:#}; {what}; calls are only counted in memory from now on"));
        self.failed = Some(why);
        let count = i64::try_from(lost).unwrap_or(i64::MAX);
        let loss = Row::Loss(Loss { t_ns, layer: None, cpu: None, place: "unwritten", process_ix: None, count });
        self.memory.push(&loss);
        if let Some(current) = &self.current {
            current.push(std::slice::from_ref(&loss));
        }
        if let Some(totals) = &self.totals {
            totals.with(|counts| counts.push(std::slice::from_ref(&loss)));
        }
        Ok(())
    }
}
