//! A dataset of an earlier version (`tests/fixtures/d7e3136`) is read as those of today are. What is in it is what pyarrow
//! finds in its parts.

use crate::common::sql;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use iotrace_bpf::export::TABLES;
use iotrace_bpf::export::programs::views;
use iotrace_bpf::replay::Replay;
use iotrace_bpf::tui::{Dashboard, Key, Theme};
use iotrace_bpf::vocabulary::Layer;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Rect, Size};
use serde_json::Value;
use tempfile::TempDir;

/// Rows and columns of each table; how many calls there are by layer and function, and the bytes that those of them read or
/// wrote that are outermost in their layer; the same of requests that ended; the outermost calls by layer.
const TRUTH: &str = r#"
import collections, glob, json, os, sys
import pyarrow.parquet as pq
names = sorted({os.path.basename(part).rsplit("-", 1)[0] for part in glob.glob(sys.argv[1] + "/*.parquet")})
parts = {name: [pq.read_table(part) for part in sorted(glob.glob(f"{sys.argv[1]}/{name}-[0-9]*.parquet"))] for name in names}
calls = collections.Counter()
moved = collections.Counter()
outermost = collections.Counter()
for part in parts["spans"]:
    for span in part.select(["layer", "op", "kind", "bytes", "layer_top"]).to_pylist():
        name = span["layer"] + " " + span["op"]
        calls[name] += 1
        moves = span["layer_top"] and span["kind"] in ("read", "write")
        moved[name] += (span["bytes"] or 0) if moves else 0
        outermost[span["layer"]] += span["layer_top"]
requests = collections.Counter()
for part in parts["block"]:
    ended = [request for request in part.select(["op", "bytes", "dur_ns"]).to_pylist() if request["dur_ns"] is not None]
    for request in ended:
        requests["block " + request["op"]] += 1
        moved["block " + request["op"]] += request["bytes"] if request["op"] in ("read", "write") else 0
facts = {row["key"]: row["value"] for part in parts["meta"] for row in part.to_pylist()}
processes = {row["process_ix"] for part in parts["processes"] for row in part.to_pylist()}
print(json.dumps({"processes": len(processes), "rows": {name: sum(len(part) for part in parts[name]) for name in names},
                  "columns": {name: parts[name][0].column_names for name in names},
                  "calls": calls, "requests": requests, "moved": moved, "outermost": outermost, "facts": facts}))
"#;

/// The rows of each file of CSV in a directory, and its columns.
const TABLES_OF_CSV: &str = r#"
import csv, glob, json, os, sys
csv.field_size_limit(1 << 30)
read = {os.path.basename(path)[:-4]: list(csv.reader(open(path))) for path in glob.glob(sys.argv[1] + "/*.csv")}
print(json.dumps({name: {"rows": max(len(rows) - 1, 0), "columns": rows[0] if rows else []} for name, rows in read.items()}))
"#;

fn python(script: &str, argument: &Path) -> Value {
    let out = Command::new(sql::python()).args(["-c", script]).arg(argument).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// What the program writes to stdout and stderr.
fn both(arguments: &[&str]) -> [String; 2] {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
    // For `sql`, where no duckdb is installed.
    let path = format!("{}:{}", sql::python().parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let out = command.args(arguments).env("PATH", path).output().unwrap();
    let both = [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(out.status.success(), "{arguments:?}: {}", both[1]);
    both
}

/// What it writes to stdout, and nothing to stderr.
fn program(arguments: &[&str]) -> String {
    let [text, errors] = both(arguments);
    assert_eq!(errors, "", "{arguments:?}");
    text
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&program(arguments)).unwrap()
}

fn recorded() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/d7e3136")).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, dir.path().join(from.file_name().unwrap())).unwrap();
    }
    dir
}

/// Calls and bytes by layer and function.
type Functions = BTreeMap<String, [i64; 2]>;

fn functions(truth: &Value, of: &str) -> Functions {
    let calls = truth[of].as_object().unwrap();
    calls.iter().map(|(name, n)| (name.clone(), [n, &truth["moved"][name]].map(|n| n.as_i64().unwrap()))).collect()
}

