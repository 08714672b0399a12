//! Lines of a source file in a program's debug information: the addresses of their statements, and the functions that
//! have them (DWARF 5, 6.2 and 3.3).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use gimli::{AttributeValue as Value, DwarfSections, EndianSlice, LittleEndian, SectionId};
use object::Object as _;

use crate::base::usage::hint;
use crate::catalog::Lines;
use crate::loader::code::lines::{File, No, Reader, Region, section};

type Dwarf<'a> = gimli::Dwarf<Reader<'a>>;
type Unit<'a> = gimli::Unit<Reader<'a>>;
type Entry<'a> = gimli::DebuggingInformationEntry<Reader<'a>>;

/// A source file by its number in the unit, and a line of it.
type Line = (u64, u64);

/// Code of a row of the line table.
#[derive(Debug, Clone)]
struct Piece {
    at: Range<u64>,
    line: Line,
    /// The line of the statement that it is among, where it does not begin one: it may have been moved there.
    among: Option<Line>,
}

/// Code of a statement.
#[derive(Debug, Clone)]
struct Statement {
    at: Range<u64>,
    line: u64,
}

/// A function, or a copy of one that is part of another.
#[derive(Debug, Clone)]
struct Function {
    name: String,
    /// Where it is declared: two functions may have one name.
    declared: u64,
    parts: Vec<Range<u64>>,
    /// Where it was inlined: number of the file, and line.
    called: Option<Line>,
}

impl Function {
    fn has(&self, at: u64) -> bool {
        self.parts.iter().any(|part| part.contains(&at))
    }

    fn size(&self) -> u64 {
        self.parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.end.saturating_sub(part.start)))
    }
}

/// What is found in the units of a program.
#[derive(Default)]
struct Found {
    regions: Vec<Region>,
    /// Source files of the program, and those of them that are meant and have code in the lines.
    sources: BTreeSet<String>,
    meant: BTreeSet<String>,
    /// Lines with code in the files that are meant.
    code: BTreeSet<u64>,
    /// The functions of each of the lines.
    functions: BTreeMap<u64, BTreeSet<(String, u64)>>,
}

/// The functions with code of these lines.
pub(super) fn regions(file: &File<'_>, lines: &Lines) -> Result<Vec<Region>, No> {
    if file.section_by_name(".debug_line").is_none() || file.section_by_name(".debug_info").is_none() {
        return Err(No::NotHere("has no debug information".to_owned()));
    }
    let sections = DwarfSections::load(|id: SectionId| section(file, id.name()));
    let sections = sections.map_err(|why| No::NotHere(format!("has damaged debug information ({why})")))?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let mut found = Found::default();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        found.unit(&dwarf, &dwarf.unit(header)?, lines)?;
    }
    found.into_regions(lines)
}

impl Found {
    fn unit<'a>(&mut self, dwarf: &Dwarf<'a>, unit: &Unit<'a>, lines: &Lines) -> Result<(), No> {
        let sources = sources(dwarf, unit);
        let meant: BTreeMap<u64, &String> =
            sources.iter().filter(|(_, path)| Path::new(path).ends_with(&lines.file)).map(|(n, p)| (*n, p)).collect();
        self.sources.extend(sources.values().cloned());
        if meant.is_empty() {
            return Ok(());
        }
        let of_range = |(source, line): Line| meant.contains_key(&source) && (lines.first..=lines.last).contains(&line);
        let (mut statements, mut moved) = (Vec::new(), Vec::new());
        for Piece { at, line, among } in pieces(unit)? {
            let begins = among.is_none();
            if let Some(path) = meant.get(&line.0).filter(|_| begins) {
                self.code.insert(line.1);
                self.meant.extend(of_range(line).then(|| (*path).clone()));
            }
            match (of_range(line), among.is_some_and(of_range)) {
                (true, surely) if begins || surely => statements.push(Statement { at, line: line.1 }),
                (false, false) => {}
                _ => moved.push(at),
            }
        }
        if statements.is_empty() {
            return Ok(());
        }
        let functions = functions(dwarf, unit)?;
        for statement in &statements {
            let around = functions.iter().filter(|f| f.has(statement.at.start));
            if let Some(innermost) = around.min_by_key(|f| (f.size(), f.called.is_none())) {
                let of_line = self.functions.entry(statement.line).or_default();
                of_line.insert((innermost.name.clone(), innermost.declared));
            }
        }
        // A call of the lines that was inlined belongs to them, wherever its lines are.
        let inlined: Vec<&Function> = functions.iter().filter(|f| f.called.is_some_and(of_range)).collect();
        for function in functions.iter().filter(|f| f.called.is_none()) {
            let mut inside: Vec<Range<u64>> =
                statements.iter().map(|s| &s.at).filter(|at| function.has(at.start)).cloned().collect();
            if inside.is_empty() {
                continue;
            }
            let own = inlined.iter().filter(|f| f.parts.iter().any(|part| function.has(part.start)));
            inside.extend(own.flat_map(|f| &f.parts).cloned());
            self.regions.push(Region {
                function: function.name.clone(),
                parts: function.parts.clone(),
                inside,
                moved: moved.iter().filter(|at| function.has(at.start)).cloned().collect(),
            });
        }
        Ok(())
    }

    fn into_regions(self, lines: &Lines) -> Result<Vec<Region>, No> {
        let Lines { file, first, last } = lines;
        if !self.sources.iter().any(|path| Path::new(path).ends_with(file)) {
            let names = self.sources.iter().filter_map(|path| Path::new(path).file_name()?.to_str());
            let name = file.rsplit('/').next().unwrap_or(file);
            let near = hint(name, names.collect::<BTreeSet<_>>());
            return Err(No::NotHere(format!("has no source file {file}{near}")));
        }
        if self.meant.len() > 1 {
            let paths = self.meant.into_iter().collect::<Vec<_>>().join(", ");
            return Err(No::Refused(format!("{file} is one of several files: {paths}; give more of its path")));
        }
        let (Some((begin, of_begin)), Some((end, of_end))) =
            (self.functions.first_key_value(), self.functions.last_key_value())
        else {
            let near = [self.code.range(..first).next_back(), self.code.range(last..).next()];
            let near: Vec<String> = near.into_iter().flatten().map(u64::to_string).collect();
            let near = if near.is_empty() {
                String::new()
            } else {
                format!("; lines next to them that have: {}", near.join(", "))
            };
            return Err(No::Refused(format!("no code is of lines {first} to {last} of {file}{near}")));
        };
        if of_begin.is_disjoint(of_end) {
            let name = |of: &BTreeSet<(String, u64)>| of.first().map(|(name, _)| name.clone()).unwrap_or_default();
            return Err(No::Refused(format!(
                "lines {first} to {last} are of several functions: line {begin} is in {}, line {end} in {}",
                name(of_begin),
                name(of_end)
            )));
        }
        Ok(self.regions)
    }
}

