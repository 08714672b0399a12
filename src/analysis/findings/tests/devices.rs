//! Rules on what devices get, on rows that are made here: whose it is, and when.

use super::made::{Made, for_device, request, written};
use super::{MS, call, with_one_inside};
use crate::analysis::findings::*;
use crate::rows::{Block, FileRollup, Meta, Row, TRACER_PID};
use crate::vocabulary::Kind;

/// Process 1 reads 100 KiB each 10 ms, which takes 2 ms. In the second one of two seconds the kernel writes something back
/// beside each read.
struct Beside {
    /// How long a read takes then.
    read_ms: i64,
    owner: Option<i32>,
    known_by: &'static str,
    /// Since the begin of the read, and for how long.
    at: (i64, i64),
    ranks: bool,
}

const BESIDE: Beside = Beside { read_ms: 8, owner: Some(1), known_by: "page", at: (0, 5), ranks: false };

impl Beside {
    fn found(&self) -> Option<Finding> {
        let rank = |rank: i32| self.ranks.then_some(rank);
        let (mut spans, mut blocks) = (Vec::new(), Vec::new());
        // Another process, which writes.
        spans.push(Span { rank: rank(1), ..call(2, 0, ("write", Kind::Write), 0, 1) });
        for n in 0..200_i64 {
            let beside = n >= 100;
            let ms = if beside { self.read_ms } else { 2 };
            let read = call(1, n as u32, ("read", Kind::Read), n * 10, ms);
            let size = Some(100 << 10);
            spans.push(for_device(&Span { rank: rank(0), bytes: size, req_bytes: size, ..read }));
            blocks.push(request(n, ("read", "sync"), (n * 10, ms), 100 << 10));
            if beside {
                let at = (n * 10 + self.at.0, self.at.1);
                let (block, mut parts) = request(1000 + n, ("write", "writeback"), at, 1 << 20);
                for part in &mut parts {
                    (part.process_ix, part.known_by) = (self.owner, self.known_by);
                }
                blocks.push((block, parts));
            }
        }
        Made { blocks, ..Made::of(spans) }.find_one("own-write-back", 2000)
    }
}

#[test]
fn reads_beside_own_write_back_are_found_where_they_take_longer() {
    let found = BESIDE.found().unwrap();
    assert!(found.title.starts_with("reads took 4.0 times as long while 100 MiB"), "{}", found.title);
    // 0.8 s of 1.0 s beside write-back, three quarters of which are for it.
    assert!((found.gain_high_s.unwrap() - 0.6).abs() < 1e-9, "{found:?}");
    assert_eq!(Beside { read_ms: 2, ..BESIDE }.found(), None, "as fast as without");
}

#[test]
fn write_back_of_what_others_made_dirty_is_not_the_programs_own() {
    assert_eq!(Beside { owner: None, known_by: "none", ..BESIDE }.found(), None, "of an untraced process");
    assert_eq!(Beside { owner: Some(2), ..BESIDE }.found(), None, "of another traced process");
    assert!(Beside { owner: Some(2), ranks: true, ..BESIDE }.found().is_some(), "of another rank");
    assert_eq!(Beside { known_by: "submitted", ..BESIDE }.found(), None, "sent, and not written back");
}

#[test]
fn reads_wait_for_write_back_only_while_it_goes_on() {
    // In the same tenth of a second, and in the pause between reads.
    assert_eq!(Beside { at: (8, 2), ..BESIDE }.found(), None, "after the read");
    assert!(Beside { at: (7, 2), ..BESIDE }.found().is_some(), "from its last ms on");
}

/// 64 KiB in pieces that make the file system write 4 MiB, of which `own` of 64 requests are what the process made dirty.
#[test]
fn what_others_wrote_to_a_file_is_not_what_became_of_the_programs_writes() {
    let made = |own: usize| {
        let writes = (0..64).map(|n| written(0, n, (i64::from(n) * 65_536, 1024), i64::from(n), 0));
        let sync = call(1, 64, ("fsync", Kind::Sync), 100, 400);
        let sync = Span { rank: Some(0), cpu_ns: Some(0), writeback_ns: Some(400_000_000), ..sync };
        let mut blocks: Vec<_> = (0..64).map(|n| request(n, ("write", "sync"), (100, 1), 65_536)).collect();
        for (_, parts) in &mut blocks[own..] {
            for part in parts {
                (part.process_ix, part.known_by) = (None, "none");
            }
        }
        Made { blocks, ..Made::of(writes.chain([sync])) }.find_one("write-amplification", 1000)
    };
    let found = made(32).unwrap();
    assert!(found.title.starts_with("32.0 times the bytes: program 64.0 KiB"), "{}", found.title);
    assert_eq!(made(1), None);
}

