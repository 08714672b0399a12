//! What is wrong with a run: causes, the seconds that each costs, and what removing it would save.
//!
//! The calls of the critical lane (`lanes`) make `groups` of calls that are alike, whose time is split into disjoint
//! parts. [`rules`], the most specific first, claim parts of it: each ns once, so that the seconds of all findings are
//! at most the wall time. What no rule claims is unexplained. A gain is the claimed time less a model of what would
//! remain, with costs that were measured in this trace: a range, never one number.

mod case;
mod config;
mod groups;
mod lanes;
pub mod rules;
mod run;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use anyhow::Result;
use roaring::RoaringBitmap;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::coverage::LayerCoverage;
use crate::analysis::files::{Described, described};
use crate::analysis::losses::Losses;
use crate::analysis::nesting::Enclosing;
use crate::analysis::share::TRUSTED_SHARE;
use crate::analysis::source::{IdKind, Source};
use crate::rows::{Block, FileRollup, Span};
use crate::text::percent;
use crate::vocabulary::{LAYERS, Layer};
use case::{Case, Found};
pub use config::Config;
use groups::{Groups, IN_CALLS};
use rules::RULES;
use run::{Others, Run};

/// Shares of the run from which on a finding is a warning, and critical.
const WARN: f64 = 0.05;
const CRITICAL: f64 = 0.25;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warn,
    Critical,
}

impl Severity {
    /// The severity of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Info, Self::Warn, Self::Critical].into_iter().find(|severity| severity.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Critical => "critical",
        }
    }
}

/// Rows that show a finding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Ids of spans, those with the most time first.
    pub spans: Vec<i64>,
    pub files: Vec<String>,
    pub ranks: Vec<i32>,
    pub processes: Vec<i32>,
}

/// A cause, what it costs, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    pub severity: Severity,
    pub title: String,
    /// Wall time on the critical lane, without the tracer's hooks. `None`: an error, or durations are not to be trusted.
    pub seconds: Option<f64>,
    /// The same as a part of the run.
    pub share: Option<f64>,
    /// What removing the cause would save, as a range.
    pub gain_low_s: Option<f64>,
    pub gain_high_s: Option<f64>,
    pub advice: String,
    pub evidence: Evidence,
    /// A query on the dataset's views that shows the same.
    pub sql: String,
}

/// A rule that could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotEvaluated {
    pub rule: &'static str,
    pub why: String,
}

/// All that the rules found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Findings {
    pub findings: Vec<Finding>,
    pub not_evaluated: Vec<NotEvaluated>,
    /// Wall time of calls on the critical lane that no finding claims.
    pub unexplained_s: f64,
    /// The same with what findings claim.
    pub calls_s: f64,
    /// Rules that were applied.
    #[serde(skip)]
    pub looked_at: usize,
}

/// What rules need of the rows: one pass in the order of the dataset.
pub struct Collect {
    groups: Groups,
    others: Others,
}

/// `O_DSYNC`, which is part of `O_SYNC`.
const O_DSYNC: i32 = 0o10_000;

