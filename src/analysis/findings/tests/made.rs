//! Runs that are made up, for tests of rules.

use super::{MS, call, covered};
use crate::analysis::findings::*;
use crate::analysis::nesting::Nesting;
use crate::analysis::trace::source::Hosts;
use crate::event::FileKey;
use crate::rows::{File, Handle, Mount, Process, Row};
use crate::vocabulary::Kind;

const ALL: [Layer; 7] =
    [Layer::Syscall, Layer::Block, Layer::Stdio, Layer::Mpiio, Layer::Mpi, Layer::Hdf5, Layer::Pnetcdf];

/// A run that is made up.
#[derive(Default)]
pub struct Made {
    pub rows: Vec<Row>,
    pub spans: Vec<Span>,
    pub blocks: Vec<(Block, Vec<BlockBytes>)>,
    pub sums: Vec<FileRollup>,
    pub aggregate: bool,
    /// What is kept of each kind.
    pub most: Option<usize>,
    /// The first ids of files of datasets, and their hosts.
    pub hosts: Vec<(i64, &'static str)>,
}

impl Made {
    pub fn of(spans: impl IntoIterator<Item = Span>) -> Self {
        Self { spans: spans.into_iter().collect(), ..Self::default() }
    }

    pub fn find(mut self, run_ms: i64) -> Findings {
        for thread in 0..9 {
            let process = Process { process_ix: thread, pid: thread, ..Process::placeholder(thread, 0) };
            self.rows.push(Row::Process(Box::new(process)));
        }
        let (mut groups, others) = match self.most {
            Some(most) => (Groups::limited(most), Others::limited(most)),
            None => (Groups::default(), Others::default()),
        };
        let hosts = self.hosts.iter().map(|(first, host)| (*first, (*host).to_owned()));
        groups.known().same = Same::of(&Hosts(hosts.collect()));
        let nodes: std::collections::BTreeSet<&str> = self.hosts.iter().map(|(_, host)| *host).collect();
        let mut collect = Collect::with(&mut self.rows, groups, others).unwrap();
        let mut nesting = Nesting::default();
        for span in &self.spans {
            let around = nesting.of(span);
            collect.span(span, &around);
        }
        self.sums.iter().for_each(|row| collect.sums(row));
        self.blocks.iter().for_each(|(block, _)| collect.block(block));
        self.blocks.iter().flat_map(|(_, parts)| parts).for_each(|part| collect.bytes(part));
        let (coverage, losses) = (covered(&ALL), Losses::default());
        let trace = Trace {
            duration_ns: run_ms * MS,
            tracing: None,
            coverage: &coverage,
            losses: &losses,
            aggregate: self.aggregate,
            nodes: nodes.len().max(1),
        };
        collect.finish(&mut self.rows, &trace, &Config::default()).unwrap()
    }

    /// The finding of a rule.
    pub fn find_one(self, rule: &str, run_ms: i64) -> Option<Finding> {
        self.find(run_ms).findings.into_iter().find(|finding| finding.rule == rule)
    }
}

/// A write of a rank, from an offset on, of so many bytes.
pub fn written(rank: i32, seq: u32, (offset, bytes): (i64, i64), start: i64, ms: i64) -> Span {
    let (offset, moved) = (Some(offset), Some(bytes));
    let call = call(rank as u32 + 1, seq, ("pwrite64", Kind::Write), start, ms);
    Span { rank: Some(rank), offset, bytes: moved, req_bytes: moved, ..call }
}

/// All of the time of a call waits for a device.
pub fn for_device(span: &Span) -> Span {
    Span { cpu_ns: Some(0), device_ns: Some(span.dur_ns), ..span.clone() }
}

/// A request, and the bytes of a file of process 1 in it.
pub fn request(
    id: i64,
    (op, class): (&'static str, &'static str),
    (at, ms): (i64, i64),
    bytes: i32,
) -> (Block, Vec<BlockBytes>) {
    let block = Block {
        req_id: id,
        dev: 1 << 20,
        device: None,
        op,
        class,
        req_flags: 0,
        sector: id * 8,
        bytes,
        pid: if class == "writeback" { 900 } else { 1 },
        queue_ns: at * MS,
        insert_ns: None,
        issue_ns: at * MS,
        dur_ns: Some(ms * MS),
        status: Some(0),
        nr_bios: 1,
        merges: 0,
        splits: 0,
        upper_dev: None,
        upper_sector: None,
        qdepth: 1,
    };
    let part = BlockBytes {
        req_id: id,
        process_ix: Some(1),
        file_id: Some(1),
        span_id: None,
        bytes: i64::from(bytes),
        cgroup: None,
        known_by: "page",
    };
    (block, vec![part])
}

pub fn handle(id: i32) -> Handle {
    Handle {
        handle_id: id,
        parent_handle_id: None,
        layer: Layer::Syscall,
        file_id: Some(id),
        object_id: None,
        process_ix: 1,
        pid: 1,
        raw: 3,
        mode: None,
        flags: 0,
        comm_size: None,
        comm_ranks: None,
        implementation: None,
        hints: None,
        open_span_id: None,
        close_span_id: None,
        start_ns: 0,
        end_ns: None,
    }
}

pub fn file(id: i32) -> File {
    File::placeholder(id, FileKey { dev: 1, ino: 1, generation: 0 })
}

pub fn mount(id: i32, fstype: &str, scope: &'static str) -> Mount {
    Mount {
        mount_id: id,
        mount_ns: 1,
        path: "/mnt".to_owned(),
        root: "/".to_owned(),
        fstype: fstype.to_owned(),
        scope,
        source: "mgs@tcp:/fs".to_owned(),
        server: None,
        options: String::new(),
        super_options: String::new(),
        lower: None,
        upper: None,
        dev: 1,
        device: None,
        disk: None,
        model: None,
        block_size: None,
        opt_io_size: None,
        rotational: None,
        scheduler: None,
    }
}
