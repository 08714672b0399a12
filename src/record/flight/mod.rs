//! When the flight recorder writes a dataset.

pub mod trigger;
pub mod viewer;

use crate::export::Why;
use crate::inflight::InFlight;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long after a trigger is waited for what follows: calls around it, requests that it led to. Rows come up to a second
/// after what they report.
const SETTLE: Duration = Duration::from_secs(1);
/// How long a dataset then waits for what is in flight, whose names may take their time: rows are forgotten meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

/// What asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A viewer that waits for it.
    Hand,
    /// A trigger, of which there may be many.
    Trigger,
}

/// What the session does now.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// Samples what is in flight, and reports the result.
    Look,
    /// Has a dataset written, with what was in flight.
    Write(Why, Option<Arc<InFlight>>),
}

/// What came of a look at what is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// Names are being found for it.
    Begun,
    /// The thread that finds names is busy.
    Busy,
    /// The kernel does not show it.
    Refused,
}

/// A dataset that it is time for, since when, and whether what is in flight is being looked at for it.
#[derive(Debug)]
struct Due {
    why: Why,
    since: Duration,
    looked: Looked,
}

/// What was asked for and is not in the worker's hands yet. Pure; times are since the start of the trace.
#[derive(Debug)]
pub struct Alarm {
    /// The time that is kept.
    length: Duration,
    pending: Option<(Why, Duration)>,
    due: Option<Due>,
    written: Option<Duration>,
    /// Nowhere writes any more.
    over: bool,
}

/// Shared by triggers, users, the session and the worker: it alone knows what is still to be written.
#[derive(Debug, Clone)]
pub struct SharedAlarm(Arc<Mutex<Alarm>>);

