//! Reports on the datasets in a directory, in the format that is asked for.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::base::text;
use crate::base::usage;
use crate::export::report::{Condition, Config, Finding, Look, Report, Scope, Union, build_of};

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Text,
    Json,
    Markdown,
    /// One table.
    Csv,
}

/// Answers a query about the datasets in a directory with rows as objects.
pub type Ask<'a> = &'a dyn Fn(&Path, &str) -> Result<Vec<Value>>;

/// What is asked for.
pub struct Wish<'a> {
    pub format: Format,
    pub look: Look,
    /// What a user set for rules, and what answers the queries of the user's own rules.
    pub config: Config,
    pub ask: Ask<'a>,
    /// Only these calls.
    pub only: Option<&'a dyn Condition>,
}

impl Default for Wish<'_> {
    fn default() -> Self {
        let (format, look, config) = (Format::default(), Look::default(), Config::default());
        Self { format, look, config, ask: &|_, _| Ok(Vec::new()), only: None }
    }
}

/// Reports on the dataset in `dir`, or on all those in the directories in it, as JSON or as text.
///
/// # Errors
/// As of [`run_with`].
pub fn run(dir: &Path, json: bool, out: &mut dyn Write) -> Result<()> {
    let format = if json { Format::Json } else { Format::Text };
    run_with(dir, &Wish { format, ..Wish::default() }, out).map(drop)
}

/// Reports on the dataset in `dir`, or on all those in the directories in it. Runs that have nothing to do with each other have
/// a report each. Returns what was found.
///
/// # Errors
/// When there is no readable dataset, the wish cannot be fulfilled, or `out` cannot be written to.
pub fn run_with(dir: &Path, wish: &Wish, out: &mut dyn Write) -> Result<Vec<Finding>> {
    let mut runs = Union::open_related(dir)?;
    let many = runs.len() > 1;
    ensure!(
        wish.format != Format::Csv || !many,
        "{} holds {} runs that have nothing to do with each other: give the directory of one of them for CSV",
        dir.display(),
        runs.len()
    );
    // Files of one path are shown together, and any column may sort them: all are needed. JSON has those with the most time.
    let files = if wish.format == Format::Json { wish.look.top } else { Some(usize::MAX) };
    let scope = Scope { only: wish.only, files, only_findings: wish.look.only_findings() };
    let build = |run: &mut Union| {
        let mut report = build_of(run, &wish.config, &scope)?;
        let at = if many { run.directories().first().map(|at| at.to_path_buf()) } else { Some(dir.to_path_buf()) };
        report.add_own(&wish.config, at.as_deref(), wish.ask);
        Ok((directories(run), report))
    };
    let mut each = runs.iter_mut().map(build).collect::<Result<Vec<_>>>()?;
    let body = match each.as_slice() {
        [(_, only)] => one(only, wish)?,
        each if wish.format == Format::Json => unrelated_json(each)?,
        each => unrelated(dir, each, wish)?,
    };
    out.write_all(body.as_bytes()).context("cannot write the report")?;
    Ok(each.iter_mut().flat_map(|(_, report)| std::mem::take(&mut report.findings.findings)).collect())
}

/// The datasets in a directory as one run, and its report.
///
/// # Errors
/// When there is no readable dataset, or there are runs that have nothing to do with each other.
pub fn single(dir: &Path, wish: &Wish) -> Result<(Union, Report)> {
    let mut runs = Union::open_related(dir)?;
    let firsts: Vec<String> = runs.iter().filter_map(|run| directories(run).into_iter().next()).collect();
    let (Some(mut run), true) = (runs.pop(), runs.is_empty()) else {
        let number = firsts.len();
        bail!("there are {number} runs that have nothing to do with each other; give one: {}", firsts.join(", "));
    };
    let mut report = build_of(&mut run, &wish.config, &Scope::default())?;
    report.add_own(&wish.config, Some(dir), wish.ask);
    Ok((run, report))
}

fn directories(run: &Union) -> Vec<String> {
    run.directories().iter().map(|path| path.display().to_string()).collect()
}

fn one(report: &Report, wish: &Wish) -> Result<String> {
    match wish.format {
        Format::Text => report.shown(&wish.look),
        Format::Markdown => report.markdown(&wish.look),
        Format::Csv => report.csv(&wish.look),
        Format::Json if wish.look.sections.is_some() => usage::bail!("JSON has all sections: leave out --section"),
        Format::Json => report.json(),
    }
}

/// Several reports: `{"runs": [{"datasets": [...], "report": {...}}, ...]}`.
fn unrelated_json(runs: &[(Vec<String>, Report)]) -> Result<String> {
    let runs: Vec<_> =
        runs.iter().map(|(datasets, report)| serde_json::json!({"datasets": datasets, "report": report})).collect();
    Ok(text::json(&serde_json::to_string_pretty(&serde_json::json!({ "runs": runs }))?) + "\n")
}

fn unrelated(dir: &Path, runs: &[(Vec<String>, Report)], wish: &Wish) -> Result<String> {
    let shown = text::escape(dir.display().to_string());
    let mut out = format!(
        "{shown} holds {} runs that have nothing to do with each other; each is reported by itself\n",
        runs.len()
    );
    let head = if wish.format == Format::Markdown { "#" } else { "===" };
    for (n, (datasets, report)) in runs.iter().enumerate() {
        let datasets: Vec<String> = datasets.iter().map(text::escape).collect();
        let (number, all) = (n + 1, runs.len());
        out += &format!("\n{head} run {number} of {all}: {}\n\n{}", datasets.join(", "), one(report, wish)?);
    }
    Ok(out)
}
