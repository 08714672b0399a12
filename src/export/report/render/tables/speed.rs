//! Functions against earlier runs.

use crate::base::text::{percent, time};
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{Report, SPEEDS, SpeedRow};

/// All functions together.
pub fn title(report: &Report) -> String {
    let sum = |of: fn(&SpeedRow) -> i64| report.speed.iter().map(of).fold(0, i64::saturating_add);
    let (compared, ns, usual_ns, slow_ns) =
        (sum(|row| row.compared), sum(|row| row.ns), sum(|row| row.usual_ns), sum(SpeedRow::slow_ns));
    if compared == 0 {
        return "Against earlier runs: too few calls like these".to_owned();
    }
    let share = percent(slow_ns as f64 / ns.max(1) as f64);
    format!(
        "Against earlier runs: {compared} calls took {}, as many before {}; {share} of that in slow and very slow calls",
        time(ns),
        time(usual_ns)
    )
}

pub fn table(report: &Report) -> Table<'_> {
    let row = |row: &SpeedRow| {
        let of = |value| Cell::from(value).sure(row.complete);
        // Where no calls were compared there are no classes.
        let of_compared = |value| if row.compared > 0 { of(value) } else { Cell::from(Value::Empty) };
        let mut cells = vec![
            Cell::name(row.layer),
            Cell::name(row.op),
            of(Value::Count(row.compared)),
            of_compared(Value::Ns(row.ns)),
            of_compared(Value::Ns(row.usual_ns)),
        ];
        cells.extend((0..SPEEDS.len()).rev().map(|class| of_compared(Value::Share(row.share(class)))));
        cells.extend([
            of(Value::Count(row.calls)),
            row.earlier_calls.map_or_else(|| Cell::from(Value::Unknown), |calls| of(Value::Count(calls))),
            Cell::name(row.unusual.join(", ")),
        ]);
        cells
    };
    let class = |key, title| Column::number(key, title, 1);
    Table {
        head: vec![
            Column::name("layer", "layer", 0),
            Column::name("function", "function", 0),
            Column::number("compared", "compared", 0),
            Column::number("time_ns", "time", 0),
            Column::number("usual_ns", "usual time", 0),
            class("very_slow", "very slow"),
            class("slow", "slow"),
            class("normal", "normal"),
            class("fast", "fast"),
            class("very_fast", "very fast"),
            Column::number("calls", "calls", 2),
            Column::number("earlier_calls", "most before", 2),
            Column::name("unusual", "unusual", 0),
        ],
        rows: report.speed.iter().filter(|row| row.compared > 0 || !row.unusual.is_empty()).map(row).collect(),
        most: 10,
        ..Table::default()
    }
}
