//! What calls are put together by, and what each group comes to. The number of groups is bounded.

use std::collections::BTreeMap;

use crate::HashMap;
use crate::analysis::calls::{Figures, is_data, is_estimated};
use crate::analysis::layers::Durations;
use crate::rows::{Block, FileRollup, Span};
use crate::vocabulary::{Kind, Layer};

/// Groups that are distinguished; those that come later are one.
const GROUPS_MAX: usize = 1 << 14;
/// Ranks of all groups together whose time is kept apart.
const RANKS_MAX: usize = 1 << 20;

/// A group of calls of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    All,
    Op(&'static str),
    Owner(Owner),
    File(Option<i32>),
    /// By the number of its name.
    Device(usize),
    Phase(Option<&'static str>),
    /// From this ns on.
    Time(i64),
    /// Those for which there was no room.
    Others,
}

/// A rank, or a process without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    Rank(i32),
    /// By its index, with its number.
    Process(i32, i32),
    /// Sums of processes for which there was no room.
    Unknown,
}

impl Owner {
    /// Of a call of a process with this rank.
    pub fn of(span: &Span, rank: Option<i32>) -> Self {
        rank.map_or(Self::Process(span.process_ix, span.pid), Self::Rank)
    }

    /// The same of calls that were summed up.
    pub fn of_sum(row: &FileRollup, rank: Option<i32>) -> Self {
        match (rank, row.process_ix) {
            (Some(rank), _) => Self::Rank(rank),
            (None, Some(ix)) => Self::Process(ix, row.pid.unwrap_or(0)),
            (None, None) => Self::Unknown,
        }
    }

    pub fn name(self) -> String {
        match self {
            Self::Rank(rank) => rank.to_string(),
            Self::Process(_, pid) => format!("pid {pid}"),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

/// One call with its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub ns: i64,
    pub start_ns: i64,
    pub owner: Option<Owner>,
    /// None of requests and of sums.
    pub span_id: Option<i64>,
}

impl Call {
    /// The longer, or the first of two as long.
    fn longer(a: Self, b: Self) -> Self {
        let before = |call: Self| (std::cmp::Reverse(call.ns), call.start_ns, call.span_id);
        if before(a) <= before(b) { a } else { b }
    }

    fn shorter(a: Self, b: Self) -> Self {
        let before = |call: Self| (call.ns, call.start_ns, call.span_id);
        if before(a) <= before(b) { a } else { b }
    }
}

/// Times of one rank, and what its reads and writes moved in which time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfOwner {
    pub inclusive_ns: i64,
    pub exclusive_ns: i64,
    pub data_ns: i64,
    pub bytes: i64,
}

impl OfOwner {
    fn merge(&mut self, other: &Self) {
        let add = |a: &mut i64, b: i64| *a = a.saturating_add(b);
        add(&mut self.inclusive_ns, other.inclusive_ns);
        add(&mut self.exclusive_ns, other.exclusive_ns);
        add(&mut self.data_ns, other.data_ns);
        add(&mut self.bytes, other.bytes);
    }
}

/// Requests that calls led to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Linked {
    pub requests: i64,
    pub bytes: i64,
    pub device_ns: i64,
    pub joules: f64,
}

/// What the calls of a group come to.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    pub figures: Figures,
    /// Of every call, nested ones too.
    pub durations: Durations,
    pub longest: Option<Call>,
    pub shortest: Option<Call>,
    pub owners: BTreeMap<Owner, OfOwner>,
    pub linked: Linked,
}

impl Sum {
    pub fn merge(&mut self, other: &Self) {
        self.figures.merge(&other.figures);
        self.durations.merge(&other.durations);
        self.call(other.longest);
        self.call(other.shortest);
        for (owner, of) in &other.owners {
            self.owners.entry(*owner).or_default().merge(of);
        }
        self.linked(&other.linked);
    }

    /// Adds requests.
    pub fn linked(&mut self, more: &Linked) {
        let Linked { requests, bytes, device_ns, joules } = &mut self.linked;
        *requests = requests.saturating_add(more.requests);
        *bytes = bytes.saturating_add(more.bytes);
        *device_ns = device_ns.saturating_add(more.device_ns);
        *joules += more.joules;
    }

    fn call(&mut self, call: Option<Call>) {
        let Some(call) = call else { return };
        self.longest = Some(self.longest.map_or(call, |longest| Call::longer(longest, call)));
        self.shortest = Some(self.shortest.map_or(call, |shortest| Call::shorter(shortest, call)));
    }

