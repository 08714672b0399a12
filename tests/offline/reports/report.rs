//! The report on traces made by hand, whose figures are known exactly.

use crate::common::synthetic::trace::{Trace, file, handle, meta, process};
use iotrace_bpf::export::report::{Bytes, Chain, LayerRow, Look, OpRow, PhaseRow, Report, WIDTH, build};
use iotrace_bpf::rows::{Coverage, File, Loss, Metric, Object, Row};
use iotrace_bpf::vocabulary::{Kind, Layer, flag};

const H5: (Layer, &str, Kind) = (Layer::Hdf5, "H5Dwrite", Kind::Write);
const MPI: (Layer, &str, Kind) = (Layer::Mpiio, "MPI_File_write_at", Kind::Write);
const PWRITE: (Layer, &str, Kind) = (Layer::Syscall, "pwrite64", Kind::Write);
const READ: (Layer, &str, Kind) = (Layer::Syscall, "read", Kind::Read);
const OPEN: (Layer, &str, Kind) = (Layer::Syscall, "openat", Kind::Open);
const FREAD: (Layer, &str, Kind) = (Layer::Stdio, "fread", Kind::Read);
const FREAD_UNLOCKED: (Layer, &str, Kind) = (Layer::Stdio, "fread_unlocked", Kind::Read);

fn report(trace: Trace) -> Report {
    build(&mut trace.finish()).unwrap()
}

fn layer<'a>(report: &'a Report, name: &str) -> &'a LayerRow {
    report.layers.iter().find(|l| l.layer == name).unwrap()
}

fn op<'a>(report: &'a Report, name: &str) -> &'a OpRow {
    report.layers.iter().flat_map(|l| &l.ops).find(|o| o.op == name).unwrap()
}

fn sum(n: i64) -> Bytes {
    Bytes { sum: Some(n), unknown_calls: 0 }
}

fn probe(layer: Layer, symbol: &str, status: &'static str, reason: Option<&str>) -> Row {
    Row::Coverage(Coverage {
        layer,
        target: "libhdf5.so".to_owned(),
        symbol: symbol.to_owned(),
        tier: (status == "attached").then_some("uprobe.multi"),
        status,
        reason: reason.map(str::to_owned),
        offset: None,
        insn: None,
    })
}

fn with_role(row: Row, role: &'static str) -> Row {
    match row {
        Row::File(file) => Row::File(Box::new(File { role, ..*file })),
        other => other,
    }
}

/// Two ranks write a dataset through MPI-IO; rank 0 also reads a text file with a failing open before it.
fn checkpoint() -> Trace {
    let mut t = Trace::default();
    add_run(&mut t);
    add_files(&mut t);
    add_verdicts(&mut t);
    for rank in 0..2 {
        add_writes(&mut t, rank);
    }
    add_reads(&mut t);
    t
}

/// Facts about the run, and its processes.
fn add_run(t: &mut Trace) {
    for (key, value) in [
        ("command", "mpirun -n 2 ./sim \x1b[31mrun"),
        ("host", "node1"),
        ("kernel", "6.12.3"),
        ("version", "0.1.0"),
        ("schema", "1"),
        ("t0_wall_ns", "1735689600000000000"),
        ("end_ns", "2500000000"),
        // A library by the order in which it was found; two files of one version.
        ("library.10", "C library 2.36: /lib/libc.so.6"),
        ("library.2", "HDF5 1.14.4-3: /home/u/libhdf5.so"),
        ("library.3", "HDF5 1.14.4-3: /opt/libhdf5.so"),
    ] {
        t.row(meta(key, value));
    }
    t.row(process(0, None));
    t.row(process(0, Some(0)));
    t.row(process(1, Some(1)));
}

