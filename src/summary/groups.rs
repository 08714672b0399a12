//! Rows of processes put together: by rank, by control group and what that stands for, by user.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::analysis::calls::Sums;
use crate::analysis::parallel::ranks::{Imbalance, Spread};
use crate::summary::bins::Merge as _;
use crate::summary::screens::{HeatCell, ProcessRow};

/// What a row of the processes screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    #[default]
    Process,
    Thread,
    Rank,
    Cgroup,
    User,
    Container,
    Unit,
    Job,
}

impl Grouping {
    /// In the order in which one key goes through them.
    pub const ALL: [Self; 8] =
        [Self::Process, Self::Thread, Self::Rank, Self::Cgroup, Self::User, Self::Container, Self::Unit, Self::Job];

    /// The one that comes after it, and after the last the first.
    #[must_use]
    pub fn next(self) -> Self {
        let after = Self::ALL.into_iter().skip_while(|by| *by != self).nth(1);
        after.unwrap_or_default()
    }

    pub fn plural(self) -> &'static str {
        match self {
            Self::Process => "processes",
            Self::Thread => "threads",
            Self::Rank => "ranks",
            Self::Cgroup => "control groups",
            Self::User => "users",
            Self::Container => "containers",
            Self::Unit => "units",
            Self::Job => "jobs",
        }
    }

    /// What its rows are called by, and the column of `processes` that has it; none where they are called by commands.
    pub fn name(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Process | Self::Thread | Self::Rank => None,
            Self::Cgroup => Some(("control group", "cgroup")),
            Self::User => Some(("user", "user")),
            Self::Container => Some(("container", "container")),
            Self::Unit => Some(("unit", "unit")),
            Self::Job => Some(("job", "job_id")),
        }
    }

    /// What a row is called by.
    fn of(self, row: &ProcessRow) -> Option<&Arc<str>> {
        match self {
            Self::Process | Self::Thread | Self::Rank => None,
            Self::Cgroup => row.cgroup.as_ref(),
            Self::User => row.user.as_ref(),
            Self::Container => row.container.as_ref(),
            Self::Unit => row.unit.as_ref(),
            Self::Job => row.job.as_ref(),
        }
    }

    /// Whether two rows go together.
    fn same(self, a: &ProcessRow, b: &ProcessRow) -> bool {
        match self {
            Self::Process => a.process_ix == b.process_ix,
            Self::Thread => (a.process_ix, a.tid) == (b.process_ix, b.tid),
            Self::Rank => a.rank == b.rank,
            _ => self.of(a) == self.of(b),
        }
    }

    /// The rows of processes that are in a group.
    pub fn members<'a>(self, rows: &'a [ProcessRow], group: &ProcessRow) -> Vec<&'a ProcessRow> {
        rows.iter().filter(|r| self.same(r, group)).collect()
    }
}

/// How unequal the I/O of ranks is, from the rank and the sums of each process; those of one rank count together. `None` with
/// fewer than two ranks that have done I/O.
pub fn imbalance(processes: impl Iterator<Item = (Option<i32>, Sums)>) -> Option<Imbalance> {
    let mut ranks = BTreeMap::<i32, Sums>::new();
    for (rank, sums) in processes.filter(|(_, sums)| sums.calls > 0) {
        if let Some(rank) = rank {
            ranks.entry(rank).or_default().merge(&sums);
        }
    }
    let ranks: Vec<_> = ranks.into_iter().map(|(rank, sums)| (rank, sums.dur_ns, sums.bytes())).collect();
    Imbalance::of("all", &ranks)
}

/// How far apart the times of ranks are, from rows of one rank each; `None` with fewer than two that have done I/O.
pub fn spread(ranks: &[ProcessRow]) -> Option<Spread> {
    let times = ranks.iter().filter(|r| r.sums.calls > 0).filter_map(|r| Some((r.rank?, r.sums.dur_ns)));
    Spread::of(&times.collect::<Vec<_>>())
}

/// Ranks in their order and what has none last; others by the time in I/O of their first process.
pub fn grouped(rows: &[ProcessRow], by: Grouping) -> Vec<ProcessRow> {
    if matches!(by, Grouping::Process | Grouping::Thread) {
        return rows.to_vec();
    }
    let mut at_key: BTreeMap<(Option<i32>, Option<Arc<str>>), usize> = BTreeMap::new();
    let mut groups: Vec<ProcessRow> = Vec::new();
    for row in rows {
        let key = if by == Grouping::Rank { (row.rank, None) } else { (None, by.of(row).cloned()) };
        let at = *at_key.entry(key).or_insert(groups.len());
        if let Some(group) = groups.get_mut(at) {
            merge(group, row);
        } else {
            let mut group = ProcessRow { members: 1, ..row.clone() };
            if by.name().is_some() {
                group.rank = None;
                group.command = by.of(row).cloned().unwrap_or_else(|| "(none known)".into());
                group.cmdline = Arc::clone(&group.command);
            }
            groups.push(group);
        }
    }
    groups
}

