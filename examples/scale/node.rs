//! The dataset of one node of a job, written as the tracer writes one.

use anyhow::{Context as _, Result, ensure};
use iotrace_bpf::correlate::CallSums;
use iotrace_bpf::export::formats::{self, Format, Weight, Wish};
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::{
    CallPath, File, FilePath, Handle, Loss, Meta, Metric, Object, Process, Row, Span, Stack, Thread,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::copied;
use super::id_ranges::{At, IdRanges, Kind};
use super::recorded::{Call, Recorded};
use super::sums::Sums;

/// The job.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub nodes: u32,
    /// Of a node.
    pub ranks: u32,
    /// Calls of a node, about.
    pub spans: u64,
    pub seconds: u64,
    pub seed: u64,
    /// So many have calls of their own; others have the same again, in other ranks.
    pub different: u32,
}

/// When the job began, in ns since 1970: 2026-11-27 10:00 UTC.
const BEGAN_NS: i64 = 1_795_773_600_000_000_000;
/// The day of that, as directories are called.
const DATE: &str = "2026-11-27";
/// Every so many nodes one has a clock that is off, and one is slower than the others.
const OFF: u32 = 10;
const SLOW: u32 = 100;
/// Pids of ranks begin here, and each has so many for its processes and threads.
const PIDS: i32 = 100_000;
const PIDS_OF_RANK: i32 = 100;

