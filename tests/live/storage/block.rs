//! Block requests as the tracer records them are those that the kernel counts, and they name the calls they came from.

use crate::common::live::{self, Data};
use crate::common::machine::device::{Device, run};
use crate::common::sql;
use iotrace_bpf::rows::Block;
use std::collections::BTreeMap;
use std::path::Path;

const BLOCK: i64 = 64 * 1024;
const COUNT: i64 = 32;

/// Linked bytes by (file name, operation, how).
fn linked(data: &Data, device: i32) -> BTreeMap<(String, &'static str, &'static str), i64> {
    let requests: BTreeMap<i64, &Block> =
        data.block.iter().filter(|b| b.dev == device).map(|b| (b.req_id, b)).collect();
    let mut sums = BTreeMap::new();
    for link in &data.links {
        let Some(request) = requests.get(&link.req_id) else { continue };
        let Some(span) = data.spans.iter().find(|s| s.span_id == link.span_id) else {
            panic!("request {} is linked to a call that is not there", link.req_id)
        };
        // Directories and extents of the file are read on the way, too.
        if ["meta", "journal"].contains(&request.class) {
            continue;
        }
        let name = data.path(span).and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
        *sums.entry((name.unwrap_or_default(), span.op, link.how)).or_default() += link.bytes;
    }
    sums
}

#[test]
fn a_device_s_requests_are_those_the_kernel_counts_and_name_their_calls() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let script = format!(
        "set -e; cd {}
         dd if=/dev/zero of=buffered bs={BLOCK} count={COUNT} conv=fsync
         dd if=/dev/zero of=direct bs={BLOCK} count={COUNT} oflag=direct
         sync
         echo 1 > /proc/sys/vm/drop_caches
         dd if=buffered of=/dev/null bs={BLOCK}
         sync",
        device.mount.display()
    );
    let mut tries = if live::slower() == 1 { 1 } else { 3 };
    let (before, data, after) = loop {
        let before = device.counters();
        let data = live::trace(work.path(), &["--force"], &["sh", "-c", &script]).data();
        let after = device.counters();
        tries -= 1;
        // An interrupt in the middle of a program makes the kernel skip the same program's run for it, which is counted; on
        // an emulated processor programs take long enough for that.
        let skipped = data.losses.iter().any(|l| l.place == "recursion");
        if !skipped {
            break (before, data.lossless(), after);
        }
        if tries == 0 {
            assert!(live::slower() > 1 && data.losses.iter().all(|l| l.place == "recursion"), "{:?}", data.losses);
            break (before, data, after);
        }
    };
    // What was skipped is missing, and nothing else may be wrong.
    let complete = data.losses.is_empty();
    let agrees = |what: &str, seen: i64, truth: i64| {
        assert!(seen == truth || (!complete && seen < truth), "{what}: {seen} of {truth}");
    };

    let sum = |op: &str, of: fn(&Block) -> i64| -> i64 {
        data.block.iter().filter(|b| b.dev == device.number && b.op == op).map(of).sum()
    };
    let grown = |at: usize| after[at] - before[at];
    agrees("reads", sum("read", |_| 1), grown(0));
    agrees("bytes read", sum("read", |b| i64::from(b.bytes)), grown(2) * 512);
    agrees("bytes written", sum("write", |b| i64::from(b.bytes)), grown(6) * 512);
    agrees("flushes", sum("flush", |_| 1), grown(15));

    let total = BLOCK * COUNT;
    let linked = linked(&data, device.number);
    let of = |file: &str, op: &'static str, how: &'static str| linked.get(&(file.to_owned(), op, how)).copied();
    // What is written back while the call is still at it is linked to none; an emulated processor may be that slow, and where
    // others dirty a lot the kernel does not wait. What it wrote back before, fsync did not submit.
    let least = if live::slower() == 1 { total * 3 / 4 } else { 1 };
    let written = of("buffered", "write", "writeback");
    assert!(written.is_some_and(|bytes| (least..=total).contains(&bytes)), "{linked:?}");
    assert!(of("buffered", "fsync", "sync") <= Some(total), "{linked:?}");
    agrees("direct writes", of("direct", "write", "direct").unwrap_or(0), total);
    let read = of("buffered", "read", "readahead").unwrap_or(0) + of("buffered", "read", "sync").unwrap_or(0);
    agrees("read", read, total);

    let mut unseen = 0;
    for request in data.block.iter().filter(|b| b.dev == device.number) {
        assert!(request.queue_ns <= request.issue_ns && request.qdepth >= 1, "{request:?}");
        if request.dur_ns.is_none() {
            unseen += 1;
            continue;
        }
        assert!(request.dur_ns >= Some(0), "{request:?}");
        assert_eq!(request.status, Some(0), "{request:?}");
    }
    // Some ends have no tracepoint: a known limit (docs/architecture.md).
    assert!(unseen <= data.block.len().max(100) / 100, "{unseen} ends were not seen");
}

