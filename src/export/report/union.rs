//! Several datasets as one source: ids are made distinct and times comparable, and both are translated back at the end.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::HashMap;
use crate::analysis::trace::share::{HELD_NS, TRACING_NS};
use crate::analysis::trace::source::{Each, Hosts, IdKind, Origin, Source};
use crate::export::reading::shift::Times;
use crate::export::report::find::{IDS, ReadableDataset, find};
use crate::export::report::related::{About, DatasetMeta, related};
use crate::export::report::renumber::{Ids, Renumber};
use crate::export::report::{Clock, NodeRow};
use crate::export::{Dataset, Table};
use crate::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FileRollup, Handle, Hist, Loss, Meta, Metric, Mount,
    Object, Process, SEQ_BITS, Span, Stack,
};

struct Part {
    dataset: Dataset,
    meta: DatasetMeta,
    /// The greatest id of each kind. Spans: of a thread.
    greatest: [i64; IDS.len()],
    /// The run that it is of.
    run: usize,
    /// What its times count from, since the start of the union.
    begins_ns: i64,
}

/// The datasets of one trace on one node: an id means the same in all of them.
struct Run {
    host: String,
    /// What is added to ids.
    bases: [i64; IDS.len()],
}

impl Run {
    /// The first of its ids.
    fn base(&self, kind: IdKind) -> i64 {
        self.bases[kind as usize] << if kind == IdKind::Span { SEQ_BITS } else { 0 }
    }
}

/// Datasets side by side, or one.
pub struct Union {
    parts: Vec<Part>,
    runs: Vec<Run>,
    wall_ns: Option<i64>,
    /// Datasets that could not be read.
    unreadable: Vec<String>,
}

impl Union {
    /// The dataset in `path`, or those in the directories below it.
    ///
    /// # Errors
    /// When there is none, or none can be read.
    pub fn open(path: &Path) -> Result<Self> {
        let (known, unreadable) = find(path)?;
        Self::of(known, unreadable)
    }

    /// The same, those that have nothing to do with each other apart.
    ///
    /// # Errors
    /// As above.
    pub fn open_related(path: &Path) -> Result<Vec<Self>> {
        Self::open_apart(path, About::has_to_do_with)
    }

    /// The same, each run apart, also of one command.
    ///
    /// # Errors
    /// As above.
    pub fn open_runs(path: &Path) -> Result<Vec<Self>> {
        Self::open_apart(path, About::is_of_one_run_with)
    }

    fn open_apart(path: &Path, are: fn(&About, &About) -> bool) -> Result<Vec<Self>> {
        let (known, unreadable) = find(path)?;
        let about: Vec<About> = known.iter().map(|one| About::of(&one.host, &one.dataset, &one.meta)).collect();
        let mut groups = BTreeMap::<usize, Vec<ReadableDataset>>::new();
        for (one, group) in known.into_iter().zip(related(&about, are)) {
            groups.entry(group).or_default().push(one);
        }
        let mut all = groups.into_values().map(|known| Self::of(known, Vec::new())).collect::<Result<Vec<_>>>()?;
        if let Some(first) = all.first_mut() {
            first.unreadable = unreadable;
        }
        all.sort_by_key(|union| union.wall_ns);
        Ok(all)
    }

    /// The directories of its datasets.
    pub fn directories(&self) -> Vec<&Path> {
        self.parts.iter().map(|part| part.dataset.path()).collect()
    }

    fn of(mut known: Vec<ReadableDataset>, unreadable: Vec<String>) -> Result<Self> {
        // Those of one run in order of time: of several rows of one id the last holds.
        known.sort_by_key(|one| (one.host.clone(), one.meta.run(), one.meta.number("t0_ns")));
        let mut union = Self { parts: Vec::new(), runs: Vec::new(), wall_ns: None, unreadable };
        let walls = known.iter().filter_map(|one| one.meta.number("t0_wall_ns"));
        union.wall_ns = walls.min();
        let mut last = None;
        let mut start = (0, 0);
        for ReadableDataset { host, dataset, meta, greatest } in known {
            let (wall, t0) = (meta.number("t0_wall_ns"), meta.number("t0_ns").unwrap_or(0));
            // A dataset without a start time is of a run of its own.
            let run = meta.run().map(|run| (host.clone(), run));
            if run.is_none() || run != last {
                union.runs.push(Run { host, bases: [0; IDS.len()] });
                start = (wall.unwrap_or(0).saturating_sub(union.wall_ns.unwrap_or(0)).max(0), t0);
                last = run;
            }
            // Within a run by CLOCK_MONOTONIC, which is never set.
            let begins_ns = t0.saturating_sub(start.1).saturating_add(start.0);
            union.parts.push(Part { dataset, meta, greatest, run: union.runs.len() - 1, begins_ns });
        }
        union.refuse_overlaps()?;
        union.number()?;
        Ok(union)
    }

