//! Screen 4: the call tree, the slowest calls of a function, and all that happened inside one call.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::summary::view::{
    Bar, BarOf, EventRow, NodeDetail, NodeId, Screen, Snapshot, Sums, Tree, TreeNode, Waterfall,
};
use crate::tui::screens::{About, Canvas, bytes, count, empty, errors, moved, number, pane, percentile, time};
use crate::tui::state::{State, TableId, TreeView};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{Pen, chart, halves, line, put, split, title};
use crate::vocabulary::Layer;

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Tree,
    key: '4',
    tab: "Tree",
    name: "Call tree: what calls what, and where the time stays",
    text: &[
        "Calls are merged by the functions that enclose them. incl: their time, excl: what of it",
        "is in no traced call below. Enter on a function: its slowest calls; Enter on one of these:",
        "everything that happened inside it, down to the requests to devices.",
    ],
    keys: &[
        ("Space *", "open or close a node, all"),
        ("f", "flame view"),
        ("i t", "inverted: functions by exclusive time, wherever they are called"),
        ("Enter Esc", "slowest calls, one call; back"),
    ],
    draw,
};

/// Nodes that are open by themselves are at most this deep.
const OPEN: usize = 3;

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    if let Some(span) = state.span {
        match snapshot.waterfall.as_deref().filter(|w| w.span_id == span) {
            Some(fall) => waterfall(buf, area, fall, state),
            None => _ = line(buf, state.pen, area, "looking for the calls inside this one ...", Tone::Dim),
        }
        return;
    }
    let mut area = area;
    if let Some(other) = snapshot.tree.other {
        let label = format!("{} calls found no room in the tree: {}", count(other.sums.calls), time(other.sums.dur_ns));
        line(buf, state.pen, Rect { y: area.bottom() - 1, height: 1, ..area }, &label, Tone::Warn);
        area.height -= 1;
    }
    let (upper, lower) = match state.node {
        Some(_) => split(area, area.height / 2),
        None => (area, Rect { height: 0, ..area }),
    };
    let none = empty::single_calls(snapshot, state);
    match state.tree {
        TreeView::Tree => tree(buf, upper, &snapshot.tree, state, &none),
        TreeView::Inverted => inverted(buf, upper, &snapshot.tree, state, &none),
        TreeView::Flame => flame(buf, upper, &snapshot.tree, state.pen, &none),
    }
    let Some(node) = state.node else { return };
    match snapshot.node.as_deref().filter(|n| n.id == node) {
        Some(detail) => slowest(buf, lower, &snapshot.tree, detail, state),
        None => _ = line(buf, state.pen, lower, "looking for its calls ...", Tone::Dim),
    }
}

/// A node, whether it has children, and whether they are shown.
struct Shown {
    node: TreeNode,
    open: Option<bool>,
    /// Inclusive time of all roots.
    whole: i64,
}

fn whole(tree: &Tree) -> i64 {
    tree.nodes.iter().filter(|n| n.parent.is_none()).map(|n| n.sums.dur_ns).fold(0, i64::saturating_add)
}

/// The nodes whose parents are all open.
fn visible(tree: &Tree, open: impl Fn(&TreeNode) -> bool) -> Vec<Shown> {
    let whole = whole(tree);
    let mut out: Vec<Shown> = Vec::new();
    let mut closed: Option<usize> = None;
    for (i, node) in tree.nodes.iter().enumerate() {
        if closed.is_some_and(|depth| node.depth > depth) {
            continue;
        }
        let parent = tree.nodes.get(i + 1).is_some_and(|n| n.depth > node.depth);
        let is_open = open(node);
        closed = (parent && !is_open).then_some(node.depth);
        out.push(Shown { node: node.clone(), open: parent.then_some(is_open), whole });
    }
    out
}

