//! What reads did not find in the page cache is what the kernel counted as not there, and what was read from the device.

use crate::common::live::{self, Data};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::flag;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: i64 = 4096;

fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// A file system on a device that nothing else uses.
struct Device {
    name: String,
    mount: PathBuf,
}

impl Device {
    fn new(work: &Path) -> Self {
        let (image, mount) = (work.join("image"), work.join("mount"));
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        fs::create_dir(&mount).unwrap();
        let name = run("losetup", &["--find", "--show", image.to_str().unwrap()]);
        let device = Self { name, mount };
        run("mkfs.ext4", &["-q", "-F", &device.name]);
        run("mount", &[&device.name, device.mount.to_str().unwrap()]);
        device
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).status();
        let _ = Command::new("losetup").args(["--detach", &self.name]).status();
    }
}

/// Reads a file in several ways. Around each read it asks the kernel by mincore(2), through a mapping that it never
/// touches, which pages are there; it prints what was asked, the bytes of these pages that were not there before, and the
/// bytes of other pages that came in.
const READER: &str = "
import ctypes, mmap, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
path, inflight, PAGE = sys.argv[1], sys.argv[2], 4096
fd = os.open(path, os.O_RDONLY)
size = os.fstat(fd).st_size
pages = -(-size // PAGE)
at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
there = ctypes.create_string_buffer(pages)
def cached():
    assert libc.mincore(at, size, there) == 0
    return [b & 1 for b in there.raw[:pages]]
def forget():
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    assert not any(cached())
def settled():
    # mincore shows pages that have come: what is still being read ahead has to, first
    while True:
        before = cached()
        time.sleep(0.05 * int(os.environ.get('IOTRACE_TEST_SLOWER', '1')))
        if open(inflight).read().split() == ['0', '0'] and cached() == before:
            return before
def report(how, offset, asked, read):
    before = cached()
    got = read()
    after = settled()
    miss = ahead = 0
    for page in range(pages):
        start, end = page * PAGE, (page + 1) * PAGE
        mine = max(0, min(end, offset + asked, size) - max(start, offset))
        if after[page] and not before[page]:
            if mine: miss += mine
            else: ahead += PAGE
    print(how, offset, asked, got, miss, ahead, flush=True)
forget()
for n in range(3):
    report('pread64', n * 100000, 65536, lambda: len(os.pread(fd, 65536, n * 100000)))
for n in range(3):
    report('pread64', n * 100000, 65536, lambda: len(os.pread(fd, 65536, n * 100000)))
forget()
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
report('pread64', size - 5000, 1 << 20, lambda: len(os.pread(fd, 1 << 20, size - 5000)))
report('pread64', 12345, 6789, lambda: len(os.pread(fd, 6789, 12345)))
report('pread64', 8192, 20000, lambda: len(os.pread(fd, 20000, 8192)))
os.lseek(fd, 1 << 20, os.SEEK_SET)
report('read', 1 << 20, 10000, lambda: len(os.read(fd, 10000)))
report('read', (1 << 20) + 10000, 10000, lambda: len(os.read(fd, 10000)))
buffers = [bytearray(5000), bytearray(7000)]
report('preadv', 2 << 20, 12000, lambda: os.preadv(fd, buffers, 2 << 20))
os.lseek(fd, 3 << 20, os.SEEK_SET)
report('readv', 3 << 20, 12000, lambda: os.readv(fd, buffers))
report('readv', size + PAGE, 100, lambda: os.lseek(fd, size + PAGE, os.SEEK_SET) and os.readv(fd, [bytearray(100)]))
";

#[derive(Debug, PartialEq, Eq)]
struct Read {
    op: String,
    offset: i64,
    asked: i64,
    got: i64,
    miss: Option<i64>,
    ahead: Option<i64>,
}

fn truth(text: &str) -> Vec<Read> {
    let read = |line: &str| {
        let (op, numbers) = line.split_once(' ').unwrap();
        let n: Vec<i64> = numbers.split(' ').map(|n| n.parse().unwrap()).collect();
        // Python's preadv is the kernel's preadv2.
        Read {
            op: op.replace("preadv", "preadv2"),
            offset: n[0],
            asked: n[1],
            got: n[2],
            miss: Some(n[3]),
            ahead: Some(n[4]),
        }
    };
    text.lines().map_while(|line| line.contains("read").then(|| read(line))).collect()
}

fn reads<'a>(data: &'a Data, file: &'a Path) -> impl Iterator<Item = &'a Span> {
    data.spans.iter().filter(move |s| s.op.contains("read") && s.offset.is_some() && data.path(s) == Some(file))
}

fn as_read(s: &Span) -> Read {
    Read {
        op: s.op.to_owned(),
        offset: s.offset.unwrap(),
        asked: s.req_bytes.unwrap(),
        got: s.bytes.unwrap(),
        miss: s.miss_bytes,
        ahead: s.ahead_bytes,
    }
}

#[test]
fn misses_and_read_ahead_are_those_that_mincore_shows() {
    let work = live::scratch();
    let device = Device::new(work.path());
    let file = device.mount.join("data");
    fs::write(&file, vec![7_u8; (4 << 20) + 1234]).unwrap();
    let inflight = format!("/sys/block/{}/inflight", device.name.rsplit('/').next().unwrap());
    let command = ["python3", "-c", READER, file.to_str().unwrap(), &inflight];
    let traced = live::trace(work.path(), &["--layers", "syscall"], &command);
    let truth = truth(&traced.stdout);
    let data = traced.data().lossless();
    let seen: Vec<Read> = reads(&data, &file).map(as_read).collect();
    assert_eq!(seen, truth);
    // Not only zeros are compared.
    assert!(truth[..3].iter().any(|r| r.ahead > Some(0)) && truth[3..6].iter().all(|r| r.miss == Some(0)), "{truth:?}");
    assert_eq!((truth[6].miss, truth[7].miss), (Some(5000), Some(6789)), "{truth:?}");
    for span in reads(&data, &file) {
        assert_eq!(span.flags & flag::READAHEAD != 0, span.ahead_bytes > Some(0), "{span:?}");
    }
}

#[test]
fn what_was_missed_is_what_the_device_gave() {
    let work = live::scratch();
    let device = Device::new(work.path());
    let file = device.mount.join("data");
    fs::write(&file, vec![7_u8; 1 << 20]).unwrap();
    run("umount", &[device.mount.to_str().unwrap()]);
    run("mount", &[&device.name, device.mount.to_str().unwrap()]);
    let script = format!("dd if={0} of=/dev/null bs=8k; dd if={0} of=/dev/null bs=8k", file.display());
    let traced = live::trace(work.path(), &["--layers", "syscall,block"], &["sh", "-c", &script]);
    let data = traced.data().lossless();
    let (mut passes, mut ahead) = ([0; 2], 0);
    let mut ids = Vec::new();
    for (n, span) in reads(&data, &file).enumerate() {
        passes[n / 129] += span.miss_bytes.unwrap();
        ahead += span.ahead_bytes.unwrap();
        ids.push(span.span_id);
    }
    assert_eq!(ids.len(), 2 * 129, "blocks, and the end, of two passes");
    let meta: Vec<i64> = data.block.iter().filter(|b| b.class == "meta").map(|b| b.req_id).collect();
    let linked = data.links.iter().filter(|l| ids.contains(&l.span_id) && !meta.contains(&l.req_id));
    let device_bytes: i64 = linked.map(|l| l.bytes).sum();
    assert_eq!(device_bytes, 1 << 20);
    assert_eq!(passes[0] + ahead, 1 << 20, "every page came in once");
    assert!(passes[0] >= 2 * PAGE && ahead > 0, "the first read at least found nothing: {passes:?}");
    assert_eq!(passes[1], 0, "everything is there by then");
}

#[test]
fn direct_reads_and_files_without_a_cache_have_no_misses() {
    let work = live::scratch();
    let device = Device::new(work.path());
    let file = device.mount.join("data");
    fs::write(&file, vec![7_u8; 1 << 20]).unwrap();
    let script = format!("dd if={0} of=/dev/null bs=64k iflag=direct; head -c 4096 {0}; stat {0}", file.display());
    let data = live::trace(work.path(), &["--layers", "syscall"], &["sh", "-c", &script]).data().lossless();
    let direct: Vec<&Span> = reads(&data, &file).filter(|s| s.flags & flag::DIRECT != 0).collect();
    assert_eq!(direct.len(), 17);
    assert!(direct.iter().all(|s| (s.miss_bytes, s.ahead_bytes) == (None, None)), "{direct:?}");
    let others = data.spans.iter().filter(|s| s.kind != iotrace_bpf::vocabulary::Kind::Read);
    assert!(others.clone().count() > 0 && others.into_iter().all(|s| s.miss_bytes.is_none()));
}

#[test]
fn writers_that_are_not_throttled_have_no_throttle_time() {
    let work = live::scratch();
    let device = Device::new(work.path());
    let script = format!("dd if=/dev/zero of={} bs=64k count=4", device.mount.join("data").display());
    let data = live::trace(work.path(), &["--layers", "syscall"], &["sh", "-c", &script]).data().lossless();
    let writes: Vec<Option<i64>> =
        data.calls("write").filter(|s| s.req_bytes == Some(65536)).map(|s| s.throttle_ns).collect();
    assert_eq!(writes, [Some(0); 4]);
}

/// The kernel's own record of the writers that had to wait for a device: a trace of its tracepoint.
struct Pauses {
    instance: PathBuf,
    /// It was mounted for this.
    mounted: bool,
}

/// Where systemd does not run, it is not mounted. The tracer does not need it.
const TRACEFS: &str = "/sys/kernel/tracing";

impl Pauses {
    fn of(device: &str) -> Self {
        let mounted = !Path::new(TRACEFS).join("events").exists();
        if mounted {
            run("mount", &["-t", "tracefs", "tracefs", TRACEFS]);
        }
        let instance = Path::new(TRACEFS).join(format!("instances/iotrace-{}", std::process::id()));
        fs::create_dir(&instance).unwrap();
        let hook = instance.join("events/writeback/balance_dirty_pages");
        fs::write(hook.join("filter"), format!("bdi == \"{device}\"")).unwrap();
        fs::write(hook.join("enable"), "1").unwrap();
        Self { instance, mounted }
    }

    /// In ms, of a process.
    fn sum(&self, pid: i32) -> i64 {
        let text = fs::read_to_string(self.instance.join("trace")).unwrap();
        let of_it = text.lines().filter(|line| line.split_whitespace().next().unwrap().ends_with(&format!("-{pid}")));
        let pause = |line: &str| line.split_once(" pause=").unwrap().1.split(' ').next().unwrap().parse().unwrap();
        of_it.map(pause).filter(|ms: &i64| *ms > 0).sum()
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.instance);
        if self.mounted {
            let _ = Command::new("umount").arg(TRACEFS).status();
        }
    }
}

