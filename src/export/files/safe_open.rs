//! The way to a directory that others may exchange while a privileged program goes it: with the rights of its caller, or
//! along directories alone, and links that only root can have placed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, mkdirat};
use nix::unistd::{Gid, Uid, geteuid, getgroups, setfsgid, setfsuid};
use rustix::thread::set_thread_groups;

use crate::loader::processes::users;

/// Links that one path may lead through, as in the kernel (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

/// Makes the directory `path`, unless there is one, and opens it. One that was made belongs to `owner`.
///
/// # Errors
/// When it cannot be made, is no directory, or `privileged` and to be reached by a link that others may have placed.
pub fn reach(path: &Path, owner: Option<(u32, u32)>, privileged: bool) -> Result<File> {
    if !privileged {
        return make_and_open(AT_FDCWD, path, path, owner, false);
    }
    // What the caller may do itself is done with its rights: the kernel checks them at each step, whatever is exchanged.
    if let Some((uid, gid)) = owner
        && let Ok(file) = with_rights_of(uid, gid, || make_and_open(AT_FDCWD, path, path, None, true))
        && file.metadata().is_ok_and(|meta| meta.uid() == uid)
    {
        return Ok(file);
    }
    let parent = walk(path.parent().filter(|_| path.file_name().is_some()).unwrap_or(path), path)?;
    make_and_open(parent.as_fd(), path.file_name().map_or(Path::new("."), Path::new), path, owner, true)
}

/// Opens the directory `path`.
///
/// # Errors
/// When there is none, or `privileged` and to be reached by a link that others may have placed.
pub fn find(path: &Path, privileged: bool) -> Result<File> {
    if !privileged {
        return open(AT_FDCWD, path, path, false);
    }
    let parent = walk(path.parent().filter(|_| path.file_name().is_some()).unwrap_or(path), path)?;
    open(parent.as_fd(), path.file_name().map_or(Path::new("."), Path::new), path, true)
}

/// Makes the directory in one that is open, unless there is one, and opens it.
pub fn make_and_open(
    parent: BorrowedFd<'_>,
    name: &Path,
    path: &Path,
    owner: Option<(u32, u32)>,
    privileged: bool,
) -> Result<File> {
    let made = make(parent, name, path)?;
    let file = open(parent, name, path, privileged)?;
    if let (true, Some((uid, gid))) = (made, owner) {
        // It may be another one by now: what is empty and our own does no harm in other hands.
        let what = || format!("cannot give {} to user {uid}", path.display());
        let own = file.metadata().with_context(what)?.uid() == geteuid().as_raw();
        ensure!(own && is_empty(&file).with_context(what)?, "{} was exchanged while it was made", path.display());
        fchown(&file, Some(uid), Some(gid)).with_context(what)?;
    }
    Ok(file)
}

