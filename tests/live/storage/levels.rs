//! Stacked devices and devices without a queue: the requests of each are those that the kernel counts, and have what handed
//! them down.

use crate::common::live::{self, Data};
use crate::common::machine::device::{self, Device, Kind};
use iotrace_bpf::rows::Block;

/// Writes and reads through the page cache and past it, and what is left of it before and after.
fn traced(device: &Device, work: &std::path::Path) -> Data {
    let script = format!(
        "set -e; cd {}
         dd if=/dev/zero of=buffered bs=64k count=40 conv=fsync status=none
         dd if=/dev/zero of=direct bs=2M count=4 oflag=direct status=none
         sync
         echo 3 > /proc/sys/vm/drop_caches
         cat buffered direct > /dev/null
         sync",
        device.mount.display()
    );
    live::trace(work, &["--force", "--layers", "syscall,block"], &["sh", "-c", &script]).data().lossless()
}

/// Bytes read and written, merges of both, as [`device::counters`] has them.
fn sums(data: &Data, device: i32) -> [i64; 4] {
    let sum = |op: &str, of: fn(&Block) -> i64| -> i64 {
        data.block.iter().filter(|b| b.dev == device && b.op == op).map(of).sum()
    };
    let bytes = |b: &Block| i64::from(b.bytes);
    let merges = |b: &Block| i64::from(b.merges);
    [sum("read", bytes), sum("write", bytes), sum("read", merges), sum("write", merges)]
}

fn grown(before: &[i64], after: &[i64]) -> [i64; 4] {
    let by = |at: usize| after[at] - before[at];
    [by(2) * 512, by(6) * 512, by(1), by(5)]
}

#[test]
fn requests_of_a_queue_have_merges_parts_and_device_name() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let queue = format!("/sys/block/{}/queue", device.name.trim_start_matches("/dev/"));
    // Direct writes of 2 MiB are too long for one request; in a scheduler they wait.
    let longest = std::fs::read_to_string(format!("{queue}/max_sectors_kb")).unwrap();
    std::fs::write(format!("{queue}/max_sectors_kb"), "256").unwrap();
    let schedulers = std::fs::read_to_string(format!("{queue}/scheduler")).unwrap();
    let scheduled = schedulers.contains("mq-deadline");
    if scheduled {
        std::fs::write(format!("{queue}/scheduler"), "mq-deadline").unwrap();
    }
    let before = device.counters();
    let data = traced(&device, work.path());
    let after = device.counters();
    // The next user of the device would have it, with another read-ahead: page faults map more than a page then.
    std::fs::write(format!("{queue}/max_sectors_kb"), longest.trim()).unwrap();
    assert_eq!(sums(&data, device.number), grown(&before, &after));
    let of = |b: &&Block| b.dev == device.number;
    let name = device.name.trim_start_matches("/dev/");
    for request in data.block.iter().filter(of) {
        assert_eq!(request.device.as_deref(), Some(name), "{request:?}");
        assert!(request.bytes <= 256 << 10 && request.upper_dev.is_none(), "{request:?}");
        assert!(request.queue_ns <= request.issue_ns, "{request:?}");
        // What is parts of a flush goes to the driver as it comes.
        let inserted = request.insert_ns.is_none_or(|at| request.queue_ns <= at && at <= request.issue_ns);
        assert!(inserted, "{request:?}");
    }
    let inserted = data.block.iter().filter(of).filter(|b| b.insert_ns.is_some()).count();
    assert!(!scheduled || inserted > 0, "{schedulers}");
    let parts = data.block.iter().filter(of).filter(|b| b.op == "write" && b.class == "sync" && b.splits > 0);
    assert!(parts.map(|b| i64::from(b.bytes)).sum::<i64>() >= 8 << 20, "four writes of 2 MiB in parts");
}

#[test]
fn a_device_without_a_queue_has_its_bios_as_requests() {
    let work = live::scratch();
    let device = Device::of(Kind::Zram, work.path(), "ext4");
    let before = device.counters();
    let data = traced(&device, work.path());
    let after = device.counters();
    let sums = sums(&data, device.number);
    assert_eq!(sums[..2], grown(&before, &after)[..2]);
    assert!(sums[0] >= 8 << 20 && sums[1] >= 10 << 20, "{sums:?}");
    for request in data.block.iter().filter(|b| b.dev == device.number) {
        assert_eq!((request.queue_ns, request.insert_ns), (request.issue_ns, None), "{request:?}");
        assert_eq!(request.status, Some(0), "{request:?}");
    }
}

/// Each device has its own sums: the stacked one and those below, whose numbers are returned in this order.
fn each_level_has_its_own_requests(kind: Kind) -> (Vec<i32>, Data) {
    let work = live::scratch();
    let device = Device::of(kind, work.path(), "ext4");
    let numbers: Vec<i32> = std::iter::once(&device.name).chain(&device.below).map(|n| device::number(n)).collect();
    let before: Vec<Vec<i64>> = numbers.iter().map(|n| device::counters(*n)).collect();
    let data = traced(&device, work.path());
    for (number, before) in numbers.iter().zip(&before) {
        let after = device::counters(*number);
        assert_eq!(sums(&data, *number)[..2], grown(before, &after)[..2], "{kind:?} {number:x}");
    }
    let handed: Vec<&Block> = data.block.iter().filter(|b| b.upper_dev == Some(device.number)).collect();
    assert!(handed.iter().all(|b| numbers[1..].contains(&b.dev)), "{handed:?}");
    assert!(data.block.iter().filter(|b| b.dev == device.number).all(|b| b.upper_dev.is_none()));
    (numbers, data)
}

#[test]
#[ignore = "needs the device mapper, which many kernels have only as a module; run it with --ignored where it is loaded"]
fn a_linear_mapping_hands_down_all_that_it_gets() {
    let (devices, data) = each_level_has_its_own_requests(Kind::Linear);
    let [read, written, ..] = sums(&data, devices[0]);
    assert!(read > 0 && written > 0);
    let handed = |op: &str| -> i64 {
        let of = data.block.iter().filter(|b| b.dev == devices[1] && b.upper_dev == Some(devices[0]) && b.op == op);
        of.inspect(|b| assert_eq!(b.upper_sector, Some(b.sector))).map(|b| i64::from(b.bytes)).sum()
    };
    assert_eq!([handed("read"), handed("write")], [read, written]);
}

#[test]
#[ignore = "needs md, which many kernels have only as a module; run it with --ignored where raid0 is loaded"]
fn a_striped_device_hands_down_all_that_it_gets_to_where_it_belongs() {
    let (devices, data) = each_level_has_its_own_requests(Kind::Striped);
    let chunk = device::CHUNK / 512;
    let mut handed = [0; 2];
    for request in data.block.iter().filter(|b| b.upper_dev == Some(devices[0])) {
        let upper = request.upper_sector.unwrap();
        let stripe = upper / chunk;
        let below = (devices[1 + (stripe % 2) as usize], stripe / 2 * chunk + upper % chunk);
        assert_eq!((request.dev, request.sector), below, "{request:?}");
        match request.op {
            "read" => handed[0] += i64::from(request.bytes),
            "write" => handed[1] += i64::from(request.bytes),
            _ => {}
        }
    }
    let [read, written, ..] = sums(&data, devices[0]);
    assert!(read > 0 && written > 0);
    assert_eq!(handed, [read, written]);
}
