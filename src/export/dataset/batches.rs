//! Rows on their way into a part, column by column: one column of a row group fits into the cache, and its rows do not.

use std::borrow::Borrow;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::export::dataset::cells::constant_dictionary;
use crate::export::dataset::table::{GROUP_ROWS, Table};

/// Rows that wait as they came until their columns take them: few enough for the cache.
const RECENT: usize = 256;

/// Rows of a table; `R`: a row as it comes.
pub struct Rows<T: Table, R: Borrow<T> = T> {
    recent: Vec<R>,
    columns: T::Columns,
    /// Rows in columns.
    count: usize,
}

impl<T: Table, R: Borrow<T>> Default for Rows<T, R> {
    fn default() -> Self {
        Self { recent: Vec::new(), columns: T::Columns::default(), count: 0 }
    }
}

impl<T: Table, R: Borrow<T>> Rows<T, R> {
    pub fn push(&mut self, row: R) {
        self.recent.push(row);
        if self.recent.len() == RECENT {
            self.take();
        }
    }

    fn take(&mut self) {
        T::append(&self.recent, &mut self.columns);
        self.count += self.recent.len();
        self.recent.clear();
    }

    pub const fn len(&self) -> usize {
        self.recent.len() + self.count
    }

    /// Takes them out as batches of `schema`, in the order of the table. Their room stays. A batch is a whole row group,
    /// for the rows of each thread are spread over all of a column.
    pub fn batches(
        &mut self,
        schema: &SchemaRef,
        host: &str,
        mut each: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.take();
        for rows in T::order(&self.columns, self.count as u32).chunks(GROUP_ROWS) {
            let mut arrays = vec![constant_dictionary(host, rows.len())?];
            arrays.extend(T::arrays(&self.columns, rows)?);
            each(RecordBatch::try_new(Arc::clone(schema), arrays)?)?;
        }
        T::clear(&mut self.columns);
        self.count = 0;
        Ok(())
    }
}

impl<T: Table, R: Borrow<T>> FromIterator<R> for Rows<T, R> {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Self {
        let mut all = Self::default();
        rows.into_iter().for_each(|row| all.push(row));
        all
    }
}
