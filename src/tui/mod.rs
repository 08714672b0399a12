//! The dashboard: screens over a [`Source`], live or recorded. Keys change the `state`, which says what to ask the source
//! for; each frame is drawn from one snapshot and the state, and nothing else.

mod frame;
mod help;
mod input;
mod keys;
mod screens;
mod state;
pub mod status;
pub mod terminal;
#[cfg(test)]
mod testing;
mod text;
mod theme;
mod widgets;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::input::Input;
use self::state::{Effect, State};
use self::terminal::Screen;
use self::theme::Theme;
use crate::summary::filter::Filter;
use crate::summary::view::{Snapshot, Source};

/// Frames come at most this often.
const FRAME: Duration = Duration::from_millis(100);

/// How the dashboard is to look, and when to end.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only ASCII characters, whatever the locale says.
    pub ascii: bool,
    /// The filter to begin with.
    pub filter: Option<Arc<Filter>>,
    /// Set when the dashboard is to end.
    pub stop: Arc<AtomicBool>,
}

/// Whether there is a terminal for it: one to read keys from, and one that nothing else is written to.
pub fn wanted() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// A flag that SIGTERM, SIGINT and SIGHUP set.
///
/// # Errors
/// When the signals cannot be handled.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("handling signals")?;
    }
    Ok(stop)
}

/// Shows the dashboard until the user leaves it, `stop` is set or the terminal is gone.
///
/// # Errors
/// When there is no terminal, or it fails.
pub fn run(source: &mut dyn Source, options: &Options) -> Result<()> {
    let mut state = State::new(Theme::of_environment(options.ascii));
    state.filter.clone_from(&options.filter);
    let mut screen = Screen::enter()?;
    let mut snapshot = source.snapshot(&state.focus());
    let mut due = Instant::now();
    let mut shown: Option<Arc<Snapshot>> = None;
    let mut changed = true;
    while !options.stop.load(Ordering::Relaxed) {
        if Instant::now() >= due {
            due = Instant::now() + FRAME;
            snapshot = state.take(source);
            changed |= shown.as_ref().is_none_or(|s| !Arc::ptr_eq(s, &snapshot));
            if changed {
                let begun = Instant::now();
                screen.draw(|buf| frame::draw(buf, &snapshot, &mut state))?;
                state.frames.add(begun.elapsed());
                shown = Some(Arc::clone(&snapshot));
                changed = false;
            }
        }
        let Some(input) = screen.input(due.saturating_duration_since(Instant::now()))? else { continue };
        let effect = match input {
            Input::Key(key) => state.on_key(key, &snapshot),
            Input::Mouse(mouse) => state.on_mouse(mouse, &snapshot),
            Input::Resized => Effect::None,
        };
        match effect {
            Effect::None => {}
            Effect::Quit => break,
            Effect::Command(command) => {
                let answer = source.command(command, &state.focus());
                state.tell(answer);
            }
        }
        // The next key is about what this one led to, though it may not have been on the terminal yet.
        snapshot = state.take(source);
        let mut unseen = Buffer::empty(Rect::from(screen.size()?));
        frame::draw(&mut unseen, &snapshot, &mut state);
        changed = true;
    }
    screen.leave()
}
