//! Chooses the processes and files of `--detail` as they come.

use crate::analysis::findings::{Finding, Findings};
use crate::cli::detail::Detail;
use crate::event::{Event, FileKey};
use crate::loader::kernel::detail::{Choice, Limit, Plan};
use crate::record::session::critical::Critical;
use crate::rows::Row;
use std::collections::HashSet;
use std::time::Duration;

/// What the kernel side is to do; none without any.
pub fn plan(details: &[Detail]) -> Option<Plan> {
    let slow = details.iter().filter_map(|detail| match detail {
        Detail::Slow { layer, time } => Some((*layer, time.map_or(Limit::Learned, Limit::Fixed))),
        Detail::Rank(_) | Detail::File(_) | Detail::Finding(_) | Detail::Critical => None,
    });
    (!details.is_empty()).then(|| Plan {
        slow: slow.collect(),
        processes: details.iter().any(|d| matches!(d, Detail::Rank(_) | Detail::Finding(_) | Detail::Critical)),
        files: details.iter().any(|d| matches!(d, Detail::File(_))),
    })
}

/// Finds the processes and files whose calls are all recorded, as they come.
pub struct Chooser {
    details: Vec<Detail>,
    rank_vars: Vec<String>,
    choice: Choice,
    /// Processes of ranks, those of findings, and the one that waits most.
    chosen: HashSet<u32>,
    found: HashSet<u32>,
    critical: Option<Critical>,
    /// Those of them that the kernel side knows of.
    known: HashSet<u32>,
    files: HashSet<FileKey>,
    /// How many the kernel had no room to note.
    missed: i64,
}

impl Chooser {
    pub fn new(details: Vec<Detail>, rank_vars: Vec<String>, choice: Choice) -> Self {
        let critical = details.contains(&Detail::Critical).then(Critical::default);
        Self {
            details,
            rank_vars,
            choice,
            chosen: HashSet::new(),
            found: HashSet::new(),
            critical,
            known: HashSet::new(),
            files: HashSet::new(),
            missed: 0,
        }
    }

    /// Looks at what comes from the kernel side.
    pub fn see(&mut self, event: &Event) {
        match event {
            Event::Exec { process, env, .. } => {
                let rank = rank(&self.rank_vars, env);
                let wanted = self.details.iter().any(|d| matches!(d, Detail::Rank(n) if Some(*n) == rank));
                if wanted {
                    self.chosen.insert(*process);
                } else {
                    self.chosen.remove(process);
                }
                self.apply(*process);
            }
            Event::Process { process, parent: Some(parent), .. } if self.chosen.contains(parent) => {
                self.chosen.insert(*process);
                self.apply(*process);
            }
            // Numbers are never used again.
            Event::Exit { process, .. } => {
                self.chosen.remove(process);
                self.found.remove(process);
                self.critical.iter_mut().for_each(|critical| critical.ended(*process));
                self.apply(*process);
            }
            Event::File { key, seen, .. } | Event::Preopened { key, seen, .. } => {
                let path = String::from_utf8_lossy(&seen.path);
                let fits = |d: &Detail| matches!(d, Detail::File(pattern) if pattern.matches(&path));
                if self.details.iter().any(fits) && self.files.insert(*key) {
                    self.missed += i64::from(!self.choice.file(*key));
                }
            }
            _ => {}
        }
    }

    /// Are processes chosen by what is wrong?
    pub fn needs_findings(&self) -> bool {
        self.details.iter().any(|detail| matches!(detail, Detail::Finding(_)))
    }

    /// Looks at what is wrong now: the processes that it is about are recorded, those of what is over are not any more.
    pub fn findings(&mut self, now: &Findings) {
        let wanted = |f: &&Finding| self.details.iter().any(|d| matches!(d, Detail::Finding(w) if w.applies(f)));
        let of = now.findings.iter().filter(wanted).flat_map(|f| &f.evidence.process_ix);
        let found: HashSet<u32> = of.filter_map(|ix| u32::try_from(*ix).ok()).collect();
        let changed: Vec<u32> = found.symmetric_difference(&self.found).copied().collect();
        self.found = found;
        for process in changed {
            self.apply(process);
        }
    }

    /// Looks at what processes waited: the one that waited most is recorded, and no longer the one before. The row shows which.
    pub fn waits(&mut self, rows: &[Row], elapsed: Duration) -> Option<Row> {
        let critical = self.critical.as_mut()?;
        critical.push(rows);
        let before = critical.chosen();
        let row = critical.look(elapsed)?;
        let now = critical.chosen();
        for process in [before, now].into_iter().flatten() {
            self.apply(process);
        }
        Some(row)
    }

    /// Has the kernel side record a process, or not any more, as it is wanted now.
    fn apply(&mut self, process: u32) {
        let critical = self.critical.as_ref().and_then(Critical::chosen);
        let wanted = self.chosen.contains(&process) || self.found.contains(&process) || critical == Some(process);
        if wanted == self.known.contains(&process) {
            return;
        }
        let done = self.choice.process(process, wanted);
        self.missed += i64::from(!done);
        if !wanted {
            self.known.remove(&process);
        } else if done {
            self.known.insert(process);
        }
    }

    /// How many processes and files could not be noted since the last time.
    pub fn missed(&mut self) -> i64 {
        std::mem::take(&mut self.missed)
    }
}

/// The rank in an environment.
fn rank(names: &[String], env: &[Vec<u8>]) -> Option<i32> {
    let of = |name: &String| env.iter().find_map(|v| v.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    std::str::from_utf8(names.iter().find_map(of)?).ok()?.trim().parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vocabulary::Layer;
    use std::time::Duration;

    #[test]
    fn a_plan_is_printed_as_it_was_given() {
        assert!(plan(&[]).is_none());
        let details: Vec<Detail> = ["slow", "slow=hdf5:5ms", "rank=1"].iter().map(|t| t.parse().unwrap()).collect();
        let plan = plan(&details).unwrap();
        assert_eq!(plan.slow, [(None, Limit::Learned), (Some(Layer::Hdf5), Limit::Fixed(Duration::from_millis(5)))]);
        assert_eq!((plan.processes, plan.files, plan.bits()), (true, false, 3));
    }

    #[test]
    fn the_first_variable_gives_the_rank() {
        let env = [b"A=x".to_vec(), b"PMI_RANK=2".to_vec(), b"OMPI_RANK= 5 ".to_vec()];
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(rank(&names(&["OMPI_RANK", "PMI_RANK"]), &env), Some(5));
        assert_eq!(rank(&names(&["PMI_RANK"]), &env), Some(2));
        assert_eq!(rank(&names(&["PMI"]), &env), None);
        assert_eq!(rank(&names(&["A"]), &env), None);
    }
}
