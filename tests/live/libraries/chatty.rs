//! Where MPI communicates all the time its probes are paused: the program hardly notices, how often it communicated
//! inside I/O is estimated, and a wait is seen again when I/O has become rare.

use crate::common::live::{self, Data, Traced};
use crate::common::{programs, sql};
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::FileRollup;
use iotrace_bpf::vocabulary::{Layer, flag};
use std::collections::BTreeMap;
use std::path::Path;

/// Of each rank.
const LATE: i64 = 20;
/// Ranks wait for each other in this.
const VIEW: &str = "MPI_File_set_view";
const WRITE: &str = "MPI_File_write_at_all";

fn chatty(work: &Path, options: &[&str], calls: i64, writes: i64) -> Traced {
    let command = [
        programs::openmpi("mpirun"),
        "--allow-run-as-root".to_owned(),
        "--oversubscribe".to_owned(),
        "-np".to_owned(),
        "2".to_owned(),
        programs::build("chatty").display().to_string(),
        work.join("file").display().to_string(),
        calls.to_string(),
        writes.to_string(),
    ];
    live::trace(work, options, &command)
}

/// Outermost calls of MPI by function: recorded, estimated, and the error of that.
fn mpi(dir: &Path, data: &Data) -> BTreeMap<String, [i64; 3]> {
    let mut calls = BTreeMap::<String, [i64; 3]>::new();
    for span in data.layer(Layer::Mpi).filter(|span| span.layer_top) {
        calls.entry(span.op.to_owned()).or_default()[0] += 1;
    }
    let set = Dataset::open(dir).unwrap();
    set.rows::<FileRollup>(|row| {
        if row.layer == Layer::Mpi {
            let sum = calls.entry(row.op.to_owned()).or_default();
            sum[1] += row.calls;
            sum[2] += row.calls_error.unwrap();
        }
        Ok(())
    })
    .unwrap();
    calls
}

#[test]
fn communication_is_paused_and_estimated_and_waits_are_seen_again() {
    const WRITES: i64 = 20_000;
    const FEW: i64 = 500;
    let all = live::scratch();
    let all = chatty(all.path(), &["--max-overhead", "none"], 5000, FEW);
    let data = all.data().lossless();
    assert!(!data.coverage.iter().any(|c| c.status == "paused"));
    assert!(!all.report.contains("PAUSED"), "{}", all.report);
    let each = mpi(&all.dir, &data);

    let work = live::scratch();
    let traced = chatty(work.path(), &[], 300_000, WRITES);
    let data = traced.data().lossless();
    // What the program called of MPI-IO is recorded, whatever it cost.
    assert_eq!([VIEW, WRITE].map(|op| data.calls(op).count() as i64), [2 * (WRITES + LATE); 2]);
    assert_eq!(data.calls(WRITE).map(|s| s.bytes.unwrap()).sum::<i64>(), 16 * 2 * (WRITES + LATE));
    let paused: Vec<_> = data.coverage.iter().filter(|c| c.status == "paused").collect();
    assert!(!paused.is_empty() && paused.iter().all(|c| c.layer == Layer::Mpi && c.reason.is_some()));
    assert!(traced.report.contains("PAUSED: calls of mpi"), "{}", traced.report);
    sql::compare(&traced.dir);

    // Of what all writes call there are as many as there should be.
    let found = mpi(&traced.dir, &data);
    let often = each.iter().filter(|(_, [calls, ..])| *calls >= 2 * FEW);
    let mut compared = 0;
    for (function, [calls, ..]) in often {
        let expected = calls / (2 * (FEW + LATE)) * 2 * (WRITES + LATE);
        let [recorded, estimated, error] = found[function];
        assert!(recorded < expected / 2, "{function}: {recorded} of {expected} were recorded one by one");
        let off = (recorded + estimated).abs_diff(expected);
        assert!(
            off <= 4 * error.unsigned_abs() + expected.unsigned_abs() / 10,
            "{function}: {recorded} and {estimated} for {expected}, error {error}"
        );
        compared += 1;
    }
    assert!(compared > 0, "{each:?}");
    assert_eq!(data.spans.iter().filter(|s| s.flags & flag::UNFINISHED != 0).count(), 0);

    // A rank comes late by 100 ms: the other one waits in MPI, inside its call of MPI-IO.
    let waits = |s: &&_| data.parent(s).is_some_and(|p| p.op == VIEW) && s.net_ns() > 80_000_000;
    let waits = data.layer(Layer::Mpi).filter(waits).count() as i64;
    assert!((LATE / 4..=LATE).contains(&waits), "{waits} waits of {LATE} were seen");
}
