//! System calls.

use crate::replay_code::calls::Arg::{
    self, Argument, File, Handle, KnownFile, Moved, Offset, OpenFlags, Opened, Requested, SecondFile, Whence,
};
use crate::replay_code::calls::Does::{self, Closes, Opens, Uses};
use crate::replay_code::calls::Row;
use crate::vocabulary::Layer;

const fn posix(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Syscall, ops, does, args, c }
}

pub const ROWS: &[Row] = &[
    posix(Uses, &[], &[], r#"good("MPI_Barrier", MPI_Barrier(MPI_COMM_WORLD));"#),
    posix(Uses, &[], &[Handle, Offset], r#"same("lseek", {1}, lseek(fd[{0}], {1}, SEEK_SET));"#),
    posix(
        Opens,
        &["open", "openat", "openat2", "creat"],
        &[Opened, File, OpenFlags],
        r#"fd[{0}] = (int)good("open", open(path({1}), {2}, 0644));"#,
    ),
    posix(Closes, &["close"], &[Handle], r#"good("close", close(fd[{0}]));"#),
    posix(Uses, &["read"], &[Handle, Requested, Moved], r#"same("read", {2}, read(fd[{0}], buffer, {1}));"#),
    posix(Uses, &["write"], &[Handle, Requested, Moved], r#"same("write", {2}, write(fd[{0}], buffer, {1}));"#),
    posix(
        Uses,
        &["pread64"],
        &[Handle, Requested, Moved, Offset],
        r#"same("pread", {2}, pread(fd[{0}], buffer, {1}, {3}));"#,
    ),
    posix(
        Uses,
        &["pwrite64"],
        &[Handle, Requested, Moved, Offset],
        r#"same("pwrite", {2}, pwrite(fd[{0}], buffer, {1}, {3}));"#,
    ),
    posix(Uses, &["readv"], &[Handle, Requested, Moved], r#"same("readv", {2}, readv(fd[{0}], vector({1}), 1));"#),
    posix(Uses, &["writev"], &[Handle, Requested, Moved], r#"same("writev", {2}, writev(fd[{0}], vector({1}), 1));"#),
    posix(
        Uses,
        &["preadv", "preadv2"],
        &[Handle, Requested, Moved, Offset],
        r#"same("preadv", {2}, preadv(fd[{0}], vector({1}), 1, {3}));"#,
    ),
    posix(
        Uses,
        &["pwritev", "pwritev2"],
        &[Handle, Requested, Moved, Offset],
        r#"same("pwritev", {2}, pwritev(fd[{0}], vector({1}), 1, {3}));"#,
    ),
    posix(Uses, &["lseek"], &[Handle, Argument, Whence, Offset], r#"same("lseek", {3}, lseek(fd[{0}], {1}, {2}));"#),
    posix(Uses, &["fsync"], &[Handle], r#"good("fsync", fsync(fd[{0}]));"#),
    posix(Uses, &["fdatasync"], &[Handle], r#"good("fdatasync", fdatasync(fd[{0}]));"#),
    posix(Uses, &["syncfs"], &[Handle], r#"good("syncfs", syncfs(fd[{0}]));"#),
    posix(
        Uses,
        &["sync_file_range"],
        &[Handle, Offset, Requested],
        r#"good("sync_file_range", sync_file_range(fd[{0}], {1}, {2}, SYNC_FILE_RANGE_WRITE));"#,
    ),
    posix(Uses, &["ftruncate"], &[Handle, Offset], r#"good("ftruncate", ftruncate(fd[{0}], {1}));"#),
    posix(Uses, &["truncate"], &[KnownFile, Offset], r#"good("truncate", truncate(path({0}), {1}));"#),
    posix(Uses, &["fallocate"], &[Handle, Offset, Requested], r#"good("fallocate", fallocate(fd[{0}], 0, {1}, {2}));"#),
    posix(
        Uses,
        &["fadvise64"],
        &[Handle, Offset, Requested],
        r#"same("posix_fadvise", 0, posix_fadvise(fd[{0}], {1}, {2}, POSIX_FADV_NORMAL));"#,
    ),
    posix(Uses, &["readahead"], &[Handle, Offset, Requested], r#"good("readahead", readahead(fd[{0}], {1}, {2}));"#),
    posix(Uses, &["fstat", "newfstatat", "statx"], &[Handle], r#"good("fstat", fstat(fd[{0}], &status));"#),
    posix(Uses, &["stat", "newfstatat", "statx"], &[KnownFile], r#"good("stat", stat(path({0}), &status));"#),
    posix(Uses, &["lstat"], &[KnownFile], r#"good("lstat", lstat(path({0}), &status));"#),
    posix(Uses, &["access", "faccessat", "faccessat2"], &[KnownFile], r#"good("access", access(path({0}), F_OK));"#),
    posix(Uses, &["unlink", "unlinkat"], &[KnownFile], r#"good("unlink", unlink(path({0})));"#),
    posix(
        Uses,
        &["rename", "renameat", "renameat2"],
        &[KnownFile, SecondFile],
        r#"good("rename", rename(path({0}), second({1})));"#,
    ),
];
