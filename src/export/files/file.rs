//! One file that is written where the user wants it: never through a link that another user may have placed, and never one
//! that another user has made there.

use crate::base::sudo::invoking_user;
use crate::export::files::safe_open::{is_link, is_trusted, no_parent, walk, with_rights_of};
use anyhow::{Context as _, Result, bail, ensure};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, FcntlArg, OFlag, fcntl, openat, readlinkat};
use nix::sys::stat::{Mode, fstat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::unistd::geteuid;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, fchown, lchown};
use std::path::{Path, PathBuf};

/// Links that one path may lead through, as in the kernel (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// A process that removes and makes it again and again does not keep us longer.
const TRIES: usize = 8;
/// File names are in it, which are private.
const MODE: u32 = 0o600;

/// Makes the file `path`, or empties the one that there is, and opens it. One that was made belongs to `owner`.
///
/// # Errors
/// When it cannot be written, or `privileged` and others may have placed a link or file of this name.
pub fn create_file(path: &Path, owner: Option<(u32, u32)>, privileged: bool) -> Result<File> {
    let what = || format!("cannot write {}", path.display());
    if !privileged {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(path);
        return file.with_context(what);
    }
    // What the caller may do itself is done with its rights: the kernel checks them at each step, whatever is
    // exchanged.
    if let Some((uid, gid)) = owner
        && let Ok(file) = with_rights_of(uid, gid, || Ok(open(AT_FDCWD, path, None)?))
    {
        return taken(file, owner).with_context(what);
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match reach(&path, owner).with_context(what)? {
            Reached::File(file) => return taken(file, owner).with_context(what),
            Reached::Link(to) => path = path.parent().unwrap_or_else(|| Path::new("/")).join(to),
        }
    }
    bail!("{}: too many symbolic links", path.display())
}

/// Makes the file `path`, which must not be there yet. Under sudo it belongs to the caller, as what a trace writes does.
///
/// # Errors
/// When there is such a file, or it cannot be made.
pub fn create_new_file(path: &Path) -> Result<File> {
    let what = || format!("cannot create {}", path.display());
    let file = File::create_new(path).with_context(what)?;
    if let Some((uid, gid)) = invoking_user() {
        fchown(&file, Some(uid), Some(gid)).with_context(what)?;
    }
    Ok(file)
}

/// Does something with the rights of the user who called sudo, as far as file systems go.
///
/// # Errors
/// Those of `act`, and when these rights cannot be had.
pub fn as_invoking_user<T>(act: impl FnOnce() -> Result<T>) -> Result<T> {
    match invoking_user() {
        Some((uid, gid)) => with_rights_of(uid, gid, act),
        None => act(),
    }
}

/// Under sudo the caller gets a file or directory that was just made, with all that is in it.
///
/// # Errors
/// When its owner cannot be changed.
pub fn give_to_caller(path: &Path) -> Result<()> {
    let Some((uid, gid)) = invoking_user() else { return Ok(()) };
    let what = || format!("cannot give {} to user {uid}", path.display());
    if path.symlink_metadata().with_context(what)?.is_dir() {
        for entry in std::fs::read_dir(path).with_context(what)? {
            give_to_caller(&entry.with_context(what)?.path())?;
        }
    }
    lchown(path, Some(uid), Some(gid)).with_context(what)
}

enum Reached {
    File(File),
    Link(PathBuf),
}

