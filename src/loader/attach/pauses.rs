//! When the probes of MPI communication are paused, and when they come back.

use crate::event::wire::Busy;
use std::time::{Duration, Instant};

/// How long after they were paused, or looked at, calls are looked at next: first, and at most.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);
/// They are paused again within this time: nothing has changed, and the next look comes later than the last.
const AGAIN: Duration = Duration::from_secs(2);
/// Not before they were paused for so long do they come back, and longer where they were paused again soon: a call
/// also takes long where its thread has to wait for a CPU.
const LEAST: Duration = Duration::from_millis(200);

/// Whether they are paused, and for how long they were.
#[derive(Debug, Default)]
pub struct Pause {
    state: State,
    /// How long after the last look the next one is.
    after: Duration,
    times: u64,
    total: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Never,
    /// Since then.
    Paused { since: Instant, due: Instant },
    /// Since then.
    Resumed(Instant),
}

impl Pause {
    /// A thread calls functions too often. Are they to be paused now, and were not?
    pub fn begins(&mut self, now: Instant) -> bool {
        let again = match self.state {
            State::Paused { .. } => return false,
            State::Never => false,
            State::Resumed(at) => now.duration_since(at) < AGAIN,
        };
        self.after = if again { (self.after * 2).min(LONGEST) } else { FIRST };
        self.state = State::Paused { since: now, due: now + self.after };
        self.times += 1;
        true
    }

    /// Is it time to look how often they are called?
    pub fn is_due(&self, now: Instant) -> bool {
        matches!(self.state, State::Paused { due, .. } if now >= due)
    }

    /// In a look of this length a thread made so many calls, of which each may come once in `every`. Do they come back?
    pub fn looked(&mut self, now: Instant, calls: u32, length: Duration, every: Duration) -> bool {
        // Half as often as what they are paused for.
        if every * calls.saturating_mul(2) < length && self.ends(now) {
            return true;
        }
        self.after = (self.after * 2).min(LONGEST);
        if let State::Paused { due, .. } = &mut self.state {
            *due = now + self.after;
        }
        false
    }

    /// They are wanted again. Do they come back?
    pub fn ends(&mut self, now: Instant) -> bool {
        let State::Paused { since, .. } = self.state else { return false };
        if now.duration_since(since) < LEAST.max(self.after) {
            return false;
        }
        self.total += now.duration_since(since);
        self.state = State::Resumed(now);
        true
    }

    /// How often they were paused, and how long altogether.
    pub fn sums(&self, now: Instant) -> (u64, Duration) {
        let open = match self.state {
            State::Paused { since, .. } => now.duration_since(since),
            _ => Duration::ZERO,
        };
        (self.times, self.total + open)
    }
}

/// Their entries in coverage.
pub fn reason(at_ns: i64, busy: &Busy, times: u64, total: Duration, summed: bool) -> String {
    let number = if summed { "these calls are missing" } else { "their number is estimated" };
    format!(
        "not recorded for {:.3} s in {times} pauses, the first at {:.3} s: a thread made {} MPI calls in {:.1} ms, so that \
         their probes cost too much; {number} (--max-overhead none keeps every call)",
        total.as_secs_f64(),
        at_ns as f64 / 1e9,
        busy.calls,
        busy.elapsed as f64 / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_micros(13);
    const WINDOW: Duration = Duration::from_millis(3);

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn looks_come_less_and_less_often_while_calls_stay_frequent() {
        let (mut pause, begun) = (Pause::default(), Instant::now());
        assert!(pause.begins(begun) && !pause.begins(begun));
        let mut looks = Vec::new();
        for at in 0..4000 {
            let now = begun + ms(at);
            if pause.is_due(now) {
                looks.push(at);
                assert!(!pause.looked(now, 1000, WINDOW, EVERY));
            }
        }
        assert_eq!(looks, [50, 150, 350, 750, 1550, 2550, 3550]);
    }

    #[test]
    fn they_come_back_when_calls_are_rare_and_not_before_a_while() {
        let (mut pause, begun) = (Pause::default(), Instant::now());
        assert!(!pause.looked(begun, 0, WINDOW, EVERY) && !pause.ends(begun));
        pause.begins(begun);
        assert!(!pause.looked(begun + ms(50), 3, WINDOW, EVERY));
        assert!(!pause.looked(begun + ms(250), 200, WINDOW, EVERY));
        assert!(pause.looked(begun + ms(450), 100, WINDOW, EVERY));
        assert!(!pause.is_due(begun + ms(9000)));
        assert_eq!(pause.sums(begun + ms(500)), (1, ms(450)));
    }

    #[test]
    fn paused_again_soon_they_come_back_later() {
        let (mut pause, begun) = (Pause::default(), Instant::now());
        pause.begins(begun);
        for at in [50, 150, 350] {
            pause.looked(begun + ms(at), 1000, WINDOW, EVERY);
        }
        assert!(pause.ends(begun + ms(400)));
        assert!(pause.begins(begun + ms(500)));
        assert!(!pause.is_due(begun + ms(1299)) && pause.is_due(begun + ms(1300)));
        assert!(!pause.ends(begun + ms(1299)) && pause.ends(begun + ms(1300)));
        assert!(pause.begins(begun + ms(5000)));
        assert!(pause.is_due(begun + ms(5050)));
        assert_eq!(pause.sums(begun + ms(5100)), (3, ms(400 + 800 + 100)));
    }
}
