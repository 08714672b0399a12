//! Ranks that share files.

use super::{Rule, at_least, each, exchange, is_transfer, only, own};
use crate::HashMap;
use crate::analysis::findings::case::{Case, Found};
use crate::analysis::findings::groups::group::{Group, IN_CALLS, LIBRARY, RUNQ};
use crate::base::text::{bytes, time};
use crate::vocabulary::{Kind, Layer};

pub const DATA_SIEVING: Rule = Rule {
    id: "data-sieving",
    about: "independent writes with holes read the file back before they write (data sieving)",
    advice: "write collectively (MPI_File_write_all), set romio_ds_write=disable, or make each rank's part contiguous",
    source: "Thakur and others, Data Sieving and Collective I/O in ROMIO, 1999; analysis rule X01",
    needs: &[Layer::Mpiio, Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("share", 0.1, "bytes read back over bytes that were to be written"),
        at_least("calls", 10.0, "reads below writes"),
    ],
    sql: "SELECT w.op, sum(r.bytes) AS read_back FROM spans r JOIN spans w ON r.host IS NOT DISTINCT FROM w.host AND r.root_id = w.span_id WHERE r.layer = 'syscall' AND r.kind = 'read' AND w.kind = 'write' GROUP BY ALL",
    find: data_sieving,
};

fn data_sieving(case: &mut Case) -> Vec<Found> {
    let writes = only(case, &case.pick(|group| group.key.called.0 == Layer::Mpiio), |group| {
        !group.key.collective && group.key.called.1.contains("write")
    });
    let reads = only(case, &writes, |group| group.key.layer == Layer::Syscall && group.key.kind == Kind::Read);
    let back = case.sum(&reads, |group| group.bytes);
    let own = only(case, &writes, own);
    let asked = case.sum(&own, |group| group.asked);
    let calls = case.calls(&reads);
    if (calls as f64) < case.threshold("calls") || (back as f64) < case.threshold("share") * asked as f64 {
        return Vec::new();
    }
    let took = case.seconds(&writes, &IN_CALLS);
    // The others write their parts of the file at the same time.
    let left = case.run.transfer(Kind::Write, asked.saturating_mul(case.run.lane.ranks.max(1) as i64));
    let what = format!("writes of {} read {} back first", bytes(asked), bytes(back));
    // Each piece is a call of its own then, and what is read and written now does not show how many there are.
    case.found(what, writes, &IN_CALLS, (took * 0.4 - left.1 * 2.0, took - left.0))
}

pub const INDEPENDENT_STRIDED: Rule = Rule {
    id: "independent-strided",
    about: "ranks write or read many small pieces of a shared file independently, and each piece costs a slow call",
    advice: "set a file view and use collective calls (MPI_File_write_all, NC_COLLECTIVE, H5FD_MPIO_COLLECTIVE)",
    source: "Drishti M02 and M03; analysis rule X15. Where calls are fast, as in the page cache, collective I/O is slower: no finding",
    needs: &[Layer::Mpiio, Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("calls", 500.0, "independent calls, or pieces, of a rank"),
        at_least("bytes", 262_144.0, "the mean size is below this"),
        at_least("microseconds", 100.0, "the mean time of a system call"),
    ],
    sql: "SELECT op, count(*) AS calls, avg(req_bytes) AS mean_bytes, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer = 'mpiio' AND flags & 1 = 0 GROUP BY ALL ORDER BY s DESC",
    find: independent_strided,
};

