//! What came since a mark: figures of now less those of then.

use std::collections::HashMap;
use std::sync::Arc;

use crate::analysis::calls::ratio;
use crate::summary::groups::imbalance;
use crate::summary::view::{
    ChainStep, FileRow, Files, LayerRow, Others, Overview, ProcessRow, Processes, Snapshot, Sums,
};
use crate::vocabulary::Layer;

/// The figures at some time, to be taken from later ones.
#[derive(Debug, Clone)]
pub struct Mark {
    pub at_ns: i64,
    overview: Arc<Overview>,
    processes: Arc<Processes>,
    threads: Arc<Processes>,
    files: Arc<Files>,
}

impl Mark {
    /// Of an overview, and of one of the processes screen with a row for each thread.
    pub fn new(overview: &Snapshot, threads: &Snapshot) -> Self {
        Self {
            at_ns: overview.kept.to_ns,
            overview: Arc::clone(&overview.overview),
            processes: Arc::clone(&overview.processes),
            threads: Arc::clone(&threads.processes),
            files: Arc::clone(&overview.files),
        }
    }

    /// A later snapshot with layers, processes and files as they have been since. Distributions cannot be taken from each other:
    /// there are none.
    pub fn since(&self, now: &Snapshot, threads: bool) -> Snapshot {
        let processes = self.processes(&now.processes, threads);
        Snapshot {
            overview: Arc::new(self.overview(&now.overview, &processes)),
            processes: Arc::new(processes),
            files: Arc::new(self.files(&now.files)),
            ..now.clone()
        }
    }

    fn overview(&self, now: &Overview, processes: &Processes) -> Overview {
        let base: HashMap<Option<Layer>, &LayerRow> = self.overview.layers.iter().map(|l| (l.layer, l)).collect();
        let mut layers: Vec<LayerRow> = now
            .layers
            .iter()
            .map(|row| LayerRow {
                sums: base.get(&row.layer).map_or(row.sums, |base| less(&row.sums, &base.sums)),
                latency: None,
                ..row.clone()
            })
            .collect();
        let own = |row: &LayerRow| row.sums.self_ns.max(0) as f64;
        let whole: f64 = layers.iter().map(own).sum();
        for row in &mut layers {
            row.self_share = ratio(own(row), whole);
        }
        let then = |layer| self.overview.chain.iter().find(|s| s.layer == layer).copied().unwrap_or_default();
        let step = |s: &ChainStep| ChainStep {
            layer: s.layer,
            bytes_read: s.bytes_read.saturating_sub(then(s.layer).bytes_read),
            bytes_written: s.bytes_written.saturating_sub(then(s.layer).bytes_written),
            ratio: 0.0,
        };
        let mut chain: Vec<ChainStep> = now.chain.iter().map(step).collect();
        let asked = chain.first().map_or(0, |s| s.bytes_read.saturating_add(s.bytes_written)) as f64;
        for s in &mut chain {
            s.ratio = ratio(s.bytes_read.saturating_add(s.bytes_written) as f64, asked);
        }
        Overview {
            layers,
            chain,
            imbalance: imbalance(processes.rows.iter().map(|r| (r.rank, r.sums))),
            cache_bytes: now.cache_bytes.saturating_sub(self.overview.cache_bytes),
            cache_miss_bytes: now.cache_miss_bytes.saturating_sub(self.overview.cache_miss_bytes),
            parts: std::array::from_fn(|at| now.parts[at].saturating_sub(self.overview.parts[at])),
        }
    }

    fn processes(&self, now: &Processes, threads: bool) -> Processes {
        let then = if threads { &self.threads } else { &self.processes };
        let base: HashMap<i64, &ProcessRow> = then.rows.iter().map(|r| (r.id(), r)).collect();
        let (rows, other) = rows(&now.rows, (now.other, then.other), |row| {
            let base = base.get(&row.id())?;
            let own = |layer| base.self_by_layer.iter().find(|(l, _)| *l == layer).map_or(0, |(_, ns)| *ns);
            Some(ProcessRow {
                sums: less(&row.sums, &base.sums),
                system: less(&row.system, &base.system),
                self_by_layer: row
                    .self_by_layer
                    .iter()
                    .map(|(layer, ns)| (*layer, ns.saturating_sub(own(*layer))))
                    .filter(|(_, ns)| *ns != 0)
                    .collect(),
                read_ns: row.read_ns.saturating_sub(base.read_ns),
                write_ns: row.write_ns.saturating_sub(base.write_ns),
                meta_ns: row.meta_ns.saturating_sub(base.meta_ns),
                ..row.clone()
            })
        });
        Processes { rows, other, ..now.clone() }
    }

