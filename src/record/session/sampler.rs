//! The thread that looks at the node and the counters of the traced processes while a trace goes on: what the kernel counts goes
//! to the dataset, to the dashboard, and to the metrics.

use crate::HashMap;
use crate::loader::kernel::counters::Counters;
use crate::loader::kernel::rings::{Gauges, now};
use crate::loader::processes::allocator::Trimming;
use crate::node::figures::{self, Digest, Figure, Reading};
use crate::node::{Missing, Recent, counters};
use crate::record::session::note::Note;
use crate::rows::{Meta, Metric, Row};
use anyhow::{Context as _, Result};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks while calls are recorded one by one, or a dashboard shows the node, and otherwise, in ns: as
/// long as the bins of `rollup` are.
const LOOK_NS: i64 = 100_000_000;
const SECOND_NS: i64 = 1_000_000_000;
/// Seconds over which the fullest ring is remembered.
const FILLS: usize = 60;
/// Seconds after which devices and interfaces are looked at anew.
const AGAIN: u32 = 10;

/// What looks are for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// A dashboard shows the last ones.
    pub shown: bool,
    /// The dataset has ten looks a second while records come, and not one.
    pub fine: bool,
}

/// What was seen last.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub readings: Vec<Reading>,
    pub recent: Recent,
    /// Everything that is read, and whether it is there.
    pub sources: Vec<(&'static str, bool)>,
    fills: VecDeque<f64>,
}

impl Seen {
    /// How full the fullest ring was in the last minute, 0 to 1.
    pub fn ring_fill(&self) -> f64 {
        self.fills.iter().copied().fold(0.0, f64::max)
    }
}

/// Where the thread leaves what it saw.
#[derive(Debug, Default)]
pub struct Board(Mutex<Seen>);

