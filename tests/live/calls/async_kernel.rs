//! `io_uring` and libaio: operations and bytes are those that fio and a program of known operations count themselves.

use crate::common::live::{self, Data, Traced};
use crate::common::programs;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Job, engine, access, further options, and the operations that it must be made of.
type Job = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const JOBS: &[Job] = &[
    ("ring", "io_uring", "randread", &["iodepth=16", "direct=1"], &["io_uring.read"]),
    ("ring_cached", "io_uring", "randrw", &["iodepth=8"], &["io_uring.read", "io_uring.write"]),
    (
        "ring_fixed",
        "io_uring",
        "randrw",
        &["iodepth=32", "direct=1", "fixedbufs", "registerfiles"],
        &["io_uring.read_fixed", "io_uring.write_fixed"],
    ),
    ("ring_polled", "io_uring", "randread", &["iodepth=8", "direct=1", "sqthread_poll"], &["io_uring.read"]),
    (
        "ring_polled_fixed",
        "io_uring",
        "randwrite",
        &["iodepth=8", "sqthread_poll", "fixedbufs", "registerfiles"],
        &["io_uring.write_fixed"],
    ),
    ("ring_workers", "io_uring", "randread", &["iodepth=8", "direct=1", "force_async=1"], &["io_uring.read"]),
    ("ring_workers_cached", "io_uring", "randread", &["iodepth=8", "force_async=1"], &["io_uring.read"]),
    (
        "ring_vectors",
        "io_uring",
        "write",
        &["iodepth=4", "nonvectored=0", "fsync=32"],
        &["io_uring.fsync", "io_uring.writev"],
    ),
    ("ring_one", "io_uring", "read", &[], &["io_uring.read"]),
    ("aio", "libaio", "randread", &["iodepth=16", "direct=1"], &["aio.pread"]),
    // Its ring is longer than the page that is in memory.
    ("aio_deep", "libaio", "randread", &["iodepth=128", "direct=1"], &["aio.pread"]),
    ("aio_cached", "libaio", "randrw", &["iodepth=16"], &["aio.pread", "aio.pwrite"]),
    ("aio_reaped", "libaio", "randread", &["iodepth=16", "direct=1", "userspace_reap"], &["aio.pread"]),
    (
        "aio_reaped_batches",
        "libaio",
        "randwrite",
        &["iodepth=64", "direct=1", "userspace_reap", "iodepth_batch=16"],
        &["aio.pwrite"],
    ),
    ("sync", "sync", "randrw", &[], &["read", "write"]),
    ("psync", "psync", "randrw", &[], &["pread64", "pwrite64"]),
    ("pvsync2", "pvsync2", "randrw", &[], &["preadv2", "pwritev2"]),
    ("splice_from", "splice", "read", &[], &["splice"]),
    ("splice_to", "splice", "write", &[], &["splice"]),
    ("mapped", "mmap", "randrw", &[], &[]),
];

/// Bytes of each job's file.
const SIZE: usize = 512 << 10;

/// One trace of fio with all jobs, one after the other, each on a file of its own; what fio counted by job.
fn fio(work: &Path) -> (Traced, BTreeMap<String, Value>) {
    let mut jobs = format!("[global]\nbs=4k\nsize={SIZE}\nallow_file_create=0\nend_fsync=0\n");
    for (name, engine, access, options, _) in JOBS {
        fs::write(work.join(name), vec![7; SIZE]).unwrap();
        let file = work.join(name);
        let options = options.join("\n");
        jobs +=
            &format!("[{name}]\nstonewall\nfilename={}\nioengine={engine}\nrw={access}\n{options}\n", file.display());
    }
    fs::write(work.join("jobs.fio"), jobs).unwrap();
    let (file, output) = (work.join("jobs.fio"), work.join("fio.json"));
    let output_to = format!("--output={}", output.display());
    let command = ["fio", "--output-format=json", &output_to, file.to_str().unwrap()];
    let traced = live::trace(work, &["--layers", "syscall,block"], &command);
    let text = fs::read_to_string(&output).unwrap_or_else(|e| panic!("{e}: {}", traced.stderr));
    // Before it fio writes notes.
    let program_counts: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let jobs = program_counts["jobs"].as_array().unwrap();
    (traced, jobs.iter().map(|job| (job["jobname"].as_str().unwrap().to_owned(), job.clone())).collect())
}

