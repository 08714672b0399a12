//! Screen 3: files, and how one of them is accessed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::summary::view::{FileDetail, FileRow, HandleRow, ObjectRow, OpRow, Point, Screen, Snapshot};
use crate::tui::screens::{About, Canvas, bytes, count, empty, errors, moved, number, pane, part, percentile, time};
use crate::tui::state::{State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::axis::Axis;
use crate::tui::widgets::plot::Plot;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{Pen, halves, line, put, split, title};
use crate::vocabulary::Layer;

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Files,
    key: '3',
    tab: "File",
    name: "Files: which file, and how it is accessed",
    text: &[
        "seq: reads and writes that begin at or after the end of the one before; small: below 4 KiB.",
        "Enter shows offsets over time, the most frequent sizes and strides, the handles",
        "and datasets, and the calls on the file.",
    ],
    keys: &[("Enter", "one file"), ("Esc", "all files"), ("a m", "since the mark or from the beginning; set the mark")],
    draw,
};

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    match (state.file, &snapshot.file) {
        (None, _) => all(buf, area, snapshot, state),
        (Some(id), Some(file)) if file.file_id == id => one(buf, area, file, state),
        (Some(_), _) => _ = line(buf, state.pen, area, "reading the calls on this file ...", Tone::Dim),
    }
}

fn all(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let rows: Vec<FileRow> =
        snapshot.files.rows.iter().filter(|r| !state.active_only || r.sums.calls > 0).cloned().collect();
    let mut area = area;
    if let Some(other) = snapshot.files.other {
        let label =
            format!("{} more files: {} calls, {}", other.rows, count(other.sums.calls), time(other.sums.dur_ns));
        line(buf, state.pen, Rect { y: area.bottom() - 1, height: 1, ..area }, &label, Tone::Warn);
        area.height -= 1;
    }
    let id = |r: &FileRow| i64::from(r.file_id);
    let title = match state.since(snapshot) {
        None => "files (system calls)".to_owned(),
        Some(mark) => format!("files (system calls) since the mark at {}", text::seconds(mark.at_ns)),
    };
    let empty = empty::calls(snapshot, state);
    let table = Table { title: &title, columns: columns(), rows: &rows, id, empty: &empty };
    pane(buf, area, state, TableId::Files, &table);
}

fn columns() -> Vec<Column<FileRow>> {
    type Of = Column<FileRow>;
    vec![
        Of::new("time", 6, |r: &FileRow, _| time(r.sums.dur_ns)).sort(|r| number(r.sums.dur_ns)),
        Of::new("read", 6, |r, pen| bytes(pen, r.sums.bytes_read)).sort(|r| number(r.sums.bytes_read)),
        Of::new("written", 7, |r, pen| bytes(pen, r.sums.bytes_written)).sort(|r| number(r.sums.bytes_written)),
        Of::new("calls", 6, |r, _| count(r.sums.calls)).sort(|r| number(r.sums.calls)),
        Of::new("p50", 6, |r, _| percentile(r.latency, |p| p.p50))
            .sort(|r| number(r.latency.map_or(0, |p| p.p50)))
            .less(7),
        Of::new("p99", 6, |r, _| percentile(r.latency, |p| p.p99)).sort(|r| number(r.latency.map_or(0, |p| p.p99))),
        Of::new("size", 6, |r, pen| r.size.map_or_else(|| "-".into(), |n| pen.bytes(n)))
            .sort(|r| number(r.size.unwrap_or(-1)))
            .less(6),
        Of::new("seq", 4, |r, _| part(r.sequential, r.placed))
            .sort(|r| Key::Number(r.sequential as f64 / r.placed.max(1) as f64)),
        Of::new("small", 5, |r, _| count(r.small)).sort(|r| number(r.small)).less(3),
        Of::new("miss", 6, |r, pen| bytes(pen, r.miss_bytes)).sort(|r| number(r.miss_bytes)).less(6),
        Of::new("device", 6, |r, pen| bytes(pen, r.device_bytes)).sort(|r| number(r.device_bytes)).less(4),
        Of::new("opens", 5, |r, _| count(r.opens)).sort(|r| number(r.opens)).less(5),
        Of::new("syncs", 5, |r, _| count(r.syncs)).sort(|r| number(r.syncs)).less(5),
        Of::new("rd/wr", 5, |r, _| format!("{}/{}", r.readers, r.writers))
            .sort(|r| number((r.readers + r.writers).into()))
            .less(5),
        Of::new("failed", 6, |r, _| errors(r.sums.errors)).sort(|r| number(r.sums.errors)).less(7),
        Of::wide("from", 8, |r, _, _| r.top_layer.map_or_else(Cell::default, |l| Cell::new(l.name(), Tone::Layer(l))))
            .less(2),
        Of::wide("path", 26, |r, pen, width| {
            let tone = if r.unlinked { Tone::Dim } else { Tone::Plain };
            Cell::new(pen.path(&r.path, width), tone)
        })
        .grows()
        .sort(|r| Key::Text(r.path.to_string())),
        Of::wide("fs", 6, |r, pen, width| r.fstype.as_deref().map_or_else(String::new, |t| pen.name(t, width))).less(8),
    ]
}

