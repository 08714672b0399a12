//! Functions by their own time, and layers.

use crate::export::report::render::style::Tone;
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{LayerRow, OpRow, Report};
use crate::vocabulary::Layer;

/// Functions shown.
const FUNCTIONS: usize = 12;

/// Functions of all layers but the device's, which has a table of its own.
pub fn functions(report: &Report) -> Table<'_> {
    let layers = report.layers.iter().filter(|layer| layer.layer != Layer::Block.name());
    let mut all: Vec<(&LayerRow, &OpRow)> =
        layers.flat_map(|layer| layer.ops.iter().map(move |op| (layer, op))).collect();
    all.sort_by_key(|(layer, op)| (std::cmp::Reverse(op.exclusive_ns), layer.layer, op.op));
    let row = |(layer, op): &(&LayerRow, &OpRow)| {
        let own = |value| Cell::from(value).sure(layer.exclusive_complete);
        let of = |value: Value| Cell::from(value).sure(layer.complete);
        vec![
            Cell::name(layer.layer),
            Cell::name(op.op),
            Cell::from(Value::Count(op.calls)).sure(layer.complete && op.calls_error.is_none()),
            of(Value::Ns(op.inclusive_ns)),
            own(op.exclusive_ns.map_or(Value::Empty, Value::Ns)),
            Cell::of(op.exclusive_share, Value::Share).sure(report.complete),
            Cell::from(op.asked).sure(layer.complete),
            Cell::from(op.moved).sure(layer.complete),
            of(Value::Count(op.errors)),
            of(Value::Ns(op.min_ns)),
            of(Value::Ns(op.mean_ns as i64)),
            Cell::of(op.stddev_ns.map(|ns| ns as i64), Value::Ns).sure(layer.complete),
            of(Value::Ns(op.p50_ns)),
            of(Value::Ns(op.p99_ns)),
            of(Value::Ns(op.max_ns)),
        ]
    };
    Table {
        head: vec![
            Column::name("layer", "layer", 0),
            Column::name("function", "function", 0),
            Column::number("calls", "calls", 0),
            Column::number("time_ns", "time", 0),
            Column::number("own_ns", "own", 0),
            Column::number("share", "share", 4),
            Column::number("asked", "asked", 8),
            Column::number("moved", "bytes", 0),
            Column::number("errors", "errors", 1).tone(Tone::Bad),
            Column::number("min_ns", "min", 9),
            Column::number("mean_ns", "mean", 3),
            Column::number("stddev_ns", "stddev", 10),
            Column::number("p50_ns", "p50", 5),
            Column::number("p99_ns", "p99", 6),
            Column::number("max_ns", "max", 2),
        ],
        rows: all.iter().map(row).collect(),
        most: FUNCTIONS,
        ..Table::default()
    }
}

pub fn layers(report: &Report) -> Table<'_> {
    let row = |layer: &LayerRow| {
        let of = |value: Value| Cell::from(value).sure(layer.complete);
        let estimated = layer.ops.iter().any(|op| op.calls_error.is_some());
        vec![
            Cell::name(layer.layer),
            Cell::from(Value::Count(layer.calls)).sure(layer.complete && !estimated),
            of(Value::Count(layer.nested_calls)),
            of(Value::Ns(layer.inclusive_ns)),
            Cell::of(layer.exclusive_ns, Value::Ns).sure(layer.exclusive_complete),
            Cell::of(layer.exclusive_share, Value::Share).sure(report.complete),
            Cell::from(layer.asked).sure(layer.complete),
            Cell::from(layer.moved).sure(layer.complete),
            of(Value::Count(layer.errors)),
        ]
    };
    Table {
        head: vec![
            Column::name("layer", "layer", 0),
            Column::number("calls", "calls", 0),
            Column::number("nested", "nested", 2),
            Column::number("time_ns", "time", 0),
            Column::number("own_ns", "own", 0),
            Column::number("share", "share", 0),
            Column::number("asked", "asked", 1),
            Column::number("moved", "bytes", 0),
            Column::number("errors", "errors", 0).tone(Tone::Bad),
        ],
        rows: report.layers.iter().map(row).collect(),
        most: usize::MAX,
        ..Table::default()
    }
}
