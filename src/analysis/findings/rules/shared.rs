//! Ranks and the files between them: shared files in which they meet, and files of their own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Rule, at_least, each, only};
use crate::analysis::findings::Severity;
use crate::analysis::findings::case::{Case, Found};
use crate::analysis::findings::groups::group::{CPU, DEVICE, DEVQUEUE, Group, IN_CALLS, LOCK, REMOTE, RUNQ, SLEEP};
use crate::base::text::{bytes, percent};
use crate::vocabulary::{Kind, Layer};

fn is_write(group: &Group) -> bool {
    group.key.layer == Layer::Syscall && group.key.kind == Kind::Write && group.key.errno == 0
}

pub const CONFLICTING_RANKS: Rule = Rule {
    id: "conflicting-ranks",
    about: "ranks write the same bytes of a file, or read what another one wrote, and nothing orders them: what the file holds \
            depends on who was first",
    advice: "give each rank its own range, or flush between (MPI_File_sync, MPI_Barrier, MPI_File_sync; or close and open), \
             or MPI_File_set_atomicity",
    source: "MPI standard, consistency and semantics of files; Recorder; analysis rule A15",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least(
        "calls",
        1.0,
        "pairs of independent calls on the same bytes: those that overlap in time, and of \
                                          libraries those without a flush, close or lock of the first rank between",
    )],
    // The calls that begin before the end of an earlier one, by offset, of another rank: the furthest end of any rank, and
    // the furthest of another rank than that. Not each call with each other one: a shared file has too many.
    sql: "SELECT host, file_id, rank, count(*) AS calls FROM (SELECT *, CASE WHEN end_rank <> rank THEN furthest ELSE max(CASE WHEN end_rank <> rank THEN least(furthest, stop) END) OVER before END AS other_end, CASE WHEN write_rank <> rank THEN written ELSE max(CASE WHEN write_rank <> rank AND kind = 'write' THEN least(written, stop) END) OVER before END AS other_write FROM (SELECT *, max(stop) OVER before AS furthest, max_by(rank, stop) OVER before AS end_rank, max(CASE WHEN kind = 'write' THEN stop END) OVER before AS written, max_by(rank, CASE WHEN kind = 'write' THEN stop END) OVER before AS write_rank FROM (SELECT host, file_id, rank, kind, span_id, spans.offset AS first, spans.offset + bytes AS stop FROM spans WHERE layer = 'syscall' AND kind IN ('read', 'write') AND rank IS NOT NULL AND bytes > 0) AS accesses WINDOW before AS (PARTITION BY host, file_id ORDER BY first, rank, span_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS reached WINDOW before AS (PARTITION BY host, file_id ORDER BY first, rank, span_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS others WHERE other_write > first OR (kind = 'write' AND other_end > first) GROUP BY ALL ORDER BY calls DESC",
    find: conflicting_ranks,
};

/// Files with a finding of their own, those with most conflicts first.
const FILES: usize = 5;

/// It takes no time: the result may be wrong.
fn conflicting_ranks(case: &mut Case) -> Vec<Found> {
    let least = case.threshold("calls") as i64;
    let (conflicts, unseen) = case.conflicts();
    case.unseen = unseen;
    let mut files: Vec<_> = conflicts.into_iter().filter(|(_, conflicts)| conflicts.pairs() >= least).collect();
    files.sort_by_key(|(_, conflicts)| Reverse(conflicts.pairs()));
    let mut found = Vec::new();
    for (file, conflicts) in files.into_iter().take(FILES) {
        let how = match (conflicts.write_write, conflicts.read_write) {
            (both, 0) => format!("{both} x two writes"),
            (0, reads) => format!("{reads} x a write and a read"),
            (both, reads) => format!("{both} x two writes and {reads} x a write and a read"),
        };
        let (one, other) = conflicts.ranks;
        let most = bytes(conflicts.bytes);
        let what = format!("{how} of ranks on the same bytes, without order: ranks {one} and {other} on {most}");
        let transfers = case.everywhere(|group| group.key.layer == Layer::Syscall && group.key.file == Some(file));
        let groups = only(case, &transfers, |group| matches!(group.key.kind, Kind::Read | Kind::Write));
        found.push(Found::without_time(what, groups, Severity::Warn));
    }
    found
}

pub const MISALIGNED_SHARED: Rule = Rule {
    id: "misaligned-shared",
    about: "pieces of different ranks meet inside blocks or stripes of a shared file: each waits for the block that both need",
    advice: "make pieces begin and end on multiples of the stripe or block: H5Pset_alignment, nc__enddef with v_align, hint \
             nc_var_align_size of PnetCDF, striping_unit of MPI-IO, or padded records",
    source: "Drishti P08; analysis rule X17",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("part", 0.1, "part of the writes of all ranks to the file that meet another rank in a block"),
        at_least("size", 4096.0, "the mean size of a write: smaller ones are small, and not misaligned"),
        at_least(
            "waits",
            0.3,
            "part of their time: for the device, and for locks where their holder waits for it; in stripes or with O_DIRECT \
             for all locks",
        ),
    ],
    sql: "SELECT host, file_id, count(*) AS writes, count(*) FILTER (WHERE spans.offset % 4096 <> 0 OR (spans.offset + bytes) % 4096 <> 0) AS inside_blocks, sum(device_ns + lock_ns) / 1e9 AS s FROM spans WHERE layer = 'syscall' AND kind = 'write' AND rank IS NOT NULL GROUP BY ALL ORDER BY inside_blocks DESC",
    find: misaligned_shared,
};

