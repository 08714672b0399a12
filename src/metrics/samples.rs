//! The samples of metrics that take more than a line.

use crate::analysis::calls::Sums;
use crate::metrics::counts::Counts;
use crate::metrics::text::{Seconds, Text};
use crate::node::figures::{Figure, Reading};
use crate::vocabulary::Layer;

/// What the tracer knows of itself.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// The name of the node.
    pub node: String,
    pub records: u64,
    /// 0 to 1.
    pub ring_fill: f64,
    pub ring_bytes: u64,
    pub cpu_ns: u128,
    pub memory_bytes: Option<u64>,
    /// In ns since 1970.
    pub started_ns: u128,
}

/// What the node does: readings, and which sources there are.
#[derive(Debug, Clone, Default)]
pub struct Node {
    pub readings: Vec<Reading>,
    pub sources: Vec<(&'static str, bool)>,
}

/// All that samples are made from.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    pub counts: &'a Counts,
    pub own: &'a Own,
    pub node: &'a Node,
}

const BLOCK: &str = Layer::Block.name();

/// Calls, and requests.
pub fn op_duration(text: &mut Text, page: &Page) {
    for (layer, op, fs, sums) in page.counts.ops().iter().filter(|(.., sums)| sums.durations.count > 0) {
        let labels = [("layer", layer.name()), ("op", op), ("fs", &fs.fs), ("scope", fs.scope)];
        text.histogram(&labels, &sums.durations);
    }
    for (device, op, requests) in page.counts.requests() {
        text.histogram(&[("layer", BLOCK), ("op", op), ("device", device)], &requests.durations);
    }
}

/// The same that failed.
pub fn op_failed(text: &mut Text, page: &Page) {
    for (layer, op, fs, sums) in page.counts.ops().iter().filter(|(.., sums)| sums.durations.count > 0) {
        let labels = [("layer", layer.name()), ("op", op), ("fs", &fs.fs), ("scope", fs.scope)];
        text.sample(&labels, sums.failed);
    }
    for (device, op, requests) in page.counts.requests() {
        text.sample(&[("layer", BLOCK), ("op", op), ("device", device)], requests.failed);
    }
}

/// Exclusive time.
pub fn op_self(text: &mut Text, page: &Page) {
    for (layer, op, fs, sums) in page.counts.ops() {
        let labels = [("layer", layer.name()), ("op", op), ("fs", &fs.fs), ("scope", fs.scope)];
        text.sample(&labels, Seconds(sums.self_ns));
    }
}

/// Of calls, and of devices.
pub fn bytes(text: &mut Text, page: &Page) {
    const DIRECTIONS: [&str; 2] = ["read", "write"];
    for (layer, fs, bytes) in page.counts.bytes() {
        for (direction, n) in DIRECTIONS.into_iter().zip(bytes) {
            let labels = [("layer", layer.name()), ("direction", direction), ("fs", &fs.fs), ("scope", fs.scope)];
            text.sample(&labels, n);
        }
    }
    for (device, bytes) in page.counts.device_bytes() {
        for (direction, n) in DIRECTIONS.into_iter().zip(bytes) {
            text.sample(&[("layer", BLOCK), ("direction", direction), ("device", device)], n);
        }
    }
}

/// A figure of what programs called themselves, by rank.
pub fn program(text: &mut Text, page: &Page, of: fn(&Sums) -> i64) {
    for (rank, sums) in page.counts.own() {
        text.sample(&[("rank", &rank)], of(sums));
    }
}

/// Bytes of it.
pub fn program_bytes(text: &mut Text, page: &Page) {
    for (rank, sums) in page.counts.own() {
        for (direction, n) in [("read", sums.bytes_read), ("write", sums.bytes_written)] {
            text.sample(&[("rank", &rank), ("direction", direction)], n);
        }
    }
}

/// A figure of the node, with its labels for what it is of and for the part.
pub fn figure(text: &mut Text, page: &Page, figure: Figure, of: &'static str, part: &'static str) {
    for r in page.node.readings.iter().filter(|r| r.figure == figure) {
        text.sample(&[(of, &r.of), (part, r.part)], r.value);
    }
}
