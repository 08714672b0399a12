//! Puts events that arrive in any order into the order in which they happened.

use crate::event::Event;
use std::collections::BTreeMap;

/// Events wait in slices of 2^22 ns, some 4 ms: of all that wait only the slice with the watermark is looked through.
const SLICE_BITS: u32 = 22;

/// Slices that were emptied are used again, with room for so many events in all, and of those that are no larger than a million
/// events a second make them: sums come all at once, and their room goes back.
const MOST_EMPTY: usize = 1 << 16;
const USUAL: usize = 8192;

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
    /// The slice of the last event, which is not among those: the next one is mostly of the same.
    last: Option<(u64, Vec<Timed>)>,
    /// Slices that were emptied; kept for their capacity, which all together have.
    empty: Vec<Vec<Timed>>,
    room: usize,
    watermark: u64,
    /// What is released of the slice with the watermark, and the order of what is released: events are large and stay
    /// where they are. Both are empty; kept for their capacity.
    part: Vec<Timed>,
    sorted: Vec<(u64, u32)>,
}

/// An event, and whether it came after the watermark had passed it.
struct Timed {
    event: Event,
    late: bool,
}

impl Order {
    /// Takes an event; it is late when its time was already released.
    pub fn push(&mut self, event: Event) {
        let time = event.time();
        let (late, slice) = (time < self.watermark, time >> SLICE_BITS);
        if let Some((last, events)) = &mut self.last
            && *last == slice
        {
            events.push(Timed { event, late });
            return;
        }
        self.put_back();
        let mut events = self.waiting.remove(&slice).unwrap_or_else(|| {
            let empty = self.empty.pop().unwrap_or_default();
            self.room -= empty.capacity();
            empty
        });
        events.push(Timed { event, late });
        self.last = Some((slice, events));
    }

    /// The slice of the last event waits with the others.
    fn put_back(&mut self) {
        if let Some((slice, events)) = self.last.take() {
            self.waiting.insert(slice, events);
        }
    }

    /// Hands on everything earlier than `watermark`, in order, each with whether it is late. `None` releases everything.
    pub fn release(&mut self, watermark: Option<u64>, mut each: impl FnMut(&mut Event, bool)) {
        let mark = watermark.unwrap_or(u64::MAX);
        self.put_back();
        while let Some(slice) =
            self.waiting.first_entry().filter(|s| watermark.is_none() || *s.key() < mark >> SLICE_BITS)
        {
            let mut slice = slice.remove();
            in_order(&mut slice, &mut self.sorted, &mut each);
            if slice.capacity() <= USUAL && self.room + slice.capacity() <= MOST_EMPTY {
                self.room += slice.capacity();
                self.empty.push(slice);
            }
        }
        if watermark.is_some() {
            self.watermark = self.watermark.max(mark);
            if let Some(slice) = self.waiting.get_mut(&(mark >> SLICE_BITS)) {
                self.part.extend(slice.extract_if(.., |t| t.event.time() < mark));
                in_order(&mut self.part, &mut self.sorted, &mut each);
            }
        }
    }
}

/// Hands on the events of a slice in order, and empties it.
fn in_order(slice: &mut Vec<Timed>, sorted: &mut Vec<(u64, u32)>, each: &mut impl FnMut(&mut Event, bool)) {
    sorted.extend(slice.iter().zip(0..).map(|(timed, at)| (timed.event.time(), at)));
    // Rings deliver runs that are in order already, which this (stable, run-finding) sort makes cheap.
    sorted.sort_by_key(|(time, _)| *time);
    // Few happen at the same time.
    for same in sorted.chunk_by_mut(|(time, _), (next, _)| time == next).filter(|same| same.len() > 1) {
        same.sort_by_cached_key(|(_, at)| slice.get(*at as usize).map(|timed| key(&timed.event)));
    }
    for (_, at) in &*sorted {
        if let Some(Timed { event, late }) = slice.get_mut(*at as usize) {
            each(event, *late);
        }
    }
    let many = slice.len();
    slice.clear();
    sorted.clear();
    give_back(slice, many);
    give_back(sorted, many);
}

/// Of events at the same time: what must be known first, then a tie-break that does not depend on arrival.
fn key(event: &Event) -> (u8, u64, u64) {
    let pair = |a: u32, b: u32| (u64::from(a) << 32) | u64::from(b);
    match event {
        Event::Process { process, .. } => (0, u64::from(*process), 0),
        Event::Thread { thread, .. } => (1, u64::from(*thread), 0),
        Event::Belongs { process, .. } => (1, u64::from(*process), 1 << 32),
        Event::Exec { process, .. } => (2, u64::from(*process), 0),
        Event::Mounted(_) => (0, 0, 5),
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
        Event::Deferred(d) if !d.past() => (8, pair(d.call.thread, u32::MAX - d.call.seq), 0),
        // Of those that are sent together the one that ended first.
        Event::Deferred(d) => (7, d.call.start.saturating_add(d.call.dur), pair(d.call.thread, u32::MAX - d.call.seq)),
        Event::Demoted { row, .. } => (0, u64::from(*row), 1),
        Event::Sampled { .. } => (0, 0, 2),
        Event::Paused { .. } => (0, 0, 3),
        Event::Looking { .. } => (0, 0, 4),
        // Calls that end with the moment are in it.
        Event::Looked { .. } => (12, 0, 0),
        Event::Resumed { .. } => (12, 0, 1),
        Event::Disk { dev, .. } => (3, u64::from(*dev), 0),
        Event::Bio(_, bio) => (9, bio.req, bio.off),
        Event::Dirty(d) => (9, pair(d.thread, d.seq.unwrap_or(0)), d.off),
        Event::Request(r) => (10, r.req, 0),
        // What is read now was asked for before, and what is replied now is waited for.
        Event::Message(m) => (7, m.channel, m.number),
        Event::Reply(r) => (7, u64::from(r.server[1]), u64::from(r.number)),
        Event::Sum(s) => (
            10,
            u64::from(s.row),
            s.process.map_or(u64::MAX, |(process, program)| pair(process, program.map_or(0, |n| n.wrapping_add(1)))),
        ),
        Event::Counts(c) => (10, u64::from(c.row), 0),
        Event::Exit { process, .. } => (11, u64::from(*process), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlate::testing::call;

    fn seqs(order: &mut Order, watermark: Option<u64>) -> Vec<(u32, bool)> {
        let mut seqs = Vec::new();
        order.release(watermark, |event, late| match event {
            Event::Call(c) => seqs.push((c.seq, late)),
            Event::Process { .. } => seqs.push((1000, late)),
            other => panic!("{other:?}"),
        });
        seqs
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

    /// As sums come: thousands at once, and each time in another slice.
    #[test]
    fn the_room_of_bursts_goes_back() {
        let mut order = Order::default();
        for round in 1..50_u64 {
            for slice in 0..40 {
                let time = (round * 40 + slice) << SLICE_BITS;
                let many = if slice == round % 40 { 6000 } else { 10 };
                for seq in 0..many {
                    order.push(Event::Call(call(0, seq, 0, 0, time)));
                }
            }
            order.release(Some((round * 40 + 40) << SLICE_BITS), |_, _| ());
            let room: usize = order.empty.iter().map(Vec::capacity).sum();
            assert_eq!(order.room, room);
            assert!(room <= MOST_EMPTY && !order.empty.is_empty(), "{room}");
        }
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
