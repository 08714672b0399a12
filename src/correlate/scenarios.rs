//! Whole stories with exactly known rows: opens through the layers, fork and exec, reuse, renames, write-back.
#![allow(clippy::expect_used)]

use crate::correlate::testing::{Run, call, key};
use crate::event::{Call, Event, TextKind};
use crate::rows::{Row, span_id};
use crate::vocabulary::flag;

/// `H5Fcreate` over `MPI_File_open` over `openat`, a dataset, a write down to `pwrite64`, and the closes.
#[test]
fn handles_form_a_chain_through_the_layers() {
    let mut run = Run::new();
    let open = call(0, 1, 0, 10, 90);
    run.openat(call(0, 3, 2, 30, 40), "/d/out.h5", 7, 5);
    let mpi = call(0, 2, 1, 20, 80);
    run.text(&mpi, TextKind::Path, "out.h5");
    run.call("MPI_File_open", Call { handle: Some(0xaaaa), len: Some(9), ..mpi });
    run.text(&open, TextKind::Path, "out.h5");
    run.call("H5Fcreate", Call { handle: Some(0x1000), len: Some(2), ..open });
    let dataset = call(0, 4, 0, 100, 110);
    run.text(&dataset, TextKind::Path, "grid//t");
    run.call("H5Dcreate2", Call { handle: Some(0x2000), off: Some(0x1000), ..dataset });
    let write = Call {
        handle: Some(5),
        file: Some(key(7)),
        len: Some(64),
        got: Some(64),
        off: Some(4096),
        ..call(0, 7, 2, 130, 140)
    };
    run.call("pwrite64", write);
    run.call(
        "MPI_File_write_at",
        Call { handle: Some(0xaaaa), len: Some(64), off: Some(4096), ..call(0, 6, 1, 125, 145) },
    );
    run.call("H5Dwrite", Call { handle: Some(0x2000), ..call(0, 5, 0, 120, 150) });
    run.call("close", Call { handle: Some(5), file: Some(key(7)), ..call(0, 10, 2, 170, 171) });
    run.call("MPI_File_close", Call { handle: Some(0xaaaa), ..call(0, 9, 1, 165, 175) });
    run.call("H5Fclose", Call { handle: Some(0x1000), ..call(0, 8, 0, 160, 180) });
    let rows = run.finish();

    let (fd, mpi, h5, dset) = (rows.handle(1), rows.handle(2), rows.handle(3), rows.handle(4));
    let parents = [fd, mpi, h5, dset].map(|h| h.parent_handle_id);
    assert_eq!(parents, [Some(2), Some(3), None, Some(3)]);
    assert_eq!([fd, mpi, h5, dset].map(|h| h.file_id), [Some(1); 4]);
    assert_eq!([fd, mpi, h5, dset].map(|h| h.end_ns), [Some(171), Some(175), Some(180), None]);
    assert_eq!(
        (mpi.mode, mpi.flags, mpi.open_span_id, mpi.close_span_id),
        (Some(9), 0, Some(span_id(0, 2)), Some(span_id(0, 9)))
    );
    let about = |seq| (rows.span(0, seq).file_id, rows.span(0, seq).handle_id, rows.span(0, seq).object_id);
    assert_eq!([1, 2, 3].map(about), [(Some(1), Some(3), None), (Some(1), Some(2), None), (Some(1), Some(1), None)]);
    assert_eq!([5, 6, 7].map(about), [(Some(1), Some(4), Some(1)), (Some(1), Some(2), None), (Some(1), Some(1), None)]);
    assert_eq!([5, 6, 7].map(|s| rows.span(0, s).bytes), [None, Some(64), Some(64)]);
    assert_eq!([1, 2, 3].map(|s| rows.span(0, s).ret), [Some(0x1000), Some(0), Some(5)]);
    assert_eq!([1, 2, 3].map(|s| rows.span(0, s).self_ns), [20, 50, 10]);
    let object = rows.0.iter().find_map(|r| if let Row::Object(o) = r { Some(o) } else { None }).expect("an object");
    assert_eq!((object.name.as_str(), object.class, object.file_id), ("/grid/t", "dataset", Some(1)));
    assert_eq!((rows.file(1).path.as_deref(), rows.file(1).size_last), (Some("/d/out.h5"), Some(4160)));
    assert_eq!(rows.losses(), []);
}

