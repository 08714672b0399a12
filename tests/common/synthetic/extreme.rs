//! A dataset whose counts, sizes and times are beyond all bounds.

use super::trace::{Trace, meta, sums};
use iotrace_bpf::rows::{Block, FileRollup, Hist, Loss, Rollup, Row, Span};
use iotrace_bpf::vocabulary::{Kind, Layer};

/// Rows with numbers as bytes that are not theirs may have them.
pub fn rows(aggregate: bool) -> Vec<Row> {
    let mut t = Trace::default();
    if aggregate {
        t.row(meta("aggregate", "yes"));
    }
    let mut values = [i64::MAX, i64::MIN, -1, 1 << 62].into_iter().cycle();
    for n in 0..40 {
        let mut next = || values.next().unwrap();
        let kind = [Kind::Read, Kind::Write, Kind::Open, Kind::Meta][n % 4];
        let layer = [Layer::Syscall, Layer::Hdf5, Layer::Stdio][n % 3];
        let at = t.call(1 + n as u32 % 3, None, (layer, "read", kind), 0, 10);
        t.request(n as i64, at, ("read", "sync"), i32::MAX, 10);
        t.link(n as i64, at, next(), "direct");
        let span = t.edit(at);
        let changed = Span { start_ns: next(), dur_ns: next(), self_ns: next(), file_id: Some(1), ..span.clone() };
        let moved = (Some(next()), Some(next()), Some(next()), Some(next()));
        *span = Span { offset: moved.0, bytes: moved.1, req_bytes: moved.2, miss_bytes: moved.3, ..changed };
        let times = (next(), next(), next(), Some(next()));
        let lists = || Some(vec![i64::MAX; 10]);
        if let Row::FileRollup(row) = sums(1, 0) {
            let row =
                FileRollup { layer, kind, from_ns: times.0, to_ns: times.1, calls: next(), errors: next(), ..*row };
            let row =
                FileRollup { bytes: next(), req_bytes: next(), dur_ns: next(), self_ns: next(), max_ns: next(), ..row };
            let row =
                FileRollup { sequential: next(), consecutive: next(), miss_bytes: next(), other_sizes: next(), ..row };
            let row = FileRollup { sizes: lists(), durations: lists(), common_size_calls: lists(), ..row };
            let row = FileRollup { common_stride_calls: lists(), common_sizes: lists(), ..row };
            t.row(Row::FileRollup(Box::new(row)));
        }
        let rollup =
            Rollup { t_ns: next(), layer, op: "read", kind, process_ix: 1, pid: 1, rank: None, calls: next(), ..NONE };
        t.row(Row::Rollup(Rollup { bytes: next(), req_bytes: next(), dur_ns: next(), self_ns: next(), ..rollup }));
        t.row(Row::Hist(Hist { t_ns: next(), layer, op: "read", what: "latency", bucket: i16::MAX, n: next() }));
        t.row(Row::Hist(Hist { t_ns: next(), layer, op: "read", what: "latency", bucket: n as i16, n: i64::MAX }));
        t.row(Row::Loss(Loss {
            t_ns: next(),
            layer: Some(layer),
            cpu: None,
            place: "ring",
            process_ix: None,
            count: next(),
        }));
        t.row(Row::Loss(Loss {
            t_ns: 0,
            layer: Some(layer),
            cpu: None,
            place: "ring",
            process_ix: None,
            count: i64::MAX,
        }));
    }
    let blocks = |row| match row {
        Row::Block(row) => {
            let mut next = || values.next().unwrap();
            let row =
                Block { queue_ns: next(), issue_ns: next(), dur_ns: Some(next()), insert_ns: Some(next()), ..row };
            Row::Block(Block { sector: next(), qdepth: i16::MAX, ..row })
        }
        row => row,
    };
    t.finish().into_iter().map(blocks).collect()
}

const NONE: Rollup = Rollup {
    t_ns: 0,
    layer: Layer::Syscall,
    op: "read",
    kind: Kind::Read,
    process_ix: 1,
    pid: 1,
    rank: None,
    calls: 0,
    bytes: 0,
    req_bytes: 0,
    dur_ns: 0,
    self_ns: 0,
    max_ns: i64::MAX,
    errors: i64::MAX,
};
