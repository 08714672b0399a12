//! What became of writes on devices: bytes by file, and what write-back of the traced processes' own data did to their reads.

use std::collections::BTreeSet;

use roaring::RoaringBitmap;

use crate::HashMap;
use crate::rows::{Block, BlockBytes};

/// Write requests, files and bins that are kept, each.
const KEPT_MAX: usize = 1 << 19;

/// A write request whose owners come after it.
#[derive(Debug, Clone, Copy)]
struct Request {
    place: (i32, i64),
    write_back: bool,
}

/// Reads of a process in a bin of time: how many, and the seconds from the queue to completion.
type Reads = (i64, f64);

/// Writes of files on devices, by file and by time.
#[derive(Debug, Clone, Default)]
pub struct Written {
    requests: HashMap<i64, Request>,
    /// Bytes by file.
    files: HashMap<i32, i64>,
    /// Bytes of write-back of traced processes, by device and bin.
    own: HashMap<(i32, i64), i64>,
    /// By device, bin and process.
    reads: HashMap<(i32, i64, i32), Reads>,
}

/// Reads while write-back of the same processes' data was in the device, and reads without.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OwnWriteBack {
    pub beside: Reads,
    pub alone: Reads,
    /// Bins of time with both.
    pub bins: i64,
    pub bytes: i64,
}

impl OwnWriteBack {
    /// By how much a read takes longer beside write-back.
    pub fn times(&self) -> f64 {
        let mean = |(reads, seconds): Reads| seconds / reads.max(1) as f64;
        mean(self.beside) / mean(self.alone).max(1e-9)
    }
}

impl Written {
    /// A request in a bin of time; `seconds`: how long it took.
    pub fn block(&mut self, block: &Block, bin: i64, seconds: f64) {
        if block.op == "write" && self.requests.len() < KEPT_MAX {
            let write_back = block.class == "writeback";
            self.requests.insert(block.req_id, Request { place: (block.dev, bin), write_back });
        }
        let key = (block.dev, bin, block.pid);
        if block.op == "read" && (self.reads.len() < KEPT_MAX || self.reads.contains_key(&key)) {
            let sum = self.reads.entry(key).or_default();
            (sum.0, sum.1) = (sum.0.saturating_add(1), sum.1 + seconds);
        }
    }

    /// Whose some bytes of a request are.
    pub fn bytes(&mut self, part: &BlockBytes) {
        let Some(request) = self.requests.get(&part.req_id) else { return };
        if let Some(file) = part.file_id.filter(|file| self.files.len() < KEPT_MAX || self.files.contains_key(file)) {
            let sum = self.files.entry(file).or_default();
            *sum = sum.saturating_add(part.bytes);
        }
        if request.write_back && part.process_ix.is_some() {
            let sum = self.own.entry(request.place).or_default();
            *sum = sum.saturating_add(part.bytes);
        }
    }

    /// Those so far: the owners of their requests have come.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self { requests: HashMap::default(), ..std::mem::take(self) }
    }

    /// Those of another time.
    pub fn merge(&mut self, later: &Self) {
        for (file, bytes) in &later.files {
            let sum = self.files.entry(*file).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        for (place, bytes) in &later.own {
            let sum = self.own.entry(*place).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        for (key, reads) in &later.reads {
            let sum = self.reads.entry(*key).or_default();
            (sum.0, sum.1) = (sum.0.saturating_add(reads.0), sum.1 + reads.1);
        }
    }

    /// Bytes that were written to devices, by file.
    pub const fn files(&self) -> &HashMap<i32, i64> {
        &self.files
    }

    /// On the device that traced processes had most reads from.
    pub fn own_write_back(&self, traced: &RoaringBitmap) -> OwnWriteBack {
        let of_traced = || self.reads.iter().filter(|((.., pid), _)| traced.contains(*pid as u32));
        let mut devices = HashMap::<i32, i64>::default();
        for ((dev, ..), reads) in of_traced() {
            let sum = devices.entry(*dev).or_default();
            *sum = sum.saturating_add(reads.0);
        }
        let Some((dev, _)) = devices.into_iter().max_by_key(|(dev, reads)| (*reads, *dev)) else {
            return OwnWriteBack::default();
        };
        let (mut all, mut bins) = (OwnWriteBack::default(), BTreeSet::new());
        for ((_, bin, _), reads) in of_traced().filter(|((of, ..), _)| *of == dev) {
            let written = self.own.get(&(dev, *bin)).copied().unwrap_or(0);
            let sum = if written > 0 { &mut all.beside } else { &mut all.alone };
            (sum.0, sum.1) = (sum.0.saturating_add(reads.0), sum.1 + reads.1);
            if written > 0 && bins.insert(*bin) {
                all.bytes = all.bytes.saturating_add(written);
            }
        }
        all.bins = bins.len() as i64;
        all
    }
}
