//! Rows in, sums out: pure, and of bounded memory whatever comes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::analysis::calls::{Figures, Sums, asked, is_data};
use crate::analysis::durations::waiting;
use crate::analysis::findings::Live;
use crate::analysis::nesting::{Enclosing, FORGETS};
use crate::analysis::trace::source::Hosts;
use crate::base::hist::bucket_of;
use crate::rows::{DISCARD, FileRollup, Hist, PARTS, Rollup, Row, Span};
use crate::summary::bins::{Bins, Merge as _, Rate};
use crate::summary::dims::Dims;
use crate::summary::filter::Filter;
use crate::summary::filter::fields::{fields, fields_of_sums};
use crate::summary::sums::disks::Disks;
use crate::summary::sums::files::FileTable;
use crate::summary::sums::procs::ProcessTable;
use crate::summary::sums::recent::Recent;
use crate::summary::sums::spread::{COLUMN_NS, Ops};
use crate::summary::sums::tree::CallTree;
use crate::summary::view::{DirtySample, Measure, NodeId, Waterfall, Window};
use crate::vocabulary::{Kind, LAYERS, Layer, flag};

/// Bins of the history: 100 ms each to begin with.
pub const BIN_NS: i64 = 100_000_000;
pub const BINS: usize = 1800;
/// Calls whose node of the tree is remembered, for requests that come later; requests that came before their call; objects.
const REMEMBERED: usize = 131_072;
/// In a dataset requests are read before calls.
const EARLY: usize = 4 << 20;
const DIRTY: usize = 3600;
/// Bins that a period is spread over at most.
const MAX_PERIOD: i64 = 100;

/// What the sums are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Calls. Sums and histograms that come with them are passed over, because they are of the same calls.
    Spans,
    /// Sums and histograms: a dataset whose calls have not been read.
    Rollups,
    /// Sums by file, and histograms: calls that were summed up and not recorded (`--aggregate`).
    Sums,
}

impl From {
    /// Length of a cell of a process over time to begin with; it is doubled until the trace fits. Sums have that of their
    /// rows.
    const fn cell_ns(self) -> i64 {
        match self {
            Self::Spans => 1_000_000,
            Self::Rollups => 100_000_000,
            Self::Sums => 1_000_000_000,
        }
    }

    /// The same of a distribution.
    const fn column_ns(self) -> i64 {
        match self {
            Self::Spans => 1_000_000,
            Self::Rollups | Self::Sums => COLUMN_NS,
        }
    }
}

/// Everything that the snapshots are made of.
#[derive(Debug, Clone)]
pub struct Summary {
    pub(super) from: From,
    pub(super) filter: Option<Arc<Filter>>,
    /// Calls that began outside are passed over.
    pub(super) window: Option<Window>,
    /// Goes up with every row.
    pub(super) version: u64,
    pub(super) second: i64,
    pub(super) now_ns: i64,
    pub(super) layers: Bins<[Sums; LAYERS.len()]>,
    pub(super) rates: [Rate; LAYERS.len()],
    /// Bytes that the program asked for: read, written.
    pub(super) asked: Bins<[i64; 2]>,
    /// Bytes that calls read through the page cache, and those that were not there.
    pub(super) cache: Bins<[i64; 2]>,
    /// What outermost system calls spent their time on.
    pub(super) parts: Bins<[i64; PARTS.len()]>,
    pub(super) ops: Ops,
    pub(super) tree: CallTree,
    pub(super) files: FileTable,
    pub(super) objects: HashMap<i32, Sums>,
    pub(super) processes: ProcessTable,
    pub(super) disks: Disks,
    pub(super) recent: Recent,
    pub(super) dims: Dims,
    pub(super) dirty: VecDeque<DirtySample>,
    nodes: HashMap<i64, NodeId>,
    order: VecDeque<i64>,
    /// Bytes of requests whose call has not come.
    early: HashMap<i64, i64>,
    seen_threads: HashSet<i32>,
    /// What is wrong, where somebody looks at that.
    pub(super) findings: Option<Box<Live>>,
}

impl Summary {
    pub fn new(from: From) -> Self {
        Self {
            from,
            filter: None,
            window: None,
            version: 0,
            second: 0,
            now_ns: 0,
            layers: Bins::new(BIN_NS, BINS),
            rates: Default::default(),
            asked: Bins::new(BIN_NS, BINS),
            cache: Bins::new(BIN_NS, BINS),
            parts: Bins::new(BIN_NS, BINS),
            ops: Ops::new(from.column_ns()),
            tree: CallTree::default(),
            files: FileTable::default(),
            objects: HashMap::new(),
            processes: ProcessTable::new(from.cell_ns()),
            disks: Disks::new(BIN_NS, BINS),
            recent: Recent::default(),
            dims: Dims::new(BIN_NS, BINS),
            dirty: VecDeque::new(),
            nodes: HashMap::new(),
            order: VecDeque::new(),
            early: HashMap::new(),
            seen_threads: HashSet::new(),
            findings: None,
        }
    }

