//! System calls, page faults and the files they name.

mod aio;
mod async_kernel;
mod cache;
mod files;
mod names;
mod paths;
mod patterns;
mod syscalls;
mod syscalls_kinds;
mod vfs;
mod waits;
