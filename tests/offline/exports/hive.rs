//! `export --to hive`: a tree of directories that `DuckDB` prunes, and that is still read by the report.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::sql::python;
use serde_json::Value;

/// Counts calls by partition, and how many files one of them needs.
const SCRIPT: &str = r#"
import duckdb, json, sys
calls = f"read_parquet('{sys.argv[1]}/**/spans-*.parquet', hive_partitioning = true, union_by_name = true)"
counts = duckdb.sql(f"SELECT date::VARCHAR, node, start::VARCHAR, count(*) FROM {calls} GROUP BY ALL ORDER BY ALL").fetchall()
plan = duckdb.sql(f"EXPLAIN SELECT sum(dur_ns) FROM {calls} WHERE start = {counts[0][2]}").fetchall()[0][1]
print(json.dumps({"counts": counts, "plan": plan}))
"#;

fn tracer(arguments: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).arg(arguments[0]).arg(dir).args(&arguments[1..]).output().unwrap()
}

/// All calls, as the report counts them.
fn calls(dir: &Path) -> i64 {
    let out = tracer(&["report", "--json"], dir);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let layers = report["layers"].as_array().unwrap().iter().filter(|row| row["layer"] != "block");
    layers.flat_map(|row| row["ops"].as_array().unwrap()).map(|op| op["calls"].as_i64().unwrap()).sum()
}

#[test]
fn datasets_become_partitions_that_queries_prune_and_reports_read() {
    let work = tempfile::tempdir().unwrap();
    let all = work.path().join("all");
    fs::create_dir(&all).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/report");
    for name in ["sqlite", "hdf5"] {
        let out = Command::new("cp").arg("-R").arg(fixtures.join(name)).arg(&all).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    let tree = work.path().join("tree");
    let export = || {
        let out = tracer(&["export", "--to", "hive", "-o", tree.to_str().unwrap()], &all);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert_eq!(export(), "");

    let out = Command::new(python()).args(["-c", SCRIPT]).arg(&tree).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let read: Value = serde_json::from_slice(&out.stdout).unwrap();
    let counts = read["counts"].as_array().unwrap();
    assert_eq!(counts.len(), 2, "{counts:?}");
    for row in counts {
        let [date, node, start] = [0, 1, 2].map(|at| row[at].as_str().unwrap());
        assert_eq!(calls(&tree.join(format!("date={date}/node={node}/start={start}"))), row[3].as_i64().unwrap());
    }
    let all_calls: i64 = counts.iter().map(|row| row[3].as_i64().unwrap()).sum();
    assert_eq!(all_calls, calls(&all.join("sqlite")) + calls(&all.join("hdf5")));
    assert!(read["plan"].as_str().unwrap().contains("Scanning Files: 1/2"), "{}", read["plan"]);

    let files = |dir: &Path| Command::new("find").arg(dir).arg("-type").arg("f").output().unwrap().stdout;
    // Under sudo the tree is the caller's, and the parts, which are links to those of somebody else, stay whose they are.
    if nix::unistd::geteuid().is_root() {
        let by_sudo = work.path().join("by-sudo");
        let mut command = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
        command.arg("export").arg(&all).args(["--to", "hive", "-o"]).arg(&by_sudo);
        assert!(command.env("SUDO_UID", "65534").env("SUDO_GID", "65534").status().unwrap().success());
        let owner = |path: &Path| fs::metadata(path).unwrap().uid();
        let parts = files(&all);
        assert!(String::from_utf8_lossy(&parts).lines().all(|part| owner(Path::new(part)) == 0));
        assert_eq!(owner(&by_sudo), 65534);
    }

    // What is there stays; what is not complete is left out and named.
    let before = files(&tree);
    assert_eq!(export(), "");
    assert_eq!(files(&tree), before);
    fs::remove_file(all.join("sqlite/meta-00002.parquet")).unwrap();
    assert!(export().contains("not complete yet, left out"));
}
