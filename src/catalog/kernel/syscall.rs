//! System call rows. Their numbers are in `number.rs`. Signatures: man section 2; Linux `include/linux/syscalls.h`.

use crate::catalog::Src::{self, Arg, Cloexec, Field, FieldInt, Int, Iov, Message, Pair, Pos, Ret};
use crate::catalog::def::{Def, row, rows};
use crate::catalog::role::{Data, Dup, Lock, Names, Open};
use crate::catalog::{Copies, Family, Row};
use crate::vocabulary::{Kind, Layer};

const fn sys(symbol: &'static str, kind: Kind) -> Def<Data> {
    row(Family::Syscall, Layer::Syscall, symbol, kind)
}
/// A call on an open descriptor, its first argument.
const fn fd(symbol: &'static str, kind: Kind) -> Def<Data> {
    sys(symbol, kind).handle(Int(0))
}
/// A call that names a file by its first argument.
const fn named(symbol: &'static str, kind: Kind) -> Def<Data> {
    sys(symbol, kind).unrelated().path(0)
}
/// A call that names a file by (directory descriptor, path).
const fn named_at(symbol: &'static str, kind: Kind) -> Def<Data> {
    sys(symbol, kind).unrelated().base(0).path(1)
}
/// `int f(olddirfd, oldpath, newdirfd, newpath, ...)`.
const fn renames(symbol: &'static str, names: Names) -> Def<Names> {
    named_at(symbol, Kind::Meta).changes(names).base2(2).path2(3)
}
/// `ssize_t f(fd, buf, count)` at the file position.
const fn data(symbol: &'static str, kind: Kind) -> Def<Data> {
    fd(symbol, kind).len(Arg(2)).got(Ret).off(Pos)
}
/// `ssize_t f(fd, iov, iovcnt, ...)`.
const fn vector(symbol: &'static str, kind: Kind) -> Def<Data> {
    fd(symbol, kind).len(Iov(1, 2)).got(Ret)
}

/// A call that makes a descriptor, its result.
const fn opens(row: Def<Data>) -> Def<Open> {
    row.opens(Ret).got(Cloexec)
}
/// A call that makes another descriptor of a file, its result.
const fn dups(symbol: &'static str) -> Def<Dup> {
    sys(symbol, Kind::Other).dups(Ret, Int(0)).cloexec(Cloexec)
}
/// `int fcntl(fd, cmd, arg)`: the command and its argument.
const COMMAND: Src = Pair(1, 2);
/// `int fcntl(fd, cmd, struct flock *)`, whose first member is the kind of lock.
const fn record_lock(symbol: &'static str, command: u32, waiting: u32) -> Def<Lock> {
    fd(symbol, Kind::Other).locks(COMMAND, FieldInt(2, 0)).op("fcntl").only(1, command, waiting).otherwise()
}
/// A call on a mapping: the kernel side puts the offset in the file in place of the address.
const fn mapping(symbol: &'static str, kind: Kind) -> Def<Data> {
    sys(symbol, kind).unrelated().mapped().off(Arg(0)).len(Arg(1))
}

/// A call that moves data between two files. The kernel side puts the descriptors and offsets at these places, the destination
/// first.
const fn copy(symbol: &'static str, what: Copies) -> Def<Data> {
    fd(symbol, Kind::Write).off(Arg(1)).len(Arg(4)).got(Ret).copies(what)
}
/// The same call where only its source is recorded, or the half that reads.
const fn from(symbol: &'static str, op: &'static str) -> Def<Data> {
    sys(symbol, Kind::Read).op(op).handle(Int(2)).off(Arg(3)).len(Arg(4)).got(Ret).copies(Copies::Part)
}

/// A call on operations, which are spans of their own (`operation.rs`).
const fn submits(symbol: &'static str, kind: Kind) -> Def<Data> {
    sys(symbol, kind).unrelated()
}

/// Calls that copy, which have a half that reads: `sendfile.read`.
pub const COPIES: [&str; 4] = ["copy_file_range", "sendfile", "splice", "tee"];