#[test]
fn fdopen_makes_the_descriptor_a_child_and_a_pointer_is_no_result() {
    let mut run = Run::new();
    run.openat(call(0, 1, 0, 1, 2), "/d/a", 1, 3);
    run.call("fdopen", Call { handle: Some(0xbeef), off: Some(3), ..call(0, 2, 0, 3, 4) });
    run.call("fwrite", Call { handle: Some(0xbeef), len: Some(8), got: Some(8), ..call(0, 3, 0, 5, 6) });
    let rows = run.finish();
    assert_eq!((rows.handle(1).parent_handle_id, rows.handle(2).file_id), (Some(2), Some(1)));
    assert_eq!((rows.span(0, 2).ret, rows.span(0, 2).offset, rows.span(0, 3).file_id), (None, None, Some(1)));
}

#[test]
fn a_handle_opened_before_the_trace_learns_its_file_from_the_calls_below() {
    let mut run = Run::new();
    run.call("pread64", Call { handle: Some(9), file: Some(key(4)), got: Some(1), ..call(0, 2, 1, 11, 12) });
    run.call("H5Dread", Call { handle: Some(77), ..call(0, 1, 0, 10, 13) });
    let rows = run.finish();
    let h5 = rows.span(0, 1).handle_id.expect("a handle");
    assert_eq!((rows.handle(h5).flags, rows.handle(h5).open_span_id, rows.handle(h5).file_id), (1, None, Some(1)));
    assert_eq!(rows.span(0, 1).file_id, Some(1));
}

#[test]
fn descriptors_follow_fork_exec_dup_and_reuse() {
    const O_CLOEXEC: u64 = 0o2_000_000;
    let mut run = Run::new();
    run.openat(call(0, 1, 0, 1, 2), "/d/a", 1, 3);
    run.openat(Call { len: Some(O_CLOEXEC), ..call(0, 2, 0, 3, 4) }, "/d/b", 2, 4);
    run.call("dup2", Call { handle: Some(6), off: Some(3), file: Some(key(1)), ..call(0, 3, 0, 5, 6) });
    run.process(10, 1, Some(0));
    run.call("write", Call { handle: Some(6), got: Some(1), ..call(1, 1, 0, 11, 12) });
    run.exec(13, 1, &["PMI_RANK=3", "OMPI_COMM_WORLD_RANK=2"]);
    run.call("write", Call { handle: Some(3), got: Some(1), ..call(1, 2, 0, 14, 15) });
    run.call("write", Call { handle: Some(4), got: Some(1), ..call(1, 3, 0, 16, 17) });
    // The parent closes 3 and gets the number again for another file.
    run.call("close", Call { handle: Some(3), file: Some(key(1)), ..call(0, 4, 0, 20, 21) });
    run.openat(call(0, 5, 0, 22, 23), "/d/c", 3, 3);
    // Its close and the open that follows were lost: the other file shows it.
    run.call("write", Call { handle: Some(3), file: Some(key(1)), got: Some(1), ..call(0, 6, 0, 24, 25) });
    run.call("close", Call { handle: Some(99), status: -9, ..call(0, 7, 0, 26, 27) });
    run.push(Event::Exit { time: 30, process: 1, status: 0x0200 });
    run.push(Event::Exit { time: 40, process: 0, status: 9 });
    let rows = run.finish();

    assert_eq!(rows.span(1, 1).handle_id, rows.span(0, 3).handle_id);
    assert_eq!((rows.span(1, 1).file_id, rows.span(1, 1).rank), (Some(1), None));
    assert_eq!((rows.span(1, 2).handle_id, rows.span(1, 2).rank), (Some(1), Some(2)));
    let unknown = rows.handle(rows.span(1, 3).handle_id.expect("a handle"));
    assert_eq!((unknown.flags, unknown.file_id, unknown.process_ix, unknown.end_ns), (1, None, 1, Some(30)));
    assert_eq!((rows.handle(1).end_ns, rows.handle(1).close_span_id), (Some(21), Some(span_id(0, 4))));
    let reused = rows.handle(rows.span(0, 5).handle_id.expect("a handle"));
    assert_eq!((reused.file_id, reused.end_ns, reused.close_span_id), (Some(3), Some(24), None));
    let again = rows.handle(rows.span(0, 6).handle_id.expect("a handle"));
    assert_eq!((again.file_id, again.flags, again.end_ns), (Some(1), 1, Some(40)));
    assert_eq!((rows.span(0, 7).handle_id, rows.span(0, 7).errno, rows.span(0, 7).ret), (None, 9, Some(-9)));
    let mut codes: Vec<_> = rows
        .0
        .iter()
        .filter_map(|r| if let Row::Process(p) = r { Some((p.process_ix, p.exit_code?)) } else { None })
        .collect();
    codes.sort_unstable();
    assert_eq!(codes, [(0, 137), (1, 2)]);
}

