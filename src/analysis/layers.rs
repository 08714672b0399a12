//! Calls, times, bytes and errors per layer and per function.

use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::{Bytes, Figures, is_estimated, is_topmost, ratio};
use crate::analysis::moments::Moments;
use crate::analysis::trace::losses::Quality;
use crate::base::hist::{Histogram, REPORT_BITS, bucket_bounds};
use crate::rows::{Block, FileRollup, Hist, Span};
use crate::vocabulary::{Kind, LAYERS, Layer};

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

/// Durations of recorded calls, nested ones too.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    pub min: i64,
    pub max: i64,
    pub moments: Moments,
    hist: Histogram<REPORT_BITS>,
}

impl Durations {
    pub fn add(&mut self, ns: i64) {
        self.min = if self.moments.count == 0 { ns } else { self.min.min(ns) };
        self.max = if self.moments.count == 0 { ns } else { self.max.max(ns) };
        self.moments.add(ns as f64);
        self.hist.add(ns);
    }

    /// Those of other calls, too.
    pub fn merge(&mut self, other: &Self) {
        if other.moments.count == 0 {
            return;
        }
        self.min = if self.moments.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = if self.moments.count == 0 { other.max } else { self.max.max(other.max) };
        self.moments.merge(&other.moments);
        self.hist.merge(&other.hist);
    }

    pub fn quantile(&self, q: f64) -> i64 {
        let value = self.hist.quantile(q).map_or(0, |v| i64::try_from(v).unwrap_or(i64::MAX));
        value.clamp(self.min, self.max.max(self.min))
    }
}

#[derive(Default)]
struct Op {
    kind: Option<Kind>,
    figures: Figures,
    durations: Durations,
    /// Its calls were summed up: none took less than `least`, as far as the buckets show.
    summed: bool,
    least: Option<i64>,
}

impl Op {
    fn row(&self, op: &'static str, exclusive: bool, total: i64) -> OpRow {
        let Figures { calls, nested_calls, estimated_calls, inclusive_ns, exclusive_ns, .. } = self.figures;
        let data = self.figures.data();
        let recorded = calls.saturating_sub(estimated_calls);
        OpRow {
            op,
            kind: self.kind.map_or("other", Kind::name),
            calls: calls.saturating_add(nested_calls),
            estimated_calls,
            calls_error: Some(self.figures.calls_error).filter(|error| estimated_calls > 0 || *error > 0),
            nested_calls,
            unfinished_calls: self.figures.unfinished_calls,
            inclusive_ns,
            exclusive_ns: exclusive.then_some(exclusive_ns),
            exclusive_share: exclusive.then(|| ratio(exclusive_ns as f64, total as f64)),
            asked: data.asked,
            moved: data.moved,
            errors: self.figures.errors.saturating_add(self.figures.nested_errors),
            min_ns: self.least.unwrap_or(self.durations.min),
            mean_ns: if self.summed {
                inclusive_ns as f64 / recorded.max(1) as f64
            } else {
                self.durations.moments.mean
            },
            stddev_ns: self.durations.moments.deviation().filter(|_| !self.summed),
            p50_ns: self.durations.quantile(0.5),
            p99_ns: self.durations.quantile(0.99),
            max_ns: self.durations.max,
        }
    }
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
        op.figures.merge(&Figures::of(span));
        op.durations.add(span.net_ns());
    }

    /// Calls that were summed up.
    pub fn sums(&mut self, row: &FileRollup) {
        let op = self.ops.entry((row.layer, row.op)).or_default();
        op.kind = Some(row.kind);
        op.figures.merge(&Figures::of_sum(row));
        if !is_estimated(row) {
            op.durations.max = op.durations.max.max(row.max_ns);
            op.summed = true;
        }
    }

    /// How long calls that were summed up took.
    pub fn hist(&mut self, row: &Hist) {
        let Some(op) = self.ops.get_mut(&(row.layer, row.op)).filter(|op| op.summed && row.what == "latency") else {
            return;
        };
        let (low, high) = bucket_bounds(row.bucket);
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        op.durations.hist.add_n(number(low + (high - low) / 2), u64::try_from(row.n).unwrap_or(0));
        op.least = Some(op.least.map_or(number(low), |least| least.min(number(low))));
    }

    pub fn block(&mut self, block: &Block) {
        let Some((kind, figures)) = Figures::of_request(block).filter(|_| is_topmost(block)) else { return };
        let op = self.ops.entry((Layer::Block, block.op)).or_default();
        op.kind = Some(kind);
        op.figures.merge(&figures);
        op.durations.add(figures.inclusive_ns);
    }

    /// Layers from top to bottom, without those that made no call.
    pub fn rows(self, quality: &Quality) -> Vec<LayerRow> {
        let total = self.ops.values().fold(0i64, |sum, op| sum.saturating_add(op.figures.exclusive_ns));
        let of_layer = |layer: Layer| self.ops.iter().filter(move |((l, _), _)| *l == layer);
        let mut rows = Vec::new();
        for layer in LAYERS.into_iter().filter(|layer| of_layer(*layer).next().is_some()) {
            let has_exclusive = layer != Layer::Block;
            let mut figures = Figures::default();
            of_layer(layer).for_each(|(_, op)| figures.merge(&op.figures));
            let mut ops: Vec<_> = of_layer(layer).map(|((_, name), op)| op.row(name, has_exclusive, total)).collect();
            ops.sort_by_key(|op| (std::cmp::Reverse(op.exclusive_ns.unwrap_or(op.inclusive_ns)), op.op));
            let data = figures.data();
            rows.push(LayerRow {
                layer: layer.name(),
                calls: figures.calls,
                nested_calls: figures.nested_calls,
                inclusive_ns: figures.inclusive_ns,
                exclusive_ns: has_exclusive.then_some(figures.exclusive_ns),
                exclusive_share: has_exclusive.then(|| ratio(figures.exclusive_ns as f64, total as f64)),
                asked: data.asked,
                moved: data.moved,
                errors: figures.errors,
                complete: quality.complete(layer),
                exclusive_complete: quality.exclusive(layer),
                ops,
            });
        }
        rows
    }
}