    fn files(&self, now: &Files) -> Files {
        let base: HashMap<i32, &FileRow> = self.files.rows.iter().map(|r| (r.file_id, r)).collect();
        let (mut rows, other) = rows(&now.rows, (now.other, self.files.other), |row| {
            let base = base.get(&row.file_id)?;
            Some(FileRow {
                sums: less(&row.sums, &base.sums),
                opens: row.opens.saturating_sub(base.opens),
                syncs: row.syncs.saturating_sub(base.syncs),
                metas: row.metas.saturating_sub(base.metas),
                placed: row.placed.saturating_sub(base.placed),
                consecutive: row.consecutive.saturating_sub(base.consecutive),
                sequential: row.sequential.saturating_sub(base.sequential),
                small: row.small.saturating_sub(base.small),
                miss_bytes: row.miss_bytes.saturating_sub(base.miss_bytes),
                device_bytes: row.device_bytes.saturating_sub(base.device_bytes),
                latency: None,
                ..row.clone()
            })
        });
        rows.sort_by_key(|r| std::cmp::Reverse(r.sums.dur_ns));
        Files { rows, other }
    }
}

/// Rows less those of then. One that was not there then is new; where rows had been left out it may have been one of these, and
/// is left out, too.
fn rows<R: Clone>(
    now: &[R],
    (other, then): (Option<Others>, Option<Others>),
    since: impl Fn(&R) -> Option<R>,
) -> (Vec<R>, Option<Others>) {
    let mut rows = Vec::with_capacity(now.len());
    let mut not_known = 0;
    for row in now {
        match since(row) {
            Some(row) => rows.push(row),
            None if then.is_some() => not_known += 1,
            None => rows.push(row.clone()),
        }
    }
    let other = other.unwrap_or_default();
    let sums = less(&other.sums, &then.unwrap_or_default().sums);
    let other = Others { rows: other.rows + not_known, sums };
    (rows, (other.rows > 0).then_some(other))
}

fn less(now: &Sums, then: &Sums) -> Sums {
    Sums {
        calls: now.calls.saturating_sub(then.calls),
        bytes_read: now.bytes_read.saturating_sub(then.bytes_read),
        bytes_written: now.bytes_written.saturating_sub(then.bytes_written),
        dur_ns: now.dur_ns.saturating_sub(then.dur_ns),
        self_ns: now.self_ns.saturating_sub(then.self_ns),
        errors: now.errors.saturating_sub(then.errors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(calls: i64, dur_ns: i64) -> Sums {
        Sums { calls, bytes_read: 100 * calls, dur_ns, self_ns: dur_ns, ..Sums::default() }
    }

    fn at(time: i64, processes: &[(i32, Sums)], other: Option<Others>) -> Snapshot {
        let layer = |layer, sums| LayerRow { layer: Some(layer), sums, ..LayerRow::default() };
        let process = |(ix, sums): &(i32, Sums)| ProcessRow {
            process_ix: *ix,
            pid: *ix,
            rank: Some(*ix),
            sums: *sums,
            ..ProcessRow::default()
        };
        Snapshot {
            kept: crate::summary::view::Window { from_ns: 0, to_ns: time },
            overview: Arc::new(Overview {
                layers: vec![layer(Layer::Hdf5, sums(time, time * 3)), layer(Layer::Syscall, sums(1, 5))],
                chain: vec![ChainStep { layer: None, bytes_read: time * 10, ..ChainStep::default() }],
                ..Overview::default()
            }),
            processes: Arc::new(Processes {
                rows: processes.iter().map(process).collect(),
                other,
                ..Processes::default()
            }),
            ..Snapshot::default()
        }
    }

    #[test]
    fn what_was_there_then_is_taken_away() {
        let then = at(10, &[(1, sums(4, 40))], None);
        let mark = Mark::new(&then, &then);
        let now = mark.since(&at(25, &[(1, sums(6, 70)), (2, sums(1, 10))], None), false);
        assert_eq!(mark.at_ns, 10);
        assert_eq!(now.overview.layers[0].sums, sums(15, 45));
        assert_eq!(now.overview.layers[1].sums, Sums::default());
        assert!((now.overview.layers[0].self_share - 1.0).abs() < 1e-9);
        assert_eq!(now.overview.chain[0].bytes_read, 150);
        let rows: Vec<Sums> = now.processes.rows.iter().map(|r| r.sums).collect();
        assert_eq!(rows, [sums(2, 30), sums(1, 10)], "the second one is new");
        assert_eq!(now.overview.imbalance.map(|i| (i.ranks, i.slowest)), Some((2, 1)));
    }

    #[test]
    fn what_may_have_been_left_out_then_is_not_taken_for_new() {
        let then = at(10, &[(1, sums(4, 40))], Some(Others { rows: 3, sums: sums(9, 90) }));
        let mark = Mark::new(&then, &then);
        let later = at(25, &[(1, sums(4, 40)), (2, sums(8, 10))], Some(Others { rows: 3, sums: sums(10, 95) }));
        let now = mark.since(&later, false);
        assert_eq!(now.processes.rows.len(), 1);
        assert_eq!(now.processes.other, Some(Others { rows: 4, sums: sums(1, 5) }));
    }
}
