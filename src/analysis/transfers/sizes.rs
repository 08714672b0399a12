//! How large reads and writes are, and how they follow each other in their files: Darshan's classes and definitions.

use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::is_data;
use crate::analysis::trace::losses::Quality;
use crate::analysis::transfers::pattern::Position;
use crate::rows::{FileRollup, Span};
use crate::vocabulary::{Kind, LAYERS, Layer};

/// Classes of size: the most bytes of each but the last, which has no end, and a name.
pub const CLASSES: [(i64, &str); 10] = [
    (100, "<=100B"),
    (1 << 10, "<=1K"),
    (10 << 10, "<=10K"),
    (100 << 10, "<=100K"),
    (1 << 20, "<=1M"),
    (4 << 20, "<=4M"),
    (10 << 20, "<=10M"),
    (100 << 20, "<=100M"),
    (1 << 30, "<=1G"),
    (i64::MAX, ">1G"),
];
/// Processes in files, or with handles, whose position is remembered.
const REMEMBERED_MAX: usize = 1 << 18;
/// Offsets are compared with blocks of so many bytes.
const PAGE: i64 = 4096;

/// Reads, or writes, of one layer. Outermost calls whose bytes are known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeRow {
    pub layer: &'static str,
    /// `read` or `write`.
    pub kind: &'static str,
    pub calls: i64,
    pub bytes: i64,
    /// Calls by [class](CLASSES).
    pub sizes: [i64; CLASSES.len()],
    /// Of the calls with bytes and a known offset, 0 to 1: those that begin behind the last byte of the one before, right
    /// behind it, and at an offset that is no multiple of 4096. `None` without any.
    pub sequential: Option<f64>,
    pub consecutive: Option<f64>,
    pub unaligned: Option<f64>,
    /// Those that begin near the end of the one before, or far from it, forwards or backwards; of calls that were
    /// recorded one by one.
    pub short_jumps: Option<f64>,
    pub long_jumps: Option<f64>,
    pub complete: bool,
}

#[derive(Default)]
struct Sum {
    calls: i64,
    bytes: i64,
    sizes: [i64; CLASSES.len()],
    placed: i64,
    sequential: i64,
    consecutive: i64,
    unaligned: i64,
    /// Of single calls: all that are placed, and jumps.
    followed: i64,
    short_jumps: i64,
    long_jumps: i64,
}

fn add(to: &mut i64, n: i64) {
    *to = to.saturating_add(n);
}

/// Sums up by layer and kind.
#[derive(Default)]
pub struct Sizes {
    sums: HashMap<(Layer, Kind), Sum>,
    /// By process and what is read or written: a file, or a handle of a library.
    positions: HashMap<(i32, Layer, Option<i32>), Position>,
    overflow: bool,
}

impl Sizes {
    pub fn span(&mut self, span: &Span) {
        let (true, true, Some(bytes)) = (span.layer_top, is_data(span.kind), span.bytes.filter(|n| *n >= 0)) else {
            return;
        };
        let sum = self.sums.entry((span.layer, span.kind)).or_default();
        add(&mut sum.calls, 1);
        add(&mut sum.bytes, bytes);
        if let Some(at) = CLASSES.iter().position(|(most, _)| bytes <= *most) {
            add(&mut sum.sizes[at], 1);
        }
        let Some(offset) = span.offset.filter(|offset| bytes > 0 && *offset >= 0) else { return };
        let subject = if span.layer >= Layer::Syscall { span.file_id } else { span.handle_id };
        let key = (span.process_ix, span.layer, subject);
        if self.positions.len() >= REMEMBERED_MAX && !self.positions.contains_key(&key) {
            self.overflow = true;
            return;
        }
        let step = self.positions.entry(key).or_default().step(span.kind == Kind::Write, offset, bytes);
        add(&mut sum.placed, 1);
        add(&mut sum.sequential, step.sequential.into());
        add(&mut sum.consecutive, step.consecutive.into());
        add(&mut sum.unaligned, (offset % PAGE != 0).into());
        add(&mut sum.followed, 1);
        add(&mut sum.short_jumps, step.is_short_jump().into());
        add(&mut sum.long_jumps, step.is_long_jump().into());
    }

    /// Calls that were summed up.
    pub fn sums(&mut self, row: &FileRollup) {
        let Some(sizes) = row.sizes.as_ref().filter(|_| is_data(row.kind) && row.layer != Layer::Block) else { return };
        let sum = self.sums.entry((row.layer, row.kind)).or_default();
        sum.sizes.iter_mut().zip(sizes).for_each(|(to, n)| add(to, *n));
        let known = sizes.iter().fold(0, |all: i64, n| all.saturating_add(*n));
        add(&mut sum.calls, known);
        add(&mut sum.bytes, row.bytes);
        add(&mut sum.placed, known);
        add(&mut sum.sequential, row.sequential);
        add(&mut sum.consecutive, row.consecutive);
        add(&mut sum.unaligned, row.unaligned);
    }

    /// Layers from top to bottom, reads before writes.
    pub fn rows(&self, quality: &Quality) -> Vec<SizeRow> {
        let row = |layer: Layer, kind: Kind| {
            let sum = self.sums.get(&(layer, kind))?;
            let part_of = |n: i64, all: i64| (all > 0).then(|| n as f64 / all as f64);
            let part = |n: i64| part_of(n, sum.placed);
            Some(SizeRow {
                layer: layer.name(),
                kind: kind.name(),
                calls: sum.calls,
                bytes: sum.bytes,
                sizes: sum.sizes,
                sequential: part(sum.sequential),
                consecutive: part(sum.consecutive),
                unaligned: part(sum.unaligned),
                short_jumps: part_of(sum.short_jumps, sum.followed),
                long_jumps: part_of(sum.long_jumps, sum.followed),
                complete: !self.overflow && quality.complete(layer),
            })
        };
        LAYERS.into_iter().flat_map(|layer| [row(layer, Kind::Read), row(layer, Kind::Write)]).flatten().collect()
    }
}
