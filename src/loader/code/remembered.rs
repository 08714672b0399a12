//! Libraries that have nothing to probe, remembered from run to run: most of what a program maps is such a file, and
//! each of them would keep its process waiting for the tracer again.

use crate::event::{FileKey, Written};
use crate::loader::cache::Cache;
use crate::vocabulary::Layer;
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file by device (kernel encoding) and inode.
pub type Inode = (u32, u64);

/// As many files are remembered, some 200 bytes each.
const MOST: usize = 16384;

/// A file that was changed later than this before the list was written may be changed again within the same tick of the
/// kernel's clock.
const YOUNG: Duration = Duration::from_secs(2);

/// A file as it is: device, inode, and when it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version {
    major: u32,
    minor: u32,
    ino: u64,
    changed: (i64, u32),
}

impl Version {
    /// The file that a link of /proc leads to. The file system is not asked, which may not answer: what the kernel
    /// remembers of the file is enough.
    pub fn at(link: &str) -> Option<Self> {
        statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::INO | StatxFlags::CTIME).ok().map(Self::from)
    }

    pub fn of(file: impl AsFd) -> Option<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        statx(file, "", flags, StatxFlags::INO | StatxFlags::CTIME).ok().map(Self::from)
    }

    /// Was it changed so long ago that another change would have another time?
    fn is_old(&self, now: Duration) -> bool {
        u64::try_from(self.changed.0).is_ok_and(|seconds| Duration::from_secs(seconds) + YOUNG < now)
    }
}

impl From<Statx> for Version {
    fn from(s: Statx) -> Self {
        let changed = (s.stx_ctime.tv_sec, s.stx_ctime.tv_nsec);
        Self { major: s.stx_dev_major, minor: s.stx_dev_minor, ino: s.stx_ino, changed }
    }
}

/// A library that has nothing to probe, and about which there is nothing to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plain {
    pub version: Version,
    /// As the kernel side knows it: `iot_lib_key`.
    pub dev: u32,
    pub ino: u64,
    pub generation: u32,
    pub written: Written,
}

impl Plain {
    pub const fn inode(&self) -> Inode {
        (self.dev, self.ino)
    }

    pub const fn key(&self) -> FileKey {
        FileKey { dev: self.dev, ino: self.ino, generation: self.generation }
    }
}

/// The files that are remembered.
#[derive(Debug, Default, Clone)]
pub struct Remembered {
    /// Where they are kept, if they are.
    cache: Option<Cache>,
    files: HashMap<Inode, Plain>,
}

impl Remembered {
    /// What earlier runs with these layers found. `all` are the layers of which every function is wanted.
    pub fn load(layers: &[Layer], all: &[Layer]) -> Self {
        Cache::new("nothing-to-probe.json", &(layers, all)).map(Self::of).unwrap_or_default()
    }

    fn of(cache: Cache) -> Self {
        let files: Vec<Plain> = cache.read().unwrap_or_default();
        Self { cache: Some(cache), files: files.into_iter().take(MOST).map(|plain| (plain.inode(), plain)).collect() }
    }

    pub fn files(&self) -> impl Iterator<Item = &Plain> {
        self.files.values()
    }

    pub fn get(&self, inode: Inode) -> Option<&Plain> {
        self.files.get(&inode)
    }

    /// Keeps what this run has found besides.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, found: impl Iterator<Item = Plain>) -> io::Result<()> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let new: HashMap<Inode, Plain> =
            found.filter(|plain| plain.version.is_old(now)).map(|plain| (plain.inode(), plain)).collect();
        if new.iter().all(|(inode, plain)| self.files.get(inode) == Some(plain)) {
            return Ok(());
        }
        let before = self.files.iter().filter(|(inode, _)| !new.contains_key(inode)).map(|(_, plain)| *plain);
        let files: Vec<Plain> = new.values().copied().chain(before).take(MOST).collect();
        cache.write(files)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::loader::cache::tests::cache;
    use std::fs::{self, File};

    fn plain(ino: u64, changed: i64) -> Plain {
        let version = Version { major: 8, minor: 1, ino, changed: (changed, 5) };
        Plain { version, dev: 0x80_0001, ino, generation: 7, written: (changed, 4) }
    }

    fn inodes(remembered: &Remembered) -> Vec<u64> {
        let mut inodes: Vec<u64> = remembered.files().map(|plain| plain.ino).collect();
        inodes.sort_unstable();
        inodes
    }

    #[test]
    fn what_runs_find_adds_up() {
        let directory = tempfile::tempdir().unwrap();
        let remembered = || Remembered::of(cache(directory.path(), "these"));
        assert_eq!(inodes(&remembered()), [0_u64; 0]);
        remembered().keep([plain(1, 10), plain(2, 10)].into_iter()).unwrap();
        // It is another file by now.
        remembered().keep([plain(2, 20), plain(3, 10)].into_iter()).unwrap();
        assert_eq!(inodes(&remembered()), [1, 2, 3]);
        assert_eq!(remembered().get((0x80_0001, 2)), Some(&plain(2, 20)));
    }

    #[test]
    fn a_file_that_was_changed_just_now_is_examined_again() {
        let directory = tempfile::tempdir().unwrap();
        let remembered = || Remembered::of(cache(directory.path(), "these"));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        remembered().keep([plain(1, now), plain(2, now - 60)].into_iter()).unwrap();
        assert_eq!(inodes(&remembered()), [2]);
    }

    #[test]
    fn a_file_that_is_written_in_place_is_another_version() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "one").unwrap();
        let (file, by_name) = (File::open(&path).unwrap(), path.to_str().unwrap());
        let before = Version::of(&file);
        assert!(before.is_some() && before == Version::at(by_name));
        std::thread::sleep(Duration::from_millis(20));
        fs::write(&path, "two").unwrap();
        assert_ne!(before, Version::at(by_name));
        assert_eq!(Version::of(&file), Version::at(by_name));
    }
}
