//! Calls that never return, return twice, or return on another stack: a program crashes, ends, forks, jumps or throws in
//! the middle of a library call. What was open is recorded as unfinished, and the program is none the worse.

use crate::common::live::{self, Data};
use crate::common::programs;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Layer, flag};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A traced run of a program that is left in the middle of calls; its exit status is what it has without a tracer.
struct Run {
    _work: TempDir,
    out: PathBuf,
    data: Data,
}

fn run(program: &str, how: &str, code: i32) -> Run {
    let work = live::scratch();
    let command = [&programs::build(program), Path::new(how), work.path()].map(Path::to_path_buf);
    let traced = live::trace(work.path(), &[], &command);
    assert_eq!(traced.code, Some(code), "{how}: {}", traced.stderr);
    let data = Data::read(&traced.dir);
    let main = data.processes.values().min_by_key(|p| p.start_ns).unwrap();
    assert_eq!(main.exit_code, Some(code), "{how}");
    Run { out: work.path().join("out"), data, _work: work }
}

fn unfinished(span: &Span) -> bool {
    span.flags & flag::UNFINISHED != 0
}

impl Run {
    /// The calls of `fwrite`, in the order in which they began.
    fn fwrites(&self) -> Vec<&Span> {
        let mut calls: Vec<&Span> = self.data.calls("fwrite").collect();
        calls.sort_by_key(|s| (s.start_ns, s.span_id));
        calls
    }

    /// The program's writes to its file: bytes, and the function each was made in.
    fn writes(&self) -> Vec<(i64, Option<&'static str>)> {
        let mut calls: Vec<&Span> = self.data.calls("write").filter(|s| self.data.path(s) == Some(&self.out)).collect();
        calls.sort_by_key(|s| s.start_ns);
        calls.iter().map(|s| (s.bytes.unwrap(), self.data.parent(s).map(|p| p.op))).collect()
    }

    /// Every call that is in another began and ended in it, and nothing is lost.
    fn sound(self) -> Self {
        let end = |s: &Span| s.start_ns + s.dur_ns;
        for span in &self.data.spans {
            if let Some(parent) = self.data.parent(span) {
                assert!(parent.start_ns <= span.start_ns && end(span) <= end(parent), "{span:?} in {parent:?}");
            }
        }
        Self { data: self.data.lossless(), ..self }
    }
}

const IN_A_CALL: (i64, Option<&str>) = (10, Some("fwrite"));
const AFTER: (i64, Option<&str>) = (6, None);

#[test]
fn a_program_that_ends_in_a_call_leaves_it_unfinished() {
    for (how, code) in [("segv", 139), ("abort", 134), ("kill", 137), ("exit", 7), ("exec", 3)] {
        let run = run("callbacks", how, code).sound();
        let calls = run.fwrites();
        assert_eq!(calls.len(), 1, "{how}");
        assert!(unfinished(calls[0]), "{how}");
        assert_eq!((calls[0].errno, calls[0].ret, calls[0].bytes), (0, None, None), "{how}");
        assert_eq!(run.writes(), [IN_A_CALL], "{how}");
    }
}

#[test]
fn calls_of_other_threads_end_with_the_process() {
    let run = run("callbacks", "threads", 139).sound();
    let calls = run.fwrites();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|s| unfinished(s) && s.tid != s.pid) && calls[0].tid != calls[1].tid);
    assert_eq!(run.writes(), [IN_A_CALL; 2]);
}

#[test]
fn calls_of_a_thread_that_ends_or_is_cancelled_end_with_it() {
    for how in ["leave", "cancel"] {
        let run = run("callbacks", how, 0).sound();
        let calls = run.fwrites();
        assert!(calls.len() == 1 && unfinished(calls[0]), "{how}: {calls:?}");
        assert_eq!(run.writes(), [IN_A_CALL, AFTER], "{how}");
    }
}

#[test]
fn a_call_that_is_left_by_longjmp_is_over() {
    let run = run("callbacks", "jump", 0).sound();
    let calls = run.fwrites();
    assert_eq!(calls.len(), 10);
    assert!(calls.iter().all(|s| unfinished(s) && s.parent_id.is_none()));
    // What comes after is not in it.
    assert_eq!(run.writes(), [IN_A_CALL, AFTER].repeat(10));
}

#[test]
fn a_call_that_returns_in_a_child_too_is_one_call() {
    let run = run("callbacks", "fork", 0).sound();
    let calls = run.fwrites();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].bytes, unfinished(calls[0])), (Some(1), false));
    assert_eq!(run.data.processes.len(), 2);
    assert_eq!(run.writes(), [IN_A_CALL, AFTER, AFTER]);
}

#[test]
fn calls_in_calls_in_calls() {
    const NESTED: usize = 40;
    const STACK: usize = 32;
    let run = run("callbacks", "nest", 0);
    let calls = run.fwrites();
    assert_eq!(calls.len(), STACK);
    for (depth, call) in calls.iter().enumerate() {
        assert_eq!((call.depth as usize, call.bytes, unfinished(call)), (depth, Some(1), false));
        assert_eq!(call.parent_id, depth.checked_sub(1).map(|above| calls[above].span_id));
        assert_eq!(call.layer_top, depth == 0);
    }
    // There is no room for what the innermost of them contains, and that is reported.
    assert_eq!(run.writes(), [&[IN_A_CALL; STACK - 1][..], &[AFTER]].concat());
    let lost = |layer| -> i64 {
        let rows = run.data.losses.iter().filter(|l| (l.layer, l.place) == (Some(layer), "stack_depth"));
        rows.map(|l| l.count).sum()
    };
    let missing = [NESTED - STACK, NESTED - (STACK - 1)].map(|n| n as i64);
    assert_eq!([lost(Layer::Stdio), lost(Layer::Syscall)], missing);
    assert_eq!(run.data.losses.iter().map(|l| l.count).sum::<i64>(), missing.iter().sum::<i64>());
}

#[test]
fn calls_on_another_stack_do_no_harm() {
    // The kernel may take the open call for one that was left, or the inner one: it is not followed, and that is reported.
    for how in ["below", "above"] {
        let run = run("callbacks", how, 0);
        assert_eq!(run.data.calls("fputs").count(), 0, "{how}");
        let calls = run.fwrites();
        assert!(calls.len() == 1 && !unfinished(calls[0]), "{how}: {calls:?}");
        // It has no return probe.
        let inner: Vec<&Span> = run.data.calls("fprintf").collect();
        assert!(inner.len() == 1 && !unfinished(inner[0]), "{how}: {inner:?}");
        assert_eq!(inner[0].parent_id, Some(calls[0].span_id), "{how}");
        let losses: Vec<_> = run.data.losses.iter().map(|l| (l.layer, l.place, l.count)).collect();
        assert_eq!(losses, [(Some(Layer::Stdio), "other_stack", 1)], "{how}");
    }
}

#[test]
fn an_exception_inside_a_call_is_nothing_special() {
    let run = run("thrown", "inside", 0).sound();
    let calls = run.fwrites();
    assert!(calls.len() == 1 && !unfinished(calls[0]), "{calls:?}");
    assert_eq!(run.writes(), [IN_A_CALL, AFTER]);
}

/// The one harm that is known: the unwinder cannot pass the kernel's trampoline (see `docs/architecture.md`).
#[test]
fn an_exception_through_a_call_ends_the_program_and_nothing_is_lost() {
    let run = run("thrown", "through", 134).sound();
    let left = run.fwrites().into_iter().find(|s| unfinished(s)).unwrap();
    assert_eq!(left.parent_id, None);
    assert_eq!(run.writes(), [IN_A_CALL]);
}
