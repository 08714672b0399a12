//! Where slow calls were made, as text: each stack from the system call up to `main`.

use crate::export::report::StackRow;
use crate::export::report::render::mark;
use crate::text::{cut_end, time};

/// Stacks shown, and frames of each.
const STACKS: usize = 5;
const FRAMES: usize = 24;

/// Those with the most time.
pub fn text(stacks: &[StackRow], out: &mut String, width: usize) {
    if stacks.is_empty() {
        return;
    }
    *out += "\nStacks of slow calls (v_slow_stacks has all)\n";
    for row in stacks.iter().take(STACKS) {
        let m = |text| mark(row.complete, text);
        let calls = m(row.calls.to_string());
        *out += &format!("  {} in {calls} calls of {} {}\n", m(time(row.time_ns)), row.layer, row.op);
        for frame in row.frames.iter().take(FRAMES) {
            *out += &format!("      {}\n", cut_end(frame, width.saturating_sub(6)));
        }
        if row.frames.len() > FRAMES {
            *out += &format!("      ... {} more\n", row.frames.len() - FRAMES);
        }
    }
    if stacks.len() > STACKS {
        *out += &format!("  {} more stacks\n", stacks.len() - STACKS);
    }
}