/// Files, handles and the dataset inside the first file.
fn add_files(t: &mut Trace) {
    t.row(file(1, "/scratch/old-name.h5"));
    t.row(file(1, "/scratch/run\u{202e}.h5"));
    t.row(file(2, "/home/u/input.txt"));
    for (id, parent, layer, object) in [
        (1, None, Layer::Hdf5, None),
        (2, Some(1), Layer::Mpiio, None),
        (3, Some(2), Layer::Syscall, None),
        (4, Some(1), Layer::Hdf5, Some(1)),
        (5, None, Layer::Hdf5, None),
        (6, Some(5), Layer::Mpiio, None),
        (7, Some(6), Layer::Syscall, None),
        (8, Some(5), Layer::Hdf5, Some(1)),
    ] {
        t.row(handle(id, parent, layer, 1, object));
    }
    t.row(handle(9, None, Layer::Stdio, 2, None));
    t.row(handle(10, Some(9), Layer::Syscall, 2, None));
    let object = |name: &str| {
        Row::Object(Object {
            object_id: 1,
            handle_id: Some(4),
            file_id: Some(1),
            name: name.to_owned(),
            class: "dataset",
            dims: None,
            chunk: None,
            elem_size: None,
            filters: None,
        })
    };
    t.row(object("?"));
    t.row(object("/temperature"));
}

/// Probes, and bytes that are not known.
fn add_verdicts(t: &mut Trace) {
    // Totals: the last one holds.
    for value in [1.0, 3.0] {
        let label = Some("hdf5: inner functions not seen".to_owned());
        t.row(Row::Metric(Metric { t_ns: 7, name: "unknown_bytes", label, value }));
    }
    t.row(probe(Layer::Hdf5, "H5Dwrite", "attached", None));
    t.row(probe(Layer::Hdf5, "H5Dfoo", "absent", Some("not in this library")));
    t.row(probe(Layer::Mpiio, "MPI_File_write_at", "attached", None));
    t.row(probe(Layer::Stdio, "fread", "attached", None));
    t.row(probe(Layer::Syscall, "read", "attached", None));
    t.row(probe(Layer::Netcdf, "nc_put_vara", "skipped", Some("not in --layers")));
    t.row(probe(Layer::Block, "block_rq_issue", "attached", None));
}

/// A rank writes the dataset through MPI-IO.
fn add_writes(t: &mut Trace, rank: u32) {
    let late = i64::from(rank) * 10_000_000;
    let h5 = t.call(rank, None, H5, 1_000_000 + late, 9_000_000);
    t.moved(h5, 1, 600_000);
    t.edit(h5).object_id = Some(1);
    let mpi = t.call(rank, Some(h5), MPI, 1_100_000 + late, 8_000_000);
    t.moved(mpi, 1, 600_000);
    for i in 0..6 {
        let write = t.call(rank, Some(mpi), PWRITE, 1_200_000 + late + i * 1_000_000, 900_000);
        t.moved(write, 1, 131_072);
        t.edit(write).offset = Some(i * 131_072);
        if i < 2 {
            t.request(i64::from(rank) * 10 + i, write, ("write", "writeback"), 131_072, 500_000);
        }
    }
}

/// A failing open, a text file that is read, and a read that does not return.
fn add_reads(t: &mut Trace) {
    let failed = t.call(0, None, OPEN, 40_000_000, 2_000);
    t.edit(failed).errno = 2;
    let outer = t.call(0, None, FREAD, 41_000_000, 50_000);
    t.moved(outer, 2, 100);
    let inner = t.call(0, Some(outer), FREAD_UNLOCKED, 41_010_000, 30_000);
    t.moved(inner, 2, 100);
    let read = t.call(0, Some(inner), READ, 41_020_000, 10_000);
    t.moved(read, 2, 4096);
    t.edit(read).req_bytes = Some(8192);
    let pending = t.call(1, None, READ, 50_000_000, 5_000);
    t.edit(pending).flags = flag::UNFINISHED;
}

#[test]
fn layers_nest_and_outermost_calls_count() {
    let r = report(checkpoint());
    let names: Vec<_> = r.layers.iter().map(|l| l.layer).collect();
    assert_eq!(names, ["hdf5", "mpiio", "stdio", "syscall", "block"]);
    let hdf5 = layer(&r, "hdf5");
    assert_eq!((hdf5.calls, hdf5.inclusive_ns, hdf5.exclusive_ns), (2, 18_000_000, Some(2_000_000)));
    let stdio = layer(&r, "stdio");
    assert_eq!((stdio.calls, stdio.nested_calls, stdio.inclusive_ns), (1, 1, 50_000));
    assert_eq!((stdio.exclusive_ns, stdio.moved), (Some(40_000), sum(100)));
    let syscall = layer(&r, "syscall");
    assert_eq!((syscall.calls, syscall.errors), (15, 1));
    assert_eq!(syscall.moved, Bytes { sum: Some(12 * 131_072 + 4096), unknown_calls: 1 });
    assert_eq!(syscall.asked, Bytes { sum: Some(12 * 131_072 + 8192), unknown_calls: 1 });
    let block = layer(&r, "block");
    assert_eq!((block.calls, block.inclusive_ns, block.exclusive_ns), (4, 2_000_000, None));
    let total: f64 = r.layers.iter().filter_map(|l| l.exclusive_share).sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
}

