//! One field of a row as one cell of an Arrow column, there and back.

use std::ops::Range;
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
use crate::vocabulary::{Kind, Layer, intern};

/// A type that a column can hold.
pub trait Value: Sized + Clone {
    /// Many of them, until they become an array.
    type Buffer: Default;
    /// The column's array, looked at once per batch so that reading a cell is an index.
    type View;
    fn data_type() -> DataType;
    fn append<'a>(buffer: &mut Self::Buffer, values: impl Iterator<Item = Option<&'a Self>>)
    where
        Self: 'a;
    fn clear(buffer: &mut Self::Buffer);
    /// The values of these rows. `nulls`: which of them are missing, where some are.
    fn array(buffer: &Self::Buffer, rows: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef>;
    fn view(array: &ArrayRef) -> Result<Self::View>;
    /// The value of a cell that is not null.
    fn get(view: &Self::View, row: usize) -> Result<Self>;
    /// The values of cells of which none is null.
    fn each<C: Cell<Value = Self>>(view: &Self::View, rows: Range<usize>, cells: &mut Vec<C>) -> Result<()> {
        for row in rows {
            cells.push(C::from_value(Some(Self::get(view, row)?)).context(NULL_CELL)?);
        }
        Ok(())
    }
}

const NULL_CELL: &str = "null where a value must be";

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

/// A column of a batch, ready to be read.
pub struct Reading<C: Cell> {
    nulls: Option<NullBuffer>,
    view: <C::Value as Value>::View,
}

impl<C: Cell> Reading<C> {
    pub fn new(array: &ArrayRef) -> Result<Self> {
        Ok(Self { nulls: array.nulls().cloned(), view: C::Value::view(array)? })
    }

    /// The cells of these rows.
    pub fn cells(&self, rows: Range<usize>) -> Result<Vec<C>> {
        let mut cells = Vec::with_capacity(rows.len());
        let Some(nulls) = self.nulls.as_ref().filter(|nulls| nulls.null_count() > 0) else {
            C::Value::each(&self.view, rows, &mut cells)?;
            return Ok(cells);
        };
        let all = nulls.null_count() == nulls.len();
        for row in rows {
            let value = if all || nulls.is_null(row) { None } else { Some(C::Value::get(&self.view, row)?) };
            cells.push(C::from_value(value).context(NULL_CELL)?);
        }
        Ok(cells)
    }
}

macro_rules! primitives {
    ($($type:ty: $arrow:ty),+) => {$(
        impl Value for $type {
            type Buffer = Vec<Self>;
            type View = PrimitiveArray<$arrow>;
            fn data_type() -> DataType {
                <$arrow as arrow_array::types::ArrowPrimitiveType>::DATA_TYPE
            }
            fn append<'a>(buffer: &mut Vec<Self>, values: impl Iterator<Item = Option<&'a Self>>) {
                buffer.extend(values.map(|value| value.copied().unwrap_or_default()));
            }
            fn clear(buffer: &mut Vec<Self>) {
                buffer.clear();
            }
            fn array(buffer: &Vec<Self>, rows: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
                let values = rows.iter().map(|at| buffer.get(*at as usize).copied().unwrap_or_default());
                Ok(Arc::new(PrimitiveArray::<$arrow>::from_iter_values_with_nulls(values, nulls)))
            }
            fn view(array: &ArrayRef) -> Result<Self::View> {
                array.as_primitive_opt::<$arrow>().cloned().with_context(|| wrong_type::<Self>(array))
            }
            fn get(view: &Self::View, row: usize) -> Result<Self> {
                Ok(view.value(row))
            }
            fn each<C: Cell<Value = Self>>(view: &Self::View, rows: Range<usize>, cells: &mut Vec<C>) -> Result<()> {
                for value in view.values().get(rows).context("no such rows")? {
                    cells.push(C::from_value(Some(*value)).context(NULL_CELL)?);
                }
                Ok(())
            }
        }
    )+};
}

primitives!(i8: Int8Type, i16: Int16Type, i32: Int32Type, i64: Int64Type, f64: Float64Type);

impl Value for bool {
    type Buffer = Vec<Self>;
    type View = BooleanArray;
    fn data_type() -> DataType {
        DataType::Boolean
    }
    fn append<'a>(buffer: &mut Vec<Self>, values: impl Iterator<Item = Option<&'a Self>>) {
        buffer.extend(values.map(|value| value.copied().unwrap_or_default()));
    }
    fn clear(buffer: &mut Vec<Self>) {
        buffer.clear();
    }
    fn array(buffer: &Vec<Self>, rows: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let value = |at: usize| rows.get(at).and_then(|at| buffer.get(*at as usize)).copied().unwrap_or_default();
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(rows.len(), value), nulls)))
    }
    fn view(array: &ArrayRef) -> Result<Self::View> {
        array.as_boolean_opt().cloned().with_context(|| wrong_type::<Self>(array))
    }
    fn get(view: &Self::View, row: usize) -> Result<Self> {
        Ok(view.value(row))
    }
}

impl Value for String {
    type Buffer = Vec<Option<Self>>;
    type View = StringArray;
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn append<'a>(buffer: &mut Vec<Option<Self>>, values: impl Iterator<Item = Option<&'a Self>>) {
        buffer.extend(values.map(Option::<&Self>::cloned));
    }
    fn clear(buffer: &mut Vec<Option<Self>>) {
        buffer.clear();
    }
    fn array(buffer: &Vec<Option<Self>>, rows: &[u32], _: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(Arc::new(at(buffer, rows).collect::<StringArray>()))
    }
    fn view(array: &ArrayRef) -> Result<Self::View> {
        array.as_string_opt::<i32>().cloned().with_context(|| wrong_type::<Self>(array))
    }
    fn get(view: &Self::View, row: usize) -> Result<Self> {
        Ok(view.value(row).to_owned())
    }
}

