//! Every process of the node, or of a control group, whenever it was started and by which process: its calls, and its identity.

use crate::common::live::{self, Data, Running};
use crate::common::machine::group::{self, Group};
use crate::common::programs;
use iotrace_bpf::rows::{Coverage, Process, Span};
use iotrace_bpf::vocabulary::{Layer, flag};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// Longer than any trace here.
const SECONDS: &str = "600";
/// Programs that are gone in no time.
const STORM: usize = 400;

/// `looper` in a directory of its own, at work.
fn looper(dir: &Path) -> Running {
    fs::create_dir_all(dir).unwrap();
    let truth = dir.join("truth");
    let running = Running::spawn(Command::new(programs::build("looper")).args([dir, &truth]).arg(SECONDS));
    live::until("looper", || live::truth(&truth).ready && live::truth(&truth).pwrites > 5);
    running
}

/// Ends a trace, whatever went wrong before.
struct Ends(PathBuf);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "");
    }
}

/// Traces while `meanwhile` does what it does; a command of the tracer's waits for that.
fn trace(work: &Path, options: &[&str], meanwhile: impl FnOnce() + Send + 'static) -> Data {
    let [up, done] = ["up", "done"].map(|name| work.join(name));
    let waits = format!("touch {}; while ! [ -e {} ]; do sleep 0.05; done", up.display(), done.display());
    let others = thread::spawn(move || {
        let _ends = Ends(done);
        live::until("the trace", || up.exists());
        meanwhile();
    });
    let traced = live::trace(work, &[options, &["--no-tui"]].concat(), &["sh", "-c", &waits]);
    others.join().unwrap();
    traced.data().lossless()
}

/// The writes of a looper that returned: none is missing in between.
fn records<'a>(data: &'a Data, dir: &Path) -> Vec<&'a Span> {
    let path = dir.join("looper.dat");
    let mut calls: Vec<&Span> = data.calls("pwrite64").filter(|s| data.path(s) == Some(&path)).collect();
    calls.retain(|s| s.flags & flag::UNFINISHED == 0);
    calls.sort_by_key(|s| s.start_ns);
    assert!(calls.windows(2).all(|pair| pair[1].offset.unwrap() == pair[0].offset.unwrap() + 4096));
    calls
}

fn process(data: &Data, pid: u32) -> &Process {
    let mut of = data.processes.values().filter(|p| p.pid == pid as i32);
    let found = of.next().unwrap_or_else(|| panic!("no process {pid}"));
    assert!(of.next().is_none(), "process {pid} is there once");
    found
}

/// Writes 50 times, and has another process look at what the kernel counts for it (Documentation/filesystems/proc.rst).
const COUNTS: &str =
    "i=0; while [ $i -lt 50 ]; do echo $i >> counted; i=$((i+1)); done; cat /proc/$$/io > io; echo $$ > pid";

/// The number of that process, and the bytes and calls that it wrote.
fn written(dir: &Path) -> (i32, i64, usize) {
    let io = fs::read_to_string(dir.join("io")).unwrap();
    let of = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse::<i64>().unwrap();
    (fs::read_to_string(dir.join("pid")).unwrap().trim().parse().unwrap(), of("wchar:"), of("syscw:") as usize)
}

/// Two programs, one after the other, with the same number of a process.
fn same_number(dir: &Path) {
    let start = |name: &str, input: &str| {
        let (input, output) = (format!("if={input}"), format!("of={}/{name}", dir.display()));
        let mut dd = Command::new("dd").args([&input, &output, "bs=100", "count=1", "status=none"]).spawn().unwrap();
        assert!(dd.wait().unwrap().success());
        dd.id()
    };
    let number = start("first", "/dev/zero");
    // Documentation/admin-guide/sysctl/kernel.rst: the next one has the number after this, unless another process is faster.
    let again = (0..1000).find(|_| {
        fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).unwrap();
        start("second", "/dev/urandom") == number
    });
    assert!(again.is_some(), "{number} was not given again");
}

/// What the kernel starts for a program that crashes, core(5); as it was in the end.
struct CoreHandler(String);

impl CoreHandler {
    const PLACE: &str = "/proc/sys/kernel/core_pattern";

