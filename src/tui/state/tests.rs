//! Key by key, on a snapshot by hand.

use crate::summary::view::{EventRow, FileRow, Files, Loading, ProcessRow, Recording, Status};
use crate::tui::keys::EVERYWHERE;
use crate::tui::screens::SCREENS;
use crate::tui::state::*;
use crate::tui::terminal::input::{Key, MouseDid};
use crate::tui::{frame, testing};
use crate::vocabulary::Kind;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A dashboard of 120 x 40 over a snapshot.
struct Session {
    state: State,
    snapshot: Snapshot,
}

impl Session {
    fn new() -> Self {
        let mut session = Self { state: State::new(Theme::default()), snapshot: testing::snapshot() };
        session.lay_out();
        session
    }

    fn lay_out(&mut self) {
        frame::draw(&mut Buffer::empty(Rect::new(0, 0, 120, 40)), &self.snapshot, &mut self.state);
    }

    fn key(&mut self, key: Key) -> Effect {
        let effect = self.state.on_key(key, &self.snapshot);
        self.lay_out();
        effect
    }

    fn keys(&mut self, keys: &str) -> Effect {
        keys.chars().fold(Effect::None, |_, c| self.key(if c == '\n' { Key::Enter } else { Key::Char(c) }))
    }
}

#[test]
fn every_screen_has_a_key_with_no_other_meaning() {
    let mut s = Session::new();
    for (i, about) in SCREENS.iter().enumerate() {
        s.keys(&about.key.to_string());
        assert_eq!(s.state.focus().screen, about.screen);
        assert!(SCREENS[..i].iter().all(|other| other.key != about.key), "{:?} has the key of another", about.screen);
        let bindings = EVERYWHERE.iter().chain(SCREENS.iter().flat_map(|about| about.keys));
        // Of keys that are shown together only those of vi are letters.
        let mut keys = bindings.flat_map(|(keys, _)| keys.split(' ')).filter(|key| key.len() == 1 || *key == "hjkl");
        assert!(keys.all(|key| !key.contains(about.key)), "{:?} hides what {:?} does", about.screen, about.key);
    }
}

#[test]
fn a_selection_stays_with_its_row_when_the_order_changes() {
    let mut s = Session::new();
    s.keys("3j");
    let chosen = s.state.selected(TableId::Files);
    assert_eq!(chosen, Some(2));
    let mut rows = s.snapshot.files.rows.clone();
    rows.reverse();
    s.snapshot.files = Arc::new(Files { rows, other: None });
    s.lay_out();
    assert_eq!(s.state.selected(TableId::Files), chosen);
}

#[test]
fn keys_stop_at_the_ends_of_a_table() {
    let mut s = Session::new();
    s.keys("3kkkk");
    assert_eq!(s.state.selected(TableId::Files), Some(1));
    s.keys("G");
    let last = s.state.selected(TableId::Files);
    s.keys("jjjj");
    assert_eq!(s.state.selected(TableId::Files), last);
    s.keys("g");
    assert_eq!(s.state.selected(TableId::Files), Some(1));
}

#[test]
fn a_table_without_rows_takes_every_key() {
    let mut s = Session::new();
    s.snapshot.files = Arc::new(Files::default());
    s.keys("3jkgGdq");
    s.keys("\n");
    assert_eq!(s.state.file, None);
}

#[test]
fn enter_opens_a_file_and_escape_closes_it() {
    let mut s = Session::new();
    s.keys("3j\n");
    assert_eq!(s.state.focus().file_id, Some(2));
    s.key(Key::Esc);
    assert_eq!(s.state.focus().file_id, None);
}

#[test]
fn a_process_becomes_a_filter() {
    let mut s = Session::new();
    s.keys("2\n");
    assert_eq!(s.state.focus().screen, Screen::Tree);
    assert_eq!(s.state.filter.as_ref().map(|f| f.text()), Some("pid=4240"));
    s.key(Key::Esc);
    assert!(s.state.filter.is_none());
}

