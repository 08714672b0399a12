//! The report and the SQL views agree on datasets made at random.

use crate::common::{figures, sql};

use crate::common::synthetic::trace::{Trace, demoted, file, maybe_called, meta};
use crate::datasets::sample::sample;
use crate::reports::random::{Op, random, recorded, write};
use iotrace_bpf::export::report;
use iotrace_bpf::replay::Replay;
use iotrace_bpf::rows::{File, Mount, Row, Span, span_id};
use iotrace_bpf::summary::view::{Focus, Screen, Source as _};
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::json;

fn agree(rows: Vec<Row>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, rows);
    sql::compare_now(&path);
}

#[test]
fn ranks() {
    agree(random(42, 8, 6));
}

#[test]
fn processes() {
    agree(random(7, 5, 0));
}

#[test]
fn empty() {
    agree(Vec::new());
}

#[test]
fn estimated_calls() {
    let mut trace = Trace::default();
    for (start, op) in [(1_000, "fread"), (2_000, "fgetc")] {
        let at = trace.call(1, None, (Layer::Stdio, op, Kind::Read), start, 50);
        trace.moved(at, 1, 40);
    }
    let about = [meta("end_ns", "9000000000"), file(1, "/data")];
    for row in about.into_iter().chain([demoted(1, 2_000_000_000), maybe_called(1, 2_000_000_000)]) {
        trace.row(row);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, trace.finish());
    sql::compare_now(&path);
    let report = report::build(&mut report::Union::open(&path).unwrap()).unwrap();
    let stdio = report.layers.iter().find(|layer| layer.layer == "stdio").unwrap();
    let of =
        |name: &str| stdio.ops.iter().find(|op| op.op == name).map(|op| (op.calls, op.estimated_calls, op.calls_error));
    assert_eq!([of("fread"), of("fgetc")], [Some((13, 12, Some(3))), Some((1, 0, Some(480)))]);
}

#[test]
fn small_runs_of_real_programs() {
    for name in ["sqlite", "tar", "fio", "import", "hdf5"] {
        let (_dir, path) = recorded(&format!("report/{name}"));
        sql::compare_now(&path);
    }
}

#[test]
fn calls_of_real_programs() {
    let (_dir, path) = recorded("mpi_hdf5");
    sql::compare_now(&path);
    // The pattern of a file on the dashboard is that of the views, whichever of them.
    let mut replay = Replay::open(&path).unwrap();
    let focus = Focus { screen: Screen::Files, ..Focus::default() };
    replay.wait(&focus);
    let shown = replay.snapshot(&focus);
    let patterns = sql::query(
        &path,
        "WITH a AS (SELECT file_id, sum(sequential) AS sequential, sum(consecutive) AS consecutive
                    FROM file_sums WHERE layer = 'syscall' GROUP BY file_id),
              b AS (SELECT file_id, sum(round(accesses * sequential)) AS sequential,
                           sum(round(accesses * consecutive)) AS consecutive, sum(accesses) AS accesses
                    FROM v_sequential GROUP BY file_id)
         SELECT file_id, a.sequential::BIGINT AS a, a.consecutive::BIGINT AS b, b.sequential::BIGINT AS c,
                b.consecutive::BIGINT AS d, b.accesses::BIGINT AS n FROM a JOIN b USING (file_id)",
    );
    assert!(patterns.len() > 2, "{patterns:?}");
    for row in patterns {
        let number = |name: &str| row[name].as_i64().unwrap();
        let file = shown.files.rows.iter().find(|file| i64::from(file.file_id) == number("file_id")).unwrap();
        let of_views = ([number("a"), number("b")], [number("c"), number("d")], number("n"));
        let of_dashboard = [file.sequential, file.consecutive];
        assert_eq!((of_dashboard, of_dashboard, file.placed), of_views, "{}", file.path);
    }
}

