//! Exact sums per 100 ms and histograms per second, by the start of the span.

use std::collections::BTreeMap;

use crate::base::hist::{BUCKETS, bucket_of};
use crate::correlate::aggregate::sums::Op;
use crate::correlate::resources::processes::Owned;
use crate::event::{self, Figures};
use crate::rows::{Hist, Rollup, Row, Span};
use crate::vocabulary::{Kind, Layer};
use crate::{HashMap, catalog};

const BIN_NS: i64 = 100_000_000;
const HIST_NS: i64 = 1_000_000_000;

// The kernel side counts by the same buckets.
const _: () = assert!(BUCKETS == event::BUCKETS);

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
    /// By time; in each by operation and process.
    bins: BTreeMap<i64, HashMap<u64, Rollup>>,
    hists: BTreeMap<i64, HashMap<u64, Counted>>,
}

/// An operation (of a row of the catalog, at a layer) and a process as one number, in that order: hashed in one step.
fn key(spec: u16, layer: Layer, process_ix: i32) -> u64 {
    let process = (process_ix as u32) ^ 1 << 31;
    u64::from(spec) << 40 | (layer as u64) << 32 | u64::from(process)
}

impl Rollups {
    pub fn new(specs: &[catalog::Row]) -> Self {
        let mut first = HashMap::default();
        let same = |(at, row): (usize, &catalog::Row)| *first.entry((row.layer, row.op, row.kind)).or_insert(at as u16);
        Self { same: specs.iter().enumerate().map(same).collect(), bins: BTreeMap::new(), hists: BTreeMap::new() }
    }

    pub fn add(&mut self, span: &Span, spec: u16) {
        let spec = self.same(spec.into());
        let (op, process) = ((span.layer, span.op, span.kind), Owned::of(span));
        let sums = self.bin(span.start_ns, op, spec, process);
        let add = |sum: &mut i64, value: i64| *sum = sum.saturating_add(value);
        add(&mut sums.self_ns, span.self_ns);
        add(&mut sums.errors, i64::from(span.errno != 0));
        if !span.layer_top {
            return;
        }
        add(&mut sums.calls, 1);
        add(&mut sums.bytes, span.bytes.unwrap_or(0));
        add(&mut sums.req_bytes, span.req_bytes.unwrap_or(0));
        add(&mut sums.dur_ns, span.inclusive_ns());
        sums.max_ns = sums.max_ns.max(span.net_ns());
        let counted = self.counted(span.start_ns, op, spec);
        for (counts, value) in counted.iter_mut().zip([Some(span.net_ns()), span.bytes]) {
            if let Some(count) = value.and_then(|v| counts.get_mut(bucket_of(v) as usize)) {
                *count = count.saturating_add(1);
            }
        }
    }

    /// Adds what the kernel side has summed up, to the bin in which its period begins.
    pub fn sum(&mut self, from_ns: i64, op: Op, row: u32, process: Option<Owned>, f: &Figures) {
        // -1 stands for "not known" where the schema has no null.
        let process = process.unwrap_or(Owned { process_ix: -1, pid: 0, rank: None });
        let sums = self.bin(from_ns, op, self.same(row), process);
        let add = |sum: &mut i64, value: u64| *sum = sum.saturating_add_unsigned(value);
        add(&mut sums.calls, f.calls);
        add(&mut sums.bytes, f.bytes);
        add(&mut sums.req_bytes, f.asked);
        add(&mut sums.dur_ns, f.time);
        add(&mut sums.self_ns, f.own);
        add(&mut sums.errors, f.errors);
        sums.max_ns = sums.max_ns.max(i64::try_from(f.max).unwrap_or(i64::MAX));
    }

    /// Adds counts by bucket: latencies, sizes.
    pub fn counts(&mut self, from_ns: i64, op: Op, row: u32, counts: [&[(usize, u32)]; 2]) {
        let counted = self.counted(from_ns, op, self.same(row));
        for (to, from) in counted.iter_mut().zip(counts) {
            for (bucket, n) in from {
                if let Some(count) = to.get_mut(*bucket) {
                    *count = count.saturating_add(*n);
                }
            }
        }
    }

    /// The bin of a time.
    fn bin(&mut self, t_ns: i64, (layer, op, kind): Op, spec: u16, process: Owned) -> &mut Rollup {
        let bin = t_ns.div_euclid(BIN_NS);
        let Owned { process_ix, pid, rank } = process;
        self.bins.entry(bin).or_default().entry(key(spec, layer, process_ix)).or_insert_with(|| Rollup {
            t_ns: bin.saturating_mul(BIN_NS),
            layer,
            op,
            kind,
            process_ix,
            pid,
            rank,
            calls: 0,
            bytes: 0,
            req_bytes: 0,
            dur_ns: 0,
            self_ns: 0,
            max_ns: 0,
            errors: 0,
        })
    }

    /// The histograms of its second.
    fn counted(&mut self, t_ns: i64, (layer, op, _): Op, spec: u16) -> &mut Counts {
        let new = || Counted { layer, op, counts: Box::new([[0; BUCKETS]; 2]) };
        &mut self
            .hists
            .entry(t_ns.div_euclid(HIST_NS))
            .or_default()
            .entry(key(spec, layer, 0))
            .or_insert_with(new)
            .counts
    }

    fn same(&self, row: u32) -> u16 {
        self.same.get(row as usize).copied().unwrap_or(row as u16)
    }

    /// Writes the bins that ended by `until`; without it, all.
    pub fn write(&mut self, until: Option<i64>, out: &mut Vec<Row>) {
        let ended = |bin: i64, length: i64| until.is_none_or(|now| bin.saturating_add(1).saturating_mul(length) <= now);
        while let Some(entry) = self.bins.first_entry().filter(|e| ended(*e.key(), BIN_NS)) {
            out.extend(in_order(entry.remove()).map(Row::Rollup));
        }
        while let Some(entry) = self.hists.first_entry().filter(|e| ended(*e.key(), HIST_NS)) {
            let t_ns = entry.key().saturating_mul(HIST_NS);
            for Counted { layer, op, counts } in in_order(entry.remove()) {
                for (what, counts) in WHAT.into_iter().zip(counts.iter()) {
                    let filled = counts.iter().enumerate().filter(|(_, n)| **n > 0);
                    out.extend(filled.map(|(bucket, n)| {
                        Row::Hist(Hist { t_ns, layer, op, what, bucket: bucket as i16, n: i64::from(*n) })
                    }));
                }
            }
        }
    }
}

/// What is in a map, by its keys.
fn in_order<K: Copy + Ord, V>(map: HashMap<K, V>) -> impl Iterator<Item = V> {
    let mut all: Vec<(K, V)> = map.into_iter().collect();
    all.sort_unstable_by_key(|(key, _)| *key);
    all.into_iter().map(|(_, value)| value)
}

/// Sums over calls that come as rows.
pub struct CallSums {
    rollups: Rollups,
    numbers: HashMap<(Layer, &'static str, Kind), u16>,
}

impl Default for CallSums {
    fn default() -> Self {
        Self { rollups: Rollups::new(&[]), numbers: HashMap::default() }
    }
}

impl CallSums {
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
