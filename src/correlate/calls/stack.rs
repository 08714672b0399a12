//! Links the calls of one thread into trees: a completed call adopts those that ran inside it.

use crate::rows::Span;
use crate::vocabulary::{LAYERS, flag};

/// Layers whose calls are I/O by themselves, a bit each.
const IO_LIBRARIES: u16 = {
    let (mut layers, mut i) = (0, 0);
    while i < LAYERS.len() {
        layers |= (LAYERS[i].is_io_library() as u16) << i;
        i += 1;
    }
    layers
};

/// A completed call, and how many completed calls it holds.
#[derive(Debug)]
pub struct Node {
    pub span: Box<Span>,
    pub seq: u32,
    /// Row of the catalog.
    pub spec: u16,
    /// Enclosing calls the kernel side counted at entry.
    pub depth: u8,
    /// Calls of the tree below this one, itself included.
    pub size: u32,
    /// Made a handle.
    pub opened: bool,
    /// Runs in a call of an I/O library; known when it is taken out.
    pub inside: bool,
    /// How long its direct children took, where these are not recorded.
    pub inner: Option<i64>,
    /// Aggregate mode: it is wanted by itself.
    pub wanted: bool,
    /// Aggregate mode: it is wanted with all that ran inside it.
    pub whole: bool,
}

impl Node {
    /// A call with its number, row of the catalog and depth, of which no more is known.
    pub const fn new(span: Box<Span>, (seq, spec, depth): (u32, u16, u8)) -> Self {
        Self { span, seq, spec, depth, size: 1, opened: false, inside: false, inner: None, wanted: false, whole: false }
    }

    /// It ran inside this call.
    fn below(&mut self, parent: &Span, depth: u8) {
        self.span.parent_id = Some(parent.span_id);
        self.span.flags &= !flag::INFERRED_PARENT;
        if self.depth != depth.saturating_add(1) {
            self.span.flags |= flag::INFERRED_PARENT;
        }
    }
}

/// The calls that are known to enclose whatever completes now: the open phases of the thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Above {
    /// Span ids of the innermost and the outermost one.
    pub parent: Option<i64>,
    pub root: Option<i64>,
    pub depth: u8,
    /// Their layers, a bit each.
    pub layers: u16,
}

/// The completed calls of a thread that wait for the end of one that encloses them.
///
/// Trees stand one behind the other, each with its root last: the tree of the node at `i` is
/// `[i + 1 - size ..= i]`. So adopting is counting, and no node is moved or allocated.
#[derive(Default)]
pub struct Stack {
    nodes: Vec<Node>,
}

impl Stack {
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Where the calls begin that ran inside a call with this number and start: they came after it and are here already.
    pub fn inside(&self, seq: u32, start_ns: i64) -> usize {
        let mut from = self.nodes.len();
        while let Some(root) = from.checked_sub(1).map(|i| &self.nodes[i]) {
            if root.seq <= seq || root.span.start_ns < start_ns {
                break;
            }
            from -= root.size as usize;
        }
        from
    }

    pub fn below(&self, from: usize) -> &[Node] {
        &self.nodes[from..]
    }

    /// Adds a completed call above the trees that begin at `from`. False when these take longer than it does.
    pub fn push(&mut self, mut node: Node, from: usize) -> bool {
        let (mut at, mut covered, mut spent) = (self.nodes.len(), 0_i64, 0_i64);
        while at > from {
            let child = &mut self.nodes[at - 1];
            covered = covered.saturating_add(child.span.dur_ns);
            spent = spent.saturating_add(child.span.net_ns());
            node.span.add_sleep(&child.span);
            child.below(&node.span, node.depth);
            at -= child.size as usize;
        }
        node.size = (self.nodes.len() - from + 1) as u32;
        node.span.self_ns = (node.span.net_ns() - spent).max(0);
        let fits = covered <= node.span.dur_ns;
        self.nodes.push(node);
        fits
    }

