//! Sees what a program's I/O really does, through every layer at once.

// First, for its macro.
#[macro_use]
pub mod vocabulary;

pub mod analysis;
pub mod base;
pub mod baseline;
pub mod batch;
pub mod catalog;
pub mod cli;
pub mod cluster;
pub mod compare;
pub mod config;
pub mod correlate;
pub mod doctor;
pub mod event;
pub mod export;
pub mod inflight;
pub mod loader;
pub mod manual;
pub mod metrics;
pub mod node;
pub mod probes;
pub mod query;
pub mod record;
pub mod replay;
pub mod replay_code;
pub mod rows;
pub mod rules;
pub mod runs;
mod skel;
pub mod sql;
mod state;
pub mod summary;
pub mod top;
pub mod tui;
pub mod tune;
pub mod whatif;

/// Maps whose keys are numbers of ours or of the kernel, or names of the catalog: no program can make them collide.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, ahash::RandomState>;

/// What tests in `tests/` share is there for those in here, too.
#[cfg(test)]
extern crate self as iotrace_bpf;
