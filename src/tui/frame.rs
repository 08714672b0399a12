//! A frame: the title and tabs, the screen, what distorts its figures, the status line, the keys, and boxes over it.

mod hints;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use crate::analysis::trace::share::TRUSTED_SHARE;
use crate::summary::filter::FIELDS;
use crate::summary::view::{LayerRow, Screen, Snapshot, Status};
use crate::tui::keys::EVERYWHERE;
use crate::tui::screens::about;
use crate::tui::state::{Popup, State};
use crate::tui::theme::Tone;
use crate::tui::widgets::{Pen, put, title};
use crate::tui::{screens, sql, text};
use crate::vocabulary::Layer;

/// Below this nothing can be read.
const LEAST: (u16, u16) = (40, 10);

/// Draws everything.
pub fn draw(buf: &mut Buffer, snapshot: &Snapshot, state: &mut State) {
    let area = buf.area;
    let pen = state.pen;
    if area.width < LEAST.0 || area.height < LEAST.1 {
        put(buf, pen, area, area.x, area.y, "too small: 40x10 at least", Tone::Warn);
        return;
    }
    head(buf, area, snapshot, state);
    let distorted = caveats(snapshot, state);
    let lines = (distorted.len() as u16).min(if area.height < 30 { 1 } else { 3 });
    let body = Rect { y: area.y + 2, height: area.height - 4 - lines, ..area };
    state.begin_frame();
    screens::draw(buf, body, snapshot, state);
    for (i, (label, tone)) in distorted.iter().take(usize::from(lines)).enumerate() {
        let more = if i + 1 == usize::from(lines) { distorted.len() - i - 1 } else { 0 };
        let more =
            if more > 0 { format!(" (and {more} more: {})", about(Screen::Coverage).key) } else { String::new() };
        let room = usize::from(area.width).saturating_sub(more.len() + 1);
        let label = format!("{}{more}", text::cut_end(label, room, pen.theme.ascii));
        put(buf, pen, area, area.x, body.bottom() + i as u16, &label, *tone);
    }
    status_line(buf, area, pen, snapshot);
    foot(buf, area, state, snapshot);
    if let Some(popup) = state.popup {
        over(buf, area, state, snapshot, popup);
    }
}

fn head(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let pen = state.pen;
    let run = &snapshot.run;
    let now = text::clock(snapshot.kept.to_ns);
    let (mode, tone) = match (run.live, run.ended) {
        (true, false) => (format!("LIVE {now}"), Tone::Good),
        (true, true) => (format!("ENDED {now}"), Tone::Warn),
        (false, _) => {
            (format!("FILE {}", text::seconds(snapshot.kept.to_ns.saturating_sub(snapshot.kept.from_ns))), Tone::Head)
        }
    };
    let mut right = vec![(mode, tone)];
    if snapshot.status.recording.is_some() {
        right.push(("REC".to_owned(), Tone::Bad));
    }
    if let Some(w) = state.window {
        let label = format!(
            "{} {}-{}",
            if run.live { "FROZEN" } else { "WINDOW" },
            text::seconds(w.from_ns),
            text::seconds(w.to_ns)
        );
        right.push((label, Tone::Warn));
    }
    if let Some(mark) = state.since(snapshot) {
        right.push((format!("SINCE {}", text::seconds(mark.at_ns)), Tone::Warn));
    }
    if let Some(loading) = &snapshot.loading {
        right.push((format!("{} {}", loading.what, text::percent(loading.done)), Tone::Warn));
    }
    let processes = match (snapshot.status.processes, snapshot.status.processes_ended) {
        (n, 0) => format!("{n} proc"),
        (n, ended) => format!("{n} proc, {ended} ended"),
    };
    right.push((processes, Tone::Plain));
    let width: usize = right.iter().map(|(w, _)| text::columns(w) + 2).sum();
    let room = usize::from(area.width).saturating_sub(width + 13);
    let mut x = put(buf, pen, area, area.x, area.y, "iotrace-bpf ", Tone::Head);
    x = put(buf, pen, area, x, area.y, &pen.name(&run.title, room), Tone::Strong);
    let mut at = x.max((area.right()).saturating_sub(width as u16)) + 1;
    for (label, tone) in &right {
        at = put(buf, pen, area, at, area.y, label, *tone) + 2;
    }
    tabs(buf, area, state);
}

