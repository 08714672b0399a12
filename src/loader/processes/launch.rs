//! Starts a command that waits to be traced.
//!
//! The launcher is this program again, with a hidden first argument, so that nothing has to be done between fork and
//! exec of a process that already has threads.

use crate::base::sudo::invoking_user;
use crate::loader::processes::{limits, seccomp, users};
use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Gid, Uid, pipe, setgid, setgroups, setsid, setuid};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// First argument of the launcher: then the numbers of the gate and error pipes, whether the command is held, the
/// terminal of its own or `SHARED`, the caller's limits, the command.
pub const LAUNCHER: &str = "__launch";
/// The command has the caller's terminal.
const SHARED: &str = "-";
const HELD: &str = "held";
const FREE: &str = "free";

/// A shell's codes for a command that cannot be started.
pub const NOT_EXECUTABLE: i32 = 126;
pub const NOT_FOUND: i32 = 127;

/// A terminal for a command alone: the side that a program has.
pub struct Slave {
    pub fd: OwnedFd,
    pub path: PathBuf,
}

/// A command that was started and waits for [`Launched::go`].
pub struct Launched {
    child: Child,
    /// It is in a session of its own, on its own terminal.
    alone: bool,
    gate: Option<OwnedFd>,
    errors: File,
    /// The descriptor in the command's process through which its calls are let go on, or why there is none.
    listener: Result<i32, std::io::Error>,
}

/// Why a command did not start, and what a shell would exit with.
#[derive(Debug, thiserror::Error)]
#[error("{command}: {error}")]
pub struct StartError {
    pub command: String,
    pub error: std::io::Error,
    pub code: i32,
}

impl StartError {
    fn new(command: &OsString, error: std::io::Error) -> Self {
        let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        Self { command: command.to_string_lossy().into_owned(), error, code }
    }
}

fn inheritable(fd: &OwnedFd) -> Result<()> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty())).context("pipe to the command")?;
    Ok(())
}

/// The launcher; with a terminal for the command alone, in place of the caller's.
fn launcher(slave: Option<&Slave>) -> Result<Command> {
    let mut launcher = Command::new("/proc/self/exe");
    launcher.arg(LAUNCHER);
    let Some(slave) = slave else { return Ok(launcher) };
    let end = || slave.fd.try_clone().map(Stdio::from).context("the terminal of the command");
    launcher.stdin(end()?).stdout(end()?);
    // What goes to a file or a pipe still does.
    if std::io::stderr().is_terminal() {
        launcher.stderr(end()?);
    }
    Ok(launcher)
}

/// Forks the command up to the point where it would be executed. `held`: some of its calls wait, see [`seccomp`].
pub fn launch(command: &[OsString], held: bool, slave: Option<Slave>) -> Result<Launched> {
    let (gate_read, gate_write) = pipe().context("pipe to the command")?;
    let (error_read, error_write) = pipe().context("pipe from the command")?;
    for ours in [&gate_write, &error_read] {
        fcntl(ours, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).context("pipe to the command")?;
    }
    inheritable(&gate_read)?;
    inheritable(&error_write)?;
    let child = launcher(slave.as_ref())?
        .arg(gate_read.as_raw_fd().to_string())
        .arg(error_write.as_raw_fd().to_string())
        .arg(if held { HELD } else { FREE })
        .arg(slave.as_ref().map_or(Path::new(SHARED), |slave| &slave.path))
        .arg(limits::callers())
        .args(command)
        .spawn()
        .context("starting the launcher")?;
    let alone = slave.is_some();
    drop((gate_read, error_write, slave));
    let mut errors = File::from(error_read);
    // spawn() may return before the launcher's own exec is over, which must not pass for the command's.
    let mut listener = [0; 4];
    errors
        .read_exact(&mut listener)
        .context("the process that becomes the command ended before it was ready (killed?)")?;
    let listener = match i32::from_ne_bytes(listener) {
        errno @ ..0 => Err(std::io::Error::from_raw_os_error(-errno)),
        listener => Ok(listener),
    };
    Ok(Launched { child, alone, gate: Some(gate_write), errors, listener })
}

impl Launched {
    /// Its process id, which stays the same when the command is executed.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Is it on a terminal of its own? Then the keys of the user's do not reach it.
    pub const fn is_alone(&self) -> bool {
        self.alone
    }

    /// The descriptor in its process of the filter that holds it.
    ///
    /// # Errors
    /// Why it is not held.
    pub const fn listener(&self) -> Result<i32, &std::io::Error> {
        match &self.listener {
            Ok(listener) => Ok(*listener),
            Err(e) => Err(e),
        }
    }

