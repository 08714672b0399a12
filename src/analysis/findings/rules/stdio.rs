//! How programs use the streams of the C library.

use std::collections::BTreeSet;

use super::{Rule, at_least, each, is_transfer, only, own};
use crate::analysis::findings::case::{Case, Found};
use crate::analysis::findings::groups::group::{BETWEEN, Group, IN_CALLS, LIBRARY, RUNQ};
use crate::base::text::{bytes, percent};
use crate::vocabulary::Layer;

pub const STDIO_TURNS: Rule = Rule {
    id: "stdio-turns",
    about: "a stream of stdio is read and written in turn: each turn drops its buffer, which is read again for the next record",
    advice: "read everything, change it in memory and write it in the end; or update in place with pread and pwrite, or a mapping",
    source: "fopen(3) on streams for update; counter RW_SWITCHES of Darshan; analysis rule A13",
    needs: &[Layer::Stdio, Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("calls", 1000.0, "reads after writes and writes after reads of a stream"),
        at_least("part", 0.2, "part of its reads and writes"),
        at_least("share", 0.1, "part of the run in calls of stdio"),
    ],
    sql: "SELECT host, file_id, count(*) FILTER (WHERE kind <> before) AS turns, count(*) AS calls FROM (SELECT *, lag(kind) OVER (PARTITION BY host, handle_id ORDER BY start_ns) AS before FROM spans WHERE layer = 'stdio' AND kind IN ('read', 'write')) GROUP BY ALL ORDER BY turns DESC",
    find: stdio_turns,
};

fn stdio_turns(case: &mut Case) -> Vec<Found> {
    let inside = case.pick(|group| group.key.called.0 == Layer::Stdio);
    let transfers = only(case, &inside, |group| own(group) && is_transfer(group.key.kind));
    let (turns, calls) = (case.sum(&transfers, |group| group.rare().turns), case.calls(&transfers));
    let took = case.seconds(&inside, &IN_CALLS);
    if (turns as f64) < case.threshold("calls")
        || (turns as f64) < case.threshold("part") * calls as f64
        || took < case.threshold("share") * case.run.wall
    {
        return Vec::new();
    }
    let moved = case.sum(&only(case, &inside, |group| group.key.layer == Layer::Syscall), |group| group.bytes);
    let asked = case.sum(&transfers, |group| group.bytes);
    let what = format!(
        "{turns} turns between reading and writing of a stream, {} each: {} moved for {}",
        each(took, turns),
        bytes(moved),
        bytes(asked)
    );
    case.found(what, inside, &IN_CALLS, (took * 0.7, took * 0.98))
}

pub const STDIO_BULK: Rule = Rule {
    id: "stdio-bulk",
    about: "much data goes through stdio a few bytes at a time: the C library itself takes the time, and not the system",
    advice: "move whole arrays in a call (fread, fwrite, read, write), map the file, or write numbers in binary in place of text",
    source: "Drishti S01; analysis rule A07",
    needs: &[Layer::Stdio, Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("bytes", 67_108_864.0, "moved through stdio"),
        at_least("size", 4096.0, "the mean size of a call is below this: larger ones pass the buffer by"),
        at_least("part", 0.5, "part of the time of these calls that is the library's own"),
        at_least(
            "nanoseconds",
            100.0,
            "a call of a demoted function takes this at most, with what the program does around it",
        ),
        at_least("share", 0.2, "part of the run"),
    ],
    sql: "SELECT host, op, file_id, count(*) AS calls, sum(bytes) AS bytes, sum(self_ns) / 1e9 AS library_s, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer = 'stdio' AND kind IN ('read', 'write') GROUP BY ALL UNION ALL SELECT host, op, file_id, sum(calls), sum(bytes), NULL, NULL FROM file_rollup WHERE layer = 'stdio' AND kind IN ('read', 'write') AND calls_error IS NOT NULL GROUP BY ALL ORDER BY bytes DESC",
    find: stdio_bulk,
};

fn stdio_bulk(case: &mut Case) -> Vec<Found> {
    let moves = |group: &Group| group.key.layer == Layer::Stdio && own(group) && is_transfer(group.key.kind);
    let size = case.threshold("size");
    let transfers = case.pick(|group| moves(group) && group.is_below(size));
    let brief = case.sum(&transfers, |group| group.rare().brief_calls);
    let calls = case.calls(&transfers).saturating_add(brief);
    let moved = case.sum(&transfers, |group| group.bytes.saturating_add(group.rare().brief_bytes));
    // Of functions that were demoted only the buffers between their calls are recorded.
    let buffers = case.pick(|group| group.key.refills() && own(group));
    let between = case.seconds(&buffers, &[BETWEEN]);
    let counts = between * 1e9 <= case.threshold("nanoseconds") * brief as f64;
    let (picked, parts): (Vec<usize>, &[usize]) =
        if counts { ([transfers, buffers].concat(), &[LIBRARY, BETWEEN]) } else { (transfers, &[LIBRARY]) };
    let called: BTreeSet<_> = picked.iter().map(|at| case.group(*at).key.called).collect();
    let inside = case.pick(|group| called.contains(&group.key.called));
    let library = case.seconds(&picked, parts);
    let outside = case.seconds(&picked, parts) - case.seconds(&picked, &[LIBRARY]);
    let took = case.seconds(&inside, &IN_CALLS) - case.seconds(&inside, &[RUNQ]) + outside;
    if (moved as f64) < case.threshold("bytes")
        || library < case.threshold("part") * took
        || library < case.threshold("share") * case.run.wall
    {
        return Vec::new();
    }
    let what = format!(
        "{} moved through stdio in {calls} calls of {}, {} of their time in the library itself",
        bytes(moved),
        bytes(moved / calls.max(1)),
        percent(library / took.max(1e-9))
    );
    case.found(what, picked, parts, (library * 0.4, library * 0.95))
}
