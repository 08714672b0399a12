//! A report as text, from the report alone.

mod amplification;
mod calls;
mod composition;
mod files;
mod findings;
mod lookups;
mod nodes;
mod phases;
mod stacks;
mod waiting;

use std::collections::BTreeMap;

use crate::export::report::{Bytes, LayerCoverage, LayerRow, OpRow, RankRow, Report, Tracing};
use crate::text::Set::{Name, Right};
use crate::text::{Column, bytes, cut_end, escape, percent, ratio, table, time};
use crate::vocabulary::{LAYERS, Layer};

/// Columns of the text of a finished run.
pub const WIDTH: usize = 120;
/// Functions shown of one layer; the rest is summed up in a line.
const OPS: usize = 5;
/// Ranks or processes shown.
const RANKS: usize = 32;
/// Programs shown that could not be looked into.
const OPAQUE: usize = 3;
/// Page faults that waited for a device from which on the report mentions that it leaves them out: loading programs makes some.
const MANY_FAULTS: i64 = 200;
/// Reasons shown why probes of a layer are not attached.
const REASONS: usize = 2;

/// A mark beside a figure that loss could have changed.
fn mark(whole: bool, figure: String) -> String {
    if whole || figure.is_empty() || figure == "-" { figure } else { format!("~{figure}") }
}

fn known(bytes_of: Bytes) -> String {
    match (bytes_of.sum, bytes_of.unknown_calls) {
        (None, 0) => "-".to_owned(),
        (None, _) => "unknown".to_owned(),
        (Some(n), 0) => bytes(n),
        (Some(n), _) => format!("{} +?", bytes(n)),
    }
}

fn unknown(bytes_of: Bytes) -> String {
    match bytes_of.unknown_calls {
        0 => String::new(),
        1 => "bytes unknown for 1 call".to_owned(),
        n => format!("bytes unknown for {n} calls"),
    }
}

fn count(n: i64) -> String {
    if n == 0 { "-".to_owned() } else { n.to_string() }
}

