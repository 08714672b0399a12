//! Small charts as strings: sparklines, bars, strips of shades.

use crate::tui::theme::Theme;

/// The values in `width` columns: several to a column are added up, one to several columns is repeated.
fn columns(values: &[f64], width: usize) -> Vec<f64> {
    if values.is_empty() || width == 0 {
        return vec![0.0; width];
    }
    if values.len() <= width {
        // At the right: the present is there.
        let mut out = vec![0.0; width - values.len()];
        out.extend(values);
        return out;
    }
    let from = |column: usize| column * values.len() / width;
    (0..width).map(|c| values[from(c)..from(c + 1)].iter().sum::<f64>() / (from(c + 1) - from(c)) as f64).collect()
}

/// Of so many levels the one of a value; a little is not nothing.
pub fn level(value: f64, max: f64, levels: usize) -> usize {
    if value <= 0.0 || max <= 0.0 || levels == 0 {
        return 0;
    }
    ((value / max * levels as f64).ceil() as usize).clamp(1, levels)
}

/// The course of a figure; the highest column is full.
pub fn spark(theme: Theme, values: &[f64], width: usize) -> String {
    let values = columns(values, width);
    let max = values.iter().copied().fold(0.0, f64::max);
    values.iter().map(|v| theme.levels()[level(*v, max, 8)]).collect()
}

/// A strip of shades over time, with a maximum that strips above each other share.
pub fn strip(theme: Theme, values: &[f64], max: f64, width: usize) -> String {
    stretched(values, width).map(|v| theme.shades()[level(v, max, 4)]).collect()
}

/// The values over all of `width` columns: of several the greatest.
fn stretched(values: &[f64], width: usize) -> impl Iterator<Item = f64> {
    (0..width).map(move |c| {
        let from = c * values.len() / width;
        let to = ((c + 1) * values.len() / width).max(from + 1).min(values.len());
        values.get(from..to).map_or(0.0, |v| v.iter().copied().fold(0.0, f64::max))
    })
}

/// The values over all of `width` columns: of several their mean.
pub fn means(values: &[f64], width: usize) -> Vec<f64> {
    let of = |c: usize| {
        let from = c * values.len() / width;
        let to = ((c + 1) * values.len() / width).max(from + 1).min(values.len());
        let part = values.get(from..to).unwrap_or_default();
        if part.is_empty() { 0.0 } else { part.iter().sum::<f64>() / part.len() as f64 }
    };
    (0..width).map(of).collect()
}

/// A bar for a part of 1.
pub fn bar(theme: Theme, part: f64, width: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
    let (full, rest) = (eighths / 8, eighths % 8);
    let mut out = theme.parts()[8].repeat(full);
    if rest > 0 {
        out += theme.parts()[rest];
    }
    out + &" ".repeat(width - full - usize::from(rest > 0))
}

/// A bar from one time to another on an axis of `width` columns, at least one column long.
pub fn gantt(theme: Theme, axis: (i64, i64), from: i64, to: i64, shade: usize, width: usize) -> String {
    let length = axis.1.saturating_sub(axis.0).max(1) as f64;
    let at = |t: i64| (t.saturating_sub(axis.0) as f64 / length * width as f64).clamp(0.0, width as f64);
    let start = (at(from).floor() as usize).min(width.saturating_sub(1));
    let end = (at(to).ceil() as usize).clamp((start + 1).min(width), width);
    " ".repeat(start) + &theme.shades()[shade.min(4)].repeat(end - start) + &" ".repeat(width - end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::Palette;

    const UNICODE: Theme = Theme { palette: Palette::Mono, ascii: false };
    const ASCII: Theme = Theme { palette: Palette::Mono, ascii: true };

    #[test]
    fn sparklines_show_the_course() {
        assert_eq!(spark(UNICODE, &[0.0, 1.0, 4.0, 8.0], 6), "   ▁▄█");
        assert_eq!(spark(UNICODE, &[8.0, 8.0, 0.0, 0.0], 2), "█ ");
        assert_eq!(spark(ASCII, &[0.0, 8.0], 2), " #");
        assert_eq!(spark(UNICODE, &[], 3), "   ");
        assert_eq!(spark(UNICODE, &[0.001, 1000.0], 2), "▁█", "a little is not nothing");
    }

    #[test]
    fn strips_show_a_single_busy_sample() {
        let mut values = vec![0.0; 1000];
        values[500] = 1.0;
        assert_eq!(strip(UNICODE, &values, 1.0, 4), "  █ ");
        assert_eq!(strip(UNICODE, &[], 1.0, 3), "   ");
    }

    #[test]
    fn bars_are_as_long_as_the_part() {
        assert_eq!(bar(UNICODE, 0.5, 4), "██  ");
        assert_eq!(bar(UNICODE, 0.001, 4), "▏   ");
        assert_eq!(bar(UNICODE, 7.0, 4), "████");
        assert_eq!(bar(ASCII, 0.5, 3), "#= ");
    }

    #[test]
    fn a_bar_on_an_axis_is_never_invisible() {
        assert_eq!(gantt(UNICODE, (0, 100), 50, 50, 4, 10), "     █    ");
        assert_eq!(gantt(UNICODE, (0, 100), 100, 100, 4, 10), "         █");
        assert_eq!(gantt(UNICODE, (0, 100), 0, 250, 4, 5), "█████");
        assert_eq!(gantt(ASCII, (0, 0), 0, 0, 4, 3), "#  ");
        assert_eq!(gantt(ASCII, (0, 100), 0, 1, 4, 0), "");
    }
}
