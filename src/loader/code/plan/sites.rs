//! Where in a file the probes of a row go, or why it gets none.

use std::collections::{BTreeMap, HashMap};

use crate::catalog::libraries::hdf5::Messages;
use crate::catalog::symbol::cold_part_of;
use crate::catalog::{FieldAt, Row};
use crate::loader::code::accessor::{self, Callee};
use crate::loader::code::bounds;
use crate::loader::code::elf::{self, Elf, Symbol, Target};
use crate::loader::code::framed::{self, Framed};
use crate::loader::code::members::Members;
use crate::loader::code::plan::{FieldProbe, PlannedProbe};
use crate::loader::code::prologue::{self, InsnClass};
use crate::loader::code::returns::{self, ExitPoint};
use crate::rows::Coverage;

/// Why a symbol gets no probe.
pub(super) struct No {
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) offset: Option<u64>,
}

/// The verdict on a row that gets no probe in a file.
pub(super) fn unprobed(path: &str, row: &Row, No { status, reason, offset }: No) -> Coverage {
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
pub(super) fn probe_site(
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

/// Where a function puts the messages that it reads, of which the probe is at `offset` in the file.
pub(super) fn messages(of: Messages, symbol: &Symbol, elf: &Elf, bytes: &[u8], offset: u64) -> Result<Members, No> {
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
pub(super) fn fields(spec: u16, row: &Row, elf: &Elf, bytes: &[u8]) -> Option<Vec<PlannedProbe>> {
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
        exit_points: Some(Vec::new()),
        field: Some(FieldProbe { field, both }),
        ..PlannedProbe::at(spec, row, offset, (InsnClass::Emulated, text))
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
pub(super) struct Code(pub(super) u64);

impl Code {
    fn take(&mut self, size: u64, offset: u64) -> Result<(), No> {
        let reason = || format!("too large to examine (more than {} bytes of code to look at)", bounds::CODE);
        let left = self.0.checked_sub(size);
        self.0 = left.ok_or_else(|| No { status: "skipped", reason: reason(), offset: Some(offset) })?;
        Ok(())
    }
}

/// The rarely executed parts of each function.
pub(super) fn cold_parts(elf: &Elf) -> HashMap<&str, Vec<&Symbol>> {
    let mut parts: HashMap<&str, Vec<&Symbol>> = HashMap::new();
    for (name, symbols) in &elf.symbols {
        if let Some(function) = cold_part_of(name) {
            parts.entry(function).or_default().extend(symbols);
        }
    }
    parts
}

/// Where a function can be probed in its frame, and where it starts in the file.
pub(super) fn framed(symbol: &Symbol, bytes: &[u8], row: &Row) -> Option<(Framed, u64)> {
    let Target::Code(start) = symbol.target else { return None };
    let from = usize::try_from(start).ok()?;
    let body = bytes.get(from..from.checked_add(usize::try_from(symbol.size).ok()?)?)?;
    Some((framed::find(body, row.arguments())?, start))
}

/// Where a function that exceptions may pass through is left.
pub(super) fn exit_points(
    symbol: &Symbol,
    cold: &[&Symbol],
    bytes: &[u8],
    code: &mut Code,
) -> Result<Vec<ExitPoint>, No> {
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
