//! The query of the rule `conflicting-ranks`: which calls begin before the end of an earlier one of another rank.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::common::sql;
use crate::common::synthetic::trace::{Trace, file, process};
use crate::reports::random::write;
use iotrace_bpf::analysis::findings::rules::RULES;
use iotrace_bpf::vocabulary::{Kind, Layer};

/// Rank, whether it writes, offset, bytes; a call that failed has none.
type Access = (u32, bool, i64, Option<i64>);

/// Calls by file and rank.
fn conflicts(files: &[Vec<Access>]) -> BTreeMap<(i64, i64), i64> {
    let mut found = BTreeMap::new();
    for (id, accesses) in (1..).zip(files) {
        let mut placed: Vec<_> =
            accesses.iter().filter_map(|(r, w, at, bytes)| Some((*at, *r, *w, (*bytes)?))).collect();
        // Those of one rank at one offset are in the order of their calls.
        placed.sort_by_key(|(at, rank, ..)| (*at, *rank));
        for (n, (at, rank, writes, _)) in placed.iter().enumerate() {
            let overlaps = |(before, other, wrote, bytes): &(i64, u32, bool, i64)| {
                other != rank && (*writes || *wrote) && before + bytes > *at
            };
            if placed[..n].iter().any(overlaps) {
                *found.entry((id, i64::from(*rank))).or_default() += 1;
            }
        }
    }
    found
}

#[test]
fn the_query_has_the_calls_that_overlap_an_earlier_one_of_another_rank() {
    let access = (0..3_u32, any::<bool>(), 0..30_i64, prop::option::weighted(0.9, 1..15_i64));
    let strategy = prop::collection::vec(prop::collection::vec(access, 2..9), 300);
    let mut files = strategy.new_tree(&mut TestRunner::deterministic()).unwrap().current();
    // The rank that wrote last is not the one that is written over.
    files.push(vec![(0, false, 0, Some(4096)), (1, false, 100, Some(100)), (1, true, 100, Some(100))]);
    files.push(vec![(0, false, 0, Some(20)), (1, false, 5, Some(5)), (0, true, 15, Some(5))]);
    let mut trace = Trace::default();
    (0..3).for_each(|rank| trace.row(process(rank + 1, Some(rank))));
    for (id, accesses) in (1..).zip(&files) {
        trace.row(file(id, &format!("/f{id}")));
        for (rank, writes, at, bytes) in accesses {
            let (op, kind) = if *writes { ("pwrite64", Kind::Write) } else { ("pread64", Kind::Read) };
            let call = trace.call(rank + 1, None, (Layer::Syscall, op, kind), 0, 10);
            let span = trace.edit(call);
            (span.rank, span.file_id, span.offset, span.bytes) = (Some(*rank as i32), Some(id), Some(*at), *bytes);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, trace.finish());
    let rule = RULES.iter().find(|rule| rule.id == "conflicting-ranks").unwrap();
    let number = |value: &serde_json::Value| value.as_i64().unwrap();
    let rows = sql::query(&path, rule.sql);
    let found: BTreeMap<_, _> =
        rows.iter().map(|row| ((number(&row["file_id"]), number(&row["rank"])), number(&row["calls"]))).collect();
    let expected = conflicts(&files);
    assert!(expected.len() > 100);
    assert_eq!(found, expected);
}
