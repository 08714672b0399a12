//! Screen 2: processes and ranks, and when each of them did I/O.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{bytes, count, errors, number, pane, part, per_second, time};
use crate::summary::view::{ProcessRow, Snapshot};
use crate::tui::state::{State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{chart, line};

pub fn draw(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let processes = &snapshot.processes;
    let rows: Vec<ProcessRow> =
        processes.rows.iter().filter(|r| !state.active_only || r.sums.calls > 0).cloned().collect();
    let max = rows.iter().flat_map(|r| &r.heat).map(|c| c.dur_ns).max().unwrap_or(0) as f64;
    let mut area = area;
    if let Some(other) = processes.other {
        let words =
            format!("{} more processes: {} calls, {}", other.rows, count(other.sums.calls), time(other.sums.dur_ns));
        let last = Rect { y: area.bottom() - 1, height: 1, ..area };
        line(buf, state.pen, last, &words, Tone::Warn);
        area.height -= 1;
    }
    let end = processes.heat_from_ns + processes.heat_width_ns * rows.first().map_or(0, |r| r.heat.len() as i64);
    let from = processes.heat_from_ns;
    let columns = columns(state.totals, max, (from, end));
    let title =
        format!("processes, time in I/O from {} to {}", text::seconds(processes.heat_from_ns), text::seconds(end));
    let id = |r: &ProcessRow| i64::from(r.process_ix);
    let table = Table { title: &title, columns, rows: &rows, id, empty: "no process has done I/O" };
    pane(buf, area, state, TableId::Processes, &table);
}

fn columns(totals: bool, max: f64, shown: (i64, i64)) -> Vec<Column<ProcessRow>> {
    type Of = Column<ProcessRow>;
    let mut columns = vec![
        Of::new("rank", 4, |r: &ProcessRow, _| r.rank.map_or_else(|| "-".into(), |n| n.to_string()))
            .sort(|r| number(r.rank.map_or(-1, i64::from))),
        Of::new("pid", 7, |r, _| {
            Cell::new(r.pid.to_string(), if r.end_ns.is_some() { Tone::Dim } else { Tone::Plain })
        })
        .sort(|r| number(r.pid.into())),
        Of::new("thr", 3, |r, _| r.threads.to_string()).sort(|r| number(r.threads.into())).less(6),
        Of::new("I/O", 7, |r, _| time(r.sums.dur_ns)).sort(|r| number(r.sums.dur_ns)),
    ];
    if totals {
        columns.extend([
            Of::new("read", 6, |r, pen| bytes(pen, r.sums.bytes_read)).sort(|r| number(r.sums.bytes_read)),
            Of::new("written", 7, |r, pen| bytes(pen, r.sums.bytes_written)).sort(|r| number(r.sums.bytes_written)),
            Of::new("calls", 6, |r, _| count(r.sums.calls)).sort(|r| number(r.sums.calls)),
        ]);
    } else {
        columns.extend([
            Of::new("read/s", 6, |r, pen| pen.rate(r.read_per_s)).sort(|r| Key::Number(r.read_per_s)),
            Of::new("writ/s", 6, |r, pen| pen.rate(r.written_per_s)).sort(|r| Key::Number(r.written_per_s)),
            Of::new("calls/s", 7, |r, _| per_second(r.calls_per_s)).sort(|r| Key::Number(r.calls_per_s)),
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
                let all: i64 = r.self_by_layer.iter().map(|(_, ns)| ns).sum();
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
        Of::wide("command", 14, |r, pen, width| pen.name(&r.command, width))
            .grows()
            .sort(|r| Key::Text(r.command.to_string()))
            .less(1),
    ]);
    columns
}
