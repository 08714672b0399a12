//! The beginning of a trace: loads the programs and attaches the hooks.

use crate::catalog::{Catalog, Row};
use crate::event::FileKey;
use crate::event::wire;
use crate::loader::attach::Engine;
use crate::loader::attach::pauses::Pause;
use crate::loader::code::remembered::Remembered;
use crate::loader::kernel::detail::Sources;
use crate::loader::kernel::hooks::{
    END_CALLS, EVENTS, FIND_SYMBOLS, GROUPS, Group, HOOKS, LIST_THREADS, OPEN_CALLS, SLOW_CALLS, verdict,
};
use crate::loader::kernel::misses::{Copy, Misses};
use crate::loader::kernel::programs::{self, Loaded, Options, Scope, Stores};
use crate::loader::kernel::rings::{self, Layout};
use crate::loader::kernel::spec::spec;
use crate::loader::kernel::trial::Trial;
use crate::loader::kernel::{LibTier, functions, perf};
use crate::loader::session::{Session, probes};
use crate::rows::Coverage;
use crate::skel::types::iot_lib_state;
use crate::skel::{IotraceMaps, IotraceProgs};
use crate::vocabulary::Layer;
use anyhow::{Context as _, Result, anyhow, bail};
use libbpf_rs::skel::Skel as _;
use libbpf_rs::{MapFlags, MapHandle, Program, ProgramInput};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

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

pub(super) fn lib_key(file: FileKey) -> Vec<u8> {
    let mut key = file.ino.to_ne_bytes().to_vec();
    key.extend(file.dev.to_ne_bytes());
    key.extend(file.generation.to_ne_bytes());
    key
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

/// Why the kernel does not load a group, if that is so.
fn why_refused(refused: &[(Group, String)], group: Group) -> Option<&str> {
    refused.iter().find(|(other, _)| *other == group).map(|(_, why)| why.as_str())
}

/// The verdicts of hooks whose groups the kernel does not load.
fn refused_hooks(refused: Vec<(Group, String)>) -> impl Iterator<Item = Coverage> {
    refused.into_iter().flat_map(|(group, why)| {
        let hooks = group.hooks().filter(|(program, _)| Copy::of(program) != Copy::Other);
        hooks.map(move |(_, hook)| verdict(group, hook, Err(why.clone())))
    })
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
        let rings = rings.join().map_err(|_| {
            anyhow!("the thread that makes the rings panicked: a bug of iotrace-bpf; please report the lines above")
        })??;
        let placing = rings::allocate(layout, &rings, &skel.maps)?;
        let release = nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned());
        let tier = match why_refused(&refused, Group::Library) {
            Some(why) => Err(format!("this kernel does not load the programs of library probes: {why}")),
            None => tier.ok_or_else(|| "this kernel allows no user probes (see iotrace-bpf doctor)".to_owned()),
        };
        let rows = rows.to_vec();
        // Where the kernel can do that and targets are known, probes are set in these only.
        let scoped = options.scope == Scope::Listed && tier == Ok(LibTier::Session);
        let engine =
            Engine::new(catalog, options.layers.clone(), tier, release.unwrap_or_default(), scoped, remembered);
        let functions = why_refused(&refused, Group::Functions);
        let functions = functions.map(|why| functions::refused(&rows, &options.layers, why)).unwrap_or_default();
        let hooks = refused_hooks(refused)
            .chain(functions)
            .chain(symbols.flatten())
            .chain(absent.into_iter().flat_map(Group::verdicts_of_absence))
            .chain(unused.into_iter().flat_map(Group::verdicts_in_sums))
            .collect();
        let fixed = trial.fixed();
        let limits = fixed.as_ref().copied().unwrap_or_default().wire(options.max_overhead);
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
            every: Duration::from_nanos(limits.every.into()),
            fixed,
        };
        if let Some(data) = session.skel.maps.bss_data.as_deref_mut() {
            data.iot_scoped = u32::from(scoped);
            data.iot_fixed = limits;
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
            placing.join().map_err(|_| {
                anyhow!("the thread for rings panicked: a bug of iotrace-bpf; please report the lines above")
            })??;
            self.begin_ring_losses();
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
}
