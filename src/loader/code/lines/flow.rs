//! Where a part of a function's code is entered and left: by where each instruction leads.
//!
//! What only a table of addresses or an exception leads to may be reached from anywhere. To pass a beginning inside the
//! part, or an end outside it, means nothing, so such code is taken for both.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use iced_x86::{Code, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// Addresses of instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    pub begins: BTreeSet<u64>,
    pub ends: BTreeSet<u64>,
    /// Of these: jumps out of the function.
    pub tails: BTreeSet<u64>,
}

type Instructions = BTreeMap<u64, Instruction>;

/// More than this is no part that someone wrote.
const MOST: usize = 4096;

/// Of a function with these parts, by address. What was `moved` belongs to the part where it leads to nothing else.
pub fn of(parts: &[(u64, &[u8])], mut inside: Vec<Range<u64>>, moved: Vec<Range<u64>>) -> Result<Flow, String> {
    let code = instructions(parts)?;
    join(&code, &mut inside, moved);
    let flow = entered_and_left(parts, &code, &inside);
    if flow.begins.len() + flow.ends.len() > MOST {
        return Err(format!("the lines can be entered and left at more than {MOST} points"));
    }
    Ok(flow)
}

fn instructions(parts: &[(u64, &[u8])]) -> Result<Instructions, String> {
    let mut code = BTreeMap::new();
    for (at, bytes) in parts {
        let mut decoder = Decoder::with_ip(64, bytes, *at, DecoderOptions::NONE);
        while decoder.can_decode() {
            let insn = decoder.decode();
            if decoder.last_error() != DecoderError::None {
                return Err(format!("the bytes at {:#x} are no instruction", insn.ip()));
            }
            if insn.code() == Code::Int3 {
                return Err(format!("a breakpoint (int3) is in the file at {:#x}", insn.ip()));
            }
            code.insert(insn.ip(), insn);
        }
    }
    Ok(code)
}

/// Adds what leads only to what is inside, one after the other.
fn join(code: &Instructions, inside: &mut Vec<Range<u64>>, mut moved: Vec<Range<u64>>) {
    loop {
        let before = moved.len();
        moved.retain(|piece| {
            let of = |at: u64| piece.contains(&at) || inside.iter().any(|range| range.contains(&at));
            let mut leads = code.range(piece.clone()).flat_map(|(_, insn)| {
                let (next, target) = leads_to(insn);
                [next, target].into_iter().flatten()
            });
            let joins = leads.all(of);
            if joins {
                inside.push(piece.clone());
            }
            !joins
        });
        if moved.len() == before {
            return;
        }
    }
}

fn entered_and_left(parts: &[(u64, &[u8])], code: &Instructions, inside: &[Range<u64>]) -> Flow {
    let is_inside = |at: u64| inside.iter().any(|range| range.contains(&at));
    let mut flow = Flow::default();
    let mut reached = BTreeSet::new();
    let mut edge = |from_inside: bool, to: u64| {
        reached.insert(to);
        match (from_inside, is_inside(to)) {
            (false, true) => drop(flow.begins.insert(to)),
            (true, false) => drop(flow.ends.insert(to)),
            _ => {}
        }
    };
    // Callers are outside.
    parts.first().map(|(start, _)| edge(false, *start)).unwrap_or_default();
    let (mut left, mut tails) = (BTreeSet::new(), BTreeSet::new());
    for insn in code.values() {
        let from = is_inside(insn.ip());
        let (next, target) = leads_to(insn);
        next.filter(|to| code.contains_key(to)).into_iter().for_each(|to| edge(from, to));
        match target {
            Some(to) if code.contains_key(&to) => edge(from, to),
            // It returns, or goes on in another function.
            Some(_) if from && next.is_none() => drop(tails.insert(insn.ip())),
            None if from && insn.flow_control() == FlowControl::Return => drop(left.insert(insn.ip())),
            _ => {}
        }
    }
    flow.ends.extend(left.iter().chain(&tails));
    let hidden: Vec<u64> = hidden(code, &reached).collect();
    flow.begins.extend(hidden.iter().filter(|at| is_inside(**at)));
    flow.ends.extend(hidden.iter().filter(|at| !is_inside(**at)));
    let past = |at: &u64| past_padding(code, *at).filter(|to| is_inside(*to) == is_inside(*at));
    let all = |of: &BTreeSet<u64>| of.iter().filter_map(past).collect();
    Flow { begins: all(&flow.begins), ends: all(&flow.ends), tails }
}