fn plural(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

fn known_or_not(value: Option<&str>) -> String {
    value.map_or("unknown".to_owned(), escape)
}

/// A layer with what was attached, or why nothing was.
fn layer_coverage(layer: &LayerCoverage, seen: bool) -> String {
    if let Some(reason) = &layer.not_covered {
        let but = if seen { " (yet there are calls)" } else { "" };
        return format!("not covered: {}{but}", escape(reason));
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
        line += &format!("; {others} for other reasons (--json)");
    }
    line
}

impl Report {
    /// The report as text, no line over `width` columns (60 at least).
    pub fn text(&self, width: usize) -> String {
        let width = width.max(60);
        let mut out = String::new();
        self.run_lines(&mut out);
        let run_ns = self.tracing.as_ref().map_or(self.header.duration_ns, |tracing| tracing.run_ns);
        findings::text(&self.findings, run_ns as f64 / 1e9, &mut out, width);
        out.push('\n');
        self.head(&mut out);
        nodes::text(&self.nodes, &mut out, width);
        self.coverage(&mut out);
        self.layers(&mut out, width);
        waiting::text(&self.waiting, &mut out, width);
        phases::text(&self.phases, &mut out, width);
        self.amplification(&mut out, width);
        composition::text(&self.composition, &mut out, width);
        calls::text(&self.slowest, &mut out, width);
        stacks::text(&self.slow_stacks, &mut out, width);
        files::text(self, &mut out, width);
        lookups::text(&self.failed_lookups, &mut out, width);
        self.ranks(&mut out, width);
        out.lines().map(|line| cut_end(line, width) + "\n").collect()
    }

    /// What ran, and for how long.
    fn run_lines(&self, out: &mut String) {
        let h = &self.header;
        if let Some(warning) = self.tracing.as_ref().and_then(Tracing::warning) {
            *out += &format!("WARNING: {warning}\n");
        }
        *out += &format!("command   {}\n", known_or_not(h.command.as_deref()));
        let end = if h.end_recorded { "" } else { " (to the last event: the end was not recorded)" };
        *out += &format!("start     {}, lasted {}{end}\n", known_or_not(h.start.as_deref()), time(h.duration_ns));
    }

    fn head(&self, out: &mut String) {
        let h = &self.header;
        let mut line = |text: String| {
            *out += &text;
            out.push('\n');
        };
        line(format!("host      {}, kernel {}", known_or_not(h.host.as_deref()), known_or_not(h.kernel.as_deref())));
        if let Some(f) = &h.flight {
            let (kept, asked) = (time(f.kept_ns), time(f.asked_ns));
            line(format!("written   {}", escape(&f.trigger)));
            line(format!("kept      all of the last {kept}; --flight asked for {asked}"));
        }
        if let Some(tracing) = &self.tracing {
            line(format!("tracing   {}", tracing.text()));
        }
        let ranks = if h.ranks > 0 { format!(", {}", plural(h.ranks, "rank", "ranks")) } else { String::new() };
        let processes = plural(h.processes, "process", "processes");
        line(format!("traced    {processes}{ranks}, {}", plural(h.files, "file", "files")));
        if h.aggregate {
            let single = h
                .detail
                .as_ref()
                .map_or_else(|| "no single calls".to_owned(), |detail| format!("single calls of {}", escape(detail)));
            line(format!("recorded  sums by process, file, layer and operation (--aggregate): {single}"));
        }
        if h.excluded_calls > 0 {
            line(format!(
                "left out  {} on sockets, pipes, terminals, devices (on purpose)",
                plural(h.excluded_calls as usize, "call", "calls")
            ));
        }
        if let Some(faults) = self.unrecorded_faults() {
            line(format!(
                "left out  {faults} page faults that waited for a device: vfs in --layers records those on files"
            ));
        }
        if h.requests_in_flight > 0 {
            let n = plural(h.requests_in_flight as usize, "device request", "device requests");
            line(format!("open      {n} had not completed when the trace ended"));
        }
        if h.requests_end_unseen > 0 {
            let n = plural(h.requests_end_unseen as usize, "device request", "device requests");
            line(format!("unseen    the end of {n}: not in times and bytes of devices"));
        }
        let mut libraries: Vec<String> = Vec::new();
        for library in &h.libraries {
            // The file is in the table.
            let short = library.split_once(": ").map_or(library.as_str(), |(short, _)| short);
            if !libraries.iter().any(|l| l == short) {
                libraries.push(short.to_owned());
            }
        }
        if !libraries.is_empty() {
            line(format!("libraries {}", escape(libraries.join(", "))));
        }
        if !h.mpiio.is_empty() {
            let by = h.mpiio.iter().map(|(by, n)| format!("{by} ({})", plural(*n as usize, "open", "opens")));
            line(format!("MPI-IO by {}", escape(by.collect::<Vec<_>>().join(", "))));
        }
        line(format!("tracer    iotrace-bpf {}", known_or_not(h.version.as_deref())));
        self.reservations(out);
    }

    /// What figures are not to be trusted, and why.
    fn reservations(&self, out: &mut String) {
        let mut line = |text: String| {
            *out += &text;
            out.push('\n');
        };
        if !self.complete {
            let total = self.losses.iter().fold(0i64, |sum, row| sum.saturating_add(row.count));
            line(String::new());
            line(format!("INCOMPLETE: {total} events were lost. Figures marked ~ may be wrong."));
            for row in &self.losses {
                let layer = row.layer.unwrap_or("any layer");
                line(format!("  lost {:>10}  {layer:<9}  {}", row.count, escape(row.place)));
            }
        }
        let demoted: Vec<&str> = self.coverage.iter().flat_map(|l| l.demoted.keys()).map(String::as_str).collect();
        if !demoted.is_empty() {
            line(String::new());
            line(format!(
                "ESTIMATED: the number of calls of {} (marked ~), which were shorter than their probe. Their bytes are exact.",
                escape(demoted.join(", "))
            ));
            line("  --max-overhead none records each of them.".to_owned());
        }
        for layer in &self.coverage {
            let Some(reason) = &layer.paused else { continue };
            line(String::new());
            line(format!("PAUSED: calls of {} inside I/O were {}", layer.layer, escape(reason)));
        }
        for warning in &self.warnings {
            line(format!("WARNING: {}", escape(warning)));
        }
    }

    /// Major page faults of a program that had many of them, where they were not recorded.
    fn unrecorded_faults(&self) -> Option<i64> {
        let covered = |layer: &LayerCoverage| layer.layer == Layer::Vfs.name() && layer.attached > 0;
        self.header.major_faults.filter(|n| *n >= MANY_FAULTS && !self.coverage.iter().any(covered))
    }

    fn coverage(&self, out: &mut String) {
        *out += "\nCoverage\n";
        let mut without = Vec::new();
        for layer in &self.coverage {
            let seen = self.layers.iter().any(|row| row.layer == layer.layer);
            // Verdicts on whole programs have lines of their own.
            let whole = if layer.layer == Layer::App.name() { self.opaque.len() } else { 0 };
            if layer.probes == whole && !seen {
                // Phases are there when someone asks for them.
                without.extend(Some(layer.layer).filter(|layer| *layer != Layer::App.name()));
            } else {
                *out += &format!("  {:<9} {}\n", layer.layer, layer_coverage(layer, seen));
                for (function, reason) in &layer.demoted {
                    *out += &format!("            {} demoted: {}\n", escape(function), escape(reason));
                }
            }
        }
        if !without.is_empty() {
            *out += &format!("  not covered (no probes): {}\n", without.join(", "));
        }
        for program in self.opaque.iter().take(OPAQUE) {
            *out += &format!("  not seen into {}\n    {}\n", escape(&program.program), escape(&program.reason));
        }
        if self.opaque.len() > OPAQUE {
            *out +=
                &format!("  nor into {} more (--json)\n", plural(self.opaque.len() - OPAQUE, "program", "programs"));
        }
    }

    fn layers(&self, out: &mut String, width: usize) {
        *out += "\nLayers: calls, bytes and inclusive time of outermost calls; exclusive time of all\n";
        if self.layers.is_empty() {
            *out += "  no calls were recorded\n";
            return;
        }
        let head: &[Column] = &[
            ("layer", Name, 0),
            ("calls", Right, 0),
            ("nested", Right, 2),
            ("inclusive", Right, 0),
            ("exclusive", Right, 0),
            ("share", Right, 0),
            ("asked", Right, 1),
            ("moved", Right, 0),
            ("errors", Right, 0),
            ("", Name, 3),
        ];
        let row = |l: &LayerRow| {
            let m = |text| mark(l.complete, text);
            let e = |text| mark(l.exclusive_complete, text);
            vec![
                l.layer.to_owned(),
                mark(l.complete && l.ops.iter().all(|op| op.estimated_calls == 0), l.calls.to_string()),
                m(count(l.nested_calls)),
                m(time(l.inclusive_ns)),
                e(l.exclusive_ns.map_or("-".to_owned(), time)),
                mark(self.complete, l.exclusive_share.map_or("-".to_owned(), percent)),
                m(known(l.asked)),
                m(known(l.moved)),
                m(count(l.errors)),
                unknown(l.moved),
            ]
        };
        *out += &table(head, &self.layers.iter().map(row).collect::<Vec<_>>(), width, 2);
        for (reason, calls) in &self.header.unknown_bytes {
            *out += &format!("  bytes unknown, {}: {}\n", escape(reason), plural(*calls as usize, "call", "calls"));
        }
        for layer in &self.layers {
            self.ops(layer, out, width);
        }
    }

    fn ops(&self, layer: &LayerRow, out: &mut String, width: usize) {
        let head: &[Column] = &[
            (layer.layer, Name, 0),
            ("calls", Right, 0),
            ("incl", Right, 0),
            ("excl", Right, 0),
            ("share", Right, 4),
            ("asked", Right, 6),
            ("moved", Right, 0),
            ("err", Right, 0),
            ("min", Right, 7),
            ("mean", Right, 3),
            ("stddev", Right, 8),
            ("p50", Right, 5),
            ("p99", Right, 0),
            ("max", Right, 2),
        ];
        let row = |op: &OpRow| {
            let m = |text| mark(layer.complete, text);
            vec![
                escape(op.op),
                mark(layer.complete && op.estimated_calls == 0, op.calls.to_string()),
                m(time(op.inclusive_ns)),
                mark(layer.exclusive_complete, op.exclusive_ns.map_or("-".to_owned(), time)),
                mark(self.complete, op.exclusive_share.map_or("-".to_owned(), percent)),
                m(known(op.asked)),
                m(known(op.moved)),
                m(count(op.errors)),
                m(time(op.min_ns)),
                m(time(op.mean_ns as i64)),
                m(op.stddev_ns.map_or("-".to_owned(), |ns| time(ns as i64))),
                m(time(op.p50_ns)),
                m(time(op.p99_ns)),
                m(time(op.max_ns)),
            ]
        };
        out.push('\n');
        *out += &table(head, &layer.ops.iter().take(OPS).map(row).collect::<Vec<_>>(), width, 2);
        let rest = layer.ops.get(OPS..).unwrap_or_default();
        if !rest.is_empty() {
            let ns = rest.iter().fold(0i64, |sum, op| sum.saturating_add(op.exclusive_ns.unwrap_or(op.inclusive_ns)));
            *out += &format!("  {} more, {} together\n", plural(rest.len(), "function", "functions"), time(ns));
        }
    }

    fn amplification(&self, out: &mut String, width: usize) {
        for (name, chain) in [("Read", &self.amplification.read), ("Write", &self.amplification.write)] {
            if chain.asked_calls > 0 || chain.steps.iter().any(|step| step.calls > 0) {
                amplification::text(name, chain, out, width);
            }
        }
    }

    fn ranks(&self, out: &mut String, width: usize) {
        let rows = &self.ranks.rows;
        if rows.is_empty() {
            return;
        }
        let ranked = self.header.ranks > 0;
        *out += if ranked { "\nRanks" } else { "\nProcesses" };
        *out += ": asked of the program's own calls; exclusive time by layer\n";
        let used: Vec<_> =
            LAYERS.iter().map(|l| l.name()).filter(|l| rows.iter().any(|r| r.exclusive_ns.contains_key(l))).collect();
        let mut head: Vec<Column> = vec![
            ("rank", Right, u8::from(!ranked) * 9),
            ("pid", Right, 0),
            ("calls", Right, 0),
            ("asked read", Right, 4),
            ("asked written", Right, 4),
            ("syscall read", Right, 5),
            ("syscall written", Right, 5),
            ("library", Right, 3),
        ];
        let nodes = rows.iter().any(|r| !r.hosts.is_empty());
        if nodes {
            head.insert(1, ("node", Name, 1));
        }
        head.extend(used.iter().map(|layer| (*layer, Right, 2)));
        head.push(("program", Name, 6));
        let total = |row: &RankRow| row.exclusive_ns.values().fold(0i64, |sum, ns| sum.saturating_add(*ns));
        let mut shown: Vec<&RankRow> = rows.iter().collect();
        if shown.len() > RANKS {
            shown.sort_by_key(|row| std::cmp::Reverse(total(row)));
            shown.truncate(RANKS);
        }
        let row = |r: &&RankRow| {
            let m = |text| mark(r.complete, text);
            // Which calls are the program's own is known of single calls only.
            let own = |text| if self.header.aggregate { "-".to_owned() } else { m(text) };
            let pids = r.pids.first().map_or(String::new(), i32::to_string);
            let more = if r.pids.len() > 1 { format!("+{}", r.pids.len() - 1) } else { String::new() };
            let mut cells = vec![
                r.rank.map_or("-".to_owned(), |rank| rank.to_string()),
                pids + &more,
                own(r.calls.to_string()),
                own(bytes(r.asked_read)),
                own(bytes(r.asked_written)),
                m(bytes(r.syscall_read)),
                m(bytes(r.syscall_written)),
                own(time(r.library_ns)),
            ];
            if nodes {
                cells.insert(1, escape(r.hosts.join(",")));
            }
            cells.extend(used.iter().map(|layer| m(r.exclusive_ns.get(layer).map_or("-".to_owned(), |ns| time(*ns)))));
            cells.push(r.exe.as_deref().map_or(String::new(), escape));
            cells
        };
        *out += &table(&head, &shown.iter().map(row).collect::<Vec<_>>(), width, 2);
        if rows.len() > shown.len() {
            *out +=
                &format!("  the {} with the most time; {} more with --json\n", shown.len(), rows.len() - shown.len());
        }
        for i in &self.ranks.imbalance {
            let spread = mark(self.complete, ratio(i.max_to_mean));
            let times = format!("{} against a mean of {}", time(i.max_ns), time(i.mean_ns as i64));
            let bytes = i.bytes_max_to_mean.map_or(String::new(), |most| format!(", bytes {}", ratio(most)));
            *out += &format!("  {:<9} max/mean {spread} (rank {}: {times}){bytes}\n", i.layer, i.slowest);
        }
    }
}
