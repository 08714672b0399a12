//! Fewer groups of calls, where there are very many ranks: of those that cannot decide how long the run takes, calls are
//! grouped by file, layer and kind alone. Rules need no more of them: they ask for functions of the critical lane. Pure.
//!
//! Processes without a rank stay as they are: a lane can be many of them, each of which takes little.

use std::collections::HashSet;

use roaring::RoaringBitmap;

use crate::HashMap;
use crate::analysis::findings::groups::busy::Busy;
use crate::analysis::findings::groups::group::{Group, Key, LIBRARY};
use crate::analysis::findings::groups::index::Index;

/// Of so many ranks one stays as it is, and at least so many do.
const ONE_OF: usize = 32;
const AT_LEAST: usize = 512;

/// What stays of the key of calls of a folded process.
pub fn folded(key: Key) -> Key {
    // The rule on errors names the function.
    if key.errno != 0 {
        return key;
    }
    Key { called: (key.called.0, ""), op: "", creates: false, ..key }
}

/// The processes of all ranks but those with the most time in calls, less what they waited for other ranks.
pub fn light(all: &[Group], processes: &HashMap<i32, Busy>) -> RoaringBitmap {
    let rank_of = |ix: i32| processes.get(&ix).and_then(|busy| busy.rank);
    let mut own = HashMap::<i32, i64>::default();
    for busy in processes.values() {
        let Some(rank) = busy.rank else { continue };
        let ns = own.entry(rank).or_default();
        *ns = ns.saturating_add(busy.sum);
    }
    for group in all.iter().filter(|group| group.waits()) {
        if let Some(ns) = rank_of(group.key.process).and_then(|rank| own.get_mut(&rank)) {
            *ns = ns.saturating_sub(group.time[LIBRARY]);
        }
    }
    let mut by_time: Vec<(i64, i32)> = own.into_iter().map(|(rank, ns)| (ns, rank)).collect();
    by_time.sort_unstable_by_key(|(ns, rank)| (std::cmp::Reverse(*ns), *rank));
    let stay = (by_time.len() / ONE_OF).max(AT_LEAST);
    let light: HashSet<i32> = by_time.into_iter().skip(stay).map(|(_, rank)| rank).collect();
    let of_light = |ix: &&i32| rank_of(**ix).is_some_and(|rank| light.contains(&rank));
    processes.keys().filter(of_light).map(|ix| *ix as u32).collect()
}

/// Folds the groups of processes for which that holds; returns where each group has gone to.
pub fn fold(all: &mut Vec<Group>, folds: impl Fn(i32) -> bool) -> (Index, Vec<usize>) {
    let mut index = Index::default();
    let (mut kept, mut moved) = (Vec::<Group>::new(), Vec::with_capacity(all.len()));
    for mut group in all.drain(..) {
        // What has not returned is named, too.
        let key = folded(group.key);
        if folds(group.key.process) && group.rare().stuck == 0 && key != group.key {
            group.key = key;
            group.slowest.truncate(1);
            group.slowest.shrink_to_fit();
        }
        let known = index.get(&group.key, &kept);
        moved.push(known.unwrap_or(kept.len()));
        if let Some(at) = known {
            kept[at].merge(&group);
        } else {
            kept.push(group);
            index.insert_last(&kept);
        }
    }
    kept.shrink_to_fit();
    *all = kept;
    (index, moved)
}
