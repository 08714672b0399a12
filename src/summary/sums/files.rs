//! What the calls on each file were: sums, offsets, sizes, strides, users.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::analysis::calls::{Figures, Sums, is_file_access};
use crate::analysis::transfers::pattern::Position;
use crate::base::hist::bucket_of;
use crate::rows::{FileRollup, Span};
use crate::summary::bins::Rate;
use crate::summary::sums::spread::Counts;
use crate::summary::view::{OpRow, Others, Point};
use crate::vocabulary::{Kind, Layer};

/// Files with sums of their own at most; the calls on others are summed up together.
const MAX_FILES: usize = 4096;
/// Points of a plot, different sizes or strides, processes that are kept, for each file.
const MAX_POINTS: usize = 512;
const MAX_VALUES: usize = 64;
const MAX_USERS: usize = 1024;
/// Reads and writes below this are small.
const SMALL: i64 = 4096;

/// How often each value came.
#[derive(Debug, Clone, Default)]
pub struct Frequent {
    values: HashMap<i64, u64>,
    pub other: u64,
}

impl Frequent {
    fn add(&mut self, value: i64) {
        self.add_n(value, 1);
    }

    fn add_n(&mut self, value: i64, times: u64) {
        if let Some(n) = self.values.get_mut(&value) {
            *n = n.saturating_add(times);
        } else if self.values.len() < MAX_VALUES {
            self.values.insert(value, times);
        } else {
            self.other = self.other.saturating_add(times);
        }
    }

    /// The most frequent first.
    pub fn sorted(&self) -> Vec<(i64, u64)> {
        let mut all: Vec<_> = self.values.iter().map(|(v, n)| (*v, *n)).collect();
        all.sort_unstable_by_key(|(v, n)| (std::cmp::Reverse(*n), *v));
        all
    }
}

/// One file.
#[derive(Debug, Clone, Default)]
pub struct FileSums {
    /// System calls and faults.
    pub sums: Sums,
    pub opens: i64,
    pub syncs: i64,
    pub metas: i64,
    pub placed: i64,
    pub consecutive: i64,
    pub sequential: i64,
    pub small: i64,
    pub miss_bytes: i64,
    pub device_bytes: i64,
    pub latency: Counts,
    pub max_ns: i64,
    pub readers: HashSet<i32>,
    pub writers: HashSet<i32>,
    pub top: Option<Layer>,
    pub rate: Rate,
    pub sizes: Frequent,
    pub strides: Frequent,
    /// Where each process is in it, by layer: faults go their own way.
    positions: HashMap<(i32, Layer), Position>,
    pub points: Vec<Point>,
    /// Every n-th is kept.
    pub every_nth: u64,
    seen: u64,
    ops: BTreeMap<(Layer, &'static str), OpSums>,
}

#[derive(Debug, Clone)]
struct OpSums {
    kind: Kind,
    sums: Sums,
    max_ns: i64,
    latency: Counts,
}

impl FileSums {
    fn add(&mut self, span: &Span, second: i64) {
        self.top = Some(self.top.map_or(span.layer, |top| top.min(span.layer)));
        let sums = Figures::of_call(span).sums();
        if self.ops.len() < MAX_VALUES || self.ops.contains_key(&(span.layer, span.op)) {
            let new = || OpSums { kind: span.kind, sums: Sums::default(), max_ns: 0, latency: Counts::default() };
            let op = self.ops.entry((span.layer, span.op)).or_insert_with(new);
            op.sums.merge(&sums);
            op.max_ns = op.max_ns.max(span.net_ns());
            op.latency.value(span.net_ns());
        }
        if !is_file_access(span.layer) || !span.layer_top {
            return;
        }
        self.sums.merge(&sums);
        self.max_ns = self.max_ns.max(span.net_ns());
        self.latency.value(span.net_ns());
        self.opens += i64::from(span.kind == Kind::Open);
        self.syncs += i64::from(span.kind == Kind::Sync);
        self.metas += i64::from(span.kind == Kind::Meta);
        self.miss_bytes = self.miss_bytes.saturating_add(span.miss_bytes.unwrap_or(0));
        self.rate.add(second, [1, sums.bytes(), 0]);
        let users = match span.kind {
            Kind::Read => &mut self.readers,
            Kind::Write => &mut self.writers,
            _ => return,
        };
        if users.len() < MAX_USERS {
            users.insert(span.process_ix);
        }
        let Some(bytes) = span.bytes.filter(|_| span.errno == 0) else { return };
        self.sizes.add(bytes);
        self.small += i64::from(bytes < SMALL);
        if let Some(offset) = span.offset.filter(|_| bytes > 0) {
            self.access(span, offset, bytes);
        }
    }

