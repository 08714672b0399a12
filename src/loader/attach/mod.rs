//! Carries out the plan: sets the probes of each file that a target maps, and keeps the verdicts.
//!
//! Where the kernel can, a file's probes are set in each target by itself (a link of the kernel with a process): the
//! breakpoints are in no other process then. That costs each call some 90 ns for each further process that has probes
//! on the file, and each process its setting; where it is too much they are set in all processes that map the file, and
//! a verdict names it.

pub(crate) mod links;
pub(crate) mod missing;
pub(crate) mod pauses;

mod demote;
mod pause;

use crate::catalog::{Catalog, Family, Library, Row};
use crate::event::{FileKey, Written};
use crate::loader::attach::links::ALL;
use crate::loader::attach::missing::Missing;
use crate::loader::code::examine::{self, Examined, Examiner, Seen, Unreadable};
use crate::loader::code::outline::Unread;
use crate::loader::code::plan::{Plan, PlannedProbe, Planner};
use crate::loader::code::remembered::{Inode, Plain, Remembered, Version};
use crate::loader::code::{safety, version};
use crate::loader::kernel::LibTier;
use crate::loader::processes::{existing, maps, real};
use crate::rows::Coverage;
use crate::skel::IotraceProgs;
use crate::vocabulary::{Kind, Layer};
use libbpf_rs::Link;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Perf-event probes take some 0.1 s each to detach (measured), so there are at most this many.
const MAX_SINGLE: usize = 60;
/// So that the first library does not take them all.
const MAX_SINGLE_PER_FILE: usize = 20;

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

/// What became of a file.
struct Classified {
    /// As the kernel reported it; 0: unknown.
    generation: u32,
    /// When it was last written (`stat`). Written again it is another file.
    written: Option<Written>,
    /// The file that probes on it went to.
    probed: Option<FileKey>,
    /// Known to be no program, which the kernel maps together with its loader.
    library: bool,
    probes: Option<Probes>,
    /// It has nothing to probe as long as it is this version.
    plain: Option<Version>,
}

impl From<&Plain> for Classified {
    fn from(plain: &Plain) -> Self {
        Self {
            generation: plain.generation,
            written: Some(plain.written),
            probed: None,
            library: true,
            probes: None,
            plain: Some(plain.version),
        }
    }
}

/// The probes of a file.
struct Probes {
    name: String,
    file: File,
    tier: LibTier,
    /// As the kernel takes them together.
    parts: Vec<Vec<PlannedProbe>>,
    set: Set,
    /// Since the first.
    begun: Instant,
    /// How long it took to set them in one process after the other.
    took: Duration,
    /// The kernel does not set them in all processes.
    refused: bool,
    /// One more process is to have them, where stacks are switched.
    crowded: bool,
    /// The probes that replace those of demoted functions, and these functions; see [`demote`].
    slow_paths: Vec<PlannedProbe>,
    demoted: Vec<PlannedProbe>,
    /// Those that can be paused, as the kernel takes them together; see [`pause`].
    pausing: Vec<Vec<PlannedProbe>>,
    paused: bool,
}

/// What is set of a file, in one process or in all.
#[derive(Default)]
struct Links {
    steady: Vec<Link>,
    /// Those that can be paused. Nothing while they are.
    pausing: Vec<Link>,
}

impl Links {
    fn all(self) -> impl Iterator<Item = Link> {
        self.steady.into_iter().chain(self.pausing)
    }
}

/// The probes of a file in one process.
struct Own {
    pid: u32,
    links: Links,
}

/// In which processes probes are set.
enum Set {
    /// By number of the process.
    Each(HashMap<u32, Own>),
    All(Links),
}

impl Set {
    fn take(&mut self) -> Vec<Link> {
        match self {
            Self::Each(links) => links.drain().flat_map(|(_, own)| own.links.all()).collect(),
            Self::All(links) => std::mem::take(links).all().collect(),
        }
    }
}

impl Probes {
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Sets all of them in one process, or in all, but those that are paused. Nothing, where one is refused.
    fn links(&self, progs: &IotraceProgs<'_>, pid: i32) -> Option<Links> {
        let steady = self.parts_in(&self.parts, progs, pid)?;
        let pausing = if self.paused { Vec::new() } else { self.parts_in(&self.pausing, progs, pid)? };
        Some(Links { steady, pausing })
    }

    fn parts_in(&self, parts: &[Vec<PlannedProbe>], progs: &IotraceProgs<'_>, pid: i32) -> Option<Vec<Link>> {
        let path = self.path();
        let links = parts.iter().map(|part| links::many(progs, &path, part, self.tier, pid));
        Some(links.collect::<Result<Vec<_>, _>>().ok()?.into_iter().flatten().collect())
    }

