//! What is known of the node and of processes that were there before the trace, from /proc and /sys.

use crate::base::paths;
use crate::event::{Cgroup, Event, FileKey, Sighting};
use crate::loader::kernel::rings::now;
use crate::loader::processes::maps::{self, MountEntry};
use anyhow::{Context as _, Result, bail};
use nix::sys::stat::{SFlag, fstat, major, minor};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The processes of `-p`, checked: they exist, are processes and not threads, and may be looked at.
pub fn check(pids: &[u32]) -> Result<()> {
    for pid in pids {
        let status = match fs::read(format!("/proc/{pid}/status")) {
            Ok(_) if ended(*pid) => {
                bail!("process {pid} has ended, or is about to (its parent may not have waited for it)")
            }
            Ok(text) => maps::status(&text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                bail!("no such process: {pid} (pgrep -a NAME finds one)")
            }
            Err(e) => bail!("process {pid}: cannot read /proc/{pid}/status: {e}"),
        };
        match status.tgid {
            Some(tgid) if tgid != *pid => bail!("{pid} is a thread of process {tgid}; use -p {tgid}"),
            _ => {}
        }
        if *pid == std::process::id() {
            bail!("{pid} is this tracer itself");
        }
        fs::read(format!("/proc/{pid}/maps")).with_context(|| {
            format!("process {pid} may not be looked at: run as its user with CAP_SYS_PTRACE, or as root")
        })?;
    }
    Ok(())
}

/// All processes that a trace without a list is of, without threads of the kernel and what `own` has started.
///
/// # Errors
/// When they cannot be listed.
pub fn all(group: Option<&Path>) -> Result<Vec<u32>> {
    let own = std::process::id();
    let pids: Vec<u32> = if let Some(group) = group {
        members(group)?
    } else {
        let entries = fs::read_dir("/proc").context("/proc")?.flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let wanted = |pid: &u32| {
        let status = fs::read(format!("/proc/{pid}/status")).map(|t| maps::status(&t)).unwrap_or_default();
        // Threads of the kernel have no program, and what has ended has none any more.
        *pid != own && status.ppid != Some(own) && fs::read_link(format!("/proc/{pid}/exe")).is_ok()
    };
    Ok(pids.into_iter().filter(wanted).collect())
}

/// The processes of a control group and of those below it.
///
/// # Errors
/// When its directory cannot be read.
pub fn members(group: &Path) -> Result<Vec<u32>> {
    let text = fs::read_to_string(group.join("cgroup.procs"));
    // A group with controllers of threads has no list of its own; those of its threads are below.
    let mut pids: Vec<u32> = text.unwrap_or_default().lines().filter_map(|pid| pid.parse().ok()).collect();
    for entry in fs::read_dir(group).with_context(|| format!("control group {}", group.display()))?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // It may be removed meanwhile.
            pids.extend(members(&entry.path()).unwrap_or_default());
        }
    }
    Ok(pids)
}

/// The directory of a control group of the unified hierarchy, and the kernel's number of it. `name` is that directory, or
/// the group in /proc/PID/cgroup.
///
/// # Errors
/// When there is none of that name, or it is of a hierarchy of version 1.
pub fn group(name: &Path) -> Result<(PathBuf, u64)> {
    let root =
        unified().context("control groups of version 2 are not mounted here (mount -t cgroup2 none /sys/fs/cgroup)")?;
    let inside = root.join(name.strip_prefix("/").unwrap_or(name));
    let there: Vec<PathBuf> = [name, &inside].into_iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    // The path in /proc/PID/cgroup may be that of a directory elsewhere, as the root's is.
    let is_group = |path: &&PathBuf| path.starts_with(root) && path.join("cgroup.procs").exists();
    let Some(directory) = there.iter().find(is_group).cloned() else {
        if there.is_empty() {
            bail!(
                "no such control group: {} (nor {}); /proc/PID/cgroup names that of a process behind 0::, \
                 `systemctl show -p ControlGroup UNIT` that of a service",
                name.display(),
                inside.display()
            );
        }
        bail!(
            "{} is not a control group of version 2: those are below {}; /proc/PID/cgroup names that of a process behind 0::",
            name.display(),
            root.display()
        );
    };
    let number = fs::metadata(&directory).with_context(|| format!("control group {}", directory.display()))?.ino();
    Ok((directory, number))
}

