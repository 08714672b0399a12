//! What became of writes on devices: bytes by file, and what write-back of a program's own data did to its reads.

use std::collections::BTreeSet;

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::HashMap;
use crate::analysis::findings::groups::Groups;
use crate::analysis::findings::groups::limits::{Limit, Limits};
use crate::rows::{Block, BlockBytes};

/// Requests and files that are kept, each.
const KEPT_MAX: usize = 1 << 19;
/// Writes for each of these whose owners are waited for: a bit of each.
const WRITES: u64 = 1 << 7;

/// [`BlockBytes::known_by`] of what a process wrote before the kernel wrote it back.
const DIRTIED: [&str; 3] = ["range", "page", "inode"];

/// A time in which a request was under way on a device, in ns.
#[derive(Debug, Clone, Copy)]
struct Spell {
    dev: i32,
    from: i64,
    to: i64,
}

/// A read of a process, from the queue to completion.
#[derive(Debug, Clone, Copy)]
struct Read {
    pid: i32,
    at: Spell,
}

/// How many reads, and their seconds from the queue to completion.
type Reads = (i64, f64);

/// Writes of files on devices, and reads by time.
#[derive(Debug, Clone)]
pub struct Written {
    /// So many requests and files are kept, each.
    most: usize,
    full: Limits,
    /// Write requests whose owners come after them.
    writes: RoaringTreemap,
    /// When those of them that are write-back were in a device.
    write_backs: HashMap<i64, Spell>,
    /// Bytes that traced processes made dirty or sent, by file.
    files: HashMap<i32, i64>,
    /// Bytes of write-back that a process had made dirty, by request and process.
    dirtied: HashMap<(i64, i32), (Spell, i64)>,
    /// All bytes of write-back: made dirty by traced processes, and by others or before the trace.
    pub back: [i64; 2],
    reads: Vec<Read>,
}

impl Default for Written {
    fn default() -> Self {
        Self::limited(KEPT_MAX)
    }
}

/// Reads of programs while their own data was written back, and without.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OwnWriteBack {
    pub beside: Reads,
    pub alone: Reads,
    /// Parts of the time in which reads beside write-back began.
    pub bins: i64,
    /// Written back meanwhile.
    pub bytes: i64,
}

impl OwnWriteBack {
    /// By how much a read takes longer beside write-back.
    pub fn times(&self) -> f64 {
        let mean = |(reads, seconds): Reads| seconds / reads.max(1) as f64;
        mean(self.beside) / mean(self.alone).max(1e-9)
    }
}

/// Processes that wait for their own data: the ranks of a job together, others each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Program {
    Ranks,
    Process(i32),
}

/// Which program processes belong to.
struct Programs<'a> {
    groups: &'a Groups,
    ranks: RoaringBitmap,
}

impl<'a> Programs<'a> {
    fn of(groups: &'a Groups) -> Self {
        let ranks = groups.processes.values().filter(|busy| busy.rank.is_some());
        Self { groups, ranks: ranks.map(|busy| busy.pid as u32).collect() }
    }

    fn of_pid(&self, pid: i32) -> Program {
        if self.ranks.contains(pid as u32) { Program::Ranks } else { Program::Process(pid) }
    }

    /// None of a process of which no call is known.
    fn of_process(&self, process: i32) -> Option<Program> {
        self.groups.processes.get(&process).map(|busy| self.of_pid(busy.pid))
    }
}

/// Times by program, in order and apart.
#[derive(Default)]
struct Times(HashMap<Program, Vec<(i64, i64)>>);

impl Times {
    fn of(all: impl Iterator<Item = (Program, Spell)>) -> Self {
        let mut times = Self::default();
        all.for_each(|(program, at)| times.0.entry(program).or_default().push((at.from, at.to)));
        for of_program in times.0.values_mut() {
            of_program.sort_unstable();
            of_program.dedup_by(|next, kept| {
                let joins = next.0 <= kept.1;
                if joins {
                    kept.1 = kept.1.max(next.1);
                }
                joins
            });
        }
        times
    }

    /// Is one of them at the same time?
    fn meet(&self, program: Program, at: Spell) -> bool {
        let Some(times) = self.0.get(&program) else { return false };
        let first = times.partition_point(|(_, to)| *to <= at.from);
        times.get(first).is_some_and(|(from, _)| *from < at.to)
    }
}

impl Written {
    /// Keeps so many requests and files, each.
    pub fn limited(most: usize) -> Self {
        Self {
            most,
            full: Limits::default(),
            writes: RoaringTreemap::new(),
            write_backs: HashMap::default(),
            files: HashMap::default(),
            dirtied: HashMap::default(),
            back: [0; 2],
            reads: Vec::new(),
        }
    }

    /// One that keeps as many.
    pub fn empty(&self) -> Self {
        Self::limited(self.most)
    }

    pub fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// The limits that were reached.
    pub const fn limits(&self) -> Limits {
        self.full
    }

