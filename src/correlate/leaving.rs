//! Calls that wait on a thread until nothing can enclose them any more, and how they are written then.

use super::Correlator;
use crate::catalog::{self, Role};
use crate::correlate::aggregate::rollup::Rollups;
use crate::correlate::aggregate::sums::Sums;
use crate::correlate::calls::asynchronous::Done;
use crate::correlate::calls::cover::Cover;
use crate::correlate::calls::operations::Over;
use crate::correlate::calls::stack::{Above, Node, Tree};
use crate::correlate::resources::processes::ThreadState;
use crate::event::Enter;
use crate::rows::{self, Row, span_id};
use crate::vocabulary::{Layer, flag};

impl Correlator {
    /// A phase began. Where only phases enclose it, what runs inside it need not wait for its end.
    pub(super) fn enter(&mut self, enter: Enter, out: &mut Vec<Row>) {
        let Some((row, _)) = self.row_of(enter.spec).filter(|(row, _)| self.specs[*row].is_phase()) else {
            self.losses.add("spec_unknown", None, 1);
            return;
        };
        let enter = Enter { spec: row as u16, ..enter };
        self.close_phases(enter.thread, enter.seq, enter.depth, out);
        let start_ns = self.since_t0(enter.start);
        let thread = self.processes.threads.entry(enter.thread).or_insert_with(|| ThreadState::unknown(enter.thread));
        if usize::from(enter.depth) != thread.phases.len() {
            return;
        }
        // No call is open that could adopt what waits.
        self.settle(enter.thread, 0, out);
        if let Some(thread) = self.processes.threads.get_mut(&enter.thread) {
            thread.phases.enter(enter, start_ns);
            if enter.depth == 0 {
                self.blocks.phase_begins(enter.thread, enter.seq);
            }
        }
    }

    /// Ends the phases that are over now that a call of this number and depth is seen. Their returns were not: they were
    /// left by a jump.
    pub(super) fn close_phases(&mut self, thread: u32, seq: u32, depth: u8, out: &mut Vec<Row>) {
        let Some(phases) = self.processes.threads.get(&thread).map(|t| &t.phases).filter(|p| p.len() > 0) else {
            return;
        };
        let (ends, around) = (phases.contains(seq), phases.around(seq, depth));
        self.abandon(thread, around, None, out);
        if ends {
            self.settle(thread, 0, out);
        }
    }

    /// Writes the phases of a thread from `from` on as calls that never returned. Without an `end`, they ended with the
    /// last call inside them.
    pub(super) fn abandon(&mut self, thread: u32, from: usize, end: Option<i64>, out: &mut Vec<Row>) {
        let open = |s: &Self| s.processes.threads.get(&thread).map_or(0, |t| t.phases.len());
        while open(self) > from {
            self.settle(thread, 0, out);
            let Some(state) = self.processes.threads.get(&thread) else { return };
            let Some(open) = state.phases.innermost().copied() else { return };
            let Some(row) = self.specs.get(usize::from(open.enter.spec)) else { return };
            let dur_ns = end.unwrap_or(open.end_ns).saturating_sub(open.start_ns).max(0);
            let id = span_id(thread, open.enter.seq);
            let mut span = state.span(row, id, open.enter.cpu, (open.start_ns, dur_ns));
            span.file_id = open.file();
            span.flags |= row.flags | flag::UNFINISHED;
            let (seq, spec, depth) = (open.enter.seq, open.enter.spec, open.enter.depth);
            let span = Box::new(span);
            // It did not end: what ran inside it may be wanted.
            let node = Node { wanted: true, ..Node::new(span, (seq, spec, depth)) };
            self.leave_phase(thread, node, out);
        }
    }

    /// Writes the innermost phase of a thread; what was inside it is written.
    pub(super) fn leave_phase(&mut self, thread: u32, mut node: Node, out: &mut Vec<Row>) {
        let Some(state) = self.processes.threads.get_mut(&thread) else { return };
        let (tree, fits) = state.phases.leave(&mut node.span);
        if !fits {
            self.losses.add("overlap", Some(node.span.layer), 1);
        }
        let complete = state.phases.len() == 0;
        self.leaving.push((node, tree));
        self.leave(complete, out);
    }

    /// Writes the calls that wait on a thread, below its phases: nothing else can adopt them any more. The trees before
    /// `from` did not end inside the last one.
    pub(super) fn settle(&mut self, thread: u32, from: usize, out: &mut Vec<Row>) {
        let Some(ThreadState { stack, phases, .. }) = self.processes.threads.get_mut(&thread) else { return };
        self.waiting -= stack.len();
        let above = phases.above();
        let each = &mut |node: Node, tree: Tree| {
            if !idle(&self.specs[usize::from(node.spec)], &node, &tree) {
                phases.hold(&node, &tree);
            }
            self.leaving.push((node, tree));
        };
        stack.take_before(from, above, each);
        stack.take(above, each);
        let complete = phases.len() == 0;
        self.leave(complete, out);
    }