#[test]
fn a_dataset_of_an_earlier_version_is_reported() {
    let dir = recorded();
    let path = dir.path().to_str().unwrap();
    let truth = python(TRUTH, dir.path());
    // It is one that lacks what came later.
    assert!(TABLES.iter().any(|table| truth["rows"].get(table).is_none()), "{truth}");
    assert!(!truth["columns"]["spans"].as_array().unwrap().iter().any(|column| column == "path_id"));

    let report = json(&["report", "--json", path]);
    let mut reported = Functions::new();
    for layer in report["layers"].as_array().unwrap() {
        for op in layer["ops"].as_array().unwrap() {
            let name = format!("{} {}", layer["layer"].as_str().unwrap(), op["op"].as_str().unwrap());
            reported.insert(name, [&op["calls"], &op["moved"]["sum"]].map(|n| n.as_i64().unwrap_or(0)));
        }
    }
    let mut all = functions(&truth, "calls");
    all.extend(functions(&truth, "requests"));
    assert_eq!(reported, all);
    assert_eq!(report["header"]["command"], truth["facts"]["command"]);
    assert_eq!(report["header"]["processes"], truth["processes"]);
    let text = program(&["report", path]);
    assert!(text.contains(truth["facts"]["command"].as_str().unwrap().split(' ').next().unwrap()), "{text}");
}

#[test]
fn a_dataset_of_an_earlier_version_is_exported() {
    let dir = recorded();
    let truth = python(TRUTH, dir.path());
    let to = dir.path().join("tables");
    program(&["export", dir.path().to_str().unwrap(), "--to", "csv", "-o", to.to_str().unwrap()]);
    let tables = python(TABLES_OF_CSV, &to);
    for (name, rows) in truth["rows"].as_object().unwrap() {
        assert_eq!(&tables[name]["rows"], rows, "{name}");
        let columns = tables[name]["columns"].as_array().unwrap();
        let missing = truth["columns"][name].as_array().unwrap().iter().find(|column| !columns.contains(column));
        assert_eq!(missing, None, "{name}");
    }
}

#[test]
fn today_s_views_answer_over_a_dataset_of_an_earlier_version() {
    let dir = recorded();
    let path = dir.path().to_str().unwrap();
    let truth = python(TRUTH, dir.path());
    let query = "SELECT layer || ' ' || op AS name, count(*) AS calls, \
                 coalesce(sum(bytes) FILTER (layer_top AND kind IN ('read', 'write')), 0) AS bytes FROM spans GROUP BY ALL";
    let text = program(&["sql", path, query]);
    let answered = text.lines().skip(1).map(|line| {
        let [name, calls, bytes] = line.split(',').collect::<Vec<_>>().try_into().unwrap();
        (name.to_owned(), [calls, bytes].map(|n: &str| n.parse().unwrap()))
    });
    assert_eq!(answered.collect::<Functions>(), functions(&truth, "calls"));
    // Columns and tables that it lacks are there, without values.
    let text = program(&["sql", path, "SELECT count(path_id) AS n, (SELECT count(*) FROM paths) AS m FROM spans"]);
    assert_eq!(text, "n,m\n0,0\n");
    // Each view, the dashboard and the metrics have the figures of the report.
    let given = views(dir.path()).unwrap();
    fs::copy(given.path(), dir.path().join("views.sql")).unwrap();
    sql::compare_now(dir.path());
}

/// Figures by layer, of what python counted by layer and function.
fn by_layer(truth: &Value, of: &[&str]) -> BTreeMap<String, i64> {
    let mut layers = BTreeMap::new();
    for (name, n) in of.iter().flat_map(|of| truth[of].as_object().unwrap()) {
        *layers.entry(name.split(' ').next().unwrap().to_owned()).or_default() += n.as_i64().unwrap();
    }
    layers
}

