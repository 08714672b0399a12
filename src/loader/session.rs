//! One trace on the kernel side: load, attach, targets, losses, detach.

use crate::catalog::{Catalog, Family, Row, long_numbers, opcode, short_numbers};
use crate::correlate::Watched;
use crate::correlate::rows::{Coverage, Loss};
use crate::event::{FileKey, wire};
use crate::loader::attach::Engine;
use crate::loader::functions;
use crate::loader::kernel::{self, Capabilities, LibTier};
use crate::loader::perf;
use crate::loader::rings::{self, Layout};
use crate::loader::spec::spec;
use crate::loader::version::Library;
use crate::skel::types::{iot_class, iot_place};
use crate::skel::{IotraceSkel, IotraceSkelBuilder, OpenIotraceSkel};
use crate::words::{LAYERS, Layer};
use anyhow::{Context as _, Result, bail};
use libbpf_rs::skel::{OpenSkel as _, Skel as _, SkelBuilder as _};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, OpenObject, Program};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;

/// `IOT_LAYERS` and `iot_lib` states of `bpf/` (macros do not reach the skeleton).
const LOSS_LAYERS: u32 = 16;
const LIB_JUDGED: u32 = 2;
/// `IOT_SYSNO_ROW` and `IOT_SYSNO_LAYOUT`.
const SYSNO_ROW: u16 = 0x0fff;
const SYSNO_LAYOUT: u16 = 12;
/// How often skipped runs are asked for.
const MISSES_EVERY_NS: i64 = 1_000_000_000;

/// How often the table of targets is emptied at the end.
const FORGET_ROUNDS: u32 = 4;

/// The place of calls that are left out on purpose: counted, and not a loss.
pub const EXCLUDED: &str = "excluded";

/// The place of page faults that are not looked at because another thread changes the mappings meanwhile: most of them are
/// on memory without a file, so they are counted, and no loss.
pub const UNPLACED: &str = "mapping";

/// What to trace and with how much memory.
#[derive(Debug, Clone)]
pub struct Options {
    pub layers: Vec<Layer>,
    /// Memory of all rings, in bytes.
    pub ring_bytes: u64,
    /// Sockets and pipes, too.
    pub sockets: bool,
    /// Stop targets that map an unknown library until it is attached; only for launched commands.
    pub hold: bool,
    /// Numbers of processes kept for targets that exist already.
    pub reserved: u32,
}

/// Programs that are loaded together or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Process,
    Syscall,
    /// Requests of `io_uring`.
    Uring,
    Block,
    /// Page cache: what is read into it.
    Pages,
    /// Page cache: who waits because too much is dirty.
    Throttling,
    /// Functions inside the kernel.
    Functions,
    /// Page faults on mapped files: what tells that one is over is no tracepoint.
    Fault,
    /// What becomes dirty otherwise than by a write.
    Dirty,
    Library,
    /// What user space asks the kernel.
    Question,
}
const GROUPS: [Group; 11] = [
    Group::Process,
    Group::Syscall,
    Group::Uring,
    Group::Block,
    Group::Pages,
    Group::Throttling,
    Group::Functions,
    Group::Fault,
    Group::Dirty,
    Group::Library,
    Group::Question,
];

