//! A tracer for each rank of a job on one node: the first one traces, the others become their programs. What launchers see of
//! them, and what happens to the others when one of them ends or is killed.

#![allow(clippy::unwrap_used, reason = "what a test does not expect is a failure")]

#[path = "common/job.rs"]
mod job;
#[path = "common/live.rs"]
mod live;
#[path = "common/programs.rs"]
mod programs;

use iotrace_bpf::words::Kind;
use live::{Data, Running};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn host() -> String {
    nix::unistd::gethostname().unwrap().into_string().unwrap()
}

/// Where the sockets are at which ranks meet.
fn sockets() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/net/unix").unwrap();
    let names = text.lines().filter_map(|line| line.split_once("@iotrace-bpf/"));
    names.map(|(_, name)| format!("iotrace-bpf/{name}")).collect()
}

/// A job of Slurm on this node, as far as its ranks see it: variables. Each is started by the test, so that it is known which
/// one is the first.
struct Step {
    work: tempfile::TempDir,
    /// Slurm's number of it.
    number: u32,
}

impl Step {
    fn new(number: u32) -> Self {
        Self { work: live::scratch(), number: std::process::id() * 16 + number }
    }

    fn run(&self) -> PathBuf {
        self.work.path().join("run")
    }

    fn data(&self) -> Data {
        Data::read(&self.run().join(host()))
    }

    /// A rank that runs a script; what it says goes to files.
    fn rank(&self, rank: u32, script: &str) -> Rank {
        let said = |what: &str| fs::File::create(self.work.path().join(format!("{what}.{rank}"))).unwrap();
        let mut tracer = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
        tracer.arg("-o").arg(self.run()).args(["--", "sh", "-c", script]).arg(self.work.path().join("out"));
        tracer.env("SLURM_JOB_ID", self.number.to_string()).env("SLURM_STEP_ID", "0").env("SLURM_STEP_NUM_TASKS", "3");
        tracer.env("SLURM_PROCID", rank.to_string()).env_remove("SUDO_UID").env_remove("SUDO_GID");
        let child = tracer.stdin(Stdio::null()).stdout(said("stdout")).stderr(said("stderr")).spawn().unwrap();
        Rank { running: Running(child), stderr: self.work.path().join(format!("stderr.{rank}")) }
    }

    /// The first rank, once it waits for others.
    fn first(&self, script: &str) -> (Rank, String) {
        let before = sockets();
        let rank = self.rank(0, script);
        let mut name = None;
        live::until("the socket", || {
            name = sockets().difference(&before).next().cloned();
            name.is_some()
        });
        (rank, name.unwrap())
    }

    /// Waits for a file that a script makes.
    fn until(&self, name: &str) {
        live::until(name, || self.work.path().join(format!("out.{name}")).exists());
    }
}

struct Rank {
    running: Running,
    stderr: PathBuf,
}

impl Rank {
    fn code(&mut self) -> Option<i32> {
        self.running.wait().code()
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }
}

/// Paths that were written to, and by whom.
fn written(data: &Data) -> BTreeSet<(String, i32)> {
    let writes = data.spans.iter().filter(|s| s.kind == Kind::Write && s.errno == 0);
    let named = writes.filter_map(|s| Some((data.path(s)?.file_name()?.to_str()?.to_owned(), s.pid)));
    named.filter(|(name, _)| name.starts_with("out.")).collect()
}

#[test]
fn the_tracer_outlives_the_first_program_and_exit_statuses_are_the_programs() {
    let step = Step::new(1);
    let (mut first, _) = step.first("echo a > $0.first");
    // They are the processes that the launcher started, with its environment.
    let mut second = step.rank(1, "until [ -e $0.go ]; do sleep 0.05; done; echo $$ $SLURM_PROCID > $0.second; exit 3");
    let mut third = step.rank(2, "until [ -e $0.go ]; do sleep 0.05; done; echo c > $0.third; kill -TERM $$");
    step.until("first");
    assert!(first.running.0.try_wait().unwrap().is_none());
    fs::write(step.work.path().join("out.go"), "").unwrap();
    let pid = second.running.pid();
    assert_eq!(second.code(), Some(3), "{}", second.said());
    assert_eq!(third.running.wait().signal(), Some(15), "{}", third.said());
    assert_eq!(first.code(), Some(0), "{}", first.said());
    assert_eq!(fs::read_to_string(step.work.path().join("out.second")).unwrap(), format!("{pid} 1\n"));
    assert_eq!((second.said(), third.said()), (String::new(), String::new()));

    let data = step.data().lossless();
    let ranks = job::ranks(&data);
    assert_eq!((ranks[&1].pid, ranks[&1].exit_code), (pid as i32, Some(3)));
    assert_eq!((ranks[&2].pid, ranks[&2].exit_code), (third.running.pid() as i32, Some(143)));
    let expected = [("first", ranks[&0].pid), ("second", pid as i32), ("third", third.running.pid() as i32)];
    assert_eq!(written(&data), expected.map(|(name, pid)| (format!("out.{name}"), pid)).into());
}

#[test]
fn the_failure_of_the_first_program_is_told_at_once() {
    let step = Step::new(2);
    let (mut first, _) = step.first("until [ -e $0.second ]; do sleep 0.05; done; exit 4");
    let mut second = step.rank(1, "echo b > $0.second; until [ -e $0.go ]; do sleep 0.05; done; echo c > $0.third");
    // The launcher learns of it though another rank still runs, which may wait for the one that failed, and is still traced.
    assert_eq!(first.code(), Some(4), "{}", first.said());
    assert!(second.running.0.try_wait().unwrap().is_none());
    fs::write(step.work.path().join("out.go"), "").unwrap();
    assert_eq!(second.code(), Some(0), "{}", second.said());
    job::until_no_tracer();
    let data = step.data().lossless();
    let pid = second.running.pid() as i32;
    assert_eq!(written(&data), ["out.second", "out.third"].map(|name| (name.to_owned(), pid)).into());
    assert_eq!(job::ranks(&data)[&0].exit_code, Some(4));
}

