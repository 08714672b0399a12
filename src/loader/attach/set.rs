//! Sets the probes of a file for the first time: as many as the kernel takes.

use crate::catalog::Row;
use crate::loader::attach::links::{self, ALL};
use crate::loader::attach::probes::{Links, Own, Probes, Set, Target};
use crate::loader::attach::{Engine, demote};
use crate::loader::code::plan::PlannedProbe;
use crate::loader::kernel::LibTier;
use crate::skel::IotraceProgs;
use crate::vocabulary::Kind;
use libbpf_rs::Link;
use std::collections::HashMap;
use std::fs::File;
use std::time::{Duration, Instant};

/// Perf-event probes take some 0.1 s each to detach (measured), so there are at most this many.
const MAX_SINGLE: usize = 60;
/// So that the first library does not take them all.
const MAX_SINGLE_PER_FILE: usize = 20;

impl Engine {
    pub(super) fn attach(
        &mut self,
        target: Target,
        name: &str,
        file: File,
        probes: Vec<PlannedProbe>,
        progs: &IotraceProgs<'_>,
    ) -> Option<Probes> {
        let tier = match &self.tier {
            Ok(tier) => *tier,
            Err(why) => {
                let probes = probes.iter().filter(|probe| !probe.slow_path);
                self.coverage.extend(probes.map(|p| p.verdict(name, Err(why.clone()))));
                return None;
            }
        };
        let (slow_paths, probes): (Vec<_>, Vec<_>) = probes.into_iter().partition(|probe| probe.slow_path);
        let (set, begun) = (Set::All(Links::default()), Instant::now());
        let mut all = Probes {
            name: name.to_owned(),
            file,
            tier,
            parts: Vec::new(),
            set,
            begun,
            took: Duration::ZERO,
            refused: false,
            crowded: false,
            slow_paths,
            demoted: Vec::new(),
            pausing: Vec::new(),
            paused: false,
        };
        if tier == LibTier::Single {
            let steady = self.attach_singles(&all, probes, progs);
            all.set = Set::All(Links { steady, pausing: Vec::new() });
            return Some(all);
        }
        let whom = if self.scoped { target.pid as i32 } else { ALL };
        let (pausing, steady) = probes.into_iter().partition(|probe| probe.pauses);
        all.parts.push(steady);
        for row in &self.demoted {
            self.coverage
                .extend(all.demote(*row, demote::BEFORE).into_iter().flatten().filter(|c| c.status == "demoted"));
        }
        let mut links = Links::default();
        let steady = std::mem::take(&mut all.parts);
        (all.parts, links.steady) = self.attach_parts(&all, steady, whom, progs);
        (all.pausing, links.pausing) = self.attach_parts(&all, vec![pausing], whom, progs);
        if self.paused {
            self.leave(all.pause(&mut links));
        }
        all.set = if self.scoped {
            Set::Each(HashMap::from([(target.process, Own { pid: target.pid, links })]))
        } else {
            Set::All(links)
        };
        Some(all)
    }

    /// Sets these: as far as the kernel takes them, in parts.
    fn attach_parts(
        &mut self,
        all: &Probes,
        mut todo: Vec<Vec<PlannedProbe>>,
        whom: i32,
        progs: &IotraceProgs<'_>,
    ) -> (Vec<Vec<PlannedProbe>>, Vec<Link>) {
        let (mut parts, mut links) = (Vec::new(), Vec::new());
        // One refused probe fails the whole link: halve until it stands alone.
        while let Some(mut part) = todo.pop() {
            if part.is_empty() {
                continue;
            }
            match links::many(progs, &all.path(), &part, all.tier, whom) {
                Ok(new) => {
                    links.extend(new);
                    self.coverage.extend(part.iter().map(|p| p.verdict(&all.name, Ok(all.tier.name()))));
                    parts.push(part);
                }
                Err(_) if part.len() > 1 => {
                    let rest = part.split_off(part.len() / 2);
                    todo.extend([part, rest]);
                }
                Err(why) => self.coverage.extend(part.iter().map(|one| one.verdict(&all.name, Err(why.clone())))),
            }
        }
        (parts, links)
    }

    fn attach_singles(&mut self, all: &Probes, mut probes: Vec<PlannedProbe>, progs: &IotraceProgs<'_>) -> Vec<Link> {
        let mut links = Vec::new();
        probes.sort_by_key(|p| self.planner.catalog().rows().get(usize::from(p.spec)).map(importance));
        for (n, probe) in probes.iter().enumerate() {
            let outcome = if self.singles >= MAX_SINGLE {
                Err(format!("more than {MAX_SINGLE} single probes would take too long to detach"))
            } else if n >= MAX_SINGLE_PER_FILE {
                Err(format!("more than {MAX_SINGLE_PER_FILE} single probes on a file would leave none for others"))
            } else {
                links::single(progs, &all.path(), probe).map(|new| {
                    self.singles += new.len().div_ceil(2);
                    links.extend(new);
                    all.tier.name()
                })
            };
            self.coverage.push(probe.verdict(&all.name, outcome));
        }
        links
    }
}

/// Which rows come first where there can only be few: phases and data, then handles, then what makes data durable.
fn importance(row: &Row) -> u8 {
    if row.inner().is_some() || row.is_phase() {
        return 0;
    }
    if row.jumps() {
        return 4;
    }
    match row.kind {
        Kind::Read | Kind::Write => 0,
        Kind::Open | Kind::Close => 1,
        Kind::Sync | Kind::Wait => 2,
        Kind::Meta | Kind::Seek | Kind::Mmap | Kind::Other => 3,
    }
}
