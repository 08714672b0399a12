//! Which span last wrote which bytes of which file, until they reach the device.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Ranges remembered; the oldest go first.
const MAX_RANGES: usize = 256 << 10;

/// A call or an operation: thread, number, and the number of the call whose tree it is in, which is its own or the one that
/// submitted it.
pub type Writer = (u32, u32, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    end: u64,
    writer: Writer,
    /// When the write returned.
    at: u64,
}

/// Dirty ranges by file and first byte.
#[derive(Default)]
pub struct Dirty {
    files: HashMap<i32, BTreeMap<u64, Range>>,
    count: usize,
    /// In the order of writing; entries of ranges that are gone stay until they are met.
    oldest: VecDeque<(i32, u64, Writer)>,
}

impl Dirty {
    /// A write returned; the last writer owns the bytes. Returns how many old ranges had to be forgotten.
    pub fn wrote(&mut self, file: i32, off: u64, bytes: u64, writer: Writer, at: u64) -> usize {
        let end = off.saturating_add(bytes);
        if off == end {
            return 0;
        }
        self.clear(file, off, end, u64::MAX);
        self.insert(file, off, Range { end, writer, at });
        let mut dropped = 0;
        while self.count > MAX_RANGES {
            let Some((file, start, writer)) = self.oldest.pop_front() else { break };
            if self.is(file, start, writer) {
                self.remove(file, start);
                dropped += 1;
            }
        }
        dropped
    }

    /// The writers of the range whose writes returned by `until`, with the bytes of each.
    pub fn writers(&self, file: i32, off: u64, end: u64, until: u64) -> Vec<(Writer, u64)> {
        let overlap = |(start, r): (u64, Range)| (r.writer, r.end.min(end) - start.max(off));
        self.overlapping(file, off, end, until).into_iter().map(overlap).collect()
    }

    /// Forgets what of the range was written by `until`.
    pub fn clear(&mut self, file: i32, off: u64, end: u64, until: u64) {
        for (start, range) in self.overlapping(file, off, end, until) {
            self.remove(file, start);
            if start < off {
                self.insert(file, start, Range { end: off, ..range });
            }
            if range.end > end {
                self.insert(file, end, range);
            }
        }
    }

    fn overlapping(&self, file: i32, off: u64, end: u64, until: u64) -> Vec<(u64, Range)> {
        let Some(ranges) = self.files.get(&file) else { return Vec::new() };
        // Ranges do not overlap each other, so only the last one that begins before can reach in.
        let first = ranges.range(..off).next_back().filter(|(_, r)| r.end > off).map_or(off, |(start, _)| *start);
        if first >= end {
            return Vec::new();
        }
        let inside = ranges.range(first..end).filter(|(_, r)| r.at <= until);
        inside.map(|(start, range)| (*start, *range)).collect()
    }

    fn is(&self, file: i32, start: u64, writer: Writer) -> bool {
        self.files.get(&file).and_then(|f| f.get(&start)).is_some_and(|r| r.writer == writer)
    }

    fn insert(&mut self, file: i32, start: u64, range: Range) {
        if self.oldest.len() >= 2 * MAX_RANGES {
            let mut kept = std::mem::take(&mut self.oldest);
            kept.retain(|(file, start, writer)| self.is(*file, *start, *writer));
            self.oldest = kept;
        }
        self.oldest.push_back((file, start, range.writer));
        self.files.entry(file).or_default().insert(start, range);
        self.count += 1;
    }

    fn remove(&mut self, file: i32, start: u64) {
        if let Some(ranges) = self.files.get_mut(&file)
            && ranges.remove(&start).is_some()
        {
            self.count -= 1;
            if ranges.is_empty() {
                self.files.remove(&file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Writer = (0, 1, 1);
    const B: Writer = (0, 2, 2);

    #[test]
    fn the_last_writer_owns_the_bytes() {
        let mut dirty = Dirty::default();
        dirty.wrote(1, 0, 100, A, 10);
        dirty.wrote(1, 40, 20, B, 20);
        assert_eq!(dirty.writers(1, 0, 200, 99), [(A, 40), (B, 20), (A, 40)]);
        assert_eq!(dirty.writers(1, 50, 70, 99), [(B, 10), (A, 10)]);
        assert_eq!(dirty.writers(1, 0, 200, 15), [(A, 40), (A, 40)]);
        assert_eq!(dirty.writers(2, 0, 200, 99), []);
        assert_eq!(dirty.writers(1, 100, 200, 99), []);
    }

    #[test]
    fn only_what_was_written_before_is_cleared() {
        let mut dirty = Dirty::default();
        dirty.wrote(1, 0, 100, A, 10);
        dirty.wrote(1, 0, 50, B, 30);
        dirty.clear(1, 0, 80, 20);
        assert_eq!(dirty.writers(1, 0, 100, 99), [(B, 50), (A, 20)]);
        dirty.clear(1, 0, 100, 99);
        assert_eq!((dirty.count, dirty.files.len()), (0, 0));
    }

    #[test]
    fn the_oldest_ranges_are_forgotten_first() {
        let mut dirty = Dirty::default();
        let mut dropped = 0;
        for n in 0..MAX_RANGES as u64 + 3 {
            dropped += dirty.wrote(1, n * 10, 5, A, n);
        }
        assert_eq!(dropped, 3);
        assert_eq!(dirty.writers(1, 0, 40, u64::MAX), [(A, 5)]);
    }
}
