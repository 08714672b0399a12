//! Input from the terminal as our own events.

use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Ctrl(char),
    Enter,
    Esc,
    Backspace,
    Delete,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
}

/// What the mouse did, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mouse {
    pub what: MouseDid,
    pub x: u16,
    pub y: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseDid {
    Click,
    /// Moved with the button held, and let go of.
    Drag,
    Release,
    Up,
    Down,
}

/// Anything that the dashboard reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Key(Key),
    Mouse(Mouse),
    Resized,
}

/// What an event of the terminal means, if anything.
pub fn of(event: &Event) -> Option<Input> {
    match event {
        Event::Key(key) => of_key(*key).map(Input::Key),
        Event::Mouse(mouse) => of_mouse(*mouse).map(Input::Mouse),
        Event::Resize(..) => Some(Input::Resized),
        _ => None,
    }
}

fn of_key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    Some(match event.code {
        KeyCode::Char(c) if event.modifiers.contains(KeyModifiers::CONTROL) => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::F(n) => Key::F(n),
        _ => return None,
    })
}

fn of_mouse(event: MouseEvent) -> Option<Mouse> {
    let what = match event.kind {
        MouseEventKind::Down(MouseButton::Left) => MouseDid::Click,
        MouseEventKind::Drag(MouseButton::Left) => MouseDid::Drag,
        MouseEventKind::Up(MouseButton::Left) => MouseDid::Release,
        MouseEventKind::ScrollUp => MouseDid::Up,
        MouseEventKind::ScrollDown => MouseDid::Down,
        _ => return None,
    };
    Some(Mouse { what, x: event.column, y: event.row })
}
