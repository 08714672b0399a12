//! A trace that ends enters its run into the index of runs.

use crate::common::live;
use crate::common::sql;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::{Command, Output};

/// Records a command that writes so many blocks of 1 KiB.
fn recorded(dir: &Path, options: &[&str], blocks: u32) -> Output {
    let file = dir.parent().unwrap().join("file");
    let mut tracer = live::tracer();
    tracer.args(["--layers", "syscall"]).args(options).arg("-o").arg(dir).args(["--", "dd", "if=/dev/zero", "bs=1k"]);
    let out = tracer.args([format!("of={}", file.display()), format!("count={blocks}")]).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    out
}

fn listed(dir: &Path) -> Vec<Value> {
    let out = live::tracer().arg("runs").arg(dir).arg("--json").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Paths and bytes written of the index, as `DuckDB` reads it.
fn in_index(dir: &Path) -> Vec<(String, i64)> {
    let script = "import duckdb, json, sys; print(json.dumps(duckdb.sql(f\"SELECT path, written_bytes FROM \
                  '{sys.argv[1]}/runs.parquet' ORDER BY path\").fetchall()))";
    let out = Command::new(sql::python()).args(["-c", script]).arg(dir).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn a_trace_enters_its_run_into_an_index_that_there_is() {
    let work = live::scratch();
    let all = work.path().join("all");
    fs::create_dir_all(all.join("anna")).unwrap();
    recorded(&all.join("first"), &[], 7);
    assert!(!all.join("runs.parquet").exists(), "nothing has asked for an index");
    assert_eq!(listed(&all).len(), 1);

    // The same command twice, without a report, and in periods: one run each.
    recorded(&all.join("anna/second"), &[], 7);
    recorded(&all.join("third"), &["--quiet"], 9);
    recorded(&all.join("periods"), &["--rotate-time", "1h"], 11);
    let index = in_index(&all);
    let bytes = |path: &str| index.iter().find(|(own, _)| own == path).map(|(_, bytes)| *bytes);
    let expected = [("anna/second", 7), ("first", 7), ("third", 9)];
    for (path, blocks) in expected {
        // dd writes its summary, too.
        let written = bytes(path).unwrap_or_default();
        assert!((blocks << 10..(blocks + 1) << 10).contains(&written), "{path}: {index:?}");
    }
    assert_eq!(index.len(), 4, "{index:?}");
    // A list of all runs finds nothing to add.
    let made = fs::metadata(all.join("runs.parquet")).unwrap().ino();
    assert_eq!(listed(&all).len(), 4);
    assert_eq!(fs::metadata(all.join("runs.parquet")).unwrap().ino(), made);

    // Traces that end at the same time.
    std::thread::scope(|threads| {
        for n in 0..3 {
            let dir = all.join(format!("together{n}"));
            threads.spawn(move || recorded(&dir, &["--quiet"], 3));
        }
    });
    assert_eq!(in_index(&all).len(), 7);
    assert_eq!(listed(&all).len(), 7);

    // One of another user: root neither reads it nor replaces it.
    chown(all.join("runs.parquet"), Some(64_322), None).unwrap();
    let out = recorded(&all.join("of-root"), &[], 1);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("the index of runs: ") && text.contains("it belongs to user 64322"), "{text}");
    assert_eq!(in_index(&all).len(), 7);
    chown(all.join("runs.parquet"), Some(0), None).unwrap();

    // A file of that name that is no index: it stays, and the trace is not the worse for it.
    fs::write(all.join("runs.parquet"), "mine").unwrap();
    let out = recorded(&all.join("last"), &[], 1);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("iotrace-bpf: the index of runs: "), "{text}");
    assert_eq!(fs::read_to_string(all.join("runs.parquet")).unwrap(), "mine");
}

#[test]
fn a_run_that_takes_longer_than_its_earlier_ones_has_a_message() {
    let work = live::scratch();
    let (all, pause) = (work.path().join("all"), work.path().join("pause"));
    fs::create_dir(&all).unwrap();
    let recorded = |name: &str, seconds: &str| {
        fs::write(&pause, seconds).unwrap();
        let mut tracer = live::tracer();
        tracer.args(["--layers", "syscall", "-o"]).arg(all.join(name)).args(["--", "sh", "-c", "sleep `cat $0`"]);
        let out = tracer.arg(&pause).output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stderr).unwrap()
    };
    recorded("first", "0.1");
    listed(&all);
    for name in ["second", "third"] {
        let text = recorded(name, "0.1");
        assert!(!text.contains("earlier runs"), "{text}");
    }
    let text = recorded("slow", "3");
    let message = text.lines().find(|line| line.contains("slower than each of 3 earlier runs")).expect(&text);
    let command = message.split_once("what differs: iotrace-bpf ").unwrap().1;
    let out = live::tracer().args(command.split(' ')).output().unwrap();
    assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    let slow = &listed(&all)[0];
    assert_eq!((&slow["path"], &slow["earlier_runs"]), (&"slow".into(), &3.into()));
    assert!(slow["slowdown"].as_f64().unwrap() > 1.2, "{slow}");
}
