//! How far the clocks of nodes are apart, from calls that no process can leave before all have entered.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::HashMap;
use crate::rows::Span;
use crate::vocabulary::flag;

/// The collective calls that synchronise in every implementation: an open duplicates its communicator, for which all
/// processes have to agree. The others may let a process go on when its own part is done.
const SYNCHRONISE: &str = "MPI_File_open";

/// Processes in calls that are remembered, at most.
const REMEMBERED_MAX: usize = 1 << 20;

/// One process in one collective call, by the wall clock of its node, ns since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attendance {
    pub host: usize,
    pub call: Call,
    pub begin: i64,
    pub end: i64,
}

/// A collective call, as far as nodes agree on which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    pub coll_id: i64,
    /// How often each process of the node has the id: several runs of one program may have the same. Where that differs
    /// which is which is not known.
    pub times: usize,
    /// Which of these.
    pub run: usize,
}

/// How the clock of a node relates to that of the node of reference: the first one that met another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// What to add to its wall clock to get that of reference.
    pub offset_ns: i64,
    /// The offset cannot be less, nor more, if clocks ran evenly. Null: nothing is known.
    pub least_ns: Option<i64>,
    pub most_ns: Option<i64>,
    /// Collective calls that processes of both nodes took part in.
    pub calls: usize,
    /// `reference` (that node), `wall` (wall clocks agree as far as is known), `calls` (the middle of the bounds),
    /// or `contradiction` (the bounds exclude each other: a clock was set during the trace).
    pub how: &'static str,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeRow {
    pub host: String,
    pub datasets: usize,
    /// Start of the trace on it by its own clock, ns since 1970.
    pub start_wall_ns: Option<i64>,
    pub kernel: Option<String>,
    pub clock: Clock,
}

/// Aligns the clocks of `hosts` nodes to that of one of them: wall clocks are taken where the calls allow it.
pub fn align(hosts: usize, attendances: &[Attendance]) -> Vec<Clock> {
    /// Of one node in one call: the last to enter and the first to leave.
    #[derive(Clone, Copy)]
    struct Stay {
        entered: i64,
        left: i64,
    }
    let mut calls = BTreeMap::<Call, BTreeMap<usize, Stay>>::new();
    for a in attendances {
        let stay = calls.entry(a.call).or_default().entry(a.host).or_insert(Stay { entered: a.begin, left: a.end });
        stay.entered = stay.entered.max(a.begin);
        stay.left = stay.left.min(a.end);
    }
    let mut clocks = vec![Clock { how: "wall", ..Clock::default() }; hosts];
    let met = calls.values().filter(|stays| stays.len() > 1);
    let reference = met.filter_map(|stays| stays.keys().next()).min().copied().unwrap_or(0);
    for stays in calls.values() {
        let Some(first) = stays.get(&reference) else { continue };
        for (host, stay) in stays.iter().filter(|(host, _)| **host != reference) {
            let Some(clock) = clocks.get_mut(*host) else { continue };
            // No rank left the call before all were in it.
            let least = first.entered.saturating_sub(stay.left);
            let most = first.left.saturating_sub(stay.entered);
            clock.least_ns = Some(clock.least_ns.map_or(least, |l| l.max(least)));
            clock.most_ns = Some(clock.most_ns.map_or(most, |m| m.min(most)));
            clock.calls += 1;
        }
    }
    for clock in &mut clocks {
        if let (Some(least), Some(most)) = (clock.least_ns, clock.most_ns) {
            (clock.offset_ns, clock.how) = match (least, most) {
                _ if least > most => (0, "contradiction"),
                _ if least <= 0 && most >= 0 => (0, "wall"),
                // Half of the difference, rounded down.
                _ => (least.saturating_add(most.saturating_sub(least) / 2), "calls"),
            };
        }
    }
    if let Some(clock) = clocks.get_mut(reference) {
        clock.how = "reference";
    }
    clocks
}

/// Calls that synchronise, while the rows of a trace go by. When they are too many, some calls are left out of all nodes:
/// those whose mixed id has none of these bits are kept.
#[derive(Default)]
pub struct Meetings {
    seen: Vec<Meeting>,
    without: u64,
}

struct Meeting {
    coll_id: i64,
    span_id: i64,
    /// The rank, or the process.
    member: i64,
    begin: i64,
    end: i64,
}

