//! The page of a tracer as figures.

use std::collections::BTreeMap;

use crate::metrics::reader::{self, Sample};
use crate::vocabulary::Layer;

/// Rules of a page at most: there are some 40.
const RULES_MAX: usize = 256;
/// Ranks of a page at most: a tracer has no more.
const RANKS_MAX: usize = 4096;

/// What the programs of a node or rank called themselves.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    pub calls: f64,
    pub failed: f64,
    pub read: f64,
    pub written: f64,
    /// Seconds in these calls.
    pub seconds: f64,
}

impl Work {
    /// Each figure made another, from those of two.
    #[must_use]
    pub fn with(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            calls: f(self.calls, other.calls),
            failed: f(self.failed, other.failed),
            read: f(self.read, other.read),
            written: f(self.written, other.written),
            seconds: f(self.seconds, other.seconds),
        }
    }
}

/// Totals of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OfLayer {
    pub work: Work,
    /// Exclusive seconds.
    pub own_seconds: f64,
    pub lost: f64,
}

/// All that is taken from a page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Totals {
    /// The node's name; empty where the tracer does not give it.
    pub node: String,
    pub version: String,
    /// When the trace began, in seconds since 1970.
    pub started: f64,
    /// By rank; of what has none, or one beyond the limit, together.
    pub programs: BTreeMap<Option<i32>, Work>,
    /// `None`: events of which the layer is not known.
    pub layers: BTreeMap<Option<Layer>, OfLayer>,
    /// Seconds of the last minute, by rule; none where they are not known.
    pub findings: BTreeMap<String, f64>,
    pub processes: f64,
    /// Part of the run that tracing took.
    pub tracing: Option<f64>,
    /// Seconds since boot in which some task waited for I/O.
    pub pressure: Option<f64>,
}

impl Totals {
    /// What the programs of the node called themselves.
    pub fn work(&self) -> Work {
        self.programs.values().fold(Work::default(), |all, work| all.with(*work, |a, b| a + b))
    }

    pub fn lost(&self) -> f64 {
        self.layers.values().map(|layer| layer.lost).sum()
    }
}

/// The totals on a page.
///
/// # Errors
/// When it is no page of metrics, or not one of a tracer.
pub fn read(text: &str) -> Result<Totals, String> {
    let mut totals = Totals::default();
    for sample in reader::samples(text) {
        let sample = sample.map_err(|why| format!("the answer is no page of metrics: {why}"))?;
        totals.take(&sample);
    }
    if totals.version.is_empty() {
        return Err("the answer is not from iotrace-bpf: it has no iotrace_build_info".to_owned());
    }
    Ok(totals)
}

impl Totals {
    fn take(&mut self, sample: &Sample) {
        // Whatever else a number may be, it is no total.
        let value = if sample.value.is_finite() { sample.value.max(0.0) } else { 0.0 };
        match sample.name {
            "iotrace_build_info" => {
                sample.label("node").clone_into(&mut self.node);
                sample.label("version").clone_into(&mut self.version);
            }
            "process_start_time_seconds" => self.started = value,
            "iotrace_program_calls_total" => self.of_rank(sample).calls += value,
            "iotrace_program_failed_total" => self.of_rank(sample).failed += value,
            "iotrace_program_io_seconds_total" => self.of_rank(sample).seconds += value,
            "iotrace_program_bytes_total" => *direction(sample, self.of_rank(sample)) += value,
            "iotrace_op_duration_seconds_count" => self.of_layer(sample).work.calls += value,
            "iotrace_op_duration_seconds_sum" => self.of_layer(sample).work.seconds += value,
            "iotrace_op_failed_total" => self.of_layer(sample).work.failed += value,
            "iotrace_op_self_seconds_total" => self.of_layer(sample).own_seconds += value,
            "iotrace_bytes_total" => *direction(sample, &mut self.of_layer(sample).work) += value,
            "iotrace_lost_events_total" => self.of_layer(sample).lost += value,
            "iotrace_finding_seconds" if self.findings.len() < RULES_MAX => {
                self.findings.insert(sample.label("rule").to_owned(), value);
            }
            "iotrace_traced_processes" => self.processes = value,
            "iotrace_tracing_ratio" => self.tracing = Some(value),
            "iotrace_node_pressure_seconds_total"
                if sample.label("resource") == "io" && sample.label("kind") == "some" =>
            {
                self.pressure = Some(value);
            }
            _ => {}
        }
    }

    fn of_rank(&mut self, sample: &Sample) -> &mut Work {
        let rank = sample.label("rank").parse().ok();
        let fits = self.programs.len() < RANKS_MAX || self.programs.contains_key(&rank);
        self.programs.entry(rank.filter(|_| fits)).or_default()
    }

    fn of_layer(&mut self, sample: &Sample) -> &mut OfLayer {
        self.layers.entry(Layer::parse(sample.label("layer"))).or_default()
    }
}

fn direction<'a>(sample: &Sample, work: &'a mut Work) -> &'a mut f64 {
    if sample.label("direction") == "read" { &mut work.read } else { &mut work.written }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_something_else_is_refused() {
        assert!(read("").is_err_and(|why| why.contains("no iotrace_build_info")));
        assert!(read("node_load1 3\n").is_err_and(|why| why.contains("not from iotrace-bpf")));
        assert!(read("<html>").is_err_and(|why| why.contains("line 1 is no sample")));
    }

    #[test]
    fn strange_numbers_and_unknown_names_do_no_harm() {
        let text = "iotrace_build_info{version=\"9\"} 1\niotrace_program_calls_total{rank=\"x\"} NaN\n\
            iotrace_program_io_seconds_total -5\niotrace_new_total{a=\"b\"} 1\niotrace_traced_processes +Inf\n\
            iotrace_lost_events_total{layer=\"new\",reason=\"ring\"} 3\n";
        let totals = read(text).unwrap_or_default();
        assert_eq!((totals.work(), totals.processes, totals.lost()), (Work::default(), 0.0, 3.0));
    }

    #[test]
    fn ranks_add_up_to_the_node() {
        let mut text = "iotrace_build_info{version=\"9\",node=\"n1\"} 1\n".to_owned();
        for rank in ["", "0", "1", "other"] {
            text += &format!("iotrace_program_bytes_total{{rank=\"{rank}\",direction=\"read\"}} 10\n");
        }
        text += "iotrace_finding_seconds{rule=\"reread\"} 2\niotrace_finding_seconds{rule=\"sync-writes\"} 5.5\n";
        let totals = read(&text).unwrap_or_default();
        assert_eq!((totals.work().read, totals.programs.len(), &*totals.node), (40.0, 3, "n1"));
        assert_eq!(totals.findings.get("sync-writes"), Some(&5.5));
    }
}
