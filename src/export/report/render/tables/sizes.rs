//! Reads and writes by size, and how they follow each other.

use crate::analysis::transfers::sizes::CLASSES;
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{Report, SizeRow};

pub fn table(report: &Report) -> Table<'_> {
    let row = |row: &SizeRow| {
        let of = |value| Cell::from(value).sure(row.complete);
        let part = |value| Cell::of(value, Value::Share).sure(row.complete);
        let mean = (row.calls > 0).then(|| row.bytes / row.calls);
        let mut cells = vec![
            Cell::name(row.layer),
            Cell::name(row.kind),
            of(Value::Count(row.calls)),
            Cell::of(mean, Value::Bytes).sure(row.complete),
        ];
        cells.extend(row.sizes.iter().map(|n| of(Value::Count(*n))));
        cells.extend([row.sequential, row.consecutive, row.short_jumps, row.long_jumps, row.unaligned].map(part));
        cells
    };
    let mut head = vec![
        Column::name("layer", "layer", 0),
        Column::name("kind", "kind", 0),
        Column::number("calls", "calls", 4),
        Column::number("mean", "mean", 3),
    ];
    head.extend(CLASSES.iter().map(|(_, name)| Column::number(name, name, 0)));
    head.extend([
        Column::number("sequential", "sequential", 2),
        Column::number("consecutive", "consecutive", 0),
        Column::number("short_jumps", "short jumps", 6),
        Column::number("long_jumps", "long jumps", 5),
        Column::number("unaligned", "unaligned", 1),
    ]);
    Table { head, rows: report.sizes.iter().map(row).collect(), most: usize::MAX, ..Table::default() }
}
