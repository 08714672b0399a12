//! Ids of several datasets in one range: those of each run begin where those of the run before it end.

use crate::analysis::trace::source::IdKind;
use crate::rows::{
    Block, BlockBytes, BlockLink, CallPath, File, FileRollup, Handle, Hist, Loss, Mount, Object, Process, Rollup,
    SEQ_BITS, Span, Stack, Thread,
};

/// What the ids of one run begin with, by the number of their kind. Spans: of a thread.
pub struct Ids<'a>(pub &'a [i64; 9]);

impl Ids<'_> {
    fn of(&self, kind: IdKind, id: &mut i32) {
        // Below zero: not known.
        if *id >= 0 {
            *id = i32::try_from(i64::from(*id).saturating_add(self.0[kind as usize])).unwrap_or(i32::MAX);
        }
    }

    fn some(&self, kind: IdKind, id: &mut Option<i32>) {
        if let Some(id) = id {
            self.of(kind, id);
        }
    }

    fn request(&self, id: &mut i64) {
        *id = id.saturating_add(self.0[IdKind::Request as usize]);
    }

    fn span(&self, id: &mut i64) {
        *id = id.saturating_add(self.0[IdKind::Span as usize] << SEQ_BITS);
    }
}

/// A row with ids.
pub trait Renumber {
    /// Makes its ids those of all datasets.
    fn renumber(&mut self, ids: &Ids);
}

impl Renumber for Span {
    fn renumber(&mut self, ids: &Ids) {
        ids.span(&mut self.span_id);
        ids.span(&mut self.root_id);
        self.parent_id.iter_mut().chain(&mut self.async_id).for_each(|id| ids.span(id));
        ids.of(IdKind::Process, &mut self.process_ix);
        ids.some(IdKind::File, &mut self.file_id);
        ids.some(IdKind::Handle, &mut self.handle_id);
        ids.some(IdKind::Object, &mut self.object_id);
        ids.some(IdKind::Path, &mut self.path_id);
        ids.some(IdKind::Path, &mut self.path2_id);
        ids.some(IdKind::Stack, &mut self.stack_id);
    }
}

impl Renumber for Block {
    fn renumber(&mut self, ids: &Ids) {
        ids.request(&mut self.req_id);
    }
}

impl Renumber for BlockLink {
    fn renumber(&mut self, ids: &Ids) {
        ids.request(&mut self.req_id);
        ids.span(&mut self.span_id);
        ids.span(&mut self.root_id);
    }
}

impl Renumber for BlockBytes {
    fn renumber(&mut self, ids: &Ids) {
        ids.request(&mut self.req_id);
        ids.some(IdKind::Process, &mut self.process_ix);
        ids.some(IdKind::File, &mut self.file_id);
        self.span_id.iter_mut().for_each(|id| ids.span(id));
    }
}

impl Renumber for File {
    fn renumber(&mut self, ids: &Ids) {
        ids.of(IdKind::File, &mut self.file_id);
        ids.some(IdKind::Mount, &mut self.mount_id);
    }
}

impl Renumber for CallPath {
    fn renumber(&mut self, ids: &Ids) {
        ids.of(IdKind::Path, &mut self.path_id);
    }
}

impl Renumber for Stack {
    fn renumber(&mut self, ids: &Ids) {
        ids.of(IdKind::Stack, &mut self.stack_id);
    }
}

impl Renumber for Handle {
    fn renumber(&mut self, ids: &Ids) {
        ids.of(IdKind::Handle, &mut self.handle_id);
        ids.some(IdKind::Handle, &mut self.parent_handle_id);
        ids.some(IdKind::File, &mut self.file_id);
        ids.some(IdKind::Object, &mut self.object_id);
        ids.of(IdKind::Process, &mut self.process_ix);
        self.open_span_id.iter_mut().chain(&mut self.close_span_id).for_each(|id| ids.span(id));
    }
}

impl Renumber for Object {
    fn renumber(&mut self, ids: &Ids) {
        ids.of(IdKind::Object, &mut self.object_id);
        ids.some(IdKind::Handle, &mut self.handle_id);
        ids.some(IdKind::File, &mut self.file_id);
    }
}

impl Renumber for Process {
    fn renumber(&mut self, ids: &Ids) {
        ids.of(IdKind::Process, &mut self.process_ix);
    }
}

impl Renumber for Thread {
    fn renumber(&mut self, ids: &Ids) {
        // The id of a call holds that of its thread.
        ids.of(IdKind::Span, &mut self.thread_ix);
        ids.of(IdKind::Process, &mut self.process_ix);
    }
}

impl Renumber for Mount {
    fn renumber(&mut self, ids: &Ids) {
        ids.of(IdKind::Mount, &mut self.mount_id);
    }
}

impl Renumber for Rollup {
    fn renumber(&mut self, ids: &Ids) {
        ids.of(IdKind::Process, &mut self.process_ix);
    }
}

impl Renumber for FileRollup {
    fn renumber(&mut self, ids: &Ids) {
        ids.some(IdKind::Process, &mut self.process_ix);
        ids.some(IdKind::File, &mut self.file_id);
        ids.some(IdKind::Object, &mut self.object_id);
    }
}

impl Renumber for Hist {
    fn renumber(&mut self, _: &Ids) {}
}

impl Renumber for Loss {
    fn renumber(&mut self, _: &Ids) {}
}
