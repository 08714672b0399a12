//! One run of a command with settings: as the user who asked for it, with its output kept only to explain a failure.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};
use nix::fcntl::{OFlag, PosixFadviseAdvice, posix_fadvise};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, fdatasync};

use crate::base::notices;
use crate::export::as_invoking_user;
use crate::loader::processes::launch::{ending, execute};
use crate::tune::measure::Outcome;
use crate::tune::profile::ahead_file;
use crate::tune::settings::{ROMIO_HINTS, Settings};

/// First argument of this program where it becomes a command: as the user who called sudo, and with no signal blocked.
pub const RUN: &str = "__run";
/// Lines of a failed command that are shown, and bytes in which these are looked for.
const LINES: usize = 10;
const LOG: u64 = 1 << 16;

/// Becomes the command; returns only if that fails, with the exit status of a shell.
pub fn run_main(command: &[OsString]) -> u8 {
    let error = execute(command);
    notices::print(&error.to_string());
    error.code as u8
}

/// Runs commands, until a signal asks for an end.
pub struct Runner {
    signals: SigSet,
    /// A directory of the user's.
    scratch: PathBuf,
    files: usize,
}

/// A command, and what is set for it.
pub struct Run<'a> {
    pub command: &'a [OsString],
    pub settings: &'a Settings,
    /// Set for all runs.
    pub always: &'a [(&'a str, &'a str)],
}

impl Runner {
    /// # Errors
    /// When signals cannot be blocked. What is changed for a run must be changed back: no signal ends this program.
    pub fn new(scratch: &Path) -> Result<Self> {
        let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD];
        let signals = SigSet::from_iter(signals);
        signals.thread_block().context("blocking signals")?;
        Ok(Self { signals, scratch: scratch.to_owned(), files: 0 })
    }

    /// A command as the user who asked for it.
    pub fn as_user(command: &[OsString]) -> Command {
        let mut own = Command::new("/proc/self/exe");
        own.arg(RUN).args(command);
        own
    }

    /// Runs it with its settings.
    ///
    /// # Errors
    /// When it cannot be started, or something that it needs cannot be set.
    pub fn run(&mut self, run: &Run) -> Result<Outcome> {
        let mut command = Self::as_user(run.command);
        command.envs(run.always.iter().copied());
        for (name, value) in &run.settings.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if !run.settings.hints.is_empty() {
            command.env(ROMIO_HINTS, self.hints(run.settings)?);
        }
        let _ahead = ReadAhead::set(run.settings)?;
        self.timed(command)
    }

    /// Runs a command that must do what it should, and takes its time.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn timed(&mut self, mut command: Command) -> Result<Outcome> {
        let mut log = tempfile::tempfile().context("a file for messages of the command")?;
        let stderr = log.try_clone().context("a file for messages of the command")?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let begun = Instant::now();
        let mut child = command.spawn().context("starting the command")?;
        let (status, stopped) = self.wait(&mut child)?;
        let seconds = begun.elapsed().as_secs_f64();
        Ok(match stopped.or_else(|| by_terminal(status)) {
            Some(signal) => Outcome::Stopped(signal),
            None if status.success() => Outcome::Done(seconds),
            None => Outcome::Failed(format!("{}{}", ending(status), last_lines(&mut log))),
        })
    }

    /// Waits for its end, and asks for that when this program is asked to end.
    fn wait(&self, child: &mut Child) -> Result<(ExitStatus, Option<Signal>)> {
        let mut stopped = None;
        loop {
            if let Some(status) = child.try_wait().context("waiting for the command")? {
                return Ok((status, stopped));
            }
            match self.signals.wait().context("waiting for signals")? {
                Signal::SIGCHLD => {}
                signal => {
                    stopped = Some(signal);
                    // It may have ended by itself: a terminal signals all.
                    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
                }
            }
        }
    }

    /// A file of hints that the command can read.
    fn hints(&mut self, settings: &Settings) -> Result<PathBuf> {
        self.files += 1;
        let path = self.scratch.join(format!("hints-{}", self.files));
        as_invoking_user(|| {
            let own = std::env::var_os(ROMIO_HINTS).and_then(|path| fs::read_to_string(path).ok());
            let written = fs::write(&path, settings.hints_file(&own.unwrap_or_default()));
            written.with_context(|| format!("cannot write {}", path.display()))
        })?;
        Ok(path)
    }
}

/// A command that Ctrl-C ended: the terminal sends that to this program as well, which may see it later.
fn by_terminal(status: ExitStatus) -> Option<Signal> {
    let signal = status.signal().or_else(|| status.code().map(|code| code - 128))?;
    Signal::try_from(signal).ok().filter(|signal| *signal == Signal::SIGINT)
}

/// What a failed command wrote last; of a long log only its end is read.
fn last_lines(log: &mut File) -> String {
    let mut text = Vec::new();
    let end = log.metadata().map_or(0, |meta| meta.len());
    let read = log.seek(SeekFrom::Start(end.saturating_sub(LOG))).and_then(|_| log.read_to_end(&mut text));
    let text = if read.is_ok() { String::from_utf8_lossy(&text) } else { "".into() };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    last.iter().flat_map(|line| ["\n  ", *line]).collect()
}

/// How far devices read ahead, until it is dropped.
struct ReadAhead(Vec<(PathBuf, String)>);

impl ReadAhead {
    fn set(settings: &Settings) -> Result<Self> {
        let mut set = Self(Vec::new());
        for (device, kib) in &settings.read_ahead_kib {
            let path = ahead_file(device);
            let what = || format!("cannot set {}", path.display());
            let before = fs::read_to_string(&path).with_context(what)?;
            fs::write(&path, kib.to_string()).with_context(what)?;
            set.0.push((path, before));
        }
        Ok(set)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        for (path, before) in &self.0 {
            if let Err(e) = fs::write(path, before.trim()) {
                notices::print(&format!(
                    "{}: it was {} before, and cannot be set to that: {e}",
                    path.display(),
                    before.trim()
                ));
            }
        }
    }
}

/// Drops files from the page cache, with the rights of the user. What is gone or no file is left out.
///
/// # Errors
/// When these rights cannot be had.
pub fn drop_from_cache(files: &[PathBuf]) -> Result<()> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    as_invoking_user(|| {
        for path in files {
            let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
            let Some(file) = file.ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file())) else {
                continue;
            };
            // Dirty pages stay otherwise. A disk that fails is the command's to find.
            let _ = fdatasync(&file);
            let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        }
        Ok(())
    })
}

/// A line of a shell as a command.
pub fn shell(line: &OsStr) -> Vec<OsString> {
    vec!["/bin/sh".into(), "-c".into(), line.to_owned()]
}