/// The source files of a unit, by number.
fn sources(dwarf: &Dwarf<'_>, unit: &Unit<'_>) -> BTreeMap<u64, String> {
    let Some(program) = &unit.line_program else { return BTreeMap::new() };
    let header = program.header();
    let text = |value| dwarf.attr_string(unit, value).ok().map(|text| text.to_string_lossy().into_owned());
    let root = unit.comp_dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    let path = |number: u64| {
        let file = header.file(number)?;
        let dir = file.directory(header).and_then(text).unwrap_or_default();
        let path = Path::new(&root).join(dir).join(text(file.path_name())?);
        let plain: std::path::PathBuf = path.components().collect();
        Some((number, plain.to_string_lossy().into_owned()))
    };
    (0..=header.file_names().len() as u64).filter_map(path).collect()
}

/// The code of each row of a unit's line table. Line 0 is the compiler's own.
fn pieces(unit: &Unit<'_>) -> gimli::Result<Vec<Piece>> {
    let Some(program) = unit.line_program.clone() else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    let (mut open, mut statement): (Option<Piece>, Option<Line>) = (None, None);
    let mut rows = program.rows();
    while let Some((_, row)) = rows.next_row()? {
        if let Some(mut piece) = open.take().filter(|piece| piece.at.start < row.address()) {
            piece.at.end = row.address();
            all.push(piece);
        }
        let line = (row.file_index(), row.line().map_or(0, std::num::NonZero::get));
        let begins = row.is_stmt() && line.1 > 0;
        statement = if row.end_sequence() { None } else { Some(line).filter(|_| begins).or(statement) };
        let piece = Piece { at: row.address()..row.address(), line, among: statement.filter(|_| !begins) };
        open = (!row.end_sequence()).then_some(piece);
    }
    Ok(all)
}

/// The functions of a unit that have code, and their inlined copies.
fn functions<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>) -> gimli::Result<Vec<Function>> {
    let mut found = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        let inlined = entry.tag == gimli::DW_TAG_inlined_subroutine;
        if entry.tag != gimli::DW_TAG_subprogram && !inlined {
            continue;
        }
        let mut parts = Vec::new();
        let mut ranges = dwarf.die_ranges(unit, entry)?;
        while let Some(range) = ranges.next()? {
            if range.begin < range.end {
                parts.push(range.begin..range.end);
            }
        }
        if parts.is_empty() {
            continue;
        }
        let number = |name| entry.attr_value(name).and_then(|value| number(&value)).unwrap_or_default();
        let called = inlined.then(|| (number(gimli::DW_AT_call_file), number(gimli::DW_AT_call_line)));
        let (name, declared) = named(dwarf, unit, entry);
        found.push(Function { name, declared, parts, called });
    }
    Ok(found)
}

fn number(value: &Value<Reader<'_>>) -> Option<u64> {
    if let Value::FileIndex(number) = value { Some(*number) } else { value.udata_value() }
}

/// The name of a function and where it is declared: at the entry, or at the one that it completes.
fn named<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>, entry: &Entry<'a>) -> (String, u64) {
    let mut entry = entry.clone();
    let (mut name, mut declared) = (None, None);
    for _ in 0..4 {
        let text = |value| dwarf.attr_string(unit, value).ok().map(|text| text.to_string_lossy().into_owned());
        name = name.or_else(|| entry.attr_value(gimli::DW_AT_name).and_then(text));
        declared = declared.or_else(|| entry.attr_value(gimli::DW_AT_decl_line).and_then(|value| number(&value)));
        let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
        let next = match origin.or_else(|| entry.attr_value(gimli::DW_AT_specification)) {
            Some(Value::UnitRef(offset)) => unit.entry(offset).ok(),
            _ => None,
        };
        let Some(next) = next else { break };
        entry = next;
    }
    (name.unwrap_or_else(|| "a function without a name".to_owned()), declared.unwrap_or_default())
}
