//! What leaves the tracer: the Parquet dataset, written and read back, and the texts made from it.

pub(crate) mod dataset;
mod files;
mod flight;
pub mod formats;
pub mod html;
pub mod programs;
pub mod reading;
pub mod report;
mod rotating;

pub use dataset::described::Forgotten;
pub use dataset::table::{Column, Encoding, SCHEMA, Table, schema};
pub use dataset::tables::TABLES;
pub use dataset::{DatasetWriter, Finished, Options};
pub use files::directory::{Directory, TrackedDirectory, make_shared};
pub use files::file::{as_invoking_user, create_file, create_new_file, give_to_caller};
pub use flight::{FlightWriter, Length, Why};
pub use reading::guarded::decoding;
pub use reading::reader::{Dataset, Dimension, Warning};
pub use reading::shift::Times;
pub use rotating::{Moment, Progress, RotatingWriter};

/// Whether there is a dataset in a directory, or below it.
pub fn holds_datasets(path: &std::path::Path) -> bool {
    Dataset::is_one(path) || !report::datasets(path).is_empty()
}

/// `DuckDB` views over a dataset, written next to its tables as `views.sql`.
pub const VIEWS: &str = include_str!("views.sql");

/// The same for Spark, `views-spark.sql`: made from them by `tests/common/readers/spark_views.py`.
pub const VIEWS_SPARK: &str = include_str!("views-spark.sql");

/// Whether output failed because its reader closed it: it has seen enough, and that is no failure.
pub fn reader_left(e: &anyhow::Error) -> bool {
    e.chain().any(|c| c.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_views_name_errors_as_the_program_does() {
        let (_, list) = VIEWS.split_once("VIEW errno_names").unwrap();
        let (_, list) = list.split_once("SELECT [").unwrap();
        let (list, _) = list.split_once("] AS names").unwrap();
        let named = list.split(',').map(|name| name.trim().trim_matches('\''));
        for (number, name) in (1..).zip(named) {
            let known = crate::base::text::errno(number);
            assert_eq!(name, if known.starts_with("errno ") { "NULL" } else { &known }, "{number}");
        }
        assert!(list.split(',').count() > 130);
    }
}
