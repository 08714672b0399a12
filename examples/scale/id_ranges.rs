//! Ids of a node: each id of the recorded run becomes one, one for each rank, or one for each step of each rank.

use iotrace_bpf::rows::SEQ_BITS;
use std::collections::HashMap;

use super::recorded::{Recorded, Repeated, seq_of, thread_of};

/// What kind of thing an id means.
#[derive(Clone, Copy)]
pub enum Kind {
    Process,
    Thread,
    File,
    Path,
    Handle,
}

const KINDS: usize = 5;

/// Where the ids of one recorded id are: `base + rank * of_rank + step * of_step`.
#[derive(Clone, Copy, Default)]
struct IdRange {
    base: i32,
    of_rank: i32,
    of_step: i32,
}

/// A rank of the node, in one of its steps.
#[derive(Clone, Copy)]
pub struct At {
    pub rank: i32,
    pub step: i32,
}

/// The ids of all kinds.
pub struct IdRanges {
    of: [Vec<IdRange>; KINDS],
    repeated: Vec<Repeated>,
}

/// How an id is multiplied: not at all, or by ranks, or by ranks and steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Times {
    Once,
    Rank(usize),
    Step(usize),
}

/// What stands at an id.
fn put<T: Clone + Default>(table: &mut Vec<T>, id: i32, value: T) {
    let Ok(at) = usize::try_from(id) else { return };
    table.resize(table.len().max(at + 1), T::default());
    table[at] = value;
}

fn get<T: Copy + Default>(table: &[T], id: i32) -> T {
    usize::try_from(id).ok().and_then(|at| table.get(at).copied()).unwrap_or_default()
}

/// Gives ids out, without gaps but for those that the recorded ranks differ in.
fn id_ranges(ids: impl Iterator<Item = (i32, Times)>, ranks: i32) -> Vec<IdRange> {
    let ids: Vec<(i32, Times)> = ids.collect();
    let mut found = Vec::new();
    let mut next = 1;
    for (id, _) in ids.iter().filter(|(_, times)| *times == Times::Once) {
        put(&mut found, *id, IdRange { base: next, ..IdRange::default() });
        next += 1;
    }
    for by_step in [false, true] {
        let mut counts = HashMap::<usize, i32>::new();
        let mut numbered = Vec::new();
        for (id, times) in &ids {
            let rank = match times {
                Times::Rank(rank) if !by_step => rank,
                Times::Step(rank) if by_step => rank,
                _ => continue,
            };
            let count = counts.entry(*rank).or_default();
            numbered.push((*id, *count));
            *count += 1;
        }
        let most = counts.values().copied().max().unwrap_or(0);
        for (id, number) in numbered {
            let of_step = if by_step { most * ranks } else { 0 };
            put(&mut found, id, IdRange { base: next + number, of_rank: most, of_step });
        }
        next += most * ranks;
    }
    found
}

impl IdRanges {
    pub fn new(run: &Recorded, ranks: i32) -> Self {
        let owner = |process: i32| run.rank_of.get(&process).copied();
        let by_rank = |owner: Option<usize>| owner.map_or(Times::Once, Times::Rank);
        let files = run.owned(|span| [span.file_id, None]);
        let paths = run.owned(|span| [span.path_id, span.path2_id]);
        let handle = |row: &iotrace_bpf::rows::Handle| match owner(row.process_ix) {
            None => Times::Once,
            Some(rank) if row.open_span_id.is_some_and(|id| run.is_repeated(id)) => Times::Step(rank),
            Some(rank) => Times::Rank(rank),
        };
        let mut repeated = Vec::new();
        run.repeated.iter().for_each(|(thread, of)| put(&mut repeated, *thread, *of));
        Self {
            of: [
                id_ranges(run.processes.keys().map(|id| (*id, by_rank(owner(*id)))), ranks),
                id_ranges(run.threads.values().map(|row| (row.thread_ix, by_rank(owner(row.process_ix)))), ranks),
                id_ranges(run.files.keys().map(|id| (*id, by_rank(files.get(id).copied()))), ranks),
                id_ranges(run.paths.keys().map(|id| (*id, by_rank(paths.get(id).copied()))), ranks),
                id_ranges(run.handles.values().map(|row| (row.handle_id, handle(row))), ranks),
            ],
            repeated,
        }
    }

    fn range(&self, kind: Kind, id: i32) -> IdRange {
        get(&self.of[kind as usize], id)
    }

    /// The id; of what the run does not describe 0, as ids below that are.
    pub fn id(&self, kind: Kind, id: i32, at: At) -> i32 {
        if id < 0 {
            return id;
        }
        let IdRange { base, of_rank, of_step } = self.range(kind, id);
        base + at.rank * of_rank + at.step * of_step
    }

    pub fn some(&self, kind: Kind, id: Option<i32>, at: At) -> Option<i32> {
        id.map(|id| self.id(kind, id, at))
    }

    /// Whether there is one of it for each rank, and whether for each step.
    pub fn is_multiplied(&self, kind: Kind, id: i32) -> (bool, bool) {
        let range = self.range(kind, id);
        (range.of_rank > 0, range.of_step > 0)
    }

    pub fn span(&self, id: i64, at: At) -> i64 {
        let (thread, seq) = (thread_of(id), seq_of(id));
        let Repeated { first, width } = get(&self.repeated, thread);
        let seq = if seq >= first { seq + i64::from(at.step) * width } else { seq };
        (i64::from(self.id(Kind::Thread, thread, at)) << SEQ_BITS) | seq
    }
}
