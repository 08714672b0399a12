//! Remembers the last row of each entity (process, file, ...), so that a new dataset describes whatever its rows refer to.
//!
//! An entity is described again in a dataset when the first row there refers to it. What no row can refer to any more is
//! forgotten: entities that have ended, files and objects that are not open, once a whole dataset was without them, or many
//! others have come since.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::analysis::trace::share::{HELD_NS, HOOKS_NS, TRACING_NS};
use crate::rows::{
    CallPath, Coverage, File, FilePath, Handle, Meta, Metric, Mount, Object, Process, Row, SEQ_BITS, Thread,
};

/// Facts that each dataset has its own of.
pub const OWN: [&str; 3] = ["t0_ns", "t0_wall_ns", crate::export::reading::shift::END];
/// The same, with a number behind.
pub const CLOCK_PAIR: &str = "clock_pair_";
/// The start of the trace on its clock, in each dataset: ids mean the same entities in all datasets that have it in common.
pub const RUN: &str = "run_t0_ns";

/// Figures that count from the start of the trace, and in a dataset from its own.
const TOTALS: [&str; 8] = [
    "excluded_calls",
    "excluded_faults",
    "unplaced_faults",
    "unplaced_calls",
    "unknown_bytes",
    HOOKS_NS,
    TRACING_NS,
    HELD_NS,
];
/// What the names of figures begin with that the kernel counts for the whole node.
const NODE: &str = "node_";
/// Verdicts that are remembered at most, the last ones.
const MAX_VERDICTS: usize = 1 << 18;

/// So many entities come before those that no row can refer to any more are looked for within a dataset.
pub const MANY: usize = 32_768;

/// So many processes are remembered to the end of a dataset: what they wrote may reach a device long after they have ended.
const PROCESSES: usize = 16_384;
/// So many figures of the node are remembered: those of interfaces that are gone do not change any more, and no row says that
/// they are gone.
const FIGURES: usize = 8192;
/// Those of interfaces, which come and go by the thousands. Others may be written once for the whole run.
const NETWORK: &str = "node_network_";

/// A row that is retained, for the datasets after the one that it was written to.
struct RetainedRow<T> {
    row: T,
    /// The dataset that it was last written to.
    written: u32,
    /// The last look before it was mentioned.
    look: u32,
}

/// Behind pointers: a table with room for twice as many as it holds, made anew as it grows, is the smaller for it.
type All<T> = HashMap<i32, Box<RetainedRow<T>>>;

/// What rows refer to.
#[derive(Default)]
struct References {
    processes: [Option<i32>; 2],
    thread: Option<i32>,
    file: Option<i32>,
    handle: Option<i32>,
    object: Option<i32>,
    paths: [Option<i32>; 2],
}

impl References {
    fn of(row: &Row) -> Self {
        let none = Self::default();
        match row {
            Row::Span(s) => Self {
                processes: [Some(s.process_ix), None],
                thread: Some((s.span_id >> SEQ_BITS) as i32),
                file: s.file_id,
                handle: s.handle_id,
                object: s.object_id,
                paths: [s.path_id, s.path2_id],
            },
            Row::BlockBytes(b) => Self { processes: [b.process_ix, None], file: b.file_id, ..none },
            Row::Rpc(r) => Self { processes: [r.client_process_ix, Some(r.server_process_ix)], ..none },
            Row::Rollup(r) => Self { processes: [Some(r.process_ix), None], ..none },
            Row::FileRollup(r) => {
                Self { processes: [r.process_ix, None], file: r.file_id, object: r.object_id, ..none }
            }
            Row::Handle(h) => Self {
                processes: [Some(h.process_ix), None],
                file: h.file_id,
                handle: h.parent_handle_id,
                object: h.object_id,
                ..none
            },
            Row::Object(o) => Self { file: o.file_id, handle: o.handle_id, ..none },
            Row::Thread(t) => Self { processes: [Some(t.process_ix), None], ..none },
            Row::FilePath(p) => Self { file: Some(p.file_id), ..none },
            _ => none,
        }
    }
}

