//! Requests of devices, from events to rows.

use crate::correlate::testing::{Run, call, key};
use crate::event::{Bio, Call, Cgroup, Event, FileKey, Measured, Request, Sighting};
use crate::rows::{Row, span_id};

fn request(req: u64, cmd_flags: u32, issued: u64, completed: impl Into<Option<u64>>) -> Event {
    let (queued, pid, completed) = (issued - 1, 9, completed.into());
    Event::Request(Request {
        req,
        dev: 8 << 20,
        sector: 2048,
        bytes: 4096,
        cmd_flags,
        status: 0,
        nr_bios: 1,
        splits: 0,
        pid,
        queued,
        issued,
        completed,
        unseen: None,
        inserted: None,
        upper: None,
    })
}

fn bio(req: u64, ino: Option<u64>, off: u64, bytes: u64, queued: u64, submitter: Option<(u32, Option<u32>)>) -> Event {
    Event::Bio(
        queued + 1,
        Bio {
            req,
            file: ino.map(key),
            off,
            bytes,
            queued,
            submitter,
            of: None,
            journal: None,
            meta: false,
            kernel: submitter.is_none(),
            cgroup: None,
        },
    )
}

/// Two writes inside library calls, then an `fsync` by another call: the request serves the `fsync` and both writes.
#[test]
fn written_back_bytes_name_the_calls_that_wrote_them() {
    let mut run = Run::new();
    run.openat(call(0, 1, 0, 1, 2), "/d/a", 1, 3);
    let write = |off: u64, c: Call| Call {
        handle: Some(3),
        file: Some(key(1)),
        off: Some(off),
        len: Some(4096),
        got: Some(4096),
        ..c
    };
    run.call("pwrite64", write(0, call(0, 3, 1, 11, 12)));
    run.call("fflush", call(0, 2, 0, 10, 20));
    run.call("pwrite64", write(2048, call(0, 4, 0, 21, 22)));
    run.push(bio(50, Some(1), 0, 8192, 31, Some((0, Some(6)))));
    run.push(request(50, 1 | 1 << 11, 32, 40));
    run.call("fsync", Call { handle: Some(3), file: Some(key(1)), ..call(0, 6, 1, 30, 45) });
    run.call("fflush", call(0, 5, 0, 29, 46));
    // Written again later without a call: nothing is dirty any more.
    run.push(bio(51, Some(1), 0, 4096, 50, None));
    run.push(request(51, 1, 51, 55));
    let rows = run.finish();
    let links: Vec<_> = rows.links().iter().map(|l| (l.req_id, l.span_id, l.root_id, l.bytes, l.how)).collect();
    let id = |seq| span_id(0, seq);
    assert_eq!(
        links,
        [
            (50, id(3), id(2), 2048, "writeback"),
            (50, id(4), id(4), 4096, "writeback"),
            (50, id(6), id(5), 8192, "sync")
        ]
    );
    let classes: Vec<_> = rows
        .0
        .iter()
        .filter_map(|r| if let Row::Block(b) = r { Some((b.req_id, b.op, b.class, b.dur_ns)) } else { None })
        .collect();
    assert_eq!(classes, [(50, "write", "sync", Some(8)), (51, "write", "writeback", Some(4))]);
}

/// The root of a call inside a phase is known while the phase goes on.
#[test]
fn a_request_inside_a_phase_is_linked_at_once() {
    let mut run = Run::new();
    run.enter("outer", &call(0, 1, 0, 5, 5));
    run.call("fsync", call(0, 2, 1, 10, 40));
    run.push(bio(7, None, 0, 512, 20, Some((0, Some(2)))));
    run.push(request(7, 1, 21, 30));
    run.correlator.advance(100, &mut run.out);
    let link = |r: &Row| if let Row::BlockLink(l) = r { Some((l.span_id, l.root_id)) } else { None };
    assert_eq!(run.out.iter().find_map(link), Some((span_id(0, 2), span_id(0, 1))));
    run.call("outer", call(0, 1, 0, 5, 200));
    run.push(bio(8, None, 0, 512, 25, Some((0, Some(2)))));
    run.push(request(8, 1, 26, 210));
    let rows = run.finish();
    assert_eq!(rows.links().iter().map(|l| l.root_id).collect::<Vec<_>>(), [span_id(0, 1); 2]);
}