#[test]
fn a_close_that_returns_after_the_number_was_reused_ends_the_older_handle() {
    let mut run = Run::new();
    run.push(Event::Thread { time: 0, thread: 1, process: 0, pid: 100, tid: 101, comm: [0; 16] });
    run.openat(call(0, 1, 0, 1, 2), "/d/a", 1, 3);
    run.openat(call(1, 1, 0, 11, 12), "/d/b", 2, 3);
    run.call("close", Call { handle: Some(3), ..call(0, 2, 0, 10, 13) });
    run.call("write", Call { handle: Some(3), got: Some(1), ..call(1, 2, 0, 14, 15) });
    let rows = run.finish();
    assert_eq!((rows.handle(1).close_span_id, rows.handle(1).end_ns), (Some(span_id(0, 2)), Some(13)));
    assert_eq!((rows.handle(2).end_ns, rows.span(1, 2).handle_id), (None, Some(2)));
    assert_eq!((rows.span(0, 2).handle_id, rows.span(0, 2).file_id), (Some(1), Some(1)));
}

#[test]
fn a_rename_gives_the_file_its_new_path_and_an_unlink_ends_it() {
    let mut run = Run::new();
    run.openat(call(0, 1, 0, 1, 2), "/d/a.tmp", 1, 3);
    let rename = call(0, 2, 0, 10, 11);
    run.text(&rename, TextKind::Path, "a.tmp");
    run.text(&rename, TextKind::Base, "/d");
    run.text(&rename, TextKind::Path2, "../e/./a");
    run.text(&rename, TextKind::Base2, "/d/s/..");
    run.call("renameat2", rename);
    let missing = call(0, 3, 0, 12, 13);
    run.text(&missing, TextKind::Path, "/d/a.tmp");
    run.call("stat", Call { status: -2, ..missing });
    let unlink = call(0, 4, 0, 14, 15);
    run.text(&unlink, TextKind::Path, "/e/a");
    run.call("unlink", unlink);
    let rows = run.finish();
    assert_eq!([2, 3, 4].map(|s| rows.span(0, s).file_id), [Some(1), None, Some(1)]);
    let file = rows.file(1);
    assert_eq!(
        (file.first_path.as_deref(), file.path.as_deref(), file.unlinked),
        (Some("/d/a.tmp"), Some("/e/a"), true)
    );
    let path = |r: &Row| if let Row::FilePath(p) = r { Some((p.path.clone(), p.from_ns)) } else { None };
    let paths: Vec<_> = rows.0.iter().filter_map(path).collect();
    assert_eq!(paths, [("/d/a.tmp".into(), 2), ("/e/a".into(), 11)]);
}

