//! The views for Spark are those for `DuckDB`: made from them, and with the same rows, on recorded datasets, of single calls and
//! of sums, and two of another node. The queries of rules are the same text for both.

use crate::common::sql;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::synthetic::trace::{Trace, demoted, file, hooks, maybe_called, meta, process, rest, rpc, sums};
use iotrace_bpf::analysis::findings::rules::RULES;
use iotrace_bpf::analysis::speed::EARLIER_CALLS;
use iotrace_bpf::export::{Dataset, DatasetWriter, Options, VIEWS, VIEWS_SPARK};
use iotrace_bpf::rows::{Metric, Row, Span};
use iotrace_bpf::vocabulary::{Kind, Layer, flag};

fn common(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/readers").join(name)
}

fn written(path: &Path, host: &str, rows: Vec<Row>) {
    let options = Options { path, host, force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    for row in rows {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap();
}

/// A recorded dataset, with the parts that have no rows.
fn copied(name: &str, to: &Path, host: &str) {
    written(to, host, Vec::new());
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, to.join(from.file_name().unwrap())).unwrap();
    }
}

/// The files that processes of a dataset opened together, with MPI-IO.
fn opens(dataset: &Path) -> Vec<Span> {
    let mut opens = Vec::new();
    let dataset = Dataset::open(dataset).unwrap();
    let each = |span: Span| {
        opens.extend((span.op == "MPI_File_open" && span.rank == Some(0)).then_some(span));
        Ok(())
    };
    dataset.rows(each).unwrap();
    assert!(opens.len() > 1);
    opens
}

/// Files are on the first mount, and that is of a server.
fn remote(mut row: Row) -> Row {
    match &mut row {
        Row::File(file) => file.mount_id = Some(1),
        Row::Mount(mount) => mount.server = Some("nas".to_owned()),
        _ => {}
    }
    row
}

