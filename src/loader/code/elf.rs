//! Reads an ELF file: where its symbols are in the file, whether it is a Go program, its build-id and entry point.

mod segments;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable};

use crate::catalog::libraries::hdf5::CALLS_LOOKED_FOR;
use crate::loader::code::bounds::{self, more_than};
use crate::loader::code::elf::segments::file_offset;
pub use crate::loader::code::elf::segments::{code, content, entry, file_offset_of_code, function_starts};

type Header = FileHeader64<LittleEndian>;
type Segment = ProgramHeader64<LittleEndian>;

/// What the linker puts in front of the build information of a Go program.
const GO_MAGIC: &[u8] = b"\xff Go buildinf:";
/// `debug/buildinfo` of Go: the information is aligned to this, near the start of the first writable segment.
const GO_ALIGN: usize = 16;
pub(crate) const GO_SEARCHED: usize = 1 << 20;
/// The names of Go's sections are shorter.
const SECTION_NAME: usize = 64;
/// Bytes of a section header of a 64-bit file (ELF-64 object file format, version 1.5).
const SECTION_HEADER: u64 = 64;

/// Why a file cannot be read as a program or library of this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    #[error("not an ELF file (scripts and archives have no symbols; name the program or library itself)")]
    NotElf,
    #[error("the ELF file ends after {0} bytes, before the end that its header gives: truncated")]
    Truncated(usize),
    #[error("a 32-bit ELF file; only 64-bit programs and libraries can be probed")]
    Bits32,
    #[error("an ELF file for machine {0}, not x86_64 (62); only x86_64 code can be probed")]
    Machine(u16),
    #[error("an ELF file of type {0}, neither a program (2) nor a shared object (3)")]
    Type(u16),
    #[error("no section headers, so its symbols cannot be found (the file was stripped of them)")]
    NoSections,
    #[error("damaged ELF file: {what}: {why}")]
    Damaged { what: &'static str, why: String },
    /// What it would take is beyond one of `bounds`.
    #[error("too large to examine ({0})")]
    TooLarge(String),
}

/// Reach of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    Global,
    Weak,
    Local,
}

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A function, at this offset in the file.
    Code(u64),
    /// A resolver that chooses the function when the program starts (`STT_GNU_IFUNC`).
    Ifunc,
    /// A function whose address is in no executable segment of the file.
    Outside,
    /// Not a function.
    Data,
}

/// A symbol that the file defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    pub target: Target,
    /// Bytes; 0 when not in the file.
    pub size: u64,
    pub vaddr: u64,
    pub binding: Binding,
}

/// What attaching needs to know of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elf {
    /// The defined symbols that were asked for, without their version suffix. A name has one entry per address.
    pub symbols: BTreeMap<String, Vec<Symbol>>,
    /// Of those that are data: the address of the word in which the file's own code looks up where the variable is.
    /// A program may have its own copy of a library's variable, and then that is the one that counts. Of functions whose
    /// calls are looked for: the word that the file's own calls go through.
    pub slots: BTreeMap<String, u64>,
    pub build_id: Option<Vec<u8>>,
    /// A Go program or library.
    pub go: bool,
    /// A program that has all of its libraries in it: none is mapped beside it.
    pub is_static: bool,
    /// It has function symbols. Symbols of a program can be stripped.
    pub has_functions: bool,
    /// An executable, not a library.
    pub program: bool,
    /// Its code may be left by exceptions (C++) or panics (Rust).
    pub unwinds: bool,
    /// It names functions that go from one stack to another.
    pub switches_stacks: bool,
    /// It has a table of all its functions, and not only of those that others use.
    pub symtab: bool,
    /// It has a table of the functions that it shares with other files.
    pub dynamic: bool,
}

