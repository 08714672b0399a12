//! Control groups of the unified hierarchy.
use std::fs;
use std::path::{Path, PathBuf};

/// Where the unified hierarchy is mounted.
pub fn unified() -> &'static Path {
    let unified = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    unified.into_iter().find(|at| at.join("cgroup.controllers").exists()).unwrap()
}

/// A control group of the unified hierarchy, which is removed in the end.
pub struct Group(pub PathBuf);

impl Group {
    pub fn new(name: &str) -> Self {
        let group = Self(unified().join(format!("iotrace-test-{name}-{}", std::process::id())));
        fs::create_dir(&group.0).unwrap();
        group
    }

    /// One with a limit of memory, in bytes, in either version; nothing where no controller for that can be used.
    pub fn below_memory(name: &str, limit: u64) -> Option<Self> {
        // Of version 1 it is below the test's own, whose limits count as well. Of version 2 a group with processes has none below.
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let first = own.lines().find_map(|line| line.split_once(":memory:")).map(|(_, own)| {
            (Path::new("/sys/fs/cgroup/memory").join(own.trim_start_matches('/')), "memory.limit_in_bytes")
        });
        let (parent, file) = first.unwrap_or_else(|| (unified().to_owned(), "memory.max"));
        let group = parent.join(format!("iotrace-test-{name}-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let group = Self(group);
        fs::write(group.0.join(file), limit.to_string()).ok()?;
        Some(group)
    }

    /// The most memory that it has had, in bytes, where the kernel notes that.
    pub fn most_memory(&self) -> Option<u64> {
        let files = ["memory.max_usage_in_bytes", "memory.peak"].map(|file| fs::read_to_string(self.0.join(file)));
        files.into_iter().find_map(|text| text.ok()?.trim().parse().ok())
    }

    /// A shell in it.
    pub fn script(&self, then: &str) -> [String; 3] {
        ["sh".into(), "-c".into(), format!("echo $$ > {}/cgroup.procs; {then}", self.0.display())]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Those in it end shortly before.
        let _ = (0..100).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            fs::remove_dir(&self.0).is_ok()
        });
    }
}
