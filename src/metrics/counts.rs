//! Rows in, totals out: every call, request, loss and verdict once, and nothing is ever forgotten.
//!
//! What there is a total of is bounded: functions of the catalog, file systems, devices, places of loss.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::analysis::calls::{Figures, Sums, is_data};
use crate::analysis::findings::Findings;
use crate::analysis::findings::rules::RULES;
use crate::analysis::kinds::FileKinds;
use crate::analysis::parallel::ranks::OwnCalls;
use crate::analysis::trace::losses::Losses;
use crate::analysis::trace::share::{HELD_NS, HOOKS_NS, TRACING_NS, Tracing};
use crate::rows::{Block, File, FileRollup, Metric, Row, Span};
use crate::vocabulary::{Kind, Layer, flag};

/// Buckets with an upper bound.
pub const BUCKETS: usize = 28;
/// The first one's, in ns; each has twice that of the one before.
const FIRST_NS: u64 = 1000;
/// Kinds of file systems, and devices, with totals of their own at most; the rest is `other`.
const MAX_FS_KINDS: usize = 64;
const MAX_DEVICES: usize = 256;
const OTHER: &str = "other";

/// A histogram of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Durations {
    /// Those up to the bound of each, and above that of the one before.
    pub buckets: [u64; BUCKETS],
    /// All of them.
    pub count: u64,
    pub sum_ns: u128,
}

impl Durations {
    /// Negative ones count as 0.
    pub fn add(&mut self, ns: i64) {
        let ns = ns.max(0) as u64;
        let units = ns.div_ceil(FIRST_NS).max(1);
        let at = units.next_power_of_two().ilog2() as usize;
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum_ns += u128::from(ns);
    }
}

impl Durations {
    /// Adds calls that are known by bins: below 2^7 ns, below 2^8, ... Those of a bin count as if they had taken as long as any
    /// in it may have.
    fn add_bins(&mut self, bins: &[i64], calls: i64, sum_ns: i64) {
        for (at, n) in bins.iter().enumerate() {
            let end = 1_u64.checked_shl(at as u32 + 7).map_or(u64::MAX, |end| end - 1);
            let units = end.div_ceil(FIRST_NS).max(1).checked_next_power_of_two().map_or(u32::MAX, u64::ilog2);
            if let Some(bucket) = self.buckets.get_mut(units as usize) {
                *bucket += u64::try_from(*n).unwrap_or(0);
            }
        }
        self.count += u64::try_from(calls).unwrap_or(0);
        self.sum_ns += u128::try_from(sum_ns).unwrap_or(0);
    }
}

/// The kind of file system that a call was on, and where that is; both empty where they are not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FsKind {
    pub fs: String,
    pub scope: &'static str,
}

/// Of one function on one kind of file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Op {
    /// Outermost calls of the layer.
    pub durations: Durations,
    /// Outermost calls that failed.
    pub failed: u64,
    /// Exclusive time of all calls.
    pub self_ns: u128,
}

/// Of one device and one operation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requests {
    /// From issue to completion.
    pub durations: Durations,
    pub failed: u64,
    /// From queue to issue.
    pub queue_ns: u128,
}

/// 0 of what is less.
fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// A number that stands for a [`FsKind`] in keys.
type FsIx = u8;

