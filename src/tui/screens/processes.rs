//! Screen 2: processes and ranks, and when each of them did I/O.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::analysis::parallel::ranks::{STRAGGLER, Spread};
use crate::summary::view::{Grouping, ProcessRow, Screen, Snapshot, grouped, spread};
use crate::tui::screens::{
    About, Canvas, bytes, count, empty, errors, number, pane, part, per_second, process, samples_time, time,
};
use crate::tui::state::{Amounts, State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::axis::Axis;
use crate::tui::widgets::graph::{self, Series};
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{Pen, chart, line};

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Processes,
    key: '2',
    tab: "Proc",
    name: "Processes and ranks: which one does the I/O, which one is slow",
    text: &[
        "I/O: time in outermost traced calls. The strip shows it over time, darker is more;",
        "all strips have the same scale, so a rank that works while others wait stands out.",
        "Ranks (p p): time over the mean of all; from 1.5 times on a rank is a straggler.",
    ],
    keys: &[
        ("Enter", "call tree of the process (as a filter)"),
        ("f", "follow its calls, as strace writes them; Space: pause, /: filter, F: the newest"),
        ("c", "where its threads are: stacks of the kernel and the program"),
        ("F9 K", "send it a signal"),
        ("p", "rows of processes, threads, ranks, control groups, users, containers, units, jobs"),
        ("t", "processes below those that started them"),
        ("a m", "rates, totals, what came since the mark; set the mark"),
    ],
    draw,
};

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let (upper, lower) = process::split(area, state);
    all(buf, upper, snapshot, state);
    process::draw(buf, lower, snapshot, state);
}

fn all(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
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
    let spread = spread(&rows).filter(|_| state.grouping == Grouping::Rank);
    let several_nodes = rows.iter().any(|r| r.host.is_some());
    let mut columns = columns(state, max, (from, end));
    if let Some(spread) = spread {
        let at = columns.iter().position(|c| c.head == "I/O").map_or(0, |at| at + 1);
        columns.insert(at, of_mean(spread));
    }
    if several_nodes {
        columns.insert(1, node_column());
    }
    let mut title = state.grouping.plural().to_owned();
    if let Some(mark) = state.since(snapshot) {
        title.push_str(&format!(" since the mark at {}", text::seconds(mark.at_ns)));
    }
    title.push_str(&format!(", time in I/O from {} to {}", text::seconds(from), text::seconds(end)));
    if let Some(spread) = spread {
        title.push_str(&format!("; {}", stragglers(&rows, &spread, state.pen)));
    }
    let empty = empty::calls(snapshot, state);
    let (area, free) = graph::beside(area, rows.len());
    let table = Table { title: &title, columns, rows: &rows, id: ProcessRow::id, empty: &empty };
    pane(buf, area, state, TableId::Processes, &table);
    let selected = state.selected(TableId::Processes);
    if let (Some(free), Some(row)) = (free, rows.iter().find(|r| Some(r.id()) == selected)) {
        let axis = row_chart(buf, free, row, (from, processes.heat_width_ns), state.pen);
        state.axes.extend(axis);
    }
}

/// Ranks that take much longer than the mean, the slowest first.
fn stragglers(rows: &[ProcessRow], spread: &Spread, pen: Pen) -> String {
    const SHOWN: usize = 3;
    let mut slow: Vec<&ProcessRow> =
        rows.iter().filter(|r| r.rank.is_some() && spread.times_mean(r.sums.dur_ns) >= STRAGGLER).collect();
    slow.sort_by_key(|r| (std::cmp::Reverse(r.sums.dur_ns), r.rank));
    if slow.is_empty() {
        return format!("no straggler ({STRAGGLER}x the mean)");
    }
    let one = |r: &&ProcessRow| {
        let host = r.host.as_deref().map_or_else(String::new, |host| format!(" on {}", pen.name(host, 20)));
        let times = spread.times_mean(r.sums.dur_ns);
        r.rank.map_or_else(String::new, |rank| format!("{rank}{host} ({times:.1}x)"))
    };
    let names: Vec<String> = slow.iter().take(SHOWN).map(one).collect();
    let more = if slow.len() > SHOWN { format!(" and {} more", slow.len() - SHOWN) } else { String::new() };
    format!("stragglers: {}{more}", names.join(", "))
}

