//! What programs and the layers below make of devices: more than was asked for, and at the same time.

use std::collections::{BTreeMap, BTreeSet};

use nix::errno::Errno;

use super::{Rule, at_least, is_transfer, only, own};
use crate::analysis::findings::Severity;
use crate::analysis::findings::case::{Case, Found};
use crate::analysis::findings::groups::group::{
    CPU, DEVICE, DEVQUEUE, FLUSH, Group, IN_CALLS, JOURNAL, LIBRARY, REMOTE, THROTTLE, WRITEBACK,
};
use crate::base::text::{bytes, time};
use crate::vocabulary::{Kind, LAYERS, Layer};

pub const DIRECT_MISALIGNED: Rule = Rule {
    id: "direct-misaligned",
    about: "direct reads or writes failed with EINVAL: memory, offset or size is no multiple of the device's block",
    advice: "align all three (posix_memalign, statx with STATX_DIOALIGN has the sizes), or open without O_DIRECT",
    source: "open(2), O_DIRECT; Drishti P07; analysis rule A08",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("calls", 1.0, "failed calls"), at_least("part", 0.01, "part of the direct calls")],
    sql: "SELECT host, op, file_id, spans.offset, req_bytes, count(*) AS calls FROM spans WHERE layer = 'syscall' AND flags & 8 != 0 AND errno = 22 GROUP BY ALL",
    find: direct_misaligned,
};

/// The program fails, or falls back to the page cache: which time that takes is not known.
fn direct_misaligned(case: &mut Case) -> Vec<Found> {
    let direct =
        case.everywhere(|group| group.key.layer == Layer::Syscall && group.key.direct && is_transfer(group.key.kind));
    let failed = only(case, &direct, |group| group.key.errno == Errno::EINVAL as i16);
    let (calls, all) = (case.calls(&failed), case.calls(&direct));
    if calls == 0 || (calls as f64) < case.threshold("calls") || (calls as f64) < case.threshold("part") * all as f64 {
        return Vec::new();
    }
    let op = failed.first().map_or("", |at| case.group(*at).key.op);
    let what = format!("{calls} of {all} direct reads and writes failed with EINVAL, first in {op}");
    vec![Found::without_time(what, failed, Severity::Warn)]
}

pub const OWN_WRITE_BACK: Rule = Rule {
    id: "own-write-back",
    about: "reads wait for the device while the kernel writes back what the same program wrote before",
    advice: "write to another device (burst buffer, local disk), write directly (O_DIRECT), or have data written back early \
             (sync_file_range, vm.dirty_background_bytes) so that it does not come all at once",
    source: "IOPro; analysis rule X14",
    needs: &[Layer::Syscall, Layer::Block],
    sums: false,
    one_node: true,
    thresholds: &[
        at_least("times", 1.5, "time of a read request during own write-back over that of one without"),
        at_least("requests", 20.0, "read requests of each kind"),
        at_least("bins", 5.0, "parts of 0.1 s with reads during own write-back"),
        at_least("waits", 0.3, "part of the time of reads that waited for the device"),
    ],
    sql: "SELECT host, device, floor(issue_ns / 1e8) AS bin, count(*) FILTER (WHERE op = 'read') AS reads, avg(dur_ns) FILTER (WHERE op = 'read') / 1e6 AS read_ms, sum(bytes) FILTER (WHERE class = 'writeback') AS written_back FROM block WHERE upper_dev IS NULL GROUP BY ALL ORDER BY bin",
    find: own_write_back,
};

fn own_write_back(case: &mut Case) -> Vec<Found> {
    let seen = case.run.own_write_back;
    let requests = case.threshold("requests");
    let reads = case
        .pick(|group| group.key.layer == Layer::Syscall && group.key.kind == Kind::Read && group.left(&[DEVICE]) > 0);
    let parts = [DEVQUEUE, DEVICE];
    let (waited, all) = (case.seconds(&reads, &parts), case.seconds(&reads, &IN_CALLS));
    if (seen.beside.0.min(seen.alone.0) as f64) < requests
        || (seen.bins as f64) < case.threshold("bins")
        || seen.times() < case.threshold("times")
        || waited < case.threshold("waits") * all
    {
        return Vec::new();
    }
    let part = seen.beside.1 / (seen.beside.1 + seen.alone.1).max(1e-9);
    let slowed = waited * part * (1.0 - 1.0 / seen.times());
    let what = format!(
        "reads took {:.1} times as long while {} that the program wrote were written back",
        seen.times(),
        bytes(seen.bytes)
    );
    case.found(what, reads, &parts, (slowed * 0.5, slowed))
}

