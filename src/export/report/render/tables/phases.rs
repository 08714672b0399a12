//! What happened inside the phases: a line for each layer inside each of them.

use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{PhaseLayer, PhaseRow, Report};

/// Lines shown.
const LINES: usize = 24;

pub fn table(report: &Report) -> Table<'_> {
    let row = |phase: &PhaseRow, layer: Option<&PhaseLayer>| {
        let of = |value| Cell::from(value).sure(phase.complete);
        let inside = |value: fn(&PhaseLayer) -> Cell| {
            layer.map_or_else(|| Cell::from(Value::Empty), |layer| value(layer).sure(phase.complete))
        };
        vec![
            Cell::name(phase.op),
            of(Value::Count(phase.calls)),
            of(Value::Count(phase.unfinished_calls)),
            of(Value::Ns(phase.inclusive_ns)),
            of(Value::Ns(phase.exclusive_ns)),
            Cell::of(layer.map(|layer| layer.layer.to_owned()), Value::Name),
            inside(|layer| Value::Count(layer.calls).into()),
            inside(|layer| layer.read.into()),
            inside(|layer| layer.written.into()),
            inside(|layer| Value::Ns(layer.time_ns).into()),
        ]
    };
    let rows = report.phases.iter().flat_map(|phase| {
        let none = phase.layers.is_empty().then(|| row(phase, None));
        phase.layers.iter().map(move |layer| row(phase, Some(layer))).chain(none)
    });
    Table {
        head: vec![
            Column::name("phase", "phase", 0),
            Column::number("times", "times", 0),
            Column::number("unfinished", "unfinished", 4),
            Column::number("phase_ns", "lasted", 0),
            Column::number("own_ns", "own", 3),
            Column::name("layer", "layer", 0),
            Column::number("calls", "calls", 0),
            Column::number("read", "read", 0),
            Column::number("written", "written", 0),
            Column::number("time_ns", "time", 0),
        ],
        rows: rows.collect(),
        most: LINES,
        ..Table::default()
    }
}
