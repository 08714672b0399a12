//! Where a function puts what it reads: `callee(location, id, member)` fills a member of the structure that a pointer in
//! the function's first argument leads to.
//!
//! `H5D__layout_oh_read(dataset, ...)` of HDF5 calls `H5O_msg_read(location, 8, &dataset->shared->layout)`. No public
//! header has these structures and they differ between versions, but the code computes the address:
//! `mov 0x30(%rbx),%rdx; mov $8,%esi; add $0xf8,%rdx; call`.

use crate::loader::code::accessor::{Callee, decoder};
use crate::skel::types::iot_cookie;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpAccess, OpKind, Register};
use iced_x86::{InstructionInfoFactory, UsedRegister};
use std::collections::{BTreeMap, HashMap};

/// Bytes from the first argument to a pointer, and from where that leads to two members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Members {
    pointer: u16,
    members: [u16; 2],
}

/// Bits of each distance in a cookie.
const BITS: u32 = iot_cookie::IOT_COOKIE_STORED_BITS.0;

/// What is known of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// The first argument.
    First,
    /// What stands so far behind it, and something added.
    Behind(u64, u64),
    Number(u64),
}

/// Registers that a called function may change (System V ABI, AMD64, figure 3.4).
const CHANGED: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

type Values = BTreeMap<Register, Value>;

/// Instructions that are looked at, one often as it is reached in several ways: a hundred times those of the function.
const STEPS: usize = 1 << 17;

impl Members {
    /// Looks for the calls with these ids in the code of a function, which starts at `vaddr`. `None`: not all are found,
    /// or they contradict each other.
    pub fn find(code: &[u8], vaddr: u64, callee: &Callee, ids: [u32; 2]) -> Option<Self> {
        let mut found: [Option<(u64, u64)>; 2] = [None; 2];
        for (id, given) in Walk::new(code, vaddr, callee).all()? {
            let Some(at) = ids.iter().position(|wanted| u64::from(*wanted) == id) else { continue };
            let Some(Value::Behind(pointer, member)) = given else { return None };
            if found[at].is_some_and(|before| before != (pointer, member)) {
                return None;
            }
            found[at] = Some((pointer, member));
        }
        let [(pointer, first), (same, second)] = [found[0]?, found[1]?];
        let distance = |bytes: u64| u16::try_from(bytes).ok().filter(|bytes| bytes >> BITS == 0);
        (pointer == same)
            .then_some(Self { pointer: distance(pointer)?, members: [distance(first)?, distance(second)?] })
    }

    /// As the kernel side reads it from a cookie: the lowest bits are the distance to the pointer.
    pub fn packed(self) -> u64 {
        let [first, second] = self.members.map(u64::from);
        u64::from(self.pointer) | first << BITS | second << (2 * BITS)
    }
}

/// Follows the ways through a function and what is in its registers on all of them.
struct Walk<'a> {
    callee: &'a Callee,
    code: Vec<Instruction>,
    /// Where in it an address is.
    index_of: HashMap<u64, usize>,
    /// What is known where ways meet.
    known: HashMap<usize, Values>,
    /// From where there are ways that were not followed, or with less.
    open: Vec<usize>,
    info: InstructionInfoFactory,
}

impl<'a> Walk<'a> {
    fn new(code: &[u8], vaddr: u64, callee: &'a Callee) -> Self {
        let code: Vec<Instruction> = decoder(code, vaddr).iter().collect();
        let index_of = code.iter().enumerate().map(|(at, insn)| (insn.ip(), at)).collect();
        let known = HashMap::from([(0, Values::from([(Register::RDI, Value::First)]))]);
        Self { callee, code, index_of, known, open: vec![0], info: InstructionInfoFactory::new() }
    }