    fn new(command: &str) -> Self {
        let before = Self(fs::read_to_string(Self::PLACE).unwrap());
        // As long as the kernel takes.
        assert!(command.len() < 127, "{command}");
        fs::write(Self::PLACE, format!("|{command}")).unwrap();
        before
    }
}

impl Drop for CoreHandler {
    fn drop(&mut self) {
        let _ = fs::write(Self::PLACE, &self.0);
    }
}

/// Has a program crash, whose core the kernel gives to one that it starts itself: that is no child of a process.
fn crash(dir: &Path) {
    let out = dir.join("core");
    let _handler = CoreHandler::new(&format!("/usr/bin/dd of={} status=none iflag=fullblock", out.display()));
    let crashes = Command::new("sh").args(["-c", "ulimit -c unlimited; kill -SEGV $$"]).status().unwrap();
    assert!(!crashes.success());
    // The one that crashes has ended when its core is taken, not when it is written.
    live::until("the core", || fs::metadata(&out).is_ok_and(|m| m.len() > 4096));
    let writes = |process: fs::DirEntry| {
        fs::read_to_string(process.path().join("cmdline")).is_ok_and(|line| line.contains(out.to_str().unwrap()))
    };
    live::until("the end of its writer", || !fs::read_dir("/proc").unwrap().flatten().any(writes));
}

/// I/O of processes that are no children of the tracer, nor of any process that it knows of.
fn run_others(dir: &Path) {
    let echo = format!("i=0; while [ $i -lt {STORM} ]; do /bin/echo $i >> {}/storm; i=$((i+1)); done", dir.display());
    let storm = Command::new("sh").args(["-c", &echo]).status().unwrap();
    assert!(storm.success());
    assert!(Command::new("sh").args(["-c", COUNTS]).current_dir(dir).status().unwrap().success());
    let file = dir.join("nobody");
    let mut other = Command::new("dd");
    other.args(["if=/dev/zero", "bs=1000", "count=3", "status=none"]).arg(format!("of={}", file.display()));
    assert!(other.uid(65534).gid(65534).status().unwrap().success());
    same_number(dir);
    crash(dir);
    // An orphan, of a process that had ended before it did anything.
    let late = format!("(sleep 0.3; echo late > {}/late; touch {0}/over) & true", dir.display());
    assert!(Command::new("setsid").args(["sh", "-c", &late]).status().unwrap().success());
    live::until("the orphan", || dir.join("over").exists());
}

/// Each program of the storm wrote its own number, as one process that no other is.
fn compare_storm(data: &Data, dir: &Path) {
    let storm = dir.join("storm");
    let writes: Vec<&Span> = data.calls("write").filter(|s| data.path(s) == Some(&storm)).collect();
    assert_eq!(writes.len(), STORM);
    let bytes: i64 = writes.iter().map(|s| s.bytes.unwrap()).sum();
    assert_eq!(bytes, fs::metadata(&storm).unwrap().len() as i64);
    let numbers: BTreeSet<(i32, &str, i64)> = writes
        .iter()
        .map(|s| {
            let p = &data.processes[&s.process_ix];
            assert!(p.exe.as_deref().unwrap().ends_with("/echo") && p.cmdline[0] == "/bin/echo", "{p:?}");
            assert_eq!((p.pid, p.exit_code, p.user.as_deref()), (s.pid, Some(0), Some("root")));
            (p.process_ix, &*p.cmdline[1], s.bytes.unwrap())
        })
        .collect();
    assert_eq!(numbers.len(), STORM);
    assert!(numbers.iter().all(|(_, number, bytes)| number.len() as i64 + 1 == *bytes), "{numbers:?}");
    let text_out: BTreeSet<usize> = numbers.iter().map(|(_, number, _)| number.parse().unwrap()).collect();
    assert_eq!(text_out, (0..STORM).collect());
}

/// The writes of a process are those that the kernel itself counts, up to the moment when that was read.
fn compare_counts(data: &Data, dir: &Path) {
    let (pid, bytes, calls) = written(dir);
    let counted = dir.join("counted");
    let own: Vec<&Span> = data.calls("write").filter(|s| s.pid == pid && data.path(s) == Some(&counted)).collect();
    assert_eq!((own.iter().map(|s| s.bytes.unwrap()).sum::<i64>(), own.len()), (bytes, calls));
}

