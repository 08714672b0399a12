//! A frame.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::analysis::parallel::ranks::STRAGGLER;
use crate::cluster::history::State;
use crate::cluster::totals::{OfLayer, Work};
use crate::cluster::view::{Found, NodeRow, RankRow, View, is_straggler};
use crate::tui::cluster::look::{KEYS, Look, Pane};
use crate::tui::text;
use crate::tui::theme::{Theme, Tone};
use crate::tui::widgets::chart::level;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{Pen, below, halves, put, split};
use crate::vocabulary::Layer;

/// Nodes that do not answer, each with a line.
const SILENT: usize = 3;
/// Stragglers in the title.
const SLOW: usize = 3;

/// Draws all of it.
pub fn draw(buf: &mut Buffer, view: &View, look: &mut Look) {
    let area = head(buf, view, look.pen);
    let area = foot(buf, area, view, look);
    if look.help {
        help(buf, area, look.pen);
        return;
    }
    if look.alone {
        // The table that the keyboard was in, all others are away.
        match look.pane() {
            Pane::Nodes => nodes(buf, area, view, look),
            Pane::Ranks => ranks(buf, area, view, look),
            Pane::Layers | Pane::Findings => inside(buf, area, view, look),
        }
        look.panes = vec![look.pane()];
        return;
    }
    look.panes.clear();
    let rows = u16::try_from(view.nodes.len()).unwrap_or(u16::MAX).saturating_add(2);
    let lower = look.inside || !view.ranks.is_empty();
    let (upper, under) = if lower { split(area, rows.min(area.height / 2)) } else { (area, below(area, area.height)) };
    nodes(buf, upper, view, look);
    if look.inside {
        inside(buf, under, view, look);
    } else if lower {
        ranks(buf, under, view, look);
    }
}

/// The first line; what is below it.
fn head(buf: &mut Buffer, view: &View, pen: Pen) -> Rect {
    let area = buf.area;
    let x = put(buf, pen, area, area.x, area.y, "iotrace-bpf top", Tone::Head);
    let all = view.nodes.len();
    let answering = view.nodes.iter().filter(|row| row.state == State::Answers).count();
    let tone = if answering < all { Tone::Warn } else { Tone::Plain };
    let x = put(buf, pen, area, x + 2, area.y, &format!("{answering} of {all} nodes answer"), tone);
    let restarts: u32 = view.nodes.iter().map(|row| row.restarts).fold(0, u32::saturating_add);
    let again = match restarts {
        0 => String::new(),
        1 => "1 trace began again".to_owned(),
        n => format!("{n} traces began again"),
    };
    let x = if restarts > 0 { put(buf, pen, area, x + 2, area.y, &again, Tone::Warn) } else { x };
    let every = format!("every {}", duration(view.interval));
    put(buf, pen, area, x + 2, area.y, &every, Tone::Dim);
    below(area, 1)
}

/// The last lines: which nodes do not answer and why, and the keys; what is above them.
fn foot(buf: &mut Buffer, area: Rect, view: &View, look: &Look) -> Rect {
    let pen = look.pen;
    let silent = view.silent();
    let mut lines: Vec<(String, Tone)> = silent
        .iter()
        .take(SILENT)
        .map(|(name, since, why)| {
            let name = pen.name(name, 40);
            let why = pen.name(why, 200);
            (format!("{name} has not answered for {}: {why}", duration(*since)), Tone::Bad)
        })
        .collect();
    if silent.len() > SILENT {
        lines.push((format!("and {} more", silent.len() - SILENT), Tone::Bad));
    }
    lines.push(("? help  Enter layers and findings  Tab table  < > sort  + - time  q quit".to_owned(), Tone::Dim));
    let height = (lines.len() as u16).min(area.height);
    let (upper, lower) = split(area, area.height - height);
    for (y, (line, tone)) in (lower.y..).zip(&lines) {
        put(buf, pen, lower, lower.x, y, line, *tone);
    }
    upper
}

