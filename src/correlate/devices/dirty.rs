//! The last writer of each dirty byte of a file, until the byte reaches the device.

use std::collections::{BTreeMap, VecDeque};

use crate::HashMap;

/// Ranges remembered; the oldest go first.
const MAX_RANGES: usize = 256 << 10;
/// So many entries of ranges that are gone are not worth a look.
const FEW: usize = 4096;

/// What becomes dirty together, at least.
const PAGE: u64 = 4096;

/// A thread, and the call or operation that it was in, if any was traced: its number, and that of the call whose tree it is
/// in, which is its own or the one that submitted it.
pub type Writer = (u32, Option<(u32, u32)>);

/// How exactly the writer of some bytes is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attribution {
    /// A call wrote these bytes.
    Range,
    /// It dirtied the page that they are in.
    Page,
    /// They share a page with what it wrote.
    Beside,
    /// It wrote to the file, of which more was dirty than could be remembered.
    Inode,
    /// Not at all: by an untraced process, or before the trace.
    No,
}

impl Attribution {
    /// The name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Page | Self::Beside => "page",
            Self::Inode => "inode",
            Self::No => "none",
        }
    }
}

/// Bytes of one writer, or of an unknown one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub writer: Option<Writer>,
    pub known: Attribution,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    end: u64,
    writer: Writer,
    /// When the write began, and returned.
    began: u64,
    at: u64,
    /// Whole pages are meant.
    pages: bool,
    /// A number that no other range of now has.
    number: u32,
}

/// Dirty ranges by file and first byte.
#[derive(Default)]
pub struct Dirty {
    files: HashMap<i32, BTreeMap<u64, Range>>,
    count: usize,
    /// File, first byte and number in the order of writing; entries of ranges that are gone stay until they are met.
    oldest: VecDeque<(i32, u64, u32)>,
    numbers: u32,
    /// Files of which ranges had to be forgotten, and the writer of the last of these.
    cut: HashMap<i32, Writer>,
}

impl Dirty {
    /// A write returned; the last writer owns the bytes. Returns how many old ranges had to be forgotten.
    pub fn wrote(&mut self, file: i32, off: u64, bytes: u64, writer: Writer, [began, at]: [u64; 2]) -> usize {
        self.add(file, off, bytes, (writer, [began, at], false))
    }

    /// Pages became dirty; which of their bytes were written is not known.
    pub fn dirtied(&mut self, file: i32, off: u64, bytes: u64, writer: Writer, at: u64) -> usize {
        self.add(file, off, bytes, (writer, [at; 2], true))
    }

    fn add(
        &mut self,
        file: i32,
        off: u64,
        bytes: u64,
        (writer, [began, at], pages): (Writer, [u64; 2], bool),
    ) -> usize {
        let end = off.saturating_add(bytes);
        if off == end {
            return 0;
        }
        self.clear(file, off, end, u64::MAX);
        self.insert(file, off, Range { end, writer, began, at, pages, number: 0 });
        let mut dropped = 0;
        while self.count > MAX_RANGES {
            let Some((file, start, number)) = self.oldest.pop_front() else { break };
            if let Some(writer) = self.get(file, start, number).map(|range| range.writer) {
                self.remove(file, start);
                self.cut.insert(file, writer);
                dropped += 1;
            }
        }
        dropped
    }

    /// Whose the bytes of a range are, by the writes that returned by `until`: each byte in one part.
    pub fn parts(&self, file: i32, off: u64, end: u64, until: u64) -> Vec<Part> {
        self.divide(file, off, end, &self.overlapping(file, off, end, |r| r.at <= until))
    }

    /// The same, once writes have returned that were still going on then.
    pub fn parts_begun(&self, file: i32, off: u64, end: u64, until: u64) -> Vec<Part> {
        self.divide(file, off, end, &self.overlapping(file, off, end, |r| r.began <= until))
    }

