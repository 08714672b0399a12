//! Processes that ran one after the other: of a lane, and as one where there are very many. Pure.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::HashMap;
use crate::analysis::findings::groups::busy::Busy;

/// Of processes that have ended, so many with the most time stay as they are.
const STAY: usize = 512;

/// Chains, by when the last process of each made its last call.
#[derive(Debug, Default)]
pub struct Free(BTreeSet<(i64, usize)>);

impl Free {
    /// The chain for a process that begins then: of those that are free the one that became so last.
    pub fn take(&mut self, first: i64) -> Option<usize> {
        let found = self.0.range(..=(first, usize::MAX)).next_back().copied()?;
        self.0.remove(&found);
        Some(found.1)
    }

    pub fn put(&mut self, last: i64, chain: usize) {
        self.0.insert((last, chain));
    }
}

/// Of processes without a rank and without a call since then, those that ran one after the other become one, but for those
/// with the most time: what runs before and after one of these stays apart, so that lanes are the same. Returns the process
/// that each has become. One that makes calls again begins anew.
pub fn join_ended(processes: &mut HashMap<i32, Busy>, since_ns: i64) -> HashMap<i32, i32> {
    let ended = processes.iter().filter(|(ix, busy)| **ix >= 0 && busy.rank.is_none() && busy.last < since_ns);
    let mut by_time: Vec<(i64, i64, i32)> = ended.map(|(ix, busy)| (busy.sum, busy.first, *ix)).collect();
    by_time.sort_unstable_by_key(|(sum, _, ix)| (Reverse(*sum), *ix));
    let ranked = by_time.into_iter().enumerate();
    let mut by_start: Vec<(i64, i32, bool)> = ranked.map(|(at, (_, first, ix))| (first, ix, at < STAY)).collect();
    by_start.sort_unstable();
    // The last process of each chain, if others join it.
    let (mut chains, mut free) = (Vec::<Option<i32>>::new(), Free::default());
    let mut joined = HashMap::default();
    for (first, ix, stays) in by_start {
        let last = processes.get(&ix).map_or(first, |busy| busy.last);
        let chain = free.take(first).unwrap_or_else(|| {
            chains.push(None);
            chains.len() - 1
        });
        free.put(last, chain);
        let before = chains[chain].filter(|_| !stays);
        chains[chain] = (!stays).then_some(before.unwrap_or(ix));
        let Some(one) = before else { continue };
        if let (Some(busy), Some(all)) = (processes.remove(&ix), processes.get_mut(&one)) {
            all.join(busy);
            joined.insert(ix, one);
        }
    }
    processes.shrink_to_fit();
    joined
}
