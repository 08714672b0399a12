//! The hooks inside the kernel: a table of groups, each loaded whole or not at all, and the verdicts on them.

use crate::loader::kernel::{self, LibTier, functions, perf};
use crate::rows::Coverage;
use crate::vocabulary::Layer;
use perf_event::events::Software;
use std::path::Path;
use std::sync::LazyLock;

/// Programs that are loaded together or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Process,
    /// Processes that come into another control group.
    Cgroup,
    Syscall,
    /// Requests of `io_uring`.
    Uring,
    Block,
    /// Page cache: what is read into it.
    Pages,
    /// Page cache: tasks that wait because too much is dirty.
    Throttling,
    /// Locks of the kernel that calls wait for.
    Locks,
    /// Functions inside the kernel.
    Functions,
    /// Page faults on mapped files: their end has no tracepoint.
    Fault,
    /// What becomes dirty otherwise than by a write.
    Dirty,
    /// Requests to the kernel's NFS server.
    Nfs,
    Library,
    /// What user space asks the kernel.
    Question,
    /// Calls that have entered and not returned: read at any time, and sent at the end.
    InFlight,
}
pub const GROUPS: [Group; 15] = [
    Group::Process,
    Group::Cgroup,
    Group::Syscall,
    Group::Uring,
    Group::Block,
    Group::Pages,
    Group::Throttling,
    Group::Locks,
    Group::Functions,
    Group::Fault,
    Group::Dirty,
    Group::Nfs,
    Group::Library,
    Group::Question,
    Group::InFlight,
];

/// Kernel hooks: program, hook, group. Library programs attach per file and are not here.
pub const HOOKS: &[(&str, &str, Group)] = &[
    ("iot_fork", "sched_process_fork", Group::Process),
    ("iot_exec", "sched_process_exec", Group::Process),
    ("iot_exit", "sched_process_exit", Group::Process),
    ("iot_moved", "cgroup_attach_task", Group::Cgroup),
    ("iot_sys_enter", "sys_enter", Group::Syscall),
    ("iot_sys_exit", "sys_exit", Group::Syscall),
    ("iot_uring_submit_req", "io_uring_submit_req", Group::Uring),
    ("iot_uring_submit_sqe", "io_uring_submit_sqe", Group::Uring),
    ("iot_uring_req_failed", "io_uring_req_failed", Group::Uring),
    ("iot_uring_complete", "io_uring_complete", Group::Uring),
    ("iot_uring_overflow", "io_uring_cqe_overflow", Group::Uring),
    ("iot_uring_wait", "io_uring_cqring_wait", Group::Uring),
    ("iot_bio_queue0", "block_bio_queue", Group::Block),
    ("iot_bio_queue1", "block_bio_queue", Group::Block),
    ("iot_bio_queue2", "block_bio_queue", Group::Block),
    ("iot_bio_remap", "block_bio_remap", Group::Block),
    ("iot_bio_split", "block_split", Group::Block),
    ("iot_rq_insert0", "block_rq_insert", Group::Block),
    ("iot_rq_insert1", "block_rq_insert", Group::Block),
    ("iot_rq_insert2", "block_rq_insert", Group::Block),
    ("iot_rq_issue0", "block_rq_issue", Group::Block),
    ("iot_rq_issue1", "block_rq_issue", Group::Block),
    ("iot_rq_issue2", "block_rq_issue", Group::Block),
    ("iot_rq_requeue", "block_rq_requeue", Group::Block),
    ("iot_rq_complete0", "block_rq_complete", Group::Block),
    ("iot_rq_complete1", "block_rq_complete", Group::Block),
    ("iot_rq_complete2", "block_rq_complete", Group::Block),
    ("iot_bio_complete0", "block_bio_complete", Group::Block),
    ("iot_bio_complete1", "block_bio_complete", Group::Block),
    ("iot_bio_complete2", "block_bio_complete", Group::Block),
    ("iot_page_added", "mm_filemap_add_to_page_cache", Group::Pages),
    ("iot_throttled", "balance_dirty_pages", Group::Throttling),
    ("iot_lock_wanted", "contention_begin", Group::Locks),
    ("iot_lock_taken", "contention_end", Group::Locks),
    ("iot_fault_user", "page_fault_user", Group::Fault),
    ("iot_fault_kernel", "page_fault_kernel", Group::Fault),
    ("iot_fault_minor", "page-faults:min", Group::Fault),
    ("iot_fault_major", "page-faults:maj", Group::Fault),
    ("iot_dirty_folio", "writeback_dirty_folio", Group::Dirty),
    ("iot_nfs_begin", "rpc_task_begin", Group::Nfs),
    ("iot_nfs_number", "xprt_reserve", Group::Nfs),
    ("iot_nfs_serve", "svc_process", Group::Nfs),
    ("iot_nfs_read", "nfsd_read_start", Group::Nfs),
    ("iot_nfs_write", "nfsd_write_start", Group::Nfs),
    ("iot_nfs_has_read", "nfsd_read_io_done", Group::Nfs),
    ("iot_nfs_has_written", "nfsd_write_io_done", Group::Nfs),
    ("iot_nfs_reply", "svc_stats_latency", Group::Nfs),
    (OPEN_CALLS, "task:open_calls", Group::InFlight),
    (SLOW_CALLS, "task:slow_calls", Group::InFlight),
    (END_CALLS, "task:end_calls", Group::InFlight),
    (LIST_THREADS, "task:list_threads", Group::InFlight),
];

