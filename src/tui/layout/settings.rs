//! Where a user's layout is kept: below the home directory of the user who runs this, or called sudo. What a privileged
//! program reads or writes there belongs to another user, so that no link is followed below the home directory.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{Uid, UnlinkatFlags, unlinkat};

use crate::base::sudo::invoking_user;
use crate::loader::processes::users;

const DIRECTORY: &str = "iotrace-bpf";
const FILE: &str = "layout.toml";
/// A layout is some hundred bytes.
const MOST: u64 = 64 * 1024;

/// A user's directory for settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Up to here links are followed.
    base: PathBuf,
    /// From there on none is.
    below: PathBuf,
    /// The owner of what is made.
    owner: Option<(u32, u32)>,
}

impl Settings {
    /// Of the invoking user, also under sudo.
    ///
    /// # Errors
    /// When it is not known where that is.
    pub fn of_environment() -> Result<Self> {
        let owner = invoking_user();
        let uid = owner.map_or_else(|| Uid::effective().as_raw(), |(uid, _)| uid);
        let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        // Under sudo HOME may be that of root.
        let passwd = || users::home(uid);
        let home = if owner.is_some() { passwd() } else { var("HOME").or_else(passwd) };
        Self::new(home.filter(|h| h.is_absolute()), var("XDG_CONFIG_HOME"), owner)
    }

    fn new(home: Option<PathBuf>, config: Option<PathBuf>, owner: Option<(u32, u32)>) -> Result<Self> {
        let below = |of: &Path, home: &Path| of.strip_prefix(home).map(|p| p.join(DIRECTORY)).ok();
        match (home, config) {
            (Some(home), Some(config)) if below(&config, &home).is_some() => {
                let below = below(&config, &home).unwrap_or_default();
                Ok(Self { base: home, below, owner })
            }
            // A privileged program creates nothing at a path from a variable.
            (_, Some(config)) if owner.is_none() => Ok(Self { base: config, below: DIRECTORY.into(), owner }),
            (Some(home), _) => Ok(Self { below: Path::new(".config").join(DIRECTORY), base: home, owner }),
            (None, _) => bail!("there is no home directory to keep it in: set HOME or XDG_CONFIG_HOME"),
        }
    }

    /// Where the layout is, for messages.
    pub fn path(&self) -> PathBuf {
        self.base.join(&self.below).join(FILE)
    }

    /// The layout that was kept; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(&self) -> Result<Option<String>> {
        let Some(directory) = self.directory(false)? else { return Ok(None) };
        // Not blocked when it is a pipe.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match openat(&directory, FILE, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(refused(&self.path(), errno)),
        };
        let facts = file.metadata()?;
        if !facts.is_file() || facts.len() > MOST {
            bail!("{} is no layout: it is not a file, or too long", self.path().display());
        }
        if let Some((uid, _)) = self.owner
            && facts.uid() != uid
        {
            bail!("{} belongs to another user", self.path().display());
        }
        let mut text = String::new();
        file.take(MOST).read_to_string(&mut text).with_context(|| format!("cannot read {}", self.path().display()))?;
        Ok(Some(text))
    }

    /// Keeps a layout, all of it or nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, text: &str) -> Result<()> {
        let Some(directory) = self.directory(true)? else { bail!("{} cannot be made", self.path().display()) };
        let new = format!("{FILE}.{}", std::process::id());
        let cannot = || format!("cannot write {}", self.path().display());
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&directory, new.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR).with_context(cannot)?;
        let mut file = File::from(file);
        let written = self
            .give(&file)
            .and_then(|()| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(Into::into))
            .and_then(|()| renameat(&directory, new.as_str(), &directory, FILE).map_err(Into::into));
        if written.is_err() {
            // What is left of it would be in the way the next time.
            let _ = unlinkat(&directory, new.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        written.with_context(cannot)
    }

    fn give(&self, made: impl std::os::fd::AsFd) -> Result<()> {
        match self.owner {
            Some((uid, gid)) => Ok(fchown(made, Some(uid), Some(gid))?),
            None => Ok(()),
        }
    }

    /// The directory, step by step; made where it is missing and wanted.
    fn directory(&self, make: bool) -> Result<Option<OwnedFd>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut at = self.base.clone();
        let mut directory = match open(&at, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::ENOENT) if !make => return Ok(None),
            Err(errno) => return Err(refused(&at, errno)),
        };
        for part in self.below.components() {
            let Component::Normal(name) = part else { bail!("{} is no plain path", self.path().display()) };
            at.push(name);
            let made = make && mkdirat(&directory, name, Mode::S_IRWXU).is_ok();
            let next = openat(&directory, name, flags | OFlag::O_NOFOLLOW, Mode::empty());
            directory = match next {
                Ok(next) => next,
                Err(Errno::ENOENT) if !make => return Ok(None),
                Err(errno) => return Err(refused(&at, errno)),
            };
            if made {
                self.give(&directory).with_context(|| format!("cannot give {} to its user", at.display()))?;
            }
        }
        Ok(Some(directory))
    }
}