/// What was forgotten: the correlator must describe it anew when it is used again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub files: Vec<i32>,
    pub objects: Vec<i32>,
    pub handles: Vec<i32>,
    pub paths: Vec<i32>,
}

/// What is remembered.
#[derive(Default)]
pub struct Described {
    /// The number of the dataset.
    now: u32,
    /// How often datasets were searched for entities to forget, and at how many entities that is done next.
    look: u32,
    next: usize,
    /// What was forgotten so.
    forgotten: Forgotten,
    processes: All<Process>,
    threads: All<Thread>,
    files: All<File>,
    /// The last path of a file.
    paths: HashMap<i32, FilePath>,
    /// Paths that calls name.
    named: All<CallPath>,
    handles: All<Handle>,
    objects: All<Object>,
    mounts: BTreeMap<i32, Mount>,
    verdicts: VecDeque<Coverage>,
    meta: BTreeMap<String, String>,
    /// Figures of the node: they are written when they change.
    node: BTreeMap<(&'static str, Option<String>), Metric>,
    /// How many of them there are when some are forgotten next: those of a thousand disks all stay.
    figures: usize,
    /// Totals now, and when the dataset began.
    totals: HashMap<(&'static str, Option<String>), (f64, f64)>,
}

/// Marks an entity as written to this dataset, and mentioned since this look; its row, if it was not yet.
fn again<T: Clone>(all: &mut All<T>, id: i32, (now, look): (u32, u32)) -> Option<T> {
    let known = all.get_mut(&id)?;
    known.look = look;
    (std::mem::replace(&mut known.written, now) != now).then(|| known.row.clone())
}

/// Drops those that do not stay, and after many of them their room.
fn keep_only<T>(all: &mut All<T>, mut stays: impl FnMut(i32, &RetainedRow<T>) -> bool) {
    all.retain(|id, known| stays(*id, known));
    all.shrink_to(4 * all.len());
}

/// Whether a figure counts from the start of a dataset.
pub fn is_total(metric: &Metric) -> bool {
    TOTALS.contains(&metric.name)
}

/// Whether it is of the node, so that it is written when it changes.
pub fn is_of_node(metric: &Metric) -> bool {
    metric.name.starts_with(NODE)
}

impl Described {
    /// The number of the dataset that rows go to.
    pub const fn number(&self) -> u32 {
        self.now
    }

    /// The last row of a file.
    pub fn file(&self, file_id: i32) -> Option<&File> {
        Some(&self.files.get(&file_id)?.row)
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values().map(|known| &known.row)
    }

    /// The last row of a process.
    pub fn process(&self, process_ix: i32) -> Option<&Process> {
        Some(&self.processes.get(&process_ix)?.row)
    }

    /// The last row of a thread.
    pub fn thread(&self, thread_ix: i32) -> Option<&Thread> {
        Some(&self.threads.get(&thread_ix)?.row)
    }

    /// The rows to write for this one: itself, and what describes the entities that it refers to.
    pub fn push(&mut self, mut row: Row, out: &mut Vec<Row>) {
        self.keep(&mut row);
        let at = out.len();
        out.push(row);
        self.describe(at, out);
    }

    fn keep(&mut self, row: &mut Row) {
        let (written, look) = (self.now, self.look);
        match row {
            Row::Process(r) => {
                drop(self.processes.insert(r.process_ix, Box::new(RetainedRow { row: (**r).clone(), written, look })));
            }
            Row::Thread(r) => {
                drop(self.threads.insert(r.thread_ix, Box::new(RetainedRow { row: r.clone(), written, look })));
            }
            Row::File(r) => {
                drop(self.files.insert(r.file_id, Box::new(RetainedRow { row: (**r).clone(), written, look })));
            }
            Row::FilePath(r) => drop(self.paths.insert(r.file_id, r.clone())),
            Row::CallPath(r) => {
                drop(self.named.insert(r.path_id, Box::new(RetainedRow { row: r.clone(), written, look })));
            }
            Row::Handle(r) => {
                drop(self.handles.insert(r.handle_id, Box::new(RetainedRow { row: r.clone(), written, look })));
            }
            Row::Object(r) => {
                drop(self.objects.insert(r.object_id, Box::new(RetainedRow { row: r.clone(), written, look })));
            }
            Row::Mount(r) => drop(self.mounts.insert(r.mount_id, (**r).clone())),
            // A verdict on a whole layer is one on the time until it is given.
            Row::Coverage(r) if !(r.target.is_empty() && r.symbol.is_empty()) => {
                if self.verdicts.len() == MAX_VERDICTS {
                    self.verdicts.pop_front();
                }
                self.verdicts.push_back(r.clone());
            }
            Row::Meta(r) if r.key.starts_with(CLOCK_PAIR) || OWN.contains(&r.key.as_str()) => {}
            Row::Meta(r) => drop(self.meta.insert(r.key.clone(), r.value.clone())),
            Row::Metric(r) if is_total(r) => {
                let (total, before) = self.totals.entry((r.name, r.label.clone())).or_default();
                *total = r.value;
                r.value -= *before;
            }
            Row::Metric(r) if is_of_node(r) => {
                drop(self.node.insert((r.name, r.label.clone()), r.clone()));
                if self.node.len() > self.figures.max(FIGURES) {
                    self.forget_figures();
                }
            }
            _ => {}
        }
    }

    /// Of figures of interfaces, forgets the half that did not change for longest.
    fn forget_figures(&mut self) {
        let may_go = |metric: &Metric| metric.name.starts_with(NETWORK);
        let mut times: Vec<i64> =
            self.node.values().filter(|metric| may_go(metric)).map(|metric| metric.t_ns).collect();
        let half = times.len() / 2;
        if half > 0 {
            let (_, middle, _) = times.select_nth_unstable(half);
            let middle = *middle;
            self.node.retain(|_, metric| metric.t_ns > middle || !may_go(metric));
        }
        self.figures = self.node.len() + FIGURES / 2;
    }

    /// Adds what describes the entities that the rows from this one on refer to, and those that these refer to.
    fn describe(&mut self, mut at: usize, out: &mut Vec<Row>) {
        let now = (self.now, self.look);
        while let Some(row) = out.get(at) {
            let References { processes, thread, file, handle, object, paths } = References::of(row);
            let processes = processes.into_iter().flatten();
            out.extend(
                processes.filter_map(|id| again(&mut self.processes, id, now)).map(|row| Row::Process(Box::new(row))),
            );
            out.extend(thread.and_then(|id| again(&mut self.threads, id, now)).map(Row::Thread));
            if let Some(row) = file.and_then(|id| again(&mut self.files, id, now)) {
                out.extend(self.paths.get(&row.file_id).cloned().map(Row::FilePath));
                out.push(Row::File(Box::new(row)));
            }
            out.extend(handle.and_then(|id| again(&mut self.handles, id, now)).map(Row::Handle));
            out.extend(object.and_then(|id| again(&mut self.objects, id, now)).map(Row::Object));
            let paths = paths.into_iter().flatten();
            out.extend(paths.filter_map(|id| again(&mut self.named, id, now)).map(Row::CallPath));
            at += 1;
        }
    }

    /// A new dataset begins: what holds for all of it.
    pub fn begin(&self, out: &mut Vec<Row>) {
        out.extend(self.node.values().cloned().map(Row::Metric));
        self.run(out);
    }

    /// What holds whenever a dataset begins.
    pub fn run(&self, out: &mut Vec<Row>) {
        out.extend(self.mounts.values().cloned().map(|m| Row::Mount(Box::new(m))));
        out.extend(self.verdicts.iter().cloned().map(Row::Coverage));
        out.extend(self.meta.iter().map(|(k, v)| Row::Meta(Meta { key: k.clone(), value: v.clone() })));
    }

    /// Within a dataset: when so many entities have come, or a quarter of those that had to stay, forgets what is over and not
    /// mentioned since that was done last.
    pub fn forget(&mut self, many: usize) -> Forgotten {
        if self.entities() >= self.next.max(many) {
            let look = self.look;
            self.drop_old(PROCESSES, |_, last| last >= look);
            self.look += 1;
            self.next = self.entities() + many.max(self.entities() / 4);
        }
        std::mem::take(&mut self.forgotten)
    }

    fn entities(&self) -> usize {
        let opened = self.files.len() + self.handles.len() + self.objects.len();
        self.processes.len() + self.threads.len() + opened + self.named.len()
    }

    /// The dataset ends. What it did not mention, and is over, is forgotten.
    pub fn end(&mut self) -> Forgotten {
        self.end_since(self.now)
    }

    /// The same when not only this one may have mentioned it, but any from that number on.
    pub fn end_since(&mut self, first: u32) -> Forgotten {
        self.now += 1;
        for (total, before) in self.totals.values_mut() {
            *before = *total;
        }
        self.drop_old(0, |written, _| written >= first);
        self.next = 0;
        std::mem::take(&mut self.forgotten)
    }

    /// Drops what is over and was not mentioned lately: by the dataset that it was written to last, and by the last look. Of
    /// processes and threads nothing, when there are no more processes than that.
    fn drop_old(&mut self, processes: usize, lately: impl Fn(u32, u32) -> bool) {
        let forgotten = &mut self.forgotten;
        let over = |p: &RetainedRow<Process>| p.row.end_ns.is_some() && !lately(p.written, p.look);
        let gone = |process: i32| process >= 0 && self.processes.get(&process).is_none_or(|p| over(p));
        let open =
            |h: &RetainedRow<Handle>| lately(h.written, h.look) || (h.row.end_ns.is_none() && !gone(h.row.process_ix));
        let named = self.objects.values().filter(|o| lately(o.written, o.look)).filter_map(|o| o.row.handle_id);
        let handles = self.handles.iter().filter(|(_, h)| open(h)).map(|(id, _)| *id).chain(named).collect();
        let handles = reached(&self.handles, &self.objects, handles);
        keep_only(&mut self.handles, |id, _| {
            let stays = handles.contains(&id);
            forgotten.handles.extend((!stays).then_some(id));
            stays
        });
        if self.processes.len() > processes {
            // What is described again refers to the process that opened it.
            let openers: HashSet<i32> = self.handles.values().map(|h| h.row.process_ix).collect();
            keep_only(&mut self.processes, |id, p| !over(p) || openers.contains(&id));
            let gone = |process: i32| process >= 0 && !self.processes.contains_key(&process);
            keep_only(&mut self.threads, |_, t| !gone(t.row.process_ix) || lately(t.written, t.look));
        }
        let of_handles: HashSet<i32> = self.handles.values().filter_map(|h| h.row.object_id).collect();
        keep_only(&mut self.objects, |id, o| {
            let stays = lately(o.written, o.look) || of_handles.contains(&id);
            forgotten.objects.extend((!stays).then_some(id));
            stays
        });
        let of_objects = self.objects.values().filter_map(|o| o.row.file_id);
        let open: HashSet<i32> = self.handles.values().filter_map(|h| h.row.file_id).chain(of_objects).collect();
        keep_only(&mut self.files, |id, f| {
            let stays = lately(f.written, f.look) || open.contains(&id);
            forgotten.files.extend((!stays).then_some(id));
            stays
        });
        keep_only(&mut self.named, |id, p| {
            let stays = lately(p.written, p.look);
            forgotten.paths.extend((!stays).then_some(id));
            stays
        });
        self.paths.retain(|id, _| self.files.contains_key(id));
        self.paths.shrink_to(4 * self.paths.len());
    }
}

/// These handles, and those that their rows lead to.
fn reached(all: &All<Handle>, objects: &All<Object>, mut handles: Vec<i32>) -> HashSet<i32> {
    let mut reached = HashSet::new();
    while let Some(id) = handles.pop() {
        if let Some(known) = all.get(&id).filter(|_| reached.insert(id)) {
            handles.extend(known.row.parent_handle_id);
            handles.extend(known.row.object_id.and_then(|o| objects.get(&o)?.row.handle_id));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::rotating::rotation_tests::{call, file, handle, process, thread};

    #[test]
    fn within_a_dataset_what_is_over_is_forgotten_when_many_others_have_come() {
        let mut described = Described::default();
        let mut out = Vec::new();
        let mut push = |described: &mut Described, row| described.push(row, &mut out);
        let open = [process(1, None), thread(1, 1), file(1), handle(1, None, 1, None, None)];
        for row in open {
            push(&mut described, row);
        }
        let mut forgotten = Vec::new();
        for n in 2..1000 {
            push(&mut described, file(n));
            push(&mut described, handle(n, None, n, None, Some(20)));
            // One is used again and again.
            push(&mut described, call(n as u32, 20, None, Some(2), None));
            forgotten.extend(described.forget(16).files);
            assert!(described.entities() < 64, "{} of {n}", described.entities());
        }
        // The last ones are there.
        assert!(described.files.contains_key(&999) && described.handles.contains_key(&999));
        assert!(described.files.contains_key(&1) && described.handles.contains_key(&1));
        assert!(described.files.contains_key(&2) && !described.handles.contains_key(&2));
        let unique: HashSet<i32> = forgotten.iter().copied().collect();
        assert_eq!(unique.len(), forgotten.len());
        assert!((3..1000).all(|n| unique.contains(&n) != described.files.contains_key(&n)));
        assert!(described.end().files.is_empty());
    }

    #[test]
    fn figures_of_interfaces_that_are_gone_are_forgotten() {
        let mut described = Described::default();
        let memory = Metric { t_ns: 0, name: "node_memory_bytes", label: Some("total".to_owned()), value: 1.0 };
        described.push(Row::Metric(memory), &mut Vec::new());
        for n in 0..3 * FIGURES as i64 {
            for (label, t_ns) in [(format!("veth{n} received"), n), ("eth0 received".to_owned(), n)] {
                let metric = Metric { t_ns, name: "node_network_bytes", label: Some(label), value: n as f64 };
                described.push(Row::Metric(metric), &mut Vec::new());
            }
        }
        let mut rows = Vec::new();
        described.begin(&mut rows);
        assert!((FIGURES / 2..=FIGURES).contains(&rows.len()), "{}", rows.len());
        assert!(described.node.contains_key(&("node_network_bytes", Some("eth0 received".to_owned()))));
        assert!(described.node.contains_key(&("node_memory_bytes", Some("total".to_owned()))));
        let last = format!("veth{} received", 3 * FIGURES - 1);
        assert!(described.node.contains_key(&("node_network_bytes", Some(last))));
    }

    #[test]
    fn the_opener_of_a_handle_is_known_as_long_as_the_handle() {
        let mut described = Described::default();
        let rows = [process(1, Some(5)), process(2, None), process(3, Some(5)), thread(2, 2), file(1)];
        for row in rows.into_iter().chain([handle(1, None, 1, None, Some(9))]) {
            described.push(row, &mut Vec::new());
        }
        // A child of the one that opened it, and has ended, goes on with it.
        described.look = 5;
        described.push(call(1, 20, Some(1), Some(1), None), &mut Vec::new());
        described.drop_old(0, |_, last| last >= 5);
        let known: HashSet<i32> = described.processes.keys().copied().collect();
        assert_eq!(known, HashSet::from([1, 2]));
        // When no process uses it any more, it is returned as forgotten.
        described.drop_old(0, |_, last| last >= 6);
        assert_eq!(described.end(), Forgotten { files: vec![1], handles: vec![1], ..Forgotten::default() });
        assert!(described.handles.is_empty() && described.processes.contains_key(&2));
    }
}
