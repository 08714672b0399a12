//! Carries out the plan: opens a mapped file, attaches its probes by the best tier, keeps the verdicts.

use crate::catalog::{Catalog, Family, Library, Row};
use crate::correlate::rows::Coverage;
use crate::event::FileKey;
use crate::loader::elf::Elf;
use crate::loader::kernel::LibTier;
use crate::loader::maps::{self, Mapping};
use crate::loader::missing::Missing;
use crate::loader::outline::Outline;
use crate::loader::plan::{Plan, PlannedProbe, Planner};
use crate::loader::real;
use crate::loader::returns::Place;
use crate::loader::safety;
use crate::loader::version;
use crate::skel::IotraceProgs;
use crate::words::{Kind, Layer};
use libbpf_rs::{Link, UprobeMultiOpts, UprobeOpts};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Perf-event probes take some 0.1 s each to detach (measured), so there are at most this many.
const MAX_SINGLE: usize = 60;
/// So that the first library does not take them all.
const MAX_SINGLE_PER_FILE: usize = 20;
/// Larger files are not read; no library comes near.
const MAX_FILE: u64 = 1 << 30;

/// A file by device (kernel encoding) and inode.
pub type Inode = (u32, u64);

/// What became of a file.
struct Judged {
    /// Where the kernel told it; 0 is unknown.
    generation: u32,
    /// When it was last written, as `stat` says: seconds, nanoseconds. Written again it is another file.
    written: Option<(i64, i64)>,
    /// The file that probes on it went to.
    probed: Option<FileKey>,
    links: Vec<Link>,
    /// Known to be no program, which the kernel maps together with its loader.
    library: bool,
}

/// Attaches to files, each once.
pub struct Engine {
    planner: Planner,
    missing: Missing,
    layers: Vec<Layer>,
    /// How to probe libraries, or why not at all.
    tier: Result<LibTier, String>,
    kernel_release: String,
    judged: HashMap<Inode, Judged>,
    /// Files that are to be judged again.
    rewritten: HashMap<Inode, Judged>,
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
    outline: Outline,
}

impl Engine {
    /// `layers` are the ones to trace; `tier` is the best one this kernel allows, or why there is none.
    pub fn new(catalog: Catalog, layers: Vec<Layer>, tier: Result<LibTier, String>, kernel_release: String) -> Self {
        Self {
            missing: Missing::new(&catalog),
            planner: Planner::new(catalog),
            layers,
            tier,
            kernel_release,
            judged: HashMap::new(),
            rewritten: HashMap::new(),
            others: Vec::new(),
            probed: HashSet::new(),
            singles: 0,
            copies: HashMap::new(),
            coverage: Vec::new(),
            covered: HashSet::new(),
            libraries: Vec::new(),
            opaque: false,
            outline: Outline::default(),
        }
    }

    /// Judges every executable file that a process maps now, or as far as the library that was asked about, where that is found:
    /// of other libraries it is asked for themselves. The inodes that are settled.
    pub fn judge_process(
        &mut self,
        pid: u32,
        asked: Option<Inode>,
        progs: &IotraceProgs<'_>,
    ) -> std::io::Result<Vec<Inode>> {
        let mut seen = HashSet::new();
        for m in code(pid)? {
            let inode = (m.dev, m.inode);
            if seen.insert(inode) && !self.judged.contains_key(&inode) {
                self.judge(pid, &m, progs);
            }
            if asked == Some(inode) && self.judged.get(&inode).is_some_and(|judged| judged.library) {
                break;
            }
        }
        self.rewritten.clear();
        seen.retain(|inode| self.judged.contains_key(inode));
        Ok(seen.into_iter().collect())
    }

    /// Was this file, which a process has mapped, judged as it is now? An inode that came back with another generation
    /// is another file, and so is one that was written since.
    pub fn is_judged(&mut self, pid: u32, file: FileKey) -> bool {
        let inode = (file.dev, file.ino);
        let Some(known) = self.judged.get_mut(&inode) else { return false };
        let same = known.generation == 0 || known.generation == file.generation;
        if same && (known.written.is_none() || last_written(pid, inode).is_none_or(|now| known.written == Some(now))) {
            known.generation = file.generation;
            return true;
        }
        self.rewritten.extend(self.judged.remove_entry(&inode));
        false
    }

    /// Notes the generation that the kernel told of a file that was judged.
    pub fn learn(&mut self, file: FileKey) {
        if let Some(known) = self.judged.get_mut(&(file.dev, file.ino)) {
            known.generation = file.generation;
        }
    }

    /// Verdicts since the last call.
    pub fn verdicts(&mut self) -> Vec<Coverage> {
        let new = std::mem::take(&mut self.coverage);
        self.covered.extend(new.iter().map(|c| c.layer));
        self.opaque |= new.iter().any(|c| c.layer == Layer::App && c.symbol.is_empty());
        new
    }

