//! The perf events that count for the traced processes: opened once for those that there are, inherited by what they start.

use crate::loader::kernel::perf::{Counting, Scope};
use crate::node::counters::{COUNTERS, Count, Counter, KINDS, Kind, TASK_CLOCK};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

/// Threads that are counted at most: each takes a descriptor for each counter. They may have this part of those that this process
/// may open, which it needs for libraries and for the dataset.
const THREADS: usize = 512;
const PART: u64 = 4;

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    /// A process that is about to execute the command.
    Command(u32),
    /// Processes that run.
    Processes(&'a [u32]),
    /// The control group of this directory.
    Group(&'a Path),
    Node,
}

/// All events, by their index in [`COUNTERS`].
#[derive(Debug, Default)]
pub struct Counters {
    events: Vec<(usize, Counting)>,
    /// Why there are none of a kind.
    refused: BTreeMap<&'static str, String>,
    /// Threads without a counter.
    left_out: usize,
}

impl Counters {
    /// Opens what this kernel has.
    pub fn open(of: Of<'_>) -> Self {
        let mut counters = Self::default();
        match of {
            Of::Command(pid) => counters.add(Scope::Command(pid as i32), |_| true),
            Of::Processes(pids) => {
                // One that begins meanwhile is counted if its parent is already.
                let threads: Vec<i32> = pids.iter().flat_map(|pid| threads(*pid)).collect();
                counters.left_out = threads.len().saturating_sub(THREADS);
                for thread in threads.into_iter().take(THREADS) {
                    counters.add(Scope::Thread(thread), |_| true);
                }
            }
            Of::Group(directory) => match File::open(directory) {
                Ok(group) => {
                    for cpu in online() {
                        counters.add(Scope::Group(&group, cpu), |_| true);
                    }
                }
                Err(e) => counters.refuse(&e.to_string()),
            },
            Of::Node => {
                for cpu in online() {
                    counters.add(Scope::Cpu(cpu), |c| c.kind != Kind::Software || c.config != TASK_CLOCK);
                }
            }
        }
        counters
    }

    /// Counts what these count, too, if there is room.
    pub fn extend(&mut self, others: Self) {
        if !self.events.is_empty() && self.events.len() + others.events.len() > room() {
            self.left_out += 1;
            return;
        }
        self.events.extend(others.events);
        self.refused.extend(others.refused);
        self.left_out += others.left_out;
    }

    fn refuse(&mut self, why: &str) {
        for kind in KINDS {
            self.refused.insert(kind.name(), why.to_owned());
        }
    }

    fn add(&mut self, scope: Scope<'_>, wanted: impl Fn(&Counter) -> bool) {
        if self.events.len() + COUNTERS.len() > room() {
            self.left_out += 1;
            return;
        }
        for (at, counter) in COUNTERS.iter().enumerate().filter(|(_, counter)| wanted(counter)) {
            match Counting::open(counter.kind as u32, counter.config, scope) {
                Ok(event) => self.events.push((at, event)),
                // It has ended.
                Err(Errno::ESRCH) => return,
                Err(why) => {
                    let why = format!("{}: {}", counter.name(), why.desc());
                    self.refused.entry(counter.kind.name()).or_insert(why);
                }
            }
        }
    }

    /// Which kinds there are.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, bool)> {
        KINDS.iter().map(|kind| {
            let there = self.events.iter().any(|(at, _)| COUNTERS.get(*at).is_some_and(|c| c.kind == *kind));
            (kind.name(), there)
        })
    }

    /// What is not counted, and why; empty when everything is.
    pub fn missing(&self) -> String {
        let mut reasons: Vec<String> = self.refused.iter().map(|(kind, why)| format!("{kind}: {why}")).collect();
        if self.left_out > 0 {
            reasons.push(format!("{} threads or CPUs: more than are counted", self.left_out));
        }
        reasons.join("; ")
    }

    /// What each event has counted.
    pub fn read(&self) -> Vec<(usize, Count)> {
        self.events.iter().filter_map(|(at, event)| Some((*at, event.read().ok()?))).collect()
    }
}

/// How many events there may be.
fn room() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft / PART);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn threads(pid: u32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The numbers of the CPUs that are online.
fn online() -> Vec<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse::<usize>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}
