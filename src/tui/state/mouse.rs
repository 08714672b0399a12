//! What the mouse does: clicks and the wheel on tabs and tables, and a window by dragging over a chart.

use crate::summary::view::Snapshot;
use crate::tui::state::{Effect, State, TableId, window};
use crate::tui::terminal::input::{Mouse, MouseDid};
use crate::tui::text;
use crate::tui::widgets::axis::Axis;
use crate::tui::widgets::table::Hit;

impl State {
    pub fn on_mouse(&mut self, mouse: Mouse, snapshot: &Snapshot) -> Effect {
        self.fresh = false;
        if self.popup.is_some() {
            match mouse.what {
                MouseDid::Click => self.popup = None,
                MouseDid::Up => self.scroll = self.scroll.saturating_sub(1),
                MouseDid::Down => self.scroll += 1,
                MouseDid::Drag | MouseDid::Release => {}
            }
            return Effect::None;
        }
        match (mouse.what, self.drag) {
            // Whether it is a click is known when the button is let go of.
            (MouseDid::Click, _) => {
                let on = |axis: &&Axis| axis.area.contains((mouse.x, mouse.y).into());
                self.drag = self.axes.iter().find(on).map(|axis| (*axis, mouse));
                if self.drag.is_some() { Effect::None } else { self.pointed(mouse, snapshot) }
            }
            (MouseDid::Drag | MouseDid::Release, Some((axis, from))) => {
                let moved = from.x != mouse.x;
                let window = window::between(axis.time(from.x), axis.time(mouse.x), snapshot.kept);
                if mouse.what == MouseDid::Drag {
                    let (from, to) = (text::seconds(window.from_ns), text::seconds(window.to_ns));
                    self.notify(false, format!("window from {from} to {to}"));
                    return Effect::None;
                }
                self.drag = None;
                if !moved {
                    return self.pointed(from, snapshot);
                }
                self.window = Some(window);
                Effect::None
            }
            (MouseDid::Drag | MouseDid::Release, None) => Effect::None,
            (MouseDid::Up | MouseDid::Down, _) => self.pointed(mouse, snapshot),
        }
    }

    /// A click or the wheel, on a tab or a table.
    fn pointed(&mut self, mouse: Mouse, snapshot: &Snapshot) -> Effect {
        let (x, y) = (mouse.x, mouse.y);
        if y == 1 && mouse.what == MouseDid::Click {
            let tab = self.tabs.iter().find(|(from, to, _)| (*from..*to).contains(&x)).map(|t| t.2);
            if let Some(screen) = tab {
                self.show(screen);
            }
            return Effect::None;
        }
        let on = |id: &&TableId| self.tables.get(id).is_some_and(|t| t.covers(x, y) || t.hit(x, y).is_some());
        // What a table that is alone hides cannot be pointed at.
        let found = if self.alone { self.focused() } else { self.panes.iter().find(on).copied() };
        let Some(id) = found else { return Effect::None };
        let again = self.focused() == Some(id);
        self.pane.insert(self.index(), id);
        let table = self.tables.entry(id).or_default();
        match (mouse.what, table.hit(x, y)) {
            (MouseDid::Up, _) => table.step(-3),
            (MouseDid::Down, _) => table.step(3),
            (MouseDid::Click, Some(Hit::Head(head))) => table.sort_by(head),
            (MouseDid::Click, Some(Hit::Row(row))) => {
                table.follow = false;
                if again && table.at == row && table.selected.is_some() {
                    return self.enter(snapshot);
                }
                table.select(row);
            }
            (MouseDid::Click | MouseDid::Drag | MouseDid::Release, _) => {}
        }
        Effect::None
    }
}
