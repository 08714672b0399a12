//! Failed look-ups: a line for each error in each directory.

use crate::base::text::time;
use crate::export::report::render::mark;
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::render::tables::on_node;
use crate::export::report::{FailedLookup, Report};

/// Lines shown.
const LINES: usize = 20;

pub fn title(report: &Report) -> String {
    let failed = &report.failed_lookups;
    let m = |text| mark(failed.complete, text);
    let (calls, took) = (m(failed.calls.to_string()), m(time(failed.time_ns)));
    format!("Failed look-ups: {calls} system calls that named a path, {took} (v_failed_lookups has all)")
}

pub fn table(report: &Report) -> Table<'_> {
    let row = |row: &FailedLookup| {
        let of = |value| Cell::from(value).sure(row.complete);
        let directory = row.directory.as_ref().map(|directory| on_node(row.host.as_deref(), directory));
        vec![
            Cell::name(&*row.error),
            of(Value::Count(row.calls)),
            of(Value::Count(i64::try_from(row.paths).unwrap_or(i64::MAX))),
            of(Value::Ns(row.time_ns)),
            Cell::of(directory, Value::Path),
        ]
    };
    Table {
        head: vec![
            Column::name("error", "error", 0),
            Column::number("calls", "calls", 0),
            Column::number("paths", "paths", 1),
            Column::number("time_ns", "time", 0),
            Column::path("directory", "directory"),
        ],
        rows: report.failed_lookups.rows.iter().map(row).collect(),
        most: LINES,
        more: report.failed_lookups.more,
        ..Table::default()
    }
}
