//! A recorded run, taken apart: what a rank does once, and the step that a long run repeats.

use anyhow::{Result, ensure};
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{
    CallPath, Coverage, File, FilePath, Handle, Loss, Meta, Metric, Mount, Object, Process, SEQ_BITS, Span, Stack,
    Thread,
};
use iotrace_bpf::vocabulary::Layer;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Into how many parts with time between them a step is divided, at most.
const CHUNKS: usize = 12;
const SEQ_MASK: i64 = (1 << SEQ_BITS) - 1;

/// The thread of a call.
pub fn thread_of(span_id: i64) -> i32 {
    (span_id >> SEQ_BITS) as i32
}

/// The number of a call in its thread.
pub fn seq_of(span_id: i64) -> i64 {
    span_id & SEQ_MASK
}

/// A call, and what decides how its times may be changed.
pub struct Call {
    pub span: Span,
    /// When the outermost call around it began.
    pub root_ns: i64,
    /// It is part of a call that no rank leaves before all are in it: the times of ranks depend on each other.
    pub met: bool,
    /// It is part of a call in which ranks communicate.
    pub together: bool,
}

/// What one rank did.
#[derive(Default)]
pub struct Rank {
    /// Up to its first collective call.
    pub once: Vec<Call>,
    /// From there on, by the parts of the step.
    pub step: Vec<Vec<Call>>,
}

/// Calls of a thread that are repeated: the first one, and how many numbers they take.
#[derive(Clone, Copy, Default)]
pub struct Repeated {
    pub first: i64,
    pub width: i64,
}

/// The run.
pub struct Recorded {
    /// Calls of processes that are no rank.
    pub launcher: Vec<Call>,
    pub ranks: Vec<Rank>,
    /// By thread; those without have none that are repeated.
    pub repeated: HashMap<i32, Repeated>,
    /// How long a step takes, in ns, and the most of its parts.
    pub step_ns: i64,
    pub chunks: usize,
    /// Of each process, file, path and handle the rank that alone has to do with it.
    pub rank_of: HashMap<i32, usize>,
    pub files: BTreeMap<i32, File>,
    pub file_paths: Vec<FilePath>,
    pub paths: BTreeMap<i32, CallPath>,
    pub handles: BTreeMap<i32, Handle>,
    pub objects: BTreeMap<i32, Object>,
    pub processes: BTreeMap<i32, Process>,
    pub threads: BTreeMap<i32, Thread>,
    pub mounts: BTreeMap<i32, Mount>,
    pub stacks: Vec<Stack>,
    pub metrics: Vec<Metric>,
    pub losses: Vec<Loss>,
    pub coverage: Vec<Coverage>,
    pub meta: Vec<Meta>,
}

impl Recorded {
    /// Reads a dataset of ranks.
    pub fn read(path: &Path) -> Result<Self> {
        let dataset = Dataset::open(path)?;
        let processes: BTreeMap<i32, Process> = dataset.last_by_id()?;
        let rank_of: HashMap<i32, usize> =
            processes.values().filter_map(|p| Some((p.process_ix, usize::try_from(p.rank?).ok()?))).collect();
        let ranks = rank_of.values().max().map_or(0, |most| most + 1);
        ensure!(ranks > 0, "{} has no ranks: record a program that mpirun started", path.display());
        let calls = calls(dataset.all()?);
        let begun = beginnings(&calls, &rank_of);
        let is_step = |call: &Call| begun.get(&call.span.process_ix).is_some_and(|at| call.root_ns >= *at);
        let cuts = cuts(&calls.iter().filter(|call| is_step(call)).collect::<Vec<_>>());
        let mut run = Self {
            launcher: Vec::new(),
            ranks: (0..ranks).map(|_| Rank::default()).collect(),
            repeated: HashMap::new(),
            step_ns: 0,
            chunks: cuts.len(),
            rank_of,
            files: dataset.last_by_id()?,
            file_paths: dataset.all()?,
            paths: dataset.all::<CallPath>()?.into_iter().map(|row| (row.path_id, row)).collect(),
            handles: dataset.last_by_id()?,
            objects: dataset.last_by_id()?,
            processes,
            threads: dataset.all::<Thread>()?.into_iter().map(|row| (row.thread_ix, row)).collect(),
            mounts: dataset.last_by_id()?,
            stacks: dataset.all()?,
            metrics: dataset.all()?,
            losses: dataset.all()?,
            coverage: dataset.all()?,
            meta: dataset.all()?,
        };
        let mut last_ns = 0;
        for call in calls {
            let Some(rank) = run.rank_of.get(&call.span.process_ix) else {
                run.launcher.push(call);
                continue;
            };
            let Some(rank) = run.ranks.get_mut(*rank) else { continue };
            if begun.get(&call.span.process_ix).is_none_or(|at| call.root_ns < *at) {
                rank.once.push(call);
                continue;
            }
            last_ns = last_ns.max(call.span.end_ns());
            let seq = seq_of(call.span.span_id);
            let thread = run.repeated.entry(thread_of(call.span.span_id)).or_insert(Repeated { first: seq, width: 0 });
            thread.width = thread.width.max(seq + 1 - thread.first);
            let chunk = cuts.partition_point(|cut| *cut <= call.root_ns).saturating_sub(1);
            rank.step.resize_with(cuts.len(), Vec::new);
            rank.step[chunk].push(call);
        }
        run.step_ns = last_ns - cuts.first().copied().unwrap_or(0);
        Ok(run)
    }

