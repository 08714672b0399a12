//! One row for each id: at the end of a dataset, after a kill with `repair`, and at every step in between.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::export::dataset::tests::{create, link, parts};
use crate::export::files::directory::Directory;
use crate::export::reading::compact::compact;
use crate::export::reading::repair;
use crate::export::rotating::rotation_tests::{file, meta, rows};
use crate::export::{Dataset, DatasetWriter};
use crate::rows::{File, Meta, Row, Thread};

fn thread(thread_ix: i32, comm: &str) -> Row {
    Row::Thread(Thread { thread_ix, process_ix: 0, pid: 1, tid: 1, comm: comm.to_owned() })
}

/// Writes entities that change, over several parts: of each id the last row has the number of its turn.
fn record(path: &Path) -> DatasetWriter {
    let mut writer = create(path);
    for turn in 0..7 {
        for id in 0..25 {
            if (id + turn) % 3 != 0 {
                writer.push(thread(id, &turn.to_string())).unwrap();
            }
            writer.push(file(id)).unwrap();
        }
        writer.push(meta("turn", &turn.to_string())).unwrap();
        writer.push(link(i64::from(turn))).unwrap();
        writer.tick(Duration::from_secs(100 * turn as u64)).unwrap();
    }
    writer
}

/// What a reader knows that keeps the last row of each id.
fn known(path: &Path) -> (BTreeMap<i32, Thread>, BTreeMap<i32, File>, BTreeMap<String, String>) {
    let dataset = Dataset::open(path).unwrap();
    let facts = rows::<Meta>(&dataset).into_iter().map(|m| (m.key, m.value)).collect();
    (dataset.last_by_id().unwrap(), dataset.last_by_id().unwrap(), facts)
}

fn one_row_each(path: &Path) {
    let dataset = Dataset::open(path).unwrap();
    assert_eq!(dataset.warnings(), []);
    let (threads, files, facts) = known(path);
    assert_eq!((rows::<Thread>(&dataset).len(), rows::<File>(&dataset).len()), (threads.len(), files.len()));
    assert_eq!((threads.len(), files.len(), rows::<Meta>(&dataset).len()), (25, 25, facts.len()));
    let last = |id: i32| if (id + 6) % 3 == 0 { "5" } else { "6" };
    assert!(threads.iter().all(|(id, thread)| thread.comm == last(*id)), "{threads:?}");
    assert_eq!(facts["turn"], "6");
    assert_eq!((parts(path, "threads").len(), parts(path, "files").len(), parts(path, "meta").len()), (1, 1, 1));
}

#[test]
fn a_dataset_that_ended_in_order_has_one_row_for_each_id() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let finished = record(&path).finish().unwrap();
    one_row_each(&path);
    assert_eq!(finished.repeated, Vec::<String>::new());
    let entries: Vec<_> = fs::read_dir(&path).unwrap().map(Result::unwrap).collect();
    let of_parts = || entries.iter().filter(|e| e.path().extension().is_some_and(|x| x == "parquet"));
    assert_eq!(finished.parts, of_parts().count());
    assert_eq!(finished.bytes, of_parts().map(|e| e.metadata().unwrap().len()).sum::<u64>());
    assert!(finished.rows.contains(&("threads", 25)) && finished.rows.contains(&("block_links", 7)));
    assert!(entries.iter().all(|e| e.metadata().unwrap().mode() & 0o7777 == 0o600));
}

