//! Processes: those that there are, and a command that waits to be traced.

pub mod allocator;
pub mod containers;
pub mod existing;
pub mod getent;
pub mod guardian;
pub mod launch;
pub mod limits;
pub mod maps;
pub mod mounts;
pub mod namespace;
pub(crate) mod real;
pub mod seccomp;
pub mod stripes;
pub mod users;
