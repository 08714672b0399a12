//! Screen 2: processes and ranks, and when each of them did I/O.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::summary::view::{Grouping, ProcessRow, Screen, Snapshot, grouped};
use crate::tui::screens::{About, bytes, count, empty, errors, number, pane, part, per_second, time};
use crate::tui::state::{Amounts, State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{chart, line};

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Processes,
    tab: "Proc",
    name: "Processes and ranks: which one does the I/O, which one is slow",
    text: &[
        "I/O: time in outermost traced calls. The strip shows it over time, darker is more;",
        "all strips have the same scale, so a rank that works while others wait stands out.",
    ],
    keys: &[
        ("Enter", "call tree of the process (as a filter)"),
        ("p", "rows of processes, threads, ranks, control groups, users, containers, units, jobs"),
        ("t", "processes below those that started them"),
        ("a m", "rates, totals, what came since the mark; set the mark"),
    ],
    draw,
};

fn draw(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let processes = &snapshot.processes;
    let mut rows: Vec<ProcessRow> = grouped(&processes.rows, state.grouping);
    rows.retain(|r| !state.active_only || r.sums.calls > 0);
    if state.nested && state.grouping == Grouping::Process {
        rows = nested(&rows);
    }
    let max = rows.iter().flat_map(|r| &r.heat).map(|c| c.dur_ns).max().unwrap_or(0) as f64;
    let mut area = area;
    let what = if state.grouping == Grouping::Thread { "threads" } else { "processes" };
    if let Some(other) = processes.other {
        let label =
            format!("{} more {what}: {} calls, {}", other.rows, count(other.sums.calls), time(other.sums.dur_ns));
        let last = Rect { y: area.bottom() - 1, height: 1, ..area };
        line(buf, state.pen, last, &label, Tone::Warn);
        area.height -= 1;
    }
    let cells = rows.iter().map(|r| r.heat.len() as i64).max().unwrap_or(0);
    let end = processes.heat_from_ns.saturating_add(processes.heat_width_ns.saturating_mul(cells));
    let from = processes.heat_from_ns;
    let columns = columns(state, max, (from, end));
    let mut title = state.grouping.plural().to_owned();
    if let Some(mark) = state.since(snapshot) {
        title.push_str(&format!(" since the mark at {}", text::seconds(mark.at_ns)));
    }
    title.push_str(&format!(", time in I/O from {} to {}", text::seconds(from), text::seconds(end)));
    let empty = empty::calls(snapshot, state);
    let table = Table { title: &title, columns, rows: &rows, id: ProcessRow::id, empty: &empty };
    pane(buf, area, state, TableId::Processes, &table);
}

/// Depth first, each below the one that started it; the command is indented by depth.
fn nested(rows: &[ProcessRow]) -> Vec<ProcessRow> {
    let started = |by: &ProcessRow, row: &ProcessRow| by.pid == row.ppid && by.process_ix != row.process_ix;
    // Numbers of processes are used again: the last one that began before.
    let parent = |row: &ProcessRow| {
        let before = rows.iter().enumerate().filter(|(_, p)| started(p, row) && p.start_ns <= row.start_ns);
        before.max_by_key(|(_, p)| (p.start_ns, p.process_ix)).map(|(at, _)| at)
    };
    let parents: Vec<Option<usize>> = rows.iter().map(parent).collect();
    let below = |of: Option<usize>| parents.iter().enumerate().rev().filter(move |(_, p)| **p == of).map(|(at, _)| at);
    let mut work: Vec<(usize, usize)> = below(None).map(|at| (at, 0)).collect();
    let mut out: Vec<ProcessRow> = Vec::with_capacity(rows.len());
    let mut listed = vec![false; rows.len()];
    // A circle of parents, which a damaged dataset may have, begins at whichever comes first.
    for next in 0..=rows.len() {
        while let Some((at, depth)) = work.pop() {
            if std::mem::replace(&mut listed[at], true) {
                continue;
            }
            out.push(ProcessRow {
                command: format!("{}{}", "  ".repeat(depth), rows[at].command).into(),
                ..rows[at].clone()
            });
            work.extend(below(Some(at)).map(|child| (child, depth + 1)));
        }
        if next < rows.len() && !listed[next] {
            work.push((next, 0));
        }
    }
    out
}