/// Kernel hooks: program, hook, group. Library programs attach per file and are not here.
const HOOKS: &[(&str, &str, Group)] = &[
    ("iot_fork", "sched_process_fork", Group::Process),
    ("iot_exec", "sched_process_exec", Group::Process),
    ("iot_exit", "sched_process_exit", Group::Process),
    ("iot_sys_enter", "sys_enter", Group::Syscall),
    ("iot_sys_exit", "sys_exit", Group::Syscall),
    ("iot_uring_submit_req", "io_uring_submit_req", Group::Uring),
    ("iot_uring_submit_sqe", "io_uring_submit_sqe", Group::Uring),
    ("iot_uring_req_failed", "io_uring_req_failed", Group::Uring),
    ("iot_uring_complete", "io_uring_complete", Group::Uring),
    ("iot_uring_overflow", "io_uring_cqe_overflow", Group::Uring),
    ("iot_uring_wait", "io_uring_cqring_wait", Group::Uring),
    ("iot_bio_queue", "block_bio_queue", Group::Block),
    ("iot_bio_split", "block_split", Group::Block),
    ("iot_rq_issue", "block_rq_issue", Group::Block),
    ("iot_rq_complete", "block_rq_complete", Group::Block),
    ("iot_page_added", "mm_filemap_add_to_page_cache", Group::Pages),
    ("iot_throttled", "balance_dirty_pages", Group::Throttling),
    ("iot_fault_user", "page_fault_user", Group::Fault),
    ("iot_fault_kernel", "page_fault_kernel", Group::Fault),
    ("iot_fault_minor", "page-faults:min", Group::Fault),
    ("iot_fault_major", "page-faults:maj", Group::Fault),
    ("iot_dirty_folio", "writeback_dirty_folio", Group::Dirty),
];

/// Programs that are attached to events that the kernel counts.
const EVENTS: &[(&str, u64)] = &[("iot_fault_minor", perf::MINOR_FAULTS), ("iot_fault_major", perf::MAJOR_FAULTS)];

/// A tracepoint that has another name in older kernels (Linux 6.3).
const RENAMED: (&str, &str) = ("io_uring_submit_req", "io_uring_submit_sqe");

impl Group {
    fn programs(self, tier: Option<LibTier>) -> Vec<&'static str> {
        match (self, tier) {
            (Self::Library, Some(LibTier::Session)) => return vec!["iot_uprobe_session"],
            (Self::Library, Some(LibTier::Multi)) => return vec!["iot_uprobe_multi", "iot_uretprobe_multi"],
            (Self::Library, Some(LibTier::Single)) => return vec!["iot_uprobe", "iot_uretprobe"],
            (Self::Functions, _) => return functions::PROGRAMS.to_vec(),
            (Self::Question, Some(_)) => return vec!["iot_real_file"],
            _ => {}
        }
        self.hooks().map(|(program, _)| program).collect()
    }

    /// Its programs and what they hook into.
    fn hooks(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let renamed = if kernel::has_tracepoint(RENAMED.0) { RENAMED.1 } else { RENAMED.0 };
        HOOKS.iter().filter(move |(_, hook, group)| *group == self && *hook != renamed).map(|(p, h, _)| (*p, *h))
    }

    /// How its hooks are attached. The arguments of `balance_dirty_pages` are others in each kernel, so that the fields of its
    /// record are read instead, which have names.
    fn tier(self) -> &'static str {
        if self == Self::Throttling { "tracepoint" } else { "tp_btf" }
    }

    /// The layer its hooks show; process life cycle serves all of them.
    fn layer(self) -> Layer {
        match self {
            Self::Block | Self::Dirty => Layer::Block,
            Self::Functions | Self::Fault => Layer::Vfs,
            Self::Library | Self::Question => Layer::App,
            Self::Process | Self::Syscall | Self::Uring | Self::Pages | Self::Throttling => Layer::Syscall,
        }
    }
}

/// A loaded and attached trace.
pub struct Session<'obj> {
    skel: IotraceSkel<'obj>,
    engine: Engine,
    rows: Vec<Row>,
    layers: Vec<Layer>,
    links: Vec<Link>,
    hooks: Vec<Coverage>,
    seen_losses: HashMap<(u32, usize), u64>,
    /// Our programs by kernel id: layer, and the skipped runs that were reported.
    programs: HashMap<u32, (Layer, u64)>,
    misses_read: i64,
}

