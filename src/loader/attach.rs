//! Carries out the plan: opens a mapped file, attaches its probes by the best tier, keeps the verdicts.

use crate::catalog::{Catalog, Family, Library};
use crate::correlate::rows::Coverage;
use crate::event::FileKey;
use crate::loader::elf::Elf;
use crate::loader::kernel::LibTier;
use crate::loader::maps::{self, Mapping};
use crate::loader::missing::Missing;
use crate::loader::plan::{PlannedProbe, Planner};
use crate::loader::returns::Place;
use crate::loader::safety;
use crate::skel::IotraceProgs;
use crate::words::Layer;
use libbpf_rs::{Link, UprobeMultiOpts, UprobeOpts};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Perf-event probes take some 0.1 s each to detach (measured), so there are at most this many.
const MAX_SINGLE: usize = 60;
/// Larger files are not read; no library comes near.
const MAX_FILE: u64 = 1 << 30;

/// A file by device (kernel encoding) and inode.
pub type Inode = (u32, u64);

/// Attaches to files, each once.
pub struct Engine {
    planner: Planner,
    missing: Missing,
    layers: Vec<Layer>,
    tier: Option<LibTier>,
    kernel_release: String,
    /// Files that were judged, and their generation where the kernel told it; 0 is unknown.
    judged: HashMap<Inode, u32>,
    links: Vec<Link>,
    singles: usize,
    attached: usize,
    coverage: Vec<Coverage>,
    covered: HashSet<Layer>,
}

impl Engine {
    /// `layers` are the ones to trace; `tier` is the best one this kernel allows.
    pub fn new(catalog: Catalog, layers: Vec<Layer>, tier: Option<LibTier>, kernel_release: String) -> Self {
        Self {
            missing: Missing::new(&catalog),
            planner: Planner::new(catalog),
            layers,
            tier,
            kernel_release,
            judged: HashMap::new(),
            links: Vec::new(),
            singles: 0,
            attached: 0,
            coverage: Vec::new(),
            covered: HashSet::new(),
        }
    }

    /// Judges every executable file that a process maps now; the inodes that are settled.
    pub fn judge_process(&mut self, pid: u32, progs: &IotraceProgs<'_>) -> std::io::Result<Vec<Inode>> {
        let text = std::fs::read(format!("/proc/{pid}/maps"))?;
        let mut seen = HashSet::new();
        for m in maps::mappings(&text) {
            let inode = (m.dev, m.inode);
            if m.is_code() && m.inode != 0 && seen.insert(inode) && !self.judged.contains_key(&inode) {
                self.judge(pid, &m, progs);
            }
        }
        seen.retain(|inode| self.judged.contains_key(inode));
        Ok(seen.into_iter().collect())
    }

    /// Was this file judged before? An inode that came back with another generation is another file.
    pub fn is_judged(&mut self, file: FileKey) -> bool {
        let inode = (file.dev, file.ino);
        match self.judged.get_mut(&inode) {
            Some(known) if *known == 0 || *known == file.generation => {
                *known = file.generation;
                true
            }
            Some(_) => {
                self.judged.remove(&inode);
                false
            }
            None => false,
        }
    }

    /// Probes attached so far.
    pub fn attached(&self) -> usize {
        self.attached
    }

    /// Verdicts since the last call.
    pub fn verdicts(&mut self) -> Vec<Coverage> {
        let new = std::mem::take(&mut self.coverage);
        self.covered.extend(new.iter().map(|c| c.layer));
        new
    }

