//! The summary of a trace that goes on: fed by the worker, looked at by the dashboard.

use crate::base::notices::Notices;
use crate::export::Why;
use crate::inflight::InFlight;
use crate::loader::kernel::rings::{Gauges, now};
use crate::record::flight::{By, SharedAlarm};
use crate::record::output::destination::{self, Wanted};
use crate::record::session::process::{self, Reader};
use crate::record::session::sampler::Board;
use crate::record::terminal::Terminal;
use crate::rows::Row;
use crate::summary::Summary;
use crate::summary::filter::Filter;
use crate::summary::selection;
use crate::summary::view::{
    Command, CommandOutput, DirtySample, Focus, ProcessDetail, Recording, Snapshot, Source, Stacks, Status,
};
use nix::sys::signal::Signal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often /proc and the file system are read for what has no events.
const LOOK: Duration = Duration::from_secs(1);

/// What the worker feeds.
pub struct LiveState {
    state: Mutex<State>,
    /// What had not returned when that was looked at last.
    in_flight: Mutex<Option<Arc<InFlight>>>,
    gauges: Arc<Gauges>,
    node: Arc<Board>,
    t0: u64,
}

#[derive(Clone)]
struct State {
    all: Summary,
    /// Of the calls that fulfil the filter, since it was set.
    filtered: Option<(Arc<Filter>, Summary)>,
}

impl State {
    /// Sums of the calls that fulfil the filter.
    fn choose(&mut self, filter: Option<&Arc<Filter>>) {
        match filter {
            None => self.filtered = None,
            Some(filter) if self.filtered.as_ref().is_none_or(|(f, _)| f != filter) => {
                self.filtered = Some((Arc::clone(filter), self.all.filtered(Arc::clone(filter))));
            }
            Some(_) => {}
        }
    }

    fn chosen(&self) -> &Summary {
        self.filtered.as_ref().map_or(&self.all, |(_, s)| s)
    }
}

impl LiveState {
    pub fn new(t0: u64, summary: Summary, gauges: Arc<Gauges>, node: Arc<Board>) -> Self {
        let state = State { all: summary, filtered: None };
        Self { state: Mutex::new(state), in_flight: Mutex::default(), gauges, node, t0 }
    }

    /// Sets what has entered and not returned.
    pub fn set_in_flight(&self, now: Arc<InFlight>) {
        *self.in_flight.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    fn in_flight(&self) -> Option<Arc<InFlight>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes rows, in the order of the correlator.
    pub fn push(&self, rows: &[Row]) {
        let now_ns = self.now_ns();
        let mut state = self.state();
        let State { all, filtered } = &mut *state;
        for summary in std::iter::once(all).chain(filtered.as_mut().map(|(_, s)| s)) {
            summary.tick(now_ns);
            for row in rows {
                summary.push(row);
            }
        }
    }

    fn now_ns(&self) -> i64 {
        now().saturating_sub(self.t0) as i64
    }
}

/// A trace that goes on, as the dashboard sees it.
pub struct Live {
    current: Arc<LiveState>,
    /// Where the dataset is written, and whether the user asked for that.
    path: PathBuf,
    asked: bool,
    wanted: Wanted,
    /// Messages about datasets.
    notices: Notices,
    /// Takes requests for a dataset of what is kept in memory, if that is where rows go.
    flight: Option<SharedAlarm>,
    host: String,
    looked: Instant,
    own: Status,
    records: u64,
    cpu: Duration,
    /// What was there when the user stopped to look: a window is on that.
    frozen: Option<Box<State>>,
    last: Option<(Focus, u64, Beside, Arc<Snapshot>)>,
    /// That of the command, if the dashboard has the user's.
    terminal: Option<Terminal>,
    /// Reads where threads of a process are, once the user has wanted that.
    reader: Option<Reader>,
}

/// What is shown besides the summary.
#[derive(Debug, Clone, Default, PartialEq)]
struct Beside {
    output: Option<Arc<CommandOutput>>,
    /// Of the process whose stacks are wanted.
    stacks: Option<Arc<Stacks>>,
}

impl Beside {
    fn put(&self, mut into: Snapshot) -> Snapshot {
        into.output.clone_from(&self.output);
        if let Some(stacks) = &self.stacks {
            into.process = Some(ProcessDetail::Stacks(Arc::clone(stacks)));
        }
        into
    }
}

impl Live {
    pub fn new(
        current: Arc<LiveState>,
        path: &Path,
        asked: bool,
        wanted: Wanted,
        notices: Notices,
        host: &str,
    ) -> Self {
        Self {
            current,
            path: path.to_owned(),
            asked,
            wanted,
            notices,
            flight: None,
            host: host.to_owned(),
            looked: Instant::now(),
            own: Status::default(),
            records: 0,
            cpu: own_cpu(),
            frozen: None,
            last: None,
            terminal: None,
            reader: None,
        }
    }

