//! Carries out the plan: sets the probes of each file that a target maps, and keeps the verdicts.
//!
//! Where the kernel can, a file's probes are set in each target by itself (a link of the kernel with a process): the
//! breakpoints are in no other process then. That costs each call some 90 ns for each further process that has probes
//! on the file, and each process its setting; where it is too much they are set in all processes that map the file, and
//! a verdict names it.

pub(crate) mod links;
pub(crate) mod missing;
pub(crate) mod pauses;

mod classify;
mod demote;
mod harmed;
mod pause;
mod probes;
mod set;

pub use crate::loader::attach::probes::Target;

use crate::catalog::{Catalog, Family, Library};
use crate::event::FileKey;
use crate::loader::attach::classify::Classified;
use crate::loader::attach::links::ALL;
use crate::loader::attach::missing::Missing;
use crate::loader::attach::probes::{Links, Probes, Set};
use crate::loader::code::examine::{self, Examiner, Seen};
use crate::loader::code::plan::Planner;
use crate::loader::code::remembered::{Inode, Remembered};
use crate::loader::code::version;
use crate::loader::kernel::LibTier;
use crate::rows::Coverage;
use crate::skel::IotraceProgs;
use crate::vocabulary::Layer;
use libbpf_rs::Link;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Attaches to files, each once.
pub struct Engine {
    planner: Arc<Planner>,
    examiner: Examiner,
    missing: Missing,
    layers: Vec<Layer>,
    /// How to probe libraries, or why not at all.
    tier: Result<LibTier, String>,
    /// Probes are set in targets only.
    scoped: bool,
    kernel_release: String,
    classified: HashMap<Inode, Classified>,
    /// Files that earlier runs found to have nothing to probe.
    remembered: Remembered,
    /// Files that are to be classified again.
    rewritten: HashMap<Inode, Classified>,
    /// Probes of files that a path no longer leads to; other paths may.
    others: Vec<Link>,
    /// Files that have probes. Several paths may lead to one of them (overlayfs).
    probed: HashSet<FileKey>,
    singles: usize,
    /// Files of each family so far.
    copies: HashMap<Family, usize>,
    coverage: Vec<Coverage>,
    covered: HashSet<Layer>,
    libraries: Vec<version::Library>,
    /// There was a program that could not be looked into.
    opaque: bool,
    /// A target may switch stacks. A return probe must not be set where the kernel could drop it (`bpf/calls/stack.h`),
    /// and the kernel sets one when any link's program wants it, or is of another process: so there is one link only.
    switches: bool,
    /// There was a link of a process before another one was set.
    several: bool,
    /// Targets that get no probes, by number: see [`harmed::harmed`].
    spared: HashSet<u32>,
    /// Threads that take probes away, which takes its time.
    leaving: Vec<JoinHandle<()>>,
    /// Rows that are demoted: also in files that are met later.
    demoted: BTreeSet<u16>,
    /// Probes that can be paused are: also in these.
    paused: bool,
    /// Filters of system calls that a target has by us and by those around us.
    filters: u32,
}

impl Engine {
    /// `layers` are the ones to trace; `tier` is the best one this kernel allows, or why there is none; with `scoped`
    /// probes are set in targets only, which takes the best tier.
    pub fn new(
        catalog: Catalog,
        layers: Vec<Layer>,
        tier: Result<LibTier, String>,
        kernel_release: String,
        scoped: bool,
        remembered: Remembered,
    ) -> Self {
        let missing = Missing::new(&catalog);
        let mut planner = Planner::new(catalog);
        planner.many = tier != Ok(LibTier::Single);
        let planner = Arc::new(planner);
        Self {
            examiner: Examiner::new(Arc::clone(&planner), layers.clone()),
            missing,
            planner,
            layers,
            scoped,
            tier,
            kernel_release,
            classified: HashMap::new(),
            remembered,
            rewritten: HashMap::new(),
            others: Vec::new(),
            probed: HashSet::new(),
            singles: 0,
            copies: HashMap::new(),
            coverage: Vec::new(),
            covered: HashSet::new(),
            libraries: Vec::new(),
            opaque: false,
            switches: false,
            several: false,
            spared: HashSet::new(),
            leaving: Vec::new(),
            demoted: BTreeSet::new(),
            paused: false,
            filters: 0,
        }
    }

    /// Notes how many filters of system calls a target has that were there before us.
    pub const fn expect_filters(&mut self, filters: u32) {
        self.filters = filters;
    }

