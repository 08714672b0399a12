//! A launched command: nothing of it is missed, nothing of it is changed, and it survives the tracer.

use crate::common::live::{self, Data, Running};
use crate::common::{programs, sql};
use iotrace_bpf::vocabulary::Layer;
use nix::sys::signal::Signal;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A file that no tracer has seen: a copy of a program, on an inode of its own.
fn unseen(work: &Path, name: &str) -> PathBuf {
    let copy = work.join(format!("{name}.copy"));
    fs::copy(programs::build(name), &copy).unwrap();
    copy
}

/// Traces a program whose first act is the call `op`, `times` times; each time the call and its file are seen.
/// Several traces run at once, which makes the race between program and tracer harder.
fn first_act(name: &str, op: &str, layers: &str, times: usize) {
    programs::build(name);
    let once = || {
        let work = live::scratch();
        let file = work.path().join("first");
        let program = unseen(work.path(), name);
        let data = live::trace(work.path(), &["--layers", layers], &[program.as_path(), &file]).data();
        data.calls(op).filter(|s| s.errno == 0 && s.layer_top && data.path(s) == Some(&file)).count()
    };
    let seen: Vec<usize> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..times / 4).map(|_| once()).collect())).collect();
        workers.into_iter().flat_map(|w: std::thread::ScopedJoinHandle<'_, Vec<usize>>| w.join().unwrap()).collect()
    });
    assert_eq!(seen, vec![1; times]);
}

#[test]
fn the_first_call_of_a_program_is_never_missed() {
    first_act("first_call", "fopen", "stdio,syscall", 100);
}

#[test]
fn the_first_call_of_a_parallel_library_is_never_missed() {
    first_act("first_h5", "H5Fcreate", "hdf5,syscall", 20);
}

#[test]
fn the_exit_status_is_the_commands() {
    let work = live::scratch();
    let plain = work.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    let not_executable = plain.to_str().unwrap();
    let cases: [(&[&str], i32); 6] = [
        (&["true"], 0),
        (&["sh", "-c", "exit 3"], 3),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["/no/such/command"], 127),
        (&[not_executable], 126),
    ];
    for (command, code) in cases {
        let traced = live::trace(work.path(), &["--force"], command);
        assert_eq!(traced.code, Some(code), "{command:?}: {}", traced.stderr);
        if code == 126 || code == 127 {
            assert!(traced.stderr.contains(command[0]), "{}", traced.stderr);
        }
    }
}

/// Signals 32 and 33 are the C library's own: `posix_spawn` sets them to ignored in every child, and no program sees them.
fn without_nptl(line: &str) -> String {
    let Some(mask) = line.strip_prefix("SigIgn:\t") else { return line.to_owned() };
    format!("SigIgn:\t{:016x}", u64::from_str_radix(mask, 16).unwrap() & !(3 << 31))
}

#[test]
fn input_output_environment_and_descriptors_are_the_commands() {
    let work = live::scratch();
    // What it is given, it has, and nothing else: the same as without the tracer.
    let run = |mut command: Command, name: &str| -> (Output, Vec<String>, Vec<String>) {
        let file = |what: &str| work.path().join(format!("{name}.{what}"));
        let script = "cat; echo to stderr >&2; env -0 > \"$0\"; ls /proc/self/fd > \"$1\"; grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status >> \"$1\"";
        command.args(["sh", "-c", script]).args([file("env"), file("more")]);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("GREETING", "two\nlines");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"from stdin\n").unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let parts = |what: &str, end: char| -> Vec<String> {
            let text = fs::read_to_string(file(what)).unwrap();
            let mut parts: Vec<String> = text.split_terminator(end).map(without_nptl).collect();
            parts.sort_unstable();
            parts
        };
        let (env, more) = (parts("env", '\0'), parts("more", '\n'));
        (out, env, more)
    };
    let mut tracer = live::tracer();
    tracer.arg("-o").arg(work.path().join("run.iotrace")).arg("--");
    let (with, with_env, with_more) = run(tracer, "traced");
    let (without, without_env, without_more) = run(Command::new("env"), "plain");
    assert_eq!((without.stdout.as_slice(), without.stderr.as_slice()), (&b"from stdin\n"[..], &b"to stderr\n"[..]));
    assert_eq!(with.stdout, without.stdout, "{}", String::from_utf8_lossy(&with.stdout));
    assert!(with.stderr.starts_with(b"to stderr\n"), "{}", String::from_utf8_lossy(&with.stderr));
    assert_eq!(with_env, without_env);
    // Descriptors; blocked, ignored and caught signals.
    assert_eq!(with_more, without_more);
}

