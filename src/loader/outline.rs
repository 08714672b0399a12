//! Of an ELF file only what tells its symbols and its kind: most libraries of a program are not probed, and what is not read
//! need not come from the disk.

use std::io;
use std::ops::Range;

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader as _};

use super::elf::GO_SEARCHED;

type Header = FileHeader64<LittleEndian>;

/// A place in a file and a number of bytes, as the file says: anything.
type Part = (u64, u64);
/// None: the file does not say.
type Parts = Option<Vec<Part>>;

/// What is read twice of a sound file is smaller.
const HEADERS: usize = 1 << 16;

/// What is read, each part with what was read before it: where the next ones are.
const PARTS: [fn(&[u8]) -> Parts; 4] = [header, first_section, headers, tables];

/// A buffer for one file after the other.
#[derive(Default)]
pub struct Outline {
    /// Zero, but for what was filled of the last file. Memory is only what was.
    buffer: Vec<u8>,
    filled: Vec<Range<usize>>,
}

impl Outline {
    /// A file of this length in which all is zero but what [`Elf::parse`](super::elf::Elf::parse) looks at, save relocations:
    /// they only count where a variable was asked for. `read` fills a buffer from a place in the file.
    ///
    /// # Errors
    /// When it cannot be read, or its tables overlap: then there is nothing to be saved.
    pub fn of(&mut self, length: usize, read: impl Fn(&mut [u8], u64) -> io::Result<()>) -> io::Result<&[u8]> {
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
            for (at, size) in parts(known).unwrap_or_default() {
                let place = |at: u64| usize::try_from(at).unwrap_or(length).min(length);
                let range = place(at)..place(at.saturating_add(size));
                bytes += range.len();
                if bytes > length + HEADERS {
                    return Err(io::Error::other("the same is read again and again"));
                }
                self.filled.push(range.clone());
                if let Some(part) = self.buffer.get_mut(range.clone()).filter(|part| !part.is_empty()) {
                    read(part, range.start as u64)?;
                }
            }
        }
        Ok(self.buffer.get(..length).unwrap_or_default())
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

/// Symbols and their names, names of sections, what the loader is told, notes, and where Go writes that it is Go.
fn tables(data: &[u8]) -> Parts {
    let header = Header::parse(data).ok()?;
    let mut parts = Vec::new();
    let segments = header.program_headers(LittleEndian, data).ok()?;
    let is = |s: &ProgramHeader64<LittleEndian>, kind| s.p_type(LittleEndian) == kind;
    let told = segments.iter().filter(|s| is(s, elf::PT_DYNAMIC) || is(s, elf::PT_NOTE));
    parts.extend(told.map(|s| s.file_range(LittleEndian)));
    let writable =
        |s: &&ProgramHeader64<LittleEndian>| is(s, elf::PT_LOAD) && s.p_flags(LittleEndian).0 & elf::PF_W.0 != 0;
    let first = segments.iter().find(writable).map(|s| s.file_range(LittleEndian));
    parts.extend(first.map(|(at, size)| (at, size.min(GO_SEARCHED as u64))));
    let sections = header.section_headers(LittleEndian, data).ok()?;
    let mut section = |index: usize| parts.extend(sections.get(index).and_then(|s| s.file_range(LittleEndian)));
    if let Ok(names) = header.section_strings_index(LittleEndian, data) {
        section(names.0);
    }
    for (index, header) in sections.iter().enumerate() {
        if [elf::SHT_DYNSYM, elf::SHT_SYMTAB, elf::SHT_SYMTAB_SHNDX].contains(&header.sh_type(LittleEndian)) {
            section(index);
            section(header.sh_link(LittleEndian) as usize);
        }
    }
    Some(parts)
}
