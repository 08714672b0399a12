//! Causes that the kernel reports itself: errors, and what system calls slept for.

use std::collections::{BTreeMap, BTreeSet};

use nix::errno::Errno;

use super::{Rule, at_least, is_transfer, only};
use crate::analysis::findings::Severity;
use crate::analysis::findings::case::{Case, Found};
use crate::analysis::findings::groups::group::{
    BETWEEN, DEVICE, DEVQUEUE, Group, IN_CALLS, LOCK, PAGE, RUNQ, SLEEP, THROTTLE, WITH_LOOP, WRITEBACK,
};
use crate::base::text::{bytes, percent, time};
use crate::vocabulary::{Kind, Layer};

/// Errors that end runs, and never belong to looking for a file.
const FATAL: [Errno; 8] = [
    Errno::ENOSPC,
    Errno::EDQUOT,
    Errno::EIO,
    Errno::EFBIG,
    Errno::EMFILE,
    Errno::ENFILE,
    Errno::ESTALE,
    Errno::ENOMEM,
];

pub const ERRORS: Rule = Rule {
    id: "errors",
    about: "reads, writes, flushes or opens failed for want of space, quota, memory or descriptors, or by the device",
    advice: "free space, raise the quota or limit, or replace the device; then check that the program reports the error",
    source: "errno(3)",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("calls", 1.0, "failed calls")],
    sql: "SELECT op, errno, count(*) AS calls FROM spans WHERE layer = 'syscall' AND errno IN (5, 12, 23, 24, 27, 28, 116, 122) GROUP BY ALL",
    find: errors,
};

fn errors(case: &mut Case) -> Vec<Found> {
    let fatal = |errno: i16| FATAL.iter().any(|known| *known as i32 == i32::from(errno));
    let failed = case.everywhere(|group| {
        let kind = group.key.kind;
        group.key.layer == Layer::Syscall
            && fatal(group.key.errno)
            && matches!(kind, Kind::Read | Kind::Write | Kind::Sync | Kind::Open)
    });
    let mut by_error = BTreeMap::<i16, Vec<usize>>::new();
    for at in failed {
        by_error.entry(case.group(at).key.errno).or_default().push(at);
    }
    let least = case.threshold("calls") as i64;
    let mut found = Vec::new();
    for (errno, groups) in by_error {
        let calls = case.calls(&groups);
        if calls >= least {
            let name = Errno::from_raw(errno.into());
            let first = groups.first().map_or("", |at| case.group(*at).key.op);
            let what = format!("{calls} x {name:?} ({}), first in {first}", name.desc());
            found.push(Found::without_time(what, groups, Severity::Critical));
        }
    }
    found
}

pub const STUCK: Rule = Rule {
    id: "stuck",
    about: "a call had not returned for a long time when the trace ended",
    advice: "look at what it waits for: `kill -USR1` to the tracer, or key 6 of its dashboard, shows the stack in the kernel",
    source: "analysis rule X20",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("seconds", 10.0, "since the call began")],
    sql: "SELECT host, span_id, layer, op, pid, dur_ns / 1e9 AS s FROM spans WHERE flags & 64 != 0 ORDER BY s DESC",
    find: stuck,
};

fn stuck(case: &mut Case) -> Vec<Found> {
    let least = (case.threshold("seconds") * 1e9) as i64;
    let open = case.everywhere(|group| group.rare().stuck >= least);
    let Some(first) = open.iter().max_by_key(|at| case.group(**at).rare().stuck) else { return Vec::new() };
    let (group, since) = (case.group(*first), case.group(*first).rare().stuck);
    let op = if group.key.op.is_empty() { "call" } else { group.key.op };
    let what = format!("{} {op} had not returned for {}", group.key.layer, time(since));
    vec![Found::without_time(what, open, Severity::Critical)]
}

pub const CPU_WAIT: Rule = Rule {
    id: "cpu-wait",
    about: "system calls were ready to go on and waited for a CPU: the disk is not the cause",
    advice: "give the program its own CPUs: fewer processes on the node, or more CPUs for the job",
    source: "run_delay of /proc/PID/schedstat",
    needs: &[Layer::Syscall],
    sums: true,
    one_node: false,
    thresholds: &[at_least("share", 0.3, "part of the time of calls"), at_least("run_share", 0.1, "part of the run")],
    sql: "SELECT op, count(*) AS calls, sum(runq_ns) / 1e9 AS s FROM spans WHERE layer = 'syscall' AND layer_top GROUP BY op ORDER BY s DESC",
    find: cpu_wait,
};

