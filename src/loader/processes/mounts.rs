//! The mounts that a process sees, and attributes of their devices, from /proc and /sys.

pub mod known;

use crate::base::paths::below;
use crate::loader::processes::maps::{self, MountEntry};
use crate::rows::Mount;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// File systems whose data is on another node.
const REMOTE: &[&str] = &[
    "9p",
    "acfs",
    "afs",
    "afp",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "orangefs",
    "panfs",
    "pvfs2",
    "smb3",
    "smbfs",
    "virtiofs",
    "wekafs",
];

/// Those that are on no device: in memory, or made up by the kernel.
const MEMORY: &[&str] = &[
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "ramfs",
    "resctrl",
    "rootfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// Of the programs that serve FUSE, those that are known to keep their data on the node.
const LOCAL_DAEMONS: &[&str] = &[
    "archivemount",
    "bindfs",
    "encfs",
    "exfat",
    "fuse-overlayfs",
    "fuseiso",
    "gocryptfs",
    "lxcfs",
    "mergerfs",
    "ntfs-3g",
    "passthrough",
    "passthrough_fh",
    "passthrough_hp",
    "passthrough_ll",
    "portal",
    "squashfuse",
    "squashfuse_ll",
    "unionfs",
    "zfs-fuse",
];

/// The mounts of a process; none if it is gone.
pub fn of(pid: u32) -> Vec<Mount> {
    let text = fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let namespace = namespace(pid).unwrap_or(0);
    let entries = maps::mounts(&text);
    entries.iter().map(|entry| row(entry, &entries, namespace)).collect()
}

/// The number of a process's mount namespace.
pub fn namespace(pid: u32) -> Option<i64> {
    Some(fs::metadata(format!("/proc/{pid}/ns/mnt")).ok()?.ino() as i64)
}

fn row(entry: &MountEntry, all: &[MountEntry], namespace: i64) -> Mount {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let device = device(entry);
    let queue = |name: &str| fs::read_to_string(device.as_ref()?.disk.join("queue").join(name)).ok();
    let number = |name| queue(name).and_then(|s| s.trim().parse().ok());
    let fstype = lossy(&entry.fstype);
    let scope = scope(entry, all);
    Mount {
        mount_id: entry.mount_id,
        mount_ns: namespace,
        path: lossy(&entry.path),
        root: lossy(&entry.root),
        scope,
        source: lossy(&entry.source),
        server: (scope == "remote").then(|| server(&lossy(&entry.source))).flatten(),
        options: lossy(&entry.options),
        super_options: lossy(&entry.super_options),
        lower: option(entry, b"lowerdir").filter(|_| fstype == "overlay").map(lossy),
        upper: option(entry, b"upperdir").filter(|_| fstype == "overlay").map(lossy),
        fstype,
        dev: i64::from(entry.dev),
        device: device.as_ref().and_then(|d| d.name.clone()),
        disk: device.as_ref().and_then(|d| Some(d.disk.file_name()?.to_str()?.to_owned())),
        model: device
            .as_ref()
            .and_then(|d| Some(fs::read_to_string(d.disk.join("device/model")).ok()?.trim().to_owned())),
        block_size: number("logical_block_size"),
        opt_io_size: number("optimal_io_size"),
        rotational: queue("rotational").map(|s| s.trim() == "1"),
        // The one in use stands in brackets.
        scheduler: queue("scheduler").and_then(|s| Some(s.split_once('[')?.1.split_once(']')?.0.to_owned())),
    }
}

/// The value of an option of a file system.
fn option<'a>(entry: &'a MountEntry, name: &[u8]) -> Option<&'a [u8]> {
    let mut options = entry.super_options.split(|b| *b == b',');
    options.find_map(|option| option.strip_prefix(name)?.strip_prefix(b"="))
}

