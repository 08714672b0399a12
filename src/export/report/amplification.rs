//! Bytes from the program's own calls down to the device: what each layer makes of what it was asked.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use serde::Serialize;

use super::header::{LayerCoverage, Quality};
use super::layers::{Bytes, is_data};
use super::source::Source;
use crate::correlate::rows::{Block, Span};
use crate::words::{Kind, LAYERS, Layer};

/// Both directions, apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Amplification {
    pub read: Chain,
    pub write: Chain,
}

/// What the program asked for, then what each layer moved, top to bottom.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chain {
    /// Asked for by the program's own reads or writes (by what they moved where that is not known). Where such a call
    /// does not tell its bytes, those of the first calls below it that do are taken.
    pub asked: Bytes,
    pub asked_calls: i64,
    /// False: a limit was reached and `asked` is too small.
    pub asked_complete: bool,
    pub steps: Vec<Step>,
}

/// One layer of a chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    pub layer: &'static str,
    /// Outermost calls of the layer, or device requests.
    pub calls: i64,
    pub bytes: Bytes,
    /// The part of `bytes` that the program asked of this layer itself, without a traced layer above.
    pub direct: i64,
    /// `bytes` against what the program asked for.
    pub to_asked: Option<f64>,
    /// `bytes` against the nearest layer above that knows its own.
    pub to_above: Option<f64>,
    /// Block: why the requests were made.
    pub classes: Vec<ClassBytes>,
    pub complete: bool,
    /// Set when the layer has no attached probe.
    pub not_covered: Option<String>,
}

/// Requests of one class: `sync`, `writeback`, `readahead`, ...
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassBytes {
    pub class: &'static str,
    pub requests: i64,
    pub bytes: i64,
}

/// Read and write, in this order.
const DIRECTIONS: [Kind; 2] = [Kind::Read, Kind::Write];

/// Calls of unknown size that are remembered so that the calls below can stand for them: 2 Mi, about 50 MiB.
const OPAQUE_MAX: usize = 2 << 20;

#[derive(Default, Clone)]
struct Sum {
    calls: i64,
    bytes: Bytes,
    direct: i64,
}

/// Sums up bytes per layer and direction, and what the program asked for at the top.
#[derive(Default)]
pub struct Chains {
    layers: HashMap<(Kind, Layer), Sum>,
    classes: [BTreeMap<&'static str, (i64, i64)>; 2],
    asked: [Sum; 2],
    /// Calls that leave it to the calls below to tell the bytes: the span and its parent.
    opaque: HashMap<i64, Option<i64>>,
    overflow: bool,
}

/// What a data call asked for, as far as it tells.
pub fn asked(span: &Span) -> Option<i64> {
    span.req_bytes.or(span.bytes)
}

/// An application phase, or a data call of unknown size: what is asked for shows in the calls below.
fn is_opaque(span: &Span) -> bool {
    span.layer == Layer::App || (is_data(span) && asked(span).is_none() && span.errno == 0)
}

fn side(kind: Kind) -> usize {
    usize::from(kind == Kind::Write)
}

impl Chains {
    pub fn span(&mut self, span: &Span) {
        if is_opaque(span) {
            if self.opaque.len() < OPAQUE_MAX {
                self.opaque.insert(span.span_id, span.parent_id);
            } else {
                self.overflow = true;
            }
        }
        if !is_data(span) {
            return;
        }
        if span.parent_id.is_none() && span.layer != Layer::App {
            self.ask(span);
        }
        if span.layer_top {
            let sum = self.layers.entry((span.kind, span.layer)).or_default();
            sum.calls += 1;
            sum.bytes.add(span.bytes, span.errno != 0);
            if span.parent_id.is_none() {
                sum.direct = sum.direct.saturating_add(span.bytes.unwrap_or(0));
            }
        }
    }

    fn ask(&mut self, span: &Span) {
        let sum = &mut self.asked[side(span.kind)];
        sum.calls += 1;
        sum.bytes.add(asked(span), span.errno != 0);
    }

