//! The clock of the machine is set while it is traced. Only in a virtual machine.

use crate::common::live::{self, Data, Running};
use iotrace_bpf::rows::Span;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};
use std::fs;
use std::path::Path;
use std::process::Stdio;

const HOUR: i64 = 3600;
const SECOND_NS: i64 = 1_000_000_000;

/// Writes a line every tenth of a second until it is to end.
const COMMAND: &str = "> \"$0/begun\"; while [ ! -e \"$0/over\" ]; do echo line >> \"$0/lines\"; sleep 0.1; done";

/// Sets the clock, by so many seconds.
fn set(seconds: i64) {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).unwrap();
    clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::new(now.tv_sec() + seconds, now.tv_nsec())).unwrap();
}

/// Traces the command, into so many datasets at least, and sets the clock back and forth meanwhile.
fn trace(work: &Path, options: &[&str], datasets: usize) {
    let lines = || fs::metadata(work.join("lines")).map_or(0, |m| m.len()) / 5;
    let mut tracer = live::tracer();
    let output = work.join("run.iotrace");
    tracer.args(["--layers", "syscall"]).args(options).arg("-o").arg(&output);
    tracer.args(["--", "sh", "-c", COMMAND]).arg(work).stdout(Stdio::null());
    let mut guard = Running::spawn(&mut tracer);
    live::until("the command", || work.join("begun").exists());
    for seconds in [HOUR, -2 * HOUR, HOUR] {
        let before = lines();
        live::until("lines", || lines() > before + 5);
        set(seconds);
    }
    live::until("datasets", || datasets == 1 || live::datasets(&output).len() >= datasets);
    fs::write(work.join("over"), "").unwrap();
    assert!(guard.wait().success());
}

fn writes(data: &Data, work: &Path) -> Vec<Span> {
    let file = work.join("lines");
    let mut all: Vec<Span> = data.calls("write").filter(|s| data.path(s) == Some(&file)).cloned().collect();
    all.sort_by_key(|s| s.start_ns);
    all
}

/// Each line after the one before, and none took long.
fn in_order(all: &[Span]) {
    assert!(all.windows(2).all(|pair| pair[1].offset.unwrap() == pair[0].offset.unwrap() + 5));
    assert!(all.iter().all(|s| s.dur_ns < 60 * SECOND_NS));
}

#[test]
#[ignore = "sets the machine's clock: it runs in virtual machines (cargo xtask vm)"]
fn a_clock_that_is_set_changes_no_times() {
    assert!(std::env::var_os("IOTRACE_TEST_CLOCK").is_some(), "this machine's clock is not to be set");
    let work = live::scratch();
    trace(work.path(), &[], 1);
    let data = Data::read(&work.path().join("run.iotrace")).lossless();
    let all = writes(&data, work.path());
    in_order(&all);
    assert_eq!(all.len() as u64 * 5, fs::metadata(work.path().join("lines")).unwrap().len());
    let end: i64 = data.meta["end_ns"].parse().unwrap();
    assert!(all.iter().all(|s| s.start_ns >= 0 && s.start_ns + s.dur_ns <= end) && end < HOUR * SECOND_NS);
}

#[test]
#[ignore = "sets the machine's clock: it runs in virtual machines (cargo xtask vm)"]
fn datasets_follow_each_other_when_the_clock_is_set() {
    assert!(std::env::var_os("IOTRACE_TEST_CLOCK").is_some(), "this machine's clock is not to be set");
    let work = live::scratch();
    trace(work.path(), &["--rotate-time", "1s"], 4);
    let mut datasets: Vec<Data> =
        live::datasets(&work.path().join("run.iotrace")).iter().map(|dir| Data::read(dir).lossless()).collect();
    assert!(datasets.len() >= 4, "{}", datasets.len());
    // Their names are by the wall clock; when they really began is on the other one.
    datasets.sort_by_key(|data| data.meta["t0_ns"].parse::<i64>().unwrap());
    let all: Vec<Span> = datasets.iter().flat_map(|data| writes(data, work.path())).collect();
    in_order(&all);
    assert_eq!(all.len() as u64 * 5, fs::metadata(work.path().join("lines")).unwrap().len());
    let report = live::tracer().arg("report").arg(work.path().join("run.iotrace")).output().unwrap();
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
}
