//! What each rank, or each process without one, did and how unevenly the work was spread.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Serialize, Serializer};

use crate::HashMap;
use crate::analysis::calls::{Figures, Sums, asked, is_data, is_file_access};
use crate::analysis::nesting::Enclosing;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::{IdKind, Source};
use crate::base::text::percent;
use crate::rows::{FileRollup, Process, Span};
use crate::vocabulary::{Kind, LAYERS, Layer};

/// Ranks and processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ranks {
    pub rows: Vec<RankRow>,
    /// Of ranks: none with fewer than two.
    pub imbalance: Vec<Imbalance>,
    /// Of the time of all ranks, or of all processes that made calls where there is no rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

/// What the time of ranks or processes was spent on, from the start of each to its end, within the trace; to the last
/// call where the end was not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Share {
    pub ranks: bool,
    /// How many.
    pub of: usize,
    pub wall_ns: i64,
    /// In calls of all layers but that of MPI communication. Of several threads it adds up, up to the wall time.
    pub io_ns: i64,
    /// In MPI communication inside them.
    pub mpi_ns: i64,
    /// The rest: code of the application, and communication of its own.
    pub application_ns: i64,
}

/// One rank (its processes together), or one process without a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankRow {
    pub rank: Option<i32>,
    /// Of several nodes: those that its processes were on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    pub pids: Vec<i32>,
    /// The program, of the first process.
    pub exe: Option<String>,
    /// Outermost calls of all layers but phases: what the program itself called.
    pub calls: i64,
    /// Known bytes of those.
    pub asked_read: i64,
    pub asked_written: i64,
    pub syscall_read: i64,
    pub syscall_written: i64,
    /// Time in outermost calls of library layers.
    pub library_ns: i64,
    /// Time in the calls that the program itself made, and bytes that they moved.
    pub own_ns: i64,
    pub own_bytes: i64,
    pub exclusive_ns: ByLayer,
    /// Bytes of outermost reads and writes, but for system calls.
    #[serde(skip)]
    moved: Moved,
    /// From the start of its first process to the end of its last one, within the trace.
    pub wall_ns: i64,
    pub complete: bool,
}

/// Time by layer, in ns: no allocation, because there can be very many processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByLayer([i64; LAYERS.len()]);

impl ByLayer {
    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, n)| *sum = sum.saturating_add(n));
    }

    /// Of layers that have any.
    pub fn iter(&self) -> impl Iterator<Item = (Layer, i64)> {
        LAYERS.into_iter().zip(self.0).filter(|(_, n)| *n != 0)
    }

    pub fn get(&self, layer: Layer) -> Option<i64> {
        Some(self.0[layer as usize]).filter(|n| *n != 0)
    }

    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// As an object, in the order of names.
impl Serialize for ByLayer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let by_name: BTreeMap<&str, i64> = self.iter().map(|(layer, ns)| (layer.name(), ns)).collect();
        by_name.serialize(serializer)
    }
}

/// Bytes by layer, where there are any: of half a million processes most make system calls alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Moved(Option<Box<ByLayer>>);

impl Moved {
    fn add(&mut self, layer: Layer, bytes: i64) {
        if bytes != 0 {
            add(&mut self.0.get_or_insert_default().0[layer as usize], bytes);
        }
    }

    fn merge(&mut self, other: &Self) {
        if let Some(other) = &other.0 {
            self.0.get_or_insert_default().add(other);
        }
    }

    fn get(&self, layer: Layer) -> i64 {
        self.0.as_ref().and_then(|bytes| bytes.get(layer)).unwrap_or(0)
    }
}

/// How unevenly time is spread over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Imbalance {
    /// Exclusive time of this layer; `all`: time in the calls that the program made itself, whatever their layer.
    pub layer: &'static str,
    /// Over so many; the report has a row of each.
    #[serde(skip)]
    pub ranks: usize,
    pub max_ns: i64,
    pub mean_ns: f64,
    /// Greatest over mean: 1 is even.
    pub max_to_mean: f64,
    /// Greatest over mean of the bytes of these calls, of a layer the outermost ones; `None` where they moved none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max_to_mean: Option<f64>,
    /// The rank with the greatest time.
    pub slowest: i32,
}

