//! Reads what `strace -f` wrote: the second opinion on system calls.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A system call that returned.
pub struct Call {
    pub name: String,
    pub args: Vec<String>,
    pub result: i64,
    /// The name of the error.
    pub error: Option<String>,
}

impl Call {
    /// What a call that moves data was asked to move.
    pub fn asked(&self) -> i64 {
        let number = |text: &str| -> i64 { text.trim_end_matches([']', '}', ')']).parse().unwrap() };
        let lengths = self.args.iter().filter_map(|arg| arg.split_once("iov_len=")).map(|(_, n)| number(n));
        if self.name.contains('v') { lengths.sum() } else { number(&self.args[2]) }
    }
}

/// Runs a command under strace, with options; descriptors carry their paths with `-y`.
pub fn run<S: AsRef<OsStr>>(trace: &Path, options: &[&str], command: &[S]) -> (Output, Vec<Call>) {
    let mut strace = Command::new("strace");
    // As the tracer's programs (`live::tracer`).
    strace.env_remove("LD_LIBRARY_PATH");
    strace.args(["-f", "-qq", "--signal=none", "-s4"]).args(options).arg("-o").arg(trace).args(command);
    let out = strace.output().unwrap_or_else(|e| panic!("strace: {e}"));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (out, calls(&fs::read_to_string(trace).unwrap()))
}

/// The name of a call that is younger than strace, which shows its number.
fn named(name: &str) -> String {
    let number = name.strip_prefix("syscall_0x").and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let rows = iotrace_bpf::catalog::rows();
    let known = number.and_then(|nr| rows.iter().find(|r| iotrace_bpf::catalog::syscall_number(r.symbol) == Some(nr)));
    known.map_or(name, |row| row.op).to_owned()
}

/// The calls in the lines of `strace -f -o`.
fn calls(trace: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut begun: HashMap<&str, &str> = HashMap::new();
    for line in trace.lines() {
        let (pid, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim();
        if let Some((start, _)) = rest.split_once("<unfinished") {
            begun.insert(pid, start);
            continue;
        }
        let whole = match rest.split_once("resumed>") {
            Some((_, end)) => format!("{}{end}", begun[pid]),
            None => rest.to_owned(),
        };
        let Some((name, _)) = whole.split_once('(').filter(|_| !whole.starts_with(['-', '+'])) else { continue };
        let (call, result) = whole.rsplit_once(" = ").unwrap();
        let args = call.trim_end().split_once('(').unwrap().1.trim_end_matches(')');
        let mut words = result.split([' ', '<']);
        let result = words.next().unwrap().parse().unwrap_or(0);
        let error = (result < 0).then(|| words.next().unwrap().to_owned());
        let args = args.split(", ").map(|arg| arg.trim().to_owned()).collect();
        calls.push(Call { name: named(name), args, result, error });
    }
    calls
}
