//! A thread that works while its owner goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SendError, Sender, TryRecvError, channel};

use anyhow::{Context as _, Result};

type Job = Box<dyn FnOnce() + Send>;

/// The thread. It starts with its first job, and ends after its last one when this is dropped.
#[derive(Default)]
pub struct Background {
    jobs: Option<Sender<Job>>,
}

impl Background {
    /// Does this beside the caller, after what it was given before. Where no thread can be had (`pids.max` of the
    /// control group), the caller does it.
    pub fn run<T: Send + 'static>(&mut self, work: impl FnOnce() -> T + Send + 'static) -> Pending<T> {
        let (sender, result) = channel();
        let job: Job = Box::new(move || {
            // No caller waits for a result that is not needed any more.
            let _ = sender.send(work());
        });
        if self.jobs.is_none() {
            self.jobs = start();
        }
        let left = match &self.jobs {
            Some(jobs) => jobs.send(job).err().map(|SendError(job)| job),
            None => Some(job),
        };
        if let Some(job) = left {
            job();
        }
        Pending { result, done: None }
    }
}

fn start() -> Option<Sender<Job>> {
    let (sender, jobs) = channel::<Job>();
    // A job that panics ends with an error for the one who waits for it; a thread that ended would lose the next job.
    let work = move || jobs.iter().for_each(|job| drop(catch_unwind(AssertUnwindSafe(job))));
    std::thread::Builder::new().name("writer".into()).spawn(work).ok().map(|_| sender)
}

/// What a job will return.
pub struct Pending<T> {
    result: Receiver<T>,
    /// What it has returned, once that was looked at.
    done: Option<T>,
}

impl<T> Pending<T> {
    /// Whether nobody has to wait for it any more.
    pub fn is_done(&mut self) -> bool {
        if self.done.is_none() {
            match self.result.try_recv() {
                Ok(done) => self.done = Some(done),
                Err(why) => return why == TryRecvError::Disconnected,
            }
        }
        true
    }

    /// Waits for it.
    ///
    /// # Errors
    /// When the job panicked.
    pub fn wait(self) -> Result<T> {
        self.done.map_or_else(|| self.result.recv().context("the writing thread stopped"), Ok)
    }
}

impl<T, E> Pending<Result<T, E>> {
    /// Whether it is over and has failed.
    pub fn has_failed(&mut self) -> bool {
        self.is_done() && !matches!(self.done, Some(Ok(_)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_in_order_beside_their_owner() {
        let mut background = Background::default();
        let (go, waits) = channel();
        let first = background.run(move || (waits.recv(), std::thread::current().id()));
        let second = background.run(|| 2);
        go.send(1).unwrap();
        let (value, thread) = first.wait().unwrap();
        assert_eq!((value, second.wait().unwrap()), (Ok(1), 2));
        assert_ne!(thread, std::thread::current().id());
    }

    #[test]
    fn one_that_is_done_keeps_what_it_returned() {
        let mut background = Background::default();
        let (go, waits) = channel();
        let mut first = background.run(move || waits.recv());
        assert!(!first.is_done());
        go.send(1).unwrap();
        // Jobs run in order.
        background.run(|| ()).wait().unwrap();
        assert!(first.is_done() && first.is_done());
        assert_eq!(first.wait().unwrap(), Ok(1));
        let mut panicked = background.run(|| panic!("on purpose"));
        background.run(|| ()).wait().unwrap();
        assert!(panicked.is_done());
        assert!(panicked.wait().is_err());
    }

    #[test]
    fn a_failure_shows_before_it_is_waited_for() {
        let mut background = Background::default();
        let mut jobs: [Pending<Result<u8, u8>>; 3] =
            [background.run(|| Ok(1)), background.run(|| Err(2)), background.run(|| panic!("on purpose"))];
        background.run(|| ()).wait().unwrap();
        assert_eq!(jobs.each_mut().map(Pending::has_failed), [false, true, true]);
        let [good, bad, _] = jobs;
        assert_eq!((good.wait().unwrap(), bad.wait().unwrap()), (Ok(1), Err(2)));
    }

    #[test]
    fn a_job_that_panics_is_an_error_and_later_ones_are_done() {
        let mut background = Background::default();
        assert!(background.run(|| panic!("on purpose")).wait().is_err());
        assert_eq!(background.run(|| 3).wait().unwrap(), 3);
    }
}
