//! What the calls of the datasets come to, added up when they are made.

use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of a function, or a layer.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Outermost calls of the layer, and the others.
    pub calls: u64,
    pub nested_calls: u64,
    pub errors: u64,
    pub inclusive_ns: i64,
    pub exclusive_ns: i64,
    /// Of reads and writes.
    pub asked: i64,
    pub moved: i64,
}

impl Figures {
    fn add(&mut self, span: &Span) {
        self.exclusive_ns += span.self_ns;
        if !span.layer_top {
            self.nested_calls += 1;
            return;
        }
        self.calls += 1;
        self.errors += u64::from(span.errno != 0);
        self.inclusive_ns += span.inclusive_ns();
        if matches!(span.kind, Kind::Read | Kind::Write) {
            self.asked += span.req_bytes.unwrap_or(0);
            self.moved += span.bytes.unwrap_or(0);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.nested_calls += other.nested_calls;
        self.errors += other.errors;
        self.inclusive_ns += other.inclusive_ns;
        self.exclusive_ns += other.exclusive_ns;
        self.asked += other.asked;
        self.moved += other.moved;
    }
}

/// The sums of a node, or of several.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sums {
    ops: BTreeMap<(Layer, &'static str), Figures>,
}

impl Sums {
    pub fn add(&mut self, span: &Span) {
        self.ops.entry((span.layer, span.op)).or_default().add(span);
    }

    pub fn merge(&mut self, other: &Self) {
        for (op, figures) in &other.ops {
            self.ops.entry(*op).or_default().merge(figures);
        }
    }

    pub fn spans(&self) -> u64 {
        self.ops.values().map(|figures| figures.calls + figures.nested_calls).sum()
    }

    pub fn layers(&self) -> BTreeMap<Layer, Figures> {
        let mut layers = BTreeMap::<Layer, Figures>::new();
        for ((layer, _), figures) in &self.ops {
            layers.entry(*layer).or_default().merge(figures);
        }
        layers
    }

    /// As the file beside the datasets has them.
    pub fn json(&self) -> serde_json::Value {
        let layers: BTreeMap<String, Figures> =
            self.layers().into_iter().map(|(layer, figures)| (layer.to_string(), figures)).collect();
        serde_json::json!({ "spans": self.spans(), "layers": layers })
    }
}
