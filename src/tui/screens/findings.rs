//! Screen 0: what is wrong, what it costs and what to do.

use ratatui::layout::Rect;

use crate::analysis::findings::{Finding, Findings, Severity};
use crate::base::text::wrapped;
use crate::summary::view::{Screen, Snapshot};
use crate::tui::screens::{About, Canvas, number, pane, time};
use crate::tui::state::{State, TableId, numbered};
use crate::tui::text;
use crate::tui::theme::Tone;
use crate::tui::widgets::table::{Cell, Column, Key, Table};
use crate::tui::widgets::{Pen, put, split, title};

/// What there is to know about it.
pub const ABOUT: About = About {
    screen: Screen::Findings,
    key: '0',
    tab: "Find",
    name: "Findings: what is wrong, what it costs, what to do",
    text: &[
        "Of a trace that goes on: over the last minute. time: wall time of the rank or process that decides",
        "how long the run takes, without the tracer's hooks; saves: what removing the cause would save.",
        "iotrace-bpf rules show RULE has the condition of a rule.",
    ],
    keys: &[("Enter", "its longest call; of summed calls: its file")],
    draw,
};

/// Lines that a selected finding needs at least.
const DETAILS: u16 = 8;

fn draw(buf: &mut Canvas<'_>, area: Rect, snapshot: &Snapshot, state: &mut State) {
    let pen = state.pen;
    let found = &snapshot.findings;
    let rows: Vec<(i64, Finding)> = numbered(found).map(|(id, finding)| (id, finding.clone())).collect();
    let (heading, empty) = (heading(snapshot), empty(found));
    let wanted = (rows.len() as u16).saturating_add(2).max(4);
    let (upper, lower) = split(area, wanted.min(area.height.saturating_sub(DETAILS).max(4)));
    let table = Table { title: &heading, columns: columns(), rows: &rows, id: |(id, _)| *id, empty: &empty };
    pane(buf, upper, state, TableId::Findings, &table);
    let inner = title(buf, pen, lower, "the selected one: what to do, and what shows it", "", false);
    let lines = details(snapshot, state, usize::from(inner.width.saturating_sub(2)));
    for (i, (label, tone)) in lines.iter().take(usize::from(inner.height)).enumerate() {
        put(buf, pen, inner, inner.x + 1, inner.y + i as u16, label, *tone);
    }
}

fn seconds(s: f64) -> String {
    time((s * 1e9) as i64)
}

fn heading(snapshot: &Snapshot) -> String {
    let found = &snapshot.findings;
    let when = if snapshot.run.live { "findings of the last minute" } else { "findings" };
    format!("{when}: calls took {}, no rule explains {}", seconds(found.calls_s), seconds(found.unexplained_s))
}

fn empty(found: &Findings) -> String {
    match found.looked_at {
        0 => "no rule could be applied".to_owned(),
        rules => format!("nothing found by {rules} rules"),
    }
}

fn columns() -> Vec<Column<(i64, Finding)>> {
    type Of = Column<(i64, Finding)>;
    let optional = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), seconds);
    vec![
        Of::wide("severity", 8, |(_, f): &(i64, Finding), _, _| Cell::new(f.severity.name(), tone(f.severity)))
            .sort(|(_, f)| number(f.severity as i64)),
        Of::wide("rule", 20, |(_, f), pen: Pen, width| pen.name(f.rule, width))
            .sort(|(_, f)| Key::Text(f.rule.to_owned())),
        Of::new("time", 7, move |(_, f), _| optional(f.seconds)).sort(|(_, f)| Key::Number(f.seconds.unwrap_or(-1.0))),
        Of::new("of run", 6, |(_, f), _| f.share.map_or_else(|| "-".to_owned(), text::percent))
            .sort(|(_, f)| Key::Number(f.share.unwrap_or(-1.0)))
            .less(2),
        Of::new("saves", 7, move |(_, f), _| optional(f.gain_low_s)).less(1),
        Of::new("to", 7, move |(_, f), _| optional(f.gain_high_s))
            .sort(|(_, f)| Key::Number(f.gain_high_s.unwrap_or(-1.0)))
            .less(1),
        Of::wide("what", 30, |(_, f), pen: Pen, width| pen.name(&f.title, width)).grows(),
    ]
}

const fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical => Tone::Bad,
        Severity::Warn => Tone::Warn,
        Severity::Info => Tone::Plain,
    }
}

/// All of the selected finding in lines of a width, and which rules could not be applied.
fn details(snapshot: &Snapshot, state: &State, width: usize) -> Vec<(String, Tone)> {
    let mut out = Vec::new();
    let mut add = |label: &str, tone| {
        let safe = text::name(label, state.pen.theme.ascii);
        out.extend(wrapped(&safe, width.max(1)).into_iter().map(|line| (line, tone)));
    };
    if let Some(finding) = state.finding(snapshot) {
        add(&finding.title, Tone::Strong);
        add(&finding.advice, Tone::Plain);
        let evidence = &finding.evidence;
        let lists = [
            ("functions", evidence.functions.join(", ")),
            ("files", evidence.files.join(", ")),
            ("ranks", joined(&evidence.ranks)),
            ("processes", joined(&evidence.processes)),
            ("spans", joined(&evidence.spans)),
        ];
        for (what, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
            add(&format!("{what}: {list}"), Tone::Dim);
        }
        add(&finding.sql, Tone::Dim);
    }
    for rule in &snapshot.findings.not_evaluated {
        add(&format!("not evaluated: {}: {}", rule.rule, rule.why), Tone::Dim);
    }
    out
}

fn joined<T: ToString>(list: &[T]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::summary::view::Screen;
    use crate::tui::state::{State, TableId};
    use crate::tui::terminal::input::Key;
    use crate::tui::testing::{drawn, snapshot};
    use crate::tui::theme::Theme;

    #[test]
    fn enter_leads_to_the_longest_call_or_to_the_file() {
        let mut shown = snapshot();
        let mut state = State::new(Theme::default());
        state.on_key(Key::Char('0'), &shown);
        drawn(&shown, &mut state, 120, 40);
        let mut of_sums = state.clone();
        state.on_key(Key::Enter, &shown);
        assert_eq!((state.screen, state.span), (Screen::Tree, Some(77)));
        // And back.
        state.on_key(Key::Esc, &shown);
        assert_eq!(state.screen, Screen::Findings);
        let findings = std::sync::Arc::make_mut(&mut shown.findings);
        findings.findings[0].evidence.spans.clear();
        of_sums.on_key(Key::Enter, &shown);
        drawn(&shown, &mut of_sums, 120, 40);
        assert_eq!((of_sums.screen, of_sums.selected(TableId::Files)), (Screen::Files, Some(3)));
    }
}