pub const WRITE_AMPLIFICATION: Rule = Rule {
    id: "write-amplification",
    about: "far more of a file is written to the device than the program asked for, and that takes the time",
    advice: "of a library: chunks that fit what is written at once, a chunk cache that holds them (H5Pset_chunk_cache), \
             alignment; of the file system: changes that lie together in a file, in whole pages",
    source: "analysis rule X03",
    needs: &[Layer::Block, Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        // Headers and fill values of a library make half as much again of small files.
        at_least(
            "times",
            2.0,
            "bytes of the file on devices that traced processes made dirty over those that they wrote",
        ),
        at_least("bytes", 1_048_576.0, "more than that"),
    ],
    sql: "SELECT host, b.file_id, sum(b.bytes) AS on_devices, any_value(s.moved) AS in_calls FROM block_bytes b JOIN block USING (host, req_id) LEFT JOIN (SELECT host, file_id, sum(bytes) AS moved FROM spans WHERE kind = 'write' AND layer = 'syscall' GROUP BY ALL) s USING (host, file_id) WHERE op = 'write' AND upper_dev IS NULL AND b.process_ix IS NOT NULL GROUP BY ALL ORDER BY on_devices DESC",
    find: write_amplification,
};

/// Bytes of a file layer by layer: those that the program wrote, then what each layer below the call made of them. Calls of
/// demoted functions are the program's own, as most of them are.
fn chain(case: &Case, (file, of_file): (i32, &[usize]), device: i64) -> Vec<(&'static str, i64)> {
    let writes = only(case, of_file, |group| group.key.kind == Kind::Write && group.key.errno == 0);
    let layers = LAYERS.into_iter().filter(|layer| *layer <= Layer::Syscall);
    let demoted = layers.clone().map(|layer| case.demoted(file, layer)).fold(0, i64::saturating_add);
    let asked = case.sum(&only(case, &writes, own), |group| group.bytes).saturating_add(demoted);
    let mut steps = vec![("program", asked)];
    for layer in layers {
        let moved = case.sum(&only(case, &writes, |group| group.key.layer == layer), |group| group.bytes);
        let moved = moved.saturating_add(case.demoted(file, layer));
        if moved > 0 {
            steps.push((layer.name(), moved));
        }
    }
    steps.push(("device", device));
    steps
}

