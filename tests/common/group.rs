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