#[test]
fn requests_have_a_class_and_a_depth() {
    let mut run = Run::new();
    for (req, issued) in [(1, 11), (2, 13), (3, 15), (4, 31)] {
        run.push(bio(req, None, 0, 512, issued - 1, Some((0, None))));
    }
    run.push(request(2, 1 | 1 << 18, 13, 20));
    run.push(request(3, 1 << 19, 15, 21));
    run.push(request(1, 1 | 1 << 12, 11, 30));
    run.push(request(5, 2, 35, 36));
    run.push(request(4, 0, 31, None));
    let rows = run.finish();
    let got: Vec<_> = rows
        .0
        .iter()
        .filter_map(
            |r| if let Row::Block(b) = r { Some((b.req_id, b.class, b.qdepth, b.dur_ns, b.status)) } else { None },
        )
        .collect();
    let expected = [
        (1, "meta", 1, Some(19), Some(0)),
        (2, "sync", 2, Some(7), Some(0)),
        (3, "readahead", 3, Some(6), Some(0)),
        (4, "sync", 1, None, None),
        (5, "flush", 2, Some(1), Some(0)),
    ];
    assert_eq!(got, expected);
    // It is not complete, and its owner is known.
    assert_eq!(rows.links().iter().filter(|l| l.req_id == 4).count(), 0);
    let owned = |r: &Row| matches!(r, Row::BlockBytes(b) if b.req_id == 4 && b.process_ix == Some(0) && b.bytes == 512);
    assert!(rows.0.iter().any(owned));
    let open =
        |r: &Row| matches!(r, Row::Metric(m) if m.name == "requests_in_flight" && (m.value - 1.0).abs() < f64::EPSILON);
    assert!(rows.0.iter().any(open), "request 4 never completed");
    assert_eq!(rows.losses(), []);
}

/// Nothing is known of its end: it is neither in flight nor in the device when later ones are.
#[test]
fn a_request_whose_end_was_not_seen_has_a_row_without_a_duration() {
    let mut run = Run::new();
    run.push(bio(1, None, 0, 4096, 10, Some((0, None))));
    run.push(bio(2, None, 0, 4096, 30, Some((0, None))));
    run.push(bio(3, None, 0, 4096, 50, Some((0, None))));
    let Event::Request(lost) = request(1, 0, 11, None) else { panic!("a request") };
    let late = 5_000_000_000;
    let unseen = Event::Request(Request { unseen: Some(late), ..lost });
    assert_eq!(unseen.time(), late);
    run.push(request(2, 0, 31, 60));
    run.push(request(3, 0, 51, 3_000_000_000));
    run.correlator.advance(4_000_000_000, &mut run.out);
    run.push(unseen);
    run.push(bio(4, None, 0, 4096, late - 1, Some((0, None))));
    run.push(request(4, 0, late, late + 9));
    let rows = run.finish();
    let got: Vec<_> = rows
        .0
        .iter()
        .filter_map(|r| if let Row::Block(b) = r { Some((b.req_id, b.qdepth, b.dur_ns, b.status)) } else { None })
        .collect();
    let ok = |ns: i64| (Some(ns), Some(0));
    let expected = [(2, 1, ok(29)), (3, 2, ok(2_999_999_949)), (1, 1, (None, None)), (4, 1, ok(9))];
    assert_eq!(got, expected.map(|(req, depth, (dur, status))| (req, depth, dur, status)));
    let owned =
        |r: &&Row| matches!(r, Row::BlockBytes(b) if b.req_id == 1 && b.process_ix == Some(0) && b.bytes == 4096);
    assert_eq!(rows.0.iter().filter(owned).count(), 1);
    let figure = |name: &str| {
        rows.0.iter().find_map(|r| if let Row::Metric(m) = r { (m.name == name).then_some(m.value) } else { None })
    };
    assert_eq!(["requests_in_flight", "requests_end_unseen"].map(figure), [Some(0.0), Some(1.0)]);
}

