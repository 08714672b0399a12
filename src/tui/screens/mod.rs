//! The screens: each draws its part of a snapshot.

mod coverage;
mod devices;
mod empty;
mod events;
mod files;
mod findings;
mod inflight;
mod latency;
mod node;
mod output;
mod overview;
mod process;
mod processes;
mod tree;

pub use process::signals;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::ops::{Deref, DerefMut};

use crate::summary::view::{History, Percentiles, Screen, Snapshot, Sums};
use crate::tui::keys::Binding;
use crate::tui::state::{State, TableId};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::Pen;
use crate::tui::widgets::graph::Series;
use crate::tui::widgets::table::{Cell, Key, Table};

/// A screen: its tab, its help and own keys, and how it is drawn.
pub struct About {
    pub screen: Screen,
    /// Shows it: a digit, or a letter that has no other meaning.
    pub key: char,
    /// On the tab, after the key.
    pub tab: &'static str,
    pub name: &'static str,
    pub text: &'static [&'static str],
    pub keys: &'static [Binding],
    draw: fn(&mut Canvas<'_>, Rect, &Snapshot, &mut State),
}

/// What a screen is drawn on.
pub struct Canvas<'a> {
    buf: &'a mut Buffer,
    /// The table that takes the whole screen, when it has been drawn.
    over: Option<Buffer>,
}

impl Deref for Canvas<'_> {
    type Target = Buffer;

    fn deref(&self) -> &Buffer {
        self.buf
    }
}

impl DerefMut for Canvas<'_> {
    fn deref_mut(&mut self) -> &mut Buffer {
        self.buf
    }
}

/// All screens, in the order of [`Screen::ALL`].
pub static SCREENS: [About; Screen::ALL.len()] = [
    overview::ABOUT,
    processes::ABOUT,
    files::ABOUT,
    tree::ABOUT,
    latency::ABOUT,
    inflight::ABOUT,
    events::ABOUT,
    devices::ABOUT,
    coverage::ABOUT,
    findings::ABOUT,
];

const _: () = {
    let mut i = 0;
    while i < SCREENS.len() {
        assert!(SCREENS[i].screen as usize == i && Screen::ALL[i] as usize == i, "screens stand in one order");
        i += 1;
    }
};

/// What there is to know about a screen.
pub fn about(screen: Screen) -> &'static About {
    &SCREENS[screen as usize]
}

/// The screen that a key shows, if it is one of a screen.
pub fn with_key(key: char) -> Option<Screen> {
    SCREENS.iter().find(|about| about.key == key).map(|about| about.screen)
}

/// Draws the screen that is looked at.
pub fn draw(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let mut canvas = Canvas { buf, over: None };
    let (area, output) = output::split(area, snapshot, state);
    if area.height > 0 {
        (about(state.screen).draw)(&mut canvas, area, snapshot, state);
    }
    output::draw(&mut canvas, output, snapshot, state);
    if let Some(over) = canvas.over {
        // Where the table alone is, no chart is under the mouse.
        state.axes.clear();
        canvas.buf.merge(&over);
    }
}

/// Everything about the selected row.
pub fn details(snapshot: &Snapshot, state: &State) -> Vec<(String, Tone)> {
    let Some(id) = state.focused() else { return vec![("nothing is selected".to_owned(), Tone::Dim)] };
    if id == TableId::Flights {
        return inflight::details(snapshot, state);
    }
    let Some(table) = state.tables.get(&id) else { return Vec::new() };
    table.details.iter().map(|(head, text)| (format!("{head:<12} {text}"), Tone::Plain)).collect()
}

/// Draws a table as a pane that the keys can go to.
fn pane<R>(buf: &mut Canvas<'_>, area: Rect, state: &mut State, id: TableId, table: &Table<R>) {
    if area.height < 2 || area.width < 10 {
        return;
    }
    let pen = state.pen;
    state.panes.push(id);
    let focused = state.has_focus(id);
    let shown = state.tables.entry(id).or_default();
    if focused && state.alone {
        // Rows of the title, the tabs, the status and the keys stay.
        let whole = Rect { y: buf.area.y + 2, height: buf.area.height.saturating_sub(4), ..buf.area };
        let mut over = Buffer::empty(whole);
        table.draw(&mut over, whole, pen, shown, true);
        buf.over = Some(over);
    } else {
        table.draw(buf, area, pen, shown, focused);
    }
    let missed = shown.missed.take();
    state.axes.extend(&shown.axes);
    if let Some(text) = missed {
        state.notify(true, format!("no row of this table contains {text:?}"));
    }
}

/// Of when a sparkline of so many columns is: the present is at its right.
fn recent(history: &History) -> impl Fn(usize) -> (i64, i64) + 'static {
    let samples = history.device.len();
    let (from, width_ns) = (history.from_ns, history.width_ns);
    move |columns| {
        let long = |samples: usize| width_ns.saturating_mul(samples as i64);
        let to = from.saturating_add(long(samples));
        (to.saturating_sub(long(samples.max(columns))), to)
    }
}

/// Bytes read and written a second, from samples of that length.
fn bytes_over_time<T>(samples: &[T], width_ns: i64, of: fn(&T) -> [i64; 2]) -> [Series; 2] {
    let rate = |n: usize| samples.iter().map(|s| of(s)[n] as f64 * 1e9 / width_ns.max(1) as f64).collect();
    let show = |pen: Pen, max: f64| pen.rate(max);
    [
        Series { label: "read/s", values: rate(0), tone: Tone::Read, show },
        Series { label: "writ/s", values: rate(1), tone: Tone::Write, show },
    ]
}

/// From when to when so many samples are.
fn samples_time(from_ns: i64, width_ns: i64, samples: usize) -> (i64, i64) {
    (from_ns, from_ns.saturating_add(width_ns.saturating_mul(samples as i64)))
}

/// Bytes read and written.
fn moved(sums: &Sums) -> i64 {
    sums.bytes_read.saturating_add(sums.bytes_written)
}

fn number(n: i64) -> Key {
    Key::Number(n as f64)
}

/// A number; a dash for none.
fn count(n: i64) -> String {
    if n == 0 { "-".to_owned() } else { text::count(n as f64) }
}

/// A rate of calls.
fn per_second(n: f64) -> String {
    if n < 0.05 { "-".to_owned() } else { text::count(n) }
}

/// Time; a dash for none.
fn time(ns: i64) -> String {
    if ns == 0 { "-".to_owned() } else { text::time(ns) }
}

/// Failed calls stand out.
fn errors(n: i64) -> Cell {
    Cell::new(count(n), if n > 0 { Tone::Warn } else { Tone::Dim })
}

/// Bytes; a dash for none.
fn bytes(pen: Pen, n: i64) -> String {
    if n == 0 { "-".to_owned() } else { pen.bytes(n) }
}

fn percentile(p: Option<Percentiles>, of: fn(&Percentiles) -> i64) -> String {
    p.as_ref().map_or_else(|| "-".to_owned(), |p| text::time(of(p)))
}

/// A part of a whole; a dash where there is no whole.
fn part(of: i64, whole: i64) -> String {
    if whole > 0 { text::percent(of as f64 / whole as f64) } else { "-".to_owned() }
}
