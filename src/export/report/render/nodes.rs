//! The nodes of a report as text: when each was traced, and how far its clock is off.

use crate::export::report::NodeRow;
use crate::text::Set::{Name, Right};
use crate::text::{Column, escape, table, time, wall};

/// Nodes shown; JSON has all.
const NODES: usize = 32;

/// Where there is more than one.
pub fn text(nodes: &[NodeRow], out: &mut String, width: usize) {
    let [first, _, ..] = nodes else { return };
    let reference = nodes.iter().find(|node| node.clock.how == "reference").unwrap_or(first);
    *out += &format!("\nNodes: {}; clocks against that of {}\n", nodes.len(), escape(&reference.host));
    let head: &[Column] = &[
        ("node", Name, 0),
        ("datasets", Right, 2),
        ("start", Name, 0),
        ("clock", Right, 0),
        ("at least", Right, 0),
        ("at most", Right, 0),
        ("", Name, 1),
    ];
    let row = |node: &NodeRow| {
        let clock = node.clock;
        let bound = |ns: Option<i64>| ns.map_or("-".to_owned(), time);
        let note = match (clock.how, clock.calls) {
            ("reference", _) => String::new(),
            ("calls", n) => format!("wall clock corrected by {n} collective opens"),
            ("contradiction", _) => "collective opens contradict each other: a clock was set".to_owned(),
            (_, 0) => "wall clock, nothing to check it by".to_owned(),
            (_, n) => format!("wall clock, as {n} collective opens allow"),
        };
        vec![
            escape(&node.host),
            node.datasets.to_string(),
            node.start_wall_ns.map_or("unknown".to_owned(), wall),
            time(clock.offset_ns),
            bound(clock.least_ns),
            bound(clock.most_ns),
            note,
        ]
    };
    *out += &table(head, &nodes.iter().take(NODES).map(row).collect::<Vec<_>>(), width, 2);
    if nodes.len() > NODES {
        *out += &format!("  {} more with --json\n", nodes.len() - NODES);
    }
}
