//! Functions of the C library that leave calls without a return, on the stack of the caller. They are not recorded: the
//! kernel side learns from them which of its return probes will not be hit any more (`bpf/calls/stack.h`).

use crate::catalog::def::row;
use crate::catalog::{Fails, Family, Row};
use crate::vocabulary::{Kind, Layer};

/// The new stack pointer stands so far behind where the first argument points.
const fn jump(symbol: &'static str, at: u16) -> Row {
    row(Family::Libc, Layer::Stdio, symbol, Kind::Other).fails(Fails::Never).jump(at).done()
}

/// `JB_RSP` of glibc (sysdeps/x86_64/jmpbuf-offsets.h), which musl has there too.
const JUMP: u16 = 6 * 8;
/// `uc_mcontext.gregs[REG_RSP]` (sys/ucontext.h).
const CONTEXT: u16 = 40 + 15 * 8;

pub(in crate::catalog) const ROWS: &[Row] = &[
    jump("longjmp", JUMP),
    jump("_longjmp", JUMP),
    jump("siglongjmp", JUMP),
    jump("__longjmp_chk", JUMP),
    jump("setcontext", CONTEXT),
];
