//! Findings are the same wherever they are shown, and `docs/findings.md` has a section for each rule and no others.

use crate::common::flushes::flushes;
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
    }
}
