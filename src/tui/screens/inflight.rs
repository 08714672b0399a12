//! Screen 6: what has begun and not returned.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::summary::view::Snapshot;
use crate::tui::state::State;
use crate::tui::theme::Tone;
use crate::tui::widgets::line;

pub fn draw(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let why = if snapshot.run.live {
        "not covered: this version cannot tell what has not returned; calls appear on the other screens when they return"
    } else {
        "a dataset has no calls in flight; those that never returned are in it, marked as unfinished"
    };
    line(buf, state.pen, area, why, Tone::Warn);
}

pub fn details(_: &Snapshot, _: &State) -> Vec<(String, Tone)> {
    Vec::new()
}
