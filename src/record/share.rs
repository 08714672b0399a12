//! The tracer's own share: by how much its hooks lengthen the run.

use crate::correlate::rows::{Metric, Row};
use crate::export::{HOOKS_NS, TRACING_NS};
use crate::loader::session::Hooked;

/// What hooks have cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    total_ns: u64,
    /// By how much the run is longer for it.
    longer_ns: f64,
    /// When that was, in ns since the start of the trace.
    at: i64,
}

impl Share {
    /// Adds what hooks have cost since the last time, now.
    ///
    /// Threads that run side by side pay side by side: the run is longer by the part of its time that the thread paid that
    /// paid most, and by no more than what all paid together, one after the other.
    pub fn add(&mut self, now: Hooked, t_ns: i64) {
        let new = now.total_ns.saturating_sub(self.total_ns) as f64;
        let passed = t_ns.saturating_sub(self.at) as f64;
        self.longer_ns += new.min(passed * now.part);
        (self.total_ns, self.at) = (now.total_ns, t_ns);
    }

    pub fn rows(&self) -> impl Iterator<Item = Row> + use<> {
        let (t_ns, values) = (self.at, [(HOOKS_NS, self.total_ns as f64), (TRACING_NS, self.longer_ns)]);
        values.into_iter().map(move |(name, value)| Row::Metric(Metric { t_ns, name, label: None, value }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_pay_side_by_side_lengthens_the_run_once() {
        let longer = |total_ns, part| {
            let mut share = Share::default();
            share.add(Hooked { total_ns, part }, 1000);
            share.longer_ns as i64
        };
        assert_eq!(longer(400, 0.1), 100, "four ranks that paid a tenth of their time each");
        assert_eq!(longer(400, 0.4), 400, "forty processes one after the other");
        assert_eq!(longer(100, 0.1), 100, "one of many threads");
        assert_eq!(longer(7, 0.5), 7, "one that paid half of its short life");
        assert_eq!(longer(0, 0.0), 0);
    }

    #[test]
    fn only_what_is_new_is_added() {
        let mut share = Share::default();
        share.add(Hooked { total_ns: 100, part: 1.0 }, 1000);
        share.add(Hooked { total_ns: 300, part: 0.1 }, 2000);
        share.add(Hooked { total_ns: 300, part: 0.0 }, 3000);
        let values: Vec<_> = share.rows().collect();
        let value = |name| {
            values.iter().find_map(|row| match row {
                Row::Metric(m) if m.name == name => Some((m.t_ns, m.value)),
                _ => None,
            })
        };
        assert_eq!((value(HOOKS_NS), value(TRACING_NS)), (Some((3000, 300.0)), Some((3000, 200.0))));
    }
}
