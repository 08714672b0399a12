//! Sums agree with the rows that they are made from, however they are fed, and memory stays bounded.

use crate::rows::{Block, BlockBytes, BlockLink, FileRollup, Row, Span, span_id};
use crate::summary::filter::Filter;
use crate::summary::filter::fields::fields;
use crate::summary::view::{DeviceRow, Focus, Screen, Snapshot, Sums, Window};
use crate::summary::{From, Summary};
use crate::vocabulary::{Kind, LAYERS, Layer, flag};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const OPS: [(Layer, &str, Kind); 5] = [
    (Layer::App, "phase", Kind::Other),
    (Layer::Hdf5, "H5Dwrite", Kind::Write),
    (Layer::Hdf5, "H5Dread", Kind::Read),
    (Layer::Syscall, "pwrite64", Kind::Write),
    (Layer::Syscall, "fsync", Kind::Sync),
];

fn span(thread: u32, seq: u32, op: usize, start_ns: i64, dur_ns: i64) -> Span {
    let (layer, op, kind) = OPS[op];
    let bytes = matches!(kind, Kind::Read | Kind::Write).then_some(i64::from(seq) * 100);
    Span {
        pid: 100 + thread as i32,
        tid: 100 + thread as i32,
        file_id: Some(seq as i32 % 7),
        offset: bytes.map(|b| b * 3),
        bytes,
        req_bytes: bytes,
        ..Span::new(span_id(thread, seq), (layer, op, kind), thread as i32, (start_ns, dur_ns))
    }
}

/// Trees of two levels: calls of the program, and system calls inside them.
fn trees() -> impl Strategy<Value = Vec<Span>> {
    let tree = (0..3u32, 0..3usize, 0..40_000_000_000i64, prop::collection::vec((3..5usize, 1..1000i64), 0..4));
    prop::collection::vec(tree, 1..60).prop_map(|trees| {
        let mut seqs = [0u32; 3];
        let mut spans = Vec::new();
        for (thread, op, start, children) in trees {
            let seq = &mut seqs[thread as usize];
            *seq += 1;
            let inside: i64 = children.iter().map(|(_, dur)| dur).sum();
            let root = Span { self_ns: 10, ..span(thread, *seq, op, start, inside + 10) };
            let mut at = start;
            let mut below = Vec::new();
            for (op, dur) in children {
                *seq += 1;
                let child = span(thread, *seq, op, at, dur);
                below.push(Span { parent_id: Some(root.span_id), root_id: root.span_id, depth: 1, ..child });
                at += dur;
            }
            // The calls inside a phase come before it.
            let phase = root.layer == Layer::App;
            if !phase {
                spans.push(root.clone());
            }
            spans.extend(below);
            if phase {
                spans.push(root);
            }
        }
        spans
    })
}

fn summary(spans: &[Span]) -> Summary {
    let mut summary = Summary::new(From::Spans);
    for s in spans {
        summary.push(&Row::Span(Box::new(s.clone())));
    }
    summary
}

fn on(summary: &Summary, screen: Screen) -> Snapshot {
    summary.snapshot(&Focus { screen, ..Focus::default() })
}

fn total<'a>(spans: impl Iterator<Item = &'a Span>) -> Sums {
    spans.fold(Sums::default(), |mut sum, s| {
        let bytes = s.bytes.unwrap_or(0);
        sum.calls += 1;
        sum.bytes_read += if s.kind == Kind::Read { bytes } else { 0 };
        sum.bytes_written += if s.kind == Kind::Write { bytes } else { 0 };
        sum.dur_ns += s.dur_ns;
        sum.self_ns += s.self_ns;
        sum.errors += i64::from(s.errno != 0);
        sum
    })
}

fn add(sums: impl Iterator<Item = Sums>) -> Sums {
    sums.fold(Sums::default(), |mut all, s| {
        all.calls += s.calls;
        all.bytes_read += s.bytes_read;
        all.bytes_written += s.bytes_written;
        all.dur_ns += s.dur_ns;
        all.self_ns += s.self_ns;
        all.errors += s.errors;
        all
    })
}

