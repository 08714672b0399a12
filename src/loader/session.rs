//! One trace on the kernel side: load, attach, targets, losses, detach.

use crate::catalog::{Catalog, Row};
use crate::event::wire::{self, Busy};
use crate::event::{Event, FileKey, Measured, Written};
use crate::loader::attach::pauses::Pause;
use crate::loader::attach::{Engine, Target};
use crate::loader::code::examine::Seen;
use crate::loader::code::remembered::{Inode, Remembered};
use crate::loader::code::version::Library;
use crate::loader::kernel::calibrate::Fixed;
use crate::loader::kernel::detail::{Choice, Plan, Slow, Sources};
use crate::loader::kernel::hooks::{
    END_CALLS, EVENTS, FIND_SYMBOLS, GROUPS, Group, HOOKS, LIST_THREADS, OPEN_CALLS, SLOW_CALLS, verdict,
};
use crate::loader::kernel::misses::{Copy, Misses};
use crate::loader::kernel::programs::{self, Loaded};
pub use crate::loader::kernel::programs::{Options, Scope, Stores, stores};
use crate::loader::kernel::rings::{self, Layout, Placing};
use crate::loader::kernel::spec::spec;
use crate::loader::kernel::sums::Sums;
use crate::loader::kernel::trial::Trial;
use crate::loader::kernel::{LibTier, functions, perf};
use crate::loader::processes::guardian::Next;
use crate::loader::processes::seccomp::{Call, Notice};
use crate::loader::processes::{existing, maps, real};
use crate::loader::stacks::inflight::{self, Look};
use crate::rows::{Coverage, Loss};
use crate::skel::types::{self as t, iot_armed, iot_brief_state, iot_lib_state, iot_limit, iot_loss};
use crate::skel::{IotraceMaps, IotraceProgs, IotraceSkel};
use crate::vocabulary::{LAYERS, Layer};
use anyhow::{Context as _, Result, anyhow, bail};
use libbpf_rs::skel::Skel as _;
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Program, ProgramInput};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

mod pause;

/// Layers that the table of losses has room for.
const LOSS_LAYERS: u32 = iot_limit::IOT_LAYERS.0;

/// How long after probes were set calls return whose entry was before them: that is no loss.
const SETTLE: Duration = Duration::from_secs(1);

/// How long the probes of demoted functions are back, how long after a function was demoted, and at most how rarely. It takes
/// some 10 ms besides to take them away.
const WINDOW: Duration = Duration::from_millis(3);
const FIRST_WINDOW: Duration = Duration::from_millis(250);
const LONGEST_BETWEEN: Duration = Duration::from_secs(10);

/// How often the table of targets is emptied at the end.
const FORGET_ROUNDS: u32 = 4;

use crate::rows::DETAIL;

/// Calls that are left out on purpose: counted, and not a loss.
pub const EXCLUDED: &str = "excluded";

/// Page faults that are not looked at because another thread changes the mappings meanwhile: most of them are
/// on memory without a file, so they are counted, and no loss.
pub const UNPLACED: &str = "mapping";

/// A loaded and attached trace.
pub struct Session<'obj> {
    skel: IotraceSkel<'obj>,
    /// Those of library probes among others; see [`Loaded`].
    second: Option<IotraceSkel<'obj>>,
    engine: Engine,
    rows: Vec<Row>,
    layers: Vec<Layer>,
    links: Vec<Link>,
    /// Programs that run when they are read, by name.
    iterators: HashMap<&'static str, Link>,
    hooks: Vec<Coverage>,
    seen_losses: HashMap<(u32, usize), u64>,
    misses: Misses,
    /// How long it took so far to attach.
    attaching: Duration,
    /// When returns without an entry are losses again.
    settles: Option<Instant>,
    /// Processes that were looked into since then, as far as they asked.
    looked_into: BTreeSet<u32>,
    /// How much each process sends besides sums.
    sources: Option<Sources>,
    /// Processes of a held command that have begun with the probes that they are to have, by number.
    begun: HashSet<u32>,
    /// Calls may meet probes twice.
    exchanging: bool,
    /// Until the rings are in their table.
    placing: Option<Placing>,
    /// Calls are summed up: those of a window would count twice.
    summing: bool,
    /// When the calls of demoted functions are looked at next, and how long after the last time that is.
    window: Option<(Instant, Duration)>,
    /// The probes of MPI communication.
    pause: Pause,
    /// Why they were paused first.
    paused_for: Option<(i64, Busy)>,
    /// How often a thread may call them, once in this time.
    every: Duration,
    /// What hooks cost on this machine, if that could be measured.
    fixed: Result<Fixed>,
}

