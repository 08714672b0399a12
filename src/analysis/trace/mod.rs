//! The trace itself: what is read of it, and how much of the run it has.

pub mod clocks;
pub mod coverage;
pub mod losses;
pub mod share;
pub mod source;
