//! `iotrace-bpf export --to otf2` and `--to darshan`: what programs for these formats read is what was recorded.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::commands::sql_command::dataset;
use crate::common::sql;
use crate::common::synthetic::trace::{Trace, file, handle, meta, process};
use crate::common::tools::exports;
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::{Handle, Row, Thread};
use iotrace_bpf::vocabulary::{Kind, Layer, flag};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn of_the_venv(program: &str, args: &[&str], dir: &Path) -> Output {
    Command::new(sql::python().with_file_name(program)).args(args).current_dir(dir).output().unwrap()
}

#[test]
fn otf2_print_counts_what_was_recorded() {
    let work = tempfile::tempdir().unwrap();
    // Of names that quotes and patterns are made of, too.
    let dir = work.path().join("it's[1]*");
    dataset(&dir);
    let events = exports::otf2(&dir, work.path());
    assert!(events["ENTER"].as_u64().unwrap() > 10_000 && events["IO_OPERATION_BEGIN"].as_u64().unwrap() > 1000);
    // Of MPI-IO and of HDF5 on it: both ranks opened all these files together.
    assert_eq!(events["collective operations with a communicator"], 44);
}

/// Writes what `fill` makes of a trace with a process of a file that is open.
fn made(dir: &Path, fill: impl FnOnce(&mut Trace)) {
    let options = Options { path: dir, host: "vm", force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    let mut trace = Trace::default();
    trace.row(meta("t0_ns", "0"));
    trace.row(meta("t0_wall_ns", "1700000000000000000"));
    for row in [process(1, Some(0)), file(1, "/data/a"), handle(1, None, Layer::Syscall, 1, None)] {
        trace.row(row);
    }
    trace.row(handle(2, Some(1), Layer::Mpiio, 1, None));
    fill(&mut trace);
    trace.finish().into_iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
}

#[test]
fn every_kind_of_event_is_counted_by_otf2_print() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("run.iotrace");
    made(&dir, |trace| {
        let mut at = 0;
        let mut call = |trace: &mut Trace, op: &'static str, kind, cmd, arg: Option<i64>, errno| {
            at += 100;
            let layer = if op.starts_with("MPI") { Layer::Mpiio } else { Layer::Syscall };
            let number = trace.call(1, None, (layer, op, kind), at, 50);
            let span = trace.edit(number);
            (span.cmd, span.arg, span.errno, span.file_id) = (cmd, arg, errno, Some(1));
            span.handle_id = Some(if layer == Layer::Mpiio { 2 } else { 1 });
            span.offset = (kind == Kind::Seek).then_some(arg.unwrap_or_default());
            (number, span.span_id)
        };
        // EAGAIN and EINTR; locks that the dataset does not have the kind of.
        for (op, cmd, arg, errno) in [
            ("flock", "LOCK_SH", 1, 0),
            ("flock", "LOCK_EX", 6, 11),
            ("flock", "LOCK_UN", 8, 0),
            ("fcntl", "F_SETLKW", 1, 0),
            ("fcntl", "F_SETLK", 0, 11),
            ("fcntl", "F_OFD_SETLKW", 0, 4),
            ("fcntl", "F_OFD_SETLK", 2, 0),
            ("fcntl", "F_SETFL", 0o2000, 0),
            ("fcntl", "F_SETFD", 1, 0),
        ] {
            call(trace, op, Kind::Other, Some(cmd), Some(arg), errno);
        }
        call(trace, "fcntl", Kind::Other, Some("F_SETLK"), None, 0);
        for (op, cmd) in [
            ("lseek", "SEEK_SET"),
            ("lseek", "SEEK_DATA"),
            ("MPI_File_seek", "MPI_SEEK_SET"),
            ("MPI_File_seek", "MPI_SEEK_CUR"),
            ("MPI_File_seek_shared", "MPI_SEEK_END"),
        ] {
            call(trace, op, Kind::Seek, Some(cmd), Some(4096), 0);
        }
        call(trace, "MPI_File_seek", Kind::Seek, None, Some(4096), 0);
        call(trace, "unlink", Kind::Meta, None, None, 0);
        // An operation that is tested twice before it is complete, and one that was cancelled.
        for (op, errno) in [("MPI_File_iwrite_at", 0), ("io_uring.write", 125)] {
            let (number, id) = call(trace, op, Kind::Write, None, None, errno);
            for found in [0, 0, 1] {
                let (test, _) = call(trace, "MPI_Test", Kind::Wait, None, Some(found), 0);
                trace.edit(test).async_id = Some(id);
            }
            let span = trace.edit(number);
            (span.flags, span.async_id, span.dur_ns, span.bytes) =
                (flag::NONBLOCKING | flag::ASYNC, Some(id), 350, Some(10));
        }
        let read = trace.call(1, None, (Layer::Syscall, "read", Kind::Read), 9000, 50);
        trace.moved(read, 1, 7);
    });
    let events = exports::otf2(&dir, work.path());
    for (event, number) in [
        ("IO_ACQUIRE_LOCK", 2),
        ("IO_TRY_LOCK", 3),
        ("IO_RELEASE_LOCK", 2),
        ("IO_SEEK", 5),
        ("IO_CHANGE_FLAGS", 2),
        ("IO_DELETE_FILE", 1),
        ("IO_OPERATION_TEST", 4),
        ("IO_OPERATION_ISSUED", 2),
        ("IO_OPERATION_CANCELLED", 1),
        ("IO_OPERATION_COMPLETE", 2),
    ] {
        assert_eq!(events[event], number, "{event}");
    }
    let archive = work.path().join("export.otf2/traces.otf2");
    let out = Command::new("otf2-print").arg(archive).output().unwrap();
    let printed = text(&out.stdout);
    let released = printed.lines().filter(|line| line.starts_with("IO_RELEASE_LOCK")).map(str::to_owned);
    let released: Vec<_> = released.map(|line| line.rsplit_once("Type: ").unwrap().1.to_owned()).collect();
    // What was taken last, and not what was only asked for.
    assert_eq!(released, ["SHARED", "EXCLUSIVE"]);
}