    /// Sets them in a process that does not have them. `alone`: no process may have some where another one has; see
    /// [`Engine::switches`].
    fn set_in(&mut self, target: Target, alone: bool, progs: &IotraceProgs<'_>) {
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
    fn too_many(&self) -> Option<String> {
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

    fn verdicts(&self, status: &'static str, reason: &str) -> Vec<Coverage> {
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
    /// A target may switch stacks. A return probe must not be set where the kernel could drop it (`bpf/stack.h`), and
    /// the kernel sets one when any link's program wants it, or is of another process: so there is one link only.
    switches: bool,
    /// There was a link of a process before another one was set.
    several: bool,
    /// Targets that get no probes, by number: see [`harmed`].
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
        planner.fields = tier != Ok(LibTier::Single);
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

    /// Notes how many filters of system calls a target has that nobody added below us.
    pub const fn expect_filters(&mut self, filters: u32) {
        self.filters = filters;
    }

    /// Judges every executable file that a process maps now, or as far as the library that was asked about, where that is found:
    /// of other libraries it is asked for themselves. Sets the probes of those that have some. The inodes that are
    /// settled; nothing where there is no such process.
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
        let Some(why) = harmed(target.pid).filter(|_| self.scoped) else { return false };
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

    /// Judges a file that a process maps, or is about to, and sets its probes in the process.
    pub fn meet(&mut self, target: Target, seen: &Seen, progs: &IotraceProgs<'_>) {
        match self.classified.get_mut(&seen.inode()) {
            None => self.classify(target, seen, progs),
            Some(Classified { probes: Some(probes), .. }) => {
                probes.set_in(target, self.switches, progs);
            }
            Some(_) => {}
        }
    }

    /// Was this file, which was last written then, classified as it is now? An inode that came back with another generation
    /// is another file, and so is one that was written since.
    pub fn is_classified(&mut self, file: FileKey, written: Written) -> bool {
        let inode = (file.dev, file.ino);
        let Some(known) = self.classified.get_mut(&inode) else { return false };
        let same = known.generation == 0 || known.generation == file.generation;
        if same && known.written.is_none_or(|then| then == written) {
            known.generation = file.generation;
            return true;
        }
        self.rewritten.extend(self.classified.remove_entry(&inode));
        false
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

    /// Takes probes away. The kernel waits until nobody runs in a probe's program any more: for each link, so each has a
    /// thread.
    pub fn leave(&mut self, links: Vec<Link>) {
        for link in links {
            // Where there can be no more threads it is detached here.
            self.leaving.extend(std::thread::Builder::new().name("detach".into()).spawn(move || drop(link)).ok());
        }
        self.leaving.retain(|thread| !thread.is_finished());
    }

    /// Records the generation that the kernel reported for a file that was classified.
    pub fn learn(&mut self, file: FileKey) {
        if let Some(known) = self.classified.get_mut(&(file.dev, file.ino)) {
            known.generation = file.generation;
        }
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

    /// A verdict for every layer whose library nobody mapped: it is not covered. And for every phase and library of the
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

    fn classify(&mut self, target: Target, seen: &Seen, progs: &IotraceProgs<'_>) {
        let known = self.remembered.get(seen.inode());
        if let Some(plain) = known.filter(|plain| seen.version(target.pid) == Some(plain.version)) {
            self.classified.insert(seen.inode(), plain.into());
            return;
        }
        let name = seen.name(target.pid);
        let mut classified =
            Classified { generation: 0, written: None, probed: None, library: false, probes: None, plain: None };
        match self.examiner.examine(target.pid, seen, &name) {
            Ok(examined) => {
                classified.written = examined.written;
                classified.library = !examined.elf.program;
                // OpenSSL names them for asynchronous engines, which hardly anybody has.
                if examined.elf.switches_stacks && !name.contains("/libcrypto.so") {
                    self.switches_stacks();
                }
                // What the kernel maps together with a program may have probes: the C library of musl.
                let plain = classified.library && examined.plan.is_empty() && !examined.elf.switches_stacks;
                classified.plain = examined.version.filter(|_| plain);
                self.probe(target, seen, &name, examined, &mut classified, progs);
            }
            // It took the file along; whoever maps it next is asked again.
            Err(_) if existing::ended(target.pid) => return,
            Err(Unreadable { written, why }) => {
                classified.written = written;
                self.unreadable(&name, &why);
            }
        }
        self.classified.insert(seen.inode(), classified);
    }

    /// Keeps for later runs which files have nothing to probe. Where that is not possible, they are classified again.
    pub fn remember(&self) {
        let plain = |(inode, classified): (&Inode, &Classified)| {
            let (&(dev, ino), generation) = (inode, classified.generation);
            Some(Plain { version: classified.plain?, dev, ino, generation, written: classified.written? })
        };
        let _ = self.remembered.keep(self.classified.iter().filter_map(plain));
    }

    fn switches_stacks(&mut self) {
        self.switches = true;
        for probes in self.classified.values_mut().filter_map(|classified| classified.probes.as_mut()) {
            probes.crowded |= matches!(&probes.set, Set::Each(links) if links.len() > 1);
        }
    }

    /// Gives back what only the look into files needs.
    pub fn rest(&mut self) {
        self.examiner.rest();
    }

    fn probe(
        &mut self,
        target: Target,
        seen: &Seen,
        name: &str,
        Examined { file, elf, bytes, mut plan, .. }: Examined,
        classified: &mut Classified,
        progs: &IotraceProgs<'_>,
    ) {
        self.missing.classified(name, &elf, &plan, self.planner.catalog());
        let before = self.rewritten.remove(&seen.inode());
        if !plan.probes.is_empty() || before.is_some() {
            let real = real::file(progs, target.pid, seen);
            match before {
                // Its probes are in the middle of other instructions by now.
                Some(old) if old.probed == Some(real) => drop((self.probed.remove(&real), old)),
                Some(old) => self.others.extend(old.probes.map(|mut probes| probes.set.take()).unwrap_or_default()),
                None => {}
            }
            if !plan.probes.is_empty() && !self.probed.insert(real) && !self.scoped {
                return; // under another path: its verdicts are there
            }
            classified.probed = Some(real);
        }
        let catalog = self.planner.catalog();
        let libraries =
            plan.families.iter().filter_map(|f| catalog.library(*f)).filter(|l| !l.is_phases() && !l.family.is_part());
        self.libraries.extend(libraries.map(|library| version::Library {
            name: library.name,
            version: version::of(library.family, &elf, &bytes),
            path: name.to_owned(),
        }));
        self.coverage.append(&mut plan.settled);
        if plan.probes.is_empty() {
            return;
        }
        let status =
            std::fs::read(format!("/proc/{}/status", target.pid)).map(|s| maps::status(&s)).unwrap_or_default();
        let filtered = status.seccomp.filter(|_| status.filters.is_none_or(|filters| filters > self.filters));
        let allowed = safety::return_probes_allowed(&self.kernel_release, filtered.unwrap_or(0));
        if let Err(why) = allowed {
            let skipped =
                plan.probes.iter().map(|p| Coverage { status: "skipped", ..p.verdict(name, Err(why.clone())) });
            self.coverage.extend(skipped);
            return;
        }
        self.number(&mut plan);
        classified.probes = self.attach(target, name, file, plan.probes, progs);
    }

    /// Several copies of a library can be in one process, and their handles may be equal: each file has a number, which
    /// no file with a family of it has.
    ///
    /// Where the numbers that fit on the wire are used up, they are given again.
    fn number(&mut self, plan: &mut Plan) {
        let fit = (usize::from(u16::MAX) + 1) / self.planner.catalog().rows().len().max(1);
        let fit = fit.clamp(1, usize::from(u8::MAX) + 1);
        let number = plan.families.iter().filter_map(|f| self.copies.get(f)).max().copied().unwrap_or(0);
        self.copies.extend(plan.families.iter().map(|f| (*f, number + 1)));
        for probe in &mut plan.probes {
            probe.copy = (number % fit) as u8;
        }
    }

    /// A file that may be a library and cannot be read is a gap in coverage and is reported. So is one that is too large to examine,
    /// whatever its name.
    fn unreadable(&mut self, name: &str, why: &Unread) {
        let reason = why.to_string();
        self.missing.unreadable(name, &reason, self.planner.catalog());
        let Some(base) = name.rsplit('/').next() else { return };
        let named = |family: &&Family| family.file_names().iter().any(|name| base.starts_with(name));
        let families = Family::LIBRARIES.iter().filter(named);
        let mut layers: Vec<Layer> = families.map(|f| f.layer()).collect();
        if layers.is_empty() && matches!(why, Unread::TooLarge(_)) {
            layers.push(Layer::App);
        }
        self.coverage.extend(layers.into_iter().map(|layer| Coverage {
            layer,
            target: name.to_owned(),
            symbol: String::new(),
            tier: None,
            status: why.status(),
            reason: Some(reason.clone()),
            offset: None,
            insn: None,
        }));
    }

    fn attach(
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

/// Debuggers, by the names of their processes.
const DEBUGGERS: [&str; 5] = ["gdb", "gdbserver", "lldb", "lldb-server", "rr"];

/// Why a process must not get breakpoints.
///
/// Valgrind's tools read the code of their program, breakpoints included, make other code of it, and end it by SIGTRAP.
/// A debugger may set a breakpoint of its own where one of ours is: the kernel takes it for ours, and the program does
/// not stop.
fn harmed(pid: u32) -> Option<String> {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = exe.file_name().unwrap_or_default().as_encoded_bytes();
    if name.ends_with(b"-amd64-linux") && exe.components().any(|part| part.as_os_str() == "valgrind") {
        return Some("valgrind translates the program's code, and would translate the breakpoints".to_owned());
    }
    let status = std::fs::read(format!("/proc/{pid}/status")).map(|text| maps::status(&text)).unwrap_or_default();
    let tracer = status.tracer.filter(|tracer| *tracer != 0)?;
    let tracer = std::fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
    let debugger = DEBUGGERS.into_iter().find(|name| *name == tracer.trim_end())?;
    Some(format!("{debugger} debugs the process, and would lose breakpoints to ours"))
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