impl Elf {
    /// Reads a file's content, keeping the symbols whose name `wanted` accepts, from `.dynsym` and `.symtab`.
    pub fn parse(data: &[u8], wanted: impl Fn(&str) -> bool) -> Result<Self, ElfError> {
        let header = header(data)?;
        let segments = header.program_headers(LittleEndian, data).map_err(damaged("program headers"))?;
        let sections = header.sections(LittleEndian, data).map_err(damaged("section headers"))?;
        within(segments.len(), bounds::SEGMENTS, "segments")?;
        within(sections.len(), bounds::SECTIONS, "sections")?;
        let is_static = is_static(header, data, segments);
        if sections.is_empty() && !is_static {
            return Err(ElfError::NoSections);
        }
        let mut symbols = BTreeMap::new();
        let mut all = Names::default();
        let mut work = Work::new();
        for table in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
            let table = Table::of(data, &sections, table, &mut work)?;
            collect(data, segments, &table, &wanted, (&mut symbols, &mut all), &mut work)?;
        }
        let has = |table| sections.iter().any(|s| s.sh_type.get(LittleEndian) == table);
        for found in symbols.values_mut() {
            tidy(found);
        }
        Ok(Self {
            slots: slots(data, &sections, &symbols, &mut work)?,
            symbols,
            build_id: build_id(data, segments),
            go: is_go(header, data, segments, &sections),
            is_static,
            has_functions: all.functions,
            program: is_program(header, data, segments),
            unwinds: all.unwinds,
            switches_stacks: all.switches || (is_static && all.contexts),
            symtab: has(elf::SHT_SYMTAB),
            dynamic: has(elf::SHT_DYNSYM),
        })
    }
}

/// An error where a file has more of something than is looked at.
fn within(number: usize, bound: usize, of: &str) -> Result<(), ElfError> {
    if number > bound { Err(ElfError::TooLarge(more_than(bound, of))) } else { Ok(()) }
}

/// What was done for a file so far.
struct Work {
    symbols: usize,
    /// Bytes.
    names: usize,
    kept: usize,
    kept_names: usize,
    /// On the clock of the thread.
    until: Duration,
}

impl Work {
    fn new() -> Self {
        Self { symbols: 0, names: 0, kept: 0, kept_names: 0, until: on_cpu() + bounds::TIME }
    }

    fn in_time(&self) -> Result<(), ElfError> {
        let late = || ElfError::TooLarge(format!("more than {} s of CPU", bounds::TIME.as_secs()));
        if on_cpu() > self.until { Err(late()) } else { Ok(()) }
    }

    fn keep(&mut self, name: &str) -> Result<(), ElfError> {
        (self.kept, self.kept_names) = (self.kept + 1, self.kept_names + name.len());
        within(self.kept, bounds::KEPT, "symbols of the names that are looked for")?;
        within(self.kept_names, bounds::KEPT_NAMES, "bytes of names that are looked for")
    }
}

/// How long this thread has had a CPU: on a busy node a file takes longer, and is no larger.
fn on_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Symbols that are looked at before the clock is looked at again. One can take a name of C++ to be taken apart.
const AT_ONCE: usize = 64;

/// A table of symbols with their names.
struct Table<'data> {
    symbols: SymbolTable<'data, Header>,
    names: &'data [u8],
}

impl<'data> Table<'data> {
    /// That table of a file; a file without it has an empty one.
    fn of(
        data: &'data [u8],
        sections: &SectionTable<'data, Header>,
        table: elf::SectionType,
        work: &mut Work,
    ) -> Result<Self, ElfError> {
        let symbols = sections.symbols(LittleEndian, data, table).map_err(damaged("symbol table"))?;
        work.symbols += symbols.len();
        within(work.symbols, bounds::SYMBOLS, "symbols")?;
        let names = if symbols.is_empty() {
            &[]
        } else {
            let section = sections.section(symbols.string_section()).map_err(damaged("symbol names"))?;
            section.data(LittleEndian, data).map_err(damaged("symbol names"))?
        };
        Ok(Self { symbols, names })
    }

