//! The call tree, one call, distributions, the last calls.

use std::sync::Arc;

use crate::analysis::calls::Sums;
use crate::summary::screens::distribution::{Measure, Percentiles};
use crate::summary::screens::processes::{OpRow, Others};
use crate::vocabulary::{Kind, Layer};

/// A node of the call tree: the same in all snapshots of one source.
pub type NodeId = u32;

/// Screen 4: calls merged by the operations that enclose them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tree {
    /// Parents before children; siblings by inclusive time.
    pub nodes: Vec<TreeNode>,
    /// Calls that found no room in the tree.
    pub other: Option<Others>,
}

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeNode {
    pub id: NodeId,
    pub parent: Option<NodeId>,
    pub depth: usize,
    /// `None`: an enclosing call that has not returned yet.
    pub layer: Option<Layer>,
    pub op: &'static str,
    pub kind: Kind,
    /// Of all calls, not only of the outermost ones of their layer.
    pub sums: Sums,
    pub max_ns: i64,
    /// Bytes on devices that are linked to these calls.
    pub device_bytes: i64,
}

/// The selected node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeDetail {
    pub id: NodeId,
    pub latency: Option<Percentiles>,
    /// The slowest first.
    pub slowest: Vec<EventRow>,
    /// By file, the most time first.
    pub files: Vec<(Arc<str>, Sums)>,
    pub other_files: Option<Others>,
}

/// One call with all that it caused.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Waterfall {
    pub root_id: i64,
    /// The span asked for.
    pub span_id: i64,
    pub from_ns: i64,
    pub to_ns: i64,
    /// Parents before children, siblings by start.
    pub bars: Vec<Bar>,
    /// Spans and requests that were left out.
    pub more: u64,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub depth: usize,
    pub layer: Layer,
    pub what: BarOf,
    pub start_ns: i64,
    pub dur_ns: i64,
    pub self_ns: i64,
    pub bytes: Option<i64>,
    pub offset: Option<i64>,
    pub path: Option<Arc<str>>,
    pub errno: i16,
}

/// What a bar is.
#[derive(Debug, Clone, PartialEq)]
pub enum BarOf {
    Span {
        span_id: i64,
        op: &'static str,
        kind: Kind,
    },
    /// A block request: `start_ns` is when it was queued, `issue_ns` when the driver got it.
    Request {
        req_id: i64,
        op: &'static str,
        class: &'static str,
        device: Arc<str>,
        issue_ns: i64,
        how: &'static str,
    },
}

/// Screen 5.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Latency {
    pub measure: Measure,
    pub layer: Option<Layer>,
    pub op: Option<&'static str>,
    /// Of the columns.
    pub from_ns: i64,
    pub width_ns: i64,
    /// Rows of the heat map from the lowest value up: the least value of each.
    pub rows: Vec<u64>,
    /// For each column the counts of each row.
    pub columns: Vec<Vec<u32>>,
    /// Least value, greatest value, count.
    pub histogram: Vec<(u64, u64, u64)>,
    pub total: u64,
    pub percentiles: Option<Percentiles>,
    /// What can be asked for, the most time first.
    pub ops: Vec<OpRow>,
}

/// Screen 7: the last calls, in the order in which they became known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Events {
    pub rows: Vec<EventRow>,
    /// Calls before the first row that are not kept.
    pub before: u64,
    /// What each row is the `n`-th of: the number of the first row.
    pub first: u64,
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    pub span_id: i64,
    pub parent_id: Option<i64>,
    pub root_id: i64,
    pub depth: i8,
    pub layer: Layer,
    pub op: &'static str,
    pub kind: Kind,
    pub process_ix: i32,
    pub pid: i32,
    pub tid: i32,
    pub rank: Option<i32>,
    pub start_ns: i64,
    pub dur_ns: i64,
    pub self_ns: i64,
    pub file_id: Option<i32>,
    pub path: Option<Arc<str>>,
    pub offset: Option<i64>,
    pub bytes: Option<i64>,
    pub req_bytes: Option<i64>,
    pub miss_bytes: Option<i64>,
    pub ret: Option<i64>,
    pub errno: i16,
    pub flags: i32,
}
