//! The directory of a dataset: made, locked and filled without ever following a link.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchownat, unlinkat};

use crate::export::dataset::names;
use crate::export::files::flush;
use crate::export::files::safe_open::{find, make_and_open, reach};

/// A locked directory that files are made in, relative to its descriptor.
pub struct Directory {
    path: PathBuf,
    /// Holds the lock for as long as it is open.
    file: File,
    /// The owner of the files.
    owner: Option<(u32, u32)>,
}

/// A directory that is found again, whatever its name is.
pub struct TrackedDirectory {
    file: File,
    path: PathBuf,
}

impl TrackedDirectory {
    /// Its path: the one that it was given, as long as that leads to it.
    pub fn now(&self) -> PathBuf {
        let own = self.file.metadata().ok();
        let is_it = |path: &Path| {
            let there = std::fs::metadata(path).ok();
            own.as_ref().zip(there).is_some_and(|(own, there)| (own.dev(), own.ino()) == (there.dev(), there.ino()))
        };
        if is_it(&self.path) {
            return self.path.clone();
        }
        let renamed = std::fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd())).ok();
        renamed.filter(|path| is_it(path)).unwrap_or_else(|| self.path.clone())
    }
}

impl Directory {
    /// Makes or takes over the directory `path` and locks it.
    ///
    /// A `privileged` caller refuses a link as the last component: a user who may place one could
    /// otherwise choose where a privileged program writes.
    ///
    /// # Errors
    /// When it cannot be made, is a link (privileged), is locked by another writer or is not empty.
    /// With `force` the files of an earlier dataset are removed; any other file still makes it refuse.
    pub fn create(path: &Path, force: bool, owner: Option<(u32, u32)>, privileged: bool) -> Result<Self> {
        let directory = Self::take(path, owner, privileged)?;
        directory.clear(force)?;
        Ok(directory)
    }

    /// The same with whatever is in it.
    pub fn take(path: &Path, owner: Option<(u32, u32)>, privileged: bool) -> Result<Self> {
        // Without a trailing slash, which would make the kernel follow a link whatever the flags are.
        let path: PathBuf = path.components().collect();
        let file = reach(&path, owner, privileged)?;
        Self::lock(file, path, owner)
    }

    /// A new, empty directory in this one.
    ///
    /// # Errors
    /// When there is something of that name.
    pub fn create_within(&self, name: &str) -> Result<Self> {
        ensure!(self.is_there(), "{} was removed during the trace", self.path.display());
        let path = self.path.join(name);
        let file = make_and_open(self.file.as_fd(), Path::new(name), &path, self.owner, true)?;
        let directory = Self::lock(file, path, self.owner)?;
        directory.clear(false)?;
        Ok(directory)
    }

    /// The directory `path`, which must exist, locked. What a `privileged` caller writes belongs to the owner
    /// of the directory.
    ///
    /// # Errors
    /// When there is none, it is a link (privileged), or a process writes it.
    pub fn existing(path: &Path, privileged: bool) -> Result<Self> {
        let path: PathBuf = path.components().collect();
        let file = find(&path, privileged)?;
        let owner = file.metadata().ok().filter(|_| privileged).map(|meta| (meta.uid(), meta.gid()));
        Self::lock(file, path, owner)
    }

    /// The directory `path`, which must exist and may be written by others, too. What is made there belongs to `owner`.
    ///
    /// # Errors
    /// When there is none, or it is a link (privileged).
    pub fn unlocked(path: &Path, owner: Option<(u32, u32)>, privileged: bool) -> Result<Self> {
        let path: PathBuf = path.components().collect();
        let file = find(&path, privileged)?;
        Ok(Self { path, file, owner })
    }

