//! Tables: columns are data, rows are sorted and selected by their ids, so that a selection stays with its row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::text;
use crate::tui::theme::{Theme, Tone};
use crate::tui::widgets::axis::Axis;
use crate::tui::widgets::{Pen, title};

/// What rows are sorted by.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub enum Key {
    Number(f64),
    Text(String),
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, tone: Tone::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Cell {
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

type Show<R> = Box<dyn Fn(&R, Pen, usize) -> Cell>;

/// From when to when a chart of so many columns is.
type Time = Box<dyn Fn(usize) -> (i64, i64)>;

/// One column of rows `R`.
pub struct Column<R> {
    pub head: &'static str,
    width: usize,
    /// Takes what room is left.
    grows: bool,
    left: bool,
    /// Where there is no room, columns of a high number go first.
    less: u8,
    show: Show<R>,
    sort: Option<fn(&R) -> Key>,
    /// Of a chart over time in so many columns of the terminal: from when to when.
    over: Option<Time>,
}

impl<R> Column<R> {
    /// Figures, aligned at the right.
    pub fn new<C: Into<Cell>>(head: &'static str, width: usize, show: impl Fn(&R, Pen) -> C + 'static) -> Self {
        let show = Box::new(move |row: &R, pen: Pen, _: usize| show(row, pen).into());
        Self { head, width, grows: false, left: false, less: 0, show, sort: None, over: None }
    }

    /// Text or a chart, aligned at the left; gets the width of the column.
    pub fn wide<C: Into<Cell>>(head: &'static str, width: usize, show: impl Fn(&R, Pen, usize) -> C + 'static) -> Self {
        let show = Box::new(move |row: &R, pen: Pen, width: usize| show(row, pen, width).into());
        Self { head, width, grows: false, left: true, less: 0, show, sort: None, over: None }
    }

    /// Only in the details of a row, and for searches.
    pub fn detail(head: &'static str, show: impl Fn(&R, Pen, usize) -> String + 'static) -> Self {
        Self { width: 0, ..Self::wide(head, 0, show) }
    }

    /// It is a chart over this time, which depends on its width.
    pub fn over(self, time: impl Fn(usize) -> (i64, i64) + 'static) -> Self {
        Self { over: Some(Box::new(time)), ..self }
    }

    pub fn grows(self) -> Self {
        Self { grows: true, ..self }
    }

    pub fn less(self, less: u8) -> Self {
        Self { less, ..self }
    }

    pub fn sort(self, key: fn(&R) -> Key) -> Self {
        Self { sort: Some(key), ..self }
    }
}

/// A text in a row after the selected one, or before it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seek {
    text: String,
    back: bool,
}

/// What is remembered of a table between frames.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableState {
    /// The row that the user has selected; the first one as long as there is none.
    pub selected: Option<i64>,
    /// By head, and whether the least comes first.
    pub sort: Option<(&'static str, bool)>,
    /// The last row stays selected as rows come.
    pub follow: bool,
    /// What the next frame looks for.
    seek: Option<Seek>,
    /// What it did not find.
    pub missed: Option<String>,
    /// The column that was sorted by when the layout was saved, until it is there.
    pub wanted: Option<(String, bool)>,
    /// First row shown.
    top: usize,
    /// Of the last frame: ids in their order, index of the selected one, rows that fit, heads that sort, and their areas.
    pub ids: Vec<i64>,
    pub at: usize,
    pub page: usize,
    pub heads: Vec<&'static str>,
    pub details: Vec<(&'static str, String)>,
    /// Charts over time.
    pub axes: Vec<Axis>,
    body: Rect,
    head_spots: Vec<(u16, u16, &'static str)>,
}

impl TableState {
    /// The last row is selected.
    pub fn following() -> Self {
        Self { follow: true, ..Self::default() }
    }

    /// Moves the selection by rows.
    pub fn step(&mut self, rows: isize) {
        let last = self.ids.len().saturating_sub(1);
        let at = self.at.saturating_add_signed(rows).min(last);
        self.select(at);
    }

    /// Selects the next row that contains a text, in whatever case.
    pub fn seek(&mut self, text: &str, back: bool) {
        self.seek = Some(Seek { text: text.to_lowercase(), back });
    }

    /// Selects the n-th row.
    pub fn select(&mut self, at: usize) {
        self.at = at.min(self.ids.len().saturating_sub(1));
        self.selected = self.ids.get(self.at).copied();
    }

    /// The id of the selected row.
    pub fn id(&self) -> Option<i64> {
        self.ids.get(self.at).copied()
    }

    /// Sorts by the next column to the right or left.
    pub fn sort_next(&mut self, forward: bool) {
        let Some(last) = self.heads.len().checked_sub(1) else { return };
        let at = self.sort.and_then(|(head, _)| self.heads.iter().position(|h| *h == head));
        let next = match (at, forward) {
            (None, true) => 0,
            (None, false) => last,
            (Some(at), true) => {
                if at == last {
                    0
                } else {
                    at + 1
                }
            }
            (Some(at), false) => at.checked_sub(1).unwrap_or(last),
        };
        self.sort = Some((self.heads[next], false));
    }

    /// Sorts by a column; again: the other way around.
    pub fn sort_by(&mut self, head: &'static str) {
        let reversed = self.sort.is_some_and(|(now, least_first)| now == head && !least_first);
        self.sort = Some((head, reversed));
    }

    /// The row or head at a position on the screen.
    pub fn hit(&self, x: u16, y: u16) -> Option<Hit> {
        if let Some((.., head)) = self.head_spots.iter().find(|(from, to, _)| (*from..*to).contains(&x))
            && y + 1 == self.body.y
        {
            return Some(Hit::Head(head));
        }
        let inside = self.body.contains((x, y).into());
        let row = self.top + usize::from(y.saturating_sub(self.body.y));
        (inside && row < self.ids.len()).then_some(Hit::Row(row))
    }

    /// Whether a position is on the table.
    pub fn covers(&self, x: u16, y: u16) -> bool {
        self.body.contains((x, y).into())
    }
}

/// The target of a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    Head(&'static str),
    Row(usize),
}

/// What a table shows.
pub struct Table<'a, R> {
    pub title: &'a str,
    pub columns: Vec<Column<R>>,
    pub rows: &'a [R],
    pub id: fn(&R) -> i64,
    /// Shown where there are no rows.
    pub empty: &'a str,
}

