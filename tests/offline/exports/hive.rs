//! `export --to hive`: a tree of directories that `DuckDB` and Polars prune, and that is still read by the report.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::sql::python;
use iotrace_bpf::export::{Dataset, DatasetWriter, Options, Table, VIEWS};
use iotrace_bpf::rows::{Meta, Metric, Row, Span, span_id};
use iotrace_bpf::vocabulary::{Kind, Layer};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::Value;
use std::time::Duration;

/// Counts calls by partition, and how many files one of them needs.
const SCRIPT: &str = r#"
import duckdb, json, sys
calls = f"read_parquet('{sys.argv[1]}/**/spans-*.parquet', hive_partitioning = true, union_by_name = true)"
counts = duckdb.sql(f"SELECT date::VARCHAR, node, start::VARCHAR, count(*) FROM {calls} GROUP BY ALL ORDER BY ALL").fetchall()
plan = duckdb.sql(f"EXPLAIN SELECT sum(dur_ns) FROM {calls} WHERE start = {counts[0][2]}").fetchall()[0][1]
print(json.dumps({"counts": counts, "plan": plan}))
"#;
/// The same in Polars.
const POLARS: &str = r#"
import json, polars as pl, sys
calls = pl.scan_parquet(f"{sys.argv[1]}/**/spans-*.parquet", hive_partitioning=True, missing_columns="insert")
by = ["date", "node", "start"]
counts = calls.group_by(by).len().sort(by).collect().rows()
of_one = calls.filter(pl.col("start") == counts[0][2]).select(pl.len())
counts = [[str(date), node, str(start), n] for date, node, start, n in counts]
print(json.dumps({"counts": counts, "plan": of_one.explain(), "one": of_one.collect().item()}))
"#;

fn tracer(arguments: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).arg(arguments[0]).arg(dir).args(&arguments[1..]).output().unwrap()
}

/// All calls, as the report counts them.
fn calls(dir: &Path) -> i64 {
    let out = tracer(&["report", "--json"], dir);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let layers = report["layers"].as_array().unwrap().iter().filter(|row| row["layer"] != "block");
    layers.flat_map(|row| row["ops"].as_array().unwrap()).map(|op| op["calls"].as_i64().unwrap()).sum()
}

