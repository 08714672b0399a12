//! Screen 1: the costliest layers, the path of the bytes, the slowest ranks and files.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::rows::PARTS;
use crate::summary::view::{ChainStep, DeviceSample, FileRow, History, LayerRow, ProcessRow, Screen, Snapshot, Sums};
use crate::tui::screens::{
    About, Canvas, bytes, bytes_over_time, count, empty, errors, moved, number, pane, per_second, percentile, recent,
    samples_time, time,
};
use crate::tui::state::{Amounts, State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{Pen, chart, graph, halves, line, split};
use crate::vocabulary::{LAYERS, Layer};

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Overview,
    key: '1',
    tab: "Over",
    name: "Overview: which layer costs most",
    text: &[
        "One line for each layer, from the program down to the device.",
        "excl: part of the exclusive time, that is time not spent in the traced calls below.",
        "p50, p99: how long outermost calls of the layer took. A layer without probes is",
        "not covered: that is no finding about the program.",
        "Bytes: what the program asked for, and what each layer below made of it.",
        "Imbalance: the most of any rank over the mean.",
    ],
    keys: &[
        ("Enter", "latency of the layer, or the file or process"),
        ("a m", "rates, totals, what came since the mark; set the mark"),
    ],
    draw,
};

/// A layer and its course.
struct Line {
    row: LayerRow,
    bytes: Vec<f64>,
    calls: Vec<f64>,
}

/// Parts of the time of system calls in its line.
const PARTS_SHOWN: usize = 5;

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let lines: Vec<Line> = snapshot
        .overview
        .layers
        .iter()
        .filter(|l| !state.active_only || l.sums.calls > 0)
        .map(|l| course(snapshot, l))
        .collect();
    let (upper, rest) = split(area, lines.len() as u16 + 2);
    let heading = match (state.amounts, state.since(snapshot)) {
        (Amounts::Rates, _) => "layers: per second".to_owned(),
        (_, None) => "layers: totals".to_owned(),
        (_, Some(mark)) => format!("layers: since the mark at {}", text::seconds(mark.at_ns)),
    };
    let empty = "no layer is traced yet";
    let table = Table {
        title: &heading,
        columns: layer_columns(state.amounts, &snapshot.history),
        rows: &lines,
        id: layer_id,
        empty,
    };
    pane(buf, upper, state, TableId::Layers, &table);
    let rest = facts(buf, rest, snapshot, state.pen);
    let (left, right) = if area.width >= 100 { halves(rest, area.width / 2) } else { halves(rest, area.width * 2 / 5) };
    let rows = &snapshot.processes.rows;
    let columns = process_columns();
    let id = |r: &ProcessRow| i64::from(r.process_ix);
    let none = empty::calls(snapshot, state);
    let empty = none.as_str();
    let (left, free) = graph::beside(left, rows.len());
    if let Some(free) = free {
        layer_chart(buf, free, snapshot, state);
    }
    let mut busiest: Vec<ProcessRow> = rows.clone();
    busiest.sort_by_key(|r| std::cmp::Reverse(r.sums.dur_ns));
    pane(
        buf,
        left,
        state,
        TableId::TopProcesses,
        &Table { title: "processes by time", columns, rows: &busiest, id, empty },
    );
    let id = |r: &FileRow| i64::from(r.file_id);
    let columns = file_columns();
    let table = Table { title: "files by time", columns, rows: &snapshot.files.rows, id, empty: &none };
    pane(buf, right, state, TableId::TopFiles, &table);
}

/// The bytes of the selected layer over time; of system calls, where it has none.
fn layer_chart(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let history = &snapshot.history;
    let selected = state.selected(TableId::Layers).and_then(|at| LAYERS.get(usize::try_from(at).ok()?)).copied();
    let samples = |layer| history.layers.iter().find(|(l, _)| *l == layer).map(|(_, samples)| samples.as_slice());
    let bytes = |samples: &[Sums]| bytes_over_time(samples, history.width_ns, |s| [s.bytes_read, s.bytes_written]);
    let of_device = || bytes_over_time(&history.device, history.width_ns, |d| [d.bytes_read, d.bytes_written]);
    let (layer, series) = match selected {
        Some(Layer::Block) => (Layer::Block, of_device()),
        Some(layer) if samples(layer).is_some() => (layer, bytes(samples(layer).unwrap_or_default())),
        _ => (Layer::Syscall, bytes(samples(Layer::Syscall).unwrap_or_default())),
    };
    let time = samples_time(history.from_ns, history.width_ns, history.device.len());
    let heading = format!("{} over time", layer.name());
    state.axes.extend(graph::draw(buf, area, state.pen, &heading, &series, time));
}

