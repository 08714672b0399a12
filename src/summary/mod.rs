//! What the dashboard shows: rows of the dataset, live or recorded, summed up in bounded memory.

pub mod filter;
mod screens;
pub mod view;
