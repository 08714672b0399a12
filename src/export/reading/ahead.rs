//! Batches that a thread decodes while the ones before are taken.

use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

use anyhow::Result;

/// Batches that are decoded before they are asked for.
const AHEAD: usize = 1;

/// The thread that decodes.
pub fn decoder() -> Builder {
    Builder::new().name("decode".to_owned())
}

/// Calls `take` with what `next` gives while it returns true. A thread decodes the next ones meanwhile; where none can be
/// started (a limit on processes or memory), each is decoded when it is asked for.
pub fn ahead<V: Send>(
    thread: Builder,
    next: impl FnMut() -> Result<Option<V>> + Send,
    take: &mut impl FnMut(Result<Option<V>>) -> Result<bool>,
) -> Result<()> {
    // A thread that does not start takes with it what it was given.
    let next = Mutex::new(Some(next));
    let claim = || next.lock().unwrap_or_else(PoisonError::into_inner).take();
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(AHEAD);
        let decode = move || {
            let Some(mut next) = claim() else { return };
            loop {
                let batch = next();
                let more = matches!(batch, Ok(Some(_)));
                // Nobody takes any more after an error of the one who takes them.
                if sender.send(batch).is_err() || !more {
                    break;
                }
            }
        };
        if thread.spawn_scoped(scope, decode).is_err() {
            let Some(mut next) = claim() else { return Ok(()) };
            while take(next())? {}
            return Ok(());
        }
        for batch in batches {
            if !take(batch)? {
                break;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What is taken of ten batches, and the threads that decoded them.
    fn taken(thread: Builder) -> (Vec<i32>, bool) {
        let (mut all, here) = (Vec::new(), thread::current().id());
        let mut left = 0..10;
        let next = || Ok(left.next().map(|n| (n, thread::current().id() == here)));
        let mut inline = true;
        ahead(thread, next, &mut |batch: Result<Option<(i32, bool)>>| {
            let Some((n, of_this)) = batch? else { return Ok(false) };
            all.push(n);
            inline &= of_this;
            Ok(true)
        })
        .unwrap();
        (all, inline)
    }

    #[test]
    fn where_no_thread_can_be_started_batches_are_decoded_all_the_same() {
        let all: Vec<i32> = (0..10).collect();
        assert_eq!(taken(decoder()), (all.clone(), false));
        // No address space has room for its stack.
        assert_eq!(taken(decoder().stack_size(1 << 60)), (all, true));
    }
}
