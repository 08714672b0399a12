//! `--advise-readahead`: programs that read at a fixed distance, or backwards, find in the page cache what they read next.
//!
//! The kernel reads ahead what follows a read, and nothing else. From the calls of a trace it is known where a handle will be
//! read next; `posix_fadvise(2)` on a descriptor of the tracer's own has the kernel read it, without a change to the program.

mod file;
mod pattern;

use crate::base::text;
use crate::catalog;
use crate::event::{Call, Event};
use crate::record::readahead::file::Opened;
use crate::record::readahead::pattern::{BYTES, Counts, Done, Range, Read, Reader};
use crate::rows::{Meta, READ_AHEAD, Row};
use crate::vocabulary::{Kind, Layer};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeBounds;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::time::Duration;

/// Batches that may wait; then reads are left out, for the worker never waits here.
const QUEUE: usize = 64;
/// Bytes that are read ahead and not read yet, of all handles.
const ALL_BYTES: u64 = 256 << 20;
/// Handles whose files may be open at a time.
const FILES: usize = 64;

/// For so long the end of a trace waits for the thread.
const ANSWERS: Duration = Duration::from_secs(2);

/// When it was (`CLOCK_MONOTONIC`, ns), and what.
type Timed = (u64, Message);

#[derive(Debug, Clone, Copy)]
enum Message {
    /// A read of a file through a descriptor of a process.
    Read { pid: u32, fd: u64, ino: u64, read: Read },
    /// A descriptor was closed.
    Closed { pid: u32, fd: u64 },
    /// A process ended.
    Ended(u32),
    /// Messages found no room, and ends may have been among them.
    Missed,
}

/// Finds the reads among what comes from the kernel side: 300 ms before their rows, which wait until nothing earlier can come.
pub struct ReadAhead {
    kinds: Vec<Option<Kind>>,
    /// Process and pid of each thread.
    threads: HashMap<u32, (u32, u32)>,
    /// Of a call that comes next: thread, number, and whether some of it was not in the page cache.
    missed: Option<(u32, u32, bool)>,
    found: Vec<Timed>,
    sender: SyncSender<Vec<Timed>>,
    outcome: Receiver<Outcome>,
}

/// What it comes to.
#[derive(Debug, Default)]
struct Outcome {
    counts: Counts,
    /// Handles that were read ahead, those where it was given up, and those whose file could not be opened.
    handles: usize,
    given_up: usize,
    refused: usize,
}

impl Outcome {
    fn take(&mut self, reader: &Reader) {
        let counts = reader.counts();
        self.handles += usize::from(counts.asked > 0);
        self.given_up += usize::from(reader.is_off());
        self.counts.add(&counts);
    }