fn one(buf: &mut Canvas<'_>, area: Rect, file: &FileDetail, state: &mut State) {
    let pen = state.pen;
    let r = &file.row;
    let path = pen.path(&r.path, usize::from(area.width));
    let mut rest = line(buf, pen, area, &path, Tone::Strong);
    let (read, written) = (bytes(pen, r.sums.bytes_read), bytes(pen, r.sums.bytes_written));
    let (seq, cons) = (part(r.sequential, r.placed), part(r.consecutive, r.placed));
    let (calls, small) = (count(r.sums.calls), count(r.small));
    let label =
        format!("read {read}  written {written}  calls {calls}  sequential {seq}  consecutive {cons}  small {small}");
    rest = line(buf, pen, rest, &label, Tone::Plain);
    for (name, list, more) in [("sizes", &file.sizes, file.other_sizes), ("strides", &file.strides, file.other_strides)]
    {
        let each: Vec<String> = list
            .iter()
            .take(6)
            .map(|(value, n)| format!("{} ({}x)", pen.bytes(*value), text::count(*n as f64)))
            .collect();
        let more = if more > 0 { format!(", and {} others", text::count(more as f64)) } else { String::new() };
        let label = if each.is_empty() { format!("{name}: -") } else { format!("{name}: {}{more}", each.join(", ")) };
        rest = line(buf, pen, rest, &label, Tone::Plain);
    }
    let (upper, lower) = split(rest, rest.height / 2);
    state.axes.extend(plot(buf, upper, file, pen));
    let (left, right) = halves(lower, area.width / 2);
    let rows: Vec<(usize, OpRow)> = file.ops.iter().copied().enumerate().collect();
    let table = Table { title: "calls on it", columns: op_columns(), rows: &rows, id: |r| r.0 as i64, empty: "none" };
    pane(buf, left, state, TableId::FileOps, &table);
    let (handles, objects) = if file.objects.is_empty() {
        (right, None)
    } else {
        let (a, b) = split(right, right.height / 2);
        (a, Some(b))
    };
    let heading = with_more("handles", file.more_handles);
    let id = |h: &HandleRow| i64::from(h.handle_id);
    let table = Table { title: &heading, columns: handle_columns(), rows: &file.handles, id, empty: "none" };
    pane(buf, handles, state, TableId::Handles, &table);
    if let Some(area) = objects {
        let heading = with_more("datasets and other objects", file.more_objects);
        let id = |o: &ObjectRow| i64::from(o.object_id);
        let table = Table { title: &heading, columns: object_columns(), rows: &file.objects, id, empty: "none" };
        pane(buf, area, state, TableId::Objects, &table);
    }
}

fn with_more(name: &str, more: u64) -> String {
    if more > 0 { format!("{name} ({more} more)") } else { name.to_owned() }
}

/// Offsets over time.
fn plot(buf: &mut Buffer, area: Rect, file: &FileDetail, pen: Pen) -> Option<Axis> {
    let nth = if file.every_nth > 1 { format!(", every {}th call", file.every_nth) } else { String::new() };
    let inner = title(buf, pen, area, &format!("offset over time{nth}"), "read, write, both: r w x", false);
    if inner.height < 2 || inner.width < 20 {
        return None;
    }
    if file.points.is_empty() {
        line(buf, pen, inner, "no reads or writes whose offset is known", Tone::Dim);
        return None;
    }
    let from = file.points.iter().map(|p| p.t_ns).min().unwrap_or(0);
    let to = file.points.iter().map(|p| p.t_ns.saturating_add(p.dur_ns)).max().unwrap_or(0);
    let end_of = |p: &Point| p.offset.saturating_add(p.bytes);
    let end = file.points.iter().map(end_of).max().unwrap_or(0).max(1) as f64;
    let canvas = Rect { x: inner.x + 8, width: inner.width - 8, height: inner.height - 1, ..inner };
    let mut plot = Plot::new(canvas);
    for p in &file.points {
        let x = p.t_ns.saturating_sub(from) as f64 / to.saturating_sub(from).max(1) as f64;
        plot.stroke(x, p.offset as f64 / end, end_of(p).saturating_sub(1).max(p.offset) as f64 / end, p.write);
    }
    plot.draw(buf, canvas, pen);
    put(buf, pen, inner, inner.x, inner.y, &format!("{:>7}", pen.bytes(end as i64)), Tone::Dim);
    put(buf, pen, inner, inner.x, canvas.bottom() - 1, "      0", Tone::Dim);
    put(buf, pen, inner, canvas.x, inner.bottom() - 1, &text::seconds(from), Tone::Dim);
    let last = text::seconds(to);
    put(buf, pen, inner, inner.right() - last.len() as u16, inner.bottom() - 1, &last, Tone::Dim);
    Some(Axis { area: canvas, from_ns: from, to_ns: to })
}

