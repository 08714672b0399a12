//! Histograms of durations and sizes: log-linear buckets, so that memory is bounded and the error known.
//!
//! A power of two is cut into `2^BITS` equal sub-buckets; values below `2^BITS` have a bucket each. A bucket is
//! therefore at most `1 / 2^BITS` of its lower bound wide, and its middle is within [`error`] of every value in it.

use serde::{Deserialize, Serialize};

/// Sub-bucket bits of the `hist` table: 4 sub-buckets to a power of two, error at most 1/8.
pub const TABLE_BITS: u32 = 2;
/// Sub-bucket bits behind the percentiles of the report: 32 sub-buckets to a power of two, error at most 1/64.
pub const REPORT_BITS: u32 = 5;

/// The greatest relative difference between a value and the middle of its bucket.
pub const fn error<const BITS: u32>() -> f64 {
    0.5 / (1u64 << BITS) as f64
}

/// The bucket of a value.
pub const fn bucket<const BITS: u32>(value: u64) -> usize {
    let linear = 1 << BITS;
    if value < linear {
        return value as usize;
    }
    let shift = value.ilog2() - BITS;
    ((shift as usize + 1) << BITS) + ((value >> shift) - linear) as usize
}

/// How many buckets there are.
const fn buckets<const BITS: u32>() -> usize {
    (65 - BITS as usize) << BITS
}

/// The least and the greatest value of a bucket. Numbers past the last bucket give the last bucket.
pub const fn bounds<const BITS: u32>(bucket: usize) -> (u64, u64) {
    let linear = 1u64 << BITS;
    let last = buckets::<BITS>() - 1;
    let bucket = if bucket > last { last } else { bucket };
    if bucket < 2 * linear as usize {
        return (bucket as u64, bucket as u64);
    }
    let shift = (bucket >> BITS) as u32 - 1;
    let low = ((bucket as u64 & (linear - 1)) + linear) << shift;
    (low, low + ((1 << shift) - 1))
}

const fn middle((low, high): (u64, u64)) -> u64 {
    low + (high - low) / 2
}

/// The bucket number in the `hist` table (negative values count as 0).
pub const fn bucket_of(value: i64) -> i16 {
    bucket::<TABLE_BITS>(if value < 0 { 0 } else { value as u64 }) as i16
}

/// Number of buckets of the `hist` table.
pub const BUCKETS: usize = buckets::<TABLE_BITS>();

/// The least and the greatest value of a bucket of the `hist` table.
pub const fn bucket_bounds(number: i16) -> (u64, u64) {
    bounds::<TABLE_BITS>(if number < 0 { 0 } else { number as usize })
}

/// Counts by bucket; in files a list of the buckets that have some. Grows to the highest bucket used: at most
/// `(65 - BITS) * 2^BITS` counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(usize, u64)>", into = "Vec<(usize, u64)>")]
pub struct Histogram<const BITS: u32> {
    counts: Vec<u64>,
    total: u64,
}

impl<const BITS: u32> Histogram<BITS> {
    /// Counts a value (negative values count as 0).
    pub fn add(&mut self, value: i64) {
        self.add_n(value, 1);
    }

    /// Counts a value `n` times.
    pub fn add_n(&mut self, value: i64, n: u64) {
        self.add_to(bucket::<BITS>(value.max(0) as u64), n);
    }

    fn add_to(&mut self, at: usize, n: u64) {
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] = self.counts[at].saturating_add(n);
        self.total = self.total.saturating_add(n);
    }

    /// The counts of another one, too.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, n) in self.counts.iter_mut().zip(&other.counts) {
            *own = own.saturating_add(*n);
        }
        self.total = self.total.saturating_add(other.total);
    }

    /// The middles of the buckets that have some, and how many.
    pub fn middles(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(at, n)| (middle(bounds::<BITS>(at)), *n))
    }

    /// How many were counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Forgets half of each count.
    pub fn halve(&mut self) {
        self.counts.iter_mut().for_each(|n| *n /= 2);
        self.total = self.counts.iter().fold(0, |sum, n| sum.saturating_add(*n));
    }

    /// The nearest-rank quantile (the least value that at least `q` of all values do not exceed), as the middle of
    /// its bucket: within [`error`] of the exact one. `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        self.quantile_bounds(q).map(middle)
    }

    /// The least and the greatest value of the bucket that has it.
    pub fn quantile_bounds(&self, q: f64) -> Option<(u64, u64)> {
        let rank = ((self.total as f64 * q).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0_u64;
        let at = self.counts.iter().position(|n| {
            seen = seen.saturating_add(*n);
            seen >= rank
        })?;
        Some(bounds::<BITS>(at))
    }
}

