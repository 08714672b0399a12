//! Figures of runs side by side.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::export::report::Report;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Seconds,
    Bytes,
    Count,
}

/// A figure of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Side {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    pub runs: usize,
}

impl Side {
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |n: usize| sorted.get(n).copied().unwrap_or(0.0);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { at(middle) } else { f64::midpoint(at(middle.saturating_sub(1)), at(middle)) };
        Self { median, least: at(0), most: at(sorted.len().saturating_sub(1)), runs: values.len() }
    }
}

/// How a figure differs between the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Every run of one side is above every run of the other.
    BeyondNoise,
    /// Runs of one side differ by as much.
    WithinNoise,
    /// Of one run on a side it is not known by how much runs differ.
    Unknown,
}

/// One figure of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// `time`, `calls.time`, `LAYER.time`, `LAYER.calls`, `LAYER.bytes`, `LAYER.errors`, `wait.PART` or `file.PATH`.
    pub name: String,
    pub unit: Unit,
    pub a: Side,
    pub b: Side,
    /// By which part of `a` it grew: -0.5 is half. `None` where `a` is 0.
    pub change: Option<f64>,
    pub noise: Change,
}

/// A rule that found something.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    pub rule: &'static str,
    /// In how many runs it found something, and the median of its seconds in these.
    pub a_runs: usize,
    pub b_runs: usize,
    pub a_s: Option<f64>,
    pub b_s: Option<f64>,
}

/// What one run comes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfRun {
    /// By position of the section, and name.
    values: BTreeMap<(usize, String), (Unit, f64)>,
    findings: Vec<(&'static str, Option<f64>)>,
}

/// Sections, in the order in which they are shown.
const RUN: usize = 0;
const LAYERS: usize = 1;
const WAITS: usize = 2;
const FILES: usize = 3;

/// The figures of a run.
pub fn of(report: &Report) -> OfRun {
    let mut run = OfRun::default();
    let mut add = |section, name: String, unit, value: f64| {
        let sum = &mut run.values.entry((section, name)).or_insert((unit, 0.0)).1;
        *sum += value;
    };
    let seconds = |ns: i64| ns as f64 / 1e9;
    let run_ns = report.tracing.as_ref().map_or(report.header.duration_ns, |tracing| tracing.run_ns);
    add(RUN, "time".to_owned(), Unit::Seconds, seconds(run_ns));
    add(RUN, "calls.time".to_owned(), Unit::Seconds, report.findings.calls_s);
    for row in &report.layers {
        let name = |what: &str| format!("{}.{what}", row.layer);
        add(LAYERS, name("time"), Unit::Seconds, seconds(row.exclusive_ns.unwrap_or(row.inclusive_ns)));
        add(LAYERS, name("calls"), Unit::Count, row.calls as f64);
        add(LAYERS, name("bytes"), Unit::Bytes, row.moved.sum.unwrap_or(0) as f64);
        add(LAYERS, name("errors"), Unit::Count, row.errors as f64);
    }
    for row in &report.waiting {
        add(WAITS, format!("wait.{}", row.part), Unit::Seconds, seconds(row.ns));
    }
    for row in &report.files {
        if let Some(path) = &row.path {
            add(FILES, format!("file.{path}"), Unit::Seconds, seconds(row.time_ns));
        }
    }
    run.findings = report.findings.findings.iter().map(|f| (f.rule, f.seconds)).collect();
    run
}

/// The figures of both sides; what a run does not have is 0 there.
pub fn compare(a: &[OfRun], b: &[OfRun]) -> Vec<Figure> {
    let keys: BTreeMap<&(usize, String), Unit> =
        a.iter().chain(b).flat_map(|run| run.values.iter().map(|(key, (unit, _))| (key, *unit))).collect();
    let side = |runs: &[OfRun], key: &(usize, String)| {
        let values: Vec<f64> = runs.iter().map(|run| run.values.get(key).map_or(0.0, |(_, value)| *value)).collect();
        Side::of(&values)
    };
    keys.into_iter().map(|(key, unit)| figure(key.1.clone(), unit, side(a, key), side(b, key))).collect()
}

fn figure(name: String, unit: Unit, a: Side, b: Side) -> Figure {
    let change = (a.median > 0.0).then(|| b.median / a.median - 1.0);
    let noise = noise(&a, &b);
    Figure { name, unit, a, b, change, noise }
}

