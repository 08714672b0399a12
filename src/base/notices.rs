//! Messages for the user while a trace goes on: on stderr, or on a dashboard, which stderr would spoil.

use super::text::message;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// `--quiet`: only failures are printed.
static QUIET: AtomicBool = AtomicBool::new(false);

#[derive(Debug, Default)]
struct State {
    /// A dashboard has the terminal.
    screen: bool,
    /// Messages since then.
    lines: Vec<String>,
}

/// Shared by the writers of messages and the screen.
#[derive(Debug, Clone, Default)]
pub struct Notices(Arc<Mutex<State>>);

impl Notices {
    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on messages are kept for a screen.
    pub fn on_screen(&self) {
        self.with(|state| state.screen = true);
    }

    /// The last one, for the screen.
    pub fn last(&self) -> Option<String> {
        self.with(|state| state.lines.last().cloned())
    }

    /// A notice, not a failure.
    pub fn note(&self, what: &str) {
        if !QUIET.load(Ordering::Relaxed) {
            self.print(what);
        }
    }

    pub fn print(&self, what: &str) {
        self.with(|state| if state.screen { state.lines.push(what.to_owned()) } else { print(what) });
    }

    /// The screen is gone: its messages are printed where they stay.
    pub fn screen_ended(&self) {
        self.with(|state| {
            state.screen = false;
            state.lines.drain(..).for_each(|line| print(&line));
        });
    }
}

/// From now on [`note`] prints nothing.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// A notice: at once, on stderr, unless --quiet.
pub fn note(what: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        print(what);
    }
}

/// At once, on stderr.
pub fn print(what: &str) {
    // A closed stderr must not cost the recording.
    let _ = writeln!(std::io::stderr(), "iotrace-bpf: {}", message(what));
}
