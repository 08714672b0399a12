//! Histogram buckets: four to each power of two, so that a bound is at most a quarter off.

/// The number of buckets.
pub const BUCKETS: usize = 252;

/// The bucket of a value: itself below 4, then two bits after the leading one.
pub const fn bucket_of(value: u64) -> i16 {
    if value < 4 {
        return value as i16;
    }
    let log = value.ilog2();
    (4 * (log - 1)) as i16 + (value >> (log - 2) & 3) as i16
}

/// The first and the last value of a bucket. Buckets past the last have the bounds of the last.
pub const fn bounds(bucket: i16) -> (u64, u64) {
    let bucket = if bucket < 0 { 0 } else { bucket as u64 };
    if bucket < 4 {
        return (bucket, bucket);
    }
    let bucket = if bucket < BUCKETS as u64 { bucket } else { BUCKETS as u64 - 1 };
    let shift = bucket / 4 - 1;
    let first = (4 + bucket % 4) << shift;
    (first, first + ((1 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_within_the_bounds_of_their_bucket() {
        let edges = (0..64).flat_map(|bit| [0, 1, 2, 3].map(|d| (1_u64 << bit).wrapping_add(d).wrapping_sub(2)));
        for value in edges.chain(0..5000).chain([u64::MAX]) {
            let (first, last) = bounds(bucket_of(value));
            assert!(first <= value && value <= last, "{value} in {first}..={last}");
        }
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for bucket in 1..BUCKETS as i16 {
            assert_eq!(bounds(bucket - 1).1 + 1, bounds(bucket).0, "bucket {bucket}");
            assert_eq!(bucket_of(bounds(bucket).0), bucket);
        }
        assert_eq!(bounds(BUCKETS as i16 - 1).1, u64::MAX);
        assert_eq!([4, 5, 7, 8, 9, 10, 16].map(bucket_of), [4, 5, 7, 8, 8, 9, 12]);
    }
}
