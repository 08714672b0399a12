//! What ranks do together.

pub mod collectives;
pub mod phases;
pub mod ranks;