    fn name(&self, symbol: &elf::Sym64<LittleEndian>, work: &mut Work) -> Result<&'data [u8], ElfError> {
        let damaged = || ElfError::Damaged { what: "symbol name", why: "it has no end within its section".to_owned() };
        let rest = self.names.get(symbol.st_name(LittleEndian) as usize..).ok_or_else(damaged)?;
        let seen = rest.get(..=bounds::NAME).unwrap_or(rest);
        let Ok(name) = CStr::from_bytes_until_nul(seen) else {
            within(seen.len(), bounds::NAME, "bytes of one symbol's name")?;
            return Err(damaged());
        };
        work.names += name.count_bytes();
        within(work.names, bounds::NAMES, "bytes of symbol names")?;
        Ok(name.to_bytes())
    }
}

fn damaged(what: &'static str) -> impl Fn(object::read::Error) -> ElfError {
    move |why| ElfError::Damaged { what, why: why.to_string() }
}

/// The file header, when the file is a program or shared object of this machine.
fn header(data: &[u8]) -> Result<&Header, ElfError> {
    if !data.starts_with(&elf::ELFMAG) {
        return Err(ElfError::NotElf);
    }
    match data.get(4) {
        Some(&class) if class == elf::ELFCLASS32.0 => return Err(ElfError::Bits32),
        _ if data.len() < size_of::<Header>() => return Err(ElfError::Truncated(data.len())),
        _ => {}
    }
    let header = Header::parse(data).map_err(damaged("header"))?;
    if !header.is_little_endian() {
        // x86_64 is little endian: whatever machine number such a header holds, read in its own byte order, is another.
        return Err(ElfError::Machine(header.e_machine(LittleEndian).0.swap_bytes()));
    }
    let machine = header.e_machine(LittleEndian);
    if machine != elf::EM_X86_64 {
        return Err(ElfError::Machine(machine.0));
    }
    // Section headers come last in what linkers write. A position beyond any file is damage of another kind.
    let end = header.e_shoff(LittleEndian).saturating_add(u64::from(header.e_shnum(LittleEndian)) * SECTION_HEADER);
    if end > data.len() as u64 && end < 1 << 48 {
        return Err(ElfError::Truncated(data.len()));
    }
    let kind = header.e_type(LittleEndian);
    if kind != elf::ET_EXEC && kind != elf::ET_DYN {
        return Err(ElfError::Type(kind.0));
    }
    Ok(header)
}

/// Symbols of a file that throws or catches exceptions, or lets them pass with something to be cleaned up: the C++
/// runtime's, and the personality functions of languages.
fn is_of_unwinding(name: &[u8]) -> bool {
    // C code with the attribute `cleanup` names __gcc_personality_v0, and nothing catches anything there.
    name == b"__cxa_throw"
        || (name != b"__gcc_personality_v0"
            && (name.ends_with(b"_personality_v0") || name.ends_with(b"_eh_personality")))
}

/// Executables are of type `ET_EXEC`, or shared objects that are marked so, or ones that are started (`PT_INTERP`) and that no
/// one links with (no `DT_SONAME`).
fn is_program(header: &Header, data: &[u8], segments: &[Segment]) -> bool {
    if header.e_type(LittleEndian) == elf::ET_EXEC {
        return true;
    }
    let entries = segments.iter().find_map(|s| s.dynamic(LittleEndian, data).ok().flatten()).unwrap_or_default();
    let value = |tag: elf::DynamicTag| {
        let of_tag = entries.iter().find(|d| d.d_tag.get(LittleEndian).0 == tag.0);
        of_tag.map(|d| d.d_val.get(LittleEndian))
    };
    let executable = value(elf::DT_FLAGS_1).is_some_and(|flags| flags & elf::DF_1_PIE.0 != 0);
    let started = segments.iter().any(|s| s.p_type(LittleEndian) == elf::PT_INTERP);
    executable || (started && value(elf::DT_SONAME).is_none())
}

/// What follows from the names of a file's symbols.
#[derive(Default)]
struct Names {
    /// There is any function.
    functions: bool,
    /// What unwinding needs is named.
    unwinds: bool,
    /// It wants functions that go from one stack to another, or has some of a library for that.
    switches: bool,
    /// It defines those of the C library.
    contexts: bool,
}

