//! The thread that makes names of what is in flight: files and memory that it looks at may be stuck, and the session must
//! never wait for them, because targets may be stopped until it acts.

use crate::inflight::InFlight;
use crate::loader::stacks::inflight::Look;
use crate::loader::stacks::resolve::Resolver;
use anyhow::{Context as _, Result};
use std::io::Write as _;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the end of a trace waits for a dump that was asked for.
const LAST: Duration = Duration::from_secs(2);

/// What is done with a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// The dump, on stderr.
    Print,
    /// Kept for a screen: [`Viewer::last`].
    Keep,
}

/// The thread, seen from outside.
pub struct Viewer {
    asks: SyncSender<(Look, Show)>,
    last: Arc<Mutex<Arc<InFlight>>>,
    ended: Receiver<()>,
}

impl Viewer {
    /// `make` runs in the thread: what knows symbols cannot leave it.
    pub fn start(make: impl FnOnce() -> Resolver + Send + 'static) -> Result<Self> {
        // Hands over to a thread that waits, and to no other: what is shown is never old.
        let (asks, inbox) = mpsc::sync_channel::<(Look, Show)>(0);
        let (over, ended) = mpsc::channel();
        let last = Arc::new(Mutex::new(Arc::default()));
        let seen = Arc::clone(&last);
        let work = move || {
            let mut resolver = make();
            for (look, show) in inbox {
                let now = resolver.resolve(&look);
                if show == Show::Print {
                    let _ = std::io::stderr().write_all(now.text().as_bytes());
                }
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(now);
            }
            let _ = over.send(());
        };
        std::thread::Builder::new().name("in flight".into()).spawn(work).context("thread for what is in flight")?;
        Ok(Self { asks, last, ended })
    }

    /// False when the thread is busy with the one before, or stuck in it.
    pub fn show(&self, look: Look, show: Show) -> bool {
        !matches!(self.asks.try_send((look, show)), Err(TrySendError::Full(_)))
    }

    /// What was in flight when it was looked at last.
    pub fn last(&self) -> Arc<InFlight> {
        Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets a dump be printed to its end, if that is possible.
    pub fn end(self) {
        drop(self.asks);
        let _ = self.ended.recv_timeout(LAST);
    }
}