impl<'obj> Session<'obj> {
    /// Loads the programs and makes the rings; nothing is attached yet. `stores` outlive the session: the second one is for
    /// the programs that are left when the kernel refuses some.
    pub fn load(
        stores: &'obj mut [MaybeUninit<OpenObject>; 2],
        caps: &Capabilities,
        catalog: Catalog,
        options: &Options,
    ) -> Result<(Self, Vec<MapHandle>)> {
        let rows = catalog.rows();
        let tier = caps.lib_tier();
        let cpus = libbpf_rs::num_possible_cpus().context("number of CPUs")? as u32;
        let layout = Layout::new(options.ring_bytes, cpus);
        let wanted: BTreeSet<Group> = GROUPS
            .into_iter()
            .filter(|g| match g {
                Group::Uring | Group::Pages | Group::Throttling => options.layers.contains(&Layer::Syscall),
                Group::Block | Group::Dirty => options.layers.contains(&Layer::Block),
                Group::Functions => options.layers.contains(&Layer::Fs),
                Group::Fault => options.layers.contains(&Layer::Vfs),
                Group::Library | Group::Question => {
                    catalog.libraries().iter().any(|l| options.layers.contains(&l.layer))
                }
                // System calls also show mappings and carry handles up to the libraries' spans.
                Group::Process | Group::Syscall => true,
            })
            .collect();
        let [first, second] = stores;
        let (skel, refused) = if let Ok(skel) = open(first, &wanted, tier, rows, options, layout)?.load() {
            (skel, Vec::new())
        } else {
            let (groups, refused) = usable_groups(&wanted, tier, rows, options, layout)?;
            let skel = open(second, &groups, tier, rows, options, layout)?.load();
            let said = |e| anyhow::anyhow!("loading the BPF programs: {e:#}\n{}", kernel::libbpf_said());
            (skel.map_err(said)?, refused)
        };
        for (i, row) in rows.iter().enumerate() {
            skel.maps
                .iot_specs
                .update(&(i as u32).to_ne_bytes(), wire::spec_bytes(&spec(row, &options.layers)), MapFlags::ANY)
                .context("catalog into the kernel")?;
        }
        let rings = rings::create(layout, &skel.maps)?;
        let release = nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned());
        let tier = match refused.iter().find(|(group, _)| *group == Group::Library) {
            Some((_, why)) => Err(format!("this kernel does not load the programs of library probes: {why}")),
            None => tier.ok_or_else(|| "this kernel allows no user probes (see iotrace-bpf doctor)".to_owned()),
        };
        let rows = rows.to_vec();
        let engine = Engine::new(catalog, options.layers.clone(), tier, release.unwrap_or_default());
        let functions = refused.iter().find(|(group, _)| *group == Group::Functions);
        let functions = functions.map(|(_, why)| functions::refused(&rows, &options.layers, why));
        let hooks = refused
            .into_iter()
            .flat_map(|(group, why)| {
                group.hooks().map(move |(_, hook)| verdict(group, hook, Err(why.clone()))).collect::<Vec<_>>()
            })
            .chain(functions.into_iter().flatten())
            .collect();
        let mut session = Self {
            skel,
            engine,
            rows,
            layers: options.layers.clone(),
            links: Vec::new(),
            hooks,
            seen_losses: HashMap::new(),
            programs: HashMap::new(),
            misses_read: 0,
        };
        session.number_programs();
        Ok((session, rings))
    }

    /// Attaches the kernel hooks, each with its verdict. Fails when nothing could be traced at all.
    pub fn attach_hooks(&mut self) -> Result<()> {
        let cpus = libbpf_rs::num_possible_cpus().context("number of CPUs")? as i32;
        for prog in self.skel.object_mut().progs_mut() {
            let name = prog.name().to_string_lossy();
            let Some((_, hook, group)) = HOOKS.iter().find(|(p, _, _)| *p == name) else { continue };
            if !prog.autoload() {
                continue;
            }
            let event = EVENTS.iter().find(|(p, _)| *p == name);
            let attached = match event {
                Some((_, event)) => perf::attach(&prog, *event, cpus),
                None => prog.attach().map(|link| vec![link]).map_err(|e| format!("{e:#}")),
            };
            let tier = if event.is_some() { "perf_event" } else { group.tier() };
            let attached = attached.map(|links| self.links.extend(links));
            self.hooks.push(verdict(*group, hook, attached.map(|()| tier)));
        }
        if self.skel.progs.iot_kprobe.autoload() {
            let (links, verdicts) = functions::attach(&self.skel.progs, &self.rows, &self.layers);
            self.links.extend(links);
            self.hooks.extend(verdicts);
        }
        let missing: Vec<&Coverage> =
            self.hooks.iter().filter(|c| c.status != "attached" && c.symbol.starts_with("sched_process")).collect();
        if let Some(c) = missing.first() {
            bail!(
                "{}: {}; without it processes cannot be followed (iotrace-bpf doctor says what this kernel allows)",
                c.symbol,
                c.reason.as_deref().unwrap_or("refused")
            );
        }
        Ok(())
    }

    /// Which hooks on the page cache are attached.
    pub fn watched(&self) -> Watched {
        let is = |group| {
            let hook = HOOKS.iter().find(|(_, _, g)| *g == group).map(|(_, hook, _)| *hook);
            self.hooks.iter().any(|c| Some(c.symbol.as_str()) == hook && c.status == "attached")
        };
        Watched { pages: is(Group::Pages), throttling: is(Group::Throttling) }
    }

    /// Makes a process a target; `armed: false` means from its next exec on.
    pub fn add_target(&self, pid: u32, process: u32, armed: bool) -> Result<()> {
        let mut value = process.to_ne_bytes().to_vec();
        value.extend(u16::from(armed).to_ne_bytes());
        value.extend(0_u16.to_ne_bytes());
        self.skel
            .maps
            .iot_targets
            .update(&pid.to_ne_bytes(), &value, MapFlags::ANY)
            .with_context(|| format!("process {pid} as a target"))
    }

    /// Attaches to every library a process maps, and lets it go on if it was held. The layers that have new probes.
    ///
    /// `held` is what the kernel side said: by now another thread of the process may have been told to stop again.
    pub fn judge(&mut self, pid: u32, asked: Option<FileKey>, held: bool) -> BTreeSet<Layer> {
        let before = self.engine.verdicts();
        if !asked.is_some_and(|file| self.engine.is_judged(pid, file)) {
            // A process that is gone takes its mappings along; the next one that maps the file is asked again.
            self.set_settled(false);
            let settled = self.engine.judge_process(pid, &self.skel.progs).unwrap_or_default();
            self.set_settled(true);
            if let Some(file) = asked {
                self.mark(file, settled.contains(&(file.dev, file.ino)));
                self.engine.learn(file);
            }
        } else if let Some(file) = asked {
            self.mark(file, true);
        }
        self.release(pid, held);
        let new = self.engine.verdicts();
        let layers = new.iter().filter(|c| c.status == "attached").map(|c| c.layer).collect();
        self.hooks.extend(before.into_iter().chain(new));
        layers
    }

    fn mark(&self, file: FileKey, judged: bool) {
        let mut key = file.ino.to_ne_bytes().to_vec();
        key.extend(file.dev.to_ne_bytes());
        key.extend(file.generation.to_ne_bytes());
        let libs = &self.skel.maps.iot_libs;
        if !judged {
            let _ = libs.delete(&key);
        } else if let Ok(Some(mut value)) = libs.lookup(&key, MapFlags::ANY)
            && let Some(state) = value.first_chunk_mut()
        {
            // With it stands when the file was written, as the kernel side saw it. A table that had no room for it only
            // means that the file is asked about again.
            *state = LIB_JUDGED.to_ne_bytes();
            let _ = libs.update(&key, &value, MapFlags::EXIST);
        }
    }

    fn release(&self, pid: u32, stopped: bool) {
        let held = &self.skel.maps.iot_held;
        let noted = held.lookup(&pid.to_ne_bytes(), MapFlags::ANY).is_ok_and(|v| v.is_some());
        if noted || stopped {
            let _ = held.delete(&pid.to_ne_bytes());
            resume(pid);
        }
    }

    /// Lets a process go on whose stop was told after the trace had ended.
    pub fn resume(&self, pid: u32) {
        resume(pid);
    }

    /// A target no more.
    pub fn remove_target(&self, pid: u32) {
        // It may have ended by itself.
        let _ = self.skel.maps.iot_targets.delete(&pid.to_ne_bytes());
    }

    /// The id of the table of stopped processes, for the guardian.
    pub fn held_map_id(&self) -> Result<u32> {
        Ok(self.skel.maps.iot_held.info().context("table of held processes")?.info.id)
    }

    /// Tells the kernel side whether library probes stay as they are now.
    fn set_settled(&mut self, settled: bool) {
        if let Some(data) = self.skel.maps.data_data.as_deref_mut() {
            data.iot_settled = u32::from(settled);
        }
    }

    /// Ends the trace in the kernel: no hook fires after this, no process stays stopped.
    pub fn detach(&mut self) {
        // All at once, or what runs on would be seen by some of the hooks only.
        self.forget_targets();
        self.links.clear();
        self.engine.detach();
        self.misses_read = -MISSES_EVERY_NS; // the last count is still to be read
        release_all(&self.skel.maps.iot_held);
    }

    /// Nobody is traced any more. Until its fork is seen through, a new process may be added: a few rounds find it.
    fn forget_targets(&self) {
        for _ in 0..FORGET_ROUNDS {
            let pids: Vec<_> = self.skel.maps.iot_targets.keys().collect();
            if pids.is_empty() {
                return;
            }
            for pid in pids {
                let _ = self.skel.maps.iot_targets.delete(&pid);
            }
        }
    }

    /// Verdicts since the last call.
    pub fn verdicts(&mut self) -> Vec<Coverage> {
        let mut rows = std::mem::take(&mut self.hooks);
        rows.extend(self.engine.verdicts());
        rows
    }

    /// Libraries that were found since the last call.
    pub fn libraries(&mut self) -> Vec<Library> {
        self.engine.libraries()
    }

    /// Verdicts on layers that no probe was tried for, at the end of a trace.
    pub fn uncovered(&self) -> Vec<Coverage> {
        let unasked = [Layer::Vfs, Layer::Fs].into_iter().filter(|l| !self.layers.contains(l)).map(|layer| Coverage {
            layer,
            target: String::new(),
            symbol: String::new(),
            tier: None,
            status: "skipped",
            reason: Some("layer not selected".to_owned()),
            offset: None,
            insn: None,
        });
        self.engine.uncovered().into_iter().chain(unasked).collect()
    }

    /// Are there processes left to trace?
    pub fn has_targets(&self) -> bool {
        self.skel.maps.iot_targets.keys().next().is_some()
    }

    /// The number of processes that are traced now.
    pub fn targets(&self) -> usize {
        self.skel.maps.iot_targets.keys().count()
    }

    /// What was lost since the last call; `t_ns` is relative to `t0`. Calls that were left out on purpose
    /// (sockets, pipes, terminals, /proc, /sys) are among them, under the place [`EXCLUDED`].
    pub fn losses(&mut self, t_ns: i64) -> Vec<Loss> {
        let mut rows = Vec::new();
        let places = iot_place::IOT_P_MAX.0;
        for key in 0..places * LOSS_LAYERS {
            let Ok(Some(counts)) = self.skel.maps.iot_losses.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY) else {
                continue;
            };
            for (cpu, bytes) in counts.iter().enumerate() {
                let n = bytes.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
                let seen = self.seen_losses.entry((key, cpu)).or_default();
                if n > *seen {
                    let layer = LAYERS.get((key % LOSS_LAYERS) as usize).copied();
                    rows.push(Loss {
                        t_ns,
                        layer: layer.filter(|l| *l != Layer::App),
                        cpu: Some(cpu as i16),
                        place: place_name(key / LOSS_LAYERS),
                        count: (n - *seen) as i64,
                    });
                    *seen = n;
                }
            }
        }
        rows.extend(self.recursion_misses(t_ns));
        rows
    }

    fn number_programs(&mut self) {
        for prog in self.skel.object_mut().progs_mut().filter(|p| p.autoload()) {
            let name = prog.name().to_string_lossy();
            let group = GROUPS.into_iter().find(|g| g.programs(None).iter().any(|p| *p == name));
            if let Ok(id) = Program::id_from_fd(prog.as_fd()) {
                self.programs.insert(id, (group.unwrap_or(Group::Library).layer(), 0));
            }
        }
    }

    /// Runs of our programs that the kernel skipped because the same program was running on that CPU.
    fn recursion_misses(&mut self, t_ns: i64) -> Vec<Loss> {
        // The kernel lists every program of the machine; now and then is enough.
        if t_ns - self.misses_read < MISSES_EVERY_NS {
            return Vec::new();
        }
        self.misses_read = t_ns;
        let mut rows = Vec::new();
        for info in libbpf_rs::query::ProgInfoIter::default() {
            let Some((layer, seen)) = self.programs.get_mut(&info.id) else { continue };
            if info.recursion_misses > *seen {
                rows.push(Loss {
                    t_ns,
                    layer: Some(*layer).filter(|l| *l != Layer::App),
                    cpu: None,
                    place: "recursion",
                    count: (info.recursion_misses - *seen) as i64,
                });
                *seen = info.recursion_misses;
            }
        }
        rows
    }
}