    /// Datasets of a flight recorder have rows in common, so that not even sums of several mean anything.
    fn refuse_overlaps(&self) -> Result<()> {
        for run in 0..self.runs.len() {
            let of_flight = self.parts.iter().filter(|part| part.run == run && part.meta.0.contains_key("trigger"));
            let paths: Vec<_> = of_flight.map(|part| part.dataset.path()).collect();
            if let [.., last] = paths.as_slice()
                && paths.len() > 1
            {
                bail!(
                    "{} datasets are of one flight recorder (--flight), which may have rows in common; give one of them: {}",
                    paths.len(),
                    last.display()
                );
            }
        }
        Ok(())
    }

    /// Gives each run its own range of ids.
    fn number(&mut self) -> Result<()> {
        if self.runs.len() < 2 {
            return Ok(());
        }
        let mut ends = vec![[0; IDS.len()]; self.runs.len()];
        for part in &self.parts {
            for (end, most) in ends[part.run].iter_mut().zip(part.greatest) {
                *end = (*end).max(most.saturating_add(1));
            }
        }
        let mut next = [0_i64; IDS.len()];
        for (run, end) in self.runs.iter_mut().zip(ends) {
            run.bases = next;
            for ((next, end), (kind, _)) in next.iter_mut().zip(end).zip(IDS) {
                *next = next.saturating_add(end);
                let most = if kind == IdKind::Span { i64::MAX >> SEQ_BITS } else { i64::from(i32::MAX) };
                ensure!(
                    *next <= most,
                    "ids of {} and the datasets before it are too great together; report on fewer at once",
                    run.host
                );
            }
        }
        Ok(())
    }