    /// The ids that the function is called with and the third argument, as far as that is known. `None`: it takes too long.
    fn all(mut self) -> Option<Vec<(u64, Option<Value>)>> {
        let (mut calls, mut steps) = (BTreeMap::new(), 0);
        while let Some(start) = self.open.pop() {
            let mut values = self.known.get(&start).cloned().unwrap_or_default();
            for at in start..self.code.len() {
                steps += 1;
                if steps > STEPS {
                    return None;
                }
                if at > start && self.known.contains_key(&at) {
                    self.meet(at, &values);
                    break;
                }
                let insn = self.code[at];
                match insn.flow_control() {
                    FlowControl::Call | FlowControl::IndirectCall => {
                        if self.callee.is_at(insn.near_branch_target()) {
                            calls
                                .insert(at, (values.get(&Register::RSI).copied(), values.get(&Register::RDX).copied()));
                        }
                        values.retain(|register, _| !CHANGED.contains(register));
                    }
                    FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
                        if let Some(target) = self.index_of.get(&insn.near_branch_target()).copied() {
                            self.meet(target, &values);
                        }
                        if insn.flow_control() == FlowControl::UnconditionalBranch {
                            break;
                        }
                    }
                    FlowControl::Next => self.step(&insn, &mut values),
                    _ => break,
                }
            }
        }
        let number = |id: Option<Value>| if let Some(Value::Number(id)) = id { Some(id) } else { None };
        Some(calls.into_values().filter_map(|(id, given)| Some((number(id)?, given))).collect())
    }

    /// A way with this leads here: what is not so on all ways is not known.
    fn meet(&mut self, at: usize, values: &Values) {
        let Some(known) = self.known.get_mut(&at) else {
            self.known.insert(at, values.clone());
            self.open.push(at);
            return;
        };
        let before = known.len();
        known.retain(|register, value| values.get(register) == Some(value));
        if known.len() < before {
            self.open.push(at);
        }
    }

    fn step(&mut self, insn: &Instruction, values: &mut Values) {
        let new = result(values, insn);
        for used in self.info.info(insn).used_registers().iter().copied().filter(|used| writes(*used)) {
            values.remove(&used.register().full_register());
        }
        if let Some(value) = new {
            values.insert(insn.op0_register().full_register(), value);
        }
    }
}

