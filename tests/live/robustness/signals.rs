//! Signals that end a trace, at every phase of it and one after the other: the tracer ends by itself, no process stays stopped, the
//! dataset is complete, and the exit status shows what happened.

use crate::common::live::{self, Data, Running};
use crate::common::{programs, sql};
use iotrace_bpf::export::report;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// All that a tracer may take to end, with a little for a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// A signal, that many ms after the tracer was started; and another one, so long after that.
type Signals = (u64, Signal, Option<(u64, Signal)>);

/// Of one trace: when signals come, and which.
fn plan(step: u64, count: u64) -> Vec<Signals> {
    let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let one = |n: u64| signals[n as usize % 3];
    // What comes second meets the draining and the writing.
    let second = |n: u64| (n % 2 == 1).then(|| (n * 17 % 120, one(n / 3)));
    (0..count).map(|n| (n * step, one(n), second(n))).collect()
}

/// A tracer that gets signals, itself and without a guard around it.
struct Tracer {
    work: tempfile::TempDir,
    running: Running,
}

impl Tracer {
    fn start(work: tempfile::TempDir, args: &[&str], command: &[&Path]) -> Self {
        let mut tracer = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
        tracer.args(args).arg("-o").arg(work.path().join("run.iotrace"));
        if !command.is_empty() {
            tracer.arg("--").args(command);
        }
        tracer.env_remove("SUDO_UID").env_remove("SUDO_GID").stdin(Stdio::null()).stdout(Stdio::null());
        tracer.stderr(fs::File::create(work.path().join("stderr")).unwrap());
        // As a shell does with what runs at its terminal.
        let running = Running::spawn(tracer.process_group(0));
        Self { work, running }
    }

    /// Sends the signals; `all`: to all of its group, as a terminal does. Returns when it has ended.
    fn signal(&mut self, (delay, signal, second): Signals, all: bool) -> ExitStatus {
        let pid = self.running.pid();
        let send = |signal| {
            let pid = Pid::from_raw(pid as i32);
            // It may have ended.
            let _ = if all { killpg(pid, signal) } else { nix::sys::signal::kill(pid, signal) };
        };
        std::thread::sleep(Duration::from_millis(delay));
        send(signal);
        if let Some((delay, signal)) = second {
            std::thread::sleep(Duration::from_millis(delay));
            send(signal);
        }
        let limit = Instant::now() + PATIENCE * live::slower() as u32;
        loop {
            if let Some(status) = self.running.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < limit, "it does not end: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.work.path().join("stderr")).unwrap()
    }

    fn dataset(&self) -> PathBuf {
        self.work.path().join("run.iotrace")
    }

    /// There is none, or it is complete. True: it is there.
    fn check_dataset(&self, when: &str) -> bool {
        let stderr = self.stderr();
        assert!(!stderr.contains("panicked"), "{when}: {stderr}");
        if !self.dataset().exists() {
            return false;
        }
        let data = Data::read(&self.dataset());
        assert!(data.coverage.iter().any(|c| c.status == "attached"), "{when}: {:?}", data.coverage);
        report::run(&self.dataset(), false, &mut Vec::new()).unwrap();
        true
    }
}

/// As a shell shows it.
fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|s| 128 + s)).unwrap()
}

/// Runs each of the plan's traces, some at a time; `DuckDB` reads one of the datasets.
fn each(plan: &[Signals], run: impl Fn(Signals) -> Option<Tracer> + Sync) {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some(signals) = plan.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.extend(run(*signals));
        }
        done
    };
    let done: Vec<Tracer> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    sql::readable(&done.last().unwrap().dataset());
}

/// Gone, and not for ever stopped.
fn is_over(pid: u32) -> bool {
    matches!(live::state(pid), None | Some('Z'))
}

