//! Makes traces by hand: calls nest, and what follows from nesting is filled in.

use std::collections::HashMap;

use iotrace_bpf::analysis::trace::share::{HOOKS_NS, TRACING_NS};
use iotrace_bpf::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, FileRollup, Handle, Hist, Loss, Meta, Metric,
    Mount, Object, Process, Rollup, Row, Rpc, SEQ_BITS, Span, Stack, Thread, span_id,
};
use iotrace_bpf::vocabulary::{Kind, Layer};

/// A trace in the making.
#[derive(Default)]
pub struct Trace {
    spans: Vec<Span>,
    next: HashMap<u32, u32>,
    rows: Vec<Row>,
}

impl Trace {
    /// Adds a call of `thread` (which is its own process) inside the call `parent`, and gives its number.
    pub fn call(
        &mut self,
        thread: u32,
        parent: Option<usize>,
        (layer, op, kind): (Layer, &'static str, Kind),
        start_ns: i64,
        dur_ns: i64,
    ) -> usize {
        let seq = self.next.entry(thread).or_default();
        *seq += 1;
        let id = span_id(thread, *seq);
        let mut layer_top = true;
        let mut up = parent;
        while let Some(at) = up {
            layer_top &= self.spans[at].layer != layer;
            up = self.spans[at].parent_id.and_then(|id| self.spans.iter().rposition(|s| s.span_id == id));
        }
        let above = parent.map(|at| &mut self.spans[at]);
        let (parent_id, root_id, depth) = match above {
            Some(above) => {
                above.self_ns -= dur_ns;
                (Some(above.span_id), above.root_id, above.depth + 1)
            }
            None => (None, id, 0),
        };
        self.spans.push(Span {
            parent_id,
            root_id,
            depth,
            layer_top,
            pid: 1000 + thread as i32,
            tid: 1000 + thread as i32,
            ..Span::new(id, (layer, op, kind), thread as i32, (start_ns, dur_ns))
        });
        self.spans.len() - 1
    }

    /// The call, to be changed.
    pub fn edit(&mut self, at: usize) -> &mut Span {
        &mut self.spans[at]
    }

    /// Sets that the call asked for and moved that many bytes of a file.
    pub fn moved(&mut self, at: usize, file: i32, bytes: i64) {
        let span = &mut self.spans[at];
        (span.file_id, span.bytes, span.req_bytes) = (Some(file), Some(bytes), Some(bytes));
    }

    /// Adds a row of another table.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a request of the call, queued for 1000 ns.
    pub fn request(
        &mut self,
        req_id: i64,
        at: usize,
        (op, class): (&'static str, &'static str),
        bytes: i32,
        dur_ns: i64,
    ) {
        let (span_id, root_id, queue_ns) = (self.spans[at].span_id, self.spans[at].root_id, self.spans[at].start_ns);
        self.rows.push(Row::Block(Block {
            req_id,
            dev: 8 << 20,
            op,
            class,
            req_flags: 0,
            sector: req_id * 8,
            bytes,
            pid: self.spans[at].pid,
            queue_ns,
            issue_ns: queue_ns + 1000,
            dur_ns: Some(dur_ns),
            status: Some(0),
            nr_bios: 1,
            device: None,
            insert_ns: None,
            merges: 0,
            splits: 0,
            upper_dev: None,
            upper_sector: None,
            qdepth: 1,
        }));
        self.rows.push(Row::BlockLink(BlockLink { req_id, span_id, root_id, bytes: i64::from(bytes), how: "direct" }));
    }

    /// Links a request to one more call.
    pub fn link(&mut self, req_id: i64, at: usize, bytes: i64, how: &'static str) {
        let (span_id, root_id) = (self.spans[at].span_id, self.spans[at].root_id);
        self.rows.push(Row::BlockLink(BlockLink { req_id, span_id, root_id, bytes, how }));
    }

    /// All rows, other tables first.
    pub fn finish(self) -> Vec<Row> {
        self.rows.into_iter().chain(self.spans.into_iter().map(|span| Row::Span(Box::new(span)))).collect()
    }
}

/// A fact about the run.
pub fn meta(key: &str, value: &str) -> Row {
    Row::Meta(Meta { key: key.to_owned(), value: value.to_owned() })
}

/// A file with a path.
pub fn file(file_id: i32, path: &str) -> Row {
    Row::File(Box::new(File {
        file_id,
        dev: 8 << 20,
        ino: i64::from(file_id),
        generation: 0,
        path: Some(path.to_owned()),
        first_path: None,
        paths: None,
        host_path: None,
        fstype: Some("ext4".to_owned()),
        mount_id: None,
        size_first: None,
        size_last: None,
        blksize: None,
        stripe_count: None,
        stripe_size: None,
        data_dev: None,
        data_ino: None,
        role: "data",
        unlinked: false,
    }))
}

/// A handle of a file.
pub fn handle(handle_id: i32, parent_handle_id: Option<i32>, layer: Layer, file: i32, object_id: Option<i32>) -> Row {
    Row::Handle(Handle {
        handle_id,
        parent_handle_id,
        layer,
        file_id: Some(file),
        object_id,
        process_ix: 0,
        pid: 1000,
        raw: i64::from(handle_id),
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
    })
}

/// A process, of a rank or not.
pub fn process(process_ix: i32, rank: Option<i32>) -> Row {
    Row::Process(Box::new(Process {
        process_ix,
        pid: 1000 + process_ix,
        ppid: 1,
        start_ns: 0,
        end_ns: None,
        exe: Some("/opt/sim".to_owned()),
        cmdline: vec!["sim".to_owned()],
        uid: 1000,
        cgroup: None,
        user: None,
        container: None,
        container_name: None,
        container_image: None,
        unit: None,
        step_id: None,
        rank,
        world_size: rank.map(|_| 2),
        job_id: None,
        exit_code: None,
    }))
}

/// Row `n` of each table that calls and requests do not fill, except for sums; its times are around `now`.
pub fn rest(n: i32, now: i64) -> Vec<Row> {
    let text = |what: &str| format!("{what}{n}");
    let mut rows = verdicts(n).to_vec();
    rows.extend([
        Row::FilePath(FilePath { file_id: 1, path: text("/path"), from_ns: now }),
        Row::CallPath(CallPath { path_id: n, path: text("/named/path") }),
        Row::Stack(Stack {
            stack_id: n,
            frames: vec!["flock_lock (kernel)".to_owned(), text("main (/opt/sim, sim.c:") + ")"],
        }),
        object(n),
        Row::Thread(Thread { thread_ix: n, process_ix: 1, pid: 1001, tid: 1001 + n, comm: text("sim") }),
        mount(n),
        Row::BlockBytes(BlockBytes {
            req_id: i64::from(n),
            process_ix: Some(1),
            file_id: Some(1),
            span_id: None,
            bytes: 512,
            cgroup: None,
            known_by: "mount",
        }),
        Row::Loss(Loss {
            t_ns: now,
            layer: Some(Layer::Mpi),
            cpu: Some(1),
            place: "ring",
            process_ix: None,
            count: i64::from(n),
        }),
        Row::Metric(Metric { t_ns: now, name: "tracer_rss_bytes", label: None, value: 4096.0 }),
        Row::Hist(Hist { t_ns: now, layer: Layer::Mpi, op: "MPI_Bcast", what: "dur", bucket: 7, n: i64::from(n) }),
        rollup(now),
    ]);
    rows
}

fn verdicts(n: i32) -> [Row; 4] {
    let verdict = |layer, symbol: &str, status, reason: Option<&str>| {
        Row::Coverage(Coverage {
            layer,
            target: "/opt/sim".to_owned(),
            symbol: symbol.to_owned(),
            tier: (status == "attached").then_some("uprobe.multi"),
            status,
            reason: reason.map(str::to_owned),
            offset: (!symbol.is_empty()).then_some(i64::from(n)),
            insn: None,
        })
    };
    [
        verdict(Layer::Hdf5, "H5Dwrite", "attached", None),
        verdict(Layer::Hdf5, "H5Dread", "refused", Some("no such function")),
        verdict(Layer::Hdf5, "H5Dread_old", "absent", None),
        verdict(Layer::App, "", "refused", Some("no symbols")),
    ]
}

fn object(n: i32) -> Row {
    Row::Object(Object {
        object_id: n,
        handle_id: Some(1),
        file_id: Some(1),
        name: format!("/dataset{n}"),
        class: "dataset",
        dims: None,
        chunk: None,
        elem_size: None,
        filters: None,
    })
}

fn mount(n: i32) -> Row {
    Row::Mount(Box::new(Mount {
        mount_id: n,
        mount_ns: 1,
        path: format!("/mnt{n}"),
        root: "/".to_owned(),
        fstype: "ext4".to_owned(),
        scope: "local",
        source: "/dev/sda1".to_owned(),
        server: None,
        options: "rw".to_owned(),
        super_options: "rw".to_owned(),
        lower: None,
        upper: None,
        dev: 8 << 20,
        device: None,
        disk: None,
        model: None,
        block_size: None,
        opt_io_size: None,
        rotational: None,
        scheduler: None,
    }))
}

fn rollup(now: i64) -> Row {
    Row::Rollup(Rollup {
        t_ns: now,
        layer: Layer::Mpi,
        op: "MPI_Bcast",
        kind: Kind::Other,
        process_ix: 1,
        pid: 1001,
        rank: None,
        calls: 1,
        bytes: 0,
        req_bytes: 10,
        dur_ns: 100,
        self_ns: 100,
        max_ns: 100,
        errors: 0,
    })
}

/// What hooks have cost until then.
pub fn hooks(t_ns: i64, tracing_ns: f64) -> [Row; 2] {
    [(HOOKS_NS, 2.0 * tracing_ns), (TRACING_NS, tracing_ns)]
        .map(|(name, value)| Row::Metric(Metric { t_ns, name, label: None, value }))
}

/// A request of a call that another one served.
pub fn rpc(rpc_id: i64, client: &Span, server: &Span) -> Row {
    Row::Rpc(Box::new(Rpc {
        rpc_id,
        protocol: "fuse",
        op: "read",
        xid: rpc_id,
        dev: None,
        client_tid: Some(client.tid),
        client_process_ix: Some(client.process_ix),
        client_span_id: Some(client.span_id),
        server_process_ix: server.process_ix,
        server_pid: server.pid,
        server_tid: server.tid,
        first_span_id: Some(server.span_id),
        last_span_id: Some((server.span_id >> SEQ_BITS << SEQ_BITS) + (1 << SEQ_BITS) - 1),
        received_ns: server.start_ns,
        dur_ns: Some(server.dur_ns),
        offset: Some(0),
        req_bytes: Some(4096),
        bytes: Some(4096),
        errno: Some(0),
    }))
}

/// What calls of a demoted function of a process came to, on a file.
pub fn demoted(process_ix: i32, from_ns: i64) -> Row {
    let Row::FileRollup(row) = sums(process_ix, from_ns) else { unreachable!("sums are of a file") };
    Row::FileRollup(Box::new(FileRollup {
        layer: Layer::Stdio,
        op: "fread",
        kind: Kind::Read,
        calls: 12,
        calls_error: Some(3),
        bytes: 480,
        req_bytes: 480,
        dur_ns: 0,
        self_ns: 0,
        max_ns: 0,
        ..*row
    }))
}

/// Of another function, that is not known to have been called there, and may have been.
pub fn maybe_called(process_ix: i32, from_ns: i64) -> Row {
    let Row::FileRollup(row) = demoted(process_ix, from_ns) else { unreachable!("estimates are of a file") };
    let none = FileRollup { op: "fgetc", calls: 0, calls_error: Some(480), bytes: 0, req_bytes: 0, ..*row };
    Row::FileRollup(Box::new(FileRollup { first_ns: None, last_ns: None, ..none }))
}

/// Sums of the writes of a process to a file, as of a trace with `--aggregate`.
pub fn sums(process_ix: i32, from_ns: i64) -> Row {
    Row::FileRollup(Box::new(FileRollup {
        from_ns,
        to_ns: from_ns + 1_000_000_000,
        layer: Layer::Syscall,
        op: "write",
        kind: Kind::Write,
        process_ix: Some(process_ix),
        pid: Some(1000 + process_ix),
        rank: None,
        file_id: Some(1),
        object_id: None,
        device: None,
        other: false,
        calls_error: None,
        calls: 10,
        nested_calls: 0,
        errors: 0,
        unknown_calls: 0,
        bytes: 1000,
        req_bytes: 1000,
        dur_ns: 5000,
        self_ns: 5000,
        max_ns: 900,
        slowest_ns: Some(from_ns + 50),
        first_ns: Some(from_ns + 10),
        last_ns: Some(from_ns + 900_000),
        end_offset: Some(2000),
        sequential: 7,
        consecutive: 6,
        switches: 1,
        unaligned: 8,
        miss_bytes: 0,
        ahead_bytes: 0,
        wait_ns: 300,
        cpu_ns: 2000,
        runq_ns: 500,
        lock_ns: 100,
        sizes: Some(vec![10, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        durations: None,
        common_sizes: Some(vec![100, 50]),
        common_size_calls: Some(vec![8, 2]),
        other_sizes: 0,
        common_strides: Some(vec![512]),
        common_stride_calls: Some(vec![3]),
        other_strides: 0,
    }))
}
