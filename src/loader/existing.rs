//! What is known of the node and of processes that were there before the trace, from /proc and /sys.

use crate::correlate::rows::Mount;
use crate::event::{Event, FileKey};
use crate::loader::maps;
use crate::loader::rings::now;
use anyhow::{Context as _, Result, bail};
use nix::sys::stat::{SFlag, fstat, major, minor};
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The processes of `-p`, checked: they exist, are processes and not threads, and may be looked at.
pub fn check(pids: &[u32]) -> Result<()> {
    for pid in pids {
        let status = match fs::read(format!("/proc/{pid}/status")) {
            Ok(_) if ended(*pid) => bail!("process {pid} has ended already (its parent has not waited for it)"),
            Ok(text) => maps::status(&text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => bail!("no such process: {pid}"),
            Err(e) => bail!("process {pid}: {e}"),
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

fn device(dev: u64) -> u32 {
    (major(dev) as u32) << 20 | minor(dev) as u32
}

fn nul_separated(path: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() { Vec::new() } else { bytes.split(|b| *b == 0).map(<[u8]>::to_vec).collect() }
}

/// The control group of a process in the unified hierarchy, else in the first one named.
pub fn cgroup(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = |line: &str| line.splitn(3, ':').nth(2).map(str::to_owned);
    text.lines().find(|l| l.starts_with("0::")).or_else(|| text.lines().next()).and_then(path)
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

/// A running process as the events that would have told of it. Files that cannot be seen are left out.
pub fn events(pid: u32, process: u32) -> Vec<Event> {
    let status = fs::read(format!("/proc/{pid}/status")).map(|t| maps::status(&t)).unwrap_or_default();
    let (root, above) = root(pid).unwrap_or_default();
    let exe = fs::read_link(format!("/proc/{pid}/exe")).map(|p| below(&above, &p)).unwrap_or_default();
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let files = fds.filter_map(|entry| {
        let (fd, key, path, size) = open_file(&entry.path(), &above)?;
        let mount = mount_of(&format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or(0);
        Some((fd, key, path, size, mount))
    });
    let files: Vec<_> = files.collect();
    let (args, env) = (nul_separated(&format!("/proc/{pid}/cmdline")), nul_separated(&format!("/proc/{pid}/environ")));
    let cgroup = cgroup(pid);
    // Stamped when all is read: what comes later must not look older than what was worked off meanwhile.
    let time = now();
    let mut events = vec![
        Event::Process {
            time,
            process,
            parent: None,
            pid,
            ppid: status.ppid.unwrap_or(0),
            uid: status.uid.unwrap_or(0),
        },
        Event::Exec { time, process, exe, args, env, cgroup },
    ];
    events.extend(files.into_iter().map(|(fd, key, path, size, mount)| Event::Preopened {
        time,
        process,
        fd,
        key,
        path,
        root,
        mount,
        size,
    }));
    events
}

/// Has the process ended? A zombie has.
pub fn ended(pid: u32) -> bool {
    let status = fs::read(format!("/proc/{pid}/status")).map(|t| maps::status(&t));
    status.map_or(true, |s| matches!(s.state, Some('Z' | 'X')))
}

/// The number of a process's root directory, as `iot_root_of` in `bpf/path.h` makes it, and the directory's own path.
fn root(pid: u32) -> Option<(u64, PathBuf)> {
    let link = PathBuf::from(format!("/proc/{pid}/root"));
    let dir = fs::OpenOptions::new().read(true).custom_flags_path().open(&link).ok()?;
    let mount = mount_of(&format!("/proc/self/fdinfo/{}", dir.as_raw_fd()))?;
    Some((u64::from(mount as u32) << 32 ^ fstat(&dir).ok()?.st_ino, fs::read_link(link).ok()?))
}

/// The number of the mount that a descriptor was opened through.
fn mount_of(fdinfo: &str) -> Option<i32> {
    fs::read_to_string(fdinfo).ok()?.lines().find_map(|l| l.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// A path as a process with that root directory sees it.
fn below(root: &Path, path: &Path) -> Vec<u8> {
    let seen = path.strip_prefix(root).map_or_else(|_| path.to_owned(), |rest| Path::new("/").join(rest));
    seen.as_os_str().as_bytes().to_vec()
}

/// Descriptor, file, path and size.
fn open_file(link: &Path, root: &Path) -> Option<(u32, FileKey, Vec<u8>, u64)> {
    let fd = link.file_name()?.to_str()?.parse().ok()?;
    let path = below(root, &fs::read_link(link).ok()?);
    let handle = fs::OpenOptions::new().read(true).custom_flags_path().open(link).ok()?;
    let stat = fstat(&handle).ok()?;
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    if ![SFlag::S_IFREG, SFlag::S_IFDIR, SFlag::S_IFBLK].contains(&kind) {
        return None;
    }
    // The generation is not to be had here: 0 stands for whatever the kernel will say.
    let key = FileKey { dev: device(stat.st_dev), generation: 0, ino: stat.st_ino };
    Some((fd, key, path, stat.st_size as u64))
}

trait PathOnly {
    fn custom_flags_path(&mut self) -> &mut Self;
}

impl PathOnly for fs::OpenOptions {
    /// Looks without opening: a FIFO or a device must not notice.
    fn custom_flags_path(&mut self) -> &mut Self {
        use std::os::unix::fs::OpenOptionsExt as _;
        self.custom_flags(nix::libc::O_PATH)
    }
}

/// The mounts that a process sees, with what their devices say of themselves.
pub fn mounts(pid: u32) -> Vec<Mount> {
    let text = fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let lossy = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    maps::mounts(&text)
        .into_iter()
        .map(|m| {
            let queue = queue_dir(m.dev);
            let read = |name: &str| fs::read_to_string(format!("{}/{name}", queue.as_deref()?)).ok();
            let number = |name| read(name).and_then(|s| s.trim().parse().ok());
            Mount {
                mount_id: m.mount_id,
                path: lossy(&m.path),
                fstype: lossy(&m.fstype),
                source: lossy(&m.source),
                options: lossy(&m.options),
                dev: i64::from(m.dev),
                block_size: number("logical_block_size"),
                opt_io_size: number("optimal_io_size"),
                rotational: read("rotational").map(|s| s.trim() == "1"),
                // The one in use stands in brackets.
                scheduler: read("scheduler").and_then(|s| Some(s.split_once('[')?.1.split_once(']')?.0.to_owned())),
            }
        })
        .collect()
}

/// Where a device describes its queue; a partition's stands with its disk.
fn queue_dir(dev: u32) -> Option<String> {
    let base = format!("/sys/dev/block/{}:{}", dev >> 20, dev & 0xf_ffff);
    [format!("{base}/queue"), format!("{base}/../queue")].into_iter().find(|d| Path::new(d).is_dir())
}
