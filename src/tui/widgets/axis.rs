//! Where the charts of a frame are, so that the mouse can point at a time.

use ratatui::layout::Rect;

/// Where on the terminal a chart over time is, and of which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    pub area: Rect,
    pub from_ns: i64,
    pub to_ns: i64,
}

impl Axis {
    /// From when to when a column is.
    pub fn time(&self, x: u16) -> (i64, i64) {
        let width = i64::from(self.area.width.max(1));
        let column =
            i64::from(x).clamp(self.area.x.into(), (self.area.right().max(1) - 1).into()) - i64::from(self.area.x);
        let length = i128::from(self.to_ns) - i128::from(self.from_ns);
        // Up to the column behind the last one.
        let at = |column: i64| (i128::from(self.from_ns) + length * i128::from(column) / i128::from(width)) as i64;
        (at(column), at(column + 1))
    }
}
