//! What a rule sees of a trace, and how it claims time.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::findings::Severity;
use crate::analysis::findings::groups::Groups;
use crate::analysis::findings::groups::group::{Group, LOCK};
use crate::analysis::findings::groups::limits::Limit;
use crate::analysis::findings::groups::ranges::Conflicts;
use crate::analysis::findings::lanes;
use crate::analysis::findings::run::Run;
use crate::vocabulary::Layer;

/// Findings below this many seconds, or this share of the run, are left out.
const LEAST_S: f64 = 0.05;
const LEAST_SHARE: f64 = 0.01;

/// What a rule found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Cause and size: "1204 calls of fdatasync, 1.29 ms each". The file is added.
    pub what: String,
    /// 0: an error, which has no time.
    pub seconds: f64,
    /// Least and greatest seconds that would be saved.
    pub gain: (f64, f64),
    pub groups: Vec<usize>,
    /// Where it does not follow from the seconds.
    pub severity: Option<Severity>,
}

impl Found {
    /// Something that is wrong, or may be, and has no time.
    pub const fn without_time(what: String, groups: Vec<usize>, severity: Severity) -> Self {
        Self { what, seconds: 0.0, gain: (0.0, 0.0), groups, severity: Some(severity) }
    }
}

/// One rule on one trace.
pub struct Case<'a> {
    groups: &'a mut Groups,
    pub run: &'a Run,
    /// The rule's thresholds by name.
    thresholds: &'a dyn Fn(&str) -> f64,
    /// What the rule has not looked at: what it found is right, and there may be more.
    pub unseen: Option<&'static str>,
}

impl<'a> Case<'a> {
    pub fn new(groups: &'a mut Groups, run: &'a Run, thresholds: &'a dyn Fn(&str) -> f64) -> Self {
        Self { groups, run, thresholds, unseen: None }
    }

    pub fn threshold(&self, name: &str) -> f64 {
        (self.thresholds)(name)
    }

    pub fn group(&self, at: usize) -> &Group {
        &self.groups.all[at]
    }

    /// The rank that made the calls of a group.
    pub fn rank(&self, group: &Group) -> Option<i32> {
        self.groups.processes.get(&group.key.process).and_then(|busy| busy.rank)
    }

    /// Pauses of at least so many ns of processes of the critical lane between their calls: how many, and seconds.
    pub fn lane_pauses(&self, least: i64) -> (i64, f64) {
        let of_lane = self.run.lane.processes.keys().filter_map(|ix| self.groups.processes.get(ix));
        let all = of_lane.map(|busy| busy.pauses(least));
        let (count, ns) = all.fold((0_i64, 0_i64), |(n, sum), (m, ns)| (n.saturating_add(m), sum.saturating_add(ns)));
        (count, ns as f64 / 1e9)
    }

    /// Files in which ranks access the same bytes without an order, and why there may be more of them.
    pub fn conflicts(&self) -> (BTreeMap<i32, Conflicts>, Option<&'static str>) {
        self.groups.accesses.conflicts()
    }

    /// Bytes that calls of demoted functions of a layer wrote to a file.
    pub fn demoted(&self, file: i32, layer: Layer) -> i64 {
        self.groups.demoted(file, layer)
    }

    /// Is a file spread over targets of a parallel file system?
    pub fn striped(&self, file: Option<i32>) -> bool {
        file.is_some_and(|file| self.groups.stripe(file).is_some())
    }

    /// The rule looks at no calls on files that are not kept apart.
    pub fn leaves_out_mixed(&mut self) {
        let mixed = self.groups.limits().has(Limit::Groups);
        self.unseen = mixed.then_some("calls on more files than are kept apart were left out");
    }

    /// Seconds between the first and the last call of a rank in which it was in none.
    pub fn pauses(&self, rank: i32) -> f64 {
        let of_rank = self.groups.processes.values().filter(|busy| busy.rank == Some(rank));
        of_rank
            .map(|busy| busy.last.saturating_sub(busy.first).saturating_sub(busy.sum) as f64 / 1e9)
            .fold(0.0, f64::max)
    }

