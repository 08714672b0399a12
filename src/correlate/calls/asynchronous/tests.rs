//! Operations of every kind, from the call that submits one to the one that finds it complete.

use crate::catalog::role::{Data, Request, RequestAction, Submit, SubmitAction};
use crate::catalog::{self, Does, Row as Spec, Src, Values};
use crate::correlate::testing::{Rows, Run, call, key, spec};
use crate::correlate::{Config, Correlator};
use crate::event::{Call, Event, TextKind};
use crate::rows::{Row, Span, span_id};
use crate::vocabulary::{Layer, flag};

/// A run whose catalog has an operation of each kind, in place of rows that these tests do not use otherwise.
fn run() -> Run {
    let mut specs = catalog::rows();
    let mut make = |symbol: &str, row: &dyn Fn(Spec) -> Spec| {
        let at = usize::from(spec(symbol));
        specs[at] = row(specs[at]);
    };
    let submits = |r: Spec| {
        let Values { handle, len, off, .. } = r.values();
        let data = Data { uses: true, handle, len, off, got: Src::None };
        Does::Submit(Submit { data, action: SubmitAction::Request, request: Src::Out(4) })
    };
    let request = |r: Spec, action| {
        let Values { handle, len, off, got } = r.values();
        Does::Request(Request { action, uses: true, request: handle, moved: len, outcome: off, result: got })
    };
    let waits = |r: Spec, action| Spec { layer: Layer::Mpi, inside: true, does: request(r, action), ..r };
    make("MPI_File_write", &|r| Spec { op: "MPI_File_iwrite", does: submits(r), ..r });
    make("MPI_File_sync", &|r| waits(r, RequestAction::Wait));
    make("MPI_File_get_size", &|r| waits(r, RequestAction::Test));
    make("fwrite", &|r| Spec { op: "aio_write", descriptor: true, does: submits(r), ..r });
    make("fflush", &|r| Spec { op: "aio_return", does: request(r, RequestAction::Return), ..r });
    let mut run = Run::new();
    run.correlator = Correlator::new(Config { specs, ..Config::default() });
    run.process(0, 0, None);
    run.process(0, 1, None);
    run
}

fn submit(run: &mut Run, seq: u32, start: u64, request: u64) {
    let call = call(0, seq, 0, start, start + 10);
    run.call("MPI_File_write", Call { handle: Some(1), len: Some(64), got: Some(request), ..call });
}

fn wait(run: &mut Run, seq: u32, start: u64, request: u64) {
    run.call("MPI_File_sync", Call { handle: Some(request), ..call(0, seq, 0, start, start + 20) });
}

fn count(rows: &Rows) -> usize {
    rows.0.iter().filter(|r| matches!(r, Row::Span(_))).count()
}

#[test]
fn an_operation_ends_where_it_is_found_complete() {
    let mut run = run();
    submit(&mut run, 1, 100, 7);
    // Another request that has nothing to do with files.
    wait(&mut run, 2, 120, 9);
    wait(&mut run, 3, 200, 7);
    let rows = run.finish();
    let Span { dur_ns, self_ns, bytes, req_bytes, flags, async_id, .. } = *rows.span(0, 1);
    assert_eq!((dur_ns, self_ns, bytes, req_bytes), (120, 10, Some(64), Some(64)));
    assert_eq!((flags, async_id), (flag::ASYNC | flag::NONBLOCKING, Some(span_id(0, 1))));
    let wait = rows.span(0, 3);
    assert_eq!((wait.async_id, wait.layer, wait.dur_ns), (async_id, Layer::Mpiio, 20));
    assert_eq!(count(&rows), 2);
}

#[test]
fn a_test_completes_when_its_request_has_changed() {
    let mut run = run();
    submit(&mut run, 1, 100, 7);
    for (seq, start, after) in [(2, 120, 7), (3, 140, 0)] {
        let call = call(0, seq, 0, start, start + 5);
        run.call("MPI_File_get_size", Call { handle: Some(7), got: Some(after), len: Some(32), ..call });
    }
    let rows = run.finish();
    assert_eq!((rows.span(0, 1).dur_ns, rows.span(0, 1).bytes), (45, Some(32)));
    assert_eq!([2, 3].map(|seq| rows.span(0, seq).async_id), [Some(span_id(0, 1)); 2]);
}

#[test]
fn an_operation_without_a_wait_is_unfinished() {
    let mut run = run();
    submit(&mut run, 1, 100, 7);
    run.push(Event::Exit { time: 500, process: 0, status: 0 });
    let rows = run.finish();
    let span = rows.span(0, 1);
    assert_eq!((span.dur_ns, span.bytes), (10, None));
    assert_eq!(span.flags & flag::UNFINISHED, flag::UNFINISHED);
}

/// The helper may be done before the call that employs it returns, or after it.
#[test]
fn what_a_helper_does_is_a_child_of_the_call_that_employs_it() {
    for (helper, outer) in [(105, 1), (300, 1), (105, 0), (300, 0)] {
        let mut run = run();
        run.process(0, 0, None);
        run.openat(call(0, 0, 0, 10, 20), "/d/f", 7, 5);
        let mut block = [0_i64; 17];
        (block[0], block[3], block[16]) = (5, 64, 4096);
        let bytes = block.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let what = TextKind::Longs(catalog::JOB_WRITE);
        run.push(Event::Text { time: 102, thread: 0, seq: 2, what, bytes, root: 0, cut: false, operation: false });
        let aio = Call { handle: Some(5), len: Some(64), got: Some(0xb10c), ..call(0, 2, outer, 102, 110) };
        run.call("fwrite", aio);
        if outer == 1 {
            run.call("MPI_File_write_at", Call { handle: Some(1), len: Some(64), ..call(0, 1, 0, 100, 250) });
        }
        // A thread of the same process.
        run.push(Event::Thread { time: 90, thread: 9, process: 0, pid: 100, tid: 109, comm: [0; 16] });
        let write = Call {
            handle: Some(5),
            file: Some(key(7)),
            len: Some(64),
            got: Some(64),
            off: Some(4096),
            ..call(9, 1, 0, helper, helper + 3)
        };
        run.call("pwrite64", write);
        // The same write again was not asked for.
        run.call("pwrite64", Call { seq: 2, start: helper + 4, ..write });
        run.call("fflush", Call { handle: Some(0xb10c), got: Some(64), ..call(0, 3, 0, 400, 410) });
        let rows = run.finish();
        let (aio, write) = (rows.span(0, 2), rows.span(9, 1));
        assert_eq!((aio.dur_ns, aio.bytes, aio.async_id), (308, Some(64), Some(aio.span_id)));
        let root = span_id(0, if outer == 1 { 1 } else { 2 });
        assert_eq!((write.parent_id, write.root_id, write.depth), (Some(aio.span_id), root, aio.depth + 1));
        assert_eq!((write.async_id, write.flags), (aio.async_id, flag::INFERRED_PARENT));
        assert_eq!((rows.span(9, 2).parent_id, rows.span(9, 2).async_id), (None, None));
    }
}
