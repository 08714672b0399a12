//! The rows of each table on their way into part files.

use std::borrow::Borrow;
use std::fs::File as OsFile;

use anyhow::{Context, Result};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;

use crate::export::dataset::background::{Background, Pending};
use crate::export::dataset::batches::Rows;
use crate::export::dataset::described::MANY;
use crate::export::dataset::names;
use crate::export::dataset::table::{GROUP_ROWS, Table, properties, schema};
use crate::export::dataset::tables::each_table;
use crate::export::files::directory::Directory;
use crate::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, FileRollup, Handle, Hist, Loss, Meta, Metric,
    Mount, Object, Process, Rollup, Row, Rpc, Span, Stack, Thread,
};

/// Rows of a table without an order that are handed on together, while no others of it are being written.
const BATCH_ROWS: usize = 1024;
/// Its rows that wait at most while others are.
const WAITING_ROWS: usize = 16 * BATCH_ROWS;

/// Rows of a part, at most.
pub const PART_ROWS: usize = 8 * 1024 * 1024;

/// What is kept in memory or in a file.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// When row groups and parts end.
    pub group_rows: usize,
    pub part_rows: usize,
    /// At how many entities those that can be forgotten are looked for.
    pub entities: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { group_rows: GROUP_ROWS, part_rows: PART_ROWS, entities: MANY }
    }
}

/// What all streams share.
pub struct Target {
    pub directory: Directory,
    pub host: String,
    pub limits: Limits,
    /// Writes rows while the next ones come.
    pub background: Background,
    /// Names of the parts closed so far.
    pub closed: Vec<String>,
    /// Their size in bytes.
    pub bytes: u64,
}

/// A part being written.
struct Part {
    name: String,
    writer: ArrowWriter<OsFile>,
}

impl Part {
    /// Takes rows out and writes them; those of a sorted table are a row group.
    fn write<T: Table, R: Borrow<T>>(&mut self, rows: &mut Rows<T, R>, schema: &SchemaRef, host: &str) -> Result<()> {
        let Self { name, writer } = self;
        rows.batches(schema, host, |batch| writer.write(&batch).with_context(|| format!("cannot write {name}")))?;
        if !T::SORTED_BY.is_empty() {
            writer.flush().with_context(|| format!("cannot write {name}"))?;
        }
        Ok(())
    }
}

/// A part that rows were written to, and their room.
type Written<T, R> = Result<(Part, Rows<T, R>)>;

/// One table being written; `R`: a row as it comes, which is not moved out of its box.
struct Stream<T: Table, R: Borrow<T> = T> {
    schema: SchemaRef,
    /// Rows not yet handed to the open part.
    waiting: Rows<T, R>,
    part: Option<Part>,
    /// The open part and the room of its last rows, while those are written.
    busy: Option<Pending<Written<T, R>>>,
    /// Rows handed to the open part.
    handed: usize,
    /// Number of the last part opened.
    number: u32,
    /// Rows in closed parts.
    rows: u64,
}

impl<T: Table, R: Borrow<T>> Default for Stream<T, R> {
    fn default() -> Self {
        Self { schema: schema::<T>(), waiting: Rows::default(), part: None, busy: None, handed: 0, number: 0, rows: 0 }
    }
}