/// What one process did.
#[derive(Default)]
struct OfProcess {
    pid: i32,
    rank: Option<i32>,
    asked: [i64; 2],
    /// Calls that the program made itself, their time and bytes, and the time of those of library layers among them.
    own_calls: i64,
    own_ns: i64,
    own_bytes: i64,
    library_ns: i64,
    /// By system calls, read and written.
    system: [i64; 2],
    exclusive: ByLayer,
    /// Bytes of outermost reads and writes of other layers.
    moved: Moved,
}

impl OfProcess {
    fn transfers(&mut self, layer: Layer, sums: &Sums) {
        if layer == Layer::Syscall {
            add(&mut self.system[0], sums.bytes_read);
            add(&mut self.system[1], sums.bytes_written);
        } else {
            self.moved.add(layer, sums.bytes());
        }
    }
}

/// What the table of processes has of one.
struct ProcessEntry {
    rank: Option<i32>,
    exe: Option<String>,
    /// From its start to its end.
    life: [i64; 2],
}

/// Sums up by process; memory grows with the number of processes. Each is freed when it has become part of a row.
#[derive(Default)]
pub struct ByProcess(HashMap<i32, Box<OfProcess>>);

fn add(to: &mut i64, n: i64) {
    *to = to.saturating_add(n);
}

impl ByProcess {
    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        if around.asks.is_some() {
            self.ask(span);
        }
        let process = self.0.entry(span.process_ix).or_default();
        process.pid = span.pid;
        process.rank = span.rank.or(process.rank);
        add(&mut process.exclusive.0[span.layer as usize], span.self_ns);
        if around.is_own(span) {
            let sums = Figures::of_call(span).sums();
            add(&mut process.own_calls, sums.calls);
            add(&mut process.own_ns, sums.dur_ns);
            add(&mut process.own_bytes, sums.bytes_read.saturating_add(sums.bytes_written));
            if span.layer.is_library() {
                add(&mut process.library_ns, span.inclusive_ns());
            }
        }
        process.transfers(span.layer, &Figures::of(span).sums());
    }

    /// Calls that were summed up: which of them the program made itself is not known.
    pub fn sums(&mut self, row: &FileRollup) {
        let Some(ix) = row.process_ix else { return };
        let process = self.0.entry(ix).or_default();
        process.pid = row.pid.unwrap_or(process.pid);
        process.rank = row.rank.or(process.rank);
        add(&mut process.exclusive.0[row.layer as usize], row.self_ns);
        process.transfers(row.layer, &Figures::of_sum(row).sums());
        // As in `amplification`.
        if row.calls_error.is_some() && is_data(row.kind) {
            add(&mut process.own_calls, row.calls);
            add(&mut process.asked[usize::from(row.kind == Kind::Write)], row.req_bytes);
        }
    }

    /// A call that counts as asked by the program.
    pub fn ask(&mut self, span: &Span) {
        let process = self.0.entry(span.process_ix).or_default();
        add(&mut process.asked[usize::from(span.kind == Kind::Write)], asked(span).unwrap_or(0));
    }

    /// Ranks in order, then processes without a rank; and how many processes there are.
    /// Processes whose end was not seen were there until the last row at least.
    pub fn finish(self, source: &mut dyn Source, quality: &Quality, last_ns: i64) -> Result<(Ranks, usize)> {
        let mut known = HashMap::<i32, ProcessEntry>::default();
        let mut all = self.0;
        source.processes(&mut |p: &Process| {
            let life = [p.start_ns.max(0), p.end_ns.unwrap_or(last_ns)];
            known.insert(p.process_ix, ProcessEntry { rank: p.rank, exe: p.exe.clone(), life });
            all.entry(p.process_ix).or_default().pid = p.pid;
            Ok(())
        })?;
        let processes = all.len();
        let order = |ix: i32, of_calls: Option<i32>| {
            let rank = known.get(&ix).and_then(|known| known.rank).or(of_calls);
            (rank.is_none(), rank.unwrap_or(ix), ix)
        };
        let mut ordered: Vec<(bool, i32, i32)> = all.iter().map(|(ix, process)| order(*ix, process.rank)).collect();
        ordered.sort_unstable();
        let alike = || ordered.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        let mut rows: Vec<RankRow> = Vec::with_capacity(alike().count());
        for alike in alike() {
            let rank = (!alike[0].0).then_some(alike[0].1);
            let exe = known.get_mut(&alike[0].2).and_then(|first| first.exe.take());
            let mut row = RankRow::new(rank, exe, quality);
            let of_row = || alike.iter().map(|(_, _, ix)| *ix);
            of_row().filter_map(|ix| all.remove(&ix)).for_each(|process| row.add(&process));
            let lives = of_row().filter_map(|ix| known.get(&ix)).map(|known| known.life);
            let life = lives.reduce(|all, one| [all[0].min(one[0]), all[1].max(one[1])]);
            row.wall_ns = life.map_or(0, |[start, end]| end.saturating_sub(start).max(0));
            for origin in of_row().filter_map(|ix| source.origin(IdKind::Process, i64::from(ix))) {
                if !row.hosts.iter().any(|host| host == origin.host) {
                    row.hosts.push(origin.host.to_owned());
                }
            }
            rows.push(row);
        }
        let (imbalance, share) = (imbalance(&rows), Share::of(&rows));
        Ok((Ranks { rows, imbalance, share }, processes))
    }
}

