//! `iotrace-bpf query` answers as SQL over the views does, and as the report.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::sql;
use crate::reports::random::{random, recorded, write};
use iotrace_bpf::base::hist;
use iotrace_bpf::export::report;
use serde_json::Value;

fn ask(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).arg("query").arg(dir).args(args).output().unwrap()
}

fn json(dir: &Path, args: &[&str]) -> Value {
    let output = ask(dir, &[args, &["--format", "json", "--limit", "1000000"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(dir: &Path, args: &[&str]) -> Vec<Value> {
    json(dir, args)["rows"].as_array().unwrap().clone()
}

/// Calls with whose they are, the phase that they are in, and what they are put together by.
const CALLS: &str = "WITH RECURSIVE up AS (
    SELECT host, span_id, parent_id FROM spans WHERE parent_id IS NOT NULL
    UNION ALL
    SELECT u.host, u.span_id, s.parent_id FROM up u JOIN spans s ON s.host = u.host AND s.span_id = u.parent_id
    WHERE NOT (s.layer = 'app' AND s.kind = 'other') AND s.parent_id IS NOT NULL),
  inside AS (SELECT u.host, u.span_id, s.op FROM up u JOIN spans s ON s.host = u.host AND s.span_id = u.parent_id
             WHERE s.layer = 'app' AND s.kind = 'other'),
  calls AS (SELECT s.* EXCLUDE (rank), coalesce(p.rank, s.rank) AS rank,
                   coalesce(CAST(coalesce(p.rank, s.rank) AS VARCHAR), 'pid ' || s.pid) AS owner,
                   coalesce(i.op, '(no phase)') AS phase, f.path,
                   CASE WHEN s.file_id IS NULL THEN '(no file)' ELSE coalesce(f.path, f.first_path, '(file ' || s.file_id || ')') END AS file
            FROM spans s LEFT JOIN processes p ON p.host = s.host AND p.process_ix = s.process_ix
                 LEFT JOIN files f ON f.host = s.host AND f.file_id = s.file_id
                 LEFT JOIN inside i ON i.host = s.host AND i.span_id = s.span_id WHERE s.flags & 512 = 0)";

/// What `--by` takes, the column that it answers with, and the same in SQL: what rows are put together by, and its name.
const BY: [(&str, &str, &str, &str); 6] = [
    ("layer", "layer", "layer", "layer"),
    ("rank", "rank", "owner", "owner"),
    ("file", "file", "file_id", "any_value(file)"),
    ("op", "op", "op", "op"),
    ("phase", "phase", "phase", "phase"),
    ("time=100ms", "from_ns", "start_ns // 100000000", "start_ns // 100000000 * 100000000"),
];

/// A metric, and its figures in SQL.
const METRICS: [(&str, &str); 8] = [
    (
        "latency",
        "count(*) AS calls, min(net_ns) AS min_ns, quantile_disc(net_ns, 0.5) AS p50_ns, quantile_disc(net_ns, 0.95) AS p95_ns,
         quantile_disc(net_ns, 0.99) AS p99_ns, max(net_ns) AS max_ns, avg(net_ns) AS avg_ns",
    ),
    (
        "inclusive",
        "count(*) FILTER (layer_top) AS calls, coalesce(sum(layer_ns) FILTER (layer_top), 0)::BIGINT AS inclusive_ns",
    ),
    ("exclusive", "count(*) AS calls, sum(self_ns)::BIGINT AS exclusive_ns"),
    (
        "throughput",
        "count(*) FILTER (layer_top AND kind IN ('read', 'write')) AS calls,
         sum(bytes) FILTER (layer_top AND kind IN ('read', 'write'))::BIGINT AS bytes,
         count(*) FILTER (layer_top AND kind IN ('read', 'write') AND bytes IS NULL AND errno = 0) AS unknown_calls,
         coalesce(sum(layer_ns) FILTER (layer_top AND kind IN ('read', 'write')), 0)::BIGINT AS time_ns",
    ),
    (
        "calls",
        "count(*) AS calls, count(*) FILTER (NOT layer_top) AS nested_calls,
         count(*) FILTER (flags & 64 <> 0) AS unfinished_calls, count(*) FILTER (errno <> 0) AS errors",
    ),
    ("max", "count(*) AS calls, max(net_ns) AS max_ns, arg_min(span_id, (-net_ns, start_ns, span_id)) AS span_id"),
    ("min", "count(*) AS calls, min(net_ns) AS min_ns, arg_min(span_id, (net_ns, start_ns, span_id)) AS span_id"),
    ("avg", "count(*) AS calls, avg(net_ns) AS avg_ns, stddev_samp(net_ns) AS stddev_ns"),
];

/// Rows of both sides agree in the columns that SQL has, whatever their order. Percentiles are within the error of the
/// histogram, means are rounded.
fn same(what: &str, answered: &[Value], wanted: &[Value]) {
    assert_eq!(answered.len(), wanted.len(), "{what}: {answered:?} against {wanted:?}");
    assert!(!wanted.is_empty(), "{what}: SQL gives nothing");
    let key = |row: &Value, names: &[&String]| names.iter().map(|name| row[*name].to_string()).collect::<Vec<_>>();
    let names: Vec<&String> = wanted[0].as_object().unwrap().keys().collect();
    let exact: Vec<&String> = names.iter().copied().filter(|name| !is_close(name)).collect();
    let close: Vec<&String> = names.iter().copied().filter(|name| is_close(name)).collect();
    let sorted = |rows: &[Value]| {
        let mut rows = rows.to_vec();
        // Two files may have the same path: then by the figures that are only close.
        let rough = |row: &Value, name: &String| row[name.as_str()].as_f64().unwrap_or(-1.0);
        rows.sort_by(|a, b| {
            let others = close.iter().map(|name| rough(a, name).total_cmp(&rough(b, name)));
            key(a, &exact).cmp(&key(b, &exact)).then(others.fold(Ordering::Equal, Ordering::then))
        });
        rows
    };
    for (answered, wanted) in sorted(answered).iter().zip(sorted(wanted)) {
        for name in &names {
            let (a, w) = (&answered[name.as_str()], &wanted[name.as_str()]);
            let close = || {
                let (a, w) = (a.as_f64()?, w.as_f64()?);
                let error = if name.starts_with('p') { hist::error::<{ hist::REPORT_BITS }>() } else { 1e-9 };
                Some((a - w).abs() <= w.abs() * error + if name.ends_with("_ns") { 1.0 } else { 1e-12 })
            };
            let agree = if is_close(name) { a == w || close() == Some(true) } else { a == w };
            assert!(agree, "{what}, {name}: {answered} against {wanted}");
        }
    }
}

fn is_close(name: &str) -> bool {
    ["p50_ns", "p95_ns", "p99_ns", "avg_ns", "stddev_ns", "bytes_per_s", "joules"].contains(&name)
}

/// Every metric by everything, of all calls and of some.
fn compare(dir: &Path, bys: &[(&str, &str, &str, &str)], conditions: &[(&[&str], &str)]) {
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for (args, condition) in conditions {
        for (by, column, group, name) in bys {
            for (metric, figures) in METRICS {
                let what = [&["--metric", metric, "--by", by, "--where", "layer!=block"][..], args].concat();
                let some = if metric == "throughput" { "HAVING calls > 0" } else { "" };
                let query = format!(
                    "{CALLS} SELECT layer, {name} AS {column}, {figures} FROM calls WHERE {condition}
                     GROUP BY layer, {group}{} {some}",
                    if name.starts_with("any_value") { String::new() } else { format!(", {name}") }
                );
                asked.push(query);
                answered.push((what.join(" "), rows(dir, &what)));
            }
        }
    }
    for ((what, answered), wanted) in answered.iter().zip(sql::queries(dir, &asked)) {
        same(what, answered, &wanted);
    }
}

#[test]
fn each_metric_by_each_group_is_what_sql_says() {
    let (_dir, path) = recorded("mpi_hdf5");
    let bys: Vec<_> = BY.into_iter().filter(|(by, ..)| *by != "phase").collect();
    let conditions: [(&[&str], &str); 3] = [
        (&[], "true"),
        (&["--layer", "mpiio,syscall", "--ranks", "1,5-7"], "layer IN ('mpiio', 'syscall') AND rank IN (1, 5, 6, 7)"),
        (&["--op", "p*,MPI_File_w*"], "op LIKE 'p%' OR op LIKE 'MPI^_File^_w%' ESCAPE '^'"),
    ];
    compare(&path, &bys, &conditions);
}

#[test]
fn of_calls_at_random_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, random(11, 2, 2));
    let conditions: [(&[&str], &str); 4] = [
        (&[], "true"),
        (
            &["--inside", "H5Dwrite"],
            "span_id IN (WITH RECURSIVE below AS (
               SELECT span_id, span_id AS top FROM spans WHERE op = 'H5Dwrite'
               UNION ALL SELECT s.span_id, b.top FROM spans s JOIN below b ON s.parent_id = b.span_id)
             SELECT span_id FROM below WHERE span_id <> top)",
        ),
        (
            &["--file", "1*.h5", "--time", "1ms-2s"],
            "coalesce(path LIKE '%/1%.h5', false) AND start_ns >= 1000000 AND start_ns < 2000000000",
        ),
        (
            &["--phase", "step"],
            "span_id IN (WITH RECURSIVE below AS (
               SELECT span_id, span_id AS top FROM spans WHERE layer = 'app' AND kind = 'other' AND op = 'step'
               UNION ALL SELECT s.span_id, b.top FROM spans s JOIN below b ON s.parent_id = b.span_id)
             SELECT span_id FROM below WHERE span_id <> top)",
        ),
    ];
    compare(&path, &BY[3..5], &conditions);
}