/// Reads, writes: how many, and bytes.
fn sums<'a>(spans: impl Iterator<Item = &'a Span>) -> [(i64, i64); 2] {
    let mut sums = [(0, 0); 2];
    for span in spans {
        let sum = match span.kind {
            Kind::Read => &mut sums[0],
            Kind::Write => &mut sums[1],
            _ => continue,
        };
        *sum = (sum.0 + 1, sum.1 + span.bytes.unwrap_or(0));
    }
    sums
}

#[test]
fn operations_and_bytes_of_every_engine_are_fios_own() {
    let work = live::scratch();
    let (traced, program_counts) = fio(work.path());
    let data = traced.data().lossless();
    assert!(data.layers_are_unions() > 0, "no operations at once");
    let asynchronous = |s: &Span| s.flags & flag::ASYNC != 0;
    for (name, engine, _, options, ops) in JOBS {
        let file = work.path().join(name);
        let own: Vec<&Span> = data.layer(Layer::Syscall).filter(|s| data.path(s) == Some(&file)).collect();
        let truth = ["read", "write"].map(|kind| {
            let of = &program_counts[*name][kind];
            (of["total_ios"].as_i64().unwrap(), of["io_bytes"].as_i64().unwrap())
        });
        assert_ne!(truth[0].1 + truth[1].1, 0, "{name}");
        assert!(own.iter().any(|s| s.kind == Kind::Open), "{name}");
        if *engine == "mmap" {
            assert_eq!(sums(own.into_iter()), [(0, 0); 2], "{name} makes no calls for its data");
            continue;
        }
        assert_eq!(sums(own.iter().copied().filter(|s| s.layer_top)), truth, "{name}");
        let synced = program_counts[*name]["sync"]["total_ios"].as_i64().unwrap();
        assert_eq!(own.iter().filter(|s| s.kind == Kind::Sync).count() as i64, synced, "{name}");
        let used = own.iter().filter(|s| matches!(s.kind, Kind::Read | Kind::Write | Kind::Sync)).map(|s| s.op);
        assert_eq!(used.collect::<BTreeSet<_>>(), ops.iter().copied().collect(), "{name}");

        let operations: Vec<&Span> = own.into_iter().filter(|s| asynchronous(s)).collect();
        assert_eq!(operations.is_empty(), !["io_uring", "libaio"].contains(engine), "{name}");
        let polled = options.contains(&"sqthread_poll");
        for operation in &operations {
            assert_eq!((operation.flags & flag::UNFINISHED, operation.errno, operation.self_ns), (0, 0, 0), "{name}");
            assert_eq!(operation.async_id, Some(operation.span_id), "{name}");
            assert_eq!(operation.flags & flag::DIRECT != 0, options.contains(&"direct=1"), "{name}");
            // With a polled queue fio registers its files, too.
            assert_eq!(operation.handle_id.is_some(), !polled && !options.contains(&"registerfiles"), "{name}");
            let by = data.parent(operation);
            assert_eq!((by.is_none(), operation.depth), (polled, i8::from(!polled)), "{name}");
            if let Some(by) = by {
                assert!(["io_uring_enter", "io_submit"].contains(&by.op), "{name} by {}", by.op);
                assert_eq!((by.tid, by.root_id), (operation.tid, operation.root_id), "{name}");
                assert!(by.start_ns <= operation.start_ns, "{name}");
            } else {
                let thread = &data.threads[&i32::try_from(operation.span_id >> 33).unwrap()];
                assert!(thread.comm.starts_with("iou-sqp-"), "{name} by {}", thread.comm);
            }
        }
        if options.contains(&"direct=1") {
            // Every byte went to the device, in requests below its operation.
            let ids: BTreeSet<i64> = operations.iter().map(|s| s.span_id).collect();
            let linked = data.links.iter().filter(|l| l.how == "direct" && ids.contains(&l.span_id));
            let (linked, all) = (linked.map(|l| l.bytes).sum::<i64>(), truth[0].1 + truth[1].1);
            // Of a polled queue some are now and then not linked: docs/architecture.md, limits.
            assert!(if polled { linked > 0 && linked <= all } else { linked == all }, "{name}: {linked} of {all}");
        }
        let read_ahead = data.links.iter().filter(|l| operations.iter().any(|s| s.span_id == l.span_id));
        for link in read_ahead {
            let of = operations.iter().find(|s| s.span_id == link.span_id).unwrap();
            assert_eq!(link.root_id, of.root_id, "{name}");
        }
    }
    // What waits for operations names one of them.
    let ids: BTreeSet<i64> = data.spans.iter().filter(|s| asynchronous(s)).map(|s| s.span_id).collect();
    let waits: Vec<i64> = data.calls("io_getevents").filter_map(|s| s.async_id).collect();
    assert!(!waits.is_empty() && waits.iter().all(|id| ids.contains(id)));

    // The report takes them for what the program asked for.
    let report = live::tracer().args(["report", "--json"]).arg(work.path().join("run.iotrace")).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    for (kind, what) in [("read", Kind::Read), ("write", Kind::Write)] {
        let top = data.layer(Layer::Syscall).filter(|s| s.kind == what && s.layer_top);
        let asked: i64 = top.filter_map(|s| s.req_bytes.or(s.bytes)).sum();
        assert_eq!(report["amplification"][kind]["asked"]["sum"].as_i64(), Some(asked), "{kind}");
    }
}

