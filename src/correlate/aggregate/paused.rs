//! How often MPI communicated inside I/O while its probes were paused (`loader::attach::pauses`).
//!
//! Calls of I/O libraries are recorded all the time. Inside those without a record of what MPI did there were as many
//! calls of MPI as inside those of the last window in which each was recorded, before the pause or in it, or of the
//! next one. With probes a program is slower, so a window with probes would not show it.

use crate::HashMap;
use crate::correlate::aggregate::demoted::Estimate;
use crate::correlate::resources::processes::Owned;

/// An estimate of the calls of a process, before this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unrecorded {
    pub process: Option<Owned>,
    pub until: u64,
    pub estimate: Estimate,
}

/// What a process called while each call was recorded: of I/O libraries, and of MPI inside it, by row.
#[derive(Debug, Default)]
struct Window {
    outer: u64,
    inner: HashMap<u16, u64>,
}

#[derive(Debug, Default)]
struct Process {
    /// Calls of I/O libraries inside which nothing was recorded.
    pending: u64,
    window: Window,
    /// The last one with such calls.
    last: Option<Window>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Recording,
    Paused,
    /// Since then.
    Looking(u64),
}

#[derive(Debug, Default)]
pub struct Paused {
    state: State,
    processes: HashMap<Option<Owned>, Process>,
}

impl Paused {
    /// Calls of MPI are no longer recorded.
    pub fn begin(&mut self) {
        self.state = State::Paused;
        self.roll();
    }

    /// For a moment they are.
    pub fn look(&mut self, time: u64) {
        self.state = State::Looking(time);
    }

    /// A call of an I/O library is over, which began then.
    pub fn outer(&mut self, process: Option<Owned>, start: u64) {
        let unseen = match self.state {
            State::Recording => false,
            State::Paused => true,
            State::Looking(since) => start < since,
        };
        let process = self.processes.entry(process).or_default();
        *if unseen { &mut process.pending } else { &mut process.window.outer } += 1;
    }

    /// A call of MPI is over.
    pub fn call(&mut self, process: Option<Owned>, row: u16) {
        if self.state != State::Paused {
            *self.processes.entry(process).or_default().window.inner.entry(row).or_default() += 1;
        }
    }

    /// The moment is over: what was not recorded before it.
    pub fn looked(&mut self, time: u64) -> Vec<Unrecorded> {
        self.begin();
        self.settle(time)
    }

    /// Calls are recorded again: what was not since the last window.
    pub fn end(&mut self, time: u64) -> Vec<Unrecorded> {
        self.state = State::Recording;
        self.settle(time)
    }

    /// The trace is over: what was not recorded.
    pub fn finish(&mut self, time: u64) -> Vec<Unrecorded> {
        self.roll();
        self.settle(time)
    }

    /// A process is gone: what was not recorded of it.
    pub fn gone(&mut self, process_ix: i32, time: u64) -> Vec<Unrecorded> {
        let own = |of: &Option<Owned>, _: &mut Process| of.is_some_and(|of| of.process_ix == process_ix);
        let gone: Vec<_> = self.processes.extract_if(own).collect();
        let settle = |(of, mut process): (_, Process)| {
            process.roll();
            process.settle(of, time)
        };
        gone.into_iter().flat_map(settle).collect()
    }

    fn roll(&mut self) {
        self.processes.values_mut().for_each(Process::roll);
    }

    fn settle(&mut self, time: u64) -> Vec<Unrecorded> {
        let mut all: Vec<_> = self.processes.iter_mut().flat_map(|(of, process)| process.settle(*of, time)).collect();
        all.sort_unstable_by_key(|u| (u.process.map(|p| p.process_ix), u.estimate.row));
        all
    }
}

impl Process {
    /// Another window begins; one without calls of I/O libraries is not counted.
    fn roll(&mut self) {
        let window = std::mem::take(&mut self.window);
        if window.outer > 0 {
            self.last = Some(window);
        }
    }

