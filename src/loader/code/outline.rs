//! The parts of an ELF file that give its symbols and its kind: most libraries of a program are not probed, and what is not read
//! need not come from the disk. And of one that is probed all but what only debuggers need.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader as _};

use crate::loader::code::bounds::{self, more_than};
use crate::loader::code::elf::{Elf, ElfError, GO_SEARCHED};

type Header = FileHeader64<LittleEndian>;

/// An offset in a file and a number of bytes, as the file gives them: not checked.
type Part = (u64, u64);
/// None: not in the file.
type Parts = Option<Vec<Part>>;

/// What is read twice of a sound file is smaller.
const HEADERS: usize = 1 << 16;
/// Sections with relocations. Most programs have two.
const RELOCATED: usize = 1 << 10;
/// What is read of most files is less (bytes).
const LARGE: usize = 16 << 20;

/// What is read, each part with what was read before it: where the next ones are.
const PARTS: [fn(&[u8]) -> Parts; 4] = [header, first_section, headers, tables];

/// The same of a file that has functions to be probed.
const CONTENT: [fn(&[u8]) -> Parts; 5] = [header, first_section, headers, tables, loaded];

/// Why a file is not classified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// What it would take is beyond one of `bounds`.
    #[error("too large to examine ({0})")]
    TooLarge(String),
    #[error("{0}")]
    Other(String),
}

impl Unread {
    /// The verdict on the file.
    pub fn status(&self) -> &'static str {
        if matches!(self, Self::TooLarge(_)) { "skipped" } else { "refused" }
    }
}

impl From<ElfError> for Unread {
    fn from(why: ElfError) -> Self {
        if let ElfError::TooLarge(why) = why { Self::TooLarge(why) } else { Self::Other(why.to_string()) }
    }
}

impl From<io::Error> for Unread {
    fn from(why: io::Error) -> Self {
        Self::Other(format!("cannot be read: {why}"))
    }
}

/// Its length, of a file that is not longer than is read.
fn length(file: &File) -> Result<usize, Unread> {
    let length = file.metadata()?.len();
    let too_large = || Unread::TooLarge(format!("{length} bytes, more than {}", bounds::FILE));
    usize::try_from(length).ok().filter(|_| length <= bounds::FILE).ok_or_else(too_large)
}

/// An error where a file has more segments, sections or symbols than are looked at: as much as is known of it by
/// now.
fn bounded(data: &[u8]) -> Result<(), Unread> {
    let Ok(header) = Header::parse(data) else { return Ok(()) };
    let within = |number: usize, bound: usize, of: &str| {
        if number > bound { Err(Unread::TooLarge(more_than(bound, of))) } else { Ok(()) }
    };
    within(header.phnum(LittleEndian, data).map_or(0, |n| n as usize), bounds::SEGMENTS, "segments")?;
    within(header.shnum(LittleEndian, data).map_or(0, |n| n as usize), bounds::SECTIONS, "sections")?;
    let sections = header.section_headers(LittleEndian, data).unwrap_or_default();
    let tables = [elf::SHT_DYNSYM, elf::SHT_SYMTAB].into_iter();
    let tables = tables.filter_map(|kind| sections.iter().find(|s| s.sh_type(LittleEndian) == kind));
    let bytes = tables.fold(0, |sum: u64, table| sum.saturating_add(table.sh_size(LittleEndian)));
    let symbols = bytes / size_of::<elf::Sym64<LittleEndian>>() as u64;
    within(usize::try_from(symbols).unwrap_or(usize::MAX), bounds::SYMBOLS, "symbols")
}

/// Where a part of a file of this length is.
fn range((at, size): Part, length: usize) -> Range<usize> {
    let clamp = |at: u64| usize::try_from(at).unwrap_or(length).min(length);
    clamp(at)..clamp(at.saturating_add(size))
}

/// A file in which all is zero but what can be needed of it: its symbols, and what a program has of it in
/// memory. Debug information, most of a large file, is not.
///
/// # Errors
/// When it cannot be read, or that is too much.
pub fn content(file: &File) -> Result<Vec<u8>, Unread> {
    read(file, &CONTENT)
}

/// The same with debug information.
///
/// # Errors
/// When it cannot be read, or that is too much.
pub fn with_debug(file: &File) -> Result<Vec<u8>, Unread> {
    read(file, &[header, first_section, headers, tables, loaded, debug])
}

