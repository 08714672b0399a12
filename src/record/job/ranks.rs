//! The ranks of a job on one node, as the tracer of that node sees them: arrivals and ends.

use crate::base::{notices, sudo};
use crate::event::Event;
use crate::loader::kernel::rings::now;
use crate::loader::processes::guardian::Guard;
use crate::loader::processes::launch;
use crate::loader::session::Session;
use crate::record::job::rank_protocol::{self, Answer, RankRequest};
use crate::record::job::rendezvous::Rendezvous;
use crate::record::session::note::Note;
use crate::record::session::targets::Targets;
use anyhow::{Context as _, Result, bail, ensure};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::SigSet;
use nix::sys::socket::{MsgFlags, recv};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// First argument of the tracer of a node: then the job, how many ranks of it are there, the descriptor of the lock, and the
/// command line. Its standard input is the socket that ranks come to.
pub const NODE: &str = "__node";
/// How many ranks: not known.
pub const UNKNOWN: &str = "-";

/// Numbers of processes that are kept for ranks: more than a node runs.
pub const ROOM: u32 = 1024;
/// Ranks of a node are started within this time. A trace does not end before, unless all are known to have come.
const LATE: Duration = Duration::from_secs(5);
/// At most this many are accepted at once, so that the trace is not held up.
const AT_ONCE: usize = 64;
/// How long the trace is held up for the hello of new connections.
const HELLO: Duration = Duration::from_millis(100);
/// One that sends none for this long is dropped.
const SILENT: Duration = Duration::from_secs(10);

/// How far the tracer is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Beginning,
    /// There was a trace already.
    Late,
    Begun,
    /// All ranks have come and ended.
    Over,
}

/// The tracer's side of the rendezvous. It holds the lock until this process ends.
pub struct Meeting {
    listener: UnixListener,
    rendezvous: Rendezvous,
    expected: Option<u32>,
    state: Cell<State>,
    _lock: OwnedFd,
}

impl Meeting {
    /// Of a tracer that the first rank has started and that is reparented to init: and its command line.
    ///
    /// # Errors
    /// When it was not started by a rank.
    pub fn inherit(args: &[OsString]) -> Result<(Self, &[OsString])> {
        let [job, expected, lock, line @ ..] = args else {
            bail!("{NODE} is started by iotrace-bpf itself, not by users")
        };
        let text =
            |arg: &OsString| arg.to_str().map(str::to_owned).with_context(|| format!("{NODE}: {}", arg.display()));
        // The rank blocks the signals that it waits for, and runs on some CPUs only.
        SigSet::empty().thread_set_mask().context("unblocking signals")?;
        let mut all = CpuSet::new();
        (0..CpuSet::count()).try_for_each(|cpu| all.set(cpu)).context("CPUs")?;
        // Where it is refused the trace goes on, slower.
        let _ = sched_setaffinity(nix::unistd::Pid::from_raw(0), &all);
        let own = pidfd_open(getpid(), PidfdFlags::empty()).context("this process")?;
        let lock = pidfd_getfd(&own, text(lock)?.parse().context("the lock")?, PidfdGetfdFlags::empty());
        let lock = lock.context("the lock of the ranks of this node")?;
        drop(own);
        // What the launcher gave the rank, such as its end of a connection: it waits until the last process closes it.
        let inherited = std::fs::read_dir("/proc/self/fd").context("descriptors")?.flatten();
        let inherited: Vec<i32> = inherited.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        for fd in inherited.into_iter().filter(|fd| *fd > 2 && *fd != lock.as_raw_fd()) {
            // One of them was the list's own.
            let _ = nix::unistd::close(fd);
        }
        let listener = std::io::stdin().as_fd().try_clone_to_owned().context("the socket of the ranks")?;
        let meeting = Self {
            listener: listener.into(),
            rendezvous: Rendezvous::of(&text(job)?)?,
            expected: text(expected)?.parse().ok(),
            state: Cell::new(State::Beginning),
            _lock: lock,
        };
        Ok((meeting, line))
    }

    /// Makes sure that no rank is late for that dataset: the job may have had a tracer here that has begun it.
    ///
    /// # Errors
    /// When it had.
    pub fn claim(&self, dataset: &Path) -> Result<()> {
        if self.rendezvous.had(dataset) {
            self.state.set(State::Late);
            bail!("the trace of this job on this node is over: {}", dataset.display());
        }
        self.rendezvous.note(dataset);
        Ok(())
    }

