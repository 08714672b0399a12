//! The slowest calls, each as a tree from the program's call down to its block requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::request_failed;
use crate::analysis::nesting::Enclosing;
use crate::analysis::trace::source::Source;
use crate::rows::{Block, BlockLink, SEQ_BITS, Span};
use crate::vocabulary::flag;

/// Calls in the report, and how many of them may be of one function.
const TOP: usize = 10;
const TOP_OF_OP: usize = 5;
/// Spans kept of one tree, and block requests of all trees.
const SPANS_MAX: usize = 50_000;
const LINKS_MAX: usize = 100_000;
/// Runs of this many equal siblings and fewer are listed one by one.
const RUN_MAX: usize = 4;
/// A call with more entries below it than this has equal ones folded even when others lie between them.
const CHILDREN_MAX: usize = 12;
/// Nesting that is followed; the kernel side tracks less.
const DEPTH_MAX: usize = 127;

/// One slow call of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallTree {
    /// Of several nodes: the one it was made on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The call's own id.
    pub root_id: i64,
    pub start_ns: i64,
    pub pid: i32,
    pub tid: i32,
    pub rank: Option<i32>,
    /// Calls in the tree, and those that are not shown because the tree is too large.
    pub calls: usize,
    pub not_shown: usize,
    pub complete: bool,
    pub tree: Node,
}

/// A call, or a run of equal calls folded into one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    pub layer: &'static str,
    pub op: &'static str,
    pub count: i64,
    /// Sums over the run, without what hooks took.
    pub dur_ns: i64,
    pub self_ns: i64,
    pub max_ns: i64,
    /// `None` where no call of the run knows its bytes.
    pub bytes: Option<i64>,
    pub errors: i64,
    /// The rest is of a single call, or equal in all calls of a run.
    pub errno: i16,
    pub file_id: Option<i32>,
    pub path: Option<String>,
    pub object_id: Option<i32>,
    pub object: Option<String>,
    pub offset: Option<i64>,
    pub unfinished: bool,
    pub asynchronous: bool,
    pub inferred_parent: bool,
    pub blocks: Vec<BlockNode>,
    pub children: Vec<Node>,
}

/// A block request of a call, or several of one operation, class and certainty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockNode {
    pub op: &'static str,
    pub class: &'static str,
    /// How it is known that the request belongs to the call.
    pub how: &'static str,
    pub count: i64,
    /// The call's part of the requests.
    pub bytes: i64,
    /// From queue to issue, and from issue to completion; sums.
    pub queue_ns: i64,
    pub device_ns: i64,
    pub max_device_ns: i64,
    pub errors: i64,
}

/// A call of the program, to be found again with all inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slow {
    net_ns: i64,
    id: i64,
    root_id: i64,
    end_ns: i64,
}

impl Slow {
    /// Is the span inside the call, or the call itself?
    fn holds(&self, span: &Span) -> bool {
        span.root_id == self.root_id
            && span.span_id >> SEQ_BITS == self.id >> SEQ_BITS
            && span.span_id >= self.id
            && span.end_ns() <= self.end_ns
    }
}

/// Finds the slowest calls of the program; memory grows with the number of functions.
#[derive(Default)]
pub struct Slowest {
    by_op: HashMap<&'static str, BinaryHeap<Reverse<Slow>>>,
}

impl Slowest {
    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        // Submitted operations have no waiting thread: the call that waits has a row of its own.
        if !around.is_own(span) || span.flags & flag::ASYNC != 0 {
            return;
        }
        let heap = self.by_op.entry(span.op).or_default();
        let Span { span_id: id, root_id, .. } = *span;
        let slow = Slow { net_ns: span.net_ns(), id, root_id, end_ns: span.end_ns() };
        if heap.len() < TOP_OF_OP {
            heap.push(Reverse(slow));
        } else if let Some(mut least) = heap.peek_mut()
            && slow > least.0
        {
            *least = Reverse(slow);
        }
    }

    /// The slowest first.
    pub fn calls(self) -> Vec<Slow> {
        let mut all: Vec<_> = self.by_op.into_values().flatten().map(|Reverse(call)| call).collect();
        all.sort_by_key(|call| (Reverse(call.net_ns), call.id));
        all.truncate(TOP);
        all
    }
}

