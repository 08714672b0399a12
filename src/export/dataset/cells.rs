//! One field of a row as one cell of an Arrow column, there and back.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, ListArray, MapArray, PrimitiveArray, StringArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field};

use crate::export::dataset::interned::Interned;
use crate::words::{Kind, Layer, intern};

/// A type that a column can hold.
pub trait Value: Sized + Clone {
    /// Many of them, until they become an array.
    type Kept: Default;
    /// The column's array, looked at once per batch so that reading a cell is an index.
    type View;
    fn data_type() -> DataType;
    fn keep<'a>(kept: &mut Self::Kept, values: impl Iterator<Item = Option<&'a Self>>)
    where
        Self: 'a;
    fn clear(kept: &mut Self::Kept);
    /// Those with these places. `nulls`: which of them are missing, where some are.
    fn array(kept: &Self::Kept, places: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef>;
    fn view(array: &ArrayRef) -> Result<Self::View>;
    /// The value of a cell that is not null.
    fn get(view: &Self::View, row: usize) -> Result<Self>;
}

/// The type of a field: a value, or a value that may be missing.
pub trait Cell: Sized {
    type Value: Value;
    const NULLABLE: bool;
    fn value(&self) -> Option<&Self::Value>;
    fn from_value(value: Option<Self::Value>) -> Option<Self>;
}

macro_rules! cells {
    ($($type:ty),+) => {$(
        impl Cell for $type {
            type Value = $type;
            const NULLABLE: bool = false;
            fn value(&self) -> Option<&$type> {
                Some(self)
            }
            fn from_value(value: Option<$type>) -> Option<Self> {
                value
            }
        }
        impl Cell for Option<$type> {
            type Value = $type;
            const NULLABLE: bool = true;
            fn value(&self) -> Option<&$type> {
                self.as_ref()
            }
            fn from_value(value: Option<$type>) -> Option<Self> {
                Some(value)
            }
        }
    )+};
}

cells!(i8, i16, i32, i64, f64, bool, String, Vec<String>, Vec<i64>, Vec<(String, String)>, &'static str, Layer, Kind);

/// A column of a batch, ready to be read cell by cell.
pub struct Reading<C: Cell> {
    nulls: Option<NullBuffer>,
    view: <C::Value as Value>::View,
}

impl<C: Cell> Reading<C> {
    pub fn new(array: &ArrayRef) -> Result<Self> {
        Ok(Self { nulls: array.nulls().cloned(), view: C::Value::view(array)? })
    }

    pub fn get(&self, row: usize) -> Result<C> {
        let value = if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            None
        } else {
            Some(C::Value::get(&self.view, row)?)
        };
        C::from_value(value).context("null where a value must be")
    }
}

macro_rules! primitives {
    ($($type:ty: $arrow:ty),+) => {$(
        impl Value for $type {
            type Kept = Vec<Self>;
            type View = PrimitiveArray<$arrow>;
            fn data_type() -> DataType {
                <$arrow as arrow_array::types::ArrowPrimitiveType>::DATA_TYPE
            }
            fn keep<'a>(kept: &mut Vec<Self>, values: impl Iterator<Item = Option<&'a Self>>) {
                kept.extend(values.map(|value| value.copied().unwrap_or_default()));
            }
            fn clear(kept: &mut Vec<Self>) {
                kept.clear();
            }
            fn array(kept: &Vec<Self>, places: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
                let values = places.iter().map(|at| kept.get(*at as usize).copied().unwrap_or_default());
                Ok(Arc::new(PrimitiveArray::<$arrow>::from_iter_values_with_nulls(values, nulls)))
            }
            fn view(array: &ArrayRef) -> Result<Self::View> {
                array.as_primitive_opt::<$arrow>().cloned().with_context(|| wrong_type::<Self>(array))
            }
            fn get(view: &Self::View, row: usize) -> Result<Self> {
                Ok(view.value(row))
            }
        }
    )+};
}

primitives!(i8: Int8Type, i16: Int16Type, i32: Int32Type, i64: Int64Type, f64: Float64Type);

