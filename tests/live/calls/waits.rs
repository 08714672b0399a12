//! What the time of calls was spent on is what the scheduler, the devices and the programs themselves report.

use crate::common::live::{self, Data};
use crate::common::machine::device::{self, Device};
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{FileRollup, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Numbers that a program printed, a line each.
fn lines(text: &str) -> Vec<Vec<i64>> {
    text.lines().map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect()).collect()
}

/// All parts of the time of a call; they are known.
fn parts(s: &Span) -> [i64; 10] {
    [
        s.cpu_ns,
        s.runq_ns,
        s.throttle_ns,
        s.lock_ns,
        s.writeback_ns,
        s.journal_ns,
        s.flush_ns,
        s.devqueue_ns,
        s.device_ns,
        s.remote_ns,
    ]
    .map(|part| part.unwrap_or_else(|| panic!("{s:?}")))
}

fn assert_parts_add_up(data: &Data) {
    let calls = data.spans.iter().filter(|s| s.cpu_ns.is_some() && s.writeback_ns.is_some());
    let mut seen = 0;
    for span in calls {
        let parts = parts(span);
        assert!(parts.iter().all(|part| *part >= 0) && parts.iter().sum::<i64>() <= span.net_ns(), "{span:?}");
        seen += 1;
    }
    assert!(seen > 0);
}

fn sum(spans: &[&Span], of: fn(&Span) -> Option<i64>) -> i64 {
    spans.iter().map(|s| of(s).unwrap_or_else(|| panic!("{s:?}"))).sum()
}

/// Syncs a file beside programs that want all CPUs, and prints by how much each `fsync` made the thread wait for one.
const BESIDE_OTHERS: &str = "
import os, sys
others = []
for _ in range(3 * os.cpu_count()):
    pid = os.fork()
    if not pid:
        while os.getppid() != 1: pass
        os._exit(0)
    others.append(pid)
stat = os.open('/proc/thread-self/schedstat', os.O_RDONLY)
def queued(): return int(os.pread(stat, 100, 0).split()[1])
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for n in range(40):
    os.pwrite(fd, b'x' * 4096, n * 4096)
    before = queued()
    os.fsync(fd)
    print(queued() - before)
for pid in others: os.kill(pid, 9)
";

#[test]
fn waiting_for_a_cpu_matches_schedstat() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let file = device.mount.join("data");
    let command = ["python3", "-c", BESIDE_OTHERS, file.to_str().unwrap()];
    let traced = live::trace(work.path(), &["--layers", "syscall,block"], &command);
    let truth = lines(&traced.stdout);
    let data = traced.data().lossless();
    let calls: Vec<&Span> = data.calls("fsync").collect();
    assert_eq!(calls.len(), truth.len());
    for (call, truth) in calls.iter().zip(&truth) {
        // It looks before and after the call, and may wait in between.
        assert!(call.runq_ns.unwrap() <= truth[0], "{truth:?}: {call:?}");
    }
    let (seen, output) = (sum(&calls, |s| s.runq_ns), truth.iter().map(|t| t[0]).sum::<i64>());
    assert!(output > 0 && seen > output / 2, "{seen} of {output} ns");
    assert_parts_add_up(&data);
}

/// Waits twice for a child that holds a lock on a file, and prints how long, by its own clock.
const LOCKED: &str = "
import fcntl, os, sys, time
for lock in (fcntl.flock, fcntl.lockf):
    ready, go = os.pipe(), os.pipe()
    if not os.fork():
        file = open(sys.argv[1], 'w')
        lock(file, fcntl.LOCK_EX)
        os.write(ready[1], b'.')
        os.read(go[0], 1)
        time.sleep(0.3)
        os._exit(0)
    os.read(ready[0], 1)
    file = open(sys.argv[1], 'w')
    os.write(go[1], b'.')
    before = time.monotonic_ns()
    lock(file, fcntl.LOCK_EX)
    print(time.monotonic_ns() - before, flush=True)
    os.wait()
";

