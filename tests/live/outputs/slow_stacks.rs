//! `--stacks`: slow calls, and no others, have the stack that they were made from, also those of a program that has ended since.

use crate::common::live::{self, Data};
use crate::common::{programs, sql};
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{Span, Stack};
use iotrace_bpf::vocabulary::Layer;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const LIMIT: i64 = 20_000_000;

fn stacks(dir: &Path) -> BTreeMap<i32, Vec<String>> {
    let rows: Vec<Stack> = live::rows(&Dataset::open(dir).unwrap());
    let number = rows.len();
    let stacks: BTreeMap<i32, Vec<String>> = rows.into_iter().map(|s| (s.stack_id, s.frames)).collect();
    assert_eq!(stacks.len(), number, "each once");
    stacks
}

/// The lines of a program that made a slow call, as it printed them.
fn line<'a>(out: &'a str, what: &str) -> &'a str {
    out.lines().find_map(|line| line.strip_prefix(what)?.trim_start().split(' ').next()).unwrap()
}

/// How many calls were slow by the program's own clock. Where it has to wait for a CPU some may not be, but not all.
fn slow_by_the_program(out: &str, what: &str) -> usize {
    let times = out.lines().filter(|line| line.starts_with(what)).map(|line| line.rsplit(' ').next().unwrap());
    let slow = times.filter(|ns| ns.parse::<i64>().unwrap() >= LIMIT).count();
    assert!(slow > 0, "{out}");
    slow
}

fn calls<'a>(data: &'a Data, op: &str) -> Vec<&'a Span> {
    data.spans.iter().filter(|s| s.op == op && s.stack_id.is_some()).collect()
}

#[test]
fn slow_calls_have_the_stack_that_they_were_made_from() {
    let work = live::scratch();
    let program = programs::build("slow_calls");
    let command = [program.as_os_str(), work.path().as_os_str(), "5".as_ref(), "60".as_ref()];
    // A FIFO is a pipe.
    let traced = live::trace(work.path(), &["--stacks", "slow=20ms", "--sockets"], &command);
    let (data, stacks) = (traced.data(), stacks(&traced.dir));

    let [opens, locks] = ["open", "lock"].map(|what| line(&traced.stdout, what));
    let [fopens, openats, flocks] = ["fopen", "openat", "flock"].map(|op| calls(&data, op));
    for (calls, op, function, line) in [
        (&fopens, "fopen", "open_fifo", opens),
        (&openats, "openat", "open_fifo", opens),
        (&flocks, "flock", "wait_for_lock", locks),
    ] {
        assert_eq!(
            calls.len(),
            slow_by_the_program(&traced.stdout, if op == "flock" { "lock" } else { "open" }),
            "{op}"
        );
        for call in calls {
            let frames = &stacks[&call.stack_id.unwrap()];
            let at = |function: &str| frames.iter().position(|f| f.starts_with(&format!("{function} (")));
            let made = at(function).unwrap_or_else(|| panic!("{function} is not in {frames:#?}"));
            assert!(frames[made].contains(&format!("slow_calls.c:{line})")), "{frames:#?}");
            assert!(made < at("main").unwrap(), "{frames:#?}");
            // Those of the kernel come first.
            let kernel = frames.iter().take_while(|f| f.ends_with(" (kernel)")).count();
            let waits = frames[..kernel].iter().any(|f| f.contains(if op == "flock" { "flock" } else { "fifo" }));
            assert!(waits && frames[kernel..].iter().all(|f| !f.ends_with(" (kernel)")), "{frames:#?}");
        }
    }
    // A call and the one in it have the same.
    let ids = |calls: &[&Span]| calls.iter().map(|s| s.stack_id).collect::<Vec<_>>();
    assert_eq!(ids(&fopens), ids(&openats));
    // Calls are looked for from half of the limit on; on a busy machine with many threads less often than calls get slow.
    let period: i64 = data.meta["stacks_period_ns"].parse().unwrap();
    let surely = LIMIT.max(LIMIT / 2 + period);
    let slow = |s: &&Span| s.dur_ns >= surely && matches!(s.layer, Layer::Syscall | Layer::Stdio);
    let all: Vec<&Span> = data.spans.iter().filter(slow).collect();
    assert!(data.spans.iter().all(|s| s.stack_id.is_none() || s.dur_ns >= LIMIT));
    assert_eq!(all.iter().filter(|s| s.stack_id.is_none()).map(|s| s.op).collect::<Vec<_>>(), Vec::<&str>::new());

    assert!(traced.report.contains("Stacks of slow calls"), "{}", traced.report);
    sql::compare(&traced.dir);
}

#[test]
fn a_limit_of_a_layer_is_of_no_other_and_calls_in_detail_have_stacks_too() {
    for (options, with) in [
        (vec!["--stacks", "slow=stdio:20ms"], vec!["fopen"]),
        (vec!["--stacks", "slow=20ms", "--detail", "slow=20ms"], vec!["flock", "fopen", "openat"]),
    ] {
        let work = live::scratch();
        let program = programs::build("slow_calls");
        let command = [program.as_os_str(), work.path().as_os_str(), "3".as_ref(), "60".as_ref()];
        let traced = live::trace(work.path(), &[options.as_slice(), &["--sockets"]].concat(), &command);
        let (data, stacks) = (traced.data(), stacks(&traced.dir));
        let of = |op: &&&str| !calls(&data, op).is_empty();
        assert_eq!(["flock", "fopen", "openat"].iter().filter(of).copied().collect::<Vec<_>>(), with, "{options:?}");
        let ops: BTreeSet<&str> = data.spans.iter().filter(|s| s.stack_id.is_some()).map(|s| s.op).collect();
        assert!(ops.iter().all(|op| with.contains(op) || *op == "read"), "{ops:?}");
        assert!(data.spans.iter().filter_map(|s| s.stack_id).all(|id| !stacks[&id].is_empty()));
    }
}

#[test]
fn with_sums_alone_there_are_no_stacks() {
    let work = live::scratch();
    let traced = live::trace(work.path(), &["--stacks", "slow", "--aggregate"], &["true"]);
    assert_eq!(traced.code, Some(2));
    assert!(traced.stderr.contains("--stacks needs calls that are recorded one by one"), "{}", traced.stderr);
}
