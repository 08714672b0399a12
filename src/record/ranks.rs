//! The ranks of a job on one node, as the tracer of that node sees them: who comes, who has ended.

use super::rank;
use super::targets::Targets;
use super::worker::Note;
use crate::event::Event;
use crate::loader::launch;
use crate::loader::rings::now;
use crate::loader::session::Session;
use anyhow::{Context as _, Result, bail};
use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Numbers of processes that are kept for ranks: more than a node runs.
pub const ROOM: u32 = 1024;
/// Ranks of a node are started within this time. A trace does not end before, unless all are known to have come.
const LATE: Duration = Duration::from_secs(5);

/// The ranks of this node.
pub struct Ranks {
    listener: UnixListener,
    /// How many there are, if that is known.
    expected: Option<u32>,
    /// How many have come.
    come: u32,
    alive: Vec<u32>,
    begun: Instant,
}

impl Ranks {
    /// Those that come to a socket, which does not block.
    pub fn new(listener: UnixListener, expected: Option<u32>) -> Self {
        Self { listener, expected, come: 0, alive: Vec::new(), begun: Instant::now() }
    }

    /// Takes in those that wait, as processes with numbers from `first` on, and notes those that have ended.
    pub fn look(&mut self, first: u32, targets: &Targets, session: &Session<'_>, notes: &Sender<Note>) {
        while let Ok((mut rank, _)) = self.listener.accept() {
            let answer = self.admit(&rank, first, targets, session, notes);
            // It may have been killed meanwhile.
            let _ = match answer {
                Ok(()) => rank.write_all(rank::GO),
                Err(why) => rank.write_all(format!("{why:#}").as_bytes()),
            };
        }
        self.alive.retain(|pid| session.is_target(*pid));
    }

    fn admit(
        &mut self,
        rank: &UnixStream,
        first: u32,
        targets: &Targets,
        session: &Session<'_>,
        notes: &Sender<Note>,
    ) -> Result<()> {
        let peer = rank::peer(rank).context("who it is, is not known")?;
        if !rank::is_trusted(peer.uid()) {
            bail!("the tracer of this node is another user's");
        }
        let pid = u32::try_from(peer.pid()).unwrap_or(0);
        if pid == 0 {
            bail!("the tracer of this node is in a PID namespace that does not have this process");
        }
        if self.come == ROOM {
            bail!("the tracer of this node has {ROOM} ranks already");
        }
        let process = first + self.come;
        self.come += 1;
        // Without a list of targets others have become one by themselves.
        if targets.has(pid)? && session.add_target(pid, process, false)? {
            let uid = launch::invoking_user().map_or(peer.uid(), |(uid, _)| uid);
            let ppid = launch::parent(pid).unwrap_or(0);
            let event = Event::Process { time: now(), process, parent: None, runs: false, pid, ppid, uid };
            // A worker that failed has said why.
            let _ = notes.send(Note::Events(vec![event]));
        }
        self.alive.push(pid);
        Ok(())
    }

    /// Have all ended, and does nobody come any more?
    pub fn are_over(&self) -> bool {
        let all = self.expected.is_some_and(|ranks| self.come >= ranks);
        self.alive.is_empty() && (all || self.begun.elapsed() > LATE)
    }
}
