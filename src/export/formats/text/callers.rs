//! The names of the calls around a call, in the order of time: a call comes before those inside it.

use std::collections::VecDeque;

use crate::HashMap;
use crate::rows::{SEQ_BITS, Span};
use crate::vocabulary::flag;

/// Asynchronous operations whose names are remembered for what other threads do for them, the last ones.
const OPERATIONS_MAX: usize = 1 << 16;

/// Memory grows with the number of threads and of calls inside each other.
#[derive(Default)]
pub struct Callers {
    /// By thread, the outermost first: ids, names, and when they end.
    open: HashMap<i64, Vec<(i64, &'static str, i64)>>,
    operations: HashMap<i64, &'static str>,
    order: VecDeque<i64>,
}

impl Callers {
    /// The next call. Returns the function that it is called from, where that is known.
    pub fn enter(&mut self, span: &Span) -> Option<&'static str> {
        let thread = span.span_id >> SEQ_BITS;
        let parent = span.parent_id.unwrap_or(-1);
        let of_operation = self.operations.get(&parent).copied();
        let of_other = self.name(parent >> SEQ_BITS, parent);
        let calls = self.open.entry(thread).or_default();
        let at = calls.iter().rposition(|(id, ..)| *id == parent);
        let name = at.and_then(|at| calls.get(at)).map(|(_, op, _)| *op);
        if span.flags & flag::ASYNC == 0 {
            match at {
                Some(at) => calls.truncate(at + 1),
                // What is around the operation is still open.
                None if of_operation.is_some() => calls.retain(|(.., end)| *end > span.start_ns),
                None => calls.clear(),
            }
            calls.push((span.span_id, span.op, span.end_ns()));
        } else if self.operations.insert(span.span_id, span.op).is_none() {
            // Its thread goes on with other calls meanwhile.
            self.order.push_back(span.span_id);
            if self.order.len() > OPERATIONS_MAX
                && let Some(old) = self.order.pop_front()
            {
                self.operations.remove(&old);
            }
        }
        name.or(of_operation).or(of_other)
    }

    fn name(&self, thread: i64, id: i64) -> Option<&'static str> {
        self.open.get(&thread)?.iter().rfind(|(open, ..)| *open == id).map(|(_, op, _)| *op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::span_id;
    use crate::vocabulary::{Kind, Layer};

    fn span(thread: u32, seq: u32, parent_id: Option<i64>, op: &'static str) -> Span {
        Span { parent_id, ..Span::new(span_id(thread, seq), (Layer::Syscall, op, Kind::Other), 0, (0, 1)) }
    }

    #[test]
    fn callers_have_names_on_their_thread_and_on_others() {
        let mut callers = Callers::default();
        let (outer, inner) = (span(1, 1, None, "H5Dwrite"), span(1, 2, Some(span_id(1, 1)), "pwrite64"));
        assert_eq!((callers.enter(&outer), callers.enter(&inner)), (None, Some("H5Dwrite")));
        assert_eq!(callers.enter(&span(1, 3, Some(span_id(1, 1)), "fsync")), Some("H5Dwrite"));
        assert_eq!(callers.enter(&span(2, 1, Some(span_id(1, 3)), "help")), Some("fsync"));
        // An operation outlives the call that submitted it.
        let operation = Span { flags: flag::ASYNC, ..span(1, 4, Some(span_id(1, 1)), "MPI_File_iwrite") };
        assert_eq!(callers.enter(&operation), Some("H5Dwrite"));
        assert_eq!(callers.enter(&span(1, 5, None, "close")), None);
        assert_eq!(callers.enter(&span(3, 1, Some(span_id(1, 4)), "pwrite64")), Some("MPI_File_iwrite"));
        assert_eq!(callers.enter(&span(1, 6, Some(span_id(1, 1)), "late")), None, "that one is over");
    }
}
