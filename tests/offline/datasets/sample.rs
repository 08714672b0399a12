//! Rows of every table of a dataset, for tests that write and read them.

use iotrace_bpf::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, FileRollup, Handle, Hist, Loss, Meta, Metric,
    Mount, Object, Process, Rollup, Rpc, Span, Stack, Thread, span_id,
};
use iotrace_bpf::vocabulary::{KINDS, Kind, LAYERS, Layer, flag};

/// Rows of every table; each nullable field is once null and once not.
pub struct Sample {
    pub spans: Vec<Span>,
    pub block: Vec<Block>,
    pub block_links: Vec<BlockLink>,
    pub block_bytes: Vec<BlockBytes>,
    pub rpc: Vec<Rpc>,
    pub files: Vec<File>,
    pub file_paths: Vec<FilePath>,
    pub paths: Vec<CallPath>,
    pub handles: Vec<Handle>,
    pub objects: Vec<Object>,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub mounts: Vec<Mount>,
    pub rollup: Vec<Rollup>,
    pub file_rollup: Vec<FileRollup>,
    pub hist: Vec<Hist>,
    pub stacks: Vec<Stack>,
    pub metrics: Vec<Metric>,
    pub losses: Vec<Loss>,
    pub coverage: Vec<Coverage>,
    pub meta: Vec<Meta>,
}

/// A span that uses every field, or as few as possible.
fn span(number: usize, some: bool) -> Span {
    let id = span_id(1_048_575, number as u32 + 1);
    let op = if some { "H5Dwrite" } else { "pwrite64" };
    let function = (LAYERS[number % LAYERS.len()], op, KINDS[number % KINDS.len()]);
    Span {
        parent_id: some.then_some(id - 1),
        depth: i8::MAX,
        layer_top: some,
        pid: 4_194_303,
        tid: 4_194_304,
        rank: some.then_some(0),
        cpu: i16::MAX,
        probe_ns: some.then_some(1),
        self_ns: 0,
        layer_ns: some.then_some(13),
        file_id: some.then_some(i32::MAX),
        handle_id: some.then_some(1),
        object_id: some.then_some(2),
        path_id: some.then_some(3),
        path2_id: some.then_some(4),
        cmd: some.then_some("F_SETLKW"),
        arg: some.then_some(i64::MIN),
        offset: some.then_some(i64::MAX),
        bytes: some.then_some(0),
        req_bytes: some.then_some(4096),
        miss_bytes: some.then_some(5),
        ahead_bytes: some.then_some(9),
        cpu_ns: some.then_some(9),
        runq_ns: some.then_some(8),
        throttle_ns: some.then_some(10),
        lock_ns: some.then_some(7),
        writeback_ns: some.then_some(11),
        journal_ns: some.then_some(12),
        flush_ns: some.then_some(20),
        devqueue_ns: some.then_some(21),
        device_ns: some.then_some(22),
        remote_ns: some.then_some(23),
        ret: some.then_some(i64::MIN),
        errno: -1,
        flags: flag::COLLECTIVE | flag::READAHEAD,
        async_id: some.then_some(6),
        coll_id: some.then_some(7),
        stack_id: some.then_some(8),
        speed: some.then_some("very slow"),
        usual_ns: some.then_some(24),
        ..Span::new(id, function, 3, ((1 << 52) + number as i64, 1))
    }
}

pub fn sample() -> Sample {
    Sample {
        spans: spans(),
        block: block(),
        block_links: block_links(),
        block_bytes: block_bytes(),
        rpc: rpc(),
        files: files(),
        file_paths: file_paths(),
        paths: paths(),
        handles: handles(),
        objects: objects(),
        processes: processes(),
        threads: threads(),
        mounts: mounts(),
        rollup: rollup(),
        file_rollup: file_rollup(),
        hist: hist(),
        stacks: stacks(),
        metrics: metrics(),
        losses: losses(),
        coverage: coverage(),
        meta: meta(),
    }
}

fn spans() -> Vec<Span> {
    (0..25).map(|number| span(number, number % 2 == 0)).collect()
}

fn block() -> Vec<Block> {
    [true, false]
        .map(|some| Block {
            req_id: 1,
            dev: (259 << 20) | 5,
            device: some.then(|| "nvme0n1".to_owned()),
            op: "write",
            class: "writeback",
            req_flags: i32::MAX,
            sector: 1 << 40,
            bytes: 1 << 20,
            pid: 7,
            queue_ns: 1,
            insert_ns: some.then_some(2),
            issue_ns: 2,
            dur_ns: some.then_some(3),
            status: some.then_some(10),
            nr_bios: 4,
            merges: 3,
            splits: 2,
            upper_dev: some.then_some(7 << 20),
            upper_sector: some.then_some(1 << 41),
            qdepth: 5,
        })
        .to_vec()
}

fn block_links() -> Vec<BlockLink> {
    vec![BlockLink { req_id: 1, span_id: 2, root_id: 3, bytes: 4, how: "writeback" }]
}