fn cpu_wait(case: &mut Case) -> Vec<Found> {
    let calls = case.pick(|group| group.key.layer == Layer::Syscall);
    let all = case.seconds(&calls, &IN_CALLS);
    // Where no CPU is idle, the tracer's own threads have kept one from the program.
    let waited = case.seconds(&calls, &[RUNQ]) - case.run.tracing;
    if waited < case.threshold("share") * all || waited < case.threshold("run_share") * case.run.wall {
        return Vec::new();
    }
    let what = format!("system calls waited for a CPU, {} of their time", percent(waited / all));
    let most: Vec<usize> = calls.into_iter().filter(|at| case.group(*at).left(&[RUNQ]) > 0).collect();
    // Between its calls the program may have waited for one, too, which is not recorded: at most as large a part of that
    // time, and not longer than in its calls.
    let between = (case.run.wall - case.run.lane.busy as f64 / 1e9 - case.run.tracing).max(0.0) * waited / all;
    case.found(what, most, &[RUNQ], (waited * 0.7, waited + between.min(waited)))
}

pub const LOCK_WAIT: Rule = Rule {
    id: "lock-wait",
    about: "calls waited for a lock on a file, or for one that the kernel holds while another thread works on the same file",
    advice: "lock only the range that is written, give each process its own file or region, or use collective I/O",
    source: "fcntl(2), flock(2); contention_begin of the kernel",
    needs: &[Layer::Syscall],
    sums: true,
    one_node: false,
    thresholds: &[
        at_least("share", 0.2, "part of the time of calls on the files"),
        at_least(
            "bytes",
            1_048_576.0,
            "reads and writes count below this size: larger ones share what the file system can do",
        ),
    ],
    sql: "SELECT host, op, cmd, file_id, count(*) AS calls, sum(lock_ns) / 1e9 AS s FROM spans WHERE layer = 'syscall' AND lock_ns > 0 GROUP BY ALL ORDER BY s DESC",
    find: lock_wait,
};

fn lock_wait(case: &mut Case) -> Vec<Found> {
    let large = case.threshold("bytes");
    let small = |group: &Group| !is_transfer(group.key.kind) || group.sized == 0 || group.mean_size() < large;
    let calls = case.pick(|group| group.key.layer == Layer::Syscall && group.left(&[LOCK]) > 0 && small(group));
    let (waited, all) = (case.seconds(&calls, &[LOCK]), case.seconds(&calls, &IN_CALLS));
    if waited < case.threshold("share") * all {
        return Vec::new();
    }
    let (number, part) = (case.calls(&calls), percent(waited / all.max(1e-9)));
    let holder = case.holder(&calls).map_or_else(String::new, |holder| format!("; {holder}"));
    let what = format!("{number} calls waited for locks, {part} of their time{holder}");
    case.found(what, calls, &[LOCK], (waited * 0.7, waited))
}

pub const RETRIES: Rule = Rule {
    id: "retries",
    about: "reads and writes that cannot be carried out at once are tried again and again",
    advice: "wait until the descriptor is ready (poll, epoll) before the next try, or leave O_NONBLOCK out",
    source: "EAGAIN in read(2) and write(2); analysis rule A12",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("calls", 1000.0, "calls that failed with EAGAIN or EINTR")],
    sql: "SELECT host, op, errno, file_id, count(*) AS calls, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer = 'syscall' AND errno IN (4, 11) GROUP BY ALL ORDER BY s DESC",
    find: retries,
};

fn retries(case: &mut Case) -> Vec<Found> {
    let again = |errno: i16| [Errno::EAGAIN, Errno::EINTR].iter().any(|known| *known as i32 == i32::from(errno));
    let failed = case.pick(|group| {
        let key = &group.key;
        key.layer == Layer::Syscall && again(key.errno) && matches!(key.kind, Kind::Read | Kind::Write)
    });
    let calls = case.calls(&failed);
    if (calls as f64) < case.threshold("calls") {
        return Vec::new();
    }
    let took = case.seconds(&failed, &WITH_LOOP);
    let what = format!("{calls} reads or writes failed with EAGAIN or EINTR and were tried again");
    case.found(what, failed, &WITH_LOOP, (took * 0.3, took))
}