#[test]
fn programs_that_cannot_be_looked_into_are_named() {
    let mut t = checkpoint();
    for n in 0..5 {
        let mut verdict = probe(Layer::App, "", "refused", Some("no symbols"));
        if let Row::Coverage(row) = &mut verdict {
            row.target = format!("/bin/{n}");
        }
        t.row(verdict);
    }
    let r = report(t);
    assert_eq!(r.opaque.len(), 5);
    let text = r.text(WIDTH);
    let named: Vec<_> = text.lines().filter(|l| l.contains("not seen into")).collect();
    assert_eq!(named, ["  not seen into /bin/0", "  not seen into /bin/1", "  not seen into /bin/2"]);
    assert!(text.contains("    no symbols\n  nor into 2 more programs (--coverage)\n"), "{text}");
    // That is no probe of theirs that was refused.
    let others = Layer::names(|layer| {
        use Layer::{Block, Hdf5, Mpiio, Stdio, Syscall};
        layer.is_traceable() && !matches!(layer, Hdf5 | Mpiio | Stdio | Syscall | Block)
    });
    assert!(text.contains(&format!("not covered: {others} (why:")), "{text}");
}

#[test]
fn functions_have_a_distribution() {
    let mut t = Trace::default();
    for (at, dur) in [10, 20, 30, 40].into_iter().enumerate() {
        t.call(0, None, READ, at as i64 * 100, dur);
    }
    let r = report(t);
    let read = op(&r, "read");
    assert_eq!((read.calls, read.min_ns, read.max_ns, read.p50_ns, read.p99_ns), (4, 10, 40, 20, 40));
    assert_eq!(read.mean_ns.to_bits(), 25.0f64.to_bits());
    assert!((read.stddev_ns.unwrap() - 12.909_944).abs() < 1e-5);
    assert_eq!(
        (read.asked, read.moved),
        (Bytes { sum: None, unknown_calls: 4 }, Bytes { sum: None, unknown_calls: 4 })
    );
    assert_eq!(op(&report(checkpoint()), "openat").stddev_ns, None, "one call has no deviation");
}

#[test]
fn amplification_goes_from_the_program_to_the_device() {
    let r = report(checkpoint());
    let write = &r.amplification.write;
    assert_eq!((write.asked, write.asked_calls), (sum(1_200_000), 2));
    let steps: Vec<_> =
        write.steps.iter().filter(|s| s.not_covered.is_none()).map(|s| (s.layer, s.bytes.sum)).collect();
    assert_eq!(
        steps,
        [("hdf5", Some(1_200_000)), ("mpiio", Some(1_200_000)), ("syscall", Some(1_572_864)), ("block", Some(524_288))]
    );
    let netcdf = &write.steps[0];
    assert_eq!((netcdf.layer, netcdf.bytes.sum), ("netcdf", None));
    assert_eq!(netcdf.not_covered.as_deref(), Some("skipped: not in --layers"));
    assert!((write.steps.last().unwrap().to_asked.unwrap() - 524_288.0 / 1_200_000.0).abs() < 1e-9);
    let called = &write.by_called[0];
    assert_eq!(
        (write.by_called.len(), called.layer, called.asked, called.device),
        (1, "hdf5", sum(1_200_000), 524_288)
    );
    let moved: Vec<_> = called.moved.iter().map(|(layer, bytes)| (*layer, bytes.sum.unwrap())).collect();
    assert_eq!(moved, [("hdf5", 1_200_000), ("mpiio", 1_200_000), ("syscall", 1_572_864)]);
    let read = &r.amplification.read;
    assert_eq!((read.asked, read.asked_calls), (Bytes { sum: Some(100), unknown_calls: 1 }, 2));
    let syscall = read.steps.iter().find(|s| s.layer == "syscall").unwrap();
    assert_eq!(syscall.bytes, Bytes { sum: Some(4096), unknown_calls: 1 });
    let called: Vec<_> = read.by_called.iter().map(|c| (c.layer, c.asked, c.moved["syscall"])).collect();
    let unknown = Bytes { sum: None, unknown_calls: 1 };
    assert_eq!(called, [("stdio", sum(100), sum(4096)), ("syscall", unknown, unknown)]);
}

