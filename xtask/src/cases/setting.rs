//! Where a command runs: file systems, limits and control groups, which are there only for a run.

use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::list::Setting;

/// Control groups (version 1) in which limits are set.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup/blkio/iotrace-cases", "/sys/fs/cgroup/memory/iotrace-cases"];
/// Limits in /sys/class/bdi that a device keeps when it gets another file, and what they are of a new one.
const LIMITS: [(&str, &str); 2] = [("strict_limit", "0"), ("max_ratio", "100")];
/// MiB of a file system that is not to be full.
const ROOM: u64 = 1024;
/// MiB of swap space.
const SWAP: u64 = 512;

/// A setting as long as this lives: what was made for it is removed in the end, also after an error.
pub struct Stage {
    work: PathBuf,
    setting: Setting,
    /// Where files are made and commands work.
    pub dir: PathBuf,
    /// The device below, of places with their own.
    pub device: String,
    /// The control group of commands.
    pub group: Option<&'static str>,
}

impl Stage {
    /// A setting in which files can be made.
    pub fn new(work: &Path, setting: Setting) -> Result<Self> {
        clear(work)?;
        fs::create_dir_all(work).with_context(|| format!("cannot make {}", work.display()))?;
        let dir = work.join("dir");
        let mut stage = Self { work: work.to_owned(), setting, dir, device: String::new(), group: None };
        make(&stage.dir)?;
        match setting {
            Setting::Image(mib) => stage.image(mib)?,
            Setting::Throttled(_) | Setting::SlowDisk(_) | Setting::FewDirty(_) | Setting::ReadAhead(_) => {
                stage.image(ROOM)?;
            }
            Setting::Plain | Setting::Memory(_) | Setting::Overlay | Setting::Fuse => {}
        }
        Ok(stage)
    }

    /// The setting as commands find it, after the files were made.
    pub fn complete(&mut self) -> Result<()> {
        match self.setting {
            Setting::Plain | Setting::Image(_) => Ok(()),
            Setting::Throttled(bytes) => self.throttle(&number(&self.device)?, bytes),
            // The loop device reads its file for the control group of the process that asked: requests are in it until the
            // disk below has time.
            Setting::SlowDisk(bytes) => self.throttle(&disk_below(&self.work)?, bytes),
            Setting::FewDirty(bytes) => {
                write(&bdi(&self.device)?.join("max_bytes"), &bytes.to_string())?;
                write(&bdi(&self.device)?.join("strict_limit"), "1")
            }
            Setting::ReadAhead(kib) => write(&bdi(&self.device)?.join("read_ahead_kb"), &kib.to_string()),
            Setting::Memory(mib) => {
                self.swap()?;
                write(&group(GROUPS[1])?.join("memory.limit_in_bytes"), &(mib << 20).to_string())?;
                self.group = Some(GROUPS[1]);
                Ok(())
            }
            Setting::Overlay => self.overlay(),
            Setting::Fuse => {
                let mount = self.work.join("mount");
                make(&mount)?;
                quiet(Command::new("bindfs").arg(&self.dir).arg(&mount))?;
                self.dir = mount;
                Ok(())
            }
        }
    }

    /// A file system in a file, instead of the directory. Its device is as fast as the disk below: no page cache twice.
    fn image(&mut self, mib: u64) -> Result<()> {
        let image = self.work.join("image");
        let file = fs::File::create(&image).with_context(|| format!("cannot make {}", image.display()))?;
        file.set_len(mib << 20).with_context(|| format!("cannot make {}", image.display()))?;
        self.device = output_of(Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(&image))?;
        // Nothing is left for the kernel to write later.
        let options = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        quiet(Command::new("mkfs.ext4").args(options).arg(&self.device))?;
        quiet(Command::new("mount").arg(&self.device).arg(&self.dir))
    }

    fn throttle(&mut self, device: &str, bytes: u64) -> Result<()> {
        let (group, limit) = (group(GROUPS[0])?, format!("{device} {bytes}"));
        write(&group.join("blkio.throttle.read_bps_device"), &limit)?;
        write(&group.join("blkio.throttle.write_bps_device"), &limit)?;
        self.group = Some(GROUPS[0]);
        Ok(())
    }

    fn swap(&self) -> Result<()> {
        let file = self.work.join("swap");
        let to = format!("of={}", file.display());
        quiet(Command::new("dd").args(["if=/dev/zero", &to, "bs=1M", &format!("count={SWAP}"), "status=none"]))?;
        quiet(Command::new("chmod").arg("600").arg(&file))?;
        quiet(Command::new("mkswap").arg(&file))?;
        quiet(Command::new("swapon").arg(&file))
    }

