//! Bytes from the program's own calls down to the device: what each layer makes of what it was asked.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::{Bytes, Figures, Transfers, is_data, is_topmost, request_failed};
use crate::analysis::nesting::{Enclosing, Nesting};
use crate::analysis::trace::coverage::LayerCoverage;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::Source;
use crate::rows::{Block, FileRollup, Span};
use crate::vocabulary::{Kind, LAYERS, Layer, flag};

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
    /// that are no phases. Where the bytes of such a call are not known, those of the first calls below it that are known count.
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

/// One layer as a whole, with the calls of all callers. Block requests are those of the whole node, other programs' too: what
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

/// Requests, calls that they are linked to, phases and outermost calls that are remembered until it is known what
/// belongs to what: 2 Mi of each, some 300 MiB.
const REMEMBERED_MAX: usize = 2 << 20;

/// [`BlockLink::how`](crate::rows::BlockLink) where the call wrote the data into the page cache.
const WRITTEN: &str = "writeback";

/// A read or write request that moved something.
struct Request {
    kind: Kind,
    /// The calls that wrote its data are known.
    written: bool,
}

/// Sums up bytes per layer and direction, and what the program asked for at the top.
#[derive(Default)]
pub struct Chains {
    layers: HashMap<(Kind, Layer), Transfers>,
    classes: [BTreeMap<&'static str, (i64, i64)>; 2],
    asked: HashMap<(Kind, Layer), Transfers>,
    /// Bytes of a layer (second) inside the program's own calls of a layer (first).
    moved: HashMap<(Kind, Layer, Layer), Bytes>,
    /// Of device requests, while it is not known which call of the program its call is part of: by call.
    linked: HashMap<(i64, Kind), Bytes>,
    /// Roots that are phases.
    phases: HashSet<i64>,
    /// All others, with their layers.
    roots: Vec<(i64, Layer)>,
    requests: HashMap<i64, Request>,
    overflow: bool,
}

fn side(kind: Kind) -> usize {
    usize::from(kind == Kind::Write)
}

impl Chains {
    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        let Some((_, called)) = around.call else {
            if span.parent_id.is_none() && self.phases.len() < REMEMBERED_MAX {
                self.phases.insert(span.span_id);
            }
            return;
        };
        if span.parent_id.is_none() && self.roots.len() < REMEMBERED_MAX {
            self.roots.push((span.span_id, span.layer));
        }
        if let Some(called) = around.asks {
            self.ask(span, called);
        }
        if is_data(span.kind) && span.layer_top {
            let transfer = Transfers::of(span);
            self.layers.entry((span.kind, span.layer)).or_default().merge(&transfer);
            self.moved.entry((span.kind, called, span.layer)).or_default().merge(transfer.moved);
        }
    }

    fn ask(&mut self, span: &Span, called: Layer) {
        self.asked.entry((span.kind, called)).or_default().merge(&Transfers::asked_for(span));
    }

    /// Calls of a demoted function that were not recorded: whether the program made them itself or a library did is not
    /// known, so they count for the program, which makes most of them.
    pub fn sums(&mut self, row: &FileRollup) {
        if row.calls_error.is_none() || !is_data(row.kind) {
            return;
        }
        let transfers = Transfers::of_sum(row);
        self.asked.entry((row.kind, row.layer)).or_default().merge(&transfers);
        self.layers.entry((row.kind, row.layer)).or_default().merge(&transfers);
        self.moved.entry((row.kind, row.layer, row.layer)).or_default().merge(transfers.moved);
    }

    /// A device request that is over counts once, however many calls caused it and on however many stacked devices.
    pub fn block(&mut self, block: &Block) {
        let counts = |(kind, _): &(Kind, Figures)| is_data(*kind) && is_topmost(block);
        let Some((kind, figures)) = Figures::of_request(block).filter(counts) else { return };
        let transfer = figures.data();
        self.layers.entry((kind, Layer::Block)).or_default().merge(&transfer);
        let class = self.classes[side(kind)].entry(block.class).or_default();
        *class = (class.0 + 1, class.1.saturating_add(figures.bytes()));
        if self.requests.len() >= REMEMBERED_MAX {
            self.overflow = true;
        } else if !request_failed(block) {
            self.requests.insert(block.req_id, Request { kind, written: false });
        }
    }

