//! Decides what to probe in a file: which libraries it is, and for every row of theirs a probe or the reason for none.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::catalog::hdf5::{Accessor, Messages};
use crate::catalog::symbol::{Names, cold_part_of};
use crate::catalog::{Catalog, Family, FieldAt, Library, Row, Src, Version};
use crate::loader::code::accessor::{self, Callee, Field};
use crate::loader::code::bounds;
use crate::loader::code::elf::{self, Binding, Elf, Symbol, Target};
use crate::loader::code::members::Members;
use crate::loader::code::prologue::{self, InsnClass};
use crate::loader::code::returns::{self, ExitPoint};
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
    /// It is no call: the field is read there.
    pub field: Option<FieldProbe>,
    /// Where the function puts what it reads.
    pub messages: Option<Members>,
    /// Set only instead of functions that were demoted.
    pub slow_path: bool,
    /// It goes for a while where calls come too often.
    pub pauses: bool,
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

/// Where a variable of the probed file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its address, or that of a word that holds it, less the address of the breakpoint.
    pub distance: i64,
    /// It is the latter.
    pub indirect: bool,
}

impl PlannedProbe {
    /// What the kernel side reads with the probe: `enum iot_cookie` of `bpf/contract.h`.
    pub fn cookie(&self) -> u64 {
        let distance =
            |v: Variable| v.distance << C::IOT_COOKIE_DISTANCE.0 | i64::from(v.indirect) << C::IOT_COOKIE_INDIRECT.0;
        let variable = self.variable.map_or(0, distance);
        let field = self.field.map_or(0, FieldProbe::cookie);
        let messages = self.messages.map_or(0, |members| members.packed() << C::IOT_COOKIE_DISTANCE.0);
        variable as u64 | field | messages | u64::from(self.copy) << C::IOT_COOKIE_COPY.0 | u64::from(self.spec)
    }

