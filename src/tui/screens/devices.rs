//! Screen 8: the node, devices and their users, mounts, and dirty pages.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::summary::view::{DeviceRow, DeviceUser, MountRow, Screen, Snapshot};
use crate::tui::screens::{
    About, Canvas, bytes, bytes_over_time, count, empty, errors, node, number, pane, per_second, percentile,
    samples_time, time,
};
use crate::tui::state::{State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{Pen, chart, graph, line, split};
use crate::vocabulary::Layer;

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Devices,
    key: '8',
    tab: "Dev",
    name: "Devices and mounts: how busy, how slow, and their users",
    text: &[
        "busy: part of the time in which the device had a request. queue: from queueing to the driver;",
        "device: from the driver to completion. Requests of other programs are in it, too.",
        "node: CPUs in use (2.0: two of them), part of the time in which a task waited for a CPU,",
        "for I/O or for memory, bytes a second, free memory; over the last 100 ms to 10 minutes.",
    ],
    keys: &[("Tab", "users, mounts")],
    draw,
};

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let pen = state.pen;
    let devices = &snapshot.devices;
    let area = node::draw(buf, area, snapshot, pen);
    let mut area = dirty(buf, area, snapshot, pen);
    let bare = snapshot.overview.layers.iter().find(|l| l.layer == Some(Layer::Block) && !l.covered);
    if let Some(bare) = bare {
        let why = bare.why_not.as_deref().unwrap_or("no probes");
        area = line(
            buf,
            pen,
            area,
            &pen.name(&format!("devices are not covered: {why}"), usize::from(area.width)),
            Tone::Warn,
        );
    }
    let (upper, rest) = split(area, (devices.rows.len() as u16).saturating_add(2).min((area.height / 3).max(3)));
    let id = |d: &DeviceRow| i64::from(d.dev);
    let empty = empty::requests(snapshot);
    let table = Table {
        title: "devices (all requests on the node)",
        columns: device_columns(),
        rows: &devices.rows,
        id,
        empty: &empty,
    };
    pane(buf, upper, state, TableId::Devices, &table);
    let selected = state.selected(TableId::Devices);
    let device = devices.rows.iter().find(|d| Some(i64::from(d.dev)) == selected);
    let (middle, lower) = split(rest, rest.height / 2);
    if let Some(device) = device {
        let class = |(op, class, n, bytes): &(&str, &str, i64, i64)| {
            format!("{op} {class} {} ({}x)", pen.bytes(*bytes), count(*n))
        };
        let classes: Vec<String> = device.classes.iter().map(class).collect();
        let middle = line(buf, pen, middle, &format!("classes: {}", classes.join(", ")), Tone::Plain);
        let more = if device.other_users > 0 { format!(" ({} more)", device.other_users) } else { String::new() };
        let heading = format!("users of {}{more}", pen.name(&device.name, 20));
        let rows: Vec<(usize, DeviceUser)> = device.users.iter().cloned().enumerate().collect();
        let (middle, free) = graph::beside(middle, rows.len());
        if let Some(free) = free {
            let width_ns = device.history_width_ns;
            let series = bytes_over_time(&device.history, width_ns, |d| [d.bytes_read, d.bytes_written]);
            let time = samples_time(0, width_ns, device.history.len());
            let heading = format!("{} over time", pen.name(&device.name, 20));
            state.axes.extend(graph::draw(buf, free, pen, &heading, &series, time));
        }
        let table =
            Table { title: &heading, columns: user_columns(), rows: &rows, id: |r| r.0 as i64, empty: "no process" };
        pane(buf, middle, state, TableId::Users, &table);
    }
    let rows: Vec<(usize, MountRow)> = devices.mounts.iter().cloned().enumerate().collect();
    let heading = "mounts of traced files (system calls)";
    let empty = empty::calls(snapshot, state);
    let table = Table { title: heading, columns: mount_columns(), rows: &rows, id: |r| r.0 as i64, empty: &empty };
    pane(buf, if device.is_some() { lower } else { rest }, state, TableId::Mounts, &table);
}