#[test]
fn a_wrong_filter_is_kept_for_correction() {
    let mut s = Session::new();
    s.keys("/dur>>\n");
    assert!(s.state.prompt.as_ref().is_some_and(|p| p.wrong.is_some()));
    assert!(s.state.filter.is_none());
    s.key(Key::Ctrl('u'));
    s.keys("dur>1ms\n");
    assert_eq!((s.state.prompt.is_none(), s.state.filter.as_ref().map(|f| f.text())), (true, Some("dur>1ms")));
    s.keys("/");
    s.key(Key::Ctrl('u'));
    s.keys("\n");
    assert!(s.state.filter.is_none(), "an empty line takes the filter away");
}

#[test]
fn letters_in_a_prompt_are_no_commands() {
    let mut s = Session::new();
    assert_eq!(s.keys("/qQ"), Effect::None);
    assert_eq!(s.state.prompt.as_ref().map(|p| p.text.as_str()), Some("qQ"));
}

#[test]
fn leaving_asks_while_recording() {
    let mut s = Session::new();
    assert_eq!(s.keys("q"), Effect::Quit);
    s.snapshot.status = Status { recording: Some(Recording::default()), ..Status::default() };
    assert_eq!(s.keys("q"), Effect::None);
    assert_eq!(s.keys("n"), Effect::None);
    s.keys("q");
    assert_eq!(s.keys("y"), Effect::Quit);
    assert_eq!(s.key(Key::Ctrl('c')), Effect::Quit);
}

#[test]
fn recording_starts_and_stops() {
    let mut s = Session::new();
    s.keys("R");
    s.key(Key::Ctrl('u'));
    assert_eq!(s.keys("a.iotrace\n"), Effect::Command(Command::StartRecording("a.iotrace".into())));
    s.snapshot.status.recording = Some(Recording::default());
    assert_eq!(s.keys("R"), Effect::Command(Command::StopRecording));
}

#[test]
fn freezing_keeps_the_window_and_scrubbing_moves_it() {
    let mut s = Session::new();
    let kept = s.snapshot.kept;
    s.keys("z");
    assert_eq!(s.state.focus().window, Some(kept));
    s.snapshot.kept.to_ns += 5_000_000_000;
    s.lay_out();
    assert_eq!(s.state.focus().window, Some(kept), "time goes on, the figures do not");
    s.keys("+");
    let half = s.state.window.unwrap();
    assert_eq!(half.to_ns - half.from_ns, (kept.to_ns - kept.from_ns) / 2);
    s.keys("[");
    assert!(s.state.window.unwrap().from_ns < half.from_ns);
    s.keys("z");
    assert_eq!(s.state.focus().window, None);
}

#[test]
fn a_head_is_sorted_by_and_then_the_other_way_around() {
    let mut s = Session::new();
    s.keys("3s\n");
    let sorted = s.state.tables[&TableId::Files].sort;
    assert_eq!(sorted, Some(("time", false)));
    s.keys("I");
    assert_eq!(s.state.tables[&TableId::Files].sort, Some(("time", true)));
    s.keys(">");
    assert_eq!(s.state.tables[&TableId::Files].sort, Some(("read", false)));
}

#[test]
fn clicks_select_sort_and_open() {
    let mut s = Session::new();
    s.keys("3");
    let click = |x, y| Mouse { what: MouseDid::Click, x, y };
    // Title, tabs, title of the table, heads, rows.
    s.state.on_mouse(click(30, 5), &s.snapshot);
    s.lay_out();
    assert_eq!(s.state.selected(TableId::Files), Some(2));
    s.state.on_mouse(click(30, 5), &s.snapshot);
    assert_eq!(s.state.file, Some(2));
    s.state.file = None;
    s.lay_out();
    s.state.on_mouse(click(3, 3), &s.snapshot);
    assert_eq!(s.state.tables[&TableId::Files].sort, Some(("time", false)));
    s.state.on_mouse(click(1, 1), &s.snapshot);
    assert_eq!(s.state.screen, Screen::Overview);
}

