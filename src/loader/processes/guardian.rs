//! The guardian: a process between a held command and the tracer, so that no call waits for ever whatever becomes of
//! the tracer.
//!
//! It alone has the listener of the command's seccomp filter. Each call that waits is passed on to the tracer and goes
//! on when the tracer releases it, when that takes too long, or when the tracer has ended. It lives as long as there is a
//! process under the filter: from the end of the trace on it lets every call go on at once.

use crate::loader::code::remembered::Version;
use crate::loader::processes::maps;
use crate::loader::processes::seccomp::{self, Call, Notice};
use anyhow::{Context as _, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// First argument of the guardian: then which of its two processes this is. Its standard input is the connection to the
/// tracer.
pub const GUARDIAN: &str = "__guardian";
/// The first one only starts the second, which is then an orphan: a rank's program must not find it among its children.
const STARTS: &str = "1";
const GUARDS: &str = "2";

/// How long a call waits for the tracer. To attach takes milliseconds; an emulated processor takes a hundred times as
/// long.
const LIMIT: Duration = Duration::from_secs(10);
/// How long the tracer may leave what it is sent unread.
const FULL: Duration = Duration::from_secs(1);

/// A call on its way to the tracer: its id, its thread, and `mmap`'s descriptor or one of the two below.
const RECORD: usize = 16;
const START: i32 = -1;
const FORK: i32 = -2;

/// An answer: the id of a call, and what the guardian need not ask again.
const ANSWER: usize = 16;
const KNOWS_FILE: u64 = 1;
const KNOWS_FORKS: u64 = 2;

/// What the tracer need not be asked again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Next {
    /// Nothing has to be done where this file is mapped, or this program begins.
    pub knows_file: bool,
    /// Nothing has to be done where a process is forked, until an answer changes that.
    pub knows_forks: bool,
}

/// A command that is held when it has to be: the tracer's side.
#[derive(Debug)]
pub struct Guard {
    guardian: UnixStream,
}

/// Starts a guardian, which waits for [`Guard::of`].
///
/// # Errors
/// When there can be no such process.
pub fn start() -> Result<Guard> {
    let (ours, its) = UnixStream::pair().context("connection to the guardian")?;
    let mut starter = Command::new("/proc/self/exe")
        .args([GUARDIAN, STARTS])
        .stdin(OwnedFd::from(its))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .spawn()
        .context("starting the guardian")?;
    starter.wait().context("starting the guardian")?;
    Ok(Guard { guardian: ours })
}

impl Guard {
    /// Hands the guardian the listener that a process has as this descriptor, and files of which the tracer need not be
    /// asked.
    ///
    /// # Errors
    /// When it cannot take it.
    pub fn of(mut self, pid: u32, listener: i32, known: &[Version]) -> Result<Self> {
        let known = serde_json::to_vec(known).context("files that have nothing to probe")?;
        let mut hello = pid.to_ne_bytes().to_vec();
        hello.extend(listener.to_ne_bytes());
        hello.extend((known.len() as u64).to_ne_bytes());
        hello.extend(known);
        self.guardian.write_all(&hello).context("connection to the guardian")?;
        self.guardian.read_exact(&mut [0]).context("the guardian cannot take the command's filter")?;
        Ok(self)
    }

    /// The same of a connection that another process had.
    pub fn taken(connection: OwnedFd) -> Self {
        Self { guardian: connection.into() }
    }

