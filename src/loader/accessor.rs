//! Fields of a library's structures that functions of it return, read where a probe is cheap.
//!
//! `size_t H5T_get_size(const H5T_t *)` is `mov 0x28(%rdi),%rax; mov 0x10(%rax),%rax; ret`: the kernel emulates none of
//! these instructions (see `prologue`), so probes on its entry and its return are stepped, at some 9 us each. But the
//! code says where the field is. It is read at calls of the function, which are emulated, or at the entry of another
//! function that gets the same pointer.

use crate::loader::bounds;
use crate::loader::elf;
use crate::loader::prologue::SEARCHED;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet};

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
/// A `call` with a distance of 32 bits.
const CALL: u8 = 0xe8;
const CALL_LENGTH: usize = 5;
/// Calls of one function. HDF5 has some 150 of `H5T_get_size`.
const MOST: usize = 1 << 10;

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

/// A function, by its address.
#[derive(Debug, Clone, Copy)]
pub struct Callee {
    pub vaddr: u64,
    /// The word of the global offset table that calls of it from the file itself may go through.
    pub slot: Option<u64>,
}

impl Callee {
    /// Does code at this address lead to it: is it the function, or a stub for it in the procedure linkage table?
    fn is_at(self, file: &[u8], address: u64) -> bool {
        if address == self.vaddr {
            return true;
        }
        let (Some(slot), Some(code)) = (self.slot, elf::content(file, address)) else { return false };
        let jump = decoder(code, address).iter().take(2).find(|insn| insn.code() != Code::Endbr64);
        jump.is_some_and(|jump| jump.code() == Code::Jmp_rm64 && jump.ip_rel_memory_address() == slot)
    }
}

/// The addresses of the calls of a function in another one, whose code starts at `vaddr`. One that cannot be reached
/// without one before it is left out.
pub fn calls(file: &[u8], callee: Callee, code: &[u8], vaddr: u64) -> Vec<u64> {
    let mut targets = BTreeSet::new();
    let mut tables = false;
    for insn in &mut decoder(code, vaddr) {
        if insn.op0_kind() == OpKind::NearBranch64 && insn.flow_control() != FlowControl::Call {
            targets.insert(insn.near_branch_target());
        }
        tables |= insn.flow_control() == FlowControl::IndirectBranch;
    }
    let (mut found, mut covered) = (Vec::new(), false);
    for insn in &mut decoder(code, vaddr) {
        covered &= !tables && !targets.contains(&insn.ip());
        if is_call(&insn) && callee.is_at(file, insn.near_branch_target()) {
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
    insn.code() == Code::Call_rel32_64 && insn.len() == CALL_LENGTH
}

/// The addresses of all calls of a function in a file, but for those in functions that also call `other`. None where
/// that would take too long.
pub fn calls_without(file: &[u8], callee: Callee, other: Callee) -> Vec<u64> {
    let starts = elf::function_starts(file);
    let mut found = Vec::new();
    for (code, vaddr) in elf::code(file) {
        if code.len() as u64 > bounds::CODE {
            return Vec::new();
        }
        let (of, others) = (near_calls(file, callee, code, vaddr), near_calls(file, other, code, vaddr));
        if of.len().max(others.len()) > MOST {
            return Vec::new();
        }
        for (function, call) in of.into_iter().filter_map(|at| Some((enclosing(&starts, at)?, at))) {
            let end = starts.get(function + 1).copied().unwrap_or(u64::MAX);
            let start = starts[function];
            let with_other = others.iter().any(|at| (start..end).contains(at));
            if !with_other && begins_instruction(code, vaddr, start, call) {
                found.push(call);
            }
        }
    }
    found
}

/// The number of the function that an address is in.
fn enclosing(starts: &[u64], at: u64) -> Option<usize> {
    starts.partition_point(|start| *start <= at).checked_sub(1)
}

/// Is there an instruction at an address, going by the start of its function?
fn begins_instruction(code: &[u8], vaddr: u64, start: u64, at: u64) -> bool {
    let from = start.checked_sub(vaddr).and_then(|from| usize::try_from(from).ok());
    let Some(body) = from.and_then(|from| code.get(from..)) else { return false };
    let body = &body[..body.len().min(SEARCHED)];
    let reached = decoder(body, start).iter().find(|insn| insn.is_invalid() || insn.ip() >= at);
    reached.is_some_and(|insn| insn.ip() == at && is_call(&insn))
}

/// Where bytes look like a call of a function.
fn near_calls(file: &[u8], callee: Callee, code: &[u8], vaddr: u64) -> Vec<u64> {
    let at = |n: usize| vaddr.wrapping_add(n as u64);
    let target = |n: usize, bytes: &[u8]| {
        let distance = i32::from_le_bytes(bytes.get(1..)?.try_into().ok()?);
        Some(at(n + CALL_LENGTH).wrapping_add_signed(distance.into()))
    };
    let mut stubs = BTreeMap::new();
    let windows = code.windows(CALL_LENGTH).enumerate().filter(|(_, bytes)| bytes[0] == CALL);
    let calls = windows.filter(|(n, bytes)| {
        target(*n, bytes).is_some_and(|to| *stubs.entry(to).or_insert_with(|| callee.is_at(file, to)))
    });
    calls.map(|(n, _)| at(n)).collect()
}

fn decoder(code: &[u8], vaddr: u64) -> Decoder<'_> {
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
    fn accessors_say_which_field_they_return() {
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
                code.push(CALL);
                code.extend((0x1000 - code.len() as i32 - 4).to_le_bytes());
            }
        }
        code
    }

    #[test]
    fn a_call_that_follows_another_one_is_left_out() {
        const CALLEE: Callee = Callee { vaddr: 0x1000, slot: None };
        // test %rax,%rax
        const TEST: &[u8] = &[0x48, 0x85, 0xc0];
        const RET: &[u8] = &[0xc3];
        let found = |parts: &[Option<&[u8]>]| calls(&[], CALLEE, &body(parts), 0);
        assert_eq!(found(&[None, Some(TEST), None, Some(RET)]), [0]);
        // js to the end: on the way to the second one lies the first.
        assert_eq!(found(&[None, Some(&[0x78, 5]), None, Some(RET)]), [0]);
        // je to the second one.
        assert_eq!(found(&[Some(&[0x74, 5]), None, None, Some(RET)]), [2, 7]);
        // It is behind a return.
        assert_eq!(found(&[None, Some(RET), None, Some(RET)]), [0, 6]);
        // jmp *%rax: nobody knows where that leads.
        assert_eq!(found(&[None, None, Some(&[0xff, 0xe0])]), [0, 5]);
        assert!(found(&[Some(RET)]).is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(file in proptest::collection::vec(any::<u8>(), 0..400), vaddr in any::<u64>()) {
            let callee = Callee { vaddr, slot: Some(vaddr) };
            field(&file);
            calls(&file, callee, &file, vaddr);
            calls_without(&file, callee, callee);
            begins_instruction(&file, vaddr, vaddr, vaddr.wrapping_add(7));
        }
    }
}
