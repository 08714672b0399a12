//! What a filter looks at in a call, and in calls that were summed up.

use crate::analysis::only::Condition;
use crate::rows::{FileRollup, Span};
use crate::summary::filter::{CallFields, Filter};

impl Condition for Filter {
    fn text(&self) -> &str {
        self.text()
    }
    fn holds(&self, span: &Span, path: Option<&str>) -> bool {
        self.matches(&fields(span, path))
    }
    fn holds_of_sums(&self, row: &FileRollup, path: Option<&str>) -> bool {
        self.matches(&fields_of_sums(row, path))
    }
    fn is_of_sums(&self) -> bool {
        self.is_of_sums()
    }
    fn is_of_paths(&self) -> bool {
        self.is_of_paths()
    }
}

/// What a filter on layers, functions, files and processes looks at.
pub fn fields_of_sums<'a>(row: &FileRollup, path: Option<&'a str>) -> CallFields<'a> {
    CallFields {
        layer: row.layer,
        op: row.op,
        kind: row.kind,
        path,
        pid: row.pid.unwrap_or(-1),
        tid: -1,
        rank: row.rank,
        dur_ns: 0,
        self_ns: 0,
        offset: None,
        bytes: None,
        errno: 0,
    }
}

/// What a filter looks at.
pub fn fields<'a>(span: &'a Span, path: Option<&'a str>) -> CallFields<'a> {
    CallFields {
        layer: span.layer,
        op: span.op,
        kind: span.kind,
        path,
        pid: span.pid,
        tid: span.tid,
        rank: span.rank,
        dur_ns: span.net_ns(),
        self_ns: span.self_ns,
        offset: span.offset,
        bytes: span.bytes,
        errno: span.errno,
    }
}
