//! Aggregate mode: what calls and requests of a period came to, summed up by the kernel side (`bpf/sums/sum.h`).

use crate::event::FileKey;

/// Bins of sizes, as Darshan has them, and of durations: powers of two.
pub const SIZES: usize = 10;
pub const TIMES: usize = 32;

/// The first bin of durations ends at 2^(this + 1) ns.
const TIME_FIRST: u32 = 6;

/// Buckets of the histograms of the kernel side (`IOT_BUCKETS`): those of the table.
pub const BUCKETS: usize = 252;

/// Counts by bucket, of durations and of sizes.
pub type Histograms = [[u32; BUCKETS]; 2];

/// The bin of a size. They are those of Darshan (darshan-common.h, `DARSHAN_BUCKET_INC`).
pub fn size_class(bytes: u64) -> usize {
    const ENDS: [u64; SIZES - 1] = [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30];
    ENDS.iter().position(|end| bytes <= *end).unwrap_or(SIZES - 1)
}

/// The bin of a duration.
pub fn time_bin(ns: u64) -> usize {
    ((ns | 1).ilog2().saturating_sub(TIME_FIRST) as usize).min(TIMES - 1)
}

/// What a sum is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    Nothing,
    File(FileKey),
    /// A handle of a library, and the call that opened it (thread and number), where that was seen.
    Handle {
        raw: u64,
        opened: Option<(u32, u32)>,
    },
    /// Requests of a device.
    Device(u32),
}

/// A process and, where that is known, the number of the program that it runs: 0 until it executes one.
pub type Runs = (u32, Option<u32>);

/// The calls of one function that a process made in a period and that have one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// When it was taken: the end of the period.
    pub time: u64,
    /// The beginning.
    pub from: u64,
    /// None: no traced process, or not known. With the number of its program, as of
    /// [`Event::Exec`](crate::event::Event::Exec), where that is known.
    pub process: Option<Runs>,
    /// Of the catalog; past its end stand the operations of devices, as the kernel numbers them.
    pub row: u32,
    pub about: About,
    /// It is of all processes and files that found no room in the kernel's table.
    pub rest: bool,
    pub figures: Figures,
}

/// Of the outermost calls of their layer, but for `nested`, `errors` and `own`. Times in ns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Figures {
    pub calls: u64,
    /// Calls inside others of their layer.
    pub nested: u64,
    pub errors: u64,
    /// Successful reads and writes of which it is not known how much they moved.
    pub unknown: u64,
    pub bytes: u64,
    pub asked: u64,
    pub time: u64,
    /// Exclusive time.
    pub own: u64,
    pub max: u64,
    /// When the longest began; 0 without one, as `first` and `last`.
    pub max_at: u64,
    pub first: u64,
    pub last: u64,
    /// One behind the last byte of the file that was read or written.
    pub end: u64,
    pub sequential: u64,
    pub consecutive: u64,
    pub switches: u64,
    pub unaligned: u64,
    pub miss: u64,
    pub ahead: u64,
    /// Made to wait because too much was dirty; requests: from queue to issue.
    pub waited: u64,
    /// On no CPU; of that, in a run queue, and for locks of the kernel.
    pub away: u64,
    pub queued: u64,
    pub locked: u64,
    /// Values and how often they were there, and how often others.
    pub sizes: Vec<(u64, u64)>,
    pub other_sizes: u64,
    pub strides: Vec<(u64, u64)>,
    pub other_strides: u64,
    pub by_size: [u64; SIZES],
    pub by_time: [u64; TIMES],
    /// Standard error of `calls` where they are estimated, or some of them are.
    pub error: Option<u64>,
}

/// Durations and sizes of the calls of one row in a period, by bucket of the `hist` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    pub time: u64,
    pub from: u64,
    pub row: u32,
    pub durations: Vec<(usize, u32)>,
    pub sizes: Vec<(usize, u32)>,
}

/// By how much a counter of 32 bits has grown, which may have wrapped around.
fn narrow(after: u64, before: u64) -> u64 {
    after.wrapping_sub(before) & u64::from(u32::MAX)
}

impl Figures {
    /// Makes of each figure that is a count, and its counterpart, another one. Bins and frequent values are no such figures.
    pub fn counters(&mut self, other: &Self, f: impl Fn(u64, u64) -> u64) {
        for (n, other) in [
            (&mut self.calls, other.calls),
            (&mut self.nested, other.nested),
            (&mut self.errors, other.errors),
            (&mut self.unknown, other.unknown),
            (&mut self.bytes, other.bytes),
            (&mut self.asked, other.asked),
            (&mut self.time, other.time),
            (&mut self.own, other.own),
            (&mut self.sequential, other.sequential),
            (&mut self.consecutive, other.consecutive),
            (&mut self.switches, other.switches),
            (&mut self.unaligned, other.unaligned),
            (&mut self.miss, other.miss),
            (&mut self.ahead, other.ahead),
            (&mut self.waited, other.waited),
            (&mut self.away, other.away),
            (&mut self.queued, other.queued),
            (&mut self.locked, other.locked),
            (&mut self.other_sizes, other.other_sizes),
            (&mut self.other_strides, other.other_strides),
        ] {
            *n = f(*n, other);
        }
    }

    /// What was added since these were `before`. The extremes are those of all of the time.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let less = |values: &[(u64, u64)], before: &[(u64, u64)]| {
            let known = |value: u64| before.iter().find(|(v, _)| *v == value).map_or(0, |(_, n)| *n);
            values.iter().map(|(v, n)| (*v, narrow(*n, known(*v)))).filter(|(_, n)| *n > 0).collect()
        };
        let bins = |to: &mut [u64], before: &[u64]| to.iter_mut().zip(before).for_each(|(n, b)| *n = narrow(*n, *b));
        let mut new = Self {
            sizes: less(&self.sizes, &before.sizes),
            strides: less(&self.strides, &before.strides),
            ..self.clone()
        };
        bins(&mut new.by_size, &before.by_size);
        bins(&mut new.by_time, &before.by_time);
        new.counters(before, u64::saturating_sub);
        // As the bins, which are narrow.
        new.calls = new.by_time.iter().sum();
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_right_also_when_a_counter_wraps_around() {
        let before = Figures { max: 9, sizes: vec![(10, 4)], ..Figures::default() };
        let mut after = Figures { max: 11, sizes: vec![(10, 6), (20, 1)], ..Figures::default() };
        let mut full = before.clone();
        full.by_time[3] = u64::from(u32::MAX);
        after.by_time[3] = 2;
        let new = after.since(&full);
        assert_eq!((new.calls, new.max, new.by_time[3]), (3, 11, 3));
        assert_eq!(new.sizes, [(10, 2), (20, 1)]);
    }
}
