//! Datasets and files that no program made.

pub mod extreme;
pub mod flushes;
pub mod hostile;
pub mod trace;
