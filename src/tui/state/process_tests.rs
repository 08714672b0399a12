//! One process and the command, key by key: its calls, its stacks, signals, and what is typed to the command.

use crate::analysis::durations::slow_stacks::StackRow;
use crate::inflight::Frame;
use crate::summary::view::*;
use crate::tui::state::*;
use crate::tui::terminal::input::Key;
use crate::tui::testing::{self, drawn};
use nix::sys::signal::Signal;

struct Session {
    state: State,
    snapshot: Snapshot,
}

impl Session {
    /// On the processes, on a terminal of 80 x 24.
    fn new() -> Self {
        let mut state = State::new(Theme::default());
        state.screen = Screen::Processes;
        let mut session = Self { state, snapshot: testing::snapshot() };
        session.shown();
        session
    }

    fn shown(&mut self) -> String {
        drawn(&self.snapshot, &mut self.state, 80, 24)
    }

    fn key(&mut self, key: Key) -> Effect {
        let effect = self.state.on_key(key, &self.snapshot);
        self.answer();
        self.shown();
        effect
    }

    fn keys(&mut self, keys: &str) -> Effect {
        let key = |c| match c {
            '\n' => Key::Enter,
            '\x1b' => Key::Esc,
            '\t' => Key::Tab,
            c => Key::Char(c),
        };
        keys.chars().fold(Effect::None, |_, c| self.key(key(c)))
    }

    /// What a source has for what is asked.
    fn answer(&mut self) {
        self.snapshot.process = self.state.focus().process.map(|of| match of.part {
            ProcessPart::Calls(_) => ProcessDetail::Calls(calls().into()),
            ProcessPart::Stacks => ProcessDetail::Stacks(Arc::new(stacks())),
        });
    }

    fn with_output(mut self, ended: Option<&str>) -> Self {
        let texts = ["step 1 of 3", "writing /data/\x1b[31mout.h5", "step 2 of 3"];
        let lines = (40..).zip(texts).map(|(number, text)| OutputLine { number, text: text.into() });
        let ended = ended.map(str::to_owned);
        self.snapshot.output = Some(Arc::new(CommandOutput { lines: lines.collect(), before: 40, ended }));
        self.shown();
        self
    }
}

/// Calls that succeed, fail, move less than was wanted, and do not end; of two threads.
fn calls() -> Vec<EventRow> {
    let rows = &testing::snapshot().events.rows;
    let (inner, outer) = (rows[2].clone(), rows[1].clone());
    vec![
        EventRow {
            op: "openat",
            span_id: 20,
            ret: Some(-1),
            errno: 2,
            bytes: None,
            req_bytes: None,
            offset: None,
            depth: 0,
            ..inner.clone()
        },
        EventRow { span_id: 21, ret: Some(4096), bytes: Some(4096), ..inner.clone() },
        EventRow { span_id: 22, ret: Some(0), req_bytes: None, offset: None, ..outer.clone() },
        EventRow { span_id: 23, ret: Some(-1), errno: -1, bytes: None, ..outer },
        EventRow { span_id: 24, tid: 4245, path: Some("/a\"b\x1b[2J".into()), ..inner.clone() },
        EventRow { span_id: 25, ret: Some(-1), errno: 9999, path: None, bytes: None, ..inner.clone() },
        EventRow { span_id: 26, ret: None, flags: crate::vocabulary::flag::UNFINISHED, ..inner },
    ]
}

fn stacks() -> Stacks {
    let frame =
        |name: &str| Frame { address: 16, function: Some(name.to_owned()), module: Some("a.out".into()), line: None };
    let waiting = ThreadStack {
        tid: 4241,
        name: "a.out\x1b[2J".into(),
        state: 'D',
        waits_in: Some("rwsem_down_write_slowpath".into()),
        calls: vec!["hdf5 H5Dwrite".into(), "syscall pwrite64  /data/out.h5".into()],
        kernel: Ok(vec!["rwsem_down_write_slowpath+0x1/0x2".into(), "vfs_write+0x1/0x2".into()]),
        user: Ok(vec![frame("write_block"), frame("main")]),
    };
    let running = ThreadStack {
        tid: 4242,
        name: "io".into(),
        state: 'R',
        waits_in: None,
        calls: Vec::new(),
        kernel: Err("it runs: there is no stack of what does not wait".into()),
        user: Err("it is in no traced call".into()),
    };
    Stacks { threads: vec![waiting, running], more: 3, ..Stacks::default() }
}