/// Does a process map code of something that copies stacks away and back? By name, as `iot_copies_stacks` of
/// `bpf/calls/stack.h`.
pub fn copies_stacks(pid: u32) -> bool {
    let Ok(text) = fs::read(format!("/proc/{pid}/maps")) else { return false };
    let name = |path: &[u8]| path.rsplit(|b| *b == b'/').next().unwrap_or_default().to_vec();
    let names = maps::mappings(&text).into_iter().filter(maps::Mapping::is_code).map(|m| name(&m.path));
    names.into_iter().any(|name| {
        name.starts_with(b"_greenlet.") || name.starts_with(b"libpypy") || name.starts_with(b"continuation.so")
    })
}

fn device(dev: u64) -> u32 {
    (major(dev) as u32) << 20 | minor(dev) as u32
}

fn nul_separated(path: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() { Vec::new() } else { bytes.split(|b| *b == 0).map(<[u8]>::to_vec).collect() }
}

/// Where the unified hierarchy of control groups is mounted: alone, or beside those of version 1.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Where the unified hierarchy is mounted, if it is.
pub fn unified() -> Option<&'static Path> {
    UNIFIED.into_iter().map(Path::new).find(|root| root.join("cgroup.controllers").exists())
}

/// Are there hierarchies of version 1, too? Then the unified one may have everybody in its root.
pub fn has_version_1() -> bool {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    text.lines().any(|line| !line.starts_with("0::"))
}

/// The control group of a process: in the unified hierarchy, unless it is in the root of that; then of those of version 1 the
/// most specific one.
pub fn cgroup(pid: u32) -> Option<Cgroup> {
    let path = group_path(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)?;
    // A directory's inode there is the number of the group (kernfs, fs/kernfs/mount.c); being in the root means nothing.
    let at = |root: &Path| fs::metadata(root.join(path.0.trim_start_matches('/'))).ok();
    let id = unified().filter(|_| path.1 && path.0 != "/").and_then(at).map(|directory| directory.ino());
    Some(Cgroup { path: path.0, id })
}

/// The entries of `/proc/PID/cgroup` (cgroups(7)): the path, and whether it is one of the unified hierarchy.
fn group_path(text: &str) -> Option<(String, bool)> {
    let path = |line: &str| line.splitn(3, ':').nth(2).map(str::to_owned);
    let unified = text.lines().find(|line| line.starts_with("0::")).and_then(path);
    if let Some(path) = unified.as_ref().filter(|path| *path != "/") {
        return Some((path.clone(), true));
    }
    let depth = |path: &String| path.split('/').filter(|part| !part.is_empty()).count();
    let others: Vec<String> = text.lines().filter(|line| !line.starts_with("0::")).filter_map(path).collect();
    // Of equally specific ones, the first.
    let deepest = others.into_iter().rev().max_by_key(depth).filter(|path| unified.is_none() || path != "/");
    deepest.map(|path| (path, false)).or_else(|| unified.map(|path| (path, true)))
}

/// The rank of a process: the number in the first of these variables that its program was started with.
pub fn rank(pid: u32, variables: &[String]) -> Option<i32> {
    let env = nul_separated(&format!("/proc/{pid}/environ"));
    let value = |name: &String| {
        let of = |v: &Vec<u8>| v.strip_prefix(name.as_bytes()).and_then(|v| v.strip_prefix(b"=")).map(<[u8]>::to_vec);
        env.iter().find_map(of)
    };
    variables.iter().find_map(|name| str::from_utf8(&value(name)?).ok()?.parse().ok())
}