#[test]
fn rates_of_ranks_add_up_and_the_slowest_rank_is_the_time_of_all() {
    let (_dir, path) = recorded("mpi_hdf5");
    let wanted = sql::query(
        &path,
        &format!(
            "{CALLS}, data AS (SELECT layer, owner, sum(bytes) AS bytes, sum(layer_ns) AS ns FROM calls
             WHERE layer_top AND kind IN ('read', 'write') GROUP BY layer, owner)
             SELECT layer, sum(bytes / (ns / 1e9)) FILTER (ns > 0) AS bytes_per_s FROM data GROUP BY layer"
        ),
    );
    same("throughput", &rows(&path, &["--metric", "throughput", "--where", "layer!=block"]), &wanted);
    for (metric, sum) in [("inclusive", "sum(layer_ns) FILTER (layer_top)"), ("exclusive", "sum(self_ns)")] {
        let wanted = sql::query(
            &path,
            &format!(
                "{CALLS}, sums AS (SELECT layer, owner, coalesce({sum}, 0)::BIGINT AS ns FROM calls GROUP BY layer, owner)
                 SELECT layer, max(ns) AS slowest_ns FROM sums GROUP BY layer"
            ),
        );
        same(metric, &rows(&path, &["--metric", metric, "--where", "layer!=block"]), &wanted);
    }
}

