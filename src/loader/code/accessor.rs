//! Fields of a library's structures that functions of it return, read where a probe is cheap.
//!
//! `size_t H5T_get_size(const H5T_t *)` is `mov 0x28(%rdi),%rax; mov 0x10(%rax),%rax; ret`: the kernel emulates none of
//! these instructions (see `prologue`), so probes on its entry and its return are stepped, at some 9 us each. But the
//! code gives the offset of the field. It is read at calls of the function, which are emulated, or at the entry of another
//! function that gets the same pointer.

use crate::loader::code::prologue::SEARCHED;
use crate::loader::code::{bounds, elf};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use std::collections::BTreeSet;

/// Where a field is, seen from the pointer that an accessor gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Bytes from the pointer to the field, or to a pointer to another structure.
    pub first: u16,
    /// Bytes from there to the field.
    pub then: Option<u16>,
}

/// Instructions of an accessor.
const LONGEST: usize = 4;
/// Opcodes before a distance of 32 bits: to code, or to a word that holds an address.
const CALL: [u8; 1] = [0xe8];
const JUMP: [u8; 1] = [0xe9];
const CALL_BY_WORD: [u8; 2] = [0xff, 0x15];
const JUMP_BY_WORD: [u8; 2] = [0xff, 0x25];
/// What stands before the jump of a stub where the linker marks targets of indirect jumps, or bounds are kept.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const BOUND: u8 = 0xf2;
/// Calls of one function. HDF5 has some 150 of `H5T_get_size`.
const MOST: usize = 1 << 10;
const STUBS: usize = 16;

/// The field that a function returns, if it does nothing else. `code` starts at its first byte.
pub fn field(code: &[u8]) -> Option<Field> {
    let mut offsets = Vec::new();
    for insn in decoder(code, 0).iter().take(LONGEST) {
        let base = if offsets.is_empty() { Register::RDI } else { Register::RAX };
        match insn.code() {
            Code::Endbr64 if offsets.is_empty() => {}
            Code::Mov_r64_rm64 if offsets.len() < 2 => offsets.push(offset(&insn, base)?),
            Code::Retnq => {
                let first = *offsets.first()?;
                return Some(Field { first, then: offsets.get(1).copied() });
            }
            _ => return None,
        }
    }
    None
}

/// The offset of the word at a base register that is moved to `%rax`.
fn offset(insn: &Instruction, base: Register) -> Option<u16> {
    let plain = insn.op0_register() == Register::RAX
        && insn.op1_kind() == OpKind::Memory
        && insn.memory_base() == base
        && insn.memory_index() == Register::None
        && insn.segment_prefix() == Register::None;
    u16::try_from(insn.memory_displacement64()).ok().filter(|_| plain)
}

/// A function that a file defines, as its own code calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callee {
    /// Itself, and the stubs for it in the procedure linkage table.
    addresses: Vec<u64>,
    /// The word of the global offset table that these jump through.
    slot: Option<u64>,
}

impl Callee {
    /// `None` where that would take too long.
    pub fn new(file: &[u8], vaddr: u64, slot: Option<u64>) -> Option<Self> {
        let mut addresses = vec![vaddr];
        for (code, start) in code(file)? {
            let Some(slot) = slot else { break };
            for jump in distances(code, start, &JUMP_BY_WORD).filter(|d| d.target == slot) {
                let before = &code[..jump.index];
                let prefix = usize::from(before.ends_with(&[BOUND]));
                let marked = before[..before.len() - prefix].ends_with(&ENDBR64);
                let length = prefix + if marked { ENDBR64.len() } else { 0 };
                addresses.push(jump.address - length as u64);
            }
            if addresses.len() > STUBS {
                return None;
            }
        }
        Some(Self { addresses, slot })
    }

    /// One that is called directly.
    #[cfg(test)]
    pub fn at(vaddr: u64) -> Self {
        Self { addresses: vec![vaddr], slot: None }
    }

    pub fn is_at(&self, address: u64) -> bool {
        self.addresses.contains(&address)
    }
}

/// The code of a file, each part with its address; `None`: too much to look through.
fn code(file: &[u8]) -> Option<Vec<(&[u8], u64)>> {
    let parts = elf::code(file);
    let size = parts.iter().fold(0, |sum: u64, (code, _)| sum.saturating_add(code.len() as u64));
    (size <= bounds::CODE).then_some(parts)
}

