//! Programs that are stopped and continued (SIGSTOP, SIGCONT): the trace goes on, times are what they were, and a trace that
//! begins or ends meanwhile neither waits for them nor lets them go.

use crate::common::live::{self, Data, Running};
use crate::common::programs;
use iotrace_bpf::vocabulary::flag;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long it is stopped.
const PAUSE: Duration = Duration::from_millis(1500);
/// No other call takes as long.
const LONG_NS: i64 = 1_200_000_000;

/// A process that is killed at the end of its test, stopped or not.
struct Target(u32);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.0 as i32), Signal::SIGKILL);
    }
}

/// `paused`, traced or not.
struct Paused {
    work: tempfile::TempDir,
    pid: u32,
    target: Target,
    to: ChildStdin,
    done: usize,
    /// Itself, or its tracer.
    running: Running,
}

impl Paused {
    fn file(work: &Path) -> PathBuf {
        work.join("file")
    }

    fn spawn(work: &Path, command: &mut Command) -> Running {
        let to = |name: &str| fs::File::create(work.join(name)).unwrap();
        Running::spawn(command.stdin(Stdio::piped()).stdout(to("stdout")).stderr(to("stderr")))
    }

    fn ready(work: tempfile::TempDir, mut running: Running, pid: impl FnOnce(u32) -> u32) -> Self {
        let out = work.path().join("stdout");
        live::until("the program", || fs::read_to_string(&out).unwrap().starts_with("ready\n"));
        let (to, pid) = (running.0.stdin.take().unwrap(), pid(running.pid()));
        Self { work, pid, target: Target(pid), to, done: 0, running }
    }

    fn alone() -> Self {
        let work = live::scratch();
        let running = Self::spawn(work.path(), Command::new(programs::build("paused")).arg(Self::file(work.path())));
        Self::ready(work, running, |pid| pid)
    }

    fn traced() -> Self {
        let work = live::scratch();
        // No guard around it: when that ends, the kernel wakes what is stopped in its group.
        let mut tracer = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
        tracer.env_remove("SUDO_UID").env_remove("SUDO_GID").arg("-o").arg(work.path().join("run.iotrace")).arg("--");
        let running = Self::spawn(work.path(), tracer.arg(programs::build("paused")).arg(Self::file(work.path())));
        Self::ready(work, running, |tracer| live::named_child_of(tracer, "paused"))
    }

    /// A tracer of it, which traces; and the guard around it.
    fn attach(&self, options: &[&str]) -> (Running, u32) {
        let output = self.work.path().join("tracer");
        let mut tracer = live::tracer();
        tracer.args(options).arg("-o").arg(self.dataset()).arg("-p").arg(self.pid.to_string());
        let guard = Running::spawn(tracer.stdout(Stdio::null()).stderr(fs::File::create(&output).unwrap()));
        let tracer = live::child_of(guard.pid());
        live::until_it_traces(tracer, &output);
        (guard, tracer)
    }

    fn dataset(&self) -> PathBuf {
        self.work.path().join("run.iotrace")
    }

    fn ask(&mut self, what: &[u8]) {
        self.to.write_all(what).unwrap();
        self.done += what.len();
    }

    fn is_done(&self) -> bool {
        fs::read_to_string(self.work.path().join("stdout")).unwrap().matches("done\n").count() >= self.done
    }

    fn until_done(&self) {
        live::until("the program to go on", || self.is_done());
    }

    fn stop(&self) {
        live::send(self.pid, Signal::SIGSTOP);
        live::until("the program to stop", || self.is_stopped());
    }

    fn is_stopped(&self) -> bool {
        live::state(self.pid) == Some('T')
    }

    fn go_on(&self) {
        live::send(self.pid, Signal::SIGCONT);
    }

    /// It ends, and so does its tracer: what was recorded.
    fn finish(self, tracer: Option<(Running, u32)>) -> (tempfile::TempDir, Data) {
        let dataset = self.dataset();
        let Self { work, target, to, mut running, .. } = self;
        drop(to);
        assert_eq!(ended(&mut running).code(), Some(0));
        // It is no more.
        std::mem::forget(target);
        if let Some((mut guard, _)) = tracer {
            assert_eq!(guard.wait().code(), Some(0));
        }
        (work, Data::read(&dataset).lossless())
    }
}

/// Calls that took long, with the time in ns.
fn long(data: &Data) -> Vec<(&'static str, i64)> {
    data.spans.iter().filter(|s| s.dur_ns >= LONG_NS).map(|s| (s.op, s.dur_ns)).collect()
}

