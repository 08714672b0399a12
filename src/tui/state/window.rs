//! The part of time that is looked at.

use crate::base::units;
use crate::summary::view::{Snapshot, Window};
use crate::tui::state::State;

const SECOND: i64 = 1_000_000_000;
/// No window is shorter.
const SHORTEST: i64 = 1_000_000;

impl State {
    /// Moves the window or makes it longer or shorter.
    pub(super) fn scrub(&mut self, key: char, snapshot: &Snapshot) {
        let kept = snapshot.kept;
        let now = self.window.unwrap_or(kept);
        let length = length(now).max(SHORTEST);
        self.window = match key {
            '=' => None,
            '+' => Some(resized(now, length / 2, kept)),
            '-' if length.saturating_mul(2) >= self::length(kept) => None,
            '-' => Some(resized(now, length * 2, kept)),
            '[' => Some(moved(now, -length / 10, kept)),
            ']' => Some(moved(now, length / 10, kept)),
            '{' => Some(moved(now, -length, kept)),
            _ => Some(moved(now, length, kept)),
        };
    }
}

fn length(window: Window) -> i64 {
    window.to_ns.saturating_sub(window.from_ns)
}

/// The window of that length around the middle of another.
fn resized(now: Window, wanted: i64, kept: Window) -> Window {
    let wanted = wanted.max(SHORTEST);
    let from = now.from_ns.saturating_add(length(now).saturating_sub(wanted) / 2);
    moved(Window { from_ns: from, to_ns: from.saturating_add(wanted) }, 0, kept)
}

/// The window moved, within what is kept; one that has everything is halved first.
fn moved(now: Window, by: i64, kept: Window) -> Window {
    let all = length(kept);
    let mut length = length(now).min(all);
    let mut from = now.from_ns;
    if by != 0 && length == all {
        length = (all / 2).max(SHORTEST).min(all);
        from = if by < 0 { kept.from_ns } else { kept.to_ns.saturating_sub(length) };
    }
    let last = kept.to_ns.saturating_sub(length).max(kept.from_ns);
    let from = from.saturating_add(by).clamp(kept.from_ns, last);
    Window { from_ns: from, to_ns: from.saturating_add(length) }
}

/// The window from the earlier of two columns of a chart to the later.
pub(super) fn between(one: (i64, i64), other: (i64, i64), kept: Window) -> Window {
    let (from_ns, to_ns) = (one.0.min(other.0), one.1.max(other.1));
    moved(Window { from_ns, to_ns: to_ns.max(from_ns.saturating_add(SHORTEST)) }, 0, kept)
}

/// A window around a time, as long as the one before, ten seconds where there was none.
pub(super) fn around(now: Option<Window>, kept: Window, at: i64) -> Window {
    let length = now.map_or(10 * SECOND, length).clamp(SHORTEST, length(kept).max(SHORTEST));
    let from = at.saturating_sub(length / 2);
    moved(Window { from_ns: from, to_ns: from.saturating_add(length) }, 0, kept)
}

/// A time since the start of the trace: seconds, another unit, or `1:30`.
pub(super) fn time(text: &str) -> Result<i64, String> {
    let wrong = || "a time since the start: 12.5s, 300ms, 2m, 1:30".to_owned();
    if let Some((minutes, seconds)) = text.split_once(':') {
        let minutes: u32 = minutes.parse().map_err(|_| wrong())?;
        let seconds: f64 = seconds.parse().map_err(|_| wrong())?;
        return Ok(i64::from(minutes).saturating_mul(60 * SECOND).saturating_add((seconds * 1e9) as i64));
    }
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
    let scale = units::ns_per(if unit.is_empty() { "s" } else { unit }).ok_or_else(wrong)?;
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    if number.is_finite() && number >= 0.0 { Ok((number * scale) as i64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Window = Window { from_ns: 0, to_ns: 100 * SECOND };

    fn window(from: i64, to: i64) -> Window {
        Window { from_ns: from * SECOND, to_ns: to * SECOND }
    }

    #[test]
    fn times_are_read() {
        assert_eq!(
            ["12.5", "300ms", "2m", "1:30", "5us", "1 h"].map(time),
            [Ok(12_500_000_000), Ok(300_000_000), Ok(120 * SECOND), Ok(90 * SECOND), Ok(5000), Ok(3600 * SECOND)]
        );
        for bad in ["", "x", "-1", "1y", "inf", ":"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_window_stays_within_what_is_kept() {
        assert_eq!(moved(window(90, 100), 5 * SECOND, KEPT), window(90, 100));
        assert_eq!(moved(window(0, 10), -SECOND, KEPT), window(0, 10));
        assert_eq!(moved(KEPT, SECOND, KEPT), window(50, 100), "everything cannot move: its second half");
        assert_eq!(resized(window(0, 10), 20 * SECOND, KEPT), window(0, 20));
        assert_eq!(around(None, KEPT, 50 * SECOND), window(45, 55));
        assert_eq!(around(Some(window(0, 20)), KEPT, 95 * SECOND), window(80, 100));
        let at = |s: i64| (s * SECOND, (s + 1) * SECOND);
        assert_eq!((between(at(20), at(40), KEPT), between(at(40), at(20), KEPT)), (window(20, 41), window(20, 41)));
        assert_eq!(between(at(99), at(120), KEPT), window(78, 100));
    }

    #[test]
    fn nothing_kept_is_no_error() {
        let none = Window::default();
        assert_eq!(moved(none, 1, none), none);
        resized(none, 5, none);
        around(None, none, 7);
    }
}
