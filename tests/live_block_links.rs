//! Links between requests and calls, call by call and byte for byte, on a device that nobody else uses.

#![allow(clippy::unwrap_used, reason = "what a test does not expect is a failure")]

#[path = "common/live.rs"]
mod live;

use iotrace_bpf::correlate::rows::{Block, Span};
use iotrace_bpf::words::flag;
use live::Data;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device over a new file.
struct Loop(PathBuf);

impl Loop {
    fn new(dir: &Path, size: u64) -> Self {
        let image = dir.join("image");
        fs::File::create(&image).unwrap().set_len(size).unwrap();
        let out = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Self(PathBuf::from(String::from_utf8(out.stdout).unwrap().trim()))
    }

    /// As the dataset has it: (major << 20) | minor.
    fn number(&self) -> i32 {
        let name = self.0.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
        let (major, minor) = text.trim().split_once(':').unwrap();
        major.parse::<i32>().unwrap() << 20 | minor.parse::<i32>().unwrap()
    }

    /// Completed requests and bytes by direction (Documentation/block/stat.rst: sectors are 512 bytes).
    fn counters(&self) -> [i64; 4] {
        let name = self.0.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let numbers: Vec<i64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
        [numbers[0], numbers[2] * 512, numbers[4], numbers[6] * 512]
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

/// Traces a command; its requests to the device, and what the kernel's counters say of the same time.
fn traced(work: &Path, device: &Loop, command: &[&str]) -> (Data, Vec<Block>) {
    let before = device.counters();
    let data = live::trace(work, &["--force"], command).data().lossless();
    let after = device.counters();
    let theirs: Vec<i64> = after.iter().zip(before).map(|(a, b)| a - b).collect();

    let number = device.number();
    let requests: Vec<Block> = data.block.iter().filter(|b| b.dev == number).cloned().collect();
    let sums = |op: &str| {
        let of = requests.iter().filter(|b| b.op == op && b.status == 0);
        of.fold((0, 0), |(n, bytes), b| (n + 1, bytes + i64::from(b.bytes)))
    };
    let (reads, writes) = (sums("read"), sums("write"));
    assert_eq!([reads.0, reads.1, writes.0, writes.1], theirs[..], "requests and bytes read, written: {command:?}");
    (data, requests)
}

/// Bytes linked to each span, by kind of link, of some requests.
fn linked(data: &Data, requests: &[Block]) -> BTreeMap<(i64, &'static str), i64> {
    let ours: BTreeSet<i64> = requests.iter().map(|b| b.req_id).collect();
    let mut linked = BTreeMap::new();
    for link in data.links.iter().filter(|l| ours.contains(&l.req_id)) {
        *linked.entry((link.span_id, link.how)).or_default() += link.bytes;
    }
    linked
}

/// The spans of a call on a path, in order.
fn calls<'a>(data: &'a Data, op: &'a str, path: &Path) -> Vec<&'a Span> {
    let mut calls: Vec<&Span> = data.calls(op).filter(|s| data.path(s) == Some(path)).collect();
    calls.sort_by_key(|s| s.start_ns);
    calls
}

#[test]
fn direct_io_is_linked_to_its_calls_byte_for_byte() {
    let work = live::scratch();
    let device = Loop::new(work.path(), 64 << 20);
    let path = device.0.to_str().unwrap();

    let to = format!("of={path}");
    let (data, requests) =
        traced(work.path(), &device, &["dd", "if=/dev/zero", &to, "bs=64K", "count=50", "oflag=direct", "status=none"]);
    let writes = calls(&data, "write", &device.0);
    assert_eq!(writes.len(), 50);
    assert!(writes.iter().all(|s| s.flags & flag::DIRECT != 0 && s.bytes == Some(65536)));
    let wanted: BTreeMap<_, _> = writes.iter().map(|s| ((s.span_id, "direct"), 65536)).collect();
    let direct: BTreeMap<_, _> =
        linked(&data, &requests).into_iter().filter(|((_, how), _)| *how == "direct").collect();
    assert_eq!(direct, wanted);
    // Each request stands where its call wrote, within the time of the call.
    let by_id: BTreeMap<i64, &Block> = requests.iter().map(|b| (b.req_id, b)).collect();
    for link in data.links.iter().filter(|l| l.how == "direct" && by_id.contains_key(&l.req_id)) {
        let request = by_id[&link.req_id];
        let call = writes.iter().find(|s| s.span_id == link.span_id).unwrap();
        assert!((0..65536).contains(&(request.sector * 512 - call.offset.unwrap())), "{request:?} of {call:?}");
        assert!(request.queue_ns >= call.start_ns && request.issue_ns >= request.queue_ns, "{request:?} of {call:?}");
        assert!(request.issue_ns + request.dur_ns <= call.start_ns + call.dur_ns, "{request:?} of {call:?}");
    }

    let from = format!("if={path}");
    let (data, requests) =
        traced(work.path(), &device, &["dd", &from, "of=/dev/null", "bs=1M", "count=8", "iflag=direct", "status=none"]);
    let reads = calls(&data, "read", &device.0);
    let wanted: BTreeMap<_, _> = reads.iter().map(|s| ((s.span_id, "direct"), 1 << 20)).collect();
    assert_eq!(wanted.len(), 8);
    assert_eq!(linked(&data, &requests), wanted);
}

/// A file system on a device, unmounted at the end.
struct Mounted(PathBuf);

impl Mounted {
    fn ext4(device: &Loop, dir: PathBuf) -> Self {
        let ran = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
        let now = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        ran(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "4096", "-E", now]).arg(&device.0));
        fs::create_dir(&dir).unwrap();
        ran(Command::new("mount").arg(&device.0).arg(&dir));
        ran(Command::new("sync").arg("--file-system").arg(&dir));
        Self(dir)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn written_back_bytes_are_linked_to_the_calls_that_wrote_them() {
    let work = live::scratch();
    let device = Loop::new(work.path(), 64 << 20);
    let mounted = Mounted::ext4(&device, work.path().join("mounted"));
    let file = mounted.0.join("file");
    let to = format!("of={}", file.display());
    let dd = ["dd", "if=/dev/zero", &to, "bs=10000", "count=300", "conv=fsync", "status=none"];
    let (data, requests) = traced(work.path(), &device, &dd);
    // Each byte is written once, and goes to the device once.
    let writes = calls(&data, "write", &file);
    let wanted: BTreeMap<_, _> = writes.iter().map(|s| ((s.span_id, "writeback"), 10_000)).collect();
    assert_eq!(wanted.len(), 300);
    let back: BTreeMap<_, _> =
        linked(&data, &requests).into_iter().filter(|((_, how), _)| *how == "writeback").collect();
    assert_eq!(back, wanted);
    // It was the fsync that sent them, and it waited for them.
    let sync = calls(&data, "fsync", &file)[0];
    let sent: i64 = linked(&data, &requests)
        .iter()
        .filter(|((id, how), _)| (*id, *how) == (sync.span_id, "sync"))
        .map(|(_, n)| n)
        .sum();
    assert!(sent >= 300 * 10_000, "{sent}");

    // Read again, from the device: by read-ahead.
    fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
    let from = format!("if={}", file.display());
    let (data, requests) = traced(work.path(), &device, &["dd", &from, "of=/dev/null", "bs=10000", "status=none"]);
    let reads: BTreeSet<i64> = calls(&data, "read", &file).iter().map(|s| s.span_id).collect();
    let links = linked(&data, &requests);
    let ahead: i64 = links.iter().filter(|((id, _), _)| reads.contains(id)).map(|(_, bytes)| bytes).sum();
    assert_eq!(ahead, 3_002_368, "{links:?}");
}
