//! Time: windows of it, and samples over it.

use crate::analysis::calls::Sums;
use crate::vocabulary::Layer;

/// From, and up to but not including.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    pub from_ns: i64,
    pub to_ns: i64,
}

/// Samples at equal distances over all that is kept, for sparklines and for scrubbing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// Start of the first sample.
    pub from_ns: i64,
    /// Length of a sample.
    pub width_ns: i64,
    /// Layers that had calls, top to bottom, each with as many samples as the others.
    pub layers: Vec<(Layer, Vec<Sums>)>,
    /// All devices together.
    pub device: Vec<DeviceSample>,
    /// Events lost in each sample.
    pub lost: Vec<i64>,
}

/// What devices did in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceSample {
    pub requests: i64,
    pub bytes_read: i64,
    pub bytes_written: i64,
    /// Sum over requests of the time from issue to completion.
    pub dur_ns: i64,
    /// The same from queue to issue.
    pub queue_ns: i64,
}