fn writes(used: UsedRegister) -> bool {
    matches!(used.access(), OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// What an instruction puts into the register that is its first operand, as far as that is followed.
fn result(values: &Values, insn: &Instruction) -> Option<Value> {
    if insn.op_count() != 2 || insn.op0_kind() != OpKind::Register {
        return None;
    }
    let of = |register: Register| values.get(&register).copied();
    let wide = insn.op0_register().is_gpr64();
    match (insn.mnemonic(), insn.op1_kind()) {
        (Mnemonic::Mov, OpKind::Register) if wide => of(insn.op1_register()),
        (Mnemonic::Mov, OpKind::Immediate32) => Some(Value::Number(u64::from(insn.immediate32()))),
        (Mnemonic::Mov, OpKind::Memory) if wide => match of(plain_base(insn)?)? {
            Value::First => Some(Value::Behind(insn.memory_displacement64(), 0)),
            Value::Behind(..) | Value::Number(_) => None,
        },
        (Mnemonic::Lea, OpKind::Memory) if wide => added(of(plain_base(insn)?)?, insn.memory_displacement64()),
        (Mnemonic::Add, OpKind::Immediate8to64 | OpKind::Immediate32to64) => {
            added(of(insn.op0_register())?, insn.immediate(1))
        }
        _ => None,
    }
}

fn added(value: Value, bytes: u64) -> Option<Value> {
    match value {
        Value::Behind(pointer, member) => Some(Value::Behind(pointer, member.wrapping_add(bytes))),
        Value::First | Value::Number(_) => None,
    }
}

/// The base of an operand in memory that has nothing else but a displacement.
fn plain_base(insn: &Instruction) -> Option<Register> {
    let plain = insn.memory_index() == Register::None && insn.segment_prefix() == Register::None;
    plain.then(|| insn.memory_base())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CALLEE: u64 = 0x1000;
    /// mov %rdi,%rbx
    const KEEP: &[u8] = &[0x48, 0x89, 0xfb];
    /// mov 0x30(%rbx),%rdx; mov $0xb,%esi; mov %rbx,%rdi; add $0x90,%rdx
    const FILTERS: &[u8] =
        &[0x48, 0x8b, 0x53, 0x30, 0xbe, 0xb, 0, 0, 0, 0x48, 0x89, 0xdf, 0x48, 0x81, 0xc2, 0x90, 0, 0, 0];
    /// mov 0x30(%rbx),%rax; mov $8,%esi; mov %rbx,%rdi; lea 0xf8(%rax),%rdx
    const LAYOUT: &[u8] =
        &[0x48, 0x8b, 0x43, 0x30, 0xbe, 8, 0, 0, 0, 0x48, 0x89, 0xdf, 0x48, 0x8d, 0x90, 0xf8, 0, 0, 0];
    /// mov $8,%esi; call: with whatever the rest holds.
    const AGAIN: &[u8] = &[0xbe, 8, 0, 0, 0];

    /// Members that code with calls of the callee where `None` is shows.
    fn find(parts: &[Option<&[u8]>]) -> Option<Members> {
        let mut code = Vec::new();
        for part in parts {
            if let Some(bytes) = part {
                code.extend_from_slice(bytes);
            } else {
                code.push(0xe8);
                code.extend((CALLEE as i32 - code.len() as i32 - 4).to_le_bytes());
            }
        }
        Members::find(&code, 0, &Callee::at(CALLEE), [0xb, 8])
    }

    #[test]
    fn the_code_shows_where_messages_are_put() {
        let found = find(&[Some(KEEP), Some(FILTERS), None, Some(LAYOUT), None]).unwrap();
        assert_eq!(found, Members { pointer: 0x30, members: [0x90, 0xf8] });
        assert_eq!(found.packed(), 0x30 | 0x90 << BITS | 0xf8 << (2 * BITS));
        // One in a part that lies behind the end: jne there, pop %rbx, ret.
        let far = [Some(KEEP), Some(FILTERS), None, Some(&[0x75, 2, 0x5b, 0xc3][..]), Some(LAYOUT), None];
        assert_eq!(find(&far), Some(found));
        // Once more, for the same member.
        assert_eq!(find(&[Some(KEEP), Some(FILTERS), None, Some(LAYOUT), None, Some(LAYOUT), None]), Some(found));
    }

    #[test]
    fn nothing_is_guessed() {
        // Only one of them.
        assert_eq!(find(&[Some(KEEP), Some(FILTERS), None]), None);
        // The argument was not kept.
        assert_eq!(find(&[Some(FILTERS), None, Some(LAYOUT), None]), None);
        // A call in between changes what the register holds.
        assert_eq!(find(&[Some(KEEP), Some(FILTERS), None, Some(LAYOUT), None, Some(AGAIN), None]), None);
        // pop %rbx
        assert_eq!(find(&[Some(KEEP), Some(FILTERS), None, Some(&[0x5b]), Some(LAYOUT), None]), None);
        // The same on one of two ways: jne over it.
        assert_eq!(find(&[Some(KEEP), Some(FILTERS), None, Some(&[0x75, 1, 0x5b]), Some(LAYOUT), None]), None);
        // Another pointer: mov 0x38(%rbx),%rax.
        let other = [&[0x48, 0x8b, 0x43, 0x38], &LAYOUT[4..]].concat();
        assert_eq!(find(&[Some(KEEP), Some(FILTERS), None, Some(&other), None]), None);
        // Too far away to be one of its members: lea 0x800(%rax),%rdx.
        let far = [&LAYOUT[..LAYOUT.len() - 4], &[0, 8, 0, 0]].concat();
        assert_eq!(find(&[Some(KEEP), Some(FILTERS), None, Some(&far), None]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(code in proptest::collection::vec(any::<u8>(), 0..400), vaddr in any::<u64>()) {
            Members::find(&code, vaddr, &Callee::at(vaddr), [0xb, 8]);
        }
    }
}