    /// Nothing more comes from this thread.
    pub(super) fn end(&mut self, thread: u32, t_ns: i64, out: &mut Vec<Row>) {
        self.abandon(thread, 0, Some(t_ns), out);
        self.flush(thread, out);
    }

    /// Writes the calls of the thread that keeps most waiting, with the parents known by now.
    pub(super) fn relieve(&mut self, out: &mut Vec<Row>) {
        let fullest = self.processes.threads.iter().map(|(thread, t)| (t.stack.len(), *thread)).max();
        if let Some((count, thread)) = fullest {
            self.losses.add("pending", None, count);
            self.flush(thread, out);
        }
    }

    pub(super) fn flush(&mut self, thread: u32, out: &mut Vec<Row>) {
        if let Some(state) = self.processes.threads.get_mut(&thread) {
            self.waiting -= state.stack.len();
            state.stack.take(Above::default(), &mut |node, tree| self.leaving.push((node, tree)));
            self.leave(false, out);
        }
    }

    /// Writes the spans of completed trees, and the rows they refer to: a call before the calls inside it, in the order in
    /// which they began.
    ///
    /// `complete`: no call of the thread that began before their end is still open.
    pub(super) fn leave(&mut self, complete: bool, out: &mut Vec<Row>) {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.sort_unstable_by_key(|(node, _)| node.span.span_id);
        for (node, tree) in leaving.drain(..) {
            let thread = (node.span.span_id >> rows::SEQ_BITS) as u32;
            let row = &self.specs[usize::from(node.spec)];
            self.operations.release((thread, node.seq), &node.span, node.wanted, &mut self.over);
            let (root, outermost) = (node.seq == tree.root, node.span.parent_id.is_none());
            if idle(row, &node, &tree) {
                if outermost {
                    self.blocks.tree(thread, tree, complete, out);
                }
                continue;
            }
            let Node { mut span, spec, inner, wanted, .. } = node;
            if let Some(inner) = inner {
                span.self_ns = span.net_ns().saturating_sub(inner).max(0);
            }
            if span.process_ix < 0 && !self.processes.learnt(thread, &mut span) {
                self.losses.add("thread_unknown", Some(span.layer), 1);
            }
            self.resources.complete(&mut span, row.role() == Role::Close);
            if complete && root && span.layer == Layer::Syscall && self.asynchronous.awaits_help() {
                let owner = self.processes.threads.get(&thread).map(|t| t.owner);
                let fd = span.handle_id.and_then(|id| self.resources.handles.row(id)).map(|h| h.raw);
                if let Some(owner) = owner {
                    match self.asynchronous.helped(
                        Done { span, spec, wanted, tree: Some(tree) },
                        owner,
                        fd,
                        &mut self.written,
                    ) {
                        Some(other) => span = other.span,
                        None => continue,
                    }
                }
            }
            if outermost {
                self.blocks.tree(thread, tree, complete, out);
            }
            if span.flags & flag::ASYNC != 0 {
                self.asynchronous.submitted(Done { span, spec, wanted, tree: None }, &mut self.written);
                continue;
            }
            self.slow.ended(&mut span, out);
            put(&mut self.rollups, self.sums.as_mut(), &mut self.cover, self.t0, Over { span, spec, wanted }, out);
        }
        self.leaving = leaving;
        self.write(out);
        self.resources.write(out);
    }

    /// Writes spans whose operations are complete.
    pub(super) fn write(&mut self, out: &mut Vec<Row>) {
        for Over { mut span, spec, wanted } in self.over.drain(..) {
            self.resources.complete(&mut span, self.specs[usize::from(spec)].role() == Role::Close);
            self.slow.ended(&mut span, out);
            put(&mut self.rollups, self.sums.as_mut(), &mut self.cover, self.t0, Over { span, spec, wanted }, out);
        }
        for Done { mut span, spec, wanted, tree } in self.written.drain(..) {
            if let Some(tree) = tree {
                let tree = Tree { id: span.root_id, ..tree };
                self.blocks.tree((span.span_id >> rows::SEQ_BITS) as u32, tree, true, out);
            }
            self.slow.ended(&mut span, out);
            put(&mut self.rollups, self.sums.as_mut(), &mut self.cover, self.t0, Over { span, spec, wanted }, out);
        }
    }
}

/// A call is over: it is written, or summed up, or both.
fn put(
    rollups: &mut Rollups,
    sums: Option<&mut Sums>,
    cover: &mut Cover,
    t0: u64,
    Over { mut span, spec, wanted }: Over,
    out: &mut Vec<Row>,
) {
    let wanted = wanted || sums.is_none();
    cover.add(&mut span);
    if span.flags & flag::SUMMED == 0 {
        rollups.add(&span, spec);
        if let Some(sums) = sums {
            sums.span(&span, t0);
            span.flags |= flag::SUMMED;
        }
    }
    if wanted {
        out.push(Row::Span(span));
    }
}

/// Did a call wait for something that only had the name of one of our requests?
fn idle(row: &catalog::Row, node: &Node, tree: &Tree) -> bool {
    row.inside && !node.inside && node.span.async_id.is_none() && node.seq == tree.root && node.size == 1
}
