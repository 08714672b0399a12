//! The package `iotrace` for Python: its own tests on datasets that are made here, its notebook, its types and its
//! format.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::sql;
use crate::common::synthetic::trace::{Trace, file, hooks, meta, process, rest};
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::{Coverage, Rollup, Row};
use iotrace_bpf::vocabulary::{Kind, Layer};

const WRITE: (Layer, &str, Kind) = (Layer::Syscall, "pwrite64", Kind::Write);
const SYNC: (Layer, &str, Kind) = (Layer::Syscall, "fsync", Kind::Sync);
const OPEN: (Layer, &str, Kind) = (Layer::Mpiio, "MPI_File_open", Kind::Open);
/// When the first trace began, in ns since 1970 and by the monotonic clock.
const BEGAN: i64 = 1_735_689_600_000_000_000;
const T0: i64 = 5_000_000_000;
const S: i64 = 1_000_000_000;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn written(path: &Path, host: &str, rows: Vec<Row>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let options = Options { path, host, force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    for row in rows {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap();
}

/// A recorded dataset, with the parts that it was stored without because they are empty.
fn recorded(name: &str, to: &Path) {
    written(to, "vm", Vec::new());
    for entry in fs::read_dir(root().join("tests/fixtures").join(name)).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, to.join(from.file_name().unwrap())).unwrap();
    }
}

/// A trace that began `later` ns after the first, by a wall clock that is `behind` ns behind.
fn facts(host: &str, later: i64, behind: i64) -> Trace {
    let mut trace = Trace::default();
    let numbers = [
        ("t0_ns", T0 + later),
        ("run_t0_ns", if host == "node1" { T0 } else { T0 + later }),
        ("t0_wall_ns", BEGAN + later - behind),
    ];
    for (key, value) in numbers {
        trace.row(meta(key, &value.to_string()));
    }
    trace.row(meta("host", host));
    trace
}

/// A write of one rank, with the sum of its bin.
fn wrote(trace: &mut Trace, rank: i32, start_ns: i64, bytes: i64) {
    let at = trace.call(rank as u32 + 1, None, WRITE, start_ns, 1_000_000);
    trace.moved(at, 1, bytes);
    trace.edit(at).rank = Some(rank);
    trace.row(Row::Rollup(Rollup {
        t_ns: start_ns / 100_000_000 * 100_000_000,
        layer: WRITE.0,
        op: WRITE.1,
        kind: WRITE.2,
        process_ix: rank + 1,
        pid: 1001 + rank,
        rank: Some(rank),
        calls: 1,
        bytes,
        req_bytes: bytes,
        dur_ns: 1_000_000,
        self_ns: 1_000_000,
        max_ns: 1_000_000,
        errors: 0,
    }));
}

/// One of two nodes, whose ids are the same numbers. The trace of the second began 2 s later, by a clock 40 ms behind:
/// files that the ranks of both open together show it.
fn node(n: i32) -> Vec<Row> {
    let later = i64::from(n) * 2 * S;
    let mut trace = facts(["node1", "node2"][n as usize], later, i64::from(n) * 40_000_000);
    trace.row(process(n + 1, Some(n)));
    trace.row(file(1, ["/scratch/one\u{1b}[31m.h5", "/scratch/two.h5"][n as usize]));
    for id in 0..5 {
        let came = 3 * S + id * S + i64::from(n) * 10_000 - later;
        let at = trace.call(n as u32 + 1, None, OPEN, came, 100_000);
        let span = trace.edit(at);
        (span.coll_id, span.rank, span.file_id) = (Some(1000 + id), Some(n), Some(1));
    }
    wrote(&mut trace, n, 4 * S + 500_000_000 - later, 4096 << n);
    trace.row(meta("end_ns", &(10 * S - later).to_string()));
    trace.finish()
}

/// One of two periods of a run.
fn period(n: i64) -> Vec<Row> {
    let mut trace = facts("node1", n * 10 * S, 0);
    trace.row(process(n as i32 + 1, Some(n as i32)));
    trace.row(file(1, "/scratch/one.h5"));
    wrote(&mut trace, n as i32, S, 1000);
    trace.row(meta("end_ns", &(10 * S).to_string()));
    trace.finish()
}

