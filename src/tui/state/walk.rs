//! Where Enter, Esc and their like lead.

use crate::summary::filter::Filter;
use crate::summary::view::{Grouping, NodeId, ProcessRow, Screen, Snapshot, grouped};
use crate::tui::state::{Effect, OutputPane, Popup, State, TableId};
use crate::vocabulary::LAYERS;

impl State {
    pub(super) fn next_pane(&mut self, step: isize) {
        let Some(now) = self.focused().and_then(|id| self.panes.iter().position(|p| *p == id)) else { return };
        let next = (now as isize + step).rem_euclid(self.panes.len() as isize);
        let id = self.panes[next as usize];
        self.pane.insert(self.index(), id);
    }

    /// One level up; false where there is none.
    pub(super) fn back(&mut self) -> bool {
        match self.screen {
            _ if self.alone => self.alone = false,
            _ if self.output == OutputPane::Whole => self.output = OutputPane::Part,
            Screen::Processes if self.process.is_some() => self.leave_process(),
            Screen::Tree if self.span.is_some() => {
                self.span = None;
                if let Some(from) = self.from.take() {
                    self.show(from);
                }
            }
            Screen::Tree if self.node.is_some() => self.node = None,
            Screen::Files if self.file.is_some() => self.file = None,
            Screen::Latency if self.op.is_some() || self.layer.is_some() => (self.layer, self.op) = (None, None),
            _ if self.filter.is_some() => self.set_filter(None),
            _ if self.window.is_some() => self.window = None,
            _ => return false,
        }
        true
    }

    /// Looks into the selected row.
    pub(super) fn enter(&mut self, snapshot: &Snapshot) -> Effect {
        let Some(table) = self.focused() else { return Effect::None };
        let Some(id) = self.selected(table) else { return Effect::None };
        match table {
            TableId::Layers => {
                (self.layer, self.op) = (LAYERS.get(id as usize).copied(), None);
                self.show(Screen::Latency);
            }
            TableId::TopProcesses | TableId::Processes => {
                let by = if table == TableId::Processes { self.grouping } else { Grouping::Process };
                if let Some(Ok(filter)) = of_processes(&snapshot.processes.rows, by, id).map(|f| Filter::parse(&f)) {
                    self.set_filter(Some(filter));
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
            TableId::Events | TableId::Followed => {
                let from = self.screen;
                self.span = Some(id);
                self.show(Screen::Tree);
                self.from = Some(from);
            }
            TableId::Findings => self.show_evidence(snapshot),
            TableId::Ops => {
                let op = snapshot.latency.ops.get(id as usize);
                (self.layer, self.op) = (op.map(|o| o.layer), op.map(|o| o.op));
            }
            _ => self.open(Popup::Details),
        }
        Effect::None
    }

    /// The longest call of the selected finding; of calls that were only summed up, their file.
    fn show_evidence(&mut self, snapshot: &Snapshot) {
        let Some(finding) = self.finding(snapshot) else { return };
        let (span, file) = (finding.evidence.spans.first().copied(), finding.evidence.files.first());
        match (span, file) {
            (Some(_), _) => {
                self.span = span;
                self.show(Screen::Tree);
                self.from = Some(Screen::Findings);
            }
            (None, Some(file)) => {
                self.file = None;
                self.show(Screen::Files);
                self.tables.entry(TableId::Files).or_default().seek(file, false);
            }
            (None, None) => self.open(Popup::Details),
        }
    }

    pub(super) fn go_to_parent(&mut self, snapshot: &Snapshot) {
        let selected = self.selected(TableId::Events);
        let parent = snapshot.events.rows.iter().find(|e| Some(e.span_id) == selected).map(|e| e.parent_id);
        match parent {
            Some(Some(parent)) if snapshot.events.rows.iter().any(|e| e.span_id == parent) => {
                let table = self.tables.entry(TableId::Events).or_default();
                table.follow = false;
                table.selected = Some(parent);
            }
            Some(Some(_)) => self.notify(true, "its parent is not among the calls that are kept (yet): see Enter"),
            Some(None) => self.notify(false, "no traced call encloses it"),
            None => {}
        }
    }
    /// To the first of the calls right inside the selected one.
    pub(super) fn go_to_child(&mut self, snapshot: &Snapshot) {
        let Some(selected) = self.selected(TableId::Events) else { return };
        let inside = snapshot.events.rows.iter().filter(|e| e.parent_id == Some(selected));
        match inside.min_by_key(|e| e.start_ns).map(|e| e.span_id) {
            Some(child) => {
                let table = self.tables.entry(TableId::Events).or_default();
                table.follow = false;
                table.selected = Some(child);
            }
            None => self.notify(false, "no call inside it is among those that are kept: see Enter"),
        }
    }
}

/// A filter on the processes of a row.
fn of_processes(rows: &[ProcessRow], by: Grouping, id: i64) -> Option<String> {
    let row = grouped(rows, by).into_iter().find(|r| r.id() == id)?;
    let all = |r: Vec<&ProcessRow>| r.iter().map(|r| r.pid.to_string()).collect::<Vec<_>>().join(",");
    Some(match (by, row.rank, row.tid) {
        (Grouping::Process, ..) => format!("pid={}", row.pid),
        (Grouping::Thread, _, Some(tid)) => format!("pid={} tid={tid}", row.pid),
        (Grouping::Rank, Some(rank), _) => format!("rank={rank}"),
        _ => format!("pid={}", all(by.members(rows, &row))),
    })
}
