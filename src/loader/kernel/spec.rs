//! Catalog rows as the kernel side sees them (`struct iot_spec`).

use crate::catalog::libraries::hdf5::Effect;
use crate::catalog::variables::Meaning;
use crate::catalog::{
    About, Argument, Array, Async, Copies, Count, Deref, Fails, Family, Hints, InnerValue, Role, Row, Src, When,
};
use crate::skel::types as t;
use crate::skel::types::{iot_from as F, iot_then as T};
use crate::vocabulary::{Kind, Layer};

/// Open MPI 4 and 5: `size` in `struct opal_datatype_t` (`opal/datatype/opal_datatype.h`): a 16-byte object
/// header, then flags (2 bytes), id (2), `bdt_used` (4).
const OMPI_DATATYPE_SIZE: u16 = 24;
/// Open MPI 4 and 5: `_ucount`, bytes transferred, in `struct ompi_status_public_t` (mpi.h).
const OMPI_STATUS_UCOUNT: u16 = 16;

/// Operations of devices, behind the rows of the catalog.
pub const BLOCK_OPS: u32 = t::iot_limit::IOT_BLOCK_OPS.0;

/// No inner value.
const INNER_NONE: u8 = t::iot_limit::IOT_INNER_NONE.0 as u8;

/// A source that starts from something, with the argument or inner value that it takes.
fn start(from: t::iot_from, a: u8) -> t::iot_src {
    t::iot_src { from: from.0 as u8, a, ..t::iot_src::default() }
}

/// Something is done with what it starts from.
fn then(source: t::iot_src, steps: &[t::iot_then]) -> t::iot_src {
    t::iot_src { then: steps.iter().fold(source.then, |all, step| all | step.0 as u8), ..source }
}

/// The member at an offset of the struct that it points at.
fn member(source: t::iot_src, at: u16, steps: &[t::iot_then]) -> t::iot_src {
    then(t::iot_src { k: at, ..then(source, &[T::IOT_THEN_READ]) }, steps)
}

/// The member at an offset of the struct that a member of the struct leads to that it points at.
fn behind(source: t::iot_src, first: u16, second: u8, steps: &[t::iot_then]) -> t::iot_src {
    let source = t::iot_src { at: second, ..then(source, &[T::IOT_THEN_AGAIN]) };
    member(source, first, steps)
}

/// It is joined with another argument or inner value, and an offset or a number.
fn join(source: t::iot_src, how: t::iot_then, b: u8, k: u16) -> t::iot_src {
    then(t::iot_src { b, k, ..source }, &[how])
}

