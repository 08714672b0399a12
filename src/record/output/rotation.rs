//! When one dataset ends and the next begins.

use crate::base::usage::bail;
use crate::cli::RotateArgs;
use crate::export::Progress;
use anyhow::Result;
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
    /// When the dataset that is written began; the first one when the trace has.
    begun: Option<Instant>,
    /// Datasets that were ended.
    ended: u64,
}

impl Rotation {
    /// `None`: one dataset has it all.
    ///
    /// # Errors
    /// When the sizes do not go together.
    pub fn wanted(args: RotateArgs) -> Result<Option<Self>> {
        if !args.is_wanted() {
            return Ok(None);
        }
        let RotateArgs { rotate_time: time, rotate_size, keep_size: keep } = args;
        if rotate_size.zip(keep).is_some_and(|(size, keep)| size > keep / 2) {
            bail!(
                "--keep-size must be at least twice --rotate-size: the dataset that is being written is never removed"
            );
        }
        let size = rotate_size.or(keep.map(|keep| keep / SHARE));
        Ok(Some(Self { time, size, keep, progress: Arc::default(), begun: None, ended: 0 }))
    }

    /// Is the dataset that is written old or large enough? Then the next one is taken to begin now.
    pub fn due(&mut self) -> bool {
        let age = self.begun.get_or_insert_with(Instant::now).elapsed();
        // Of the one before nothing is to be known any more.
        let current = self.progress.complete.load(Ordering::Relaxed) == self.ended;
        let bytes = self.progress.bytes.load(Ordering::Relaxed);
        let large = current && self.size.is_some_and(|size| bytes >= size);
        let due = age >= SHORTEST && (large || self.time.is_some_and(|time| age >= time));
        if due {
            self.begun = Some(Instant::now());
            self.ended += 1;
        }
        due
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn wanted(time: Option<Duration>, size: Option<u64>, keep: Option<u64>) -> Rotation {
        Rotation::wanted(RotateArgs { rotate_time: time, rotate_size: size, keep_size: keep }).unwrap().unwrap()
    }

    /// As if it had begun that long ago.
    fn due(rotation: &mut Rotation, ago: Duration, complete: u64, bytes: u64) -> bool {
        rotation.begun = Instant::now().checked_sub(ago);
        rotation.progress.complete.store(complete, Ordering::Relaxed);
        rotation.progress.bytes.store(bytes, Ordering::Relaxed);
        rotation.due()
    }

    #[test]
    fn datasets_end_by_age_and_by_size() {
        let mut by_time = wanted(Some(HOUR), None, None);
        assert!(!due(&mut by_time, HOUR / 2, 0, 1 << 40) && due(&mut by_time, HOUR, 0, 0));
        // The next one has begun.
        assert!(!by_time.due());
        let mut by_size = wanted(None, Some(100), None);
        assert!(!due(&mut by_size, HOUR, 0, 99) && due(&mut by_size, HOUR, 0, 100));
        // Until the worker is done with it, its size is no hint for the next one.
        assert!(!due(&mut by_size, HOUR, 0, 100) && due(&mut by_size, HOUR, 1, 100));
        assert!(!due(&mut by_size, SHORTEST / 2, 2, 100));
    }

    #[test]
    fn what_is_kept_has_room_for_the_one_that_is_written() {
        let mut kept = wanted(None, None, Some(400));
        assert!(!due(&mut kept, HOUR, 0, 99) && due(&mut kept, HOUR, 0, 100));
        let too_large = RotateArgs { rotate_time: None, rotate_size: Some(201), keep_size: Some(400) };
        assert!(Rotation::wanted(too_large).err().unwrap().to_string().contains("at least twice --rotate-size"));
        assert!(Rotation::wanted(RotateArgs::default()).unwrap().is_none());
    }
}
