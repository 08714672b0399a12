//! Time of asynchronous operations that overlap, and of calls meanwhile: what each adds to the inclusive time of its
//! layer.
//!
//! A thread that has ten operations of a second each on their way at once has spent a second in their layer, not ten.

use std::collections::BTreeMap;

use crate::HashMap;
use crate::rows::{SEQ_BITS, Span};
use crate::vocabulary::{Layer, flag};

/// Times that do not touch are remembered of a thread and layer; the oldest go first.
const MAX_TIMES: usize = 1 << 14;

/// When threads that submit operations were in a call, or had an operation on its way, by layer.
#[derive(Default)]
pub struct Cover(HashMap<(u32, Layer), BTreeMap<i64, i64>>);

impl Cover {
    /// A call submits an operation: from now on calls of its thread and layer may overlap with it.
    pub fn begins(&mut self, thread: u32, layer: Layer) {
        self.0.entry((thread, layer)).or_default();
    }

    /// A thread is gone.
    pub fn ends(&mut self, thread: u32) {
        if !self.0.is_empty() {
            self.0.retain(|(of, _), _| *of != thread);
        }
    }

    /// Sets what a span adds to its layer, where that is less than it took.
    pub fn add(&mut self, span: &mut Span) {
        let submits = span.flags & flag::ASYNC != 0;
        if !span.layer_top || (self.0.is_empty() && !submits) {
            return;
        }
        let key = ((span.span_id >> SEQ_BITS) as u32, span.layer);
        if submits {
            self.begins(key.0, key.1);
        }
        let Some(times) = self.0.get_mut(&key) else { return };
        let new = insert(times, span.start_ns, span.end_ns());
        if new < span.dur_ns {
            span.layer_ns = Some(new.min(span.net_ns()));
        }
        if times.len() > MAX_TIMES {
            times.pop_first();
        }
    }
}

/// Adds a time to others that are apart from each other; returns how much of it none of them had.
fn insert(times: &mut BTreeMap<i64, i64>, from: i64, to: i64) -> i64 {
    let (mut first, mut last, mut had) = (from, to, 0);
    while let Some((start, end)) = times.range(..=to).next_back().map(|(start, end)| (*start, *end)) {
        if end < from {
            break;
        }
        times.remove(&start);
        had += end.min(to) - start.max(from);
        (first, last) = (first.min(start), last.max(end));
    }
    times.insert(first, last);
    to.saturating_sub(from).saturating_sub(had)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::span_id;
    use crate::vocabulary::Kind;
    use proptest::prelude::*;

    fn span(thread: u32, flags: i32, [from, to]: [i64; 2]) -> Span {
        let op = (Layer::Mpiio, "MPI_File_iwrite", Kind::Write);
        Span { flags, ..Span::new(span_id(thread, 1), op, 0, (from, to - from)) }
    }

    fn adds(cover: &mut Cover, mut span: Span) -> i64 {
        cover.add(&mut span);
        span.inclusive_ns()
    }

    #[test]
    fn operations_at_once_are_not_added() {
        let mut cover = Cover::default();
        cover.begins(1, Layer::Mpiio);
        // A call that returns while they are on their way, then both, then the call that waited for them.
        assert_eq!(adds(&mut cover, span(1, 0, [10, 20])), 10);
        assert_eq!(adds(&mut cover, span(1, flag::ASYNC, [0, 100])), 90);
        assert_eq!(adds(&mut cover, span(1, flag::ASYNC, [5, 120])), 20);
        assert_eq!(adds(&mut cover, span(1, 0, [110, 130])), 10);
        assert_eq!(adds(&mut cover, span(1, 0, [130, 140])), 10);
        // Of other threads, and of calls inside others of their layer, nothing is known.
        assert_eq!(adds(&mut cover, span(2, 0, [0, 100])), 100);
        assert_eq!(adds(&mut cover, Span { layer_top: false, ..span(1, 0, [0, 100]) }), 100);
        cover.ends(1);
        assert_eq!(adds(&mut cover, span(1, 0, [0, 100])), 100);
    }

    #[test]
    fn what_hooks_took_does_not_count() {
        let mut cover = Cover::default();
        let op = |times| Span { probe_ns: Some(30), ..span(1, flag::ASYNC, times) };
        assert_eq!((adds(&mut cover, op([0, 100])), adds(&mut cover, op([80, 200]))), (70, 90));
    }

    proptest! {
        #[test]
        fn all_together_are_the_union(times in prop::collection::vec((0..200i64, 0..60i64), 1..40)) {
            let mut cover = Cover::default();
            let operations = times.iter().map(|(from, dur)| span(1, flag::ASYNC, [*from, from + dur]));
            let sum: i64 = operations.map(|operation| adds(&mut cover, operation)).sum();
            let busy = (0..300).filter(|t| times.iter().any(|(from, dur)| (*from..from + dur).contains(t))).count();
            prop_assert_eq!(sum, busy as i64);
        }
    }
}
