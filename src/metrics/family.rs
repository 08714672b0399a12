//! What is served of a metric besides its samples.

/// Types of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// One metric. Samples of counters have `_total` after the name, those of infos `_info`.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    pub kind: Type,
    /// Empty when it just counts. A unit ends the name.
    pub unit: &'static str,
    /// Those that a sample may have.
    pub labels: &'static str,
    pub help: &'static str,
}

pub const fn family(
    name: &'static str,
    kind: Type,
    unit: &'static str,
    labels: &'static str,
    help: &'static str,
) -> Family {
    Family { name, kind, unit, labels, help }
}
