//! Rules on rows of ranks that wait for each other, and on calls that were not recorded one by one.

use super::made::{Made, for_device, written};
use super::{MS, call};
use crate::analysis::findings::*;
use crate::rows::{SEQ_BITS, span_id};
use crate::vocabulary::{Kind, flag};

const RANKS: i32 = 4;

/// A hundred collective puts of 10 ms, 2 of which are the hooks of the rank's own calls.
fn puts(cpus: i32, hooks: impl Fn(i32) -> i64) -> Made {
    let put = |n: i64, rank: i32| {
        let (thread, seq, at, hooks) = (rank as u32 + 1, n as u32 * 2, (n * 10 * MS, 10 * MS), hooks(rank) * MS);
        let of = |id, what| Span {
            rank: Some(rank),
            pid: rank + 1,
            cpu: (rank % cpus) as _,
            probe_ns: Some(hooks),
            self_ns: 0,
            flags: flag::COLLECTIVE,
            bytes: Some(1024),
            req_bytes: Some(1024),
            ..Span::new(id, what, rank + 1, at)
        };
        let outer = of(span_id(thread, seq), (Layer::Pnetcdf, "ncmpi_put_vara_float_all", Kind::Write));
        let inner = of(span_id(thread, seq + 1), (Layer::Mpiio, "MPI_File_write_at_all", Kind::Write));
        let parent_id = Some(outer.span_id);
        let inner = Span { parent_id, root_id: outer.span_id, depth: 1, self_ns: 10 * MS - hooks, ..inner };
        [outer, inner]
    };
    Made::of((0..100).flat_map(|n| (0..RANKS).flat_map(move |rank| put(n, rank)).collect::<Vec<_>>()))
}

#[test]
fn hooks_of_ranks_that_share_cpus_are_not_in_what_they_wait_for_each_other() {
    let seconds = |made: Made| made.find_one("blocking-puts", 1000).unwrap().seconds.unwrap();
    let near = |seconds: f64, wanted: f64| assert!((seconds - wanted).abs() < 0.005, "{seconds} is not {wanted}");
    near(seconds(puts(4, |_| 2)), 0.8);
    // On two CPUs four ranks pay 4 ms one after the other, 2 of which are the rank's own.
    near(seconds(puts(2, |_| 2)), 0.6);
    near(seconds(puts(1, |_| 1)), 0.6);
    // The critical rank is the one that pays most.
    near(seconds(puts(4, |rank| if rank == 3 { 4 } else { 1 })), 0.6);
    // No more than it waits.
    assert!(puts(1, |_| 8).find_one("blocking-puts", 1000).is_none());
}

/// In turn four ranks lock a file, write for 10 ms, of which `hooks` are theirs, and unlock it.
fn locked(hooks: i64) -> Made {
    let turn = |n: i64, rank: i32| {
        let (start, waits) = (n * 40, i64::from(rank) * 10);
        let of = |span: Span| Span { rank: Some(rank), cpu: rank as _, cpu_ns: Some(0), ..span };
        let lock = call(rank as u32 + 1, n as u32 * 2, ("fcntl", Kind::Other), start, waits);
        let lock = Span { cmd: Some("F_SETLKW"), lock_ns: Some(waits * MS), ..of(lock) };
        let net = (10 - hooks) * MS;
        let write = written(rank, n as u32 * 2 + 1, (0, 100), start + waits, 10);
        [lock, Span { probe_ns: Some(hooks * MS), self_ns: net, cpu_ns: Some(net), ..of(write) }]
    };
    let mut spans: Vec<Span> = (0..100).flat_map(|n| (0..RANKS).flat_map(move |rank| turn(n, rank))).collect();
    spans.sort_by_key(|span| (span.start_ns, span.span_id >> SEQ_BITS, span.span_id));
    Made::of(spans)
}

#[test]
fn hooks_of_the_holders_are_not_in_the_wait_for_a_lock() {
    let seconds = |hooks| locked(hooks).find_one("lock-wait", 4000).unwrap().seconds.unwrap();
    assert!((seconds(0) - 3.0).abs() < 1e-9, "{}", seconds(0));
    // Three ranks pay 2 ms each while the last one waits.
    assert!((seconds(2) - 2.4).abs() < 0.05, "{}", seconds(2));
}

