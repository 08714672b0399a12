//! The command line, and the commands that answer questions about datasets.

mod cli;
mod compare;
mod names;
mod query;
mod runs;
pub mod sql_command;
mod top;
mod tune;
mod whatif;