#[test]
fn jumps_of_the_report_are_those_of_the_views() {
    let (_dir, path) = recorded("mpi_hdf5");
    let report = report::build(&mut report::Union::open(&path).unwrap()).unwrap();
    let rows = sql::query(
        &path,
        "SELECT kind, sum(accesses * short_jumps) / sum(accesses) AS short, sum(accesses * long_jumps) / sum(accesses) AS long,
                sum(accesses * consecutive) / sum(accesses) AS consecutive
         FROM v_sequential GROUP BY kind",
    );
    assert_eq!(rows.len(), 2);
    for row in rows {
        let ours = report.sizes.iter().find(|r| r.layer == "syscall" && row["kind"] == r.kind).unwrap();
        for (name, ours) in [("short", ours.short_jumps), ("long", ours.long_jumps), ("consecutive", ours.consecutive)]
        {
            let sql = row[name].as_f64();
            assert!((sql.unwrap() - ours.unwrap()).abs() < 1e-9, "{name} of {}: {ours:?}, SQL {sql:?}", row["kind"]);
        }
    }
}

#[test]
fn sums_of_real_programs() {
    let (_dir, path) = recorded("aggregate");
    figures::agree(&path);
    let report = report::build(&mut report::Union::open(&path).unwrap()).unwrap();
    let layers = sql::query(
        &path,
        "SELECT layer, sum(calls)::BIGINT AS calls, sum(dur_ns)::BIGINT AS inclusive_ns, sum(self_ns)::BIGINT AS exclusive_ns,
                sum(bytes) FILTER (kind IN ('read', 'write'))::BIGINT AS moved, sum(errors)::BIGINT AS errors
         FROM file_sums GROUP BY layer ORDER BY layer_rank(layer)",
    );
    let number = |row: &serde_json::Value, name: &str| row[name].as_i64();
    let of_sql: Vec<_> = layers
        .iter()
        .map(|row| {
            let name = row["layer"].as_str().unwrap().to_owned();
            let times = (number(row, "inclusive_ns"), number(row, "exclusive_ns"));
            (name, number(row, "calls"), times, number(row, "moved"), number(row, "errors"))
        })
        .collect();
    let of_report: Vec<_> = report
        .layers
        .iter()
        .map(|row| {
            let times = (Some(row.inclusive_ns), row.exclusive_ns);
            (row.layer.to_owned(), Some(row.calls), times, row.moved.sum, Some(row.errors))
        })
        .collect();
    assert_eq!(of_report, of_sql);
}

#[test]
fn the_pattern_of_a_handle_is_that_of_its_outermost_accesses_in_bytes() {
    let mut trace = Trace::default();
    let mut now = 0;
    let mut access = |parent, handle: i32, op: Op, offset: i64, bytes: Option<i64>| {
        now += 100;
        let at = trace.call(1, parent, op, now, if parent.is_some() { 1 } else { 50 });
        let span = trace.edit(at);
        (span.handle_id, span.offset, span.bytes) = (Some(handle), Some(offset), bytes);
        at
    };
    let writes = (Layer::Mpiio, "MPI_File_write_at", Kind::Write);
    for i in 0..10 {
        let outer = access(None, 1, writes, i * 100, Some(100));
        // What a library does inside its own call, what failed, and what moved nothing.
        access(Some(outer), 1, writes, 5, Some(1));
        access(None, 1, writes, 7, None);
        access(None, 1, writes, 9, Some(0));
        // Offsets that count elements of a view, on another handle.
        access(None, 2, writes, i, Some(800));
    }
    let reads = (Layer::Mpiio, "MPI_File_read_at", Kind::Read);
    access(None, 1, reads, 0, Some(10));
    // From the end of each to the begin of the next: 128 KiB, one byte more, as much back, one byte back.
    for offset in [10, 20 + 131_072, 30 + 2 * 131_072 + 1, 40 + 131_072, 49 + 131_072] {
        access(None, 3, reads, offset, Some(10));
    }
    access(None, 2, (Layer::Mpiio, "MPI_File_set_view", Kind::Meta), 0, None);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, trace.finish());
    let rows = sql::query(
        &path,
        "SELECT handle_id, kind, pattern, calls, consecutive, switches FROM v_handle_pattern WHERE handle_id < 3",
    );
    let jumps = "SELECT consecutive, short_jumps, long_jumps FROM v_handle_pattern WHERE handle_id = 3";
    let expected = serde_json::json!({"consecutive": 0, "short_jumps": 2, "long_jumps": 2});
    assert_eq!(sql::query(&path, jumps), [expected]);
    let row = |kind: &str, pattern: &str, calls: i64, consecutive: i64, switches: i64| {
        serde_json::json!({"handle_id": 1, "kind": kind, "pattern": pattern, "calls": calls,
                           "consecutive": consecutive, "switches": switches})
    };
    assert_eq!(rows, [row("read", "single", 1, 0, 1), row("write", "consecutive", 10, 9, 0)]);
}