#[test]
fn write_back_counts_for_its_writer() {
    const SYNC: (Layer, &str, Kind) = (Layer::Mpiio, "MPI_File_sync", Kind::Sync);
    let mut t = Trace::default();
    let h5 = t.call(0, None, H5, 0, 100);
    let write = t.call(0, Some(h5), PWRITE, 10, 50);
    t.moved(write, 1, 4096);
    let flush = t.call(0, None, SYNC, 200, 100);
    // Data that no traced call wrote: the flush is all there is to know of it.
    t.request(1, flush, ("write", "sync"), 512, 10);
    t.request(2, flush, ("write", "sync"), 8192, 10);
    t.link(2, write, 4096, "writeback");
    t.request(3, write, ("read", "sync"), 1024, 10);
    let r = report(t);
    let device = |chain: &Chain| chain.by_called.iter().map(|c| (c.layer, c.device)).collect::<Vec<_>>();
    assert_eq!(device(&r.amplification.write), [("hdf5", 4096), ("mpiio", 512)]);
    assert_eq!(device(&r.amplification.read), [("hdf5", 1024)]);
}

/// Calls that helper threads make for an operation are inside it, and roots themselves where requests were linked to
/// them.
#[test]
fn requests_of_a_call_inside_another_one_count_for_its_layer() {
    let mut t = Trace::default();
    let operation = t.call(0, None, (Layer::Stdio, "aio_write", Kind::Write), 0, 1000);
    let write = t.call(0, Some(operation), PWRITE, 10, 500);
    t.moved(write, 1, 4096);
    t.request(1, write, ("write", "sync"), 4096, 10);
    let mut rows = t.finish();
    let mut links = 0;
    for row in &mut rows {
        if let Row::BlockLink(link) = row {
            link.root_id = link.span_id;
            links += 1;
        }
    }
    assert_eq!(links, 1);
    let write = build(&mut rows).unwrap().amplification.write;
    let device: Vec<_> = write.by_called.iter().map(|called| (called.layer, called.device)).collect();
    assert_eq!(device, [("stdio", 4096)]);
}

const MAIN: (Layer, &str, Kind) = (Layer::App, "main", Kind::Other);
const STEP: (Layer, &str, Kind) = (Layer::App, "step", Kind::Other);

/// `main` makes two steps, the second inside a step; each writes with HDF5, and `main` reads itself.
fn phases() -> Vec<Row> {
    let mut t = Trace::default();
    let main = t.call(0, None, MAIN, 0, 10_000);
    let (a, b) = (t.call(0, Some(main), STEP, 100, 2000), t.call(0, Some(main), STEP, 3000, 5000));
    let c = t.call(0, Some(b), STEP, 3100, 3000);
    for (n, step) in [a, c].into_iter().enumerate() {
        let h5 = t.call(0, Some(step), H5, 200 + 3000 * n as i64, 1000);
        t.moved(h5, 1, 600);
        let write = t.call(0, Some(h5), PWRITE, 300 + 3000 * n as i64, 500);
        t.moved(write, 1, 4096);
        t.request(n as i64, write, ("write", "sync"), 4096, 10);
    }
    let read = t.call(0, Some(main), READ, 9000, 100);
    t.moved(read, 1, 50);
    t.edit(main).flags = flag::UNFINISHED;
    t.finish()
}

