//! Texts of a small vocabulary, by their number in it.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_buffer::NullBuffer;

use crate::HashMap;

/// The texts of a column.
#[derive(Default)]
pub struct Interned {
    numbers: Vec<i32>,
    all: Vec<&'static str>,
    /// By where they are in memory, which takes less than to hash them.
    known: HashMap<(usize, usize), i32>,
}

impl Interned {
    pub fn extend(&mut self, values: impl Iterator<Item = Option<&'static str>>) {
        let Self { numbers, all, known } = self;
        // Most values are that of the row before.
        let mut last: Option<(&str, i32)> = None;
        let mut number = |value: &'static str| {
            if let Some((_, number)) = last.filter(|(before, _)| std::ptr::eq(*before, value)) {
                return number;
            }
            let new = all.len() as i32;
            let number = *known.entry((value.as_ptr().addr(), value.len())).or_insert(new);
            if number == new {
                all.push(value);
            }
            last = Some((value, number));
            number
        };
        numbers.extend(values.map(|value| value.map_or(0, &mut number)));
    }

    pub fn clear(&mut self) {
        self.numbers.clear();
        self.all.clear();
        self.known.clear();
    }

    pub fn array(&self, rows: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let numbers = rows.iter().map(|at| self.numbers.get(*at as usize).copied().unwrap_or_default());
        let numbers = Int32Array::from_iter_values_with_nulls(numbers, nulls);
        Ok(Arc::new(DictionaryArray::try_new(numbers, Arc::new(StringArray::from_iter_values(&self.all)))?))
    }
}
