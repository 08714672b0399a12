//! What the node as a whole does, and the traced processes, by the kernel's own counters. Pure: texts of /proc and counts in,
//! figures out.

pub mod counters;
pub mod figures;
pub mod resolutions;

use crate::node::resolutions::Resolutions;

/// A text that this kernel does not have, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub path: &'static str,
    pub why: String,
}

/// What the node did lately.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recent {
    pub resolutions: Resolutions,
    pub missing: Vec<Missing>,
}
