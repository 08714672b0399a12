//! Where ranks meet in files that they share: blocks that hold parts of two ranks, and bytes that two of them access
//! with nothing between that orders it.

use std::collections::{BTreeMap, BTreeSet};

use crate::HashMap;
use crate::rows::Span;
use crate::vocabulary::{Kind, Layer};

/// Pairs of accesses to the same bytes that are compared.
const PAIRS_MAX: usize = 1 << 20;

/// Blocks of files in which transfers of a rank begin or end.
#[derive(Debug, Clone)]
pub struct Ends {
    /// So many are remembered.
    most: usize,
    /// The rank that was first there.
    first: HashMap<(i32, i64), i32>,
    /// There were more: nothing is known of any.
    full: bool,
}

impl Ends {
    pub fn limited(most: usize) -> Self {
        Self { most, first: HashMap::default(), full: false }
    }

    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Does a transfer begin or end inside a block that holds a part of another rank?
    pub fn meets(&mut self, span: &Span, block: i64) -> bool {
        let (Some(rank), Some(file), Some((from, to))) = (span.rank, span.file_id, extent(span)) else { return false };
        let mut met = false;
        for at in [from, to].into_iter().filter(|at| at.rem_euclid(block) != 0) {
            if self.full {
                return false;
            }
            met |= *self.first.entry((file, at.div_euclid(block))).or_insert(rank) != rank;
            if self.first.len() > self.most {
                *self = Self { full: true, ..Self::limited(self.most) };
            }
        }
        met && !self.full
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
    /// By file, and apart by node: clocks of two nodes do not show what was first.
    by_file: BTreeMap<(i32, u32), Vec<Access>>,
    count: usize,
    /// There were more accesses.
    more: bool,
    /// When a rank had flushed, closed or locked a file.
    ordered: BTreeMap<(i32, i32), Vec<i64>>,
    orders: usize,
    /// There were more of these calls: which accesses have an order is not known.
    full: bool,
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
        let (by_file, ordered) = (BTreeMap::new(), BTreeMap::new());
        Self { most, by_file, count: 0, more: false, ordered, orders: 0, full: false }
    }

    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Without calls that order them, accesses seem to be in conflict that are in none.
    fn forget(&mut self) {
        *self = Self { full: true, ..Self::limited(self.most) };
    }

    /// Those so far: the next ones are of another time.
    #[must_use]
    pub fn split(&mut self) -> Self {
        let next = Self::limited(self.most);
        std::mem::replace(self, next)
    }

    /// A system call of a rank on a node, in a call of the program.
    pub fn add(&mut self, span: &Span, caller: Option<Caller>, node: u32) {
        let (Some(rank), Some(file)) = (span.rank, span.file_id) else { return };
        if span.layer != Layer::Syscall || span.errno != 0 || self.full {
            return;
        }
        if orders(span) {
            if self.orders >= self.most {
                return self.forget();
            }
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
        if exact && self.count >= self.most {
            self.more = true;
        } else if exact {
            self.count += 1;
            let (start, end) = (span.start_ns, span.end_ns());
            self.by_file.entry((file, node)).or_default().push(Access { from, to, rank, start, end, write, library });
        }
    }

    /// Those of another time.
    pub fn merge(&mut self, later: &Self) {
        self.more |= later.more;
        if self.full || later.full || self.orders.saturating_add(later.orders) > self.most {
            return self.forget();
        }
        for (file, accesses) in &later.by_file {
            let room = self.most.saturating_sub(self.count).min(accesses.len());
            self.by_file.entry(*file).or_default().extend(&accesses[..room]);
            self.count += room;
            self.more |= room < accesses.len();
        }
        for (key, times) in &later.ordered {
            self.ordered.entry(*key).or_default().extend(times);
        }
        self.orders += later.orders;
    }

    /// The files with conflicts, and why there may be more of them. The work grows with the number of accesses and of pairs of
    /// them to the same bytes.
    pub fn conflicts(&self) -> (BTreeMap<i32, Conflicts>, Option<&'static str>) {
        let (mut all, mut left) = (BTreeMap::<i32, Conflicts>::new(), PAIRS_MAX);
        for ((file, _), accesses) in &self.by_file {
            let ranks: BTreeSet<i32> = accesses.iter().map(|access| access.rank).collect();
            if ranks.len() > 1 && accesses.iter().any(|access| access.write) {
                let found = self.of_file(*file, accesses, &mut left);
                if found.pairs() > 0 {
                    all.entry(*file).or_default().join(&found);
                }
            }
        }
        let mut files = self.by_file.keys().map(|(file, _)| file);
        let mut before = files.next();
        let on_nodes = files.any(|file| before.replace(file) == Some(file));
        let reasons = [
            (left == 0, "only some of the accesses of ranks to the same bytes were compared"),
            (self.more, "only the first accesses of ranks were compared"),
            (on_nodes, "ranks on different nodes were not compared: their clocks differ"),
        ];
        (all, reasons.into_iter().find(|(is, _)| *is).map(|(_, why)| why))
    }

    /// Goes through a file from its begin to its end.
    fn of_file(&self, file: i32, accesses: &[Access], left: &mut usize) -> Conflicts {
        let orders = self.orders_of(file);
        let mut sorted: Vec<&Access> = accesses.iter().collect();
        sorted.sort_by_key(|access| (access.from, access.start));
        let mut found = Conflicts::default();
        // Reads, and writes.
        let mut open = [Open::new(), Open::new()];
        for (at, access) in sorted.iter().enumerate() {
            // A write meets both, a read only writes.
            for reaching in &mut open[usize::from(!access.write)..] {
                reaching.retain(|rank, ends| {
                    while *rank != access.rank && ends.first().is_some_and(|(to, _)| *to <= access.from) {
                        ends.pop_first();
                    }
                    !ends.is_empty()
                });
                let others = reaching.iter().filter(|(rank, _)| **rank != access.rank);
                for (_, other) in others.flat_map(|(_, ends)| ends) {
                    if *left == 0 {
                        return found;
                    }
                    *left -= 1;
                    let other = sorted[*other];
                    if races(&orders, other, access) {
                        found.add(other, access);
                    }
                }
            }
            open[usize::from(access.write)].entry(access.rank).or_default().insert((access.to, at));
        }
        found
    }

    /// When each rank had flushed, closed or locked a file, in order.
    fn orders_of(&self, file: i32) -> BTreeMap<i32, Vec<i64>> {
        let of_file = self.ordered.range((file, i32::MIN)..=(file, i32::MAX));
        let sorted = |((_, rank), times): (&(i32, i32), &Vec<i64>)| {
            let mut times = times.clone();
            times.sort_unstable();
            (*rank, times)
        };
        of_file.map(sorted).collect()
    }
}

/// Accesses that may reach beyond the place of a file that is looked at, by rank: the end of each, and its number.
type Open = BTreeMap<i32, BTreeSet<(i64, usize)>>;

/// Does nothing order two accesses to the same bytes? Of system calls alone the kernel does, unless they overlap in time.
fn races(orders: &BTreeMap<i32, Vec<i64>>, a: &Access, b: &Access) -> bool {
    let (first, second) = if a.end <= b.end { (a, b) } else { (b, a) };
    if second.start < first.end {
        return true;
    }
    // What was read before it was overwritten was right.
    if !(first.write && a.library && b.library) {
        return false;
    }
    let Some(times) = orders.get(&first.rank) else { return true };
    let next = times.get(times.partition_point(|t| *t < first.end));
    next.is_none_or(|next| *next > second.start)
}

impl Conflicts {
    pub const fn pairs(&self) -> i64 {
        self.write_write.saturating_add(self.read_write)
    }