fn help(buf: &mut Buffer, area: Rect, pen: Pen) {
    let mut y = area.y + 1;
    for text in [
        "Each node's tracer is asked for its metrics (--metrics). Figures are those between the last two answers.",
        "I/O: part of the time that a rank, or where there are no ranks a process, is in calls that it made itself.",
        "of mean: time in I/O, over the time shown, over the mean of all that answer; from 1.5 times on a straggler.",
        "wait: part of the time in which some task of the node waited for I/O (/proc/pressure/io).",
        "over time: darker is more, on one scale and one time axis; a dot: no answer then.",
    ] {
        put(buf, pen, area, area.x + 1, y, text, Tone::Plain);
        y += 1;
    }
    for (key, what) in KEYS {
        y += 1;
        put(buf, pen, area, area.x + 1, y, key, Tone::Strong);
        put(buf, pen, area, area.x + 13, y, what, Tone::Plain);
    }
}

fn nodes(buf: &mut Buffer, area: Rect, view: &View, look: &mut Look) {
    let title = format!("nodes, time in I/O over the last {}; {}", shown(view), stragglers(view, look.pen));
    let max = greatest(view.nodes.iter().flat_map(|row| &row.cells));
    let table = Table {
        title: &title,
        columns: node_columns(max),
        rows: &view.nodes,
        id: |row| row.at as i64,
        empty: "no nodes",
    };
    pane(buf, area, look, Pane::Nodes, &table);
}

fn ranks(buf: &mut Buffer, area: Rect, view: &View, look: &mut Look) {
    let max = greatest(view.ranks.iter().flat_map(|row| &row.cells));
    let title = format!("ranks, time in I/O over the last {}", shown(view));
    let id = |row: &RankRow| ((row.at as i64) << 32) | i64::from(row.rank);
    let table = Table { title: &title, columns: rank_columns(max), rows: &view.ranks, id, empty: "no ranks" };
    pane(buf, area, look, Pane::Ranks, &table);
}

/// Layers and findings of the selected node.
fn inside(buf: &mut Buffer, area: Rect, view: &View, look: &mut Look) {
    let at = look.table(Pane::Nodes).id().unwrap_or(0);
    let Some(row) = view.nodes.iter().find(|row| row.at as i64 == at) else { return };
    let (left, right) = halves(area, area.width * 3 / 5);
    let name = look.pen.name(&row.name, 40);
    let tracing = row.tracing.map_or_else(String::new, |part| format!(", tracing took {} of it", text::percent(part)));
    let title = format!("layers of {name} ({}, version {}{tracing})", row.address, look.pen.name(&row.version, 20));
    let layers: Vec<(Layer, OfLayer)> = row.layers.iter().map(|(layer, of)| (*layer, *of)).collect();
    let id = |(layer, _): &(Layer, OfLayer)| *layer as i64;
    let table = Table { title: &title, columns: layer_columns(), rows: &layers, id, empty: "no figures" };
    pane(buf, left, look, Pane::Layers, &table);
    let (title, columns, id) = ("findings of the last minute", finding_columns(), |found: &Found| found.place as i64);
    let table = Table { title, columns, rows: &row.findings, id, empty: "none" };
    pane(buf, right, look, Pane::Findings, &table);
}

fn pane<R>(buf: &mut Buffer, area: Rect, look: &mut Look, id: Pane, table: &Table<R>) {
    if area.height < 2 || area.width < 10 {
        return;
    }
    look.panes.push(id);
    let focused = look.focus == id;
    let pen = look.pen;
    table.draw(buf, area, pen, look.table(id), focused);
}

fn stragglers(view: &View, pen: Pen) -> String {
    let slow = view.stragglers();
    if slow.is_empty() {
        return format!("no straggler ({STRAGGLER}x the mean)");
    }
    let names: Vec<String> =
        slow.iter().take(SLOW).map(|(name, times)| format!("{} ({times:.1}x)", pen.name(name, 40))).collect();
    let more = if slow.len() > SLOW { format!(" and {} more", slow.len() - SLOW) } else { String::new() };
    format!("stragglers: {}{more}", names.join(", "))
}

fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 100.0 { format!("{}s", (seconds * 10.0).round() / 10.0) } else { text::clock(time.as_nanos() as i64) }
}

/// The time of all heat maps.
fn shown(view: &View) -> String {
    duration(view.interval.saturating_mul(u32::try_from(view.ticks).unwrap_or(u32::MAX)))
}

