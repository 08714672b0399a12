//! Parts of a node that are those of another one with its own name and ranks: columns stay as they are encoded, which
//! takes a tenth of the time of writing them.

use anyhow::{Context as _, Result, bail};
use parquet::basic::Compression;
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

/// The tables that are copied: those with a row for each call, or each second.
pub const TABLES: [&str; 4] = ["spans", "rollup", "hist", "metrics"];

/// Copies them into a dataset that has none.
pub fn copy(from: &Path, to: &Path, host: &str, ranks_later: i32) -> Result<()> {
    let is_copied = |name: &str| TABLES.iter().any(|table| name.starts_with(&format!("{table}-")));
    let parts = |dir: &Path| -> Result<Vec<String>> {
        let names = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
        let names = names.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.filter(|name| name.as_ref().map_or(true, |name| is_copied(name))).collect()
    };
    for name in parts(to)? {
        fs::remove_file(to.join(&name)).with_context(|| format!("cannot remove {name}"))?;
    }
    for name in parts(from)? {
        part(&from.join(&name), &to.join(&name), host, ranks_later).with_context(|| format!("cannot copy {name}"))?;
    }
    Ok(())
}

fn part(from: &Path, to: &Path, host: &str, ranks_later: i32) -> Result<()> {
    let file = File::open(from)?;
    let reader = SerializedFileReader::new(file.try_clone()?)?;
    let about = reader.metadata().file_metadata();
    let facts = about.key_value_metadata().into_iter().flatten().map(|fact| match fact.key.as_str() {
        "iotrace.host" => KeyValue::new(fact.key.clone(), host.to_owned()),
        _ => fact.clone(),
    });
    let sorting = reader.metadata().row_groups().first().and_then(|group| group.sorting_columns().cloned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(parquet::basic::ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(about.created_by().unwrap_or_default().to_owned())
        .set_key_value_metadata(Some(facts.collect()))
        .set_sorting_columns(sorting);
    let schema = about.schema_descr().root_schema_ptr();
    let copy = File::create_new(to)?;
    copy.set_permissions(file.metadata()?.permissions())?;
    let mut writer = SerializedFileWriter::new(copy, schema, Arc::new(properties.build()))?;
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let mut copied = writer.next_row_group()?;
        for (at, column) in group.metadata().columns().iter().enumerate() {
            match column.column_path().string().as_str() {
                "host" => hosts(&mut copied, host, group.metadata().num_rows())?,
                "rank" => ranks(&mut copied, group.get_column_reader(at)?, ranks_later, group.metadata().num_rows())?,
                _ => {
                    let as_it_is = ColumnCloseResult {
                        bytes_written: column.compressed_size() as u64,
                        rows_written: group.metadata().num_rows() as u64,
                        metadata: column.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    };
                    copied.append_column(&file, as_it_is)?;
                }
            }
        }
        copied.close()?;
    }
    writer.close()?;
    Ok(())
}

fn hosts(to: &mut SerializedRowGroupWriter<'_, File>, host: &str, rows: i64) -> Result<()> {
    let mut column = to.next_column()?.context("no column for the host")?;
    let hosts = vec![ByteArray::from(host); usize::try_from(rows)?];
    column.typed::<ByteArrayType>().write_batch(&hosts, None, None)?;
    Ok(column.close()?)
}

fn ranks(to: &mut SerializedRowGroupWriter<'_, File>, from: ColumnReader, later: i32, rows: i64) -> Result<()> {
    let ColumnReader::Int32ColumnReader(mut from) = from else { bail!("ranks are no numbers") };
    let rows = usize::try_from(rows)?;
    let (mut levels, mut values) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    while levels.len() < rows {
        let (records, _, _) = from.read_records(rows, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            bail!("ranks are missing");
        }
    }
    for rank in &mut values {
        *rank += later;
    }
    let mut column = to.next_column()?.context("no column for ranks")?;
    column.typed::<Int32Type>().write_batch(&values, Some(&levels), None)?;
    Ok(column.close()?)
}