    fn overlay(&mut self) -> Result<()> {
        let [upper, work, mount] = ["upper", "work", "mount"].map(|name| self.work.join(name));
        for dir in [&upper, &work, &mount] {
            make(dir)?;
        }
        let layers = format!("lowerdir={},upperdir={},workdir={}", self.dir.display(), upper.display(), work.display());
        quiet(Command::new("mount").args(["-t", "overlay", "overlay", "-o", &layers]).arg(&mount))?;
        self.dir = mount;
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = clear(&self.work) {
            eprintln!("warning: {error:#}");
        }
    }
}

/// Removes everything that a setting in this directory may have left.
pub fn clear(work: &Path) -> Result<()> {
    let groups = GROUPS.map(Path::new).into_iter().filter(|group| group.exists());
    groups.clone().try_for_each(end_group)?;
    let mounts = fs::read_to_string("/proc/mounts").context("cannot read /proc/mounts")?;
    let mounted = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
    // The last one first: it may stand on another.
    for mount in mounted.filter(|mount| mount.starts_with(work)).rev() {
        let umount = |lazy: &[&str]| quiet(Command::new("umount").args(lazy).arg(mount));
        if (0..20).all(|_| umount(&[]).inspect_err(|_| sleep(Duration::from_millis(50))).is_err()) {
            umount(&["--lazy"])?;
        }
    }
    let image = work.join("image");
    if image.exists() {
        let devices = output_of(Command::new("losetup").args(["--noheadings", "--output", "NAME", "-j"]).arg(&image))?;
        for device in devices.split_whitespace() {
            // The next user of the device would have these limits.
            for (limit, default) in LIMITS {
                write(&bdi(device)?.join(limit), default)?;
            }
            quiet(Command::new("losetup").args(["--detach", device]))?;
        }
    }
    let swaps = fs::read_to_string("/proc/swaps").context("cannot read /proc/swaps")?;
    for swap in swaps.lines().filter_map(|line| line.split(' ').next()).filter(|f| Path::new(f).starts_with(work)) {
        quiet(Command::new("swapoff").arg(swap))?;
    }
    groups.clone().try_for_each(remove_group)?;
    match fs::remove_dir_all(work) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", work.display()))
        }
        _ => Ok(()),
    }
}

/// A run that was killed leaves what ran in its groups.
fn end_group(group: &Path) -> Result<()> {
    let tasks = group.join("tasks");
    let tasks = fs::read_to_string(&tasks).with_context(|| format!("cannot read {}", tasks.display()))?;
    for task in tasks.lines() {
        // It may have ended by itself.
        let _ = quiet(Command::new("kill").args(["-KILL", task]));
    }
    Ok(())
}

/// Those in a group end shortly before.
fn remove_group(group: &Path) -> Result<()> {
    for _ in 0..100 {
        if fs::remove_dir(group).is_ok() {
            return Ok(());
        }
        sleep(Duration::from_millis(20));
    }
    bail!("cannot remove {}: processes in it do not end", group.display())
}

/// The number of the disk that a directory is on, and not that of a partition of it.
fn disk_below(dir: &Path) -> Result<String> {
    let dev = fs::metadata(dir).with_context(|| format!("cannot look at {}", dir.display()))?.dev();
    // As makedev(3) puts them together.
    let (major, minor) = ((dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xf_ff00));
    let of = Path::new("/sys/dev/block").join(format!("{major}:{minor}"));
    let of = of.canonicalize().with_context(|| format!("{} is on no block device", dir.display()))?;
    let disk = if of.join("partition").exists() { of.parent().unwrap_or(&of) } else { &of };
    let number = fs::read_to_string(disk.join("dev")).with_context(|| format!("cannot read {}", disk.display()))?;
    Ok(number.trim().to_owned())
}

/// A device as `MAJOR:MINOR`.
fn number(device: &str) -> Result<String> {
    let path = Path::new("/sys/class/block").join(device.trim_start_matches("/dev/")).join("dev");
    let number = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(number.trim().to_owned())
}

fn bdi(device: &str) -> Result<PathBuf> {
    Ok(Path::new("/sys/class/bdi").join(number(device)?))
}

fn group(path: &str) -> Result<&Path> {
    let path = Path::new(path);
    let parent = path.parent().is_some_and(|parent| parent.join("tasks").exists());
    if !parent {
        bail!("{} is not a control group of version 1", path.parent().unwrap_or(path).display());
    }
    make(path)?;
    Ok(path)
}

fn make(dir: &Path) -> Result<()> {
    fs::create_dir(dir).with_context(|| format!("cannot make {}", dir.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {text} to {}", path.display()))
}

/// Runs a command that must succeed and has nothing to say.
pub fn quiet(command: &mut Command) -> Result<()> {
    output_of(command).map(drop)
}

/// What a command says that must succeed. Signals of the terminal do not reach it: it may be cleaning up after them.
fn output_of(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.stdin(Stdio::null()).process_group(0).output();
    let out = out.with_context(|| format!("cannot start {name}"))?;
    if !out.status.success() {
        bail!("{command:?} failed: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
