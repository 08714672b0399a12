//! What a row adds to the figures of calls: which calls count where is decided here, and nowhere else.
//!
//! Calls, inclusive time, bytes and errors are of the outermost calls of a layer (`layer_top`): `fread` calls `read`
//! twice, wrappers call wrappers. Exclusive time is of all calls and adds up over layers.

use serde::Serialize;

use crate::rows::{Block, FileRollup, Rollup, Span};
use crate::vocabulary::{Kind, Layer, flag};

/// A read or a write.
pub fn is_data(kind: Kind) -> bool {
    matches!(kind, Kind::Read | Kind::Write)
}

/// What a read or write asked for, or what it moved where only that is known.
pub fn asked(span: &Span) -> Option<i64> {
    span.req_bytes.or(span.bytes)
}

/// A part of a whole; 0 of nothing.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// A sum of bytes, with the number of calls whose bytes are not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// `None`: there were calls, and none of them has a known value.
    pub sum: Option<i64>,
    pub unknown_calls: i64,
}

impl Bytes {
    /// What one call asked for or moved. A failed call without a value moved nothing.
    pub fn of(bytes: Option<i64>, failed: bool) -> Self {
        Self { sum: bytes, unknown_calls: i64::from(bytes.is_none() && !failed) }
    }

    /// The same of several calls together, of which so many have no known value.
    pub fn of_sum(bytes: i64, calls: i64, unknown_calls: i64) -> Self {
        Self { sum: (calls > unknown_calls).then_some(bytes), unknown_calls }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: Self) {
        self.unknown_calls = self.unknown_calls.saturating_add(other.unknown_calls);
        if let Some(n) = other.sum {
            self.sum = Some(self.sum.unwrap_or(0).saturating_add(n));
        }
    }
}

/// Reads, or writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfers {
    pub calls: i64,
    pub asked: Bytes,
    pub moved: Bytes,
}

impl Transfers {
    /// One call, whatever it is nested in.
    pub fn of(span: &Span) -> Self {
        let failed = span.errno != 0;
        Self { calls: 1, asked: Bytes::of(span.req_bytes, failed), moved: Bytes::of(span.bytes, failed) }
    }

    /// One call that counts as asked for by the program: by what it moved where only that is known.
    pub fn asked_for(span: &Span) -> Self {
        Self { asked: Bytes::of(asked(span), span.errno != 0), ..Self::of(span) }
    }

    /// Outermost calls of a layer that were summed up.
    pub fn of_sum(row: &FileRollup) -> Self {
        Self {
            calls: row.calls,
            asked: Bytes::of_sum(row.req_bytes, row.calls, 0),
            moved: Bytes::of_sum(row.bytes, row.calls.saturating_sub(row.errors), row.unknown_calls),
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.asked.merge(other.asked);
        self.moved.merge(other.moved);
    }
}

/// Are the calls of this row estimated, without a duration? Their function was demoted, or MPI was paused.
pub fn is_estimated(row: &FileRollup) -> bool {
    row.calls_error.is_some() && row.dur_ns == 0
}

/// All that calls come to, but for the distribution of their durations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Outermost calls of their layer, estimated ones included.
    pub calls: i64,
    pub nested_calls: i64,
    pub unfinished_calls: i64,
    /// So many of `calls` are estimated, with this standard error.
    pub estimated_calls: i64,
    pub calls_error: i64,
    pub errors: i64,
    pub nested_errors: i64,
    pub inclusive_ns: i64,
    /// Of all calls, nested ones too.
    pub exclusive_ns: i64,
    pub read: Transfers,
    pub written: Transfers,
}

impl Figures {
    /// What one call adds to its layer: a nested one its exclusive time, and it counts as nested.
    pub fn of(span: &Span) -> Self {
        let call = Self::of_call(span);
        if span.layer_top {
            return call;
        }
        let Self { unfinished_calls, exclusive_ns, errors: nested_errors, .. } = call;
        Self { nested_calls: 1, unfinished_calls, exclusive_ns, nested_errors, ..Self::default() }
    }

    /// One call as such, whatever it is nested in.
    pub fn of_call(span: &Span) -> Self {
        let mut figures = Self {
            calls: 1,
            unfinished_calls: i64::from(span.flags & flag::UNFINISHED != 0),
            errors: i64::from(span.errno != 0),
            inclusive_ns: span.inclusive_ns(),
            exclusive_ns: span.self_ns,
            ..Self::default()
        };
        if let Some(side) = figures.side(span.kind) {
            *side = Transfers::of(span);
        }
        figures
    }

