//! What each key does.

use std::path::PathBuf;

use crate::summary::filter::Filter;
use crate::summary::view::{Command, Grouping, Measure, NodeId, Screen, Snapshot};
use crate::tui::screens;
use crate::tui::sql;
use crate::tui::state::{Amounts, Effect, Popup, Prompt, PromptKind, State, TableId, TreeView, window};
use crate::tui::terminal::input::Key;

impl State {
    pub fn on_key(&mut self, key: Key, snapshot: &Snapshot) -> Effect {
        self.fresh = false;
        if key == Key::Ctrl('c') {
            return Self::interrupt(snapshot);
        }
        if let Some(popup) = self.popup {
            return self.popup_key(popup, key, snapshot);
        }
        if self.prompt.is_some() {
            return self.prompt_key(key, snapshot);
        }
        if let Key::Char(c) = key
            && let Some(screen) = screens::with_key(c)
        {
            self.show(screen);
            return Effect::None;
        }
        if let Some(effect) = self.process_key(key, snapshot) {
            return effect;
        }
        match key {
            Key::Char('q') if snapshot.status.recording.is_some() => self.open(Popup::Leave),
            Key::Char('q' | 'Q') => return Effect::Quit,
            Key::Char('?') | Key::F(1) => self.open(Popup::Help),
            Key::Char('L') => self.open(Popup::Messages),
            Key::Char('d') => self.open(Popup::Details),
            Key::Char('s') | Key::F(6) => self.open(Popup::Sort(0)),
            Key::Tab => self.next_pane(1),
            Key::BackTab => self.next_pane(-1),
            Key::Enter => return self.enter(snapshot),
            Key::Esc | Key::Backspace => {
                if !self.back() && snapshot.loading.is_some() {
                    return Effect::Command(Command::Cancel);
                }
            }
            Key::Char('/') => {
                self.prompt = Some(Prompt::new(PromptKind::Filter, self.filter.as_ref().map_or("", |f| f.text())));
            }
            Key::Char(':') => self.prompt = Some(Prompt::new(PromptKind::Time, "")),
            Key::Char('x') => self.prompt = Some(Prompt::new(PromptKind::Export, "selection.iotrace")),
            Key::Char('R') if snapshot.status.recording.is_some() => return Effect::Command(Command::StopRecording),
            Key::Char('R') => self.prompt = Some(Prompt::new(PromptKind::Record, "run.iotrace")),
            Key::Char('W') => return Effect::Command(Command::WriteFlight),
            Key::Char('z') => self.window = if self.window.is_some() { None } else { Some(snapshot.kept) },
            Key::Char(c @ ('[' | ']' | '{' | '}' | '+' | '-' | '=')) => self.scrub(c, snapshot),
            Key::Char('u') => self.pen.si = !self.pen.si,
            Key::Char('T') => self.next_palette(),
            Key::Char('a') => {
                self.amounts = match self.amounts {
                    Amounts::Rates => Amounts::Totals,
                    Amounts::Totals if self.mark.is_some() => Amounts::Since,
                    Amounts::Totals | Amounts::Since => Amounts::Rates,
                };
            }
            Key::Char('m') => return self.ask_for_mark(snapshot),
            Key::Char('n') => self.seek(false),
            Key::Char('N') => self.seek(true),
            Key::F(3) => self.prompt = Some(Prompt::new(PromptKind::Search, self.sought.as_deref().unwrap_or(""))),
            Key::Char('S') => self.open(Popup::Sql { row: false }),
            Key::Char('y') => {
                self.open(Popup::Sql { row: true });
                return self.copy(true, snapshot);
            }
            Key::Char('w') => return Effect::Save,
            Key::Char('o') => self.active_only = !self.active_only,
            Key::Char('e') => self.alone = !self.alone,
            _ => self.screen_key(key, snapshot),
        }
        Effect::None
    }

    fn next_palette(&mut self) {
        let palette = self.pen.theme.palette.next();
        (self.pen.theme.palette, self.palette) = (palette, Some(palette));
        self.notify(false, format!("{} (w keeps them)", palette.name()));
    }

