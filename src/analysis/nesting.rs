//! Which call of the program's own a span is part of, and which phase: phases are around the program's calls, and not
//! calls that the program makes of a layer. And which calls have what the program asked for.

use std::collections::VecDeque;
use std::time::Duration;

use crate::HashMap;
use crate::analysis::calls::{asked, is_data};
use crate::rows::{SEQ_BITS, Span};
use crate::vocabulary::{Kind, Layer, flag};

/// A function that is known for what runs inside it.
pub fn is_phase(span: &Span) -> bool {
    span.layer == Layer::App && span.kind == Kind::Other
}

/// Calls that hand operations over to the kernel, which are spans below them.
const SUBMITS: [&str; 2] = ["io_submit", "io_uring_enter"];

/// What is around a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enclosing {
    /// The outermost call around it, itself included, that is no phase; none for a phase that no call is around.
    pub call: Option<(i64, Layer)>,
    /// The innermost phase around it.
    pub phase: Option<i64>,
    /// Within that phase there is a call of layer `app` around it.
    pub in_app: bool,
    /// The span counts as asked for by the program, with the call that it made of this layer: it is a read or write of
    /// the program's own, or the first one below whose bytes are known where those of such a call (or of one that submits
    /// operations) are not, or the half of one of these that reads.
    pub asks: Option<Layer>,
}

impl Enclosing {
    /// Is the span a call that the program made itself?
    pub fn is_own(&self, span: &Span) -> bool {
        self.call.is_some_and(|(id, _)| id == span.span_id)
    }

    /// Does it count as a call of its layer within its phase? Phases are of layer `app` themselves.
    pub fn counts(&self, span: &Span) -> bool {
        !is_phase(span) && (span.layer_top || (span.layer == Layer::App && !self.in_app))
    }
}

/// A call that may be around those that come next on its thread.
#[derive(Debug, Clone)]
struct Around<T> {
    id: i64,
    enclosing: Enclosing,
    phase: bool,
    app: bool,
    /// What the caller keeps with it.
    kept: T,
}

/// Asynchronous operations, and calls whose bytes show in the calls below, that are remembered for what comes late.
const REMEMBERED_MAX: usize = 1 << 20;

/// The last ones of many.
#[derive(Debug, Clone)]
struct Remembered<T> {
    by_id: HashMap<i64, T>,
    order: VecDeque<i64>,
    /// So many of them were there when it was looked what can be forgotten.
    old: usize,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self { by_id: HashMap::default(), order: VecDeque::new(), old: 0 }
    }
}

impl<T: Copy> Remembered<T> {
    /// Returns whether another one was forgotten for it.
    fn insert(&mut self, id: i64, value: T) -> bool {
        let full = self.order.len() >= REMEMBERED_MAX;
        if full && let Some(old) = self.order.pop_front() {
            self.by_id.remove(&old);
            self.old = self.old.saturating_sub(1);
        }
        if self.by_id.insert(id, value).is_none() {
            self.order.push_back(id);
        }
        full
    }

    /// Forgets what came before this was called last.
    fn forget(&mut self) {
        for old in self.order.drain(..self.old) {
            self.by_id.remove(&old);
        }
        self.old = self.order.len();
    }

    fn get(&self, id: Option<i64>) -> Option<T> {
        self.by_id.get(&id?).copied()
    }
}

/// Calls of the program whose bytes are only known from the calls below, and such calls below them: with the layer that the
/// program called.
#[derive(Debug, Clone, Default)]
struct Opaque {
    calls: Remembered<Layer>,
    /// Some were forgotten.
    overflow: bool,
}

impl Opaque {
    /// The layer that the program called where the span counts as asked for. Also remembers calls that leave it to those
    /// below.
    fn asks(&mut self, span: &Span, enclosing: &Enclosing, above_asks: Option<Layer>) -> Option<Layer> {
        let own = enclosing.call.filter(|(id, _)| *id == span.span_id).map(|(_, layer)| layer);
        let opaque = self.calls.get(span.parent_id);
        let data = is_data(span.kind);
        let known = asked(span).is_some();
        // A phase inside a call, a call that submits operations, or a data call of unknown size.
        let leaves = is_phase(span) || SUBMITS.contains(&span.op) || (data && !known && span.errno == 0);
        if let Some(called) = own.or(opaque).filter(|_| leaves && enclosing.call.is_some()) {
            self.overflow |= self.calls.insert(span.span_id, called);
        }
        let half = above_asks.filter(|_| span.half_of().is_some());
        own.or(opaque.filter(|_| known)).or(half).filter(|_| data)
    }
}

