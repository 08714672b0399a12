//! Calls, times, bytes and errors per layer and per function.

use serde::Serialize;

use crate::HashMap;
use crate::export::report::header::Quality;
use crate::hist::{Histogram, REPORT_BITS, bucket_bounds};
use crate::rows::{Block, FileRollup, Hist, Span};
use crate::vocabulary::{Kind, LAYERS, Layer};

/// A sum of bytes that says for how many calls it is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// `None`: there were calls, and none of them has a known value.
    pub sum: Option<i64>,
    pub unknown_calls: i64,
}

impl Bytes {
    /// Adds what a call asked for or moved. A failed call without a value moved nothing.
    pub fn add(&mut self, bytes: Option<i64>, failed: bool) {
        match bytes {
            Some(n) => self.sum = Some(self.sum.unwrap_or(0).saturating_add(n)),
            None if failed => {}
            None => self.unknown_calls += 1,
        }
    }

    /// Adds what calls that were summed up moved, and how many of them did not tell.
    pub fn add_sum(&mut self, bytes: i64, calls: i64, unknown: i64) {
        self.unknown_calls = self.unknown_calls.saturating_add(unknown);
        if calls > unknown {
            self.sum = Some(self.sum.unwrap_or(0).saturating_add(bytes));
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: Self) {
        self.unknown_calls = self.unknown_calls.saturating_add(other.unknown_calls);
        if let Some(n) = other.sum {
            self.sum = Some(self.sum.unwrap_or(0).saturating_add(n));
        }
    }
}

/// One layer. Calls, inclusive time, bytes and errors count outermost calls of the layer only.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerRow {
    pub layer: &'static str,
    pub calls: i64,
    /// Calls made inside another call of the same layer.
    pub nested_calls: i64,
    pub inclusive_ns: i64,
    /// `None` for block requests: calls above wait for them in their own time.
    pub exclusive_ns: Option<i64>,
    /// Part of the exclusive time of all layers, 0 to 1.
    pub exclusive_share: Option<f64>,
    /// Asked for and moved by reads and writes.
    pub asked: Bytes,
    pub moved: Bytes,
    pub errors: i64,
    /// False: something was lost at this layer (or at an unknown one).
    pub complete: bool,
    /// False: something was lost at this layer or below it.
    pub exclusive_complete: bool,
    /// By exclusive time, the greatest first.
    pub ops: Vec<OpRow>,
}

/// One function of a layer. `calls`, `errors` and the durations count every call, nested ones too.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpRow {
    pub op: &'static str,
    pub kind: &'static str,
    pub calls: i64,
    /// So many of `calls` are estimated, and their standard error: the function was demoted. They have no durations.
    pub estimated_calls: i64,
    pub calls_error: Option<i64>,
    pub nested_calls: i64,
    pub unfinished_calls: i64,
    /// Outermost calls only.
    pub inclusive_ns: i64,
    pub exclusive_ns: Option<i64>,
    pub exclusive_share: Option<f64>,
    /// Outermost reads and writes only.
    pub asked: Bytes,
    pub moved: Bytes,
    pub errors: i64,
    pub min_ns: i64,
    pub mean_ns: f64,
    /// Of the sample (n - 1); `None` for a single call.
    pub stddev_ns: Option<f64>,
    /// Percentiles: nearest rank, within 1/64 of the exact value; of calls that were summed up within 1/8, as the least is.
    pub p50_ns: i64,
    pub p99_ns: i64,
    pub max_ns: i64,
}

#[derive(Default)]
struct Op {
    kind: Option<Kind>,
    calls: i64,
    nested: i64,
    unfinished: i64,
    inclusive: i64,
    exclusive: i64,
    asked: Bytes,
    moved: Bytes,
    errors: i64,
    outer_errors: i64,
    min: i64,
    max: i64,
    mean: f64,
    /// Sum of squared differences from the mean (Welford).
    squares: f64,
    hist: Histogram<REPORT_BITS>,
    /// Calls of it that were not told.
    estimated: i64,
    calls_error: i64,
    /// Its calls were summed up: no less than this, as far as the buckets tell.
    summed: bool,
    least: Option<i64>,
}

