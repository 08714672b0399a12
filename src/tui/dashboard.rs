//! The dashboard without its terminal: figures and keys in, frames out.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use crate::summary::filter::Filter;
use crate::summary::view::{Focus, Screen, Snapshot, Source};
use crate::tui::frame;
use crate::tui::layout::Layout;
use crate::tui::state::{Effect, State};
use crate::tui::terminal::input::{Input, Key};
use crate::tui::theme::Theme;
use crate::tui::times::Times;

/// What is shown, and of which figures.
pub struct Dashboard {
    state: State,
    /// The figures as the source gave them.
    taken: Arc<Snapshot>,
    /// Those that are shown: less what was there at the mark, if that is what is wanted.
    shown: Arc<Snapshot>,
    /// The figures changed, or a key did something, and no frame has been laid out since: which rows there are to select
    /// is not known.
    unseen: bool,
    request: Option<Request>,
}

/// What the owner of the terminal and the files is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Put this into the clipboard.
    Copy(String),
    /// Keep this layout.
    Save(String),
}

impl Dashboard {
    /// As it is when it opens.
    pub fn new(source: &mut dyn Source, theme: Theme, filter: Option<Arc<Filter>>) -> Self {
        let mut state = State::new(theme);
        state.filter = filter;
        let snapshot = source.snapshot(&state.focus());
        Self { state, shown: Arc::clone(&snapshot), taken: snapshot, unseen: true, request: None }
    }

    /// Takes the figures as they are now; whether there is something new.
    pub fn look(&mut self, source: &mut dyn Source) -> bool {
        let now = source.snapshot(&self.state.focus());
        let new = !Arc::ptr_eq(&now, &self.taken);
        if new {
            self.taken = now;
            self.unseen = true;
            // Here and not for each frame: there may be thousands of rows.
            self.shown = self.state.shown(&self.taken);
        }
        new
    }

    /// Does what the user wants, on a terminal of that size; false when that is to leave.
    pub fn input(&mut self, input: Input, source: &mut dyn Source, size: Size) -> bool {
        if self.unseen {
            // The key is about what the one before led to, though that has not been on the terminal yet.
            self.draw(&mut Buffer::empty(Rect::from(size)));
        }
        let effect = match input {
            Input::Key(key) => self.state.on_key(key, &self.shown),
            Input::Mouse(mouse) => self.state.on_mouse(mouse, &self.shown),
            Input::Resized => Effect::None,
        };
        match effect {
            Effect::None => {}
            Effect::Quit => return false,
            Effect::Command(command) => {
                let answer = source.command(command, &self.state.focus());
                self.state.show_answer(answer);
            }
            Effect::Mark => {
                let focus = self.state.focus();
                let overview = source.snapshot(&Focus { screen: Screen::Overview, threads: false, ..focus.clone() });
                let threads = source.snapshot(&Focus { screen: Screen::Processes, threads: true, ..focus });
                self.state.set_mark(&overview, &threads);
            }
            Effect::Copy(text) => self.request = Some(Request::Copy(text)),
            Effect::Save => match Layout::of(&self.state).text() {
                Ok(text) => self.request = Some(Request::Save(text)),
                Err(why) => self.state.show_answer(Err(why)),
            },
        }
        self.unseen = true;
        if !self.look(source) {
            self.shown = self.state.shown(&self.taken);
        }
        true
    }

    /// Types one key.
    pub fn key(&mut self, key: Key, source: &mut dyn Source, size: Size) -> bool {
        self.input(Input::Key(key), source, size)
    }

    /// What the last key asks for; once.
    pub const fn request(&mut self) -> Option<Request> {
        self.request.take()
    }

    /// What became of it.
    pub fn show_answer(&mut self, answer: Result<String, String>) {
        self.state.show_answer(answer);
    }

    /// Takes a layout that was kept.
    pub fn lay_out(&mut self, layout: Layout) {
        layout.apply(&mut self.state);
        self.unseen = true;
    }

    /// A frame.
    pub fn draw(&mut self, buf: &mut Buffer) {
        frame::draw(buf, &self.shown, &mut self.state);
        self.unseen = false;
    }

    /// The figures that frames show.
    pub fn snapshot(&self) -> &Snapshot {
        &self.shown
    }

    /// What frames took, for the user to see.
    pub const fn times(&mut self) -> &mut Times {
        &mut self.state.times
    }
}
