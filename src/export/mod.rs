//! What leaves the tracer: the dataset, and texts made from it.

pub mod report;
pub mod text;

/// `DuckDB` views over a dataset, written next to its tables as `views.sql`.
pub const VIEWS: &str = include_str!("views.sql");
