//! A line of input.

use crate::tui::terminal::input::Key;

/// What a prompt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    Filter,
    Time,
    Record,
    Export,
    Search,
    /// On the calls of one process.
    FilterProcess,
    /// A line for the command.
    Type,
}

impl PromptKind {
    pub fn label(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Time => "go to time",
            Self::Record => "record to directory",
            Self::Export => "export to directory",
            Self::Search => "search rows for",
            Self::FilterProcess => "filter these calls",
            Self::Type => "type to the command",
        }
    }
}

/// A line being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub kind: PromptKind,
    pub text: String,
    /// In characters.
    pub cursor: usize,
    /// Why it was not taken.
    pub wrong: Option<String>,
}

impl Prompt {
    pub fn new(kind: PromptKind, text: &str) -> Self {
        Self { kind, text: text.to_owned(), cursor: text.chars().count(), wrong: None }
    }

    fn byte(&self, cursor: usize) -> usize {
        self.text.char_indices().nth(cursor).map_or(self.text.len(), |(at, _)| at)
    }

    pub fn edit(&mut self, key: Key) {
        self.wrong = None;
        match key {
            Key::Char(c) if !c.is_control() => {
                self.text.insert(self.byte(self.cursor), c);
                self.cursor += 1;
            }
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.byte(self.cursor));
            }
            Key::Delete if self.cursor < self.text.chars().count() => _ = self.text.remove(self.byte(self.cursor)),
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.text.chars().count()),
            Key::Home | Key::Ctrl('a') => self.cursor = 0,
            Key::End | Key::Ctrl('e') => self.cursor = self.text.chars().count(),
            Key::Ctrl('u') => (self.text, self.cursor) = (String::new(), 0),
            _ => {}
        }
    }
}