fn tabs(buf: &mut Buffer, area: Rect, state: &mut State) {
    let pen = state.pen;
    let mut x = area.x;
    state.tabs.clear();
    for screen in Screen::ALL {
        let about = about(screen);
        let tab = format!("{} {}", about.key, about.tab);
        let from = x;
        let tone = if screen == state.screen { Tone::Strong } else { Tone::Dim };
        x = put(buf, pen, area, x, area.y + 1, &tab, tone);
        if screen == state.screen {
            buf.set_style(Rect { x: from, y: area.y + 1, width: x - from, height: 1 }, Modifier::REVERSED);
        }
        state.tabs.push((from, x, screen));
        x += if area.width < 90 { 1 } else { 2 };
    }
    if let Some(filter) = &state.filter {
        let label = format!("filter: {}", text::name(filter.text(), pen.theme.ascii));
        put(buf, pen, area, x + 1, area.y + 1, &label, Tone::Warn);
    }
}

/// Why figures may be other than the truth, the worst first.
fn caveats(snapshot: &Snapshot, state: &State) -> Vec<(String, Tone)> {
    let mut out = Vec::new();
    let status = &snapshot.status;
    if status.lost > 0 {
        let layers: Vec<String> = status
            .lost_by_layer
            .iter()
            .map(|(layer, n)| format!("{} {}", layer.map_or("no layer", Layer::name), text::count(*n as f64)))
            .collect();
        out.push((format!("! {} events lost ({}): figures are too low", status.lost, layers.join(", ")), Tone::Bad));
    }
    if let Some(share) = status.tracing.filter(|share| *share > TRUSTED_SHARE) {
        let share = text::percent(share);
        out.push((format!("! tracing took {share} of the run: do not trust its seconds"), Tone::Bad));
    }
    // A filter that leaves everything out looks like a program that does nothing.
    if state.filter.is_some() && state.window.is_some() {
        out.push(("! only calls of the filter, only in the window".to_owned(), Tone::Warn));
    }
    let bare: Vec<&LayerRow> = snapshot.overview.layers.iter().filter(|l| !l.covered).collect();
    if !bare.is_empty() {
        let names: Vec<&str> = bare.iter().filter_map(|l| l.layer.map(Layer::name)).collect();
        out.push((
            format!("not covered: {} (no probes: their calls are not in any figure)", names.join(", ")),
            Tone::Dim,
        ));
    }
    out.extend(snapshot.notes.iter().map(|n| (format!("! {}", text::name(n, state.pen.theme.ascii)), Tone::Warn)));
    out
}

/// Always there: loss, and what the tracer costs.
fn status_line(buf: &mut Buffer, area: Rect, pen: Pen, snapshot: &Snapshot) {
    let y = area.bottom() - 2;
    let mut x = area.x;
    for (label, tone) in status_texts(&snapshot.status, pen, snapshot.run.live) {
        if usize::from(area.right() - x) < text::columns(&label) {
            break;
        }
        x = put(buf, pen, area, x, y, &label, tone) + 2;
        x = x.min(area.right());
    }
}

