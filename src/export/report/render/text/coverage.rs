//! Which layers were seen, what was lost, and by which libraries: two lines, or all of it.

use std::collections::BTreeMap;

use crate::base::text::escape;
use crate::export::report::render::style::{Line, Tone};
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::render::text::run::software;
use crate::export::report::render::{Look, plural};
use crate::export::report::{LayerCoverage, LossRow, Report};
use crate::vocabulary::Layer;

/// Programs shown that could not be looked into.
const OPAQUE: usize = 3;
/// Reasons shown why probes of a layer are not attached.
const REASONS: usize = 2;

fn seen(report: &Report, layer: &LayerCoverage) -> bool {
    report.layers.iter().any(|row| row.layer == layer.layer)
}

/// Phases are there when someone asks for them; verdicts on whole programs have lines of their own.
fn counts(report: &Report, layer: &LayerCoverage) -> bool {
    layer.layer != Layer::App.name() || layer.probes > report.opaque.len() || seen(report, layer)
}

pub fn table(report: &Report) -> Table<'_> {
    let row = |layer: &LayerCoverage| {
        vec![
            Cell::name(layer.layer),
            Value::Count(layer.attached as i64).into(),
            Value::Count(layer.probes as i64).into(),
            Value::Count(layer.absent as i64).into(),
            Cell::name(whole(layer, seen(report, layer))),
        ]
    };
    Table {
        head: vec![
            Column::name("layer", "layer", 0),
            Column::number("attached", "attached", 0),
            Column::number("probes", "probes", 0),
            Column::number("absent", "absent", 1),
            Column::name("verdict", "verdict", 0),
        ],
        rows: report.coverage.iter().filter(|layer| counts(report, layer)).map(row).collect(),
        most: usize::MAX,
        ..Table::default()
    }
}

pub fn losses(report: &Report) -> Table<'_> {
    let row = |loss: &LossRow| {
        vec![
            Value::Count(loss.count).into(),
            Cell::of(loss.layer.map(str::to_owned), Value::Name),
            Cell::name(loss.place),
        ]
    };
    Table {
        head: vec![
            Column::number("events", "events", 0),
            Column::name("layer", "layer", 0),
            Column::name("cause", "cause", 0),
        ],
        rows: report.losses.iter().map(row).collect(),
        most: usize::MAX,
        ..Table::default()
    }
}

pub fn lines(report: &Report, look: &Look) -> Vec<Line> {
    let all = look.coverage || look.sections.iter().flatten().any(|section| section.name == "coverage");
    let mut lines = Vec::new();
    let mut add = |tone, text: String| lines.extend(look.sentence(tone, &text));
    if all {
        for layer in report.coverage.iter().filter(|layer| counts(report, layer)) {
            add(Tone::Plain, format!("  {:<9} {}", layer.layer, whole(layer, seen(report, layer))));
            for (function, reason) in &layer.demoted {
                add(Tone::Plain, format!("            {} demoted: {}", escape(function), escape(reason)));
            }
        }
    } else {
        add(Tone::Plain, format!("  {}", brief(report)));
    }
    add(if report.complete { Tone::Plain } else { Tone::Bad }, format!("  lost: {}", lost(report, all)));
    for (reason, calls) in &report.header.unknown_bytes {
        let calls = plural(*calls as usize, "call", "calls");
        add(Tone::Warn, format!("  bytes unknown, {}: {calls}", escape(reason)));
    }
    let programs = if all { usize::MAX } else { OPAQUE };
    for program in report.opaque.iter().take(programs) {
        lines.push(Line::of(Tone::Warn, format!("  not seen into {}", escape(&program.program))));
        lines.push(Line::plain(format!("    {}", escape(&program.reason))));
    }
    let mut add = |tone, text: String| lines.extend(look.sentence(tone, &text));
    let more = report.opaque.len().saturating_sub(programs);
    if more > 0 {
        add(Tone::Warn, format!("  nor into {} (--coverage)", plural(more, "more program", "more programs")));
    }
    for (name, value) in software(report).into_iter().filter(|(name, _)| *name != "tracer") {
        add(Tone::Dim, format!("  {name} {value}"));
    }
    if all && report.header.excluded_calls > 0 {
        let calls = plural(report.header.excluded_calls as usize, "call", "calls");
        add(Tone::Dim, format!("  left out {calls} on sockets, pipes, terminals, devices (on purpose)"));
    }
    lines
}

/// Layers that were seen, each with its probes, and those that were not.
fn brief(report: &Report) -> String {
    let layers = || report.coverage.iter().filter(|layer| counts(report, layer));
    let attached = |layer: &LayerCoverage| layer.attached > 0;
    let of = |layer: &LayerCoverage| format!("{} {}/{}", layer.layer, layer.attached, layer.probes);
    let covered: Vec<_> = layers().filter(|layer| attached(layer)).map(of).collect();
    let without: Vec<_> = layers().filter(|layer| !attached(layer)).map(|layer| layer.layer).collect();
    let mut parts = Vec::new();
    if !covered.is_empty() {
        parts.push(format!("probes: {}", covered.join(", ")));
    }
    if !without.is_empty() {
        parts.push(format!("not covered: {}", without.join(", ")));
    }
    parts.join("; ") + " (why: --coverage)"
}

/// What was lost, the most first.
fn lost(report: &Report, all: bool) -> String {
    let mut rows: Vec<&LossRow> = report.losses.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    let shown = if all { rows.len() } else { rows.len().min(OPAQUE) };
    let row = |row: &&LossRow| format!("{} of {} ({})", row.count, row.layer.unwrap_or("any layer"), escape(row.place));
    match rows.len() {
        0 => "nothing".to_owned(),
        n if n > shown => {
            let named = rows[..shown].iter().map(row).collect::<Vec<_>>().join(", ");
            format!("{named}, {} more (--coverage)", n - shown)
        }
        _ => rows.iter().map(row).collect::<Vec<_>>().join(", "),
    }
}

/// A layer with what was attached, or why nothing was.
fn whole(layer: &LayerCoverage, seen: bool) -> String {
    if let Some(reason) = &layer.not_covered {
        let but = if seen { " (yet there are calls)" } else { "" };
        return format!("not covered: {}{but}", escape(reason));
    }
    if layer.attached == 0 {
        return "not covered (no probes)".to_owned();
    }
    let tiers: Vec<_> = match layer.tiers.len() {
        1 => layer.tiers.keys().map(escape).collect(),
        _ => layer.tiers.iter().map(|(tier, n)| format!("{} {n}", escape(tier))).collect(),
    };
    let mut reasons = BTreeMap::<String, usize>::new();
    for (why, n) in &layer.refused {
        // The table has the other name.
        let alias = why.split_once("alias of ").map(|(status, _)| format!("{status}alias of another name"));
        *reasons.entry(alias.unwrap_or_else(|| why.clone())).or_default() += n;
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let others: usize = reasons.iter().skip(REASONS).map(|(_, n)| n).sum();
    let mut line = format!("{} of {} probes ({})", layer.attached, layer.probes, tiers.join(", "));
    if !seen {
        line += ", no calls";
    }
    if layer.absent > 0 {
        line += &format!("; {} not in the library", layer.absent);
    }
    for (why, n) in reasons.iter().take(REASONS) {
        line += &format!("; {n} {}", escape(why));
    }
    if others > 0 {
        line += &format!("; {others} for other reasons (--format json)");
    }
    line
}
