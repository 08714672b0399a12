//! Which function of the program made calls: the phase around them, or where their stack leaves kernel and libraries.

use std::path::Path;

use crate::HashMap;
use crate::analysis::findings::groups::group::Slow;

/// Functions that are named.
const FUNCTIONS: usize = 3;

/// The innermost frame of the program itself, of frames `function (module, file:line)` with the innermost first.
pub fn of_program(frames: &[String]) -> Option<&str> {
    frames.iter().map(String::as_str).find(|frame| {
        // `main+0x1c (app, app.c:12)`: the module is what stands first in the last parentheses.
        let module = frame.rsplit_once(" (").map_or("", |(_, rest)| rest.split([',', ')']).next().unwrap_or(""));
        let is_so = Path::new(module).extension().is_some_and(|end| end.eq_ignore_ascii_case("so"));
        let library = is_so || module.contains(".so.");
        !(module.is_empty() || module == "kernel" || module.starts_with('[') || library || frame.starts_with("0x"))
    })
}

/// Functions of calls, those with the most time first: phases, and without one the program's function in the stack.
pub fn of_calls(calls: &[Slow], phases: &HashMap<i64, &'static str>, stacks: &HashMap<i32, String>) -> Vec<String> {
    let mut functions: Vec<String> = Vec::new();
    for call in calls {
        let phase = || call.phase.and_then(|id| phases.get(&id)).map(|op| (*op).to_owned());
        let function = call.stack.and_then(|id| stacks.get(&id)).cloned().or_else(phase);
        if let Some(function) = function.filter(|function| !functions.contains(function)) {
            functions.push(function);
        }
    }
    functions.truncate(FUNCTIONS);
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(of: &[&str]) -> Vec<String> {
        of.iter().map(|frame| (*frame).to_owned()).collect()
    }

    #[test]
    fn the_first_frame_outside_of_kernel_and_libraries_is_the_programs() {
        let stack = frames(&[
            "folio_wait_bit (kernel)",
            "fsync (libc.so.6)",
            "H5FD__sec2_flush (libhdf5_serial.so.310)",
            "0x55d0c0de (app)",
            "write_step (app, step.c:41)",
            "main (app, main.c:7)",
        ]);
        assert_eq!(of_program(&stack), Some("write_step (app, step.c:41)"));
        assert_eq!(of_program(&frames(&["folio_wait_bit (kernel)", "fsync (libc.so.6)", "0x7f00"])), None);
    }

    #[test]
    fn a_stack_says_more_than_a_phase_and_each_function_is_named_once() {
        let call = |span, stack, phase| Slow { ns: 9, span, stack, phase };
        let calls = [call(1, Some(7), Some(4)), call(2, None, Some(4)), call(3, None, Some(4)), call(4, Some(8), None)];
        let (mut phases, mut stacks) = (HashMap::default(), HashMap::default());
        phases.insert(4, "checkpoint");
        stacks.insert(7, "write_step (app)".to_owned());
        assert_eq!(of_calls(&calls, &phases, &stacks), ["write_step (app)", "checkpoint"]);
    }
}