fn refused(path: &Path, errno: Errno) -> anyhow::Error {
    if path.symlink_metadata().is_ok_and(|m| m.is_symlink()) {
        return anyhow::anyhow!("{} is a symbolic link, which is not followed", path.display());
    }
    anyhow::Error::new(errno).context(format!("cannot open {}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn settings(home: &Path) -> Settings {
        Settings::new(Some(home.to_owned()), None, None).unwrap()
    }

    #[test]
    fn it_is_in_the_config_directory_of_the_user() {
        let path = |home: Option<&str>, config: Option<&str>, owner| {
            Settings::new(home.map(Into::into), config.map(Into::into), owner)
                .map(|s| s.path().display().to_string())
                .ok()
        };
        let of = |path: &str| Some(format!("{path}/iotrace-bpf/layout.toml"));
        assert_eq!(path(Some("/home/u"), None, None), of("/home/u/.config"));
        assert_eq!(path(Some("/home/u"), Some("/etc/u"), None), of("/etc/u"));
        assert_eq!(path(None, Some("/etc/u"), None), of("/etc/u"));
        assert_eq!(path(Some("/home/u"), Some("/home/u/cfg"), Some((7, 7))), of("/home/u/cfg"));
        assert_eq!(path(Some("/home/u"), Some("/etc"), Some((7, 7))), of("/home/u/.config"), "not as root elsewhere");
        assert_eq!(path(None, None, None), None);
        assert_eq!(path(None, Some("/etc"), Some((7, 7))), None);
    }

    #[test]
    fn what_is_saved_is_loaded_and_is_the_users_alone() {
        let home = tempfile::tempdir().unwrap();
        let s = settings(home.path());
        assert_eq!(s.load().unwrap(), None);
        for text in ["one", "two"] {
            s.save(text).unwrap();
            assert_eq!(s.load().unwrap().as_deref(), Some(text));
        }
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&s.path()), mode(s.path().parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(s.path().parent().unwrap()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn it_is_given_to_the_user_that_called_sudo() {
        let home = tempfile::tempdir().unwrap();
        let me = Uid::effective();
        // Only root gives to others.
        let owner = if me.is_root() { (12_345, 54_321) } else { (me.as_raw(), nix::unistd::Gid::effective().as_raw()) };
        let s = Settings::new(Some(home.path().to_owned()), None, Some(owner)).unwrap();
        s.save("mine").unwrap();
        for path in [s.path(), s.path().parent().unwrap().to_owned(), home.path().join(".config")] {
            let found = fs::metadata(&path).unwrap();
            assert_eq!((found.uid(), found.gid()), owner, "{}", path.display());
        }
        assert_eq!(s.load().unwrap().as_deref(), Some("mine"));
        if me.is_root() {
            std::os::unix::fs::chown(s.path(), Some(0), Some(0)).unwrap();
            assert!(s.load().unwrap_err().to_string().contains("another user"));
        }
    }

    #[test]
    fn no_link_is_followed() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let s = settings(home.path());
        let is_refused = |what: &str| {
            for done in [s.load().map(|_| ()), s.save("x")] {
                let why = format!("{:#}", done.unwrap_err());
                assert!(why.contains("symbolic link"), "{what}: {why}");
            }
            assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "{what}");
        };
        symlink(elsewhere.path(), home.path().join(".config")).unwrap();
        is_refused(".config");
        fs::remove_file(home.path().join(".config")).unwrap();
        fs::create_dir(home.path().join(".config")).unwrap();
        symlink(elsewhere.path(), home.path().join(".config/iotrace-bpf")).unwrap();
        is_refused("the directory");
        fs::remove_file(home.path().join(".config/iotrace-bpf")).unwrap();
        // In place of the file it is replaced, and what it led to stays as it was.
        fs::create_dir(home.path().join(".config/iotrace-bpf")).unwrap();
        let target = home.path().join("target");
        fs::write(&target, "other").unwrap();
        symlink(&target, s.path()).unwrap();
        assert!(format!("{:#}", s.load().unwrap_err()).contains("symbolic link"));
        s.save("x").unwrap();
        assert_eq!((fs::read_to_string(&target).unwrap().as_str(), s.load().unwrap().as_deref()), ("other", Some("x")));
    }

    #[test]
    fn what_is_no_file_of_some_hundred_bytes_is_no_layout() {
        let home = tempfile::tempdir().unwrap();
        let s = settings(home.path());
        fs::create_dir_all(s.path()).unwrap();
        assert!(s.load().is_err());
        fs::remove_dir(s.path()).unwrap();
        fs::write(s.path(), vec![b'#'; 100_000]).unwrap();
        assert!(s.load().is_err());
        fs::write(s.path(), [0xff, 0xfe]).unwrap();
        assert!(format!("{:#}", s.load().unwrap_err()).contains("layout.toml"));
    }
}
