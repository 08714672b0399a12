//! How unequal the I/O of ranks or processes is.

use super::view::{Imbalance, Sums};

/// Rank, pid and sums of each process. Of ranks where more than one has done I/O, else of processes; `None` with fewer than two.
pub fn imbalance(all: impl Iterator<Item = (Option<i32>, i32, Sums)>) -> Option<Imbalance> {
    let all: Vec<_> = all.filter(|(_, _, s)| s.calls > 0).collect();
    let of_ranks = all.iter().filter(|(rank, ..)| rank.is_some()).count() > 1;
    let members: Vec<(i32, Sums)> = all
        .into_iter()
        .filter(|(rank, ..)| !of_ranks || rank.is_some())
        .map(|(rank, pid, s)| (rank.filter(|_| of_ranks).unwrap_or(pid), s))
        .collect();
    let n = members.len();
    if n < 2 {
        return None;
    }
    let over = |of: &dyn Fn(&Sums) -> i64| {
        let max = members.iter().map(|(_, s)| of(s)).max().unwrap_or(0);
        let sum: f64 = members.iter().map(|(_, s)| of(s) as f64).sum();
        if sum > 0.0 { max as f64 * n as f64 / sum } else { 0.0 }
    };
    Some(Imbalance {
        of_ranks,
        members: n,
        bytes_max_over_mean: over(&|s| s.bytes_read.saturating_add(s.bytes_written)),
        time_max_over_mean: over(&|s| s.dur_ns),
        slowest: members.iter().max_by_key(|(_, s)| s.dur_ns).map_or(0, |(id, _)| *id),
    })
}