    /// Classifies every executable file that a process maps now, or as far as the library that was asked about, where
    /// that is found: of other libraries it is asked for themselves. Sets the probes of those that have some. The inodes
    /// that are settled; nothing where there is no such process.
    pub fn attach_process(&mut self, target: Target, asked: Option<Inode>, progs: &IotraceProgs<'_>) -> Vec<Inode> {
        let mut settled = Vec::new();
        if self.spares(target) {
            return settled;
        }
        for mapping in examine::code(target.pid).unwrap_or_default() {
            let seen = Seen::Mapping(mapping);
            let inode = seen.inode();
            self.meet(target, &seen, progs);
            if let Some(classified) = self.classified.get(&inode) {
                settled.push(inode);
                if asked == Some(inode) && classified.library {
                    break;
                }
            }
        }
        self.rewritten.clear();
        settled
    }

    /// Does this process get no probes, because they would harm it? Then it does not have any from before either.
    pub fn spares(&mut self, target: Target) -> bool {
        let Some(why) = harmed::harmed(target.pid).filter(|_| self.scoped) else { return false };
        if self.spared.insert(target.process) {
            self.coverage.push(Coverage {
                layer: Layer::App,
                target: format!("process {}", target.pid),
                symbol: String::new(),
                tier: None,
                status: "skipped",
                reason: Some(format!("no library probes: {why}")),
                offset: None,
                insn: None,
            });
            self.forget(target.process);
            self.wait_until_gone();
        }
        true
    }

    /// Classifies a file that a process maps, or is about to, and sets its probes in the process.
    pub fn meet(&mut self, target: Target, seen: &Seen, progs: &IotraceProgs<'_>) {
        match self.classified.get_mut(&seen.inode()) {
            None => self.classify(target, seen, progs),
            Some(Classified { probes: Some(probes), .. }) => {
                probes.set_in(target, self.switches, progs);
            }
            Some(_) => {}
        }
    }

    /// Is this process to get probes of its own on this file, and does not have them?
    pub fn lacks(&self, process: u32, inode: Inode) -> bool {
        let probes = self.classified.get(&inode).and_then(|classified| classified.probes.as_ref());
        probes.is_some_and(|probes| matches!(&probes.set, Set::Each(links) if !links.contains_key(&process)))
    }

    /// May a file have links of several processes, from now on, when this one gets its own, or from before? Not where a
    /// target may switch stacks.
    pub fn may_have_several(&mut self, process: u32) -> bool {
        let others = |probes: &Probes| matches!(&probes.set, Set::Each(links) if links.keys().any(|of| *of != process));
        self.several |= self.classified.values().any(|classified| classified.probes.as_ref().is_some_and(others));
        self.several && !self.switches
    }

    /// Does each further process that maps this file, or any file, get probes of its own?
    pub fn sets_in_each(&self, inode: Option<Inode>) -> bool {
        let each = |classified: &Classified| {
            classified.probes.as_ref().is_some_and(|probes| matches!(probes.set, Set::Each(_)))
        };
        inode.map_or_else(|| self.classified.values().any(each), |inode| self.classified.get(&inode).is_some_and(each))
    }

    /// Forgets what a process has: its first thread is another one, and the kernel knows a process by that.
    pub fn forget(&mut self, process: u32) {
        self.retain(|of| of != process);
    }

    /// Takes the probes away that processes had which have ended.
    pub fn retain(&mut self, alive: impl Fn(u32) -> bool) {
        let mut gone = Vec::new();
        for probes in self.classified.values_mut().filter_map(|classified| classified.probes.as_mut()) {
            if let Set::Each(links) = &mut probes.set {
                let over: Vec<u32> = links.keys().copied().filter(|process| !alive(*process)).collect();
                gone.extend(over.iter().filter_map(|process| links.remove(process)).flat_map(|own| own.links.all()));
            }
        }
        self.leave(gone);
    }

    /// Are there probes that are too much to be set in each process?
    pub fn has_too_many(&self) -> bool {
        self.classified
            .values()
            .any(|classified| classified.probes.as_ref().is_some_and(|probes| probes.too_many().is_some()))
    }