    /// Of a trace that goes on.
    #[must_use]
    pub fn live(mut self) -> Self {
        self.dims.run.live = true;
        self
    }

    /// Also finds what is wrong: in the last minute of a trace that goes on, else in all calls. Rows are of so many nodes, and
    /// their files of these hosts.
    #[must_use]
    pub fn finding(mut self, nodes: usize, files: &Hosts) -> Self {
        self.findings = Some(Box::new(Live::new(self.dims.run.live, nodes).of(files)));
        self
    }

    /// What the sums are made from.
    pub const fn from(&self) -> From {
        self.from
    }

    /// What ids stand for is as in another one.
    pub fn knows(&mut self, other: &Self) {
        self.dims = other.dims.clone();
        if let (Some(findings), Some(known)) = (&mut self.findings, &other.findings) {
            findings.knows(known);
        }
        self.processes.threads.clone_from(&other.processes.threads);
    }

    /// The node that a process was on, where rows are of several.
    pub fn on_node(&mut self, process_ix: i32, host: &Arc<str>) {
        if self.dims.processes.contains_key(&process_ix) {
            self.dims.hosts.insert(process_ix, Arc::clone(host));
        }
    }

    /// The node that the run was on.
    pub fn host(&self) -> String {
        self.dims.run.host.clone()
    }

    /// The outermost call around a call that is kept, or is among the slowest.
    pub fn root_of(&self, span: i64) -> Option<i64> {
        let kept = self.recent.spans.iter().find(|s| s.span_id == span);
        kept.or_else(|| self.tree.slowest(span)).map(|s| s.root_id)
    }

    /// The tree of calls that a call is part of, if it is kept.
    pub fn waterfall(&self, span: i64) -> Option<Waterfall> {
        self.recent.waterfall(span, &self.dims)
    }

    /// Everything lost, and by layer.
    pub fn lost(&self) -> (u64, Vec<(Option<Layer>, u64)>) {
        self.dims.lost_by_layer()
    }

    /// Changes with every row.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The node that a call was put to, if that is not long ago.
    pub(super) fn node_of(&self, span: i64) -> Option<NodeId> {
        self.nodes.get(&span).copied()
    }

    /// Of some calls only.
    #[must_use]
    pub fn only(mut self, filter: Option<Arc<Filter>>, window: Option<Window>) -> Self {
        (self.filter, self.window) = (filter, window);
        self
    }

    /// One that knows what this one knows of files, processes and the run, and of the calls those kept that fulfil the
    /// filter.
    #[must_use]
    pub fn filtered(&self, filter: Arc<Filter>) -> Self {
        let mut new =
            Self::new(if self.from == From::Sums { From::Sums } else { From::Spans }).only(Some(filter), None);
        new.findings = self.findings.as_ref().map(|_| Box::new(Live::new(self.dims.run.live, 1)));
        new.knows(self);
        new.dirty.clone_from(&self.dirty);
        (new.now_ns, new.second) = (self.now_ns, self.second);
        for span in &self.recent.spans {
            new.span(span);
        }
        new
    }

    /// When the traced process with these numbers began; `None` when there is none, or it has ended.
    pub fn runs_since(&self, process_ix: i32, pid: i32) -> Option<i64> {
        let process = self.dims.processes.get(&process_ix)?;
        (process.pid == pid && process.end_ns.is_none()).then_some(process.start_ns)
    }

    /// The time, for rates.
    pub fn tick(&mut self, now_ns: i64) {
        self.now_ns = self.now_ns.max(now_ns);
        self.findings.iter_mut().for_each(|findings| findings.tick(now_ns));
        let second = self.now_ns.div_euclid(1_000_000_000);
        if second != self.second {
            let period = |second: i64| second.div_euclid(FORGETS.as_secs() as i64);
            if self.dims.run.live && period(second) != period(self.second) {
                self.tree.forget_idle();
            }
            self.second = second;
            self.version += 1;
        }
    }

    pub fn dirty(&mut self, sample: DirtySample) {
        if self.dirty.len() >= DIRTY {
            self.dirty.pop_front();
        }
        self.dirty.push_back(sample);
    }