/// A process of another user, and two with the same number.
fn compare_owners(data: &Data, dir: &Path) {
    let nobody = dir.join("nobody");
    let other = data.calls("write").find(|s| data.path(s) == Some(&nobody)).unwrap();
    let other = &data.processes[&other.process_ix];
    assert_eq!((other.uid, other.user.as_deref(), other.end_ns.is_some()), (65534, Some("nobody"), true));
    let writer = |name: &str| {
        let file = dir.join(name);
        let of = data.calls("write").filter(|s| data.path(s) == Some(&file));
        let last = of.max_by_key(|s| s.start_ns).unwrap();
        &data.processes[&last.process_ix]
    };
    let [first, second] = ["first", "second"].map(writer);
    assert_eq!(first.pid, second.pid);
    assert!(first.process_ix != second.process_ix && first.end_ns.unwrap() <= second.start_ns);
    assert_eq!((&*first.cmdline[1], &*second.cmdline[1]), ("if=/dev/zero", "if=/dev/urandom"));
}

/// The handler of core dumps, which the kernel starts, wrote all of the core.
fn compare_core_handler(data: &Data, dir: &Path) {
    let core = dir.join("core");
    let writes: Vec<&Span> = data.calls("write").filter(|s| data.path(s) == Some(&core)).collect();
    let bytes: i64 = writes.iter().filter_map(|s| s.bytes).sum();
    assert_eq!(bytes, fs::metadata(&core).unwrap().len() as i64);
    let handler = &data.processes[&writes[0].process_ix];
    assert!(handler.exe.as_deref().unwrap().ends_with("/dd") && handler.cmdline[0] == "/usr/bin/dd", "{handler:?}");
}

#[test]
fn every_process_of_the_node_is_traced_as_itself() {
    let work = live::scratch();
    let dir = work.path().to_owned();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    let before = looper(&dir.join("before"));
    let meanwhile = {
        let dir = dir.clone();
        move || run_others(&dir)
    };
    let data = trace(&dir, &["--system", "--layers", "syscall,stdio"], meanwhile);

    assert_eq!(data.meta["mode"], "system");
    assert_eq!(data.meta["command"], "--system");
    let pid = before.pid() as i32;
    let calls = records(&data, &dir.join("before"));
    assert!(calls.len() > 10 && calls.iter().all(|s| s.pid == pid), "{}", calls.len());
    let running = process(&data, before.pid());
    assert!(running.exe.as_deref().unwrap().ends_with("/looper") && running.end_ns.is_none());
    assert!(data.calls("fwrite").any(|s| s.pid == pid));

    compare_storm(&data, &dir);
    compare_counts(&data, &dir);
    compare_owners(&data, &dir);
    compare_core_handler(&data, &dir);

    let late = dir.join("late");
    assert_eq!(data.calls("write").filter(|s| data.path(s) == Some(&late)).count(), 1);

    // The tracer is no part of what it sees; the command that it ran is.
    let command = data.processes.values().find(|p| p.cmdline.last().is_some_and(|a| a.contains("/done"))).unwrap();
    assert!(data.processes.values().all(|p| p.pid != command.ppid), "the tracer");
    let processes: BTreeSet<i32> = data.processes.values().map(|p| p.process_ix).collect();
    assert!(data.spans.iter().all(|s| processes.contains(&s.process_ix)));
}

