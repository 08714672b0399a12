//! The answer as rows: which columns a metric has, and what a group comes to in them.

use std::collections::BinaryHeap;

use anyhow::Result;

use crate::HashMap;
use crate::analysis::calls::{Figures, ratio};
use crate::analysis::files::{Described, described};
use crate::analysis::trace::source::Source;
use crate::query::group::{Group, Groups, Owner, Sum};
use crate::query::is_ordered;
use crate::query::options::{By, Metric, Query};
use crate::query::requests::Device;
use crate::query::select::Selection;
use crate::rows::{Block, Span};
use crate::vocabulary::Layer;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    None,
    Text(String),
    Path(String),
    Count(i64),
    Ns(i64),
    Bytes(i64),
    BytesPerSecond(f64),
    /// A part of 1.
    Share(f64),
    Number(f64),
    Joules(f64),
}

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Names; those of times in ns end with `_ns`.
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Cell>>,
    /// With the energy of each.
    pub devices: Vec<Device>,
    pub notes: Vec<String>,
}

/// Columns of a metric, behind those of layer and group.
fn columns(metric: Metric) -> &'static [&'static str] {
    match metric {
        Metric::Latency => &["calls", "min_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns", "avg_ns"],
        Metric::Inclusive => &["calls", "inclusive_ns", "slowest_ns", "slowest_rank"],
        Metric::Exclusive => &["calls", "exclusive_ns", "share", "slowest_ns", "slowest_rank"],
        Metric::Throughput => &["calls", "bytes", "unknown_calls", "time_ns", "bytes_per_s"],
        Metric::Calls => &["calls", "nested_calls", "unfinished_calls", "errors", "estimated_calls"],
        Metric::Max => &["calls", "max_ns", "of_rank", "start_ns", "span_id"],
        Metric::Min => &["calls", "min_ns", "of_rank", "start_ns", "span_id"],
        Metric::Avg => &["calls", "avg_ns", "stddev_ns"],
        Metric::Requests => &["calls", "requests", "requests_per_call", "bytes", "device_ns"],
        Metric::Energy => &["calls", "requests", "device_ns", "joules", "joules_per_call"],
        Metric::List => &LISTED,
    }
}

const LISTED: [&str; 14] = [
    "start_ns", "rank", "pid", "tid", "layer", "op", "file", "device", "offset", "bytes", "dur_ns", "self_ns", "errno",
    "span_id",
];

/// All groups as rows; `exclusive_ns` is that of all groups of all layers.
pub fn answer(source: &mut dyn Source, query: &Query, selection: &Selection, groups: Groups) -> Result<Answer> {
    let mut answer = Answer::default();
    answer.columns.push("layer");
    answer.columns.extend(query.by.name());
    answer.columns.extend(columns(query.metric));
    let mut layers = groups.finish();
    for sums in layers.values_mut() {
        sums.retain(|(_, sum)| has_any(query, sum));
    }
    let exclusive =
        |sums: &Vec<(Group, Sum)>| sums.iter().fold(0_i64, |n, (_, s)| n.saturating_add(s.figures.exclusive_ns));
    let total = layers.values().map(exclusive).fold(0, i64::saturating_add);
    let ids: Vec<i32> = layers
        .values()
        .flatten()
        .filter_map(|(group, _)| if let Group::File(id) = group { *id } else { None })
        .collect();
    let files = if ids.is_empty() { HashMap::default() } else { described(source, ids)? };
    let name = |group| group_cell(source, group, selection, &files);
    for (layer, mut sums) in layers {
        let others = put_together(query, &mut sums);
        if others > 0 {
            let what = format!("layer {layer} has {others} more groups: they are together in (others); see --limit");
            answer.notes.push(what);
        }
        for (group, sum) in sums {
            let mut row = vec![Cell::Text(layer.name().to_owned())];
            row.extend(query.by.name().map(|_| name(group)));
            row.extend(cells(query, layer, &sum, total));
            answer.rows.push(row);
        }
    }
    Ok(answer)
}

/// Does a group have what the metric is of?
fn has_any(query: &Query, sum: &Sum) -> bool {
    match query.metric {
        Metric::Throughput => sum.figures.data().calls > 0,
        Metric::Requests | Metric::Energy if query.by == By::Device => sum.linked.requests > 0,
        _ => true,
    }
}

/// Sorts groups, and leaves as many as are asked for: the rest is one. Returns how many are in that.
fn put_together(query: &Query, sums: &mut Vec<(Group, Sum)>) -> usize {
    let heavier = |(group, sum): &(Group, Sum)| (std::cmp::Reverse(weight(query.metric, sum)), *group);
    sums.sort_by_key(heavier);
    let left = sums.len().saturating_sub(query.limit);
    if left > 0 {
        let mut others = Sum::default();
        sums.drain(query.limit..).for_each(|(_, sum)| others.merge(&sum));
        match sums.iter_mut().find(|(group, _)| *group == Group::Others) {
            Some((_, sum)) => sum.merge(&others),
            None => sums.push((Group::Others, others)),
        }
    }
    if is_ordered(query.by) {
        sums.sort_by_key(|(group, _)| *group);
    } else {
        // The others last.
        sums.sort_by_key(|(group, _)| *group == Group::Others);
    }
    left
}

