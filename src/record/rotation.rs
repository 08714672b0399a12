//! When one dataset ends and the next begins.

use crate::cli::RotateArgs;
use crate::export::Progress;
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// No dataset is shorter: they are named by the second.
const SHORTEST: Duration = Duration::from_secs(1);
/// Without `--rotate-size` a dataset ends at this part of what is kept, for the one that is written is never removed.
const SHARE: u64 = 4;

/// What was asked for, and how far it is.
pub struct Rotation {
    time: Option<Duration>,
    size: Option<u64>,
    /// How many bytes are kept.
    pub keep: Option<u64>,
    pub progress: Arc<Progress>,
    begun: Instant,
    /// Datasets that were ended.
    ended: u64,
}

impl Rotation {
    /// `None`: one dataset has it all.
    ///
    /// # Errors
    /// When the sizes do not go together.
    pub fn wanted(args: RotateArgs) -> Result<Option<Self>> {
        let RotateArgs { rotate_time: time, rotate_size, keep_size: keep } = args;
        if time.is_none() && rotate_size.is_none() && keep.is_none() {
            return Ok(None);
        }
        ensure!(
            rotate_size.zip(keep).is_none_or(|(size, keep)| size <= keep / 2),
            "--keep-size must be at least twice --rotate-size: the dataset that is being written is never removed"
        );
        let size = rotate_size.or(keep.map(|keep| keep / SHARE));
        Ok(Some(Self { time, size, keep, progress: Arc::default(), begun: Instant::now(), ended: 0 }))
    }

    /// Is the dataset that is written old or large enough? Then the next one is taken to begin now.
    pub fn due(&mut self) -> bool {
        let age = self.begun.elapsed();
        // Of the one before nothing is to be known any more.
        let current = self.progress.complete.load(Ordering::Relaxed) == self.ended;
        let bytes = self.progress.bytes.load(Ordering::Relaxed);
        let large = current && self.size.is_some_and(|size| bytes >= size);
        let due = age >= SHORTEST && (large || self.time.is_some_and(|time| age >= time));
        if due {
            self.begun = Instant::now();
            self.ended += 1;
        }
        due
    }
}
