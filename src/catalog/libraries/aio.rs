//! POSIX asynchronous I/O: rows of the C library. Signatures: POSIX.1-2017; a request is the address of its
//! `struct aiocb`, whose members are those of glibc on 64-bit machines (aio.h).

use crate::catalog::Src::{Arg, Field, FieldInt, Ret};
use crate::catalog::def::{Def, row};
use crate::catalog::role::{Data, RequestAction, Submit, SubmitAction};
use crate::catalog::{Array, Count, Fails, Family, JOB_LIST, JOB_READ, JOB_SYNC, JOB_WRITE, Row, Src, When};
use crate::vocabulary::{Kind, Layer};

const FILDES: u16 = 0;
const NBYTES: u16 = 24;
const OFFSET: u16 = 128;
/// asm-generic/errno.h.
const EINPROGRESS: u8 = 115;
/// Integers of 64 bits of it, up to and with the offset.
const BLOCK: u8 = 17;

const fn aio(family: Family, symbol: &'static str, kind: Kind) -> Def<Data> {
    row(family, Layer::Stdio, symbol, kind).fails(Fails::NegativeInt)
}
/// Submits the block that an argument points at.
const fn submit(row: Def<Data>, block: u8, job: u8) -> Def<Submit> {
    row.descriptor()
        .handle(FieldInt(block, FILDES))
        .submits(SubmitAction::Request, Arg(block))
        .array(0, Array::longs(job, When::Entry, block, Count::Const(BLOCK)))
}
/// `int f(struct aiocb *)`
const fn data(family: Family, symbol: &'static str, kind: Kind, job: u8) -> Row {
    submit(aio(family, symbol, kind).len(Field(0, NBYTES)).off(Field(0, OFFSET)), 0, job).done()
}
/// `int f(int, struct aiocb *)`
const fn sync(family: Family, symbol: &'static str) -> Row {
    submit(aio(family, symbol, Kind::Sync), 1, JOB_SYNC).done()
}
/// `int f(int mode, struct aiocb *const list[], int n, struct sigevent *)`
const fn listed(family: Family, symbol: &'static str) -> Row {
    aio(family, symbol, Kind::Other)
        .unrelated()
        .submits(SubmitAction::List, Src::None)
        .array(0, Array::longs(0, When::Entry, 1, Count::Arg(2)))
        .array(1, Array::behind(JOB_LIST, When::Entry, 1, Count::Arg(2), BLOCK))
        .done()
}

const fn rows(family: Family) -> [Row; 16] {
    // Its result is that of the operation. A program that waits calls it over and over.
    let on = aio(family, "aio_error", Kind::Other).unrelated().handle(Arg(0));
    let error = on.request(RequestAction::Ask).result(Ret).fails(Fails::Never).quiet(EINPROGRESS);
    let on = aio(family, "aio_return", Kind::Other).unrelated().handle(Arg(0));
    let result = on.request(RequestAction::Return).result(Ret).fails(Fails::Negative);
    // `int aio_suspend(const struct aiocb *const list[], int n, const struct timespec *)`
    let list = Array::longs(0, When::Entry, 0, Count::Arg(1));
    let suspend = aio(family, "aio_suspend", Kind::Wait).unrelated().request(RequestAction::Ask).array(0, list);
    let on = aio(family, "aio_cancel", Kind::Other).unrelated().handle(Arg(1));
    let cancel = on.request(RequestAction::Ask);
    [
        data(family, "aio_read", Kind::Read, JOB_READ),
        data(family, "aio_read64", Kind::Read, JOB_READ),
        data(family, "aio_write", Kind::Write, JOB_WRITE),
        data(family, "aio_write64", Kind::Write, JOB_WRITE),
        sync(family, "aio_fsync"),
        sync(family, "aio_fsync64"),
        listed(family, "lio_listio"),
        listed(family, "lio_listio64"),
        error.done(),
        error.renamed("aio_error64").done(),
        result.done(),
        result.renamed("aio_return64").done(),
        suspend.done(),
        suspend.renamed("aio_suspend64").done(),
        cancel.done(),
        cancel.renamed("aio_cancel64").done(),
    ]
}

/// They moved from librt to the C library in glibc 2.34.
pub(in crate::catalog) const ROWS: &[[Row; 16]] = &[rows(Family::Libc), rows(Family::Librt)];
