//! Part of screen 8: what the node as a whole did lately, at each resolution.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::node::resolutions::Point;
use crate::summary::view::Snapshot;
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::{Pen, line};

/// A screen of fewer lines has the second only.
const ROOMY: u16 = 28;
/// Heads, what they are of, and how that is shown; a head is as wide as its column.
const COLUMNS: [(&str, &str, Show); 13] = [
    ("  user", "cpu_user", Show::Cpus),
    ("   sys", "cpu_system", Show::Cpus),
    (" iowait", "cpu_iowait", Show::Cpus),
    ("  idle", "cpu_idle", Show::Cpus),
    ("  waits: cpu", "pressure_cpu", Show::Share),
    ("   io", "pressure_io", Show::Share),
    ("  mem", "pressure_memory", Show::Share),
    ("  read/s", "device_read_bytes", Show::Rate),
    (" writ/s", "device_written_bytes", Show::Rate),
    ("  recv/s", "network_received_bytes", Show::Rate),
    (" sent/s", "network_sent_bytes", Show::Rate),
    ("   free", "memory_available_bytes", Show::Bytes),
    ("  steal", "cpu_steal", Show::Cpus),
];

#[derive(Clone, Copy)]
enum Show {
    Cpus,
    Share,
    Rate,
    Bytes,
}

/// The area that is left.
pub fn draw(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, pen: Pen) -> Rect {
    let Some(recent) = &snapshot.recent_node else { return area };
    let heads: String = COLUMNS.iter().map(|(head, ..)| *head).collect();
    let roomy = area.height >= ROOMY;
    let mut area = line(buf, pen, area, &format!("node  {heads}"), Tone::Dim);
    let names = ["100ms", "1s", "10s", "1min", "10min"];
    for ((_, points), name) in recent.resolutions.points().zip(names) {
        let Some(point) = points.back().filter(|_| roomy || name == "1s") else { continue };
        area = line(buf, pen, area, &format!("{name:<6}{}", figures(point, pen)), Tone::Plain);
    }
    area
}

fn figures(point: &Point, pen: Pen) -> String {
    let figure = |(head, name, show): &(&str, &str, Show)| {
        let label = point.figure(name).map_or_else(
            || "?".to_owned(),
            |n| match show {
                Show::Cpus => format!("{n:.2}"),
                Show::Share => text::percent(n),
                Show::Rate => pen.rate(n),
                Show::Bytes => pen.bytes(n as i64),
            },
        );
        format!("{label:>width$}", width = head.len())
    };
    COLUMNS.iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Recent;
    use crate::node::figures::Digest;
    use crate::tui::testing::text_of;
    use std::sync::Arc;

    /// Four CPUs, of which one works.
    fn at(seconds: f64) -> Digest {
        let mut totals = [seconds, 0.0, 0.0, 0.0, 3.0 * seconds, 0.0, 0.5 * seconds, 0.0, 0.0, 0.0, 0.0, 0.0].map(Some);
        totals[5] = None;
        totals[11] = Some(seconds * f64::from(3 << 20));
        Digest { totals, levels: [Some(f64::from(1 << 30)); 3] }
    }

    #[test]
    fn resolutions_that_have_a_point_have_a_line_where_there_is_room() {
        let mut recent = Recent::default();
        for n in 0..=110 {
            recent.resolutions.push(n * 100_000_000, &at(n as f64 / 10.0));
        }
        let snapshot = Snapshot { recent_node: Some(Arc::new(recent)), ..Snapshot::default() };
        let shown = |height| {
            let area = Rect::new(0, 0, 110, height);
            let mut buf = Buffer::empty(area);
            let left = draw(&mut buf, area, &snapshot, Pen::default());
            (text_of(&buf), left.y)
        };
        let (text, lines) = shown(40);
        let figures = "  1.00  0.00   0.00  3.00           ?  50%   0%       -  3.00M       -      -  1.00G   0.00";
        let expected = [
            "node    user   sys iowait  idle  waits: cpu   io  mem  read/s writ/s  recv/s sent/s   free  steal"
                .to_owned(),
            format!("100ms {figures}"),
            format!("1s    {figures}"),
            format!("10s   {figures}"),
        ];
        assert_eq!(text.trim_end().lines().collect::<Vec<_>>(), expected);
        assert_eq!(lines, 4, "no minute is over");
        let (text, lines) = shown(20);
        assert_eq!((lines, text.lines().nth(1).and_then(|l| l.split_whitespace().next())), (2, Some("1s")));
        let area = Rect::new(0, 0, 110, 40);
        assert_eq!(
            draw(&mut Buffer::empty(area), area, &Snapshot::default(), Pen::default()).y,
            0,
            "a dataset has none"
        );
    }
}