    /// The command has this terminal.
    #[must_use]
    pub fn with_terminal(mut self, terminal: Terminal) -> Self {
        self.terminal = Some(terminal);
        self
    }

    fn beside(&mut self, focus: &Focus) -> Beside {
        let stacks = focus.stacks_of().map(|of| {
            if self.reader.is_none() {
                self.reader = Reader::start().ok();
            }
            let seen = self.reader.as_mut().and_then(|reader| reader.of(of.pid));
            Arc::new(process::stacks(seen.as_deref(), self.current.in_flight().as_deref()))
        });
        Beside { output: self.terminal.as_ref().map(Terminal::output), stacks }
    }

    /// Sends a signal to a process, if it is still the one that is traced.
    fn signal(&self, (process_ix, pid): (i32, i32), signal: Signal) -> Result<String, String> {
        let began = self.current.state().all.runs_since(process_ix, pid);
        let began = began.ok_or_else(|| format!("process {pid} is not traced, or has ended"))?;
        process::send(pid, began.saturating_add_unsigned(self.current.t0), signal)
    }

    /// Rows are kept in memory until a dataset of them is asked for.
    #[must_use]
    pub fn keeping(mut self, alarm: SharedAlarm) -> Self {
        self.flight = Some(alarm);
        self
    }

    /// What changes slowly, once a second.
    fn look(&mut self) {
        let elapsed = self.looked.elapsed();
        if elapsed < LOOK {
            return;
        }
        self.looked = Instant::now();
        self.terminal.iter().for_each(Terminal::take_size);
        let seconds = elapsed.as_secs_f64();
        let records = self.current.gauges.records.load(Ordering::Relaxed);
        self.own.events = records;
        self.own.events_per_s = (records - self.records) as f64 / seconds;
        self.records = records;
        self.own.ring_fill = Some(self.current.gauges.take_fill());
        let cpu = own_cpu();
        self.own.own_cpu = Some(cpu.saturating_sub(self.cpu).as_secs_f64() / seconds);
        self.cpu = cpu;
        self.own.own_memory = own_memory();
        let path = if self.asked { Some(self.path.clone()) } else { self.wanted.get() };
        // What is only kept in memory is not recorded.
        self.own.recording = path.filter(|_| self.flight.is_none()).map(|path| {
            let bytes = size(&self.path);
            let before = self.own.recording.as_ref().map_or(bytes, |r| r.bytes);
            let bytes_per_s = bytes.saturating_sub(before) as f64 / seconds;
            Recording { path: path.display().to_string(), bytes, bytes_per_s }
        });
        if let Some(sample) = dirty(self.current.now_ns()) {
            let mut state = self.current.state();
            if let Some((_, filtered)) = &mut state.filtered {
                filtered.dirty(sample);
            }
            state.all.dirty(sample);
        }
        self.last = None;
    }
}

impl Source for Live {
    fn snapshot(&mut self, focus: &Focus) -> Arc<Snapshot> {
        self.look();
        let beside = self.beside(focus);
        let current = Arc::clone(&self.current);
        let mut state = current.state();
        state.choose(focus.filter.as_ref());
        match (&focus.window, &mut self.frozen) {
            (None, frozen) => *frozen = None,
            (Some(_), Some(frozen)) => frozen.choose(focus.filter.as_ref()),
            (Some(_), frozen) => *frozen = Some(Box::new(state.clone())),
        }
        let summary = self.frozen.as_deref().unwrap_or(&state).chosen();
        if let Some((before, version, was, snapshot)) = &mut self.last
            && before == focus
            && *version == summary.version()
        {
            if *was != beside {
                // Output of the command, and nothing traced: all parts but this one are shared.
                *snapshot = Arc::new(beside.put(Snapshot::clone(snapshot)));
                *was = beside;
            }
            return Arc::clone(snapshot);
        }
        let (version, mut snapshot) = (summary.version(), summary.snapshot(focus));
        let (lost, lost_by_layer) = state.all.lost();
        drop(state);
        if focus.filter.is_some() {
            let mut notes = snapshot.notes.to_vec();
            notes.push("the filter is on what came since it was set, and on the last calls before".to_owned());
            snapshot.notes = notes.into();
        }
        if let Some(last) = self.notices.last() {
            snapshot.notes = snapshot.notes.iter().cloned().chain([last]).collect();
        }
        snapshot.inflight = current.in_flight();
        snapshot.recent_node = Some(Arc::new(current.node.with(|seen| seen.recent.clone())));
        let own = &self.own;
        snapshot.status = Status {
            events: own.events,
            events_per_s: own.events_per_s,
            ring_fill: own.ring_fill,
            own_cpu: own.own_cpu,
            own_memory: own.own_memory,
            recording: own.recording.clone(),
            // Never held back, whatever is looked at.
            lost,
            lost_by_layer,
            ..snapshot.status
        };
        let snapshot = Arc::new(beside.put(snapshot));
        self.last = Some((focus.clone(), version, beside, Arc::clone(&snapshot)));
        snapshot
    }

