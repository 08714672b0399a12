//! Reads a dataset back, part by part, and goes on past parts that cannot be read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File as OsFile;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::ArrowError;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use crate::export::dataset::names;
use crate::export::dataset::table::{HOST_KEY, SCHEMA, SCHEMA_KEY, Table};
use crate::export::reading::ahead::{ahead, decoder};
use crate::export::reading::bounds::{self, Left};
use crate::export::reading::compact::is_described;
use crate::export::reading::guarded::{fact, guarded};
use crate::rows::{BlockLink, File, Handle, Mount, Object, Process, Span, Thread};

type Builder = ParquetRecordBatchReaderBuilder<OsFile>;

/// Something in the dataset that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// Name of the file; of the directory when it concerns more than one.
    pub file: String,
    pub why: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

/// A table whose rows describe entities by id. One that changes has several rows: the last one counts.
pub trait Dimension: Table {
    /// What the row describes.
    fn id(&self) -> i32;
}

macro_rules! dimensions {
    ($($row:ty: $id:ident),+ $(,)?) => {$(
        impl Dimension for $row {
            fn id(&self) -> i32 {
                self.$id
            }
        }
    )+};
}

dimensions! {
    File: file_id,
    Handle: handle_id,
    Object: object_id,
    Process: process_ix,
    Thread: thread_ix,
    Mount: mount_id,
}

/// A closed part of a table.
struct Part {
    table: &'static str,
    number: u32,
    name: String,
    /// Rows, by its footer.
    rows: u64,
}

/// A dataset on disk.
pub struct Dataset {
    path: PathBuf,
    /// By table, then in the order written.
    parts: Vec<Part>,
    hosts: BTreeSet<String>,
    /// Rows of a part that can be decoded at a time, by its name.
    batches: RefCell<BTreeMap<String, usize>>,
    /// Found while reading too, by methods that only look.
    warnings: RefCell<BTreeSet<Warning>>,
}