/// Time of a rank over the mean of all.
fn of_mean(spread: Spread) -> Column<ProcessRow> {
    Column::new("of mean", 7, move |r: &ProcessRow, _| {
        let times = spread.times_mean(r.sums.dur_ns);
        let tone = if times >= STRAGGLER { Tone::Bad } else { Tone::Plain };
        if r.rank.is_some() { Cell::new(format!("{times:.2}x"), tone) } else { Cell::from("-") }
    })
    .sort(|r| number(r.sums.dur_ns))
}

fn node_column() -> Column<ProcessRow> {
    Column::wide("node", 10, |r: &ProcessRow, pen: Pen, width| pen.name(r.host.as_deref().unwrap_or("-"), width))
        .sort(|r| Key::Text(r.host.as_deref().unwrap_or_default().to_owned()))
}

/// The selected row over time. A call counts where it began, with all of its time.
fn row_chart(buf: &mut Buffer, area: Rect, row: &ProcessRow, (from, width_ns): (i64, i64), pen: Pen) -> Option<Axis> {
    let times = row.heat.iter().map(|c| c.dur_ns as f64).collect();
    let rates = row.heat.iter().map(|c| c.bytes as f64 * 1e9 / width_ns.max(1) as f64).collect();
    let series = [
        Series { label: "time", values: times, tone: Tone::Plain, show: |_, max| text::time(max as i64) },
        Series { label: "bytes/s", values: rates, tone: Tone::Write, show: |pen, max| pen.rate(max) },
    ];
    let rank = row.rank.map_or_else(String::new, |rank| format!("rank {rank}: "));
    let command = pen.name(&row.command, 40);
    let heading = format!("{rank}{command}: calls that began in each {}", text::time(width_ns));
    graph::draw(buf, area, pen, &heading, &series, samples_time(from, width_ns, row.heat.len()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::testing::{drawn, snapshot};
    use crate::tui::theme::Theme;
    use std::sync::Arc;

    /// By rank, of so many milliseconds in I/O each, the last one on another node.
    fn ranks(times: &[i64]) -> String {
        let mut shown = snapshot();
        let mut processes = (*shown.processes).clone();
        let row = processes.rows.remove(0);
        let of = |(rank, ms): (i32, &i64)| {
            let mut row = ProcessRow { process_ix: rank, rank: Some(rank), ..row.clone() };
            row.sums.dur_ns = ms * 1_000_000;
            row.host = Some(if rank as usize + 1 == times.len() { "node\u{202e}b" } else { "nodea" }.into());
            row
        };
        processes.rows = (0..).zip(times).map(of).collect();
        shown.processes = Arc::new(processes);
        let mut state = State::new(Theme::default());
        (state.screen, state.grouping) = (Screen::Processes, Grouping::Rank);
        drawn(&shown, &mut state, 160, 30)
    }

    #[test]
    fn a_straggler_is_named_with_its_node() {
        let text = ranks(&[100, 100, 100, 300]);
        assert!(text.contains("stragglers: 3 on node\\u{202e}b (2.0x)"), "{text}");
        assert!(text.contains("2.00x") && text.contains("0.67x") && text.contains("nodea"), "{text}");
    }

    #[test]
    fn even_ranks_have_no_straggler_and_of_many_three_are_named() {
        assert!(ranks(&[100, 110, 100, 90]).contains("no straggler (1.5x the mean)"));
        let many: Vec<i64> = (0..20).map(|rank| if rank < 4 { 400 + i64::from(rank) } else { 1 }).collect();
        let text = ranks(&many);
        assert!(text.contains("stragglers: 3 on nodea") && text.contains(" and 1 more"), "{text}");
    }
}