    fn command(&mut self, command: Command, focus: &Focus) -> Result<String, String> {
        match command {
            Command::StartRecording(_) | Command::StopRecording if self.flight.is_some() => {
                Err("--flight keeps the last of the trace in memory, and W writes it".to_owned())
            }
            Command::StartRecording(_) if self.asked => Err(format!("{} is recorded already", self.path.display())),
            Command::StartRecording(path) => {
                destination::free(&path).map_err(|e| format!("{e:#}"))?;
                let message = format!("all of the trace, from its beginning, is kept in {}", path.display());
                self.wanted.set(Some(path));
                Ok(message)
            }
            Command::WriteFlight => {
                let alarm = self.flight.as_ref().ok_or("nothing is kept in memory: that is what --flight is for")?;
                let at_ns = self.current.now_ns();
                let why = Why { text: "W on the dashboard".to_owned(), at_ns, span_id: None };
                let elapsed = Duration::from_nanos(at_ns.unsigned_abs());
                if !alarm.with(|alarm| alarm.ask(elapsed, why, By::Hand)) {
                    return Err("the trace has ended".to_owned());
                }
                Ok(format!("what is kept is written to a new dataset in {}", self.path.display()))
            }
            Command::StopRecording if self.asked => {
                Err("recorded until the trace ends, because --output asks for it".to_owned())
            }
            Command::StopRecording => {
                let was = self.wanted.get().ok_or("nothing is recorded")?;
                self.wanted.set(None);
                Ok(format!("{} is not written: only what is on the screen is kept", was.display()))
            }
            Command::Export(path) => {
                let state = self.current.state();
                let rows = self.frozen.as_deref().unwrap_or(&state).chosen().selection(focus);
                drop(state);
                selection::export(rows, &path, &self.host)
            }
            Command::Cancel => Err("nothing goes on that could be cancelled".to_owned()),
            Command::Signal { process_ix, pid, signal } => self.signal((process_ix, pid), signal),
            Command::Type(bytes) => {
                let terminal = self.terminal.as_ref().ok_or("there is no command on this dashboard")?;
                terminal.type_in(&bytes).map(|()| "typed on the terminal of the command".to_owned())
            }
        }
    }
}

pub(crate) fn own_cpu() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

pub(crate) fn own_memory() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split_whitespace().nth(1)?.parse::<u64>().ok()? * page_size())
}

