//! A tracer in a PID namespace of its own, as in a container: numbers of processes are those that programs there see, and
//! what is outside is not seen.

use crate::common::live::{self, Data, Running};
use crate::common::programs;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const UNSHARE: &[&str] = &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
const TRACER: &str = env!("CARGO_BIN_EXE_iotrace-bpf");

/// Runs a script with arguments in a namespace, so many deep; one that hangs is killed.
fn run(depth: usize, script: &str, arguments: &[&Path]) -> Output {
    let mut namespace = Command::new("timeout");
    namespace.args(["--signal=KILL", "120"]);
    for _ in 0..depth {
        namespace.args(UNSHARE);
    }
    namespace.args(["sh", "-c", script, TRACER]).args(arguments).stdin(Stdio::null());
    let out = namespace.env_remove("SUDO_UID").env_remove("SUDO_GID").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out
}

/// Numbers in a file, one in each line.
fn numbers(file: &Path) -> BTreeSet<i32> {
    fs::read_to_string(file).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// Each process writes a line to a file that is named by its number: the recorded writer is the process of that number.
fn writers(data: &Data) -> BTreeSet<i32> {
    let named = data.calls("write").filter_map(|s| {
        let number = data.path(s)?.file_name()?.to_str()?.strip_prefix("by.")?.parse().unwrap();
        assert_eq!((s.pid, s.tid), (number, number), "{s:?}");
        Some(number)
    });
    named.collect()
}

#[test]
fn a_launched_program_and_its_children_have_the_numbers_that_they_know() {
    for depth in [1, 2] {
        let work = live::scratch();
        let script = "echo $$ >> pids; echo > by.$$
            for i in 1 2 3; do sh -c 'echo $$ >> pids; echo $PPID > by.$$; test $1 = 3 || exec sh -c \"echo > again.$1\"' - $i & done
            wait";
        let command = format!("cd $1; \"$0\" --ring-size 16M -o run -- sh -c {}", quoted(script));
        run(depth, &command, &[work.path()]);
        let data = Data::read(&work.path().join("run")).lossless();
        let pids = numbers(&work.path().join("pids"));
        assert_eq!(pids.len(), 4);
        assert_eq!(data.processes.values().map(|p| p.pid).collect::<BTreeSet<_>>(), pids);
        assert_eq!(data.threads.values().map(|t| t.tid).collect::<BTreeSet<_>>(), pids);
        assert_eq!(writers(&data), pids);
        let children = data.processes.values().filter(|p| pids.contains(&p.ppid));
        for child in children {
            let parent = fs::read_to_string(work.path().join(format!("by.{}", child.pid))).unwrap();
            assert_eq!(child.ppid.to_string(), parent.trim());
        }
        assert!(data.processes.values().all(|p| p.exit_code == Some(0)), "{:?}", data.processes);
    }
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}

#[test]
fn a_program_is_attached_to_by_the_number_that_it_has_there() {
    let work = live::scratch();
    let script = "cd $1; \"$2\" . truth 8 & looper=$!
        until [ -s looper.dat ]; do sleep 0.05; done
        \"$0\" --no-tui -p $looper -o run; wait $looper";
    run(1, script, &[work.path(), &programs::build("looper")]);
    let data = Data::read(&work.path().join("run")).lossless();
    let truth = live::truth(&work.path().join("truth"));
    let processes: Vec<_> = data.processes.values().collect();
    assert_eq!(processes.len(), 1, "{processes:?}");
    assert_eq!((processes[0].pid, processes[0].exit_code), (truth.pid as i32, Some(0)));
    assert!(truth.pid < 100, "it is not the node's number");
    // From the attach on, without a gap: record n is at n * 4096.
    let offsets: Vec<i64> = data.calls("pwrite64").filter_map(|s| s.offset).collect();
    assert!(offsets.len() > 10 && offsets.windows(2).all(|two| two[1] == two[0] + 4096), "{offsets:?}");
    assert_eq!(offsets.last(), Some(&((truth.pwrites - 1) * 4096)));
    assert!(data.calls("fwrite").count() > 10, "libraries are found in /proc by that number, too");
}

#[test]
fn the_whole_system_is_all_of_the_namespace() {
    let work = live::scratch();
    // Outside: before the trace, and begun while it goes on.
    let outside = work.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let mut looper = Command::new(programs::build("looper"));
    let _looper = Running::spawn(looper.args([&outside, &outside.join("truth")]).arg("60").stdout(Stdio::null()));
    let script = "until [ -e $0/go ]; do sleep 0.02; done; for i in $(seq 50); do sh -c 'echo > $0/later.$$' $0; done; : > $0/done";
    let mut later = Command::new("sh");
    let mut later = Running::spawn(later.args(["-c", script]).arg(work.path()));

    // Inside: a process that is there already, and children of it and of the command.
    let script = "cd $1; (until [ -e stop ]; do sh -c 'echo $$ >> pids; echo > by.$$'; sleep 0.05; done) & there=$!
        until [ -s pids ]; do sleep 0.02; done
        \"$0\" --system --ring-size 16M -o run -- sh -c 'echo $$ >> pids; echo > by.$$; : > go
            until [ -e done ]; do sleep 0.02; done; wc -l < pids > lines; sleep 0.5'
        : > stop; wait $there";
    run(1, script, &[work.path()]);
    assert!(later.wait().success());
    let data = Data::read(&work.path().join("run")).lossless();
    let writers = writers(&data);
    assert!(writers.len() > 3 && writers.is_subset(&numbers(&work.path().join("pids"))), "{writers:?}");
    // Each process inside has a number of its own among the first ones; none of those outside has one.
    assert!(data.processes.values().all(|p| (1..30_000).contains(&p.pid)), "{:?}", data.processes);
    let paths: Vec<&Path> = data.spans.iter().filter_map(|s| data.path(s)).collect();
    assert!(paths.iter().all(|path| !path.starts_with(&outside)), "{paths:?}");
    assert!(!paths.iter().any(|path| path.to_string_lossy().contains("later.")), "{paths:?}");
    assert!(data.processes.values().all(|p| p.exe.as_deref().is_none_or(|exe| !exe.ends_with("looper"))));
}

#[test]
fn without_its_own_proc_the_error_has_the_remedy() {
    let work = live::scratch();
    let ran = work.path().join("ran");
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "timeout", "60", TRACER, "--", "touch"]);
    let out = unshare.arg(&ran).output().unwrap();
    let output = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(125), "{output}");
    assert!(output.contains("/proc is that of another PID namespace") && output.contains("--mount-proc"), "{output}");
    assert!(!ran.exists());
}
