//! Where the time of calls went, in parts that add up: inside each library, and what system calls waited for.

use serde::Serialize;

use crate::analysis::calls::ratio;
use crate::analysis::durations::waiting::WaitRow;
use crate::analysis::layers::LayerRow;
use crate::rows::PARTS;
use crate::vocabulary::{LAYERS, Layer};

/// A part of the time of all calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimePart {
    /// A layer, for the exclusive time of its calls, or a part of the time of system calls ([`WaitRow::part`]).
    pub part: &'static str,
    /// `layer` or `wait`.
    pub kind: &'static str,
    pub ns: i64,
    /// Of all parts together, 0 to 1.
    pub share: f64,
    pub complete: bool,
}

impl TimePart {
    /// For people.
    pub fn description(&self) -> &'static str {
        let known = PARTS.iter().find(|(part, _)| self.kind == "wait" && *part == self.part);
        known.map_or(self.part, |(_, description)| description)
    }
}

/// Layers from top to bottom, then waits, the longest first. What is inside system calls and has no known part is of the
/// layer `syscall`.
pub fn parts(layers: &[LayerRow], waiting: &[WaitRow]) -> Vec<TimePart> {
    let exclusive = |layer: &LayerRow| layer.exclusive_ns.unwrap_or(0);
    let is_above = |name: &str| LAYERS.iter().any(|layer| layer.name() == name && *layer < Layer::Syscall);
    let part = |part, kind, ns, complete| TimePart { part, kind, ns, share: 0.0, complete };
    let above = layers.iter().filter(|layer| is_above(layer.layer));
    let mut parts: Vec<TimePart> =
        above.map(|layer| part(layer.layer, "layer", exclusive(layer), layer.exclusive_complete)).collect();
    let below: Vec<&LayerRow> = layers.iter().filter(|layer| !is_above(layer.layer)).collect();
    let inside = below.iter().fold(0, |sum: i64, layer| sum.saturating_add(exclusive(layer)));
    let known = waiting.iter().fold(0, |sum: i64, wait| sum.saturating_add(wait.ns));
    parts.push(part(
        Layer::Syscall.name(),
        "layer",
        inside.saturating_sub(known),
        below.iter().all(|layer| layer.exclusive_complete),
    ));
    parts.extend(waiting.iter().map(|wait| part(wait.part, "wait", wait.ns, wait.complete)));
    parts.retain(|part| part.ns > 0);
    let all = parts.iter().fold(0, |sum: i64, part| sum.saturating_add(part.ns));
    for part in &mut parts {
        part.share = ratio(part.ns as f64, all as f64);
    }
    parts
}