    /// Who else worked on the files of these groups: what held them up.
    pub fn holder(&self, picked: &[usize]) -> Option<String> {
        let files: BTreeSet<i32> = picked.iter().filter_map(|at| self.groups.all[*at].file.value).collect();
        let own: BTreeSet<i32> = picked.iter().map(|at| self.groups.all[*at].key.process).collect();
        let mut time = BTreeMap::<i32, i64>::new();
        for group in self.groups.all.iter().filter(|group| group.file.value.is_some_and(|file| files.contains(&file))) {
            let sum = time.entry(group.key.process).or_default();
            *sum = sum.saturating_add(group.total().saturating_sub(group.time[LOCK]));
        }
        let other = time.iter().filter(|(ix, _)| !own.contains(ix)).max_by_key(|(ix, ns)| (**ns, **ix));
        let Some((ix, _)) = other else {
            let all = !self.groups.limits().has(Limit::Groups);
            return all.then(|| "no other traced process worked on the file".to_owned());
        };
        let busy = self.groups.processes.get(ix)?;
        let rank = busy.rank.map_or_else(String::new, |rank| format!(" (rank {rank})"));
        Some(format!("process {}{rank} worked on the file most meanwhile", busy.pid))
    }

    /// Groups of the critical lane.
    pub fn pick(&self, wanted: impl Fn(&Group) -> bool) -> Vec<usize> {
        let of_lane = |group: &Group| self.run.lane.processes.contains_key(&group.key.process);
        self.everywhere(|group| of_lane(group) && wanted(group))
    }

    /// Groups of all processes.
    pub fn everywhere(&self, wanted: impl Fn(&Group) -> bool) -> Vec<usize> {
        let all = self.groups.all.iter().enumerate();
        all.filter(|(_, group)| wanted(group)).map(|(at, _)| at).collect()
    }

    pub fn sum(&self, picked: &[usize], of: impl Fn(&Group) -> i64) -> i64 {
        picked.iter().map(|at| of(&self.groups.all[*at])).fold(0, i64::saturating_add)
    }

    pub fn calls(&self, picked: &[usize]) -> i64 {
        self.sum(picked, |group| group.calls)
    }

    /// Wall seconds of parts that nothing has claimed.
    pub fn seconds(&self, picked: &[usize], parts: &[usize]) -> f64 {
        let of = |group: &Group| lanes::seconds(&self.run.lane, group, group.left(parts));
        picked.iter().map(|at| of(&self.groups.all[*at])).sum()
    }

    /// Wall seconds of a figure of groups, in ns.
    pub fn wall(&self, picked: &[usize], of: impl Fn(&Group) -> f64) -> f64 {
        let scaled = |group: &Group| lanes::seconds(&self.run.lane, group, of(group) as i64);
        picked.iter().map(|at| scaled(&self.groups.all[*at])).sum()
    }

    /// Does so much time matter?
    pub fn matters(&self, seconds: f64) -> bool {
        seconds >= LEAST_S && seconds >= LEAST_SHARE * self.run.wall
    }

    /// Claims what is left of these parts, if it matters.
    pub fn claim(&mut self, picked: &[usize], parts: &[usize]) -> Option<f64> {
        let seconds = self.seconds(picked, parts);
        if !self.matters(seconds) {
            return None;
        }
        for at in picked {
            self.groups.all[*at].claim(parts);
        }
        Some(seconds)
    }

    /// Claims the parts for a finding whose gain is known before: none when the gain would not matter.
    pub fn found(&mut self, what: String, picked: Vec<usize>, parts: &[usize], gain: (f64, f64)) -> Vec<Found> {
        if !self.matters(f64::midpoint(gain.0, gain.1)) {
            return Vec::new();
        }
        let Some(seconds) = self.claim(&picked, parts) else { return Vec::new() };
        vec![Found { what, seconds, gain, groups: picked, severity: None }]
    }
}
