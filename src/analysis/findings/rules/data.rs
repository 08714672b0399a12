//! Reads, writes and flushes of programs.

use super::{Rule, at_least, each};
use crate::analysis::findings::case::{Case, Found};
use crate::analysis::findings::groups::group::{DEVICE, DEVQUEUE, Group, IN_CALLS, SLEEP};
use crate::base::text::{bytes, percent};
use crate::vocabulary::{Kind, Layer};

fn is_data(group: &Group) -> bool {
    group.key.layer == Layer::Syscall && matches!(group.key.kind, Kind::Read | Kind::Write) && group.key.errno == 0
}

/// The names of functions, those with the most calls first, at most two.
fn ops(case: &Case, picked: &[usize]) -> String {
    let mut names: Vec<(i64, &str)> = Vec::new();
    for at in picked {
        let group = case.group(*at);
        match names.iter_mut().find(|(_, op)| *op == group.key.op) {
            Some((calls, _)) => *calls = calls.saturating_add(group.calls),
            None => names.push((group.calls, group.key.op)),
        }
    }
    names.sort_by_key(|(calls, _)| std::cmp::Reverse(*calls));
    names.iter().take(2).map(|(_, op)| *op).collect::<Vec<_>>().join(" and ")
}

pub const SYNC_WRITES: Rule = Rule {
    id: "sync-writes",
    about: "each write waits until it is on the device: the file was opened with O_SYNC or O_DSYNC",
    advice: "open without O_SYNC, and call fdatasync once after a batch of writes",
    source: "open(2), O_SYNC and O_DSYNC",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("calls", 10.0, "writes")],
    sql: "SELECT host, spans.file_id, count(*) AS calls, sum(dur_ns) / 1e9 AS s FROM spans JOIN handles USING (host, handle_id) WHERE spans.kind = 'write' AND mode & 4096 != 0 GROUP BY ALL ORDER BY s DESC",
    find: sync_writes,
};

fn sync_writes(case: &mut Case) -> Vec<Found> {
    let writes = case.pick(|group| is_data(group) && group.key.synced);
    let calls = case.calls(&writes);
    if (calls as f64) < case.threshold("calls") {
        return Vec::new();
    }
    let took = case.seconds(&writes, &IN_CALLS);
    let left = case.run.transfer(Kind::Write, case.sum(&writes, |g| g.bytes));
    let one = took / calls as f64;
    let what = format!("{calls} writes with O_SYNC or O_DSYNC, {} each", each(took, calls));
    // A copy to the page cache for each, and one flush.
    let copies = calls as f64 * 3e-6;
    case.found(what, writes, &IN_CALLS, (took - left.1 - copies - 2.0 * one, took - left.0 - one))
}

pub const SYNC_PER_RECORD: Rule = Rule {
    id: "sync-per-record",
    about: "data is flushed to the device again and again, and each flush waits for write-back, the journal and the device",
    advice: "flush once after many records (group commit, one transaction for many changes); fdatasync in place of fsync",
    source: "fsync(2); analysis rule X11",
    needs: &[Layer::Syscall],
    sums: true,
    one_node: false,
    thresholds: &[at_least("calls", 10.0, "flushes")],
    sql: "SELECT host, op, file_id, count(*) AS calls, sum(dur_ns) / 1e9 AS s FROM spans WHERE kind = 'sync' AND layer = 'syscall' GROUP BY ALL ORDER BY s DESC",
    find: sync_per_record,
};

fn sync_per_record(case: &mut Case) -> Vec<Found> {
    let flushes = case.pick(|group| group.key.layer == Layer::Syscall && group.key.kind == Kind::Sync);
    let calls = case.calls(&flushes);
    if (calls as f64) < case.threshold("calls") {
        return Vec::new();
    }
    let took = case.seconds(&flushes, &IN_CALLS);
    let one = took / calls as f64;
    let what = format!("{calls} flushes by {}, {} each", ops(case, &flushes), each(took, calls));
    // One flush remains, which writes what all of them wrote.
    case.found(what, flushes, &IN_CALLS, (took * 0.9 - 4.0 * one, took - one))
}

