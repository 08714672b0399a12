//! How unequal the I/O of ranks is.

use std::collections::BTreeMap;

use crate::summary::bins::Merge as _;
use crate::summary::screens::{Imbalance, Sums};

/// Rank and sums of each process; those of one rank count together. `None` where fewer than two ranks have done I/O:
/// processes that are no ranks have no reason to do the same.
pub fn imbalance(all: impl Iterator<Item = (Option<i32>, Sums)>) -> Option<Imbalance> {
    let mut ranks = BTreeMap::<i32, Sums>::new();
    for (rank, sums) in all.filter(|(_, sums)| sums.calls > 0) {
        if let Some(rank) = rank {
            ranks.entry(rank).or_default().merge(&sums);
        }
    }
    let n = ranks.len();
    if n < 2 {
        return None;
    }
    let over = |of: &dyn Fn(&Sums) -> i64| {
        let max = ranks.values().map(of).max().unwrap_or(0);
        let sum: f64 = ranks.values().map(|s| of(s) as f64).sum();
        if sum > 0.0 { max as f64 * n as f64 / sum } else { 0.0 }
    };
    Some(Imbalance {
        members: n,
        bytes_max_over_mean: over(&|s| s.bytes_read.saturating_add(s.bytes_written)),
        time_max_over_mean: over(&|s| s.dur_ns),
        // The first of several.
        slowest: ranks.iter().rev().max_by_key(|(_, s)| s.dur_ns).map_or(0, |(rank, _)| *rank),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(dur_ns: i64, bytes_read: i64) -> Sums {
        Sums { calls: 1, dur_ns, bytes_read, ..Sums::default() }
    }

    #[test]
    fn processes_of_a_rank_count_together_and_those_without_one_not_at_all() {
        let all = [(Some(0), sums(10, 1)), (Some(1), sums(20, 3)), (Some(0), sums(40, 1)), (None, sums(500, 900))];
        let found =
            imbalance(all.into_iter()).map(|i| (i.members, i.slowest, i.time_max_over_mean, i.bytes_max_over_mean));
        assert_eq!(found, Some((2, 0, 50.0 * 2.0 / 70.0, 3.0 * 2.0 / 5.0)));
        assert_eq!(imbalance([(Some(3), sums(10, 1)), (None, sums(9, 9))].into_iter()), None);
        assert_eq!(imbalance([(None, sums(10, 1)), (None, sums(9, 9))].into_iter()), None);
        assert_eq!(imbalance([(Some(0), sums(10, 1)), (Some(1), Sums::default())].into_iter()), None);
    }
}