#[test]
fn waiting_for_a_lock_on_a_file_matches_the_program() {
    let work = live::scratch();
    let file = work.path().join("locked");
    let command = ["python3", "-c", LOCKED, file.to_str().unwrap()];
    let traced = live::trace(work.path(), &["--layers", "syscall,block"], &command);
    let truth = lines(&traced.stdout);
    let data = traced.data().lossless();
    for (op, truth) in ["flock", "fcntl"].into_iter().zip(&truth) {
        let longest = data.calls(op).max_by_key(|s| s.dur_ns).unwrap();
        let locked = longest.lock_ns.unwrap();
        assert!(locked <= truth[0] && locked > truth[0] / 2, "{truth:?}: {longest:?}");
    }
    assert_parts_add_up(&data);
}

#[test]
fn sums_have_the_same_parts() {
    let work = live::scratch();
    let file = work.path().join("locked");
    let command = ["python3", "-c", LOCKED, file.to_str().unwrap()];
    let traced = live::trace(work.path(), &["--aggregate", "--layers", "syscall"], &command);
    let truth = lines(&traced.stdout)[0][0];
    traced.data().lossless();
    let mut sums = Vec::new();
    let set = Dataset::open(&traced.dir).unwrap();
    set.rows::<FileRollup>(|row| {
        sums.push(row);
        Ok(())
    })
    .unwrap();
    let slept = |f: &FileRollup| f.dur_ns - f.cpu_ns - f.runq_ns;
    assert!(sums.iter().filter(|f| f.layer.name() == "syscall").all(|f| slept(f) >= 0 && f.cpu_ns >= 0));
    let locks: i64 = sums.iter().filter(|f| f.op == "flock").map(slept).sum();
    assert!(locks <= truth && locks > truth / 2, "{locks} of {truth} ns");
}

/// Threads that write one file each, or all the same one.
const WRITERS: &str = "
import os, sys, threading
data = bytes(8 << 20)
def write(name):
    fd = os.open(name, os.O_RDWR | os.O_CREAT)
    for _ in range(16): os.pwrite(fd, data, 0)
names = [sys.argv[1] + (str(n) if sys.argv[2] == 'apart' else '') for n in range(4)]
threads = [threading.Thread(target=write, args=(name,)) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join()
";

#[test]
fn writers_of_one_file_wait_for_its_lock_and_those_of_several_do_not() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let locked = |how: &str| {
        let file = device.mount.join(how);
        let traced_in = work.path().join(how);
        fs::create_dir(&traced_in).unwrap();
        let command = ["python3", "-c", WRITERS, file.to_str().unwrap(), how];
        let data = live::trace(&traced_in, &["--layers", "syscall,block"], &command).data().lossless();
        let writes: Vec<&Span> = data.calls("pwrite64").collect();
        assert_eq!(writes.len(), 64);
        assert_parts_add_up(&data);
        sum(&writes, |s| s.lock_ns)
    };
    let (together, apart) = (locked("together"), locked("apart"));
    assert!(together > 0 && together > 2 * apart, "{together} and {apart} ns");
}

/// Reads past the page cache, one block after the other.
const DIRECT: &str = "
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
buffer = mmap.mmap(-1, 65536)
for n in range(200): os.preadv(fd, [buffer], (n * 37 % 256) * 65536)
";

/// A field of `/sys/block/*/stat` (Documentation/block/stat.rst).
fn stat(device: &Device, field: usize) -> i64 {
    let name = Path::new(&device.name).file_name().unwrap();
    let text = fs::read_to_string(Path::new("/sys/block").join(name).join("stat")).unwrap();
    text.split_whitespace().nth(field).unwrap().parse().unwrap()
}

#[test]
fn waiting_for_a_device_matches_its_statistics() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let file = device.mount.join("data");
    fs::write(&file, vec![7_u8; 16 << 20]).unwrap();
    device::run("sync", &[]);
    let before = stat(&device, 3);
    let command = ["python3", "-c", DIRECT, file.to_str().unwrap()];
    let data = live::trace(work.path(), &["--layers", "syscall,block"], &command).data().lossless();
    let ticks = (stat(&device, 3) - before) * 1_000_000;
    let reads: Vec<&Span> = data.calls("preadv2").collect();
    assert_eq!(reads.len(), 200);
    let waited = sum(&reads, |s| s.device_ns) + sum(&reads, |s| s.devqueue_ns);
    // It counts whole ms, and the time in which the thread that submits is still on its CPU.
    assert!(waited <= ticks + 10_000_000 && waited > ticks / 3, "{waited} of {ticks} ns");
    assert_eq!(sum(&reads, |s| s.flush_ns) + sum(&reads, |s| s.writeback_ns), 0);
    assert_parts_add_up(&data);
}

