//! Finds where a function that makes its frame first is probed at less cost: behind that, and before the frame goes.
//!
//! Functions with variable arguments (`printf`, `fscanf`) begin with `sub $0xd8,%rsp`, which the kernel steps out of
//! line at every call. It emulates the jump that follows (are there vector registers to save?), and the one behind the
//! call of the function that does the work, which compares the stack's canary and leads to `__stack_chk_fail`. There
//! the stack pointer is a known number of words below the return address, where no return probe could be set.

use crate::loader::code::prologue::{self, Emulation};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind, Register, UsedMemory,
};
use std::ops::RangeInclusive;

/// Such functions have some thirty instructions; a longer one is not looked into.
const LONGEST: usize = 1024;
/// The largest frame that fits into a cookie (`IOT_COOKIE_WORDS`).
const MOST_WORDS: u64 = 127;
const WORD: u64 = 8;

/// Where a function is probed: offsets from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framed {
    /// Where its arguments stand in their registers still.
    pub enter: u16,
    /// The instruction there.
    pub text: String,
    /// From the stack pointer to the return address, at all of these points.
    pub words: u8,
    /// Where what it returns stands in its register, once in each call.
    pub exits: Vec<u16>,
}

/// Looks for such points in a function, of which this is all of the code. `arguments` has a bit for each that is read.
pub fn find(body: &[u8], arguments: u16) -> Option<Framed> {
    let code = Function::new(body)?;
    let (enter, size) = code.enter(arguments)?;
    let mut exits = Vec::new();
    for (at, insn) in code.all.iter().enumerate() {
        match insn.flow_control() {
            FlowControl::Return => {
                let (exit, above) = code.exit(at)?;
                (above == size && exit.ip() > enter.ip()).then_some(())?;
                exits.push(exit.ip() as u16);
            }
            // It would go on in another function, or nobody knows where.
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch if code.target(insn).is_none() => {
                return None;
            }
            FlowControl::IndirectBranch => return None,
            _ => {}
        }
    }
    let words = (size / WORD) as u8;
    (!exits.is_empty()).then(|| Framed { enter: enter.ip() as u16, text: prologue::text(enter), words, exits })
}

/// The code of a function: addresses count from its start.
struct Function<'a> {
    body: &'a [u8],
    all: Vec<Instruction>,
}

impl<'a> Function<'a> {
    fn new(body: &'a [u8]) -> Option<Self> {
        if body.len() > LONGEST {
            return None;
        }
        let all: Vec<Instruction> = Decoder::with_ip(64, body, 0, DecoderOptions::NONE).iter().collect();
        all.iter().all(|insn| !insn.is_invalid()).then_some(Self { body, all })
    }

    /// Where a jump leads, if that is in the function.
    fn target(&self, insn: &Instruction) -> Option<u64> {
        let near = insn.op0_kind() == OpKind::NearBranch64;
        let target = near.then(|| insn.near_branch_target());
        target.filter(|target| *target < self.body.len() as u64)
    }

    /// Does a jump lead to one of these addresses?
    fn jumped_to(&self, addresses: &RangeInclusive<u64>) -> bool {
        let mut targets = self.all.iter().filter_map(|insn| self.target(insn));
        targets.any(|target| addresses.contains(&target))
    }

    /// The first instruction that kernels emulate, where the arguments are as they were, and how many bytes the stack
    /// pointer has gone down before it.
    fn enter(&self, arguments: u16) -> Option<(&Instruction, u64)> {
        let mut infos = InstructionInfoFactory::new();
        let mut size = 0;
        for insn in &self.all {
            if prologue::emulation(insn, self.body) == Emulation::Always {
                let good =
                    size > 0 && size % WORD == 0 && size / WORD <= MOST_WORDS && !self.jumped_to(&(0..=insn.ip()));
                return good.then_some((insn, size));
            }
            if let Some(down) = moves_stack(insn, &[Code::Sub_rm64_imm32, Code::Sub_rm64_imm8]) {
                size += down;
                continue;
            }
            let info = infos.info(insn);
            let own = |memory: &UsedMemory| {
                !prologue::writes(memory.access())
                    || memory.base() == Register::RSP
                        && memory.index() == Register::None
                        && memory.displacement().saturating_add(memory.memory_size().size() as u64) <= size
            };
            let plain = insn.flow_control() == FlowControl::Next
                && prologue::keeps_registers(info, arguments)
                && info.used_memory().iter().all(own);
            plain.then_some(())?;
        }
        None
    }

    /// Of a return instruction: the jump that is passed once before it, with the result in its registers, and how many
    /// bytes the stack pointer goes up between them.
    fn exit(&self, at: usize) -> Option<(&Instruction, u64)> {
        let returns = self.all.get(at)?;
        let mut infos = InstructionInfoFactory::new();
        let mut size = 0;
        for insn in self.all.get(..at)?.iter().rev() {
            if insn.flow_control() == FlowControl::ConditionalBranch {
                let good = prologue::emulation(insn, self.body) == Emulation::Always
                    && self.never_returns(insn)
                    && !self.jumped_to(&(insn.ip() + 1..=returns.ip()));
                return good.then_some((insn, size));
            }
            if let Some(up) = moves_stack(insn, &[Code::Add_rm64_imm32, Code::Add_rm64_imm8]) {
                size += up;
                continue;
            }
            // Of a result of two words the second is in rdx.
            let kept = |register: Register| matches!(register, Register::RAX | Register::RDX | Register::RSP);
            let info = infos.info(insn);
            let writes =
                |r: &iced_x86::UsedRegister| prologue::writes(r.access()) && kept(r.register().full_register());
            let plain = insn.flow_control() == FlowControl::Next && !info.used_registers().iter().any(writes);
            plain.then_some(())?;
        }
        None
    }

