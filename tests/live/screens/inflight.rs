//! What is stuck is shown while it is: its call, its file, where it is in the kernel and in the program.

use crate::common::live::{self, Data, Running};
use crate::common::machine::device::{self, Device, run};
use crate::common::{programs, sql};
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::Metric;
use iotrace_bpf::vocabulary::{Layer, flag};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system that takes no writes, as long as this lives.
struct Frozen<'a>(&'a Path);

impl<'a> Frozen<'a> {
    fn new(mount: &'a Path) -> Self {
        run("fsfreeze", &["-f", mount.to_str().unwrap()]);
        Self(mount)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(self.0).status();
    }
}

/// A loop device, as long as this lives.
struct Attached(String);

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// `stuck`, traced, right before the call that it is going to be stuck in.
struct Stuck {
    running: Running,
    tracer: u32,
    pid: u32,
    dataset: PathBuf,
    output: PathBuf,
}

impl Stuck {
    fn start(work: &Path, what: &str, file: &Path) -> Self {
        let (dataset, out, output) = (work.join("run.iotrace"), work.join("stdout"), work.join("stderr"));
        let mut tracer = live::tracer();
        tracer.arg("-o").arg(&dataset).arg("--").arg(programs::build("stuck")).arg(what).arg(file);
        tracer.stdin(Stdio::piped()).stdout(fs::File::create(&out).unwrap());
        let running = Running::spawn(tracer.stderr(fs::File::create(&output).unwrap()));
        live::until("the program", || fs::read_to_string(&out).unwrap().contains("ready"));
        let tracer = live::child_of(running.pid());
        let is = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.starts_with("stuck"));
        let children = fs::read_to_string(format!("/proc/{tracer}/task/{tracer}/children")).unwrap();
        let pid = children.split_whitespace().filter_map(|p| p.parse().ok()).find(is).unwrap();
        Self { running, tracer, pid, dataset, output }
    }

    /// Lets it make the call, and waits until it is in this function of the kernel.
    fn go(&mut self, function: &str) {
        self.running.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        live::until(function, || self.kernel().contains(&function.to_owned()));
    }

    /// Its functions inside the kernel, by the kernel.
    fn kernel(&self) -> Vec<String> {
        let text = fs::read_to_string(format!("/proc/{}/stack", self.pid)).unwrap();
        let name = |line: &str| Some(line.strip_prefix("[<0>] ")?.split_once('+')?.0.to_owned());
        text.lines().filter_map(name).collect()
    }

    /// Asks for the `n`-th dump.
    fn dump(&self, n: usize) -> String {
        live::send(self.tracer, Signal::SIGUSR1);
        let dumps = || fs::read_to_string(&self.output).unwrap();
        live::until("a dump", || dumps().matches("in flight ").count() == n && dumps().contains("_start"));
        let text = dumps();
        text[text.rfind("in flight ").unwrap()..].to_owned()
    }
}

impl Drop for Stuck {
    /// No process stays behind when a test fails: neither ends by itself.
    fn drop(&mut self) {
        if self.running.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            for pid in [self.pid, self.tracer] {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), Signal::SIGKILL);
            }
        }
    }
}

/// The functions of a stack in a dump.
fn stack(dump: &str, name: &str) -> Vec<String> {
    let lines = dump.lines().map(str::trim_start).skip_while(|l| !l.starts_with(&format!("{name} ")));
    let lines = lines.enumerate().take_while(|(i, l)| *i == 0 || !l.starts_with("user "));
    let function = |line: &str| line.split(" (").next().unwrap().trim().to_owned();
    lines.map(|(i, l)| function(if i == 0 { l.strip_prefix(name).unwrap() } else { l })).collect()
}

fn ids(dump: &str) -> Vec<i64> {
    let id = |line: &str| line.rsplit_once('[')?.1.split_once(" for ")?.0.parse().ok();
    dump.lines().filter_map(id).collect()
}