#[test]
fn a_process_whose_rank_becomes_known_later_is_one_for_darshan() {
    let mut trace = Trace::default();
    for i in 0..4 {
        let at = trace.call(1, None, (Layer::Syscall, "write", Kind::Write), i * 100, 10);
        trace.moved(at, 1, 10);
        let span = trace.edit(at);
        (span.offset, span.rank) = (Some(i * 10), (i > 0).then_some(0));
    }
    for op in ["fstat", "fstatfs"] {
        let at = trace.call(1, None, (Layer::Syscall, op, Kind::Meta), 1000, 10);
        let span = trace.edit(at);
        (span.file_id, span.rank) = (Some(1), Some(0));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, trace.finish());
    let names = "('POSIX_WRITES', 'POSIX_ACCESS1_ACCESS', 'POSIX_ACCESS1_COUNT', 'POSIX_STATS')";
    let rows = sql::query(
        &path,
        &format!("SELECT rank, counter, value FROM darshan WHERE counter IN {names} ORDER BY counter"),
    );
    let row = |counter: &str, value: f64| serde_json::json!({"rank": 0, "counter": counter, "value": value});
    assert_eq!(
        rows,
        [
            row("POSIX_ACCESS1_ACCESS", 10.0),
            row("POSIX_ACCESS1_COUNT", 4.0),
            row("POSIX_STATS", 1.0),
            row("POSIX_WRITES", 4.0)
        ]
    );
}

#[test]
fn time_and_bytes_by_server_are_those_of_calls_on_its_mounts() {
    let sample = sample();
    let mount = |id: i32, server: Option<&str>| {
        let path = format!("/mnt/{id}");
        Mount { mount_id: id, path, server: server.map(str::to_owned), ..sample.mounts[0].clone() }
    };
    let mounts = [mount(1, Some("nas1")), mount(2, Some("nas2")), mount(3, None)];
    let file = |id: i32| File { file_id: id, mount_id: Some(id), ..sample.files[0].clone() };
    let call = |file: i32, n: u32, kind: Kind| Span {
        file_id: Some(file),
        bytes: Some(1000),
        layer_top: true,
        remote_ns: Some(10),
        ..Span::new(span_id(1, n), (Layer::Syscall, "read", kind), 1, (i64::from(n) * 100, i64::from(file) * 20))
    };
    let calls = [(1, Kind::Read), (2, Kind::Read), (1, Kind::Read), (2, Kind::Write), (3, Kind::Read)];
    let mut rows: Vec<Row> = mounts.into_iter().map(|mount| Row::Mount(Box::new(mount))).collect();
    rows.extend((1..4).map(|id| Row::File(Box::new(file(id)))));
    rows.extend(calls.into_iter().zip(1..).map(|((at, kind), n)| Row::Span(Box::new(call(at, n, kind)))));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, rows);
    let answers = sql::query(&path, "SELECT server, mount, kind, calls, bytes, time_ns, remote_ns FROM v_servers");
    let wanted = [
        ("nas1", "/mnt/1", "read", 2, 2000, 40, 20),
        ("nas2", "/mnt/2", "read", 1, 1000, 40, 10),
        ("nas2", "/mnt/2", "write", 1, 1000, 40, 10),
    ];
    let wanted = wanted.map(|(server, mount, kind, calls, bytes, time_ns, remote_ns)| {
        json!({
            "server": server, "mount": mount, "kind": kind, "calls": calls, "bytes": bytes, "time_ns": time_ns,
            "remote_ns": remote_ns,
        })
    });
    assert_eq!(answers, wanted);
}
