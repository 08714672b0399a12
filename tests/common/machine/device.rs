//! A file system on a device that nothing else uses.
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// What the block device of a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Loop,
    /// Memory; it works on bios.
    Zram,
    /// Device mapper, on a loop device.
    Linear,
    /// md, on two loop devices: RAID 0 without a superblock.
    Striped,
}

/// A device with a file system on it, as long as this lives.
pub struct Device {
    kind: Kind,
    /// The devices that it is made of.
    pub below: Vec<String>,
    pub name: String,
    pub mount: PathBuf,
    /// As in `block.dev`.
    pub number: i32,
}

impl Device {
    pub fn new(work: &Path, fstype: &str) -> Self {
        Self::of(Kind::Loop, work, fstype)
    }

    pub fn of(kind: Kind, work: &Path, fstype: &str) -> Self {
        let mount = work.join("mount");
        fs::create_dir(&mount).unwrap();
        let mut below = Vec::new();
        let name = match kind {
            Kind::Loop => loop_device(work, "image"),
            Kind::Zram => {
                let number = run("cat", &["/sys/class/zram-control/hot_add"]);
                fs::write(format!("/sys/block/zram{number}/disksize"), SIZE.to_string()).unwrap();
                format!("/dev/zram{number}")
            }
            Kind::Linear => {
                below.push(loop_device(work, "image"));
                let sectors = SIZE / 512;
                let mapped = format!("0 {sectors} linear {} 0", below[0]);
                let name = format!("iotrace-{}", std::process::id());
                run("dmsetup", &["create", &name, "--noudevsync", "--table", &mapped]);
                run("dmsetup", &["mknodes", &name]);
                let node = fs::canonicalize(format!("/dev/mapper/{name}")).unwrap();
                node.to_str().unwrap().to_owned()
            }
            Kind::Striped => {
                below.extend(["first", "second"].map(|image| loop_device(work, image)));
                let name = "/dev/md9".to_owned();
                let shape = ["--level=0", "--raid-devices=2", &format!("--chunk={}K", CHUNK >> 10)];
                run("mdadm", &[&["--build", &name], &shape[..], &[&below[0], &below[1]]].concat());
                name
            }
        };
        let number = number(&name);
        let device = Self { kind, below, name, mount, number };
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

    #[allow(dead_code, reason = "not every test counts")]
    /// The kernel's counters, Documentation/block/stat.rst.
    pub fn counters(&self) -> Vec<i64> {
        counters(self.number)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).status();
        match self.kind {
            Kind::Loop => self.below.push(self.name.clone()),
            Kind::Zram => {
                let number = self.name.trim_start_matches("/dev/zram");
                let _ = fs::write("/sys/class/zram-control/hot_remove", number);
            }
            Kind::Linear => {
                let _ = Command::new("dmsetup").args(["remove", "--noudevsync", &self.name]).status();
            }
            Kind::Striped => {
                let _ = Command::new("mdadm").args(["--stop", &self.name]).status();
            }
        }
        for name in &self.below {
            let _ = Command::new("losetup").args(["--detach", name]).status();
        }
    }
}

/// Bytes of [`Kind::Striped`] that follow each other on one device.
pub const CHUNK: i64 = 64 << 10;

/// What mkfs.xfs asks for at least.
const SIZE: u64 = 320 << 20;

fn loop_device(work: &Path, name: &str) -> String {
    let image = work.join(name);
    fs::File::create(&image).unwrap().set_len(SIZE).unwrap();
    run("losetup", &["--find", "--show", image.to_str().unwrap()])
}

/// The number of a device, as in `block.dev`.
pub fn number(name: &str) -> i32 {
    let number = fs::metadata(name).unwrap().rdev();
    (nix::sys::stat::major(number) << 20 | nix::sys::stat::minor(number)) as i32
}

/// The kernel's counters of a device, Documentation/block/stat.rst.
pub fn counters(number: i32) -> Vec<i64> {
    let (major, minor) = (number >> 20, number & 0xf_ffff);
    let text = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).unwrap();
    text.split_whitespace().map(|n| n.parse().unwrap()).collect()
}