impl Meetings {
    pub fn span(&mut self, span: &Span) {
        self.span_of(span, REMEMBERED_MAX);
    }

    fn span_of(&mut self, span: &Span, most: usize) {
        // One that failed may have returned at once.
        let counts = span.op == SYNCHRONISE && span.errno == 0 && span.flags & flag::UNFINISHED == 0;
        let Some(coll_id) = span.coll_id.filter(|id| counts && mixed(*id) & self.without == 0) else { return };
        let member = span.rank.map_or(-1 - i64::from(span.process_ix), i64::from);
        let (begin, end) = (span.start_ns, span.end_ns());
        self.seen.push(Meeting { coll_id, span_id: span.span_id, member, begin, end });
        while self.seen.len() > most && self.without != u64::MAX {
            self.without = self.without << 1 | 1;
            self.seen.retain(|meeting| mixed(meeting.coll_id) & self.without == 0);
        }
    }

    /// Which nodes took part in a collective call together, given the node of a call.
    pub fn attendances(mut self, host_of: impl Fn(i64) -> Option<usize>) -> Vec<Attendance> {
        self.seen.sort_by_key(|m| m.begin);
        let mut times = HashMap::<(usize, i64), HashMap<i64, usize>>::default();
        let mut met = Vec::new();
        for m in &self.seen {
            let Some(host) = host_of(m.span_id) else { continue };
            let run = times.entry((host, m.coll_id)).or_default().entry(m.member).or_default();
            *run += 1;
            met.push((host, *run, m));
        }
        let attendance = |(host, run, m): (usize, usize, &Meeting)| {
            let of = times.get(&(host, m.coll_id))?;
            let times = of.values().copied().max()?;
            let even = of.values().all(|n| *n == times);
            let call = Call { coll_id: m.coll_id, times, run };
            even.then_some(Attendance { host, call, begin: m.begin, end: m.end })
        };
        met.into_iter().filter_map(attendance).collect()
    }
}

