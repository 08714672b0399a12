//! When requests were on their way that file systems make by themselves: write-back of files, and journals.

use std::collections::{BTreeSet, VecDeque};

use super::HashMap;

/// Times remembered; the oldest go first.
const MAX_TIMES: usize = 64 << 10;

/// What requests are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum For {
    /// Dirty pages of a file.
    File(i32),
    /// Dirty pages of any file of the file system on a device.
    Device(u32),
    /// The journal of that file system.
    Journal(u32),
}

/// How long a call's requests of both kinds were on their way while it went on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    pub writeback: Option<i64>,
    pub journal: Option<i64>,
}

/// Times at which at least one such request was between queue and completion.
#[derive(Default)]
pub struct Busy {
    /// Apart from each other, in their order.
    times: HashMap<For, VecDeque<(u64, u64)>>,
    /// The ends of all of them.
    ends: BTreeSet<(u64, For)>,
    /// Nothing is known before.
    forgotten: u64,
}

impl Busy {
    /// A request is over.
    pub fn add(&mut self, what: For, from: u64, to: u64) {
        let times = self.times.entry(what).or_default();
        if times.back().is_some_and(|(start, _)| *start > to) {
            return; // too late to be put in its place
        }
        let (mut from, mut to) = (from, to);
        while let Some((start, end)) = times.pop_back_if(|(_, end)| *end >= from) {
            self.ends.remove(&(end, what));
            (from, to) = (from.min(start), to.max(end));
        }
        times.push_back((from, to));
        self.ends.insert((to, what));
        while self.ends.len() > MAX_TIMES
            && let Some((end, what)) = self.ends.pop_first()
        {
            self.forgotten = self.forgotten.max(end);
            if let Some(times) = self.times.get_mut(&what) {
                times.pop_front();
                if times.is_empty() {
                    self.times.remove(&what);
                }
            }
        }
    }

    /// How much of a time requests were on their way, of those that are over; `None` where that is not known any more.
    pub fn during(&self, what: For, from: u64, to: u64) -> Option<i64> {
        if from < self.forgotten {
            return None;
        }
        let times = self.times.get(&what).into_iter().flatten().rev();
        let within = times.take_while(|(_, end)| *end > from).map(|(start, end)| {
            let (start, end) = ((*start).max(from), (*end).min(to));
            end.saturating_sub(start)
        });
        Some(i64::try_from(within.sum::<u64>()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: For = For::File(1);

    #[test]
    fn what_overlaps_counts_once_and_is_cut_to_the_call() {
        let mut busy = Busy::default();
        for (from, to) in [(10, 20), (15, 30), (40, 50), (45, 47), (60, 70)] {
            busy.add(A, from, to);
        }
        busy.add(For::File(2), 0, 1000);
        let during = |from, to| busy.during(A, from, to);
        assert_eq!([during(0, 100), during(12, 18), during(25, 45), during(30, 40)], [40, 6, 10, 0].map(Some));
        assert_eq!([during(70, 90), during(0, 5), busy.during(For::Journal(1), 0, 100)], [Some(0); 3]);
    }

    #[test]
    fn one_long_request_joins_what_was_over_before_it() {
        let mut busy = Busy::default();
        for n in 0..100 {
            busy.add(A, n * 10, n * 10 + 5);
        }
        assert_eq!((busy.ends.len(), busy.during(A, 0, 1000)), (100, Some(500)));
        busy.add(A, 12, 1000);
        assert_eq!((busy.ends.len(), busy.during(A, 0, 2000)), (2, Some(5 + 990)));
    }

    #[test]
    fn what_is_forgotten_is_not_known() {
        let mut busy = Busy::default();
        for n in 0..MAX_TIMES as u64 + 3 {
            busy.add(For::File((n % 7) as i32), n * 10, n * 10 + 5);
        }
        assert_eq!((busy.ends.len(), busy.forgotten), (MAX_TIMES, 25));
        assert_eq!(busy.times.values().map(VecDeque::len).sum::<usize>(), MAX_TIMES);
        assert_eq!((busy.during(A, 24, 1000), busy.during(A, 25, 79)), (None, Some(0)));
        assert_eq!(busy.during(A, 25, 85), Some(5));
    }

    proptest! {
        #[test]
        fn the_union_is_that_of_single_moments(
            requests in prop::collection::vec((0..200u64, 0..30u64), 0..40),
            from in 0..200u64, length in 0..100u64,
        ) {
            let mut requests: Vec<(u64, u64)> = requests.into_iter().map(|(at, dur)| (at, at + dur)).collect();
            requests.sort_unstable_by_key(|r| r.1);
            let mut busy = Busy::default();
            for (from, to) in &requests {
                busy.add(A, *from, *to);
            }
            let at = |t: &u64| requests.iter().any(|(from, to)| (*from..*to).contains(t));
            let moments = (from..from + length).filter(at).count();
            prop_assert_eq!(busy.during(A, from, from + length), Some(moments as i64));
        }
    }
}
