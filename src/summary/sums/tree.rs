//! The call tree: calls merged by the operations that enclose them, whatever thread they ran on.

use std::collections::{BTreeMap, HashMap};

use crate::analysis::calls::{Figures, Sums};
use crate::analysis::nesting::{Enclosing, Nesting};
use crate::rows::{SEQ_BITS, Span};
use crate::summary::bins::Merge as _;
use crate::summary::sums::spread::Counts;
use crate::summary::view::{NodeId, Others};
use crate::vocabulary::{Kind, Layer};

/// Nodes at most; calls that would need more count as other.
const MAX_NODES: usize = 4096;
/// Files with sums of their own in a node, and slowest calls that it keeps.
const MAX_FILES: usize = 32;
const SLOWEST: usize = 20;
/// Enclosing calls that are waited for at most.
const MAX_AWAITED: usize = 4096;

/// One node.
#[derive(Debug, Clone)]
pub struct Node {
    pub parent: Option<NodeId>,
    /// `None`: stands for a call that has not returned yet.
    pub layer: Option<Layer>,
    pub op: &'static str,
    pub kind: Kind,
    pub children: Vec<NodeId>,
    pub sums: Sums,
    pub max_ns: i64,
    pub device_bytes: i64,
    pub latency: Counts,
    pub slowest: Vec<Span>,
    pub files: BTreeMap<i32, Sums>,
    pub other_files: Others,
}

/// The tree.
#[derive(Debug, Clone, Default)]
pub struct CallTree {
    nodes: HashMap<NodeId, Node>,
    roots: Vec<NodeId>,
    next: NodeId,
    /// With the node of each call.
    nesting: Nesting<Option<NodeId>>,
    /// Nodes that stand for calls that have not returned yet, by id.
    awaited: HashMap<i64, NodeId>,
    pub other: Others,
}

impl CallTree {
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    pub fn roots(&self) -> &[NodeId] {
        &self.roots
    }

    /// A call that is among the slowest of its node.
    pub fn slowest(&self, span: i64) -> Option<&Span> {
        self.nodes.values().flat_map(|n| &n.slowest).find(|s| s.span_id == span)
    }

    /// Forgets threads without a call since this was called last.
    pub fn forget_idle(&mut self) {
        self.nesting.forget_idle();
    }

    /// How many threads are remembered.
    #[cfg(test)]
    pub fn threads(&self) -> usize {
        self.nesting.threads()
    }

    /// Takes a call; parents come before children, except phases. `before`: the node of its parent, where that came before,
    /// which can be long ago for an operation. Returns its node, if there is room, and what is around it.
    pub fn add(&mut self, span: &Span, before: Option<NodeId>) -> (Option<NodeId>, Enclosing) {
        let before = before.filter(|node| self.nodes.contains_key(node));
        let above = self.nesting.above(span).or_else(|| before.map(Some));
        let parent = match (above, span.parent_id) {
            (Some(above), _) => above,
            (None, Some(parent)) => self.await_call(parent),
            (None, None) => None,
        };
        let room = above.is_none_or(|node| node.is_some());
        let node = if room { self.child(parent, Some(span.layer), span.op, span.kind) } else { None };
        self.count(node, span);
        if let (Some(awaited), Some(node)) = (self.awaited.remove(&span.span_id), node) {
            self.merge(awaited, node, span.span_id >> SEQ_BITS);
        }
        (node, self.nesting.enter(span, node))
    }

    fn count(&mut self, node: Option<NodeId>, span: &Span) {
        let sums = Figures::of_call(span).sums();
        let Some(node) = node.and_then(|id| self.nodes.get_mut(&id)) else {
            self.other.rows += 1;
            self.other.sums.merge(&sums);
            return;
        };
        node.sums.merge(&sums);
        node.max_ns = node.max_ns.max(span.net_ns());
        node.latency.value(span.net_ns());
        if let Some(file) = span.file_id {
            if let Some(known) = node.files.get_mut(&file) {
                known.merge(&sums);
            } else if node.files.len() < MAX_FILES {
                node.files.insert(file, sums);
            } else {
                node.other_files.rows += 1;
                node.other_files.sums.merge(&sums);
            }
        }
        slow(&mut node.slowest, span);
    }

