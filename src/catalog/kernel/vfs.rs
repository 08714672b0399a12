//! Functions inside the kernel: the virtual file system, and what file systems do for it.
//!
//! Signatures: Linux 6.1 to 6.18, `include/linux/fs.h`, `fs/internal.h` and `struct file_operations` of each file system.

use crate::catalog::Src::{Arg, Ret};
use crate::catalog::def::{Def, row, rows};
use crate::catalog::role::Data;
use crate::catalog::{About, Fails, Family, Row};
use crate::vocabulary::{Kind, Layer};

/// It returns a number of bytes.
const fn bytes(layer: Layer, symbol: &'static str, kind: Kind, about: About) -> Def<Data> {
    row(Family::Kernel, layer, symbol, kind).unrelated().about(about).got(Ret)
}
/// It returns an `int`: 0 or an error.
const fn code(layer: Layer, symbol: &'static str, kind: Kind, about: About) -> Def<Data> {
    row(Family::Kernel, layer, symbol, kind).unrelated().about(about).fails(Fails::NegativeInt)
}
/// `ssize_t f(struct kiocb *, struct iov_iter *)`.
const fn io(symbol: &'static str, kind: Kind) -> Def<Data> {
    bytes(Layer::Fs, symbol, kind, About::Kiocb)
}
/// `int f(struct file *, loff_t, loff_t, int)`.
const fn sync(symbol: &'static str) -> Def<Data> {
    code(Layer::Fs, symbol, Kind::Sync, About::File)
}

pub(in crate::catalog) const ROWS: &[Row] = rows![
    bytes(Layer::Vfs, "vfs_read", Kind::Read, About::Buffer),
    bytes(Layer::Vfs, "vfs_write", Kind::Write, About::Buffer),
    bytes(Layer::Vfs, "vfs_iter_read", Kind::Read, About::Iter),
    bytes(Layer::Vfs, "vfs_iter_write", Kind::Write, About::Iter),
    row(Family::Kernel, Layer::Vfs, "do_filp_open", Kind::Open).unrelated().about(About::Opened),
    code(Layer::Vfs, "vfs_fsync_range", Kind::Sync, About::File),
    code(Layer::Vfs, "vfs_fallocate", Kind::Meta, About::File).off(Arg(2)).len(Arg(3)),
    code(Layer::Vfs, "do_truncate", Kind::Meta, About::Dentry).off(Arg(2)),
    code(Layer::Vfs, "vfs_getattr", Kind::Meta, About::Path),
    code(Layer::Vfs, "vfs_unlink", Kind::Meta, About::Entry),
    code(Layer::Vfs, "vfs_rename", Kind::Meta, About::Nothing),
    code(Layer::Vfs, "iterate_dir", Kind::Meta, About::File),
    io("ext4_file_read_iter", Kind::Read),
    io("ext4_file_write_iter", Kind::Write),
    sync("ext4_sync_file"),
    io("xfs_file_read_iter", Kind::Read),
    io("xfs_file_write_iter", Kind::Write),
    sync("xfs_file_fsync"),
    io("btrfs_file_read_iter", Kind::Read),
    io("btrfs_file_write_iter", Kind::Write),
    sync("btrfs_sync_file"),
    io("nfs_file_read", Kind::Read),
    io("nfs_file_write", Kind::Write),
    sync("nfs_file_fsync"),
    io("fuse_file_read_iter", Kind::Read),
    io("fuse_file_write_iter", Kind::Write),
    sync("fuse_fsync"),
    io("ovl_read_iter", Kind::Read),
    io("ovl_write_iter", Kind::Write),
    sync("ovl_fsync"),
];