fn status_texts(status: &Status, pen: Pen, live: bool) -> Vec<(String, Tone)> {
    let mut out = Vec::new();
    if live {
        out.push((format!("ev/s {}", text::count(status.events_per_s)), Tone::Plain));
    }
    out.push((format!("lost {}", status.lost), if status.lost > 0 { Tone::Bad } else { Tone::Good }));
    if let Some(share) = status.tracing {
        let tone = if share > TRUSTED_SHARE { Tone::Bad } else { Tone::Plain };
        out.push((format!("tracing {}", text::percent(share)), tone));
    }
    let all = status.probes_attached == status.probes;
    out.push((
        format!("probes {}/{}", status.probes_attached, status.probes),
        if all { Tone::Plain } else { Tone::Warn },
    ));
    if let Some(fill) = status.ring_fill {
        let tone = if fill > 0.8 {
            Tone::Bad
        } else if fill > 0.5 {
            Tone::Warn
        } else {
            Tone::Plain
        };
        out.push((format!("ring {}", text::percent(fill)), tone));
    }
    if let Some(cpu) = status.own_cpu {
        out.push((format!("own cpu {}", text::percent(cpu)), Tone::Plain));
    }
    if let Some(memory) = status.own_memory {
        out.push((format!("mem {}", pen.bytes(memory as i64)), Tone::Plain));
    }
    match &status.recording {
        Some(r) => {
            let label = format!("rec {}/s {}", text::bytes(r.bytes_per_s, pen.si), pen.bytes(r.bytes as i64));
            out.push((label, Tone::Bad));
        }
        None if live => out.push(("not recording".to_owned(), Tone::Dim)),
        None => {}
    }
    out
}

/// The prompt, the last message, or the keys.
fn foot(buf: &mut Buffer, area: Rect, state: &State, snapshot: &Snapshot) {
    let pen = state.pen;
    let y = area.bottom() - 1;
    if let Some(prompt) = &state.prompt {
        let x = put(buf, pen, area, area.x, y, &format!("{}: ", prompt.kind.label()), Tone::Head);
        let end = put(buf, pen, area, x, y, &text::name(&prompt.text, pen.theme.ascii), Tone::Plain);
        let before: String = prompt.text.chars().take(prompt.cursor).collect();
        let cursor = x + text::columns(&text::name(&before, pen.theme.ascii)) as u16;
        if cursor < area.right() {
            buf.set_style(Rect { x: cursor, y, width: 1, height: 1 }, Modifier::REVERSED);
        }
        if let Some(wrong) = &prompt.wrong {
            put(buf, pen, area, end + 2, y, &text::name(wrong, pen.theme.ascii), Tone::Bad);
        }
        return;
    }
    if let (true, Some((bad, label))) = (state.fresh, state.messages.last()) {
        put(buf, pen, area, area.x, y, &text::name(label, pen.theme.ascii), if *bad { Tone::Bad } else { Tone::Good });
        return;
    }
    put(buf, pen, area, area.x, y, &hints::keys(snapshot, state), Tone::Dim);
}