/// A number that looks like any other, made of some.
fn mixed(numbers: &[u64]) -> u64 {
    let step = |state: u64, number: &u64| {
        let mut z = (state ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    numbers.iter().fold(0, step)
}

impl Job {
    /// Steps of each rank, so that a node has about as many calls as it is to have.
    fn steps(&self, run: &Recorded) -> i32 {
        let (once, step) = run.calls_of_rank();
        let wanted = (self.spans / u64::from(self.ranks)).saturating_sub(once);
        wanted.div_ceil(step.max(1)).clamp(1, 10_000) as i32
    }

    /// Where the dataset of a node is in the tree of all.
    pub fn directory(&self, tree: &Path, node: u32) -> PathBuf {
        let start = BEGAN_NS + self.ahead_ns(node);
        tree.join(format!("date={DATE}/node={}/start={start}", Self::host(node)))
    }

    pub fn host(number: u32) -> String {
        format!("n{:05}", number + 1)
    }

    /// By how much the wall clock of a node is ahead, in ns: most are right, some are off by up to a second.
    pub fn ahead_ns(&self, node: u32) -> i64 {
        if node % OFF == 3 { (mixed(&[self.seed, 1, node.into()]) % 2_000_000_000) as i64 - 1_000_000_000 } else { 0 }
    }
}

const SECOND_NS: i64 = 1_000_000_000;

/// A figure of the tracer or the node over time.
struct Series {
    name: &'static str,
    label: Option<String>,
    first: f64,
    last: f64,
}

fn series(metrics: &[Metric]) -> Vec<Series> {
    let mut series = BTreeMap::<(&'static str, &Option<String>), (f64, f64)>::new();
    for row in metrics {
        series.entry((row.name, &row.label)).or_insert((row.value, row.value)).1 = row.value;
    }
    let one = |((name, label), (first, last)): ((&'static str, &Option<String>), _)| Series {
        name,
        label: label.clone(),
        first,
        last,
    };
    series.into_iter().map(one).collect()
}

/// One node.
struct Node<'a> {
    job: Job,
    run: &'a Recorded,
    ids: &'a IdRanges,
    number: u32,
    steps: i32,
    /// From one step to the next, and the time between the parts of a step, in ns.
    period_ns: i64,
    think_ns: i64,
}

impl<'a> Node<'a> {
    fn new(job: Job, run: &'a Recorded, ids: &'a IdRanges, number: u32) -> Self {
        let steps = job.steps(run);
        let period_ns = (job.seconds as i64 * SECOND_NS / i64::from(steps)).max(run.step_ns + SECOND_NS);
        let think_ns = (period_ns - run.step_ns) / run.chunks.max(1) as i64;
        Self { job, run, ids, number, steps, period_ns, think_ns }
    }
}

/// Writes a node, adds it to the tree of all, and returns what its calls come to. Without calls of its own it gets
/// those of a node that is there.
pub fn write(
    (job, number): (Job, u32),
    run: &Recorded,
    ids: &IdRanges,
    tree: &Path,
    calls_of: Option<u32>,
) -> Result<Sums> {
    let node = Node::new(job, run, ids, number);
    let host = Job::host(number);
    let path = tree.with_extension(&host);
    let mut writer =
        DatasetWriter::create(Options { path: &path, host: &host, force: false, owner: None, views: VIEWS })?;
    let mut sums = Sums::default();
    if calls_of.is_none() {
        node.calls(&mut writer, &mut sums)?;
    }
    node.entities(&mut writer)?;
    node.facts(&mut writer)?;
    writer.finish()?;
    let to_tree = Wish {
        to: Format::Hive,
        table: None,
        weight: Weight::Time,
        only: None,
        time: None,
        output: Some(tree),
        keep_days: None,
    };
    let left_out = formats::run(&path, &to_tree)?;
    ensure!(left_out.is_empty(), "{left_out:?}");
    std::fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    if let Some(other) = calls_of {
        let later = (number - other) * job.ranks;
        copied::copy(&job.directory(tree, other), &job.directory(tree, number), &host, later as i32)?;
    }
    Ok(sums)
}

/// Where in the run calls are written.
#[derive(Clone, Copy)]
struct Moment {
    at: At,
    later_ns: i64,
}

impl Node<'_> {
    fn end_ns(&self) -> i64 {
        self.period_ns * i64::from(self.steps)
    }

    fn calls(&self, writer: &mut DatasetWriter, sums: &mut Sums) -> Result<()> {
        let ranks = self.run.ranks.len();
        let of = |rank: i32| &self.run.ranks[rank as usize % ranks];
        let mut rollup = CallSums::default();
        let series = series(&self.run.metrics);
        let mut second = 0;
        let begin = |rank| Moment { at: At { rank, step: 0 }, later_ns: 0 };
        self.push(&self.run.launcher, begin(0), writer, (sums, &mut rollup))?;
        for rank in 0..self.job.ranks as i32 {
            self.push(&of(rank).once, begin(rank), writer, (sums, &mut rollup))?;
        }
        for (step, chunk) in (0..self.steps).flat_map(|step| (0..self.run.chunks).map(move |chunk| (step, chunk))) {
            let later_ns = i64::from(step) * self.period_ns + chunk as i64 * self.think_ns;
            let written = std::mem::take(&mut rollup).rows();
            written.into_iter().try_for_each(|row| writer.push(row))?;
            second = self.seconds(&series, second..later_ns / SECOND_NS, writer)?;
            for rank in 0..self.job.ranks as i32 {
                let Some(calls) = of(rank).step.get(chunk) else { continue };
                self.push(calls, Moment { at: At { rank, step }, later_ns }, writer, (sums, &mut rollup))?;
            }
        }
        rollup.rows().into_iter().try_for_each(|row| writer.push(row))?;
        self.seconds(&series, second..self.end_ns() / SECOND_NS, writer)?;
        Ok(())
    }

    /// The figures of each second, as from the first to the last recorded one; what is written meanwhile ends as it is
    /// due.
    fn seconds(&self, series: &[Series], seconds: Range<i64>, writer: &mut DatasetWriter) -> Result<i64> {
        let end = seconds.end.max(seconds.start);
        for second in seconds {
            for Series { name, label, first, last } in series {
                let value = first + (last - first) * second as f64 / (self.end_ns() / SECOND_NS) as f64;
                let t_ns = second * SECOND_NS;
                writer.push(Row::Metric(Metric { t_ns, name, label: label.clone(), value }))?;
            }
            writer.tick(Duration::from_secs(second as u64))?;
        }
        Ok(end)
    }

    fn push(
        &self,
        calls: &[Call],
        moment: Moment,
        writer: &mut DatasetWriter,
        (sums, rollup): (&mut Sums, &mut CallSums),
    ) -> Result<()> {
        for call in calls {
            let span = self.span(call, moment);
            sums.add(&span);
            rollup.add(&span);
            writer.push(Row::Span(Box::new(span)))?;
        }
        Ok(())
    }

    /// A call of another rank, another time. All times inside an outermost call become shorter by the same part, so
    /// that each call stays within the one around it.
    fn span(&self, call: &Call, Moment { at, later_ns }: Moment) -> Span {
        let old = &call.span;
        let part = self.part(call, at);
        let shorter = |ns: i64| ns * part / 1000;
        let some = |ns: Option<i64>| ns.map(shorter);
        let start_ns = call.root_ns + shorter(old.start_ns - call.root_ns);
        let end_ns = call.root_ns + shorter(old.end_ns() - call.root_ns);
        let ids = self.ids;
        Span {
            span_id: ids.span(old.span_id, at),
            parent_id: old.parent_id.map(|id| ids.span(id, at)),
            root_id: ids.span(old.root_id, at),
            async_id: old.async_id.map(|id| ids.span(id, at)),
            // The same of all ranks, and of each step another one.
            coll_id: old.coll_id.map(|id| (mixed(&[id as u64, at.step as u64]) >> 11) as i64),
            process_ix: ids.id(Kind::Process, old.process_ix, at),
            pid: self.pid(old.process_ix, old.pid, at),
            tid: self.pid(old.process_ix, old.tid, at),
            rank: old.rank.map(|_| self.rank(at)),
            cpu: old.rank.map_or(old.cpu, |_| at.rank as i16),
            start_ns: start_ns + later_ns,
            dur_ns: end_ns - start_ns,
            probe_ns: some(old.probe_ns),
            self_ns: shorter(old.self_ns),
            layer_ns: some(old.layer_ns),
            cpu_ns: some(old.cpu_ns),
            runq_ns: some(old.runq_ns),
            throttle_ns: some(old.throttle_ns),
            lock_ns: some(old.lock_ns),
            writeback_ns: some(old.writeback_ns),
            journal_ns: some(old.journal_ns),
            flush_ns: some(old.flush_ns),
            devqueue_ns: some(old.devqueue_ns),
            device_ns: some(old.device_ns),
            remote_ns: some(old.remote_ns),
            file_id: ids.some(Kind::File, old.file_id, at),
            handle_id: ids.some(Kind::Handle, old.handle_id, at),
            path_id: ids.some(Kind::Path, old.path_id, at),
            path2_id: ids.some(Kind::Path, old.path2_id, at),
            ..old.clone()
        }
    }

    /// How long an outermost call takes of what it took, in thousandths.
    fn part(&self, call: &Call, at: At) -> i64 {
        if call.met || self.number % SLOW == SLOW / 2 {
            return 1000;
        }
        let numbers = [self.number.into(), at.rank as u64, at.step as u64, call.span.root_id as u64];
        400 + (mixed(&[self.job.seed, mixed(&numbers)]) % 600) as i64
    }

    fn rank(&self, at: At) -> i32 {
        (self.number * self.job.ranks) as i32 + at.rank
    }

    /// Processes and threads of ranks have numbers of their own; those of the launcher keep theirs.
    fn pid(&self, process: i32, id: i32, at: At) -> i32 {
        if !self.run.rank_of.contains_key(&process) {
            return id;
        }
        // Threads are numbered from their process on.
        let first = self.run.processes.get(&process).map_or(id, |process| process.pid);
        PIDS + at.rank * PIDS_OF_RANK + (id - first).rem_euclid(PIDS_OF_RANK)
    }

    /// Every place at which there is one of what a recorded id names.
    fn everywhere(&self, kind: Kind, id: i32, owner: Option<usize>) -> impl Iterator<Item = At> {
        let (by_rank, by_step) = self.ids.is_multiplied(kind, id);
        let ranks = if by_rank { self.job.ranks as i32 } else { 1 };
        let steps = if by_step { self.steps } else { 1 };
        let sources = self.run.ranks.len();
        let is_its = move |rank: &i32| owner.is_none_or(|owner| *rank as usize % sources == owner);
        (0..ranks).filter(is_its).flat_map(move |rank| (0..steps).map(move |step| At { rank, step }))
    }

    fn entities(&self, writer: &mut DatasetWriter) -> Result<()> {
        let run = self.run;
        let owner = |process: i32| run.rank_of.get(&process).copied();
        for old in run.processes.values() {
            for at in self.everywhere(Kind::Process, old.process_ix, owner(old.process_ix)) {
                writer.push(Row::Process(Box::new(self.process(old, at))))?;
            }
        }
        for old in run.threads.values() {
            for at in self.everywhere(Kind::Thread, old.thread_ix, owner(old.process_ix)) {
                let id = |id| self.pid(old.process_ix, id, at);
                let thread = Thread {
                    thread_ix: self.ids.id(Kind::Thread, old.thread_ix, at),
                    process_ix: self.ids.id(Kind::Process, old.process_ix, at),
                    pid: id(old.pid),
                    tid: id(old.tid),
                    ..old.clone()
                };
                writer.push(Row::Thread(thread))?;
            }
        }
        for old in run.handles.values() {
            for at in self.everywhere(Kind::Handle, old.handle_id, owner(old.process_ix)) {
                writer.push(Row::Handle(self.handle(old, at)))?;
            }
        }
        self.names(writer)
    }

    fn process(&self, old: &Process, at: At) -> Process {
        let is_rank = old.rank.is_some();
        Process {
            process_ix: self.ids.id(Kind::Process, old.process_ix, at),
            pid: self.pid(old.process_ix, old.pid, at),
            end_ns: old.end_ns.map(|_| self.end_ns()),
            rank: old.rank.map(|_| self.rank(at)),
            world_size: if is_rank { Some((self.job.nodes * self.job.ranks) as i32) } else { old.world_size },
            job_id: Some("417".to_owned()),
            ..old.clone()
        }
    }

    fn handle(&self, old: &Handle, at: At) -> Handle {
        let ids = self.ids;
        let later_ns = i64::from(at.step) * self.period_ns;
        let all = old.comm_size == Some(self.run.ranks.len() as i32);
        let world = (self.job.nodes * self.job.ranks) as i32;
        Handle {
            handle_id: ids.id(Kind::Handle, old.handle_id, at),
            parent_handle_id: ids.some(Kind::Handle, old.parent_handle_id, at),
            file_id: ids.some(Kind::File, old.file_id, at),
            process_ix: ids.id(Kind::Process, old.process_ix, at),
            pid: self.pid(old.process_ix, old.pid, at),
            comm_size: if all { Some(world) } else { old.comm_size },
            comm_ranks: if all { Some(format!("0-{}", world - 1)) } else { old.comm_ranks.clone() },
            open_span_id: old.open_span_id.map(|id| ids.span(id, at)),
            close_span_id: old.close_span_id.map(|id| ids.span(id, at)),
            start_ns: old.start_ns + later_ns,
            end_ns: old.end_ns.map(|ns| ns + later_ns),
            ..old.clone()
        }
    }

    /// Files, paths and objects: what several recorded ranks used is one for all ranks, and what one used there is for
    /// each.
    fn names(&self, writer: &mut DatasetWriter) -> Result<()> {
        let run = self.run;
        let files = run.owned(|span| [span.file_id, None]);
        for old in run.files.values() {
            let owner = files.get(&old.file_id).copied();
            for at in self.everywhere(Kind::File, old.file_id, owner) {
                let renamed = |path: &Option<String>| path.as_ref().map(|path| self.path(path, owner, at));
                let file = File {
                    file_id: self.ids.id(Kind::File, old.file_id, at),
                    path: renamed(&old.path),
                    first_path: renamed(&old.first_path),
                    host_path: renamed(&old.host_path),
                    paths: old.paths.as_ref().map(|all| all.iter().map(|p| self.path(p, owner, at)).collect()),
                    ino: old.ino + i64::from(at.rank) * 1_000_000,
                    ..old.clone()
                };
                writer.push(Row::File(Box::new(file)))?;
            }
        }
        for old in &run.file_paths {
            let owner = files.get(&old.file_id).copied();
            for at in self.everywhere(Kind::File, old.file_id, owner) {
                let (file_id, path) = (self.ids.id(Kind::File, old.file_id, at), self.path(&old.path, owner, at));
                writer.push(Row::FilePath(FilePath { file_id, path, ..old.clone() }))?;
            }
        }
        let paths = run.owned(|span| [span.path_id, span.path2_id]);
        for old in run.paths.values() {
            let owner = paths.get(&old.path_id).copied();
            for at in self.everywhere(Kind::Path, old.path_id, owner) {
                let (path_id, path) = (self.ids.id(Kind::Path, old.path_id, at), self.path(&old.path, owner, at));
                writer.push(Row::CallPath(CallPath { path_id, path }))?;
            }
        }
        for old in run.objects.values() {
            let (file_id, handle_id) = (old.file_id, old.handle_id);
            let at = At { rank: 0, step: self.steps - 1 };
            let file_id = self.ids.some(Kind::File, file_id, at);
            let handle_id = self.ids.some(Kind::Handle, handle_id, at);
            writer.push(Row::Object(Object { file_id, handle_id, ..old.clone() }))?;
        }
        Ok(())
    }

    /// The name of what each rank has for itself: with its own number where the recorded one has its.
    fn path(&self, path: &str, owner: Option<usize>, at: At) -> String {
        let Some(owner) = owner else { return path.to_owned() };
        let plain = path.strip_suffix(&format!(".{owner}")).unwrap_or(path);
        format!("{plain}.{}", self.rank(at))
    }

    fn facts(&self, writer: &mut DatasetWriter) -> Result<()> {
        let run = self.run;
        let number = |key: &str| run.meta.iter().rfind(|row| row.key == key).and_then(|row| row.value.parse().ok());
        // Nodes were started at different times.
        let t0: i64 = number("t0_ns").unwrap_or(0) + i64::from(self.number) * 37_000_000_000;
        let wall = BEGAN_NS + self.job.ahead_ns(self.number);
        for old in run.meta.iter().filter(|row| !row.key.starts_with("clock_pair_")) {
            let value = match old.key.as_str() {
                "host" => Job::host(self.number),
                "t0_ns" | "run_t0_ns" => t0.to_string(),
                "t0_wall_ns" => wall.to_string(),
                "end_ns" => self.end_ns().to_string(),
                _ => old.value.clone(),
            };
            writer.push(Row::Meta(Meta { value, ..old.clone() }))?;
        }
        for ns in [0, self.end_ns()] {
            let (key, value) = (format!("clock_pair_{}", t0 + ns), (wall + ns).to_string());
            writer.push(Row::Meta(Meta { key, value }))?;
        }
        run.mounts.values().try_for_each(|row| writer.push(Row::Mount(Box::new(row.clone()))))?;
        run.stacks.iter().try_for_each(|row: &Stack| writer.push(Row::Stack(row.clone())))?;
        run.losses.iter().try_for_each(|row: &Loss| writer.push(Row::Loss(row.clone())))?;
        run.coverage.iter().try_for_each(|row| writer.push(Row::Coverage(row.clone())))
    }
}
