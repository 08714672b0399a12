//! What the kernel counts of the traced processes by perf events: which counters, and how their values are read. Pure.

use crate::node::figures::{Figure, Reading};
use perf_event::events::{Hardware, Software};

/// `perf_type_id` of `include/uapi/linux/perf_event.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Hardware = 0,
    Software = 1,
}

impl Kind {
    /// As in `iotrace_node_source` and in `meta`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hardware => "perf_event hardware",
            Self::Software => "perf_event software",
        }
    }
}

pub const KINDS: [Kind; 2] = [Kind::Software, Kind::Hardware];

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counter {
    pub kind: Kind,
    /// `perf_hw_id` or `perf_sw_ids`.
    pub config: u64,
    pub figure: Figure,
    pub part: &'static str,
    /// How many are one of the figure's unit.
    per_unit: f64,
}

impl Counter {
    /// Its figure and part.
    pub fn name(&self) -> String {
        [self.figure.name(), self.part].join(" ").trim_end().to_owned()
    }
}

const fn software(event: Software, figure: Figure, part: &'static str, per_unit: f64) -> Counter {
    Counter { kind: Kind::Software, config: event as u64, figure, part, per_unit }
}

const fn hardware(event: Hardware, part: &'static str) -> Counter {
    Counter { kind: Kind::Hardware, config: event as u64, figure: Figure::TargetHardware, part, per_unit: 1.0 }
}

/// `PERF_COUNT_SW_TASK_CLOCK`: of a whole CPU it is the observed time.
pub const TASK_CLOCK: u64 = Software::TASK_CLOCK as u64;

/// The part of the page faults for which the kernel waited.
pub const MAJOR: &str = "major";

/// In the order of their figures.
pub const COUNTERS: [Counter; 10] = [
    software(Software::TASK_CLOCK, Figure::TargetCpu, "", 1e9),
    software(Software::PAGE_FAULTS_MIN, Figure::TargetFaults, "minor", 1.0),
    software(Software::PAGE_FAULTS_MAJ, Figure::TargetFaults, MAJOR, 1.0),
    software(Software::CONTEXT_SWITCHES, Figure::TargetSwitches, "", 1.0),
    software(Software::CPU_MIGRATIONS, Figure::TargetMigrations, "", 1.0),
    hardware(Hardware::CPU_CYCLES, "cycles"),
    hardware(Hardware::INSTRUCTIONS, "instructions"),
    hardware(Hardware::CACHE_REFERENCES, "cache_references"),
    hardware(Hardware::CACHE_MISSES, "cache_misses"),
    hardware(Hardware::BRANCH_MISSES, "branch_misses"),
];

/// What one event has counted: `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub value: u64,
    pub enabled_ns: u64,
    pub running_ns: u64,
}

impl Count {
    /// With what was not counted while other events had the CPU's counters, as perf estimates it.
    fn estimate(self) -> f64 {
        match self.running_ns {
            0 => 0.0,
            running if running < self.enabled_ns => self.value as f64 * (self.enabled_ns as f64 / running as f64),
            _ => self.value as f64,
        }
    }
}

/// The sums over all events of each counter that has any: indices in [`COUNTERS`], and counts.
pub fn readings(counts: impl IntoIterator<Item = (usize, Count)>) -> Vec<Reading> {
    let mut sums = [None; COUNTERS.len()];
    for (at, count) in counts {
        if let Some(sum) = sums.get_mut(at) {
            *sum = Some(sum.unwrap_or(0.0) + count.estimate());
        }
    }
    let values = COUNTERS.iter().zip(sums).filter_map(|(counter, sum)| Some((counter, sum?)));
    values.map(|(c, sum)| Reading { figure: c.figure, of: "".into(), part: c.part, value: sum / c.per_unit }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_counter_add_up_and_what_was_not_counted_all_the_time_is_estimated() {
        let count = |value, enabled_ns, running_ns| Count { value, enabled_ns, running_ns };
        let values = readings([
            (0, count(1_500_000_000, 9, 9)),
            (0, count(500_000_000, 9, 9)),
            (1, count(7, 0, 0)),
            (5, count(100, 20, 5)),
            (99, count(1, 1, 1)),
        ]);
        let values: Vec<_> = values.iter().map(|r| (r.figure.name(), r.part, r.value)).collect();
        let expected = [
            ("target_cpu_seconds", "", 2.0),
            // It has not run yet.
            ("target_page_faults", "minor", 0.0),
            ("target_hardware_events", "cycles", 400.0),
        ];
        assert_eq!(values, expected);
        assert_eq!(readings([]), []);
    }
}
