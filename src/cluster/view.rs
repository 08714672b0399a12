//! What is shown of all nodes: figures, heat maps on one time axis, and which of them take longer than the others.

use crate::analysis::parallel::ranks::{STRAGGLER, Spread};
use crate::cluster::history::{Node, Rates, State, Track};
use crate::cluster::totals::{OfLayer, Totals, Work};
use crate::vocabulary::Layer;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time in I/O per second of wall time, tick by tick.
pub type Cells = Vec<Option<f32>>;

/// A finding of the last minute.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Among those of its node, the dearest first.
    pub place: usize,
    pub rule: String,
    pub seconds: f64,
}

/// One node.
#[derive(Debug, Clone)]
pub struct NodeRow {
    pub at: usize,
    /// The node's own name, or where that is not known or not the only one its address.
    pub name: String,
    pub address: String,
    pub state: State,
    pub version: String,
    /// Each second, between the last two answers.
    pub work: Option<Work>,
    /// Part of its time that a rank is in I/O, or where there are no ranks a process; the mean of all. Above 1 where
    /// threads of one are in I/O at the same time.
    pub share: Option<f64>,
    pub pressure: Option<f64>,
    pub layers: BTreeMap<Layer, OfLayer>,
    /// Events lost since the trace began.
    pub lost: f64,
    pub processes: f64,
    pub ranks: usize,
    pub tracing: Option<f64>,
    pub findings: Vec<Found>,
    pub restarts: u32,
    /// Time in I/O in all ticks that are shown.
    pub io_ns: i64,
    /// So many times the mean of all that are compared; `None` where this one is not.
    pub of_mean: Option<f64>,
    pub cells: Cells,
}

/// One rank.
#[derive(Debug, Clone)]
pub struct RankRow {
    pub rank: i32,
    /// The index and name of its node.
    pub at: usize,
    pub node: String,
    pub work: Option<Work>,
    pub io_ns: i64,
    pub of_mean: Option<f64>,
    pub cells: Cells,
}

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct View {
    pub interval: Duration,
    /// Ticks of all heat maps.
    pub ticks: usize,
    /// The number of the last one.
    pub now: u64,
    pub nodes: Vec<NodeRow>,
    /// By node, and there by rank.
    pub ranks: Vec<RankRow>,
    /// Of the nodes that answer.
    pub of_nodes: Option<Spread>,
    /// Of their ranks.
    pub of_ranks: Option<Spread>,
}

/// The last ticks, as many at most; `now` is the number of the last one.
pub fn view(nodes: &[Node], interval: Duration, now: u64, ticks: usize) -> View {
    let known = nodes.iter().map(|node| node.track.last(ticks).len()).max().unwrap_or(0);
    let next = nodes.iter().map(Node::next).max().unwrap_or(0);
    let axis = Axis { interval, ticks: known, next };
    let mut rows: Vec<NodeRow> = nodes.iter().enumerate().map(|(at, node)| row(at, node, &axis)).collect();
    name_apart(&mut rows);
    let mut ranks: Vec<RankRow> = nodes.iter().zip(&rows).flat_map(|(node, row)| ranks(node, row, &axis)).collect();
    // Numbers of rows stand for ranks: those of two jobs may be the same. A node that is silent is not compared.
    let of_nodes = spread(rows.iter().map(|row| row.work.map(|_| row.io_ns)));
    let of_ranks = spread(ranks.iter().map(|row| row.work.map(|_| row.io_ns)));
    for row in &mut rows {
        row.of_mean = of_nodes.filter(|_| row.work.is_some()).map(|spread| spread.times_mean(row.io_ns));
    }
    for row in &mut ranks {
        row.of_mean = of_ranks.filter(|_| row.work.is_some()).map(|spread| spread.times_mean(row.io_ns));
    }
    View { interval, ticks: known, now, of_nodes, of_ranks, nodes: rows, ranks }
}

/// Several tracers of one node have their addresses for names.
fn name_apart(rows: &mut [NodeRow]) {
    let mut times = BTreeMap::<String, usize>::new();
    for row in &*rows {
        *times.entry(row.name.clone()).or_default() += 1;
    }
    for row in rows.iter_mut().filter(|row| times.get(&row.name).is_some_and(|n| *n > 1)) {
        row.name.clone_from(&row.address);
    }
}

fn spread(times: impl Iterator<Item = Option<i64>>) -> Option<Spread> {
    let compared = (0..).zip(times).filter_map(|(row, ns)| Some((row, ns?)));
    Spread::of(&compared.collect::<Vec<_>>())
}

