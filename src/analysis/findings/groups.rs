//! Calls that are alike, with what they spent: one pass over the calls makes groups of them, and rules claim parts of their time.

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::HashMap;
use crate::analysis::calls::is_estimated;
use crate::analysis::findings::busy::Busy;
use crate::analysis::findings::group::{BETWEEN, Group, Key, Met, operation_of};
use crate::analysis::findings::lanes;
use crate::analysis::findings::ranges::{Accesses, Caller, Ends};
use crate::analysis::nesting::{Enclosing, is_phase};
use crate::rows::{File, FileRollup, Handle, SEQ_BITS, Span};
use crate::vocabulary::{Kind, Layer, flag};

/// A pause between two calls up to which it belongs to the first one, in ns: the code around a call in a loop, also of an
/// interpreter.
const BETWEEN_MAX: i64 = 100_000;
/// The same after a buffer of stdio was filled or emptied, while calls that use it are not recorded.
const BRIEF_MAX: i64 = 10_000_000;
/// Groups that are kept apart by file; those that come later are one for all files.
const GROUPS_MAX: usize = 1 << 16;

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
/// Accesses of ranks that are remembered for each group that is kept apart.
const ACCESSES: usize = 4;
/// Handles whose last transfer is remembered, and calls of phases.
const REMEMBERED_MAX: usize = 1 << 17;

/// Groups of all calls.
#[derive(Debug, Clone)]
pub struct Groups {
    pub all: Vec<Group>,
    pub processes: HashMap<i32, Busy>,
    index: HashMap<Key, usize>,
    threads: HashMap<i64, Thread>,
    operations: HashMap<i64, Part>,
    /// Where ranks meet in files.
    ends: Ends,
    pub accesses: Accesses,
    /// On which calls of ranks were made.
    pub cpus: RoaringBitmap,
    /// The last transfer of a handle.
    last: HashMap<i32, Kind>,
    /// Functions of phases by their calls.
    pub phases: HashMap<i64, &'static str>,
    known: Known,
    /// So many are kept apart by file.
    most: usize,
}

impl Default for Groups {
    fn default() -> Self {
        Self::limited(GROUPS_MAX)
    }
}

/// What calls do not show themselves.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Handles with `O_SYNC` or `O_DSYNC`.
    pub synced: RoaringBitmap,
    /// Files of overlays.
    pub overlay: RoaringBitmap,
    /// Handles with `O_CREAT`, and the calls that opened them.
    pub creating: RoaringBitmap,
    pub creators: RoaringTreemap,
    /// Handles with `O_APPEND`: the kernel gives each write its place.
    pub appending: RoaringBitmap,
    /// Files that are no data: standard streams, devices, those of /proc, libraries.
    pub special: RoaringBitmap,
    /// Bytes of a file on one target of a parallel file system before the next.
    pub stripes: HashMap<i32, i64>,
}

/// `O_DSYNC`, which is part of `O_SYNC`.
const O_DSYNC: i32 = 0o10_000;
const O_CREAT: i32 = 0o100;
const O_APPEND: i32 = 0o2000;
/// What file systems keep together: pages, and their own blocks.
const BLOCK: i64 = 4096;

impl Known {
    pub fn handle(&mut self, handle: &Handle) {
        let has = |flag: i32| handle.layer == Layer::Syscall && handle.mode.is_some_and(|mode| mode & flag != 0);
        if has(O_DSYNC) {
            self.synced.insert(handle.handle_id as u32);
        }
        if has(O_APPEND) {
            self.appending.insert(handle.handle_id as u32);
        }
        if has(O_CREAT) {
            self.creating.insert(handle.handle_id as u32);
            self.creators.extend(handle.open_span_id.map(|id| id as u64));
        }
    }

    pub fn file(&mut self, file: &File) {
        if file.fstype.as_deref() == Some("overlay") {
            self.overlay.insert(file.file_id as u32);
        }
        if !["data", "temp"].contains(&file.role) || file.fstype.as_deref() == Some("devtmpfs") {
            self.special.insert(file.file_id as u32);
        }
        if let Some(size) = file.stripe_size.filter(|size| *size > 0) {
            self.stripes.insert(file.file_id, size);
        }
    }

    /// Does a call open a file with `O_CREAT`, or close one that was opened so?
    fn creates(&self, span: &Span) -> bool {
        match span.kind {
            Kind::Open => self.creators.contains(span.span_id as u64),
            Kind::Close => span.handle_id.is_some_and(|id| self.creating.contains(id as u32)),
            _ => false,
        }
    }