/// Writers of a file wait for the one that reads the rest of a block.
#[test]
fn locks_are_held_for_the_device_where_pieces_meet_inside_pages() {
    let made = |size: i64, device: i64| {
        let piece = move |n: i64, rank: i32| {
            let span = written(rank, n as u32, ((n * 4 + i64::from(rank)) * size, size), n * 8, 8);
            Span {
                cpu_ns: Some((2 - device) * MS),
                device_ns: Some(device * MS),
                lock_ns: Some(6 * MS),
                ..for_device(&span)
            }
        };
        Made::of((0..100).flat_map(|n| (0..RANKS).map(move |rank| piece(n, rank)))).find_one("misaligned-shared", 1000)
    };
    let found = made(20_000, 2).unwrap();
    assert!((found.seconds.unwrap() - 0.8).abs() < 1e-9, "{found:?}");
    assert_eq!(made(20_480, 2), None, "whole pages");
    assert_eq!(made(20_000, 0), None, "held for the page cache");
}

/// 600 pieces of each of four ranks, with one system call of 1 ms each, of which `queued` it waits for a CPU.
fn pieces(size: i64, queued: i64) -> Option<Finding> {
    let piece = |n: i64, rank: i32| {
        let id = span_id(rank as u32 + 1, n as u32 * 2);
        let write = written(rank, n as u32 * 2 + 1, ((n * 4 + i64::from(rank)) * size, size), n, 1);
        let inner = Span {
            parent_id: Some(id),
            root_id: id,
            depth: 1,
            cpu_ns: Some(0),
            runq_ns: Some(queued),
            remote_ns: Some(MS - queued),
            ..write.clone()
        };
        let outer = (Layer::Mpiio, "MPI_File_write_at", Kind::Write);
        [Span { self_ns: 0, parent_id: None, ..outer_of(&write, id, outer) }, inner]
    };
    let spans = (0..600).flat_map(|n| (0..RANKS).flat_map(move |rank| piece(n, rank)).collect::<Vec<_>>());
    Made::of(spans).find_one("independent-strided", 600)
}

