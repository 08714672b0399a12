//! Calls that are alike, with what they spent: one pass over the calls makes groups of them, and rules claim parts of their time.

pub mod busy;
mod fold;
pub mod group;
mod index;
mod known;
pub mod limits;
pub mod paid;
pub mod ranges;
pub mod same;

use roaring::RoaringBitmap;

use crate::HashMap;
use crate::analysis::calls::is_estimated;
use crate::analysis::findings::groups::busy::Busy;
use crate::analysis::findings::groups::fold::{fold, folded, light};
use crate::analysis::findings::groups::group::{BETWEEN, Group, Key, Met, operation_of};
use crate::analysis::findings::groups::index::Index;
use crate::analysis::findings::groups::known::Known;
use crate::analysis::findings::groups::limits::{Limit, Limits};
use crate::analysis::findings::groups::ranges::{Accesses, Caller, Ends};
use crate::analysis::nesting::{Enclosing, is_phase};
use crate::rows::{FileRollup, SEQ_BITS, Span};
use crate::vocabulary::{Kind, Layer, flag};

/// A pause between two calls up to which it belongs to the first one, in ns: the code around a call in a loop, also of an
/// interpreter.
const BETWEEN_MAX: i64 = 100_000;
/// The same after a buffer of stdio was filled or emptied, while calls that use it are not recorded.
const BRIEF_MAX: i64 = 10_000_000;
/// Groups that are kept apart by file; those that come later are one for all files.
const GROUPS_MAX: usize = 1 << 16;
/// So many times as many there are in all before those of most ranks are folded.
const ALL_TIMES: usize = 4;

/// A thread that makes calls.
#[derive(Debug, Clone, Default)]
struct Thread {
    /// The call of the program that it is in, or was in last.
    call: i64,
    part: Option<Part>,
    /// What it is, if it is a library's.
    caller: Option<Caller>,
    /// The end of the last one that is not asynchronous, and its group.
    end: i64,
    group: Option<usize>,
}

