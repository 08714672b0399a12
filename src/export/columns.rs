//! Rows on their way into a part, column by column: one column of a row group fits into the cache, and its rows do not.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::SchemaRef;

use super::cells::{Cell, Value, same_word};
use super::stream::GROUP_ROWS;
use super::table::Table;
use crate::correlate::HashMap;

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
        T::keep(&self.recent, &mut self.columns);
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
        for places in T::order(&self.columns, self.count as u32).chunks(GROUP_ROWS) {
            let mut arrays = vec![same_word(host, places.len())?];
            arrays.extend(T::arrays(&self.columns, places)?);
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

/// The cells of a column.
pub struct Cells<C: Cell> {
    kept: <C::Value as Value>::Kept,
    /// Which are not null, where some may be; and how many are null.
    valid: Vec<bool>,
    nulls: usize,
}

impl<C: Cell> Default for Cells<C> {
    fn default() -> Self {
        Self { kept: Default::default(), valid: Vec::new(), nulls: 0 }
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
        C::Value::keep(&mut self.kept, cells.map(C::value));
    }

    pub fn clear(&mut self) {
        C::Value::clear(&mut self.kept);
        self.valid.clear();
        self.nulls = 0;
    }

    /// Those with these places.
    pub fn array(&self, places: &[u32]) -> Result<ArrayRef> {
        let is_valid =
            |at: usize| places.get(at).and_then(|at| self.valid.get(*at as usize)).is_some_and(|valid| *valid);
        let nulls = match self.nulls {
            0 => None,
            all if all == self.valid.len() => Some(NullBuffer::new_null(places.len())),
            _ => Some(NullBuffer::new(BooleanBuffer::collect_bool(places.len(), is_valid))),
        };
        C::Value::array(&self.kept, places, nulls.filter(|nulls| nulls.null_count() > 0))
    }
}

impl<T: Cell<Value = T> + Value<Kept = Vec<T>> + Copy> Cells<T> {
    /// What rows are sorted by.
    pub fn at(&self, place: u32) -> Option<T> {
        self.kept.get(place as usize).copied()
    }
}

/// The places of rows, sorted by what the rows are `of` and then by their `key`. The rows of one come mostly in the order
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

/// Words of a small vocabulary, by their number in it.
#[derive(Default)]
pub struct Words {
    numbers: Vec<i32>,
    all: Vec<&'static str>,
    /// By where they are in memory, which takes less than to hash them.
    known: HashMap<(usize, usize), i32>,
}

impl Words {
    pub fn extend(&mut self, words: impl Iterator<Item = Option<&'static str>>) {
        let Self { numbers, all, known } = self;
        // Most words are those of the row before.
        let mut last: Option<(&str, i32)> = None;
        let mut number = |word: &'static str| {
            if let Some((_, number)) = last.filter(|(before, _)| std::ptr::eq(*before, word)) {
                return number;
            }
            let new = all.len() as i32;
            let number = *known.entry((word.as_ptr().addr(), word.len())).or_insert(new);
            if number == new {
                all.push(word);
            }
            last = Some((word, number));
            number
        };
        numbers.extend(words.map(|word| word.map_or(0, &mut number)));
    }

    pub fn clear(&mut self) {
        self.numbers.clear();
        self.all.clear();
        self.known.clear();
    }

    pub fn array(&self, places: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let numbers = places.iter().map(|at| self.numbers.get(*at as usize).copied().unwrap_or_default());
        let numbers = Int32Array::from_iter_values_with_nulls(numbers, nulls);
        Ok(Arc::new(DictionaryArray::try_new(numbers, Arc::new(StringArray::from_iter_values(&self.all)))?))
    }
}
