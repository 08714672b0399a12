//! The process that the user of a dashboard has chosen: where its threads are, and signals to it.

use crate::inflight::{InFlight, Operation, OperationKind};
use crate::loader::kernel::rings::now;
use crate::loader::stacks::process::{self, Waiting};
use crate::summary::view::{Stacks, ThreadStack};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Threads of a process whose stacks are read.
const THREADS: usize = 64;
/// How often they are.
const EVERY: Duration = Duration::from_secs(1);
/// A process that began so much later than the traced one is another one with its number: ticks of the kernel and the reading
/// of two clocks are less.
const LATER: i64 = 100_000_000;

/// What was found of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pid: i32,
    threads: Result<(Vec<Waiting>, usize), String>,
}

/// Reads where threads are, on a thread of its own: `/proc` may make a reader wait.
pub struct Reader {
    asked: Option<(i32, Instant)>,
    wanted: SyncSender<i32>,
    seen: Arc<Mutex<Option<Arc<Seen>>>>,
}

impl Reader {
    /// # Errors
    /// When there can be no thread for it.
    pub fn start() -> Result<Self, String> {
        let (wanted, inbox) = sync_channel(1);
        let seen = Arc::new(Mutex::default());
        let into = Arc::clone(&seen);
        let read = move || read(&inbox, &into);
        std::thread::Builder::new()
            .name("threads".into())
            .spawn(read)
            .map_err(|e| format!("thread for stacks: {e}"))?;
        Ok(Self { asked: None, wanted, seen })
    }

    /// What was seen last of a process. Asks for more from time to time; never waits.
    pub fn of(&mut self, pid: i32) -> Option<Arc<Seen>> {
        let due = self.asked.is_none_or(|(of, at)| of != pid || at.elapsed() >= EVERY);
        // One request may wait where the thread does.
        if due && self.wanted.try_send(pid).is_ok() {
            self.asked = Some((pid, Instant::now()));
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(|seen| seen.pid == pid)
    }
}

fn read(inbox: &Receiver<i32>, into: &Mutex<Option<Arc<Seen>>>) {
    for pid in inbox {
        let seen = Seen { pid, threads: process::threads(pid, THREADS) };
        *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(seen));
    }
}

/// The threads with the calls that they are in, and the program's part of their stacks.
pub fn stacks(seen: Option<&Seen>, in_flight: Option<&InFlight>) -> Stacks {
    match seen.map(|seen| &seen.threads) {
        None => Stacks {
            why_not: Some("being read; a process that is just executed lets nobody".to_owned()),
            ..Stacks::default()
        },
        Some(Err(why)) => Stacks { why_not: Some(why.clone()), ..Stacks::default() },
        Some(Ok((threads, more))) => {
            let of = |t: &Waiting| {
                let inside = |o: &&Operation| o.kind == OperationKind::Calls && o.tid.cast_signed() == t.tid;
                thread(t, in_flight.and_then(|f| f.operations.iter().find(inside)))
            };
            Stacks { threads: threads.iter().map(of).collect(), more: *more, ..Stacks::default() }
        }
    }
}

fn thread(t: &Waiting, operation: Option<&Operation>) -> ThreadStack {
    let user = match operation {
        None => Err("it is in no traced call: only then is the program's stack taken".to_owned()),
        Some(o) if o.user.is_empty() => Err("it could not be unwound".to_owned()),
        Some(o) => Ok(o.user.clone()),
    };
    let call = |c: &crate::inflight::Open| {
        c.file.as_ref().map_or_else(|| format!("{} {}", c.layer, c.op), |file| format!("{} {}  {file}", c.layer, c.op))
    };
    ThreadStack {
        tid: t.tid,
        name: t.name.clone(),
        state: t.state,
        waits_in: t.waits_in.clone(),
        calls: operation.map_or_else(Vec::new, |o| o.calls.iter().map(call).collect()),
        kernel: t.kernel.clone(),
        user,
    }
}

