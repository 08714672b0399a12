//! The answer as a table for people, as JSON and as CSV.

use std::io::Write;

use anyhow::{Result, anyhow};
use serde_json::{Map, Number, Value, json};

use crate::base::text::{Column, Set, bytes, escape, json as safe, percent, table, time};
use crate::export::report::WIDTH;
use crate::query::options::{Format, Query};
use crate::query::requests::Device;
use crate::query::table::{Answer, Cell};

/// Writes the answer.
pub fn write(answer: &Answer, query: &Query, format: Format, out: &mut dyn Write) -> Result<()> {
    match format {
        Format::Table => out.write_all(text(answer).as_bytes())?,
        Format::Json => {
            let value = as_json(answer, query);
            out.write_all((safe(&serde_json::to_string_pretty(&value)?) + "\n").as_bytes())?;
        }
        Format::Csv => csv(answer, out)?,
    }
    Ok(())
}

fn text(answer: &Answer) -> String {
    // Columns without a value in any row are left out.
    let has_value = |at: &usize| answer.rows.is_empty() || answer.rows.iter().any(|row| row[*at] != Cell::None);
    let kept: Vec<usize> = (0..answer.columns.len()).filter(has_value).collect();
    let cells = |row: &Vec<Cell>| kept.iter().map(|at| shown(&row[*at])).collect();
    let rows: Vec<Vec<String>> = answer.rows.iter().map(cells).collect();
    let head: Vec<Column> = kept.iter().map(|at| column(answer.columns[*at])).collect();
    let mut out = table(&head, &rows, WIDTH, 0);
    if !answer.devices.is_empty() {
        out.push('\n');
        out += &table(&DEVICES, &answer.devices.iter().map(device).collect::<Vec<_>>(), WIDTH, 0);
    }
    out
}

const DEVICES: [Column; 8] = [
    ("device", Set::Name, 0),
    ("class", Set::Name, 0),
    ("active", Set::Right, 0),
    ("idle", Set::Right, 0),
    ("busy", Set::Right, 0),
    ("of", Set::Right, 0),
    ("active J", Set::Right, 0),
    ("idle J", Set::Right, 0),
];

fn device(device: &Device) -> Vec<String> {
    vec![
        escape(&device.name),
        device.class.to_owned(),
        format!("{} W", device.watts.active),
        format!("{} W", device.watts.idle),
        time(device.busy_ns),
        time(device.run_ns),
        joules(device.active_joules),
        joules(device.idle_joules),
    ]
}

/// The title of a column in a table: units are in its cells.
fn column(name: &'static str) -> Column {
    let title = match name {
        "from_ns" => "from",
        "requests_per_call" => "per call",
        "joules_per_call" => "J per call",
        "bytes_per_s" => "bytes/s",
        "nested_calls" => "nested",
        "unfinished_calls" => "unfinished",
        "estimated_calls" => "estimated",
        "unknown_calls" => "bytes unknown",
        "slowest_rank" | "of_rank" => "of rank",
        "slowest_ns" => "slowest rank",
        _ => name.strip_suffix("_ns").unwrap_or(name),
    };
    let set = match name {
        "file" => Set::Path,
        "layer" | "op" | "device" | "phase" => Set::Name,
        _ => Set::Right,
    };
    // A list is wide: what the call is known by otherwise goes first.
    let goes = match name {
        "tid" => 5,
        "self_ns" => 4,
        "errno" => 3,
        "device" => 2,
        _ => 0,
    };
    (title, set, goes)
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::None => "-".to_owned(),
        Cell::Text(text) | Cell::Path(text) => escape(text),
        Cell::Count(n) => n.to_string(),
        Cell::Ns(ns) => time(*ns),
        Cell::Bytes(n) => bytes(*n),
        Cell::BytesPerSecond(rate) => format!("{}/s", bytes(*rate as i64)),
        Cell::Share(part) => percent(*part),
        Cell::Number(n) => format!("{n:.2}"),
        Cell::Joules(n) => joules(*n),
    }
}

