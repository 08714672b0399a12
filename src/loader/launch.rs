//! Starts a command that waits to be traced, and the guardian that frees stopped processes if we are killed.
//!
//! Both are this program again, with a hidden first argument, so that nothing has to be done between fork and
//! exec of a process that already has threads.

use crate::skel::TrialSkelBuilder;
use anyhow::{Context as _, Result, bail};
use libbpf_rs::MapHandle;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::SigSet;
use nix::unistd::{Gid, Uid, User, initgroups, pipe, setgid, setgroups, setuid};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};

/// First argument of the launcher: then the numbers of the gate and error pipes, then the command.
pub const LAUNCHER: &str = "__launch";
/// First argument of the guardian: then the number of the pipe that ends with us. Its standard input is the table of stopped
/// processes, for to ask the kernel for a table by its number takes more rights than a trace does.
pub const GUARDIAN: &str = "__guardian";

/// A shell's codes for a command that cannot be started.
pub const NOT_EXECUTABLE: i32 = 126;
pub const NOT_FOUND: i32 = 127;

/// A command that was started and waits for [`Launched::go`].
pub struct Launched {
    child: Child,
    gate: Option<OwnedFd>,
    errors: File,
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

/// Forks the command up to the point where it would be executed.
pub fn launch(command: &[OsString]) -> Result<Launched> {
    let (gate_read, gate_write) = pipe().context("pipe to the command")?;
    let (error_read, error_write) = pipe().context("pipe from the command")?;
    for ours in [&gate_write, &error_read] {
        fcntl(ours, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).context("pipe to the command")?;
    }
    inheritable(&gate_read)?;
    inheritable(&error_write)?;
    let child = Command::new("/proc/self/exe")
        .arg(LAUNCHER)
        .arg(gate_read.as_raw_fd().to_string())
        .arg(error_write.as_raw_fd().to_string())
        .args(command)
        .spawn()
        .context("starting the launcher")?;
    drop((gate_read, error_write));
    let mut errors = File::from(error_read);
    // spawn() may return before the launcher's own exec is over, which must not pass for the command's.
    errors.read_exact(&mut [0]).context("the launcher ended early")?;
    Ok(Launched { child, gate: Some(gate_write), errors })
}

impl Launched {
    /// Its process id, which stays the same when the command is executed.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the command begin; returns when it has been executed, or could not be.
    pub fn go(&mut self, command: &OsString) -> Result<Result<(), StartError>> {
        if let Some(gate) = self.gate.take() {
            File::from(gate).write_all(b"g").context("releasing the command")?;
        }
        let mut said = Vec::new();
        self.errors.read_to_end(&mut said).context("waiting for the command")?;
        let Some(errno) = said.first_chunk().map(|b| i32::from_ne_bytes(*b)) else { return Ok(Ok(())) };
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

/// The user who called sudo, if we run under it as root: (uid, gid).
pub fn invoking_user() -> Option<(u32, u32)> {
    let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    (Uid::effective().is_root()).then_some(()).and(Some((id("SUDO_UID")?, id("SUDO_GID")?)))
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
    let [gate, errors, command, rest @ ..] = args else { bail!("{LAUNCHER} is for internal use") };
    let mut gate = reopen(gate, false)?;
    let mut errors = reopen(errors, true)?;
    errors.write_all(b"r")?;
    let mut go = [0];
    if gate.read(&mut go)? == 0 {
        return Ok(()); // the tracer gave up
    }
    drop(gate);
    let failed = become_user_and_execute(command, rest);
    errors.write_all(&failed.raw_os_error().unwrap_or(nix::libc::EACCES).to_ne_bytes())?;
    Ok(())
}

fn become_user_and_execute(command: &OsString, args: &[OsString]) -> std::io::Error {
    // The tracer blocks the signals it waits for, and a child inherits that.
    let unblocked = SigSet::empty().thread_set_mask().map_err(std::io::Error::from);
    let failed = unblocked.and_then(|()| drop_privileges()).err();
    failed.unwrap_or_else(|| Command::new(command).args(args).exec())
}

/// Becomes the command, as the invoking user; returns only if that fails.
pub fn execute(command: &[OsString]) -> StartError {
    let (name, args) = command.split_first().map_or((OsString::new(), [].as_slice()), |(n, args)| (n.clone(), args));
    let error = become_user_and_execute(&name, args);
    StartError::new(&name, error)
}

/// The parent of a process.
pub fn parent(pid: u32) -> Option<u32> {
    super::maps::status(&std::fs::read(format!("/proc/{pid}/status")).ok()?).ppid
}

fn drop_privileges() -> std::io::Result<()> {
    // A tracer that is not root hands its capabilities on by these, and they are not the command's.
    rustix::thread::clear_ambient_capability_set()?;
    let Some((uid, gid)) = invoking_user() else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    if let Some(user) = User::from_uid(uid)? {
        let name = std::ffi::CString::new(user.name).map_err(std::io::Error::other)?;
        initgroups(&name, gid)?;
    } else {
        // Nobody knows the user's groups, and ours are not the user's.
        setgroups(&[gid])?;
    }
    setgid(gid)?;
    setuid(uid)?;
    Ok(())
}

/// A process that outlives us to free what we stopped. It ends when our end of a pipe does.
pub struct Guardian {
    life: Option<OwnedFd>,
    child: Child,
}

/// Starts the guardian of the table of stopped processes.
pub fn guard(held: BorrowedFd<'_>) -> Result<Guardian> {
    let (death, life) = pipe().context("pipe to the guardian")?;
    fcntl(&life, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).context("pipe to the guardian")?;
    inheritable(&death)?;
    let mut child = Command::new("/proc/self/exe")
        .arg(GUARDIAN)
        .arg(death.as_raw_fd().to_string())
        .stdin(held.try_clone_to_owned().context("table of held processes")?)
        .stdout(Stdio::piped())
        // Ctrl-C at the terminal must not end it before us.
        .process_group(0)
        .spawn()
        .context("starting the guardian of stopped processes")?;
    let output = child.stdout.take();
    let guardian = Guardian { life: Some(life), child };
    // Until it has the table it guards nothing.
    let ready = output.context("the guardian's output")?.read_exact(&mut [0]);
    ready.context("the guardian of stopped processes ended early")?;
    Ok(guardian)
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.life.take());
        let _ = self.child.wait();
    }
}

/// The table that standard input is.
fn held_table() -> Result<MapHandle> {
    super::kernel::quiet_libbpf();
    let mut store = MaybeUninit::uninit();
    let mut open = TrialSkelBuilder::default().open(&mut store)?;
    open.maps.iot_held.reuse_fd(std::io::stdin().as_fd())?;
    Ok(MapHandle::try_from(&open.load()?.maps.iot_held)?)
}

/// The guardian's whole life: wait for the end of the tracer, then let every stopped process go on.
pub fn guardian_main(args: &[OsString]) -> Result<()> {
    let [death] = args else { bail!("{GUARDIAN} is for internal use") };
    let mut death = reopen(death, false)?;
    let held = held_table().context("table of stopped processes")?;
    std::io::stdout().write_all(b"r").and_then(|()| std::io::stdout().flush()).context("telling the tracer")?;
    death.read_to_end(&mut Vec::new()).context("waiting for the end of the trace")?;
    super::session::release_all(&held);
    Ok(())
}