/// A process opens a file of MPI-IO with a communicator of that size, and writes to it collectively.
fn open_together(
    trace: &mut Trace,
    (process, rank): (u32, i32),
    file: i32,
    at: i64,
    (size, ranks): (i32, Option<&str>),
) {
    let handle_id = file * 10 + process as i32;
    let call = |trace: &mut Trace, op, kind, at| {
        let number = trace.call(process, None, (Layer::Mpiio, op, kind), at, 20);
        let span = trace.edit(number);
        (span.rank, span.flags, span.coll_id) = (Some(rank), flag::COLLECTIVE, Some(i64::from(file) * 100 + at % 2));
        (span.file_id, span.handle_id) = (Some(file), Some(handle_id));
        number
    };
    let opened = call(trace, "MPI_File_open", Kind::Open, at);
    let open_span_id = Some(trace.edit(opened).span_id);
    let wrote = call(trace, "MPI_File_write_at_all", Kind::Write, at + 51);
    trace.moved(wrote, file, 10);
    let Row::Handle(opened) = handle(handle_id, (file == 1).then_some(1), Layer::Mpiio, file, None) else { return };
    let comm_ranks = ranks.map(str::to_owned);
    trace.row(Row::Handle(Handle { comm_size: Some(size), comm_ranks, open_span_id, ..opened }));
}

/// Three ranks that open files together and apart, and after them two of another run of the program.
fn communicators(trace: &mut Trace) {
    for (ix, rank) in [(2, 1), (3, 2), (4, 0), (5, 1)] {
        trace.row(process(ix, Some(rank)));
    }
    for n in 1..=5 {
        trace.row(Row::Thread(Thread {
            thread_ix: n,
            process_ix: n,
            pid: 1000 + n,
            tid: 1000 + n,
            comm: "sim".into(),
        }));
    }
    for (name, id) in ["b", "c", "d", "e"].iter().zip(2..) {
        trace.row(file(id, &format!("/data/{name}")));
    }
    let all = [(1, 0), (2, 1), (3, 2)];
    for rank in all {
        open_together(trace, rank, 1, 1000, (3, None));
    }
    for rank in [all[0], all[2]] {
        open_together(trace, rank, 2, 2000, (2, Some("0,2")));
    }
    open_together(trace, all[1], 3, 3000, (1, Some("1")));
    // Of another node, too.
    for rank in all {
        open_together(trace, rank, 4, 4000, (8, None));
    }
    // Two communicators at least, which are not distinguished.
    for rank in all {
        open_together(trace, rank, 5, 5000, (2, None));
    }
    for rank in [(4, 0), (5, 1)] {
        open_together(trace, rank, 1, 6000, (3, None));
    }
}

