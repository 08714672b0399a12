//! The summary of a trace: one [`Report`], made in one pass over the spans, shown as text or JSON.
//!
//! Definitions. Inclusive time sums the durations of the outermost calls of a layer (`layer_top`); exclusive time sums
//! what calls spend outside the traced calls they make. Bytes of a layer sum over its outermost reads and writes.
//! A figure that loss could have changed is marked: `complete: false` in JSON, `~` in text.

mod find;
mod header;
mod print;
mod related;
mod render;
mod renumber;
mod source;
mod tracing;
mod union;

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

pub use crate::analysis::calls::Bytes;
pub use crate::analysis::devices::DeviceRow;
pub use crate::analysis::durations::slow_stacks::StackRow;
pub use crate::analysis::durations::slowest::{BlockNode, CallTree, Node};
pub use crate::analysis::durations::time::TimePart;
pub use crate::analysis::durations::waiting::WaitRow;
pub use crate::analysis::errors::ErrorRow;
pub use crate::analysis::files::{FileLayer, FileRow, HandleNode, LibraryFiles};
pub use crate::analysis::findings::{Config, Evidence, Finding, Findings, NotEvaluated, Severity};
pub use crate::analysis::layers::{LayerRow, OpRow};
pub use crate::analysis::lookups::{FailedLookup, FailedLookups};
pub use crate::analysis::only::{Condition, Only};
pub use crate::analysis::parallel::collectives::{CollectiveRow, Member};
pub use crate::analysis::parallel::phases::{PhaseLayer, PhaseRow};
pub use crate::analysis::parallel::ranks::{Imbalance, RankRow, Ranks};
pub use crate::analysis::speed::{SPEEDS, SpeedClass, SpeedRow};
pub use crate::analysis::trace::clocks::{Clock, NodeRow};
pub use crate::analysis::trace::coverage::{LayerCoverage, OpaqueProgram};
pub use crate::analysis::trace::losses::LossRow;
pub use crate::analysis::trace::source::{Each, IdKind, Origin, Source};
pub use crate::analysis::transfers::amplification::{Amplification, Called, Chain, ClassBytes, Step};
pub use crate::analysis::transfers::bandwidth::{BandwidthRow, Bandwidths, Spread};
pub use crate::analysis::transfers::composition::Composed;
pub use crate::analysis::transfers::sizes::SizeRow;
pub use crate::analysis::utilisation::Utilisation;
pub use find::datasets;
pub use header::Header;
pub use print::{Ask, Format, Wish, run, run_with, single};
pub use render::{Look, SECTIONS, Section, WIDTH, section};
pub use renumber::{Ids, Renumber};
pub use tracing::Tracing;
pub use union::Union;

use crate::HashMap;
use crate::analysis::{
    devices,
    durations::{slow_stacks, slowest, time, waiting},
    errors, files, findings, layers, lookups, nesting,
    parallel::{collectives, phases, ranks},
    speed,
    trace::{clocks, coverage, losses},
    transfers::{amplification, bandwidth, composition, sizes},
};
use crate::base::text;
use crate::rows::{Block, FileRollup, Span};
use crate::vocabulary::flag;

/// Everything in `iotrace-bpf report`; `--json` is exactly this.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub header: Header,
    /// The condition on calls that figures are restricted to. Coverage, losses, devices and the tracer's share are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// What is wrong, and the seconds that it costs.
    #[serde(flatten)]
    pub findings: Findings,
    /// The tracer's own share of the run; `None` where it was not recorded.
    pub tracing: Option<Tracing>,
    /// How busy the node was: CPU, memory, the busiest device and interface.
    pub utilisation: Vec<Utilisation>,
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
    /// The time of all calls, in parts that add up.
    pub time: Vec<TimePart>,
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
    /// Functions against earlier runs, with `--baseline`.
    pub speed: Vec<SpeedRow>,
    pub ranks: Ranks,
    pub collectives: Vec<CollectiveRow>,
    pub sizes: Vec<SizeRow>,
    /// System calls that moved bytes, by process, file and direction.
    pub bandwidth: Bandwidths,
    pub errors: Vec<ErrorRow>,
    pub devices: Vec<DeviceRow>,
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
    speeds: speed::Speeds,
    composition: composition::Composition,
    nesting: nesting::Nesting,
    meetings: clocks::Meetings,
    collectives: collectives::Collectives,
    sizes: sizes::Sizes,
    bandwidth: bandwidth::Bandwidth,
    errors: errors::Errors,
    devices: devices::Devices,
    findings: findings::Collect,
    /// Nothing else is wanted.
    only_findings: bool,
    /// The end of the last row, in ns.
    last: i64,
}

