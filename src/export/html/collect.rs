//! The pass over the rows: everything the pictures show, summed up as they come.

use anyhow::Result;
use serde_json::{Value, json};

use crate::analysis::calls::{Figures, is_estimated};
use crate::analysis::trace::source::{IdKind, Source};
use crate::export::html::accesses::Accesses;
use crate::export::html::axes::{BINS, Files, Ranks, Time};
use crate::export::html::collectives::Collectives;
use crate::export::html::cube::{Cube, Key};
use crate::export::html::devices::Devices;
use crate::export::html::tree::Tree;
use crate::export::report::{Report, Union};
use crate::rows::{Block, FileRollup, Span};
use crate::vocabulary::{Kind, LAYERS, Layer, flag};

/// Bytes of the numbers of each cube at most, so that a page stays below 5 MB however many calls there are.
const CALLS_TEXT: usize = 2_000_000;
const SIZES_TEXT: usize = 400_000;
const TREE_TEXT: usize = 500_000;
/// Read, write, and all other calls.
const DIRECTIONS: u32 = 3;
/// Powers of two of sizes and durations.
const POWERS: u32 = 63;
/// Upper ends of the classes that sums have for sizes.
const CLASSES: [&str; 10] =
    ["100 B", "1 KiB", "10 KiB", "100 KiB", "1 MiB", "4 MiB", "10 MiB", "100 MiB", "1 GiB", "more"];
/// The first class of durations in sums is below 2^7 ns.
const FIRST_DURATION: u32 = 6;

/// What is known before the pass.
pub struct Axes {
    pub time: Time,
    pub ranks: Ranks,
    pub files: Files,
}

struct Sums {
    aggregate: bool,
    calls: Cube<4>,
    sizes: Cube<1>,
    latency: Cube<1>,
    calls_of_tree: Cube<2>,
    tree: Tree,
    collectives: Collectives,
    devices: Devices,
    accesses: Accesses,
}

/// The rank, file and side of a row, and its time bin.
fn key(axes: &Axes, (rank, file): (u32, u32), (layer, kind): (Layer, Kind), at_ns: i64) -> Key {
    let direction = match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        _ => 2,
    };
    Key { rank, file, side: layer as u32 * DIRECTIONS + direction, bucket: 0, bin: axes.time.bin(at_ns) }
}

/// The power of two below a number, at least 1.
fn power(n: i64) -> u32 {
    u64::try_from(n).unwrap_or(0).max(1).ilog2()
}

fn figures(figures: &Figures) -> [i64; 4] {
    [figures.calls, figures.bytes(), figures.inclusive_ns, figures.errors.saturating_add(figures.nested_errors)]
}

impl Sums {
    fn new(axes: &Axes, aggregate: bool) -> Self {
        let ranks = axes.ranks.len();
        Self {
            aggregate,
            calls: Cube::new(["calls", "bytes", "ns", "errors"], BINS, ranks),
            sizes: Cube::new(["calls"], BINS, ranks),
            latency: Cube::new(["calls"], BINS, ranks),
            calls_of_tree: Cube::new(["calls", "ns"], BINS, ranks),
            tree: Tree::default(),
            collectives: Collectives::default(),
            devices: Devices::default(),
            accesses: Accesses::new(&axes.files),
        }
    }

    fn span(&mut self, span: &Span, axes: &Axes, (row, clock_ns): ((u32, u32), i64)) {
        self.accesses.span(span, row);
        self.collectives.span(span, row, span.start_ns.saturating_add(clock_ns));
        if span.flags & flag::SUMMED != 0 {
            // What it comes to is in the sums.
            return;
        }
        let key = key(axes, row, (span.layer, span.kind), span.start_ns);
        for (node, calls, ns) in self.tree.span(span) {
            self.calls_of_tree.add(Key { side: 0, bucket: node, ..key }, [calls, ns]);
        }
        if !span.layer_top {
            return;
        }
        self.calls.add(key, figures(&Figures::of(span)));
        self.latency.add(Key { bucket: power(span.net_ns()), ..key }, [1]);
        if let Some(bytes) = span.bytes.filter(|_| !self.aggregate && matches!(span.kind, Kind::Read | Kind::Write)) {
            self.sizes.add(Key { bucket: power(bytes), ..key }, [1]);
        }
    }