    /// The rank that took longest, and its time.
    pub fn slowest(&self, time: impl Fn(&OfOwner) -> i64) -> Option<(Owner, i64)> {
        let each = self.owners.iter().map(|(owner, of)| (*owner, time(of)));
        each.max_by_key(|(owner, ns)| (*ns, std::cmp::Reverse(*owner)))
    }

    /// Bytes per second: the rates of ranks, which work side by side, added up.
    pub fn bytes_per_s(&self) -> Option<f64> {
        let rates =
            self.owners.values().filter(|of| of.data_ns > 0).map(|of| of.bytes as f64 / of.data_ns as f64 * 1e9);
        rates.reduce(|a, b| a + b)
    }

    /// Time in reads and writes, of all ranks together.
    pub fn data_ns(&self) -> i64 {
        self.owners.values().fold(0, |sum, of| sum.saturating_add(of.data_ns))
    }
}

/// All groups.
#[derive(Debug, Default)]
pub struct Groups {
    numbers: HashMap<(Layer, Group), usize>,
    sums: Vec<((Layer, Group), Sum)>,
    owners: usize,
    /// Groups were put together because there were too many.
    pub overflow: bool,
    /// Times of ranks are missing because there were too many.
    pub owners_overflow: bool,
}

impl Groups {
    /// The number of a group, which may be that of the others.
    pub fn number(&mut self, layer: Layer, group: Group) -> usize {
        if let Some(number) = self.numbers.get(&(layer, group)) {
            return *number;
        }
        let full = self.sums.len() >= GROUPS_MAX && group != Group::Others;
        if full {
            self.overflow = true;
            return self.number(layer, Group::Others);
        }
        self.numbers.insert((layer, group), self.sums.len());
        self.sums.push(((layer, group), Sum::default()));
        self.sums.len() - 1
    }

    pub fn at(&mut self, number: usize) -> Option<&mut Sum> {
        self.sums.get_mut(number).map(|(_, sum)| sum)
    }

    pub fn layer(&self, number: usize) -> Option<Layer> {
        self.sums.get(number).map(|((layer, _), _)| *layer)
    }

    fn of(&mut self, layer: Layer, group: Group) -> &mut Sum {
        let number = self.number(layer, group);
        &mut self.sums[number].1
    }

    fn owner(&mut self, layer: Layer, group: Group, owner: Owner, times: &OfOwner) {
        let full = self.owners >= RANKS_MAX;
        let owners = &mut self.of(layer, group).owners;
        if let Some(of) = owners.get_mut(&owner) {
            of.merge(times);
        } else if full {
            self.owners_overflow = true;
        } else {
            owners.insert(owner, *times);
            self.owners += 1;
        }
    }

    pub fn span(&mut self, span: &Span, owner: Owner, group: Group) {
        let figures = Figures::of(span);
        let (ns, start_ns) = (span.net_ns(), span.start_ns);
        let sum = self.of(span.layer, group);
        sum.figures.merge(&figures);
        sum.durations.add(ns);
        sum.call(Some(Call { ns, start_ns, owner: Some(owner), span_id: Some(span.span_id) }));
        self.owner(span.layer, group, owner, &times(&figures, span.kind));
    }

    /// A request to a device that is over.
    pub fn request(&mut self, block: &Block, (kind, figures): (Kind, Figures), group: Group) {
        let ns = figures.inclusive_ns;
        let sum = self.of(Layer::Block, group);
        sum.figures.merge(&figures);
        sum.durations.add(ns);
        sum.call(Some(Call { ns, start_ns: block.issue_ns, owner: None, span_id: None }));
        self.owner(Layer::Block, group, Owner::Unknown, &times(&figures, kind));
    }

    /// Calls that were summed up.
    pub fn sums(&mut self, row: &FileRollup, owner: Owner, group: Group) {
        let figures = Figures::of_sum(row);
        let sum = self.of(row.layer, group);
        sum.figures.merge(&figures);
        if is_estimated(row) {
            // They have no durations.
            return;
        }
        let start_ns = row.slowest_ns.unwrap_or(row.from_ns);
        sum.call(Some(Call { ns: row.max_ns, start_ns, owner: Some(owner), span_id: None }));
        self.owner(row.layer, group, owner, &times(&figures, row.kind));
    }

    /// Layers from top to bottom.
    pub fn finish(self) -> BTreeMap<Layer, Vec<(Group, Sum)>> {
        let mut layers = BTreeMap::<Layer, Vec<(Group, Sum)>>::new();
        for ((layer, group), sum) in self.sums {
            layers.entry(layer).or_default().push((group, sum));
        }
        layers
    }
}

