//! Which call of the program's own a span is part of, and which phase: phases are around the program's calls, and not
//! calls that the program makes of a layer.

use crate::HashMap;
use crate::rows::{SEQ_BITS, Span};
use crate::vocabulary::{Kind, Layer, flag};

/// A function that is known for what runs inside it.
pub fn is_phase(span: &Span) -> bool {
    span.layer == Layer::App && span.kind == Kind::Other
}

/// Where a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The outermost call around it, itself included, that is no phase; none for a phase that no call is around.
    pub call: Option<(i64, Layer)>,
    /// The innermost phase around it.
    pub phase: Option<i64>,
    /// Within that phase there is a call of layer `app` around it.
    pub in_app: bool,
}

impl Place {
    /// Is the span a call that the program made itself?
    pub fn is_own(&self, span: &Span) -> bool {
        self.call.is_some_and(|(id, _)| id == span.span_id)
    }

    /// Does the span say what the program asked for: a call of its own, or the half of one that reads?
    pub fn asks(&self, span: &Span) -> bool {
        self.call.is_some_and(|(id, _)| id == span.span_id || Some(id) == span.half_of())
    }

    /// Does it count as a call of its layer within its phase? Phases are of layer `app` themselves.
    pub fn counts(&self, span: &Span) -> bool {
        !is_phase(span) && (span.layer_top || (span.layer == Layer::App && !self.in_app))
    }
}

struct Around {
    id: i64,
    place: Place,
    phase: bool,
    app: bool,
}

/// Asynchronous operations that are remembered, for what other threads do for them.
const OPERATIONS_MAX: usize = 1 << 20;

/// Follows the spans of each thread in the order of the dataset: a call comes before the calls inside it. Only phases that
/// no call is around come whenever they ended. Memory grows with the number of threads and of asynchronous operations.
#[derive(Default)]
pub struct Places {
    threads: HashMap<i64, Vec<Around>>,
    /// Of asynchronous operations, which other threads may carry out.
    operations: HashMap<i64, Place>,
}

impl Places {
    pub fn of(&mut self, span: &Span) -> Place {
        let place = self.find(span);
        // Those of the kernel have nobody's calls inside them.
        let by_threads = span.flags & flag::ASYNC != 0 && span.layer != Layer::Syscall;
        if by_threads && self.operations.len() < OPERATIONS_MAX {
            self.operations.insert(span.span_id, place);
        }
        place
    }

