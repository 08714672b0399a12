//! The cells of a column that wait to be written, and the order of rows.

use std::collections::BTreeMap;

use anyhow::Result;
use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::export::dataset::cells::{Cell, Value};

/// The cells of a column.
pub struct Cells<C: Cell> {
    buffer: <C::Value as Value>::Buffer,
    /// Which are not null, where some may be; and how many are null.
    valid: Vec<bool>,
    nulls: usize,
}

impl<C: Cell> Default for Cells<C> {
    fn default() -> Self {
        Self { buffer: Default::default(), valid: Vec::new(), nulls: 0 }
    }
}

impl<C: Cell> Cells<C> {
    pub fn extend<'a>(&mut self, cells: impl Iterator<Item = &'a C> + Clone)
    where
        C: 'a,
    {
        if C::NULLABLE {
            let before = self.valid.len();
            self.valid.extend(cells.clone().map(|cell| cell.value().is_some()));
            self.nulls += self.valid.iter().skip(before).filter(|valid| !**valid).count();
        }
        C::Value::append(&mut self.buffer, cells.map(C::value));
    }

    pub fn clear(&mut self) {
        C::Value::clear(&mut self.buffer);
        self.valid.clear();
        self.nulls = 0;
    }

    /// The cells of these rows.
    pub fn array(&self, rows: &[u32]) -> Result<ArrayRef> {
        let is_valid = |at: usize| rows.get(at).and_then(|at| self.valid.get(*at as usize)).is_some_and(|valid| *valid);
        let nulls = match self.nulls {
            0 => None,
            all if all == self.valid.len() => Some(NullBuffer::new_null(rows.len())),
            _ => Some(NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), is_valid))),
        };
        C::Value::array(&self.buffer, rows, nulls.filter(|nulls| nulls.null_count() > 0))
    }
}

impl<T: Cell<Value = T> + Value<Buffer = Vec<T>> + Copy> Cells<T> {
    /// What rows are sorted by.
    pub fn at(&self, row: u32) -> Option<T> {
        self.buffer.get(row as usize).copied()
    }
}

/// The rows of rows, sorted by what the rows are `of` and then by their `key`. The rows of one come mostly in the order
/// of their keys, which a stable sort finds.
pub fn order<O: Ord, K: Ord>(rows: u32, of: impl Fn(u32) -> O, key: impl Fn(u32) -> K) -> Vec<u32> {
    let mut all: BTreeMap<O, Vec<u32>> = BTreeMap::new();
    for row in 0..rows {
        all.entry(of(row)).or_default().push(row);
    }
    for rows in all.values_mut() {
        rows.sort_by_key(|row| key(*row));
    }
    all.into_values().flatten().collect()
}
