//! What the tracer's hooks in one rank cost the others: who waits for a rank waits for its hooks, too.
//!
//! A call's own hooks are not in its time, those of other ranks are in what it waits for them. By part of the run:
//! - In MPI all ranks wait for the one that pays most; where there are fewer CPUs than ranks, hooks run one after the other.
//!   Where no CPU was idle, the tracer's own threads kept some from them as well.
//! - Of those that lock a file one goes on at a time: while a rank waits for the lock, the hooks of all others are in its way.

use std::collections::BTreeMap;

use crate::HashMap;
use crate::analysis::findings::group::{Group, LIBRARY, LOCK};
use crate::analysis::findings::groups::Groups;
use crate::analysis::findings::lanes::{Lane, waits};
use crate::rows::Span;

/// Parts of the run at first, in ns: twice as long whenever a process has too many.
const PART: i64 = 1 << 20;
const PARTS_MAX: usize = 1 << 10;

/// What a process paid and waited for in a part of the run, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Part {
    hooks: i64,
    /// In MPI.
    ranks: i64,
    /// For locks on files.
    locks: i64,
}

impl Part {
    const fn add(&mut self, more: Self) {
        self.hooks = self.hooks.saturating_add(more.hooks);
        self.ranks = self.ranks.saturating_add(more.ranks);
        self.locks = self.locks.saturating_add(more.locks);
    }

    fn times(self, share: f64) -> Self {
        let of = |ns: i64| (ns as f64 * share) as i64;
        Self { hooks: of(self.hooks), ranks: of(self.ranks), locks: of(self.locks) }
    }
}

/// What a rank paid for hooks, and what it waited for others, by time.
#[derive(Debug, Clone)]
pub struct Paid {
    length: i64,
    parts: HashMap<i64, Part>,
}

impl Default for Paid {
    fn default() -> Self {
        Self { length: PART, parts: HashMap::default() }
    }
}

/// Calls that wait until another process unlocks a file.
fn locks_file(span: &Span) -> bool {
    matches!(span.op, "fcntl" | "flock")
}

impl Paid {
    /// A call; `own`: of the program, which has the hooks of all calls inside; `in_mpi`: its own time is spent waiting for ranks.
    pub fn add(&mut self, span: &Span, own: bool, in_mpi: bool) {
        let hooks = if own { span.probe_ns.unwrap_or(0).max(0) } else { 0 };
        let ranks = if in_mpi { span.self_ns.max(0) } else { 0 };
        let locks = if locks_file(span) { span.lock_ns.unwrap_or(0).max(0) } else { 0 };
        if hooks > 0 || ranks > 0 || locks > 0 {
            self.spread((span.start_ns, span.end_ns()), Part { hooks, ranks, locks });
        }
    }

    /// Spreads evenly what is of an interval.
    fn spread(&mut self, (from, to): (i64, i64), all: Part) {
        let lasts = to.saturating_sub(from).max(1);
        while lasts / self.length >= PARTS_MAX as i64 {
            self.coarsen(self.length.saturating_mul(2));
        }
        let (first, last) = (from.div_euclid(self.length), from.saturating_add(lasts - 1).div_euclid(self.length));
        for at in first..=last {
            let begin = at.saturating_mul(self.length);
            let (begin, end) = (begin.max(from), begin.saturating_add(self.length).min(from.saturating_add(lasts)));
            let share = end.saturating_sub(begin) as f64 / lasts as f64;
            self.parts.entry(at).or_default().add(all.times(share));
        }
        while self.parts.len() > PARTS_MAX {
            self.coarsen(self.length.saturating_mul(2));
        }
    }

    /// Makes parts longer; lengths are powers of two.
    fn coarsen(&mut self, length: i64) {
        if length <= self.length {
            return;
        }
        let times = length / self.length;
        let mut parts = HashMap::<i64, Part>::default();
        for (at, part) in self.parts.drain() {
            parts.entry(at.div_euclid(times)).or_default().add(part);
        }
        (self.length, self.parts) = (length, parts);
    }

    /// Takes the calls of another time.
    pub fn take(&mut self, later: &Self) {
        self.coarsen(later.length);
        let mut later = later.clone();
        later.coarsen(self.length);
        for (at, part) in later.parts {
            self.parts.entry(at).or_default().add(part);
        }
        while self.parts.len() > PARTS_MAX {
            self.coarsen(self.length.saturating_mul(2));
        }
    }
}

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
    let length = of_ranks().map(|(_, busy)| busy.paid.length).max().unwrap_or(PART);
    let mut all = BTreeMap::<i64, Together>::new();
    for (ix, busy) in of_ranks() {
        let mut paid = busy.paid.clone();
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
    reduce(groups, lane, (LIBRARY, in_mpi), waits);
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
        group.left[part] = group.time[part];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::span_id;
    use crate::vocabulary::{Kind, Layer};

    #[test]
    fn parts_grow_and_nothing_is_lost() {
        let mut paid = Paid::default();
        let call = |n: u32, start, lasts| Span {
            probe_ns: Some(1 << 10),
            ..Span::new(span_id(1, n), (Layer::Mpi, "MPI_Barrier", Kind::Other), 1, (start, lasts))
        };
        for n in 0..5000_u32 {
            paid.add(&call(n, i64::from(n) * PART, PART / 2), true, false);
        }
        let mut later = Paid::default();
        later.add(&call(5000, 1 << 50, 1 << 40), true, false);
        assert!(paid.parts.len() <= PARTS_MAX && later.parts.len() <= PARTS_MAX + 1);
        paid.take(&later);
        assert!(paid.parts.len() <= PARTS_MAX);
        let hooks: i64 = paid.parts.values().map(|part| part.hooks).sum();
        // What is less than a ns of a part of a long call is rounded off.
        assert!((5000 * 1024..=5001 * 1024).contains(&hooks), "{hooks}");
    }
}
