//! What one call adds to sums.

use crate::rows::{FileRollup, Span};
use crate::summary::view::Sums;
use crate::vocabulary::Kind;

/// Bytes read and written: of reads and writes only.
pub fn moved(span: &Span) -> [i64; 2] {
    let bytes = span.bytes.unwrap_or(0);
    match span.kind {
        Kind::Read => [bytes, 0],
        Kind::Write => [0, bytes],
        _ => [0, 0],
    }
}

/// All of a call.
pub fn of_call(span: &Span) -> Sums {
    let [bytes_read, bytes_written] = moved(span);
    Sums {
        calls: 1,
        bytes_read,
        bytes_written,
        dur_ns: span.inclusive_ns(),
        self_ns: span.self_ns,
        errors: i64::from(span.errno != 0),
    }
}

/// What it adds to its layer: exclusive time and errors, and the rest when it is the outermost call of the layer.
pub fn of_layer(span: &Span) -> Sums {
    let all = of_call(span);
    if span.layer_top { all } else { Sums { self_ns: all.self_ns, errors: all.errors, ..Sums::default() } }
}

/// What calls add that were summed up.
pub fn of_rollup(row: &FileRollup) -> Sums {
    let [bytes_read, bytes_written] = match row.kind {
        Kind::Read => [row.bytes, 0],
        Kind::Write => [0, row.bytes],
        _ => [0, 0],
    };
    let FileRollup { calls, dur_ns, self_ns, errors, .. } = *row;
    Sums { calls, bytes_read, bytes_written, dur_ns, self_ns, errors }
}

impl Sums {
    /// Each figure made another.
    #[must_use]
    pub fn map(&self, f: impl Fn(i64) -> i64) -> Self {
        Self {
            calls: f(self.calls),
            bytes_read: f(self.bytes_read),
            bytes_written: f(self.bytes_written),
            dur_ns: f(self.dur_ns),
            self_ns: f(self.self_ns),
            errors: f(self.errors),
        }
    }
}
