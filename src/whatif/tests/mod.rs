//! Answers for runs that are made here: what each condition changes, what it leaves alone, and what is refused.

mod made;
mod random;

use super::condition::{Cache, Condition, Faster};
use super::render;
use crate::rows::{Loss, Row, Span, span_id};
use crate::vocabulary::{Kind, Layer, flag};
use made::{MS, Made, call, file, handle, mount, moves, request};

fn near((low, high): (f64, f64), wanted: (f64, f64)) {
    let is = |seconds: f64, wanted: f64| (seconds - wanted).abs() < 1e-4;
    assert!(is(low, wanted.0) && is(high, wanted.1), "{low} to {high} is not {wanted:?}");
}

fn device(text: &str) -> Condition {
    Condition::Device(Faster::parse(text).unwrap())
}

/// A hundred records with a write of 1 ms and a flush of 10 ms, 2 of which are on a CPU.
fn log() -> Vec<Span> {
    let record = |n: u32| {
        let start = i64::from(n) * 20;
        let write = call(1, n * 2, ("write", Kind::Write), start, 1);
        let sync = call(1, n * 2 + 1, ("fsync", Kind::Sync), start + 1, 10);
        let sync = Span { cpu_ns: Some(2 * MS), writeback_ns: Some(5 * MS), flush_ns: Some(3 * MS), ..sync };
        [moves(write, (i64::from(n) * 100, 100), 1), sync]
    };
    (0..100).flat_map(record).collect()
}

#[test]
fn flushes_that_are_not_made_leave_nothing() {
    near(Made::of(2000, log()).range(Condition::SyncOff), (1.0, 1.0));
    let answer = Made::of(2000, log()).answer(&[Condition::SyncOff]).unwrap();
    let alone = &answer.conditions[0];
    // With the writes to the same file, which wait for nothing here.
    assert_eq!((alone.calls, alone.condition.as_str()), (200, "--sync off"));
    assert!((answer.critical.calls_s - 1.1).abs() < 1e-6 && answer.critical.processes == [1], "{answer:?}");
    assert!(alone.model.contains("100 flushes took 1.00 s"), "{}", alone.model);
}

#[test]
fn writes_beside_flushes_may_wait_for_none() {
    let mut spans = log();
    for span in spans.iter_mut().filter(|span| span.kind == Kind::Write) {
        (span.dur_ns, span.self_ns, span.journal_ns) = (2 * MS, 2 * MS, Some(MS));
        span.start_ns -= MS;
    }
    near(Made::of(2000, spans).range(Condition::SyncOff), (0.9, 1.0));
}

/// A journal that is flushed and removed: without blocks there is nothing to free.
#[test]
fn flushed_files_may_be_removed_without_waiting() {
    let unlink = Span {
        cpu_ns: Some(2 * MS),
        runq_ns: Some(3 * MS),
        device_ns: Some(3 * MS),
        ..call(1, 200, ("unlink", Kind::Meta), 2000, 8)
    };
    let other = Span { file_id: Some(2), ..call(1, 201, ("unlink", Kind::Meta), 2010, 4) };
    let other = Span { cpu_ns: Some(2 * MS), runq_ns: Some(0), device_ns: Some(2 * MS), ..other };
    let run = |some: &[&Span]| Made::of(2100, log().into_iter().chain(some.iter().map(|span| (*span).clone())));
    near(run(&[&unlink]).range(Condition::SyncOff), (1.094, 1.1));
    near(run(&[&other]).range(Condition::SyncOff), (1.1, 1.1));
    near(run(&[&unlink, &other]).range(Condition::SyncOff), (1.094, 1.1));
}

/// Twenty writes of 10 ms with `O_DSYNC`, and as many of 2 ms without.
#[test]
fn synchronous_writes_cost_what_others_of_their_size_do() {
    let write = |n: u32, handle: i32, ms: i64| {
        let one = moves(call(1, n, ("write", Kind::Write), i64::from(n) * 10, ms), (0, 4096), ms);
        Span { handle_id: Some(handle), ..one }
    };
    let synced = (0..20).map(|n| Span {
        cpu_ns: Some(3 * MS),
        writeback_ns: Some(6 * MS),
        runq_ns: Some(MS),
        ..write(n, 2, 10)
    });
    let spans: Vec<Span> = synced.chain((20..40).map(|n| write(n, 3, 2))).collect();
    let run = || Made::of(1000, spans.clone()).with([handle(2, 0o10_001), handle(3, 1)]);
    let (low, high) = run().range(Condition::SyncOff);
    // A bucket of a histogram is within 1/64.
    // At worst with what waited for a CPU, and a copy for the kernel.
    let most = 0.82 + 0.04 + 20.0 * 4096.0 / 4e9;
    assert!((low - 0.84).abs() < 0.001 && (high - most).abs() < 0.001, "{low} {high}");
    let alone = run().answer(&[Condition::SyncOff]).unwrap().conditions.remove(0);
    assert!(alone.model.contains("20 writes with O_SYNC or O_DSYNC"), "{}", alone.model);
}

