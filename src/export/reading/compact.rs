//! One row for each id: of what was written again when more became known, the last row is kept and the others go.
//!
//! The rows that stay are copied into a part that takes the place of the table's last one; only then the other parts
//! are removed. A reader meanwhile, or after a crash in between, finds every id, some of them several times. Rows
//! are copied as they are, columns that this version does not know included. Memory is bounded by a row group, and one
//! bit for each id.

use std::collections::HashSet;
use std::fs::File as OsFile;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int32Type;
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::arrow::arrow_writer::ArrowWriter;
use roaring::RoaringBitmap;

use crate::export::dataset::names;
use crate::export::dataset::table::{GROUP_ROWS, HOST_KEY, Table, properties};
use crate::export::files::directory::Directory;
use crate::export::reading::bounds::{self, Left};
use crate::export::reading::guarded::{fact, guarded};
use crate::rows::{CallPath, File, Handle, Meta, Mount, Object, Process, Stack, Thread};

/// What became of rows that others replace.
#[derive(Debug, Default)]
pub struct Compacted {
    /// Tables in which there were some.
    pub tables: Vec<Fewer>,
    /// Tables that stayed as they are, and why.
    pub kept: Vec<String>,
}

/// A table that has one row for each id now.
#[derive(Debug)]
pub struct Fewer {
    pub table: &'static str,
    /// Rows before, and now.
    pub before: u64,
    pub rows: u64,
    /// The part that has them.
    pub part: String,
    /// Parts that are gone.
    pub removed: Vec<String>,
}

/// The tables of which the last row of an id holds, and the column with the id.
macro_rules! described {
    ($($row:ty: $id:literal),+ $(,)?) => {
        /// Is it a table of which the last row of an id holds?
        pub fn is_described(table: &str) -> bool {
            [$(<$row as Table>::NAME),+].contains(&table)
        }

        fn rewrite_all(directory: &Directory, all: &[String]) -> Compacted {
            let mut done = Compacted::default();
            $(match rewrite::<$row>(directory, all, $id) {
                Ok(fewer) => done.tables.extend(fewer),
                Err(error) => done.kept.push(format!("{}: {error:#}", <$row as Table>::NAME)),
            })+
            done
        }
    };
}

described! {
    File: "file_id",
    Handle: "handle_id",
    Object: "object_id",
    Process: "process_ix",
    Thread: "thread_ix",
    Mount: "mount_id",
    Stack: "stack_id",
    CallPath: "path_id",
    Meta: "key",
}

/// Keeps the last row of each id in a dataset that is no longer written. A table that cannot be written anew, for example for
/// want of room, stays as it is.
///
/// # Errors When what was written cannot be brought to the device, or what it replaces cannot be removed: the dataset
/// is whole then, too.
pub fn compact(directory: &Directory) -> Result<Compacted> {
    let all = directory.entries()?;
    let done = rewrite_all(directory, &all);
    if done.tables.is_empty() {
        return Ok(done);
    }
    // What is removed must not be gone before what replaces it is on the device.
    let open: Vec<String> = done.tables.iter().map(|fewer| format!("{}{}", fewer.part, names::OPEN)).collect();
    directory.sync(&open)?;
    for (open, fewer) in open.iter().zip(&done.tables) {
        directory.rename(open, &fewer.part)?;
    }
    directory.sync(&[])?;
    done.tables.iter().flat_map(|fewer| &fewer.removed).try_for_each(|part| directory.remove(part))?;
    Ok(done)
}

/// A closed part.
struct Part {
    file: OsFile,
    metadata: ArrowReaderMetadata,
    /// Rows decoded at a time.
    batch: usize,
    /// The rows that stay, by row group.
    stay: Vec<RoaringBitmap>,
}

impl Part {
    fn open(directory: &Directory, name: &str) -> Result<Self> {
        let file = directory.open_file(name)?;
        bounds::footer(&file)?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default())?;
        let batch = bounds::batch_rows(&file, metadata.metadata())?;
        let stay = vec![RoaringBitmap::new(); metadata.metadata().num_row_groups()];
        Ok(Self { file, metadata, batch, stay })
    }

    fn group(&self, group: usize) -> Result<ParquetRecordBatchReaderBuilder<OsFile>> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.try_clone()?, self.metadata.clone());
        Ok(builder.with_row_groups(vec![group]).with_batch_size(self.batch))
    }

    fn rows(&self) -> u64 {
        u64::try_from(self.metadata.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// Its columns, without the metadata of the file.
    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.metadata.schema().fields().clone()))
    }

    /// Finds the rows that stay: those whose id was not seen, from the last one on.
    fn mark(&mut self, id: &str, seen: &mut Seen) -> Result<()> {
        let mut left = Left::of(&self.file, self.metadata.metadata())?;
        for group in (0..self.stay.len()).rev() {
            let schema = self.metadata.metadata().file_metadata().schema_descr();
            let mask = ProjectionMask::columns(schema, [id]);
            let mut ids = Vec::new();
            for batch in self.group(group)?.with_projection(mask).build()? {
                let batch = batch?;
                left.take(&batch)?;
                ids.push(Arc::clone(batch.columns().first().with_context(|| format!("column {id} is missing"))?));
            }
            let mut row = ids.iter().map(|ids| ids.len() as u32).sum::<u32>();
            for ids in ids.iter().rev() {
                let column = Ids::of(ids, id)?;
                for at in (0..ids.len()).rev() {
                    row -= 1;
                    if seen.is_new(&column, at) {
                        self.stay[group].insert(row);
                    }
                }
            }
        }
        Ok(())
    }

    fn copy(&self, to: &mut ArrowWriter<OsFile>) -> Result<()> {
        let mut left = Left::of(&self.file, self.metadata.metadata())?;
        for (group, stay) in self.stay.iter().enumerate().filter(|(_, stay)| !stay.is_empty()) {
            let rows = self.metadata.metadata().row_group(group).num_rows();
            let selection = RowSelection::from_consecutive_ranges(ranges(stay).into_iter(), usize::try_from(rows)?);
            for batch in self.group(group)?.with_row_selection(selection).build()? {
                let batch = batch?;
                left.take(&batch)?;
                to.write(&batch)?;
            }
        }
        Ok(())
    }
}