#[test]
fn calls_have_the_paths_that_they_name_whatever_comes_of_them() {
    let mut run = Run::new();
    let stat = |seq: u32| call(0, seq, 0, u64::from(seq), u64::from(seq) + 1);
    let named = |run: &mut Run, of: &Call, path: &str, base: Option<&str>| {
        run.text(of, TextKind::Path, path);
        if let Some(base) = base {
            run.text(of, TextKind::Base, base);
        }
    };
    for (seq, path, base) in
        [(1, "../b/./x", Some("/a")), (2, "/b/x", None), (3, "x", None), (4, "", Some("/a")), (5, "x", Some("/b"))]
    {
        named(&mut run, &stat(seq), path, base);
        run.call("newfstatat", Call { status: -2, ..stat(seq) });
    }
    let rename = stat(6);
    named(&mut run, &rename, "x", Some("/b"));
    run.text(&rename, TextKind::Path2, "/b/y");
    run.call("rename", rename);
    // A library's relative name is the one of the call inside; an object's name is no path.
    let inner = call(0, 8, 1, 21, 22);
    named(&mut run, &inner, "sub/x", Some("/c"));
    run.call("openat", Call { status: -2, ..inner });
    let outer = call(0, 7, 0, 20, 23);
    run.text(&outer, TextKind::Path, "./sub/x");
    run.call("fopen", Call { status: -1, ..outer });
    let dataset = call(0, 9, 0, 30, 31);
    run.text(&dataset, TextKind::Path, "/group/data");
    run.call("H5Dopen2", Call { handle: Some(77), off: Some(5), ..dataset });
    let rows = run.finish();
    let paths = |seq: u32| [rows.span(0, seq).path_id, rows.span(0, seq).path2_id];
    assert_eq!([1, 2, 5, 6].map(|seq| paths(seq)[0]), [Some(1); 4]);
    assert_eq!((paths(3), paths(4)), ([Some(2), None], [None; 2]));
    assert_eq!((paths(6)[1], paths(7), paths(8)), (Some(3), [Some(4), None], [Some(4), None]));
    assert_eq!(paths(9), [None; 2]);
    let path = |r: &Row| if let Row::CallPath(p) = r { Some((p.path_id, p.path.clone())) } else { None };
    let written: Vec<_> = rows.0.iter().filter_map(path).collect();
    let text = |id: i32, path: &str| (id, path.to_owned());
    assert_eq!(written, [text(1, "/b/x"), text(2, "x"), text(3, "/b/y"), text(4, "/c/sub/x")]);
}

#[test]
fn a_descriptor_belongs_to_what_it_was_made_of_until_a_stream_is_on_it() {
    let mut run = Run::new();
    run.openat(call(0, 1, 0, 1, 2), "/d/a", 1, 3);
    run.call("dup", Call { handle: Some(6), off: Some(3), file: Some(key(1)), ..call(0, 2, 0, 3, 4) });
    run.call("dup3", Call { handle: Some(7), off: Some(6), file: Some(key(1)), ..call(0, 3, 0, 5, 6) });
    run.call("fdopen", Call { handle: Some(0xbeef), off: Some(7), ..call(0, 4, 0, 7, 8) });
    let rows = run.finish();
    let [first, second, third, stream] = [1, 2, 3, 4].map(|seq| rows.span(0, seq).handle_id.expect("a handle"));
    let parent = |id: i32| rows.handle(id).parent_handle_id;
    assert_eq!([first, second, third].map(parent), [None, Some(first), Some(stream)]);
    assert_eq!(rows.span(0, 3).arg, Some(6));
}

