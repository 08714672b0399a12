//! When the flight recorder writes a dataset: pure.

use crate::export::Why;
use std::time::Duration;

/// How long after a trigger is waited for what follows: calls around it, requests that it led to. Rows come up to a second
/// after what they tell.
const SETTLE: Duration = Duration::from_secs(1);

/// Asked by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Somebody who wants to see it.
    Hand,
    /// A trigger, of which there may be many.
    Trigger,
}

/// What was asked for and not written yet. Times are since the start of the trace.
#[derive(Debug)]
pub struct Alarm {
    /// The time that is kept.
    length: Duration,
    pending: Option<(Why, Duration)>,
    written: Option<Duration>,
}

impl Alarm {
    pub const fn new(length: Duration) -> Self {
        Self { length, pending: None, written: None }
    }

    /// A dataset is asked for. Triggers get the next one when all that is kept is new: what they are about is in it.
    pub fn ask(&mut self, now: Duration, mut why: Why, by: By) {
        let mut due = now.saturating_add(SETTLE);
        if let (By::Trigger, Some(written)) = (by, self.written) {
            due = due.max(written.saturating_add(self.length));
        }
        if let Some((first, before)) = self.pending.take() {
            if by == By::Hand && before > due {
                why.text = format!("{}; {}", first.text, why.text);
            } else {
                (why, due) = (first, before);
            }
        }
        self.pending = Some((why, due));
    }

    /// Why one is to be written now, if it is.
    pub fn due(&mut self, now: Duration) -> Option<Why> {
        let (why, _) = self.pending.take_if(|(_, due)| *due <= now)?;
        self.written = Some(now);
        Some(why)
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

    fn due(alarm: &mut Alarm, millis: u64) -> Option<String> {
        alarm.due(at(millis)).map(|why| why.text)
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
    fn who_asks_by_hand_waits_for_nothing_but_what_follows() {
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
