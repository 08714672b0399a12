//! The views for Spark are those for `DuckDB`: made from them, and with the same rows, on a recorded dataset and beside another one.
#![allow(clippy::unwrap_used)]

#[path = "common/sql.rs"]
mod sql;
#[path = "common/trace.rs"]
#[allow(dead_code)] // Shared: every test uses its part.
mod trace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iotrace_bpf::correlate::rows::Row;
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS, VIEWS_SPARK};
use iotrace_bpf::words::{Kind, Layer};
use trace::{Trace, file, meta, process};

fn common(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common").join(name)
}

fn written(path: &Path, host: &str, rows: Vec<Row>) {
    let options = Options { path, host, force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    for row in rows {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap();
}

/// A node with little of everything that the recorded one has none of, and the same ids.
fn other() -> Vec<Row> {
    let mut t = Trace::default();
    for (key, value) in [("host", "other"), ("t0_ns", "5"), ("t0_wall_ns", "1795320368281144293")] {
        t.row(meta(key, value));
    }
    t.row(process(1, Some(7)));
    t.row(file(1, "/before"));
    t.row(file(1, "/after"));
    let phase = t.call(1, None, (Layer::App, "step", Kind::Other), 0, 1_000_000);
    let inner = t.call(1, Some(phase), (Layer::App, "step", Kind::Other), 100, 900_000);
    for i in 0..5 {
        let call = t.call(1, Some(inner), (Layer::Stdio, "fread", Kind::Read), 1000 * (i + 1), 900);
        let read = t.call(1, Some(call), (Layer::Syscall, "read", Kind::Read), 1000 * (i + 1) + 10, 500 + i);
        t.moved(read, 1, 4096);
        t.edit(read).offset = Some(i * 4096);
        t.request(i + 1, read, ("read", "sync"), 4096, 100);
    }
    t.finish()
}

#[test]
fn spark_and_duckdb_give_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = dir.path().join("recorded");
    written(&recorded, "vm", Vec::new());
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5")).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, recorded.join(from.file_name().unwrap())).unwrap();
    }
    written(&dir.path().join("other"), "other", other());
    assert_eq!(fs::read_to_string(recorded.join("views-spark.sql")).unwrap(), VIEWS_SPARK);
    let mut python = Command::new(sql::python());
    python.arg(common("spark.py")).args(["recorded/views.sql", "recorded/views-spark.sql"]).current_dir(dir.path());
    let out = python.output().unwrap();
    let (said, erred) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}{erred}");
}

#[test]
fn the_views_for_spark_are_made_from_those_for_duckdb() {
    let views = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/export/views.sql");
    let out = Command::new(sql::python()).arg(common("spark_views.py")).arg(views).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let made = String::from_utf8(out.stdout).unwrap();
    let again = "run tests/common/spark_views.py src/export/views.sql > src/export/views-spark.sql";
    assert!(made == VIEWS_SPARK, "views.sql has changed: {again}");
}
