//! What the user's terminal gets of the output of a command: the last of it when the dashboard has ended, and what follows.
//! No thread, no terminal.

use std::collections::VecDeque;

/// Bytes that are kept while the dashboard has the user's terminal.
const LAST: usize = 64 * 1024;
/// Bytes that may wait for the user's terminal when it is free.
const ROOM: usize = 1 << 20;
/// What is written at once. A terminal that takes a piece is not stalled.
const PIECE: usize = 4096;

#[derive(Default)]
pub struct Outlet {
    waiting: VecDeque<u8>,
    /// Bytes that went, the oldest first, and have not been reported.
    lost: u64,
    /// The user's terminal is free.
    open: bool,
    /// It takes nothing: what finds no room is lost.
    stalled: bool,
    /// Bytes of a piece that is being written.
    writing: u64,
    /// Bytes that came, and those of them that are written or lost.
    taken: u64,
    passed: u64,
}

impl Outlet {
    pub const fn is_open(&self) -> bool {
        self.open
    }

    pub const fn taken(&self) -> u64 {
        self.taken
    }

    pub const fn passed(&self) -> u64 {
        self.passed
    }

    /// Would bytes be lost that the terminal takes if one waits?
    pub fn waits_for_room(&self, more: usize) -> bool {
        self.open && !self.stalled && self.waiting.len() + more > ROOM
    }

    /// Nobody waits for room any more, until something passes.
    pub const fn give_up(&mut self) {
        self.stalled = true;
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
        self.taken += bytes.len() as u64;
        let over = self.waiting.len().saturating_sub(if self.open { ROOM } else { LAST });
        self.lose(over);
    }

    fn lose(&mut self, bytes: usize) {
        self.waiting.drain(..bytes);
        self.lost += bytes as u64;
        self.passed += bytes as u64;
    }

    /// Where the beginning is lost, what follows the first end of a line: a sequence or a character may be cut, too.
    fn begin_with_a_line(&mut self) {
        let end = self.waiting.iter().position(|b| *b == b'\n').filter(|_| self.lost > 0);
        self.lose(end.map_or(0, |at| at + 1));
    }

    /// The user's terminal is free from now on; false when it was. What did not fit before that is no loss: it was on the
    /// dashboard.
    pub fn open(&mut self) -> bool {
        if std::mem::replace(&mut self.open, true) {
            return false;
        }
        self.begin_with_a_line();
        self.lost = 0;
        true
    }

    /// What to write next; [`Self::has_passed`] when that is done.
    pub fn next_piece(&mut self) -> Option<Vec<u8>> {
        if self.lost > 0 {
            self.begin_with_a_line();
            let lost = std::mem::take(&mut self.lost);
            let note =
                format!("\r\niotrace-bpf: {lost} bytes of output are missing: the terminal did not take them\r\n");
            return Some(note.into_bytes());
        }
        let piece: Vec<u8> = self.waiting.drain(..PIECE.min(self.waiting.len())).collect();
        self.writing = piece.len() as u64;
        (!piece.is_empty()).then_some(piece)
    }

    pub fn has_passed(&mut self) {
        self.passed += std::mem::take(&mut self.writing);
        self.stalled = false;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// All that is to be written.
    fn written(outlet: &mut Outlet) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(piece) = outlet.next_piece() {
            assert!(piece.len() <= PIECE);
            all.extend(piece);
            outlet.has_passed();
        }
        assert_eq!(outlet.passed(), outlet.taken());
        all
    }

    #[test]
    fn the_last_of_the_output_begins_with_a_line() {
        let mut outlet = Outlet::default();
        let line = b"0123456789abcdef\n";
        for _ in 0..2 * LAST / line.len() {
            outlet.push(line);
        }
        assert!(outlet.open() && !outlet.open());
        let last = written(&mut outlet);
        assert!(last.starts_with(b"0123") && last.len() <= LAST && last.len() + line.len() > LAST);
        for whole in [&b"ab\ncd"[..], b"no end", b""] {
            let mut outlet = Outlet::default();
            outlet.push(whole);
            outlet.open();
            assert_eq!(written(&mut outlet), whole);
        }
    }

    #[test]
    fn a_terminal_that_takes_nothing_gets_the_last_and_how_much_is_missing() {
        let mut outlet = Outlet::default();
        outlet.open();
        let line = b"0123456789abcdef\n";
        assert!(!outlet.waits_for_room(ROOM));
        while !outlet.waits_for_room(line.len()) {
            outlet.push(line);
        }
        outlet.give_up();
        assert!(!outlet.waits_for_room(line.len()));
        for _ in 0..100 {
            outlet.push(line);
        }
        let text = String::from_utf8(written(&mut outlet)).unwrap();
        let (note, rest) = text[2..].split_once("\r\n").unwrap();
        let missing: u64 = note.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(missing + rest.len() as u64, outlet.taken());
        assert!(rest.starts_with("0123") && rest.ends_with("cdef\n") && rest.len() <= ROOM);
        assert!(!outlet.stalled, "it takes something again");
    }
}