/// The calls of a thread that may be around the next one.
#[derive(Debug, Clone)]
struct Thread<T> {
    around: Vec<Around<T>>,
    /// None of its spans has come since it was looked what can be forgotten.
    idle: bool,
}

impl<T> Default for Thread<T> {
    fn default() -> Self {
        Self { around: Vec::new(), idle: false }
    }
}

/// How often [`Nesting::forget_idle`] is called while a trace goes on.
pub const FORGETS: Duration = Duration::from_mins(1);

/// Follows the spans of each thread in the order of the dataset: a call comes before the calls inside it. Only phases that
/// no call is around come whenever they ended. Memory grows with the number of threads and, up to a limit, of asynchronous
/// operations and of calls whose bytes are not known, unless [`Nesting::forget_idle`] is called from time to time.
#[derive(Debug, Clone)]
pub struct Nesting<T = ()> {
    threads: HashMap<i64, Thread<T>>,
    /// Of asynchronous operations, which other threads may carry out.
    operations: Remembered<Enclosing>,
    opaque: Opaque,
    /// A span came before the operation of another thread that it is part of.
    pub early: bool,
}

impl<T> Default for Nesting<T> {
    fn default() -> Self {
        Self { threads: HashMap::default(), operations: Remembered::default(), opaque: Opaque::default(), early: false }
    }
}

impl Nesting {
    /// For a second pass over the same spans, in which operations are known before what other threads do for them.
    #[must_use]
    pub fn again(self) -> Self {
        Self { threads: HashMap::default(), ..self }
    }

    pub fn of(&mut self, span: &Span) -> Enclosing {
        self.enter(span, ())
    }
}

impl<T: Copy> Nesting<T> {
    /// Calls whose bytes show in those below were forgotten: what was asked for may be too little.
    pub const fn overflow(&self) -> bool {
        self.opaque.overflow
    }

    /// Forgets threads without a span, and operations and calls that came, before this was called last: the spans of a
    /// call come together, when the outermost one around it is over.
    pub fn forget_idle(&mut self) {
        self.threads.retain(|_, thread| !std::mem::replace(&mut thread.idle, true));
        self.operations.forget();
        self.opaque.calls.forget();
    }

    /// How many threads it remembers.
    #[cfg(test)]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// What is kept with the call around a span, if that has come and is on the same thread.
    pub fn above(&self, span: &Span) -> Option<T> {
        let thread = self.threads.get(&(span.span_id >> SEQ_BITS))?;
        thread.around.iter().rfind(|a| Some(a.id) == span.parent_id).map(|a| a.kept)
    }

    /// What is kept with the calls of a thread.
    pub fn kept_mut(&mut self, thread: i64) -> impl Iterator<Item = &mut T> {
        self.threads.get_mut(&thread).into_iter().flat_map(|thread| &mut thread.around).map(|around| &mut around.kept)
    }

    /// The next span, and what is to be kept with it.
    pub fn enter(&mut self, span: &Span, kept: T) -> Enclosing {
        let enclosing = self.find(span, kept);
        // Those of the kernel have no calls inside them.
        if span.flags & flag::ASYNC != 0 && span.layer != Layer::Syscall {
            self.operations.insert(span.span_id, enclosing);
        }
        enclosing
    }