impl Share {
    fn of(rows: &[RankRow]) -> Option<Self> {
        let ranks = rows.iter().any(|row| row.rank.is_some());
        let counts = |row: &&RankRow| if ranks { row.rank.is_some() } else { !row.exclusive_ns.is_empty() };
        let none = Self { ranks, of: 0, wall_ns: 0, io_ns: 0, mpi_ns: 0, application_ns: 0 };
        let all = rows.iter().filter(counts).fold(none, |sum, row| {
            let [io_ns, mpi_ns] = row.in_calls();
            let mpi_ns = mpi_ns.min(row.wall_ns);
            let io_ns = io_ns.min(row.wall_ns.saturating_sub(mpi_ns));
            let rest = row.wall_ns.saturating_sub(io_ns).saturating_sub(mpi_ns);
            Self {
                of: sum.of + 1,
                wall_ns: sum.wall_ns.saturating_add(row.wall_ns),
                io_ns: sum.io_ns.saturating_add(io_ns),
                mpi_ns: sum.mpi_ns.saturating_add(mpi_ns),
                application_ns: sum.application_ns.saturating_add(rest),
                ..sum
            }
        });
        (all.wall_ns > 0).then_some(all)
    }

    /// `of 4 ranks: 12.0% in I/O calls, 3.0% in MPI communication inside them, 85.0% in application code`; without MPI not
    /// of that.
    pub fn text(&self) -> String {
        let part = |ns: i64| percent(ns as f64 / self.wall_ns.max(1) as f64);
        let of = match (self.ranks, self.of) {
            (true, 1) => "1 rank".to_owned(),
            (true, n) => format!("{n} ranks"),
            (false, 1) => "1 process".to_owned(),
            (false, n) => format!("{n} processes"),
        };
        let (io, rest) = (part(self.io_ns), part(self.application_ns));
        let mpi = match self.mpi_ns {
            0 => String::new(),
            ns => format!(", {} in MPI communication inside them", part(ns)),
        };
        format!("of {of}: {io} in I/O calls{mpi}, {rest} in application code")
    }
}

