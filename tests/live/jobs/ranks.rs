//! A tracer for each rank of a job on one node: the first one traces, the others become their programs. What launchers see of
//! them, and what happens to the others when one of them ends or is killed.

use crate::common::live::{self, Data, Running};
use crate::common::{job, programs};
use iotrace_bpf::vocabulary::Kind;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const TRACER: &str = env!("CARGO_BIN_EXE_iotrace-bpf");

fn host() -> String {
    nix::unistd::gethostname().unwrap().into_string().unwrap()
}

/// A job of Slurm on this node, as far as its ranks see it: variables. Each is started by the test, so that it is known which
/// one is the first.
struct Step {
    work: tempfile::TempDir,
    /// How many ranks the node has, if that is in the environment.
    tasks: Option<&'static str>,
}

impl Step {
    fn new() -> Self {
        job::until_no_tracer();
        let work = live::scratch();
        fs::create_dir(work.path().join("place")).unwrap();
        fs::set_permissions(work.path().join("place"), fs::Permissions::from_mode(0o700)).unwrap();
        Self { work, tasks: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    fn data(&self) -> Data {
        Data::read(&self.path("run").join(host()))
    }

    /// Where the files are at which ranks meet, by the ends of their names.
    fn place(&self, kind: &str) -> Vec<PathBuf> {
        live::datasets(&self.path("place")).into_iter().filter(|path| path.extension().unwrap() == kind).collect()
    }

    fn command(&self, options: &[&str], rank: u32, script: &str) -> Command {
        let output = |what: &str| fs::File::create(self.path(&format!("{what}.{rank}"))).unwrap();
        let mut tracer = Command::new(TRACER);
        tracer.args(options).arg("-o").arg(self.path("run"));
        tracer.args(["--", "sh", "-c", script]).arg(self.path("out"));
        tracer.env("SLURM_JOB_ID", "1").env("SLURM_STEP_ID", "0").env("SLURM_STEP_NUM_TASKS", "3");
        if let Some(tasks) = self.tasks {
            tracer.env("SLURM_STEP_TASKS_PER_NODE", tasks).env("SLURM_NODEID", "0");
        }
        tracer.env("SLURM_PROCID", rank.to_string()).env("XDG_RUNTIME_DIR", self.path("place"));
        tracer.env_remove("SUDO_UID").env_remove("SUDO_GID");
        tracer.stdin(Stdio::null()).stdout(output("stdout")).stderr(output("stderr"));
        tracer
    }

    /// A rank that runs a script; its output goes to files.
    fn rank(&self, rank: u32, script: &str) -> Rank {
        self.start(rank, &mut self.command(&[], rank, script))
    }

    fn start(&self, rank: u32, command: &mut Command) -> Rank {
        Rank { running: Running::spawn(command), stderr: self.path(&format!("stderr.{rank}")) }
    }

    /// The first rank, once it waits for others, and the tracer.
    fn first(&self, script: &str) -> (Rank, u32) {
        let rank = self.rank(0, script);
        live::until("the tracer", || !job::nodes().is_empty());
        (rank, job::nodes()[0])
    }

    /// Waits for a file that a script makes.
    fn until(&self, name: &str) {
        live::until(name, || self.path(&format!("out.{name}")).exists());
    }

    /// Makes a file that a script waits for.
    fn make(&self, name: &str) {
        fs::write(self.path(&format!("out.{name}")), "").unwrap();
    }

    /// A tracer has ended: it has left nothing, or what it noted for those who come late.
    fn nothing_left(&self, noted: bool) {
        assert_eq!((self.place("sock").len(), self.place("lock").len()), (0, usize::from(noted)));
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

    fn output(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }
}

/// Paths that were written to, and by whom.
fn written(data: &Data) -> BTreeSet<(String, i32)> {
    let writes = data.spans.iter().filter(|s| s.kind == Kind::Write && s.errno == 0);
    let named = writes.filter_map(|s| Some((data.path(s)?.file_name()?.to_str()?.to_owned(), s.pid)));
    named.filter(|(name, _)| name.starts_with("out.")).collect()
}

/// The message of a rank that runs untraced.
fn untraced(why: &str) -> String {
    format!("iotrace-bpf: {}: not traced: {why}\n", host())
}

/// How many children a process has.
fn children(pid: u32) -> usize {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap().split_whitespace().count()
}

/// The beginning of a script that waits for a file.
const UNTIL_GO: &str = "until [ -e $0.go ]; do sleep 0.05; done;";

#[test]
fn the_tracer_outlives_the_first_program_and_exit_statuses_are_the_programs() {
    let step = Step { tasks: Some("3"), ..Step::new() };
    let (mut first, _) = step.first("echo a > $0.first");
    // They are the processes that the launcher started, with its environment.
    let mut second = step.rank(1, &format!("{UNTIL_GO} echo $$ $SLURM_PROCID > $0.second; exit 3"));
    let mut third = step.rank(2, &format!("{UNTIL_GO} echo c > $0.third; kill -TERM $$"));
    step.until("first");
    assert!(first.running.0.try_wait().unwrap().is_none());
    step.make("go");
    let pid = second.running.pid();
    assert_eq!(second.code(), Some(3), "{}", second.output());
    assert_eq!(third.running.wait().signal(), Some(15), "{}", third.output());
    assert_eq!(first.code(), Some(0), "{}", first.output());
    assert_eq!(fs::read_to_string(step.path("out.second")).unwrap(), format!("{pid} 1\n"));
    assert_eq!((second.output(), third.output()), (String::new(), String::new()));

    let data = step.data().lossless();
    let ranks = job::ranks(&data);
    assert_eq!((ranks[&1].pid, ranks[&1].exit_code), (pid as i32, Some(3)));
    assert_eq!((ranks[&2].pid, ranks[&2].exit_code), (third.running.pid() as i32, Some(143)));
    let expected = [("first", ranks[&0].pid), ("second", pid as i32), ("third", third.running.pid() as i32)];
    assert_eq!(written(&data), expected.map(|(name, pid)| (format!("out.{name}"), pid)).into());
    step.nothing_left(false);
}

#[test]
fn the_failure_of_the_first_program_is_reported_at_once() {
    let step = Step::new();
    let (mut first, _) = step.first("until [ -e $0.second ]; do sleep 0.05; done; exit 4");
    let mut second = step.rank(1, &format!("echo b > $0.second; {UNTIL_GO} echo c > $0.third"));
    // The launcher learns of it though another rank still runs, which may wait for the one that failed, and is still traced.
    assert_eq!(first.code(), Some(4), "{}", first.output());
    assert!(second.running.0.try_wait().unwrap().is_none());
    step.make("go");
    assert_eq!(second.code(), Some(0), "{}", second.output());
    job::until_no_tracer();
    let data = step.data().lossless();
    let pid = second.running.pid() as i32;
    assert_eq!(written(&data), ["out.second", "out.third"].map(|name| (name.to_owned(), pid)).into());
    assert_eq!(job::ranks(&data)[&0].exit_code, Some(4));
}

#[test]
fn a_tracer_that_cannot_begin_fails_all_ranks() {
    let not_empty = |step: &Step| {
        fs::create_dir_all(step.path("run").join(host())).unwrap();
        fs::write(step.path("run").join(host()).join("mine"), "").unwrap();
    };
    let link = |step: &Step| {
        fs::create_dir(step.path("other")).unwrap();
        std::os::unix::fs::symlink(step.path("other"), step.path("run")).unwrap();
    };
    for (make, why) in [(not_empty as fn(&Step), "is not empty"), (link, "is a symbolic link")] {
        let step = Step::new();
        make(&step);
        let mut ranks: Vec<_> = (0..3).map(|rank| step.rank(rank, "echo > $0.ran")).collect();
        for rank in &mut ranks {
            assert_eq!(rank.code(), Some(125), "{}", rank.output());
            assert_eq!(rank.output().matches(why).count(), 1, "{}", rank.output());
        }
        assert!(!step.path("out.ran").exists());
        job::until_no_tracer();
        step.nothing_left(false);
    }
}

#[test]
fn ranks_outlive_a_tracer_that_is_killed() {
    let step = Step::new();
    let (mut first, tracer) = step.first("echo $$ > $0.pid; echo > $0.first; exec sleep 1000");
    let mut second = step.rank(1, &format!("echo b > $0.second; {UNTIL_GO} exit 5"));
    step.until("first");
    step.until("second");
    live::send(tracer, Signal::SIGKILL);
    step.make("go");
    assert_eq!(second.code(), Some(5), "{}", second.output());
    // One that comes now reports that it is not traced, is not kept, and does not touch the dataset.
    let dataset = step.path("run").join(host());
    let before = live::datasets(&dataset);
    for options in [&[][..], &["--force"]] {
        let mut third = step.start(2, &mut step.command(options, 2, "exit 6"));
        let why = format!("the trace of this job on this node is over: {}", dataset.display());
        assert_eq!((third.code(), third.output()), (Some(6), untraced(&why)));
        live::until("the end of its tracer", || job::nodes().is_empty());
        step.nothing_left(true);
    }
    assert_eq!(live::datasets(&dataset), before);
    // The first rank ends as its program does.
    let program = fs::read_to_string(step.path("out.pid")).unwrap();
    live::send(program.trim().parse().unwrap(), Signal::SIGKILL);
    assert_eq!(first.running.wait().signal(), Some(9));
}

#[test]
fn programs_run_whenever_the_tracer_is_killed() {
    for delay in (0..6).map(|n| n * 100) {
        let step = Step { tasks: Some("2"), ..Step::new() };
        let (mut first, tracer) = step.first("exit 3");
        let mut second = step.rank(1, "exit 4");
        std::thread::sleep(std::time::Duration::from_millis(delay));
        // It may have ended.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(tracer as i32), Signal::SIGKILL);
        let codes = (first.code(), second.code());
        assert_eq!(codes, (Some(3), Some(4)), "{delay} ms: {}{}", first.output(), second.output());
    }
}

#[test]
fn the_dataset_is_complete_when_the_first_rank_is_killed() {
    let step = Step { tasks: Some("2"), ..Step::new() };
    let (mut first, _) = step.first(&format!("echo a > $0.first; {UNTIL_GO} echo c > $0.third"));
    let mut second = step.rank(1, &format!("echo b > $0.second; {UNTIL_GO} echo d > $0.fourth; exit 5"));
    step.until("first");
    step.until("second");
    live::send(first.running.pid(), Signal::SIGKILL);
    assert_eq!(first.running.wait().signal(), Some(9));
    step.make("go");
    assert_eq!(second.code(), Some(5), "{}", second.output());
    job::until_no_tracer();
    let data = step.data().lossless();
    let names: Vec<String> = written(&data).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["out.first", "out.fourth", "out.second", "out.third"]);
    assert_eq!(job::ranks(&data).values().map(|p| p.exit_code).collect::<Vec<_>>(), [Some(0), Some(5)]);
    step.nothing_left(false);
}

#[test]
fn a_rank_that_is_killed_before_it_is_traced_is_not_waited_for() {
    let step = Step { tasks: Some("2"), ..Step::new() };
    let (mut first, tracer) = step.first("echo a > $0.first");
    live::send(tracer, Signal::SIGSTOP);
    let mut second = step.rank(1, "echo b > $0.second");
    let proc = PathBuf::from(format!("/proc/{}", second.running.pid()));
    let waits = || {
        let files = fs::read_dir(proc.join("fd")).unwrap().flatten();
        let mut files = files.filter_map(|file| fs::read_link(file.path()).ok());
        files.any(|file| file.to_string_lossy().starts_with("socket:"))
            && fs::read_to_string(proc.join("stat")).unwrap().contains(") S ")
    };
    live::until("the rank to wait", waits);
    live::send(second.running.pid(), Signal::SIGKILL);
    second.running.wait();
    live::send(tracer, Signal::SIGCONT);
    assert_eq!(first.code(), Some(0), "{}", first.output());
    assert_eq!(job::tracers(), 0);
    assert_eq!(job::ranks(&step.data().lossless()).into_keys().collect::<Vec<_>>(), [0]);
}

#[test]
fn a_rank_that_comes_late_is_traced_while_the_tracer_is_there() {
    let step = Step::new();
    let (mut first, _) = step.first("echo a > $0.first");
    step.until("first");
    // It is not known how many come.
    let mut second = step.rank(1, "echo b > $0.second");
    assert_eq!((second.code(), second.output()), (Some(0), String::new()));
    assert_eq!(first.code(), Some(0), "{}", first.output());
    let mut third = step.rank(2, "echo c > $0.third; exit 6");
    let why = format!("the trace of this job on this node is over: {}", step.path("run").join(host()).display());
    assert_eq!((third.code(), third.output()), (Some(6), untraced(&why)));
    let names: Vec<String> = written(&step.data().lossless()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["out.first", "out.second"]);
}

#[test]
fn the_first_signal_is_the_programs_and_the_second_one_ends_the_trace() {
    let step = Step::new();
    let (mut first, _) =
        step.first("trap 'echo t > $0.ended; exit 0' TERM; echo > $0.first; while :; do sleep 0.05; done");
    let mut second = step.rank(1, &format!("echo b > $0.second; {UNTIL_GO} exit 5"));
    step.until("first");
    step.until("second");
    live::send(first.running.pid(), Signal::SIGTERM);
    step.until("ended");
    assert!(first.running.0.try_wait().unwrap().is_none());
    live::until("its program's end", || children(first.running.pid()) == 1);
    live::send(first.running.pid(), Signal::SIGTERM);
    assert_eq!(first.code(), Some(0), "{}", first.output());
    let data = step.data().lossless();
    assert_eq!(job::ranks(&data)[&0].exit_code, Some(0));
    assert_eq!(job::ranks(&data)[&1].exit_code, None);
    step.make("go");
    assert_eq!(second.code(), Some(5), "{}", second.output());
}

#[test]
fn what_a_ranks_program_traces_is_traced_with_it() {
    let step = Step { tasks: Some("2"), ..Step::new() };
    let inner = format!("{TRACER} -o $0.inner -- sh -c 'echo i > $0.nested' $0; echo $? > $0.status");
    let (mut first, _) = step.first(&inner);
    let mut second = step.rank(1, &inner.replace("nested", "other"));
    assert_eq!((second.code(), second.output()), (Some(0), String::new()));
    assert_eq!(first.code(), Some(0), "{}", first.output());
    let names: BTreeSet<String> = written(&step.data().lossless()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["out.nested", "out.other", "out.status"].map(str::to_owned).into());
    assert!(!step.path("out.inner").exists());
}

#[test]
fn what_stands_in_the_way_costs_the_trace_and_not_the_program() {
    let step = Step::new();
    let (mut first, _) = step.first("exit 3");
    live::until("the lock", || step.place("lock").len() == 1);
    let lock = step.place("lock").remove(0);
    assert_eq!(first.code(), Some(3));
    job::until_no_tracer();
    let socket = lock.with_extension("sock");
    let link = |path: &Path| std::os::unix::fs::symlink("/dev/null", path).unwrap();
    let directory = |path: &Path| fs::create_dir(path).unwrap();
    let cases = [
        (&lock, directory as fn(&Path), "the lock of the ranks"),
        (&lock, link, "the lock of the ranks"),
        (&socket, directory, "a socket for the ranks"),
    ];
    for (path, make, why) in cases {
        let _ = fs::remove_file(path);
        make(path);
        let mut rank = step.rank(1, "exit 7");
        assert_eq!(rank.code(), Some(7), "{}", rank.output());
        assert!(rank.output().starts_with(untraced(why).trim_end()), "{}", rank.output());
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }

    // Where there is no directory of the user's, that of all users has one.
    let all =
        "mount -t tmpfs none /dev/shm; [ ! -d /run/user ] || mount -t tmpfs none /run/user; unset XDG_RUNTIME_DIR";
    for (make, why) in [
        ("mkdir -m 777 $own", Some("is not a directory of this user's alone")),
        ("mkdir -m 700 $own; chown 65534 $own", Some("is not a directory of this user's alone")),
        ("mkdir -m 700 /dev/shm/x; ln -s x $own", Some("is not a directory of this user's alone")),
        ("umask 0", None),
    ] {
        let script = format!("own=/dev/shm/iotrace-bpf-0; {all}; {make}; exec \"$@\"");
        let inner = step.command(&[], 1, "exit 7");
        let mut rank = Command::new("unshare");
        rank.args(["--mount", "sh", "-ec", &script, "rank"]).arg(inner.get_program()).args(inner.get_args());
        rank.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        rank.stdin(Stdio::null()).stderr(fs::File::create(step.path("stderr.1")).unwrap()).stdout(Stdio::null());
        let _ = fs::remove_dir_all(step.path("run"));
        let mut rank = step.start(1, &mut rank);
        assert_eq!(rank.code(), Some(7), "{}", rank.output());
        assert_eq!(rank.output().contains(why.unwrap_or("not traced")), why.is_some(), "{}", rank.output());
        job::until_no_tracer();
    }
}

#[test]
fn under_sudo_the_directory_of_all_nodes_is_the_users() {
    let step = Step { tasks: Some("1"), ..Step::new() };
    fs::set_permissions(step.work.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = step.command(&[], 0, "id -u > $0.id");
    let mut rank = step.start(0, command.env("SUDO_UID", "65534").env("SUDO_GID", "65534"));
    assert_eq!(rank.code(), Some(0), "{}", rank.output());
    assert_eq!(fs::read_to_string(step.path("out.id")).unwrap(), "65534\n");
    for path in [step.path("run"), step.path("run").join(host())] {
        let made = fs::metadata(&path).unwrap();
        assert_eq!((made.uid(), made.gid(), made.mode() & 0o777), (65534, 65534, 0o700), "{}", path.display());
    }
}

/// Runs a launcher and what it starts; one that hangs is ended, with status 124.
fn launched<S: AsRef<std::ffi::OsStr>>(launcher: &str, command: &[S]) -> Output {
    let mut job = Command::new("timeout");
    job.args(["--kill-after=10", "120"]).args(launcher.split(' ')).args(command).stdin(Stdio::null());
    job.env_remove("SUDO_UID").env_remove("SUDO_GID").output().unwrap()
}

/// A trace of a command.
fn traced<'a>(run: &'a Path, command: &[&'a str]) -> Vec<&'a str> {
    [&[TRACER, "-o", run.to_str().unwrap(), "--"], command].concat()
}

/// The launchers of both kinds of MPI, and the variable with a rank.
fn launchers(ranks: u32) -> [(String, &'static str); 2] {
    let open = format!("{} --allow-run-as-root --oversubscribe -np {ranks}", programs::openmpi("mpirun"));
    let hydra = programs::mpich("mpiexec");
    [(open, "OMPI_COMM_WORLD_RANK"), (format!("{hydra} -n {ranks}"), "PMI_RANK")]
}

#[test]
fn a_rank_that_fails_ends_the_job() {
    for (launcher, rank) in launchers(4) {
        let work = live::scratch();
        let run = work.path().join("run");
        // Whichever is the first one: the others would wait for it for ever.
        for failing in 0..4 {
            // Hydra goes on after another exit status than 0.
            let (end, ended) = if failing < 2 && rank != "PMI_RANK" { ("exit 3", 3) } else { ("kill -KILL $$", 137) };
            let script = format!("test ${rank} = {failing} || exec sleep 1000; {end}");
            let out = launched(&launcher, &traced(&run, &["sh", "-c", &script]));
            let erred = String::from_utf8_lossy(&out.stderr);
            assert_ne!(out.status.code(), Some(124), "{launcher} hangs when rank {failing} has failed: {erred}");
            assert!(!out.status.success(), "{launcher}: {erred}");
            // The launcher does not wait for the tracer then, and does not end it: the dataset has everything.
            job::until_no_tracer();
            let data = Data::read(&run.join(host()));
            assert_eq!(job::ranks(&data)[&failing].exit_code, Some(ended), "{launcher}: {:?}", data.processes);
            fs::remove_dir_all(&run).unwrap();
        }
    }
}

#[test]
fn all_ranks_of_a_node_are_in_one_dataset() {
    for ((launcher, _), program) in launchers(4).into_iter().zip(["mpiio_mix", "mpiio_mix_mpich"]) {
        let work = live::scratch();
        let (run, out) = (work.path().join("run"), work.path().join("out"));
        fs::create_dir(&out).unwrap();
        let program = programs::build(program);
        let ran = launched(&launcher, &traced(&run, &[program.to_str().unwrap(), out.to_str().unwrap()]));
        let (output, erred) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{erred}");
        assert_eq!(live::datasets(&run), [run.join(host())]);
        assert_eq!(erred.matches(&format!(" on {}: ", host())).count(), 1, "{erred}");
        assert_eq!(output, "", "stdout is the job's");
        let data = Data::read(&run.join(host())).lossless();
        assert_eq!(job::ranks(&data).into_keys().collect::<Vec<_>>(), [0, 1, 2, 3]);
        (0..4).for_each(|rank| job::rank_is_that_of_its_environment(&data, &out, rank));
        assert_eq!(job::tracers(), 0);
    }
}

#[test]
fn two_traces_of_a_rank_are_one_after_the_other() {
    for (launcher, rank) in launchers(2) {
        let work = live::scratch();
        // The second rank is there first with its second trace, while the first one still goes on.
        let script = format!(
            "cd $0; {TRACER} --batch -o a -- sh -c 'sleep ${rank}; sleep ${rank}; echo > out.a.${rank}' &&
            {TRACER} --batch -o b -- sh -c 'echo > out.b.${rank}'"
        );
        let ran = launched(&launcher, &["sh", "-c", &script, work.path().to_str().unwrap()]);
        let erred = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && !erred.contains("not traced"), "{launcher}: {erred}");
        job::until_no_tracer();
        for trace in ["a", "b"] {
            let data = Data::read(&work.path().join(trace).join(host())).lossless();
            assert_eq!(job::ranks(&data).into_keys().collect::<Vec<_>>(), [0, 1], "{launcher}");
            let names: Vec<String> = written(&data).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, [format!("out.{trace}.0"), format!("out.{trace}.1")], "{launcher}");
        }
    }
}

#[test]
fn a_trace_of_the_launcher_and_one_of_its_ranks_do_not_wait_for_each_other() {
    for (launcher, rank) in launchers(2) {
        let work = live::scratch();
        let (outer, inner) = (work.path().join("outer"), work.path().join("inner"));
        let script = format!("echo > $0.${rank}");
        let command = traced(&inner, &["sh", "-c", &script, work.path().join("out").to_str().unwrap()]).join("\n");
        let command: Vec<&str> = launcher.split(' ').chain(command.split('\n')).collect();
        let ran = launched("env", &traced(&outer, &command));
        assert!(ran.status.success(), "{launcher}: {}", String::from_utf8_lossy(&ran.stderr));
        for dataset in [outer, inner.join(host())] {
            let names: Vec<String> = written(&Data::read(&dataset)).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["out.0", "out.1"], "{launcher}");
        }
    }
}

#[test]
fn the_tracer_is_not_bound_to_the_cpus_of_a_rank() {
    let allowed = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    };
    let work = live::scratch();
    let (run, out) = (work.path().join("run"), work.path().join("out"));
    let [(launcher, _), _] = launchers(1);
    let launcher = launcher.replace("-np 1", "-np 2 --bind-to core:overload-allowed");
    let script = format!("grep Cpus_allowed_list /proc/self/status > $0.$OMPI_COMM_WORLD_RANK; {UNTIL_GO} :");
    let command = traced(&run, &["sh", "-c", &script, out.to_str().unwrap()]);
    let mut job = Running::spawn(Command::new("timeout").arg("120").args(launcher.split(' ')).args(command));
    let program = |rank| fs::read_to_string(work.path().join(format!("out.{rank}"))).unwrap_or_default();
    live::until("the programs", || (0..2).all(|rank| program(rank).ends_with('\n')));
    let tracer = job::nodes()[0];
    let all = allowed("self");
    assert_eq!(allowed(&tracer.to_string()), all);
    for rank in 0..2 {
        assert_ne!(program(rank).split_whitespace().last(), Some(all.as_str()));
    }
    fs::write(work.path().join("out.go"), "").unwrap();
    assert!(job.wait().success());
}
