//! How long each layer takes the program, as `IOPro` composes it: times of parts one after the other are added, of
//! parts side by side the longest counts, and throughputs of parts side by side are added. A part is what one thread
//! does in a layer. A collective call is one operation of all ranks; such operations come one after the other.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::is_data;
use crate::analysis::nesting::Enclosing;
use crate::analysis::trace::losses::Quality;
use crate::rows::{SEQ_BITS, Span};
use crate::vocabulary::{LAYERS, Layer};

/// Calls of a thread that are remembered: rows of operations that end late come after those of the next calls.
const CALLS: usize = 8;
/// Parts, and collective operations, with sums of their own at most.
const PARTS_MAX: usize = 1 << 18;
const OPERATIONS_MAX: usize = 1 << 17;

/// One layer below one function that the program called.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Composed {
    pub called: &'static str,
    pub op: &'static str,
    /// Is it an operation of all ranks?
    pub collective: bool,
    pub layer: &'static str,
    pub calls: i64,
    /// Side by side at most.
    pub parts: usize,
    /// The longest of parts side by side, added where they come one after the other.
    pub latency_ns: i64,
    /// All added.
    pub added_ns: i64,
    pub bytes: i64,
    /// Bytes per second of each part, added.
    pub throughput_bps: Option<f64>,
    pub complete: bool,
}

