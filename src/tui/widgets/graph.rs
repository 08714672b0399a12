//! Charts over time of several lines each, for the part of a screen that short tables leave free.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::axis::Axis;
use crate::tui::widgets::{Pen, chart, put, split, title};

/// Lines below which there is no chart: the title, two series of two lines, the times.
const LEAST: u16 = 6;
/// Lines of a series at most: more shows nothing more.
const MOST: u16 = 8;
/// Columns for the figures at the left.
const GUTTER: u16 = 8;

/// A figure over time.
pub struct Series {
    pub label: &'static str,
    pub values: Vec<f64>,
    pub tone: Tone,
    /// How its greatest value is shown.
    pub show: fn(Pen, f64) -> String,
}

/// The area of a table with so many rows, and what it leaves for a chart, if that is enough.
pub fn beside(area: Rect, rows: usize) -> (Rect, Option<Rect>) {
    let wanted = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(3).max(4);
    let (table, free) = split(area, wanted);
    if free.height >= LEAST && free.width >= GUTTER * 4 { (table, Some(free)) } else { (area, None) }
}

/// Draws series below each other over the same time.
pub fn draw(
    buf: &mut Buffer,
    area: Rect,
    pen: Pen,
    heading: &str,
    series: &[Series],
    time: (i64, i64),
) -> Option<Axis> {
    let inner = title(buf, pen, area, heading, "", false);
    let count = u16::try_from(series.len()).unwrap_or(u16::MAX);
    let lines = inner.height.checked_sub(1)?.checked_div(count)?.min(MOST);
    let width = inner.width.checked_sub(GUTTER)?;
    if lines == 0 || width == 0 {
        return None;
    }
    for (series, n) in series.iter().zip(0..) {
        let top = Rect { y: inner.y + lines * n, height: lines, ..inner };
        one(buf, top, pen, series);
    }
    let chart = Rect { x: inner.x + GUTTER, width, height: lines * count, ..inner };
    let (from, to) = (text::seconds(time.0), text::seconds(time.1));
    put(buf, pen, inner, chart.x, chart.bottom(), &from, Tone::Dim);
    let right = inner.right().saturating_sub(to.len() as u16);
    if right > chart.x + from.len() as u16 {
        put(buf, pen, inner, right, chart.bottom(), &to, Tone::Dim);
    }
    Some(Axis { area: chart, from_ns: time.0, to_ns: time.1 })
}

fn one(buf: &mut Buffer, area: Rect, pen: Pen, series: &Series) {
    let width = usize::from(area.width.saturating_sub(GUTTER));
    let values = chart::means(&series.values, width);
    let max = values.iter().copied().fold(0.0, f64::max);
    put(buf, pen, area, area.x, area.y, &format!("{:>7}", (series.show)(pen, max)), Tone::Dim);
    put(buf, pen, area, area.x, area.y + 1, &format!("{:>7}", series.label), series.tone);
    let levels = pen.theme.levels();
    let lines = usize::from(area.height);
    let heights: Vec<usize> = values.iter().map(|v| chart::level(*v, max, lines * 8)).collect();
    for line in 0..lines {
        let below = (lines - 1 - line) * 8;
        let row: String = heights.iter().map(|h| levels[h.saturating_sub(below).min(8)]).collect();
        put(buf, pen, area, area.x + GUTTER, area.y + line as u16, &row, series.tone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::testing::text_of;

    fn drawn(values: &[f64], width: u16, height: u16) -> (String, Option<Axis>) {
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        let series =
            || Series { label: "read", values: values.to_vec(), tone: Tone::Read, show: |pen, max| pen.rate(max) };
        let axis = draw(&mut buf, area, Pen::default(), "bytes", &[series(), series()], (0, 2_000_000_000));
        (text_of(&buf), axis)
    }

    #[test]
    fn values_are_as_high_as_their_part_of_the_greatest() {
        let (text, axis) = drawn(&[0.0, 512.0, 1024.0, 1024.0], 24, 6);
        insta::assert_snapshot!(text, @r"
        ─ bytes ────────────────
          1.00K         ████████
           read     ████████████
          1.00K         ████████
           read     ████████████
                0.000s    2.000s
        ");
        let axis = axis.map(|a| (a.area, a.time(8).0, a.time(23).1));
        assert_eq!(axis, Some((Rect::new(8, 1, 16, 4), 0, 2_000_000_000)));
    }

    #[test]
    fn any_room_and_any_values_are_drawn() {
        for (width, height) in [(0, 0), (3, 1), (8, 2), (9, 3), (400, 100)] {
            for values in [&[][..], &[0.0], &[f64::MAX, 1.0], &[f64::NAN, -1.0]] {
                drawn(values, width, height);
            }
        }
    }

    #[test]
    fn a_table_keeps_its_room() {
        let area = Rect::new(0, 0, 100, 20);
        assert_eq!(beside(area, 5).0.height, 8);
        assert_eq!(beside(area, 5).1.map(|r| (r.y, r.height)), Some((8, 12)));
        assert_eq!(beside(area, 12), (area, None), "five lines are too few");
        assert_eq!(beside(area, 1_000_000), (area, None));
    }
}
