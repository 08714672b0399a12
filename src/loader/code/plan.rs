//! Decides what to probe in a file: which libraries it is, and for every row of theirs a probe or the reason for none.

mod ranges;
mod sites;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::catalog::libraries::hdf5::Accessor;
use crate::catalog::symbol::{Names, cold_part_of};
use crate::catalog::{Catalog, Family, Library, Row, Src, Version};
use crate::loader::code::accessor::Field;
use crate::loader::code::bounds;
use crate::loader::code::elf::{Binding, Elf};
use crate::loader::code::framed::Framed;
use crate::loader::code::members::Members;
use crate::loader::code::plan::sites::{
    Code, No, cold_parts, exit_points, fields, framed, messages, probe_site, unprobed,
};
use crate::loader::code::prologue::InsnClass;
use crate::loader::code::returns::ExitPoint;
use crate::rows::Coverage;
use crate::skel::types::iot_cookie as C;
use crate::vocabulary::Layer;

/// The reason in verdicts on a layer that is not traced.
pub const NOT_SELECTED: &str = "layer not selected";

/// A probe to attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedProbe {
    /// Row of the catalog.
    pub spec: u16,
    /// Which copy of its library.
    pub copy: u8,
    pub layer: Layer,
    /// As the catalog has it.
    pub symbol: &'static str,
    /// In the file, in bytes: where the breakpoint goes. A return probe may go there too.
    pub offset: u64,
    /// The variable that the row needs, as seen from the breakpoint.
    pub variable: Option<Variable>,
    pub class: InsnClass,
    /// The probed instruction.
    pub text: String,
    /// Where its end is seen, when it must not have a return probe.
    pub exit_points: Option<Vec<ExitPoint>>,
    /// Where it is entered and left at less cost, where many probes are set at once.
    pub framed: Option<FramedProbe>,
    /// It is no call: the field is read there.
    pub field: Option<FieldProbe>,
    /// Where the function puts what it reads.
    pub messages: Option<Members>,
    /// Set only instead of functions that were demoted.
    pub slow_path: bool,
    /// It goes for a while where calls come too often.
    pub pauses: bool,
    /// Of lines of a function: where they begin and end.
    pub edges: Option<Vec<RangeEdge>>,
}

/// An instruction at which ranges of lines begin or end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeEdge {
    /// In the file, in bytes.
    pub offset: u64,
    /// The first of the rows that it is about.
    row: u16,
    /// `IOT_COOKIE_EDGE` and what goes with it.
    bits: u64,
}

/// What is read at a function that gets pointers to structures of the library in its first arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldProbe {
    pub field: Field,
    /// Of the second argument, too.
    pub both: bool,
}

impl FieldProbe {
    /// `IOT_COOKIE_FIELD` and what goes with it.
    fn cookie(self) -> u64 {
        let then = |then| u64::from(then) << C::IOT_COOKIE_THEN.0 | 1 << C::IOT_COOKIE_LEADS.0;
        1 << C::IOT_COOKIE_FIELD.0
            | u64::from(self.field.first) << C::IOT_COOKIE_FIRST.0
            | self.field.then.map_or(0, then)
            | u64::from(self.both) << C::IOT_COOKIE_BOTH.0
    }
}

/// Breakpoints in a function that has made its frame, in the place of those at its entry and its return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramedProbe {
    /// In the file, in bytes.
    pub offset: u64,
    /// The probed instruction.
    pub text: String,
    pub exits: Vec<u64>,
    words: u8,
    /// The variable as seen from there; 0: there is none.
    distance: u64,
}

impl FramedProbe {
    /// From the function's `start` in the file; `variable` as seen from `entry`. Nothing: that is too far away.
    fn new(found: Framed, start: u64, entry: u64, variable: Option<Variable>) -> Option<Self> {
        let at = |offset: u16| start.saturating_add(offset.into());
        let offset = at(found.enter);
        let distance = match variable {
            Some(variable) => {
                let distance = u64::try_from(variable.distance).ok()?.checked_sub(offset.checked_sub(entry)?)?;
                (1..1 << C::IOT_COOKIE_NEAR.0).contains(&distance).then_some(distance)?
            }
            None => 0,
        };
        let exits = found.exits.into_iter().map(at).collect();
        Some(Self { offset, text: found.text, exits, words: found.words, distance })
    }
}

/// Where a variable of the probed file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its address, or that of a word that holds it, less the address of the breakpoint.
    pub distance: i64,
    /// It is the latter.
    pub indirect: bool,
}

