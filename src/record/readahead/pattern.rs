//! Reads of a file at a fixed distance: where the next ones are, and what came of reading these ahead.

use std::collections::VecDeque;

/// So many reads in a row have the same distance before any is read ahead.
const RUN: u32 = 4;
/// Of the last of them that were not read ahead, so many were not in the page cache.
const MISSED: u32 = 3;
/// How many reads are read ahead at first. It doubles each time, up to [`DEEPEST`].
const DEPTH: usize = 32;
const DEEPEST: usize = 4096;
/// Bytes that are read ahead and not read yet, of one handle.
pub const BYTES: u64 = 32 << 20;
/// Ranges that touch become one of at most this size: what the kernel reads ahead at a time by default.
pub const JOINED: u64 = 128 << 10;
/// After so many reads that were read ahead in time it must have helped.
const CHECK: u64 = 64;
/// It helps when this share of them is in the page cache, and takes this part of the time of the others.
const IN_CACHE: f64 = 0.5;
const FASTER: f64 = 0.8;

/// A read of a file by a program.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    pub offset: i64,
    pub bytes: i64,
    /// Some of it was not in the page cache.
    pub missed: bool,
    /// `CLOCK_MONOTONIC`.
    pub start_ns: i64,
    /// Without hooks.
    pub dur_ns: i64,
}

/// Bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub offset: u64,
    pub bytes: u64,
}

/// What was done about a read that is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The kernel was asked to read it, at this time.
    Asked(i64),
    /// It was in the page cache already.
    InCache,
    /// Nothing: the program was there before.
    Nothing,
}

