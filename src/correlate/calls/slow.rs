//! Stacks of slow calls: a stack is taken while a call is open, its frames get their names later, and only when the call ends
//! it is known whether it was slow.

use crate::HashMap;
use crate::rows::{Row, Span, Stack};
use crate::vocabulary::Layer;
use std::collections::BTreeMap;

/// Stacks of calls that have not ended, at most. Of some no end is ever seen: calls that were lost, or only summed up.
const OPEN: usize = 1 << 14;

/// A stack that was taken.
struct Taken {
    frames: Option<Vec<String>>,
    /// The calls in which it was taken.
    calls: Vec<i64>,
    /// How many of them have not ended.
    open: usize,
    /// A slow call has it.
    used: bool,
}

#[derive(Default)]
pub struct SlowStacks {
    /// From how many ns on the calls of a layer, or of all, are slow.
    limits: Vec<(Option<Layer>, i64)>,
    /// Open calls with a stack, by `span_id`.
    calls: HashMap<i64, i32>,
    stacks: BTreeMap<i32, Taken>,
}

impl SlowStacks {
    pub fn new(limits: Vec<(Option<Layer>, i64)>) -> Self {
        Self { limits, ..Self::default() }
    }

    /// A stack was taken in these calls.
    pub fn taken(&mut self, stack_id: i32, calls: &[i64]) {
        self.calls.extend(calls.iter().map(|id| (*id, stack_id)));
        let taken = Taken { frames: None, calls: calls.to_vec(), open: calls.len(), used: false };
        self.stacks.insert(stack_id, taken);
        if self.stacks.len() > OPEN
            && let Some((_, oldest)) = self.stacks.pop_first()
        {
            for id in &oldest.calls {
                self.calls.remove(id);
            }
        }
    }

    /// The frames of a stack have their names.
    pub fn named(&mut self, stack_id: i32, frames: Vec<String>, out: &mut Vec<Row>) {
        let Some(taken) = self.stacks.get_mut(&stack_id) else { return };
        if taken.used {
            out.push(Row::Stack(Stack { stack_id, frames: frames.clone() }));
        }
        taken.frames = Some(frames);
        if taken.open == 0 {
            self.stacks.remove(&stack_id);
        }
    }

    /// A call has ended: it gets its stack, if it was slow.
    pub fn ended(&mut self, span: &mut Span, out: &mut Vec<Row>) {
        if self.calls.is_empty() {
            return;
        }
        let Some(stack_id) = self.calls.remove(&span.span_id) else { return };
        let Some(taken) = self.stacks.get_mut(&stack_id) else { return };
        taken.open -= 1;
        let of = |layer: &Option<Layer>| layer.is_none_or(|layer| layer == span.layer);
        if self.limits.iter().any(|(layer, limit)| of(layer) && span.dur_ns >= *limit) {
            span.stack_id = Some(stack_id);
            taken.used = true;
            // Again for each call: it may be in another dataset than the one before.
            let frames = taken.frames.clone();
            out.extend(frames.map(|frames| Row::Stack(Stack { stack_id, frames })));
        }
        if taken.open == 0 && taken.frames.is_some() {
            self.stacks.remove(&stack_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::dataset::tests::span;

    fn ended(stacks: &mut SlowStacks, span_id: i64, dur_ns: i64, out: &mut Vec<Row>) -> Option<i32> {
        let mut span = Span { span_id, dur_ns, layer: Layer::Syscall, ..span(0, 0, 0) };
        stacks.ended(&mut span, out);
        span.stack_id
    }

    fn written(out: &[Row]) -> Vec<(i32, &str)> {
        let stack = |row| {
            if let &Row::Stack(Stack { stack_id, ref frames }) = row {
                Some((stack_id, frames[0].as_str()))
            } else {
                None
            }
        };
        out.iter().filter_map(stack).collect()
    }

    #[test]
    fn slow_calls_get_their_stack_whenever_its_names_come() {
        let mut stacks = SlowStacks::new(vec![(None, 10)]);
        let mut out = Vec::new();
        // The inner call is over before the names come, the outer one after that.
        stacks.taken(1, &[7, 8]);
        assert_eq!(ended(&mut stacks, 8, 10, &mut out), Some(1));
        assert_eq!(written(&out), []);
        stacks.named(1, vec!["main".to_owned()], &mut out);
        assert_eq!(written(&out), [(1, "main")]);
        assert_eq!(ended(&mut stacks, 7, 12, &mut out), Some(1));
        assert_eq!(written(&out), [(1, "main"), (1, "main")]);
        assert!(stacks.stacks.is_empty() && stacks.calls.is_empty());
    }

    #[test]
    fn calls_whose_end_is_never_seen_are_forgotten() {
        let mut stacks = SlowStacks::new(vec![(None, 10)]);
        for n in 0..=OPEN as i32 {
            stacks.taken(n, &[i64::from(n)]);
            stacks.named(n, Vec::new(), &mut Vec::new());
        }
        assert_eq!((stacks.stacks.len(), stacks.calls.len()), (OPEN, OPEN));
        let mut out = Vec::new();
        assert_eq!(ended(&mut stacks, 0, 10, &mut out), None);
        assert_eq!(ended(&mut stacks, 1, 10, &mut out), Some(1));
    }

    #[test]
    fn calls_that_were_not_slow_in_the_end_leave_nothing() {
        let mut stacks = SlowStacks::new(vec![(None, 10), (Some(Layer::Hdf5), 5)]);
        let mut out = Vec::new();
        stacks.taken(1, &[7]);
        assert_eq!(ended(&mut stacks, 7, 9, &mut out), None);
        stacks.named(1, vec!["main".to_owned()], &mut out);
        stacks.named(2, vec!["unknown".to_owned()], &mut out);
        assert_eq!(ended(&mut stacks, 9, 100, &mut out), None);
        assert_eq!(written(&out), []);
        assert!(stacks.stacks.is_empty() && stacks.calls.is_empty());
    }
}
