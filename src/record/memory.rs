//! What is counted when the dataset can no longer be written: the disk is full, the directory is gone.

use crate::batch;
use crate::correlate::rows::Row;
use crate::export::text::time;
use crate::summary::view::Focus;
use crate::summary::{From, Summary};

/// Sums of the calls since then, of bounded size.
pub struct Memory {
    summary: Summary,
    /// When that was, in ns since the start of the trace; until then only what describes the trace is noted.
    since_ns: Option<i64>,
    /// Calls until then.
    calls: u64,
}

impl Memory {
    pub fn new(from: From) -> Self {
        Self { summary: Summary::new(from).live(), since_ns: None, calls: 0 }
    }

    /// From now on all is counted. So many calls are in the dataset: how many others there were.
    pub fn begin(&mut self, now_ns: i64, written: u64) -> u64 {
        self.since_ns = Some(now_ns);
        self.calls.saturating_sub(written)
    }

    pub fn push(&mut self, row: &Row) {
        let describes = matches!(row, Row::Meta(_) | Row::Coverage(_) | Row::Process(_) | Row::Loss(_));
        if describes || self.since_ns.is_some() {
            self.summary.push(row);
        } else if matches!(row, Row::Span(_)) {
            self.calls += 1;
        }
    }

    /// The time goes on.
    pub fn tick(&mut self, now_ns: i64) {
        if self.since_ns.is_some() {
            self.summary.tick(now_ns);
        }
    }

    /// What was counted, if that had to be.
    pub fn text(&self) -> Option<String> {
        let since = time(self.since_ns?);
        let lines = batch::lines(&self.summary.snapshot(&Focus::default()));
        Some(format!("calls after the first {since}, which are in no dataset:\n{lines}"))
    }
}
