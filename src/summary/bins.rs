//! Sums over time in bounded memory: equal bins, whose length doubles whenever there are too many.

use crate::analysis::calls::Sums;
use crate::summary::screens::{DeviceSample, HeatCell, Window};

/// What can be put together.
pub trait Merge: Default + Clone {
    fn merge(&mut self, other: &Self);
}

impl Merge for Sums {
    fn merge(&mut self, other: &Self) {
        Self::merge(self, other);
    }
}

impl Merge for DeviceSample {
    fn merge(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes_read = self.bytes_read.saturating_add(other.bytes_read);
        self.bytes_written = self.bytes_written.saturating_add(other.bytes_written);
        self.dur_ns = self.dur_ns.saturating_add(other.dur_ns);
        self.queue_ns = self.queue_ns.saturating_add(other.queue_ns);
    }
}

impl Merge for HeatCell {
    fn merge(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.dur_ns = self.dur_ns.saturating_add(other.dur_ns);
    }
}

impl Merge for i64 {
    fn merge(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
}

impl<T: Merge, const N: usize> Merge for [T; N]
where
    Self: Default,
{
    fn merge(&mut self, other: &Self) {
        for (a, b) in self.iter_mut().zip(other) {
            a.merge(b);
        }
    }
}

/// Bins from time 0 on.
#[derive(Debug, Clone)]
pub struct Bins<T> {
    width_ns: i64,
    max: usize,
    all: Vec<T>,
}

impl<T: Merge> Bins<T> {
    /// At most `max` bins, of this length to begin with.
    pub const fn new(width_ns: i64, max: usize) -> Self {
        Self { width_ns, max, all: Vec::new() }
    }

    pub const fn width_ns(&self) -> i64 {
        self.width_ns
    }

    pub fn all(&self) -> &[T] {
        &self.all
    }

    /// The bin of a time; times before the start count to the first.
    pub fn at(&mut self, t_ns: i64) -> &mut T {
        let t_ns = t_ns.max(0);
        while t_ns / self.width_ns >= self.max as i64 {
            self.double();
        }
        let index = (t_ns / self.width_ns) as usize;
        if index >= self.all.len() {
            self.all.resize(index + 1, T::default());
        }
        &mut self.all[index]
    }

    fn double(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let merged = self.all.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            if let Some(second) = pair.get(1) {
                sum.merge(second);
            }
            sum
        });
        self.all = merged.collect();
    }

    /// The bins that begin in a window, with the index of the first.
    pub fn of(&self, window: Option<Window>) -> (usize, &[T]) {
        let Some(window) = window else { return (0, &self.all) };
        // Rounded up, without a sum that may be too large.
        let index =
            |t: i64| t.max(0).unsigned_abs().div_ceil(self.width_ns.unsigned_abs()).min(self.all.len() as u64) as usize;
        let (from, to) = (window.from_ns.max(0) / self.width_ns, index(window.to_ns));
        let from = (from as usize).min(to);
        (from, &self.all[from..to])
    }

    pub fn sum(&self, window: Option<Window>) -> T {
        let mut sum = T::default();
        self.of(window).1.iter().for_each(|bin| sum.merge(bin));
        sum
    }
}

/// What came in the second that is complete, by the time at which it became known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rate {
    second: i64,
    current: [i64; 3],
    last: [i64; 3],
}

impl Rate {
    pub fn add(&mut self, second: i64, what: [i64; 3]) {
        if second != self.second {
            self.last = if second == self.second + 1 { self.current } else { [0; 3] };
            self.current = [0; 3];
            self.second = second;
        }
        for (sum, value) in self.current.iter_mut().zip(what) {
            *sum = sum.saturating_add(value);
        }
    }

    pub fn per_s(&self, second: i64) -> [f64; 3] {
        let last = match second - self.second {
            0 => self.last,
            1 => self.current,
            _ => [0; 3],
        };
        last.map(|n| n as f64)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn doubling_loses_nothing(times in prop::collection::vec(0..1_000_000i64, 1..200)) {
            let mut bins = Bins::<i64>::new(7, 16);
            for t in &times {
                bins.at(*t).merge(&1);
            }
            prop_assert!(bins.all().len() <= 16);
            prop_assert_eq!(bins.sum(None), times.len() as i64);
            let half = Window { from_ns: 0, to_ns: bins.width_ns() * 8 };
            let expected = times.iter().filter(|t| **t < half.to_ns).count() as i64;
            prop_assert_eq!(bins.sum(Some(half)), expected);
        }
    }

    #[test]
    fn a_rate_is_of_the_last_complete_second() {
        let per_s = |rate: &Rate, second| rate.per_s(second).map(|n| n as i64);
        let mut rate = Rate::default();
        rate.add(5, [1, 0, 0]);
        rate.add(5, [2, 0, 7]);
        assert_eq!(per_s(&rate, 5), [0, 0, 0]);
        assert_eq!(per_s(&rate, 6), [3, 0, 7]);
        rate.add(6, [1, 0, 0]);
        assert_eq!(per_s(&rate, 6), [3, 0, 7]);
        assert_eq!(per_s(&rate, 9), [0, 0, 0]);
    }
}