fn columns(state: &State, max: f64, shown: (i64, i64)) -> Vec<Column<ProcessRow>> {
    type Of = Column<ProcessRow>;
    let rank = Of::new("rank", 4, |r: &ProcessRow, _| r.rank.map_or_else(|| "-".into(), |n| n.to_string()))
        .sort(|r| number(r.rank.map_or(-1, i64::from)));
    let pid = Of::new("pid", 7, |r, _| {
        Cell::new(r.pid.to_string(), if r.end_ns.is_some() { Tone::Dim } else { Tone::Plain })
    })
    .sort(|r| number(r.pid.into()));
    let members = Of::new("procs", 5, |r, _| r.members.to_string()).sort(|r| number(r.members.into()));
    let threads = Of::new("thr", 3, |r, _| r.threads.to_string()).sort(|r| number(r.threads.into())).less(6);
    let thread = Of::new("tid", 7, |r, _| r.tid.map_or_else(|| "-".into(), |n| n.to_string()))
        .sort(|r| number(r.tid.unwrap_or(0).into()));
    let mut columns = match state.grouping {
        Grouping::Process => vec![rank, pid, threads],
        Grouping::Thread => vec![rank, pid, thread],
        Grouping::Rank => vec![rank, members, threads],
        _ => vec![members, threads],
    };
    columns.push(Of::new("I/O", 7, |r, _| time(r.sums.dur_ns)).sort(|r| number(r.sums.dur_ns)));
    if state.amounts == Amounts::Rates {
        columns.extend([
            Of::new("read/s", 6, |r, pen| pen.rate(r.read_per_s)).sort(|r| Key::Number(r.read_per_s)),
            Of::new("writ/s", 6, |r, pen| pen.rate(r.written_per_s)).sort(|r| Key::Number(r.written_per_s)),
            Of::new("calls/s", 7, |r, _| per_second(r.calls_per_s)).sort(|r| Key::Number(r.calls_per_s)),
        ]);
    } else {
        columns.extend([
            Of::new("read", 6, |r, pen| bytes(pen, r.sums.bytes_read)).sort(|r| number(r.sums.bytes_read)),
            Of::new("written", 7, |r, pen| bytes(pen, r.sums.bytes_written)).sort(|r| number(r.sums.bytes_written)),
            Of::new("calls", 6, |r, _| count(r.sums.calls)).sort(|r| number(r.sums.calls)),
        ]);
    }
    columns.extend([
        Of::new("reads", 5, |r, _| part(r.read_ns, r.sums.dur_ns)).sort(|r| number(r.read_ns)).less(5),
        Of::new("writes", 6, |r, _| part(r.write_ns, r.sums.dur_ns)).sort(|r| number(r.write_ns)).less(5),
        Of::new("meta", 5, |r, _| part(r.meta_ns, r.sums.dur_ns)).sort(|r| number(r.meta_ns)).less(5),
        Of::new("sys rd", 6, |r, pen| bytes(pen, r.system.bytes_read)).sort(|r| number(r.system.bytes_read)).less(4),
        Of::new("sys wr", 6, |r, pen| bytes(pen, r.system.bytes_written))
            .sort(|r| number(r.system.bytes_written))
            .less(4),
        Of::new("failed", 6, |r, _| errors(r.sums.errors)).sort(|r| number(r.sums.errors)).less(3),
        Of::wide("most time in", 12, |r, _, _| {
            let most = r.self_by_layer.iter().max_by_key(|(_, ns)| *ns);
            most.map_or_else(Cell::default, |(layer, ns)| {
                let all = r.self_by_layer.iter().map(|(_, ns)| *ns).fold(0, i64::saturating_add);
                Cell::new(format!("{} {}", layer.name(), part(*ns, all)), Tone::Layer(*layer))
            })
        })
        .less(2),
        Of::wide("time in I/O, over time", 16, move |r, pen, width| {
            let values: Vec<f64> = r.heat.iter().map(|c| c.dur_ns as f64).collect();
            chart::strip(pen.theme, &values, max, width)
        })
        .grows()
        .over(move |_| shown),
        Of::wide(state.grouping.name().map_or("command", |(name, _)| name), 14, |r, pen, width| {
            pen.name(&r.command, width)
        })
        .grows()
        .sort(|r| Key::Text(r.command.to_string()))
        .less(1),
        Of::detail("all of it", |r, pen, width| pen.name(&r.cmdline, width)),
    ]);
    columns
}
