//! The thread that looks at the node and the counters of the traced processes while a trace goes on: what the kernel counts goes
//! to the dataset, to the dashboard, and to the metrics.

use crate::loader::kernel::counters::Counters;
use crate::loader::kernel::rings::{Gauges, now};
use crate::node::figures::{self, Digest, Figure, Reading};
use crate::node::{Missing, Recent, counters};
use crate::record::session::note::Note;
use crate::rows::{Meta, Metric, Row};
use anyhow::{Context as _, Result};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks where calls are recorded one by one or a dashboard shows the node, and otherwise, in ns: as
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
    /// The dataset has every look, and not one a second.
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
            loop {
                match inbox.recv_timeout(looker.until_next()) {
                    Ok(counters) => looker.count(counters),
                    Err(RecvTimeoutError::Timeout) => looker.look(),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
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
}

impl Source {
    fn open(path: &'static str) -> Self {
        let mut source = Self { path, file: File::open(path) };
        // Pressure that was turned off when the kernel was started can be opened and not read.
        if let Err(e) = source.read(&mut Vec::new()) {
            source.file = Err(e);
        }
        source
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

struct Looker {
    t0: u64,
    /// Time between two looks, and between two that the dataset has.
    every_ns: i64,
    written_every_ns: i64,
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
    written: HashMap<(Figure, Arc<str>, &'static str), f64>,
    /// The last second in which counters were read, and the last interval of looks that were written.
    second: Option<i64>,
    sampled: Option<i64>,
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
            every_ns: if wanted.shown || wanted.fine { LOOK_NS } else { SECOND_NS },
            written_every_ns: if wanted.fine { LOOK_NS } else { SECOND_NS },
            board,
            gauges,
            notes,
            sources,
            ticks_per_second: ticks.map_or(100.0, |n| n as f64),
            bytes: Vec::new(),
            cpu: HashMap::new(),
            whole: HashMap::new(),
            hardware: HashSet::new(),
            known_for: 0,
            named: BTreeSet::new(),
            written: HashMap::new(),
            second: None,
            sampled: None,
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
        Duration::from_nanos((self.every_ns - self.t_ns() % self.every_ns) as u64)
    }

    fn text(&mut self, source: usize) -> String {
        // What cannot be read this time is read the next time.
        let _ = self.sources[source].read(&mut self.bytes);
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn readings(&mut self) -> Vec<Reading> {
        let mut readings = figures::cpu(&self.text(STAT), self.ticks_per_second);
        for reading in &mut readings {
            let before = self.cpu.entry(reading.part).or_default();
            *before = before.max(reading.value);
            reading.value = *before;
        }
        readings.extend(figures::memory(&self.text(MEMINFO)));
        for (at, path) in PATHS.iter().enumerate().skip(DISKS + 1) {
            let resource = path.rsplit('/').next().unwrap_or_default();
            readings.extend(figures::pressure(resource, &self.text(at)));
        }
        let network = figures::network(&self.text(NETWORK));
        for reading in &network {
            self.resolve(&reading.of, "/sys/class/net");
        }
        readings.extend(network);
        let disks = self.text(DISKS);
        readings.extend(figures::devices(&disks, |name| self.resolve(name, "/sys/block")));
        readings
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
        let readings = self.readings();
        let digest = Digest::of(&readings, &self.hardware);
        self.board.with(|seen| {
            seen.recent.resolutions.push(t_ns, &digest);
            seen.readings = readings;
            seen.readings.extend_from_slice(&self.counted);
        });
        let second = Some(t_ns.div_euclid(SECOND_NS));
        if self.second != second {
            self.second = second;
            self.count_second();
        }
        let interval = Some(t_ns.div_euclid(self.written_every_ns));
        if self.sampled != interval {
            self.sampled = interval;
            self.write(t_ns);
        }
    }

    /// At the end: counters had their last values after the last look.
    fn last(&mut self) {
        self.count_second();
        self.write(self.t_ns());
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
        }
    }

    /// Writes what is not as it was.
    fn write(&mut self, t_ns: i64) {
        let mut rows = self.hardware_row();
        for r in self.board.with(|seen| seen.readings.clone()) {
            let before = self.written.insert((r.figure, Arc::clone(&r.of), r.part), r.value);
            if before.is_none_or(|before| before.to_bits() != r.value.to_bits()) {
                rows.push(Row::Metric(Metric { t_ns, name: r.figure.name(), label: r.label(), value: r.value }));
            }
        }
        if !rows.is_empty() {
            // A worker that failed has given the reason.
            let _ = self.notes.send(Note::Rows(rows));
        }
    }

    /// The names of all hardware, when there is more of it than before: none of them has a blank in it.
    fn hardware_row(&mut self) -> Vec<Row> {
        let before = self.named.len();
        self.named.extend(self.hardware.iter().cloned());
        if self.named.len() == before {
            return Vec::new();
        }
        let value = self.named.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(" ");
        vec![Row::Meta(Meta { key: "node_hardware".to_owned(), value })]
    }
}