fn over(buf: &mut Buffer, area: Rect, state: &mut State, snapshot: &Snapshot, popup: Popup) {
    let pen = state.pen;
    let key = |(key, what): &(&str, &str)| (format!("  {key:<17} {what}"), Tone::Plain);
    let (name, lines): (&str, Vec<(String, Tone)>) = match popup {
        Popup::Help => {
            let about = about(state.screen);
            let mut lines: Vec<_> = about.text.iter().map(|t| ((*t).to_owned(), Tone::Plain)).collect();
            lines.push((String::new(), Tone::Plain));
            lines.extend(about.keys.iter().map(key));
            lines.push(("Everywhere".to_owned(), Tone::Head));
            lines.extend(EVERYWHERE.iter().map(key));
            lines.push(("Filters".to_owned(), Tone::Head));
            lines.extend(filter_help());
            (about.name, lines)
        }
        Popup::Messages if state.messages.is_empty() => ("Messages", vec![("none".to_owned(), Tone::Dim)]),
        Popup::Messages => {
            let tone = |bad: bool| if bad { Tone::Bad } else { Tone::Plain };
            (
                "Messages",
                state.messages.iter().rev().map(|(bad, m)| (text::name(m, pen.theme.ascii), tone(*bad))).collect(),
            )
        }
        Popup::Sql { row } => {
            let sql = if row { sql::row(state, snapshot) } else { sql::screen(state, snapshot) };
            (
                if row { "The calls behind this row" } else { "The SQL behind this table" },
                sql_lines(sql, area, pen, snapshot),
            )
        }
        Popup::Details => ("Selected row", screens::details(snapshot, state)),
        Popup::Signal(of) => ("Send a signal (j k, Enter)", screens::signals(snapshot, of, pen)),
        Popup::Leave => {
            let goes_on = snapshot.output.as_ref().is_some_and(|output| output.ended.is_none());
            let then = if goes_on {
                "The command goes on and is recorded."
            } else {
                "Recording ends, the dataset is complete."
            };
            ("A dataset is being recorded", vec![(format!("Leave? {then} y: leave  n: stay"), Tone::Warn)])
        }
        Popup::Sort(at) => {
            let heads = state.focused().and_then(|id| state.tables.get(&id)).map_or(&[][..], |t| &t.heads);
            let mark = |i: usize| if i == at { "> " } else { "  " };
            let line = |(i, head): (usize, &&str)| {
                (format!("{}{head}", mark(i)), if i == at { Tone::Strong } else { Tone::Plain })
            };
            ("Sort by", heads.iter().enumerate().map(line).collect())
        }
    };
    boxed(buf, area, state, name, &lines);
}

fn filter_help() -> Vec<(String, Tone)> {
    let field = |(name, what, example): &(&str, &str, &str)| (format!("  {name:<8}{what}: {example}"), Tone::Plain);
    let joined = ("  joined by and, or, not, ( )".to_owned(), Tone::Plain);
    FIELDS.iter().map(field).chain([joined]).collect()
}

/// SQL with how to run it. What is too long for the screen goes on in the next line; what is copied has lines as they are.
fn sql_lines(sql: Option<String>, area: Rect, pen: Pen, snapshot: &Snapshot) -> Vec<(String, Tone)> {
    let Some(sql) = sql else {
        return vec![("nothing is selected, or nothing of it is in a dataset".to_owned(), Tone::Dim)];
    };
    let room = usize::from(area.width).saturating_sub(6);
    let of = if snapshot.run.live { "Of the dataset when this trace is recorded (R)" } else { "Of this dataset" };
    let mut lines = vec![(format!("{of}, to be asked by: iotrace-bpf sql DIR"), Tone::Dim), (String::new(), Tone::Dim)];
    for line in sql.lines() {
        let safe = text::name(line, pen.theme.ascii);
        lines.extend(crate::base::text::wrapped(&safe, room).into_iter().map(|l| (l, Tone::Plain)));
    }
    lines.push((String::new(), Tone::Dim));
    lines.push(("y: copy (through the terminal: OSC 52)".to_owned(), Tone::Dim));
    lines
}

