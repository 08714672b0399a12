//! The rows of the dataset: what the correlator produces, what exporters write and reports read.
//!
//! Times are nanoseconds since `t0` (the start of the trace, `CLOCK_MONOTONIC`); ids are below 2^53;
//! `None`: no value, or an unknown one.

mod span;

pub use span::{PARTS, Span};

use crate::vocabulary::{Kind, Layer};

/// The key of `meta` of a run whose calls were summed up, and not recorded one by one.
pub const AGGREGATE: &str = "aggregate";

/// The key of `meta` with the calls that were recorded besides the sums; and the loss of those that should have been, and
/// are only in the sums.
pub const DETAIL: &str = "detail";

/// The key of `meta` with the tracer's own pid, as `block.pid` has it.
pub const TRACER_PID: &str = "tracer_pid";

/// The key of `meta` with what came of `--advise-readahead`.
pub const READ_AHEAD: &str = "read_ahead";

/// Bits of a span id that hold the sequence number within its thread; the thread's index is above them.
pub const SEQ_BITS: u32 = 33;

/// The id of the `seq`-th call that a thread entered.
pub const fn span_id(thread_ix: u32, seq: u32) -> i64 {
    ((thread_ix as i64) << SEQ_BITS) | seq as i64
}

/// One request to a block device, from queue to completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub req_id: i64,
    /// Device number, (major << 20) | minor.
    pub dev: i32,
    /// Its name in the kernel.
    pub device: Option<String>,
    /// `read`, `write`, `flush`, `discard`, `zone` or `other`.
    pub op: &'static str,
    /// `sync`, `writeback`, `readahead`, `journal`, `meta`, `swap`, `discard` or `flush`.
    pub class: &'static str,
    /// The kernel's `cmd_flags`, low 31 bits.
    pub req_flags: i32,
    pub sector: i64,
    pub bytes: i32,
    /// The submitting process.
    pub pid: i32,
    /// When the first bio was queued.
    pub queue_ns: i64,
    /// When it went into a scheduler.
    pub insert_ns: Option<i64>,
    /// When the driver got it.
    pub issue_ns: i64,
    /// From issue to completion.
    pub dur_ns: Option<i64>,
    /// Kernel `blk_status_t`; 0 is success.
    pub status: Option<i16>,
    pub nr_bios: i16,
    /// Bios that were added to the first one.
    pub merges: i16,
    /// Bios in it that are parts of longer ones.
    pub splits: i16,
    /// The stacked device that handed it down, and its sector there.
    pub upper_dev: Option<i32>,
    pub upper_sector: Option<i64>,
    /// Requests in the device when this one was issued, itself included.
    pub qdepth: i16,
}

impl Block {
    /// The name of the device, or its number.
    pub fn device_name(&self) -> String {
        self.device.clone().unwrap_or_else(|| format!("{}:{}", self.dev >> 20, self.dev & 0xf_ffff))
    }
}

/// [`BlockLink::how`] of a request that moves no data.
pub const DISCARD: &str = "discard";

/// Which span a block request belongs to, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockLink {
    pub req_id: i64,
    pub span_id: i64,
    pub root_id: i64,
    pub bytes: i64,
    /// `direct`, `sync`, `readahead`, `writeback`, `flush` or `inferred`.
    pub how: &'static str,
}

/// Whose some bytes of a request are; each byte of it is in one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockBytes {
    pub req_id: i64,
    pub process_ix: Option<i32>,
    pub file_id: Option<i32>,
    pub span_id: Option<i64>,
    pub bytes: i64,
    /// The control group, where that alone is known.
    pub cgroup: Option<String>,
    /// `range`, `page`, `inode`, `cgroup`, `submitted`, `journal`, `meta` or `none`.
    pub known_by: &'static str,
}