fn resume(pid: u32) {
    // It may be gone.
    let _ = kill(Pid::from_raw(pid as i32), Signal::SIGCONT);
}

impl Drop for Session<'_> {
    /// Also when something failed or panicked on the way: nobody may stay stopped.
    fn drop(&mut self) {
        self.detach();
    }
}

/// Lets every stopped process go on.
pub fn release_all(held: &impl libbpf_rs::MapCore) {
    let pids: Vec<Vec<u8>> = held.keys().collect();
    for key in pids {
        if let Some(pid) = key.first_chunk().map(|b| u32::from_ne_bytes(*b)) {
            resume(pid);
            let _ = held.delete(&key);
        }
    }
}

fn place_name(place: u32) -> &'static str {
    match iot_place(place) {
        iot_place::IOT_P_RING => "ring",
        iot_place::IOT_P_DEPTH => "stack_depth",
        iot_place::IOT_P_STORAGE => "task_storage",
        iot_place::IOT_P_RETURN => "unmatched_return",
        iot_place::IOT_P_TEXT => "text",
        iot_place::IOT_P_MAP_FULL => "map_full",
        iot_place::IOT_P_MAPPING => UNPLACED,
        iot_place::IOT_P_ELSEWHERE => "other_stack",
        iot_place::IOT_P_EXCLUDED => EXCLUDED,
        _ => "unknown",
    }
}

