//! Phases: calls that may last as long as their thread. What runs inside one is written when it is complete itself,
//! because the kernel side sends a phase when it begins.

use crate::correlate::calls::stack::{Above, Node, Tree};
use crate::event::Enter;
use crate::rows::{Span, span_id};
use crate::vocabulary::Layer;

/// A phase that was entered and has not returned.
#[derive(Debug, Clone, Copy)]
pub struct Open {
    pub enter: Enter,
    pub start_ns: i64,
    id: i64,
    /// Time that the calls right below it take.
    covered_ns: i64,
    /// The same without the tracer's hooks.
    spent_ns: i64,
    /// When the last of them ended.
    pub end_ns: i64,
    /// Highest number inside it.
    last: u32,
    /// The files that system calls inside it name.
    files: Files,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    None,
    One(i32),
    Several,
}

impl Open {
    /// The one file that all system calls inside it name.
    pub fn file(&self) -> Option<i32> {
        if let Files::One(file) = self.files { Some(file) } else { None }
    }

    fn names(&mut self, file: i32) {
        self.files = match self.files {
            Files::None => Files::One(file),
            Files::One(known) if known == file => Files::One(file),
            _ => Files::Several,
        };
    }
}

/// The open phases of a thread, the outermost first: its outermost calls. A phase inside another kind of call is not
/// among them; it is a call like any other.
#[derive(Debug, Default)]
pub struct Phases {
    open: Vec<Open>,
}

impl Phases {
    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn innermost(&self) -> Option<&Open> {
        self.open.last()
    }

    pub fn contains(&self, seq: u32) -> bool {
        self.open.iter().any(|open| open.enter.seq == seq)
    }

    /// How many of them are open while the call with this number and depth is, itself included.
    pub fn around(&self, seq: u32, depth: u8) -> usize {
        if let Some(at) = self.open.iter().position(|open| open.enter.seq == seq) {
            return at + 1;
        }
        match self.open.get(usize::from(depth)) {
            Some(other) if other.enter.seq < seq => usize::from(depth),
            _ => self.open.len(),
        }
    }

    /// Adds the innermost one.
    pub fn enter(&mut self, enter: Enter, start_ns: i64) {
        let id = span_id(enter.thread, enter.seq);
        let (last, files) = (enter.seq, Files::None);
        self.open.push(Open { enter, start_ns, id, covered_ns: 0, spent_ns: 0, end_ns: start_ns, last, files });
    }

    /// What encloses the calls that complete now.
    pub fn above(&self) -> Above {
        Above {
            parent: self.open.last().map(|open| open.id),
            root: self.open.first().map(|open| open.id),
            depth: self.open.len().min(usize::from(u8::MAX)) as u8,
            layers: if self.open.is_empty() { 0 } else { 1 << Layer::App as u16 },
        }
    }

    /// Notes a call that was taken out below what is [above](Self::above).
    pub fn hold(&mut self, node: &Node, tree: &Tree) {
        let Some(open) = self.open.last_mut() else { return };
        let span = &node.span;
        if let (Layer::Syscall, Some(file)) = (span.layer, span.file_id) {
            open.names(file);
        }
        if span.span_id == tree.id {
            open.covered_ns = open.covered_ns.saturating_add(span.dur_ns);
            open.spent_ns = open.spent_ns.saturating_add(span.net_ns());
            open.end_ns = open.end_ns.max(span.start_ns.saturating_add(span.dur_ns));
            open.last = open.last.max(tree.last);
        }
    }

    /// Takes the innermost phase out and completes its span. False when what it encloses takes longer than it does.
    pub fn leave(&mut self, span: &mut Span) -> (Tree, bool) {
        let Some(phase) = self.open.pop() else { return (Tree::default(), true) };
        let above = self.above();
        span.parent_id = above.parent;
        span.root_id = above.root.unwrap_or(phase.id);
        span.depth = above.depth.min(i8::MAX as u8) as i8;
        span.layer_top = above.layers & (1 << span.layer as u16) == 0;
        span.self_ns = span.net_ns().saturating_sub(phase.spent_ns).max(0);
        if let Some(outer) = self.open.last_mut() {
            outer.covered_ns = outer.covered_ns.saturating_add(span.dur_ns);
            outer.spent_ns = outer.spent_ns.saturating_add(span.net_ns());
            outer.end_ns = outer.end_ns.max(span.start_ns.saturating_add(span.dur_ns));
            outer.last = outer.last.max(phase.last);
            outer.files = match (outer.files, phase.files) {
                (files, Files::None) | (Files::None, files) => files,
                (Files::One(a), Files::One(b)) if a == b => Files::One(a),
                _ => Files::Several,
            };
        }
        (Tree { root: phase.enter.seq, last: phase.last, id: phase.id }, phase.covered_ns <= span.dur_ns)
    }
}
