//! What this kernel allows, what to attach where, targets, rings.
//!
//! `elf`, `prologue`, `returns`, `plan`, `version`, `maps` and `safety` are pure; `hooks` is a table; `attach`, `perf`, `programs`, `real`, `session`, `rings`
//! and `launch` act.

pub mod attach;
pub mod elf;
pub mod existing;
mod functions;
mod hooks;
pub mod kernel;
pub mod launch;
pub mod maps;
mod missing;
mod perf;
pub mod plan;
mod programs;
pub mod prologue;
mod real;
pub mod returns;
pub mod rings;
pub mod safety;
pub mod session;
mod spec;
pub mod version;

#[cfg(test)]
mod tests;
