//! `compare`: what changed between runs, and whether by more than runs differ among each other.

pub mod condition;
mod figures;
mod render;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::export::report::{Report, Union, build};
use condition::Condition;
pub use figures::{Change, Figure, Found, Side, Unit, noise};

/// Two sets of runs, and what differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The datasets.
    pub a: Vec<String>,
    pub b: Vec<String>,
    /// All that is known of both, in the order in which it is shown.
    pub figures: Vec<Figure>,
    /// Rules that found something in any run.
    pub findings: Vec<Found>,
    /// What makes figures less than they seem: losses, a large share of tracing, sums in place of calls.
    pub caveats: Vec<String>,
}

/// Compares the datasets `a` with the datasets `b`, prints that as text or JSON, and returns the conditions that hold.
///
/// # Errors
/// When a dataset cannot be read, a condition names no figure, or `out` cannot be written to.
pub fn run(
    [a, b]: [&[PathBuf]; 2],
    json: bool,
    conditions: &[Condition],
    width: usize,
    out: &mut dyn Write,
) -> Result<Vec<String>> {
    let [a, b] = [read(a)?, read(b)?];
    let comparison = compare(&a, &b);
    let held = conditions.iter().map(|condition| condition.check(&comparison.figures));
    let held: Vec<String> = held.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let text = if json {
        crate::text::json(&serde_json::to_string_pretty(&comparison)?) + "\n"
    } else {
        render::text(&comparison, &held, width)
    };
    out.write_all(text.as_bytes()).context("cannot write the comparison")?;
    Ok(held)
}

/// A run by its name.
type Named = (String, Report);

fn read(dirs: &[PathBuf]) -> Result<Vec<Named>> {
    dirs.iter().map(|dir| Ok((dir.display().to_string(), one(dir)?))).collect()
}

fn one(dir: &Path) -> Result<Report> {
    match Union::open_related(dir)?.as_mut_slice() {
        [only] => build(only),
        many => bail!(
            "{} holds {} runs that have nothing to do with each other: give one of them",
            dir.display(),
            many.len()
        ),
    }
}

/// What changed from one set of runs to the other.
fn compare(a: &[Named], b: &[Named]) -> Comparison {
    let names = |runs: &[Named]| runs.iter().map(|(name, _)| name.clone()).collect();
    let reports = |runs: &[Named]| runs.iter().map(|(_, report)| figures::of(report)).collect::<Vec<_>>();
    let (of_a, of_b) = (reports(a), reports(b));
    let caveats = a.iter().chain(b).filter_map(|(name, report)| Some(format!("{name}: {}", caveat(report)?)));
    Comparison {
        a: names(a),
        b: names(b),
        figures: figures::compare(&of_a, &of_b),
        findings: figures::findings(&of_a, &of_b),
        caveats: caveats.collect(),
    }
}

/// Why the figures of a run are to be taken with care.
fn caveat(report: &Report) -> Option<String> {
    let lost: i64 = report.losses.iter().map(|row| row.count).fold(0, i64::saturating_add);
    let tracing = report.tracing.as_ref().and_then(crate::export::report::Tracing::warning);
    let lost = (lost > 0).then(|| format!("{lost} events were lost"));
    tracing.or(lost).or_else(|| (!report.header.end_recorded).then(|| "its end was not recorded".to_owned()))
}
