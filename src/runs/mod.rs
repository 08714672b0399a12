//! `runs`: the runs whose datasets are below a directory, with what was wrong with each, and an index of them that other
//! programs read.

pub mod condition;
mod earlier;
mod index;
mod renew;
mod row;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::base::text::{self, Set, bytes, escape, percent, quoted, table, time};
use crate::runs::condition::Condition;
pub use crate::runs::index::INDEX;
pub use crate::runs::renew::{Entered, enter};
pub use crate::runs::row::{COLUMNS, Run};

/// How runs are to be shown.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub json: bool,
    /// The newest of them; `None`: all.
    pub top: Option<usize>,
    pub width: usize,
}

/// Lists the runs below `dir` that fulfil all conditions, the newest first, and returns what went wrong with the index or with
/// datasets. A run that the index has as it is now is not read again.
///
/// # Errors
/// When there is no dataset, or `out` cannot be written to.
pub fn run(dir: &Path, conditions: &[Condition], look: Look, out: &mut dyn Write) -> Result<Vec<String>> {
    let (mut runs, notes) = renew::all(dir)?;
    runs.retain(|run| conditions.iter().all(|condition| condition.holds(run)));
    runs.truncate(look.top.unwrap_or(usize::MAX));
    let shown = if look.json { json(&runs)? } else { lines(dir, &runs, look.width) };
    out.write_all(shown.as_bytes()).context("cannot write the runs")?;
    Ok(notes)
}

fn json(runs: &[Run]) -> Result<String> {
    Ok(text::json(&serde_json::to_string_pretty(runs)?) + "\n")
}

/// A table, and how to go on.
fn lines(dir: &Path, runs: &[Run], width: usize) -> String {
    let Some(newest) = runs.first() else { return "no run fulfils the conditions\n".to_owned() };
    let head: [text::Column; 11] = [
        ("start", Set::Name, 0),
        ("run", Set::Right, 0),
        ("of usual", Set::Right, 2),
        ("in calls", Set::Right, 0),
        ("read", Set::Right, 3),
        ("written", Set::Right, 3),
        ("user", Set::Name, 4),
        ("job", Set::Name, 5),
        ("nodes", Set::Right, 6),
        ("finding", Set::Name, 0),
        ("dataset", Set::Path, 0),
    ];
    let row = |run: &Run| {
        let nanoseconds = |seconds: f64| (seconds * 1e9) as i64;
        let share = if run.duration_s > 0.0 { run.calls_s / run.duration_s } else { 0.0 };
        let finding = match (&run.finding, run.finding_s) {
            (Some(rule), Some(seconds)) => format!("{rule} {}", time(nanoseconds(seconds))),
            (Some(rule), None) => rule.clone(),
            (None, _) => "-".to_owned(),
        };
        vec![
            text::wall(run.start_ns).trim_end_matches(" UTC").to_owned(),
            time(nanoseconds(run.duration_s)) + if run.complete { "" } else { "~" },
            run.slowdown.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}x")),
            percent(share),
            bytes(run.read_bytes),
            bytes(run.written_bytes),
            escape(run.user.as_deref().unwrap_or("-")),
            escape(run.job.as_deref().unwrap_or("-")),
            run.nodes.len().to_string(),
            finding,
            escape(&run.path),
        ]
    };
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let path = dir.join(&newest.path);
    format!("{}\n  iotrace-bpf report {}\n", table(&head, &rows, width, 0), quoted(&path))
}
