//! What the threads of a session send to the worker.

use crate::event::{Event, Measured};
use crate::export::Why;
use crate::inflight::InFlight;
use crate::loader::kernel::sums::Batch;
use crate::rows::Row;
use std::sync::Arc;

/// Messages of the session to the worker.
pub enum Note {
    /// What it found out itself, about processes that were there before.
    Events(Vec<Event>),
    /// Sums of aggregate mode.
    Sums(Batch),
    /// Rows that need no correlation: verdicts, losses, facts.
    Rows(Vec<Row>),
    /// A stack was taken in calls that are open, by `span_id`.
    Stack(i32, Vec<i64>),
    /// The frames of a stack have their names.
    Frames(i32, Vec<String>),
    /// Which hooks on the page cache and on requests are there.
    Measured(Measured),
    /// A new dataset begins.
    Rotate,
    /// A dataset of what is kept in memory is written now, with what was in flight.
    Write(Why, Option<Arc<InFlight>>),
}
