//! All metrics as they are now, as text.

use crate::metrics::counts::Counts;
use crate::metrics::families::{self as f, Family};
use crate::metrics::text::{Format, Seconds, Text};
use crate::node::figures::{FIGURES, Figure, Reading};
use crate::vocabulary::Layer;

/// What the tracer knows of itself.
#[derive(Debug, Clone, Default)]
pub struct Own {
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

/// The whole page.
pub fn page(format: Format, counts: &Counts, own: &Own, node: &Node) -> String {
    let mut text = Text::new(format);
    text.family(&f::BUILD);
    text.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    calls(&mut text, counts);
    trace(&mut text, counts, own);
    of_node(&mut text, node);
    text.finish()
}

fn calls(text: &mut Text, counts: &Counts) {
    let ops = counts.ops();
    let block = Layer::Block.name();
    text.family(&f::OP_DURATION);
    for (layer, op, place, sums) in ops.iter().filter(|(.., sums)| sums.durations.count > 0) {
        let labels = [("layer", layer.name()), ("op", op), ("fs", &place.fs), ("scope", place.scope)];
        text.histogram(&labels, &sums.durations);
    }
    for (device, op, requests) in counts.requests() {
        text.histogram(&[("layer", block), ("op", op), ("device", device)], &requests.durations);
    }
    text.family(&f::OP_FAILED);
    for (layer, op, place, sums) in ops.iter().filter(|(.., sums)| sums.durations.count > 0) {
        let labels = [("layer", layer.name()), ("op", op), ("fs", &place.fs), ("scope", place.scope)];
        text.sample(&labels, sums.failed);
    }
    for (device, op, requests) in counts.requests() {
        text.sample(&[("layer", block), ("op", op), ("device", device)], requests.failed);
    }
    text.family(&f::OP_SELF);
    for (layer, op, place, sums) in &ops {
        let labels = [("layer", layer.name()), ("op", *op), ("fs", &place.fs), ("scope", place.scope)];
        text.sample(&labels, Seconds(sums.self_ns));
    }
    text.family(&f::BYTES);
    for (layer, place, bytes) in counts.bytes() {
        for (direction, n) in ["read", "write"].into_iter().zip(bytes) {
            let labels = [("layer", layer.name()), ("direction", direction), ("fs", &place.fs), ("scope", place.scope)];
            text.sample(&labels, n);
        }
    }
    for (device, bytes) in counts.device_bytes() {
        for (direction, n) in ["read", "write"].into_iter().zip(bytes) {
            text.sample(&[("layer", block), ("direction", direction), ("device", device)], n);
        }
    }
    text.family(&f::QUEUE);
    for (device, op, requests) in counts.requests() {
        text.sample(&[("device", device), ("op", op)], Seconds(requests.queue_ns));
    }
}

fn trace(text: &mut Text, counts: &Counts, own: &Own) {
    text.family(&f::LOST);
    for (layer, reason, n) in counts.lost() {
        text.sample(&[("layer", layer.map_or("unknown", Layer::name)), ("reason", reason)], n);
    }
    text.family(&f::LEFT_OUT);
    for (what, n) in counts.left_out_calls() {
        text.sample(&[("what", what)], n);
    }
    text.family(&f::HOOKS);
    text.sample(&[], Seconds(counts.tracing.hooks_ns as u128));
    text.family(&f::TRACING);
    text.sample(&[], Seconds(counts.tracing.tracing_ns() as u128));
    text.family(&f::TRACING_RATIO);
    if let Some(share) = counts.tracing.share() {
        text.sample(&[], share);
    }
    text.family(&f::PROBES);
    for (layer, status, n) in counts.probes() {
        text.sample(&[("layer", layer.name()), ("status", status)], n);
    }
    text.family(&f::PROCESSES);
    text.sample(&[], counts.processes());
    text.family(&f::RECORDS);
    text.sample(&[], own.records);
    text.family(&f::RING_FILL);
    text.sample(&[], own.ring_fill);
    text.family(&f::RING);
    text.sample(&[], own.ring_bytes);
    text.family(&f::OWN_CPU);
    text.sample(&[], Seconds(own.cpu_ns));
    text.family(&f::OWN_MEMORY);
    if let Some(bytes) = own.memory_bytes {
        text.sample(&[], bytes);
    }
    text.family(&f::OWN_START);
    text.sample(&[], Seconds(own.started_ns));
}

/// The metric of a figure, and its labels for what it is of and for the part.
const fn of_figure(figure: Figure) -> (&'static Family, &'static str, &'static str) {
    match figure {
        Figure::Cpu => (&f::NODE_CPU, "", "mode"),
        Figure::Memory => (&f::NODE_MEMORY, "", "kind"),
        Figure::Pressure => (&f::NODE_PRESSURE, "resource", "kind"),
        Figure::Network => (&f::NODE_NETWORK, "interface", "direction"),
        Figure::DeviceRequests => (&f::NODE_DEVICE_REQUESTS, "device", "op"),
        Figure::DeviceBytes => (&f::NODE_DEVICE_BYTES, "device", "op"),
        Figure::DeviceTime => (&f::NODE_DEVICE_TIME, "device", "op"),
        Figure::DeviceBusy => (&f::NODE_DEVICE_BUSY, "device", ""),
        Figure::DeviceInFlight => (&f::NODE_DEVICE_IN_FLIGHT, "device", ""),
        Figure::TargetCpu => (&f::TARGET_CPU, "", ""),
        Figure::TargetFaults => (&f::TARGET_FAULTS, "", "kind"),
        Figure::TargetSwitches => (&f::TARGET_SWITCHES, "", ""),
        Figure::TargetMigrations => (&f::TARGET_MIGRATIONS, "", ""),
        Figure::TargetHardware => (&f::TARGET_HARDWARE, "", "event"),
    }
}

fn of_node(text: &mut Text, node: &Node) {
    text.family(&f::NODE_SOURCE);
    for (source, there) in &node.sources {
        text.sample(&[("source", source)], u8::from(*there));
    }
    for figure in FIGURES {
        let (family, of, part) = of_figure(figure);
        text.family(family);
        for r in node.readings.iter().filter(|r| r.figure == figure) {
            text.sample(&[(of, &r.of), (part, r.part)], r.value);
        }
    }
}
