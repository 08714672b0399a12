//! Where in files system calls read and wrote, over time: points of the files with the most time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::export::html::axes::Files;
use crate::rows::Span;
use crate::vocabulary::{Kind, Layer, flag};

/// Files with a picture, and points of each at most: together less than half a megabyte of the page.
const FILES_MAX: usize = 8;
const POINTS_MAX: usize = 1200;

struct Point {
    start_ns: i64,
    offset: i64,
    bytes: i64,
    rank: u32,
    write: bool,
    /// A number that looks like chance, always the same for a call.
    draw: u64,
}

/// The points of one file that are shown.
struct FilePoints {
    all: i64,
    points: Vec<Point>,
    /// Points whose draw is below this are kept: one in 2^n of all.
    below: u64,
}

impl Default for FilePoints {
    fn default() -> Self {
        Self { all: 0, points: Vec::new(), below: u64::MAX }
    }
}

impl FilePoints {
    fn add(&mut self, point: Point) {
        self.all = self.all.saturating_add(1);
        if point.draw > self.below {
            return;
        }
        self.points.push(point);
        // By chance and not each second one: programs go back and forth between parts of a file.
        while self.points.len() > POINTS_MAX && self.below > 0 {
            self.below /= 2;
            let below = self.below;
            self.points.retain(|point| point.draw <= below);
        }
    }

    fn value(mut self, file: u32) -> Value {
        self.points.sort_by_key(|point| (point.start_ns, point.draw));
        let column = |of: fn(&Point) -> i64| self.points.iter().map(of).collect::<Vec<_>>();
        json!({
            "file": file, "all": self.all,
            "start_ns": column(|p| p.start_ns), "offset": column(|p| p.offset), "bytes": column(|p| p.bytes),
            "rank": column(|p| p.rank.into()), "write": column(|p| p.write.into()),
        })
    }
}

/// By number of the file on the page: the first ones took the most time.
pub struct Accesses {
    files: BTreeMap<u32, FilePoints>,
    /// Numbers from here on are libraries and the like, or no single files.
    end: u32,
}

impl Accesses {
    pub fn new(files: &Files) -> Self {
        Self { files: BTreeMap::new(), end: files.of_data() }
    }

    pub fn span(&mut self, span: &Span, (rank, file): (u32, u32)) {
        let is_data = span.layer == Layer::Syscall && span.layer_top && matches!(span.kind, Kind::Read | Kind::Write);
        let (Some(offset), Some(bytes)) = (span.offset, span.bytes.filter(|n| *n > 0)) else { return };
        if !is_data || span.flags & flag::SUMMED != 0 || file >= self.end || offset < 0 {
            return;
        }
        let (start_ns, write, draw) =
            (span.start_ns, span.kind == Kind::Write, scattered(span.span_id.cast_unsigned()));
        self.files.entry(file).or_default().add(Point { start_ns, offset, bytes, rank, write, draw });
    }

    pub fn finish(self) -> Value {
        let left_out = self.files.len().saturating_sub(FILES_MAX);
        let list: Vec<_> = self.files.into_iter().take(FILES_MAX).map(|(file, kept)| kept.value(file)).collect();
        json!({ "list": list, "left_out": left_out })
    }
}

/// Mixes the bits of a number (the finalizer of `SplitMix64`).
const fn scattered(id: u64) -> u64 {
    let id = (id ^ (id >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let id = (id ^ (id >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    id ^ (id >> 31)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::rows::span_id;

    fn access(seq: u32, offset: i64) -> Span {
        let call = (Layer::Syscall, "pwrite64", Kind::Write);
        Span { offset: Some(offset), bytes: Some(10), ..Span::new(span_id(1, seq), call, 1, (i64::from(seq), 5)) }
    }

    #[test]
    fn of_many_accesses_some_are_kept_from_everywhere() {
        let mut all = Accesses { files: BTreeMap::new(), end: 2 };
        // Every second one goes to the header.
        let offset = |seq: u32| if seq.is_multiple_of(2) { 0 } else { i64::from(seq) * 4096 };
        (0..100_000).for_each(|seq| all.span(&access(seq, offset(seq)), (0, 1)));
        (0..100).for_each(|seq| all.span(&access(seq, 0), (0, 0)));
        // Other files, none, what moved nothing, and a damaged offset.
        all.span(&access(1, 0), (0, 2));
        all.span(&Span { bytes: Some(0), ..access(1, 0) }, (0, 1));
        all.span(&access(1, -5), (0, 1));
        let value = all.finish();
        let [few, many] = [0, 1].map(|at| &value["list"][at]);
        let column = |of: &Value, name: &str| -> Vec<i64> {
            of[name].as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect()
        };
        assert_eq!((few["all"].as_i64(), column(few, "offset").len()), (Some(100), 100));
        let (times, offsets) = (column(many, "start_ns"), column(many, "offset"));
        assert_eq!(many["all"].as_i64(), Some(100_000));
        assert!((POINTS_MAX / 3..=POINTS_MAX).contains(&times.len()) && times.is_sorted(), "{}", times.len());
        assert!(times.iter().zip(&offsets).all(|(time, at)| *at == offset(*time as u32)));
        let header = offsets.iter().filter(|at| **at == 0).count() as f64 / offsets.len() as f64;
        assert!((0.4..0.6).contains(&header), "{header}");
        let early = times.iter().filter(|time| **time < 50_000).count() as f64 / times.len() as f64;
        assert!((0.4..0.6).contains(&early), "{early}");
    }
}