/// `local`, `remote` or `memory`.
fn scope(entry: &MountEntry, all: &[MountEntry]) -> &'static str {
    let fstype = String::from_utf8_lossy(&entry.fstype);
    match fstype.split_once('.').unwrap_or((&fstype, "")) {
        ("overlay", _) => {
            // That of the directory which new data goes to.
            let lower = || option(entry, b"lowerdir")?.split(|b| *b == b':').next();
            let holds = |m: &&MountEntry, dir: &[u8]| m.fstype != b"overlay" && below(&m.path, dir).is_some();
            let dir = option(entry, b"upperdir").or_else(lower).unwrap_or_default();
            let holder = all.iter().filter(|m| holds(m, dir)).max_by_key(|m| m.path.len());
            holder.map_or("local", |m| scope(m, &[]))
        }
        ("fuse", daemon) => match daemon {
            _ if LOCAL_DAEMONS.contains(&daemon) => "local",
            _ => "remote",
        },
        (name, _) if REMOTE.contains(&name) => "remote",
        (name, _) if MEMORY.contains(&name) => "memory",
        _ => "local",
    }
}

/// The server in the source of a mount: `//server/share`, `user@server:/path`, `[address]:/path`.
fn server(source: &str) -> Option<String> {
    let server = match source.strip_prefix("//") {
        Some(rest) => rest.split('/').next()?,
        None => source.split_once(":/").or_else(|| source.split_once(':'))?.0,
    };
    Some(server.to_owned()).filter(|s| !s.is_empty())
}

struct Device {
    name: Option<String>,
    /// Where its disk stands in /sys, which is the device itself or what it is a partition of.
    disk: PathBuf,
}

fn device(entry: &MountEntry) -> Option<Device> {
    let found = |number: u32| {
        let dir = fs::canonicalize(format!("/sys/dev/block/{}:{}", number >> 20, number & 0xf_ffff)).ok()?;
        let text = fs::read_to_string(dir.join("uevent")).unwrap_or_default();
        let name = text.lines().find_map(|l| l.strip_prefix("DEVNAME=")).map(str::to_owned);
        let disk = if dir.join("partition").exists() { dir.parent()?.to_owned() } else { dir };
        Some(Device { name, disk })
    };
    // Some file systems (btrfs) are on a device and have a number of their own.
    let source = || {
        let path = Path::new(std::str::from_utf8(&entry.source).ok()?);
        let meta = fs::metadata(path).ok().filter(|m| path.starts_with("/dev") && m.file_type().is_block_device())?;
        let (major, minor) = (nix::sys::stat::major(meta.rdev()), nix::sys::stat::minor(meta.rdev()));
        found((major as u32) << 20 | minor as u32)
    };
    found(entry.dev).or_else(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(lines: &[&str]) -> Vec<MountEntry> {
        maps::mounts(lines.join("\n").as_bytes())
    }

    #[test]
    fn where_the_data_of_a_file_system_is() {
        let all = entries(&[
            "1 1 8:1 / / rw - ext4 /dev/sda1 rw",
            "2 1 0:20 / /dev/shm rw - tmpfs tmpfs rw",
            "3 1 0:21 / /a rw - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/dev/shm/up,workdir=/dev/shm/w",
            "4 1 0:22 / /b rw - overlay overlay rw,lowerdir=/l1:/l2",
            "5 1 0:23 / /c rw - nfs4 srv:/x rw,vers=4.2,addr=10.0.0.1",
            "6 1 0:24 / /d rw - fuse.sshfs u@far:/x rw",
            "7 1 0:25 / /e rw - fuse.bindfs /x rw",
            "8 1 0:26 / /f rw - lustre 10.0.0.2@tcp:/scratch rw",
        ]);
        let scopes: Vec<&str> = all.iter().map(|e| scope(e, &all)).collect();
        assert_eq!(scopes, ["local", "memory", "memory", "local", "remote", "remote", "local", "remote"]);
        assert_eq!(option(&all[2], b"upperdir"), Some(b"/dev/shm/up".as_slice()));
        assert_eq!(option(&all[3], b"upperdir"), None);
    }

    #[test]
    fn servers_stand_in_the_source() {
        let cases = [
            ("srv:/export/x", Some("srv")),
            ("[fe80::1]:/x", Some("[fe80::1]")),
            ("//files/share/dir", Some("files")),
            ("u@far:dir", Some("u@far")),
            ("10.0.0.2@tcp:/scratch", Some("10.0.0.2@tcp")),
            ("tag", None),
        ];
        for (source, want) in cases {
            assert_eq!(server(source).as_deref(), want, "{source}");
        }
    }
}
