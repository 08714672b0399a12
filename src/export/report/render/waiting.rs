//! What system calls spent their time on, as text.

use crate::export::report::WaitRow;
use crate::export::report::render::{mark, plural};
use crate::rows::PARTS;
use crate::text::Set::{Name, Right};
use crate::text::{Column, escape, percent, table, time};

/// Parts of less than this share are left out: 0.1 %.
const LEAST: f64 = 0.001;

pub fn text(rows: &[WaitRow], out: &mut String, width: usize) {
    if rows.is_empty() {
        return;
    }
    *out += "\nWhere system calls spent their time\n";
    let head: &[Column] =
        &[("", Name, 0), ("time", Right, 0), ("share", Right, 0), ("most of it in", Name, 0), ("time", Right, 0)];
    let shown = rows.iter().filter(|row| row.share >= LEAST).map(|row| {
        let m = |text| mark(row.complete, text);
        vec![
            PARTS.iter().find(|(part, _)| *part == row.part).map_or(row.part, |(_, words)| words).to_owned(),
            m(time(row.ns)),
            m(percent(row.share)),
            format!("{} of {}", plural(row.op_calls as usize, "call", "calls"), escape(row.op)),
            m(time(row.op_ns)),
        ]
    });
    *out += &table(head, &shown.collect::<Vec<_>>(), width, 3);
}
