//! Pure: events in, rows out. No clock, no thread, no file.

mod aggregate;
mod calls;
mod devices;
mod events;
mod leaving;
mod libraries;
mod losses;
mod pipeline;
mod resources;
mod seen;
mod summing;
mod tracker;

#[cfg(test)]
mod launchers;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
pub(crate) mod testing;

use crate::catalog;
use crate::correlate::aggregate::demoted::Demoted;
use crate::correlate::aggregate::paused::Paused;
pub use crate::correlate::aggregate::rollup::CallSums;
use crate::correlate::aggregate::rollup::Rollups;
use crate::correlate::aggregate::sums::Sums;
use crate::correlate::calls::asynchronous::{Asynchronous, Done};
use crate::correlate::calls::cover::Cover;
use crate::correlate::calls::operations::{Operations, Over};
use crate::correlate::calls::order::Order;
pub(crate) use crate::correlate::calls::order::give_back;
use crate::correlate::calls::slow::SlowStacks;
use crate::correlate::calls::stack::{Node, Tree};
use crate::correlate::calls::unknown::Unknown;
use crate::correlate::devices::block::Blocks;
use crate::correlate::devices::rpc::Rpcs;
use crate::correlate::libraries::collectives::Collectives;
use crate::correlate::losses::Losses;
pub(crate) use crate::correlate::resources::cgroup;
use crate::correlate::resources::processes::{Processes, Variables};
use crate::correlate::tracker::ResourceTracker;
use crate::event::{Event, FileKey, Measured, Striping};
use crate::rows::{Mount, Row};
use crate::vocabulary::Layer;

/// What the correlator needs to know of the run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Start of the trace, `CLOCK_MONOTONIC` nanoseconds.
    pub t0: u64,
    /// The catalog that `spec` numbers refer to.
    pub specs: Vec<catalog::Row>,
    /// Environment variables that hold a process's rank, the preferred first.
    pub rank_vars: Vec<String>,
    /// The same for the number of ranks.
    pub size_vars: Vec<String>,
    /// The same for the job's id.
    pub job_vars: Vec<String>,
    /// Completed calls, over all threads, that may wait for an enclosing call to end.
    pub max_pending: usize,
    /// Calls are summed up, and not written one by one unless they are wanted.
    pub aggregate: bool,
    /// From how many ns on the calls of a layer, or of all, are slow: they get a stack, if one is taken.
    pub slow: Vec<(Option<Layer>, i64)>,
}

impl Default for Config {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Self {
            t0: 0,
            specs: catalog::rows(),
            rank_vars: names(&[
                "OMPI_COMM_WORLD_RANK",
                "PMIX_RANK",
                "PMI_RANK",
                "MV2_COMM_WORLD_RANK",
                "SLURM_PROCID",
                "PALS_RANKID",
                "FLUX_TASK_RANK",
                "JSM_NAMESPACE_RANK",
                "RANK",
            ]),
            size_vars: names(&[
                "OMPI_COMM_WORLD_SIZE",
                "PMI_SIZE",
                "MV2_COMM_WORLD_SIZE",
                "SLURM_NTASKS",
                "FLUX_JOB_SIZE",
                "JSM_NAMESPACE_SIZE",
                "WORLD_SIZE",
            ]),
            job_vars: names(&["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID"]),
            max_pending: 1 << 20,
            aggregate: false,
            slow: Vec::new(),
        }
    }
}

impl Config {
    /// Variables that count before the others: for rank, number of ranks, job.
    #[must_use]
    pub fn before(mut self, rank: &[String], size: &[String], job: &[String]) -> Self {
        self.rank_vars.splice(0..0, rank.iter().cloned());
        self.size_vars.splice(0..0, size.iter().cloned());
        self.job_vars.splice(0..0, job.iter().cloned());
        self
    }
}

/// Turns events into rows.
///
/// The rows do not depend on how the events were batched or in which order threads delivered them, except that
/// sums (rollups, histograms, losses) may be split over more rows.
pub struct Correlator {
    t0: u64,
    specs: Vec<catalog::Row>,
    max_pending: usize,
    order: Order,
    processes: Processes,
    resources: ResourceTracker,
    blocks: Blocks,
    asynchronous: Asynchronous,
    operations: Operations,
    collectives: Collectives,
    cover: Cover,
    slow: SlowStacks,
    rpcs: Rpcs,
    rollups: Rollups,
    /// Aggregate mode.
    sums: Option<Sums>,
    demoted: Demoted,
    paused: Paused,
    /// What their calls come to, where no other sums are written.
    estimates: Sums,
    /// Nodes on their way out; kept for its capacity.
    leaving: Vec<(Node, Tree)>,
    /// Spans on their way out, when they were asynchronous; kept for its capacity.
    written: Vec<Done>,
    /// Operations of the kernel on their way out; kept for its capacity.
    over: Vec<Over>,
    /// Completed calls that wait, over all threads.
    waiting: usize,
    losses: Losses,
    unknown: Unknown,
    measured: Measured,
}

