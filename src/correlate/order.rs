//! Puts events that arrive in any order into the order in which they happened.

use crate::event::Event;
use std::collections::BTreeMap;

/// Events wait in slices of 2^24 ns, some 17 ms: of all that wait only the slice with the watermark is looked through.
const SLICE_BITS: u32 = 24;

/// As many slices as are emptied at one look at the rings, or a few more.
const MOST_EMPTY: usize = 8;

/// Room for so many is always kept.
const LITTLE: usize = 4096;

/// After a burst: of a vector that was emptied, and had so many in it, the room for more goes back.
pub fn give_back<T>(emptied: &mut Vec<T>, had: usize) {
    if emptied.capacity() > 8 * had.max(LITTLE) {
        emptied.shrink_to(LITTLE);
    }
}

/// Events that wait for the watermark to pass them, by slice of time.
#[derive(Default)]
pub struct Order {
    waiting: BTreeMap<u64, Vec<Timed>>,
    /// Slices that were emptied; kept for their capacity.
    empty: Vec<Vec<Timed>>,
    watermark: u64,
}

/// An event, and whether it came after the watermark had passed it.
pub struct Timed {
    pub event: Event,
    pub late: bool,
}

impl Order {
    /// Takes an event; it is late when its time was already released.
    pub fn push(&mut self, event: Event) {
        let time = event.time();
        let late = time < self.watermark;
        let slice = self.waiting.entry(time >> SLICE_BITS).or_insert_with(|| self.empty.pop().unwrap_or_default());
        slice.push(Timed { event, late });
    }

    /// Moves everything earlier than `watermark` to `ready`, in order. `None` releases everything.
    pub fn release(&mut self, watermark: Option<u64>, ready: &mut Vec<Timed>) {
        let mark = watermark.unwrap_or(u64::MAX);
        while let Some(slice) =
            self.waiting.first_entry().filter(|s| watermark.is_none() || *s.key() < mark >> SLICE_BITS)
        {
            let mut slice = slice.remove();
            ready.append(&mut slice);
            if self.empty.len() < MOST_EMPTY {
                self.empty.push(slice);
            }
        }
        if watermark.is_some() {
            self.watermark = self.watermark.max(mark);
            if let Some(slice) = self.waiting.get_mut(&(mark >> SLICE_BITS)) {
                ready.extend(slice.extract_if(.., |t| t.event.time() < mark));
            }
        }
        // Rings deliver runs that are in order already, which this (stable, run-finding) sort makes cheap.
        ready.sort_by_key(|t| key(&t.event));
    }
}

/// Time, then what must be known first, then a tie-break that does not depend on arrival.
fn key(event: &Event) -> (u64, u8, u64, u64) {
    let pair = |a: u32, b: u32| (u64::from(a) << 32) | u64::from(b);
    let (class, a, b) = match event {
        Event::Process { process, .. } => (0, u64::from(*process), 0),
        Event::Thread { thread, .. } => (1, u64::from(*thread), 0),
        Event::Belongs { process, .. } => (1, u64::from(*process), 1 << 32),
        Event::Exec { process, .. } => (2, u64::from(*process), 0),
        Event::File { key, .. } => (3, pair(key.dev, key.generation), key.ino),
        Event::Text { thread, seq, what, .. } => (4, pair(*thread, *seq), what.number()),
        Event::Cached { thread, seq, .. } => (4, pair(*thread, *seq), u64::MAX),
        Event::Inner { thread, seq, .. } => (4, pair(*thread, *seq), u64::MAX - 1),
        Event::Preopened { process, fd, .. } => (5, pair(*process, *fd), 0),
        Event::Stream { thread, fd, stream, .. } => (6, pair(*thread, *fd), *stream),
        // Of phases that begin together, the outer one began earlier; what is inside them ends later.
        Event::Enter(e) => (7, pair(e.thread, e.seq), 0),
        // Of calls that end together, the inner one began later.
        Event::Operation(o) => (7, pair(o.call.thread, o.call.seq), 0),
        Event::Call(c) => (8, pair(c.thread, u32::MAX - c.seq), 0),
        Event::Kept(k) if !k.past() => (8, pair(k.call.thread, u32::MAX - k.call.seq), 0),
        // Of those that are told together the one that ended first.
        Event::Kept(k) => (7, k.call.start.saturating_add(k.call.dur), pair(k.call.thread, u32::MAX - k.call.seq)),
        Event::Disk { dev, .. } => (3, u64::from(*dev), 0),
        Event::Bio(_, bio) => (9, bio.req, bio.off),
        Event::Dirty(d) => (9, pair(d.thread, d.seq.unwrap_or(0)), d.off),
        Event::Request(r) => (10, r.req, 0),
        // What is read now was asked for before, and what is replied now is waited for.
        Event::Message(m) => (7, m.channel, m.number),
        Event::Reply(r) => (7, u64::from(r.server[1]), u64::from(r.number)),
        Event::Sum(s) => (10, u64::from(s.row), s.process.map_or(u64::MAX, u64::from)),
        Event::Counts(c) => (10, u64::from(c.row), 0),
        Event::Exit { process, .. } => (11, u64::from(*process), 0),
    };
    (event.time(), class, a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlate::testing::call;

    fn seqs(order: &mut Order, watermark: Option<u64>) -> Vec<(u32, bool)> {
        let mut ready = Vec::new();
        order.release(watermark, &mut ready);
        let seq = |t: &Timed| match &t.event {
            Event::Call(c) => (c.seq, t.late),
            Event::Process { .. } => (1000, t.late),
            other => panic!("{other:?}"),
        };
        ready.iter().map(seq).collect()
    }

    #[test]
    fn the_watermark_releases_what_is_earlier_and_marks_what_comes_after_it() {
        let mut order = Order::default();
        for end in [30, 10, 20] {
            order.push(Event::Call(call(0, end, 0, 0, u64::from(end))));
        }
        assert_eq!(seqs(&mut order, Some(20)), [(10, false)]);
        order.push(Event::Call(call(0, 5, 0, 0, 5)));
        order.push(Event::Process { time: 20, process: 0, parent: None, runs: false, pid: 1, ppid: 0, uid: 0 });
        assert_eq!(seqs(&mut order, Some(21)), [(5, true), (1000, false), (20, false)]);
        assert_eq!(seqs(&mut order, None), [(30, false)]);
    }

    #[test]
    fn of_calls_that_end_together_the_inner_comes_first() {
        let mut order = Order::default();
        for seq in [1, 0, 2] {
            order.push(Event::Call(call(7, seq, seq as u8, u64::from(seq), 9)));
        }
        assert_eq!(seqs(&mut order, None), [(2, false), (1, false), (0, false)]);
    }
}
