//! A plot of points: braille dots, or letters where only ASCII is shown.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::theme::Tone;
use crate::tui::widgets::Pen;

/// What the dots of a cell stand for.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    dots: u8,
    read: bool,
    write: bool,
}

/// Points in a rectangle.
pub struct Plot {
    width: usize,
    height: usize,
    cells: Vec<Cell>,
}

impl Plot {
    pub fn new(area: Rect) -> Self {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        Self { width, height, cells: vec![Cell::default(); width * height] }
    }

    /// A vertical stroke at `x` from `low` to `high`, each 0 to 1 from the lower left corner.
    pub fn stroke(&mut self, x: f64, low: f64, high: f64, write: bool) {
        if self.cells.is_empty() {
            return;
        }
        let (columns, rows) = (self.width * 2, self.height * 4);
        let at = |part: f64, n: usize| ((part.clamp(0.0, 1.0) * n as f64) as usize).min(n - 1);
        let column = at(x, columns);
        for row in at(low, rows)..=at(high, rows).max(at(low, rows)) {
            let from_top = rows - 1 - row;
            let cell = &mut self.cells[from_top / 4 * self.width + column / 2];
            cell.dots |= DOTS[from_top % 4][column % 2];
            cell.read |= !write;
            cell.write |= write;
        }
    }

    pub fn draw(&self, buf: &mut Buffer, area: Rect, pen: Pen) {
        for (i, cell) in self.cells.iter().enumerate().filter(|(_, c)| c.dots != 0) {
            let (x, y) = (area.x + (i % self.width) as u16, area.y + (i / self.width) as u16);
            let (letter, tone) = match (cell.read, cell.write) {
                (true, true) => ('x', Tone::Warn),
                (_, true) => ('w', Tone::Write),
                _ => ('r', Tone::Read),
            };
            let braille = char::from_u32(0x2800 + u32::from(cell.dots)).unwrap_or(letter);
            let shown = if pen.theme.ascii { letter } else { braille };
            buf.set_string(x, y, shown.to_string(), pen.theme.style(tone));
        }
    }
}

/// The bits of Unicode's braille patterns, by line from the top and column.
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{Palette, Theme};

    fn drawn(ascii: bool, strokes: &[(f64, f64, f64, bool)]) -> String {
        let area = Rect::new(0, 0, 3, 2);
        let mut plot = Plot::new(area);
        for (x, low, high, write) in strokes {
            plot.stroke(*x, *low, *high, *write);
        }
        let mut buf = Buffer::empty(area);
        plot.draw(&mut buf, area, Pen { theme: Theme { palette: Palette::Mono, ascii }, si: false });
        (0..2).map(|y| (0..3).map(|x| buf[(x, y)].symbol()).collect::<String>() + "|").collect()
    }

    #[test]
    fn corners_and_strokes() {
        assert_eq!(drawn(false, &[(0.0, 0.0, 0.0, false)]), "   |⡀  |");
        assert_eq!(drawn(false, &[(1.0, 1.0, 1.0, true)]), "  ⠈|   |");
        assert_eq!(drawn(false, &[(0.0, 0.0, 1.0, true)]), "⡇  |⡇  |");
        assert_eq!(drawn(true, &[(0.0, 0.0, 0.0, false), (0.1, 0.0, 0.0, true), (1.0, 0.0, 0.0, true)]), "   |x w|");
    }

    #[test]
    fn no_room_is_no_error() {
        let area = Rect::new(0, 0, 0, 0);
        let mut plot = Plot::new(area);
        plot.stroke(0.5, 0.5, 0.5, true);
        plot.draw(&mut Buffer::empty(area), area, Pen::default());
    }
}
