//! A report as text, from the report alone.

use super::files::{FileRow, HandleNode};
use super::slowest::{BlockNode, CallTree, Node};
use super::{Bytes, Chain, LayerCoverage, LayerRow, OpRow, RankRow, Report};
use crate::export::text::{
    Column, Set, Set::Name, Set::Right, bytes, cut_end, cut_start, escape, percent, ratio, table, time,
};
use crate::words::LAYERS;

/// Columns of the text of a finished run.
pub const WIDTH: usize = 120;
/// Functions shown of one layer; the rest is summed up in a line.
const OPS: usize = 12;
/// Ranks or processes shown.
const RANKS: usize = 32;
/// Entries of one call tree.
const TREE_LINES: usize = 60;
/// Columns of a path in a call tree.
const TREE_PATH: usize = 40;

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

impl Report {
    /// The report as text, no line over `width` columns (60 at least).
    pub fn text(&self, width: usize) -> String {
        let width = width.max(60);
        let mut out = String::new();
        self.head(&mut out);
        self.coverage(&mut out);
        self.layers(&mut out, width);
        self.amplification(&mut out, width);
        self.files(&mut out, width);
        self.slowest(&mut out, width);
        self.ranks(&mut out, width);
        out.lines().map(|line| cut_end(line, width) + "\n").collect()
    }

    fn head(&self, out: &mut String) {
        let h = &self.header;
        let mut line = |text: String| {
            *out += &text;
            out.push('\n');
        };
        let word = |value: &Option<String>| value.as_deref().map_or("unknown".to_owned(), escape);
        line(format!("command   {}", word(&h.command)));
        line(format!("host      {}, kernel {}", word(&h.host), word(&h.kernel)));
        let end = if h.end_recorded { "" } else { " (to the last thing seen: the end was not recorded)" };
        line(format!("start     {}, lasted {}{end}", word(&h.start), time(h.duration_ns)));
        let ranks = if h.ranks > 0 { format!(", {}", plural(h.ranks, "rank", "ranks")) } else { String::new() };
        let processes = plural(h.processes, "process", "processes");
        line(format!("traced    {processes}{ranks}, {}", plural(h.files, "file", "files")));
        line(format!("tracer    iotrace-bpf {}", word(&h.version)));
        if !self.complete {
            let total = self.losses.iter().fold(0i64, |sum, row| sum.saturating_add(row.count));
            line(String::new());
            line(format!("INCOMPLETE: {total} events were lost. Figures marked ~ may be wrong."));
            for row in &self.losses {
                let layer = row.layer.unwrap_or("any layer");
                line(format!("  lost {:>10}  {layer:<9}  {}", row.count, escape(row.place)));
            }
        }
        for warning in &self.warnings {
            line(format!("WARNING: {}", escape(warning)));
        }
    }

    fn coverage(&self, out: &mut String) {
        *out += "\nCoverage\n";
        for layer in &self.coverage {
            let line = self.layer_coverage(layer);
            *out += &format!("  {:<9} {line}\n", layer.layer);
        }
    }

    fn layer_coverage(&self, layer: &LayerCoverage) -> String {
        let seen = self.layers.iter().any(|row| row.layer == layer.layer);
        if let Some(reason) = &layer.not_covered {
            let but = if seen { " (yet there are calls)" } else { "" };
            return format!("not covered: {}{but}", escape(reason));
        }
        let tiers: Vec<_> = layer.tiers.iter().map(|(tier, n)| format!("{} {n}", escape(tier))).collect();
        let refused: Vec<_> = layer.refused.iter().map(|(why, n)| format!("; {} ({n})", escape(why))).collect();
        let silent = if seen { "" } else { ", no calls" };
        format!("{} of {} probes ({}){silent}{}", layer.attached, layer.probes, tiers.join(", "), refused.concat())
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
                m(l.calls.to_string()),
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
                op.op.to_owned(),
                m(op.calls.to_string()),
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
                chain_text(name, chain, out, width);
            }
        }
    }

    fn files(&self, out: &mut String, width: usize) {
        if self.files.is_empty() {
            return;
        }
        let of = self.header.files;
        *out += &format!("\nFiles: {} of {of}, by time in system calls\n", self.files.len());
        for (at, file) in self.files.iter().enumerate() {
            file_text(at + 1, file, out, width);
        }
    }

    fn slowest(&self, out: &mut String, width: usize) {
        if !self.slowest.is_empty() {
            *out += "\nSlowest calls\n";
        }
        for (at, call) in self.slowest.iter().enumerate() {
            call_text(at + 1, call, out, width);
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
            let pids = r.pids.first().map_or(String::new(), i32::to_string);
            let more = if r.pids.len() > 1 { format!("+{}", r.pids.len() - 1) } else { String::new() };
            let mut cells = vec![
                r.rank.map_or("-".to_owned(), |rank| rank.to_string()),
                pids + &more,
                m(r.calls.to_string()),
                m(bytes(r.asked_read)),
                m(bytes(r.asked_written)),
                m(bytes(r.syscall_read)),
                m(bytes(r.syscall_written)),
                m(time(r.library_ns)),
            ];
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
            let who = if ranked { "rank" } else { "pid" };
            let spread = mark(self.complete, ratio(i.max_to_mean));
            let times = format!("{} against a mean of {}", time(i.max_ns), time(i.mean_ns as i64));
            *out += &format!("  {:<9} max/mean {spread} ({who} {}: {times})\n", i.layer, i.slowest);
        }
    }
}