/// `H5Fflush` of 10 ms with a write of 4 ms in it.
#[test]
fn functions_that_flush_may_only_move_their_work() {
    let flush = |n: u32| {
        let (id, start) = (span_id(1, n * 2), i64::from(n) * 20);
        let outer = Span::new(id, (Layer::Hdf5, "H5Fflush", Kind::Sync), 1, (start * MS, 10 * MS));
        let inner = moves(call(1, n * 2 + 1, ("pwrite64", Kind::Write), start, 4), (0, 4_000_000), 4);
        let inner = Span { parent_id: Some(id), root_id: id, depth: 1, ..inner };
        [Span { pid: 1, self_ns: 6 * MS, ..outer }, inner]
    };
    let spans: Vec<Span> = (0..50).flat_map(flush).collect();
    let (low, high) = Made::of(1000, spans).range(Condition::SyncOff);
    // Their data is written at the rate of these writes, at 1.3 times that at best.
    assert!((low - (0.5 + 0.2 / 1.3)).abs() < 1e-3 && (high - 1.0).abs() < 1e-6, "{low} {high}");
}

/// Reads of 10 ms: 2 on a CPU, 5 in a device, 3 in its queue.
fn reads(file_id: i32, first: u32) -> impl Iterator<Item = Span> {
    (first..first + 50).map(move |n| {
        let read = moves(call(1, n, ("pread64", Kind::Read), i64::from(n) * 10, 10), (i64::from(n) * 4096, 4096), 2);
        let miss_bytes = Some(4096);
        Span { device_ns: Some(5 * MS), devqueue_ns: Some(3 * MS), file_id: Some(file_id), miss_bytes, ..read }
    })
}

#[test]
fn requests_in_a_device_scale_and_those_in_its_queue_may() {
    let run = || Made::of(1000, reads(1, 0)).with([request(1, (1, "vda"), (0, 100), None)]);
    near(run().range(device("vda=2x")), (0.5 + 0.1 + 0.2, 0.5 + 0.1 + 0.275));
    near(run().range(device("all=0.5x")), (1.25, 1.4));
    near(run().range(device("vda=1x")), (1.0, 1.0));
    // What it read ahead beside the program shows when it is slow.
    near(run().range(device("vda=0.05x")), (0.75 + 5.0, 0.6 + 8.0));
    let busy = run().with([request(2, (1, "vda"), (100, 800), None)]);
    near(busy.range(device("vda=0.5x")), (1.25, 1.8));
    let error = run().answer(&[device("vdb=2x")]).unwrap_err();
    assert_eq!(error, "the trace has no device vdb (did you mean \"vda\"?); it has vda");
}

#[test]
fn calls_wait_for_the_device_that_their_file_is_on() {
    let spans: Vec<Span> = reads(1, 0).chain(reads(2, 50)).chain(reads(3, 100)).collect();
    let run = || {
        let devices = [request(1, (1, "sda"), (0, 1), None), request(2, (2, "dm-0"), (0, 1), None)];
        let below = [request(3, (3, "sdb"), (0, 1), Some(2))];
        let files = [mount(1, "sda1", "sda"), mount(2, "dm-0", "dm-0"), file(1, 1), file(2, 2)];
        Made::of(2000, spans.clone()).with(devices).with(below).with(files)
    };
    // Half a second of each file, of which the third is on an unknown device.
    let (certain, possible) = (0.125, 0.2);
    near(run().range(device("sda1=2x")), (2.0 - 2.0 * possible, 2.0 - certain));
    near(run().range(device("sda=2x")), (2.0 - 2.0 * possible, 2.0 - certain));
    near(run().range(device("sdb=2x")), (2.0 - 2.0 * possible, 2.0 - certain));
    near(run().range(device("all=2x")), (2.0 - 3.0 * possible, 2.0 - 3.0 * certain));
}

#[test]
fn a_limit_that_holds_requests_back_is_the_device() {
    let held = reads(1, 0).map(|read| Span { device_ns: Some(MS), devqueue_ns: None, ..read });
    near(Made::of(1000, held).range(device("all=2x")), (0.8, 0.8));
    // What writes sleep for is not known.
    let writes = reads(1, 0).map(|read| Span {
        kind: Kind::Write,
        op: "pwrite64",
        miss_bytes: None,
        device_ns: Some(MS),
        devqueue_ns: None,
        ..read
    });
    near(Made::of(1000, writes).range(device("all=2x")), (0.975, 0.975));
}

