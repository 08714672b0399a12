//! Below the table of processes: the calls of one of them as they come, or where its threads are.

use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use ratatui::layout::Rect;

use crate::analysis::durations::slow_stacks::StackRow;
use crate::summary::view::{EventRow, ProcessDetail, ProcessFocus, ProcessPart, Snapshot, Stacks, ThreadStack};
use crate::tui::screens::{Canvas, empty, pane};
use crate::tui::state::{Signalling, State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::table::{Cell, Column, Table};
use crate::tui::widgets::{Pen, split as split_at};
use crate::vocabulary::{Layer, flag};

/// Lines of processes above it: the title, the heads and some rows at least.
const LEAST: u16 = 4;
/// A part of the screen for them: one of so many.
const PART: u16 = 3;

/// What of an area is for the table of processes, and what for one of them.
pub fn split(area: Rect, state: &State) -> (Rect, Rect) {
    if state.process.is_some() { split_at(area, (area.height / PART).max(LEAST)) } else { split_at(area, area.height) }
}

/// Draws what there is of the process that was chosen.
pub fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let Some(of) = state.process.clone().filter(|_| area.height > 0) else { return };
    match &of.part {
        ProcessPart::Calls(_) => calls(buf, area, snapshot, state, &of),
        ProcessPart::Stacks => stacks(buf, area, snapshot, state, &of),
    }
}

/// Its number and its command.
fn name(snapshot: &Snapshot, of: &ProcessFocus, pen: Pen) -> String {
    let row = snapshot.processes.rows.iter().find(|r| r.process_ix == of.process_ix);
    let ended = if row.is_some_and(|r| r.end_ns.is_some()) { ", which has ended" } else { "" };
    format!("{} {}{ended}", of.pid, row.map_or_else(String::new, |r| pen.name(&r.command, 20)))
}

fn calls(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State, of: &ProcessFocus) {
    let rows = match (&state.paused, &snapshot.process) {
        (Some(paused), _) => Arc::clone(paused),
        (None, Some(ProcessDetail::Calls(rows))) => Arc::clone(rows),
        (None, _) => Arc::default(),
    };
    let mut heading = format!("calls of {}", name(snapshot, of, state.pen));
    if let ProcessPart::Calls(Some(filter)) = &of.part {
        heading += &format!(", filter: {}", text::name(filter.text(), state.pen.theme.ascii));
    }
    heading += match (&state.paused, state.tables.get(&TableId::Followed).is_some_and(|t| t.follow)) {
        (Some(_), _) => ", PAUSED (Space: go on)",
        (None, true) => ", following (Space: pause)",
        (None, false) => " (F: follow the newest)",
    };
    let line = Column::wide("", 40, move |e: &EventRow, pen: Pen, width| {
        let tone = if e.errno == 0 { Tone::Layer(e.layer) } else { Tone::Bad };
        Cell::new(call_line(e, pen, width), tone)
    });
    let empty = match &of.part {
        ProcessPart::Calls(Some(_)) => "none of its last calls fulfils the filter".to_owned(),
        _ => empty::single_calls(snapshot, state),
    };
    let table = Table {
        title: &heading,
        columns: vec![line.grows()],
        rows: &rows,
        id: |e: &EventRow| e.span_id,
        empty: &empty,
    };
    pane(buf, area, state, TableId::Followed, &table);
}

/// A call as strace writes them: `1.000250 [4241] pwrite64("/data/out.h5", count=65536, offset=4096) = 65536 <0.000250>`.
/// Calls inside others are indented. Where there is no room for all of it, the path loses its beginning first: the result is
/// what one looks for.
fn call_line(e: &EventRow, pen: Pen, width: usize) -> String {
    const SHORTEST: usize = 8;
    let path = e.path.as_deref().map_or_else(String::new, |path| text::name(path, pen.theme.ascii));
    let op = text::name(e.op, pen.theme.ascii);
    let whole = line_of(e, &op, &path);
    let over = text::columns(&whole).saturating_sub(width);
    if over == 0 || path.is_empty() {
        return text::cut_end(&whole, width, pen.theme.ascii);
    }
    let room = text::columns(&path).saturating_sub(over).max(SHORTEST);
    text::cut_end(&line_of(e, &op, &text::cut_start(&path, room, pen.theme.ascii)), width, pen.theme.ascii)
}

/// With names that are safe to show.
fn line_of(e: &EventRow, op: &str, path: &str) -> String {
    let thread = if e.tid == e.pid { String::new() } else { format!("[{}] ", e.tid) };
    let indent = "  ".repeat(usize::from(e.depth.max(0).unsigned_abs()));
    let path = e.path.as_ref().map(|_| format!("\"{}\"", path.replace('"', "\\\"")));
    let number = |name: &str, n: Option<i64>| n.map(|n| format!("{name}={n}"));
    let arguments: Vec<String> =
        path.into_iter().chain(number("count", e.req_bytes)).chain(number("offset", e.offset)).collect();
    let (begin, time) = (e.start_ns as f64 / 1e9, e.dur_ns as f64 / 1e9);
    format!("{begin:.6} {thread}{indent}{op}({}) = {} <{time:.6}>", arguments.join(", "), result(e))
}

