//! How long each layer takes the program, as text: functions that several threads call.

use crate::export::report::Composed;
use crate::export::report::render::mark;
use crate::text::Set::{Name, Right};
use crate::text::{Column, bytes, escape, table, time};

/// Functions shown.
const FUNCTIONS: usize = 6;

/// The functions with the greatest latency, each with a line for each layer.
pub fn text(composition: &[Composed], out: &mut String, width: usize) {
    // Of one thread it repeats the functions by layer.
    let mut tops: Vec<&Composed> = composition.iter().filter(|row| row.layer == row.called && row.parts > 1).collect();
    if tops.is_empty() {
        return;
    }
    tops.sort_by_key(|row| std::cmp::Reverse(row.latency_ns));
    *out += "\nComposition: the longest of parts side by side, parts one after the other added; throughputs added\n";
    let head: &[Column] = &[
        ("called", Name, 0),
        ("layer", Name, 0),
        ("calls", Right, 0),
        ("parts", Right, 0),
        ("latency", Right, 0),
        ("all added", Right, 3),
        ("bytes", Right, 0),
        ("throughput", Right, 0),
        ("", Name, 1),
    ];
    let mut rows = Vec::new();
    for top in tops.iter().take(FUNCTIONS) {
        let of_top = |row: &&Composed| (row.called, row.op, row.collective) == (top.called, top.op, top.collective);
        for row in composition.iter().filter(of_top) {
            let m = |text| mark(row.complete, text);
            let moved = |text: String| if row.bytes == 0 { "-".to_owned() } else { m(text) };
            let is_top = row.layer == row.called;
            rows.push(vec![
                if is_top { escape(row.op) } else { String::new() },
                row.layer.to_owned(),
                m(row.calls.to_string()),
                row.parts.to_string(),
                m(time(row.latency_ns)),
                m(time(row.added_ns)),
                moved(bytes(row.bytes)),
                moved(row.throughput_bps.map_or("-".to_owned(), |bps| format!("{}/s", bytes(bps as i64)))),
                if is_top && row.collective { "collective".to_owned() } else { String::new() },
            ]);
        }
    }
    *out += &table(head, &rows, width, 2);
    let more = tops.len().saturating_sub(FUNCTIONS);
    if more > 0 {
        *out += &format!("  {more} functions more with --json\n");
    }
}
