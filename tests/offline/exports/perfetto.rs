//! `iotrace-bpf export --to perfetto`, read with Perfetto's own messages: every row is a slice, tracks are whole.

use crate::common::sql;
use crate::common::synthetic::trace::{Trace, file, meta, process};
use crate::common::synthetic::{extreme, flushes::flushes};
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::{Metric, Row, Thread};
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use std::path::Path;
use std::process::Command;

fn write(to: &Path, host: &str, rows: Vec<Row>) {
    let options = Options { path: to, host, force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    for row in rows {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap();
}

/// What `perfetto_trace.py` prints about the trace of a dataset: it compares both, or only the trace with itself.
fn check(dir: &Path, compared: bool) -> Vec<String> {
    let work = tempfile::tempdir().unwrap();
    let trace = work.path().join("trace.pftrace");
    let mut export = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
    let out = export.arg("export").arg(dir).args(["--to", "perfetto", "-o"]).arg(&trace).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && !stderr.contains("panicked"), "{stderr}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/readers/perfetto_trace.py");
    let dataset = if compared { dir } else { Path::new("-") };
    let out = Command::new(sql::python()).arg(script).arg(dataset).arg(&trace).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect()
}

/// Slices of calls, of requests, arrows and counters.
fn counts(dir: &Path) -> Vec<usize> {
    check(dir, true)[0].split(' ').map(|n| n.parse().unwrap()).collect()
}

#[test]
fn of_a_parallel_program() {
    let counts = counts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5"));
    assert!(counts[0] > 100, "{counts:?}");
}

/// Calls inside calls, a phase that is written after them, operations that overlap, and requests that do.
fn of_every_kind() -> Vec<Row> {
    let mut t = Trace::default();
    t.row(process(1, Some(3)));
    t.row(file(1, "/data/\u{1b}[31mred"));
    t.row(meta("t0_ns", "5000000"));
    t.row(meta("t0_wall_ns", "1700000000000000000"));
    t.row(meta("clock_pair_9000000", "1700000000004000001"));
    t.row(Row::Thread(Thread { thread_ix: 1, process_ix: 1, pid: 1001, tid: 1001, comm: "sim".to_owned() }));
    let write = (Layer::Syscall, "pwrite64", Kind::Write);
    let inner = (Layer::App, "step", Kind::Other);
    for n in 0..3 {
        let start = n * 200_000_000;
        let library = t.call(1, None, (Layer::Hdf5, "H5Dwrite", Kind::Write), start, 150_000_000);
        t.moved(library, 1, 3000);
        for (at, took) in [(0, 50_000_000), (50_000_000, 100_000_000)] {
            let call = t.call(1, Some(library), write, start + at, took);
            t.moved(call, 1, 1500);
            let request = 10 * n + at / 50_000_000;
            t.request(request, call, ("write", "writeback"), 1500, 120_000_000);
            t.link(request, call, 1500, "writeback");
            // A second arrow of the same call, and one that begins nowhere.
            t.link(request + 5, call, 1500, "writeback");
        }
        let operations: Vec<_> = (0..4)
            .map(|nth| {
                let at = t.call(2, None, (Layer::Syscall, "io_uring.read", Kind::Read), start + nth, 90_000_000);
                t.moved(at, 1, 700);
                let span = t.edit(at);
                span.flags = flag::ASYNC | flag::NONBLOCKING | if nth == 0 { flag::UNFINISHED } else { 0 };
                span.async_id = Some(span.span_id);
                span.span_id
            })
            .collect();
        let wait = t.call(2, None, (Layer::Syscall, "io_uring_enter", Kind::Wait), start + 10, 95_000_000);
        t.edit(wait).async_id = Some(operations[1]);
        let failed = t.call(2, None, (Layer::Syscall, "openat", Kind::Open), start + 96_000_000, 0);
        t.edit(failed).errno = 2;
    }
    t.call(1, None, inner, 0, 300_000_000);
    t.call(1, None, inner, 250_000_000, 300_000_000);
    let metric = |t_ns, value| Metric { t_ns, name: "node_memory_bytes", label: Some("dirty".to_owned()), value };
    for (at, value) in [(0, 4096.0), (400_000_000, 0.0)] {
        t.row(Row::Metric(metric(at, value)));
    }
    t.finish()
}

#[test]
fn of_operations_phases_requests_and_figures_of_the_node() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("run.iotrace");
    write(&dir, "node1", of_every_kind());
    // Six writes with a request each, and three operations that a call waited for.
    assert_eq!(counts(&dir)[..3], [9 + 18 + 2, 6, 6 + 3]);
}

#[test]
fn of_several_nodes_whose_processes_have_equal_numbers() {
    let work = tempfile::tempdir().unwrap();
    for node in ["node1", "node2"] {
        write(&work.path().join(node), node, of_every_kind());
    }
    let printed = check(work.path(), false);
    let slices = (29 + 6) * 2;
    assert_eq!(printed[0], slices.to_string());
    let processes = printed[1..].join(" ");
    assert!(processes.contains("node1: rank 3: sim (pid 1001)") && processes.contains("node2: rank 3"), "{processes}");
}

#[test]
fn of_rows_beyond_all_bounds() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("run.iotrace");
    write(&dir, "vm", extreme::rows(false));
    assert_eq!(check(&dir, false)[0], "80");
    // Without a start time, too.
    let log = work.path().join("log.iotrace");
    flushes(&log, 20);
    assert_eq!(check(&log, false)[0], "20");
}