    /// Libraries found since the last call.
    pub fn libraries(&mut self) -> Vec<version::Library> {
        std::mem::take(&mut self.libraries)
    }

    /// A verdict for every layer whose library nobody mapped: it is not covered.
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

    /// Everything that is attached, for the caller to detach.
    pub fn take_links(&mut self) -> Vec<Link> {
        let judged = std::mem::take(&mut self.judged).into_values().flat_map(|judged| judged.links);
        judged.chain(self.others.drain(..)).collect()
    }

    fn judge(&mut self, pid: u32, mapping: &Mapping, progs: &IotraceProgs<'_>) {
        let name = String::from_utf8_lossy(&mapping.path).into_owned();
        let opened = open(pid, mapping);
        if opened.is_err() && !Path::new(&format!("/proc/{pid}")).exists() {
            return; // it took the file along; whoever maps it next is asked again
        }
        let mut judged = Judged { generation: 0, written: None, probed: None, links: Vec::new(), library: false };
        if let Ok(file) = &opened {
            judged.written = written(file);
        }
        match opened.and_then(|file| Ok((self.read(&file)?, file))) {
            Ok(((elf, bytes), file)) => {
                judged.library = !elf.program;
                self.probe(pid, mapping, &name, (&file, &elf, &bytes), &mut judged, progs);
            }
            Err(why) => self.unreadable(&name, &why),
        }
        self.judged.insert((mapping.dev, mapping.inode), judged);
    }

    /// Reads a file: all of it where it has a symbol that may be wanted, else nothing but what tells that.
    fn read(&mut self, file: &File) -> Result<(Elf, Vec<u8>), String> {
        let wanted = |symbol: &str| self.planner.takes(symbol);
        let length = file.metadata().map_err(|e| e.to_string())?.len();
        if length <= MAX_FILE
            && let Ok(outline) = self.outline.of(length as usize, |part, at| file.read_exact_at(part, at))
            && let Ok(elf) = Elf::parse(outline, wanted)
            && elf.symbols.is_empty()
        {
            return Ok((elf, Vec::new()));
        }
        let bytes = content(file)?;
        Ok((Elf::parse(&bytes, wanted).map_err(|why| why.to_string())?, bytes))
    }

    /// Gives back what only the look into files needs.
    pub fn rest(&mut self) {
        self.outline = Outline::default();
    }

