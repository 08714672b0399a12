//! What tests set up on the machine: devices, file systems, control groups, what clients of file systems do.

pub mod client;
pub mod device;
pub mod group;
pub mod tmpfs;