/// What the heaviest groups have most of.
fn weight(metric: Metric, sum: &Sum) -> i64 {
    match metric {
        Metric::Latency | Metric::Inclusive | Metric::List => sum.figures.inclusive_ns,
        Metric::Exclusive => sum.figures.exclusive_ns,
        Metric::Throughput => sum.figures.bytes(),
        Metric::Calls => sum.figures.calls.saturating_add(sum.figures.nested_calls),
        Metric::Max => sum.longest.map_or(0, |call| call.ns),
        Metric::Min => sum.shortest.map_or(0, |call| call.ns),
        Metric::Avg => mean(sum) as i64,
        Metric::Requests => sum.linked.requests,
        Metric::Energy => (sum.linked.joules * 1e9) as i64,
    }
}

/// The mean duration: of all calls, or of outermost ones that were summed up.
fn mean(sum: &Sum) -> f64 {
    if sum.durations.moments.count > 0 {
        return sum.durations.moments.mean;
    }
    let calls = sum.figures.calls.saturating_sub(sum.figures.estimated_calls);
    sum.figures.inclusive_ns as f64 / calls.max(1) as f64
}

fn cells(query: &Query, layer: Layer, sum: &Sum, total: i64) -> Vec<Cell> {
    let Sum { figures, durations, linked, .. } = sum;
    let Figures { calls: outermost, nested_calls, .. } = *figures;
    let calls = Cell::Count(outermost);
    let every = Cell::Count(outermost.saturating_add(nested_calls));
    let slowest = |time: Option<(Owner, i64)>| {
        let (owner, ns) = time.filter(|_| layer != Layer::Block).unzip();
        [ns.map_or(Cell::None, Cell::Ns), owner.map_or(Cell::None, |owner| Cell::Text(owner.name()))]
    };
    let known = |n: i64| if durations.moments.count > 0 { Cell::Ns(n) } else { Cell::None };
    // By device it is not known how many calls there are without requests.
    let of_calls = query.by != By::Device;
    let if_of_calls = |cell| if of_calls { cell } else { Cell::None };
    match query.metric {
        Metric::Latency => {
            let quantile = |q| known(durations.quantile(q));
            let (least, mean) = (known(durations.min), known(durations.moments.mean.round() as i64));
            vec![
                Cell::Count(durations.moments.count),
                least,
                quantile(0.5),
                quantile(0.95),
                quantile(0.99),
                known(durations.max),
                mean,
            ]
        }
        Metric::Inclusive => {
            let [ns, rank] = slowest(sum.slowest(|of| of.inclusive_ns));
            vec![calls, Cell::Ns(figures.inclusive_ns), ns, rank]
        }
        Metric::Exclusive if layer == Layer::Block => {
            // Calls above wait for requests in their own time.
            vec![every, Cell::None, Cell::None, Cell::None, Cell::None]
        }
        Metric::Exclusive => {
            let [ns, rank] = slowest(sum.slowest(|of| of.exclusive_ns));
            let share = ratio(figures.exclusive_ns as f64, total as f64);
            vec![every, Cell::Ns(figures.exclusive_ns), Cell::Share(share), ns, rank]
        }
        Metric::Throughput => {
            let data = figures.data();
            let bytes = data.moved.sum.map_or(Cell::None, Cell::Bytes);
            let rate = sum.bytes_per_s().map_or(Cell::None, Cell::BytesPerSecond);
            vec![Cell::Count(data.calls), bytes, Cell::Count(data.moved.unknown_calls), Cell::Ns(sum.data_ns()), rate]
        }
        Metric::Calls => {
            let errors = figures.errors.saturating_add(figures.nested_errors);
            let rest = [nested_calls, figures.unfinished_calls, errors, figures.estimated_calls];
            std::iter::once(every).chain(rest.map(Cell::Count)).collect()
        }
        Metric::Max | Metric::Min => {
            let call = if query.metric == Metric::Max { sum.longest } else { sum.shortest };
            let owner = call.and_then(|call| call.owner).map_or(Cell::None, |owner| Cell::Text(owner.name()));
            let ns = |of: Option<i64>| of.map_or(Cell::None, Cell::Ns);
            let id = call.and_then(|call| call.span_id).map_or(Cell::None, Cell::Count);
            vec![every, ns(call.map(|call| call.ns)), owner, ns(call.map(|call| call.start_ns)), id]
        }
        Metric::Avg => {
            let deviation = durations.moments.deviation().map_or(Cell::None, |ns| Cell::Ns(ns.round() as i64));
            vec![every, Cell::Ns(mean(sum).round() as i64), deviation]
        }
        Metric::Requests => {
            let each = ratio(linked.requests as f64, outermost as f64);
            let (each, calls) = (if_of_calls(Cell::Number(each)), if_of_calls(calls));
            vec![calls, Cell::Count(linked.requests), each, Cell::Bytes(linked.bytes), Cell::Ns(linked.device_ns)]
        }
        Metric::Energy => {
            let each = ratio(linked.joules, outermost as f64);
            let (each, calls) = (if_of_calls(Cell::Joules(each)), if_of_calls(calls));
            vec![calls, Cell::Count(linked.requests), Cell::Ns(linked.device_ns), Cell::Joules(linked.joules), each]
        }
        Metric::List => Vec::new(),
    }
}

