//! What happened inside each phase, layer by layer.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::{Bytes, Figures};
use crate::analysis::nesting::{Enclosing, is_phase};
use crate::analysis::trace::losses::Quality;
use crate::rows::Span;
use crate::vocabulary::{LAYERS, Layer, flag};

/// All calls of one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseRow {
    pub op: &'static str,
    pub calls: i64,
    /// Of them those that were left by an exception or a jump, or were open when the trace ended.
    pub unfinished_calls: i64,
    /// Of calls that no call of the same phase is around.
    pub inclusive_ns: i64,
    /// Of all calls: what traced calls inside them do not cover.
    pub exclusive_ns: i64,
    /// What is inside, on the same thread and in whatever phases: each call once. Top to bottom.
    pub layers: Vec<PhaseLayer>,
    /// False: something was lost, or too much to be remembered.
    pub complete: bool,
}

/// Outermost calls of one layer inside a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PhaseLayer {
    pub layer: &'static str,
    pub calls: i64,
    pub read: Bytes,
    pub written: Bytes,
    pub time_ns: i64,
}

/// Calls of phases, and layers inside them, that are remembered: 2 Mi each.
const REMEMBERED_MAX: usize = 2 << 20;

struct Phase {
    op: &'static str,
    around: Enclosing,
    net_ns: i64,
}

/// Sums up by call of a phase, because the phase itself comes last.
#[derive(Default)]
pub struct Phases {
    calls: HashMap<i64, Phase>,
    sums: HashMap<(i64, Layer), PhaseLayer>,
    rows: BTreeMap<&'static str, PhaseRow>,
    overflow: bool,
}

impl Phases {
    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        if is_phase(span) {
            self.call(span, around);
        }
        let Some(phase) = around.phase.filter(|_| around.counts(span)) else { return };
        if self.sums.len() >= REMEMBERED_MAX && !self.sums.contains_key(&(phase, span.layer)) {
            self.overflow = true;
            return;
        }
        let call = PhaseLayer::of(span.layer, &Figures::of_call(span));
        self.sums.entry((phase, span.layer)).or_default().add(&call);
    }

    fn call(&mut self, span: &Span, around: &Enclosing) {
        let row = self.rows.entry(span.op).or_insert_with(|| PhaseRow {
            op: span.op,
            calls: 0,
            unfinished_calls: 0,
            inclusive_ns: 0,
            exclusive_ns: 0,
            layers: Vec::new(),
            complete: true,
        });
        row.calls += 1;
        row.unfinished_calls += i64::from(span.flags & flag::UNFINISHED != 0);
        row.exclusive_ns = row.exclusive_ns.saturating_add(span.self_ns);
        if self.calls.len() < REMEMBERED_MAX {
            self.calls.insert(span.span_id, Phase { op: span.op, around: *around, net_ns: span.net_ns() });
        } else {
            self.overflow = true;
        }
    }

    /// A row for each phase, the longest first.
    pub fn rows(self, quality: &Quality) -> Vec<PhaseRow> {
        let Self { calls, sums, mut rows, overflow } = self;
        // A phase may be inside itself: what is inside both counts once.
        let around = |id: i64| std::iter::successors(calls.get(&id), |phase| calls.get(&phase.around.phase?));
        for (id, call) in &calls {
            let inside_itself = around(*id).skip(1).any(|outer| outer.op == call.op);
            if let Some(row) = rows.get_mut(call.op).filter(|_| !inside_itself) {
                row.inclusive_ns = row.inclusive_ns.saturating_add(call.net_ns);
            }
        }
        let mut layers = BTreeMap::<(&'static str, Layer), PhaseLayer>::new();
        for ((id, layer), sum) in &sums {
            let mut seen: Vec<&str> = Vec::new();
            let mut in_app = false;
            for phase in around(*id) {
                let nested = in_app && *layer == Layer::App;
                if !nested && !seen.contains(&phase.op) {
                    seen.push(phase.op);
                    layers.entry((phase.op, *layer)).or_default().add(sum);
                }
                in_app |= phase.around.in_app;
            }
        }
        for ((op, layer), sum) in layers {
            if let Some(row) = rows.get_mut(op) {
                row.layers.push(PhaseLayer { layer: layer.name(), ..sum });
            }
        }
        let order = |l: &PhaseLayer| LAYERS.iter().position(|layer| layer.name() == l.layer);
        let mut rows: Vec<PhaseRow> = rows.into_values().collect();
        for row in &mut rows {
            row.complete = !overflow && quality.all();
            row.layers.sort_by_key(order);
        }
        rows.sort_by_key(|row| (std::cmp::Reverse(row.inclusive_ns), row.op));
        rows
    }
}

impl PhaseLayer {
    fn of(layer: Layer, sum: &Figures) -> Self {
        let (read, written) = (sum.read.moved, sum.written.moved);
        Self { layer: layer.name(), calls: sum.calls, read, written, time_ns: sum.inclusive_ns }
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.read.merge(other.read);
        self.written.merge(other.written);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
    }
}
