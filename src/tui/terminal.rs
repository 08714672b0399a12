//! The terminal: taken for the dashboard, and given back however that ends.

pub mod input;
mod osc52;
pub mod status;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, is_raw_mode_enabled,
};
use ratatui::layout::Size;
use ratatui::{Frame, Terminal};

use crate::export::decoding;
use crate::tui::dashboard::Dashboard;
use crate::tui::terminal::input::Input;

/// The controlling terminal, wherever standard output goes.
const TTY: &str = "/dev/tty";
/// A panic took the terminal away: what is drawn now would overwrite its message.
static PANICKED: AtomicBool = AtomicBool::new(false);
/// What a whole frame of a large terminal takes, in bytes.
const FRAME: usize = 256 * 1024;

/// The terminal while the dashboard has it. Dropping it gives the terminal back.
pub struct Screen {
    /// A frame is hundreds of small pieces: written together, not with a system call each.
    terminal: Terminal<CrosstermBackend<BufWriter<File>>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When there is none.
    pub fn enter() -> Result<Self> {
        let tty = OpenOptions::new().read(true).write(true).open(TTY).context("opening the terminal")?;
        restore_on_panic();
        enable_raw_mode().context("the terminal's raw mode")?;
        // From here on a failure gives it back, too.
        let mut screen = Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(FRAME, tty)))
            .map(|terminal| Self { terminal })
            .inspect_err(|_| {
                give_back();
            })?;
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen, EnableMouseCapture, Hide)?;
        screen.terminal.clear()?;
        Ok(screen)
    }

    /// Draws a frame; only what has changed is written.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, dashboard: &mut Dashboard) -> Result<()> {
        let begun = Instant::now();
        let mut drawing = Duration::ZERO;
        self.paint(|buf| {
            let begun = Instant::now();
            dashboard.draw(buf);
            drawing = begun.elapsed();
        })?;
        dashboard.times().drawing.add(drawing);
        dashboard.times().terminal.add(begun.elapsed().saturating_sub(drawing));
        Ok(())
    }

    /// Draws a frame that is not the dashboard's.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn paint(&mut self, draw: impl FnOnce(&mut Buffer)) -> Result<()> {
        if PANICKED.load(Ordering::Acquire) {
            bail!("a part of this program has panicked; its message is above");
        }
        let draw = |frame: &mut Frame<'_>| draw(frame.buffer_mut());
        self.terminal.draw(draw).map(|_| ()).context("writing to the terminal")
    }

    /// Puts a text into the clipboard of the terminal, if it lets programs do that.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn copy(&mut self, text: &str) -> Result<()> {
        let tty = self.terminal.backend_mut();
        let done = tty.write_all(osc52::sequence(text).as_bytes()).and_then(|()| std::io::Write::flush(tty));
        done.context("writing to the terminal")
    }

    /// The next key or the like, within this time.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn input(&self, within: Duration) -> Result<Option<Input>> {
        // What was typed ahead; then what comes.
        for wait in [Duration::ZERO, within] {
            readable(wait)?;
            if event::poll(Duration::ZERO).context("reading from the terminal")? {
                return Ok(input::of(&event::read().context("reading from the terminal")?));
            }
        }
        Ok(None)
    }

    /// Columns and lines.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn size(&self) -> Result<Size> {
        self.terminal.size().context("the terminal's size")
    }

    /// Gives the terminal back.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn leave(self) -> Result<()> {
        drop(self);
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Waits until there is something to read. A terminal that is gone is an error here: crossterm would read from it for ever.
fn readable(within: Duration) -> Result<()> {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error).context("waiting for the terminal"),
    }
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    if fds[0].revents().is_some_and(|flags| flags.intersects(gone)) {
        bail!("the terminal is gone");
    }
    Ok(())
}

/// As the terminal was; does nothing where it has been given back.
pub(super) fn give_back() {
    if !is_raw_mode_enabled().unwrap_or(false) {
        return;
    }
    if let Ok(mut tty) = OpenOptions::new().write(true).open(TTY) {
        // Nothing can be done about a terminal that is gone.
        let _ = execute!(tty, DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = tty.flush();
    }
    let _ = disable_raw_mode();
}

/// A panic, on whichever thread, restores the terminal before it prints its message.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // Damaged parts of a dataset are read under guard, and reported as such.
            if decoding() {
                return;
            }
            PANICKED.store(true, Ordering::Release);
            give_back();
            usual(info);
        }));
    });
}