/// A running process as the events that its start would have sent. Files that cannot be seen are left out.
pub fn events(pid: u32, process: u32) -> Vec<Event> {
    let status = fs::read(format!("/proc/{pid}/status")).map(|t| maps::status(&t)).unwrap_or_default();
    let (ppid, uid) = (status.ppid.unwrap_or(0), status.uid.unwrap_or(0));
    let mut events = details(pid, process, None);
    // Stamped when all is read: what comes later must not look older than what was worked off meanwhile.
    let time = events.first().map_or_else(now, Event::time);
    events.insert(0, Event::Process { time, process, parent: None, runs: false, pid, ppid, uid });
    events.insert(1, Event::Belongs { time, process, uid, user: None, cgroup: cgroup(pid), container: None });
    events
}

/// What a running process executes and which files it has open, as of `time`; without it as of now.
pub fn details(pid: u32, process: u32, time: Option<u64>) -> Vec<Event> {
    let (root, above) = root(pid).unwrap_or_default();
    let exe = fs::read_link(format!("/proc/{pid}/exe")).map(|p| below(&above, &p)).unwrap_or_default();
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let known = |pid: &str| maps::mounts(&fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default());
    let (own, theirs) = (known("self"), known(&pid.to_string()));
    let files = fds.filter_map(|entry| {
        let (fd, key, link, mut seen) = open_file(&entry.path())?;
        let fdinfo = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
        seen.mount = mount_in(&fdinfo).unwrap_or(0);
        seen.fs_dev = theirs.iter().find(|m| m.mount_id == seen.mount).map_or(key.dev, |m| m.dev);
        seen.root = root;
        seen.path = below(&above, &link);
        // Paths in mountinfo are those that the process sees; for those hidden by its root directory the tracer's own count.
        let link = link.as_os_str().as_bytes();
        seen.inside = inside(&theirs, seen.mount, &seen.path).or_else(|| inside(&own, seen.mount, link));
        Some((fd, flags_in(&fdinfo), key, seen))
    });
    let files: Vec<_> = files.collect();
    let (args, env) = (nul_separated(&format!("/proc/{pid}/cmdline")), nul_separated(&format!("/proc/{pid}/environ")));
    let time = time.unwrap_or_else(now);
    let mut events = vec![Event::Exec { time, process, program: 0, exe, args, env }];
    let open = |(fd, flags, key, seen)| Event::Preopened { time, process, fd, flags, key, seen };
    events.extend(files.into_iter().map(open));
    events
}

/// Has the process ended, or does each of its threads? A zombie has. To give up what it has may take long after the kernel side
/// was sent the end, and dropped it when the process was no target yet.
pub fn ended(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    let stats = threads.flatten().map(|thread| fs::read(thread.path().join("stat")));
    stats.filter_map(|text| maps::stat(&text.ok()?)).all(|thread| thread.exiting)
}

/// The number of a process's root directory, as `iot_root_of` in `bpf/files/path.h` makes it, and the directory's own
/// path.
fn root(pid: u32) -> Option<(u64, PathBuf)> {
    let link = PathBuf::from(format!("/proc/{pid}/root"));
    let dir = fs::OpenOptions::new().read(true).custom_flags_path().open(&link).ok()?;
    let mount = mount_in(&fs::read_to_string(format!("/proc/self/fdinfo/{}", dir.as_raw_fd())).ok()?)?;
    Some((u64::from(mount as u32) << 32 ^ fstat(&dir).ok()?.st_ino, fs::read_link(link).ok()?))
}

