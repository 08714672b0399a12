//! Programs that are killed (`kill -9`) in the middle of their work: the dataset is complete, what was in flight is unfinished.

use crate::common::live::{self, Data, Running};
use crate::common::{job, programs};
use iotrace_bpf::export::report;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Layer, flag};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const KILLED: i32 = 128 + Signal::SIGKILL as i32;

fn pipe(work: &Path) -> PathBuf {
    let pipe = work.join("pipe");
    nix::unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    pipe
}

fn unfinished(data: &Data) -> Vec<&Span> {
    data.spans.iter().filter(|s| s.flags & flag::UNFINISHED != 0).collect()
}

/// Is it in `read` of something else than its standard input?
fn reads(pid: u32) -> bool {
    let inside = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    inside.starts_with("0 0x") && !inside.starts_with("0 0x0 ")
}

/// The process that was killed has an end, and its status is that of the signal.
fn ended_by_signal(data: &Data, pid: u32) {
    let process = data.processes.values().find(|p| p.pid == pid as i32).unwrap();
    assert!(process.exit_code == Some(KILLED) && process.end_ns.is_some(), "{process:?}");
}

/// Starts a tracer whose stderr is a file, and whose stdout is another one.
fn spawn(tracer: &mut Command, work: &Path) -> (Running, PathBuf) {
    let output = work.join("stderr");
    let out = fs::File::create(work.join("stdout")).unwrap();
    (Running::spawn(tracer.stdout(out).stderr(fs::File::create(&output).unwrap())), output)
}

#[test]
fn a_program_that_waits_in_a_call() {
    for attach in [false, true] {
        let work = live::scratch();
        let (pipe, dataset) = (pipe(work.path()), work.path().join("run.iotrace"));
        let mut stuck = Command::new(programs::build("stuck"));
        stuck.arg("read").arg(&pipe);
        let ready = work.path().join("ready");
        let mut tracer = live::tracer();
        tracer.arg("-o").arg(&dataset);
        let (mut target, mut running);
        let mut input = if attach {
            let out = fs::File::create(&ready).unwrap();
            target = Some(Running::spawn(stuck.stdin(Stdio::piped()).stdout(out)));
            live::until("the program", || fs::read_to_string(&ready).unwrap().contains("ready"));
            let (guard, output) = spawn(tracer.arg("-p").arg(target.as_ref().unwrap().pid().to_string()), work.path());
            running = guard;
            live::until_it_traces(live::child_of(running.pid()), &output);
            target.as_mut().unwrap().0.stdin.take().unwrap()
        } else {
            target = None;
            tracer.arg("--").arg(stuck.get_program()).args(stuck.get_args()).stdin(Stdio::piped());
            running = spawn(&mut tracer, work.path()).0;
            live::until("the program", || fs::read_to_string(work.path().join("stdout")).unwrap().contains("ready"));
            running.0.stdin.take().unwrap()
        };
        let pid =
            target.as_ref().map_or_else(|| live::named_child_of(live::child_of(running.pid()), "stuck"), Running::pid);
        input.write_all(b"\n").unwrap();
        live::until("the read", || reads(pid));
        live::send(pid, Signal::SIGKILL);
        // The end of another process is no failure of ours.
        let expected = if attach { 0 } else { KILLED };
        assert_eq!(running.wait().code(), Some(expected));
        drop(target);

        let data = Data::read(&dataset).lossless();
        let [call] = unfinished(&data)[..] else { panic!("{:?}", unfinished(&data)) };
        assert_eq!((call.op, call.layer, call.pid, call.ret), ("fread", Layer::Stdio, pid as i32, None));
        ended_by_signal(&data, pid);
        let report = fs::read_to_string(work.path().join(if attach { "stdout" } else { "stderr" })).unwrap();
        assert!(report.contains("unfinished"), "{report}");
    }
}