/// Writes little and syncs it, as a database does.
const DATABASE: &str = "
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for n in range(25):
    os.pwrite(fd, b'x' * 4096, n * 4096)
    os.fdatasync(fd)
";

#[test]
fn flushes_belong_to_the_calls_that_waited_for_them() {
    for fstype in ["ext4", "xfs"] {
        let work = live::scratch();
        let device = Device::new(work.path(), fstype);
        let file = device.mount.join("data");
        let before = stat(&device, 15);
        let command = ["python3", "-c", DATABASE, file.to_str().unwrap()];
        let data = live::trace(work.path(), &["--layers", "syscall,block"], &command).data().lossless();
        let counted = stat(&device, 15) - before;
        let flushes: BTreeSet<i64> = data
            .block
            .iter()
            .filter(|b| b.dev == device.number && b.op == "flush" && b.dur_ns.is_some())
            .map(|b| b.req_id)
            .collect();
        assert!(flushes.len() as i64 <= counted && flushes.len() >= 25, "{fstype}: {} of {counted}", flushes.len());
        let syncs: BTreeMap<i64, &Span> = data.calls("fdatasync").map(|s| (s.span_id, s)).collect();
        assert_eq!(syncs.len(), 25);
        let links = data.links.iter().filter(|l| l.how == "flush");
        let (linked, calls): (BTreeSet<i64>, BTreeSet<i64>) = links.map(|l| (l.req_id, l.span_id)).unzip();
        assert!(linked.is_subset(&flushes), "{fstype}");
        let waited: BTreeSet<i64> = syncs.values().filter(|s| s.flush_ns > Some(0)).map(|s| s.span_id).collect();
        assert_eq!(calls, waited, "{fstype}");
        assert!(waited.len() >= 20 && linked.len() >= 20, "{fstype}: {} calls, {} flushes", waited.len(), linked.len());
        assert_parts_add_up(&data);
    }
}

/// Reads what a daemon serves that stands still for a while, and prints how long that took, by its own clock.
const SERVED: &str = "
import os, signal, sys, threading, time
daemon = int(sys.argv[2])
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
os.kill(daemon, signal.SIGSTOP)
threading.Timer(0.3, os.kill, (daemon, signal.SIGCONT)).start()
before = time.monotonic_ns()
assert os.pread(fd, 4096, 0)
print(time.monotonic_ns() - before)
";

#[test]
fn waiting_for_a_daemon_matches_the_program() {
    let work = live::scratch();
    let (below, mount) = (work.path().join("below"), work.path().join("mount"));
    for dir in [&below, &mount] {
        fs::create_dir(dir).unwrap();
    }
    fs::write(below.join("data"), [7; 4096]).unwrap();
    let mut daemon = live::Running::spawn(Command::new("bindfs").arg("-f").args([&below, &mount]));
    live::until("the mount", || fs::read_to_string("/proc/mounts").unwrap().contains(mount.to_str().unwrap()));
    let (file, pid) = (mount.join("data"), daemon.pid().to_string());
    let command = ["python3", "-c", SERVED, file.to_str().unwrap(), &pid];
    let traced = live::trace(work.path(), &["--layers", "syscall,block"], &command);
    device::run("umount", &[mount.to_str().unwrap()]);
    daemon.wait();
    let truth = lines(&traced.stdout)[0][0];
    let data = traced.data().lossless();
    let read = data.calls("pread64").max_by_key(|s| s.dur_ns).unwrap();
    let waited = read.remote_ns.unwrap();
    assert!(waited <= truth && waited > truth / 2, "{waited} of {truth} ns: {read:?}");
    assert_parts_add_up(&data);
}
