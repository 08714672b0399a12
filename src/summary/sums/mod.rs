//! What is summed up: by device, file, process, operation and call tree; and the last calls.

pub mod disks;
pub mod files;
pub mod procs;
pub mod recent;
pub mod spread;
pub mod tree;
