//! The tracer's own share: by how much its hooks lengthen the run.

use crate::correlate::rows::{Metric, Row};
use crate::export::{HOOKS_NS, TRACING_NS};
use crate::loader::session::Hooked;

/// What hooks have cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    seen: Hooked,
    /// By how much the run is longer for it.
    longer_ns: f64,
}

impl Share {
    /// Adds what hooks have cost since the last time.
    ///
    /// Threads that run side by side pay for their hooks side by side: what all paid is divided by how many those are at
    /// most (threads that were alive at once, that had hooks, and CPUs), unless one thread alone paid more.
    pub fn add(&mut self, now: Hooked, cpus: usize) {
        let new = |f: fn(&Hooked) -> u64| f(&now).saturating_sub(f(&self.seen)) as f64;
        let beside = (now.alive.min(now.threads) as usize).clamp(1, cpus.max(1));
        self.longer_ns += new(|h| h.most_ns).max(new(|h| h.total_ns) / beside as f64);
        self.seen = now;
    }

    pub fn rows(&self, t_ns: i64) -> impl Iterator<Item = Row> + use<> {
        let rows = [(HOOKS_NS, self.seen.total_ns as f64), (TRACING_NS, self.longer_ns)];
        rows.into_iter().map(move |(name, value)| Row::Metric(Metric { t_ns, name, label: None, value }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn hooked(total_ns: u64, most_ns: u64, threads: u32, alive: u32) -> Hooked {
        Hooked { total_ns, most_ns, threads, alive }
    }

    #[test]
    fn what_threads_pay_side_by_side_lengthens_the_run_once() {
        let longer = |hooked: Hooked| {
            let mut share = Share::default();
            share.add(hooked, 8);
            share.longer_ns as i64
        };
        assert_eq!(longer(hooked(400, 100, 4, 4)), 100, "four ranks");
        assert_eq!(longer(hooked(400, 10, 40, 1)), 400, "forty processes one after the other");
        assert_eq!(longer(hooked(100, 100, 1, 64)), 100, "one of 64 threads");
        assert_eq!(longer(hooked(1600, 100, 16, 16)), 200, "sixteen threads on eight CPUs");
        assert_eq!(longer(hooked(0, 0, 0, 0)), 0);
    }

    #[test]
    fn only_what_is_new_is_added() {
        let mut share = Share::default();
        share.add(hooked(100, 100, 1, 1), 2);
        share.add(hooked(300, 200, 2, 2), 2);
        share.add(hooked(300, 200, 0, 2), 2);
        let values: Vec<_> = share.rows(7).collect();
        let value = |name| {
            values.iter().find_map(|row| match row {
                Row::Metric(m) if m.name == name => Some((m.t_ns, m.value)),
                _ => None,
            })
        };
        assert_eq!((value(HOOKS_NS), value(TRACING_NS)), (Some((7, 300.0)), Some((7, 200.0))));
    }
}
