//! Where the ranks of a job meet on a node: the files of a job in a directory of the user's own.

use crate::record::job::rank_protocol::{is_trusted, peer};
use anyhow::{Context as _, Result, ensure};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::sys::stat::Mode;
use nix::unistd::{Uid, geteuid, mkdir};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a name begins with: the directory may have files of others.
const OURS: &str = "iotrace-bpf-";
/// The tracer has it locked for as long as it lives. It lists the datasets that tracers of the job began.
const LOCK: &str = "lock";
const SOCKET: &str = "sock";
/// The unlocked files of a job are removed after this time.
const OLD: Duration = Duration::from_hours(24);

/// A directory that belongs to this user alone.
pub struct Rendezvous {
    directory: File,
    job: String,
}

impl Rendezvous {
    /// That of a job.
    ///
    /// # Errors
    /// When there is no directory that is the user's alone.
    pub fn of(job: &str) -> Result<Self> {
        let uid = geteuid();
        let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let given = named.into_iter().chain([format!("/run/user/{uid}").into()]);
        let directory = given.into_iter().find_map(|path| private(&path, uid).ok());
        let directory = directory.map_or_else(|| make(format!("/dev/shm/{OURS}{uid}").as_ref(), uid), Ok)?;
        Ok(Self { directory, job: job.to_owned() })
    }

    fn root(&self) -> String {
        // However long the directory's own path is, that of a socket may only be short.
        format!("/proc/self/fd/{}", self.directory.as_raw_fd())
    }

    fn path(&self, kind: &str) -> PathBuf {
        format!("{}/{OURS}{}.{kind}", self.root(), self.job).into()
    }

    /// The lock, unless a tracer has it.
    ///
    /// # Errors
    /// When something else is in its place.
    pub fn lock(&self) -> Result<Option<File>> {
        let mut file = OpenOptions::new();
        file.read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
        let what = || format!("the lock of the ranks of this node ({OURS}{}.{LOCK})", self.job);
        let file = file.open(self.path(LOCK)).with_context(what)?;
        match file.try_lock() {
            // The owner may have removed the file meanwhile: others lock a new one.
            Ok(()) => Ok((file.metadata().with_context(what)?.nlink() > 0).then_some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e).with_context(what),
        }
    }

    /// For the holder of the lock: the socket that ranks connect to. Files of a killed tracer are removed.
    ///
    /// # Errors
    /// When something else is in its place.
    pub fn listen(&self) -> Result<UnixListener> {
        let _ = fs::remove_file(self.path(SOCKET));
        let listener = UnixListener::bind(self.path(SOCKET)).context("a socket for the ranks of this node")?;
        listener.set_nonblocking(true).context("a socket for the ranks of this node")?;
        Ok(listener)
    }

    /// A connection with the tracer, if there is one that takes it.
    ///
    /// # Errors
    /// When there is none to be had ever.
    pub fn connect(&self) -> Result<Option<UnixStream>> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None).context("a socket")?;
        match connect(socket.as_raw_fd(), &UnixAddr::new(&self.path(SOCKET)).context("the tracer's socket")?) {
            Ok(()) => {}
            Err(Errno::EAGAIN | Errno::ECONNREFUSED | Errno::ENOENT) => return Ok(None),
            Err(e) => return Err(e).context("the tracer of this node"),
        }
        let peer = peer(&socket).context("the tracer of this node")?;
        ensure!(is_trusted(peer.uid()), "user {} runs in place of its tracer", peer.uid());
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false).context("the tracer of this node")?;
        Ok(Some(stream))
    }

    /// Has a tracer of this job begun that dataset?
    pub fn had(&self, dataset: &Path) -> bool {
        let begun = fs::read(self.path(LOCK)).unwrap_or_default();
        begun.split(|b| *b == b'\n').any(|path| path == line(dataset))
    }

    /// A tracer of this job has begun that dataset.
    pub fn note(&self, dataset: &Path) {
        // Without it a late rank fails instead of running untraced.
        let _ = OpenOptions::new()
            .append(true)
            .open(self.path(LOCK))
            .and_then(|mut file| file.write_all(&[line(dataset), b"\n".to_vec()].concat()));
    }

    /// For the holder of the lock: removes the files of its job, and those of jobs that are no more. The list of datasets stays unless the job
    /// is over here.
    pub fn leave(&self, over: bool) {
        let _ = fs::remove_file(self.path(SOCKET));
        if over || fs::metadata(self.path(LOCK)).is_ok_and(|lock| lock.len() == 0) {
            let _ = fs::remove_file(self.path(LOCK));
        }
        for entry in fs::read_dir(self.root()).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let job = name.strip_prefix(OURS).and_then(|name| name.strip_suffix(LOCK)?.strip_suffix('.'));
            let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|at| at.elapsed().ok());
            let (Some(job), true) = (job, age.is_some_and(|age| age > OLD)) else { continue };
            let Ok(directory) = self.directory.try_clone() else { continue };
            let other = Self { directory, job: job.to_owned() };
            if let Ok(Some(_locked)) = other.lock() {
                let _ = fs::remove_file(other.path(SOCKET));
                let _ = fs::remove_file(other.path(LOCK));
            }
        }
    }
}

/// A path in a line of its own.
fn line(path: &Path) -> Vec<u8> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().escape_debug().to_string().into_bytes()
}

fn make(path: &Path, uid: Uid) -> Result<File> {
    match mkdir(path, Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => private(path, uid),
        Err(e) => Err(e).with_context(|| path.display().to_string()),
    }
}