fn chain_text(name: &str, chain: &Chain, out: &mut String, width: usize) {
    let asked = mark(chain.asked_complete, known(chain.asked));
    let mut title = format!("{name} amplification: the program asked for {asked} in {} calls", chain.asked_calls);
    match chain.asked.unknown_calls {
        0 => {}
        n => title += &format!(" (unknown for {n}: taken from the calls below)"),
    }
    *out += &format!("\n{title}\n");
    let head: &[Column] = &[
        ("layer", Name, 0),
        ("calls", Right, 0),
        ("bytes", Right, 0),
        ("asked directly", Right, 1),
        ("to asked", Right, 0),
        ("to above", Right, 0),
        ("", Name, 2),
    ];
    let mut rows = Vec::new();
    for step in chain.steps.iter().filter(|step| step.not_covered.is_none()) {
        let m = |text| mark(step.complete, text);
        let times =
            |value: Option<f64>| mark(step.complete && chain.asked_complete, value.map_or("-".to_owned(), ratio));
        let direct = if step.direct == 0 { "-".to_owned() } else { bytes(step.direct) };
        let (to_asked, to_above) = (times(step.to_asked), times(step.to_above));
        let figures = [m(step.calls.to_string()), m(known(step.bytes)), m(direct), to_asked, to_above];
        rows.push([vec![step.layer.to_owned()], figures.to_vec(), vec![unknown(step.bytes)]].concat());
        for class in &step.classes {
            rows.push(vec![format!("  {}", class.class), m(class.requests.to_string()), m(bytes(class.bytes))]);
        }
    }
    *out += &table(head, &rows, width, 2);
    for step in &chain.steps {
        if let Some(reason) = &step.not_covered {
            *out += &format!("  {:<9} not covered: {}\n", step.layer, escape(reason));
        }
    }
}

fn file_text(number: usize, file: &FileRow, out: &mut String, width: usize) {
    let path = file.path.as_deref().map_or_else(|| format!("file {} (name not recorded)", file.file_id), escape);
    let took = mark(file.complete, time(file.time_ns));
    let room = width.saturating_sub(8 + took.len());
    *out += &format!("{number:>4}. {}  {took}\n", cut_start(&path, room));
    let head: &[Column] = &[
        ("layer", Name, 0),
        ("calls", Right, 0),
        ("time", Right, 0),
        ("read", Right, 0),
        ("written", Right, 0),
        ("errors", Right, 0),
        ("kinds", Name, 1),
    ];
    let row = |l: &super::FileLayer| {
        let m = |text| mark(l.complete, text);
        let kinds: Vec<_> = l.kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        let mut cells = vec![l.layer.to_owned(), m(l.calls.to_string()), m(time(l.time_ns))];
        cells.extend([m(known(l.read)), m(known(l.written)), m(count(l.errors)), kinds.join(", ")]);
        cells
    };
    *out += &table(head, &file.layers.iter().map(row).collect::<Vec<_>>(), width, 6);
    for handle in &file.handles {
        handle_text(handle, "      opened as ".to_owned(), out);
    }
}

