//! Chooses where in a function's first instructions a probe costs least and still sees the call as it was made.
//!
//! At a breakpoint the kernel emulates only a few instructions (`arch/x86/kernel/uprobes.c`: `branch_setup_xol_ops`,
//! `push_setup_xol_ops`) and steps all others out of line, at about ten times the cost. `endbr64`, the first
//! instruction of every function of a CET build, is among the others; the `push` behind it is not.
//! A probe may lie behind an instruction only when that one leaves the stack pointer and the arguments that are looked at
//! as they were: otherwise these are lost, or the return probe replaces something that is not the return address.

use iced_x86::{
    Code, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory,
    OpAccess, OpKind, Register,
};

/// What the probed instruction costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsnClass {
    /// The kernel does its work itself.
    Emulated,
    /// The kernel lets the program execute a copy of it, with a trap after it.
    Stepped,
}

impl InsnClass {
    /// The name in the dataset.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emulated => "emulated",
            Self::Stepped => "stepped",
        }
    }
}

/// Where to probe a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Bytes from the function's start.
    pub skip: u8,
    pub class: InsnClass,
    /// The probed instruction: mnemonic, and its register if it has just one operand.
    pub text: String,
}

/// Why a function cannot be probed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrologueError {
    #[error("the function ends within its first instruction")]
    Truncated,
    #[error("the first bytes are no instruction: {0}")]
    Undecodable(String),
    #[error("a breakpoint (int3) is in the file already, put there by another tool")]
    Breakpoint,
}

/// Instructions a probe may be moved past.
const MOVES: usize = 4;
/// A longer function is not searched for jumps, so its probe stays at its start.
pub const SEARCHED: usize = 1 << 16;
/// The longest instruction.
const INSN_MAX: usize = 15;
/// The integer argument registers of the `x86_64` calling convention (System V ABI, AMD64, 3.2.3).
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
/// The kernel's own multi-byte nops (`arch/x86/include/asm/nops.h`), up to the longest without a prefix that it refuses.
const NOPS: [&[u8]; 7] = [
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

/// Which kernels emulate an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emulation {
    /// All that matter here.
    Always,
    /// Those of 2025 and later (multi-byte nops).
    Newer,
    Never,
}

/// Chooses the probe of a function. `code` starts at its first byte and `size` is the symbol's size (0: unknown, then
/// the probe stays at the start). `arguments` are those that are looked at, as bits.
pub fn choose(code: &[u8], size: u64, arguments: u16) -> Result<Probe, PrologueError> {
    let length = if size == 0 { INSN_MAX } else { usize::try_from(size).unwrap_or(usize::MAX) };
    let body = &code[..code.len().min(length)];
    let mut decoder = decoder(body);
    let first = decoder.decode();
    match decoder.last_error() {
        DecoderError::None => {}
        DecoderError::NoMoreBytes => return Err(PrologueError::Truncated),
        _ => {
            let shown: Vec<String> = body.iter().take(8).map(|b| format!("{b:02x}")).collect();
            return Err(PrologueError::Undecodable(shown.join(" ")));
        }
    }
    if first.code() == Code::Int3 {
        return Err(PrologueError::Breakpoint);
    }
    let best = if size == 0 || body.len() > SEARCHED { first } else { walk(body, arguments).unwrap_or(first) };
    let insn = if jumped_over(body, best.ip()) { first } else { best };
    let class = if emulation(&insn, body) == Emulation::Never { InsnClass::Stepped } else { InsnClass::Emulated };
    // At most MOVES instructions of at most INSN_MAX bytes: below 256.
    Ok(Probe { skip: insn.ip() as u8, class, text: text(&insn) })
}

fn decoder(body: &[u8]) -> Decoder<'_> {
    Decoder::with_ip(64, body, 0, DecoderOptions::NONE)
}