/// `looper` for some seconds, traced in the background: the guard around the tracer, the tracer, and the truth.
fn traced_looper(work: &Path, seconds: &str) -> (Running, u32, PathBuf) {
    let truth = work.join("truth");
    let mut tracer = live::tracer();
    tracer.arg("-o").arg(work.join("run.iotrace")).arg("--").arg(programs::build("looper"));
    tracer.args([work, &truth]).arg(seconds).stdout(Stdio::null()).stderr(Stdio::null());
    let guard = Running::spawn(&mut tracer);
    let pid = live::child_of(guard.pid());
    (guard, pid, truth)
}

fn stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

#[test]
fn a_killed_tracer_leaves_the_command_alone_and_a_readable_dataset() {
    let work = live::scratch();
    let (mut guard, tracer, truth) = traced_looper(work.path(), "10");
    let dataset = work.path().join("run.iotrace");
    // The first parts are empty; the next are closed after some seconds.
    live::until("a closed part", || dataset.join("spans-00002.parquet").exists());
    live::send(tracer, Signal::SIGKILL);
    guard.wait();

    let before = live::truth(&truth);
    assert!(!stopped(before.pid));
    live::until("the command to go on", || live::truth(&truth).pwrites > before.pwrites + 10);
    let data = Data::read_part(&dataset);
    let recorded = data.calls("pwrite64").count();
    assert!(recorded > 0 && recorded as i64 <= before.pwrites + 1, "{recorded} of {}", before.pwrites);
    sql::readable(&dataset);

    // It ends by itself and has written all it wanted.
    live::until("the command to end", || !Path::new(&format!("/proc/{}", before.pid)).exists());
    let end = live::truth(&truth);
    assert_eq!(fs::metadata(work.path().join("looper.dat")).unwrap().len(), end.pwrites as u64 * 4096);
    assert_eq!(fs::metadata(work.path().join("looper.txt")).unwrap().len(), end.fwrites as u64 * 4096);
}

#[test]
fn a_tracer_killed_at_any_time_leaves_no_process_stopped() {
    // Libraries are attached, and processes held, in the first tenths of a second.
    for delay in (0..40).map(|n| n * 20) {
        let work = live::scratch();
        let mark = work.path().join("mark");
        let program = unseen(work.path(), "first_call");
        let mut tracer = live::tracer();
        tracer.arg("-o").arg(work.path().join("run.iotrace")).arg("--").arg(&program).arg(&mark);
        let mut guard = Running::spawn(tracer.stdout(Stdio::null()).stderr(Stdio::null()));
        let pid = live::child_of(guard.pid());
        std::thread::sleep(std::time::Duration::from_millis(delay));
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), Signal::SIGKILL);
        guard.wait();
        // A process that runs this program's file now ends by itself: it writes a line.
        live::until("the command to end", || running(&program).is_empty());
    }
}

/// Processes that execute a file.
fn running(program: &Path) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)).collect()
}

#[test]
fn ctrl_c_ends_command_and_trace_and_the_dataset_is_complete() {
    let work = live::scratch();
    let (mut guard, tracer, truth) = traced_looper(work.path(), "60");
    live::until("the command to write", || fs::metadata(&truth).is_ok() && live::truth(&truth).pwrites > 20);
    let looper = live::truth(&truth).pid;
    // As a terminal does: to both.
    live::send(looper, Signal::SIGINT);
    live::send(tracer, Signal::SIGINT);
    assert_eq!(guard.wait().code(), Some(130));
    let data = Data::read(&work.path().join("run.iotrace")).lossless();
    let truth = live::truth(&truth);
    let done = |op| data.calls(op).filter(|s| s.bytes == Some(4096)).count() as i64;
    // It may have been stopped between a call and its own count of it.
    assert!((truth.pwrites..=truth.pwrites + 1).contains(&done("pwrite64")), "{} of {truth:?}", done("pwrite64"));
    assert!((truth.fwrites..=truth.fwrites + 1).contains(&done("fwrite")), "{} of {truth:?}", done("fwrite"));
    assert!(data.processes.values().all(|p| p.exit_code == Some(130) && p.end_ns.is_some()), "{:?}", data.processes);
}