/// Both get the signal, as from a terminal: whenever that is, the command has not been started, or ends by it.
#[test]
fn a_command_and_its_tracer() {
    let looper = programs::build("looper");
    each(&plan(150, 10), |signals| {
        let when = format!("{signals:?}");
        let work = live::scratch();
        let truth = work.path().join("truth");
        let dir = work.path().to_owned();
        let mut tracer = Tracer::start(work, &[], &[&looper, &dir, &truth, Path::new("300")]);
        let status = tracer.signal(signals, true);
        let (_, first, second) = signals;
        let allowed = [Some(first), second.map(|(_, signal)| signal)].map(|s| s.map(|s| 128 + s as i32));
        assert!(allowed.contains(&Some(code(status))), "{when}: {status:?}, {}", tracer.stderr());
        let pid = live::truth(&truth).pid;
        if pid != 0 {
            live::until("the command to end", || is_over(pid));
        }
        tracer.check_dataset(&when).then_some(tracer)
    });
}

/// The target does not notice: it is not stopped, and goes on.
#[test]
fn a_tracer_of_a_process_that_runs() {
    let looper = programs::build("looper");
    each(&plan(170, 10), |signals| {
        let when = format!("{signals:?}");
        let work = live::scratch();
        let truth = work.path().join("truth");
        let target = Running::spawn(Command::new(&looper).args([work.path(), &truth, Path::new("300")]));
        live::until("looper", || live::truth(&truth).pwrites > 0);
        let mut tracer = Tracer::start(work, &["-p", &target.pid().to_string()], &[]);
        let status = tracer.signal(signals, false);
        // Before it has begun it ends as any program does.
        let early = !tracer.dataset().exists() && status.signal() == Some(signals.1 as i32);
        assert!(status.code() == Some(0) || early, "{when}: {status:?}, {}", tracer.stderr());
        assert_ne!(live::state(target.pid()), Some('T'), "{when}");
        let before = live::truth(&truth).pwrites;
        live::until("looper to go on", || live::truth(&truth).pwrites > before + 2);
        tracer.check_dataset(&when).then_some(tracer)
    });
}

/// Only the tracer gets the signal, and the time of the trace is over before the command: whether it still traces, or writes,
/// or waits, it passes the signal on.
#[test]
fn a_tracer_whose_command_goes_on_untraced() {
    let looper = programs::build("looper");
    let plan: Vec<Signals> = (0..8).map(|n| (200 + n * 90, Signal::SIGTERM, None)).collect();
    each(&plan, |signals| {
        let when = format!("{signals:?}");
        let work = live::scratch();
        let truth = work.path().join("truth");
        let dir = work.path().to_owned();
        let mut tracer = Tracer::start(work, &["--duration", "100ms"], &[&looper, &dir, &truth, Path::new("300")]);
        let status = tracer.signal(signals, false);
        assert_eq!(code(status), 128 + Signal::SIGTERM as i32, "{when}: {status:?}, {}", tracer.stderr());
        let pid = live::truth(&truth).pid;
        if pid != 0 {
            live::until("the command to end", || is_over(pid));
        }
        tracer.check_dataset(&when).then_some(tracer)
    });
}

/// A command that does not care: it gets its time, then the trace ends, and the second Ctrl-C ends the waiting.
#[test]
fn a_second_ctrl_c_ends_the_waiting_for_a_command_that_ignores_it() {
    let work = live::scratch();
    let ready = work.path().join("ready");
    let script = "trap '' INT; echo $$ > \"$0\"; while :; do sleep 0.1; done";
    let command = [Path::new("sh"), Path::new("-c"), Path::new(script), &ready];
    let mut tracer = Tracer::start(work, &[], &command);
    let pid = || fs::read_to_string(&ready).ok()?.trim().parse::<u32>().ok();
    live::until("the command", || pid().is_some());
    let command = Killed(pid().unwrap());
    // The trace has ended, and its summary is printed.
    killpg(Pid::from_raw(tracer.running.pid() as i32), Signal::SIGINT).unwrap();
    live::until("the end of the trace", || tracer.stderr().contains("dataset in"));
    assert!(tracer.running.0.try_wait().unwrap().is_none());
    let status = tracer.signal((0, Signal::SIGINT, None), true);
    assert_eq!(status.code(), Some(128 + Signal::SIGINT as i32));
    assert!(!is_over(command.0), "it goes on");
    assert!(tracer.check_dataset("after 5 s"));
}

/// A process that is killed at the end of its test.
struct Killed(u32);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(Pid::from_raw(self.0 as i32), Signal::SIGKILL);
    }
}