/// `include/uapi/linux/fs.h`; no other flag may go with it.
const RENAME_EXCHANGE: u32 = 1 << 1;
const F_DUPFD: u32 = 0;
const F_SETFD: u32 = 2;
const F_SETLK: u32 = 6;
const F_SETLKW: u32 = 7;
const F_OFD_SETLK: u32 = 37;
const F_OFD_SETLKW: u32 = 38;
const F_DUPFD_CLOEXEC: u32 = 1030;

pub(in crate::catalog) const ROWS: &[Row] = rows![
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
    opens(named("open", Kind::Open)).mode(Int(1)),
    opens(named_at("openat", Kind::Open)).mode(Int(2)),
    // The flags are the first member of struct open_how.
    opens(named_at("openat2", Kind::Open)).mode(Field(2, 0)),
    opens(named("creat", Kind::Open)),
    opens(sys("open_by_handle_at", Kind::Open)).mode(Int(2)),
    opens(sys("memfd_create", Kind::Open)),
    sys("close", Kind::Close).closes(Int(0)),
    sys("close_range", Kind::Close).closes_range(Int(0), Int(1), Int(2)),
    copy("copy_file_range", Copies::Ranges),
    from("copy_file_range from a file", "copy_file_range"),
    from("copy_file_range.read", "copy_file_range.read"),
    copy("sendfile", Copies::Send),
    from("sendfile from a file", "sendfile"),
    from("sendfile.read", "sendfile.read"),
    copy("splice", Copies::Ranges),
    from("splice from a file", "splice"),
    from("splice.read", "splice.read"),
    copy("tee", Copies::Pipes).sockets(),
    from("tee from a pipe", "tee").sockets(),
    from("tee.read", "tee.read").sockets(),
    fd("vmsplice", Kind::Write).len(Iov(1, 2)).got(Ret).sockets(),
    fd("sendto", Kind::Write).len(Arg(2)).got(Ret).sockets(),
    fd("recvfrom", Kind::Read).len(Arg(2)).got(Ret).sockets(),
    fd("sendmsg", Kind::Write).len(Message(1)).got(Ret).sockets(),
    fd("recvmsg", Kind::Read).len(Message(1)).got(Ret).sockets(),
    fd("lseek", Kind::Seek).seeks(Ret, Arg(1), Int(2)),
    fd("fsync", Kind::Sync),
    fd("fdatasync", Kind::Sync),
    fd("syncfs", Kind::Sync),
    sys("sync", Kind::Sync).unrelated(),
    fd("sync_file_range", Kind::Sync).off(Arg(1)).len(Arg(2)),
    fd("readahead", Kind::Other).off(Arg(1)).len(Arg(2)),
    fd("fadvise64", Kind::Other).off(Arg(1)).len(Arg(2)),
    // Memory without a file is left out.
    fd("mmap", Kind::Mmap).handle(Int(4)).off(Arg(5)).len(Arg(1)),
    mapping("munmap", Kind::Mmap),
    mapping("mremap", Kind::Mmap),
    mapping("madvise", Kind::Other),
    mapping("msync", Kind::Sync),
    named("truncate", Kind::Meta).off(Arg(1)),
    fd("ftruncate", Kind::Meta).off(Arg(1)),
    fd("fallocate", Kind::Meta).off(Arg(2)).len(Arg(3)),
    named("rename", Kind::Meta).changes(Names::Rename).path2(1),
    renames("renameat", Names::Rename),
    renames("renameat2", Names::Exchange).only(4, RENAME_EXCHANGE, RENAME_EXCHANGE).otherwise(),
    renames("renameat2 to a name", Names::Rename).op("renameat2"),
    named("unlink", Kind::Meta).changes(Names::Unlink),
    named_at("unlinkat", Kind::Meta).changes(Names::Unlink),
    named("rmdir", Kind::Meta).changes(Names::Unlink),
    named("link", Kind::Meta).changes(Names::Link).path2(1),
    named_at("linkat", Kind::Meta).changes(Names::Link).base2(2).path2(3),
    // The content of a symbolic link is no path yet.
    sys("symlink", Kind::Meta).unrelated().path(1),
    sys("symlinkat", Kind::Meta).unrelated().base(1).path(2),
    named("readlink", Kind::Meta).len(Arg(2)).got(Ret),
    named_at("readlinkat", Kind::Meta).len(Arg(3)).got(Ret),
    named("mkdir", Kind::Meta),
    named_at("mkdirat", Kind::Meta),
    named("mknod", Kind::Meta),
    named_at("mknodat", Kind::Meta),
    named("chmod", Kind::Meta),
    fd("fchmod", Kind::Meta),
    named_at("fchmodat", Kind::Meta),
    named_at("fchmodat2", Kind::Meta),
    named("chown", Kind::Meta),
    fd("fchown", Kind::Meta),
    named("lchown", Kind::Meta),
    named_at("fchownat", Kind::Meta),
    named("utime", Kind::Meta),
    named("utimes", Kind::Meta),
    named_at("futimesat", Kind::Meta),
    named_at("utimensat", Kind::Meta),
    named("access", Kind::Meta),
    named_at("faccessat", Kind::Meta),
    named_at("faccessat2", Kind::Meta),
    named("chdir", Kind::Meta).early(),
    fd("fchdir", Kind::Meta),
    named("stat", Kind::Meta).stat(1, false),
    named("lstat", Kind::Meta).stat(1, false),
    fd("fstat", Kind::Meta),
    named_at("newfstatat", Kind::Meta).stat(2, false),
    named_at("statx", Kind::Meta).stat(4, true),
    named("statfs", Kind::Meta),
    named("execve", Kind::Other).early(),
    named_at("execveat", Kind::Other).early(),
    fd("fstatfs", Kind::Meta),
    named_at("name_to_handle_at", Kind::Meta),
    fd("getdents", Kind::Meta).len(Arg(2)).got(Ret),
    fd("getdents64", Kind::Meta).len(Arg(2)).got(Ret),
    named("setxattr", Kind::Meta).len(Arg(3)),
    named("lsetxattr", Kind::Meta).len(Arg(3)),
    fd("fsetxattr", Kind::Meta).len(Arg(3)),
    named("getxattr", Kind::Meta).len(Arg(3)).got(Ret),
    named("lgetxattr", Kind::Meta).len(Arg(3)).got(Ret),
    fd("fgetxattr", Kind::Meta).len(Arg(3)).got(Ret),
    named("listxattr", Kind::Meta).len(Arg(2)).got(Ret),
    named("llistxattr", Kind::Meta).len(Arg(2)).got(Ret),
    fd("flistxattr", Kind::Meta).len(Arg(2)).got(Ret),
    named("removexattr", Kind::Meta),
    named("lremovexattr", Kind::Meta),
    fd("fremovexattr", Kind::Meta),
    named_at("setxattrat", Kind::Meta),
    named_at("getxattrat", Kind::Meta).got(Ret),
    named_at("listxattrat", Kind::Meta).len(Arg(4)).got(Ret),
    named_at("removexattrat", Kind::Meta),
    fd("flock", Kind::Other).locks(Src::None, Int(1)),
    dups("dup"),
    dups("dup2"),
    dups("dup3"),
    dups("fcntl").command(COMMAND).only(1, F_DUPFD, F_DUPFD_CLOEXEC).otherwise(),
    fd("fcntl F_SETFD", Kind::Other)
        .inherits(Cloexec)
        .command(COMMAND)
        .op("fcntl")
        .only(1, F_SETFD, F_SETFD)
        .otherwise(),
    record_lock("fcntl F_SETLK", F_SETLK, F_SETLKW),
    record_lock("fcntl F_OFD_SETLK", F_OFD_SETLK, F_OFD_SETLKW),
    fd("fcntl on flags", Kind::Other).command(COMMAND).op("fcntl"),
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
];