    /// Takes a row; the order is that in which the correlator makes them, or that of a dataset.
    pub fn push(&mut self, row: &Row) {
        self.version += 1;
        self.findings.iter_mut().for_each(|findings| findings.describe(row));
        match row {
            Row::Span(span) => self.span(span),
            Row::Block(block) => {
                if self.within(block.issue_ns) {
                    if self.from != From::Sums {
                        self.findings.iter_mut().for_each(|findings| findings.block(block));
                        self.disks.block(block, self.second);
                    }
                    self.recent.block(block.clone());
                }
            }
            Row::BlockLink(link) => {
                self.recent.link(link.clone());
                if link.how == DISCARD {
                    return;
                }
                if let Some(node) = self.nodes.get(&link.span_id) {
                    self.tree.device(*node, link.bytes);
                } else if self.early.len() < if self.dims.run.live { REMEMBERED } else { EARLY } {
                    let early = self.early.entry(link.span_id).or_default();
                    *early = early.saturating_add(link.bytes);
                }
            }
            Row::BlockBytes(part) => {
                self.disks.bytes(part);
                if let Some(file) = part.file_id {
                    self.files.device(file, part.bytes);
                }
            }
            Row::File(file) => self.dims.file((**file).clone()),
            Row::Handle(handle) => self.dims.handle(handle.clone()),
            Row::Object(object) => self.dims.object(object.clone()),
            Row::Process(process) => self.dims.process((**process).clone()),
            Row::Thread(thread) => {
                if self.seen_threads.len() < REMEMBERED && self.seen_threads.insert(thread.thread_ix) {
                    *self.processes.threads.entry(thread.process_ix).or_default() += 1;
                }
            }
            Row::Mount(mount) => self.dims.mount((**mount).clone()),
            Row::Metric(metric) => self.dims.metric(metric),
            Row::Loss(loss) => self.dims.loss(loss),
            Row::Coverage(verdict) => self.dims.verdict(verdict),
            Row::Meta(meta) => self.dims.meta(meta.clone()),
            Row::Rollup(rollup) => self.rollup(rollup),
            Row::Hist(hist) => self.hist(hist),
            Row::FileRollup(row) => self.file_rollup(row),
            Row::FilePath(_) | Row::CallPath(_) | Row::Stack(_) | Row::Rpc(_) => {}
        }
    }

    fn within(&self, t_ns: i64) -> bool {
        self.window.is_none_or(|w| (w.from_ns..w.to_ns).contains(&t_ns))
    }

    fn wanted(&self, span: &Span) -> bool {
        let Some(filter) = &self.filter else { return true };
        let path = span.file_id.and_then(|id| self.dims.files.get(&id)).map(|f| &*f.path);
        filter.matches(&fields(span, path))
    }

    fn span(&mut self, span: &Span) {
        if !self.within(span.start_ns) || !self.wanted(span) {
            return;
        }
        if let Some(old) = self.recent.span(span.clone()) {
            self.early.remove(&old.span_id);
        }
        if span.flags & flag::SUMMED != 0 {
            // What it comes to is in the sums.
            if let Some(node) = self.add_to_tree(span).0 {
                self.remember(span.span_id, node);
            }
            return;
        }
        let sums = Figures::of(span).sums();
        self.layers.at(span.start_ns)[span.layer as usize].merge(&sums);
        if span.layer_top {
            self.rates[span.layer as usize].add(self.second, [1, sums.bytes_read, sums.bytes_written]);
            let key = (span.layer, span.op, span.kind);
            if let Some(op) = self.ops.op(span.layer, span.op, span.kind) {
                op.max_ns = op.max_ns.max(span.net_ns());
            }
            self.ops.count(key, span.start_ns, Measure::Latency, bucket_of(span.net_ns()), 1);
            if let Some(bytes) = span.bytes {
                self.ops.count(key, span.start_ns, Measure::Size, bucket_of(bytes), 1);
            }
        }
        if let Some(op) = self.ops.op(span.layer, span.op, span.kind) {
            op.sums.merge(&sums);
        }
        let (node, around) = self.add_to_tree(span);
        self.findings.iter_mut().for_each(|findings| findings.span(span, &around));
        if around.asks.is_some() {
            // What a program asks for may be any number.
            let asked = asked(span).unwrap_or(0);
            self.asked.at(span.start_ns)[usize::from(span.kind == Kind::Write)].merge(&asked);
        }
        if let (Kind::Read, Layer::Syscall, Some(miss)) = (span.kind, span.layer, span.miss_bytes) {
            self.cache.at(span.start_ns).merge(&[span.bytes.unwrap_or(0), miss]);
        }
        if let Some(parts) = waiting::parts(span) {
            self.parts.at(span.start_ns).merge(&parts);
        }
        self.files.add(span, self.second);
        if let Some(object) =
            span.object_id.filter(|id| self.objects.len() < REMEMBERED || self.objects.contains_key(id))
        {
            self.objects.entry(object).or_default().merge(&sums);
        }
        self.processes.add(span, around.is_own(span), self.second);
        if let Some(node) = node {
            self.remember(span.span_id, node);
        }
    }