/// What hooks have cost the traced threads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hooked {
    /// All of them, in ns.
    pub total_ns: u64,
    /// The greatest part of its time that they have cost a thread since the last look, 0 to 1.
    pub part: f64,
}

/// Has the kernel look up its functions that distinguish requests; the verdict, if it hides them.
fn find_symbols(progs: &IotraceProgs<'_>, maps: &IotraceMaps<'_>) -> Result<Option<Coverage>> {
    progs.iot_find_symbols.test_run(ProgramInput::default()).context("looking up functions of the kernel")?;
    let found = maps.bss_data.as_deref().is_some_and(|data| data.iot_symbols.end_bio_bh_io_sync != 0);
    // kallsyms_show_value, kernel/ksyms_common.c
    let why = "the kernel hides its addresses (sysctl kernel.kptr_restrict=1 shows them): requests of journals are not distinguished from \
               others, and direct ones of io_uring and libaio not linked to their operation";
    Ok((!found).then(|| verdict(Group::Block, FIND_SYMBOLS, Err(why.to_owned()))))
}

/// Writes the rows of the catalog into the table of the kernel side, all at once.
fn write_catalog(specs: &impl libbpf_rs::MapCore, rows: &[Row], layers: &[Layer]) -> Result<()> {
    let numbers: Vec<u8> = (0..rows.len() as u32).flat_map(u32::to_ne_bytes).collect();
    let values: Vec<u8> = rows.iter().flat_map(|row| wire::spec_bytes(&spec(row, layers)).to_vec()).collect();
    specs
        .update_batch(&numbers, &values, rows.len() as u32, MapFlags::ANY, MapFlags::ANY)
        .context("catalog into the kernel")
}

/// Marks the files that have nothing to probe: the kernel side does not ask about them.
fn mark_remembered(libs: &impl libbpf_rs::MapCore, remembered: &Remembered) -> Result<()> {
    let (mut keys, mut values, mut count) = (Vec::new(), Vec::new(), 0);
    for plain in remembered.files() {
        keys.extend(lib_key(plain.key()));
        // `iot_lib`
        values.extend(iot_lib_state::IOT_LIB_REMEMBERED.0.to_ne_bytes());
        values.extend((plain.written.1 as u32).to_ne_bytes());
        values.extend(plain.written.0.to_ne_bytes());
        count += 1;
    }
    if count == 0 {
        return Ok(());
    }
    libs.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY).context("files that have nothing to probe")
}

fn lib_key(file: FileKey) -> Vec<u8> {
    let mut key = file.ino.to_ne_bytes().to_vec();
    key.extend(file.dev.to_ne_bytes());
    key.extend(file.generation.to_ne_bytes());
    key
}

/// The programs of the second object. Those that are not loaded are not asked for.
fn probes<'a, 'obj>(first: &'a IotraceSkel<'obj>, second: Option<&'a IotraceSkel<'obj>>) -> &'a IotraceProgs<'obj> {
    &second.unwrap_or(first).progs
}

/// The groups of hooks that serve the layers: those that this kernel does not have, those that sums do not need, and the
/// others.
fn groups(options: &Options, libraries: bool) -> [BTreeSet<Group>; 3] {
    let all = GROUPS.into_iter().filter(|group| group.serves(&options.layers, libraries));
    let (absent, there): (BTreeSet<Group>, BTreeSet<Group>) = all.partition(|group| group.absent().is_some());
    let unneeded = |group: &Group| options.aggregate && group.unused_in_sums().is_some();
    let (unused, wanted) = there.into_iter().partition(unneeded);
    [absent, unused, wanted]
}

