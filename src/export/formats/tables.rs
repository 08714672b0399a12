//! Tables as they are, in other formats.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;

use crate::export::files::file::{create_new_file, give_to_caller};
use crate::export::formats::cell;
use crate::export::{Dataset, TABLES, report};

/// The dataset in a directory, or those below it.
fn datasets(dir: &Path) -> Result<Vec<Dataset>> {
    let below: Vec<PathBuf> = report::datasets(dir);
    if Dataset::is_one(dir) || below.is_empty() {
        return Ok(vec![Dataset::open(dir)?]);
    }
    below.iter().map(|path| Dataset::open(path)).collect()
}

fn warnings(all: &[Dataset]) -> Vec<String> {
    all.iter().flat_map(Dataset::warnings).map(|warning| warning.to_string()).collect()
}

fn schema(all: &[Dataset], table: &str) -> Option<SchemaRef> {
    all.iter().find_map(|dataset| dataset.schema(table))
}

/// A file for each table, in a new directory.
pub fn all_csv(dir: &Path, to: &Path) -> Result<Vec<String>> {
    let all = datasets(dir)?;
    fs::create_dir(to).with_context(|| format!("cannot create {}", to.display()))?;
    for table in TABLES {
        let path = to.join(format!("{table}.csv"));
        rows_as_csv(&all, table, &mut std::io::BufWriter::new(create_new_file(&path)?))?;
    }
    give_to_caller(to)?;
    Ok(warnings(&all))
}

/// One table.
pub fn csv(dir: &Path, table: &str, out: &mut dyn Write) -> Result<Vec<String>> {
    let all = datasets(dir)?;
    rows_as_csv(&all, table, out)?;
    Ok(warnings(&all))
}

/// Names of columns, and a line for each row: nothing where there is no value, lists as `[1, 2]`.
fn rows_as_csv(all: &[Dataset], table: &str, out: &mut dyn Write) -> Result<()> {
    let mut writer = csv::WriterBuilder::new().from_writer(out);
    let Some(schema) = schema(all, table) else { return Ok(()) };
    let heads = schema.fields().iter().map(|field| field.name());
    writer.write_record(heads).map_err(of_output).context("cannot write CSV")?;
    for dataset in all {
        dataset.batches(table, |batch| {
            for row in 0..batch.num_rows() {
                for column in batch.columns() {
                    writer.write_field(cell::text(column.as_ref(), row)?).map_err(of_output)?;
                }
                writer.write_record(None::<&[u8]>).map_err(of_output)?;
            }
            Ok(())
        })?;
    }
    writer.flush().context("cannot write CSV")
}

/// The error of the output behind one of CSV: its reader may have seen enough.
fn of_output(error: csv::Error) -> anyhow::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => anyhow!("{other:?}"),
    }
}

/// One table as a stream of Arrow IPC; of a table without rows only its schema.
pub fn arrow(dir: &Path, table: &str, out: &mut dyn Write) -> Result<Vec<String>> {
    let all = datasets(dir)?;
    let schema =
        schema(&all, table).with_context(|| format!("no dataset in {} has a part of table {table}", dir.display()))?;
    let mut stream = StreamWriter::try_new(out, &schema)?;
    for dataset in &all {
        dataset.batches(table, |batch| Ok(stream.write(&batch)?))?;
    }
    stream.finish().context("cannot write Arrow")?;
    Ok(warnings(&all))
}
