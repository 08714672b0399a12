//! Facts of the whole run that rules compare with: how long it was, what large transfers cost, who else used its devices.

use std::collections::BTreeSet;

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::HashMap;
use crate::analysis::findings::groups::Groups;
use crate::analysis::findings::groups::group::Group;
use crate::analysis::findings::groups::limits::{Limit, Limits};
use crate::analysis::findings::lanes::Lane;
use crate::analysis::findings::written::{OwnWriteBack, Written};
use crate::base::hist::{Histogram, TABLE_BITS};
use crate::rows::{Block, BlockBytes, Meta, TRACER_PID};
use crate::vocabulary::{Kind, Layer};

/// What is known of a run.
pub struct Run {
    /// Seconds.
    pub wall: f64,
    /// By how much tracing has lengthened it.
    pub tracing: f64,
    /// It was on one node.
    pub one_node: bool,
    pub lane: Lane,
    /// Bytes per second of large reads, and of large writes, where there were some.
    bandwidth: [Option<f64>; 2],
    /// The same of direct ones.
    direct: Option<f64>,
    pub others: Option<OtherProcess>,
    pub swapped: Swapped,
    /// What the processes of the lane read from devices themselves.
    pub device_reads: DeviceReads,
    /// Bytes that anybody read from devices, and how long the requests were in them, in seconds.
    pub all_reads: (i64, f64),
    /// Bytes of traced processes that were written to devices, by file.
    pub written: HashMap<i32, i64>,
    pub own_write_back: OwnWriteBack,
    /// Bytes of write-back that traced processes had made dirty, and those of others.
    pub written_back: [i64; 2],
}

/// Reads from devices by a process.
#[derive(Debug, Clone, Default)]
pub struct DeviceReads {
    pub requests: i64,
    pub bytes: i64,
    /// Pieces of the device, each of one or more requests that begin where the one before ended.
    pub pieces: i64,
    /// Pieces that begin before the end of the one before.
    pub backward: i64,
    /// From the queue to completion, one after the other.
    pub seconds: f64,
    next: (i32, i64),
    /// From the queue to completion, in ns.
    times: Histogram<TABLE_BITS>,
}

impl DeviceReads {
    fn add(&mut self, block: &Block) {
        let sectors = i64::from(block.bytes) / 512;
        self.pieces = self.pieces.saturating_add(i64::from(self.next != (block.dev, block.sector)));
        let back = self.next.0 == block.dev && block.sector < self.next.1;
        self.backward = self.backward.saturating_add(i64::from(back));
        self.next = (block.dev, block.sector.saturating_add(sectors));
        self.requests = self.requests.saturating_add(1);
        self.bytes = self.bytes.saturating_add(i64::from(block.bytes));
        self.seconds += waited(block);
        self.times.add((waited(block) * 1e9) as i64);
    }

    /// Seconds that the cheapest tenth of the requests take at most.
    pub fn cheapest(&self) -> f64 {
        self.times.quantile(0.1).map_or(0.0, |ns| ns as f64 / 1e9)
    }

    fn merge(&mut self, later: &Self) {
        self.requests = self.requests.saturating_add(later.requests);
        self.bytes = self.bytes.saturating_add(later.bytes);
        self.pieces = self.pieces.saturating_add(later.pieces);
        self.backward = self.backward.saturating_add(later.backward);
        self.seconds += later.seconds;
        self.times.merge(&later.times);
    }
}

/// Seconds from the queue to completion.
fn waited(block: &Block) -> f64 {
    block.issue_ns.saturating_sub(block.queue_ns).saturating_add(block.dur_ns.unwrap_or(0)) as f64 / 1e9
}

/// Reads from swap space by traced processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Swapped {
    pub requests: i64,
    pub bytes: i64,
    /// From the queue to completion, one after the other.
    pub seconds: f64,
}

/// Transfers from this size on show what a file system can do.
const LARGE: f64 = 262_144.0;
/// Bytes per second of a copy to or from the page cache where the trace has no large transfers: the lowest and the highest.
pub const USUAL: (f64, f64) = (0.5e9, 4e9);
/// The same of devices, from disks to flash.
const USUAL_DIRECT: (f64, f64) = (0.15e9, 2e9);