const READ: &str = "io_uring.read";
const WRITE: &str = "io_uring.write";
const FSYNC: &str = "io_uring.fsync";

/// Results by line, as the program printed them; the tracer's report follows.
fn printed(stdout: &str) -> BTreeMap<&str, Vec<i64>> {
    let numbers = |line: &str| line.split(' ').map(|n| n.parse().ok()).collect::<Option<Vec<i64>>>();
    stdout
        .lines()
        .map_while(|line| line.split_once(' ').and_then(|(what, rest)| Some((what, numbers(rest)?))))
        .collect()
}

/// The operations of `io_uring` in the order of their submission, as far as they were not compared yet.
struct Operations<'a> {
    data: &'a Data,
    work: &'a Path,
    left: std::vec::IntoIter<&'a Span>,
}

impl<'a> Operations<'a> {
    fn new(data: &'a Data, work: &'a Path) -> Self {
        let mut all: Vec<&Span> = data.spans.iter().filter(|s| s.op.starts_with("io_uring.")).collect();
        all.sort_unstable_by_key(|s| s.span_id);
        Self { data, work, left: all.into_iter() }
    }

    /// The next ones, which are these and have the results that the program printed.
    fn next(&mut self, what: &str, ops: &[&str], results: &[i64]) -> Vec<&'a Span> {
        // Opens give descriptors, which the program does not print.
        let result = |s: &Span| if s.kind == Kind::Open && s.errno == 0 { Some(0) } else { s.ret };
        let some: Vec<&Span> = self.left.by_ref().take(ops.len()).collect();
        assert_eq!(some.iter().map(|s| s.op).collect::<Vec<_>>(), ops, "{what}");
        let program_counts: Vec<Option<i64>> = results.iter().copied().map(Some).collect();
        assert_eq!(some.iter().map(|s| result(s)).collect::<Vec<_>>(), program_counts, "{what}");
        for span in &some {
            assert_eq!(i64::from(span.errno), span.ret.filter(|r| *r < 0).map_or(0, |r| -r), "{what}");
            assert_eq!(self.data.parent(span).unwrap().op, "io_uring_enter", "{what}");
            assert_eq!(span.flags & flag::UNFINISHED, 0, "{what}");
        }
        some
    }

    fn path(&self, name: &str) -> String {
        self.work.join(name).to_str().unwrap().to_owned()
    }

    /// The paths that a call was given.
    fn names(&self, span: &Span) -> [Option<String>; 2] {
        [span.path_id, span.path2_id].map(|id| id.map(|id| self.data.named[&id].clone()))
    }
}