/// The values with these rows.
fn at<'a, T>(buffer: &'a [Option<T>], rows: &'a [u32]) -> impl Iterator<Item = Option<&'a T>> {
    rows.iter().map(|at| buffer.get(*at as usize)?.as_ref())
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
    type Buffer = Vec<Option<Self>>;
    type View = ListArray;
    fn data_type() -> DataType {
        list_of(DataType::Utf8)
    }
    fn append<'a>(buffer: &mut Vec<Option<Self>>, values: impl Iterator<Item = Option<&'a Self>>) {
        buffer.extend(values.map(Option::<&Self>::cloned));
    }
    fn clear(buffer: &mut Vec<Option<Self>>) {
        buffer.clear();
    }
    fn array(buffer: &Vec<Option<Self>>, rows: &[u32], _: Option<NullBuffer>) -> Result<ArrayRef> {
        let mut builder = ListBuilder::new(StringBuilder::new());
        for value in at(buffer, rows) {
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
    type Buffer = Vec<Option<Self>>;
    type View = ListArray;
    fn data_type() -> DataType {
        list_of(DataType::Int64)
    }
    fn append<'a>(buffer: &mut Vec<Option<Self>>, values: impl Iterator<Item = Option<&'a Self>>) {
        buffer.extend(values.map(Option::<&Self>::cloned));
    }
    fn clear(buffer: &mut Vec<Option<Self>>) {
        buffer.clear();
    }
    fn array(buffer: &Vec<Option<Self>>, rows: &[u32], _: Option<NullBuffer>) -> Result<ArrayRef> {
        let mut builder = ListBuilder::new(Int64Builder::new());
        for value in at(buffer, rows) {
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
    type Buffer = Vec<Option<Self>>;
    type View = MapArray;
    fn data_type() -> DataType {
        MapBuilder::new(None, StringBuilder::new(), StringBuilder::new()).finish().data_type().clone()
    }
    fn append<'a>(buffer: &mut Vec<Option<Self>>, values: impl Iterator<Item = Option<&'a Self>>) {
        buffer.extend(values.map(Option::<&Self>::cloned));
    }
    fn clear(buffer: &mut Vec<Option<Self>>) {
        buffer.clear();
    }
    fn array(buffer: &Vec<Option<Self>>, rows: &[u32], _: Option<NullBuffer>) -> Result<ArrayRef> {
        let mut builder = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for value in at(buffer, rows) {
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

/// A value of a small vocabulary: a string to every reader, a number on disk.
trait DictionaryValue: Copy + 'static {
    fn name(self) -> &'static str;
    fn parse(name: &str) -> Result<Self>;
}

impl DictionaryValue for &'static str {
    fn name(self) -> &'static str {
        self
    }
    fn parse(name: &str) -> Result<Self> {
        intern(name)
    }
}

impl DictionaryValue for Layer {
    fn name(self) -> &'static str {
        Self::name(self)
    }
    fn parse(name: &str) -> Result<Self> {
        Self::parse(name).with_context(|| format!("'{}' is no layer", name.escape_debug()))
    }
}

impl DictionaryValue for Kind {
    fn name(self) -> &'static str {
        Self::name(self)
    }
    fn parse(name: &str) -> Result<Self> {
        Self::parse(name).with_context(|| format!("'{}' is no kind of operation", name.escape_debug()))
    }
}

/// A dictionary column with its values parsed once.
pub struct DecodedDictionary<W> {
    keys: Int32Array,
    values: Vec<Option<W>>,
}

macro_rules! dictionaries {
    ($($type:ty),+) => {$(
        impl Value for $type {
            type Buffer = Interned;
            type View = DecodedDictionary<Self>;
            fn data_type() -> DataType {
                dictionary_type()
            }
            fn append<'a>(buffer: &mut Interned, values: impl Iterator<Item = Option<&'a Self>>) {
                buffer.extend(values.map(|value| value.map(|value| DictionaryValue::name(*value))));
            }
            fn clear(buffer: &mut Interned) {
                buffer.clear();
            }
            fn array(buffer: &Interned, rows: &[u32], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
                buffer.array(rows, nulls)
            }
            fn view(array: &ArrayRef) -> Result<Self::View> {
                let dictionary = array.as_dictionary_opt::<Int32Type>();
                let names = dictionary.and_then(|d| d.values().as_string_opt::<i32>());
                let (dictionary, names) = dictionary.zip(names).with_context(|| wrong_type::<Self>(array))?;
                // A column of nothing but nulls has one value, which nothing refers to.
                let values = names.iter().map(|name| name.and_then(|n| DictionaryValue::parse(n).ok())).collect();
                Ok(DecodedDictionary { keys: dictionary.keys().clone(), values })
            }
            fn get(view: &Self::View, row: usize) -> Result<Self> {
                let key = usize::try_from(view.keys.value(row))?;
                view.values.get(key).copied().flatten().context("a value that this version does not know")
            }
        }
    )+};
}

dictionaries!(&'static str, Layer, Kind);

/// The type of every dictionary column.
pub fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// A column with the same value in every row.
pub fn constant_dictionary(value: &str, rows: usize) -> Result<ArrayRef> {
    let values = Arc::new(StringArray::from(vec![value]));
    Ok(Arc::new(DictionaryArray::try_new(Int32Array::from_value(0, rows), values)?))
}

fn wrong_type<V: Value>(array: &ArrayRef) -> String {
    format!("the type is {} and should be {}", array.data_type(), V::data_type())
}
