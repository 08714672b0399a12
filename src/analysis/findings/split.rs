//! Where the time of a run went before rules claim any of it: the wall time of each lane by calls that are alike, in parts.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use crate::analysis::findings::groups::Groups;
use crate::analysis::findings::groups::group::{BETWEEN, Group};
use crate::analysis::findings::hooks;
use crate::analysis::findings::lanes::{self, Lane, Weighed};
pub use crate::analysis::findings::run::USUAL;
use crate::analysis::findings::run::{Others, Run};
use crate::analysis::findings::{Trace, calls_by_layer};
use crate::vocabulary::{Kind, Layer};

/// Wall seconds by part of the time in calls.
pub type Parts = [f64; BETWEEN];

/// Calls of a lane that are alike.
#[derive(Debug, Clone)]
pub struct Portion<'a> {
    pub group: &'a Group,
    pub parts: Parts,
    /// By how much wall time is less than that of its threads together.
    pub scale: f64,
}

/// A lane with its calls.
#[derive(Debug, Clone, Default)]
pub struct OfLane<'a> {
    /// Wall seconds in calls, less what it waited for other ranks.
    pub own_s: f64,
    pub rank: Option<i32>,
    pub pids: Vec<i32>,
    pub portions: Vec<Portion<'a>>,
}

/// Groups of calls with their time, and what is known of the run.
pub struct Split {
    pub(super) groups: Groups,
    pub(super) run: Run,
    /// Of the critical lane, in ns: wall time in calls, less what it waited for other ranks.
    own: i64,
    /// The lanes beside it.
    beside: Vec<Weighed>,
}

impl Split {
    /// Of calls, requests and the pids of traced processes.
    pub(super) fn of(mut groups: Groups, (others, pids): (&Others, &RoaringBitmap), trace: &Trace<'_>) -> Self {
        let mut beside = lanes::all(&mut groups);
        let (own, mut lane) = lanes::critical(&mut beside);
        let cpus = (groups.cpus.len() as usize).saturating_mul(trace.nodes.max(1));
        let run_ns = trace.duration_ns;
        let ns = (trace.tracing.unwrap_or(0.0) * run_ns as f64) as i64;
        hooks::take_off(&mut groups, &lane, cpus, hooks::Tracing { ns, run_ns });
        lanes::limit(&mut lane, &groups, trace.duration_ns);
        let run = Run::new(&groups, lane, (trace.duration_ns, trace.tracing.unwrap_or(0.0), trace.nodes), others, pids);
        Self { groups, run, own, beside }
    }

    /// The lanes with their calls, the critical one first.
    pub fn lanes(&self) -> Vec<OfLane<'_>> {
        let mut by_process = BTreeMap::<i32, Vec<&Group>>::new();
        for group in &self.groups.all {
            by_process.entry(group.key.process).or_default().push(group);
        }
        let of = |(own, lane): (i64, &Lane)| self.lane(own, lane, &by_process);
        let beside = self.beside.iter().map(|(own, lane)| (*own, lane));
        [(self.own, &self.run.lane)].into_iter().chain(beside).map(of).collect()
    }

    fn lane<'a>(&'a self, own: i64, lane: &Lane, by_process: &BTreeMap<i32, Vec<&'a Group>>) -> OfLane<'a> {
        let mut out = OfLane { own_s: own as f64 / 1e9, ..OfLane::default() };
        for process in lane.processes.keys() {
            if let Some(busy) = self.groups.processes.get(process) {
                out.rank = out.rank.or(busy.rank);
                out.pids.push(busy.pid);
            }
            for group in by_process.get(process).into_iter().flatten() {
                let (mut parts, scale) = ([0.0; BETWEEN], lanes::seconds(lane, group, 1_000_000_000));
                for (seconds, ns) in parts.iter_mut().zip(group.unclaimed()) {
                    *seconds = lanes::seconds(lane, group, ns);
                }
                out.portions.push(Portion { group, parts, scale });
            }
        }
        out
    }

    /// Calls by layer.
    pub fn calls(&self, layer: Layer) -> i64 {
        calls_by_layer(&self.groups)[layer as usize]
    }

    /// How many ranks made calls.
    pub const fn ranks(&self) -> usize {
        self.run.lane.ranks
    }

    /// CPUs on which ranks made calls.
    pub fn cpus(&self) -> usize {
        self.groups.cpus.len() as usize
    }

    /// How long the run was, and by how much tracing lengthened it, in seconds.
    pub const fn run_s(&self) -> (f64, f64) {
        (self.run.wall, self.run.tracing)
    }

    /// Seconds that moving so many bytes in large calls takes: at best, and at worst.
    pub fn transfer(&self, kind: Kind, bytes: i64) -> (f64, f64) {
        self.run.transfer(kind, bytes)
    }
}
