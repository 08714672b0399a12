//! What each rank did, or each process, and how unevenly ranks share the work.

use crate::base::text::{ratio, time};
use crate::export::report::render::mark;
use crate::export::report::render::table::{Cell, Column, Rows, Table, Value};
use crate::export::report::{Imbalance, RankRow, Report};
use crate::vocabulary::LAYERS;

/// Ranks or processes shown, those with the most time.
const RANKS: usize = 16;
/// The greatest over the mean from which on it is named.
const UNEVEN: f64 = 1.1;

pub fn title(report: &Report) -> String {
    let what = if report.header.ranks > 0 { "Ranks" } else { "Processes" };
    format!("{what}: asked of the program's own calls; own time by layer")
}

fn total(row: &RankRow) -> i64 {
    row.exclusive_ns.iter().fold(0, |sum, (_, ns)| sum.saturating_add(ns))
}

pub fn table(report: &Report) -> Table<'_> {
    let rows = &report.ranks.rows;
    let used: Vec<_> =
        LAYERS.into_iter().filter(|layer| rows.iter().any(|r| r.exclusive_ns.get(*layer).is_some())).collect();
    let mut head = vec![
        Column::number("rank", "rank", 0),
        Column::name("node", "node", 1),
        Column::name("pid", "pid", 0),
        Column::number("calls", "calls", 0),
        Column::number("time_ns", "time", 0),
        Column::number("asked_read", "asked read", 4),
        Column::number("asked_written", "asked written", 4),
        Column::number("read", "read", 3),
        Column::number("written", "written", 3),
        Column::number("library_ns", "in libraries", 7),
    ];
    head.extend(used.iter().map(|layer| Column::number(layer.name(), layer.name(), 5)));
    head.push(Column::path("program", "program"));
    let mut shown: Vec<&RankRow> = rows.iter().collect();
    if shown.len() > RANKS {
        shown.sort_by_key(|row| std::cmp::Reverse(total(row)));
    }
    // Which calls are the program's own is known of single calls only.
    let single = !report.header.aggregate;
    let (count, foot) = (shown.len(), imbalance(report));
    let row = move |at: usize| {
        let r = shown[at];
        let of = |value| Cell::from(value).sure(r.complete);
        let own = |value| if single { of(value) } else { Value::Empty.into() };
        let pids = r.pids.first().map_or(String::new(), i32::to_string);
        let more = if r.pids.len() > 1 { format!("+{}", r.pids.len() - 1) } else { String::new() };
        let node = (!r.hosts.is_empty()).then(|| r.hosts.join(","));
        let mut cells = vec![
            Cell::of(r.rank.map(i64::from), Value::Number),
            Cell::of(node, Value::Name),
            Cell::name(pids + &more),
            own(Value::Count(r.calls)),
            of(Value::Ns(total(r))),
            own(Value::Bytes(r.asked_read)),
            own(Value::Bytes(r.asked_written)),
            of(Value::Bytes(r.syscall_read)),
            of(Value::Bytes(r.syscall_written)),
            own(Value::Ns(r.library_ns)),
        ];
        cells.extend(used.iter().map(|l| of(r.exclusive_ns.get(*l).map_or(Value::Empty, Value::Ns))));
        cells.push(Cell::of(r.exe.clone(), Value::Path));
        cells
    };
    Table { head, rows: Rows::of(count, row), most: RANKS, foot, ..Table::default() }
}

/// The time in the program's own calls, and layers whose time ranks share unevenly.
fn imbalance(report: &Report) -> Vec<String> {
    let named = |i: &&Imbalance| i.layer == "all" || i.max_to_mean >= UNEVEN;
    let line = |i: &Imbalance| {
        let spread = mark(report.complete, ratio(i.max_to_mean));
        let times = format!("{} against a mean of {}", time(i.max_ns), time(i.mean_ns as i64));
        let bytes = i.bytes_max_to_mean.map_or(String::new(), |most| format!(", bytes {}", ratio(most)));
        format!("{:<9} max/mean {spread} (rank {}: {times}){bytes}", i.layer, i.slowest)
    };
    report.ranks.imbalance.iter().filter(named).map(line).collect()
}