/// All totals.
#[derive(Debug, Default)]
pub struct Counts {
    ops: HashMap<(Layer, &'static str, FsIx), Op>,
    /// Bytes read and written by outermost calls.
    bytes: BTreeMap<(Layer, FsIx), [u64; 2]>,
    /// By name and operation.
    requests: BTreeMap<(String, &'static str), Requests>,
    /// Bytes read and written, by name.
    device_bytes: BTreeMap<String, [u64; 2]>,
    devices: HashMap<i32, String>,
    lost: Losses,
    left_out: BTreeMap<&'static str, u64>,
    probes: BTreeMap<(Layer, &'static str), u64>,
    processes: HashSet<i32>,
    own: OwnCalls,
    /// The first one is that of what is not known.
    fs_kinds: Vec<FsKind>,
    files: FileKinds,
    scopes: HashMap<i32, &'static str>,
    speeds: BTreeMap<(Layer, &'static str, &'static str), u64>,
    /// Requests come in sums.
    summed: bool,
    pub tracing: Tracing,
    /// Seconds by rule, where they can be trusted.
    findings: Option<Vec<(&'static str, f64)>>,
}

impl Counts {
    /// Of a trace of these layers: that nothing was lost is a figure, too.
    pub fn new(layers: &[Layer]) -> Self {
        let mut counts = Self { fs_kinds: vec![FsKind::default()], ..Self::default() };
        for layer in layers {
            counts.lost.expect(*layer, "ring");
            counts.probes.insert((*layer, "attached"), 0);
            counts.probes.insert((*layer, "refused"), 0);
        }
        counts
    }

    /// Of a trace in aggregate mode, or not.
    #[must_use]
    pub fn summed(self, summed: bool) -> Self {
        Self { summed, ..self }
    }

    /// Takes the rows that the correlator has made at once: the file of a call may come after it.
    pub fn push(&mut self, rows: &[Row]) {
        for row in rows {
            match row {
                Row::Mount(mount) => {
                    self.scopes.insert(mount.mount_id, mount.scope);
                }
                Row::File(file) => self.file(file),
                _ => {}
            }
        }
        for row in rows {
            match row {
                Row::Span(span) if span.flags & flag::SUMMED == 0 => self.span(span),
                Row::FileRollup(row) => self.sums(row),
                Row::Block(block) if !self.summed => self.block(block),
                Row::Loss(loss) => self.lost.add(loss),
                Row::Coverage(verdict) if !verdict.symbol.is_empty() => {
                    *self.probes.entry((verdict.layer, verdict.status)).or_default() += 1;
                }
                Row::Process(process) => {
                    if process.end_ns.is_none() {
                        self.processes.insert(process.process_ix);
                    } else {
                        self.processes.remove(&process.process_ix);
                    }
                }
                Row::Metric(metric) => self.total(metric),
                _ => {}
            }
        }
    }

    fn file(&mut self, file: &File) {
        let scope = file.mount_id.and_then(|id| self.scopes.get(&id)).copied().unwrap_or_default();
        let fs = FsKind { fs: file.fstype.clone().unwrap_or_default(), scope };
        let known = self.fs_kinds.iter().position(|p| *p == fs);
        let ix = known.unwrap_or_else(|| {
            if self.fs_kinds.len() < MAX_FS_KINDS {
                self.fs_kinds.push(fs);
                return self.fs_kinds.len() - 1;
            }
            // The last one, for all that found no room.
            if self.fs_kinds.len() == MAX_FS_KINDS {
                self.fs_kinds.push(FsKind { fs: OTHER.to_owned(), scope: "" });
            }
            MAX_FS_KINDS
        });
        self.files.set(file.file_id, ix);
    }

    fn span(&mut self, span: &Span) {
        let fs = self.files.get(span.file_id) as FsIx;
        let sums = Figures::of(span).sums();
        if span.layer_top {
            let op = self.ops.entry((span.layer, span.op, fs)).or_default();
            op.durations.add(span.net_ns());
        }
        if let Some(speed) = span.speed {
            *self.speeds.entry((span.layer, span.op, speed)).or_default() += 1;
        }
        self.add(span.layer, span.op, span.kind, fs, &sums);
    }

    /// Adds all but durations.
    fn add(&mut self, layer: Layer, op: &'static str, kind: Kind, fs: FsIx, sums: &Sums) {
        let of = self.ops.entry((layer, op, fs)).or_default();
        of.self_ns += u128::from(unsigned(sums.self_ns));
        of.failed += unsigned(sums.errors);
        if is_data(kind) && sums.calls > 0 {
            let bytes = self.bytes.entry((layer, fs)).or_default();
            bytes[0] += unsigned(sums.bytes_read);
            bytes[1] += unsigned(sums.bytes_written);
        }
    }

    /// Calls or requests that were summed up.
    fn sums(&mut self, row: &FileRollup) {
        let sums = Figures::of_sum(row).sums();
        if let Some(device) = &row.device {
            let known = self.requests.keys().any(|(name, _)| name == device);
            let names = self.requests.keys().map(|(name, _)| name).collect::<HashSet<_>>().len();
            let name = if known || names < MAX_DEVICES { device.clone() } else { OTHER.to_owned() };
            if is_data(row.kind) {
                let bytes = self.device_bytes.entry(name.clone()).or_default();
                bytes[0] += unsigned(sums.bytes_read);
                bytes[1] += unsigned(sums.bytes_written);
            }
            let requests = self.requests.entry((name, row.op)).or_default();
            requests.durations.add_bins(row.durations.as_deref().unwrap_or_default(), row.calls, row.dur_ns);
            requests.failed += unsigned(row.errors);
            requests.queue_ns += u128::from(unsigned(row.wait_ns));
            return;
        }
        let fs = self.files.get(row.file_id) as FsIx;
        let op = self.ops.entry((row.layer, row.op, fs)).or_default();
        op.durations.add_bins(row.durations.as_deref().unwrap_or_default(), row.calls, row.dur_ns);
        self.add(row.layer, row.op, row.kind, fs, &sums);
    }

    fn block(&mut self, block: &Block) {
        // Not over when the trace ended.
        let Some((kind, figures)) = Figures::of_request(block) else { return };
        // What it is called first: its totals must not be cut in two.
        if !self.devices.contains_key(&block.dev) {
            let known: HashSet<&String> = self.devices.values().collect();
            let name = block.device_name();
            let name = if known.len() < MAX_DEVICES || known.contains(&name) { name } else { OTHER.to_owned() };
            self.devices.insert(block.dev, name);
        }
        let name = self.devices.get(&block.dev).cloned().unwrap_or_default();
        // The kernel counts what a failed one asked for, too (/sys/block/*/stat).
        if is_data(kind) {
            let at = usize::from(kind == Kind::Write);
            self.device_bytes.entry(name.clone()).or_default()[at] += u64::try_from(block.bytes).unwrap_or(0);
        }
        let requests = self.requests.entry((name, block.op)).or_default();
        requests.durations.add(figures.inclusive_ns);
        requests.failed += unsigned(figures.errors);
        requests.queue_ns += u128::from(unsigned(block.issue_ns.saturating_sub(block.queue_ns)));
    }

    /// These are totals already.
    fn total(&mut self, metric: &Metric) {
        match metric.name {
            HOOKS_NS | TRACING_NS | HELD_NS => self.tracing.add(metric),
            "excluded_calls" | "excluded_faults" | "unplaced_calls" | "unplaced_faults" => {
                let total = self.left_out.entry(metric.name).or_default();
                *total = (*total).max(metric.value as u64);
            }
            _ => {}
        }
    }

    /// What programs have called themselves since the last time.
    pub fn add_own(&mut self, since: &OwnCalls) {
        self.own.merge(since);
    }

    /// What programs called themselves, by rank: empty of those without one.
    pub fn own(&self) -> impl Iterator<Item = (String, &Sums)> {
        let label = |rank: Option<i32>| rank.map_or_else(String::new, |rank| rank.to_string());
        let other = self.own.other().map(|sums| (OTHER.to_owned(), sums));
        self.own.by_rank().map(move |(rank, sums)| (label(rank), sums)).chain(other)
    }

    /// What rules find now.
    pub fn set_findings(&mut self, now: &Findings) {
        let of =
            |id| now.findings.iter().filter(|f| f.rule == id).filter_map(|f| f.seconds).fold(0.0, |sum, s| sum + s);
        self.findings = now.trusted.then(|| RULES.iter().map(|rule| (rule.id, of(rule.id))).collect());
    }

    /// Wall time of the last minute that each rule explains, in seconds; nothing where it is not known.
    pub fn findings(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.findings.iter().flatten().copied()
    }

    fn fs(&self, ix: FsIx) -> &FsKind {
        &self.fs_kinds[usize::from(ix)]
    }

    /// By layer, operation and kind of file system, in this order.
    pub fn ops(&self) -> Vec<(Layer, &'static str, &FsKind, &Op)> {
        let of = |(key, op)| {
            let (layer, name, fs): &(Layer, &'static str, FsIx) = key;
            (*layer, *name, self.fs(*fs), op)
        };
        let mut ops: Vec<_> = self.ops.iter().map(of).collect();
        ops.sort_by_key(|(layer, name, fs, _)| (*layer, *name, *fs));
        ops
    }

    /// Calls by layer, operation and class against earlier runs.
    pub fn speeds(&self) -> impl Iterator<Item = (Layer, &'static str, &'static str, u64)> {
        self.speeds.iter().map(|((layer, op, speed), n)| (*layer, *op, *speed, *n))
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> impl Iterator<Item = (Layer, &FsKind, [u64; 2])> {
        self.bytes.iter().map(|((layer, fs), bytes)| (*layer, self.fs(*fs), *bytes))
    }

    pub fn requests(&self) -> impl Iterator<Item = (&str, &'static str, &Requests)> {
        self.requests.iter().map(|((device, op), requests)| (device.as_str(), *op, requests))
    }

    /// Bytes read and written.
    pub fn device_bytes(&self) -> impl Iterator<Item = (&str, [u64; 2])> {
        self.device_bytes.iter().map(|(device, bytes)| (device.as_str(), *bytes))
    }

    pub fn lost(&self) -> impl Iterator<Item = (Option<Layer>, &'static str, u64)> {
        self.lost.iter().map(|(layer, place, lost)| (layer, place, u64::try_from(lost.count).unwrap_or(0)))
    }

    pub fn left_out_calls(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.left_out.iter().map(|(what, n)| (*what, *n))
    }

    pub fn probes(&self) -> impl Iterator<Item = (Layer, &'static str, u64)> {
        self.probes.iter().map(|((layer, status), n)| (*layer, *status, *n))
    }

    /// Those that have not ended.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }
}