fn group_cell(source: &dyn Source, group: Group, selection: &Selection, files: &HashMap<i32, Described>) -> Cell {
    let text = |text: &str| Cell::Text(text.to_owned());
    match group {
        Group::All => Cell::None,
        Group::Op(op) => text(op),
        Group::Owner(owner) => Cell::Text(owner.name()),
        Group::File(None) => text("(no file)"),
        Group::File(Some(id)) => file_cell(source, id, files),
        Group::Device(number) => text(selection.device_of(number).unwrap_or("unknown")),
        Group::Phase(phase) => text(phase.unwrap_or("(no phase)")),
        Group::Time(ns) => Cell::Ns(ns),
        Group::Others => text("(others)"),
    }
}

/// The path of a file, with the node where there are several.
fn file_cell(source: &dyn Source, id: i32, files: &HashMap<i32, Described>) -> Cell {
    let path = files.get(&id).and_then(|file| file.path.clone()).unwrap_or_else(|| format!("(file {id})"));
    let origin = source.origin(crate::analysis::trace::source::IdKind::File, i64::from(id));
    Cell::Path(origin.map_or(path.clone(), |origin| format!("{}:{path}", origin.host)))
}

/// A call of a list. Lists are in order of the first two.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    start_ns: i64,
    id: i64,
    span_id: Option<i64>,
    rank: Option<i32>,
    pid: i32,
    tid: Option<i32>,
    layer: Layer,
    op: &'static str,
    file: Option<i32>,
    device: Option<String>,
    offset: Option<i64>,
    bytes: Option<i64>,
    dur_ns: i64,
    self_ns: Option<i64>,
    errno: i16,
}

/// The first calls in order of their start.
pub struct List {
    limit: usize,
    first: BinaryHeap<Listed>,
    all: u64,
}

impl List {
    pub fn new(limit: usize) -> Self {
        Self { limit, first: BinaryHeap::new(), all: 0 }
    }

    fn add(&mut self, listed: Listed) {
        self.all = self.all.saturating_add(1);
        self.first.push(listed);
        if self.first.len() > self.limit {
            self.first.pop();
        }
    }

    pub fn span(&mut self, span: &Span, owner: Owner) {
        self.add(Listed {
            start_ns: span.start_ns,
            id: span.span_id,
            span_id: Some(span.span_id),
            rank: if let Owner::Rank(rank) = owner { Some(rank) } else { None },
            pid: span.pid,
            tid: Some(span.tid),
            layer: span.layer,
            op: span.op,
            file: span.file_id,
            device: None,
            offset: span.offset,
            bytes: span.bytes,
            dur_ns: span.net_ns(),
            self_ns: Some(span.self_ns),
            errno: span.errno,
        });
    }

    pub fn request(&mut self, block: &Block) {
        self.add(Listed {
            start_ns: block.issue_ns,
            id: block.req_id,
            span_id: None,
            rank: None,
            pid: block.pid,
            tid: None,
            layer: Layer::Block,
            op: block.op,
            file: None,
            device: Some(block.device_name()),
            offset: block.sector.checked_mul(512),
            bytes: Some(i64::from(block.bytes)),
            dur_ns: block.dur_ns.unwrap_or(0),
            self_ns: None,
            errno: block.status.unwrap_or(0),
        });
    }

    pub fn finish(self, source: &mut dyn Source) -> Result<Answer> {
        let mut answer = Answer { columns: LISTED.to_vec(), ..Answer::default() };
        let listed = self.first.into_sorted_vec();
        let left = self.all.saturating_sub(listed.len() as u64);
        if left > 0 {
            answer.notes.push(format!("{left} more calls begin later; see --limit"));
        }
        let files = described(source, listed.iter().filter_map(|call| call.file))?;
        let count = |n: Option<i64>| n.map_or(Cell::None, Cell::Count);
        for call in listed {
            answer.rows.push(vec![
                Cell::Ns(call.start_ns),
                count(call.rank.map(i64::from)),
                Cell::Count(i64::from(call.pid)),
                count(call.tid.map(i64::from)),
                Cell::Text(call.layer.name().to_owned()),
                Cell::Text(call.op.to_owned()),
                call.file.map_or(Cell::None, |id| file_cell(source, id, &files)),
                call.device.map_or(Cell::None, Cell::Text),
                count(call.offset),
                call.bytes.map_or(Cell::None, Cell::Bytes),
                Cell::Ns(call.dur_ns),
                call.self_ns.map_or(Cell::None, Cell::Ns),
                Cell::Count(i64::from(call.errno)),
                count(call.span_id),
            ]);
        }
        Ok(answer)
    }
}
