//! `export --to text`: a line for each row, in the order of time, with what caused it.

use crate::common::sql;
use crate::common::synthetic::trace::{Trace, file, meta, process};
use crate::reports::random::recorded;
use assert_cmd::Command;
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::Row;
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

fn export(dir: &Path, args: &[&str]) -> Output {
    Command::cargo_bin("iotrace-bpf")
        .unwrap()
        .arg("export")
        .arg(dir)
        .args(["--to", "text"])
        .args(args)
        .output()
        .unwrap()
}

/// The lines of facts, and those of calls and requests.
fn lines(dir: &Path, args: &[&str]) -> (Vec<String>, Vec<String>) {
    let out = export(dir, args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().map(str::to_owned).partition(|line| line.starts_with("# "))
}

fn parallel() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5")
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    // Names of files may have anything in them: fields are looked for behind them.
    let from = line.rfind("\" ").map_or(0, |at| at + 1);
    let all = [&line[from..], &line[..from]];
    all.iter().find_map(|part| part.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')))
}

fn is_request(line: &str) -> bool {
    line.contains(" block ")
}

/// Answers of the views over the same dataset, in this version.
fn ask(query: &str) -> Vec<Value> {
    let (_dir, path) = recorded("mpi_hdf5");
    sql::query(&path, query)
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

#[test]
fn all_rows_are_there_in_order_with_the_sums_of_the_tables() {
    let (facts, lines) = lines(&parallel(), &[]);
    let (requests, calls): (Vec<_>, Vec<_>) = lines.iter().partition(|line| is_request(line));
    let want = &ask(
        "SELECT (SELECT count(*) FROM spans)::BIGINT AS calls, (SELECT sum(bytes) FROM spans)::BIGINT AS bytes,
                (SELECT sum(dur_ns) FROM spans)::BIGINT AS ns, (SELECT count(*) FROM spans WHERE errno <> 0)::BIGINT AS errors,
                (SELECT count(parent_id) FROM spans)::BIGINT AS inside, (SELECT count(*) FROM block)::BIGINT AS requests,
                (SELECT sum(bytes) FROM block)::BIGINT AS moved, (SELECT count(DISTINCT req_id) FROM block_links
                 SEMI JOIN block USING (host, req_id))::BIGINT AS linked",
    )[0];
    let sum = |lines: &[&String], name: &str| -> i64 {
        lines.iter().filter_map(|line| field(line, name)?.parse::<i64>().ok()).sum()
    };
    assert_eq!((calls.len() as i64, requests.len() as i64), (number(&want["calls"]), number(&want["requests"])));
    assert_eq!((sum(&calls, "bytes"), sum(&requests, "bytes")), (number(&want["bytes"]), number(&want["moved"])));
    assert_eq!(sum(&calls, "dur_ns"), number(&want["ns"]));
    let with = |lines: &[&String], name: &str| lines.iter().filter(|line| field(line, name).is_some()).count() as i64;
    assert_eq!((with(&calls, "error"), with(&calls, "by")), (number(&want["errors"]), number(&want["inside"])));
    assert_eq!(with(&requests, "by"), number(&want["linked"]));
    let times: Vec<f64> = lines.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted());
    // Facts of the platform and the run.
    for begin in
        ["# host: ", "# kernel: ", "# command: ", "# start: ", "# library.", "# process ", "# mount ", "# coverage "]
    {
        assert!(facts.iter().any(|line| line.starts_with(begin)), "{begin}: {facts:#?}");
    }
}

#[test]
fn each_call_names_the_one_that_it_is_called_from() {
    let names: BTreeMap<i64, String> = ask("SELECT span_id, op FROM spans")
        .iter()
        .map(|row| (number(&row["span_id"]), row["op"].as_str().unwrap().to_owned()))
        .collect();
    let parents: BTreeMap<i64, i64> = ask("SELECT span_id, parent_id FROM spans WHERE parent_id IS NOT NULL")
        .iter()
        .map(|row| (number(&row["span_id"]), number(&row["parent_id"])))
        .collect();
    let (_, lines) = lines(&parallel(), &[]);
    for line in lines.iter().filter(|line| !is_request(line)) {
        let id: i64 = field(line, "id").unwrap().parse().unwrap();
        let by = parents.get(&id).map(|parent| format!("{parent}:{}", names[parent]));
        assert_eq!(field(line, "by"), by.as_deref(), "{line}");
    }
    // Those that led to a request, with how and how much.
    let causes =
        ask("SELECT l.req_id, l.span_id, s.op, l.how, l.bytes FROM block_links l JOIN block b USING (host, req_id)
         LEFT JOIN spans s ON s.host = l.host AND s.span_id = l.span_id");
    let mut most = BTreeMap::<i64, i64>::new();
    for row in &causes {
        *most.entry(number(&row["req_id"])).or_insert(0) += 1;
    }
    let mut named = 0;
    for row in causes.iter().filter(|row| most[&number(&row["req_id"])] <= 8) {
        let by = format!(
            " by={}:{}:{}:{}",
            row["span_id"],
            row["op"].as_str().unwrap_or("?"),
            row["how"].as_str().unwrap(),
            row["bytes"]
        );
        let req = format!(" req={} ", row["req_id"]);
        assert!(lines.iter().any(|line| line.contains(&req) && line.contains(&by)), "{req}{by}");
        named += 1;
    }
    assert!(named > 0);
}

#[test]
fn filters_and_times_select_calls_and_the_requests_for_them() {
    let (_, all) = lines(&parallel(), &[]);
    let (_, hdf5) = lines(&parallel(), &["--where", "layer=hdf5"]);
    assert!(!hdf5.is_empty() && hdf5.iter().all(|line| line.contains(" hdf5 ") || line.contains(":H5")), "{hdf5:#?}");
    assert_eq!(
        hdf5.iter().filter(|line| !is_request(line)).count(),
        all.iter().filter(|line| !is_request(line) && line.split('"').next().unwrap().contains(" hdf5 ")).count()
    );
    // Two windows are all of it; what began before is named in the second.
    let times: Vec<f64> = all.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    let middle = format!("{}us", (times[times.len() / 2] * 1e6) as i64);
    let (_, before) = lines(&parallel(), &["--time", &format!("-{middle}")]);
    let (_, after) = lines(&parallel(), &["--time", &format!("{middle}-")]);
    assert!(!before.is_empty() && !after.is_empty());
    assert_eq!([before, after].concat(), all);
}

#[test]
fn names_of_strangers_stay_on_their_line() {
    let mut trace = Trace::default();
    trace.row(meta("command", "sh\n# host: forged\x1b[2J"));
    trace.row(process(1, Some(0)));
    trace.row(file(1, "/tmp/a\" id=7 by=9:H5Dwrite\n9.0 forged \u{202e}"));
    let at = trace.call(1, None, (Layer::Syscall, "write", Kind::Write), 100, 10);
    trace.moved(at, 1, 10);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    let options = Options { path: &path, host: "vm", force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    let rows: Vec<Row> = trace.finish();
    for row in rows {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap();
    let (facts, lines) = lines(&path, &[]);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("file=\"/tmp/a\\x22 id=7 by=9:H5Dwrite\\x0a9.0 forged \\u{202e}\" "), "{}", lines[0]);
    assert!(facts.contains(&"# command: sh\\x0a# host: forged\\x1b[2J".to_owned()), "{facts:#?}");
}

#[test]
fn other_formats_have_no_selection() {
    let out = Command::cargo_bin("iotrace-bpf")
        .unwrap()
        .arg("export")
        .arg(parallel())
        .args(["--to", "folded", "--where", "layer=hdf5"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", String::from_utf8_lossy(&out.stderr));
}