type Numbered = (usize, OpRow);

/// Also of the latency screen.
pub fn op_columns() -> Vec<Column<Numbered>> {
    type Of = Column<Numbered>;
    vec![
        Of::wide("layer", 8, |(_, o): &Numbered, _, _| Cell::new(o.layer.name(), Tone::Layer(o.layer))).less(1),
        Of::wide("function", 14, |(_, o), pen: Pen, width| pen.name(o.op, width))
            .grows()
            .sort(|(_, o)| Key::Text(o.op.to_owned())),
        Of::new("calls", 6, |(_, o), _| count(o.sums.calls)).sort(|(_, o)| number(o.sums.calls)),
        Of::new("time", 6, |(_, o), _| time(o.sums.dur_ns)).sort(|(_, o)| number(o.sums.dur_ns)),
        Of::new("excl", 6, |(_, o), _| time(o.sums.self_ns)).sort(|(_, o)| number(o.sums.self_ns)).less(3),
        Of::new("bytes", 6, |(_, o), pen: Pen| bytes(pen, moved(&o.sums)))
            .sort(|(_, o)| number(moved(&o.sums)))
            .less(2),
        Of::new("p99", 6, |(_, o), _| percentile(o.latency, |p| p.p99))
            .sort(|(_, o)| number(o.latency.map_or(0, |p| p.p99)))
            .less(4),
    ]
}

fn handle_columns() -> Vec<Column<HandleRow>> {
    type Of = Column<HandleRow>;
    vec![
        Of::wide("handle", 14, |h: &HandleRow, pen: Pen, width| {
            // Descriptors are small numbers, other handles are addresses and the like.
            let raw = if h.layer == Layer::Syscall { h.raw.to_string() } else { format!("{:#x}", h.raw) };
            let object = h.object.as_deref().unwrap_or_default();
            let label = format!("{}{} {object} {raw}", "  ".repeat(h.depth), h.layer.name());
            Cell::new(pen.name(&label, width), Tone::Layer(h.layer))
        })
        .grows(),
        Of::new("pid", 7, |h, _| h.pid.to_string()).sort(|h| number(h.pid.into())),
        Of::new("procs", 5, |h, _| h.comm_size.map_or_else(|| "-".into(), |n| n.to_string())).less(2),
        Of::new("open", 8, |h, _| text::seconds(h.start_ns)).sort(|h| number(h.start_ns)),
        Of::new("closed", 8, |h, _| h.end_ns.map_or_else(|| "-".into(), text::seconds)).less(1),
        Of::wide("hints", 12, |h, pen: Pen, width| {
            let hints: Vec<String> = h.hints.iter().map(|(k, v)| format!("{k}={v}")).collect();
            pen.name(&hints.join(" "), width)
        })
        .less(3),
    ]
}

fn object_columns() -> Vec<Column<ObjectRow>> {
    type Of = Column<ObjectRow>;
    let shape = |dims: &[i64]| dims.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    vec![
        Of::wide("name", 12, |o: &ObjectRow, pen: Pen, width| pen.name(&o.name, width))
            .grows()
            .sort(|o| Key::Text(o.name.to_string())),
        Of::wide("class", 9, |o, _, _| o.class).less(3),
        Of::wide("dims", 10, move |o, pen: Pen, width| {
            o.dims.as_deref().map_or_else(|| "-".into(), |d| pen.name(&shape(d), width))
        }),
        Of::wide("chunk", 8, move |o, pen: Pen, width| {
            o.chunk.as_deref().map_or_else(|| "-".into(), |d| pen.name(&shape(d), width))
        })
        .less(1),
        Of::new("read", 6, |o, pen| bytes(pen, o.sums.bytes_read)).sort(|o| number(o.sums.bytes_read)),
        Of::new("written", 7, |o, pen| bytes(pen, o.sums.bytes_written)).sort(|o| number(o.sums.bytes_written)),
        Of::new("time", 6, |o, _| time(o.sums.dur_ns)).sort(|o| number(o.sums.dur_ns)),
    ]
}