impl Dataset {
    /// Looks at every part of the dataset at `path`.
    ///
    /// # Errors
    /// When there is no dataset, none of its parts can be read, or it has another schema.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let mut dataset = Self {
            path: path.to_owned(),
            parts: Vec::new(),
            hosts: BTreeSet::new(),
            batches: RefCell::default(),
            warnings: RefCell::default(),
        };
        let (closed, open) = list(path)?;
        if closed.is_empty() {
            if let Some(one) = one_of(path) {
                bail!("{shown} holds datasets; give one of them: {}", one.display());
            }
            bail!(
                "{shown} is no dataset: it holds no readable part such as spans-00001.parquet; give a directory written with --output"
            );
        }
        for mut part in closed {
            match dataset.check(&part) {
                Ok(facts) => {
                    if facts.schema != SCHEMA {
                        bail!(
                            "{shown} has schema {}, and this program reads schema {SCHEMA}; use the version of iotrace-bpf that wrote it",
                            facts.schema.escape_debug()
                        );
                    }
                    dataset.hosts.extend(facts.host);
                    part.rows = facts.rows;
                    dataset.parts.push(part);
                }
                Err(error) if dataset.is_replaced(&part, &error) => {}
                Err(error) => dataset.warn(&part.name, &error),
            }
        }
        if open > 0 {
            let why = format!("the trace was cut off, or is still running; {open} open parts are not readable");
            let file = path.file_name().map_or_else(|| shown.to_string(), |name| name.to_string_lossy().into_owned());
            dataset.warnings.get_mut().insert(Warning { file, why });
        }
        if dataset.parts.is_empty() {
            let first = dataset.warnings().first().map(ToString::to_string).unwrap_or_default();
            bail!("no part of {shown} can be read; {first}");
        }
        Ok(dataset)
    }

    /// Whether a directory holds parts of a dataset.
    pub fn is_one(path: &Path) -> bool {
        list(path).is_ok_and(|(closed, _)| !closed.is_empty())
    }

    /// The greatest value of each of these columns of integers in any table, by the parts' footers. Columns without
    /// values are left out.
    ///
    /// # Errors
    /// When a part does not record it.
    pub fn greatest(&self, columns: &[&'static str]) -> Result<BTreeMap<&'static str, i64>> {
        let mut greatest = BTreeMap::new();
        for part in &self.parts {
            let file = OsFile::open(self.path.join(&part.name))?;
            let builder = guarded(|| opened(file))?;
            let names = builder.metadata().file_metadata().schema_descr().columns();
            for column in columns {
                let Some(at) = names.iter().position(|c| c.name() == *column) else { continue };
                for group in builder.metadata().row_groups().iter().filter(|group| group.num_rows() > 0) {
                    let most = match group.column(at).statistics() {
                        Some(Statistics::Int32(bounds)) => bounds.max_opt().map(|max| i64::from(*max)),
                        Some(Statistics::Int64(bounds)) => bounds.max_opt().copied(),
                        _ => bail!("{} has no statistics for its column {column}", part.name),
                    };
                    if let Some(most) = most {
                        let known = greatest.entry(*column).or_insert(most);
                        *known = most.max(*known);
                    }
                }
            }
        }
        Ok(greatest)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The nodes the dataset was recorded on, in order of name.
    pub fn hosts(&self) -> Vec<String> {
        self.hosts.iter().cloned().collect()
    }

    /// The rows of a table, by its parts.
    pub fn count<T: Table>(&self) -> u64 {
        self.parts.iter().filter(|part| part.table == T::NAME).map(|part| part.rows).sum()
    }

    /// What could not be read so far.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.borrow().iter().cloned().collect()
    }

    /// Calls `each` with every row of a table, in the order of its parts. Memory is bounded by a batch.
    /// A part that cannot be read (further) becomes a warning.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn rows<T: Table>(&self, mut each: impl FnMut(T) -> Result<()>) -> Result<()> {
        self.read(&Ok, &mut each)
    }

    /// The same without moving the rows, which costs a tenth of the time of a report where they are as large as calls.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn rows_in_place<T: Table>(&self, mut each: impl FnMut(&mut T) -> Result<()>) -> Result<()> {
        self.decode(T::NAME, &Ok, T::decode, &mut |mut rows: Vec<T>| rows.iter_mut().try_for_each(&mut each))
    }

    /// All rows of a table, for datasets that fit into memory.
    ///
    /// # Errors
    /// None: a part that cannot be read (further) becomes a warning.
    pub fn all<T: Table>(&self) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.rows(|row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Calls `each` with every row of the row groups that may hold values of this column in this range; the others are not
    /// decoded. A column that is no number with bounds leaves nothing out.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn rows_around<T: Table>(
        &self,
        column: &'static str,
        range: &Range<i64>,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let overlaps = |min, max| min < range.end && max >= range.start;
        self.read(&|builder| only_groups(builder, column, overlaps), &mut each)
    }

    /// Calls `each` with every span of the trees of these roots. Row groups and rows of other roots are not decoded.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn spans_of_roots(&self, roots: &BTreeSet<i64>, each: impl FnMut(Span) -> Result<()>) -> Result<()> {
        self.of_roots(roots, each)
    }

    /// The same for links of requests to calls.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn links_of_roots(&self, roots: &BTreeSet<i64>, each: impl FnMut(BlockLink) -> Result<()>) -> Result<()> {
        self.of_roots(roots, each)
    }

    fn of_roots<T: Table>(&self, roots: &BTreeSet<i64>, mut each: impl FnMut(T) -> Result<()>) -> Result<()> {
        let roots = Arc::new(roots.clone());
        self.read(&|builder| only_roots(builder, &roots), &mut each)
    }

    /// The entities of a table, by id: the last row of each.
    pub fn last_by_id<T: Dimension>(&self) -> Result<BTreeMap<i32, T>> {
        let mut last = BTreeMap::new();
        self.rows(|row: T| {
            last.insert(row.id(), row);
            Ok(())
        })?;
        Ok(last)
    }

    /// The columns of a table, as they are stored in its first part that can be read.
    pub fn schema(&self, table: &str) -> Option<SchemaRef> {
        let mut parts = self.parts.iter().filter(|part| part.table == table);
        parts.find_map(|part| {
            let file = OsFile::open(self.path.join(&part.name)).ok()?;
            guarded(|| Ok(opened(file)?.schema().clone())).ok()
        })
    }

    /// Calls `each` with the rows of a table as they are stored, in the order of its parts. Memory is bounded by a batch.
    ///
    /// # Errors
    /// Only those of `each`, which end the reading.
    pub fn batches(&self, table: &str, mut each: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        self.decode(table, &Ok, |batch| Ok(batch.clone()), &mut each)
    }

    fn read<T: Table>(&self, select: Select<'_>, each: &mut impl FnMut(T) -> Result<()>) -> Result<()> {
        self.decode(T::NAME, select, T::decode, &mut |rows: Vec<T>| rows.into_iter().try_for_each(&mut *each))
    }

    /// Decodes the batches of a table's parts. It is compiled once for each table, not for each place where one is read.
    fn decode<V: Send>(
        &self,
        table: &str,
        select: Select<'_>,
        decode: fn(&RecordBatch) -> Result<V>,
        each: &mut dyn FnMut(V) -> Result<()>,
    ) -> Result<()> {
        for part in self.parts.iter().filter(|part| part.table == table) {
            let mut reader = match self.reader(part, select) {
                Ok(opened) => opened,
                Err(error) if self.is_replaced(part, &error) => continue,
                Err(error) => {
                    self.warn(&part.name, &error);
                    continue;
                }
            };
            let mut take = |batch: Result<Option<V>>| match batch {
                Ok(Some(rows)) => each(rows).map(|()| true),
                Ok(None) => Ok(false),
                Err(error) => {
                    self.warn(&part.name, &error);
                    Ok(false)
                }
            };
            if part.rows > bounds::BATCH_ROWS as u64 {
                ahead(decoder(), || reader.next(decode), &mut take)?;
            } else {
                while take(reader.next(decode))? {}
            }
        }
        Ok(())
    }

    fn reader(&self, part: &Part, select: Select<'_>) -> Result<Reader> {
        let file = OsFile::open(self.path.join(&part.name))?;
        let known = self.batches.borrow().get(&part.name).copied();
        let (reader, left, rows) = guarded(|| {
            let builder = opened(file.try_clone()?)?;
            let rows = known.map_or_else(|| bounds::batch_rows(&file, builder.metadata()), Ok)?;
            let left = Left::of(&file, builder.metadata())?;
            Ok((select(builder.with_batch_size(rows))?.build()?, left, rows))
        })?;
        self.batches.borrow_mut().insert(part.name.clone(), rows);
        Ok(Reader { reader, left })
    }

    /// Reads a part's footer.
    fn check(&self, part: &Part) -> Result<PartMetadata> {
        let path = self.path.join(&part.name);
        // Opening a pipe would wait for ever.
        ensure!(path.metadata()?.is_file(), "not a file");
        let file = OsFile::open(path)?;
        let builder = guarded(|| opened(file))?;
        let fact = |key| fact(builder.metadata(), key);
        let schema = fact(SCHEMA_KEY).context("not written by iotrace-bpf")?;
        let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
        Ok(PartMetadata { schema, host: fact(HOST_KEY), rows })
    }

    /// Whether the part is gone because the dataset has ended since, and its rows are in a later part.
    fn is_replaced(&self, part: &Part, error: &anyhow::Error) -> bool {
        let gone = error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound);
        let is_later = |name: &std::ffi::OsStr| {
            let other = name.to_str().and_then(names::parse);
            other.is_some_and(|other| other.table == part.table && other.number > part.number && !other.open)
        };
        gone && is_described(part.table)
            && std::fs::read_dir(&self.path).is_ok_and(|all| all.flatten().any(|entry| is_later(&entry.file_name())))
    }

    fn warn(&self, file: &str, error: &anyhow::Error) {
        let why = format!("not readable, skipped: {error:#}");
        self.warnings.borrow_mut().insert(Warning { file: file.to_owned(), why });
    }
}