fn page_size() -> u64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().map_or(4096, |n| n as u64)
}

/// The files in a dataset, or in a directory of datasets.
fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let below = |e: std::fs::DirEntry| match e.metadata() {
        Ok(m) if m.is_dir() => size(&e.path()),
        Ok(m) => m.len(),
        Err(_) => 0,
    };
    entries.map(below).sum()
}

/// What waits to be written on this node.
fn dirty(t_ns: i64) -> Option<DirtySample> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    let page = page_size() as i64;
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|l| l.split_once(' '));
        lines.find(|(n, _)| *n == name)?.1.trim().parse::<i64>().ok().map(|pages| pages * page)
    };
    Some(DirtySample {
        t_ns,
        dirty: value("nr_dirty")?,
        writeback: value("nr_writeback")?,
        background_threshold: value("nr_dirty_background_threshold"),
        threshold: value("nr_dirty_threshold"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::record::flight::Alarm;
    use crate::rows::Process;
    use crate::summary::From;
    use std::io::Write as _;

    fn live(current: Arc<LiveState>) -> Live {
        Live::new(current, Path::new("/all"), true, Wanted::default(), Notices::default(), "node1")
    }

    fn state() -> Arc<LiveState> {
        Arc::new(LiveState::new(now(), Summary::new(From::Spans).live(), Arc::default(), Arc::default()))
    }

    #[test]
    fn output_of_the_command_alone_makes_no_new_figures() {
        let (terminal, slave) = Terminal::open().unwrap();
        let mut live = live(state()).with_terminal(terminal.clone());
        // Not within this test.
        live.looked = Instant::now() + Duration::from_hours(1);
        let focus = Focus::default();
        let before = live.snapshot(&focus);
        assert!(Arc::ptr_eq(&before, &live.snapshot(&focus)));
        std::fs::File::from(slave.fd).write_all(b"hello\n").unwrap();
        while terminal.output().lines.is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let after = live.snapshot(&focus);
        assert_eq!(&*after.output.as_ref().unwrap().lines[0].text, "hello");
        assert!(Arc::ptr_eq(&before.overview, &after.overview) && Arc::ptr_eq(&before.history, &after.history));
        assert!(Arc::ptr_eq(&after, &live.snapshot(&focus)));
    }

    #[test]
    fn a_signal_is_for_a_traced_process_that_has_not_ended() {
        let current = state();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id() as i32;
        let mut process = Process::placeholder(1, 0);
        process.pid = pid;
        let began = process.clone();
        process.end_ns = Some(1);
        let mut live = live(Arc::clone(&current));
        let mut send = |process_ix, pid| {
            live.command(Command::Signal { process_ix, pid, signal: Signal::SIGKILL }, &Focus::default()).unwrap_err()
        };
        let refused = format!("process {pid} is not traced, or has ended");
        assert_eq!(send(1, pid), refused);
        current.push(&[Row::Process(Box::new(process))]);
        assert_eq!(send(1, pid), refused, "it has ended");
        current.push(&[Row::Process(Box::new(Process { start_ns: -10_000_000_000, ..began }))]);
        assert_eq!(send(1, pid), format!("process {pid} has ended, and another one has its number"));
        assert!(send(1, pid + 1).contains("is not traced"), "the number of another one");
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn with_the_flight_recorder_nothing_is_recorded_and_w_writes_until_the_trace_ends() {
        let alarm = SharedAlarm::new(Duration::from_secs(30));
        let mut live = live(state()).keeping(alarm.clone());
        live.looked = Instant::now().checked_sub(LOOK).unwrap();
        let focus = Focus::default();
        assert_eq!(live.snapshot(&focus).status.recording, None);
        for command in [Command::StartRecording("/mine".into()), Command::StopRecording] {
            assert!(live.command(command, &focus).unwrap_err().contains("W writes it"));
        }
        assert!(live.command(Command::WriteFlight, &focus).unwrap().contains("/all"));
        assert_eq!(alarm.with(Alarm::end).unwrap().text, "W on the dashboard");
        assert_eq!(live.command(Command::WriteFlight, &focus).unwrap_err(), "the trace has ended");
    }
}
