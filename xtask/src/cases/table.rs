//! What the cases showed, as tables in Markdown, and how far that is from the goals.

use anyhow::{Context, Result};
use std::fs;
use std::ops::Range;

use super::findings;
use super::list::{Case, Expect};
use super::measure::Outcome;

/// A document, and the lines in it that tables stand between.
pub struct Marker {
    pub path: &'static str,
    pub begin: &'static str,
    pub end: &'static str,
}

pub const MARKER: Marker = Marker {
    path: "docs/findings.md",
    begin: "<!-- cases: written by `cargo xtask cases` -->",
    end: "<!-- end of cases -->",
};

/// Predicted over achieved gains that are good enough.
pub const CLOSE: Range<f64> = 0.67..1.5;
/// Expected causes that may be missing.
const MISSING: usize = 2;

/// A case with what was seen of it, or why nothing was.
pub struct Tried {
    pub case: &'static Case,
    pub seen: Result<Outcome>,
}

/// The middle one; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

impl Outcome {
    /// The middle one of the expected rule's ranks; none: it was not found in half of the runs.
    fn rank(&self, rule: &str) -> Option<usize> {
        let mut ranks: Vec<usize> =
            self.found.iter().map(|found| findings::rank(found, rule).unwrap_or(usize::MAX)).collect();
        ranks.sort_unstable();
        ranks.get(ranks.len() / 2).copied().filter(|rank| *rank < usize::MAX)
    }

    /// Seconds that fixing saves.
    fn achieved(&self) -> f64 {
        median(&self.bad) - median(&self.good)
    }

    /// Seconds that the report says fixing saves.
    fn predicted(&self, rule: &str) -> Option<(f64, f64)> {
        let gains: Vec<(f64, f64)> = self.found.iter().filter_map(|found| findings::gain(found, rule)).collect();
        let middle = |of: fn(&(f64, f64)) -> f64| median(&gains.iter().map(of).collect::<Vec<_>>());
        (!gains.is_empty()).then(|| (middle(|gain| gain.0), middle(|gain| gain.1)))
    }

    /// Predicted over achieved.
    fn ratio(&self, rule: &str) -> Option<f64> {
        self.predicted(rule).map(|(low, high)| f64::midpoint(low, high) / self.achieved())
    }

    /// Rules that are wrong in the program as it is, with the runs in which they were found.
    fn wrong(&self) -> Vec<(&str, usize)> {
        let mut wrong: Vec<(&str, usize)> = Vec::new();
        for rule in self.found.iter().flat_map(|found| findings::rules(found)).filter(|rule| !self.is_right(rule)) {
            match wrong.iter_mut().find(|(other, _)| *other == rule) {
                Some((_, runs)) => *runs += 1,
                None => wrong.push((rule, 1)),
            }
        }
        wrong
    }

    fn is_right(&self, rule: &str) -> bool {
        let expected = match self.case.expect {
            Expect::Rule(expected) => rule == expected,
            Expect::Nothing => false,
            Expect::Not(other) => rule != other,
        };
        expected || self.case.also.contains(&rule)
    }

    /// Rules that are wrong in the fixed program.
    fn wrong_in_good(&self) -> Vec<&str> {
        let rules = findings::rules(&self.found_in_good);
        rules.into_iter().filter(|rule| !self.case.also.contains(rule)).collect()
    }
}

/// A line of the table of times.
pub fn times(tried: &Tried) -> String {
    let about = tried.case.about;
    match &tried.seen {
        Ok(seen) if tried.case.good.is_some() => format!(
            "| {} | {about} | {:.3} | {:.3} | {:.3} |",
            tried.case.name,
            median(&seen.bad),
            median(&seen.good),
            seen.achieved()
        ),
        Ok(seen) => format!("| {} | {about} | {:.3} | - | - |", tried.case.name, median(&seen.bad)),
        Err(error) => format!("| {} | not run: {} | - | - | - |", tried.case.name, cell(&format!("{error:#}"))),
    }
}

pub const TIMES: &str = "| case | as it is; fixed | s | fixed | gain |\n|---|---|---|---|---|";

