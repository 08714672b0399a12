//! The report and the SQL views agree on datasets made at random.

use crate::common::{figures, sql};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::trace::{Trace, demoted, file, handle, hooks, meta, process, rest, rpc, sums};
use iotrace_bpf::export::{DatasetWriter, Moment, Options, Progress, RotatingWriter, VIEWS, report};
use iotrace_bpf::replay::Replay;
use iotrace_bpf::rows::{CallPath, Row, Stack};
use iotrace_bpf::summary::view::{Focus, Screen, Source as _};
use iotrace_bpf::vocabulary::{Kind, Layer};

type Op = (Layer, &'static str, Kind);

const TOP: [Op; 9] = [
    (Layer::App, "step", Kind::Other),
    (Layer::App, "main", Kind::Other),
    (Layer::App, "put", Kind::Write),
    (Layer::Hdf5, "H5Dwrite", Kind::Write),
    (Layer::Hdf5, "H5Dread", Kind::Read),
    (Layer::Hdf5, "H5Fclose", Kind::Close),
    (Layer::Stdio, "fwrite", Kind::Write),
    (Layer::Syscall, "openat", Kind::Open),
    (Layer::Syscall, "read", Kind::Read),
];
const BELOW: [Op; 11] = [
    (Layer::App, "step", Kind::Other),
    (Layer::App, "inner", Kind::Other),
    (Layer::App, "put", Kind::Write),
    (Layer::Hdf5, "H5Dwrite", Kind::Write),
    (Layer::Mpiio, "MPI_File_write_at", Kind::Write),
    (Layer::Mpiio, "MPI_File_read_at", Kind::Read),
    (Layer::Stdio, "fwrite_unlocked", Kind::Write),
    (Layer::Syscall, "pwrite64", Kind::Write),
    (Layer::Syscall, "read", Kind::Read),
    (Layer::Syscall, "fsync", Kind::Sync),
    (Layer::Syscall, "fstat", Kind::Meta),
];

/// Numbers that look random and are the same every time (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as i64
    }

    /// True once in `n`.
    fn once_in(&mut self, n: i64) -> bool {
        self.below(n) == 0
    }
}

struct Maker {
    trace: Trace,
    dice: Dice,
    requests: i64,
}

impl Maker {
    /// A call and, up to a depth, calls inside it, properly nested.
    fn tree(&mut self, thread: u32, parent: Option<usize>, op: Op, start: i64, dur: i64, depth: u32) {
        let at = self.trace.call(thread, parent, op, start, dur);
        let bytes = self.dice.below(1 << 20);
        let (unknown, short, failed) = (self.dice.once_in(5), self.dice.once_in(7), self.dice.once_in(11));
        let (file, offset) = (self.dice.below(12) as i32, self.dice.below(1 << 30));
        let nameless = self.dice.once_in(6);
        let probe = self.dice.once_in(2).then(|| self.dice.below(dur / 8 + 1));
        let span = self.trace.edit(at);
        span.probe_ns = probe;
        span.file_id = (!nameless).then_some(file);
        span.handle_id = match op.0 {
            Layer::Hdf5 => Some(file),
            Layer::Syscall => Some(file + 100),
            _ => None,
        };
        if matches!(op.2, Kind::Read | Kind::Write) {
            span.req_bytes = (!unknown).then_some(bytes);
            span.bytes = (!unknown && !failed).then_some(if short { bytes / 2 } else { bytes });
            span.offset = Some(offset);
        }
        if failed {
            span.errno = if op.0 == Layer::Syscall { [2, 5, 13][file as usize % 3] } else { -1 };
        }
        span.path_id = (!nameless).then_some(file + 1);
        if self.dice.once_in(40) {
            self.trace.edit(at).stack_id = Some(self.dice.below(40) as i32);
        }
        if self.dice.once_in(9) {
            self.trace.edit(at).layer_ns = Some(self.dice.below(dur + 1));
        }
        if op.0 == Layer::Syscall {
            let mut left = dur - probe.unwrap_or(0);
            let mut part = |dice: &mut Dice| {
                let ns = dice.below(left.max(0) + 1);
                left -= ns;
                Some(ns).filter(|_| !dice.once_in(9))
            };
            let parts: [Option<i64>; 10] = std::array::from_fn(|_| part(&mut self.dice));
            let span = self.trace.edit(at);
            [span.cpu_ns, span.runq_ns, span.throttle_ns, span.lock_ns, span.writeback_ns] =
                *parts.first_chunk().unwrap();
            [span.journal_ns, span.flush_ns, span.devqueue_ns, span.device_ns, span.remote_ns] =
                *parts.last_chunk().unwrap();
            if self.dice.once_in(4) {
                self.request(at);
            }
            return;
        }
        let mut from = start + self.dice.below(dur / 10 + 1);
        while depth < 5 && !self.dice.once_in(4) {
            let len = self.dice.below(dur / 3 + 1);
            if from + len > start + dur {
                break;
            }
            let below = BELOW[self.dice.below(BELOW.len() as i64) as usize];
            self.tree(thread, Some(at), below, from, len, depth + 1);
            from += len + self.dice.below(dur / 20 + 1);
        }
    }

