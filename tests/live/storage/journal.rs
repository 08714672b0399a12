//! Requests of the journal of ext4 and the log of XFS are marked, and calls have the time that they waited for these.

use crate::common::live;
use crate::common::machine::device::{Device, run};
use std::fs;
use std::ops::Range;

/// The sectors of the journal, by the file system's own tools.
fn journal(device: &Device, fstype: &str) -> Vec<Range<i64>> {
    let sectors = |block: i64, blocks: i64, size: i64| block * size / 512..(block + blocks) * size / 512;
    if fstype == "ext4" {
        let size = run("stat", &["-f", "-c", "%S", device.mount.to_str().unwrap()]).parse().unwrap();
        let blocks = run("debugfs", &["-R", "blocks <8>", &device.name]);
        return blocks.split_whitespace().map(|b| sectors(b.parse().unwrap(), 1, size)).collect();
    }
    let superblock =
        run("xfs_db", &["-r", "-c", "sb 0", "-c", "p logstart logblocks agblklog agblocks blocksize", &device.name]);
    let field = |name: &str| -> i64 {
        let line = superblock.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(" = ")).unwrap();
        line.parse().unwrap()
    };
    let (start, shift) = (field("logstart"), field("agblklog"));
    let block = (start >> shift) * field("agblocks") + (start & ((1 << shift) - 1));
    vec![sectors(block, field("logblocks"), field("blocksize"))]
}

fn requests_in_the_journal_are_of_its_class(fstype: &str) {
    let work = live::scratch();
    let device = Device::new(work.path(), fstype);
    let journal = journal(&device, fstype);
    let script = format!(
        "set -e; cd {}
         for d in a b c; do mkdir $d; for f in 1 2 3 4 5 6 7 8; do echo text > $d/$f; done; sync -f $d; done
         dd if=/dev/zero of=a/data bs=64k count=20 conv=fsync status=none
         dd if=/dev/zero of=b/data bs=64k count=20 oflag=direct,dsync status=none
         rm -r b; sync",
        device.mount.display()
    );
    let before = device.counters();
    let traced = live::trace(work.path(), &["--force", "--layers", "syscall,block"], &["sh", "-c", &script]);
    let after = device.counters();
    let data = traced.data().lossless();
    let (mut inside, mut bytes) = (0, 0);
    for request in data.block.iter().filter(|b| b.dev == device.number && b.op == "write") {
        let is = journal.iter().any(|j| j.contains(&request.sector));
        assert_eq!(request.class == "journal", is, "{fstype} {request:?}");
        inside += i64::from(is);
        bytes += i64::from(request.bytes);
    }
    assert!(inside >= 4, "{inside} writes to the journal");
    assert_eq!(bytes, (after[6] - before[6]) * 512);
}

#[test]
fn requests_in_the_journal_of_ext4_are_of_its_class() {
    requests_in_the_journal_are_of_its_class("ext4");
}

#[test]
fn requests_in_the_log_of_xfs_are_of_its_class() {
    requests_in_the_journal_are_of_its_class("xfs");
}

/// What the setting was is set again in the end.
struct Hidden(String);

const SETTING: &str = "/proc/sys/kernel/kptr_restrict";

impl Drop for Hidden {
    fn drop(&mut self) {
        fs::write(SETTING, &self.0).unwrap();
    }
}

#[test]
fn when_the_kernel_hides_its_addresses_the_verdict_names_what_is_not_known() {
    let work = live::scratch();
    let verdicts = || {
        let data = live::trace(work.path(), &["--force", "--layers", "block"], &["true"]).data().lossless();
        data.coverage.into_iter().filter(|c| c.symbol == "iot_find_symbols").collect::<Vec<_>>()
    };
    assert_eq!(verdicts(), []);
    let _before = Hidden(fs::read_to_string(SETTING).unwrap());
    fs::write(SETTING, "2").unwrap();
    let [verdict] = &verdicts()[..] else { panic!("one verdict") };
    assert_eq!(verdict.status, "refused");
    assert!(verdict.reason.as_deref().is_some_and(|why| why.contains("kptr_restrict")), "{verdict:?}");
}