    /// A directory in this one, locked; `None` when what has the name is no directory.
    ///
    /// # Errors
    /// When it cannot be opened, or a process writes it.
    pub fn below(&self, name: &str) -> Result<Option<Self>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let path = self.path.join(name);
        let file = match openat(&self.file, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOTDIR | Errno::ELOOP) => return Ok(None),
            Err(errno) => return Err(errno).with_context(|| format!("cannot open {}", path.display())),
        };
        Self::lock(file, path, self.owner).map(Some)
    }

    fn lock(file: File, path: PathBuf, owner: Option<(u32, u32)>) -> Result<Self> {
        match file.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => bail!(
                "{} is being written by another iotrace-bpf; wait for it to end or choose another directory",
                path.display()
            ),
            // Some network file systems cannot lock a directory. New files are still made with O_EXCL.
            Ok(()) | Err(std::fs::TryLockError::Error(_)) => {}
        }
        Ok(Self { path, file, owner })
    }

    /// The directory's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What finds it again when it was given another name.
    pub fn tracked(&self) -> Result<TrackedDirectory> {
        let file = self.file.try_clone().with_context(|| self.path.display().to_string())?;
        Ok(TrackedDirectory { file, path: self.path.clone() })
    }

    /// Takes over all files of a dataset.
    ///
    /// # Errors
    /// When they cannot be read there, or written here.
    pub fn take_over(&self, from: &TrackedDirectory) -> Result<()> {
        let what = |name: &str| format!("cannot write {}", self.path.join(name).display());
        for name in entries(&from.file)?.iter().filter(|name| is_ours(name)).map(String::as_str) {
            if renameat(&from.file, name, &self.file, name).is_err() {
                // Another file system.
                let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let mut read = File::from(openat(&from.file, name, flags, Mode::empty()).with_context(|| what(name))?);
                io::copy(&mut read, &mut self.create_file(name)?).with_context(|| what(name))?;
            } else if let Some((uid, gid)) = self.owner {
                let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
                fchownat(&self.file, name, uid, gid, AtFlags::AT_SYMLINK_NOFOLLOW).with_context(|| what(name))?;
            }
        }
        Ok(())
    }

    /// A new file of mode 0600.
    pub fn create_file(&self, name: &str) -> Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let what = || format!("cannot create {}", self.path.join(name).display());
        let file = File::from(openat(&self.file, name, flags, Mode::S_IRUSR | Mode::S_IWUSR).with_context(what)?);
        if let Some((uid, gid)) = self.owner {
            fchown(&file, Some(uid), Some(gid)).with_context(what)?;
        }
        Ok(file)
    }

    /// Opens a regular file to read it.
    pub fn open_file(&self, name: &str) -> Result<File> {
        let what = || format!("cannot open {}", self.path.join(name).display());
        // Opening a pipe would wait for ever.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.file, name, flags, Mode::empty()).with_context(what)?);
        ensure!(file.metadata().with_context(what)?.is_file(), "{} is no file", self.path.join(name).display());
        Ok(file)
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> Result<()> {
        unlinkat(&self.file, name, UnlinkatFlags::NoRemoveDir)
            .with_context(|| format!("cannot remove {}", self.path.join(name).display()))
    }

    /// The bytes of these files.
    pub fn size(&self, names: &[String]) -> u64 {
        names.iter().filter_map(|name| self.stat(name)).map(|stat| stat.st_size as u64).sum()
    }

    /// Gives a file its final name.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        renameat(&self.file, from, &self.file, to)
            .with_context(|| format!("cannot rename {} to {to}", self.path.join(from).display()))
    }

    /// Waits until these files and their names are on the device.
    pub fn sync(&self, names: &[String]) -> Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        flush::all(names, |name| {
            openat(&self.file, name, flags, Mode::empty())
                .map_err(io::Error::from)
                .and_then(|fd| File::from(fd).sync_all())
                .with_context(|| format!("cannot sync {}", self.path.join(name).display()))
        })?;
        match self.file.sync_all() {
            // Some file systems have nothing to sync for a directory and return an error.
            Err(e) if e.raw_os_error() == Some(Errno::EINVAL as i32) => Ok(()),
            done => done.with_context(|| format!("cannot sync {}", self.path.display())),
        }
    }

    /// The bytes of the regular files in it.
    pub fn bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for name in self.entries()? {
            // A file that is given its final name meanwhile is missed once.
            if let Some(stat) = self.stat(&name).filter(is_file) {
                bytes += stat.st_size as u64;
            }
        }
        Ok(bytes)
    }

    fn stat(&self, name: &str) -> Option<FileStat> {
        fstatat(&self.file, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
    }

    /// A dataset in this directory, if that is what stands under the name.
    pub fn dataset(&self, name: &str) -> Option<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.file, name, flags, Mode::empty()).ok()?);
        let directory = Self { path: self.path.join(name), file, owner: self.owner };
        directory.entries().is_ok_and(|entries| entries.iter().any(|e| is_meta(e))).then_some(directory)
    }

    /// Removes a dataset from this directory if it is complete: no process writes it, every part is closed, and there is nothing
    /// else in it. Returns whether it was.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_dataset(&self, name: &str) -> Result<bool> {
        let Some(dataset) = self.dataset(name) else { return Ok(false) };
        if matches!(dataset.file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
            return Ok(false);
        }
        let mut entries = dataset.entries().with_context(|| format!("cannot list {}", dataset.path.display()))?;
        let closed = |e: &str| is_views(e) || names::parse(e).is_some_and(|part| !part.open);
        if !entries.iter().all(|e| closed(e) && dataset.stat(e).as_ref().is_some_and(is_file)) {
            return Ok(false);
        }
        // Its own facts last: what is left when this is cut short is still known to be a dataset.
        entries.sort_by_key(|e| is_meta(e));
        let what = || format!("cannot remove {}", dataset.path.display());
        for entry in &entries {
            unlinkat(&dataset.file, entry.as_str(), UnlinkatFlags::NoRemoveDir).with_context(what)?;
        }
        unlinkat(&self.file, name, UnlinkatFlags::RemoveDir).with_context(what)?;
        Ok(true)
    }

    /// Removes what was written of a dataset in this directory that could not be completed.
    ///
    /// # Errors
    /// When it cannot be removed, or something else is in it.
    pub fn discard(&self, name: &str) -> Result<()> {
        let what = || format!("cannot remove {}", self.path.join(name).display());
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.file, name, flags, Mode::empty()).with_context(what)?);
        let dataset = Self { path: self.path.join(name), file, owner: self.owner };
        for entry in dataset.entries()?.iter().filter(|entry| is_ours(entry)) {
            unlinkat(&dataset.file, entry.as_str(), UnlinkatFlags::NoRemoveDir).with_context(what)?;
        }
        unlinkat(&self.file, name, UnlinkatFlags::RemoveDir).with_context(what)
    }

    /// Whether it still has a name: what is written into one that was removed is lost.
    pub fn is_there(&self) -> bool {
        nix::sys::stat::fstat(&self.file).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// Makes sure that the directory is empty.
    fn clear(&self, force: bool) -> Result<()> {
        let entries = self.entries().with_context(|| format!("cannot list {}", self.path.display()))?;
        if entries.is_empty() {
            return Ok(());
        }
        if !force {
            bail!(
                "{} exists and is not empty; choose another directory, or --force to replace a dataset",
                self.path.display()
            );
        }
        if let Some(other) = entries.iter().find(|name| !is_ours(name)) {
            bail!(
                "{} holds '{}', which is no file of a dataset; --force removes nothing else: choose another directory",
                self.path.display(),
                other.escape_debug()
            );
        }
        for name in entries {
            unlinkat(&self.file, name.as_str(), UnlinkatFlags::NoRemoveDir)
                .with_context(|| format!("cannot remove {}", self.path.join(&name).display()))?;
        }
        Ok(())
    }

    /// What is in it, by name.
    pub fn entries(&self) -> Result<Vec<String>> {
        entries(&self.file)
    }
}

fn entries(directory: &File) -> Result<Vec<String>> {
    let fd: OwnedFd = openat(directory, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut entries = Vec::new();
    for entry in Dir::from_fd(fd)?.iter() {
        // A name that is not UTF-8 becomes another name here, which is no name of a dataset's file either.
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            entries.push(name);
        }
    }
    entries.sort();
    Ok(entries)
}

fn is_file(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
}

fn is_views(name: &str) -> bool {
    matches!(name, names::VIEWS | names::VIEWS_SPARK)
}

/// Whether it is a name of a dataset's file.
fn is_ours(name: &str) -> bool {
    is_views(name) || names::parse(name).is_some()
}

fn is_meta(name: &str) -> bool {
    names::parse(name).is_some_and(|part| part.table == "meta" && !part.open)
}

/// Makes a directory for datasets of several nodes, of the user's, unless there is one: another node may have made it. A
/// `privileged` caller refuses a link, as with a dataset's own directory.
///
/// # Errors
/// When it cannot be made, or is no directory.
pub fn make_shared(path: &Path, owner: Option<(u32, u32)>, privileged: bool) -> Result<()> {
    let path: PathBuf = path.components().collect();
    reach(&path, owner, privileged).map(drop)
}