#[test]
fn lists_are_in_order_and_numbers_count_calls_of_each_rank() {
    let (_dir, path) = recorded("mpi_hdf5");
    let columns = "start_ns, rank, pid, tid, layer, op, \"offset\", bytes, net_ns AS dur_ns, self_ns, errno, span_id";
    let wanted = sql::query(
        &path,
        &format!("{CALLS} SELECT {columns} FROM calls WHERE layer = 'syscall' ORDER BY start_ns, span_id LIMIT 50"),
    );
    let output = ask(&path, &["--metric", "list", "--layer", "syscall", "--limit", "50", "--format", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    same("list", answer["rows"].as_array().unwrap(), &wanted);
    let ids = |rows: &[Value]| rows.iter().map(|row| row["span_id"].as_i64().unwrap()).collect::<Vec<_>>();
    assert_eq!(ids(answer["rows"].as_array().unwrap()), ids(&wanted), "in this order");
    let total = sql::query(&path, "SELECT count(*) AS n FROM spans WHERE layer = 'syscall'")[0]["n"].as_i64().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("{} more calls", total - 50)));

    let wanted = sql::query(
        &path,
        &format!(
            "{CALLS} SELECT span_id FROM calls WHERE layer = 'syscall' AND kind = 'write'
             QUALIFY row_number() OVER (PARTITION BY owner ORDER BY start_ns, span_id) BETWEEN 5 AND 20
             ORDER BY start_ns, span_id"
        ),
    );
    let numbered = ["--metric", "list", "--layer", "syscall", "--where", "kind=write", "--calls", "5-20"];
    let numbered = rows(&path, &numbered);
    assert!(numbered.len() > 16, "of several ranks: {}", numbered.len());
    assert_eq!(ids(&numbered), ids(&wanted));
}

