//! What the worker writes to: one dataset, or one after the other.

use crate::correlate::rows::Row;
use crate::export::{DatasetWriter, Forgotten, Moment, RotatingWriter};
use anyhow::Result;
use std::time::Duration;

/// Where rows go.
pub enum Output {
    One(Box<DatasetWriter>),
    Rotating(Box<RotatingWriter>),
}

impl Output {
    pub fn push(&mut self, row: Row) -> Result<()> {
        match self {
            Self::One(writer) => writer.push(row),
            Self::Rotating(writer) => writer.push(row),
        }
    }

    /// `elapsed` is the time since the start of the trace.
    pub fn tick(&mut self, elapsed: Duration) -> Result<()> {
        match self {
            Self::One(writer) => writer.tick(elapsed),
            Self::Rotating(writer) => writer.tick(elapsed),
        }
    }

    /// Begins the next dataset, if there is to be more than one; what is to be described anew when it is used.
    pub fn rotate(&mut self, at: Moment) -> Result<Forgotten> {
        match self {
            Self::One(_) => Ok(Forgotten::default()),
            Self::Rotating(writer) => writer.rotate(at),
        }
    }

    pub fn finish(self) -> Result<()> {
        match self {
            Self::One(writer) => writer.finish().map(drop),
            Self::Rotating(writer) => writer.finish(),
        }
    }
}