impl<'obj> Session<'obj> {
    /// Loads the programs and makes the rings; nothing is attached yet. `stores` outlive the session.
    pub fn load(
        stores: &'obj mut Stores,
        trial: &mut Trial,
        catalog: Catalog,
        options: &Options,
        remembered: Remembered,
    ) -> Result<(Self, Vec<MapHandle>)> {
        let rows = catalog.rows();
        let cpus = libbpf_rs::num_possible_cpus().context("number of CPUs")? as u32;
        let layout = Layout::new(options.ring_bytes, cpus);
        let rings = rings::create(layout)?;
        let libraries = catalog.serves(&options.layers);
        let [absent, unused, wanted] = groups(options, libraries);
        let Loaded { first: skel, second, refused } = programs::load(stores, wanted, trial, rows, options, layout)?;
        let tier = trial.found()?.lib_tier();
        let progs = probes(&skel, second.as_ref());
        let symbols = progs.iot_find_symbols.autoload().then(|| find_symbols(progs, &skel.maps)).transpose()?;
        write_catalog(&skel.maps.iot_specs, rows, &options.layers)?;
        mark_remembered(&skel.maps.iot_libs, &remembered)?;
        let rings = rings.join().map_err(|_| anyhow!("the thread that makes the rings panicked"))??;
        let placing = rings::allocate(layout, &rings, &skel.maps)?;
        let release = nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned());
        let tier = match refused.iter().find(|(group, _)| *group == Group::Library) {
            Some((_, why)) => Err(format!("this kernel does not load the programs of library probes: {why}")),
            None => tier.ok_or_else(|| "this kernel allows no user probes (see iotrace-bpf doctor)".to_owned()),
        };
        let rows = rows.to_vec();
        // Where the kernel can do that and targets are known, probes are set in these only.
        let scoped = options.scope == Scope::Listed && tier == Ok(LibTier::Session);
        let engine =
            Engine::new(catalog, options.layers.clone(), tier, release.unwrap_or_default(), scoped, remembered);
        let functions = refused.iter().find(|(group, _)| *group == Group::Functions);
        let functions = functions.map(|(_, why)| functions::refused(&rows, &options.layers, why));
        let hooks = refused
            .into_iter()
            .flat_map(|(group, why)| {
                let hooks = group.hooks().filter(|(program, _)| Copy::of(program) != Copy::Other);
                hooks.map(move |(_, hook)| verdict(group, hook, Err(why.clone()))).collect::<Vec<_>>()
            })
            .chain(functions.into_iter().flatten())
            .chain(symbols.flatten())
            .chain(absent.into_iter().flat_map(Group::verdicts_of_absence))
            .chain(unused.into_iter().flat_map(Group::verdicts_in_sums))
            .collect();
        let mut session = Self {
            skel,
            second,
            engine,
            rows,
            layers: options.layers.clone(),
            links: Vec::new(),
            iterators: HashMap::new(),
            hooks,
            seen_losses: HashMap::new(),
            misses: Misses::default(),
            attaching: Duration::ZERO,
            settles: None,
            looked_into: BTreeSet::new(),
            sources: None,
            begun: HashSet::new(),
            exchanging: false,
            placing: Some(placing),
            summing: options.aggregate,
            window: None,
            pause: Pause::default(),
            paused_for: None,
            every: Duration::from_nanos(programs::every(options).into()),
            fixed: trial.fixed(),
        };
        if let Some(data) = session.skel.maps.bss_data.as_deref_mut() {
            data.iot_scoped = u32::from(scoped);
            data.iot_fixed = session.fixed.as_ref().map(Fixed::wire).unwrap_or_default();
        }
        if options.detail.is_some() {
            session.sources = Some(Sources::create(&session.skel.maps)?);
        }
        session.number_programs();
        Ok((session, rings))
    }

    /// Attaches the kernel hooks, each with its verdict. Fails when nothing could be traced at all.
    pub fn attach_hooks(&mut self) -> Result<()> {
        let begun = Instant::now();
        let cpus = libbpf_rs::num_possible_cpus().context("number of CPUs")?;
        let second = self.second.as_mut().map(|skel| skel.object_mut().progs_mut());
        for prog in self.skel.object_mut().progs_mut().chain(second.into_iter().flatten()) {
            let name = prog.name().to_string_lossy();
            let Some((program, hook, group)) = HOOKS.iter().find(|(p, _, _)| *p == name) else { continue };
            if !prog.autoload() {
                continue;
            }
            let event = EVENTS.iter().find(|(p, _)| *p == name);
            let attached = match event {
                Some((_, event)) => perf::attach(&prog, *event, cpus),
                None => prog.attach().map(|link| vec![link]).map_err(|e| format!("{e:#}")),
            };
            let tier = if event.is_some() { "perf_event" } else { group.tier() };
            let attached = attached.map(|links| match *program {
                OPEN_CALLS | SLOW_CALLS | END_CALLS | LIST_THREADS => {
                    self.iterators.extend(links.into_iter().map(|link| (*program, link)));
                }
                _ => self.links.extend(links),
            });
            // Of several copies the first one has the verdict; that there are others only means that less is missed.
            if Copy::of(&name) != Copy::Other {
                self.hooks.push(verdict(*group, hook, attached.map(|()| tier)));
            }
        }
        if self.skel.progs.iot_kprobe.autoload() {
            let (links, verdicts) = functions::attach(&self.skel.progs, &self.rows, &self.layers);
            self.links.extend(links);
            self.hooks.extend(verdicts);
        }
        if let Some(placing) = self.placing.take() {
            placing.join().map_err(|_| anyhow!("the thread for rings panicked"))??;
        }
        self.attaching += begun.elapsed();
        let missing: Vec<&Coverage> =
            self.hooks.iter().filter(|c| c.status != "attached" && c.symbol.starts_with("sched_process")).collect();
        if let Some(c) = missing.first() {
            bail!(
                "{}: {}; without it processes cannot be followed (see `iotrace-bpf doctor` for what this kernel allows)",
                c.symbol,
                c.reason.as_deref().unwrap_or("refused")
            );
        }
        Ok(())
    }

    /// The command has a filter of system calls by us, besides those that we have ourselves.
    pub fn expect_filters(&mut self) {
        let own = std::fs::read("/proc/self/status").map(|text| maps::status(&text)).unwrap_or_default();
        self.engine.expect_filters(own.filters.unwrap_or(0) + 1);
    }

    /// How long it took so far to attach hooks and to look into files that were mapped.
    pub fn attaching(&self) -> Duration {
        self.attaching
    }

    /// Which hooks on the page cache and on requests are attached.
    pub fn measured(&self) -> Measured {
        let is = |group| {
            let hook = HOOKS.iter().find(|(_, _, g)| *g == group).map(|(_, hook, _)| *hook);
            self.hooks.iter().any(|c| Some(c.symbol.as_str()) == hook && c.status == "attached")
        };
        Measured {
            pages: is(Group::Pages),
            throttling: is(Group::Throttling),
            locks: is(Group::Locks),
            requests: is(Group::Block),
            system_calls: self.layers.contains(&Layer::Syscall),
        }
    }

    /// The tables of aggregate mode.
    ///
    /// # Errors
    /// When the kernel gives no memory for them.
    pub fn sums(&self, detail: Option<&Plan>) -> Result<Sums> {
        let slow = detail.map(|plan| Slow::create(&self.skel.maps, plan, &self.rows)).transpose()?;
        Sums::create(&self.skel.maps, slow)
    }

    /// Chooses the calls that are sent although they are summed up.
    ///
    /// # Errors
    /// When the kernel does not show its tables.
    pub fn choice(&self) -> Result<Choice> {
        Choice::create(&self.skel.maps)
    }

    /// Of which processes how many calls were only summed up that were wanted one by one, since the last time.
    pub fn refused(&mut self) -> Vec<(u32, u64)> {
        let Some(mut sources) = self.sources.take() else { return Vec::new() };
        let refused = sources.tick(|| self.numbers().collect());
        self.sources = Some(sources);
        refused
    }

    /// Makes a process a target, unless it is one; `armed: false` means from its next exec on. Is it a new one?
    pub fn add_target(&self, pid: u32, process: u32, armed: bool) -> Result<bool> {
        let mut value = process.to_ne_bytes().to_vec();
        let state = if armed { iot_armed::IOT_ARMED.0 as u16 } else { 0 };
        value.extend(state.to_ne_bytes());
        value.extend(0_u16.to_ne_bytes());
        value.extend(0_u32.to_ne_bytes());
        match self.skel.maps.iot_targets.update(&pid.to_ne_bytes(), &value, MapFlags::NO_EXIST) {
            Ok(()) => {
                if armed && existing::copies_stacks(pid) {
                    value[4] |= iot_armed::IOT_COPIES_STACKS.0 as u8;
                    // It may have ended.
                    let _ = self.skel.maps.iot_targets.update(&pid.to_ne_bytes(), &value, MapFlags::EXIST);
                }
                Ok(true)
            }
            Err(e) if e.kind() == libbpf_rs::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(e).with_context(|| format!("process {pid} as a target")),
        }
    }

    /// All that run already are targets: from now on a thread that the kernel side does not know is none of a target, which
    /// is what system calls of all others ask. Not where processes become targets by themselves.
    pub fn list_threads(&mut self) {
        let listed = self.iterators.get(LIST_THREADS).is_some_and(inflight::run);
        if listed && let Some(data) = self.skel.maps.data_data.as_deref_mut() {
            data.iot_unlisted = 0;
        }
    }

    /// Attaches to every library that a process maps, if it is a target. The layers that have new probes. `moved`: its
    /// first thread is another one by now.
    pub fn attach_process(&mut self, pid: u32, asked: Option<(FileKey, Written)>, moved: bool) -> BTreeSet<Layer> {
        let before = self.engine.verdicts();
        if moved && let Some(process) = self.process_of(pid) {
            self.engine.forget(process);
        }
        if let Some((file, written)) = asked
            && self.engine.is_classified(file, written)
        {
            self.mark(file, true);
            // Processes that waited for its probes get them.
            let inode = (file.dev, file.ino);
            if self.process_of(pid).is_some_and(|process| self.engine.lacks(process, inode)) {
                self.attach_to(pid, Some(inode));
            }
        } else {
            // A process that is gone takes its mappings along; the next one that maps the file is asked again.
            let settled = self.attach_to(pid, asked.map(|(file, _)| (file.dev, file.ino)));
            if let Some((file, _)) = asked {
                self.looked_into.insert(pid);
                self.mark(file, settled.contains(&(file.dev, file.ino)));
                self.engine.learn(file);
            }
        }
        self.new_layers(before)
    }

    /// Before a call of a held command goes on: the probes that its process needs from then on. Nothing is lost
    /// meanwhile. What need not be asked again.
    pub fn prepare(&mut self, notice: &Notice) -> Next {
        let before = self.engine.verdicts();
        let knows_file = match notice.call {
            Call::Map(fd) => self.prepare_mapping(notice.tid, fd),
            Call::Start => {
                self.begun.extend(self.process_of(notice.tid));
                // The program and its loader are mapped, which may be the C library; other libraries come by `mmap`.
                let settled = self.attach_to(notice.tid, None);
                !settled.is_empty() && settled.iter().all(|inode| !self.engine.sets_in_each(Some(*inode)))
            }
            // A thread that begins is the guardian's own affair: this is the first one of a process.
            Call::Fork => {
                if self.engine.sets_in_each(None)
                    && let Some(process) = self.process_of(notice.tid)
                    && self.begun.insert(process)
                {
                    self.attach_to(notice.tid, None);
                }
                false
            }
        };
        self.new_layers(before);
        // It has what its parent has.
        Next { knows_file, knows_forks: !self.engine.sets_in_each(None) }
    }

    /// True: nothing has to be done where that file is mapped.
    fn prepare_mapping(&mut self, tid: u32, fd: i32) -> bool {
        let Some((file, written)) = real::descriptor(probes(&self.skel, self.second.as_ref()), tid, fd) else {
            return false;
        };
        let inode = Some((file.dev, file.ino));
        if self.engine.is_classified(file, written) && !self.engine.sets_in_each(inode) {
            return true;
        }
        let status = std::fs::read(format!("/proc/{tid}/status")).map(|text| maps::status(&text)).unwrap_or_default();
        let pid = status.tgid.unwrap_or(tid);
        let Some(process) = self.process_of(pid) else { return false };
        if self.engine.spares(Target { pid, process }) {
            return false;
        }
        self.attaches(process, |engine, progs| {
            engine.meet(Target { pid, process }, &Seen::Descriptor(fd, (file.dev, file.ino)), progs);
            engine.learn(file);
        });
        self.mark(file, true);
        self.engine.is_classified(file, written) && !self.engine.sets_in_each(inode)
    }

    /// Sets the probes of what a process maps; see [`Engine::attach_process`].
    fn attach_to(&mut self, pid: u32, asked: Option<Inode>) -> Vec<Inode> {
        let Some(process) = self.process_of(pid) else { return Vec::new() };
        self.attaches(process, |engine, progs| engine.attach_process(Target { pid, process }, asked, progs))
    }

    fn set_several(&mut self, process: u32) {
        let several = u32::from(self.engine.may_have_several(process));
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            data.iot_several = several;
        }
    }

    fn attaches<T>(&mut self, process: u32, set: impl FnOnce(&mut Engine, &IotraceProgs<'_>) -> T) -> T {
        self.set_settled(false);
        self.set_several(process);
        let begun = Instant::now();
        let done = set(&mut self.engine, probes(&self.skel, self.second.as_ref()));
        // It may be known by now that stacks are switched.
        self.set_several(process);
        self.share();
        self.attaching += begun.elapsed();
        self.settles = Some(Instant::now() + SETTLE);
        done
    }

    /// The layers that have new probes since the verdicts `before`.
    fn new_layers(&mut self, before: Vec<Coverage>) -> BTreeSet<Layer> {
        let new = self.engine.verdicts();
        let layers = new.iter().filter(|c| c.status == "attached").map(|c| c.layer).collect();
        self.hooks.extend(before.into_iter().chain(new));
        layers
    }

    /// Takes the probes of processes away that have ended.
    pub fn tidy(&mut self) {
        let alive: HashSet<u32> = self.numbers().collect();
        self.begun.retain(|process| alive.contains(process));
        self.engine.retain(|process| alive.contains(&process));
        if self.exchanging && self.engine.exchanged() {
            self.set_exchanging(false);
        }
        self.share();
    }

    fn set_exchanging(&mut self, on: bool) {
        self.exchanging = on;
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            data.iot_exchanging = u32::from(on);
        }
    }

    /// Probes cost a thread more than they should, or those that are paused are wanted: the event for the reader of
    /// the records, if some go or come.
    pub fn relieve(&mut self, busy: &Busy, t_ns: i64) -> Option<Event> {
        let row = busy.spec % u16::try_from(self.rows.len()).ok().filter(|rows| *rows > 0)?;
        if busy.calls == 0 {
            return self.recall();
        }
        if self.rows.get(usize::from(row)).is_some_and(|row| row.pauses) {
            return self.begin_pause(row, busy, t_ns);
        }
        self.demote(row, busy, t_ns)
    }

    /// Takes the probes of a function away whose calls are shorter and more than they should be.
    fn demote(&mut self, row: u16, busy: &Busy, t_ns: i64) -> Option<Event> {
        if self.engine.is_demoted(row) {
            return None;
        }
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            data.iot_demoting = 1;
        }
        self.set_exchanging(true);
        // Where entry and return have a probe each, calls that are open now return through both.
        self.set_settled(false);
        self.settles = Some(Instant::now() + SETTLE);
        let Some(gone) = self.engine.demote(row, busy, t_ns, probes(&self.skel, self.second.as_ref())) else {
            self.set_brief(row, iot_brief_state::IOT_BRIEF_NO);
            return None;
        };
        // Its replacement is attached before it is detached.
        let time = rings::now();
        self.set_brief(row, iot_brief_state::IOT_BRIEF_DEMOTED);
        self.engine.leave(gone);
        if !self.summing {
            self.window = Some((Instant::now() + FIRST_WINDOW, FIRST_WINDOW));
        }
        Some(Event::Demoted { time, row })
    }

    fn set_brief(&self, row: u16, state: iot_brief_state) {
        let Some(row_of) = self.rows.get(usize::from(row)) else { return };
        let spec = t::iot_spec { brief: state.0 as u8, ..spec(row_of, &self.layers) };
        // The table has an entry for every row.
        let _ =
            self.skel.maps.iot_specs.update(&u32::from(row).to_ne_bytes(), wire::spec_bytes(&spec), MapFlags::EXIST);
    }

    /// When it is time to, looks for a moment at each call of what is demoted: the event for the reader of the records.
    pub fn sample(&mut self) -> Option<Event> {
        let (_, after) = self.window.filter(|(due, _)| Instant::now() >= *due)?;
        let time = rings::now();
        let links = self.engine.open_window(probes(&self.skel, self.second.as_ref()));
        std::thread::sleep(WINDOW);
        self.engine.leave(links);
        let after = (after * 2).min(LONGEST_BETWEEN);
        self.window = Some((Instant::now() + after, after));
        Some(Event::Sampled { time })
    }

    /// Sets those probes in all processes that are too many for each.
    fn share(&mut self) {
        if self.engine.has_too_many() {
            self.set_exchanging(true);
            self.engine.share(probes(&self.skel, self.second.as_ref()));
        }
    }

    /// The numbers of all targets.
    fn numbers(&self) -> impl Iterator<Item = u32> {
        let targets = &self.skel.maps.iot_targets;
        let values = targets.keys().filter_map(|pid| targets.lookup(&pid, MapFlags::ANY).ok().flatten());
        values.filter_map(|value| value.first_chunk().map(|b| u32::from_ne_bytes(*b)))
    }

    /// Of processes that were looked into as far as what they asked about: what was not asked about (a question found no room,
    /// or a mapping became executable later) is there now.
    fn look_again(&mut self) {
        for pid in std::mem::take(&mut self.looked_into) {
            // Its number may be another process's by now.
            if let Some(process) = self.process_of(pid) {
                let progs = probes(&self.skel, self.second.as_ref());
                self.engine.attach_process(Target { pid, process }, None, progs);
            }
        }
    }

    fn mark(&self, file: FileKey, classified: bool) {
        let key = lib_key(file);
        let libs = &self.skel.maps.iot_libs;
        if !classified {
            let _ = libs.delete(&key);
        } else if let Ok(Some(mut value)) = libs.lookup(&key, MapFlags::ANY)
            && let Some(state) = value.first_chunk_mut()
        {
            // With it stands when the file was written, as the kernel side saw it. A table that had no room for it only
            // means that the file is asked about again.
            let each = self.engine.sets_in_each(Some((file.dev, file.ino)));
            *state = if each { iot_lib_state::IOT_LIB_PROBED } else { iot_lib_state::IOT_LIB_JUDGED }.0.to_ne_bytes();
            let _ = libs.update(&key, &value, MapFlags::EXIST);
        }
    }

    /// The number that it has as a target, while it is one.
    pub fn process_of(&self, pid: u32) -> Option<u32> {
        let value = self.skel.maps.iot_targets.lookup(&pid.to_ne_bytes(), MapFlags::ANY).ok().flatten()?;
        value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
    }

    /// A target no more.
    pub fn remove_target(&mut self, pid: u32) {
        // It may have ended by itself.
        let _ = self.skel.maps.iot_targets.delete(&pid.to_ne_bytes());
        self.targets_changed();
    }

    /// Each thread is to look again whether its process is a target.
    fn targets_changed(&mut self) {
        if let Some(data) = self.skel.maps.data_data.as_deref_mut() {
            data.iot_targets_at = data.iot_targets_at.wrapping_add(1).max(1);
        }
    }

    /// Sets for the kernel side whether library probes stay as they are now.
    fn set_settled(&mut self, settled: bool) {
        if let Some(data) = self.skel.maps.data_data.as_deref_mut() {
            data.iot_settled = u32::from(settled);
        }
    }

    /// Ends the trace in the kernel: no hook fires after this. Requests of devices that are not over.
    pub fn detach(&mut self) -> Vec<Event> {
        let before: HashSet<u64> = inflight::requests(&self.skel.maps).iter().map(|r| r.req).collect();
        let goes_on = self.has_targets();
        // All at once, or what runs on would be seen by some of the hooks only.
        self.forget_targets();
        self.engine.remember();
        self.engine.take_away();
        // The last ones first: other copies of a program would take what the first one does not see any more.
        while self.links.pop().is_some() {}
        if goes_on {
            self.engine.wait_until_gone();
        }
        // Taken out: open calls are sent once.
        if let Some(end) = self.iterators.remove(END_CALLS) {
            inflight::run(&end);
        }
        self.misses.last();
        // The end of requests issued while the hooks are detached is not seen.
        let after = inflight::requests(&self.skel.maps);
        after.iter().filter(|r| before.contains(&r.req)).map(inflight::open).collect()
    }

    /// What has entered and not returned; the reason where the kernel does not allow to look.
    pub fn look(&self) -> Result<Look> {
        let open = self.iterators.get(OPEN_CALLS).context("this kernel does not show what is in flight")?;
        inflight::look(open, &self.skel.maps)
    }

    /// What reads the calls that have not returned and are at least this old: for one reader, once.
    ///
    /// # Errors
    /// Where the kernel does not allow to look.
    pub fn slow_calls(&mut self, age: Duration) -> Result<Link> {
        let data = self.skel.maps.bss_data.as_deref_mut().context("the programs have no data")?;
        data.iot_slow_age = age.as_nanos() as u64;
        self.iterators.remove(SLOW_CALLS).context("this kernel does not show what is in flight: no --stacks")
    }

    /// There are no targets any more. Until its fork is seen through, a new process may be added: a few rounds find it.
    fn forget_targets(&mut self) {
        for _ in 0..FORGET_ROUNDS {
            let pids: Vec<_> = self.skel.maps.iot_targets.keys().collect();
            if pids.is_empty() {
                break;
            }
            for pid in pids {
                let _ = self.skel.maps.iot_targets.delete(&pid);
            }
        }
        self.targets_changed();
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
        self.engine.uncovered().into_iter().chain(unasked).chain(self.paused()).collect()
    }

    /// Are there processes left to trace?
    pub fn has_targets(&self) -> bool {
        self.skel.maps.iot_targets.keys().next().is_some()
    }

    /// The number of processes that are traced now.
    pub fn targets(&self) -> usize {
        self.skel.maps.iot_targets.keys().count()
    }

    /// What hooks cost here, their programs not included.
    pub const fn fixed(&self) -> &Result<Fixed> {
        &self.fixed
    }

    /// What hooks have cost the traced threads so far, and the greatest part of one since the last call.
    pub fn hooked(&mut self) -> Hooked {
        let Some(data) = self.skel.maps.bss_data.as_deref_mut() else { return Hooked::default() };
        let hooked = &mut data.iot_hooked;
        hooked.look = hooked.look.wrapping_add(1);
        let part = std::mem::take(&mut hooked.part);
        Hooked { total_ns: hooked.total, part: f64::from(part) / f64::from(1 << 20) }
    }

    /// What was lost since the last call; `t_ns` is relative to `t0`. Calls that were left out on purpose
    /// (sockets, pipes, terminals, devices) are among them, as [`EXCLUDED`].
    pub fn losses(&mut self, t_ns: i64) -> Vec<Loss> {
        if self.settles.is_some_and(|at| Instant::now() >= at) {
            self.settles = None;
            self.look_again();
            self.set_settled(true);
            self.engine.rest();
        }
        let mut rows = Vec::new();
        let losses = iot_loss::IOT_LOSS_KINDS.0;
        for key in (0..losses * LOSS_LAYERS).filter(|key| key / LOSS_LAYERS != iot_loss::IOT_LOSS_TAKEN.0) {
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
                        place: loss_name(key / LOSS_LAYERS),
                        process_ix: None,
                        count: (n - *seen) as i64,
                    });
                    *seen = n;
                }
            }
        }
        let losses = &self.skel.maps.iot_losses;
        rows.extend(self.misses.losses(t_ns, || Self::taken(losses)));
        rows
    }

    fn number_programs(&mut self) {
        let second = self.second.as_mut().map(|skel| skel.object_mut().progs_mut());
        let progs = self.skel.object_mut().progs_mut().chain(second.into_iter().flatten());
        for prog in progs.filter(|p| p.autoload()) {
            let name = prog.name().to_string_lossy();
            let group = GROUPS.into_iter().find(|g| g.programs(None).iter().any(|p| *p == name));
            if let Ok(id) = Program::id_from_fd(prog.as_fd()) {
                self.misses.add(id, &name, group.unwrap_or(Group::Library).layer());
            }
        }
    }

    /// How often a copy of a program took what the first one had missed.
    fn taken(losses: &impl libbpf_rs::MapCore) -> u64 {
        let count = |layer: u32| -> u64 {
            let key = iot_loss::IOT_LOSS_TAKEN.0 * LOSS_LAYERS + layer;
            let counts = losses.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
            counts.iter().filter_map(|bytes| bytes.first_chunk()).map(|b| u64::from_ne_bytes(*b)).sum()
        };
        (0..LOSS_LAYERS).map(count).sum()
    }
}

