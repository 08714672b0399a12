//! The BPF object: which of its programs are loaded, set up for one trace, and what is left where the kernel refuses some.

use crate::catalog::{self, Family, Row, long_numbers, opcode, short_numbers};
use crate::loader::kernel::detail::{self, Plan};
use crate::loader::kernel::hooks::{GROUPS, Group, USERS_ENTRY};
use crate::loader::kernel::libbpf::{self, Object, ObjectSlots};
use crate::loader::kernel::rings::Layout;
use crate::loader::kernel::spec::BLOCK_OPS;
use crate::loader::kernel::trial::Trial;
use crate::loader::kernel::{self, LibTier, btf};
use crate::loader::processes::namespace::{self, PidNamespace};

use crate::loader::kernel::sums;
use crate::skel::types::{iot_cost_row, iot_layout, iot_scope, iot_sysno_entry, rodata};
use crate::skel::{IotraceSkel, IotraceSkelBuilder, OpenIotraceSkel};
use crate::vocabulary::{LAYERS, Layer};
use anyhow::{Context as _, Result, anyhow, bail};
use libbpf_rs::OpenObject;
use libbpf_rs::libbpf_sys::bpf_object_open_opts;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::mem::MaybeUninit;

/// An entry of the tables of system calls: the row + 1 stands below this bit.
const SYSNO_LAYOUT: u32 = iot_sysno_entry::IOT_SYSNO_LAYOUT.0;

/// What to trace and with how much memory.
#[derive(Debug, Clone)]
pub struct Options {
    pub layers: Vec<Layer>,
    /// Memory of all rings, in bytes.
    pub ring_bytes: u64,
    /// Sockets and pipes, too.
    pub sockets: bool,
    /// Numbers of processes kept for targets that exist already.
    pub reserved: u32,
    pub scope: Scope,
    /// The tracer's own.
    pub namespace: PidNamespace,
    /// Calls and requests are summed up in the kernel, and not sent one by one.
    pub aggregate: bool,
    /// Those that are sent one by one all the same.
    pub detail: Option<Plan>,
    /// The share of a thread's time that probes of brief library calls may take; beyond it they are demoted. Nothing: none is.
    pub max_overhead: Option<f64>,
}

/// Processes that become targets without being the child of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// None: targets are listed, or launched.
    Listed,
    /// Those that are in this control group, or come into it.
    Group(u64),
    /// Everybody.
    Node,
}

/// Opens the object for one trace; only the programs of these groups are to be loaded.
pub fn open<'obj>(
    store: &'obj mut MaybeUninit<OpenObject>,
    groups: &BTreeSet<Group>,
    tier: Option<LibTier>,
    rows: &[Row],
    options: &Options,
    layout: Layout,
) -> Result<OpenIotraceSkel<'obj>> {
    let types = kernel::types().map(btf::path).map(CString::new);
    let types = types.transpose().context("path of the kernel's types")?;
    let opts = bpf_object_open_opts {
        sz: size_of::<bpf_object_open_opts>() as _,
        btf_custom_path: types.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()),
        ..Default::default()
    };
    let mut open = IotraceSkelBuilder::default().open_opts(opts, store).context("opening the BPF object")?;
    let users = tier != Some(LibTier::Session) || rows.iter().any(|row| matches!(row.family, Family::User(_)));
    let mut names: Vec<&str> = groups.iter().flat_map(|g| g.programs(tier)).collect();
    names.retain(|name| users || *name != USERS_ENTRY);
    for mut prog in open.open_object_mut().progs_mut() {
        let on = names.iter().any(|n| prog.name() == *n);
        prog.set_autoload(on);
    }
    let ro = open.maps.rodata_data.as_deref_mut().context("the BPF object has no configuration section")?;
    ro.iot_word_type = kernel::word_type().unwrap_or(0);
    ro.iot_pause_at = kernel::pause_argument().unwrap_or(0);
    ro.iot_tick = kernel::tick();
    ro.iot_cfg.shards = layout.shards;
    // A quarter of the smallest ring: late enough to be rare, early enough to be read in time.
    ro.iot_cfg.wakeup = layout.bytes.iter().copied().min().unwrap_or(4096) / 4;
    ro.iot_cfg.rows = rows.len() as u32;
    ro.iot_cfg.sockets = u8::from(options.sockets);
    ro.iot_cfg.own = std::process::id();
    (ro.iot_cfg.pid_level, ro.iot_cfg.pid_ns) = (options.namespace.level, options.namespace.inode);
    let (scope, group) = match options.scope {
        Scope::Listed => (iot_scope::IOT_ALL_LISTED, 0),
        Scope::Group(group) => (iot_scope::IOT_ALL_OF_GROUP, group),
        Scope::Node => (iot_scope::IOT_ALL_OF_NODE, 0),
    };
    (ro.iot_cfg.scope, ro.iot_cfg.group) = (scope.0 as u8, group);
    ro.iot_cfg.aggregate = u8::from(options.aggregate);
    if let Some(plan) = &options.detail {
        ro.iot_cfg.detail = plan.bits();
        ro.iot_cfg.room = layout.bytes[1] / 5 * 4;
        ro.iot_cfg.room_less = layout.bytes[0].min(layout.bytes[2]) / 5 * 4;
    }
    if options.layers.contains(&Layer::Syscall) {
        number_calls(ro, rows, options.sockets)?;
        number_operations(ro, rows)?;
    }
    if options.layers.contains(&Layer::Vfs) {
        let faults = rows.iter().enumerate().filter(|(_, r)| r.family == Family::Fault);
        for (slot, (row, _)) in ro.iot_fault_rows.iter_mut().zip(faults) {
            *slot = row as u16 + 1;
        }
    }
    let data = open.maps.data_data.as_deref_mut().context("the BPF object has no data section")?;
    data.iot_next_process = options.reserved + 1;
    size_tables(&mut open, rows, options, layout)?;
    Ok(open)
}

