//! What this kernel allows, found by trial: the smallest program of each kind is loaded and attached.
//!
//! Kernel versions are never compared. libbpf's own feature probes are not enough: a kernel may load what
//! it refuses to attach.

pub(crate) mod btf;
pub mod calibrate;
pub mod counters;
pub mod detail;
pub(crate) mod functions;
pub mod hooks;
pub(crate) mod libbpf;
pub(crate) mod misses;
pub(crate) mod perf;
pub mod privileges;
pub mod programs;
pub mod rings;
pub(crate) mod spec;
pub mod sums;
pub mod trial;

use crate::loader::cache::Cache;
use crate::loader::code::elf;
use crate::loader::processes::maps;
use crate::skel::{OpenTrialSkel, TrialSkelBuilder};
use libbpf_rs::ReferencesType as _;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Struct, Typedef};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{PrintLevel, UprobeMultiOpts, UprobeOpts};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_getres};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::LazyLock;

/// How library probes are attached, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibTier {
    /// One program serves entry and return, one link per library (Linux 6.13).
    Session,
    /// Two links per library (Linux 6.6).
    Multi,
    /// Two perf events per function; slow to detach, so their number is capped.
    Single,
}

impl LibTier {
    /// The name in `coverage.tier`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "uprobe.session",
            Self::Multi => "uprobe.multi",
            Self::Single => "uprobe",
        }
    }
}

/// The verdicts on this kernel, in the order they were tried. `Err` holds the reason as the kernel gave it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Capabilities {
    pub session: Result<(), String>,
    pub multi: Result<(), String>,
    pub single: Result<(), String>,
    pub tp_btf: Result<(), String>,
}

impl Capabilities {
    /// The best tier that works.
    pub fn lib_tier(&self) -> Option<LibTier> {
        [(&self.session, LibTier::Session), (&self.multi, LibTier::Multi), (&self.single, LibTier::Single)]
            .into_iter()
            .find(|(verdict, _)| verdict.is_ok())
            .map(|(_, tier)| tier)
    }

    /// Is there all that a trace needs?
    fn suffices(&self) -> bool {
        self.lib_tier().is_some() && self.tp_btf.is_ok()
    }
}

thread_local! {
    /// Messages of libbpf on this thread.
    static LIBBPF_LOG: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}
const LOG_LINES: usize = 400;

fn keep(_level: PrintLevel, line: String) {
    LIBBPF_LOG.with_borrow_mut(|log| {
        if log.len() >= LOG_LINES {
            log.pop_front();
        }
        log.push_back(line);
    });
}

/// Makes libbpf write to memory instead of stderr; [`libbpf_log`] gives it back when something failed.
pub fn quiet_libbpf() {
    libbpf_rs::set_print(Some((PrintLevel::Info, keep)));
}

/// Messages of libbpf on this thread since the last call.
pub fn libbpf_log() -> String {
    LIBBPF_LOG.with_borrow_mut(|log| log.drain(..).collect())
}

/// Why something failed, in the kernel's own words: libbpf prints them, and the error alone is often only EINVAL.
pub fn reason(error: &libbpf_rs::Error) -> String {
    reason_in(error, &libbpf_log())
}

/// The same, and the program that was not loaded, if it was one.
pub fn refusal(error: &libbpf_rs::Error) -> (Option<String>, String) {
    let log = libbpf_log();
    (program_in(&log), reason_in(error, &log))
}

/// The program that libbpf named last.
fn program_in(log: &str) -> Option<String> {
    let named = log.lines().rev().find_map(|line| line.strip_prefix("libbpf: prog '"));
    named.and_then(|rest| rest.split('\'').next()).map(str::to_owned)
}

fn reason_in(error: &libbpf_rs::Error, log: &str) -> String {
    let line = log.lines().rev().find(|l| !["libbpf:", "--", "processed "].iter().any(|p| l.starts_with(p)));
    line.map_or_else(|| format!("{error:#}"), |line| format!("{error:#}: {line}"))
}

