//! What is known of the files and handles of calls.

use std::collections::BTreeMap;

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::analysis::findings::groups::same::{Same, is_data};
use crate::rows::{File, Handle, Span};
use crate::vocabulary::{Kind, Layer};

/// What calls do not show themselves.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Handles with `O_SYNC` or `O_DSYNC`.
    pub synced: RoaringBitmap,
    /// Files of overlays.
    pub overlay: RoaringBitmap,
    /// Handles with `O_CREAT`.
    pub creating: RoaringBitmap,
    /// The calls that opened them: the last ones, and those before.
    creators: [RoaringTreemap; 2],
    /// Handles with `O_APPEND`: the kernel gives each write its place.
    pub appending: RoaringBitmap,
    /// Files that are no data: standard streams, devices, those of /proc, libraries.
    pub special: RoaringBitmap,
    /// Files by the bytes of each on one target of a parallel file system before the next.
    pub stripes: BTreeMap<i64, RoaringBitmap>,
    /// Files that are one.
    pub same: Same,
}

/// `O_DSYNC`, which is part of `O_SYNC`.
const O_DSYNC: i32 = 0o10_000;
const O_CREAT: i32 = 0o100;
const O_APPEND: i32 = 0o2000;
/// Calls that opened files which a trace that goes on remembers, at least.
const CREATORS: u64 = 1 << 14;
/// What file systems keep together: pages, and their own blocks.
const BLOCK: i64 = 4096;

impl Known {
    pub fn handle(&mut self, handle: &Handle) {
        let has = |flag: i32| handle.layer == Layer::Syscall && handle.mode.is_some_and(|mode| mode & flag != 0);
        if has(O_DSYNC) {
            self.synced.insert(handle.handle_id as u32);
        }
        if has(O_APPEND) {
            self.appending.insert(handle.handle_id as u32);
        }
        if has(O_CREAT) {
            self.creating.insert(handle.handle_id as u32);
            self.creators[0].extend(handle.open_span_id.map(|id| id as u64));
        }
    }

    /// Forgets calls that opened files before many others did: their spans have come.
    pub fn forget_creators(&mut self) {
        if self.creators[0].len() >= CREATORS {
            self.creators[1] = std::mem::take(&mut self.creators[0]);
        }
    }

    pub fn file(&mut self, file: &File) {
        if file.fstype.as_deref() == Some("overlay") {
            self.overlay.insert(file.file_id as u32);
        }
        self.same.file(file);
        if !is_data(file) {
            self.special.insert(file.file_id as u32);
        }
        if let Some(size) = file.stripe_size.filter(|size| *size > 0) {
            self.stripes.entry(size).or_default().insert(file.file_id as u32);
        }
    }

    /// Does a call open a file with `O_CREAT`, or close one that was opened so?
    pub fn creates(&self, span: &Span) -> bool {
        match span.kind {
            Kind::Open => self.creators.iter().any(|calls| calls.contains(span.span_id as u64)),
            Kind::Close => span.handle_id.is_some_and(|id| self.creating.contains(id as u32)),
            _ => false,
        }
    }

    /// Does a call choose the place of its data in a file itself?
    pub fn places(&self, span: &Span) -> bool {
        let appends = span.handle_id.is_some_and(|id| self.appending.contains(id as u32));
        let special = span.file_id.is_some_and(|id| self.special.contains(id as u32));
        !appends && !special
    }

    /// The stripe size of a file that is spread over targets.
    pub fn stripe(&self, file: i32) -> Option<i64> {
        self.stripes.iter().find(|(_, files)| files.contains(file as u32)).map(|(size, _)| *size)
    }

    /// What of a file is kept together: a stripe, or a block.
    pub fn block(&self, file: Option<i32>) -> i64 {
        file.and_then(|file| self.stripe(file)).unwrap_or(BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::findings::tests::made;
    use crate::rows::span_id;

    #[test]
    fn the_last_calls_that_made_files_are_known_and_those_long_before_are_not() {
        const TIMES: u32 = 5;
        const SPLIT: u32 = 1000;
        let mut known = Known::default();
        let opening = |thread: u32| Span::new(span_id(thread, 1), (Layer::Syscall, "openat", Kind::Open), 1, (0, 1));
        for thread in 0..TIMES * CREATORS as u32 {
            let open_span_id = Some(opening(thread).span_id);
            known.handle(&Handle { mode: Some(O_CREAT), open_span_id, ..made::handle(1) });
            if thread % SPLIT > 0 {
                continue;
            }
            known.forget_creators();
            let oldest = thread.saturating_sub(CREATORS as u32 - 1);
            assert!([oldest, thread].iter().all(|thread| known.creates(&opening(*thread))));
        }
        assert!(
            known.creators.iter().all(|calls| calls.len() < CREATORS + u64::from(SPLIT)) && !known.creates(&opening(0))
        );
    }
}
