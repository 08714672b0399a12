//! Calls that are alike, with what they spent: one pass over the calls makes groups of them, and rules claim parts of their time.

use roaring::RoaringBitmap;

use crate::HashMap;
use crate::analysis::nesting::{Enclosing, is_phase};
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
    /// Of failed calls.
    pub errno: i16,
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

pub const RUNQ: usize = part("runq");
pub const THROTTLE: usize = part("throttle");
pub const LOCK: usize = part("lock");
pub const DEVQUEUE: usize = part("devqueue");
pub const DEVICE: usize = part("device");
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

/// A pause between two calls up to which it belongs to the first one, in ns: the code around a call in a loop, also of an
/// interpreter.
const BETWEEN_MAX: i64 = 100_000;
/// Groups that are kept apart by file; those that come later are one for all files.
const GROUPS_MAX: usize = 1 << 16;
/// Spans that are named as evidence.
pub const EVIDENCE: usize = 5;
/// Paths that a group tells apart.
const PATHS_MAX: u64 = 1 << 20;

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
    /// What no finding has claimed.
    pub left: Time,
    /// The calls with the most time of their own.
    pub slowest: Vec<(i64, i64)>,
    /// The file and the path that most calls named, if those are more than half.
    pub file: Majority,
    pub path: Majority,
    /// Paths that were named.
    pub paths: RoaringBitmap,
    /// Time of long calls that may have copied a file of an overlay up, in ns.
    pub copied_up: i64,
    last_end: i64,
}