#[test]
fn datasets_become_partitions_that_queries_prune_and_reports_read() {
    let work = tempfile::tempdir().unwrap();
    let all = work.path().join("all");
    fs::create_dir(&all).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/report");
    for name in ["sqlite", "hdf5"] {
        let out = Command::new("cp").arg("-R").arg(fixtures.join(name)).arg(&all).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    let tree = work.path().join("tree");
    let export = || {
        let out = tracer(&["export", "--to", "hive", "-o", tree.to_str().unwrap()], &all);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert_eq!(export(), "");

    let ask = |script: &str| -> Value {
        let out = Command::new(python()).args(["-c", script]).arg(&tree).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let read = ask(SCRIPT);
    let counts = read["counts"].as_array().unwrap();
    assert_eq!(counts.len(), 2, "{counts:?}");
    for row in counts {
        let [date, node, start] = [0, 1, 2].map(|at| row[at].as_str().unwrap());
        assert_eq!(calls(&tree.join(format!("date={date}/node={node}/start={start}"))), row[3].as_i64().unwrap());
    }
    let all_calls: i64 = counts.iter().map(|row| row[3].as_i64().unwrap()).sum();
    assert_eq!(all_calls, calls(&all.join("sqlite")) + calls(&all.join("hdf5")));
    assert!(read["plan"].as_str().unwrap().contains("Scanning Files: 1/2"), "{}", read["plan"]);
    let polars = ask(POLARS);
    assert_eq!(polars["counts"], read["counts"]);
    // All that it scans is in the one partition.
    let plan = polars["plan"].as_str().unwrap();
    let scanned = plan.split_once("Parquet SCAN [").unwrap().1.split(']').next().unwrap();
    let of_one = format!("/start={}/spans-", counts[0][2].as_str().unwrap());
    assert!(scanned.split(", ").all(|file| file.contains(&of_one)), "{plan}");
    assert_eq!(polars["one"], counts[0][3]);

    let files = |dir: &Path| Command::new("find").arg(dir).arg("-type").arg("f").output().unwrap().stdout;
    // Under sudo the tree is the caller's, and the parts, which are links to those of somebody else, stay whose they
    // are.
    if nix::unistd::geteuid().is_root() {
        let by_sudo = work.path().join("by-sudo");
        let mut command = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
        command.arg("export").arg(&all).args(["--to", "hive", "-o"]).arg(&by_sudo);
        assert!(command.env("SUDO_UID", "65534").env("SUDO_GID", "65534").status().unwrap().success());
        let owner = |path: &Path| fs::metadata(path).unwrap().uid();
        let parts = files(&all);
        assert!(String::from_utf8_lossy(&parts).lines().all(|part| owner(Path::new(part)) == 0));
        assert_eq!(owner(&by_sudo), 65534);
    }

    // What is there stays; what is not complete is left out and named.
    let before = files(&tree);
    assert_eq!(export(), "");
    assert_eq!(files(&tree), before);
    fs::remove_file(all.join("sqlite/meta-00002.parquet")).unwrap();
    assert!(export().contains("not complete yet, left out"));
}

fn all<T: Table>(dir: &Path) -> Vec<T> {
    Dataset::open(dir).unwrap().all().unwrap()
}

/// Parts of a table, with their rows and row groups.
fn parts(dir: &Path, table: &str) -> Vec<(String, i64, usize)> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(&format!("{table}-"))).collect();
    names.sort();
    let part = |name: String| {
        let reader = SerializedFileReader::new(fs::File::open(dir.join(&name)).unwrap()).unwrap();
        (name, reader.metadata().file_metadata().num_rows(), reader.num_row_groups())
    };
    names.into_iter().map(part).collect()
}

#[test]
fn small_parts_become_one_and_large_ones_are_the_same_file() {
    const MINUTES: i64 = 30;
    let work = tempfile::tempdir().unwrap();
    let from = work.path().join("recorded");
    let options = Options { path: &from, host: "n1", force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    for (key, value) in [("t0_ns", "5"), ("run_t0_ns", "5"), ("t0_wall_ns", "1795320368281144293"), ("end_ns", "9")] {
        writer.push(Row::Meta(Meta { key: key.to_owned(), value: value.to_owned() })).unwrap();
    }
    let mut calls = 0;
    for minute in 0..MINUTES {
        // In one minute much happens.
        let busy = if minute == 20 { 70_000 } else { 5_000 };
        for _ in 0..busy {
            let (thread, seq) = (1 + calls as u32 % 3, calls as u32 / 3);
            let times = (minute * 60_000_000_000 + calls * 10, 7);
            let read = Span::new(span_id(thread, seq), (Layer::Syscall, "read", Kind::Read), 1, times);
            let span = Span { pid: 9, tid: thread as i32, ..read };
            writer.push(Row::Span(Box::new(span))).unwrap();
            calls += 1;
        }
        let metric = Metric { t_ns: minute, name: "hooks_ns", label: None, value: minute as f64 };
        writer.push(Row::Metric(metric)).unwrap();
        writer.tick(Duration::from_secs(60 * (minute as u64 + 1))).unwrap();
    }
    writer.finish().unwrap();
    let tree = work.path().join("tree");
    let out = tracer(&["export", "--to", "hive", "-o", tree.to_str().unwrap()], &from);
    assert!(out.status.success() && out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    let to = tree.join("date=2026-11-22/node=n1/start=1795320368281144293");

    assert_eq!(parts(&from, "spans").len() as i64, MINUTES + 1);
    let joined: Vec<(i64, usize)> = parts(&to, "spans").into_iter().map(|(_, rows, groups)| (rows, groups)).collect();
    assert_eq!(joined, [(100_000, 2), (70_000, 2), (45_000, 1)]);
    assert_eq!(parts(&to, "metrics").iter().map(|(_, rows, _)| *rows).collect::<Vec<_>>(), [MINUTES]);
    let large = &parts(&to, "spans")[1].0;
    assert_eq!(fs::metadata(from.join(large)).unwrap().ino(), fs::metadata(to.join(large)).unwrap().ino());
    let mode = |name: &str| fs::metadata(to.join(name)).unwrap().mode();
    assert!(parts(&to, "spans").iter().all(|(name, _, _)| mode(name) == mode(large)));

    let order = |dir: &Path| {
        let mut spans: Vec<Span> = all(dir);
        spans.sort_by_key(|span| span.span_id);
        spans
    };
    assert!(order(&from) == order(&to) && all::<Metric>(&from) == all::<Metric>(&to));
    assert_eq!(all::<Meta>(&from), all::<Meta>(&to));
    // Within a row group by thread and time.
    let first: Vec<(i32, i64)> = all::<Span>(&to)[..65_536].iter().map(|span| (span.tid, span.start_ns)).collect();
    assert!(first.is_sorted());
}

/// A complete dataset of one call that began at this time.
fn recorded(path: &Path, start_ns: i64) {
    let options = Options { path, host: "n1", force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    let wall = start_ns.to_string();
    for (key, value) in [("t0_ns", "5"), ("run_t0_ns", "5"), ("t0_wall_ns", wall.as_str()), ("end_ns", "9")] {
        writer.push(Row::Meta(Meta { key: key.to_owned(), value: value.to_owned() })).unwrap();
    }
    let span = Span::new(span_id(1, 0), (Layer::Syscall, "read", Kind::Read), 1, (10, 7));
    writer.push(Row::Span(Box::new(span))).unwrap();
    writer.finish().unwrap();
}

fn disk_use(dir: &Path) -> u64 {
    let out = Command::new("du").args(["-sk"]).arg(dir).output().unwrap();
    String::from_utf8_lossy(&out.stdout).split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn days_before_those_that_are_kept_vanish_and_nothing_else() {
    const DAY_NS: i64 = 86_400_000_000_000;
    let work = tempfile::tempdir().unwrap();
    let (all, tree, elsewhere) = (work.path().join("all"), work.path().join("tree"), work.path().join("elsewhere"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    // Not around midnight, so that the days of the test are those of the program.
    let now = if now % DAY_NS > DAY_NS - 120_000_000_000 {
        std::thread::sleep(Duration::from_secs(125));
        now + 125_000_000_000
    } else {
        now
    };
    let ago = |days: i64| now - days * DAY_NS;
    for days in [0, 1, 2, 3, 9] {
        fs::create_dir_all(&all).unwrap();
        recorded(&all.join(format!("run{days}")), ago(days));
    }
    let export = |more: &[&str]| {
        let out = tracer(&[&["export", "--to", "hive", "-o", tree.to_str().unwrap()], more].concat(), &all);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let partitions = || {
        let names = fs::read_dir(&tree).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    // What DIR has stays, however old it is: it would come again.
    assert_eq!(export(&["--keep-days", "1"]), "");
    let days = partitions();
    assert_eq!(days.len(), 5, "{days:?}");

    // Names that are no partition's, links, and what a link leads to.
    fs::create_dir_all(elsewhere.join("node=n1")).unwrap();
    fs::write(elsewhere.join("node=n1/kept"), "kept").unwrap();
    for name in ["date=2001-1-01", "date=2001-01-01 ", "date=yesterday", "Date=2001-01-01", "2001-01-01"] {
        fs::create_dir(tree.join(name)).unwrap();
        fs::write(tree.join(name).join("kept"), "kept").unwrap();
    }
    fs::write(tree.join("date=2001-01-02"), "a file").unwrap();
    std::os::unix::fs::symlink(&elsewhere, tree.join("date=2001-01-03")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, tree.join(&days[0]).join("node=linked")).unwrap();
    let strange: Vec<String> = partitions().into_iter().filter(|name| !days.contains(name)).collect();
    assert_eq!(strange.len(), 7, "{strange:?}");

    // The service removes its datasets; until then their parts are not free.
    for days in [0, 2, 3, 9] {
        fs::remove_dir_all(all.join(format!("run{days}"))).unwrap();
    }
    let before = disk_use(&tree);
    let message = export(&["--keep-days", "3"]);
    let lines: Vec<&str> = message.lines().collect();
    let gone = |line: &str, day: &str| line.contains(&format!("{day}: before the last 3 days, removed; "));
    assert!(lines.len() == 2 && gone(lines[0], &days[0]) && gone(lines[1], &days[1]), "{message}");
    assert!(!message.contains("; 0 B are free"), "{message}");
    assert!(disk_use(&tree) < before);
    let left = partitions();
    assert_eq!(
        left.iter().filter(|name| days.contains(name)).collect::<Vec<_>>(),
        days[2..].iter().collect::<Vec<_>>()
    );
    assert!(strange.iter().all(|name| left.contains(name)), "{left:?}");
    assert!(elsewhere.join("node=n1/kept").exists() && tree.join("date=yesterday/kept").exists());

    // Again: nothing. The least: today, and the day of the dataset that is there.
    assert_eq!(export(&["--keep-days", "3"]), "");
    assert_eq!(export(&["--keep-days", "1"]).lines().count(), 1);
    assert_eq!(partitions().iter().filter(|name| days.contains(name)).count(), 2);
    for wrong in ["0", "-1", "x", "1.5", "", "99999999999"] {
        let out =
            tracer(&["export", "--to", "hive", "-o", tree.to_str().unwrap(), &format!("--keep-days={wrong}")], &all);
        let message = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(2) && message.contains("--keep-days"), "{wrong}: {message}");
    }
    let out = tracer(&["export", "--to", "csv", "-o", tree.to_str().unwrap(), "--keep-days", "3"], &all);
    assert!(String::from_utf8_lossy(&out.stderr).contains("leave it out here") && out.status.code() == Some(2));
    assert_eq!(partitions().iter().filter(|name| days.contains(name)).count(), 2);
}