/// Sends a signal to a traced process that began at that time of the monotonic clock, and to no other that has its number by
/// now.
///
/// # Errors
/// Why it was not sent.
pub fn send(pid: i32, began_ns: i64, signal: Signal) -> Result<String, String> {
    let gone = || format!("process {pid} has ended");
    let process = Pid::from_raw(pid).ok_or("no process has this number")?;
    // From here on the number stands for one process, whatever happens.
    let handle = pidfd_open(process, PidfdFlags::empty()).map_err(|e| why(e, pid))?;
    let began = process::began(pid).ok_or_else(gone)?;
    is_still(pid, began_ns, monotonic(began))?;
    let number = rustix::process::Signal::from_named_raw(signal as i32).ok_or("no such signal")?;
    pidfd_send_signal(handle, number).map_err(|e| why(e, pid))?;
    Ok(format!("{signal} was sent to process {pid}"))
}

/// Whether the process that has a number now, which began then, is the one that was traced. If that is not known, it is not.
fn is_still(pid: i32, traced_ns: i64, now_ns: Option<i64>) -> Result<(), String> {
    match now_ns {
        None => {
            Err(format!("no signal: when process {pid} began is not known, so it may be another one than was traced"))
        }
        Some(now_ns) if now_ns.saturating_sub(traced_ns) > LATER => {
            Err(format!("process {pid} has ended, and another one has its number"))
        }
        Some(_) => Ok(()),
    }
}

fn why(e: rustix::io::Errno, pid: i32) -> String {
    match Errno::from_raw(e.raw_os_error()) {
        Errno::ESRCH => format!("process {pid} has ended"),
        Errno::EPERM => format!("process {pid}: not permitted: it is another user's (CAP_KILL)"),
        errno => format!("process {pid}: {}", errno.desc()),
    }
}

/// Ticks since the node began, on the monotonic clock, in nanoseconds.
fn monotonic(ticks: u64) -> Option<i64> {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().filter(|n| *n > 0)?;
    let since_boot = i128::from(ticks) * 1_000_000_000 / i128::from(per_second);
    let boot = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
    let boot_ns = i128::from(boot.tv_sec()) * 1_000_000_000 + i128::from(boot.tv_nsec());
    i64::try_from(since_boot - boot_ns + i128::from(now())).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn a_signal_reaches_the_process_that_was_traced_and_no_later_one_with_its_number() {
        let mut child = sleeper();
        let pid = child.id() as i32;
        let began = now() as i64;
        let early = began - 60 * LATER;
        assert_eq!(
            send(pid, early, Signal::SIGKILL).unwrap_err(),
            format!("process {pid} has ended, and another one has its number")
        );
        assert_eq!(child.try_wait().unwrap(), None);
        assert_eq!(send(pid, began, Signal::SIGTERM).unwrap(), format!("SIGTERM was sent to process {pid}"));
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
        assert_eq!(send(pid, began, Signal::SIGTERM).unwrap_err(), format!("process {pid} has ended"));
        assert!(send(0, began, Signal::SIGTERM).is_err());
    }

    #[test]
    fn no_signal_is_sent_to_a_process_that_may_be_another_one() {
        assert_eq!(is_still(7, 5 * LATER, Some(5 * LATER)), Ok(()));
        assert_eq!(is_still(7, 5 * LATER, Some(0)), Ok(()), "it was there when tracing began");
        for unknown in [None, Some(6 * LATER + 1), Some(i64::MAX)] {
            assert!(is_still(7, 5 * LATER, unknown).is_err(), "{unknown:?}");
        }
    }

    #[test]
    fn threads_are_read_beside_and_have_reasons_for_what_is_missing() {
        let mut child = sleeper();
        let pid = child.id() as i32;
        let mut reader = Reader::start().unwrap();
        let seen = loop {
            match reader.of(pid) {
                Some(seen) => break seen,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let found = stacks(Some(&seen), None);
        assert_eq!((found.threads.len(), found.more, found.threads[0].tid), (1, 0, pid));
        assert!(found.threads[0].user.as_ref().unwrap_err().contains("in no traced call"));
        assert!(stacks(None, None).why_not.unwrap().contains("being read"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
