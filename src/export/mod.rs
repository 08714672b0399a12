//! Where rows go when a trace is kept: the Parquet dataset, written and read back.

mod cells;
mod dataset;
mod directory;
mod names;
mod reader;
mod stream;
mod table;
mod tables;

pub use dataset::{DatasetWriter, Finished, Options};
pub use reader::{Dataset, Dimension, Warning};
pub use stream::TABLES;
pub use table::{Column, Encoding, SCHEMA, Table, schema};

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