/// What came of reading ahead.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// Reads that the kernel was asked for before the program read them, and their bytes.
    pub asked: u64,
    pub bytes: u64,
    /// Of these: the program read them from the page cache; they were not in it; the program read them before the kernel was
    /// asked; the program did not read them next.
    pub hits: u64,
    pub misses: u64,
    pub late: u64,
    pub unread: u64,
    /// By how much the hits were shorter than reads that were not read ahead.
    pub saved_ns: f64,
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.misses += other.misses;
        self.late += other.late;
        self.unread += other.unread;
        self.saved_ns += other.saved_ns;
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, ns: i64) {
        self.sum += ns as f64;
        self.count += 1;
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// The reads by one handle.
#[derive(Debug, Default)]
pub struct Reader {
    last: Option<Read>,
    /// From one read to the next, and how many in a row had it.
    distance: i64,
    run: u32,
    /// Whether the last reads that were not read ahead missed, one bit each.
    missed: u8,
    /// From the start of a read to that of the next.
    interval_ns: f64,
    /// The next reads.
    ahead: VecDeque<Done>,
    depth: usize,
    /// Durations of reads that missed, and of those that were read ahead and hit.
    cold: Mean,
    hot: Mean,
    counts: Counts,
    /// It did not help.
    off: bool,
}

impl Reader {
    /// What came of it, also for reads that have not come.
    pub fn counts(&self) -> Counts {
        let saved = self.cold.get().map_or(0.0, |cold| (cold * self.hot.count as f64 - self.hot.sum).max(0.0));
        Counts { unread: self.counts.unread + self.waiting(), saved_ns: saved, ..self.counts }
    }

    pub const fn is_off(&self) -> bool {
        self.off
    }

    /// Bytes that the kernel was asked for and that were not read yet.
    pub fn outstanding(&self) -> u64 {
        self.waiting() * self.last.map_or(0, |last| last.bytes.max(0) as u64)
    }

    fn waiting(&self) -> u64 {
        self.ahead.iter().filter(|done| matches!(done, Done::Asked(_))).count() as u64
    }

    /// Takes a read; in the order of time.
    pub fn read(&mut self, read: Read) {
        let Some(last) = self.last.replace(read) else { return };
        let distance = read.offset.saturating_sub(last.offset);
        let done = if distance == self.distance {
            self.run = self.run.saturating_add(1);
            let between = read.start_ns.saturating_sub(last.start_ns).max(0) as f64;
            self.interval_ns =
                if self.run == 1 { between } else { self.interval_ns + (between - self.interval_ns) / 8.0 };
            self.ahead.pop_front().unwrap_or(Done::Nothing)
        } else {
            self.counts.unread += self.waiting();
            self.ahead.clear();
            (self.distance, self.run, self.depth) = (distance, 0, 0);
            Done::Nothing
        };
        match done {
            Done::Asked(at) if read.start_ns < at => {
                self.counts.late += 1;
                self.alone(read);
            }
            Done::Asked(_) if read.missed => self.counts.misses += 1,
            Done::Asked(_) => {
                self.counts.hits += 1;
                self.hot.add(read.dur_ns);
            }
            Done::InCache => {}
            Done::Nothing => self.alone(read),
        }
        if self.counts.hits + self.counts.misses >= CHECK {
            self.off |= !self.helps();
        }
    }

    /// A read that was not read ahead.
    fn alone(&mut self, read: Read) {
        self.missed = self.missed << 1 | u8::from(read.missed);
        if read.missed {
            self.cold.add(read.dur_ns);
        }
    }

    fn helps(&self) -> bool {
        let judged = (self.counts.hits + self.counts.misses) as f64;
        let faster = self.hot.get().zip(self.cold.get()).is_some_and(|(hot, cold)| hot <= cold * FASTER);
        self.counts.hits as f64 >= judged * IN_CACHE && faster
    }

    /// Are the next reads known, and worth to be read ahead?
    pub fn wants(&self) -> bool {
        // The kernel itself reads ahead what follows.
        let fixed = self.last.is_some_and(|last| last.bytes > 0 && self.distance != last.bytes);
        let missed = || (self.missed & ((1 << RUN) - 1)).count_ones() >= MISSED;
        !self.off && self.run >= RUN && self.distance != 0 && fixed && (missed() || self.waiting() > 0)
    }

    /// Has what comes next read ahead, if that is worth it: of a file with `size` bytes, at most `bytes` more.
    pub fn look(&mut self, now_ns: i64, size: u64, bytes: u64, mut ask: impl FnMut(Range) -> Done) {
        let Some(last) = self.last.filter(|_| self.wants()) else { return };
        // The program has gone on since the last read that is known here.
        let since = now_ns.saturating_sub(last.start_ns).max(0) as f64;
        let passed = ((since / self.interval_ns.max(1.0)) as usize).min(DEEPEST);
        let room = (bytes.min(BYTES) / last.bytes as u64) as usize;
        let depth = self.depth.max(DEPTH).min(room);
        if self.ahead.len() >= passed + depth / 2 + usize::from(depth < 2) {
            return;
        }
        while self.ahead.len() < passed {
            self.ahead.push_back(Done::Nothing);
        }
        let ranges = self.next(last, size, passed + depth - self.ahead.len());
        let mut in_cache = 0;
        for (range, reads) in &ranges {
            let done = ask(*range);
            match done {
                Done::Asked(_) => {
                    self.counts.asked += *reads as u64;
                    self.counts.bytes += range.bytes;
                }
                Done::InCache => in_cache += 1,
                Done::Nothing => {}
            }
            self.ahead.extend(std::iter::repeat_n(done, *reads));
        }
        // Where all is in the page cache there is nothing to do until reads miss again.
        if in_cache * 8 > ranges.len() * 7 {
            self.missed = 0;
        }
        self.depth = (depth * 2).min(DEEPEST);
    }

    /// The next reads behind those that are known, those that touch as one range: with how many reads each is.
    fn next(&self, last: Read, size: u64, count: usize) -> Vec<(Range, usize)> {
        let mut ranges: Vec<(Range, usize)> = Vec::new();
        for n in (self.ahead.len() + 1..).take(count) {
            let offset = self.distance.checked_mul(n as i64).and_then(|far| last.offset.checked_add(far));
            let Some(offset) = offset.and_then(|at| u64::try_from(at).ok()).filter(|at| *at < size) else { break };
            let new = Range { offset, bytes: last.bytes as u64 };
            match ranges.last_mut() {
                Some((range, reads)) if offset + new.bytes == range.offset && range.bytes + new.bytes <= JOINED => {
                    *range = Range { offset, bytes: range.bytes + new.bytes };
                    *reads += 1;
                }
                _ => ranges.push((new, 1)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 30;
    const COLD: i64 = 100_000;
    const HOT: i64 = 2_000;

    /// A program that reads, and a kernel that has read in an instant.
    #[derive(Default)]
    struct Run {
        reader: Reader,
        cached: std::collections::BTreeSet<u64>,
        asked: Vec<Range>,
        now: i64,
    }

    impl Run {
        fn read(&mut self, offset: u64, bytes: i64) {
            let missed = !self.cached.contains(&offset);
            let dur_ns = if missed { COLD } else { HOT };
            self.reader.read(Read { offset: offset as i64, bytes, missed, start_ns: self.now, dur_ns });
            self.now += dur_ns;
        }

        fn look(&mut self) {
            let (cached, asked, now) = (&mut self.cached, &mut self.asked, self.now);
            self.reader.look(now, SIZE, BYTES, |range| {
                if cached.contains(&range.offset) {
                    return Done::InCache;
                }
                cached.extend((range.offset..range.offset + range.bytes).step_by(4096));
                asked.push(range);
                Done::Asked(now)
            });
        }
    }

    #[test]
    fn reads_at_a_fixed_distance_are_read_ahead_and_hit() {
        let mut run = Run::default();
        for n in 0..1000 {
            run.read(n << 20, 4096);
            run.look();
        }
        let counts = run.reader.counts();
        assert!((980..1000).contains(&counts.hits) && counts.misses == 0, "{counts:?}");
        assert_eq!(counts.asked, counts.hits + counts.late + counts.unread);
        assert_eq!(counts.bytes, counts.asked * 4096);
        assert!(counts.unread < 1024, "none behind the end of the file: {counts:?}");
        let each = counts.saved_ns / counts.hits as f64;
        assert!((each - (COLD - HOT) as f64).abs() < 1.0, "{counts:?}");
        assert!(!run.reader.is_off());
    }

    #[test]
    fn reads_backwards_are_joined() {
        let mut run = Run::default();
        for n in 0..600 {
            run.read((600 - n) * 4096, 4096);
            run.look();
        }
        assert!(run.reader.counts().hits > 580, "{:?}", run.reader.counts());
        assert!(run.asked.len() < 40, "{:?}", run.asked);
        assert!(run.asked.iter().all(|range| range.bytes <= JOINED));
    }

    #[test]
    fn what_the_kernel_reads_ahead_or_has_or_nobody_can_know_is_left_alone() {
        let mut forward = Run::default();
        (0..200).for_each(|n| {
            forward.read(n * 4096, 4096);
            forward.look();
        });
        let mut warm = Run { cached: (0..200).map(|n| n << 20).collect(), ..Run::default() };
        (0..200).for_each(|n| {
            warm.read(n << 20, 4096);
            warm.look();
        });
        let mut random = Run::default();
        (0..200_u64).for_each(|n| {
            random.read((n * n * 7919 % 100_003) * 4096, 4096);
            random.look();
        });
        for run in [forward, warm, random] {
            assert_eq!((run.asked.len(), run.reader.counts()), (0, Counts::default()));
        }
    }

    #[test]
    fn what_is_in_the_cache_already_is_no_hit() {
        // The first reads miss, all others are there.
        let mut run = Run { cached: (8..500).map(|n| n << 20).collect(), ..Run::default() };
        for n in 0..500 {
            run.read(n << 20, 4096);
            run.look();
        }
        assert!(run.reader.counts().hits < 8, "{:?}", run.reader.counts());
    }

    #[test]
    fn what_was_asked_for_counts_when_the_rest_is_in_the_cache() {
        let mut run = Run { cached: (100..1024).map(|n| n << 20).collect(), ..Run::default() };
        for n in 0..500 {
            run.read(n << 20, 4096);
            run.look();
        }
        let counts = run.reader.counts();
        assert!(counts.hits > 80, "{counts:?}");
        assert_eq!((counts.asked, counts.misses, counts.unread), (counts.hits + counts.late, 0, 0));
        assert!(!run.reader.wants(), "all is there");
    }

    #[test]
    fn a_look_that_is_late_begins_where_the_program_is() {
        let mut run = Run::default();
        (0..50).for_each(|n| run.read(n << 20, 4096));
        // The program has read 20 more.
        run.now += 20 * COLD;
        run.look();
        let first = run.asked.first().map(|range| range.offset >> 20);
        assert!(first.is_some_and(|first| (69..73).contains(&first)), "{first:?}");
    }

    #[test]
    fn it_ends_where_it_does_not_help_and_when_the_distance_changes() {
        let mut slow = Run::default();
        for n in 0..300 {
            let start_ns = slow.now;
            slow.now += COLD;
            slow.reader.read(Read { offset: n << 20, bytes: 4096, missed: n < 8, start_ns, dur_ns: COLD });
            slow.look();
        }
        assert!(slow.reader.is_off());
        let asked = slow.asked.len();
        slow.look();
        assert_eq!(slow.asked.len(), asked);

        let mut turns = Run::default();
        for n in 0..20 {
            turns.read(n << 20, 4096);
            turns.look();
        }
        let waiting = turns.reader.counts().unread;
        assert!(waiting > 0 && turns.reader.outstanding() == waiting * 4096);
        turns.read(3, 4096);
        assert_eq!((turns.reader.counts().unread, turns.reader.outstanding()), (waiting, 0));
    }

    #[test]
    fn memory_and_numbers_have_bounds() {
        let mut run = Run::default();
        for n in 0..40 {
            run.read(n * (20 << 20), 8 << 20);
            run.look();
            assert!(run.reader.outstanding() <= BYTES);
        }
        let mut wild = Reader::default();
        for offset in [i64::MAX, i64::MIN, 0, i64::MAX, -5, i64::MAX - 1, 7] {
            for bytes in [i64::MAX, 0, -1] {
                wild.read(Read { offset, bytes, missed: true, start_ns: i64::MIN, dur_ns: i64::MAX });
                wild.look(i64::MAX, u64::MAX, u64::MAX, |_| Done::Nothing);
            }
        }
    }
}
