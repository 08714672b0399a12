//! The last calls and block requests, whole: for the tail of events, and for one call with all that it caused.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::rows::{Block, BlockLink, Span};
use crate::summary::dims::Dims;
use crate::summary::view::{Bar, BarOf, EventRow, Waterfall, Window};
use crate::vocabulary::Layer;

/// How many are kept.
const SPANS: usize = 65_536;
const REQUESTS: usize = 32_768;
/// Rows of the tail, bars of a waterfall.
const TAIL: usize = 2000;
const BARS: usize = 2000;

/// The last of each.
#[derive(Debug, Clone, Default)]
pub struct Recent {
    pub spans: VecDeque<Span>,
    blocks: VecDeque<Block>,
    links: VecDeque<BlockLink>,
    /// Calls that are not kept any more.
    pub gone: u64,
}

fn keep<T>(queue: &mut VecDeque<T>, max: usize, new: T) -> Option<T> {
    let old = if queue.len() >= max { queue.pop_front() } else { None };
    queue.push_back(new);
    old
}

impl Recent {
    pub fn span(&mut self, span: Span) -> Option<Span> {
        let old = keep(&mut self.spans, SPANS, span);
        self.gone += u64::from(old.is_some());
        old
    }

    pub fn block(&mut self, block: Block) {
        keep(&mut self.blocks, REQUESTS, block);
    }

    pub fn link(&mut self, link: BlockLink) {
        keep(&mut self.links, REQUESTS, link);
    }

    /// The last calls that began in the window, with the number of the first.
    pub fn tail(&self, window: Option<Window>, dims: &Dims) -> (Vec<EventRow>, u64) {
        let fits = |s: &Span| window.is_none_or(|w| (w.from_ns..w.to_ns).contains(&s.start_ns));
        let mut chosen: Vec<(usize, &Span)> =
            self.spans.iter().enumerate().rev().filter(|(_, s)| fits(s)).take(TAIL).collect();
        chosen.reverse();
        let first = self.gone + chosen.first().map_or(self.spans.len(), |(at, _)| *at) as u64;
        (chosen.into_iter().map(|(_, span)| event(span, dims)).collect(), first)
    }

    /// The last ones of the calls that are wanted.
    pub fn only(&self, wanted: impl Fn(&Span) -> bool, dims: &Dims) -> Vec<EventRow> {
        let chosen = self.spans.iter().rev().filter(|s| wanted(s)).take(TAIL);
        let mut rows: Vec<EventRow> = chosen.map(|s| event(s, dims)).collect();
        rows.reverse();
        rows
    }

    /// Requests that are linked to these calls.
    pub fn requests(&self, spans: &HashSet<i64>) -> (Vec<BlockLink>, Vec<Block>) {
        let links: Vec<BlockLink> = self.links.iter().filter(|l| spans.contains(&l.span_id)).cloned().collect();
        let ids: HashSet<i64> = links.iter().map(|l| l.req_id).collect();
        (links, self.blocks.iter().filter(|b| ids.contains(&b.req_id)).cloned().collect())
    }

    /// The tree of calls that a call is part of.
    pub fn waterfall(&self, span_id: i64, dims: &Dims) -> Option<Waterfall> {
        let root_id = self.spans.iter().rev().find(|s| s.span_id == span_id)?.root_id;
        let spans: BTreeMap<i64, &Span> =
            self.spans.iter().filter(|s| s.root_id == root_id).map(|s| (s.span_id, s)).collect();
        let links: Vec<&BlockLink> = self.links.iter().filter(|l| l.root_id == root_id).collect();
        let blocks: HashMap<i64, &Block> = self.blocks.iter().map(|b| (b.req_id, b)).collect();
        Some(waterfall((root_id, span_id), &spans, &links, &blocks, dims))
    }
}

/// A row of a call.
pub fn event(span: &Span, dims: &Dims) -> EventRow {
    EventRow {
        span_id: span.span_id,
        parent_id: span.parent_id,
        root_id: span.root_id,
        depth: span.depth,
        layer: span.layer,
        op: span.op,
        kind: span.kind,
        process_ix: span.process_ix,
        pid: span.pid,
        tid: span.tid,
        rank: span.rank,
        start_ns: span.start_ns,
        dur_ns: span.net_ns(),
        self_ns: span.self_ns,
        file_id: span.file_id,
        path: span.file_id.and_then(|id| dims.path(id)),
        offset: span.offset,
        bytes: span.bytes,
        req_bytes: span.req_bytes,
        miss_bytes: span.miss_bytes,
        ret: span.ret,
        errno: span.errno,
        flags: span.flags,
    }
}

/// Calls by number, which is the order in which they were entered, each followed by its requests.
pub fn waterfall(
    (root_id, span_id): (i64, i64),
    spans: &BTreeMap<i64, &Span>,
    links: &[&BlockLink],
    blocks: &HashMap<i64, &Block>,
    dims: &Dims,
) -> Waterfall {
    let mut requests: HashMap<i64, Vec<(&BlockLink, &Block)>> = HashMap::new();
    let mut missing = 0;
    for link in links {
        match blocks.get(&link.req_id) {
            Some(block) => requests.entry(link.span_id).or_default().push((link, block)),
            None => missing += 1,
        }
    }
    let mut depths: HashMap<i64, usize> = HashMap::new();
    let mut bars = Vec::new();
    for (id, span) in spans {
        let depth = span.parent_id.and_then(|p| depths.get(&p)).map_or(0, |d| d + 1);
        depths.insert(*id, depth);
        bars.push(Bar {
            depth,
            layer: span.layer,
            what: BarOf::Span { span_id: *id, op: span.op, kind: span.kind },
            start_ns: span.start_ns,
            dur_ns: span.dur_ns,
            self_ns: span.self_ns,
            bytes: span.bytes,
            offset: span.offset,
            path: span.file_id.and_then(|id| dims.path(id)),
            errno: span.errno,
        });
        let mut below = requests.remove(id).unwrap_or_default();
        below.sort_by_key(|(_, block)| block.queue_ns);
        bars.extend(below.into_iter().map(|(link, block)| request(depth + 1, link, block, dims)));
    }
    let end = |b: &Bar| b.start_ns.saturating_add(b.dur_ns);
    let from_ns = bars.iter().map(|b| b.start_ns).min().unwrap_or(0);
    let to_ns = bars.iter().map(end).max().unwrap_or(0);
    let more = missing + bars.len().saturating_sub(BARS) as u64;
    bars.truncate(BARS);
    Waterfall { root_id, span_id, from_ns, to_ns, bars, more }
}

fn request(depth: usize, link: &BlockLink, block: &Block, dims: &Dims) -> Bar {
    let device: Arc<str> = dims.device(block.dev);
    Bar {
        depth,
        layer: Layer::Block,
        what: BarOf::Request {
            req_id: block.req_id,
            op: block.op,
            class: block.class,
            device,
            issue_ns: block.issue_ns,
            how: link.how,
        },
        start_ns: block.queue_ns,
        dur_ns: block.issue_ns.saturating_add(block.dur_ns.unwrap_or(0)).saturating_sub(block.queue_ns),
        self_ns: block.dur_ns.unwrap_or(0),
        bytes: Some(link.bytes),
        offset: block.sector.checked_mul(512),
        path: None,
        errno: block.status.unwrap_or(0),
    }
}