/// Two requests for the file and one for another file, journal blocks of the device, and a call that has to do with neither.
#[test]
fn calls_have_their_time_in_write_back_and_journal() {
    let mut run = Run::new();
    run.correlator.set_measured(Measured { requests: true, ..Measured::default() });
    run.openat(call(0, 1, 0, 1, 2), "/d/a", 1, 3);
    run.openat(call(0, 2, 0, 3, 4), "/d/b", 2, 4);
    let on = |ino: u64, c: Call| Call { handle: Some(ino + 2), file: Some(key(ino)), ..c };
    let pages = [(50, 1, 31, 40), (51, 1, 35, 45), (52, 2, 33, 60)];
    for (req, ino, queued, completed) in pages {
        run.push(bio(req, Some(ino), 0, 4096, queued, None));
        run.push(request(req, 1, queued + 1, completed));
    }
    for (req, dev, queued, completed) in [(53, key(1).dev, 46, 49), (54, 7, 31, 49)] {
        let Event::Bio(time, journal) = bio(req, None, 0, 4096, queued, None) else { panic!("a bio") };
        run.push(Event::Bio(time, Bio { journal: Some(dev), ..journal }));
        run.push(request(req, 1, queued + 1, completed));
    }
    // What is read is not written back.
    run.push(bio(55, Some(1), 8192, 4096, 41, None));
    run.push(request(55, 0, 42, 48));
    run.call("fsync", on(1, call(0, 3, 0, 32, 50)));
    run.call("syncfs", on(1, call(0, 4, 0, 51, 61)));
    run.call("read", Call { len: Some(10), got: Some(10), ..on(1, call(0, 5, 0, 62, 63)) });
    run.call("sync", call(0, 6, 0, 64, 65));
    let rows = run.finish();
    let waits = |seq| (rows.span(0, seq).writeback_ns, rows.span(0, seq).journal_ns);
    assert_eq!(waits(3), (Some(13), Some(3)), "from 32 to 45, and from 46 to 49");
    assert_eq!(waits(4), (Some(9), Some(0)), "the other file's, until 60");
    assert_eq!([waits(5), waits(6)], [(Some(0), Some(0)), (None, None)]);
}

#[test]
fn without_request_probes_their_times_are_not_known() {
    let mut run = Run::new();
    run.openat(call(0, 1, 0, 1, 2), "/d/a", 1, 3);
    run.call("fsync", Call { handle: Some(3), file: Some(key(1)), ..call(0, 3, 0, 32, 50) });
    let rows = run.finish();
    assert_eq!((rows.span(0, 3).writeback_ns, rows.span(0, 3).journal_ns), (None, None));
}

/// The call is on a file of overlayfs; what is dirty, and goes to the device, is the file below.
#[test]
fn write_back_of_the_file_below_is_that_of_the_file_above() {
    let mut run = Run::new();
    run.correlator.set_measured(Measured { requests: true, ..Measured::default() });
    let below = FileKey { dev: 7 << 20, ..key(90) };
    let seen = Sighting { path: b"/merged/a".to_vec(), data: Some(below), links: 1, ..Sighting::default() };
    run.push(Event::File { time: 2, key: key(1), pid: 0, seen });
    let on = |c: Call| Call { handle: Some(3), file: Some(key(1)), ..c };
    run.call("openat", on(call(0, 1, 0, 1, 2)));
    run.call("pwrite64", Call { off: Some(0), len: Some(5000), got: Some(5000), ..on(call(0, 2, 0, 10, 12)) });
    let Event::Bio(time, pages) = bio(50, Some(1), 0, 8192, 20, None) else { panic!("a bio") };
    run.push(Event::Bio(time, Bio { file: Some(below), ..pages }));
    let Event::Request(req) = request(50, 1, 21, 30) else { panic!("a request") };
    run.push(Event::Request(Request { bytes: 8192, ..req }));
    run.call("fsync", on(call(0, 3, 0, 15, 40)));
    let rows = run.finish();
    let links: Vec<_> = rows.links().iter().map(|l| (l.span_id, l.bytes, l.how)).collect();
    assert_eq!(links, [(span_id(0, 2), 5000, "writeback")]);
    let owned =
        |r: &Row| if let Row::BlockBytes(b) = r { Some((b.process_ix, b.file_id, b.bytes, b.known_by)) } else { None };
    let owned: Vec<_> = rows.0.iter().filter_map(owned).collect();
    assert_eq!(owned, [(Some(0), Some(1), 3192, "page"), (Some(0), Some(1), 5000, "range")]);
    assert_eq!(rows.file(1).path.as_deref(), Some("/merged/a"));
    assert_eq!(rows.span(0, 3).writeback_ns, Some(10));
}

