//! Calls have how long they slept for write-back of their file and for the journal: no longer than the requests took.

use crate::common::live::{self, Data};
use crate::common::machine::device::Device;
use iotrace_bpf::rows::{Block, Span};
use std::collections::BTreeSet;
use std::path::Path;

const PROGRAM: &str = "
import ctypes, mmap, os, sys
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None)
megabyte = mmap.mmap(-1, 1 << 20)
megabyte.write(b'x' * (1 << 20))
def made(name, flags=0, megabytes=8):
    fd = os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o644)
    for _ in range(megabytes):
        os.write(fd, megabyte)
    return fd
os.fsync(made('fsync'))
os.fdatasync(made('fdatasync'))
made('sync_file_range', megabytes=2)
fd = os.open('sync_file_range', os.O_RDWR)
libc.sync_file_range(fd, ctypes.c_long(0), ctypes.c_long(0), 7)
fd = os.open('msync', os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(fd, 1 << 20)
mapped = mmap.mmap(fd, 1 << 20)
mapped[:] = b'm' * (1 << 20)
mapped.flush()
made('syncfs', megabytes=2)
libc.syncfs(os.open('.', os.O_RDONLY))
made('sync', os.O_SYNC, 2)
fd = os.open('direct', os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
os.pwrite(fd, megabyte, 0)
os.fsync(fd)
os.preadv(fd, [megabyte], 0)
os.fsync(fd)
";

/// When requests were on their way, cut to a call: together, in ns.
fn union<'a>(requests: impl Iterator<Item = &'a Block>, call: &Span) -> i64 {
    let (begin, end) = (call.start_ns, call.start_ns + call.dur_ns);
    // Where the end was not seen, the tracer knows no time either.
    let times = requests.filter_map(|b| Some((b.queue_ns.max(begin), b.issue_ns + b.dur_ns?)));
    let mut times: Vec<(i64, i64)> = times.filter(|(from, to)| *to <= end && from < to).collect();
    times.sort_unstable();
    let (mut until, mut sum) = (begin, 0);
    for (from, to) in times {
        sum += (to - from.max(until)).max(0);
        until = until.max(to);
    }
    sum
}

/// The only call of a function on a file that is called like it, or like `name`.
fn call<'a>(data: &'a Data, op: &'a str, name: &str) -> &'a Span {
    let on = |s: &&Span| data.path(s).is_some_and(|p| p.ends_with(name));
    data.calls(op).find(on).unwrap_or_else(|| panic!("no {op} on {name}"))
}

fn calls_have_their_time_in_write_back_and_journal(fstype: &str) {
    let work = live::scratch();
    let device = Device::new(work.path(), fstype);
    let command = ["python3", "-c", PROGRAM, device.mount.to_str().unwrap()];
    let traced = live::trace(work.path(), &["--layers", "syscall,block"], &command);
    let data = traced.data().lossless();
    let on_device = |b: &&Block| b.dev == device.number && b.op == "write";
    let written = |file: Option<i32>| -> Vec<&Block> {
        let of = |o: &&iotrace_bpf::rows::BlockBytes| file.is_none_or(|f| o.file_id == Some(f));
        let ids: BTreeSet<i64> =
            data.owners.iter().filter(|o| o.file_id.is_some()).filter(of).map(|o| o.req_id).collect();
        data.block.iter().filter(on_device).filter(|b| ids.contains(&b.req_id)).collect()
    };
    let (mut seen, mut journals, mut slept, mut known) = (0, 0, 0, 0);
    for span in data.spans.iter().filter(|s| data.path(s).is_some_and(|p| p.starts_with(&device.mount))) {
        let (writeback, journal) = (span.writeback_ns.unwrap(), span.journal_ns.unwrap());
        assert!((0..=span.dur_ns).contains(&writeback) && (0..=span.dur_ns).contains(&journal), "{span:?}");
        // A request may carry pages of several files, which were queued one after the other.
        let requests = written(span.file_id.filter(|_| span.op != "syncfs"));
        let most = union(requests.iter().copied(), span);
        assert!(writeback <= most, "{most}: {span:?}");
        let log = data.block.iter().filter(on_device).filter(|b| b.class == "journal");
        let most = union(log, span);
        assert!(journal <= most, "{most}: {span:?}");
        slept += span.net_ns() - span.cpu_ns.unwrap() - span.runq_ns.unwrap();
        known += writeback
            + journal
            + span.flush_ns.unwrap()
            + span.throttle_ns.unwrap()
            + span.device_ns.unwrap()
            + span.devqueue_ns.unwrap();
        seen += 1;
        journals += i64::from(journal > 0);
    }
    assert!(seen > 40 && journals > 0, "{seen} calls, {journals} with a journal");
    // What ends a transaction of btrfs writes its trees, which no part is for.
    let least = if fstype == "btrfs" { slept / 10 } else { slept / 2 };
    assert!(known <= slept && known > least, "{known} of {slept} ns are explained");

    let waits = |op: &str, name: &str| {
        let span = call(&data, op, name);
        // Where both are on their way it is the flush that is waited for.
        (span.writeback_ns.unwrap() > 0, span.journal_ns.unwrap() + span.flush_ns.unwrap() > 0)
    };
    if fstype == "btrfs" {
        // A call may end the transaction instead, whose writes are neither, and others do what it would wait for.
        assert!(waits("fsync", "fsync").0 && waits("fdatasync", "fdatasync").0);
        assert_eq!(waits("preadv2", "direct"), (false, false));
        return;
    }
    assert_eq!(waits("fsync", "fsync"), (true, true));
    assert_eq!(waits("fdatasync", "fdatasync"), (true, true));
    assert!(waits("sync_file_range", "sync_file_range").0);
    assert_eq!(waits("msync", "msync"), (true, true));
    assert_eq!(waits("syncfs", Path::new(&device.mount).file_name().unwrap().to_str().unwrap()), (true, true));
    assert_eq!(waits("write", "sync"), (true, true));
    // What does not go through the page cache is not written back.
    assert!(!waits("pwrite64", "direct").0);
    assert_eq!(waits("preadv2", "direct"), (false, false));
}

#[test]
fn calls_have_their_time_in_write_back_and_journal_on_ext4() {
    calls_have_their_time_in_write_back_and_journal("ext4");
}

#[test]
fn calls_have_their_time_in_write_back_and_journal_on_xfs() {
    calls_have_their_time_in_write_back_and_journal("xfs");
}

#[test]
fn calls_have_their_time_in_write_back_and_journal_on_btrfs() {
    calls_have_their_time_in_write_back_and_journal("btrfs");
}

#[test]
fn without_the_block_layer_device_time_is_not_known() {
    let work = live::scratch();
    let file = work.path().join("data");
    let command =
        ["dd", "if=/dev/zero", &format!("of={}", file.display()), "bs=64k", "count=4", "conv=fsync", "status=none"];
    let data = live::trace(work.path(), &["--layers", "syscall"], &command).data().lossless();
    assert_eq!(data.calls("fsync").map(|s| (s.writeback_ns, s.journal_ns)).collect::<Vec<_>>(), [(None, None)]);
}