impl RankRow {
    fn new(rank: Option<i32>, exe: Option<String>, quality: &Quality) -> Self {
        Self {
            rank,
            hosts: Vec::new(),
            pids: Vec::new(),
            exe,
            calls: 0,
            asked_read: 0,
            asked_written: 0,
            syscall_read: 0,
            syscall_written: 0,
            library_ns: 0,
            own_ns: 0,
            own_bytes: 0,
            exclusive_ns: ByLayer::default(),
            moved: Moved::default(),
            wall_ns: 0,
            complete: quality.all(),
        }
    }

    /// Time in I/O calls, and in MPI communication inside them. Phases are application code.
    fn in_calls(&self) -> [i64; 2] {
        self.exclusive_ns.iter().fold([0, 0], |[io, mpi], (layer, ns)| {
            let ns = ns.max(0);
            match layer {
                Layer::Mpi => [io, mpi.saturating_add(ns)],
                Layer::App | Layer::Block => [io, mpi],
                _ => [io.saturating_add(ns), mpi],
            }
        })
    }

    fn add(&mut self, process: &OfProcess) {
        self.pids.push(process.pid);
        add(&mut self.calls, process.own_calls);
        add(&mut self.asked_read, process.asked[0]);
        add(&mut self.asked_written, process.asked[1]);
        add(&mut self.syscall_read, process.system[0]);
        add(&mut self.syscall_written, process.system[1]);
        add(&mut self.library_ns, process.library_ns);
        add(&mut self.own_ns, process.own_ns);
        add(&mut self.own_bytes, process.own_bytes);
        self.exclusive_ns.add(&process.exclusive);
        // Of others there is no imbalance.
        if self.rank.is_some() {
            self.moved.merge(&process.moved);
        }
    }
}

/// Ranks of a node with sums of their own at most.
const RANKS_MAX: usize = 4096;

/// What the program of each rank called itself, as it comes; of processes without a rank together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnCalls {
    ranks: BTreeMap<Option<i32>, Sums>,
    /// Of ranks beyond the limit.
    other: Sums,
}

impl OwnCalls {
    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        if around.is_own(span) {
            self.add(span.rank, &Figures::of_call(span).sums());
        }
    }

    /// Calls that were summed up. In aggregate mode which of them the program made itself is not known: system calls count.
    /// Else these are calls of a demoted function, of which no more is known than their number.
    pub fn sums(&mut self, row: &FileRollup, aggregate: bool) {
        if aggregate && is_file_access(row.layer) {
            self.add(row.rank, &Figures::of_sum(row).sums());
        } else if !aggregate && row.calls_error.is_some() && is_data(row.kind) {
            self.add(row.rank, &Sums { calls: row.calls, ..Sums::default() });
        }
    }

    /// Adds what came since.
    pub fn merge(&mut self, since: &Self) {
        for (rank, sums) in &since.ranks {
            self.add(*rank, sums);
        }
        self.other.merge(&since.other);
    }

    /// These never decrease, whatever a call claims to be.
    fn add(&mut self, rank: Option<i32>, sums: &Sums) {
        let sums = sums.map(|n| n.max(0));
        if self.ranks.len() < RANKS_MAX || self.ranks.contains_key(&rank) {
            self.ranks.entry(rank).or_default().merge(&sums);
        } else {
            self.other.merge(&sums);
        }
    }

    pub fn by_rank(&self) -> impl Iterator<Item = (Option<i32>, &Sums)> {
        self.ranks.iter().map(|(rank, sums)| (*rank, sums))
    }

    /// Of ranks that found no room, if there are any.
    pub fn other(&self) -> Option<&Sums> {
        (self.other != Sums::default()).then_some(&self.other)
    }
}

/// How unequal one figure of ranks is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub max: i64,
    pub mean: f64,
    /// The first rank with the most.
    pub most: i32,
}

/// A rank that takes so many times the mean time of all is a straggler.
pub const STRAGGLER: f64 = 1.5;