    /// Calls that were summed up.
    fn sums(&mut self, row: &FileRollup, sums: &Sums, second: i64) {
        self.top = Some(self.top.map_or(row.layer, |top| top.min(row.layer)));
        if self.ops.len() < MAX_VALUES || self.ops.contains_key(&(row.layer, row.op)) {
            let new = || OpSums { kind: row.kind, sums: Sums::default(), max_ns: 0, latency: Counts::default() };
            let op = self.ops.entry((row.layer, row.op)).or_insert_with(new);
            op.sums.merge(sums);
            op.max_ns = op.max_ns.max(row.max_ns);
            durations(row).for_each(|(ns, n)| op.latency.add(bucket_of(ns), n));
        }
        if !is_file_access(row.layer) {
            return;
        }
        self.sums.merge(sums);
        self.max_ns = self.max_ns.max(row.max_ns);
        durations(row).for_each(|(ns, n)| self.latency.add(bucket_of(ns), n));
        let of = |kind: Kind| if row.kind == kind { row.calls } else { 0 };
        let add = |to: &mut i64, n: i64| *to = to.saturating_add(n);
        add(&mut self.opens, of(Kind::Open));
        add(&mut self.syncs, of(Kind::Sync));
        add(&mut self.metas, of(Kind::Meta));
        add(&mut self.miss_bytes, row.miss_bytes);
        self.rate.add(second, [row.calls, sums.bytes_read.saturating_add(sums.bytes_written), 0]);
        let users = match row.kind {
            Kind::Read => &mut self.readers,
            Kind::Write => &mut self.writers,
            _ => return,
        };
        if let Some(process) = row.process_ix.filter(|_| users.len() < MAX_USERS) {
            users.insert(process);
        }
        let sizes = row.sizes.as_deref().unwrap_or_default();
        for n in sizes {
            add(&mut self.placed, *n);
        }
        add(&mut self.sequential, row.sequential);
        add(&mut self.consecutive, row.consecutive);
        for (to, values, calls, others) in [
            (&mut self.sizes, &row.common_sizes, &row.common_size_calls, row.other_sizes),
            (&mut self.strides, &row.common_strides, &row.common_stride_calls, row.other_strides),
        ] {
            let (values, calls) = (values.as_deref().unwrap_or_default(), calls.as_deref().unwrap_or_default());
            values.iter().zip(calls).for_each(|(value, n)| to.add_n(*value, u64::try_from(*n).unwrap_or(0)));
            to.other = to.other.saturating_add(u64::try_from(others).unwrap_or(0));
        }
        // Below 4 KiB are the bins to 100 bytes and 1 KiB, and of the frequent sizes those between that and 4 KiB.
        sizes.iter().take(2).for_each(|n| add(&mut self.small, *n));
        let frequent = row.common_sizes.iter().flatten().zip(row.common_size_calls.iter().flatten());
        frequent.filter(|(size, _)| (1025..SMALL).contains(*size)).for_each(|(_, n)| add(&mut self.small, *n));
    }

    fn access(&mut self, span: &Span, offset: i64, bytes: i64) {
        self.placed += 1;
        let process = (span.process_ix, span.layer);
        if self.positions.len() < MAX_USERS || self.positions.contains_key(&process) {
            let write = span.kind == Kind::Write;
            let step = self.positions.entry(process).or_default().step(write, offset, bytes);
            self.consecutive += i64::from(step.consecutive);
            self.sequential += i64::from(step.sequential);
            step.stride.inspect(|stride| self.strides.add(*stride));
        }
        self.every_nth = self.every_nth.max(1);
        if self.seen.is_multiple_of(self.every_nth) {
            if self.points.len() == MAX_POINTS {
                self.every_nth *= 2;
                let mut n = 0;
                self.points.retain(|_| {
                    n += 1;
                    n % 2 == 1
                });
            }
            if self.seen.is_multiple_of(self.every_nth) {
                let write = span.kind == Kind::Write;
                let (pid, rank) = (span.pid, span.rank);
                self.points.push(Point { t_ns: span.start_ns, dur_ns: span.dur_ns, offset, bytes, write, pid, rank });
            }
        }
        self.seen += 1;
    }

    /// The most time first.
    pub fn ops(&self) -> Vec<OpRow> {
        let row = |((layer, op), s): (&(Layer, &'static str), &OpSums)| OpRow {
            layer: *layer,
            op,
            kind: s.kind,
            sums: s.sums,
            latency: s.latency.percentiles(Some(s.max_ns)),
        };
        let mut rows: Vec<_> = self.ops.iter().map(row).collect();
        rows.sort_by_key(|r| std::cmp::Reverse(r.sums.dur_ns));
        rows
    }
}

/// Durations in the middle of their bins, and how many there are in each.
fn durations(row: &FileRollup) -> impl Iterator<Item = (i64, u64)> {
    let bins = row.durations.iter().flatten().enumerate();
    bins.filter(|(_, n)| **n > 0).map(|(at, n)| (96 << at.min(50), u64::try_from(*n).unwrap_or(0)))
}

/// All files.
#[derive(Debug, Clone, Default)]
pub struct FileTable {
    pub files: HashMap<i32, FileSums>,
    pub other: Others,
    others: HashSet<i32>,
}

impl FileTable {
    pub fn add(&mut self, span: &Span, second: i64) {
        let Some(id) = span.file_id else { return };
        if self.files.len() >= MAX_FILES && !self.files.contains_key(&id) {
            if is_file_access(span.layer) && span.layer_top {
                self.other.sums.merge(&Figures::of_call(span).sums());
            }
            if self.others.len() < MAX_FILES * 16 && self.others.insert(id) {
                self.other.rows += 1;
            }
            return;
        }
        self.files.entry(id).or_default().add(span, second);
    }

    /// Calls that were summed up.
    pub fn sums(&mut self, row: &FileRollup, sums: &Sums, second: i64) {
        let Some(id) = row.file_id else { return };
        if self.files.len() >= MAX_FILES && !self.files.contains_key(&id) {
            if is_file_access(row.layer) {
                self.other.sums.merge(sums);
            }
            if self.others.len() < MAX_FILES * 16 && self.others.insert(id) {
                self.other.rows += 1;
            }
            return;
        }
        self.files.entry(id).or_default().sums(row, sums, second);
    }

    pub fn device(&mut self, id: i32, bytes: i64) {
        if let Some(file) = self.files.get_mut(&id) {
            file.device_bytes = file.device_bytes.saturating_add(bytes);
        }
    }
}
