//! A trace that is going on: its control messages, its ticks, and how it ends.

mod platform;
mod ticks;

pub use crate::record::session::run::ticks::Totals;

use crate::base::notices;
use crate::catalog::Phase;
use crate::cli::RecordArgs;
use crate::event::Event;
use crate::event::wire::Mapped;
use crate::export::{self, Why};
use crate::inflight::InFlight;
use crate::loader::kernel;
use crate::loader::kernel::counters::Counters;
use crate::loader::kernel::rings::now;
use crate::loader::kernel::sums::Taker;
use crate::loader::processes::guardian::{Guard, Guards};
use crate::loader::processes::launch::{self, Launched, Slave};
use crate::loader::session::Session;
use crate::record::flight::trigger::Stuck;
use crate::record::flight::viewer::{Show, Viewer};
use crate::record::flight::{By, Looked, Step};
use crate::record::job::ranks::Ranks;
use crate::record::output::display::{self, Display};
use crate::record::output::rotation::Rotation;
use crate::record::session::control::{Control, pass_on};
use crate::record::session::live::LiveState;
use crate::record::session::note::Note;
use crate::record::session::targets::Targets;
use crate::record::threads::Feeds;
use crate::record::{DUMP, TICK, WRITE, wall};
use crate::rows::{self, Loss, Meta, Row};
use crate::tui::terminal::status::Status;
use anyhow::{Result, anyhow};
use nix::sys::signal::Signal;
use std::io::{IsTerminal as _, PipeWriter, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a command may take to end after it got a signal, before the trace ends without it.
const GRACE: Duration = Duration::from_secs(5);
/// How often a dashboard gets the calls in flight.
const LOOK: Duration = Duration::from_secs(1);

/// A command that waits, and the process that holds it.
pub struct Started {
    pub command: Launched,
    /// Where there is no filter, what is missed is counted (`not_held`).
    pub guard: Option<Guard>,
    /// Of it and of what it begins. The first counter of a node takes the kernel 10 ms.
    pub counters: Counters,
}

/// A trace that is going on.
pub struct Run<'a, 'obj> {
    pub args: &'a RecordArgs,
    pub targets: &'a Targets,
    /// Numbers of processes that are kept for those that there are already.
    pub reserved: u32,
    pub session: &'a mut Session<'obj>,
    pub feeds: Feeds,
    pub control: &'a Receiver<Control>,
    /// The thread that reads the rings.
    pub drain: &'a JoinHandle<Result<()>>,
    pub t0: u64,
    pub totals: Totals,
    /// Let calls of the command, or of ranks, go on that wait.
    pub guards: Guards,
    /// The command while it is started.
    pub starting: Option<JoinHandle<Result<Started>>>,
    /// The terminal of its own, until it is started.
    pub slave: Option<Slave>,
    pub command: Option<Launched>,
    /// The ranks of a job on this node, which start their programs themselves.
    pub ranks: Option<Ranks<'a>>,
    pub viewer: &'a Viewer,
    /// A dump of what is in flight was asked for.
    pub dump: bool,
    /// When datasets end, if there is to be more than one.
    pub rotation: Option<Rotation>,
    /// Finds calls and requests that do not return.
    pub stuck: Option<Stuck>,
    /// Where a dashboard finds what is in flight.
    pub board: Option<Arc<LiveState>>,
    pub display: &'a mut Display,
    /// What the dashboard needs to begin, until it has begun.
    pub begin: Option<display::Begin<'a>>,
    /// A signal, the time or the user ended the trace, and not its targets.
    pub stopped: bool,
    /// The command got a signal to end: after the next one it is not waited for.
    pub warned: bool,
    /// How long it took until the programs were loaded.
    pub loading: Duration,
}

/// The cause of the end of a trace.
enum End {
    Signal(Signal),
    /// The user has left the dashboard.
    Left,
}

impl Run<'_, '_> {
    fn relative(&self) -> i64 {
        now().saturating_sub(self.t0) as i64
    }

    fn send(&self, rows: Vec<Row>) {
        // A worker that failed has given the reason; the end of the trace reports it.
        let _ = self.feeds.notes.send(Note::Rows(rows));
    }

    fn send_events(&self, events: impl IntoIterator<Item = Event>) {
        let events: Vec<Event> = events.into_iter().collect();
        if !events.is_empty() {
            let _ = self.feeds.notes.send(Note::Events(events));
        }
    }

    fn meta(&self, facts: &[(&str, String)]) {
        self.send(facts.iter().map(|(k, v)| Row::Meta(Meta { key: (*k).to_owned(), value: v.clone() })).collect());
    }

    pub fn send_meta(&self, host: &str, caps: &kernel::Capabilities) {
        let uname = nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned()).unwrap_or_default();
        let (command, mode) = self.targets.describe();
        self.meta(&[
            ("schema", export::SCHEMA.to_owned()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("host", host.to_owned()),
            ("kernel", uname),
            ("command", command),
            ("mode", mode.to_owned()),
            (rows::TRACER_PID, std::process::id().to_string()),
            ("clock", "CLOCK_MONOTONIC".to_owned()),
            ("t0_ns", self.t0.to_string()),
            ("t0_wall_ns", (wall().saturating_sub(now().saturating_sub(self.t0))).to_string()),
            ("library_tier", caps.lib_tier().map_or("none", kernel::LibTier::name).to_owned()),
            ("ring_bytes", self.args.ring_size.to_string()),
            ("calibration", self.session.fixed().as_ref().map_or_else(|e| format!("none: {e:#}"), ToString::to_string)),
        ]);
        self.meta(&platform::facts());
        if let Some(config) = &self.args.config {
            self.meta(&[("config", config.display().to_string())]);
        }
        if self.args.aggregates() {
            self.meta(&[(rows::AGGREGATE, "yes".to_owned())]);
        }
        if !self.args.detail.is_empty() {
            let asked: Vec<String> = self.args.detail.iter().map(ToString::to_string).collect();
            self.meta(&[(rows::DETAIL, asked.join(","))]);
        }
        let added = &self.args.added;
        let named = |p: &Phase| p.binary.as_ref().map_or(p.function.clone(), |file| format!("{}@{file}", p.function));
        let phases: Vec<String> = added.phase.iter().map(named).collect();
        let catalogs: Vec<String> = added.probes.iter().map(|p| p.display().to_string()).collect();
        for (key, texts) in [("phases", phases), ("probes", catalogs)] {
            if !texts.is_empty() {
                self.meta(&[(key, texts.join(" "))]);
            }
        }
        self.clock_pair();
    }

    /// Where the monotonic clock stands against the wall clock; several of them show a step.
    fn clock_pair(&self) {
        let (mono, wall) = (now(), wall());
        self.meta(&[(&format!("clock_pair_{mono}"), wall.to_string())]);
    }

    /// Until the command ends, the targets end, the time is over or a signal comes.
    pub fn trace(&mut self) -> Result<Option<u8>> {
        self.session.attach_hooks()?;
        self.feeds.stacks.start(self.session, &self.feeds.notes)?;
        let _ = self.feeds.notes.send(Note::Measured(self.session.measured()));
        if let Some(code) = self.begin_targets()? {
            return Ok(Some(code));
        }
        self.tick();
        self.report_costs();
        if let Some(begin) = self.begin.take() {
            self.display.begin(begin)?;
        }
        let result = self.wait();
        if let Some(board) = &self.board {
            // Calls that have not returned yet are sent as unfinished.
            board.set_in_flight(Arc::new(InFlight { at_ns: self.relative(), operations: Vec::new() }));
        }
        self.tick();
        self.report_costs();
        result
    }

    fn wait(&mut self) -> Result<Option<u8>> {
        let begun = Instant::now();
        let mut due = begun + TICK;
        let mut shown = Instant::now();
        let mut looked = begun;
        let mut signalled: Option<Instant> = None;
        let status_line = self.command.is_none() && self.shows_status();
        let mut last = 0;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            let end = match self.control.recv_timeout(left) {
                Ok(message) => self.handle(&message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the thread for signals ended")),
            };
            match end {
                // A command goes on when the dashboard is closed.
                Some(End::Left) if self.command.is_some() || self.ranks.is_some() => {}
                Some(End::Left) => {
                    self.stopped = true;
                    return Ok(Some(0));
                }
                Some(End::Signal(s)) => {
                    self.stopped = true;
                    let Some(command) = &self.command else { return Ok(Some(0)) };
                    if signalled.is_some() {
                        return Ok(Some(128 + s as u8));
                    }
                    pass_on(command, s);
                    signalled = Some(Instant::now());
                    self.warned = true;
                }
                None => {}
            }
            if let Some(command) = &mut self.command
                && let Some(status) = command.ended()?
            {
                self.display.command_ended(status);
                return Ok(Some(launch::shell_code(status) as u8));
            }
            if self.args.duration.is_some_and(|d| begun.elapsed() >= d) {
                self.stopped = true;
                return Ok(self.command.is_none().then_some(0));
            }
            if signalled.is_some_and(|at| at.elapsed() > GRACE) {
                return Ok(None);
            }
            if Instant::now() < due {
                continue;
            }
            due = Instant::now() + TICK;
            if self.drain.is_finished() {
                // Nowhere reads the rings any more.
                self.guards.leave();
                self.session.detach();
                return Ok(None);
            }
            self.regularly();
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look();
            }
            let no_targets = || !self.targets.may_come() && !self.session.has_targets();
            if self.ranks.as_ref().map_or_else(|| self.command.is_none() && no_targets(), Ranks::are_over) {
                return Ok(Some(0));
            }
            if status_line && shown.elapsed() >= Duration::from_secs(1) {
                shown = Instant::now();
                let records = self.feeds.gauges.records.load(Ordering::Relaxed);
                let status = self.status(begun.elapsed(), records, records - last);
                last = records;
                let _ = write!(std::io::stderr(), "\r\x1b[K{status}");
            }
        }
    }

    /// What there is to do at each tick.
    fn regularly(&mut self) {
        self.meet();
        self.session.tidy();
        let sampled = self.session.sample();
        self.send_events(sampled);
        let calls = self.session.look_at_paused();
        self.send_events(calls);
        self.tick();
        self.report_costs();
        self.rotate();
        self.write();
        self.dump();
    }

    /// Handles control messages; those that end a trace are the caller's.
    fn handle(&mut self, message: &Control) -> Option<End> {
        match *message {
            Control::Mapped(ref m) => self.mapped(m),
            Control::Busy(ref busy) => {
                let events = self.session.relieve(busy, self.relative());
                self.send_events(events);
            }
            Control::Waits(ref notice, ref guard) => {
                let since = Instant::now();
                let next = self.session.prepare(notice);
                guard.go_on(notice, next);
                self.totals.share.hold(since.elapsed());
            }
            Control::Signal(Signal::SIGCHLD) => {}
            Control::Signal(DUMP) => self.dump = true,
            Control::Signal(WRITE) => {
                self.ask(Why { text: "SIGUSR2".to_owned(), at_ns: self.relative(), span_id: None }, By::Hand);
            }
            Control::Signal(s) => return Some(End::Signal(s)),
            Control::Left => return Some(End::Left),
        }
        None
    }

    /// A signal that came while the trace began, if one did.
    pub fn asked_to_end(&mut self) -> Option<Signal> {
        while let Ok(message) = self.control.try_recv() {
            if let Some(End::Signal(s)) = self.handle(&message) {
                return Some(s);
            }
        }
        None
    }

    /// A target mapped a file that was not classified yet.
    fn mapped(&mut self, m: &Mapped) {
        if m.file.is_none() && !self.guards.is_empty() {
            return; // the first call of a process that was forked waits by itself
        }
        let new = self.session.attach_process(m.pid, m.file, m.moved);
        if self.guards.is_empty() {
            // It went on while the probes were attached: its first calls may be missing.
            let t_ns = self.relative();
            let loss =
                |layer| Loss { t_ns, layer: Some(layer), cpu: None, place: "not_held", process_ix: None, count: 1 };
            let rows: Vec<Row> = new.into_iter().map(|layer| Row::Loss(loss(layer))).collect();
            self.totals.lost += rows.len() as u64;
            self.send(rows);
        }
    }

    /// Prints what is in flight, if that was asked for; when the last dump is not finished yet, later.
    fn dump(&mut self) {
        if !self.dump {
            return;
        }
        self.dump = match self.session.look() {
            // On the dashboard's terminal the dump is its screen.
            Ok(look) => !self.viewer.show(look, if self.display.shows() { Show::Keep } else { Show::Print }),
            Err(e) => {
                let _ = writeln!(std::io::stderr(), "iotrace-bpf: {e:#}");
                false
            }
        };
    }

    /// Publishes what the last sample found, and samples again. Where the kernel refuses that, nothing is published.
    fn look(&mut self) {
        if self.board.is_none() && self.stuck.is_none() {
            return;
        }
        if let Ok(look) = self.session.look() {
            let last = self.viewer.last();
            if let Some(why) = self.stuck.as_mut().and_then(|stuck| stuck.find(&last)) {
                self.ask(why, By::Trigger);
            }
            if let Some(board) = &self.board {
                board.set_in_flight(last);
            }
            self.viewer.show(look, Show::Keep);
        }
    }

    fn since_t0(&self) -> Duration {
        Duration::from_nanos(now().saturating_sub(self.t0))
    }

    /// A dataset of what is kept in memory is asked for.
    fn ask(&self, why: Why, by: By) {
        if let Some(alarm) = &self.feeds.alarm {
            alarm.with(|alarm| alarm.ask(self.since_t0(), why, by));
        }
    }

    /// Has a dataset of what is kept in memory written when it is time for it, and what is in flight was looked at, which takes
    /// its time: never waited for here.
    fn write(&mut self) {
        let Some(alarm) = &self.feeds.alarm else { return };
        match alarm.with(|alarm| alarm.step(self.since_t0(), &self.viewer.last())) {
            Step::Nothing => {}
            Step::Look => {
                let looked = match self.session.look() {
                    Ok(look) => {
                        if self.viewer.show(look, Show::Keep) {
                            Looked::Begun
                        } else {
                            Looked::Busy
                        }
                    }
                    Err(_) => Looked::Refused,
                };
                alarm.with(|alarm| alarm.looked(looked));
            }
            Step::Write(why, in_flight) => {
                self.send(self.uncovered().into_iter().map(Row::Coverage).collect());
                // A worker that failed has given the reason.
                let _ = self.feeds.notes.send(Note::Write(why, in_flight));
            }
        }
    }

    /// Is there a terminal for a progress line?
    fn shows_status(&self) -> bool {
        std::io::stderr().is_terminal() && !self.display.shows() && !self.args.output_args.quiet
    }

    fn status(&self, elapsed: Duration, records: u64, per_second: u64) -> Status {
        Status {
            elapsed,
            processes: self.session.targets(),
            records,
            per_second,
            lost: self.totals.lost,
            attached: self.totals.attached,
            probes: self.totals.probes,
        }
    }

    /// Begins a new dataset when it is time for it. The verdicts on what was not seen are on the time until now.
    fn rotate(&mut self) {
        if self.rotation.as_mut().is_some_and(Rotation::due) {
            self.send(self.uncovered().into_iter().map(Row::Coverage).collect());
            // A worker that failed has given the reason.
            let _ = self.feeds.notes.send(Note::Rotate);
        }
    }

    /// Detaches, lets the worker finish, waits for a command that goes on. Its exit status if it was waited for.
    pub fn end(&mut self, stop: PipeWriter) -> Option<u8> {
        let still = self.session.targets();
        self.guards.leave();
        let detaching = Instant::now();
        let _ = self.feeds.notes.send(Note::Events(self.session.detach()));
        self.feeds.sampler = None;
        self.feeds.stacks.end();
        for (key, took) in
            [("load_ns", self.loading), ("attach_ns", self.session.attaching()), ("detach_ns", detaching.elapsed())]
        {
            self.meta(&[(key, took.as_nanos().to_string())]);
        }
        if let Some(Err(e)) = self.feeds.sums.take().map(Taker::finish) {
            let _ = writeln!(std::io::stderr(), "iotrace-bpf: sums are missing: {e:#}");
            self.totals.lost += 1;
            let loss =
                Loss { t_ns: self.relative(), layer: None, cpu: None, place: "sums", process_ix: None, count: 1 };
            self.send(vec![Row::Loss(loss)]);
        }
        self.tick();
        let uncovered = self.uncovered();
        self.warn(&uncovered);
        self.send(uncovered.into_iter().map(Row::Coverage).collect());
        self.clock_pair();
        self.meta(&[("end_ns", self.relative().to_string())]);
        drop(stop);
        if self.command.is_none() && self.shows_status() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        let Some(command) = &mut self.command else { return None };
        if let Ok(Some(status)) = command.ended() {
            self.display.command_ended(status);
            if still > 0 && !self.targets.may_come() {
                notices::note(&format!(
                    "the command has ended; {still} of its processes go on and are no longer traced"
                ));
            }
            return Some(launch::shell_code(status) as u8);
        }
        None
    }
}
