//! `iotrace-bpf runs`: runs below a directory are those that reports show, and the index is what `DuckDB` reads.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::sql::python;
use serde_json::Value;

fn tracer(arguments: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).arg(arguments[0]).arg(dir).args(&arguments[1..]).output().unwrap()
}

fn json(arguments: &[&str], dir: &Path) -> Value {
    let out = tracer(arguments, dir);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Recorded runs of several programs below a directory, at different depths.
fn all() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/report");
    for (name, to) in [("sqlite", "anna/sqlite"), ("tar", "tar"), ("fio", "2026/11/fio"), ("hdf5", "hdf5")] {
        let to = dir.path().join(to);
        fs::create_dir_all(&to).unwrap();
        let out = Command::new("cp").arg("-R").arg(fixtures.join(name)).arg(&to).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    dir
}

#[test]
fn runs_are_listed_as_their_reports_have_them() {
    let dir = all();
    let runs = json(&["runs", "--json"], dir.path());
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 4);
    assert!(runs.windows(2).all(|two| two[0]["start_ns"].as_i64() >= two[1]["start_ns"].as_i64()), "the newest first");
    for run in runs {
        let report = json(&["report", "--json"], &dir.path().join(run["path"].as_str().unwrap()));
        assert_eq!(run["command"], report["header"]["command"]);
        assert_eq!(run["start_ns"], report["header"]["start_wall_ns"]);
        assert_eq!(run["ranks"], report["header"]["ranks"]);
        assert_eq!(run["calls_s"], report["calls_s"]);
        let rules: Vec<&Value> =
            report["findings"].as_array().unwrap().iter().map(|finding| &finding["rule"]).collect();
        assert_eq!(run["findings"].as_array().unwrap().iter().collect::<Vec<_>>(), rules, "{run}");
    }

    let text = tracer(&["runs", "--where", "command~sqlite"], dir.path());
    let text = String::from_utf8(text.stdout).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    let last = text.lines().last().unwrap().trim();
    let (program, rest) = last.split_once(' ').unwrap();
    assert_eq!(program, "iotrace-bpf");
    let (report, path) = rest.split_once(' ').unwrap();
    assert!(tracer(&[report], Path::new(path)).status.success(), "{last}");
}

#[test]
fn the_index_is_what_duckdb_reads_and_is_used_again() {
    let dir = all();
    let runs = json(&["runs", "--json"], dir.path());
    let index = dir.path().join("runs.parquet");
    let script = "import duckdb, json, sys; print(json.dumps(duckdb.sql(f\"SELECT path, epoch_ns(start) AS start_ns, command, \
                  calls, read_bytes, written_bytes, findings FROM '{sys.argv[1]}' ORDER BY start DESC, path\").df().to_dict('records'), \
                  default=list))";
    let out = Command::new(python()).args(["-c", script]).arg(&index).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let read: Value = serde_json::from_slice(&out.stdout).unwrap();
    for (one, other) in runs.as_array().unwrap().iter().zip(read.as_array().unwrap()) {
        for (column, value) in other.as_object().unwrap() {
            assert_eq!(&one[column], value, "{column}");
        }
    }

    // Nothing has changed: the index stays. A run that is gone is gone from it, too.
    let made = fs::metadata(&index).unwrap().ino();
    assert_eq!(json(&["runs", "--json"], dir.path()), runs);
    assert_eq!(fs::metadata(&index).unwrap().ino(), made);
    fs::remove_dir_all(dir.path().join("tar")).unwrap();
    assert_eq!(json(&["runs", "--json"], dir.path()).as_array().unwrap().len(), 3);
    assert_ne!(fs::metadata(&index).unwrap().ino(), made);
    // One that cannot be read is made again.
    fs::write(&index, "no index").unwrap();
    let out = tracer(&["runs", "--top", "1"], dir.path());
    assert!(out.status.success() && String::from_utf8_lossy(&out.stderr).contains("it is made again"));
    assert!(json(&["runs", "--json", "--where", "ranks>1"], dir.path()).as_array().unwrap().len() == 1);
}

#[test]
fn a_wrong_condition_is_wrong_usage() {
    let out = tracer(&["runs", "--where", "owner=anna"], Path::new("/"));
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("is none of path, "));
}
