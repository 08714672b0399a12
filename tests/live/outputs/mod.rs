//! What a trace becomes: datasets, dashboard, metrics, dumps.

mod aggregate;
mod brief;
mod detail;
mod exports;
mod findings;
mod flight;
mod inflight;
mod metrics;
mod monitoring;
mod output;
mod packages;
mod replay_code;
mod rows;
mod runs;
mod service;
mod slow_stacks;
mod top;
mod tui;
mod tui_command;
mod watch;
