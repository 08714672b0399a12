//! Catalog rows as the kernel side sees them (`struct iot_spec`).

use crate::catalog::hdf5::Tells;
use crate::catalog::variables::Meaning;
use crate::catalog::{About, Argument, Async, Copies, Count, Fails, Family, Hints, Role, Row, Src, When, Words};
use crate::skel::types as t;
use crate::vocabulary::{Kind, Layer};

/// Open MPI 4 and 5: `size` in `struct opal_datatype_t` (`opal/datatype/opal_datatype.h`): a 16-byte object
/// header, then flags (2 bytes), id (2), `bdt_used` (4).
const OMPI_DATATYPE_SIZE: u32 = 24;
/// Open MPI 4 and 5: `_ucount`, bytes transferred, in `struct ompi_status_public_t` (mpi.h).
const OMPI_STATUS_UCOUNT: u32 = 16;

/// Operations of devices, behind the rows of the catalog (`IOT_BLOCK_OPS`).
pub const BLOCK_OPS: u32 = 16;

/// `iot_spec.bits` of `bpf/spec.h` (macros do not reach the skeleton).
mod bits {
    pub const LIFE: u8 = 0x01;
    pub const FD: u8 = 0x02;
    pub const FD_RET: u8 = 0x04;
    pub const STAT: u8 = 0x08;
    pub const STATX: u8 = 0x10;
    pub const ONLY: u8 = 0x20;
    pub const INSIDE: u8 = 0x40;
    pub const SUBMIT: u8 = 0x80;

    /// `iot_spec.more`.
    pub const STACK: u8 = 0x01;
    pub const ENTRY: u8 = 0x02;
    pub const RETURN: u8 = 0x04;
    pub const OUTER: u8 = 0x08;
    pub const ALL: u8 = 0x10;
    pub const AWAIT: u8 = 0x20;
    pub const STREAM: u8 = 0x40;
    pub const PHASE: u8 = 0x80;
    /// `iot_spec.call`.
    pub const OTHERWISE: u8 = 0x01;
    pub const MAPPED: u8 = 0x02;
    pub const RANGES: u8 = 0x04;
    pub const SEND: u8 = 0x08;
    pub const PIPES: u8 = 0x10;
    pub const EARLY: u8 = 0x20;
    pub const OPERATION: u8 = 0x40;
    /// `IOT_NO_NOTE`.
    pub const NO_NOTE: u8 = 0xff;
}

