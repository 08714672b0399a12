//! Rows of the kernel: system calls with their numbers, operations of `io_uring` and libaio, functions of the VFS, faults,
//! and the requests that FUSE and NFS send.

pub(super) mod fault;
pub mod fuse;
pub mod nfs;
pub(super) mod number;
pub(super) mod operation;
pub(super) mod syscall;
pub(super) mod vfs;