/// A node with little of everything that the recorded one has none of, and the same ids. A process of it was in these calls, by a
/// clock that is 0.4 s behind.
fn other(opens: &[Span]) -> (Vec<Row>, Vec<Row>) {
    const APART: i64 = 400_000_000;
    let mut t = Trace::default();
    for (key, value) in [
        ("host", "other"),
        ("run_t0_ns", "5"),
        ("t0_ns", "5"),
        ("t0_wall_ns", "1795320368281144293"),
        ("end_ns", "30000000000"),
    ] {
        t.row(meta(key, value));
    }
    t.row(process(1, Some(7)));
    t.row(file(1, "/before"));
    t.row(remote(file(1, "/after")));
    for row in rest(1, 0) {
        t.row(remote(row));
    }
    let phase = t.call(1, None, (Layer::App, "step", Kind::Other), 0, 1_000_000);
    let inner = t.call(1, Some(phase), (Layer::App, "step", Kind::Other), 100, 900_000);
    let mut reads = Vec::new();
    for i in 0..5 {
        let call = t.call(1, Some(inner), (Layer::Stdio, "fread", Kind::Read), 1000 * (i + 1), 900);
        let read = t.call(1, Some(call), (Layer::Syscall, "read", Kind::Read), 1000 * (i + 1) + 10, 500 + i);
        t.moved(read, 1, 4096);
        let span = t.edit(read);
        (span.offset, span.handle_id) = (Some(i * 4096), Some(1));
        (span.speed, span.usual_ns) = (Some(["very slow", "normal"][usize::from(i > 2)]), Some(200));
        t.request(i + 1, read, ("read", "sync"), 4096, 100);
        reads.push(t.edit(read).clone());
    }
    // What rules ask for: writes that failed, did not return or waited, and a read of the device.
    for (errno, flags) in [(28, 0), (4, 0), (22, flag::DIRECT), (0, flag::UNFINISHED), (0, flag::DIRECT), (0, 0)] {
        let start = 1_100_000 + 1000 * i64::from(errno) + 100 * i64::from(flags);
        let write = t.call(1, None, (Layer::Syscall, "pwrite64", Kind::Write), start, 90);
        t.moved(write, 1, 512);
        let span = t.edit(write);
        (span.errno, span.flags, span.offset) = (errno, flags, Some(i64::from(flags)));
        (span.device_ns, span.lock_ns, span.throttle_ns) = (Some(10), Some(20), Some(30));
    }
    let missed = t.call(1, None, (Layer::Syscall, "pread64", Kind::Read), 1_200_000, 90);
    t.moved(missed, 1, 512);
    (t.edit(missed).miss_bytes, t.edit(missed).device_ns) = (Some(512), Some(50));
    let failed = t.call(1, None, (Layer::Syscall, "openat", Kind::Open), 2_000_000, 700);
    let span = t.edit(failed);
    (span.errno, span.path_id, span.stack_id) = (2, Some(1), Some(1));
    for open in opens {
        let at = t.call(2, None, (Layer::Mpiio, "MPI_File_open", Kind::Open), open.start_ns - APART, open.dur_ns);
        let span = t.edit(at);
        (span.coll_id, span.rank) = (open.coll_id, Some(9));
    }
    t.row(rpc(1, &reads[0], &reads[3]));
    for row in [hooks(1_000_000_000, 0.0), hooks(3_000_000_000, 5e8)].concat() {
        t.row(row);
    }
    let earlier = Some("syscall read".to_owned());
    t.row(Row::Metric(Metric { t_ns: 1, name: EARLIER_CALLS, label: earlier, value: 2.0 }));
    t.row(sums(1, 2_000_000_000));
    t.row(demoted(1, 2_000_000_000));
    t.row(maybe_called(1, 2_000_000_000));
    // The second dataset of the run: its times count from 10 s later, and the wall clock was set before it.
    let mut later = Trace::default();
    for (key, value) in [
        ("host", "other"),
        ("run_t0_ns", "5"),
        ("t0_ns", "10000000005"),
        ("t0_wall_ns", "1795320979281144293"),
        ("end_ns", "20000000000"),
    ] {
        later.row(meta(key, value));
    }
    for row in hooks(4_000_000_000, 25e7) {
        later.row(row);
    }
    rest(1, -5).into_iter().chain(rest(2, 5)).for_each(|row| later.row(remote(row)));
    later.row(process(1, Some(7)));
    let at = later.call(3, None, (Layer::Syscall, "read", Kind::Read), 1000, 500);
    later.moved(at, 1, 100);
    let span = later.edit(at);
    (span.offset, span.handle_id) = (Some(7 * 4096), Some(1));
    (t.finish(), later.finish())
}

#[test]
fn spark_and_duckdb_give_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = dir.path().join("recorded");
    copied("mpi_hdf5", &recorded, "vm");
    copied("aggregate", &dir.path().join("sums"), "sums");
    let (first, second) = other(&opens(&recorded));
    fs::create_dir(dir.path().join("other")).unwrap();
    written(&dir.path().join("other/2026-11-22T10-30-00Z"), "other", first);
    written(&dir.path().join("other/2026-11-22T10-30-10Z"), "other", second);
    assert_eq!(fs::read_to_string(recorded.join("views-spark.sql")).unwrap(), VIEWS_SPARK);
    let rules = RULES.iter().flat_map(|rule| [rule.id, "\t", rule.sql, "\n"]).collect::<String>();
    fs::write(dir.path().join("rules.tsv"), rules).unwrap();
    let mut python = Command::new(sql::python());
    python.arg(common("spark.py")).args(["recorded/views.sql", "recorded/views-spark.sql", "rules.tsv"]);
    python.current_dir(dir.path());
    let out = python.output().unwrap();
    let (output, erred) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{output}{erred}");
}

#[test]
fn the_views_for_spark_are_made_from_those_for_duckdb() {
    let views = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/export/views.sql");
    let out = Command::new(sql::python()).arg(common("spark_views.py")).arg(views).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let made = String::from_utf8(out.stdout).unwrap();
    let again = "run tests/common/readers/spark_views.py src/export/views.sql > src/export/views-spark.sql";
    assert!(made == VIEWS_SPARK, "views.sql has changed: {again}");
}
