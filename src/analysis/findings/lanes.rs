//! Which processes decide how long a run takes.
//!
//! A lane is a rank, or processes without a rank that ran one after the other. Time of one lane adds up, that of lanes does
//! not: the lane with the most work of its own is the critical one, and seconds of findings are its.

use std::collections::{BTreeMap, BTreeSet};

use crate::HashMap;
use crate::analysis::findings::groups::Groups;
use crate::analysis::findings::groups::busy::Busy;
use crate::analysis::findings::groups::group::{Group, LIBRARY, WITH_LOOP};

/// The critical lane.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lane {
    /// Its processes, and by how much wall time is less than the time of their threads together: 0 to 1.
    pub processes: BTreeMap<i32, f64>,
    /// Wall time in which it was in calls, in ns.
    pub busy: i64,
    /// Of ranks: how many there are.
    pub ranks: usize,
}

/// The processes of a lane.
type Candidate = Vec<i32>;

/// A lane, and its wall time in calls less what it waited for other ranks, in ns.
pub type Weighed = (i64, Lane);

/// Takes the critical lane, which has the most wall time in calls less what it waited for other ranks.
pub fn critical(lanes: &mut Vec<Weighed>) -> Weighed {
    let best = lanes.iter().enumerate().max_by_key(|(_, (own, lane))| (*own, lane.busy));
    best.map(|(at, _)| at).map_or_else(Weighed::default, |at| lanes.swap_remove(at))
}

/// All lanes.
pub fn all(groups: &mut Groups) -> Vec<Weighed> {
    let mut waited = HashMap::<i32, i64>::default();
    for group in groups.all.iter().filter(|group| group.waits()) {
        let sum = waited.entry(group.key.process).or_default();
        *sum = sum.saturating_add(group.time[LIBRARY]);
    }
    let mut by_start: Vec<(i64, i32)> = groups.processes.iter().map(|(ix, busy)| (busy.first, *ix)).collect();
    by_start.sort_unstable();
    let mut ranks = BTreeMap::<i32, Candidate>::new();
    let mut others: Vec<Candidate> = Vec::new();
    // Lanes of processes without a rank, by when the last process of each made its last call.
    let mut free = BTreeSet::<(i64, usize)>::new();
    for (first, ix) in by_start {
        let Some(busy) = groups.processes.get(&ix) else { continue };
        if let Some(rank) = busy.rank {
            ranks.entry(rank).or_default().push(ix);
            continue;
        }
        // Of those that are free when it begins the one that became so last.
        let lane = free.range(..=(first, usize::MAX)).next_back().copied();
        let at = lane.filter(|lane| free.remove(lane)).map_or_else(
            || {
                others.push(Candidate::default());
                others.len() - 1
            },
            |(_, at)| at,
        );
        others[at].push(ix);
        free.insert((busy.last, at));
    }
    let count = ranks.len();
    let lanes = ranks.into_values().chain(others);
    lanes.map(|lane| lane_of(&lane, groups, (&waited, count))).collect()
}

fn lane_of(processes: &[i32], groups: &mut Groups, (waited, ranks): (&HashMap<i32, i64>, usize)) -> Weighed {
    let (mut own, mut lane) = (0_i64, Lane { ranks, ..Lane::default() });
    for ix in processes {
        let Some(busy) = groups.processes.get_mut(ix) else { continue };
        let (wall, sum) = (busy.wall(), busy.sum.max(1));
        let scale = wall as f64 / sum as f64;
        let others = waited.get(ix).copied().unwrap_or(0) as f64 * scale;
        own = own.saturating_add(wall.saturating_sub(others as i64));
        lane.busy = lane.busy.saturating_add(wall);
        lane.processes.insert(*ix, scale);
    }
    (own, lane)
}

/// Wall time of a lane's groups: of each the time that stands in it times the scale of its process.
pub fn seconds(lane: &Lane, group: &Group, ns: i64) -> f64 {
    lane.processes.get(&group.key.process).map_or(0.0, |scale| ns as f64 / 1e9 * scale)
}

/// Scales a lane down to a time that it cannot have exceeded: pauses of threads and processes of one rank can overlap.
pub fn limit(lane: &mut Lane, groups: &Groups, run_ns: i64) {
    let ends = |(from, to): (i64, i64), busy: &Busy| (from.min(busy.first), to.max(busy.last));
    let of_lane = lane.processes.keys().filter_map(|ix| groups.processes.get(ix));
    let (from, to) = of_lane.fold((i64::MAX, i64::MIN), ends);
    let run_ns = if run_ns > 0 { run_ns } else { i64::MAX };
    let most = to.saturating_sub(from).min(run_ns).max(0) as f64 / 1e9;
    let all: f64 = groups.all.iter().map(|group| seconds(lane, group, group.left(&WITH_LOOP))).sum();
    if all > most {
        lane.processes.values_mut().for_each(|scale| *scale *= most / all);
    }
}