    /// The end of this tracer: answers waiting ranks if there was no trace, and cleans up. The exit status.
    pub fn end(&self, outcome: Result<u8>) -> u8 {
        let why = outcome.as_ref().err().map(|e| format!("{e:#}"));
        let answer = match (self.state.get(), &why) {
            (State::Late, Some(why)) => Some(Answer::Not(why.clone())),
            (State::Beginning, Some(why)) => Some(Answer::Failed(why.clone())),
            _ => None,
        };
        if let Some(why) = why.filter(|_| self.state.get() != State::Late) {
            notices::print(&why);
        }
        while let Some(answer) = &answer
            && let Ok((mut rank, _)) = self.listener.accept()
        {
            rank_protocol::answer(&mut rank, answer);
        }
        self.rendezvous.leave(matches!(self.state.get(), State::Beginning | State::Over));
        outcome.unwrap_or(crate::record::TOOL_FAILED)
    }
}

/// One that was taken in.
struct Rank {
    pid: u32,
    process: u32,
    /// The process, even if its number was given to another.
    itself: OwnedFd,
    /// Until the trace has it.
    guard: Option<Guard>,
}

/// The ranks of this node.
pub struct Ranks<'a> {
    meeting: &'a Meeting,
    /// Those that have a number, which come once.
    known: BTreeSet<u32>,
    come: u32,
    alive: Vec<Rank>,
    silent: Silent,
    begun: Option<Instant>,
}

impl<'a> Ranks<'a> {
    pub const fn new(meeting: &'a Meeting) -> Self {
        Self { meeting, known: BTreeSet::new(), come: 0, alive: Vec::new(), silent: Silent(Vec::new()), begun: None }
    }

    /// Takes in those that wait, as processes with numbers from `first` on, and records those that have ended. `count` is called for
    /// each before it goes on.
    pub fn look(
        &mut self,
        first: u32,
        targets: &Targets,
        session: &mut Session<'_>,
        notes: &Sender<Note>,
        count: impl Fn(u32),
    ) -> Vec<Guard> {
        let mut guards = Vec::new();
        if self.begun.is_none() {
            self.begun = Some(Instant::now());
            self.meeting.state.set(State::Begun);
        }
        let accept = |_| Some(self.meeting.listener.accept().ok()?.0);
        let new: Vec<UnixStream> = (0..AT_ONCE).map_while(accept).collect();
        for mut rank in self.silent.heard(new, HELLO) {
            let admitted = self.admit(&mut rank, first, targets, session, notes);
            let (answer, mut new) = admitted.unwrap_or_else(|why| (Answer::Not(format!("{why:#}")), None));
            if let Some(new) = &new {
                count(new.pid);
            }
            let sent = rank_protocol::answer(&mut rank, &answer);
            guards.extend(new.as_mut().and_then(|new| new.guard.take()).filter(|_| sent));
            match new {
                Some(new) if sent => self.alive.push(new),
                Some(new) => forget(&new, session),
                None => {}
            }
        }
        self.alive.retain(|rank| {
            let ended = has_ended(&rank.itself);
            if ended {
                forget(rank, session);
            }
            !ended
        });
        if self.alive.is_empty() && self.all_have_come() {
            self.meeting.state.set(State::Over);
        }
        guards
    }

    fn admit(
        &mut self,
        rank: &mut UnixStream,
        first: u32,
        targets: &Targets,
        session: &mut Session<'_>,
        notes: &Sender<Note>,
    ) -> Result<(Answer, Option<Rank>)> {
        let peer = rank_protocol::peer(rank).context("its process is not known")?;
        ensure!(rank_protocol::is_trusted(peer.uid()), "the tracer of this node is another user's");
        ensure!(has_sent(rank, Duration::ZERO), "it sent nothing for {} s", SILENT.as_secs());
        let RankRequest { rank: number, program, guard } = rank_protocol::request(rank, HELLO)?;
        let own = u32::try_from(peer.pid()).unwrap_or(0);
        ensure!(own != 0, "the tracer of this node is in a PID namespace that does not have this process");
        let pid = program.unwrap_or(own);
        ensure!(pid == own || launch::parent(pid) == Some(own), "its program is not its child");
        if number.is_some_and(|number| self.known.contains(&number)) {
            // What a rank's program starts is traced with it, and does not wait for its end.
            return Ok((if session.process_of(pid).is_some() { Answer::Go } else { Answer::Later }, None));
        }
        ensure!(self.come < ROOM, "the tracer of this node has {ROOM} ranks already");
        let itself = i32::try_from(pid).ok().and_then(Pid::from_raw).context("it has no number")?;
        let itself = pidfd_open(itself, PidfdFlags::empty()).context("it has ended")?;
        // One that still has its end of the connection had this number all the time.
        let here = recv(rank.as_raw_fd(), &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) == Err(Errno::EAGAIN);
        ensure!(here && !has_ended(&itself), "it has ended");
        let process = first + self.come;
        self.come += 1;
        self.known.extend(number);
        // Without a list of targets others have become one by themselves.
        if targets.has(pid)? && session.add_target(pid, process, false)? {
            let uid = sudo::invoking_user().map_or(peer.uid(), |(uid, _)| uid);
            let ppid = launch::parent(pid).unwrap_or(0);
            let event = Event::Process { time: now(), process, parent: None, runs: false, pid, ppid, uid };
            // A worker that failed has given the reason.
            let _ = notes.send(Note::Events(vec![event]));
        }
        // Without it, what is missed is counted (`not_held`).
        let guard = guard.and_then(|fd| {
            let rank = pidfd_open(Pid::from_raw(peer.pid())?, PidfdFlags::empty()).ok()?;
            pidfd_getfd(&rank, fd, PidfdGetfdFlags::empty()).ok().map(Guard::taken)
        });
        Ok((Answer::Go, Some(Rank { pid, process, itself, guard })))
    }