    /// The verdict once it was tried: how it was attached, or why the kernel refused.
    pub fn verdict(&self, target: &str, outcome: Result<&'static str, String>) -> Coverage {
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
            offset: Some(self.offset as i64),
            insn: Some(self.class.name()),
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
    /// Phases that were looked for and that the file does not define: rows of the catalog.
    pub missing: Vec<u16>,
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
    Some(Variable { distance: address.wrapping_sub(breakpoint) as i64, indirect })
}

/// Plans by a catalog.
pub struct Planner {
    catalog: Catalog,
    exact: HashSet<&'static str>,
    /// Bytes of the longest of them.
    longest: usize,
    user: Names,
    /// Fields of structures are read where that is cheap. It takes many probes.
    pub fields: bool,
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
        let user = Names::new(catalog.user_rows().map(|r| r.symbol));
        Self { catalog, exact, longest, user, fields: true }
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
            if found.is_empty() && library.is_phases() {
                plan.missing.push(spec);
                continue;
            }
            if let Some(why) = self.leaves_out(row, elf, found.is_empty()) {
                settle("skipped", why, None);
                continue;
            }
            if found.is_empty() {
                settle("absent", "the file does not define it".into(), None);
            }
            if let Some(probes) = self.fields.then(|| fields(spec, row, elf, bytes)).flatten() {
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
                    Ok(PlannedProbe {
                        spec,
                        copy: 0,
                        layer: row.layer,
                        symbol: row.symbol,
                        offset,
                        variable: variable(row).and_then(|name| locate(elf, name, breakpoint)),
                        class: probe.class,
                        text: probe.text,
                        exit_points,
                        field: None,
                        messages,
                        slow_path: row.slow_path.is_some(),
                        pauses: row.pauses,
                    })
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
        let all = || format!("many calls that do no I/O: --layers {}=all records them", row.layer);
        (!absent && self.catalog.leaves_out(row)).then(all)
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

/// Where a function puts the messages that it reads, of which the probe is at `offset` in the file.
fn messages(of: Messages, symbol: &Symbol, elf: &Elf, bytes: &[u8], offset: u64) -> Result<Members, No> {
    let found = || {
        let [callee] = elf.symbols.get(of.callee)?.as_slice() else { return None };
        let callee = Callee::new(bytes, callee.vaddr, elf.slots.get(of.callee).copied())?;
        let Target::Code(start) = symbol.target else { return None };
        let code = bytes.get(usize::try_from(start).ok()?..)?;
        let size = usize::try_from(symbol.size).ok()?.min(prologue::SEARCHED).min(code.len());
        Members::find(&code[..size], symbol.vaddr, &callee, of.ids)
    };
    let reason = || format!("its code does not show where it puts what {} reads", of.callee);
    found().ok_or_else(|| No { status: "skipped", reason: reason(), offset: Some(offset) })
}

/// Probes where the field is read that a row's function returns. `None`: the function does something else, or not all of
/// these points can be found.
fn fields(spec: u16, row: &Row, elf: &Elf, bytes: &[u8]) -> Option<Vec<PlannedProbe>> {
    let accessor = row.inner()?.accessor?;
    let function = |name: &str| {
        let [symbol] = elf.symbols.get(name)?.as_slice() else { return None };
        let Target::Code(offset) = symbol.target else { return None };
        Some((symbol, offset, bytes.get(usize::try_from(offset).ok()?..)?))
    };
    let callee = |name: &str| Callee::new(bytes, function(name)?.0.vaddr, elf.slots.get(name).copied());
    let field = accessor::field(function(row.symbol)?.2)?;
    let itself = callee(row.symbol)?;
    let probe = |offset, text, both| PlannedProbe {
        spec,
        copy: 0,
        layer: row.layer,
        symbol: row.symbol,
        offset,
        variable: None,
        class: InsnClass::Emulated,
        text,
        exit_points: Some(Vec::new()),
        field: Some(FieldProbe { field, both }),
        messages: None,
        slow_path: false,
        pauses: false,
    };
    let at_calls = |calls: Vec<u64>| -> Option<Vec<PlannedProbe>> {
        let offsets = calls.into_iter().map(|vaddr| elf::file_offset_of_code(bytes, vaddr));
        offsets.map(|offset| Some(probe(offset?, "call".to_owned(), false))).collect()
    };
    let mut probes = Vec::new();
    for at in accessor.places() {
        match at {
            FieldAt::Entry(name) => {
                let (symbol, offset, code) = function(name)?;
                let chosen = prologue::choose(code, symbol.size, 0b11).ok()?;
                let offset = offset + u64::from(chosen.skip);
                probes.push((chosen.class == InsnClass::Emulated).then(|| probe(offset, chosen.text, true))?);
            }
            FieldAt::CallsIn(names) => {
                for name in *names {
                    let (symbol, _, code) = function(name)?;
                    let size = usize::try_from(symbol.size).ok()?.min(prologue::SEARCHED).min(code.len());
                    let calls = accessor::calls(&itself, &code[..size], symbol.vaddr);
                    probes.extend(at_calls(calls).filter(|probes| !probes.is_empty())?);
                }
            }
            FieldAt::CallsNotAfter(other) => {
                probes.extend(at_calls(accessor::calls_not_after(bytes, &itself, &callee(other)?)?)?);
            }
        }
    }
    Some(probes)
}

/// Of machine code, what may still be decoded of a file: any number of its functions can be as large as it is (bytes).
struct Code(u64);

impl Code {
    fn take(&mut self, size: u64, offset: u64) -> Result<(), No> {
        let reason = || format!("too large to examine (more than {} bytes of code to look at)", bounds::CODE);
        let left = self.0.checked_sub(size);
        self.0 = left.ok_or_else(|| No { status: "skipped", reason: reason(), offset: Some(offset) })?;
        Ok(())
    }
}

/// The rarely executed parts of each function.
fn cold_parts(elf: &Elf) -> HashMap<&str, Vec<&Symbol>> {
    let mut parts: HashMap<&str, Vec<&Symbol>> = HashMap::new();
    for (name, symbols) in &elf.symbols {
        if let Some(function) = cold_part_of(name) {
            parts.entry(function).or_default().extend(symbols);
        }
    }
    parts
}

/// Where a function that exceptions may pass through is left.
fn exit_points(symbol: &Symbol, cold: &[&Symbol], bytes: &[u8], code: &mut Code) -> Result<Vec<ExitPoint>, No> {
    let part = |s: &Symbol| if let Target::Code(offset) = s.target { Some((offset, s.size)) } else { None };
    let parts: Vec<_> = std::iter::once(symbol).chain(cold.iter().copied()).filter_map(part).collect();
    let offset = parts.first().map(|(offset, _)| *offset);
    // Each jump is compared with each part.
    let size = parts.iter().fold(0, |sum: u64, (_, size)| sum.saturating_add(*size));
    code.take(size.saturating_mul(parts.len() as u64), offset.unwrap_or(0))?;
    returns::exit_points(bytes, &parts).map_err(|why| No {
        status: "refused",
        reason: format!("exceptions may pass through it, so it must not have a return probe, and {why}"),
        offset,
    })
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

/// Why a symbol gets no probe.
struct No {
    status: &'static str,
    reason: String,
    offset: Option<u64>,
}

/// The verdict on a row that gets no probe in a file.
fn unprobed(path: &str, row: &Row, No { status, reason, offset }: No) -> Coverage {
    Coverage {
        layer: row.layer,
        target: path.to_owned(),
        symbol: row.symbol.to_owned(),
        tier: None,
        status,
        reason: Some(reason),
        offset: offset.map(|o| o as i64),
        insn: None,
    }
}

/// The file offset and the kind of the probe on one definition of a symbol. `taken` holds the offsets probed so far:
/// a function with several names is probed under the first.
fn probe_site(
    symbol: &Symbol,
    bytes: &[u8],
    row: &Row,
    taken: &mut BTreeMap<u64, &'static str>,
    looked_at: &mut Code,
) -> Result<(u64, prologue::Probe), No> {
    let refused = |reason: String, offset| No { status: "refused", reason, offset };
    let start = match symbol.target {
        Target::Code(start) => start,
        Target::Ifunc => {
            let reason = "indirect function (IFUNC): which code it stands for is decided when the program starts";
            return Err(refused(reason.into(), None));
        }
        Target::Outside => return Err(refused("its address is in no executable segment of the file".into(), None)),
        Target::Data => return Err(refused("not a function".into(), None)),
    };
    let alias = |other: &str, offset| {
        let reason = format!("alias of {other} at the same address");
        No { status: "skipped", reason, offset: Some(offset) }
    };
    if let Some(other) = taken.get(&start) {
        return Err(alias(other, start));
    }
    let code = usize::try_from(start).ok().and_then(|start| bytes.get(start..)).unwrap_or_default();
    looked_at.take(symbol.size.min(prologue::SEARCHED as u64), start)?;
    let probe =
        prologue::choose(code, symbol.size, row.arguments()).map_err(|why| refused(why.to_string(), Some(start)))?;
    let offset = start + u64::from(probe.skip);
    // Also where an entry in the middle of another function has a name.
    if let Some(other) = taken.get(&offset) {
        return Err(alias(other, offset));
    }
    taken.insert(start, row.symbol);
    taken.insert(offset, row.symbol);
    Ok((offset, probe))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(symbols: BTreeMap<String, Vec<Symbol>>) -> Elf {
        Elf {
            symbols,
            slots: BTreeMap::new(),
            build_id: None,
            go: false,
            is_static: false,
            has_functions: true,
            program: false,
            unwinds: false,
            switches_stacks: false,
            symtab: true,
            dynamic: false,
        }
    }

    #[test]
    fn an_offset_is_probed_once_whatever_its_symbols() {
        // endbr64; push %rbp; ret
        let bytes = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0xc3];
        let at = |offset, size| {
            vec![Symbol { target: Target::Code(offset), size, vaddr: 0x1000 + offset, binding: Binding::Global }]
        };
        let symbols = [
            ("fopen", at(0, 6)),
            // Another name, without a size: its probe alone would be at the start.
            ("fclose", at(0, 0)),
            // An entry in the middle, where the probe of the first is.
            ("fwrite", at(4, 2)),
            ("fread", at(99, 2)),
        ];
        let symbols = symbols.into_iter().map(|(name, at)| (name.to_owned(), at)).collect();
        let elf = library(symbols);
        let planner = Planner::new(Catalog::built_in());
        let rows = planner.catalog().rows();
        let plan = planner.plan("x", &elf, &bytes, &|_| true);
        let probes: Vec<_> =
            plan.probes.iter().map(|p| (p.symbol, p.offset, rows[usize::from(p.spec)].symbol)).collect();
        assert_eq!(probes, [("fopen", 4, "fopen")]);
        let verdict = |symbol: &str| {
            let c = plan.settled.iter().find(|c| c.symbol == symbol).unwrap();
            (c.status, c.reason.as_deref().unwrap(), c.offset)
        };
        let alias = "alias of fopen at the same address";
        assert_eq!(verdict("fclose"), ("skipped", alias, Some(0)));
        assert_eq!(verdict("fwrite"), ("skipped", alias, Some(4)));
        assert_eq!(verdict("fread"), ("refused", "the function ends within its first instruction", Some(99)));
        assert_eq!(verdict("fgets"), ("absent", "the file does not define it", None));
    }

    #[test]
    fn private_names_do_not_make_a_public_library_another_one() {
        use Binding::{Global, Local};
        let named = |names: &[(&str, Binding)]| {
            let symbol = |binding| vec![Symbol { target: Target::Code(0), size: 0, vaddr: 0, binding }];
            let symbols = names.iter().map(|(name, binding)| ((*name).to_owned(), symbol(*binding))).collect();
            let elf = library(symbols);
            Family::LIBRARIES.into_iter().filter(|family| is(*family, &elf)).collect::<Vec<_>>()
        };
        let with = |dup_fn, open| {
            let names = [
                ("MPI_File_open", open),
                ("MPIR_Err_return_comm", Global),
                ("MPI_Abi_get_version", Global),
                ("MPIR_Dup_fn", dup_fn),
            ];
            named(&names)
        };
        assert_eq!(with(Global, Global), [Family::Mpich]);
        assert_eq!(with(Local, Global), [Family::MpiAbi]);
        // A library inside a program or another library.
        assert_eq!(with(Local, Local), [Family::Mpich]);
        let open_mpi = [("MPI_File_open", Global), ("ompi_mpi_comm_world", Global)];
        assert_eq!(named(&open_mpi), [Family::OpenMpi, Family::OpenMpi4]);
        let newer = [&open_mpi[..], &[("MPI_Session_init", Global)]].concat();
        assert_eq!(named(&newer), [Family::OpenMpi, Family::OpenMpi5]);
    }
}
