//! Runs that are made up.

use crate::event::FileKey;
use crate::rows::{Block, Coverage, File, Handle, Meta, Metric, Mount, Process, Row, Span, span_id};
use crate::vocabulary::{Kind, Layer};
use crate::whatif::condition::Condition;
use crate::whatif::{Answer, answer};

pub const MS: i64 = 1_000_000;

/// A run of so many ms with these calls.
pub struct Made {
    pub rows: Vec<Row>,
    layers: Vec<Layer>,
}

impl Made {
    pub fn of(run_ms: i64, spans: impl IntoIterator<Item = Span>) -> Self {
        let mut rows: Vec<Row> = spans.into_iter().map(|span| Row::Span(Box::new(span))).collect();
        for thread in 0..9 {
            let process = Process { process_ix: thread, pid: thread, ..Process::placeholder(thread, 0) };
            rows.push(Row::Process(Box::new(process)));
        }
        let made = Self { rows, layers: vec![Layer::Syscall, Layer::Block] };
        made.meta("end_ns", &(run_ms * MS).to_string())
    }

    #[must_use]
    pub fn with(mut self, rows: impl IntoIterator<Item = Row>) -> Self {
        self.rows.extend(rows);
        self
    }

    #[must_use]
    pub fn meta(self, key: &str, value: &str) -> Self {
        self.with([Row::Meta(Meta { key: key.to_owned(), value: value.to_owned() })])
    }

    /// The tracer took so much of the run.
    #[must_use]
    pub fn traced(self, run_ms: i64, tracing_ms: i64) -> Self {
        let row = |ms: i64, value: i64| {
            let (name, label) = (crate::analysis::trace::share::TRACING_NS, None);
            Row::Metric(Metric { t_ns: ms * MS, name, label, value: (value * MS) as f64 })
        };
        self.with([row(0, 0), row(run_ms, tracing_ms)])
    }

    /// Calls waited so long for probes of libraries.
    #[must_use]
    pub fn held(self, ms: i64) -> Self {
        let (name, label) = (crate::analysis::trace::share::HELD_NS, None);
        self.with([Row::Metric(Metric { t_ns: 0, name, label, value: (ms * MS) as f64 })])
    }

    /// Only these layers were recorded.
    #[must_use]
    pub fn only(self, layers: &[Layer]) -> Self {
        Self { layers: layers.to_vec(), ..self }
    }

    pub fn answer(mut self, conditions: &[Condition]) -> Result<Answer, String> {
        for layer in &self.layers {
            self.rows.push(Row::Coverage(Coverage {
                layer: *layer,
                target: "kernel".to_owned(),
                symbol: "hook".to_owned(),
                tier: Some("tp_btf"),
                status: "attached",
                reason: None,
                offset: None,
                insn: None,
            }));
        }
        answer(&mut self.rows, conditions).map_err(|error| format!("{error:#}"))
    }

    /// Seconds of the run with one condition, at least and at most.
    pub fn range(self, condition: Condition) -> (f64, f64) {
        let range = self.answer(&[condition]).unwrap().together;
        (range.low_s, range.high_s)
    }
}

/// A system call of a thread on file 1, by which process it is made as well: number, start and duration in ms. All of it is on a CPU.
pub fn call(thread: u32, seq: u32, (op, kind): (&'static str, Kind), start: i64, ms: i64) -> Span {
    let at = (start * MS, ms * MS);
    let span = Span::new(span_id(thread, seq), (Layer::Syscall, op, kind), thread as i32, at);
    Span { pid: thread as i32, file_id: Some(1), cpu_ns: Some(ms * MS), ..span }
}

/// The same that reads or writes so much, of which so many ms are on a CPU.
pub fn moves(mut span: Span, (offset, bytes): (i64, i64), cpu_ms: i64) -> Span {
    (span.offset, span.bytes, span.req_bytes) = (Some(offset), Some(bytes), Some(bytes));
    span.cpu_ns = Some(cpu_ms * MS);
    span.miss_bytes = (span.kind == Kind::Read).then_some(0);
    span
}

pub fn handle(id: i32, mode: i32) -> Row {
    Row::Handle(Handle {
        handle_id: id,
        parent_handle_id: None,
        layer: Layer::Syscall,
        file_id: Some(1),
        object_id: None,
        process_ix: 1,
        pid: 1,
        raw: 3,
        mode: Some(mode),
        flags: 0,
        comm_size: None,
        comm_ranks: None,
        implementation: None,
        hints: None,
        open_span_id: None,
        close_span_id: None,
        start_ns: 0,
        end_ns: None,
    })
}

pub fn file(id: i32, mount_id: i32) -> Row {
    let file = File::placeholder(id, FileKey { dev: 1, ino: id as u64, generation: 0 });
    Row::File(Box::new(File { mount_id: Some(mount_id), ..file }))
}

pub fn mount(id: i32, device: &str, disk: &str) -> Row {
    Row::Mount(Box::new(Mount {
        mount_id: id,
        mount_ns: 1,
        path: "/data".to_owned(),
        root: "/".to_owned(),
        fstype: "ext4".to_owned(),
        scope: "local",
        source: format!("/dev/{device}"),
        server: None,
        options: String::new(),
        super_options: String::new(),
        lower: None,
        upper: None,
        dev: i64::from(id),
        device: Some(device.to_owned()),
        disk: Some(disk.to_owned()),
        model: None,
        block_size: None,
        opt_io_size: None,
        rotational: None,
        scheduler: None,
    }))
}

/// A request to a device: by its number and name, for so many ms; handed down by another device.
pub fn request(id: i64, (dev, device): (i32, &str), (start, ms): (i64, i64), upper_dev: Option<i32>) -> Row {
    Row::Block(Block {
        req_id: id,
        dev,
        device: Some(device.to_owned()),
        op: "read",
        class: "sync",
        req_flags: 0,
        sector: id * 8,
        bytes: 4096,
        pid: 1,
        queue_ns: start * MS,
        insert_ns: None,
        issue_ns: start * MS,
        dur_ns: Some(ms * MS),
        status: Some(0),
        nr_bios: 1,
        merges: 0,
        splits: 0,
        upper_dev,
        upper_sector: None,
        qdepth: 1,
    })
}
