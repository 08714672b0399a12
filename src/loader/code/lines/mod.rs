//! Where lines of a source file begin and end in a program's code: by its line table (DWARF), and by where its
//! instructions lead.

mod debug;
mod flow;
mod frame;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use gimli::{EndianSlice, LittleEndian};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{Object as _, ObjectSection as _};

use crate::catalog::Lines;
use crate::loader::code::bounds::{self, more_than};
use crate::loader::code::elf;

pub use frame::Frame;

type Reader<'a> = EndianSlice<'a, LittleEndian>;
type File<'a> = ElfFile<'a, FileHeader64<object::LittleEndian>>;

/// Why lines are not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum No {
    /// They are not of this program: a sentence of which the program is the subject.
    NotHere(String),
    /// They are, and cannot be a phase.
    Refused(String),
}

impl From<gimli::Error> for No {
    fn from(why: gimli::Error) -> Self {
        Self::NotHere(format!("has damaged debug information ({why})"))
    }
}

/// A place in the code, by its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub offset: u64,
    pub frame: Frame,
    pub begins: bool,
    pub ends: bool,
    /// By a jump out of the function, in which they may go on.
    pub tail: bool,
    /// Of the function.
    pub starts: bool,
}

/// A function's code, and what of it is of the lines: addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    function: String,
    /// The first is where it starts.
    parts: Vec<Range<u64>>,
    inside: Vec<Range<u64>>,
    /// Instructions of theirs among those of other lines.
    moved: Vec<Range<u64>>,
}

/// Where lines begin and end, by address, in each function that has them (an inlined one is in several).
pub fn points(bytes: &[u8], lines: &Lines) -> Result<BTreeMap<u64, Point>, No> {
    let damaged = |what: &str| No::NotHere(format!("is damaged: {what}"));
    let file = File::parse(bytes).map_err(|why| damaged(&why.to_string()))?;
    bounded(&file)?;
    let mut points = BTreeMap::new();
    for region in debug::regions(&file, lines)? {
        let refused = |why: String| No::Refused(format!("{}: {why}", region.function));
        let mut parts = Vec::new();
        for part in &region.parts {
            let offset = elf::file_offset_of_code(bytes, part.start).and_then(|at| usize::try_from(at).ok());
            let size = usize::try_from(part.end.saturating_sub(part.start)).unwrap_or(usize::MAX);
            let code = offset.and_then(|at| bytes.get(at..at.checked_add(size)?));
            parts.push((part.start, code.ok_or_else(|| damaged("a function is not in the file"))?));
        }
        let flow = flow::of(&parts, region.inside, region.moved).map_err(refused)?;
        let frames = frame::Frames::new(&file, region.parts.iter().map(|part| part.start)).map_err(refused)?;
        let starts = region.parts.first().map(|part| part.start);
        for address in flow.begins.iter().chain(&flow.ends).copied().chain(starts) {
            let offset = elf::file_offset_of_code(bytes, address).ok_or_else(|| damaged("code is not in the file"))?;
            let frame = frames.at(address).map_err(refused)?;
            let (begins, ends) = (flow.begins.contains(&address), flow.ends.contains(&address));
            let (tail, starts) = (flow.tails.contains(&address), starts == Some(address));
            points.insert(address, Point { offset, frame, begins, ends, tail, starts });
        }
    }
    Ok(points)
}

/// A small file may say that its debug information is large once it is decompressed.
fn bounded(file: &File<'_>) -> Result<(), No> {
    let read = |name: &str| name.starts_with(".debug_") || name == ".eh_frame";
    let sections = file.sections().filter(|section| section.name().is_ok_and(read));
    let sizes = sections.map(|section| section.compressed_data().map_or(0, |data| data.uncompressed_size));
    if sizes.fold(0, u64::saturating_add) > bounds::CONTENT as u64 {
        let why = more_than(bounds::CONTENT, "bytes of debug information");
        return Err(No::NotHere(format!("is not looked into: {why}")));
    }
    Ok(())
}

/// A section's content.
fn section<'a>(file: &File<'a>, name: &str) -> Result<Cow<'a, [u8]>, object::Error> {
    let section = file.section_by_name(name);
    section.map_or(Ok(Cow::Borrowed(&[][..])), |section| section.uncompressed_data())
}

#[cfg(test)]
mod tests;