#[test]
fn a_write_that_is_stuck_is_shown_with_its_file_and_stacks() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let file = device.mount.join("state");
    let mut stuck = Stuck::start(work.path(), "write", &file);
    let frozen = Frozen::new(&device.mount);
    stuck.go("vfs_write");
    let first = stuck.dump(1);
    let second = stuck.dump(2);
    let truth = stuck.kernel();
    drop(frozen);
    assert!(stuck.running.wait().success());
    let data = Data::read(&stuck.dataset);

    for dump in [&first, &second] {
        let path = file.to_str().unwrap();
        let call = |op: &str| format!("{op} bytes 65536 at 0 {path}  [");
        assert!(dump.contains(&format!("pid {}\n", stuck.pid)), "{dump}");
        assert!(dump.contains(&call("stdio fwrite")) && dump.contains(&call("syscall write")), "{dump}");
        assert_eq!(stack(dump, "kernel"), truth, "{dump}");
        // From the system call, below the call with a return probe, to the beginning of the program.
        let user = stack(dump, "user");
        let at = |name: &str| user.iter().position(|f| f == name).unwrap_or_else(|| panic!("{name}: {dump}"));
        assert!(at("save_state") + 1 == at("time_step") && at("time_step") + 1 == at("main"), "{dump}");
        assert!(user[0].contains("write") && at("main") < at("_start"), "{dump}");
    }
    // The same calls in both, and in the dataset.
    assert_eq!(ids(&first), ids(&second));
    let ops: Vec<&str> =
        ids(&first).iter().map(|id| data.spans.iter().find(|s| s.span_id == *id).unwrap().op).collect();
    assert_eq!(ops, ["fwrite", "write"]);
    assert!(data.spans.iter().all(|s| s.flags & flag::UNFINISHED == 0));
}

#[test]
fn a_read_that_ends_with_its_process_is_unfinished_and_no_flood_of_signals_matters() {
    let work = live::scratch();
    let pipe = work.path().join("pipe");
    run("mkfifo", &[pipe.to_str().unwrap()]);
    let mut stuck = Stuck::start(work.path(), "read", &pipe);
    stuck.running.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let inside = format!("/proc/{}/syscall", stuck.pid);
    let reads = |text: String| text.starts_with("0 0x") && !text.starts_with("0 0x0 ");
    live::until("the read of the pipe", || reads(fs::read_to_string(&inside).unwrap()));
    let dump = stuck.dump(1);
    assert!(dump.contains("stdio fread bytes 100 ") && dump.contains(&format!(" {}  [", pipe.display())), "{dump}");
    // Many at a time are not more than a few, and the trace still ends.
    for _ in 0..1000 {
        live::send(stuck.tracer, Signal::SIGUSR1);
    }
    live::send(stuck.tracer, Signal::SIGTERM);
    let status = stuck.running.wait();
    assert_eq!(status.code(), Some(128 + 15));
    let data = Data::read(&stuck.dataset);
    let open: Vec<_> = data.spans.iter().filter(|s| s.flags & flag::UNFINISHED != 0).collect();
    let [call] = open.as_slice() else { panic!("{open:?}") };
    assert_eq!((call.op, call.layer, call.span_id, call.ret), ("fread", Layer::Stdio, ids(&dump)[0], None));
    assert!(call.dur_ns > 0);
}

#[test]
fn what_is_still_stuck_when_the_trace_ends_is_unfinished() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let file = device.mount.join("state");
    let mut stuck = Stuck::start(work.path(), "write", &file);
    let frozen = Frozen::new(&device.mount);
    stuck.go("vfs_write");
    // It cannot end in this write: the trace ends without it.
    live::send(stuck.tracer, Signal::SIGTERM);
    live::until("the dataset", || fs::read_to_string(&stuck.output).unwrap().contains("dataset in"));
    assert!(stuck.kernel().contains(&"vfs_write".to_owned()));
    let data = Data::read(&stuck.dataset).lossless();
    drop(frozen);
    assert_eq!(stuck.running.wait().code(), Some(128 + 15));

    let mut open: Vec<_> = data.spans.iter().filter(|s| s.flags & flag::UNFINISHED != 0).collect();
    open.sort_by_key(|s| s.depth);
    let [fwrite, write] = open.as_slice() else { panic!("{open:?}") };
    assert_eq!((fwrite.op, write.op), ("fwrite", "write"));
    assert_eq!((write.parent_id, write.ret, write.bytes), (Some(fwrite.span_id), None, None));
    assert_eq!(data.path(write), Some(file.as_path()));
    assert!(write.dur_ns > 0);
}