    /// As the report has it.
    fn text(&self) -> String {
        let Counts { asked, bytes, hits, misses, late, unread, saved_ns } = self.counts;
        let mut parts = if asked == 0 {
            vec!["nothing: no reads at a fixed distance missed the page cache again and again".to_owned()]
        } else {
            let (bytes, rate) = (text::bytes(bytes as i64), text::percent(hits as f64 / asked as f64));
            let files =
                if self.handles == 1 { "1 open file".to_owned() } else { format!("{} open files", self.handles) };
            vec![
                format!("{asked} reads ({bytes}) of {files}, {rate} of them then from the page cache"),
                format!("{} saved", text::time(saved_ns as i64)),
            ]
        };
        for (count, what) in [
            (misses, "were still not in it"),
            (late, "came before they were asked for"),
            (unread, "were never made"),
            (self.given_up as u64, "of the open files left alone since it did not help"),
            (self.refused as u64, "of the open files could not be opened once more"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        parts.join("; ")
    }
}

impl ReadAhead {
    /// Starts the thread. `now` is `CLOCK_MONOTONIC` in ns.
    ///
    /// # Errors
    /// When there can be none.
    pub fn start(specs: &[catalog::Row], now: impl Fn() -> u64 + Send + 'static) -> Result<Self> {
        let (sender, inbox) = mpsc::sync_channel(QUEUE);
        let (done, outcome) = mpsc::channel();
        // Where nobody takes it any more the trace has ended.
        let work = move || drop(done.send(Readers::default().work(&inbox, now)));
        std::thread::Builder::new().name("readahead".into()).spawn(work).context("thread to read ahead")?;
        let kind = |row: &catalog::Row| (row.layer == Layer::Syscall).then_some(row.kind);
        let kinds = specs.iter().map(kind).collect();
        Ok(Self { kinds, threads: HashMap::new(), missed: None, found: Vec::new(), sender, outcome })
    }

    /// Takes what comes from the kernel side, as it comes.
    pub fn see(&mut self, event: &Event) {
        match event {
            Event::Thread { thread, process, pid, .. } => drop(self.threads.insert(*thread, (*process, *pid))),
            Event::Exit { time, process, .. } => {
                let mut pid = None;
                self.threads.retain(|_, of| {
                    let gone = of.0 == *process;
                    pid = if gone { Some(of.1) } else { pid };
                    !gone
                });
                self.found.extend(pid.map(|pid| (*time, Message::Ended(pid))));
            }
            Event::Cached { thread, seq, cached, .. } => {
                // Where it is not known nothing is read ahead.
                self.missed = Some((*thread, *seq, cached.miss.is_some_and(|miss| miss > 0)));
            }
            Event::Call(call) => self.found.extend(self.message(call).map(|message| (call.start, message))),
            _ => {}
        }
    }

    fn message(&self, call: &Call) -> Option<Message> {
        let kind = (*self.kinds.get(usize::from(call.spec))?)?;
        let (_, pid) = *self.threads.get(&call.thread)?;
        let fd = call.handle?;
        match kind {
            Kind::Close => Some(Message::Closed { pid, fd }),
            Kind::Read if !call.direct && !call.unfinished => {
                let bytes = call.got.filter(|n| *n > 0)?;
                let missed = self
                    .missed
                    .is_some_and(|(thread, seq, missed)| (thread, seq, missed) == (call.thread, call.seq, true));
                let read = Read {
                    offset: i64::try_from(call.off?).ok()?,
                    bytes: i64::try_from(bytes).ok()?,
                    missed,
                    start_ns: call.start as i64,
                    dur_ns: call.dur.saturating_sub(call.probe) as i64,
                };
                Some(Message::Read { pid, fd, ino: call.file?.ino, read })
            }
            _ => None,
        }
    }

    /// Passes on what was found.
    pub fn pass_on(&mut self) {
        let Some((time, _)) = self.found.last().copied() else { return };
        // What finds no room is not read ahead.
        if let Err(TrySendError::Full(_)) = self.sender.try_send(std::mem::take(&mut self.found)) {
            self.found.push((time, Message::Missed));
        }
    }

    /// Has the thread end; what came of it, for the dataset. A file system that does not answer holds nothing up.
    pub fn finish(self) -> Row {
        drop(self.sender);
        let outcome = self.outcome.recv_timeout(ANSWERS);
        let value =
            outcome.map_or_else(|_| "not known: a file system has not answered for 2 s".to_owned(), |o| o.text());
        Row::Meta(Meta { key: READ_AHEAD.to_owned(), value })
    }
}

/// A file that a process reads through a descriptor.
struct Open {
    ino: u64,
    reader: Reader,
    /// Opened by us when something was to be read ahead.
    opened: Option<Opened>,
    /// It cannot be.
    refused: bool,
}

/// All of them, by pid and descriptor.
#[derive(Default)]
struct Readers {
    open: BTreeMap<(u32, u64), Open>,
    outcome: Outcome,
}

impl Readers {
    fn work(mut self, inbox: &Receiver<Vec<Timed>>, now: impl Fn() -> u64) -> Outcome {
        while let Ok(first) = inbox.recv() {
            let mut all: Vec<Timed> = std::iter::once(first).chain(inbox.try_iter()).flatten().collect();
            // Each CPU has its ring: a thread that moves from one to another is in two.
            all.sort_by_key(|(time, _)| *time);
            let touched: BTreeSet<_> = all.into_iter().filter_map(|(_, message)| self.take(message)).collect();
            for key in touched {
                self.look(key, &now);
            }
        }
        for open in self.open.values() {
            self.outcome.take(&open.reader);
        }
        self.outcome
    }

    /// What was read.
    fn take(&mut self, message: Message) -> Option<(u32, u64)> {
        match message {
            Message::Read { pid, fd, ino, read } => {
                // The same number may be of another file by now.
                if self.open.get(&(pid, fd)).is_some_and(|open| open.ino != ino) {
                    self.close((pid, fd));
                }
                let new = || Open { ino, reader: Reader::default(), opened: None, refused: false };
                self.open.entry((pid, fd)).or_insert_with(new).reader.read(read);
                return Some((pid, fd));
            }
            Message::Closed { pid, fd } => self.close((pid, fd)),
            Message::Ended(pid) => self.close_all((pid, 0)..=(pid, u64::MAX)),
            Message::Missed => self.close_all(..),
        }
        None
    }

    fn close_all(&mut self, keys: impl RangeBounds<(u32, u64)>) {
        let all: Vec<_> = self.open.range(keys).map(|(key, _)| *key).collect();
        for key in all {
            self.close(key);
        }
    }

    fn close(&mut self, key: (u32, u64)) {
        if let Some(open) = self.open.remove(&key) {
            self.outcome.take(&open.reader);
        }
    }

    fn look(&mut self, key: (u32, u64), now: &impl Fn() -> u64) {
        let wants = |open: &Open| !open.refused && open.reader.wants();
        if !self.open.get(&key).is_some_and(wants) {
            return;
        }
        let outstanding: u64 = self.open.values().map(|open| open.reader.outstanding()).sum();
        let files = self.open.values().filter(|open| open.opened.is_some()).count();
        let Some(open) = self.open.get_mut(&key) else { return };
        if open.opened.is_none() {
            if files >= FILES {
                return;
            }
            open.opened = Opened::of(key.0, key.1, open.ino).ok();
            open.refused = open.opened.is_none();
            self.outcome.refused += usize::from(open.refused);
        }
        let Some(opened) = &open.opened else { return };
        let room = ALL_BYTES.saturating_sub(outstanding).min(BYTES);
        let now = || now() as i64;
        open.reader.look(now(), opened.size(), room, |range: Range| {
            if opened.has(range) {
                return Done::InCache;
            }
            // What the kernel refuses the program reads as ever.
            opened.ask(range).map_or(Done::Nothing, |()| Done::Asked(now()))
        });
        open.opened.take_if(|_| open.reader.is_off());
    }
}

#[cfg(test)]
mod tests;