fn read(file: &File, all: &[fn(&[u8]) -> Parts]) -> Result<Vec<u8>, Unread> {
    let length = length(file)?;
    let mut bytes = vec![0; length];
    let mut read: Vec<Range<usize>> = Vec::new();
    for parts in all {
        bounded(&bytes)?;
        for part in parts(&bytes).unwrap_or_default() {
            // Parts may overlap. Each byte is read once, so that there is no more of it than the file has.
            for new in without(range(part, length), &read) {
                let total: usize = read.iter().map(ExactSizeIterator::len).sum::<usize>() + new.len();
                if total > bounds::CONTENT {
                    return Err(Unread::TooLarge(more_than(bounds::CONTENT, "bytes of code, data and symbols")));
                }
                if let Some(part) = bytes.get_mut(new.clone()) {
                    file.read_exact_at(part, new.start as u64)?;
                }
                read.push(new);
                read.sort_by_key(|range| range.start);
            }
        }
    }
    Ok(bytes)
}

/// What of a range lies in none of these, which are in order and apart from each other.
fn without(range: Range<usize>, others: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut rest, mut from) = (Vec::new(), range.start);
    for other in others.iter().filter(|other| other.end > range.start && other.start < range.end) {
        rest.push(from..other.start.max(from));
        from = from.max(other.end);
    }
    rest.push(from..range.end.max(from));
    rest.retain(|range| !range.is_empty());
    rest
}

/// A file's symbols of the names that are wanted, and its content where it has any.
///
/// # Errors
/// When it cannot be read, is no ELF file of this machine, or is too large.
pub fn classify(outline: &mut Outline, file: &File, wanted: impl Fn(&str) -> bool) -> Result<(Elf, Vec<u8>), Unread> {
    let read = outline.of(length(file)?, |part, at| file.read_exact_at(part, at));
    match read.map(|outline| Elf::parse(outline, &wanted)) {
        Ok(Ok(elf)) if elf.symbols.is_empty() => return Ok((elf, Vec::new())),
        Ok(Ok(elf)) => few(&elf)?,
        Ok(Err(ElfError::TooLarge(why))) | Err(Unread::TooLarge(why)) => return Err(Unread::TooLarge(why)),
        // Damaged: the whole file may show how.
        Ok(Err(_)) | Err(Unread::Other(_)) => {}
    }
    outline.give_back();
    let bytes = content(file)?;
    let elf = Elf::parse(&bytes, wanted)?;
    few(&elf)?;
    Ok((elf, bytes))
}

/// An error where more symbols have the names that are looked for than are planned for.
fn few(elf: &Elf) -> Result<(), Unread> {
    if elf.symbols.values().map(Vec::len).sum::<usize>() > bounds::WANTED {
        return Err(Unread::TooLarge(more_than(bounds::WANTED, "symbols of the names that are looked for")));
    }
    Ok(())
}

/// A buffer for one file after the other.
#[derive(Default)]
pub struct Outline {
    /// Zero, but for what was filled of the last file. Memory is only what was.
    buffer: Vec<u8>,
    filled: Vec<Range<usize>>,
}

impl Outline {
    /// A file of this length in which all is zero but what [`Elf::parse`](crate::loader::code::elf::Elf::parse) looks at, save relocations:
    /// they only count where a variable was asked for. `read` fills a buffer from an offset in the file.
    ///
    /// # Errors
    /// When it cannot be read, or its tables overlap: then there is nothing to be saved. Or when they are too large.
    pub fn of(&mut self, length: usize, read: impl Fn(&mut [u8], u64) -> io::Result<()>) -> Result<&[u8], Unread> {
        for range in self.filled.drain(..) {
            if let Some(filled) = self.buffer.get_mut(range) {
                filled.fill(0);
            }
        }
        if self.buffer.len() < length {
            // Not by growing, which would write to all of it.
            self.buffer = vec![0; length];
        }
        let mut bytes = 0;
        for parts in PARTS {
            let known = self.buffer.get(..length).unwrap_or_default();
            bounded(known)?;
            for part in parts(known).unwrap_or_default() {
                let range = range(part, length);
                bytes += range.len();
                if bytes > length + HEADERS {
                    return Err(Unread::Other("the same is read again and again".to_owned()));
                }
                if bytes > bounds::TABLES {
                    return Err(Unread::TooLarge(more_than(bounds::TABLES, "bytes of symbols and headers")));
                }
                self.filled.push(range.clone());
                if let Some(part) = self.buffer.get_mut(range.clone()).filter(|part| !part.is_empty()) {
                    read(part, range.start as u64)?;
                }
            }
        }
        Ok(self.buffer.get(..length).unwrap_or_default())
    }

    /// Gives back the memory of a large file.
    fn give_back(&mut self) {
        if self.filled.iter().map(ExactSizeIterator::len).sum::<usize>() > LARGE {
            *self = Self::default();
        }
    }

