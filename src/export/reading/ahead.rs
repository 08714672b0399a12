//! Batches that a thread decodes while the ones before are taken.

use std::collections::VecDeque;
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
    mut next: impl FnMut() -> Result<Option<V>> + Send,
    take: &mut dyn FnMut(Result<Option<V>>) -> Result<bool>,
) -> Result<()> {
    let decoded = Mutex::new(VecDeque::new());
    let queue = || decoded.lock().unwrap_or_else(PoisonError::into_inner);
    let mut decode = || {
        let batch = next();
        let more = matches!(batch, Ok(Some(_)));
        queue().push_back(batch);
        more
    };
    let mut take = || {
        let batch = queue().pop_front();
        batch.map_or(Ok(false), &mut *take)
    };
    alternate(thread, &mut decode, &mut take)
}

/// Calls `take` once after each call of `decode`, which a thread calls ahead of it; both return whether there is more. A thread
/// and a channel for each kind of rows would be 4 % of this crate's code.
fn alternate(
    thread: Builder,
    decode: &mut (dyn FnMut() -> bool + Send),
    take: &mut dyn FnMut() -> Result<bool>,
) -> Result<()> {
    // A thread that does not start takes with it what it was given.
    let decode = Mutex::new(Some(decode));
    let claim = || decode.lock().unwrap_or_else(PoisonError::into_inner).take();
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(AHEAD);
        let run = move || {
            let Some(decode) = claim() else { return };
            loop {
                let more = decode();
                // Nobody takes any more after an error of the one who takes them.
                if sender.send(()).is_err() || !more {
                    break;
                }
            }
        };
        if thread.spawn_scoped(scope, run).is_err() {
            let Some(decode) = claim() else { return Ok(()) };
            loop {
                decode();
                if !take()? {
                    return Ok(());
                }
            }
        }
        for () in batches {
            if !take()? {
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
