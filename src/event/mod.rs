//! What the kernel side reports, decoded: the contract between the loader and the correlator.
//!
//! All times are `CLOCK_MONOTONIC` nanoseconds. Paths are bytes from strangers.

mod contract;
mod sum;
pub mod wire;

use std::collections::HashSet;

use crate::rows::Mount;

pub use sum::{About, BUCKETS, Counts, Figures, Histograms, Runs, SIZES, Sum, TIMES, size_class, time_bin};

/// When a file was last written: seconds and nanoseconds since 1970.
pub type Written = (i64, i64);

/// Identity of a file: device number (kernel encoding, (major << 20) | minor), inode, generation.
///
/// A generation of 0 is unknown (`stat` does not return it): it stands for whatever is known of (device, inode).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileKey {
    pub dev: u32,
    pub generation: u32,
    pub ino: u64,
}

/// A call that returned (or, unfinished, that was cut off by the end of its process).
///
/// `thread` and `process` are dense indices given by the kernel side, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Row of the catalog, plus the number of rows for each earlier copy of its library.
    pub spec: u16,
    pub thread: u32,
    /// Number of the call in its thread, in the order of entry; gaps are calls that were lost.
    pub seq: u32,
    /// Traced calls that were open on the thread when it entered; 0 for an outermost call.
    pub depth: u8,
    pub start: u64,
    pub dur: u64,
    /// ns of the duration that hooks took.
    pub probe: u64,
    /// How long its thread was on no CPU meanwhile. `None`: not known.
    pub off_cpu: Option<OffCpu>,
    pub cpu: u16,
    /// 0 or positive for success, negative for failure (system calls: `-errno`).
    pub status: i32,
    pub handle: Option<u64>,
    pub len: Option<u64>,
    pub got: Option<u64>,
    pub off: Option<u64>,
    /// System calls on an open file: which file.
    pub file: Option<FileKey>,
    pub unfinished: bool,
    pub direct: bool,
    /// A user argument (path, vector) could not be read or was cut.
    pub truncated: bool,
    pub wanted: Wanted,
}

/// How long a thread was on no CPU while a call went on, and how much of that in a run queue, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffCpu {
    pub all: u64,
    pub queued: u64,
}

/// Aggregate mode: is a call wanted by itself, besides the sums?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    #[default]
    No,
    Itself,
    /// With all that ran inside it.
    Whole,
}

/// Aggregate mode: a call that is in the sums. It is sent when it is known that it is wanted, or holds calls that are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeferredCall {
    pub call: Call,
    /// When it was sent: not before the calls inside it.
    pub sent: u64,
    /// How long the calls right inside it took, in ns.
    pub inner: u64,
    pub cached: Cached,
}

impl DeferredCall {
    /// It ended a while before it was sent.
    pub const fn past(&self) -> bool {
        self.sent > self.call.start.saturating_add(self.call.dur)
    }
}

/// A phase was entered: its own call follows when it returns, which may be at the end of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enter {
    /// As in the [`Call`] that follows.
    pub spec: u16,
    pub thread: u32,
    pub seq: u32,
    pub depth: u8,
    pub start: u64,
    pub cpu: u16,
}

/// Which of the kernel's hooks are there: where one is not, nothing is known, and not nothing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Pages that are added to the page cache.
    pub pages: bool,
    /// Writers that are made to wait.
    pub throttling: bool,
    /// Locks of the kernel that calls wait for.
    pub locks: bool,
    /// Requests to devices.
    pub requests: bool,
    /// System calls: what those of libraries slept for is known of them.
    pub system_calls: bool,
}

/// Which text a [`Event::Text`] carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// The call's (first) path or name argument.
    Path,
    /// The call's second path argument (rename, link).
    Path2,
    /// The directory that a relative first path starts from.
    Base,
    /// The directory that a relative second path starts from.
    Base2,
    /// An array of 32-bit integers in host byte order, by its slot in the catalog row; long ones come in pieces.
    Ints(u8),
    /// The same of 64-bit integers.
    Longs(u8),
}

