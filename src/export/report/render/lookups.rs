//! Failed look-ups as text: a line for each error in each directory.

use crate::export::report::FailedLookups;
use crate::export::report::render::mark;
use crate::text::Set::{Name, Right};
use crate::text::{Column, cut_start, escape, table, time};

/// Lines shown.
const LINES: usize = 8;
/// Columns of the table before the directory, at most.
const BEFORE: usize = 48;

/// Those with the most calls.
pub fn text(failed: &FailedLookups, out: &mut String, width: usize) {
    if failed.rows.is_empty() {
        return;
    }
    let m = |text| mark(failed.complete, text);
    *out += &format!(
        "\nFailed look-ups: {} system calls that named a path, {}\n",
        m(failed.calls.to_string()),
        m(time(failed.time_ns))
    );
    let head: &[Column] =
        &[("error", Name, 0), ("calls", Right, 0), ("paths", Right, 1), ("time", Right, 0), ("directory", Name, 0)];
    let shown = &failed.rows[..failed.rows.len().min(LINES)];
    let rows: Vec<_> = shown
        .iter()
        .map(|row| {
            let path = row.directory.as_deref().map_or_else(|| "not known".to_owned(), escape);
            let path = row.host.as_deref().map_or(path.clone(), |host| format!("{}:{path}", escape(host)));
            vec![
                row.error.clone(),
                m(row.calls.to_string()),
                m(row.paths.to_string()),
                m(time(row.time_ns)),
                cut_start(&path, width.saturating_sub(BEFORE)),
            ]
        })
        .collect();
    *out += &table(head, &rows, width, 2);
    let more = failed.more + failed.rows.len() - shown.len();
    if more > 0 {
        *out += &format!("  {more} more directories or errors; v_failed_lookups has all\n");
    }
}
