//! Operations that the kernel carries out after the call that submitted them (`io_uring`, libaio): spans of their own below
//! that call, wherever and whenever they are over.

use std::collections::HashMap;

use super::rows::Span;
use crate::words::flag;

/// A span, and its row of the catalog.
pub type Over = (Span, u16);

/// Operations that are over while the call that submitted them, or one around it, is still open.
#[derive(Default)]
pub struct Operations {
    /// By thread and number of the submitting call.
    held: HashMap<(u32, u32), Vec<Over>>,
    count: usize,
    /// The first operation that a call found complete.
    found: HashMap<(u32, u32), i64>,
}

/// Held at most: each takes about 0.4 kB.
const MAX_HELD: usize = 1 << 20;

impl Operations {
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
    pub fn release(&mut self, by: (u32, u32), parent: &Span, out: &mut Vec<Over>) {
        if self.count == 0 {
            return;
        }
        for (mut span, spec) in self.held.remove(&by).unwrap_or_default() {
            self.count -= 1;
            below(&mut span, parent.span_id, parent.root_id);
            out.push((span, spec));
        }
    }

    /// The calls of these threads that are not written now will not be.
    pub fn gone(&mut self, of: impl Fn(u32) -> bool, out: &mut Vec<Over>) {
        self.found.retain(|by, _| !of(by.0));
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
fn orphan((mut span, spec): Over) -> Over {
    span.flags |= flag::INFERRED_PARENT;
    span.depth = 0;
    (span, spec)
}