/// Block requests of a span.
type Blocks = HashMap<i64, Vec<BlockNode>>;

/// Everything inside the chosen calls, read back from the source; by call.
#[derive(Default)]
pub struct Trees {
    order: Vec<i64>,
    spans: HashMap<i64, Vec<Span>>,
    left_out: HashMap<i64, usize>,
    links: HashMap<i64, Vec<BlockLink>>,
    links_left_out: HashMap<i64, usize>,
    blocks: Blocks,
}

impl Trees {
    /// Reads the spans and links of these calls. Block requests follow through [`Trees::block`].
    pub fn read(source: &mut dyn Source, calls: &[Slow]) -> Result<Self> {
        let mut trees = Self { order: calls.iter().map(|call| call.id).collect(), ..Self::default() };
        if calls.is_empty() {
            return Ok(trees);
        }
        let roots = calls.iter().map(|call| call.root_id).collect();
        let mut inside = HashMap::<i64, i64>::default();
        source.spans_of_roots(&roots, &mut |span| {
            let Some(call) = calls.iter().find(|call| call.holds(span)) else { return Ok(()) };
            let kept = trees.spans.entry(call.id).or_default();
            // The call itself is always kept.
            if kept.len() < SPANS_MAX || span.span_id == call.id {
                kept.push(span.clone());
                inside.insert(span.span_id, call.id);
            } else {
                *trees.left_out.entry(call.id).or_default() += 1;
            }
            Ok(())
        })?;
        let mut kept = 0;
        source.links(&mut |link| {
            // Of a call that has no span the root is known.
            if let Some(call) = inside.get(&link.span_id).or_else(|| inside.get(&link.root_id)) {
                if kept < LINKS_MAX {
                    trees.links.entry(link.req_id).or_default().push(link.clone());
                    kept += 1;
                } else {
                    *trees.links_left_out.entry(*call).or_default() += 1;
                }
            }
            Ok(())
        })?;
        Ok(trees)
    }

    /// Takes a request if it belongs to one of the trees.
    pub fn block(&mut self, block: &Block) {
        for link in self.links.remove(&block.req_id).unwrap_or_default() {
            self.blocks.entry(link.span_id).or_default().push(BlockNode {
                op: block.op,
                class: block.class,
                how: link.how,
                count: 1,
                bytes: link.bytes,
                queue_ns: block.issue_ns.saturating_sub(block.queue_ns),
                device_ns: block.dur_ns.unwrap_or(0),
                max_device_ns: block.dur_ns.unwrap_or(0),
                errors: i64::from(request_failed(block)),
            });
        }
    }

    /// The trees, the slowest first; paths and objects are filled in later.
    pub fn finish(mut self, complete: bool) -> Vec<CallTree> {
        let mut trees = Vec::new();
        for root in std::mem::take(&mut self.order) {
            let mut spans = self.spans.remove(&root).unwrap_or_default();
            spans.sort_by_key(|s| (s.start_ns, s.span_id));
            let calls = spans.len() + self.left_out.get(&root).copied().unwrap_or(0);
            let mut below = HashMap::<i64, Vec<Span>>::default();
            let mut top = None;
            for span in spans {
                match span.parent_id {
                    _ if span.span_id == root => top = Some(span),
                    None => {}
                    Some(parent) => below.entry(parent).or_default().push(span),
                }
            }
            let Some(top) = top else { continue };
            let (start_ns, pid, tid, rank) = (top.start_ns, top.pid, top.tid, top.rank);
            let mut shown = 0;
            let tree = node(&[top], &mut below, &mut self.blocks, 0, &mut shown);
            let not_shown = calls - shown + self.links_left_out.get(&root).copied().unwrap_or(0);
            trees.push(CallTree {
                host: None,
                root_id: root,
                start_ns,
                pid,
                tid,
                rank,
                calls,
                not_shown,
                complete,
                tree,
            });
        }
        trees
    }
}

