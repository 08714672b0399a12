//! Catalog rows as the kernel side sees them (`struct iot_spec`).

use crate::catalog::hdf5::Tells;
use crate::catalog::variables::Meaning;
use crate::catalog::{
    About, Argument, Async, Copies, Count, Deref, Fails, Family, Hints, Note, Role, Row, Src, When, Words,
};
use crate::skel::types as t;
use crate::vocabulary::{Kind, Layer};

/// Open MPI 4 and 5: `size` in `struct opal_datatype_t` (`opal/datatype/opal_datatype.h`): a 16-byte object
/// header, then flags (2 bytes), id (2), `bdt_used` (4).
const OMPI_DATATYPE_SIZE: u32 = 24;
/// Open MPI 4 and 5: `_ucount`, bytes transferred, in `struct ompi_status_public_t` (mpi.h).
const OMPI_STATUS_UCOUNT: u32 = 16;

/// Operations of devices, behind the rows of the catalog.
pub const BLOCK_OPS: u32 = t::iot_limit::IOT_BLOCK_OPS.0;

/// No note.
const NO_NOTE: u8 = t::iot_limit::IOT_NO_NOTE.0 as u8;

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

fn array(array: Option<Words>) -> t::iot_array_spec {
    use t::iot_count as C;
    let Some(array) = array else { return t::iot_array_spec::default() };
    let when = match array.when {
        When::Entry => t::iot_when::IOT_READ_AT_ENTRY,
        When::Return => t::iot_when::IOT_READ_AT_RETURN,
    };
    let (count, n) = match array.count {
        Count::Const(n) => (C::IOT_N_CONST, n),
        Count::Arg(n) => (C::IOT_N_ARG, n),
        Count::Ret => (C::IOT_N_RET, 0),
        Count::At(n) => (C::IOT_N_AT, n),
        Count::Rank => (C::IOT_N_RANK, 0),
    };
    let deref = match array.deref {
        Deref::No => t::iot_deref::IOT_DEREF_NONE.0 as u8,
        Deref::Longs(n) => n,
        Deref::Boxes => t::iot_deref::IOT_DEREF_BOXES.0 as u8,
        Deref::Members => t::iot_deref::IOT_DEREF_MEMBERS.0 as u8,
        Deref::Storage => t::iot_deref::IOT_DEREF_STORAGE.0 as u8,
    };
    t::iot_array_spec {
        when: when.0 as u8,
        arg: array.arg,
        elem: array.elem,
        count: count.0 as u8,
        n,
        slot: array.slot,
        deref,
        rank: u8::from(array.rank),
    }
}

/// `iot_spec.flags`.
fn flags(row: &Row, layers: &[Layer]) -> u32 {
    use t::iot_spec_flag as F;
    let syscall = row.family == Family::Syscall;
    let plain = matches!(row.role, Role::Use | Role::None);
    let stream = row.layer == Layer::Stdio && !row.descriptor && row.handle != Src::None;
    let at = |when| row.words.iter().flatten().any(|w| w.when == when);
    let on_descriptor = matches!(row.role, Role::Use | Role::Close | Role::Dup | Role::Inherit);
    [
        (F::IOT_S_LIFE, !plain || row.is_phase()),
        (F::IOT_S_FD, syscall && on_descriptor),
        (F::IOT_S_FD_RET, syscall && row.role == Role::Open),
        (F::IOT_S_STAT, row.stat.is_some_and(|(_, extended)| !extended)),
        (F::IOT_S_STATX, row.stat.is_some_and(|(_, extended)| extended)),
        (F::IOT_S_ONLY, row.only.is_some()),
        (F::IOT_S_INSIDE, row.inside),
        (F::IOT_S_SUBMIT, row.submits),
        (F::IOT_S_STACK, row.stack_arguments()),
        (F::IOT_S_ENTRY, at(When::Entry)),
        (F::IOT_S_RETURN, at(When::Return)),
        (F::IOT_S_OUTER, row.outermost),
        (F::IOT_S_ALL, row.asynchronous == Async::Wait),
        (F::IOT_S_AWAIT, !layers.contains(&row.layer)),
        (F::IOT_S_STREAM, stream && matches!(row.role, Role::Use | Role::Close)),
        (F::IOT_S_PHASE, row.is_phase()),
        (F::IOT_S_OTHERWISE, row.otherwise),
        (F::IOT_S_MAPPED, row.mapped),
        (F::IOT_S_RANGES, row.copies == Copies::Ranges),
        (F::IOT_S_SEND, row.copies == Copies::Send),
        (F::IOT_S_PIPES, row.copies == Copies::Pipes),
        (F::IOT_S_EARLY, row.early),
        (F::IOT_S_OPERATION, matches!(row.family, Family::Uring | Family::Aio)),
        (F::IOT_S_NAMES, row.names),
        (F::IOT_S_EVERY, row.every),
        (F::IOT_S_READS, syscall && row.kind == Kind::Read),
        (F::IOT_S_OPENS, !syscall && matches!(row.role, Role::Open | Role::Reopen | Role::Dup)),
        (F::IOT_S_JUMPS, row.jumps),
    ]
    .into_iter()
    .filter(|(_, on)| *on)
    .fold(0, |flags, (flag, _)| flags | flag.0)
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
    let note = |note: Option<Note>| note.map_or(NO_NOTE, |note| note as u8);
    let (only_arg, a, b) = row.only.unwrap_or_default();
    let mut off = src(row.off);
    if row.off == Src::StreamPos && row.kind == Kind::Write {
        off.k = 1;
    }
    let mut got = src(row.got);
    if row.got == Src::Cloexec {
        got.b = u8::from(row.handle == Src::Ret);
    }
    let kind = match row.kind {
        Kind::Read => t::iot_kind::IOT_READS,
        Kind::Write => t::iot_kind::IOT_WRITES,
        _ => t::iot_kind::IOT_NEITHER,
    };
    let brief = match (row.brief, row.pauses, row.slow_path) {
        (true, ..) => t::iot_brief_state::IOT_BRIEF_MAY,
        (false, true, _) => t::iot_brief_state::IOT_BRIEF_PAUSES,
        (false, false, Some(_)) => t::iot_brief_state::IOT_BRIEF_SLOW,
        (false, false, None) => t::iot_brief_state::IOT_BRIEF_NO,
    };
    t::iot_spec {
        handle: src(row.handle),
        len: src(row.len),
        off,
        got,
        flags: flags(row, layers),
        path: [arg(row.path), arg(row.path2)],
        base: [arg(row.base), arg(row.base2)],
        only: [a, b],
        only_arg,
        stat_arg: row.stat.map_or(0, |(arg, _)| arg),
        fails: fails(row.fails),
        layer: row.layer as u8,
        kind: kind.0 as u8,
        sums: sums(row).0 as u8,
        brief: brief.0 as u8,
        about: about(row.about),
        quiet: row.quiet,
        note: note(row.note),
        pad: [0; 3],
        takes: row.takes.map(note),
        arrays: row.words.map(array),
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
            let life = spec(&row, &LAYERS).flags & t::iot_spec_flag::IOT_S_LIFE.0 != 0;
            let changes = !matches!(row.role, Role::Use | Role::None);
            assert_eq!(life, changes, "{}", row.symbol);
        }
    }
}