#[test]
fn dragging_over_a_chart_sets_the_window_and_a_click_on_it_selects() {
    let mut s = Session::new();
    s.keys("2");
    let axis = s.state.axes[0];
    assert!(axis.area.height >= 2 && axis.to_ns > axis.from_ns, "{axis:?}");
    let mut mouse = |what, x, y| {
        s.state.on_mouse(Mouse { what, x, y }, &s.snapshot);
    };
    let (left, right, y) = (axis.area.x, axis.area.right() - 1, axis.area.y);
    mouse(MouseDid::Click, left + (right - left) / 2, y + 1);
    mouse(MouseDid::Release, left + (right - left) / 2, y + 1);
    mouse(MouseDid::Click, right, y);
    mouse(MouseDid::Drag, left + 1, y + 5);
    mouse(MouseDid::Release, left, y + 5);
    s.lay_out();
    assert_eq!(s.state.selected(TableId::Processes), Some(2), "the click");
    assert_eq!(s.state.window, Some(Window { from_ns: axis.from_ns, to_ns: axis.to_ns }), "the drag");
}

#[test]
fn a_table_may_have_the_screen_for_itself() {
    let mut s = Session::new();
    s.snapshot.files = Arc::new(Files { rows: s.snapshot.files.rows.clone(), other: None });
    let text = |s: &mut Session| testing::drawn(&s.snapshot, &mut s.state, 120, 40);
    s.key(Key::Tab);
    s.keys("e");
    let alone = text(&mut s);
    assert!(alone.contains("processes by time") && !alone.contains("files by time"), "{alone}");
    assert!(alone.contains("events lost") || alone.contains("lost 12"), "loss is shown all the same: {alone}");
    s.key(Key::Esc);
    assert!(text(&mut s).contains("files by time"));
}

#[test]
fn escape_ends_reading_when_there_is_nothing_to_go_back_from() {
    let mut s = Session::new();
    s.snapshot.loading = Some(Loading::default());
    s.keys("3j\n");
    assert_eq!(s.key(Key::Esc), Effect::None, "the file is closed");
    assert_eq!(s.key(Key::Esc), Effect::Command(Command::Cancel));
}

#[test]
fn tab_goes_around_the_tables() {
    let mut s = Session::new();
    let first = s.state.focused();
    let all = s.state.panes.len();
    assert!(all > 1);
    (0..all).for_each(|_| _ = s.key(Key::Tab));
    assert_eq!(s.state.focused(), first);
    s.key(Key::BackTab);
    assert_eq!(s.state.focused(), s.state.panes.last().copied());
}

#[test]
fn an_event_leads_to_its_call_and_back() {
    let mut s = Session::new();
    s.keys("7g\n");
    assert_eq!((s.state.screen, s.state.focus().span_id), (Screen::Tree, Some(11)));
    s.key(Key::Esc);
    assert_eq!((s.state.screen, s.state.span), (Screen::Events, None));
}

#[test]
fn the_tail_follows_until_the_user_looks_at_a_row() {
    let mut s = Session::new();
    s.keys("7");
    let add = |s: &mut Session| {
        let mut events = (*s.snapshot.events).clone();
        let last = events.rows.last().unwrap().clone();
        events.rows.push(EventRow { span_id: last.span_id + 1, kind: Kind::Other, ..last });
        s.snapshot.events = Arc::new(events);
        s.lay_out();
    };
    add(&mut s);
    let newest = s.snapshot.events.rows.last().map(|e| e.span_id);
    assert_eq!(s.state.selected(TableId::Events), newest);
    s.keys("k");
    let looked_at = s.state.selected(TableId::Events);
    add(&mut s);
    assert_eq!(s.state.selected(TableId::Events), looked_at);
    s.keys("P");
    assert_eq!(s.state.selected(TableId::Events), Some(10), "the call around it");
}

#[test]
fn when_the_selected_row_is_gone_the_next_one_is_selected() {
    let mut s = Session::new();
    s.keys("3j");
    let rows: Vec<FileRow> = s.snapshot.files.rows.iter().filter(|r| r.file_id != 2).cloned().collect();
    s.snapshot.files = Arc::new(Files { rows, other: None });
    s.lay_out();
    assert_eq!(s.state.tables[&TableId::Files].at, 1);
}