    /// A device request counts once, however many calls caused it. A failed one moved nothing.
    pub fn block(&mut self, block: &Block) {
        let kind = match block.op {
            "read" => Kind::Read,
            "write" => Kind::Write,
            _ => return,
        };
        let bytes = if block.status == 0 { i64::from(block.bytes) } else { 0 };
        let sum = self.layers.entry((kind, Layer::Block)).or_default();
        sum.calls += 1;
        sum.bytes.add(Some(bytes), false);
        let class = self.classes[side(kind)].entry(block.class).or_default();
        *class = (class.0 + 1, class.1.saturating_add(bytes));
    }

    /// The second pass, only made where a top call did not tell its bytes: the first calls below that do.
    /// `each` gets every call that counts as asked by the program besides the roots.
    pub fn below_opaque(&mut self, source: &mut dyn Source, each: &mut dyn FnMut(&Span)) -> Result<()> {
        let opaque = std::mem::take(&mut self.opaque);
        // Opaque calls that are reached from the top through opaque calls only.
        let mut reached = HashSet::new();
        let mut fresh: Vec<i64> = opaque.iter().filter(|(_, parent)| parent.is_none()).map(|(id, _)| *id).collect();
        let mut children = HashMap::<i64, Vec<i64>>::new();
        for (id, parent) in opaque.iter().filter_map(|(id, parent)| parent.map(|p| (*id, p))) {
            children.entry(parent).or_default().push(id);
        }
        while let Some(id) = fresh.pop() {
            if reached.insert(id) {
                fresh.extend(children.remove(&id).unwrap_or_default());
            }
        }
        if reached.is_empty() {
            return Ok(());
        }
        source.spans(&mut |span| {
            let below = span.parent_id.is_some_and(|parent| reached.contains(&parent));
            if below && is_data(span) && asked(span).is_some() {
                self.ask(span);
                each(span);
            }
            Ok(())
        })
    }

    pub fn finish(self, coverage: &[LayerCoverage], quality: &Quality) -> Amplification {
        let chain = |kind| self.chain(kind, coverage, quality);
        let [read, write] = DIRECTIONS.map(chain);
        Amplification { read, write }
    }

    fn chain(&self, kind: Kind, coverage: &[LayerCoverage], quality: &Quality) -> Chain {
        let top = &self.asked[side(kind)];
        let mut steps = Vec::new();
        let mut above = top.bytes.sum;
        for layer in LAYERS {
            let sum = self.layers.get(&(kind, layer));
            // Layers that could have been seen and were not are named: silence would read as no bytes.
            let probed = coverage.iter().find(|c| c.layer == layer.name() && c.probes > 0);
            let not_covered = probed.and_then(|c| c.not_covered.clone()).filter(|_| sum.is_none());
            if sum.is_none() && not_covered.is_none() {
                continue;
            }
            let sum = sum.cloned().unwrap_or_default();
            let to = |base: Option<i64>| match (sum.bytes.sum, base) {
                (Some(n), Some(base)) if base > 0 => Some(n as f64 / base as f64),
                _ => None,
            };
            let classes = if layer == Layer::Block { self.classes(kind) } else { Vec::new() };
            steps.push(Step {
                layer: layer.name(),
                calls: sum.calls,
                bytes: sum.bytes,
                direct: sum.direct,
                to_asked: to(top.bytes.sum),
                to_above: to(above),
                classes,
                complete: quality.complete(layer),
                not_covered,
            });
            above = sum.bytes.sum.or(above);
        }
        let asked_complete = !self.overflow && quality.all();
        Chain { asked: top.bytes, asked_calls: top.calls, asked_complete, steps }
    }

    fn classes(&self, kind: Kind) -> Vec<ClassBytes> {
        let row = |(class, (requests, bytes)): (&&'static str, &(i64, i64))| ClassBytes {
            class,
            requests: *requests,
            bytes: *bytes,
        };
        let mut rows: Vec<_> = self.classes[side(kind)].iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        rows
    }
}