impl PlannedProbe {
    /// At an offset in the file, on an instruction of this class and text; nothing more is known of it.
    fn at(spec: u16, row: &Row, offset: u64, (class, text): (InsnClass, String)) -> Self {
        Self {
            spec,
            copy: 0,
            layer: row.layer,
            symbol: row.symbol,
            offset,
            variable: None,
            class,
            text,
            exit_points: None,
            framed: None,
            field: None,
            messages: None,
            slow_path: row.slow_path.is_some(),
            pauses: row.pauses,
            edges: None,
        }
    }

    /// Where it is entered in the file, at which cost, and the instruction there.
    pub fn breakpoint(&self) -> (u64, InsnClass, &str) {
        let plain = (self.offset, self.class, self.text.as_str());
        self.framed.as_ref().map_or(plain, |framed| (framed.offset, InsnClass::Emulated, framed.text.as_str()))
    }

    /// What the kernel side reads with the probe: `enum iot_cookie` of `bpf/core/contract.h`.
    pub fn cookie(&self) -> u64 {
        let distance =
            |v: Variable| v.distance << C::IOT_COOKIE_DISTANCE.0 | i64::from(v.indirect) << C::IOT_COOKIE_INDIRECT.0;
        let variable = self.variable.map_or(0, distance);
        let field = self.field.map_or(0, FieldProbe::cookie);
        let messages = self.messages.map_or(0, |members| members.packed() << C::IOT_COOKIE_DISTANCE.0);
        variable as u64 | field | messages | u64::from(self.copy) << C::IOT_COOKIE_COPY.0 | u64::from(self.spec)
    }

    /// The same at the entry where the frame is made, and where it is still.
    pub fn cookies_in_frame(&self, framed: &FramedProbe) -> (u64, u64) {
        let indirect = u64::from(self.variable.is_some_and(|v| v.indirect)) << C::IOT_COOKIE_INDIRECT.0;
        let shared = 1 << C::IOT_COOKIE_FRAMED.0
            | u64::from(framed.words) << C::IOT_COOKIE_WORDS.0
            | u64::from(self.copy) << C::IOT_COOKIE_COPY.0
            | u64::from(self.spec);
        let entry = framed.distance << C::IOT_COOKIE_DISTANCE.0 | indirect | 1 << C::IOT_COOKIE_NO_RETPROBE.0;
        (shared | entry, shared | 1 << C::IOT_COOKIE_LEAVE.0)
    }

    /// The same at an edge of ranges.
    pub fn cookie_at(&self, edge: &RangeEdge) -> u64 {
        edge.bits | u64::from(self.copy) << C::IOT_COOKIE_COPY.0 | u64::from(edge.row)
    }

    /// The verdict once it was tried: how it was attached, or why the kernel refused.
    pub fn verdict(&self, target: &str, outcome: Result<&'static str, String>) -> Coverage {
        let (offset, class, _) = self.breakpoint();
        let (tier, status, reason) = match outcome {
            Ok(tier) => (Some(tier), "attached", None),
            Err(why) => (None, "refused", Some(why)),
        };
        Coverage {
            layer: self.layer,
            target: target.to_owned(),
            symbol: self.symbol.to_owned(),
            tier,
            status,
            reason,
            offset: Some(offset as i64),
            insn: Some(class.name()),
        }
    }
}

/// What only a static C library brings into a program (glibc, musl).
const C_START: &str = "__libc_start_main";

/// What to do with one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The libraries the file is (several for a static program); none: leave it alone.
    pub families: Vec<Family>,
    /// To attach, in catalog order.
    pub probes: Vec<PlannedProbe>,
    /// The verdicts that are final already: absent, refused, skipped.
    pub settled: Vec<Coverage>,
    /// Phases that were looked for and that are not in the file: rows of the catalog, and why.
    pub missing: Vec<(u16, String)>,
}

impl Plan {
    /// There is nothing to attach, and no verdict.
    pub const fn is_empty(&self) -> bool {
        self.families.is_empty() && self.probes.is_empty() && self.settled.is_empty() && self.missing.is_empty()
    }
}

/// The variable that a row needs.
fn variable(row: &Row) -> Option<&'static str> {
    if let Src::Global(variable) = row.values().handle { Some(variable.symbol()) } else { None }
}