impl TextKind {
    /// A number that distinguishes them.
    pub const fn number(self) -> u64 {
        match self {
            Self::Path => 0,
            Self::Path2 => 1,
            Self::Base => 2,
            Self::Base2 => 3,
            Self::Ints(slot) => 16 + slot as u64,
            Self::Longs(slot) => 32 + slot as u64,
        }
    }
}

/// What is known of a file when a process opens it, or is found to have it open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sighting {
    /// The path that the process knows, absolute.
    pub path: Vec<u8>,
    /// Where that starts.
    pub root: u64,
    /// The path from the root directory of the file system, which does not depend on where that is mounted.
    pub inside: Option<Vec<u8>>,
    /// The mount that it was opened through; 0: not known.
    pub mount: i32,
    /// The device of its file system, which mounts have: that of its key may be the one of a part (btrfs). 0: not
    /// known.
    pub fs_dev: u32,
    pub size: u64,
    /// The kernel's word for the file system; empty: not known.
    pub fstype: String,
    pub block_size: Option<u32>,
    /// How many names it has: none any more, or never had one, where this is 0. A directory has one.
    pub links: u32,
    /// The file below that carries the data, on a file system of layers.
    pub data: Option<FileKey>,
}

/// How a parallel file system spreads a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Striping {
    /// Targets.
    pub count: i32,
    /// Bytes on one before the next.
    pub size: i64,
}

/// What the page cache had to do with a system call. Most calls have no such record: there was no miss and no wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cached {
    /// Bytes of the call's range that were not there.
    pub miss: Option<u64>,
    /// Bytes beyond it that the call read ahead.
    pub ahead: Option<u64>,
    /// How long the call was made to wait because too much was dirty, in ns.
    pub throttled: u64,
    /// And because a lock of the kernel was not free.
    pub locked: u64,
}

/// A bio as it was when its request was issued; neighbours of one file in one request are merged into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bio {
    /// The request it went out with.
    pub req: u64,
    /// The file whose pages it carries; none for direct I/O, journals, swap.
    pub file: Option<FileKey>,
    /// Byte offset in that file.
    pub off: u64,
    pub bytes: u64,
    /// When it was queued, and its submitter: thread index and number of the innermost open call, if traced.
    pub queued: u64,
    pub submitter: Option<(u32, Option<u32>)>,
    /// That number is the one of an operation, which this call submitted; its own if no call did.
    pub of: Option<u32>,
    /// It writes to the journal of the file system on this device.
    pub journal: Option<u32>,
    /// It carries blocks of the file system itself.
    pub meta: bool,
    /// A thread of the kernel queued it.
    pub kernel: bool,
    /// The control group, by its number, that the file's pages are charged to.
    pub cgroup: Option<u64>,
}

/// What the runtime of a container calls it and its image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Container {
    pub name: Option<String>,
    pub image: Option<String>,
}

/// An operation that the kernel carried out after the call that submitted it, and that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Itself: its thread is the one that submitted it, and where that had a call open, its depth counts that.
    pub call: Call,
    /// When its end became known.
    pub seen: u64,
    /// The call of its thread that submitted it; none where a thread of the kernel took it from a queue.
    pub of: Option<u32>,
    /// The call, by thread and number, in which it was found to be over.
    pub found_by: Option<(u32, u32)>,
    /// Aggregate mode: it is in the sums.
    pub summed: bool,
}

/// Pages of a file became dirty, and the range that a call wrote is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dirtied {
    pub time: u64,
    pub file: FileKey,
    pub off: u64,
    pub bytes: u64,
    pub thread: u32,
    /// The page fault or innermost call that did it; none outside of traced calls.
    pub seq: Option<u32>,
}

