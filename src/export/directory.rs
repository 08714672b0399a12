//! The directory of a dataset: made, locked and filled without ever following a link.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::names;

/// A locked directory that files are made in, relative to its descriptor.
pub struct Directory {
    path: PathBuf,
    /// Holds the lock for as long as it is open.
    file: File,
    /// Who gets the files.
    owner: Option<(u32, u32)>,
}

impl Directory {
    /// Makes or takes over the directory `path` and locks it.
    ///
    /// A `privileged` caller refuses a link as the last component: whoever may place one could
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
        // Without a trailing slash, which would make the kernel follow a link whatever the flags say.
        let path: PathBuf = path.components().collect();
        Self::at(AT_FDCWD, &path.clone(), path, owner, privileged)
    }

    /// A new, empty directory in this one.
    ///
    /// # Errors
    /// When there is something of that name.
    pub fn create_within(&self, name: &str) -> Result<Self> {
        let directory = Self::at(self.file.as_fd(), Path::new(name), self.path.join(name), self.owner, true)?;
        directory.clear(false)?;
        Ok(directory)
    }

    fn at(
        parent: BorrowedFd<'_>,
        name: &Path,
        path: PathBuf,
        owner: Option<(u32, u32)>,
        privileged: bool,
    ) -> Result<Self> {
        let made = make(parent, name, &path)?;
        let file = open(parent, name, &path, privileged)?;
        match file.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => bail!(
                "{} is being written by another iotrace-bpf; wait for it to end or choose another directory",
                path.display()
            ),
            // Some network file systems cannot lock a directory. New files are still made with O_EXCL.
            Ok(()) | Err(std::fs::TryLockError::Error(_)) => {}
        }
        if made {
            give(&file, owner, &path)?;
        }
        Ok(Self { path, file, owner })
    }

    /// The directory's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
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

    /// Gives a file its final name.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        renameat(&self.file, from, &self.file, to)
            .with_context(|| format!("cannot rename {} to {to}", self.path.join(from).display()))
    }

    /// Waits until these files and their names are on the device.
    pub fn sync(&self, names: &[String]) -> Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        for name in names {
            openat(&self.file, name.as_str(), flags, Mode::empty())
                .map_err(io::Error::from)
                .and_then(|fd| File::from(fd).sync_all())
                .with_context(|| format!("cannot sync {}", self.path.join(name).display()))?;
        }
        match self.file.sync_all() {
            // Some file systems have nothing to sync for a directory and say so.
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

    /// Removes a dataset from this directory if it is complete: nobody writes it, every part is closed, and there is nothing
    /// else in it. Tells whether it was.
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

    /// Whether it still has a name: nobody finds what is written into one that was removed.
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
        let fd: OwnedFd =
            openat(&self.file, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
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
    let made = make(AT_FDCWD, &path, &path)?;
    let directory = open(AT_FDCWD, &path, &path, privileged)?;
    if made { give(&directory, owner, &path) } else { Ok(()) }
}

fn open(parent: BorrowedFd<'_>, name: &Path, path: &Path, privileged: bool) -> Result<File> {
    let mut flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    if privileged {
        flags |= OFlag::O_NOFOLLOW;
    }
    let opened = openat(parent, name, flags, Mode::empty());
    Ok(File::from(opened.map_err(|errno| not_a_directory(path, errno, privileged))?))
}

fn give(directory: &File, owner: Option<(u32, u32)>, path: &Path) -> Result<()> {
    let Some((uid, gid)) = owner else { return Ok(()) };
    fchown(directory, Some(uid), Some(gid)).with_context(|| format!("cannot give {} to user {uid}", path.display()))
}

/// Makes the directory `path`, which is `name` in `parent`; false if something of that name exists.
fn make(parent: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<bool> {
    match mkdirat(parent, name, Mode::S_IRWXU) {
        Ok(()) => Ok(true),
        Err(Errno::EEXIST) => Ok(false),
        Err(Errno::ENOENT) => {
            bail!("cannot create {}: its parent directory does not exist; create that first", path.display())
        }
        Err(errno) => Err(errno).with_context(|| format!("cannot create {}", path.display())),
    }
}

fn not_a_directory(path: &Path, errno: Errno, privileged: bool) -> anyhow::Error {
    let link = path.symlink_metadata().is_ok_and(|m| m.is_symlink());
    let shown = path.display();
    match errno {
        Errno::ENOTDIR | Errno::ELOOP if link && privileged => {
            anyhow::anyhow!(
                "{shown} is a symbolic link, which a privileged program does not follow; give the directory itself"
            )
        }
        Errno::ENOENT if link => anyhow::anyhow!("{shown} is a symbolic link to nothing; choose another directory"),
        Errno::ENOTDIR => anyhow::anyhow!("{shown} exists and is not a directory; choose another name"),
        errno => anyhow::Error::new(errno).context(format!("cannot open {shown}")),
    }
}