/// How much of a device may be dirty: a directory, Documentation/ABI/testing/sysfs-class-bdi.
struct Limits(PathBuf);

impl Limits {
    fn set(&self, name: &str, value: &str) -> bool {
        fs::write(self.0.join(name), value).is_ok()
    }
}

impl Drop for Limits {
    /// A loop device keeps them for the next file.
    fn drop(&mut self) {
        self.set("max_ratio", "100");
        self.set("strict_limit", "0");
    }
}

#[test]
fn throttle_time_matches_the_kernel_s_own_trace() {
    let work = live::scratch();
    let device = Device::new(work.path());
    let number = fs::read_to_string(format!("/sys/block/{}/dev", device.name.rsplit('/').next().unwrap())).unwrap();
    let limits = Limits(Path::new("/sys/class/bdi").join(number.trim()));
    // Two of the writes may be dirty at a time: with more of them the device, a file in memory, keeps up with a writer that gets
    // few of the CPUs. Before Linux 6.2 that cannot be set for one device, and no writer has to wait.
    let limited = limits.set("strict_limit", "1");
    assert!(!limited || limits.set("max_bytes", "131072"));
    let pauses = Pauses::of(number.trim());
    let file = device.mount.join("data");
    let command = ["dd", "if=/dev/zero", &format!("of={}", file.display()), "bs=64k", "count=256"];
    let data = live::trace(work.path(), &["--layers", "syscall"], &command).data().lossless();
    let writes: Vec<&Span> = data.calls("write").filter(|s| data.path(s) == Some(&file)).collect();
    assert_eq!(writes.len(), 256);
    let printed: i64 = writes.iter().map(|s| s.throttle_ns.unwrap()).sum();
    // A thread that is to sleep for some ticks wakes with the last of them.
    let output = pauses.sum(writes[0].pid) * 1_000_000;
    assert!(printed <= output && printed >= output / 2, "{printed} of {output} ns");
    assert!(!limited || printed > 0, "no writer had to wait");
}