/// Do two sides differ by more than runs of one side do?
pub fn noise(a: &Side, b: &Side) -> Change {
    if a.runs < 2 || b.runs < 2 {
        Change::Unknown
    } else if b.least > a.most || b.most < a.least {
        Change::BeyondNoise
    } else {
        Change::WithinNoise
    }
}

/// Rules that found something on either side, those that take most of `b` first.
pub fn findings(a: &[OfRun], b: &[OfRun]) -> Vec<Found> {
    let mut rules: Vec<&'static str> = Vec::new();
    for (rule, _) in a.iter().chain(b).flat_map(|run| &run.findings) {
        if !rules.contains(rule) {
            rules.push(rule);
        }
    }
    let side = |runs: &[OfRun], rule: &str| {
        let of = |run: &OfRun| {
            let mine: Vec<Option<f64>> = run.findings.iter().filter(|(id, _)| *id == rule).map(|(_, s)| *s).collect();
            (!mine.is_empty()).then(|| mine.into_iter().flatten().sum::<f64>())
        };
        let found: Vec<f64> = runs.iter().filter_map(of).collect();
        let timed = runs.iter().flat_map(|run| &run.findings).any(|(id, s)| *id == rule && s.is_some());
        (found.len(), (timed && !found.is_empty()).then(|| Side::of(&found).median))
    };
    let mut all: Vec<Found> = rules
        .into_iter()
        .map(|rule| {
            let ((a_runs, a_s), (b_runs, b_s)) = (side(a, rule), side(b, rule));
            Found { rule, a_runs, b_runs, a_s, b_s }
        })
        .collect();
    all.sort_by(|x, y| y.b_s.unwrap_or(0.0).total_cmp(&x.b_s.unwrap_or(0.0)));
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn run(time: f64, findings: &[(&'static str, Option<f64>)]) -> OfRun {
        let values = BTreeMap::from([((RUN, "time".to_owned()), (Unit::Seconds, time))]);
        OfRun { values, findings: findings.to_vec() }
    }

    fn runs(times: &[f64]) -> Vec<OfRun> {
        times.iter().map(|time| run(*time, &[])).collect()
    }

    #[test]
    fn a_change_counts_when_all_runs_of_a_side_are_above_the_other() {
        let noise = |a: &[f64], b: &[f64]| {
            let figures = compare(&runs(a), &runs(b));
            (figures[0].change.unwrap(), figures[0].noise)
        };
        assert_eq!(noise(&[10.0], &[5.0]), (-0.5, Change::Unknown));
        assert_eq!(noise(&[10.0, 11.0, 9.0], &[20.0, 14.0]), (0.7, Change::BeyondNoise));
        assert_eq!(noise(&[10.0, 15.0, 9.0], &[20.0, 14.0]), (0.7, Change::WithinNoise));
        assert_eq!(noise(&[10.0, 15.0], &[8.0, 9.0]).1, Change::BeyondNoise);
    }

    #[test]
    fn what_one_side_does_not_have_is_zero_there() {
        let mut b = run(1.0, &[]);
        b.values.insert((FILES, "file./new".to_owned()), (Unit::Seconds, 2.0));
        let figures = compare(&[run(1.0, &[])], &[b]);
        let new = figures.iter().find(|f| f.name == "file./new").unwrap();
        assert_eq!((new.a.median, new.b.median, new.change), (0.0, 2.0, None));
    }

    #[test]
    fn findings_come_and_go() {
        let a = [run(1.0, &[("reread", Some(0.5)), ("errors", None)]), run(1.0, &[("reread", Some(0.7))])];
        let b = [run(1.0, &[("lock-wait", Some(0.2)), ("lock-wait", Some(0.1))])];
        let found = findings(&a, &b);
        let shown: Vec<_> = found.iter().map(|f| (f.rule, f.a_runs, f.b_runs, f.a_s, f.b_s)).collect();
        assert_eq!(shown[0].0, "lock-wait");
        assert!((shown[0].4.unwrap() - 0.3).abs() < 1e-9 && shown[0].3.is_none());
        assert_eq!(shown[1], ("reread", 2, 0, Some(0.6), None));
        assert_eq!(shown[2], ("errors", 1, 0, None, None));
    }
}