fn layer_id(line: &Line) -> i64 {
    LAYERS.iter().position(|l| Some(*l) == line.row.layer).map_or(-1, |at| at as i64)
}

fn course(snapshot: &Snapshot, row: &LayerRow) -> Line {
    let history = &snapshot.history;
    let moved = |s: &Sums| moved(s) as f64;
    let device = |d: &DeviceSample| d.bytes_read as f64 + d.bytes_written as f64;
    let samples = history.layers.iter().find(|(layer, _)| Some(*layer) == row.layer).map(|(_, s)| s);
    let (bytes, calls) = match samples {
        Some(s) => (s.iter().map(moved).collect(), s.iter().map(|s| s.calls as f64).collect()),
        None if row.layer == Some(Layer::Block) => {
            (history.device.iter().map(device).collect(), history.device.iter().map(|d| d.requests as f64).collect())
        }
        None => (Vec::new(), Vec::new()),
    };
    Line { row: row.clone(), bytes, calls }
}

/// What a layer without probes shows instead of figures.
fn covered<C: Into<Cell>>(show: impl Fn(&LayerRow, Pen) -> C + 'static) -> impl Fn(&Line, Pen) -> Cell + 'static {
    move |line, pen| if line.row.covered { show(&line.row, pen).into() } else { Cell::default() }
}

fn layer_columns(amounts: Amounts, history: &History) -> Vec<Column<Line>> {
    type Of = Column<Line>;
    let name = |l: &Line, _: Pen, _: usize| {
        let name = l.row.layer.map_or("?", Layer::name);
        Cell::new(name, l.row.layer.filter(|_| l.row.covered).map_or(Tone::Dim, Tone::Layer))
    };
    let share = |l: &Line, pen: Pen, width: usize| {
        if !l.row.covered {
            return Cell::new("not covered", Tone::Dim);
        }
        if l.row.layer == Some(Layer::Block) {
            // Requests are no part of any thread's time.
            return Cell::new("device", Tone::Dim);
        }
        let bar = chart::bar(pen.theme, l.row.self_share, width.saturating_sub(5));
        Cell::new(
            format!("{:>4} {bar}", text::percent(l.row.self_share)),
            if l.row.self_share > 0.4 { Tone::Warn } else { Tone::Plain },
        )
    };
    let course = |l: &Line, pen: Pen, width: usize| match &l.row.why_not {
        _ if l.row.covered => {
            Cell::new(chart::spark(pen.theme, &l.bytes, width), l.row.layer.map_or(Tone::Plain, Tone::Layer))
        }
        Some(why) => Cell::new(pen.name(why, width), Tone::Dim),
        None => Cell::new("no probes", Tone::Dim),
    };
    let calls = |l: &Line, pen: Pen, width: usize| chart::spark(pen.theme, &l.calls, width);
    let mut columns = vec![Of::wide("layer", 8, name)];
    if amounts == Amounts::Rates {
        columns.extend([
            Of::new("read/s", 6, covered(|r, pen| pen.rate(r.read_per_s))).sort(|l| Key::Number(l.row.read_per_s)),
            Of::new("writ/s", 6, covered(|r, pen| pen.rate(r.written_per_s)))
                .sort(|l| Key::Number(l.row.written_per_s)),
            Of::new("calls/s", 7, covered(|r, _| per_second(r.calls_per_s))).sort(|l| Key::Number(l.row.calls_per_s)),
        ]);
    } else {
        columns.extend([
            Of::new("read", 7, covered(|r, pen| bytes(pen, r.sums.bytes_read))).sort(|l| number(l.row.sums.bytes_read)),
            Of::new("written", 7, covered(|r, pen| bytes(pen, r.sums.bytes_written)))
                .sort(|l| number(l.row.sums.bytes_written)),
            Of::new("calls", 6, covered(|r, _| count(r.sums.calls))).sort(|l| number(l.row.sums.calls)),
            Of::new("incl", 6, covered(|r, _| time(r.sums.dur_ns))).sort(|l| number(l.row.sums.dur_ns)).less(1),
        ]);
    }
    columns.extend([
        Of::new("p50", 6, covered(|r, _| percentile(r.latency, |p| p.p50)))
            .sort(|l| number(l.row.latency.map_or(0, |p| p.p50))),
        Of::new("p99", 6, covered(|r, _| percentile(r.latency, |p| p.p99)))
            .sort(|l| number(l.row.latency.map_or(0, |p| p.p99))),
        Of::wide("excl", 13, share).sort(|l| Key::Number(l.row.self_share)),
        Of::new("failed", 6, covered(|r, _| errors(r.sums.errors))).sort(|l| number(l.row.sums.errors)).less(1),
        Of::new("lost", 5, |l, _| {
            let lost = l.row.lost as i64;
            Cell::new(count(lost), if lost > 0 { Tone::Bad } else { Tone::Dim })
        })
        .sort(|l| number(l.row.lost as i64)),
        Of::wide("bytes over time", 12, course).grows().over(recent(history)),
        Of::wide("calls over time", 16, calls).less(2).over(recent(history)),
    ]);
    columns
}

fn process_columns() -> Vec<Column<ProcessRow>> {
    type Of = Column<ProcessRow>;
    vec![
        Of::new("rank", 4, |r, _| r.rank.map_or_else(|| "-".into(), |n| n.to_string()))
            .sort(|r| number(r.rank.map_or(-1, i64::from))),
        Of::new("pid", 7, |r, _| r.pid.to_string()).sort(|r| number(r.pid.into())).less(1),
        Of::new("I/O", 7, |r, _| time(r.sums.dur_ns)).sort(|r| number(r.sums.dur_ns)),
        Of::new("bytes", 6, |r, pen| bytes(pen, moved(&r.sums))).sort(|r| number(moved(&r.sums))),
        Of::wide("command", 8, |r, pen, width| pen.name(&r.command, width)).grows(),
        Of::detail("all of it", |r, pen, width| pen.name(&r.cmdline, width)),
    ]
}

fn file_columns() -> Vec<Column<FileRow>> {
    type Of = Column<FileRow>;
    vec![
        Of::new("read", 6, |r, pen| bytes(pen, r.sums.bytes_read)).sort(|r| number(r.sums.bytes_read)),
        Of::new("written", 7, |r, pen| bytes(pen, r.sums.bytes_written)).sort(|r| number(r.sums.bytes_written)),
        Of::new("time", 7, |r, _| time(r.sums.dur_ns)).sort(|r| number(r.sums.dur_ns)),
        Of::wide("path", 12, |r, pen, width| pen.path(&r.path, width)).grows(),
    ]
}

/// The chain of bytes, imbalance, page cache: a line each.
fn facts(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, pen: Pen) -> Rect {
    let overview = &snapshot.overview;
    let mut area = area;
    for (direction, of) in [("written", (|s| s.bytes_written) as fn(&ChainStep) -> i64), ("read", |s| s.bytes_read)] {
        let asked = overview.chain.first().map_or(0, of);
        if overview.chain.iter().all(|s| of(s) == 0) || area.height < 4 {
            continue;
        }
        let arrow = if pen.theme.ascii { " -> " } else { " → " };
        let step = |s: &ChainStep| {
            let name = s.layer.map_or("program", Layer::name);
            match asked {
                0 => format!("{name} {}", pen.bytes(of(s))),
                _ if s.layer.is_none() => format!("{name} {}", pen.bytes(of(s))),
                _ => format!("{name} {} ({:.2}x)", pen.bytes(of(s)), of(s) as f64 / asked as f64),
            }
        };
        let steps: Vec<String> = overview.chain.iter().filter(|s| s.layer.is_none() || of(s) > 0).map(step).collect();
        area = line(buf, pen, area, &format!("bytes {direction}: {}", steps.join(arrow)), Tone::Plain);
    }
    let mut label = Vec::new();
    if let Some(i) = overview.imbalance {
        let bytes = i.bytes_max_to_mean.map_or("-".to_owned(), |most| format!("{most:.1}x"));
        label.push(format!(
            "imbalance of {} ranks: time {:.1}x, bytes {bytes} (most over mean), slowest rank {}",
            i.ranks, i.max_to_mean, i.slowest
        ));
    }
    if overview.cache_bytes > 0 {
        let hit = 1.0 - overview.cache_miss_bytes as f64 / overview.cache_bytes as f64;
        label.push(format!("page cache: {} of bytes read", text::percent(hit.max(0.0))));
    }
    let all: i64 = overview.parts.iter().fold(0, |sum, ns| sum.saturating_add(*ns));
    let mut parts: Vec<(i64, &str)> = overview.parts.into_iter().zip(PARTS.map(|(_, label)| label)).collect();
    parts.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let share = |ns: i64| ns as f64 / all as f64;
    let shown = parts.iter().take(PARTS_SHOWN).filter(|(ns, _)| all > 0 && share(*ns) >= 0.01);
    let shown: Vec<String> = shown.map(|(ns, label)| format!("{label} {}", text::percent(share(*ns)))).collect();
    if !shown.is_empty() && area.height >= 4 {
        area = line(buf, pen, area, &format!("system calls: {}", shown.join(", ")), Tone::Plain);
    }
    if !label.is_empty() && area.height >= 4 {
        area = line(buf, pen, area, &label.join("   "), Tone::Plain);
    }
    area
}
