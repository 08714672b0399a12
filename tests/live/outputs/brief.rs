//! Functions whose calls are shorter than their probe lose it while the trace runs. What they moved stays exact, how often they
//! were called is estimated, and marked so.

use crate::common::live::{self, Data, Traced};
use crate::common::{programs, sql};
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::FileRollup;
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Calls by function with the error of their number; bytes read and written by name of the file.
#[derive(Default)]
struct Seen {
    calls: BTreeMap<String, (i64, i64)>,
    files: BTreeMap<String, [i64; 2]>,
}

impl Seen {
    fn of(dir: &Path, data: &Data) -> Self {
        let mut seen = Self::default();
        let mut add = |op: &str, kind: Kind, file: Option<i32>, calls: i64, bytes: i64, error: i64| {
            let sum = seen.calls.entry(op.to_owned()).or_default();
            *sum = (sum.0 + calls, sum.1 + error);
            let path = file.and_then(|id| data.files[&id].path.clone()).unwrap_or_default();
            let moved = seen.files.entry(path.rsplit('/').next().unwrap().to_owned()).or_default();
            match kind {
                Kind::Read => moved[0] += bytes,
                Kind::Write => moved[1] += bytes,
                _ => {}
            }
        };
        for span in data.layer(Layer::Stdio).filter(|s| s.flags & flag::SUMMED == 0) {
            add(span.op, span.kind, span.file_id, 1, span.bytes.unwrap_or(0), 0);
        }
        let set = Dataset::open(dir).unwrap();
        set.rows::<FileRollup>(|row| {
            if row.layer == Layer::Stdio {
                let error = row.calls_error.unwrap_or(0);
                add(row.op, row.kind, row.file_id, row.calls, row.bytes, error);
            }
            Ok(())
        })
        .unwrap();
        seen
    }
}

fn brief(work: &Path, options: &[&str], calls: &str) -> (Value, Traced) {
    let dir = work.join("files");
    fs::create_dir(&dir).unwrap();
    let program = programs::build("brief");
    let traced = live::trace(work, options, &[program.as_path(), &dir, Path::new(calls)]);
    (serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap(), traced)
}

fn files(truth: &Value) -> BTreeMap<String, [i64; 2]> {
    let two = |pair: &Value| [0, 1].map(|at| pair[at].as_i64().unwrap());
    truth["files"].as_object().unwrap().iter().map(|(name, pair)| (name.clone(), two(pair))).collect()
}

#[test]
fn bytes_are_exact_and_the_number_of_calls_is_within_its_error() {
    let work = live::scratch();
    let (truth, traced) = brief(work.path(), &[], "400000");
    let data = traced.data().lossless();
    let seen = Seen::of(&traced.dir, &data);
    for (name, moved) in files(&truth) {
        assert_eq!(seen.files.get(&name), Some(&moved), "{name}");
    }
    for (function, calls) in truth["calls"].as_object().unwrap() {
        let (found, error) = seen.calls[function];
        let calls = calls.as_i64().unwrap();
        assert!(
            found.abs_diff(calls) <= 3 * error.unsigned_abs() + 1,
            "{function}: {found} for {calls}, error {error}"
        );
        let printed = data.calls(function).count() as i64;
        assert!(printed < calls / 2, "{function}: {printed} of {calls} were recorded one by one");
    }
    // What fills and empties buffers is there in their place, with the system calls in it.
    for (slow, call) in [("_IO_file_overflow", "write"), ("_IO_file_underflow", "read")] {
        assert!(data.calls(slow).count() > 1000, "{slow}");
        let inside = data.calls(call).filter(|s| data.parent(s).is_some_and(|p| p.op == slow)).count();
        assert!(inside > 1000, "{call} in {slow}: {inside}");
    }
    // Calls whose return probe went are among the estimated ones, and nothing is inside them.
    assert_eq!(data.spans.iter().filter(|s| s.flags & flag::UNFINISHED != 0).count(), 0);
    assert!(data.calls("pwrite64").all(|s| s.parent_id.is_none()));
    let mut demoted: Vec<&str> =
        data.coverage.iter().filter(|c| c.status == "demoted").map(|c| c.symbol.as_str()).collect();
    demoted.sort_unstable();
    assert_eq!(demoted, ["fgetc", "fputc", "fputs", "fread", "fwrite", "putc"]);
    sql::compare(&traced.dir);
    let line = traced.report.lines().find(|line| line.starts_with("ESTIMATED")).unwrap();
    assert!(line.contains("fgetc, fputc, fputs, fread, fwrite, putc"), "{line}");
}

#[test]
fn without_a_budget_every_call_is_recorded() {
    let work = live::scratch();
    let (truth, traced) = brief(work.path(), &["--max-overhead", "none"], "20000");
    let data = traced.data().lossless();
    for (function, calls) in truth["calls"].as_object().unwrap() {
        assert_eq!(data.calls(function).count() as i64, calls.as_i64().unwrap(), "{function}");
    }
    let seen = Seen::of(&traced.dir, &data);
    for (name, moved) in files(&truth) {
        assert_eq!(seen.files.get(&name), Some(&moved), "{name}");
    }
    assert!(!traced.report.contains("ESTIMATED"), "{}", traced.report);
}

/// Sums of the kernel do not have the position of a stream: up to a buffer of each stream is missing that is open
/// when a function is demoted, here at most four times.
#[test]
fn summed_up_bytes_are_short_by_buffers_at_most() {
    let work = live::scratch();
    let (truth, traced) = brief(work.path(), &["--aggregate"], "400000");
    let data = traced.data().lossless();
    let seen = Seen::of(&traced.dir, &data);
    for (name, moved) in files(&truth) {
        for (found, moved) in seen.files[&name].into_iter().zip(moved) {
            let missing = moved - found;
            assert!((0..=4 * 4096).contains(&missing), "{name}: {found} of {moved}");
        }
    }
    assert!(data.coverage.iter().any(|c| c.status == "demoted" && c.symbol == "fgetc"));
}

/// Processes that come when functions are demoted already have no probes on them from their first call on.
#[test]
fn bytes_of_processes_that_come_later_are_exact_too() {
    let work = live::scratch();
    let dirs = ["first", "second"].map(|name| work.path().join(name));
    for dir in &dirs {
        fs::create_dir(dir).unwrap();
    }
    let program = programs::build("brief");
    let both = dirs.each_ref().map(|dir| format!("{} {} 100000", program.display(), dir.display()));
    let traced = live::trace(work.path(), &[], &["sh", "-c", &both.join(" && ")]);
    let data = traced.data().lossless();
    let truth: Vec<Value> = traced.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(truth.len(), 2);
    let seen = Seen::of(&traced.dir, &data);
    for (name, moved) in files(&truth[0]) {
        // The files of both have the same names.
        assert_eq!(seen.files.get(&name), Some(&moved.map(|bytes| 2 * bytes)), "{name}");
    }
    let fputc = |dir: &Path| data.calls("fputc").filter(|s| data.path(s).is_some_and(|p| p.starts_with(dir))).count();
    assert!(fputc(&dirs[0]) >= 4096);
    assert!(fputc(&dirs[1]) < 4096, "{} calls of fputc were recorded", fputc(&dirs[1]));
}