fn src(from: Src) -> t::iot_src {
    use t::iot_how as H;
    let (how, a, b, k) = match from {
        Src::None => (H::IOT_NONE, 0, 0, 0),
        Src::Arg(a) => (H::IOT_ARG, a, 0, 0),
        Src::Int(a) => (H::IOT_INT, a, 0, 0),
        Src::In(a) => (H::IOT_IN, a, 0, 0),
        Src::Out(a) => (H::IOT_OUT, a, 0, 0),
        Src::Mul(a, b) => (H::IOT_MUL, a, b, 0),
        Src::Typed(a, b) => (H::IOT_TYPED, a, b, OMPI_DATATYPE_SIZE),
        Src::TypedLong(a, b) => (H::IOT_TYPED_LONG, a, b, OMPI_DATATYPE_SIZE),
        Src::Strlen(a) => (H::IOT_STRLEN, a, 0, 0),
        Src::Ret => (H::IOT_RET, 0, 0, 0),
        Src::RetTimes(a) => (H::IOT_RET_TIMES, a, 0, 0),
        Src::Status(a) => (H::IOT_STATUS, a, 0, OMPI_STATUS_UCOUNT),
        Src::Asked => (H::IOT_ASKED, 0, 0, 0),
        Src::Iov(a, b) => (H::IOT_IOV, a, b, 0),
        Src::Message(a) => (H::IOT_MESSAGE, a, 0, 0),
        Src::Pos => (H::IOT_POS, 0, 0, 0),
        Src::InInt(a) => (H::IOT_IN_INT, a, 0, 0),
        Src::OutInt(a) => (H::IOT_OUT_INT, a, 0, 0),
        Src::Field(a, at) => (H::IOT_FIELD, a, 0, at),
        Src::FieldInt(a, at) => (H::IOT_FIELD_INT, a, 0, at),
        Src::Note(a) => (H::IOT_NOTE, a, 0, 0),
        Src::Notes(a, b) => (H::IOT_NOTES, a, b, 0),
        Src::CountNote(a, b) => (H::IOT_COUNT_NOTE, a, b, 0),
        Src::ArgNote(a, b) => (H::IOT_ARG_NOTE, a, b, 0),
        Src::StatusSplit(a, at) => (H::IOT_STATUS_SPLIT, a, 0, at),
        Src::TypedNumber(a, b) => (H::IOT_TYPED_NUMBER, a, b, 0),
        Src::Through(a, at, b) => (H::IOT_THROUGH, a, b, at),
        Src::RetInt => (H::IOT_RET_INT, 0, 0, 0),
        Src::Rounds(count, a, b) => (H::IOT_ROUNDS, count, a, u32::from(b)),
        Src::Const(n) => (H::IOT_CONST, 0, 0, u32::from(n)),
        Src::Line(a) => (H::IOT_STRLEN, a, 0, 1),
        Src::Global(_) => (H::IOT_GLOBAL, 0, 0, 0),
        Src::StreamPos => (H::IOT_STREAM_POS, 0, 0, 0),
        Src::StreamEnd => (H::IOT_STREAM_END, 0, 0, 0),
        Src::StreamMoved => (H::IOT_STREAM_MOVED, 0, 0, 0),
        Src::MpiSize(a, b) => (H::IOT_MPI_SIZE, a, b, OMPI_DATATYPE_SIZE),
        Src::Behind(a, at) => (H::IOT_BEHIND, a, 0, at),
        Src::BehindInt(a, at) => (H::IOT_BEHIND_INT, a, 0, at),
        Src::RetBehind(at) => (H::IOT_RET_BEHIND, 0, 0, at),
        Src::Pair(a, b) => (H::IOT_PAIR, a, b, 0),
        Src::PairNote(a, b) => (H::IOT_PAIR_NOTE, a, b, 0),
        Src::PairOut(a, b) => (H::IOT_PAIR_OUT, a, b, 0),
        Src::Scaled(a, k) => (H::IOT_SCALED, a, 0, u32::from(k)),
        Src::RetScaled(k) => (H::IOT_RET_SCALED, 0, 0, u32::from(k)),
        Src::Cloexec => (H::IOT_CLOEXEC, 0, 0, 0),
    };
    t::iot_src { how: how.0 as u8, a, b, pad: 0, k }
}

fn fails(fails: Fails) -> u8 {
    use t::iot_fails as f;
    let wire = match fails {
        Fails::Never => f::IOT_FAILS_NEVER,
        Fails::Negative => f::IOT_FAILS_NEGATIVE,
        Fails::NegativeInt => f::IOT_FAILS_NEGATIVE_INT,
        Fails::Zero => f::IOT_FAILS_ZERO,
        Fails::NonZero => f::IOT_FAILS_NONZERO,
        Fails::Eof => f::IOT_FAILS_EOF,
        Fails::EofInt => f::IOT_FAILS_EOF_INT,
    };
    wire.0 as u8
}

fn about(about: About) -> u8 {
    use t::iot_about_how as a;
    let wire = match about {
        About::Nothing => a::IOT_ABOUT_NOTHING,
        About::File => a::IOT_ABOUT_FILE,
        About::Buffer => a::IOT_ABOUT_BUFFER,
        About::Iter => a::IOT_ABOUT_ITER,
        About::Kiocb => a::IOT_ABOUT_KIOCB,
        About::Path => a::IOT_ABOUT_PATH,
        About::Dentry => a::IOT_ABOUT_DENTRY,
        About::Entry => a::IOT_ABOUT_ENTRY,
        About::Opened => a::IOT_ABOUT_OPENED,
    };
    wire.0 as u8
}

