//! What tests share.

pub mod client;
pub mod device;
pub mod exports;
pub mod extreme;
pub mod figures;
pub mod flushes;
pub mod group;
pub mod hostile;
pub mod job;
pub mod live;
pub mod ncdump;
pub mod packages;
pub mod pane;
pub mod peak;
pub mod programs;
pub mod prometheus;
pub mod recording;
pub mod sql;
pub mod strace;
pub mod tmpfs;
pub mod trace;
pub mod ways;
