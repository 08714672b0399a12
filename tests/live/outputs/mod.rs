//! What a trace leaves behind: datasets, reports, dumps, packages.

mod aggregate;
mod baseline;
mod brief;
mod detail;
mod exports;
mod findings;
mod flight;
mod output;
mod packages;
mod readahead;
mod replay_code;
mod rows;
mod runs;
mod slow_stacks;
mod tune;
mod whatif;
