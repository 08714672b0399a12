//! How much of a part is decoded: a few bytes of a Parquet file can stand for gigabytes, and datasets come from others.
//!
//! Before anything of a part is decoded its pages' headers are read, which are not compressed. What is beyond a bound
//! makes the part unreadable. Each bound is many times what this program writes: row groups of 65 536 rows, pages and
//! dictionaries of one MiB, paths of at most 4095 bytes, parts of 8 million rows.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::DataType;
use parquet::basic::Type;
use parquet::column::page::{Page, PageReader as _};
use parquet::column::reader::{get_column_reader, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::export::reading::page::Header;

/// Bytes of a part's footer. One of 128 row groups and 40 columns has one million.
const FOOTER: u32 = 16 << 20;
/// Rows of a part.
const ROWS: i64 = 16 << 20;
/// Decoded bytes of a page, and of all columns of strings in a row group.
const PAGE: i64 = 16 << 20;
const GROUP: i64 = 96 << 20;
/// Values of a column with lists in a row group, and bytes that they can come to.
const ITEMS: i64 = 4 << 20;
const ITEM_BYTES: i64 = 256 << 20;
/// Rows decoded at a time, and the bytes of their strings where each row has the longest of its dictionary. Three batches are
/// in memory: one is decoded, one waits and one is used.
pub const BATCH_ROWS: usize = 8 * 1024;
const BATCH_BYTES: usize = 32 << 20;
/// Bytes of one string. A command line has at most 2 MB.
const STRING: usize = 2 << 20;
/// Bytes of all strings of a part, beside so many times the bytes that it has on disk: paths shrink to a thirtieth.
const STRINGS: u64 = 32 << 20;
const SHRUNK: u64 = 256;
/// Bytes of a page's header, with its statistics.
const HEADER: usize = 64 << 10;

/// An error when the footer of a part claims more than is read.
pub fn footer(file: &File) -> Result<()> {
    let end = file.metadata()?.len();
    let mut size = [0; 4];
    if let Some(at) = end.checked_sub(8) {
        file.read_exact_at(&mut size, at)?;
    }
    within(i64::from(u32::from_le_bytes(size)), i64::from(FOOTER), "bytes of footer")
}

fn within(number: i64, bound: i64, of: &str) -> Result<()> {
    ensure!((0..=bound).contains(&number), "too large to read ({number} {of}, of at most {bound})");
    Ok(())
}

/// The rows of a part that can be decoded at a time.
///
/// # Errors
/// When it is too large, or a header is damaged.
pub fn batch_rows(file: &File, metadata: &ParquetMetaData) -> Result<usize> {
    let mut rows = BATCH_ROWS;
    let all = metadata.row_groups().iter().fold(0, |sum: i64, group| sum.saturating_add(group.num_rows()));
    within(all.max(metadata.file_metadata().num_rows()), ROWS, "rows")?;
    let file = Arc::new(file.try_clone()?);
    for group in metadata.row_groups() {
        rows = rows.min(rows_of_group(&file, group)?);
    }
    Ok(rows)
}

fn rows_of_group(file: &Arc<File>, group: &RowGroupMetaData) -> Result<usize> {
    let (mut strings, mut longest) = (0, 0);
    for column in group.columns() {
        let name = column.column_path().string();
        let pages = pages(file, column).with_context(|| format!("column {name}"))?;
        let is_text = column.column_type() == Type::BYTE_ARRAY;
        let length = if is_text && pages.dictionary { longest_of(file, column, group.num_rows())? } else { 0 };
        within(length as i64, STRING as i64, "bytes of one string")?;
        if column.column_descr().max_rep_level() > 0 {
            within(pages.values, ITEMS, "values in lists")?;
            // One long command line makes this bound of many short ones large: then they are counted.
            if pages.values.saturating_mul(length as i64) > ITEM_BYTES {
                within(bytes_of(file, column, group.num_rows())?, ITEM_BYTES, "bytes of strings in lists")?;
            }
        } else {
            within(pages.values, ROWS, "values")?;
        }
        if is_text {
            (strings, longest) = (strings + pages.bytes, longest + length);
        }
    }
    within(strings, GROUP, "bytes of strings in a row group")?;
    Ok((BATCH_BYTES / longest.max(1)).clamp(1, BATCH_ROWS))
}

/// What the headers of a column's pages in a row group come to.
struct Pages {
    values: i64,
    bytes: i64,
    dictionary: bool,
}

fn pages(file: &File, column: &ColumnChunkMetaData) -> Result<Pages> {
    let (mut at, length) = column.byte_range();
    let end = at.checked_add(length).context("its place is beyond any file")?;
    let mut pages = Pages { values: 0, bytes: 0, dictionary: false };
    let mut buffer = vec![0; 256];
    while at < end {
        let header = loop {
            let room = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let read = file.read_at(buffer.get_mut(..room).unwrap_or_default(), at)?;
            match Header::parse(buffer.get(..read).unwrap_or_default()) {
                Some(header) => break header,
                None if read == buffer.len() && read < HEADER => buffer.resize(HEADER, 0),
                None => bail!("the header of a page is damaged"),
            }
        };
        within(header.uncompressed, PAGE, "bytes of a page")?;
        within(header.compressed, PAGE, "bytes of a page on disk")?;
        // Values are stored as differences from the one before: few bytes may be a value of any length.
        ensure!(header.encoding != Header::DELTA_BYTE_ARRAY, "its encoding is not one that iotrace-bpf writes");
        if header.kind == Header::DICTIONARY {
            // Each takes four bytes, or more.
            within(header.values, header.uncompressed / 4, "values of a dictionary")?;
            pages.dictionary = true;
        } else {
            within(header.values, ROWS, "values of a page")?;
            pages.values += header.values;
        }
        pages.bytes += header.uncompressed;
        at += (header.length as u64).saturating_add(header.compressed as u64).max(1);
    }
    Ok(pages)
}

/// Bytes of all strings of a column, which share those of its dictionary while they are counted.
fn bytes_of(file: &Arc<File>, column: &ColumnChunkMetaData, rows: i64) -> Result<i64> {
    let pages = SerializedPageReader::new(Arc::clone(file), column, usize::try_from(rows)?, None)?;
    let reader = get_column_reader(column.column_descr_ptr(), Box::new(pages));
    let mut reader = get_typed_column_reader::<ByteArrayType>(reader);
    let (mut bytes, mut strings, mut defined, mut repeated) = (0_i64, Vec::new(), Vec::new(), Vec::new());
    loop {
        let (records, ..) = reader.read_records(BATCH_ROWS, Some(&mut defined), Some(&mut repeated), &mut strings)?;
        if records == 0 {
            return Ok(bytes);
        }
        bytes = strings.iter().fold(bytes, |sum, string: &ByteArray| sum.saturating_add(string.len() as i64));
        strings.clear();
        defined.clear();
        repeated.clear();
    }
}

/// Bytes of the longest string of a column's dictionary. Its pages' sizes have been looked at.
fn longest_of(file: &Arc<File>, column: &ColumnChunkMetaData, rows: i64) -> Result<usize> {
    let rows = usize::try_from(rows)?;
    let mut reader = SerializedPageReader::new(Arc::clone(file), column, rows, None)?;
    let mut longest = 0;
    if let Some(Page::DictionaryPage { buf, .. }) = reader.get_next_page()? {
        let mut rest: &[u8] = &buf;
        while let Some((length, more)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            rest = more.get(length..).context("a string of a dictionary is longer than the dictionary")?;
            longest = length.max(longest);
        }
    }
    Ok(longest)
}

/// What may still be read of a part.
pub struct Left {
    rows: u64,
    strings: u64,
}

impl Left {
    pub fn of(file: &File, metadata: &ParquetMetaData) -> Result<Self> {
        let rows = u64::try_from(metadata.file_metadata().num_rows())?;
        Ok(Self { rows, strings: STRINGS.saturating_add(file.metadata()?.len().saturating_mul(SHRUNK)) })
    }

    /// Takes what a batch holds.
    pub fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows = self.rows.checked_sub(batch.num_rows() as u64).context("it has more rows than its footer says")?;
        for column in batch.columns().iter().filter(|column| *column.data_type() == DataType::Utf8) {
            let Some(strings) = column.as_string_opt::<i32>() else { continue };
            let lengths = || (0..strings.len()).map(|at| strings.value_length(at).unsigned_abs());
            within(i64::from(lengths().max().unwrap_or(0)), STRING as i64, "bytes of one string")?;
            let left = self.strings.checked_sub(lengths().map(u64::from).sum());
            self.strings =
                left.context("too large to read (its strings come to more bytes than are read of such a file)")?;
        }
        Ok(())
    }
}
