//! The index as a file of Parquet, with a column for each of [`COLUMNS`].

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, ListBuilder, RecordBatch, StringArray,
    StringBuilder, TimestampNanosecondArray,
};
use arrow::datatypes::{Float64Type, Int64Type, TimestampNanosecondType};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::export::give_to_caller;
use crate::runs::row::{COLUMNS, Of, Run};

/// Its name in the directory.
pub const INDEX: &str = "runs.parquet";
/// No index of so many runs is larger.
const MOST_BYTES: u64 = 256 << 20;

/// Makes the index anew, whole or not at all.
pub fn write(path: &Path, runs: &[Run]) -> Result<()> {
    let batch = batch(runs)?;
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = (|| {
        let file = File::create_new(&new).with_context(|| format!("cannot create {}", new.display()))?;
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None)?;
        writer.write(&batch)?;
        writer.close()?;
        give_to_caller(&new)?;
        fs::rename(&new, path).with_context(|| format!("cannot write {}", path.display()))
    })();
    if written.is_err() {
        // A part of it may be there.
        let _ = fs::remove_file(&new);
    }
    written
}

fn batch(runs: &[Run]) -> Result<RecordBatch> {
    let column = |of: Of| -> ArrayRef {
        match of {
            Of::Text(of) => Arc::new(runs.iter().map(of).collect::<StringArray>()),
            Of::Texts(of) => Arc::new(lists(runs.iter().map(of))),
            Of::Count(of) | Of::Bytes(of) => Arc::new(runs.iter().map(|run| Some(of(run))).collect::<Int64Array>()),
            Of::Seconds(of) => Arc::new(runs.iter().map(of).collect::<Float64Array>()),
            Of::Time(of) => {
                Arc::new(TimestampNanosecondArray::from_iter_values(runs.iter().map(of)).with_timezone("UTC"))
            }
            Of::Truth(of) => Arc::new(runs.iter().map(|run| Some(of(run))).collect::<BooleanArray>()),
        }
    };
    Ok(RecordBatch::try_from_iter_with_nullable(COLUMNS.iter().map(|of| (of.name, column(of.of), true)))?)
}

fn lists<'a>(all: impl Iterator<Item = &'a [String]>) -> ListArray {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for texts in all {
        for text in texts {
            lists.values().append_value(text);
        }
        lists.append(true);
    }
    lists.finish()
}

/// The runs of an index; none where there is no index.
pub fn read(path: &Path) -> Result<Vec<Run>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e.into()),
    };
    let meta = file.metadata()?;
    anyhow::ensure!(meta.is_file() && meta.len() <= MOST_BYTES, "that is no index");
    let mut runs = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
        runs.extend(rows(&batch?)?);
    }
    Ok(runs)
}

fn rows(batch: &RecordBatch) -> Result<Vec<Run>> {
    let column = |name: &str| batch.column_by_name(name).with_context(|| format!("no column {name}"));
    let texts = |name: &str| Ok::<_, anyhow::Error>(column(name)?.as_string_opt::<i32>().context("no text")?.clone());
    let lists = |name: &str| Ok::<_, anyhow::Error>(column(name)?.as_list_opt::<i32>().context("no list")?.clone());
    let counts = |name: &str| {
        Ok::<_, anyhow::Error>(column(name)?.as_primitive_opt::<Int64Type>().context("no number")?.clone())
    };
    let seconds = |name: &str| {
        Ok::<_, anyhow::Error>(column(name)?.as_primitive_opt::<Float64Type>().context("no number")?.clone())
    };
    let (path, user, job, command) = (texts("path")?, texts("user")?, texts("job")?, texts("command")?);
    let (finding, nodes, findings) = (texts("finding")?, lists("nodes")?, lists("findings")?);
    let start = column("start")?.as_primitive_opt::<TimestampNanosecondType>().context("no time")?.clone();
    let [dataset_bytes, processes, ranks] = [counts("dataset_bytes")?, counts("processes")?, counts("ranks")?];
    let [calls, read_bytes, written_bytes] = [counts("calls")?, counts("read_bytes")?, counts("written_bytes")?];
    let [duration_s, calls_s, finding_s] = [seconds("duration_s")?, seconds("calls_s")?, seconds("finding_s")?];
    let complete = column("complete")?.as_boolean_opt().context("no truth")?.clone();
    let text = |of: &StringArray, at: usize| of.is_valid(at).then(|| of.value(at).to_owned());
    let list = |of: &ListArray, at: usize| -> Vec<String> {
        let values = of.value(at);
        values.as_string_opt::<i32>().map(|all| all.iter().flatten().map(str::to_owned).collect()).unwrap_or_default()
    };
    let row = |at: usize| Run {
        path: text(&path, at).unwrap_or_default(),
        dataset_bytes: dataset_bytes.value(at),
        start_ns: start.value(at),
        duration_s: duration_s.value(at),
        nodes: list(&nodes, at),
        user: text(&user, at),
        job: text(&job, at),
        command: text(&command, at).unwrap_or_default(),
        processes: processes.value(at),
        ranks: ranks.value(at),
        calls: calls.value(at),
        read_bytes: read_bytes.value(at),
        written_bytes: written_bytes.value(at),
        calls_s: calls_s.value(at),
        finding: text(&finding, at),
        finding_s: finding_s.is_valid(at).then(|| finding_s.value(at)),
        findings: list(&findings, at),
        complete: complete.value(at),
    };
    Ok((0..batch.num_rows()).map(row).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(INDEX);
        assert_eq!(read(&path).unwrap(), []);
        let full = Run {
            path: "a/b".into(),
            dataset_bytes: 7,
            start_ns: 1_795_000_000_000_000_001,
            duration_s: 1.5,
            nodes: vec!["n1".into(), "n2".into()],
            user: Some("anna".into()),
            job: Some("4711".into()),
            command: "dd".into(),
            processes: 3,
            ranks: 2,
            calls: 9,
            read_bytes: 10,
            written_bytes: 11,
            calls_s: 0.5,
            finding: Some("reread".into()),
            finding_s: Some(0.25),
            findings: vec!["reread".into()],
            complete: true,
        };
        let runs = [full, Run { path: ".".into(), ..Run::default() }];
        write(&path, &runs).unwrap();
        assert_eq!(read(&path).unwrap(), runs);
        write(&path, &runs[1..]).unwrap();
        assert_eq!(read(&path).unwrap(), runs[1..]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_index_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(INDEX);
        fs::write(&path, "PAR1 and no more").unwrap();
        assert!(read(&path).is_err());
    }
}