impl Op {
    fn duration(&mut self, ns: i64) {
        self.min = if self.calls == 0 { ns } else { self.min.min(ns) };
        self.max = if self.calls == 0 { ns } else { self.max.max(ns) };
        self.calls = self.calls.saturating_add(1);
        let before = ns as f64 - self.mean;
        self.mean += before / self.calls as f64;
        self.squares += before * (ns as f64 - self.mean);
        self.hist.add(ns);
    }

    fn quantile(&self, q: f64) -> i64 {
        let value = self.hist.quantile(q).map_or(0, |v| i64::try_from(v).unwrap_or(i64::MAX));
        value.clamp(self.min, self.max.max(self.min))
    }

    fn row(&self, op: &'static str, exclusive: bool, total: i64) -> OpRow {
        OpRow {
            op,
            kind: self.kind.map_or("other", Kind::name),
            calls: self.calls.saturating_add(self.estimated),
            estimated_calls: self.estimated,
            calls_error: (self.estimated > 0).then_some(self.calls_error),
            nested_calls: self.nested,
            unfinished_calls: self.unfinished,
            inclusive_ns: self.inclusive,
            exclusive_ns: exclusive.then_some(self.exclusive),
            exclusive_share: exclusive.then(|| share(self.exclusive, total)),
            asked: self.asked,
            moved: self.moved,
            errors: self.errors,
            min_ns: self.least.unwrap_or(self.min),
            mean_ns: if self.summed {
                self.inclusive as f64 / self.calls.saturating_sub(self.nested).max(1) as f64
            } else {
                self.mean
            },
            stddev_ns: (self.calls > 1 && !self.summed)
                .then(|| (self.squares / self.calls.saturating_sub(1) as f64).sqrt()),
            p50_ns: self.quantile(0.5),
            p99_ns: self.quantile(0.99),
            max_ns: self.max,
        }
    }
}

/// A part of a total; 0 of nothing.
fn share(part: i64, total: i64) -> f64 {
    if total == 0 { 0.0 } else { part as f64 / total as f64 }
}

/// Sums up spans and block requests; memory grows with the number of functions, not of calls.
#[derive(Default)]
pub struct Layers {
    ops: HashMap<(Layer, &'static str), Op>,
}

impl Layers {
    pub fn span(&mut self, span: &Span) {
        let op = self.ops.entry((span.layer, span.op)).or_default();
        op.kind = Some(span.kind);
        op.duration(span.net_ns());
        op.exclusive = op.exclusive.saturating_add(span.self_ns);
        op.unfinished += i64::from(span.flags & crate::vocabulary::flag::UNFINISHED != 0);
        let failed = span.errno != 0;
        op.errors += i64::from(failed);
        if !span.layer_top {
            op.nested += 1;
            return;
        }
        op.inclusive = op.inclusive.saturating_add(span.inclusive_ns());
        op.outer_errors += i64::from(failed);
        if is_data(span) {
            op.asked.add(span.req_bytes, failed);
            op.moved.add(span.bytes, failed);
        }
    }

    /// Calls that were summed up.
    pub fn sums(&mut self, row: &FileRollup) {
        let op = self.ops.entry((row.layer, row.op)).or_default();
        op.kind = Some(row.kind);
        if matches!(row.kind, Kind::Read | Kind::Write) {
            op.asked.add_sum(row.req_bytes, row.calls, 0);
            op.moved.add_sum(row.bytes, row.calls.saturating_sub(row.errors), row.unknown_calls);
        }
        if let Some(error) = row.calls_error.filter(|_| row.dur_ns == 0) {
            op.estimated = op.estimated.saturating_add(row.calls);
            op.calls_error = op.calls_error.saturating_add(error);
            return;
        }
        let calls = row.calls.saturating_add(row.nested_calls);
        op.calls = op.calls.saturating_add(calls);
        op.nested = op.nested.saturating_add(row.nested_calls);
        op.inclusive = op.inclusive.saturating_add(row.dur_ns);
        op.exclusive = op.exclusive.saturating_add(row.self_ns);
        op.errors = op.errors.saturating_add(row.errors);
        op.outer_errors = op.outer_errors.saturating_add(row.errors);
        op.max = op.max.max(row.max_ns);
        op.summed = true;
    }

