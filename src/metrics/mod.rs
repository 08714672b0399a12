//! Figures of a trace that goes on, for Prometheus and its kind: `--metrics`. All but `server` and `endpoint` is pure.

pub mod counts;
pub mod endpoint;
pub mod families;
mod family;
pub mod page;
pub mod reader;
mod samples;
pub mod server;
pub mod text;

#[cfg(test)]
mod tests;