    fn divide(&self, file: i32, off: u64, end: u64, ranges: &[(u64, Range)]) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut from = off;
        let mut last: Option<(u64, Writer)> = None;
        for &(start, range) in ranges {
            let start = start.max(off);
            self.gap(file, from..start, [last, Some((start, range.writer))], &mut parts);
            from = range.end.min(end);
            let known = if range.pages { Attribution::Page } else { Attribution::Range };
            parts.push(Part { writer: Some(range.writer), known, bytes: from - start });
            last = Some((from, range.writer));
        }
        self.gap(file, from..end, [last, None], &mut parts);
        parts
    }

    /// Bytes that no range covers. The rest of a page goes to the writer of the bytes beside it.
    fn gap(
        &self,
        file: i32,
        gap: std::ops::Range<u64>,
        [before, after]: [Option<(u64, Writer)>; 2],
        parts: &mut Vec<Part>,
    ) {
        let mut push = |writer: Option<Writer>, known: Attribution, bytes: u64| {
            if bytes > 0 {
                parts.push(Part { writer, known, bytes });
            }
        };
        // To the end of the page that the range before ends in; from the beginning of that in which the next one starts.
        let page_end = |at: u64| at.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        let head = before.map_or(gap.start, |(at, _)| page_end(at).clamp(gap.start, gap.end));
        let tail = after.map_or(gap.end, |(at, _)| (at / PAGE * PAGE).clamp(head, gap.end));
        push(before.map(|(_, writer)| writer), Attribution::Beside, head - gap.start);
        let cut = self.cut.get(&file).copied();
        push(cut, if cut.is_some() { Attribution::Inode } else { Attribution::No }, tail - head);
        push(after.map(|(_, writer)| writer), Attribution::Beside, gap.end - tail);
    }

    /// Forgets what of the range was written by `until`.
    pub fn clear(&mut self, file: i32, off: u64, end: u64, until: u64) {
        for (start, range) in self.overlapping(file, off, end, |r| r.at <= until) {
            self.remove(file, start);
            if start < off {
                self.insert(file, start, Range { end: off, ..range });
            }
            if range.end > end {
                self.insert(file, end, range);
            }
        }
    }

    /// A file without a name and without an open handle is never written back.
    pub fn forget(&mut self, file: i32) {
        self.count -= self.files.remove(&file).map_or(0, |ranges| ranges.len());
        self.cut.remove(&file);
    }

    fn overlapping(&self, file: i32, off: u64, end: u64, is: impl Fn(&Range) -> bool) -> Vec<(u64, Range)> {
        let Some(ranges) = self.files.get(&file) else { return Vec::new() };
        // Ranges do not overlap each other, so only the last one that begins before can reach in.
        let first = ranges.range(..off).next_back().filter(|(_, r)| r.end > off).map_or(off, |(start, _)| *start);
        if first >= end {
            return Vec::new();
        }
        let inside = ranges.range(first..end).filter(|(_, r)| is(r));
        inside.map(|(start, range)| (*start, *range)).collect()
    }

    fn get(&self, file: i32, start: u64, number: u32) -> Option<&Range> {
        self.files.get(&file)?.get(&start).filter(|range| range.number == number)
    }

    fn insert(&mut self, file: i32, start: u64, range: Range) {
        if self.oldest.len() >= 2 * self.count + FEW {
            let mut kept = std::mem::take(&mut self.oldest);
            kept.retain(|(file, start, number)| self.get(*file, *start, *number).is_some());
            kept.shrink_to(2 * kept.len() + FEW);
            self.oldest = kept;
        }
        self.numbers = self.numbers.wrapping_add(1);
        self.oldest.push_back((file, start, self.numbers));
        self.files.entry(file).or_default().insert(start, Range { number: self.numbers, ..range });
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

    const A: Writer = (0, Some((1, 1)));
    const B: Writer = (0, None);

    fn writers(dirty: &Dirty, off: u64, end: u64, until: u64) -> Vec<(Writer, u64)> {
        let parts = dirty.parts(1, off, end, until).into_iter().filter(|p| p.known == Attribution::Range);
        parts.filter_map(|p| Some((p.writer?, p.bytes))).collect()
    }

    #[test]
    fn the_last_writer_owns_the_bytes() {
        let mut dirty = Dirty::default();
        dirty.wrote(1, 0, 100, A, [10; 2]);
        dirty.wrote(1, 40, 20, B, [20; 2]);
        assert_eq!(writers(&dirty, 0, 200, 99), [(A, 40), (B, 20), (A, 40)]);
        assert_eq!(writers(&dirty, 50, 70, 99), [(B, 10), (A, 10)]);
        assert_eq!(writers(&dirty, 0, 200, 15), [(A, 40), (A, 40)]);
        assert_eq!(writers(&dirty, 100, 200, 99), []);
    }

    #[test]
    fn a_write_that_had_not_returned_is_known_later() {
        let mut dirty = Dirty::default();
        dirty.wrote(1, 0, PAGE, A, [10, 30]);
        assert_eq!(dirty.parts(1, 0, PAGE, 20), [Part { writer: None, known: Attribution::No, bytes: PAGE }]);
        let all = Part { writer: Some(A), known: Attribution::Range, bytes: PAGE };
        assert_eq!(dirty.parts_begun(1, 0, PAGE, 20), [all]);
        assert_eq!(dirty.parts_begun(1, 0, PAGE, 9)[0].writer, None);
    }

    #[test]
    fn each_byte_is_in_one_part() {
        let part = |writer: Option<Writer>, known: Attribution, bytes: u64| Part { writer, known, bytes };
        let mut dirty = Dirty::default();
        assert_eq!(dirty.parts(1, 0, 4096, 99), [part(None, Attribution::No, 4096)]);
        dirty.wrote(1, 100, 50, A, [10; 2]);
        dirty.dirtied(1, 3 * PAGE, PAGE, B, 20);
        let parts = [
            part(Some(A), Attribution::Beside, 100),
            part(Some(A), Attribution::Range, 50),
            part(Some(A), Attribution::Beside, PAGE - 150),
            part(None, Attribution::No, 2 * PAGE),
            part(Some(B), Attribution::Page, PAGE),
            part(None, Attribution::No, PAGE),
        ];
        assert_eq!(dirty.parts(1, 0, 5 * PAGE, 99), parts);
        // Two writers in one page share what neither wrote: the first has it.
        dirty.wrote(1, 300, 20, B, [10; 2]);
        assert_eq!(dirty.parts(1, 150, 300, 99), [part(None, Attribution::No, 150)]);
        assert_eq!(dirty.parts(1, 120, 310, 99)[1], part(Some(A), Attribution::Beside, 150));
    }

    #[test]
    fn the_last_page_there_can_be_is_divided_too() {
        let mut dirty = Dirty::default();
        dirty.wrote(1, u64::MAX - 10, 10, A, [10; 2]);
        let parts = dirty.parts(1, u64::MAX - 20, u64::MAX, 99);
        assert_eq!(parts.iter().map(|p| (p.writer, p.bytes)).collect::<Vec<_>>(), [(Some(A), 10), (Some(A), 10)]);
    }

    #[test]
    fn only_what_was_written_before_is_cleared() {
        let mut dirty = Dirty::default();
        dirty.wrote(1, 0, 100, A, [10; 2]);
        dirty.wrote(1, 0, 50, B, [30; 2]);
        dirty.clear(1, 0, 80, 20);
        assert_eq!(writers(&dirty, 0, 100, 99), [(B, 50), (A, 20)]);
        dirty.clear(1, 0, 100, 99);
        assert_eq!((dirty.count, dirty.files.len()), (0, 0));
    }

    #[test]
    fn nothing_is_left_of_a_file_that_is_forgotten() {
        let mut dirty = Dirty::default();
        for file in 1..4 {
            dirty.wrote(file, 0, 10, A, [10; 2]);
            dirty.wrote(file, 20, 10, A, [10; 2]);
        }
        dirty.cut.insert(2, A);
        dirty.forget(2);
        dirty.forget(2);
        assert_eq!((dirty.count, dirty.files.len(), dirty.cut.len()), (4, 2, 0));
        assert_eq!(writers(&dirty, 0, 100, 99), [(A, 10), (A, 10)]);
    }

    #[test]
    fn the_oldest_ranges_are_forgotten_first() {
        let mut dirty = Dirty::default();
        let mut dropped = 0;
        for n in 0..MAX_RANGES as u64 + 3 {
            dropped += dirty.wrote(1, n * 10, 5, A, [n; 2]);
        }
        assert_eq!(dropped, 3);
        assert_eq!(writers(&dirty, 0, 40, u64::MAX), [(A, 5)]);
        let forgotten = Part { writer: Some(A), known: Attribution::Inode, bytes: PAGE };
        assert_eq!(dirty.parts(1, 100 * PAGE * PAGE, (100 * PAGE + 1) * PAGE, u64::MAX), [forgotten]);
    }

    #[test]
    fn what_is_written_again_and_again_is_remembered_once() {
        let mut dirty = Dirty::default();
        for n in 0..10 * FEW as u64 {
            // By no call that is known, as stores to a mapping are: the writer is the same each time.
            dirty.dirtied(1, n % 3 * PAGE, PAGE, B, n);
            assert!(dirty.oldest.len() <= 2 * dirty.count + FEW, "{} of {}", dirty.oldest.len(), dirty.count);
        }
        assert_eq!(dirty.count, 3);
    }
}
