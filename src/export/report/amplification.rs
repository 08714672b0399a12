//! Bytes from the program's own calls down to the device: what each layer makes of what it was asked.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::catalog::COPIES;
use crate::export::report::header::{LayerCoverage, Quality};
use crate::export::report::layers::{Bytes, is_data};
use crate::export::report::own::{Place, Places, is_phase};
use crate::export::report::source::Source;
use crate::rows::{Block, FileRollup, Span};
use crate::vocabulary::{Kind, LAYERS, Layer};

/// Both directions, apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Amplification {
    pub read: Chain,
    pub write: Chain,
}

/// What the program asked for, then what each layer moved, top to bottom.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chain {
    /// Asked for by the program's own reads or writes (by what they moved where that is not known): the outermost calls
    /// that are no phases. Where such a call does not tell its bytes, those of the first calls below it that do are taken.
    pub asked: Bytes,
    pub asked_calls: i64,
    /// False: something was lost, or a limit was reached and sums are too small.
    pub asked_complete: bool,
    /// The same by the layer that the program called, top to bottom.
    pub by_called: Vec<Called>,
    pub steps: Vec<Step>,
}

/// The calls that the program made at one layer, and all that happened inside them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Called {
    pub layer: &'static str,
    pub asked: Bytes,
    pub asked_calls: i64,
    /// What each layer moved inside these calls (outermost calls of the layer), the layer itself included.
    pub moved: BTreeMap<&'static str, Bytes>,
    /// Of device requests linked to these calls: a write counts for the calls that wrote the data, where these are
    /// known, otherwise for the call that submitted it.
    pub device: i64,
    /// Bytes in system calls, and on the device, against what was asked.
    pub syscall_to_asked: Option<f64>,
    pub device_to_asked: Option<f64>,
}

/// One layer as a whole, whoever called it. Block requests are those of the whole node, other programs' too: what
/// belongs to traced calls is in [`Called::device`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    pub layer: &'static str,
    /// Outermost calls of the layer, or device requests.
    pub calls: i64,
    pub bytes: Bytes,
    /// `bytes` against what the program asked for.
    pub to_asked: Option<f64>,
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

/// Calls, and requests, that are remembered until it is known what they belong to: 2 Mi each, some 100 MiB.
const REMEMBERED_MAX: usize = 2 << 20;

/// How a link says that the call wrote the data into the page cache.
const WRITTEN: &str = "writeback";

#[derive(Default, Clone)]
struct Sum {
    calls: i64,
    bytes: Bytes,
}

/// A read or write request that moved something.
struct Request {
    kind: Kind,
    /// The calls that wrote its data are known.
    written: bool,
}

/// Sums up bytes per layer and direction, and what the program asked for at the top.
#[derive(Default)]
pub struct Chains {
    layers: HashMap<(Kind, Layer), Sum>,
    classes: [BTreeMap<&'static str, (i64, i64)>; 2],
    asked: HashMap<(Kind, Layer), Sum>,
    /// Bytes of a layer (second) inside the program's own calls of a layer (first).
    moved: HashMap<(Kind, Layer, Layer), Bytes>,
    /// Of device requests, while it is not known which call of the program its call is part of: by call.
    linked: HashMap<(i64, Kind), Bytes>,
    /// Roots that are phases.
    phases: HashSet<i64>,
    requests: HashMap<i64, Request>,
    /// Calls that leave it to the calls below to tell the bytes.
    opaque: HashMap<i64, Opaque>,
    overflow: bool,
}

struct Opaque {
    /// None: the program's own call.
    parent: Option<i64>,
    /// The layer of the program's own call.
    called: Layer,
}

/// What a data call asked for, as far as it tells.
pub fn asked(span: &Span) -> Option<i64> {
    span.req_bytes.or(span.bytes)
}

/// Calls that hand operations over to the kernel, which are spans below them.
const SUBMITS: [&str; 2] = ["io_submit", "io_uring_enter"];

/// A phase inside a call, a call that submits operations, or a data call of unknown size: what is asked for shows in the
/// calls below.
fn is_opaque(span: &Span) -> bool {
    is_phase(span) || SUBMITS.contains(&span.op) || (is_data(span) && asked(span).is_none() && span.errno == 0)
}

fn side(kind: Kind) -> usize {
    usize::from(kind == Kind::Write)
}

impl Chains {
    pub fn span(&mut self, span: &Span, place: &Place) {
        let Some((_, called)) = place.call else {
            if span.parent_id.is_none() && self.phases.len() < REMEMBERED_MAX {
                self.phases.insert(span.span_id);
            }
            return;
        };
        if is_opaque(span) {
            if self.opaque.len() < REMEMBERED_MAX {
                let parent = span.parent_id.filter(|_| !place.is_own(span));
                self.opaque.insert(span.span_id, Opaque { parent, called });
            } else {
                self.overflow = true;
            }
        }
        if !is_data(span) {
            return;
        }
        if place.asks(span) {
            self.ask(span, called);
        }
        if span.layer_top {
            let sum = self.layers.entry((span.kind, span.layer)).or_default();
            sum.calls += 1;
            sum.bytes.add(span.bytes, span.errno != 0);
            let moved = self.moved.entry((span.kind, called, span.layer)).or_default();
            moved.add(span.bytes, span.errno != 0);
        }
    }