#[test]
fn phases_have_the_calls_inside_them() {
    let r = build(&mut phases()).unwrap();
    let times = |p: &PhaseRow| (p.op, p.calls, p.unfinished_calls, p.inclusive_ns, p.exclusive_ns);
    assert_eq!(
        r.phases.iter().map(times).collect::<Vec<_>>(),
        [("main", 1, 1, 10_000, 2900), ("step", 3, 0, 7000, 1000 + 2000 + 2000)]
    );
    let inside = |p: &PhaseRow| -> Vec<_> {
        p.layers.iter().map(|l| (l.layer, l.calls, l.read.sum, l.written.sum, l.time_ns)).collect()
    };
    let (h5, syscall) = (("hdf5", 2, None, Some(1200), 2000), ("syscall", 2, None, Some(8192), 1000));
    assert_eq!(inside(&r.phases[1]), [h5, syscall]);
    assert_eq!(inside(&r.phases[0]), [h5, ("syscall", 3, Some(50), Some(8192), 1100)]);

    // The program's own calls are those inside its phases.
    let called: Vec<_> = r.amplification.write.by_called.iter().map(|c| (c.layer, c.asked, c.device)).collect();
    assert_eq!(called, [("hdf5", sum(1200), 8192)]);
    assert_eq!((r.ranks.rows[0].calls, r.ranks.rows[0].asked_written, r.ranks.rows[0].library_ns), (3, 1200, 2000));
    let slow: Vec<_> = r.slowest.iter().map(|c| (c.tree.op, c.calls)).collect();
    assert_eq!(slow, [("H5Dwrite", 2), ("H5Dwrite", 2), ("read", 1)]);
    assert_eq!(r.slowest[0].tree.children[0].blocks.len(), 1);
    assert!(r.text(WIDTH).contains("Phases: outermost calls of each layer"));
}

#[test]
fn a_phase_comes_after_what_is_inside_it_and_that_changes_nothing() {
    let mut rows = phases();
    let whole = build(&mut rows.clone()).unwrap();
    let is_phase = |row: &Row| matches!(row, Row::Span(s) if s.layer == Layer::App);
    rows.sort_by_key(is_phase);
    assert_eq!(build(&mut rows).unwrap(), whole);
}