#[test]
fn requests_to_devices_are_calls_of_layer_block() {
    let (_dir, path) = recorded("mpi_hdf5");
    let figures =
        "count(*) AS calls, min(dur_ns) AS min_ns, quantile_disc(dur_ns, 0.5) AS p50_ns, max(dur_ns) AS max_ns,
                   avg(dur_ns) AS avg_ns";
    let of = |group: &str, condition: &str| {
        format!("SELECT {group}, {figures} FROM block WHERE dur_ns IS NOT NULL AND {condition} GROUP BY 1")
    };
    let asked = [
        of("op", "upper_dev IS NULL"),
        of("device", "true"),
        of("issue_ns // 50000000 * 50000000 AS from_ns", "upper_dev IS NULL"),
    ];
    let wanted = sql::queries(&path, &asked);
    let latency = |args: &[&str]| rows(&path, &[&["--metric", "latency", "--layer", "block"], args].concat());
    same("by op", &latency(&["--by", "op"]), &wanted[0]);
    same("by device", &latency(&["--by", "device"]), &wanted[1]);
    same("by time", &latency(&["--by", "time=50ms"]), &wanted[2]);
    let device = wanted[1][0]["device"].as_str().unwrap();
    same("of a device", &latency(&["--device", device, "--by", "device"]), &wanted[1][..1]);
    let unknown = ask(&path, &["--metric", "latency", "--layer", "block", "--device", "none"]);
    let message = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(message.contains("has no device none; it has ") && message.contains(device), "{message}");
}