fn greatest<'a>(cells: impl Iterator<Item = &'a Option<f32>>) -> f32 {
    cells.flatten().copied().fold(0.0, f32::max)
}

/// Shades over all of `width` columns, of several ticks the greatest; a dot where there was no answer.
fn strip(theme: Theme, cells: &[Option<f32>], max: f32, width: usize) -> String {
    let shade = |column: usize| {
        let from = column * cells.len() / width;
        let to = ((column + 1) * cells.len() / width).max(from + 1).min(cells.len());
        let known = cells.get(from..to).unwrap_or_default().iter().flatten().copied().reduce(f32::max);
        match known {
            Some(value) => theme.shades()[level(value.into(), max.into(), 4)],
            None if theme.ascii => "?",
            None => "·",
        }
    };
    (0..width).map(shade).collect()
}

/// A figure of an answer; a dash where there is none.
fn figure(work: Option<&Work>, show: impl Fn(&Work) -> String) -> String {
    work.map_or_else(|| "-".to_owned(), show)
}

/// A number; a dash for none.
fn count(n: f64) -> String {
    if n < 0.05 { "-".to_owned() } else { text::count(n) }
}

fn failed(work: Option<&Work>) -> Cell {
    let failed = work.map_or(0.0, |work| work.failed);
    Cell::new(count(failed), if failed > 0.0 { Tone::Warn } else { Tone::Dim })
}

fn part(of: Option<f64>) -> String {
    of.map_or_else(|| "-".to_owned(), text::percent)
}

fn mean(times: Option<f64>) -> Cell {
    let tone = if is_straggler(times) { Tone::Bad } else { Tone::Plain };
    Cell::new(times.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}x")), tone)
}

fn number(work: Option<&Work>, of: fn(&Work) -> f64) -> Key {
    Key::Number(work.map_or(-1.0, of))
}

fn lost(n: f64) -> Cell {
    Cell::new(if n > 0.0 { text::count(n) } else { "-".to_owned() }, if n > 0.0 { Tone::Bad } else { Tone::Dim })
}

fn node_columns(max: f32) -> Vec<Column<NodeRow>> {
    type Of = Column<NodeRow>;
    let finding = |row: &NodeRow, pen: Pen, width: usize| match (&row.state, row.findings.first()) {
        (State::Silent { .. }, _) => Cell::new("no answer", Tone::Bad),
        (State::Asked, _) => Cell::new("no answer yet", Tone::Dim),
        (State::Answers, Some(found)) => {
            let time = seconds(found.seconds);
            let room = width.saturating_sub(time.len() + 1);
            Cell::new(format!("{time} {}", pen.name(&found.rule, room)), Tone::Warn)
        }
        (State::Answers, None) => Cell::from("-"),
    };
    vec![
        Of::wide("node", 16, |row: &NodeRow, pen: Pen, width| {
            let tone = if row.state == State::Answers { Tone::Strong } else { Tone::Dim };
            Cell::new(pen.name(&row.name, width), tone)
        })
        .sort(|row| Key::Text(row.name.clone())),
        Of::new("calls/s", 7, |row, _| figure(row.work.as_ref(), |w| count(w.calls)))
            .sort(|row| number(row.work.as_ref(), |w| w.calls)),
        Of::new("read/s", 6, |row, pen| figure(row.work.as_ref(), |w| pen.rate(w.read)))
            .sort(|row| number(row.work.as_ref(), |w| w.read)),
        Of::new("writ/s", 6, |row, pen| figure(row.work.as_ref(), |w| pen.rate(w.written)))
            .sort(|row| number(row.work.as_ref(), |w| w.written)),
        Of::new("I/O", 4, |row, _| part(row.share)).sort(|row| Key::Number(row.share.unwrap_or(-1.0))),
        Of::new("of mean", 7, |row, _| mean(row.of_mean)).sort(|row| Key::Number(row.io_ns as f64)),
        Of::new("wait", 4, |row, _| part(row.pressure)).sort(|row| Key::Number(row.pressure.unwrap_or(-1.0))).less(3),
        Of::new("failed/s", 8, |row, _| failed(row.work.as_ref()))
            .sort(|row| number(row.work.as_ref(), |w| w.failed))
            .less(4),
        Of::new("lost", 5, |row, _| lost(row.lost)).sort(|row| Key::Number(row.lost)).less(2),
        Of::new("procs", 5, |row, _| count(row.processes)).sort(|row| Key::Number(row.processes)).less(6),
        Of::new("ranks", 5, |row, _| count(row.ranks as f64)).sort(|row| Key::Number(row.ranks as f64)).less(7),
        Of::wide("finding, of the last minute", 27, finding)
            .sort(|row| Key::Number(row.findings.first().map_or(0.0, |found| found.seconds)))
            .less(5),
        Of::wide("I/O over time", 16, move |row: &NodeRow, pen: Pen, width| strip(pen.theme, &row.cells, max, width))
            .grows(),
    ]
}

