//! What is wrong with a run: causes, the seconds that each costs, and what removing it would save.
//!
//! The calls of the critical lane (`lanes`) make `groups` of calls that are alike, whose time is split into disjoint
//! parts. [`rules`], the most specific first, claim parts of it: each ns once, so that the seconds of all findings are
//! at most the wall time. What no rule claims is unexplained. A gain is the claimed time less a model of what would
//! remain, with costs that were measured in this trace: a range, never one number.

mod case;
mod config;
mod functions;
pub mod groups;
mod hooks;
mod lanes;
mod live;
pub mod own;
pub mod rules;
mod run;
pub mod split;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod written;

use anyhow::Result;
use roaring::RoaringBitmap;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::files::described;
use crate::analysis::nesting::Enclosing;
use crate::analysis::trace::coverage::LayerCoverage;
use crate::analysis::trace::losses::Losses;
use crate::analysis::trace::share::TRUSTED_SHARE;
use crate::analysis::trace::source::{IdKind, Source};
use crate::base::text::percent;
use crate::rows::{Block, BlockBytes, FileRollup, Span};
use crate::vocabulary::{LAYERS, Layer};
use case::{Case, Found};
pub use config::Config;
use groups::Groups;
use groups::group::{EVIDENCE, Group, IN_CALLS, Slow};
use groups::same::Same;
pub use live::Live;
use rules::{OF_BYTES, RULES, Rule};
use run::{Others, Run};
use split::Split;

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

/// Which findings count: those of a rule, or of a severity and above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Rule(&'static str),
    Severity(Severity),
}

impl Which {
    pub fn applies(self, finding: &Finding) -> bool {
        match self {
            Self::Rule(id) => finding.rule == id,
            Self::Severity(least) => finding.severity >= least,
        }
    }
}

/// Rows that show a finding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Ids of spans, those with the most time first.
    pub spans: Vec<i64>,
    pub files: Vec<String>,
    /// Functions of the program that made the slowest of them: phases around them, or where their stacks leave libraries.
    pub functions: Vec<String>,
    pub ranks: Vec<i32>,
    pub processes: Vec<i32>,
    /// All processes, by number in the dataset.
    #[serde(skip)]
    pub process_ix: Vec<i32>,
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
    /// The tracer took little enough of the run for its seconds.
    #[serde(skip)]
    pub trusted: bool,
}

/// What rules need of the rows: one pass in the order of the dataset.
pub struct Collect {
    groups: Groups,
    others: Others,
}

impl Collect {
    pub fn new(source: &mut dyn Source) -> Result<Self> {
        Self::with(source, Groups::default(), Others::default())
    }

    fn with(source: &mut dyn Source, mut groups: Groups, mut others: Others) -> Result<Self> {
        source.meta(&mut |meta| {
            others.meta(meta);
            Ok(())
        })?;
        let hosts = source.hosts(IdKind::File);
        if !hosts.0.is_empty() {
            groups.known().same = Same::of(&hosts);
        }
        source.mounts(&mut |mount| {
            groups.known().same.mount(mount);
            Ok(())
        })?;
        source.handles(&mut |handle| {
            groups.known().handle(handle);
            Ok(())
        })?;
        source.files(&mut |file| {
            groups.known().file(file);
            Ok(())
        })?;
        Ok(Self { groups, others })
    }

    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        self.groups.span(span, around);
    }

    /// Does a call wait until its data is on a device, for its handle was opened with `O_SYNC` or `O_DSYNC`?
    pub fn is_synced(&mut self, span: &Span) -> bool {
        span.handle_id.is_some_and(|id| self.groups.known().synced.contains(id as u32))
    }

    pub fn sums(&mut self, row: &FileRollup) {
        self.groups.sums(row);
    }

    pub fn block(&mut self, block: &Block) {
        self.others.block(block);
    }

    /// Does any rule ask whose bytes these requests have?
    pub fn wants_bytes(&self, config: &Config) -> bool {
        self.others.has_writes() && OF_BYTES.iter().any(|rule| !config.is_off(rule))
    }

    pub fn bytes(&mut self, part: &BlockBytes) {
        self.others.bytes(part, self.groups.file(part.file_id));
    }

    /// The time in parts, of which no rule claims any.
    pub fn split(self, source: &mut dyn Source, trace: &Trace<'_>) -> Result<Split> {
        Ok(Split::of(self.groups, (&self.others, &pids(source)?), trace))
    }

    /// Applies all rules.
    pub fn finish(self, source: &mut dyn Source, trace: &Trace<'_>, config: &Config) -> Result<Findings> {
        let pids = pids(source)?;
        let evaluated = Evaluated::of(self.groups, (&self.others, &pids), trace, config);
        let names = Names::read(source, &evaluated)?;
        let mut out = evaluated.named(&names);
        // Of several datasets: the ids that they have there.
        let own = |id: &mut i64| *id = source.origin(IdKind::Span, *id).map_or(*id, |origin| origin.id);
        out.findings.iter_mut().flat_map(|finding| &mut finding.evidence.spans).for_each(own);
        Ok(out)
    }
}