/// One request of a client to a server: a FUSE daemon that is traced, or the kernel's NFS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rpc {
    pub rpc_id: i64,
    /// `fuse` or `nfs`.
    pub protocol: &'static str,
    /// What it asks for: `lookup`, `read`, ...
    pub op: &'static str,
    /// The kernel's number of it.
    pub xid: i64,
    /// The file system that is served, (major << 20) | minor.
    pub dev: Option<i64>,
    /// The thread that waits for it, or had it sent; none for write-back and the like.
    pub client_tid: Option<i32>,
    pub client_process_ix: Option<i32>,
    /// The innermost call of that thread that was open when the server took the request up.
    pub client_span_id: Option<i64>,
    pub server_process_ix: i32,
    pub server_pid: i32,
    pub server_tid: i32,
    /// The calls that the thread of the server made until it replied have ids from the first to the last.
    pub first_span_id: Option<i64>,
    pub last_span_id: Option<i64>,
    /// When the server had read the request.
    pub received_ns: i64,
    /// From then to the reply.
    pub dur_ns: Option<i64>,
    pub offset: Option<i64>,
    pub req_bytes: Option<i64>,
    pub bytes: Option<i64>,
    /// 0: success; none without a reply.
    pub errno: Option<i16>,
}

/// So many paths of one file are listed with it.
pub const PATHS: usize = 64;

/// A file, known by (device, inode, generation).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub file_id: i32,
    pub dev: i64,
    pub ino: i64,
    pub generation: i64,
    /// The last known path. Bytes that are not UTF-8 are written as `\xNN`.
    pub path: Option<String>,
    pub first_path: Option<String>,
    /// All paths that were seen, in that order, at most [`PATHS`].
    pub paths: Option<Vec<String>>,
    /// The path in the tracer's mount namespace.
    pub host_path: Option<String>,
    pub fstype: Option<String>,
    pub mount_id: Option<i32>,
    pub size_first: Option<i64>,
    pub size_last: Option<i64>,
    pub blksize: Option<i32>,
    /// Targets of a parallel file system that it is spread over, and the bytes on one before the next.
    pub stripe_count: Option<i32>,
    pub stripe_size: Option<i64>,
    /// The file below that carries the data (overlayfs).
    pub data_dev: Option<i64>,
    pub data_ino: Option<i64>,
    /// `data`, `stdio`, `temp`, `lib` or `proc`.
    pub role: &'static str,
    pub unlinked: bool,
}

/// A path that a file had from some time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePath {
    pub file_id: i32,
    pub path: String,
    pub from_ns: i64,
}

/// A path that calls name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPath {
    pub path_id: i32,
    pub path: String,
}

/// What an open returned at some layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    pub handle_id: i32,
    /// The handle being opened by the enclosing call, or the handle it was opened in.
    pub parent_handle_id: Option<i32>,
    pub layer: Layer,
    pub file_id: Option<i32>,
    pub object_id: Option<i32>,
    pub process_ix: i32,
    pub pid: i32,
    /// fd, `FILE*`, `MPI_File` or `hid_t` as the program sees it.
    pub raw: i64,
    /// Access mode argument, as the layer encodes it.
    pub mode: Option<i32>,
    /// Bit 0: existed before tracing began.
    pub flags: i32,
    /// Processes that opened it together.
    pub comm_size: Option<i32>,
    /// Their ranks in the job, as `0-3,8-14:2,20`.
    pub comm_ranks: Option<String>,
    /// Which implementation of MPI-IO serves it.
    pub implementation: Option<&'static str>,
    /// Keys and values that the program gave with it, by key.
    pub hints: Option<Vec<(String, String)>>,
    pub open_span_id: Option<i64>,
    pub close_span_id: Option<i64>,
    pub start_ns: i64,
    pub end_ns: Option<i64>,
}

/// A dataset, variable, attribute or group inside a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub object_id: i32,
    pub handle_id: Option<i32>,
    pub file_id: Option<i32>,
    pub name: String,
    /// `dataset`, `variable`, `attribute` or `group`.
    pub class: &'static str,
    pub dims: Option<Vec<i64>>,
    pub chunk: Option<Vec<i64>>,
    pub elem_size: Option<i32>,
    pub filters: Option<String>,
}