    fn ask(&mut self, span: &Span, called: Layer) {
        let sum = self.asked.entry((span.kind, called)).or_default();
        sum.calls += 1;
        sum.bytes.add(asked(span), span.errno != 0);
    }

    /// Calls that were not told, of a function that was demoted: whether the program made them itself or a library did is not
    /// known, so it counts for the program, which makes most of them.
    pub fn sums(&mut self, row: &FileRollup) {
        if row.calls_error.is_none() || !DIRECTIONS.contains(&row.kind) {
            return;
        }
        let add = |sum: &mut Sum, bytes| {
            sum.calls = sum.calls.saturating_add(row.calls);
            sum.bytes.add_sum(bytes, row.calls, 0);
        };
        add(self.asked.entry((row.kind, row.layer)).or_default(), row.req_bytes);
        add(self.layers.entry((row.kind, row.layer)).or_default(), row.bytes);
        self.moved.entry((row.kind, row.layer, row.layer)).or_default().add_sum(row.bytes, row.calls, 0);
    }

    /// A device request that is over counts once, however many calls caused it and on however many stacked devices. A failed
    /// one moved nothing.
    pub fn block(&mut self, block: &Block) {
        if block.upper_dev.is_some() || block.status.is_none() {
            return;
        }
        let kind = match block.op {
            "read" => Kind::Read,
            "write" => Kind::Write,
            _ => return,
        };
        let bytes = if block.status == Some(0) { i64::from(block.bytes) } else { 0 };
        let sum = self.layers.entry((kind, Layer::Block)).or_default();
        sum.calls += 1;
        sum.bytes.add(Some(bytes), false);
        let class = self.classes[side(kind)].entry(block.class).or_default();
        *class = (class.0 + 1, class.1.saturating_add(bytes));
        if self.requests.len() >= REMEMBERED_MAX {
            self.overflow = true;
        } else if block.status == Some(0) {
            self.requests.insert(block.req_id, Request { kind, written: false });
        }
    }

    /// After all spans and requests: whom the requests belong to, and what the calls below those of unknown size asked
    /// for. `each` gets every call that counts as asked by the program besides its own calls.
    pub fn resolve(&mut self, source: &mut dyn Source, each: &mut dyn FnMut(&Span)) -> Result<()> {
        self.links(source)?;
        let opaque = std::mem::take(&mut self.opaque);
        // Opaque calls that are reached from the program's own calls through opaque calls only.
        let mut reached = HashSet::new();
        let mut fresh: Vec<i64> = opaque.iter().filter(|(_, o)| o.parent.is_none()).map(|(id, _)| *id).collect();
        let mut children = HashMap::<i64, Vec<i64>>::default();
        for (id, parent) in opaque.iter().filter_map(|(id, o)| o.parent.map(|p| (*id, p))) {
            children.entry(parent).or_default().push(id);
        }
        while let Some(id) = fresh.pop() {
            if reached.insert(id) {
                fresh.extend(children.remove(&id).unwrap_or_default());
            }
        }
        if reached.is_empty() && self.linked.is_empty() {
            return Ok(());
        }
        let mut places = Places::default();
        // Calls that copy and count: their halves that read do, too.
        let mut copies = HashMap::default();
        source.spans(&mut |span| {
            let called = places.of(span).call.map_or(span.layer, |(_, layer)| layer);
            let above = span.parent_id.filter(|parent| reached.contains(parent)).and_then(|parent| opaque.get(&parent));
            let half = span.half_of().and_then(|call| copies.get(&call)).copied();
            if let Some(above) = above.map(|o| o.called).or(half)
                && is_data(span)
                && asked(span).is_some()
            {
                self.ask(span, above);
                each(span);
                if COPIES.contains(&span.op) {
                    copies.insert(span.span_id, above);
                }
            }
            for kind in DIRECTIONS {
                if let Some(bytes) = self.linked.remove(&(span.span_id, kind)) {
                    self.moved.entry((kind, called, Layer::Block)).or_default().merge(bytes);
                }
            }
            Ok(())
        })
    }