/// `fwrite` was demoted: of what it wrote, 64 KiB are in calls and the rest in a sum.
#[test]
fn what_demoted_functions_wrote_counts_for_the_program() {
    let made = |summed: i64| {
        let calls = (0..64).flat_map(|n| with_one_inside(n, ((Layer::Stdio, "fwrite"), 0), (Layer::Syscall, "write")));
        let calls = calls.map(|span| {
            let size = if span.layer == Layer::Stdio { 1024 } else { 17 << 10 };
            Span { bytes: Some(size), req_bytes: Some(size), ..span }
        });
        let sync = call(1, 200, ("fsync", Kind::Sync), 1000, 400);
        let sync = Span { cpu_ns: Some(0), writeback_ns: Some(400_000_000), ..sync };
        let blocks = (0..64).map(|n| request(n, ("write", "sync"), (1000, 1), 65_536)).collect();
        let row = FileRollup {
            file_id: Some(1),
            process_ix: Some(1),
            bytes: summed,
            calls_error: Some(9),
            ..crate::export::dataset::tests::sums(Layer::Stdio, "fwrite", Kind::Write)
        };
        let sums = vec![row];
        let made = Made { blocks, sums, ..Made::of(calls.chain([sync])) };
        made.find_one("write-amplification", 2000)
    };
    let found = made(1 << 20).unwrap();
    let title =
        "3.8 times the bytes: program 1.06 MiB, stdio 1.06 MiB, syscall 1.06 MiB, device 4.00 MiB; the file system";
    assert!(found.title.starts_with(title), "{}", found.title);
    assert_eq!(made(4 << 20), None, "as much as was written");
}

#[test]
fn a_writer_that_is_paused_for_dirty_pages_of_others_is_not_blamed_for_them() {
    let title = |owner: Option<i32>| {
        let paused = |n: u32| Span {
            cpu_ns: Some(0),
            throttle_ns: Some(10_000_000),
            ..call(1, n, ("write", Kind::Write), i64::from(n) * 10, 10)
        };
        let mut blocks = vec![request(1, ("write", "writeback"), (0, 5), 1 << 20)];
        blocks[0].1[0].process_ix = owner;
        let made = Made { blocks, ..Made::of((0..20).map(paused)) };
        made.find_one("dirty-throttling", 1000).unwrap().title
    };
    assert!(title(None).contains("; 100.0% of what was written back, others had made dirty"), "{}", title(None));
    assert!(!title(Some(1)).contains("others"), "{}", title(Some(1)));
}

/// Most runs have many requests, and each of them several owners.
#[test]
fn owners_of_bytes_are_read_only_where_a_rule_asks_for_them() {
    let wants = |op: &'static str, config: &str| {
        let mut collect = Collect::new(&mut Vec::<crate::rows::Row>::new()).unwrap();
        collect.block(&request(1, (op, "sync"), (0, 1), 4096).0);
        collect.wants_bytes(&Config::parse(config).unwrap())
    };
    assert!(wants("write", "") && !wants("read", ""));
    let off = |rules: &[&str]| rules.iter().map(|rule| format!("[{rule}]\noff = true\n")).collect::<Vec<_>>().concat();
    assert!(wants("write", &off(&["own-write-back", "reread"])));
    assert!(!wants("write", &off(&OF_BYTES)));
}

#[test]
fn another_process_on_the_device_is_found_unless_it_is_the_tracer() {
    let found = |tracer: &str| {
        let (mut spans, mut blocks) = (Vec::new(), Vec::new());
        for n in 0..100_i64 {
            let read = call(1, n as u32, ("read", Kind::Read), n * 10, 8);
            spans.push(for_device(&Span { bytes: Some(65_536), req_bytes: Some(65_536), ..read }));
            for pid in [1, 500] {
                let (block, parts) = request(2 * n + i64::from(pid == 500), ("read", "readahead"), (n * 10, 8), 65_536);
                blocks.push((Block { pid, ..block }, parts));
            }
        }
        let meta = Meta { key: TRACER_PID.to_owned(), value: tracer.to_owned() };
        Made { blocks, rows: vec![Row::Meta(meta)], ..Made::of(spans) }.find_one("interference", 1000)
    };
    let title = found("501").unwrap().title;
    assert!(title.contains("process 500 moved 50.0%"), "{title}");
    assert_eq!(found("500"), None, "it reads ahead for the program");
}

/// Pieces of so many bytes that page faults of a process read from a device: a ninth of them in so many ns, others in 1 ms.
fn faults(step: i64, size: i32, (requests, cheap): (i64, i64), calls: &[Span]) -> Made {
    let open = call(1, 0, ("openat", Kind::Open), 0, 1);
    let block = |n: i64| {
        let (block, _) = request(n, ("read", "readahead"), (n, 1), size);
        let ns = if n % 9 == 0 { cheap } else { MS };
        (Block { sector: n * step % 1_000_000, dur_ns: Some(ns), ..block }, Vec::new())
    };
    Made { blocks: (0..requests).map(block).collect(), ..Made::of([&[open], calls].concat()) }
}