/// Where bytes are an opcode, and the address that the 32-bit distance behind it leads to.
struct Distance {
    index: usize,
    address: u64,
    target: u64,
}

fn distances<'a>(code: &'a [u8], vaddr: u64, opcode: &'static [u8]) -> impl Iterator<Item = Distance> + 'a {
    memchr::memmem::find_iter(code, opcode).filter_map(move |index| {
        let (distance, _) = code[index + opcode.len()..].split_first_chunk()?;
        let address = vaddr.wrapping_add(index as u64);
        let end = address.wrapping_add((opcode.len() + distance.len()) as u64);
        let target = end.wrapping_add_signed(i32::from_le_bytes(*distance).into());
        Some(Distance { index, address, target })
    })
}

/// The addresses of the calls of a function in another one, whose code starts at `vaddr`. One that cannot be reached
/// without one before it is left out.
pub fn calls(callee: &Callee, code: &[u8], vaddr: u64) -> Vec<u64> {
    let mut targets = BTreeSet::new();
    let mut tables = code.len() >= SEARCHED;
    for insn in &mut decoder(code, vaddr) {
        if insn.op0_kind() == OpKind::NearBranch64 && insn.flow_control() != FlowControl::Call {
            targets.insert(insn.near_branch_target());
        }
        tables |= insn.flow_control() == FlowControl::IndirectBranch;
    }
    let (mut found, mut covered) = (Vec::new(), false);
    for insn in &mut decoder(code, vaddr) {
        covered &= !tables && !targets.contains(&insn.ip());
        if is_call(&insn) && callee.is_at(insn.near_branch_target()) {
            if !covered {
                found.push(insn.ip());
            }
            covered = true;
        }
        // What follows is not reached from here.
        covered &= !matches!(
            insn.flow_control(),
            FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
        );
    }
    found
}

fn is_call(insn: &Instruction) -> bool {
    insn.code() == Code::Call_rel32_64 && insn.len() == CALL.len() + size_of::<i32>()
}

/// The addresses of all calls of a function in a file, but for those behind a call of `other` in the same function.
/// `None`: there may be calls that cannot be found, or to find them would take too long.
pub fn calls_not_after(file: &[u8], callee: &Callee, other: &Callee) -> Option<Vec<u64>> {
    let starts = elf::function_starts(file);
    let (mut found, mut decoded) = (Vec::new(), 0);
    let mut any = false;
    for (code, vaddr) in code(file)? {
        let through_word = |opcode| distances(code, vaddr, opcode).any(|d| Some(d.target) == callee.slot);
        let jumps = distances(code, vaddr, &JUMP).any(|d| callee.is_at(d.target));
        if jumps || through_word(&CALL_BY_WORD) {
            return None;
        }
        let others = calls_of(other, code, vaddr)?;
        for call in calls_of(callee, code, vaddr)? {
            any = true;
            let start = starts[..starts.partition_point(|start| *start <= call)].last().copied()?;
            decoded += call - start;
            if decoded > bounds::CODE || !begins_instruction(code, vaddr, start, call) {
                return None;
            }
            let before = others.partition_point(|at| *at < call);
            if others[..before].last().is_none_or(|at| *at < start) {
                found.push(call);
            }
        }
    }
    any.then_some(found)
}

/// Where bytes look like a call of a function, in order; `None`: too often.
fn calls_of(callee: &Callee, code: &[u8], vaddr: u64) -> Option<Vec<u64>> {
    let calls = distances(code, vaddr, &CALL).filter(|d| callee.is_at(d.target));
    let found: Vec<u64> = calls.map(|d| d.address).take(MOST + 1).collect();
    (found.len() <= MOST).then_some(found)
}

/// Is there a call at an address, going by the start of its function?
fn begins_instruction(code: &[u8], vaddr: u64, start: u64, at: u64) -> bool {
    let from = start.checked_sub(vaddr).and_then(|from| usize::try_from(from).ok());
    let Some(body) = from.and_then(|from| code.get(from..)) else { return false };
    let body = &body[..body.len().min(SEARCHED)];
    let reached = decoder(body, start).iter().find(|insn| insn.is_invalid() || insn.ip() >= at);
    reached.is_some_and(|insn| insn.ip() == at && is_call(&insn))
}

