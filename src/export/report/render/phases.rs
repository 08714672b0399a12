//! What happened inside the phases, as text: a line for each layer inside each of them.

use crate::export::report::PhaseRow;
use crate::export::report::render::{count, known, mark};
use crate::text::Set::{Name, Right};
use crate::text::{Column, escape, table, time};

/// Phases shown.
const PHASES: usize = 12;

/// All phases, the longest first.
pub fn text(phases: &[PhaseRow], out: &mut String, width: usize) {
    if phases.is_empty() {
        return;
    }
    *out += "\nPhases: outermost calls of each layer inside them, on the same thread\n";
    let head: &[Column] = &[
        ("phase", Name, 0),
        ("calls", Right, 0),
        ("unfinished", Right, 4),
        ("inclusive", Right, 0),
        ("exclusive", Right, 3),
        ("layer", Name, 0),
        ("calls", Right, 0),
        ("read", Right, 0),
        ("written", Right, 0),
        ("time", Right, 0),
    ];
    let mut rows = Vec::new();
    for phase in phases.iter().take(PHASES) {
        let m = |text| mark(phase.complete, text);
        let mut about = vec![
            escape(phase.op),
            m(phase.calls.to_string()),
            m(count(phase.unfinished_calls)),
            m(time(phase.inclusive_ns)),
            m(time(phase.exclusive_ns)),
        ];
        for layer in &phase.layers {
            let mut row = std::mem::replace(&mut about, vec![String::new(); 5]);
            row.push(layer.layer.to_owned());
            row.extend([
                m(layer.calls.to_string()),
                m(known(layer.read)),
                m(known(layer.written)),
                m(time(layer.time_ns)),
            ]);
            rows.push(row);
        }
        if phase.layers.is_empty() {
            about.push("-".to_owned());
            rows.push(about);
        }
    }
    *out += &table(head, &rows, width, 2);
    let more = phases.len().saturating_sub(PHASES);
    if more > 0 {
        *out += &format!("  {more} more with --json\n");
    }
}