/// Which row of the catalog a system call is, by its number.
fn number_calls(ro: &mut rodata, rows: &[Row], sockets: bool) -> Result<()> {
    let calls = rows.iter().enumerate().filter(|(_, r)| r.family == Family::Syscall);
    for (i, row) in calls.filter(|(_, r)| sockets || !r.sockets) {
        let spec = u16::try_from(i + 1).ok().filter(|spec| *spec < 1 << SYSNO_LAYOUT).context("too many rows")?;
        let long = long_numbers(row.op).map(|nr| (nr, spec, false));
        let short = short_numbers(row.op).map(|(nr, layout)| (nr, spec | arguments(layout) << SYSNO_LAYOUT, true));
        for (nr, entry, short) in long.chain(short) {
            let table: &mut [u16] = if short { &mut ro.iot_sysno32 } else { &mut ro.iot_sysno };
            let slot = table.get_mut(nr as usize);
            let slot = slot.with_context(|| format!("system call {} has too high a number", row.symbol))?;
            // Of several rows the first one decides.
            if *slot == 0 {
                *slot = entry;
            }
        }
    }
    Ok(())
}

/// Where a 32-bit task has the arguments.
fn arguments(layout: catalog::Layout) -> u16 {
    let number = match layout {
        catalog::Layout::Same => iot_layout::IOT_L_SAME,
        catalog::Layout::PairAt1 => iot_layout::IOT_L_PAIR1,
        catalog::Layout::PairsAt1 => iot_layout::IOT_L_PAIRS1,
        catalog::Layout::PairsAt2 => iot_layout::IOT_L_PAIRS2,
        catalog::Layout::PairAt3 => iot_layout::IOT_L_PAIR3,
        catalog::Layout::Pages => iot_layout::IOT_L_PAGES,
        catalog::Layout::Struct => iot_layout::IOT_L_STRUCT,
        catalog::Layout::Long => iot_layout::IOT_L_LONG,
        catalog::Layout::Short => iot_layout::IOT_L_SHORT,
        catalog::Layout::SignedAt1 => iot_layout::IOT_L_SIGNED1,
    };
    number.0 as u16
}

/// Which row an operation of the kernel is, by its opcode.
fn number_operations(ro: &mut rodata, rows: &[Row]) -> Result<()> {
    for (i, row) in rows.iter().enumerate() {
        let table = match row.family {
            Family::Uring => &mut ro.iot_uring_rows,
            Family::Aio => &mut ro.iot_aio_rows,
            _ => continue,
        };
        let slot = opcode(row.symbol).and_then(|code| table.get_mut(usize::from(code)));
        *slot.with_context(|| format!("operation {} has no opcode", row.symbol))? = i as u16 + 1;
    }
    Ok(())
}

/// Entries of tables that grow with what a node does at once: requests in flight, files in use. The kernel makes such
/// tables whole at the start: 2 ms for each that has 65536 entries (measured).
fn at_once(cpus: u32) -> u32 {
    cpus.saturating_mul(8192).clamp(16384, 65536)
}

