//! Rows of which little is known: what stands where nothing was seen.

use crate::event::FileKey;
use crate::rows::{File, Process};

impl File {
    /// One of which no more is known than that it is there.
    pub fn placeholder(file_id: i32, key: FileKey) -> Self {
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
    pub const fn placeholder(process_ix: i32, start_ns: i64) -> Self {
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
            container_name: None,
            container_image: None,
            unit: None,
            rank: None,
            world_size: None,
            job_id: None,
            step_id: None,
            exit_code: None,
        }
    }
}
