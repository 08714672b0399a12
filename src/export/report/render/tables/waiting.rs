//! What system calls spent their time on.

use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{Report, WaitRow};
use crate::rows::PARTS;

pub fn table(report: &Report) -> Table<'_> {
    let row = |row: &WaitRow| {
        let of = |value| Cell::from(value).sure(row.complete);
        vec![
            Cell::name(PARTS.iter().find(|(part, _)| *part == row.part).map_or(row.part, |(_, words)| words)),
            of(Value::Ns(row.ns)),
            of(Value::Share(row.share)),
            Cell::name(row.op),
            of(Value::Count(row.op_calls)),
            of(Value::Ns(row.op_ns)),
        ]
    };
    Table {
        head: vec![
            Column::name("part", "what", 0),
            Column::number("time_ns", "time", 0),
            Column::number("share", "share", 0),
            Column::name("function", "most of it in", 0),
            Column::number("function_calls", "its calls", 0),
            Column::number("function_ns", "time in these", 0),
        ],
        rows: report.waiting.iter().map(row).collect(),
        most: usize::MAX,
        ..Table::default()
    }
}
