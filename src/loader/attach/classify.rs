//! Classifies the files that targets map: is one a library or program to probe, and is it the same as before?

use crate::catalog::Family;
use crate::event::{FileKey, Written};
use crate::loader::attach::Engine;
use crate::loader::attach::probes::{Probes, Set, Target};
use crate::loader::code::examine::{Examined, Seen, Unreadable};
use crate::loader::code::outline::Unread;
use crate::loader::code::plan::Plan;
use crate::loader::code::remembered::{Inode, Plain, Version};
use crate::loader::code::{safety, version};
use crate::loader::processes::{existing, maps, real};
use crate::rows::Coverage;
use crate::skel::IotraceProgs;
use crate::vocabulary::Layer;

/// What became of a file.
pub(super) struct Classified {
    /// As the kernel reported it; 0: unknown.
    pub(super) generation: u32,
    /// When it was last written (`stat`). Written again it is another file.
    pub(super) written: Option<Written>,
    /// The file that probes on it went to.
    pub(super) probed: Option<FileKey>,
    /// Known to be no program, which the kernel maps together with its loader.
    pub(super) library: bool,
    pub(super) probes: Option<Probes>,
    /// It has nothing to probe as long as it is this version.
    pub(super) plain: Option<Version>,
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

impl Engine {
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

    /// Records the generation that the kernel reported for a file that was classified.
    pub fn learn(&mut self, file: FileKey) {
        if let Some(known) = self.classified.get_mut(&(file.dev, file.ino)) {
            known.generation = file.generation;
        }
    }

    pub(super) fn classify(&mut self, target: Target, seen: &Seen, progs: &IotraceProgs<'_>) {
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
            // It took the file along; the next process that maps it is asked again.
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

    fn probe(
        &mut self,
        target: Target,
        seen: &Seen,
        name: &str,
        Examined { file, elf, bytes, mut plan, .. }: Examined,
        classified: &mut Classified,
        progs: &IotraceProgs<'_>,
    ) {
        self.missing.classified(name, &plan, self.planner.catalog());
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
}