#[test]
fn calls_of_a_process_are_followed_as_strace_writes_them() {
    let mut s = Session::new();
    s.keys("f");
    insta::assert_snapshot!("followed_80x24", s.shown());
    assert_eq!(s.state.focused(), Some(TableId::Followed));
    insta::assert_snapshot!("followed_120x40", drawn(&s.snapshot, &mut s.state, 120, 40));
}

#[test]
fn following_stops_and_is_filtered() {
    let mut s = Session::new();
    s.keys("f ");
    assert!(s.shown().contains("PAUSED"));
    let mut more = calls();
    more.push(EventRow { span_id: 99, op: "fsync", ..more[0].clone() });
    s.snapshot.process = Some(ProcessDetail::Calls(more.clone().into()));
    assert!(!s.shown().contains("fsync"), "a paused list stays as it is");
    s.state.on_key(Key::Char(' '), &s.snapshot);
    assert!(s.shown().contains("fsync"));
    s.keys("/layer=nothing\n");
    assert!(drawn(&s.snapshot, &mut s.state, 120, 24).contains("no such layer"));
    s.key(Key::Ctrl('u'));
    s.keys("errno!=0\n");
    let of = s.state.focus().process;
    assert!(matches!(of, Some(ProcessFocus { part: ProcessPart::Calls(Some(ref f)), .. }) if f.text() == "errno!=0"));
    assert_eq!(s.state.filter, None, "the other screens are not filtered");
    assert!(s.shown().contains("filter: errno!=0"));
    s.keys("/");
    s.key(Key::Ctrl('u'));
    s.keys("\n");
    assert!(matches!(s.state.focus().process, Some(ProcessFocus { part: ProcessPart::Calls(None), .. })));
    s.keys("\n");
    assert_eq!((s.state.screen, s.state.span), (Screen::Tree, Some(26)), "Enter looks into the selected call");
    s.keys("\x1b");
    assert_eq!(s.state.screen, Screen::Processes);
    s.keys("\x1b");
    assert_eq!(s.state.focus().process, None);
}

