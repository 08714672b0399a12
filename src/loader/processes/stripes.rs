//! Over how many servers a parallel file system spreads a file, and in pieces of which size: what Lustre and `BeeGFS`
//! report.
//!
//! The layouts are those of Lustre's `lustre/include/uapi/linux/lustre/lustre_user.h` and
//! `beegfs_ioctl.h` of the client of `BeeGFS`.
#![allow(unsafe_code)]

use crate::event::{FileKey, Striping};
use nix::fcntl::OFlag;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

const LUSTRE: &str = "lustre";
const BEEGFS: &str = "beegfs";
/// An attribute is no longer (`XATTR_SIZE_MAX`).
const LONGEST: usize = 64 << 10;
/// Questions that wait. A server that does not answer costs what comes then, and the trace nothing.
const WAITING: usize = 4096;
/// Files that have been asked about.
const REMEMBERED: usize = 1 << 17;
/// How long answers are waited for when the trace ends.
const AT_THE_END: Duration = Duration::from_secs(1);

mod ioctl {
    /// `struct BeegfsIoctl_GetStripeInfo_Arg`: pattern, size of a chunk, number of targets (16 bits), padding.
    pub type Answer = [u8; 12];
    nix::ioctl_read!(stripes, b'f', 25, Answer);
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
}

/// The striping in the attribute `lustre.lov`. Of a composite layout (`lov_comp_md_v1`) it is the component with the highest
/// offset of those that have objects, of the first mirror.
fn lustre(bytes: &[u8]) -> Option<Striping> {
    const COMPOSITE: u32 = 0x0bd6_0bd0;
    const HEADER: usize = 32;
    const ENTRY: usize = 48;
    /// `LCME_FL_INIT`
    const INIT: u32 = 0x10;
    if word(bytes, 0)? != COMPOSITE {
        return plain(bytes);
    }
    let count = usize::from(half(bytes, 14)?);
    let entries = bytes.get(HEADER..)?.chunks_exact(ENTRY).take(count);
    let used = entries.filter(|entry| word(entry, 4).is_some_and(|flags| flags & INIT != 0));
    let component = |entry: &[u8]| {
        let (from, size) = (word(entry, 24)? as usize, word(entry, 28)? as usize);
        Some((long(entry, 8)?, plain(bytes.get(from..from.checked_add(size)?)?)?))
    };
    let all = used.filter_map(component);
    all.reduce(|last, next| if next.0 > last.0 { next } else { last }).map(|(_, striping)| striping)
}

/// A layout of one component (`lov_user_md_v1`, `lov_user_md_v3`).
fn plain(bytes: &[u8]) -> Option<Striping> {
    /// Version 1, 3, and 3 with a list of targets (`LOV_USER_MAGIC_SPECIFIC`).
    const PLAIN: [u32; 3] = [0x0bd1_0bd0, 0x0bd3_0bd0, 0x0bd5_0bd0];
    if !PLAIN.contains(&word(bytes, 0)?) {
        return None;
    }
    let (size, count) = (word(bytes, 24)?, half(bytes, 28)?);
    // 0: the file system's default; -1: all targets. Of data on the metadata server there is no object.
    (size > 0 && ![0, u16::MAX].contains(&count)).then_some(Striping { count: count.into(), size: size.into() })
}

/// What the request `BEEGFS_IOC_GET_STRIPEINFO` answers.
fn beegfs(bytes: &ioctl::Answer) -> Option<Striping> {
    let (pattern, size, count) = (word(bytes, 0)?, word(bytes, 4)?, half(bytes, 8)?);
    (pattern != 0 && size > 0 && count > 0).then_some(Striping { count: count.into(), size: size.into() })
}

