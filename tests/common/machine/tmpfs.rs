//! A file system in memory that is as small as a test wants.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A file system of its own, unmounted at the end.
pub struct Mounted(pub PathBuf);

impl Mounted {
    pub fn tmpfs(dir: PathBuf, size: &str) -> Self {
        fs::create_dir(&dir).unwrap();
        let options = format!("size={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&dir).status().unwrap();
        assert!(mount.success());
        Self(dir)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