#[test]
fn only_processes_in_a_control_group_or_that_enter_it_are_traced() {
    let work = live::scratch();
    let dir = work.path().to_owned();
    let group = Group::new("members");
    let sub = group.0.join("job");
    fs::create_dir(&sub).unwrap();
    let loopers = ["inside", "comes", "outside"].map(|name| looper(&dir.join(name)));
    fs::write(sub.join("cgroup.procs"), loopers[0].pid().to_string()).unwrap();
    let [inside, comes, outside] = loopers.each_ref().map(Running::pid);
    let moved: PathBuf = dir.join("moved");
    let meanwhile = {
        let (dir, group, sub, moved) = (dir.clone(), group.0.clone(), sub.clone(), moved.clone());
        move || {
            fs::write(&moved, live::truth(&dir.join("comes/truth")).pwrites.to_string()).unwrap();
            fs::write(group.join("cgroup.procs"), comes.to_string()).unwrap();
            // One that comes in by itself, and one that is put there when it is made.
            let script = format!("echo $$ > {}/cgroup.procs; exec dd if=/dev/zero bs=1k count=7 of=", group.display());
            let own = Command::new("sh").args(["-c", &format!("{script}{}/own status=none", dir.display())]).status();
            assert!(own.unwrap().success());
            let mut put = Command::new(programs::build("into"));
            put.arg(&sub).args(["dd", "if=/dev/zero", "bs=1k", "count=9", "status=none"]);
            assert!(put.arg(format!("of={}/put", dir.display())).status().unwrap().success());
            let out = format!("of={}/not", dir.display());
            let not = Command::new("dd").args(["if=/dev/zero", "bs=1k", "count=5", "status=none", &out]).status();
            assert!(not.unwrap().success());
            let truth = dir.join("comes/truth");
            let now = live::truth(&truth).pwrites;
            live::until("the one that has come in", || live::truth(&truth).pwrites > now + 20);
        }
    };
    let name = group.0.to_str().unwrap().to_owned();
    let data = trace(&dir, &["--cgroup", &name, "--layers", "syscall,stdio"], meanwhile);
    drop(loopers);
    assert_eq!(data.meta["mode"], "cgroup");

    let path = format!("/{}", group.0.file_name().unwrap().to_string_lossy());
    let below = format!("{path}/job");
    assert!(records(&data, &dir.join("inside")).len() > 20);
    assert_eq!(process(&data, inside).cgroup.as_deref(), Some(&*below));
    // From when it came in, nothing is missing; it may have been in a call.
    let calls = records(&data, &dir.join("comes"));
    let first: i64 = fs::read_to_string(&moved).unwrap().parse().unwrap();
    assert!(calls.len() > 20 && calls[0].offset.unwrap() / 4096 >= first);
    let came = process(&data, comes);
    assert_eq!(came.cgroup.as_deref(), Some(&*path));
    assert!(came.exe.as_deref().unwrap().ends_with("/looper"), "{came:?}");
    // Its file was open before: known all the same, and so are the calls of its library.
    assert!(data.calls("fwrite").any(|s| s.pid == comes as i32));

    let dd = |name: &str, count: i64, cgroup: &str| {
        let file = dir.join(name);
        let writes: Vec<&Span> = data.calls("write").filter(|s| data.path(s) == Some(&file)).collect();
        assert_eq!(writes.iter().map(|s| s.bytes.unwrap()).sum::<i64>(), count << 10, "{name}");
        let process = &data.processes[&writes[0].process_ix];
        assert_eq!((process.cgroup.as_deref(), process.cmdline[0].as_str()), (Some(cgroup), "dd"));
    };
    dd("own", 7, &path);
    dd("put", 9, &below);
    let all: Vec<_> = data.processes.values().map(|p| (p.pid, p.cgroup.clone())).collect();
    assert!(all.iter().all(|(_, cgroup)| cgroup.as_deref().is_some_and(|c| c.starts_with(&path))), "{all:?}");
    assert!(all.iter().all(|(pid, _)| *pid != outside as i32));
}