impl Collect {
    pub fn new(source: &mut dyn Source) -> Result<Self> {
        let mut known = groups::Known::default();
        source.handles(&mut |handle| {
            if handle.layer == Layer::Syscall && handle.mode.is_some_and(|mode| mode & O_DSYNC != 0) {
                known.synced.insert(handle.handle_id as u32);
            }
            Ok(())
        })?;
        source.files(&mut |file| {
            if file.fstype.as_deref() == Some("overlay") {
                known.overlay.insert(file.file_id as u32);
            }
            Ok(())
        })?;
        Ok(Self { groups: Groups::new(known), others: Others::default() })
    }

    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        self.groups.span(span, around);
    }

    pub fn sums(&mut self, row: &FileRollup) {
        self.groups.sums(row);
    }

    pub fn block(&mut self, block: &Block) {
        self.others.block(block);
    }

    /// Applies all rules. `duration_ns`: how long the run was; `tracing`: the tracer's own share of it.
    pub fn finish(mut self, source: &mut dyn Source, trace: &Trace<'_>, config: &Config) -> Result<Findings> {
        lanes::open(&mut self.groups);
        let mut lane = lanes::critical(&mut self.groups);
        lanes::limit(&mut lane, &self.groups, trace.duration_ns);
        let pids = traced(source)?;
        let run = Run::new(&self.groups, lane, trace.duration_ns, &self.others, &pids);
        let mut out = Findings::default();
        let mut found: Vec<(&'static rules::Rule, Found)> = Vec::new();
        let of_layer = calls_by_layer(&self.groups);
        for rule in RULES {
            match applies(rule, trace, source.nodes().len(), &|layer| of_layer[layer as usize]) {
                Applies::Yes => {}
                Applies::Void => continue,
                Applies::No(why) => {
                    out.not_evaluated.push(NotEvaluated { rule: rule.id, why });
                    continue;
                }
            }
            if config.is_off(rule.id) {
                continue;
            }
            out.looked_at += 1;
            let thresholds = |name: &str| config.threshold(rule, name);
            let mut case = Case::new(&mut self.groups, &run, &thresholds);
            found.extend((rule.find)(&mut case).into_iter().map(|found| (rule, found)));
        }
        let lane = &run.lane;
        let total: f64 = self.groups.all.iter().map(|g| lanes::seconds(lane, g, g.total())).sum();
        let left: f64 = self.groups.all.iter().map(|g| lanes::seconds(lane, g, g.left(&IN_CALLS))).sum();
        (out.calls_s, out.unexplained_s) = (total, left);
        let trusted = trace.tracing.is_none_or(|share| share <= TRUSTED_SHARE);
        let names = Names::read(source, &self.groups, &found)?;
        out.findings = found.iter().map(|(rule, found)| finding(rule, found, &self.groups, &run, &names)).collect();
        // Of several datasets: the ids that they have there.
        let own = |id: &mut i64| *id = source.origin(IdKind::Span, *id).map_or(*id, |origin| origin.id);
        out.findings.iter_mut().flat_map(|finding| &mut finding.evidence.spans).for_each(own);
        let order = |f: &Finding| (f.seconds.is_none(), f.seconds.unwrap_or(0.0));
        out.findings.sort_by(|a, b| order(b).partial_cmp(&order(a)).unwrap_or(std::cmp::Ordering::Equal));
        if !trusted {
            out.findings.iter_mut().for_each(Finding::forget_seconds);
        }
        Ok(out)
    }
}

/// What is known of a trace besides its calls.
pub struct Trace<'a> {
    /// How long the run was, in ns.
    pub duration_ns: i64,
    /// The tracer's own share of it, if that was recorded.
    pub tracing: Option<f64>,
    pub coverage: &'a [LayerCoverage],
    pub losses: &'a Losses,
    pub aggregate: bool,
}

/// Above this part of lost events of a layer its rules are not applied.
const LOST_SHARE: f64 = 0.01;

fn calls_by_layer(groups: &Groups) -> [i64; LAYERS.len()] {
    let mut calls = [0_i64; LAYERS.len()];
    for group in &groups.all {
        let sum = &mut calls[group.key.layer as usize];
        *sum = sum.saturating_add(group.calls);
    }
    calls
}

/// The pids of traced processes.
fn traced(source: &mut dyn Source) -> Result<RoaringBitmap> {
    let mut pids = RoaringBitmap::new();
    source.processes(&mut |process| {
        pids.insert(process.pid as u32);
        Ok(())
    })?;
    Ok(pids)
}

/// Can a rule be applied?
enum Applies {
    Yes,
    /// There is nothing that it could be about.
    Void,
    /// Why it cannot be decided.
    No(String),
}

fn applies(rule: &rules::Rule, trace: &Trace<'_>, nodes: usize, calls: &dyn Fn(Layer) -> i64) -> Applies {
    if rule.one_node && nodes > 1 {
        return Applies::No(format!("is about one node, and the trace is of {nodes}: report each by itself"));
    }
    if trace.aggregate && !rule.sums {
        return Applies::No("needs single calls, and the trace has sums (--aggregate)".to_owned());
    }
    for need in rule.needs {
        let Some(layer) = trace.coverage.iter().find(|layer| layer.layer == need.name()) else { continue };
        if layer.attached == 0 {
            // No program of the run has the library.
            let absent = *need < Layer::Syscall && layer.refused.keys().all(|why| why.starts_with("absent"));
            let why = layer.not_covered.clone().unwrap_or_default();
            return if absent {
                Applies::Void
            } else {
                Applies::No(format!("layer {} is not covered: {why}", need.name()))
            };
        }
        let lost = trace.losses.share(*need, calls(*need));
        if lost > LOST_SHARE {
            return Applies::No(format!("{} of the events of layer {} were lost", percent(lost), need.name()));
        }
    }
    Applies::Yes
}

