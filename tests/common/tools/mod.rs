//! Programs of others, which tests compare with or type into.

pub mod exports;
pub mod ncdump;
pub mod pane;
pub mod prometheus;
pub mod strace;