    fn request(&mut self, at: usize) {
        const WHAT: [(&str, &str); 4] =
            [("write", "writeback"), ("write", "sync"), ("read", "readahead"), ("flush", "flush")];
        let what = WHAT[self.dice.below(4) as usize];
        let bytes = if what.0 == "flush" { 0 } else { 4096 * (1 + self.dice.below(64) as i32) };
        let dur = self.dice.below(5_000_000);
        self.requests += 1;
        self.trace.request(self.requests, at, what, bytes, dur);
        if self.dice.once_in(3) {
            // Another call wrote the data.
            let writer = self.dice.below(at as i64 + 1) as usize;
            self.trace.link(self.requests, writer, i64::from(bytes) / 2, "writeback");
        }
    }
}

/// A trace of some 10 000 calls; `ranks` of its processes have a rank.
pub fn random(seed: u64, threads: u32, ranks: u32) -> Vec<Row> {
    made(seed, threads, ranks, 0).trace.finish()
}

/// The same, to be added to; ranks count from the first one.
fn made(seed: u64, threads: u32, ranks: u32, first: i32) -> Maker {
    let mut maker = Maker { trace: Trace::default(), dice: Dice(seed), requests: 0 };
    for row in [hooks(1, 2e9), hooks(900_000_000_000, 90e9)].concat() {
        maker.trace.row(row);
    }
    maker.trace.row(meta("command", "random"));
    maker.trace.row(meta("end_ns", "999000000000"));
    for id in 0..12 {
        maker.trace.row(file(id, "/old"));
        maker.trace.row(handle(id, None, Layer::Hdf5, id, None));
        maker.trace.row(handle(id + 100, Some(id), Layer::Syscall, id, None));
        maker.trace.row(file(id, &format!("/data/{id}.h5")));
    }
    // One path is missing; some start nowhere, or in the root directory.
    for id in 1..12 {
        let directory = ["/data/", "/data/sub/", "/", ""][id as usize % 4];
        maker.trace.row(Row::CallPath(CallPath { path_id: id, path: format!("{directory}{id}") }));
    }
    // Some stacks are the same, one is missing.
    for stack_id in 1..40 {
        let frames = vec![format!("function{} (sim)", stack_id % 5), "main (sim)".to_owned()];
        maker.trace.row(Row::Stack(Stack { stack_id, frames }));
    }
    for thread in 0..threads {
        maker.trace.row(process(thread as i32, None));
        if thread < ranks {
            // Two processes to a rank.
            maker.trace.row(process(thread as i32, Some(first + thread as i32 / 2)));
        }
        let mut now = 0;
        for _ in 0..300 {
            let scale = maker.dice.below(7) as u32;
            let dur = maker.dice.below(10i64.pow(scale + 2));
            let op = TOP[maker.dice.below(TOP.len() as i64) as usize];
            maker.tree(thread, None, op, now, dur, 0);
            now += dur + maker.dice.below(1000);
        }
    }
    maker
}

pub fn write(dir: &Path, rows: Vec<Row>) {
    write_of("node1", dir, rows);
}

