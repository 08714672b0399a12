//! The tracer's own share, from the rows of table `metrics`.

use crate::correlate::rows::Metric;

/// Names in the table, in ns since the start of the trace: what hooks have cost all threads, and by how much the run is longer
/// for it. The first row of the latter is of the beginning of the run, the last one of its end.
pub const HOOKS_NS: &str = "hooks_ns";
pub const TRACING_NS: &str = "tracing_ns";
/// The share above which durations are not to be trusted.
pub const TRUSTED_SHARE: f64 = 0.2;

/// What tracing has cost a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tracing {
    /// Time of hooks in all traced threads together.
    pub hooks_ns: f64,
    /// By how much that has lengthened the run.
    pub tracing_ns: f64,
    run: Option<(i64, i64)>,
}

impl Tracing {
    /// Takes a row. Of several nodes, which run side by side, the one with most counts.
    pub fn add(&mut self, row: &Metric) {
        match row.name {
            HOOKS_NS => self.hooks_ns = self.hooks_ns.max(row.value),
            TRACING_NS => {
                self.tracing_ns = self.tracing_ns.max(row.value);
                let (from, to) = self.run.unwrap_or((row.t_ns, row.t_ns));
                self.run = Some((from.min(row.t_ns), to.max(row.t_ns)));
            }
            _ => {}
        }
    }

    /// How long the run was, if that was recorded.
    pub fn run_ns(&self) -> Option<i64> {
        self.run.map(|(from, to)| to - from)
    }

    /// The part of the run that tracing took, if it was recorded.
    pub fn share(&self) -> Option<f64> {
        self.run_ns().map(|ns| if ns > 0 { self.tracing_ns / ns as f64 } else { 0.0 })
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
        assert_eq!(tracing.run_ns(), Some(200));
    }
}