fn rank_columns(max: f32) -> Vec<Column<RankRow>> {
    type Of = Column<RankRow>;
    vec![
        Of::new("rank", 5, |row: &RankRow, _| row.rank.to_string()).sort(|row| Key::Number(row.rank.into())),
        Of::wide("node", 16, |row, pen, width| pen.name(&row.node, width)).sort(|row| Key::Text(row.node.clone())),
        Of::new("calls/s", 7, |row, _| figure(row.work.as_ref(), |w| count(w.calls)))
            .sort(|row| number(row.work.as_ref(), |w| w.calls)),
        Of::new("read/s", 6, |row, pen| figure(row.work.as_ref(), |w| pen.rate(w.read)))
            .sort(|row| number(row.work.as_ref(), |w| w.read)),
        Of::new("writ/s", 6, |row, pen| figure(row.work.as_ref(), |w| pen.rate(w.written)))
            .sort(|row| number(row.work.as_ref(), |w| w.written)),
        Of::new("I/O", 4, |row, _| part(row.work.map(|work| work.seconds)))
            .sort(|row| number(row.work.as_ref(), |w| w.seconds)),
        Of::new("of mean", 7, |row, _| mean(row.of_mean)).sort(|row| Key::Number(row.io_ns as f64)),
        Of::new("failed/s", 8, |row, _| failed(row.work.as_ref()))
            .sort(|row| number(row.work.as_ref(), |w| w.failed))
            .less(1),
        Of::wide("I/O over time", 16, move |row: &RankRow, pen: Pen, width| strip(pen.theme, &row.cells, max, width))
            .grows(),
    ]
}

fn layer_columns() -> Vec<Column<(Layer, OfLayer)>> {
    type Of = Column<(Layer, OfLayer)>;
    vec![
        Of::wide("layer", 8, |(layer, _): &(Layer, OfLayer), _, _| Cell::new(layer.name(), Tone::Layer(*layer))),
        Of::new("calls/s", 7, |(_, of), _| count(of.work.calls)).sort(|(_, of)| Key::Number(of.work.calls)),
        Of::new("read/s", 6, |(_, of), pen| pen.rate(of.work.read)).sort(|(_, of)| Key::Number(of.work.read)),
        Of::new("writ/s", 6, |(_, of), pen| pen.rate(of.work.written)).sort(|(_, of)| Key::Number(of.work.written)),
        Of::new("time/s", 7, |(_, of), _| seconds(of.work.seconds)).sort(|(_, of)| Key::Number(of.work.seconds)),
        Of::new("excl/s", 7, |(_, of), _| seconds(of.own_seconds)).sort(|(_, of)| Key::Number(of.own_seconds)),
        Of::new("failed/s", 8, |(_, of), _| failed(Some(&of.work))).sort(|(_, of)| Key::Number(of.work.failed)).less(1),
        Of::new("lost/s", 6, |(_, of), _| lost(of.lost)).sort(|(_, of)| Key::Number(of.lost)).less(2),
    ]
}

fn seconds(n: f64) -> String {
    if n > 0.0 { text::time((n * 1e9) as i64) } else { "-".to_owned() }
}

fn finding_columns() -> Vec<Column<Found>> {
    type Of = Column<Found>;
    vec![
        Of::new("time", 7, |found: &Found, _| seconds(found.seconds)).sort(|found| Key::Number(found.seconds)),
        Of::wide("rule (iotrace-bpf rules show)", 16, |found, pen, width| pen.name(&found.rule, width)).grows(),
    ]
}
