//! What system calls spent their time on.

use serde::Serialize;

use crate::HashMap;
use crate::analysis::trace::losses::Quality;
use crate::rows::{FileRollup, PARTS, Span};
use crate::vocabulary::Layer;

/// A part of the time of outermost system calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitRow {
    /// The column of `spans` without `_ns`; `sleep` is what no column explains.
    pub part: &'static str,
    pub ns: i64,
    /// Of all parts together, 0 to 1.
    pub share: f64,
    /// The function whose calls have most of it, and how much.
    pub op: &'static str,
    pub op_ns: i64,
    pub op_calls: i64,
    /// False: system calls were lost.
    pub complete: bool,
}

/// Time in ns, in the order of [`PARTS`].
pub type Parts = [i64; PARTS.len()];

/// What a call adds: outermost system calls do, where it is known.
pub fn parts(span: &Span) -> Option<Parts> {
    if span.layer == Layer::Syscall && span.layer_top { span.parts() } else { None }
}

/// The same of system calls that were summed up. Estimated ones have no time.
pub fn parts_of_sum(row: &FileRollup) -> Option<Parts> {
    (row.layer == Layer::Syscall && row.calls_error.is_none()).then(|| row.parts())
}

/// A function: how many calls, and what they spent.
#[derive(Default)]
struct Op {
    calls: i64,
    parts: Parts,
}

/// Sums up by function.
#[derive(Default)]
pub struct Waits(HashMap<&'static str, Op>);

impl Waits {
    pub fn span(&mut self, span: &Span) {
        if let Some(parts) = parts(span) {
            self.add(span.op, 1, parts);
        }
    }

    pub fn sums(&mut self, row: &FileRollup) {
        if let Some(parts) = parts_of_sum(row) {
            self.add(row.op, row.calls, parts);
        }
    }

    fn add(&mut self, name: &'static str, calls: i64, parts: Parts) {
        let op = self.0.entry(name).or_default();
        op.calls = op.calls.saturating_add(calls);
        op.parts.iter_mut().zip(parts).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
    }

    /// Those that there is something of, the longest first.
    pub fn rows(&self, quality: &Quality) -> Vec<WaitRow> {
        let all: i64 = self.0.values().flat_map(|op| op.parts).fold(0, i64::saturating_add);
        let mut rows: Vec<WaitRow> = PARTS
            .iter()
            .enumerate()
            .filter_map(|(at, (part, _))| {
                let ns = self.0.values().map(|op| op.parts[at]).fold(0, i64::saturating_add);
                let most = self.0.iter().max_by_key(|(name, op)| (op.parts[at], std::cmp::Reverse(**name)))?;
                let (op, Op { calls, parts }) = most;
                (ns > 0).then_some(WaitRow {
                    part,
                    ns,
                    share: ns as f64 / all as f64,
                    op,
                    op_ns: parts[at],
                    op_calls: *calls,
                    complete: quality.complete(Layer::Syscall),
                })
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
        rows
    }
}
