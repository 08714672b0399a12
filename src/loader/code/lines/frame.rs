//! Where a function's return address stands while its code runs, by the tables of stack unwinders (System V ABI, AMD64,
//! 3.7; DWARF 5, 6.4).

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EndianSlice, LittleEndian, Register, UnwindContext, UnwindSection,
    X86_64,
};
use object::{Object as _, ObjectSection as _};

use crate::loader::code::lines::{File, Reader, section};

/// The end of the return address: so many words from a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The frame pointer; else the stack pointer.
    pub base: bool,
    pub words: u32,
}

/// `IOT_FRAME_WORDS`.
const MOST: u32 = 0x3ffff;
const WORD: i64 = 8;

type Rows = Vec<(std::ops::Range<u64>, Result<Frame, ()>)>;

/// Those of a function.
pub struct Frames(Rows);

impl Frames {
    /// Of the functions, or parts of one, that start at these addresses.
    pub fn new(file: &File<'_>, starts: impl Iterator<Item = u64>) -> Result<Self, String> {
        let text = |why: &dyn std::fmt::Display| format!("its table for stack unwinders cannot be read: {why}");
        let address = |name: &str| file.section_by_name(name).map_or(0, |s| s.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let read = |name| section(file, name).map_err(|why| text(&why));
        let (eh, debug) = (read(".eh_frame")?, read(".debug_frame")?);
        let mut rows = Rows::new();
        for start in starts {
            let mut own = of(&EhFrame::new(&eh, LittleEndian), &bases, start).map_err(|why| text(&why))?;
            if own.is_empty() {
                let mut section = DebugFrame::from(EndianSlice::new(&debug, LittleEndian));
                section.set_address_size(8);
                own = of(&section, &bases, start).map_err(|why| text(&why))?;
            }
            rows.extend(own);
        }
        Ok(Self(rows))
    }

    pub fn at(&self, address: u64) -> Result<Frame, String> {
        let row = self.0.iter().find(|(range, _)| range.contains(&address));
        match row {
            Some((_, Ok(frame))) => Ok(*frame),
            Some((_, Err(()))) => Err(format!("where its return address stands at {address:#x} is not a simple rule")),
            None => Err(format!("nothing tells where its return address stands at {address:#x}")),
        }
    }
}

fn of<'a, S: UnwindSection<Reader<'a>>>(section: &S, bases: &BaseAddresses, start: u64) -> gimli::Result<Rows> {
    let fde = match section.fde_for_address(bases, start, S::cie_from_offset) {
        Ok(fde) => fde,
        Err(gimli::Error::NoUnwindInfoForAddress) => return Ok(Rows::new()),
        Err(why) => return Err(why),
    };
    let mut context = UnwindContext::new();
    let mut table = fde.rows(section, bases, &mut context)?;
    let mut rows = Rows::new();
    while let Some(row) = table.next_row()? {
        let frame = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => frame(*register, *offset),
            CfaRule::Expression(_) => Err(()),
        };
        rows.push((row.start_address()..row.end_address(), frame));
    }
    Ok(rows)
}

fn frame(register: Register, offset: i64) -> Result<Frame, ()> {
    let words = u32::try_from(offset / WORD).ok().filter(|words| (1..=MOST).contains(words) && offset % WORD == 0);
    let known = register == X86_64::RSP || register == X86_64::RBP;
    words.filter(|_| known).map(|words| Frame { base: register == X86_64::RBP, words }).ok_or(())
}
