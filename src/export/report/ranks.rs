//! What each rank, or each process without one, did and how unevenly the work was spread.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::export::report::amplification::asked;
use crate::export::report::header::{Header, Quality};
use crate::export::report::layers::is_data;
use crate::export::report::own::Place;
use crate::export::report::source::{Source, Thing};
use crate::rows::{FileRollup, Process, Span};
use crate::vocabulary::{Kind, LAYERS, Layer};

/// Ranks and processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ranks {
    pub rows: Vec<RankRow>,
    /// Of ranks: none with fewer than two.
    pub imbalance: Vec<Imbalance>,
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
    pub exclusive_ns: BTreeMap<&'static str, i64>,
    pub complete: bool,
}

/// How unevenly time is spread over ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Imbalance {
    /// Exclusive time of this layer; `all`: time in the calls that the program made itself, whatever their layer.
    pub layer: &'static str,
    pub max_ns: i64,
    pub mean_ns: f64,
    /// Greatest over mean: 1 is even.
    pub max_to_mean: f64,
    /// Greatest over mean of the bytes of these calls: only of `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max_to_mean: Option<f64>,
    /// The rank with the greatest time.
    pub slowest: i32,
}

#[derive(Default)]
struct Work {
    pid: i32,
    rank: Option<i32>,
    calls: i64,
    asked: [i64; 2],
    syscall: [i64; 2],
    library: i64,
    own_ns: i64,
    own_bytes: i64,
    exclusive: [i64; LAYERS.len()],
}

/// Sums up by process; memory grows with the number of processes.
#[derive(Default)]
pub struct Works {
    by_process: HashMap<i32, Work>,
}

fn add(to: &mut i64, n: i64) {
    *to = to.saturating_add(n);
}

impl Works {
    pub fn span(&mut self, span: &Span, place: &Place) {
        let own = place.is_own(span);
        if place.asks(span) && is_data(span) {
            self.ask(span);
        }
        let work = self.by_process.entry(span.process_ix).or_default();
        work.pid = span.pid;
        work.rank = span.rank.or(work.rank);
        add(&mut work.exclusive[span.layer as usize], span.self_ns);
        if own {
            work.calls += 1;
            add(&mut work.own_ns, span.inclusive_ns());
            if is_data(span) {
                add(&mut work.own_bytes, span.bytes.unwrap_or(0));
            }
            if (Layer::Netcdf..=Layer::Stdio).contains(&span.layer) {
                add(&mut work.library, span.inclusive_ns());
            }
        }
        if span.layer == Layer::Syscall && span.layer_top && is_data(span) {
            add(&mut work.syscall[usize::from(span.kind == Kind::Write)], span.bytes.unwrap_or(0));
        }
    }

    /// Calls that were summed up: which of them the program made itself is not known.
    pub fn sums(&mut self, row: &FileRollup) {
        let Some(process) = row.process_ix else { return };
        let work = self.by_process.entry(process).or_default();
        work.pid = row.pid.unwrap_or(work.pid);
        work.rank = row.rank.or(work.rank);
        add(&mut work.exclusive[row.layer as usize], row.self_ns);
        if !matches!(row.kind, Kind::Read | Kind::Write) {
            return;
        }
        if row.layer == Layer::Syscall {
            add(&mut work.syscall[usize::from(row.kind == Kind::Write)], row.bytes);
        }
        // As in `amplification`.
        if row.calls_error.is_some() {
            work.calls = work.calls.saturating_add(row.calls);
            add(&mut work.asked[usize::from(row.kind == Kind::Write)], row.req_bytes);
        }
    }

    /// A call that counts as asked by the program.
    pub fn ask(&mut self, span: &Span) {
        let work = self.by_process.entry(span.process_ix).or_default();
        add(&mut work.asked[usize::from(span.kind == Kind::Write)], asked(span).unwrap_or(0));
    }

