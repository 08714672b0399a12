//! `docs/findings.md` has a section for each rule of the report, with its thresholds, and no others.

use iotrace_bpf::analysis::findings::rules::RULES;
use std::fs;

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
