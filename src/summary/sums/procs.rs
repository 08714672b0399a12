//! What each process did: sums of its own calls, over time and by layer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use crate::analysis::calls::{Figures, Sums, is_data, is_file_access};
use crate::rows::{FileRollup, Rollup, Span};
use crate::summary::bins::{Bins, Rate};
use crate::summary::view::{Others, Window};
use crate::vocabulary::{Kind, LAYERS};

/// Processes, and threads, with sums of their own at most.
const MAX: usize = 4096;
/// Cells of the heat strip at most.
const CELLS: usize = 256;
/// Of a thread, of which there may be many more.
const THREAD_CELLS: usize = 64;

/// One process or thread.
#[derive(Debug, Clone)]
pub struct ProcessSums {
    pub pid: i32,
    pub rank: Option<i32>,
    /// Of calls that the program made itself, over time.
    pub own: Bins<Sums>,
    pub system: Sums,
    pub self_ns: [i64; LAYERS.len()],
    pub read_ns: i64,
    pub write_ns: i64,
    pub meta_ns: i64,
    pub rate: Rate,
}

impl ProcessSums {
    fn new(pid: i32, rank: Option<i32>, cell_ns: i64, cells: usize) -> Self {
        Self {
            pid,
            rank,
            own: Bins::new(cell_ns, cells),
            system: Sums::default(),
            self_ns: [0; LAYERS.len()],
            read_ns: 0,
            write_ns: 0,
            meta_ns: 0,
            rate: Rate::default(),
        }
    }

    fn add(&mut self, span: &Span, own: bool, second: i64) {
        let sums = Figures::of_call(span).sums();
        let sum = &mut self.self_ns[span.layer as usize];
        *sum = sum.saturating_add(span.self_ns);
        if is_file_access(span.layer) && span.layer_top {
            self.system.merge(&sums);
        }
        if own {
            self.own.at(span.start_ns).merge(&sums);
            self.kind(span.kind, span.inclusive_ns());
            self.rate.add(second, [1, sums.bytes_read, sums.bytes_written]);
        }
    }

    fn kind(&mut self, kind: Kind, dur_ns: i64) {
        let sum = match kind {
            Kind::Read => &mut self.read_ns,
            Kind::Write => &mut self.write_ns,
            _ => &mut self.meta_ns,
        };
        *sum = sum.saturating_add(dur_ns);
    }

    pub fn total(&self, window: Option<Window>) -> Sums {
        self.own.sum(window)
    }
}

/// All processes, and their threads.
#[derive(Debug, Clone)]
pub struct ProcessTable {
    /// Length of a cell of the heat strip to begin with.
    cell_ns: i64,
    pub processes: BTreeMap<i32, ProcessSums>,
    /// By process and thread.
    pub by_thread: BTreeMap<(i32, i32), ProcessSums>,
    pub threads: HashMap<i32, u32>,
    pub other: Others,
    pub other_threads: Others,
    others: HashSet<i32>,
    thread_others: HashSet<(i32, i32)>,
}

/// The sums of one of them, if there is room; what finds none is counted.
fn room<'a, K: Ord + Hash + Copy>(
    all: &'a mut BTreeMap<K, ProcessSums>,
    (other, others): (&mut Others, &mut HashSet<K>),
    key: K,
    new: impl FnOnce() -> ProcessSums,
) -> Option<&'a mut ProcessSums> {
    if all.len() >= MAX && !all.contains_key(&key) {
        if others.len() < MAX * 16 && others.insert(key) {
            other.rows += 1;
        }
        return None;
    }
    Some(all.entry(key).or_insert_with(new))
}

impl ProcessTable {
    pub fn new(cell_ns: i64) -> Self {
        Self {
            cell_ns,
            processes: BTreeMap::new(),
            by_thread: BTreeMap::new(),
            threads: HashMap::new(),
            other: Others::default(),
            other_threads: Others::default(),
            others: HashSet::new(),
            thread_others: HashSet::new(),
        }
    }

    fn process(&mut self, ix: i32, pid: i32, rank: Option<i32>) -> Option<&mut ProcessSums> {
        let others = (&mut self.other, &mut self.others);
        let cell_ns = self.cell_ns;
        let process = room(&mut self.processes, others, ix, || ProcessSums::new(pid, rank, cell_ns, CELLS))?;
        process.rank = process.rank.or(rank);
        Some(process)
    }

    pub fn add(&mut self, span: &Span, own: bool, second: i64) {
        match self.process(span.process_ix, span.pid, span.rank) {
            Some(process) => process.add(span, own, second),
            None if own => self.other.sums.merge(&Figures::of_call(span).sums()),
            None => {}
        }
        let others = (&mut self.other_threads, &mut self.thread_others);
        let cell_ns = self.cell_ns;
        let new = || ProcessSums::new(span.pid, span.rank, cell_ns, THREAD_CELLS);
        match room(&mut self.by_thread, others, (span.process_ix, span.tid), new) {
            Some(thread) => {
                thread.rank = thread.rank.or(span.rank);
                thread.add(span, own, second);
            }
            None if own => self.other_threads.sums.merge(&Figures::of_call(span).sums()),
            None => {}
        }
    }

    /// Calls that were summed up. What the program called itself is not known: system calls are counted as that.
    pub fn sums(&mut self, row: &FileRollup, sums: &Sums, second: i64) {
        let system = is_file_access(row.layer);
        let process = row.process_ix.and_then(|ix| self.process(ix, row.pid.unwrap_or(0), row.rank));
        let Some(process) = process else {
            if system {
                self.other.sums.merge(sums);
            }
            return;
        };
        let sum = &mut process.self_ns[row.layer as usize];
        *sum = sum.saturating_add(row.self_ns);
        if system {
            process.system.merge(sums);
            process.own.at(row.from_ns).merge(sums);
            process.kind(row.kind, row.dur_ns);
            process.rate.add(second, [sums.calls, sums.bytes_read, sums.bytes_written]);
        }
    }

    /// Calls of a demoted function that were not recorded count for the program, as in the report: their number is all that is
    /// known.
    pub fn estimated(&mut self, row: &FileRollup) {
        if let Some(ix) = row.process_ix.filter(|_| is_data(row.kind))
            && let Some(process) = self.process(ix, row.pid.unwrap_or(0), row.rank)
        {
            process.own.at(row.from_ns).merge(&Sums { calls: row.calls, ..Sums::default() });
        }
    }

    /// Of sums that do not hold which calls the program made itself: those of system calls. Nor do they hold threads.
    pub fn rollup(&mut self, row: &Rollup, sums: &Sums) {
        let Some(process) = self.process(row.process_ix, row.pid, row.rank) else { return };
        let sum = &mut process.self_ns[row.layer as usize];
        *sum = sum.saturating_add(row.self_ns);
        if is_file_access(row.layer) {
            process.system.merge(sums);
            process.own.at(row.t_ns).merge(sums);
            process.kind(row.kind, row.dur_ns);
        }
    }
}