/// The buckets that have some, with their counts.
impl<const BITS: u32> From<Histogram<BITS>> for Vec<(usize, u64)> {
    fn from(histogram: Histogram<BITS>) -> Self {
        histogram.counts.into_iter().enumerate().filter(|(_, n)| *n > 0).collect()
    }
}

/// Those past the last bucket are left out.
impl<const BITS: u32> From<Vec<(usize, u64)>> for Histogram<BITS> {
    fn from(counts: Vec<(usize, u64)>) -> Self {
        let mut histogram = Self::default();
        for (at, n) in counts.into_iter().filter(|(at, _)| *at < buckets::<BITS>()) {
            histogram.add_to(at, n);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_dense_and_ordered() {
        let mut next = 0;
        for number in 0..((65 - TABLE_BITS as usize) << TABLE_BITS) {
            let (low, high) = bounds::<TABLE_BITS>(number);
            assert_eq!(low, next, "bucket {number} starts where the one before ends");
            assert!(high >= low);
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends at u64::MAX");
    }

    #[test]
    fn four_to_a_power_of_two() {
        assert_eq!([0, 1, 7, 8, 9, 10, 16, 1024].map(bucket_of), [0, 1, 7, 8, 8, 9, 12, 36]);
        assert_eq!(bucket_bounds(36), (1024, 1279));
        assert_eq!(bucket_of(-5), 0);
        assert_eq!(bucket_of(i64::MAX), 247);
        assert_eq!(bucket_bounds(i16::MAX), bucket_bounds(251), "numbers past the end give the last bucket");
    }

    #[test]
    fn quantiles_of_small_values_are_exact() {
        let mut h = Histogram::<REPORT_BITS>::default();
        assert_eq!(h.quantile(0.5), None);
        (1..=10).for_each(|v| h.add(v));
        assert_eq!([0.0, 0.5, 0.51, 0.99, 1.0].map(|q| h.quantile(q)), [1, 5, 6, 10, 10].map(Some));
    }

    #[test]
    fn files_have_the_buckets_that_were_used() {
        let mut h = Histogram::<REPORT_BITS>::default();
        h.add_n(3, 2);
        h.add(1000);
        let text = serde_json::to_string(&h).unwrap();
        assert_eq!(text, format!("[[3,2],[{},1]]", bucket::<REPORT_BITS>(1000)));
        assert_eq!(serde_json::from_str::<Histogram<REPORT_BITS>>(&text).unwrap(), h);
        let strange: Histogram<REPORT_BITS> =
            serde_json::from_str("[[3,1],[18446744073709551615,5],[1920,7]]").unwrap();
        assert_eq!((strange.total(), strange.quantile(1.0)), (1, Some(3)));
        h.halve();
        assert_eq!((h.total(), h.quantile(1.0), h.quantile_bounds(0.5)), (1, Some(3), Some((3, 3))));
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(v: u64) {
            let (low, high) = bounds::<REPORT_BITS>(bucket::<REPORT_BITS>(v));
            prop_assert!(low <= v && v <= high);
        }

        #[test]
        fn quantiles_are_within_the_error(mut values in prop::collection::vec(0..i64::MAX / 2, 1..200), q in 0.0..1.0f64) {
            let mut h = Histogram::<REPORT_BITS>::default();
            for value in &values {
                h.add(*value);
            }
            values.sort_unstable();
            let rank = ((values.len() as f64 * q).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let got = h.quantile(q).unwrap() as f64;
            prop_assert!((got - exact).abs() <= exact * error::<REPORT_BITS>() + 1.0, "{got} against {exact}");
        }
    }
}