/// A hundred reads in turn, of which the first `cold` come from a device: 10 ms, 2 on a CPU. Others take 1 ms.
fn twice(cold: u32) -> Vec<Span> {
    let read = |n: u32| {
        let ms = if n < cold { 10 } else { 1 };
        let one = moves(call(1, n, ("read", Kind::Read), i64::from(n) * 10, ms), (i64::from(n) * 65_536, 65_536), 1);
        if n < cold {
            Span { cpu_ns: Some(2 * MS), device_ns: Some(8 * MS), miss_bytes: Some(65_536), ..one }
        } else {
            one
        }
    };
    (0..100).map(read).collect()
}

#[test]
fn reads_in_the_page_cache_wait_for_nothing() {
    let (low, high) = Made::of(2000, twice(50)).range(Condition::Cache(Cache::Everything));
    // 0.4 s asleep, and on a CPU as short as the others, which all take the same.
    assert!((high - 1.55).abs() < 0.002 && (low - 1.55).abs() < 0.002, "{low} {high}");
    let error = Made::of(2000, twice(100)).answer(&[Condition::Cache(Cache::Everything)]).unwrap_err();
    assert!(error.contains("found its data in the page cache"), "{error}");
}

#[test]
fn reads_from_a_device_cost_what_others_did() {
    let (low, high) = Made::of(2000, twice(50)).range(Condition::Cache(Cache::Nothing));
    // 9 ms longer each, for 50.
    assert!((low - (2.0 + 0.45 / 1.3)).abs() < 0.01 && (high - (2.0 + 0.45 / 0.7)).abs() < 0.01, "{low} {high}");
    let error = Made::of(2000, twice(0)).answer(&[Condition::Cache(Cache::Nothing)]).unwrap_err();
    assert!(error.contains("came from a device"), "{error}");
    let unknown = twice(50).into_iter().map(|read| Span { miss_bytes: None, ..read });
    let error = Made::of(2000, unknown).answer(&[Condition::Cache(Cache::Nothing)]).unwrap_err();
    assert!(error.contains("doctor"), "{error}");
    let direct = twice(50).into_iter().map(|read| Span { flags: flag::DIRECT, ..read });
    let error = Made::of(2000, direct).answer(&[Condition::Cache(Cache::Nothing)]).unwrap_err();
    assert!(error.contains("goes through the page cache"), "{error}");
}

#[test]
fn conditions_apply_one_after_the_other() {
    let both = [Condition::Cache(Cache::Nothing), device("all=2x")];
    let answer = Made::of(2000, twice(50)).answer(&both).unwrap();
    let [cache, device] = [answer.conditions[0].range, answer.conditions[1].range];
    // What comes from the device then is half as long, too.
    let saved = 0.2 + (cache.low_s - 2.0) / 2.0;
    assert!((answer.together.low_s - (cache.low_s - saved)).abs() < 1e-6, "{answer:?}");
    assert!((device.low_s - 1.8).abs() < 1e-6 && answer.together.high_s < cache.high_s, "{answer:?}");
}

/// Writes of four ranks, of 10 ms each: 4 on a CPU, 6 for a lock.
fn ranks(writing: u32) -> Vec<Span> {
    let write = |rank: u32, n: u32| {
        let start = i64::from(n) * 10;
        let one = moves(call(rank + 1, n, ("pwrite64", Kind::Write), start, 10), (0, 1 << 20), 4);
        Span { rank: Some(rank as i32), cpu: rank as _, lock_ns: Some(6 * MS), ..one }
    };
    let other = |rank: u32| {
        let one = call(rank + 1, 900, ("stat", Kind::Meta), 0, 1);
        Span { rank: Some(rank as i32), cpu: rank as _, ..one }
    };
    let writes = (0..50).flat_map(|n| (0..writing).map(move |rank| write(rank, n)));
    let mut spans: Vec<Span> = writes.chain((writing..4).map(other)).collect();
    spans.sort_by_key(|span| (span.pid, span.start_ns));
    spans
}

#[test]
fn fewer_ranks_write_more_each_and_are_less_in_the_way() {
    let moved = 150.0 * 1_048_576.0;
    let fewer = Made::of(1000, ranks(4)).range(Condition::RanksWriting(1));
    let (all, most) = (200.0 * 1_048_576.0, 0.5 + 2.0 + moved / 0.5e9);
    near(fewer, (0.5 + all / 4e9 + moved / 4e9, most));
    // Those that wait for no lock spin for none.
    let apart = ranks(4).into_iter().map(|span| Span { lock_ns: None, ..span });
    near(Made::of(1000, apart).range(Condition::RanksWriting(1)), (0.5 + 0.8 + 0.3 + moved / 4e9, most));
    near(Made::of(1000, ranks(4)).range(Condition::RanksWriting(4)), (1.0, 1.0));
    let more = Made::of(1000, ranks(1)).range(Condition::RanksWriting(2));
    // Each rank has a CPU, and half of the data need not be gathered.
    near(more, (0.5 + 0.1 - 25.0 * 1_048_576.0 / 0.5e9, 1.0));
    let error = Made::of(1000, ranks(4)).answer(&[Condition::RanksWriting(5)]).unwrap_err();
    assert!(error.contains("has 4 ranks"), "{error}");
    let error = Made::of(1000, log()).answer(&[Condition::RanksWriting(1)]).unwrap_err();
    assert!(error.contains("has no ranks"), "{error}");
    let error = Made::of(1000, ranks(0)).answer(&[Condition::RanksWriting(1)]).unwrap_err();
    assert!(error.contains("no rank of the trace writes"), "{error}");
}

