//! What leaves the tracer: the Parquet dataset, written and read back, and the texts made from it.

mod background;
mod bounds;
mod cells;
mod columns;
mod compact;
mod dataset;
mod described;
mod directory;
mod file;
mod flight;
mod hooks;
mod names;
mod page;
mod periods;
mod reach;
mod reader;
pub mod repair;
pub mod report;
mod rotating;
mod shift;
mod stream;
mod table;
mod tables;
pub mod text;
mod window;

pub use dataset::{DatasetWriter, Finished, Options};
pub use described::Forgotten;
pub use directory::{Directory, Whereabouts, make_shared};
pub use file::create_file;
pub use flight::{FlightWriter, Length, Why};
pub use hooks::{HOOKS_NS, TRACING_NS, TRUSTED_SHARE, Tracing};
pub use reader::{Dataset, Dimension, Warning, decoding};
pub use rotating::{Moment, Progress, RotatingWriter};
pub use shift::Times;
pub use stream::TABLES;
pub use table::{Column, Encoding, SCHEMA, Table, schema};

/// Whether there is a dataset in a directory, or below it.
pub fn holds_datasets(path: &std::path::Path) -> bool {
    Dataset::is_one(path) || !report::datasets(path).is_empty()
}

/// The key among a run's facts that says that its calls were summed up, and not recorded one by one.
pub const AGGREGATE: &str = "aggregate";

/// The key of `meta` that says which calls were recorded besides the sums; and the place of those that should have been, and
/// are only in the sums.
pub const DETAIL: &str = "detail";

/// `DuckDB` views over a dataset, written next to its tables as `views.sql`.
pub const VIEWS: &str = include_str!("views.sql");

/// The same for Spark, `views-spark.sql`: made from them by `tests/common/spark_views.py`.
pub const VIEWS_SPARK: &str = include_str!("views-spark.sql");

/// Whether output failed because its reader closed it: it has seen enough, and that is no failure.
pub fn reader_left(e: &anyhow::Error) -> bool {
    e.chain().any(|c| c.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod compact_tests;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod flight_tests;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod rotation_tests;