impl Group {
    fn new(key: Key) -> Self {
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
            left: [0; BETWEEN + 1],
            slowest: Vec::new(),
            file: Majority::default(),
            path: Majority::default(),
            paths: RoaringBitmap::new(),
            copied_up: 0,
            last_end: 0,
        }
    }

    fn add(&mut self, span: &Span) {
        self.spend(span);
        span.file_id.into_iter().for_each(|file| self.file.add(file));
        if let Some(path) = span.path_id {
            self.path.add(path);
            if self.paths.len() < PATHS_MAX {
                self.paths.insert(path as u32);
            }
        }
        if !span.layer_top {
            return;
        }
        self.calls = self.calls.saturating_add(1);
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

    fn spend(&mut self, span: &Span) {
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
        if self.slowest.len() == EVIDENCE && self.slowest[EVIDENCE - 1].0 >= span.self_ns {
            return;
        }
        let at = self.slowest.partition_point(|(ns, _)| *ns >= span.self_ns);
        self.slowest.insert(at, (span.self_ns, span.span_id));
        self.slowest.truncate(EVIDENCE);
    }

    fn add_sum(&mut self, row: &FileRollup) {
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

    /// Time of these parts that no finding has claimed.
    pub fn left(&self, parts: &[usize]) -> i64 {
        parts.iter().map(|part| self.left[*part]).fold(0, i64::saturating_add)
    }

    /// All of its time, in calls.
    pub fn total(&self) -> i64 {
        self.time[..BETWEEN].iter().copied().fold(0, i64::saturating_add)
    }

    /// Bytes of a call.
    pub fn mean_size(&self) -> f64 {
        if self.sized > 0 { self.asked as f64 / self.sized as f64 } else { f64::INFINITY }
    }
}

const PAGE: i64 = 4096;

/// A thread that makes calls.
#[derive(Default)]
struct Thread {
    /// The call of the program that it is in, or was in last.
    call: i64,
    part: Option<Part>,
    /// The end of the last one that is not asynchronous, and its group.
    end: i64,
    group: Option<usize>,
}

/// When a process was in calls.
#[derive(Debug, Clone, Default)]
pub struct Busy {
    pub rank: Option<i32>,
    pub first: i64,
    pub last: i64,
    /// Of all threads together.
    pub sum: i64,
    /// In which there was a call of any thread.
    intervals: Vec<(i64, i64)>,
    gap: i64,
}

/// Intervals that are kept of a process.
const INTERVALS_MAX: usize = 1 << 13;

impl Busy {
    fn add(&mut self, from: i64, to: i64) {
        if self.sum == 0 && self.last == 0 {
            self.first = from;
        }
        self.first = self.first.min(from);
        self.last = self.last.max(to);
        self.sum = self.sum.saturating_add(to.saturating_sub(from));
        match self.intervals.last_mut() {
            Some((start, end)) if *start <= from && from <= end.saturating_add(self.gap) => *end = to.max(*end),
            _ => self.intervals.push((from, to)),
        }
        if self.intervals.len() >= INTERVALS_MAX {
            self.merge();
            while self.intervals.len() > INTERVALS_MAX / 2 {
                self.gap = self.gap.max(500).saturating_mul(2);
                self.merge();
            }
        }
    }

    fn merge(&mut self) {
        self.intervals.sort_unstable();
        let gap = self.gap;
        self.intervals.dedup_by(|next, kept| {
            let joins = next.0 <= kept.1.saturating_add(gap);
            if joins {
                kept.1 = kept.1.max(next.1);
            }
            joins
        });
    }

    /// How long any thread was in a call: never more than all of them together, nor than the process was seen for.
    pub fn wall(&mut self) -> i64 {
        self.merge();
        let union = self.intervals.iter().map(|(from, to)| to.saturating_sub(*from)).fold(0, i64::saturating_add);
        union.min(self.sum).min(self.last.saturating_sub(self.first)).max(0)
    }
}

/// The operation that another thread submitted and this call carries out.
fn operation_of(span: &Span) -> Option<i64> {
    span.parent_id.filter(|parent| parent >> SEQ_BITS != span.span_id >> SEQ_BITS)
}

/// What a call is part of: the function that the program called, and whether that is collective.
type Part = ((Layer, &'static str), bool);
/// Operations that are remembered for what other threads do for them.
const OPERATIONS_MAX: usize = 1 << 20;

/// Groups of all calls.
#[derive(Default)]
pub struct Groups {
    pub all: Vec<Group>,
    pub processes: HashMap<i32, Busy>,
    index: HashMap<Key, usize>,
    threads: HashMap<i64, Thread>,
    operations: HashMap<i64, Part>,
    known: Known,
}

/// What calls do not show themselves.
#[derive(Default)]
pub struct Known {
    /// Handles with `O_SYNC` or `O_DSYNC`.
    pub synced: RoaringBitmap,
    /// Files of overlays.
    pub overlay: RoaringBitmap,
}

/// A call that copies a file of an overlay up takes at least so long, in ns: others find it there.
const COPY_MIN: i64 = 2_000_000;

fn changes_names(span: &Span) -> bool {
    span.layer == Layer::Syscall && matches!(span.kind, Kind::Open | Kind::Meta) && span.net_ns() >= COPY_MIN
}

impl Groups {
    pub fn new(known: Known) -> Self {
        Self { known, ..Self::default() }
    }

    /// Takes a span, in the order of the dataset.
    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        let own = around.is_own(span);
        // Functions inside the kernel are in the time of their system call.
        if is_phase(span) || (span.layer > Layer::Syscall && !own) {
            return;
        }
        let (called, collective) = self.part_of(span, around);
        let key = Key {
            process: span.process_ix,
            file: if by_file(span.kind) { span.file_id } else { None },
            called,
            layer: span.layer,
            op: span.op,
            kind: span.kind,
            direct: span.flags & flag::DIRECT != 0,
            synced: span.kind == Kind::Write && span.handle_id.is_some_and(|id| self.known.synced.contains(id as u32)),
            collective,
            errno: if span.layer == Layer::Syscall { span.errno } else { 0 },
        };
        let at = self.at(key);
        self.all[at].add(span);
        if changes_names(span) && span.file_id.is_some_and(|id| self.known.overlay.contains(id as u32)) {
            self.all[at].copied_up = self.all[at].copied_up.saturating_add(span.net_ns());
        }
        let asynchronous = span.flags & flag::ASYNC != 0;
        if asynchronous && span.layer < Layer::Syscall && self.operations.len() < OPERATIONS_MAX {
            self.operations.insert(span.span_id, (called, collective));
        }
        if !own {
            return;
        }
        let thread = self.threads.entry(span.span_id >> SEQ_BITS).or_default();
        (thread.call, thread.part) = (span.span_id, Some((called, collective)));
        if asynchronous {
            return;
        }
        let (before, end) = (thread.group.replace(at), thread.end);
        thread.end = span.end_ns();
        let busy = self.processes.entry(span.process_ix).or_default();
        busy.rank = span.rank.or(busy.rank);
        busy.add(span.start_ns, span.end_ns());
        let pause = span.start_ns.saturating_sub(end);
        if let Some(before) = before.filter(|_| (0..=BETWEEN_MAX).contains(&pause)) {
            let time = &mut self.all[before].time[BETWEEN];
            *time = time.saturating_add(pause);
        }
    }

    /// What a call of the program or inside one is part of.
    fn part_of(&self, span: &Span, around: &Enclosing) -> Part {
        let itself = ((span.layer, span.op), span.flags & flag::COLLECTIVE != 0);
        let Some((id, layer)) = around.call.filter(|_| !around.is_own(span)) else { return itself };
        let thread = self.threads.get(&(span.span_id >> SEQ_BITS)).filter(|thread| thread.call == id);
        let operation = || operation_of(span).and_then(|id| self.operations.get(&id).copied());
        let (called, collective) =
            thread.and_then(|thread| thread.part).or_else(operation).unwrap_or(((layer, ""), false));
        (called, collective || itself.1)
    }

    /// Takes calls that were summed up in the kernel: which calls they are part of is not known.
    pub fn sums(&mut self, row: &FileRollup) {
        if row.layer > Layer::Syscall || row.calls_error.is_some() {
            return;
        }
        let key = Key {
            process: row.process_ix.unwrap_or(-1),
            file: if by_file(row.kind) { row.file_id } else { None },
            called: (row.layer, row.op),
            layer: row.layer,
            op: row.op,
            kind: row.kind,
            direct: false,
            synced: false,
            collective: false,
            errno: 0,
        };
        let at = self.at(key);
        self.all[at].add_sum(row);
        let busy = self.processes.entry(key.process).or_default();
        busy.rank = row.rank.or(busy.rank);
        if let (Some(first), Some(last)) = (row.first_ns, row.last_ns) {
            let known = busy.sum > 0;
            busy.first = if known { busy.first.min(first) } else { first };
            busy.last = busy.last.max(last);
            busy.sum = busy.sum.saturating_add(row.self_ns);
            // When each call was made is not known: they count one after the other.
            match busy.intervals.last_mut() {
                Some((_, end)) => *end = end.saturating_add(row.self_ns),
                None => busy.intervals.push((first, first.saturating_add(row.self_ns))),
            }
        }
    }

    fn at(&mut self, mut key: Key) -> usize {
        if let Some(at) = self.index.get(&key) {
            return *at;
        }
        if self.all.len() >= GROUPS_MAX && key.file.is_some() {
            key.file = None;
            return self.at(key);
        }
        let at = self.all.len();
        self.all.push(Group::new(key));
        self.index.insert(key, at);
        at
    }
}

/// Do calls of this kind make a group for each file?
fn by_file(kind: Kind) -> bool {
    matches!(kind, Kind::Read | Kind::Write | Kind::Sync | Kind::Mmap)
}
