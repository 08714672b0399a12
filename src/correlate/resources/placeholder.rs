//! Rows of which little is known: what stands where nothing was seen.

use crate::event::FileKey;
use crate::rows::{File, Process, Span};
use crate::vocabulary::{Kind, Layer};

impl File {
    /// One of which no more is known than that it is there.
    pub fn nameless(file_id: i32, key: FileKey) -> Self {
        Self {
            file_id,
            dev: i64::from(key.dev),
            ino: key.ino as i64,
            generation: i64::from(key.generation),
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
            role: "data",
            unlinked: false,
        }
    }
}

impl Process {
    /// One of which no more is known than that it is there. -1 stands for "not known" where the schema has no null.
    pub const fn nameless(process_ix: i32, start_ns: i64) -> Self {
        Self {
            process_ix,
            pid: 0,
            ppid: -1,
            start_ns,
            end_ns: None,
            exe: None,
            cmdline: Vec::new(),
            uid: -1,
            user: None,
            cgroup: None,
            container: None,
            unit: None,
            rank: None,
            world_size: None,
            job_id: None,
            step_id: None,
            exit_code: None,
        }
    }
}

impl Span {
    /// A call in no other one, of which no more is known than its function, its process, and its start and duration.
    pub const fn nameless(
        span_id: i64,
        (layer, op, kind): (Layer, &'static str, Kind),
        process_ix: i32,
        (start_ns, dur_ns): (i64, i64),
    ) -> Self {
        Self {
            span_id,
            parent_id: None,
            root_id: span_id,
            layer,
            op,
            kind,
            depth: 0,
            layer_top: true,
            process_ix,
            pid: 0,
            tid: 0,
            rank: None,
            cpu: 0,
            start_ns,
            dur_ns,
            probe_ns: None,
            self_ns: dur_ns,
            layer_ns: None,
            file_id: None,
            handle_id: None,
            object_id: None,
            path_id: None,
            path2_id: None,
            cmd: None,
            arg: None,
            offset: None,
            bytes: None,
            req_bytes: None,
            miss_bytes: None,
            ahead_bytes: None,
            cpu_ns: None,
            runq_ns: None,
            throttle_ns: None,
            lock_ns: None,
            writeback_ns: None,
            journal_ns: None,
            flush_ns: None,
            devqueue_ns: None,
            device_ns: None,
            remote_ns: None,
            ret: None,
            errno: 0,
            flags: 0,
            async_id: None,
            coll_id: None,
            stack_id: None,
        }
    }
}
