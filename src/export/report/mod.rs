//! The summary of a trace: one [`Report`], made in one pass over the spans, shown as text or JSON.
//!
//! Definitions. Inclusive time sums the durations of the outermost calls of a layer (`layer_top`); exclusive time sums
//! what calls spend outside the traced calls they make. Bytes of a layer sum over its outermost reads and writes.
//! A figure that loss could have changed is marked: `complete: false` in JSON, `~` in text.

mod header;
mod related;
mod render;
mod renumber;
mod source;
mod tracing;
mod union;

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;

pub use crate::analysis::amplification::{Amplification, Called, Chain, ClassBytes, Step};
pub use crate::analysis::calls::Bytes;
pub use crate::analysis::clocks::{Clock, NodeRow};
pub use crate::analysis::composition::Composed;
pub use crate::analysis::coverage::{LayerCoverage, OpaqueProgram};
pub use crate::analysis::files::{FileLayer, FileRow, HandleNode, LibraryFiles};
pub use crate::analysis::findings::{Config, Evidence, Finding, Findings, NotEvaluated, Severity};
pub use crate::analysis::layers::{LayerRow, OpRow};
pub use crate::analysis::lookups::{FailedLookup, FailedLookups};
pub use crate::analysis::losses::LossRow;
pub use crate::analysis::phases::{PhaseLayer, PhaseRow};
pub use crate::analysis::ranks::{Imbalance, RankRow, Ranks};
pub use crate::analysis::slow_stacks::StackRow;
pub use crate::analysis::slowest::{BlockNode, CallTree, Node};
pub use crate::analysis::source::{Each, IdKind, Origin, Source};
pub use crate::analysis::waiting::WaitRow;
pub use header::Header;
pub use render::WIDTH;
pub use renumber::Renumber;
pub use tracing::Tracing;
pub use union::{Union, datasets};

use crate::analysis::{
    amplification, clocks, composition, coverage, files, findings, layers, lookups, losses, nesting, phases, ranks,
    slow_stacks, slowest, waiting,
};
use crate::rows::{Block, FileRollup, Span};
use crate::vocabulary::flag;
use crate::{HashMap, text};

/// Everything in `iotrace-bpf report`; `--json` is exactly this.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub header: Header,
    /// What is wrong, and the seconds that it costs.
    #[serde(flatten)]
    pub findings: Findings,
    /// The tracer's own share of the run; `None` where it was not recorded.
    pub tracing: Option<Tracing>,
    /// The nodes that datasets were recorded on, in order of name.
    pub nodes: Vec<NodeRow>,
    /// False when anything was lost.
    pub complete: bool,
    pub losses: Vec<LossRow>,
    /// Parts of the dataset that could not be read.
    pub warnings: Vec<String>,
    pub coverage: Vec<LayerCoverage>,
    pub opaque: Vec<OpaqueProgram>,
    pub layers: Vec<LayerRow>,
    /// What outermost system calls spent their time on.
    pub waiting: Vec<WaitRow>,
    /// Functions of layer `app` of kind `other`, and what happened inside them.
    pub phases: Vec<PhaseRow>,
    pub amplification: Amplification,
    /// What each layer takes below each function that the program called.
    pub composition: Vec<Composed>,
    pub files: Vec<FileRow>,
    /// Programs, libraries, `/proc` and `/sys`: after all others in `files`.
    pub library_files: LibraryFiles,
    /// System calls that named a path and failed.
    pub failed_lookups: FailedLookups,
    pub slowest: Vec<CallTree>,
    /// Where slow calls were made, with `--stacks`.
    pub slow_stacks: Vec<StackRow>,
    pub ranks: Ranks,
}

/// What rows come to, section by section.
struct Collected {
    layers: layers::Layers,
    waits: waiting::Waits,
    chains: amplification::Chains,
    files: files::Files,
    slowest: slowest::Slowest,
    processes: ranks::ByProcess,
    phases: phases::Phases,
    lookups: lookups::Lookups,
    stacks: slow_stacks::Stacks,
    composition: composition::Composition,
    nesting: nesting::Nesting,
    meetings: clocks::Meetings,
    findings: findings::Collect,
    /// The end of the last row, in ns.
    last: i64,
}