#[test]
fn stacks_of_threads_have_reasons_for_what_is_missing() {
    let mut s = Session::new();
    s.keys("c");
    insta::assert_snapshot!("stacks_80x24", s.shown());
    s.snapshot.process = Some(ProcessDetail::Stacks(Arc::new(Stacks {
        why_not: Some("process 4240 has ended".into()),
        ..Stacks::default()
    })));
    assert!(s.shown().contains("process 4240 has ended"));
    Arc::make_mut(&mut s.snapshot.run).live = false;
    let slow = StackRow {
        layer: "syscall",
        op: "fsync",
        calls: 3,
        time_ns: 45_000_000,
        frames: vec!["wait_on_commit (jbd2)".into(), "flush (a.out, a.c:7)".into()],
        complete: true,
    };
    s.snapshot.process = Some(ProcessDetail::Stacks(Arc::new(Stacks { slow: vec![slow], ..Stacks::default() })));
    let text = s.shown();
    for part in ["where slow calls of", "45.0ms in 3 calls of syscall fsync", "wait_on_commit", "a.c:7"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_signal_is_chosen_and_confirmed() {
    let mut s = Session::new();
    s.key(Key::F(9));
    insta::assert_snapshot!("signals_80x24", s.shown());
    assert_eq!(s.keys("kkkkkk\n"), Effect::None);
    insta::assert_snapshot!("signal_confirmed_80x24", s.shown());
    // The rows may change meanwhile: the process stays.
    Arc::make_mut(&mut s.snapshot.processes).rows.reverse();
    let sent = Effect::Command(Command::Signal { process_ix: 1, pid: 4240, signal: Signal::SIGKILL });
    assert_eq!(s.keys("y"), sent);
    for no in ["Kn", "K\n\x1b", "K\nn", "K\n\n"] {
        assert_eq!((s.keys(no), s.state.popup), (Effect::None, None), "{no:?}");
    }
    s.key(Key::F(9));
    s.keys(&"j".repeat(40));
    assert!(s.shown().contains("> 31 SIGSYS"), "{}", s.shown());
    s.keys(&"k".repeat(40));
    assert!(s.shown().contains(">  1 SIGHUP"), "{}", s.shown());
}

#[test]
fn stacks_are_asked_for_only_where_they_are_shown() {
    let mut s = Session::new();
    assert_eq!(s.state.focus().stacks_of(), None);
    s.keys("c");
    assert_eq!(s.state.focus().stacks_of().map(|of| of.pid), Some(4240));
    for screen in Screen::ALL.into_iter().filter(|screen| *screen != Screen::Processes) {
        s.state.screen = screen;
        assert_eq!(s.state.focus().process, None, "{screen:?}");
    }
    s.state.screen = Screen::Processes;
    assert_eq!(s.state.focus().stacks_of().map(|of| of.pid), Some(4240), "they are there again");
    s.keys("f");
    assert_eq!(s.state.focus().stacks_of(), None);
}

#[test]
fn what_gets_no_signal_has_the_reason() {
    let refused = |change: &dyn Fn(&mut Session)| {
        let mut s = Session::new();
        change(&mut s);
        s.shown();
        s.key(Key::F(9));
        assert_eq!(s.state.popup, None);
        s.state.messages.last().unwrap().1.clone()
    };
    let recorded = refused(&|s| Arc::make_mut(&mut s.snapshot.run).live = false);
    assert!(recorded.contains("a recording"), "{recorded}");
    let first = |s: &mut Session, change: &dyn Fn(&mut ProcessRow)| {
        change(&mut Arc::make_mut(&mut s.snapshot.processes).rows[0]);
    };
    assert!(refused(&|s| first(s, &|r| r.end_ns = Some(1))).contains("has ended"));
    assert!(refused(&|s| first(s, &|r| r.host = Some("elsewhere".into()))).contains("on this node only"));
    let several = refused(&|s| {
        s.state.grouping = Grouping::Container;
    });
    assert!(several.contains("several processes"), "{several}");
    let none = refused(&|s| Arc::make_mut(&mut s.snapshot.processes).rows.clear());
    assert!(none.contains("no process is selected"), "{none}");
}

#[test]
fn the_output_of_the_command_is_below_every_screen() {
    let mut s = Session::new().with_output(None);
    insta::assert_snapshot!("output_80x24", s.shown());
    for screen in Screen::ALL {
        s.state.screen = screen;
        assert!(s.shown().contains("writing /data/\\x1b[31mout.h5"), "{screen:?}: {}", s.shown());
    }
    s.keys("O");
    insta::assert_snapshot!("output_alone_80x24", s.shown());
    assert_eq!(s.state.focused(), Some(TableId::Output));
    s.keys("O");
    assert!(!s.shown().contains("step 2"));
    s.keys("OO\x1b");
    assert_eq!(s.state.output, OutputPane::Part);
    let mut ended = Session::new().with_output(Some("exit status 3"));
    assert!(ended.shown().contains("which has ended: exit status 3"));
}

#[test]
fn every_size_is_drawn_with_all_of_it() {
    for keys in ["", "f", "c", "O", "fO", "cOO", "K", "K\n", "f\te"] {
        for (width, height) in [(1, 1), (40, 10), (60, 12), (80, 24), (200, 60)] {
            for none in [false, true] {
                let mut s = Session::new().with_output(None);
                s.keys(keys);
                if none {
                    s.snapshot = Snapshot { output: Some(Arc::default()), ..Snapshot::default() };
                }
                drawn(&s.snapshot, &mut s.state, width, height);
            }
        }
    }
}

#[test]
fn what_is_typed_goes_to_the_command_while_it_runs() {
    let typed = |bytes: &[u8]| Effect::Command(Command::Type(bytes.to_vec()));
    let mut s = Session::new().with_output(None);
    assert_eq!(s.key(Key::Ctrl('c')), typed(b"\x03"));
    assert_eq!(s.keys("! yes \n"), typed(b" yes \r"));
    s.keys("!");
    assert_eq!(s.key(Key::Ctrl('d')), typed(b"\x04"));
    assert_eq!(s.state.prompt, None);
    s = s.with_output(Some("signal 2 (SIGINT)"));
    s.keys("!");
    assert_eq!(s.state.prompt, None);
    assert_eq!(s.key(Key::Ctrl('c')), Effect::Quit);
}