/// The next instruction, where that may be executed, and the one that it jumps to.
fn leads_to(insn: &Instruction) -> (Option<u64>, Option<u64>) {
    let target = (insn.op0_kind() == OpKind::NearBranch64).then(|| insn.near_branch_target());
    match insn.flow_control() {
        FlowControl::ConditionalBranch => (Some(insn.next_ip()), target),
        FlowControl::UnconditionalBranch => (None, target),
        FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => (None, None),
        _ => (Some(insn.next_ip()), None),
    }
}

/// Code that no instruction of the function leads to.
fn hidden<'a>(code: &'a Instructions, reached: &'a BTreeSet<u64>) -> impl Iterator<Item = u64> + use<'a> {
    let starts = code.keys().copied().filter(|at| !reached.contains(at));
    starts.filter_map(|at| past_padding(code, at)).filter(|at| !reached.contains(at) || padded(code, *at, reached))
}

/// Is what leads to this instruction only padding that nothing leads to?
fn padded(code: &Instructions, at: u64, reached: &BTreeSet<u64>) -> bool {
    let before = code.range(..at).rev().take_while(|(_, insn)| insn.mnemonic() == Mnemonic::Nop);
    let first = before.last().map(|(at, _)| *at);
    let jumps = code.values().any(|insn| leads_to(insn).1 == Some(at));
    !jumps && first.is_some_and(|first| !reached.contains(&first))
}

/// The first instruction from here on that is not padding, some forms of which the kernel refuses to probe.
fn past_padding(code: &Instructions, at: u64) -> Option<u64> {
    code.range(at..).find(|(_, insn)| insn.mnemonic() != Mnemonic::Nop).map(|(at, _)| *at)
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "ranges of code, of which there may be one")]
mod tests {
    use super::*;

    fn flow(code: &[u8], inside: &[Range<u64>]) -> (Vec<u64>, Vec<u64>) {
        let found = of(&[(0, code)], inside.to_vec(), Vec::new()).unwrap();
        (found.begins.into_iter().collect(), found.ends.into_iter().collect())
    }

    #[test]
    fn a_loop_is_entered_and_left_once_and_its_body_each_time() {
        // push rbx; 1: dec ecx; 3: push rax; 4: pop rax; 5: test ecx,ecx; 7: jne 1; 9: pop rbx; ret
        let code = [0x53, 0xff, 0xc9, 0x50, 0x58, 0x85, 0xc9, 0x75, 0xf8, 0x5b, 0xc3];
        assert_eq!(flow(&code, &[1..9]), (vec![1], vec![9]));
        assert_eq!(flow(&code, &[3..5]), (vec![3], vec![5]));
        // From the start of the function to its return instruction.
        assert_eq!(flow(&code, &[0..11]), (vec![0], vec![10]));
    }

    #[test]
    fn what_a_table_leads_to_is_both_and_padding_nothing() {
        // jmp *rax; nop; push rax; ret; push rbx; jmp far away
        let code = [0xff, 0xe0, 0x90, 0x50, 0xc3, 0x53, 0xe9, 0, 1, 0, 0];
        assert_eq!(flow(&code, &[3..5]), (vec![3], vec![4, 5]));
        assert_eq!(flow(&code, &[5..11]), (vec![5], vec![3, 6]));
    }

    #[test]
    fn what_was_moved_belongs_to_what_it_leads_to() {
        // push rax; push rbx; dec ecx; pop rbx; pop rax; ret
        let code = [0x50, 0x53, 0xff, 0xc9, 0x5b, 0x58, 0xc3];
        let flow = |moved: Vec<Range<u64>>| {
            let found = of(&[(0, &code[..])], vec![2..4, 5..6], moved).unwrap();
            (found.begins.into_iter().collect::<Vec<_>>(), found.ends.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(flow(vec![]), (vec![2, 5], vec![4, 6]));
        assert_eq!(flow(vec![4..5, 1..2]), (vec![1], vec![6]));
        // To something else, too.
        assert_eq!(flow(vec![0..1]), (vec![2, 5], vec![4, 6]));
    }

    #[test]
    fn bytes_that_are_no_code_are_refused() {
        assert!(of(&[(0, &[0x90, 0x06])], vec![], vec![]).unwrap_err().contains("0x1"));
        assert!(of(&[(0, &[0xcc])], vec![], vec![]).unwrap_err().contains("int3"));
    }
}
