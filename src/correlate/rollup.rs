//! Exact sums per 100 ms and histograms per second, by the start of the span.

use std::collections::{BTreeMap, HashMap};

use super::hist::{BUCKETS, bucket_of};
use super::rows::{Hist, Rollup, Row, Span};
use crate::catalog;
use crate::words::{Kind, Layer};

const BIN_NS: i64 = 100_000_000;
const HIST_NS: i64 = 1_000_000_000;

/// Latencies, then sizes.
type Counts = [[u32; BUCKETS]; 2];
const WHAT: [&str; 2] = ["latency", "size"];

/// The histograms of one operation.
struct Counted {
    layer: Layer,
    op: &'static str,
    counts: Box<Counts>,
}

/// Bins not written yet.
pub struct Rollups {
    /// For each catalog row the first one with the same layer, operation and kind.
    same: Vec<u16>,
    bins: BTreeMap<(i64, u16, Layer, i32), Rollup>,
    hists: BTreeMap<(i64, u16, Layer), Counted>,
}

impl Rollups {
    pub fn new(specs: &[catalog::Row]) -> Self {
        let mut first = HashMap::new();
        let same = |(at, row): (usize, &catalog::Row)| *first.entry((row.layer, row.op, row.kind)).or_insert(at as u16);
        Self { same: specs.iter().enumerate().map(same).collect(), bins: BTreeMap::new(), hists: BTreeMap::new() }
    }

    pub fn add(&mut self, span: &Span, spec: u16) {
        let spec = self.same.get(usize::from(spec)).copied().unwrap_or(spec);
        let bin = span.start_ns.div_euclid(BIN_NS);
        let sums = self.bins.entry((bin, spec, span.layer, span.process_ix)).or_insert_with(|| Rollup {
            t_ns: bin.saturating_mul(BIN_NS),
            layer: span.layer,
            op: span.op,
            kind: span.kind,
            process_ix: span.process_ix,
            pid: span.pid,
            rank: span.rank,
            calls: 0,
            bytes: 0,
            req_bytes: 0,
            dur_ns: 0,
            self_ns: 0,
            max_ns: 0,
            errors: 0,
        });
        let add = |sum: &mut i64, value: i64| *sum = sum.saturating_add(value);
        add(&mut sums.self_ns, span.self_ns);
        add(&mut sums.errors, i64::from(span.errno != 0));
        if !span.layer_top {
            return;
        }
        add(&mut sums.calls, 1);
        add(&mut sums.bytes, span.bytes.unwrap_or(0));
        add(&mut sums.req_bytes, span.req_bytes.unwrap_or(0));
        add(&mut sums.dur_ns, span.dur_ns);
        sums.max_ns = sums.max_ns.max(span.dur_ns);
        let second = span.start_ns.div_euclid(HIST_NS);
        let counted = self.hists.entry((second, spec, span.layer)).or_insert_with(|| Counted {
            layer: span.layer,
            op: span.op,
            counts: Box::new([[0; BUCKETS]; 2]),
        });
        for (counts, value) in counted.counts.iter_mut().zip([Some(span.dur_ns), span.bytes]) {
            if let Some(count) = value.and_then(|v| counts.get_mut(bucket_of(v) as usize)) {
                *count = count.saturating_add(1);
            }
        }
    }

    /// Writes the bins that ended by `until`; without it, all.
    pub fn write(&mut self, until: Option<i64>, out: &mut Vec<Row>) {
        let ended = |bin: i64, length: i64| until.is_none_or(|now| bin.saturating_add(1).saturating_mul(length) <= now);
        while let Some(entry) = self.bins.first_entry().filter(|e| ended(e.key().0, BIN_NS)) {
            out.push(Row::Rollup(entry.remove()));
        }
        while let Some(entry) = self.hists.first_entry().filter(|e| ended(e.key().0, HIST_NS)) {
            let t_ns = entry.key().0.saturating_mul(HIST_NS);
            let Counted { layer, op, counts } = entry.remove();
            for (what, counts) in WHAT.into_iter().zip(counts.iter()) {
                let filled = counts.iter().enumerate().filter(|(_, n)| **n > 0);
                out.extend(filled.map(|(bucket, n)| {
                    Row::Hist(Hist { t_ns, layer, op, what, bucket: bucket as i16, n: i64::from(*n) })
                }));
            }
        }
    }
}

/// Sums over calls that come as rows.
pub struct Sums {
    rollups: Rollups,
    numbers: HashMap<(Layer, &'static str, Kind), u16>,
}

impl Default for Sums {
    fn default() -> Self {
        Self { rollups: Rollups::new(&[]), numbers: HashMap::new() }
    }
}

impl Sums {
    pub fn add(&mut self, span: &Span) {
        let next = u16::try_from(self.numbers.len()).unwrap_or(u16::MAX);
        let number = *self.numbers.entry((span.layer, span.op, span.kind)).or_insert(next);
        self.rollups.add(span, number);
    }

    pub fn rows(mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.rollups.write(None, &mut rows);
        rows
    }
}