fn independent_strided(case: &mut Case) -> Vec<Found> {
    if case.run.lane.ranks < 2 {
        return Vec::new();
    }
    let inside = case
        .pick(|group| !group.key.collective && group.key.called.0 <= Layer::Mpiio && group.key.called.0 != Layer::App);
    let pieces = only(case, &inside, |group| group.key.layer == Layer::Syscall && is_transfer(group.key.kind));
    let calls = case.calls(&pieces);
    let moved = case.sum(&pieces, |group| group.bytes);
    // With the locks that some libraries take around each piece.
    let system = only(case, &inside, |group| group.key.layer == Layer::Syscall);
    let took = case.seconds(&system, &IN_CALLS);
    // What a piece waits for a CPU, it costs no more than other pieces, and large ones may wait as long.
    let waits_for_cpu = case.seconds(&system, &[RUNQ]);
    let mean = (took - waits_for_cpu) / calls.max(1) as f64;
    // Opening a file is collective, too, and reads some.
    let transfers =
        |group: &Group| group.key.collective && group.key.layer < Layer::Syscall && is_transfer(group.key.kind);
    let collective = !case.pick(transfers).is_empty();
    if collective
        || (calls as f64) < case.threshold("calls")
        || moved as f64 >= case.threshold("bytes") * calls as f64
        || mean * 1e6 < case.threshold("microseconds")
    {
        return Vec::new();
    }
    // In a collective call aggregators write the parts of all ranks in large pieces, after an exchange.
    let messages = exchange(case);
    let all = moved.saturating_mul(case.run.lane.ranks as i64);
    let begin = (all as f64 / 4_194_304.0 + 1.0) * mean;
    // Where that is most of the pieces' time, too, they are not what is wrong.
    let (fast, slow) = case.run.transfer(Kind::Write, all);
    let what = format!(
        "{calls} pieces of {} written or read independently, {} each",
        bytes(moved / calls.max(1)),
        each(took, calls)
    );
    let left = (begin * 2.0 + fast + messages, begin * 10.0 + slow + messages * 3.0);
    case.found(what, system, &IN_CALLS, ((took - waits_for_cpu) * 0.85 - left.1, took - left.0))
}

pub const ONE_WRITER: Rule = Rule {
    id: "one-writer",
    about: "one rank moves the data of all the others",
    advice: "let all ranks write (parallel HDF5 or NetCDF, MPI_File_write_all), or raise cb_nodes",
    source: "Drishti M08 to M10; analysis rule X02",
    needs: &[Layer::Syscall],
    sums: true,
    one_node: false,
    thresholds: &[
        at_least("ranks", 4.0, "ranks"),
        at_least("share", 0.95, "part of the bytes that one rank moves"),
        at_least("bytes", 67_108_864.0, "moved by it"),
    ],
    sql: "SELECT rank, sum(bytes) AS bytes, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer = 'syscall' AND layer_top AND kind IN ('read', 'write') GROUP BY ALL ORDER BY bytes DESC",
    find: one_writer,
};

fn one_writer(case: &mut Case) -> Vec<Found> {
    // Aggregators of collective calls are meant to write for others.
    let data =
        |group: &Group| group.key.layer == Layer::Syscall && group.key.kind == Kind::Write && !group.key.collective;
    let mine = case.pick(data);
    let all = case.sum(&case.everywhere(data), |group| group.bytes);
    let own = case.sum(&mine, |group| group.bytes);
    let ranks = case.run.lane.ranks as f64;
    if ranks < case.threshold("ranks")
        || (own as f64) < case.threshold("share") * all as f64
        || (own as f64) < case.threshold("bytes")
    {
        return Vec::new();
    }
    let took = case.seconds(&mine, &IN_CALLS);
    let what = format!("one rank of {ranks} writes {} for all of them", bytes(own));
    let shared = took * (1.0 - 1.0 / ranks.min(4.0));
    // Where it has gathered the data, that ends, too: another copy of what it has of the others.
    let (gathered, _) = case.run.transfer(Kind::Write, (own as f64 * (1.0 - 1.0 / ranks)) as i64);
    case.found(what, mine, &IN_CALLS, (shared * 0.3, shared + gathered.min(case.run.outside())))
}

pub const COLLECTIVE_WAIT: Rule = Rule {
    id: "collective-wait",
    about: "ranks wait in collective calls for one that comes later",
    advice: "spread the work before the collective call evenly over the ranks; the file system is not the cause",
    source: "Darshan and Vampir on imbalance; analysis rule X09",
    needs: &[Layer::Mpiio],
    sums: true,
    one_node: false,
    thresholds: &[at_least("run_share", 0.2, "part of the run that the median rank waits longer than the last one")],
    sql: "SELECT rank, sum(self_ns) / 1e9 AS waits_s FROM spans WHERE layer = 'mpi' OR (layer = 'mpiio' AND flags & 1 = 1) GROUP BY ALL ORDER BY waits_s",
    find: collective_wait,
};

