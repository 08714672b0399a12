//! The probes of a file, set in one process after the other or in all.

use crate::loader::attach::links;
use crate::loader::code::plan::PlannedProbe;
use crate::loader::kernel::LibTier;
use crate::rows::Coverage;
use crate::skel::IotraceProgs;
use crate::vocabulary::Layer;
use libbpf_rs::Link;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// As many processes have probes of their own on one file: each makes a call of all others some 90 ns slower (measured:
/// 1.65 us with one, 2.3 with 8, 4.6 with 32, 13 with 128).
const MAX_EACH: usize = 16;
/// To set probes in one process after the other may take this long, and this share of the time since the first.
const MAX_SETTING: Duration = Duration::from_millis(150);
const MAX_SETTING_SHARE: f64 = 0.03;

/// A process that probes are set in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub pid: u32,
    /// Its number, which no other process gets.
    pub process: u32,
}

/// The probes of a file.
pub(super) struct Probes {
    pub(super) name: String,
    pub(super) file: File,
    pub(super) tier: LibTier,
    /// As the kernel takes them together.
    pub(super) parts: Vec<Vec<PlannedProbe>>,
    pub(super) set: Set,
    /// Since the first.
    pub(super) begun: Instant,
    /// How long it took to set them in one process after the other.
    pub(super) took: Duration,
    /// The kernel does not set them in all processes.
    pub(super) refused: bool,
    /// One more process is to have them, where stacks are switched.
    pub(super) crowded: bool,
    /// The probes that replace those of demoted functions, and these functions; see [`demote`](crate::loader::attach::demote).
    pub(super) slow_paths: Vec<PlannedProbe>,
    pub(super) demoted: Vec<PlannedProbe>,
    /// Those that can be paused, as the kernel takes them together; see [`pause`](crate::loader::attach::pause).
    pub(super) pausing: Vec<Vec<PlannedProbe>>,
    pub(super) paused: bool,
}

/// What is set of a file, in one process or in all.
#[derive(Default)]
pub(super) struct Links {
    pub(super) steady: Vec<Link>,
    /// Those that can be paused. Nothing while they are.
    pub(super) pausing: Vec<Link>,
}

impl Links {
    pub(super) fn all(self) -> impl Iterator<Item = Link> {
        self.steady.into_iter().chain(self.pausing)
    }
}

/// The probes of a file in one process.
pub(super) struct Own {
    pub(super) pid: u32,
    pub(super) links: Links,
}

/// In which processes probes are set.
pub(super) enum Set {
    /// By number of the process.
    Each(HashMap<u32, Own>),
    All(Links),
}

impl Set {
    pub(super) fn take(&mut self) -> Vec<Link> {
        match self {
            Self::Each(links) => links.drain().flat_map(|(_, own)| own.links.all()).collect(),
            Self::All(links) => std::mem::take(links).all().collect(),
        }
    }
}

impl Probes {
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Sets all of them in one process, or in all, but those that are paused. Nothing, where one is refused.
    pub(super) fn links(&self, progs: &IotraceProgs<'_>, pid: i32) -> Option<Links> {
        let steady = self.parts_in(&self.parts, progs, pid)?;
        let pausing = if self.paused { Vec::new() } else { self.parts_in(&self.pausing, progs, pid)? };
        Some(Links { steady, pausing })
    }

    pub(super) fn parts_in(
        &self,
        parts: &[Vec<PlannedProbe>],
        progs: &IotraceProgs<'_>,
        pid: i32,
    ) -> Option<Vec<Link>> {
        let path = self.path();
        let links = parts.iter().map(|part| links::many(progs, &path, part, self.tier, pid));
        Some(links.collect::<Result<Vec<_>, _>>().ok()?.into_iter().flatten().collect())
    }

    /// Sets them in a process that does not have them. `alone`: no process may have some where another one has; see
    /// `switches` of [`Engine`](crate::loader::attach::Engine).
    pub(super) fn set_in(&mut self, target: Target, alone: bool, progs: &IotraceProgs<'_>) {
        if let Set::Each(links) = &self.set
            && !links.contains_key(&target.process)
        {
            if alone && !links.is_empty() && !self.refused {
                self.crowded = true;
                return;
            }
            let begun = Instant::now();
            let new = self.links(progs, target.pid as i32);
            self.took += begun.elapsed();
            if let (Set::Each(links), Some(new)) = (&mut self.set, new) {
                links.insert(target.process, Own { pid: target.pid, links: new });
            }
        }
    }

    /// Why they should be in all processes.
    pub(super) fn too_many(&self) -> Option<String> {
        let Set::Each(links) = &self.set else { return None };
        if self.refused {
            return None;
        }
        if self.crowded {
            return Some(
                "a traced program switches stacks, and only one probe may decide whether a return is probed".to_owned(),
            );
        }
        if links.len() > MAX_EACH {
            return Some(format!("more than {MAX_EACH} traced processes use it at once"));
        }
        let may = MAX_SETTING + self.begun.elapsed().mul_f64(MAX_SETTING_SHARE);
        (self.took > may).then(|| "processes that use it come faster than probes are set in each".to_owned())
    }

    pub(super) fn verdicts(&self, status: &'static str, reason: &str) -> Vec<Coverage> {
        let all = self.parts.iter().chain(&self.pausing).flatten();
        let layers: BTreeSet<Layer> = all.map(|probe| probe.layer).collect();
        let of = |layer| Coverage {
            layer,
            target: self.name.clone(),
            symbol: String::new(),
            tier: Some(self.tier.name()),
            status,
            reason: Some(reason.to_owned()),
            offset: None,
            insn: None,
        };
        layers.into_iter().map(of).collect()
    }
}
