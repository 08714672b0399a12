//! What each process did: sums of its own calls, over time and by layer.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::bins::{Bins, Merge as _, Rate};
use super::sums::{moved, of_call};
use super::view::{Others, Sums, Window};
use crate::correlate::rows::{Rollup, Span};
use crate::words::{Kind, LAYERS, Layer};

/// Processes told apart at most.
const MAX_PROCESSES: usize = 4096;
/// The heat strip: length of a cell to begin with, and cells at most.
const CELL_NS: i64 = 100_000_000;
const CELLS: usize = 256;

/// One process.
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

/// All processes.
#[derive(Debug, Clone, Default)]
pub struct ProcessTable {
    pub processes: BTreeMap<i32, ProcessSums>,
    pub threads: HashMap<i32, u32>,
    pub other: Others,
    others: HashSet<i32>,
}

impl ProcessTable {
    fn process(&mut self, ix: i32, pid: i32, rank: Option<i32>) -> Option<&mut ProcessSums> {
        if self.processes.len() >= MAX_PROCESSES && !self.processes.contains_key(&ix) {
            if self.others.len() < MAX_PROCESSES * 16 && self.others.insert(ix) {
                self.other.rows += 1;
            }
            return None;
        }
        let process = self.processes.entry(ix).or_insert_with(|| ProcessSums {
            pid,
            rank,
            own: Bins::new(CELL_NS, CELLS),
            system: Sums::default(),
            self_ns: [0; LAYERS.len()],
            read_ns: 0,
            write_ns: 0,
            meta_ns: 0,
            rate: Rate::default(),
        });
        process.rank = process.rank.or(rank);
        Some(process)
    }

    pub fn add(&mut self, span: &Span, own: bool, second: i64) {
        let sums = of_call(span);
        let Some(process) = self.process(span.process_ix, span.pid, span.rank) else {
            if own {
                self.other.sums.merge(&sums);
            }
            return;
        };
        let sum = &mut process.self_ns[span.layer as usize];
        *sum = sum.saturating_add(span.self_ns);
        if matches!(span.layer, Layer::Syscall | Layer::Vfs) && span.layer_top {
            process.system.merge(&sums);
        }
        if own {
            process.own.at(span.start_ns).merge(&sums);
            process.kind(span.kind, span.dur_ns);
            let [read, written] = moved(span);
            process.rate.add(second, [1, read, written]);
        }
    }

    /// Of sums that do not tell which calls the program made itself: those of system calls.
    pub fn rollup(&mut self, row: &Rollup, sums: &Sums) {
        let Some(process) = self.process(row.process_ix, row.pid, row.rank) else { return };
        let sum = &mut process.self_ns[row.layer as usize];
        *sum = sum.saturating_add(row.self_ns);
        if matches!(row.layer, Layer::Syscall | Layer::Vfs) {
            process.system.merge(sums);
            process.own.at(row.t_ns).merge(sums);
            process.kind(row.kind, row.dur_ns);
        }
    }
}