impl Collected {
    fn new(source: &mut dyn Source, only_findings: bool) -> Result<Self> {
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
            speeds: speed::Speeds::default(),
            composition: composition::Composition::default(),
            nesting: nesting::Nesting::default(),
            meetings: clocks::Meetings::default(),
            collectives: collectives::Collectives::default(),
            sizes: sizes::Sizes::default(),
            bandwidth: bandwidth::Bandwidth::default(),
            errors: errors::Errors::default(),
            devices: devices::Devices::new(source),
            findings: findings::Collect::new(source)?,
            only_findings,
            last: 0,
        })
    }

    /// Each call, so that it is known what is inside what; figures are of those that count.
    fn span(&mut self, span: &Span, counts: bool) {
        let around = self.nesting.of(span);
        self.last = self.last.max(span.end_ns());
        // What summed up calls come to is in the sums.
        if counts && span.flags & flag::SUMMED == 0 {
            self.findings.span(span, &around);
        }
        if !self.only_findings {
            self.span_of_sections(span, &around, counts);
        }
    }

    fn span_of_sections(&mut self, span: &Span, around: &nesting::Enclosing, counts: bool) {
        self.meetings.span(span);
        self.collectives.span(span, counts);
        if !counts {
            return;
        }
        // No sums are by path, or by stack.
        self.lookups.span(span);
        self.stacks.span(span);
        self.slowest.span(span, around);
        if span.flags & flag::SUMMED != 0 {
            return;
        }
        self.layers.span(span);
        self.waits.span(span);
        self.speeds.span(span);
        self.chains.span(span, around);
        self.files.span(span);
        self.processes.span(span, around);
        self.phases.span(span, around);
        self.composition.span(span, around);
        self.sizes.span(span);
        self.bandwidth.span(span);
        self.errors.span(span);
    }

    fn sums(&mut self, row: &FileRollup) {
        self.findings.sums(row);
        if self.only_findings {
            return;
        }
        self.sizes.sums(row);
        self.errors.sums(row);
        self.layers.sums(row);
        self.waits.sums(row);
        self.chains.sums(row);
        self.files.sums(row);
        self.processes.sums(row);
    }

    /// Requests are of no layer, function or file: with a filter they count for devices only.
    fn block(&mut self, block: &Block, counts: bool) {
        if counts {
            self.findings.block(block);
            if !self.only_findings {
                self.layers.block(block);
                self.chains.block(block);
            }
        }
        self.last = self.last.max(block.issue_ns.saturating_add(block.dur_ns.unwrap_or(0)));
    }
}

/// Reads a source once, the spans of the slowest calls again, and all of it where there is too much for one time: files,
/// or calls that device requests belong to. Memory grows with the number of functions, processes and calls of phases,
/// not with the number of files; with that of outermost calls up to 2 Mi of them, 32 MiB.
pub fn build(source: &mut dyn Source) -> Result<Report> {
    build_with(source, &Config::default())
}

/// The same with thresholds of rules that a user changed.
pub fn build_with(source: &mut dyn Source, config: &Config) -> Result<Report> {
    build_of(source, config, &Scope::default())
}

/// What of a run is reported.
#[derive(Default, Clone, Copy)]
pub struct Scope<'a> {
    /// Only calls for which this holds.
    pub only: Option<&'a dyn Condition>,
    /// So many files at most; of few, as the figure has it, without.
    pub files: Option<usize>,
    /// Findings alone: what other sections are made of is not collected, and they are empty.
    pub only_findings: bool,
}