/// Where returns are probed together with entries: the program for functions of the user's, whose returns are probed in
/// place.
pub const USERS_ENTRY: &str = "iot_uprobe_multi";

/// The program that finds the functions that distinguish block requests; it is run once.
pub const FIND_SYMBOLS: &str = "iot_find_symbols";

/// The program that reads what is open, the one that reads what has been open for long, the one that ends it, and the one that
/// makes the state of each thread of a target.
pub const OPEN_CALLS: &str = "iot_open_calls";
pub const SLOW_CALLS: &str = "iot_slow_calls";
pub const END_CALLS: &str = "iot_end_calls";
pub const LIST_THREADS: &str = "iot_list_threads";

/// Programs that are attached to events that the kernel counts.
pub const EVENTS: &[(&str, Software)] =
    &[("iot_fault_minor", perf::MINOR_FAULTS), ("iot_fault_major", perf::MAJOR_FAULTS)];

/// There as soon as the server's module is loaded, or is part of the kernel. Those that it needs are there then, too.
const NFS_SERVER: &str = "/sys/module/nfsd";

/// A tracepoint that has another name in older kernels (Linux 6.3).
const RENAMED: (&str, &str) = ("io_uring_submit_req", "io_uring_submit_sqe");

/// The one of the two names that the running kernel does not have. Asked once: the kernel's types are parsed for it.
static ABSENT: LazyLock<&str> = LazyLock::new(|| if kernel::has_tracepoint(RENAMED.0) { RENAMED.1 } else { RENAMED.0 });