#[test]
fn what_a_library_asks_of_the_system_is_not_what_its_call_is_about() {
    let mut run = Run::new();
    run.file(1, 1, "/d/a");
    run.file(1, 2, "/proc/100/maps");
    let read = |seq: u32, ino: u64| Call { file: Some(key(ino)), ..call(0, seq, 1, u64::from(seq), u64::from(seq)) };
    for (seq, ino) in [(3, 2), (4, 1), (5, 2)] {
        run.call("fstat", read(seq, ino));
    }
    run.call("H5Fis_accessible", call(0, 2, 0, 2, 6));
    run.call("fstat", read(11, 2));
    run.call("H5Fis_accessible", call(0, 10, 0, 10, 12));
    let rows = run.finish();
    assert_eq!([2, 10].map(|seq| rows.span(0, seq).file_id), [Some(1), Some(2)]);
}

#[test]
fn a_lost_call_in_the_middle_leaves_its_children_to_the_next_outer_one() {
    let mut run = Run::new();
    run.call("write", Call { got: Some(3), ..call(0, 3, 2, 30, 40) });
    run.call("H5Fflush", call(0, 1, 0, 10, 60));
    // An outermost call was lost: what ran inside it is written before the next tree.
    run.call("write", Call { got: Some(3), ..call(0, 6, 1, 70, 80) });
    run.call("H5Fflush", call(0, 7, 0, 90, 95));
    let rows = run.finish();
    let inner = rows.span(0, 3);
    assert_eq!((inner.parent_id, inner.depth, inner.flags), (Some(span_id(0, 1)), 1, flag::INFERRED_PARENT));
    assert_eq!((rows.span(0, 1).self_ns, rows.span(0, 1).flags), (40, 0));
    let orphan = rows.span(0, 6);
    assert_eq!((orphan.parent_id, orphan.root_id, orphan.flags), (None, span_id(0, 6), flag::INFERRED_PARENT));
    assert_eq!(rows.span(0, 7).flags, 0);
}

#[test]
fn a_straggler_is_its_own_root_and_counted() {
    let mut run = Run::new();
    run.call("H5Fflush", call(0, 1, 0, 10, 60));
    run.correlator.advance(100, &mut run.out);
    run.call("fsync", call(0, 2, 1, 20, 30));
    let rows = run.finish();
    assert_eq!((rows.span(0, 2).parent_id, rows.span(0, 2).flags), (None, flag::INFERRED_PARENT));
    assert_eq!(rows.losses(), [("late", 1)]);
}

#[test]
fn calls_of_a_thread_that_was_never_announced_are_kept_and_counted() {
    let mut run = Run::new();
    run.call("write", Call { handle: Some(1), got: Some(1), ..call(5, 1, 1, 10, 20) });
    run.call("fsync", Call { handle: Some(1), ..call(6, 1, 0, 10, 20) });
    run.push(Event::Thread { time: 30, thread: 5, process: 0, pid: 100, tid: 105, comm: [0; 16] });
    let rows = run.finish();
    assert_eq!((rows.span(5, 1).process_ix, rows.span(5, 1).tid), (0, 105));
    assert_eq!((rows.span(6, 1).process_ix, rows.span(6, 1).pid), (-1, 0));
    assert_eq!(rows.losses(), [("thread_unknown", 1)]);
}