struct Axis {
    interval: Duration,
    ticks: usize,
    /// The tick after its last one.
    next: u64,
}

impl Axis {
    /// All ticks, those without an answer at the end too, and the time in I/O in them.
    fn cells(&self, node: &Node, track: &Track) -> (Cells, i64) {
        let behind = usize::try_from(self.next - node.next()).unwrap_or(usize::MAX);
        let mut cells = track.last(self.ticks.saturating_sub(behind));
        let io = cells.iter().flatten().map(|rate| f64::from(*rate) * self.interval.as_secs_f64() * 1e9).sum::<f64>();
        cells.resize(self.ticks, None);
        (cells, io as i64)
    }
}

fn row(at: usize, node: &Node, axis: &Axis) -> NodeRow {
    let totals = node.totals.as_ref().map(|(totals, _)| totals);
    let rates = node.rates.as_ref();
    let (cells, io_ns) = axis.cells(node, &node.track);
    let name = totals.map(|t| t.node.as_str()).filter(|name| !name.is_empty()).unwrap_or(&node.target.name);
    let processes = totals.map_or(0.0, |t| t.processes);
    NodeRow {
        at,
        name: name.to_owned(),
        address: node.target.name.clone(),
        state: node.state.clone(),
        version: totals.map(|t| t.version.clone()).unwrap_or_default(),
        work: rates.map(|rates| rates.work),
        share: rates.and_then(|rates| share(rates, processes)),
        pressure: rates.and_then(|rates| rates.pressure),
        layers: rates.map(|rates| rates.layers.clone()).unwrap_or_default(),
        lost: totals.map_or(0.0, Totals::lost),
        processes,
        ranks: rates.map_or(0, |rates| rates.ranks.len()),
        tracing: totals.and_then(|t| t.tracing),
        findings: totals.map(findings).unwrap_or_default(),
        restarts: node.restarts,
        io_ns,
        of_mean: None,
        cells,
    }
}

fn findings(totals: &Totals) -> Vec<Found> {
    let mut found: Vec<_> = totals.findings.iter().filter(|(_, seconds)| **seconds > 0.0).collect();
    found.sort_by(|a, b| b.1.total_cmp(a.1));
    let of =
        |(place, (rule, seconds)): (usize, (&String, &f64))| Found { place, rule: rule.clone(), seconds: *seconds };
    found.into_iter().enumerate().map(of).collect()
}

fn share(rates: &Rates, processes: f64) -> Option<f64> {
    let ranks = rates.ranks.len();
    if ranks > 0 {
        return Some(rates.ranks.values().map(|work| work.seconds).sum::<f64>() / ranks as f64);
    }
    (processes > 0.0).then(|| rates.work.seconds / processes)
}

fn ranks(node: &Node, row: &NodeRow, axis: &Axis) -> Vec<RankRow> {
    let of = |(rank, track): (&i32, &Track)| {
        let (cells, io_ns) = axis.cells(node, track);
        let work = node.rates.as_ref().and_then(|rates| rates.ranks.get(rank)).copied();
        RankRow { rank: *rank, at: row.at, node: row.name.clone(), work, io_ns, of_mean: None, cells }
    };
    node.ranks.iter().map(of).collect()
}

pub fn is_straggler(times_mean: Option<f64>) -> bool {
    times_mean.is_some_and(|times| times >= STRAGGLER)
}

impl View {
    /// Ranks, or where fewer than two are known nodes, that take much longer than the mean, the slowest first: what
    /// they are called, and how many times the mean.
    pub fn stragglers(&self) -> Vec<(String, f64)> {
        let slow = |times: Option<f64>| times.filter(|_| is_straggler(times));
        let mut found: Vec<(String, f64)> = if self.of_ranks.is_some() {
            let name = |row: &RankRow| format!("rank {} on {}", row.rank, row.node);
            self.ranks.iter().filter_map(|row| Some((name(row), slow(row.of_mean)?))).collect()
        } else {
            self.nodes.iter().filter_map(|row| Some((row.name.clone(), slow(row.of_mean)?))).collect()
        };
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found
    }

