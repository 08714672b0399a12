//! Ranks on several nodes, and tracers of several ranks on one: files have an id of their own in each dataset.

use super::call;
use super::made::{Made, file, for_device, handle, mount, written};
use crate::analysis::findings::*;
use crate::rows::{File, Handle, Row};
use crate::vocabulary::Kind;

/// What is added to ids of files in the second dataset.
const SECOND: i32 = 1000;
const NODES: [(i64, &str); 2] = [(0, "a"), (SECOND as i64, "b")];

/// So many files that two datasets know by the same names, on a file system that is mounted from elsewhere or not.
fn files(number: i32, scope: &'static str) -> Vec<Row> {
    let one = |id: i32, dataset: i32| File {
        ino: id.into(),
        mount_id: Some(1),
        first_path: Some(format!("/data/{id}")),
        ..file(id + dataset * SECOND)
    };
    let files = (1..=number).flat_map(|id| (0..2).map(move |dataset| Row::File(Box::new(one(id, dataset)))));
    [Row::Mount(Box::new(mount(1, "lustre", scope)))].into_iter().chain(files).collect()
}

#[test]
fn files_of_a_shared_file_system_that_ranks_on_all_nodes_write_are_not_their_own() {
    let found = |scope: &'static str| {
        let (mut rows, mut spans) = (files(100, scope), Vec::new());
        for (rank, n) in (0..2_i32).flat_map(|rank| (0..100_i64).map(move |n| (rank, n))) {
            let (seq, at, id) = (n as u32 * 2, n * 5, n as i32 + 1 + rank * SECOND);
            let open = call(rank as u32 + 1, seq, ("openat", Kind::Open), at, 4);
            rows.push(Row::Handle(Handle { open_span_id: Some(open.span_id), mode: Some(0o101), ..handle(id) }));
            let write = written(rank, seq + 1, (0, 100), at + 4, 1);
            spans.extend([Span { rank: Some(rank), file_id: None, ..open }, Span { file_id: Some(id), ..write }]);
        }
        let made = Made { rows, hosts: NODES.to_vec(), ..Made::of(spans) };
        made.find_one("file-per-process", 1000).map(|found| found.title)
    };
    assert_eq!(found("remote"), None);
    let local = found("local").unwrap();
    assert!(local.starts_with("200 files that one rank each writes, 100 for each of 2 ranks"), "{local}");
}

#[test]
fn ranks_on_two_nodes_share_blocks_of_files_that_nodes_share() {
    let found = |scope: &'static str| {
        let piece = |n: i64| {
            let rank = n as i32 % 2;
            let write = for_device(&written(rank, n as u32, (n * 20_000, 20_000), n * 2, 4));
            Span { file_id: Some(1 + rank * SECOND), ..write }
        };
        let made = Made { rows: files(1, scope), hosts: NODES.to_vec(), ..Made::of((0..100).map(piece)) };
        made.find_one("misaligned-shared", 1000).is_some()
    };
    assert!(found("remote"));
    assert!(!found("local"), "two files with one inode number");
}

/// Clocks of two nodes do not show whether calls overlap in time.
#[test]
fn conflicts_are_those_of_ranks_on_one_node_whoever_traces_them() {
    let all = |hosts: [(i64, &'static str); 2], scope: &'static str| {
        let first = written(0, 0, (0, 100), 0, 10);
        let second = Span { file_id: Some(1 + SECOND), ..written(1, 0, (60, 100), 5, 10) };
        let made = Made { rows: files(1, scope), hosts: hosts.to_vec(), ..Made::of([first, second]) }.find(1000);
        let why = made.not_evaluated.into_iter().find(|one| one.rule == "conflicting-ranks").map(|one| one.why);
        (made.findings.iter().any(|one| one.rule == "conflicting-ranks"), why)
    };
    let clocks = Some("ranks on different nodes were not compared: their clocks differ".to_owned());
    assert_eq!(all(NODES, "remote"), (false, clocks));
    assert_eq!(all(NODES, "local"), (false, None));
    assert_eq!(all([(0, "a"), (SECOND.into(), "a")], "local"), (true, None));
}
