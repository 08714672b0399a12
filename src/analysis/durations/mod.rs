//! Where time goes, and which calls took the most.

pub mod slow_stacks;
pub mod slowest;
pub mod time;
pub mod waiting;
