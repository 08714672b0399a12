//! Where ranks meet in files that they share: blocks that hold parts of two ranks, and bytes that two of them access
//! with nothing between that orders it.

use std::collections::{BTreeMap, BTreeSet};

use crate::HashMap;
use crate::rows::Span;
use crate::vocabulary::{Kind, Layer};

/// Ends of transfers inside a block that are remembered.
const ENDS_MAX: usize = 1 << 19;
/// Pairs of accesses of one file that are compared.
const PAIRS_MAX: usize = 1 << 20;

/// Blocks of files in which transfers of a rank begin or end.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// The rank that was first there.
    first: HashMap<(i32, i64), i32>,
}

impl Ends {
    /// Does a transfer begin or end inside a block that holds a part of another rank?
    pub fn meets(&mut self, span: &Span, block: i64) -> bool {
        let (Some(rank), Some(file), Some((from, to))) = (span.rank, span.file_id, extent(span)) else { return false };
        let mut met = false;
        for at in [from, to].into_iter().filter(|at| at.rem_euclid(block) != 0) {
            let key = (file, at.div_euclid(block));
            if self.first.len() < ENDS_MAX || self.first.contains_key(&key) {
                met |= *self.first.entry(key).or_insert(rank) != rank;
            }
        }
        met
    }
}

/// First byte and the one behind the last of a transfer that moved something.
fn extent(span: &Span) -> Option<(i64, i64)> {
    let (from, size) = (span.offset.filter(|from| *from >= 0)?, span.bytes.filter(|size| *size > 0)?);
    Some((from, from.saturating_add(size)))
}

/// The call of the program that a transfer is part of.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    pub kind: Kind,
    /// Bytes that it asks for.
    pub asked: i64,
    /// The library orders what ranks do in it.
    pub collective: bool,
}

#[derive(Debug, Clone, Copy)]
struct Access {
    from: i64,
    to: i64,
    rank: i32,
    start: i64,
    end: i64,
    write: bool,
    /// By a library: the standard of MPI wants a flush before another rank may rely on it.
    library: bool,
}

/// Accesses of ranks, and what orders them.
#[derive(Debug, Clone)]
pub struct Accesses {
    /// So many accesses are remembered, the first ones of a run, and so many calls that order them.
    most: usize,
    by_file: BTreeMap<i32, Vec<Access>>,
    count: usize,
    /// When a rank had flushed, closed or locked a file.
    ordered: BTreeMap<(i32, i32), Vec<i64>>,
    orders: usize,
}

/// Bytes of a file that two ranks accessed, one of them to write, without an order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// Pairs of calls that both write, and those of which one reads.
    pub write_write: i64,
    pub read_write: i64,
    /// Bytes of the greatest overlap, and the ranks.
    pub bytes: i64,
    pub ranks: (i32, i32),
}

/// Does a call make what its rank wrote visible to others, or keep them from the file meanwhile?
fn orders(span: &Span) -> bool {
    let locks = span.op == "flock" || span.op == "lockf" || span.cmd.is_some_and(|cmd| cmd.contains("LK"));
    matches!(span.kind, Kind::Sync | Kind::Close) || locks
}

impl Accesses {
    pub fn limited(most: usize) -> Self {
        Self { most, by_file: BTreeMap::new(), count: 0, ordered: BTreeMap::new(), orders: 0 }
    }

    /// Those so far: the next ones are of another time.
    #[must_use]
    pub fn split(&mut self) -> Self {
        let next = Self::limited(self.most);
        std::mem::replace(self, next)
    }

    /// A system call of a rank, in a call of the program.
    pub fn add(&mut self, span: &Span, caller: Option<Caller>) {
        let (Some(rank), Some(file)) = (span.rank, span.file_id) else { return };
        if span.layer != Layer::Syscall || span.errno != 0 {
            return;
        }
        if orders(span) && self.orders < self.most {
            self.orders += 1;
            self.ordered.entry((file, rank)).or_default().push(span.end_ns());
        }
        let write = span.kind == Kind::Write;
        let Some((from, to)) = extent(span).filter(|_| write || span.kind == Kind::Read) else { return };
        let library = caller.is_some();
        // A library reads more than it is asked for, and writes its own metadata when it flushes.
        let exact = caller.is_none_or(|call| {
            let size = to.saturating_sub(from);
            !call.collective && call.kind == span.kind && if write { size <= call.asked } else { size == call.asked }
        });
        if exact && self.count < self.most {
            self.count += 1;
            let (start, end) = (span.start_ns, span.end_ns());
            self.by_file.entry(file).or_default().push(Access { from, to, rank, start, end, write, library });
        }
    }

    /// Those of another time.
    pub fn merge(&mut self, later: &Self) {
        for (file, accesses) in &later.by_file {
            let room = self.most.saturating_sub(self.count).min(accesses.len());
            self.by_file.entry(*file).or_default().extend(&accesses[..room]);
            self.count += room;
        }
        for (key, times) in &later.ordered {
            let room = self.most.saturating_sub(self.orders).min(times.len());
            self.ordered.entry(*key).or_default().extend(&times[..room]);
            self.orders += room;
        }
    }

    /// The files with conflicts.
    pub fn conflicts(&self) -> BTreeMap<i32, Conflicts> {
        let mut all = BTreeMap::new();
        for (file, accesses) in &self.by_file {
            let ranks: BTreeSet<i32> = accesses.iter().map(|access| access.rank).collect();
            if ranks.len() > 1 && accesses.iter().any(|access| access.write) {
                let found = self.of_file(*file, accesses);
                if found.pairs() > 0 {
                    all.insert(*file, found);
                }
            }
        }
        all
    }

    fn of_file(&self, file: i32, accesses: &[Access]) -> Conflicts {
        let mut sorted = accesses.to_vec();
        sorted.sort_by_key(|access| (access.from, access.start));
        let (mut found, mut pairs) = (Conflicts::default(), 0_usize);
        // Those that reach beyond the begin of the next one.
        let mut open: Vec<Access> = Vec::new();
        for access in sorted {
            open.retain(|other| other.to > access.from);
            for other in open.iter().filter(|other| other.rank != access.rank && (other.write || access.write)) {
                pairs += 1;
                if pairs > PAIRS_MAX {
                    return found;
                }
                if self.races(file, other, &access) {
                    found.add(other, &access);
                }
            }
            open.push(access);
        }
        found
    }

    /// Does nothing order two accesses to the same bytes? Of system calls alone the kernel does, unless they overlap in
    /// time.
    fn races(&self, file: i32, a: &Access, b: &Access) -> bool {
        let (first, second) = if a.end <= b.end { (a, b) } else { (b, a) };
        if second.start < first.end {
            return true;
        }
        // What was read before it was overwritten was right.
        if !(first.write && a.library && b.library) {
            return false;
        }
        let times = self.ordered.get(&(file, first.rank));
        !times.is_some_and(|times| times.iter().any(|t| (first.end..=second.start).contains(t)))
    }
}

impl Conflicts {
    pub const fn pairs(&self) -> i64 {
        self.write_write.saturating_add(self.read_write)
    }

    fn add(&mut self, a: &Access, b: &Access) {
        let pairs = if a.write && b.write { &mut self.write_write } else { &mut self.read_write };
        *pairs = pairs.saturating_add(1);
        let bytes = a.to.min(b.to).saturating_sub(a.from.max(b.from));
        if bytes > self.bytes {
            (self.bytes, self.ranks) = (bytes, (a.rank.min(b.rank), a.rank.max(b.rank)));
        }
    }
}