    /// Gives the bytes of requests to the calls they are linked to: to the root, which stands for all inside it, unless
    /// that is a phase.
    fn links(&mut self, source: &mut dyn Source) -> Result<()> {
        if self.requests.is_empty() {
            return Ok(());
        }
        let mut requests = std::mem::take(&mut self.requests);
        source.links(&mut |link| {
            if let Some(request) = requests.get_mut(&link.req_id) {
                request.written |= link.how == WRITTEN;
            }
            Ok(())
        })?;
        source.links(&mut |link| {
            // The data of one write would count twice otherwise: for who wrote it, and for who flushed it.
            let counts = |r: &&Request| r.kind == Kind::Read || !r.written || link.how == WRITTEN;
            if let Some(request) = requests.get(&link.req_id).filter(counts) {
                let of = if self.phases.contains(&link.root_id) { link.span_id } else { link.root_id };
                let key = (of, request.kind);
                if self.linked.len() < REMEMBERED_MAX || self.linked.contains_key(&key) {
                    let bytes = Bytes { sum: Some(link.bytes), unknown_calls: 0 };
                    self.linked.entry(key).or_default().merge(bytes);
                } else {
                    self.overflow = true;
                }
            }
            Ok(())
        })
    }

    pub fn finish(self, coverage: &[LayerCoverage], quality: &Quality) -> Amplification {
        let [read, write] = DIRECTIONS.map(|kind| self.chain(kind, coverage, quality));
        Amplification { read, write }
    }

    fn chain(&self, kind: Kind, coverage: &[LayerCoverage], quality: &Quality) -> Chain {
        let mut top = Sum::default();
        for sum in LAYERS.iter().filter_map(|layer| self.asked.get(&(kind, *layer))) {
            top.calls += sum.calls;
            top.bytes.merge(sum.bytes);
        }
        let mut steps = Vec::new();
        for layer in LAYERS {
            let sum = self.layers.get(&(kind, layer));
            // Layers that could have been seen and were not are named: silence would read as no bytes.
            let probed = coverage.iter().find(|c| c.layer == layer.name() && c.probes > 0);
            let not_covered = probed.and_then(|c| c.not_covered.clone()).filter(|_| sum.is_none());
            if sum.is_none() && not_covered.is_none() {
                continue;
            }
            let sum = sum.cloned().unwrap_or_default();
            steps.push(Step {
                layer: layer.name(),
                calls: sum.calls,
                bytes: sum.bytes,
                to_asked: times(sum.bytes.sum, top.bytes.sum),
                classes: if layer == Layer::Block { self.classes(kind) } else { Vec::new() },
                complete: quality.complete(layer),
                not_covered,
            });
        }
        Chain {
            asked: top.bytes,
            asked_calls: top.calls,
            asked_complete: !self.overflow && quality.all(),
            by_called: LAYERS.into_iter().filter_map(|layer| self.called(kind, layer)).collect(),
            steps,
        }
    }

    fn called(&self, kind: Kind, root: Layer) -> Option<Called> {
        let moved = |layer: Layer| self.moved.get(&(kind, root, layer)).copied();
        let all: BTreeMap<_, _> = LAYERS
            .into_iter()
            .filter(|layer| *layer != Layer::Block)
            .filter_map(|layer| moved(layer).map(|bytes| (layer.name(), bytes)))
            .collect();
        let sum = self.asked.get(&(kind, root)).cloned().unwrap_or_default();
        let device = moved(Layer::Block).and_then(|bytes| bytes.sum);
        let any = sum.calls > 0 || !all.is_empty() || device.is_some();
        any.then(|| Called {
            layer: root.name(),
            asked: sum.bytes,
            asked_calls: sum.calls,
            syscall_to_asked: times(moved(Layer::Syscall).and_then(|bytes| bytes.sum), sum.bytes.sum),
            device_to_asked: times(device, sum.bytes.sum),
            moved: all,
            device: device.unwrap_or(0),
        })
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

fn times(n: Option<i64>, base: Option<i64>) -> Option<f64> {
    match (n, base) {
        (Some(n), Some(base)) if base > 0 => Some(n as f64 / base as f64),
        _ => None,
    }
}