/// Requests below the outermost call of each layer, with the bytes that are these calls'.
const LINKED: &str = "WITH RECURSIVE up AS (
    SELECT host, span_id, span_id AS above, parent_id, layer, op, depth FROM spans
    UNION ALL
    SELECT u.host, u.span_id, s.span_id, s.parent_id, s.layer, s.op, s.depth
    FROM up u JOIN spans s ON s.host = u.host AND s.span_id = u.parent_id),
  outermost AS (SELECT host, span_id, layer, arg_min(op, depth) AS op FROM up WHERE layer <> 'app'
                GROUP BY host, span_id, layer),
  busy AS (SELECT dev, sum(greatest(0, e - greatest(s, coalesce(seen, s)))) AS ns, sum(e - s) AS sum_ns
           FROM (SELECT dev, issue_ns AS s, issue_ns + dur_ns AS e,
                        max(issue_ns + dur_ns) OVER (PARTITION BY dev ORDER BY issue_ns, dur_ns
                                                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS seen
                 FROM block WHERE dur_ns IS NOT NULL) GROUP BY dev),
  linked AS (SELECT o.layer, o.op, b.req_id, any_value(b.dur_ns) AS dur_ns, any_value(b.dev) AS dev,
                    greatest(coalesce(sum(l.bytes) FILTER (how = 'writeback'), 0),
                             coalesce(sum(l.bytes) FILTER (how <> 'writeback'), 0)) AS bytes
             FROM block_links l JOIN outermost o USING (host, span_id) JOIN block b USING (host, req_id)
             WHERE l.how <> 'discard' AND b.upper_dev IS NULL AND b.dur_ns IS NOT NULL GROUP BY o.layer, o.op, b.req_id)";

#[test]
fn requests_and_energy_of_calls() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, random(5, 6, 4));
    let power = dir.path().join("power.toml");
    std::fs::write(&power, "[device.\"8:0\"]\nactive = 10\nidle = 4\n").unwrap();
    let power = power.to_str().unwrap();
    let joules = "10.0 * any_value(d.ns) / 1e9 * sum(l.dur_ns * share) / any_value(d.sum_ns)";
    let asked = [
        format!(
            "{LINKED} SELECT layer, op, count(*) AS requests, sum(bytes)::BIGINT AS bytes, sum(dur_ns)::BIGINT AS device_ns
             FROM linked GROUP BY layer, op"
        ),
        format!(
            "{LINKED}, shares AS (SELECT *, CASE WHEN sum(bytes) OVER w > 0 THEN bytes / sum(bytes) OVER w
                                               ELSE 1 / count(*) OVER w END AS share FROM linked WINDOW w AS (PARTITION BY layer, req_id))
             SELECT layer, op, {joules} AS joules FROM shares l JOIN busy d USING (dev) GROUP BY layer, op"
        ),
        format!("{LINKED} SELECT ns::BIGINT AS busy_ns, ns / 1e9 * 10.0 AS active, (999000000000 - ns) / 1e9 * 4.0 AS idle FROM busy"),
    ];
    let wanted = sql::queries(&path, &asked);
    let linked = |args: &[&str]| -> Vec<Value> {
        let all = rows(&path, &[args, &["--by", "op", "--where", "layer!=app"]].concat());
        all.into_iter().filter(|row| row["requests"].as_i64() != Some(0)).collect()
    };
    same("requests", &linked(&["--metric", "requests"]), &wanted[0]);
    same("energy", &linked(&["--metric", "energy", "--power", power]), &wanted[1]);
    let answer = json(&path, &["--metric", "energy", "--power", power]);
    let (device, wanted) = (&answer["devices"][0], &wanted[2][0]);
    assert_eq!(device["busy_ns"], wanted["busy_ns"]);
    for (name, wanted) in [("active_joules", &wanted["active"]), ("idle_joules", &wanted["idle"])] {
        let (got, wanted) = (device[name].as_f64().unwrap(), wanted.as_f64().unwrap());
        assert!((got - wanted).abs() < wanted * 1e-9, "{name}: {got} against {wanted}");
    }
    // A device has the requests of all groups.
    let by_device = rows(&path, &["--metric", "requests", "--by", "device", "--where", "layer=syscall"]);
    let all = rows(&path, &["--metric", "requests", "--where", "layer=syscall"]);
    assert_eq!((&by_device[0]["device"], &by_device[0]["requests"]), (&Value::from("8:0"), &all[0]["requests"]));
}

