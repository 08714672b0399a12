//! Collective MPI-IO calls by function and file, and which ranks made the system calls for the others (aggregators).

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::{Bytes, is_data};
use crate::analysis::files;
use crate::analysis::nesting::Nesting;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::{IdKind, Source};
use crate::rows::{SEQ_BITS, Span};
use crate::vocabulary::{Kind, Layer, flag};

/// Groups, and non-blocking calls that are waited for, that are remembered.
const REMEMBERED_MAX: usize = 1 << 18;

/// One function on one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectiveRow {
    pub op: &'static str,
    pub path: Option<String>,
    /// The most that a rank made.
    pub collectives: i64,
    /// Calls of all ranks together, their time, and the longest.
    pub calls: i64,
    pub time_ns: i64,
    pub max_ns: i64,
    /// Of reads and writes.
    pub asked: Bytes,
    pub moved: Bytes,
    /// Reads and writes in system calls inside them, and their bytes.
    pub syscalls: i64,
    pub syscall_bytes: i64,
    /// The rank, or processes without one, in order.
    pub ranks: Vec<Member>,
    pub complete: bool,
}

impl CollectiveRow {
    /// A read or a write: what others read, such as configuration files in an open, is not for all.
    pub const fn is_transfer(&self) -> bool {
        self.asked.sum.is_some() || self.moved.sum.is_some()
    }

    /// Ranks that made system calls for all.
    pub fn aggregators(&self) -> usize {
        self.ranks.iter().filter(|rank| rank.aggregated > 0).count()
    }
}

/// A rank in these calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Member {
    pub rank: Option<i32>,
    pub collectives: i64,
    /// So many of these read or wrote in system calls.
    pub aggregated: i64,
    pub syscalls: i64,
    pub bytes: i64,
}

/// A rank in the calls of one function on one file.
#[derive(Default)]
struct Sum {
    member: Member,
    time_ns: i64,
    max_ns: i64,
    asked: Bytes,
    moved: Bytes,
    /// The last call that was counted as one that reads or writes.
    aggregated: Option<i64>,
}

/// The collective call around a span: its sums, and its number.
#[derive(Debug, Clone, Copy)]
struct Around {
    sum: usize,
    call: i64,
}

