//! Rules on rows that are made here: what each finds, and what looks like it and costs nothing.

use super::made::{Made, file, for_device, handle, request, written};
use super::{MS, call, with_one_inside};
use crate::analysis::findings::*;
use crate::rows::{File, Handle, Row, Stack, span_id};
use crate::vocabulary::{Kind, flag};

#[test]
fn direct_calls_that_fail_for_alignment_are_named_without_seconds() {
    let direct = |n: u32, errno: i16| {
        let call = call(1, n, ("pread64", Kind::Read), i64::from(n), 1);
        Span { flags: flag::DIRECT, errno, bytes: (errno == 0).then_some(4096), req_bytes: Some(4096), ..call }
    };
    let failed = Made::of([direct(0, 22), direct(1, 22)]).find_one("direct-misaligned", 1000).unwrap();
    assert_eq!((failed.severity, failed.seconds), (Severity::Warn, None));
    assert!(failed.title.starts_with("2 of 2 direct reads and writes failed with EINVAL"), "{}", failed.title);
    // One try among many that work.
    let most = (0..200).map(|n| direct(n, if n == 7 { 22 } else { 0 }));
    assert_eq!(Made::of(most).find_one("direct-misaligned", 1000), None);
    let cached = Span { flags: 0, ..direct(0, 22) };
    assert_eq!(Made::of([cached]).find_one("direct-misaligned", 1000), None);
}

#[test]
fn ranks_that_write_the_same_bytes_at_once_are_a_warning() {
    let conflict = |spans: Vec<Span>| Made::of(spans).find_one("conflicting-ranks", 1000);
    let of = |rank, offset, start| written(rank, 0, (offset, 100), start, 10);
    let found = conflict(vec![of(0, 0, 0), of(1, 60, 5)]).unwrap();
    assert_eq!((found.severity, found.seconds, found.evidence.ranks.len()), (Severity::Warn, None, 2));
    let title = "1 x two writes of ranks on the same bytes, without order: ranks 0 and 1 on 40 B";
    assert!(found.title.starts_with(title), "{}", found.title);
    assert_eq!(conflict(vec![of(0, 0, 0), of(1, 100, 5)]), None, "side by side");
    assert_eq!(conflict(vec![of(0, 0, 0), of(1, 60, 20)]), None, "the kernel orders system calls");
    assert_eq!(conflict(vec![of(0, 0, 0), Span { rank: Some(0), ..of(1, 60, 5) }]), None, "threads of one rank");
    let read = |span: Span| Span { op: "pread64", kind: Kind::Read, ..span };
    assert!(conflict(vec![of(0, 0, 0), read(of(1, 60, 5))]).is_some());
    assert_eq!(conflict(vec![read(of(0, 0, 0)), read(of(1, 60, 5))]), None);
}

/// Records that ranks append have their places from the kernel, and a terminal has none.
#[test]
fn appended_records_and_special_files_are_no_conflict() {
    let made = |mode: i32, role: &'static str| {
        let of = |rank, start| Span { handle_id: Some(3), ..written(rank, 0, (0, 100), start, 10) };
        let rows =
            vec![Row::Handle(Handle { mode: Some(mode), ..handle(3) }), Row::File(Box::new(File { role, ..file(1) }))];
        Made { rows, ..Made::of([of(0, 0), of(1, 5)]) }.find_one("conflicting-ranks", 1000).is_some()
    };
    assert!(made(0o1, "data"));
    assert!(!made(0o2001, "data"));
    assert!(!made(0o1, "stdio"));
}

/// A call of MPI-IO of a rank at a time, and the write in it.
fn by_library(rank: i32, seq: u32, flags: i32, start: i64) -> [Span; 2] {
    let inner = written(rank, seq + 1, (0, 100), start, 10);
    let id = span_id(rank as u32 + 1, seq);
    let outer = (Layer::Mpiio, "MPI_File_write_at", Kind::Write);
    let outer = Span {
        rank: Some(rank),
        flags,
        pid: inner.pid,
        req_bytes: Some(100),
        bytes: Some(100),
        file_id: Some(1),
        ..Span::new(id, outer, rank + 1, (start * MS, 10 * MS))
    };
    [outer, Span { parent_id: Some(id), root_id: id, depth: 1, ..inner }]
}

