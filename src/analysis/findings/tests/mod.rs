//! Findings on rows that are made here: which time counts, whose, and when nothing is said.

use proptest::prelude::*;

mod devices;
mod folded;
mod limits;
pub mod made;
mod nodes;
mod ranks;
mod rules;

use super::*;
use crate::analysis::nesting::Nesting;
use crate::rows::{Process, Row, span_id};
use crate::vocabulary::{Kind, flag};

pub const MS: i64 = 1_000_000;
const US: i64 = 1_000;

/// A system call of a thread, by which process it is made as well: number, start and duration in ms.
pub fn call(thread: u32, seq: u32, (op, kind): (&'static str, Kind), start: i64, ms: i64) -> Span {
    let id = span_id(thread, seq);
    let at = (start * MS, ms * MS);
    Span { pid: thread as i32, file_id: Some(1), ..Span::new(id, (Layer::Syscall, op, kind), thread as i32, at) }
}

pub fn flush(thread: u32, seq: u32, start: i64, ms: i64) -> Span {
    call(thread, seq, ("fsync", Kind::Sync), start, ms)
}

pub fn covered(attached: &[Layer]) -> Vec<LayerCoverage> {
    let mut rows: Vec<Row> = Vec::new();
    let mut coverage = crate::analysis::trace::coverage::coverage(&mut rows).unwrap().0;
    for layer in &mut coverage {
        let seen = attached.iter().any(|known| known.name() == layer.layer);
        (layer.attached, layer.probes) = if seen { (1, 1) } else { (0, layer.probes) };
    }
    coverage
}

/// What the rules find in these calls of a run of so many ms, of which the tracer took a share.
fn find(spans: &[Span], run_ms: i64, tracing: f64, coverage: &[LayerCoverage]) -> Findings {
    let process = |thread: i32| Process { process_ix: thread, pid: thread, ..Process::placeholder(thread, 0) };
    let mut rows: Vec<Row> = (0..9).map(|thread| Row::Process(Box::new(process(thread)))).collect();
    let mut collect = Collect::new(&mut rows).unwrap();
    let mut nesting = Nesting::default();
    for span in spans {
        let around = nesting.of(span);
        collect.span(span, &around);
    }
    let losses = Losses::default();
    let trace = Trace {
        duration_ns: run_ms * MS,
        tracing: Some(tracing),
        coverage,
        losses: &losses,
        aggregate: false,
        nodes: 1,
    };
    collect.finish(&mut rows, &trace, &Config::default()).unwrap()
}

fn found(spans: &[Span], run_ms: i64) -> Findings {
    find(spans, run_ms, 0.0, &covered(&[Layer::Syscall, Layer::Block]))
}

pub fn seconds(findings: &Findings) -> Vec<(&'static str, f64)> {
    findings.findings.iter().map(|f| (f.rule, f.seconds.unwrap_or(-1.0))).collect()
}

#[test]
fn flushes_after_each_record_are_found_with_their_seconds() {
    let spans: Vec<Span> = (0..100).map(|n| flush(1, n, i64::from(n) * 12, 10)).collect();
    let all = found(&spans, 1200);
    assert_eq!(seconds(&all), [("sync-per-record", 1.0)]);
    let one = &all.findings[0];
    assert_eq!((one.severity, one.evidence.spans.len()), (Severity::Critical, 5));
    let gain = (one.gain_low_s.unwrap(), one.gain_high_s.unwrap());
    assert!((0.8..0.95).contains(&gain.0) && (0.95..=1.0).contains(&gain.1), "{gain:?}");
    assert!(all.unexplained_s < 1e-9 && (all.calls_s - 1.0).abs() < 1e-9);
}

#[test]
fn little_time_and_few_calls_are_no_finding() {
    let few: Vec<Span> = (0..9).map(|n| flush(1, n, i64::from(n) * 12, 10)).collect();
    assert_eq!(found(&few, 120).findings, []);
    // 40 ms.
    let short: Vec<Span> = (0..20).map(|n| flush(1, n, i64::from(n) * 12, 2)).collect();
    assert_eq!(found(&short, 240).findings, []);
    // Less than a hundredth of the run.
    let spans: Vec<Span> = (0..100).map(|n| flush(1, n, i64::from(n) * 12, 1)).collect();
    assert_eq!(found(&spans, 1_000_000).findings, []);
    assert_eq!(seconds(&found(&spans, 2_000)), [("sync-per-record", 0.1)]);
}

#[test]
fn processes_one_after_the_other_add_up_and_others_do_not() {
    let of = |thread: u32, from: i64| (0..20).map(move |n| flush(thread, n, from + i64::from(n) * 10, 10));
    let after: Vec<Span> = of(1, 0).chain(of(2, 300)).collect();
    assert_eq!(seconds(&found(&after, 1000)), [("sync-per-record", 0.4)]);
    let beside: Vec<Span> = of(1, 0).chain(of(2, 5)).collect();
    assert_eq!(seconds(&found(&beside, 1000)), [("sync-per-record", 0.2)]);
}

#[test]
fn threads_of_a_process_that_wait_at_once_wait_once() {
    let of = |thread: u32| (0..20).map(move |n| Span { process_ix: 1, ..flush(thread, n, i64::from(n) * 10, 10) });
    let spans: Vec<Span> = of(1).chain(of(2)).chain(of(3)).collect();
    let all = found(&spans, 1000);
    assert_eq!(all.findings.len(), 1);
    assert!((all.findings[0].seconds.unwrap() - 0.2).abs() < 1e-3, "{:?}", all.findings[0].seconds);
}

#[test]
fn errors_that_end_runs_are_named_whatever_time_they_took() {
    let failed = Span { errno: 28, ..call(1, 0, ("write", Kind::Write), 0, 0) };
    let all = found(&[failed], 10_000);
    assert_eq!(all.findings.len(), 1);
    let error = &all.findings[0];
    assert_eq!((error.rule, error.severity, error.seconds), ("errors", Severity::Critical, None));
    assert!(error.title.contains("ENOSPC"), "{}", error.title);
}

#[test]
fn a_layer_that_was_not_seen_is_not_taken_for_healthy() {
    let mut coverage = covered(&[Layer::Syscall]);
    let not_evaluated = |coverage: &[LayerCoverage]| -> Vec<&str> {
        find(&[], 1000, 0.0, coverage).not_evaluated.iter().map(|rule| rule.rule).collect()
    };
    assert!(not_evaluated(&coverage).contains(&"random-reads"), "the block layer has no probes");
    assert!(!not_evaluated(&coverage).contains(&"hdf5-metadata"), "no process mapped the library");
    let hdf5 = coverage.iter_mut().find(|layer| layer.layer == "hdf5").unwrap();
    hdf5.refused.insert("refused: no privilege".to_owned(), 3);
    assert!(not_evaluated(&coverage).contains(&"hdf5-metadata"));
}

#[test]
fn where_tracing_took_much_of_the_run_only_the_order_remains() {
    let spans: Vec<Span> = (0..100).map(|n| flush(1, n, i64::from(n) * 12, 10)).collect();
    let all = find(&spans, 1200, 0.3, &covered(&[Layer::Syscall]));
    assert_eq!(seconds(&all), [("sync-per-record", -1.0)]);
    assert_eq!((all.findings[0].gain_low_s, all.findings[0].gain_high_s), (None, None));
}

#[test]
fn calls_that_are_tried_again_and_again_are_found_with_the_loop_around_them() {
    let again = |n: i64| Span {
        errno: 11,
        start_ns: n * 100 * US,
        dur_ns: 40 * US,
        self_ns: 40 * US,
        ..call(1, n as u32, ("read", Kind::Read), 0, 0)
    };
    let spans: Vec<Span> = (0..2000).map(again).collect();
    let all = found(&spans, 250);
    assert_eq!(
        seconds(&all).iter().map(|(rule, s)| (*rule, (s * 100.0).round())).collect::<Vec<_>>(),
        [("retries", 20.0)]
    );
    assert_eq!(seconds(&found(&spans[..900], 250)), [], "too few");
}

#[test]
fn a_call_that_never_returned_is_named() {
    let open = |op, ms| Span { flags: flag::UNFINISHED, ..call(1, 0, op, 0, ms) };
    let all = found(&[open(("fsync", Kind::Sync), 12_000)], 12_000);
    let stuck = all.findings.iter().find(|finding| finding.rule == "stuck").unwrap();
    assert!(stuck.title.starts_with("syscall fsync had not returned for 12.0 s"), "{}", stuck.title);
    for short in [open(("fsync", Kind::Sync), 9_000), open(("read", Kind::Read), 60_000)] {
        assert!(found(&[short], 60_000).findings.iter().all(|finding| finding.rule != "stuck"));
    }
}

#[test]
fn a_rank_that_moves_more_than_the_others_is_found() {
    let writes = |rank: i32, calls: u32| {
        (0..calls).map(move |n| Span {
            rank: Some(rank),
            bytes: Some(1 << 20),
            req_bytes: Some(1 << 20),
            ..call(rank as u32 + 1, n, ("write", Kind::Write), i64::from(n) * 10, 10)
        })
    };
    let uneven: Vec<Span> = (0..4).flat_map(|rank| writes(rank, if rank == 2 { 100 } else { 20 })).collect();
    let all = found(&uneven, 1000);
    let title = &all.findings.iter().find(|finding| finding.rule == "rank-imbalance").unwrap().title;
    assert!(title.starts_with("one rank moved 100 MiB, 2.5 times the mean of 4 ranks"), "{title}");
    let even: Vec<Span> = (0..4).flat_map(|rank| writes(rank, 50)).collect();
    assert_eq!(found(&even, 1000).findings, []);
}

#[test]
fn a_lock_names_who_worked_on_the_file_meanwhile() {
    let waits = |n: u32| Span {
        cpu_ns: Some(0),
        lock_ns: Some(10 * MS),
        ..call(1, n, ("pwrite64", Kind::Write), i64::from(n) * 10, 10)
    };
    let mut spans: Vec<Span> = (0..20).map(waits).collect();
    let title = |spans: &[Span]| {
        let all = found(spans, 1000);
        all.findings.iter().find(|finding| finding.rule == "lock-wait").unwrap().title.clone()
    };
    assert!(title(&spans).contains("no other traced process worked on the file"), "{}", title(&spans));
    spans.extend((0..5).map(|n| call(7, n, ("pwrite64", Kind::Write), i64::from(n) * 10, 10)));
    assert!(title(&spans).contains("process 7 worked on the file most meanwhile"), "{}", title(&spans));
}

/// A library call of process 1 and a call inside it, each of so many bytes.
pub fn with_one_inside(
    n: u32,
    (outer, flags): ((Layer, &'static str), i32),
    inner: (Layer, &'static str),
) -> [Span; 2] {
    let kind = |(layer, op): (Layer, &'static str)| (layer, op, Kind::Write);
    let (id, at) = (span_id(1, n * 2), (i64::from(n) * 12 * MS, 10 * MS));
    let size = |span: Span| Span { pid: 1, file_id: Some(1), bytes: Some(1 << 16), req_bytes: Some(1 << 16), ..span };
    let outer = Span { flags, ..Span::new(id, kind(outer), 1, at) };
    let inner =
        Span { parent_id: Some(id), root_id: id, depth: 1, ..Span::new(span_id(1, n * 2 + 1), kind(inner), 1, at) };
    [size(outer), size(inner)]
}

#[test]
fn non_blocking_calls_that_do_the_work_themselves_are_found() {
    let all = |moved: i64| {
        let started = ((Layer::Mpiio, "MPI_File_iwrite_at"), flag::NONBLOCKING | flag::ASYNC);
        let calls = (0..100).flat_map(|n| with_one_inside(n, started, (Layer::Syscall, "pwrite64")));
        let cut = |span: Span| if span.layer == Layer::Syscall { Span { bytes: Some(moved), ..span } } else { span };
        let spans: Vec<Span> = calls.map(cut).collect();
        find(&spans, 2000, 0.0, &covered(&[Layer::Syscall, Layer::Mpiio]))
    };
    let found = all(1 << 16).findings;
    let first = found.first().expect("a finding");
    assert_eq!((first.rule, first.gain_low_s), ("nonblocking-blocks", Some(0.0)), "{found:?}");
    assert!(first.title.starts_with("100 non-blocking calls moved 6.25 MiB"), "{}", first.title);
    let later = all(1 << 10).findings;
    assert!(later.iter().all(|one| one.rule != "nonblocking-blocks"), "{later:?}");
}

#[test]
fn collective_calls_of_a_library_that_arrive_as_independent_ones_are_found() {
    let all = |flags: i32, inner: &'static str| {
        let outer = ((Layer::Hdf5, "H5Dwrite"), flags);
        let spans: Vec<Span> = (0..200).flat_map(|n| with_one_inside(n, outer, (Layer::Mpiio, inner))).collect();
        find(&spans, 4000, 0.0, &covered(&[Layer::Syscall, Layer::Mpiio, Layer::Hdf5])).findings
    };
    let broken = |found: &[Finding]| found.iter().any(|one| one.rule == "collective-broken");
    assert!(broken(&all(flag::COLLECTIVE, "MPI_File_write_at")));
    assert!(!broken(&all(flag::COLLECTIVE, "MPI_File_write_at_all")));
    assert!(!broken(&all(0, "MPI_File_write_at")));
}

fn operation() -> impl Strategy<Value = (&'static str, Kind)> {
    prop_oneof![
        Just(("fsync", Kind::Sync)),
        Just(("write", Kind::Write)),
        Just(("read", Kind::Read)),
        Just(("openat", Kind::Open)),
        Just(("newfstatat", Kind::Meta)),
    ]
}

/// What a helper thread writes for an operation is time of the call that waits for it, and part of a collective call.
#[test]
fn what_another_thread_does_for_an_operation_counts_once() {
    let id = |thread, seq| span_id(thread, seq);
    let own = |seq, layer, op, start: i64, ms: i64| Span {
        rank: Some(0),
        ..Span::new(id(1, seq), (layer, op, Kind::Write), 1, (start * MS, ms * MS))
    };
    let collective =
        Span { flags: flag::COLLECTIVE, self_ns: 99 * MS, ..own(0, Layer::Mpiio, "MPI_File_write_all", 0, 100) };
    let (parent_id, root_id, layer_top) = (Some(id(1, 0)), id(1, 0), true);
    let operation = Span {
        parent_id,
        root_id,
        layer_top,
        flags: flag::ASYNC,
        self_ns: MS,
        ..own(1, Layer::Stdio, "aio_write", 1, 90)
    };
    let helper = Span {
        parent_id: Some(id(1, 1)),
        root_id,
        bytes: Some(1 << 27),
        ..call(2, 0, ("pwrite64", Kind::Write), 2, 80)
    };
    let mut collect = Collect::new(&mut Vec::<Row>::new()).unwrap();
    let mut nesting = Nesting::default();
    for span in [collective, operation, Span { process_ix: 1, ..helper }] {
        let around = nesting.of(&span);
        collect.span(&span, &around);
    }
    let write = collect.groups.all.iter().find(|group| group.key.op == "pwrite64").unwrap();
    assert!(write.key.collective && write.key.called.1 == "MPI_File_write_all");
    assert_eq!((write.bytes, write.total()), (1 << 27, 0));
    let all: i64 = collect.groups.all.iter().map(Group::total).sum();
    assert_eq!(all, 100 * MS);
}

/// Functions whose calls were summed up over the same second take their times one after the other.
#[test]
fn sums_of_one_second_add_up() {
    let mut rows: Vec<Row> = Vec::new();
    let mut collect = Collect::new(&mut rows).unwrap();
    for (op, kind) in [("fsync", Kind::Sync), ("write", Kind::Write)] {
        let ns = 400 * MS;
        collect.sums(&FileRollup {
            process_ix: Some(1),
            calls: 100,
            calls_error: None,
            dur_ns: ns,
            self_ns: ns,
            cpu_ns: 0,
            runq_ns: 0,
            lock_ns: 0,
            wait_ns: 0,
            first_ns: Some(0),
            last_ns: Some(1000 * MS),
            ..crate::export::dataset::tests::sums(Layer::Syscall, op, kind)
        });
    }
    let (coverage, losses) = (covered(&[Layer::Syscall]), Losses::default());
    let trace = Trace {
        duration_ns: 1000 * MS,
        tracing: None,
        coverage: &coverage,
        losses: &losses,
        aggregate: true,
        nodes: 1,
    };
    let all = collect.finish(&mut rows, &trace, &Config::default()).unwrap();
    assert_eq!(seconds(&all), [("sync-per-record", 0.4)]);
    assert!((all.calls_s - 0.8).abs() < 1e-9);
}

proptest! {
    /// Calls of threads and processes in any order and size: no ns counts twice, and none that was not there.
    #[test]
    fn all_findings_and_the_rest_are_at_most_the_run(
        calls in prop::collection::vec((1..6_u32, operation(), 0..200_i64, 0..60_i64, 0..5000_i64, 0..30_i16), 1..300),
        ranks in prop::option::of(1..3_i32),
    ) {
        let mut next = [(0_u32, 0_i64); 6];
        let mut spans = Vec::new();
        for (thread, op, pause, ms, size, errno) in calls {
            let (seq, at) = &mut next[thread as usize];
            let start_ns = *at + pause * US;
            let span = Span { start_ns, ..call(thread, *seq, op, 0, ms) };
            let data = matches!(op.1, Kind::Read | Kind::Write);
            let bytes = data.then_some(size);
            let (cpu_ns, runq_ns, lock_ns) = (Some(ms * MS / 4), Some(ms * MS / 4), Some(ms * MS / 4));
            let process_ix = thread as i32 / 2;
            // Several processes of one rank, which may run at once.
            let rank = ranks.map(|ranks| process_ix % ranks);
            spans.push(Span {
                process_ix, rank, bytes, req_bytes: bytes, offset: bytes, cpu_ns, runq_ns, lock_ns, errno, ..span
            });
            (*seq, *at) = (*seq + 1, start_ns + ms * MS);
        }
        let run_ns = next.iter().map(|(_, at)| *at).max().unwrap_or(0).max(MS);
        let run = run_ns / MS + 1;
        let all = found(&spans, run);
        let claimed: f64 = all.findings.iter().filter_map(|f| f.seconds).sum();
        prop_assert!(claimed <= run as f64 / 1e3 + 1e-6, "{} of {run} ms: {:?}", claimed * 1e3, seconds(&all));
        for finding in &all.findings {
            let (Some(low), Some(high)) = (finding.gain_low_s, finding.gain_high_s) else { continue };
            prop_assert!(0.0 <= low && low <= high && high <= finding.seconds.unwrap_or(0.0));
        }
    }
}
