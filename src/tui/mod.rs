//! The dashboard: screens over a [`Source`], live or recorded. Keys change the `state`, which holds the request for the source
//! for; each frame is drawn from one snapshot and the state, and nothing else.

pub mod cluster;
mod dashboard;
mod frame;
mod keys;
mod layout;
mod screens;
mod sql;
mod state;
pub mod terminal;
#[cfg(test)]
mod testing;
mod text;
mod theme;
mod times;
mod widgets;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::summary::filter::Filter;
use crate::summary::view::Source;
pub use crate::tui::dashboard::{Dashboard, Request};
pub use crate::tui::layout::Layout;
use crate::tui::layout::settings::Settings;
use crate::tui::terminal::Screen;
pub use crate::tui::terminal::input::Key;
pub use crate::tui::theme::{Palette, Theme};
pub use crate::tui::times::{Last, Times};
use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Frames come at most this often.
const FRAME: Duration = Duration::from_millis(100);

/// What ends a dashboard of a recorded trace, or of servers.
const ENDING: [i32; 3] = [SIGTERM, SIGINT, SIGHUP];
/// How long such a dashboard may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the dashboard begins with, and when it is to end.
#[derive(Debug, Clone)]
pub struct Options {
    /// The filter to begin with.
    pub filter: Option<Arc<Filter>>,
    /// Set when the dashboard is to end.
    pub stop: Arc<AtomicBool>,
}

/// Whether there is a terminal for it: one to read keys from, and one that nothing else is written to.
pub fn wanted() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// A flag that SIGTERM, SIGINT and SIGHUP set. A dashboard that does not end by it is ended: crossterm reads for ever from
/// a terminal that goes just when it begins to read, and comes back to nothing.
///
/// # Errors
/// When the signals cannot be handled.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("handling signals")?;
    }
    after_signal(PATIENCE, |signal| {
        // It may be there, and the dashboard only busy.
        terminal::give_back();
        std::process::exit(128 + signal);
    })?;
    Ok(stop)
}

/// Runs `end` so long after the first signal, on a thread of its own.
fn after_signal(wait: Duration, end: impl FnOnce(i32) + Send + 'static) -> Result<()> {
    let mut signals = Signals::new(ENDING).context("handling signals")?;
    let watch = move || {
        if let Some(signal) = signals.forever().next() {
            std::thread::sleep(wait);
            end(signal);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch).context("thread for signals").map(drop)
}

/// Shows the dashboard until the user leaves it, `stop` is set or the terminal is gone.
///
/// # Errors
/// When there is no terminal, or it fails.
pub fn run(source: &mut dyn Source, options: &Options) -> Result<()> {
    let theme = Theme::of_environment();
    let mut screen = Screen::enter()?;
    let mut dashboard = Dashboard::new(source, theme, options.filter.clone());
    let settings = Settings::of_environment();
    match kept(&settings) {
        Ok(layout) => dashboard.lay_out(layout),
        Err(why) => dashboard.show_answer(Err(format!("the default layout is used: {why}"))),
    }
    let mut due = Instant::now();
    let mut drawn: Option<Instant> = None;
    let mut changed = true;
    while !options.stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        if now >= due {
            due = now + FRAME;
            if dashboard.look(source) {
                dashboard.times().figures.add(now.elapsed());
                changed = true;
            }
        }
        // A frame answers a key at once, unless one has just been drawn.
        let next = drawn.map_or(now, |at| at + FRAME);
        if changed && now >= next {
            screen.draw(&mut dashboard)?;
            drawn = Some(now);
            changed = false;
        }
        let wake = if changed { due.min(next) } else { due };
        let Some(input) = screen.input(wake.saturating_duration_since(Instant::now()))? else { continue };
        if !dashboard.input(input, source, screen.size()?) {
            break;
        }
        match dashboard.request() {
            Some(Request::Copy(text)) => {
                screen.copy(&text)?;
                dashboard.show_answer(Ok("copied, if this terminal lets programs copy (OSC 52)".to_owned()));
            }
            Some(Request::Save(text)) => dashboard.show_answer(keep(&settings, &text)),
            None => {}
        }
        changed = true;
    }
    screen.leave()
}

/// The layout of the last time, or the usual one.
fn kept(settings: &Result<Settings>) -> Result<Layout, String> {
    // Without a directory for it there is none.
    let Ok(settings) = settings else { return Ok(Layout::default()) };
    let text = settings.load().map_err(|e| format!("{e:#}"))?;
    text.map_or_else(
        || Ok(Layout::default()),
        |text| Layout::parse(&text).map_err(|why| format!("{}: {why}", settings.path().display())),
    )
}

fn keep(settings: &Result<Settings>, text: &str) -> Result<String, String> {
    let settings = settings.as_ref().map_err(|e| format!("{e:#}"))?;
    settings.save(text).map_err(|e| format!("{e:#}"))?;
    Ok(format!("the layout is kept in {}", settings.path().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_by_a_signal_is_ended_after_a_while() {
        let (send, ended) = std::sync::mpsc::channel();
        after_signal(Duration::from_millis(20), move |signal| send.send(signal).unwrap()).unwrap();
        assert!(ended.recv_timeout(Duration::from_millis(200)).is_err(), "without a signal it goes on");
        signal_hook::low_level::raise(SIGHUP).unwrap();
        assert_eq!(ended.recv(), Ok(SIGHUP));
    }
}
