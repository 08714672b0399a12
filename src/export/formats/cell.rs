//! A value of a table as text.

use anyhow::{Result, bail};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// Nothing where there is no value; lists as `[1, 2]`, maps as `{a: b, c: d}`.
///
/// # Errors
/// When the column has a type that no table has.
pub fn text(array: &dyn Array, row: usize) -> Result<String> {
    if array.is_null(row) {
        return Ok(String::new());
    }
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        // With a point: 1.0, so that readers of CSV see that it is no integer.
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Dictionary(key, _) if **key == DataType::Int32 => {
            let dictionary = array.as_dictionary::<Int32Type>();
            let at = usize::try_from(dictionary.keys().value(row))?;
            text(dictionary.values().as_ref(), at)?
        }
        DataType::List(_) => {
            let list: ArrayRef = array.as_list::<i32>().value(row);
            format!("[{}]", all(list.as_ref())?.join(", "))
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let [keys, values] = [0, 1].map(|at| all(entries.column(at).as_ref()));
            let pairs = keys?.into_iter().zip(values?).map(|(key, value)| format!("{key}: {value}"));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => bail!("a column has the type {other}, which no table has"),
    })
}

fn all(array: &dyn Array) -> Result<Vec<String>> {
    (0..array.len()).map(|row| text(array, row)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, StringBuilder};
    use arrow_array::{BooleanArray, DictionaryArray, Float64Array, Int8Array, Int64Array, UInt8Array};
    use std::sync::Arc;

    #[test]
    fn values_of_all_types_are_text() {
        let mut list = ListBuilder::new(Int64Builder::new());
        list.append_value([Some(1), None, Some(-3)]);
        let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for (key, value) in [("cb_nodes", "4"), ("b", "")] {
            map.keys().append_value(key);
            map.values().append_value(value);
        }
        map.append(true).unwrap();
        let dictionary: DictionaryArray<Int32Type> = ["y", "x", "y"].into_iter().collect();
        let cases: [(ArrayRef, usize, &str); 9] = [
            (Arc::new(Int64Array::from(vec![None, Some(i64::MIN)])), 0, ""),
            (Arc::new(Int64Array::from(vec![None, Some(i64::MIN)])), 1, "-9223372036854775808"),
            (Arc::new(Int8Array::from(vec![-1])), 0, "-1"),
            (Arc::new(BooleanArray::from(vec![true])), 0, "true"),
            (Arc::new(Float64Array::from(vec![1.0])), 0, "1.0"),
            (Arc::new(Float64Array::from(vec![0.25])), 0, "0.25"),
            (Arc::new(dictionary), 1, "x"),
            (Arc::new(list.finish()), 0, "[1, , -3]"),
            (Arc::new(map.finish()), 0, "{cb_nodes: 4, b: }"),
        ];
        for (array, row, expected) in cases {
            assert_eq!(text(array.as_ref(), row).unwrap(), expected);
        }
        let why = text(&UInt8Array::from(vec![1]), 0).unwrap_err().to_string();
        assert!(why.contains("UInt8"), "{why}");
    }
}
