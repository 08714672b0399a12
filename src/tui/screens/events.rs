//! Screen 7: the last calls.

use ratatui::layout::Rect;

use crate::summary::view::{EventRow, Screen, Snapshot};
use crate::tui::screens::{About, Canvas, empty, number, pane, time};
use crate::tui::state::{State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::Pen;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::vocabulary::flag;

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Events,
    key: '7',
    tab: "Event",
    name: "Events: the last calls, as they return",
    text: &["Calls appear when they return, so inner calls come before the calls around them."],
    keys: &[
        ("F", "follow the newest"),
        ("P C", "the call around it, the first call inside it"),
        ("Enter", "all that happened inside"),
    ],
    draw,
};

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let events = &snapshot.events;
    let follows = state.tables.get(&TableId::Events).is_some_and(|t| t.follow);
    let before = match events.before {
        0 => String::new(),
        n => format!(", {} before these are not kept", text::count(n as f64)),
    };
    let mode = if follows { "following" } else { "F: follow" };
    let heading = format!("calls in the order in which they became known, {mode}{before}");
    let id = |e: &EventRow| e.span_id;
    let empty = empty::single_calls(snapshot, state);
    let table = Table { title: &heading, columns: columns(), rows: &events.rows, id, empty: &empty };
    pane(buf, area, state, TableId::Events, &table);
}

fn columns() -> Vec<Column<EventRow>> {
    type Of = Column<EventRow>;
    let optional = |n: Option<i64>, pen: Pen| n.map_or_else(|| "-".to_owned(), |n| pen.bytes(n));
    vec![
        Of::new("start", 10, |e: &EventRow, _| text::seconds(e.start_ns)).sort(|e| number(e.start_ns)),
        Of::new("rank", 4, |e, _| e.rank.map_or_else(|| "-".into(), |n| n.to_string()))
            .sort(|e| number(e.rank.map_or(-1, i64::from))),
        Of::new("pid", 7, |e, _| e.pid.to_string()).sort(|e| number(e.pid.into())).less(2),
        Of::new("tid", 7, |e, _| e.tid.to_string()).sort(|e| number(e.tid.into())).less(5),
        Of::wide("layer", 7, |e, _, _| Cell::new(e.layer.name(), Tone::Layer(e.layer))).less(1),
        Of::wide("call", 20, |e, pen: Pen, width| {
            let label = format!("{}{}", " ".repeat(usize::from(e.depth.max(0).unsigned_abs())), e.op);
            Cell::new(pen.name(&label, width), Tone::Layer(e.layer))
        })
        .sort(|e| Key::Text(e.op.to_owned())),
        Of::new("time", 6, |e, _| time(e.dur_ns)).sort(|e| number(e.dur_ns)),
        Of::new("excl", 6, |e, _| time(e.self_ns)).sort(|e| number(e.self_ns)).less(3),
        Of::new("bytes", 6, move |e, pen| optional(e.bytes, pen)).sort(|e| number(e.bytes.unwrap_or(-1))),
        Of::new("asked", 6, move |e, pen| optional(e.req_bytes, pen))
            .sort(|e| number(e.req_bytes.unwrap_or(-1)))
            .less(6),
        Of::new("missed", 6, move |e, pen| optional(e.miss_bytes, pen))
            .sort(|e| number(e.miss_bytes.unwrap_or(-1)))
            .less(7),
        Of::new("offset", 6, move |e, pen| optional(e.offset, pen)).sort(|e| number(e.offset.unwrap_or(-1))).less(4),
        Of::wide("result", 10, |e, _, _| {
            if e.flags & flag::UNFINISHED != 0 {
                return Cell::new("unfinished", Tone::Warn);
            }
            match (e.errno, e.ret) {
                (0, Some(ret)) => Cell::from(ret.to_string()),
                (0, None) => Cell::from("-"),
                (errno, _) => Cell::new(crate::base::text::errno(errno), Tone::Bad),
            }
        }),
        Of::wide("path", 20, |e, pen: Pen, width| e.path.as_deref().map_or_else(String::new, |p| pen.path(p, width)))
            .grows()
            .sort(|e| Key::Text(e.path.as_deref().unwrap_or_default().to_owned())),
    ]
}