impl Run {
    pub fn new(
        groups: &Groups,
        lane: Lane,
        (duration_ns, tracing, nodes): (i64, f64, usize),
        others: &Others,
        traced: &RoaringBitmap,
    ) -> Self {
        let bandwidth = [Kind::Read, Kind::Write].map(|kind| {
            bandwidth_of(groups, &|group| group.key.kind == kind && !group.key.synced && !group.key.direct)
        });
        let direct = bandwidth_of(groups, &|group| group.key.direct);
        let mut device_reads = DeviceReads::default();
        let pids = lane.processes.keys().filter_map(|ix| groups.processes.get(ix)).map(|busy| busy.pid);
        for pid in pids.collect::<BTreeSet<_>>() {
            others.reads.get(&pid).into_iter().for_each(|reads| device_reads.merge(reads));
        }
        let all = others.reads.values();
        let all_reads = all.fold((0_i64, 0.0), |(n, s), reads| (n.saturating_add(reads.bytes), s + reads.seconds));
        let written = others.written.files().clone();
        let own_write_back = others.written.own_write_back(groups, traced, BIN);
        let written_back = others.written.back;
        let (others, swapped) = (others.greatest(traced), others.swapped(traced));
        let wall = duration_ns as f64 / 1e9;
        let tracing = tracing * wall;
        Self {
            wall,
            tracing,
            one_node: nodes < 2,
            lane,
            bandwidth,
            direct,
            others,
            swapped,
            device_reads,
            all_reads,
            written,
            own_write_back,
            written_back,
        }
    }

    /// Seconds in which the critical lane was in no call.
    pub fn outside(&self) -> f64 {
        (self.wall - self.lane.busy as f64 / 1e9).max(0.0)
    }

    /// Seconds that moving so many bytes past the page cache in large calls takes: at best, and at worst.
    pub fn direct(&self, bytes: i64) -> (f64, f64) {
        let (slow, fast) = self.direct.map_or(USUAL_DIRECT, |rate| (rate * 0.7, rate * 1.3));
        (bytes as f64 / fast, bytes as f64 / slow)
    }

    /// Seconds that moving so many bytes in large calls takes: at best, and at worst.
    pub fn transfer(&self, kind: Kind, bytes: i64) -> (f64, f64) {
        let measured = self.bandwidth[usize::from(kind == Kind::Write)];
        let (slow, fast) = measured.map_or(USUAL, |rate| (rate * 0.7, rate * 1.3));
        (bytes as f64 / fast, bytes as f64 / slow)
    }
}

/// Bytes per second of large transfers.
fn bandwidth_of(groups: &Groups, wanted: &dyn Fn(&Group) -> bool) -> Option<f64> {
    let large = groups.all.iter().filter(|group| {
        // Of operations that another thread carries out the time is not known.
        let timed = group.key.layer == Layer::Syscall && group.total() > 0;
        timed && matches!(group.key.kind, Kind::Read | Kind::Write) && group.mean_size() >= LARGE && wanted(group)
    });
    let (bytes, ns) = large.fold((0_i64, 0_i64), |(bytes, ns), group| {
        (bytes.saturating_add(group.bytes), ns.saturating_add(group.total()))
    });
    (bytes > 0 && ns > 0).then(|| bytes as f64 * 1e9 / ns as f64)
}

/// Another process that used the same devices at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherProcess {
    pub pid: i32,
    pub device: String,
    /// Of the bytes of the device while the traced processes used it: 0 to 1.
    pub share: f64,
}

/// Bytes of requests in this time count together, in ns.
const BIN: i64 = 100_000_000;
/// Sectors that a device can have here: 4 PiB.
const SECTORS_MAX: i64 = 1 << 43;
/// Sectors of 512 bytes in a page.
const SECTORS: i64 = 8;
/// Bins and processes that are kept.
const KEPT_MAX: usize = 1 << 20;

/// Requests by device, process and time.
#[derive(Debug, Clone, Default)]
pub struct Others {
    bytes: HashMap<(i32, i64, i32), i64>,
    names: HashMap<i32, String>,
    /// Reads by process.
    reads: HashMap<i32, DeviceReads>,
    /// Reads from swap space by process.
    swap: HashMap<i32, Swapped>,
    /// Pages of devices that were swapped out to.
    swap_space: RoaringTreemap,
    written: Written,
    /// Pids of tracers, which read ahead for programs: nobody waits because of that.
    tracers: RoaringBitmap,
    /// There were more bins and processes: nothing is known of any.
    full: bool,
}

impl Others {
    /// Keeps so many files, and requests by time.
    pub fn limited(most: usize) -> Self {
        Self { written: Written::limited(most), ..Self::default() }
    }

    /// The limits that were reached.
    pub const fn limits(&self) -> Limits {
        let mut all = self.written.limits();
        if self.full {
            all.reach(Limit::Requests);
        }
        all
    }

    pub fn block(&mut self, block: &Block) {
        if block.upper_dev.is_some() || block.bytes <= 0 || block.sector < 0 || self.full {
            return;
        }
        if self.bytes.len() >= KEPT_MAX {
            let (swap_space, tracers) = (std::mem::take(&mut self.swap_space), std::mem::take(&mut self.tracers));
            *self = Self { full: true, swap_space, tracers, written: self.written.empty(), ..Self::default() };
            return;
        }
        self.swapped_request(block);
        self.written.block(block);
        // Write-back of an earlier time is of no process that waits now.
        if (block.class != "sync" && block.class != "readahead") || self.tracers.contains(block.pid as u32) {
            return;
        }
        if block.op == "read" {
            self.reads.entry(block.pid).or_default().add(block);
        }
        if let Some(name) = &block.device {
            self.names.entry(block.dev).or_insert_with(|| name.clone());
        }
        let sum = self.bytes.entry((block.dev, block.issue_ns.div_euclid(BIN), block.pid)).or_default();
        *sum += i64::from(block.bytes);
    }