/// The rank that waits least is the one that the others wait for, while it is in no call: nothing is claimed.
fn collective_wait(case: &mut Case) -> Vec<Found> {
    let waits = case.everywhere(|group| group.waits() && case.rank(group).is_some());
    let mut by_rank = HashMap::<i32, i64>::default();
    for at in &waits {
        let group = case.group(*at);
        let sum = by_rank.entry(case.rank(group).unwrap_or(-1)).or_default();
        *sum = sum.saturating_add(group.time[LIBRARY]);
    }
    let mut ranks: Vec<(i64, i32)> = by_rank.into_iter().map(|(rank, ns)| (ns, rank)).collect();
    ranks.sort_unstable();
    let (Some((least, late)), Some((median, _))) = (ranks.first().copied(), ranks.get(ranks.len() / 2)) else {
        return Vec::new();
    };
    // What it computes longer than the others: all of them are late where there are fewer CPUs than ranks.
    let mut pauses: Vec<f64> =
        ranks.iter().filter(|(_, rank)| *rank != late).map(|(_, rank)| case.pauses(*rank)).collect();
    pauses.sort_by(f64::total_cmp);
    let longer = case.pauses(late) - pauses.get(pauses.len() / 2).copied().unwrap_or(0.0);
    let seconds = (median.saturating_sub(least) as f64 / 1e9).min(longer);
    if ranks.len() < 2 || seconds < case.threshold("run_share") * case.run.wall || !case.matters(seconds) {
        return Vec::new();
    }
    let what = format!("ranks wait {} in collective calls for rank {late}", time((seconds * 1e9) as i64));
    vec![Found { what, seconds, gain: (seconds * 0.5, seconds), groups: waits, severity: None }]
}

pub const RANK_IMBALANCE: Rule = Rule {
    id: "rank-imbalance",
    about: "one rank moves more data than the others, which are done before it",
    advice: "give each rank the same share of the data, or let aggregators move it (collective calls)",
    source: "Drishti P18 and P21; analysis rules A04 and A05",
    needs: &[Layer::Syscall],
    sums: true,
    one_node: false,
    thresholds: &[
        at_least("ranks", 4.0, "ranks"),
        at_least("times", 2.0, "bytes of the rank over the mean of all"),
        at_least("run_share", 0.1, "part of the run that an even distribution would save"),
    ],
    sql: "SELECT rank, sum(bytes) AS bytes, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer = 'syscall' AND layer_top AND kind IN ('read', 'write') GROUP BY ALL ORDER BY s DESC",
    find: rank_imbalance,
};

fn rank_imbalance(case: &mut Case) -> Vec<Found> {
    let data =
        |group: &Group| group.key.layer == Layer::Syscall && is_transfer(group.key.kind) && !group.key.collective;
    let mine = case.pick(data);
    let (own, all) = (case.sum(&mine, |group| group.bytes), case.sum(&case.everywhere(data), |group| group.bytes));
    let ranks = case.run.lane.ranks as f64;
    let mean = all as f64 / ranks.max(1.0);
    let times = own as f64 / mean.max(1.0);
    let took = case.seconds(&mine, &IN_CALLS);
    let saved = took * (1.0 - 1.0 / times.max(1.0));
    if ranks < case.threshold("ranks")
        || times < case.threshold("times")
        || saved < case.threshold("run_share") * case.run.wall
    {
        return Vec::new();
    }
    let what = format!("one rank moved {}, {times:.1} times the mean of {ranks} ranks", bytes(own));
    case.found(what, mine, &IN_CALLS, (saved * 0.7, saved))
}