#[test]
fn writes_of_mpi_io_need_a_flush_between_ranks() {
    let second = || by_library(1, 0, 0, 100);
    let conflict =
        |first: Vec<Span>| Made::of(first.into_iter().chain(second())).find_one("conflicting-ranks", 1000).is_some();
    let first = || by_library(0, 0, 0, 0).to_vec();
    assert!(conflict(first()));
    let close = |start| Span { rank: Some(0), ..call(1, 5, ("close", Kind::Close), start, 1) };
    let with = |span| first().into_iter().chain([span]).collect();
    assert!(!conflict(with(close(50))));
    assert!(conflict(with(close(120))), "too late");
    let lock = Span { cmd: Some("F_SETLK"), kind: Kind::Other, op: "fcntl", ..close(50) };
    assert!(!conflict(with(lock)));
    // Two-phase I/O: the library orders what aggregators write.
    let collective = |rank, start| by_library(rank, 0, flag::COLLECTIVE, start);
    let spans = collective(0, 0).into_iter().chain(collective(1, 100));
    assert_eq!(Made::of(spans).find_one("conflicting-ranks", 1000), None);
}

#[test]
fn pieces_of_ranks_that_meet_inside_pages_are_found_where_they_wait() {
    let made = |size: i64, waits: bool| {
        let piece = move |n: i64, rank: i32| {
            let span = written(rank, n as u32, ((n * 4 + i64::from(rank)) * size, size), n * 2, 2);
            if waits { for_device(&span) } else { span }
        };
        let spans = (0..100).flat_map(|n| (0..4).map(move |rank| piece(n, rank)));
        Made::of(spans).find_one("misaligned-shared", 1000)
    };
    let found = made(20_000, true).unwrap();
    assert!((found.seconds.unwrap() - 0.2).abs() < 1e-9, "{found:?}");
    assert!(found.title.contains("19.5 KiB each, meet another rank inside a block"), "{}", found.title);
    assert_eq!(made(20_480, true), None, "whole pages");
    assert_eq!(made(20_000, false), None, "no waits");
    assert_eq!(made(500, true), None, "small, and not misaligned");
}

/// Each piece begins and ends inside of a page, and no other rank has a part of these pages.
#[test]
fn pieces_that_are_only_unaligned_are_not_shared() {
    let made = |step: i64, ranks: i32| {
        let piece = move |n: i64| {
            let rank = n as i32 % ranks;
            for_device(&written(rank, n as u32, (n * step + 100, 20_000), n * 2, 4))
        };
        Made::of((0..100).map(piece)).find_one("misaligned-shared", 1000).is_some()
    };
    assert!(made(20_000, 2), "one behind the other");
    assert!(!made(40_960, 2), "pages apart");
    assert!(!made(20_000, 1), "of one rank");
}

#[test]
fn stripes_are_the_blocks_of_a_striped_file() {
    let made = |stripe: Option<i64>| {
        let file = File { stripe_size: stripe, ..file(1) };
        // Whole pages, and no whole stripes; they wait for locks.
        let piece = |n: i64, rank: i32| {
            let span = written(rank, n as u32, ((n * 4 + i64::from(rank)) * 81_920, 81_920), n * 2, 2);
            Span { cpu_ns: Some(0), lock_ns: Some(2 * MS), ..span }
        };
        let spans = (0..100).flat_map(|n| (0..4).map(move |rank| piece(n, rank)));
        let rows = vec![Row::File(Box::new(file))];
        Made { rows, ..Made::of(spans) }.find_one("misaligned-shared", 1000).is_some()
    };
    assert!(made(Some(1 << 20)));
    assert!(!made(Some(81_920)));
    assert!(!made(None));
}

