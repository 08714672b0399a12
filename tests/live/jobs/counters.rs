//! What the kernel counts of the traced processes by perf events, against what it counts of them for `getrusage`.

use crate::common::live::{self, Running, tracer, until};
use crate::common::machine::group::Group;
use crate::common::programs;
use crate::common::tools::prometheus;
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::Metric;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program, which waits twice.
struct Counted {
    program: Running,
    stdout: PathBuf,
}

impl Counted {
    fn command(work: &Path) -> (Command, PathBuf) {
        let stdout = work.join("stdout");
        let mut command = Command::new(programs::build("counted"));
        command.stdin(Stdio::piped()).stdout(fs::File::create(&stdout).unwrap());
        (command, stdout)
    }

    fn begin(mut command: Command, stdout: PathBuf) -> Self {
        let program = Running::spawn(&mut command);
        let counted = Self { program, stdout };
        counted.printed(1);
        counted
    }

    /// The nth report of it.
    fn printed(&self, times: usize) -> Value {
        let mut last = None;
        until("the program's own counts", || {
            let text = fs::read_to_string(&self.stdout).unwrap();
            last = text.split_inclusive('\n').filter_map(|l| serde_json::from_str(l).ok()).nth(times - 1);
            last.is_some()
        });
        last.unwrap()
    }

    /// It goes on: a line for it.
    fn go(&mut self) {
        use std::io::Write as _;
        self.program.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Lets it work; what that was.
    fn work(&mut self) -> BTreeMap<&'static str, f64> {
        let before = self.printed(1);
        self.go();
        let after = self.printed(2);
        let done = |name: &str| after[name].as_f64().unwrap() - before[name].as_f64().unwrap();
        ["cpu", "minor", "major", "switches"].map(|name| (name, done(name))).into()
    }
}

/// Where a tracer serves, once it has counters.
fn counting(stderr: &Path) {
    let mut address: Option<SocketAddr> = None;
    until("the counters", || {
        let text = fs::read_to_string(stderr).unwrap();
        let output =
            |l: &str| l.strip_prefix("iotrace-bpf: metrics at http://")?.strip_suffix("/metrics")?.parse().ok();
        address = address.or_else(|| text.lines().find_map(output));
        let page = address.and_then(|a| prometheus::get(a, "/metrics", "text/plain").ok());
        page.is_some_and(|(_, page)| page.contains("iotrace_target_page_faults_total{kind=\"minor\"} "))
    });
}

/// The last value of each figure of the targets, by figure and part; a total never goes back.
fn counted(dataset: &Path) -> BTreeMap<String, f64> {
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    Dataset::open(dataset)
        .unwrap()
        .rows(|row: Metric| {
            if row.name.starts_with("target_") {
                let name = [Some(row.name.to_owned()), row.label].into_iter().flatten().collect::<Vec<_>>().join(" ");
                assert!(last.insert(name, row.value).is_none_or(|before| before < row.value), "{}", row.name);
            }
            Ok(())
        })
        .unwrap();
    last
}

/// What was done was counted, but for a little, and at most a little more: how so many programs begin and end.
fn are_close(counted: &BTreeMap<String, f64>, done: &BTreeMap<&str, f64>, programs: f64) {
    println!("{done:?}\n{counted:?}");
    // Perf has not: faults of the kernel itself on behalf of a process (mm/memory.c: mm_account_fault, without registers), and the
    // switches of a thread that has let go of its counters and ends (kernel/exit.c: do_exit).
    for (figure, truth, less, more) in [
        ("target_page_faults minor", "minor", 100.0, 2000.0),
        ("target_page_faults major", "major", 10.0, 200.0),
        ("target_context_switches", "switches", 35.0, 200.0),
    ] {
        let (figure, truth) = (counted[figure], done[truth]);
        let close = (truth - less * programs..=truth + more * programs).contains(&figure);
        assert!(close, "{figure}, {truth}: {counted:?}");
    }
    // The program's clock ticks more coarsely.
    let ratio = counted["target_cpu_seconds"] / done["cpu"];
    assert!((0.9..1.3).contains(&ratio), "{ratio}");
    assert!(counted.contains_key("target_cpu_migrations"), "{counted:?}");
    assert!(done["minor"] >= 14_000.0 && done["switches"] >= 1400.0, "{done:?}");
}