fn block_bytes() -> Vec<BlockBytes> {
    vec![BlockBytes {
        req_id: 1,
        process_ix: Some(2),
        file_id: None,
        span_id: Some(3),
        bytes: 4,
        cgroup: Some("/a".into()),
        known_by: "range",
    }]
}

fn rpc() -> Vec<Rpc> {
    [false, true]
        .map(|some| Rpc {
            rpc_id: 1,
            protocol: "fuse",
            op: "read",
            xid: (1 << 53) - 1,
            dev: some.then_some(77),
            client_tid: some.then_some(1234),
            client_process_ix: some.then_some(2),
            client_span_id: some.then_some(span_id(3, 4)),
            server_process_ix: -1,
            server_pid: 5,
            server_tid: 6,
            first_span_id: some.then_some(span_id(5, 6)),
            last_span_id: some.then_some(span_id(5, 7)),
            received_ns: 8,
            dur_ns: some.then_some(9),
            offset: some.then_some(1 << 41),
            req_bytes: some.then_some(4096),
            bytes: some.then_some(10),
            errno: some.then_some(0),
        })
        .to_vec()
}

fn files() -> Vec<File> {
    vec![
        File {
            file_id: 1,
            dev: i64::from(u32::MAX),
            ino: i64::MAX,
            generation: 9,
            path: Some("/data/\u{e4} \\xff\n'x'.h5".to_owned()),
            first_path: Some("/data/tmp".to_owned()),
            paths: Some(["/data/tmp", "/data/a"].map(str::to_owned).to_vec()),
            host_path: Some("/host/data/x".to_owned()),
            fstype: Some("ext4".to_owned()),
            mount_id: Some(1),
            size_first: Some(0),
            size_last: Some(1 << 42),
            blksize: Some(4096),
            stripe_count: Some(8),
            stripe_size: Some(1 << 32),
            data_dev: Some(8 << 20),
            data_ino: Some(7),
            role: "data",
            unlinked: true,
        },
        File {
            file_id: 2,
            dev: 0,
            ino: 0,
            generation: 0,
            path: None,
            first_path: None,
            paths: None,
            host_path: None,
            fstype: None,
            mount_id: None,
            size_first: None,
            size_last: None,
            blksize: None,
            stripe_count: None,
            stripe_size: None,
            data_dev: None,
            data_ino: None,
            role: "proc",
            unlinked: false,
        },
    ]
}

fn file_paths() -> Vec<FilePath> {
    vec![FilePath { file_id: 1, path: String::new(), from_ns: 1 }]
}

fn paths() -> Vec<CallPath> {
    vec![CallPath { path_id: i32::MAX, path: "/missing".to_owned() }]
}

fn handles() -> Vec<Handle> {
    [true, false]
        .map(|some| Handle {
            handle_id: i32::from(some),
            parent_handle_id: some.then_some(1),
            layer: Layer::Mpiio,
            file_id: some.then_some(2),
            object_id: some.then_some(3),
            process_ix: 4,
            pid: 5,
            raw: -6,
            mode: some.then_some(7),
            flags: 1,
            comm_size: some.then_some(8),
            comm_ranks: some.then(|| "0-7".into()),
            implementation: some.then_some("OMPIO"),
            hints: some.then(|| [("cb_nodes", "2"), ("x", "")].map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec()),
            open_span_id: some.then_some(9),
            close_span_id: some.then_some(10),
            start_ns: 11,
            end_ns: some.then_some(12),
        })
        .to_vec()
}

fn objects() -> Vec<Object> {
    vec![
        Object {
            object_id: 1,
            handle_id: Some(1),
            file_id: Some(1),
            name: "/temperature".to_owned(),
            class: "dataset",
            dims: Some(vec![1, i64::MAX]),
            chunk: Some(vec![]),
            elem_size: Some(8),
            filters: Some("deflate".to_owned()),
        },
        Object {
            object_id: 2,
            handle_id: None,
            file_id: None,
            name: "units".to_owned(),
            class: "attribute",
            dims: None,
            chunk: None,
            elem_size: None,
            filters: None,
        },
    ]
}

fn processes() -> Vec<Process> {
    [true, false]
        .map(|some| Process {
            process_ix: i32::from(some),
            pid: 10,
            ppid: 1,
            start_ns: 0,
            end_ns: some.then_some(9),
            exe: some.then(|| "/bin/sh".to_owned()),
            cmdline: if some { vec!["sh".to_owned(), String::new()] } else { vec![] },
            uid: -1,
            user: some.then(|| "root".to_owned()),
            cgroup: some.then(|| "/".to_owned()),
            container: some.then(|| "docker://1".to_owned()),
            container_name: some.then(|| "web".to_owned()),
            container_image: some.then(|| "nginx:1".to_owned()),
            unit: some.then(|| "x.service".to_owned()),
            rank: some.then_some(0),
            world_size: some.then_some(4),
            job_id: some.then(|| "77".to_owned()),
            step_id: some.then(|| "0".to_owned()),
            exit_code: some.then_some(137),
        })
        .to_vec()
}