impl SharedAlarm {
    pub fn new(length: Duration) -> Self {
        Self(Arc::new(Mutex::new(Alarm::new(length))))
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut Alarm) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Alarm {
    const fn new(length: Duration) -> Self {
        Self { length, pending: None, due: None, written: None, over: false }
    }

    /// A dataset is asked for; false when the trace has ended. Triggers get the next one when all that is kept is new: what
    /// they are about is in it.
    pub fn ask(&mut self, now: Duration, why: Why, by: By) -> bool {
        if self.over {
            return false;
        }
        let mut due = now.saturating_add(SETTLE);
        if let (By::Trigger, Some(written)) = (by, self.written) {
            due = due.max(written.saturating_add(self.length));
        }
        self.pending = Some(match self.pending.take() {
            None => (why, due),
            Some((first, before)) if by == By::Hand && before > due => (first.and(&why), due),
            Some(first) => first,
        });
        true
    }

    /// Would one more trigger change nothing?
    pub const fn is_asked(&self) -> bool {
        self.pending.is_some()
    }

    /// What is to be done now, when that is what was `seen` in flight last.
    pub fn step(&mut self, now: Duration, seen: &Arc<InFlight>) -> Step {
        if self.due.is_none()
            && let Some((why, _)) = self.pending.take_if(|(_, due)| *due <= now)
        {
            self.written = Some(now);
            self.due = Some(Due { why, since: now, looked: Looked::Busy });
        }
        let Some(Due { since, looked, .. }) = self.due else { return Step::Nothing };
        let seen = u128::try_from(seen.at_ns).is_ok_and(|at| at >= since.as_nanos()).then(|| Arc::clone(seen));
        let waits = looked != Looked::Refused && now < since.saturating_add(PATIENCE);
        match self.due.take_if(|_| seen.is_some() || !waits) {
            Some(due) => Step::Write(due.why, seen),
            None if looked == Looked::Busy => Step::Look,
            None => Step::Nothing,
        }
    }

    /// What came of [`Step::Look`].
    pub const fn looked(&mut self, what: Looked) {
        if let Some(due) = &mut self.due {
            due.looked = what;
        }
    }

    /// The trace has ended: why a last dataset is written, if it is.
    pub fn end(&mut self) -> Option<Why> {
        self.over = true;
        let due = self.due.take().map(|due| due.why);
        match (due, self.pending.take()) {
            (Some(due), Some((pending, _))) => Some(due.and(&pending)),
            (due, pending) => due.or(pending.map(|(why, _)| why)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(30);

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn why(text: &str) -> Why {
        Why { text: text.to_owned(), at_ns: 0, span_id: None }
    }

    fn seen(millis: i64) -> Arc<InFlight> {
        Arc::new(InFlight { at_ns: millis * 1_000_000, operations: Vec::new() })
    }

    /// What is written, when what is in flight is seen at once.
    fn due(alarm: &mut Alarm, millis: u64) -> Option<String> {
        let now = seen(millis as i64);
        if let Step::Write(why, last) = alarm.step(at(millis), &now) {
            assert_eq!(last, Some(now));
            return Some(why.text);
        }
        None
    }

    #[test]
    fn a_dataset_waits_for_what_is_in_flight_and_nothing_asked_for_meanwhile_is_lost() {
        let mut alarm = Alarm::new(LENGTH);
        assert!(alarm.ask(at(0), why("stuck"), By::Trigger));
        // Seen before it was time.
        let before = seen(999);
        assert_eq!(alarm.step(at(999), &before), Step::Nothing);
        // Asked again while a dataset is being written, and then no more.
        assert_eq!(alarm.step(at(1000), &before), Step::Look);
        alarm.looked(Looked::Busy);
        assert_eq!(alarm.step(at(1200), &before), Step::Look);
        alarm.looked(Looked::Begun);
        assert_eq!(alarm.step(at(1400), &before), Step::Nothing);
        alarm.ask(at(1500), why("SIGUSR2"), By::Hand);
        let after = seen(1200);
        assert_eq!(alarm.step(at(2800), &after), Step::Write(why("stuck"), Some(after)));
        // The other one is written without, when that takes too long.
        assert_eq!(alarm.step(at(3000), &before), Step::Look);
        alarm.looked(Looked::Begun);
        assert_eq!(alarm.step(at(4999), &before), Step::Nothing);
        assert_eq!(alarm.step(at(5000), &before), Step::Write(why("SIGUSR2"), None));
        // And at once where the kernel does not show it.
        alarm.ask(at(6000), why("W"), By::Hand);
        assert_eq!(alarm.step(at(7000), &before), Step::Look);
        alarm.looked(Looked::Refused);
        assert_eq!(alarm.step(at(7200), &before), Step::Write(why("W"), None));
        assert_eq!((alarm.step(at(9000), &before), alarm.end()), (Step::Nothing, None));
    }

    #[test]
    fn the_end_has_all_that_was_not_written() {
        let mut alarm = Alarm::new(LENGTH);
        alarm.ask(at(0), why("slow"), By::Trigger);
        assert_eq!(alarm.step(at(1000), &seen(0)), Step::Look);
        alarm.ask(at(1100), why("crash"), By::Trigger);
        assert_eq!(alarm.end(), Some(why("slow; crash")));
        // A request after that gets an answer.
        assert!(!alarm.ask(at(1200), why("W"), By::Hand));
        assert_eq!(alarm.end(), None);
    }

    #[test]
    fn reasons_are_reported_once_and_with_their_call() {
        let call = Why { text: "slow".to_owned(), at_ns: 5, span_id: Some(3) };
        let by_hand = Why { at_ns: 9, ..why("SIGUSR2") };
        let both = call.clone().and(&by_hand).and(&by_hand);
        assert_eq!(both, Why { text: "slow; SIGUSR2".to_owned(), ..call.clone() });
        assert_eq!(by_hand.and(&call), Why { text: "SIGUSR2; slow".to_owned(), ..call });
    }

    #[test]
    fn a_burst_is_one_dataset_and_the_next_comes_when_all_is_new() {
        let mut alarm = Alarm::new(LENGTH);
        for n in 0..1000 {
            alarm.ask(at(5000 + n), why(&format!("call {n}")), By::Trigger);
        }
        assert_eq!(due(&mut alarm, 5999), None);
        assert_eq!(due(&mut alarm, 6000).as_deref(), Some("call 0"));
        assert_eq!(due(&mut alarm, 6000), None);
        // Too early for another one; it is not forgotten, though.
        alarm.ask(at(10_000), why("again"), By::Trigger);
        alarm.ask(at(20_000), why("and again"), By::Trigger);
        assert_eq!(due(&mut alarm, 35_999), None);
        assert_eq!(due(&mut alarm, 36_000).as_deref(), Some("again"));
        alarm.ask(at(90_000), why("late"), By::Trigger);
        assert_eq!(due(&mut alarm, 90_999), None);
        assert_eq!(due(&mut alarm, 91_000).as_deref(), Some("late"));
    }

    #[test]
    fn a_manual_request_waits_only_for_the_time_after_it() {
        let mut alarm = Alarm::new(LENGTH);
        alarm.ask(at(0), why("slow"), By::Trigger);
        assert!(due(&mut alarm, 1000).is_some());
        alarm.ask(at(2000), why("slow again"), By::Trigger);
        alarm.ask(at(3000), why("SIGUSR2"), By::Hand);
        alarm.ask(at(3500), why("SIGUSR2"), By::Hand);
        assert_eq!(due(&mut alarm, 3999), None);
        assert_eq!(due(&mut alarm, 4000).as_deref(), Some("slow again; SIGUSR2"));
        assert_eq!(due(&mut alarm, 60_000), None);
    }
}
