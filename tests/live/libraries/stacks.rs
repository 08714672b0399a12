//! Programs with several stacks: coroutines, signal stacks, greenlets, which copy slices of one stack away and back. No
//! traced call ends them, whatever the order in which calls return, and what is not recorded is counted.

use crate::common::live::{self, Data};
use crate::common::{programs, ways};
use iotrace_bpf::rows::{Loss, Span};
use iotrace_bpf::vocabulary::{Layer, flag};
use std::path::Path;
use std::process::{Command, Stdio};

/// A trace of `stacks`, which ends as it does by itself, with steps of its fibers as phases.
fn run(how: &str) -> Data {
    let work = live::scratch();
    let command = [&programs::build("stacks"), Path::new(how), work.path()].map(Path::to_path_buf);
    let traced = live::trace(work.path(), &["--phase", "step"], &command);
    assert!(traced.stdout.starts_with("done\n"), "{how}: {:?} {}", traced.code, traced.stderr);
    traced.data()
}

/// Calls that are not recorded because another one may be open on another stack, by layer (of phases there is none).
/// Nothing else is lost.
fn other_stack(data: &Data) -> Vec<(Option<Layer>, i64)> {
    let each = |l: &Loss| {
        assert_eq!(l.place, "other_stack", "{l:?}");
        (l.layer, l.count)
    };
    data.lost().into_iter().map(each).collect()
}

fn unfinished(span: &Span) -> bool {
    span.flags & flag::UNFINISHED != 0
}

/// The calls of a function: all, and those that never returned.
fn calls(data: &Data, op: &str) -> (usize, usize) {
    (data.calls(op).count(), data.calls(op).filter(|span| unfinished(span)).count())
}

#[test]
fn calls_of_coroutines_that_return_in_another_order_end_no_program() {
    for how in ["crossed", "crossed_up"] {
        let data = run(how);
        // The second one began while the first was open.
        assert_eq!(calls(&data, "fread"), (1, 0), "{how}");
        assert_eq!(other_stack(&data), [(Some(Layer::Stdio), 1)], "{how}");
    }
}

/// Each process has probes of its own until it is known that one switches stacks.
#[test]
fn coroutines_beside_other_processes_end_no_program() {
    let program = programs::build("switched");
    let script = "for i in 1 2 3; do ls / > ls; \"$0\" || exit; \"$0\" below || exit; done; echo all";
    for _ in 0..4 {
        let work = live::scratch();
        let script = format!("cd {}; {script}", work.path().display());
        let command = ["sh".as_ref(), "-c".as_ref(), script.as_ref(), program.as_os_str()];
        let traced = live::trace(work.path(), &[], &command);
        assert!(traced.stdout.contains("done\nall\n"), "{:?} {}", traced.code, traced.stdout);
    }
}

#[test]
fn phases_of_fibers_that_take_turns_end_no_program() {
    for how in ["fibers", "fibers_up", "thread"] {
        let data = run(how);
        let (steps, open) = calls(&data, "step");
        let lost = other_stack(&data);
        assert_eq!((steps as i64 + lost.iter().map(|l| l.1).sum::<i64>(), open), (3 + 4 + 5 + 6, 0), "{how}: {lost:?}");
        assert!(steps >= 3 && lost.len() == 1, "{how}: {lost:?}");
        // System calls are all there.
        assert_eq!(calls(&data, "pwrite64"), (18, 0), "{how}");
    }
}

#[test]
fn calls_inside_each_other_on_a_threads_own_stack_are_all_recorded() {
    let data = run("nested").lossless();
    let mut depths: Vec<i32> = data.calls("fread").map(|s| i32::from(s.depth)).collect();
    depths.sort_unstable();
    assert_eq!(depths, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(calls(&data, "fread"), (10, 0));
    let threads: Vec<bool> = data.calls("fread").filter(|s| s.depth == 4).map(|s| s.tid == s.pid).collect();
    assert_eq!(threads.iter().filter(|main| **main).count(), 1);
}

#[test]
fn handlers_on_a_stack_of_their_own_are_recorded_unless_they_interrupt_a_call() {
    let data = run("alternate");
    assert_eq!(calls(&data, "fread"), (10, 0));
    assert_eq!((calls(&data, "fopen"), calls(&data, "fclose")), ((1, 0), (1, 0)));
    assert_eq!(other_stack(&data), [(Some(Layer::Stdio), 20)]);

    // Left by siglongjmp, a call is over: the next one is recorded.
    let data = run("handler");
    assert_eq!(calls(&data, "fread"), (10, 10));
    assert!(data.calls("fread").all(|s| s.parent_id.is_none()));
    assert_eq!(other_stack(&data), [(Some(Layer::Stdio), 20)]);
}

#[test]
fn a_call_that_setcontext_leaves_is_over() {
    let data = run("context").lossless();
    // Ten are left, then five are inside each other.
    assert_eq!(calls(&data, "fread"), (15, 10));
    assert_eq!(data.calls("fread").filter(|s| s.parent_id.is_none()).count(), 11);
}

#[test]
fn calls_with_variable_arguments_may_be_left_and_cross_each_other() {
    let data = run("printed").lossless();
    // Ten were left, and of two coroutines the second one was in a call when that of the first returned.
    assert_eq!(calls(&data, "fprintf"), (2 * 10 + 2, 10 + 1));
    let printed: i64 = data.calls("fprintf").filter(|s| !unfinished(s)).map(|s| s.bytes.unwrap()).sum();
    assert_eq!(printed, 10 * 2 + 1);
}

#[test]
fn a_call_that_is_left_in_an_unknown_way_keeps_others_from_being_recorded_and_that_is_counted() {
    let data = run("builtin");
    let (reads, left) = calls(&data, "fread");
    let lost = other_stack(&data);
    assert_eq!((reads, left), (1, 1), "{lost:?}");
    assert!(lost.len() == 1 && lost[0].1 >= 5, "{lost:?}");
}

const SEARCH: [&str; 2] = ["--phase", "bsearch@libc.so.6"];

#[test]
fn calls_of_greenlets_end_no_program() {
    for (how, recorded, lost) in [("turns", 1, 3), ("outer", 1, 1)] {
        let work = live::scratch();
        let command = [ways::python(), ways::script("greenlets.py"), how.into(), work.path().into()];
        let traced = live::trace(work.path(), &SEARCH, &command);
        assert!(traced.stdout.starts_with("done\n"), "{how}: {:?} {}", traced.code, traced.stderr);
        let data = traced.data();
        assert_eq!(calls(&data, "bsearch"), (recorded, 0), "{how}");
        assert_eq!(other_stack(&data), [(None, lost)], "{how}");
    }
}

#[test]
fn greenlets_of_a_process_that_runs_already_are_known_by_what_it_maps() {
    let work = live::scratch();
    let mut command = Command::new(ways::python());
    command.arg(ways::script("greenlets.py")).arg("waits").arg(work.path()).stdout(Stdio::null());
    let mut program = live::Running::spawn(&mut command);
    let attached = ways::Attached::to(work.path(), &SEARCH, ways::waits(work.path()));
    ways::go(work.path());
    assert!(program.wait().success());
    let data = attached.data();
    assert_eq!(calls(&data, "bsearch"), (1, 0));
    assert_eq!(other_stack(&data), [(None, 3)]);
}