pub const DIRTY_THROTTLING: Rule = Rule {
    id: "dirty-throttling",
    about: "the kernel paused writers because too many pages were dirty: data is written faster than the limit allows",
    advice: "raise the limit (vm.dirty_ratio, /sys/class/bdi/*/max_ratio or max_bytes), spread the writes over time, or write \
             directly (O_DIRECT)",
    source: "balance_dirty_pages, Documentation/admin-guide/sysctl/vm.rst",
    needs: &[Layer::Syscall],
    sums: true,
    one_node: false,
    thresholds: &[at_least("share", 0.2, "part of the time of calls on the files")],
    sql: "SELECT host, file_id, count(*) AS calls, sum(throttle_ns) / 1e9 AS s FROM spans WHERE throttle_ns > 0 GROUP BY ALL ORDER BY s DESC",
    find: dirty_throttling,
};

/// Pages count for the limit whoever made them dirty.
fn dirty_throttling(case: &mut Case) -> Vec<Found> {
    let calls = case.pick(|group| group.key.layer == Layer::Syscall && group.left(&[THROTTLE]) > 0);
    let (paused, all) = (case.seconds(&calls, &[THROTTLE]), case.seconds(&calls, &IN_CALLS));
    if paused < case.threshold("share") * all {
        return Vec::new();
    }
    // A pause ends up to a tick later than the kernel says, which is sleep. Where few pages may be dirty, the same calls wait
    // for write-back of the page that they write to.
    let parts = [THROTTLE, WRITEBACK, SLEEP];
    let (waited, slept) = (case.seconds(&calls, &parts[..2]), case.seconds(&calls, &parts[2..]));
    let mut what = format!(
        "{} calls were paused because too many pages were dirty, {} of their time",
        case.calls(&calls),
        percent(paused / all.max(1e-9))
    );
    let [own, others] = case.run.written_back;
    if others > own {
        let part = percent(others as f64 / others.saturating_add(own) as f64);
        what += &format!("; {part} of what was written back, others had made dirty, or it was before the trace");
    }
    case.found(what, calls, &parts, (waited * 0.8, waited + slept))
}

pub const INTERFERENCE: Rule = Rule {
    id: "interference",
    about: "another process used the same device while calls waited for it",
    advice: "run them at different times or on different devices, or limit the other one (io.max, ionice)",
    source: "IOPro; block requests of all processes",
    needs: &[Layer::Syscall, Layer::Block],
    sums: false,
    one_node: true,
    thresholds: &[
        at_least("share", 0.2, "part of the device's bytes that the other process moved"),
        at_least("waits", 0.3, "part of the time of calls that waited for the device"),
    ],
    sql: "SELECT host, device, pid, sum(bytes) AS bytes, count(*) AS requests FROM block WHERE upper_dev IS NULL GROUP BY ALL ORDER BY bytes DESC",
    find: interference,
};

fn interference(case: &mut Case) -> Vec<Found> {
    let Some(other) = case.run.others.clone() else { return Vec::new() };
    let calls = case.pick(|group| {
        group.key.layer == Layer::Syscall
            && matches!(group.key.kind, Kind::Read | Kind::Write)
            && group.left(&[DEVICE]) > 0
    });
    let parts = [DEVQUEUE, DEVICE];
    let (waited, all) = (case.seconds(&calls, &parts), case.seconds(&calls, &IN_CALLS));
    if other.share < case.threshold("share") || waited < case.threshold("waits") * all {
        return Vec::new();
    }
    let part = waited * other.share;
    if !case.matters(part) {
        return Vec::new();
    }
    let what = format!(
        "process {} moved {} of the bytes of {} while these calls waited for it",
        other.pid,
        percent(other.share),
        other.device
    );
    case.found(what, calls, &parts, (part * 0.7, (part * 1.2).min(waited)))
}

pub const DEVICE_LIMIT: Rule = Rule {
    id: "device-limit",
    about: "the kernel held requests back before they reached the device: a limit of the control group or of the device",
    advice: "raise the limit (io.max, blkio.throttle.*) or ask the administrator: the device itself is faster",
    source: "Documentation/admin-guide/cgroup-v2.rst, IO",
    needs: &[Layer::Syscall, Layer::Block],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("share", 0.5, "part of the time of direct calls, or of reads, asleep without a request in the device"),
        at_least("calls", 4.0, "calls"),
    ],
    sql: "SELECT host, op, file_id, count(*) AS calls, sum(sleep_ns + devqueue_ns) / 1e9 AS s, sum(device_ns) / 1e9 AS device_s FROM spans WHERE layer = 'syscall' AND kind IN ('read', 'write') GROUP BY ALL ORDER BY s DESC",
    find: device_limit,
};