fn ask(fstype: &str, path: &Path) -> Option<Striping> {
    if fstype == LUSTRE {
        let mut room = vec![0; LONGEST];
        let len = rustix::fs::lgetxattr(path, "lustre.lov", &mut room[..]).ok()?;
        return lustre(room.get(..len)?);
    }
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut answer = ioctl::Answer::default();
    // SAFETY: the kernel writes as many bytes as the request number encodes, which is made of the type of `answer`.
    unsafe { ioctl::stripes(file.as_raw_fd(), &raw mut answer) }.ok()?;
    beegfs(&answer)
}

struct Question {
    key: FileKey,
    fstype: String,
    /// The process that opened it, and by which path.
    pid: u32,
    path: PathBuf,
}

impl Question {
    /// As its process sees it; as the tracer does when that has ended.
    fn answer(&self) -> Option<Striping> {
        let root = Path::new("/proc").join(self.pid.to_string()).join("root");
        let theirs = self.path.strip_prefix("/").map(|rest| root.join(rest)).ok();
        let here = theirs.filter(|_| root.is_symlink()).unwrap_or_else(|| self.path.clone());
        ask(&self.fstype, &here)
    }
}

type Answers = Receiver<(FileKey, Option<Striping>)>;

/// Asks about files, on a thread of its own: a server may not answer.
#[derive(Default)]
pub struct Stripes {
    thread: Option<(SyncSender<Question>, Answers)>,
    asked: HashSet<FileKey>,
    open: usize,
}

impl Stripes {
    /// A process has opened a file, by this path.
    pub fn opened(&mut self, key: FileKey, fstype: &str, pid: u32, path: &[u8]) {
        if ![LUSTRE, BEEGFS].contains(&fstype) || !self.asked.insert(key) {
            return;
        }
        if self.asked.len() > REMEMBERED {
            self.asked.clear();
        }
        if self.thread.is_none() {
            self.thread = start();
        }
        let Some((questions, _)) = &self.thread else { return };
        let path = PathBuf::from(OsStr::from_bytes(path));
        self.open += usize::from(questions.try_send(Question { key, fstype: fstype.to_owned(), pid, path }).is_ok());
    }

    /// What was answered since this was asked last.
    pub fn take(&mut self) -> Vec<(FileKey, Striping)> {
        let Some((_, answers)) = &self.thread else { return Vec::new() };
        let all: Vec<_> = answers.try_iter().collect();
        self.open -= all.len();
        all.into_iter().filter_map(|(key, striping)| Some((key, striping?))).collect()
    }

    /// The trace ends: the last answers.
    pub fn last(&mut self) -> Vec<(FileKey, Striping)> {
        let until = Instant::now() + AT_THE_END;
        let mut all = Vec::new();
        while let (Some((_, answers)), true) = (&self.thread, self.open > 0) {
            let Ok((key, striping)) = answers.recv_timeout(until.saturating_duration_since(Instant::now())) else {
                break;
            };
            self.open -= 1;
            all.extend(striping.map(|striping| (key, striping)));
        }
        all
    }
}