/// Process 1 flushes for a second while process 2 reads for 0.9.
#[test]
fn another_lane_may_have_more_to_do_then() {
    let others = (0..90).map(|n| call(2, n, ("read", Kind::Read), i64::from(n) * 10, 10));
    near(Made::of(2000, log().into_iter().chain(others)).range(Condition::SyncOff), (1.0, 2.0 - 0.2));
}

#[test]
fn a_run_without_its_calls_and_their_time_is_left() {
    // Calls of two threads of a process overlap.
    let spans = (0..2_u32).flat_map(|thread| (0..10).map(move |n| (thread, n)));
    let spans = spans.map(|(thread, n)| {
        let sync = call(thread + 1, n, ("fsync", Kind::Sync), i64::from(n) * 10, 10);
        Span { process_ix: 1, pid: 1, cpu_ns: Some(0), flush_ns: Some(10 * MS), ..sync }
    });
    near(Made::of(200, spans).range(Condition::SyncOff), (0.1, 0.1));
}

#[test]
fn what_a_model_cannot_rest_on_is_refused_with_a_way_out() {
    let sync = [Condition::SyncOff];
    let refused = |made: Made, conditions: &[Condition]| made.answer(conditions).unwrap_err();
    let run = || Made::of(2000, log());
    for (error, way_out) in [
        (refused(run().meta("aggregate", "yes"), &sync), "record without it"),
        (refused(run().traced(1000, 300), &sync), "--layers syscall,block"),
        (refused(run().only(&[Layer::Syscall]), &[device("all=2x")]), "record with --layers syscall,block"),
        (refused(run().only(&[]), &sync), "layer syscall is not covered"),
        (refused(run().with([lost(100)]), &sync), "33.3% of the events of layer syscall were lost"),
        (refused(Made::of(2000, log().into_iter().map(|s| Span { cpu_ns: None, ..s })), &sync), "SCHED_INFO"),
    ] {
        assert!(error.contains(way_out), "{error}");
    }
    // Without the layer of devices the others have an answer.
    assert!(run().only(&[Layer::Syscall]).answer(&sync).is_ok());
    let answer = run().with([lost(1)]).answer(&sync).unwrap();
    assert!(answer.caveats.iter().any(|caveat| caveat.starts_with("1 events were lost")), "{:?}", answer.caveats);
}

#[test]
fn a_run_is_not_as_long_as_it_was_held_for_probes() {
    let sync = [Condition::SyncOff];
    let run = || Made::of(2000, log()).traced(2000, 20);
    let (free, held) = (run().answer(&sync).unwrap(), run().held(400).answer(&sync).unwrap());
    assert!((free.run_s - held.run_s - 0.4).abs() < 1e-9 && (held.tracing_s - 0.42).abs() < 1e-9, "{held:?}");
    assert!((free.together.high_s - held.together.high_s - 0.4).abs() < 1e-9, "{held:?}");
}

fn lost(count: i64) -> Row {
    let (layer, place) = (Some(Layer::Syscall), "ring");
    Row::Loss(Loss { t_ns: 1, layer, cpu: None, place, process_ix: None, count })
}

#[test]
fn the_text_has_a_range_for_each_condition_and_what_it_rests_on() {
    let conditions = [Condition::SyncOff, device("all=2x")];
    let answer = Made::of(2000, log()).traced(2000, 20).answer(&conditions).unwrap();
    let text = render::text(&answer, 100);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..6],
        [
            "                         at least  at most       of the run",
            "as recorded                1.98 s                    100.0%",
            "  in calls of process 1    1.10 s                     55.6%",
            "--sync off                 980 ms   980 ms            49.5%",
            "--device all=2x            1.58 s   1.98 s  79.8% to 100.0%",
            "all together               980 ms   980 ms            49.5%",
        ],
        "{text}"
    );
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    for part in ["--sync off: 100 flushes took", "All else stays as measured", "the 20.0 ms that tracing took"] {
        assert!(text.contains(part), "{text}");
    }
}