    /// A jump to the last instruction of the function, which is a call: what is called does not return.
    fn never_returns(&self, jump: &Instruction) -> bool {
        let last = self.all.last().filter(|last| last.flow_control() == FlowControl::Call);
        last.is_some_and(|last| self.target(jump) == Some(last.ip()))
    }
}

/// By how many bytes an instruction with one of these codes moves the stack pointer.
fn moves_stack(insn: &Instruction, codes: &[Code]) -> Option<u64> {
    let moves = codes.contains(&insn.code()) && insn.op0_register() == Register::RSP;
    let by = moves.then(|| insn.immediate(1) as i64)?;
    u64::try_from(by).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `fprintf` of the GNU C library 2.36 for `x86_64` (Debian 12), of the registers for vectors only two.
    const FPRINTF: &[u8] = &[
        0x48, 0x81, 0xec, 0xd8, 0x00, 0x00, 0x00, // sub $0xd8,%rsp
        0x48, 0x89, 0x54, 0x24, 0x30, // mov %rdx,0x30(%rsp)
        0x4c, 0x89, 0x4c, 0x24, 0x48, // mov %r9,0x48(%rsp)
        0x84, 0xc0, // test %al,%al
        0x74, 0x0d, // je 0x22
        0x0f, 0x29, 0x44, 0x24, 0x50, // movaps %xmm0,0x50(%rsp)
        0x0f, 0x29, 0xbc, 0x24, 0xc0, 0x00, 0x00, 0x00, // movaps %xmm7,0xc0(%rsp)
        0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00, // 0x22: mov %fs:0x28,%rax
        0x48, 0x89, 0x44, 0x24, 0x18, // mov %rax,0x18(%rsp)
        0x31, 0xc9, // xor %ecx,%ecx
        0xe8, 0x00, 0x01, 0x00, 0x00, // call
        0x48, 0x8b, 0x54, 0x24, 0x18, // mov 0x18(%rsp),%rdx
        0x64, 0x48, 0x2b, 0x14, 0x25, 0x28, 0x00, 0x00, 0x00, // sub %fs:0x28,%rdx
        0x75, 0x08, // 0x45: jne 0x4f
        0x48, 0x81, 0xc4, 0xd8, 0x00, 0x00, 0x00, // add $0xd8,%rsp
        0xc3, // ret
        0xe8, 0x00, 0x02, 0x00, 0x00, // 0x4f: call __stack_chk_fail
    ];
    const ALL: u16 = 0x3f;

    fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut code = FPRINTF.to_vec();
        code[at..at + bytes.len()].copy_from_slice(bytes);
        code
    }

    #[test]
    fn a_function_with_variable_arguments_is_probed_in_its_frame() {
        let expected = Framed { enter: 0x13, text: "je".to_owned(), words: 27, exits: vec![0x45] };
        assert_eq!(find(FPRINTF, ALL), Some(expected));
    }

    #[test]
    fn what_would_miss_a_call_or_see_another_is_refused() {
        let refused = |what: &str, code: &[u8]| assert_eq!(find(code, ALL), None, "{what}");
        refused("its last call may return", &[FPRINTF, &[0xc3]].concat());
        refused("the canary's jump leads into the function", &with(0x46, &[0xdb]));
        refused("the frame is another one at its end", &with(0x4a, &[0xd0]));
        refused("the frame does not fit", &with(3, &[0x00, 0x08]));
        refused("an argument is overwritten", &with(7, &[0x48, 0x8b, 0x54, 0x24, 0x30]));
        let small = |size: u8| [&FPRINTF[..3], &[size], &FPRINTF[4..0x4a], &[size], &FPRINTF[0x4b..]].concat();
        assert_eq!(find(&small(0x50), ALL).map(|found| found.words), Some(10));
        refused("the caller's stack is written to", &small(0x48));
        refused("the result is overwritten", &with(0x47, &[0x48, 0x81, 0xc0]));
        refused("a jump passes the exit over", &with(0x14, &[0x32]));
        refused("a jump leads to its start", &with(0x14, &[0xeb]));
        refused("it is left by a jump", &with(0x2b, &[0xeb, 0x70]));
        assert!(find(FPRINTF, 0b11).is_some());
        assert!(find(&with(7, &[0x48, 0x8b, 0x54, 0x24, 0x30]), 0b11).is_some(), "nobody looks at the third argument");
    }

    proptest! {
        #[test]
        fn points_are_within_any_code(
            code in prop::collection::vec(any::<u8>(), 0..200),
            at in 0..FPRINTF.len(),
            byte: u8,
        ) {
            for code in [code, with(at, &[byte])] {
                if let Some(found) = find(&code, ALL) {
                    prop_assert!(found.exits.iter().chain([&found.enter]).all(|at| usize::from(*at) < code.len()));
                    prop_assert!(found.exits.iter().all(|exit| *exit > found.enter) && found.words > 0);
                }
            }
        }
    }
}