/// As runtimes and schedulers make them; where there are hierarchies of version 1 in one of those.
#[test]
fn containers_and_jobs_are_known_by_their_control_groups() {
    let work = live::scratch();
    let version_1 = Path::new("/sys/fs/cgroup/freezer");
    let root = if version_1.exists() { version_1 } else { group::unified() };
    let id = "4d1f9bb0f24fdb2d6d07b2ee1b5a6b5ad21ca6a6ee1c44f0a6b1f1a3e43ab0c1";
    let groups = [format!("docker/{id}"), "slurm/uid_0/job_7/step_3".to_owned()];
    let in_group = |group: &String| {
        fs::create_dir_all(root.join(group)).unwrap();
        format!("sh -c 'echo $$ > {}/{group}/cgroup.procs; exec sleep 1'", root.display())
    };
    let script: Vec<String> = groups.iter().map(in_group).collect();
    let data = live::trace(work.path(), &["--layers", "syscall"], &["sh", "-c", &script.join("; ")]).data().lossless();
    for group in &groups {
        // Those in it have ended, and so its parents are empty.
        for path in Path::new(group).ancestors().filter(|p| *p != Path::new("")) {
            let _ = fs::remove_dir(root.join(path));
        }
    }
    let sleeps: Vec<&Process> =
        data.processes.values().filter(|p| p.cmdline.first().is_some_and(|a| a == "sleep")).collect();
    let text_out: Vec<[Option<&str>; 4]> =
        sleeps.iter().map(|p| [&p.cgroup, &p.container, &p.job_id, &p.step_id].map(|word| word.as_deref())).collect();
    let paths = groups.map(|group| format!("/{group}"));
    let container = format!("docker://{id}");
    let expected = [[Some(&*paths[0]), Some(&*container), None, None], [Some(&*paths[1]), None, Some("7"), Some("3")]];
    assert_eq!(text_out, expected, "{}", root.display());
}

#[test]
fn processes_that_are_not_named_get_library_probes_only_on_request() {
    let members = Group::new("probes");
    let group = members.0.to_str().unwrap();
    let program = programs::build("stdio_mix");
    let warns = |traced: &live::Traced| traced.stderr.starts_with("iotrace-bpf: library probes run in every process ");
    for wide in [&["--system"][..], &["--cgroup", group]] {
        let trace = |more: &[&str], then: &str| {
            let work = live::scratch();
            let script = members.script(&format!("{} {}{then}", program.display(), work.path().display()));
            let traced = live::trace_with_messages(work.path(), &[wide, more].concat(), &script);
            let data = traced.data();
            (traced, data, work)
        };
        let (traced, data, _work) = trace(&[], "");
        assert!(!traced.stderr.contains("library probes"), "{}", traced.stderr);
        let attached: BTreeSet<Layer> =
            data.coverage.iter().filter(|c| c.status == "attached").map(|c| c.layer).collect();
        assert_eq!(attached, BTreeSet::from([Layer::Syscall, Layer::Block]));
        for layer in [Layer::Netcdf, Layer::Pnetcdf, Layer::Hdf5, Layer::Mpiio, Layer::Mpi, Layer::Stdio] {
            let verdicts: Vec<_> = data.coverage.iter().filter(|c| c.layer == layer).collect();
            let why = format!("off by default with {}; --layers {},syscall,block turns it on", wide[0], layer.name());
            let is = |c: &&&Coverage| c.status == "skipped" && c.reason.as_deref() == Some(&*why);
            assert!(!verdicts.is_empty() && verdicts.iter().filter(is).count() == verdicts.len(), "{verdicts:?}");
        }
        // A process that is not named is not held: it stays until it is looked into.
        let (traced, data, _work) = trace(&["--layers", "stdio,syscall"], "; sleep 2");
        assert!(warns(&traced), "{}", traced.stderr);
        assert!(data.coverage.iter().any(|c| c.layer == Layer::Stdio && c.status == "attached"));
        assert!(data.coverage.iter().all(|c| !c.reason.as_deref().is_some_and(|why| why.contains("off by default"))));
        // A phase is asked for, too.
        let (traced, data, _work) = trace(&["--phase", "main"], "");
        assert!(!warns(&traced), "{}", traced.stderr);
        assert!(data.coverage.iter().all(|c| c.layer != Layer::Stdio || c.status == "skipped"));
    }
}

#[test]
fn a_path_that_is_no_control_group_is_an_error() {
    let work = live::scratch();
    let refused = |name: &str| {
        let out = live::tracer().args(["--cgroup", name, "--duration", "1s"]).output().unwrap();
        assert_eq!(out.status.code(), Some(125));
        String::from_utf8(out.stderr).unwrap()
    };
    let text_out = refused("/no/such");
    assert!(text_out.contains("no such control group: /no/such"), "{text_out}");
    let text_out = refused(work.path().to_str().unwrap());
    assert!(text_out.contains("is not a control group of version 2"), "{text_out}");
    let out = live::tracer().args(["--system", "-p", "1"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
}
