//! What calls of the same kind cost in the same trace: reads from the page cache and from devices, writes that wait for nothing.

use std::collections::{BTreeMap, HashSet};

use crate::HashMap;
use crate::analysis::findings::groups::group::{
    CPU, DEVICE, DEVQUEUE, FLUSH, JOURNAL, REMOTE, SLEEP, THROTTLE, WRITEBACK,
};
use crate::analysis::findings::split::USUAL;
use crate::base::hist::{Histogram, REPORT_BITS};
use crate::rows::Span;
use crate::vocabulary::{Kind, Layer, flag};
use crate::whatif::after::{After, CHEAPEST, Call, ENOUGH, Slept};

/// The same of what one costs mostly: many together cost no more than the middle one for each.
const USUALLY: f64 = 0.5;
/// Files of processes whose last read is remembered.
const REMEMBERED_MAX: usize = 1 << 17;
/// By how much a measured cost may be wrong, as findings take it of rates.
const SPREAD: (f64, f64) = (1.0 / 1.3, 1.0 / 0.7);

/// What reads are asleep for that come from a device or a server.
pub const READING: [usize; 4] = [DEVICE, DEVQUEUE, SLEEP, REMOTE];
/// What calls on the page cache do not wait for.
const WAITS: [usize; 7] = [DEVICE, DEVQUEUE, REMOTE, WRITEBACK, JOURNAL, FLUSH, THROTTLE];
/// What frees blocks of files.
const FREEING: [&str; 4] = ["unlink", "unlinkat", "truncate", "ftruncate"];
/// A call that is asleep for such a part of its time slept.
const ASLEEP: i64 = 20;

/// Calls whose sizes are of one power of two.
#[derive(Default)]
struct Class {
    calls: i64,
    bytes: i64,
    /// On a CPU, without the tracer's hooks, in ns.
    times: Histogram<REPORT_BITS>,
}

/// Calls by size.
#[derive(Default)]
pub struct BySize(BTreeMap<u32, Class>);

impl BySize {
    fn add(&mut self, bytes: i64, ns: i64) {
        let class = self.0.entry(bytes.max(1).ilog2()).or_default();
        class.calls = class.calls.saturating_add(1);
        class.bytes = class.bytes.saturating_add(bytes);
        class.times.add(ns);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Seconds that one call of that size is on a CPU at best: the cheapest tenth of those that are closest in size. What it is
    /// larger is copied as fast as memory is.
    pub fn cheapest(&self, size: f64) -> Option<f64> {
        let (class, _) = self.closest(size)?;
        let (mean, ns) = (class.bytes as f64 / class.calls.max(1) as f64, class.times.quantile(CHEAPEST)? as f64);
        let longer = (size - mean).max(0.0) / USUAL.1;
        Some(ns / 1e9 * (size / mean.max(1.0)).min(1.0) + longer)
    }

    /// Seconds that it mostly is: as the middle one of those of its size. Not known where there are few.
    pub fn usual(&self, size: f64) -> Option<f64> {
        let (class, distance) = self.closest(size)?;
        let ns = class.times.quantile(USUALLY).filter(|_| distance == 0.0 && class.calls >= ENOUGH)?;
        Some(ns as f64 / 1e9)
    }

    /// The class that is closest to a size, and by how many powers of two it is another one.
    fn closest(&self, size: f64) -> Option<(&Class, f64)> {
        let wanted = size.max(1.0).log2().floor();
        let classes = self.0.iter().map(|(class, calls)| (calls, (f64::from(*class) - wanted).abs()));
        classes.min_by(|(_, a), (_, b)| a.total_cmp(b))
    }
}

/// Reads that waited for a device.
#[derive(Debug, Clone, Copy, Default)]
struct Cold {
    calls: i64,
    bytes: i64,
    /// Bytes that came from the device for them, and for later reads.
    brought: i64,
    ns: i64,
}

/// What single calls cost.
#[derive(Default)]
pub struct Costs {
    /// Reads that found all in the page cache.
    pub hits: BySize,
    /// Writes to the page cache that waited for nothing.
    pub writes: BySize,
    /// Those that begin where the one before ended, and others.
    cold: [Cold; 2],
    /// Where the last read of a process from a file ended.
    last: HashMap<(i32, i32), i64>,
    /// Files that were flushed, or written with `O_SYNC`.
    flushed: HashSet<i32>,
    /// Calls that free blocks, by operation: ns that all waited, and those on files that were flushed before.
    freeing: BTreeMap<&'static str, (i64, i64)>,
    /// What comes after a sleep.
    pub after: After,
    /// Reads through the page cache, and those of which it is not known what they found there.
    pub reads: i64,
    pub unknown: i64,
}

impl Costs {
    /// A call; `synced`: its handle was opened with `O_SYNC` or `O_DSYNC`.
    pub fn span(&mut self, span: &Span, synced: bool) {
        let not_a_call = span.flags & (flag::ASYNC | flag::UNFINISHED) != 0 || span.half_of().is_some();
        if span.layer != Layer::Syscall || not_a_call {
            return;
        }
        let parts = span.parts();
        let waited = parts.is_some_and(|parts| {
            let sum = WAITS.iter().map(|part| parts[*part]).fold(0, i64::saturating_add);
            // What hooks took is known to some ns: a sleep may be none.
            sum > 0 || parts[SLEEP].saturating_mul(ASLEEP) > span.net_ns()
        });
        let cpu_ns = parts.map(|parts| parts[CPU]);
        self.after.span(span, after(span, (synced, waited), cpu_ns));
        if span.errno != 0 || span.flags & flag::DIRECT != 0 {
            return;
        }
        self.flushes(span, synced);
        let (Some(bytes), Some(cpu_ns)) = (span.bytes.filter(|bytes| *bytes > 0), cpu_ns) else { return };
        match span.kind {
            Kind::Read => self.read(span, (bytes, cpu_ns), waited),
            Kind::Write if !synced && !waited => self.writes.add(bytes, cpu_ns),
            _ => {}
        }
    }

