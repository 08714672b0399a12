//! Screen 9: what is traced, what was lost, what was left out on purpose, and what the dashboard costs.

use std::time::Duration;

use ratatui::layout::Rect;

use crate::summary::view::{CoverageGroup, CoverageRow, LossRow, Screen, Snapshot};
use crate::tui::screens::{About, Canvas, count, number, pane};
use crate::tui::state::{State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::times::Last;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{Pen, line, split};

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Coverage,
    key: '9',
    tab: "Cover",
    name: "Coverage and losses: what is traced, and what was lost",
    text: &[
        "Probes by library, those that are not attached and why, and every event that was",
        "seen and is not in the figures, by layer and place.",
    ],
    keys: &[("Tab", "losses, probes that are not attached")],
    draw,
};

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let pen = state.pen;
    let coverage = &snapshot.coverage;
    let mut area = area;
    for note in snapshot.notes.iter() {
        area = line(buf, pen, area, &format!("! {}", text::name(note, pen.theme.ascii)), Tone::Warn);
    }
    let excluded: Vec<String> = coverage
        .excluded
        .iter()
        .filter(|(.., n)| *n > 0.0)
        .map(|(name, label, n)| {
            let label = if label.is_empty() { String::new() } else { format!("({label}) ") };
            format!("{} {label}{}", name.replace('_', " "), text::count(*n))
        })
        .collect();
    if !excluded.is_empty() {
        let label = text::name(&format!("left out on purpose: {}", excluded.join(", ")), pen.theme.ascii);
        area = line(buf, pen, area, &label, Tone::Dim);
    }
    let times = &state.times;
    let part = |(name, last): (&str, &Last)| {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        last.figures().map(|(p50, p95)| format!("{name} p50 {:.1} p95 {:.1}", ms(p50), ms(p95)))
    };
    let parts: Vec<String> = [("figures", &times.figures), ("drawing", &times.drawing), ("terminal", &times.terminal)]
        .into_iter()
        .filter_map(part)
        .collect();
    if !parts.is_empty() {
        let label = format!("dashboard: {} frames, in ms: {}", times.drawing.count, parts.join(", "));
        area = line(buf, pen, area, &label, Tone::Dim);
    }
    let (upper, rest) = split(area, area.height / 2);
    let rows: Vec<(usize, CoverageGroup)> = coverage.groups.iter().cloned().enumerate().collect();
    let table = Table {
        title: "probes by library",
        columns: group_columns(),
        rows: &rows,
        id: |r| r.0 as i64,
        empty: "no probe is set yet",
    };
    pane(buf, upper, state, TableId::Groups, &table);
    let lines = if coverage.losses.is_empty() {
        2
    } else {
        (coverage.losses.len() as u16).saturating_add(2).min(rest.height / 2)
    };
    let (middle, lower) = split(rest, lines);
    let rows: Vec<(usize, LossRow)> = coverage.losses.iter().copied().enumerate().collect();
    let empty = "nothing was lost: every call that a probe saw is in the figures";
    pane(
        buf,
        middle,
        state,
        TableId::Losses,
        &Table { title: "lost", columns: loss_columns(), rows: &rows, id: |r| r.0 as i64, empty },
    );
    let rows: Vec<(usize, CoverageRow)> = coverage.refused.iter().cloned().enumerate().collect();
    let more = if coverage.more_refused > 0 { format!(" ({} more)", coverage.more_refused) } else { String::new() };
    let heading = format!("probes that are not attached{more}");
    let table = Table { title: &heading, columns: refused_columns(), rows: &rows, id: |r| r.0 as i64, empty: "none" };
    pane(buf, lower, state, TableId::Refused, &table);
}

fn group_columns() -> Vec<Column<(usize, CoverageGroup)>> {
    type Of = Column<(usize, CoverageGroup)>;
    let stands_out = |n: usize| Cell::new(count(n as i64), if n > 0 { Tone::Warn } else { Tone::Dim });
    vec![
        Of::wide("layer", 8, |(_, g): &(usize, CoverageGroup), _, _| {
            Cell::new(g.layer.name(), if g.attached > 0 { Tone::Layer(g.layer) } else { Tone::Dim })
        })
        .sort(|(_, g)| number(g.layer as i64)),
        Of::new("attached", 8, |(_, g), _| {
            if g.attached == 0 { Cell::new("none", Tone::Warn) } else { Cell::from(g.attached.to_string()) }
        })
        .sort(|(_, g)| number(g.attached as i64)),
        Of::new("refused", 7, move |(_, g), _| stands_out(g.refused)).sort(|(_, g)| number(g.refused as i64)),
        Of::new("absent", 6, |(_, g), _| count(g.absent as i64)).sort(|(_, g)| number(g.absent as i64)),
        Of::new("skipped", 7, |(_, g), _| count(g.skipped as i64)).sort(|(_, g)| number(g.skipped as i64)),
        Of::new("stepped", 7, |(_, g), _| count(g.stepped as i64)).sort(|(_, g)| number(g.stepped as i64)).less(2),
        Of::wide("how", 16, |(_, g), pen: Pen, width| {
            let tiers: Vec<&str> = g.tiers.iter().map(|(t, _)| *t).collect();
            pen.name(&tiers.join(" "), width)
        })
        .less(1),
        Of::wide("in", 16, |(_, g), pen: Pen, width| pen.path(&g.target, width))
            .grows()
            .sort(|(_, g)| Key::Text(g.target.to_string())),
    ]
}

