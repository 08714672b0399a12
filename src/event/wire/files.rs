//! Records of files, control groups and mappings: paths come as components, innermost first.

use crate::event::wire::{Mapped, Record, WireError, get, tail};
use crate::event::{Cgroup, Event, FileKey, Sighting};
use crate::skel::types as t;

/// Components, innermost first and each ended by NUL, to an absolute path; where the outer ones were cut off it begins
/// with an ellipsis.
pub(super) fn join_path(components: &[u8], cut: bool) -> Vec<u8> {
    let mut path = Vec::with_capacity(components.len() + 4);
    if cut {
        path.extend_from_slice("…".as_bytes());
    }
    for part in components.split(|b| *b == 0).rev().filter(|p| !p.is_empty() && *p != b"/") {
        path.push(b'/');
        path.extend_from_slice(part);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}

/// The path of a file in its file system, if that is known.
fn inside(f: &t::iot_file, parts: &[u8]) -> Option<Vec<u8>> {
    let (seen, more) = parts.split_at_checked(f.len as usize)?;
    Some(join_path(&[seen.get(..f.within as usize)?, more].concat(), false))
}

fn until_nul(bytes: &[u8]) -> String {
    let text = bytes.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

const S_IFMT: u16 = 0o170_000;

const S_IFDIR: u16 = 0o040_000;

/// How many names it has. What a directory counts is the directories in it.
fn links(f: &t::iot_file) -> u32 {
    u32::from(if f.mode & S_IFMT == S_IFDIR { f.nlink.min(1) } else { f.nlink })
}

/// The path of a file. Sockets and pipes have none but are called as in /proc/PID/fd.
fn path_of(f: &t::iot_file, components: &[u8]) -> Vec<u8> {
    const S_IFIFO: u16 = 0o010_000;
    const S_IFSOCK: u16 = 0o140_000;
    let path = join_path(components, f.cut != 0);
    match f.mode & S_IFMT {
        S_IFSOCK => format!("socket:[{}]", f.ino).into_bytes(),
        S_IFIFO if path == b"/" => format!("pipe:[{}]", f.ino).into_bytes(),
        _ => path,
    }
}

pub(super) fn file(kind: u8, bytes: &[u8]) -> Result<Event, WireError> {
    let f: &t::iot_file = get(kind, bytes)?;
    let parts = tail::<t::iot_file>(kind, bytes, f.len.saturating_add(f.more))?;
    let path = path_of(f, parts.get(..f.len as usize).unwrap_or_default());
    let below = FileKey { dev: f.data_dev, generation: f.data_generation, ino: f.data_ino };
    Ok(Event::File {
        time: f.time,
        key: FileKey { dev: f.dev, generation: f.generation, ino: f.ino },
        pid: f.tgid,
        seen: Sighting {
            path,
            root: f.root,
            inside: inside(f, parts),
            mount: f.mount as i32,
            fs_dev: f.fs_dev,
            size: f.size,
            fstype: until_nul(&f.fstype),
            block_size: 1u32.checked_shl(u32::from(f.blkbits)),
            links: links(f),
            data: (f.data_ino != 0).then_some(below),
        },
    })
}

pub(super) fn belongs(kind: u8, bytes: &[u8]) -> Result<Event, WireError> {
    let g: &t::iot_group = get(kind, bytes)?;
    let path = join_path(tail::<t::iot_group>(kind, bytes, g.len)?, g.cut != 0);
    let path = String::from_utf8_lossy(&path).into_owned();
    // Processes that were never put into a group are in the root: its number identifies nothing.
    let id = (g.len > 0).then_some(g.id);
    let cgroup = (g.known != 0).then_some(Cgroup { path, id });
    Ok(Event::Belongs { time: g.time, process: g.process, uid: g.uid, user: None, cgroup, container: None })
}

pub(super) fn mapped(m: &t::iot_map) -> Record {
    let key = FileKey { dev: m.dev, generation: m.generation, ino: m.ino };
    Record::Mapped(Mapped {
        pid: m.tgid,
        file: (m.ino != 0).then_some((key, (m.sec as i64, i64::from(m.nsec)))),
        moved: m.moved != 0,
    })
}
