//! What is kept from run to run, in files that only we may write. Without it all is found out again.

use nix::fcntl::OFlag;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Where they are; the directory of a service comes first (systemd.exec(5), `CacheDirectory=`).
const DIRECTORY: &str = "/var/cache/iotrace-bpf";
const OF_SERVICE: &str = "CACHE_DIRECTORY";

const MOST_BYTES: u64 = 8 << 20;

/// A file of it.
#[derive(Debug, Clone)]
pub struct Cache {
    path: PathBuf,
    /// What its content is true under; one line.
    conditions: String,
}

impl Cache {
    /// The file of this name. It counts until the next boot, which may number devices otherwise, for this very
    /// program, and under the same further conditions. Nothing where these are not known.
    pub fn new(name: &str, further: &dyn Debug) -> Option<Self> {
        let directory = std::env::var_os(OF_SERVICE).map_or_else(|| PathBuf::from(DIRECTORY), PathBuf::from);
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let own = fs::metadata("/proc/self/exe").ok()?;
        let program = (own.dev(), own.ino(), own.size(), own.mtime(), own.mtime_nsec());
        let conditions = format!("{} {program:?} {} {further:?}", env!("CARGO_PKG_VERSION"), boot.trim());
        Some(Self { path: directory.join(name), conditions })
    }

    /// What an earlier run has kept.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.bytes()?).ok()
    }

    /// The same as it stands in the file, behind a line of conditions. Nothing where others than us may write it.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&self.path).ok()?;
        let metadata = file.metadata().ok()?;
        let own = metadata.uid() == nix::unistd::geteuid().as_raw() && metadata.mode() & 0o022 == 0;
        if !(own && metadata.is_file()) {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let content = bytes.split_off(end + 1);
        (bytes.get(..end) == Some(self.conditions.as_bytes())).then_some(content)
    }

    /// Keeps it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write<T: Serialize>(&self, content: T) -> io::Result<()> {
        self.write_bytes(&serde_json::to_vec(&content)?)
    }

    /// Keeps it as it is, whole or not at all: another trace may do so at the same time.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_bytes(&self, content: &[u8]) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let new = self.path.with_extension(format!("{}.new", std::process::id()));
        let bytes = [self.conditions.as_bytes(), b"\n", content].concat();
        let written = create(&new).and_then(|mut file| file.write_all(&bytes));
        let renamed = written.and_then(|()| fs::rename(&new, &self.path));
        if renamed.is_err() {
            // A part of it may be there.
            let _ = fs::remove_file(&new);
        }
        renamed
    }
}

fn create(path: &Path) -> io::Result<File> {
    // From a trace of this number that was killed.
    let _ = fs::remove_file(path);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// A file in this directory, true under these conditions.
    pub fn cache(directory: &Path, conditions: &str) -> Cache {
        Cache { path: directory.join("cache/content.json"), conditions: conditions.to_owned() }
    }

    #[test]
    fn what_is_kept_counts_under_the_same_conditions_only() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(cache(directory.path(), "these").read::<Vec<u32>>(), None);
        cache(directory.path(), "these").write([1, 2]).unwrap();
        assert_eq!(cache(directory.path(), "these").read(), Some(vec![1, 2]));
        assert_eq!(cache(directory.path(), "others").read::<Vec<u32>>(), None);
        cache(directory.path(), "others").write([3]).unwrap();
        assert_eq!(cache(directory.path(), "these").read::<Vec<u32>>(), None);
        let files = fs::read_dir(directory.path().join("cache")).unwrap();
        assert_eq!(files.count(), 1);
    }

    #[test]
    fn a_file_that_others_may_write_or_that_is_damaged_counts_for_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), "these");
        cache.write(7).unwrap();
        fs::set_permissions(&cache.path, fs::Permissions::from_mode(0o602)).unwrap();
        assert_eq!(cache.read::<u32>(), None);
        fs::set_permissions(&cache.path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(cache.read::<u32>(), Some(7));
        let whole = fs::read(&cache.path).unwrap();
        fs::write(&cache.path, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(cache.read::<u32>(), None);
        fs::remove_file(&cache.path).unwrap();
        symlink("/dev/zero", &cache.path).unwrap();
        assert_eq!(cache.read::<u32>(), None);
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), "these");
        for content in [b"\0\n\xff\n".as_slice(), b""] {
            cache.write_bytes(content).unwrap();
            assert_eq!(cache.bytes().as_deref(), Some(content));
        }
    }

    #[test]
    fn where_nothing_can_be_kept_nothing_is_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), "these");
        fs::create_dir_all(&cache.path).unwrap();
        cache.write(7).unwrap_err();
        assert_eq!(fs::read_dir(directory.path().join("cache")).unwrap().count(), 1);
    }
}