/// Names of what findings are about.
struct Names {
    files: HashMap<i32, Described>,
    paths: HashMap<i32, String>,
    ranks: HashMap<i32, (i32, Option<i32>)>,
}

impl Names {
    fn read(source: &mut dyn Source, groups: &Groups, found: &[(&rules::Rule, Found)]) -> Result<Self> {
        let of_found = || found.iter().flat_map(|(_, f)| &f.groups).map(|at| &groups.all[*at]);
        let wanted_paths: RoaringBitmap = of_found().filter_map(|g| Some(g.path.value? as u32)).collect();
        let files = described(source, of_found().filter_map(|group| group.file.value))?;
        let mut names = Self { files, paths: HashMap::default(), ranks: HashMap::default() };
        source.paths(&mut |path| {
            if wanted_paths.contains(path.path_id as u32) {
                names.paths.insert(path.path_id, path.path.clone());
            }
            Ok(())
        })?;
        source.processes(&mut |process| {
            names.ranks.insert(process.process_ix, (process.pid, process.rank));
            Ok(())
        })?;
        Ok(names)
    }

    fn of(&self, group: &groups::Group) -> Option<String> {
        let file = group.file.value.and_then(|id| self.files.get(&id)?.path.clone());
        file.or_else(|| group.path.value.and_then(|id| self.paths.get(&id).cloned()))
    }
}

/// Files that are named as evidence.
const FILES: usize = 5;

fn finding(rule: &rules::Rule, found: &Found, groups: &Groups, run: &Run, names: &Names) -> Finding {
    let mut alike: Vec<&groups::Group> = found.groups.iter().map(|at| &groups.all[*at]).collect();
    alike.sort_by_key(|group| std::cmp::Reverse(group.total()));
    let mut evidence = Evidence::default();
    let mut calls: Vec<(i64, i64)> = alike.iter().flat_map(|group| group.slowest.iter().copied()).collect();
    calls.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    evidence.spans = calls.into_iter().take(groups::EVIDENCE).map(|(_, id)| id).collect();
    let add_once = |list: &mut Vec<String>, name: String| {
        if list.len() < FILES && !list.contains(&name) {
            list.push(name);
        }
    };
    for group in &alike {
        names.of(group).into_iter().for_each(|name| add_once(&mut evidence.files, name));
        if let Some((pid, rank)) = names.ranks.get(&group.key.process) {
            if !evidence.processes.contains(pid) && evidence.processes.len() < FILES {
                evidence.processes.push(*pid);
            }
            evidence.ranks.extend(rank.filter(|rank| !evidence.ranks.contains(rank)));
        }
    }
    let files: usize = alike.iter().filter_map(|g| g.file.value).collect::<std::collections::BTreeSet<_>>().len();
    let on = match (evidence.files.first(), files) {
        (None, _) => String::new(),
        (Some(file), 0 | 1) => format!(", {file}"),
        (Some(file), n) => format!(", {file} and {} more", n - 1),
    };
    let share = found.seconds / run.wall.max(1e-9);
    let error = found.seconds <= 0.0;
    let severity = match share {
        _ if error => Severity::Critical,
        share if share >= CRITICAL => Severity::Critical,
        share if share >= WARN => Severity::Warn,
        _ => Severity::Info,
    };
    let known = |value: f64| (!error).then_some(value);
    Finding {
        rule: rule.id,
        severity,
        title: format!("{}{on}", found.what),
        seconds: known(found.seconds),
        share: known(share),
        gain_low_s: known(found.gain.0.min(found.seconds).max(0.0)),
        gain_high_s: known(found.gain.1.min(found.seconds).max(0.0)),
        advice: rule.advice.to_owned(),
        evidence,
        sql: rule.sql.to_owned(),
    }
}

impl Finding {
    /// Only the order remains: the tracer took too much of the run.
    fn forget_seconds(&mut self) {
        (self.seconds, self.share, self.gain_low_s, self.gain_high_s) = (None, None, None, None);
    }
}
