//! When a process was in calls.

use crate::analysis::findings::groups::paid::Paid;

/// When a process was in calls, and what it is known by.
#[derive(Debug, Clone)]
pub struct Busy {
    pub pid: i32,
    pub rank: Option<i32>,
    pub first: i64,
    pub last: i64,
    /// Of all threads together.
    pub sum: i64,
    /// Of ranks.
    paid: Option<Box<Paid>>,
    /// In which there was a call of any thread.
    intervals: Vec<(i64, i64)>,
    /// Pauses up to this are no longer known, in ns.
    gap: i64,
    most: usize,
}

/// Intervals that are kept of a process, at most and of each of many, and of all together.
const INTERVALS_MAX: usize = 1 << 13;
const INTERVALS_MIN: usize = 1 << 9;
const ALL_INTERVALS: usize = 1 << 22;

impl Default for Busy {
    fn default() -> Self {
        Self::of_many(1)
    }
}

impl Busy {
    /// Of one of so many processes: the more there are, the less is kept of each.
    pub fn of_many(processes: usize) -> Self {
        Self {
            pid: 0,
            rank: None,
            first: 0,
            last: 0,
            sum: 0,
            paid: None,
            intervals: Vec::new(),
            gap: 0,
            most: (ALL_INTERVALS / processes.max(1)).clamp(INTERVALS_MIN, INTERVALS_MAX),
        }
    }

    pub fn add(&mut self, from: i64, to: i64) {
        if self.sum == 0 && self.last == 0 {
            self.first = from;
        }
        self.first = self.first.min(from);
        self.last = self.last.max(to);
        self.sum = self.sum.saturating_add(to.saturating_sub(from));
        match self.intervals.last_mut() {
            Some((start, end)) if *start <= from && from <= end.saturating_add(self.gap) => *end = to.max(*end),
            _ => {
                self.make_room();
                self.intervals.push((from, to));
            }
        }
        if self.intervals.len() >= self.most {
            self.merge();
            while self.intervals.len() > self.most / 2 {
                self.gap = self.gap.max(500).saturating_mul(2);
                self.merge();
            }
        }
    }

    /// Of many processes most have one interval, of sums all.
    fn make_room(&mut self) {
        if self.intervals.is_empty() {
            self.intervals.reserve_exact(1);
        }
    }

    /// Takes calls that were summed up. When each was made is not known: they count one after the other.
    pub fn add_sum(&mut self, (first, last): (i64, i64), ns: i64) {
        self.first = if self.sum > 0 { self.first.min(first) } else { first };
        self.last = self.last.max(last);
        self.sum = self.sum.saturating_add(ns);
        if let Some((_, end)) = self.intervals.last_mut() {
            *end = end.saturating_add(ns);
        } else {
            self.make_room();
            self.intervals.push((first, first.saturating_add(ns)));
        }
    }

    /// Takes the calls of another time.
    pub fn take(&mut self, later: &Self) {
        let sum = self.sum.saturating_add(later.sum);
        self.gap = self.gap.max(later.gap);
        for (from, to) in &later.intervals {
            self.add(*from, *to);
        }
        self.first = self.first.min(later.first);
        self.last = self.last.max(later.last);
        (self.sum, self.rank) = (sum, later.rank.or(self.rank));
        if let Some(later) = &later.paid {
            if let Some(paid) = &mut self.paid {
                paid.take(later);
            } else {
                self.paid = Some(later.clone());
            }
        }
    }

    /// What it pays and waits for as one of so many processes.
    pub fn paid_of_many(&mut self, processes: usize) -> &mut Paid {
        self.paid.get_or_insert_with(|| Box::new(Paid::of_many(processes)))
    }

    pub fn paid(&self) -> Option<&Paid> {
        self.paid.as_deref()
    }

    fn merge(&mut self) {
        self.intervals.sort_unstable();
        let gap = self.gap;
        self.intervals.dedup_by(|next, kept| {
            let joins = next.0 <= kept.1.saturating_add(gap);
            if joins {
                kept.1 = kept.1.max(next.1);
            }
            joins
        });
    }

    /// Pauses of at least so many ns between calls: how many, and how long they were.
    pub fn pauses(&self, least: i64) -> (i64, i64) {
        let (mut pauses, mut end) = ((0_i64, 0_i64), None::<i64>);
        let mut sorted = self.intervals.clone();
        sorted.sort_unstable();
        for (from, to) in sorted {
            if let Some(pause) = end.map(|end| from.saturating_sub(end)).filter(|pause| *pause >= least) {
                pauses = (pauses.0.saturating_add(1), pauses.1.saturating_add(pause));
            }
            end = Some(end.map_or(to, |end| end.max(to)));
        }
        pauses
    }

    /// How long any thread was in a call: never more than all of them together, nor than the process was seen for.
    pub fn wall(&mut self) -> i64 {
        self.merge();
        let union = self.intervals.iter().map(|(from, to)| to.saturating_sub(*from)).fold(0, i64::saturating_add);
        union.min(self.sum).min(self.last.saturating_sub(self.first)).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of 1 ms, each 3 ms after the one before, and a second of pause after each thousand.
    fn work(mut busy: Busy) -> Busy {
        const MS: i64 = 1_000_000;
        for n in 0..4000 {
            let start = n * 3 * MS + n / 1000 * 1000 * MS;
            busy.add(start, start + MS);
        }
        busy
    }

    #[test]
    fn of_many_processes_less_is_kept_and_long_pauses_are_still_known() {
        let (mut one, mut of_many) = (work(Busy::default()), work(Busy::of_many(64_000)));
        assert!(one.intervals.len() > INTERVALS_MIN && of_many.intervals.len() <= INTERVALS_MIN);
        assert_eq!(one.pauses(500_000_000).0, 3);
        assert_eq!(of_many.pauses(500_000_000).0, 3);
        assert_eq!((one.wall(), of_many.wall()), (4_000_000_000, 4_000_000_000), "of one thread: the sum");
    }
}
