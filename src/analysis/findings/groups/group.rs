//! Calls that are alike: what they have in common, and what they come to.

use std::sync::LazyLock;

use roaring::RoaringBitmap;

use crate::rows::{FileRollup, PARTS, SEQ_BITS, Span};
use crate::vocabulary::{Kind, Layer, flag};

/// What a group has in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub process: i32,
    /// Of calls that move or flush data; others are about many files.
    pub file: Option<i32>,
    /// The call of the program that they are part of: itself, or the library call around it.
    pub called: (Layer, &'static str),
    pub layer: Layer,
    pub op: &'static str,
    pub kind: Kind,
    pub direct: bool,
    /// The handle was opened with `O_SYNC` or `O_DSYNC`.
    pub synced: bool,
    /// It is a collective call, or inside of one.
    pub collective: bool,
    /// It opens a file with `O_CREAT`, or closes one that was opened so.
    pub creates: bool,
    /// Of failed calls.
    pub errno: i16,
}

impl Key {
    /// Does the C library fill or empty a buffer in it? Recorded where calls between two of them no longer are.
    pub fn refills(&self) -> bool {
        self.layer == Layer::Stdio && self.op.starts_with("_IO_file_")
    }
}

/// The index of one of the [`PARTS`].
const fn part(name: &str) -> usize {
    let mut at = 0;
    while at < PARTS.len() {
        if const_eq(PARTS[at].0.as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no part of that name")
}

const fn const_eq(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

pub const CPU: usize = part("cpu");
pub const RUNQ: usize = part("runq");
pub const THROTTLE: usize = part("throttle");
pub const LOCK: usize = part("lock");
pub const DEVQUEUE: usize = part("devqueue");
pub const DEVICE: usize = part("device");
pub const WRITEBACK: usize = part("writeback");
pub const JOURNAL: usize = part("journal");
pub const FLUSH: usize = part("flush");
pub const REMOTE: usize = part("remote");
pub const SLEEP: usize = part("sleep");

/// Where the time of a group went: the [`PARTS`] of system calls, and these.
pub const LIBRARY: usize = PARTS.len();
/// System calls whose parts are not known.
pub const UNKNOWN: usize = LIBRARY + 1;
/// Between a call and the next one of the thread, where that is short: what the program itself does for each.
pub const BETWEEN: usize = UNKNOWN + 1;
/// Time by part, in ns.
pub type Time = [i64; BETWEEN + 1];

/// All parts of the time in calls.
pub const IN_CALLS: [usize; BETWEEN] = {
    let mut parts = [0; BETWEEN];
    let mut at = 0;
    while at < BETWEEN {
        parts[at] = at;
        at += 1;
    }
    parts
};
/// The same, and what the program does between them.
pub const WITH_LOOP: [usize; BETWEEN + 1] = {
    let mut parts = [0; BETWEEN + 1];
    let mut at = 0;
    while at <= BETWEEN {
        parts[at] = at;
        at += 1;
    }
    parts
};

/// Spans that are named as evidence.
pub const EVIDENCE: usize = 5;
/// Paths that a group tells apart.
const PATHS_MAX: u64 = 1 << 20;

/// Bytes of a page.
pub const PAGE: i64 = 4096;

/// The value that more than half of many have; of others one of them (Boyer and Moore, MJRTY, 1981).
#[derive(Debug, Clone, Copy, Default)]
pub struct Majority {
    pub value: Option<i32>,
    ahead: u32,
}

impl Majority {
    fn add(&mut self, value: i32) {
        if self.ahead == 0 {
            (self.value, self.ahead) = (Some(value), 1);
        } else if self.value == Some(value) {
            self.ahead = self.ahead.saturating_add(1);
        } else {
            self.ahead -= 1;
        }
    }

    /// Of those of both: values that more than half have in one of them only cancel out.
    fn merge(&mut self, other: Self) {
        if self.value == other.value {
            self.ahead = self.ahead.saturating_add(other.ahead);
        } else if self.ahead >= other.ahead {
            self.ahead -= other.ahead;
        } else {
            (self.value, self.ahead) = (other.value, other.ahead - self.ahead);
        }
    }
}

/// A call with much time of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slow {
    pub ns: i64,
    pub span: i64,
    pub stack: Option<i32>,
    /// The call of a phase around it.
    pub phase: Option<i64>,
}

/// What a call meets that others of its file or handle have left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Met {
    /// It goes the other way than the transfer of its handle before it.
    pub turned: bool,
    /// It begins or ends inside of a block that has a part of another rank.
    pub rank: bool,
}

/// What few groups have: there can be a million groups.
#[derive(Debug, Clone, Default)]
pub struct Rare {
    /// Reads after writes of the same handle, and writes after reads.
    pub turns: i64,
    /// Begin or end inside of a block that has a part of another rank.
    pub shared: i64,
    /// Calls of a function that was demoted, and their bytes: not recorded one by one, without a time.
    pub brief_calls: i64,
    pub brief_bytes: i64,
    /// The path that most calls named, if those are more than half.
    pub path: Majority,
    /// Paths that were named.
    pub paths: RoaringBitmap,
    /// Time of long calls that may have copied a file of an overlay up, in ns.
    pub copied_up: i64,
    /// The longest call that had not returned when the trace ended, in ns.
    pub stuck: i64,
}

impl Rare {
    /// Takes what calls of another time have.
    fn merge(&mut self, later: &Self) {
        let sums = [
            (&mut self.turns, later.turns),
            (&mut self.shared, later.shared),
            (&mut self.brief_calls, later.brief_calls),
            (&mut self.brief_bytes, later.brief_bytes),
            (&mut self.copied_up, later.copied_up),
        ];
        for (sum, n) in sums {
            *sum = sum.saturating_add(n);
        }
        self.path.merge(later.path);
        self.paths |= &later.paths;
        self.stuck = self.stuck.max(later.stuck);
    }
}

/// What the calls of a group come to.
#[derive(Debug, Clone)]
pub struct Group {
    pub key: Key,
    /// Outermost calls of their layer.
    pub calls: i64,
    pub bytes: i64,
    /// What reads and writes asked for.
    pub asked: i64,
    /// Reads and writes of known size.
    pub sized: i64,
    pub miss: i64,
    pub ahead: i64,
    /// Begin where the one before ended.
    pub consecutive: i64,
    /// Begin or end inside of a page.
    pub partial: i64,
    /// First byte, and one behind the last one.
    pub extent: Option<(i64, i64)>,
    pub time: Time,
    /// What no finding has claimed, once one has claimed any of it.
    unclaimed: Option<Box<Time>>,
    /// The calls with the most time of their own.
    pub slowest: Vec<Slow>,
    /// The file that most calls named, if those are more than half.
    pub file: Majority,
    rare: Option<Box<Rare>>,
    /// It has calls on several files, of which there are too many to be kept apart.
    pub mixed: bool,
    last_end: i64,
}

impl Group {
    pub fn new(key: Key) -> Self {
        Self {
            key,
            calls: 0,
            bytes: 0,
            asked: 0,
            sized: 0,
            miss: 0,
            ahead: 0,
            consecutive: 0,
            partial: 0,
            extent: None,
            time: [0; BETWEEN + 1],
            unclaimed: None,
            slowest: Vec::new(),
            file: Majority::default(),
            rare: None,
            mixed: false,
            last_end: 0,
        }
    }

    pub fn rare(&self) -> &Rare {
        static NONE: LazyLock<Rare> = LazyLock::new(Rare::default);
        self.rare.as_deref().unwrap_or(&NONE)
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Time of MPI inside I/O calls: mostly waiting for other ranks.
    pub fn waits(&self) -> bool {
        self.key.layer == Layer::Mpi || (self.key.layer == Layer::Mpiio && self.key.collective)
    }

    pub fn add(&mut self, span: &Span, phase: Option<i64>, met: Met) {
        self.spend(span, phase);
        if span.flags & flag::UNFINISHED != 0 && must_return(span) {
            let rare = self.rare_mut();
            rare.stuck = rare.stuck.max(span.net_ns());
        }
        span.file_id.into_iter().for_each(|file| self.file.add(file));
        if let Some(path) = span.path_id {
            let rare = self.rare_mut();
            rare.path.add(path);
            if rare.paths.len() < PATHS_MAX {
                rare.paths.insert(path as u32);
            }
        }
        if !span.layer_top {
            return;
        }
        self.calls = self.calls.saturating_add(1);
        if met.turned || met.rank {
            let rare = self.rare_mut();
            rare.turns += i64::from(met.turned);
            rare.shared += i64::from(met.rank);
        }
        self.bytes = self.bytes.saturating_add(span.bytes.unwrap_or(0));
        self.miss = self.miss.saturating_add(span.miss_bytes.unwrap_or(0));
        self.ahead = self.ahead.saturating_add(span.ahead_bytes.unwrap_or(0));
        if let Some(asked) = span.req_bytes.or(span.bytes) {
            self.sized = self.sized.saturating_add(1);
            self.asked = self.asked.saturating_add(asked);
        }
        if let (Some(from), Some(size)) = (span.offset, span.bytes.filter(|n| *n > 0)) {
            let to = from.saturating_add(size);
            self.consecutive += i64::from(from == self.last_end);
            self.partial += i64::from(from % PAGE != 0 || to % PAGE != 0);
            self.last_end = to;
            let known = self.extent.unwrap_or((from, to));
            self.extent = Some((known.0.min(from), known.1.max(to)));
        }
    }

    fn spend(&mut self, span: &Span, phase: Option<i64>) {
        let system = span.layer == Layer::Syscall;
        if (system && (span.half_of().is_some() || span.flags & flag::ASYNC != 0)) || operation_of(span).is_some() {
            // No thread of the program spends it: what it waits for is in the call that waits.
            return;
        }
        if let Some(parts) = span.parts().filter(|_| system) {
            self.time.iter_mut().zip(parts).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
        } else {
            let part = if span.layer < Layer::Syscall { LIBRARY } else { UNKNOWN };
            self.time[part] = self.time[part].saturating_add(span.self_ns);
        }
        if self.slowest.len() == EVIDENCE && self.slowest[EVIDENCE - 1].ns >= span.self_ns {
            return;
        }
        let at = self.slowest.partition_point(|slow| slow.ns >= span.self_ns);
        self.slowest.insert(at, Slow { ns: span.self_ns, span: span.span_id, stack: span.stack_id, phase });
        self.slowest.truncate(EVIDENCE);
    }

    /// Takes an estimate of calls that were not recorded.
    pub fn add_brief(&mut self, row: &FileRollup) {
        let rare = self.rare_mut();
        rare.brief_calls = rare.brief_calls.saturating_add(row.calls);
        rare.brief_bytes = rare.brief_bytes.saturating_add(row.bytes);
    }

    /// Takes a call that took so many ns and may have copied a file of an overlay up.
    pub fn add_copied_up(&mut self, ns: i64) {
        let rare = self.rare_mut();
        rare.copied_up = rare.copied_up.saturating_add(ns);
    }

    pub fn add_sum(&mut self, row: &FileRollup) {
        let parts = if row.layer == Layer::Syscall { row.parts().to_vec() } else { Vec::new() };
        self.time.iter_mut().zip(&parts).for_each(|(sum, ns)| *sum = sum.saturating_add(*ns));
        if row.layer < Layer::Syscall {
            self.time[LIBRARY] = self.time[LIBRARY].saturating_add(row.self_ns);
        }
        row.file_id.into_iter().for_each(|file| self.file.add(file));
        self.calls = self.calls.saturating_add(row.calls);
        self.bytes = self.bytes.saturating_add(row.bytes);
        self.asked = self.asked.saturating_add(row.req_bytes);
        self.sized = self.sized.saturating_add(row.calls);
        self.miss = self.miss.saturating_add(row.miss_bytes);
        self.ahead = self.ahead.saturating_add(row.ahead_bytes);
        self.consecutive = self.consecutive.saturating_add(row.consecutive);
        self.partial = self.partial.saturating_add(row.unaligned);
        if let Some(end) = row.end_offset {
            self.extent = Some((0, self.extent.map_or(end, |(_, known)| known.max(end))));
        }
    }

    /// Takes the calls of another time.
    pub fn merge(&mut self, later: &Self) {
        let sums = [
            (&mut self.calls, later.calls),
            (&mut self.bytes, later.bytes),
            (&mut self.asked, later.asked),
            (&mut self.sized, later.sized),
            (&mut self.miss, later.miss),
            (&mut self.ahead, later.ahead),
            (&mut self.consecutive, later.consecutive),
            (&mut self.partial, later.partial),
        ];
        sums.into_iter().chain(self.time.iter_mut().zip(later.time)).for_each(|(sum, n)| *sum = sum.saturating_add(n));
        self.extent = match (self.extent, later.extent) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (one, other) => one.or(other),
        };
        self.slowest.extend(&later.slowest);
        self.slowest.sort_by_key(|slow| std::cmp::Reverse(slow.ns));
        self.slowest.truncate(EVIDENCE);
        self.file.merge(later.file);
        if let Some(rare) = &later.rare {
            self.rare_mut().merge(rare);
        }
        self.last_end = later.last_end;
        self.mixed |= later.mixed;
    }

    /// Were more paths named than are distinguished?
    pub fn has_more_paths(&self) -> bool {
        self.rare().paths.len() >= PATHS_MAX
    }

    /// What no finding has claimed, by part. Never negative: what the tracer's hooks took can be a little more than was there.
    pub fn unclaimed(&self) -> Time {
        self.unclaimed.as_deref().copied().unwrap_or_else(|| self.time.map(|ns| ns.max(0)))
    }

    /// Time of these parts that no finding has claimed.
    pub fn left(&self, parts: &[usize]) -> i64 {
        let left = |part: &usize| self.unclaimed.as_ref().map_or_else(|| self.time[*part].max(0), |left| left[*part]);
        parts.iter().map(left).fold(0, i64::saturating_add)
    }

    /// A finding claims what is left of these parts.
    pub fn claim(&mut self, parts: &[usize]) {
        let mut left = self.unclaimed();
        for part in parts {
            left[*part] = 0;
        }
        self.unclaimed = Some(Box::new(left));
    }

    /// Has a finding claimed these parts of it?
    pub fn is_claimed(&self, parts: &[usize]) -> bool {
        self.left(parts) < parts.iter().map(|part| self.time[*part].max(0)).fold(0, i64::saturating_add)
    }

    /// All of its time, in calls.
    pub fn total(&self) -> i64 {
        self.time[..BETWEEN].iter().copied().fold(0, i64::saturating_add)
    }

    /// Are calls smaller than this in the mean, those that were not recorded included?
    pub fn is_below(&self, size: f64) -> bool {
        let calls = self.sized.saturating_add(self.rare().brief_calls);
        calls > 0 && (self.asked.saturating_add(self.rare().brief_bytes) as f64) < size * calls as f64
    }

    /// Bytes of a call.
    pub fn mean_size(&self) -> f64 {
        if self.sized > 0 { self.asked as f64 / self.sized as f64 } else { f64::INFINITY }
    }
}

/// Is it a call that waits for storage alone? Others may wait for a user, a network or another program.
fn must_return(span: &Span) -> bool {
    let library = (Layer::Netcdf..=Layer::Mpiio).contains(&span.layer) && matches!(span.kind, Kind::Read | Kind::Write);
    library || span.kind == Kind::Sync
}

/// The operation that another thread submitted and this call carries out.
pub fn operation_of(span: &Span) -> Option<i64> {
    span.parent_id.filter(|parent| parent >> SEQ_BITS != span.span_id >> SEQ_BITS)
}
