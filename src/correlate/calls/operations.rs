//! Operations that the kernel carries out after the call that submitted them (`io_uring`, libaio): spans of their own below
//! that call, wherever and whenever they are over.

use crate::HashMap;
use crate::correlate::resources::processes::Text;
use crate::rows::Span;
use crate::vocabulary::flag;

/// What is over and can be written.
pub struct Over {
    pub span: Box<Span>,
    /// Row of the catalog.
    pub spec: u16,
    /// Aggregate mode: it is wanted by itself.
    pub wanted: bool,
}

/// Operations that are over while the call that submitted them, or one around it, is still open.
#[derive(Default)]
pub struct Operations {
    /// By thread and number of the submitting call.
    held: HashMap<(u32, u32), Vec<Over>>,
    count: usize,
    /// The first operation that a call found complete.
    found: HashMap<(u32, u32), i64>,
    /// The paths that operations were given which are not over, by thread and number.
    texts: HashMap<(u32, u32), Vec<Text>>,
}

/// Held at most: each takes about 0.4 kB.
const MAX_HELD: usize = 1 << 20;
/// Operations with paths that are not over, at most: as many as the kernel side can have begun with.
const MAX_NAMED: usize = 1 << 16;

impl Operations {
    /// An operation was given a path. False where there are too many: they have all been lost.
    pub fn names(&mut self, operation: (u32, u32), text: Text) -> bool {
        let full = self.texts.len() >= MAX_NAMED && !self.texts.contains_key(&operation);
        if full {
            self.texts.clear();
        }
        self.texts.entry(operation).or_default().push(text);
        !full
    }

    /// The paths of an operation that is over.
    pub fn named(&mut self, operation: (u32, u32)) -> Vec<Text> {
        if self.texts.is_empty() { Vec::new() } else { self.texts.remove(&operation).unwrap_or_default() }
    }

    /// A call, by thread and number, found the operation complete.
    pub fn found(&mut self, by: (u32, u32), operation: i64) {
        self.found.entry(by).or_insert(operation);
    }

    /// The first that this call found complete.
    pub fn first(&mut self, by: (u32, u32)) -> Option<i64> {
        if self.found.is_empty() { None } else { self.found.remove(&by) }
    }

    /// Keeps an operation until its submitting call is written; gives it back, without that, when there are too many.
    pub fn hold(&mut self, by: (u32, u32), over: Over) -> Option<Over> {
        if self.count >= MAX_HELD {
            return Some(orphan(over));
        }
        self.held.entry(by).or_default().push(over);
        self.count += 1;
        None
    }

    /// A call is being written: so are the operations that it submitted.
    pub fn release(&mut self, by: (u32, u32), parent: &Span, wanted: bool, out: &mut Vec<Over>) {
        if self.count == 0 {
            return;
        }
        for mut over in self.held.remove(&by).unwrap_or_default() {
            self.count -= 1;
            below(&mut over.span, parent.span_id, parent.root_id);
            over.wanted |= wanted;
            out.push(over);
        }
    }

    /// The calls of these threads that are not written now will not be.
    pub fn gone(&mut self, of: impl Fn(u32) -> bool, out: &mut Vec<Over>) {
        self.found.retain(|by, _| !of(by.0));
        self.texts.retain(|operation, _| !of(operation.0));
        let mut keys: Vec<(u32, u32)> = self.held.keys().filter(|by| of(by.0)).copied().collect();
        keys.sort_unstable();
        for key in keys {
            for over in self.held.remove(&key).unwrap_or_default() {
                self.count -= 1;
                out.push(orphan(over));
            }
        }
    }
}

/// Puts an operation below the call that submitted it.
pub fn below(span: &mut Span, parent: i64, root: i64) {
    span.parent_id = Some(parent);
    span.root_id = root;
}