    fn flushes(&mut self, span: &Span, synced: bool) {
        let Some(file) = span.file_id else { return };
        if span.kind == Kind::Sync || synced {
            if self.flushed.len() < REMEMBERED_MAX {
                self.flushed.insert(file);
            }
        } else if FREEING.contains(&span.op)
            && let Some(parts) = span.parts()
        {
            let waited = span.net_ns().saturating_sub(parts[CPU]);
            let (all, flushed) = self.freeing.entry(span.op).or_default();
            *all = all.saturating_add(waited);
            *flushed = flushed.saturating_add(if self.flushed.contains(&file) { waited } else { 0 });
        }
    }

    /// Which part of the time that calls of an operation waited they did to free blocks of files that were flushed before.
    /// Files that were not may have no blocks yet: delayed allocation (Linux, Documentation/filesystems/ext4).
    pub fn freed(&self, op: &str) -> f64 {
        self.freeing.get(op).map_or(0.0, |(all, flushed)| *flushed as f64 / (*all).max(1) as f64)
    }

    fn read(&mut self, span: &Span, (bytes, cpu): (i64, i64), waited: bool) {
        self.reads = self.reads.saturating_add(1);
        let Some(miss) = span.miss_bytes else {
            self.unknown = self.unknown.saturating_add(1);
            return;
        };
        let brought = miss.saturating_add(span.ahead_bytes.unwrap_or(0));
        let consecutive = self.is_consecutive(span, bytes);
        if brought == 0 && !waited {
            return self.hits.add(bytes, cpu);
        }
        let cold = &mut self.cold[usize::from(!consecutive)];
        cold.calls = cold.calls.saturating_add(1);
        cold.bytes = cold.bytes.saturating_add(bytes);
        cold.brought = cold.brought.saturating_add(brought);
        cold.ns = cold.ns.saturating_add(span.net_ns());
    }

    /// Does it begin where the one before ended, or with the file? The kernel reads ahead for both.
    fn is_consecutive(&mut self, span: &Span, bytes: i64) -> bool {
        let (Some(file), Some(from)) = (span.file_id, span.offset) else { return false };
        if self.last.len() >= REMEMBERED_MAX && !self.last.contains_key(&(span.process_ix, file)) {
            self.last.clear();
        }
        self.last.insert((span.process_ix, file), from.saturating_add(bytes)) == Some(from) || from == 0
    }

    /// Did a read come from a device?
    pub fn has_misses(&self) -> bool {
        self.cold.iter().any(|cold| cold.brought > 0)
    }

    /// Seconds of a byte that a device is read for, and of a read from it, besides those of a hit.
    fn of(&self, cold: &Cold) -> Option<(f64, f64)> {
        if cold.brought == 0 || cold.calls == 0 {
            return None;
        }
        let size = cold.bytes as f64 / cold.calls as f64;
        let hit = self.hits.cheapest(size).unwrap_or(size / USUAL.1);
        let more = (cold.ns as f64 / 1e9 - hit * cold.calls as f64).max(0.0);
        Some((more / cold.brought as f64, more / cold.calls as f64))
    }

