//! Pieces that screens are made of.

pub mod axis;
pub mod chart;
pub mod graph;
pub mod plot;
pub mod table;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::text;
use crate::tui::theme::{Theme, Tone};

/// What every piece needs to know.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pen {
    pub theme: Theme,
    /// Bytes in units of 1000.
    pub si: bool,
}

impl Pen {
    pub fn bytes(self, n: i64) -> String {
        text::bytes(n as f64, self.si)
    }

    /// Bytes or the like in a second; nothing shows as a dash, so that what is there stands out.
    pub fn rate(self, n: f64) -> String {
        if n < 0.5 { "-".to_owned() } else { text::bytes(n, self.si) }
    }

    /// A name, safe and with its end in `width` columns.
    pub fn path(self, path: &str, width: usize) -> String {
        text::cut_start(&text::name(path, self.theme.ascii), width, self.theme.ascii)
    }

    /// A name, safe and with its start in `width` columns.
    pub fn name(self, name: &str, width: usize) -> String {
        text::cut_end(&text::name(name, self.theme.ascii), width, self.theme.ascii)
    }
}

/// Writes a text of ours or a safe one, cut at the right edge; returns the column after it.
pub fn put(buf: &mut Buffer, pen: Pen, area: Rect, x: u16, y: u16, text: &str, tone: Tone) -> u16 {
    if y >= area.bottom() || x >= area.right() || y < area.y {
        return x;
    }
    let room = usize::from(area.right() - x);
    let cut = text::cut_end(text, room, pen.theme.ascii);
    buf.set_stringn(x, y, &cut, room, pen.theme.style(tone)).0
}

/// A line of text below a title; the rest of the area below it.
pub fn line(buf: &mut Buffer, pen: Pen, area: Rect, text: &str, tone: Tone) -> Rect {
    put(buf, pen, area, area.x, area.y, text, tone);
    below(area, 1)
}

/// What of an area is left below its first lines.
pub fn below(area: Rect, lines: u16) -> Rect {
    let lines = lines.min(area.height);
    Rect { y: area.y + lines, height: area.height - lines, ..area }
}

/// Two parts of an area, the upper of that height at most.
pub fn split(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, below(area, height))
}

/// Left and right parts with a column between.
pub fn halves(area: Rect, left: u16) -> (Rect, Rect) {
    let left = left.min(area.width);
    let gap = 1.min(area.width - left);
    (Rect { width: left, ..area }, Rect { x: area.x + left + gap, width: area.width - left - gap, ..area })
}

/// The title of a part: text on a rule.
pub fn title(buf: &mut Buffer, pen: Pen, area: Rect, text: &str, right: &str, focused: bool) -> Rect {
    if area.height == 0 {
        return area;
    }
    let width = usize::from(area.width);
    buf.set_stringn(area.x, area.y, pen.theme.rule().repeat(width), width, pen.theme.style(Tone::Dim));
    let tone = if focused { Tone::Head } else { Tone::Strong };
    let text = text::cut_end(text, width.saturating_sub(4), pen.theme.ascii);
    let end = buf.set_stringn(area.x + 1.min(area.width), area.y, format!(" {text} "), width, pen.theme.style(tone)).0;
    let columns = text::columns(right) as u16 + 2;
    if !right.is_empty() && end + columns < area.right() {
        buf.set_string(area.right() - columns - 1, area.y, format!(" {right} "), pen.theme.style(Tone::Dim));
    }
    below(area, 1)
}