/// Ids that follow each other, spread over all bits.
fn mixed(id: i64) -> u64 {
    let id = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    id ^ id >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    fn once(coll_id: i64) -> Call {
        Call { coll_id, times: 1, run: 1 }
    }

    /// Calls in true time: for each, the nodes in it, when they come, and how long after the last came they leave.
    fn calls() -> impl Strategy<Value = Vec<Vec<(usize, i64, i64)>>> {
        let one = proptest::collection::vec((0..4usize, 0..S, 0..S), 1..12);
        proptest::collection::vec(one, 0..8)
    }

    /// What the nodes' wall clocks show, when they are this far behind the true time.
    fn shown(calls: &[Vec<(usize, i64, i64)>], behind: &[i64; 4]) -> Vec<Attendance> {
        let mut all = Vec::new();
        for (id, call) in calls.iter().enumerate() {
            let all_in = call.iter().map(|(_, came, _)| *came).max().unwrap_or(0);
            for (host, came, after) in call {
                let (begin, end) = (came - behind[*host], all_in + after - behind[*host]);
                all.push(Attendance { host: *host, call: once(id as i64), begin, end });
            }
        }
        all
    }

    proptest! {
        #[test]
        fn the_true_offset_is_never_excluded(calls in calls(), behind in proptest::array::uniform4(-S..S)) {
            let clocks = align(4, &shown(&calls, &behind));
            let reference = clocks.iter().position(|clock| clock.how == "reference").unwrap();
            for (host, clock) in clocks.iter().enumerate() {
                let truth = behind[host] - behind[reference];
                prop_assert!(clock.least_ns.is_none_or(|least| least <= truth), "{clock:?} {truth}");
                prop_assert!(clock.most_ns.is_none_or(|most| truth <= most), "{clock:?} {truth}");
                prop_assert!(clock.how != "contradiction");
                if let (Some(least), Some(most)) = (clock.least_ns, clock.most_ns) {
                    prop_assert!((least..=most).contains(&clock.offset_ns), "{clock:?}");
                } else {
                    prop_assert_eq!(clock.offset_ns, 0);
                }
            }
        }

        #[test]
        fn clocks_that_agree_are_left_alone(calls in calls()) {
            prop_assert!(align(4, &shown(&calls, &[7; 4])).iter().all(|clock| clock.offset_ns == 0));
        }

        #[test]
        fn with_the_offset_added_no_rank_leaves_before_all_are_in(calls in calls(), behind in proptest::array::uniform4(-S..S)) {
            let shown = shown(&calls, &behind);
            let clocks = align(4, &shown);
            let to_first = |a: &Attendance, time: i64| time + clocks[a.host].offset_ns;
            for a in shown.iter().filter(|a| clocks[a.host].how == "reference") {
                for b in shown.iter().filter(|b| b.call == a.call) {
                    prop_assert!(to_first(a, a.begin) <= to_first(b, b.end));
                    prop_assert!(to_first(b, b.begin) <= to_first(a, a.end));
                }
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let meet = |host, id, begin| Attendance { host, call: once(id), begin, end: begin + 10 };
        let clocks = align(2, &[meet(0, 1, 0), meet(1, 1, 0), meet(0, 2, 1000), meet(1, 2, 5000)]);
        assert_eq!((clocks[1].how, clocks[1].offset_ns, clocks[1].calls), ("contradiction", 0, 2));
        assert_eq!((clocks[1].least_ns, clocks[1].most_ns), (Some(-10), Some(-3990)));
    }

    #[test]
    fn a_node_without_common_collective_calls_keeps_its_wall_clock() {
        let alone = Attendance { host: 1, call: once(1), begin: 5, end: 6 };
        let clocks = align(2, &[alone]);
        assert_eq!(clocks[1], Clock { how: "wall", ..Clock::default() });
        assert_eq!(align(0, &[]), []);
    }

    #[test]
    fn the_reference_is_the_first_that_met_another() {
        let meet = |host, id, begin| Attendance { host, call: once(id), begin, end: begin + 10 };
        let clocks = align(4, &[meet(0, 1, 0), meet(2, 2, 0), meet(1, 2, 5000), meet(3, 2, 0)]);
        let found: Vec<_> = clocks.iter().map(|clock| (clock.how, clock.offset_ns)).collect();
        assert_eq!(found, [("wall", 0), ("reference", 0), ("calls", 5000), ("calls", 5000)]);
    }

    /// An open on the node of which it is the thread.
    fn open(node: u32, rank: i32, coll_id: i64, start_ns: i64) -> Span {
        let mut span = crate::export::dataset::tests::span(node, rank as u32, start_ns);
        (span.op, span.coll_id, span.rank, span.dur_ns, span.errno) = (SYNCHRONISE, Some(coll_id), Some(rank), 10, 0);
        span
    }

    fn met(opens: impl IntoIterator<Item = Span>, most: usize) -> Vec<Attendance> {
        let mut meetings = Meetings::default();
        opens.into_iter().for_each(|open| meetings.span_of(&open, most));
        meetings.attendances(|id| Some((id >> crate::rows::SEQ_BITS) as usize))
    }

    #[test]
    fn nodes_that_do_not_have_the_same_runs_did_not_meet() {
        // The second run of the one is the only one that is there of the other.
        let clocks = align(2, &met([open(0, 0, 7, 0), open(0, 0, 7, 3600 * S), open(1, 1, 7, 3600 * S)], 100));
        assert_eq!((clocks[1].how, clocks[1].offset_ns, clocks[1].calls), ("wall", 0, 0));
        // Nor is it known which run of one process is which of another one's.
        assert_eq!(met([open(0, 0, 7, 0), open(0, 0, 7, 3600 * S), open(0, 1, 7, 3600 * S)], 100), []);
        let both = [open(0, 0, 7, 0), open(1, 1, 7, 40), open(0, 0, 7, S), open(1, 1, 7, S + 40)];
        let clocks = align(2, &met(both, 100));
        assert_eq!((clocks[1].how, clocks[1].offset_ns, clocks[1].calls), ("calls", -40, 2));
    }

    #[test]
    fn of_too_many_calls_all_nodes_remember_the_same() {
        let opens = (0..3).flat_map(|node| (0..100).map(move |id| open(node, node as i32, id, id * 100)));
        let met = met(opens, 64);
        let of = |host| met.iter().filter(|a| a.host == host).map(|a| a.call.coll_id).collect::<Vec<_>>();
        assert!((1..=21).contains(&of(0).len()) && of(0) == of(1) && of(0) == of(2), "{met:?}");
    }
}
