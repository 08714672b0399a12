//! A stream for a terminal as plain lines. Of escape sequences only those count that move within a line or erase it, as
//! progress bars do; the others are read over.

use crate::summary::view::OutputLine;
use std::collections::VecDeque;
use std::sync::Arc;
use vte::{Params, Parser, Perform};

/// Lines that are kept, and characters of a line.
const LINES: usize = 2000;
const LONGEST: usize = 4096;
const TAB: usize = 8;

/// What was written, and the state of a sequence that has begun.
#[derive(Default)]
pub struct Lines {
    parser: Parser,
    page: Page,
}

#[derive(Default)]
struct Page {
    /// Complete ones, the newest last.
    lines: VecDeque<Arc<str>>,
    /// Lines that are not kept any more.
    gone: u64,
    /// The last one, which is still written, and where.
    line: Vec<char>,
    column: usize,
}

impl Lines {
    /// Takes what was written.
    pub fn push(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.page, bytes);
    }

    /// What there is, with the line that has not ended.
    pub fn all(&self) -> Vec<OutputLine> {
        let page = &self.page;
        let last: Option<Arc<str>> = (!page.line.is_empty()).then(|| page.line.iter().collect::<String>().into());
        let numbers = page.gone as i64..;
        let texts = page.lines.iter().cloned().chain(last);
        numbers.zip(texts).map(|(number, text)| OutputLine { number, text }).collect()
    }

    /// Lines before these.
    pub const fn gone(&self) -> u64 {
        self.page.gone
    }
}

impl Page {
    fn end_line(&mut self) {
        if self.lines.len() >= LINES {
            self.lines.pop_front();
            self.gone += 1;
        }
        self.lines.push_back(self.line.drain(..).collect::<String>().into());
        self.column = 0;
    }

    fn go_to(&mut self, column: usize) {
        self.column = column.min(LONGEST);
    }

    /// `EL`: the rest of the line, its beginning, or all of it.
    fn erase(&mut self, what: u16) {
        let end = self.column.saturating_add(1).min(self.line.len());
        match what {
            0 => self.line.truncate(self.column),
            1 => self.line[..end].fill(' '),
            2 => self.line.clear(),
            _ => {}
        }
    }
}

impl Perform for Page {
    fn print(&mut self, c: char) {
        if self.column >= LONGEST {
            return;
        }
        if self.line.len() <= self.column {
            self.line.resize(self.column + 1, ' ');
        }
        self.line[self.column] = c;
        self.column += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => self.end_line(),
            b'\r' => self.column = 0,
            b'\t' => self.go_to((self.column / TAB + 1) * TAB),
            8 => self.column = self.column.saturating_sub(1),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        if ignore || !intermediates.is_empty() {
            return;
        }
        let given = params.iter().next().and_then(|p| p.first()).copied().unwrap_or(0);
        let steps = usize::from(given.max(1));
        match action {
            'C' => self.go_to(self.column + steps),
            'D' => self.column = self.column.saturating_sub(steps),
            'G' | '`' => self.go_to(steps - 1),
            'K' => self.erase(given),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> Vec<String> {
        let mut lines = Lines::default();
        lines.push(bytes);
        lines.all().into_iter().map(|line| line.text.to_string()).collect()
    }

    #[test]
    fn sequences_leave_only_their_text() {
        let hostile =
            b"\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\x1b[?1049h \x1bP1$tsixel\x1b\\end\x1b]52;c;AAAA\x1b\\\r\nnext";
        assert_eq!(shown(hostile), ["red end", "next"]);
        assert_eq!(shown(b"a\tb\r\n\x07\x00\x0e"), ["a       b"]);
        assert_eq!(shown("日本é".as_bytes()), ["日本é"]);
        assert_eq!(shown(b"bad \xff\xfe byte"), ["bad \u{fffd}\u{fffd} byte"]);
    }

    #[test]
    fn progress_is_written_over_itself() {
        assert_eq!(shown(b"10%\r20%\r100%\r\ndone\x08\x08NE"), ["100%", "doNE"]);
        assert_eq!(shown(b"working...\r\x1b[Kok"), ["ok"]);
        assert_eq!(shown(b"abc\x1b[2Dx\x1b[6Gy"), ["axc  y"]);
        assert_eq!(shown(b"abc\x1b[1K\x1b[65535Cd"), ["   "], "beyond the longest line");
        assert_eq!(shown(b"abc\x1b[2K"), Vec::<String>::new());
    }

    #[test]
    fn sequences_may_come_in_pieces() {
        let whole = "one\x1b[31m two\r\nthr\u{e9}\x1b[K".as_bytes();
        for at in 0..whole.len() {
            let mut lines = Lines::default();
            lines.push(&whole[..at]);
            lines.push(&whole[at..]);
            let texts: Vec<String> = lines.all().into_iter().map(|line| line.text.to_string()).collect();
            assert_eq!(texts, ["one two", "thr\u{e9}"], "cut at {at}");
        }
    }

    #[test]
    fn the_last_lines_are_kept_and_none_grows_without_end() {
        let mut lines = Lines::default();
        for n in 0..LINES + 5 {
            lines.push(format!("line {n}\r\n").as_bytes());
        }
        let all = lines.all();
        assert_eq!((all.len(), lines.gone(), all[0].number, &*all[0].text), (LINES, 5, 5, "line 5"));
        lines.push(&vec![b'x'; 3 * LONGEST]);
        assert_eq!(lines.all().last().map(|line| line.text.len()), Some(LONGEST));
    }
}
