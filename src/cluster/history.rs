//! What became of each node, answer by answer.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::cluster::target::Target;
use crate::cluster::totals::{OfLayer, Totals, Work};
use crate::vocabulary::Layer;

/// Ticks of the heat map at most.
pub const TICKS: usize = 600;

/// Time in I/O per second of wall time, tick by tick; `None`: no answer then.
#[derive(Debug, Clone, Default)]
pub struct Track(VecDeque<Option<f32>>);

impl Track {
    fn push(&mut self, value: Option<f64>) {
        if self.0.len() >= TICKS {
            self.0.pop_front();
        }
        self.0.push_back(value.map(|value| value as f32));
    }

    /// The last ticks, as many at most.
    pub fn last(&self, ticks: usize) -> Vec<Option<f32>> {
        self.0.iter().skip(self.0.len().saturating_sub(ticks)).copied().collect()
    }
}

/// Does the tracer of a node answer?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It has not had the time to.
    Asked,
    Answers,
    /// Why not, and since which tick.
    Silent {
        why: String,
        since: u64,
    },
}

/// What came between two answers, each second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rates {
    pub work: Work,
    pub ranks: BTreeMap<i32, Work>,
    pub layers: BTreeMap<Layer, OfLayer>,
    /// Part of the time in which some task of the node waited for I/O.
    pub pressure: Option<f64>,
}

/// One node.
#[derive(Debug, Clone)]
pub struct Node {
    pub target: Target,
    pub state: State,
    /// The last answer, and when it came.
    pub totals: Option<(Totals, Duration)>,
    /// `None` until there are two answers.
    pub rates: Option<Rates>,
    pub track: Track,
    pub ranks: BTreeMap<i32, Track>,
    /// How often the counters began again.
    pub restarts: u32,
    /// The next tick to be entered.
    next: u64,
}

impl Node {
    pub fn new(target: Target) -> Self {
        Self {
            target,
            state: State::Asked,
            totals: None,
            rates: None,
            track: Track::default(),
            ranks: BTreeMap::new(),
            restarts: 0,
            next: 0,
        }
    }

    /// The first tick of which nothing is known yet.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// What the node was asked at a tick has come, or will not.
    pub fn answer(&mut self, tick: u64, at: Duration, answer: Result<Totals, String>) {
        // Of ticks for which there was no time, since an answer was slow. So many at most are kept of them.
        let passed = tick.saturating_sub(self.next).min(TICKS as u64);
        self.next = tick + 1;
        match answer {
            Err(why) => {
                let since = match &self.state {
                    State::Silent { since, .. } => *since,
                    _ => tick,
                };
                self.state = State::Silent { why, since };
                self.rates = None;
                for _ in 0..=passed {
                    self.enter(None);
                }
            }
            Ok(totals) => {
                let answered = self.state == State::Answers;
                let rates = self.since_before(&totals, at);
                for _ in 0..passed {
                    // The rate between two answers is that of all ticks between them.
                    self.enter(rates.as_ref().filter(|_| answered));
                }
                self.enter(rates.as_ref());
                self.state = State::Answers;
                self.rates = rates;
                self.totals = Some((totals, at));
            }
        }
    }

    fn since_before(&mut self, totals: &Totals, at: Duration) -> Option<Rates> {
        let (before, then) = self.totals.as_ref()?;
        let seconds = at.saturating_sub(*then).as_secs_f64();
        if seconds <= 0.0 {
            return self.rates.clone();
        }
        // Another trace: its counters began at 0. One that counts since the node's boot goes on.
        let restarted = (totals.started - before.started).abs() > 0.5 || totals.work().calls < before.work().calls;
        self.restarts = self.restarts.saturating_add(restarted.into());
        let began = Totals::default();
        Some(rates(totals, if restarted { &began } else { before }, before.pressure, seconds))
    }

    /// The next tick of all tracks.
    fn enter(&mut self, rates: Option<&Rates>) {
        let length = self.track.0.len();
        self.track.push(rates.map(|rates| rates.work.seconds));
        for rank in rates.iter().flat_map(|rates| rates.ranks.keys()) {
            // It came later than the node.
            let new = || Track(std::iter::repeat_n(None, length).collect());
            self.ranks.entry(*rank).or_insert_with(new);
        }
        for (rank, track) in &mut self.ranks {
            track.push(rates.map(|rates| rates.ranks.get(rank).map_or(0.0, |work| work.seconds)));
        }
        // Of an earlier job: nothing was heard of it in all the time that is kept.
        if length >= TICKS {
            self.ranks.retain(|rank, track| {
                rates.is_none_or(|rates| rates.ranks.contains_key(rank)) || track.0.iter().flatten().any(|s| *s > 0.0)
            });
        }
    }
}

