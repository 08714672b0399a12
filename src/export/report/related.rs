//! Which datasets in a directory have to do with each other, so that one report is on all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::export::Dataset;
use crate::rows::Process;

/// What `meta` has of a dataset: that which differs between those of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetMeta(pub BTreeMap<String, String>);

impl DatasetMeta {
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
    /// What a flight recorder kept: such datasets of one trace may have rows in common.
    pub of_flight: bool,
}

impl About {
    pub fn of(host: &str, dataset: &Dataset, meta: &DatasetMeta) -> Self {
        let mut jobs = BTreeSet::new();
        // What cannot be read of it is a warning of the dataset.
        let _ = dataset.rows(|process: Process| {
            jobs.extend(process.job_id);
            Ok(())
        });
        // Of a tracer that was killed the start is known.
        let from = meta.number("t0_wall_ns");
        let time = from.map(|from| from..=from.saturating_add(meta.number("end_ns").unwrap_or(0).max(0)));
        let trace = meta.run().map(|run| (host.to_owned(), run));
        Self { trace, jobs, command: meta.0.get("command").cloned(), time, of_flight: meta.0.contains_key("trigger") }
    }

    /// Nodes of one job have its id in common. Without one: other commands, at another time, are another
    /// run.
    pub fn has_to_do_with(&self, other: &Self) -> bool {
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

    /// Is it a part of the same run, and not the same command once more? Without a job's id nodes of one run have their
    /// command in common, and a time.
    pub fn is_of_one_run_with(&self, other: &Self) -> bool {
        if self.of_flight || other.of_flight {
            return false;
        }
        let Some((own, others)) = self.trace.as_ref().zip(other.trace.as_ref()) else { return false };
        if own == others {
            return true;
        }
        if !self.jobs.is_empty() && !other.jobs.is_empty() {
            return !self.jobs.is_disjoint(&other.jobs);
        }
        let times = self.time.as_ref().zip(other.time.as_ref());
        let together = times.is_some_and(|(own, other)| own.start() <= other.end() && other.start() <= own.end());
        together && own.0 != others.0 && self.command == other.command
    }
}

/// Numbers of groups: those that have to do with each other, directly or by others, have one.
pub fn related(all: &[About], are: fn(&About, &About) -> bool) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..all.len()).collect();
    for (at, one) in all.iter().enumerate() {
        for (before, other) in all.iter().enumerate().take(at) {
            let (from, to) = (groups[at].max(groups[before]), groups[at].min(groups[before]));
            if from != to && are(one, other) {
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
        About { jobs, command: Some(command.to_owned()), time: Some(time), ..About::default() }
    }

    fn together(all: &[About]) -> Vec<usize> {
        related(all, About::has_to_do_with)
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
        assert_eq!(together(&jobs), [0, 0, 2, 2]);
        // A server and its client; the same again later is another run, and so is what follows it.
        let plain =
            [about("", "serve", 0..=9), about("", "app", 3..=5), about("", "gzip", 20..=30), about("", "tar", 31..=40)];
        assert_eq!(together(&plain), [0, 0, 2, 3]);
        // A service that was started again, and periods of one recording.
        let service = [node(1, about("", "a", 0..=1)), node(1, about("", "b", 5..=6)), about("", "a", 90..=99)];
        assert_eq!(together(&service), [0, 0, 0]);
        // One without any of these belongs to the same run.
        assert_eq!(together(&[About::default(), about("", "a", 0..=1), about("9", "b", 5..=6)]), [0, 0, 0]);
    }

    #[test]
    fn a_command_that_runs_again_is_another_run() {
        let on = |host: &str, trace: i64, about: About| About { trace: Some((host.to_owned(), trace)), ..about };
        let one_run = |all: &[About]| related(all, About::is_of_one_run_with);
        let app = |time| about("", "app", time);
        // Twice on one node, once on two at the same time, and two others of that command at that time on one node.
        let plain = [
            on("a", 1, app(0..=9)),
            on("a", 2, app(20..=29)),
            on("a", 3, app(50..=59)),
            on("b", 1, app(51..=58)),
            on("c", 3, app(80..=89)),
            on("c", 4, app(81..=89)),
        ];
        assert_eq!(one_run(&plain), [0, 1, 2, 2, 4, 5]);
        // Steps of a job, whenever; periods of one trace; dumps of a flight recorder, which have rows in common.
        let job = |trace, time| on("a", trace, about("7", "app", time));
        assert_eq!(one_run(&[job(1, 0..=1), job(2, 8..=9)]), [0, 0]);
        assert_eq!(one_run(&[on("a", 1, app(0..=1)), on("a", 1, app(8..=9))]), [0, 0]);
        let flight = |time| About { of_flight: true, ..on("a", 1, app(time)) };
        assert_eq!(one_run(&[flight(0..=5), flight(3..=9)]), [0, 1]);
        assert_eq!(one_run(&[About::default(), About::default()]), [0, 1]);
    }
}
