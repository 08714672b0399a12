//! What the segments of an ELF file hold, and where in the file: code, data at an address, the beginnings of functions.

use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use crate::loader::code::bounds;
use crate::loader::code::elf::{ElfError, Header, Segment, damaged, header};

/// The file offset of the entry point, from as much of a file as holds the header and those of the segments; `None` for most
/// shared objects.
pub fn entry(head: &[u8]) -> Result<Option<u64>, ElfError> {
    let header = Header::parse(head).map_err(damaged("header"))?;
    let segments = header.program_headers(LittleEndian, head).map_err(damaged("program headers"))?;
    Ok(Some(header.e_entry(LittleEndian)).filter(|&entry| entry != 0).and_then(|entry| file_offset(segments, entry)))
}

/// What the file holds from an address on, to the end of the segment.
pub fn content(data: &[u8], vaddr: u64) -> Option<&[u8]> {
    let segments = header(data).ok()?.program_headers(LittleEndian, data).ok()?;
    segments.iter().filter(|s| s.p_type(LittleEndian) == elf::PT_LOAD).find_map(|s| {
        let into = vaddr.checked_sub(s.p_vaddr(LittleEndian))?;
        s.data(LittleEndian, data).ok()?.get(usize::try_from(into).ok()?..)
    })
}

/// The code that a file holds, each part with its address.
pub fn code(data: &[u8]) -> Vec<(&[u8], u64)> {
    let executable =
        |s: &&Segment| s.p_type(LittleEndian) == elf::PT_LOAD && s.p_flags(LittleEndian).0 & elf::PF_X.0 != 0;
    let segments =
        header(data).and_then(|header| header.program_headers(LittleEndian, data).map_err(damaged("program headers")));
    let code = segments.unwrap_or_default().iter().filter(executable);
    code.filter_map(|s| Some((s.data(LittleEndian, data).ok()?, s.p_vaddr(LittleEndian)))).collect()
}

/// Where the functions of a file begin, in order, by the table that stack unwinders look them up in (`.eh_frame_hdr`,
/// Linux Standard Base 5.0, 10.6.2). It has those that no symbol names. Nothing where the linker made none, or too many.
pub fn function_starts(data: &[u8]) -> Vec<u64> {
    /// Version 1; a pointer of 4 bytes from here; their number, 4 bytes; pairs of 4 bytes from the table's beginning.
    const USUAL: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    let Ok(header) = header(data) else { return Vec::new() };
    let Ok(segments) = header.program_headers(LittleEndian, data) else { return Vec::new() };
    let Some(table) = segments.iter().find(|s| s.p_type(LittleEndian) == elf::PT_GNU_EH_FRAME) else {
        return Vec::new();
    };
    let content = table.data(LittleEndian, data).unwrap_or_default();
    let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
    let Some(count) = content.get(8..).filter(|_| content.starts_with(&USUAL)).and_then(number) else {
        return Vec::new();
    };
    let count = usize::try_from(count).ok().filter(|count| *count <= bounds::FUNCTIONS).unwrap_or(0);
    let entries = content.get(12..).unwrap_or_default().chunks_exact(8).take(count);
    let start = |entry: &[u8]| Some(table.p_vaddr(LittleEndian).wrapping_add_signed(number(entry)?.into()));
    let mut starts: Vec<u64> = entries.filter_map(start).collect();
    starts.sort_unstable();
    starts
}

/// Where in the file the code at an address is.
pub fn file_offset_of_code(data: &[u8], vaddr: u64) -> Option<u64> {
    let segments = header(data).ok()?.program_headers(LittleEndian, data).ok()?;
    file_offset(segments, vaddr)
}

pub(super) fn file_offset(segments: &[Segment], vaddr: u64) -> Option<u64> {
    let within = |s: &Segment| {
        let into = vaddr.checked_sub(s.p_vaddr(LittleEndian))?;
        let executable = s.p_type(LittleEndian) == elf::PT_LOAD && s.p_flags(LittleEndian).0 & elf::PF_X.0 != 0;
        if !executable || into >= s.p_filesz(LittleEndian) {
            return None;
        }
        s.p_offset(LittleEndian).checked_add(into)
    };
    segments.iter().find_map(within)
}