#[derive(Clone, Copy)]
enum Attempt {
    Session,
    Multi,
    Single,
    TpBtf,
}

fn trial(kind: Attempt, exe: &Path, entry: usize) -> Result<(), String> {
    let text = |e| reason(&e);
    libbpf_log();
    let mut store = MaybeUninit::uninit();
    let mut open: OpenTrialSkel<'_> = TrialSkelBuilder::default().open(&mut store).map_err(text)?;
    let progs = &mut open.progs;
    match kind {
        Attempt::Session => progs.iot_trial_session.set_autoload(true),
        Attempt::Multi => progs.iot_trial_multi.set_autoload(true),
        Attempt::Single => progs.iot_trial_uprobe.set_autoload(true),
        Attempt::TpBtf => progs.iot_trial_tp_btf.set_autoload(true),
    }
    let skel = open.load().map_err(text)?;
    let progs = &skel.progs;
    let opts = |session| UprobeMultiOpts { offsets: vec![entry], cookies: vec![1], session, ..Default::default() };
    let link = match kind {
        Attempt::Session => progs.iot_trial_session.attach_uprobe_multi_with_opts(-1, exe, "", opts(true)),
        Attempt::Multi => progs.iot_trial_multi.attach_uprobe_multi_with_opts(-1, exe, "", opts(false)),
        Attempt::Single => progs.iot_trial_uprobe.attach_uprobe_with_opts(
            -1,
            exe,
            entry,
            UprobeOpts { cookie: 1, ..Default::default() },
        ),
        Attempt::TpBtf => progs.iot_trial_tp_btf.attach(),
    };
    // The kernel takes its time to detach it, for which no thread has to wait.
    link.map(|link| drop(std::thread::Builder::new().spawn(move || drop(link)))).map_err(text)
}

/// The kernel's types, looked up once: to parse them takes some milliseconds.
#[derive(Default, Serialize, Deserialize)]
struct Types {
    /// Tracepoints, of those that are asked for.
    tracepoints: Vec<String>,
    word: Option<u32>,
    pause: Option<u32>,
}

/// Tracepoints that older kernels have under another name, or not at all.
const ASKED_FOR: [&str; 1] = ["io_uring_submit_req"];

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let cache = Cache::new("types.json", &());
    if let Some(known) = cache.as_ref().and_then(Cache::read) {
        return known;
    }
    let Ok(types) = Btf::from_vmlinux() else { return Types::default() };
    let is_there = |name: &&str| types.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}")).is_some();
    let casts = types.type_by_name::<Func<'_>>("bpf_rdonly_cast").is_some();
    let word = || Some(types.type_by_name::<Struct<'_>>("timespec64")?.type_id().into());
    let tracepoints = ASKED_FOR.into_iter().filter(is_there).map(str::to_owned).collect();
    // Before the last one, without the first one, which is no argument of the program.
    let pause = arguments(&types, "balance_dirty_pages").and_then(|n| n.checked_sub(3));
    let found = Types { tracepoints, word: casts.then(word).flatten(), pause };
    // Where it cannot be kept it is looked up again.
    let _ = cache.map(|cache| cache.write(&found));
    found
});

/// How many arguments a tracepoint has, by the type of its callbacks, whose first one is their own.
fn arguments(types: &Btf<'_>, tracepoint: &str) -> Option<u32> {
    let callback = types.type_by_name::<Typedef<'_>>(&format!("btf_trace_{tracepoint}"))?;
    let pointer: Ptr<'_> = callback.referenced_type().try_into().ok()?;
    let function: FuncProto<'_> = pointer.referenced_type().try_into().ok()?;
    u32::try_from(function.len()).ok()
}

static CUT: LazyLock<Option<File>> = LazyLock::new(btf::kernels);

/// The kernel's types, as far as our programs know them; `None`: all of them have to do.
pub fn types() -> Option<&'static File> {
    CUT.as_ref()
}

