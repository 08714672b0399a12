//! A program as data: the calls of each rank in their order, with loops.

use std::collections::{BTreeMap, BTreeSet};

use crate::vocabulary::Layer;

/// Think time before a call: calls that became one in a loop have their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Think {
    pub sum_ns: i64,
    pub calls: i64,
}

impl Think {
    pub const fn of(ns: i64) -> Self {
        Self { sum_ns: ns, calls: 1 }
    }

    pub const fn add(&mut self, other: Self) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.calls = self.calls.saturating_add(other.calls);
    }

    pub fn mean_ns(self) -> i64 {
        self.sum_ns.checked_div(self.calls).unwrap_or(0)
    }
}

/// A call: the number of its row and name, and its arguments as numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub function: usize,
    pub args: Vec<i64>,
    pub think: Think,
}

/// A body that is repeated; with each repetition its arguments grow by `steps`, in the order of [`arguments`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    pub count: i64,
    pub body: Vec<Node>,
    pub steps: Vec<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Call(Call),
    Loop(Loop),
}

/// The arguments of all calls in these nodes, of loops those of the first repetition.
pub fn arguments(nodes: &[Node]) -> Vec<i64> {
    let mut all = Vec::new();
    collect(nodes, &mut all);
    all
}

fn collect(nodes: &[Node], all: &mut Vec<i64>) {
    for node in nodes {
        match node {
            Node::Call(call) => all.extend(&call.args),
            Node::Loop(inner) => collect(&inner.body, all),
        }
    }
}

/// Adds the think times of a sequence of the same shape.
pub fn join_think(to: &mut [Node], from: &[Node]) {
    for (to, from) in to.iter_mut().zip(from) {
        match (to, from) {
            (Node::Call(to), Node::Call(from)) => to.think.add(from.think),
            (Node::Loop(to), Node::Loop(from)) => join_think(&mut to.body, &from.body),
            _ => {}
        }
    }
}

/// Whether two sequences differ in nothing but the arguments of their calls (and their think time).
pub fn same_shape(a: &[Node], b: &[Node]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|pair| match pair {
            (Node::Call(a), Node::Call(b)) => a.function == b.function && a.args.len() == b.args.len(),
            (Node::Loop(a), Node::Loop(b)) => a.count == b.count && a.steps == b.steps && same_shape(&a.body, &b.body),
            _ => false,
        })
}

/// A file of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// In the trace.
    pub path: String,
    /// Below the directory of the generated program.
    pub name: String,
    /// Bytes that it had when the program came to it; none where the program made it.
    pub found: Option<i64>,
}

/// A dataset, variable, attribute or group of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Object {
    /// Number of the file.
    pub file: i64,
    /// Path inside the file; of an attribute that of what it is of.
    pub path: String,
    /// Of an attribute.
    pub attribute: Option<String>,
    pub is_group: bool,
    pub dims: Vec<i64>,
    /// Empty: contiguous.
    pub chunk: Vec<i64>,
    /// Bytes of an element.
    pub size: i64,
    pub filters: String,
}

impl Object {
    pub fn has_shuffle(&self) -> bool {
        self.filters.contains("shuffle")
    }

    pub fn has_checksum(&self) -> bool {
        self.filters.contains("fletcher32")
    }

    /// The level of compression, of those that there are.
    pub fn deflate(&self) -> Option<i64> {
        let (_, level) = self.filters.split_once("deflate(")?;
        level.split_once(')')?.0.parse().ok().filter(|level| (0..=9).contains(level))
    }
}

/// Communicators before this number are all ranks (0) and the process alone (1).
pub const FIRST_COMMUNICATOR: i64 = 2;

/// Page size, to which a buffer for `O_DIRECT` is aligned.
const PAGE: i64 = 4096;

/// All of it.
#[derive(Debug, Clone)]
pub struct Program {
    pub layer: Layer,
    /// The calls of each rank.
    pub ranks: Vec<Vec<Node>>,
    pub files: Vec<File>,
    /// Names of functions that rows have several of.
    pub ops: Vec<String>,
    pub objects: Vec<Object>,
    /// Numbers of those that have text.
    pub text: BTreeSet<i64>,
    /// Sets of hints; calls count them from 1.
    pub hints: Vec<Vec<(String, String)>>,
    /// Ranks of the others: ranges of first, last and distance.
    pub communicators: Vec<Vec<[i64; 3]>>,
    /// What is otherwise than in the trace, by the name of a macro.
    pub switches: BTreeMap<&'static str, i64>,
    /// Greatest number of handles and of requests that a rank has at one time.
    pub handles: i64,
    pub requests: i64,
    /// Bytes of the largest transfer.
    pub buffer: i64,
    /// Calls that are replayed, by name, and those that are not.
    pub calls: BTreeMap<String, i64>,
    pub left_out: BTreeMap<String, i64>,
    /// What differs from the trace, in words.
    pub notes: BTreeSet<String>,
}

impl Program {
    /// Bytes of the buffer that all data is in.
    pub fn buffer_bytes(&self) -> i64 {
        self.buffer.max(1).saturating_add(PAGE - 1) / PAGE * PAGE
    }
}
