//! A file system on a device that nobody else uses.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// A loop device with a file system on it, as long as this lives.
pub struct Device {
    name: String,
    pub mount: PathBuf,
    /// As in `block.dev`.
    pub number: i32,
}

impl Device {
    pub fn new(work: &Path, fstype: &str) -> Self {
        let (image, mount) = (work.join("image"), work.join("mount"));
        // What mkfs.xfs asks for at least.
        fs::File::create(&image).unwrap().set_len(320 << 20).unwrap();
        fs::create_dir(&mount).unwrap();
        let name = run("losetup", &["--find", "--show", image.to_str().unwrap()]);
        let number = fs::metadata(&name).unwrap().rdev();
        let (major, minor) = (nix::sys::stat::major(number), nix::sys::stat::minor(number));
        let device = Self { name, mount, number: (major << 20 | minor) as i32 };
        // Nothing is left for the kernel to write later, or to read ahead of time.
        let (make, mount): (&[&str], &[&str]) = match fstype {
            "ext4" => {
                (&["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"], &["-o", "no_prefetch_block_bitmaps"])
            }
            _ => (&["-q", "-f"], &[]),
        };
        let to = device.mount.to_str().unwrap();
        run(&format!("mkfs.{fstype}"), &[make, &[&device.name]].concat());
        run("mount", &[mount, &[&device.name, to]].concat());
        run("sync", &[]);
        run("fsfreeze", &["-f", to]);
        run("fsfreeze", &["-u", to]);
        device
    }

    /// The kernel's counters, Documentation/block/stat.rst.
    pub fn counters(&self) -> Vec<i64> {
        let name = self.name.rsplit('/').next().unwrap();
        let text = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        text.split_whitespace().map(|n| n.parse().unwrap()).collect()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).status();
        let _ = Command::new("losetup").args(["--detach", &self.name]).status();
    }
}
