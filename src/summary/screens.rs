//! The data of each screen, part of [`crate::summary::view`].

use std::sync::Arc;

pub use crate::analysis::calls::Sums;
use crate::rows::PARTS;
use crate::vocabulary::{Kind, Layer};

/// From, and up to but not including.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    pub from_ns: i64,
    pub to_ns: i64,
}

/// What a distribution is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Durations in nanoseconds.
    #[default]
    Latency,
    /// Bytes moved by a call.
    Size,
}

/// Percentiles of a distribution, each within an eighth of the exact value; `max` is exact where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Percentiles {
    pub p50: i64,
    pub p90: i64,
    pub p95: i64,
    pub p99: i64,
    pub max: i64,
}

/// Samples at equal distances over all that is kept, for sparklines and for scrubbing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// Start of the first sample.
    pub from_ns: i64,
    /// Length of a sample.
    pub width_ns: i64,
    /// Layers that had calls, top to bottom, each with as many samples as the others.
    pub layers: Vec<(Layer, Vec<Sums>)>,
    /// All devices together.
    pub device: Vec<DeviceSample>,
    /// Events lost in each sample.
    pub lost: Vec<i64>,
}

/// What devices did in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceSample {
    pub requests: i64,
    pub bytes_read: i64,
    pub bytes_written: i64,
    /// Sum over requests of the time from issue to completion.
    pub dur_ns: i64,
    /// The same from queue to issue.
    pub queue_ns: i64,
}

/// Screen 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overview {
    /// Every layer that is traced, top to bottom.
    pub layers: Vec<LayerRow>,
    /// Bytes from the calls that the program made itself down to the device.
    pub chain: Vec<ChainStep>,
    /// Over ranks, or over processes where there are no ranks; `None` with fewer than two.
    pub imbalance: Option<Imbalance>,
    /// Calls asked the page cache for these bytes, and these were not there.
    pub cache_bytes: i64,
    pub cache_miss_bytes: i64,
    /// What outermost system calls spent their time on, in ns: [`PARTS`].
    pub parts: [i64; PARTS.len()],
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LayerRow {
    pub layer: Option<Layer>,
    /// Over the window.
    pub sums: Sums,
    /// Over the last second that is complete (live), or over the window (replay).
    pub calls_per_s: f64,
    pub read_per_s: f64,
    pub written_per_s: f64,
    /// Part of the exclusive time of all layers, 0 to 1.
    pub self_share: f64,
    pub latency: Option<Percentiles>,
    /// No probe of this layer is attached: no figures, which means nothing about the program.
    pub covered: bool,
    /// Why not, where that is known.
    pub why_not: Option<String>,
    pub lost: u64,
}

/// One step of the amplification chain.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChainStep {
    /// `None`: what the program asked for with the calls that it made itself, whatever their layer.
    pub layer: Option<Layer>,
    pub bytes_read: i64,
    pub bytes_written: i64,
    /// Bytes over those of the first step.
    pub ratio: f64,
}

/// How unequal the I/O of ranks is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Imbalance {
    /// Ranks that have done I/O.
    pub members: usize,
    /// Of bytes moved.
    pub bytes_max_over_mean: f64,
    /// Of time in the calls that the program made itself.
    pub time_max_over_mean: f64,
    /// Rank with the most time.
    pub slowest: i32,
}

/// Screen 2.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Processes {
    /// By rank, then by time in I/O.
    pub rows: Vec<ProcessRow>,
    pub other: Option<Others>,
    /// Of the heat strips.
    pub heat_from_ns: i64,
    pub heat_width_ns: i64,
}

/// What a table leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Others {
    pub rows: u64,
    pub sums: Sums,
}

