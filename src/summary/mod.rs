//! What the dashboard shows: rows of the dataset, live or recorded, summed up in bounded memory.

mod accumulate;
mod bins;
mod dims;
pub mod filter;
mod groups;
mod screens;
pub mod selection;
pub mod since;
mod snapshot;
mod sums;
pub mod view;

pub use accumulate::{From, Summary};

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