/// What a call is part of: the function that the program called, and whether that is collective.
type Part = ((Layer, &'static str), bool);
/// Operations that are remembered for what other threads do for them.
const OPERATIONS_MAX: usize = 1 << 20;
/// Accesses of ranks, and blocks in which they end, that are remembered for each group that is kept apart.
const ACCESSES: usize = 4;
const BLOCKS: usize = 8;
/// Handles whose last transfer is remembered, and calls of phases.
const REMEMBERED_MAX: usize = 1 << 17;

/// Groups of all calls.
#[derive(Debug, Clone)]
pub struct Groups {
    pub all: Vec<Group>,
    pub processes: HashMap<i32, Busy>,
    index: Index,
    threads: HashMap<i64, Thread>,
    operations: HashMap<i64, Part>,
    /// Where ranks meet in files.
    ends: Ends,
    pub accesses: Accesses,
    /// Bytes that calls of demoted functions wrote, by file and layer: there are no other figures of these calls.
    demoted: HashMap<(i32, Layer), i64>,
    /// On which calls of ranks were made.
    pub cpus: RoaringBitmap,
    /// The last transfer of a handle.
    last: HashMap<i32, Kind>,
    /// Functions of phases by their calls.
    pub phases: HashMap<i64, &'static str>,
    known: Known,
    /// So many are kept apart by file, and so many there are in all.
    most: usize,
    most_in_all: usize,
    /// Processes whose groups are folded.
    folded: RoaringBitmap,
    full: Limits,
}

impl Default for Groups {
    fn default() -> Self {
        Self::limited(GROUPS_MAX)
    }
}

/// A call that copies a file of an overlay up takes at least so long, in ns: others find it there.
const COPY_MIN: i64 = 2_000_000;

fn changes_names(span: &Span) -> bool {
    span.layer == Layer::Syscall && matches!(span.kind, Kind::Open | Kind::Meta) && span.net_ns() >= COPY_MIN
}

impl Groups {
    /// Keeps at most so many groups apart by file.
    pub fn limited(most: usize) -> Self {
        Self {
            all: Vec::new(),
            processes: HashMap::default(),
            index: Index::default(),
            threads: HashMap::default(),
            operations: HashMap::default(),
            ends: Ends::limited(most.saturating_mul(BLOCKS)),
            accesses: Accesses::limited(most.saturating_mul(ACCESSES)),
            demoted: HashMap::default(),
            cpus: RoaringBitmap::new(),
            last: HashMap::default(),
            phases: HashMap::default(),
            known: Known::default(),
            most,
            most_in_all: most.saturating_mul(ALL_TIMES),
            folded: RoaringBitmap::new(),
            full: Limits::default(),
        }
    }

    /// Folds groups when there are so many in all.
    #[cfg(test)]
    pub fn folding_at(most_in_all: usize) -> Self {
        Self { most_in_all, ..Self::default() }
    }

    /// Is what is known of one of these processes only a part?
    pub fn is_folded(&self, mut processes: impl Iterator<Item = i32>) -> bool {
        processes.any(|ix| self.folds(ix))
    }

    fn folds(&self, process: i32) -> bool {
        !self.folded.is_empty() && self.folded.contains(process as u32)
    }

    /// Makes room: what comes next is folded, too.
    fn fold_light(&mut self) {
        let light = light(&self.all, &self.processes);
        if light.is_subset(&self.folded) {
            self.most_in_all = self.all.len().saturating_mul(2);
            return;
        }
        self.folded |= light;
        let is_light = &self.folded;
        let (index, moved) = fold(&mut self.all, |ix| is_light.contains(ix as u32));
        self.threads.values_mut().for_each(|thread| thread.group = thread.group.map(|at| moved[at]));
        self.index = index;
        self.most_in_all = self.most_in_all.max(self.all.len() * 2);
    }

    /// The limits that were reached.
    pub fn limits(&self) -> Limits {
        let reached = [
            (self.ends.is_full(), Limit::Blocks),
            (self.accesses.is_full(), Limit::Orders),
            (self.known.same.is_full(), Limit::Files),
            (self.all.iter().any(Group::has_more_paths), Limit::Paths),
        ];
        reached.into_iter().filter(|(is, _)| *is).fold(self.full, |mut all, (_, limit)| {
            all.reach(limit);
            all
        })
    }

    /// What calls do not show themselves.
    pub const fn known(&mut self) -> &mut Known {
        &mut self.known
    }

    /// The id that stands for a file, where several datasets have one of their own for it.
    pub fn file(&self, id: Option<i32>) -> Option<i32> {
        self.known.same.other(id).or(id)
    }

    /// The stripe size of a file that is spread over targets.
    pub fn stripe(&self, file: i32) -> Option<i64> {
        self.known.stripe(file)
    }

    /// Bytes that calls of demoted functions of a layer wrote to a file.
    pub fn demoted(&self, file: i32, layer: Layer) -> i64 {
        self.demoted.get(&(file, layer)).copied().unwrap_or(0)
    }

    /// Knows what another one knows of handles and files.
    pub fn knows(&mut self, other: &Self) {
        self.known.clone_from(&other.known);
    }

    /// The calls so far: those that come next are of another time. Threads without a call since then are forgotten.
    #[must_use]
    pub fn split(&mut self, since_ns: i64) -> Self {
        let full = self.limits();
        self.threads.retain(|_, thread| thread.end >= since_ns);
        self.threads.values_mut().for_each(|thread| thread.group = None);
        self.operations.clear();
        self.known.forget_creators();
        let (all, processes) = (std::mem::take(&mut self.all), std::mem::take(&mut self.processes));
        let (index, accesses) = (std::mem::take(&mut self.index), self.accesses.split());
        let (phases, demoted) = (std::mem::take(&mut self.phases), std::mem::take(&mut self.demoted));
        let (cpus, folded) = (std::mem::take(&mut self.cpus), std::mem::take(&mut self.folded));
        self.most_in_all = self.most.saturating_mul(ALL_TIMES);
        (self.full, self.ends) = (Limits::default(), Ends::limited(self.most.saturating_mul(BLOCKS)));
        Self { all, processes, index, accesses, demoted, cpus, phases, folded, full, ..Self::limited(self.most) }
    }

    /// Adds the calls of another time.
    pub fn merge(&mut self, later: &Self) {
        self.full = self.full.and(later.limits());
        self.accesses.merge(&later.accesses);
        self.phases.extend(&later.phases);
        later.demoted.iter().for_each(|(key, bytes)| self.add_demoted(*key, *bytes));
        for (size, files) in &later.known.stripes {
            *self.known.stripes.entry(*size).or_default() |= files;
        }
        self.cpus |= &later.cpus;
        self.folded |= &later.folded;
        for group in &later.all {
            let at = self.at(group.key);
            self.all[at].merge(group);
        }
        for (ix, busy) in &later.processes {
            self.processes.entry(*ix).and_modify(|known| known.take(busy)).or_insert_with(|| busy.clone());
        }
    }

    /// Takes a span, in the order of the dataset.
    pub fn span(&mut self, span: &Span, around: &Enclosing) {
        let node = span.file_id.map_or(0, |file| self.known.same.node(file));
        match self.known.same.other(span.file_id) {
            Some(file) => self.call(&Span { file_id: Some(file), ..span.clone() }, around, node),
            None => self.call(span, around, node),
        }
    }

    /// A call on a file that was opened on this node.
    fn call(&mut self, span: &Span, around: &Enclosing, node: u32) {
        let own = around.is_own(span);
        if is_phase(span) && self.phases.len() < REMEMBERED_MAX {
            self.phases.insert(span.span_id, span.op);
        }
        // Functions inside the kernel are in the time of their system call.
        if is_phase(span) || (span.layer > Layer::Syscall && !own) {
            return;
        }
        let (called, collective) = self.part_of(span, around);
        let key = Key {
            process: span.process_ix,
            file: if by_file(span.kind) { span.file_id } else { None },
            called,
            layer: span.layer,
            op: span.op,
            kind: span.kind,
            direct: span.flags & flag::DIRECT != 0,
            synced: span.kind == Kind::Write && span.handle_id.is_some_and(|id| self.known.synced.contains(id as u32)),
            collective,
            creates: self.known.creates(span),
            errno: if span.layer == Layer::Syscall { span.errno } else { 0 },
        };
        let at = self.at(key);
        let met = self.meets(span);
        self.all[at].add(span, around.phase, met);
        if self.known.places(span) {
            self.accesses.add(span, self.caller(span, own, collective), node);
        }
        if changes_names(span) && span.file_id.is_some_and(|id| self.known.overlay.contains(id as u32)) {
            self.all[at].add_copied_up(span.net_ns());
        }
        let asynchronous = span.flags & flag::ASYNC != 0;
        if asynchronous && span.layer < Layer::Syscall {
            if self.operations.len() >= OPERATIONS_MAX {
                self.operations.clear();
                self.full.reach(Limit::Operations);
            }
            self.operations.insert(span.span_id, (called, collective));
        }
        if !own {
            if self.submits(span, around) {
                self.busy(span);
            }
            self.pays(span, own, at);
            return;
        }
        let thread = self.threads.entry(span.span_id >> SEQ_BITS).or_default();
        (thread.call, thread.part) = (span.span_id, Some((called, collective)));
        let asked = span.req_bytes.or(span.bytes).unwrap_or(0);
        thread.caller = Some(Caller { kind: span.kind, asked, collective });
        if asynchronous {
            return;
        }
        let (before, end) = (thread.group.replace(at), thread.end);
        thread.end = span.end_ns();
        self.busy(span);
        self.pays(span, own, at);
        let pause = span.start_ns.saturating_sub(end);
        let most = |at: usize| if self.all[at].key.refills() { BRIEF_MAX } else { BETWEEN_MAX };
        if let Some(before) = before.filter(|at| (0..=most(*at)).contains(&pause)) {
            let time = &mut self.all[before].time[BETWEEN];
            *time = time.saturating_add(pause);
        }
    }

    /// Is it a system call that a thread makes to submit an operation, which itself takes no time of the thread?
    fn submits(&self, span: &Span, around: &Enclosing) -> bool {
        let inside =
            |(id, _): (i64, Layer)| id >> SEQ_BITS == span.span_id >> SEQ_BITS && self.operations.contains_key(&id);
        span.layer == Layer::Syscall && span.layer_top && around.call.is_some_and(inside)
    }

    /// What others of its file or handle have left for a transfer.
    fn meets(&mut self, span: &Span) -> Met {
        if !matches!(span.kind, Kind::Read | Kind::Write) || span.errno != 0 {
            return Met::default();
        }
        let mut met = Met::default();
        if let Some(handle) = span.handle_id.filter(|_| span.layer == Layer::Stdio && span.layer_top) {
            if self.last.len() >= REMEMBERED_MAX && !self.last.contains_key(&handle) {
                self.last.clear();
                self.full.reach(Limit::Streams);
            }
            met.turned = self.last.insert(handle, span.kind).is_some_and(|before| before != span.kind);
        }
        if span.layer == Layer::Syscall && span.rank.is_some() && span.kind == Kind::Write {
            met.rank = self.ends.meets(span, self.known.block(span.file_id));
        }
        met
    }

    /// The call of a library that a system call is part of; what is in one that is not known counts as in a collective one.
    fn caller(&self, span: &Span, own: bool, collective: bool) -> Option<Caller> {
        let known = self.threads.get(&(span.span_id >> SEQ_BITS)).and_then(|thread| thread.caller);
        let unknown = Caller { kind: Kind::Other, asked: 0, collective: true };
        (!own).then(|| Caller { collective, ..known.unwrap_or(unknown) })
    }

    fn busy(&mut self, span: &Span) {
        let busy = self.process(span.process_ix);
        (busy.pid, busy.rank) = (span.pid, span.rank.or(busy.rank));
        busy.add(span.start_ns, span.end_ns());
    }

    fn process(&mut self, ix: i32) -> &mut Busy {
        let processes = self.processes.len();
        self.processes.entry(ix).or_insert_with(|| Busy::of_many(processes))
    }

    /// What hooks a rank pays for in a call, and what it waits for other ranks.
    fn pays(&mut self, span: &Span, own: bool, at: usize) {
        let processes = self.processes.len();
        if let Some(busy) = self.processes.get_mut(&span.process_ix).filter(|_| span.rank.is_some()) {
            busy.paid_of_many(processes).add(span, own, self.all[at].waits());
            self.cpus.insert(span.cpu as u32);
        }
    }

    /// What a call of the program or inside one is part of.
    fn part_of(&self, span: &Span, around: &Enclosing) -> Part {
        let itself = ((span.layer, span.op), span.flags & flag::COLLECTIVE != 0);
        let Some((id, layer)) = around.call.filter(|_| !around.is_own(span)) else { return itself };
        let thread = self.threads.get(&(span.span_id >> SEQ_BITS)).filter(|thread| thread.call == id);
        let operation = || operation_of(span).and_then(|id| self.operations.get(&id).copied());
        let (called, collective) =
            thread.and_then(|thread| thread.part).or_else(operation).unwrap_or(((layer, ""), false));
        (called, collective || itself.1)
    }

    /// Takes calls that were summed up in the kernel: which calls they are part of is not known.
    pub fn sums(&mut self, row: &FileRollup) {
        if row.layer > Layer::Syscall {
            return;
        }
        let brief = is_estimated(row) && row.layer == Layer::Stdio;
        if row.calls_error.is_some() {
            if let Some(file) = self.file(row.file_id).filter(|_| row.kind == Kind::Write) {
                self.add_demoted((file, row.layer), row.bytes);
            }
            if !brief {
                return;
            }
        }
        let key = Key {
            process: row.process_ix.unwrap_or(-1),
            file: if by_file(row.kind) { self.file(row.file_id) } else { None },
            called: (row.layer, row.op),
            layer: row.layer,
            op: row.op,
            kind: row.kind,
            direct: false,
            synced: false,
            collective: false,
            creates: false,
            errno: 0,
        };
        let at = self.at(key);
        if brief {
            self.all[at].add_brief(row);
            return;
        }
        self.all[at].add_sum(row);
        let busy = self.process(key.process);
        (busy.pid, busy.rank) = (row.pid.unwrap_or(busy.pid), row.rank.or(busy.rank));
        if let (Some(first), Some(last)) = (row.first_ns, row.last_ns) {
            busy.add_sum((first, last), row.self_ns);
        }
    }

    fn add_demoted(&mut self, key: (i32, Layer), bytes: i64) {
        if self.demoted.len() >= self.most && !self.demoted.contains_key(&key) {
            return self.full.reach(Limit::Groups);
        }
        let sum = self.demoted.entry(key).or_default();
        *sum = sum.saturating_add(bytes);
    }

    fn at(&mut self, mut key: Key) -> usize {
        if self.folds(key.process) {
            key = folded(key);
        }
        if let Some(at) = self.index.get(&key, &self.all) {
            return at;
        }
        if self.all.len() >= self.most && key.file.is_some() {
            key.file = None;
            let at = self.at(key);
            self.all[at].mixed = true;
            self.full.reach(Limit::Groups);
            return at;
        }
        if self.all.len() >= self.most_in_all {
            self.fold_light();
            return self.at(key);
        }
        let at = self.all.len();
        if at == self.all.capacity() {
            // By a quarter, not to twice as many: there can be a million.
            self.all.reserve_exact((at / 4).max(64));
        }
        self.all.push(Group::new(key));
        self.index.insert_last(&self.all);
        at
    }
}

/// Do calls of this kind make a group for each file?
fn by_file(kind: Kind) -> bool {
    matches!(kind, Kind::Read | Kind::Write | Kind::Sync | Kind::Mmap)
}