fn src(source: Src) -> t::iot_src {
    const INT: &[T] = &[T::IOT_THEN_INT];
    let arg = |a| start(F::IOT_FROM_ARG, a);
    let int = |a| then(arg(a), INT);
    let (ret, inner) = (start(F::IOT_FROM_RET, 0), |a| start(F::IOT_FROM_INNER, a));
    match source {
        Src::None => t::iot_src::default(),
        Src::Arg(a) => arg(a),
        Src::Int(a) => int(a),
        Src::In(a) => start(F::IOT_FROM_IN, a),
        Src::InInt(a) => then(start(F::IOT_FROM_IN, a), INT),
        Src::Out(a) => member(arg(a), 0, &[]),
        Src::OutInt(a) => member(arg(a), 0, INT),
        Src::Field(a, at) => member(arg(a), at, &[]),
        Src::FieldInt(a, at) => member(arg(a), at, INT),
        Src::Status(a) => member(arg(a), OMPI_STATUS_UCOUNT, &[]),
        Src::StatusSplit(a, at) => member(arg(a), at, &[T::IOT_THEN_SPLIT]),
        Src::Through(a, at, b) => behind(arg(a), at, b, INT),
        Src::Behind(a, at) => behind(arg(a), 0, at, &[]),
        Src::BehindInt(a, at) => behind(arg(a), 0, at, INT),
        Src::RetBehind(at) => behind(ret, 0, at, &[]),
        Src::Ret => ret,
        Src::RetInt => then(ret, INT),
        Src::RetTimes(a) => join(ret, T::IOT_TIMES_ARG, a, 0),
        Src::RetScaled(k) => join(ret, T::IOT_TIMES_CONST, 0, k),
        Src::Scaled(a, k) => join(arg(a), T::IOT_TIMES_CONST, 0, k),
        Src::Mul(a, b) => join(arg(a), T::IOT_TIMES_ARG, b, 0),
        Src::Typed(a, b) => join(int(a), T::IOT_TIMES_FIELD, b, OMPI_DATATYPE_SIZE),
        Src::TypedLong(a, b) => join(arg(a), T::IOT_TIMES_FIELD, b, OMPI_DATATYPE_SIZE),
        Src::TypedNumber(a, b) => join(int(a), T::IOT_TIMES_TYPE, b, 0),
        Src::MpiSize(a, b) => join(arg(a), T::IOT_TIMES_MPI, b, OMPI_DATATYPE_SIZE),
        Src::FromInner(a) => inner(a),
        Src::InnerProduct(a, b) => join(inner(a), T::IOT_TIMES_INNER, b, 0),
        Src::CountInner(a, b) => join(int(a), T::IOT_TIMES_INNER, b, 0),
        Src::ArgInner(a, b) => join(arg(a), T::IOT_TIMES_INNER, b, 0),
        Src::Pair(a, b) => join(arg(a), T::IOT_BELOW_ARG, b, 0),
        Src::PairInner(a, b) => join(arg(a), T::IOT_BELOW_INNER, b, 0),
        Src::PairOut(a, b) => join(arg(a), T::IOT_BELOW_OUT, b, 0),
        Src::Rounds(count, a, b) => t::iot_src { b: a, k: u16::from(b), ..start(F::IOT_FROM_ROUNDS, count) },
        Src::Const(n) => t::iot_src { k: u16::from(n), ..start(F::IOT_FROM_CONST, 0) },
        Src::Strlen(a) => start(F::IOT_FROM_STRLEN, a),
        Src::Line(a) => t::iot_src { k: 1, ..start(F::IOT_FROM_STRLEN, a) },
        Src::Iov(a, b) => t::iot_src { b, ..start(F::IOT_FROM_VECTOR, a) },
        Src::Message(a) => start(F::IOT_FROM_MESSAGE, a),
        Src::Asked => start(F::IOT_FROM_LEN, 0),
        Src::Pos => start(F::IOT_FROM_FILE_POS, 0),
        Src::Global(_) => start(F::IOT_FROM_GLOBAL, 0),
        Src::StreamPos => start(F::IOT_FROM_STREAM_POS, 0),
        Src::StreamEnd => start(F::IOT_FROM_STREAM_END, 0),
        Src::StreamMoved => start(F::IOT_FROM_STREAM_MOVED, 0),
        Src::Cloexec => start(F::IOT_FROM_CLOEXEC, 0),
    }
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

fn array(array: Option<Array>) -> t::iot_array_spec {
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
    let plain = matches!(row.role(), Role::Use | Role::None);
    let stream = row.layer == Layer::Stdio && !row.descriptor && row.values().handle != Src::None;
    let at = |when| row.arrays.iter().flatten().any(|w| w.when == when);
    let on_descriptor = matches!(row.role(), Role::Use | Role::Close | Role::Dup | Role::Inherit);
    [
        (F::IOT_S_LIFE, !plain || row.is_phase()),
        (F::IOT_S_FD, syscall && on_descriptor),
        (F::IOT_S_FD_RET, syscall && row.role() == Role::Open),
        (F::IOT_S_STAT, row.stat.is_some_and(|(_, extended)| !extended)),
        (F::IOT_S_STATX, row.stat.is_some_and(|(_, extended)| extended)),
        (F::IOT_S_ONLY, row.only.is_some()),
        (F::IOT_S_INSIDE, row.inside),
        (F::IOT_S_SUBMIT, row.awaited),
        (F::IOT_S_STACK, row.stack_arguments()),
        (F::IOT_S_ENTRY, at(When::Entry)),
        (F::IOT_S_RETURN, at(When::Return)),
        (F::IOT_S_OUTER, row.outermost),
        (F::IOT_S_ALL, row.asynchronous() == Async::Wait),
        (F::IOT_S_AWAIT, !layers.contains(&row.layer)),
        (F::IOT_S_STREAM, stream && matches!(row.role(), Role::Use | Role::Close)),
        (F::IOT_S_PHASE, row.is_phase()),
        (F::IOT_S_OTHERWISE, row.otherwise),
        (F::IOT_S_MAPPED, row.mapped),
        (F::IOT_S_RANGES, row.copies == Copies::Ranges),
        (F::IOT_S_SEND, row.copies == Copies::Send),
        (F::IOT_S_PIPES, row.copies == Copies::Pipes),
        (F::IOT_S_EARLY, row.early),
        (F::IOT_S_OPERATION, matches!(row.family, Family::Uring | Family::Aio)),
        (F::IOT_S_NAMES, row.names),
        (F::IOT_S_ALL_INNER, row.wants_every),
        (F::IOT_S_READS, syscall && row.kind == Kind::Read),
        (F::IOT_S_OPENS, !syscall && matches!(row.role(), Role::Open | Role::Reopen | Role::Dup)),
        (F::IOT_S_JUMPS, row.jumps()),
    ]
    .into_iter()
    .filter(|(_, on)| *on)
    .fold(0, |flags, (flag, _)| flags | flag.0)
}

/// Can the kernel side sum up calls of a row by itself? Of a library's it cannot where they make or end handles,
/// where arrays go with them, and where they wait for each other.
fn sums(row: &Row) -> t::iot_sums_how {
    let plain = matches!(row.role(), Role::Use | Role::None);
    let affects = row.effect() != Effect::Nothing || row.meaning() != Meaning::Nothing || row.hints() != Hints::None;
    // What it was given is no number of bytes.
    let plain_values = plain && row.argument() == Argument::Nothing;
    let library = !matches!(row.layer, Layer::Syscall | Layer::Vfs | Layer::Fs);
    let needs_more = !plain
        || affects
        || row.asynchronous() != Async::No
        || row.awaited
        || row.slow_path.is_some()
        || row.arrays.iter().any(Option::is_some);
    // What a file is called from now on must be known.
    let renames = matches!(row.role(), Role::Rename | Role::Exchange | Role::Link);
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
    let inner = |value: Option<InnerValue>| value.map_or(INNER_NONE, |value| value as u8);
    let (only_arg, a, b) = row.only.unwrap_or_default();
    let values = row.values();
    let mut off = src(values.off);
    if values.off == Src::StreamPos && row.kind == Kind::Write {
        off.k = 1;
    }
    let mut got = src(values.got);
    if values.got == Src::Cloexec {
        got.b = u8::from(values.handle == Src::Ret);
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
        handle: src(values.handle),
        len: src(values.len),
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
        gives: inner(row.inner().map(|inner| inner.gives)),
        pad: [0; 3],
        wants: row.wants.map(inner),
        arrays: row.arrays.map(array),
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
            let changes = !matches!(row.role(), Role::Use | Role::None);
            assert_eq!(life, changes, "{}", row.symbol);
        }
    }
}