#[test]
fn a_forgotten_file_is_written_again_with_a_request_that_carries_its_bytes() {
    let mut run = Run::new();
    run.openat(call(0, 1, 0, 1, 2), "/d/a", 1, 3);
    let mut before = Vec::new();
    run.correlator.advance(10, &mut before);
    run.correlator.forgotten(&[1], &[], &[], &[]);
    run.push(bio(50, Some(1), 0, 4096, 20, None));
    run.push(request(50, 1, 21, 30));
    let mut rows = Vec::new();
    run.correlator.advance(40, &mut rows);
    let written = |rows: &[Row]| rows.iter().filter(|r| matches!(r, Row::File(f) if f.file_id == 1)).count();
    assert!(rows.iter().any(|r| matches!(r, Row::BlockBytes(b) if b.file_id == Some(1))));
    assert_eq!((written(&before), written(&rows)), (1, 1));
}

/// For pages that were dirty before, the kernel has the control group that they are charged to.
#[test]
fn what_no_call_dirtied_is_of_a_control_group_in_which_there_is_a_traced_process() {
    let mut run = Run::new();
    run.correlator.set_measured(Measured { requests: true, ..Measured::default() });
    let cgroup = Some(Cgroup { path: "/job".into(), id: Some(8) });
    run.push(Event::Belongs { time: 1, process: 0, uid: 0, user: None, cgroup, container: None });
    run.openat(call(0, 1, 0, 2, 3), "/d/a", 1, 3);
    let on = |c: Call| Call { handle: Some(3), file: Some(key(1)), ..c };
    run.call("pwrite64", Call { off: Some(0), len: Some(4096), got: Some(4096), ..on(call(0, 2, 0, 10, 12)) });
    // Beside what the call wrote; of another file; charged to a group of which nothing is known.
    for (req, ino, bytes, cgroup) in [(50, 1, 8192, 8), (51, 2, 4096, 8), (52, 2, 4096, 9)] {
        let Event::Bio(time, pages) = bio(req, Some(ino), 0, bytes, 20, None) else { panic!("a bio") };
        run.push(Event::Bio(time, Bio { cgroup: Some(cgroup), ..pages }));
        let Event::Request(sent) = request(req, 1, 21, 30) else { panic!("a request") };
        run.push(Event::Request(Request { bytes: bytes as u32, ..sent }));
    }
    let rows = run.finish();
    let owned = |r: &Row| {
        let Row::BlockBytes(b) = r else { return None };
        Some((b.req_id, b.process_ix, b.cgroup.as_deref().map(str::to_owned), b.bytes, b.known_by))
    };
    let mut owned: Vec<_> = rows.0.iter().filter_map(owned).collect();
    owned.sort_by_key(|o| (o.0, o.1));
    let job = Some("/job".to_owned());
    assert_eq!(
        owned,
        [
            (50, None, job.clone(), 4096, "cgroup"),
            (50, Some(0), None, 4096, "range"),
            (51, None, job, 4096, "cgroup"),
            (52, None, None, 4096, "none"),
        ]
    );
}
