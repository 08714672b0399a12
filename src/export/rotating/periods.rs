//! The datasets of a recording that begins a new one from time to time: their names, and which are removed.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};

use crate::base::text;
use crate::export::dataset::Closed;
use crate::export::files::directory::Directory;

/// The name of a dataset that began at this time, in ns since 1970: `2026-11-22T10-30-00Z`.
pub fn name(wall_ns: i64) -> String {
    text::wall(wall_ns).replace(' ', "T").replace("TUTC", "Z").replace(':', "-")
}

/// The same for the n-th one of a second, which there is where the wall clock was set back.
pub fn nth(name: &str, n: u32) -> String {
    if n < 2 { name.to_owned() } else { format!("{name}-{n}") }
}

/// Is that a name as they are made here?
pub fn is_name(name: &str) -> bool {
    const SHAPE: &[u8] = b"0000-00-00T00-00-00Z";
    let Some((time, rest)) = name.as_bytes().split_at_checked(SHAPE.len()) else { return false };
    let digit = |(got, shape): (&u8, &u8)| if *shape == b'0' { got.is_ascii_digit() } else { got == shape };
    let number = |rest: &[u8]| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
    time.iter().zip(SHAPE).all(digit) && (rest.is_empty() || rest.strip_prefix(b"-").is_some_and(number))
}

/// Takes messages for the user, and prints them where they do not spoil a dashboard.
pub type Notify = Arc<dyn Fn(&str) + Send + Sync>;

enum Message {
    /// This dataset is written from now on.
    Open(String),
    /// One is complete.
    Closed(Closed),
    /// That which is written has this size.
    Grown(u64),
}

/// A thread that has the time to wait for the device and to remove files.
pub struct Keeper {
    to: Option<Sender<Message>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Keeper {
    /// `keep`: so many bytes at most in all datasets together.
    pub fn start(directory: Arc<Directory>, keep: Option<u64>, notify: Notify) -> Result<Self> {
        let (to, inbox) = mpsc::channel();
        let run = move || Retention::new(directory, keep, notify).run(&inbox);
        let thread = std::thread::Builder::new().name("datasets".into()).spawn(run).context("thread for datasets")?;
        Ok(Self { to: Some(to), thread: Some(thread) })
    }

    pub fn open(&mut self, name: String) -> Result<()> {
        self.post(Message::Open(name))
    }

    pub fn closed(&mut self, dataset: Closed) -> Result<()> {
        self.post(Message::Closed(dataset))
    }

    pub fn grown(&mut self, bytes: u64) -> Result<()> {
        self.post(Message::Grown(bytes))
    }

    fn post(&mut self, message: Message) -> Result<()> {
        match &self.to {
            Some(to) if to.send(message).is_ok() => Ok(()),
            // It ends by itself only when it has failed.
            _ => self.end(),
        }
    }

    /// Waits until all is on the device, and what is too much removed.
    pub fn end(&mut self) -> Result<()> {
        self.to = None;
        let Some(thread) = self.thread.take() else { return Err(anyhow!("the thread for datasets has failed")) };
        thread.join().map_err(|_| {
            anyhow!("the thread for datasets panicked: a bug of iotrace-bpf; please report the lines above")
        })?
    }
}

/// Removes datasets when all together are too large.
pub struct Retention {
    directory: Arc<Directory>,
    keep: Option<u64>,
    /// What is written.
    open: String,
    /// Where some are removed: what this tracer wrote, in order. Names are by a clock that may be set back.
    own: Vec<String>,
    /// Its size.
    size: u64,
    /// The others and their sizes, the oldest first, as they were when that one began.
    others: Option<Vec<(u64, String)>>,
    /// Nothing more can be removed before the next dataset begins.
    stuck: bool,
    notify: Notify,
}

impl Retention {
    pub const fn new(directory: Arc<Directory>, keep: Option<u64>, notify: Notify) -> Self {
        Self { directory, keep, open: String::new(), own: Vec::new(), size: 0, others: None, stuck: false, notify }
    }

