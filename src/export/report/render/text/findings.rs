//! What is wrong with the run, the worst first.

use crate::analysis::findings::{Finding, Findings, NotEvaluated, Severity};
use crate::base::text::{escape, percent, time};
use crate::export::report::Report;
use crate::export::report::render::Look;
use crate::export::report::render::style::{Line, Tone};
use crate::export::report::render::table::{Cell, Column, Table, Value};

/// Findings shown; `--top` and JSON have more.
const SHOWN: usize = 5;

pub fn table(report: &Report) -> Table<'_> {
    let ns = |seconds: Option<f64>| Cell::of(seconds.map(|s| (s * 1e9) as i64), Value::Ns);
    let row = |finding: &Finding| {
        vec![
            Cell::name(finding.severity.name()),
            Cell::name(finding.rule),
            ns(finding.seconds),
            Cell::of(finding.share, Value::Share),
            ns(finding.gain_low_s),
            ns(finding.gain_high_s),
            Cell::name(&*finding.title),
            Cell::name(&*finding.advice),
        ]
    };
    Table {
        head: vec![
            Column::name("severity", "severity", 0),
            Column::name("rule", "rule", 0),
            Column::number("time_ns", "time", 0),
            Column::number("share", "share", 0),
            Column::number("gain_low_ns", "saves at least", 0),
            Column::number("gain_high_ns", "saves at most", 0),
            Column::name("title", "what", 0),
            Column::name("advice", "advice", 0),
        ],
        rows: report.findings.findings.iter().map(row).collect(),
        most: usize::MAX,
        ..Table::default()
    }
}

pub fn lines(report: &Report, look: &Look) -> Vec<Line> {
    let run_ns = report.tracing.as_ref().map_or(report.header.duration_ns, |tracing| tracing.run_ns);
    let run_s = run_ns as f64 / 1e9;
    let share = |seconds: f64| percent(if run_s > 0.0 { seconds / run_s } else { 0.0 });
    let of_run = |seconds: f64| format!("{} ({})", amount(seconds), share(seconds));
    let Findings { findings: found, looked_at, calls_s, not_evaluated, unexplained_s, .. } = &report.findings;
    let mut lines = Vec::new();
    let mut add = |tone, text: String| lines.extend(look.sentence(tone, &text));
    match (found.as_slice(), looked_at) {
        ([], 0) => add(Tone::Plain, "  no rule could be applied".to_owned()),
        ([], rules) => {
            add(Tone::Good, format!("  nothing found by {rules} rules; calls took {}", of_run(*calls_s)));
        }
        _ => {}
    }
    let shown = look.top.unwrap_or(SHOWN);
    for (n, finding) in found.iter().take(shown).enumerate() {
        let head = format!("{:>2}. {:<8}  {}", n + 1, finding.severity.name(), measured(finding, &share));
        add(tone(finding.severity), head);
        add(Tone::Plain, format!("      {}", escape(&finding.title)));
        if !finding.evidence.functions.is_empty() {
            let functions: Vec<_> = finding.evidence.functions.iter().map(escape).collect();
            add(Tone::Plain, format!("      in {}", functions.join(", ")));
        }
        add(Tone::Dim, format!("      {}", escape(&finding.advice)));
    }
    if found.len() > shown {
        add(Tone::Dim, format!("  {} more (--top)", found.len() - shown));
    }
    if !found.is_empty() {
        let rest = of_run(*unexplained_s);
        add(Tone::Plain, format!("  of {} in calls no rule explains {rest}", of_run(*calls_s)));
    }
    if !found.is_empty() {
        let see = "  to see it: rules show RULE has the condition and the query, report --json the spans";
        add(Tone::Dim, see.to_owned());
    }
    if !not_evaluated.is_empty() {
        add(Tone::Dim, format!("  not evaluated: {}", left_out(not_evaluated)));
    }
    lines
}

/// Rules by why they were not applied; few by name.
fn left_out(rules: &[NotEvaluated]) -> String {
    let mut by_why: Vec<(&str, Vec<&str>)> = Vec::new();
    for NotEvaluated { rule, why } in rules {
        // JSON has the rest.
        let why = why.split(": ").next().unwrap_or(why);
        match by_why.iter_mut().find(|(known, _)| *known == why) {
            Some((_, same)) => same.push(rule),
            None => by_why.push((why, vec![rule])),
        }
    }
    let part = |(why, rules): &(&str, Vec<&str>)| match rules.as_slice() {
        few @ ([_] | [_, _]) => format!("{} ({why})", few.join(", ")),
        many => format!("{} rules ({why})", many.len()),
    };
    by_why.iter().map(part).collect::<Vec<_>>().join("; ")
}

const fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical => Tone::Bad,
        Severity::Warn => Tone::Warn,
        Severity::Info => Tone::Strong,
    }
}

/// `1.55 s`: seconds to three digits.
fn amount(seconds: f64) -> String {
    time((seconds * 1e9) as i64)
}

/// The rule, its seconds, and what removing the cause would save.
fn measured(finding: &Finding, share: &dyn Fn(f64) -> String) -> String {
    let (Some(seconds), Some(low), Some(high)) = (finding.seconds, finding.gain_low_s, finding.gain_high_s) else {
        return finding.rule.to_owned();
    };
    let saves = match (amount(low), amount(high)) {
        (low, high) if low == high => format!("could save {high}"),
        (low, high) => format!("could save {low} to {high}"),
    };
    format!("{}: {} ({}) of the run, {saves}", finding.rule, amount(seconds), share(seconds))
}