    /// Calls `each` with every row of a table, with ids and times of all datasets.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn rows<T: Table + Times + Renumber>(&self, each: impl FnMut(T) -> Result<()>) -> Result<()> {
        self.read(|dataset, each, _| dataset.rows(each), each)
    }

    /// The same of the row groups that may hold values of this column of times in this range.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn rows_around<T: Table + Times + Renumber>(
        &self,
        column: &'static str,
        range: &Range<i64>,
        each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let read = |dataset: &Dataset, each: &mut dyn FnMut(T) -> Result<()>, begins_ns: i64| {
            let own = range.start.saturating_sub(begins_ns)..range.end.saturating_sub(begins_ns);
            dataset.rows_around(column, &own, each)
        };
        self.read(read, each)
    }

    fn read<T: Table + Times + Renumber>(
        &self,
        read: impl Fn(&Dataset, &mut dyn FnMut(T) -> Result<()>, i64) -> Result<()>,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        for part in &self.parts {
            let ids = self.ids(part);
            let mut renumbered = |mut row: T| {
                row.renumber(&ids);
                row.shift(part.begins_ns.saturating_neg());
                each(row)
            };
            read(&part.dataset, &mut renumbered, part.begins_ns)?;
        }
        Ok(())
    }

    fn ids(&self, part: &Part) -> Ids<'_> {
        Ids(&self.runs[part.run].bases)
    }

    /// The rows of a table, from the footers of its parts.
    pub fn count<T: Table>(&self) -> u64 {
        self.parts.iter().map(|part| part.dataset.count::<T>()).sum()
    }

    /// Whether any row has a value in this column. Yes where footers do not show it.
    pub fn holds(&self, column: &'static str) -> bool {
        self.parts.iter().any(|part| part.dataset.greatest(&[column]).map_or(true, |known| !known.is_empty()))
    }

    /// The rows of `metrics` as they were written, each with its node.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn metrics_of_hosts(&self, mut each: impl FnMut(&str, Metric) -> Result<()>) -> Result<()> {
        self.parts.iter().try_for_each(|part| {
            part.dataset.rows(|mut row: Metric| {
                row.shift(part.begins_ns.saturating_neg());
                each(&self.runs[part.run].host, row)
            })
        })
    }

    /// The roots that are of a part, by their ids there.
    fn own_roots(&self, part: &Part, roots: &BTreeSet<i64>) -> BTreeSet<i64> {
        let base = self.runs[part.run].bases[IdKind::Span as usize] << SEQ_BITS;
        roots.iter().filter_map(|id| id.checked_sub(base).filter(|id| *id >= 0)).collect()
    }

    /// The links of requests to calls below these roots.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn links_of_roots(&self, roots: &BTreeSet<i64>, mut each: impl FnMut(BlockLink) -> Result<()>) -> Result<()> {
        for part in &self.parts {
            let ids = self.ids(part);
            part.dataset.links_of_roots(&self.own_roots(part, roots), |mut link| {
                link.renumber(&ids);
                if roots.contains(&link.root_id) { each(link) } else { Ok(()) }
            })?;
        }
        Ok(())
    }

    /// The links of requests with ids in this range to calls.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn links_of_requests(&self, ids: &Range<i64>, mut each: impl FnMut(BlockLink) -> Result<()>) -> Result<()> {
        for part in &self.parts {
            let own = self.ids(part);
            let base = own.0[IdKind::Request as usize];
            let range = ids.start.saturating_sub(base)..ids.end.saturating_sub(base);
            part.dataset.rows_around("req_id", &range, |mut link: BlockLink| {
                link.renumber(&own);
                if ids.contains(&link.req_id) { each(link) } else { Ok(()) }
            })?;
        }
        Ok(())
    }

    /// The calls below these roots, the roots included.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn spans_below(&self, roots: &BTreeSet<i64>, mut each: impl FnMut(Span) -> Result<()>) -> Result<()> {
        for part in &self.parts {
            let ids = self.ids(part);
            part.dataset.spans_of_roots(&self.own_roots(part, roots), |mut span| {
                span.renumber(&ids);
                span.shift(part.begins_ns.saturating_neg());
                if roots.contains(&span.root_id) { each(span) } else { Ok(()) }
            })?;
        }
        Ok(())
    }

    /// These requests.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn requests(&self, wanted: &BTreeSet<i64>, mut each: impl FnMut(Block) -> Result<()>) -> Result<()> {
        for part in &self.parts {
            let ids = self.ids(part);
            let base = ids.0[IdKind::Request as usize];
            let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { continue };
            let range = first.saturating_sub(base)..last.saturating_sub(base).saturating_add(1);
            part.dataset.rows_around("req_id", &range, |mut block: Block| {
                block.renumber(&ids);
                block.shift(part.begins_ns.saturating_neg());
                if wanted.contains(&block.req_id) { each(block) } else { Ok(()) }
            })?;
        }
        Ok(())
    }

    /// The facts of all datasets as those of one.
    pub fn facts(&self) -> BTreeMap<String, String> {
        if let [only] = self.parts.as_slice() {
            return only.meta.0.clone();
        }
        let mut all = BTreeMap::<String, Vec<String>>::new();
        let mut libraries = BTreeSet::new();
        for Part { meta, .. } in &self.parts {
            for (key, value) in &meta.0 {
                if key.starts_with("library.") {
                    libraries.insert(value.clone());
                } else if let Some(values) = all.get_mut(key) {
                    if !values.contains(value) {
                        values.push(value.clone());
                    }
                } else {
                    all.insert(key.clone(), vec![value.clone()]);
                }
            }
        }
        let mut facts: BTreeMap<_, _> = all.into_iter().map(|(key, values)| (key, values.join(", "))).collect();
        facts.extend(libraries.into_iter().enumerate().map(|(n, library)| (format!("library.{n}"), library)));
        if let Some(wall) = self.wall_ns {
            facts.insert("t0_wall_ns".to_owned(), wall.to_string());
        }
        // Of each run the last dataset has the end.
        let lasts = (0..self.runs.len()).filter_map(|run| self.parts.iter().rfind(|part| part.run == run));
        let ends: Option<Vec<i64>> =
            lasts.map(|p| Some(p.begins_ns.saturating_add(p.meta.number("end_ns")?))).collect();
        match ends.and_then(|ends| ends.into_iter().max()) {
            Some(end) => facts.insert("end_ns".to_owned(), end.to_string()),
            None => facts.remove("end_ns"),
        };
        facts
    }
}

impl Source for Union {
    fn spans(&mut self, each: Each<Span>) -> Result<()> {
        self.parts.iter().try_for_each(|part| {
            let ids = self.ids(part);
            part.dataset.rows_in_place(|span: &mut Span| {
                span.renumber(&ids);
                span.shift(part.begins_ns.saturating_neg());
                each(span)
            })
        })
    }

    fn blocks(&mut self, each: Each<Block>) -> Result<()> {
        self.rows(|row: Block| each(&row))
    }

    fn links(&mut self, each: Each<BlockLink>) -> Result<()> {
        self.rows(|row: BlockLink| each(&row))
    }

    fn block_bytes(&mut self, each: Each<BlockBytes>) -> Result<()> {
        self.rows(|row: BlockBytes| each(&row))
    }

    fn files(&mut self, each: Each<File>) -> Result<()> {
        self.rows(|row: File| each(&row))
    }

    fn handles(&mut self, each: Each<Handle>) -> Result<()> {
        self.rows(|row: Handle| each(&row))
    }