    /// Passes on every call that waits, until the guardian ends.
    ///
    /// # Errors
    /// When there can be no thread for it.
    pub fn listen<T: Send + 'static>(
        self: &Arc<Self>,
        to: Sender<T>,
        wrap: impl Fn(Notice, Arc<Self>) -> T + Send + 'static,
    ) -> Result<()> {
        let guard = Arc::clone(self);
        let pass_on = move || {
            let mut record = [0; RECORD];
            while (&guard.guardian).read_exact(&mut record).is_ok() {
                if to.send(wrap(decoded(&record), Arc::clone(&guard))).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("held calls".into()).spawn(pass_on).context("thread for held calls")?;
        Ok(())
    }

    /// Lets a call go on.
    pub fn go_on(&self, notice: &Notice, next: Next) {
        let flags = (u64::from(next.knows_file) * KNOWS_FILE) | (u64::from(next.knows_forks) * KNOWS_FORKS);
        let mut answer = notice.id.to_ne_bytes().to_vec();
        answer.extend(flags.to_ne_bytes());
        // Where it has ended no call waits.
        let _ = (&self.guardian).write_all(&answer);
    }

    /// From now on no call waits.
    fn leave(&self) {
        // It may have ended.
        let _ = self.guardian.shutdown(std::net::Shutdown::Both);
    }
}

impl AsRawFd for Guard {
    fn as_raw_fd(&self) -> RawFd {
        self.guardian.as_raw_fd()
    }
}

/// Those of a trace. However it ends, no call waits then.
#[derive(Debug, Default)]
pub struct Guards(Vec<Arc<Guard>>);

impl Guards {
    pub fn add(&mut self, guard: Arc<Guard>) {
        self.0.push(guard);
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From now on no call waits.
    pub fn leave(&mut self) {
        self.0.drain(..).for_each(|guard| guard.leave());
    }
}

impl Drop for Guards {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Has this process and what it executes held, as far as the kernel allows it.
///
/// # Errors
/// When it does not, or there can be no guardian.
pub fn hold_ourselves() -> Result<Guard> {
    let guard = start()?;
    let listener = seccomp::install().context("filter of system calls")?;
    guard.of(std::process::id(), listener.as_raw_fd(), &[])
}

fn encoded(notice: &Notice) -> [u8; RECORD] {
    let what = match notice.call {
        Call::Map(fd) => fd,
        Call::Start => START,
        Call::Fork => FORK,
    };
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&notice.id.to_ne_bytes());
    record[8..12].copy_from_slice(&notice.tid.to_ne_bytes());
    record[12..].copy_from_slice(&what.to_ne_bytes());
    record
}

fn decoded(record: &[u8; RECORD]) -> Notice {
    let call = match i32::from_ne_bytes(part(record, 12)) {
        START => Call::Start,
        FORK => Call::Fork,
        fd => Call::Map(fd),
    };
    Notice { id: u64::from_ne_bytes(part(record, 0)), tid: u32::from_ne_bytes(part(record, 8)), call }
}

/// The bytes of a number in a record.
fn part<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// The guardian's whole life.
///
/// # Errors
/// When it was not started by a tracer.
pub fn main(args: &[OsString]) -> Result<()> {
    match args {
        [which] if which == STARTS => {
            let mut guardian = Command::new("/proc/self/exe");
            // A group of its own: a signal to the tracer's job must not end it.
            guardian.args([GUARDIAN, GUARDS]).process_group(0).spawn().context("starting the guardian")?;
            Ok(())
        }
        [which] if which == GUARDS => guard(),
        _ => bail!("{GUARDIAN} is started by iotrace-bpf itself, not by users"),
    }
}

fn guard() -> Result<()> {
    // Whatever ends the tracer is not to end it.
    SigSet::all().thread_block().context("blocking signals")?;
    // `pkill iotrace-bpf` means the tracer.
    let _ = nix::sys::prctl::set_name(c"iot-guardian");
    // The last that memory is taken from, where that is allowed.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let mut tracer = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().context("the tracer")?);
    let mut hello = [0; 16];
    tracer.read_exact(&mut hello).context("the tracer")?;
    let known: Vec<Version> = {
        let mut known = Vec::new();
        (&tracer).take(u64::from_ne_bytes(part(&hello, 8))).read_to_end(&mut known).context("the tracer")?;
        serde_json::from_slice(&known).context("files that have nothing to probe")?
    };
    let pid = Pid::from_raw(i32::from_ne_bytes(part(&hello, 0))).context("the command")?;
    let command = pidfd_open(pid, PidfdFlags::empty()).context("the command")?;
    let listener = pidfd_getfd(&command, i32::from_ne_bytes(part(&hello, 4)), PidfdGetfdFlags::empty());
    let listener = listener.context("the command's filter")?;
    drop(command);
    tracer.write_all(b"r").context("the tracer")?;
    tracer.set_write_timeout(Some(FULL)).context("the tracer")?;
    seccomp::wake_at_once(listener.as_fd());
    let (known, started) = (known.into_iter().take(KNOWN).collect(), VecDeque::new());
    let waiting = Vec::new();
    Guarding { listener: listener.as_fd(), tracer: Some(tracer), waiting, known, started, knows_forks: false }.serve()
}

/// As many programs that have just begun are remembered, and as many files.
const STARTED: usize = 64;
const KNOWN: usize = 65536;

/// The file that a call is about.
fn version(notice: &Notice) -> Option<Version> {
    match notice.call {
        Call::Map(fd) => Version::at(&format!("/proc/{}/fd/{fd}", notice.tid)),
        Call::Start => Version::at(&format!("/proc/{}/exe", notice.tid)),
        Call::Fork => None,
    }
}

/// A call that the tracer knows of.
struct Waiting {
    id: u64,
    due: Instant,
    file: Option<Version>,
}

struct Guarding<'a> {
    listener: BorrowedFd<'a>,
    /// Until the trace ends.
    tracer: Option<UnixStream>,
    /// The oldest first.
    waiting: Vec<Waiting>,
    /// Files of which the tracer need not know.
    known: HashSet<Version>,
    /// The same of processes that are forked.
    knows_forks: bool,
    /// Processes that have just begun a program: the GNU C library's next call is that of a fork, too.
    started: VecDeque<u32>,
}

impl Guarding<'_> {
    fn serve(mut self) -> Result<()> {
        loop {
            let (calls, answers) = self.wait()?;
            if answers.contains(PollFlags::POLLIN) || answers.contains(PollFlags::POLLHUP) {
                self.answer();
            }
            if calls.contains(PollFlags::POLLIN) {
                self.receive()?;
            } else if calls.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
                return Ok(()); // no process is under the filter any more
            }
            while let Some(id) = self.waiting.first().filter(|waiting| waiting.due <= Instant::now()).map(|w| w.id) {
                self.release(id);
            }
        }
    }

    /// Until something happens or the oldest call has waited for too long: what there is of calls, and of the tracer.
    fn wait(&self) -> Result<(PollFlags, PollFlags)> {
        let left = self.waiting.first().map(|waiting| waiting.due.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = vec![PollFd::new(self.listener, PollFlags::POLLIN)];
        fds.extend(self.tracer.as_ref().map(|tracer| PollFd::new(tracer.as_fd(), PollFlags::POLLIN)));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e).context("waiting for calls"),
        }
        let events = |at: usize| fds.get(at).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        Ok((events(0), events(1)))
    }

    fn receive(&mut self) -> Result<()> {
        let Some(notice) = seccomp::receive(self.listener).context("a call that waits")? else { return Ok(()) };
        let file = version(&notice);
        let knows = notice.tid == 0 || file.is_some_and(|file| self.known.contains(&file)) || self.knows_fork(&notice);
        let Some(tracer) = self.tracer.as_mut().filter(|_| !knows) else {
            seccomp::go_on(self.listener, notice.id);
            return Ok(());
        };
        if tracer.write_all(&encoded(&notice)).is_ok() {
            self.waiting.push(Waiting { id: notice.id, due: Instant::now() + LIMIT, file });
        } else {
            seccomp::go_on(self.listener, notice.id);
            self.leave();
        }
        Ok(())
    }

    /// Is it a call after a fork that the tracer need not know of: nothing has to be done, or it is not one after a
    /// fork?
    fn knows_fork(&mut self, notice: &Notice) -> bool {
        match notice.call {
            Call::Map(_) => false,
            Call::Start => {
                self.started.truncate(STARTED);
                self.started.push_front(notice.tid);
                false
            }
            Call::Fork => {
                let begins = self.started.iter().position(|tid| *tid == notice.tid);
                begins.and_then(|at| self.started.remove(at)).is_some() || self.knows_forks || is_thread(notice)
            }
        }
    }

    fn answer(&mut self) {
        let mut answer = [0; ANSWER];
        let Some(tracer) = self.tracer.as_mut() else { return };
        if tracer.read_exact(&mut answer).is_err() {
            self.leave();
            return;
        }
        let (id, flags) = (u64::from_ne_bytes(part(&answer, 0)), u64::from_ne_bytes(part(&answer, 8)));
        self.knows_forks = flags & KNOWS_FORKS != 0;
        if flags & KNOWS_FILE != 0 && self.known.len() < KNOWN {
            self.known.extend(self.waiting.iter().find(|waiting| waiting.id == id).and_then(|waiting| waiting.file));
        }
        self.release(id);
    }

    fn release(&mut self, id: u64) {
        self.waiting.retain(|waiting| waiting.id != id);
        seccomp::go_on(self.listener, id);
    }

    /// The tracer has ended.
    fn leave(&mut self) {
        self.tracer = None;
        for waiting in std::mem::take(&mut self.waiting) {
            seccomp::go_on(self.listener, waiting.id);
        }
    }
}

/// Is it the beginning of a thread, which has the probes of its process?
fn is_thread(notice: &Notice) -> bool {
    let status = || std::fs::read(format!("/proc/{}/status", notice.tid)).ok();
    status().and_then(|text| maps::status(&text).tgid).is_some_and(|tgid| tgid != notice.tid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_gets_to_the_tracer_as_it_was() {
        for call in [Call::Map(0), Call::Map(77), Call::Start, Call::Fork] {
            let notice = Notice { id: u64::MAX - 3, tid: 4_194_303, call };
            assert_eq!(decoded(&encoded(&notice)), notice);
        }
    }
}