fn device_columns() -> Vec<Column<DeviceRow>> {
    type Of = Column<DeviceRow>;
    vec![
        Of::wide("device", 10, |d: &DeviceRow, pen: Pen, width| pen.name(&d.name, width))
            .sort(|d| Key::Text(d.name.to_string())),
        Of::wide("busy", 11, |d, pen: Pen, width| {
            let tone = if d.busy > 0.9 {
                Tone::Bad
            } else if d.busy > 0.5 {
                Tone::Warn
            } else {
                Tone::Plain
            };
            Cell::new(format!("{:>4} {}", text::percent(d.busy), chart::bar(pen.theme, d.busy, width - 5)), tone)
        })
        .sort(|d| Key::Number(d.busy)),
        Of::new("reqs/s", 6, |d, _| per_second(d.requests_per_s)).sort(|d| Key::Number(d.requests_per_s)),
        Of::new("read/s", 6, |d, pen| pen.rate(d.read_per_s)).sort(|d| Key::Number(d.read_per_s)),
        Of::new("writ/s", 6, |d, pen| pen.rate(d.written_per_s)).sort(|d| Key::Number(d.written_per_s)),
        Of::new("read", 6, |d, pen| bytes(pen, d.bytes_read)).sort(|d| number(d.bytes_read)).less(3),
        Of::new("written", 7, |d, pen| bytes(pen, d.bytes_written)).sort(|d| number(d.bytes_written)).less(3),
        Of::new("depth", 5, |d, _| format!("{:.1}", d.depth_mean)).sort(|d| Key::Number(d.depth_mean)),
        Of::new("max", 4, |d, _| count(d.depth_max)).sort(|d| number(d.depth_max)).less(2),
        Of::new("q p50", 6, |d, _| percentile(d.queue, |p| p.p50))
            .sort(|d| number(d.queue.map_or(0, |p| p.p50)))
            .less(1),
        Of::new("q p99", 6, |d, _| percentile(d.queue, |p| p.p99)).sort(|d| number(d.queue.map_or(0, |p| p.p99))),
        Of::new("dev p50", 7, |d, _| percentile(d.device, |p| p.p50))
            .sort(|d| number(d.device.map_or(0, |p| p.p50)))
            .less(1),
        Of::new("dev p99", 7, |d, _| percentile(d.device, |p| p.p99)).sort(|d| number(d.device.map_or(0, |p| p.p99))),
        Of::new("failed", 6, |d, _| errors(d.errors)).sort(|d| number(d.errors)).less(4),
        Of::wide("bytes over time", 16, |d, pen: Pen, width| {
            let moved: Vec<f64> = d.history.iter().map(|s| s.bytes_read as f64 + s.bytes_written as f64).collect();
            Cell::new(chart::spark(pen.theme, &moved, width), Tone::Layer(Layer::Block))
        })
        .grows()
        .less(5),
    ]
}

fn user_columns() -> Vec<Column<(usize, DeviceUser)>> {
    type Of = Column<(usize, DeviceUser)>;
    let optional = |n: Option<i32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    vec![
        Of::new("rank", 4, move |(_, u): &(usize, DeviceUser), _| optional(u.rank))
            .sort(|(_, u)| number(u.rank.map_or(-1, i64::from))),
        Of::new("pid", 7, move |(_, u), _| optional(u.pid)).sort(|(_, u)| number(u.pid.map_or(-1, i64::from))),
        Of::new("requests", 8, |(_, u), _| count(u.requests)).sort(|(_, u)| number(u.requests)),
        Of::new("bytes", 6, |(_, u), pen| bytes(pen, u.bytes)).sort(|(_, u)| number(u.bytes)),
        Of::wide("command", 16, |(_, u), pen: Pen, width| match u.process_ix {
            None => Cell::new("of no traced process, or not known", Tone::Dim),
            Some(_) => Cell::from(pen.name(&u.command, width)),
        })
        .grows(),
    ]
}

fn mount_columns() -> Vec<Column<(usize, MountRow)>> {
    type Of = Column<(usize, MountRow)>;
    vec![
        Of::wide("mount", 14, |(_, m): &(usize, MountRow), pen: Pen, width| pen.path(&m.path, width))
            .grows()
            .sort(|(_, m)| Key::Text(m.path.to_string())),
        Of::wide("type", 7, |(_, m), pen: Pen, width| pen.name(&m.fstype, width)),
        Of::wide("source", 14, |(_, m), pen: Pen, width| pen.path(&m.source, width)).less(1),
        Of::new("files", 5, |(_, m), _| count(m.files as i64)).sort(|(_, m)| number(m.files as i64)),
        Of::new("read", 6, |(_, m), pen| bytes(pen, m.sums.bytes_read)).sort(|(_, m)| number(m.sums.bytes_read)),
        Of::new("written", 7, |(_, m), pen| bytes(pen, m.sums.bytes_written))
            .sort(|(_, m)| number(m.sums.bytes_written)),
        Of::new("calls", 6, |(_, m), _| count(m.sums.calls)).sort(|(_, m)| number(m.sums.calls)),
        Of::new("time", 6, |(_, m), _| time(m.sums.dur_ns)).sort(|(_, m)| number(m.sums.dur_ns)),
        Of::wide("disk", 10, |(_, m), pen: Pen, width| {
            let turns = if m.rotational == Some(true) { "rotates " } else { "" };
            pen.name(&format!("{turns}{}", m.scheduler.as_deref().unwrap_or_default()), width)
        })
        .less(2),
        Of::wide("options", 20, |(_, m), pen: Pen, width| pen.name(&m.options, width)).less(3),
    ]
}

/// Memory that waits to be written.
fn dirty(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, pen: Pen) -> Rect {
    let Some(last) = snapshot.devices.dirty.last() else { return area };
    let course: Vec<f64> = snapshot.devices.dirty.iter().map(|d| d.dirty as f64).collect();
    let limit = |n: Option<i64>| n.map_or_else(|| "?".to_owned(), |n| pen.bytes(n));
    let label = format!(
        "not yet written (whole node): dirty {}, being written {}; the kernel writes from {}, and makes writers wait from {}  ",
        pen.bytes(last.dirty),
        pen.bytes(last.writeback),
        limit(last.background_threshold),
        limit(last.threshold)
    );
    let stalls = last.threshold.is_some_and(|t| last.dirty >= t);
    let room = usize::from(area.width).saturating_sub(text::columns(&label));
    let spark = chart::spark(pen.theme, &course, room.min(30));
    line(buf, pen, area, &format!("{label}{spark}"), if stalls { Tone::Bad } else { Tone::Plain })
}
