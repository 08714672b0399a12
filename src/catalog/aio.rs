//! POSIX asynchronous I/O: rows of the C library. Signatures: POSIX.1-2017; a request is the address of its
//! `struct aiocb`, whose members are those of glibc on 64-bit machines (aio.h).

use crate::catalog::Src::{Arg, Field, FieldInt, Ret};
use crate::catalog::{
    Async, Count, Fails, Family, JOB_LIST, JOB_READ, JOB_SYNC, JOB_WRITE, Role, Row, When, Words, row,
};
use crate::vocabulary::{Kind, Layer};

const FILDES: u32 = 0;
const NBYTES: u32 = 24;
const OFFSET: u32 = 128;
/// asm-generic/errno.h.
const EINPROGRESS: u8 = 115;
/// Words of it, up to and with the offset.
const BLOCK: u8 = 17;

const fn aio(family: Family, symbol: &'static str, kind: Kind) -> Row {
    row(family, Layer::Stdio, symbol, kind).role(Role::None).fails(Fails::NegativeInt)
}
/// Submits the block that an argument points at.
const fn submit(row: Row, block: u8, job: u8) -> Row {
    row.role(Role::Use)
        .descriptor()
        .handle(FieldInt(block, FILDES))
        .got(Arg(block))
        .asynchronous(Async::Submit)
        .words(0, Words::longs(job, When::Entry, block, Count::Const(BLOCK)))
}
/// `int f(struct aiocb *)`
const fn data(family: Family, symbol: &'static str, kind: Kind, job: u8) -> Row {
    submit(aio(family, symbol, kind), 0, job).len(Field(0, NBYTES)).off(Field(0, OFFSET))
}
/// `int f(int, struct aiocb *)`
const fn sync(family: Family, symbol: &'static str) -> Row {
    submit(aio(family, symbol, Kind::Sync), 1, JOB_SYNC)
}
const fn ask(row: Row) -> Row {
    row.asynchronous(Async::Ask)
}
/// `int f(int mode, struct aiocb *const list[], int n, struct sigevent *)`
const fn list(family: Family, symbol: &'static str) -> Row {
    aio(family, symbol, Kind::Other)
        .asynchronous(Async::SubmitList)
        .words(0, Words::longs(0, When::Entry, 1, Count::Arg(2)))
        .words(1, Words::behind(JOB_LIST, When::Entry, 1, Count::Arg(2), BLOCK))
}

const fn renamed(mut row: Row, symbol: &'static str) -> Row {
    (row.symbol, row.op) = (symbol, symbol);
    row
}

const fn rows(family: Family) -> [Row; 16] {
    // Its result is that of the operation. Who waits calls it over and over.
    let error = aio(family, "aio_error", Kind::Other).fails(Fails::Never).handle(Arg(0)).got(Ret).quiet(EINPROGRESS);
    let result = aio(family, "aio_return", Kind::Other).fails(Fails::Negative).handle(Arg(0)).got(Ret);
    // `int aio_suspend(const struct aiocb *const list[], int n, const struct timespec *)`
    let suspend = aio(family, "aio_suspend", Kind::Wait).words(0, Words::longs(0, When::Entry, 0, Count::Arg(1)));
    let cancel = aio(family, "aio_cancel", Kind::Other).handle(Arg(1));
    [
        data(family, "aio_read", Kind::Read, JOB_READ),
        data(family, "aio_read64", Kind::Read, JOB_READ),
        data(family, "aio_write", Kind::Write, JOB_WRITE),
        data(family, "aio_write64", Kind::Write, JOB_WRITE),
        sync(family, "aio_fsync"),
        sync(family, "aio_fsync64"),
        list(family, "lio_listio"),
        list(family, "lio_listio64"),
        ask(error),
        ask(renamed(error, "aio_error64")),
        result.asynchronous(Async::Return),
        renamed(result, "aio_return64").asynchronous(Async::Return),
        ask(suspend),
        ask(renamed(suspend, "aio_suspend64")),
        ask(cancel),
        ask(renamed(cancel, "aio_cancel64")),
    ]
}

/// They moved from librt to the C library in glibc 2.34.
pub(super) const ROWS: &[[Row; 16]] = &[rows(Family::Libc), rows(Family::Librt)];