    /// This one is complete and stays.
    pub fn written(&mut self, name: &str) {
        let size = self.directory.dataset(name).and_then(|dataset| dataset.bytes().ok());
        self.begun(name.to_owned(), size.unwrap_or(0));
        self.prune();
    }

    fn begun(&mut self, name: String, size: u64) {
        if self.keep.is_some() {
            self.own.push(name.clone());
        }
        (self.open, self.size, self.others, self.stuck) = (name, size, None, false);
    }

    fn run(mut self, inbox: &Receiver<Message>) -> Result<()> {
        for message in inbox {
            match message {
                Message::Open(name) => self.begun(name, 0),
                Message::Closed(dataset) => {
                    for why in dataset.sync()?.repeated {
                        (self.notify)(&format!("warning: ids may have several rows in {why}"));
                    }
                }
                Message::Grown(bytes) => self.size = bytes,
            }
            self.prune();
        }
        Ok(())
    }

    /// Removes the oldest complete datasets while all together are too large. That one cannot be removed is no reason to
    /// stop recording.
    fn prune(&mut self) {
        let Some(keep) = self.keep.filter(|_| !self.stuck) else { return };
        let others = self.others.take().unwrap_or_else(|| self.look());
        let mut total = others.iter().fold(self.size, |sum, (bytes, _)| sum.saturating_add(*bytes));
        let mut left = Vec::new();
        for (bytes, name) in others {
            let removed = total > keep
                && self.directory.remove_dataset(&name).unwrap_or_else(|e| {
                    (self.notify)(&format!("warning: {e:#}"));
                    false
                });
            if removed {
                total -= bytes;
            } else {
                left.push((bytes, name));
            }
        }
        self.others = Some(left);
        if total > keep {
            self.stuck = true;
            let bytes = |n: u64| text::bytes(i64::try_from(n).unwrap_or(i64::MAX));
            let path = self.directory.path();
            let why = if self.size > keep {
                let (path, size) = (path.join(&self.open), bytes(self.size));
                format!("{} alone has {size}, more than --keep-size: the last dataset is never removed", path.display())
            } else {
                format!(
                    "{} holds {} of datasets, more than --keep-size: what is left was not completed (its tracer was killed) \
                     or is in use, and is for you to remove",
                    path.display(),
                    bytes(total)
                )
            };
            (self.notify)(&format!("warning: {why}"));
        }
    }

    fn look(&mut self) -> Vec<(u64, String)> {
        let mut names = self.directory.entries().unwrap_or_default();
        self.own.retain(|own| names.contains(own));
        // Those of earlier tracers are older, whatever the clock was.
        names.sort_by_cached_key(|name| self.own.iter().position(|own| own == name));
        let others = names.into_iter().filter(|name| is_name(name) && *name != self.open);
        others.filter_map(|name| Some((self.directory.dataset(&name)?.bytes().ok()?, name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_again_and_sorted_by_time() {
        assert_eq!(name(1_795_343_400_000_000_000), "2026-11-22T10-30-00Z");
        for at in [0, 951_782_400_000_000_000, 1_795_343_400_999_999_999] {
            assert!(is_name(&name(at)) && is_name(&nth(&name(at), 2)), "{}", name(at));
        }
        let mut names = [name(2_000_000_000), nth(&name(1_000_000_000), 2), nth(&name(1_000_000_000), 1)];
        names.sort();
        assert_eq!(names, ["1970-01-01T00-00-01Z", "1970-01-01T00-00-01Z-2", "1970-01-01T00-00-02Z"]);
        for other in [
            "",
            "mine",
            "2026-11-22",
            "2026-11-22T10-30-00",
            "2026-11-22T10:30:00Z",
            "2026-11-22T10-30-00Z-",
            "2026-11-22T10-30-00Z.bak",
            "2026-11-22T10-30-00Z-x",
            "é026-11-22T10-30-00Z",
            "x2026-11-22T10-30-00Z",
        ] {
            assert!(!is_name(other), "{other}");
        }
    }
}
