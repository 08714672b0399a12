//! Calls against those of earlier runs: five classes of duration (SIOX), and what differs from usual.

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::Source;
use crate::base::hist::Histogram;
use crate::rows::Span;
use crate::vocabulary::{LAYERS, Layer, flag};

/// The classes, the fastest first: what each is called, and the part of the calls of earlier runs that were faster than all of it.
pub const SPEEDS: [(&str, f64); 5] =
    [("very fast", 0.0), ("fast", 0.01), ("normal", 0.1), ("slow", 0.9), (VERY_SLOW, 0.99)];
pub const VERY_SLOW: &str = "very slow";
/// Where they are in [`SPEEDS`].
const FASTEST: usize = 0;
const SLOW: usize = 3;
const SLOWEST: usize = 4;

/// The name in `metrics` of the most calls of a function in any of the last runs. Its label is layer and function.
pub const EARLIER_CALLS: &str = "earlier_calls";

/// Calls of a function are unusually slow, or fast, when more than one in so many is of the outermost class, which has one in a
/// hundred in earlier runs, and that is no chance of a few.
const UNUSUAL: i64 = 10;
const CHANCE: i64 = 2;
/// They are unusually many when there are more than so many times as many as in any of the last runs.
const MANY: i64 = 2;

/// Is a call compared with those of earlier runs, and learned from? Outermost calls that have returned are; a phase is as long
/// as what happens in it.
pub fn is_compared(span: &Span) -> bool {
    span.layer_top && span.layer != Layer::App && span.flags & (flag::UNFINISHED | flag::SUMMED) == 0
}

/// Where classes begin and end, in ns. What lies in the bucket of a limit is in the class towards the middle: calls that all take
/// the same time are normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Below them a call is very fast, and fast.
    faster: [u64; 2],
    /// Above them it is very slow, and slow.
    slower: [u64; 2],
}

impl Limits {
    /// By the durations of earlier calls; `None` without any.
    pub fn of<const BITS: u32>(earlier: &Histogram<BITS>) -> Option<Self> {
        let begin = |class: usize| earlier.quantile_bounds(SPEEDS[class].1);
        Some(Self {
            faster: [begin(FASTEST + 1)?.0, begin(FASTEST + 2)?.0],
            slower: [begin(SLOWEST)?.1, begin(SLOW)?.1],
        })
    }

    /// The class of a call that took so long.
    pub fn class(&self, ns: i64) -> &'static str {
        let ns = u64::try_from(ns).unwrap_or(0);
        let below = self.faster.iter().position(|limit| ns < *limit);
        let above = self.slower.iter().position(|limit| ns > *limit).map(|at| SLOWEST - at);
        SPEEDS[above.or(below).unwrap_or(FASTEST + 2)].0
    }
}

/// The calls of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SpeedClass {
    pub speed: &'static str,
    pub calls: i64,
    pub ns: i64,
}

/// A function against earlier runs: its outermost calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpeedRow {
    pub layer: &'static str,
    pub op: &'static str,
    pub calls: i64,
    /// The most calls in any of the last runs; `None` where it is not known.
    pub earlier_calls: Option<i64>,
    /// Those like which there were enough in earlier runs. What follows is of these.
    pub compared: i64,
    pub ns: i64,
    /// How long as many took in earlier runs.
    pub usual_ns: i64,
    /// As [`SPEEDS`].
    pub classes: [SpeedClass; SPEEDS.len()],
    /// What is unusual: `slow`, `fast`, `many`.
    pub unusual: Vec<&'static str>,
    pub complete: bool,
}

impl SpeedRow {
    /// By how much they took longer than usual.
    pub const fn extra_ns(&self) -> i64 {
        self.ns.saturating_sub(self.usual_ns)
    }

    /// Time in slow and very slow calls.
    pub const fn slow_ns(&self) -> i64 {
        self.classes[SLOW].ns.saturating_add(self.classes[SLOWEST].ns)
    }

