//! The files of a report as text: what each layer did with each, and how it was opened.

use crate::export::report::render::{count, known, mark};
use crate::export::report::{FileLayer, HandleNode, Report};
use crate::text::Set::{Name, Right};
use crate::text::{Column, cut_start, escape, table, time};
use crate::vocabulary::KINDS;

/// Files shown; JSON has more.
const FILES: usize = 10;

/// The files with the most time.
pub fn text(report: &Report, out: &mut String, width: usize) {
    if report.files.is_empty() {
        return;
    }
    let shown = &report.files[..report.files.len().min(FILES)];
    *out += &format!("\nFiles: {} of {}, by time in system calls", shown.len(), report.header.files);
    if let Some(ns) = report.header.unseen_file_ns {
        *out += &format!("; too many to keep all apart: one with up to {} may be missing", time(ns));
    }
    match report.library_files.files {
        0 => out.push('\n'),
        n => {
            let took = mark(report.complete, time(report.library_files.time_ns));
            *out += &format!("; libraries, /proc and /sys last ({n} files, {took} in all)\n");
        }
    }
    // A column of errors only where there are some.
    let failed = shown.iter().flat_map(|file| &file.layers).any(|layer| layer.errors > 0);
    let mut head: Vec<Column> =
        vec![("layer", Name, 0), ("calls", Right, 0), ("time", Right, 0), ("read", Right, 0), ("written", Right, 0)];
    head.extend(failed.then_some(("errors", Right, 0)));
    head.push(("calls by kind", Name, 1));
    let rows: Vec<_> = shown.iter().flat_map(|file| &file.layers).map(|layer| row(layer, failed)).collect();
    // One table for all files, so that their columns stand below each other; each file's own lines go in between.
    let table = table(&head, &rows, width, 6);
    let mut lines = table.lines();
    *out += lines.next().unwrap_or_default();
    out.push('\n');
    for (at, file) in shown.iter().enumerate() {
        let path = file.path.as_deref().map_or_else(|| format!("file {} (name not recorded)", file.file_id), escape);
        let path = file.host.as_deref().map_or(path.clone(), |host| format!("{}:{path}", escape(host)));
        let took = mark(file.complete, time(file.time_ns));
        let room = width.saturating_sub(8 + took.len());
        *out += &format!("{:>4}. {}  {took}\n", at + 1, cut_start(&path, room));
        for line in lines.by_ref().take(file.layers.len()) {
            *out += line;
            out.push('\n');
        }
        // Every system call on a file needs a descriptor: only others are shown.
        for handle in file.handles.iter().filter(|h| h.layer != "syscall" || !h.children.is_empty()) {
            handle_text(handle, "      opened as ".to_owned(), out);
        }
    }
}

fn row(layer: &FileLayer, failed: bool) -> Vec<String> {
    let m = |text| mark(layer.complete, text);
    let kind = |kind: &str| layer.kinds.get(kind).map(|n| format!("{kind} {n}"));
    let kinds: Vec<_> = KINDS.iter().filter_map(|k| kind(k.name())).collect();
    let mut cells = vec![layer.layer.to_owned(), m(layer.calls.to_string()), m(time(layer.time_ns))];
    cells.extend([m(known(layer.read)), m(known(layer.written))]);
    cells.extend(failed.then(|| m(count(layer.errors))));
    cells.push(kinds.join(", "));
    cells
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