fn is_empty(directory: &File) -> Result<bool> {
    let fd = openat(directory, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    for entry in nix::dir::Dir::from_fd(fd)?.iter() {
        if ![&b"."[..], b".."].contains(&entry?.file_name().to_bytes()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes the directory `path`, which is `name` in `parent`; false if something of that name exists.
fn make(parent: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<bool> {
    match mkdirat(parent, name, Mode::S_IRWXU) {
        Ok(()) => Ok(true),
        Err(Errno::EEXIST) => Ok(false),
        Err(Errno::ENOENT) => no_parent(path),
        Err(errno) => Err(errno).with_context(|| format!("cannot create {}", path.display())),
    }
}

pub fn no_parent<T>(path: &Path) -> Result<T> {
    bail!("cannot create {}: its parent directory does not exist; create that first", path.display())
}

fn open(parent: BorrowedFd<'_>, name: &Path, path: &Path, privileged: bool) -> Result<File> {
    let mut flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    if privileged {
        flags |= OFlag::O_NOFOLLOW;
    }
    let opened = openat(parent, name, flags, Mode::empty());
    Ok(File::from(opened.map_err(|errno| not_a_directory(path, errno, privileged))?))
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

/// The user and group of this thread for file systems, until it is dropped.
struct Rights {
    groups: Vec<Gid>,
    gid: Gid,
    uid: Uid,
}

impl Drop for Rights {
    fn drop(&mut self) {
        setfsuid(self.uid);
        setfsgid(self.gid);
        // It could be set before, and the user is the same again.
        let _ = set_groups(&self.groups);
    }
}

fn set_groups(groups: &[Gid]) -> Result<()> {
    let groups: Vec<_> = groups.iter().map(|gid| rustix::thread::Gid::from_raw(gid.as_raw())).collect();
    set_thread_groups(&groups).context("groups of this thread")
}

/// Does something as that user, as far as file systems go.
pub fn with_rights_of<T>(uid: u32, gid: u32, act: impl FnOnce() -> Result<T>) -> Result<T> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    let groups: Vec<Gid> = users::groups(uid.as_raw(), gid.as_raw()).into_iter().map(Gid::from_raw).collect();
    let before = getgroups()?;
    set_groups(&groups)?;
    let _rights = Rights { groups: before, gid: setfsgid(gid), uid: setfsuid(uid) };
    // These calls return the previous id, and no error.
    ensure!(setfsgid(gid) == gid && setfsuid(uid) == uid, "cannot take the rights of user {uid}");
    act()
}

pub fn is_link(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFLNK
}

/// Can only root have placed this link in this directory?
pub fn is_trusted(directory: &OwnedFd, link: &FileStat) -> Result<bool> {
    let (root, stat) = (geteuid().as_raw(), fstat(directory)?);
    let mode = Mode::from_bits_truncate(stat.st_mode);
    let shared = mode.intersects(Mode::S_IWGRP | Mode::S_IWOTH);
    // In a directory with the sticky bit a link is its owner's.
    Ok(stat.st_uid == root && (!shared || (mode.contains(Mode::S_ISVTX) && link.st_uid == root)))
}

/// Opens a directory step by step. `path` is what for.
pub fn walk(directory: &Path, path: &Path) -> Result<OwnedFd> {
    let step = |at: BorrowedFd<'_>, name: &Path| {
        openat(at, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
    };
    let shown = path.display();
    let mut at = step(AT_FDCWD, Path::new(".")).with_context(|| format!("cannot reach {shown}"))?;
    let mut links = 0;
    let parts = |path: &Path| -> Vec<OsString> { path.components().map(|c| c.as_os_str().to_owned()).collect() };
    let mut left: VecDeque<OsString> = parts(directory).into();
    while let Some(part) = left.pop_front() {
        let next = match step(at.as_fd(), Path::new(&part)) {
            Ok(next) => next,
            Err(Errno::ENOENT) => return no_parent(path),
            Err(errno) => return Err(errno).with_context(|| format!("cannot reach {shown}")),
        };
        let stat = fstat(&next).with_context(|| format!("cannot reach {shown}"))?;
        if !is_link(&stat) {
            at = next;
            continue;
        }
        let name = PathBuf::from(&part);
        if !is_trusted(&at, &stat)? {
            bail!(
                "{shown}: '{}' is a symbolic link in a directory that not only root writes to, which a privileged program \
                 does not follow; give the directory itself",
                name.display()
            );
        }
        links += 1;
        ensure!(links <= MAX_LINKS, "{shown}: too many symbolic links");
        let target = readlinkat(&next, "").with_context(|| format!("cannot reach {shown}"))?;
        for part in parts(Path::new(&target)).into_iter().rev() {
            left.push_front(part);
        }
    }
    Ok(at)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nix::fcntl::{RenameFlags, renameat2};
    use nix::unistd::{UnlinkatFlags, unlinkat};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use tempfile::TempDir;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn links_on_the_way_are_followed_where_no_other_user_can_have_placed_them() {
        let dir = TempDir::new().unwrap();
        let (real, link) = (dir.path().join("real/sub"), dir.path().join("link"));
        fs::create_dir_all(&real).unwrap();
        symlink("./real/../real", &link).unwrap();
        let reached = |mode_of_dir: u32| {
            mode(dir.path(), mode_of_dir);
            reach(&link.join("sub/run"), None, true).map_err(|e| e.to_string())
        };
        for trusted in [0o700, 0o755, 0o1777] {
            reached(trusted).unwrap();
            fs::remove_dir(real.join("run")).unwrap();
        }
        for shared in [0o777, 0o775] {
            let refused = reached(shared).unwrap_err();
            assert!(refused.contains("'link' is a symbolic link") && refused.contains("sub/run"), "{refused}");
        }
        assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
        // Without links, and without privileges, nothing is different.
        assert!(reach(&real.join("run"), None, true).is_ok());
        assert!(reach(&link.join("sub/run"), None, false).is_ok());
        let loops = dir.path().join("loop");
        symlink("loop", &loops).unwrap();
        mode(dir.path(), 0o700);
        assert!(reach(&loops.join("run"), None, true).unwrap_err().to_string().contains("too many"));
        assert!(reach(&dir.path().join("no/run"), None, true).unwrap_err().to_string().contains("parent directory"));
    }

    #[test]
    fn every_way_to_write_a_path_leads_there() {
        let dir = TempDir::new().unwrap();
        let inode = |file: &File| file.metadata().unwrap().ino();
        let own = inode(&reach(&dir.path().join("run"), None, true).unwrap());
        for path in ["run", "./run", "sub/../run", "run/.", "run/sub/.."] {
            fs::create_dir_all(dir.path().join("run/sub")).unwrap();
            fs::create_dir_all(dir.path().join("sub")).unwrap();
            assert_eq!(inode(&reach(&dir.path().join(path), None, true).unwrap()), own, "{path}");
        }
        assert_eq!(inode(&reach(Path::new("."), None, true).unwrap()), fs::metadata(".").unwrap().ino());
        assert_eq!(inode(&reach(Path::new("/"), None, true).unwrap()), fs::metadata("/").unwrap().ino());
    }

    #[test]
    fn what_is_exchanged_meanwhile_leads_nowhere() {
        let dir = TempDir::new().unwrap();
        mode(dir.path(), 0o755);
        let (victim, shared) = (dir.path().join("victim"), dir.path().join("shared"));
        let (real, link) = (shared.join("above"), shared.join("link"));
        fs::create_dir_all(victim.join("sub")).unwrap();
        fs::create_dir_all(real.join("sub")).unwrap();
        symlink(&victim, &link).unwrap();
        mode(&shared, 0o777);
        let caller = geteuid().is_root().then_some((65534, 65534));
        if let Some((uid, gid)) = caller {
            for own in [&shared, &real, &real.join("sub")] {
                std::os::unix::fs::chown(own, Some(uid), Some(gid)).unwrap();
            }
        }
        let own = File::open(&real).unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    renameat2(AT_FDCWD, &real, AT_FDCWD, &link, RenameFlags::RENAME_EXCHANGE).unwrap();
                }
            });
            for round in 0..900 {
                let name = shared.join(["above/run", "above/sub/run", "above"][round % 3]);
                let _ = reach(&name, if round % 2 == 0 { caller } else { None }, true);
                let there = |path: &Path| fs::read_dir(path).unwrap().count();
                assert_eq!((there(&victim), there(&victim.join("sub"))), (1, 0), "{}", name.display());
                for made in ["run", "sub/run"] {
                    let _ = unlinkat(&own, made, UnlinkatFlags::RemoveDir);
                }
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(fs::metadata(&victim).unwrap().uid(), geteuid().as_raw());
    }
}