/// A directory, and no link to one, in which only this user can make and see files.
fn private(path: &Path, uid: Uid) -> Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let what = || format!("{} is not a directory of this user's alone", path.display());
    let directory = File::from(open(path, flags, Mode::empty()).with_context(what)?);
    let meta = directory.metadata().with_context(what)?;
    ensure!(meta.uid() == uid.as_raw() && meta.mode() & 0o777 == 0o700, what());
    Ok(directory)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn rendezvous(directory: &Path, job: &str) -> Rendezvous {
        Rendezvous { directory: File::open(directory).unwrap(), job: job.to_owned() }
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn one_has_the_lock_and_it_is_free_when_that_ends() {
        let work = tempfile::tempdir().unwrap();
        let (one, other) = (rendezvous(work.path(), "1"), rendezvous(work.path(), "2"));
        let lock = one.lock().unwrap().unwrap();
        assert!(one.lock().unwrap().is_none());
        assert!(other.lock().unwrap().is_some());
        let copy = lock.try_clone().unwrap();
        drop(lock);
        assert!(one.lock().unwrap().is_none());
        // A process that waits for a file that is removed meanwhile does not take it for the lock.
        fs::remove_file(one.path(LOCK)).unwrap();
        let new = one.lock().unwrap().unwrap();
        drop(copy);
        assert!(one.lock().unwrap().is_none());
        drop(new);
        assert!(one.lock().unwrap().is_some());
    }

    #[test]
    fn without_a_tracer_there_is_no_socket() {
        let work = tempfile::tempdir().unwrap();
        let one = rendezvous(work.path(), "1");
        assert!(one.connect().unwrap().is_none());
        let listener = one.listen().unwrap();
        assert!(one.connect().unwrap().is_some());
        drop(listener);
        assert!(one.connect().unwrap().is_none());
        // The file of a killed tracer does not matter.
        let _listener = one.listen().unwrap();
        assert!(one.connect().unwrap().is_some());
    }

    /// Does something in a thread of a user that nothing else belongs to.
    fn as_stranger<T: Send>(act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let stranger = scope.spawn(|| {
                let uid = rustix::thread::Uid::from_raw(STRANGER);
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
                act()
            });
            stranger.join().unwrap()
        })
    }

    const STRANGER: u32 = 64_323;

    #[test]
    fn another_user_is_trusted_at_neither_end_of_the_socket() {
        use std::os::unix::fs::PermissionsExt as _;
        if !geteuid().is_root() {
            eprintln!("not run: only root may become another user");
            return;
        }
        // A directory as no rendezvous is: everybody may do everything there.
        let work = tempfile::tempdir().unwrap();
        fs::set_permissions(work.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let one = rendezvous(work.path(), "1");
        let socket = work.path().join(format!("{OURS}1.{SOCKET}"));
        let listens = as_stranger(|| UnixListener::bind(&socket).unwrap());
        let refused = one.connect().unwrap_err().to_string();
        assert_eq!(refused, format!("user {STRANGER} runs in place of its tracer"));
        drop(listens);

        let listener = one.listen().unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
        let _connects = as_stranger(|| UnixStream::connect(&socket).unwrap());
        let who = peer(&listener.accept().unwrap().0).unwrap().uid();
        assert_eq!((who, is_trusted(who)), (STRANGER, false));
        // Ours is, at both.
        let _own = one.connect().unwrap().unwrap();
        assert!(is_trusted(peer(&listener.accept().unwrap().0).unwrap().uid()));
    }

    #[test]
    fn what_was_begun_is_noted_until_the_job_is_over() {
        let work = tempfile::tempdir().unwrap();
        let one = rendezvous(work.path(), "1");
        drop(one.lock().unwrap());
        let (run, other) = (Path::new("/scratch/run\n/node1"), Path::new("/scratch/run"));
        assert!(!one.had(run));
        one.note(run);
        assert!(one.had(run) && !one.had(other));
        let _listener = one.listen().unwrap();
        one.leave(false);
        assert_eq!(names(work.path()), ["iotrace-bpf-1.lock"]);
        one.leave(true);
        assert_eq!(names(work.path()), [""; 0]);
        // There is nothing to know of one that has begun none.
        drop(one.lock().unwrap());
        one.leave(false);
        assert_eq!(names(work.path()), [""; 0]);
    }

    #[test]
    fn files_of_jobs_that_are_no_more_are_removed() {
        let work = tempfile::tempdir().unwrap();
        let ages = [("new", 0), ("old", 2), ("used", 2)];
        let locks = ages.map(|(job, days)| {
            let lock = rendezvous(work.path(), job).lock().unwrap().unwrap();
            rendezvous(work.path(), job).listen().unwrap();
            lock.set_modified(SystemTime::now() - OLD * days).unwrap();
            (job == "used").then_some(lock)
        });
        fs::write(work.path().join("iotrace-bpf-others"), "").unwrap();
        rendezvous(work.path(), "1").leave(true);
        let left = ["new.lock", "new.sock", "others", "used.lock", "used.sock"].map(|name| format!("{OURS}{name}"));
        assert_eq!(names(work.path()), left);
        drop(locks);
    }

    #[test]
    fn only_a_directory_of_the_users_alone_will_do() {
        use std::os::unix::fs::PermissionsExt as _;
        let work = tempfile::tempdir().unwrap();
        let (path, uid) = (work.path().join("own"), geteuid());
        assert!(private(&path, uid).is_err());
        make(&path, uid).unwrap();
        make(&path, uid).unwrap();
        for mode in [0o755, 0o710, 0o701, 0o770] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(make(&path, uid).is_err(), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(private(&path, Uid::from_raw(uid.as_raw() + 1)).is_err());
        std::os::unix::fs::symlink(&path, work.path().join("link")).unwrap();
        assert!(private(&work.path().join("link"), uid).is_err());
        assert!(private(&path, uid).is_ok());
    }
}
