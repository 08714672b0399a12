//! The output of the command that was started, below every screen.

use ratatui::layout::Rect;

use crate::summary::view::{OutputLine, Snapshot};
use crate::tui::screens::{Canvas, pane};
use crate::tui::state::{OutputPane, State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::table::{Cell, Column, Table};
use crate::tui::widgets::{Pen, split as split_at};

/// Lines of the screen from which on it has a pane for it.
const LEAST: u16 = 9;
/// A part of the screen for it: one of so many.
const PART: u16 = 3;

/// What of an area is the screen's, and what the output's.
pub fn split(area: Rect, snapshot: &Snapshot, state: &State) -> (Rect, Rect) {
    let output = match state.output {
        _ if snapshot.output.is_none() => 0,
        OutputPane::Part if area.height < LEAST => 0,
        OutputPane::Part => area.height / PART,
        OutputPane::Whole => area.height,
        OutputPane::Hidden => 0,
    };
    split_at(area, area.height - output)
}

/// Draws its last lines, if there is room.
pub fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let Some(output) = snapshot.output.as_ref().filter(|_| area.height > 0) else { return };
    let mut heading = "output of the command".to_owned();
    if let Some(ended) = &output.ended {
        heading += &format!(", which has ended: {ended}");
    }
    if output.before > 0 {
        heading += &format!(", without its first {} lines", text::count(output.before as f64));
    }
    if !state.tables.get(&TableId::Output).is_some_and(|table| table.follow) {
        heading += ", F: follow";
    }
    heading += if state.output == OutputPane::Whole { " (O: hide)" } else { " (O: enlarge, hide)" };
    let line =
        Column::wide("", 20, |line: &OutputLine, pen: Pen, width| Cell::new(pen.name(&line.text, width), Tone::Plain));
    let table = Table {
        title: &heading,
        columns: vec![line.grows()],
        rows: &output.lines,
        id: |line| line.number,
        empty: "nothing yet",
    };
    pane(buf, area, state, TableId::Output, &table);
}
