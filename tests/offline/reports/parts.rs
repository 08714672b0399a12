//! A recording cut into several datasets is as one.

use crate::common::sql;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::synthetic::trace::{demoted, meta, rest, rpc, sums};
use crate::reports::random::{BEGAN, random, write};
use iotrace_bpf::export::{Moment, Options, Progress, RotatingWriter, VIEWS, report};
use iotrace_bpf::rows::Row;

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
    sql::compare_now(&whole);
    sql::compare_now(&parts);
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
