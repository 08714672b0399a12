//! A row of `spans`. A new column is a field here with its value in [`Span::new`], a line of the table in
//! `export/dataset/tables.rs` and one in `docs/schema.md`; what fills it is in `correlate`.

use crate::catalog::COPIES;
use crate::vocabulary::{Kind, Layer};

/// One call at one layer on one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub span_id: i64,
    pub parent_id: Option<i64>,
    /// The outermost enclosing span; its own id for a root.
    pub root_id: i64,
    pub layer: Layer,
    /// The function's own name.
    pub op: &'static str,
    pub kind: Kind,
    /// 0 for a root.
    pub depth: i8,
    /// Outermost span of its layer on this stack.
    pub layer_top: bool,
    pub process_ix: i32,
    pub pid: i32,
    pub tid: i32,
    pub rank: Option<i32>,
    pub cpu: i16,
    pub start_ns: i64,
    pub dur_ns: i64,
    /// How much of the duration the tracer's own hooks took: those of this call, and of all inside it. `None`: not known.
    pub probe_ns: Option<i64>,
    /// Duration without that, less the same of the children.
    pub self_ns: i64,
    /// What it adds to the inclusive time of its layer; `None`: all of the duration without hooks.
    pub layer_ns: Option<i64>,
    pub file_id: Option<i32>,
    pub handle_id: Option<i32>,
    pub object_id: Option<i32>,
    /// The path that it names, and the second one of those that name two.
    pub path_id: Option<i32>,
    pub path2_id: Option<i32>,
    /// Which variant of the function it is: the command of `fcntl`, what `lseek` counts from.
    pub cmd: Option<&'static str>,
    /// A number that it was given, or found; see docs/schema.md.
    pub arg: Option<i64>,
    pub offset: Option<i64>,
    /// Bytes moved.
    pub bytes: Option<i64>,
    /// Bytes asked for.
    pub req_bytes: Option<i64>,
    /// Bytes of a read that were not in the page cache.
    pub miss_bytes: Option<i64>,
    /// Bytes of other pages that a read brought into the page cache.
    pub ahead_bytes: Option<i64>,
    /// How long its thread was on a CPU, without the tracer's hooks, and how long it waited for one.
    pub cpu_ns: Option<i64>,
    pub runq_ns: Option<i64>,
    /// What it slept for: too much is dirty, locks, write-back of its file, the journal of its file system, flushes of
    /// its device, its own requests in the queue and in the device, a server.
    pub throttle_ns: Option<i64>,
    pub lock_ns: Option<i64>,
    pub writeback_ns: Option<i64>,
    pub journal_ns: Option<i64>,
    pub flush_ns: Option<i64>,
    pub devqueue_ns: Option<i64>,
    pub device_ns: Option<i64>,
    pub remote_ns: Option<i64>,
    /// The call's result as it returned it; `None` for unfinished calls and pointers.
    pub ret: Option<i64>,
    /// System calls: the error number, 0 for success. Libraries: 0 for success, -1 for a failed call.
    pub errno: i16,
    pub flags: i32,
    pub async_id: Option<i64>,
    pub coll_id: Option<i64>,
    pub stack_id: Option<i32>,
    /// Its class against calls like it in earlier runs, and how long these took on average.
    pub speed: Option<&'static str>,
    pub usual_ns: Option<i64>,
}

/// Parts of the time of a call: columns of `spans` without `_ns`, for people; the last one is what none of them explains.
pub const PARTS: [(&str, &str); 11] = [
    ("cpu", "on a CPU"),
    ("runq", "run queue"),
    ("throttle", "throttled: too much is dirty"),
    ("lock", "lock"),
    ("writeback", "write-back"),
    ("journal", "journal"),
    ("flush", "device flush"),
    ("devqueue", "device queue"),
    ("device", "device"),
    ("remote", "server"),
    ("sleep", "other sleep"),
];

impl Span {
    /// A root call of which only the function, the process, the start and the duration are known.
    pub const fn new(
        span_id: i64,
        (layer, op, kind): (Layer, &'static str, Kind),
        process_ix: i32,
        (start_ns, dur_ns): (i64, i64),
    ) -> Self {
        Self {
            span_id,
            parent_id: None,
            root_id: span_id,
            layer,
            op,
            kind,
            depth: 0,
            layer_top: true,
            process_ix,
            pid: 0,
            tid: 0,
            rank: None,
            cpu: 0,
            start_ns,
            dur_ns,
            probe_ns: None,
            self_ns: dur_ns,
            layer_ns: None,
            file_id: None,
            handle_id: None,
            object_id: None,
            path_id: None,
            path2_id: None,
            cmd: None,
            arg: None,
            offset: None,
            bytes: None,
            req_bytes: None,
            miss_bytes: None,
            ahead_bytes: None,
            cpu_ns: None,
            runq_ns: None,
            throttle_ns: None,
            lock_ns: None,
            writeback_ns: None,
            journal_ns: None,
            flush_ns: None,
            devqueue_ns: None,
            device_ns: None,
            remote_ns: None,
            ret: None,
            errno: 0,
            flags: 0,
            async_id: None,
            coll_id: None,
            stack_id: None,
            speed: None,
            usual_ns: None,
        }
    }

    /// When it returned.
    pub const fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.dur_ns)
    }

    /// How long the call took without the tracer's hooks.
    pub fn net_ns(&self) -> i64 {
        self.dur_ns.saturating_sub(self.probe_ns.unwrap_or(0))
    }

    /// What it adds to the inclusive time of its layer: operations that overlap are not added.
    pub fn inclusive_ns(&self) -> i64 {
        self.layer_ns.unwrap_or_else(|| self.net_ns())
    }

    /// The call that copies of which this is the half that reads.
    pub fn half_of(&self) -> Option<i64> {
        self.parent_id.filter(|_| self.op.strip_suffix(".read").is_some_and(|call| COPIES.contains(&call)))
    }
}