    fn all_have_come(&self) -> bool {
        self.meeting.expected.is_some_and(|ranks| self.come >= ranks)
    }

    /// Have all ended, and will none come any more?
    pub fn are_over(&self) -> bool {
        let late = self.begun.is_some_and(|begun| begun.elapsed() > LATE);
        self.alive.is_empty() && self.silent.0.is_empty() && (late || self.all_have_come())
    }
}

/// Connections without a hello, and since when: on a busy node a rank may be kept from a CPU between both.
struct Silent(Vec<(UnixStream, Instant)>);

impl Silent {
    /// Those that have sent something, that were silent for too long, or that strangers have made: these may neither wait here
    /// nor keep the trace from its end. For `new` ones together it waits this long.
    fn heard(&mut self, new: Vec<UnixStream>, patience: Duration) -> Vec<UnixStream> {
        let begun = Instant::now();
        let mut heard = Vec::new();
        let known = std::mem::take(&mut self.0).into_iter().map(|(rank, since)| (rank, since, Duration::ZERO));
        for (rank, since, patience) in known.chain(new.into_iter().map(|rank| (rank, begun, patience))) {
            let is_trusted = rank_protocol::peer(&rank).is_ok_and(|peer| rank_protocol::is_trusted(peer.uid()));
            let is_late = since.elapsed() >= SILENT;
            if !is_trusted || is_late || has_sent(&rank, patience.saturating_sub(begun.elapsed())) {
                heard.push(rank);
            } else {
                self.0.push((rank, since));
            }
        }
        heard
    }
}

/// Has it sent something that was not read yet, or closed its end?
fn has_sent(rank: &UnixStream, patience: Duration) -> bool {
    let mut sent = [PollFd::new(rank.as_fd(), PollFlags::POLLIN)];
    poll(&mut sent, PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO)).is_ok_and(|n| n > 0)
}

/// The end of one that was not a target yet was not seen, and its number may be another one's by now.
fn forget(rank: &Rank, session: &mut Session<'_>) {
    if session.process_of(rank.pid) == Some(rank.process) {
        session.remove_target(rank.pid);
    }
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut ended = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut ended, PollTimeout::ZERO).is_ok_and(|n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_hello_that_comes_late_is_heard() {
        let [(early, mut ranks_early), (late, mut ranks_late)] =
            [UnixStream::pair().unwrap(), UnixStream::pair().unwrap()];
        let mut silent = Silent(Vec::new());
        ranks_early.write_all(b"1 - -\n").unwrap();
        let heard = silent.heard(vec![early, late], Duration::ZERO);
        assert_eq!((heard.len(), silent.0.len()), (1, 1));
        assert_eq!(silent.heard(Vec::new(), Duration::ZERO).len(), 0);
        ranks_late.write_all(b"2 - -\n").unwrap();
        let mut heard = silent.heard(Vec::new(), Duration::ZERO);
        assert_eq!((heard.len(), silent.0.len()), (1, 0));
        assert_eq!(rank_protocol::request(&mut heard[0], HELLO).unwrap().rank, Some(2));
        // One that has gone is not waited for.
        let (gone, other) = UnixStream::pair().unwrap();
        drop(other);
        assert_eq!(silent.heard(vec![gone], HELLO).len(), 1);
    }
}