fn outer_of(inner: &Span, id: i64, what: (Layer, &'static str, Kind)) -> Span {
    let Span { rank, pid, bytes, req_bytes, process_ix, start_ns, dur_ns, .. } = *inner;
    Span { pid, rank, bytes, req_bytes, ..Span::new(id, what, process_ix, (start_ns, dur_ns)) }
}

#[test]
fn pieces_are_strided_where_they_cost_more_than_their_bytes() {
    let found = pieces(512, 0).unwrap();
    assert!((found.seconds.unwrap() - 0.6).abs() < 1e-9, "{found:?}");
    assert_eq!(pieces(512, MS - 50_000), None, "other processes have the CPUs");
    assert_eq!(pieces(200_000, 0), None, "that is what so many bytes take");
}

/// Records of 16 bytes through a stream, of which only the buffers are recorded: 5 us each, and then as long until the next.
fn brief(records: i64, pause: i64) -> Option<Finding> {
    let buffers = 20_000_i64;
    let full = |n: i64| {
        let (id, start) = (span_id(1, n as u32 * 2), n * (5_000 + pause));
        let of = |id, what, ns| Span { pid: 1, file_id: Some(1), ..Span::new(id, what, 1, (start, ns)) };
        let outer = of(id, (Layer::Stdio, "_IO_file_overflow", Kind::Other), 5_000);
        let inner = of(id + 1, (Layer::Syscall, "write", Kind::Write), 3_000);
        let (bytes, offset) = (Some(4096), Some(n * 4096));
        let inner = Span { parent_id: Some(id), root_id: id, depth: 1, bytes, req_bytes: bytes, offset, ..inner };
        [Span { self_ns: 2_000, ..outer }, inner]
    };
    let sums = crate::export::dataset::tests::sums(Layer::Stdio, "fwrite", Kind::Write);
    let sums = FileRollup { calls: records, bytes: buffers * 4096, calls_error: Some(100), ..sums };
    let mut made = Made::of((0..buffers).flat_map(full));
    made.sums = vec![sums];
    made.find_one("stdio-bulk", buffers * (5_000 + pause) / MS)
}

#[test]
fn calls_of_stdio_that_are_too_short_to_record_are_found_by_the_time_between_buffers() {
    let found = brief(20_000 * 256, 20_000).unwrap();
    assert!((found.seconds.unwrap() - 0.44).abs() < 0.001, "{found:?}");
    let title = "78.1 MiB moved through stdio in 5120000 calls of 16 B, 88.0% of their time";
    assert!(found.title.starts_with(title), "{}", found.title);
    assert_eq!(brief(20_000 * 256, 40_000), None, "the program itself works for each");
    assert_eq!(brief(20_000, 20_000), None, "few calls");
    // A buffer of 1 MiB.
    assert!(brief(20_000 * 65_536, 2_000_000).is_some());
}

#[test]
fn a_collective_call_exchanges_as_opening_the_file_did() {
    let gain = |open_ms: i64| {
        let of = |rank: i32, seq, what, at: i64, ms: i64| Span {
            rank: Some(rank),
            pid: rank + 1,
            file_id: Some(1),
            flags: flag::COLLECTIVE,
            ..Span::new(span_id(rank as u32 + 1, seq), what, rank + 1, (at * MS, ms * MS))
        };
        let open = |rank| of(rank, 0, (Layer::Mpiio, "MPI_File_open", Kind::Open), 0, open_ms);
        let piece = move |rank: i32, n: i64| {
            let at = open_ms + n;
            let inner = Span {
                parent_id: Some(span_id(rank as u32 + 1, n as u32 * 2 + 1)),
                root_id: span_id(rank as u32 + 1, n as u32 * 2 + 1),
                depth: 1,
                cpu_ns: Some(MS),
                ..written(rank, n as u32 * 2 + 2, (n * 4096 + i64::from(rank) * 512, 512), at, 1)
            };
            let outer = of(rank, n as u32 * 2 + 1, (Layer::Mpiio, "MPI_File_write_at", Kind::Write), at, 1);
            [Span { flags: 0, self_ns: 0, bytes: Some(512), req_bytes: Some(512), ..outer }, inner]
        };
        let of_rank = |rank| std::iter::once(open(rank)).chain((0..1000).flat_map(move |n| piece(rank, n)));
        Made::of((0..RANKS).flat_map(of_rank)).find_one("independent-strided", 1000 + open_ms).unwrap()
    };
    let (fast, slow) = (gain(1), gain(51));
    let less = |of: fn(&Finding) -> Option<f64>| of(&fast).unwrap() - of(&slow).unwrap();
    assert!((less(|found| found.gain_high_s) - 0.05).abs() < 1e-6, "{fast:?} {slow:?}");
    assert!((less(|found| found.gain_low_s) - 0.15).abs() < 1e-6, "{fast:?} {slow:?}");
}

#[test]
fn who_gathers_data_copies_it_once_more() {
    // 100 MiB in 400 ms: three quarters of another copy are done by the others.
    let write =
        |n: u32| Span { cpu_ns: Some(4 * MS), ..written(0, n, (i64::from(n) << 20, 1 << 20), i64::from(n) * 4, 4) };
    let other = |rank: i32| written(rank, 0, (0, 16), 0, 1);
    let found = |run_ms| {
        let spans = (0..100).map(write).chain((1..RANKS).map(other));
        Made::of(spans).find_one("one-writer", run_ms).unwrap()
    };
    let near = |seconds: Option<f64>, wanted: f64| assert!((seconds.unwrap() - wanted).abs() < 1e-3, "{seconds:?}");
    near(found(1000).gain_low_s, 0.3 * 0.3);
    near(found(1000).gain_high_s, 0.4_f64.min(0.3 + 0.3 / 1.3));
    // It does nothing but write.
    near(found(400).gain_high_s, 0.3);
}
