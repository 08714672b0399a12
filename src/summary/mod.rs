//! What the dashboard shows: rows of the dataset, live or recorded, summed up in bounded memory.

mod accumulate;
mod bins;
mod build;
mod dims;
mod disks;
mod files;
pub mod filter;
mod groups;
mod procs;
mod recent;
mod screens;
mod selection;
pub mod since;
mod spread;
mod tree;
pub mod view;

pub use accumulate::{From, Summary, facts};

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
