//! Writes a dataset: rows in, closed part files out, at most one part per table at risk.

pub(crate) mod background;
pub(crate) mod batches;
pub(crate) mod cells;
pub(crate) mod columns;
pub(crate) mod described;
pub(crate) mod interned;
pub(crate) mod names;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod tables;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests;

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;

use crate::export::dataset::background::Background;
use crate::export::dataset::stream::{Limits, Streams, Target};
use crate::export::dataset::table::Table as _;
use crate::export::files::directory::{Directory, TrackedDirectory};
use crate::export::reading::compact::{Compacted, compact};
use crate::rows::{Row, Span};

/// How long parts live, in order; the last age repeats. A short trace that is killed loses little too.
const AGES: [Duration; 5] = [
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(20),
    Duration::from_secs(40),
    Duration::from_mins(1),
];

/// What a dataset is made of besides its rows.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// The directory. Its parent must exist.
    pub path: &'a Path,
    /// The name of this node, for the `host` column.
    pub host: &'a str,
    /// Replace a dataset that is there.
    pub force: bool,
    /// The owner of a new directory and all files: the invoking user under sudo.
    pub owner: Option<(u32, u32)>,
    /// The text of `views.sql`.
    pub views: &'a str,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Size of all parts.
    pub bytes: u64,
    /// Rows by table, in the order of `TABLES`.
    pub rows: Vec<(&'static str, u64)>,
    /// Number of part files, those without rows included.
    pub parts: usize,
    /// Tables in which ids may still have several rows, and why.
    pub repeated: Vec<String>,
}

/// A dataset being written. Dropped without `finish` it leaves what a killed program leaves.
pub struct DatasetWriter {
    streams: Streams,
    target: Target,
    /// Index in `AGES` of the parts now open.
    age: usize,
    /// Time since the start at which they are closed.
    due: Duration,
}

impl DatasetWriter {
    /// Makes the directory, `views.sql`, `views-spark.sql` and a first part without rows of every table, so that a
    /// pattern over any table matches something whenever the trace ends.
    ///
    /// # Errors
    /// When the directory cannot be used (see the message for the way out) or written to.
    pub fn create(options: Options<'_>) -> Result<Self> {
        Self::create_with(options, Limits::default(), nix::unistd::geteuid().is_root())
    }

    pub(crate) fn create_with(options: Options<'_>, limits: Limits, privileged: bool) -> Result<Self> {
        let directory = Directory::create(options.path, options.force, options.owner, privileged)?;
        Self::create_in(directory, options.host, options.views, limits)
    }

    /// The same in a directory that was made for it.
    pub(crate) fn create_in(directory: Directory, host: &str, views: &str, limits: Limits) -> Result<Self> {
        let target = Target {
            directory,
            host: host.to_owned(),
            limits,
            background: Background::default(),
            closed: Vec::new(),
            bytes: 0,
        };
        let mut writer = Self { streams: Streams::default(), target, age: 0, due: AGES[0] };
        writer.begin(views).map_err(|error| explain(&writer.target, error))?;
        Ok(writer)
    }

    fn begin(&mut self, views: &str) -> Result<()> {
        let directory = &self.target.directory;
        for (name, text) in [(names::VIEWS, views), (names::VIEWS_SPARK, crate::export::VIEWS_SPARK)] {
            directory
                .create_file(name)?
                .write_all(text.as_bytes())
                .with_context(|| format!("cannot write {}", directory.path().join(name).display()))?;
        }
        self.streams.open_all(&self.target)?;
        self.streams.close_all(&mut self.target)
    }

    /// Adds a row to its table. The last row of an id counts in `files`, `handles`, `objects`,
    /// `processes`, `threads` and `mounts`: what changes is pushed again.
    ///
    /// # Errors
    /// When a file cannot be written. The open part of that table is lost then and closed parts stay readable; stop recording.
    pub fn push(&mut self, row: Row) -> Result<()> {
        self.streams.push(row, &mut self.target).map_err(|error| explain(&self.target, error))
    }

    /// Closes the open parts when they are old enough. `elapsed` is the time since the start of the trace.
    ///
    /// # Errors
    /// When a file cannot be written, or could not be since the last call.
    pub fn tick(&mut self, elapsed: Duration) -> Result<()> {
        self.streams.check().map_err(|error| explain(&self.target, error))?;
        if elapsed < self.due {
            return Ok(());
        }
        self.age = (self.age + 1).min(AGES.len() - 1);
        self.due = elapsed + AGES[self.age];
        self.streams.close_all(&mut self.target).map_err(|error| explain(&self.target, error))
    }

    /// Closes every part and waits until all are on the device.
    pub fn finish(self) -> Result<Finished> {
        self.close()?.sync()
    }

    /// Closes every part. Does not wait until they are on the device: the caller may.
    pub(crate) fn close(mut self) -> Result<Closed> {
        self.streams.close_all(&mut self.target).map_err(|error| explain(&self.target, error))?;
        Ok(Closed { target: self.target, rows: self.streams.rows() })
    }

    /// Calls in parts that are closed.
    pub fn closed_calls(&self) -> u64 {
        self.streams.rows().into_iter().find(|(table, _)| *table == Span::NAME).map_or(0, |(_, rows)| rows)
    }

    /// What finds its directory again.
    pub fn tracked(&self) -> Result<TrackedDirectory> {
        self.target.directory.tracked()
    }

    /// The size of what is on disk.
    pub(crate) fn bytes(&self) -> Result<u64> {
        self.target.directory.bytes()
    }
}

/// A dataset that has all its rows: those that others replace are among them, and it may not be on the device yet.
pub struct Closed {
    target: Target,
    rows: Vec<(&'static str, u64)>,
}

impl Closed {
    /// Leaves one row for each id, and waits until all is on the device.
    pub fn sync(mut self) -> Result<Finished> {
        let Compacted { tables, kept } =
            compact(&self.target.directory).map_err(|error| explain(&self.target, error))?;
        for fewer in tables {
            self.target.closed.retain(|part| !fewer.removed.contains(part));
            if let Some((_, rows)) = self.rows.iter_mut().find(|(table, _)| *table == fewer.table) {
                *rows = fewer.rows;
            }
        }
        self.target.bytes = self.target.directory.size(&self.target.closed);
        // All but the views.
        let parts = self.target.closed.len();
        self.target.closed.extend([names::VIEWS, names::VIEWS_SPARK].map(str::to_owned));
        self.target.directory.sync(&self.target.closed).map_err(|error| explain(&self.target, error))?;
        Ok(Finished { bytes: self.target.bytes, rows: self.rows, parts, repeated: kept })
    }
}

/// Adds to a failure what is left of the dataset and what can be done.
fn explain(target: &Target, error: anyhow::Error) -> anyhow::Error {
    let Target { directory, closed, bytes, .. } = target;
    let kept = format!("{} closed parts ({bytes} bytes) are readable", closed.len());
    let shown = directory.path().display();
    if !directory.is_there() {
        error.context(format!("{shown} was removed during the trace, and what was recorded with it"))
    } else if let Some(what) = full(&error) {
        error.context(format!("{shown}: {what}; {kept}; free some space or record to another directory"))
    } else {
        error.context(format!("{shown} cannot be written; {kept}"))
    }
}

/// Whether the disk or the quota is full, in words.
pub(crate) fn full(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|cause| {
        let io = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error).map(Errno::from_raw);
        match io.or_else(|| cause.downcast_ref::<Errno>().copied())? {
            Errno::ENOSPC => Some("no space left"),
            Errno::EDQUOT => Some("the quota is used up"),
            _ => None,
        }
    })
}