/// The call that submitted it has no row.
fn orphan(mut over: Over) -> Over {
    over.span.flags |= flag::INFERRED_PARENT;
    over.span.depth = 0;
    over
}

#[cfg(test)]
mod tests {
    use crate::catalog::{Family, rows};
    use crate::correlate::testing::{call, spec};
    use crate::correlate::{Config, Correlator};
    use crate::event::{Call, Event, Operation};
    use crate::rows::{Row, Span, span_id};
    use crate::vocabulary::flag;

    fn operation(seq: u32, of: Option<u32>, start: u64, end: u64, found_by: Option<(u32, u32)>) -> Event {
        let row = rows().iter().position(|r| r.family == Family::Uring && r.symbol == "io_uring.read").unwrap();
        let depth = u8::from(of.is_some());
        let read =
            Call { spec: row as u16, len: Some(10), got: Some(7), off: Some(3), ..call(1, seq, depth, start, end) };
        Event::Operation(Operation { call: read, seen: end, of, found_by, summed: false })
    }

    fn enter(seq: u32, start: u64, end: u64) -> Event {
        Event::Call(Call { spec: spec("io_uring_enter"), ..call(1, seq, 0, start, end) })
    }

    fn spans(events: impl IntoIterator<Item = Event>, step: bool) -> Vec<Span> {
        let mut correlator = Correlator::new(Config::default());
        let mut out = Vec::new();
        correlator.push(Event::Thread { time: 1, thread: 1, process: 1, pid: 7, tid: 7, comm: [0; 16] });
        for event in events {
            let time = event.time();
            correlator.push(event);
            if step {
                correlator.advance(time + 1, &mut out);
            }
        }
        correlator.finish(1000, &mut out);
        let mut spans: Vec<Span> =
            out.into_iter().filter_map(|row| if let Row::Span(span) = row { Some(*span) } else { None }).collect();
        spans.sort_unstable_by_key(|s| s.span_id);
        spans
    }

    #[test]
    fn an_operation_is_below_the_call_that_submitted_it_whichever_ends_first() {
        for step in [false, true] {
            // The first is over inside the call, the second after it, found by the next call.
            let events = [
                operation(1, Some(0), 12, 15, Some((1, 0))),
                enter(0, 10, 20),
                operation(2, Some(0), 13, 35, Some((1, 3))),
                enter(3, 30, 40),
            ];
            let spans = spans(events, step);
            let [first, one, two, next] = &spans[..] else { panic!("{spans:?}") };
            for (span, seq, dur) in [(one, 1, 3), (two, 2, 22)] {
                assert_eq!((span.parent_id, span.root_id, span.depth), (Some(first.span_id), first.span_id, 1));
                assert_eq!((span.async_id, span.dur_ns, span.self_ns), (Some(span_id(1, seq)), dur, 0));
                assert_eq!(
                    (span.offset, span.req_bytes, span.bytes, span.layer_top),
                    (Some(3), Some(10), Some(7), true)
                );
                assert_eq!(span.flags, flag::ASYNC | flag::NONBLOCKING);
            }
            // The call's own time is all its own.
            assert_eq!((first.self_ns, first.async_id), (10, Some(one.span_id)));
            assert_eq!(next.async_id, Some(two.span_id));
        }
    }

    #[test]
    fn an_operation_without_its_call_is_a_root() {
        let found = spans([operation(1, Some(0), 12, 15, None)], true);
        assert_eq!((found[0].parent_id, found[0].root_id, found[0].depth), (None, span_id(1, 1), 0));
        assert_ne!(found[0].flags & flag::INFERRED_PARENT, 0);
        // One that a thread of the kernel took from a queue has none.
        let polled = spans([operation(1, None, 12, 15, None)], true);
        assert_eq!((polled[0].parent_id, polled[0].root_id, polled[0].depth), (None, span_id(1, 1), 0));
        assert_eq!(polled[0].flags & flag::INFERRED_PARENT, 0);
    }
}
