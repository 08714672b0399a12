//! What the node as a whole does, by the kernel's own counters. Pure: texts of /proc in, figures out.

pub mod figures;
pub mod resolutions;

use self::resolutions::Resolutions;

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
