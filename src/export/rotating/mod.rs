//! Writes one dataset after the other into one directory: each row to the one that is open, and what it refers to with it.

pub(crate) mod periods;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod rotation_tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::export::dataset::described::{CLOCK_PAIR, Described, Forgotten, RUN};
use crate::export::dataset::stream::Limits;
use crate::export::dataset::{DatasetWriter, Options, names};
use crate::export::files::directory::{Directory, TrackedDirectory};
use crate::export::reading::shift::{END, shift};
use crate::export::rotating::periods::{Keeper, Notify};
use crate::rows::{Meta, Row};

/// How often it is looked how large the open dataset is, and what can be forgotten.
const LOOK: Duration = Duration::from_secs(1);

/// A moment on all clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Since the start of the trace.
    pub elapsed: Duration,
    /// Of `CLOCK_MONOTONIC`, in ns.
    pub monotonic: u64,
    /// In ns since 1970.
    pub wall: u64,
}

impl Moment {
    /// Facts about the start of a dataset that began so long after the start of the trace, as they are known now.
    pub fn facts(self, began: Duration) -> [Row; 3] {
        let since = self.elapsed.saturating_sub(began).as_nanos();
        let before = |now: u64| u128::from(now).saturating_sub(since).to_string();
        [fact("t0_ns", before(self.monotonic)), fact("t0_wall_ns", before(self.wall)), self.clock_pair()]
    }

    fn clock_pair(self) -> Row {
        fact(&format!("{CLOCK_PAIR}{}", self.monotonic), self.wall.to_string())
    }
}

/// A fact about the run.
pub fn fact(key: &str, value: String) -> Row {
    Row::Meta(Meta { key: key.to_owned(), value })
}

/// How far the writing is, for the decision when a dataset ends.
#[derive(Debug, Default)]
pub struct Progress {
    /// Datasets that are complete.
    pub complete: AtomicU64,
    /// The size of the one after them.
    pub bytes: AtomicU64,
}

/// Writes datasets. Dropped without `finish` it leaves of the last one what a killed program leaves.
pub struct RotatingWriter {
    directory: Arc<Directory>,
    keeper: Keeper,
    writer: DatasetWriter,
    described: Described,
    host: String,
    views: String,
    limits: Limits,
    /// When the open dataset began, which its times are relative to: a whole second, so that bins of time stay what they are.
    began: Duration,
    looked: Duration,
    progress: Arc<Progress>,
    /// Rows on their way.
    rows: Vec<Row>,
}

