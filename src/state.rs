//! The user's state folder: what the program learns and keeps from run to run.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use crate::base::sudo::invoking_user;
use crate::loader::processes::users;

/// The folder of a service (systemd.exec(5), `StateDirectory=`).
const OF_SERVICE: &str = "STATE_DIRECTORY";
/// How long another program may hold a folder, and how often that is looked at.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// That of the user who called sudo, of a service, or of the user who runs this program (XDG Base Directory
/// Specification 0.8).
pub fn folder() -> Option<PathBuf> {
    let of_home = |home: PathBuf| home.join(".local/state");
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = match invoking_user() {
        Some((uid, _)) => users::home(uid).map(of_home),
        None => match named(OF_SERVICE) {
            Some(own) => return Some(own),
            None => named("XDG_STATE_HOME").or_else(|| named("HOME").map(of_home)),
        },
    };
    Some(state?.join("iotrace-bpf"))
}

/// Makes a folder that only its owner may look into, with those around it.
///
/// # Errors
/// When it cannot be made.
pub fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Holds a folder, so that of programs which read and replace a file in it each finds what the one before has written.
///
/// # Errors
/// When it cannot be opened, or another program holds it for too long.
pub fn hold(folder: &Path) -> io::Result<File> {
    let held = File::open(folder)?;
    let until = Instant::now() + PATIENCE;
    loop {
        match held.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOOK),
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another program holds its folder")),
            // Some network file systems have no locks. Files are replaced as a whole all the same.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(held),
        }
    }
}

/// Writes a file as a whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
    let written = open().and_then(|mut file| file.write_all(text.as_bytes())).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // A part of it may be there.
        let _ = fs::remove_file(&new);
    }
    written
}

/// The text of a file of at most so many bytes; no link, pipe or device is followed or waited for.
///
/// # Errors
/// When it cannot be read, is longer, or is no file.
pub fn read(path: &Path, most: u64) -> io::Result<String> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.len() > most {
        return Err(io::Error::other(if about.is_file() { "it is too long" } else { "it is no file" }));
    }
    let mut text = String::new();
    file.take(most).read_to_string(&mut text)?;
    Ok(text)
}
