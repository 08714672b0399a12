//! Links the calls of one thread into trees: a completed call adopts those that ran inside it.

use super::rows::Span;
use crate::words::{Layer, flag};

/// Layers whose calls are I/O by themselves.
const IO_LIBRARIES: u16 =
    1 << Layer::Netcdf as u16 | 1 << Layer::Pnetcdf as u16 | 1 << Layer::Hdf5 as u16 | 1 << Layer::Mpiio as u16;

/// A completed call, and how many completed calls it holds.
#[derive(Debug)]
pub struct Node {
    pub span: Span,
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
    /// How long the calls right inside it took, where these are not told.
    pub inner: Option<i64>,
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
        let (mut at, mut covered) = (self.nodes.len(), 0_i64);
        while at > from {
            let child = &mut self.nodes[at - 1];
            covered = covered.saturating_add(child.span.dur_ns);
            child.span.parent_id = Some(node.span.span_id);
            if child.depth != node.depth.saturating_add(1) {
                child.span.flags |= flag::INFERRED_PARENT;
            }
            at -= child.size as usize;
        }
        node.size = (self.nodes.len() - from + 1) as u32;
        node.span.self_ns = (node.span.dur_ns - covered).max(0);
        let fits = covered <= node.span.dur_ns;
        self.nodes.push(node);
        fits
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
        // Per enclosing call: where its tree begins, and the layers down to it.
        let mut enclosing: Vec<(usize, u16)> = Vec::new();
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
            let layer = 1 << node.span.layer as u16;
            node.span.root_id = above.root.unwrap_or(tree.id);
            node.span.depth = (usize::from(above.depth) + enclosing.len()).min(i8::MAX as usize) as i8;
            node.span.layer_top = layers & layer == 0;
            node.inside = layers & IO_LIBRARIES != 0;
            if node.size > 1 {
                enclosing.push((from, layers | layer));
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
