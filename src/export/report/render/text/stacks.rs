//! Where slow calls were made: each stack from the system call up to `main`.

use crate::base::text::{escape, time};
use crate::export::report::render::style::{Line, Tone};
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::render::{Look, mark};
use crate::export::report::{Report, StackRow};

/// Stacks shown, and frames of each.
const STACKS: usize = 5;
const FRAMES: usize = 24;

pub fn table(report: &Report) -> Table<'_> {
    let row = |row: &StackRow| {
        vec![
            Cell::from(Value::Ns(row.time_ns)).sure(row.complete),
            Cell::from(Value::Count(row.calls)).sure(row.complete),
            Cell::name(row.layer),
            Cell::name(row.op),
            Cell::name(row.frames.join(" < ")),
        ]
    };
    Table {
        head: vec![
            Column::number("time_ns", "time", 0),
            Column::number("calls", "calls", 0),
            Column::name("layer", "layer", 0),
            Column::name("function", "function", 0),
            Column::name("stack", "stack", 0),
        ],
        rows: report.slow_stacks.iter().map(row).collect(),
        most: STACKS,
        ..Table::default()
    }
}

pub fn lines(report: &Report, look: &Look) -> Vec<Line> {
    let stacks = &report.slow_stacks;
    let shown = look.top.unwrap_or(STACKS);
    let mut lines = Vec::new();
    for row in stacks.iter().take(shown) {
        let m = |text| mark(row.complete, text);
        let calls = m(row.calls.to_string());
        let text = format!("  {} in {calls} calls of {} {}", m(time(row.time_ns)), row.layer, escape(row.op));
        lines.push(Line::plain(text));
        lines.extend(row.frames.iter().take(FRAMES).map(|frame| Line::plain(format!("      {}", escape(frame)))));
        if row.frames.len() > FRAMES {
            lines.push(Line::of(Tone::Dim, format!("      ... {} more", row.frames.len() - FRAMES)));
        }
    }
    if stacks.len() > shown {
        lines.push(Line::of(
            Tone::Dim,
            format!("  {} more stacks (--top; v_slow_stacks has all)", stacks.len() - shown),
        ));
    }
    lines
}
