//! Attaching to processes that run already: from then on nothing is missed, and what they had open is known.

use crate::common::live::{self, Data, Running, Truth};
use crate::common::programs;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Layer, flag};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Longer than any of these tests takes.
const SECONDS: &str = "600";

/// `looper` in a directory of its own; it is at work.
fn looper(dir: &Path) -> (Running, PathBuf) {
    fs::create_dir_all(dir).unwrap();
    let truth = dir.join("truth");
    let running = Running::spawn(Command::new(programs::build("looper")).args([dir, &truth]).arg(SECONDS));
    live::until("looper", || live::truth(&truth).ready && live::truth(&truth).pwrites > 5);
    (running, truth)
}

/// Attaches until the targets end or as long as the options demand; `meanwhile` begins when it has attached.
fn attach(work: &Path, options: &[&str], pids: &[u32], meanwhile: impl FnOnce()) -> Data {
    let (dataset, output) = (work.join("run.iotrace"), work.join("output"));
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let mut tracer = live::tracer();
    tracer.args(options).arg("-o").arg(&dataset).args(["-p", &pids.join(",")]);
    let mut tracer = Running::spawn(tracer.stdout(Stdio::null()).stderr(File::create(&output).unwrap()));
    live::until_it_traces(live::child_of(tracer.pid()), &output);
    meanwhile();
    assert!(tracer.wait().success(), "{}", fs::read_to_string(&output).unwrap());
    Data::read(&dataset).lossless()
}

/// The pwrites to a looper's file in order; none is missing between the first and the last. The one that had not returned when
/// the trace ended shows nothing.
fn records<'a>(data: &'a Data, dir: &Path) -> Vec<&'a Span> {
    let path = dir.join("looper.dat");
    let mut calls: Vec<&Span> = data.calls("pwrite64").filter(|s| data.path(s) == Some(&path)).collect();
    calls.retain(|s| s.flags & flag::UNFINISHED == 0);
    calls.sort_by_key(|s| s.start_ns);
    assert!(calls.len() > 10, "{} calls were seen", calls.len());
    assert!(calls.windows(2).all(|pair| pair[1].offset.unwrap() == pair[0].offset.unwrap() + 4096));
    assert!(calls.iter().all(|s| (s.bytes, s.req_bytes, s.errno) == (Some(4096), Some(4096), 0)));
    calls
}

#[test]
fn everything_after_the_attach_is_seen_until_the_target_ends() {
    let work = live::scratch();
    let (mut running, truth) = looper(work.path());
    let before: Truth = live::truth(&truth);
    let data = attach(work.path(), &[], &[running.pid()], || {
        let so_far = live::truth(&truth).pwrites;
        live::until("records", || live::truth(&truth).pwrites > so_far + 100);
        live::stop_looper(&truth);
    });
    assert!(running.wait().success());
    let after = live::truth(&truth);

    let calls = records(&data, work.path());
    let number = |span: &Span| span.offset.unwrap() / 4096;
    assert!(number(calls[0]) >= before.pwrites);
    assert_eq!(number(calls[calls.len() - 1]) + 1, after.pwrites);

    // Library calls: from the first one on as many as there are system calls, and each write below one of them.
    let path = work.path().join("looper.txt");
    let mut stdio: Vec<&Span> = data.calls("fwrite").filter(|s| data.path(s) == Some(&path)).collect();
    stdio.sort_by_key(|s| s.start_ns);
    let from = stdio[0].start_ns;
    assert!(stdio.len() > 10);
    assert_eq!(stdio.len(), calls.iter().filter(|s| s.start_ns > from).count());
    assert_eq!(stdio.iter().map(|s| s.bytes.unwrap()).sum::<i64>(), stdio.len() as i64 * 4096);
    let writes: Vec<&Span> = data.calls("write").filter(|s| s.start_ns > from && data.path(s) == Some(&path)).collect();
    assert!(!writes.is_empty());
    assert!(writes.iter().all(|s| ["fwrite", "fclose"].contains(&data.parent(s).unwrap().op)));

    // What was open before has a path, and a handle that is marked so.
    let handle = &data.handles[&calls[0].handle_id.unwrap()];
    assert_eq!((handle.layer, handle.flags & 1, handle.open_span_id), (Layer::Syscall, 1, None));
    assert!(calls.iter().all(|s| s.handle_id == Some(handle.handle_id)));
    assert!(handle.close_span_id.is_some());
    let file = data.handles[&stdio[0].handle_id.unwrap()].clone();
    assert_eq!((file.layer, file.flags & 1), (Layer::Stdio, 1));
    // The stream's descriptor is below it, and each of its calls follows the last one in the file.
    let descriptor = &data.handles[&writes[0].handle_id.unwrap()];
    assert_eq!((descriptor.parent_handle_id, descriptor.flags & 1), (Some(file.handle_id), 1));
    assert!(stdio.windows(2).all(|pair| pair[1].offset.unwrap() == pair[0].offset.unwrap() + 4096));

    let process = data.processes.values().find(|p| p.pid == running.pid() as i32).unwrap();
    assert_eq!(process.exit_code, Some(0));
    assert!(process.exe.as_deref().unwrap().ends_with("/looper"));
    assert_eq!(process.cmdline.last().map(String::as_str), Some(SECONDS));
}

#[test]
fn two_processes_are_traced_for_the_given_duration_and_go_on() {
    let work = live::scratch();
    let dirs = [work.path().join("a"), work.path().join("b")];
    let loopers = [looper(&dirs[0]), looper(&dirs[1])];
    let pids = [loopers[0].0.pid(), loopers[1].0.pid()];
    let data = attach(work.path(), &["--duration", "1500ms"], &pids, || {});
    for ((dir, (running, truth)), pid) in dirs.iter().zip(&loopers).zip(pids) {
        let calls = records(&data, dir);
        assert!(calls.iter().all(|s| s.pid == pid as i32));
        assert_eq!(running.pid(), pid);
        let now = live::truth(truth).pwrites;
        live::until("the process to go on", || live::truth(truth).pwrites > now + 10);
    }
    let seen: BTreeSet<i32> = data.spans.iter().map(|s| s.pid).collect();
    assert_eq!(seen, pids.map(|pid| pid as i32).into());
}

#[test]
fn children_forked_after_the_attach_are_traced() {
    let work = live::scratch();
    let out = work.path().join("out");
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do sh -c 'echo x >> \"$0\"' \"$0\"; sleep 0.02; done"]).arg(&out);
    let shell = Running::spawn(&mut shell);
    live::until("the loop", || fs::metadata(&out).is_ok_and(|m| m.len() > 4));
    let data = attach(work.path(), &["--duration", "3s"], &[shell.pid()], || {});
    let mut writes: Vec<&Span> = data.calls("write").filter(|s| data.path(s) == Some(&out)).collect();
    writes.sort_by_key(|s| s.start_ns);
    assert!(writes.len() > 5, "{} writes", writes.len());
    // Each by a process of its own, none missing in between.
    assert!(writes.windows(2).all(|pair| pair[1].offset.unwrap() == pair[0].offset.unwrap() + 2));
    let pids: BTreeSet<i32> = writes.iter().map(|s| s.pid).collect();
    assert_eq!(pids.len(), writes.len());
    assert!(!pids.contains(&(shell.pid() as i32)));
    assert!(data.processes.values().filter(|p| pids.contains(&p.pid)).all(|p| p.ppid == shell.pid() as i32));
}