/// Restricts what is read of a part.
type Select<'a> = &'a dyn Fn(Builder) -> Result<Builder>;

/// What the footer of a part gives.
struct PartMetadata {
    schema: String,
    host: Option<String>,
    rows: u64,
}

/// The last of the datasets in a directory of them.
fn one_of(path: &Path) -> Option<PathBuf> {
    let below = std::fs::read_dir(path).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    below.filter(|path| Dataset::is_one(path)).max()
}

/// The closed parts in a directory in order, and the number of open ones.
fn list(path: &Path) -> Result<(Vec<Part>, usize)> {
    let shown = path.display();
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
            bail!("{shown} is not a directory; a dataset is the directory given to --output")
        }
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            bail!("cannot read the dataset {shown}: {e}; only the user who recorded it may, and root (sudo)")
        }
        Err(e) => return Err(e).with_context(|| format!("cannot read the dataset {shown}")),
    };
    let (mut closed, mut open) = (Vec::new(), 0);
    for entry in entries {
        let name = entry.with_context(|| format!("cannot read the dataset {shown}"))?.file_name();
        let Some(name) = name.to_str() else { continue };
        match names::parse(name) {
            Some(part) if part.open => open += 1,
            Some(part) => closed.push(Part { table: part.table, number: part.number, name: name.to_owned(), rows: 0 }),
            None => {}
        }
    }
    closed.sort_by_key(|part| (part.table, part.number));
    Ok((closed, open))
}