impl Group {
    /// What it shows, in a few words.
    pub fn shows(self) -> &'static str {
        match self {
            Self::Process => "processes",
            Self::Cgroup => "control groups",
            Self::Syscall => "system calls",
            Self::Uring => "io_uring",
            Self::Block => "block requests",
            Self::Pages => "page cache",
            Self::Throttling => "throttled writes",
            Self::Locks => "kernel locks",
            Self::Functions => "kernel functions",
            Self::Fault => "page faults",
            Self::Dirty => "dirty pages",
            Self::Nfs => "NFS server",
            Self::Library => "library calls",
            Self::Question => "mapped files",
            Self::InFlight => "in flight",
        }
    }

    /// Is it needed for these layers? `libraries`: is any of them one of libraries?
    pub fn serves(self, layers: &[Layer], libraries: bool) -> bool {
        match self {
            Self::Uring | Self::Pages | Self::Throttling | Self::Locks | Self::Nfs => layers.contains(&Layer::Syscall),
            Self::Block | Self::Dirty => layers.contains(&Layer::Block),
            Self::Functions => layers.contains(&Layer::Fs),
            Self::Fault => layers.contains(&Layer::Vfs),
            Self::Library | Self::Question => libraries,
            // System calls also show mappings and carry handles up to the libraries' spans.
            Self::Process | Self::Cgroup | Self::Syscall | Self::InFlight => true,
        }
    }

    /// Why it is not used in aggregate mode: its records belong to single calls.
    pub fn unused_in_sums(self) -> Option<&'static str> {
        let unused = matches!(self, Self::Dirty | Self::Nfs);
        unused.then_some("calls are summed up (--aggregate): clients served and owners of written-back bytes are known for single calls only")
    }

    /// Why the running kernel has nothing that it could hook into; found without loading anything.
    pub fn absent(self) -> Option<&'static str> {
        let is_there = self != Self::Nfs || Path::new(NFS_SERVER).exists();
        (!is_there).then_some("the kernel's NFS server (nfsd) is not loaded")
    }

    /// The verdicts on its hooks, where it has nothing to hook into.
    pub fn verdicts_of_absence(self) -> impl Iterator<Item = Coverage> {
        self.absent().into_iter().flat_map(move |why| {
            let verdict = move |hook| Coverage { status: "absent", ..verdict(self, hook, Err(why.to_owned())) };
            self.hooks().map(move |(_, hook)| verdict(hook))
        })
    }

    /// The verdicts on its hooks in aggregate mode, where they are not used.
    pub fn verdicts_in_sums(self) -> impl Iterator<Item = Coverage> {
        self.unused_in_sums().into_iter().flat_map(move |why| {
            let verdict = move |hook| Coverage { status: "skipped", ..verdict(self, hook, Err(why.to_owned())) };
            self.hooks().map(move |(_, hook)| verdict(hook))
        })
    }

    /// Its programs; of libraries those of the best tier that works.
    pub fn programs(self, tier: Option<LibTier>) -> Vec<&'static str> {
        match (self, tier) {
            (Self::Library, Some(LibTier::Session)) => {
                return vec!["iot_uprobe_session", USERS_ENTRY, "iot_uprobe_entry"];
            }
            (Self::Library, Some(LibTier::Multi)) => return vec!["iot_uprobe_multi", "iot_uretprobe_multi"],
            (Self::Library, Some(LibTier::Single)) => return vec!["iot_uprobe", "iot_uretprobe"],
            (Self::Functions, _) => return functions::PROGRAMS.to_vec(),
            (Self::Question, Some(_)) => return vec!["iot_real_file"],
            _ => {}
        }
        let finds = (self == Self::Block).then_some(FIND_SYMBOLS);
        self.hooks().map(|(program, _)| program).chain(finds).collect()
    }

    /// Its programs and what they hook into.
    pub fn hooks(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        HOOKS.iter().filter(move |(_, hook, group)| *group == self && *hook != *ABSENT).map(|(p, h, _)| (*p, *h))
    }

    /// How its hooks are attached.
    pub fn tier(self) -> &'static str {
        match self {
            Self::InFlight => "iter",
            _ => "tp_btf",
        }
    }

    /// The layer its hooks show; process life cycle serves all of them.
    pub fn layer(self) -> Layer {
        match self {
            Self::Block | Self::Dirty => Layer::Block,
            Self::Functions | Self::Fault => Layer::Vfs,
            Self::Library | Self::Question => Layer::App,
            Self::Process
            | Self::Cgroup
            | Self::Syscall
            | Self::Uring
            | Self::Pages
            | Self::Throttling
            | Self::Locks
            | Self::Nfs
            | Self::InFlight => Layer::Syscall,
        }
    }
}

/// The verdict on one hook: how it was attached, or why not.
pub fn verdict(group: Group, hook: &str, outcome: Result<&'static str, String>) -> Coverage {
    Coverage {
        layer: group.layer(),
        target: "kernel".into(),
        symbol: hook.to_owned(),
        tier: outcome.as_ref().ok().copied(),
        status: if outcome.is_ok() { "attached" } else { "refused" },
        reason: outcome.err(),
        offset: None,
        insn: None,
    }
}