impl Value for bool {
    type Kept = Vec<Self>;
    type View = BooleanArray;
    fn data_type() -> DataType {
        DataType::Boolean
    }
    fn keep<'a>(kept: &mut Vec<Self>, values: impl Iterator<Item = Option<&'a Self>>) {
        kept.extend(values.map(|value| value.copied().unwrap_or_default()));
    }
    fn clear(kept: &mut Vec<Self>) {
        kept.clear();
    }
    fn array(kept: &Vec<Self>, places: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let value = |at: usize| places.get(at).and_then(|at| kept.get(*at as usize)).copied().unwrap_or_default();
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(places.len(), value), nulls)))
    }
    fn view(array: &ArrayRef) -> Result<Self::View> {
        array.as_boolean_opt().cloned().with_context(|| wrong_type::<Self>(array))
    }
    fn get(view: &Self::View, row: usize) -> Result<Self> {
        Ok(view.value(row))
    }
}

impl Value for String {
    type Kept = Vec<Option<Self>>;
    type View = StringArray;
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn keep<'a>(kept: &mut Vec<Option<Self>>, values: impl Iterator<Item = Option<&'a Self>>) {
        kept.extend(values.map(Option::<&Self>::cloned));
    }
    fn clear(kept: &mut Vec<Option<Self>>) {
        kept.clear();
    }
    fn array(kept: &Vec<Option<Self>>, places: &[u32], _: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(Arc::new(at(kept, places).collect::<StringArray>()))
    }
    fn view(array: &ArrayRef) -> Result<Self::View> {
        array.as_string_opt::<i32>().cloned().with_context(|| wrong_type::<Self>(array))
    }
    fn get(view: &Self::View, row: usize) -> Result<Self> {
        Ok(view.value(row).to_owned())
    }
}

/// The values with these places.
fn at<'a, T>(kept: &'a [Option<T>], places: &'a [u32]) -> impl Iterator<Item = Option<&'a T>> {
    places.iter().map(|at| kept.get(*at as usize)?.as_ref())
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

fn items(view: &ListArray, row: usize) -> Result<ArrayRef> {
    let items = view.value(row);
    ensure!(items.null_count() == 0, "null inside a list");
    Ok(items)
}

impl Value for Vec<String> {
    type Kept = Vec<Option<Self>>;
    type View = ListArray;
    fn data_type() -> DataType {
        list_of(DataType::Utf8)
    }
    fn keep<'a>(kept: &mut Vec<Option<Self>>, values: impl Iterator<Item = Option<&'a Self>>) {
        kept.extend(values.map(Option::<&Self>::cloned));
    }
    fn clear(kept: &mut Vec<Option<Self>>) {
        kept.clear();
    }
    fn array(kept: &Vec<Option<Self>>, places: &[u32], _: Option<NullBuffer>) -> Result<ArrayRef> {
        let mut builder = ListBuilder::new(StringBuilder::new());
        for value in at(kept, places) {
            builder.append_option(value.map(|list| list.iter().map(Some)));
        }
        Ok(Arc::new(builder.finish()))
    }
    fn view(array: &ArrayRef) -> Result<Self::View> {
        array.as_list_opt::<i32>().cloned().with_context(|| wrong_type::<Self>(array))
    }
    fn get(view: &Self::View, row: usize) -> Result<Self> {
        let items = items(view, row)?;
        let strings = items.as_string_opt::<i32>().with_context(|| wrong_type::<String>(&items))?;
        Ok(strings.iter().flatten().map(str::to_owned).collect())
    }
}

impl Value for Vec<i64> {
    type Kept = Vec<Option<Self>>;
    type View = ListArray;
    fn data_type() -> DataType {
        list_of(DataType::Int64)
    }
    fn keep<'a>(kept: &mut Vec<Option<Self>>, values: impl Iterator<Item = Option<&'a Self>>) {
        kept.extend(values.map(Option::<&Self>::cloned));
    }
    fn clear(kept: &mut Vec<Option<Self>>) {
        kept.clear();
    }
    fn array(kept: &Vec<Option<Self>>, places: &[u32], _: Option<NullBuffer>) -> Result<ArrayRef> {
        let mut builder = ListBuilder::new(Int64Builder::new());
        for value in at(kept, places) {
            builder.append_option(value.map(|list| list.iter().copied().map(Some)));
        }
        Ok(Arc::new(builder.finish()))
    }
    fn view(array: &ArrayRef) -> Result<Self::View> {
        array.as_list_opt::<i32>().cloned().with_context(|| wrong_type::<Self>(array))
    }
    fn get(view: &Self::View, row: usize) -> Result<Self> {
        let items = items(view, row)?;
        let numbers = items.as_primitive_opt::<Int64Type>().with_context(|| wrong_type::<i64>(&items))?;
        Ok(numbers.values().to_vec())
    }
}

