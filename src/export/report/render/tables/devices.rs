//! Requests by device.

use crate::export::report::render::style::Tone;
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{DeviceRow, Report};

/// Devices shown.
const DEVICES: usize = 8;

pub fn table(report: &Report) -> Table<'_> {
    let row = |row: &DeviceRow| {
        let of = |value| Cell::from(value).sure(row.complete);
        vec![
            Cell::of(row.host.clone(), Value::Name),
            Cell::name(&*row.device),
            of(Value::Count(row.reads)),
            of(Value::Bytes(row.bytes_read)),
            of(Value::Count(row.writes)),
            of(Value::Bytes(row.bytes_written)),
            of(Value::Count(row.flushes)),
            of(Value::Count(row.discards)),
            of(Value::Ns(row.device_ns)),
            of(Value::Ns(row.queue_ns)),
            Cell::of(row.p99_ns, Value::Ns).sure(row.complete),
            of(Value::Ns(row.max_ns)),
            of(Value::Count(row.max_qdepth)),
            of(Value::Count(row.errors)),
            of(Value::Count(row.unfinished)),
        ]
    };
    Table {
        head: vec![
            Column::name("host", "node", 0),
            Column::name("device", "device", 0),
            Column::number("reads", "reads", 0),
            Column::number("bytes_read", "read", 0),
            Column::number("writes", "writes", 0),
            Column::number("bytes_written", "written", 0),
            Column::number("flushes", "flushes", 0),
            Column::number("discards", "discards", 5),
            Column::number("device_ns", "in device", 0),
            Column::number("queue_ns", "queued", 3),
            Column::number("p99_ns", "p99", 4),
            Column::number("max_ns", "max", 1),
            Column::number("max_qdepth", "depth", 2),
            Column::number("errors", "errors", 0).tone(Tone::Bad),
            Column::number("unfinished", "unfinished", 6),
        ],
        rows: report.devices.iter().map(row).collect(),
        most: DEVICES,
        ..Table::default()
    }
}
