//! Write-back of pages that other processes dirtied: the call is not known, the control group is.

use crate::common::live;
use crate::common::machine::device::Device;
use crate::common::machine::group::{self, Group};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

const BYTES: i64 = 512 << 10;

fn pages_without_a_known_writer_are_of_their_control_group(fstype: &str) {
    let unified = group::unified();
    let controllers = fs::read_to_string(unified.join("cgroup.controllers")).unwrap();
    // Where these are elsewhere, in hierarchies of version 1, the kernel does not know whose dirty pages are.
    let charged = ["io", "memory"].iter().all(|wanted| controllers.split_whitespace().any(|has| has == *wanted));
    println!("write-back is {} to control groups here: {controllers}", if charged { "charged" } else { "not charged" });
    if charged {
        fs::write(unified.join("cgroup.subtree_control"), "+io +memory").unwrap();
    }

    let work = live::scratch();
    let device = Device::new(work.path(), fstype);
    let group = Group::new(fstype);
    let [ready, done] = ["ready", "done"].map(|name| work.path().join(name));
    let waits = format!("touch {}; while ! [ -e {} ]; do sleep 0.1; done; sync", ready.display(), done.display());
    // The tracer looks at what is executed in which group; the process that dirties is not traced.
    let traced = group.script(&format!("exec sh -c '{waits}'"));
    let file = device.mount.join("file");
    let dirties = group.script(&format!("exec dd if=/dev/zero of={} bs={BYTES} count=1 status=none", file.display()));
    let other = std::thread::spawn(move || {
        live::until("the traced process", || ready.exists());
        assert!(Command::new(&dirties[0]).args(&dirties[1..]).status().unwrap().success());
        fs::write(done, "").unwrap();
    });
    let data = live::trace(work.path(), &["--layers", "syscall,block"], &traced).data().lossless();
    other.join().unwrap();
    let written: BTreeMap<i64, &str> =
        data.block.iter().filter(|b| b.dev == device.number && b.op == "write").map(|b| (b.req_id, b.class)).collect();
    // What `sync` waits for may be of its class.
    let of_files = |class: Option<&&str>| matches!(class, Some(&("writeback" | "sync")));
    let mut sums: BTreeMap<(Option<&str>, &str), i64> = BTreeMap::new();
    for owner in data.owners.iter().filter(|o| of_files(written.get(&o.req_id))) {
        *sums.entry((owner.cgroup.as_deref(), owner.known_by)).or_default() += owner.bytes;
    }
    let path = format!("/{}", group.0.file_name().unwrap().to_string_lossy());
    let expected = if charged { (Some(&*path), "cgroup") } else { (None, "none") };
    assert_eq!(sums, BTreeMap::from([(expected, BYTES)]));
    let seen = data.processes.values().filter(|p| p.cgroup.as_deref() == Some(&path)).count();
    assert!(seen > 0, "{:?}", data.processes);
}

#[test]
fn what_others_dirty_is_of_its_control_group_on_ext4() {
    pages_without_a_known_writer_are_of_their_control_group("ext4");
}

#[test]
fn what_others_dirty_is_of_its_control_group_on_xfs() {
    pages_without_a_known_writer_are_of_their_control_group("xfs");
}
