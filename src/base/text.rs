//! Text for people: escaped names, bytes and times with three digits, aligned tables.

use nix::errno::Errno;
use std::fmt::Write;
use std::path::Path;

/// What a failed call of a library has in place of the name of an error: these have no numbers.
pub const FAILED: &str = "failed";

/// The name of the error of a call, such as `ENOENT`.
pub fn errno(number: i16) -> String {
    match Errno::from_raw(number.into()) {
        _ if number < 0 => FAILED.to_owned(),
        Errno::UnknownErrno => format!("errno {number}"),
        known => format!("{known:?}"),
    }
}

/// A name of unknown origin, safe on a terminal: control, bidirectional and invisible characters and bytes that are
/// not UTF-8 become `\xNN` or `\u{N}`.
pub fn escape(name: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    for chunk in name.as_ref().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                c if c.is_ascii_control() => _ = write!(out, "\\x{:02x}", c as u32),
                c if hidden(c) => _ = write!(out, "\\u{{{:x}}}", c as u32),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The same of a message whose lines are to stay lines.
pub fn message(text: &str) -> String {
    text.split('\n').map(escape).collect::<Vec<_>>().join("\n")
}

/// JSON in which characters that act on a terminal unseen are written as escapes, which reads back equal.
pub fn json(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    for c in plain.chars() {
        // Below 0x7f only the line ends of the layout are left unescaped by then.
        if c >= '\x7f' && hidden(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| _ = write!(out, "\\u{unit:04x}"));
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters that change what a reader sees without being seen.
pub fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Terminal columns of a text: wide characters count two, combining marks none.
pub fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// The beginning of a text that has room in `width` columns.
fn fitting(text: &str, width: usize) -> &str {
    let mut left = width;
    let end = text.char_indices().find(|(_, c)| {
        let over = char_columns(*c) > left;
        left = left.saturating_sub(char_columns(*c));
        over
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The text in at most `width` columns, its end cut.
pub fn cut_end(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = fitting(text, width.saturating_sub(1)).to_owned();
    if width > 0 {
        out.push('…');
    }
    out
}

/// Lines of at most `width` columns, broken at blanks where there are any; what goes on is indented like its beginning, and a bit more.
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat((line.len() - line.trim_start_matches(' ').len() + 4).min(width / 2));
    let mut out = Vec::new();
    let mut rest = line.to_owned();
    while columns(&rest) > width.max(1) {
        let fits = fitting(&rest, width.max(1)).len();
        let begun = rest.len() - rest.trim_start_matches(' ').len();
        let cut = rest[..fits].rfind(' ').filter(|at| *at > begun).unwrap_or(fits);
        // A character wider than the line: nothing fits, and nothing can be done.
        if cut == 0 {
            break;
        }
        let next = rest[cut..].trim_start_matches(' ');
        // Each line must be shorter than the one before.
        let next = if cut > indent.len() { format!("{indent}{next}") } else { next.to_owned() };
        rest.truncate(cut);
        out.push(rest);
        rest = next;
    }
    out.push(rest);
    out
}

/// The text in at most `width` columns, its start cut: the end of a path matters more than its start.
pub fn cut_start(text: &str, width: usize) -> String {
    let reversed = |t: &str| t.chars().rev().collect::<String>();
    reversed(&cut_end(&reversed(text), width))
}

/// The text in at most `width` columns, its middle cut: of a path both where it is and its name matter, the name more.
pub fn cut_middle(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let start = fitting(text, width.saturating_sub(1) * 2 / 5);
    let end = cut_start(&text[start.len()..], width.saturating_sub(columns(start)));
    format!("{start}{end}")
}

/// Three significant digits; whole numbers from 1000 on.
fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A path as one word of a shell; what acts on a terminal is escaped.
pub fn quoted(path: &Path) -> String {
    let path = escape(path.display().to_string());
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    if !path.is_empty() && path.chars().all(plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// A number with three significant digits, `x` times something.
pub fn ratio(value: f64) -> String {
    format!("{}x", three_digits(value))
}

/// A part of 1 in per cent.
pub fn percent(part: f64) -> String {
    // The sum of no numbers is -0.
    format!("{:.1}%", part * 100.0 + 0.0)
}

/// Bytes in IEC units.
pub fn bytes(n: i64) -> String {
    scaled(n as f64, &[("B", 1024.0), ("KiB", 1024.0), ("MiB", 1024.0), ("GiB", 1024.0), ("TiB", 1024.0), ("PiB", 1e9)])
}

/// Nanoseconds as ns, us, ms or s.
pub fn time(ns: i64) -> String {
    scaled(ns as f64, &[("ns", 1e3), ("us", 1e3), ("ms", 1e3), ("s", f64::INFINITY)])
}

/// The value in the first unit it fills less than once over, `units` being names and the step to the next one.
fn scaled(mut value: f64, units: &[(&str, f64)]) -> String {
    for (at, (name, step)) in units.iter().enumerate() {
        // What would print as a full next unit is printed in it: 999.6 us is 1.00 ms.
        if value.abs() < step - 0.5 || at + 1 == units.len() {
            let digits = if at == 0 { format!("{value:.0}") } else { three_digits(value) };
            return format!("{digits} {name}");
        }
        value /= step;
    }
    String::new()
}

/// A wall-clock time in ns since 1970 as `2024-05-01 12:00:00 UTC`.
pub fn wall(ns: i64) -> String {
    let seconds = ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 0000-03-01 in eras of 400 years: leap days then come last in a year.
    let z = days + 719_468;
    let (era, day_of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
}

/// How a column of a [`table`] is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Numbers: right-aligned.
    Right,
    /// Names: left-aligned, the end cut when the table is too wide.
    Name,
    /// Paths: left-aligned, the start cut when the table is too wide.
    Path,
}

/// A column: title, setting, and when it goes from a table that is too wide (0: never; the highest goes first).
pub type Column = (&'static str, Set, u8);

/// The least width that a name is cut to before columns are left out.
const NAME_MIN: usize = 20;

/// Rows under titles, every line at most `width` columns and indented by `indent`.
pub fn table(head: &[Column], rows: &[Vec<String>], width: usize, indent: usize) -> String {
    let mut shown: Vec<usize> = (0..head.len()).collect();
    let cell = |row: &[String], at: usize| row.get(at).map_or(0, |text| columns(text));
    let natural = |at: usize| rows.iter().map(|r| cell(r, at)).max().unwrap_or(0).max(columns(head[at].0));
    let least = |at: usize| if head[at].1 == Set::Right { natural(at) } else { natural(at).min(NAME_MIN) };
    let total = |shown: &[usize], width_of: &dyn Fn(usize) -> usize| {
        indent + shown.iter().map(|at| width_of(*at)).sum::<usize>() + 2 * shown.len().saturating_sub(1)
    };
    while total(&shown, &least) > width {
        match shown.iter().copied().filter(|at| head[*at].2 > 0).max_by_key(|at| head[*at].2) {
            Some(out) => shown.retain(|at| *at != out),
            None => break,
        }
    }
    let mut widths: Vec<usize> = shown.iter().map(|at| natural(*at)).collect();
    let mut over = total(&shown, &natural).saturating_sub(width);
    for (slot, at) in shown.iter().enumerate().rev().filter(|(_, at)| head[**at].1 != Set::Right) {
        let give = over.min(widths[slot] - least(*at));
        widths[slot] -= give;
        over -= give;
    }
    let titles: Vec<String> = head.iter().map(|(title, ..)| (*title).to_owned()).collect();
    let mut out = String::new();
    for row in std::iter::once(&titles).chain(rows) {
        let mut line = " ".repeat(indent);
        for (slot, at) in shown.iter().enumerate() {
            let (text, set) = (row.get(*at).map_or("", String::as_str), head[*at].1);
            let text = if set == Set::Path { cut_start(text, widths[slot]) } else { cut_end(text, widths[slot]) };
            let pad = " ".repeat(widths[slot].saturating_sub(columns(&text)));
            let gap = if slot == 0 { "" } else { "  " };
            line += &if set == Set::Right { format!("{gap}{pad}{text}") } else { format!("{gap}{text}{pad}") };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_lie() {
        assert_eq!(escape("plain é 数.h5"), "plain é 数.h5");
        assert_eq!(escape("a\x1b[2J\n\x7f"), "a\\x1b[2J\\x0a\\x7f");
        assert_eq!(escape("exe\u{202e}gpj.\u{200b}\u{9b}"), "exe\\u{202e}gpj.\\u{200b}\\u{9b}");
        assert_eq!(escape(b"bad\xff\xfe".as_slice()), "bad\\xff\\xfe");
    }

    #[test]
    fn three_digits_and_a_unit() {
        let times = [0, 999, 1000, 1234, 12_345, 999_499, 999_600, 1_500_000_000, 5_000_000_000_000].map(time);
        assert_eq!(times, ["0 ns", "999 ns", "1.00 us", "1.23 us", "12.3 us", "999 us", "1.00 ms", "1.50 s", "5000 s"]);
        let sizes = [0, 8, 1023, 1024, 1536, 10 << 20, (1 << 20) - 1, i64::MAX].map(bytes);
        assert_eq!(sizes, ["0 B", "8 B", "1023 B", "1.00 KiB", "1.50 KiB", "10.0 MiB", "1.00 MiB", "8192 PiB"]);
        assert_eq!([1.0, 16.04, 1234.4].map(ratio), ["1.00x", "16.0x", "1234x"]);
    }

    #[test]
    fn errors_have_their_names() {
        assert_eq!(
            [2, 13, 35, 95, 4000, -1].map(errno),
            ["ENOENT", "EACCES", "EDEADLK", "EOPNOTSUPP", "errno 4000", "failed"]
        );
    }

    #[test]
    fn wall_times() {
        assert_eq!(wall(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(wall(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(wall(1_735_689_599_999_999_999), "2024-12-31 23:59:59 UTC");
        assert_eq!(wall(-1), "1969-12-31 23:59:59 UTC");
    }

    #[test]
    fn tables_give_up_columns_and_cut_names() {
        let head: &[Column] = &[("n", Set::Right, 0), ("rare", Set::Right, 1), ("path", Set::Path, 0)];
        let rows = vec![vec!["1".into(), "22".into(), "/a/very/long/path/to/some/file.h5".into()]];
        assert_eq!(table(head, &rows, 60, 0), "n  rare  path\n1    22  /a/very/long/path/to/some/file.h5\n");
        assert_eq!(table(head, &rows, 32, 0), "n  rare  path\n1    22  …g/path/to/some/file.h5\n");
        assert_eq!(table(head, &rows, 24, 1), " n  path\n 1  …ath/to/some/file.h5\n");
    }

    #[test]
    fn cuts_count_columns() {
        assert_eq!(cut_end("数数数", 4), "数…");
        assert_eq!(cut_start("/a/b/c", 4), "…b/c");
        assert_eq!(cut_middle("/scratch/run/a.h5", 12), "/scr…un/a.h5");
        assert_eq!(cut_middle("数数数数", 7), "数…数数");
        assert_eq!([0, 1, 2].map(|n| cut_middle("abcd", n)), ["", "…", "…d"]);
        assert_eq!(cut_end("abc", 3), "abc");
        assert_eq!(cut_end("abc", 0), "");
    }

    #[test]
    fn long_lines_go_on_below() {
        assert_eq!(wrapped("  short", 10), ["  short"]);
        assert_eq!(wrapped("  SELECT one, two", 12), ["  SELECT", "      one,", "      two"]);
        for width in 0..9 {
            let lines = wrapped("  abcdefghij klm\u{65e5}\u{65e5}\u{65e5}", width);
            let joined: String = lines.concat().chars().filter(|c| *c != ' ').collect();
            assert_eq!(joined, "abcdefghijklm\u{65e5}\u{65e5}\u{65e5}", "{width}");
        }
    }
}