fn device_limit(case: &mut Case) -> Vec<Found> {
    let direct = case.pick(|group| {
        group.key.layer == Layer::Syscall && group.key.direct && matches!(group.key.kind, Kind::Read | Kind::Write)
    });
    let mut found = held_back(case, "direct calls", direct);
    // Reads through the page cache also sleep for servers: what they missed must have come from a device, and quickly.
    let reads = case.pick(|group| {
        group.key.layer == Layer::Syscall && !group.key.direct && group.key.kind == Kind::Read && group.miss > 0
    });
    let (from_devices, in_devices) = case.run.all_reads;
    let (missed, held) = (case.sum(&reads, |group| group.miss), case.seconds(&reads, &[SLEEP, DEVQUEUE]));
    // Of several nodes together it is not known whose requests were those of these reads.
    if case.run.one_node && from_devices >= missed / 2 && in_devices <= held * 0.3 {
        found.extend(held_back(case, "reads", reads));
    }
    found
}

fn held_back(case: &mut Case, which: &str, calls: Vec<usize>) -> Vec<Found> {
    let (held, all) = (case.seconds(&calls, &[SLEEP, DEVQUEUE]), case.seconds(&calls, &IN_CALLS));
    let number = case.calls(&calls);
    if held < case.threshold("share") * all || (number as f64) < case.threshold("calls") {
        return Vec::new();
    }
    let what = format!("{number} {which} slept {} before their requests reached the device", percent(held / all));
    case.found(what, calls, &[SLEEP, DEVQUEUE], (held * 0.7, held))
}

pub const COPY_UP: Rule = Rule {
    id: "copy-up",
    about: "opening a file of the lower layer of an overlay for writing copied all of it",
    advice: "keep files that are written outside of the image (a volume or bind mount), or mount with metacopy=on",
    source: "Documentation/filesystems/overlayfs.rst",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("milliseconds", 20.0, "the mean time of an open")],
    sql: "SELECT host, op, path_id, dur_ns / 1e6 AS ms FROM spans WHERE kind = 'open' AND layer = 'syscall' ORDER BY dur_ns DESC, host, span_id LIMIT 10",
    find: copy_up,
};

fn copy_up(case: &mut Case) -> Vec<Found> {
    let least = case.threshold("milliseconds") * 1e6;
    let opens = case.pick(|group| {
        let key = &group.key;
        let changes = key.kind == Kind::Open || (key.kind == Kind::Meta && CHANGES.contains(&key.op));
        key.layer == Layer::Syscall && changes && group.rare().copied_up as f64 >= least
    });
    let copied = case.wall(&opens, |group| group.rare().copied_up as f64);
    let Some(at) = opens.first() else { return Vec::new() };
    let what = format!("{} copied files of the lower layer ({})", case.group(*at).key.op, time((copied * 1e9) as i64));
    let parts: Vec<usize> = (0..BETWEEN).collect();
    case.found(what, opens, &parts, (copied * 0.85, copied))
}

/// Calls that copy a file up without opening it.
const CHANGES: [&str; 6] = ["chmod", "fchmodat", "chown", "fchownat", "truncate", "rename"];

pub const SWAP: Rule = Rule {
    id: "swap",
    about: "memory of the program was swapped out, and it waited until it was read back",
    advice: "give the job more memory (memory.max, --mem of Slurm) or make it use less",
    source: "requests of class swap; Documentation/admin-guide/mm/concepts.rst",
    needs: &[Layer::Block],
    sums: false,
    one_node: true,
    thresholds: &[at_least("requests", 200.0, "reads from swap space")],
    sql: "SELECT host, device, op, count(*) AS requests, sum(bytes) AS bytes, sum(dur_ns) / 1e9 AS s FROM block WHERE class = 'swap' GROUP BY ALL",
    find: swap,
};