    /// Bytes that were read of the last file.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.filled.iter().map(ExactSizeIterator::len).sum()
    }
}

#[allow(clippy::unnecessary_wraps, reason = "as the others")]
fn header(_: &[u8]) -> Parts {
    Some(vec![(0, size_of::<Header>() as u64)])
}

/// Where there are too many sections or segments for the header, the first section has their number.
fn first_section(data: &[u8]) -> Parts {
    let header = Header::parse(data).ok()?;
    Some(vec![(header.e_shoff(LittleEndian), size_of::<SectionHeader64<LittleEndian>>() as u64)])
}

fn headers(data: &[u8]) -> Parts {
    let header = Header::parse(data).ok()?;
    let part = |at, count: u32, each: usize| (at, u64::from(count) * each as u64);
    let segments = header.phnum(LittleEndian, data).ok()?;
    let sections = header.shnum(LittleEndian, data).ok()?;
    Some(vec![
        part(header.e_phoff(LittleEndian), segments, size_of::<ProgramHeader64<LittleEndian>>()),
        part(header.e_shoff(LittleEndian), sections, size_of::<SectionHeader64<LittleEndian>>()),
    ])
}

/// Symbols and their names, names of sections, dynamic section, notes, and the section that marks Go programs.
fn tables(data: &[u8]) -> Parts {
    let header = Header::parse(data).ok()?;
    let mut parts = Vec::new();
    let segments = header.program_headers(LittleEndian, data).ok()?;
    let is = |s: &ProgramHeader64<LittleEndian>, kind| s.p_type(LittleEndian) == kind;
    let dynamic = segments.iter().filter(|s| is(s, elf::PT_DYNAMIC) || is(s, elf::PT_NOTE));
    parts.extend(dynamic.map(|s| s.file_range(LittleEndian)));
    let writable =
        |s: &&ProgramHeader64<LittleEndian>| is(s, elf::PT_LOAD) && s.p_flags(LittleEndian).0 & elf::PF_W.0 != 0;
    let first = segments.iter().find(writable).map(|s| s.file_range(LittleEndian));
    parts.extend(first.map(|(at, size)| (at, size.min(GO_SEARCHED as u64))));
    let sections = header.section_headers(LittleEndian, data).ok()?;
    let mut section = |index: usize| parts.extend(sections.get(index).and_then(|s| s.file_range(LittleEndian)));
    if let Ok(names) = header.section_strings_index(LittleEndian, data) {
        section(names.0);
    }
    for kind in [elf::SHT_DYNSYM, elf::SHT_SYMTAB, elf::SHT_SYMTAB_SHNDX] {
        // Only the first one counts.
        if let Some(index) = sections.iter().position(|s| s.sh_type(LittleEndian) == kind) {
            section(index);
            section(sections.get(index).map_or(0, |s| s.sh_link(LittleEndian) as usize));
        }
    }
    Some(parts)
}

/// What a program has in memory of the file, and the relocations, which give the addresses of variables.
fn loaded(data: &[u8]) -> Parts {
    let header = Header::parse(data).ok()?;
    let segments = header.program_headers(LittleEndian, data).ok()?.iter().take(bounds::SEGMENTS);
    let sections = header.section_headers(LittleEndian, data).ok()?.iter();
    let segments = segments.filter(|s| s.p_type(LittleEndian) == elf::PT_LOAD).map(|s| s.file_range(LittleEndian));
    let relocations = sections.filter(|s| s.sh_type(LittleEndian) == elf::SHT_RELA);
    Some(segments.chain(relocations.filter_map(|s| s.file_range(LittleEndian)).take(RELOCATED)).collect())
}

/// Debug information: sections with names, which a program does not have in memory.
fn debug(data: &[u8]) -> Parts {
    let header = Header::parse(data).ok()?;
    let sections = header.sections(LittleEndian, data).ok()?;
    let named = |s: &&SectionHeader64<LittleEndian>| {
        sections.section_name(LittleEndian, s).is_ok_and(|name| name.starts_with(b".debug_"))
    };
    Some(sections.iter().filter(named).filter_map(|s| s.file_range(LittleEndian)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_once_is_not_read_again() {
        let all = |found: &[Range<usize>]| matches!(found, [one] if *one == (3..9));
        assert!(all(&without(3..9, &[])));
        assert!(all(&without(3..9, &[0..3, 9..12])));
        assert_eq!(without(3..9, &[0..4, 5..6, 8..12]), [4..5, 6..8]);
        assert!(without(3..9, &[0..5, 5..12]).is_empty());
        assert!(without(3..3, &[]).is_empty());
    }
}