#[test]
fn a_dataset_of_an_earlier_version_is_compared_queried_and_listed() {
    let work = tempfile::tempdir().unwrap();
    let (one, other) = (work.path().join("one"), recorded());
    fs::rename(recorded().keep(), &one).unwrap();
    let truth = python(TRUTH, &one);
    let [one, other] = [&one, other.path()].map(|path| path.to_str().unwrap());
    let outermost = by_layer(&truth, &["outermost", "requests"]);

    let compared = json(&["compare", "--json", one, other]);
    let figures = compared["figures"].as_array().unwrap().iter();
    let calls = figures.filter_map(|f| Some((f["name"].as_str()?.strip_suffix(".calls")?.to_owned(), f)));
    let calls: BTreeMap<_, _> = calls.collect();
    for side in ["a", "b"] {
        let calls = calls.iter().map(|(layer, f)| (layer.clone(), f[side]["median"].as_f64().unwrap() as i64));
        assert_eq!(calls.collect::<BTreeMap<_, _>>(), outermost);
    }
    assert!(calls.values().all(|figure| figure["change"].as_f64() == Some(0.0)), "{compared:#}");

    let queried = json(&["query", one, "--metric", "calls", "--by", "layer", "--format", "json"]);
    let rows = queried["rows"].as_array().unwrap().iter();
    let rows = rows.map(|row| (row["layer"].as_str().unwrap().to_owned(), row["calls"].as_i64().unwrap()));
    assert_eq!(rows.collect::<BTreeMap<_, _>>(), by_layer(&truth, &["calls", "requests"]));

    let runs = json(&["runs", "--json", work.path().to_str().unwrap()]);
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!([&runs[0]["command"], &runs[0]["processes"]], [&truth["facts"]["command"], &truth["processes"]]);
    assert_eq!((runs[0]["calls"].as_i64(), runs[0]["complete"].as_bool()), (Some(outermost["syscall"]), Some(true)));
}

#[test]
fn every_other_reader_takes_a_dataset_of_an_earlier_version() {
    let dir = recorded();
    let path = dir.path().to_str().unwrap();
    let truth = python(TRUTH, dir.path());
    let work = tempfile::tempdir().unwrap();
    let to = |name: &str| work.path().join(name).to_str().unwrap().to_owned();
    let before = json(&["report", "--json", path]);

    let [whatif, _] = both(&["whatif", path, "--sync", "off", "--json"]);
    let whatif: Value = serde_json::from_str(&whatif).unwrap();
    assert!(whatif["run_s"].as_f64().unwrap() > whatif["together"]["high_s"].as_f64().unwrap(), "{whatif:#}");
    both(&["replay-code", path, "-o", &to("code")]);
    assert!(fs::read_to_string(to("code/replay.c")).unwrap().contains("H5Dwrite"));

    program(&["export", path, "--to", "hive", "-o", &to("tree")]);
    assert_eq!(json(&["report", "--json", &to("tree")])["layers"], before["layers"]);
    program(&["export", path, "--to", "perfetto", "-o", &to("trace.pftrace")]);
    // It compares the rows of both.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/readers/perfetto_trace.py");
    let out = Command::new(sql::python()).arg(script).args([path, &to("trace.pftrace")]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    program(&["export", path, "--to", "text", "-o", &to("text")]);
    let text = fs::read_to_string(to("text")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#')).count() as i64;
    assert_eq!(lines, ["spans", "block"].iter().map(|table| truth["rows"][table].as_i64().unwrap()).sum::<i64>());
    both(&["report", path, "--html", &to("page.html")]);
    assert!(fs::read_to_string(to("page.html")).unwrap().contains("mpirun.openmpi"));

    // One row for each id, and the same figures.
    program(&["repair", path]);
    assert_eq!(json(&["report", "--json", path]), before);
    assert!(python(TRUTH, dir.path())["rows"]["handles"].as_i64() < truth["rows"]["handles"].as_i64());
}

#[test]
fn the_dashboard_shows_a_dataset_of_an_earlier_version() {
    let dir = recorded();
    let truth = python(TRUTH, dir.path());
    let size = Size { width: 160, height: 50 };
    let mut replay = Replay::open(dir.path()).unwrap();
    let mut dashboard = Dashboard::new(&mut replay, Theme::default(), None);
    for key in ('0'..='9').rev() {
        assert!(dashboard.key(Key::Char(key), &mut replay, size));
        while dashboard.snapshot().loading.is_some() {
            std::thread::sleep(std::time::Duration::from_millis(5));
            dashboard.look(&mut replay);
        }
        let mut buffer = Buffer::empty(Rect::from(size));
        dashboard.draw(&mut buffer);
        let text: String = buffer.content().iter().map(Cell::symbol).collect();
        assert!(text.contains("mpirun"), "{key}: {text}");
        if key == '1' {
            let rows = dashboard.snapshot().overview.layers.iter();
            let covered = rows.filter(|row| row.sums.calls > 0);
            let shown = covered
                .filter_map(|row| Some((row.layer.filter(|layer| *layer != Layer::Block)?.name(), row.sums.calls)));
            let outermost = truth["outermost"].as_object().unwrap();
            let truth = outermost.iter().map(|(layer, calls)| (layer.as_str(), calls.as_i64().unwrap()));
            assert_eq!(shown.collect::<BTreeMap<_, _>>(), truth.collect());
        }
    }
}
