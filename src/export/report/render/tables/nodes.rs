//! The nodes of a report, and how far their clocks are apart.

use crate::base::text::{escape, wall};
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{NodeRow, Report};

/// Nodes shown.
const NODES: usize = 16;

pub fn title(report: &Report) -> String {
    let reference = report.nodes.iter().find(|node| node.clock.how == "reference").or(report.nodes.first());
    let host = reference.map_or_else(String::new, |node| escape(&node.host));
    format!("Nodes: {}; clocks against that of {host}", report.nodes.len())
}

pub fn table(report: &Report) -> Table<'_> {
    let row = |node: &NodeRow| {
        let clock = node.clock;
        let note = match (clock.how, clock.calls) {
            ("reference", _) => String::new(),
            ("calls", n) => format!("wall clock corrected by {n} collective opens"),
            ("contradiction", _) => "collective opens contradict each other: a clock was set".to_owned(),
            (_, 0) => "wall clock, nothing to check it by".to_owned(),
            (_, n) => format!("wall clock, as {n} collective opens allow"),
        };
        vec![
            Cell::name(&*node.host),
            Value::Count(node.datasets as i64).into(),
            Cell::of(node.start_wall_ns.map(wall), Value::Name),
            Value::Ns(clock.offset_ns).into(),
            Cell::of(clock.least_ns, Value::Ns),
            Cell::of(clock.most_ns, Value::Ns),
            Cell::name(note),
        ]
    };
    Table {
        head: vec![
            Column::name("node", "node", 0),
            Column::number("datasets", "datasets", 2),
            Column::name("start", "start", 0),
            Column::number("clock_ns", "clock", 0),
            Column::number("least_ns", "at least", 0),
            Column::number("most_ns", "at most", 0),
            Column::name("note", "", 1),
        ],
        rows: report.nodes.iter().map(row).collect(),
        most: NODES,
        ..Table::default()
    }
}
