//! How long each layer takes the program: functions that several threads call, each with a line for each layer.

use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{Composed, Report};

/// Lines shown.
const LINES: usize = 20;

pub fn table(report: &Report) -> Table<'_> {
    let composition = &report.composition;
    // Of one thread it repeats the functions by layer.
    let mut tops: Vec<&Composed> = composition.iter().filter(|row| row.layer == row.called && row.parts > 1).collect();
    tops.sort_by_key(|row| std::cmp::Reverse(row.latency_ns));
    let of_top = |top: &Composed| {
        let key = (top.called, top.op, top.collective);
        composition.iter().filter(move |row| (row.called, row.op, row.collective) == key)
    };
    let row = |row: &Composed| {
        let of = |value| Cell::from(value).sure(row.complete);
        vec![
            Cell::name(row.op),
            Cell::name(if row.collective { "collective" } else { "" }),
            Cell::name(row.layer),
            of(Value::Count(row.calls)),
            of(Value::Count(i64::try_from(row.parts).unwrap_or(i64::MAX))),
            of(Value::Ns(row.latency_ns)),
            of(Value::Ns(row.added_ns)),
            of(Value::Bytes(row.bytes)),
            Cell::of(row.throughput_bps.map(|bps| bps as i64), Value::PerSecond).sure(row.complete),
        ]
    };
    Table {
        head: vec![
            Column::name("called", "called", 0),
            Column::name("collective", "", 2),
            Column::name("layer", "layer", 0),
            Column::number("calls", "calls", 0),
            Column::number("parts", "parts", 0),
            Column::number("latency_ns", "latency", 0),
            Column::number("added_ns", "all added", 3),
            Column::number("bytes", "bytes", 0),
            Column::number("bytes_per_s", "throughput", 0),
        ],
        rows: tops.into_iter().flat_map(of_top).map(row).collect(),
        most: LINES,
        ..Table::default()
    }
}