impl<R> Table<'_, R> {
    /// Lays the table out and draws it.
    pub fn draw(&self, buf: &mut Buffer, area: Rect, pen: Pen, state: &mut TableState, focused: bool) {
        if let Some((head, least_first)) = &state.wanted
            && let Some(column) = self.columns.iter().find(|c| c.head == head && c.sort.is_some())
        {
            (state.sort, state.wanted) = (Some((column.head, *least_first)), None);
        }
        let order = self.order(state);
        state.heads = self.columns.iter().filter(|c| c.sort.is_some()).map(|c| c.head).collect();
        state.ids = order.iter().map(|i| (self.id)(&self.rows[*i])).collect();
        let last = state.ids.len().saturating_sub(1);
        let found = state.selected.and_then(|id| state.ids.iter().position(|i| *i == id));
        state.at = match (state.follow, found) {
            (true, _) => last,
            (false, Some(at)) => at,
            // The row is gone: the one now at its index.
            (false, None) if state.selected.is_some() => state.at.min(last),
            (false, None) => 0,
        };
        self.search(state, &order, pen);
        // Lines of text have no heads.
        let head = u16::from(self.columns.iter().any(|c| !c.head.is_empty()));
        let page = usize::from(area.height.saturating_sub(1 + head));
        state.page = page.max(1);
        state.top =
            state.top.min(state.at).max((state.at + 1).saturating_sub(page)).min(order.len().saturating_sub(page));
        let range = if order.len() > page {
            format!("{}-{} of {}", state.top + 1, (state.top + page).min(order.len()), order.len())
        } else {
            String::new()
        };
        let inner = title(buf, pen, area, self.title, &range, focused);
        self.details(state, &order, pen);
        state.head_spots.clear();
        state.axes.clear();
        state.body = crate::tui::widgets::below(inner, head);
        if inner.height == 0 {
            return;
        }
        if order.is_empty() {
            crate::tui::widgets::put(buf, pen, inner, inner.x + 1, inner.y, self.empty, Tone::Dim);
            return;
        }
        let widths = self.widths(usize::from(inner.width));
        if head > 0 {
            self.draw_head(buf, inner, pen, state, &widths);
        }
        let rows = order.len().min(usize::from(state.body.height)) as u16;
        self.find_axes(Rect { height: rows, ..state.body }, &widths, &mut state.axes);
        for (line, at) in (state.top..order.len()).take(usize::from(state.body.height)).enumerate() {
            let y = state.body.y + line as u16;
            let row = &self.rows[order[at]];
            let mut x = state.body.x;
            for (column, width) in self.columns.iter().zip(&widths).filter(|(_, w)| **w > 0) {
                let cell = (column.show)(row, pen, *width);
                Self::draw_cell(buf, pen, (x, y), *width, column.left, &cell);
                x += *width as u16 + 1;
            }
            if at == state.at {
                buf.set_style(Rect { y, height: 1, ..state.body }, Theme::selected(focused));
            }
        }
    }

    fn order(&self, state: &TableState) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        let by = state.sort.and_then(|(head, least_first)| {
            self.columns.iter().find(|c| c.head == head).and_then(|c| c.sort).map(|key| (key, least_first))
        });
        if let Some((key, least_first)) = by {
            let keys: Vec<Key> = self.rows.iter().map(key).collect();
            order.sort_by(|a, b| {
                let order = keys[*a].partial_cmp(&keys[*b]).unwrap_or(std::cmp::Ordering::Equal);
                // Words from A on, figures from the greatest.
                let text = matches!(keys[*a], Key::Text(_));
                if least_first == text { order.reverse() } else { order }
            });
        }
        order
    }

    /// All of a cell.
    fn text(column: &Column<R>, row: &R, pen: Pen) -> String {
        (column.show)(row, pen, if column.grows || column.width == 0 { 400 } else { column.width.max(40) }).text
    }

    fn details(&self, state: &mut TableState, order: &[usize], pen: Pen) {
        let row = order.get(state.at).map(|i| &self.rows[*i]);
        state.details = row.map_or_else(Vec::new, |row| {
            self.columns.iter().map(|c| (c.head, Self::text(c, row, pen).trim().to_owned())).collect()
        });
    }

    /// Goes to the row that is sought, around the ends.
    fn search(&self, state: &mut TableState, order: &[usize], pen: Pen) {
        let Some(Seek { text, back }) = state.seek.take() else { return };
        let has = |at: &usize| {
            let row = &self.rows[order[*at]];
            self.columns.iter().any(|c| Self::text(c, row, pen).to_lowercase().contains(&text))
        };
        let n = order.len();
        let found = (1..=n).map(|step| (state.at + if back { n - step } else { step }) % n).find(has);
        match found {
            Some(at) => {
                state.follow = false;
                state.select(at);
            }
            None => state.missed = Some(text),
        }
    }

    /// Columns of the terminal for each; 0 for those that find no room.
    fn widths(&self, room: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|c| c.width).collect();
        loop {
            let used: usize = widths.iter().filter(|w| **w > 0).map(|w| w + 1).sum::<usize>().saturating_sub(1);
            if used <= room {
                let growing = |i: &usize| self.columns[*i].grows && widths[*i] > 0;
                let growing: Vec<usize> = (0..widths.len()).filter(growing).collect();
                let (share, rest) =
                    (room - used).checked_div(growing.len()).map_or((0, 0), |s| (s, (room - used) % growing.len()));
                for (n, i) in growing.iter().enumerate() {
                    widths[*i] += share + usize::from(n < rest);
                }
                return widths;
            }
            // Of those that may go the last one.
            let goes = (0..widths.len()).filter(|i| widths[*i] > 0 && self.columns[*i].less > 0);
            match goes.max_by_key(|i| (self.columns[*i].less, *i)) {
                Some(i) => widths[i] = 0,
                None => return widths,
            }
        }
    }

    fn draw_head(&self, buf: &mut Buffer, area: Rect, pen: Pen, state: &mut TableState, widths: &[usize]) {
        let mut x = area.x;
        for (column, width) in self.columns.iter().zip(widths).filter(|(_, w)| **w > 0) {
            let sorted = state.sort.filter(|(head, _)| *head == column.head);
            let mark = match (sorted, pen.theme.ascii) {
                (None, _) => "",
                (Some((_, false)), false) => "▼",
                (Some((_, true)), false) => "▲",
                (Some((_, false)), true) => "v",
                (Some((_, true)), true) => "^",
            };
            let cell =
                Cell::new(format!("{}{mark}", column.head), if mark.is_empty() { Tone::Head } else { Tone::Warn });
            Self::draw_cell(buf, pen, (x, area.y), *width, column.left, &cell);
            if column.sort.is_some() {
                state.head_spots.push((x, x + *width as u16, column.head));
            }
            x += *width as u16 + 1;
        }
    }

    fn find_axes(&self, body: Rect, widths: &[usize], axes: &mut Vec<Axis>) {
        let mut x = body.x;
        for (column, width) in self.columns.iter().zip(widths).filter(|(_, w)| **w > 0) {
            if let Some(over) = &column.over {
                let (from_ns, to_ns) = over(*width);
                axes.push(Axis { area: Rect { x, width: *width as u16, ..body }, from_ns, to_ns });
            }
            x += *width as u16 + 1;
        }
    }

    fn draw_cell(buf: &mut Buffer, pen: Pen, at: (u16, u16), width: usize, left: bool, cell: &Cell) {
        let (x, y) = at;
        let room = usize::from(buf.area.right().saturating_sub(x)).min(width);
        if room == 0 {
            return;
        }
        let shown = text::cut_end(&cell.text, room, pen.theme.ascii);
        let pad = if left { 0 } else { width.saturating_sub(text::columns(&shown)).min(room) };
        buf.set_stringn(x + pad as u16, y, &shown, room - pad, pen.theme.style(cell.tone));
    }
}
