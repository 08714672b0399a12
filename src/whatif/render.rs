//! The answer as text.

use crate::base::text::{Column, Set, cut_end, escape, percent, table, time, wrapped};
use crate::whatif::model::Range;
use crate::whatif::{Answer, Critical};

const HEAD: &[Column] =
    &[("", Set::Path, 0), ("at least", Set::Right, 0), ("at most", Set::Right, 0), ("of the run", Set::Right, 0)];
/// Processes of a lane that are named.
const NAMED: usize = 3;

pub fn text(answer: &Answer, width: usize) -> String {
    let mut out = String::new();
    for caveat in &answer.caveats {
        out += &format!("{}\n", cut_end(&format!("WARNING: {}", escape(caveat)), width));
    }
    let measured = |name: String, seconds: f64| {
        vec![name, length(seconds), String::new(), percent(seconds / answer.run_s.max(1e-9))]
    };
    let mut rows = vec![measured("as recorded".to_owned(), answer.run_s)];
    rows.push(measured(format!("  in calls of {}", name(&answer.critical)), answer.critical.calls_s));
    rows.extend(answer.conditions.iter().map(|alone| changed(alone.condition.clone(), alone.range)));
    if answer.conditions.len() > 1 {
        rows.push(changed("all together".to_owned(), answer.together));
    }
    out += &table(HEAD, &rows, width, 0);
    out.push('\n');
    for alone in &answer.conditions {
        let line = format!("{}: {}", escape(&alone.condition), escape(&alone.model));
        out += &(wrapped(&line, width).join("\n") + "\n");
    }
    let tracing = match answer.tracing_s {
        0.0 => String::new(),
        seconds => format!(" The run is without the {} that tracing took.", length(seconds)),
    };
    let rest = format!("All else stays as measured.{tracing}");
    out += &(wrapped(&rest, width).join("\n") + "\n");
    out
}

fn changed(name: String, range: Range) -> Vec<String> {
    let (low, high) = (percent(range.low_share), percent(range.high_share));
    let share = if low == high { low } else { format!("{low} to {high}") };
    vec![escape(name), length(range.low_s), length(range.high_s), share]
}

/// The critical lane.
fn name(critical: &Critical) -> String {
    if let Some(rank) = critical.rank {
        return format!("rank {rank}");
    }
    let named: Vec<String> = critical.processes.iter().take(NAMED).map(ToString::to_string).collect();
    match (named.join(", "), critical.processes.len().saturating_sub(NAMED)) {
        (named, 0) if critical.processes.len() == 1 => format!("process {named}"),
        (named, 0) => format!("processes {named}"),
        (named, more) => format!("processes {named} and {more} more, one after the other"),
    }
}

fn length(seconds: f64) -> String {
    time((seconds * 1e9) as i64)
}