    /// Lets the command begin; returns when it has been executed, or could not be.
    pub fn go(&mut self, command: &OsString) -> Result<Result<(), StartError>> {
        if let Some(gate) = self.gate.take() {
            File::from(gate).write_all(b"g").context("releasing the command")?;
        }
        let mut errno = Vec::new();
        self.errors.read_to_end(&mut errno).context("waiting for the command")?;
        let Some(errno) = errno.first_chunk().map(|b| i32::from_ne_bytes(*b)) else { return Ok(Ok(())) };
        let _ = self.child.wait();
        Ok(Err(StartError::new(command, std::io::Error::from_raw_os_error(errno))))
    }

    /// Its exit status if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("waiting for the command")
    }
}

impl Drop for Launched {
    /// A command that was never released must not wait for ever.
    fn drop(&mut self) {
        if self.gate.take().is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The exit status a shell would show.
pub fn shell_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|s| 128 + s)).unwrap_or(1)
}

/// How it ended, for people.
pub fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(number)) => {
            let name = Signal::try_from(number).map_or("a real-time signal", Signal::as_str);
            format!("signal {number} ({name})")
        }
        (None, None) => "no exit status".to_owned(),
    }
}

/// Begins a session on a terminal of its own: the first terminal that a session opens is the one that controls it.
fn own_terminal(path: &OsString) -> Result<()> {
    if path != SHARED {
        setsid().context("a session for the command")?;
        OpenOptions::new().read(true).write(true).open(path).context("the terminal of the command")?;
    }
    Ok(())
}

/// A pipe that was inherited, opened anew, with close-on-exec, so that a command does not inherit it.
fn reopen(fd: &OsString, write: bool) -> Result<File> {
    let number: i32 = fd.to_str().and_then(|s| s.parse().ok()).context("a descriptor number")?;
    let file = OpenOptions::new().read(!write).write(write).open(format!("/proc/self/fd/{number}"))?;
    nix::unistd::close(number)?;
    Ok(file)
}

/// The launcher's whole life: wait, become the invoking user, execute.
pub fn launcher_main(args: &[OsString]) -> Result<()> {
    let [gate, errors, held, terminal, limits, command, rest @ ..] = args else {
        bail!("{LAUNCHER} is started by iotrace-bpf itself, not by users")
    };
    let mut gate = reopen(gate, false)?;
    let mut errors = reopen(errors, true)?;
    own_terminal(terminal)?;
    // The groups before the filter: to look them up may start a program, and no thread would answer yet.
    let groups = join_groups();
    let filter =
        if held == HELD { seccomp::install() } else { Err(std::io::Error::from_raw_os_error(Errno::EPERM as i32)) };
    let listener = match &filter {
        Ok(filter) => filter.as_raw_fd(),
        Err(e) => -e.raw_os_error().unwrap_or(Errno::EPERM as i32),
    };
    let mut go = [0];
    if errors.write_all(&listener.to_ne_bytes()).is_err() || gate.read(&mut go)? == 0 {
        return Ok(()); // the tracer gave up, and says why
    }
    drop(gate);
    limits::inherit(&limits.to_string_lossy());
    let failed = groups.err().unwrap_or_else(|| become_user_and_execute(command, rest));
    // The same.
    let _ = errors.write_all(&failed.raw_os_error().unwrap_or(Errno::EACCES as i32).to_ne_bytes());
    Ok(())
}

fn become_user_and_execute(command: &OsString, args: &[OsString]) -> std::io::Error {
    // The tracer blocks the signals it waits for, and a child inherits that.
    let unblocked = SigSet::empty().thread_set_mask().map_err(std::io::Error::from);
    let failed = unblocked.and_then(|()| drop_privileges()).and_then(|()| limits::restore()).err();
    failed.unwrap_or_else(|| Command::new(command).args(args).exec())
}

/// Becomes the command, as the invoking user; returns only if that fails.
pub fn execute(command: &[OsString]) -> StartError {
    let (name, args) = command.split_first().map_or((OsString::new(), [].as_slice()), |(n, args)| (n.clone(), args));
    let error = join_groups().err().unwrap_or_else(|| become_user_and_execute(&name, args));
    StartError::new(&name, error)
}

/// The parent of a process.
pub fn parent(pid: u32) -> Option<u32> {
    crate::loader::processes::maps::status(&std::fs::read(format!("/proc/{pid}/status")).ok()?).ppid
}

/// The groups of the user who called sudo, in place of our own.
fn join_groups() -> std::io::Result<()> {
    let Some((uid, gid)) = invoking_user() else { return Ok(()) };
    // Where the user's groups are not known, ours are not the user's.
    let groups: Vec<Gid> = users::groups(uid, gid).into_iter().map(Gid::from_raw).collect();
    Ok(setgroups(&groups)?)
}

fn drop_privileges() -> std::io::Result<()> {
    // A tracer that is not root hands its capabilities on by these, and they are not the command's.
    rustix::thread::clear_ambient_capability_set()?;
    let Some((uid, gid)) = invoking_user() else { return Ok(()) };
    setgid(Gid::from_raw(gid))?;
    setuid(Uid::from_raw(uid))?;
    Ok(())
}
