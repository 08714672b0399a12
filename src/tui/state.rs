//! What the user looks at: keys and the mouse change it, and it says what to ask the source for. No terminal, no clock.

mod mouse;
mod prompt;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::buffer::Buffer;

pub use self::mouse::Axis;
pub use self::prompt::{Asked, Prompt};
use super::input::{Key, Mouse};
use super::theme::Theme;
use super::times::Times;
use super::widgets::Pen;
use super::widgets::table::TableState;
use crate::summary::filter::Filter;
use crate::summary::view::{Command, Focus, Measure, NodeId, Screen, Snapshot, Window};
use crate::words::{LAYERS, Layer};

/// The screens in the order of their keys.
pub const SCREENS: [Screen; 9] = [
    Screen::Overview,
    Screen::Processes,
    Screen::Files,
    Screen::Tree,
    Screen::Latency,
    Screen::InFlight,
    Screen::Events,
    Screen::Devices,
    Screen::Coverage,
];

/// Every table there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableId {
    Layers,
    TopProcesses,
    TopFiles,
    Processes,
    Files,
    FileOps,
    Handles,
    Objects,
    Tree,
    Inverted,
    Slowest,
    NodeFiles,
    Waterfall,
    Ops,
    Flights,
    Events,
    Devices,
    Users,
    Mounts,
    Groups,
    Losses,
    Refused,
}

/// How the call tree is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TreeView {
    #[default]
    Tree,
    Inverted,
    Flame,
}

/// A box over the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Popup {
    Help,
    Details,
    Messages,
    /// With the line that is selected.
    Sort(usize),
    /// A dataset is being recorded: leave all the same?
    Leave,
}

/// What a key makes the dashboard do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    None,
    Quit,
    Command(Command),
}

/// All of it.
#[derive(Debug, Clone)]
pub struct State {
    pub pen: Pen,
    pub screen: Screen,
    pub tables: BTreeMap<TableId, TableState>,
    /// Of the last frame, and the one chosen on each screen.
    pub panes: Vec<TableId>,
    before: Vec<TableId>,
    pane: BTreeMap<usize, TableId>,
    pub tabs: Vec<(u16, u16, Screen)>,
    pub filter: Option<Arc<Filter>>,
    pub window: Option<Window>,
    pub prompt: Option<Prompt>,
    pub popup: Option<Popup>,
    pub scroll: u16,
    pub messages: Vec<(bool, String)>,
    /// The last message is new.
    pub fresh: bool,
    pub file: Option<i32>,
    pub node: Option<NodeId>,
    pub span: Option<i64>,
    /// Where the user came from to a call's waterfall.
    from: Option<Screen>,
    pub layer: Option<Layer>,
    pub op: Option<&'static str>,
    pub measure: Measure,
    pub tree: TreeView,
    /// Nodes that are not as nodes of their depth are by themselves: open or closed.
    pub toggled: BTreeSet<NodeId>,
    pub all_open: bool,
    pub active_only: bool,
    pub totals: bool,
    pub times: Times,
    /// Charts over time in the last frame.
    pub axes: Vec<Axis>,
    /// The chart that the mouse went down on, and where.
    drag: Option<(Axis, Mouse)>,
    /// The table that keys go to takes the whole screen.
    pub alone: bool,
    /// It, when it has been drawn.
    pub over: Option<Buffer>,
}

impl State {
    pub fn new(theme: Theme) -> Self {
        let mut tables = BTreeMap::new();
        tables.insert(TableId::Events, TableState::following());
        Self {
            pen: Pen { theme, si: false },
            screen: Screen::Overview,
            tables,
            panes: Vec::new(),
            before: Vec::new(),
            pane: BTreeMap::new(),
            tabs: Vec::new(),
            filter: None,
            window: None,
            prompt: None,
            popup: None,
            scroll: 0,
            messages: Vec::new(),
            fresh: false,
            file: None,
            node: None,
            span: None,
            from: None,
            layer: None,
            op: None,
            measure: Measure::default(),
            tree: TreeView::default(),
            toggled: BTreeSet::new(),
            all_open: false,
            active_only: false,
            totals: false,
            times: Times::default(),
            axes: Vec::new(),
            drag: None,
            alone: false,
            over: None,
        }
    }

