//! Failed calls by the name of their error and the directory.

use crate::export::report::render::style::Tone;
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::render::tables::on_node;
use crate::export::report::{ErrorRow, Report};

/// Rows shown.
const ROWS: usize = 8;

pub fn title(report: &Report) -> String {
    let all = report.errors.iter().fold(0, |sum: i64, row| sum.saturating_add(row.calls));
    format!("Errors: {all} failed calls, look-ups of what does not exist last")
}

pub fn table(report: &Report) -> Table<'_> {
    let row = |row: &ErrorRow| {
        let of = |value| Cell::from(value).sure(row.complete);
        let directory = row.directory.as_ref().map(|directory| on_node(row.host.as_deref(), directory));
        vec![
            Cell::name(&*row.error),
            of(Value::Count(row.calls)),
            of(Value::Ns(row.time_ns)),
            Cell::name(row.layer),
            Cell::name(row.op),
            of(Value::Count(row.op_calls)),
            Cell::of(directory, Value::Path),
        ]
    };
    Table {
        head: vec![
            Column::name("error", "error", 0).tone(Tone::Bad),
            Column::number("calls", "calls", 0),
            Column::number("time_ns", "time", 2),
            Column::name("layer", "layer", 3),
            Column::name("function", "most by", 0),
            Column::number("function_calls", "its calls", 4),
            Column::path("directory", "in"),
        ],
        rows: report.errors.iter().map(row).collect(),
        most: ROWS,
        ..Table::default()
    }
}