/// Joules with three digits behind the point of their unit.
fn joules(n: f64) -> String {
    let unit = [(1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ")].into_iter().find(|(unit, _)| n >= *unit);
    let (per, name) = unit.unwrap_or(if n > 0.0 { (1e-9, "nJ") } else { (1.0, "J") });
    format!("{:.3} {name}", n / per)
}

/// The plain value, for programs.
fn value(cell: &Cell) -> Value {
    match cell {
        Cell::None => Value::Null,
        Cell::Text(text) | Cell::Path(text) => Value::String(text.clone()),
        Cell::Count(n) | Cell::Ns(n) | Cell::Bytes(n) => Value::Number((*n).into()),
        Cell::BytesPerSecond(n) | Cell::Share(n) | Cell::Number(n) | Cell::Joules(n) => {
            Number::from_f64(*n).map_or(Value::Null, Value::Number)
        }
    }
}

fn as_json(answer: &Answer, query: &Query) -> Value {
    let row = |row: &Vec<Cell>| {
        let pairs = answer.columns.iter().zip(row).map(|(name, cell)| ((*name).to_owned(), value(cell)));
        Value::Object(pairs.collect::<Map<_, _>>())
    };
    let rows: Vec<Value> = answer.rows.iter().map(row).collect();
    let mut whole = json!({ "metric": query.metric.name(), "rows": rows, "notes": answer.notes });
    if !answer.devices.is_empty() {
        whole["devices"] = json!(answer.devices);
    }
    whole
}

fn csv(answer: &Answer, out: &mut dyn Write) -> Result<()> {
    let mut writer = csv::WriterBuilder::new().from_writer(out);
    let of_output = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(error) => anyhow::Error::from(error),
        other => anyhow!("{other:?}"),
    };
    writer.write_record(&answer.columns).map_err(of_output)?;
    for row in &answer.rows {
        let cells = row.iter().map(|cell| match value(cell) {
            Value::Null => String::new(),
            Value::String(text) => escape(text),
            other => other.to_string(),
        });
        writer.write_record(cells).map_err(of_output)?;
    }
    writer.flush()?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::query::options::{By, Metric};

    fn answer() -> Answer {
        let path = Cell::Path("/data/a,\u{1b}[2J\".h5".to_owned());
        let row = vec![Cell::Text("hdf5".to_owned()), path, Cell::Count(3), Cell::Ns(1_500_000), Cell::None];
        Answer { columns: vec!["layer", "file", "calls", "max_ns", "span_id"], rows: vec![row], ..Answer::default() }
    }

    fn query() -> Query {
        let (metric, by) = (Metric::Max, By::File);
        Query {
            metric,
            by,
            filter: None,
            functions: Vec::new(),
            layers: Vec::new(),
            device: None,
            phase: None,
            inside: None,
            calls: None,
            time: None,
            limit: 9,
        }
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        write(&answer(), &query(), format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_have_units_and_no_control_characters() {
        let table = written(Format::Table);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].contains("max") && !lines[0].contains("_ns"), "{table}");
        assert!(lines[1].contains("1.50 ms") && lines[1].contains("\\x1b[2J"), "{table}");
        assert!(!table.contains("span_id"), "no row has one: {table}");
        assert!(!table.contains('\x1b'));
    }

    #[test]
    fn csv_and_json_have_plain_numbers() {
        assert_eq!(
            written(Format::Csv),
            "layer,file,calls,max_ns,span_id\nhdf5,\"/data/a,\\x1b[2J\"\".h5\",3,1500000,\n"
        );
        let json: Value = serde_json::from_str(&written(Format::Json)).unwrap();
        assert_eq!(json["metric"], "max");
        assert_eq!(json["rows"][0]["max_ns"], 1_500_000);
        assert_eq!(json["rows"][0]["file"], "/data/a,\u{1b}[2J\".h5");
        assert!(json["rows"][0]["span_id"].is_null());
        assert!(!written(Format::Json).contains('\x1b'));
    }

    #[test]
    fn joules_have_units() {
        let shown = [0.0, 2.5e-8, 0.012_34, 12.0].map(joules);
        assert_eq!(shown, ["0.000 J", "25.000 nJ", "12.340 mJ", "12.000 J"]);
    }
}
