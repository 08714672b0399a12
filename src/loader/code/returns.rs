//! Finds where a function can be left, for functions that must not get a return probe.
//!
//! A return probe replaces the return address on the stack. Exceptions of C++ and panics of Rust are passed on by reading
//! these addresses, and end the program when they meet the kernel's (measured: `terminate` is called). The return
//! instructions of such functions are probed in place instead, and the jumps that may lead out of them.

use iced_x86::{Decoder, DecoderError, DecoderOptions, FlowControl, OpKind};

/// A point in a function, by its offset in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitPoint {
    /// A return instruction.
    Return(u64),
    /// A jump out of it: the function may go on in another one, which then returns for it.
    Jump(u64),
}

/// More than this is no function that someone wrote.
const MAX_EXIT_POINTS: usize = 4096;

/// The points where a function can be left. Its code lies in `parts` of the file: offset and size.
pub fn exit_points(bytes: &[u8], parts: &[(u64, u64)]) -> Result<Vec<ExitPoint>, String> {
    let within = |at: u64| parts.iter().any(|(from, size)| (*from..from.saturating_add(*size)).contains(&at));
    let mut found = Vec::new();
    for (from, size) in parts {
        let range = usize::try_from(*from).ok().zip(usize::try_from(from.saturating_add(*size)).ok());
        let code = range.and_then(|(from, to)| bytes.get(from..to)).filter(|code| !code.is_empty());
        let code = code.ok_or("its size is not known")?;
        // Addresses and offsets differ by a constant within a segment, so offsets serve as addresses.
        let mut decoder = Decoder::with_ip(64, code, *from, DecoderOptions::NONE);
        while decoder.can_decode() {
            let insn = decoder.decode();
            if decoder.last_error() != DecoderError::None {
                return Err(format!("the bytes at offset {:#x} are no instruction", insn.ip()));
            }
            match insn.flow_control() {
                FlowControl::Return => found.push(ExitPoint::Return(insn.ip())),
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
                    if insn.op0_kind() == OpKind::NearBranch64 && within(insn.near_branch_target()) => {}
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::IndirectBranch => {
                    found.push(ExitPoint::Jump(insn.ip()));
                }
                _ => {}
            }
        }
    }
    if found.len() > MAX_EXIT_POINTS {
        return Err(format!("it can be left at more than {MAX_EXIT_POINTS} points"));
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::ExitPoint::{Jump, Return};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn returns_and_jumps_out_are_found_and_jumps_within_are_not() {
        // je 5; ret; nop; nop; jmp 0; je 32; jmp *%rax; ret
        let code = [0x74, 0x03, 0xc3, 0x90, 0x90, 0xeb, 0xf9, 0x74, 0x17, 0xff, 0xe0, 0xc3];
        assert_eq!(exit_points(&code, &[(0, 12)]), Ok(vec![Return(2), Return(11), Jump(7), Jump(9)]));
        // The rarely executed part belongs to it.
        let mut file = vec![0x90; 64];
        file[8..10].copy_from_slice(&[0x74, 0x16]); // je 32
        file[10] = 0xc3;
        file[32..35].copy_from_slice(&[0xeb, 0xe8, 0xc3]); // jmp 10; ret
        assert_eq!(exit_points(&file, &[(8, 3), (32, 3)]), Ok(vec![Return(10), Return(34)]));
        assert_eq!(exit_points(&file, &[(8, 3)]), Ok(vec![Return(10), Jump(8)]));
    }

    #[test]
    fn code_that_cannot_be_read_is_refused() {
        assert!(exit_points(&[0xc3], &[(0, 0)]).unwrap_err().contains("size"));
        assert!(exit_points(&[0xc3], &[(0, 2)]).unwrap_err().contains("size"));
        assert!(exit_points(&[0x90, 0x06, 0xc3], &[(0, 3)]).unwrap_err().contains("at offset 0x1"));
        assert!(exit_points(&[0xc3; 5000], &[(0, 5000)]).unwrap_err().contains("4096"));
    }

    proptest! {
        #[test]
        fn any_bytes_give_exit_points_within_them(code in prop::collection::vec(any::<u8>(), 1..200)) {
            if let Ok(found) = exit_points(&code, &[(0, code.len() as u64)]) {
                let at = |p: &ExitPoint| match p { Return(at) | Jump(at) => *at };
                prop_assert!(found.iter().all(|p| at(p) < code.len() as u64));
            }
        }
    }
}