#[test]
fn libraries_come_after_all_other_files() {
    let mut t = checkpoint();
    t.row(file(3, "/lib/libx.so"));
    t.row(with_role(file(4, "/lib/liby.so"), "lib"));
    for (id, dur) in [(3, 1_000), (4, 900_000_000)] {
        let open = t.call(0, None, OPEN, 60_000_000, dur);
        t.edit(open).file_id = Some(id);
    }
    let r = report(t);
    assert_eq!(r.files.iter().map(|f| f.file_id).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!((r.library_files.files, r.library_files.time_ns), (1, 900_000_000));
}

#[test]
fn calls_left_out_on_purpose_are_reported() {
    let metric = |t_ns, name, value| Row::Metric(Metric { t_ns, name, label: None, value });
    let mut t = checkpoint();
    t.row(metric(1, "excluded_calls", 3.0));
    t.row(metric(2, "excluded_calls", 7.0));
    t.row(metric(3, "requests_in_flight", 1.0));
    t.row(metric(3, "requests_end_unseen", 2.0));
    let report = report(t);
    let text = report.text(WIDTH);
    let look = Look { coverage: true, ..Look::default() };
    assert!(report.shown(&look).unwrap().contains("7 calls on sockets"), "{text}");
    assert!(text.contains("1 device request had not completed"), "{text}");
    assert!(text.contains("the end of 2 device requests: not in times"), "{text}");
}

#[test]
fn page_faults_that_were_not_recorded_are_named_where_they_are_many() {
    let faults = |n, more: Option<Row>| {
        let mut t = checkpoint();
        let label = Some("major".to_owned());
        t.row(Row::Metric(Metric { t_ns: 1, name: "target_page_faults", label, value: n }));
        t.row(Row::Metric(Metric { t_ns: 1, name: "target_page_faults", label: Some("minor".to_owned()), value: 1e6 }));
        if let Some(row) = more {
            t.row(row);
        }
        let r = report(t);
        assert_eq!(r.header.major_faults, Some(n as i64));
        r.text(WIDTH).contains("page faults that waited for a device")
    };
    assert!(faults(5000.0, None));
    assert!(faults(5000.0, Some(probe(Layer::Vfs, "page_fault_user", "skipped", Some("not in --layers")))));
    assert!(!faults(12.0, None), "programs are loaded by some");
    assert!(!faults(5000.0, Some(probe(Layer::Vfs, "page_fault_user", "attached", None))));
}

#[test]
fn the_size_of_a_call_comes_from_the_calls_inside_it() {
    let mut t = Trace::default();
    let phase = t.call(0, None, (Layer::App, "step", Kind::Other), 0, 1000);
    let h5 = t.call(0, Some(phase), H5, 10, 500);
    let mpi = t.call(0, Some(h5), MPI, 20, 400);
    t.moved(mpi, 1, 64);
    let write = t.call(0, Some(mpi), PWRITE, 30, 100);
    t.moved(write, 1, 4096);
    // Bytes that a close moves were asked for by earlier writes.
    let close = t.call(0, None, (Layer::Hdf5, "H5Fclose", Kind::Close), 2000, 500);
    let write = t.call(0, Some(close), PWRITE, 2100, 100);
    t.moved(write, 1, 512);
    let r = report(t);
    assert_eq!(r.amplification.write.asked.sum, Some(64));
    assert_eq!(r.ranks.rows[0].asked_written, 64);
    let steps: Vec<_> = r.amplification.write.steps.iter().map(|s| (s.layer, s.bytes.sum, s.to_asked)).collect();
    assert_eq!(
        steps,
        [("hdf5", None, None), ("mpiio", Some(64), Some(1.0)), ("syscall", Some(4608), Some(72.0))],
        "a layer that knows nothing shows no bytes, never 0"
    );
}

#[test]
fn loss_marks_the_figures_it_could_change() {
    let mut t = checkpoint();
    let loss = |layer, count| Row::Loss(Loss { t_ns: 0, layer, cpu: Some(1), place: "ring", process_ix: None, count });
    t.row(loss(Some(Layer::Mpiio), 3));
    t.row(loss(Some(Layer::Mpiio), 4));
    let r = report(t);
    assert!(!r.complete);
    assert_eq!(r.losses.iter().map(|l| (l.layer, l.count)).collect::<Vec<_>>(), [(Some("mpiio"), 7)]);
    let marks = |name| (layer(&r, name).complete, layer(&r, name).exclusive_complete);
    assert_eq!(marks("hdf5"), (true, false), "time of lost calls below falls to the caller");
    assert_eq!(marks("mpiio"), (false, false));
    assert_eq!(marks("syscall"), (true, true));
    let text = r.text(WIDTH);
    assert!(text.contains("INCOMPLETE: 7 events were lost"), "{text}");
    assert!(text.contains("~16.0 ms"), "{text}");
    assert!(!report(checkpoint()).text(WIDTH).contains('~'));
    let mut t = checkpoint();
    t.row(loss(None, 1));
    assert!(report(t).layers.iter().all(|l| !l.complete), "a loss without a layer can be any layer's");
}

#[test]
fn siblings_fold_and_requests_hang_below_their_call() {
    let r = report(checkpoint());
    let slow = &r.slowest[0];
    assert_eq!((slow.tree.op, slow.calls, slow.not_shown), ("H5Dwrite", 8, 0));
    let mpi = &slow.tree.children[0];
    assert_eq!(mpi.children.len(), 1);
    let writes = &mpi.children[0];
    assert_eq!((writes.op, writes.count, writes.dur_ns, writes.max_ns), ("pwrite64", 6, 5_400_000, 900_000));
    assert_eq!((writes.bytes, writes.offset), (Some(6 * 131_072), None));
    assert_eq!(writes.blocks.len(), 2);
    assert_eq!(
        (writes.blocks[0].class, writes.blocks[0].queue_ns, writes.blocks[0].how),
        ("writeback", 1000, "direct")
    );
    let ops: Vec<_> = r.slowest.iter().map(|c| c.tree.op).collect();
    assert_eq!(ops, ["H5Dwrite", "H5Dwrite", "fread", "read", "openat"]);
    assert_eq!(r.slowest[4].tree.errno, 2);
}

#[test]
fn at_most_five_slow_calls_of_one_function() {
    let mut t = Trace::default();
    for i in 0..20 {
        t.call(0, None, PWRITE, i * 1000, 500 + i);
        t.call(0, None, READ, i * 1000 + 900, 10);
    }
    let r = report(t);
    let ops: Vec<_> = r.slowest.iter().map(|c| (c.tree.op, c.tree.dur_ns)).take(6).collect();
    let slow: Vec<_> = (0..5).map(|i| ("pwrite64", 519 - i)).chain([("read", 10)]).collect();
    assert_eq!(ops, slow);
    assert_eq!(r.slowest.len(), 10);
}

#[test]
fn mixed_siblings_fold_when_there_are_many() {
    let mut t = Trace::default();
    let root = t.call(0, None, MPI, 0, 100_000);
    for i in 0..10 {
        t.call(0, Some(root), READ, i * 1000, 100);
        t.call(0, Some(root), PWRITE, i * 1000 + 500, 100);
    }
    let r = report(t);
    let below: Vec<_> = r.slowest[0].tree.children.iter().map(|n| (n.op, n.count)).collect();
    assert_eq!(below, [("read", 10), ("pwrite64", 10)]);
}

#[test]
fn the_last_row_of_an_id_holds() {
    let r = report(checkpoint());
    assert_eq!(r.files[0].path.as_deref(), Some("/scratch/run\u{202e}.h5"));
    assert_eq!(r.ranks.rows.iter().map(|row| row.rank).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(r.slowest[0].tree.object.as_deref(), Some("/temperature"));
}

#[test]
fn handles_of_equal_shape_are_one() {
    let r = report(checkpoint());
    let root = &r.files[0].handles[0];
    assert_eq!((root.layer, root.count, r.files[0].handles.len()), ("hdf5", 2, 1));
    let below: Vec<_> = root.children.iter().map(|h| (h.layer, h.object.as_deref(), h.count)).collect();
    assert_eq!(below, [("mpiio", None, 2), ("hdf5", Some("dataset /temperature"), 2)]);
    assert_eq!(root.children[0].children[0].layer, "syscall");
}

#[test]
fn work_is_spread_over_ranks() {
    let r = report(checkpoint());
    let rank0 = &r.ranks.rows[0];
    assert_eq!((rank0.calls, rank0.asked_written, rank0.asked_read), (3, 600_000, 100));
    assert_eq!((rank0.syscall_written, rank0.syscall_read, rank0.library_ns), (786_432, 4096, 9_050_000));
    let syscall = r.ranks.imbalance.iter().find(|i| i.layer == "syscall").unwrap();
    assert_eq!((syscall.max_ns, syscall.slowest), (5_412_000, 0));
    assert!((syscall.max_to_mean - 5_412.0 / 5_408.5).abs() < 1e-9, "{}", syscall.max_to_mean);
}

#[test]
fn nothing_is_a_report_too() {
    let r = build(&mut Vec::<Row>::new()).unwrap();
    assert!(r.layers.is_empty() && r.complete);
    let text = r.text(WIDTH);
    assert!(text.contains("not covered: netcdf") && text.contains("no rule could be applied"), "{text}");
    assert!(!r.header.end_recorded);
}

#[test]
fn no_line_is_too_wide_and_no_name_acts() {
    let r = report(checkpoint());
    for width in [60, 80, 100, 120] {
        for line in r.text(width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
            assert!(!line.contains(['\x1b', '\u{202e}']), "{line}");
        }
    }
    let json = r.json().unwrap();
    assert!(!json.contains('\u{202e}') && json.contains("run\\u202e.h5"));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["files"][0]["path"], "/scratch/run\u{202e}.h5");
}

#[test]
fn text() {
    insta::assert_snapshot!(report(checkpoint()).text(WIDTH));
}

#[test]
fn text_of_80_columns_with_loss() {
    let mut t = checkpoint();
    t.row(Row::Loss(Loss {
        t_ns: 0,
        layer: Some(Layer::Syscall),
        cpu: Some(1),
        place: "ring",
        process_ix: None,
        count: 12,
    }));
    insta::assert_snapshot!(report(t).text(80));
}

#[test]
fn json() {
    // The shape only: values are tested above.
    fn shape(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Array(items) => {
                items.truncate(1);
                items.iter_mut().for_each(shape);
            }
            serde_json::Value::Object(fields) => fields.values_mut().for_each(shape),
            _ => {}
        }
    }
    let mut value: serde_json::Value = serde_json::from_str(&report(checkpoint()).json().unwrap()).unwrap();
    shape(&mut value);
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
}
