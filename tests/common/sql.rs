//! Compares the report on a dataset with the same figures asked of its tables in SQL.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::figures;
use iotrace_bpf::base::hist;
use iotrace_bpf::export::report;
use serde_json::Value;

/// The Python that `cargo xtask` sets up, with `DuckDB` and the libraries of `tests/requirements.txt`.
pub fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/venv/bin/python");
    assert!(python.exists(), "{} is missing: `cargo xtask test` makes it", python.display());
    python
}

/// Names the directory that keeps datasets to be compared later: on an emulated processor the queries take minutes, and live
/// tests wait for each other.
const COMPARE_LATER: &str = "IOTRACE_TEST_COMPARE_LATER";

/// Runs every view of the dataset's `views.sql` and compares their figures with the report's: calls, times, bytes
/// and errors exactly, percentiles within the documented error of the histogram. Then those of dashboard and metrics.
/// In `cargo xtask test` and the virtual machines of `cargo xtask vm` the dataset is kept, and compared by these.
pub fn compare(dir: &Path) {
    match std::env::var_os(COMPARE_LATER) {
        Some(kept) => keep(dir, kept.as_ref(), None),
        None => compare_now(dir),
    }
}

/// Checks a condition over the dataset's views, which is `true` in SQL: at once, or when datasets that were kept are compared.
pub fn holds(dir: &Path, condition: &str) {
    match std::env::var_os(COMPARE_LATER) {
        Some(kept) => keep(dir, kept.as_ref(), Some(condition)),
        None => holds_now(dir, condition),
    }
}

fn holds_now(dir: &Path, condition: &str) {
    let rows = query(dir, &format!("SELECT {condition} AS holds"));
    assert_eq!(rows, [serde_json::json!({"holds": true})], "{condition}");
}

/// Keeps a copy of a dataset, to be compared or with a condition.
fn keep(dir: &Path, kept: &Path, condition: Option<&str>) {
    let test = std::thread::current().name().unwrap_or("test").replace("::", ".");
    let copy = tempfile::Builder::new().prefix(&format!("{test}-")).tempdir_in(kept).unwrap().keep();
    let out = Command::new("cp").arg("-R").arg(dir).arg(&copy).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    if let Some(condition) = condition {
        std::fs::write(copy.join(CONDITION), condition).unwrap();
    }
    // What is there under this name is complete.
    let complete = format!("{}.{COMPLETE}", copy.display());
    std::fs::rename(&copy, complete).unwrap();
}

/// Of a dataset that was kept.
const COMPLETE: &str = "kept";
/// The file beside it with the condition that it is kept for.
const CONDITION: &str = "condition.sql";

/// The same at once.
pub fn compare_now(dir: &Path) {
    compare_with(dir, &[]);
}

fn compare_with(dir: &Path, options: &[&str]) {
    figures::agree(dir);
    let mut json = Vec::new();
    report::run(dir, true, &mut json).unwrap();
    let report = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(report.path(), json).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/readers/compare.py");
    let error = hist::error::<{ hist::REPORT_BITS }>().to_string();
    let mut python = Command::new(python());
    python.arg(script).arg(report.path()).arg(error).args(options);
    let out = python.current_dir(dir).output().unwrap();
    let (output, erred) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "the report on {} differs from SQL:\n{output}{erred}", dir.display());
}

/// Compares the datasets that were kept in a directory, and checks what they were kept for.
pub fn compare_kept(kept: &Path) {
    let copies = std::fs::read_dir(kept).unwrap().map(|copy| copy.unwrap().path());
    let copies = copies.filter(|copy| copy.extension().is_some_and(|extension| extension == COMPLETE));
    let mut datasets = 0;
    for copy in copies {
        let condition = std::fs::read_to_string(copy.join(CONDITION)).ok();
        let all = std::fs::read_dir(&copy).unwrap().map(|dataset| dataset.unwrap().path());
        for dataset in all.filter(|path| path.is_dir()) {
            datasets += 1;
            match &condition {
                Some(condition) => holds_now(&dataset, condition),
                // There are dozens, and views over files take twice as long.
                None => compare_with(&dataset, &["tables"]),
            }
        }
    }
    assert!(datasets > 0, "no dataset was kept in {}", kept.display());
}

/// `DuckDB` shows the progress of what takes long before it.
fn last_line(out: &[u8]) -> &[u8] {
    out.trim_ascii_end().rsplit(|b| *b == b'\n').next().unwrap_or_default()
}

/// The rows that a query over the dataset's views gives, each a map from column to value.
pub fn query(dir: &Path, sql: &str) -> Vec<Value> {
    queries(dir, &[sql.to_owned()]).remove(0)
}

/// The same of many queries, in one program.
pub fn queries(dir: &Path, all: &[String]) -> Vec<Vec<Value>> {
    let asked = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(asked.path(), serde_json::to_vec(all).unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/readers/query.py");
    let out = Command::new(python()).arg(script).arg(asked.path()).current_dir(dir).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(last_line(&out.stdout)).unwrap()
}

/// The names of all views.
pub fn views(dir: &Path) -> Vec<String> {
    let rows = query(dir, "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY view_name");
    rows.iter().map(|row| row["view_name"].as_str().unwrap().to_owned()).collect()
}

/// Runs every view over what there is of a dataset, which may have been cut off.
pub fn readable(dir: &Path) {
    let script = "import duckdb; db = duckdb.connect(); db.execute(open('views.sql').read())
views = db.execute('SELECT view_name FROM duckdb_views() WHERE NOT internal').fetchall()
assert len(views) > 30, views
for (view,) in views: db.execute(f'FROM {view}').fetchall()";
    let out = Command::new(python()).args(["-c", script]).current_dir(dir).output().unwrap();
    assert!(out.status.success(), "{}: {}", dir.display(), String::from_utf8_lossy(&out.stderr));
}