fn words(words: Option<Words>) -> t::iot_words {
    use t::iot_count as C;
    let Some(w) = words else { return t::iot_words::default() };
    let when = match w.when {
        When::Entry => t::iot_when::IOT_W_ENTRY,
        When::Return => t::iot_when::IOT_W_RETURN,
    };
    let (count, n) = match w.count {
        Count::Const(n) => (C::IOT_N_CONST, n),
        Count::Arg(n) => (C::IOT_N_ARG, n),
        Count::Ret => (C::IOT_N_RET, 0),
        Count::At(n) => (C::IOT_N_AT, n),
        Count::Rank => (C::IOT_N_RANK, 0),
    };
    t::iot_words {
        when: when.0 as u8,
        arg: w.arg,
        elem: w.elem,
        count: count.0 as u8,
        n,
        slot: w.slot,
        deref: w.deref,
        rank: u8::from(w.rank),
    }
}

/// `iot_spec.call`.
fn call(row: &Row) -> u8 {
    let copies = match row.copies {
        Copies::Nothing | Copies::Part => 0,
        Copies::Ranges => bits::RANGES,
        Copies::Send => bits::SEND,
        Copies::Pipes => bits::PIPES,
    };
    let set = |on: bool, bit: u8| if on { bit } else { 0 };
    let operation = matches!(row.family, Family::Uring | Family::Aio);
    copies
        | set(row.otherwise, bits::OTHERWISE)
        | set(row.mapped, bits::MAPPED)
        | set(row.early, bits::EARLY)
        | set(operation, bits::OPERATION)
}

/// `IOT_S_`.
fn bits(row: &Row) -> u8 {
    let mut bits = 0;
    if row.role != Role::Use && row.role != Role::None {
        bits |= bits::LIFE;
    }
    if row.is_phase() {
        bits |= bits::LIFE;
    }
    if row.family == Family::Syscall {
        bits |= match row.role {
            Role::Use | Role::Close | Role::Dup | Role::Inherit => bits::FD,
            Role::Open => bits::FD_RET,
            _ => 0,
        };
    }
    if let Some((_, extended)) = row.stat {
        bits |= if extended { bits::STATX } else { bits::STAT };
    }
    for (bit, on) in [(bits::INSIDE, row.inside), (bits::SUBMIT, row.submits)] {
        bits |= if on { bit } else { 0 };
    }
    bits
}

/// `IOT_M_`.
fn more(row: &Row, layers: &[Layer]) -> u8 {
    let uses = matches!(row.role, Role::Use | Role::Close) && row.handle != Src::None;
    let stream = row.layer == Layer::Stdio && uses && !row.descriptor;
    let at = |when| row.words.iter().flatten().any(|w| w.when == when);
    let mut more = 0;
    for (bit, on) in [
        (bits::STACK, row.stack_arguments()),
        (bits::ENTRY, at(When::Entry)),
        (bits::RETURN, at(When::Return)),
        (bits::OUTER, row.outermost),
        (bits::ALL, row.asynchronous == Async::Wait),
        (bits::STREAM, stream),
        (bits::PHASE, row.is_phase()),
        (bits::AWAIT, !layers.contains(&row.layer)),
    ] {
        more |= if on { bit } else { 0 };
    }
    more
}

