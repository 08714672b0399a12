//! The names of the files in a dataset.

use crate::export::dataset::tables::TABLES;

/// `DuckDB` views and ready questions over the tables.
pub const VIEWS: &str = "views.sql";
/// The same for Spark.
pub const VIEWS_SPARK: &str = "views-spark.sql";
/// Ends the name of a part that is still being written: it has no footer yet, so nothing can read it.
pub const OPEN: &str = ".inprogress";

/// The name of a closed part.
pub fn part(table: &str, number: u32) -> String {
    format!("{table}-{number:05}.parquet")
}

/// What the name of a file has about a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartName {
    pub table: &'static str,
    pub number: u32,
    pub open: bool,
}

/// The part a file name stands for; `None` for every name that `part` does not make.
pub fn parse(name: &str) -> Option<PartName> {
    let (closed, open) = name.strip_suffix(OPEN).map_or((name, false), |closed| (closed, true));
    let (table, number) = closed.strip_suffix(".parquet")?.rsplit_once('-')?;
    let table = TABLES.into_iter().find(|known| *known == table)?;
    let number = number.parse().ok()?;
    (closed == part(table, number)).then_some(PartName { table, number, open })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_made() {
        for number in [1, 99_999, 100_000, u32::MAX] {
            for table in TABLES {
                let name = part(table, number);
                assert_eq!(parse(&name), Some(PartName { table, number, open: false }));
                assert_eq!(parse(&format!("{name}{OPEN}")), Some(PartName { table, number, open: true }));
            }
        }
    }

    #[test]
    fn other_names_are_not_parts() {
        for name in [
            "",
            "views.sql",
            "views-spark.sql",
            "spans.parquet",
            "spans-1.parquet",
            "spans-000001.parquet",
            "spans-+0001.parquet",
            "mine-00001.parquet",
            "spans-00001.parquet.bak",
            "spans-99999999999.parquet",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
