//! What tests share.

pub mod figures;
pub mod job;
pub mod live;
pub mod machine;
pub mod packages;
pub mod peak;
pub mod programs;
pub mod recording;
pub mod sql;
pub mod synthetic;
pub mod tools;
pub mod ways;