    /// Calls that were summed up. How many of their errors are of nested calls is not known.
    pub fn of_sum(row: &FileRollup) -> Self {
        let estimated = is_estimated(row);
        let mut figures = Self {
            calls: row.calls,
            nested_calls: row.nested_calls,
            estimated_calls: if estimated { row.calls } else { 0 },
            calls_error: if estimated { row.calls_error.unwrap_or(0) } else { 0 },
            errors: row.errors,
            inclusive_ns: row.dur_ns,
            exclusive_ns: row.self_ns,
            ..Self::default()
        };
        if let Some(side) = figures.side(row.kind) {
            *side = Transfers::of_sum(row);
        }
        figures
    }

    /// A request to a device that is over counts as a call that lasts from issue to completion. A failed one moved nothing.
    /// The block layer has only those that are [topmost](is_topmost).
    pub fn of_request(block: &Block) -> Option<(Kind, Self)> {
        let dur_ns = block.dur_ns?;
        let (kind, failed) = (kind_of_request(block.op), request_failed(block));
        let mut figures = Self { calls: 1, errors: i64::from(failed), inclusive_ns: dur_ns, ..Self::default() };
        if let Some(side) = figures.side(kind) {
            let bytes = i64::from(block.bytes);
            let moved = if failed { 0 } else { bytes };
            *side = Transfers { calls: 1, asked: Bytes::of(Some(bytes), false), moved: Bytes::of(Some(moved), false) };
        }
        Some((kind, figures))
    }

    fn side(&mut self, kind: Kind) -> Option<&mut Transfers> {
        match kind {
            Kind::Read => Some(&mut self.read),
            Kind::Write => Some(&mut self.written),
            _ => None,
        }
    }

    pub fn merge(&mut self, other: &Self) {
        let add = |a: &mut i64, b: i64| *a = a.saturating_add(b);
        add(&mut self.calls, other.calls);
        add(&mut self.nested_calls, other.nested_calls);
        add(&mut self.unfinished_calls, other.unfinished_calls);
        add(&mut self.estimated_calls, other.estimated_calls);
        add(&mut self.calls_error, other.calls_error);
        add(&mut self.errors, other.errors);
        add(&mut self.nested_errors, other.nested_errors);
        add(&mut self.inclusive_ns, other.inclusive_ns);
        add(&mut self.exclusive_ns, other.exclusive_ns);
        self.read.merge(&other.read);
        self.written.merge(&other.written);
    }

    /// Reads and writes together.
    pub fn data(&self) -> Transfers {
        let mut both = self.read;
        both.merge(&self.written);
        both
    }

    /// Known bytes that were moved.
    pub fn bytes(&self) -> i64 {
        self.data().moved.sum.unwrap_or(0)
    }

    /// What the dashboard keeps of them, which has thousands of time bins.
    pub fn sums(&self) -> Sums {
        Sums {
            calls: self.calls,
            bytes_read: self.read.moved.sum.unwrap_or(0),
            bytes_written: self.written.moved.sum.unwrap_or(0),
            dur_ns: self.inclusive_ns,
            self_ns: self.exclusive_ns,
            errors: self.errors,
        }
    }
}

/// The kind of a request by its operation.
pub fn kind_of_request(op: &str) -> Kind {
    match op {
        "read" => Kind::Read,
        "write" => Kind::Write,
        "flush" => Kind::Sync,
        _ => Kind::Other,
    }
}

/// Was it made by a file system or program, and not handed down by a stacked device?
pub const fn is_topmost(block: &Block) -> bool {
    block.upper_dev.is_none()
}

/// Did a request end with an error?
pub fn request_failed(block: &Block) -> bool {
    block.status.is_some_and(|status| status != 0)
}

/// [`Figures`] without what is not shown over time: calls, bytes moved, inclusive and exclusive time in ns, errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    pub calls: i64,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub dur_ns: i64,
    pub self_ns: i64,
    pub errors: i64,
}

impl Sums {
    /// Outermost calls of one time bin.
    pub fn of_rollup(row: &Rollup) -> Self {
        let (mut sums, bytes) = (Self::default(), row.bytes);
        match row.kind {
            Kind::Read => sums.bytes_read = bytes,
            Kind::Write => sums.bytes_written = bytes,
            _ => {}
        }
        Self { calls: row.calls, dur_ns: row.dur_ns, self_ns: row.self_ns, errors: row.errors, ..sums }
    }

    pub fn merge(&mut self, other: &Self) {
        let add = |a: &mut i64, b: i64| *a = a.saturating_add(b);
        add(&mut self.calls, other.calls);
        add(&mut self.bytes_read, other.bytes_read);
        add(&mut self.bytes_written, other.bytes_written);
        add(&mut self.dur_ns, other.dur_ns);
        add(&mut self.self_ns, other.self_ns);
        add(&mut self.errors, other.errors);
    }

    /// Bytes in both directions.
    pub const fn bytes(&self) -> i64 {
        self.bytes_read.saturating_add(self.bytes_written)
    }

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

/// Is it a call whose bytes are those of the file itself: a system call, or a page fault?
pub const fn is_file_access(layer: Layer) -> bool {
    matches!(layer, Layer::Syscall | Layer::Vfs)
}
