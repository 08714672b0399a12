//! What a report has found.

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

/// One finding of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub rule: String,
    /// Seconds that fixing it saves, at least and at most; none: the report does not say.
    pub gain: Option<(f64, f64)>,
}

/// The findings of a report in JSON, the gravest first.
pub fn read(report: &str) -> Result<Vec<Finding>> {
    let report: Value = serde_json::from_str(report).context("the report is not JSON")?;
    let found = report["findings"].as_array().context("the report has no `findings`: is this tracer too old?")?;
    found.iter().map(|one| finding(one).with_context(|| anyhow!("not a finding: {one}"))).collect()
}

fn finding(value: &Value) -> Option<Finding> {
    let rule = value["rule"].as_str()?.to_owned();
    let gain = value["gain_low_s"].as_f64().zip(value["gain_high_s"].as_f64());
    Some(Finding { rule, gain })
}

/// Where a rule stands among the rules that were found, from 1. A rule may have several findings, one for each file.
pub fn rank(findings: &[Finding], rule: &str) -> Option<usize> {
    rules(findings).iter().position(|found| *found == rule).map(|at| at + 1)
}

/// The rules that were found, each once.
pub fn rules(findings: &[Finding]) -> Vec<&str> {
    let mut rules: Vec<&str> = Vec::new();
    for finding in findings {
        if !rules.contains(&finding.rule.as_str()) {
            rules.push(&finding.rule);
        }
    }
    rules
}

/// What fixing everything that a rule found saves.
pub fn gain(findings: &[Finding], rule: &str) -> Option<(f64, f64)> {
    let gains = findings.iter().filter(|finding| finding.rule == rule).map(|finding| finding.gain);
    gains.reduce(|sum, gain| sum.zip(gain).map(|((low, high), (l, h))| (low + l, high + h))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"findings": [
        {"rule": "sync-per-record", "gain_low_s": 1.0, "gain_high_s": 1.5},
        {"rule": "sync-per-record", "gain_low_s": 0.5, "gain_high_s": 0.5},
        {"rule": "reread", "gain_low_s": null, "gain_high_s": null}]}"#;

    #[test]
    fn findings_of_a_rule_are_one() {
        let found = read(REPORT).unwrap();
        assert_eq!(rules(&found), ["sync-per-record", "reread"]);
        assert_eq!((rank(&found, "reread"), rank(&found, "swap")), (Some(2), None));
        assert_eq!(gain(&found, "sync-per-record"), Some((1.5, 2.0)));
        assert_eq!((gain(&found, "reread"), gain(&found, "swap")), (None, None));
    }

    #[test]
    fn a_report_without_findings_is_not_one_that_found_nothing() {
        assert_eq!(read(r#"{"findings": []}"#).unwrap(), []);
        assert!(read("{}").is_err());
        assert!(read(r#"{"findings": [{"severity": "warn"}]}"#).is_err());
    }
}