/// What a trace has after some more calls.
fn later(s: &Session) -> Snapshot {
    let mut now = s.snapshot.clone();
    let mut overview = (*now.overview).clone();
    overview.layers[1].sums.calls += 7;
    now.overview = Arc::new(overview);
    let mut files = (*now.files).clone();
    files.rows[1].sums.calls += 5;
    now.files = Arc::new(files);
    now
}

#[test]
fn since_a_mark_only_what_came_after_it_is_shown() {
    let mut s = Session::new();
    s.keys("a");
    assert_eq!(s.state.amounts, Amounts::Totals);
    s.keys("a");
    assert_eq!(s.state.amounts, Amounts::Rates, "without a mark there is nothing since it");
    assert_eq!(s.keys("m"), Effect::Mark);
    let now = s.snapshot.clone();
    s.state.set_mark(&now, &now);
    s.snapshot = later(&s);
    let shown = s.state.shown(&Arc::new(s.snapshot.clone()));
    let text = testing::drawn(&shown, &mut s.state, 120, 40);
    assert!(text.contains("layers: since the mark at 83.000s") && text.contains("SINCE 83.000s"), "{text}");
    let row = |text: &str, name: &str| {
        let line = text.lines().find(|l| l.trim_start().starts_with(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row(&text, "hdf5")[1..4], ["-", "-", "7"], "{text}");
    assert_eq!(row(&text, "mpiio")[1..4], ["-", "-", "-"], "{text}");
    s.keys("3o");
    let text = testing::drawn(&shown, &mut s.state, 120, 40);
    assert!(text.contains("files (system calls) since the mark at 83.000s"), "{text}");
    assert_eq!(s.state.tables[&TableId::Files].ids.len(), 1, "only one file was used since: {text}");
    s.keys("1a");
    assert_eq!(s.state.amounts, Amounts::Rates);
    s.keys("aa");
    assert_eq!(s.state.amounts, Amounts::Since);
}

#[test]
fn a_mark_is_of_calls_that_go_on_to_be_looked_at() {
    let mut s = Session::new();
    s.keys("z");
    assert_eq!(s.keys("m"), Effect::None);
    assert!(s.state.messages.last().unwrap().1.contains("stopped"));
    s.keys("z");
    let now = s.snapshot.clone();
    s.state.set_mark(&now, &now);
    assert!(s.state.since(&s.snapshot).is_some());
    s.keys("z");
    assert!(s.state.since(&s.snapshot).is_some(), "everything up to now");
    s.keys("+]");
    assert!(s.state.since(&s.snapshot).is_none(), "a window has figures of its own");
    s.keys("z/dur>1ms\n");
    assert_eq!((s.state.amounts, s.state.since(&s.snapshot).is_none()), (Amounts::Totals, true));
    assert!(s.state.messages.last().unwrap().1.contains("mark is gone"));
    s.snapshot.run = Arc::default();
    assert_eq!(s.keys("m"), Effect::None, "a dataset does not go on");
}

#[test]
fn processes_are_grouped_and_a_group_becomes_a_filter() {
    let mut s = Session::new();
    s.keys("2p");
    assert!(s.state.focus().threads);
    s.keys("p");
    assert_eq!((s.state.grouping, s.state.focus().threads), (Grouping::Rank, false));
    s.keys("j\n");
    assert_eq!(s.state.filter.as_ref().map(|f| f.text()), Some("rank=1"));
    s.key(Key::Esc);
    s.keys("2p");
    let text = testing::drawn(&s.snapshot, &mut s.state, 120, 40);
    assert!(text.contains("control groups") && text.contains("(none known)"), "{text}");
    s.keys("\n");
    assert_eq!(s.state.filter.as_ref().map(|f| f.text()), Some("pid=4240,4241"));
    s.keys("1p2p");
    assert_eq!(s.state.grouping, Grouping::User, "p is a key of the processes screen");
}

#[test]
fn processes_stand_below_those_that_started_them() {
    let mut s = Session::new();
    let row = |ix: i32, ppid| ProcessRow {
        process_ix: ix,
        pid: 100 + ix,
        ppid,
        command: format!("p{ix}").into(),
        ..ProcessRow::default()
    };
    // 2 and 3 are of 1, 4 is of 3; 5 and 6 of each other, which is damage.
    let rows = vec![row(4, 103), row(2, 101), row(3, 101), row(1, 1), row(5, 106), row(6, 105)];
    s.snapshot.processes = Arc::new(crate::summary::view::Processes { rows, ..Default::default() });
    s.keys("2t");
    let ids = s.state.tables[&TableId::Processes].ids.clone();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
    let text = testing::drawn(&s.snapshot, &mut s.state, 120, 40);
    assert!(text.contains(" p1\n") && text.contains("   p3\n") && text.contains("     p4\n"), "{text}");
}

#[test]
fn a_search_goes_to_the_next_row_that_has_the_text() {
    let mut s = Session::new();
    s.keys("3");
    let paths: Vec<String> = s.snapshot.files.rows.iter().map(|r| r.path.to_string()).collect();
    assert!(paths[1].contains("owned") && paths.iter().filter(|p| p.contains("owned")).count() == 1, "{paths:?}");
    assert_eq!(s.keys("nOWNED\n"), Effect::None);
    assert_eq!(s.state.selected(TableId::Files), Some(2));
    s.keys("gn");
    assert_eq!(s.state.selected(TableId::Files), Some(2));
    s.keys("gN");
    assert_eq!(s.state.selected(TableId::Files), Some(2), "around the end");
    s.key(Key::F(3));
    assert_eq!(s.state.prompt.as_ref().map(|p| p.text.as_str()), Some("OWNED"));
    s.key(Key::Ctrl('u'));
    s.keys("nowhere\n");
    assert_eq!(s.state.selected(TableId::Files), Some(2), "the selection stays");
    assert_eq!(s.state.messages.last().map(|m| m.1.as_str()), Some("no row of this table contains \"nowhere\""));
}

#[test]
fn the_sql_of_the_table_and_of_the_row_is_shown_and_copied() {
    let mut s = Session::new();
    s.keys("3jS");
    let text = testing::drawn(&s.snapshot, &mut s.state, 120, 40);
    assert!(text.contains("The SQL behind this table") && text.contains("FROM used LEFT JOIN files"), "{text}");
    let Effect::Copy(sql) = s.keys("y") else { panic!("nothing is copied") };
    assert!(sql.contains("GROUP BY file_id"), "{sql}");
    s.key(Key::Esc);
    s.keys("/layer=syscall\n");
    let Effect::Copy(sql) = s.keys("y") else { panic!("nothing is copied") };
    assert_eq!(sql, "FROM spans WHERE layer IN ('syscall')\n    AND file_id = 2\nORDER BY start_ns;\n");
    let text = testing::drawn(&s.snapshot, &mut s.state, 40, 20);
    assert!(text.contains("The calls behind this row") && text.contains("layer IN"), "{text}");
}

#[test]
fn the_layout_is_kept_when_asked() {
    assert_eq!(Session::new().keys("w"), Effect::Save);
}

#[test]
fn from_a_call_to_the_first_inside_it_and_back() {
    let mut s = Session::new();
    s.keys("7g");
    let parents: Vec<_> = s.snapshot.events.rows.iter().map(|e| (e.span_id, e.parent_id)).collect();
    assert_eq!(parents, [(11, Some(10)), (10, None), (13, Some(10))]);
    s.keys("jC");
    assert_eq!(s.state.selected(TableId::Events), Some(11));
    s.keys("C");
    assert!(s.state.messages.last().unwrap().1.starts_with("no call inside it"));
    s.keys("P");
    assert_eq!(s.state.selected(TableId::Events), Some(10));
}

#[test]
fn every_key_on_every_screen_is_harmless() {
    let keys = "jkhlgG\n?\u{20}jj*fibFPdszz+-[]{}=uaoeLs<>I\n:xmaaptCtnxNnSyyw";
    for snapshot in [testing::snapshot(), Snapshot::default()] {
        for screen in SCREENS.iter().map(|about| about.key) {
            let mut s = Session::new();
            s.snapshot = snapshot.clone();
            s.keys(&screen.to_string());
            for c in keys.chars() {
                s.keys(&c.to_string());
                s.key(Key::Esc);
                s.key(Key::PageDown);
                s.key(Key::End);
                s.key(Key::Home);
            }
        }
    }
}
