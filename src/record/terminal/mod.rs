//! The terminal of a command that runs under the dashboard, which has the user's: a pseudo-terminal. What the command
//! writes there is kept for the dashboard, and goes to the user's terminal when that is free.

mod lines;

use self::lines::Lines;
use crate::loader::processes::launch::Slave;
use crate::sudo;
use crate::summary::view::CommandOutput;
use anyhow::{Context as _, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Gid, Uid, fchown};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{tcgetwinsize, tcsetwinsize};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The last bytes of the command, which the user's terminal gets when the dashboard has ended.
const LAST: usize = 64 * 1024;
/// How long the end of the trace waits for output of a command that has ended: processes that it left behind may keep its
/// terminal open.
const REST: Duration = Duration::from_millis(500);

/// The side of the tracer. Shared by the thread that reads, the dashboard and the session.
#[derive(Clone)]
pub struct Terminal(Arc<Shared>);

struct Shared {
    master: File,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lines: Lines,
    /// Counts what changed, so that a dashboard makes a new view only then.
    version: u64,
    last: VecDeque<u8>,
    /// Bytes before the last ones.
    cut: u64,
    ended: Option<String>,
    /// The user's terminal is free: what comes goes there.
    free: bool,
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
        let terminal = Self(Arc::new(Shared { master: File::from(master), state: Mutex::default() }));
        terminal.take_size();
        let reading = terminal.clone();
        let read = move || reading.read();
        std::thread::Builder::new().name("terminal".into()).spawn(read).context("thread for the command's terminal")?;
        Ok((terminal, Slave { fd: slave.into(), path }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until nothing has the other side open.
    fn read(&self) {
        let mut buffer = vec![0; 16 * 1024];
        let mut master = &self.0.master;
        loop {
            match master.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => self.state().take(&buffer[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                // EIO: the last one that had it open has ended.
                Err(_) => break,
            }
        }
        self.state().over = true;
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
        let mut fds = [PollFd::new(master.as_fd(), PollFlags::POLLOUT)];
        let ready = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
            && fds[0].revents().is_some_and(|flags| flags.contains(PollFlags::POLLOUT));
        if !ready {
            return Err("the command does not take input".to_owned());
        }
        master.write_all(bytes).map_err(|e| format!("the terminal of the command: {e}"))
    }

    /// The command has ended.
    pub fn ended(&self, how: String) {
        let mut state = self.state();
        state.ended = Some(how);
        state.version += 1;
    }

    /// The user's terminal is free: it gets the last of the output, and what follows.
    pub fn give_back(&self) {
        self.take_size();
        self.state().give_back();
    }

    /// Waits for what the command wrote before it ended.
    pub fn rest(&self) {
        let begun = Instant::now();
        while !self.state().over && begun.elapsed() < REST {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl State {
    fn take(&mut self, bytes: &[u8]) {
        if self.free {
            pass(bytes);
            return;
        }
        self.lines.push(bytes);
        self.version += 1;
        self.last.extend(bytes);
        let over = self.last.len().saturating_sub(LAST);
        self.last.drain(..over);
        self.cut += over as u64;
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

    fn give_back(&mut self) {
        if std::mem::replace(&mut self.free, true) {
            return;
        }
        let last: Vec<u8> = std::mem::take(&mut self.last).into();
        pass(whole_lines(&last, self.cut > 0));
    }
}

/// Where the beginning was cut, what follows the first end of a line: a sequence or a character may be cut, too.
fn whole_lines(last: &[u8], cut: bool) -> &[u8] {
    let end = last.iter().position(|b| *b == b'\n').filter(|_| cut);
    end.map_or(last, |at| &last[at + 1..])
}

/// To the user's terminal. One that is gone must not cost the recording.
fn pass(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_the_output_begins_with_a_line() {
        let mut state = State::default();
        let line = b"0123456789abcdef\n";
        for _ in 0..2 * LAST / line.len() {
            state.take(line);
        }
        let last: Vec<u8> = state.last.iter().copied().collect();
        assert!(last.len() == LAST && state.cut > 0);
        let whole = whole_lines(&last, true);
        assert!(whole.starts_with(b"0123") && whole.len() + line.len() > LAST);
        assert_eq!(whole_lines(b"ab\ncd", false), b"ab\ncd");
        assert_eq!(whole_lines(b"no end", true), b"no end");
    }

    #[test]
    fn a_view_is_made_anew_only_when_something_came() {
        let mut state = State::default();
        state.take(b"one\r\n");
        let before = state.view();
        assert!(Arc::ptr_eq(&before, &state.view()));
        state.take(b"two");
        let texts: Vec<String> = state.view().lines.iter().map(|line| line.text.to_string()).collect();
        assert_eq!(texts, ["one", "two"]);
    }
}