impl Names {
    fn add(&mut self, name: &[u8], defined: bool) {
        self.unwinds |= is_of_unwinding(name);
        match name {
            b"makecontext" | b"swapcontext" if defined => self.contexts = true,
            // The C library's, Boost.Context, greenlet, libco, libcoro (Ruby's coroutine_transfer).
            b"makecontext"
            | b"swapcontext"
            | b"make_fcontext"
            | b"jump_fcontext"
            | b"PyInit__greenlet"
            | b"co_switch"
            | b"coro_transfer"
            | b"coroutine_transfer" => self.switches = true,
            _ => {}
        }
    }
}

/// Adds the wanted symbols of one table. A file without that table has none.
fn collect(
    data: &[u8],
    segments: &[Segment],
    table: &Table<'_>,
    wanted: &impl Fn(&str) -> bool,
    (symbols, all): (&mut BTreeMap<String, Vec<Symbol>>, &mut Names),
    work: &mut Work,
) -> Result<(), ElfError> {
    for (number, symbol) in table.symbols.iter().enumerate() {
        if number % AT_ONCE == 0 {
            work.in_time()?;
        }
        let name = table.name(symbol, work)?;
        let section = symbol.st_shndx(LittleEndian);
        all.add(name.split(|b| *b == b'@').next().unwrap_or(name), section != elf::SHN_UNDEF);
        // Undefined here, or a number that is no address.
        if section == elf::SHN_UNDEF || section == elf::SHN_ABS || section == elf::SHN_COMMON {
            continue;
        }
        all.functions |= symbol.st_type() == elf::STT_FUNC;
        let Ok(name) = std::str::from_utf8(name) else { continue };
        // A static linker leaves `fopen@@GLIBC_2.2.5` in `.symtab`.
        let name = name.split('@').next().unwrap_or(name);
        if !wanted(name) {
            continue;
        }
        work.keep(name)?;
        let vaddr = symbol.st_value(LittleEndian);
        let target = match symbol.st_type() {
            elf::STT_GNU_IFUNC => Target::Ifunc,
            elf::STT_FUNC => {
                let inside = file_offset(segments, vaddr).filter(|&offset| offset < data.len() as u64);
                inside.map_or(Target::Outside, Target::Code)
            }
            _ => Target::Data,
        };
        let binding = match symbol.st_bind() {
            elf::STB_LOCAL => Binding::Local,
            elf::STB_WEAK => Binding::Weak,
            _ => Binding::Global,
        };
        let symbol = Symbol { target, size: symbol.st_size(LittleEndian), vaddr, binding };
        symbols.entry(name.to_owned()).or_default().push(symbol);
    }
    Ok(())
}

/// The entries of the global offset table for the variables among the symbols, and for functions whose calls are looked
/// for.
fn slots(
    data: &[u8],
    sections: &SectionTable<'_, Header>,
    symbols: &BTreeMap<String, Vec<Symbol>>,
    work: &mut Work,
) -> Result<BTreeMap<String, u64>, ElfError> {
    let has_slot = |name: &str, found: &[Symbol]| {
        found.iter().any(|s| s.target == Target::Data) || CALLS_LOOKED_FOR.contains(&name)
    };
    if !symbols.iter().any(|(name, found)| has_slot(name, found)) {
        return Ok(BTreeMap::new());
    }
    let is_wanted = |name: &str| symbols.get(name).is_some_and(|found| has_slot(name, found));
    let dynamic = Table::of(data, sections, elf::SHT_DYNSYM, work)?;
    let mut numbers = BTreeMap::new();
    for (number, symbol) in dynamic.symbols.enumerate() {
        let name = dynamic.name(symbol, work)?;
        if let Some(name) = std::str::from_utf8(name).ok().filter(|name| is_wanted(name)) {
            numbers.insert(number.0 as u32, name);
        }
    }
    let (mut slots, mut searched) = (BTreeMap::new(), 0);
    for section in sections.iter().filter(|_| !numbers.is_empty()) {
        let Some((relocations, _)) = section.rela(LittleEndian, data).map_err(damaged("relocations"))? else {
            continue;
        };
        // Any number of sections may share their relocations.
        searched += relocations.len();
        within(searched, bounds::RELOCATIONS, "relocations")?;
        let of_symbol = |kind| kind == elf::R_X86_64_GLOB_DAT || kind == elf::R_X86_64_JUMP_SLOT;
        for relocation in relocations.iter().filter(|r| of_symbol(r.r_type(LittleEndian, false))) {
            if let Some(name) = numbers.get(&relocation.r_sym(LittleEndian, false)) {
                slots.insert((*name).to_owned(), relocation.r_offset(LittleEndian));
            }
        }
    }
    Ok(slots)
}

