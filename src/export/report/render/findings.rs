//! What is wrong with the run: the first part of the report.

use crate::analysis::findings::{Finding, Findings};
use crate::text::{cut_end, escape, percent, wrapped};

/// Findings shown; all are in `--json`.
const SHOWN: usize = 5;

/// Adds the section.
pub fn text(findings: &Findings, run_s: f64, out: &mut String, width: usize) {
    let share = |seconds: f64| percent(if run_s > 0.0 { seconds / run_s } else { 0.0 });
    *out += "\nFindings\n";
    let Findings { findings: found, looked_at, calls_s, .. } = findings;
    match (found.as_slice(), looked_at) {
        ([], 0) => *out += "  no rule could be applied\n",
        ([], rules) => *out += &format!("  nothing found by {rules} rules; calls took {}\n", of_run(*calls_s, &share)),
        _ => {}
    }
    for (n, finding) in found.iter().take(SHOWN).enumerate() {
        let head = format!("{:>2}. {:<8}  {}", n + 1, finding.severity.name(), measured(finding, &share));
        let title = format!("      {}", escape(&finding.title));
        *out += &format!("{}\n{}\n", cut_end(&head, width), cut_end(&title, width));
        for line in wrapped(&format!("      {}", finding.advice), width) {
            *out += &(line + "\n");
        }
    }
    if findings.findings.len() > SHOWN {
        *out += &format!("  {} more (--json)\n", findings.findings.len() - SHOWN);
    }
    if !findings.findings.is_empty() {
        let rest = of_run(findings.unexplained_s, &share);
        *out += &format!("  of {} in calls no rule explains {rest}\n", of_run(findings.calls_s, &share));
        *out += "  to see it: rules show RULE has the condition and the query, report --json the spans\n";
    }
    if !findings.not_evaluated.is_empty() {
        let rules: Vec<_> = findings.not_evaluated.iter().map(|rule| rule.rule).collect();
        *out += &cut_end(&format!("  not evaluated ({}): {}", rules.len(), rules.join(", ")), width);
        out.push('\n');
    }
}

fn of_run(seconds: f64, share: &dyn Fn(f64) -> String) -> String {
    format!("{} ({})", amount(seconds), share(seconds))
}

/// `1.55 s`: seconds to three digits.
fn amount(seconds: f64) -> String {
    crate::text::time((seconds * 1e9) as i64)
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