impl<T: Table, R: Borrow<T> + Send + 'static> Stream<T, R> {
    fn push(&mut self, row: R, target: &mut Target) -> Result<()> {
        // Opened with the first row, not with the first batch, so that a killed writer leaves a trace of the loss.
        if self.part.is_none() && self.busy.is_none() {
            self.open(target)?;
        }
        self.waiting.push(row);
        let (waiting, Limits { group_rows, part_rows, .. }) = (self.waiting.len(), target.limits);
        if self.handed + waiting >= part_rows {
            return self.close(target);
        }
        let enough = if T::SORTED_BY.is_empty() {
            waiting >= WAITING_ROWS
                || (waiting.is_multiple_of(BATCH_ROWS) && self.busy.as_mut().is_none_or(Pending::is_done))
        } else {
            waiting >= group_rows
        };
        if enough { self.write_beside(target) } else { Ok(()) }
    }

    /// Returns what has failed while rows came.
    fn check(&mut self) -> Result<()> {
        if self.busy.as_mut().is_some_and(Pending::has_failed) {
            self.take_part()?;
        }
        Ok(())
    }

    fn open(&mut self, target: &Target) -> Result<()> {
        self.number += 1;
        let name = names::part(T::NAME, self.number);
        let file = target.directory.create_file(&format!("{name}{}", names::OPEN))?;
        let properties = properties::<T>(&target.host, target.limits.group_rows)?;
        let writer = ArrowWriter::try_new(file, SchemaRef::clone(&self.schema), Some(properties))
            .with_context(|| format!("cannot write {name}"))?;
        self.part = Some(Part { name, writer });
        self.handed = 0;
        Ok(())
    }

    /// The open part, when all that was handed to it is written. A part that fails is left as it is.
    fn take_part(&mut self) -> Result<Option<(Part, Rows<T, R>)>> {
        match self.busy.take() {
            Some(busy) => busy.wait()?.map(Some),
            None => Ok(self.part.take().map(|part| (part, Rows::default()))),
        }
    }

    /// Writes the waiting rows to the open part.
    fn write(&mut self, target: &Target) -> Result<()> {
        let Some((mut part, _)) = self.take_part()? else { return Ok(()) };
        let mut rows = std::mem::take(&mut self.waiting);
        self.handed += rows.len();
        part.write(&mut rows, &self.schema, &target.host)?;
        (self.waiting, self.part) = (rows, Some(part));
        Ok(())
    }

    /// The same while the next rows come.
    fn write_beside(&mut self, target: &mut Target) -> Result<()> {
        let Some((mut part, room)) = self.take_part()? else { return Ok(()) };
        self.handed += self.waiting.len();
        let mut rows = std::mem::replace(&mut self.waiting, room);
        let (schema, host) = (SchemaRef::clone(&self.schema), target.host.clone());
        let write = move || part.write(&mut rows, &schema, &host).map(|()| (part, rows));
        self.busy = Some(target.background.run(write));
        Ok(())
    }

    /// Ends the open part, if there is one, and gives it its final name.
    fn close(&mut self, target: &mut Target) -> Result<()> {
        let written = self.write(target);
        // As many as came at once may never come again.
        self.waiting = Rows::default();
        written?;
        let Some(Part { name, mut writer }) = self.part.take() else { return Ok(()) };
        // Not `into_inner`, which turns an error of the system into a text.
        writer.finish().with_context(|| format!("cannot write {name}"))?;
        target.directory.rename(&format!("{name}{}", names::OPEN), &name)?;
        target.closed.push(name);
        target.bytes += writer.bytes_written() as u64;
        self.rows += self.handed as u64;
        Ok(())
    }
}

/// The streams of all tables, and which row goes where.
macro_rules! streams {
    (@held $row:ident) => { $row };
    (@held $row:ident boxed) => { Box<$row> };
    ($($field:ident: $row:ident $($boxed:ident)?),+ $(,)?) => {
        /// Every table being written.
        #[derive(Default)]
        pub struct Streams {
            $($field: Stream<$row, streams!(@held $row $($boxed)?)>),+
        }

        impl Streams {
            /// Adds a row to its table.
            pub fn push(&mut self, row: Row, target: &mut Target) -> Result<()> {
                match row {
                    $(Row::$row(row) => self.$field.push(row, target)),+
                }
            }

            /// Opens a part of every table.
            pub fn open_all(&mut self, target: &Target) -> Result<()> {
                $(self.$field.open(target)?;)+
                Ok(())
            }

            /// Returns what has failed beside the caller, if anything has.
            pub fn check(&mut self) -> Result<()> {
                $(self.$field.check()?;)+
                Ok(())
            }

            /// Closes every open part, also after one failed; the first failure is returned.
            pub fn close_all(&mut self, target: &mut Target) -> Result<()> {
                let mut result = Ok(());
                $(result = result.and(self.$field.close(target));)+
                result
            }

            /// Rows in closed parts, by table.
            pub fn rows(&self) -> Vec<(&'static str, u64)> {
                vec![$((<$row as Table>::NAME, self.$field.rows)),+]
            }
        }
    };
}

each_table!(streams);
