//! Bytes and bandwidth: a line for each process, file and direction.

use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::render::tables::on_node;
use crate::export::report::{BandwidthRow, Report, Spread};

/// Lines shown.
const LINES: usize = 20;

pub fn table(report: &Report) -> Table<'_> {
    let row = |row: &BandwidthRow| {
        let of = |value| Cell::from(value).sure(row.complete);
        let spread = |spread: Spread, value: fn(i64) -> Value| {
            let known = [Some(spread.min), Some(spread.mean), Some(spread.max), spread.stddev];
            known.map(|n| Cell::of(n.map(|n| n.round() as i64), value).sure(row.complete))
        };
        let path = row.path.as_ref().map(|path| on_node(row.host.as_deref(), path));
        let mut cells = vec![
            Cell::of(row.pid.map(i64::from), Value::Number),
            Cell::name(row.kind),
            of(Value::Count(row.samples)),
            of(Value::Bytes(row.bytes)),
        ];
        cells.extend(spread(row.size, Value::Bytes));
        cells.extend(spread(row.bps, Value::PerSecond));
        cells.push(Cell::of(path, Value::Path));
        cells
    };
    Table {
        head: vec![
            Column::number("pid", "pid", 0),
            Column::name("kind", "kind", 0),
            Column::number("samples", "calls", 0),
            Column::number("bytes", "bytes", 0),
            Column::number("min_bytes", "least", 4),
            Column::number("mean_bytes", "mean", 2),
            Column::number("max_bytes", "most", 3),
            Column::number("stddev_bytes", "stddev", 6),
            Column::number("min_bps", "slowest", 1),
            Column::number("mean_bps", "mean rate", 0),
            Column::number("max_bps", "fastest", 1),
            Column::number("stddev_bps", "stddev rate", 5),
            Column::path("path", "file"),
        ],
        rows: report.bandwidth.rows.iter().map(row).collect(),
        most: LINES,
        more: report.bandwidth.more,
        ..Table::default()
    }
}