/// Does the running kernel have this tracepoint, one of `ASKED_FOR`?
pub fn has_tracepoint(name: &str) -> bool {
    TYPES.tracepoints.iter().any(|has| has == name)
}

/// The number of the type through which programs read words of the kernel's memory, if they may (Linux 6.2).
pub fn word_type() -> Option<u32> {
    TYPES.word
}

/// The argument of `balance_dirty_pages` with the time that a task is made to wait: it differs between kernels.
pub fn pause_argument() -> Option<u32> {
    TYPES.pause
}

/// How long a tick of the kernel is, in ns: the resolution of its coarse clocks (`KTIME_LOW_RES`,
/// kernel/time/posix-timers.c).
pub fn tick() -> u32 {
    let tick = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE);
    tick.ok().and_then(|tick| u32::try_from(tick.num_nanoseconds()).ok()).unwrap_or(0)
}

/// As much of an executable as holds its header and those of its segments.
const HEADERS: u64 = 64 * 1024;

/// Tries every kind on our own executable.
pub fn try_all() -> Result<Capabilities, String> {
    tries(true)
}

/// Looks up what is needed of the kernel's types, which takes some milliseconds, once.
pub fn prepare() {
    LazyLock::force(&CUT);
    LazyLock::force(&TYPES);
}

/// What a trace needs, as an earlier run with these privileges found it, or tried now.
pub(crate) fn known_or_tried() -> Result<Capabilities, String> {
    let status = std::fs::read("/proc/self/status").map_err(|e| format!("/proc/self/status: {e}"))?;
    let cache = Cache::new("kernel.json", &(privileges::missing(), maps::status(&status).seccomp));
    if let Some(known) = cache.as_ref().and_then(Cache::read::<Capabilities>).filter(Capabilities::suffices) {
        return Ok(known);
    }
    let found = tries(false)?;
    if found.suffices() {
        // Where it cannot be kept it is tried again.
        let _ = cache.map(|cache| cache.write(&found));
    }
    Ok(found)
}

fn tries(all: bool) -> Result<Capabilities, String> {
    let exe = Path::new("/proc/self/exe");
    let entry = entry(exe).map_err(|e| format!("{}: {e}", exe.display()))?;
    let mut works = false;
    let mut library = |kind| {
        if works && !all {
            return Err("not tried: a better one works".to_owned());
        }
        let verdict = trial(kind, exe, entry);
        works |= verdict.is_ok();
        verdict
    };
    let [session, multi, single] = [Attempt::Session, Attempt::Multi, Attempt::Single].map(&mut library);
    Ok(Capabilities { session, multi, single, tp_btf: trial(Attempt::TpBtf, exe, entry) })
}

/// The file offset of an executable's first instruction.
fn entry(exe: &Path) -> Result<usize, String> {
    let mut head = Vec::new();
    let file = File::open(exe).map_err(|e| e.to_string())?;
    file.take(HEADERS).read_to_end(&mut head).map_err(|e| e.to_string())?;
    elf::entry(&head).map_err(|e| e.to_string())?.map(|at| at as usize).ok_or_else(|| "no entry point".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_was_refused_is_the_last_one_named() {
        // As libbpf 1.7 reports it on Linux 6.1.
        let log = "libbpf: prog 'iot_fork': relo #0: matching candidate #0 [7] struct task_struct.tgid\n\
                    libbpf: prog 'iot_real_file': BPF program load failed: Invalid argument\n\
                    libbpf: prog 'iot_real_file': -- BEGIN PROG LOAD LOG --\n\
                    kfunc 'bpf_task_from_pid' is referenced but wasn't resolved\n\
                    -- END PROG LOAD LOG --\n\
                    libbpf: prog 'iot_real_file': failed to load: -22\n\
                    libbpf: failed to load object 'iotrace_bpf'\n";
        assert_eq!(program_in(log).as_deref(), Some("iot_real_file"));
        assert_eq!(program_in("libbpf: map 'iot_rings': failed to create\n"), None);
    }
}