fn tree(buf: &mut Canvas<'_>, area: Rect, tree: &Tree, state: &mut State, empty: &str) {
    let (toggled, all) = (&state.toggled, state.all_open);
    let rows = visible(tree, |n| (all || n.depth < OPEN) != toggled.contains(&n.id));
    let columns = vec![
        Column::<Shown>::wide("calls inside each other", 26, |s: &Shown, pen: Pen, width| {
            let mark = match (s.open, pen.theme.ascii) {
                (None, _) => " ",
                (Some(true), false) => "▾",
                (Some(false), false) => "▸",
                (Some(true), true) => "-",
                (Some(false), true) => "+",
            };
            let label = format!("{}{mark} {}", "  ".repeat(s.node.depth), op(&s.node));
            Cell::new(text::cut_end(&label, width, pen.theme.ascii), s.node.layer.map_or(Tone::Dim, Tone::Layer))
        })
        .grows(),
        Column::<Shown>::new("calls", 6, |s, _| count(s.node.sums.calls)),
        Column::<Shown>::new("incl", 6, |s, _| time(s.node.sums.dur_ns)),
        Column::<Shown>::wide("of all", 12, |s, pen: Pen, width| {
            let part = s.node.sums.dur_ns as f64 / s.whole.max(1) as f64;
            format!("{:>4} {}", text::percent(part), chart::bar(pen.theme, part, width - 5))
        }),
        Column::<Shown>::new("excl", 6, |s, _| time(s.node.sums.self_ns)),
        Column::<Shown>::new("mean", 6, |s, _| time(s.node.sums.dur_ns / s.node.sums.calls.max(1))).less(3),
        Column::<Shown>::new("max", 6, |s, _| time(s.node.max_ns)).less(2),
        Column::<Shown>::new("bytes", 6, |s, pen| bytes(pen, moved(&s.node.sums))),
        Column::<Shown>::new("device", 6, |s, pen| bytes(pen, s.node.device_bytes)).less(1),
        Column::<Shown>::new("failed", 6, |s, _| errors(s.node.sums.errors)).less(4),
    ];
    let id = |s: &Shown| i64::from(s.node.id);
    pane(buf, area, state, TableId::Tree, &Table { title: "call tree", columns, rows: &rows, id, empty });
}

fn op(node: &TreeNode) -> String {
    match node.layer {
        // No row of a call that has not returned has more.
        None => "(call not returned yet)".to_owned(),
        Some(_) => node.op.to_owned(),
    }
}

/// A function wherever it is called.
struct Leaf {
    layer: Option<Layer>,
    op: &'static str,
    sums: Sums,
    max_ns: i64,
    /// The node with most of its exclusive time, and how many there are.
    node: (i64, NodeId),
    nodes: usize,
    whole: i64,
}

