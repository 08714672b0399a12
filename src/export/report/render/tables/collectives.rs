//! Collective calls, and the ranks that read or wrote for the others.

use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{CollectiveRow, Member, Report};

/// Rows shown.
const ROWS: usize = 8;
const RANKS: usize = 16;

fn path(row: &CollectiveRow) -> Cell {
    Cell::of(row.path.clone(), Value::Path)
}

pub fn table(report: &Report) -> Table<'_> {
    let one = |row: &CollectiveRow| {
        let of = |value| Cell::from(value).sure(row.complete);
        vec![
            Cell::name(row.op),
            of(Value::Count(row.collectives)),
            of(Value::Count(row.ranks.len() as i64)),
            of(Value::Ns(row.time_ns)),
            of(Value::Ns(row.max_ns)),
            Cell::from(row.asked).sure(row.complete),
            Cell::from(row.moved).sure(row.complete),
            of(Value::Count(if row.is_transfer() { row.aggregators() as i64 } else { 0 })),
            of(Value::Count(row.syscalls)),
            of(Value::Bytes(row.syscall_bytes)),
            path(row),
        ]
    };
    Table {
        head: vec![
            Column::name("function", "function", 0),
            Column::number("collectives", "collectives", 0),
            Column::number("ranks", "ranks", 0),
            Column::number("time_ns", "time of ranks", 3),
            Column::number("max_ns", "longest", 4),
            Column::number("asked", "asked", 0),
            Column::number("moved", "moved", 5),
            Column::number("aggregators", "aggregators", 0),
            Column::number("syscalls", "syscalls", 1),
            Column::number("syscall_bytes", "their bytes", 2),
            Column::path("path", "file"),
        ],
        rows: report.collectives.iter().map(one).collect(),
        most: ROWS,
        ..Table::default()
    }
}

pub fn aggregators(report: &Report) -> Table<'_> {
    let one = |row: &CollectiveRow, rank: &Member| {
        let of = |value| Cell::from(value).sure(row.complete);
        vec![
            Cell::of(rank.rank.map(i64::from), Value::Number),
            Cell::name(row.op),
            of(Value::Count(rank.collectives)),
            of(Value::Count(rank.aggregated)),
            of(Value::Count(rank.syscalls)),
            of(Value::Bytes(rank.bytes)),
            path(row),
        ]
    };
    let ranks = |row: &CollectiveRow| {
        let those = row.ranks.iter().filter(|rank| rank.aggregated > 0);
        those.map(|rank| one(row, rank)).collect::<Vec<_>>()
    };
    Table {
        head: vec![
            Column::number("rank", "rank", 0),
            Column::name("function", "function", 0),
            Column::number("collectives", "collectives", 0),
            Column::number("aggregated", "aggregated", 0),
            Column::number("syscalls", "syscalls", 0),
            Column::number("bytes", "bytes", 0),
            Column::path("path", "file"),
        ],
        rows: report.collectives.iter().filter(|row| row.is_transfer()).flat_map(ranks).collect(),
        most: RANKS,
        ..Table::default()
    }
}