pub fn decoder(code: &[u8], vaddr: u64) -> Decoder<'_> {
    Decoder::with_ip(64, code, vaddr, DecoderOptions::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// mov 0x160(%rdi),%rax; ret
    const POINTS: [u8; 8] = [0x48, 0x8b, 0x87, 0x60, 0x01, 0, 0, 0xc3];
    /// mov 0x28(%rdi),%rax; mov 0x10(%rax),%rax; ret
    const SIZE: [u8; 9] = [0x48, 0x8b, 0x47, 0x28, 0x48, 0x8b, 0x40, 0x10, 0xc3];

    #[test]
    fn the_field_of_an_accessor_is_found() {
        assert_eq!(field(&POINTS), Some(Field { first: 0x160, then: None }));
        assert_eq!(field(&SIZE), Some(Field { first: 0x28, then: Some(0x10) }));
        let checked = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &SIZE].concat();
        assert_eq!(field(&checked), Some(Field { first: 0x28, then: Some(0x10) }));
    }

    #[test]
    fn other_functions_are_no_accessors() {
        for code in [
            &[][..],
            &[0xc3],
            // mov %rdi,%rax; ret
            &[0x48, 0x89, 0xf8, 0xc3],
            // mov 0x28(%rdi),%eax; ret
            &[0x8b, 0x47, 0x28, 0xc3],
            // mov 0x28(%rsi),%rax; ret
            &[0x48, 0x8b, 0x46, 0x28, 0xc3],
            // mov -8(%rdi),%rax; ret
            &[0x48, 0x8b, 0x47, 0xf8, 0xc3],
            // mov 0x28(%rdi,%rsi),%rax; ret
            &[0x48, 0x8b, 0x44, 0x37, 0x28, 0xc3],
            // mov %fs:0x28(%rdi),%rax; ret
            &[0x64, 0x48, 0x8b, 0x47, 0x28, 0xc3],
            // push %rbp; ret
            &[0x55, 0xc3],
            &SIZE[..8],
        ] {
            assert_eq!(field(code), None, "{code:02x?}");
        }
    }

    /// Code at address 0 with calls of 0x1000 where `None` is.
    fn body(parts: &[Option<&[u8]>]) -> Vec<u8> {
        let mut code = Vec::new();
        for part in parts {
            if let Some(bytes) = part {
                code.extend_from_slice(bytes);
            } else {
                code.extend(CALL);
                code.extend((0x1000 - code.len() as i32 - 4).to_le_bytes());
            }
        }
        code
    }

    #[test]
    fn a_call_that_follows_another_one_is_left_out() {
        // test %rax,%rax
        const TEST: &[u8] = &[0x48, 0x85, 0xc0];
        const RET: &[u8] = &[0xc3];
        let callee = Callee { addresses: vec![0x1000], slot: None };
        let found = |parts: &[Option<&[u8]>]| calls(&callee, &body(parts), 0);
        assert_eq!(found(&[None, Some(TEST), None, Some(RET)]), [0]);
        // js to the end: on the way to the second one lies the first.
        assert_eq!(found(&[None, Some(&[0x78, 5]), None, Some(RET)]), [0]);
        // je to the second one.
        assert_eq!(found(&[Some(&[0x74, 5]), None, None, Some(RET)]), [2, 7]);
        // It is behind a return.
        assert_eq!(found(&[None, Some(RET), None, Some(RET)]), [0, 6]);
        // jmp *%rax: its target is not known.
        assert_eq!(found(&[None, None, Some(&[0xff, 0xe0])]), [0, 5]);
        assert!(found(&[Some(RET)]).is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(file in proptest::collection::vec(any::<u8>(), 0..400), vaddr in any::<u64>()) {
            field(&file);
            if let Some(callee) = Callee::new(&file, vaddr, Some(vaddr)) {
                calls(&callee, &file, vaddr);
                calls_not_after(&file, &callee, &callee);
            }
            begins_instruction(&file, vaddr, vaddr, vaddr.wrapping_add(7));
        }
    }
}