/// The layer that makes most of what it is given, and by how much.
fn largest_step(chain: &[(&'static str, i64)]) -> (&'static str, f64) {
    let steps = chain.windows(2).map(|pair| (pair[0].0, pair[1].1 as f64 / pair[0].1.max(1) as f64));
    steps.max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or(("program", 0.0))
}

fn write_amplification(case: &mut Case) -> Vec<Found> {
    let touches = |group: &Group| is_transfer(group.key.kind) || matches!(group.key.kind, Kind::Sync | Kind::Mmap);
    let mut files = BTreeMap::<i32, Vec<usize>>::new();
    for at in case.everywhere(touches) {
        if let Some(file) = case.group(at).key.file {
            files.entry(file).or_default().push(at);
        }
    }
    files.into_iter().filter_map(|(file, groups)| amplified(case, file, &groups)).flatten().collect()
}

fn amplified(case: &mut Case, file: i32, of_file: &[usize]) -> Option<Vec<Found>> {
    // What is written through a mapping is in no call; where another rule found a cause, that makes the bytes.
    let excludes = |group: &Group| {
        group.key.kind == Kind::Mmap
            || (group.key.kind != Kind::Read && group.is_claimed(&[CPU, LIBRARY, FLUSH, DEVICE]))
    };
    if of_file.iter().any(|at| excludes(case.group(*at))) {
        return None;
    }
    let device = case.run.written.get(&file).copied().unwrap_or(0);
    let chain = chain(case, (file, of_file), device);
    let asked = chain.first().map_or(0, |(_, bytes)| *bytes);
    let times = device as f64 / asked.max(1) as f64;
    let more = device.saturating_sub(asked) as f64;
    if asked <= 0 || times < case.threshold("times") || more < case.threshold("bytes") {
        return None;
    }
    let (by, step) = largest_step(&chain);
    let mine = only(case, of_file, |group| case.run.lane.processes.contains_key(&group.key.process));
    // Below system calls it is write-back, which calls wait for; above, all that the library's calls do is more.
    let kernel = by == Layer::Syscall.name();
    let waits = [THROTTLE, WRITEBACK, JOURNAL, FLUSH, DEVQUEUE, DEVICE];
    let (picked, parts): (Vec<usize>, &[usize]) = if kernel {
        (only(case, &mine, |group| group.key.layer == Layer::Syscall && group.key.kind != Kind::Read), &waits)
    } else {
        let writes = only(case, &mine, |group| group.key.called.0 < Layer::Syscall && group.key.kind == Kind::Write);
        let called: BTreeSet<_> = writes.iter().map(|at| case.group(*at).key.called).collect();
        (only(case, &mine, |group| called.contains(&group.key.called)), &IN_CALLS)
    };
    let took = case.seconds(&picked, parts) * (1.0 - 1.0 / times);
    let by = if kernel { "the file system" } else { by };
    let steps: Vec<String> = chain.iter().map(|(layer, moved)| format!("{layer} {}", bytes(*moved))).collect();
    let what = format!("{times:.1} times the bytes: {}; {by} makes {step:.1} times of it", steps.join(", "));
    Some(case.found(what, picked, parts, (took * 0.5, took)))
}

pub const NOT_OVERLAPPED: Rule = Rule {
    id: "not-overlapped",
    about: "the program waits for storage and computes by turns, and never at the same time",
    advice: "read ahead and write behind while it computes: a thread for I/O, MPI_File_iwrite, io_uring, the asynchronous VOL \
             of HDF5",
    source: "DFAnalyzer; analysis rule A10",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("turns", 5.0, "pauses of 10 ms and more between calls"),
        at_least("share", 0.3, "part of the run that it waits for storage, and that it is in no call"),
        at_least("milliseconds", 10.0, "what it waits for each pause"),
    ],
    sql: "SELECT host, op, file_id, count(*) AS calls, sum(device_ns + devqueue_ns + flush_ns + writeback_ns + remote_ns) / 1e9 AS waits_s FROM spans WHERE layer = 'syscall' AND layer_top GROUP BY ALL ORDER BY waits_s DESC",
    find: not_overlapped,
};

/// A pause between calls from which on it is work, in ns.
const PAUSE: i64 = 10_000_000;

/// Only what no other rule claims: a cause goes first. How much of it can be hidden the trace does not show.
fn not_overlapped(case: &mut Case) -> Vec<Found> {
    let calls = case.pick(|group| {
        let data = is_transfer(group.key.kind) || group.key.kind == Kind::Sync;
        group.key.layer == Layer::Syscall && data && !group.key.collective
    });
    let parts = [THROTTLE, WRITEBACK, JOURNAL, FLUSH, DEVQUEUE, DEVICE, REMOTE];
    let waited = case.seconds(&calls, &parts);
    let (turns, computed) = case.lane_pauses(PAUSE);
    let least = case.threshold("share") * case.run.wall;
    if (turns as f64) < case.threshold("turns")
        || waited.min(computed) < least
        || waited * 1e3 < case.threshold("milliseconds") * turns as f64
    {
        return Vec::new();
    }
    let length = |seconds: f64| time((seconds * 1e9) as i64);
    let what = format!("waits {} for storage and computes {}, in {turns} turns", length(waited), length(computed));
    let mut found = case.found(what, calls, &parts, (0.0, waited.min(computed)));
    for one in &mut found {
        one.severity = Some(Severity::Info);
    }
    found
}