pub const DIRECT_DEPTH_ONE: Rule = Rule {
    id: "direct-depth-one",
    about: "small direct reads or writes wait for one request at a time: the device is idle between them",
    advice: "move 1 MiB in a call, or keep many requests in flight (io_uring, libaio)",
    source: "open(2), O_DIRECT",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("calls", 100.0, "calls"),
        at_least("bytes", 131_072.0, "the mean size is below this"),
        at_least("waits", 0.15, "part of the time asleep for the device"),
    ],
    sql: "SELECT host, op, file_id, count(*) AS calls, avg(bytes) AS mean_bytes, sum(device_ns + devqueue_ns) / 1e9 AS s FROM spans WHERE flags & 8 != 0 GROUP BY ALL ORDER BY s DESC",
    find: direct_depth_one,
};

fn direct_depth_one(case: &mut Case) -> Vec<Found> {
    let size = case.threshold("bytes");
    let direct = case.pick(|group| is_data(group) && group.key.direct && group.mean_size() < size);
    let calls = case.calls(&direct);
    let took = case.seconds(&direct, &IN_CALLS);
    let waited = case.seconds(&direct, &[DEVICE, DEVQUEUE, SLEEP]);
    if (calls as f64) < case.threshold("calls") || waited < case.threshold("waits") * took {
        return Vec::new();
    }
    let moved = case.sum(&direct, |group| group.bytes);
    let what = format!(
        "{calls} direct calls of {}, {} and {} each, one at a time",
        ops(case, &direct),
        bytes(moved / calls.max(1)),
        each(took, calls)
    );
    // Requests of 1 MiB, each of which begins as a small one does, and the bytes at the speed of the device. A small one is
    // in it longer for its begin than for its bytes.
    let begin = (moved as f64 / 1_048_576.0).max(1.0) * took / calls as f64;
    let most = case.seconds(&direct, &[DEVICE]) / 2.0;
    let (fast, slow) = case.run.direct(moved);
    case.found(what, direct, &IN_CALLS, (took - begin * 2.0 - slow.min(most), took - begin - fast.min(most)))
}

pub const PARTIAL_PAGE_OVERWRITE: Rule = Rule {
    id: "partial-page-overwrite",
    about: "writes of parts of pages that are not in the page cache read the rest of each page first",
    advice: "write whole pages: sizes and offsets that are multiples of 4096, or read the file ahead of time",
    source: "block_write_begin and iomap_write_begin of the kernel",
    needs: &[Layer::Syscall, Layer::Block],
    sums: false,
    one_node: false,
    thresholds: &[at_least("calls", 20.0, "writes"), at_least("waits", 0.3, "part of the time asleep for the device")],
    sql: "SELECT host, file_id, count(*) AS calls, sum(device_ns) / 1e9 AS s FROM spans WHERE kind = 'write' AND layer = 'syscall' AND flags & 8 = 0 AND device_ns > 0 GROUP BY ALL",
    find: partial_page_overwrite,
};

fn partial_page_overwrite(case: &mut Case) -> Vec<Found> {
    let writes = case.pick(|group| {
        let key = &group.key;
        is_data(group) && key.kind == Kind::Write && !key.direct && !key.synced && group.partial > group.calls / 2
    });
    let calls = case.calls(&writes);
    let parts = [DEVICE, DEVQUEUE, SLEEP];
    let (waited, took) = (case.seconds(&writes, &parts), case.seconds(&writes, &IN_CALLS));
    if (calls as f64) < case.threshold("calls") || waited < case.threshold("waits") * took {
        return Vec::new();
    }
    let what = format!("{calls} writes waited {} to read the rest of their pages first", percent(waited / took));
    // A copy to the page cache remains.
    let (fast, slow) = case.run.transfer(Kind::Write, case.sum(&writes, |group| group.bytes));
    case.found(what, writes, &IN_CALLS, (waited.max(took - slow).min(took - fast), took - fast))
}

pub const REREAD: Rule = Rule {
    id: "reread",
    about: "the same bytes of a file were read several times",
    advice: "read once and keep it in memory, share it between ranks (MPI_Bcast), or map the file",
    source: "analysis rule X05; Drishti P09",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("times", 2.0, "bytes read over the size of what was read"),
        at_least("bytes", 16_777_216.0, "read from the file"),
    ],
    sql: "SELECT host, file_id, sum(bytes) AS bytes, max(spans.offset + bytes) - min(spans.offset) AS extent FROM spans WHERE kind = 'read' AND layer = 'syscall' GROUP BY ALL ORDER BY bytes DESC",
    find: reread,
};