    /// Those that do not answer: name, for how long, why.
    pub fn silent(&self) -> Vec<(&str, Duration, &str)> {
        let since = |tick: u64| {
            let ticks = u32::try_from(self.now.saturating_sub(tick)).unwrap_or(u32::MAX);
            self.interval.saturating_mul(ticks)
        };
        self.nodes
            .iter()
            .filter_map(|row| match &row.state {
                State::Silent { why, since: tick } => Some((row.name.as_str(), since(*tick), why.as_str())),
                _ => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{Page, node};

    const SECOND: Duration = Duration::from_secs(1);

    /// Nodes with these seconds in I/O of their ranks, or of what has no rank, each second; the last one is silent at
    /// the end.
    fn nodes(of: &[&[(Option<i32>, f64)]]) -> Vec<Node> {
        let names: Vec<String> = (0..of.len()).map(|n| format!("n{n}")).collect();
        let mut nodes: Vec<Node> = names.iter().map(|name| node(&format!("{name}:1"))).collect();
        for tick in 0..4_u32 {
            for ((node, io), name) in nodes.iter_mut().zip(of).zip(&names) {
                let io: Vec<_> = io.iter().map(|(rank, seconds)| (*rank, seconds * f64::from(tick))).collect();
                let page = Page { name, io: &io, processes: 2, ..Page::default() }.read();
                let silent = tick == 3 && node.target.name == names[names.len() - 1].clone() + ":1";
                node.answer(tick.into(), SECOND * tick, if silent { Err("gone".to_owned()) } else { page });
            }
        }
        nodes
    }

    #[test]
    fn a_straggler_is_one_beyond_the_mean_of_those_that_answer() {
        let ranks = |a, b| vec![(Some(a), 0.25), (Some(a + 1), b)];
        let (even, slow, silent) = (ranks(0, 0.25), ranks(2, 2.25), ranks(4, 0.25));
        let view = view(&nodes(&[&even, &slow, &silent]), SECOND, 5, 600);
        // Three seconds of 0.25, 0.25, 0.25 and 2.25.
        assert_eq!(view.of_ranks.map(|s| (s.max, s.most)), Some((6_750_000_000, 3)));
        assert_eq!(
            view.stragglers().iter().map(|(name, times)| format!("{name} {times:.2}")).collect::<Vec<_>>(),
            ["rank 3 on n1 3.00"]
        );
        assert_eq!(
            view.nodes.iter().map(|row| row.of_mean.map(|t| (t * 100.0).round())).collect::<Vec<_>>(),
            [Some(33.0), Some(167.0), None]
        );
        assert_eq!(view.silent(), [("n2", SECOND * 2, "gone")]);
        assert_eq!(view.nodes[2].cells, [None, Some(0.5), Some(0.5), None]);
        assert_eq!(view.ranks.iter().map(|row| row.cells.len()).collect::<Vec<_>>(), [4; 6]);
        assert_eq!(view.nodes[1].share.map(|share| (share * 100.0).round()), Some(125.0), "the mean of its two ranks");
    }

    #[test]
    fn a_node_that_is_asked_still_has_its_ticks_below_those_of_others() {
        let mut nodes = [node("a:1"), node("b:1")];
        for (node, ticks) in nodes.iter_mut().zip([6, 4]) {
            for tick in 0..ticks {
                let io = [(None, f64::from(tick) / 2.0)];
                node.answer(tick.into(), SECOND * tick, Page { io: &io, ..Page::default() }.read());
            }
        }
        let view = view(&nodes, SECOND, 5, 3);
        let cells: Vec<_> = view.nodes.iter().map(|row| row.cells.clone()).collect();
        assert_eq!(cells, [vec![Some(0.5); 3], vec![Some(0.5), None, None]]);
    }

    #[test]
    fn without_ranks_nodes_are_compared() {
        let view = view(&nodes(&[&[(None, 1.0)], &[(None, 0.2)], &[(None, 0.1)], &[(None, 9.0)]]), SECOND, 4, 2);
        assert_eq!(view.stragglers().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["n0"]);
        assert_eq!((view.ticks, view.nodes[0].cells.len(), view.nodes[0].io_ns), (2, 2, 2_000_000_000));
        assert_eq!((view.nodes[0].share, view.of_ranks), (Some(0.5), None), "of two processes");
    }

    #[test]
    fn two_tracers_of_one_node_are_named_by_their_addresses() {
        let mut nodes = nodes(&[&[], &[], &[]]);
        let same = nodes[0].totals.clone();
        nodes[1].totals = same;
        let view = view(&nodes, SECOND, 4, 60);
        assert_eq!(view.nodes.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["n0:1", "n1:1", "n2"]);
    }

    #[test]
    fn nothing_is_known_at_first() {
        let view = view(&[node("a:1"), node("b:1")], SECOND, 0, 60);
        assert_eq!((view.ticks, view.of_nodes, view.stragglers()), (0, None, vec![]));
        assert_eq!(view.nodes[1].name, "b:1");
    }
}