impl Value for Vec<(String, String)> {
    type Kept = Vec<Option<Self>>;
    type View = MapArray;
    fn data_type() -> DataType {
        MapBuilder::new(None, StringBuilder::new(), StringBuilder::new()).finish().data_type().clone()
    }
    fn keep<'a>(kept: &mut Vec<Option<Self>>, values: impl Iterator<Item = Option<&'a Self>>) {
        kept.extend(values.map(Option::<&Self>::cloned));
    }
    fn clear(kept: &mut Vec<Option<Self>>) {
        kept.clear();
    }
    fn array(kept: &Vec<Option<Self>>, places: &[u32], _: Option<NullBuffer>) -> Result<ArrayRef> {
        let mut builder = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for value in at(kept, places) {
            for (key, value) in value.into_iter().flatten() {
                builder.keys().append_value(key);
                builder.values().append_value(value);
            }
            builder.append(value.is_some())?;
        }
        Ok(Arc::new(builder.finish()))
    }
    fn view(array: &ArrayRef) -> Result<Self::View> {
        array.as_map_opt().cloned().with_context(|| wrong_type::<Self>(array))
    }
    fn get(view: &Self::View, row: usize) -> Result<Self> {
        let entries = view.value(row);
        let side = |at: usize| -> Result<Vec<String>> {
            let strings = entries.column(at).as_string_opt::<i32>().context("a map of strings")?;
            Ok(strings.iter().map(|s| s.unwrap_or_default().to_owned()).collect())
        };
        Ok(side(0)?.into_iter().zip(side(1)?).collect())
    }
}

/// A word of a small vocabulary: a string to every reader, a number on disk.
trait Word: Copy + 'static {
    fn name(self) -> &'static str;
    fn parse(name: &str) -> Result<Self>;
}

impl Word for &'static str {
    fn name(self) -> &'static str {
        self
    }
    fn parse(name: &str) -> Result<Self> {
        intern(name)
    }
}

impl Word for Layer {
    fn name(self) -> &'static str {
        Self::name(self)
    }
    fn parse(name: &str) -> Result<Self> {
        Self::parse(name).with_context(|| format!("'{}' is no layer", name.escape_debug()))
    }
}

impl Word for Kind {
    fn name(self) -> &'static str {
        Self::name(self)
    }
    fn parse(name: &str) -> Result<Self> {
        Self::parse(name).with_context(|| format!("'{}' is no kind of operation", name.escape_debug()))
    }
}

/// A dictionary column with its words already understood.
pub struct Words<W> {
    keys: Int32Array,
    words: Vec<Option<W>>,
}

macro_rules! words {
    ($($type:ty),+) => {$(
        impl Value for $type {
            type Kept = Interned;
            type View = Words<Self>;
            fn data_type() -> DataType {
                word_type()
            }
            fn keep<'a>(kept: &mut Interned, values: impl Iterator<Item = Option<&'a Self>>) {
                kept.extend(values.map(|value| value.map(|word| Word::name(*word))));
            }
            fn clear(kept: &mut Interned) {
                kept.clear();
            }
            fn array(kept: &Interned, places: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
                kept.array(places, nulls)
            }
            fn view(array: &ArrayRef) -> Result<Self::View> {
                let dictionary = array.as_dictionary_opt::<Int32Type>();
                let names = dictionary.and_then(|d| d.values().as_string_opt::<i32>());
                let (dictionary, names) = dictionary.zip(names).with_context(|| wrong_type::<Self>(array))?;
                // A column of nothing but nulls has one word, which nothing refers to.
                let words = names.iter().map(|name| name.and_then(|n| Word::parse(n).ok())).collect();
                Ok(Words { keys: dictionary.keys().clone(), words })
            }
            fn get(view: &Self::View, row: usize) -> Result<Self> {
                let key = usize::try_from(view.keys.value(row))?;
                view.words.get(key).copied().flatten().context("a word that this version does not know")
            }
        }
    )+};
}

words!(&'static str, Layer, Kind);

/// The type of every column of words.
pub fn word_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// A column that is the same word in every row.
pub fn same_word(word: &str, rows: usize) -> Result<ArrayRef> {
    let words = Arc::new(StringArray::from(vec![word]));
    Ok(Arc::new(DictionaryArray::try_new(Int32Array::from_value(0, rows), words)?))
}

fn wrong_type<V: Value>(array: &ArrayRef) -> String {
    format!("the type is {} and should be {}", array.data_type(), V::data_type())
}
