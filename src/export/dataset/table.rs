//! A table as one list of columns; schema, encodings, writing and reading all come from that list.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;
use std::vec::IntoIter;

use anyhow::{Context, Result, bail};
use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::export::dataset::cells::{Cell, Reading, Value, dictionary_type};

/// Rows per row group. As many calls wait in memory until they are sorted, and as many more while those before them are
/// written: 15 MB each. Fewer rows of other tables wait (`stream.rs`).
pub const GROUP_ROWS: usize = 64 * 1024;

/// The version of the schema that this program writes and reads.
pub const SCHEMA: &str = "1";
/// Key of every part's metadata that holds the schema version.
pub const SCHEMA_KEY: &str = "iotrace.schema";
/// Key of every part's metadata that holds the host, so that a part without rows names it too.
pub const HOST_KEY: &str = "iotrace.host";
/// The first column of every table.
pub const HOST: &str = "host";

/// How a column is laid out. Byte stream split would be smaller for durations, but common readers refuse it for integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `DELTA_BINARY_PACKED`, for numbers close to the one before, such as ids.
    Delta,
    /// The same for times since `t0`, which move when several datasets are read as one (`export/reading/shift.rs`).
    Time,
    /// As they are, which takes the least time: for numbers that neither repeat nor grow, and for those that are as the one
    /// before in so many rows that they compress to nothing.
    Plain,
    /// A dictionary per row group, for values that repeat; falls back to plain when the dictionary grows too large.
    Dict,
}

/// One column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: &'static str,
    pub data_type: DataType,
    pub nullable: bool,
    pub encoding: Encoding,
}

impl Column {
    /// The column that holds fields of type `C`.
    pub fn of<C: Cell>(name: &'static str, encoding: Encoding) -> Self {
        Self { name, data_type: C::Value::data_type(), nullable: C::NULLABLE, encoding }
    }
}

/// A row type that has a table.
pub trait Table: Sized + Send + 'static {
    /// The table's name: the prefix of its files.
    const NAME: &'static str;
    /// Columns that rows are sorted by within a row group; none when rows stay as they came.
    const SORTED_BY: &'static [&'static str];

    /// Rows, column by column.
    type Columns: Default + Send;

    /// All columns but `host`.
    fn columns() -> Vec<Column>;
    /// Adds rows to others.
    fn append<R: Borrow<Self>>(rows: &[R], columns: &mut Self::Columns);
    fn clear(columns: &mut Self::Columns);
    /// The indices of so many rows in the order of `SORTED_BY`.
    fn order(columns: &Self::Columns, rows: u32) -> Vec<u32>;
    /// One array per column of `columns`, of these rows.
    fn arrays(columns: &Self::Columns, rows: &[u32]) -> Result<Vec<ArrayRef>>;
    /// The rows of a batch, whatever the order of its columns.
    fn decode(batch: &RecordBatch) -> Result<Vec<Self>>;
}

