//! The report on several nodes, and the SQL views over them.

use crate::common::sql;

use std::path::Path;

use crate::common::synthetic::trace::{Trace, meta};
use crate::reports::random::{BEGAN, NODES, TOP, made, random, write, write_of};
use iotrace_bpf::export::report;
use iotrace_bpf::replay::Replay;
use iotrace_bpf::rows::Row;
use iotrace_bpf::summary::view::{Focus, Screen, Source as _};
use iotrace_bpf::vocabulary::{Kind, Layer};

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
    sql::compare_now(dir.path());

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
    assert_eq!((imbalance.ranks, imbalance.slowest), (report.header.ranks, all.slowest));
    assert!((imbalance.max_to_mean - all.max_to_mean).abs() < 1e-9, "{imbalance:?} {all:?}");
    let bytes = [imbalance, *all].map(|row| row.bytes_max_to_mean.unwrap());
    assert!((bytes[0] - bytes[1]).abs() < 1e-9, "{imbalance:?} {all:?}");
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
    sql::compare_now(dir.path());
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
    sql::compare_now(dir.path());
}