#[test]
fn direct_writes_link_the_bytes_that_the_kernel_charges_to_the_process() {
    let work = live::scratch();
    let script = "
import mmap, os, sys
def charged():
    return int(next(l for l in open('/proc/self/io') if l.startswith('write_bytes')).split()[1])
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
buffer = mmap.mmap(-1, 65536)
before = charged()
for n in range(16):
    assert os.pwrite(fd, buffer, n * 65536) == 65536
print(charged() - before)";
    let file = work.path().join("direct");
    let traced = live::trace(work.path(), &[], &["python3", "-c", script, file.to_str().unwrap()]);
    let charged: i64 = traced.stdout.lines().next().unwrap().parse().unwrap();
    let data = traced.data().lossless();
    let spans: Vec<i64> = data.calls("pwrite64").filter(|s| data.path(s) == Some(&file)).map(|s| s.span_id).collect();
    let direct = data.links.iter().filter(|l| l.how == "direct" && spans.contains(&l.span_id));
    let linked: i64 = direct.map(|l| l.bytes).sum();
    assert_eq!((spans.len(), linked), (16, 16 * BLOCK));
    // The process is also charged for the blocks of the file system itself that it dirties.
    assert!((linked..linked + BLOCK).contains(&charged), "{charged} charged");
}

#[test]
fn what_only_gives_up_blocks_is_no_transfer_of_data() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let mount = device.mount.to_str().unwrap();
    // Without a journal blocks are discarded by the call that frees them.
    run("umount", &[mount]);
    run("tune2fs", &["-O", "^has_journal", &device.name]);
    run("mount", &["-o", "discard,no_prefetch_block_bitmaps", &device.name, mount]);
    run("dd", &["if=/dev/zero", &format!("of={mount}/file"), "bs=1M", "count=8", "status=none", "conv=fsync"]);
    run("sync", &[]);
    let script = "set -e; dd if=/dev/zero of=$0/written bs=64k count=16 oflag=direct status=none
        rm $0/file; sync; umount $0; fallocate -p -o 1M -l 2M $1";
    let before = device.counters();
    let traced = live::trace(work.path(), &["--layers", "syscall,block"], &["sh", "-c", script, mount, &device.name]);
    let after = device.counters();
    let data = traced.data().lossless();
    let grown = |at: usize| after[at] - before[at];
    let requests: BTreeMap<i64, &Block> =
        data.block.iter().filter(|b| b.dev == device.number).map(|b| (b.req_id, b)).collect();
    let sum = |op: &str| -> i64 { requests.values().filter(|b| b.op == op).map(|b| i64::from(b.bytes)).sum() };
    // Documentation/block/stat.rst; it counts what the device is to fill with zeroes as written.
    assert_eq!((sum("discard"), sum("write") + sum("other")), (grown(13) * 512, grown(6) * 512));
    assert!(sum("discard") >= 8 << 20 && sum("other") == 2 << 20, "{requests:?}");

    let mut links: BTreeMap<(&str, &str, &str), i64> = BTreeMap::new();
    for link in data.links.iter().filter(|l| requests.contains_key(&l.req_id)) {
        let call = data.spans.iter().find(|s| s.span_id == link.span_id).unwrap();
        *links.entry((call.op, requests[&link.req_id].op, link.how)).or_default() += link.bytes;
    }
    assert!(links[&("unlinkat", "discard", "discard")] >= 8 << 20, "{links:?}");
    assert_eq!(links[&("fallocate", "other", "discard")], 2 << 20, "{links:?}");
    assert_eq!(links[&("write", "write", "direct")], BLOCK * COUNT / 2, "{links:?}");
    assert!(links.keys().all(|(_, op, how)| (*how == "discard") == ["discard", "other"].contains(op)), "{links:?}");
    // Nor is it in what calls led to, and in all that was moved.
    let led = "SELECT op, device_bytes FROM v_calls_to_device WHERE requests > 0 AND op IN ('write', 'fallocate')";
    let expected = format!("[{{'op': 'write', 'device_bytes': {}}}]", BLOCK * COUNT / 2);
    sql::holds(&traced.dir, &format!("(SELECT list(led) FROM ({led}) AS led) = {expected}"));
    sql::compare(&traced.dir);
}