/// The first instruction in reach that every kernel emulates, else the first that newer ones do.
fn walk(body: &[u8], arguments: u16) -> Option<Instruction> {
    let mut infos = InstructionInfoFactory::new();
    let mut newer = None;
    for insn in decoder(body).iter().take(MOVES + 1) {
        if insn.is_invalid() {
            break;
        }
        match emulation(&insn, body) {
            Emulation::Always => return Some(insn),
            Emulation::Newer => newer = newer.or(Some(insn)),
            Emulation::Never => {}
        }
        if !may_pass(&mut infos, &insn, arguments) {
            break;
        }
    }
    newer
}

pub(super) fn emulation(insn: &Instruction, body: &[u8]) -> Emulation {
    let start = insn.ip() as usize;
    let bytes = &body[start..start + insn.len()];
    match bytes {
        // nop; push of any register; call, jmp and short conditional jumps; near conditional jumps. No prefix but REX.B.
        [0x90 | 0x50..=0x57]
        | [0x41, 0x50..=0x57]
        | [0xe8 | 0xe9, _, _, _, _]
        | [0xeb | 0x70..=0x7f, _]
        | [0x0f, 0x80..=0x8f, _, _, _, _] => Emulation::Always,
        nop if NOPS.contains(&nop) => Emulation::Newer,
        _ => Emulation::Never,
    }
}

/// Whether the call looks the same behind an instruction as before it.
fn may_pass(infos: &mut InstructionInfoFactory, insn: &Instruction, arguments: u16) -> bool {
    let info = infos.info(insn);
    insn.flow_control() == FlowControl::Next
        && keeps_registers(info, arguments)
        // What an argument points at, or the return address.
        && !info.used_memory().iter().any(|m| writes(m.access()))
}

/// Whether an instruction leaves the stack pointer and these arguments as they are.
pub(super) fn keeps_registers(info: &InstructionInfo, arguments: u16) -> bool {
    let kept = |register: Register| {
        let argument = ARGUMENTS.iter().position(|r| *r == register);
        register == Register::RSP || argument.is_some_and(|n| arguments & 1 << n != 0)
    };
    !info.used_registers().iter().any(|r| writes(r.access()) && kept(r.register().full_register()))
}

pub(super) fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Whether the function jumps to an instruction behind its first and up to `end`: a probe there would count more
/// than calls.
fn jumped_over(body: &[u8], end: u64) -> bool {
    let jumps =
        |insn: &Instruction| insn.op0_kind() == OpKind::NearBranch64 && (1..=end).contains(&insn.near_branch_target());
    end > 0 && decoder(body).iter().any(|insn| jumps(&insn))
}

