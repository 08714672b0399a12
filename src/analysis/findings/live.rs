//! Findings of a trace that goes on, over about the last minute; or of calls that are chosen of a recorded one.

use std::collections::VecDeque;

use roaring::RoaringBitmap;

use crate::HashMap;
use crate::analysis::findings::functions;
use crate::analysis::findings::groups::Groups;
use crate::analysis::findings::groups::same::Same;
use crate::analysis::findings::run::Others;
use crate::analysis::findings::{Config, Evaluated, Findings, Names, Trace};
use crate::analysis::nesting::Enclosing;
use crate::analysis::trace::coverage::Layers;
use crate::analysis::trace::losses::Losses;
use crate::analysis::trace::share::Tracing;
use crate::analysis::trace::source::Hosts;
use crate::rows::{Block, BlockBytes, FileRollup, Row, Span};

/// Calls are forgotten by the slice, in ns.
const SLICE: i64 = 10_000_000_000;
/// Slices that count: five to six are full, a minute.
const SLICES: usize = 6;
/// Groups that a slice keeps apart by file: some 4 MB.
const GROUPS_MAX: usize = 1 << 13;
/// Files and requests of devices that a slice keeps, each: a megabyte.
const REQUESTS_MAX: usize = 1 << 14;
/// Files and paths whose names are kept.
const NAMES_MAX: usize = 1 << 16;

/// What came in one slice of time.
#[derive(Debug, Clone, Default)]
struct Slice {
    from_ns: i64,
    groups: Groups,
    others: Others,
    losses: Losses,
}

/// Takes rows, and finds what is wrong whenever that is asked.
#[derive(Debug, Clone)]
pub struct Live {
    /// Of a trace that goes on: only the last minute counts.
    recent: bool,
    past: VecDeque<Slice>,
    now: Slice,
    now_ns: i64,
    layers: Layers,
    /// Processes that are or were traced.
    pids: RoaringBitmap,
    names: Names,
    tracing: Tracing,
    /// Nodes that rows are of.
    nodes: usize,
}

impl Live {
    /// `recent`: of a trace that goes on, over its last minute. Else over all calls that come. Of so many nodes.
    pub fn new(recent: bool, nodes: usize) -> Self {
        let (groups, others) = if recent {
            (Groups::limited(GROUPS_MAX), Others::limited(REQUESTS_MAX))
        } else {
            (Groups::default(), Others::default())
        };
        Self {
            recent,
            past: VecDeque::new(),
            now: Slice { groups, others, ..Slice::default() },
            now_ns: 0,
            layers: Layers::default(),
            pids: RoaringBitmap::new(),
            names: Names::default(),
            tracing: Tracing::default(),
            nodes,
        }
    }

    /// Files are of several datasets: from these ids on, of which hosts.
    #[must_use]
    pub fn of(mut self, files: &Hosts) -> Self {
        self.now.groups.known().same = Same::of(files);
        self
    }

    /// The time goes on.
    pub fn tick(&mut self, now_ns: i64) {
        self.now_ns = self.now_ns.max(now_ns);
        if !self.recent || self.now_ns.saturating_sub(self.now.from_ns) < SLICE {
            return;
        }
        let groups = self.now.groups.split(self.now.from_ns);
        let (others, losses) = (self.now.others.split(), std::mem::take(&mut self.now.losses));
        self.past.push_back(Slice { from_ns: self.now.from_ns, groups, others, losses });
        self.now.from_ns = self.now_ns;
        while self.past.len() >= SLICES {
            self.past.pop_front();
        }
    }

    /// A call, and what is around it.
    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        self.now.groups.span(span, around);
        self.tick(span.end_ns());
    }

    /// Calls that were summed up.
    pub fn sums(&mut self, row: &FileRollup) {
        self.now.groups.sums(row);
        self.tick(row.last_ns.unwrap_or(0));
    }

    /// A request of a device.
    pub fn block(&mut self, block: &Block) {
        self.now.others.block(block);
    }

    /// Whose some bytes of a request are.
    fn bytes(&mut self, part: &BlockBytes) {
        self.now.others.bytes(part, self.now.groups.file(part.file_id));
    }

    /// What describes calls and the trace.
    pub fn describe(&mut self, row: &Row) {
        match row {
            Row::Handle(handle) => self.now.groups.known().handle(handle),
            Row::Mount(mount) => self.now.groups.known().same.mount(mount),
            Row::File(file) => {
                self.now.groups.known().file(file);
                let path = file.path.as_ref().or(file.first_path.as_ref());
                if let Some(path) = path {
                    keep(&mut self.names.files, file.file_id, path);
                }
            }
            Row::CallPath(path) => keep(&mut self.names.paths, path.path_id, &path.path),
            Row::Stack(stack) => {
                if let Some(function) = functions::of_program(&stack.frames) {
                    keep(&mut self.names.stacks, stack.stack_id, function);
                }
            }
            Row::BlockBytes(part) => self.bytes(part),
            Row::Process(process) => _ = self.pids.insert(process.pid as u32),
            Row::Coverage(verdict) => self.layers.add(verdict),
            Row::Loss(loss) => self.now.losses.add(loss),
            Row::Metric(metric) => self.tracing.add(metric),
            Row::Meta(meta) => self.now.others.meta(meta),
            _ => {}
        }
    }

    /// What describes calls is as in another one.
    pub fn knows(&mut self, other: &Self) {
        self.now.groups.knows(&other.now.groups);
        (self.layers, self.pids) = (other.layers.clone(), other.pids.clone());
        (self.names, self.tracing, self.nodes) = (other.names.clone(), other.tracing, other.nodes);
        (self.now_ns, self.now.from_ns) = (other.now_ns, other.now.from_ns);
        self.now.losses = other.now.losses.clone();
    }

    /// Applies the rules. `run_ns`: how long the run was, if that is known. `aggregate`: calls came as sums.
    pub fn find(&self, run_ns: Option<i64>, aggregate: bool) -> Findings {
        let (mut groups, mut others, mut losses) = (Groups::default(), Others::default(), Losses::default());
        for slice in self.past.iter().chain([&self.now]) {
            groups.merge(&slice.groups);
            others.merge(&slice.others);
            losses.merge(&slice.losses);
        }
        let from_ns = self.past.front().map_or(self.now.from_ns, |slice| slice.from_ns);
        let trace = Trace {
            duration_ns: run_ns.unwrap_or_else(|| self.now_ns.saturating_sub(from_ns)),
            tracing: self.tracing.share(),
            coverage: &self.layers.clone().finish().0,
            losses: &losses,
            aggregate,
            nodes: self.nodes,
        };
        Evaluated::of(groups, (&others, &self.pids), &trace, &Config::default()).named(&self.names)
    }
}

/// Remembers a name while there is room: the first ones are those of what has been used for longest.
fn keep(names: &mut HashMap<i32, String>, id: i32, name: &str) {
    if names.len() < NAMES_MAX || names.contains_key(&id) {
        names.insert(id, name.to_owned());
    }
}