#[test]
fn a_tracer_that_cannot_begin_fails_the_first_rank() {
    let step = Step::new(4);
    fs::create_dir_all(step.run().join(host())).unwrap();
    fs::write(step.run().join(host()).join("mine"), "").unwrap();
    let mut first = step.rank(0, "echo > $0.ran");
    assert_eq!(first.code(), Some(125));
    assert!(first.said().contains("is not empty"), "{}", first.said());
    assert!(!step.work.path().join("out.ran").exists());
}

#[test]
fn ranks_outlive_a_tracer_that_is_killed() {
    let step = Step::new(3);
    let (mut first, name) = step.first("echo $$ > $0.pid; echo > $0.first; exec sleep 1000");
    let mut second = step.rank(1, "echo b > $0.second; until [ -e $0.go ]; do sleep 0.05; done; exit 5");
    step.until("first");
    step.until("second");
    live::send(live::child_of(first.running.pid()), Signal::SIGKILL);
    fs::write(step.work.path().join("out.go"), "").unwrap();
    assert_eq!(second.code(), Some(5), "{}", second.said());
    // One that comes now says that it is not traced, and is not kept.
    let untraced = |why: &str| format!("iotrace-bpf: {}: not traced: {why}\n", host());
    let mut third = step.rank(2, "exit 6");
    assert_eq!((third.code(), third.said()), (Some(6), untraced("the tracer of this node has ended")));
    // The first rank ends as its program does.
    let program = fs::read_to_string(step.work.path().join("out.pid")).unwrap();
    live::send(program.trim().parse().unwrap(), Signal::SIGKILL);
    assert_eq!(first.running.wait().signal(), Some(9));

    // One that waits for a tracer that ends, and one whose tracer is another user's.
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let mut third = step.rank(2, "exit 6");
    drop(listener.accept().unwrap());
    assert_eq!((third.code(), third.said()), (Some(6), untraced("the tracer of this node has ended")));
    drop(listener);
    let bind =
        "use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un(\"\\0\".shift)); listen(S, 1); sleep";
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups", "perl", "-e", bind, &name]);
    let _other = Running::spawn(&mut other);
    live::until("the socket", || sockets().contains(&name));
    let mut third = step.rank(2, "exit 7");
    assert_eq!((third.code(), third.said()), (Some(7), untraced("user 65534 has taken the place of its tracer")));
}

/// Starts four ranks of a command with a launcher; one that hangs is ended, with status 124.
fn launched(launcher: &str, run: &Path, command: &[&str]) -> Output {
    let mut job = Command::new("timeout");
    job.args(["--kill-after=10", "120"]).args(launcher.split(' ')).arg(env!("CARGO_BIN_EXE_iotrace-bpf"));
    job.arg("-o").arg(run).arg("--").args(command).stdin(Stdio::null());
    job.env_remove("SUDO_UID").env_remove("SUDO_GID").output().unwrap()
}

/// The launchers of both kinds of MPI, and the variable with a rank.
fn launchers() -> [(String, &'static str); 2] {
    let open = format!("{} --allow-run-as-root --oversubscribe -np 4", programs::openmpi("mpirun"));
    let hydra = programs::mpich("mpiexec");
    [(open, "OMPI_COMM_WORLD_RANK"), (format!("{hydra} -n 4"), "PMI_RANK")]
}

#[test]
fn a_rank_that_fails_ends_the_job() {
    for (launcher, rank) in launchers() {
        let work = live::scratch();
        // Whichever is the first one: the others would wait for it for ever.
        for failing in 0..4 {
            // Hydra goes on after another exit status than 0.
            let (end, ended) = if failing < 2 && rank != "PMI_RANK" { ("exit 3", 3) } else { ("kill -KILL $$", 137) };
            let script = format!("test ${rank} = {failing} || exec sleep 1000; {end}");
            let out = launched(&launcher, &work.path().join("run"), &["sh", "-c", &script]);
            let erred = String::from_utf8_lossy(&out.stderr);
            assert_ne!(out.status.code(), Some(124), "{launcher} hangs when rank {failing} has failed: {erred}");
            assert!(!out.status.success(), "{launcher}: {erred}");
            // The launcher does not wait for the tracer then, and does not end it: the dataset has everything.
            job::until_no_tracer();
            let data = Data::read(&work.path().join("run").join(host()));
            assert_eq!(job::ranks(&data)[&failing].exit_code, Some(ended), "{launcher}: {:?}", data.processes);
            fs::remove_dir_all(work.path().join("run")).unwrap();
        }
    }
}

#[test]
fn ranks_of_mpich_are_all_in_one_dataset() {
    let work = live::scratch();
    let (run, out) = (work.path().join("run"), work.path().join("out"));
    fs::create_dir(&out).unwrap();
    let program = programs::build("mpiio_mix_mpich");
    let [_, (hydra, _)] = launchers();
    let ran = launched(&hydra, &run, &[program.to_str().unwrap(), out.to_str().unwrap()]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(live::datasets(&run), [run.join(host())]);
    let data = Data::read(&run.join(host())).lossless();
    assert_eq!(job::ranks(&data).into_keys().collect::<Vec<_>>(), [0, 1, 2, 3]);
    (0..4).for_each(|rank| job::rank_is_as_it_says(&data, &out, rank));
}