    fn find(&mut self, span: &Span) -> Place {
        let around = self.threads.entry(span.span_id >> SEQ_BITS).or_default();
        let at = around.iter().rposition(|a| Some(a.id) == span.parent_id);
        let elsewhere = span.parent_id.filter(|parent| parent >> SEQ_BITS != span.span_id >> SEQ_BITS);
        if let (None, Some(place)) = (at, elsewhere.and_then(|parent| self.operations.get(&parent)).copied()) {
            around.clear();
            around.push(Around { id: span.span_id, place, phase: false, app: span.layer == Layer::App });
            return place;
        }
        if let (None, Some(parent)) = (at, span.parent_id.filter(|_| span.flags & flag::ASYNC != 0)) {
            // It was over after the call that submitted it, and comes after calls that were made since: in another part.
            return Place { call: Some((parent, span.layer)), phase: None, in_app: false };
        }
        let phase = is_phase(span);
        let (id, app) = (span.span_id, span.layer == Layer::App && !phase);
        let place = match at.and_then(|at| around.get(at)) {
            None => {
                let call = (!phase).then_some((id, span.layer));
                Place { call, phase: span.parent_id, in_app: false }
            }
            Some(above) if above.phase => Place { call: above.place.call, phase: Some(above.id), in_app: false },
            Some(above) => Place { in_app: above.app || above.place.in_app, ..above.place },
        };
        if at.is_some() || !phase {
            around.truncate(at.map_or(0, |at| at + 1));
            around.push(Around { id, place, phase, app });
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::span_id;

    /// A span of thread 1: number, parent, layer, kind.
    fn span(seq: u32, parent: Option<u32>, layer: Layer, kind: Kind) -> Span {
        let parent_id = parent.map(|p| span_id(1, p));
        Span { parent_id, layer, kind, ..crate::export::dataset::tests::span(1, seq, i64::from(seq)) }
    }

    /// What one call submits may be over during the next one, and be written when a part has been closed in between.
    #[test]
    fn an_operation_is_of_the_call_that_submitted_it_however_late_it_comes() {
        use Kind::{Other, Write};
        use Layer::Syscall;
        let operation = |seq, parent| Span { flags: flag::ASYNC, ..span(seq, Some(parent), Syscall, Write) };
        let mut places = Places::default();
        let mut of = |span: &Span| places.of(span).call.map(|(id, _)| id);
        let id = |seq| Some(span_id(1, seq));
        assert_eq!(of(&span(1, None, Syscall, Other)), id(1));
        assert_eq!(of(&operation(2, 1)), id(1));
        assert_eq!(of(&span(4, None, Syscall, Other)), id(4));
        assert_eq!(of(&operation(3, 1)), id(1), "and it is no call of the program's own");
        assert_eq!(of(&operation(5, 4)), id(4), "nor is anything forgotten because of it");
        assert_eq!(of(&Span { flags: flag::ASYNC, ..span(6, None, Syscall, Write) }), id(6), "nobody submitted it");
    }

    #[test]
    fn what_another_thread_does_for_an_operation_is_inside_the_call_that_submitted_it() {
        use Kind::{Other, Write};
        use Layer::{Mpiio, Syscall};
        let operation = Span { flags: flag::ASYNC, ..span(1, None, Mpiio, Write) };
        let mut places = Places::default();
        let mut of = |span: &Span| places.of(span).call;
        let call = Some((span_id(1, 1), Mpiio));
        assert_eq!(of(&operation), call);
        // The thread that submitted it has gone on meanwhile.
        assert_eq!(of(&span(2, None, Syscall, Other)), Some((span_id(1, 2), Syscall)));
        let helper = |seq, parent_id| Span { span_id: span_id(2, seq), parent_id, ..span(0, None, Syscall, Write) };
        assert_eq!(of(&helper(1, Some(span_id(1, 1)))), call);
        assert_eq!(of(&helper(2, Some(span_id(2, 1)))), call);
        assert_eq!(of(&helper(3, None)), Some((span_id(2, 3), Syscall)));
    }

    #[test]
    fn calls_are_inside_calls_and_phases_whenever_these_come() {
        use Kind::{Other, Write};
        use Layer::{App, Hdf5, Stdio, Syscall};
        let phases = [span(1, None, App, Other), span(2, Some(1), App, Other)];
        let calls = [
            span(3, Some(2), Hdf5, Write),
            span(4, Some(3), Syscall, Write),
            span(5, Some(3), App, Other),
            span(6, Some(5), App, Write),
            span(7, Some(6), App, Write),
            span(8, Some(3), Syscall, Write),
            span(9, Some(1), Stdio, Write),
            span(10, None, Stdio, Write),
        ];
        let id = |seq| span_id(1, seq);
        let place = |call: Option<(u32, Layer)>, phase: Option<u32>, in_app| Place {
            call: call.map(|(seq, layer)| (id(seq), layer)),
            phase: phase.map(id),
            in_app,
        };
        let expected = [
            place(Some((3, Hdf5)), Some(2), false),
            place(Some((3, Hdf5)), Some(2), false),
            place(Some((3, Hdf5)), Some(2), false),
            place(Some((3, Hdf5)), Some(5), false),
            place(Some((3, Hdf5)), Some(5), true),
            place(Some((3, Hdf5)), Some(2), false),
            place(Some((9, Stdio)), Some(1), false),
            place(Some((10, Stdio)), None, false),
        ];
        let [outer, inner] = [place(None, None, false), place(None, Some(1), false)];
        for phases_at in 0..=calls.len() {
            let mut places = Places::default();
            let mut found = Vec::new();
            for (n, call) in calls.iter().enumerate() {
                if n == phases_at {
                    assert_eq!(phases.each_ref().map(|p| places.of(p)), [outer, inner]);
                }
                found.push(places.of(call));
            }
            assert_eq!(found, expected, "phases at {phases_at}");
        }
    }
}
