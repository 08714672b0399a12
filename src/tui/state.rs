//! What the user looks at: keys and the mouse change it, and it holds the request for the source. No terminal, no clock.

mod found;
mod mouse;
mod press;
mod process;
mod prompt;
mod walk;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::summary::filter::Filter;
use crate::summary::since::Mark;
pub use crate::summary::view::TableId;
use crate::summary::view::{
    Command, EventRow, Focus, Grouping, Measure, NodeId, ProcessFocus, Screen, Snapshot, Window,
};
pub use crate::tui::state::found::numbered;
pub use crate::tui::state::process::{OutputPane, Signalling};
pub use crate::tui::state::prompt::{Prompt, PromptKind};
use crate::tui::terminal::input::Mouse;
use crate::tui::text;
use crate::tui::theme::{Palette, Theme};
use crate::tui::times::Times;
use crate::tui::widgets::Pen;
use crate::tui::widgets::axis::Axis;
use crate::tui::widgets::table::TableState;
use crate::vocabulary::Layer;

/// How the call tree is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TreeView {
    #[default]
    Tree,
    Inverted,
    Flame,
}

/// What the figures of layers, processes and files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Amounts {
    #[default]
    Rates,
    Totals,
    /// What came since the mark was set.
    Since,
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
    /// A signal to a process.
    Signal(Signalling),
    /// The SQL behind the table that keys go to, or behind its selected row.
    Sql {
        row: bool,
    },
}

/// What a key makes the dashboard do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    None,
    Quit,
    Command(Command),
    /// Take the figures as they are for a mark.
    Mark,
    /// Put a text where the user can paste it from.
    Copy(String),
    /// Keep the layout for the next time.
    Save,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct State {
    pub pen: Pen,
    /// The colours that the user chose.
    pub palette: Option<Palette>,
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
    pub amounts: Amounts,
    mark: Option<Mark>,
    pub grouping: Grouping,
    /// On the processes screen: each below the one that started it.
    pub nested: bool,
    /// What rows were searched for last.
    sought: Option<String>,
    pub times: Times,
    /// Charts over time in the last frame.
    pub axes: Vec<Axis>,
    /// The chart that the mouse went down on, and where.
    drag: Option<(Axis, Mouse)>,
    /// The table that keys go to takes the whole screen.
    pub alone: bool,
    /// What is shown of one process.
    pub process: Option<ProcessFocus>,
    /// Its calls, when no new ones are wanted.
    pub paused: Option<Arc<[EventRow]>>,
    pub output: OutputPane,
}

impl State {
    pub fn new(theme: Theme) -> Self {
        let mut tables = BTreeMap::new();
        for id in [TableId::Events, TableId::Output, TableId::Followed] {
            tables.insert(id, TableState::following());
        }
        Self {
            pen: Pen { theme, si: false },
            palette: None,
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
            amounts: Amounts::default(),
            mark: None,
            grouping: Grouping::default(),
            nested: false,
            sought: None,
            times: Times::default(),
            axes: Vec::new(),
            drag: None,
            alone: false,
            process: None,
            paused: None,
            output: OutputPane::default(),
        }
    }

    /// What to ask the source for.
    pub fn focus(&self) -> Focus {
        Focus {
            screen: self.screen,
            window: self.window,
            filter: self.filter.clone(),
            threads: self.grouping == Grouping::Thread,
            file_id: self.file,
            node: self.node,
            span_id: self.span,
            measure: self.measure,
            layer: self.layer,
            op: self.op,
            // No other screen shows it.
            process: self.process.clone().filter(|_| self.screen == Screen::Processes),
        }
    }

    /// An answer to a command.
    pub fn show_answer(&mut self, answer: Result<String, String>) {
        let bad = answer.is_err();
        let (Ok(text) | Err(text)) = answer;
        self.notify(bad, text);
    }

    pub fn notify(&mut self, bad: bool, text: impl Into<String>) {
        const KEPT: usize = 200;
        self.messages.push((bad, text.into()));
        if self.messages.len() > KEPT {
            self.messages.remove(0);
        }
        self.fresh = true;
    }

    /// Sets the mark: figures as they are now, and the same with a row for each thread.
    pub fn set_mark(&mut self, now: &Snapshot, threads: &Snapshot) {
        let mark = Mark::new(now, threads);
        self.notify(
            false,
            format!(
                "mark set at {}: figures are of what comes from now on (a: rates, totals)",
                text::seconds(mark.at_ns)
            ),
        );
        (self.mark, self.amounts) = (Some(mark), Amounts::Since);
    }

    /// The mark that figures are since, if they are. A window that does not reach from the beginning has figures of its own.
    pub fn since(&self, snapshot: &Snapshot) -> Option<&Mark> {
        let whole = |w: Window| w.from_ns <= snapshot.kept.from_ns;
        self.mark
            .as_ref()
            .filter(|m| self.amounts == Amounts::Since && self.window.is_none_or(|w| whole(w) && w.to_ns >= m.at_ns))
    }

    /// Figures as they are shown: less those at the mark, if that is what is wanted.
    pub fn shown(&self, taken: &Arc<Snapshot>) -> Arc<Snapshot> {
        self.since(taken)
            .map_or_else(|| Arc::clone(taken), |mark| Arc::new(mark.since(taken, self.grouping == Grouping::Thread)))
    }

    /// Another filter, or none: what was counted up to the mark was counted with the one before.
    fn set_filter(&mut self, filter: Option<Filter>) {
        self.filter = filter.map(Arc::new);
        if self.mark.take().is_some() {
            self.notify(false, "the mark is gone: it was of the calls that were looked at before");
        }
        if self.amounts == Amounts::Since {
            self.amounts = Amounts::Totals;
        }
    }

    /// Selects the next row that contains what is sought, or the one before; the table does it, which knows its rows.
    fn seek(&mut self, back: bool) {
        let Some(text) = self.sought.clone() else {
            self.prompt = Some(Prompt::new(PromptKind::Search, ""));
            return;
        };
        if let Some(table) = self.table() {
            table.seek(&text, back);
        }
    }

    fn index(&self) -> usize {
        self.screen as usize
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
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod process_tests;
#[cfg(test)]
mod tests;
