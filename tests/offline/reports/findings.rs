//! Findings are the same wherever they are shown, and `docs/findings.md` has a section for each rule and no others.

use crate::common::synthetic::flushes::flushes;
use iotrace_bpf::analysis::findings::rules::RULES;
use iotrace_bpf::export::report::{Config, Scope, Union, build, build_of};
use iotrace_bpf::replay::Replay;
use iotrace_bpf::summary::view::{Focus, Screen, Source as _, Window};
use std::fs;
use std::path::Path;

#[test]
fn the_dashboard_finds_what_the_report_finds() {
    let work = tempfile::tempdir().unwrap();
    let log = work.path().join("log.iotrace");
    flushes(&log, 200);
    let recorded =
        ["mpi_hdf5", "aggregate"].map(|name| format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR")));
    let [parallel, sums] = recorded.each_ref().map(Path::new);
    let of_screen = |dataset: &Path, window: Option<Window>| {
        let focus = Focus { screen: Screen::Findings, window, ..Focus::default() };
        let mut replay = Replay::open(dataset).unwrap();
        replay.wait(&focus);
        (*replay.snapshot(&focus).findings).clone()
    };
    for dataset in [&log, parallel, sums] {
        let of_report = build(&mut Union::open(dataset).unwrap()).unwrap().findings;
        assert!(of_report.looked_at > 5, "{of_report:?}");
        assert_eq!(of_screen(dataset, None), of_report, "{}", dataset.display());
        let scope = Scope { only_findings: true, ..Scope::default() };
        let alone = build_of(&mut Union::open(dataset).unwrap(), &Config::default(), &scope).unwrap();
        assert_eq!(alone.findings, of_report, "{}", dataset.display());
        assert!(alone.layers.is_empty() && alone.files.is_empty() && alone.slowest.is_empty());
    }
    let all = of_screen(&log, None).findings;
    assert_eq!((all[0].rule, all[0].evidence.files.as_slice()), ("sync-per-record", &["/data/log".to_owned()][..]));
    // Half of it, of half the time.
    let half = of_screen(&log, Some(Window { from_ns: 0, to_ns: 600_000_000 })).findings;
    assert_eq!((half[0].seconds, half[0].share), (Some(0.5), Some(0.5 / 0.6)));
}

/// A part that is damaged after the dataset was opened is noticed when it is read.
#[test]
fn owners_of_bytes_are_not_read_without_writes_to_devices() {
    let work = tempfile::tempdir().unwrap();
    let log = work.path().join("log.iotrace");
    flushes(&log, 200);
    let mut dataset = Union::open(&log).unwrap();
    fs::write(log.join("block_bytes-00001.parquet"), "no rows").unwrap();
    let report = build(&mut dataset).unwrap();
    assert_eq!((report.findings.findings[0].rule, report.warnings), ("sync-per-record", Vec::new()));
}

#[test]
fn the_text_describes_every_rule_and_no_other() {
    let text = fs::read_to_string(format!("{}/docs/findings.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let sections: Vec<(&str, &str)> = text.split("\n### `").skip(1).filter_map(|s| s.split_once("`\n")).collect();
    assert_eq!(
        sections.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        RULES.iter().map(|rule| rule.id).collect::<Vec<_>>()
    );
    for ((id, section), rule) in sections.iter().zip(RULES) {
        let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ");
        let section = words(section);
        for part in [rule.about, rule.advice, rule.source] {
            assert!(section.contains(&words(part)), "{id} lacks: {part}");
        }
        for threshold in rule.thresholds {
            let shown = format!("`{}` {}", threshold.name, threshold.value);
            assert!(section.contains(&shown), "{id} lacks the threshold {shown}");
        }
        let layers: Vec<&str> = rule.needs.iter().map(|layer| layer.name()).collect();
        let calls = if rule.sums { "single calls or sums" } else { "single calls: not with --aggregate" };
        let needs = format!("needs layers {}; {calls}.", layers.join(", "));
        assert!(section.contains(&needs), "{id} lacks: {needs}");
    }
}

/// Words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn tables_name_rules_that_there_are() {
    let text = fs::read_to_string(format!("{}/docs/findings.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let known = |id: &str| RULES.iter().any(|rule| rule.id == id);
    let (_, list) = text.split_once("## Where the rules come from").unwrap();
    let (list, cases) = list.split_once("## Proof").unwrap();
    // | X07 | `stdio-flush`, `small-transfers` | ... |
    let rows = list.lines().filter(|line| line.starts_with("| X") || line.starts_with("| A"));
    let of_list: Vec<&str> = rows.flat_map(|row| quoted(row.split('|').nth(2).unwrap_or(""))).collect();
    let (_, further) = list.split_once("Further rules:").unwrap();
    let named: Vec<&str> = of_list.into_iter().chain(quoted(further.split("\n\n").next().unwrap())).collect();
    assert!(named.iter().all(|id| known(id)), "{named:?}");
    for rule in RULES {
        assert!(named.contains(&rule.id), "{} is in no list", rule.id);
    }
    // | log-fsync | sync-per-record | 1 | ...
    let (_, table) = cases.split_once("| case | cause |").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(2);
    for cause in rows.filter_map(|row| row.split('|').nth(2)) {
        let cause = cause.trim().trim_start_matches("not ");
        assert!(cause == "nothing" || known(cause), "{cause}");
    }
}