/// A process, from its start (or the start of the trace) to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Dense, never reused.
    pub process_ix: i32,
    pub pid: i32,
    pub ppid: i32,
    pub start_ns: i64,
    pub end_ns: Option<i64>,
    pub exe: Option<String>,
    pub cmdline: Vec<String>,
    pub uid: i32,
    /// As the node calls them.
    pub user: Option<String>,
    pub cgroup: Option<String>,
    /// `RUNTIME://ID`.
    pub container: Option<String>,
    /// What its runtime calls it, and what it was made from.
    pub container_name: Option<String>,
    pub container_image: Option<String>,
    pub unit: Option<String>,
    pub rank: Option<i32>,
    pub world_size: Option<i32>,
    pub job_id: Option<String>,
    pub step_id: Option<String>,
    /// Wait status as a shell shows it: code, or 128 + signal.
    pub exit_code: Option<i32>,
}

/// A thread of a traced process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    pub thread_ix: i32,
    pub process_ix: i32,
    pub pid: i32,
    pub tid: i32,
    pub comm: String,
}

/// A mount that a traced file lies on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mount {
    pub mount_id: i32,
    /// The mount namespace it was seen in, by inode.
    pub mount_ns: i64,
    pub path: String,
    /// The directory of the file system that is mounted.
    pub root: String,
    pub fstype: String,
    /// `local`, `remote` or `memory`.
    pub scope: &'static str,
    pub source: String,
    pub server: Option<String>,
    pub options: String,
    pub super_options: String,
    /// Of overlayfs.
    pub lower: Option<String>,
    pub upper: Option<String>,
    pub dev: i64,
    pub device: Option<String>,
    pub disk: Option<String>,
    pub model: Option<String>,
    pub block_size: Option<i32>,
    pub opt_io_size: Option<i32>,
    pub rotational: Option<bool>,
    pub scheduler: Option<String>,
}

/// Exact sums over one time bin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollup {
    /// Start of the bin.
    pub t_ns: i64,
    pub layer: Layer,
    pub op: &'static str,
    pub kind: Kind,
    pub process_ix: i32,
    pub pid: i32,
    pub rank: Option<i32>,
    pub calls: i64,
    /// Bytes, asked bytes and duration count outermost spans of the layer only.
    pub bytes: i64,
    pub req_bytes: i64,
    pub dur_ns: i64,
    pub self_ns: i64,
    pub max_ns: i64,
    pub errors: i64,
}

/// What calls came to that were summed up: by process, file or object, layer and operation, over a period. Rows add up.
///
/// Figures are of the outermost calls of their layer, but for `nested_calls`, `errors` and `self_ns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRollup {
    /// The period in which the calls ended.
    pub from_ns: i64,
    pub to_ns: i64,
    pub layer: Layer,
    pub op: &'static str,
    pub kind: Kind,
    pub process_ix: Option<i32>,
    pub pid: Option<i32>,
    pub rank: Option<i32>,
    pub file_id: Option<i32>,
    pub object_id: Option<i32>,
    /// Requests: the device.
    pub device: Option<String>,
    /// Of all processes and files for which the kernel's table had no room.
    pub other: bool,
    pub calls: i64,
    /// Standard error of `calls`, where some of them are estimated.
    pub calls_error: Option<i64>,
    pub nested_calls: i64,
    pub errors: i64,
    /// Successful reads and writes of which it is not known how much they moved.
    pub unknown_calls: i64,
    pub bytes: i64,
    pub req_bytes: i64,
    pub dur_ns: i64,
    pub self_ns: i64,
    pub max_ns: i64,
    /// When the longest began, the first began and the last ended.
    pub slowest_ns: Option<i64>,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// One behind the last byte that was read or written.
    pub end_offset: Option<i64>,
    pub sequential: i64,
    pub consecutive: i64,
    pub switches: i64,
    pub unaligned: i64,
    pub miss_bytes: i64,
    pub ahead_bytes: i64,
    pub wait_ns: i64,
    /// Of `dur_ns`: on a CPU, in a run queue, and asleep for locks of the kernel.
    pub cpu_ns: i64,
    pub runq_ns: i64,
    pub lock_ns: i64,
    /// Reads and writes by size: up to 100 bytes, 1, 10, 100 KiB, 1, 4, 10, 100 MiB, 1 GiB, more.
    pub sizes: Option<Vec<i64>>,
    /// Calls by duration: below 2^7 ns, below 2^8, ... 2^37, more.
    pub durations: Option<Vec<i64>>,
    /// The sizes that were most frequent, how often each was, and how often others were.
    pub common_sizes: Option<Vec<i64>>,
    pub common_size_calls: Option<Vec<i64>>,
    pub other_sizes: i64,
    /// The same of distances from the end of one access to the beginning of the next.
    pub common_strides: Option<Vec<i64>>,
    pub common_stride_calls: Option<Vec<i64>>,
    pub other_strides: i64,
}

