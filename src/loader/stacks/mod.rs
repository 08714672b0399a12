//! What is in flight, and where in its program it is.

pub mod inflight;
pub mod process;
pub mod resolve;
pub mod slow;
pub(crate) mod symbols;
pub(crate) mod unwind;