/// The number of the mount that a descriptor was opened through, from its `fdinfo`.
fn mount_in(fdinfo: &str) -> Option<i32> {
    fdinfo.lines().find_map(|l| l.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// Access mode and flags of a descriptor, with `O_CLOEXEC`, which are in octal there (`proc_pid_fdinfo(5)`).
fn flags_in(fdinfo: &str) -> Option<u32> {
    u32::from_str_radix(fdinfo.lines().find_map(|l| l.strip_prefix("flags:"))?.trim(), 8).ok()
}

/// A path as a process with that root directory sees it.
fn below(root: &Path, path: &Path) -> Vec<u8> {
    let seen = path.strip_prefix(root).map_or_else(|_| path.to_owned(), |rest| Path::new("/").join(rest));
    seen.as_os_str().as_bytes().to_vec()
}

/// The path of a file in its file system, by the mount that it was opened through.
fn inside(mounts: &[MountEntry], mount: i32, path: &[u8]) -> Option<Vec<u8>> {
    let mount = mounts.iter().find(|m| m.mount_id == mount)?;
    let rest = paths::below(&mount.path, path)?;
    Some([mount.root.strip_suffix(b"/").unwrap_or(&mount.root), rest].concat())
}

/// Descriptor, file, its path, and what else is known of it.
fn open_file(link: &Path) -> Option<(u32, FileKey, PathBuf, Sighting)> {
    let fd = link.file_name()?.to_str()?.parse().ok()?;
    let mut path = fs::read_link(link).ok()?;
    let handle = fs::OpenOptions::new().read(true).custom_flags_path().open(link).ok()?;
    let stat = fstat(&handle).ok()?;
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    if ![SFlag::S_IFREG, SFlag::S_IFDIR, SFlag::S_IFBLK].contains(&kind) {
        return None;
    }
    // The generation is not to be had here: 0 matches whatever the kernel will report.
    let key = FileKey { dev: device(stat.st_dev), generation: 0, ino: stat.st_ino };
    let seen = Sighting {
        size: stat.st_size as u64,
        block_size: u32::try_from(stat.st_blksize).ok(),
        links: if kind == SFlag::S_IFDIR { stat.st_nlink.min(1) } else { stat.st_nlink } as u32,
        ..Sighting::default()
    };
    if let Some(name) = path.as_os_str().as_bytes().strip_suffix(b" (deleted)").filter(|_| seen.links == 0) {
        path = PathBuf::from(OsStr::from_bytes(name));
    }
    Some((fd, key, path, seen))
}

trait PathOnly {
    fn custom_flags_path(&mut self) -> &mut Self;
}

impl PathOnly for fs::OpenOptions {
    /// Looks without opening: a FIFO or a device must not notice.
    fn custom_flags_path(&mut self) -> &mut Self {
        use std::os::unix::fs::OpenOptionsExt as _;
        self.custom_flags(nix::fcntl::OFlag::O_PATH.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_has_ended() {
        assert!(!ended(std::process::id()));
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(!ended(child.id()));
        drop(child.stdin.take());
        while !ended(child.id()) {
            std::thread::yield_now();
        }
        let zombie = fs::read(format!("/proc/{}/stat", child.id())).unwrap();
        assert!(maps::stat(&zombie).unwrap().exiting && child.wait().unwrap().success() && ended(child.id()));
    }

    #[test]
    fn how_a_file_is_open_is_read() {
        let text = "pos:\t0\nflags:\t02102001\nmnt_id:\t29\nino:\t7\n";
        assert_eq!((flags_in(text), mount_in(text)), (Some(0o2_102_001), Some(29)));
        assert_eq!((flags_in("pos:\t0\n"), mount_in("")), (None, None));
    }

    #[test]
    fn the_most_specific_group_is_taken() {
        for (text, path, unified) in [
            ("0::/system.slice/ssh.service\n", "/system.slice/ssh.service", true),
            ("12:freezer:/a/b\n0::/x\n", "/x", true),
            (
                "2:cpu:/\n1:name=systemd:/system.slice/slurmd.service\n3:freezer:/slurm/uid_0/job_1/step_0\n0::/\n",
                "/slurm/uid_0/job_1/step_0",
                false,
            ),
            ("2:cpu:/docker/1\n1:name=systemd:/docker/2\n", "/docker/1", false),
            ("2:cpu:/\n0::/\n", "/", true),
            ("2:cpu:/\n", "/", false),
        ] {
            assert_eq!(group_path(text), Some((path.to_owned(), unified)), "{text}");
        }
        assert_eq!(group_path(""), None);
    }
}
