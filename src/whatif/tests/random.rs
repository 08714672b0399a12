//! What holds for each run and all conditions.

use proptest::prelude::*;

use super::made::{MS, Made, call, handle, moves, request};
use crate::rows::{Row, Span};
use crate::vocabulary::{Kind, flag};
use crate::whatif::condition::{Cache, Condition, Faster};

const KINDS: [(&str, Kind); 5] = [
    ("read", Kind::Read),
    ("write", Kind::Write),
    ("fsync", Kind::Sync),
    ("openat", Kind::Open),
    ("pread64", Kind::Read),
];

prop_compose! {
    /// A call of one of three threads: what, how long, in which parts, and what it moves.
    fn one()(
        thread in 1..4_u32,
        what in 0..KINDS.len(),
        parts in prop::array::uniform8(0..4_i64),
        pause in 0..3_i64,
        (bytes, miss) in (1..100_000_i64, 0..2_i64),
        (direct, synced, rank) in (any::<bool>(), any::<bool>(), any::<bool>()),
    ) -> (u32, i64, Span) {
        let ms: i64 = parts.iter().sum();
        let [cpu, runq, throttle, lock, writeback, flush, devqueue, device] = parts.map(|ms| Some(ms * MS));
        let span = moves(call(thread, 0, KINDS[what], 0, ms), (bytes * 3, bytes), parts[0]);
        let span = Span {
            cpu_ns: cpu,
            runq_ns: runq,
            throttle_ns: throttle,
            lock_ns: lock,
            writeback_ns: writeback,
            flush_ns: flush,
            devqueue_ns: devqueue,
            device_ns: device,
            miss_bytes: span.miss_bytes.map(|_| miss * bytes),
            flags: if direct { flag::DIRECT } else { 0 },
            handle_id: Some(i32::from(synced)),
            rank: rank.then_some(thread as i32),
            ..span
        };
        (thread, pause, span)
    }
}

/// The calls of each thread one after the other; a process has one rank, or none.
fn in_order(calls: &[(u32, i64, Span)]) -> (i64, Vec<Span>) {
    let (mut spans, mut most) = (Vec::new(), 1);
    for of in 1..4_u32 {
        let mut now = 0;
        let of_thread: Vec<_> = calls.iter().filter(|(thread, ..)| *thread == of).collect();
        let rank = of_thread.first().and_then(|(.., span)| span.rank);
        for (seq, (_, pause, span)) in of_thread.into_iter().enumerate() {
            let span_id = span.span_id + seq as i64;
            spans.push(Span { span_id, root_id: span_id, rank, start_ns: now * MS, ..span.clone() });
            now += span.dur_ns / MS + pause;
        }
        most = most.max(now);
    }
    (most, spans)
}

fn conditions() -> Vec<Condition> {
    let device = |factor| Condition::Device(Faster { name: None, factor });
    vec![
        Condition::RanksWriting(1),
        Condition::Cache(Cache::Nothing),
        Condition::Cache(Cache::Everything),
        Condition::SyncOff,
        device(3.0),
        device(0.4),
    ]
}

fn requests(ms: i64) -> Vec<Row> {
    vec![request(1, (1, "vda"), (0, ms / 2), None)]
}

proptest! {
    #[test]
    fn ranges_are_ranges_and_leave_what_is_not_in_calls(calls in prop::collection::vec(one(), 1..60), extra in 0..50_i64) {
        let (ms, spans) = in_order(&calls);
        let run = || {
            let made = Made::of(ms + extra, spans.clone());
            made.with(requests(ms)).with([handle(0, 1), handle(1, 0o10_001)])
        };
        let same = Condition::Device(Faster { name: None, factor: 1.0 });
        let recorded = run().answer(&[same]).unwrap();
        prop_assert_eq!((recorded.together.low_s, recorded.together.high_s), (recorded.run_s, recorded.run_s));
        let outside = recorded.run_s - recorded.critical.calls_s;
        prop_assert!(outside >= -1e-9 && recorded.run_s <= (ms + extra) as f64 / 1e3 + 1e-9);
        let mut can = Vec::new();
        for condition in conditions() {
            // Some runs have not what a condition needs.
            let Ok(answer) = run().answer(std::slice::from_ref(&condition)) else { continue };
            let range = answer.together;
            prop_assert!(range.low_s <= range.high_s + 1e-9, "{condition}: {range:?}");
            prop_assert!(range.low_s >= outside - 1e-9 && range.high_s.is_finite(), "{condition}: {range:?}");
            prop_assert_eq!(range, answer.conditions[0].range);
            if condition == Condition::SyncOff || condition == Condition::Cache(Cache::Everything) {
                prop_assert!(range.high_s <= recorded.run_s + 1e-9, "{condition}: {range:?}");
            }
            can.push(condition);
        }
        let range = run().answer(&can).unwrap().together;
        prop_assert!(range.low_s <= range.high_s + 1e-9 && range.low_s >= outside - 1e-9, "{range:?}");
    }
}