fn write_of(host: &str, dir: &Path, rows: Vec<Row>) {
    let options = Options { path: dir, host, force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    for row in rows {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap();
}

fn agree(rows: Vec<Row>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, rows);
    sql::compare(&path);
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

/// A recorded dataset, with the parts that it was stored without because they are empty.
pub fn recorded(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, Vec::new());
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for entry in std::fs::read_dir(fixtures.join(name)).unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, path.join(from.file_name().unwrap())).unwrap();
    }
    (dir, path)
}

#[test]
fn small_runs_of_real_programs() {
    for name in ["sqlite", "tar", "fio", "import", "hdf5"] {
        let (_dir, path) = recorded(&format!("report/{name}"));
        sql::compare(&path);
    }
}

#[test]
fn calls_of_real_programs() {
    let (_dir, path) = recorded("mpi_hdf5");
    sql::compare(&path);
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
    access(None, 1, (Layer::Mpiio, "MPI_File_read_at", Kind::Read), 0, Some(10));
    access(None, 2, (Layer::Mpiio, "MPI_File_set_view", Kind::Meta), 0, None);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, trace.finish());
    let rows = sql::query(&path, "SELECT handle_id, kind, pattern, calls, consecutive, switches FROM v_handle_pattern");
    let row = |kind: &str, pattern: &str, calls: i64, consecutive: i64, switches: i64| {
        serde_json::json!({"handle_id": 1, "kind": kind, "pattern": pattern, "calls": calls,
                           "consecutive": consecutive, "switches": switches})
    };
    assert_eq!(rows, [row("read", "single", 1, 0, 1), row("write", "consecutive", 10, 9, 0)]);
}

/// Three nodes whose ids are all the same numbers. That of the second one has a clock that is 40 ms behind, the third 5 us.
const NODES: [(&str, i64); 3] = [("node1", 0), ("node2", 40_000_000), ("node3", 5_000)];
/// When each trace began, in ns since 1970, by a clock that is right.
const BEGAN: i64 = 1_735_689_600_000_000_000;

/// One node's trace: calls at random, and files that all ranks of all nodes open together.
fn node(n: usize) -> Vec<Row> {
    let (host, behind) = NODES[n];
    let began = n as i64 * 3_000_000_000;
    let mut maker = made(40 + n as u64, 4, 4, n as i32 * 2);
    for (key, value) in [
        ("host", host.to_owned()),
        ("t0_ns", (77_000 + began).to_string()),
        ("t0_wall_ns", (BEGAN + began - behind).to_string()),
    ] {
        maker.trace.row(meta(key, &value));
    }
    for id in 0..20 {
        // Processes of other nodes come before and after: the last of all at +90 us.
        let opens = 2_000_000_000_000 + id * 1_000_000_000 - began;
        for thread in 0..4 {
            let comes = opens + (n as i64 * 4 + i64::from(thread)) * 8000 + maker.dice.below(2000);
            let leaves = opens + 90_000 + maker.dice.below(50_000);
            let call = (Layer::Mpiio, "MPI_File_open", Kind::Open);
            let at = maker.trace.call(thread, None, call, comes, leaves - comes);
            let span = maker.trace.edit(at);
            (span.coll_id, span.rank) = (Some(1000 + id), Some(n as i32 * 4 + thread as i32));
            // One that fails returns at once, and shows nothing about the others.
            let failed = maker.trace.call(thread, None, call, comes + 500_000_000 + n as i64 * 100_000, 1000);
            let span = maker.trace.edit(failed);
            (span.coll_id, span.errno) = (Some(5000 + id), -1);
        }
    }
    maker.trace.finish()
}