/// A line of the table of findings.
pub fn found(tried: &Tried) -> String {
    let name = tried.case.name;
    let Ok(seen) = &tried.seen else { return format!("| {name} | not run | - | - | - | - | - | - |") };
    let or = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let cause = match tried.case.expect {
        Expect::Rule(rule) => rule.to_owned(),
        Expect::Nothing => "nothing".to_owned(),
        Expect::Not(rule) => format!("not {rule}"),
    };
    let (rule, named) = match tried.case.expect {
        Expect::Rule(rule) => (rule, seen.rank(rule).map_or("missing".to_owned(), |rank| rank.to_string())),
        Expect::Nothing => ("", "-".to_owned()),
        Expect::Not(rule) => (rule, seen.rank(rule).map_or("not named".to_owned(), |_| "named, wrongly".to_owned())),
    };
    let runs = seen.found.len();
    let wrong = seen.wrong().iter().map(|(rule, in_runs)| format!("{rule} ({in_runs} of {runs})")).collect::<Vec<_>>();
    let predicted = seen.predicted(rule).map_or(String::new(), |(low, high)| format!("{low:.2} to {high:.2}"));
    let ratio = seen.ratio(rule).map_or(String::new(), |ratio| format!("{ratio:.2}"));
    let achieved = if tried.case.good.is_some() { format!("{:.2}", seen.achieved()) } else { String::new() };
    let cells = [predicted, achieved, ratio, seen.wrong_in_good().join(", ")].map(or).join(" | ");
    format!("| {name} | {cause} | {named} | {} | {cells} |", or(wrong.join(", ")))
}

pub const FOUND: &str = "| case | cause | rank | wrong | predicted s | achieved s | ratio | wrong when fixed |\n\
    |---|---|---|---|---|---|---|---|";

