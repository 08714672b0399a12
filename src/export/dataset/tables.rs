//! Every table of the dataset: its columns in order, their types and encodings.
//!
//! The encodings were chosen by measuring each column of realistic traces in each encoding.

use anyhow::Result;
use parquet::arrow::ArrowWriter;

use crate::export::dataset::table::{Table, properties, schema, table};
use crate::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, FileRollup, Handle, Hist, Loss, Meta, Metric,
    Mount, Object, Process, Rollup, Rpc, Span, Stack, Thread,
};
use crate::vocabulary::{Kind, Layer};

table!("spans", Span, sorted by pid, tid; start_ns, span_id {
    span_id: i64 => Delta,
    parent_id: Option<i64> => Delta,
    root_id: i64 => Delta,
    layer: Layer => Dict,
    op: &'static str => Dict,
    kind: Kind => Dict,
    depth: i8 => Plain,
    layer_top: bool => Dict,
    process_ix: i32 => Plain,
    pid: i32 => Plain,
    tid: i32 => Plain,
    rank: Option<i32> => Plain,
    cpu: i16 => Plain,
    start_ns: i64 => Time,
    dur_ns: i64 => Plain,
    probe_ns: Option<i64> => Plain,
    self_ns: i64 => Plain,
    layer_ns: Option<i64> => Plain,
    file_id: Option<i32> => Plain,
    handle_id: Option<i32> => Plain,
    object_id: Option<i32> => Plain,
    path_id: Option<i32> => Plain,
    path2_id: Option<i32> => Plain,
    cmd: Option<&'static str> => Dict,
    arg: Option<i64> => Plain,
    offset: Option<i64> => Plain,
    bytes: Option<i64> => Dict,
    req_bytes: Option<i64> => Plain,
    miss_bytes: Option<i64> => Plain,
    ahead_bytes: Option<i64> => Plain,
    cpu_ns: Option<i64> => Plain,
    runq_ns: Option<i64> => Plain,
    throttle_ns: Option<i64> => Plain,
    lock_ns: Option<i64> => Plain,
    writeback_ns: Option<i64> => Plain,
    journal_ns: Option<i64> => Plain,
    flush_ns: Option<i64> => Plain,
    devqueue_ns: Option<i64> => Plain,
    device_ns: Option<i64> => Plain,
    remote_ns: Option<i64> => Plain,
    ret: Option<i64> => Dict,
    errno: i16 => Plain,
    flags: i32 => Plain,
    async_id: Option<i64> => Delta,
    coll_id: Option<i64> => Delta,
    stack_id: Option<i32> => Delta,
    speed: Option<&'static str> => Dict,
    usual_ns: Option<i64> => Dict,
});

table!("block", Block {
    req_id: i64 => Delta,
    dev: i32 => Dict,
    device: Option<String> => Dict,
    op: &'static str => Dict,
    class: &'static str => Dict,
    req_flags: i32 => Dict,
    sector: i64 => Delta,
    bytes: i32 => Dict,
    pid: i32 => Dict,
    queue_ns: i64 => Time,
    insert_ns: Option<i64> => Time,
    issue_ns: i64 => Time,
    dur_ns: Option<i64> => Delta,
    status: Option<i16> => Dict,
    nr_bios: i16 => Dict,
    merges: i16 => Dict,
    splits: i16 => Dict,
    upper_dev: Option<i32> => Dict,
    upper_sector: Option<i64> => Delta,
    qdepth: i16 => Dict,
});

table!("block_links", BlockLink {
    req_id: i64 => Delta,
    span_id: i64 => Delta,
    root_id: i64 => Delta,
    bytes: i64 => Dict,
    how: &'static str => Dict,
});

table!("block_bytes", BlockBytes {
    req_id: i64 => Delta,
    process_ix: Option<i32> => Dict,
    file_id: Option<i32> => Dict,
    span_id: Option<i64> => Delta,
    bytes: i64 => Dict,
    cgroup: Option<String> => Dict,
    known_by: &'static str => Dict,
});

table!("rpc", Rpc {
    rpc_id: i64 => Delta,
    protocol: &'static str => Dict,
    op: &'static str => Dict,
    xid: i64 => Delta,
    dev: Option<i64> => Dict,
    client_tid: Option<i32> => Dict,
    client_process_ix: Option<i32> => Dict,
    client_span_id: Option<i64> => Delta,
    server_process_ix: i32 => Dict,
    server_pid: i32 => Dict,
    server_tid: i32 => Dict,
    first_span_id: Option<i64> => Delta,
    last_span_id: Option<i64> => Delta,
    received_ns: i64 => Time,
    dur_ns: Option<i64> => Delta,
    offset: Option<i64> => Plain,
    req_bytes: Option<i64> => Dict,
    bytes: Option<i64> => Dict,
    errno: Option<i16> => Dict,
});