/// The layer and the name of a function, and whether its calls are collective.
type Key = (Layer, &'static str, bool);
/// A collective call: its id, and which of several that have the same.
type Operation = (i64, u32);

/// A call that the program made itself.
struct Call {
    id: i64,
    key: Key,
    operation: Option<Operation>,
    /// Of a collective one: time in each layer, by thread.
    parts: Vec<(i64, Busy)>,
}

/// Time in each layer, each moment once.
#[derive(Clone, Copy)]
struct Busy {
    ns: [i64; LAYERS.len()],
    until: [i64; LAYERS.len()],
}

/// What one thread did in one layer inside the calls of one function.
struct Side {
    calls: i64,
    bytes: i64,
    ns: i64,
    until: i64,
}

#[derive(Clone, Copy, Default)]
struct Longest {
    ns: [i64; LAYERS.len()],
    parts: [usize; LAYERS.len()],
}

/// Follows the spans in the order of the dataset.
#[derive(Default)]
pub struct Composition {
    threads: HashMap<i64, VecDeque<Call>>,
    /// How often each process had the id of a collective call.
    runs: HashMap<(i32, i64), u32>,
    sides: HashMap<(Key, Layer, i64), Side>,
    operations: HashMap<(Key, Operation), Longest>,
    /// There were more.
    full: bool,
}

/// The part of a time that is not over yet at `until`, which is moved on.
fn fresh(until: &mut i64, from: i64, to: i64) -> i64 {
    let ns = to.saturating_sub(from.max(*until)).max(0);
    *until = to.max(*until);
    ns
}

impl Composition {
    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        let Some((id, _)) = around.call else { return };
        let thread = id >> SEQ_BITS;
        if around.is_own(span) {
            self.begin(span, thread);
        }
        let part = span.span_id >> SEQ_BITS;
        // What another thread does for an asynchronous operation may stand before the operation.
        if !span.layer_top || part != thread {
            return;
        }
        let Some(call) = self.threads.get_mut(&thread).and_then(|calls| calls.iter_mut().find(|call| call.id == id))
        else {
            return;
        };
        let (from, to, layer) = (span.start_ns, span.start_ns.saturating_add(span.net_ns()), span.layer as usize);
        let known = (call.key, span.layer, part);
        if self.sides.len() >= PARTS_MAX && !self.sides.contains_key(&known) {
            self.full = true;
            return;
        }
        let side = self.sides.entry(known).or_insert(Side { calls: 0, bytes: 0, ns: 0, until: i64::MIN });
        let ns = if call.operation.is_some() {
            let at = call.parts.iter().position(|(of, _)| *of == part).unwrap_or_else(|| {
                call.parts.push((part, Busy { ns: [0; LAYERS.len()], until: [i64::MIN; LAYERS.len()] }));
                call.parts.len() - 1
            });
            let busy = &mut call.parts[at].1;
            let ns = fresh(&mut busy.until[layer], from, to);
            busy.ns[layer] = busy.ns[layer].saturating_add(ns);
            ns
        } else {
            fresh(&mut side.until, from, to)
        };
        side.calls += 1;
        side.ns = side.ns.saturating_add(ns);
        if is_data(span.kind) {
            side.bytes = side.bytes.saturating_add(span.bytes.unwrap_or(0));
        }
    }

    /// The program makes a call.
    fn begin(&mut self, span: &Span, thread: i64) {
        let operation = span.coll_id.map(|coll_id| {
            let of = (span.rank.unwrap_or(-1 - span.process_ix), coll_id);
            if self.runs.len() >= PARTS_MAX && !self.runs.contains_key(&of) {
                self.full = true;
                return (coll_id, 1);
            }
            let run = self.runs.entry(of).or_default();
            *run += 1;
            (coll_id, *run)
        });
        let key = (span.layer, span.op, operation.is_some());
        let calls = self.threads.entry(thread).or_default();
        calls.push_back(Call { id: span.span_id, key, operation, parts: Vec::new() });
        if calls.len() > CALLS
            && let Some(call) = calls.pop_front()
        {
            self.end(&call);
        }
    }

    /// No more of it comes.
    fn end(&mut self, call: &Call) {
        let Some(operation) = call.operation else { return };
        let known = (call.key, operation);
        if self.operations.len() >= OPERATIONS_MAX && !self.operations.contains_key(&known) {
            self.full = true;
            return;
        }
        let longest = self.operations.entry(known).or_default();
        for (_, busy) in &call.parts {
            for layer in (0..LAYERS.len()).filter(|layer| busy.until[*layer] != i64::MIN) {
                longest.ns[layer] = longest.ns[layer].max(busy.ns[layer]);
                longest.parts[layer] += 1;
            }
        }
    }

    pub fn rows(mut self, quality: &Quality) -> Vec<Composed> {
        for call in std::mem::take(&mut self.threads).into_values().flatten() {
            self.end(&call);
        }
        let mut rows = BTreeMap::<(Key, Layer), Composed>::new();
        let empty = |(called, op, collective): Key, layer: Layer| Composed {
            called: called.name(),
            op,
            collective,
            layer: layer.name(),
            calls: 0,
            parts: 0,
            latency_ns: 0,
            added_ns: 0,
            bytes: 0,
            throughput_bps: None,
            complete: quality.complete(layer) && !self.full,
        };
        // In order, or the last digits of sums would be by chance.
        let mut sides: Vec<_> = self.sides.iter().collect();
        sides.sort_by_key(|(side, _)| **side);
        for ((key, layer, _), side) in sides {
            let row = rows.entry((*key, *layer)).or_insert_with(|| empty(*key, *layer));
            row.calls += side.calls;
            row.bytes = row.bytes.saturating_add(side.bytes);
            row.added_ns = row.added_ns.saturating_add(side.ns);
            if side.ns > 0 {
                *row.throughput_bps.get_or_insert(0.0) += side.bytes as f64 * 1e9 / side.ns as f64;
            }
            if !row.collective {
                row.parts += 1;
                row.latency_ns = row.latency_ns.max(side.ns);
            }
        }
        for ((key, _), longest) in &self.operations {
            for layer in LAYERS.into_iter().filter(|layer| longest.parts[*layer as usize] > 0) {
                let Some(row) = rows.get_mut(&(*key, layer)) else { continue };
                row.parts = row.parts.max(longest.parts[layer as usize]);
                row.latency_ns = row.latency_ns.saturating_add(longest.ns[layer as usize]);
            }
        }
        rows.into_values().collect()
    }
}
