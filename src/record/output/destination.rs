//! Where a recording goes, and whether it stays there.

use crate::base::notices::Notices;
use crate::base::sudo;
use crate::cli::{FlightArgs, RecordArgs};
use crate::export::{DatasetWriter, Directory, FlightWriter, Length, Options, RotatingWriter, TrackedDirectory, VIEWS};
use crate::loader::kernel::rings::now;
use crate::record::output::Output;
use crate::record::output::rotation::Rotation;
use crate::record::wall;
use anyhow::{Context as _, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A directory that the user wants the recording in, decided while it goes on.
#[derive(Debug, Clone, Default)]
pub struct Wanted(Arc<Mutex<Option<PathBuf>>>);

impl Wanted {
    pub fn get(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, path: Option<PathBuf>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }
}

/// Where the dataset is written.
pub struct Destination {
    pub path: PathBuf,
    /// The directory itself.
    made: Option<TrackedDirectory>,
    /// Removed at the end: it was not requested.
    temporary: bool,
    pub wanted: Wanted,
    /// Progress of datasets while the trace goes on.
    pub notices: Notices,
}

impl Drop for Destination {
    fn drop(&mut self) {
        if self.temporary {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

impl Destination {
    pub fn new(output: Option<&Path>) -> Self {
        let name = || format!("iotrace-bpf-{}-{}.iotrace", std::process::id(), now());
        let path = output.map_or_else(|| std::env::temp_dir().join(name()), Path::to_path_buf);
        Self { path, made: None, temporary: output.is_none(), wanted: Wanted::default(), notices: Notices::default() }
    }

    /// Nowhere asked for it on the command line.
    pub const fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// Makes the directory.
    ///
    /// # Errors
    /// When it cannot be made or is in use.
    pub fn writer(&mut self, host: &str, args: &RecordArgs, rotation: Option<&Rotation>) -> Result<Output> {
        let output = self.output(host, args, rotation)?;
        self.made = output.tracked()?;
        Ok(output)
    }

    /// What was written is complete: where it is by now, if it was given another name.
    pub fn find(&mut self) {
        if let Some(made) = &self.made {
            self.path = made.now();
        }
    }

    fn output(&self, host: &str, args: &RecordArgs, rotation: Option<&Rotation>) -> Result<Output> {
        let notices = self.notices.clone();
        // What is not written or not removed is a failure.
        let notify =
            move |what: &str| if what.contains("warning: ") { notices.print(what) } else { notices.note(what) };
        if let FlightArgs { flight: Some(time), flight_memory: memory, .. } = args.flight {
            let length = Length { time, memory };
            let writer = FlightWriter::create(options(&self.path, host, false), length, args.rotate.keep_size, notify)?;
            return Ok(Output::Flight(Box::new(writer)));
        }
        let Some(Rotation { keep, progress, .. }) = rotation else {
            return Ok(Output::One(Box::new(create(&self.path, host, args.force)?)));
        };
        let options = options(&self.path, host, false);
        let writer = RotatingWriter::create(options, *keep, wall(), Arc::clone(progress), notify)?;
        Ok(Output::Rotating(Box::new(writer)))
    }

    /// Moves the finished dataset to the user's path; returns its final path.
    ///
    /// # Errors
    /// When it cannot be moved; it stays where it was written then, and the message has that path.
    pub fn settle(&mut self) -> Result<Option<PathBuf>> {
        if !self.temporary {
            return Ok(Some(self.path.clone()));
        }
        let Some(wanted) = self.wanted.get() else { return Ok(None) };
        let moved = self.move_to(&wanted);
        if moved.is_err() {
            self.temporary = false;
        }
        moved.with_context(|| format!("the dataset stays in {}", self.path.display()))?;
        Ok(Some(wanted))
    }

    /// Where the finished recording stays, once it is settled; none where nothing asked for it.
    pub fn kept(&self) -> Option<PathBuf> {
        if self.temporary { self.wanted.get() } else { Some(self.path.clone()) }
    }

    fn move_to(&self, wanted: &Path) -> Result<()> {
        // Made in the way of every dataset: it belongs to the invoking user, and no link is followed.
        let privileged = nix::unistd::geteuid().is_root();
        let directory = Directory::create(wanted, true, sudo::invoking_user(), privileged)?;
        directory.take_over(self.made.as_ref().context("no dataset")?)
    }
}

/// A new dataset.
///
/// # Errors
/// When the directory cannot be made or is in use.
pub fn create(path: &Path, host: &str, force: bool) -> Result<DatasetWriter> {
    DatasetWriter::create(options(path, host, force))
}

fn options<'a>(path: &'a Path, host: &'a str, force: bool) -> Options<'a> {
    Options { path, host, force, owner: sudo::invoking_user(), views: VIEWS }
}

/// Could a dataset be made there?
///
/// # Errors
/// Names why not.
pub fn free(path: &Path) -> Result<()> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => {
            ensure!(entries.next().is_none(), "{} exists and is not empty; choose another directory", path.display());
            Ok(())
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
            if parent.is_dir() {
                Ok(())
            } else {
                bail!("{}: its parent directory does not exist; create that first (mkdir -p)", path.display())
            }
        }
        Err(e) => Err(e).with_context(|| path.display().to_string()),
    }
}