/// One process, thread or group of processes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProcessRow {
    pub process_ix: i32,
    /// Of a row that is a thread.
    pub tid: Option<i32>,
    /// How many processes it is: more than one in a group.
    pub members: u32,
    pub pid: i32,
    pub ppid: i32,
    pub rank: Option<i32>,
    pub exe: Arc<str>,
    pub command: Arc<str>,
    pub cgroup: Option<Arc<str>>,
    pub user: Option<Arc<str>>,
    pub container: Option<Arc<str>>,
    pub unit: Option<Arc<str>>,
    pub job: Option<Arc<str>>,
    pub uid: i32,
    pub threads: u32,
    pub start_ns: i64,
    pub end_ns: Option<i64>,
    pub exit_code: Option<i32>,
    /// Of calls that no other traced call encloses (phases left out), so that nothing counts twice.
    pub sums: Sums,
    /// Of system calls, and faults where those are traced.
    pub system: Sums,
    /// Exclusive time by layer, top to bottom.
    pub self_by_layer: Vec<(Layer, i64)>,
    /// Inclusive time by what calls do, of the same calls as `sums`.
    pub read_ns: i64,
    pub write_ns: i64,
    pub meta_ns: i64,
    pub calls_per_s: f64,
    pub read_per_s: f64,
    pub written_per_s: f64,
    pub heat: Vec<HeatCell>,
}

impl ProcessRow {
    /// Distinguishes it from the other rows.
    pub fn id(&self) -> i64 {
        i64::from(self.process_ix) | i64::from(self.tid.unwrap_or(0)) << 32
    }
}

/// One cell of a strip over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeatCell {
    pub bytes: i64,
    pub dur_ns: i64,
}

/// Screen 3.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Files {
    /// The most time first.
    pub rows: Vec<FileRow>,
    pub other: Option<Others>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileRow {
    pub file_id: i32,
    pub path: Arc<str>,
    pub fstype: Option<Arc<str>>,
    pub mount: Option<Arc<str>>,
    pub role: &'static str,
    pub size: Option<i64>,
    pub unlinked: bool,
    /// System calls and faults.
    pub sums: Sums,
    pub opens: i64,
    pub syncs: i64,
    pub metas: i64,
    /// Reads and writes with a known offset; those of them that begin where the process's one before ended
    /// (consecutive), or further on (sequential, consecutive ones included).
    pub placed: i64,
    pub consecutive: i64,
    pub sequential: i64,
    /// Reads and writes of less than 4 KiB.
    pub small: i64,
    /// Reads that were in the page cache, and bytes that were not.
    pub miss_bytes: i64,
    pub latency: Option<Percentiles>,
    /// Processes that read it, and that wrote it.
    pub readers: u32,
    pub writers: u32,
    /// The highest layer of the calls on it.
    pub top_layer: Option<Layer>,
    /// Bytes on devices for it.
    pub device_bytes: i64,
    pub calls_per_s: f64,
    pub bytes_per_s: f64,
}

/// The selected file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileDetail {
    pub file_id: i32,
    pub row: FileRow,
    pub paths: Vec<Arc<str>>,
    /// In order of time. Of many calls, every n-th is kept.
    pub points: Vec<Point>,
    pub every_nth: u64,
    /// The most frequent first.
    pub sizes: Vec<(i64, u64)>,
    /// Distances from the end of a process's call to the start of its next; 0 is consecutive.
    pub strides: Vec<(i64, u64)>,
    /// Calls whose sizes or strides are not in the lists, because there were too many different ones.
    pub other_sizes: u64,
    pub other_strides: u64,
    /// The calls on this file, the most time first.
    pub ops: Vec<OpRow>,
    /// Parents before children.
    pub handles: Vec<HandleRow>,
    pub objects: Vec<ObjectRow>,
    /// Handles and objects that were left out.
    pub more_handles: u64,
    pub more_objects: u64,
}

/// One read or write of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub t_ns: i64,
    pub dur_ns: i64,
    pub offset: i64,
    pub bytes: i64,
    pub write: bool,
    pub pid: i32,
    pub rank: Option<i32>,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpRow {
    pub layer: Layer,
    pub op: &'static str,
    pub kind: Kind,
    pub sums: Sums,
    pub latency: Option<Percentiles>,
}