proptest! {
    #[test]
    fn every_screen_sums_up_to_the_calls(spans in trees()) {
        let summary = summary(&spans);
        let overview = on(&summary, Screen::Overview);
        for layer in LAYERS {
            let expected = total(spans.iter().filter(|s| s.layer == layer));
            let row = overview.overview.layers.iter().find(|l| l.layer == Some(layer));
            prop_assert_eq!(row.map_or(Sums::default(), |r| r.sums), expected);
            let history = overview.history.layers.iter().find(|(l, _)| *l == layer);
            prop_assert_eq!(history.map_or(Sums::default(), |(_, h)| add(h.iter().copied())), expected);
        }
        // A call that is in no other: in a phase it is the program's own.
        let own = |s: &&Span| s.layer != Layer::App && (s.parent_id.is_none() || phase_of(&spans, s));
        prop_assert_eq!(add(overview.processes.rows.iter().map(|p| p.sums)), total(spans.iter().filter(own)));
        let system = |s: &&Span| s.layer == Layer::Syscall;
        prop_assert_eq!(add(overview.processes.rows.iter().map(|p| p.system)), total(spans.iter().filter(system)));
        prop_assert_eq!(add(overview.files.rows.iter().map(|f| f.sums)), total(spans.iter().filter(system)));
        let asked: i64 = spans.iter().filter(own).filter_map(|s| s.bytes).sum();
        prop_assert_eq!(overview.overview.chain[0].bytes_read + overview.overview.chain[0].bytes_written, asked);
        let tree = on(&summary, Screen::Tree).tree;
        prop_assert_eq!(add(tree.nodes.iter().map(|n| n.sums)), total(spans.iter()));
        let latency = on(&summary, Screen::Latency).latency;
        prop_assert_eq!(latency.total, spans.len() as u64);
        prop_assert_eq!(latency.columns.iter().flatten().map(|n| u64::from(*n)).sum::<u64>(), spans.len() as u64);
        let events = on(&summary, Screen::Events).events;
        prop_assert_eq!(events.rows.len(), spans.len());
    }

    #[test]
    fn the_tree_is_that_of_the_calls(spans in trees()) {
        let tree = on(&summary(&spans), Screen::Tree).tree;
        let mut expected: BTreeMap<(Option<&str>, &str), i64> = BTreeMap::new();
        for s in &spans {
            let parent = spans.iter().find(|p| Some(p.span_id) == s.parent_id).map(|p| p.op);
            *expected.entry((parent, s.op)).or_default() += 1;
        }
        let op = |id| tree.nodes.iter().find(|n| n.id == id).map(|n| n.op);
        let found: BTreeMap<_, _> = tree.nodes.iter().map(|n| ((n.parent.and_then(op), n.op), n.sums.calls)).collect();
        prop_assert_eq!(found, expected);
        for (at, node) in tree.nodes.iter().enumerate() {
            let parent = node.parent.map(|p| tree.nodes.iter().position(|n| n.id == p).unwrap());
            prop_assert!(parent.is_none_or(|p| p < at), "parents come first");
        }
    }

    #[test]
    fn a_filter_and_a_window_leave_out_the_rest(spans in trees(), from in 0..40_000_000_000i64) {
        let filter = Arc::new(Filter::parse("layer=syscall and dur>300ns").unwrap());
        let window = Window { from_ns: from, to_ns: from + 10_000_000_000 };
        let mut some = Summary::new(From::Spans).only(Some(Arc::clone(&filter)), Some(window));
        for s in &spans {
            some.push(&Row::Span(Box::new(s.clone())));
        }
        let within = window.from_ns..window.to_ns;
        let wanted = |s: &&Span| filter.matches(&fields(s, None)) && within.contains(&s.start_ns);
        let overview = on(&some, Screen::Overview).overview;
        prop_assert_eq!(add(overview.layers.iter().map(|l| l.sums)), total(spans.iter().filter(wanted)));
        // While a trace goes on: what is kept is looked at again.
        let later = summary(&spans).filtered(Arc::clone(&filter));
        let overview = on(&later, Screen::Overview).overview;
        let wanted = |s: &&Span| filter.matches(&fields(s, None));
        prop_assert_eq!(add(overview.layers.iter().map(|l| l.sums)), total(spans.iter().filter(wanted)));
    }
}

fn phase_of(spans: &[Span], span: &Span) -> bool {
    spans.iter().any(|p| Some(p.span_id) == span.parent_id && p.layer == Layer::App)
}

