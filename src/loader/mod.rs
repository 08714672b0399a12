//! The kernel side of a trace: what this kernel allows, what to attach where, targets, rings.

pub mod attach;
mod cache;
pub mod code;
pub mod kernel;
pub mod processes;
pub mod session;
pub mod stacks;

#[cfg(test)]
#[path = "../../tests/common/synthetic/hostile.rs"]
mod hostile;
