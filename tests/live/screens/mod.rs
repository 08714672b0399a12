//! What is seen while a trace runs: dashboard, metrics, operations in flight.

mod inflight;
mod metrics;
pub mod monitoring;
mod service;
mod top;
mod tui;
mod tui_command;
mod watch;