fn reread(case: &mut Case) -> Vec<Found> {
    let reads = case.pick(|group| is_data(group) && group.key.kind == Kind::Read && group.extent.is_some());
    let mut by_file = std::collections::BTreeMap::<i32, Vec<usize>>::new();
    for at in reads {
        if let Some(file) = case.group(at).key.file {
            by_file.entry(file).or_default().push(at);
        }
    }
    let mut found = Vec::new();
    for groups in by_file.into_values() {
        let read = case.sum(&groups, |group| group.bytes);
        let ends = groups.iter().filter_map(|at| case.group(*at).extent);
        let (from, to) = ends.fold((i64::MAX, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)));
        let times = read as f64 / to.saturating_sub(from).max(1) as f64;
        if times < case.threshold("times") || (read as f64) < case.threshold("bytes") {
            continue;
        }
        let took = case.seconds(&groups, &IN_CALLS);
        let again = took * (1.0 - 1.0 / times);
        let what = format!("{} read from {}, {times:.1} times", bytes(read), bytes(to.saturating_sub(from)));
        found.extend(case.found(what, groups, &IN_CALLS, (again * 0.8, again * 1.1)));
    }
    found
}

pub const RANDOM_READS: Rule = Rule {
    id: "random-reads",
    about: "small reads at scattered offsets wait for the device, one after the other",
    advice: "read in the order of the file, read larger pieces, or keep many requests in flight (io_uring, several threads)",
    source: "Drishti P11; analysis rule A03",
    needs: &[Layer::Syscall, Layer::Block],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("calls", 100.0, "reads"),
        at_least("bytes", 131_072.0, "the mean size is below this"),
        at_least("scattered", 0.5, "part of the reads that do not begin where the one before ended"),
        at_least("waits", 0.4, "part of the time asleep"),
    ],
    sql: "SELECT host, file_id, count(*) AS calls, avg(bytes) AS mean_bytes, sum(device_ns) / 1e9 AS s FROM spans WHERE kind = 'read' AND layer = 'syscall' AND miss_bytes > 0 GROUP BY ALL ORDER BY s DESC",
    find: random_reads,
};

fn random_reads(case: &mut Case) -> Vec<Found> {
    let (size, scattered) = (case.threshold("bytes"), case.threshold("scattered"));
    case.leaves_out_mixed();
    let reads = case.pick(|group| {
        is_data(group)
            && !group.mixed
            && group.key.kind == Kind::Read
            && !group.key.direct
            && group.mean_size() < size
            && (group.consecutive as f64) < (1.0 - scattered) * group.calls as f64
    });
    let calls = case.calls(&reads);
    let (waited, took) = (case.seconds(&reads, &[DEVICE, DEVQUEUE, SLEEP]), case.seconds(&reads, &IN_CALLS));
    if (calls as f64) < case.threshold("calls") || waited < case.threshold("waits") * took {
        return Vec::new();
    }
    let what = format!("{calls} scattered reads, {} each", each(took, calls));
    case.found(what, reads, &IN_CALLS, (waited * 0.6, took * 0.97))
}

pub const READAHEAD_SMALL: Rule = Rule {
    id: "readahead-small",
    about: "a file is read from begin to end, and each small read waits for the device: the kernel does not read ahead",
    advice: "take back the advice that access is random (posix_fadvise, madvise), raise read_ahead_kb of the device, or read 1 MiB in a call",
    source: "posix_fadvise(2); /sys/block/*/queue/read_ahead_kb",
    needs: &[Layer::Syscall, Layer::Block],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("calls", 100.0, "reads"),
        at_least("bytes", 131_072.0, "the mean size is below this"),
        at_least("consecutive", 0.8, "part of the reads that begin where the one before ended"),
        // Where a device answers in 20 us, the CPU takes longer for each page than the wait: a third is asleep, and
        // with read-ahead of 128 KiB the same run takes a seventeenth.
        at_least("waits", 0.2, "part of the time asleep"),
    ],
    sql: "SELECT host, file_id, count(*) AS calls, avg(bytes) AS mean_bytes, sum(miss_bytes) AS missed, sum(ahead_bytes) AS read_ahead, sum(device_ns) / 1e9 AS s FROM spans WHERE kind = 'read' AND layer = 'syscall' GROUP BY ALL ORDER BY s DESC",
    find: readahead_small,
};