    fn find(&mut self, span: &Span, kept: T) -> Enclosing {
        let thread = span.span_id >> SEQ_BITS;
        let Thread { around, idle } = self.threads.entry(thread).or_default();
        *idle = false;
        let at = around.iter().rposition(|a| Some(a.id) == span.parent_id);
        let phase = is_phase(span);
        let elsewhere = span.parent_id.filter(|parent| parent >> SEQ_BITS != thread);
        let operation = if at.is_none() { self.operations.get(elsewhere) } else { None };
        self.early |= at.is_none() && elsewhere.is_some() && operation.is_none();
        let above = at.and_then(|at| around.get(at));
        let mut enclosing = match (above, operation, span.parent_id) {
            (Some(above), ..) if above.phase => {
                Enclosing { call: above.enclosing.call, phase: Some(above.id), in_app: false, asks: None }
            }
            (Some(above), ..) => {
                Enclosing { in_app: above.app || above.enclosing.in_app, asks: None, ..above.enclosing }
            }
            (None, Some(operation), _) => Enclosing { asks: None, ..operation },
            // It was over after the call that submitted it, and comes after calls that were made since: in another part.
            (None, None, Some(parent)) if span.flags & flag::ASYNC != 0 => {
                Enclosing { call: Some((parent, span.layer)), phase: None, in_app: false, asks: None }
            }
            (None, None, phase_around) => {
                let call = (!phase).then_some((span.span_id, span.layer));
                Enclosing { call, phase: phase_around, in_app: false, asks: None }
            }
        };
        let late = at.is_none() && operation.is_none() && span.parent_id.is_some() && span.flags & flag::ASYNC != 0;
        enclosing.asks = self.opaque.asks(span, &enclosing, above.and_then(|above| above.enclosing.asks));
        // Neither a late operation nor a phase that no call is around has what comes next inside it.
        if !late && (at.is_some() || !phase || operation.is_some()) {
            around.truncate(at.map_or(0, |at| at + 1));
            let app = span.layer == Layer::App && !phase;
            let phase = phase && operation.is_none();
            around.push(Around { id: span.span_id, enclosing, phase, app, kept });
        }
        enclosing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::span_id;

    /// A span of thread 1: number, parent, layer, kind.
    fn span(seq: u32, parent: Option<u32>, layer: Layer, kind: Kind) -> Span {
        let parent_id = parent.map(|p| span_id(1, p));
        Span { parent_id, ..Span::new(span_id(1, seq), (layer, "call", kind), 0, (i64::from(seq), 10)) }
    }

    /// What one call submits may be over during the next one, and be written when a part has been closed in between.
    #[test]
    fn an_operation_is_of_the_call_that_submitted_it_however_late_it_comes() {
        use Kind::{Other, Write};
        use Layer::Syscall;
        let operation = |seq, parent| Span { flags: flag::ASYNC, ..span(seq, Some(parent), Syscall, Write) };
        let mut nesting = Nesting::default();
        let mut of = |span: &Span| nesting.of(span).call.map(|(id, _)| id);
        let id = |seq| Some(span_id(1, seq));
        assert_eq!(of(&span(1, None, Syscall, Other)), id(1));
        assert_eq!(of(&operation(2, 1)), id(1));
        assert_eq!(of(&span(4, None, Syscall, Other)), id(4));
        assert_eq!(of(&operation(3, 1)), id(1), "and it is no call of the program's own");
        assert_eq!(of(&operation(5, 4)), id(4), "nor is anything forgotten because of it");
        assert_eq!(of(&Span { flags: flag::ASYNC, ..span(6, None, Syscall, Write) }), id(6), "no call submitted it");
    }

    #[test]
    fn what_another_thread_does_for_an_operation_is_inside_the_call_that_submitted_it() {
        use Kind::{Other, Write};
        use Layer::{Mpiio, Syscall};
        let operation = Span { flags: flag::ASYNC, ..span(1, None, Mpiio, Write) };
        let mut nesting = Nesting::default();
        let mut of = |span: &Span| nesting.of(span).call;
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
    fn threads_and_operations_without_a_span_are_forgotten_and_others_are_not() {
        use Kind::Write;
        use Layer::{Mpiio, Syscall};
        let mut nesting = Nesting::default();
        let in_thread = |thread, seq, parent: Option<i64>| Span {
            span_id: span_id(thread, seq),
            parent_id: parent,
            ..span(0, None, Syscall, Write)
        };
        nesting.of(&Span { flags: flag::ASYNC, ..span(1, None, Mpiio, Write) });
        nesting.forget_idle();
        nesting.of(&in_thread(2, 1, None));
        let helper = nesting.of(&in_thread(3, 1, Some(span_id(1, 1))));
        assert_eq!(helper.call, Some((span_id(1, 1), Mpiio)), "the operation has just come");
        nesting.forget_idle();
        assert_eq!((nesting.threads.len(), nesting.operations.order.len()), (2, 0), "thread 1 was idle");
        assert_eq!(nesting.of(&in_thread(2, 2, Some(span_id(2, 1)))).call, Some((span_id(2, 1), Syscall)));
        nesting.forget_idle();
        nesting.forget_idle();
        assert!(nesting.threads.is_empty() && nesting.opaque.calls.by_id.is_empty());
        assert!(nesting.operations.by_id.is_empty() && !nesting.overflow());
    }

    fn without_asks(around: Enclosing) -> Enclosing {
        Enclosing { asks: None, ..around }
    }

    /// Which of these spans count as asked for, and with a call of which layer.
    fn asking(spans: &[Span]) -> Vec<Option<Layer>> {
        let mut nesting = Nesting::default();
        spans.iter().map(|span| nesting.of(span).asks).collect()
    }

    #[test]
    fn where_the_bytes_of_a_call_are_not_known_those_below_count() {
        use Kind::{Other, Read, Write};
        use Layer::{App, Hdf5, Mpiio, Syscall};
        let sized = |span: Span| Span { req_bytes: Some(8), ..span };
        let calls = [
            sized(span(1, None, Hdf5, Write)),
            sized(span(2, Some(1), Syscall, Write)),
            span(3, None, Hdf5, Write),
            span(4, Some(3), App, Other),
            span(5, Some(4), Mpiio, Write),
            sized(span(6, Some(5), Syscall, Write)),
            sized(span(7, Some(6), Syscall, Read)),
            Span { op: "io_submit", ..span(8, None, Syscall, Other) },
            span(9, None, Syscall, Other),
            Span { flags: flag::ASYNC, ..sized(span(10, Some(8), Syscall, Read)) },
        ];
        let expected = [Some(Hdf5), None, Some(Hdf5), None, None, Some(Hdf5), None, None, None, Some(Syscall)];
        assert_eq!(asking(&calls), expected);
        // A failed one moved nothing, and nothing below is asked.
        let failed = [Span { errno: -1, ..span(1, None, Hdf5, Write) }, sized(span(2, Some(1), Syscall, Write))];
        assert_eq!(asking(&failed), [Some(Hdf5), None]);
    }

    #[test]
    fn of_a_call_that_copies_its_half_that_reads_counts_too() {
        use Kind::{Read, Write};
        let copy = Span { op: "copy_file_range", bytes: Some(8), ..span(1, None, Layer::Syscall, Write) };
        let half = Span { op: "copy_file_range.read", bytes: Some(8), ..span(2, Some(1), Layer::Syscall, Read) };
        assert_eq!(asking(&[copy, half]), [Some(Layer::Syscall); 2]);
    }

    #[test]
    fn a_second_pass_knows_operations_before_what_other_threads_do_for_them() {
        let operation = Span { flags: flag::ASYNC, ..span(1, None, Layer::Mpiio, Kind::Write) };
        let parent_id = Some(operation.span_id);
        let part =
            Span { span_id: span_id(2, 1), parent_id, bytes: Some(8), ..span(0, None, Layer::Syscall, Kind::Write) };
        let mut first = Nesting::default();
        assert_eq!((first.of(&part).asks, first.of(&operation).asks), (Some(Layer::Syscall), Some(Layer::Mpiio)));
        assert!(first.early);
        assert_eq!(first.again().of(&part).asks, Some(Layer::Mpiio));
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
        let around = |call: Option<(u32, Layer)>, phase: Option<u32>, in_app| Enclosing {
            call: call.map(|(seq, layer)| (id(seq), layer)),
            phase: phase.map(id),
            in_app,
            asks: None,
        };
        let expected = [
            around(Some((3, Hdf5)), Some(2), false),
            around(Some((3, Hdf5)), Some(2), false),
            around(Some((3, Hdf5)), Some(2), false),
            around(Some((3, Hdf5)), Some(5), false),
            around(Some((3, Hdf5)), Some(5), true),
            around(Some((3, Hdf5)), Some(2), false),
            around(Some((9, Stdio)), Some(1), false),
            around(Some((10, Stdio)), None, false),
        ];
        let [outer, inner] = [around(None, None, false), around(None, Some(1), false)];
        for phases_at in 0..=calls.len() {
            let mut nesting = Nesting::default();
            let mut found = Vec::new();
            for (n, call) in calls.iter().enumerate() {
                if n == phases_at {
                    assert_eq!(phases.each_ref().map(|p| without_asks(nesting.of(p))), [outer, inner]);
                }
                found.push(without_asks(nesting.of(call)));
            }
            assert_eq!(found, expected, "phases at {phases_at}");
        }
    }
}