/// One node for a run of calls of one function.
fn node(
    run: &[Span],
    below: &mut HashMap<i64, Vec<Span>>,
    blocks: &mut Blocks,
    depth: usize,
    shown: &mut usize,
) -> Node {
    *shown += run.len();
    let (mut inner, mut requests) = (Vec::new(), Vec::new());
    for span in run {
        if depth < DEPTH_MAX {
            inner.extend(below.remove(&span.span_id).unwrap_or_default());
        }
        requests.extend(blocks.remove(&span.span_id).unwrap_or_default());
    }
    let children = runs(inner).into_iter().map(|run| node(&run, below, blocks, depth + 1, shown)).collect();
    let sum = |of: fn(&Span) -> i64| run.iter().fold(0i64, |sum, span| sum.saturating_add(of(span)));
    let known = run.iter().any(|span| span.bytes.is_some());
    let any = |bit: i32| run.iter().any(|span| span.flags & bit != 0);
    Node {
        layer: run[0].layer.name(),
        op: run[0].op,
        count: run.len() as i64,
        dur_ns: sum(Span::net_ns),
        self_ns: sum(|s| s.self_ns),
        max_ns: run.iter().map(Span::net_ns).max().unwrap_or(0),
        bytes: known.then(|| sum(|s| s.bytes.unwrap_or(0))),
        errors: sum(|s| i64::from(s.errno != 0)),
        errno: same(run, |s| Some(s.errno)).unwrap_or(0),
        file_id: same(run, |s| s.file_id),
        path: None,
        object_id: same(run, |s| s.object_id),
        object: None,
        offset: if run.len() == 1 { run[0].offset } else { None },
        unfinished: any(flag::UNFINISHED),
        asynchronous: any(flag::ASYNC),
        inferred_parent: any(flag::INFERRED_PARENT),
        blocks: fold_blocks(requests),
        children,
    }
}

/// The value that all spans of a run share.
fn same<T: PartialEq>(run: &[Span], of: impl Fn(&Span) -> Option<T>) -> Option<T> {
    let first = of(run.first()?)?;
    run.iter().all(|span| of(span).as_ref() == Some(&first)).then_some(first)
}

/// Siblings in order of time, cut into what becomes one node each.
fn runs(siblings: Vec<Span>) -> Vec<Vec<Span>> {
    let alike = |a: &Span, b: &Span| (a.layer, a.op) == (b.layer, b.op);
    let mut runs: Vec<Vec<Span>> = Vec::new();
    for span in siblings {
        match runs.last_mut() {
            Some(run) if alike(&run[0], &span) => run.push(span),
            _ => runs.push(vec![span]),
        }
    }
    let lines: usize = runs.iter().map(|run| if run.len() > RUN_MAX { 1 } else { run.len() }).sum();
    if lines > CHILDREN_MAX {
        let mut groups: Vec<Vec<Span>> = Vec::new();
        for run in runs {
            match groups.iter_mut().find(|group| alike(&group[0], &run[0])) {
                Some(group) => group.extend(run),
                None => groups.push(run),
            }
        }
        runs = groups;
    }
    let cut = |run: Vec<Span>| {
        if run.len() > RUN_MAX { vec![run] } else { run.into_iter().map(|span| vec![span]).collect() }
    };
    runs.into_iter().flat_map(cut).collect()
}

/// Requests of equal operation, class and certainty as one line, when there are many.
fn fold_blocks(requests: Vec<BlockNode>) -> Vec<BlockNode> {
    if requests.len() <= RUN_MAX {
        return requests;
    }
    let mut folded: Vec<BlockNode> = Vec::new();
    for request in requests {
        let alike = |b: &&mut BlockNode| (b.op, b.class, b.how) == (request.op, request.class, request.how);
        match folded.iter_mut().find(alike) {
            Some(to) => {
                to.count += request.count;
                to.bytes = to.bytes.saturating_add(request.bytes);
                to.queue_ns = to.queue_ns.saturating_add(request.queue_ns);
                to.device_ns = to.device_ns.saturating_add(request.device_ns);
                to.max_device_ns = to.max_device_ns.max(request.max_device_ns);
                to.errors += request.errors;
            }
            None => folded.push(request),
        }
    }
    folded
}
