//! Datasets made at random, for tests that compare what is computed from them.

use std::path::{Path, PathBuf};

use crate::common::synthetic::trace::{Trace, file, handle, hooks, meta, process};
use iotrace_bpf::analysis::speed::{EARLIER_CALLS, SPEEDS};
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::{CallPath, Metric, Row, Stack};
use iotrace_bpf::vocabulary::{Kind, Layer};

/// Three nodes whose ids are all the same numbers. That of the second one has a clock that is 40 ms behind, the third 5 us.
pub const NODES: [(&str, i64); 3] = [("node1", 0), ("node2", 40_000_000), ("node3", 5_000)];
/// When each trace began, in ns since 1970, by a clock that is right.
pub const BEGAN: i64 = 1_735_689_600_000_000_000;

pub type Op = (Layer, &'static str, Kind);

pub const TOP: [Op; 9] = [
    (Layer::App, "step", Kind::Other),
    (Layer::App, "main", Kind::Other),
    (Layer::App, "put", Kind::Write),
    (Layer::Hdf5, "H5Dwrite", Kind::Write),
    (Layer::Hdf5, "H5Dread", Kind::Read),
    (Layer::Hdf5, "H5Fclose", Kind::Close),
    (Layer::Stdio, "fwrite", Kind::Write),
    (Layer::Syscall, "openat", Kind::Open),
    (Layer::Syscall, "read", Kind::Read),
];
const BELOW: [Op; 11] = [
    (Layer::App, "step", Kind::Other),
    (Layer::App, "inner", Kind::Other),
    (Layer::App, "put", Kind::Write),
    (Layer::Hdf5, "H5Dwrite", Kind::Write),
    (Layer::Mpiio, "MPI_File_write_at", Kind::Write),
    (Layer::Mpiio, "MPI_File_read_at", Kind::Read),
    (Layer::Stdio, "fwrite_unlocked", Kind::Write),
    (Layer::Syscall, "pwrite64", Kind::Write),
    (Layer::Syscall, "read", Kind::Read),
    (Layer::Syscall, "fsync", Kind::Sync),
    (Layer::Syscall, "fstat", Kind::Meta),
];

/// Numbers that look random and are the same every time (xorshift).
pub struct Dice(u64);

impl Dice {
    pub fn below(&mut self, n: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as i64
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: i64) -> bool {
        self.below(n) == 0
    }
}

pub struct Maker {
    pub trace: Trace,
    pub dice: Dice,
    requests: i64,
}

impl Maker {
    /// A call and, up to a depth, calls inside it, properly nested.
    fn tree(&mut self, thread: u32, parent: Option<usize>, op: Op, start: i64, dur: i64, depth: u32) {
        let at = self.trace.call(thread, parent, op, start, dur);
        let bytes = self.dice.below(1 << 20);
        let (unknown, short, failed) = (self.dice.once_in(5), self.dice.once_in(7), self.dice.once_in(11));
        let (file, offset) = (self.dice.below(12) as i32, self.dice.below(1 << 30));
        let nameless = self.dice.once_in(6);
        let probe = self.dice.once_in(2).then(|| self.dice.below(dur / 8 + 1));
        let span = self.trace.edit(at);
        span.probe_ns = probe;
        span.file_id = (!nameless).then_some(file);
        span.handle_id = match op.0 {
            Layer::Hdf5 => Some(file),
            Layer::Syscall => Some(file + 100),
            _ => None,
        };
        if matches!(op.2, Kind::Read | Kind::Write) {
            span.req_bytes = (!unknown).then_some(bytes);
            span.bytes = (!unknown && !failed).then_some(if short { bytes / 2 } else { bytes });
            span.offset = Some(offset);
        }
        if failed {
            span.errno = if op.0 == Layer::Syscall { [2, 5, 13][file as usize % 3] } else { -1 };
        }
        span.path_id = (!nameless).then_some(file + 1);
        if at.is_multiple_of(3) {
            // Like it there were enough in earlier runs.
            let span = self.trace.edit(at);
            (span.speed, span.usual_ns) = (Some(SPEEDS[at % SPEEDS.len()].0), Some(dur / 2 + 1));
        }
        if self.dice.once_in(40) {
            self.trace.edit(at).stack_id = Some(self.dice.below(40) as i32);
        }
        if self.dice.once_in(9) {
            self.trace.edit(at).layer_ns = Some(self.dice.below(dur + 1));
        }
        if op.0 == Layer::Syscall {
            let mut left = dur - probe.unwrap_or(0);
            let mut part = |dice: &mut Dice| {
                let ns = dice.below(left.max(0) + 1);
                left -= ns;
                Some(ns).filter(|_| !dice.once_in(9))
            };
            let parts: [Option<i64>; 10] = std::array::from_fn(|_| part(&mut self.dice));
            let span = self.trace.edit(at);
            [span.cpu_ns, span.runq_ns, span.throttle_ns, span.lock_ns, span.writeback_ns] =
                *parts.first_chunk().unwrap();
            [span.journal_ns, span.flush_ns, span.devqueue_ns, span.device_ns, span.remote_ns] =
                *parts.last_chunk().unwrap();
            if self.dice.once_in(4) {
                self.request(at);
            }
            return;
        }
        let mut from = start + self.dice.below(dur / 10 + 1);
        while depth < 5 && !self.dice.once_in(4) {
            let len = self.dice.below(dur / 3 + 1);
            if from + len > start + dur {
                break;
            }
            let below = BELOW[self.dice.below(BELOW.len() as i64) as usize];
            self.tree(thread, Some(at), below, from, len, depth + 1);
            from += len + self.dice.below(dur / 20 + 1);
        }
    }

    fn request(&mut self, at: usize) {
        const WHAT: [(&str, &str); 4] =
            [("write", "writeback"), ("write", "sync"), ("read", "readahead"), ("flush", "flush")];
        let what = WHAT[self.dice.below(4) as usize];
        let bytes = if what.0 == "flush" { 0 } else { 4096 * (1 + self.dice.below(64) as i32) };
        let dur = self.dice.below(5_000_000);
        self.requests += 1;
        self.trace.request(self.requests, at, what, bytes, dur);
        if self.dice.once_in(3) {
            // Another call wrote the data.
            let writer = self.dice.below(at as i64 + 1) as usize;
            self.trace.link(self.requests, writer, i64::from(bytes) / 2, "writeback");
        }
    }
}

/// A trace of some 10 000 calls; `ranks` of its processes have a rank.
pub fn random(seed: u64, threads: u32, ranks: u32) -> Vec<Row> {
    made(seed, threads, ranks, 0).trace.finish()
}

/// The same, to be added to; ranks count from the first one.
pub fn made(seed: u64, threads: u32, ranks: u32, first: i32) -> Maker {
    let mut maker = Maker { trace: Trace::default(), dice: Dice(seed), requests: 0 };
    for row in [hooks(1, 2e9), hooks(900_000_000_000, 90e9)].concat() {
        maker.trace.row(row);
    }
    for (label, value) in [("syscall read", 100.0), ("stdio fwrite", 1e6), ("hdf5 H5Dopen", 5.0)] {
        let (t_ns, name, label) = (900_000_000_000, EARLIER_CALLS, Some(label.to_owned()));
        maker.trace.row(Row::Metric(Metric { t_ns, name, label, value }));
    }
    maker.trace.row(meta("command", "random"));
    maker.trace.row(meta("end_ns", "999000000000"));
    for id in 0..12 {
        maker.trace.row(file(id, "/old"));
        maker.trace.row(handle(id, None, Layer::Hdf5, id, None));
        maker.trace.row(handle(id + 100, Some(id), Layer::Syscall, id, None));
        maker.trace.row(file(id, &format!("/data/{id}.h5")));
    }
    // One path is missing; some start nowhere, or in the root directory.
    for id in 1..12 {
        let directory = ["/data/", "/data/sub/", "/", ""][id as usize % 4];
        maker.trace.row(Row::CallPath(CallPath { path_id: id, path: format!("{directory}{id}") }));
    }
    // Some stacks are the same, one is missing.
    for stack_id in 1..40 {
        let frames = vec![format!("function{} (sim)", stack_id % 5), "main (sim)".to_owned()];
        maker.trace.row(Row::Stack(Stack { stack_id, frames }));
    }
    for thread in 0..threads {
        maker.trace.row(process(thread as i32, None));
        if thread < ranks {
            // Two processes to a rank.
            maker.trace.row(process(thread as i32, Some(first + thread as i32 / 2)));
        }
        let mut now = 0;
        for _ in 0..300 {
            let scale = maker.dice.below(7) as u32;
            let dur = maker.dice.below(10i64.pow(scale + 2));
            let op = TOP[maker.dice.below(TOP.len() as i64) as usize];
            maker.tree(thread, None, op, now, dur, 0);
            now += dur + maker.dice.below(1000);
        }
    }
    maker
}

pub fn write(dir: &Path, rows: Vec<Row>) {
    write_of("node1", dir, rows);
}

pub fn write_of(host: &str, dir: &Path, rows: Vec<Row>) {
    let options = Options { path: dir, host, force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    for row in rows {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap();
}

/// A recorded dataset, with the parts that it was stored without because they are empty.
pub fn recorded(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, Vec::new());
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for entry in std::fs::read_dir(fixtures.join(name)).unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, path.join(from.file_name().unwrap())).unwrap();
    }
    (dir, path)
}