fn verdict(group: Group, hook: &str, outcome: Result<&'static str, String>) -> Coverage {
    Coverage {
        layer: group.layer(),
        target: "kernel".into(),
        symbol: hook.to_owned(),
        tier: outcome.as_ref().ok().copied(),
        status: if outcome.is_ok() { "attached" } else { "refused" },
        reason: outcome.err(),
        offset: None,
        insn: None,
    }
}

fn open<'obj>(
    store: &'obj mut MaybeUninit<OpenObject>,
    groups: &BTreeSet<Group>,
    tier: Option<LibTier>,
    rows: &[Row],
    options: &Options,
    layout: Layout,
) -> Result<OpenIotraceSkel<'obj>> {
    let mut open = IotraceSkelBuilder::default().open(store).context("opening the BPF object")?;
    let names: Vec<&str> = groups.iter().flat_map(|g| g.programs(tier)).collect();
    for mut prog in open.open_object_mut().progs_mut() {
        let on = names.iter().any(|n| prog.name() == *n);
        prog.set_autoload(on);
    }
    let ro = open.maps.rodata_data.as_deref_mut().context("the BPF object has no configuration section")?;
    ro.iot_cfg.shards = layout.shards;
    // A quarter of the smallest ring: late enough to be rare, early enough to be read in time.
    ro.iot_cfg.wakeup = layout.bytes.iter().copied().min().unwrap_or(4096) / 4;
    ro.iot_cfg.rows = rows.len() as u32;
    ro.iot_cfg.hold = u8::from(options.hold);
    ro.iot_cfg.sockets = u8::from(options.sockets);
    if options.layers.contains(&Layer::Syscall) {
        let calls = rows.iter().enumerate().filter(|(_, r)| r.family == Family::Syscall);
        for (i, row) in calls.filter(|(_, r)| options.sockets || !r.sockets) {
            let spec = u16::try_from(i + 1).ok().filter(|spec| *spec <= SYSNO_ROW).context("too many rows")?;
            let long = long_numbers(row.op).map(|nr| (nr, spec, false));
            let short = short_numbers(row.op).map(|(nr, layout)| (nr, spec | (layout as u16) << SYSNO_LAYOUT, true));
            for (nr, entry, short) in long.chain(short) {
                let table: &mut [u16] = if short { &mut ro.iot_sysno32 } else { &mut ro.iot_sysno };
                let slot = table.get_mut(nr as usize);
                let slot = slot.with_context(|| format!("system call {} has too high a number", row.symbol))?;
                // Of several rows the first one says which of them it is.
                if *slot == 0 {
                    *slot = entry;
                }
            }
        }
        for (i, row) in rows.iter().enumerate() {
            let table = match row.family {
                Family::Uring => &mut ro.iot_uring_rows,
                Family::Aio => &mut ro.iot_aio_rows,
                _ => continue,
            };
            let slot = opcode(row.symbol).and_then(|code| table.get_mut(usize::from(code)));
            *slot.with_context(|| format!("operation {} has no opcode", row.symbol))? = i as u16 + 1;
        }
    }
    if options.layers.contains(&Layer::Vfs) {
        let faults = rows.iter().enumerate().filter(|(_, r)| r.family == Family::Fault);
        for (slot, (row, _)) in ro.iot_fault_rows.iter_mut().zip(faults) {
            *slot = row as u16 + 1;
        }
    }
    let data = open.maps.data_data.as_deref_mut().context("the BPF object has no data section")?;
    data.iot_next_process = options.reserved + 1;
    open.maps.iot_rings.set_max_entries(layout.count()).context("table of rings")?;
    Ok(open)
}