/// A file of HDF5 that is on the first one of MPI-IO, what is in it, and the descriptor below.
fn handles_of_hdf5(trace: &mut Trace) {
    trace.row(handle(90, None, Layer::Hdf5, 2, None));
    trace.row(handle(91, Some(90), Layer::Hdf5, 2, None));
    trace.row(handle(92, Some(93), Layer::Syscall, 2, None));
    let Row::Handle(below) = handle(93, Some(90), Layer::Mpiio, 2, None) else { return };
    let span = trace.call(3, None, (Layer::Mpiio, "MPI_File_open", Kind::Open), 7000, 20);
    let open_span_id = Some(trace.edit(span).span_id);
    let opened = trace.edit(span);
    (opened.rank, opened.coll_id, opened.file_id, opened.handle_id) = (Some(2), Some(900), Some(2), Some(93));
    trace.row(Row::Handle(Handle { comm_size: Some(1), open_span_id, ..below }));
}

#[test]
fn handles_and_collective_operations_have_their_communicators() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("run.iotrace");
    made(&dir, |trace| {
        communicators(trace);
        handles_of_hdf5(trace);
        let read = trace.call(1, None, (Layer::Syscall, "read", Kind::Read), 9000, 50);
        trace.moved(read, 1, 7);
    });
    let events = exports::otf2(&dir, work.path());
    assert_eq!(events["IO_OPERATION_BEGIN"], 14 + 1);
    assert_eq!(events["collective operations with a communicator"], 3 + 2 + 1 + 3 + 2);
    let archive = work.path().join("export.otf2/traces.otf2");
    let out = Command::new("otf2-print").arg("-G").arg(archive).output().unwrap();
    let printed = text(&out.stdout);
    let of =
        |record: &str| printed.lines().filter(|line| line.starts_with(record)).map(str::to_owned).collect::<Vec<_>>();
    let names = of("COMM ").into_iter().map(|line| line.split('"').nth(1).unwrap().to_owned());
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "3 processes",
            "2 processes, ranks 0,2",
            "one process",
            "8 processes, 3 of them recorded",
            "3 processes, 2 of them recorded"
        ]
    );
    let members = |name: &str| {
        let groups = of("GROUP ");
        let group = groups.iter().find(|line| line.contains(&format!("Name: \"{name}\""))).unwrap();
        group.split("Members:").nth(1).unwrap().matches("(tid ").count()
    };
    for (name, number) in
        [("processes that opened files", 5), ("2 processes, ranks 0,2", 2), ("3 processes, 2 of them recorded", 2)]
    {
        assert_eq!(members(name), number, "{name}");
    }
    let with = |paradigm: &str, comm: &str| {
        let handles = of("IO_HANDLE ");
        handles.iter().filter(|line| line.contains(paradigm) && line.contains(&format!("Communicator: {comm}"))).count()
    };
    assert_eq!((with("\"HDF5\"", "\"one process\""), with("\"POSIX I/O\"", "\"")), (2, 0));
    // The one of `made`, and those of the file that is opened with several at a time.
    assert_eq!(with("\"MPI-IO\"", "UNDEFINED"), 1 + 3);
}

