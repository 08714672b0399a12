//! What is shown of one process below its row: its last calls, or the stacks of its threads.

use std::sync::Arc;

use crate::analysis::durations::slow_stacks::StackRow;
use crate::inflight::Frame;
use crate::summary::filter::Filter;
use crate::summary::screens::calls::EventRow;

/// What is wanted of one process besides its row.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessFocus {
    pub process_ix: i32,
    pub pid: i32,
    pub part: ProcessPart,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ProcessPart {
    /// Its last calls; those that fulfil the filter, if there is one.
    Calls(Option<Arc<Filter>>),
    Stacks,
}

/// What there is of it.
#[derive(Debug, Clone, PartialEq)]
pub enum ProcessDetail {
    Calls(Arc<[EventRow]>),
    Stacks(Arc<Stacks>),
}

/// Where the threads of a process are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stacks {
    pub threads: Vec<ThreadStack>,
    /// Threads that were not looked at.
    pub more: usize,
    /// Of a dataset: where the slow calls of the process were made.
    pub slow: Vec<StackRow>,
    /// Why there are none.
    pub why_not: Option<String>,
}

/// Where one thread is. What is missing has the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadStack {
    pub tid: i32,
    pub name: String,
    /// As in /proc: R runs, S sleeps, D waits for a device or the like, T is stopped.
    pub state: char,
    /// The function of the kernel in which it waits.
    pub waits_in: Option<String>,
    /// Traced calls that it is in, the outermost first.
    pub calls: Vec<String>,
    /// The innermost function first.
    pub kernel: Result<Vec<String>, String>,
    pub user: Result<Vec<Frame>, String>,
}