    /// Adds a call that arrives a while after it ended: it may have run inside calls that are here already, and between those
    /// inside them.
    pub fn insert(&mut self, mut node: Node) {
        let (begins, ends) = (node.span.start_ns, node.span.start_ns.saturating_add(node.span.dur_ns));
        // Before what it stands, and where what ran inside it ends.
        let (mut at, mut adopted) = (self.nodes.len(), self.nodes.len());
        let mut around: Vec<usize> = Vec::new();
        let mut first = 0;
        while at > first {
            let last = &self.nodes[at - 1];
            let before = at - last.size as usize;
            if last.seq > node.seq {
                at = before;
                if last.span.start_ns < begins || last.span.start_ns > ends {
                    adopted = at;
                }
            } else if last.span.start_ns.saturating_add(last.span.dur_ns) >= ends {
                around.push(at - 1);
                (first, at) = (before, at - 1);
                adopted = at;
            } else {
                break;
            }
        }
        let adopted = adopted.max(at);
        let (mut child, mut spent) = (adopted, 0_i64);
        while child > at {
            let inside = &mut self.nodes[child - 1];
            spent = spent.saturating_add(inside.span.net_ns());
            node.span.add_sleep(&inside.span);
            inside.below(&node.span, node.depth);
            child -= inside.size as usize;
        }
        if let Some(parent) = around.last().map(|at| &mut self.nodes[*at]) {
            node.below(&parent.span, parent.depth);
            // What ran inside the new one was in it already.
            if adopted == at {
                parent.span.add_sleep(&node.span);
            }
            parent.span.self_ns = (parent.span.self_ns - node.span.net_ns() + spent).max(0);
        }
        for at in around {
            self.nodes[at].size += 1;
        }
        node.size = (adopted - at + 1) as u32;
        node.span.self_ns = (node.span.net_ns() - spent).max(0);
        self.nodes.insert(adopted, node);
    }

    /// Takes the trees before `from` out: nothing can adopt them any more.
    pub fn take_before(&mut self, from: usize, above: Above, each: &mut impl FnMut(Node, Tree)) {
        if from > 0 {
            let rest = self.nodes.split_off(from);
            self.take(above, each);
            self.nodes = rest;
        }
    }

    /// Takes every tree out, parents before children, with parent, depth, root and `layer_top` filled in.
    pub fn take(&mut self, above: Above, each: &mut impl FnMut(Node, Tree)) {
        // Per enclosing call: where its tree begins, the layers down to it, and whether all in it is wanted.
        let mut enclosing: Vec<(usize, u16, bool)> = Vec::new();
        let mut tree = Tree::default();
        while let Some(mut node) = self.nodes.pop() {
            let at = self.nodes.len();
            while enclosing.pop_if(|e| e.0 > at).is_some() {}
            let from = at + 1 - node.size as usize;
            if enclosing.is_empty() {
                let inside = self.nodes[from..].iter().map(|n| n.seq).max();
                tree = Tree { root: node.seq, last: inside.unwrap_or(node.seq), id: node.span.span_id };
                node.span.parent_id = above.parent;
                if node.depth != above.depth {
                    node.span.flags |= flag::INFERRED_PARENT;
                }
            }
            let layers = enclosing.last().map_or(above.layers, |e| e.1);
            let whole = node.whole || enclosing.last().is_some_and(|e| e.2);
            node.wanted |= whole;
            let layer = 1 << node.span.layer as u16;
            node.span.root_id = above.root.unwrap_or(tree.id);
            node.span.depth = (usize::from(above.depth) + enclosing.len()).min(i8::MAX as usize) as i8;
            node.span.layer_top = layers & layer == 0;
            node.inside = layers & IO_LIBRARIES != 0;
            if node.size > 1 {
                enclosing.push((from, layers | layer, whole));
            }
            each(node, tree);
        }
    }
}

/// The tree a node belongs to, below what is above all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tree {
    /// Number of its root call.
    pub root: u32,
    /// Highest number in it.
    pub last: u32,
    /// Span id of its root.
    pub id: i64,
}