    /// Figures of a dataset or of a view that is stopped do not go on.
    fn ask_for_mark(&mut self, snapshot: &Snapshot) -> Effect {
        if !snapshot.run.live || snapshot.run.ended {
            self.notify(true, "a mark is for a trace that goes on: z, [ ] and : choose a part of this one");
        } else if self.window.is_some() {
            self.notify(true, "the view is stopped: z lets it go on, then a mark can be set");
        } else {
            return Effect::Mark;
        }
        Effect::None
    }

    /// Copies the SQL that is shown.
    fn copy(&mut self, row: bool, snapshot: &Snapshot) -> Effect {
        let sql = if row { sql::row(self, snapshot) } else { sql::screen(self, snapshot) };
        sql.map_or(Effect::None, Effect::Copy)
    }

    pub(super) fn open(&mut self, popup: Popup) {
        self.popup = Some(popup);
        self.scroll = 0;
    }

    fn popup_key(&mut self, popup: Popup, key: Key, snapshot: &Snapshot) -> Effect {
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
        if let Popup::Signal(now) = popup {
            return self.signal_key(now, key);
        }
        match (popup, key) {
            (Popup::Leave, Key::Char('y' | 'Y' | 'q' | 'Q') | Key::Enter) => return Effect::Quit,
            (Popup::Leave, _) => self.popup = None,
            (Popup::Sql { row }, Key::Char('y')) => return self.copy(row, snapshot),
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
            Key::Ctrl('d') if prompt.kind == PromptKind::Type => {
                self.prompt = None;
                return Self::typed("", true);
            }
            Key::Enter => {
                let text = prompt.text.trim().to_owned();
                let done = match prompt.kind {
                    PromptKind::Filter => of_text(&text).map(|filter| {
                        self.set_filter(filter);
                        Effect::None
                    }),
                    PromptKind::FilterProcess => of_text(&text).map(|filter| {
                        self.filter_process(filter);
                        Effect::None
                    }),
                    PromptKind::Type => Ok(Self::typed(&prompt.text, false)),
                    PromptKind::Search => {
                        self.sought = (!text.is_empty()).then_some(text);
                        if self.sought.is_some() {
                            self.seek(false);
                        }
                        Ok(Effect::None)
                    }
                    PromptKind::Time => window::time(&text).map(|at| {
                        self.window = Some(window::around(self.window, snapshot.kept, at));
                        Effect::None
                    }),
                    PromptKind::Record | PromptKind::Export if text.is_empty() => Err("a directory".to_owned()),
                    PromptKind::Record => Ok(Effect::Command(Command::StartRecording(PathBuf::from(text)))),
                    PromptKind::Export => Ok(Effect::Command(Command::Export(PathBuf::from(text)))),
                };
                match done {
                    Ok(effect) => {
                        self.prompt = None;
                        return effect;
                    }
                    Err(why) => {
                        if let Some(prompt) = &mut self.prompt {
                            prompt.wrong = Some(why);
                        }
                    }
                }
            }
            key => prompt.edit(key),
        }
        Effect::None
    }

    fn screen_key(&mut self, key: Key, snapshot: &Snapshot) {
        match (self.screen, key) {
            (Screen::Processes, Key::Char('p')) => self.grouping = self.grouping.next(),
            (Screen::Processes, Key::Char('t')) => self.nest(),
            (Screen::Tree, Key::Char('f')) => self.tree = other(self.tree, TreeView::Flame),
            (Screen::Tree, Key::Char('i' | 't')) => self.tree = other(self.tree, TreeView::Inverted),
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
            (Screen::Events, Key::Char('C')) => self.go_to_child(snapshot),
            _ => self.table_key(key),
        }
    }

    /// Processes below those that started them; then their order is not that of a column.
    fn nest(&mut self) {
        self.nested = !self.nested;
        if self.nested {
            self.grouping = Grouping::Process;
            self.tables.entry(TableId::Processes).or_default().sort = None;
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
        // A selected row stays.
        table.follow = false;
    }
}

/// No text is no filter.
fn of_text(text: &str) -> Result<Option<Filter>, String> {
    if text.is_empty() { Ok(None) } else { Filter::parse(text).map(Some).map_err(|why| why.to_string()) }
}

fn other(now: TreeView, view: TreeView) -> TreeView {
    if now == view { TreeView::Tree } else { view }
}