    /// What to ask the source for.
    pub fn focus(&self) -> Focus {
        Focus {
            screen: self.screen,
            window: self.window,
            filter: self.filter.clone(),
            file_id: self.file,
            node: self.node,
            span_id: self.span,
            measure: self.measure,
            layer: self.layer,
            op: self.op,
        }
    }

    /// An answer to a command.
    pub fn tell(&mut self, answer: Result<String, String>) {
        let bad = answer.is_err();
        let (Ok(words) | Err(words)) = answer;
        self.say(bad, words);
    }

    fn say(&mut self, bad: bool, words: impl Into<String>) {
        const KEPT: usize = 200;
        self.messages.push((bad, words.into()));
        if self.messages.len() > KEPT {
            self.messages.remove(0);
        }
        self.fresh = true;
    }

    fn index(&self) -> usize {
        SCREENS.iter().position(|s| *s == self.screen).unwrap_or(0)
    }

    /// The table that keys go to.
    pub fn focused(&self) -> Option<TableId> {
        let chosen = self.pane.get(&self.index()).copied();
        chosen.filter(|id| self.panes.contains(id)).or_else(|| self.panes.first().copied())
    }

    /// Whether keys go to that table, which is being drawn.
    pub fn has_focus(&self, id: TableId) -> bool {
        let chosen =
            self.pane.get(&self.index()).copied().filter(|c| self.panes.contains(c) || self.before.contains(c));
        chosen.or_else(|| self.panes.first().copied()) == Some(id)
    }

    /// A new frame begins.
    pub fn begin_frame(&mut self) {
        self.before = std::mem::take(&mut self.panes);
        self.axes.clear();
    }

    fn table(&mut self) -> Option<&mut TableState> {
        let id = self.focused()?;
        Some(self.tables.entry(id).or_default())
    }

    /// The id of the selected row of a table.
    pub fn selected(&self, id: TableId) -> Option<i64> {
        self.tables.get(&id)?.id()
    }

    /// Goes to another screen.
    fn show(&mut self, screen: Screen) {
        self.screen = screen;
        self.popup = None;
        self.panes.clear();
        self.from = None;
    }

    pub fn on_key(&mut self, key: Key, snapshot: &Snapshot) -> Effect {
        self.fresh = false;
        if key == Key::Ctrl('c') {
            return Effect::Quit;
        }
        if let Some(popup) = self.popup {
            return self.popup_key(popup, key);
        }
        if self.prompt.is_some() {
            return self.prompt_key(key, snapshot);
        }
        match key {
            Key::Char('q') if snapshot.status.recording.is_some() => self.open(Popup::Leave),
            Key::Char('q' | 'Q') => return Effect::Quit,
            Key::Char('?') | Key::F(1) => self.open(Popup::Help),
            Key::Char('L') => self.open(Popup::Messages),
            Key::Char('d') => self.open(Popup::Details),
            Key::Char('s') | Key::F(6) => self.open(Popup::Sort(0)),
            Key::Char(c @ '1'..='9') => self.show(SCREENS[c as usize - '1' as usize]),
            Key::Tab => self.next_pane(1),
            Key::BackTab => self.next_pane(-1),
            Key::Enter => return self.enter(snapshot),
            Key::Esc | Key::Backspace => {
                if !self.back() && snapshot.loading.is_some() {
                    return Effect::Command(Command::Cancel);
                }
            }
            Key::Char('/') => {
                self.prompt = Some(Prompt::new(Asked::Filter, self.filter.as_ref().map_or("", |f| f.text())));
            }
            Key::Char(':') => self.prompt = Some(Prompt::new(Asked::Time, "")),
            Key::Char('x') => self.prompt = Some(Prompt::new(Asked::Export, "selection.iotrace")),
            Key::Char('R') if snapshot.status.recording.is_some() => return Effect::Command(Command::StopRecording),
            Key::Char('R') => self.prompt = Some(Prompt::new(Asked::Record, "run.iotrace")),
            Key::Char('z') => self.window = if self.window.is_some() { None } else { Some(snapshot.kept) },
            Key::Char(c @ ('[' | ']' | '{' | '}' | '+' | '-' | '=')) => self.scrub(c, snapshot),
            Key::Char('u') => self.pen.si = !self.pen.si,
            Key::Char('a') => self.totals = !self.totals,
            Key::Char('o') => self.active_only = !self.active_only,
            Key::Char('e') => self.alone = !self.alone,
            _ => self.screen_key(key, snapshot),
        }
        Effect::None
    }