    /// The mean over ranks: calls made once, and in a step.
    pub fn calls_of_rank(&self) -> (u64, u64) {
        let sum = |of: fn(&Rank) -> usize| self.ranks.iter().map(of).sum::<usize>().div_ceil(self.ranks.len()) as u64;
        (sum(|rank| rank.once.len()), sum(|rank| rank.step.iter().map(Vec::len).sum()))
    }

    /// What only one rank has to do with, by the id that its calls have for it.
    pub fn owned(&self, id: impl Fn(&Span) -> [Option<i32>; 2]) -> HashMap<i32, usize> {
        let mut users = HashMap::<i32, BTreeSet<Option<usize>>>::new();
        let ranks = self.ranks.iter().enumerate();
        let ranks = ranks.flat_map(|(n, rank)| rank.calls().map(move |call| (Some(n), call)));
        for (user, call) in self.launcher.iter().map(|call| (None, call)).chain(ranks) {
            for id in id(&call.span).into_iter().flatten() {
                users.entry(id).or_default().insert(user);
            }
        }
        let one = |(id, of): (i32, BTreeSet<Option<usize>>)| match of.first() {
            Some(Some(rank)) if of.len() == 1 => Some((id, *rank)),
            _ => None,
        };
        users.into_iter().filter_map(one).collect()
    }

    /// Whether a call is one of a step.
    pub fn is_repeated(&self, span_id: i64) -> bool {
        self.repeated.get(&thread_of(span_id)).is_some_and(|thread| seq_of(span_id) >= thread.first)
    }
}

impl Rank {
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.once.iter().chain(self.step.iter().flatten())
    }
}

/// Calls with what is around them before what is inside, thread by thread.
fn calls(mut spans: Vec<Span>) -> Vec<Call> {
    let starts: HashMap<i64, i64> = spans.iter().map(|span| (span.span_id, span.start_ns)).collect();
    let roots = |which: fn(&Span) -> bool| -> BTreeSet<i64> {
        spans.iter().filter(|span| which(span)).map(|span| span.root_id).collect()
    };
    let met = roots(|span| span.coll_id.is_some() && span.op == "MPI_File_open");
    let together = roots(|span| span.coll_id.is_some() || span.layer == Layer::Mpi);
    spans.sort_by_key(|span| (span.span_id >> SEQ_BITS, span.span_id));
    let call = |span: Span| Call {
        root_ns: starts.get(&span.root_id).copied().unwrap_or(span.start_ns),
        met: met.contains(&span.root_id),
        together: together.contains(&span.root_id),
        span,
    };
    spans.into_iter().map(call).collect()
}

/// When the step of each process begins: with its first collective call, or what is around that; without any, at once.
fn beginnings(calls: &[Call], rank_of: &HashMap<i32, usize>) -> HashMap<i32, i64> {
    let mut begun = HashMap::new();
    for only_collective in [true, false] {
        let mut found = HashMap::<i32, i64>::new();
        for call in calls.iter().filter(|call| rank_of.contains_key(&call.span.process_ix)) {
            if call.span.coll_id.is_some() || !only_collective {
                let at = found.entry(call.span.process_ix).or_insert(call.root_ns);
                *at = call.root_ns.min(*at);
            }
        }
        for (process, at) in found {
            begun.entry(process).or_insert(at);
        }
    }
    begun
}

/// The beginnings of the parts of a step: moments at which no ranks communicate, after about equally many calls.
fn cuts(calls: &[&Call]) -> Vec<i64> {
    let mut times: Vec<(i64, i64)> = calls
        .iter()
        .map(|call| (call.root_ns, if call.together { call.span.end_ns() } else { call.root_ns }))
        .collect();
    times.sort_unstable();
    let mut cuts = vec![times.first().map_or(0, |(start, _)| *start)];
    let (mut until, mut since) = (i64::MIN, 0);
    for (start, end) in &times {
        if *start > until && since * CHUNKS >= times.len() {
            cuts.push(*start);
            since = 0;
        }
        until = until.max(*end);
        since += 1;
    }
    cuts
}