#[test]
fn under_sudo_the_command_and_the_dataset_belong_to_the_caller() {
    let work = live::scratch();
    fs::set_permissions(work.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let dataset = work.path().join("run.iotrace");
    let mut tracer = live::tracer();
    tracer
        .arg("-o")
        .arg(&dataset)
        .arg("--report")
        .arg(work.path().join("report"))
        .args(["--", "sh", "-c", "id -u; id -g; id -G; : > \"$0\""])
        .arg(work.path().join("made"));
    let out = tracer.env("SUDO_UID", "65534").env("SUDO_GID", "65534").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8_lossy(&out.stdout), "65534\n65534\n65534\n");
    assert_eq!(fs::metadata(work.path().join("made")).unwrap().uid(), 65534);

    let owned = |path: &Path, mode: u32| {
        let m = fs::metadata(path).unwrap();
        assert_eq!((m.uid(), m.gid(), m.mode() & 0o7777), (65534, 65534, mode), "{}", path.display());
    };
    owned(&dataset, 0o700);
    owned(&work.path().join("report"), 0o600);
    for entry in fs::read_dir(&dataset).unwrap() {
        owned(&entry.unwrap().path(), 0o600);
    }
    assert!(Data::read(&dataset).processes.values().all(|p| p.uid == 65534));

    for (made, options) in [
        ("page.html", ["report", "--html"]),
        ("run.json", ["export", "--to=perfetto"]),
        ("csv", ["export", "--to=csv"]),
    ] {
        let made = work.path().join(made);
        let mut reader = live::tracer();
        reader.arg(options[0]).arg(&dataset).arg(options[1]);
        if options[0] == "export" {
            reader.arg("-o");
        }
        let out = reader.arg(&made).env("SUDO_UID", "65534").env("SUDO_GID", "65534").output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let mut all = vec![made.clone()];
        all.extend(fs::read_dir(&made).into_iter().flatten().map(|entry| entry.unwrap().path()));
        for path in all {
            let m = fs::metadata(&path).unwrap();
            assert_eq!((m.uid(), m.gid()), (65534, 65534), "{}", path.display());
        }
    }
}

#[test]
fn no_module_of_the_c_library_is_loaded_for_users_and_groups() {
    let work = live::scratch();
    fs::set_permissions(work.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let log = work.path().join("strace");
    let out = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=openat,execve", "-o"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_iotrace-bpf"))
        .arg("--report")
        .arg(work.path().join("report"))
        .args(["--", "true"])
        .env("SUDO_UID", "65534")
        .env("SUDO_GID", "65534")
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let opened = fs::read_to_string(&log).unwrap();
    for (file, wanted) in [("/etc/passwd", true), ("/etc/group", true), ("nsswitch.conf", false), ("libnss_", false)] {
        assert_eq!(opened.contains(file), wanted, "{file}: {opened}");
    }
    assert!(!opened.contains("getent"), "the files know the user: {opened}");
}

#[test]
fn children_and_grandchildren_are_traced() {
    let work = live::scratch();
    let script = "for i in 1 2 3; do (sh -c 'echo x > \"$0\"' \"$0.$i\") & done; wait";
    let out = work.path().join("child");
    let data = live::trace(work.path(), &[], &[Path::new("sh"), Path::new("-c"), Path::new(script), &out]).data();
    for n in 1..=3 {
        let path = work.path().join(format!("child.{n}"));
        let writes = data.layer(Layer::Syscall).filter(|s| s.op == "write" && data.path(s) == Some(&path));
        assert_eq!(writes.map(|s| s.bytes).collect::<Vec<_>>(), [Some(2)], "{}", path.display());
    }
}
