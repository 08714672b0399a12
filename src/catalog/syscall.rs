//! System call rows and their numbers on `x86_64`. Signatures: man section 2; Linux `include/linux/syscalls.h`.

use super::Src::{Arg, Int, Iov, Pos, Ret};
use super::{Family, Role, Row, row};
use crate::words::{Kind, Layer};

const fn sys(symbol: &'static str, kind: Kind) -> Row {
    row(Family::Syscall, Layer::Syscall, symbol, kind)
}
/// A call on an open descriptor, its first argument.
const fn fd(symbol: &'static str, kind: Kind) -> Row {
    sys(symbol, kind).handle(Int(0))
}
/// A call that names a file by its first argument.
const fn named(symbol: &'static str, kind: Kind) -> Row {
    sys(symbol, kind).role(Role::None).path(0)
}
/// A call that names a file by (directory descriptor, path).
const fn named_at(symbol: &'static str, kind: Kind) -> Row {
    sys(symbol, kind).role(Role::None).base(0).path(1)
}
/// `ssize_t f(fd, buf, count)` at the file position.
const fn data(symbol: &'static str, kind: Kind) -> Row {
    fd(symbol, kind).len(Arg(2)).got(Ret).off(Pos)
}
/// `ssize_t f(fd, iov, iovcnt, ...)`.
const fn vector(symbol: &'static str, kind: Kind) -> Row {
    fd(symbol, kind).len(Iov(1, 2)).got(Ret)
}

/// A call on operations, which are spans of their own (`operation.rs`).
const fn submits(symbol: &'static str, kind: Kind) -> Row {
    sys(symbol, kind).role(Role::None)
}

/// `splice` from a pipe to a file: the same system call, of another kind.
pub const SPLICE_TO: &str = "splice to a file";

const F_DUPFD: u32 = 0;
const F_DUPFD_CLOEXEC: u32 = 1030;

pub(super) const ROWS: &[Row] = &[
    data("read", Kind::Read),
    data("write", Kind::Write),
    data("pread64", Kind::Read).off(Arg(3)),
    data("pwrite64", Kind::Write).off(Arg(3)),
    vector("readv", Kind::Read).off(Pos),
    vector("writev", Kind::Write).off(Pos),
    vector("preadv", Kind::Read).off(Arg(3)),
    vector("pwritev", Kind::Write).off(Arg(3)),
    // An offset of -1 means the file position (preadv2(2)); the kernel side turns it into that.
    vector("preadv2", Kind::Read).off(Arg(3)),
    vector("pwritev2", Kind::Write).off(Arg(3)),
    named("open", Kind::Open).role(Role::Open).handle(Ret).len(Int(1)),
    named_at("openat", Kind::Open).role(Role::Open).handle(Ret).len(Int(2)),
    named_at("openat2", Kind::Open).role(Role::Open).handle(Ret),
    named("creat", Kind::Open).role(Role::Open).handle(Ret),
    fd("close", Kind::Close).role(Role::Close),
    // One end is a pipe. The kernel side gives it these arguments, whichever end is a file (`bpf/syscall.h`).
    fd("splice", Kind::Read).off(Arg(1)).len(Arg(4)).got(Ret),
    fd(SPLICE_TO, Kind::Write).op("splice").off(Arg(1)).len(Arg(4)).got(Ret),
    fd("lseek", Kind::Seek).off(Ret),
    fd("fsync", Kind::Sync),
    fd("fdatasync", Kind::Sync),
    named("truncate", Kind::Meta).off(Arg(1)),
    fd("ftruncate", Kind::Meta).off(Arg(1)),
    fd("fallocate", Kind::Meta).off(Arg(2)).len(Arg(3)),
    named("rename", Kind::Meta).role(Role::Rename).path2(1),
    named_at("renameat", Kind::Meta).role(Role::Rename).base2(2).path2(3),
    named_at("renameat2", Kind::Meta).role(Role::Rename).base2(2).path2(3),
    named("unlink", Kind::Meta).role(Role::Unlink),
    named_at("unlinkat", Kind::Meta).role(Role::Unlink),
    named("stat", Kind::Meta).stat(1, false),
    named("lstat", Kind::Meta).stat(1, false),
    fd("fstat", Kind::Meta),
    named_at("newfstatat", Kind::Meta).stat(2, false),
    named_at("statx", Kind::Meta).stat(4, true),
    fd("dup", Kind::Other).role(Role::Dup).handle(Ret).off(Int(0)),
    fd("dup2", Kind::Other).role(Role::Dup).handle(Ret).off(Int(0)),
    fd("dup3", Kind::Other).role(Role::Dup).handle(Ret).off(Int(0)),
    submits("io_setup", Kind::Other),
    submits("io_destroy", Kind::Other),
    submits("io_submit", Kind::Other),
    submits("io_getevents", Kind::Wait),
    submits("io_pgetevents", Kind::Wait),
    submits("io_cancel", Kind::Other),
    submits("io_uring_setup", Kind::Other),
    submits("io_uring_register", Kind::Other),
    // It submits and waits, often in one call.
    submits("io_uring_enter", Kind::Wait),
    fd("fcntl", Kind::Other).role(Role::Dup).handle(Ret).off(Int(0)).only(1, F_DUPFD, F_DUPFD_CLOEXEC),
];

/// Linux `arch/x86/entry/syscalls/syscall_64.tbl`.
pub(super) const NUMBERS: &[(&str, u32)] = &[
    ("read", 0),
    ("write", 1),
    ("pread64", 17),
    ("pwrite64", 18),
    ("readv", 19),
    ("writev", 20),
    ("preadv", 295),
    ("pwritev", 296),
    ("preadv2", 327),
    ("pwritev2", 328),
    ("open", 2),
    ("openat", 257),
    ("openat2", 437),
    ("creat", 85),
    ("close", 3),
    ("lseek", 8),
    ("fsync", 74),
    ("fdatasync", 75),
    ("truncate", 76),
    ("ftruncate", 77),
    ("fallocate", 285),
    ("rename", 82),
    ("renameat", 264),
    ("renameat2", 316),
    ("unlink", 87),
    ("unlinkat", 263),
    ("stat", 4),
    ("lstat", 6),
    ("fstat", 5),
    ("newfstatat", 262),
    ("statx", 332),
    ("dup", 32),
    ("dup2", 33),
    ("dup3", 292),
    ("fcntl", 72),
    ("splice", 275),
    (SPLICE_TO, 275),
    ("io_setup", 206),
    ("io_destroy", 207),
    ("io_getevents", 208),
    ("io_submit", 209),
    ("io_cancel", 210),
    ("io_pgetevents", 333),
    ("io_uring_setup", 425),
    ("io_uring_enter", 426),
    ("io_uring_register", 427),
];
