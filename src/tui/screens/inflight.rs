//! Screen 6: what has begun and not returned, and where it waits.

use ratatui::layout::Rect;

use crate::inflight::{InFlight, Operation, OperationKind};
use crate::summary::view::{Screen, Snapshot};
use crate::tui::screens::{About, Canvas, number, pane};
use crate::tui::state::{State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{Pen, line, put, split, title};

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::InFlight,
    key: '6',
    tab: "Flight",
    name: "In flight: what has begun and not returned, the oldest first",
    text: &["Calls inside each other, and where the thread is in the kernel.", "Long ones are red."],
    keys: &[("Enter", "calls and stacks of the selected one")],
    draw,
};

/// From these on an operation is long, and stuck.
const LONG: i64 = 1_000_000_000;
const STUCK: i64 = 10 * LONG;

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let Some(flight) = &snapshot.inflight else {
        let why = if snapshot.run.live {
            "not covered: calls in flight are not known here; they are on the other screens once they return"
        } else {
            "a dataset has nothing in flight; calls that never returned are in it, marked as unfinished (7, events)"
        };
        line(buf, state.pen, area, why, Tone::Warn);
        return;
    };
    let (upper, lower) = split(area, area.height / 2);
    let heading = format!("in flight at {}, the oldest first", text::seconds(flight.at_ns));
    let rows = &flight.operations;
    let empty = "nothing: every call that a probe has seen to begin has returned";
    pane(
        buf,
        upper,
        state,
        TableId::Flights,
        &Table { title: &heading, columns: columns(), rows, id: |o| o.id, empty },
    );
    let pen = state.pen;
    let inner = title(buf, pen, lower, "the selected one: calls, and where its thread is in the kernel", "", false);
    for (i, (label, tone)) in details(snapshot, state).iter().take(usize::from(inner.height)).enumerate() {
        put(buf, pen, inner, inner.x + 1, inner.y + i as u16, label, *tone);
    }
}

fn tone(age_ns: i64) -> Tone {
    match age_ns {
        STUCK.. => Tone::Bad,
        LONG.. => Tone::Warn,
        _ => Tone::Plain,
    }
}

fn columns() -> Vec<Column<Operation>> {
    type Of = Column<Operation>;
    let innermost = |o: &Operation| o.innermost().map_or_else(String::new, |c| c.op.clone());
    vec![
        Of::new("age", 8, |o, _| Cell::new(text::time(o.age_ns), tone(o.age_ns))).sort(|o| number(o.age_ns)),
        Of::new("rank", 4, |o, _| o.rank.map_or_else(|| "-".into(), |n| n.to_string()))
            .sort(|o| number(o.rank.map_or(-1, i64::from))),
        Of::new("pid", 7, |o, _| o.pid.to_string()).sort(|o| number(o.pid.into())),
        Of::new("thread", 7, |o, _| if o.tid == 0 { "-".to_owned() } else { o.tid.to_string() })
            .sort(|o| number(o.tid.into()))
            .less(3),
        Of::wide("command", 10, |o, pen, width| pen.name(&o.comm, width)).less(2),
        Of::wide("waits for", 8, |o, _, _| match o.kind {
            OperationKind::Calls => "call",
            OperationKind::Asynchronous => "async",
            OperationKind::Request => "device",
        })
        .less(4),
        Of::wide("outermost", 16, |o, pen, width| o.calls.first().map_or_else(String::new, |c| pen.name(&c.op, width)))
            .less(1),
        Of::wide("innermost", 14, move |o, pen, width| {
            let layer = o.innermost().map_or(Tone::Plain, |c| Tone::Layer(c.layer));
            Cell::new(pen.name(&innermost(o), width), layer)
        })
        .sort(|o| Key::Text(o.innermost().map_or_else(String::new, |c| c.op.clone()))),
        Of::wide("in the kernel", 16, |o, pen, width| {
            o.kernel.first().map_or_else(|| "-".to_owned(), |f| pen.name(&f.text(), width))
        }),
        Of::new("asked", 6, |o, pen| {
            o.innermost().and_then(|c| c.bytes).map_or_else(|| "-".to_owned(), |n| pen.bytes(n))
        })
        .less(3),
        Of::wide("file", 12, |o, pen: Pen, width| o.file().map_or_else(String::new, |f| pen.path(f, width))).grows(),
    ]
}

/// Calls inside each other and the stacks of the selected operation.
pub fn details(snapshot: &Snapshot, state: &State) -> Vec<(String, Tone)> {
    let id = state.selected(TableId::Flights);
    let found = |f: &InFlight| f.operations.iter().find(|o| Some(o.id) == id).cloned();
    let Some(operation) = snapshot.inflight.as_deref().and_then(found) else { return Vec::new() };
    let pen = state.pen;
    let mut out = Vec::new();
    for (depth, call) in operation.calls.iter().enumerate() {
        let age = snapshot.inflight.as_ref().map_or(0, |f| f.at_ns.saturating_sub(call.start_ns));
        let bytes = call.bytes.map_or_else(String::new, |n| format!(" of {}", pen.bytes(n)));
        let offset = call.offset.map_or_else(String::new, |n| format!(" at {n}"));
        let file = call.file.as_deref().map_or_else(String::new, |f| format!("  {f}"));
        let label =
            format!("{:>8} {}{} {}{bytes}{offset}{file}", text::time(age), "  ".repeat(depth), call.layer, call.op);
        out.push((text::name(&label, pen.theme.ascii), Tone::Layer(call.layer)));
    }
    for (name, frames) in [("kernel", &operation.kernel), ("program", &operation.user)] {
        for (i, frame) in frames.iter().enumerate() {
            let label = format!("{:>8} {}", if i == 0 { name } else { "" }, frame.text());
            out.push((text::name(&label, pen.theme.ascii), Tone::Dim));
        }
    }
    out
}