/// Reads what happened: all calls, the sums, the requests, and the slowest calls once more.
fn collect(
    source: &mut dyn Source,
    (only, only_findings): (&Only, bool),
    (config, aggregate): (&Config, bool),
) -> Result<(Collected, slowest::Trees)> {
    let mut all = Collected::new(source, only_findings)?;
    source.spans(&mut |span| {
        all.span(span, only.span(span));
        Ok(())
    })?;
    source.sums(&mut |row| {
        all.last = all.last.max(row.last_ns.unwrap_or(0));
        all.devices.sums(row);
        if only.sums(row) {
            all.sums(row);
        }
        Ok(())
    })?;
    if aggregate && !only_findings && !only.is_restricted() {
        source.hists(&mut |row| {
            all.layers.hist(row);
            Ok(())
        })?;
    }
    let mut trees = slowest::Trees::read(source, &std::mem::take(&mut all.slowest).calls())?;
    source.blocks(&mut |block| {
        let counts = !aggregate && !only.is_restricted();
        all.block(block, counts);
        if !aggregate {
            all.devices.block(block);
        }
        trees.block(block);
        Ok(())
    })?;
    if !aggregate && !only.is_restricted() && all.findings.wants_bytes(config) {
        source.block_bytes(&mut |part| {
            all.findings.bytes(part);
            Ok(())
        })?;
    }
    let nesting = std::mem::take(&mut all.nesting);
    if only_findings {
        return Ok((all, trees));
    }
    all.chains.resolve(source, nesting, &|span| only.span(span), &mut |span| all.processes.ask(span))?;
    Ok((all, trees))
}

/// The same of a part.
pub fn build_of(source: &mut dyn Source, config: &Config, scope: &Scope) -> Result<Report> {
    let mut header = header::header(source)?;
    let losses = losses::losses(source)?;
    let (coverage, opaque) = coverage::coverage(source)?;
    let quality = losses.quality();
    let only = Only::read(source, scope.only, header.aggregate)?;
    let (all, trees) = collect(source, (&only, scope.only_findings), (config, header.aggregate))?;
    if !header.end_recorded {
        header.duration_ns = all.last;
    }
    let nodes = nodes(source, all.meetings);
    let layers = all.layers.rows(&quality);
    let (tracing, utilisation) = tracing::read(source, &layers)?;
    let trace = findings::Trace {
        duration_ns: tracing.as_ref().map_or(header.duration_ns, |tracing| tracing.run_ns),
        tracing: tracing.as_ref().map(|tracing| tracing.share),
        coverage: &coverage,
        losses: &losses,
        aggregate: header.aggregate,
        nodes: nodes.len(),
    };
    // First: there may be half a million groups of calls, which need not be there beside what comes next.
    let findings = all.findings.finish(source, &trace, config)?;
    let files::Finished { rows: mut files, libraries: library_files, files: number, unseen_file_ns, mpiio } =
        all.files.finish(source, &quality, &only, scope.files)?;
    (header.files, header.unseen_file_ns, header.mpiio) = (number, unseen_file_ns, mpiio);
    let mut slowest = trees.finish(quality.all());
    name(source, &mut files, &mut slowest)?;
    let failed_lookups = all.lookups.finish(source, &quality)?;
    let slow_stacks = all.stacks.finish(source, &quality)?;
    let speed = all.speeds.finish(source, &quality, !only.is_restricted())?;
    let (ranks, processes) = all.processes.finish(source, &quality, all.last)?;
    (header.processes, header.ranks) = (processes, ranks.rows.iter().filter(|row| row.rank.is_some()).count());
    trace_back(source, &nodes, &mut files, &mut slowest);
    let waiting = all.waits.rows(&quality);
    Ok(Report {
        complete: quality.all(),
        filter: scope.only.map(|condition| condition.text().to_owned()),
        tracing,
        utilisation,
        findings,
        time: time::parts(&layers, &waiting),
        layers,
        waiting,
        collectives: all.collectives.finish(source, &quality)?,
        sizes: all.sizes.rows(&quality),
        bandwidth: all.bandwidth.finish(source, &quality)?,
        errors: all.errors.finish(source, &quality)?,
        devices: all.devices.rows(&quality),
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
        speed,
        ranks,
    })
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