#[test]
fn a_killed_one_is_the_same_after_repair_and_repair_changes_nothing_then() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = record(&path);
    let repaired = |path: &Path| {
        let mut out = Vec::new();
        repair::run(path, &mut out).map(|()| String::from_utf8(out).unwrap()).map_err(|e| format!("{e:#}"))
    };
    let refused = repaired(&path).unwrap_err();
    assert!(refused.contains("is being written"), "{refused}");
    // What is in an open part is lost.
    writer.push(thread(0, "lost")).unwrap();
    drop(writer);
    let before = known(&path);
    assert!(rows::<Thread>(&Dataset::open(&path).unwrap()).len() > 100);
    let did = repaired(&path).unwrap();
    assert!(did.contains("1 open part removed") && did.contains("25 of 116 rows of threads"), "{did}");
    one_row_each(&path);
    assert_eq!(known(&path), before);
    let list =
        || fs::read_dir(&path).unwrap().map(|e| e.unwrap()).map(|e| (e.path(), e.ino())).collect::<BTreeMap<_, _>>();
    let after = list();
    assert!(repaired(&path).unwrap().ends_with(": nothing to repair\n"));
    assert_eq!(list(), after);
}

#[test]
fn repair_looks_into_directories_and_names_what_it_cannot_do() {
    let dir = TempDir::new().unwrap();
    for name in ["node1/2026-11-22T10-30-00Z", "node2", "writing", "damaged"] {
        fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
        let writer = record(&dir.path().join(name));
        if name == "writing" {
            std::mem::forget(writer);
        }
    }
    fs::create_dir(dir.path().join("other")).unwrap();
    fs::write(dir.path().join("other/notes"), "mine").unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("around")).unwrap();
    let damaged = dir.path().join("damaged").join(&parts(&dir.path().join("damaged"), "threads")[1]);
    fs::write(&damaged, "not a part").unwrap();
    let mut out = Vec::new();
    let failed = format!("{:#}", repair::run(dir.path(), &mut out).unwrap_err());
    assert!(failed.contains("writing is being written"), "{failed}");
    let did = String::from_utf8(out).unwrap();
    assert_eq!(did.lines().count(), 3, "{did}");
    assert!(did.contains("left as it is: threads: threads-00002.parquet cannot be read"), "{did}");
    one_row_each(&dir.path().join("node1/2026-11-22T10-30-00Z"));
    one_row_each(&dir.path().join("node2"));
    // What can be read of it is there still, and tables beside it have one row for each id.
    let left = Dataset::open(&dir.path().join("damaged")).unwrap();
    assert!(rows::<Thread>(&left).len() > 90 && rows::<File>(&left).len() == 25);
    assert_eq!(fs::read_to_string(&damaged).unwrap(), "not a part");
    let none = format!("{:#}", repair::run(&dir.path().join("other"), &mut Vec::new()).unwrap_err());
    assert!(none.contains("holds no dataset"), "{none}");
    let none = format!("{:#}", repair::run(&dir.path().join("nothing"), &mut Vec::new()).unwrap_err());
    assert!(none.contains("nothing"), "{none}");
}

#[test]
fn at_every_step_a_reader_finds_every_id() {
    let dir = TempDir::new().unwrap();
    let (path, whole) = (dir.path().join("t"), dir.path().join("whole"));
    drop(record(&path));
    let truth = known(&path);
    // Opened before, read while parts go.
    let early = Dataset::open(&path).unwrap();
    let first = fs::read(path.join(&parts(&path, "threads")[1])).unwrap();
    compact(&Directory::existing(&path, false).unwrap()).unwrap();
    assert_eq!(early.last_by_id::<Thread>().unwrap(), truth.0);
    assert_eq!(early.warnings(), []);
    assert_eq!(known(&path), truth);
    // Cut short before the older parts were removed, or while the new one was written.
    fs::write(path.join("threads-00002.parquet"), first).unwrap();
    fs::write(path.join(format!("{}.inprogress", parts(&path, "threads").last().unwrap())), "half").unwrap();
    assert_eq!(known(&path), truth);
    repair::run(&path, &mut Vec::new()).unwrap();
    one_row_each(&path);
    assert_eq!(known(&path), truth);
    // Nothing to do: nothing is written.
    create(&whole).finish().unwrap();
    assert!(compact(&Directory::existing(&whole, false).unwrap()).unwrap().tables.is_empty());
}