/// A tracer of what there is already, until it has counters.
fn attached(work: &Path, whom: &[&str]) -> (Running, PathBuf) {
    let [dataset, stderr] = ["run.iotrace", "stderr"].map(|name| work.join(name));
    let mut command = tracer();
    command.args(["--no-tui", "--metrics", "127.0.0.1:0"]).args(whom).arg("-o").arg(&dataset);
    let tracer = Running::spawn(command.stdout(Stdio::null()).stderr(fs::File::create(&stderr).unwrap()));
    counting(&stderr);
    (tracer, dataset)
}

/// The tracer ends by a signal, and has counted.
fn end((mut tracer, dataset): (Running, PathBuf)) -> BTreeMap<String, f64> {
    live::send(live::child_of(tracer.pid()), nix::sys::signal::Signal::SIGINT);
    assert!(tracer.wait().success());
    counted(&dataset)
}

#[test]
fn all_threads_and_children_of_a_command_are_counted_from_its_first_instruction_on() {
    let work = live::scratch();
    let dataset = work.path().join("run.iotrace");
    let (program, stdout) = Counted::command(work.path());
    let mut command = tracer();
    command.arg("-o").arg(&dataset).arg("--").arg(program.get_program());
    command.stdin(Stdio::piped()).stdout(fs::File::create(&stdout).unwrap()).stderr(Stdio::null());
    let mut traced = Counted::begin(command, stdout);
    let done = traced.work();
    traced.go();
    assert!(traced.program.wait().success());
    are_close(&counted(&dataset), &done, 1.0);
}

#[test]
fn all_ranks_of_a_node_are_counted_together() {
    let work = live::scratch();
    let [place, run] = ["place", "run"].map(|name| work.path().join(name));
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
    let begin = |rank: usize| {
        let dir = work.path().join(rank.to_string());
        fs::create_dir(&dir).unwrap();
        let (program, stdout) = Counted::command(&dir);
        let mut command = tracer();
        command.arg("-o").arg(&run).arg("--").arg(program.get_program());
        // As a step of Slurm is seen by its ranks.
        command.env("SLURM_JOB_ID", "7").env("SLURM_STEP_ID", "0").env("SLURM_STEP_NUM_TASKS", "2");
        command.env("SLURM_STEP_TASKS_PER_NODE", "2").env("SLURM_NODEID", "0");
        command.env("SLURM_PROCID", rank.to_string()).env("XDG_RUNTIME_DIR", &place);
        command.stdin(Stdio::piped()).stdout(fs::File::create(&stdout).unwrap()).stderr(Stdio::null());
        Counted::begin(command, stdout)
    };
    let mut ranks = [begin(0), begin(1)];
    let mut done = BTreeMap::new();
    for (name, n) in ranks.iter_mut().flat_map(Counted::work) {
        *done.entry(name).or_default() += n;
    }
    for rank in &mut ranks {
        rank.go();
    }
    assert!(ranks.iter_mut().all(|rank| rank.program.wait().success()));
    are_close(&counted(&live::datasets(&run)[0]), &done, 2.0);
}

#[test]
fn threads_that_run_already_and_what_they_start_are_counted() {
    let work = live::scratch();
    let (command, stdout) = Counted::command(work.path());
    let mut program = Counted::begin(command, stdout);
    let tracer = attached(work.path(), &["-p", &program.program.pid().to_string()]);
    let done = program.work();
    are_close(&end(tracer), &done, 1.0);
}

