//! The tracer's own share, from the rows of table `metrics`.

use crate::rows::Metric;

/// Names in the table, in ns since the start of the trace: what hooks have cost all threads, and by how much the run is longer
/// for it. The first row of the latter is of the beginning of the run, the last one of its end.
pub const HOOKS_NS: &str = "hooks_ns";
pub const TRACING_NS: &str = "tracing_ns";
/// For how long calls waited until libraries that they map had probes: not in the time of calls, and not in [`TRACING_NS`].
pub const HELD_NS: &str = "held_ns";
/// The share above which durations are not to be trusted.
pub const TRUSTED_SHARE: f64 = 0.2;

/// What tracing has cost a run; of several nodes, the run on the one that it took the greatest share of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tracing {
    /// Time of hooks in all traced threads together.
    pub hooks_ns: f64,
    greatest: Option<Run>,
    /// The run on the node whose rows come now.
    run: Option<Run>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    from: i64,
    to: i64,
    tracing_ns: f64,
    held_ns: f64,
}

impl Run {
    fn share(&self) -> f64 {
        let ns = self.to - self.from;
        if ns > 0 { self.tracing_ns / ns as f64 } else { 0.0 }
    }
}

impl Tracing {
    /// Takes a row. Those of a node come together, in the order of time.
    pub fn add(&mut self, row: &Metric) {
        match row.name {
            HOOKS_NS => self.hooks_ns = self.hooks_ns.max(row.value),
            TRACING_NS => {
                if self.run.is_some_and(|run| row.t_ns < run.to) {
                    self.greatest = self.of();
                    self.run = None;
                }
                let (from, held_ns) = self.run.map_or((row.t_ns, 0.0), |run| (run.from, run.held_ns));
                self.run = Some(Run { from, to: row.t_ns, tracing_ns: row.value, held_ns });
            }
            HELD_NS => self.run.iter_mut().for_each(|run| run.held_ns = row.value),
            _ => {}
        }
    }

    fn of(&self) -> Option<Run> {
        [self.greatest, self.run].into_iter().flatten().max_by(|a, b| a.share().total_cmp(&b.share()))
    }

    /// By how much hooks have lengthened the run; 0 where that was not recorded.
    pub fn tracing_ns(&self) -> f64 {
        self.of().map_or(0.0, |run| run.tracing_ns)
    }

    /// How long the run was held for probes; 0 where that was not recorded.
    pub fn held_ns(&self) -> f64 {
        self.of().map_or(0.0, |run| run.held_ns)
    }

    /// How long the run was, if that was recorded.
    pub fn run_ns(&self) -> Option<i64> {
        self.of().map(|run| run.to - run.from)
    }

    /// The part of the run that tracing took, if it was recorded.
    pub fn share(&self) -> Option<f64> {
        self.of().map(|run| run.share())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_lasts_from_the_first_row_to_the_last() {
        let mut tracing = Tracing::default();
        assert_eq!((tracing.run_ns(), tracing.share()), (None, None));
        let mut add = |name, t_ns, value| {
            tracing.add(&Metric { t_ns, name, label: None, value });
            tracing.share()
        };
        assert_eq!(add("other", 0, 7.0), None);
        assert_eq!(add(TRACING_NS, 1000, 0.0), Some(0.0));
        assert_eq!(add(TRACING_NS, 1100, 20.0), Some(0.2));
        assert_eq!(add(TRACING_NS, 1200, 80.0), Some(0.4));
        assert_eq!((tracing.run_ns(), tracing.held_ns() as i64), (Some(200), 0));
        let held = |t_ns, value| Metric { t_ns, name: HELD_NS, label: None, value };
        tracing.add(&held(1200, 50.0));
        tracing.add(&Metric { t_ns: 1300, name: TRACING_NS, label: None, value: 80.0 });
        assert_eq!((tracing.run_ns(), tracing.held_ns() as i64), (Some(300), 50));
    }

    #[test]
    fn of_several_nodes_the_one_counts_that_tracing_took_most_of() {
        let mut tracing = Tracing::default();
        for (t_ns, value) in [(0, 0.0), (60, 30.0), (0, 0.0), (3600, 40.0), (10, 0.0), (20, 1.0)] {
            tracing.add(&Metric { t_ns, name: TRACING_NS, label: None, value });
        }
        assert_eq!((tracing.share(), tracing.run_ns(), tracing.tracing_ns() as i64), (Some(0.5), Some(60), 30));
    }
}