/// A box in the middle, scrolled.
fn boxed(buf: &mut Buffer, area: Rect, state: &mut State, name: &str, lines: &[(String, Tone)]) {
    let pen = state.pen;
    let widest = lines.iter().map(|(l, _)| text::columns(l)).chain([text::columns(name) + 6]).max().unwrap_or(0);
    let width = (widest as u16 + 4).min(area.width - 2);
    let height = (lines.len() as u16 + 2).min(area.height - 2);
    let frame = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    for y in frame.top()..frame.bottom() {
        for x in frame.left()..frame.right() {
            buf[(x, y)].reset();
        }
    }
    let page = height - 2;
    state.scroll = state.scroll.min((lines.len() as u16).saturating_sub(page));
    let more = if lines.len() > usize::from(page) { "j k scroll, Esc closes" } else { "" };
    title(buf, pen, frame, name, more, true);
    let inner = Rect { x: frame.x + 2, y: frame.y + 1, width: width - 4, height: page };
    for (i, (label, tone)) in lines.iter().skip(usize::from(state.scroll)).take(usize::from(page)).enumerate() {
        put(buf, pen, inner, inner.x, inner.y + i as u16, label, *tone);
    }
    title(buf, pen, Rect { y: frame.bottom() - 1, height: 1, ..frame }, "Esc", "", false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::testing::{drawn, snapshot};
    use crate::tui::theme::{Palette, Theme};

    fn frame(theme: Theme, width: u16, height: u16) -> String {
        drawn(&snapshot(), &mut State::new(theme), width, height)
    }

    #[test]
    fn the_overview_shows_where_time_goes_and_what_is_not_covered() {
        insta::assert_snapshot!(frame(Theme::default(), 80, 24));
    }

    #[test]
    fn hostile_names_are_escaped_on_every_screen() {
        for screen in Screen::ALL {
            let mut state = State::new(Theme::default());
            state.screen = screen;
            let text = drawn(&snapshot(), &mut state, 120, 40);
            let bad = |c: char| {
                (c.is_control() && c != '\n')
                    || ('\u{202a}'..='\u{202e}').contains(&c)
                    || ('\u{590}'..='\u{5ff}').contains(&c)
            };
            assert!(!text.contains(bad), "{screen:?}: {text:?}");
        }
    }

    #[test]
    fn ascii_is_ascii() {
        for screen in Screen::ALL {
            let mut state = State::new(Theme { palette: Palette::Mono, ascii: true });
            state.screen = screen;
            let text = drawn(&snapshot(), &mut state, 120, 40);
            assert!(text.is_ascii(), "{screen:?}: {text}");
        }
    }

    #[test]
    fn every_size_is_drawn() {
        for screen in Screen::ALL {
            for popup in [
                None,
                Some(Popup::Help),
                Some(Popup::Details),
                Some(Popup::Sort(3)),
                Some(Popup::Messages),
                Some(Popup::Sql { row: true }),
                Some(Popup::Sql { row: false }),
            ] {
                for (width, height) in [(1, 1), (39, 9), (40, 10), (60, 12), (80, 24), (81, 25), (120, 40), (400, 120)]
                {
                    for s in [snapshot(), Snapshot::default()] {
                        let mut state = State::new(Theme::default());
                        (state.screen, state.popup) = (screen, popup);
                        drawn(&s, &mut state, width, height);
                    }
                }
            }
        }
    }

    #[test]
    fn loss_and_missing_probes_are_on_every_screen() {
        for screen in Screen::ALL {
            let mut state = State::new(Theme::default());
            state.screen = screen;
            let text = drawn(&snapshot(), &mut state, 80, 40);
            assert!(text.contains("12 events lost (syscall 12)") && text.contains("not covered: netcdf"), "{text}");
        }
    }

    #[test]
    fn what_tracing_took_is_in_the_status_line_and_a_caveat_when_it_is_much() {
        let text = |share| {
            let mut shown = snapshot();
            shown.status.tracing = Some(share);
            drawn(&shown, &mut State::new(Theme::default()), 120, 40)
        };
        let (little, much) = (text(0.04), text(0.31));
        assert!(little.contains("tracing 4%") && !little.contains("do not trust"), "{little}");
        assert!(much.contains("! tracing took 31% of the run: do not trust its seconds"), "{much}");
    }

    #[test]
    fn what_is_stuck_is_shown_with_its_stack() {
        let mut state = State::new(Theme::default());
        state.screen = Screen::InFlight;
        let text = drawn(&snapshot(), &mut state, 100, 24);
        for label in
            ["23.0s", "H5Dwrite", "pwrite64 of 1.00M at 0  /data/out.h5", "rwsem_down_write_slowpath", "vfs_write"]
        {
            assert!(text.contains(label), "{label} is not in:\n{text}");
        }
    }
}