    /// Seconds that reads take longer when so many bytes of so many of them come from a device: at least, and at most.
    pub fn reading(&self, consecutive: bool, bytes: f64, calls: f64) -> Option<(f64, f64)> {
        let [own, other] = if consecutive { self.cold } else { [self.cold[1], self.cold[0]] };
        let range = |low: f64, high: f64| Some((low * SPREAD.0, high * SPREAD.1));
        match (self.of(&own), self.of(&other)) {
            (Some((byte, _)), None) => range(byte * bytes, byte * bytes),
            (Some((byte, _)), _) if own.calls >= ENOUGH => range(byte * bytes, byte * bytes),
            (_, Some((byte, call))) => range((byte * bytes).min(call * calls), (byte * bytes).max(call * calls)),
            (None, None) => None,
        }
    }
}

/// What a call is to those after it. How long flushes and reads are on a CPU is what other models are about. A read that found
/// all in the page cache, or is of a pipe, slept for something else.
fn after(span: &Span, (synced, waited): (bool, bool), cpu_ns: Option<i64>) -> Call {
    let flushes = span.kind == Kind::Sync || (span.kind == Kind::Write && synced);
    let reads = span.kind == Kind::Read && span.flags & flag::DIRECT == 0;
    let missed = span.miss_bytes.unwrap_or(0).saturating_add(span.ahead_bytes.unwrap_or(0)) > 0;
    let slept = match (flushes, reads && missed) {
        (true, _) => Slept::Flush,
        (_, true) => Slept::Read,
        _ => Slept::Other,
    };
    Call { slept: waited.then_some(slept), cpu_ns: cpu_ns.filter(|_| !flushes && !reads) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::rows::span_id;

    fn read(seq: u32, (offset, bytes): (i64, i64), miss: i64, ns: i64) -> Span {
        let call = Span::new(span_id(1, seq), (Layer::Syscall, "pread64", Kind::Read), 1, (i64::from(seq), ns));
        let (offset, bytes) = (Some(offset), Some(bytes));
        Span { file_id: Some(1), offset, bytes, miss_bytes: Some(miss), cpu_ns: Some(ns), ..call }
    }

    fn near(seconds: f64, wanted: f64) {
        assert!((seconds / wanted - 1.0).abs() < 0.03, "{seconds} is not {wanted}");
    }

    #[test]
    fn a_call_costs_what_the_cheapest_ones_of_its_size_do() {
        let mut costs = Costs::default();
        for seq in 0..100 {
            costs.span(&read(seq, (0, 4096), 0, if seq < 20 { 1000 } else { 9000 }), false);
            costs.span(&read(seq, (0, 1 << 20), 0, 100_000), false);
        }
        near(costs.hits.cheapest(4096.0).unwrap(), 1e-6);
        near(costs.hits.cheapest(1024.0).unwrap(), 0.25e-6);
        near(costs.hits.cheapest(2_097_152.0).unwrap(), 100e-6 + 1_048_576.0 / 4e9);
        assert!(costs.writes.cheapest(1.0).is_none() && !costs.has_misses());
        near(costs.hits.usual(4096.0).unwrap(), 9e-6);
        assert_eq!((costs.hits.usual(1024.0), costs.writes.usual(1.0)), (None, None));
    }

    /// Reads in turn take 1 ms each, of which every fourth brings all; scattered ones 4 ms.
    #[test]
    fn a_read_from_the_device_costs_what_others_in_the_same_order_did() {
        let mut costs = Costs::default();
        for seq in 0..16 {
            let ahead = if seq % 4 == 0 { 1 << 20 } else { 0 };
            let one = read(seq, (i64::from(seq) * 65_536, 65_536), 0, 1_000_000);
            costs.span(&Span { ahead_bytes: Some(ahead), cpu_ns: Some(0), device_ns: Some(1_000_000), ..one }, false);
        }
        let bytes = 4.0 * 1_048_576.0;
        let in_turn = costs.reading(true, bytes, 100.0).unwrap();
        near(in_turn.0 * 1.3, 0.016);
        near(in_turn.1 * 0.7, 0.016);
        // What scattered reads cost is not known: by byte, or by call.
        let (low, high) = costs.reading(false, bytes, 100.0).unwrap();
        near(low * 1.3, 0.016);
        near(high * 0.7, 0.1);
        for seq in 20..40 {
            costs.span(&read(seq, (i64::from(seq) * 1_000_000, 65_536), 65_536, 4_000_000), false);
        }
        let scattered = costs.reading(false, 65_536.0, 1.0).unwrap();
        near(scattered.0 * 1.3, 0.004);
        near(scattered.1 * 0.7, 0.004);
    }

    #[test]
    fn what_was_slept_for_is_what_a_condition_takes_away() {
        let slept = |span: &Span, synced| after(span, (synced, true), Some(9)).slept;
        let hit = read(0, (0, 4096), 0, 9);
        assert_eq!(slept(&hit, false), Some(Slept::Other), "a pipe has no page cache");
        assert_eq!(slept(&read(0, (0, 4096), 4096, 9), false), Some(Slept::Read));
        let direct = Span { flags: flag::DIRECT, ..read(0, (0, 4096), 4096, 9) };
        assert_eq!(slept(&direct, false), Some(Slept::Other));
        let write = Span { kind: Kind::Write, ..hit.clone() };
        assert_eq!((slept(&write, true), slept(&write, false)), (Some(Slept::Flush), Some(Slept::Other)));
        assert_eq!(after(&write, (false, false), Some(9)).cpu_ns, Some(9));
        assert_eq!(after(&hit, (false, true), Some(9)).cpu_ns, None);
    }

    #[test]
    fn what_reads_found_in_the_cache_may_not_be_known() {
        let mut costs = Costs::default();
        costs.span(&Span { miss_bytes: None, ..read(0, (0, 4096), 0, 9) }, false);
        costs.span(&Span { flags: flag::DIRECT, ..read(1, (0, 4096), 4096, 9) }, false);
        assert_eq!((costs.reads, costs.unknown), (1, 1));
        assert!(costs.hits.is_empty() && costs.reading(true, 1.0, 1.0).is_none());
    }
}