/// System calls are traced; without it no rule looks at them.
fn traced() -> Row {
    Row::Coverage(Coverage {
        layer: Layer::Syscall,
        target: "kernel".to_owned(),
        symbol: "sys_exit".to_owned(),
        tier: Some("tp_btf"),
        status: "attached",
        reason: None,
        offset: None,
        insn: None,
    })
}

/// With a row in every table, of which one has losses, and a flush after each record.
fn lossy() -> Vec<Row> {
    let mut trace = facts("node1", 0, 0);
    let rows = hooks(2 * S, 1e6).into_iter().chain(rest(3, S));
    rows.chain([process(1, Some(0)), file(1, "/data"), traced()]).for_each(|row| trace.row(row));
    wrote(&mut trace, 0, S, 1000);
    for n in 0..200 {
        let at = trace.call(1, None, SYNC, 2 * S + n * 10_000_000, 9_000_000);
        let span = trace.edit(at);
        (span.file_id, span.rank) = (Some(1), Some(0));
    }
    trace.row(meta("end_ns", &(10 * S).to_string()));
    trace.finish()
}

/// The directories that `python/tests/conftest.py` names.
fn datasets(dir: &Path) {
    recorded("mpi_hdf5", &dir.join("calls"));
    recorded("aggregate", &dir.join("sums"));
    for n in 0..2 {
        written(&dir.join(format!("nodes/node{}", n + 1)), ["node1", "node2"][n as usize], node(n));
        written(&dir.join(format!("periods/{n}")), "node1", period(n.into()));
    }
    written(&dir.join("lossy"), "node1", lossy());
    let ended = |row: &Row| matches!(row, Row::Meta(meta) if meta.key == "end_ns");
    written(&dir.join("killed"), "node1", period(0).into_iter().filter(|row| !ended(row)).collect());
}

fn succeeds(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let text = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(out.status.success(), "{command:?}:\n{text}");
    text
}

/// The sources in a directory of its own: building writes none of its files beside them.
fn sources(to: &Path) -> PathBuf {
    succeeds(Command::new("cp").arg("-R").arg(root().join("python")).arg(to));
    to.join("python")
}

#[test]
fn the_package_is_built_and_passes_its_tests() {
    let dir = tempfile::tempdir().unwrap();
    datasets(&dir.path().join("data"));
    let package = sources(dir.path());
    let (wheels, installed) = (dir.path().join("wheels"), dir.path().join("installed"));
    let pip = |command: &str| {
        let mut pip = Command::new(sql::python());
        pip.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]);
        pip.args([command, "--quiet", "--no-index", "--no-deps"]);
        pip
    };
    // Nothing comes from the network: what builds it is one of the tests' packages.
    succeeds(pip("wheel").args(["--no-build-isolation", "--wheel-dir"]).arg(&wheels).arg(&package));
    let wheel = fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
    succeeds(pip("install").arg("--target").arg(&installed).arg(&wheel));
    assert!(installed.join("iotrace/py.typed").exists());

    let mut tests = Command::new(sql::python());
    // Not the sources but what was installed is imported: they are in `src`.
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]).current_dir(&package);
    tests.env("PYTHONPATH", &installed).env("IOTRACE_TEST_DATA", dir.path().join("data"));
    tests.env("IOTRACE_TEST_NOTEBOOK", root().join("examples/analysis.ipynb"));
    tests.env("IOTRACE_BPF", env!("CARGO_BIN_EXE_iotrace-bpf")).env("MPLBACKEND", "agg");
    let said = succeeds(&mut tests);
    assert!(said.contains(" passed") && !said.contains("skipped"), "{said}");
}

#[test]
fn the_types_of_the_package_are_right() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    succeeds(
        Command::new(sql::python()).args(["-m", "mypy", "--cache-dir"]).arg(cache).current_dir(root().join("python")),
    );
}
