//! Short ways to write events, and to read rows, in tests.
#![allow(clippy::expect_used)]

use crate::catalog::{self, Catalog};
use crate::correlate::{Config, Correlator};
use crate::event::{Call, Enter, Event, FileKey, Sighting, TextKind, Wanted};
use crate::rows::{BlockLink, File, Handle, Row, Span, span_id};

/// A call of catalog row 0 from `start` to `end`.
pub fn call(thread: u32, seq: u32, depth: u8, start: u64, end: u64) -> Call {
    Call {
        spec: 0,
        thread,
        seq,
        depth,
        start,
        dur: end - start,
        probe: 0,
        off_cpu: None,
        cpu: 0,
        status: 0,
        handle: None,
        len: None,
        got: None,
        off: None,
        file: None,
        unfinished: false,
        direct: false,
        truncated: false,
        wanted: Wanted::No,
    }
}

pub fn key(ino: u64) -> FileKey {
    FileKey { dev: 0x10_0001, generation: 1, ino }
}

/// The built-in rows, then two phases, `outer` and `inner`.
pub fn specs() -> Vec<catalog::Row> {
    let mut catalog = Catalog::built_in();
    for phase in ["outer", "inner"] {
        catalog.add_phase(&phase.parse().expect(phase)).expect(phase);
    }
    catalog.rows().to_vec()
}

/// The number of the catalog row of a symbol.
pub fn spec(symbol: &str) -> u16 {
    specs().iter().position(|r| r.symbol == symbol).expect(symbol) as u16
}

/// A run under test, from process 0 with pid 100 and thread 0 with tid 100, ready to use.
pub struct Run {
    pub correlator: Correlator,
    pub out: Vec<Row>,
}

impl Run {
    pub fn new() -> Self {
        Self::of(Config { specs: specs(), ..Config::default() })
    }

    /// In aggregate mode.
    pub fn summing() -> Self {
        Self::of(Config { specs: specs(), aggregate: true, ..Config::default() })
    }

    fn of(config: Config) -> Self {
        let mut run = Self { correlator: Correlator::new(config), out: Vec::new() };
        run.process(0, 0, None);
        run
    }

    /// Process `ix` with pid 100 + ix, and its thread of the same index.
    pub fn process(&mut self, time: u64, ix: u32, parent: Option<u32>) {
        let pid = 100 + ix;
        self.push(Event::Process { time, process: ix, parent, runs: false, pid, ppid: 1, uid: 1000 });
        self.push(Event::Thread {
            time,
            thread: ix,
            process: ix,
            pid,
            tid: pid,
            comm: *b"prog\0\0\0\0\0\0\0\0\0\0\0\0",
        });
    }

    pub fn exec(&mut self, time: u64, process: u32, env: &[&str]) {
        let bytes = |text: &&str| text.as_bytes().to_vec();
        let env = env.iter().map(bytes).collect();
        self.exec_as(time, process, 0, env);
    }

    /// The program of this number.
    pub fn exec_as(&mut self, time: u64, process: u32, program: u32, env: Vec<Vec<u8>>) {
        let (exe, args) = (b"/bin/x".to_vec(), vec![b"x".to_vec()]);
        self.push(Event::Exec { time, process, program, exe, args, env });
    }

    pub fn push(&mut self, event: Event) {
        self.correlator.push(event);
    }

    pub fn call(&mut self, symbol: &str, call: Call) {
        self.push(Event::Call(Call { spec: spec(symbol), ..call }));
    }

    /// The beginning of a phase, whose call follows when it ends.
    pub fn enter(&mut self, symbol: &str, call: &Call) {
        let Call { thread, seq, depth, start, cpu, .. } = *call;
        self.push(Event::Enter(Enter { spec: spec(symbol), thread, seq, depth, start, cpu }));
    }

    /// A path argument of the call.
    pub fn text(&mut self, call: &Call, what: TextKind, text: &str) {
        let time = call.start + call.dur;
        let (thread, seq) = (call.thread, call.seq);
        self.push(Event::Text {
            time,
            thread,
            seq,
            what,
            bytes: text.as_bytes().to_vec(),
            root: 0,
            cut: false,
            operation: false,
        });
    }

    pub fn file(&mut self, time: u64, ino: u64, path: &str) {
        let seen = Sighting { path: path.as_bytes().to_vec(), links: 1, ..Sighting::default() };
        self.push(Event::File { time, key: key(ino), pid: 0, seen });
    }

    /// `openat` of an absolute path, with the events that come with it.
    pub fn openat(&mut self, call: Call, path: &str, ino: u64, fd: u64) {
        self.file(call.start + call.dur, ino, path);
        self.text(&call, TextKind::Path, path);
        self.call("openat", Call { handle: Some(fd), file: Some(key(ino)), ..call });
    }

    pub fn finish(mut self) -> Rows {
        self.correlator.finish(1_000_000, &mut self.out);
        Rows(self.out)
    }
}

/// What came out.
pub struct Rows(pub Vec<Row>);

impl Rows {
    pub fn span(&self, thread: u32, seq: u32) -> &Span {
        let id = span_id(thread, seq);
        let found =
            self.0.iter().find_map(|r| if let Row::Span(s) = r { Some(s).filter(|s| s.span_id == id) } else { None });
        found.unwrap_or_else(|| panic!("no span {thread}.{seq}"))
    }

    /// The last row of a handle.
    pub fn handle(&self, id: i32) -> &Handle {
        let rows = self.0.iter().rev();
        let mut handles = rows.filter_map(|r| if let Row::Handle(h) = r { Some(h) } else { None });
        handles.find(|h| h.handle_id == id).unwrap_or_else(|| panic!("no handle {id}"))
    }

    /// The last row of a file.
    pub fn file(&self, id: i32) -> &File {
        let rows = self.0.iter().rev();
        let mut files = rows.filter_map(|r| if let Row::File(f) = r { Some(f) } else { None });
        files.find(|f| f.file_id == id).unwrap_or_else(|| panic!("no file {id}"))
    }

    pub fn links(&self) -> Vec<BlockLink> {
        self.0.iter().filter_map(|r| if let Row::BlockLink(l) = r { Some(l.clone()) } else { None }).collect()
    }

    pub fn losses(&self) -> Vec<(&'static str, i64)> {
        self.0.iter().filter_map(|r| if let Row::Loss(l) = r { Some((l.place, l.count)) } else { None }).collect()
    }
}