/// `outer` lasts as long as the trace: what it holds is written meanwhile, and knows it.
#[test]
fn a_phase_that_never_ends_holds_nothing_back() {
    let mut run = Run::new();
    let outer = call(0, 1, 0, 5, 5);
    run.enter("outer", &outer);
    for n in 0..100_u32 {
        let at = u64::from(10 + 10 * n);
        let (phase, flush, write) = (2 + 3 * n, 3 + 3 * n, 4 + 3 * n);
        run.enter("inner", &call(0, phase, 1, at, at));
        let moved = Call { handle: Some(3), file: Some(key(1)), got: Some(4), ..call(0, write, 3, at + 2, at + 3) };
        run.call("write", moved);
        run.call("fflush", call(0, flush, 2, at + 1, at + 5));
        run.call("inner", call(0, phase, 1, at, at + 6));
    }
    run.correlator.advance(2000, &mut run.out);
    assert_eq!(run.out.iter().filter(|r| matches!(r, Row::Span(_))).count(), 300);
    let rows = run.finish();
    assert_eq!(rows.losses(), []);
    let id = |seq| span_id(0, seq);
    let about = |seq| {
        let s = rows.span(0, seq);
        (s.op, s.parent_id, s.root_id, s.depth, s.layer_top, s.dur_ns, s.self_ns, s.file_id, s.flags)
    };
    // The trace ends at 1 000 000.
    assert_eq!(about(1), ("outer", None, id(1), 0, true, 999_995, 999_395, Some(1), flag::UNFINISHED));
    assert_eq!(about(2), ("inner", Some(id(1)), id(1), 1, false, 6, 2, Some(1), 0));
    assert_eq!(about(3), ("fflush", Some(id(2)), id(1), 2, true, 4, 3, Some(1), 0));
    assert_eq!(about(4), ("write", Some(id(3)), id(1), 3, true, 1, 1, Some(1), 0));
}

/// The program jumps out of `inner` and `outer` (`longjmp`): they never return. A phase in a callback waits for the
/// call that made it.
#[test]
fn phases_that_were_left_by_a_jump_end_with_what_they_held() {
    let mut run = Run::new();
    run.enter("outer", &call(0, 1, 0, 10, 10));
    run.enter("inner", &call(0, 2, 1, 20, 20));
    run.call("write", Call { got: Some(1), ..call(0, 3, 2, 30, 40) });
    run.enter("outer", &call(0, 4, 0, 50, 50));
    run.call("outer", call(0, 4, 0, 50, 60));
    run.enter("inner", &call(0, 6, 1, 75, 75));
    run.call("inner", call(0, 6, 1, 75, 85));
    run.call("H5Fflush", call(0, 5, 0, 70, 90));
    let rows = run.finish();
    let about = |seq| {
        let s = rows.span(0, seq);
        (s.op, s.parent_id, s.root_id, s.dur_ns, s.self_ns, s.flags)
    };
    let id = |seq| span_id(0, seq);
    assert_eq!(about(1), ("outer", None, id(1), 30, 10, flag::UNFINISHED));
    assert_eq!(about(2), ("inner", Some(id(1)), id(1), 20, 10, flag::UNFINISHED));
    assert_eq!(about(3), ("write", Some(id(2)), id(1), 10, 10, 0));
    assert_eq!(about(4), ("outer", None, id(4), 10, 10, 0));
    assert_eq!(about(6), ("inner", Some(id(5)), id(5), 10, 10, 0));
    assert_eq!(about(5), ("H5Fflush", None, id(5), 20, 10, 0));
    assert_eq!(rows.losses(), []);
}

#[test]
fn sums_count_bytes_once_per_layer_and_errors_always() {
    let mut run = Run::new();
    let ms = 1_000_000;
    // fprintf calls vfprintf: both write the same bytes, one counts.
    run.call("vfprintf", Call { got: Some(10), ..call(0, 2, 1, 110 * ms, 120 * ms) });
    run.call("fprintf", Call { got: Some(10), ..call(0, 1, 0, 105 * ms, 130 * ms) });
    run.call("write", Call { status: -28, len: Some(5), ..call(0, 3, 0, 140 * ms, 141 * ms) });
    run.correlator.advance(150 * ms, &mut run.out);
    assert!(!run.out.iter().any(|r| matches!(r, Row::Rollup(_))), "the bin is not over");
    run.correlator.advance(200 * ms, &mut run.out);
    let sums: Vec<_> = run
        .out
        .iter()
        .filter_map(|r| {
            if let Row::Rollup(r) = r { Some((r.t_ns, r.op, r.calls, r.bytes, r.self_ns, r.errors)) } else { None }
        })
        .collect();
    let (bin, ms) = (100_000_000, 1_000_000);
    assert_eq!(
        sums,
        [(bin, "fprintf", 1, 10, 15 * ms, 0), (bin, "vfprintf", 0, 0, 10 * ms, 0), (bin, "write", 1, 0, ms, 1)]
    );
    let rows = run.finish();
    let counts: Vec<_> =
        rows.0.iter().filter_map(|r| if let Row::Hist(h) = r { Some((h.op, h.what, h.n)) } else { None }).collect();
    assert_eq!(counts, [("fprintf", "latency", 1), ("fprintf", "size", 1), ("write", "latency", 1)]);
}

