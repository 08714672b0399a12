//! On overlayfs calls are on files above, and the pages that they dirty are those of files below: both are one file.

use crate::common::live::{self, Data};
use crate::common::machine::device::{Device, run};
use crate::common::programs;
use iotrace_bpf::rows::Block;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: i64 = 4096;
/// What dd writes: not whole pages.
const BLOCK: i64 = 65_000;
const COUNT: i64 = 40;
const PAGES: i64 = 100;
/// What there is before, in the lower directory.
const OLD: i64 = 300_000;

/// A file system of layers on one of a device, as long as this lives.
struct Overlay {
    merged: PathBuf,
}

impl Overlay {
    fn new(device: &Device, work: &Path) -> Self {
        let merged = work.join("merged");
        fs::create_dir(&merged).unwrap();
        for name in ["lower", "upper", "work"] {
            fs::create_dir(device.mount.join(name)).unwrap();
        }
        fs::write(device.mount.join("lower/old"), vec![b'o'; OLD as usize]).unwrap();
        let m = device.mount.display();
        let layers = format!("lowerdir={m}/lower,upperdir={m}/upper,workdir={m}/work");
        run("mount", &["-t", "overlay", "overlay", "-o", &layers, merged.to_str().unwrap()]);
        Self { merged }
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.merged).status();
    }
}

/// Bytes of file data that went to or came from the device: by file, program, and how that is known.
fn bytes(data: &Data, device: &Device, op: &str) -> BTreeMap<(String, String, &'static str), i64> {
    let requests: BTreeMap<i64, &Block> = data
        .block
        .iter()
        .filter(|b| b.dev == device.number && b.op == op && !["meta", "journal"].contains(&b.class))
        .map(|b| (b.req_id, b))
        .collect();
    let mut sums = BTreeMap::new();
    for owner in data.owners.iter().filter(|o| requests.contains_key(&o.req_id)) {
        let path = owner.file_id.and_then(|id| data.files[&id].path.clone()).unwrap_or_default();
        let program = owner.process_ix.and_then(|ix| data.processes[&ix].cmdline.first().cloned()).unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        *sums.entry((path, program, owner.known_by)).or_default() += owner.bytes;
    }
    sums
}

#[test]
fn write_back_on_overlayfs_belongs_to_the_writers() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let overlay = Overlay::new(&device, work.path());
    run("sync", &[]);
    let mapped = programs::build("mapped");
    // A new file; one that is copied up first; one that is written to through a mapping. Then all of it, from the device.
    let script = format!(
        "set -e; cd {}
         dd if=/dev/zero of=new bs={BLOCK} count={COUNT} status=none
         dd if=/dev/zero of=old bs={PAGE} count=10 conv=notrunc status=none
         {} write stored {PAGES} > /dev/null
         sync
         echo 3 > /proc/sys/vm/drop_caches
         md5sum new > /dev/null
         dd if=/dev/zero of=synced bs=64k count=16 conv=fsync status=none",
        overlay.merged.display(),
        mapped.display()
    );
    let before = device.counters();
    let traced = live::trace(work.path(), &["--layers", "syscall,vfs,block"], &["sh", "-c", &script]);
    let after = device.counters();
    let data = traced.data().lossless();
    let sum = |op: &str| -> i64 {
        let ids: Vec<i64> =
            data.block.iter().filter(|b| b.dev == device.number && b.op == op).map(|b| b.req_id).collect();
        data.owners.iter().filter(|o| ids.contains(&o.req_id)).map(|o| o.bytes).sum()
    };
    assert_eq!([sum("read"), sum("write")], [(after[2] - before[2]) * 512, (after[6] - before[6]) * 512]);

    let path = |name: &str| overlay.merged.join(name).to_str().unwrap().to_owned();
    let written = bytes(&data, &device, "write");
    let of = |name: &str, program: &str, by: &'static str| {
        written.get(&(path(name), program.to_owned(), by)).copied().unwrap_or(0)
    };
    // Of which bytes, and not only pages, is known once the call has returned.
    let (new, pages) = (of("new", "dd", "range"), of("new", "dd", "page"));
    assert!(new >= BLOCK * COUNT / 2 && new + pages >= BLOCK * COUNT * 95 / 100, "{written:?}");
    assert!(of("old", "dd", "range") + of("old", "dd", "page") >= 10 * PAGE, "{written:?}");
    assert!(of("stored", "mapped", "range") + of("stored", "mapped", "page") >= PAGES * PAGE, "{written:?}");
    // What was copied up when the file was opened has no name above, and it was the open that did it.
    let above = |file: &str| file.starts_with(overlay.merged.to_str().unwrap());
    let nameless: Vec<_> = written.iter().filter(|((file, ..), _)| !above(file)).collect();
    let [((file, program, by), copied)] = nameless.as_slice() else { panic!("{written:?}") };
    assert_eq!((file.as_str(), program.as_str(), *by), ("", "dd", "page"));
    assert!((OLD..=OLD + PAGE).contains(*copied), "{written:?}");

    let read = bytes(&data, &device, "read");
    let came: i64 = read.iter().filter(|((file, ..), _)| *file == path("new")).map(|(_, bytes)| bytes).sum();
    assert_eq!(came, (BLOCK * COUNT + PAGE - 1) / PAGE * PAGE, "{read:?}");

    // The calls are linked to the requests, and have the time that these took.
    let writes: Vec<i64> =
        data.calls("write").filter(|s| data.path(s) == Some(Path::new(&path("new")))).map(|s| s.span_id).collect();
    let linked: i64 =
        data.links.iter().filter(|l| l.how == "writeback" && writes.contains(&l.span_id)).map(|l| l.bytes).sum();
    assert_eq!(writes.len() as i64, COUNT);
    assert!((new..=new + pages).contains(&linked), "{linked}: {written:?}");
    let fsync = data.calls("fsync").find(|s| data.path(s) == Some(Path::new(&path("synced")))).unwrap();
    assert!(fsync.writeback_ns > Some(0) && fsync.journal_ns > Some(0), "{fsync:?}");
}
