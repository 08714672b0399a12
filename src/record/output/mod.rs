//! What the worker writes to: one dataset, one after the other, or memory.

pub mod destination;
pub(crate) mod display;
pub(crate) mod memory;
pub(crate) mod metrics_endpoint;
pub(crate) mod report;
pub(crate) mod rotation;

use crate::export::{DatasetWriter, FlightWriter, Forgotten, Moment, RotatingWriter, TrackedDirectory};
use crate::rows::Row;
use anyhow::Result;
use std::time::Duration;

/// Where rows go.
pub enum Output {
    One(Box<DatasetWriter>),
    Rotating(Box<RotatingWriter>),
    Flight(Box<FlightWriter>),
    /// Nowhere: the dataset could not be written any more.
    None,
}

impl Output {
    /// What finds the directory again, when there is something in it at the end.
    pub fn tracked(&self) -> Result<Option<TrackedDirectory>> {
        match self {
            Self::One(writer) => writer.tracked().map(Some),
            Self::Rotating(writer) => writer.tracked().map(Some),
            Self::Flight(_) | Self::None => Ok(None),
        }
    }

    /// Does the trace go on when nothing can be written any more?
    pub const fn may_give_up(&self) -> bool {
        matches!(self, Self::One(_) | Self::None)
    }

    /// Gives up a dataset that cannot be written, whose closed parts stay: the calls in these. `None` where that is not
    /// the way out: a flight recorder tries again, and datasets that follow each other end, so that a service is started
    /// anew.
    pub fn give_up(&mut self) -> Option<u64> {
        let Self::One(writer) = self else { return None };
        let calls = writer.closed_calls();
        *self = Self::None;
        Some(calls)
    }

    pub fn push(&mut self, row: Row) -> Result<()> {
        match self {
            Self::One(writer) => writer.push(row),
            Self::Rotating(writer) => writer.push(row),
            Self::Flight(writer) => {
                writer.push(row);
                Ok(())
            }
            Self::None => Ok(()),
        }
    }

    /// `elapsed` is the time since the start of the trace. What is to be described anew when it is used.
    pub fn tick(&mut self, elapsed: Duration) -> Result<Forgotten> {
        match self {
            Self::One(writer) => writer.tick(elapsed).map(|()| Forgotten::default()),
            Self::Rotating(writer) => writer.tick(elapsed),
            Self::Flight(writer) => writer.tick(elapsed),
            Self::None => Ok(Forgotten::default()),
        }
    }

    /// Begins the next dataset, if there is to be more than one; what is to be described anew when it is used.
    pub fn rotate(&mut self, at: Moment) -> Result<Forgotten> {
        match self {
            Self::One(_) | Self::Flight(_) | Self::None => Ok(Forgotten::default()),
            Self::Rotating(writer) => writer.rotate(at),
        }
    }

    pub fn finish(self) -> Result<()> {
        match self {
            Self::One(writer) => writer.finish().map(drop),
            Self::Rotating(writer) => writer.finish(),
            Self::Flight(writer) => writer.finish(),
            Self::None => Ok(()),
        }
    }

    /// What keeps rows in memory, if that is where they go.
    pub fn flight(&mut self) -> Option<&mut FlightWriter> {
        if let Self::Flight(writer) = self { Some(writer) } else { None }
    }
}
