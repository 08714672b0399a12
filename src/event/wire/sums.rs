//! Sums of the kernel side, as they stand in its tables.

use crate::base::hist::{TABLE_BITS, bounds, bucket};
use crate::event::wire::NOT_KNOWN;
use crate::event::wire::memory::value;
use crate::event::{About, BUCKETS, Figures, FileKey, Histograms, Runs, TIMES, size_class, time_bin};
use crate::skel::types as t;

/// The key of a sum, its owner: the process and, where that is known, the number of its program; and of which row:
/// past the rows of the catalog stand the operations of devices. And is it of one thread alone?
pub fn sum_key(bytes: &[u8]) -> Option<(About, Option<Runs>, u32, bool)> {
    let key: t::iot_sum_key = value(bytes)?;
    let about = match t::iot_about_what(u32::from(key.what)) {
        t::iot_about_what::IOT_SUM_FILE => {
            About::File(FileKey { dev: key.b as u32, generation: (key.b >> 32) as u32, ino: key.a })
        }
        t::iot_about_what::IOT_SUM_HANDLE => {
            let opened = (key.b != u64::MAX).then_some(((key.b >> 32) as u32, key.b as u32));
            About::Handle { raw: key.a, opened }
        }
        t::iot_about_what::IOT_SUM_DEVICE => About::Device(key.a as u32),
        _ => About::Nothing,
    };
    let process = (key.process != NOT_KNOWN).then_some((key.process, key.program.checked_sub(1)));
    Some((about, process, u32::from(key.row), key.thread != 0))
}

/// Bytes of the key and the value of a table of sums.
pub const fn sum_sizes() -> (u32, u32) {
    (size_of::<t::iot_sum_key>() as u32, size_of::<t::iot_sum>() as u32)
}

/// No calls.
pub const NO_COUNTS: Histograms = [[0; BUCKETS]; 2];

/// The figures of a sum, and its calls by bucket of their durations and sizes. In that of one thread `alone` the most
/// frequent sizes are in no other figure; of other sums, and of all sizes that are not among them, `Counts` has the
/// buckets.
pub fn figures(bytes: &[u8], alone: bool) -> Option<(Figures, Histograms)> {
    let s: t::iot_sum = value(bytes)?;
    let common = |c: &t::iot_common| -> Vec<(u64, u64)> {
        let counted = c.value.iter().zip(c.n).filter(|(value, n)| **value > 0 && *n > 0);
        counted.map(|(value, n)| (value - 1, u64::from(n))).collect()
    };
    let mut counts = NO_COUNTS;
    let mut by_time = [0; TIMES];
    for (bucket, n) in s.by_time.into_iter().enumerate() {
        counts[0][bucket] = n;
        by_time[time_bin(bounds::<TABLE_BITS>(bucket).0)] += u64::from(n);
    }
    let sizes = common(&s.sizes);
    let mut bytes = s.bytes;
    let mut by_size = s.by_size.map(u64::from);
    for (size, n) in sizes.iter().filter(|_| alone) {
        bytes = bytes.wrapping_add(size.wrapping_mul(*n));
        by_size[size_class(*size)] += n;
        let count = &mut counts[1][bucket::<TABLE_BITS>(*size)];
        *count = count.saturating_add(*n as u32);
    }
    let figures = Figures {
        calls: by_time.iter().sum(),
        nested: s.nested,
        errors: s.errors,
        unknown: s.unknown,
        bytes,
        asked: bytes.wrapping_add(s.missing),
        time: s.time,
        own: s.time.saturating_sub(s.inner).saturating_add(s.nested_own),
        max: s.max,
        max_at: s.max_at,
        first: s.first,
        last: s.last,
        end: s.end,
        sequential: s.skipping.saturating_add(s.consecutive),
        consecutive: s.consecutive,
        switches: s.switches,
        unaligned: s.unaligned,
        miss: s.miss,
        ahead: s.ahead,
        waited: s.waited,
        away: s.away,
        queued: s.queued,
        locked: s.locked,
        sizes,
        other_sizes: s.sizes.others,
        strides: common(&s.strides),
        other_strides: s.strides.others,
        by_size,
        by_time,
        error: None,
    };
    Some((figures, counts))
}

/// Counts by bucket of durations and of sizes.
pub fn counts(bytes: &[u8]) -> Option<Histograms> {
    value::<t::iot_counts>(bytes).map(|c| [c.time, c.size])
}