fn readahead_small(case: &mut Case) -> Vec<Found> {
    let (size, consecutive) = (case.threshold("bytes"), case.threshold("consecutive"));
    case.leaves_out_mixed();
    let reads = case.pick(|group| {
        is_data(group)
            && !group.mixed
            && group.key.kind == Kind::Read
            && !group.key.direct
            && group.mean_size() < size
            && group.consecutive as f64 >= consecutive * group.calls as f64
            && group.miss > group.ahead
    });
    let calls = case.calls(&reads);
    let (waited, took) = (case.seconds(&reads, &[DEVICE, DEVQUEUE, SLEEP]), case.seconds(&reads, &IN_CALLS));
    if (calls as f64) < case.threshold("calls") || waited < case.threshold("waits") * took {
        return Vec::new();
    }
    let missed = case.sum(&reads, |group| group.miss);
    let what = format!(
        "{calls} reads in the order of the file waited for {} one by one, {} each",
        bytes(missed),
        each(took, calls)
    );
    case.found(what, reads, &IN_CALLS, (waited * 0.5, took * 0.9))
}

pub const STDIO_FLUSH: Rule = Rule {
    id: "stdio-flush",
    about: "a buffer of stdio is flushed after every few bytes",
    advice: "flush once in the end: leave fflush and std::endl out, and enlarge the buffer (setvbuf)",
    source: "Drishti S01; analysis rule X07",
    needs: &[Layer::Stdio, Layer::Syscall],
    sums: true,
    one_node: false,
    thresholds: &[
        at_least("calls", 1000.0, "flushes"),
        at_least("bytes", 2048.0, "the mean size of a write is below this"),
    ],
    sql: "SELECT op, count(*) AS calls, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer = 'stdio' AND op = 'fflush' GROUP BY ALL",
    find: stdio_flush,
};

fn stdio_flush(case: &mut Case) -> Vec<Found> {
    let inside = case.pick(|group| group.key.called == (Layer::Stdio, "fflush"));
    let number = |layer| inside.iter().filter(|at| case.group(**at).key.layer == layer).copied().collect::<Vec<_>>();
    let (flushes, writes) = (case.calls(&number(Layer::Stdio)), number(Layer::Syscall));
    let (calls, moved) = (case.calls(&writes), case.sum(&writes, |group| group.bytes));
    if (flushes as f64) < case.threshold("calls") || moved as f64 >= case.threshold("bytes") * calls as f64 {
        return Vec::new();
    }
    let took = case.seconds(&inside, &IN_CALLS);
    let what = format!("{flushes} calls of fflush, {} and {} each", bytes(moved / calls.max(1)), each(took, flushes));
    case.found(what, inside, &IN_CALLS, (took * 0.85, took * 0.99))
}

pub const SMALL_TRANSFERS: Rule = Rule {
    id: "small-transfers",
    about: "many system calls move a few bytes each: the calls cost the time, not the device",
    advice: "collect the data in a buffer and move 64 KiB or more in a call (stdio does; setvbuf, BufferedWriter)",
    source: "Drishti P05 and P06; analysis rules A01, A02 and X07",
    needs: &[Layer::Syscall],
    sums: true,
    one_node: false,
    thresholds: &[
        at_least("calls", 1000.0, "calls"),
        at_least("bytes", 2048.0, "the mean size is below this"),
        at_least("consecutive", 0.5, "part of them that begin where the one before ended"),
    ],
    sql: "SELECT host, op, file_id, count(*) AS calls, avg(bytes) AS mean_bytes, sum(dur_ns) / 1e9 AS s FROM spans WHERE kind IN ('read', 'write') AND layer = 'syscall' GROUP BY ALL ORDER BY s DESC",
    find: small_transfers,
};

fn small_transfers(case: &mut Case) -> Vec<Found> {
    let (size, consecutive, least) = (case.threshold("bytes"), case.threshold("consecutive"), case.threshold("calls"));
    let small = case.pick(|group| {
        is_data(group)
            && group.mean_size() < size
            && group.consecutive as f64 >= consecutive * group.calls as f64
            && group.calls as f64 >= least / 4.0
    });
    let calls = case.calls(&small);
    if (calls as f64) < least {
        return Vec::new();
    }
    let moved = case.sum(&small, |group| group.bytes);
    let took = case.seconds(&small, &IN_CALLS);
    let what = format!(
        "{calls} calls of {}, {} and {} each",
        ops(case, &small),
        bytes(moved / calls.max(1)),
        each(took, calls)
    );
    let left = (moved as f64 / 65_536.0).max(1.0) * 20e-6;
    case.found(what, small, &IN_CALLS, (took * 0.85 - left, took - left * 0.2))
}