/// A part, with its footer.
fn opened(file: OsFile) -> Result<Builder> {
    bounds::footer(&file)?;
    Ok(Builder::try_new(file)?)
}

/// A part that is being read.
struct Reader {
    reader: ParquetRecordBatchReader,
    left: Left,
}

impl Reader {
    fn next<V>(&mut self, decode: fn(&RecordBatch) -> Result<V>) -> Result<Option<V>> {
        guarded(|| {
            let Some(batch) = self.reader.next() else { return Ok(None) };
            let batch = batch?;
            self.left.take(&batch)?;
            Ok(Some(decode(&batch)?))
        })
    }
}

/// Restricts reading to the row groups and rows of these roots.
fn only_roots(builder: Builder, roots: &Arc<BTreeSet<i64>>) -> Result<Builder> {
    let holds = |min, max| min <= max && roots.range(min..=max).next().is_some();
    let builder = only_groups(builder, "root_id", holds)?;
    let schema = builder.metadata().file_metadata().schema_descr();
    let mask = ProjectionMask::leaves(schema, [position(builder.metadata(), "root_id")?]);
    let roots = Arc::clone(roots);
    let filter = ArrowPredicateFn::new(mask, move |batch| {
        let ids = batch.column(0).as_primitive_opt::<Int64Type>();
        let ids = ids.ok_or_else(|| ArrowError::SchemaError("column root_id is not int64".to_owned()))?;
        Ok(BooleanArray::from_unary(ids, |id| roots.contains(&id)))
    });
    Ok(builder.with_row_filter(RowFilter::new(vec![Box::new(filter)])))
}

/// Restricts reading to row groups whose least and greatest value of a column are as wanted, or are not known.
fn only_groups(builder: Builder, column: &str, wanted: impl Fn(i64, i64) -> bool) -> Result<Builder> {
    let at = position(builder.metadata(), column)?;
    let may_hold = |group: &RowGroupMetaData| match group.column(at).statistics() {
        Some(Statistics::Int64(bounds)) => match (bounds.min_opt(), bounds.max_opt()) {
            (Some(min), Some(max)) => wanted(*min, *max),
            _ => true,
        },
        _ => true,
    };
    let groups = builder.metadata().row_groups().iter().enumerate();
    let groups = groups.filter(|(_, group)| may_hold(group)).map(|(index, _)| index).collect();
    Ok(builder.with_row_groups(groups))
}

fn position(metadata: &ParquetMetaData, column: &str) -> Result<usize> {
    let columns = metadata.file_metadata().schema_descr().columns();
    columns.iter().position(|c| c.name() == column).with_context(|| format!("column {column} is missing"))
}
