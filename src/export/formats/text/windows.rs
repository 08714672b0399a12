//! The time of a trace in windows with about as many rows each: the rows of one fit into memory to be sorted.

use std::ops::Range;

const BINS: usize = 1 << 16;
/// What a bin is wide at first, in ns. It doubles when time goes beyond the last one.
const FINEST_NS: i64 = 1 << 10;
/// Rows of a window, unless a single bin has more.
const ROWS: u64 = 1 << 18;

/// Rows by time.
pub struct Windows {
    width_ns: i64,
    rows: Vec<u64>,
}

impl Default for Windows {
    fn default() -> Self {
        Self { width_ns: FINEST_NS, rows: vec![0; BINS] }
    }
}

impl Windows {
    /// A row begins then. What is before the trace counts in the first bin.
    pub fn add(&mut self, ns: i64) {
        let ns = ns.max(0);
        while ns / self.width_ns >= BINS as i64 {
            for at in 0..BINS / 2 {
                self.rows[at] = self.rows[2 * at] + self.rows[2 * at + 1];
            }
            self.rows[BINS / 2..].fill(0);
            self.width_ns = self.width_ns.saturating_mul(2);
        }
        self.rows[(ns / self.width_ns) as usize] += 1;
    }

    /// Windows that together are the time within these limits.
    pub fn within(&self, limits: &Range<i64>) -> Vec<Range<i64>> {
        let (mut all, mut from, mut rows) = (Vec::new(), i64::MIN, 0);
        for (at, n) in (0_i64..).zip(&self.rows) {
            if rows > 0 && rows + n > ROWS {
                let to = at * self.width_ns;
                all.push(from..to);
                (from, rows) = (to, 0);
            }
            rows += n;
        }
        all.push(from..i64::MAX);
        let cut = |window: Range<i64>| window.start.max(limits.start)..window.end.min(limits.end);
        all.into_iter().map(cut).filter(|window| !window.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Range<i64> = i64::MIN..i64::MAX;

    #[test]
    fn windows_follow_each_other_and_have_few_rows_each() {
        let mut windows = Windows::default();
        // An hour, in which most happens in one second.
        let times = |n: i64| if n % 4 == 0 { n * 3_600_000 } else { 1_000_000_000_000 + n * 1000 };
        (0..1_000_000).for_each(|n| windows.add(times(n)));
        let all = windows.within(&ALL);
        assert!((4..100).contains(&all.len()), "{}", all.len());
        assert_eq!((all[0].start, all[all.len() - 1].end), (i64::MIN, i64::MAX));
        assert!(all.windows(2).all(|two| two[0].end == two[1].start));
        for window in &all {
            let rows = (0..1_000_000).filter(|n| window.contains(&times(*n))).count() as u64;
            assert!(rows <= ROWS + windows.rows.iter().max().unwrap(), "{window:?}: {rows}");
        }
    }

    #[test]
    fn limits_cut_windows_and_damaged_times_are_in_one() {
        let mut windows = Windows::default();
        for ns in [i64::MIN, -1, 0, i64::MAX] {
            windows.add(ns);
        }
        assert_eq!(windows.within(&ALL), [ALL]);
        let within = windows.within(&(5..9));
        assert_eq!((within.len(), &within[0]), (1, &(5..9)));
        assert_eq!(windows.rows.iter().sum::<u64>(), 4);
    }
}
