//! Screen 5: how long calls take (or how large they are), over time and all together.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::summary::view::{Latency, Measure, OpRow, Screen, Snapshot};
use crate::tui::screens::{About, Canvas, empty, files, pane, percentile};
use crate::tui::state::{State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::axis::Axis;
use crate::tui::widgets::table::Table;
use crate::tui::widgets::{Pen, chart, halves, line, put, split, title};

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Latency,
    key: '5',
    tab: "Lat",
    name: "Latency: how long calls take, and when they took long",
    text: &[
        "Left: time from left to right, duration from bottom to top, darker is more calls.",
        "Right: the distribution of all of them.",
    ],
    keys: &[("Enter", "only the selected function"), ("Esc", "all"), ("b", "sizes or durations")],
    draw,
};

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let pen = state.pen;
    let latency = &snapshot.latency;
    let what = match latency.measure {
        Measure::Latency => "durations",
        Measure::Size => "sizes",
    };
    let of = match (latency.op, latency.layer) {
        (Some(op), _) => op,
        (None, Some(layer)) => layer.name(),
        (None, None) => "all calls",
    };
    let show = |of: fn(&crate::summary::view::Percentiles) -> i64| match latency.measure {
        Measure::Latency => percentile(latency.percentiles, of),
        Measure::Size => latency.percentiles.as_ref().map_or_else(|| "-".into(), |p| pen.bytes(of(p))),
    };
    let label = format!(
        "{what} of {of}: {} calls  p50 {}  p90 {}  p95 {}  p99 {}  max {}   (b: durations or sizes)",
        text::count(latency.total as f64),
        show(|p| p.p50),
        show(|p| p.p90),
        show(|p| p.p95),
        show(|p| p.p99),
        show(|p| p.max)
    );
    let rest = line(buf, pen, area, &label, Tone::Strong);
    let (upper, lower) = split(rest, (rest.height * 3 / 5).max(4));
    let (left, right) = halves(upper, area.width * 3 / 5);
    state.axes.extend(heat_map(buf, left, latency, pen));
    histogram(buf, right, latency, pen);
    let empty = empty::calls(snapshot, state);
    let rows: Vec<(usize, OpRow)> = latency.ops.iter().copied().enumerate().collect();
    let table =
        Table { title: "functions", columns: files::op_columns(), rows: &rows, id: |r| r.0 as i64, empty: &empty };
    pane(buf, lower, state, TableId::Ops, &table);
}

fn value(latency: &Latency, pen: Pen, n: u64) -> String {
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    match latency.measure {
        Measure::Latency => text::time(n),
        Measure::Size => pen.bytes(n),
    }
}

/// Highest values at the top; rows are joined where there are more of them than lines.
fn heat_map(buf: &mut Buffer, area: Rect, latency: &Latency, pen: Pen) -> Option<Axis> {
    let inner = title(buf, pen, area, "over time", "darker: more calls", false);
    let rows = latency.rows.len();
    if inner.height < 2 || inner.width < 16 {
        return None;
    }
    if rows == 0 || latency.columns.is_empty() {
        line(buf, pen, inner, "no calls", Tone::Dim);
        return None;
    }
    let lines = usize::from(inner.height - 1).min(rows);
    let width = usize::from(inner.width - 8);
    let joined: Vec<Vec<f64>> = (0..lines)
        .map(|l| {
            let part = l * rows / lines..(l + 1) * rows / lines;
            let sum = |n: &[u32]| n.iter().copied().map(f64::from).sum();
            latency.columns.iter().map(|c| c.get(part.clone()).map_or(0.0, sum)).collect()
        })
        .collect();
    // Counts differ by orders of magnitude: shades are by their logarithm.
    let scaled = |n: f64| if n > 0.0 { 1.0 + n.log2() } else { 0.0 };
    let max = joined.iter().flatten().copied().map(scaled).fold(0.0, f64::max);
    for (l, counts) in joined.iter().enumerate() {
        let y = inner.y + (lines - 1 - l) as u16;
        let least = latency.rows[l * rows / lines];
        put(buf, pen, inner, inner.x, y, &format!("{:>7}", value(latency, pen, least)), Tone::Dim);
        let counts: Vec<f64> = counts.iter().copied().map(scaled).collect();
        let tone = latency.layer.map_or(Tone::Plain, Tone::Layer);
        put(buf, pen, inner, inner.x + 8, y, &chart::strip(pen.theme, &counts, max, width), tone);
    }
    let y = inner.y + lines as u16;
    put(buf, pen, inner, inner.x + 8, y, &text::seconds(latency.from_ns), Tone::Dim);
    let to_ns = latency.from_ns.saturating_add(latency.width_ns.saturating_mul(latency.columns.len() as i64));
    let to = text::seconds(to_ns);
    put(buf, pen, inner, inner.right().saturating_sub(to.len() as u16), y, &to, Tone::Dim);
    let area = Rect { x: inner.x + 8, width: width as u16, height: lines as u16, ..inner };
    Some(Axis { area, from_ns: latency.from_ns, to_ns })
}

fn histogram(buf: &mut Buffer, area: Rect, latency: &Latency, pen: Pen) {
    let inner = title(buf, pen, area, "distribution", "", false);
    if inner.height == 0 || inner.width < 24 {
        return;
    }
    let buckets = joined(&latency.histogram, usize::from(inner.height));
    let most = buckets.iter().map(|b| b.2).max().unwrap_or(0).max(1) as f64;
    for (i, (low, _, n)) in buckets.iter().enumerate() {
        let y = inner.y + i as u16;
        let x = put(buf, pen, inner, inner.x, y, &format!("{:>7} ", value(latency, pen, *low)), Tone::Dim);
        let room = usize::from(inner.right().saturating_sub(x + 7));
        let bar = chart::bar(pen.theme, *n as f64 / most, room);
        let x = put(buf, pen, inner, x, y, &bar, latency.layer.map_or(Tone::Plain, Tone::Layer));
        put(buf, pen, inner, x, y, &format!(" {:>6}", text::count(*n as f64)), Tone::Plain);
    }
}

/// Neighbours joined until there are as many as lines.
fn joined(buckets: &[(u64, u64, u64)], lines: usize) -> Vec<(u64, u64, u64)> {
    let size = buckets.len().div_ceil(lines.max(1)).max(1);
    let join = |part: &[(u64, u64, u64)]| {
        Some((part.first()?.0, part.last()?.1, part.iter().map(|b| b.2).fold(0, u64::saturating_add)))
    };
    buckets.chunks(size).filter_map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_buckets_loses_no_call() {
        let buckets: Vec<(u64, u64, u64)> = (0..100).map(|i| (i, i, i + 1)).collect();
        for lines in [1, 7, 50, 99, 100, 200] {
            let joined = joined(&buckets, lines);
            assert!(joined.len() <= lines, "{lines}");
            assert_eq!(joined.iter().map(|b| b.2).sum::<u64>(), 5050);
            assert_eq!((joined[0].0, joined.last().unwrap().1), (0, 99));
        }
        assert!(joined(&[], 3).is_empty());
    }
}
