//! Rules of a user: a query over the views of a dataset, each row of whose answer is a finding.

use serde_json::Value;

use crate::analysis::findings::{Evidence, Finding, Findings, NotEvaluated, severity};

/// A rule in `--rules FILE.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRule {
    pub id: &'static str,
    pub advice: String,
    /// Its answer has a column `what` (text), and may have `seconds`, `gain_low_s`, `gain_high_s` (numbers), `span_id` and `path`.
    pub sql: String,
}

/// Rows of an answer that are shown.
const ROWS: usize = 5;

/// Adds what a rule found in a run of so many seconds: the rows that its query gave, or why it gave none.
pub fn add(rule: &OwnRule, answer: Result<Vec<Value>, String>, run_s: f64, to: &mut Findings) {
    let not = |why| NotEvaluated { rule: rule.id, why };
    let rows = match answer {
        Ok(rows) => rows,
        Err(why) => return to.not_evaluated.push(not(why)),
    };
    if rows.iter().any(|row| row["what"].as_str().is_none()) {
        return to.not_evaluated.push(not("the answer of its query has no column \"what\" with text".to_owned()));
    }
    to.looked_at += 1;
    let trusted = to.trusted;
    let all = rows.iter().take(ROWS).map(|row| finding(rule, row, run_s));
    to.findings.extend(all.map(|finding| if trusted { finding } else { finding.without_seconds() }));
    to.sort();
}

fn finding(rule: &OwnRule, row: &Value, run_s: f64) -> Finding {
    let number = |name: &str| row[name].as_f64().filter(|n| *n >= 0.0);
    let seconds = number("seconds").map(|s| s.min(run_s));
    let share = seconds.map(|s| s / run_s.max(1e-9));
    let gain = |name: &str, none: f64| seconds.map(|all| number(name).unwrap_or(none).min(all));
    let path = row["path"].as_str();
    Finding {
        rule: rule.id,
        severity: severity(share),
        title: row["what"].as_str().unwrap_or_default().to_owned(),
        seconds,
        share,
        gain_low_s: gain("gain_low_s", 0.0),
        gain_high_s: gain("gain_high_s", seconds.unwrap_or(0.0)),
        advice: rule.advice.clone(),
        evidence: Evidence {
            spans: row["span_id"].as_i64().into_iter().collect(),
            files: path.map(str::to_owned).into_iter().collect(),
            ..Evidence::default()
        },
        sql: rule.sql.clone(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::analysis::findings::Severity;
    use serde_json::json;

    fn found(answer: Result<Vec<Value>, String>) -> Findings {
        let rule = OwnRule { id: "mine", advice: "do not".to_owned(), sql: "FROM spans".to_owned() };
        let mut findings = Findings { trusted: true, ..Findings::default() };
        add(&rule, answer, 10.0, &mut findings);
        findings
    }

    #[test]
    fn rows_are_findings_with_seconds_of_at_most_the_run() {
        let rows = vec![
            json!({"what": "little", "seconds": 0.2}),
            json!({"what": "all", "seconds": 99, "gain_low_s": 3, "gain_high_s": 20, "span_id": 7, "path": "/a"}),
            json!({"what": "no time"}),
        ];
        let all = found(Ok(rows)).findings;
        let times: Vec<_> = all.iter().map(|f| (f.title.as_str(), f.severity, f.seconds, f.gain_high_s)).collect();
        assert_eq!(
            times,
            [
                ("no time", Severity::Critical, None, None),
                ("all", Severity::Critical, Some(10.0), Some(10.0)),
                ("little", Severity::Info, Some(0.2), Some(0.2))
            ]
        );
        assert_eq!((&all[1].evidence.spans[..], &all[1].evidence.files[..]), (&[7][..], &["/a".to_owned()][..]));
    }

    #[test]
    fn what_cannot_be_evaluated_is_named_with_the_reason() {
        for (answer, why) in
            [(Err("no DuckDB was found".to_owned()), "no DuckDB"), (Ok(vec![json!({"n": 1})]), "no column \"what\"")]
        {
            let out = found(answer);
            assert!(out.findings.is_empty() && out.not_evaluated[0].why.contains(why), "{out:?}");
        }
    }
}
