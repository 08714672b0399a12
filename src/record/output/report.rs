//! Where the report goes: the standard output of a command is the command's alone.

use crate::base::sudo;
use crate::cli::{RecordArgs, look};
use crate::export::report::Look;
use crate::export::{self, create_file};
use crate::record::job::rank;
use anyhow::{Context as _, Result};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `--report` with this name is stdout.
const STDOUT: &str = "-";

#[derive(Debug)]
enum To {
    Stdout,
    Stderr,
    File(PathBuf, File),
    Nowhere,
}

/// Shared by all writers, one after the other.
#[derive(Debug, Clone)]
pub struct Report(Arc<To>);

impl Report {
    /// Opens it, before a command starts: a file that cannot be written must not cost a run.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub fn open(args: &RecordArgs, of_ranks: bool) -> Result<Self> {
        let to = match &args.output_args.report {
            Some(path) if path.as_os_str() == STDOUT => To::Stdout,
            Some(path) => {
                let path = if of_ranks { of_node(path, &rank::host()) } else { path.clone() };
                let privileged = nix::unistd::geteuid().is_root();
                let file = create_file(&path, sudo::invoking_user(), privileged)?;
                To::File(path, file)
            }
            None if args.output_args.quiet => To::Nowhere,
            None if args.run.is_empty() => To::Stdout,
            None => To::Stderr,
        };
        Ok(Self(Arc::new(to)))
    }

    /// Is it discarded?
    pub fn is_unwanted(&self) -> bool {
        matches!(*self.0, To::Nowhere)
    }

    /// How text is to look there.
    pub fn look(&self) -> Look {
        match &*self.0 {
            To::Stdout => look::of(&io::stdout(), None),
            To::Stderr => look::of(&io::stderr(), None),
            To::File(..) | To::Nowhere => Look::default(),
        }
    }

    /// Writes to it. A closed reader is no error.
    ///
    /// # Errors
    /// What `text` fails with, and what went wrong with writing, with the name of the file.
    pub fn write(&self, text: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let mut out = BufWriter::new(self.clone());
        let written = text(&mut out).and_then(|()| Ok(out.flush()?));
        let written = written.or_else(|e| if export::reader_left(&e) { Ok(()) } else { Err(e) });
        match &*self.0 {
            To::File(path, _) => written.with_context(|| format!("report {}", path.display())),
            _ => written,
        }
    }
}

impl Write for Report {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &*self.0 {
            To::Stdout => io::stdout().write(bytes),
            To::Stderr => io::stderr().write(bytes),
            To::File(_, file) => (&mut &*file).write(bytes),
            To::Nowhere => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &*self.0 {
            To::Stdout => io::stdout().flush(),
            To::Stderr | To::File(..) | To::Nowhere => Ok(()),
        }
    }
}

/// Each node of a job has a report of its own.
fn of_node(path: &Path, host: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(host);
    name.into()
}