#[test]
fn nodes_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    for (n, (host, _)) in NODES.into_iter().enumerate() {
        write_of(host, &dir.path().join(host), node(n));
    }
    sql::compare(dir.path());

    // Sums are those of the nodes, whose ids do not meet.
    let built = |path: &Path| report::build(&mut report::Union::open(path).unwrap()).unwrap();
    let (all, each) = (built(dir.path()), NODES.map(|(host, _)| built(&dir.path().join(host))));
    assert_eq!(all.header.files, each.iter().map(|one| one.header.files).sum::<usize>());
    assert_eq!(all.header.processes, each.iter().map(|one| one.header.processes).sum::<usize>());
    assert_eq!((all.header.ranks, all.ranks.rows.len()), (6, 6));
    for layer in &all.layers {
        let of = |one: &report::Report| one.layers.iter().find(|l| l.layer == layer.layer).map(|l| l.exclusive_ns);
        let sum: Option<i64> =
            each.iter().filter_map(|one| of(one).flatten()).fold(None, |s, n| Some(s.unwrap_or(0) + n));
        assert_eq!(layer.exclusive_ns, sum, "{}", layer.layer);
    }
    shown_together(dir.path(), &all);
    let slowest: Vec<_> = all.slowest.iter().map(|call| call.tree.dur_ns).collect();
    let mut of_each: Vec<_> = each.iter().flat_map(|one| &one.slowest).map(|call| call.tree.dur_ns).collect();
    of_each.sort_by_key(|ns| std::cmp::Reverse(*ns));
    assert_eq!(slowest[0], of_each[0]);
    assert!(all.text(120).contains("Nodes: 3; clocks against that of node1"), "{}", all.text(120));

    // The clock that is behind further than the calls allow is set right, within the bounds; the other is left alone.
    let clocks: Vec<_> = all.nodes.iter().map(|node| node.clock).collect();
    assert_eq!(
        clocks.iter().map(|c| (c.how, c.calls)).collect::<Vec<_>>(),
        [("reference", 0), ("calls", 20), ("wall", 20)]
    );
    for (clock, (host, behind)) in clocks.iter().zip(NODES).skip(1) {
        let (least, most) = (clock.least_ns.unwrap(), clock.most_ns.unwrap());
        assert!((least..=most).contains(&behind) && most - least < 300_000, "{host}: {clock:?}");
        assert!((clock.offset_ns - behind).abs() <= most - least, "{host}: {clock:?}");
    }
    // With it no rank on the first node leaves a call before all are in it, nor the other way round.
    let early =
        "WITH stays AS (SELECT coll_id, host, max(wall_ns) AS came, min(wall_ns + dur_ns) AS went, count(*) AS n
                                FROM v_spans WHERE coll_id < 5000 GROUP BY coll_id, host)
        SELECT a.coll_id, b.host FROM stays a JOIN stays b USING (coll_id)
        WHERE a.host = 'node1' AND (a.came > b.went OR b.came > a.went OR b.n <> 4)";
    assert_eq!(sql::query(dir.path(), early), [] as [serde_json::Value; 0]);
    let met = sql::query(
        dir.path(),
        "SELECT ranks, first_waits_ns < 250000 AS soon FROM v_collectives WHERE coll_id < 5000 GROUP BY ALL",
    );
    assert_eq!(met, [serde_json::json!({"ranks": 12, "soon": true})]);
}

/// The dashboard over all nodes has the figures of the report on all.
fn shown_together(dir: &Path, report: &report::Report) {
    let mut replay = Replay::open(dir).unwrap();
    let focus = Focus::default();
    replay.wait(&focus);
    let shown = replay.snapshot(&focus);
    assert_eq!(shown.notes.iter().find(|note| note.contains("not readable")), None);
    for row in shown.overview.layers.iter().filter(|row| row.layer != Some(Layer::Block)) {
        let layer = report.layers.iter().find(|l| Some(l.layer) == row.layer.map(Layer::name)).unwrap();
        assert_eq!(Some(row.sums.self_ns), layer.exclusive_ns, "{}", layer.layer);
    }
    let all = report.ranks.imbalance.iter().find(|row| row.layer == "all").unwrap();
    let imbalance = shown.overview.imbalance.unwrap();
    assert_eq!((imbalance.members, imbalance.slowest), (report.header.ranks, all.slowest));
    assert!((imbalance.time_max_over_mean - all.max_to_mean).abs() < 1e-9, "{imbalance:?} {all:?}");
    assert!((imbalance.bytes_max_over_mean - all.bytes_max_to_mean.unwrap()).abs() < 1e-9, "{imbalance:?} {all:?}");
    let processes = replay.snapshot(&Focus { screen: Screen::Processes, ..Focus::default() });
    assert_eq!(processes.processes.rows.len(), report.header.processes);
}