    fn probe(
        &mut self,
        pid: u32,
        mapping: &Mapping,
        name: &str,
        (file, elf, bytes): (&File, &Elf, &[u8]),
        judged: &mut Judged,
        progs: &IotraceProgs<'_>,
    ) {
        let mut plan = self.planner.plan(name, elf, bytes, &|l| self.layers.contains(&l));
        self.missing.judged(name, elf, &plan, self.planner.catalog());
        let before = self.rewritten.remove(&(mapping.dev, mapping.inode));
        if !plan.probes.is_empty() || before.is_some() {
            let real = real::file(progs, pid, mapping);
            match before {
                // Its probes are in the middle of other instructions by now.
                Some(old) if old.probed == Some(real) => drop((self.probed.remove(&real), old)),
                Some(old) => self.others.extend(old.links),
                None => {}
            }
            if !plan.probes.is_empty() && !self.probed.insert(real) {
                return; // under another path: its verdicts are there
            }
            judged.probed = Some(real);
        }
        let catalog = self.planner.catalog();
        let libraries = plan.families.iter().filter_map(|f| catalog.library(*f)).filter(|l| !l.is_phases());
        self.libraries.extend(libraries.map(|library| version::Library {
            name: library.name,
            version: version::of(library.family, elf, bytes),
            path: name.to_owned(),
        }));
        self.coverage.append(&mut plan.settled);
        if plan.probes.is_empty() {
            return;
        }
        let seccomp = std::fs::read(format!("/proc/{pid}/status")).ok().and_then(|s| maps::status(&s).seccomp);
        let allowed = safety::return_probes_allowed(&self.kernel_release, seccomp.unwrap_or(0));
        if let Err(why) = allowed {
            let skipped =
                plan.probes.iter().map(|p| Coverage { status: "skipped", ..p.verdict(name, Err(why.clone())) });
            self.coverage.extend(skipped);
            return;
        }
        self.number(&mut plan);
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        self.attach(name, &path, &plan.probes, judged, progs);
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

    /// A file that may be a library and cannot be read is a gap, and said so.
    fn unreadable(&mut self, name: &str, why: &str) {
        self.missing.unreadable(name, why, self.planner.catalog());
        let Some(base) = name.rsplit('/').next() else { return };
        let families = Family::LIBRARIES.iter().filter(|f| looks_like(base, **f));
        self.coverage.extend(families.map(|f| Coverage {
            layer: f.layer(),
            target: name.to_owned(),
            symbol: String::new(),
            tier: None,
            status: "refused",
            reason: Some(why.to_owned()),
            offset: None,
            insn: None,
        }));
    }

    fn attach(
        &mut self,
        name: &str,
        path: &Path,
        probes: &[PlannedProbe],
        judged: &mut Judged,
        progs: &IotraceProgs<'_>,
    ) {
        let tier = match &self.tier {
            Ok(tier) => *tier,
            Err(why) => {
                self.coverage.extend(probes.iter().map(|p| p.verdict(name, Err(why.clone()))));
                return;
            }
        };
        if tier == LibTier::Single {
            let mut probes: Vec<&PlannedProbe> = probes.iter().collect();
            probes.sort_by_key(|p| self.planner.catalog().rows().get(usize::from(p.spec)).map(importance));
            for (n, probe) in probes.into_iter().enumerate() {
                let outcome = if self.singles >= MAX_SINGLE {
                    Err(format!("more than {MAX_SINGLE} single probes would take too long to detach"))
                } else if n >= MAX_SINGLE_PER_FILE {
                    Err(format!("more than {MAX_SINGLE_PER_FILE} single probes on a file would leave none for others"))
                } else {
                    single(progs, path, probe).map(|links| {
                        self.singles += links.len().div_ceil(2);
                        judged.links.extend(links);
                        tier.name()
                    })
                };
                self.coverage.push(probe.verdict(name, outcome));
            }
            return;
        }
        // One refused probe fails the whole link: halve until it stands alone.
        let mut todo = vec![probes];
        while let Some(part) = todo.pop() {
            match many(progs, path, part, tier) {
                Ok(links) => {
                    judged.links.extend(links);
                    self.coverage.extend(part.iter().map(|p| p.verdict(name, Ok(tier.name()))));
                }
                Err(why) => match part {
                    [] => {}
                    [one] => self.coverage.push(one.verdict(name, Err(why))),
                    _ => {
                        let (a, b) = part.split_at(part.len() / 2);
                        todo.extend([a, b]);
                    }
                },
            }
        }
    }
}

/// Which rows come first where there can only be few: phases and data, then handles, then what makes data durable.
fn importance(row: &Row) -> u8 {
    if row.note.is_some() || row.is_phase() {
        return 0;
    }
    match row.kind {
        Kind::Read | Kind::Write => 0,
        Kind::Open | Kind::Close => 1,
        Kind::Sync | Kind::Wait => 2,
        Kind::Meta | Kind::Seek | Kind::Mmap | Kind::Other => 3,
    }
}

fn looks_like(base: &str, family: Family) -> bool {
    match family {
        // Not the Fortran and C++ ones, whose calls go through it.
        Family::Netcdf => {
            ["libnetcdf.", "libnetcdf-", "libnetcdf_mpi", "libnetcdf_par"].iter().any(|n| base.starts_with(n))
        }
        Family::Pnetcdf => base.starts_with("libpnetcdf"),
        Family::Hdf5 => base.starts_with("libhdf5"),
        Family::OpenMpi => base.starts_with("libmpi"),
        // One verdict on such a file is enough, and a part of Open MPI is no library by name.
        Family::OpenMpi4
        | Family::OpenMpi5
        | Family::Mpich
        | Family::MpiAbi
        | Family::OmpiTuned
        | Family::OmpiBasic
        | Family::OmpiHan
        | Family::OmpiSm
        | Family::OmpiOb1
        | Family::OmpiUcx
        | Family::Librt
        | Family::Syscall
        | Family::Uring
        | Family::Aio
        | Family::Kernel
        | Family::Fault
        | Family::User(_) => false,
        Family::Libc => base.starts_with("libc.") || base.starts_with("libc-") || base.starts_with("ld-musl"),
    }
}

/// The code that a process maps, read as far as it is asked for: what was mapped last is mostly among the first, and a process
/// of MPI has hundreds of lines.
fn code(pid: u32) -> std::io::Result<impl Iterator<Item = Mapping>> {
    let lines = BufReader::new(File::open(format!("/proc/{pid}/maps"))?).split(b'\n').map_while(Result::ok);
    Ok(lines.filter_map(|line| maps::mapping(&line)).filter(Mapping::is_code))
}

/// Opens what a process has mapped, whatever its name means now: the file may be deleted or in a container.
pub fn open(pid: u32, m: &Mapping) -> Result<File, String> {
    let exact = format!("/proc/{pid}/map_files/{:x}-{:x}", m.start, m.end);
    let by_name = format!("/proc/{pid}/root{}", String::from_utf8_lossy(&m.path));
    // The name may mean something else by now, even something that blocks who opens it.
    let named = || std::fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(&by_name);
    let file = File::open(&exact)
        .or_else(|first| if m.deleted { Err(first) } else { named() })
        .map_err(|e| format!("cannot be read: {e}"))?;
    let metadata = file.metadata().map_err(|e| e.to_string())?;
    if !metadata.is_file() || metadata.ino() != m.inode {
        return Err("its name stands for another file now".into());
    }
    Ok(file)
}

pub fn content(mut file: &File) -> Result<Vec<u8>, String> {
    let size = file.metadata().map_err(|e| e.to_string())?.len();
    if size > MAX_FILE {
        return Err(format!("{size} bytes are more than a library has"));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    file.read_to_end(&mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
    Ok(bytes)
}

/// When a file that a process has mapped was last written. `None`: it is not to be seen there.
fn last_written(pid: u32, inode: Inode) -> Option<(i64, i64)> {
    let mapping = code(pid).ok()?.find(|m| (m.dev, m.inode) == inode)?;
    written(&open(pid, &mapping).ok()?)
}

fn written(file: &File) -> Option<(i64, i64)> {
    file.metadata().ok().map(|m| (m.mtime(), m.mtime_nsec()))
}

/// `IOT_K_` of `bpf/spec.h` (macros do not reach the skeleton).
mod cookie {
    pub const PLACES: u64 = 1 << 25;
    pub const LEAVE: u64 = 1 << 26;
    pub const JUMP: u64 = 1 << 27;
}

/// The breakpoints of a probe, each with its cookie: the entry, and the places that a function without return probe has.
fn breakpoints(probe: &PlannedProbe) -> BTreeMap<u64, u64> {
    let whole = probe.cookie();
    let mut points = BTreeMap::from([(probe.offset, whole)]);
    if let Some(places) = &probe.places {
        *points.entry(probe.offset).or_default() |= cookie::PLACES;
        for place in places {
            let (Place::Leave(at) | Place::Jump(at)) = place;
            let bit = if matches!(place, Place::Leave(_)) { cookie::LEAVE } else { cookie::JUMP };
            *points.entry(*at).or_insert(whole) |= bit;
        }
    }
    points
}

fn many(progs: &IotraceProgs<'_>, path: &Path, probes: &[PlannedProbe], tier: LibTier) -> Result<Vec<Link>, String> {
    // libbpf-rs does not compare the lengths of these two; they are equal here by construction.
    let opts = |points: Vec<(u64, u64)>, retprobe, session| UprobeMultiOpts {
        offsets: points.iter().map(|(at, _)| *at as usize).collect(),
        cookies: points.iter().map(|(_, cookie)| *cookie).collect(),
        retprobe,
        session,
        ..Default::default()
    };
    let say = |e: libbpf_rs::Error| format!("{e:#}");
    let points: Vec<(u64, u64)> = probes.iter().flat_map(breakpoints).collect();
    if tier == LibTier::Session {
        let link = progs.iot_uprobe_session.attach_uprobe_multi_with_opts(-1, path, "", opts(points, false, true));
        return Ok(vec![link.map_err(say)?]);
    }
    // The return first: an entry without its return would leave its frame open.
    let with_return = probes.iter().filter(|p| p.places.is_none());
    let returns: Vec<_> = with_return.map(|p| (p.offset, p.cookie())).collect();
    let mut links = Vec::new();
    if !returns.is_empty() {
        let opts = opts(returns, true, false);
        links.push(progs.iot_uretprobe_multi.attach_uprobe_multi_with_opts(-1, path, "", opts).map_err(say)?);
    }
    let opts = opts(points, false, false);
    links.push(progs.iot_uprobe_multi.attach_uprobe_multi_with_opts(-1, path, "", opts).map_err(say)?);
    Ok(links)
}

fn single(progs: &IotraceProgs<'_>, path: &Path, probe: &PlannedProbe) -> Result<Vec<Link>, String> {
    let opts = |cookie, retprobe| UprobeOpts { cookie, retprobe, ..Default::default() };
    let say = |e: libbpf_rs::Error| format!("{e:#}");
    let mut links = Vec::new();
    if probe.places.is_none() {
        let (at, opts) = (probe.offset as usize, opts(probe.cookie(), true));
        links.push(progs.iot_uretprobe.attach_uprobe_with_opts(-1, path, at, opts).map_err(say)?);
    }
    for (at, cookie) in breakpoints(probe) {
        let opts = opts(cookie, false);
        links.push(progs.iot_uprobe.attach_uprobe_with_opts(-1, path, at as usize, opts).map_err(say)?);
    }
    Ok(links)
}
