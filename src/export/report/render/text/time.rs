//! The time in calls by layer and wait as one bar with its legend.

use crate::base::text::{columns, percent, time};
use crate::export::report::render::style::{Line, Tone};
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::render::{Look, mark};
use crate::export::report::{Report, TimePart};
use crate::vocabulary::Layer;

/// Columns of the bar, at most.
const BAR: usize = 100;
/// What parts are filled with, in turn: they differ without colours, too.
const FILLS: [char; 8] = ['█', '▒', '#', '░', '=', '▓', '+', '-'];

/// Parts of less than this share have no entry of their own: 0.5 %.
const LEAST: f64 = 0.005;

pub fn title(report: &Report) -> String {
    let all = report.time.iter().fold(0, |sum: i64, part| sum.saturating_add(part.ns));
    let of = if report.header.processes > 1 { " of all processes together" } else { "" };
    format!("Time in calls{of}: {}, by layer and by what system calls waited for", time(all))
}

pub fn table(report: &Report) -> Table<'_> {
    let row = |part: &TimePart| {
        vec![
            Cell::name(part.description()),
            Cell::name(part.kind),
            Cell::from(Value::Ns(part.ns)).sure(part.complete),
            Cell::from(Value::Share(part.share)).sure(part.complete),
        ]
    };
    Table {
        head: vec![
            Column::name("part", "part", 0),
            Column::name("kind", "kind", 0),
            Column::number("time_ns", "time", 0),
            Column::number("share", "share", 0),
        ],
        rows: report.time.iter().map(row).collect(),
        most: usize::MAX,
        ..Table::default()
    }
}

fn tone(part: &TimePart) -> Tone {
    match part.part {
        _ if part.kind == "layer" => Layer::parse(part.part).map_or(Tone::Plain, Tone::Layer),
        "cpu" => Tone::Cpu,
        "runq" | "throttle" | "lock" | "sleep" => Tone::Queue,
        _ => Tone::Device,
    }
}

/// The columns of each part: the whole bar, by the largest remainders.
fn columns_of(parts: &[&TimePart], width: usize) -> Vec<usize> {
    let all: f64 = parts.iter().map(|part| part.share).sum();
    let exact: Vec<f64> = parts.iter().map(|part| part.share / all.max(f64::MIN_POSITIVE) * width as f64).collect();
    let mut whole: Vec<usize> = exact.iter().map(|x| x.floor() as usize).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
    let missing = width.saturating_sub(whole.iter().sum());
    order.into_iter().take(missing).for_each(|at| whole[at] += 1);
    whole
}

pub fn lines(report: &Report, look: &Look) -> Vec<Line> {
    let parts: Vec<&TimePart> = report.time.iter().filter(|part| part.share >= LEAST).collect();
    let width = look.prose().saturating_sub(2).min(BAR);
    let fill = |at: usize| FILLS[at % FILLS.len()];
    let mut bar = Line::plain("  ");
    for (at, (part, n)) in parts.iter().zip(columns_of(&parts, width)).enumerate() {
        bar = bar.then(tone(part), String::from(fill(at)).repeat(n));
    }
    let mut lines = vec![bar];
    let (mut line, mut used) = (Line::default(), 0);
    for (at, part) in parts.iter().enumerate() {
        let share = mark(part.complete, percent(part.share));
        let (name, figures) = (part.description(), format!(" {share} {}", time(part.ns)));
        let wide = 2 + 2 + columns(name) + columns(&figures);
        if used > 0 && used + wide > look.prose() {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        line = line.then(Tone::Plain, "  ").then(tone(part), format!("{} ", fill(at)));
        line = line.then(Tone::Plain, name).then(Tone::Dim, figures);
        used += wide;
    }
    lines.push(line);
    lines
}
