//! What processes dirty, by calls and through mappings, is written back after they have ended: it is still theirs.

use crate::common::live::{self, Data};
use crate::common::machine::device::Device;
use crate::common::programs;
use iotrace_bpf::rows::{Block, Span};
use iotrace_bpf::vocabulary::{Layer, flag};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: i64 = 4096;
const PAGES: i64 = 300;
/// What dd writes: not whole pages.
const BLOCK: i64 = 65_000;
const COUNT: i64 = 40;

fn name(data: &Data, file: Option<i32>) -> Option<String> {
    let path = data.files[&file?].path.as_deref()?;
    Path::new(path).file_name().map(|n| n.to_string_lossy().into_owned())
}

/// The page faults of a process on a file.
fn faults<'a>(data: &'a Data, pid: &Value, file: &str) -> Vec<&'a Span> {
    let of = |s: &&Span| i64::from(s.pid) == pid.as_i64().unwrap() && name(data, s.file_id).as_deref() == Some(file);
    data.layer(Layer::Vfs).filter(of).collect()
}

/// Each page fault of the programs is a call, and a major one is marked.
fn compare_faults(data: &Data, wrote: &Value, read: &Value) {
    for (program, op) in [(wrote, "page_fault_write"), (read, "page_fault_read")] {
        let faults = faults(data, &program["pid"], "stored");
        let major = faults.iter().filter(|s| s.flags & flag::MAJOR != 0).count();
        let printed = [&program["minor"], &program["major"]].map(|n| n.as_u64().unwrap() as usize);
        assert_eq!([faults.len() - major, major], printed, "{op}");
        assert!(faults.iter().all(|s| s.op == op && s.bytes == Some(PAGE) && s.offset.is_some_and(|o| o % PAGE == 0)));
        let pages: BTreeSet<Option<i64>> = faults.iter().map(|s| s.offset).collect();
        assert!(op == "page_fault_read" || pages.len() == PAGES as usize, "every page is written to");
    }
}

/// Written bytes of files, by name, process and how that is known.
type Written = BTreeMap<(Option<String>, Option<i32>, &'static str), i64>;

/// The owners of the bytes of these requests: bytes by operation, and written ones of files.
fn owned(data: &Data, requests: &BTreeMap<i64, &Block>) -> (BTreeMap<&'static str, i64>, Written) {
    let (mut sums, mut written) = (BTreeMap::new(), Written::new());
    for owner in data.owners.iter().filter(|o| requests.contains_key(&o.req_id)) {
        let request = requests[&owner.req_id];
        *sums.entry(request.op).or_default() += owner.bytes;
        let process = owner.process_ix.map(|ix| &data.processes[&ix]);
        if request.op == "write" && owner.file_id.is_some() {
            let key = (name(data, owner.file_id), process.map(|p| p.pid), owner.known_by);
            *written.entry(key).or_default() += owner.bytes;
        }
    }
    (sums, written)
}

fn write_back_of_mapped_and_written_files_belongs_to_the_writers(fstype: &str) {
    let work = live::scratch();
    let device = Device::new(work.path(), fstype);
    let mapped = programs::build("mapped");
    // Processes that dirty, one that ends their day, and one that reads what is not in memory any more.
    let script = format!(
        "set -e; cd {}
         {mapped} write stored {PAGES}
         dd if=/dev/zero of=written bs={BLOCK} count={COUNT} status=none
         sync
         echo 3 > /proc/sys/vm/drop_caches
         {mapped} read stored",
        device.mount.display(),
        mapped = mapped.display()
    );
    let before = device.counters();
    let traced = live::trace(work.path(), &["--layers", "syscall,vfs,block"], &["sh", "-c", &script]);
    let after = device.counters();
    let truth: Vec<Value> = traced.stdout.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let data = traced.data().lossless();
    let [wrote, read] = truth.as_slice() else { panic!("{truth:?}") };

    compare_faults(&data, wrote, read);

    // Every byte that the kernel counts belongs to a process, or to none, once.
    let requests: BTreeMap<i64, &Block> =
        data.block.iter().filter(|b| b.dev == device.number).map(|b| (b.req_id, b)).collect();
    let (sums, written) = owned(&data, &requests);
    assert_eq!(sums["write"], (after[6] - before[6]) * 512, "bytes written");
    let known: i64 = written.iter().filter(|((.., by), _)| *by != "none").map(|(_, bytes)| bytes).sum();
    let files: i64 = written.values().sum();
    println!("{fstype}: of {files} bytes of files that were written back, {known} are of a process and a call");
    println!(
        "{fstype}: of {} bytes written, {} are of no file: journal and metadata",
        sums["write"],
        sums["write"] - files
    );
    assert_eq!(sums["read"], (after[2] - before[2]) * 512, "bytes read");

    let dd = data.processes.values().find(|p| p.cmdline.first().is_some_and(|a| a == "dd")).unwrap().pid;
    let writer = wrote["pid"].as_i64().unwrap() as i32;
    let of = |file: &str, pid: i32, by: &'static str| written.get(&(Some(file.to_owned()), Some(pid), by)).copied();
    let range = of("written", dd, "range").unwrap();
    // Where others dirty a lot, the kernel writes back what a call has not returned from yet: that has no owner.
    assert!((BLOCK * COUNT * 3 / 4..=BLOCK * COUNT).contains(&range), "{written:?}");
    let all = |file: &str| -> i64 {
        written.iter().filter(|((name, ..), _)| name.as_deref() == Some(file)).map(|(_, bytes)| bytes).sum()
    };
    assert!(all("written") >= BLOCK * COUNT, "{written:?}");
    let padding = PAGE - BLOCK * COUNT % PAGE;
    // The kernel may write back a page between two stores or writes to it, and then again.
    assert!(range < BLOCK * COUNT || of("written", dd, "page") >= Some(padding), "{written:?}");
    assert!(of("stored", writer, "range") >= Some(PAGES * PAGE), "{written:?}");
    let others = written.keys().filter(|(_, pid, by)| *by != "none" && ![Some(dd), Some(writer)].contains(pid));
    assert_eq!(others.count(), 0, "{written:?}");

    // The faults that read and wrote are linked to the requests.
    let linked = |op: &str, how: &[&str]| -> i64 {
        let calls: BTreeSet<i64> = data.calls(op).map(|s| s.span_id).collect();
        let links = data.links.iter().filter(|l| requests.get(&l.req_id).is_some_and(|r| r.class != "meta"));
        links.filter(|l| how.contains(&l.how) && calls.contains(&l.span_id)).map(|l| l.bytes).sum()
    };
    assert!(linked("page_fault_write", &["writeback"]) >= PAGES * PAGE);
    assert_eq!(linked("page_fault_read", &["readahead", "sync"]), PAGES * PAGE);
}

#[test]
fn write_back_belongs_to_the_writers_on_ext4() {
    write_back_of_mapped_and_written_files_belongs_to_the_writers("ext4");
}

#[test]
fn write_back_belongs_to_the_writers_on_xfs() {
    write_back_of_mapped_and_written_files_belongs_to_the_writers("xfs");
}

#[test]
fn write_back_belongs_to_the_writers_on_btrfs() {
    write_back_of_mapped_and_written_files_belongs_to_the_writers("btrfs");
}