fn inverted(buf: &mut Canvas<'_>, area: Rect, tree: &Tree, state: &mut State, empty: &str) {
    let mut by_op: BTreeMap<(Option<Layer>, &'static str), Leaf> = BTreeMap::new();
    let whole = whole(tree);
    for n in &tree.nodes {
        let new =
            || Leaf { layer: n.layer, op: n.op, sums: Sums::default(), max_ns: 0, node: (-1, n.id), nodes: 0, whole };
        let leaf = by_op.entry((n.layer, n.op)).or_insert_with(new);
        leaf.sums.calls += n.sums.calls;
        leaf.sums.self_ns += n.sums.self_ns;
        leaf.sums.bytes_read += n.sums.bytes_read;
        leaf.sums.bytes_written += n.sums.bytes_written;
        leaf.max_ns = leaf.max_ns.max(n.max_ns);
        leaf.node = leaf.node.max((n.sums.self_ns, n.id));
        leaf.nodes += 1;
    }
    let mut rows: Vec<Leaf> = by_op.into_values().collect();
    rows.sort_by_key(|l| std::cmp::Reverse(l.sums.self_ns));
    let columns = vec![
        Column::<Leaf>::wide("layer", 8, |l: &Leaf, _, _| {
            l.layer.map_or_else(Cell::default, |l| Cell::new(l.name(), Tone::Layer(l)))
        }),
        Column::<Leaf>::wide("function", 16, |l, pen: Pen, width| pen.name(l.op, width))
            .grows()
            .sort(|l| Key::Text(l.op.to_owned())),
        Column::<Leaf>::new("places", 6, |l, _| l.nodes.to_string()).sort(|l| number(l.nodes as i64)).less(1),
        Column::<Leaf>::new("calls", 6, |l, _| count(l.sums.calls)).sort(|l| number(l.sums.calls)),
        Column::<Leaf>::new("excl", 6, |l, _| time(l.sums.self_ns)).sort(|l| number(l.sums.self_ns)),
        Column::<Leaf>::wide("of all", 14, |l, pen: Pen, width| {
            let part = l.sums.self_ns as f64 / l.whole.max(1) as f64;
            format!("{:>4} {}", text::percent(part), chart::bar(pen.theme, part, width - 5))
        }),
        Column::<Leaf>::new("max", 6, |l, _| time(l.max_ns)).sort(|l| number(l.max_ns)).less(2),
        Column::<Leaf>::new("bytes", 6, |l, pen| bytes(pen, moved(&l.sums))).sort(|l| number(moved(&l.sums))),
    ];
    let id = |l: &Leaf| i64::from(l.node.1);
    let title = "functions by exclusive time, wherever they are called (i: tree)";
    pane(buf, area, state, TableId::Inverted, &Table { title, columns, rows: &rows, id, empty });
}

/// Each line is a depth; the width is inclusive time.
fn flame(buf: &mut Buffer, area: Rect, tree: &Tree, pen: Pen, empty: &str) {
    let inner = title(buf, pen, area, "flame: width is inclusive time (f: tree)", "", true);
    if tree.nodes.is_empty() {
        put(buf, pen, inner, inner.x + 1, inner.y, empty, Tone::Dim);
    }
    let whole = whole(tree).max(1) as f64;
    let scale = |ns: i64| ns as f64 / whole * f64::from(inner.width);
    // Where the next child of each node begins.
    let mut next: BTreeMap<Option<NodeId>, f64> = BTreeMap::new();
    for n in &tree.nodes {
        let from = next.get(&n.parent).copied().unwrap_or(0.0);
        let to = from + scale(n.sums.dur_ns);
        next.insert(n.parent, to);
        next.insert(Some(n.id), from);
        let (x0, x1) = (from.round() as u16, (to.round() as u16).min(inner.width));
        if n.depth >= usize::from(inner.height) || x1 <= x0 {
            continue;
        }
        let y = inner.y + n.depth as u16;
        let room = usize::from(x1 - x0);
        let label = text::cut_end(&op(n), room.saturating_sub(1), pen.theme.ascii);
        let fill = " ".repeat(room.saturating_sub(1 + text::columns(&label)));
        let style =
            pen.theme.style(n.layer.map_or(Tone::Dim, Tone::Layer)).add_modifier(ratatui::style::Modifier::REVERSED);
        buf.set_stringn(inner.x + x0, y, format!("{label}{fill}"), room, style);
        buf.set_string(inner.x + x1 - 1, y, "|", pen.theme.style(Tone::Dim));
    }
}

fn slowest(buf: &mut Canvas<'_>, area: Rect, tree: &Tree, detail: &NodeDetail, state: &mut State) {
    let name = tree.nodes.iter().find(|n| n.id == detail.id).map_or_else(String::new, op);
    let heading = format!(
        "slowest calls of {name}: p50 {} p99 {}",
        percentile(detail.latency, |p| p.p50),
        percentile(detail.latency, |p| p.p99)
    );
    let (left, right) =
        if area.width >= 100 { halves(area, area.width * 3 / 5) } else { (area, Rect { width: 0, ..area }) };
    let columns = vec![
        Column::<EventRow>::new("time", 7, |e: &EventRow, _| time(e.dur_ns)).sort(|e| number(e.dur_ns)),
        Column::<EventRow>::new("excl", 7, |e, _| time(e.self_ns)).sort(|e| number(e.self_ns)),
        Column::<EventRow>::new("start", 9, |e, _| text::seconds(e.start_ns)).sort(|e| number(e.start_ns)),
        Column::<EventRow>::new("rank", 4, |e, _| e.rank.map_or_else(|| "-".into(), |n| n.to_string()))
            .sort(|e| number(e.rank.map_or(-1, i64::from))),
        Column::<EventRow>::new("pid", 7, |e, _| e.pid.to_string()).less(1),
        Column::<EventRow>::new("bytes", 6, |e, pen| e.bytes.map_or_else(|| "-".into(), |n| pen.bytes(n)))
            .sort(|e| number(e.bytes.unwrap_or(-1))),
        Column::<EventRow>::wide("path", 10, |e, pen: Pen, width| {
            e.path.as_deref().map_or_else(String::new, |p| pen.path(p, width))
        })
        .grows(),
    ];
    let id = |e: &EventRow| e.span_id;
    let table = Table { title: &heading, columns, rows: &detail.slowest, id, empty: "none of its calls is kept" };
    pane(buf, left, state, TableId::Slowest, &table);
    if right.width == 0 {
        return;
    }
    let rows: Vec<(usize, String, Sums)> =
        detail.files.iter().enumerate().map(|(i, (path, sums))| (i, path.to_string(), *sums)).collect();
    let columns = vec![
        Column::<(usize, String, Sums)>::new("time", 6, |(_, _, s): &(usize, String, Sums), _| time(s.dur_ns))
            .sort(|r| number(r.2.dur_ns)),
        Column::<(usize, String, Sums)>::new("calls", 6, |(_, _, s), _| count(s.calls)).sort(|r| number(r.2.calls)),
        Column::<(usize, String, Sums)>::wide("file", 10, |(_, path, _), pen: Pen, width| pen.path(path, width))
            .grows(),
    ];
    let more = detail.other_files.map_or_else(String::new, |o| format!(" ({} more)", o.rows));
    let table = Table { title: &format!("files{more}"), columns, rows: &rows, id: |r| r.0 as i64, empty: "no files" };
    pane(buf, right, state, TableId::NodeFiles, &table);
}

fn waterfall(buf: &mut Canvas<'_>, area: Rect, fall: &Waterfall, state: &mut State) {
    let pen = state.pen;
    let axis = (fall.from_ns, fall.to_ns);
    let mut area = area;
    if fall.more > 0 {
        let label = format!("{} more calls and requests inside it are not shown", fall.more);
        line(buf, pen, Rect { y: area.bottom() - 1, height: 1, ..area }, &label, Tone::Warn);
        area.height -= 1;
    }
    let heading = format!(
        "one call from {} to {} ({})",
        text::seconds(axis.0),
        text::seconds(axis.1),
        time(axis.1.saturating_sub(axis.0))
    );
    let rows: Vec<(usize, Bar)> = fall.bars.iter().cloned().enumerate().collect();
    let wanted =
        rows.iter().position(|(_, b)| matches!(b.what, BarOf::Span { span_id, .. } if span_id == fall.span_id));
    let chosen = state.tables.entry(TableId::Waterfall).or_default();
    if chosen.selected.is_none() {
        chosen.selected = wanted.map(|at| at as i64);
    }
    let id = |r: &(usize, Bar)| r.0 as i64;
    let table = Table { title: &heading, columns: bar_columns(axis), rows: &rows, id, empty: "it is not kept" };
    pane(buf, area, state, TableId::Waterfall, &table);
    put(buf, pen, area, area.x, area.y, pen.theme.rule(), Tone::Dim);
}

fn bar_columns(axis: (i64, i64)) -> Vec<Column<(usize, Bar)>> {
    type Of = Column<(usize, Bar)>;
    vec![
        Of::wide("call", 24, |(_, b): &(usize, Bar), pen: Pen, width| {
            let name = match &b.what {
                BarOf::Span { op, .. } => (*op).to_owned(),
                BarOf::Request { op, class, how, .. } => format!("block {op} {class} ({how})"),
            };
            let tone = if b.errno != 0 { Tone::Bad } else { Tone::Layer(b.layer) };
            Cell::new(pen.name(&format!("{}{name}", " ".repeat(b.depth)), width), tone)
        })
        .grows(),
        Of::new("time", 6, |(_, b), _| time(b.dur_ns)),
        Of::new("excl", 6, |(_, b), _| time(b.self_ns)).less(1),
        Of::new("bytes", 6, |(_, b), pen| b.bytes.map_or_else(|| "-".into(), |n| pen.bytes(n))),
        Of::wide("when", 24, move |(_, b), pen: Pen, width| {
            let (shade, tone) = match b.what {
                BarOf::Span { .. } => (4, Tone::Layer(b.layer)),
                BarOf::Request { .. } => (2, Tone::Layer(Layer::Block)),
            };
            Cell::new(
                chart::gantt(pen.theme, axis, b.start_ns, b.start_ns.saturating_add(b.dur_ns), shade, width),
                tone,
            )
        })
        .grows(),
        Of::new("offset", 7, |(_, b), pen| b.offset.map_or_else(|| "-".into(), |n| pen.bytes(n))).less(2),
        Of::wide("file or device", 20, |(_, b), pen: Pen, width| match (&b.path, &b.what) {
            (Some(path), _) => pen.path(path, width),
            (None, BarOf::Request { device, .. }) => pen.name(device, width),
            _ => String::new(),
        })
        .less(3),
    ]
}