pub(super) fn text(insn: &Instruction) -> String {
    let mnemonic = format!("{:?}", insn.mnemonic()).to_lowercase();
    if insn.op_count() == 1 && insn.op0_kind() == OpKind::Register {
        return format!("{mnemonic} {:?}", insn.op0_register()).to_lowercase();
    }
    mnemonic
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RET: u8 = 0xc3;
    const ALL: u16 = 0x3f;

    /// The probe on a function of exactly these bytes.
    fn probe(code: &[u8]) -> (u8, InsnClass, String) {
        let p = choose(code, code.len() as u64, ALL).unwrap();
        (p.skip, p.class, p.text)
    }

    fn emulated(skip: u8, text: &str) -> (u8, InsnClass, String) {
        (skip, InsnClass::Emulated, text.to_owned())
    }

    fn stepped(text: &str) -> (u8, InsnClass, String) {
        (0, InsnClass::Stepped, text.to_owned())
    }

    #[test]
    fn what_the_kernel_emulates_is_probed_where_it_stands() {
        for (code, text) in [
            (&[0x55][..], "push rbp"),
            (&[0x41, 0x57], "push r15"),
            (&[0x90], "nop"),
            (&[0x0f, 0x1f, 0x44, 0x00, 0x00], "nop"),
            (&[0xe8, 1, 2, 3, 4], "call"),
            (&[0xe9, 1, 2, 3, 4], "jmp"),
            (&[0xeb, 5], "jmp"),
            (&[0x74, 5], "je"),
            (&[0x0f, 0x88, 1, 2, 3, 4], "js"),
        ] {
            assert_eq!(probe(&[code, &[RET]].concat()), emulated(0, text), "{code:02x?}");
        }
    }

    #[test]
    fn endbr64_is_passed_over() {
        assert_eq!(probe(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, RET]), emulated(4, "push rbp"));
        assert_eq!(probe(&[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x54, RET]), emulated(4, "push r12"));
        assert_eq!(probe(&[0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0, RET]), stepped("endbr64"));
    }

    #[test]
    fn a_push_beats_a_nop_that_only_newer_kernels_emulate() {
        let nop5_push = [0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x55, RET];
        assert_eq!(probe(&nop5_push), emulated(9, "push rbp"));
        let nop5_sub = [0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x48, 0x83, 0xec, 8, RET];
        assert_eq!(probe(&nop5_sub), emulated(4, "nop"));
    }

    #[test]
    fn nothing_lies_behind_a_move_of_the_stack_pointer() {
        // sub $8,%rsp; test %eax,%eax; js
        assert_eq!(probe(&[0x48, 0x83, 0xec, 8, 0x85, 0xc0, 0x78, 5, RET]), stepped("sub"));
        // and $-16,%rsp; push %rbp
        assert_eq!(probe(&[0x48, 0x83, 0xe4, 0xf0, 0x55, RET]), stepped("and"));
        // leave, pop and lea too
        assert_eq!(probe(&[0xc9, 0x55, RET]), stepped("leave"));
        assert_eq!(probe(&[0x8f, 0xc0, 0x55, RET]), stepped("pop rax"));
        assert_eq!(probe(&[0x48, 0x8d, 0x64, 0x24, 0xf8, 0x55, RET]), stepped("lea"));
    }

    #[test]
    fn nothing_lies_behind_a_write_to_an_argument() {
        for (code, text) in [
            (&[0x48, 0x89, 0xc7][..], "mov"), // mov %rax,%rdi
            (&[0x31, 0xf6], "xor"),           // xor %esi,%esi
            (&[0xb2, 1], "mov"),              // mov $1,%dl
            (&[0x66, 0xb9, 1, 0], "mov"),     // mov $1,%cx
            (&[0x41, 0xb0, 1], "mov"),        // mov $1,%r8b
            (&[0x4c, 0x0f, 0x44, 0xc8], "cmove"),
            (&[0xc6, 0x07, 0], "mov"), // movb $0,(%rdi): what an argument points at
            (&[0x48, 0x99], "cqo"),    // writes %rdx
        ] {
            assert_eq!(probe(&[code, &[0x55, RET]].concat()), stepped(text), "{code:02x?}");
        }
    }

    #[test]
    fn arguments_that_are_not_looked_at_may_be_written() {
        // mov $6,%r9d; jmp
        let wrapper = [0x41, 0xb9, 6, 0, 0, 0, 0xe9, 1, 2, 3, 4];
        let probed = |arguments| choose(&wrapper, wrapper.len() as u64, arguments).unwrap();
        assert_eq!((probed(0x1f).skip, probed(0x1f).class), (6, InsnClass::Emulated));
        assert_eq!((probed(ALL).skip, probed(ALL).class), (0, InsnClass::Stepped));
        // sub $8,%rsp; push %rbp
        assert_eq!(choose(&[0x48, 0x83, 0xec, 8, 0x55, RET], 6, 0).unwrap().class, InsnClass::Stepped);
    }

    #[test]
    fn harmless_instructions_are_passed_over_but_not_more_than_four() {
        // mov %rsp,%rax; cmpb $0,(%rip); mov %rdi,%r10; then jne
        let start = [0x48, 0x89, 0xe0, 0x80, 0x3d, 1, 2, 3, 4, 0, 0x49, 0x89, 0xfa];
        assert_eq!(probe(&[&start[..], &[0x75, 9, RET]].concat()), emulated(13, "jne"));
        let mov_r10 = [0x49, 0x89, 0xfa];
        assert_eq!(probe(&[&mov_r10.repeat(4)[..], &[0x55, RET]].concat()), emulated(12, "push rbp"));
        assert_eq!(probe(&[&mov_r10.repeat(5)[..], &[0x55, RET]].concat()), stepped("mov"));
    }

    #[test]
    fn nothing_lies_behind_a_branch_or_trap() {
        // ret; jmp *%rax; syscall; ud2, each with a push behind it
        assert_eq!(probe(&[RET, 0x55]), stepped("ret"));
        assert_eq!(probe(&[0xff, 0xe0, 0x55]), stepped("jmp rax"));
        assert_eq!(probe(&[0x0f, 0x05, 0x55]), stepped("syscall"));
        assert_eq!(probe(&[0x0f, 0x0b, 0x55]), stepped("ud2"));
    }

    #[test]
    fn the_function_ends_the_walk() {
        assert_eq!(probe(&[RET]), stepped("ret"));
        // The push belongs to the next function.
        let p = choose(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, RET], 4, ALL).unwrap();
        assert_eq!((p.skip, p.class), (0, InsnClass::Stepped));
        // The size is not known.
        let p = choose(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, RET], 0, ALL).unwrap();
        assert_eq!((p.skip, p.class), (0, InsnClass::Stepped));
        assert_eq!(choose(&[0x55, 0x06], 0, ALL).unwrap().skip, 0);
    }

    #[test]
    fn a_jump_to_a_skipped_instruction_keeps_the_probe_at_the_start() {
        // mov %rdi,%r10; push %rbp; jmp to TARGET; ret
        let looped = |target: i8| [0x49, 0x89, 0xfa, 0x55, 0xeb, (target - 6) as u8, RET];
        assert_eq!(probe(&looped(3)), stepped("mov"));
        assert_eq!(probe(&looped(1)), stepped("mov"));
        assert_eq!(probe(&looped(0)), emulated(3, "push rbp"));
        assert_eq!(probe(&looped(4)), emulated(3, "push rbp"));
        // The same from far behind, by a near conditional jump.
        let far = |target: i32| {
            let mut code = vec![0x49, 0x89, 0xfa, 0x55];
            code.resize(300, 0x90);
            code.extend([0x0f, 0x84]);
            code.extend((target - 306).to_le_bytes());
            code
        };
        assert_eq!(probe(&far(3)), stepped("mov"));
        assert_eq!(probe(&far(0)), emulated(3, "push rbp"));
        // Not searched to its end: not moved.
        let mut huge = far(0);
        huge.resize(SEARCHED + 1, 0x90);
        assert_eq!(probe(&huge), stepped("mov"));
    }

    #[test]
    fn nops_the_kernel_refuses_or_does_not_know_are_not_chosen() {
        // nopw %cs:0(%rax,%rax,1), pause
        let cs_nop = [0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
        assert_eq!(probe(&[&cs_nop[..], &[0x55, RET]].concat()), emulated(10, "push rbp"));
        assert_eq!(probe(&[0xf3, 0x90, RET]), stepped("pause"));
    }

    #[test]
    fn a_function_that_cannot_be_probed_has_a_reason() {
        assert_eq!(choose(&[], 10, ALL), Err(PrologueError::Truncated));
        assert_eq!(choose(&[0x48, 0x83], 9, ALL), Err(PrologueError::Truncated));
        assert_eq!(choose(&[0x48, 0x83, 0xec, 8], 2, ALL), Err(PrologueError::Truncated));
        assert_eq!(choose(&[0xcc, 0x55], 2, ALL), Err(PrologueError::Breakpoint));
        assert_eq!(choose(&[0x06, 0x55], 2, ALL), Err(PrologueError::Undecodable("06 55".into())));
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_offset_within_the_function(code in prop::collection::vec(any::<u8>(), 0..200), size in 0..300_u64) {
            if let Ok(p) = choose(&code, size, ALL) {
                prop_assert!(usize::from(p.skip) < code.len());
                prop_assert!(p.skip == 0 || u64::from(p.skip) < size);
                prop_assert!(p.skip == 0 || p.class == InsnClass::Emulated);
            }
        }
    }
}
