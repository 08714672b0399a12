//! Ranks of a parallel job that share one tracer on each node.

pub(crate) mod launcher;
pub mod rank;
pub(crate) mod rank_protocol;
pub mod ranks;
pub(crate) mod rendezvous;