/// Makes tables as large as this trace needs them.
fn size_tables(open: &mut OpenIotraceSkel<'_>, rows: &[Row], options: &Options, layout: Layout) -> Result<()> {
    let cpus = libbpf_rs::num_possible_cpus().context("number of CPUs")? as u32;
    let ops = rows.len() as u32 + BLOCK_OPS;
    let maps = &mut open.maps;
    maps.iot_rings.set_max_entries(layout.count()).context("table of rings")?;
    for map in [&mut maps.iot_bios, &mut maps.iot_requests, &mut maps.iot_inserts] {
        map.set_max_entries(at_once(cpus)).context("table of requests")?;
    }
    // The least recently used make room: a file is described again then, and the wait for a request has no row.
    for map in [&mut maps.iot_files, &mut maps.iot_promises] {
        map.set_max_entries(at_once(cpus)).context("table of files")?;
    }
    let costs = rows.len() as u32 + iot_cost_row::IOT_COST_ROWS.0;
    maps.iot_costs.set_max_entries(costs).context("cannot size the BPF map iot_costs")?;
    if options.aggregate {
        maps.iot_rests.set_max_entries(ops).context("cannot size the BPF map iot_rests")?;
        maps.iot_hists.set_max_entries(ops).context("cannot size the BPF map iot_hists")?;
        for map in [&mut maps.iot_request_sums, &mut maps.iot_request_sums_too] {
            map.set_max_entries(sums::REQUEST_ENTRIES).context("cannot size a BPF map of request sums")?;
        }
    } else {
        for map in [&mut maps.iot_accesses, &mut maps.iot_openers] {
            map.set_max_entries(1).context("table of sums")?;
        }
    }
    if options.detail.is_some() {
        maps.iot_slow.set_max_entries(ops).context("table of limits")?;
        for map in [
            &mut maps.iot_sources,
            &mut maps.iot_full_procs,
            &mut maps.iot_muted,
            &mut maps.iot_full_files,
            &mut maps.iot_parts,
        ] {
            map.set_max_entries(detail::ENTRIES).context("table of processes and files with recorded calls")?;
        }
    }
    Ok(())
}

/// Loads each group by itself: why those that this kernel refuses are refused. Nothing is attached.
pub fn try_groups(tier: Option<LibTier>, rows: &[Row]) -> Vec<(Group, Result<(), String>)> {
    let options = Options {
        layers: LAYERS.to_vec(),
        ring_bytes: 0,
        reserved: 0,
        sockets: false,
        scope: Scope::Listed,
        // Where it is not known, nothing is traced.
        namespace: namespace::own().unwrap_or_default(),
        aggregate: false,
        detail: None,
        max_overhead: None,
    };
    let layout = Layout::new(options.ring_bytes, 1);
    let loads = |group| loads(&BTreeSet::from([group]), tier, rows, &options, layout);
    let verdict = |group: Group| group.absent().map_or_else(|| loads(group), |why| Err(why.to_owned()));
    GROUPS.into_iter().map(|group| (group, verdict(group))).collect()
}

fn loads(
    groups: &BTreeSet<Group>,
    tier: Option<LibTier>,
    rows: &[Row],
    options: &Options,
    layout: Layout,
) -> Result<(), String> {
    let mut store = MaybeUninit::uninit();
    let open = open(&mut store, groups, tier, rows, options, layout).map_err(|e| format!("{e:#}"))?;
    kernel::libbpf_log();
    open.load().map(drop).map_err(|e| kernel::reason(&e))
}

/// The programs of a trace, in two objects with the same maps: the kernel checks programs one after the other, and
/// those in the second one take as long as all others.
pub struct Loaded<'obj> {
    pub first: IotraceSkel<'obj>,
    /// Those of `BESIDE`.
    pub second: Option<IotraceSkel<'obj>>,
    /// Why groups are not in them.
    pub refused: Vec<(Group, String)>,
}

/// The groups of the second object. As many attempts may be necessary to load it, and one more.
const BESIDE: [Group; 3] = [Group::Library, Group::Question, Group::Block];
const ATTEMPTS: usize = BESIDE.len() + 1;

/// Where the objects of one attempt are.
pub struct Store {
    first: MaybeUninit<OpenObject>,
    second: [MaybeUninit<OpenObject>; ATTEMPTS],
}