/// Waits for its end.
fn ended(running: &mut Running) -> ExitStatus {
    let mut status = None;
    live::until("the end", || {
        status = running.0.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

/// Is it in this system call?
fn inside(pid: u32, number: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default().starts_with(&format!("{number} "))
}

#[test]
fn a_stop_between_calls_is_in_none_of_them() {
    for attached in [false, true] {
        let mut paused = if attached { Paused::alone() } else { Paused::traced() };
        let tracer = attached.then(|| paused.attach(&[]));
        paused.ask(b"w");
        paused.until_done();
        paused.stop();
        std::thread::sleep(PAUSE);
        paused.go_on();
        paused.ask(b"w");
        paused.until_done();
        let (work, data) = paused.finish(tracer);
        assert_eq!(long(&data), []);
        let file = Paused::file(work.path());
        assert_eq!(data.calls("write").filter(|s| data.path(s) == Some(&file) && s.bytes == Some(4096)).count(), 2);
    }
}

/// The kernel interrupts the call and makes it again when the program goes on: to the program it is one.
#[test]
fn a_stop_within_a_call_is_in_it() {
    for attached in [false, true] {
        let mut paused = if attached { Paused::alone() } else { Paused::traced() };
        let tracer = attached.then(|| paused.attach(&[]));
        let file = Paused::file(paused.work.path());
        let lock = Flock::lock(fs::File::open(&file).unwrap(), FlockArg::LockExclusive).unwrap();
        paused.ask(b"l");
        live::until("the lock", || inside(paused.pid, "73"));
        paused.stop();
        // What it waits for is there, and it does not see it.
        drop(lock.unlock());
        std::thread::sleep(PAUSE);
        assert!(!paused.is_done());
        paused.go_on();
        paused.until_done();
        let (work, data) = paused.finish(tracer);
        let [("flock", took)] = long(&data)[..] else { panic!("{:?}", long(&data)) };
        assert!(took >= PAUSE.as_nanos() as i64, "{took} ns");
        let locks: Vec<_> = data.calls("flock").filter(|s| data.path(s) == Some(&file)).collect();
        assert!(locks.len() == 2 && locks.iter().all(|s| s.errno == 0 && s.flags == 0), "{locks:?}");
        drop(work);
    }
}

/// The trace ends at once, and leaves the program as it was.
#[test]
fn a_trace_ends_while_its_program_is_stopped() {
    for within in [false, true] {
        let mut paused = Paused::alone();
        let file = Paused::file(paused.work.path());
        let (mut guard, tracer) = paused.attach(&[]);
        paused.ask(b"w");
        paused.until_done();
        let lock = within.then(|| Flock::lock(fs::File::open(&file).unwrap(), FlockArg::LockExclusive).unwrap());
        if within {
            paused.ask(b"l");
            live::until("the lock", || inside(paused.pid, "73"));
        }
        paused.stop();
        live::send(tracer, Signal::SIGINT);
        // What hangs is killed, and has no such status.
        assert_eq!(guard.wait().code(), Some(0));
        assert!(paused.is_stopped());
        std::thread::sleep(Duration::from_millis(100));
        assert!(paused.is_stopped(), "it was let go");
        drop(lock.map(Flock::unlock));
        paused.go_on();
        paused.ask(b"w");
        paused.until_done();
        let data = Data::read(&paused.dataset()).lossless();
        assert_eq!(data.calls("write").filter(|s| data.path(s) == Some(&file) && s.bytes == Some(4096)).count(), 1);
        // It was interrupted, to be made again, and is not over.
        let locks: Vec<_> = data.calls("flock").filter(|s| data.path(s) == Some(&file)).collect();
        assert_eq!(locks.len(), usize::from(within));
        assert!(locks.iter().all(|s| s.flags & flag::UNFINISHED != 0 && s.errno == 0 && s.ret.is_none()), "{locks:?}");
    }
}

#[test]
fn a_trace_begins_and_ends_while_its_program_is_stopped() {
    let mut paused = Paused::alone();
    paused.stop();
    let (mut guard, _) = paused.attach(&["--duration", "2s"]);
    assert_eq!(guard.wait().code(), Some(0));
    assert!(paused.is_stopped(), "it was let go");
    let data = Data::read(&paused.dataset()).lossless();
    assert!(data.processes.values().any(|p| p.pid == paused.pid as i32 && p.end_ns.is_none()));
    paused.go_on();
    paused.ask(b"w");
    paused.until_done();
}

/// A command cannot end while it is stopped: with the second signal the tracer does not wait for it.
#[test]
fn a_tracer_ends_while_its_command_is_stopped() {
    let mut paused = Paused::traced();
    paused.ask(b"w");
    paused.until_done();
    paused.stop();
    let tracer = paused.running.pid();
    live::send(tracer, Signal::SIGTERM);
    // The first one is passed on, and stays with the command while that is stopped.
    live::until("the signal", || live::has_signal(paused.pid, "ShdPnd", Signal::SIGTERM));
    live::send(tracer, Signal::SIGTERM);
    assert_eq!(ended(&mut paused.running).code(), Some(128 + Signal::SIGTERM as i32));
    assert!(paused.is_stopped(), "it was let go");
    let data = Data::read(&paused.dataset()).lossless();
    let file = Paused::file(paused.work.path());
    assert_eq!(data.calls("write").filter(|s| data.path(s) == Some(&file) && s.bytes == Some(4096)).count(), 1);
    // The first signal was the command's.
    paused.go_on();
    live::until("the command to end", || matches!(live::state(paused.pid), None | Some('Z')));
}