    /// What was inside of calls that it is not known of. As long as there was no window with such calls, that stays
    /// open.
    fn settle(&mut self, process: Option<Owned>, until: u64) -> Vec<Unrecorded> {
        let Some(last) = &self.last else { return Vec::new() };
        let share = std::mem::take(&mut self.pending) as f64 / last.outer as f64;
        let estimates = last.inner.iter().map(|(&row, &n)| {
            let calls = (n as f64 * share).round() as u64;
            // Counts of independent calls have their mean as variance.
            let error = ((n as f64).sqrt() * share).round() as u64;
            Unrecorded { process, until, estimate: Estimate { row, calls, error, bytes: 0, alike: false } }
        });
        estimates.filter(|unrecorded| unrecorded.estimate.calls > 0).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const RANK: Option<Owned> = Some(Owned { process_ix: 1, pid: 10, rank: Some(0) });
    const OTHER: Option<Owned> = Some(Owned { process_ix: 2, pid: 11, rank: Some(1) });

    fn calls(of: &[Unrecorded]) -> Vec<(i32, u16, u64, u64)> {
        of.iter().map(|u| (u.process.unwrap().process_ix, u.estimate.row, u.estimate.calls, u.estimate.error)).collect()
    }

    fn outer(paused: &mut Paused, process: Option<Owned>, n: usize) {
        (0..n).for_each(|_| paused.outer(process, 5));
    }

    #[test]
    fn as_many_calls_are_inside_as_in_the_window_after() {
        let mut paused = Paused::default();
        paused.begin();
        outer(&mut paused, RANK, 999);
        paused.look(5);
        // One that began before it is not seen whole.
        paused.outer(RANK, 4);
        outer(&mut paused, RANK, 10);
        (0..40).for_each(|_| paused.call(RANK, 7));
        paused.call(RANK, 8);
        assert_eq!(calls(&paused.looked(50)), [(1, 7, 4000, 632), (1, 8, 100, 100)]);
        // It is counted once, and the next ones are assumed to be like it until the next window.
        outer(&mut paused, RANK, 20);
        assert_eq!(calls(&paused.end(90)), [(1, 7, 80, 13), (1, 8, 2, 2)]);
        outer(&mut paused, RANK, 20);
        assert_eq!(paused.finish(100), []);
    }

    #[test]
    fn calls_before_and_after_the_pause_count_as_well() {
        let mut paused = Paused::default();
        outer(&mut paused, RANK, 2);
        paused.call(RANK, 7);
        paused.begin();
        outer(&mut paused, RANK, 10);
        outer(&mut paused, OTHER, 10);
        assert_eq!(calls(&paused.end(10)), [(1, 7, 5, 5)]);
        outer(&mut paused, OTHER, 1);
        paused.call(OTHER, 7);
        assert_eq!(calls(&paused.finish(20)), [(2, 7, 10, 10)]);
    }

    #[test]
    fn a_window_without_io_is_not_counted_and_the_next_one_is() {
        let mut paused = Paused::default();
        paused.begin();
        outer(&mut paused, RANK, 100);
        paused.look(5);
        assert_eq!(paused.looked(10), []);
        outer(&mut paused, RANK, 100);
        paused.look(5);
        outer(&mut paused, RANK, 1);
        paused.call(RANK, 7);
        assert_eq!(calls(&paused.looked(20)), [(1, 7, 200, 200)]);
    }

    #[test]
    fn each_process_counts_by_itself_and_until_it_ends() {
        let mut paused = Paused::default();
        paused.begin();
        outer(&mut paused, RANK, 10);
        outer(&mut paused, OTHER, 10);
        paused.look(5);
        outer(&mut paused, RANK, 1);
        outer(&mut paused, OTHER, 1);
        paused.call(RANK, 7);
        assert_eq!(calls(&paused.looked(10)), [(1, 7, 10, 10)]);
        outer(&mut paused, RANK, 3);
        assert_eq!(calls(&paused.gone(1, 20)), [(1, 7, 3, 3)]);
        assert_eq!(paused.finish(30), []);
    }
}
