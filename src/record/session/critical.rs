//! `--detail critical`: which process waits most in its file accesses, second by second.

use crate::analysis::calls::is_file_access;
use crate::rows::{FileRollup, Metric, Row};
use std::collections::HashMap;
use std::time::Duration;

/// The metric with what the chosen process waited of each second; its label is `process_ix`.
pub const METRIC: &str = "critical_process";

/// How often one is chosen.
const EVERY: Duration = Duration::from_secs(1);
/// Below this share of the time nobody waits.
const LEAST: f64 = 0.01;
/// Another one is chosen when it waited this many times as long: of equal ones the first stays.
const CLEARLY: f64 = 1.2;

/// Follows the sums of a trace.
#[derive(Debug, Default)]
pub struct Critical {
    /// By process, since the last look, in ns.
    waited: HashMap<u32, i64>,
    looked: Duration,
    chosen: Option<u32>,
}

/// What waits in a call, and has neither a CPU nor stands in a run queue.
fn waited_ns(row: &FileRollup) -> i64 {
    row.dur_ns.saturating_sub(row.cpu_ns).saturating_sub(row.runq_ns).max(0)
}

impl Critical {
    /// The process whose calls are recorded.
    pub const fn chosen(&self) -> Option<u32> {
        self.chosen
    }

    /// A process has ended.
    pub fn ended(&mut self, process: u32) {
        self.chosen.take_if(|chosen| *chosen == process);
    }

    pub fn push(&mut self, rows: &[Row]) {
        for row in rows {
            let Row::FileRollup(row) = row else { continue };
            let process = row.process_ix.and_then(|ix| u32::try_from(ix).ok());
            if let Some(process) = process.filter(|_| is_file_access(row.layer)) {
                let waited = self.waited.entry(process).or_default();
                *waited = waited.saturating_add(waited_ns(row));
            }
        }
    }

    /// The process that waited most since the last look, if it is time for one, and the row that shows it. Where nobody
    /// waited there is none, and the last one stays chosen.
    pub fn look(&mut self, elapsed: Duration) -> Option<Row> {
        let passed = elapsed.saturating_sub(self.looked);
        if passed < EVERY || self.waited.is_empty() {
            return None;
        }
        self.looked = elapsed;
        let waited = std::mem::take(&mut self.waited);
        let (most, ns) = waited.iter().map(|(process, ns)| (*process, *ns)).max_by_key(|(p, ns)| (*ns, !*p))?;
        let share = |ns: i64| ns as f64 / passed.as_nanos() as f64;
        if share(ns) < LEAST {
            return None;
        }
        let holds = |process: &u32| ns as f64 <= waited.get(process).map_or(0.0, |ns| *ns as f64) * CLEARLY;
        let process = self.chosen.filter(holds).unwrap_or(most);
        self.chosen = Some(process);
        let value = share(waited.get(&process).copied().unwrap_or_default());
        let t_ns = i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX);
        Some(Row::Metric(Metric { t_ns, name: METRIC, label: Some(process.to_string()), value }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::dataset::tests::sums;
    use crate::vocabulary::{Kind, Layer};

    const MS: i64 = 1_000_000;

    fn sum(process: i32, layer: Layer, ms: [i64; 2]) -> Row {
        let [dur_ns, cpu_ns] = ms.map(|n| n * MS);
        let row =
            FileRollup { process_ix: Some(process), dur_ns, cpu_ns, runq_ns: 0, ..sums(layer, "read", Kind::Read) };
        Row::FileRollup(Box::new(row))
    }

    fn after(critical: &mut Critical, seconds: u64, rows: &[Row]) -> Option<(u32, f64)> {
        critical.push(rows);
        let Row::Metric(metric) = critical.look(Duration::from_secs(seconds))? else { return None };
        let process = critical.chosen()?;
        assert_eq!((metric.name, metric.label), (METRIC, Some(process.to_string())));
        Some((process, metric.value))
    }

    #[test]
    fn the_one_that_waits_most_is_chosen_and_moves_when_another_does() {
        let mut critical = Critical::default();
        let file = |process, ms| sum(process, Layer::Syscall, ms);
        let mut look = |second, rows: &[Row]| after(&mut critical, second, rows);
        // A process that computes in its calls does not wait, and what a library waits its system calls wait.
        let rows = [file(1, [900, 800]), file(2, [200, 0]), file(2, [100, 0]), sum(3, Layer::Stdio, [700, 0])];
        assert_eq!(look(1, &rows), Some((2, 0.3)));
        assert_eq!(look(2, &[file(2, [400, 0]), file(4, [440, 0])]), Some((2, 0.4)), "about as long");
        assert_eq!(look(3, &[file(2, [100, 0]), file(4, [440, 0])]), Some((4, 0.44)));
        assert_eq!(look(4, &[file(2, [5, 0])]), None, "nobody waits");
        assert_eq!(look(5, &[]), None);
        critical.ended(2);
        assert_eq!(critical.chosen(), Some(4));
        critical.ended(4);
        assert_eq!(critical.chosen(), None);
    }

    #[test]
    fn a_look_is_of_what_came_since_the_last_one() {
        let mut critical = Critical::default();
        critical.push(&[sum(1, Layer::Vfs, [300, 0])]);
        assert!(critical.look(Duration::from_millis(500)).is_none(), "too early");
        assert_eq!(after(&mut critical, 2, &[sum(1, Layer::Vfs, [300, 0])]), Some((1, 0.3)));
        assert_eq!(after(&mut critical, 3, &[sum(2, Layer::Syscall, [50, 0])]), Some((2, 0.05)));
    }
}