/// Groups that this kernel loads, and why it refuses the others. Only a refused life cycle is fatal.
type Usable = (BTreeSet<Group>, Vec<(Group, String)>);
fn usable_groups(
    wanted: &BTreeSet<Group>,
    tier: Option<LibTier>,
    rows: &[Row],
    options: &Options,
    layout: Layout,
) -> Result<Usable> {
    let loads = |groups: &BTreeSet<Group>| -> Result<(), String> {
        let mut store = MaybeUninit::uninit();
        let open = open(&mut store, groups, tier, rows, options, layout).map_err(|e| format!("{e:#}"))?;
        kernel::libbpf_said();
        open.load().map(drop).map_err(|e| kernel::reason(&e))
    };
    let mut usable = BTreeSet::new();
    let mut refused = Vec::new();
    for &group in wanted {
        match loads(&BTreeSet::from([group])) {
            Ok(()) => {
                usable.insert(group);
            }
            Err(why) if group == Group::Process => bail!(
                "this kernel does not load the programs that follow processes: {why}\n`iotrace-bpf doctor` says what it allows"
            ),
            Err(why) => refused.push((group, why)),
        }
    }
    Ok((usable, refused))
}

/// The classes of rings, in the order of their numbers: a check that both sides agree.
const _: () = assert!(iot_class::IOT_C_LIFE.0 == 0 && iot_class::IOT_C_CALL.0 == 1 && iot_class::IOT_C_BLOCK.0 == 2);
