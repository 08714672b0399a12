//! Distributions of durations and sizes, over time and as a whole.

use crate::base::hist::bucket_bounds;
use crate::summary::accumulate::Summary;
use crate::summary::bins::Merge as _;
use crate::summary::sums::spread::Counts;
use crate::summary::view::{Focus, Latency, Measure, OpRow};

impl Summary {
    pub(in crate::summary) fn latency(&self, focus: &Focus) -> Latency {
        let measure = focus.measure;
        let chosen = || self.ops.chosen(focus.layer, focus.op);
        let width_ns = chosen().map(|(_, _, op)| op.over_time(measure).width_ns()).max().unwrap_or(1);
        let mut columns: Vec<Counts> = Vec::new();
        let mut all = Counts::default();
        let mut max = 0;
        let first = focus.window.map_or(0, |w| (w.from_ns.max(0) / width_ns) as usize);
        for (_, _, op) in chosen() {
            let bins = op.over_time(measure);
            let (from, of) = bins.of(focus.window);
            for (at, bin) in of.iter().enumerate() {
                let column = ((from + at) as i64 * bins.width_ns() / width_ns) as usize - first.min(from);
                if column >= columns.len() {
                    columns.resize(column + 1, Counts::default());
                }
                columns[column].merge(bin);
            }
            all.merge(&op.counts(measure, focus.window));
            max = max.max(op.max_ns);
        }
        let row = |bucket: i16| bucket_bounds(bucket).0.checked_ilog2().unwrap_or(0);
        let (low, high) = all.iter().fold((u32::MAX, 0), |(low, high), (b, _)| (low.min(row(b)), high.max(row(b))));
        let rows: Vec<u64> = if low > high { Vec::new() } else { (low..=high).map(|r| 1u64 << r).collect() };
        let column = |counts: &Counts| {
            let mut cells = vec![0u32; rows.len()];
            for (bucket, n) in counts.iter() {
                if let Some(cell) = cells.get_mut((row(bucket).saturating_sub(low)) as usize) {
                    *cell = cell.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
                }
            }
            cells
        };
        let histogram = all.iter().map(|(b, n)| {
            let (low, high) = bucket_bounds(b);
            (low, high, n)
        });
        let exact = measure == Measure::Latency && focus.window.is_none() && max > 0;
        let mut ops: Vec<OpRow> = self
            .ops
            .chosen(None, None)
            .map(|(layer, name, op)| OpRow {
                layer,
                op: name,
                kind: op.kind,
                sums: op.sums,
                latency: op.counts(Measure::Latency, None).percentiles(Some(op.max_ns).filter(|m| *m > 0)),
            })
            .collect();
        ops.sort_by_key(|o| std::cmp::Reverse(o.sums.dur_ns));
        Latency {
            measure,
            layer: focus.layer,
            op: focus.op,
            from_ns: first as i64 * width_ns,
            width_ns,
            columns: columns.iter().map(column).collect(),
            rows,
            histogram: histogram.collect(),
            total: all.total(),
            percentiles: all.percentiles(exact.then_some(max)),
            ops,
        }
    }
}
