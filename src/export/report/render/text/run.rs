//! What ran, in two lines, and what a reader must know before trusting a figure.

use crate::base::text::{escape, percent, time};
use crate::export::report::render::style::{Line, Tone};
use crate::export::report::render::table::{Cell, Column, Table};
use crate::export::report::render::{Look, plural};
use crate::export::report::{LayerCoverage, OpRow, Report, Tracing, Utilisation};
use crate::vocabulary::Layer;

/// Page faults that waited for a device from which on the report mentions that it leaves them out: loading programs makes some.
const MANY_FAULTS: i64 = 200;

fn known(value: Option<&str>) -> String {
    value.map_or("unknown".to_owned(), escape)
}

/// Facts of the run, each with its name.
fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let h = &report.header;
    let end = if h.end_recorded { "" } else { " (to the last event: the end was not recorded)" };
    let mut facts = vec![
        ("command", known(h.command.as_deref())),
        ("start", known(h.start.as_deref())),
        ("lasted", format!("{}{end}", time(h.duration_ns))),
        ("host", format!("{}, kernel {}", known(h.host.as_deref()), known(h.kernel.as_deref()))),
        ("traced", traced(report)),
    ];
    facts.extend(report.tracing.as_ref().map(|tracing| ("tracing", tracing.text())));
    facts.extend(shares(report));
    facts.extend(special(report));
    if h.excluded_calls > 0 {
        let calls = plural(h.excluded_calls as usize, "call", "calls");
        facts.push(("left out", format!("{calls} on sockets, pipes, terminals, devices (on purpose)")));
    }
    facts.extend(software(report));
    facts
}

/// `4 processes, 4 ranks, 12 files`.
fn traced(report: &Report) -> String {
    let h = &report.header;
    let ranks = if h.ranks > 0 { format!(", {}", plural(h.ranks, "rank", "ranks")) } else { String::new() };
    let nodes = if report.nodes.len() > 1 { format!(", {} nodes", report.nodes.len()) } else { String::new() };
    let (processes, files) = (plural(h.processes, "process", "processes"), plural(h.files, "file", "files"));
    format!("{processes}{ranks}{nodes}, {files}")
}

/// How busy the node was, and what ranks or processes spent their time on.
fn shares(report: &Report) -> Vec<(&'static str, String)> {
    let node: Vec<String> = report.utilisation.iter().map(Utilisation::text).collect();
    let node = (!node.is_empty()).then(|| ("node", node.join(", ")));
    node.into_iter().chain(report.ranks.share.as_ref().map(|share| ("code", share.text()))).collect()
}

/// Facts that most runs have not, and that change what figures mean.
fn special(report: &Report) -> Vec<(&'static str, String)> {
    let h = &report.header;
    let mut facts = Vec::new();
    if let Some(filter) = &report.filter {
        let all = "coverage, losses, devices and the tracer's share are those of the whole run";
        facts.push(("filtered", format!("calls where {}; {all}", escape(filter))));
    }
    if let Some(f) = &h.flight {
        facts.push(("written", escape(&f.trigger)));
        facts.push(("kept", format!("all of the last {}; --flight asked for {}", time(f.kept_ns), time(f.asked_ns))));
    }
    if h.aggregate {
        let none = || "no single calls".to_owned();
        let single = h.detail.as_ref().map_or_else(none, |detail| format!("single calls of {}", escape(detail)));
        facts.push(("recorded", format!("sums by process, file, layer and operation (--aggregate): {single}")));
    }
    facts.extend(h.read_ahead.as_ref().map(|text| ("advised", escape(text))));
    if let Some(faults) = unrecorded_faults(report) {
        let why = "page faults that waited for a device: vfs in --layers records those on files";
        facts.push(("left out", format!("{faults} {why}")));
    }
    let unfinished = |op: &&OpRow| op.unfinished_calls > 0;
    let of = |op: &OpRow| format!("{} ({})", escape(op.op), op.unfinished_calls);
    let open: Vec<_> = report.layers.iter().flat_map(|layer| &layer.ops).filter(unfinished).map(of).collect();
    if !open.is_empty() {
        facts.push(("open", format!("calls unfinished at the end: {}", open.join(", "))));
    }
    let requests = |n: i64| plural(n as usize, "device request", "device requests");
    if h.requests_in_flight > 0 {
        facts.push(("open", format!("{} had not completed when the trace ended", requests(h.requests_in_flight))));
    }
    if h.requests_end_unseen > 0 {
        let n = requests(h.requests_end_unseen);
        facts.push(("unseen", format!("the end of {n}: not in times and bytes of devices")));
    }
    facts
}

