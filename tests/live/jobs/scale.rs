//! Many of everything: processes that end at once, open files, threads. What was recorded and what was lost are all there was.

use crate::common::live::{self, Data, Running};
use crate::common::programs;
use crate::common::ways::Attached;
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{FileRollup, Loss, Span};
use iotrace_bpf::vocabulary::Layer;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

/// System calls that were lost.
fn lost(data: &Data) -> i64 {
    let of_calls = |l: &&Loss| l.layer.is_none_or(|layer| layer == Layer::Syscall);
    data.losses.iter().filter(of_calls).map(|l| l.count).sum()
}

const CHILDREN: usize = 10_000;
/// More than a tracer needs, whatever is traced: MiB.
const MEMORY: u64 = 512;

/// Traces 10 000 processes, 32 at a time, that each write a line to a file and end: the dataset, and the file. The tracer needs
/// no more memory than that, and has no more descriptors in the end.
fn swarm(work: &Path, options: &[&str]) -> (PathBuf, PathBuf) {
    let (dataset, file) = (work.join("run.iotrace"), work.join("lines"));
    let wait = |name: &str| format!("while [ ! -e \"$1/{name}\" ]; do sleep 0.05; done");
    let script =
        format!("> \"$1/begun\"; {}; \"$0\" \"$1/lines\" {CHILDREN} 32; > \"$1/done\"; {}", wait("go"), wait("over"));
    let mut tracer = live::tracer();
    tracer.args(["--layers", "syscall"]).args(options).arg("-o").arg(&dataset).args(["--", "sh", "-c", &script]);
    tracer.arg(programs::build("swarm")).arg(work).stdout(Stdio::null());
    let mut guard = Running::spawn(tracer.stderr(fs::File::create(work.join("stderr")).unwrap()));
    let tracer = live::child_of(guard.pid());
    let descriptors = || fs::read_dir(format!("/proc/{tracer}/fd")).unwrap().count();
    live::until("the command", || work.join("begun").exists());
    let before = descriptors();
    fs::write(work.join("go"), "").unwrap();
    live::until("the end of the children", || work.join("done").exists());
    let status = fs::read_to_string(format!("/proc/{tracer}/status")).unwrap();
    let most = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    assert!(most.unwrap() >> 10 < MEMORY, "{status}");
    // A part of each table may be open, or not.
    live::until("few descriptors", || descriptors() < before + 25);
    fs::write(work.join("over"), "").unwrap();
    let status = guard.wait();
    assert!(status.success(), "{}", fs::read_to_string(work.join("stderr")).unwrap());
    assert_eq!(fs::metadata(&file).unwrap().len(), 8 * CHILDREN as u64);
    (dataset, file)
}

#[test]
fn ten_thousand_processes_that_end_at_once_are_all_there() {
    let work = live::scratch();
    let (dataset, file) = swarm(work.path(), &[]);
    let data = Data::read(&dataset);
    let writes: Vec<&Span> = data.calls("write").filter(|s| data.path(s) == Some(&file)).collect();
    let lost = lost(&data);
    assert!(writes.len() <= CHILDREN && (writes.len() as i64 + lost) >= CHILDREN as i64, "{} and {lost}", writes.len());
    if lost == 0 {
        let by: BTreeSet<i32> = writes.iter().map(|s| s.process_ix).collect();
        assert_eq!((writes.len(), by.len()), (CHILDREN, CHILDREN));
        assert!(by.iter().all(|ix| data.processes[ix].exit_code == Some(0) && data.processes[ix].end_ns.is_some()));
        assert!(writes.iter().all(|s| (s.bytes, s.pid) == (Some(8), data.processes[&s.process_ix].pid)));
    }
}

#[test]
fn ten_thousand_processes_that_end_at_once_are_in_the_sums_of_the_node() {
    let work = live::scratch();
    let (dataset, file) = swarm(work.path(), &["--system", "--aggregate"]);
    let data = Data::read(&dataset);
    let file = data.files.values().find(|f| f.path.as_deref() == file.to_str()).unwrap();
    let (mut own, mut others, mut by) = ([0; 2], 0, BTreeSet::new());
    let set = Dataset::open(&dataset).unwrap();
    set.rows(|row: FileRollup| {
        if row.op == "write" && row.file_id == Some(file.file_id) {
            own = [own[0] + row.calls, own[1] + row.bytes];
            by.extend(row.process_ix);
        } else if row.other && row.op == "write" {
            others += row.calls;
        }
        Ok(())
    })
    .unwrap();
    let [calls, bytes] = own;
    assert_eq!((bytes, data.losses.as_slice()), (8 * calls, &[][..]));
    // What found no room in the kernel's table is a sum of all others, and there may be some that are not ours.
    assert!(calls <= CHILDREN as i64 && calls + others >= CHILDREN as i64, "{calls} and {others}");
    assert!(others > 0 || by.len() == CHILDREN, "{} processes", by.len());
}

/// A program that prints something when it is ready, and goes on when it gets a line.
struct Ready {
    running: Running,
    output: String,
    _out: BufReader<ChildStdout>,
}

