//! The terminal of a command that runs under the dashboard, which has the user's: a pseudo-terminal. What the command
//! writes there is kept for the dashboard, and goes to the user's terminal when that is free.
//!
//! It is always read, whatever the dashboard and the user's terminal do: a command must not wait for them.

mod lines;
mod outlet;

use self::lines::Lines;
use self::outlet::Outlet;
use crate::base::sudo;
use crate::loader::processes::launch::Slave;
use crate::summary::view::CommandOutput;
use anyhow::{Context as _, Result};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Gid, Uid, fchown};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{tcgetwinsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the end of the trace waits for output of a command that has ended: processes that it left behind may keep its
/// terminal open. As long it waits for a user's terminal that takes nothing.
const REST: Duration = Duration::from_millis(500);
/// How long the command waits for a user's terminal that takes nothing. After that it loses output instead.
const STALL: Duration = Duration::from_secs(2);
/// How often it is looked whether someone has opened it again, while nothing has it open.
const CLOSED: Duration = Duration::from_millis(20);

/// The side of the tracer. Shared by the thread that reads, the dashboard and the session.
#[derive(Clone)]
pub struct Terminal(Arc<Shared>);

struct Shared {
    master: File,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: Lines,
    /// Counts what changed, so that a dashboard makes a new view only then.
    version: u64,
    /// What the user's terminal gets.
    outlet: Outlet,
    ended: Option<String>,
    /// Nothing has the terminal open any more.
    over: bool,
    view: Option<(u64, Arc<CommandOutput>)>,
}

impl Terminal {
    /// A new terminal, the size of the user's, and its other side for the command.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn open() -> Result<(Self, Slave)> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .context("a terminal for the command")?;
        grantpt(&master).and_then(|()| unlockpt(&master)).context("a terminal for the command")?;
        // A command that reads nothing must not hold up the user who types.
        fcntl(&master, FcntlArg::F_SETFL(OFlag::O_RDWR | OFlag::O_NONBLOCK)).context("a terminal for the command")?;
        let name = ptsname(&master, Vec::new()).context("the name of the command's terminal")?;
        let path = PathBuf::from(name.to_string_lossy().into_owned());
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(nix::libc::O_NOCTTY)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        if let Some((uid, gid)) = sudo::invoking_user() {
            // As the user's own terminal is: the command may open it by its name.
            fchown(&slave, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).context("the command's terminal")?;
        }
        let shared = Shared { master: File::from(master), state: Mutex::default(), changed: Condvar::new() };
        let terminal = Self(Arc::new(shared));
        terminal.take_size();
        let reading = terminal.clone();
        let read = move || reading.read();
        std::thread::Builder::new().name("terminal".into()).spawn(read).context("thread for the command's terminal")?;
        Ok((terminal, Slave { fd: slave.into(), path }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same when something has changed, or that time is over.
    fn changed<'a>(&self, state: MutexGuard<'a, State>, within: Duration) -> MutexGuard<'a, State> {
        self.0.changed.wait_timeout(state, within).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Reads until the command has ended and nothing has the other side open.
    fn read(&self) {
        let mut buffer = vec![0; 16 * 1024];
        let mut master = &self.0.master;
        loop {
            let _ = poll(&mut [PollFd::new(master.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE);
            match master.read(&mut buffer) {
                Ok(n) if n > 0 => self.take(&buffer[..n]),
                Err(e) if [ErrorKind::Interrupted, ErrorKind::WouldBlock].contains(&e.kind()) => {}
                // Nothing has it open: this is the end, unless the command closed it and opens it again.
                Err(e) if is_closed(&e) && !self.is_over() => std::thread::sleep(CLOSED),
                _ => break,
            }
        }
        self.state().over = true;
        self.0.changed.notify_all();
    }

    /// Nothing has it open; whether that is how it stays.
    fn is_over(&self) -> bool {
        let mut state = self.state();
        state.over = true;
        self.0.changed.notify_all();
        state.ended.is_some()
    }

    /// The command waits with its output for a user's terminal that takes it, be it slowly.
    fn take(&self, bytes: &[u8]) {
        let mut state = self.state();
        let mut passed = state.outlet.passed();
        let mut until = Instant::now() + STALL;
        while state.outlet.waits_for_room(bytes.len()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.outlet.give_up();
                break;
            }
            state = self.changed(state, left);
            if state.outlet.passed() != passed {
                (passed, until) = (state.outlet.passed(), Instant::now() + STALL);
            }
        }
        state.take(bytes);
        self.0.changed.notify_all();
    }

    /// Makes it the size of the user's terminal; programs that look at it get a SIGWINCH.
    pub fn take_size(&self) {
        let Ok(wanted) = tcgetwinsize(std::io::stdin()) else { return };
        let master = &self.0.master;
        let same = tcgetwinsize(master).is_ok_and(|now| (now.ws_row, now.ws_col) == (wanted.ws_row, wanted.ws_col));
        if !same {
            let _ = tcsetwinsize(master, wanted);
        }
    }

    /// What the command has written, for the dashboard.
    pub fn output(&self) -> Arc<CommandOutput> {
        self.state().view()
    }

    /// Types bytes on it.
    ///
    /// # Errors
    /// Why they cannot be typed.
    pub fn type_in(&self, bytes: &[u8]) -> Result<(), String> {
        let mut master = &self.0.master;
        master.write_all(bytes).map_err(|e| match e.kind() {
            ErrorKind::WouldBlock => "the command does not take input".to_owned(),
            _ => format!("the terminal of the command: {e}"),
        })
    }

    /// The command has ended.
    pub fn ended(&self, how: String) {
        let mut state = self.state();
        state.ended = Some(how);
        state.version += 1;
    }

    /// The user's terminal is free: it gets the last of the output, and what follows. Returns when it has got the last, or
    /// takes nothing.
    pub fn give_back(&self) {
        self.take_size();
        if let Ok(out) = std::io::stdout().as_fd().try_clone_to_owned() {
            self.give_back_to(File::from(out));
        }
    }

    fn give_back_to(&self, out: File) {
        let wanted = {
            let mut state = self.state();
            if !state.outlet.open() {
                return;
            }
            state.outlet.taken()
        };
        // On a thread of its own: a terminal may take nothing for as long as its user likes.
        let passing = self.clone();
        let pass = move || passing.pass(&out);
        if std::thread::Builder::new().name("output".into()).spawn(pass).is_ok() {
            self.wait_until_passed(wanted);
        } else {
            self.state().outlet.give_up();
        }
    }

    /// To the user's terminal. One that is gone must not cost the recording.
    fn pass(&self, mut out: &File) {
        let mut state = self.state();
        loop {
            let Some(piece) = state.outlet.next_piece() else {
                state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let _ = out.write_all(&piece);
            state = self.state();
            state.outlet.has_passed();
            self.0.changed.notify_all();
        }
    }

    /// Waits until the user's terminal has got so much, as long as it takes something.
    fn wait_until_passed(&self, wanted: u64) {
        let mut state = self.state();
        let mut passed = state.outlet.passed();
        let mut until = Instant::now() + REST;
        while passed < wanted && Instant::now() < until {
            state = self.changed(state, until.saturating_duration_since(Instant::now()));
            if state.outlet.passed() != passed {
                (passed, until) = (state.outlet.passed(), Instant::now() + REST);
            }
        }
    }

    /// Waits for what the command wrote before it ended.
    pub fn rest(&self) {
        let until = Instant::now() + REST;
        let mut state = self.state();
        while !state.over && Instant::now() < until {
            state = self.changed(state, until.saturating_duration_since(Instant::now()));
        }
        let wanted = state.outlet.taken();
        drop(state);
        self.wait_until_passed(wanted);
    }
}

fn is_closed(e: &Error) -> bool {
    e.raw_os_error() == Some(Errno::EIO as i32)
}

impl State {
    fn take(&mut self, bytes: &[u8]) {
        self.over = false;
        if !self.outlet.is_open() {
            self.lines.push(bytes);
            self.version += 1;
        }
        self.outlet.push(bytes);
    }

    fn view(&mut self) -> Arc<CommandOutput> {
        if let Some((version, view)) = &self.view
            && *version == self.version
        {
            return Arc::clone(view);
        }
        let (lines, before) = (self.lines.all(), self.lines.gone());
        let view = Arc::new(CommandOutput { lines, before, ended: self.ended.clone() });
        self.view = Some((self.version, Arc::clone(&view)));
        view
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
