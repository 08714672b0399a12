//! The tracer's own share: by how much its hooks and its own work lengthen the run.

use crate::analysis::trace::share::{HELD_NS, HOOKS_NS, TRACING_NS};
use crate::loader::session::Hooked;
use crate::node::figures;
use crate::rows::{Metric, Row};
use std::time::Duration;

/// CPU time so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cpu {
    /// That the tracer has used itself, in ns.
    pub own_ns: f64,
    /// In which CPUs had nothing to do, in ns of all of them together.
    pub idle_ns: f64,
    pub cpus: f64,
}

impl Cpu {
    /// CPU time of the process, and of the node; nothing where one is not known.
    pub fn now() -> Option<Self> {
        let own = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).ok()?;
        let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
        let cpus = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN).ok()??;
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let idle = figures::cpu(&stat, ticks as f64).into_iter().filter(|reading| IDLE.contains(&reading.part));
        Some(Self {
            own_ns: own.tv_sec() as f64 * 1e9 + own.tv_nsec() as f64,
            idle_ns: idle.map(|reading| reading.value * 1e9).sum(),
            cpus: cpus.max(1) as f64,
        })
    }

    /// By how much what the tracer did since then lengthened a run that needs all CPUs: what it used beyond what would
    /// have been idle, as far as it took all CPUs from it.
    fn displaced_since(&self, before: &Self) -> f64 {
        let (own, idle) = (self.own_ns - before.own_ns, self.idle_ns - before.idle_ns);
        (own - idle).max(0.0) / self.cpus
    }
}

/// Modes of CPUs in which they would have had time for the tracer.
const IDLE: [&str; 2] = ["idle", "iowait"];

/// What tracing has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    total_ns: u64,
    /// By how much the run is longer for it.
    longer_ns: f64,
    /// For how long calls were held.
    held_ns: f64,
    /// When that was, in ns since the start of the trace.
    at: i64,
    cpu: Option<Cpu>,
}

impl Share {
    /// Adds what hooks, and the tracer's own threads, have cost since the last time, now.
    ///
    /// Threads that run side by side pay side by side: the run is longer by the part of its time that the thread paid
    /// that paid most, and by no more than what all paid together, one after the other. What the tracer does itself
    /// lengthens it where no CPU has time for that.
    pub fn add(&mut self, now: Hooked, cpu: Option<Cpu>, t_ns: i64) {
        let new = now.total_ns.saturating_sub(self.total_ns) as f64;
        let passed = t_ns.saturating_sub(self.at) as f64;
        let displaced = cpu.zip(self.cpu).map_or(0.0, |(now, before)| now.displaced_since(&before));
        self.longer_ns += (new.min(passed * now.part) + displaced).min(passed.max(0.0));
        (self.total_ns, self.at, self.cpu) = (now.total_ns, t_ns, cpu);
    }

    /// A call waited until the tracer let it go on. One after the other goes on.
    pub fn hold(&mut self, time: Duration) {
        self.held_ns += time.as_nanos() as f64;
    }

    pub fn rows(&self) -> impl Iterator<Item = Row> + use<> {
        let costs = [(HOOKS_NS, self.total_ns as f64), (TRACING_NS, self.longer_ns), (HELD_NS, self.held_ns)];
        let (t_ns, values) = (self.at, costs);
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
            share.add(Hooked { total_ns, part }, None, 1000);
            share.longer_ns as i64
        };
        assert_eq!(longer(400, 0.1), 100, "four ranks that paid a tenth of their time each");
        assert_eq!(longer(400, 0.4), 400, "forty processes one after the other");
        assert_eq!(longer(100, 0.1), 100, "one of many threads");
        assert_eq!(longer(7, 0.5), 7, "one that paid half of its short life");
        assert_eq!(longer(0, 0.0), 0);
    }

    #[test]
    fn work_of_the_tracer_counts_where_no_cpu_is_idle() {
        let cpu = |own_ns, idle_ns| Some(Cpu { own_ns, idle_ns, cpus: 2.0 });
        let hooks = |total_ns, part| Hooked { total_ns, part };
        let mut share = Share::default();
        share.add(hooks(0, 0.0), cpu(5000.0, 100.0), 1000);
        assert_eq!(share.longer_ns as i64, 0, "what it did before");
        share.add(hooks(0, 0.0), cpu(5400.0, 1100.0), 2000);
        assert_eq!(share.longer_ns as i64, 0, "a CPU was idle");
        share.add(hooks(0, 0.0), cpu(5800.0, 1200.0), 3000);
        assert_eq!(share.longer_ns as i64, 150, "three of four on both CPUs");
        share.add(hooks(900, 0.9), cpu(6800.0, 1200.0), 4000);
        assert_eq!(share.longer_ns as i64, 1150, "no longer than the run was");
        share.add(hooks(900, 0.0), None, 5000);
        assert_eq!(share.longer_ns as i64, 1150);
    }

    #[test]
    fn only_what_is_new_is_added() {
        let mut share = Share::default();
        share.add(Hooked { total_ns: 100, part: 1.0 }, None, 1000);
        share.add(Hooked { total_ns: 300, part: 0.1 }, None, 2000);
        share.add(Hooked { total_ns: 300, part: 0.0 }, None, 3000);
        share.hold(Duration::from_nanos(30));
        share.hold(Duration::from_nanos(4));
        let values: Vec<_> = share.rows().collect();
        let value = |name| {
            values.iter().find_map(|row| match row {
                Row::Metric(m) if m.name == name => Some((m.t_ns, m.value)),
                _ => None,
            })
        };
        assert_eq!((value(HOOKS_NS), value(TRACING_NS)), (Some((3000, 300.0)), Some((3000, 200.0))));
        assert_eq!(value(HELD_NS), Some((3000, 34.0)));
    }
}