#[test]
fn only_members_of_a_control_group_are_counted() {
    let work = live::scratch();
    let group = Group::new("counted");
    let [inside, outside] = ["inside", "outside"].map(|name| work.path().join(name));
    let begin = |dir: &Path, wrap: &dyn Fn(&str) -> [String; 3]| {
        fs::create_dir(dir).unwrap();
        let (program, stdout) = Counted::command(dir);
        let [shell, option, script] = wrap(&format!("exec {}", program.get_program().to_string_lossy()));
        let mut command = Command::new(shell);
        command.args([option, script]).stdin(Stdio::piped()).stdout(fs::File::create(&stdout).unwrap());
        Counted::begin(command, stdout)
    };
    let mut member = begin(&inside, &|then| group.script(then));
    let mut other = begin(&outside, &|then| ["sh".into(), "-c".into(), then.into()]);
    let tracer = attached(work.path(), &["--cgroup", &group.0.to_string_lossy()]);
    other.work();
    let done = member.work();
    are_close(&end(tracer), &done, 1.0);
    drop(member);
}

#[test]
fn a_whole_node_is_counted_without_the_time_of_its_cpus() {
    let work = live::scratch();
    let (command, stdout) = Counted::command(work.path());
    let mut program = Counted::begin(command, stdout);
    let tracer = attached(work.path(), &["--system", "--aggregate"]);
    let done = program.work();
    let counted = end(tracer);
    println!("{done:?}\n{counted:?}");
    assert!(counted["target_page_faults minor"] >= done["minor"], "{counted:?}");
    assert!(counted["target_context_switches"] >= done["switches"], "{counted:?}");
    // That is `node_cpu_seconds`.
    assert!(!counted.contains_key("target_cpu_seconds"), "{counted:?}");
}

#[test]
fn more_threads_than_there_is_room_for_cost_their_counters_and_not_the_trace() {
    let work = live::scratch();
    let [dataset, stdout, stderr] = ["run.iotrace", "stdout", "stderr"].map(|name| work.path().join(name));
    let script = "import threading, time\n\
        for _ in range(300): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n\
        print('begun', flush=True)\n\
        time.sleep(600)";
    let mut program = Command::new("python3");
    let program = Running::spawn(program.args(["-c", script]).stdout(fs::File::create(&stdout).unwrap()));
    until("the threads", || fs::read_to_string(&stdout).unwrap() == "begun\n");
    let mut tracer = tracer();
    tracer.args(["--no-tui", "--duration", "3s", "-p", &program.pid().to_string(), "-o"]).arg(&dataset);
    // A tracer raises its limit where it may.
    let mut limited = Command::new("setpriv");
    limited.args(["--bounding-set=-sys_resource", "--inh-caps=-sys_resource"]);
    limited.args(["sh", "-c", "ulimit -n 512; exec \"$@\"", "sh"]).arg(tracer.get_program()).args(tracer.get_args());
    let status = limited.stdout(Stdio::null()).stderr(fs::File::create(&stderr).unwrap()).status().unwrap();
    assert!(status.success(), "{}", fs::read_to_string(&stderr).unwrap());
    let data = live::Data::read(&dataset);
    let output = &data.meta["counters_missing"];
    let left_out: usize = output
        .split("; ")
        .find_map(|s| s.strip_suffix(" threads or CPUs: more than are counted"))
        .unwrap()
        .parse()
        .unwrap();
    assert!((200..301).contains(&left_out), "{output}");
    assert!(counted(&dataset).contains_key("target_context_switches"), "{output}");
}

#[test]
fn counters_that_this_machine_lacks_are_reported() {
    let work = live::scratch();
    let data = live::trace(work.path(), &[], &["true"]).data();
    let hardware = counted(&work.path().join("run.iotrace")).keys().any(|name| name.starts_with("target_hardware"));
    let output =
        data.meta.get("counters_missing").is_some_and(|m| m.contains("perf_event hardware: target_hardware_events"));
    assert_ne!(hardware, output, "{:?}", data.meta);
    // The same as the kernel's list of what counts.
    assert_eq!(hardware, Path::new("/sys/bus/event_source/devices/cpu").exists(), "{:?}", data.meta);
}