#[test]
fn memory_is_bounded_and_what_finds_no_room_is_counted() {
    let mut summary = Summary::new(From::Spans);
    let calls = 300_000;
    for n in 0..calls {
        let thread = n % 6000;
        let s = span(thread, n / 6000 + 1, 3, i64::from(n) * 1_000_000_000, 5);
        summary.push(&Row::Span(Box::new(Span { file_id: Some(n as i32), ..s })));
    }
    let overview = on(&summary, Screen::Overview);
    let (files, processes) = (&overview.files, &overview.processes);
    assert!(files.rows.len() <= 1000 && processes.rows.len() <= 1000);
    assert_eq!(
        files.other.unwrap().rows + files.rows.len() as u64,
        4096 + 65_536,
        "counted as far as it is remembered"
    );
    let calls = i64::from(calls);
    assert_eq!(files.other.unwrap().sums.calls + files.rows.iter().map(|f| f.sums.calls).sum::<i64>(), calls);
    assert_eq!(processes.other.unwrap().sums.calls + processes.rows.iter().map(|p| p.sums.calls).sum::<i64>(), calls);
    let events = on(&summary, Screen::Events).events;
    assert_eq!((events.before + 65_536) as i64, calls);
    assert!(overview.history.layers[0].1.len() <= 3600);
}

/// Of 4 KiB, issued 3 ns after it was queued.
fn request(req_id: i64, class: &'static str, queue_ns: i64, dur_ns: i64) -> Block {
    Block {
        req_id,
        dev: 8 << 20,
        device: None,
        op: "write",
        class,
        req_flags: 0,
        sector: 8,
        bytes: 4096,
        pid: 101,
        queue_ns,
        insert_ns: None,
        issue_ns: queue_ns + 3,
        dur_ns: Some(dur_ns),
        status: Some(0),
        nr_bios: 1,
        merges: 0,
        splits: 0,
        upper_dev: None,
        upper_sector: None,
        qdepth: 1,
    }
}

#[test]
fn in_a_window_are_what_devices_did_then_and_what_it_was_for() {
    const SECOND: i64 = 1_000_000_000;
    let mut summary = summary(&[span(1, 1, 3, SECOND / 2, 5), span(2, 2, 3, 10 * SECOND, 5)]);
    for (req_id, class, at, dur_ns) in [(1, "sync", SECOND / 2, 1_000_000), (2, "meta", 10 * SECOND, SECOND / 10)] {
        summary.push(&Row::Block(request(req_id, class, at, dur_ns)));
        let process_ix = Some(req_id as i32);
        let known_by = "range";
        let part = BlockBytes { req_id, process_ix, file_id: None, span_id: None, bytes: 4096, cgroup: None, known_by };
        summary.push(&Row::BlockBytes(part));
    }
    let seen = |screen, window| summary.snapshot(&Focus { screen, window, ..Focus::default() });
    let later = Some(Window { from_ns: 9 * SECOND, to_ns: 11 * SECOND });
    let device = |window| seen(Screen::Devices, window).devices.rows[0].clone();
    let then = device(later);
    let user = |d: &DeviceRow| d.users.iter().map(|u| (u.process_ix, u.requests, u.bytes)).collect::<Vec<_>>();
    assert_eq!((then.classes.as_slice(), user(&then)), (&[("write", "meta", 1, 4096)][..], vec![(Some(2), 1, 4096)]));
    assert_eq!((then.requests, then.device.map(|p| p.max)), (1, Some(SECOND / 10)));
    assert!((then.busy - 0.05).abs() < 1e-9, "a tenth of a second of two: {}", then.busy);
    assert_eq!((device(None).classes.len(), device(None).users.len(), device(None).requests), (2, 2, 2));
    let overview = |window| seen(Screen::Overview, window).overview;
    let chain = |window| overview(window).chain.iter().map(|s| s.bytes_written).collect::<Vec<_>>();
    // Asked for, by system calls, on devices: calls of 100 and 200 bytes.
    assert_eq!((chain(later), chain(None)), (vec![200, 200, 4096], vec![300, 300, 8192]));
    let block = |window| overview(window).layers.iter().find(|l| l.layer == Some(Layer::Block)).unwrap().latency;
    assert!(block(later).is_some_and(|p| p.p50 > SECOND / 11 && p.max == SECOND / 10));
    assert!(block(None).is_some_and(|p| p.p50 < SECOND / 100));
}