fn cell(text: &str) -> String {
    text.replace('|', "/").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How far the cases are from what is wanted.
pub struct Goals {
    pub text: String,
    /// Too many causes are missing, something was found where there is nothing, or a case did not run.
    pub failed: bool,
}

pub fn goals(tried: &[Tried]) -> Goals {
    let seen: Vec<&Outcome> = tried.iter().filter_map(|one| one.seen.as_ref().ok()).collect();
    let causes: Vec<(&Outcome, &str)> = seen
        .iter()
        .filter_map(|seen| if let Expect::Rule(rule) = seen.case.expect { Some((*seen, rule)) } else { None })
        .collect();
    let ranks: Vec<Option<usize>> = causes.iter().map(|(seen, rule)| seen.rank(rule)).collect();
    let within = |most: usize| ranks.iter().flatten().filter(|rank| **rank <= most).count();
    // Where hooks take much of the run the report has an order and no seconds, and some rules predict none.
    let ratios: Vec<f64> = causes.iter().filter_map(|(seen, rule)| seen.ratio(rule)).collect();
    let close = ratios.iter().filter(|ratio| CLOSE.contains(ratio)).count();
    let saved = ratios.iter().filter(|ratio| **ratio > 0.0).count();
    let predicted = ratios.len();
    let innocent = seen.iter().filter(|seen| !matches!(seen.case.expect, Expect::Rule(_)));
    let accused = innocent.clone().filter(|seen| !seen.wrong().is_empty()).count();
    let fixed = seen.iter().filter(|seen| seen.case.good.is_some() && matches!(seen.case.expect, Expect::Rule(_)));
    let in_fixed = fixed.clone().filter(|seen| !seen.wrong_in_good().is_empty()).count();
    let (all, not_run) = (ranks.len(), tried.len() - seen.len());
    let text = format!(
        "| goal | wanted | reached |\n|---|---|---|\n\
         | the cause comes first | {} of {all} | {} |\n\
         | the cause is among the first three | {all} of {all} | {} |\n\
         | innocent programs with findings | 0 of {} | {accused} |\n\
         | fixed programs with findings | 0 of {} | {in_fixed} |\n\
         | causes with a predicted gain | - | {predicted} of {all} |\n\
         | of these: predicted over achieved gain within {} to {} | 80 % | {close} of {predicted} |\n\
         | of these: fixing saves time | {predicted} of {predicted} | {saved} |\n\
         | cases that did not run | 0 of {} | {not_run} |",
        // 22 of 24.
        (all * 22).div_ceil(24),
        within(1),
        within(3),
        innocent.count(),
        fixed.count(),
        CLOSE.start,
        CLOSE.end,
        tried.len(),
    );
    let missing = ranks.iter().filter(|rank| rank.is_none()).count();
    Goals { text, failed: missing > MISSING || accused > 0 || not_run > 0 }
}

impl Marker {
    /// Puts tables into the document.
    pub fn write(&self, tables: &str) -> Result<()> {
        let Self { path, begin, end } = self;
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        let text =
            self.replaced(&text, tables).with_context(|| format!("{path} has not the lines {begin} and {end}"))?;
        fs::write(path, text).with_context(|| format!("cannot write {path}"))
    }

    fn replaced(&self, text: &str, tables: &str) -> Option<String> {
        let Self { begin, end, .. } = self;
        let (before, rest) = text.split_once(begin)?;
        let (_, after) = rest.split_once(end)?;
        Some(format!("{before}{begin}\n\n{tables}\n\n{end}{after}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Finding;
    use super::super::list;
    use super::*;

    fn found(rules: &[&str]) -> Vec<Finding> {
        rules.iter().map(|rule| Finding { rule: (*rule).to_owned(), gain: Some((0.8, 1.2)) }).collect()
    }

    fn tried(name: &str, rules: &[&str], in_good: &[&str]) -> Tried {
        let case = list::all().find(|case| case.name == name).unwrap();
        let (bad, good) = (vec![2.0, 1.5, 9.0], if case.good.is_some() { vec![1.0, 1.0, 1.5] } else { vec![] });
        let seen =
            Outcome { case, found: vec![found(rules), found(rules), vec![]], found_in_good: found(in_good), bad, good };
        Tried { case, seen: Ok(seen) }
    }

    #[test]
    fn a_line_compares_what_was_predicted_with_what_was_achieved() {
        let line = super::found(&tried("log-fsync", &["reread", "sync-per-record"], &["swap"]));
        let wanted = "| log-fsync | sync-per-record | 2 | reread (2 of 3) | 0.80 to 1.20 | 1.00 | 1.00 | swap |";
        assert_eq!(line, wanted);
        assert_eq!(super::found(&tried("dd-1m", &[], &[])), "| dd-1m | nothing | - | - | - | - | - | - |");
    }

    #[test]
    fn what_is_found_in_an_innocent_program_fails() {
        assert!(!goals(&[tried("dd-1m", &[], &[]), tried("log-fsync", &["sync-per-record"], &[])]).failed);
        assert!(goals(&[tried("dd-1m", &["swap"], &[])]).failed);
        assert!(goals(&[tried("strided-cached", &["independent-strided"], &[])]).failed);
        assert!(!goals(&[tried("strided-cached", &["small-transfers"], &[])]).failed);
    }

    #[test]
    fn predictions_are_counted_where_there_are_some() {
        let slower = |mut tried: Tried| {
            tried.seen.iter_mut().for_each(|seen| seen.good = vec![3.0]);
            tried
        };
        let (rules, name) = (["sync-per-record"], "log-fsync");
        let cases = [tried(name, &rules, &[]), slower(tried(name, &rules, &[])), tried(name, &[], &[])];
        let text = goals(&cases).text;
        for line in [
            "| causes with a predicted gain | - | 2 of 3 |",
            "| of these: predicted over achieved gain within 0.67 to 1.5 | 80 % | 1 of 2 |",
            "| of these: fixing saves time | 2 of 2 | 1 |",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}: {text}");
        }
    }

    #[test]
    fn two_causes_may_be_missing() {
        let missing = |count| (0..count).map(|_| tried("log-fsync", &[], &[])).collect::<Vec<_>>();
        assert!(!goals(&missing(2)).failed);
        assert!(goals(&missing(3)).failed);
    }

    #[test]
    fn tables_stand_between_the_marks() {
        let Marker { begin, end, .. } = MARKER;
        let text = format!("a\n{begin}\nold\n{end}\nb\n");
        assert_eq!(MARKER.replaced(&text, "new").unwrap(), format!("a\n{begin}\n\nnew\n\n{end}\nb\n"));
        assert!(MARKER.replaced("a", "new").is_none());
        assert!(MARKER.replaced(include_str!("../../../docs/findings.md"), "new").is_some());
    }
}