impl Drop for Session<'_> {
    /// Also when something failed or panicked on the way: no process keeps a probe.
    fn drop(&mut self) {
        self.detach();
        self.engine.wait_until_gone();
    }
}

/// The name of a loss in the dataset, in the order of their numbers.
const LOSS_NAMES: [(iot_loss, &str); iot_loss::IOT_LOSS_KINDS.0 as usize] = [
    (iot_loss::IOT_LOSS_RING, "ring"),
    (iot_loss::IOT_LOSS_DEPTH, "stack_depth"),
    (iot_loss::IOT_LOSS_STORAGE, "task_storage"),
    (iot_loss::IOT_LOSS_RETURN, "unmatched_return"),
    (iot_loss::IOT_LOSS_TEXT, "text"),
    (iot_loss::IOT_LOSS_MAP_FULL, "map_full"),
    (iot_loss::IOT_LOSS_OTHER_STACK, "other_stack"),
    (iot_loss::IOT_LOSS_MAPPING, UNPLACED),
    (iot_loss::IOT_LOSS_EXCLUDED, EXCLUDED),
    (iot_loss::IOT_LOSS_DETAIL, DETAIL),
    (iot_loss::IOT_LOSS_REQUEST_END, "request_end"),
    (iot_loss::IOT_LOSS_TAKEN, "taken"),
];

const _: () = {
    let mut i = 0;
    while i < LOSS_NAMES.len() {
        assert!(LOSS_NAMES[i].0.0 as usize == i, "losses stand in the order of their numbers");
        i += 1;
    }
};

fn loss_name(loss: u32) -> &'static str {
    LOSS_NAMES.get(loss as usize).map_or("unknown", |(_, name)| name)
}
