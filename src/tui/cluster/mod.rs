//! The dashboard over several nodes that are traced now: a row for each node and each rank, and when they did I/O.

mod look;
mod screen;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cluster::watch::Watch;
use crate::tui::cluster::look::Look;
use crate::tui::terminal::Screen;
use crate::tui::terminal::input::Input;
use crate::tui::theme::Theme;

/// How often it is looked for answers.
const FRAME: Duration = Duration::from_millis(100);

/// Shows the nodes until the user leaves, `stop` is set or the terminal is gone.
///
/// # Errors
/// When there is no terminal, or it fails.
pub fn run(watch: &Watch, stop: &AtomicBool) -> Result<()> {
    let mut screen = Screen::enter()?;
    let mut look = Look::new(Theme::of_environment());
    let mut seen = None;
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let (answers, ticks) = (watch.answers(), look.ticks);
        if seen != Some((answers, ticks)) || Instant::now() >= due {
            // Also without answers: for how long there were none.
            due = Instant::now() + Duration::from_secs(1);
            let view = watch.view(ticks);
            seen = Some((answers, ticks));
            screen.paint(|buf| screen::draw(buf, &view, &mut look))?;
        }
        let Some(input) = screen.input(FRAME)? else { continue };
        let goes_on = match input {
            Input::Key(key) => look.key(key),
            Input::Mouse(mouse) => look.mouse(mouse),
            Input::Resized => true,
        };
        if !goes_on {
            break;
        }
        seen = None;
    }
    screen.leave()
}