/// These numbers as ranges.
fn ranges(numbers: &RoaringBitmap) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for number in numbers.iter().map(|number| number as usize) {
        match ranges.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => ranges.push(number..number + 1),
        }
    }
    ranges
}

/// A column of ids.
enum Ids<'a> {
    Numbers(&'a [i32]),
    Texts(&'a arrow_array::StringArray),
}

impl<'a> Ids<'a> {
    fn of(column: &'a ArrayRef, name: &str) -> Result<Self> {
        ensure!(column.null_count() == 0, "column {name} has rows without an id");
        match column.data_type() {
            DataType::Int32 => column.as_primitive_opt::<Int32Type>().map(|ids| Self::Numbers(ids.values())),
            DataType::Utf8 => column.as_string_opt().map(Self::Texts),
            _ => None,
        }
        .with_context(|| format!("column {name} is of type {}", column.data_type()))
    }
}

/// The ids of rows that stay.
#[derive(Default)]
struct Seen {
    numbers: RoaringBitmap,
    texts: HashSet<String>,
}

impl Seen {
    fn is_new(&mut self, ids: &Ids, at: usize) -> bool {
        match ids {
            Ids::Numbers(ids) => ids.get(at).is_some_and(|id| self.numbers.insert(id.cast_unsigned())),
            Ids::Texts(ids) => !self.texts.contains(ids.value(at)) && self.texts.insert(ids.value(at).to_owned()),
        }
    }
}

/// Writes the last row of each id into an open part beside those that there are; `None` when no id has several.
fn rewrite<T: Table>(directory: &Directory, all: &[String], id: &str) -> Result<Option<Fewer>> {
    let of_table = |name: &&String| names::parse(name).is_some_and(|part| part.table == T::NAME && !part.open);
    let mut named: Vec<&String> = all.iter().filter(of_table).collect();
    named.sort_by_key(|name| names::parse(name).map(|part| part.number));
    let Some((last, others)) = named.split_last() else { return Ok(None) };
    let parts = guarded(|| {
        let (mut parts, mut seen) = (Vec::new(), Seen::default());
        for name in named.iter().rev() {
            let what = || format!("{name} cannot be read");
            let mut part = Part::open(directory, name).with_context(what)?;
            part.mark(id, &mut seen).with_context(what)?;
            parts.push(part);
        }
        parts.reverse();
        Ok(parts)
    })?;
    let before = parts.iter().map(Part::rows).sum();
    let rows = parts.iter().flat_map(|part| &part.stay).map(RoaringBitmap::len).sum();
    if rows == before {
        return Ok(None);
    }
    let open = format!("{last}{}", names::OPEN);
    let written = directory.create_file(&open).and_then(|file| guarded(|| write::<T>(&parts, file)));
    if let Err(error) = written {
        // What is there is complete; an open part would mean that the dataset was cut off.
        directory.remove(&open)?;
        return Err(error);
    }
    let removed = others.iter().map(|name| (*name).clone()).collect();
    Ok(Some(Fewer { table: T::NAME, before, rows, part: (*last).clone(), removed }))
}

fn write<T: Table>(parts: &[Part], to: OsFile) -> Result<()> {
    let Some(first) = parts.first() else { bail!("no parts") };
    let schema = first.schema();
    ensure!(parts.iter().all(|part| part.schema() == schema), "its parts have different columns");
    let host = fact(first.metadata.metadata(), HOST_KEY).unwrap_or_default();
    let mut writer = ArrowWriter::try_new(to, schema, Some(properties::<T>(&host, GROUP_ROWS)?))?;
    parts.iter().try_for_each(|part| part.copy(&mut writer))?;
    // Not `into_inner`, which turns an error of the system into a text.
    writer.finish()?;
    Ok(())
}