    /// Ranks in order, then processes without a rank; also counts both in the header.
    pub fn finish(self, source: &mut dyn Source, quality: &Quality, header: &mut Header) -> Result<Ranks> {
        let mut known = HashMap::<i32, (Option<i32>, i32, Option<String>)>::default();
        source.processes(&mut |p: &Process| {
            known.insert(p.process_ix, (p.rank, p.pid, p.exe.clone()));
            Ok(())
        })?;
        let mut works = self.by_process;
        for (ix, (_, pid, _)) in &known {
            works.entry(*ix).or_default().pid = *pid;
        }
        header.processes = works.len();
        let mut ordered: Vec<_> = works.into_iter().collect();
        ordered.sort_by_key(|(ix, _)| *ix);
        let mut rows = BTreeMap::<(bool, i32), RankRow>::new();
        for (ix, work) in ordered {
            let (rank, exe) = match known.remove(&ix) {
                Some((rank, _, exe)) => (rank.or(work.rank), exe),
                None => (work.rank, None),
            };
            let row =
                rows.entry((rank.is_none(), rank.unwrap_or(ix))).or_insert_with(|| RankRow::new(rank, exe, quality));
            row.add(&work);
            if let Some(origin) = source.origin(Thing::Process, i64::from(ix))
                && !row.hosts.iter().any(|host| host == origin.host)
            {
                row.hosts.push(origin.host.to_owned());
            }
        }
        let rows: Vec<_> = rows.into_values().collect();
        header.ranks = rows.iter().filter(|row| row.rank.is_some()).count();
        let imbalance = imbalance(&rows);
        Ok(Ranks { rows, imbalance })
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
            exclusive_ns: BTreeMap::new(),
            complete: quality.all(),
        }
    }

    fn add(&mut self, work: &Work) {
        self.pids.push(work.pid);
        self.calls += work.calls;
        add(&mut self.asked_read, work.asked[0]);
        add(&mut self.asked_written, work.asked[1]);
        add(&mut self.syscall_read, work.syscall[0]);
        add(&mut self.syscall_written, work.syscall[1]);
        add(&mut self.library_ns, work.library);
        add(&mut self.own_ns, work.own_ns);
        add(&mut self.own_bytes, work.own_bytes);
        for (layer, ns) in LAYERS.iter().zip(work.exclusive).filter(|(_, ns)| *ns != 0) {
            add(self.exclusive_ns.entry(layer.name()).or_default(), ns);
        }
    }
}

fn imbalance(rows: &[RankRow]) -> Vec<Imbalance> {
    let rows: Vec<_> =
        rows.iter().filter(|row| row.rank.is_some() && (row.calls > 0 || !row.exclusive_ns.is_empty())).collect();
    if rows.len() < 2 {
        return Vec::new();
    }
    let spread = |of: &dyn Fn(&RankRow) -> i64| {
        let mean = rows.iter().map(|row| of(row) as f64).sum::<f64>() / rows.len() as f64;
        // The first of several.
        let most = rows.iter().rev().max_by_key(|row| of(row)).filter(|_| mean > 0.0)?;
        Some((of(most), mean, most.rank?))
    };
    let row = |layer, (max_ns, mean_ns, slowest): (i64, f64, i32), bytes_max_to_mean| Imbalance {
        layer,
        max_ns,
        mean_ns,
        max_to_mean: max_ns as f64 / mean_ns,
        bytes_max_to_mean,
        slowest,
    };
    let bytes = spread(&|row| row.own_bytes).map(|(max, mean, _)| max as f64 / mean);
    let all = spread(&|row| row.own_ns).map(|time| row("all", time, bytes));
    let of_layer = |layer: Layer| {
        let time = spread(&|row| row.exclusive_ns.get(layer.name()).copied().unwrap_or(0))?;
        Some(row(layer.name(), time, None))
    };
    all.into_iter().chain(LAYERS.into_iter().filter_map(of_layer)).collect()
}
