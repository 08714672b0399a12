//! Distributions, of durations or sizes.

/// What a distribution is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Durations in nanoseconds.
    #[default]
    Latency,
    /// Bytes moved by a call.
    Size,
}

/// Percentiles of a distribution, each within an eighth of the exact value; `max` is exact where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Percentiles {
    pub p50: i64,
    pub p90: i64,
    pub p95: i64,
    pub p99: i64,
    pub max: i64,
}