impl RotatingWriter {
    /// Makes or takes over the directory and begins the first dataset in it, named by this wall clock. Datasets of earlier
    /// runs stay beside it. `keep`: so many bytes at most in all together. `notify`
    /// is given messages for the user, by another thread.
    ///
    /// # Errors
    /// When the directory cannot be used or written to.
    pub fn create(
        options: Options<'_>,
        keep: Option<u64>,
        wall: u64,
        progress: Arc<Progress>,
        notify: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self> {
        let privileged = nix::unistd::geteuid().is_root();
        Self::create_with(options, Limits::default(), privileged, keep, wall, progress, Arc::new(notify))
    }

    pub(crate) fn create_with(
        options: Options<'_>,
        limits: Limits,
        privileged: bool,
        keep: Option<u64>,
        wall: u64,
        progress: Arc<Progress>,
        notify: Notify,
    ) -> Result<Self> {
        let directory = Arc::new(Directory::take(options.path, options.owner, privileged)?);
        refuse_dataset(options.path, &directory)?;
        let mut keeper = Keeper::start(Arc::clone(&directory), keep, notify)?;
        let (host, views) = (options.host.to_owned(), options.views.to_owned());
        let (name, writer) = begin(&directory, wall, (&host, &views), limits)?;
        keeper.open(name)?;
        Ok(Self {
            directory,
            keeper,
            writer,
            described: Described::default(),
            host,
            views,
            limits,
            began: Duration::ZERO,
            looked: Duration::ZERO,
            progress,
            rows: Vec::new(),
        })
    }

    /// What finds the directory of all of them again.
    pub fn tracked(&self) -> Result<TrackedDirectory> {
        self.directory.tracked()
    }

    /// Adds a row to its table, see [`DatasetWriter::push`].
    pub fn push(&mut self, row: Row) -> Result<()> {
        if let Row::Meta(Meta { key, value }) = &row
            && key == "t0_ns"
        {
            self.described.push(fact(RUN, value.clone()), &mut self.rows);
        }
        self.described.push(row, &mut self.rows);
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        let began = nanoseconds(self.began);
        self.rows.drain(..).try_for_each(|row| self.writer.push(shift(row, began)))
    }

    /// Closes open parts when they are old enough, and forgets what is over; returns which entities must be described anew
    /// if they are used again. `elapsed` is the time since the start of the trace.
    pub fn tick(&mut self, elapsed: Duration) -> Result<Forgotten> {
        self.writer.tick(elapsed.saturating_sub(self.began))?;
        if elapsed.saturating_sub(self.looked) < LOOK {
            return Ok(Forgotten::default());
        }
        self.looked = elapsed;
        let bytes = self.writer.bytes()?;
        self.progress.bytes.store(bytes, Ordering::Relaxed);
        self.keeper.grown(bytes)?;
        Ok(self.described.forget(self.limits.entities))
    }

    /// Ends the open dataset and begins the next one; returns which entities must be described anew if they are used again.
    pub fn rotate(&mut self, at: Moment) -> Result<Forgotten> {
        self.push(at.clock_pair())?;
        self.push(fact(END, nanoseconds(at.elapsed).to_string()))?;
        // Begun first: when that fails, everything is in the old one.
        let named = (self.host.as_str(), self.views.as_str());
        let (name, next) = begin(&self.directory, at.wall, named, self.limits)?;
        self.keeper.open(name)?;
        let before = std::mem::replace(&mut self.writer, next);
        self.keeper.closed(before.close()?)?;
        self.began = Duration::from_secs(at.elapsed.as_secs());
        self.progress.bytes.store(0, Ordering::Relaxed);
        self.progress.complete.fetch_add(1, Ordering::Relaxed);

        let forgotten = self.described.end();
        self.described.begin(&mut self.rows);
        self.rows.extend(at.facts(self.began));
        self.write()?;
        Ok(forgotten)
    }

    /// Closes the last dataset and waits until all are on the device and what is too much is removed.
    pub fn finish(mut self) -> Result<()> {
        let closed = self.writer.close()?;
        self.keeper.closed(closed)?;
        self.keeper.end()
    }
}

pub fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// A dataset in the directory, named by this wall clock.
fn begin(
    directory: &Directory,
    wall: u64,
    (host, views): (&str, &str),
    limits: Limits,
) -> Result<(String, DatasetWriter)> {
    let name = next_name(directory, wall)?;
    let writer = DatasetWriter::create_in(directory.create_within(&name)?, host, views, limits)?;
    Ok((name, writer))
}

/// The name of a dataset in the directory by this wall clock: one that is not there yet.
pub fn next_name(directory: &Directory, wall: u64) -> Result<String> {
    let name = periods::name(i64::try_from(wall).unwrap_or(0));
    let there = directory.entries()?;
    let mut names = (1..=there.len() as u32 + 1).map(|n| periods::nth(&name, n));
    Ok(names.find(|name| !there.contains(name)).unwrap_or(name))
}

/// Datasets do not lie in datasets.
pub fn refuse_dataset(path: &Path, directory: &Directory) -> Result<()> {
    if directory.entries()?.iter().any(|name| names::parse(name).is_some()) {
        bail!("{} is a dataset, not a directory of datasets; choose another directory", path.display());
    }
    Ok(())
}