    /// Takes a fact of the trace: who traced.
    pub fn meta(&mut self, meta: &Meta) {
        if meta.key == TRACER_PID {
            self.tracers.extend(meta.value.parse::<u32>());
        }
    }

    /// Were there writes, whose owners matter?
    pub fn has_writes(&self) -> bool {
        self.written.has_writes()
    }

    /// Whose some bytes of a request are that has come, and of which file.
    pub fn bytes(&mut self, part: &BlockBytes, file: Option<i32>) {
        self.written.bytes(part, file);
    }

    /// The requests so far: those that come next are of another time.
    #[must_use]
    pub fn split(&mut self) -> Self {
        let (bytes, swap) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.swap));
        let (reads, written) = (std::mem::take(&mut self.reads), self.written.split());
        let full = std::mem::take(&mut self.full);
        let (names, tracers) = (self.names.clone(), self.tracers.clone());
        Self { bytes, swap, reads, written, tracers, full, names, swap_space: RoaringTreemap::new() }
    }

    /// Adds the requests of another time.
    pub fn merge(&mut self, later: &Self) {
        self.full |= later.full;
        for (key, bytes) in &later.bytes {
            let sum = self.bytes.entry(*key).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        for (pid, more) in &later.reads {
            self.reads.entry(*pid).or_default().merge(more);
        }
        for (pid, more) in &later.swap {
            let swapped = self.swap.entry(*pid).or_default();
            swapped.requests = swapped.requests.saturating_add(more.requests);
            swapped.bytes = swapped.bytes.saturating_add(more.bytes);
            swapped.seconds += more.seconds;
        }
        self.written.merge(&later.written);
        self.tracers |= &later.tracers;
        self.names.extend(later.names.iter().map(|(dev, name)| (*dev, name.clone())));
    }

    /// The kernel marks only the writes to swap space: a read of what was written there brings it back.
    fn swapped_request(&mut self, block: &Block) {
        if !(0..SECTORS_MAX).contains(&block.sector) || block.dev < 0 {
            return;
        }
        let page = |sector: i64| ((block.dev as u64) << 40) | (sector / SECTORS) as u64;
        let (first, last) = (page(block.sector), page(block.sector + i64::from(block.bytes) / 512));
        if block.class == "swap" && block.op == "write" {
            self.swap_space.insert_range(first..last);
        } else if block.op == "read" && self.swap_space.contains(first) {
            let swapped = self.swap.entry(block.pid).or_default();
            swapped.requests += 1;
            swapped.bytes += i64::from(block.bytes);
            swapped.seconds += waited(block);
        }
    }

    /// What the traced process that read most from swap space read.
    fn swapped(&self, traced: &RoaringBitmap) -> Swapped {
        let of_traced = self.swap.iter().filter(|(pid, _)| traced.contains(**pid as u32));
        of_traced
            .max_by_key(|(pid, swapped)| (swapped.requests, **pid))
            .map(|(_, swapped)| *swapped)
            .unwrap_or_default()
    }

    /// On the device that traced processes used most: the other process with the greatest share of what it moved at
    /// the same time.
    fn greatest(&self, traced: &RoaringBitmap) -> Option<OtherProcess> {
        let is_traced = |pid: i32| traced.contains(pid as u32);
        let mut own = HashMap::<(i32, i64), i64>::default();
        let mut devices = HashMap::<i32, i64>::default();
        for ((dev, bin, _), bytes) in self.bytes.iter().filter(|((.., pid), _)| is_traced(*pid)) {
            *own.entry((*dev, *bin)).or_default() += bytes;
            *devices.entry(*dev).or_default() += bytes;
        }
        let (dev, _) = devices.into_iter().max_by_key(|(dev, bytes)| (*bytes, *dev))?;
        let mut others = HashMap::<i32, i64>::default();
        for ((of, bin, pid), bytes) in &self.bytes {
            if *of == dev && *pid > 0 && !is_traced(*pid) && own.contains_key(&(dev, *bin)) {
                *others.entry(*pid).or_default() += bytes;
            }
        }
        let (pid, bytes) = others.into_iter().max_by_key(|(pid, bytes)| (*bytes, *pid))?;
        let own: i64 = own.iter().filter(|((of, _), _)| *of == dev).map(|(_, bytes)| *bytes).sum();
        let device = self.names.get(&dev).cloned().unwrap_or_else(|| dev.to_string());
        Some(OtherProcess { pid, device, share: bytes as f64 / (bytes + own).max(1) as f64 })
    }
}