fn merge(group: &mut ProcessRow, row: &ProcessRow) {
    group.members += 1;
    if group.host != row.host {
        group.host = Some("several".into());
    }
    group.threads += row.threads;
    group.start_ns = group.start_ns.min(row.start_ns);
    // A group has ended when all of it has.
    group.end_ns = group.end_ns.zip(row.end_ns).map(|(a, b)| a.max(b));
    group.sums.merge(&row.sums);
    group.system.merge(&row.system);
    for (layer, ns) in &row.self_by_layer {
        match group.self_by_layer.iter_mut().find(|(l, _)| l == layer) {
            Some((_, sum)) => *sum = sum.saturating_add(*ns),
            None => group.self_by_layer.push((*layer, *ns)),
        }
    }
    group.read_ns = group.read_ns.saturating_add(row.read_ns);
    group.write_ns = group.write_ns.saturating_add(row.write_ns);
    group.meta_ns = group.meta_ns.saturating_add(row.meta_ns);
    group.calls_per_s += row.calls_per_s;
    group.read_per_s += row.read_per_s;
    group.written_per_s += row.written_per_s;
    if group.heat.len() < row.heat.len() {
        group.heat.resize(row.heat.len(), HeatCell::default());
    }
    for (sum, cell) in group.heat.iter_mut().zip(&row.heat) {
        sum.merge(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::Layer;

    fn rows() -> Vec<ProcessRow> {
        let row = |ix: i32, rank, cgroup: &str, end_ns| ProcessRow {
            process_ix: ix,
            pid: 100 + ix,
            rank,
            cgroup: Some(cgroup.into()),
            user: rank.map(|_| "root".into()),
            threads: 2,
            end_ns,
            sums: Sums { calls: 1 << ix, dur_ns: 10, ..Sums::default() },
            self_by_layer: vec![(if ix == 0 { Layer::Stdio } else { Layer::Syscall }, 5)],
            heat: vec![HeatCell { bytes: 1, dur_ns: 1 }; ix as usize],
            ..ProcessRow::default()
        };
        vec![row(0, Some(0), "/a", Some(7)), row(1, Some(0), "/b", Some(9)), row(2, None, "/b", None)]
    }

    #[test]
    fn a_group_is_the_sum_of_its_processes() {
        let ranks = grouped(&rows(), Grouping::Rank);
        assert_eq!(ranks.iter().map(|r| (r.rank, r.members)).collect::<Vec<_>>(), [(Some(0), 2), (None, 1)]);
        assert_eq!((ranks[0].sums.calls, ranks[0].threads, ranks[0].end_ns), (3, 4, Some(9)));
        assert_eq!(ranks[0].self_by_layer, [(Layer::Stdio, 5), (Layer::Syscall, 5)]);
        assert_eq!(ranks[0].heat.len(), 1);
        let cgroups = grouped(&rows(), Grouping::Cgroup);
        let facts: Vec<_> = cgroups.iter().map(|r| (&*r.command, r.members, r.sums.calls, r.end_ns)).collect();
        assert_eq!(facts, [("/a", 1, 1, Some(7)), ("/b", 2, 6, None)], "what goes on has not ended");
        let users = grouped(&rows(), Grouping::User);
        let facts: Vec<_> = users.iter().map(|r| (&*r.command, r.members)).collect();
        assert_eq!(facts, [("root", 2), ("(none known)", 1)]);
    }

    #[test]
    fn processes_of_a_rank_count_together_and_those_without_one_not_at_all() {
        let sums = |dur_ns, bytes_read| Sums { calls: 1, dur_ns, bytes_read, ..Sums::default() };
        let all = [(Some(0), sums(10, 1)), (Some(1), sums(20, 3)), (Some(0), sums(40, 1)), (None, sums(500, 900))];
        let found = imbalance(all.into_iter()).map(|i| (i.ranks, i.slowest, i.max_to_mean, i.bytes_max_to_mean));
        assert_eq!(found, Some((2, 0, 50.0 / 35.0, Some(3.0 / 2.5))));
        assert_eq!(imbalance([(Some(3), sums(10, 1)), (None, sums(9, 9))].into_iter()), None);
        assert_eq!(imbalance([(None, sums(10, 1)), (None, sums(9, 9))].into_iter()), None);
        assert_eq!(imbalance([(Some(0), sums(10, 1)), (Some(1), Sums::default())].into_iter()), None);
    }

    #[test]
    fn every_process_is_in_one_group() {
        for by in Grouping::ALL {
            let all = rows();
            let mut members: Vec<i32> =
                grouped(&all, by).iter().flat_map(|g| by.members(&all, g)).map(|r| r.pid).collect();
            members.sort_unstable();
            assert_eq!(members, [100, 101, 102], "{by:?}");
        }
    }
}
