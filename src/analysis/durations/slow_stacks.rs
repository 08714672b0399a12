//! Where slow calls were made: the stacks that were taken in them, those with the most time first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::Source;
use crate::rows::Span;
use crate::vocabulary::Layer;

/// Rows in the report.
const TOP: usize = 20;

/// The slow calls of one function from one stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StackRow {
    pub layer: &'static str,
    pub op: &'static str,
    pub calls: i64,
    pub time_ns: i64,
    /// The innermost first: those of the kernel, then those of the program.
    pub frames: Vec<String>,
    /// False: calls were lost.
    pub complete: bool,
}

/// The innermost call in which a stack was taken.
struct Innermost {
    /// Of several that are equally deep the first.
    rank: (i8, Reverse<i64>),
    layer: Layer,
    op: &'static str,
    time: i64,
}

/// Sums up by stack.
#[derive(Default)]
pub struct Stacks {
    calls: HashMap<i32, Innermost>,
}

impl Stacks {
    pub fn span(&mut self, span: &Span) {
        let Some(id) = span.stack_id else { return };
        let call = Innermost {
            rank: (span.depth, Reverse(span.span_id)),
            layer: span.layer,
            op: span.op,
            time: span.net_ns(),
        };
        match self.calls.get_mut(&id) {
            // Calls around it have the same stack: the time is counted once.
            Some(known) if known.rank >= call.rank => {}
            Some(known) => *known = call,
            None => drop(self.calls.insert(id, call)),
        }
    }

    pub fn finish(self, source: &mut dyn Source, quality: &Quality) -> Result<Vec<StackRow>> {
        if self.calls.is_empty() {
            return Ok(Vec::new());
        }
        // Many stacks are the same: each is kept once. Of several rows with one id the last holds.
        let mut numbers = HashMap::<Vec<String>, usize>::default();
        let mut frames = HashMap::<i32, usize>::default();
        source.stacks(&mut |stack| {
            if self.calls.contains_key(&stack.stack_id) {
                let next = numbers.len();
                let number = *numbers.entry(stack.frames.clone()).or_insert(next);
                frames.insert(stack.stack_id, number);
            }
            Ok(())
        })?;
        let mut stacks: Vec<Vec<String>> = vec![Vec::new(); numbers.len()];
        for (frames, number) in numbers {
            stacks[number] = frames;
        }
        let mut rows = BTreeMap::<(Layer, &str, &[String]), (i64, i64)>::new();
        for (id, number) in frames {
            let call = &self.calls[&id];
            let (calls, time) = rows.entry((call.layer, call.op, &stacks[number])).or_default();
            (*calls, *time) = (*calls + 1, time.saturating_add(call.time));
        }
        let row = |((layer, op, frames), (calls, time_ns)): ((Layer, _, &[String]), (_, _))| StackRow {
            layer: layer.name(),
            op,
            calls,
            time_ns,
            frames: frames.to_vec(),
            complete: quality.complete(layer),
        };
        let mut rows: Vec<StackRow> = rows.into_iter().map(row).collect();
        rows.sort_by_key(|row| Reverse(row.time_ns));
        rows.truncate(TOP);
        Ok(rows)
    }
}