impl Correlator {
    pub fn new(config: Config) -> Self {
        let variables = Variables { rank: config.rank_vars, size: config.size_vars, job: config.job_vars };
        Self {
            t0: config.t0,
            max_pending: config.max_pending,
            order: Order::default(),
            processes: Processes::new(variables),
            resources: ResourceTracker::default(),
            blocks: Blocks::default(),
            asynchronous: Asynchronous::default(),
            operations: Operations::default(),
            collectives: Collectives::default(),
            cover: Cover::default(),
            slow: SlowStacks::new(config.slow),
            rpcs: Rpcs::default(),
            written: Vec::new(),
            over: Vec::new(),
            rollups: Rollups::new(&config.specs),
            sums: config.aggregate.then(Sums::default),
            demoted: Demoted::default(),
            paused: Paused::default(),
            estimates: Sums::default(),
            leaving: Vec::new(),
            specs: config.specs,
            waiting: 0,
            losses: Losses::default(),
            unknown: Unknown::default(),
            measured: Measured::default(),
        }
    }

    /// A stack was taken in calls that are open.
    pub fn stack_taken(&mut self, stack_id: i32, calls: &[i64]) {
        self.slow.taken(stack_id, calls);
    }

    /// The frames of a stack have their names; the innermost first.
    pub fn stack_named(&mut self, stack_id: i32, frames: Vec<String>, out: &mut Vec<Row>) {
        self.slow.named(stack_id, frames, out);
    }

    /// The striping of a file, from its file system.
    pub fn is_striped(&mut self, key: FileKey, striping: Striping) {
        self.resources.files.is_striped(key, striping);
    }

    /// The mounts that files are looked up in, and the mount namespace that is the host's; may be called again when they change.
    pub fn set_mounts(&mut self, mounts: Vec<Mount>, namespace: i64) {
        self.resources.files.set_mounts(mounts, namespace);
    }

    /// Which counts and times of the kernel are measured.
    pub fn set_measured(&mut self, measured: Measured) {
        self.measured = measured;
    }

    /// Takes an event, in any order.
    pub fn push(&mut self, event: Event) {
        self.order.push(event);
    }

    /// Every event earlier than `watermark` has been pushed: works them off.
    pub fn advance(&mut self, watermark: u64, out: &mut Vec<Row>) {
        self.release(Some(watermark), out);
        self.settle_estimates(false);
        if let Some(sums) = &mut self.sums {
            sums.write(relative(watermark, self.t0), false, self.t0, out);
            self.resources.write(out);
        }
        self.estimates.write(relative(watermark, self.t0), false, self.t0, out);
        self.rollups.write(Some(self.since_t0(watermark)), out);
        self.losses.report(self.since_t0(watermark), out);
        self.unknown.report(self.since_t0(watermark), out);
        for file in self.resources.files.gone() {
            self.blocks.forget(file);
        }
        self.blocks.forget_old(watermark);
    }

    /// The trace ended at `now`: works everything off and writes what is still open.
    pub fn finish(&mut self, now: u64, out: &mut Vec<Row>) {
        self.release(None, out);
        let unrecorded = self.paused.finish(now);
        self.unrecorded(unrecorded);
        let mut threads: Vec<u32> = self.processes.threads.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.end(thread, self.since_t0(now), out);
        }
        self.asynchronous.finish(&mut self.written);
        self.operations.gone(|_| true, &mut self.over);
        self.write(out);
        self.rpcs.finish(out);
        self.blocks.finish(self.since_t0(now), out);
        self.write_sums(now, out);
        self.resources.finish(out);
        self.rollups.write(None, out);
        self.losses.report(self.since_t0(now), out);
        self.unknown.report(self.since_t0(now), out);
    }

    /// Writes the sums over all that was written, also of times that are not over: there will be more rows of these.
    pub fn sum_up(&mut self, now: u64, out: &mut Vec<Row>) {
        self.write_sums(now, out);
        self.rollups.write(None, out);
        self.losses.report(self.since_t0(now), out);
        self.unknown.report(self.since_t0(now), out);
    }

    /// The receiver of the rows has dropped those of these files, objects, handles and paths: they are written again when a
    /// call is about them.
    pub fn forgotten(&mut self, files: &[i32], objects: &[i32], handles: &[i32], paths: &[i32]) {
        self.resources.forgotten(files, objects, handles, paths);
    }

    fn since_t0(&self, time: u64) -> i64 {
        relative(time, self.t0)
    }

    fn release(&mut self, watermark: Option<u64>, out: &mut Vec<Row>) {
        let mut order = std::mem::take(&mut self.order);
        order.release(watermark, |event, late| match event {
            Event::Call(call) => self.call(call, None, late, out),
            Event::Deferred(deferred) => self.call(&deferred.call, Some(deferred), late, out),
            other => self.event(std::mem::replace(other, TAKEN), out),
        });
        self.order = order;
    }

    /// Row of the catalog, and which copy of the library, of a number on the wire.
    fn row_of(&self, spec: u16) -> Option<(usize, u16)> {
        let rows = u16::try_from(self.specs.len()).ok().filter(|rows| *rows > 0)?;
        Some((usize::from(spec % rows), spec / rows))
    }
}

/// Stands where an event was until it was worked off.
const TAKEN: Event = Event::Exit { time: 0, process: 0, status: 0 };

fn relative(time: u64, t0: u64) -> i64 {
    let ns = i128::from(time) - i128::from(t0);
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}