/// Reads and writes of one buffer and of several, up to the end of the file.
fn compare_ranges(operations: &mut Operations<'_>, results: &[i64]) {
    let mixed = operations.next("mixed", &[READ, "io_uring.readv", "io_uring.writev", READ, READ], results);
    let places: Vec<_> = mixed.iter().map(|s| (s.offset, s.req_bytes, s.bytes)).collect();
    let at = |offset, asked, moved| (Some(offset), Some(asked), moved);
    let end = 16 * 4096 - 11;
    assert_eq!(
        places,
        [
            at(100, 50, Some(50)),
            at(7, 1500, Some(1500)),
            at(9, 1500, Some(1500)),
            at(end, 4096, Some(11)),
            at(0, 4096, None)
        ]
    );
}

/// A file that is opened, used and closed by requests, and one that does not exist.
fn compare_open_files(operations: &mut Operations<'_>, results: &[i64]) {
    let ops = ["io_uring.openat", WRITE, "io_uring.fallocate", "io_uring.close", "io_uring.openat"];
    let opened = operations.next("opened", &ops, results);
    let data = operations.data;
    let handle = opened[0].handle_id.unwrap();
    assert_eq!(data.path(opened[1]), Some(operations.work.join("made").as_path()));
    assert!(opened[..4].iter().all(|s| s.handle_id == Some(handle) && s.file_id == opened[0].file_id));
    let row = &data.handles[&handle];
    assert_eq!((row.open_span_id, row.close_span_id), (Some(opened[0].span_id), Some(opened[3].span_id)));
    assert_eq!((opened[2].offset, opened[2].req_bytes), (Some(4096), Some(3 * 4096)));
    let names = [opened[0], opened[4]].map(|s| operations.names(s));
    assert_eq!(names, [[Some(operations.path("made")), None], [Some(operations.path("missing")), None]]);
}

/// Requests on paths.
fn compare_names(operations: &mut Operations<'_>, results: &[i64]) {
    let kinds = ["mkdirat", "mkdirat", "linkat", "symlinkat", "renameat", "statx", "unlinkat"];
    let ops = kinds.map(|kind| format!("io_uring.{kind}"));
    let named = operations.next("named", &ops.each_ref().map(String::as_str), results);
    assert_eq!(named.iter().map(|s| s.errno).collect::<Vec<_>>(), [0, 17, 0, 0, 0, 2, 0]);
    let path = |name: &str| Some(operations.path(name));
    let given = [
        [path("dir"), None],
        [path("dir"), None],
        [path("made"), path("dir/linked")],
        [path("dir/pointing"), None],
        [path("dir/linked"), path("renamed")],
        [path("dir/missing"), None],
        [path("renamed"), None],
    ];
    assert_eq!(named.iter().map(|s| operations.names(s)).collect::<Vec<_>>(), given);
}

/// Operations of libaio on the file, with the results of those that succeed.
fn compare_libaio(data: &Data, file: &Path, results: &[i64]) {
    let mut blocks: Vec<&Span> = data.spans.iter().filter(|s| s.op.starts_with("aio.")).collect();
    blocks.sort_unstable_by_key(|s| s.span_id);
    let ops: Vec<&str> = blocks.iter().map(|s| s.op).collect();
    assert_eq!(ops, ["aio.pwrite", "aio.preadv", "aio.pwritev", "aio.fdsync", "aio.pwrite"]);
    let recorded: Vec<i64> = blocks.iter().take(4).filter_map(|s| s.ret).collect();
    assert_eq!(recorded, results);
    let places: Vec<_> = blocks.iter().map(|s| (s.offset, s.req_bytes)).collect();
    let asked = |offset, bytes| (Some(offset), Some(bytes));
    let end = 16 * 4096 - 100;
    assert_eq!(places, [asked(50, 200), asked(end, 340), asked(0, 340), (None, None), asked(50, 200)]);
    for span in &blocks {
        assert_eq!(data.path(span), Some(file));
        assert_eq!(data.parent(span).unwrap().op, "io_submit");
    }
    let refused: Vec<i16> = data.calls("io_submit").map(|s| s.errno).collect();
    assert_eq!(refused, [0, 9, 0]);
}

