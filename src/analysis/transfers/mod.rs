//! How data moves: sizes, patterns, and what layers make of it.

pub mod amplification;
pub mod bandwidth;
pub mod composition;
pub mod pattern;
pub mod sizes;