/// Can the kernel side say by itself what calls of a row come to? Of a library's it cannot where they make or end handles,
/// where arrays go with them, and where they wait for each other.
fn sums(row: &Row) -> t::iot_sums_how {
    let plain = matches!(row.role, Role::Use | Role::None);
    let says = row.tells != Tells::Nothing || row.meaning != Meaning::Nothing || row.hints != Hints::None;
    // What it was given is no number of bytes.
    let plain_values = plain && row.argument == Argument::Nothing;
    let library = !matches!(row.layer, Layer::Syscall | Layer::Vfs | Layer::Fs);
    let needs_more = !plain
        || says
        || row.asynchronous != Async::No
        || row.submits
        || row.slow_path.is_some()
        || row.words.iter().any(Option::is_some);
    // What a file is called from now on must be known.
    let renames = matches!(row.role, Role::Rename | Role::Exchange | Role::Link);
    match (renames || library && (needs_more || row.is_phase()), plain_values) {
        (true, _) => t::iot_sums_how::IOT_SUMS_NOT,
        (false, false) => t::iot_sums_how::IOT_SUMS_CALLS,
        (false, true) => t::iot_sums_how::IOT_SUMS_ALL,
    }
}

/// Are calls of a row summed up in the kernel?
pub fn is_summed(row: &Row) -> bool {
    sums(row) != t::iot_sums_how::IOT_SUMS_NOT
}

/// The kernel side's form of a row, where these layers are traced.
pub fn spec(row: &Row, layers: &[Layer]) -> t::iot_spec {
    let arg = |a: Option<u8>| a.map_or(-1, |a| a as i8);
    let syscall = row.family == Family::Syscall;
    let (mut bits, more) = (bits(row), more(row, layers));
    let (only_arg, only) = row.only.map_or((0, [0, 0]), |(arg, a, b)| {
        bits |= bits::ONLY;
        (u32::from(arg), [a, b])
    });
    let mut off = src(row.off);
    if row.off == Src::StreamPos && row.kind == Kind::Write {
        off.k = 1;
    }
    let mut got = src(row.got);
    if row.got == Src::Cloexec {
        got.b = u8::from(row.handle == Src::Ret);
    }
    t::iot_spec {
        handle: src(row.handle),
        len: src(row.len),
        off,
        got,
        path: [arg(row.path), arg(row.path2)],
        base: [arg(row.base), arg(row.base2)],
        fails: fails(row.fails),
        layer: row.layer as u8,
        bits,
        stat_arg: row.stat.map_or(0, |(arg, _)| arg),
        only,
        only_arg,
        note: row.note.map_or(bits::NO_NOTE, |note| note as u8),
        more,
        takes: row.takes.map(|note| note.map_or(bits::NO_NOTE, |note| note as u8)),
        quiet: row.quiet,
        names: u8::from(row.names),
        every: u8::from(row.every),
        words: row.words.map(words),
        reads: u8::from(syscall && row.kind == Kind::Read),
        about: about(row.about),
        call: call(row),
        kind: match row.kind {
            Kind::Read => t::iot_kind::IOT_READS.0,
            Kind::Write => t::iot_kind::IOT_WRITES.0,
            _ => t::iot_kind::IOT_NEITHER.0,
        } as u8,
        sums: sums(row).0 as u8,
        opens: u8::from(!syscall && matches!(row.role, Role::Open | Role::Reopen | Role::Dup)),
        jumps: u8::from(row.jumps),
        brief: match (row.brief, row.pauses, row.slow_path) {
            (true, ..) => t::iot_brief_state::IOT_BRIEF_MAY,
            (false, true, _) => t::iot_brief_state::IOT_BRIEF_PAUSES,
            (false, false, Some(_)) => t::iot_brief_state::IOT_BRIEF_SLOW,
            (false, false, None) => t::iot_brief_state::IOT_BRIEF_NO,
        }
        .0 as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::rows;
    use crate::vocabulary::LAYERS;

    #[test]
    fn calls_that_change_handles_go_to_the_ring_that_must_not_lose() {
        for row in rows() {
            let life = spec(&row, &LAYERS).bits & bits::LIFE != 0;
            let changes = !matches!(row.role, Role::Use | Role::None);
            assert_eq!(life, changes, "{}", row.symbol);
        }
    }
}
