//! A snapshot by hand, and frames as text, for tests.

mod extreme;
#[allow(clippy::unwrap_used)]
mod recorded;

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::analysis::findings::{Evidence, Finding, Findings, NotEvaluated, Severity};
use crate::inflight::{Frame, InFlight, Open, Operation, OperationKind};
use crate::summary::view::*;
use crate::tui::frame;
use crate::tui::state::State;
use crate::vocabulary::{Kind, Layer};

fn sums(calls: i64, written: i64, ms: i64) -> Sums {
    Sums { calls, bytes_written: written, dur_ns: ms * 1_000_000, self_ns: ms * 500_000, ..Sums::default() }
}

fn latency() -> Percentiles {
    Percentiles { p50: 1_200_000, p90: 5_000_000, p95: 9_000_000, p99: 31_000_000, max: 60_000_000 }
}

fn layer_row(layer: Layer, sums: Sums, share: f64) -> LayerRow {
    LayerRow {
        layer: Some(layer),
        sums,
        calls_per_s: sums.calls as f64,
        written_per_s: sums.bytes_written as f64,
        self_share: share,
        latency: Some(latency()),
        covered: true,
        ..LayerRow::default()
    }
}

/// HDF5 over MPI-IO over system calls, of which some fail; `NetCDF` is not there.
fn layer_rows() -> Vec<LayerRow> {
    let mut failing = layer_row(Layer::Syscall, sums(96, 8 << 20, 200), 0.7);
    failing.sums.errors = 3;
    failing.lost = 12;
    vec![
        LayerRow {
            layer: Some(Layer::Netcdf),
            why_not: Some("no traced process mapped such a library".into()),
            ..LayerRow::default()
        },
        layer_row(Layer::Hdf5, sums(32, 8 << 20, 400), 0.1),
        layer_row(Layer::Mpiio, sums(16, 8 << 20, 380), 0.2),
        failing,
        layer_row(Layer::Block, sums(20, 9 << 20, 0), 0.0),
    ]
}

fn process_row(ix: i32, ms: i64) -> ProcessRow {
    ProcessRow {
        process_ix: ix,
        pid: 4239 + ix,
        rank: Some(ix - 1),
        command: "./a\x1b[31m.out \u{202e}in.nc".into(),
        threads: 2,
        sums: sums(16, 4 << 20, ms),
        write_ns: ms * 900_000,
        self_by_layer: vec![(Layer::Syscall, ms * 700_000), (Layer::Hdf5, ms * 300_000)],
        heat: (0..30).map(|i| HeatCell { bytes: 1, dur_ns: if i % 7 < 2 { ms * 10_000 } else { 0 } }).collect(),
        ..ProcessRow::default()
    }
}

fn file_row(id: i32, path: &str, ms: i64) -> FileRow {
    FileRow {
        file_id: id,
        path: path.into(),
        sums: sums(48, 4 << 20, ms),
        size: Some(4 << 20),
        placed: 40,
        sequential: 30,
        consecutive: 20,
        small: 5,
        latency: Some(latency()),
        writers: 2,
        top_layer: Some(Layer::Hdf5),
        device_bytes: 5 << 20,
        ..FileRow::default()
    }
}

fn event_row(id: i64, parent: Option<i64>, depth: i8, layer: Layer, op: &'static str) -> EventRow {
    EventRow {
        span_id: id,
        parent_id: parent,
        root_id: 10,
        depth,
        layer,
        op,
        kind: Kind::Write,
        process_ix: 1,
        pid: 4240,
        tid: 4240,
        rank: Some(0),
        start_ns: 1_000_000_000 + id * 1000,
        dur_ns: 250_000,
        self_ns: 100_000,
        file_id: Some(1),
        path: Some("/data/out.h5".into()),
        offset: Some(4096),
        bytes: Some(65536),
        req_bytes: Some(65536),
        miss_bytes: None,
        ret: Some(65536),
        errno: 0,
        flags: 0,
    }
}

fn status() -> Status {
    Status {
        events: 182_000,
        events_per_s: 1820.0,
        lost: 12,
        lost_by_layer: vec![(Some(Layer::Syscall), 12)],
        ring_fill: Some(0.12),
        own_cpu: Some(0.008),
        own_memory: Some(120 << 20),
        probes_attached: 315,
        probes: 316,
        processes: 2,
        ..Status::default()
    }
}

fn overview() -> Overview {
    Overview {
        layers: layer_rows(),
        chain: vec![
            ChainStep { layer: None, bytes_written: 8 << 20, ratio: 1.0, ..ChainStep::default() },
            ChainStep { layer: Some(Layer::Syscall), bytes_written: 8 << 20, ratio: 1.0, ..ChainStep::default() },
            ChainStep { layer: Some(Layer::Block), bytes_written: 9 << 20, ratio: 1.125, ..ChainStep::default() },
        ],
        imbalance: Some(Imbalance {
            layer: "all",
            ranks: 2,
            max_ns: 900_000_000,
            mean_ns: 5e8,
            max_to_mean: 1.8,
            bytes_max_to_mean: Some(1.0),
            slowest: 1,
        }),
        ..Overview::default()
    }
}