fn start() -> Option<(SyncSender<Question>, Answers)> {
    let (questions, asked) = sync_channel::<Question>(WAITING);
    let (answer, answers) = channel();
    let work = move || {
        for question in asked {
            if answer.send((question.key, question.answer())).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("stripes".into()).spawn(work).ok()?;
    Some((questions, answers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A layout of one component: magic, pattern, object, size and number of stripes, generation; a pool; objects.
    fn layout(magic: u32, size: u32, count: u16) -> Vec<u8> {
        let mut bytes = [magic, 1, 0x1234, 0, 0x0002_0000, 0x401, size].map(u32::to_le_bytes).concat();
        bytes.extend([count, 0].map(u16::to_le_bytes).concat());
        if magic != 0x0bd1_0bd0 {
            bytes.extend(b"flash\0\0\0\0\0\0\0\0\0\0\0");
        }
        bytes.extend(std::iter::repeat_n(7, 24 * usize::from(count.min(8))));
        bytes
    }

    /// A composite one of components, each with its flags, where it begins, and its own layout.
    fn composite(parts: &[(u32, u64, Vec<u8>)]) -> Vec<u8> {
        let mut at = 32 + 48 * parts.len();
        let mut entries = Vec::new();
        for (n, (flags, from, blob)) in parts.iter().enumerate() {
            entries.extend([n as u32 + 1, *flags].map(u32::to_le_bytes).concat());
            entries.extend([*from, u64::MAX].map(u64::to_le_bytes).concat());
            entries.extend([at as u32, blob.len() as u32, 1, 0, 0, 0].map(u32::to_le_bytes).concat());
            at += blob.len();
        }
        let mut bytes = [0x0bd6_0bd0, at as u32, 3].map(u32::to_le_bytes).concat();
        bytes.extend([0, parts.len() as u16, 0, 0, 0, 0].map(u16::to_le_bytes).concat());
        bytes.extend([0; 8]);
        bytes.extend(entries);
        bytes.extend(parts.iter().flat_map(|(_, _, blob)| blob));
        bytes
    }

    const V1: u32 = 0x0bd1_0bd0;
    const V3: u32 = 0x0bd3_0bd0;

    fn of(count: i32, size: i64) -> Striping {
        Striping { count, size }
    }

    #[test]
    fn the_stripes_of_layouts_of_one_component_are_read() {
        assert_eq!(lustre(&layout(V1, 1 << 20, 4)), Some(of(4, 1 << 20)));
        assert_eq!(lustre(&layout(V3, 4 << 20, 300)), Some(of(300, 4 << 20)));
        assert_eq!(lustre(&layout(0x0bd5_0bd0, 65536, 2)), Some(of(2, 65536)));
        // The default of a directory, all targets, a layout of another kind, and what is cut.
        assert_eq!(
            [layout(V1, 0, 0), layout(V3, 1 << 20, u16::MAX), layout(0x0bd7_0bd0, 1, 1)].map(|b| lustre(&b)),
            [None; 3]
        );
        assert!((0..30).all(|len| lustre(&layout(V1, 1 << 20, 4)[..len]).is_none()));
    }

    #[test]
    fn of_a_composite_layout_the_last_component_in_use_counts() {
        let parts = [
            (0x10, 0, layout(V1, 1 << 20, 1)),
            (0x10, 64 << 20, layout(V3, 4 << 20, 8)),
            (0, 1 << 30, layout(V1, 1 << 24, 64)),
        ];
        assert_eq!(lustre(&composite(&parts)), Some(of(8, 4 << 20)));
        // The same range in another mirror; data on the metadata server only; nothing is there yet.
        let mirrors = [parts[1].clone(), (0x10, 64 << 20, layout(V1, 2 << 20, 2))];
        assert_eq!(lustre(&composite(&mirrors)), Some(of(8, 4 << 20)));
        assert_eq!(
            [lustre(&composite(&[(0x10, 0, layout(V1, 1 << 20, 0))])), lustre(&composite(&parts[2..]))],
            [None; 2]
        );
        // What leads out of it is no component.
        let mut bytes = composite(&parts);
        bytes[32 + 48 + 24..32 + 48 + 32].copy_from_slice(&[0xff; 8]);
        assert_eq!(lustre(&bytes), Some(of(1, 1 << 20)));
        let whole = composite(&parts);
        assert!((0..whole.len()).all(|len| lustre(&whole[..len]).is_none_or(|s| s.size > 0)));
    }

    #[test]
    fn the_chunks_of_beegfs_are_read() {
        let answer = |pattern: u32, size: u32, count: u32| {
            let bytes = [pattern, size, count].map(u32::to_le_bytes).concat();
            beegfs(bytes.first_chunk().unwrap())
        };
        assert_eq!([answer(1, 512 << 10, 4), answer(3, 1 << 20, 2)], [Some(of(4, 512 << 10)), Some(of(2, 1 << 20))]);
        assert_eq!([answer(0, 512 << 10, 4), answer(1, 0, 0)], [None; 2]);
    }
}