#[test]
fn scattered_page_faults_with_much_around_them_are_found() {
    let rule = |step, size, requests| faults(step, size, (requests, MS / 2), &[]).find_one("readahead-waste", 1000);
    let found = rule(617_984, 131_072, 600).unwrap();
    // 533 of 1 ms, and 67 of half of that: as many of 4 KiB take half of a millisecond at most, and a 32nd of it at best.
    let took = 0.5665;
    assert!((found.seconds.unwrap() - took).abs() < 1e-9, "{found:?}");
    let (low, high) = (found.gain_low_s.unwrap(), found.gain_high_s.unwrap());
    assert!((low - (took - 0.3)).abs() < 0.04 && (high - took * 31.0 / 32.0).abs() < 1e-9, "{found:?}");
    // A request for a page is never expected to cost less than its part of one for more.
    let fast = faults(617_984, 65_536, (1200, 1000), &[]).find_one("readahead-waste", 2000).unwrap();
    assert_eq!(fast.gain_low_s, fast.gain_high_s);
    assert_eq!(rule(256, 131_072, 600), None, "from begin to end");
    assert_eq!(rule(1024, 131_072, 600), None, "only forward: other files, or parts that are used");
    assert_eq!(rule(617_984, 4096, 10_000), None, "nothing around the pages");
    assert_eq!(rule(617_984, 131_072, 200), None, "too little");
}

#[test]
fn page_faults_on_code_are_no_waste() {
    let sized = |n, (op, kind), file, bytes| Span {
        file_id: Some(file),
        offset: Some(0),
        bytes: Some(bytes),
        req_bytes: Some(bytes),
        ..call(1, n, (op, kind), i64::from(n), 0)
    };
    let mapped = |header| {
        let maps = [("read", Kind::Read, header), ("mmap", Kind::Mmap, 50 << 20)];
        let calls = maps.into_iter().zip(1..).map(|((op, kind, bytes), n)| sized(n, (op, kind), 1, bytes));
        faults(617_984, 131_072, (600, MS / 2), &calls.collect::<Vec<_>>()).find_one("readahead-waste", 1000)
    };
    assert!(mapped(80).is_some(), "a header of data");
    assert_eq!(mapped(832), None, "50 MiB of what the loader mapped, of 75");
    assert_eq!(mapped(960), None);
}

#[test]
fn a_pause_that_ends_late_and_waits_for_write_back_end_with_the_limit() {
    // Of 10 ms: a pause of 4, 3 more asleep, 2 for write-back, and 1 on a CPU.
    let write = |n: u32| Span {
        bytes: Some(1_000_000),
        req_bytes: Some(1_000_000),
        throttle_ns: Some(4 * MS),
        writeback_ns: Some(2 * MS),
        cpu_ns: Some(MS),
        ..call(1, n, ("write", Kind::Write), i64::from(n) * 10, 10)
    };
    let found = Made::of((0..100).map(write)).find_one("dirty-throttling", 1000).unwrap();
    let near = |seconds: Option<f64>, wanted: f64| assert!((seconds.unwrap() - wanted).abs() < 1e-6, "{found:?}");
    near(found.seconds, 0.9);
    near(found.gain_low_s, 0.6 * 0.8);
    near(found.gain_high_s, 0.9);
}

#[test]
fn writes_of_parts_of_pages_that_only_wait_save_no_more_than_that() {
    // 9.99 ms of 10 asleep for the device; a copy of 4000 bytes takes longer than the rest in the worst case.
    let write = |n: u32| Span {
        offset: Some(i64::from(n) * 65_536),
        bytes: Some(4000),
        req_bytes: Some(4000),
        cpu_ns: Some(100),
        device_ns: Some(10 * MS - 100),
        ..call(1, n, ("pwrite64", Kind::Write), i64::from(n) * 10, 10)
    };
    let found = Made::of((0..100).map(write)).find_one("partial-page-overwrite", 1000).unwrap();
    assert!(found.gain_low_s.unwrap() <= found.gain_high_s.unwrap(), "{found:?}");
}

/// 4 KiB in the order of the file, 100 us each; a part of them asleep for a device, the rest on the CPU.
#[test]
fn reads_without_read_ahead_are_found_on_devices_that_answer_fast() {
    let made = |asleep_us: i64, ahead: i64| {
        let read = move |n: u32| {
            let read = call(1, n, ("read", Kind::Read), i64::from(n), 1);
            let (page, took) = (Some(4096), MS / 10);
            let asleep = Some(asleep_us * 1000);
            let span = Span { dur_ns: took, self_ns: took, bytes: page, req_bytes: page, ..read };
            let span = Span { offset: Some(i64::from(n) * 4096), miss_bytes: page, ahead_bytes: Some(ahead), ..span };
            Span { cpu_ns: asleep.map(|ns| took - ns), device_ns: asleep, ..span }
        };
        Made::of((0..10_000).map(read)).find_one("readahead-small", 10_000)
    };
    let found = made(35, 0).unwrap();
    assert!((found.seconds.unwrap() - 1.0).abs() < 1e-6, "{found:?}");
    assert!((found.gain_low_s.unwrap() - 0.175).abs() < 1e-6 && found.gain_high_s.unwrap() > 0.8, "{found:?}");
    assert_eq!(made(10, 0), None, "the CPU takes the time");
    assert_eq!(made(35, 131_072), None, "the kernel reads ahead");
}