#[test]
fn a_file_that_is_only_asked_about_has_the_name_it_was_asked_about_by() {
    let mut run = Run::new();
    let by_link = call(0, 1, 0, 10, 11);
    run.text(&by_link, TextKind::Path, "/lib/x");
    run.call("stat", Call { file: Some(key(7)), ..by_link });
    let again = call(0, 2, 0, 20, 21);
    run.text(&again, TextKind::Path, "/other/x");
    run.call("stat", Call { file: Some(key(7)), ..again });
    let opened = call(0, 3, 0, 30, 31);
    run.openat(opened, "/usr/lib/y", 8, 5);
    let alias = call(0, 4, 0, 40, 41);
    run.text(&alias, TextKind::Path, "/lib/y");
    run.call("stat", Call { file: Some(key(8)), ..alias });
    let rows = run.finish();
    assert_eq!([1, 2].map(|id| rows.file(id).path.as_deref()), [Some("/lib/x"), Some("/usr/lib/y")]);
}

#[test]
fn a_stream_is_tied_to_its_descriptor_however_it_was_opened() {
    const STDOUT: u64 = 0x7f00;
    let mut run = Run::new();
    let on = |time, stream, fd, ino| Event::Stream { time, thread: 0, stream, fd, key: key(ino) };
    // No traced process opened stdout; nothing is written before the end of the program.
    run.push(on(10, STDOUT, 1, 7));
    run.call("puts", Call { handle: Some(STDOUT), got: Some(5), off: Some(0), ..call(0, 1, 0, 10, 11) });
    run.call("write", Call { handle: Some(1), file: Some(key(7)), got: Some(5), ..call(0, 2, 0, 20, 21) });
    // dup2 put another file below it.
    run.call("dup2", Call { handle: Some(1), off: Some(9), file: Some(key(8)), ..call(0, 3, 0, 30, 31) });
    run.push(on(40, STDOUT, 1, 8));
    run.call("puts", Call { handle: Some(STDOUT), got: Some(5), off: Some(0), ..call(0, 4, 0, 40, 41) });
    run.call("write", Call { handle: Some(1), file: Some(key(8)), got: Some(5), ..call(0, 5, 0, 50, 51) });
    let rows = run.finish();
    let handle = |seq| rows.handle(rows.span(0, seq).handle_id.expect("a handle"));
    for (puts, write, file) in [(1, 2, 1), (4, 5, 2)] {
        let (stream, fd) = (handle(puts), handle(write));
        assert_eq!(fd.parent_handle_id, Some(stream.handle_id));
        assert_eq!([stream.file_id, fd.file_id, rows.span(0, puts).file_id], [Some(file); 3]);
        assert_eq!((stream.flags, stream.raw), (1, STDOUT as i64));
    }
    assert_ne!(handle(1).handle_id, handle(4).handle_id);
    assert_eq!(handle(1).end_ns, Some(40));
}