/// The part of the time in which writes hold a lock that they wait for the device; the rest is what copying takes: others
/// may spin for the lock, which is time on a CPU, too.
fn held_for_device(case: &Case, writes: &[usize]) -> f64 {
    let seconds = |of: fn(&Group) -> i64| case.sum(writes, of) as f64 / 1e9;
    let waited = seconds(|group| group.time[DEVICE].saturating_add(group.time[DEVQUEUE]));
    let (_, copies) = case.run.transfer(Kind::Write, case.sum(writes, |group| group.bytes));
    let held = waited + seconds(|group| group.time[CPU]).min(copies);
    waited / held.max(1e-9)
}

fn misaligned_shared(case: &mut Case) -> Vec<Found> {
    let all = case.everywhere(|group| is_write(group) && group.key.file.is_some() && case.rank(group).is_some());
    let mut files = BTreeMap::<Option<i32>, Vec<usize>>::new();
    for at in all {
        files.entry(case.group(at).key.file).or_default().push(at);
    }
    let mut found = Vec::new();
    for (file, writes) in files {
        let (calls, meet) = (case.calls(&writes), case.sum(&writes, |group| group.rare().shared));
        let size = case.sum(&writes, |group| group.bytes) as f64 / calls.max(1) as f64;
        let part = meet as f64 / calls.max(1) as f64;
        if meet == 0 || part < case.threshold("part") || size < case.threshold("size") {
            continue;
        }
        let mine = only(case, &writes, |group| case.run.lane.processes.contains_key(&group.key.process));
        let locked = case.striped(file) || mine.iter().any(|at| case.group(*at).key.direct);
        // In the page cache of one node writers of a file wait for each other, aligned or not: for as long as the one
        // that goes on waits for the device, that is the cause.
        let parts: &[usize] = if locked { &[LOCK, DEVQUEUE, DEVICE, SLEEP, REMOTE] } else { &[LOCK, DEVQUEUE, DEVICE] };
        let held = if locked { 1.0 } else { held_for_device(case, &writes) };
        let waited = case.seconds(&mine, &parts[1..]) + held * case.seconds(&mine, &[LOCK]);
        let took = case.seconds(&mine, &IN_CALLS) - case.seconds(&mine, &[RUNQ]);
        if waited < case.threshold("waits") * took {
            continue;
        }
        let by = mine.first().map_or("", |at| case.group(*at).key.called.1);
        let what = format!(
            "{} of {calls} writes of ranks, {} each, meet another rank inside a block; {} of their time they wait for it (by {by})",
            percent(part),
            bytes(size as i64),
            percent(waited / took.max(1e-9))
        );
        // The first one to come to a block counts as meeting nobody. At best only copies of what all ranks write are left,
        // one after the other: who waits for the lock then waits for no more than these.
        let touched = (part * 2.0).min(1.0);
        let (copies, _) = case.run.transfer(Kind::Write, case.sum(&writes, |group| group.bytes));
        let most = (case.seconds(&mine, &IN_CALLS) - copies).max(waited * 0.98);
        found.extend(case.found(what, mine, parts, (waited * touched * 0.8, most * touched)));
    }
    found
}

pub const FILE_PER_PROCESS: Rule = Rule {
    id: "file-per-process",
    about: "each rank writes many files of its own: creating and closing them takes the time, not the data",
    advice: "write one shared file (MPI-IO, parallel HDF5, ADIOS2), one file for each node, or append records to one file for \
             each rank",
    source: "analysis rule A14",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("ranks", 2.0, "ranks"),
        at_least("files", 4.0, "files for each rank that no other one writes"),
        at_least("share", 0.1, "part of the run in opening with O_CREAT and closing files"),
    ],
    sql: "SELECT host, rank, count(DISTINCT file_id) AS files, sum(bytes) AS bytes FROM spans WHERE layer = 'syscall' AND kind = 'write' GROUP BY ALL ORDER BY files DESC",
    find: file_per_process,
};

fn file_per_process(case: &mut Case) -> Vec<Found> {
    let writes = case.everywhere(|group| is_write(group) && case.rank(group).is_some());
    let mut files = BTreeMap::<i32, BTreeSet<Option<i32>>>::new();
    for at in &writes {
        let group = case.group(*at);
        if let Some(file) = group.key.file {
            files.entry(file).or_default().insert(case.rank(group));
        }
    }
    let own = files.values().filter(|ranks| ranks.len() == 1).count() as f64;
    let ranks = case.run.lane.ranks as f64;
    let made = case.pick(|group| group.key.creates && group.key.errno == 0 && group.key.layer == Layer::Syscall);
    let took = case.seconds(&made, &IN_CALLS);
    if ranks < case.threshold("ranks")
        || own < case.threshold("files") * ranks
        || took < case.threshold("share") * case.run.wall
    {
        return Vec::new();
    }
    let opens = case.calls(&only(case, &made, |group| group.key.kind == Kind::Open));
    let what = format!(
        "{own} files that one rank each writes, {:.0} for each of {ranks} ranks; creating and closing one took {}",
        own / ranks,
        each(took, opens)
    );
    case.found(what, made, &IN_CALLS, (took * 0.7, took * 0.99))
}