pub const NONBLOCKING_BLOCKS: Rule = Rule {
    id: "nonblocking-blocks",
    about: "non-blocking MPI-IO calls read or write before they return: nothing overlaps with computation",
    advice: "use an implementation that carries them out in the background, move them to a thread of their own, or use \
             blocking collective calls",
    source: "Drishti M06 and M07; analysis rule X10",
    needs: &[Layer::Mpiio, Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("share", 0.8, "part of the bytes that is moved before the call returns"),
        at_least("run_share", 0.1, "part of the run in these calls"),
    ],
    sql: "SELECT a.op, sum(s.bytes) AS moved, sum(s.dur_ns) / 1e9 AS s FROM spans s JOIN spans a ON s.host IS NOT DISTINCT FROM a.host AND s.root_id = a.span_id WHERE s.layer = 'syscall' AND a.layer = 'mpiio' AND a.flags & 2 <> 0 GROUP BY a.op ORDER BY s DESC",
    find: nonblocking_blocks,
};

/// At most what the calls take can be overlapped, and nothing where the program has nothing to compute meanwhile.
fn nonblocking_blocks(case: &mut Case) -> Vec<Found> {
    let calls = case.pick(|group| group.key.called.0 == Layer::Mpiio && group.key.called.1.starts_with("MPI_File_i"));
    let asked = case.sum(&only(case, &calls, own), |group| group.asked);
    let inside = only(case, &calls, |group| group.key.layer == Layer::Syscall && is_transfer(group.key.kind));
    let moved = case.sum(&inside, |group| group.bytes);
    let took = case.seconds(&inside, &IN_CALLS);
    if asked <= 0
        || (moved as f64) < case.threshold("share") * asked as f64
        || took < case.threshold("run_share") * case.run.wall
    {
        return Vec::new();
    }
    let number = case.calls(&only(case, &calls, own));
    let what = format!("{number} non-blocking calls moved {} before they returned", bytes(moved));
    case.found(what, inside, &IN_CALLS, (0.0, took))
}

pub const COLLECTIVE_BROKEN: Rule = Rule {
    id: "collective-broken",
    about: "collective transfers of HDF5 or NetCDF reach MPI-IO as independent calls",
    advice: "ask H5Pget_mpio_no_collective_cause for the reason: conversion of types, filters, or a selection that is not \
             regular",
    source: "H5Pget_mpio_no_collective_cause of HDF5; analysis rule X16",
    needs: &[Layer::Mpiio],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("calls", 100.0, "independent calls below collective ones"),
        at_least("share", 0.5, "part of their bytes that they move"),
    ],
    sql: "SELECT h.op AS called, m.op, count(*) AS calls, sum(m.bytes) AS bytes, sum(m.dur_ns) / 1e9 AS s FROM spans m JOIN spans h ON m.host IS NOT DISTINCT FROM h.host AND m.root_id = h.span_id WHERE m.layer = 'mpiio' AND m.flags & 1 = 0 AND h.flags & 1 = 1 AND h.layer IN ('hdf5', 'netcdf') GROUP BY ALL ORDER BY s DESC",
    find: collective_broken,
};

fn collective_broken(case: &mut Case) -> Vec<Found> {
    let library = |layer: Layer| matches!(layer, Layer::Hdf5 | Layer::Netcdf | Layer::Pnetcdf);
    let calls = case.pick(|group| group.key.collective && library(group.key.called.0));
    let transfers = only(case, &calls, |group| group.key.layer == Layer::Mpiio && is_transfer(group.key.kind));
    let alone = only(case, &transfers, |group| !group.key.op.contains("_all"));
    let number = case.calls(&alone);
    let (moved, all) = (case.sum(&alone, |group| group.bytes), case.sum(&transfers, |group| group.bytes));
    if (number as f64) < case.threshold("calls") || (moved as f64) < case.threshold("share") * all as f64 {
        return Vec::new();
    }
    let Some(by) = alone.first().map(|at| case.group(*at).key.called.1) else { return Vec::new() };
    let broken = only(case, &calls, |group| alone.iter().any(|at| case.group(*at).key.called == group.key.called));
    let took = case.seconds(&broken, &IN_CALLS);
    let left = case.run.transfer(Kind::Write, moved);
    let what = format!("{by} is collective, and {number} independent calls of MPI-IO carry it out");
    case.found(what, broken, &IN_CALLS, ((took * 0.5 - left.1).max(0.0), took - left.0))
}
