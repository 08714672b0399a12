//! What the user looks at, and the keys that change it.

use crate::cluster::history::TICKS;
use crate::tui::keys::Binding;
use crate::tui::terminal::input::{Key, Mouse, MouseDid};
use crate::tui::theme::Theme;
use crate::tui::widgets::Pen;
use crate::tui::widgets::table::{Hit, TableState};

/// Ticks that heat maps show: at first, and at least.
const FIRST: usize = 60;
const LEAST: usize = 15;

/// The keys, for the help.
pub const KEYS: &[Binding] = &[
    ("Tab S-Tab", "the next, the previous table"),
    ("arrows jk", "select a row; PgUp PgDn g G"),
    ("Enter", "layers and findings of the selected node; again or Esc: back"),
    ("< >", "sort by another column; I: the other way around"),
    ("+ -", "show half as long, twice as long a time"),
    ("e", "this table alone on the screen"),
    ("u T", "bytes: KiB or kB; colours"),
    ("mouse", "select; on a head: sort"),
    ("q Ctrl-C", "quit"),
];

/// Tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pane {
    #[default]
    Nodes,
    Ranks,
    Layers,
    Findings,
}

pub const PANES: usize = 4;

/// The state of the screen.
#[derive(Debug, Clone, Default)]
pub struct Look {
    pub pen: Pen,
    pub tables: [TableState; PANES],
    /// The table that the keyboard is in, if it is there.
    pub focus: Pane,
    /// Those of the last frame, from the top.
    pub panes: Vec<Pane>,
    /// Ticks that heat maps show.
    pub ticks: usize,
    /// Layers and findings of the selected node in place of ranks.
    pub inside: bool,
    pub alone: bool,
    pub help: bool,
}

impl Look {
    pub fn new(theme: Theme) -> Self {
        Self { pen: Pen { theme, si: false }, ticks: FIRST, ..Self::default() }
    }

    /// The table that has the keyboard.
    pub fn pane(&self) -> Pane {
        if self.panes.contains(&self.focus) { self.focus } else { Pane::Nodes }
    }

    pub fn table(&mut self, pane: Pane) -> &mut TableState {
        &mut self.tables[pane as usize]
    }

    /// Does what a key is for; false when that is to leave.
    pub fn key(&mut self, key: Key) -> bool {
        if matches!(key, Key::Ctrl('c') | Key::Char('q' | 'Q')) {
            return false;
        }
        if self.help {
            self.help = false;
            return true;
        }
        let pane = self.pane();
        let table = self.table(pane);
        let page = table.page as isize;
        match key {
            Key::Char('?') | Key::F(1) => self.help = true,
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(self.panes.len().saturating_sub(1)),
            Key::Up | Key::Char('k') => table.step(-1),
            Key::Down | Key::Char('j') => table.step(1),
            Key::PageUp => table.step(-page),
            Key::PageDown => table.step(page),
            Key::Home | Key::Char('g') => table.select(0),
            Key::End | Key::Char('G') => table.select(usize::MAX),
            Key::Char('<') | Key::Left => table.sort_next(false),
            Key::Char('>') | Key::Right => table.sort_next(true),
            Key::Char('I') => {
                if let Some((head, _)) = table.sort {
                    table.sort_by(head);
                }
            }
            Key::Enter => self.open(!self.inside),
            Key::Esc | Key::Backspace if self.alone => self.alone = false,
            Key::Esc | Key::Backspace => self.open(false),
            Key::Char('+') => self.ticks = (self.ticks / 2).max(LEAST),
            Key::Char('-') => self.ticks = (self.ticks * 2).min(TICKS),
            Key::Char('e') => self.alone = !self.alone,
            Key::Char('u') => self.pen.si = !self.pen.si,
            Key::Char('T') => self.pen.theme.palette = self.pen.theme.palette.next(),
            _ => {}
        }
        true
    }

    fn open(&mut self, inside: bool) {
        (self.inside, self.focus) = (inside, Pane::Nodes);
    }

    /// The keyboard goes on by so many tables.
    fn turn(&mut self, by: usize) {
        let now = self.pane();
        let at = self.panes.iter().position(|pane| *pane == now).unwrap_or(0);
        self.focus = self.panes.get((at + by) % self.panes.len().max(1)).copied().unwrap_or_default();
    }

    /// Does what the mouse is for.
    pub fn mouse(&mut self, mouse: Mouse) -> bool {
        if self.help {
            self.help = mouse.what != MouseDid::Click;
            return true;
        }
        let (x, y) = (mouse.x, mouse.y);
        let on = |pane: &Pane| {
            let table = &self.tables[*pane as usize];
            table.covers(x, y) || table.hit(x, y).is_some()
        };
        let Some(pane) = self.panes.iter().copied().find(on) else { return true };
        self.focus = pane;
        let table = self.table(pane);
        match (mouse.what, table.hit(x, y)) {
            (MouseDid::Click, Some(Hit::Row(row))) => table.select(row),
            (MouseDid::Click, Some(Hit::Head(head))) => table.sort_by(head),
            (MouseDid::Up, _) => table.step(-1),
            (MouseDid::Down, _) => table.step(1),
            _ => {}
        }
        true
    }
}