    /// After all spans and requests: which calls the requests belong to, and what was asked for in operations that came
    /// after their parts. `each` gets every call that counts as asked by the program and was not known to do so before.
    /// Only calls for which `counts` holds do. All calls are read again where there are such operations, and where
    /// requests are linked to other calls than the outermost ones that are remembered: inside phases, for example.
    pub fn resolve(
        &mut self,
        source: &mut dyn Source,
        first: Nesting,
        counts: &dyn Fn(&Span) -> bool,
        each: &mut dyn FnMut(&Span),
    ) -> Result<()> {
        self.links(source)?;
        self.resolve_roots();
        self.overflow |= first.overflow();
        if !first.early && self.linked.is_empty() {
            return Ok(());
        }
        let (mut before, mut nesting) = (Nesting::default(), first.again());
        source.spans(&mut |span| {
            let (first, around) = (before.of(span), nesting.of(span));
            if !counts(span) {
                return Ok(());
            }
            if let (None, Some(called)) = (first.asks, around.asks)
                && span.flags & flag::SUMMED == 0
            {
                self.ask(span, called);
                each(span);
            }
            let called = around.call.map_or(span.layer, |(_, layer)| layer);
            for kind in DIRECTIONS {
                if let Some(bytes) = self.linked.remove(&(span.span_id, kind)) {
                    self.moved.entry((kind, called, Layer::Block)).or_default().merge(bytes);
                }
            }
            Ok(())
        })
    }

    /// Gives the bytes of requests to the layers of the outermost calls that they are linked to.
    fn resolve_roots(&mut self) {
        let mut roots = std::mem::take(&mut self.roots);
        roots.sort_unstable_by_key(|(id, _)| *id);
        let Self { linked, moved, .. } = self;
        linked.retain(|(id, kind), bytes| {
            let root = roots.binary_search_by_key(id, |(id, _)| *id).ok().and_then(|at| roots.get(at));
            if let Some((_, called)) = root {
                moved.entry((*kind, *called, Layer::Block)).or_default().merge(*bytes);
            }
            root.is_none()
        });
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
            // The data of one write would count twice otherwise: for the call that wrote it, and for the one that flushed it.
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
        let mut top = Transfers::default();
        for sum in LAYERS.iter().filter_map(|layer| self.asked.get(&(kind, *layer))) {
            top.merge(sum);
        }
        let mut steps = Vec::new();
        for layer in LAYERS {
            let sum = self.layers.get(&(kind, layer)).copied();
            // Layers that could have been seen and were not are named: silence would read as no bytes.
            let probed = coverage.iter().find(|c| c.layer == layer.name() && c.probes > 0);
            let not_covered = probed.and_then(|c| c.not_covered.clone()).filter(|_| sum.is_none());
            if sum.is_none() && not_covered.is_none() {
                continue;
            }
            let sum = sum.unwrap_or_default();
            steps.push(Step {
                layer: layer.name(),
                calls: sum.calls,
                bytes: sum.moved,
                to_asked: times(sum.moved.sum, top.asked.sum),
                classes: if layer == Layer::Block { self.classes(kind) } else { Vec::new() },
                complete: quality.complete(layer),
                not_covered,
            });
        }
        Chain {
            asked: top.asked,
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
        let sum = self.asked.get(&(kind, root)).copied().unwrap_or_default();
        let device = moved(Layer::Block).and_then(|bytes| bytes.sum);
        let any = sum.calls > 0 || !all.is_empty() || device.is_some();
        any.then(|| Called {
            layer: root.name(),
            asked: sum.asked,
            asked_calls: sum.calls,
            syscall_to_asked: times(moved(Layer::Syscall).and_then(|bytes| bytes.sum), sum.asked.sum),
            device_to_asked: times(device, sum.asked.sum),
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