#[test]
fn links_cancelled_requests_errors_and_full_queues_are_recorded() {
    let work = live::scratch();
    let program = programs::build("async_kernel");
    let traced = live::trace(work.path(), &[], &[program.as_path(), work.path()]);
    let stdout = traced.stdout.clone();
    let truth = printed(&stdout);
    let data = traced.data().lossless();
    let mut operations = Operations::new(&data, work.path());

    let broken = operations.next("broken", &[READ, WRITE, FSYNC], &truth["broken"]);
    assert_eq!(broken.iter().map(|s| s.errno).collect::<Vec<_>>(), [9, 125, 125]);
    operations.next("linked", &[WRITE, FSYNC, READ], &truth["linked"]);
    compare_ranges(&mut operations, &truth["mixed"]);
    compare_open_files(&mut operations, &truth["opened"]);
    compare_names(&mut operations, &truth["named"]);
    // Reads of a pipe are left out, as are cancelling requests; the file's read that was linked to one is not.
    assert_eq!(truth["pipe"], [-125, 0]);
    assert_eq!(truth["cancelled"], [-125, -125, 0]);
    operations.next("cancelled", &[READ], &truth["cancelled"][1..2]);
    let overflown = operations.next("overflown", &[WRITE; 40], &truth["overflown"]);
    assert!(overflown.iter().zip(0..).all(|(s, i)| (s.offset, s.bytes) == (Some(100 * i), Some(10 + i))));

    let silent: Vec<&Span> = operations.left.by_ref().take(4).collect();
    assert!(silent.iter().all(|s| (s.op, s.bytes) == (WRITE, None) && s.flags & flag::UNFINISHED != 0));
    assert_eq!(operations.left.map(|s| (s.op, s.ret)).collect::<Vec<_>>(), [(FSYNC, Some(0))]);

    compare_libaio(&data, &work.path().join("data"), &truth["blocks"]);
}

#[test]
fn operations_that_find_no_room_in_the_kernels_table_are_counted() {
    // More than `iot_ops` of bpf/asynchronous/operation.h holds, and some when it is empty again.
    const AT_ONCE: usize = 70_000;
    const ROOM: usize = 65_536;
    const LATER: usize = 100;
    let work = live::scratch();
    let program = programs::build("pending");
    let file = work.path().join("file");
    let (at_once, later) = (AT_ONCE.to_string(), LATER.to_string());
    let command: [&Path; 4] = [&program, &file, at_once.as_ref(), later.as_ref()];
    let traced = live::trace(work.path(), &["--ring-size", "64M"], &command);
    assert_eq!(traced.stdout.lines().next(), Some(&*(AT_ONCE + LATER).to_string()));
    let data = traced.data();
    let reads: Vec<&Span> = data.calls(READ).collect();
    assert!(reads.iter().all(|s| data.path(s) == Some(&file) && s.bytes == Some(1)));
    let lost = |place: &str| data.losses.iter().filter(|l| l.place == place).map(|l| l.count).sum::<i64>();
    assert!(data.losses.iter().all(|l| l.layer == Some(Layer::Syscall)), "{:?}", data.losses);
    assert_eq!(lost("map_full"), (AT_ONCE - ROOM) as i64, "{:?}", data.losses);
    // On a machine with many CPUs each has a small ring.
    assert_eq!(reads.len() as i64 + lost("ring"), (ROOM + LATER) as i64, "{:?}", data.losses);
}
