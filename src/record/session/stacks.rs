//! `--stacks`: the threads that look for slow calls and find the names for their stacks. Both may be held up by memory and
//! files that are stuck themselves, so nothing waits for them.

use crate::base::notices::Notices;
use crate::catalog;
use crate::inflight::Frame;
use crate::loader::session::Session;
use crate::loader::stacks::slow::{Limit, Looker, Namer, Sample};
use crate::record::session::note::Note;
use crate::rows::{Meta, Row};
use anyhow::{Context as _, Result};
use nix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// Stacks that may wait for their names; with more of them calls are looked at again later.
const ROOM: usize = 256;
/// How often it is looked for slow calls at most.
const SHORTEST: Duration = Duration::from_millis(1);
/// What looking may take of one CPU: one part in so many.
const SHARE: u32 = 50;
/// How long the end of a trace waits for names.
const LAST: Duration = Duration::from_secs(5);

/// Stacks of slow calls, before, while and after they are taken.
pub enum Stacks {
    /// Nowhere asked for them, or it is over.
    No,
    /// As soon as the hooks are attached.
    Wanted(Vec<Limit>, Vec<catalog::Row>, Notices),
    /// The two threads, seen from outside.
    Taken { stop: Sender<()>, ended: Receiver<()> },
}

impl Stacks {
    pub fn wanted(limits: &[Limit], rows: &[catalog::Row], notices: &Notices) -> Self {
        if limits.is_empty() { Self::No } else { Self::Wanted(limits.to_vec(), rows.to_vec(), notices.clone()) }
    }

    /// Starts to look, if that is wanted.
    ///
    /// # Errors
    /// When the kernel does not show which calls are open, or there are no threads to be had.
    pub fn start(&mut self, session: &mut Session, notes: &Sender<Note>) -> Result<()> {
        let Self::Wanted(limits, rows, notices) = std::mem::replace(self, Self::No) else { return Ok(()) };
        let age = limits.iter().map(|l| l.time).min().unwrap_or_default() / 2;
        let period = (age / 2).max(SHORTEST);
        let looker = Looker::new(session.slow_calls(age)?, rows, limits);
        let (stop, stopped) = mpsc::channel();
        let (samples, inbox) = mpsc::channel();
        let (over, ended) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (unnamed, named, notes) = (Arc::clone(&waiting), notes.clone(), notes.clone());
        let look = move || looks(looker, period, &stopped, &samples, (&waiting, &notes, &notices));
        let name = move || {
            names(&inbox, &unnamed, &named);
            let _ = over.send(());
        };
        std::thread::Builder::new().name("stacks".into()).spawn(look).context("thread for the stacks of slow calls")?;
        std::thread::Builder::new().name("frames".into()).spawn(name).context("thread for the names of stacks")?;
        *self = Self::Taken { stop, ended };
        Ok(())
    }

    /// Waits until all stacks that were taken have their names, if that is possible.
    pub fn end(&mut self) {
        if let Self::Taken { stop, ended } = std::mem::replace(self, Self::No) {
            drop(stop);
            let _ = ended.recv_timeout(LAST);
        }
    }
}

fn looks(
    mut looker: Looker,
    period: Duration,
    stopped: &Receiver<()>,
    samples: &Sender<(i32, Sample)>,
    (waiting, notes, notices): (&AtomicUsize, &Sender<Note>, &Notices),
) {
    let (mut stack_id, mut pause, mut longest, mut usual) = (0, period, period, Duration::ZERO);
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let begun = cpu_time();
        match looker.look(ROOM.saturating_sub(waiting.load(Ordering::Relaxed))) {
            Ok(found) => {
                for sample in found {
                    stack_id += 1;
                    waiting.fetch_add(1, Ordering::Relaxed);
                    // The calls are open: what is known of them here is known before their end is worked off.
                    let _ = notes.send(Note::Stack(stack_id, sample.calls.clone()));
                    let _ = samples.send((stack_id, sample));
                }
            }
            Err(e) => {
                notices.print(&format!("no more stacks are taken: {e:#}"));
                break;
            }
        }
        // One look that took long, by a page fault or a program that is new, is no reason to miss the next calls.
        usual = (usual * 7 + cpu_time().saturating_sub(begun)) / 8;
        pause = period.max(usual * SHARE);
        longest = longest.max(pause);
    }
    let fact = Meta { key: "stacks_period_ns".to_owned(), value: longest.as_nanos().to_string() };
    let _ = notes.send(Note::Rows(vec![Row::Meta(fact)]));
}

/// What this thread has used of a CPU.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn names(inbox: &Receiver<(i32, Sample)>, waiting: &AtomicUsize, notes: &Sender<Note>) {
    let mut namer = Namer::default();
    for (stack_id, sample) in inbox {
        let frames = namer.name(&sample).iter().map(Frame::text).collect();
        waiting.fetch_sub(1, Ordering::Relaxed);
        let _ = notes.send(Note::Frames(stack_id, frames));
    }
}