/// With all rights: along directories alone, and links that only root can have placed.
fn reach(path: &Path, owner: Option<(u32, u32)>) -> Result<Reached> {
    let name = path.file_name().map(Path::new).context("it is a directory")?;
    let parent = walk(path.parent().unwrap_or_else(|| Path::new("/")), path)?;
    let link = match open(parent.as_fd(), name, owner) {
        Ok(file) => return Ok(Reached::File(file)),
        Err(e) if e.raw_os_error() == Some(Errno::ELOOP as i32) => at(parent.as_fd(), name)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return no_parent(path),
        Err(e) => return Err(e.into()),
    };
    let stat = fstat(&link)?;
    ensure!(
        is_link(&stat) && is_trusted(&parent, &stat)?,
        "it is a symbolic link in a directory that not only root writes to, which a privileged program does not follow; \
         give the file itself"
    );
    if fstatfs(&parent)?.filesystem_type() == PROC_SUPER_MAGIC {
        // A descriptor of our own, which may have no path.
        let opened = openat(&parent, name, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
        return Ok(Reached::File(opened.into()));
    }
    Ok(Reached::Link(readlinkat(&link, "")?.into()))
}

fn at(parent: BorrowedFd<'_>, name: &Path) -> Result<OwnedFd> {
    Ok(openat(parent, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?)
}

/// Opens what there is, or makes it, without following a link. Nothing of what there is has changed then.
fn open(parent: BorrowedFd<'_>, name: &Path, owner: Option<(u32, u32)>) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    for _ in 0..TRIES {
        // A pipe without a reader must not keep us.
        match openat(parent, name, flags | OFlag::O_NONBLOCK, Mode::empty()) {
            Ok(there) => {
                fcntl(&there, FcntlArg::F_SETFL(OFlag::empty()))?;
                return Ok(there.into());
            }
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mode = Mode::from_bits_truncate(MODE);
        match openat(parent, name, flags | OFlag::O_CREAT | OFlag::O_EXCL, mode) {
            Ok(made) => {
                if let Some((uid, gid)) = owner {
                    fchown(&made, Some(uid), Some(gid))?;
                }
                return Ok(made.into());
            }
            Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Empties what was opened, if it is ours to write.
fn taken(file: File, owner: Option<(u32, u32)>) -> Result<File> {
    let meta = file.metadata()?;
    if meta.file_type().is_char_device() || !(meta.is_file() || meta.file_type().is_fifo()) {
        return Ok(file);
    }
    let own = meta.uid() == geteuid().as_raw() || owner.is_some_and(|(uid, _)| uid == meta.uid());
    ensure!(own, "it belongs to user {}, who could read and change it; remove it or choose another name", meta.uid());
    if meta.is_file() {
        ensure!(meta.nlink() <= 1, "it has another name, too (a hard link); remove it or choose another name");
        file.set_len(0)?;
    }
    Ok(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use tempfile::TempDir;

    fn shared(mode: u32) -> TempDir {
        let dir = TempDir::new().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        dir
    }

    #[test]
    fn a_file_is_made_or_emptied_and_only_its_owner_reads_it() {
        let dir = shared(0o1777);
        let path = dir.path().join("report");
        for text in ["long text", "text"] {
            create_file(&path, None, true).unwrap().write_all(text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, MODE);
        for bad in [dir.path().to_owned(), dir.path().join("no/report"), path.join("report"), PathBuf::new()] {
            for privileged in [false, true] {
                let why = format!("{:#}", create_file(&bad, None, privileged).unwrap_err());
                assert!(why.starts_with(&format!("cannot write {}", bad.display())), "{why}");
            }
        }
    }

    #[test]
    fn what_others_may_have_placed_is_not_written_to() {
        let (dir, own) = (shared(0o777), shared(0o755));
        let victim = own.path().join("victim");
        fs::write(&victim, "safe").unwrap();
        let refused = |path: &Path, expected: &str| {
            let why = format!("{:#}", create_file(path, None, true).unwrap_err());
            assert!(why.contains(expected), "{why}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "safe");
        };
        let (link, hard, dangling) = (dir.path().join("link"), dir.path().join("hard"), dir.path().join("dangling"));
        symlink(&victim, &link).unwrap();
        symlink(own.path().join("new"), &dangling).unwrap();
        fs::hard_link(&victim, &hard).unwrap();
        refused(&link, "symbolic link");
        refused(&dangling, "symbolic link");
        refused(&hard, "another name");
        assert!(!own.path().join("new").exists());
        // Those of a user are followed without rights of our own; those that only root can have placed in any case.
        fs::remove_file(&hard).unwrap();
        create_file(&link, None, false).unwrap();
        symlink("victim", own.path().join("link")).unwrap();
        create_file(&own.path().join("link"), None, true).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "new");
        create_file(Path::new("/dev/null"), None, true).unwrap();
    }

    #[test]
    fn under_sudo_the_file_is_the_callers_and_not_anothers() {
        if !geteuid().is_root() {
            // Only root can give files away, and only there the question comes up.
            return;
        }
        let (dir, caller) = (shared(0o1777), Some((65534, 65534)));
        let path = dir.path().join("report");
        drop(create_file(&path, caller, true).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().uid(), 65534);
        let why = format!("{:#}", create_file(&path, None, true).unwrap_err());
        assert!(why.contains("belongs to user 65534"), "{why}");
        create_file(&path, caller, true).unwrap();
        // Where only root may write, too.
        let own = shared(0o755).keep();
        drop(create_file(&own.join("report"), caller, true).unwrap());
        assert_eq!(fs::metadata(own.join("report")).unwrap().uid(), 65534);
        chown(own.join("report"), Some(1), Some(1)).unwrap();
        assert!(create_file(&own.join("report"), caller, true).is_err());
        fs::remove_dir_all(own).unwrap();
    }
}