#[test]
fn files_of_their_own_are_found_where_ranks_create_them_for_long() {
    let made = |ranks: i32, files: i64, ms: i64| {
        let (mut rows, mut spans) = (Vec::new(), Vec::new());
        for (rank, n) in (0..ranks).flat_map(|rank| (0..files).map(move |n| (rank, n))) {
            let (seq, at, file) = (n as u32 * 2, n * (ms + 1), n as i32 * ranks + rank + 1);
            let open = call(rank as u32 + 1, seq, ("openat", Kind::Open), at, ms);
            rows.push(Row::Handle(Handle { open_span_id: Some(open.span_id), mode: Some(0o101), ..handle(file) }));
            let write = written(rank, seq + 1, (0, 100), at + ms, 1);
            spans.extend([Span { rank: Some(rank), file_id: None, ..open }, Span { file_id: Some(file), ..write }]);
        }
        Made { rows, ..Made::of(spans) }.find_one("file-per-process", 1000)
    };
    let found = made(4, 100, 4).unwrap();
    assert!((found.seconds.unwrap() - 0.4).abs() < 1e-9, "{found:?}");
    let title = "400 files that one rank each writes, 100 for each of 4 ranks; creating and closing one took 4.00 ms";
    assert!(found.title.starts_with(title), "{}", found.title);
    assert_eq!(made(4, 3, 100), None, "few files");
    assert_eq!(made(4, 60, 1), None, "little time");
    assert_eq!(made(1, 400, 1), None, "one process that unpacks an archive");
}

#[test]
fn data_on_devices_that_is_many_times_what_was_written_names_the_file_system() {
    let made = |size: i64, flush_ms: i64| {
        let writes = (0..64).map(|n| written(0, n, (i64::from(n) * 65_536, size), i64::from(n), 0));
        let sync = call(1, 64, ("fsync", Kind::Sync), 100, flush_ms);
        let sync = Span { rank: Some(0), cpu_ns: Some(0), writeback_ns: Some(flush_ms * MS), ..sync };
        let blocks = (0..64).map(|n| request(n, ("write", "sync"), (100, 1), 65_536)).collect();
        Made { blocks, ..Made::of(writes.chain([sync])) }.find_one("write-amplification", 1000)
    };
    let found = made(1024, 400).unwrap();
    assert_eq!(found.seconds, Some(0.4));
    let title = "64.0 times the bytes: program 64.0 KiB, syscall 64.0 KiB, device 4.00 MiB; the file system makes 64.0";
    assert!(found.title.starts_with(title), "{}", found.title);
    assert_eq!(made(65_536, 400), None, "as much as was written");
    assert_eq!(made(1024, 20), None, "little time");
}

#[test]
fn a_library_that_writes_chunks_again_and_again_is_named() {
    let made = |moved: i64| {
        let calls =
            (0..100).flat_map(|n| with_one_inside(n, ((Layer::Hdf5, "H5Dwrite"), 0), (Layer::Syscall, "pwrite64")));
        let cut = |span: Span| match span.layer {
            Layer::Syscall => Span { bytes: Some(moved), ..span },
            _ => Span { self_ns: 0, ..span },
        };
        let blocks = (0..100).map(|n| request(n, ("write", "writeback"), (n * 12, 1), moved as i32)).collect();
        Made { blocks, ..Made::of(calls.map(cut)) }.find_one("write-amplification", 2000)
    };
    let found = made(1 << 20).unwrap();
    assert!(found.title.contains("hdf5 makes 16.0 times of it"), "{}", found.title);
    assert_eq!(found.seconds, Some(1.0));
    assert_eq!(made(1 << 16), None);
}

/// 10 ms on each record: read through a stream, changed and written back; `turn`: one after the other.
#[test]
fn streams_that_turn_between_reading_and_writing_are_found() {
    let made = |turn: bool| {
        let calls = (0..2400_u32).flat_map(|n| {
            let write = if turn { n % 2 == 1 } else { n >= 1200 };
            let op = if write { "fwrite" } else { "fread" };
            let kind = if write { Kind::Write } else { Kind::Read };
            let [outer, inner] = with_one_inside(n, ((Layer::Stdio, op), 0), (Layer::Syscall, "read"));
            [Span { kind, handle_id: Some(5), self_ns: 0, ..outer }, Span { kind, ..inner }]
        });
        Made::of(calls).find_one("stdio-turns", 40_000)
    };
    let found = made(true).unwrap();
    assert!(found.title.starts_with("2399 turns between reading and writing of a stream"), "{}", found.title);
    assert!((found.seconds.unwrap() - 24.0).abs() < 1e-9);
    assert_eq!(made(false), None);
}

