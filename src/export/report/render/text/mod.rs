//! Sections whose text is not their table.

pub mod coverage;
pub mod findings;
pub mod run;
pub mod slowest;
pub mod stacks;
pub mod time;