/// One entry per address, the most public one; and no local function of the same name as a public one, which is
/// some other function (`static int fclose(...)` in a program).
fn tidy(found: &mut Vec<Symbol>) {
    found.sort_by_key(|s| (s.vaddr, s.binding, Reverse(s.size)));
    found.dedup_by_key(|s| s.vaddr);
    if found.iter().any(|s| s.binding != Binding::Local) {
        found.retain(|s| s.binding != Binding::Local);
    }
}

/// The linker's fingerprint of the file. Damaged notes are as good as none: nothing depends on them.
fn build_id(data: &[u8], segments: &[Segment]) -> Option<Vec<u8>> {
    let notes = segments.iter().filter_map(|s| s.notes(LittleEndian, data).ok().flatten());
    notes.flat_map(|notes| notes.map_while(Result::ok)).take(bounds::NOTES).find_map(|note| {
        let is_id = note.name() == elf::ELF_NOTE_GNU && note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID;
        is_id.then(|| note.desc().to_vec())
    })
}

/// A program that asks for no loader. The loader itself asks for none either, but is no program by its flags.
fn is_static(header: &Header, data: &[u8], segments: &[Segment]) -> bool {
    let has = |kind| segments.iter().any(|s| s.p_type(LittleEndian) == kind);
    let is_program = || {
        let entries = segments.iter().find_map(|s| s.dynamic(LittleEndian, data).ok().flatten()).unwrap_or_default();
        let flags = entries.iter().find(|e| e.d_tag(LittleEndian) == elf::DT_FLAGS_1);
        flags.is_some_and(|e| e.d_val(LittleEndian) & elf::DF_1_PIE.0 != 0)
    };
    !has(elf::PT_INTERP) && (header.e_type(LittleEndian) == elf::ET_EXEC || is_program())
}

/// Has it a section that only Go has? A position-independent program has `.data.rel.ro.gopclntab`.
fn has_section_of_go(header: &Header, data: &[u8], sections: &SectionTable<'_, Header>) -> bool {
    let names = header.section_strings_index(LittleEndian, data).and_then(|names| sections.section(names));
    let Ok(names) = names.and_then(|names| names.data(LittleEndian, data)) else { return false };
    // Any number of sections may share a name as long as the file.
    let name = |section: &elf::SectionHeader64<LittleEndian>| {
        let rest = names.get(section.sh_name(LittleEndian) as usize..)?;
        CStr::from_bytes_until_nul(rest.get(..SECTION_NAME).unwrap_or(rest)).ok().map(CStr::to_bytes)
    };
    sections.iter().filter_map(name).any(|name| name == b".go.buildinfo" || name.ends_with(b".gopclntab"))
}

fn is_go(header: &Header, data: &[u8], segments: &[Segment], sections: &SectionTable<'_, Header>) -> bool {
    if has_section_of_go(header, data, sections) {
        return true;
    }
    let writable =
        |s: &&Segment| s.p_type(LittleEndian) == elf::PT_LOAD && s.p_flags(LittleEndian).0 & elf::PF_W.0 != 0;
    let Some(bytes) = segments.iter().find(writable).and_then(|s| s.data(LittleEndian, data).ok()) else {
        return false;
    };
    bytes[..bytes.len().min(GO_SEARCHED)].chunks(GO_ALIGN).any(|chunk| chunk.starts_with(GO_MAGIC))
}