    /// Of what has reached a limit, nothing is kept.
    fn check(&mut self) {
        if self.files.len() > self.most || self.writes.len() > WRITES.saturating_mul(self.most as u64) {
            self.full.reach(Limit::Written);
            self.files = HashMap::default();
            self.writes.clear();
        }
        if self.write_backs.len().max(self.dirtied.len()).max(self.reads.len()) > self.most {
            self.full.reach(Limit::WriteBack);
            (self.write_backs, self.dirtied, self.reads) = (HashMap::default(), HashMap::default(), Vec::new());
            self.back = [0; 2];
        }
    }

    /// A request on a topmost device.
    pub fn block(&mut self, block: &Block) {
        let end = block.issue_ns.saturating_add(block.dur_ns.unwrap_or(0));
        let since = |from: i64| Spell { dev: block.dev, from, to: end };
        let by_time = !self.full.has(Limit::WriteBack);
        if block.op == "write" {
            self.writes.insert(block.req_id as u64);
            if block.class == "writeback" && by_time {
                self.write_backs.insert(block.req_id, since(block.issue_ns));
            }
        }
        if block.op == "read" && by_time {
            self.reads.push(Read { pid: block.pid, at: since(block.queue_ns) });
        }
        self.check();
    }

    /// Whose some bytes of a request are. What others made dirty, and what was before the trace, is of no program here.
    pub fn bytes(&mut self, part: &BlockBytes, file: Option<i32>) {
        if !self.writes.contains(part.req_id as u64) {
            return;
        }
        let dirtied = part.process_ix.filter(|_| DIRTIED.contains(&part.known_by));
        if let Some(at) = self.write_backs.get(&part.req_id) {
            let sum = &mut self.back[usize::from(dirtied.is_none())];
            *sum = sum.saturating_add(part.bytes);
            if let Some(process) = dirtied {
                let (_, sum) = self.dirtied.entry((part.req_id, process)).or_insert((*at, 0));
                *sum = sum.saturating_add(part.bytes);
            }
        }
        if let Some(file) = file.filter(|_| part.process_ix.is_some()) {
            let sum = self.files.entry(file).or_default();
            *sum = sum.saturating_add(part.bytes);
        }
        self.check();
    }

    /// Those so far: the owners of their requests have come.
    #[must_use]
    pub fn split(&mut self) -> Self {
        let next = self.empty();
        let all = std::mem::replace(self, next);
        Self { writes: RoaringTreemap::new(), write_backs: HashMap::default(), ..all }
    }

    /// Those of another time.
    pub fn merge(&mut self, later: &Self) {
        self.full = self.full.and(later.full);
        for (file, bytes) in &later.files {
            let sum = self.files.entry(*file).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        for (sum, bytes) in self.back.iter_mut().zip(later.back) {
            *sum = sum.saturating_add(bytes);
        }
        self.dirtied.extend(&later.dirtied);
        self.reads.extend(&later.reads);
    }

    /// Bytes of traced processes that were written to devices, by file.
    pub const fn files(&self) -> &HashMap<i32, i64> {
        &self.files
    }

    /// On the device that traced processes had most reads from: what of their reads waited while what the same program had
    /// written was in the device.
    pub fn own_write_back(&self, groups: &Groups, traced: &RoaringBitmap, bin_ns: i64) -> OwnWriteBack {
        let of_traced = || self.reads.iter().filter(|read| traced.contains(read.pid as u32));
        let mut devices = HashMap::<i32, i64>::default();
        for read in of_traced() {
            let sum = devices.entry(read.at.dev).or_default();
            *sum = sum.saturating_add(1);
        }
        let Some((dev, _)) = devices.into_iter().max_by_key(|(dev, reads)| (*reads, *dev)) else {
            return OwnWriteBack::default();
        };
        let programs = Programs::of(groups);
        let reads: Vec<_> =
            of_traced().filter(|read| read.at.dev == dev).map(|read| (programs.of_pid(read.pid), read.at)).collect();
        let of_device = self.dirtied.iter().filter(|(_, (at, _))| at.dev == dev);
        let written: Vec<_> = of_device
            .filter_map(|((_, process), (at, bytes))| Some((programs.of_process(*process)?, *at, *bytes)))
            .collect();
        let written_at = Times::of(written.iter().map(|(program, at, _)| (*program, *at)));
        let read_at = Times::of(reads.iter().copied());
        let (mut all, mut bins) = (OwnWriteBack::default(), BTreeSet::new());
        for (program, at) in reads {
            let beside = written_at.meet(program, at);
            let sum = if beside { &mut all.beside } else { &mut all.alone };
            (sum.0, sum.1) = (sum.0.saturating_add(1), sum.1 + at.to.saturating_sub(at.from) as f64 / 1e9);
            if beside {
                bins.insert(at.from.div_euclid(bin_ns));
            }
        }
        let meanwhile = written.iter().filter(|(program, at, _)| read_at.meet(*program, *at));
        all.bytes = meanwhile.map(|(.., bytes)| *bytes).fold(0, i64::saturating_add);
        all.bins = bins.len() as i64;
        all
    }
}
