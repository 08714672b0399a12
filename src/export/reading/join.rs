//! Small parts of a table as one. A trace of an hour has some sixty of a table, for little may be lost with each; a
//! reader of all nodes of a machine would open each of them for a few rows.

use std::collections::BTreeSet;
use std::fs::{self, File as OsFile};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use arrow_schema::Schema;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriter;

use crate::export::dataset::batches::Rows;
use crate::export::dataset::names;
use crate::export::dataset::stream::PART_ROWS;
use crate::export::dataset::table::{GROUP_ROWS, HOST_KEY, Table, properties, schema};
use crate::export::dataset::tables::each_table;
use crate::export::files::file::create_new_file;
use crate::export::reading::bounds::{self, Left};
use crate::export::reading::guarded::{fact, guarded};
use crate::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, FileRollup, Handle, Hist, Loss, Meta, Metric,
    Mount, Object, Process, Rollup, Rpc, Span, Stack, Thread,
};

macro_rules! join_tables {
    ($($field:ident: $row:ident $($boxed:ident)?),+ $(,)?) => {
        /// Writes parts into `to`, each of several small ones of the dataset `from` that follow each other, with the
        /// name of the last of them, and returns the names of those that are in these. A table that cannot be joined
        /// has no part there: one that is damaged, or of another version, or for want of room.
        ///
        /// # Errors
        /// When a part that was begun cannot be removed.
        pub fn join(from: &Path, to: &Path, all: &[String]) -> Result<BTreeSet<String>> {
            let mut joined = BTreeSet::new();
            $(joined.extend(join_table::<$row>(from, to, all)?);)+
            Ok(joined)
        }
    };
}
each_table!(join_tables);

/// A part that may be joined with others.
struct Part {
    name: String,
    file: OsFile,
    metadata: ArrowReaderMetadata,
    rows: usize,
}

impl Part {
    fn open<T: Table>(directory: &Path, name: &str) -> Result<Self> {
        let file = OsFile::open(directory.join(name))?;
        bounds::footer(&file)?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default())?;
        // Columns that are not known here would be lost.
        let columns = Schema::new(metadata.schema().fields().clone());
        ensure!(columns == *schema::<T>(), "its columns are those of another version");
        let rows = usize::try_from(metadata.metadata().file_metadata().num_rows())?;
        Ok(Self { name: name.to_owned(), file, metadata, rows })
    }

    fn rows<T: Table>(&self, mut each: impl FnMut(T) -> Result<()>) -> Result<()> {
        let batch = bounds::batch_rows(&self.file, self.metadata.metadata())?;
        let mut left = Left::of(&self.file, self.metadata.metadata())?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.try_clone()?, self.metadata.clone());
        for batch in reader.with_batch_size(batch).build()? {
            let batch = batch?;
            left.take(&batch)?;
            T::decode(&batch)?.into_iter().try_for_each(&mut each)?;
        }
        Ok(())
    }
}

fn join_table<T: Table>(from: &Path, to: &Path, all: &[String]) -> Result<Vec<String>> {
    let of_table = |name: &&String| names::parse(name).is_some_and(|part| part.table == T::NAME && !part.open);
    let mut named: Vec<&String> = all.iter().filter(of_table).collect();
    named.sort_by_key(|name| names::parse(name).map(|part| part.number));
    let parts = guarded(|| named.iter().map(|name| Part::open::<T>(from, name)).collect::<Result<Vec<_>>>());
    let mut joined = Vec::new();
    for run in runs(&parts.unwrap_or_default()).filter(|run| run.len() > 1) {
        let Some(last) = run.last() else { continue };
        let path = to.join(&last.name);
        if guarded(|| write::<T>(run, &path)).is_ok() {
            joined.extend(run.iter().map(|part| part.name.clone()));
        } else if path.exists() {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(joined)
}

/// Parts that follow each other and have less than a row group each, together no more than a part may have; others
/// alone.
fn runs(parts: &[Part]) -> impl Iterator<Item = &[Part]> {
    let mut rows = 0;
    parts.chunk_by(move |before, next| {
        rows += before.rows;
        let small = before.rows < GROUP_ROWS && next.rows < GROUP_ROWS;
        let together = small && rows + next.rows <= PART_ROWS;
        if !together {
            rows = 0;
        }
        together
    })
}

/// Rows keep their order, but for that within a row group: those of a call stay behind those of the calls around it.
fn write<T: Table>(run: &[Part], to: &Path) -> Result<()> {
    let first = run.first().context("no parts")?;
    let host = fact(first.metadata.metadata(), HOST_KEY).unwrap_or_default();
    let schema = schema::<T>();
    let file = create_new_file(to)?;
    file.set_permissions(first.file.metadata()?.permissions())?;
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties::<T>(&host, GROUP_ROWS)?))?;
    let mut rows = Rows::<T>::default();
    let mut write = |rows: &mut Rows<T>| -> Result<()> {
        rows.batches(&schema, &host, |batch| Ok(writer.write(&batch)?))?;
        Ok(writer.flush()?)
    };
    for part in run {
        part.rows(|row| {
            rows.push(row);
            if rows.len() == GROUP_ROWS { write(&mut rows) } else { Ok(()) }
        })?;
    }
    write(&mut rows)?;
    writer.finish()?;
    Ok(())
}