/// Where a variable is, seen from the breakpoint at an address. Without one the row has no handle.
fn locate(elf: &Elf, name: &str, breakpoint: u64) -> Option<Variable> {
    let slot = elf.slots.get(name).map(|slot| (*slot, true));
    let (address, indirect) = slot.or_else(|| Some((elf.symbols.get(name)?.first()?.vaddr, false)))?;
    let distance = address.wrapping_sub(breakpoint);
    // Data is behind code. Anything else would reach into other bits of the cookie.
    (1..1 << 32).contains(&distance).then_some(Variable { distance: distance as i64, indirect })
}

/// Plans by a catalog.
pub struct Planner {
    catalog: Catalog,
    exact: HashSet<&'static str>,
    /// Bytes of the longest of them.
    longest: usize,
    user: Names,
    /// There may be many probes: fields of structures are read where that is cheap, and functions that make their frame
    /// first are probed in that.
    pub many: bool,
}

impl Planner {
    pub fn new(catalog: Catalog) -> Self {
        let sentinels = catalog.libraries().iter().flat_map(|l| l.symbols.iter().chain(l.family.lacks()).copied());
        let versions = catalog.libraries().iter().filter_map(|l| match l.family.version() {
            Version::Symbol(name) => Some(name),
            Version::Text(..) | Version::Nowhere => None,
        });
        let kernel = [Family::Syscall, Family::Uring, Family::Aio, Family::Kernel, Family::Fault];
        let rows = catalog.rows().iter().filter(|r| !kernel.contains(&r.family));
        let fields = |row: &Row| {
            row.inner()
                .and_then(|inner| inner.accessor)
                .into_iter()
                .flat_map(Accessor::places)
                .flat_map(|at| at.symbols())
        };
        let names = |row: &Row| [Some(row.symbol), variable(row), row.messages().map(|messages| messages.callee)];
        let needed = rows.flat_map(|row| names(row).into_iter().flatten().chain(fields(row)));
        let exact: HashSet<&str> = sentinels.chain(versions).chain(needed).chain([C_START]).collect();
        let longest = exact.iter().map(|name| name.len()).max().unwrap_or(0);
        let user = Names::new(catalog.user_rows().filter(|r| r.lines().is_none()).map(|r| r.symbol));
        Self { catalog, exact, longest, user, many: true }
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Must `Elf::parse` keep this symbol of a file?
    pub fn takes(&self, symbol: &str) -> bool {
        if symbol.len() <= self.longest && self.exact.contains(symbol) {
            return true;
        }
        !self.user.is_empty() && self.user.meant_by(cold_part_of(symbol).unwrap_or(symbol)).is_some()
    }

    /// Plans the probes of the file `path`, whose content is `bytes`; `layers`: the traced layers.
    pub fn plan(&self, path: &str, elf: &Elf, bytes: &[u8], layers: &dyn Fn(Layer) -> bool) -> Plan {
        let is = |l: &&Library| match l.family {
            Family::User(_) => l.is(path, elf.program, |name| elf.symbols.contains_key(name)),
            family => is(family, elf),
        };
        let libraries: Vec<_> = self.catalog.libraries().iter().filter(is).collect();
        let mut plan = Plan { families: libraries.iter().map(|l| l.family).collect(), ..Plan::default() };
        // Whatever has return probes needs to know what jumps.
        let traced = self.catalog.libraries().iter().any(|l| layers(l.layer));
        if traced {
            plan.settled.extend(opaque(path, elf));
        }
        let by_meaning = self.by_meaning(elf);
        let cold = cold_parts(elf);
        let (mut taken, mut code) = (BTreeMap::new(), Code(bounds::CODE));
        // Row numbers have 16 bits on the wire.
        for (spec, row) in (0_u16..).zip(self.catalog.rows()) {
            let Some(library) = libraries.iter().find(|l| l.family == row.family) else { continue };
            let users = matches!(row.family, Family::User(_));
            let names = if users { by_meaning.get(row.symbol).cloned().unwrap_or_default() } else { vec![row.symbol] };
            let found: Vec<_> = names.iter().filter_map(|name| Some((*name, elf.symbols.get(*name)?))).collect();
            let mut settle = |status, reason: String, offset| {
                plan.settled.push(unprobed(path, row, No { status, reason, offset }));
            };
            if !(row.layers().into_iter().any(layers) || (row.jumps() && traced)) {
                settle("skipped", NOT_SELECTED.into(), None);
                continue;
            }
            if row.lines().is_some() {
                continue; // see `plan_lines`
            }
            if found.is_empty() && library.is_phases() {
                let why = if elf.symtab { "has no such function" } else { "is stripped of the names of its functions" };
                plan.missing.push((spec, why.to_owned()));
                continue;
            }
            if let Some(why) = self.leaves_out(row, elf, found.is_empty()) {
                settle("skipped", why, None);
                continue;
            }
            if found.is_empty() {
                settle("absent", "the file does not define it".into(), None);
            }
            if let Some(probes) = self.many.then(|| fields(spec, row, elf, bytes)).flatten() {
                plan.probes.extend(probes);
                continue;
            }
            for (name, symbol) in found.iter().flat_map(|(name, all)| all.iter().map(move |s| (*name, s))) {
                let planned = probe_site(symbol, bytes, row, &mut taken, &mut code).and_then(|(offset, probe)| {
                    let cold = cold.get(name).map(Vec::as_slice).unwrap_or_default();
                    let exit_points = if row.jumps() {
                        Some(Vec::new())
                    } else if users && elf.unwinds {
                        Some(exit_points(symbol, cold, bytes, &mut code)?)
                    } else {
                        None
                    };
                    let breakpoint = symbol.vaddr.wrapping_add(probe.skip.into());
                    let messages = row.messages().map(|of| messages(of, symbol, elf, bytes, offset)).transpose()?;
                    let variable = variable(row).and_then(|name| locate(elf, name, breakpoint));
                    // Ranges of lines may begin and end at the same places of a function of the user's.
                    let in_frame = self.many && !users && messages.is_none() && probe.class == InsnClass::Stepped;
                    let framed = (in_frame && exit_points.is_none())
                        .then(|| framed(symbol, bytes, row))
                        .flatten()
                        .and_then(|(found, start)| FramedProbe::new(found, start, offset, variable));
                    let probe = PlannedProbe::at(spec, row, offset, (probe.class, probe.text));
                    Ok(PlannedProbe { variable, exit_points, framed, messages, ..probe })
                });
                match planned {
                    Ok(probe) => plan.probes.push(probe),
                    Err(No { status, reason, offset }) => settle(status, reason, offset),
                }
            }
        }
        plan
    }

    /// Why a row is not probed in a file, which may not have its function.
    fn leaves_out(&self, row: &Row, elf: &Elf, absent: bool) -> Option<String> {
        if elf.go {
            return Some("Go program: return probes would corrupt its stacks".to_owned());
        }
        if absent { None } else { self.catalog.leaves_out(row) }
    }

    /// The symbols of a file that each name of the user stands for.
    fn by_meaning<'a>(&self, elf: &'a Elf) -> HashMap<&'static str, Vec<&'a str>> {
        let mut names: HashMap<&'static str, Vec<&str>> = HashMap::new();
        for symbol in elf.symbols.keys() {
            if let Some(name) = self.user.meant_by(symbol) {
                names.entry(name).or_default().push(symbol);
            }
        }
        names
    }
}