/// A request that completed, or had not when the trace ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub req: u64,
    pub dev: u32,
    pub sector: u64,
    pub bytes: u32,
    /// `cmd_flags` of the kernel: operation in the low 8 bits.
    pub cmd_flags: u32,
    pub status: u8,
    pub nr_bios: u16,
    /// How many of these are parts of longer ones.
    pub splits: u16,
    /// The process that issued it.
    pub pid: u32,
    pub queued: u64,
    /// When it went into a scheduler, if it did.
    pub inserted: Option<u64>,
    /// A device without a queue gets it when it is queued.
    pub issued: u64,
    pub completed: Option<u64>,
    /// Its end was not seen: when that was noticed.
    pub unseen: Option<u64>,
    /// The stacked device that handed it down, and its sector there.
    pub upper: Option<(u32, u64)>,
}

impl Request {
    /// When it was known that it is over; of one that is not, when it was issued.
    pub fn known_at(&self) -> u64 {
        self.completed.or(self.unseen).unwrap_or(self.issued)
    }
}

/// What passes between a traced server (a FUSE daemon) and its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    pub time: u64,
    /// The server's thread, and the number of its next call.
    pub thread: u32,
    pub seq: u32,
    /// Requests are numbered within it.
    pub channel: u64,
    pub number: u64,
    pub what: Exchange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// The server has read a request.
    Request(RpcRequest),
    /// The server replies.
    Reply(RpcReply),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpcRequest {
    /// As [`crate::catalog::kernel::fuse`] has them.
    pub operation: u32,
    /// The file system that is served.
    pub dev: Option<i64>,
    /// The thread of the client, in the tracer's PID namespace.
    pub tid: Option<i32>,
    /// Offset and size, if it is one that moves data.
    pub range: Option<(u64, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpcReply {
    /// 0: success.
    pub errno: i16,
    /// Bytes behind the header.
    pub body: u32,
    /// Of a request to write how much was.
    pub taken: Option<u32>,
}

/// A control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// From the root of its hierarchy.
    pub path: String,
    /// The kernel's number of it, where it is one of the unified hierarchy and not its root.
    pub id: Option<u64>,
}

/// A request that a server inside the kernel (NFS) has served for a client on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// When it began to reply.
    pub time: u64,
    pub received: u64,
    pub number: u32,
    /// The client's name of what was asked for, for [`crate::catalog::kernel::nfs::word`]; a NUL ends it.
    pub operation: [u8; 24],
    /// The client's thread, if it is traced, and the number of the innermost call that it was in.
    pub client: Option<(u32, Option<u32>)>,
    /// The same as the kernel numbers it; none of the kernel's own threads.
    pub client_tid: Option<i32>,
    /// Process and thread of the server.
    pub server: [u32; 2],
    /// Offset and size, if it is one that moves data.
    pub range: Option<(u64, u32)>,
    /// Bytes that were moved.
    pub moved: Option<u32>,
    /// Of NFS; 0: success.
    pub status: u32,
}

/// The mounts from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    pub time: u64,
    /// Counts lists as they were read, which is not the order of their times.
    pub number: u64,
    pub mounts: Vec<Mount>,
    /// The mount namespace that is the host's.
    pub host: i64,
    /// Devices of file systems that are gone: others have their numbers now.
    pub replaced: HashSet<i64>,
}

