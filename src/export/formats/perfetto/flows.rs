//! Arrows between slices, at most one for each call: from what submits an asynchronous operation over the operation to
//! what finds it complete, and from a write to the first request by which its data was written back.

use anyhow::Result;
use roaring::RoaringTreemap;

use crate::export::report::Union;
use crate::rows::{Block, BlockLink, Span};

/// Arrows of each of the two kinds.
const FLOWS_MAX: usize = 1 << 21;

#[derive(Debug, Default)]
pub struct Flows {
    /// Operations that two calls or more are about.
    operations: RoaringTreemap,
    /// Calls whose data was written back.
    written_back: RoaringTreemap,
    /// Requests with such calls, in their order.
    requests: Vec<(i64, i64)>,
    /// Of these calls, those that have a slice.
    begun: RoaringTreemap,
    /// There are more than there is room for.
    pub overflow: bool,
}

impl Flows {
    pub fn read(union: &Union) -> Result<Self> {
        let mut flows = Self::default();
        if union.holds("async_id") {
            flows.read_operations(union)?;
        }
        flows.read_requests(union)?;
        Ok(flows)
    }

    fn read_operations(&mut self, union: &Union) -> Result<()> {
        let (mut known, mut count) = (RoaringTreemap::new(), 0);
        union.rows(|span: Span| {
            let Some(id) = span.async_id.map(key) else { return Ok(()) };
            if known.contains(id) {
                self.operations.insert(id);
            } else if count < FLOWS_MAX {
                count += 1;
                known.insert(id);
            } else {
                self.overflow = true;
            }
            Ok(())
        })
    }

    fn read_requests(&mut self, union: &Union) -> Result<()> {
        let mut there = RoaringTreemap::new();
        union.rows(|block: Block| {
            there.insert(key(block.req_id));
            Ok(())
        })?;
        union.rows(|link: BlockLink| {
            if link.how != "writeback" || !there.contains(key(link.req_id)) {
                return Ok(());
            }
            if self.requests.len() >= FLOWS_MAX {
                self.overflow = true;
            } else if self.written_back.insert(key(link.span_id)) {
                self.requests.push((link.req_id, link.span_id));
            }
            Ok(())
        })?;
        self.requests.sort_unstable();
        Ok(())
    }

    /// The number of the arrow that a call is part of.
    pub fn of_call(&mut self, span: &Span) -> Option<u64> {
        if let Some(id) = span.async_id.map(key).filter(|id| self.operations.contains(*id)) {
            return Some(id);
        }
        let id = key(span.span_id);
        if !self.written_back.contains(id) {
            return None;
        }
        self.begun.insert(id);
        Some(id)
    }

    /// Those that end at a request. All calls must have been asked for before.
    pub fn of_request(&self, block: &Block) -> Vec<u64> {
        let from = self.requests.partition_point(|(req_id, _)| *req_id < block.req_id);
        let its = self.requests[from..].iter().take_while(|(req_id, _)| *req_id == block.req_id);
        its.map(|(_, span_id)| key(*span_id)).filter(|id| self.begun.contains(*id)).collect()
    }
}

/// Damaged datasets have ids below zero.
const fn key(id: i64) -> u64 {
    id.cast_unsigned()
}