#[test]
fn one_stream_of_two_functions_is_one_handle() {
    let mut run = Run::new();
    // tmpfile calls fdopen, pclose calls fclose.
    run.openat(call(0, 2, 1, 11, 12), "/tmp/#1", 1, 3);
    run.call("fdopen", Call { handle: Some(0xbeef), off: Some(3), ..call(0, 3, 1, 13, 14) });
    run.call("tmpfile", Call { handle: Some(0xbeef), ..call(0, 1, 0, 10, 15) });
    run.call("fclose", Call { handle: Some(0xbeef), ..call(0, 5, 1, 21, 22) });
    run.call("pclose", Call { handle: Some(0xbeef), ..call(0, 4, 0, 20, 23) });
    // Of no stream.
    run.call("fflush", call(0, 6, 0, 30, 31));
    run.call("fflush", Call { handle: Some(0), ..call(0, 7, 0, 32, 33) });
    let rows = run.finish();
    assert_eq!([1, 3, 4, 5, 6, 7].map(|s| rows.span(0, s).handle_id), [Some(2), Some(2), Some(2), Some(2), None, None]);
    assert_eq!((rows.handle(1).parent_handle_id, rows.handle(2).file_id), (Some(2), Some(1)));
    assert_eq!(rows.handle(2).close_span_id, Some(span_id(0, 5)));
    let last = rows.0.iter().filter_map(|r| if let Row::Handle(h) = r { Some(h.handle_id) } else { None }).max();
    assert_eq!(last, Some(2), "nothing was made up");
}

#[test]
fn freopen_ends_a_stream_and_opens_it_again() {
    let mut run = Run::new();
    let open = |run: &mut Run, seq, start, symbol: &str, path: &str, ino| {
        run.openat(call(0, seq + 1, 1, start + 1, start + 2), path, ino, 3);
        let outer = call(0, seq, 0, start, start + 3);
        run.text(&outer, TextKind::Path, path);
        run.call(symbol, Call { handle: Some(0xbeef), off: (symbol == "freopen").then_some(0xbeef), ..outer });
    };
    open(&mut run, 1, 10, "fopen", "/d/a", 1);
    open(&mut run, 3, 20, "freopen", "/d/b", 2);
    let failed = call(0, 5, 0, 30, 31);
    run.text(&failed, TextKind::Path, "/d/none");
    run.call("freopen", Call { status: -1, handle: Some(0), off: Some(0xbeef), ..failed });
    // A close that reports an error closes all the same.
    open(&mut run, 6, 40, "fopen", "/d/c", 3);
    run.call("fclose", Call { status: -1, handle: Some(0xbeef), ..call(0, 8, 0, 50, 51) });
    let rows = run.finish();
    let ends = |id| (rows.handle(id).file_id, rows.handle(id).end_ns, rows.handle(id).close_span_id);
    // Each after its descriptor.
    assert_eq!(ends(2), (Some(1), Some(23), Some(span_id(0, 3))));
    assert_eq!(ends(4), (Some(2), Some(31), Some(span_id(0, 5))));
    assert_eq!(ends(6), (Some(3), Some(51), Some(span_id(0, 8))));
    assert_eq!((rows.span(0, 3).handle_id, rows.span(0, 5).handle_id, rows.span(0, 3).offset), (Some(4), None, None));
}

#[test]
fn a_forgotten_handle_is_written_again_with_the_next_call_on_it() {
    let mut run = Run::new();
    run.openat(call(0, 1, 0, 1, 2), "/d/a", 1, 3);
    run.openat(call(0, 2, 0, 3, 4), "/d/b", 2, 4);
    let mut before = Vec::new();
    run.correlator.advance(10, &mut before);
    run.correlator.forgotten(&[1, 2], &[], &[1, 2], &[]);
    run.call("read", Call { handle: Some(3), file: Some(key(1)), ..call(0, 3, 0, 20, 30) });
    let mut rows = Vec::new();
    run.correlator.advance(40, &mut rows);
    let handles = |rows: &[Row]| -> Vec<i32> {
        rows.iter().filter_map(|r| if let Row::Handle(h) = r { Some(h.handle_id) } else { None }).collect()
    };
    assert_eq!((handles(&before), handles(&rows)), (vec![1, 2], vec![1]));
    run.call("read", Call { handle: Some(3), file: Some(key(1)), ..call(0, 4, 0, 50, 60) });
    rows.clear();
    run.correlator.advance(70, &mut rows);
    assert_eq!(handles(&rows), [0; 0]);
}