impl Collected {
    fn new(source: &mut dyn Source) -> Result<Self> {
        Ok(Self {
            layers: layers::Layers::default(),
            waits: waiting::Waits::default(),
            chains: amplification::Chains::default(),
            files: files::Files::new(source)?,
            slowest: slowest::Slowest::default(),
            processes: ranks::ByProcess::default(),
            phases: phases::Phases::default(),
            lookups: lookups::Lookups::default(),
            stacks: slow_stacks::Stacks::default(),
            composition: composition::Composition::default(),
            nesting: nesting::Nesting::default(),
            meetings: clocks::Meetings::default(),
            findings: findings::Collect::new(source)?,
            last: 0,
        })
    }

    fn span(&mut self, span: &Span) {
        let around = self.nesting.of(span);
        // No sums are by path, or by stack.
        self.lookups.span(span);
        self.stacks.span(span);
        self.slowest.span(span, &around);
        if span.flags & flag::SUMMED != 0 {
            // What it comes to is in the sums.
            return;
        }
        self.findings.span(span, &around);
        self.layers.span(span);
        self.waits.span(span);
        self.chains.span(span, &around);
        self.files.span(span);
        self.processes.span(span, &around);
        self.phases.span(span, &around);
        self.composition.span(span, &around);
        self.meetings.span(span);
        self.last = self.last.max(span.end_ns());
    }

    fn sums(&mut self, row: &FileRollup) {
        self.findings.sums(row);
        self.layers.sums(row);
        self.waits.sums(row);
        self.chains.sums(row);
        self.files.sums(row);
        self.processes.sums(row);
        self.last = self.last.max(row.last_ns.unwrap_or(0));
    }

    fn block(&mut self, block: &Block, aggregate: bool) {
        if !aggregate {
            self.findings.block(block);
            self.layers.block(block);
            self.chains.block(block);
        }
        self.last = self.last.max(block.issue_ns.saturating_add(block.dur_ns.unwrap_or(0)));
    }
}

/// Reads a source once, the spans of the slowest calls again, and all of it when there are too many files for one time. Memory
/// grows with the number of functions, processes and calls of phases, not with the number of other calls, nor of files.
pub fn build(source: &mut dyn Source) -> Result<Report> {
    build_with(source, &Config::default())
}

/// The same with thresholds of rules that a user changed.
pub fn build_with(source: &mut dyn Source, config: &Config) -> Result<Report> {
    let mut header = header::header(source)?;
    let losses = losses::losses(source)?;
    let (coverage, opaque) = coverage::coverage(source)?;
    let quality = losses.quality();
    let mut all = Collected::new(source)?;
    source.spans(&mut |span| {
        all.span(span);
        Ok(())
    })?;
    source.sums(&mut |row| {
        all.sums(row);
        Ok(())
    })?;
    if header.aggregate {
        source.hists(&mut |row| {
            all.layers.hist(row);
            Ok(())
        })?;
    }
    let mut trees = slowest::Trees::read(source, &std::mem::take(&mut all.slowest).calls())?;
    source.blocks(&mut |block| {
        all.block(block, header.aggregate);
        trees.block(block);
        Ok(())
    })?;
    all.chains.resolve(source, all.nesting, &mut |span| all.processes.ask(span))?;
    if !header.end_recorded {
        header.duration_ns = all.last;
    }
    let files::Finished { rows: mut files, libraries: library_files, files: number, unseen_file_ns, mpiio } =
        all.files.finish(source, &quality)?;
    (header.files, header.unseen_file_ns, header.mpiio) = (number, unseen_file_ns, mpiio);
    let mut slowest = trees.finish(quality.all());
    name(source, &mut files, &mut slowest)?;
    let failed_lookups = all.lookups.finish(source, &quality)?;
    let slow_stacks = all.stacks.finish(source, &quality)?;
    let (ranks, processes) = all.processes.finish(source, &quality)?;
    (header.processes, header.ranks) = (processes, ranks.rows.iter().filter(|row| row.rank.is_some()).count());
    let nodes = nodes(source, all.meetings);
    trace_back(source, &nodes, &mut files, &mut slowest);
    let layers = all.layers.rows(&quality);
    let tracing = tracing::read(source, &layers)?;
    let trace = findings::Trace {
        duration_ns: tracing.as_ref().map_or(header.duration_ns, |tracing| tracing.run_ns),
        tracing: tracing.as_ref().map(|tracing| tracing.share),
        coverage: &coverage,
        losses: &losses,
        aggregate: header.aggregate,
        nodes: nodes.len(),
    };
    let findings = all.findings.finish(source, &trace, config)?;
    Ok(Report {
        complete: quality.all(),
        tracing,
        findings,
        layers,
        waiting: all.waits.rows(&quality),
        phases: all.phases.rows(&quality),
        amplification: all.chains.finish(&coverage, &quality),
        composition: all.composition.rows(&quality),
        warnings: source.warnings(),
        header,
        nodes,
        losses: losses.rows(),
        coverage,
        opaque,
        files,
        library_files,
        failed_lookups,
        slowest,
        slow_stacks,
        ranks,
    })
}