table!("files", File {
    file_id: i32 => Delta,
    dev: i64 => Dict,
    ino: i64 => Delta,
    generation as "gen": i64 => Dict,
    path: Option<String> => Dict,
    first_path: Option<String> => Dict,
    paths: Option<Vec<String>> => Dict,
    host_path: Option<String> => Dict,
    fstype: Option<String> => Dict,
    mount_id: Option<i32> => Dict,
    size_first: Option<i64> => Dict,
    size_last: Option<i64> => Dict,
    blksize: Option<i32> => Dict,
    stripe_count: Option<i32> => Dict,
    stripe_size: Option<i64> => Dict,
    data_dev: Option<i64> => Dict,
    data_ino: Option<i64> => Delta,
    role: &'static str => Dict,
    unlinked: bool => Dict,
});

table!("file_paths", FilePath {
    file_id: i32 => Delta,
    path: String => Dict,
    from_ns: i64 => Time,
});

table!("paths", CallPath {
    path_id: i32 => Delta,
    path: String => Dict,
});

table!("handles", Handle {
    handle_id: i32 => Delta,
    parent_handle_id: Option<i32> => Delta,
    layer: Layer => Dict,
    file_id: Option<i32> => Dict,
    object_id: Option<i32> => Dict,
    process_ix: i32 => Dict,
    pid: i32 => Dict,
    raw: i64 => Dict,
    mode: Option<i32> => Dict,
    flags: i32 => Dict,
    comm_size: Option<i32> => Dict,
    comm_ranks: Option<String> => Dict,
    implementation: Option<&'static str> => Dict,
    hints: Option<Vec<(String, String)>> => Dict,
    open_span_id: Option<i64> => Delta,
    close_span_id: Option<i64> => Delta,
    start_ns: i64 => Time,
    end_ns: Option<i64> => Time,
});

table!("objects", Object {
    object_id: i32 => Delta,
    handle_id: Option<i32> => Dict,
    file_id: Option<i32> => Dict,
    name: String => Dict,
    class: &'static str => Dict,
    dims: Option<Vec<i64>> => Dict,
    chunk: Option<Vec<i64>> => Dict,
    elem_size: Option<i32> => Dict,
    filters: Option<String> => Dict,
});

table!("processes", Process {
    process_ix: i32 => Delta,
    pid: i32 => Delta,
    ppid: i32 => Dict,
    start_ns: i64 => Time,
    end_ns: Option<i64> => Time,
    exe: Option<String> => Dict,
    cmdline: Vec<String> => Dict,
    uid: i32 => Dict,
    user: Option<String> => Dict,
    cgroup: Option<String> => Dict,
    container: Option<String> => Dict,
    container_name: Option<String> => Dict,
    container_image: Option<String> => Dict,
    unit: Option<String> => Dict,
    rank: Option<i32> => Dict,
    world_size: Option<i32> => Dict,
    job_id: Option<String> => Dict,
    step_id: Option<String> => Dict,
    exit_code: Option<i32> => Dict,
});

table!("threads", Thread {
    thread_ix: i32 => Delta,
    process_ix: i32 => Dict,
    pid: i32 => Dict,
    tid: i32 => Delta,
    comm: String => Dict,
});

table!("mounts", Mount {
    mount_id: i32 => Delta,
    mount_ns: i64 => Dict,
    path: String => Dict,
    root: String => Dict,
    fstype: String => Dict,
    scope: &'static str => Dict,
    source: String => Dict,
    server: Option<String> => Dict,
    options: String => Dict,
    super_options: String => Dict,
    lower: Option<String> => Dict,
    upper: Option<String> => Dict,
    dev: i64 => Dict,
    device: Option<String> => Dict,
    disk: Option<String> => Dict,
    model: Option<String> => Dict,
    block_size: Option<i32> => Dict,
    opt_io_size: Option<i32> => Dict,
    rotational: Option<bool> => Dict,
    scheduler: Option<String> => Dict,
});

table!("rollup", Rollup {
    t_ns: i64 => Time,
    layer: Layer => Dict,
    op: &'static str => Dict,
    kind: Kind => Dict,
    process_ix: i32 => Dict,
    pid: i32 => Dict,
    rank: Option<i32> => Dict,
    calls: i64 => Dict,
    bytes: i64 => Dict,
    req_bytes: i64 => Dict,
    dur_ns: i64 => Delta,
    self_ns: i64 => Delta,
    max_ns: i64 => Delta,
    errors: i64 => Dict,
});