    /// A verdict for every layer whose library nobody mapped: it is not covered. And for every phase and library of the
    /// user that was not found.
    pub fn uncovered(&self) -> Vec<Coverage> {
        let unseen = |l: &&Library| match l.family {
            Family::User(_) => !l.is_phases() && !self.missing.saw(l.family),
            _ => !self.covered.contains(&l.layer) && !self.coverage.iter().any(|c| c.layer == l.layer),
        };
        let libraries = self.planner.catalog().libraries().iter().filter(unseen).map(|library| {
            let (status, reason) = if self.layers.contains(&library.layer) {
                ("absent", format!("no traced process mapped such a library ({})", library.name))
            } else {
                ("skipped", "layer not selected".to_owned())
            };
            Coverage {
                layer: library.layer,
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

    /// Detaches everything.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    fn judge(&mut self, pid: u32, mapping: &Mapping, progs: &IotraceProgs<'_>) {
        let name = String::from_utf8_lossy(&mapping.path).into_owned();
        let opened = open(pid, mapping);
        if opened.is_err() && !Path::new(&format!("/proc/{pid}")).exists() {
            return; // it took the file along; whoever maps it next is asked again
        }
        self.judged.insert((mapping.dev, mapping.inode), 0);
        let (file, bytes) = match opened {
            Ok(opened) => opened,
            Err(why) => return self.unreadable(&name, &why),
        };
        let elf = match Elf::parse(&bytes, |symbol| self.planner.takes(symbol)) {
            Ok(elf) => elf,
            Err(why) => return self.unreadable(&name, &why.to_string()),
        };
        let plan = self.planner.plan(&name, &elf, &bytes, &|l| self.layers.contains(&l));
        self.missing.judged(&name, &elf, &plan, self.planner.catalog());
        self.coverage.extend(plan.settled);
        if plan.probes.is_empty() {
            return;
        }
        let seccomp = std::fs::read(format!("/proc/{pid}/status")).ok().and_then(|s| maps::status(&s).seccomp);
        let allowed = safety::return_probes_allowed(&self.kernel_release, seccomp.unwrap_or(0));
        if let Err(why) = allowed {
            let skipped =
                plan.probes.iter().map(|p| Coverage { status: "skipped", ..p.verdict(&name, Err(why.clone())) });
            self.coverage.extend(skipped);
            return;
        }
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        self.attach(&name, &path, &plan.probes, progs);
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

    fn attach(&mut self, name: &str, path: &Path, probes: &[PlannedProbe], progs: &IotraceProgs<'_>) {
        let Some(tier) = self.tier else {
            let why = "this kernel allows no user probes (see iotrace-bpf doctor)".to_owned();
            self.coverage.extend(probes.iter().map(|p| p.verdict(name, Err(why.clone()))));
            return;
        };
        if tier == LibTier::Single {
            for probe in probes {
                let outcome = if self.singles >= MAX_SINGLE {
                    Err(format!("more than {MAX_SINGLE} single probes would take too long to detach"))
                } else {
                    single(progs, path, probe).map(|links| {
                        self.singles += links.len().div_ceil(2);
                        self.links.extend(links);
                        self.attached += 1;
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
                    self.links.extend(links);
                    self.attached += part.len();
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

fn looks_like(base: &str, family: Family) -> bool {
    match family {
        Family::Hdf5 => base.starts_with("libhdf5"),
        Family::OpenMpi => base.starts_with("libmpi"),
        Family::Libc => base.starts_with("libc.") || base.starts_with("libc-") || base.starts_with("ld-musl"),
        Family::Syscall | Family::User(_) => false,
    }
}

/// Opens what a process has mapped, whatever its name means now: the file may be deleted or in a container.
pub fn open(pid: u32, m: &Mapping) -> Result<(File, Vec<u8>), String> {
    let exact = format!("/proc/{pid}/map_files/{:x}-{:x}", m.start, m.end);
    let by_name = format!("/proc/{pid}/root{}", String::from_utf8_lossy(&m.path));
    // The name may mean something else by now, even something that blocks who opens it.
    let named = || std::fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(&by_name);
    let mut file = File::open(&exact)
        .or_else(|first| if m.deleted { Err(first) } else { named() })
        .map_err(|e| format!("cannot be read: {e}"))?;
    let metadata = file.metadata().map_err(|e| e.to_string())?;
    if !metadata.is_file() || metadata.ino() != m.inode {
        return Err("its name stands for another file now".into());
    }
    let size = metadata.len();
    if size > MAX_FILE {
        return Err(format!("{size} bytes are more than a library has"));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    file.read_to_end(&mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
    Ok((file, bytes))
}

/// What a probe's cookie says besides the row of the catalog: `IOT_K_` of `bpf/spec.h` (macros do not reach the skeleton).
mod cookie {
    pub const PLACES: u64 = 0x10000;
    pub const LEAVE: u64 = 0x20000;
    pub const JUMP: u64 = 0x40000;
}

/// The breakpoints of a probe, each with its cookie: the entry, and the places that a function without return probe has.
fn breakpoints(probe: &PlannedProbe) -> BTreeMap<u64, u64> {
    let spec = u64::from(probe.spec);
    let mut points = BTreeMap::from([(probe.offset, spec)]);
    if let Some(places) = &probe.places {
        *points.entry(probe.offset).or_default() |= cookie::PLACES;
        for place in places {
            let (Place::Leave(at) | Place::Jump(at)) = place;
            let bit = if matches!(place, Place::Leave(_)) { cookie::LEAVE } else { cookie::JUMP };
            *points.entry(*at).or_insert(spec) |= bit;
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
    let returns: Vec<_> = with_return.map(|p| (p.offset, u64::from(p.spec))).collect();
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
        let (at, opts) = (probe.offset as usize, opts(u64::from(probe.spec), true));
        links.push(progs.iot_uretprobe.attach_uprobe_with_opts(-1, path, at, opts).map_err(say)?);
    }
    for (at, cookie) in breakpoints(probe) {
        let opts = opts(cookie, false);
        links.push(progs.iot_uprobe.attach_uprobe_with_opts(-1, path, at as usize, opts).map_err(say)?);
    }
    Ok(links)
}
