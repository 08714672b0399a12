//! The tracer's own share is taken off what it reports, and shown.

use crate::common::{live, programs};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::Layer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Functions, and the median of their times in ns.
type Times = BTreeMap<String, i64>;

/// What a call moves: so much that its copy is most of its time, and so little that what hooks add shows.
const BYTES: &str = "65536";
const CALLS: &str = "1000";
/// Rounds, of which the best counts: something else may run at any time. In each all is measured anew, one after the other: the
/// calls alone, what hooks cost on this machine, and the calls with hooks.
const ROUNDS: usize = 12;

const OF_LAYERS: [(Layer, [&str; 2]); 4] = [
    (Layer::Syscall, ["pwrite64", "pread64"]),
    (Layer::Stdio, ["fwrite", "fread"]),
    (Layer::Mpiio, ["MPI_File_write_at", "MPI_File_read_at"]),
    (Layer::Hdf5, ["H5Dwrite", "H5Dread"]),
];

fn untraced(program: &Path, file: &Path) -> Times {
    let out = Command::new(program).arg(file).args([BYTES, CALLS]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let times = String::from_utf8(out.stdout).unwrap();
    let time = |line: &str| line.split_once(' ').map(|(op, ns)| (op.to_owned(), ns.parse().unwrap()));
    times.lines().map(|line| time(line).unwrap()).collect()
}

/// The program's own calls: as recorded, and without hooks.
fn traced(program: &Path, file: &Path) -> [Times; 2] {
    let work = live::scratch();
    let command = [program.as_os_str(), file.as_os_str(), BYTES.as_ref(), CALLS.as_ref()];
    let options = ["--max-overhead", "none", "--layers", "hdf5,mpiio,stdio,syscall"];
    let tracer = live::tracer_with_cache(&work.path().join("cache"));
    let data = live::trace_by(tracer, work.path(), &options, &command).data().lossless();
    [|s: &Span| s.dur_ns, Span::net_ns].map(|time| {
        let median = |op: &str| {
            let mut times: Vec<i64> = data.calls(op).filter(|s| s.parent_id.is_none()).map(time).collect();
            times.sort_unstable();
            times[times.len() / 2]
        };
        OF_LAYERS.iter().flat_map(|(_, ops)| ops).map(|op| ((*op).to_owned(), median(op))).collect()
    })
}

/// Without hooks a layer's calls take what they take untraced, within a tenth; or at least half of what hooks add is off: the
/// slower code between cold caches that hooks leave behind is no part of the estimate.
fn is_right(alone: f64, recorded: f64, net: f64) -> bool {
    let error = (net - alone).abs();
    error <= 0.1 * alone || error <= 0.5 * (recorded - alone)
}

#[test]
fn most_of_what_hooks_add_is_taken_off() {
    let work = live::scratch();
    let (program, file) = (programs::build("net"), work.path().join("file"));
    let sum = |times: &Times, ops: &[&str]| ops.iter().map(|op| times[*op]).sum::<i64>() as f64;
    let mut wrong = Vec::new();
    for _ in 0..ROUNDS {
        let (alone, [recorded, net]) = (untraced(&program, &file), traced(&program, &file));
        // The figures of docs/schema.md.
        eprintln!("alone {alone:?}, recorded {recorded:?}, without hooks {net:?}");
        wrong = OF_LAYERS.to_vec();
        wrong.retain(|(_, ops)| {
            let [alone, recorded, net] = [&alone, &recorded, &net].map(|times| sum(times, ops));
            net > recorded || !is_right(alone, recorded, net)
        });
        if wrong.is_empty() {
            break;
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_run_that_is_mostly_tracing_begins_with_a_warning() {
    let work = live::scratch();
    let (from, to) = (work.path().join("from"), work.path().join("to"));
    fs::write(&from, vec![1; 200_000]).unwrap();
    let command = format!("dd bs=1 if={} of={}", from.display(), to.display());
    let traced = live::trace(work.path(), &[], &["sh", "-c", &command]);
    traced.data().lossless();
    let lines: Vec<&str> = traced.report.lines().take(3).collect();
    let (run, warning) = (lines[1], lines[2]);
    assert!(run.starts_with("run ") && run.contains("; tracing took ") && run.ends_with("% of it"), "{run}");
    assert!(warning.starts_with("WARNING: tracing took about ") && warning.contains("do not trust"), "{warning}");

    let json = live::tracer().args(["report", "--json"]).arg(&traced.dir).output().unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let of = |figure: &str| json["tracing"][figure].as_f64().unwrap();
    assert!(of("share") > 0.2 && of("share") < 1.0, "{}", json["tracing"]);
    assert!((of("share") - of("seconds") * 1e9 / of("run_ns")).abs() < 1e-9, "{}", json["tracing"]);
    assert!(of("ns_per_call") > 0.0);
}