fn threads() -> Vec<Thread> {
    vec![Thread { thread_ix: 1, process_ix: 2, pid: 3, tid: 4, comm: "a b".to_owned() }]
}

fn mounts() -> Vec<Mount> {
    [true, false]
        .map(|some| Mount {
            mount_id: i32::from(some),
            mount_ns: 4_026_531_841,
            path: "/".to_owned(),
            root: "/".to_owned(),
            fstype: "ext4".to_owned(),
            scope: "local",
            source: "/dev/vda".to_owned(),
            server: some.then(|| "far".to_owned()),
            options: "rw,relatime".to_owned(),
            super_options: "rw".to_owned(),
            lower: some.then(|| "/l1:/l2".to_owned()),
            upper: some.then(|| "/up".to_owned()),
            dev: 1,
            device: some.then(|| "vda1".to_owned()),
            disk: some.then(|| "vda".to_owned()),
            model: some.then(|| "a disk".to_owned()),
            block_size: some.then_some(4096),
            opt_io_size: some.then_some(0),
            rotational: some.then_some(false),
            scheduler: some.then(|| "none".to_owned()),
        })
        .to_vec()
}

fn rollup() -> Vec<Rollup> {
    [Some(1), None]
        .map(|rank| Rollup {
            t_ns: 100,
            layer: Layer::Stdio,
            op: "fread",
            kind: Kind::Read,
            process_ix: 1,
            pid: 2,
            rank,
            calls: 3,
            bytes: 4,
            req_bytes: 5,
            dur_ns: 6,
            self_ns: 7,
            max_ns: 8,
            errors: 9,
        })
        .to_vec()
}

fn file_rollup() -> Vec<FileRollup> {
    [true, false]
        .map(|some| FileRollup {
            from_ns: 100,
            to_ns: 200,
            layer: Layer::Syscall,
            op: "read",
            kind: Kind::Read,
            process_ix: some.then_some(1),
            pid: some.then_some(2),
            rank: some.then_some(3),
            file_id: some.then_some(4),
            object_id: some.then_some(5),
            device: some.then(|| "vda".to_owned()),
            other: !some,
            calls: 6,
            calls_error: some.then_some(5),
            nested_calls: 7,
            errors: 8,
            unknown_calls: 9,
            bytes: 10,
            req_bytes: 11,
            dur_ns: 12,
            self_ns: 13,
            max_ns: 14,
            slowest_ns: some.then_some(15),
            first_ns: some.then_some(16),
            last_ns: some.then_some(17),
            end_offset: some.then_some(18),
            sequential: 19,
            consecutive: 20,
            switches: 21,
            unaligned: 22,
            miss_bytes: 23,
            ahead_bytes: 24,
            wait_ns: 25,
            cpu_ns: 26,
            runq_ns: 27,
            lock_ns: 28,
            sizes: some.then(|| (0..10).collect()),
            durations: some.then(|| (0..32).collect()),
            common_sizes: some.then(|| vec![100, 200]),
            common_size_calls: some.then(|| vec![2, 1]),
            other_sizes: 26,
            common_strides: some.then(|| vec![4096]),
            common_stride_calls: some.then(|| vec![3]),
            other_strides: 27,
        })
        .to_vec()
}

fn hist() -> Vec<Hist> {
    vec![Hist { t_ns: 1, layer: Layer::Fs, op: "ext4_file_read_iter", what: "latency", bucket: 40, n: 2 }]
}

fn stacks() -> Vec<Stack> {
    vec![
        Stack { stack_id: 1, frames: vec!["main".to_owned(), "write".to_owned()] },
        Stack { stack_id: 2, frames: vec![] },
    ]
}

fn metrics() -> Vec<Metric> {
    vec![
        Metric { t_ns: 1, name: "dirty_bytes", label: None, value: 0.1 },
        Metric { t_ns: 2, name: "ring_fill", label: Some("0".to_owned()), value: -1e300 },
    ]
}

fn losses() -> Vec<Loss> {
    vec![
        Loss { t_ns: 1, layer: None, cpu: None, place: "ring", process_ix: Some(2), count: 5 },
        Loss { t_ns: 1, layer: Some(Layer::Vfs), cpu: Some(3), place: "late", process_ix: None, count: 6 },
    ]
}

fn coverage() -> Vec<Coverage> {
    [true, false]
        .map(|some| Coverage {
            layer: Layer::Hdf5,
            target: "/lib/libhdf5.so".to_owned(),
            symbol: "H5Dwrite".to_owned(),
            tier: some.then_some("uprobe.session"),
            status: if some { "attached" } else { "absent" },
            reason: (!some).then(|| "no such symbol".to_owned()),
            offset: some.then_some(0x1234),
            insn: some.then_some("emulated"),
        })
        .to_vec()
}

fn meta() -> Vec<Meta> {
    vec![Meta { key: "t0".to_owned(), value: "123".to_owned() }]
}