#[test]
fn sums_answer_what_they_can() {
    let (_dir, path) = recorded("aggregate");
    let figures = [
        ("inclusive", "sum(calls)::BIGINT AS calls, sum(dur_ns)::BIGINT AS inclusive_ns"),
        ("exclusive", "sum(calls + nested_calls)::BIGINT AS calls, sum(self_ns)::BIGINT AS exclusive_ns"),
        ("throughput", "sum(calls) FILTER (kind IN ('read', 'write'))::BIGINT AS calls"),
        ("calls", "sum(calls + nested_calls)::BIGINT AS calls, sum(errors)::BIGINT AS errors"),
        ("max", "max(max_ns) FILTER (calls_error IS NULL OR dur_ns > 0) AS max_ns"),
    ];
    let sums = "WITH sums AS (SELECT s.*, coalesce(CAST(coalesce(p.rank, s.rank) AS VARCHAR), 'pid ' || s.pid, 'unknown') AS owner
                FROM file_rollup s LEFT JOIN processes p ON p.host = s.host AND p.process_ix = s.process_ix)";
    let bys = [("layer", "layer", "layer"), ("op", "op", "op"), ("rank", "rank", "owner")];
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for (metric, figures) in figures {
        for (by, column, group) in bys {
            let some = if metric == "throughput" { "HAVING calls > 0" } else { "" };
            asked.push(format!(
                "{sums} SELECT layer, {group} AS {column}, {figures} FROM sums WHERE layer <> 'block' GROUP BY layer, {group} {some}"
            ));
            let args = ["--metric", metric, "--by", by, "--where", "layer!=block"];
            answered.push((args.join(" "), rows(&path, &args)));
        }
    }
    for ((what, answered), wanted) in answered.iter().zip(sql::queries(&path, &asked)) {
        same(what, answered, &wanted);
    }
    for (args, why) in [
        (&["--metric", "latency"][..], "needs single calls"),
        (&["--metric", "energy"], "needs single calls"),
        (&["--metric", "list"], "no single calls"),
        (&["--metric", "calls", "--time", "1s-2s"], "long times"),
        (&["--metric", "calls", "--by", "phase"], "phase"),
        (&["--metric", "calls", "--where", "dur>1ms"], "single calls have"),
    ] {
        let output = ask(&path, args);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{args:?}: {message}");
        assert!(message.contains("--aggregate") && message.contains(why), "{args:?}: {message}");
    }
}