impl FileRollup {
    /// The parts of its `dur_ns`, in the order of [`PARTS`]: sums know fewer of them than calls.
    pub fn parts(&self) -> [i64; PARTS.len()] {
        let mut parts = [self.cpu_ns, self.runq_ns, self.wait_ns, self.lock_ns, 0, 0, 0, 0, 0, 0, 0];
        parts[PARTS.len() - 1] = parts.iter().fold(self.dur_ns, |left, ns| left.saturating_sub(*ns)).max(0);
        parts
    }
}

/// One bucket of a latency or size histogram over one second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hist {
    pub t_ns: i64,
    pub layer: Layer,
    pub op: &'static str,
    /// `latency` (ns) or `size` (bytes).
    pub what: &'static str,
    /// Bucket number: 4 sub-buckets to a power of two, see `bucket_of`.
    pub bucket: i16,
    pub n: i64,
}

/// A call stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    pub stack_id: i32,
    pub frames: Vec<String>,
}

/// A sampled figure about the node or the tracer itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub t_ns: i64,
    pub name: &'static str,
    pub label: Option<String>,
    pub value: f64,
}

/// Something seen by a hook and not in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// When it was noticed.
    pub t_ns: i64,
    /// The layer it happened at, where that is known.
    pub layer: Option<Layer>,
    pub cpu: Option<i16>,
    /// Where it was lost: `ring`, `recursion`, `stack_depth`, `late`, `task_storage`, ...
    pub place: &'static str,
    /// Its process, where that is known.
    pub process_ix: Option<i32>,
    pub count: i64,
}

/// The verdict on one probe.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Coverage {
    pub layer: Layer,
    /// The file or the kernel hook.
    pub target: String,
    pub symbol: String,
    /// How it was attached: `uprobe.session`, `uprobe.multi`, `uprobe`, `tp_btf`, `raw_tp`.
    pub tier: Option<&'static str>,
    /// `attached`, `absent`, `refused` or `skipped`.
    pub status: &'static str,
    pub reason: Option<String>,
    /// File offset of the probe.
    pub offset: Option<i64>,
    /// Cost class of the probed instruction: `emulated`, `stepped`.
    pub insn: Option<&'static str>,
}

/// One fact about the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub key: String,
    pub value: String,
}

/// Any row, on its way from the correlator (or the session) to the sinks. Behind a pointer: rows that would make all larger, of
/// which most are spans.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    Span(Box<Span>),
    Block(Block),
    BlockLink(BlockLink),
    BlockBytes(BlockBytes),
    Rpc(Box<Rpc>),
    File(Box<File>),
    FilePath(FilePath),
    CallPath(CallPath),
    Handle(Handle),
    Object(Object),
    Process(Box<Process>),
    Thread(Thread),
    Mount(Box<Mount>),
    Rollup(Rollup),
    FileRollup(Box<FileRollup>),
    Hist(Hist),
    Stack(Stack),
    Metric(Metric),
    Loss(Loss),
    Coverage(Coverage),
    Meta(Meta),
}
