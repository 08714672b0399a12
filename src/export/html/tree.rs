//! Which functions call which, with what system calls waited for as the innermost frames.

use serde_json::{Value, json};

use crate::HashMap;
use crate::analysis::durations::waiting;
use crate::analysis::nesting::Nesting;
use crate::rows::{FileRollup, PARTS, Span};
use crate::vocabulary::{Layer, flag};

/// Nodes that are kept apart; those that come later count for their caller.
const NODES_MAX: usize = 1500;

/// A frame of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Frame {
    Call(Layer, &'static str),
    /// A column of `spans` that is a part of its time.
    Part(&'static str),
}

/// A node, its calls and its time in ns.
pub type Adds = (u32, i64, i64);

/// The tree; sums of its nodes are kept by the caller of [`Tree::span`].
#[derive(Default)]
pub struct Tree {
    nodes: Vec<(Option<u32>, Frame)>,
    index: HashMap<(Option<u32>, Frame), u32>,
    nesting: Nesting<Option<u32>>,
    /// Calls that have no node of their own.
    merged: i64,
}

impl Tree {
    fn node(&mut self, around: Option<u32>, frame: Frame) -> Option<u32> {
        if let Some(at) = self.index.get(&(around, frame)) {
            return Some(*at);
        }
        if self.nodes.len() >= NODES_MAX {
            self.merged = self.merged.saturating_add(1);
            return around;
        }
        let at = self.nodes.len() as u32;
        self.index.insert((around, frame), at);
        self.nodes.push((around, frame));
        Some(at)
    }

    /// What a call adds to which nodes: its exclusive time, in parts where those are known.
    pub fn span(&mut self, span: &Span) -> Vec<Adds> {
        let above = self.nesting.above(span).flatten();
        let node = self.node(above, Frame::Call(span.layer, span.op));
        self.nesting.enter(span, node);
        // What another thread waits for is in the call that waits.
        let own = if span.flags & flag::ASYNC == 0 { span.self_ns } else { 0 };
        self.parts(node, (1, own), waiting::parts(span).filter(|_| own > 0))
    }

    /// The same of calls that were summed up, whose callers are not known.
    pub fn sums(&mut self, row: &FileRollup) -> Vec<Adds> {
        let node = self.node(None, Frame::Call(row.layer, row.op));
        let calls = row.calls.saturating_add(row.nested_calls);
        self.parts(node, (calls, row.self_ns), waiting::parts_of_sum(row))
    }

    /// Splits exclusive time: what is on a CPU stays with the call. Parts are of all the call's time, and go no further
    /// than its own.
    fn parts(&mut self, node: Option<u32>, (calls, own): (i64, i64), parts: Option<waiting::Parts>) -> Vec<Adds> {
        let Some(at) = node else { return Vec::new() };
        let mut left = own.max(0);
        let mut adds = Vec::new();
        for ((part, _), ns) in PARTS.iter().zip(parts.unwrap_or_default()).filter(|((part, _), _)| *part != "cpu") {
            let ns = ns.min(left);
            if ns > 0
                && let Some(leaf) = self.node(node, Frame::Part(part)).filter(|leaf| *leaf != at)
            {
                adds.push((leaf, 0, ns));
                left -= ns;
            }
        }
        adds.push((at, calls, left));
        adds
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Nodes as `[caller, layer, name]`; of parts the layer is null.
    pub fn finish(&self) -> Value {
        let node = |(around, frame): &(Option<u32>, Frame)| match frame {
            Frame::Call(layer, op) => json!([around, layer.name(), op]),
            Frame::Part(part) => json!([around, null, part]),
        };
        json!({ "nodes": self.nodes.iter().map(node).collect::<Vec<_>>(), "merged": self.merged, "parts": PARTS })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::span_id;
    use crate::vocabulary::Kind;

    #[test]
    fn waits_are_below_the_call_that_waits_and_time_adds_up() {
        let mut tree = Tree::default();
        let outer = Span::new(span_id(1, 0), (Layer::Hdf5, "H5Dwrite", Kind::Write), 0, (0, 100));
        let inner = Span {
            parent_id: Some(outer.span_id),
            cpu_ns: Some(10),
            device_ns: Some(60),
            ..Span::new(span_id(1, 1), (Layer::Syscall, "pwrite64", Kind::Write), 0, (10, 80))
        };
        let mut sums = HashMap::<u32, i64>::default();
        for (node, _, ns) in tree.span(&Span { self_ns: 20, ..outer }).into_iter().chain(tree.span(&inner)) {
            *sums.entry(node).or_default() += ns;
        }
        assert_eq!(sums.values().sum::<i64>(), 100);
        let nodes = tree.finish()["nodes"].clone();
        assert_eq!(nodes[1], json!([0, "syscall", "pwrite64"]));
        assert_eq!((&nodes[2], sums[&2]), (&json!([1, null, "device"]), 60));
    }
}