impl Board {
    /// Samples it, unless another sampler does.
    pub fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The thread, seen from outside. It ends when this is dropped.
pub struct Sampler {
    /// Dropped, it ends the thread.
    counted: Option<Sender<Counters>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Begins to look.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(t0: u64, board: Arc<Board>, gauges: Arc<Gauges>, notes: Sender<Note>, wanted: Wanted) -> Result<Self> {
        let (counted, inbox) = mpsc::channel();
        let work = move || {
            let mut looker = Looker::new(t0, board, gauges, notes, wanted);
            looker.look();
            // This thread has time: nothing waits for it.
            let mut trimming = Trimming::default();
            loop {
                match inbox.recv_timeout(looker.until_next()) {
                    Ok(counters) => looker.count(counters),
                    Err(RecvTimeoutError::Timeout) => looker.look_if_due(),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                trimming.trim_if_due();
            }
            looker.last();
        };
        let thread =
            std::thread::Builder::new().name("node".into()).spawn(work).context("thread that looks at the node")?;
        Ok(Self { counted: Some(counted), thread: Some(thread) })
    }

    /// From now on these are read, too.
    pub fn count(&self, counters: Counters) {
        // A thread that has ended reads nothing.
        let _ = self.counted.as_ref().map(|counted| counted.send(counters));
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.counted = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A file of /proc that stays open.
struct Source {
    path: &'static str,
    file: io::Result<File>,
    /// What it had the last time, and what that says.
    text: Vec<u8>,
    readings: Vec<Reading>,
    /// Does the dataset not have all of that?
    changed: bool,
}

impl Source {
    fn open(path: &'static str) -> Self {
        let file = File::open(path);
        let mut source = Self { path, file, text: Vec::new(), readings: Vec::new(), changed: false };
        // Pressure that was turned off when the kernel was started can be opened and not read.
        if let Err(e) = source.read(&mut Vec::new()) {
            source.file = Err(e);
        }
        source
    }

    /// Reads it into `text`; false when that is as it was. `bytes` is what it is read into.
    fn is_new(&mut self, bytes: &mut Vec<u8>) -> bool {
        // What cannot be read this time is read the next time.
        let is_new = self.read(bytes).is_ok() && *bytes != self.text;
        if is_new {
            std::mem::swap(bytes, &mut self.text);
        }
        is_new
    }

    /// All of it; nothing of what is not there.
    fn read(&self, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        let Ok(file) = &self.file else { return Ok(()) };
        let mut part = [0; 16_384];
        loop {
            match file.read_at(&mut part, bytes.len() as u64)? {
                0 => return Ok(()),
                n => bytes.extend_from_slice(&part[..n]),
            }
        }
    }
}

const STAT: usize = 0;
const MEMINFO: usize = 1;
const NETWORK: usize = 2;
const DISKS: usize = 3;
/// The rest is of pressure.
const PATHS: [&str; 7] = [
    "/proc/stat",
    "/proc/meminfo",
    "/proc/net/dev",
    "/proc/diskstats",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
];

/// What a reading is of.
type Key = (Figure, Arc<str>, &'static str);

fn key(reading: &Reading) -> Key {
    (reading.figure, Arc::clone(&reading.of), reading.part)
}

struct Looker {
    t0: u64,
    wanted: Wanted,
    /// How many records had come, and until when their time is looked at each time.
    records: u64,
    active_until_ns: i64,
    board: Arc<Board>,
    gauges: Arc<Gauges>,
    notes: Sender<Note>,
    sources: [Source; PATHS.len()],
    ticks_per_second: f64,
    bytes: Vec<u8>,
    /// The kernel may take back some of a CPU's waiting time; a total never goes back here.
    cpu: HashMap<&'static str, f64>,
    /// Devices that are no partitions, and devices and interfaces that are hardware.
    whole: HashMap<Arc<str>, bool>,
    hardware: HashSet<Arc<str>>,
    known_for: u32,
    /// All hardware that there was, which the dataset names.
    named: BTreeSet<Arc<str>>,
    /// What the dataset has.
    written: HashMap<Key, f64>,
    /// The last second in which counters were read, and the last interval of looks that were written.
    second: Option<i64>,
    sampled: Option<i64>,
    /// For the dataset, of this second.
    rows: Vec<Row>,
    counters: Counters,
    /// What they had then.
    counted: Vec<Reading>,
}

impl Looker {
    fn new(t0: u64, board: Arc<Board>, gauges: Arc<Gauges>, notes: Sender<Note>, wanted: Wanted) -> Self {
        let sources = PATHS.map(Source::open);
        let missing: Vec<Missing> = sources
            .iter()
            .filter_map(|s| Some(Missing { path: s.path, why: s.file.as_ref().err()?.to_string() }))
            .collect();
        let facts = missing.iter().map(|m| format!("{}: {}", m.path, m.why)).collect::<Vec<_>>().join("; ");
        board.with(|seen| {
            seen.sources = sources.iter().map(|s| (s.path, s.file.is_ok())).collect();
            seen.recent.missing = missing;
        });
        let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten();
        let looker = Self {
            t0,
            wanted,
            records: 0,
            active_until_ns: 0,
            board,
            gauges,
            notes,
            sources,
            ticks_per_second: ticks.map_or(100.0, |n| n as f64),
            bytes: Vec::new(),
            cpu: HashMap::default(),
            whole: HashMap::default(),
            hardware: HashSet::new(),
            known_for: 0,
            named: BTreeSet::new(),
            written: HashMap::default(),
            second: None,
            sampled: None,
            rows: Vec::new(),
            counters: Counters::default(),
            counted: Vec::new(),
        };
        looker.report_missing("node_missing", facts);
        looker
    }

    fn report_missing(&self, key: &str, what: String) {
        if !what.is_empty() {
            let _ = self.notes.send(Note::Rows(vec![Row::Meta(Meta { key: key.to_owned(), value: what })]));
        }
    }

    fn count(&mut self, counters: Counters) {
        let before = self.counters.missing();
        self.counters.extend(counters);
        let missing = self.counters.missing();
        if missing != before {
            self.report_missing("counters_missing", missing);
        }
        self.board.with(|seen| {
            seen.sources.truncate(self.sources.len());
            seen.sources.extend(self.counters.sources());
        });
    }

    fn t_ns(&self) -> i64 {
        now().saturating_sub(self.t0) as i64
    }

    /// To the next multiple of the time between looks: points are as long as each other, and a look that is late is not made up for.
    fn until_next(&self) -> Duration {
        let every_ns = if self.wanted.shown || self.wanted.fine { LOOK_NS } else { SECOND_NS };
        Duration::from_nanos((every_ns - self.t_ns() % every_ns) as u64)
    }

    /// Looks each second, and each time while a dashboard shows the node or records come: ten looks take some 3 ms of
    /// CPU time, which would be most of what the tracer of an idle program takes.
    fn look_if_due(&mut self) {
        let t_ns = self.t_ns();
        let records = self.gauges.records.load(Ordering::Relaxed);
        if records != self.records {
            (self.records, self.active_until_ns) = (records, t_ns.saturating_add(SECOND_NS));
        }
        let is_active = self.wanted.fine && t_ns < self.active_until_ns;
        if self.wanted.shown || is_active || self.second != Some(t_ns.div_euclid(SECOND_NS)) {
            self.look();
        }
    }

    /// Reads what has changed: of an idle node that is little, and to find the figures in a text takes longer than to read it.
    fn read(&mut self) {
        for at in 0..self.sources.len() {
            if self.sources[at].is_new(&mut self.bytes) {
                let text = std::mem::take(&mut self.sources[at].text);
                let readings = self.figures(at, &String::from_utf8_lossy(&text));
                let source = &mut self.sources[at];
                (source.text, source.readings, source.changed) = (text, readings, true);
            }
        }
    }

    fn figures(&mut self, source: usize, text: &str) -> Vec<Reading> {
        match source {
            STAT => {
                let mut readings = figures::cpu(text, self.ticks_per_second);
                for reading in &mut readings {
                    let before = self.cpu.entry(reading.part).or_default();
                    *before = before.max(reading.value);
                    reading.value = *before;
                }
                readings
            }
            MEMINFO => figures::memory(text),
            NETWORK => {
                let readings = figures::network(text);
                for reading in &readings {
                    self.resolve(&reading.of, "/sys/class/net");
                }
                readings
            }
            DISKS => figures::devices(text, |name| self.resolve(name, "/sys/block")),
            _ => figures::pressure(PATHS[source].rsplit('/').next().unwrap_or_default(), text),
        }
    }

    /// Is there something of that name? Remembers whether it is hardware.
    fn resolve(&mut self, name: &str, class: &str) -> bool {
        if let Some(known) = self.whole.get(name) {
            return *known;
        }
        // As sysfs writes names with a slash.
        let dir = Path::new(class).join(name.replace('/', "!"));
        let (name, there): (Arc<str>, bool) = (name.into(), dir.exists());
        if dir.join("device").exists() {
            self.hardware.insert(Arc::clone(&name));
        }
        self.whole.insert(name, there);
        there
    }

    fn look(&mut self) {
        let t_ns = self.t_ns();
        self.read();
        let readings: Vec<Reading> = self.sources.iter().flat_map(|source| &source.readings).cloned().collect();
        let digest = Digest::of(&readings, &self.hardware);
        self.board.with(|seen| {
            seen.recent.resolutions.push(t_ns, &digest);
            seen.readings = readings;
            seen.readings.extend_from_slice(&self.counted);
        });
        let second = Some(t_ns.div_euclid(SECOND_NS));
        let is_new_second = self.second != second;
        if is_new_second {
            self.second = second;
            self.count_second();
        }
        let interval = Some(t_ns.div_euclid(if self.wanted.fine { LOOK_NS } else { SECOND_NS }));
        if self.sampled != interval {
            self.sampled = interval;
            self.write(t_ns);
        }
        if is_new_second {
            self.send();
        }
    }

    /// At the end: counters had their last values after the last look.
    fn last(&mut self) {
        self.count_second();
        self.write(self.t_ns());
        self.send();
    }

    /// Counters of the traced processes, of which there is one for each CPU, and how full rings were: once a second.
    fn count_second(&mut self) {
        let fill = self.gauges.take_fill_for_metrics();
        let counted = counters::readings(self.counters.read());
        self.board.with(|seen| {
            // Those of the last second are the last ones.
            seen.readings.truncate(seen.readings.len().saturating_sub(self.counted.len()));
            seen.readings.extend_from_slice(&counted);
            if seen.fills.len() == FILLS {
                seen.fills.pop_front();
            }
            seen.fills.push_back(fill);
        });
        self.counted = counted;
        self.known_for += 1;
        if self.known_for >= AGAIN {
            self.known_for = 0;
            self.whole.clear();
            self.hardware.clear();
            for source in &mut self.sources {
                source.text.clear();
            }
            self.forget_gone();
        }
    }

    /// Each container has an interface of its own, with a name that does not come again.
    fn forget_gone(&mut self) {
        let there: HashSet<_> = self.sources.iter().flat_map(|s| &s.readings).chain(&self.counted).map(key).collect();
        self.written.retain(|key, _| there.contains(key));
    }

    /// Adds what is not as it was to the rows for the dataset.
    fn write(&mut self, t_ns: i64) {
        self.add_hardware();
        let changed = self.sources.iter().filter(|source| source.changed);
        for r in changed.flat_map(|source| &source.readings).chain(&self.counted) {
            let before = self.written.insert(key(r), r.value);
            if before.is_none_or(|before| before.to_bits() != r.value.to_bits()) {
                self.rows.push(Row::Metric(Metric { t_ns, name: r.figure.name(), label: r.label(), value: r.value }));
            }
        }
        for source in &mut self.sources {
            source.changed = false;
        }
    }

    /// Once a second: each message wakes the worker.
    fn send(&mut self) {
        if !self.rows.is_empty() {
            // A worker that failed has given the reason.
            let _ = self.notes.send(Note::Rows(std::mem::take(&mut self.rows)));
        }
    }

    /// The names of all hardware, when there is more of it than before: none of them has a blank in it.
    fn add_hardware(&mut self) {
        let before = self.named.len();
        self.named.extend(self.hardware.iter().cloned());
        if self.named.len() != before {
            let value = self.named.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(" ");
            self.rows.push(Row::Meta(Meta { key: "node_hardware".to_owned(), value }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_forgotten() {
        let (notes, _inbox) = mpsc::channel();
        let wanted = Wanted { shown: false, fine: false };
        let mut looker = Looker::new(now(), Arc::default(), Arc::default(), notes, wanted);
        looker.look();
        let before = looker.written.len();
        assert!(before > 0);
        let gone = figures::network("veth4711: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0");
        looker.sources[NETWORK].readings.extend(gone);
        looker.sources[NETWORK].changed = true;
        looker.write(0);
        assert_eq!(looker.written.len(), before + 2);
        looker.sources[NETWORK].readings.retain(|reading| &*reading.of != "veth4711");
        looker.known_for = AGAIN - 1;
        looker.count_second();
        assert_eq!(looker.written.len(), before);
    }

    #[test]
    fn the_dataset_has_ten_looks_a_second_only_while_records_come() {
        let (notes, _inbox) = mpsc::channel();
        let gauges = Arc::new(Gauges::default());
        let wanted = Wanted { shown: false, fine: true };
        let mut looker = Looker::new(now(), Arc::default(), Arc::clone(&gauges), notes, wanted);
        looker.look();
        // As if that had been in this second, whenever the test gets here, and in another tenth.
        let mut looks = |records: u64| {
            gauges.records.store(records, Ordering::Relaxed);
            (looker.second, looker.sampled) = (Some(looker.t_ns().div_euclid(SECOND_NS)), None);
            looker.look_if_due();
            looker.sampled.is_some()
        };
        assert!(!looks(0), "no record has come");
        assert!(looks(7));
        assert!(looks(7), "within a second after one");
        looker.active_until_ns = 0;
        looker.sampled = None;
        looker.second = None;
        looker.look_if_due();
        assert!(looker.sampled.is_some(), "one look each second");
    }
}
