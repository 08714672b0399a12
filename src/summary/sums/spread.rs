//! Distributions of durations and sizes: by operation, over time, and as percentiles.

use std::collections::BTreeMap;

use crate::base::hist::{bucket_bounds, bucket_of};
use crate::summary::bins::{Bins, Merge};
use crate::summary::view::{Measure, Percentiles, Sums, Window};
use crate::vocabulary::{Kind, Layer};

/// Length of a column of the heat map where rows are of a second, and columns at most.
pub const COLUMN_NS: i64 = 1_000_000_000;
pub const COLUMNS: usize = 256;
/// Operations with sums of their own at most.
const MAX_OPS: usize = 1024;

/// Counts by bucket of the `hist` table, only those that are not zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(Vec<(i16, u64)>);

impl Counts {
    pub fn add(&mut self, bucket: i16, n: u64) {
        match self.0.binary_search_by_key(&bucket, |(b, _)| *b) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(n),
            Err(at) => self.0.insert(at, (bucket, n)),
        }
    }

    pub fn value(&mut self, value: i64) {
        self.add(bucket_of(value), 1);
    }

    pub fn iter(&self) -> impl Iterator<Item = (i16, u64)> {
        self.0.iter().copied()
    }

    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, n)| *n).fold(0, u64::saturating_add)
    }

    /// `None` when there is nothing. Without an exact maximum that of the last bucket is taken.
    pub fn percentiles(&self, max: Option<i64>) -> Option<Percentiles> {
        let total = self.total();
        let last = bucket_bounds(self.0.last()?.0).1;
        let max = max.unwrap_or_else(|| i64::try_from(last).unwrap_or(i64::MAX));
        let quantile = |q: f64| {
            let rank = ((total as f64 * q).ceil() as u64).clamp(1, total);
            let mut seen = 0_u64;
            let bucket = self.0.iter().find(|(_, n)| {
                seen = seen.saturating_add(*n);
                seen >= rank
            });
            let (low, high) = bucket.map_or((0, 0), |(b, _)| bucket_bounds(*b));
            i64::try_from(low + (high - low) / 2).unwrap_or(i64::MAX).min(max)
        };
        Some(Percentiles { p50: quantile(0.5), p90: quantile(0.9), p95: quantile(0.95), p99: quantile(0.99), max })
    }
}

impl Merge for Counts {
    fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(bucket, n)| self.add(*bucket, *n));
    }
}

/// One operation.
#[derive(Debug, Clone)]
pub struct Op {
    pub kind: Kind,
    pub sums: Sums,
    pub max_ns: i64,
    over_time: [Bins<Counts>; 2],
    total: [Counts; 2],
}

impl Op {
    pub const fn over_time(&self, measure: Measure) -> &Bins<Counts> {
        &self.over_time[measure as usize]
    }

    /// All counts, or those of a window.
    pub fn counts(&self, measure: Measure, window: Option<Window>) -> Counts {
        match window {
            None => self.total[measure as usize].clone(),
            Some(_) => self.over_time(measure).sum(window),
        }
    }
}

/// All operations.
#[derive(Debug, Clone)]
pub struct Ops {
    /// Length of a column of the heat map to begin with.
    column_ns: i64,
    known: BTreeMap<(Layer, &'static str), Op>,
    /// Calls that found no room.
    pub lost: u64,
}

impl Ops {
    pub const fn new(column_ns: i64) -> Self {
        Self { column_ns, known: BTreeMap::new(), lost: 0 }
    }

    /// An operation that is known, or for which there is room.
    pub fn op(&mut self, layer: Layer, op: &'static str, kind: Kind) -> Option<&mut Op> {
        if !self.known.contains_key(&(layer, op)) && self.known.len() >= MAX_OPS {
            self.lost += 1;
            return None;
        }
        let column_ns = self.column_ns;
        let new = || Bins::new(column_ns, COLUMNS);
        let entry = self.known.entry((layer, op));
        Some(entry.or_insert_with(|| Op {
            kind,
            sums: Sums::default(),
            max_ns: 0,
            over_time: [new(), new()],
            total: Default::default(),
        }))
    }

    pub fn count(
        &mut self,
        (layer, op, kind): (Layer, &'static str, Kind),
        t_ns: i64,
        what: Measure,
        bucket: i16,
        n: u64,
    ) {
        if let Some(op) = self.op(layer, op, kind) {
            op.over_time[what as usize].at(t_ns).add(bucket, n);
            op.total[what as usize].add(bucket, n);
        }
    }

    /// Those of a layer and name, or of any.
    pub fn chosen(
        &self,
        layer: Option<Layer>,
        op: Option<&'static str>,
    ) -> impl Iterator<Item = (Layer, &'static str, &Op)> {
        let fits = move |l: Layer, o: &str| layer.is_none_or(|x| x == l) && op.is_none_or(|x| x == o);
        self.known.iter().filter(move |((l, o), _)| fits(*l, o)).map(|((l, o), op)| (*l, *o, op))
    }

    pub fn total(&self, layer: Layer, window: Option<Window>) -> Option<Percentiles> {
        let mut counts = Counts::default();
        let mut max = 0;
        for (_, _, op) in self.chosen(Some(layer), None) {
            counts.merge(&op.counts(Measure::Latency, window));
            max = max.max(op.max_ns);
        }
        counts.percentiles(window.is_none().then_some(max).filter(|max| *max > 0))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_within_an_eighth(mut values in prop::collection::vec(0..1_000_000_000i64, 1..300)) {
            let mut counts = Counts::default();
            for v in &values {
                counts.value(*v);
            }
            values.sort_unstable();
            let got = counts.percentiles(values.last().copied()).unwrap();
            let exact = |q: f64| values[((values.len() as f64 * q).ceil() as usize).clamp(1, values.len()) - 1];
            for (got, q) in [(got.p50, 0.5), (got.p90, 0.9), (got.p99, 0.99), (got.max, 1.0)] {
                let exact = exact(q);
                prop_assert!((got - exact).abs() * 8 <= exact + 8, "{} against {}", got, exact);
            }
        }
    }
}
