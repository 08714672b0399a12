//! Which datasets in a directory have to do with each other, so that one report is on all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::export::Dataset;
use crate::rows::Process;

/// The facts of a dataset that differ between those of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts(pub BTreeMap<String, String>);

impl Facts {
    pub fn number(&self, key: &str) -> Option<i64> {
        self.0.get(key)?.parse().ok()
    }

    /// The start of the trace that ids are of.
    pub fn run(&self) -> Option<i64> {
        self.number("run_t0_ns").or_else(|| self.number("t0_ns"))
    }
}

/// What distinguishes a dataset of another run from those of this one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The trace, by host and start: datasets that it has in common are one recording.
    pub trace: Option<(String, i64)>,
    pub jobs: BTreeSet<String>,
    pub command: Option<String>,
    /// When it was recorded, in ns since 1970.
    pub time: Option<RangeInclusive<i64>>,
}

impl About {
    pub fn of(host: &str, dataset: &Dataset, facts: &Facts) -> Self {
        let mut jobs = BTreeSet::new();
        // What cannot be read of it is a warning of the dataset.
        let _ = dataset.rows(|process: Process| {
            jobs.extend(process.job_id);
            Ok(())
        });
        // Of a tracer that was killed the start is known.
        let from = facts.number("t0_wall_ns");
        let time = from.map(|from| from..=from.saturating_add(facts.number("end_ns").unwrap_or(0).max(0)));
        let trace = facts.run().map(|run| (host.to_owned(), run));
        Self { trace, jobs, command: facts.0.get("command").cloned(), time }
    }

    /// Nodes of one job have its id in common. Without one: other commands, at another time, are another
    /// run.
    fn has_to_do_with(&self, other: &Self) -> bool {
        if self.trace.is_some() && self.trace == other.trace {
            return true;
        }
        if !self.jobs.is_empty() && !other.jobs.is_empty() {
            return !self.jobs.is_disjoint(&other.jobs);
        }
        let commands = self.command.as_ref().zip(other.command.as_ref());
        let times = self.time.as_ref().zip(other.time.as_ref());
        let apart = times.is_some_and(|(own, other)| own.start() > other.end() || other.start() > own.end());
        !(apart && commands.is_some_and(|(own, other)| own != other))
    }
}

/// Numbers of groups: those that have to do with each other, directly or by others, have one.
pub fn related(all: &[About]) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..all.len()).collect();
    for (at, one) in all.iter().enumerate() {
        for (before, other) in all.iter().enumerate().take(at) {
            let (from, to) = (groups[at].max(groups[before]), groups[at].min(groups[before]));
            if from != to && one.has_to_do_with(other) {
                groups.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(job: &str, command: &str, time: RangeInclusive<i64>) -> About {
        let jobs = (!job.is_empty()).then(|| job.to_owned()).into_iter().collect();
        About { trace: None, jobs, command: Some(command.to_owned()), time: Some(time) }
    }

    #[test]
    fn runs_are_distinguished_by_job_or_by_command_and_time() {
        let node = |trace: i64, about: About| About { trace: Some(("n".to_owned(), trace)), ..about };
        // Nodes of a job, one of another job at the same time, steps of one.
        let jobs = [
            about("7", "app", 0..=9),
            about("7", "app", 1..=10),
            about("8", "app", 2..=9),
            about("8", "post", 50..=60),
        ];
        assert_eq!(related(&jobs), [0, 0, 2, 2]);
        // A server and its client; the same again later is another run, and so is what follows it.
        let plain =
            [about("", "serve", 0..=9), about("", "app", 3..=5), about("", "gzip", 20..=30), about("", "tar", 31..=40)];
        assert_eq!(related(&plain), [0, 0, 2, 3]);
        // A service that was started again, and periods of one recording.
        let service = [node(1, about("", "a", 0..=1)), node(1, about("", "b", 5..=6)), about("", "a", 90..=99)];
        assert_eq!(related(&service), [0, 0, 0]);
        // One without any of these belongs to the same run.
        assert_eq!(related(&[About::default(), about("", "a", 0..=1), about("9", "b", 5..=6)]), [0, 0, 0]);
    }
}