/// What calls have in common: function, file, and rank; of processes without a rank each has its own (`Err`).
type Key = (&'static str, Option<i32>, Result<i32, i32>);

/// Follows collective calls and the system calls inside them, and those that other threads make for their operations.
#[derive(Default)]
pub struct Collectives {
    keys: HashMap<Key, usize>,
    sums: Vec<Sum>,
    nesting: Nesting<Option<Around>>,
    /// Non-blocking calls: what is done while a rank waits for one belongs to it.
    waited: HashMap<i64, Around>,
    /// Operations inside collective calls, which other threads may carry out.
    operations: HashMap<i64, Around>,
    overflow: bool,
}

fn add(to: &mut i64, n: i64) {
    *to = to.saturating_add(n);
}

impl Collectives {
    /// `counts`: it is one of the calls that the report is about.
    pub fn span(&mut self, span: &Span, counts: bool) {
        let above = self.nesting.above(span).flatten();
        let waits = (span.kind == Kind::Wait && span.coll_id.is_none()).then_some(span.async_id).flatten();
        let own = if span.coll_id.is_some() && counts { self.call(span) } else { None };
        let elsewhere = span.parent_id.filter(|parent| parent >> SEQ_BITS != span.span_id >> SEQ_BITS);
        let operation = || self.operations.get(&elsewhere?).copied();
        let around = own.or_else(|| self.waited.get(&waits?).copied()).or(above).or_else(operation);
        if let Some(around) = around.filter(|_| span.flags & flag::ASYNC != 0 && span.layer < Layer::Syscall) {
            if self.operations.len() < REMEMBERED_MAX {
                self.operations.insert(span.span_id, around);
            } else {
                self.overflow = true;
            }
        }
        if span.layer == Layer::Syscall
            && is_data(span.kind)
            && counts
            && let Some((around, sum)) = around.and_then(|around| Some((around, self.sums.get_mut(around.sum)?)))
        {
            add(&mut sum.member.syscalls, 1);
            add(&mut sum.member.bytes, span.bytes.unwrap_or(0));
            if sum.aggregated != Some(around.call) {
                sum.aggregated = Some(around.call);
                add(&mut sum.member.aggregated, 1);
            }
        }
        // Without a collective call on the thread nothing needs to be followed.
        if around.is_some() || self.nesting.kept_mut(span.span_id >> SEQ_BITS).next().is_some() {
            self.nesting.enter(span, around);
        }
    }

    fn call(&mut self, span: &Span) -> Option<Around> {
        let key = (span.op, span.file_id, span.rank.ok_or(span.process_ix));
        if self.sums.len() >= REMEMBERED_MAX && !self.keys.contains_key(&key) {
            self.overflow = true;
            return None;
        }
        let at = *self.keys.entry(key).or_insert(self.sums.len());
        if at == self.sums.len() {
            self.sums.push(Sum { member: Member { rank: span.rank, ..Member::default() }, ..Sum::default() });
        }
        let sum = self.sums.get_mut(at)?;
        add(&mut sum.member.collectives, 1);
        add(&mut sum.time_ns, span.net_ns());
        sum.max_ns = sum.max_ns.max(span.net_ns());
        if is_data(span.kind) {
            sum.asked.merge(Bytes::of(span.req_bytes, span.errno != 0));
            sum.moved.merge(Bytes::of(span.bytes, span.errno != 0));
        }
        let around = Around { sum: at, call: span.span_id };
        if span.async_id.is_none() && span.flags & flag::NONBLOCKING != 0 {
            if self.waited.len() < REMEMBERED_MAX {
                self.waited.insert(span.span_id, around);
            } else {
                self.overflow = true;
            }
        }
        Some(around)
    }

    /// By function and path, those with the most time first. Nodes have files in common by their paths.
    pub fn finish(self, source: &mut dyn Source, quality: &Quality) -> Result<Vec<CollectiveRow>> {
        let files = files::described(source, self.keys.keys().filter_map(|(_, file, _)| *file))?;
        let mut rows = BTreeMap::<_, (CollectiveRow, BTreeMap<(bool, i32), Member>)>::new();
        let mut keys: Vec<(Key, usize)> = self.keys.into_iter().collect();
        keys.sort_unstable();
        for ((op, file, rank), at) in keys {
            let Some(sum) = self.sums.get(at) else { continue };
            let path = file.and_then(|id| files.get(&id)?.path.clone());
            // Of files without a name each is one, on its node.
            let host = file.and_then(|id| Some(source.origin(IdKind::File, id.into())?.host.to_owned()));
            let nameless = path.is_none().then_some((host, file));
            let (row, ranks) = rows.entry((op, path.clone(), nameless)).or_insert_with(|| {
                let row = CollectiveRow {
                    op,
                    path,
                    collectives: 0,
                    calls: 0,
                    time_ns: 0,
                    max_ns: 0,
                    asked: Bytes::default(),
                    moved: Bytes::default(),
                    syscalls: 0,
                    syscall_bytes: 0,
                    ranks: Vec::new(),
                    complete: !self.overflow && quality.all(),
                };
                (row, BTreeMap::new())
            });
            let Member { collectives, aggregated, syscalls, bytes, .. } = sum.member;
            add(&mut row.calls, collectives);
            add(&mut row.time_ns, sum.time_ns);
            row.max_ns = row.max_ns.max(sum.max_ns);
            row.asked.merge(sum.asked);
            row.moved.merge(sum.moved);
            add(&mut row.syscalls, syscalls);
            add(&mut row.syscall_bytes, bytes);
            let own = ranks.entry((rank.is_err(), rank.unwrap_or_else(|process| process))).or_default();
            own.rank = sum.member.rank;
            add(&mut own.collectives, collectives);
            add(&mut own.aggregated, aggregated);
            add(&mut own.syscalls, syscalls);
            add(&mut own.bytes, bytes);
        }
        let mut rows: Vec<CollectiveRow> = rows
            .into_values()
            .map(|(row, ranks)| {
                let ranks: Vec<Member> = ranks.into_values().collect();
                let collectives = ranks.iter().map(|rank| rank.collectives).max().unwrap_or(0);
                CollectiveRow { collectives, ranks, ..row }
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
        Ok(rows)
    }
}