    fn sums(&mut self, row: &FileRollup, axes: &Axes, at: (u32, u32)) {
        if row.layer == Layer::Block {
            self.devices.sums(row, axes.time);
            return;
        }
        let key = key(axes, at, (row.layer, row.kind), row.from_ns);
        self.calls.add(key, figures(&Figures::of_sum(row)));
        for (node, calls, ns) in self.tree.sums(row) {
            self.calls_of_tree.add(Key { side: 0, bucket: node, ..key }, [calls, ns]);
        }
        if is_estimated(row) {
            return;
        }
        for (class, calls) in row.durations.iter().flatten().enumerate().filter(|(_, calls)| **calls > 0) {
            self.latency.add(Key { bucket: (FIRST_DURATION + class as u32).min(POWERS - 1), ..key }, [*calls]);
        }
        for (class, calls) in row.sizes.iter().flatten().enumerate().filter(|(_, calls)| self.aggregate && **calls > 0)
        {
            self.sizes.add(Key { bucket: (class as u32).min(CLASSES.len() as u32 - 1), ..key }, [*calls]);
        }
    }

    fn finish(self, axes: &Axes) -> Value {
        let files = axes.files.len();
        let sides = LAYERS.len() * DIRECTIONS as usize;
        let powers = POWERS as usize;
        let sizes = if self.aggregate { CLASSES.len() } else { powers };
        let nodes = self.tree.len();
        json!({
            "bins": BINS,
            "bin_ns": axes.time.bin_ns,
            "ranks": axes.ranks.labels(),
            "files": axes.files.names(),
            "layers": LAYERS.map(Layer::name),
            "size_classes": self.aggregate.then_some(CLASSES),
            "cubes": {
                "calls": self.calls.finish(CALLS_TEXT, (files, sides, 1)),
                "sizes": self.sizes.finish(SIZES_TEXT, (files, sides, sizes)),
                "latency": self.latency.finish(SIZES_TEXT, (files, sides, powers)),
                "tree": self.calls_of_tree.finish(TREE_TEXT, (files, 1, nodes)),
            },
            "tree": self.tree.finish(),
            "collectives": self.collectives.finish(),
            "devices": self.devices.finish(),
            "accesses": self.accesses.finish(),
        })
    }
}

/// Reads the rows once, and sums them up for the page.
pub fn collect(union: &mut Union, report: &Report) -> Result<Value> {
    let axes = Axes { time: Time::of(report.header.duration_ns), ranks: Ranks::read(union)?, files: Files::of(report) };
    let mut sums = Sums::new(&axes, report.header.aggregate);
    let union = &*union;
    union.rows(|span: Span| {
        let rank = axes.ranks.row(Some(span.process_ix), span.rank);
        let row = (rank, axes.files.number(union, span.file_id));
        let clock_ns = if span.coll_id.is_some() { clock_ns(union, report, span.span_id) } else { 0 };
        sums.span(&span, &axes, (row, clock_ns));
        Ok(())
    })?;
    union.rows(|row: FileRollup| {
        let rank = axes.ranks.row(row.process_ix, row.rank);
        sums.sums(&row, &axes, (rank, axes.files.number(union, row.file_id)));
        Ok(())
    })?;
    if !report.header.aggregate {
        union.rows(|block: Block| {
            sums.devices.block(&block, axes.time);
            Ok(())
        })?;
    }
    Ok(sums.finish(&axes))
}

/// What to add to the times of a call to have them on the clock that all nodes share.
fn clock_ns(union: &Union, report: &Report, span_id: i64) -> i64 {
    let host = union.origin(IdKind::Span, span_id).map(|origin| origin.host);
    let node = report.nodes.iter().find(|node| Some(node.host.as_str()) == host);
    node.map_or(0, |node| node.clock.offset_ns)
}