/// Each second, of what was counted between two times. A counter that is less than before began again in between.
fn rates(now: &Totals, before: &Totals, pressure_before: Option<f64>, seconds: f64) -> Rates {
    let since = |now: f64, before: f64| if now >= before { now - before } else { now };
    let rate = |now: f64, before: f64| since(now, before) / seconds;
    let work = |now: Work, before: Option<&Work>| now.with(before.copied().unwrap_or_default(), rate);
    let programs: BTreeMap<_, _> =
        now.programs.iter().map(|(rank, of)| (*rank, work(*of, before.programs.get(rank)))).collect();
    let layers = now.layers.iter().filter_map(|(layer, of)| {
        let then = before.layers.get(layer).copied().unwrap_or_default();
        let rates = OfLayer {
            work: work(of.work, Some(&then.work)),
            own_seconds: rate(of.own_seconds, then.own_seconds),
            lost: rate(of.lost, then.lost),
        };
        Some(((*layer)?, rates))
    });
    Rates {
        work: programs.values().fold(Work::default(), |all, of| all.with(*of, |a, b| a + b)),
        layers: layers.collect(),
        ranks: programs.into_iter().filter_map(|(rank, of)| Some((rank?, of))).collect(),
        pressure: now.pressure.zip(pressure_before).map(|(now, before)| rate(now, before).min(1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{Page, node};

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn shown(node: &Node) -> Vec<Option<f32>> {
        node.track.last(TICKS)
    }

    #[test]
    fn figures_are_those_between_two_answers() {
        let mut node = node("a:1");
        let first = Page { io: &[(Some(0), 1.0), (None, 0.5)], calls: 100.0, pressure: 7.0, ..Page::default() };
        node.answer(0, seconds(10), first.read());
        assert_eq!((node.rates.clone(), shown(&node)), (None, vec![None]));
        let second = Page { io: &[(Some(0), 2.0), (None, 1.0)], calls: 300.0, pressure: 8.0, ..first };
        node.answer(1, seconds(12), second.read());
        let rates = node.rates.clone().unwrap_or_default();
        assert_eq!((rates.work.calls, rates.work.seconds, rates.pressure), (100.0, 0.75, Some(0.5)));
        assert_eq!(rates.ranks.get(&0).map(|work| work.seconds), Some(0.5));
        assert_eq!(shown(&node), [None, Some(0.75)]);
        assert_eq!(node.ranks[&0].last(TICKS), [None, Some(0.5)]);
    }

    #[test]
    fn counters_that_begin_again_count_from_zero() {
        let mut node = node("a:1");
        let page = |started, io| Page { io: &[], started, calls: io, pressure: 100.0 + io, ..Page::default() }.read();
        node.answer(0, seconds(0), page(1.0, 500.0));
        // Of a trace that began later and has counted more already.
        node.answer(1, seconds(1), page(2.0, 600.0));
        let rates = node.rates.clone().unwrap_or_default();
        assert_eq!((rates.work.calls, node.restarts, rates.pressure), (600.0, 1, Some(1.0)), "the node goes on");
        // The start is not known to have changed, and the counter is less.
        node.answer(2, seconds(2), page(2.0, 50.0));
        assert_eq!((node.rates.clone().unwrap_or_default().work.calls, node.restarts), (50.0, 2));
    }

    #[test]
    fn a_node_that_does_not_answer_keeps_its_history_with_a_gap() {
        let mut node = node("a:1");
        let page = |io| Page { io: &[(Some(3), io)], ..Page::default() }.read();
        node.answer(0, seconds(0), page(0.0));
        node.answer(1, seconds(1), page(1.0));
        node.answer(2, seconds(2), Err("Connection refused".to_owned()));
        node.answer(4, seconds(4), Err("no answer within 5 s".to_owned()));
        assert_eq!(node.state, State::Silent { why: "no answer within 5 s".to_owned(), since: 2 });
        assert_eq!((node.rates.clone(), shown(&node)), (None, vec![None, Some(1.0), None, None, None]));
        node.answer(5, seconds(5), page(3.0));
        assert_eq!((node.state.clone(), shown(&node).last().copied().flatten()), (State::Answers, Some(0.5)));
        // A slow answer: the rate holds for the tick in between, too.
        node.answer(7, seconds(7), page(7.0));
        assert_eq!(shown(&node)[5..], [Some(0.5), Some(2.0), Some(2.0)]);
        assert_eq!(node.ranks[&3].last(TICKS), shown(&node));
    }

    #[test]
    fn a_rank_that_comes_later_is_on_the_same_axis_and_memory_is_bounded() {
        let mut node = node("a:1");
        for tick in 0..2 * TICKS as u64 {
            let all = [(Some(0), tick as f64), (Some(1), 0.0)];
            let io: &[_] = if tick < 100 { &all[..1] } else { &all };
            node.answer(tick, seconds(tick), Page { io, ..Page::default() }.read());
        }
        assert_eq!(node.ranks.values().map(|track| track.0.len()).collect::<Vec<_>>(), [TICKS, TICKS]);
        // Another job: what is not heard of for so long is forgotten.
        for tick in 2 * TICKS as u64..4 * TICKS as u64 {
            node.answer(tick, seconds(tick), Page { io: &[(Some(9), 1.0)], ..Page::default() }.read());
        }
        assert_eq!(node.ranks.keys().copied().collect::<Vec<_>>(), [9]);
        // After a night without a look.
        node.answer(u64::MAX - 1, seconds(1 << 40), Err("gone".to_owned()));
        assert_eq!(shown(&node), vec![None; TICKS]);
    }
}
