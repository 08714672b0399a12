//! Sees what a program's I/O really does, through every layer at once.

pub mod batch;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod correlate;
pub mod doctor;
pub mod event;
pub mod export;
pub mod inflight;
pub mod loader;
pub mod metrics;
pub mod node;
pub mod probes;
pub mod record;
pub mod replay;
mod skel;
pub mod sql;
pub mod summary;
pub mod tui;
pub mod words;

/// What tests in `tests/` share is there for those in here, too.
#[cfg(test)]
extern crate self as iotrace_bpf;