#[test]
fn the_text_of_two_nodes() {
    let dir = tempfile::tempdir().unwrap();
    for (n, (host, _)) in NODES.into_iter().enumerate().take(2) {
        write_of(host, &dir.path().join(host), node(n));
    }
    let mut out = Vec::new();
    report::run(dir.path(), false, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn runs_that_have_nothing_to_do_with_each_other_have_a_report_each() {
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, host: &str, command: &str, wall: i64| {
        let mut maker = made(wall as u64 + 1, 2, 2, 0);
        let facts = [("host", host), ("command", command), ("end_ns", "1000000000")];
        for (key, value) in facts {
            maker.trace.row(meta(key, value));
        }
        maker.trace.row(meta("t0_ns", &wall.to_string()));
        maker.trace.row(meta("t0_wall_ns", &(BEGAN + wall).to_string()));
        write_of(host, &dir.path().join(name), maker.trace.finish());
    };
    std::fs::create_dir(dir.path().join("job")).unwrap();
    run("job/node1", "node1", "app", 0);
    run("job/node2", "node2", "app", 5_000_000);
    run("later", "node1", "gzip", 9_000_000_000);
    let printed = |path: &Path, json: bool| {
        let mut out = Vec::new();
        report::run(path, json, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = printed(dir.path(), false);
    assert!(text.contains("holds 2 runs that have nothing to do with each other"), "{text}");
    let heads: Vec<_> = text.lines().filter(|line| line.starts_with("=== run ")).collect();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let nodes = format!("{}, {}", path("job/node1"), path("job/node2"));
    assert_eq!(heads, [format!("=== run 1 of 2: {nodes}"), format!("=== run 2 of 2: {}", path("later"))]);
    // Each is as in a report of it alone.
    assert!(
        text.contains(&printed(&dir.path().join("job"), false))
            && text.contains(&printed(&dir.path().join("later"), false))
    );
    let json: serde_json::Value = serde_json::from_str(&printed(dir.path(), true)).unwrap();
    let alone: serde_json::Value = serde_json::from_str(&printed(&dir.path().join("later"), true)).unwrap();
    assert_eq!((json["runs"].as_array().unwrap().len(), &json["runs"][1]["report"]), (2, &alone));
    assert_eq!(json["runs"][0]["datasets"], serde_json::json!([path("job/node1"), path("job/node2")]));
    let refused = format!("{:#}", Replay::open(dir.path()).err().unwrap());
    assert!(refused.contains("give one of them") && refused.contains(&path("later")), "{refused}");
}

/// The rows as one dataset, `whole`, and as three of one recording, in `parts`. The wall clock is set in between, which nobody
/// must notice.
fn whole_and_parts(dir: &Path, rows: Vec<Row>) -> (PathBuf, PathBuf) {
    let (whole, parts) = (dir.join("whole"), dir.join("parts"));
    let facts = [("host", "node1".to_owned()), ("t0_ns", "5000000000".to_owned()), ("t0_wall_ns", BEGAN.to_string())];
    let rows: Vec<_> = facts.into_iter().map(|(key, value)| meta(key, &value)).chain(rows).collect();
    write(&whole, rows.clone());
    let options = Options { path: &parts, host: "node1", force: false, owner: None, views: VIEWS };
    let mut writer =
        RotatingWriter::create(options, None, BEGAN as u64, Arc::default() as Arc<Progress>, |_: &str| {}).unwrap();
    let third = rows.len() / 3;
    for (n, row) in rows.into_iter().enumerate() {
        writer.push(row).unwrap();
        if n == third || n == 2 * third {
            let elapsed = Duration::from_millis(if n == third { 10_300 } else { 20_700 });
            let since = elapsed.as_nanos() as u64;
            let wall = BEGAN as u64 + since + 7_000_000_000;
            writer.rotate(Moment { elapsed, monotonic: 5_000_000_000 + since, wall }).unwrap();
        }
    }
    writer.finish().unwrap();
    (whole, parts)
}

#[test]
fn a_recording_cut_into_datasets_has_the_report_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = rest(1, 1_000_000_000);
    rows.extend(random(3, 5, 0));
    rows.extend(rest(2, 25_000_000_000));
    let (whole, parts) = whole_and_parts(dir.path(), rows);
    let built = |path: &Path| report::build(&mut report::Union::open(path).unwrap()).unwrap();
    let (one, mut cut) = (built(&whole), built(&parts));
    assert_eq!(cut.nodes.iter().map(|node| (node.host.as_str(), node.datasets)).collect::<Vec<_>>(), [("node1", 3)]);
    cut.nodes.clone_from(&one.nodes);
    cut.header.clone_from(&one.header);
    assert_eq!(cut, one);
    sql::compare(&whole);
    sql::compare(&parts);
}

#[test]
fn a_recording_cut_into_datasets_has_the_views_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = rest(1, 1_000_000_000);
    rows.push(sums(1, 2_000_000_000));
    rows.push(demoted(1, 2_000_000_000));
    let calls = random(5, 6, 4);
    let spans: Vec<_> =
        calls.iter().filter_map(|row| if let Row::Span(span) = row { Some(span) } else { None }).collect();
    let served = [rpc(1, spans[0], spans[10]), rpc(2, spans[spans.len() - 1], spans[1])];
    rows.push(served[0].clone());
    rows.extend(calls.clone());
    rows.push(served[1].clone());
    rows.extend(rest(2, 25_000_000_000));
    rows.push(sums(1, 26_000_000_000));
    let (whole, parts) = whole_and_parts(dir.path(), rows);
    // Facts, and verdicts on layers, are written again.
    let views: Vec<_> = sql::views(&whole).into_iter().filter(|view| view != "datasets" && view != "meta").collect();
    assert!(views.len() > 40, "{views:?}");
    let mut queries: Vec<_> = views.iter().map(|view| format!("FROM {view}")).collect();
    queries.push("SELECT value FROM meta WHERE key IN ('t0_ns', 't0_wall_ns')".to_owned());
    queries.push(format!("FROM call_tree({})", spans[0].root_id));
    for (query, (one, cut)) in
        queries.iter().zip(sql::queries(&whole, &queries).into_iter().zip(sql::queries(&parts, &queries)))
    {
        let sorted = |rows: &[serde_json::Value]| {
            let mut rows: Vec<_> = rows.iter().map(|row| rounded(row).to_string()).collect();
            rows.sort();
            rows
        };
        let (one, cut) = (sorted(&one), sorted(&cut));
        let differ = one.iter().zip(&cut).find(|(a, b)| a != b);
        assert!(one == cut, "{query}: {} rows of one dataset, {} of its parts: {differ:#?}", one.len(), cut.len());
        if query.contains(" v_") || !query.starts_with("FROM ") {
            continue;
        }
        assert!(!one.is_empty(), "{query}: nothing to compare");
    }
}

/// With fractions to nine digits: the order in which numbers are added up is not guaranteed.
fn rounded(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(n) if n.is_f64() => format!("{:.8e}", n.as_f64().unwrap()).into(),
        serde_json::Value::Array(values) => values.iter().map(rounded).collect(),
        serde_json::Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), rounded(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn datasets_of_a_flight_recorder_are_not_added_up() {
    let dir = tempfile::tempdir().unwrap();
    let flight = |name: &str, run: &str| {
        let facts = [("host", "node1"), ("t0_ns", run), ("run_t0_ns", run), ("trigger", "SIGUSR2")];
        write(&dir.path().join(name), facts.iter().map(|(key, value)| meta(key, value)).collect());
    };
    flight("2026-11-22T10-30-00Z", "5");
    flight("2026-11-22T10-40-00Z", "7");
    report::Union::open(dir.path()).unwrap();
    flight("2026-11-22T10-50-00Z", "7");
    let error = report::Union::open(dir.path()).map(drop).unwrap_err().to_string();
    assert!(error.contains("2 datasets are of one flight recorder") && error.ends_with("T10-50-00Z"), "{error}");
}

#[test]
fn an_unreadable_dataset_is_reported_and_left_out() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
    for (host, _) in NODES {
        write_of(host, &dir.path().join("a/b").join(host), random(9, 2, 0));
    }
    let broken = dir.path().join("a/b/node2");
    for entry in std::fs::read_dir(&broken).unwrap() {
        std::fs::write(entry.unwrap().path(), "nothing").unwrap();
    }
    // What links lead to is there already.
    std::os::unix::fs::symlink("node1", dir.path().join("a/b/latest")).unwrap();
    let mut union = report::Union::open(dir.path()).unwrap();
    let report = report::build(&mut union).unwrap();
    assert_eq!(
        report.nodes.iter().map(|n| (n.host.as_str(), n.datasets)).collect::<Vec<_>>(),
        [("node1", 1), ("node3", 1)]
    );
    assert!(report.warnings.iter().any(|w| w.contains("left out") && w.contains("node2")), "{:?}", report.warnings);
    std::fs::remove_dir_all(&broken).unwrap();
    sql::compare(dir.path());
    std::fs::remove_dir_all(dir.path().join("a/b/node1")).unwrap();
    std::fs::remove_dir_all(dir.path().join("a/b/node3")).unwrap();
    assert!(report::Union::open(dir.path()).is_err());
}

#[test]
fn ids_and_times_beyond_all_bounds_are_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let extreme = |host: &str, id: i64, ns: i64| {
        let mut trace = Trace::default();
        for (key, value) in [("t0_ns", ns), ("t0_wall_ns", ns), ("end_ns", ns), ("flight_from_ns", -ns)] {
            trace.row(meta(key, &value.to_string()));
        }
        trace.row(meta("trigger", "crash"));
        let at = trace.call(1, None, TOP[8], ns, 10);
        let span = trace.edit(at);
        (span.span_id, span.root_id) = (id, id);
        let other = trace.call(2, None, TOP[8], 0, 10);
        trace.request(id & i64::from(i32::MAX), other, ("read", "sync"), 4096, 10);
        write_of(host, &dir.path().join(host), trace.finish());
        report::build(&mut report::Union::open(&dir.path().join(host)).unwrap()).unwrap();
    };
    extreme("node1", 1, i64::MIN + 1);
    extreme("node2", 2, i64::MAX);
    report::build(&mut report::Union::open(dir.path()).unwrap()).unwrap();
    extreme("node3", i64::MAX, i64::MAX);
    let error = report::Union::open(dir.path()).map(drop).unwrap_err().to_string();
    assert!(error.contains("too great together"), "{error}");
}

#[test]
fn nodes_that_lack_a_run_did_not_meet() {
    const HOUR: i64 = 3_600_000_000_000;
    let dir = tempfile::tempdir().unwrap();
    let open = |trace: &mut Trace, rank: i32, coll_id: i64, at: i64| {
        let call = trace.call(rank as u32, None, (Layer::Mpiio, "MPI_File_open", Kind::Open), at, 100);
        let span = trace.edit(call);
        (span.coll_id, span.rank) = (Some(coll_id), Some(rank));
    };
    // The first node is in no call with others; of the last one the first of two runs of the program is missing.
    for (host, rank, opens) in [
        ("node0", 9, vec![(5, 0)]),
        ("node1", 1, vec![(7, 0), (7, HOUR), (8, 0)]),
        ("node2", 2, vec![(7, HOUR), (8, 70)]),
    ] {
        let mut trace = Trace::default();
        for (key, value) in [("host", host), ("t0_ns", "0"), ("t0_wall_ns", "1000")] {
            trace.row(meta(key, value));
        }
        for (coll_id, at) in opens {
            open(&mut trace, rank, coll_id, at);
        }
        write_of(host, &dir.path().join(host), trace.finish());
    }
    let report = report::build(&mut report::Union::open(dir.path()).unwrap()).unwrap();
    let clocks: Vec<_> = report.nodes.iter().map(|n| (n.clock.how, n.clock.calls, n.clock.offset_ns)).collect();
    assert_eq!(clocks, [("wall", 0, 0), ("reference", 0, 0), ("wall", 1, 0)]);
    assert!(report.text(120).contains("clocks against that of node1"));
    sql::compare(dir.path());
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