pub const READAHEAD_WASTE: Rule = Rule {
    id: "readahead-waste",
    about: "scattered pages of a mapped file are read from the device, each with the pages around it, most of which are not used",
    advice: "madvise(MADV_RANDOM) on the mapping; better: sort the accesses, or read the file with large reads",
    source: "madvise(2); do_sync_mmap_readahead of the kernel; analysis rule X04",
    needs: &[Layer::Syscall, Layer::Block],
    sums: false,
    one_node: true,
    thresholds: &[
        at_least(
            "pieces",
            100.0,
            "pieces of the device that were read, and that neither a call asked for nor a loader mapped as code",
        ),
        at_least("bytes", 33_554_432.0, "of all of them"),
        at_least("backward", 0.25, "part of them that begin before the end of the one before"),
        at_least("size", 16_384.0, "bytes of a piece in the mean"),
    ],
    sql: "SELECT host, device, pid, class, count(*) AS requests, avg(bytes) AS mean_bytes, sum(dur_ns) / 1e9 AS s FROM block LEFT JOIN (SELECT DISTINCT host, req_id, true AS linked FROM block_links) USING (host, req_id) WHERE op = 'read' AND linked IS NULL GROUP BY ALL ORDER BY s DESC",
    find: readahead_waste,
};

/// The waits are page faults, and in no call: nothing is claimed.
fn readahead_waste(case: &mut Case) -> Vec<Found> {
    let reads = &case.run.device_reads;
    if (reads.bytes as f64) < case.threshold("bytes") {
        return Vec::new();
    }
    let asked = case.pick(|group| group.key.layer == Layer::Syscall && group.key.kind == Kind::Read);
    let by_calls = case.sum(&asked, |group| if group.key.direct { group.bytes } else { group.miss.max(group.ahead) });
    // Code may be all of what was read, up to its size.
    let others = by_calls.saturating_add(code(case));
    let share = 1.0 - others as f64 / reads.bytes.max(1) as f64;
    let (pieces, bytes_read) = (reads.pieces as f64 * share, reads.bytes as f64 * share);
    let seconds = (reads.seconds * share).min(case.run.outside());
    if share < 0.5
        || pieces < case.threshold("pieces")
        || bytes_read < case.threshold("bytes")
        || bytes_read < case.threshold("size") * pieces
        || (reads.backward as f64) < case.threshold("backward") * reads.pieces as f64
        || !case.matters(seconds)
    {
        return Vec::new();
    }
    let size = bytes((bytes_read / pieces.max(1.0)) as i64);
    let what = format!("page faults read {size} each from {} scattered pieces of a device", pieces as i64);
    // As many requests remain, each for a page: they cost no more than the cheapest of those that read more, and at best
    // as much less as they are smaller.
    let least = seconds * (PAGE as f64 * pieces / bytes_read).min(1.0);
    let most = (reads.requests as f64 * share * reads.cheapest()).clamp(least, seconds);
    vec![Found { what, seconds, gain: (seconds - most, seconds - least), groups: Vec::new(), severity: None }]
}

/// What the loaders of the C libraries for Linux read of a file before they map it: glibc and musl.
const HEADERS: [i64; 2] = [832, 960];

/// Bytes of programs and libraries that a loader mapped, at most: each maps parts of them twice.
fn code(case: &Case) -> i64 {
    let of_lane = case.pick(|group| group.key.layer == Layer::Syscall && group.key.file.is_some());
    let is_header = |group: &Group| {
        group.key.kind == Kind::Read && group.extent.is_some_and(|(from, to)| from == 0 && HEADERS.contains(&to))
    };
    let loaded: BTreeSet<_> =
        of_lane.iter().map(|at| case.group(*at)).filter(|group| is_header(group)).map(|group| group.key.file).collect();
    let maps = only(case, &of_lane, |group| group.key.kind == Kind::Mmap && loaded.contains(&group.key.file));
    let mut sizes = BTreeMap::<_, i64>::new();
    for group in maps.iter().map(|at| case.group(*at)) {
        let size = sizes.entry(group.key.file).or_default();
        *size = group.asked.max(*size);
    }
    sizes.into_values().fold(0, i64::saturating_add)
}

/// The waits are page faults, and in no call: nothing is claimed.
fn swap(case: &mut Case) -> Vec<Found> {
    let swapped = case.run.swapped;
    let seconds = swapped.seconds.min(case.run.outside());
    if (swapped.requests as f64) < case.threshold("requests") || !case.matters(seconds) {
        return Vec::new();
    }
    let what = format!("{} reads from swap space, {}", swapped.requests, bytes(swapped.bytes));
    vec![Found { what, seconds, gain: (seconds * 0.9, seconds), groups: Vec::new(), severity: None }]
}
