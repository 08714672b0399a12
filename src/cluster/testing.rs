//! Pages of tracers for tests.

use crate::cluster::history::Node;
use crate::cluster::target;
use crate::cluster::totals::{Totals, read};

/// What a page has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Page<'a> {
    pub name: &'a str,
    pub started: f64,
    /// Seconds in I/O by rank.
    pub io: &'a [(Option<i32>, f64)],
    /// Of what has no rank.
    pub calls: f64,
    pub read: f64,
    pub written: f64,
    pub failed: f64,
    pub pressure: f64,
    pub lost: f64,
    /// Seconds of a rule.
    pub finding: Option<(&'a str, f64)>,
    pub processes: u32,
}

impl Page<'_> {
    pub fn text(&self) -> String {
        let mut text = format!(
            "iotrace_build_info{{version=\"1\",node=\"{}\"}} 1\nprocess_start_time_seconds {}\n\
             iotrace_program_calls_total {}\niotrace_program_failed_total {}\n\
             iotrace_program_bytes_total{{direction=\"read\"}} {}\n\
             iotrace_program_bytes_total{{direction=\"write\"}} {}\n\
             iotrace_node_pressure_seconds_total{{resource=\"io\",kind=\"some\"}} {}\n\
             iotrace_lost_events_total{{layer=\"syscall\",reason=\"ring\"}} {}\niotrace_traced_processes {}\n",
            self.name,
            self.started,
            self.calls,
            self.failed,
            self.read,
            self.written,
            self.pressure,
            self.lost,
            self.processes
        );
        for (rank, seconds) in self.io {
            let label = rank.map_or_else(String::new, |rank| format!("{{rank=\"{rank}\"}}"));
            text += &format!("iotrace_program_io_seconds_total{label} {seconds}\n");
        }
        if let Some((rule, seconds)) = self.finding {
            text += &format!("iotrace_finding_seconds{{rule=\"{rule}\"}} {seconds}\n");
        }
        text
    }

    pub fn read(&self) -> Result<Totals, String> {
        read(&self.text())
    }
}

/// A node that has not been asked.
#[allow(clippy::unwrap_used)]
pub fn node(target: &str) -> Node {
    Node::new(target::parse(target).unwrap())
}
