//! Texts for cells of the screen: names of strangers made safe and cut by what they take on the terminal, and short figures.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::base::text::escape;

/// Columns of the terminal.
pub fn columns(text: &str) -> usize {
    // Most texts are, and a frame measures thousands.
    if text.is_ascii() { text.len() } else { text.width() }
}

/// A name of unknown origin. Besides what can never be shown, letters that are written from right to left become `\u{N}`:
/// terminals that know of directions would move the cells around them. With `ascii` all but ASCII does.
pub fn name(name: &str, ascii: bool) -> String {
    if name.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) && !name.contains('\\') {
        return name.to_owned();
    }
    let mut out = String::new();
    for c in escape(name).chars() {
        if from_the_right(c) || (ascii && !c.is_ascii()) {
            out += &format!("\\u{{{:x}}}", c as u32);
        } else {
            out.push(c);
        }
    }
    out
}

fn from_the_right(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}')
}

/// At most `width` columns, the end cut.
pub fn cut_end(text: &str, width: usize, ascii: bool) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = fitting(text.chars(), width.saturating_sub(1));
    if width > 0 {
        out.push(mark(ascii));
    }
    out
}

/// At most `width` columns, the start cut: the end of a path matters more.
pub fn cut_start(text: &str, width: usize, ascii: bool) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let end: String = fitting(text.chars().rev(), width.saturating_sub(1)).chars().rev().collect();
    if width > 0 { format!("{}{end}", mark(ascii)) } else { end }
}

fn mark(ascii: bool) -> char {
    if ascii { '~' } else { '…' }
}

fn fitting(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut left = width;
    let mut out = String::new();
    for c in chars {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(0)) else { break };
        left = rest;
        out.push(c);
    }
    out
}

/// Three digits and a unit of one letter.
fn short(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut at = 0;
    while value.abs() >= step - 0.5 && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    let digits = if at == 0 || value.abs() >= 99.95 {
        format!("{value:.0}")
    } else if value.abs() >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    format!("{digits}{}", units[at])
}

/// Bytes, of 1024 or of 1000.
pub fn bytes(n: f64, si: bool) -> String {
    if si {
        short(n, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB"])
    } else {
        short(n, 1024.0, &["B", "K", "M", "G", "T", "P"])
    }
}

/// A count.
pub fn count(n: f64) -> String {
    if n != 0.0 && n.abs() < 9.95 && (n - n.round()).abs() > 0.05 {
        return format!("{n:.1}");
    }
    short(n, 1000.0, &["", "k", "M", "G", "T"])
}

/// Nanoseconds.
pub fn time(ns: i64) -> String {
    let s = ns as f64 / 1e9;
    if s >= 999.5 {
        return clock(ns);
    }
    short(ns as f64, 1000.0, &["ns", "us", "ms", "s"])
}

/// A point in time as hours, minutes and seconds.
pub fn clock(ns: i64) -> String {
    let s = ns / 1_000_000_000;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// A point in time as seconds with milliseconds.
pub fn seconds(ns: i64) -> String {
    format!("{:.3}s", ns as f64 / 1e9)
}

/// A part of 1.
pub fn percent(part: f64) -> String {
    if part > 0.0 && part < 0.0095 { format!("{:.1}%", part * 100.0) } else { format!("{:.0}%", part * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_nothing_to_the_terminal() {
        assert_eq!(name("a\x1b[31mb\n\u{202e}c", false), "a\\x1b[31mb\\x0a\\u{202e}c");
        assert_eq!(name("שלום.h5", false), "\\u{5e9}\\u{5dc}\\u{5d5}\\u{5dd}.h5");
        assert_eq!(name("日本.nc é", false), "日本.nc é");
        assert_eq!(name("日.nc", true), "\\u{65e5}.nc");
    }

    #[test]
    fn cuts_by_columns() {
        assert_eq!(cut_end("日本語.h5", 5, false), "日本…");
        assert_eq!(cut_end("日本語.h5", 4, false), "日…", "half a character is none");
        assert_eq!(cut_start("/data/日本語.h5", 7, false), "…語.h5");
        assert_eq!(cut_start("/data/run.h5", 7, true), "~run.h5");
        assert_eq!((cut_end("abc", 0, false), cut_start("abc", 0, false)), (String::new(), String::new()));
        for width in 0..12 {
            assert!(columns(&cut_end("日本語.h5 und", width, false)) <= width);
            assert!(columns(&cut_start("日本語.h5 und", width, false)) <= width);
        }
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([0.0, 1023.0, 1024.0, 1.5e9].map(|n| bytes(n, false)), ["0B", "1023B", "1.00K", "1.40G"]);
        assert_eq!(bytes(1.5e9, true), "1.50GB");
        assert_eq!([0.0, 0.25, 310.0, 9100.0, 1e7].map(count), ["0", "0.2", "310", "9.10k", "10.0M"]);
        assert_eq!([0, 999, 9_800_000, 61_000_000_000].map(time), ["0ns", "999ns", "9.80ms", "61.0s"]);
        assert_eq!(time(3_725_000_000_000), "01:02:05");
        assert_eq!([0.0, 0.004, 0.5, 1.0].map(percent), ["0%", "0.4%", "50%", "100%"]);
    }
}