    /// Those of the same file on another node.
    fn join(&mut self, other: &Self) {
        self.write_write = self.write_write.saturating_add(other.write_write);
        self.read_write = self.read_write.saturating_add(other.read_write);
        if other.bytes > self.bytes {
            (self.bytes, self.ranks) = (other.bytes, other.ranks);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::span_id;

    /// A system call of a rank at a time, on bytes of file 1, and the call of MPI-IO that it is in.
    fn access(rank: i32, seq: u32, kind: Kind, (from, size): (i64, i64), start: i64) -> (Span, Option<Caller>) {
        let id = span_id(rank as u32, seq);
        let span = Span::new(id, (Layer::Syscall, "pwrite64", kind), rank, (start, 10));
        let caller = Caller { kind, asked: size, collective: false };
        (Span { rank: Some(rank), file_id: Some(1), offset: Some(from), bytes: Some(size), ..span }, Some(caller))
    }

    fn all(of: impl IntoIterator<Item = (Span, Option<Caller>)>) -> Accesses {
        let mut accesses = Accesses::limited(1 << 18);
        of.into_iter().for_each(|(span, caller)| accesses.add(&span, caller, 0));
        accesses
    }

    /// Two ranks read all of a file that both have written before, a hundred thousand times: each read meets each write of the
    /// other one, and no other read.
    #[test]
    fn work_grows_with_pairs_that_can_conflict() {
        let many = 100_000;
        let writes = (0..2).map(|rank| access(rank, 0, Kind::Write, (0, 1 << 30), i64::from(rank) * 100));
        let reads = (0..many).flat_map(|n| {
            (0..2).map(move |rank| access(rank, n + 1, Kind::Read, (0, 1 << 30), 1000 + i64::from(n) * 100))
        });
        let (found, why) = all(writes.chain(reads)).conflicts();
        let expected = Conflicts { write_write: 1, read_write: 2 * i64::from(many), bytes: 1 << 30, ranks: (0, 1) };
        assert_eq!((found.get(&1), why), (Some(&expected), None));
    }

    /// All pairs of the same bytes, of which there are far more than accesses.
    #[test]
    fn pairs_have_a_limit_that_is_known_to_have_been_reached() {
        let writes = (0..4000).flat_map(|n| (0..2).map(move |rank| access(rank, n, Kind::Write, (0, 8), 0)));
        let (found, why) = all(writes).conflicts();
        assert_eq!((found[&1].pairs(), why.is_some()), (PAIRS_MAX as i64, true));
    }

    /// One of many flushes of a rank counts, whenever they came.
    #[test]
    fn flushes_are_looked_up_by_time() {
        let close = |start: i64| {
            let close = Span::new(span_id(0, 1), (Layer::Syscall, "close", Kind::Close), 0, (start, 1));
            (Span { rank: Some(0), file_id: Some(1), ..close }, None)
        };
        let conflict = |closes: &[i64]| {
            let first = access(0, 0, Kind::Write, (0, 8), 100);
            let second = access(1, 0, Kind::Write, (0, 8), 200);
            let closes = closes.iter().map(|start| close(*start));
            all([first].into_iter().chain(closes).chain([second])).conflicts().0.contains_key(&1)
        };
        assert!(conflict(&[]) && conflict(&[300, 20, 250]));
        assert!(!conflict(&[300, 150, 20]));
    }
}