#[test]
fn much_data_in_small_calls_of_stdio_is_found_where_the_library_takes_the_time() {
    let made = |size: i64, library_ms: i64| {
        let calls = (0..20_000_u32).flat_map(move |n| {
            let [outer, inner] = with_one_inside(n, ((Layer::Stdio, "fwrite"), 0), (Layer::Syscall, "write"));
            let outer = Span { bytes: Some(size), req_bytes: Some(size), self_ns: library_ms * MS, ..outer };
            let left = (10 - library_ms) * MS;
            [outer, Span { self_ns: left, dur_ns: left, bytes: Some(size), ..inner }]
        });
        Made::of(calls).find_one("stdio-bulk", 250_000)
    };
    let found = made(4000, 8).unwrap();
    let title = "76.3 MiB moved through stdio in 20000 calls of 3.91 KiB, 80.0% of their time";
    assert!(found.title.starts_with(title), "{}", found.title);
    assert!((found.seconds.unwrap() - 160.0).abs() < 1e-6);
    assert_eq!(made(4000, 2), None, "the system takes the time");
    assert_eq!(made(400, 8), None, "few bytes");
    assert_eq!(made(8000, 8), None, "large calls pass the buffer by");
}

/// Sums have the time of all calls of a function, and not which system calls were in them.
#[test]
fn what_stdio_takes_itself_is_not_known_of_sums() {
    let all = Made { aggregate: true, ..Made::default() }.find(1000);
    assert!(all.not_evaluated.iter().any(|rule| rule.rule == "stdio-bulk" && rule.why.contains("single calls")));
}

#[test]
fn waiting_and_computing_by_turns_is_an_observation() {
    let made = |turns: i64, wait: i64, work: i64| {
        let read = |n: i64| {
            let read = call(1, n as u32, ("read", Kind::Read), n * (wait + work), wait);
            for_device(&Span { bytes: Some(1 << 22), req_bytes: Some(1 << 22), ..read })
        };
        Made::of((0..turns).map(read)).find_one("not-overlapped", turns * (wait + work))
    };
    let found = made(20, 50, 50).unwrap();
    assert_eq!((found.severity, found.gain_low_s), (Severity::Info, Some(0.0)));
    assert!(found.title.starts_with("waits 1.00 s for storage and computes 950 ms, in 19 turns"), "{}", found.title);
    assert_eq!(made(20, 90, 5), None, "it does not compute");
    assert_eq!(made(20, 10, 200), None, "it does not wait");
    assert_eq!(made(200, 5, 10), None, "short waits: read-ahead hides them already");
}

#[test]
fn findings_name_the_functions_that_stacks_and_phases_show() {
    let phase = Span { pid: 1, ..Span::new(span_id(1, 0), (Layer::App, "checkpoint", Kind::Other), 1, (0, 2000 * MS)) };
    let sync = |n: u32| Span {
        parent_id: Some(phase.span_id),
        root_id: phase.span_id,
        depth: 1,
        stack_id: (n < 5).then_some(3),
        ..call(1, n + 1, ("fsync", Kind::Sync), i64::from(n) * 12, if n < 5 { 11 } else { 10 })
    };
    let spans: Vec<Span> = std::iter::once(phase.clone()).chain((0..50).map(sync)).collect();
    let frames = ["io_schedule (kernel)", "fsync (/usr/lib/libc.so.6)", "flush (/opt/app, app.c:7)"].map(str::to_owned);
    let stack = Row::Stack(Stack { stack_id: 3, frames: frames.to_vec() });
    let with = |rows| Made { rows, spans: spans.clone(), ..Made::default() }.find(2000).findings[0].evidence.clone();
    assert_eq!(with(vec![stack]).functions, ["flush (/opt/app, app.c:7)"]);
    assert_eq!(with(Vec::new()).functions, ["checkpoint"]);
}