table!("file_rollup", FileRollup {
    from_ns: i64 => Time,
    to_ns: i64 => Time,
    layer: Layer => Dict,
    op: &'static str => Dict,
    kind: Kind => Dict,
    process_ix: Option<i32> => Dict,
    pid: Option<i32> => Dict,
    rank: Option<i32> => Dict,
    file_id: Option<i32> => Dict,
    object_id: Option<i32> => Dict,
    device: Option<String> => Dict,
    other: bool => Dict,
    calls: i64 => Dict,
    calls_error: Option<i64> => Dict,
    nested_calls: i64 => Dict,
    errors: i64 => Dict,
    unknown_calls: i64 => Dict,
    bytes: i64 => Dict,
    req_bytes: i64 => Dict,
    dur_ns: i64 => Delta,
    self_ns: i64 => Delta,
    max_ns: i64 => Delta,
    slowest_ns: Option<i64> => Time,
    first_ns: Option<i64> => Time,
    last_ns: Option<i64> => Time,
    end_offset: Option<i64> => Dict,
    sequential: i64 => Dict,
    consecutive: i64 => Dict,
    switches: i64 => Dict,
    unaligned: i64 => Dict,
    miss_bytes: i64 => Dict,
    ahead_bytes: i64 => Dict,
    wait_ns: i64 => Dict,
    cpu_ns: i64 => Dict,
    runq_ns: i64 => Dict,
    lock_ns: i64 => Dict,
    sizes: Option<Vec<i64>> => Dict,
    durations: Option<Vec<i64>> => Dict,
    common_sizes: Option<Vec<i64>> => Dict,
    common_size_calls: Option<Vec<i64>> => Dict,
    other_sizes: i64 => Dict,
    common_strides: Option<Vec<i64>> => Dict,
    common_stride_calls: Option<Vec<i64>> => Dict,
    other_strides: i64 => Dict,
});

table!("hist", Hist {
    t_ns: i64 => Time,
    layer: Layer => Dict,
    op: &'static str => Dict,
    what: &'static str => Dict,
    bucket: i16 => Dict,
    n: i64 => Dict,
});

table!("stacks", Stack {
    stack_id: i32 => Delta,
    frames: Vec<String> => Dict,
});

table!("metrics", Metric {
    t_ns: i64 => Time,
    name: &'static str => Dict,
    label: Option<String> => Dict,
    value: f64 => Dict,
});

table!("losses", Loss {
    t_ns: i64 => Time,
    layer: Option<Layer> => Dict,
    cpu: Option<i16> => Dict,
    place: &'static str => Dict,
    process_ix: Option<i32> => Dict,
    count: i64 => Dict,
});

table!("coverage", Coverage {
    layer: Layer => Dict,
    target: String => Dict,
    symbol: String => Dict,
    tier: Option<&'static str> => Dict,
    status: &'static str => Dict,
    reason: Option<String> => Dict,
    offset: Option<i64> => Delta,
    insn: Option<&'static str> => Dict,
});

table!("meta", Meta {
    key: String => Dict,
    value: String => Dict,
});

/// Lists the tables once, for a macro that makes something of each; `boxed`: those that are behind a pointer in `Row`.
macro_rules! each_table {
    ($then:ident) => {
        $then! {
            spans: Span boxed,
            block: Block,
            block_links: BlockLink,
            block_bytes: BlockBytes,
            rpc: Rpc boxed,
            files: File boxed,
            file_paths: FilePath,
            paths: CallPath,
            handles: Handle,
            objects: Object,
            processes: Process boxed,
            threads: Thread,
            mounts: Mount boxed,
            rollup: Rollup,
            file_rollup: FileRollup boxed,
            hist: Hist,
            stacks: Stack,
            metrics: Metric,
            losses: Loss,
            coverage: Coverage,
            meta: Meta,
        }
    };
}
pub(crate) use each_table;

macro_rules! names {
    ($($field:ident: $row:ident $($boxed:ident)?),+ $(,)?) => {
        /// The tables of a dataset; a table's name is the prefix of its files.
        pub const TABLES: [&str; [$(stringify!($field)),+].len()] = [$(<$row as Table>::NAME),+];
    };
}
each_table!(names);

macro_rules! empty {
    ($($field:ident: $row:ident $($boxed:ident)?),+ $(,)?) => {
        /// Of each table its name and the bytes of a part without rows.
        ///
        /// # Errors
        /// When it cannot be encoded.
        pub fn empty_parts() -> Result<Vec<(&'static str, Vec<u8>)>> {
            Ok(vec![$((<$row as Table>::NAME, empty_part::<$row>()?)),+])
        }
    };
}
each_table!(empty);

fn empty_part<T: Table>() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ArrowWriter::try_new(&mut bytes, schema::<T>(), Some(properties::<T>("", 1)?))?.close()?;
    Ok(bytes)
}
