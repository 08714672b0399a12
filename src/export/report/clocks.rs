//! How far the clocks of nodes are apart, from calls that no process can leave before all have entered.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::correlate::rows::Span;
use crate::words::flag;

/// The collective calls that synchronise in every implementation: an open duplicates its communicator, for which all
/// processes have to agree. The others may let a process go on when its own part is done.
const SYNCHRONISE: &str = "MPI_File_open";

/// Calls that are remembered; further ones could only make the bounds narrower.
const REMEMBERED_MAX: usize = 1 << 20;

/// One process in one collective call, by the wall clock of its node, ns since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attendance {
    pub host: usize,
    /// The call, and which one of that id it is (two runs may have the same ids).
    pub call: (i64, usize),
    pub begin: i64,
    pub end: i64,
}

/// How the clock of a node relates to that of the first one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// What to add to its wall clock to get that of the first node.
    pub offset_ns: i64,
    /// The offset cannot be less, nor more, if clocks ran evenly. Null: nothing is known.
    pub least_ns: Option<i64>,
    pub most_ns: Option<i64>,
    /// Collective calls that processes of both nodes took part in.
    pub calls: usize,
    /// `reference` (the first node), `wall` (wall clocks agree as far as is known), `calls` (the middle of the bounds),
    /// or `contradiction` (the bounds exclude each other: a clock was set during the trace).
    pub how: &'static str,
}

/// Aligns the clocks of `hosts` nodes to that of the first: wall clocks are taken where the calls allow it.
pub fn align(hosts: usize, attendances: &[Attendance]) -> Vec<Clock> {
    /// Of one node in one call: the last to enter and the first to leave.
    #[derive(Clone, Copy)]
    struct Stay {
        entered: i64,
        left: i64,
    }
    let mut calls = BTreeMap::<(i64, usize), BTreeMap<usize, Stay>>::new();
    for a in attendances {
        let stay = calls.entry(a.call).or_default().entry(a.host).or_insert(Stay { entered: a.begin, left: a.end });
        stay.entered = stay.entered.max(a.begin);
        stay.left = stay.left.min(a.end);
    }
    let mut clocks = vec![Clock { how: "wall", ..Clock::default() }; hosts];
    for stays in calls.values() {
        let Some(first) = stays.get(&0) else { continue };
        for (host, stay) in stays.range(1..) {
            let Some(clock) = clocks.get_mut(*host) else { continue };
            // Nobody left the call before everybody was in it.
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
                _ => (least + most.saturating_sub(least) / 2, "calls"),
            };
        }
    }
    if let Some(first) = clocks.first_mut() {
        first.how = "reference";
    }
    clocks
}

/// Calls that synchronise, while the rows of a trace go by.
#[derive(Default)]
pub struct Meetings {
    seen: Vec<Meeting>,
}

struct Meeting {
    coll_id: i64,
    span_id: i64,
    /// The rank, or the process.
    who: i64,
    begin: i64,
    end: i64,
}

impl Meetings {
    pub fn span(&mut self, span: &Span) {
        // One that failed may have returned at once.
        let counts = span.op == SYNCHRONISE && span.errno == 0 && span.flags & flag::UNFINISHED == 0;
        let Some(coll_id) = span.coll_id.filter(|_| counts) else { return };
        if self.seen.len() < REMEMBERED_MAX {
            let who = span.rank.map_or(-1 - i64::from(span.process_ix), i64::from);
            let (begin, end) = (span.start_ns, span.start_ns.saturating_add(span.dur_ns));
            self.seen.push(Meeting { coll_id, span_id: span.span_id, who, begin, end });
        }
    }

    /// Who met whom, given the node of a call.
    pub fn attendances(mut self, host_of: impl Fn(i64) -> Option<usize>) -> Vec<Attendance> {
        self.seen.sort_by_key(|m| m.begin);
        let mut times = HashMap::<(usize, i64, i64), usize>::new();
        let attendance = |m: &Meeting| {
            let host = host_of(m.span_id)?;
            let run = times.entry((host, m.coll_id, m.who)).or_default();
            *run += 1;
            Some(Attendance { host, call: (m.coll_id, *run), begin: m.begin, end: m.end })
        };
        self.seen.iter().filter_map(attendance).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    /// Calls in true time: for each, who is in it (node), when they come, and how long after the last came they leave.
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
                all.push(Attendance { host: *host, call: (id as i64, 1), begin, end });
            }
        }
        all
    }

    proptest! {
        #[test]
        fn the_true_offset_is_never_excluded(calls in calls(), behind in proptest::array::uniform4(-S..S)) {
            for (host, clock) in align(4, &shown(&calls, &behind)).iter().enumerate() {
                let truth = behind[host] - behind[0];
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
        fn with_the_offset_added_nobody_leaves_before_all_are_in(calls in calls(), behind in proptest::array::uniform4(-S..S)) {
            let shown = shown(&calls, &behind);
            let clocks = align(4, &shown);
            let to_first = |a: &Attendance, time: i64| time + clocks[a.host].offset_ns;
            for a in shown.iter().filter(|a| a.host == 0) {
                for b in shown.iter().filter(|b| b.call == a.call) {
                    prop_assert!(to_first(a, a.begin) <= to_first(b, b.end));
                    prop_assert!(to_first(b, b.begin) <= to_first(a, a.end));
                }
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let meet = |host, id, begin| Attendance { host, call: (id, 1), begin, end: begin + 10 };
        let clocks = align(2, &[meet(0, 1, 0), meet(1, 1, 0), meet(0, 2, 1000), meet(1, 2, 5000)]);
        assert_eq!((clocks[1].how, clocks[1].offset_ns, clocks[1].calls), ("contradiction", 0, 2));
        assert_eq!((clocks[1].least_ns, clocks[1].most_ns), (Some(-10), Some(-3990)));
    }

    #[test]
    fn a_node_that_met_nobody_keeps_its_wall_clock() {
        let alone = Attendance { host: 1, call: (1, 1), begin: 5, end: 6 };
        let clocks = align(2, &[alone]);
        assert_eq!(clocks[1], Clock { how: "wall", ..Clock::default() });
        assert_eq!(align(0, &[]), []);
    }
}