fn times(figures: &Figures, kind: Kind) -> OfOwner {
    OfOwner {
        inclusive_ns: figures.inclusive_ns,
        exclusive_ns: figures.exclusive_ns,
        data_ns: if is_data(kind) { figures.inclusive_ns } else { 0 },
        bytes: figures.bytes(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::export::dataset::tests::sums;
    use crate::rows::span_id;

    fn span(rank: i32, seq: u32, dur: i64, bytes: i64) -> Span {
        let id = span_id(rank as u32 + 1, seq);
        let op = (Layer::Mpiio, "MPI_File_write_at", Kind::Write);
        Span { rank: Some(rank), bytes: Some(bytes), ..Span::new(id, op, rank, (i64::from(seq) * 10, dur)) }
    }

    #[test]
    fn ranks_are_parallel_and_calls_of_a_rank_follow_each_other() {
        let mut groups = Groups::default();
        for call in [span(0, 1, 2_000_000_000, 100), span(0, 2, 2_000_000_000, 100), span(1, 1, 1_000_000_000, 100)] {
            groups.span(&call, Owner::of(&call, call.rank), Group::All);
        }
        let layers = groups.finish();
        let (_, sum) = &layers[&Layer::Mpiio][0];
        assert_eq!(sum.figures.inclusive_ns, 5_000_000_000);
        assert_eq!(sum.slowest(|of| of.inclusive_ns), Some((Owner::Rank(0), 4_000_000_000)));
        assert_eq!(sum.bytes_per_s(), Some(50.0 + 100.0));
        assert_eq!(sum.longest.unwrap().start_ns, 10, "the first of two as long");
        assert_eq!(sum.shortest.unwrap().owner, Some(Owner::Rank(1)));
    }

    #[test]
    fn estimated_calls_have_no_durations_even_where_there_may_be_none() {
        let mut groups = Groups::default();
        for calls in [0, 12] {
            let row = FileRollup { calls, calls_error: Some(9), ..sums(Layer::Stdio, "fgetc", Kind::Read) };
            groups.sums(&row, Owner::Unknown, Group::All);
        }
        let layers = groups.finish();
        let (_, sum) = &layers[&Layer::Stdio][0];
        assert_eq!((sum.figures.estimated_calls, sum.figures.calls_error), (12, 18));
        assert!(sum.longest.is_none() && sum.shortest.is_none());
    }

    #[test]
    fn groups_for_which_there_is_no_room_are_one() {
        let mut groups = Groups::default();
        for n in 0..GROUPS_MAX as i64 + 5 {
            let call = Span { layer_top: n % 2 == 0, ..span(0, 1, 1, 1) };
            groups.span(&call, Owner::of(&call, call.rank), Group::Time(n));
        }
        assert!(groups.overflow);
        let layers = groups.finish();
        let all = &layers[&Layer::Mpiio];
        let others = all.iter().find(|(group, _)| *group == Group::Others).unwrap();
        assert_eq!((all.len(), others.1.durations.moments.count), (GROUPS_MAX + 1, 5));
    }

    #[test]
    fn merged_groups_are_what_all_their_calls_are() {
        let calls: Vec<Span> = (1..40).map(|n| span(n % 3, n as u32, i64::from(n * n % 17) * 1000, 8)).collect();
        let (mut whole, mut halves) = (Groups::default(), Groups::default());
        for (n, call) in calls.iter().enumerate() {
            whole.span(call, Owner::of(call, call.rank), Group::All);
            halves.span(call, Owner::of(call, call.rank), Group::Time(n as i64 % 2));
        }
        let (_, whole) = whole.finish().remove(&Layer::Mpiio).unwrap().remove(0);
        let mut merged = Sum::default();
        halves.finish()[&Layer::Mpiio].iter().for_each(|(_, half)| merged.merge(half));
        assert_eq!((merged.figures, &merged.owners), (whole.figures, &whole.owners));
        assert_eq!((merged.longest, merged.shortest), (whole.longest, whole.shortest));
        assert_eq!(merged.durations.quantile(0.5), whole.durations.quantile(0.5));
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * a.abs();
        assert!(close(whole.durations.moments.mean, merged.durations.moments.mean));
        assert!(close(whole.durations.moments.deviation().unwrap(), merged.durations.moments.deviation().unwrap()));
    }
}