/// Makes a row struct a `Table`. Every field must be listed: a field left out does not compile.
macro_rules! table {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@order $columns:ident, $rows:ident) => { (0..$rows).collect() };
    (@order $columns:ident, $rows:ident, $($of:ident),+; $($key:ident),+) => {
        $crate::export::dataset::columns::order($rows, |row| ($($columns.$of.at(row)),+), |row| ($($columns.$key.at(row)),+))
    };
    ($table:literal, $row:ty $(, sorted by $($of:ident),+; $($key:ident),+)? {
        $($field:ident $(as $name:literal)?: $type:ty => $encoding:ident,)+
    }) => {
        const _: () = {
            #[derive(Default)]
            pub struct Columns {
                $($field: $crate::export::dataset::columns::Cells<$type>),+
            }

        impl $crate::export::dataset::table::Table for $row {
            const NAME: &'static str = $table;
            const SORTED_BY: &'static [&'static str] = &[$($(stringify!($of)),+, $(stringify!($key)),+)?];

            type Columns = Columns;

            fn columns() -> Vec<$crate::export::dataset::table::Column> {
                use $crate::export::dataset::table::{Column, Encoding};
                vec![$(Column::of::<$type>(table!(@name $field $($name)?), Encoding::$encoding)),+]
            }

            fn append<R: std::borrow::Borrow<Self>>(rows: &[R], columns: &mut Columns) {
                let rows = || rows.iter().map(std::borrow::Borrow::<Self>::borrow);
                $(columns.$field.extend(rows().map(|row| &row.$field));)+
            }

            fn clear(columns: &mut Columns) {
                $(columns.$field.clear();)+
            }

            #[allow(unused_variables, reason = "tables that have no order")]
            fn order(columns: &Columns, rows: u32) -> Vec<u32> {
                table!(@order columns, rows $(, $($of),+; $($key),+)?)
            }

            fn arrays(columns: &Columns, rows: &[u32]) -> anyhow::Result<Vec<arrow_array::ArrayRef>> {
                Ok(vec![$(columns.$field.array(rows)?),+])
            }

            fn decode(batch: &arrow_array::RecordBatch) -> anyhow::Result<Vec<Self>> {
                use $crate::export::dataset::table::{cells_of, chunks, column, next_cell};
                $(let $field = column::<$type>(batch, table!(@name $field $($name)?))?;)+
                let mut rows = Vec::with_capacity(batch.num_rows());
                for chunk in chunks(batch.num_rows()) {
                    $(let mut $field = cells_of(&$field, chunk.clone(), table!(@name $field $($name)?))?;)+
                    for _ in chunk {
                        rows.push(Self { $($field: next_cell(&mut $field)?),+ });
                    }
                }
                Ok(rows)
            }
        }
        };
    };
}
pub(crate) use table;

/// A column of a batch by its name. One that may be null and was not yet there when the part was written is null throughout.
pub fn column<C: Cell>(batch: &RecordBatch, name: &str) -> Result<Reading<C>> {
    let array = match batch.column_by_name(name) {
        Some(array) => Arc::clone(array),
        None if C::NULLABLE => new_null_array(&C::Value::data_type(), batch.num_rows()),
        None => bail!("column {name} is missing"),
    };
    Reading::new(&array).with_context(|| format!("column {name}"))
}

/// Rows that are decoded together, column by column: few enough for the cache.
const CHUNK_ROWS: usize = 256;

/// The rows of a batch in chunks.
pub fn chunks(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(CHUNK_ROWS).map(move |first| first..rows.min(first + CHUNK_ROWS))
}

/// The cells of a column in these rows.
pub fn cells_of<C: Cell>(column: &Reading<C>, rows: Range<usize>, name: &str) -> Result<IntoIter<C>> {
    Ok(column.cells(rows).with_context(|| format!("column {name}"))?.into_iter())
}

/// The cell of the next row.
pub fn next_cell<C>(cells: &mut IntoIter<C>) -> Result<C> {
    cells.next().context("a column has fewer cells than others")
}

/// The Arrow schema of a table, `host` first.
pub fn schema<T: Table>() -> SchemaRef {
    let host = Field::new(HOST, dictionary_type(), false);
    let fields = T::columns().into_iter().map(|c| Field::new(c.name, c.data_type, c.nullable));
    Arc::new(Schema::new(std::iter::once(host).chain(fields).collect::<Vec<_>>()))
}

/// How parts of a table are written.
pub fn properties<T: Table>(host: &str, group_rows: usize) -> Result<WriterProperties> {
    let columns = T::columns();
    let sorting = T::SORTED_BY.iter().map(|key| {
        let index = columns.iter().position(|c| c.name == *key).with_context(|| format!("no column {key}"))?;
        // `host` comes before all others.
        Ok(SortingColumn { column_idx: index as i32 + 1, descending: false, nulls_first: false })
    });
    let sorting = sorting.collect::<Result<Vec<_>>>()?;
    let fact = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        // Row groups are slices of time sorted by thread: bounds per page would cost more than they prune.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(group_rows))
        .set_created_by(concat!("iotrace-bpf ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![fact(SCHEMA_KEY, SCHEMA), fact(HOST_KEY, host)]))
        .set_sorting_columns((!sorting.is_empty()).then_some(sorting));
    for column in columns {
        let path = ColumnPath::from(column.name);
        let encoding = match column.encoding {
            Encoding::Dict => continue,
            Encoding::Delta | Encoding::Time => parquet::basic::Encoding::DELTA_BINARY_PACKED,
            Encoding::Plain => parquet::basic::Encoding::PLAIN,
        };
        properties = properties.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
    }
    Ok(properties.build())
}