/// Does a file define what a family is known by? Where the first of the names is public, private ones do not count:
/// Intel's library with the standard's ABI has functions of its other one in it.
fn is(family: Family, elf: &Elf) -> bool {
    // A static linker takes of the C library only what is used.
    if family == Family::Libc && elf.is_static {
        return elf.symbols.contains_key(C_START);
    }
    let private = |name: &str| Some(elf.symbols.get(name)?.iter().all(|s| s.binding == Binding::Local));
    let Some(first) = family.sentinels().first().and_then(|name| private(name)) else { return false };
    let defines = |name: &&str| private(name).is_some_and(|private| first || !private);
    family.sentinels().iter().all(defines) && !family.lacks().iter().any(defines)
}

/// The verdict on a program that cannot be looked into: calls of the libraries in it are not seen.
fn opaque(target_name: &str, elf: &Elf) -> Option<Coverage> {
    let (status, reason) = if elf.go {
        (
            "skipped",
            "a Go program: return probes would corrupt its stacks, so it gets none; its system calls are traced",
        )
    } else if elf.is_static && !elf.has_functions {
        ("refused", "a static program without symbols: calls of libraries in it are not seen, its system calls are")
    } else {
        return None;
    };
    Some(Coverage {
        layer: Layer::App,
        target: target_name.to_owned(),
        symbol: String::new(),
        tier: None,
        status,
        reason: Some(reason.to_owned()),
        offset: None,
        insn: None,
    })
}

#[cfg(test)]
mod tests;