    /// Does a call choose the place of its data in a file itself?
    fn places(&self, span: &Span) -> bool {
        let appends = span.handle_id.is_some_and(|id| self.appending.contains(id as u32));
        let special = span.file_id.is_some_and(|id| self.special.contains(id as u32));
        !appends && !special
    }

    /// What of a file is kept together: a stripe, or a block.
    fn block(&self, file: Option<i32>) -> i64 {
        file.and_then(|file| self.stripes.get(&file).copied()).unwrap_or(BLOCK)
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
            index: HashMap::default(),
            threads: HashMap::default(),
            operations: HashMap::default(),
            ends: Ends::default(),
            accesses: Accesses::limited(most.saturating_mul(ACCESSES)),
            cpus: RoaringBitmap::new(),
            last: HashMap::default(),
            phases: HashMap::default(),
            known: Known::default(),
            most,
        }
    }

    /// What calls do not show themselves.
    pub const fn known(&mut self) -> &mut Known {
        &mut self.known
    }

    /// The stripe size of a file that is spread over targets.
    pub fn stripe(&self, file: i32) -> Option<i64> {
        self.known.stripes.get(&file).copied()
    }

    /// Knows what another one knows of handles and files.
    pub fn knows(&mut self, other: &Self) {
        self.known.clone_from(&other.known);
    }

    /// The calls so far: those that come next are of another time. Threads without a call since then are forgotten.
    #[must_use]
    pub fn split(&mut self, since_ns: i64) -> Self {
        self.threads.retain(|_, thread| thread.end >= since_ns);
        self.threads.values_mut().for_each(|thread| thread.group = None);
        self.operations.clear();
        let (all, processes) = (std::mem::take(&mut self.all), std::mem::take(&mut self.processes));
        let (index, accesses) = (std::mem::take(&mut self.index), self.accesses.split());
        let (phases, cpus) = (std::mem::take(&mut self.phases), std::mem::take(&mut self.cpus));
        Self { all, processes, index, accesses, phases, cpus, ..Self::limited(self.most) }
    }

    /// Adds the calls of another time.
    pub fn merge(&mut self, later: &Self) {
        self.accesses.merge(&later.accesses);
        self.phases.extend(&later.phases);
        self.cpus |= &later.cpus;
        self.known.stripes.extend(&later.known.stripes);
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
            self.accesses.add(span, self.caller(span, own, collective));
        }
        if changes_names(span) && span.file_id.is_some_and(|id| self.known.overlay.contains(id as u32)) {
            self.all[at].copied_up = self.all[at].copied_up.saturating_add(span.net_ns());
        }
        let asynchronous = span.flags & flag::ASYNC != 0;
        if asynchronous && span.layer < Layer::Syscall && self.operations.len() < OPERATIONS_MAX {
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
        if let Some(handle) = span.handle_id.filter(|_| span.layer == Layer::Stdio && span.layer_top)
            && (self.last.len() < REMEMBERED_MAX || self.last.contains_key(&handle))
        {
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
        let busy = self.processes.entry(span.process_ix).or_default();
        (busy.pid, busy.rank) = (span.pid, span.rank.or(busy.rank));
        busy.add(span.start_ns, span.end_ns());
    }

    /// What hooks a rank pays for in a call, and what it waits for other ranks.
    fn pays(&mut self, span: &Span, own: bool, at: usize) {
        if let Some(busy) = self.processes.get_mut(&span.process_ix).filter(|_| span.rank.is_some()) {
            busy.paid.add(span, own, lanes::waits(&self.all[at]));
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
        let brief = is_estimated(row) && row.layer == Layer::Stdio;
        if row.layer > Layer::Syscall || (row.calls_error.is_some() && !brief) {
            return;
        }
        let key = Key {
            process: row.process_ix.unwrap_or(-1),
            file: if by_file(row.kind) { row.file_id } else { None },
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
        let busy = self.processes.entry(key.process).or_default();
        (busy.pid, busy.rank) = (row.pid.unwrap_or(busy.pid), row.rank.or(busy.rank));
        if let (Some(first), Some(last)) = (row.first_ns, row.last_ns) {
            busy.add_sum((first, last), row.self_ns);
        }
    }

    fn at(&mut self, mut key: Key) -> usize {
        if let Some(at) = self.index.get(&key) {
            return *at;
        }
        if self.all.len() >= self.most && key.file.is_some() {
            key.file = None;
            return self.at(key);
        }
        let at = self.all.len();
        self.all.push(Group::new(key));
        self.index.insert(key, at);
        at
    }
}

/// Do calls of this kind make a group for each file?
fn by_file(kind: Kind) -> bool {
    matches!(kind, Kind::Read | Kind::Write | Kind::Sync | Kind::Mmap)
}