/// The program is `tests/programs/demo.c` on two ranks.
#[test]
fn pydarshan_reads_the_counters_of_a_known_program() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("run.iotrace");
    dataset(&dir);
    let (_, log) = exports::darshan(&dir, work.path());
    assert_eq!(log["job"]["nprocs"], 2);
    // Records that were compared call by call.
    assert!(log["compared"].as_u64().unwrap() > 5, "{}", log["compared"]);
    let ranks = 2;
    let lines: usize =
        (0..ranks).flat_map(|rank| (0..500).map(move |line| format!("rank {rank} line {line}\n").len())).sum();
    let (steps, part, mpi_half) = (4, 64 * 256 * 8, 16384 / 2 * 8);
    let expected = [
        ("STDIO_OPENS", ranks),
        ("STDIO_WRITES", ranks * 501),
        ("STDIO_READS", ranks * 501),
        ("STDIO_FLUSHES", ranks),
        ("STDIO_SEEKS", ranks),
        ("STDIO_BYTES_WRITTEN", lines + ranks * 1000),
        ("STDIO_BYTES_READ", lines + ranks * 1000),
        // Two datasets, a contiguous and a chunked one.
        ("H5D_WRITES", ranks * steps * 2),
        ("H5D_READS", ranks * steps * 2),
        ("H5D_BYTES_WRITTEN", ranks * steps * 2 * part),
        ("H5D_BYTES_READ", ranks * steps * 2 * part),
        ("H5D_SIZE_WRITE_AGG_100K_1M", ranks * steps * 2),
        ("POSIX_DUPS", ranks),
        ("POSIX_RENAME_SOURCES", ranks),
    ];
    for (name, value) in expected {
        assert_eq!(log["sums"][name], value, "{name}");
    }
    let files = log["files"].as_object().unwrap();
    let file = |name: &str| {
        let found = files.iter().find(|(path, _)| path.ends_with(name));
        found.unwrap_or_else(|| panic!("no record of {name}")).1
    };
    let shared = file("/shared.dat");
    for (name, value) in [
        ("MPIIO_COLL_OPENS", ranks),
        ("MPIIO_INDEP_WRITES", ranks * 2),
        ("MPIIO_COLL_WRITES", ranks),
        ("MPIIO_INDEP_READS", ranks),
        ("MPIIO_COLL_READS", ranks),
        ("MPIIO_SYNCS", ranks * 2),
        ("MPIIO_BYTES_WRITTEN", ranks * 3 * mpi_half),
        ("MPIIO_BYTES_READ", ranks * 2 * mpi_half),
    ] {
        assert_eq!(shared[name], value, "{name}");
    }
    let renamed = file("/renamed.0");
    for (name, value) in [
        ("POSIX_OPENS", 2), // and a copy of the descriptor
        ("POSIX_WRITES", 32),
        ("POSIX_READS", 31),
        ("POSIX_BYTES_WRITTEN", 32 * 8192),
        ("POSIX_BYTES_READ", 31 * 8192),
        ("POSIX_MAX_BYTE_WRITTEN", 32 * 8192 - 1),
        ("POSIX_CONSEC_WRITES", 31),
        ("POSIX_SEQ_READS", 31),
        ("POSIX_FSYNCS", 1),
        ("POSIX_SIZE_WRITE_1K_10K", 32),
        ("POSIX_ACCESS1_ACCESS", 8192),
        ("POSIX_ACCESS1_COUNT", 63),
    ] {
        assert_eq!(renamed[name], value, "{name}");
    }
}

#[test]
fn summary_and_drishti_take_the_log() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("run.iotrace");
    dataset(&dir);
    let (log, _) = exports::darshan(&dir, work.path());
    let log = log.to_str().unwrap();
    let out = of_the_venv("python", &["-m", "darshan", "summary", log, "--output", "summary.html"], work.path());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let page = fs::read_to_string(work.path().join("summary.html")).unwrap();
    for part in ["Heat Map: HEATMAP POSIX", "Per-Module Statistics: MPI-IO", "Per-Module Statistics: STDIO"] {
        assert!(page.contains(part), "{part}");
    }
    let out = of_the_venv("drishti", &[log], work.path());
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("MPI-IO"), "{}", text(&out.stdout));
}

#[test]
fn sums_become_a_log_and_no_archive() {
    let work = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/aggregate");
    let dir = work.path().join("run.iotrace");
    dataset(&dir);
    for entry in fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()) {
        if !entry.to_string_lossy().ends_with("-00001.parquet") && entry.extension().is_some_and(|e| e == "parquet") {
            fs::remove_file(entry).unwrap();
        }
    }
    for entry in fs::read_dir(&fixture).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&entry, dir.join(entry.file_name().unwrap())).unwrap();
    }
    let log = work.path().join("sums.darshan");
    let out = exports::export(&dir, "darshan", &log);
    assert!(out.status.success() && log.is_file(), "{}", text(&out.stderr));
    let archive = work.path().join("sums.otf2");
    let out = exports::export(&dir, "otf2", &archive);
    assert_eq!((out.status.code(), archive.exists()), (Some(125), false));
    assert!(text(&out.stderr).contains("record without --aggregate"), "{}", text(&out.stderr));
}

#[test]
fn what_is_missing_and_what_is_there_are_named() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("run.iotrace");
    dataset(&dir);
    let there = work.path().join("there");
    fs::write(&there, "kept").unwrap();
    let out = exports::export(&dir, "darshan", &there);
    assert_eq!((out.status.code(), fs::read_to_string(&there).unwrap().as_str()), (Some(125), "kept"));
    assert!(text(&out.stderr).contains("there exists already"), "{}", text(&out.stderr));
    let bin = work.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("python3"), "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(bin.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    for (format, install) in [("otf2", "pip install duckdb otf2"), ("darshan", "pip install duckdb darshan")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
        command.arg("export").arg(&dir).args(["--to", format, "-o"]).arg(work.path().join("new")).env("PATH", &bin);
        let out = command.output().unwrap();
        assert_eq!(out.status.code(), Some(125));
        assert!(text(&out.stderr).contains(install), "{}", text(&out.stderr));
    }
}
