//! When requests were on their way that calls may wait for: their own, and those that file systems make by themselves.

use std::collections::{BTreeSet, VecDeque};

use crate::HashMap;

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
    /// Flushes of a device.
    Flush(u32),
    /// What a thread reads, or writes past the page cache: from queue to issue, and from there to completion.
    Queue(u32),
    Service(u32),
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
        // All that overlaps, or touches, becomes one.
        let first = times.partition_point(|(_, end)| *end < from);
        let behind = times.partition_point(|(start, _)| *start <= to).max(first);
        let (mut from, mut to) = (from, to);
        for (start, end) in times.drain(first..behind) {
            self.ends.remove(&(end, what));
            (from, to) = (from.min(start), to.max(end));
        }
        times.insert(first, (from, to));
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

    /// The times within `during`, in their order, apart from each other.
    fn within(&self, what: For, [from, to]: [u64; 2]) -> impl Iterator<Item = (u64, u64)> {
        let times = self.times.get(&what);
        let first = times.map_or(0, |times| times.partition_point(|(_, end)| *end <= from));
        let times = times.into_iter().flat_map(move |times| times.range(first..));
        times.take_while(move |(start, _)| *start < to).map(move |(start, end)| ((*start).max(from), (*end).min(to)))
    }

    /// How much of a time such requests were on their way, of those that are over; `None` where that is not known any
    /// more.
    pub fn during(&self, what: For, during: [u64; 2]) -> Option<i64> {
        let [ns] = self.split([Some(what)], during)?;
        Some(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// The same of several kinds: a moment counts for the first of those whose requests were on their way then.
    pub fn split<const N: usize>(&self, kinds: [Option<For>; N], during: [u64; 2]) -> Option<[u64; N]> {
        if during[0] < self.forgotten {
            return None;
        }
        let mut claimed: Vec<(u64, u64)> = Vec::new();
        let mut total = 0;
        Some(kinds.map(|kind| {
            claimed.extend(kind.into_iter().flat_map(|kind| self.within(kind, during)));
            claimed = union(std::mem::take(&mut claimed));
            let before = std::mem::replace(&mut total, claimed.iter().map(|(from, to)| to - from).sum());
            total - before
        }))
    }
}

/// What times cover, in order and apart from each other.
fn union(mut times: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    times.sort_unstable();
    let mut all: Vec<(u64, u64)> = Vec::with_capacity(times.len());
    for (from, to) in times {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
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
        let during = |from, to| busy.during(A, [from, to]);
        assert_eq!([during(0, 100), during(12, 18), during(25, 45), during(30, 40)], [40, 6, 10, 0].map(Some));
        assert_eq!([during(70, 90), during(0, 5), busy.during(For::Journal(1), [0, 100])], [Some(0); 3]);
    }

    #[test]
    fn one_long_request_joins_what_was_over_before_it() {
        let mut busy = Busy::default();
        for n in 0..100 {
            busy.add(A, n * 10, n * 10 + 5);
        }
        assert_eq!((busy.ends.len(), busy.during(A, [0, 1000])), (100, Some(500)));
        busy.add(A, 12, 1000);
        assert_eq!((busy.ends.len(), busy.during(A, [0, 2000])), (2, Some(5 + 990)));
    }

    #[test]
    fn what_is_forgotten_is_not_known() {
        let mut busy = Busy::default();
        for n in 0..MAX_TIMES as u64 + 3 {
            busy.add(For::File((n % 7) as i32), n * 10, n * 10 + 5);
        }
        assert_eq!((busy.ends.len(), busy.forgotten), (MAX_TIMES, 25));
        assert_eq!(busy.times.values().map(VecDeque::len).sum::<usize>(), MAX_TIMES);
        assert_eq!((busy.during(A, [24, 1000]), busy.during(A, [25, 79])), (None, Some(0)));
        assert_eq!(busy.during(A, [25, 85]), Some(5));
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
            prop_assert_eq!(busy.during(A, [from, from + length]), Some(moments as i64));
        }
    }
}
