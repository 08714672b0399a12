//! `compare`: what changed between runs, and whether by more than runs differ among each other.

pub mod condition;
mod figures;
mod render;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::analysis::findings::Config;
use crate::analysis::only;
use crate::analysis::trace::source::Source;
use crate::base::usage;
use crate::export::report::{RankRow, Report, Scope, Union, build, build_of};
use crate::rows::{FileRollup, Span};
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
    print(&compare(&a, &b), json, conditions, width, out)
}

fn print(
    comparison: &Comparison,
    json: bool,
    conditions: &[Condition],
    width: usize,
    out: &mut dyn Write,
) -> Result<Vec<String>> {
    let held = conditions.iter().map(|condition| condition.check(&comparison.figures));
    let held: Vec<String> = held.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let text = if json {
        crate::base::text::json(&serde_json::to_string_pretty(comparison)?) + "\n"
    } else {
        render::text(comparison, &held, width)
    };
    out.write_all(text.as_bytes()).context("cannot write the comparison")?;
    Ok(held)
}

/// A process of a dataset, as it is compared with another one.
#[derive(Debug, Clone)]
pub struct OneProcess {
    text: String,
    rank: Option<i32>,
    /// The processes of the rank: they may have made calls before their rank was known.
    pids: Vec<i32>,
}

impl FromStr for OneProcess {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, number) = text.split_once('=').unwrap_or_default();
        let number = number.parse().ok().filter(|n| *n >= 0);
        let (rank, pid) = (number.filter(|_| what == "rank"), number.filter(|_| what == "pid"));
        let known = rank.or(pid).map(|_| Self { text: text.to_owned(), rank, pids: pid.into_iter().collect() });
        known.ok_or_else(|| "expected rank=N or pid=N".to_owned())
    }
}

impl only::Condition for OneProcess {
    fn text(&self) -> &str {
        &self.text
    }
    fn holds(&self, span: &Span, _: Option<&str>) -> bool {
        self.is(span.rank, Some(span.pid))
    }
    fn holds_of_sums(&self, row: &FileRollup, _: Option<&str>) -> bool {
        self.is(row.rank, row.pid)
    }
    fn is_of_sums(&self) -> bool {
        true
    }
    fn is_of_paths(&self) -> bool {
        false
    }
}

impl OneProcess {
    fn is(&self, rank: Option<i32>, pid: Option<i32>) -> bool {
        let known = || pid.is_some_and(|pid| self.pids.contains(&pid));
        if self.rank.is_some() && rank.is_some() { self.rank == rank } else { known() }
    }

    /// Is the row of it?
    fn has(&self, row: &RankRow) -> bool {
        self.rank.map_or_else(|| row.pids.iter().any(|pid| self.pids.contains(pid)), |own| row.rank == Some(own))
    }

    /// The same with the processes of its rank.
    fn found(&self, source: &mut dyn Source) -> Result<Self> {
        let mut found = self.clone();
        source.processes(&mut |process| {
            if self.rank.is_some() && process.rank == self.rank {
                found.pids.push(process.pid);
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// The same of two ranks or processes of one dataset: the figures of their calls side by side.
///
/// # Errors
/// Also when one of them made no call.
pub fn processes(
    dir: &Path,
    [a, b]: [&OneProcess; 2],
    json: bool,
    conditions: &[Condition],
    width: usize,
    out: &mut dyn Write,
) -> Result<Vec<String>> {
    let of = |process: &OneProcess| -> Result<Vec<Named>> {
        let mut runs = only_run(dir)?;
        let process = process.found(&mut runs)?;
        let scope = Scope { only: Some(&process), ..Scope::default() };
        let mut report = build_of(&mut runs, &Config::default(), &scope)?;
        let calls = report.layers.iter().fold(0, |sum: i64, row| sum.saturating_add(row.calls));
        if calls == 0 {
            usage::bail!("{} made no call in {}; `report --section ranks` lists them", process.text, dir.display());
        }
        // The run and the requests of its devices are of all processes.
        let own = report.ranks.rows.iter().filter(|row| process.has(row)).map(|row| row.wall_ns).sum();
        (report.header.duration_ns, report.tracing) = (own, None);
        Ok(vec![(format!("{}: {}", dir.display(), process.text), report)])
    };
    print(&compare(&of(a)?, &of(b)?), json, conditions, width, out)
}

/// A run by its name.
type Named = (String, Report);

fn read(dirs: &[PathBuf]) -> Result<Vec<Named>> {
    dirs.iter().map(|dir| Ok((dir.display().to_string(), one(dir)?))).collect()
}

fn one(dir: &Path) -> Result<Report> {
    build(&mut only_run(dir)?)
}

fn only_run(dir: &Path) -> Result<Union> {
    let mut runs = Union::open_related(dir)?;
    match (runs.pop(), runs.len()) {
        (Some(only), 0) => Ok(only),
        (_, more) => {
            bail!("{} holds {} runs that have nothing to do with each other: give one of them", dir.display(), more + 1)
        }
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