fn result(e: &EventRow) -> String {
    if e.flags & flag::UNFINISHED != 0 {
        return "? (unfinished)".to_owned();
    }
    let moved = e.bytes.filter(|bytes| Some(*bytes) != e.ret).map_or_else(String::new, |n| format!(" ({n} bytes)"));
    match e.errno {
        0 => format!("{}{moved}", e.ret.map_or_else(|| "?".to_owned(), |ret| ret.to_string())),
        1.. => match (crate::base::text::errno(e.errno), Errno::from_raw(e.errno.into())) {
            (name, Errno::UnknownErrno) => format!("-1 {name}"),
            (name, errno) => format!("-1 {name} ({})", errno.desc()),
        },
        // A library has its own errors.
        _ => format!("{} (failed)", e.ret.map_or_else(|| "?".to_owned(), |ret| ret.to_string())),
    }
}

/// One line of the stacks.
struct Line {
    id: i64,
    text: String,
    tone: Tone,
}

fn stacks(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State, of: &ProcessFocus) {
    let name = name(snapshot, of, state.pen);
    let heading = if snapshot.run.live {
        format!("where the threads of {name} are")
    } else {
        format!("where slow calls of {name} were made")
    };
    let (texts, why) = match &snapshot.process {
        Some(ProcessDetail::Stacks(found)) => (stack_lines(found), found.why_not.clone()),
        _ => (Vec::new(), Some("being read".to_owned())),
    };
    let rows: Vec<Line> = (0..).zip(texts).map(|(id, (text, tone))| Line { id, text, tone }).collect();
    let line = Column::wide("", 40, |l: &Line, pen: Pen, width| Cell::new(pen.name(&l.text, width), l.tone));
    let empty = text::name(why.as_deref().unwrap_or("it has no threads any more"), state.pen.theme.ascii);
    let table = Table { title: &heading, columns: vec![line.grows()], rows: &rows, id: |l: &Line| l.id, empty: &empty };
    pane(buf, area, state, TableId::Stacks, &table);
}

fn stack_lines(stacks: &Stacks) -> Vec<(String, Tone)> {
    let mut out: Vec<(String, Tone)> = stacks.threads.iter().flat_map(thread_lines).collect();
    out.extend(stacks.slow.iter().flat_map(slow_lines));
    if stacks.more > 0 {
        out.push((format!("{} more threads", stacks.more), Tone::Warn));
    }
    out
}

/// One stack with the calls that it was taken in.
fn slow_lines(row: &StackRow) -> Vec<(String, Tone)> {
    let what = format!("{} in {} calls of {} {}", text::time(row.time_ns), row.calls, row.layer, row.op);
    let frames = row.frames.iter().map(|frame| (format!("  {frame}"), Tone::Plain));
    std::iter::once((what, Tone::Head)).chain(frames).collect()
}

fn thread_lines(thread: &ThreadStack) -> Vec<(String, Tone)> {
    let state = match thread.state {
        'R' => "runs",
        'S' => "sleeps",
        'D' => "waits and cannot be interrupted",
        'T' | 't' => "is stopped",
        'Z' | 'X' => "has ended",
        'I' => "is idle",
        _ => "is in an unknown state",
    };
    let tone = if thread.state == 'D' { Tone::Warn } else { Tone::Head };
    let inside = thread.waits_in.as_ref().map_or_else(String::new, |name| format!(" in {name}"));
    let mut out = vec![(format!("thread {} {}: {} {state}{inside}", thread.tid, thread.name, thread.state), tone)];
    let mut part = |name: &str, lines: Result<Vec<String>, &String>, tone: Tone| match lines {
        Ok(lines) => {
            for (at, line) in lines.into_iter().enumerate() {
                out.push((format!("  {:<8} {line}", if at == 0 { name } else { "" }), tone));
            }
        }
        Err(why) => out.push((format!("  {name:<8} - {why}"), Tone::Dim)),
    };
    part("calls", Ok(thread.calls.clone()), Tone::Layer(Layer::Syscall));
    part("kernel", thread.kernel.as_ref().cloned(), Tone::Plain);
    let frames = thread.user.as_ref().map(|frames| frames.iter().map(crate::inflight::Frame::text).collect());
    part("program", frames, Tone::Plain);
    out
}

/// The signals, or the question whether to send the one that is chosen.
pub fn signals(snapshot: &Snapshot, of: Signalling, pen: Pen) -> Vec<(String, Tone)> {
    let row = snapshot.processes.rows.iter().find(|r| r.process_ix == of.process_ix);
    let command = row.map_or_else(String::new, |r| pen.name(&r.command, 40));
    if of.chosen {
        return vec![
            (format!("{} to process {} {command}?", of.signal, of.pid), Tone::Warn),
            ("y: send  n: do not".to_owned(), Tone::Plain),
        ];
    }
    let line = |signal: Signal| {
        let chosen = signal == of.signal;
        let mark = if chosen { ">" } else { " " };
        (format!("{mark} {:>2} {signal}", signal as i32), if chosen { Tone::Strong } else { Tone::Plain })
    };
    Signal::iterator().map(line).collect()
}