/// Libraries and the tracer.
pub fn software(report: &Report) -> Vec<(&'static str, String)> {
    let h = &report.header;
    let mut libraries: Vec<String> = Vec::new();
    for library in &h.libraries {
        // The file is in the table.
        let short = escape(library.split_once(": ").map_or(library.as_str(), |(short, _)| short));
        if !libraries.contains(&short) {
            libraries.push(short);
        }
    }
    let mut facts = Vec::new();
    if !libraries.is_empty() {
        facts.push(("libraries", libraries.join(", ")));
    }
    if !h.mpiio.is_empty() {
        let by = h.mpiio.iter().map(|(by, n)| format!("{} ({})", escape(by), plural(*n as usize, "open", "opens")));
        facts.push(("MPI-IO by", by.collect::<Vec<_>>().join(", ")));
    }
    facts.extend(report.tracing.as_ref().and_then(Tracing::held).map(|held| ("held", held)));
    facts.push(("tracer", format!("iotrace-bpf {}", known(h.version.as_deref()))));
    facts
}

pub fn table(report: &Report) -> Table<'_> {
    let cells = |name: &str, value: String| vec![Cell::name(name), Cell::name(value)];
    let mut rows: Vec<_> = facts(report).into_iter().map(|(name, value)| cells(name, value)).collect();
    rows.extend(reservations(report).into_iter().map(|text| cells("note", text)));
    let head = vec![Column::name("fact", "fact", 0), Column::name("value", "value", 0)];
    Table { head, rows: rows.into(), most: usize::MAX, ..Table::default() }
}

pub fn lines(report: &Report, look: &Look) -> Vec<Line> {
    let h = &report.header;
    let start = h.start.as_deref().map_or_else(String::new, |start| format!("{}, ", escape(start)));
    let end = if h.end_recorded { "" } else { " to the last event (the end was not recorded)" };
    let host = h.host.as_deref().map_or_else(String::new, |host| format!(" on {}", escape(few(host))));
    let tracing = report
        .tracing
        .as_ref()
        .map_or_else(String::new, |tracing| format!("; tracing took {} of it", percent(tracing.share)));
    let took = format!("run       {start}{}{end}{host}: {}{tracing}", time(h.duration_ns), traced(report));
    let mut lines = vec![Line::plain("command   ").then(Tone::Strong, known(h.command.as_deref()))];
    lines.extend(look.sentence(Tone::Plain, &took));
    lines.extend(reservations(report).iter().flat_map(|text| look.sentence(Tone::Warn, text)));
    // Chosen by its name it is whole.
    let chosen = look.sections.iter().flatten().any(|section| section.name == "run");
    let more = if chosen { facts(report).split_off(3) } else { special(report) };
    lines.extend(more.into_iter().map(|(name, value)| Line::plain(format!("{name:<9} {value}"))));
    lines
}

/// The first of many nodes; section `nodes` has all.
fn few(hosts: &str) -> String {
    const MANY: usize = 5;
    let names: Vec<&str> = hosts.split(", ").collect();
    match names.as_slice() {
        [first, second, rest @ ..] if names.len() >= MANY => format!("{first}, {second} and {} more", rest.len()),
        _ => hosts.to_owned(),
    }
}

/// What figures are not to be trusted, and why.
fn reservations(report: &Report) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(report.tracing.as_ref().and_then(Tracing::warning).map(|warning| format!("WARNING: {warning}")));
    if !report.complete {
        let total = report.losses.iter().fold(0i64, |sum, row| sum.saturating_add(row.count));
        all.push(format!("INCOMPLETE: {total} events were lost. Figures marked ~ may be wrong."));
    }
    let demoted: Vec<&str> = report.coverage.iter().flat_map(|l| l.demoted.keys()).map(String::as_str).collect();
    if !demoted.is_empty() {
        all.push(format!(
            "ESTIMATED: the number of calls of {} (marked ~), which were shorter than their probe. Their bytes are exact. \
             --max-overhead none records each of them.",
            escape(demoted.join(", "))
        ));
    }
    let paused = |layer: &LayerCoverage| {
        let reason = layer.paused.as_ref()?;
        Some(format!("PAUSED: calls of {} inside I/O were {}", layer.layer, escape(reason)))
    };
    all.extend(report.coverage.iter().filter_map(paused));
    all.extend(report.warnings.iter().map(|warning| format!("WARNING: {}", escape(warning))));
    all
}

/// Major page faults of a program that had many of them, where they were not recorded.
fn unrecorded_faults(report: &Report) -> Option<i64> {
    let covered = |layer: &LayerCoverage| layer.layer == Layer::Vfs.name() && layer.attached > 0;
    report.header.major_faults.filter(|n| *n >= MANY_FAULTS && !report.coverage.iter().any(covered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_nodes_the_first_are_named() {
        assert_eq!(few("n1"), "n1");
        assert_eq!(few("n1, n2, n3, n4"), "n1, n2, n3, n4");
        assert_eq!(few("n1, n2, n3, n4, n5"), "n1, n2 and 3 more");
    }
}