    /// How long calls that were summed up took.
    pub fn hist(&mut self, row: &Hist) {
        let Some(op) = self.ops.get_mut(&(row.layer, row.op)).filter(|op| op.summed && row.what == "latency") else {
            return;
        };
        let (low, high) = bucket_bounds(row.bucket);
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        op.hist.add_n(number(low + (high - low) / 2), u64::try_from(row.n).unwrap_or(0));
        op.least = Some(op.least.map_or(number(low), |least| least.min(number(low))));
    }

    /// A request counts as a call of the block layer that lasts from issue to completion; on stacked devices that of the
    /// topmost one.
    pub fn block(&mut self, block: &Block) {
        let (Some(dur_ns), None) = (block.dur_ns, block.upper_dev) else { return };
        let op = self.ops.entry((Layer::Block, block.op)).or_default();
        op.kind = Some(match block.op {
            "read" => Kind::Read,
            "write" => Kind::Write,
            "flush" => Kind::Sync,
            _ => Kind::Other,
        });
        op.duration(dur_ns);
        op.inclusive = op.inclusive.saturating_add(dur_ns);
        let failed = block.status != Some(0);
        op.errors += i64::from(failed);
        op.outer_errors += i64::from(failed);
        if matches!(block.op, "read" | "write") {
            op.asked.add(Some(i64::from(block.bytes)), failed);
            op.moved.add(Some(if failed { 0 } else { i64::from(block.bytes) }), failed);
        }
    }

    /// Layers from top to bottom, without those that made no call.
    pub fn rows(self, quality: &Quality) -> Vec<LayerRow> {
        let total = self.ops.values().fold(0i64, |sum, op| sum.saturating_add(op.exclusive));
        let of_layer = |layer: Layer| self.ops.iter().filter(move |((l, _), _)| *l == layer);
        let mut rows = Vec::new();
        for layer in LAYERS.into_iter().filter(|layer| of_layer(*layer).next().is_some()) {
            let has_exclusive = layer != Layer::Block;
            let sum = |of: fn(&Op) -> i64| of_layer(layer).fold(0i64, |sum, (_, op)| sum.saturating_add(of(op)));
            let (mut asked, mut moved) = (Bytes::default(), Bytes::default());
            of_layer(layer).for_each(|(_, op)| {
                asked.merge(op.asked);
                moved.merge(op.moved);
            });
            let mut ops: Vec<_> = of_layer(layer).map(|((_, name), op)| op.row(name, has_exclusive, total)).collect();
            ops.sort_by_key(|op| (std::cmp::Reverse(op.exclusive_ns.unwrap_or(op.inclusive_ns)), op.op));
            let exclusive = sum(|op| op.exclusive);
            rows.push(LayerRow {
                layer: layer.name(),
                calls: sum(|op| op.calls.saturating_add(op.estimated).saturating_sub(op.nested)),
                nested_calls: sum(|op| op.nested),
                inclusive_ns: sum(|op| op.inclusive),
                exclusive_ns: has_exclusive.then_some(exclusive),
                exclusive_share: has_exclusive.then(|| share(exclusive, total)),
                asked,
                moved,
                errors: sum(|op| op.outer_errors),
                complete: quality.complete(layer),
                exclusive_complete: quality.exclusive(layer),
                ops,
            });
        }
        rows
    }
}

/// A read or a write.
pub fn is_data(span: &Span) -> bool {
    matches!(span.kind, Kind::Read | Kind::Write)
}