/// One handle in the tree of a file's handles.
#[derive(Debug, Clone, PartialEq)]
pub struct HandleRow {
    pub handle_id: i32,
    pub parent: Option<i32>,
    pub depth: usize,
    pub layer: Layer,
    pub pid: i32,
    /// Descriptor, address or number, as the program sees it.
    pub raw: i64,
    pub comm_size: Option<i32>,
    pub object: Option<Arc<str>>,
    pub start_ns: i64,
    pub end_ns: Option<i64>,
    pub hints: Vec<(String, String)>,
}

/// A dataset, variable or the like.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectRow {
    pub object_id: i32,
    pub name: Arc<str>,
    pub class: &'static str,
    pub dims: Option<Vec<i64>>,
    pub chunk: Option<Vec<i64>>,
    pub elem_size: Option<i32>,
    pub filters: Option<Arc<str>>,
    pub sums: Sums,
}

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

/// Screen 8.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Devices {
    pub rows: Vec<DeviceRow>,
    pub mounts: Vec<MountRow>,
    /// Pages waiting to be written, the whole node; oldest first, one a second.
    pub dirty: Vec<DirtySample>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceRow {
    /// (major << 20) | minor.
    pub dev: i32,
    pub name: Arc<str>,
    pub requests: i64,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub errors: i64,
    pub requests_per_s: f64,
    pub read_per_s: f64,
    pub written_per_s: f64,
    /// Part of the window in which a request was in the device, at most 1.
    pub busy: f64,
    /// Requests in the device, mean over requests, and most.
    pub depth_mean: f64,
    pub depth_max: i64,
    /// From queue to issue, and from issue to completion.
    pub queue: Option<Percentiles>,
    pub device: Option<Percentiles>,
    /// Operation, class, requests, bytes; the most bytes first.
    pub classes: Vec<(&'static str, &'static str, i64, i64)>,
    /// Who shares it; the most bytes first.
    pub users: Vec<DeviceUser>,
    pub other_users: i64,
    /// Of `History`'s samples, as many.
    pub history: Vec<DeviceSample>,
}

/// Whose bytes go to a device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceUser {
    /// `None`: of no traced process, or not known.
    pub process_ix: Option<i32>,
    pub pid: Option<i32>,
    pub rank: Option<i32>,
    pub command: Arc<str>,
    pub requests: i64,
    pub bytes: i64,
}

/// One mount that traced files lie on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MountRow {
    pub path: Arc<str>,
    pub fstype: Arc<str>,
    pub source: Arc<str>,
    pub options: Arc<str>,
    pub dev: i64,
    pub scheduler: Option<Arc<str>>,
    pub rotational: Option<bool>,
    pub files: u64,
    pub sums: Sums,
}

/// Dirty memory at one time, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirtySample {
    pub t_ns: i64,
    pub dirty: i64,
    pub writeback: i64,
    /// Above these the kernel begins to write, and makes writers wait.
    pub background_threshold: Option<i64>,
    pub threshold: Option<i64>,
}

/// Screen 9.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Coverage {
    /// By layer and file.
    pub groups: Vec<CoverageGroup>,
    /// Probes that are not attached; the first ones.
    pub refused: Vec<CoverageRow>,
    pub more_refused: u64,
    /// By layer and place, the most first.
    pub losses: Vec<LossRow>,
    /// What was left out on purpose: name, label, how often.
    pub excluded: Vec<(Arc<str>, Arc<str>, f64)>,
}

/// The probes of a layer in one file.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageGroup {
    pub layer: Layer,
    pub target: Arc<str>,
    /// How many of each are attached, absent, refused, skipped.
    pub attached: usize,
    pub absent: usize,
    pub refused: usize,
    pub skipped: usize,
    /// How they are attached: tier, count.
    pub tiers: Vec<(&'static str, usize)>,
    /// Attached at an instruction that costs a step each time.
    pub stepped: usize,
}

/// A probe that is not attached.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageRow {
    pub layer: Layer,
    pub target: Arc<str>,
    pub symbol: Arc<str>,
    pub status: &'static str,
    pub reason: Option<Arc<str>>,
}

/// What was lost at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossRow {
    pub layer: Option<Layer>,
    pub place: &'static str,
    pub count: i64,
    pub last_ns: i64,
}
