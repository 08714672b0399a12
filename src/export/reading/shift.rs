//! Rows on another clock: times relative to a later moment.

use crate::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, FileRollup, Handle, Hist, Loss, Meta, Metric,
    Mount, Object, Process, Rollup, Row, Rpc, Span, Stack, Thread,
};

/// The key of the end of a trace among its facts, which is a time like those of rows.
pub const END: &str = "end_ns";

/// A row, which may have times.
pub trait Times {
    /// Lets them count from `by` ns later. What was before has negative ones.
    fn shift(&mut self, by: i64);
}

/// The times of each table; in the second list those that may be missing.
macro_rules! times {
    ($($row:ident [$($time:ident),*] [$($maybe:ident),*],)+) => {
        $(impl Times for $row {
            fn shift(&mut self, _by: i64) {
                $(self.$time = self.$time.saturating_sub(_by);)*
                $(self.$maybe = self.$maybe.map(|time| time.saturating_sub(_by));)*
            }
        })+

        impl Times for Row {
            fn shift(&mut self, by: i64) {
                match self {
                    $(Self::$row(row) => row.shift(by),)+
                    Self::Meta(row) => row.shift(by),
                }
            }
        }
    };
}

times! {
    Span [start_ns] [],
    Block [queue_ns, issue_ns] [insert_ns],
    BlockLink [] [],
    BlockBytes [] [],
    Rpc [received_ns] [],
    File [] [],
    FilePath [from_ns] [],
    CallPath [] [],
    Handle [start_ns] [end_ns],
    Object [] [],
    Process [start_ns] [end_ns],
    Thread [] [],
    Mount [] [],
    Rollup [t_ns] [],
    FileRollup [from_ns, to_ns] [slowest_ns, first_ns, last_ns],
    Hist [t_ns] [],
    Stack [] [],
    Metric [t_ns] [],
    Loss [t_ns] [],
    Coverage [] [],
}

impl Times for Meta {
    fn shift(&mut self, by: i64) {
        if self.key == END
            && let Ok(time) = self.value.parse::<i64>()
        {
            self.value = time.saturating_sub(by).to_string();
        }
    }
}

/// The row with times that count from `by` ns later.
#[must_use]
pub fn shift(mut row: Row, by: i64) -> Row {
    row.shift(by);
    row
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{
        Array, ArrayRef, BooleanArray, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch,
        StringArray, new_null_array,
    };
    use arrow_schema::DataType;

    use super::*;
    use crate::export::dataset::cells::constant_dictionary;
    use crate::export::dataset::table::{Column, Encoding, schema};
    use crate::export::dataset::tests::batch;
    use crate::export::{TABLES, Table};

    /// Columns of nanoseconds that are no times.
    const DURATIONS: [&str; 18] = [
        "dur_ns",
        "probe_ns",
        "self_ns",
        "layer_ns",
        "cpu_ns",
        "runq_ns",
        "throttle_ns",
        "lock_ns",
        "writeback_ns",
        "journal_ns",
        "flush_ns",
        "devqueue_ns",
        "usual_ns",
        "device_ns",
        "remote_ns",
        "max_ns",
        "mount_ns",
        "wait_ns",
    ];

    /// Something for a cell.
    fn value(column: &Column) -> ArrayRef {
        let word = match column.name {
            "layer" => "syscall",
            "kind" => "read",
            _ => "x",
        };
        match &column.data_type {
            DataType::Int8 => Arc::new(Int8Array::from(vec![100])),
            DataType::Int16 => Arc::new(Int16Array::from(vec![1000])),
            DataType::Int32 => Arc::new(Int32Array::from(vec![1000])),
            DataType::Int64 => Arc::new(Int64Array::from(vec![1000])),
            DataType::Float64 => Arc::new(Float64Array::from(vec![1000.0])),
            DataType::Boolean => Arc::new(BooleanArray::from(vec![true])),
            DataType::Utf8 => Arc::new(StringArray::from(vec!["x"])),
            DataType::Dictionary(..) => constant_dictionary(word, 1).unwrap(),
            DataType::List(_) if !column.nullable => {
                let mut list = ListBuilder::new(StringBuilder::new());
                list.append(true);
                Arc::new(list.finish())
            }
            other => new_null_array(other, 1),
        }
    }

    /// The columns that a shift by 10 takes 10 away from; no other changes.
    fn moved<T: Table>(wrap: fn(T) -> Row, unwrap: fn(Row) -> Option<T>) -> Vec<&'static str> {
        let columns = T::columns();
        let host = constant_dictionary("h", 1).unwrap();
        let arrays = std::iter::once(host).chain(columns.iter().map(value)).collect();
        let one = RecordBatch::try_new(schema::<T>(), arrays).unwrap();
        let row = unwrap(shift(wrap(T::decode(&one).unwrap().pop().unwrap()), 10)).unwrap();
        let after = batch("h", &[row]);
        let differs = |c: &&Column| one.column_by_name(c.name).unwrap() != after.column_by_name(c.name).unwrap();
        let moved: Vec<_> = columns.iter().filter(differs).map(|c| c.name).collect();
        for name in &moved {
            let to = after.column_by_name(name).unwrap();
            assert_eq!(to.as_any().downcast_ref::<Int64Array>().unwrap().value(0), 990, "{name}");
        }
        moved
    }

    #[test]
    fn all_times_and_nothing_else_are_shifted() {
        let mut tables = Vec::new();
        macro_rules! check {
            (@own $row:ident) => { $row };
            (@own $row:ident boxed) => { *$row };
            ($($row:ident $($boxed:ident)?),+) => {$(
                let unwrap = |row| if let Row::$row(row) = row { Some(check!(@own row $($boxed)?)) } else { None };
                let wrap = |row: $row| Row::$row(row.into());
                let is_time = |c: &Column| c.encoding == Encoding::Time;
                let times: Vec<_> = $row::columns().iter().filter(|c| is_time(c)).map(|c| c.name).collect();
                assert_eq!(moved::<$row>(wrap, unwrap), times, "{}", $row::NAME);
                let in_ns = |c: &&Column| c.name.ends_with("_ns") && !DURATIONS.contains(&c.name);
                let named: Vec<_> = $row::columns().iter().filter(in_ns).map(|c| c.name).collect();
                assert_eq!(times, named, "{}: Encoding::Time is of times", $row::NAME);
                tables.push($row::NAME);
            )+};
        }
        check!(
            Span boxed, Block, BlockLink, BlockBytes, Rpc boxed, File boxed, FilePath, CallPath, Handle, Object,
            Process boxed, Thread, Mount boxed, Rollup, FileRollup boxed, Hist, Stack, Metric, Loss, Coverage, Meta
        );
        assert_eq!(tables, TABLES);
        let meta = |key: &str, value: &str| Row::Meta(Meta { key: key.to_owned(), value: value.to_owned() });
        assert_eq!(shift(meta(END, "25"), 10), meta(END, "15"));
        assert_eq!(shift(meta("t0_ns", "25"), 10), meta("t0_ns", "25"));
    }
}