    fn open(&mut self, popup: Popup) {
        self.popup = Some(popup);
        self.scroll = 0;
    }

    fn popup_key(&mut self, popup: Popup, key: Key) -> Effect {
        if let (Popup::Sort(at), Some(table)) = (popup, self.table()) {
            let heads = table.heads.clone();
            match key {
                Key::Down | Key::Char('j') => {
                    self.popup = Some(Popup::Sort((at + 1).min(heads.len().saturating_sub(1))));
                }
                Key::Up | Key::Char('k') => self.popup = Some(Popup::Sort(at.saturating_sub(1))),
                Key::Enter => {
                    if let Some(head) = heads.get(at) {
                        table.sort_by(head);
                    }
                    self.popup = None;
                }
                _ => self.popup = None,
            }
            return Effect::None;
        }
        match (popup, key) {
            (Popup::Leave, Key::Char('y' | 'Y' | 'q' | 'Q') | Key::Enter) => return Effect::Quit,
            (Popup::Leave, _) => self.popup = None,
            (_, Key::Down | Key::Char('j')) => self.scroll += 1,
            (_, Key::Up | Key::Char('k')) => self.scroll = self.scroll.saturating_sub(1),
            (_, Key::PageDown | Key::Char(' ')) => self.scroll += 10,
            (_, Key::PageUp) => self.scroll = self.scroll.saturating_sub(10),
            _ => self.popup = None,
        }
        Effect::None
    }

    fn prompt_key(&mut self, key: Key, snapshot: &Snapshot) -> Effect {
        let Some(prompt) = &mut self.prompt else { return Effect::None };
        match key {
            Key::Esc => self.prompt = None,
            Key::Enter => {
                let text = prompt.text.trim().to_owned();
                let done = match prompt.asked {
                    Asked::Filter if text.is_empty() => {
                        self.filter = None;
                        Ok(Effect::None)
                    }
                    Asked::Filter => Filter::parse(&text).map_err(|w| w.to_string()).map(|filter| {
                        self.filter = Some(Arc::new(filter));
                        Effect::None
                    }),
                    Asked::Time => window::time(&text).map(|at| {
                        self.window = Some(window::around(self.window, snapshot.kept, at));
                        Effect::None
                    }),
                    Asked::Record | Asked::Export if text.is_empty() => Err("a directory".to_owned()),
                    Asked::Record => Ok(Effect::Command(Command::StartRecording(PathBuf::from(text)))),
                    Asked::Export => Ok(Effect::Command(Command::Export(PathBuf::from(text)))),
                };
                match done {
                    Ok(effect) => {
                        self.prompt = None;
                        return effect;
                    }
                    Err(why) => prompt.wrong = Some(why),
                }
            }
            key => prompt.edit(key),
        }
        Effect::None
    }

    fn next_pane(&mut self, step: isize) {
        let Some(now) = self.focused().and_then(|id| self.panes.iter().position(|p| *p == id)) else { return };
        let next = (now as isize + step).rem_euclid(self.panes.len() as isize);
        let id = self.panes[next as usize];
        self.pane.insert(self.index(), id);
    }

    /// One level up; false where there is none.
    fn back(&mut self) -> bool {
        match self.screen {
            _ if self.alone => self.alone = false,
            Screen::Tree if self.span.is_some() => {
                self.span = None;
                if let Some(from) = self.from.take() {
                    self.show(from);
                }
            }
            Screen::Tree if self.node.is_some() => self.node = None,
            Screen::Files if self.file.is_some() => self.file = None,
            Screen::Latency if self.op.is_some() || self.layer.is_some() => (self.layer, self.op) = (None, None),
            _ if self.filter.is_some() => self.filter = None,
            _ if self.window.is_some() => self.window = None,
            _ => return false,
        }
        true
    }

