//! Reads datasets, which are untrusted input.

pub(crate) mod ahead;
pub(crate) mod bounds;
pub(crate) mod compact;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod compact_tests;
pub(crate) mod guarded;
pub(crate) mod join;
pub(crate) mod page;
pub(crate) mod reader;
pub mod repair;
pub(crate) mod shift;