impl Ready {
    fn new(command: &mut Command) -> Self {
        let mut running = Running::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut out = BufReader::new(running.0.stdout.take().unwrap());
        let mut output = String::new();
        out.read_line(&mut output).unwrap();
        Self { running, output, _out: out }
    }

    fn go(&mut self) {
        self.running.0.stdin.take().unwrap().write_all(b"\n").unwrap();
    }
}

/// Traces a program that gets its line at once.
fn launched(work: &Path, command: &mut Command) -> (Data, String) {
    let line = work.join("line");
    fs::write(&line, "\n").unwrap();
    let (dataset, out) = (work.join("launched.iotrace"), work.join("out"));
    let mut tracer = live::tracer();
    tracer.arg("-o").arg(&dataset).arg("--").arg(command.get_program()).args(command.get_args());
    let traced = tracer.stdin(fs::File::open(&line).unwrap()).stdout(fs::File::create(&out).unwrap()).output().unwrap();
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
    (Data::read(&dataset), fs::read_to_string(out).unwrap().lines().next().unwrap().to_owned())
}

/// Of one process, or of several where a limit that only a capability raises demands it.
const FILES: &str = "100000";

/// Each file was read at the place that its name has.
fn right_paths(data: &Data, dir: &Path) {
    let count: usize = FILES.parse().unwrap();
    // The loader reads more at once.
    let reads: Vec<&Span> = data.calls("pread64").filter(|s| s.req_bytes == Some(1)).collect();
    let of_file = |s: &Span| data.path(s) == Some(&dir.join(s.offset.unwrap().to_string()));
    let right = reads.iter().filter(|s| of_file(s)).count() as i64;
    let wrong: Vec<_> = reads.iter().filter(|s| !of_file(s)).map(|s| (s.offset, data.path(s))).take(5).collect();
    let lost = lost(data);
    assert!(right <= count as i64 && right + lost >= count as i64, "{right} of {count}, {lost} lost");
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Does a tracer trace it? Read from the kernel side's own table.
fn is_target(pid: u32) -> bool {
    let tables = MapInfoIter::default().filter(|map| map.name == "iot_targets");
    let lookup = |id| MapHandle::from_map_id(id)?.lookup(&pid.to_ne_bytes(), MapFlags::ANY);
    tables.map(|map| lookup(map.id)).any(|value| matches!(value, Ok(Some(_))))
}

#[test]
fn a_hundred_thousand_open_files_have_their_paths() {
    // In memory: a disk may take minutes to make and remove so many.
    let (work, files) = (live::scratch(), tempfile::tempdir_in("/dev/shm").unwrap());
    let dirs = ["launched", "attached"].map(|name| files.path().join(name));
    let command = |dir: &Path| {
        fs::create_dir(dir).unwrap();
        let mut command = Command::new(programs::build("many_files"));
        command.arg(dir).arg(FILES);
        command
    };
    right_paths(&launched(work.path(), &mut command(&dirs[0])).0, &dirs[0]);

    let mut ready = Ready::new(&mut command(&dirs[1]));
    // The number of files, and their owners.
    let children: Vec<_> = ready.output.split_whitespace().skip(1).flat_map(|pid| ["-p", pid]).collect();
    // The last one is the program itself: when that is a target, all files of the others are known.
    let attached = Attached::to(work.path(), &children, ready.running.pid());
    live::until("all targets", || is_target(ready.running.pid()));
    ready.go();
    right_paths(&attached.data(), &dirs[1]);
}

const THREADS: usize = 2000;
const CALLS: usize = 20;

/// Each thread has written to its own place.
fn right_threads(data: &Data, file: &Path) {
    let mut by: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for span in data.calls("pwrite64").filter(|s| data.path(s) == Some(file)) {
        by.entry(span.tid).or_default().push(span.offset.unwrap());
    }
    let (all, lost) = (by.values().map(Vec::len).sum::<usize>(), lost(data));
    assert!(all <= THREADS * CALLS && all as i64 + lost >= (THREADS * CALLS) as i64, "{all} and {lost}");
    assert!(by.values().all(|places| places.len() <= CALLS && places.iter().all(|place| *place == places[0])));
    let places: BTreeSet<i64> = by.values().map(|places| places[0]).collect();
    assert_eq!(places.len(), by.len());
    if lost == 0 {
        assert!(by.len() == THREADS && by.values().all(|places| places.len() == CALLS), "{} threads", by.len());
    }
}

#[test]
fn two_thousand_threads_are_distinguished() {
    let work = live::scratch();
    let command = |file: &Path| {
        let mut command = Command::new(programs::build("crowd"));
        command.arg(file).args([THREADS, CALLS].map(|n| n.to_string()));
        command
    };
    let files = ["launched", "attached"].map(|name| work.path().join(name));
    right_threads(&launched(work.path(), &mut command(&files[0])).0, &files[0]);

    let mut ready = Ready::new(&mut command(&files[1]));
    let attached = Attached::to(work.path(), &[], ready.running.pid());
    ready.go();
    right_threads(&attached.data(), &files[1]);
}
