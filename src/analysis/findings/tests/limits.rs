//! Where there is more than is remembered, nothing is found that is not so, and rules that cannot be applied are named.

use super::call;
use super::made::{Made, for_device, request, written};
use crate::analysis::findings::*;
use crate::vocabulary::Kind;

/// The findings of a rule, and why it was not applied, or not to everything.
fn about(rule: &str, made: Made) -> (usize, Option<String>) {
    let all = made.find(2000);
    let why = all.not_evaluated.into_iter().find(|one| one.rule == rule).map(|one| one.why);
    (all.findings.iter().filter(|one| one.rule == rule).count(), why)
}

fn named(words: &str, (found, why): (usize, Option<String>)) {
    assert_eq!(found, 0);
    assert!(why.as_ref().is_some_and(|why| why.contains(words)), "{why:?}");
}

/// Three files are read from begin to end, in turn.
#[test]
fn reads_of_files_that_are_not_kept_apart_are_not_scattered() {
    let made = |most: usize| {
        let read = |n: i64| {
            let call = call(1, n as u32, ("pread64", Kind::Read), n * 2, 2);
            let (offset, size) = (Some(((n % 3) << 20) + n / 3 * 4096), Some(4096));
            let file_id = Some(n as i32 % 3 + 1);
            for_device(&Span { offset, bytes: size, req_bytes: size, file_id, ..call })
        };
        Made { most: Some(most), ..Made::of((0..600).map(read)) }
    };
    assert_eq!(about("random-reads", made(3)), (0, None));
    named("calls on more files than are kept apart", about("random-reads", made(1)));
}

#[test]
fn rules_on_files_need_all_files_kept_apart() {
    let made = |most: usize| {
        let writes = (0..8).map(|n| Span { file_id: Some(n + 1), ..written(0, n as u32, (0, 100), n.into(), 1) });
        Made { most: Some(most), ..Made::of(writes) }
    };
    for rule in ["misaligned-shared", "write-amplification", "file-per-process"] {
        assert_eq!(about(rule, made(8)), (0, None));
        named("more files than are kept apart", about(rule, made(7)));
    }
}

/// Ranks close the file between their accesses, more often than is remembered.
#[test]
fn without_all_that_orders_accesses_no_conflict_is_found() {
    let made = |closes: i64| {
        let close = |n: i64| Span { rank: Some(0), ..call(1, n as u32 + 9, ("close", Kind::Close), 100 + n * 2, 1) };
        let spans = [written(0, 0, (0, 100), 0, 10)].into_iter().chain((0..closes).map(close));
        let second = [written(1, 0, (50, 100), 5, 10)];
        Made { most: Some(4), ..Made::of(spans.chain(second)) }
    };
    assert_eq!(about("conflicting-ranks", made(16)), (1, None));
    named("flushed, closed or locked", about("conflicting-ranks", made(17)));
}

#[test]
fn conflicts_among_the_first_accesses_are_found_and_others_said_to_be_possible() {
    let more = (0..16).map(|n| written(0, n + 1, (1 << 20, 8), 100 + i64::from(n) * 2, 1));
    let spans = [written(0, 0, (0, 100), 0, 10), written(1, 0, (50, 100), 5, 10)].into_iter().chain(more);
    let (found, why) = about("conflicting-ranks", Made { most: Some(4), ..Made::of(spans) });
    assert_eq!((found, why.as_deref()), (1, Some("only the first accesses of ranks were compared")));
}

/// Pieces of two ranks that meet inside of blocks.
#[test]
fn blocks_of_files_are_all_remembered_or_none() {
    let made = |most: usize| {
        let piece = |n: i64| for_device(&written(n as i32 % 2, n as u32, (n * 20_000, 20_000), n * 2, 4));
        Made { most: Some(most), ..Made::of((0..100).map(piece)) }
    };
    assert_eq!(about("misaligned-shared", made(100)), (1, None));
    named("more blocks of files", about("misaligned-shared", made(4)));
}

/// Reads, each second one of which takes longer beside write-back.
#[test]
fn reads_and_write_back_are_all_remembered_or_none() {
    let made = |most: usize| {
        let (mut spans, mut blocks) = (Vec::new(), Vec::new());
        for n in 0..100_i64 {
            let ms = 2 + n % 2 * 6;
            let size = Some(100 << 10);
            let read = call(1, n as u32, ("read", Kind::Read), n * 20, ms);
            spans.push(for_device(&Span { bytes: size, req_bytes: size, ..read }));
            blocks.push(request(n, ("read", "sync"), (n * 20, ms), 100 << 10));
            if n % 2 == 1 {
                blocks.push(request(1000 + n, ("write", "writeback"), (n * 20, 5), 1 << 20));
            }
        }
        Made { blocks, most: Some(most), ..Made::of(spans) }
    };
    assert_eq!(about("own-write-back", made(100)), (1, None));
    named("more reads and write-back", about("own-write-back", made(99)));
}

/// The last minute of a trace that goes on: a limit counts while its slice does.
#[test]
fn a_limit_is_over_with_its_time() {
    let mut others = Others::limited(2);
    for n in 0..3 {
        others.block(&request(n, ("read", "sync"), (n, 1), 4096).0);
    }
    let slice = others.split();
    let mut all = Others::default();
    all.merge(&others);
    assert_eq!(all.limits().against("own-write-back"), None);
    all.merge(&slice);
    assert!(all.limits().against("own-write-back").is_some());
}
