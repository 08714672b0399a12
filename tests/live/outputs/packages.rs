//! The package of Debian, installed into a tree that has nothing but Debian's essential packages, traces there.

use crate::common::live::{self, Data};
use crate::common::packages::{ending, make, output};
use std::fs;
use std::process::Command;

/// In a mount namespace of its own, so that nothing stays mounted.
const INSTALL: &str = "set -e
    for dir in proc sys dev; do mount --rbind /$dir \"$0/$dir\"; done
    chroot \"$0\" dpkg --install /iotrace-bpf.deb
    chroot \"$0\" iotrace-bpf -o /run.iotrace --quiet -- dd if=/dev/zero of=/root/out bs=4k count=10 status=none
    chroot \"$0\" iotrace-bpf report /run.iotrace --section functions
    chroot \"$0\" dpkg --purge iotrace-bpf";

#[test]
fn the_package_of_debian_traces_in_an_empty_tree() {
    let work = live::scratch();
    let [packages, tree] = ["packages", "tree"].map(|name| work.path().join(name));
    make(&packages);
    let mut mmdebstrap = Command::new("mmdebstrap");
    // libelf: for a tracer that is not static. Unsafe: nobody needs the tree after a crash.
    mmdebstrap.args(["--quiet", "--variant=essential", "--include=libelf1", "--dpkgopt=force-unsafe-io", "bookworm"]);
    mmdebstrap.arg(&tree);
    output(&mut mmdebstrap);
    fs::copy(ending(&packages, ".deb"), tree.join("iotrace-bpf.deb")).unwrap();
    let text = output(Command::new("unshare").args(["--mount", "sh", "-c", INSTALL]).arg(&tree));
    assert!(text.contains("  syscall  write"), "{text}");

    let data = Data::read(&tree.join("run.iotrace")).lossless();
    let written: i64 = data.calls("write").filter_map(|span| span.bytes).sum();
    assert_eq!(written, 10 * 4096);
    assert!(data.processes.values().all(|process| process.user.as_deref() == Some("root")));
    assert!(!tree.join("usr/bin/iotrace-bpf").exists() && !tree.join("etc/iotrace-bpf.toml").exists());
}