/// As many slots for them as there may be attempts.
pub type Stores = [Store; GROUPS.len()];

/// Slots for [`load`].
pub const fn stores() -> Stores {
    [const { Store { first: MaybeUninit::uninit(), second: [const { MaybeUninit::uninit() }; ATTEMPTS] } }; _]
}

/// Why an object was not loaded: the group to leave out, and the kernel's reason.
struct Refusal {
    group: Group,
    why: String,
}

impl Refusal {
    /// # Errors
    /// When it is not known what to leave out, or nothing goes without it.
    fn of(error: &libbpf_rs::Error, groups: &BTreeSet<Group>, tier: Option<LibTier>) -> Result<Self> {
        let (program, why) = kernel::refusal(error);
        let of = |group: &&Group| program.as_deref().is_some_and(|program| group.programs(tier).contains(&program));
        match groups.iter().find(of).copied() {
            Some(Group::Process) => bail!(
                "this kernel does not load the programs that follow processes: {why}\nsee `iotrace-bpf doctor` for what it allows"
            ),
            Some(group) => Ok(Self { group, why }),
            None => bail!("loading the BPF programs: {why}\nsee `iotrace-bpf doctor` for what this kernel allows"),
        }
    }
}

/// Loads the programs of all groups, those of `BESIDE` beside the others. Where the kernel refuses a program its group
/// is left out, and the rest is loaded again; only a refused life cycle is fatal.
pub fn load<'obj>(
    stores: &'obj mut Stores,
    groups: BTreeSet<Group>,
    trial: &mut Trial,
    rows: &[Row],
    options: &Options,
    layout: Layout,
) -> Result<Loaded<'obj>> {
    let (beside, mut groups): (BTreeSet<_>, BTreeSet<_>) = groups.into_iter().partition(|g| BESIDE.contains(g));
    let mut refused = Vec::new();
    for store in stores {
        let open = open(&mut store.first, &groups, None, rows, options, layout)?;
        kernel::libbpf_log();
        let maps = match libbpf::prepare(&open) {
            Ok(maps) => maps,
            Err(error) => {
                let Refusal { group, why } = Refusal::of(&error, &groups, None)?;
                groups.remove(&group);
                refused.push((group, why));
                continue;
            }
        };
        let tier = trial.found()?.lib_tier();
        let slots = ObjectSlots::new(store.second.each_mut());
        let (loaded, second) = std::thread::scope(|scope| {
            let (maps, beside) = (&maps, beside.clone());
            let load = move || load_beside(slots.take(), beside, maps, tier, rows, options, layout);
            let thread = std::thread::Builder::new().name("load".into()).spawn_scoped(scope, load);
            let loaded = open.load();
            let second = thread.context("thread to load programs").and_then(|thread| {
                thread.join().map_err(|_| anyhow!("the thread that loads programs panicked: a bug of iotrace-bpf; please report the lines above")).flatten()
            });
            (loaded, second)
        });
        match loaded {
            Ok(first) => {
                let (second, of_second) = second?;
                refused.extend(of_second);
                return Ok(Loaded { first, second: second.take(), refused });
            }
            Err(error) => {
                let Refusal { group, why } = Refusal::of(&error, &groups, tier)?;
                groups.remove(&group);
                refused.push((group, why));
            }
        }
    }
    bail!("the kernel loads none of the BPF programs; `iotrace-bpf doctor` shows why")
}

type Second<'obj> = (Object<'obj>, Vec<(Group, String)>);

/// The second object.
fn load_beside<'obj>(
    stores: [&'obj mut MaybeUninit<OpenObject>; ATTEMPTS],
    mut groups: BTreeSet<Group>,
    maps: &libbpf::Maps,
    tier: Option<LibTier>,
    rows: &[Row],
    options: &Options,
    layout: Layout,
) -> Result<Second<'obj>> {
    let mut refused = Vec::new();
    for store in stores {
        if groups.is_empty() {
            break;
        }
        let mut open = open(store, &groups, tier, rows, options, layout)?;
        libbpf::take(&mut open, maps)?;
        kernel::libbpf_log();
        match open.load() {
            Ok(skel) => return Ok((Object::new(Some(skel)), refused)),
            Err(error) => {
                let Refusal { group, why } = Refusal::of(&error, &groups, tier)?;
                groups.remove(&group);
                refused.push((group, why));
            }
        }
    }
    Ok((Object::new(None), refused))
}
