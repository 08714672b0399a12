//! Errors, sizes, devices and collective calls of traces made by hand, and reports of some of the calls.

use crate::common::synthetic::trace::{Trace, file, process};
use iotrace_bpf::analysis::findings::Config;
use iotrace_bpf::export::report::{Report, Scope, build, build_of};
use iotrace_bpf::rows::{Block, CallPath, Row};
use iotrace_bpf::summary::filter::Filter;
use iotrace_bpf::vocabulary::{Kind, Layer};

type Op = (Layer, &'static str, Kind);

const H5WRITE: Op = (Layer::Hdf5, "H5Dwrite", Kind::Write);
const COLLECTIVE: Op = (Layer::Mpiio, "MPI_File_write_at_all", Kind::Write);
const WRITE: Op = (Layer::Syscall, "pwrite64", Kind::Write);
const READ: Op = (Layer::Syscall, "read", Kind::Read);
const OPEN: Op = (Layer::Syscall, "openat", Kind::Open);

fn report(trace: Trace) -> Report {
    build(&mut trace.finish()).unwrap()
}

/// A full disk, a name that does not exist, and a library call that failed around a failed system call.
fn failing() -> Trace {
    let mut t = Trace::default();
    t.row(file(1, "/scratch/run/a.h5"));
    t.row(Row::CallPath(CallPath { path_id: 7, path: "/etc/none".to_owned() }));
    for n in 0..12 {
        let h5 = t.call(0, None, H5WRITE, n * 1000, 500);
        t.edit(h5).file_id = Some(1);
        t.edit(h5).errno = -1;
        let write = t.call(0, Some(h5), WRITE, n * 1000 + 100, 10);
        t.edit(write).file_id = Some(1);
        t.edit(write).errno = 28;
    }
    for n in 0..20 {
        let open = t.call(0, None, OPEN, 20_000 + n * 10, 5);
        (t.edit(open).path_id, t.edit(open).errno) = (Some(7), 2);
    }
    t
}

#[test]
fn errors_have_names_and_directories_and_failed_lookups_come_last() {
    let r = report(failing());
    let rows: Vec<_> = r
        .errors
        .iter()
        .map(|e| (e.error.as_str(), e.layer, e.directory.as_deref(), e.calls, e.time_ns, e.op, e.lookup))
        .collect();
    assert_eq!(
        rows,
        [
            ("ENOSPC", "syscall", Some("/scratch/run"), 12, 120, "pwrite64", false),
            ("failed", "hdf5", Some("/scratch/run"), 12, 6000, "H5Dwrite", false),
            ("ENOENT", "syscall", Some("/etc"), 20, 100, "openat", true),
        ]
    );
    let text = r.text(100);
    let line = text.lines().find(|line| line.contains("ENOSPC")).unwrap();
    assert!(line.contains(" 12 ") && line.ends_with("/scratch/run"), "{text}");
}

#[test]
fn sizes_are_by_class_and_accesses_follow_each_other_as_darshan_defines_it() {
    let mut t = Trace::default();
    for (n, (offset, bytes)) in [(0, 100), (100, 100), (200, 101), (5000, 2000), (10, 0)].into_iter().enumerate() {
        let write = t.call(0, None, WRITE, n as i64 * 100, 10);
        t.moved(write, 1, bytes);
        t.edit(write).offset = Some(offset);
    }
    let read = t.call(0, None, READ, 1000, 10);
    t.moved(read, 1, 2 << 30);
    let r = report(t);
    let [reads, writes] = r.sizes.as_slice() else { panic!("{:?}", r.sizes) };
    assert_eq!((reads.kind, reads.calls, reads.sizes[9], reads.sequential), ("read", 1, 1, None));
    assert_eq!((writes.calls, writes.bytes), (5, 2301));
    assert_eq!(writes.sizes, [3, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
    // Of four with bytes three begin behind the one before, two of them right behind it; one is at a multiple of 4096.
    let parts = (writes.sequential, writes.consecutive, writes.unaligned);
    assert_eq!(parts, (Some(0.75), Some(0.5), Some(0.75)));
}

#[test]
fn a_device_has_all_its_requests() {
    let mut t = Trace::default();
    let write = t.call(0, None, WRITE, 0, 10_000);
    t.request(1, write, ("write", "sync"), 4096, 500);
    t.request(2, write, ("flush", "flush"), 0, 900);
    t.request(3, write, ("read", "readahead"), 8192, 100);
    let mut rows = t.finish();
    let Some(Row::Block(block)) = rows.iter().find(|row| matches!(row, Row::Block(_))).cloned() else { panic!() };
    rows.push(Row::Block(Block { req_id: 4, dur_ns: None, status: None, ..block.clone() }));
    rows.push(Row::Block(Block { req_id: 5, dev: 9 << 20, device: Some("md0".to_owned()), status: Some(10), ..block }));
    let r = build(&mut rows).unwrap();
    let [sda, md0] = r.devices.as_slice() else { panic!("{:?}", r.devices) };
    assert_eq!((sda.device.as_str(), sda.reads, sda.writes, sda.flushes, sda.unfinished), ("8:0", 1, 1, 1, 1));
    assert_eq!((sda.bytes_read, sda.bytes_written, sda.device_ns, sda.max_ns), (8192, 4096, 1500, 900));
    assert_eq!((md0.device.as_str(), md0.errors, md0.writes), ("md0", 1, 1));
}

#[test]
fn the_rank_that_writes_for_all_is_the_aggregator() {
    let mut t = Trace::default();
    t.row(file(1, "/scratch/all.nc"));
    for rank in 0..3 {
        t.row(process(rank, Some(rank)));
        for n in 0..4 {
            let call = t.call(rank as u32, None, COLLECTIVE, n * 1000, 500 + i64::from(rank));
            t.moved(call, 1, 100);
            (t.edit(call).rank, t.edit(call).coll_id) = (Some(rank), Some(n));
            for part in 0..if rank == 1 { 2 } else { 0 } {
                let write = t.call(rank as u32, Some(call), WRITE, n * 1000 + 100 + part * 20, 10);
                t.moved(write, 1, 150);
            }
        }
        // Outside of the calls.
        let write = t.call(rank as u32, None, WRITE, 9000, 10);
        t.moved(write, 1, 1);
    }
    let r = report(t);
    let [row] = r.collectives.as_slice() else { panic!("{:?}", r.collectives) };
    assert_eq!(
        (row.op, row.path.as_deref(), row.collectives, row.calls),
        (COLLECTIVE.1, Some("/scratch/all.nc"), 4, 12)
    );
    assert_eq!((row.asked.sum, row.syscalls, row.syscall_bytes, row.max_ns), (Some(1200), 8, 1200, 502));
    assert_eq!(row.aggregators(), 1);
    let of: Vec<_> = row.ranks.iter().map(|m| (m.rank, m.collectives, m.aggregated, m.syscalls)).collect();
    assert_eq!(of, [(Some(0), 4, 0, 0), (Some(1), 4, 4, 8), (Some(2), 4, 0, 0)]);
}

#[test]
fn a_filter_takes_calls_out_and_not_what_they_are_inside_of() {
    let of = |filter: &str| {
        let filter = Filter::parse(filter).unwrap();
        let scope = Scope { only: Some(&filter), ..Scope::default() };
        build_of(&mut failing().finish(), &Config::default(), &scope).unwrap()
    };
    let r = of("layer=syscall and errno=28");
    assert_eq!(r.layers.iter().map(|l| (l.layer, l.calls)).collect::<Vec<_>>(), [("syscall", 12)]);
    // They are calls that the library made, and not the program.
    assert_eq!((r.ranks.rows[0].calls, r.amplification.write.asked_calls), (0, 0));
    assert_eq!(of("file~*.h5").errors.len(), 2);
    assert_eq!(of("file=b.h5").layers, []);
    assert_eq!(of("layer=hdf5").filter.as_deref(), Some("layer=hdf5"));
}