impl Spread {
    /// `None` of fewer than two ranks, and where none of them has any: processes that are no ranks have no reason to do the
    /// same, and have no part in it.
    pub fn of(ranks: &[(i32, i64)]) -> Option<Self> {
        let mean = ranks.iter().map(|(_, n)| *n as f64).sum::<f64>() / ranks.len().max(1) as f64;
        let (most, max) = ranks.iter().rev().max_by_key(|(_, n)| *n).filter(|_| ranks.len() > 1 && mean > 0.0)?;
        Some(Self { max: *max, mean, most: *most })
    }

    /// So many times the mean.
    pub fn times_mean(&self, n: i64) -> f64 {
        n as f64 / self.mean
    }

    /// Most over mean: 1 is even.
    pub fn max_to_mean(&self) -> f64 {
        self.times_mean(self.max)
    }
}

impl Imbalance {
    /// Of ranks, each with its time and bytes; `None` with fewer than two, and where none of them took any time.
    pub fn of(layer: &'static str, ranks: &[(i32, i64, i64)]) -> Option<Self> {
        let spread = |of: fn(&(i32, i64, i64)) -> (i32, i64)| Spread::of(&ranks.iter().map(of).collect::<Vec<_>>());
        let time = spread(|(rank, ns, _)| (*rank, *ns))?;
        Some(Self {
            layer,
            ranks: ranks.len(),
            max_ns: time.max,
            mean_ns: time.mean,
            max_to_mean: time.max_to_mean(),
            bytes_max_to_mean: spread(|(rank, _, bytes)| (*rank, *bytes)).map(|bytes| bytes.max_to_mean()),
            slowest: time.most,
        })
    }
}

fn imbalance(rows: &[RankRow]) -> Vec<Imbalance> {
    let is_rank = |row: &&RankRow| row.rank.is_some() && (row.calls > 0 || !row.exclusive_ns.is_empty());
    let ranks: Vec<_> = rows.iter().filter(is_rank).filter_map(|row| Some((row.rank?, row))).collect();
    let of = |layer, figures: &dyn Fn(&RankRow) -> (i64, i64)| {
        let of_rank = |(rank, row): &(i32, &RankRow)| {
            let (ns, bytes) = figures(row);
            (*rank, ns, bytes)
        };
        Imbalance::of(layer, &ranks.iter().map(of_rank).collect::<Vec<_>>())
    };
    let all = of("all", &|row| (row.own_ns, row.own_bytes));
    let bytes = |row: &RankRow, layer| match layer {
        Layer::Syscall => row.syscall_read.saturating_add(row.syscall_written),
        _ => row.moved.get(layer),
    };
    let of_layer =
        |layer: Layer| of(layer.name(), &|row| (row.exclusive_ns.get(layer).unwrap_or(0), bytes(row, layer)));
    all.into_iter().chain(LAYERS.into_iter().filter_map(of_layer)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_sums_up_to_a_number_and_the_rest_together() {
        let of = |rank| {
            let mut own = OwnCalls::default();
            own.add(rank, &Sums { calls: 1, dur_ns: -1, bytes_read: i64::MAX, ..Sums::default() });
            own
        };
        let mut own = OwnCalls::default();
        let ranks = i32::try_from(RANKS_MAX).unwrap_or(0) + 10;
        for rank in (0..ranks).map(Some).chain([Some(0), None]) {
            own.merge(&of(rank));
        }
        let first = own.by_rank().next().map(|(rank, sums)| (rank, sums.calls, sums.dur_ns, sums.bytes_read));
        assert_eq!(first, Some((Some(0), 2, 0, i64::MAX)));
        assert_eq!((own.by_rank().count(), own.other().map(|sums| sums.calls)), (RANKS_MAX, Some(11)));
    }

    #[test]
    fn the_spread_of_one_rank_or_of_nothing_is_none() {
        assert_eq!(Spread::of(&[(0, 5)]), None);
        assert_eq!(Spread::of(&[(0, 0), (1, 0)]), None);
        let spread = Spread::of(&[(0, 50), (1, 20), (2, 50)]);
        assert_eq!(spread, Some(Spread { max: 50, mean: 40.0, most: 0 }));
        assert_eq!(spread.map(|s| s.max_to_mean()), Some(1.25));
    }
}