#[test]
fn the_report_has_the_same_figures() {
    for name in ["mpi_hdf5", "aggregate"] {
        let (_dir, path) = recorded(name);
        let mut out = Vec::new();
        report::run(&path, true, &mut out).unwrap();
        let report: Value = serde_json::from_slice(&out).unwrap();
        let by_layer = |metric, figure: &str| {
            let all = rows(&path, &["--metric", metric]);
            let each = all.iter().map(|row| (row["layer"].to_string(), row[figure].clone()));
            each.collect::<BTreeMap<_, _>>()
        };
        for (metric, figure, reported) in [
            ("inclusive", "calls", "calls"),
            ("inclusive", "inclusive_ns", "inclusive_ns"),
            ("exclusive", "exclusive_ns", "exclusive_ns"),
        ] {
            let layers = report["layers"].as_array().unwrap();
            let wanted: BTreeMap<_, _> =
                layers.iter().map(|row| (row["layer"].to_string(), row[reported].clone())).collect();
            assert_eq!(by_layer(metric, figure), wanted, "{name}: {metric}, {figure}");
        }
        // Files of the report that have a path of their own.
        let by_file = rows(&path, &["--metric", "inclusive", "--by", "file"]);
        let mut compared = 0;
        for file in report["files"].as_array().unwrap().iter().filter(|file| file["path"].is_string()) {
            for layer in file["layers"].as_array().unwrap() {
                let is_it = |row: &&Value| row["file"] == file["path"] && row["layer"] == layer["layer"];
                let found: Vec<&Value> = by_file.iter().filter(is_it).collect();
                if let [row] = found[..] {
                    assert_eq!((&row["calls"], &row["inclusive_ns"]), (&layer["calls"], &layer["time_ns"]), "{file}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 3, "{name}: only {compared} files were compared");
    }
}

#[test]
fn too_many_groups_are_together_in_one_row() {
    let (_dir, path) = recorded("mpi_hdf5");
    let args = ["--metric", "calls", "--by", "op", "--layer", "syscall", "--format", "json"];
    let all = json(&path, &args[..6]);
    let some = ask(&path, &[&args[..], &["--limit", "3"]].concat());
    let few: Value = serde_json::from_slice(&some.stdout).unwrap();
    let calls = |answer: &Value| {
        let rows = answer["rows"].as_array().unwrap();
        (rows.len(), rows.iter().map(|row| row["calls"].as_i64().unwrap()).sum::<i64>())
    };
    let ((groups, sum), (left, same)) = (calls(&all), calls(&few));
    assert_eq!((left, same), (4, sum));
    assert_eq!(few["rows"][3]["op"], "(others)");
    assert_eq!(few["rows"].as_array().unwrap()[..3], all["rows"].as_array().unwrap()[..3], "the greatest first");
    assert!(String::from_utf8_lossy(&some.stderr).contains(&format!("{} more groups", groups - 3)));
}

#[test]
fn nothing_that_fits_is_an_empty_table() {
    let (_dir, path) = recorded("mpi_hdf5");
    let output = ask(&path, &["--metric", "inclusive", "--op", "no_such_function", "--format", "csv"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "layer,calls,inclusive_ns,slowest_ns,slowest_rank\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing in the trace fulfils the conditions"));
}

#[test]
fn a_function_that_nothing_called_is_suggested_where_it_is_misspelt() {
    let (_dir, path) = recorded("mpi_hdf5");
    for (args, meant) in [
        (&["--op", "H5Dwrit"][..], Some("H5Dwrite")),
        (&["--inside", "H5Dwrit"], Some("H5Dwrite")),
        (&["--op", "ncmpi_put_vara_all"], None),
        (&["--op", "H5Dwrit*", "--where", "dur>1h"], None),
    ] {
        let output = ask(&path, &[&["--metric", "calls"], args].concat());
        let note = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{note}");
        let hint = meant.map(|name| format!("(did you mean {name:?}?)"));
        assert!(note.contains("nothing in the trace fulfils the conditions"), "{args:?}: {note}");
        assert_eq!(note.contains("did you mean"), hint.is_some(), "{args:?}: {note}");
        assert!(hint.is_none_or(|hint| note.contains(&hint)), "{args:?}: {note}");
    }
}

#[test]
fn wrong_usage_is_named_and_exits_with_2() {
    let (dir, path) = recorded("mpi_hdf5");
    for (args, why) in [
        (&["--by", "rank"][..], "--metric"),
        (&["--metric", "speed"], "throughput"),
        (&["--metric", "calls", "--by", "ranks"], "rank, file, op"),
        (&["--metric", "calls", "--by", "time=100"], "unit"),
        (&["--metric", "calls", "--ranks", "3-1"], "0-3,7"),
        (&["--metric", "calls", "--calls", "0-1"], "from 1"),
        (&["--metric", "calls", "--time", "1-2"], "unit"),
        (&["--metric", "calls", "--layer", "disk"], "layers are"),
        (&["--metric", "calls", "--where", "speed>1"], "fields are"),
        (&["--metric", "calls", "--limit", "0"], "1..=1000000"),
        (&["--metric", "calls", "--by", "device", "--layer", "hdf5"], "only requests have a device"),
        (&["--metric", "requests", "--layer", "block"], "leave --layer block out"),
        (&["--metric", "calls", "--layer", "block", "--phase", "step"], "no phase"),
        (&["--metric", "calls", "--power", "watts.toml"], "--metric energy"),
    ] {
        let output = ask(&path, args);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(why) && output.stdout.is_empty(), "{args:?}: {message}");
    }
    let power = dir.path().join("watts.toml");
    std::fs::write(&power, "[class.tape]\nactive = 1\nidle = 1\n").unwrap();
    let output = ask(&path, &["--metric", "energy", "--power", power.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("classes are hdd, ssd, nvme"));
}