#[test]
fn one_call_down_to_its_requests() {
    let root = span(1, 1, 1, 100, 50);
    let below = |seq, op| Span { parent_id: Some(root.span_id), root_id: root.span_id, ..span(1, seq, op, 110, 20) };
    let mut summary = summary(&[root.clone(), below(2, 3), below(3, 4)]);
    summary.push(&Row::Block(request(9, "sync", 112, 10)));
    let (span_id, root_id) = (below(2, 3).span_id, root.span_id);
    summary.push(&Row::BlockLink(BlockLink { req_id: 9, span_id, root_id, bytes: 4096, how: "direct" }));
    let snapshot = summary.snapshot(&Focus { screen: Screen::Tree, span_id: Some(span_id), ..Focus::default() });
    let bars = &snapshot.waterfall.unwrap().bars;
    let shown: Vec<_> = bars.iter().map(|b| (b.depth, b.layer, b.start_ns, b.dur_ns)).collect();
    let expected = [
        (0, Layer::Hdf5, 100, 50),
        (1, Layer::Syscall, 110, 20),
        (2, Layer::Block, 112, 13),
        (1, Layer::Syscall, 110, 20),
    ];
    assert_eq!(shown, expected);
    let node = snapshot.tree.nodes.iter().find(|n| n.op == "pwrite64").unwrap();
    assert_eq!(node.device_bytes, 4096);
}

#[test]
fn calls_of_demoted_functions_are_in_the_figures_of_single_calls() {
    let mut summary = Summary::new(From::Spans);
    let rollup = |calls_error| FileRollup {
        calls: 100,
        calls_error,
        bytes: 400,
        req_bytes: 400,
        ..crate::export::dataset::tests::sums(Layer::Stdio, "fgetc", Kind::Read)
    };
    // A sum of counted calls is of --aggregate: here its calls would be in spans.
    for error in [Some(3), None] {
        summary.push(&Row::FileRollup(Box::new(rollup(error))));
    }
    let overview = on(&summary, Screen::Overview).overview;
    let stdio = overview.layers.iter().find(|row| row.layer == Some(Layer::Stdio)).unwrap();
    assert_eq!((stdio.sums.calls, stdio.sums.bytes_read, overview.chain[0].bytes_read), (100, 400, 400));
}

#[test]
fn threads_without_a_call_are_forgotten_while_a_trace_goes_on() {
    let remembered = |mut summary: Summary| {
        for second in 0..300 {
            let at = i64::from(second) * 1_000_000_000;
            summary.tick(at);
            summary.push(&Row::Span(Box::new(span(second, 1, 3, at, 10))));
        }
        let root = summary.tree.node(summary.tree.roots()[0]).unwrap();
        (summary.tree.threads(), root.sums.calls)
    };
    assert_eq!(remembered(Summary::new(From::Spans).live()), (120, 300));
    assert_eq!(remembered(Summary::new(From::Spans)), (300, 300), "rows of a dataset may be of any time");
}

/// Calls that submit operations, each of which is over after the next call of its thread.
#[test]
fn an_operation_that_comes_late_is_below_the_call_that_submitted_it() {
    let mut summary = Summary::new(From::Spans);
    let mut push = |span: Span| summary.push(&Row::Span(Box::new(span)));
    let submit = |n: u32| Span {
        layer_top: true,
        ..Span::new(span_id(1, n), (Layer::Syscall, "io_submit", Kind::Other), 1, (i64::from(n) * 1000, 100))
    };
    push(submit(0));
    for n in 1..5000 {
        push(submit(n));
        push(Span {
            flags: flag::ASYNC,
            parent_id: Some(span_id(1, n - 1)),
            ..Span::new(span_id(1, 10_000 + n), (Layer::Syscall, "aio_read", Kind::Read), 1, (i64::from(n) * 1000, 500))
        });
    }
    let nodes: Vec<_> =
        on(&summary, Screen::Tree).tree.nodes.iter().map(|n| (n.op, n.parent.is_some(), n.sums.calls)).collect();
    assert_eq!(nodes, [("io_submit", false, 5000), ("aio_read", true, 4999)]);
}
