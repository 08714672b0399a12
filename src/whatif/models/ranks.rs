//! `--ranks-writing N`: the bytes that all ranks write are written by N of them.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::is;
use crate::analysis::findings::groups::group::{CPU, IN_CALLS, LIBRARY, LOCK, RUNQ, UNKNOWN};
use crate::analysis::findings::split::{OfLane, Portion, Split, USUAL};
use crate::base::text::bytes;
use crate::base::usage::bail;
use crate::vocabulary::Kind;
use crate::whatif::model::{Bounds, Change, Recorded, seconds};

/// A rank that writes less of what the first one writes is none that writes: it may write a log.
const LITTLE: f64 = 0.01;
/// What takes a CPU, by byte.
const COMPUTED: [usize; 3] = [CPU, LIBRARY, UNKNOWN];
/// What other writers are in the way of.
const SHARED: [usize; 2] = [RUNQ, LOCK];
/// Writes that waited for a lock for such a part of their time were on a CPU for it, too: a thread that wants the
/// lock of a file spins (`rwsem_optimistic_spin`, kernel/locking/rwsem.c).
const CONTENDED: f64 = 0.1;

/// What ranks write.
struct Writers {
    now: usize,
    then: usize,
    /// Bytes of all, and of each rank by its processes.
    all: f64,
    own: BTreeMap<i32, f64>,
    cpus: usize,
}

fn written(lane: &OfLane<'_>) -> f64 {
    let writes = lane.portions.iter().filter(|portion| is(portion.group, Kind::Write));
    writes.map(|portion| portion.group.bytes as f64).sum()
}

impl Writers {
    fn of(then: usize, recorded: &Recorded<'_>, cpus: usize) -> Self {
        let ranks = || recorded.lanes.iter().filter(|lane| lane.rank.is_some());
        let most = ranks().map(written).fold(0.0, f64::max);
        let (mut now, mut all, mut own) = (0, 0.0, BTreeMap::new());
        for lane in ranks() {
            let bytes = written(lane);
            all += bytes;
            if bytes > 0.0 && bytes >= LITTLE * most {
                now += 1;
                own.extend(lane.portions.iter().map(|portion| (portion.group.key.process, bytes)));
            }
        }
        Self { now, then, all, own, cpus: cpus.max(1) }
    }

    /// So many times what a rank writes now is what one writes then.
    fn times(&self, own: f64) -> f64 {
        self.all / self.then as f64 / own
    }

    fn change(&self, portion: &Portion<'_>, bounds: &mut Bounds) -> bool {
        let Some(own) = self.own.get(&portion.group.key.process).filter(|_| is(portion.group, Kind::Write)) else {
            return false;
        };
        if self.now == self.then {
            return true;
        }
        let times = self.times(*own);
        let fewer = self.then < self.now;
        // With more writers than CPUs each takes its turn.
        let computed = self.all / self.then.min(self.cpus) as f64 / own;
        for part in IN_CALLS {
            let low = match part {
                part if COMPUTED.contains(&part) => computed,
                part if SHARED.contains(&part) => 0.0,
                // The device is as fast for few as it is for many; or for each as it is for one.
                _ if fewer => 1.0,
                _ => times,
            };
            let high = if fewer { times } else { 1.0 };
            bounds.scale(part, (low.min(high), high));
        }
        if fewer && portion.parts[LOCK] > CONTENDED * seconds(portion) {
            let copied = portion.group.bytes as f64 * portion.scale * computed / USUAL.1;
            bounds.low[CPU] = bounds.low[CPU].min(copied);
        }
        if times > 1.0 {
            let moved = portion.group.bytes as f64 * (times - 1.0);
            bounds.low[LIBRARY] += moved / USUAL.1;
            bounds.high[LIBRARY] += moved / USUAL.0;
        }
        true
    }

    /// Seconds for which one that writes now gathers at most what then others write themselves.
    fn gathering_s(&self) -> f64 {
        let then = self.then.max(self.now) as f64;
        (self.all / self.now as f64 - self.all / then) / USUAL.0
    }

    /// `now` ranks write so much, at so much per second each.
    fn description(&self, recorded: &Recorded<'_>) -> String {
        let writes = || {
            let of_writers = |portion: &&Portion<'_>| self.own.contains_key(&portion.group.key.process);
            recorded.portions().filter(of_writers).filter(|portion| is(portion.group, Kind::Write))
        };
        let moved: f64 = writes().map(|portion| portion.group.bytes as f64).sum();
        let rate =
            |parts: &dyn Fn(&Portion<'_>) -> f64| bytes((moved / writes().map(parts).sum::<f64>().max(1e-9)) as i64);
        let free = |portion: &Portion<'_>| COMPUTED.iter().map(|part| portion.parts[*part]).sum::<f64>();
        let (now, then, all) = (self.now, self.then, bytes(self.all as i64));
        let begin = format!("{now} ranks write {all}, each {}/s", rate(&|portion| seconds(portion)));
        let (free, moving) = (rate(&free), format!("{} to {} GB/s", USUAL.0 / 1e9, USUAL.1 / 1e9));
        match then.cmp(&now) {
            std::cmp::Ordering::Equal => format!("{begin}: nothing changes"),
            std::cmp::Ordering::Less => format!(
                "{begin}, and {free}/s without waits: with {then} at worst each byte takes as long as now, at best only what it \
                 is on a CPU and all together wait as long as one does now; the data moves there at {moving}"
            ),
            std::cmp::Ordering::Greater => format!(
                "{begin}, and {free}/s without waits: with {then} at best each is as fast as those are now, on {} CPUs; at worst \
                 all together are no faster",
                self.cpus
            ),
        }
    }
}

/// By how many seconds a rank that gathers what more ranks then write is done earlier at best: of its time outside of calls.
pub fn gathering_s(then: usize, recorded: &Recorded<'_>, split: &Split) -> f64 {
    let writers = Writers::of(then, recorded, split.cpus());
    if writers.now == 0 { 0.0 } else { writers.gathering_s().min(recorded.run_s - recorded.calls_s()) }
}

pub fn model<'a>(then: usize, recorded: &Recorded<'_>, split: &Split) -> Result<(String, Change<'a>, f64)> {
    let ranks = split.ranks();
    ensure!(
        ranks > 0,
        "the trace has no ranks: --ranks-writing is about programs that mpirun or srun started; name variables that have \
         the rank with --rank-vars when you record"
    );
    if then > ranks {
        bail!("the run has {ranks} ranks: {then} of them cannot write");
    }
    let writers = Writers::of(then, recorded, split.cpus());
    ensure!(writers.now > 0, "no rank of the trace writes");
    let description = writers.description(recorded);
    Ok((description, Box::new(move |portion, bounds| writers.change(portion, bounds)), 0.0))
}
