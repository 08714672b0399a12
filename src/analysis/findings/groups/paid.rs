//! What hooks cost a process, and what it waited for others, by part of the run.

use crate::HashMap;
use crate::rows::Span;

/// Parts of the run at first, in ns: twice as long whenever a process has too many.
pub const PART: i64 = 1 << 20;
/// Parts of a process, at most and of each of many, and of all together.
const PARTS_MAX: usize = 1 << 10;
const PARTS_MIN: usize = 1 << 7;
const ALL_PARTS: usize = 1 << 19;

/// What a process paid and waited for in a part of the run, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    pub hooks: i64,
    /// In MPI.
    pub ranks: i64,
    /// For locks on files.
    pub locks: i64,
}

impl Part {
    pub const fn add(&mut self, more: Self) {
        self.hooks = self.hooks.saturating_add(more.hooks);
        self.ranks = self.ranks.saturating_add(more.ranks);
        self.locks = self.locks.saturating_add(more.locks);
    }

    fn times(self, share: f64) -> Self {
        let of = |ns: i64| (ns as f64 * share) as i64;
        Self { hooks: of(self.hooks), ranks: of(self.ranks), locks: of(self.locks) }
    }
}

/// What a rank paid for hooks, and what it waited for others, by time.
#[derive(Debug, Clone)]
pub struct Paid {
    pub length: i64,
    pub parts: HashMap<i64, Part>,
    most: usize,
}

impl Default for Paid {
    fn default() -> Self {
        Self::of_many(1)
    }
}

/// Calls that wait until another process unlocks a file.
fn locks_file(span: &Span) -> bool {
    matches!(span.op, "fcntl" | "flock")
}

impl Paid {
    /// Of one of so many processes: the more there are, the longer its parts.
    pub fn of_many(processes: usize) -> Self {
        let most = (ALL_PARTS / processes.max(1)).clamp(PARTS_MIN, PARTS_MAX);
        Self { length: PART, parts: HashMap::default(), most }
    }

    /// A call; `own`: of the program, which has the hooks of all calls inside; `in_mpi`: its own time is spent waiting for ranks.
    pub fn add(&mut self, span: &Span, own: bool, in_mpi: bool) {
        let hooks = if own { span.probe_ns.unwrap_or(0).max(0) } else { 0 };
        let ranks = if in_mpi { span.self_ns.max(0) } else { 0 };
        let locks = if locks_file(span) { span.lock_ns.unwrap_or(0).max(0) } else { 0 };
        if hooks > 0 || ranks > 0 || locks > 0 {
            self.spread((span.start_ns, span.end_ns()), Part { hooks, ranks, locks });
        }
    }

    /// Spreads evenly what is of an interval.
    fn spread(&mut self, (from, to): (i64, i64), all: Part) {
        let lasts = to.saturating_sub(from).max(1);
        while lasts / self.length >= self.most as i64 {
            self.coarsen(self.length.saturating_mul(2));
        }
        let (first, last) = (from.div_euclid(self.length), from.saturating_add(lasts - 1).div_euclid(self.length));
        for at in first..=last {
            let begin = at.saturating_mul(self.length);
            let (begin, end) = (begin.max(from), begin.saturating_add(self.length).min(from.saturating_add(lasts)));
            let share = end.saturating_sub(begin) as f64 / lasts as f64;
            self.parts.entry(at).or_default().add(all.times(share));
        }
        while self.parts.len() > self.most {
            self.coarsen(self.length.saturating_mul(2));
        }
    }

    /// Makes parts longer; lengths are powers of two.
    pub fn coarsen(&mut self, length: i64) {
        if length <= self.length {
            return;
        }
        let times = length / self.length;
        let mut parts = HashMap::<i64, Part>::default();
        for (at, part) in self.parts.drain() {
            parts.entry(at.div_euclid(times)).or_default().add(part);
        }
        (self.length, self.parts) = (length, parts);
    }

    /// Takes the calls of another time.
    pub fn take(&mut self, later: &Self) {
        self.coarsen(later.length);
        let mut later = later.clone();
        later.coarsen(self.length);
        for (at, part) in later.parts {
            self.parts.entry(at).or_default().add(part);
        }
        while self.parts.len() > self.most {
            self.coarsen(self.length.saturating_mul(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::span_id;
    use crate::vocabulary::{Kind, Layer};

    #[test]
    fn parts_grow_and_nothing_is_lost() {
        let mut paid = Paid::default();
        let call = |n: u32, start, lasts| Span {
            probe_ns: Some(1 << 10),
            ..Span::new(span_id(1, n), (Layer::Mpi, "MPI_Barrier", Kind::Other), 1, (start, lasts))
        };
        for n in 0..5000_u32 {
            paid.add(&call(n, i64::from(n) * PART, PART / 2), true, false);
        }
        let mut later = Paid::default();
        later.add(&call(5000, 1 << 50, 1 << 40), true, false);
        assert!(paid.parts.len() <= PARTS_MAX && later.parts.len() <= PARTS_MAX + 1);
        paid.take(&later);
        assert!(paid.parts.len() <= PARTS_MAX);
        let hooks: i64 = paid.parts.values().map(|part| part.hooks).sum();
        // What is less than a ns of a part of a long call is rounded off.
        assert!((5000 * 1024..=5001 * 1024).contains(&hooks), "{hooks}");
    }
}
