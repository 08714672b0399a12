//! The hooks inside the kernel: a table of groups, each loaded whole or not at all, and the verdicts on them.

use crate::correlate::rows::Coverage;
use crate::loader::functions;
use crate::loader::kernel::{self, LibTier};
use crate::loader::perf;
use crate::words::Layer;

/// Programs that are loaded together or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Process,
    Syscall,
    /// Requests of `io_uring`.
    Uring,
    Block,
    /// Page cache: what is read into it.
    Pages,
    /// Page cache: who waits because too much is dirty.
    Throttling,
    /// Functions inside the kernel.
    Functions,
    /// Page faults on mapped files: what tells that one is over is no tracepoint.
    Fault,
    /// What becomes dirty otherwise than by a write.
    Dirty,
    Library,
    /// What user space asks the kernel.
    Question,
}
pub const GROUPS: [Group; 11] = [
    Group::Process,
    Group::Syscall,
    Group::Uring,
    Group::Block,
    Group::Pages,
    Group::Throttling,
    Group::Functions,
    Group::Fault,
    Group::Dirty,
    Group::Library,
    Group::Question,
];

/// Kernel hooks: program, hook, group. Library programs attach per file and are not here.
pub const HOOKS: &[(&str, &str, Group)] = &[
    ("iot_fork", "sched_process_fork", Group::Process),
    ("iot_exec", "sched_process_exec", Group::Process),
    ("iot_exit", "sched_process_exit", Group::Process),
    ("iot_sys_enter", "sys_enter", Group::Syscall),
    ("iot_sys_exit", "sys_exit", Group::Syscall),
    ("iot_uring_submit_req", "io_uring_submit_req", Group::Uring),
    ("iot_uring_submit_sqe", "io_uring_submit_sqe", Group::Uring),
    ("iot_uring_req_failed", "io_uring_req_failed", Group::Uring),
    ("iot_uring_complete", "io_uring_complete", Group::Uring),
    ("iot_uring_overflow", "io_uring_cqe_overflow", Group::Uring),
    ("iot_uring_wait", "io_uring_cqring_wait", Group::Uring),
    ("iot_bio_queue", "block_bio_queue", Group::Block),
    ("iot_bio_split", "block_split", Group::Block),
    ("iot_rq_issue", "block_rq_issue", Group::Block),
    ("iot_rq_complete", "block_rq_complete", Group::Block),
    ("iot_page_added", "mm_filemap_add_to_page_cache", Group::Pages),
    ("iot_throttled", "balance_dirty_pages", Group::Throttling),
    ("iot_fault_user", "page_fault_user", Group::Fault),
    ("iot_fault_kernel", "page_fault_kernel", Group::Fault),
    ("iot_fault_minor", "page-faults:min", Group::Fault),
    ("iot_fault_major", "page-faults:maj", Group::Fault),
    ("iot_dirty_folio", "writeback_dirty_folio", Group::Dirty),
];

/// Programs that are attached to events that the kernel counts.
pub const EVENTS: &[(&str, u64)] = &[("iot_fault_minor", perf::MINOR_FAULTS), ("iot_fault_major", perf::MAJOR_FAULTS)];

/// A tracepoint that has another name in older kernels (Linux 6.3).
const RENAMED: (&str, &str) = ("io_uring_submit_req", "io_uring_submit_sqe");

impl Group {
    /// Is it needed for these layers? `libraries`: is any of them one of libraries?
    pub fn serves(self, layers: &[Layer], libraries: bool) -> bool {
        match self {
            Self::Uring | Self::Pages | Self::Throttling => layers.contains(&Layer::Syscall),
            Self::Block | Self::Dirty => layers.contains(&Layer::Block),
            Self::Functions => layers.contains(&Layer::Fs),
            Self::Fault => layers.contains(&Layer::Vfs),
            Self::Library | Self::Question => libraries,
            // System calls also show mappings and carry handles up to the libraries' spans.
            Self::Process | Self::Syscall => true,
        }
    }

    /// Its programs; of libraries those of the best tier that works.
    pub fn programs(self, tier: Option<LibTier>) -> Vec<&'static str> {
        match (self, tier) {
            (Self::Library, Some(LibTier::Session)) => return vec!["iot_uprobe_session"],
            (Self::Library, Some(LibTier::Multi)) => return vec!["iot_uprobe_multi", "iot_uretprobe_multi"],
            (Self::Library, Some(LibTier::Single)) => return vec!["iot_uprobe", "iot_uretprobe"],
            (Self::Functions, _) => return functions::PROGRAMS.to_vec(),
            (Self::Question, Some(_)) => return vec!["iot_real_file"],
            _ => {}
        }
        self.hooks().map(|(program, _)| program).collect()
    }

    /// Its programs and what they hook into.
    pub fn hooks(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let renamed = if kernel::has_tracepoint(RENAMED.0) { RENAMED.1 } else { RENAMED.0 };
        HOOKS.iter().filter(move |(_, hook, group)| *group == self && *hook != renamed).map(|(p, h, _)| (*p, *h))
    }

    /// How its hooks are attached. The arguments of `balance_dirty_pages` are others in each kernel, so that the fields of its
    /// record are read instead, which have names.
    pub fn tier(self) -> &'static str {
        if self == Self::Throttling { "tracepoint" } else { "tp_btf" }
    }

    /// The layer its hooks show; process life cycle serves all of them.
    pub fn layer(self) -> Layer {
        match self {
            Self::Block | Self::Dirty => Layer::Block,
            Self::Functions | Self::Fault => Layer::Vfs,
            Self::Library | Self::Question => Layer::App,
            Self::Process | Self::Syscall | Self::Uring | Self::Pages | Self::Throttling => Layer::Syscall,
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