    fn child(&mut self, parent: Option<NodeId>, layer: Option<Layer>, op: &'static str, kind: Kind) -> Option<NodeId> {
        let siblings = match parent {
            Some(parent) => self.nodes.get(&parent).map_or(&[][..], |p| &p.children),
            None => &self.roots,
        };
        let same = |id: &&NodeId| self.nodes.get(id).is_some_and(|n| n.layer == layer && n.op == op && layer.is_some());
        if let Some(known) = siblings.iter().find(same) {
            return Some(*known);
        }
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        let id = self.next;
        self.next += 1;
        let node = Node {
            parent,
            layer,
            op,
            kind,
            children: Vec::new(),
            sums: Sums::default(),
            max_ns: 0,
            device_bytes: 0,
            latency: Counts::default(),
            slowest: Vec::new(),
            files: BTreeMap::new(),
            other_files: Others::default(),
        };
        self.nodes.insert(id, node);
        match parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            Some(parent) => parent.children.push(id),
            None => self.roots.push(id),
        }
        Some(id)
    }

    /// The node that stands for a call that has not returned yet.
    fn await_call(&mut self, span: i64) -> Option<NodeId> {
        if let Some(known) = self.awaited.get(&span) {
            return Some(*known);
        }
        if self.awaited.len() >= MAX_AWAITED {
            return None;
        }
        let node = self.child(None, None, "", Kind::Other)?;
        self.awaited.insert(span, node);
        Some(node)
    }

    /// What was put to a stand-in goes to the node that it stood for.
    fn merge(&mut self, from: NodeId, to: NodeId, thread: i64) {
        let mut work = vec![(from, to)];
        let mut moved = HashMap::new();
        let siblings = match self.nodes.get(&from).and_then(|n| n.parent).and_then(|p| self.nodes.get_mut(&p)) {
            Some(parent) => &mut parent.children,
            None => &mut self.roots,
        };
        siblings.retain(|id| *id != from);
        while let Some((from, to)) = work.pop() {
            let Some(gone) = self.nodes.remove(&from) else { continue };
            moved.insert(from, to);
            for child in gone.children {
                match self.same_child(to, child) {
                    Some(same) => work.push((child, same)),
                    None => self.adopt(to, child),
                }
            }
            if let Some(node) = self.nodes.get_mut(&to)
                && gone.layer.is_some()
            {
                node.sums.merge(&gone.sums);
                node.max_ns = node.max_ns.max(gone.max_ns);
                node.device_bytes = node.device_bytes.saturating_add(gone.device_bytes);
                node.latency.merge(&gone.latency);
                gone.slowest.iter().for_each(|span| slow(&mut node.slowest, span));
                node.other_files.rows += gone.other_files.rows;
                node.other_files.sums.merge(&gone.other_files.sums);
                for (file, sums) in gone.files {
                    if node.files.contains_key(&file) || node.files.len() < MAX_FILES {
                        node.files.entry(file).or_default().merge(&sums);
                    } else {
                        node.other_files.rows += 1;
                        node.other_files.sums.merge(&sums);
                    }
                }
            }
        }
        for node in self.nesting.kept_mut(thread) {
            *node = node.map(|id| moved.get(&id).copied().unwrap_or(id));
        }
    }

    fn same_child(&self, parent: NodeId, of: NodeId) -> Option<NodeId> {
        let wanted = self.nodes.get(&of).filter(|n| n.layer.is_some())?;
        let children = self.nodes.get(&parent)?.children.iter().copied();
        children
            .filter(|c| *c != of)
            .find(|c| self.nodes.get(c).is_some_and(|n| (n.layer, n.op) == (wanted.layer, wanted.op)))
    }

    fn adopt(&mut self, parent: NodeId, child: NodeId) {
        if let Some(node) = self.nodes.get_mut(&child) {
            node.parent = Some(parent);
        }
        if let Some(node) = self.nodes.get_mut(&parent) {
            node.children.push(child);
        }
    }

    /// Bytes on a device that are known to be for a call of this node.
    pub fn device(&mut self, node: NodeId, bytes: i64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.device_bytes = node.device_bytes.saturating_add(bytes);
        }
    }
}

/// Keeps a call if it is among the slowest.
fn slow(slowest: &mut Vec<Span>, span: &Span) {
    if slowest.len() == SLOWEST && slowest.last().is_some_and(|last| last.net_ns() >= span.net_ns()) {
        return;
    }
    let at = slowest.partition_point(|s| s.net_ns() >= span.net_ns());
    slowest.insert(at, span.clone());
    slowest.truncate(SLOWEST);
}