    fn paths(&mut self, each: Each<CallPath>) -> Result<()> {
        self.rows(|row: CallPath| each(&row))
    }

    fn stacks(&mut self, each: Each<Stack>) -> Result<()> {
        self.rows(|row: Stack| each(&row))
    }

    fn objects(&mut self, each: Each<Object>) -> Result<()> {
        self.rows(|row: Object| each(&row))
    }

    fn processes(&mut self, each: Each<Process>) -> Result<()> {
        self.rows(|row: Process| each(&row))
    }

    fn losses(&mut self, each: Each<Loss>) -> Result<()> {
        self.rows(|row: Loss| each(&row))
    }

    /// Each dataset of a run has its verdicts again.
    fn coverage(&mut self, each: Each<Coverage>) -> Result<()> {
        let mut seen = (0, HashSet::new());
        for part in &self.parts {
            if part.run != seen.0 {
                seen = (part.run, HashSet::new());
            }
            part.dataset.rows(|row: Coverage| if seen.1.insert(row.clone()) { each(&row) } else { Ok(()) })?;
        }
        Ok(())
    }

    fn sums(&mut self, each: Each<FileRollup>) -> Result<()> {
        self.rows(|row: FileRollup| each(&row))
    }

    fn hists(&mut self, each: Each<Hist>) -> Result<()> {
        self.rows(|row: Hist| each(&row))
    }

    fn mounts(&mut self, each: Each<Mount>) -> Result<()> {
        self.rows(|row: Mount| each(&row))
    }

    fn meta(&mut self, each: Each<Meta>) -> Result<()> {
        self.facts().into_iter().try_for_each(|(key, value)| each(&Meta { key, value }))
    }

    /// Totals go on from one dataset to the next.
    fn metrics(&mut self, each: Each<Metric>) -> Result<()> {
        let mut totals = HashMap::<(&'static str, Option<String>, Option<usize>), f64>::default();
        for part in &self.parts {
            let mut now = HashMap::default();
            part.dataset.rows(|mut row: Metric| {
                // Nodes run side by side: what tracing took of one is no part of another.
                let apart = [TRACING_NS, HELD_NS].contains(&row.name).then_some(part.run);
                let key = (row.name, row.label.clone(), apart);
                now.insert(key.clone(), row.value);
                row.value += totals.get(&key).copied().unwrap_or(0.0);
                row.shift(part.begins_ns.saturating_neg());
                each(&row)
            })?;
            for (key, value) in now {
                *totals.entry(key).or_default() += value;
            }
        }
        Ok(())
    }

    fn metrics_of_nodes(&mut self, each: &mut dyn FnMut(&str, &Metric) -> Result<()>) -> Result<()> {
        self.metrics_of_hosts(|host, row| each(host, &row))
    }

    fn spans_of_roots(&mut self, roots: &BTreeSet<i64>, each: Each<Span>) -> Result<()> {
        self.spans_below(roots, |span| each(&span))
    }

    fn origin(&self, kind: IdKind, id: i64) -> Option<Origin<'_>> {
        if self.runs.len() < 2 || id < 0 {
            return None;
        }
        let base = |run: &Run| run.base(kind);
        let run = self.runs.partition_point(|run| base(run) <= id).checked_sub(1)?;
        let of = self.runs.get(run)?;
        Some(Origin { host: &of.host, id: id - base(of) })
    }

    fn hosts(&self, kind: IdKind) -> Hosts {
        let hosts = self.runs.iter().map(|run| (run.base(kind), run.host.clone()));
        Hosts(if self.runs.len() < 2 { Vec::new() } else { hosts.collect() })
    }

    fn nodes(&self) -> Vec<NodeRow> {
        let mut nodes = Vec::<NodeRow>::new();
        for part in &self.parts {
            let host = &self.runs[part.run].host;
            match nodes.last_mut().filter(|node| node.host == *host) {
                Some(node) => node.datasets += 1,
                None => nodes.push(NodeRow {
                    host: host.clone(),
                    datasets: 1,
                    start_wall_ns: part.meta.number("t0_wall_ns"),
                    kernel: part.meta.0.get("kernel").cloned(),
                    clock: Clock::default(),
                }),
            }
        }
        nodes
    }

    fn warnings(&self) -> Vec<String> {
        let named = |part: &Part| {
            let dir = part.dataset.path().file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let all = part.dataset.warnings().into_iter();
            all.map(|w| if self.parts.len() > 1 { format!("{dir}: {w}") } else { w.to_string() }).collect::<Vec<_>>()
        };
        self.unreadable.iter().cloned().chain(self.parts.iter().flat_map(named)).collect()
    }
}