fn loss_columns() -> Vec<Column<(usize, LossRow)>> {
    type Of = Column<(usize, LossRow)>;
    vec![
        Of::wide("layer", 8, |(_, l): &(usize, LossRow), _, _| l.layer.map_or("-", crate::vocabulary::Layer::name)),
        Of::wide("place", 18, |(_, l), _, _| l.place),
        Of::new("lost", 8, |(_, l), _| Cell::new(count(l.count), Tone::Bad)).sort(|(_, l)| number(l.count)),
        Of::new("last at", 10, |(_, l), _| text::seconds(l.last_ns)).sort(|(_, l)| number(l.last_ns)),
        Of::wide("what that means", 20, |(_, l), pen: Pen, width| pen.name(meaning(l.place), width)).grows(),
    ]
}

/// What losses mean: the table of `losses` in docs/schema.md, in short and in its order.
const MEANINGS: &[(&str, &str)] = &[
    ("ring", "a ring buffer was full: use a larger --ring-size, or fewer layers"),
    ("stack_depth", "more than 32 calls inside each other"),
    ("task_storage", "no memory for a thread's state"),
    ("unmatched_return", "a call returned whose entry was not seen"),
    ("other_stack", "calls on a second stack (coroutines, signals)"),
    ("text", "a path or the arguments of a program could not be read"),
    ("map_full", "a table in the kernel was full"),
    ("request_end", "requests whose end was not seen"),
    ("recursion", "the kernel skipped a hook that was running on that CPU"),
    ("decode", "a damaged record"),
    ("sums", "the kernel's sums could not be read any more: later ones are missing"),
    ("detail", "calls that --detail should have recorded singly: they are in the sums only"),
    ("choice", "no room for a rank or file of --detail: its calls are in the sums only"),
    ("late", "calls that came too late for the calls around them"),
    ("spec_unknown", "calls of functions that the catalog does not have"),
    ("asynchronous", "too many asynchronous operations at once"),
    ("overlap", "calls inside took longer than the call around them"),
    ("pending", "too many calls waited for the calls around them"),
    ("rpc", "too many requests to a traced server waited for their reply"),
    ("flight_memory", "calls were forgotten too early: use a larger --flight-memory"),
    ("thread_unknown", "calls of a process that is not known"),
    ("not_held", "the first calls of a library that was loaded may be missing"),
    ("unwritten", "the dataset could not be written any more: later calls are not in it"),
];

fn meaning(place: &str) -> &'static str {
    MEANINGS.iter().find(|(name, _)| *name == place).map_or("see losses in docs/schema.md", |(_, meaning)| meaning)
}

fn refused_columns() -> Vec<Column<(usize, CoverageRow)>> {
    type Of = Column<(usize, CoverageRow)>;
    vec![
        Of::wide("layer", 8, |(_, r): &(usize, CoverageRow), _, _| r.layer.name())
            .sort(|(_, r)| number(r.layer as i64)),
        Of::wide("verdict", 7, |(_, r), _, _| r.status).sort(|(_, r)| Key::Text(r.status.to_owned())),
        Of::wide("function", 20, |(_, r), pen: Pen, width| pen.name(&r.symbol, width))
            .sort(|(_, r)| Key::Text(r.symbol.to_string())),
        Of::wide("why", 24, |(_, r), pen: Pen, width| pen.name(r.reason.as_deref().unwrap_or("-"), width)).grows(),
        Of::wide("in", 20, |(_, r), pen: Pen, width| pen.path(&r.target, width)).less(1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_of_the_document_has_a_meaning_and_each_meaning_a_cause() {
        let schema = include_str!("../../../docs/schema.md");
        let (_, table) = schema.split_once("\n| `place` | noticed in | what happened |\n|---|---|---|\n").unwrap();
        let rows = table.lines().map_while(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0));
        let mut causes: Vec<&str> = rows.collect();
        // "text" has two rows, one after the other.
        causes.dedup();
        assert_eq!(causes, MEANINGS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