#[test]
fn a_program_that_writes() {
    for attach in [false, true] {
        let work = live::scratch();
        let (truth, dataset) = (work.path().join("truth"), work.path().join("run.iotrace"));
        let mut looper = Command::new(programs::build("looper"));
        looper.args([work.path(), &truth]).arg("60");
        let mut tracer = live::tracer();
        tracer.arg("-o").arg(&dataset);
        let target = attach.then(|| Running::spawn(&mut looper));
        let works = || live::truth(&truth).ready && live::truth(&truth).pwrites > 5;
        if let Some(target) = &target {
            live::until("looper", works);
            tracer.arg("-p").arg(target.pid().to_string());
        } else {
            tracer.arg("--").arg(looper.get_program()).args(looper.get_args());
        }
        let (mut running, output) = spawn(&mut tracer, work.path());
        live::until_it_traces(live::child_of(running.pid()), &output);
        live::until("looper", works);
        let before = live::truth(&truth);
        live::until("looper to write", || live::truth(&truth).pwrites > before.pwrites + 20);
        live::send(before.pid, Signal::SIGKILL);
        assert_eq!(running.wait().code(), Some(if attach { 0 } else { KILLED }));
        drop(target);

        let data = Data::read(&dataset).lossless();
        ended_by_signal(&data, before.pid);
        let made = live::truth(&truth).pwrites;
        let path = work.path().join("looper.dat");
        let mut writes: Vec<&Span> = data.calls("pwrite64").filter(|s| data.path(s) == Some(&path)).collect();
        writes.sort_by_key(|s| s.start_ns);
        writes.retain(|s| s.flags & flag::UNFINISHED == 0);
        // None is missing, and it was killed between a call and its own count of it, or not.
        assert!(writes.windows(2).all(|pair| pair[1].offset.unwrap() == pair[0].offset.unwrap() + 4096));
        let last = writes.last().unwrap().offset.unwrap() / 4096 + 1;
        assert!((made..=made + 1).contains(&last), "{last} of {made}");
        assert!(attach || writes[0].offset == Some(0));
        assert!(unfinished(&data).len() <= 2, "{:?}", unfinished(&data));
    }
}

/// The launcher ends the other half, which waits for the first one in a collective call: one tracer around the launcher, and
/// one that the launcher starts with each rank.
#[test]
fn half_of_the_ranks_of_a_job() {
    const RANKS: u32 = 4;
    for inside in [false, true] {
        let work = live::scratch();
        let (pipe, mut dataset) = (pipe(work.path()), work.path().join("run.iotrace"));
        let mpirun = programs::openmpi("mpirun");
        let launcher = [&mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "4"];
        let mut job = live::tracer();
        if inside {
            job = Command::new("timeout");
            job.args(["--signal=KILL", "240"]).args(launcher).arg(env!("CARGO_BIN_EXE_iotrace-bpf"));
            job.arg("-o").arg(&dataset).arg("--").env_remove("SUDO_UID").env_remove("SUDO_GID");
            dataset.push(nix::unistd::gethostname().unwrap());
        } else {
            job.arg("-o").arg(&dataset).arg("--").args(launcher);
        }
        job.arg(programs::build("halves")).arg(work.path()).arg(&pipe).stdin(Stdio::null());
        let (mut running, output) = spawn(&mut job, work.path());
        let pid = |rank: u32| fs::read_to_string(work.path().join(format!("rank.{rank}"))).ok()?.trim().parse().ok();
        live::until("the ranks", || (0..RANKS).all(|rank| pid(rank).is_some()));
        let pids: Vec<u32> = (0..RANKS).map(|rank| pid(rank).unwrap()).collect();
        live::until("the odd ranks", || pids.iter().skip(1).step_by(2).all(|pid| reads(*pid)));
        // The even ones have been in their call for long, too, however they wait in it.
        std::thread::sleep(std::time::Duration::from_millis(300));
        for odd in pids.iter().skip(1).step_by(2) {
            live::send(*odd, Signal::SIGKILL);
        }
        // As mpirun reports a rank that was killed.
        assert_eq!(running.wait().code(), Some(KILLED), "{}", fs::read_to_string(output).unwrap());
        job::until_no_tracer();

        let data = Data::read(&dataset).lossless();
        for (rank, pid) in (0..).zip(&pids) {
            let of = |s: &&&Span| s.rank == Some(rank) && s.pid == *pid as i32;
            let open: Vec<_> = unfinished(&data).iter().filter(of).map(|s| (s.layer, s.op)).collect();
            let written = data.calls("MPI_File_write_at").filter(|s| s.rank == Some(rank) && s.bytes == Some(4096));
            assert_eq!(written.count(), 1, "rank {rank}");
            if rank % 2 == 1 {
                assert_eq!(open, [(Layer::Stdio, "fread")], "rank {rank}");
                ended_by_signal(&data, *pid);
            } else {
                assert!(open.contains(&(Layer::Mpiio, "MPI_File_write_at_all")), "rank {rank}: {open:?}");
            }
            assert!(data.processes.values().any(|p| p.pid == *pid as i32 && p.end_ns.is_some()), "rank {rank}");
        }
        let mut report = Vec::new();
        report::run(&dataset, false, &mut report).unwrap();
        let report = String::from_utf8(report).unwrap();
        for op in ["fread", "MPI_File_write_at_all"] {
            assert!(report.lines().any(|line| line.contains(op) && line.contains("unfinished")), "{op}: {report}");
        }
    }
}