/// Everything that reaches the correlator.
///
/// `root` is a number of the directory that the absolute paths of the process start from: in a container or after
/// `chroot` the same path is another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A call ended.
    Call(Call),
    /// A call that is in the sums ended a while ago.
    Deferred(Box<DeferredCall>),
    /// A phase began.
    Enter(Enter),
    /// An operation is over.
    Operation(Operation),
    /// Text that belongs to the call `seq` of `thread`; sent just before the call itself. `operation`: to an operation,
    /// sent when it begins.
    Text { time: u64, thread: u32, seq: u32, what: TextKind, bytes: Vec<u8>, root: u64, cut: bool, operation: bool },
    /// What the page cache had to do with the call `seq` of `thread`; sent just before the call itself.
    Cached { time: u64, thread: u32, seq: u32, cached: Cached },
    /// How long the calls right inside the call `seq` of `thread` took, in ns, when they are not sent themselves; sent just
    /// before the call itself.
    Inner { time: u64, thread: u32, seq: u32, inner: u64 },
    /// Mounts were made; sent before files that may be on one of them.
    Mounted(Box<Mounted>),
    /// A file was opened (or first seen), by this process.
    File { time: u64, key: FileKey, pid: u32, seen: Sighting },
    /// A thread of a target was first seen.
    Thread { time: u64, thread: u32, process: u32, pid: u32, tid: u32, comm: [u8; 16] },
    /// A process became a target: `parent` is the traced process that forked it.
    /// `runs`: it executes a program of which there is no record.
    Process { time: u64, process: u32, parent: Option<u32>, runs: bool, pid: u32, ppid: u32, uid: u32 },
    /// A target executed a program. Open file descriptors with close-on-exec are gone.
    Exec { time: u64, process: u32, program: u32, exe: Vec<u8>, args: Vec<Vec<u8>>, env: Vec<Vec<u8>> },
    /// The user of a target, by number and as the node calls them, its control group where the kernel has such, and what is
    /// known of the container that this is of.
    Belongs {
        time: u64,
        process: u32,
        uid: u32,
        user: Option<String>,
        cgroup: Option<Cgroup>,
        container: Option<Container>,
    },
    /// A target ended. `status` is the kernel's wait status.
    Exit { time: u64, process: u32, status: u32 },
    /// A file that was open before tracing began (found at attach), and how it was opened.
    Preopened { time: u64, process: u32, fd: u32, flags: Option<u32>, key: FileKey, seen: Sighting },
    /// A thread uses a C stream (`FILE*`), which is on this descriptor.
    Stream { time: u64, thread: u32, stream: u64, fd: u32, key: FileKey },
    /// A bio went to the device.
    Bio(u64, Bio),
    /// Pages became dirty.
    Dirty(Dirtied),
    /// The name of a device, before its first request.
    Disk { time: u64, dev: u32, name: String },
    /// A request completed, or did not.
    Request(Request),
    /// A server has read a request of a client, or replies to one.
    Message(Message),
    /// A server inside the kernel replies to a client.
    Reply(Reply),
    /// What calls or requests came to that were not sent one by one.
    Sum(Box<Sum>),
    /// How they were distributed.
    Counts(Box<Counts>),
    /// Calls of this row of the catalog are no longer sent, but for a moment now and then.
    Demoted { time: u64, row: u16 },
    /// Such a moment begins.
    Sampled { time: u64 },
    /// Calls of rows that can be paused are no longer recorded.
    Paused { time: u64 },
    /// For a moment they are, ...
    Looking { time: u64 },
    /// ... which is over.
    Looked { time: u64 },
    /// They are again.
    Resumed { time: u64 },
}

impl Event {
    /// When it happened: the end of a call, the beginning of a phase, the completion of a request.
    pub fn time(&self) -> u64 {
        match self {
            // Saturating: numbers from the kernel side are not trusted.
            Self::Call(c) => c.start.saturating_add(c.dur),
            Self::Enter(e) => e.start,
            Self::Text { time, .. }
            | Self::Cached { time, .. }
            | Self::Inner { time, .. }
            | Self::File { time, .. }
            | Self::Thread { time, .. }
            | Self::Process { time, .. }
            | Self::Exec { time, .. }
            | Self::Belongs { time, .. }
            | Self::Exit { time, .. }
            | Self::Preopened { time, .. }
            | Self::Stream { time, .. }
            | Self::Disk { time, .. }
            | Self::Demoted { time, .. }
            | Self::Sampled { time }
            | Self::Paused { time }
            | Self::Looking { time }
            | Self::Looked { time }
            | Self::Resumed { time }
            | Self::Bio(time, _) => *time,
            Self::Mounted(m) => m.time,
            Self::Operation(o) => o.seen,
            Self::Deferred(d) => d.sent,
            Self::Dirty(d) => d.time,
            Self::Request(r) => r.known_at(),
            Self::Message(m) => m.time,
            Self::Reply(r) => r.time,
            Self::Sum(s) => s.time,
            Self::Counts(c) => c.time,
        }
    }
}
