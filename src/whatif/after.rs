//! What comes after a sleep: caches are cold then, and the CPU has slept, too. Without the sleep, calls and what the program
//! does between them take at best what the cheapest of them do in the same trace.

use std::collections::HashSet;

use crate::HashMap;
use crate::base::hist::{Histogram, REPORT_BITS};
use crate::rows::Span;

/// Of calls of one kind and size so many take no longer than what one is taken to cost at best.
pub const CHEAPEST: f64 = 0.1;
/// Calls of one kind that show what one costs.
pub const ENOUGH: i64 = 8;
/// So long after a sleep caches are warm again, and calls and what is between them are longer for it by no more, in ns: a
/// second-level cache of 2 MiB is read from memory in some 100 us, at 64 bytes in 3 ns. Programs also compute for a different
/// time between the same calls.
const WARM_NS: i64 = 100_000;
/// Calls by operation and size, and pairs of calls, with figures of their own.
const KEYS_MAX: usize = 1 << 12;
/// Threads whose last call is remembered.
const THREADS_MAX: usize = 1 << 17;

/// What a thread was asleep for last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slept {
    /// A flush, or a write with `O_SYNC`.
    Flush,
    /// A read that was not in the page cache.
    Read,
    Other,
}

/// The CPU time of calls of a process of one size, or its time between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Call(i32, &'static str, u32),
    Between(i32, &'static str, &'static str),
}

impl Key {
    const fn process(self) -> i32 {
        match self {
            Self::Call(process, ..) | Self::Between(process, ..) => process,
        }
    }
}

/// Times of one key, in ns.
#[derive(Default)]
struct Times {
    all: Histogram<REPORT_BITS>,
    after_flush: Histogram<REPORT_BITS>,
    after_read: Histogram<REPORT_BITS>,
}

#[derive(Clone, Copy)]
struct Last {
    end_ns: i64,
    op: &'static str,
    slept: Slept,
    /// When that ended.
    woke_ns: i64,
}

impl Last {
    /// What it was asleep for just before.
    fn before(&self, ns: i64) -> Slept {
        if ns.saturating_sub(self.woke_ns) < WARM_NS { self.slept } else { Slept::Other }
    }
}

/// A system call.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// What it slept for, if it did.
    pub slept: Option<Slept>,
    /// On a CPU, in ns. `None`: not known, or another model is about it.
    pub cpu_ns: Option<i64>,
}

/// All of a trace.
#[derive(Default)]
pub struct After {
    times: HashMap<Key, Times>,
    /// By process and thread.
    threads: HashMap<(i32, i32), Last>,
}

impl After {
    /// The next system call of a thread.
    pub fn span(&mut self, span: &Span, call: Call) {
        let thread = (span.process_ix, span.tid);
        let end_ns = span.end_ns();
        let before = self.threads.get(&thread).copied();
        if let Some(last) = before.filter(|last| last.end_ns <= span.start_ns) {
            let key = Key::Between(span.process_ix, last.op, span.op);
            self.add(key, span.start_ns - last.end_ns, last.before(last.end_ns));
        }
        if let Some(ns) = call.cpu_ns {
            let size = span.bytes.map_or(0, |bytes| bytes.max(1).ilog2());
            let slept = before.map_or(Slept::Other, |last| last.before(span.start_ns));
            self.add(Key::Call(span.process_ix, span.op, size), ns, slept);
        }
        if before.is_none() && self.threads.len() >= THREADS_MAX {
            self.threads.clear();
        }
        let (slept, woke_ns) = match (call.slept, before) {
            (None, Some(last)) => (last.slept, last.woke_ns),
            (slept, _) => (slept.unwrap_or(Slept::Other), end_ns),
        };
        self.threads.insert(thread, Last { end_ns, op: span.op, slept, woke_ns });
    }

    fn add(&mut self, key: Key, ns: i64, slept: Slept) {
        if self.times.len() >= KEYS_MAX && !self.times.contains_key(&key) {
            return;
        }
        let times = self.times.entry(key).or_default();
        times.all.add(ns);
        match slept {
            Slept::Flush => times.after_flush.add(ns),
            Slept::Read => times.after_read.add(ns),
            Slept::Other => {}
        }
    }

    /// By how many seconds calls of these processes, and what is between them, take less at best without such sleeps.
    pub fn shorter(&self, slept: Slept, processes: &HashSet<i32>) -> f64 {
        let known = self.times.iter().filter(|(key, times)| {
            processes.contains(&key.process()) && i64::try_from(times.all.total()).is_ok_and(|n| n >= ENOUGH)
        });
        let shorter = |times: &Times| {
            let cheapest = times.all.quantile(CHEAPEST).unwrap_or(0);
            let after = match slept {
                Slept::Flush => &times.after_flush,
                Slept::Read => &times.after_read,
                Slept::Other => return 0.0,
            };
            let each = |(ns, n): (u64, u64)| ns.saturating_sub(cheapest).min(WARM_NS as u64) as f64 / 1e9 * n as f64;
            after.middles().map(each).sum()
        };
        known.map(|(_, times)| shorter(times)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::span_id;
    use crate::vocabulary::{Kind, Layer};

    /// `pwrite64` and `fsync` by turns, with so much before each: a call of 2 us, a flush of 1 ms that sleeps.
    fn made(gaps: impl IntoIterator<Item = i64>, slept: Slept) -> After {
        let (mut after, mut now) = (After::default(), 0);
        for (seq, gap) in (0..).zip(gaps) {
            for (at, op, ns) in [(0, "pwrite64", 2_000), (1, "fsync", 1_000_000)] {
                let start = now + gap;
                now = start + ns;
                let span = Span::new(span_id(1, seq * 2 + at), (Layer::Syscall, op, Kind::Write), 1, (start, ns));
                let is_flush = at == 1;
                let call = Call { slept: is_flush.then_some(slept), cpu_ns: (!is_flush).then_some(ns) };
                after.span(&span, call);
            }
        }
        after
    }

    fn is(seconds: f64, wanted: f64) -> bool {
        (seconds - wanted).abs() <= wanted * 0.13
    }

    #[test]
    fn what_follows_a_flush_takes_at_best_what_the_cheapest_does() {
        // Before the first flush nothing was slept for: 2 gaps of the 40 are not after one.
        let after = made((0..20).map(|n| if n % 4 == 0 { 1_000 } else { 21_000 }), Slept::Flush);
        let own = HashSet::from([after.times.keys().next().map_or(0, |key| key.process())]);
        let shorter = after.shorter(Slept::Flush, &own);
        assert!(is(shorter, 30.0 * 20e-6), "{shorter}");
        assert_eq!((after.shorter(Slept::Read, &own), after.shorter(Slept::Other, &own)), (0.0, 0.0));
        assert!(after.shorter(Slept::Flush, &HashSet::from([77])) < 1e-12, "another process");
    }

    #[test]
    fn what_a_program_computes_is_its_own() {
        let after = made((0..20).map(|n| if n % 4 == 0 { 1_000 } else { 9_000_000 }), Slept::Read);
        let own = HashSet::from([after.times.keys().next().map_or(0, |key| key.process())]);
        let shorter = after.shorter(Slept::Read, &own);
        assert!(is(shorter, 15.0 * 100e-6), "{shorter}");
        assert!(made([9_000_000; 40], Slept::Read).shorter(Slept::Read, &own) < 1e-12, "all the same");
        assert!(made([1_000, 9_000, 9_000], Slept::Read).shorter(Slept::Read, &own) < 1e-12, "too few");
    }
}