/// The file of a loop device is on a file system that takes no writes: requests to the device stay in it.
#[test]
fn a_request_that_the_device_keeps_has_an_unfinished_row() {
    let work = live::scratch();
    let (above, below) = (work.path().join("above"), Device::new(work.path(), "ext4"));
    let image = below.mount.join("image");
    fs::write(&image, vec![0; 1 << 20]).unwrap();
    let stuck = Attached(run("losetup", &["--find", "--show", image.to_str().unwrap()]));
    let number = device::number(&stuck.0);
    let written = || device::counters(number)[6] * 512;
    let (dataset, output) = (work.path().join("run.iotrace"), work.path().join("stderr"));
    let of = format!("of={}", stuck.0);
    let dd = ["dd", "if=/dev/zero", &of, "bs=64k", "count=1", "oflag=direct", "status=none"];
    run("sync", &[]);
    let before = written();
    let frozen = Frozen::new(&below.mount);
    let mut tracer = live::tracer();
    tracer.args(["--duration", "3s", "--layers", "syscall,block", "-o"]).arg(&dataset).arg("--").args(dd);
    let mut running =
        Running::spawn(tracer.stdout(fs::File::create(&above).unwrap()).stderr(fs::File::create(&output).unwrap()));
    live::until("the dataset", || fs::read_to_string(&output).unwrap().contains("dataset in"));
    assert_eq!(written(), before, "the kernel does not count it");
    let data = Data::read(&dataset).lossless();
    drop(frozen);
    assert!(running.wait().success());
    assert_eq!(written(), before + 65536);

    let open: Vec<_> = data.block.iter().filter(|b| b.dev == number && b.op == "write").collect();
    let [request] = open.as_slice() else { panic!("{open:?}") };
    assert_eq!((request.status, request.dur_ns, request.bytes), (None, None, 65536));
    let write = data.calls("write").find(|s| s.flags & flag::UNFINISHED != 0).unwrap();
    assert_eq!(data.path(write), Some(Path::new(&stuck.0)));
    assert!(request.queue_ns >= write.start_ns && request.pid == write.pid, "{request:?} {write:?}");
    let of = |o: &&iotrace_bpf::rows::BlockBytes| o.req_id == request.req_id;
    let owners: Vec<_> = data.owners.iter().filter(of).map(|o| (o.span_id, o.bytes, o.known_by)).collect();
    assert_eq!(owners, [(Some(write.span_id), 65536, "submitted")]);
    let links: Vec<_> = data.links.iter().filter(|l| l.req_id == request.req_id).map(|l| (l.span_id, l.how)).collect();
    assert_eq!(links, [(write.span_id, "direct")]);
    // The report has it, and others, which may be on their way to other devices.
    let mut figures = BTreeMap::new();
    let take = |m: Metric| {
        figures.insert(m.name, m.value as usize);
        Ok(())
    };
    Dataset::open(&dataset).unwrap().rows(take).unwrap();
    let [open, unseen] = ["requests_in_flight", "requests_end_unseen"].map(|name| figures[name]);
    assert_eq!(open + unseen, data.block.iter().filter(|b| b.dur_ns.is_none()).count(), "{figures:?}");
    let requests = if open == 1 { "request" } else { "requests" };
    let line = format!(" {open} device {requests} had not completed");
    assert!(open > 0 && fs::read_to_string(&output).unwrap().contains(&line), "{line}");
    // Sums are of what is over, as the kernel's are.
    let query = format!("SELECT writes, bytes_written, unfinished FROM v_devices WHERE dev = {number}");
    let devices = sql::query(&dataset, &query);
    assert_eq!(devices, [serde_json::json!({"writes": 0, "bytes_written": null, "unfinished": 1})]);
    sql::compare(&dataset);
}
