//! The slowest calls: a tree for the first of each function, a line for the others.

use std::collections::HashSet;

use crate::base::text::Set::{self, Name, Right};
use crate::base::text::{self, bytes, cut_middle, escape, time};
use crate::export::report::render::style::Line;
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::render::{Look, mark, plural};
use crate::export::report::{BlockNode, CallTree, Node, Report};

/// Entries of one call tree.
const TREE_LINES: usize = 16;
/// Columns of a path in a call tree, where columns are few.
const TREE_PATH: usize = 40;

pub fn table(report: &Report) -> Table<'_> {
    let row = |call: &CallTree| {
        vec![
            Cell::from(Value::Ns(call.tree.dur_ns)).sure(call.complete),
            Cell::name(call.tree.op),
            Value::Ns(call.start_ns).into(),
            Cell::of(call.host.clone(), Value::Name),
            Cell::of(call.rank.map(i64::from), Value::Number),
            Value::Number(call.pid.into()).into(),
            Value::Number(call.tid.into()).into(),
            Cell::of(call.tree.path.clone(), Value::Path),
        ]
    };
    Table {
        head: vec![
            Column::number("time_ns", "time", 0),
            Column::name("function", "function", 0),
            Column::number("start_ns", "started at", 0),
            Column::name("host", "node", 1),
            Column::number("rank", "rank", 0),
            Column::number("pid", "pid", 0),
            Column::number("tid", "thread", 2),
            Column::path("path", "file"),
        ],
        rows: report.slowest.iter().map(row).collect(),
        most: usize::MAX,
        ..Table::default()
    }
}

pub fn lines(report: &Report, look: &Look) -> Vec<Line> {
    let mut out = String::new();
    let mut shown = HashSet::new();
    for (at, call) in report.slowest.iter().take(look.top.unwrap_or(usize::MAX)).enumerate() {
        let rank = call.rank.map_or(String::new(), |rank| format!(", rank {rank}"));
        let node = call.host.as_deref().map_or(String::new(), |host| format!(", on {}", escape(host)));
        let (took, start) = (mark(call.complete, time(call.tree.dur_ns)), time(call.start_ns));
        let thread = if call.pid == call.tid { String::new() } else { format!(", thread {}", call.tid) };
        out += &format!(
            "{:>4}. {} {took}, started at {start}, pid {}{thread}{rank}{node}",
            at + 1,
            escape(call.tree.op),
            call.pid
        );
        if shown.insert(call.tree.op) {
            out.push('\n');
            tree(call, at == 0, &mut out, look);
        } else {
            let worst = worst(&call.tree);
            let what = if worst.count > 1 { format!("x {}", worst.count) } else { "itself".to_owned() };
            out += &format!(": {} of it in {} {what}\n", time(worst.self_ns), escape(worst.op));
        }
    }
    out.lines().map(Line::plain).collect()
}

/// The entry that kept the most time for itself.
fn worst(node: &Node) -> &Node {
    node.children.iter().map(worst).fold(node, |most, other| if other.self_ns > most.self_ns { other } else { most })
}

fn tree(call: &CallTree, titles: bool, out: &mut String, look: &Look) {
    let mut rows = Vec::new();
    let path = if look.width.is_some() { TREE_PATH } else { usize::MAX };
    node_rows(&call.tree, (0, path), call.complete, &mut rows);
    let cut = rows.len().saturating_sub(TREE_LINES);
    rows.truncate(TREE_LINES);
    let head: &[text::Column] =
        &[("call", Name, 0), ("time", Right, 0), ("self", Right, 1), ("bytes", Right, 0), ("", Set::Name, 0)];
    // From the second tree on titles repeat.
    let text = text::table(head, &rows, look.columns(), 6);
    *out += if titles { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    if cut > 0 {
        *out += &format!("      {} more with --format json\n", plural(cut, "line", "lines"));
    }
    if call.not_shown > 0 {
        *out += &format!("      {} left out: the tree is too large\n", plural(call.not_shown, "entry", "entries"));
    }
}

fn node_rows(node: &Node, (depth, path): (usize, usize), complete: bool, rows: &mut Vec<Vec<String>>) {
    let indent = "  ".repeat(depth);
    let mut notes = Vec::new();
    let name = if node.count > 1 {
        notes.push(format!("max {}", time(node.max_ns)));
        format!("{indent}{} x {}", escape(node.op), node.count)
    } else {
        format!("{indent}{}", escape(node.op))
    };
    notes.extend(node.object.as_deref().map(|object| cut_middle(&escape(object), path)));
    notes.extend(node.path.as_deref().map(|of| cut_middle(&escape(of), path)));
    notes.extend(node.offset.map(|offset| format!("at {offset}")));
    match (node.errors, node.errno) {
        (0, _) => {}
        (_, errno) if errno > 0 => notes.push(format!("failed: {}", text::errno(errno))),
        (1, _) if node.count == 1 => notes.push("failed".to_owned()),
        (n, _) => notes.push(format!("{n} failed")),
    }
    let states = [
        (node.unfinished, "unfinished"),
        (node.asynchronous, "asynchronous"),
        (node.inferred_parent, "parent inferred"),
    ];
    notes.extend(states.iter().filter(|(set, _)| *set).map(|(_, word)| (*word).to_owned()));
    let own = mark(complete, time(node.self_ns));
    rows.push(vec![name, time(node.dur_ns), own, node.bytes.map_or("-".to_owned(), bytes), notes.join(", ")]);
    node.blocks.iter().for_each(|block| rows.push(block_row(block, depth + 1)));
    node.children.iter().for_each(|child| node_rows(child, (depth + 1, path), complete, rows));
}

fn block_row(block: &BlockNode, depth: usize) -> Vec<String> {
    let times = if block.count > 1 { format!(" x {}", block.count) } else { String::new() };
    let name = format!("{}block {} {}{times}", "  ".repeat(depth), escape(block.op), escape(block.class));
    let mut note = format!("queued {}, linked: {}", time(block.queue_ns), escape(block.how));
    if block.count > 1 {
        note = format!("max {}, {note}", time(block.max_device_ns));
    }
    if block.errors > 0 {
        note += &format!(", {} failed", block.errors);
    }
    vec![name, time(block.device_ns), String::new(), bytes(block.bytes), note]
}