    fn add_to_tree(&mut self, span: &Span) -> (Option<NodeId>, Enclosing) {
        let before = span.parent_id.and_then(|parent| self.nodes.get(&parent).copied());
        self.tree.add(span, before)
    }

    /// For requests that come later, and those that came before.
    fn remember(&mut self, span: i64, node: NodeId) {
        if let Some(bytes) = self.early.remove(&span) {
            self.tree.device(node, bytes);
        }
        if self.order.len() >= REMEMBERED
            && let Some(old) = self.order.pop_front()
        {
            self.nodes.remove(&old);
        }
        self.nodes.insert(span, node);
        self.order.push_back(span);
    }

    fn rollup(&mut self, row: &Rollup) {
        if self.from != From::Rollups || !self.within(row.t_ns) {
            return;
        }
        let sums = Sums::of_rollup(row);
        self.layers.at(row.t_ns)[row.layer as usize].merge(&sums);
        if let Some(op) = self.ops.op(row.layer, row.op, row.kind) {
            op.sums.merge(&sums);
            op.max_ns = op.max_ns.max(row.max_ns);
        }
        self.processes.rollup(row, &sums);
    }

    /// Calls of a period. What is in each bin of it is not known: the same part of the whole.
    fn file_rollup(&mut self, row: &FileRollup) {
        let wanted = self.filter.as_ref().is_none_or(|filter| {
            let path = row.file_id.and_then(|id| self.dims.files.get(&id)).map(|f| &*f.path);
            filter.is_of_sums() && filter.matches(&fields_of_sums(row, path))
        });
        // Calls of demoted functions are nowhere else.
        let only_here = self.from == From::Spans && row.calls_error.is_some();
        if !(self.from == From::Sums || only_here) || !self.within(row.from_ns) || !wanted {
            return;
        }
        self.findings.iter_mut().for_each(|findings| findings.sums(row));
        let sums = Figures::of_sum(row).sums();
        if only_here && is_data(row.kind) {
            // As in the report: it counts for the program.
            self.asked.at(row.from_ns)[usize::from(row.kind == Kind::Write)].merge(&row.req_bytes);
        }
        let bins = (row.to_ns.saturating_sub(row.from_ns) / BIN_NS).clamp(1, MAX_PERIOD);
        for n in 0..bins {
            let part = |sum: i64| sum / bins + i64::from(n < sum % bins);
            let t_ns = row.from_ns.saturating_add(n * BIN_NS);
            self.layers.at(t_ns)[row.layer as usize].merge(&sums.map(part));
        }
        if let Some(parts) = waiting::parts_of_sum(row) {
            self.parts.at(row.from_ns).merge(&parts);
        }
        if row.layer == Layer::Syscall && row.kind == Kind::Read {
            self.cache.at(row.from_ns).merge(&[row.bytes, row.miss_bytes]);
        }
        self.rates[row.layer as usize].add(self.second, [sums.calls, sums.bytes_read, sums.bytes_written]);
        if let Some(op) = self.ops.op(row.layer, row.op, row.kind) {
            op.sums.merge(&sums);
            op.max_ns = op.max_ns.max(row.max_ns);
        }
        self.files.sums(row, &sums, self.second);
        if let Some(object) =
            row.object_id.filter(|id| self.objects.len() < REMEMBERED || self.objects.contains_key(id))
        {
            self.objects.entry(object).or_default().merge(&sums);
        }
        if only_here {
            self.processes.estimated(row);
        } else {
            self.processes.sums(row, &sums, self.second);
        }
    }

    fn hist(&mut self, row: &Hist) {
        if self.from == From::Spans || self.filter.is_some() || !self.within(row.t_ns) {
            return;
        }
        let what = if row.what == "size" { Measure::Size } else { Measure::Latency };
        // The kind is known from the sums, which are read first.
        let kind = self.ops.chosen(Some(row.layer), Some(row.op)).next().map_or(Kind::Other, |(_, _, op)| op.kind);
        let n = u64::try_from(row.n).unwrap_or(0);
        self.ops.count((row.layer, row.op, kind), row.t_ns, what, row.bucket, n);
    }
}