    /// Attaches these in all processes. Until [`Self::exchanged`] returns true calls hit both.
    pub fn share(&mut self, progs: &IotraceProgs<'_>) {
        let mut gone = Vec::new();
        for probes in self.classified.values_mut().filter_map(|classified| classified.probes.as_mut()) {
            let Some(why) = probes.too_many() else { continue };
            let Some(links) = probes.links(progs, ALL) else {
                probes.refused = true;
                continue;
            };
            gone.extend(std::mem::replace(&mut probes.set, Set::All(links)).take());
            let reason = format!("its probes are in every process of the node that maps it: {why}");
            self.coverage.extend(probes.verdicts("shared", &reason));
        }
        self.leave(gone);
    }

    /// Are all probes gone that were to go?
    pub fn exchanged(&mut self) -> bool {
        self.leaving.retain(|thread| !thread.is_finished());
        self.leaving.is_empty()
    }

    /// Takes probes away. The kernel waits until no task runs in a probe's program any more: for each link, so each has a
    /// thread.
    pub fn leave(&mut self, links: Vec<Link>) {
        for link in links {
            // Where there can be no more threads it is detached here.
            self.leaving.extend(std::thread::Builder::new().name("detach".into()).spawn(move || drop(link)).ok());
        }
        self.leaving.retain(|thread| !thread.is_finished());
    }

    /// Verdicts since the last call.
    pub fn verdicts(&mut self) -> Vec<Coverage> {
        let mut new = std::mem::take(&mut self.coverage);
        // Of what is not recorded only a refusal matters.
        let jumps = |symbol: &str| self.planner.catalog().rows().iter().any(|r| r.jumps() && r.symbol == symbol);
        new.retain(|c| c.status == "refused" || !jumps(&c.symbol));
        self.covered.extend(new.iter().map(|c| c.layer));
        self.opaque |= new.iter().any(|c| c.layer == Layer::App && c.symbol.is_empty());
        new
    }

    /// Libraries found since the last call.
    pub fn libraries(&mut self) -> Vec<version::Library> {
        std::mem::take(&mut self.libraries)
    }

    /// A verdict for every layer whose library no target mapped: it is not covered. And for every phase and library of the
    /// user that was not found.
    pub fn uncovered(&self) -> Vec<Coverage> {
        let layer = |l: &Library| self.covered.contains(&l.layer) || self.coverage.iter().any(|c| c.layer == l.layer);
        let users = |l: &&Library| matches!(l.family, Family::User(_));
        let all = self.planner.catalog().libraries();
        let mut libraries: BTreeMap<Layer, Vec<&str>> = BTreeMap::new();
        for library in all.iter().filter(|l| !users(l) && !layer(l)) {
            let names = libraries.entry(library.layer).or_default();
            if !names.contains(&library.name) {
                names.push(library.name);
            }
        }
        let unseen = all.iter().filter(|l| users(l) && !l.is_phases() && !self.missing.saw(l.family));
        let unseen = unseen.map(|library| (library.layer, vec![library.name]));
        let libraries = libraries.into_iter().chain(unseen).map(|(layer, names)| {
            let (status, reason) = if self.layers.contains(&layer) {
                let unknown = if self.opaque { "; a program could not be looked into" } else { "" };
                ("absent", format!("no traced process mapped such a library ({}){unknown}", names.join(", ")))
            } else {
                ("skipped", "layer not selected".to_owned())
            };
            Coverage {
                layer,
                target: String::new(),
                symbol: String::new(),
                tier: None,
                status,
                reason: Some(reason),
                offset: None,
                insn: None,
            }
        });
        libraries.chain(self.missing.phases(self.planner.catalog())).collect()
    }

    /// Takes everything away that is attached.
    pub fn take_away(&mut self) {
        let classified = std::mem::take(&mut self.classified).into_values();
        let mut links: Vec<Link> =
            classified.filter_map(|classified| classified.probes).flat_map(|mut p| p.set.take()).collect();
        links.append(&mut self.others);
        self.leave(links);
    }

    /// Waits for what was taken away.
    pub fn wait_until_gone(&mut self) {
        for thread in self.leaving.drain(..) {
            // One that panicked has left, too.
            let _ = thread.join();
        }
    }

    /// Where a target may switch stacks, waits for the links of other processes that are taken away: as long as there is one
    /// the kernel sets return probes that our program refuses.
    pub fn wait_for_vetoes(&mut self) {
        if self.switches {
            self.wait_until_gone();
        }
    }

    /// Gives back what only the look into files needs.
    pub fn rest(&mut self) {
        self.examiner.rest();
    }
}
