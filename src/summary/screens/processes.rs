//! Processes and files.

use std::sync::Arc;

use crate::analysis::calls::Sums;
use crate::summary::screens::distribution::Percentiles;
use crate::vocabulary::{Kind, Layer};

/// What a table leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Others {
    pub rows: u64,
    pub sums: Sums,
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
    /// The program by the last part of its path, and its arguments; of a group its name.
    pub command: Arc<str>,
    /// All of it.
    pub cmdline: Arc<str>,
    /// The node that it ran on, where rows are of several.
    pub host: Option<Arc<str>>,
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
