//! Operations that the kernel carries out after the call that submitted them: requests of `io_uring`, control blocks of
//! libaio. Opcodes: Linux `include/uapi/linux/io_uring.h` and `aio_abi.h`.

use crate::catalog::Src::{Arg, Int, Iov, Ret};
use crate::catalog::def::{Def, row, rows};
use crate::catalog::role::{Data, Names, Open};
use crate::catalog::{Copies, Family, Row};
use crate::vocabulary::{Kind, Layer, flag};

const fn operation(family: Family, symbol: &'static str, kind: Kind) -> Def<Data> {
    row(family, Layer::Syscall, symbol, kind).flags(flag::ASYNC | flag::NONBLOCKING)
}
/// On an open file. The kernel side knows where requests have what: positions of arguments mean nothing here.
const fn ring(symbol: &'static str, kind: Kind) -> Def<Data> {
    operation(Family::Uring, symbol, kind).handle(Int(0))
}
/// Names a file by a path. Of paths the arguments have these positions: 0 is `fd`, 1 `addr`, 2 `len` and 3 `addr2` of the
/// request (`struct io_uring_sqe`).
const fn named(symbol: &'static str) -> Def<Data> {
    operation(Family::Uring, symbol, Kind::Meta).unrelated().path(1).base(0)
}
/// The same with a second path.
const fn two_names(symbol: &'static str, names: Names) -> Def<Names> {
    named(symbol).changes(names).base2(2).path2(3)
}
const fn opened(symbol: &'static str) -> Def<Open> {
    operation(Family::Uring, symbol, Kind::Open).opens(Ret).path(1).base(0)
}
const fn aio(symbol: &'static str, kind: Kind) -> Def<Data> {
    operation(Family::Aio, symbol, kind).handle(Int(0))
}
const fn data(row: Def<Data>) -> Def<Data> {
    row.len(Arg(0)).off(Arg(0)).got(Ret)
}
const fn vector(row: Def<Data>) -> Def<Data> {
    row.len(Iov(0, 0)).off(Arg(0)).got(Ret)
}

pub(in crate::catalog) const ROWS: &[Row] = rows![
    vector(ring("io_uring.readv", Kind::Read)),
    vector(ring("io_uring.writev", Kind::Write)),
    data(ring("io_uring.read_fixed", Kind::Read)),
    data(ring("io_uring.write_fixed", Kind::Write)),
    data(ring("io_uring.read", Kind::Read)),
    data(ring("io_uring.write", Kind::Write)),
    vector(ring("io_uring.readv_fixed", Kind::Read)),
    vector(ring("io_uring.writev_fixed", Kind::Write)),
    // To a file: what comes from one goes to a pipe, which is left out.
    data(ring("io_uring.splice", Kind::Write)).copies(Copies::Part),
    ring("io_uring.fsync", Kind::Sync),
    ring("io_uring.sync_file_range", Kind::Sync).len(Arg(0)).off(Arg(0)),
    // Its length stands where others have a buffer.
    ring("io_uring.fallocate", Kind::Meta).len(Int(0)).off(Arg(0)),
    ring("io_uring.ftruncate", Kind::Meta).off(Arg(0)),
    ring("io_uring.fadvise", Kind::Other).len(Arg(0)).off(Arg(0)),
    opened("io_uring.openat"),
    opened("io_uring.openat2"),
    operation(Family::Uring, "io_uring.close", Kind::Close).closes(Int(0)),
    named("io_uring.statx"),
    two_names("io_uring.renameat", Names::Rename),
    named("io_uring.unlinkat").changes(Names::Unlink),
    named("io_uring.mkdirat"),
    // The content of a symbolic link is no path yet.
    named("io_uring.symlinkat").path(3),
    two_names("io_uring.linkat", Names::Link),
    data(aio("aio.pread", Kind::Read)),
    data(aio("aio.pwrite", Kind::Write)),
    vector(aio("aio.preadv", Kind::Read)),
    vector(aio("aio.pwritev", Kind::Write)),
    aio("aio.fsync", Kind::Sync),
    aio("aio.fdsync", Kind::Sync),
];

pub(in crate::catalog) const OPCODES: &[(&str, u8)] = &[
    ("io_uring.readv", 1),
    ("io_uring.writev", 2),
    ("io_uring.fsync", 3),
    ("io_uring.read_fixed", 4),
    ("io_uring.write_fixed", 5),
    ("io_uring.sync_file_range", 8),
    ("io_uring.fallocate", 17),
    ("io_uring.openat", 18),
    ("io_uring.close", 19),
    ("io_uring.statx", 21),
    ("io_uring.read", 22),
    ("io_uring.write", 23),
    ("io_uring.fadvise", 24),
    ("io_uring.openat2", 28),
    ("io_uring.splice", 30),
    ("io_uring.renameat", 35),
    ("io_uring.unlinkat", 36),
    ("io_uring.mkdirat", 37),
    ("io_uring.symlinkat", 38),
    ("io_uring.linkat", 39),
    ("io_uring.ftruncate", 55),
    ("io_uring.readv_fixed", 60),
    ("io_uring.writev_fixed", 61),
    ("aio.pread", 0),
    ("aio.pwrite", 1),
    ("aio.fsync", 2),
    ("aio.fdsync", 3),
    ("aio.preadv", 7),
    ("aio.pwritev", 8),
];