/// A handle and the chain of only children on one line, branches below it.
fn handle_text(handle: &HandleNode, mut line: String, out: &mut String) {
    let indent = line.len() - line.trim_start().len() + 2;
    let mut handle = handle;
    loop {
        let what = match (&handle.object, handle.layer) {
            (Some(object), layer) => format!("{layer} {}", escape(object)),
            (None, "syscall") => "syscall fd".to_owned(),
            (None, "stdio") => "stdio FILE".to_owned(),
            (None, layer) => layer.to_owned(),
        };
        line += &format!("{what} ({})", handle.count);
        match handle.children.as_slice() {
            [only] if handle.more == 0 => handle = only,
            _ => break,
        }
        line += " > ";
    }
    *out += &line;
    out.push('\n');
    let below = " ".repeat(indent) + "> ";
    for child in &handle.children {
        handle_text(child, below.clone(), out);
    }
    if handle.more > 0 {
        *out += &format!("{below}{} more\n", handle.more);
    }
}

fn call_text(number: usize, call: &CallTree, out: &mut String, width: usize) {
    let rank = call.rank.map_or(String::new(), |rank| format!(", rank {rank}"));
    let (took, at) = (mark(call.complete, time(call.tree.dur_ns)), time(call.start_ns));
    let who = format!("pid {}, thread {}{rank}", call.pid, call.tid);
    *out += &format!("{number:>4}. {} {took}, started at {at}, {who}\n", call.tree.op);
    let mut rows = Vec::new();
    node_rows(&call.tree, 0, call.complete, &mut rows);
    let cut = rows.len().saturating_sub(TREE_LINES);
    rows.truncate(TREE_LINES);
    let head: &[Column] =
        &[("call", Name, 0), ("time", Right, 0), ("self", Right, 1), ("bytes", Right, 0), ("", Set::Name, 0)];
    // Titles say nothing new from the second tree on.
    let text = table(head, &rows, width, 6);
    *out += if number == 1 { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    if cut > 0 {
        *out += &format!("      {} more with --json\n", plural(cut, "line", "lines"));
    }
    if call.not_shown > 0 {
        *out += &format!("      {} left out: the tree is too large\n", plural(call.not_shown, "entry", "entries"));
    }
}

fn node_rows(node: &Node, depth: usize, complete: bool, rows: &mut Vec<Vec<String>>) {
    let indent = "  ".repeat(depth);
    let mut notes = Vec::new();
    let name = if node.count > 1 {
        notes.push(format!("max {}", time(node.max_ns)));
        format!("{indent}{} x {}", node.op, node.count)
    } else {
        format!("{indent}{}", node.op)
    };
    notes.extend(node.object.as_deref().map(|object| cut_start(&escape(object), TREE_PATH)));
    notes.extend(node.path.as_deref().map(|path| cut_start(&escape(path), TREE_PATH)));
    notes.extend(node.offset.map(|offset| format!("at {offset}")));
    match (node.errors, node.errno) {
        (0, _) => {}
        (_, errno) if errno > 0 => notes.push(format!("failed: {:?}", nix::errno::Errno::from_raw(errno.into()))),
        (1, _) if node.count == 1 => notes.push("failed".to_owned()),
        (n, _) => notes.push(format!("{n} failed")),
    }
    let says = [
        (node.unfinished, "unfinished"),
        (node.asynchronous, "asynchronous"),
        (node.inferred_parent, "parent inferred"),
    ];
    notes.extend(says.iter().filter(|(set, _)| *set).map(|(_, word)| (*word).to_owned()));
    let own = mark(complete, time(node.self_ns));
    rows.push(vec![name, time(node.dur_ns), own, node.bytes.map_or("-".to_owned(), bytes), notes.join(", ")]);
    node.blocks.iter().for_each(|block| rows.push(block_row(block, depth + 1)));
    node.children.iter().for_each(|child| node_rows(child, depth + 1, complete, rows));
}

fn block_row(block: &BlockNode, depth: usize) -> Vec<String> {
    let times = if block.count > 1 { format!(" x {}", block.count) } else { String::new() };
    let name = format!("{}block {} {}{times}", "  ".repeat(depth), block.op, block.class);
    let mut note = format!("queued {}, linked: {}", time(block.queue_ns), block.how);
    if block.count > 1 {
        note = format!("max {}, {note}", time(block.max_device_ns));
    }
    if block.errors > 0 {
        note += &format!(", {} failed", block.errors);
    }
    vec![name, time(block.device_ns), String::new(), bytes(block.bytes), note]
}
