//! Access patterns of handles, and what buffers make of calls, are what the programs did: by the views, in `DuckDB`.

use crate::common::{live, programs, sql};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Traces `patterns`: what it reports itself, and the dataset.
fn patterns(work: &Path) -> (Value, PathBuf) {
    let dir = work.join("patterns");
    fs::create_dir(&dir).unwrap();
    let traced = live::trace(work, &[], &[programs::build("patterns").as_path(), &dir]);
    traced.data().lossless();
    (serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap(), traced.dir)
}

/// The rows of a view on files of the program, by the file's name and the kind of access.
fn rows(dataset: &Path, view: &str, layer: &str) -> BTreeMap<String, Value> {
    let sql = format!(
        "SELECT parse_filename(f.path) AS name, v.* FROM {view} v JOIN handles h USING (handle_id) \
         JOIN files f ON f.file_id = h.file_id WHERE f.path LIKE '%/patterns/%' AND h.layer = '{layer}'"
    );
    let name = |row: &Value| format!("{} {}", row["name"].as_str().unwrap(), row["kind"].as_str().unwrap());
    sql::query(dataset, &sql).into_iter().map(|row| (name(&row), row)).collect()
}

#[test]
fn patterns_are_recognised() {
    let work = live::scratch();
    let (truth, dataset) = patterns(work.path());
    let syscalls = rows(&dataset, "v_handle_pattern", "syscall");
    let stdio = rows(&dataset, "v_handle_pattern", "stdio");
    for (name, expected) in truth.as_object().unwrap() {
        let row = if name.starts_with("sys_") { &syscalls[name] } else { &stdio[name] };
        for (figure, n) in expected.as_object().unwrap() {
            assert_eq!(&row[figure], n, "{figure} of {name}");
        }
        let [steps, consecutive, short, long] =
            ["steps", "consecutive", "short_jumps", "long_jumps"].map(|name| row[name].as_i64().unwrap());
        assert_eq!(steps, expected["calls"].as_i64().unwrap() - 1);
        assert_eq!(consecutive + short + long, steps, "{name}");
    }
    let pattern = |rows: &BTreeMap<String, Value>, name: &str| rows[name]["pattern"].as_str().unwrap().to_owned();
    for (name, expected) in [
        ("sys_consecutive write", "consecutive"),
        ("sys_strided write", "strided"),
        ("sys_sequential read", "sequential"),
        ("sys_random read", "random"),
        ("sys_alternating write", "consecutive"),
        ("sys_alternating read", "consecutive"),
        ("sys_single read", "single"),
    ] {
        assert_eq!(pattern(&syscalls, name), expected, "{name}");
    }
    for (name, expected) in [
        ("stdio_consecutive write", "consecutive"),
        ("stdio_strided read", "strided"),
        ("stdio_random read", "random"),
        ("stdio_mixed read", "mixed"),
    ] {
        assert_eq!(pattern(&stdio, name), expected, "{name}");
    }
    assert_eq!(truth.as_object().unwrap().len(), 11);

    // The gaps between them, the most common first; and the sizes.
    let tops = |row: &Value, what: &str| -> Vec<(Value, Value)> {
        (1..=4).map(|i| (row[format!("{what}{i}")].clone(), row[format!("{what}{i}_calls")].clone())).collect()
    };
    let none = (Value::Null, Value::Null);
    let strided = &syscalls["sys_strided write"];
    assert_eq!(
        tops(strided, "stride"),
        [(json!(2000), json!(90)), (json!(2500), json!(9)), none.clone(), none.clone()]
    );
    assert_eq!(tops(strided, "size"), [(json!(1000), json!(100)), none.clone(), none.clone(), none.clone()]);
    assert_eq!(strided["strided"], json!(99));
    let read = &stdio["stdio_strided read"];
    assert_eq!(tops(read, "stride")[0], (json!(90), json!(59)));
    // Never twice the same.
    let sequential = &syscalls["sys_sequential read"];
    assert_eq!(sequential["strided"], json!(0));
    assert!(tops(sequential, "stride").iter().all(|(_, n)| *n == json!(1)));
    assert_eq!(tops(&syscalls["sys_consecutive write"], "stride"), [const { (Value::Null, Value::Null) }; 4]);
}

#[test]
fn buffers_are_measured_by_what_goes_through_them() {
    let work = live::scratch();
    let (truth, dataset) = patterns(work.path());
    let rows = rows(&dataset, "v_stdio_flush", "stdio");
    for (name, expected) in truth.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("stdio_")) {
        let row = &rows[name];
        assert_eq!((&row["calls"], &row["bytes"]), (&expected["calls"], &expected["bytes"]), "{name}");
        assert_eq!(row["unknown_calls"], 0);
    }
    // 8000 bytes in blocks of 4096: when the buffer is full, and at the close.
    let whole = &rows["stdio_consecutive write"];
    assert_eq!((&whole["syscalls"], &whole["syscall_bytes"]), (&json!(2), &json!(8000)));
    assert_eq!(whole["calls_per_syscall"], json!(50.0));
    // Wherever it goes, more is read than is asked for.
    let random = &rows["stdio_random read"];
    assert!(random["syscall_bytes"].as_i64() > random["bytes"].as_i64(), "{random}");
}
