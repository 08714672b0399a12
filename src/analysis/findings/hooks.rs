//! What the tracer's hooks in one rank cost the others: who waits for a rank waits for its hooks, too.
//!
//! A call's own hooks are not in its time, those of other ranks are in what it waits for them. By part of the run:
//! - In MPI all ranks wait for the one that pays most; where there are fewer CPUs than ranks, hooks run one after the other.
//!   Where no CPU was idle, the tracer's own threads kept some from them as well.
//! - Of those that lock a file one goes on at a time: while a rank waits for the lock, the hooks of all others are in its way.

use std::collections::BTreeMap;

use crate::analysis::findings::groups::Groups;
use crate::analysis::findings::groups::group::{Group, LIBRARY, LOCK};
use crate::analysis::findings::groups::paid::{PART, Part};
use crate::analysis::findings::lanes::Lane;

/// The hooks of all in a part of the run.
#[derive(Debug, Clone, Copy, Default)]
struct Together {
    mine: Part,
    hooks: i64,
    /// Of the one that paid most.
    most: i64,
}

/// By how much the tracer lengthened a run, and how long that was, in ns.
#[derive(Debug, Clone, Copy)]
pub struct Tracing {
    pub ns: i64,
    pub run_ns: i64,
}

/// By how much hooks of other ranks, and the tracer, lengthened what a lane waited for: in MPI, and for locks on files, in ns.
fn of_others(groups: &Groups, lane: &Lane, cpus: usize, tracing: Tracing) -> (i64, i64) {
    let of_ranks = || groups.processes.iter().filter(|(_, busy)| busy.rank.is_some());
    let length = of_ranks().filter_map(|(_, busy)| Some(busy.paid()?.length)).max().unwrap_or(PART);
    let mut all = BTreeMap::<i64, Together>::new();
    for (ix, busy) in of_ranks() {
        let Some(mut paid) = busy.paid().cloned() else { continue };
        paid.coarsen(length);
        for (at, part) in paid.parts {
            let sum = all.entry(at).or_default();
            sum.hooks = sum.hooks.saturating_add(part.hooks);
            sum.most = sum.most.max(part.hooks);
            if lane.processes.contains_key(ix) {
                sum.mine.add(part);
            }
        }
    }
    let (mut in_mpi, mut in_locks) = (0_i64, 0_i64);
    // What of the run is longer for the tracer's threads, and not for hooks: as much of each ns.
    let hooks = all.values().map(|part| part.most).fold(0, i64::saturating_add);
    let waited = all.values().map(|part| part.mine.ranks).fold(0, i64::saturating_add);
    let threads = tracing.ns.saturating_sub(hooks).max(0) as f64 * waited as f64 / tracing.run_ns.max(1) as f64;
    for Together { mine, hooks, most } in all.into_values() {
        let longer = most.max(hooks / cpus.max(1) as i64).saturating_sub(mine.hooks);
        in_mpi = in_mpi.saturating_add(longer.clamp(0, mine.ranks));
        let others = hooks.saturating_sub(mine.hooks).max(0) as f64;
        let waited = (mine.locks as f64 / length as f64).min(1.0);
        in_locks = in_locks.saturating_add(((others * waited) as i64).clamp(0, mine.locks));
    }
    (in_mpi.saturating_add(threads as i64).clamp(0, waited), in_locks)
}

/// Takes the hooks of other ranks off what the lane waited for them. Ranks run on so many CPUs.
pub fn take_off(groups: &mut Groups, lane: &Lane, cpus: usize, tracing: Tracing) {
    if lane.ranks < 2 {
        return;
    }
    let (in_mpi, in_locks) = of_others(groups, lane, cpus, tracing);
    reduce(groups, lane, (LIBRARY, in_mpi), Group::waits);
    reduce(groups, lane, (LOCK, in_locks), |group| matches!(group.key.op, "fcntl" | "flock"));
}

/// Takes so many ns off a part of the time of a lane's groups, from each in proportion.
fn reduce(groups: &mut Groups, lane: &Lane, (part, ns): (usize, i64), wanted: impl Fn(&Group) -> bool) {
    let picked = |group: &Group| lane.processes.contains_key(&group.key.process) && wanted(group);
    let all = groups.all.iter().filter(|group| picked(group)).map(|group| group.time[part].max(0) as f64).sum::<f64>();
    if ns <= 0 || all <= 0.0 {
        return;
    }
    let remains = (1.0 - ns as f64 / all).max(0.0);
    for group in groups.all.iter_mut().filter(|group| picked(group)) {
        group.time[part] = (group.time[part].max(0) as f64 * remains) as i64;
    }
}