/// The pids of traced processes.
fn pids(source: &mut dyn Source) -> Result<RoaringBitmap> {
    let mut pids = RoaringBitmap::new();
    source.processes(&mut |process| {
        pids.insert(process.pid as u32);
        Ok(())
    })?;
    Ok(pids)
}

/// Why no rule is applied when what is known of the critical lane is only a part.
const FOLDED: &str = "ranks make more kinds of calls than are kept apart";

/// What the rules found, before files have names.
struct Evaluated {
    groups: Groups,
    run: Run,
    found: Vec<(&'static Rule, Found)>,
    /// All but the findings.
    out: Findings,
}

impl Evaluated {
    /// Applies all rules to calls, requests and the pids of traced processes.
    fn of(groups: Groups, (others, pids): (&Others, &RoaringBitmap), trace: &Trace<'_>, config: &Config) -> Self {
        let Split { mut groups, run, .. } = Split::of(groups, (others, pids), trace);
        let mut out = Findings::default();
        let mut found: Vec<(&'static Rule, Found)> = Vec::new();
        let (of_layer, limits) = (calls_by_layer(&groups), groups.limits().and(others.limits()));
        let folded = groups.is_folded(run.lane.processes.keys().copied());
        for rule in RULES {
            if folded {
                out.not_evaluated.push(NotEvaluated { rule: rule.id, why: FOLDED.to_owned() });
                continue;
            }
            match applies(rule, trace, &|layer| of_layer[layer as usize]) {
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
            if let Some(why) = limits.against(rule.id) {
                out.not_evaluated.push(NotEvaluated { rule: rule.id, why: why.to_owned() });
                continue;
            }
            out.looked_at += 1;
            let thresholds = |name: &str| config.threshold(rule, name);
            let mut case = Case::new(&mut groups, &run, &thresholds);
            found.extend((rule.find)(&mut case).into_iter().map(|found| (rule, found)));
            let unseen = case.unseen.map(|why| NotEvaluated { rule: rule.id, why: why.to_owned() });
            out.not_evaluated.extend(unseen);
        }
        // The sum of nothing is -0.
        out.calls_s = groups.all.iter().map(|g| lanes::seconds(&run.lane, g, g.total())).sum::<f64>() + 0.0;
        out.unexplained_s = groups.all.iter().map(|g| lanes::seconds(&run.lane, g, g.left(&IN_CALLS))).sum();
        out.trusted = trace.tracing.is_none_or(|share| share <= TRUSTED_SHARE);
        Self { groups, run, found, out }
    }

    /// The findings, those with most seconds first.
    fn named(self, names: &Names) -> Findings {
        let mut out = self.out;
        out.findings = self.found.iter().map(|(rule, f)| finding(rule, f, &self.groups, &self.run, names)).collect();
        out.sort();
        if !out.trusted {
            out.findings = out.findings.into_iter().map(Finding::without_seconds).collect();
        }
        out
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
    /// How many nodes it is of.
    pub nodes: usize,
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

/// Can a rule be applied?
enum Applies {
    Yes,
    /// There is nothing that it could be about.
    Void,
    /// Why it cannot be decided.
    No(String),
}

fn applies(rule: &Rule, trace: &Trace<'_>, calls: &dyn Fn(Layer) -> i64) -> Applies {
    if rule.one_node && trace.nodes > 1 {
        let nodes = trace.nodes;
        return Applies::No(format!("is about one node, and the trace is of {nodes}: report each by itself"));
    }
    if trace.aggregate && !rule.sums {
        return Applies::No("needs single calls, and the trace has sums (--aggregate)".to_owned());
    }
    for need in rule.needs {
        let Some(why) = unseen(*need, trace, calls(*need)) else { continue };
        // No program of the run has the library.
        let absent = |layer: &LayerCoverage| layer.refused.keys().all(|why| why.starts_with("absent"));
        let void = *need < Layer::Syscall && uncovered(*need, trace).is_some_and(absent);
        return if void { Applies::Void } else { Applies::No(why) };
    }
    Applies::Yes
}

fn uncovered<'a>(layer: Layer, trace: &Trace<'a>) -> Option<&'a LayerCoverage> {
    trace.coverage.iter().find(|known| known.layer == layer.name() && known.attached == 0)
}

/// Why a layer, with so many recorded calls, cannot be judged: nothing of it was recorded, or too much was lost.
pub fn unseen(layer: Layer, trace: &Trace<'_>, calls: i64) -> Option<String> {
    if let Some(uncovered) = uncovered(layer, trace) {
        let why = uncovered.not_covered.clone().unwrap_or_default();
        return Some(format!("layer {} is not covered: {why}", layer.name()));
    }
    let known = trace.coverage.iter().any(|known| known.layer == layer.name());
    let lost = trace.losses.share(layer, calls);
    (known && lost > LOST_SHARE).then(|| format!("{} of the events of layer {} were lost", percent(lost), layer.name()))
}

/// Paths of files, and of what calls named, by their ids.
#[derive(Debug, Clone, Default)]
struct Names {
    files: HashMap<i32, String>,
    paths: HashMap<i32, String>,
    /// The function of the program by stack.
    stacks: HashMap<i32, String>,
}

impl Names {
    /// Of what findings are about.
    fn read(source: &mut dyn Source, evaluated: &Evaluated) -> Result<Self> {
        let of_found = || evaluated.found.iter().flat_map(|(_, f)| &f.groups).map(|at| &evaluated.groups.all[*at]);
        let wanted_paths: RoaringBitmap = of_found().filter_map(|g| Some(g.rare().path.value? as u32)).collect();
        let files = described(source, of_found().filter_map(|group| group.file.value))?;
        let files = files.into_iter().filter_map(|(id, file)| Some((id, file.path?))).collect();
        let mut names = Self { files, ..Self::default() };
        let wanted_stacks: RoaringBitmap =
            of_found().flat_map(|g| &g.slowest).filter_map(|slow| Some(slow.stack? as u32)).collect();
        source.paths(&mut |path| {
            if wanted_paths.contains(path.path_id as u32) {
                names.paths.insert(path.path_id, path.path.clone());
            }
            Ok(())
        })?;
        if !wanted_stacks.is_empty() {
            source.stacks(&mut |stack| {
                let function = functions::of_program(&stack.frames);
                if let Some(function) = function.filter(|_| wanted_stacks.contains(stack.stack_id as u32)) {
                    names.stacks.insert(stack.stack_id, function.to_owned());
                }
                Ok(())
            })?;
        }
        Ok(names)
    }

    fn of(&self, group: &Group) -> Option<String> {
        let file = group.file.value.and_then(|id| self.files.get(&id));
        file.or_else(|| group.rare().path.value.and_then(|id| self.paths.get(&id))).cloned()
    }
}

/// Files that are named as evidence.
const FILES: usize = 5;

fn finding(rule: &Rule, found: &Found, groups: &Groups, run: &Run, names: &Names) -> Finding {
    let mut alike: Vec<&Group> = found.groups.iter().map(|at| &groups.all[*at]).collect();
    alike.sort_by_key(|group| std::cmp::Reverse(group.total()));
    let mut evidence = Evidence::default();
    let mut calls: Vec<Slow> = alike.iter().flat_map(|group| group.slowest.iter().copied()).collect();
    calls.sort_by_key(|slow| std::cmp::Reverse(slow.ns));
    evidence.functions = functions::of_calls(&calls, &groups.phases, &names.stacks);
    evidence.spans = calls.into_iter().take(EVIDENCE).map(|slow| slow.span).collect();
    let add_once = |list: &mut Vec<String>, name: String| {
        if list.len() < FILES && !list.contains(&name) {
            list.push(name);
        }
    };
    evidence.process_ix = alike.iter().map(|group| group.key.process).collect();
    evidence.process_ix.sort_unstable();
    evidence.process_ix.dedup();
    for group in &alike {
        names.of(group).into_iter().for_each(|name| add_once(&mut evidence.files, name));
        if let Some(busy) = groups.processes.get(&group.key.process) {
            if !evidence.processes.contains(&busy.pid) && evidence.processes.len() < FILES {
                evidence.processes.push(busy.pid);
            }
            evidence.ranks.extend(busy.rank.filter(|rank| !evidence.ranks.contains(rank)));
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
    let known = |value: f64| (!error).then_some(value);
    Finding {
        rule: rule.id,
        severity: found.severity.unwrap_or_else(|| severity(known(share))),
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

/// How much a share of the run matters; what has no time is an error.
fn severity(share: Option<f64>) -> Severity {
    match share {
        None => Severity::Critical,
        Some(share) if share >= CRITICAL => Severity::Critical,
        Some(share) if share >= WARN => Severity::Warn,
        Some(_) => Severity::Info,
    }
}

impl Finding {
    /// Only the order remains: the tracer took too much of the run.
    fn without_seconds(self) -> Self {
        Self { seconds: None, share: None, gain_low_s: None, gain_high_s: None, ..self }
    }
}

impl Findings {
    /// Errors first, then what took most; in the end what may be wrong and takes no time.
    fn sort(&mut self) {
        let order = |f: &Finding| (f.seconds.is_none() && f.severity == Severity::Critical, f.seconds.unwrap_or(0.0));
        self.findings.sort_by(|a, b| order(b).partial_cmp(&order(a)).unwrap_or(std::cmp::Ordering::Equal));
    }
}
