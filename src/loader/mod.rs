//! What this kernel allows, what to attach where, targets, rings.
//!
//! `accessor`, `members`, `bounds`, `elf`, `prologue`, `returns`, `plan`, `version`, `maps` and `safety` are pure; `hooks` is a table;
//! `misses` counts;
//! `attach`, `calibrate`, `counters`, `detail`, `existing`, `launch`, `mounts`, `namespace`, `perf`, `programs`, `real`, `rings`, `session` and `sums` act.

pub mod accessor;
pub mod attach;
pub mod bounds;
mod btf;
mod cache;
pub mod calibrate;
pub mod counters;
pub mod detail;
pub mod elf;
pub mod examine;
pub mod existing;
mod functions;
pub mod guardian;
pub mod hooks;
pub mod inflight;
pub mod kernel;
pub mod launch;
mod libbpf;
pub mod limits;
mod links;
pub mod maps;
pub mod members;
mod misses;
mod missing;
pub mod mounts;
pub mod namespace;
pub mod outline;
mod pause;
mod perf;
pub mod plan;
pub mod privileges;
pub mod programs;
pub mod prologue;
mod real;
pub mod remembered;
pub mod resolve;
pub mod returns;
pub mod rings;
pub mod safety;
pub mod seccomp;
pub mod session;
pub mod slow;

mod spec;
pub mod stripes;
pub mod sums;
mod symbols;
mod unwind;
pub mod version;

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
#[path = "../../tests/common/hostile.rs"]
mod hostile;
#[cfg(test)]
mod tests;