    /// Of the compared calls those of a class, 0 to 1.
    pub fn share(&self, class: usize) -> f64 {
        self.classes.get(class).map_or(0.0, |of| of.calls as f64 / self.compared.max(1) as f64)
    }

    fn find_unusual(&mut self) {
        let beyond = |class: usize| {
            let calls = self.classes[class].calls;
            calls > CHANCE && calls.saturating_mul(UNUSUAL) > self.compared
        };
        let many = self.earlier_calls.is_some_and(|earlier| self.calls > earlier.saturating_mul(MANY));
        let all = [("slow", beyond(SLOWEST)), ("fast", beyond(FASTEST)), ("many", many)];
        self.unusual = all.into_iter().filter_map(|(word, is)| is.then_some(word)).collect();
    }
}

#[derive(Default)]
struct Sum {
    calls: i64,
    usual_ns: i64,
    classes: [(i64, i64); SPEEDS.len()],
}

/// Sums up by function.
#[derive(Default)]
pub struct Speeds(HashMap<(Layer, &'static str), Sum>);

impl Speeds {
    pub fn span(&mut self, span: &Span) {
        if !is_compared(span) {
            return;
        }
        let sum = self.0.entry((span.layer, span.op)).or_default();
        sum.calls = sum.calls.saturating_add(1);
        let class = span.speed.and_then(|speed| SPEEDS.iter().position(|(name, _)| *name == speed));
        if let (Some(class), Some(usual_ns)) = (class, span.usual_ns) {
            let (calls, ns) = &mut sum.classes[class];
            *calls = calls.saturating_add(1);
            *ns = ns.saturating_add(span.net_ns());
            sum.usual_ns = sum.usual_ns.saturating_add(usual_ns);
        }
    }

    /// Functions that there is something known of, those first that took longest against usual. `all`: no calls were left out, so
    /// that their number can be compared.
    ///
    /// # Errors
    /// When the source cannot be read.
    pub fn finish(self, source: &mut dyn Source, quality: &Quality, all: bool) -> Result<Vec<SpeedRow>> {
        let mut earlier = HashMap::<String, i64>::default();
        if all {
            source.metrics(&mut |row| {
                // Of several datasets it has those before in it.
                if let (EARLIER_CALLS, Some(label)) = (row.name, &row.label) {
                    earlier.insert(label.clone(), row.value as i64);
                }
                Ok(())
            })?;
        }
        let row = |((layer, op), sum): ((Layer, &'static str), Sum)| {
            let earlier_calls = earlier.get(&label(layer, op)).copied();
            let total = |of: fn(&(i64, i64)) -> i64| sum.classes.iter().map(of).fold(0, i64::saturating_add);
            let class = |at: usize| SpeedClass { speed: SPEEDS[at].0, calls: sum.classes[at].0, ns: sum.classes[at].1 };
            let mut row = SpeedRow {
                layer: layer.name(),
                op,
                calls: sum.calls,
                earlier_calls,
                compared: total(|(calls, _)| *calls),
                ns: total(|(_, ns)| *ns),
                usual_ns: sum.usual_ns,
                classes: std::array::from_fn(class),
                unusual: Vec::new(),
                complete: quality.complete(layer),
            };
            row.find_unusual();
            (row.compared > 0 || row.earlier_calls.is_some()).then_some(row)
        };
        let mut rows: Vec<SpeedRow> = self.0.into_iter().filter_map(row).collect();
        let rank = |name: &str| LAYERS.iter().position(|layer| layer.name() == name);
        rows.sort_by_key(|row| (std::cmp::Reverse(row.extra_ns().saturating_abs()), rank(row.layer), row.op));
        Ok(rows)
    }
}

/// What [`EARLIER_CALLS`] is labelled with.
pub fn label(layer: Layer, op: &str) -> String {
    format!("{layer} {op}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::analysis::trace::losses::Losses;
    use crate::rows::{Metric, Row};
    use crate::vocabulary::Kind;

    #[test]
    fn limits_are_those_of_the_quantiles() {
        let mut earlier = Histogram::<5>::default();
        assert_eq!(Limits::of(&earlier), None);
        // Below 64 each value has a bucket.
        (0..50).for_each(|ns| earlier.add_n(ns, 2));
        let limits = Limits::of(&earlier).unwrap();
        assert_eq!(limits, Limits { faster: [0, 4], slower: [49, 44] });
        let classes = [-1, 0, 3, 4, 44, 45, 49, 50, i64::MAX].map(|ns| limits.class(ns));
        let wanted = ["fast", "fast", "fast", "normal", "normal", "slow", "slow", "very slow", "very slow"];
        assert_eq!(classes, wanted);
        earlier.add_n(0, 1);
        earlier.add_n(10_000, 1000);
        let limits = Limits::of(&earlier).unwrap();
        // All within one bucket is normal.
        assert_eq!(
            [9_999, 10_000, 10_001, 11_000].map(|ns| limits.class(ns)),
            ["normal", "normal", "normal", "very slow"]
        );
        assert_eq!([0, 1].map(|ns| limits.class(ns)), ["very fast", "very fast"]);
    }

    fn call(seq: u32, ns: i64, speed: Option<&'static str>) -> Row {
        let span = Span::new(i64::from(seq), (Layer::Syscall, "read", Kind::Read), 1, (0, ns));
        Row::Span(Box::new(Span { speed, usual_ns: speed.map(|_| 100), ..span }))
    }

    fn found(rows: Vec<Row>, all: bool) -> Vec<SpeedRow> {
        let (mut rows, mut speeds) = (rows, Speeds::default());
        rows.spans(&mut |span| {
            speeds.span(span);
            Ok(())
        })
        .unwrap();
        speeds.finish(&mut rows, &Losses::default().quality(), all).unwrap()
    }

    #[test]
    fn what_is_unusual_is_named() {
        let slow = |n: u32| (0..n).map(|seq| call(seq, 500, Some("very slow")));
        let normal = |n: u32| (100..100 + n).map(|seq| call(seq, 100, Some("normal")));
        let row = |rows: Vec<Row>| found(rows, true).remove(0);
        let rows = row(slow(3).chain(normal(17)).collect());
        assert_eq!((rows.calls, rows.compared, rows.ns, rows.usual_ns, rows.extra_ns()), (20, 20, 3200, 2000, 1200));
        assert_eq!((rows.unusual.as_slice(), rows.slow_ns(), rows.earlier_calls), (["slow"].as_slice(), 1500, None));
        // A tenth is usual yet, and two may be by chance.
        assert!(row(slow(3).chain(normal(27)).collect()).unusual.is_empty());
        assert!(row(slow(2).chain(normal(8)).collect()).unusual.is_empty());
        let fast: Vec<Row> = (0..5).map(|seq| call(seq, 10, Some("very fast"))).collect();
        assert_eq!(row(fast).unusual, ["fast"]);
    }

    #[test]
    fn calls_are_counted_against_earlier_runs() {
        let earlier =
            |value| Row::Metric(Metric { t_ns: 0, name: EARLIER_CALLS, label: Some("syscall read".to_owned()), value });
        let rows = |value| (0..5).map(|seq| call(seq, 1, None)).chain([earlier(value)]).collect::<Vec<_>>();
        let many = found(rows(2.0), true);
        assert_eq!(
            (many[0].earlier_calls, many[0].compared, many[0].unusual.as_slice()),
            (Some(2), 0, ["many"].as_slice())
        );
        assert!(found(rows(3.0), true)[0].unusual.is_empty());
        // Of some calls alone that says nothing.
        assert_eq!(found(rows(2.0), false), []);
    }
}