/// Reports on the dataset in `dir`, or on all those in the directories in it, as JSON or as text for 120 columns. Runs
/// that have nothing to do with each other have a report each.
///
/// # Errors
/// When there is no readable dataset, or `out` cannot be written to.
pub fn run(dir: &Path, json: bool, out: &mut dyn Write) -> Result<()> {
    run_with(dir, json, (&Config::default(), &|_, _| Ok(Vec::new())), out).map(drop)
}

/// Answers a query about the datasets in a directory with rows as objects.
pub type Ask<'a> = &'a dyn Fn(&Path, &str) -> Result<Vec<Value>>;

/// The same with what a user set for rules, and what answers the queries of the user's own rules. Returns what was found.
///
/// # Errors
/// As of [`run`].
pub fn run_with(
    dir: &Path,
    json: bool,
    (config, ask): (&Config, Ask<'_>),
    out: &mut dyn Write,
) -> Result<Vec<Finding>> {
    let mut runs = Union::open_related(dir)?;
    let many = runs.len() > 1;
    let build = |run: &mut Union| {
        let mut report = build_with(run, config)?;
        let at = if many { run.directories().first().map(|at| at.to_path_buf()) } else { Some(dir.to_path_buf()) };
        report.add_own(config, at.as_deref(), ask);
        Ok((directories(run), report))
    };
    let mut each = runs.iter_mut().map(build).collect::<Result<Vec<_>>>()?;
    let body = match each.as_slice() {
        [(_, only)] if json => only.json()?,
        [(_, only)] => only.text(WIDTH),
        each if json => unrelated_json(each)?,
        each => unrelated_text(dir, each),
    };
    out.write_all(body.as_bytes()).context("cannot write the report")?;
    Ok(each.iter_mut().flat_map(|(_, report)| std::mem::take(&mut report.findings.findings)).collect())
}

/// The datasets in a directory as one run, and its report.
///
/// # Errors
/// When there is no readable dataset, or there are runs that have nothing to do with each other.
pub fn single(dir: &Path, (config, ask): (&Config, Ask<'_>)) -> Result<(Union, Report)> {
    let mut runs = Union::open_related(dir)?;
    let firsts: Vec<String> = runs.iter().filter_map(|run| directories(run).into_iter().next()).collect();
    let (Some(mut run), true) = (runs.pop(), runs.is_empty()) else {
        let number = firsts.len();
        bail!("there are {number} runs that have nothing to do with each other; give one: {}", firsts.join(", "));
    };
    let mut report = build_with(&mut run, config)?;
    report.add_own(config, Some(dir), ask);
    Ok((run, report))
}

fn directories(run: &Union) -> Vec<String> {
    run.directories().iter().map(|path| path.display().to_string()).collect()
}

/// Several reports: `{"runs": [{"datasets": [...], "report": {...}}, ...]}`.
fn unrelated_json(runs: &[(Vec<String>, Report)]) -> Result<String> {
    let runs: Vec<_> =
        runs.iter().map(|(datasets, report)| serde_json::json!({"datasets": datasets, "report": report})).collect();
    Ok(text::json(&serde_json::to_string_pretty(&serde_json::json!({ "runs": runs }))?) + "\n")
}

fn unrelated_text(dir: &Path, runs: &[(Vec<String>, Report)]) -> String {
    let shown = text::escape(dir.display().to_string());
    let mut out = format!(
        "{shown} holds {} runs that have nothing to do with each other; each is reported by itself\n",
        runs.len()
    );
    for (n, (datasets, report)) in runs.iter().enumerate() {
        let datasets: Vec<String> = datasets.iter().map(text::escape).collect();
        out += &format!("\n=== run {} of {}: {}\n\n{}", n + 1, runs.len(), datasets.join(", "), report.text(WIDTH));
    }
    out
}

/// Fills in the names of the files and objects that the report shows.
fn name(source: &mut dyn Source, files: &mut [FileRow], slowest: &mut [CallTree]) -> Result<()> {
    let mut wanted: HashSet<i32> = files.iter().map(|file| file.file_id).collect();
    let mut objects = HashMap::<i32, Option<String>>::default();
    for call in slowest.iter_mut() {
        call.tree.each(&mut |node| {
            wanted.extend(node.file_id);
            objects.extend(node.object_id.map(|id| (id, None)));
        });
    }
    let known = files::described(source, wanted)?;
    source.objects(&mut |object| {
        if let Some(name) = objects.get_mut(&object.object_id) {
            *name = Some(object.name.clone());
        }
        Ok(())
    })?;
    for file in files {
        if let Some(known) = known.get(&file.file_id).cloned() {
            (file.path, file.role) = (known.path, known.role);
        }
    }
    for call in slowest {
        call.tree.each(&mut |node| {
            node.path = node.file_id.and_then(|id| known.get(&id)?.path.clone());
            node.object = node.object_id.and_then(|id| objects.get(&id).cloned().flatten());
        });
    }
    Ok(())
}

/// The nodes, and how their clocks relate.
fn nodes(source: &dyn Source, meetings: clocks::Meetings) -> Vec<NodeRow> {
    let mut nodes = source.nodes();
    let host_of = |id| {
        let origin = source.origin(IdKind::Span, id)?;
        nodes.iter().position(|node| node.host == origin.host)
    };
    let clocks = clocks::align(nodes.len(), &meetings.attendances(host_of));
    for (node, clock) in nodes.iter_mut().zip(clocks) {
        node.clock = clock;
    }
    nodes
}

/// Fills in the node of files and calls, their ids there, and their times on the common clock.
fn trace_back(source: &dyn Source, nodes: &[NodeRow], files: &mut [FileRow], slowest: &mut [CallTree]) {
    for file in files {
        if let Some(origin) = source.origin(IdKind::File, i64::from(file.file_id)) {
            file.host = Some(origin.host.to_owned());
            file.file_id = origin.id as i32;
        }
    }
    for call in slowest {
        let Some(origin) = source.origin(IdKind::Span, call.root_id) else { continue };
        call.root_id = origin.id;
        call.host = Some(origin.host.to_owned());
        let clock = nodes.iter().find(|node| node.host == origin.host).map(|node| node.clock);
        call.start_ns = call.start_ns.saturating_add(clock.map_or(0, |clock| clock.offset_ns));
        let own = |kind, id: &mut Option<i32>| {
            *id = id.map(|id| source.origin(kind, i64::from(id)).map_or(id, |origin| origin.id as i32));
        };
        call.tree.each(&mut |node| {
            own(IdKind::File, &mut node.file_id);
            own(IdKind::Object, &mut node.object_id);
        });
    }
}

impl Node {
    /// Calls `f` for this node and all below it.
    fn each(&mut self, f: &mut dyn FnMut(&mut Self)) {
        f(self);
        self.children.iter_mut().for_each(|child| child.each(f));
    }
}

impl Report {
    /// Adds what the user's own rules find in the datasets in a directory.
    fn add_own(&mut self, config: &Config, dir: Option<&Path>, ask: Ask<'_>) {
        let run_ns = self.tracing.as_ref().map_or(self.header.duration_ns, |tracing| tracing.run_ns);
        for rule in &config.own {
            let answer = dir.map_or_else(|| Ok(Vec::new()), |dir| ask(dir, &rule.sql)).map_err(|e| format!("{e:#}"));
            findings::own::add(rule, answer, run_ns as f64 / 1e9, &mut self.findings);
        }
    }

    /// The report as JSON. Characters that act on a terminal unseen are written as escapes, which reads back equal.
    pub fn json(&self) -> Result<String> {
        Ok(text::json(&serde_json::to_string_pretty(self)?) + "\n")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::export::dataset::tests::span;
    use crate::rows::Row;

    #[test]
    fn a_file_that_may_be_missing_is_named() {
        let mut rows = vec![Row::Span(Box::new(Span { file_id: Some(1), ..span(1, 1, 1) }))];
        let mut report = build(&mut rows).unwrap();
        let note = "one with up to 1.20 ms may be missing";
        assert!(!report.text(120).contains("may be missing"));
        report.header.unseen_file_ns = Some(1_200_000);
        assert!(report.text(120).contains(note) && report.json().unwrap().contains("1200000"), "{}", report.text(120));
    }
}
