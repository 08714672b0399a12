//! A disk in memory: a file system on a block device whose speed does not change from run to run, as that of a real one does.

use anyhow::{Context, Result};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::shell;

/// Where files are in memory, and how large the disk is: more than all that is written to it.
const MEMORY: &str = "/dev/shm";
const BYTES: u64 = 4 << 30;

/// Waits until its input ends, because we close it or have ended, and takes the disk away. The loop device goes with the mount.
const TAKE_AWAY: &str = r#"cat >/dev/null; umount --lazy "$1" "$3" 2>/dev/null; rm -f "$2"; rmdir "$1" "$3""#;

/// ext4 on a loop device on a file in memory, mounted. It goes when this is dropped, and when we are interrupted.
pub struct Disk {
    /// Where it is mounted.
    pub dir: PathBuf,
    /// A tmpfs beside it, which has no device.
    pub pages: PathBuf,
    keeper: Child,
}

impl Disk {
    /// Makes the disk and mounts it below `work`.
    pub fn make(work: &Path) -> Result<Self> {
        let [dir, pages] = ["memory", "pages"].map(|name| work.join(name));
        let image = Path::new(MEMORY).join(format!("iotrace-bench-{}.ext4", std::process::id()));
        for dir in [&dir, &pages] {
            fs::create_dir(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        // Not in our process group: an interrupt from the terminal is not for it.
        let keeper = Command::new("sh")
            .args(["-c", TAKE_AWAY, "sh"])
            .args([&dir, &image, &pages])
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("cannot start sh")?;
        let disk = Self { dir, pages, keeper };
        // All of it there from the start, or the first writer would wait for it.
        shell::run(Command::new("fallocate").arg("--length").arg(BYTES.to_string()).arg(&image))?;
        shell::run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))?;
        shell::run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&disk.dir))?;
        shell::run(Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&disk.pages))?;
        Ok(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It reports its own failures.
        let _ = self.keeper.wait();
    }
}