    /// Looks into the selected row.
    fn enter(&mut self, snapshot: &Snapshot) -> Effect {
        let Some(table) = self.focused() else { return Effect::None };
        let Some(id) = self.selected(table) else { return Effect::None };
        match table {
            TableId::Layers => {
                (self.layer, self.op) = (LAYERS.get(id as usize).copied(), None);
                self.show(Screen::Latency);
            }
            TableId::TopProcesses | TableId::Processes => {
                let row = snapshot.processes.rows.iter().find(|r| i64::from(r.process_ix) == id);
                if let Some(Ok(filter)) = row.map(|row| Filter::parse(&format!("pid={}", row.pid))) {
                    self.filter = Some(Arc::new(filter));
                    (self.node, self.span) = (None, None);
                    self.show(Screen::Tree);
                }
            }
            TableId::TopFiles | TableId::Files => {
                self.file = Some(id as i32);
                self.show(Screen::Files);
            }
            TableId::Tree | TableId::Inverted => self.node = Some(id as NodeId),
            TableId::Slowest => self.span = Some(id),
            TableId::Events => {
                self.span = Some(id);
                self.show(Screen::Tree);
                self.from = Some(Screen::Events);
            }
            TableId::Ops => {
                let op = snapshot.latency.ops.get(id as usize);
                (self.layer, self.op) = (op.map(|o| o.layer), op.map(|o| o.op));
            }
            _ => self.open(Popup::Details),
        }
        Effect::None
    }

    fn screen_key(&mut self, key: Key, snapshot: &Snapshot) {
        match (self.screen, key) {
            (Screen::Tree, Key::Char('f')) => self.tree = other(self.tree, TreeView::Flame),
            (Screen::Tree, Key::Char('i')) => self.tree = other(self.tree, TreeView::Inverted),
            (Screen::Tree, Key::Char('*')) => {
                self.all_open = !self.all_open;
                self.toggled.clear();
            }
            (Screen::Tree, Key::Char(' ')) if self.focused() == Some(TableId::Tree) => {
                let Some(node) = self.selected(TableId::Tree).map(|id| id as NodeId) else { return };
                if !self.toggled.remove(&node) {
                    self.toggled.insert(node);
                }
            }
            (Screen::Latency, Key::Char('b')) => {
                self.measure = if self.measure == Measure::Latency { Measure::Size } else { Measure::Latency };
            }
            (Screen::Events, Key::Char('F')) => {
                if let Some(table) = self.table() {
                    table.follow = !table.follow;
                }
            }
            (Screen::Events, Key::Char('P')) => self.go_to_parent(snapshot),
            _ => self.table_key(key),
        }
    }

    fn go_to_parent(&mut self, snapshot: &Snapshot) {
        let selected = self.selected(TableId::Events);
        let parent = snapshot.events.rows.iter().find(|e| Some(e.span_id) == selected).map(|e| e.parent_id);
        match parent {
            Some(Some(parent)) if snapshot.events.rows.iter().any(|e| e.span_id == parent) => {
                let table = self.tables.entry(TableId::Events).or_default();
                table.follow = false;
                table.selected = Some(parent);
            }
            Some(Some(_)) => self.say(true, "its parent is not among the calls that are kept (yet): see Enter"),
            Some(None) => self.say(false, "no traced call encloses it"),
            None => {}
        }
    }

    fn table_key(&mut self, key: Key) {
        let Some(table) = self.table() else { return };
        let page = table.page as isize;
        match key {
            Key::Down | Key::Char('j') => table.step(1),
            Key::Up | Key::Char('k') => table.step(-1),
            Key::PageDown | Key::Ctrl('f') => table.step(page),
            Key::PageUp | Key::Ctrl('b') => table.step(-page),
            Key::Ctrl('d') => table.step(page / 2),
            Key::Ctrl('u') => table.step(-page / 2),
            Key::Home | Key::Char('g') => table.select(0),
            Key::End | Key::Char('G') => table.select(usize::MAX),
            Key::Right | Key::Char('l' | '>') => return table.sort_next(true),
            Key::Left | Key::Char('h' | '<') => return table.sort_next(false),
            Key::Char('I') => {
                table.sort = table.sort.map(|(head, least_first)| (head, !least_first));
                return;
            }
            _ => return,
        }
        // Who looks at a row wants it to stay.
        table.follow = false;
    }
}

fn other(now: TreeView, view: TreeView) -> TreeView {
    if now == view { TreeView::Tree } else { view }
}

#[cfg(test)]
mod tests;