/// Two ranks that write a file through HDF5; one of them is slow. Names are hostile.
pub fn snapshot() -> Snapshot {
    Snapshot {
        run: Arc::new(RunHeader { live: true, title: "mpirun -np 2 ./a\x1b[31m.out".into(), ..RunHeader::default() }),
        kept: Window { from_ns: 0, to_ns: 83_000_000_000 },
        window: Window { from_ns: 0, to_ns: 83_000_000_000 },
        status: status(),
        history: Arc::new(History {
            width_ns: 1_000_000_000,
            layers: vec![(Layer::Hdf5, (0..60).map(|i| sums(i % 9, i % 9 * 1000, i)).collect())],
            ..History::default()
        }),
        overview: Arc::new(overview()),
        processes: Arc::new(Processes {
            rows: vec![process_row(1, 20), process_row(2, 180)],
            heat_width_ns: 1_000_000_000,
            ..Processes::default()
        }),
        files: Arc::new(Files {
            rows: vec![
                file_row(1, "/data/out.h5", 120),
                file_row(2, "/data/\x1b]0;owned\x07/שלום.nc", 60),
                file_row(3, "/data/日本語のファイル.h5", 20),
            ],
            other: None,
        }),
        events: Arc::new(Events {
            rows: vec![
                event_row(11, Some(10), 1, Layer::Mpiio, "MPI_File_write_at_all"),
                event_row(10, None, 0, Layer::Hdf5, "H5Dwrite"),
                event_row(13, Some(10), 2, Layer::Syscall, "pwrite64"),
            ],
            ..Events::default()
        }),
        findings: Arc::new(found()),
        inflight: Some(Arc::new(InFlight { at_ns: 83_000_000_000, operations: vec![stuck()] })),
        ..Snapshot::default()
    }
}

/// A cause with its evidence.
fn found() -> Findings {
    let finding = Finding {
        rule: "sync-per-record",
        severity: Severity::Critical,
        title: "1204 calls of fdatasync, 1.29 ms each, /data/\u{202e}a.db".to_owned(),
        seconds: Some(1.55),
        share: Some(0.84),
        gain_low_s: Some(1.4),
        gain_high_s: Some(1.5),
        advice: "Flush once for many records.".to_owned(),
        evidence: Evidence {
            spans: vec![77],
            files: vec!["/data/日本語のファイル.h5".to_owned()],
            ..Evidence::default()
        },
        sql: "FROM spans WHERE kind = 'sync'".to_owned(),
    };
    let not_evaluated = vec![NotEvaluated { rule: "lock-wait", why: "layer syscall is not covered".to_owned() }];
    Findings { findings: vec![finding], not_evaluated, unexplained_s: 0.1, calls_s: 1.7, looked_at: 29, trusted: true }
}

/// A write that waits for a lock.
fn stuck() -> Operation {
    let call = |id, layer, op: &str, file: Option<&str>| Open {
        id,
        layer,
        op: op.to_owned(),
        kind: Kind::Write,
        start_ns: 60_000_000_000 + id,
        file: file.map(str::to_owned),
        bytes: Some(1 << 20),
        offset: Some(0),
    };
    let frame = |name: &str| Frame { address: 16, function: Some(name.to_owned()), module: None, line: None };
    Operation {
        kind: OperationKind::Calls,
        id: 2,
        start_ns: 60_000_000_001,
        age_ns: 23_000_000_000,
        pid: 4241,
        tid: 4241,
        comm: "a.out".into(),
        rank: Some(1),
        calls: vec![call(1, Layer::Hdf5, "H5Dwrite", None), call(2, Layer::Syscall, "pwrite64", Some("/data/out.h5"))],
        kernel: vec![frame("rwsem_down_write_slowpath"), frame("ext4_buffered_write_iter"), frame("vfs_write")],
        user: Vec::new(),
    }
}

/// A frame as lines of text.
pub fn drawn(snapshot: &Snapshot, state: &mut State, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    // What is selected is known after the first frame.
    frame::draw(&mut Buffer::empty(area), snapshot, state);
    let mut buf = Buffer::empty(area);
    frame::draw(&mut buf, snapshot, state);
    text_of(&buf)
}

/// What a terminal would show.
pub fn text_of(buf: &Buffer) -> String {
    use unicode_width::UnicodeWidthStr as _;
    let mut out = String::new();
    for y in 0..buf.area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < buf.area.width {
            let symbol = buf[(x, y)].symbol();
            line += symbol;
            x += symbol.width().max(1) as u16;
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}
