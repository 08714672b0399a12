//! A trace from its begin to its end.

pub(crate) mod begin;
pub mod control;
mod critical;
pub mod detail;
pub mod live;
pub(crate) mod note;
mod process;
pub(crate) mod run;
pub mod sampler;
pub mod share;
pub(crate) mod stacks;
pub(crate) mod targets;
mod watch;
pub(crate) mod worker;
