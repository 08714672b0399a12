//! What is counted when the dataset can no longer be written: the disk is full, the directory is gone.

use crate::base::text::time;
use crate::batch;
use crate::rows::{Process, Row};
use crate::summary::view::Focus;
use crate::summary::{From, Summary};
use std::collections::HashMap;

/// Sums of the calls since then, of bounded size.
pub struct Memory {
    summary: Summary,
    /// When that was, in ns since the start of the trace; until then only what describes the trace is noted.
    since_ns: Option<i64>,
    /// Calls until then.
    calls: u64,
    /// Processes that go on.
    alive: HashMap<i32, Box<Process>>,
}

impl Memory {
    pub fn new(from: From) -> Self {
        Self { summary: Summary::new(from).live(), since_ns: None, calls: 0, alive: HashMap::new() }
    }

    /// From now on all is counted. So many calls are in the dataset: how many others there were.
    pub fn begin(&mut self, now_ns: i64, written: u64) -> u64 {
        self.since_ns = Some(now_ns);
        for process in std::mem::take(&mut self.alive).into_values() {
            self.summary.push(&Row::Process(process));
        }
        self.calls.saturating_sub(written)
    }

    pub fn push(&mut self, row: &Row) {
        match row {
            _ if self.since_ns.is_some() => self.summary.push(row),
            Row::Meta(_) | Row::Coverage(_) | Row::Loss(_) => self.summary.push(row),
            // A trace may see millions, and what has ended makes no calls any more.
            Row::Process(process) if process.end_ns.is_some() => drop(self.alive.remove(&process.process_ix)),
            Row::Process(process) => drop(self.alive.insert(process.process_ix, process.clone())),
            Row::Span(_) => self.calls += 1,
            _ => {}
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
