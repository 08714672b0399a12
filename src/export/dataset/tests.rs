//! The writer's rules: when parts end, what a kill leaves, which directories are refused.

use std::collections::BTreeSet;
use std::fs::{self, File as OsFile, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use tempfile::TempDir;

use crate::export::dataset::batches::Rows;
use crate::export::dataset::full;
use crate::export::dataset::stream::Limits;
use crate::export::dataset::table::properties;
use crate::export::files::directory::Directory;
use crate::export::{Dataset, DatasetWriter, Options, TABLES, Table, schema};
use crate::rows::{BlockLink, FileRollup, Meta, Row, Span, Thread, span_id};
use crate::vocabulary::{Kind, Layer};

const SMALL: Limits = Limits { group_rows: 4, part_rows: 10, entities: 16 };

fn options(path: &Path) -> Options<'_> {
    Options { path, host: "node1", force: false, owner: None, views: "SELECT 1;\n" }
}

pub(crate) fn create(path: &Path) -> DatasetWriter {
    DatasetWriter::create_with(options(path), SMALL, false).unwrap()
}

fn refusal(options: Options<'_>) -> String {
    match DatasetWriter::create_with(options, SMALL, false) {
        Ok(_) => panic!("{} was accepted", options.path.display()),
        Err(error) => format!("{error:#}"),
    }
}

pub(crate) fn link(req_id: i64) -> Row {
    Row::BlockLink(BlockLink { req_id, span_id: 2, root_id: 1, bytes: 4096, how: "direct" })
}

pub(crate) fn span(thread: u32, seq: u32, start_ns: i64) -> Span {
    let read = (Layer::Syscall, "read", Kind::Read);
    Span { pid: 100, tid: 100 + thread as i32, ..Span::new(span_id(thread, seq), read, 0, (start_ns, 10)) }
}

/// File names in a directory, those of one table.
pub(crate) fn parts(path: &Path, table: &str) -> Vec<String> {
    let names = fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|n| n.starts_with(&format!("{table}-"))).collect();
    names.sort();
    names
}

fn links(dataset: &Dataset) -> Vec<i64> {
    let mut ids = Vec::new();
    dataset
        .rows(|row: BlockLink| {
            ids.push(row.req_id);
            Ok(())
        })
        .unwrap();
    ids
}

fn spans(dataset: &Dataset) -> Vec<Span> {
    let mut spans = Vec::new();
    dataset
        .rows(|row| {
            spans.push(row);
            Ok(())
        })
        .unwrap();
    spans
}

#[test]
fn every_table_has_a_first_part_without_rows_at_once() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let writer = create(&path);
    for table in TABLES {
        assert_eq!(parts(&path, table), [format!("{table}-00001.parquet")]);
    }
    drop(writer);
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(dataset.hosts(), ["node1"]);
    assert_eq!(dataset.warnings(), []);
    assert_eq!(spans(&dataset), []);
    assert_eq!(fs::read_to_string(path.join("views.sql")).unwrap(), "SELECT 1;\n");
}

#[test]
fn parts_end_by_rows() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    for id in 0..25 {
        writer.push(link(id)).unwrap();
    }
    let closed = ["00001.parquet", "00002.parquet", "00003.parquet"].map(|n| format!("block_links-{n}"));
    let open = "block_links-00004.parquet.inprogress".to_owned();
    assert_eq!(parts(&path, "block_links"), [closed.as_slice(), &[open]].concat());
    let finished = writer.finish().unwrap();
    assert_eq!(parts(&path, "block_links").last().unwrap(), "block_links-00004.parquet");
    assert_eq!(finished.parts, TABLES.len() + 3);
    assert!(finished.rows.contains(&("block_links", 25)) && finished.rows.contains(&("spans", 0)));
    let sizes = TABLES.iter().flat_map(|t| parts(&path, t)).map(|n| path.join(n).metadata().unwrap().len());
    assert_eq!(finished.bytes, sizes.sum::<u64>());
    assert_eq!(links(&Dataset::open(&path).unwrap()), (0..25).collect::<Vec<_>>());
}

#[test]
fn parts_end_by_time_and_a_quiet_table_opens_none() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    let mut closed_at = Vec::new();
    // Parts live 5, 10, 20, 40 and then always 60 seconds.
    for second in 0..=200 {
        writer.push(link(second)).unwrap();
        let open = |path: &Path| parts(path, "block_links").iter().any(|name| name.ends_with(".inprogress"));
        if !open(&path) {
            // Ended by its number of rows: start over with one row.
            writer.push(link(second)).unwrap();
        }
        writer.tick(Duration::from_secs(second as u64)).unwrap();
        if !open(&path) {
            closed_at.push(second);
        }
    }
    assert_eq!(closed_at, [5, 15, 35, 75, 135, 195]);
    assert_eq!(parts(&path, "spans"), ["spans-00001.parquet"]);
}

#[test]
fn a_killed_writer_loses_only_its_open_parts() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    writer.push(link(1)).unwrap();
    writer.push(Row::Span(Box::new(span(1, 1, 0)))).unwrap();
    writer.tick(Duration::from_secs(5)).unwrap();
    writer.push(link(2)).unwrap();
    writer.push(Row::Span(Box::new(span(1, 2, 0)))).unwrap();
    drop(writer);
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(links(&dataset), [1]);
    assert_eq!(spans(&dataset), [span(1, 1, 0)]);
    let warnings = dataset.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].to_string().contains("cut off") && warnings[0].why.contains("2 open parts"), "{}", warnings[0]);
}

#[test]
fn a_truncated_part_is_a_warning() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    (0..25).for_each(|id| writer.push(link(id)).unwrap());
    writer.finish().unwrap();
    let file = OpenOptions::new().write(true).open(path.join("block_links-00003.parquet")).unwrap();
    file.set_len(file.metadata().unwrap().len() - 100).unwrap();
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(links(&dataset), (0..10).chain(20..25).collect::<Vec<_>>());
    let warnings = dataset.warnings();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].file, "block_links-00003.parquet");
}

#[test]
fn a_part_that_is_gone_after_opening_is_a_warning() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    (0..15).for_each(|id| writer.push(link(id)).unwrap());
    writer.finish().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    fs::remove_file(path.join("block_links-00002.parquet")).unwrap();
    assert_eq!(links(&dataset), (10..15).collect::<Vec<_>>());
    assert_eq!(links(&dataset), (10..15).collect::<Vec<_>>());
    assert_eq!(dataset.warnings().len(), 1, "the same warning is kept once");
}

#[test]
fn damaged_bytes_never_panic() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    (0..9).for_each(|seq| writer.push(Row::Span(Box::new(span(1, seq, i64::from(seq))))).unwrap());
    writer.finish().unwrap();
    let part = path.join("spans-00002.parquet");
    let whole = fs::read(&part).unwrap();
    let mut skipped = 0;
    for at in (0..whole.len()).step_by(whole.len() / 400) {
        for bits in [0xff, 0x01, 0x80] {
            let mut damaged = whole.clone();
            damaged[at] ^= bits;
            fs::write(&part, damaged).unwrap();
            let dataset = Dataset::open(&path).unwrap();
            let read = spans(&dataset).len();
            assert!(read <= 9 || !dataset.warnings().is_empty(), "byte {at}: {read} rows");
            skipped += usize::from(!dataset.warnings().is_empty());
        }
    }
    assert!(skipped > 0);
}

#[test]
fn an_error_of_the_caller_ends_the_reading() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    (0..25).for_each(|id| writer.push(link(id)).unwrap());
    writer.finish().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    let mut seen = 0;
    let result: Result<()> = dataset.rows(|_: BlockLink| {
        seen += 1;
        ensure!(seen < 3, "enough");
        Ok(())
    });
    assert_eq!((result.unwrap_err().to_string().as_str(), seen), ("enough", 3));
    assert_eq!(dataset.warnings(), []);
}

#[test]
fn spans_are_sorted_within_row_groups() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    for seq in 0..9 {
        // Completion order: times fall, threads alternate.
        writer.push(Row::Span(Box::new(span(2 - seq % 2, seq, 100 - i64::from(seq))))).unwrap();
    }
    writer.finish().unwrap();
    let read = spans(&Dataset::open(&path).unwrap());
    let keys: Vec<_> = read.iter().map(|s| (s.tid, s.start_ns)).collect();
    let groups: Vec<_> = keys.chunks(4).map(<[_]>::to_vec).collect();
    assert_eq!(groups[0], [(101, 97), (101, 99), (102, 98), (102, 100)]);
    assert_eq!(groups[1], [(101, 93), (101, 95), (102, 94), (102, 96)]);
    assert_eq!(groups[2], [(102, 92)]);

    let reader = SerializedFileReader::new(OsFile::open(path.join("spans-00002.parquet")).unwrap()).unwrap();
    let metadata = reader.metadata();
    let rows: Vec<_> = metadata.row_groups().iter().map(RowGroupMetaData::num_rows).collect();
    assert_eq!(rows, [4, 4, 1]);
    let columns = metadata.file_metadata().schema_descr();
    let sorting = metadata.row_group(0).sorting_columns().unwrap();
    let sorting: Vec<_> = sorting.iter().map(|s| columns.column(s.column_idx as usize).name().to_owned()).collect();
    assert_eq!(sorting, ["pid", "tid", "start_ns", "span_id"]);
    let facts = metadata.file_metadata().key_value_metadata().unwrap();
    assert!(facts.iter().any(|f| f.key == "iotrace.schema" && f.value.as_deref() == Some("1")));
}

#[test]
fn rows_without_an_order_stay_in_theirs_while_others_are_written() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer =
        DatasetWriter::create_with(options(&path), Limits { group_rows: 64, ..Limits::default() }, false).unwrap();
    let row = |at: i64| BlockLink { req_id: at, span_id: -at, root_id: 7, bytes: at % 5, how: "writeback" };
    // More than wait at most, and no whole number of batches; calls between them keep the writing thread busy.
    let count = 3 * 16 * 1024 + 500;
    for at in 0..count {
        writer.push(Row::BlockLink(row(at))).unwrap();
        if at % 100 == 0 {
            writer.push(Row::Span(Box::new(span(1, at as u32, at)))).unwrap();
        }
    }
    writer.finish().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    let read: Vec<BlockLink> = dataset.all().unwrap();
    assert!(read == (0..count).map(row).collect::<Vec<_>>());
    assert_eq!(spans(&dataset).len() as i64, count / 100 + 1);
}

#[test]
fn cells_are_read_whichever_of_them_are_null() {
    let of = |at: u32| Span {
        // No nulls; some, in one chunk of rows; most; nothing else.
        op: if at.is_multiple_of(2) { "read" } else { "write" },
        offset: (at != 300).then_some(i64::from(at)),
        cmd: at.is_multiple_of(97).then_some("F_GETFL"),
        rank: None,
        ..span(1, at, i64::from(at))
    };
    let rows: Vec<Span> = (0..700).map(of).collect();
    assert!(Span::decode(&batch("h", &rows)).unwrap() == rows);
}

#[test]
fn spans_of_some_roots_only() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    let child = |root: u32, seq: u32| Span {
        parent_id: Some(span_id(1, root)),
        root_id: span_id(1, root),
        depth: 1,
        ..span(1, seq, i64::from(seq))
    };
    for row in [span(1, 1, 1), child(1, 2), span(1, 3, 3), child(3, 4), span(1, 5, 5), child(5, 6), span(2, 1, 7)] {
        writer.push(Row::Span(Box::new(row))).unwrap();
    }
    writer.finish().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    let of = |roots: &[i64]| {
        let mut found = Vec::new();
        let roots: BTreeSet<i64> = roots.iter().copied().collect();
        dataset
            .spans_of_roots(&roots, |span| {
                found.push(span);
                Ok(())
            })
            .unwrap();
        found
    };
    assert_eq!(of(&[span_id(1, 3)]), [span(1, 3, 3), child(3, 4)]);
    assert_eq!(of(&[span_id(2, 1), span_id(1, 1)]), [span(1, 1, 1), child(1, 2), span(2, 1, 7)]);
    assert_eq!(of(&[span_id(9, 1)]), []);
    assert_eq!(of(&[]), []);
    assert_eq!(dataset.warnings(), []);
}

#[test]
fn the_last_row_of_an_id_counts() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    let thread = |thread_ix, comm: &str| Thread { thread_ix, process_ix: 0, pid: 1, tid: 1, comm: comm.to_owned() };
    for (second, row) in [thread(0, "sh"), thread(1, "a"), thread(0, "b")].into_iter().enumerate() {
        writer.push(Row::Thread(row)).unwrap();
        writer.tick(Duration::from_secs(100 * second as u64)).unwrap();
    }
    writer.finish().unwrap();
    let threads = Dataset::open(&path).unwrap().last_by_id::<Thread>().unwrap();
    assert_eq!(threads.into_iter().collect::<Vec<_>>(), [(0, thread(0, "b")), (1, thread(1, "a"))]);
}

/// Rows as they are in a part.
pub fn batch<T: Table>(host: &str, rows: &[T]) -> RecordBatch {
    let mut batches = Vec::new();
    let mut rows: Rows<T, &T> = rows.iter().collect();
    let keep = |batch| {
        batches.push(batch);
        Ok(())
    };
    rows.batches(&schema::<T>(), host, keep).unwrap();
    batches.pop().unwrap()
}

/// Writes a part of spans without this column, as an earlier version would have that did not know it.
fn without(path: &Path, column: &str) {
    let mut span = span(0, 1, 5);
    span.parent_id = Some(7);
    let whole = batch("node1", &[span]);
    let kept: Vec<usize> = (0..whole.num_columns()).filter(|i| whole.schema().field(*i).name() != column).collect();
    let less = whole.project(&kept).unwrap();
    let part = OsFile::create(path.join("spans-00001.parquet")).unwrap();
    let facts = properties::<Span>("node1", 4).unwrap().into_builder().set_sorting_columns(None).build();
    let mut writer = ArrowWriter::try_new(part, less.schema(), Some(facts)).unwrap();
    writer.write(&less).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_column_that_came_later_is_null_in_older_parts() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    create(&path).finish().unwrap();
    without(&path, "parent_id");
    let dataset = Dataset::open(&path).unwrap();
    let read: Vec<_> = spans(&dataset).iter().map(|s| (s.start_ns, s.parent_id)).collect();
    assert_eq!((read, dataset.warnings()), (vec![(5, None)], Vec::new()));

    without(&path, "dur_ns");
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(spans(&dataset).len(), 0);
    assert!(dataset.warnings()[0].why.contains("column dur_ns is missing"), "{:?}", dataset.warnings());
}

#[test]
fn a_directory_is_private_and_so_are_its_files() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    create(&path).finish().unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    for entry in fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o7777, 0o600, "{:?}", entry.file_name());
    }
}

#[test]
fn the_owner_gets_everything() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    // Root may give files away; anyone else may only keep them.
    let me = dir.path().metadata().unwrap();
    let owner = if me.uid() == 0 { (12_345, 54_321) } else { (me.uid(), me.gid()) };
    let mut writer = DatasetWriter::create_with(Options { owner: Some(owner), ..options(&path) }, SMALL, true).unwrap();
    writer.push(link(1)).unwrap();
    writer.finish().unwrap();
    let entries = fs::read_dir(&path).unwrap().map(|e| e.unwrap().path());
    for path in entries.chain([path.clone()]) {
        let found = path.metadata().unwrap();
        assert_eq!((found.uid(), found.gid()), owner, "{}", path.display());
    }
}

#[test]
fn directories_that_cannot_be_used_are_refused_with_a_way_out() {
    let dir = TempDir::new().unwrap();
    let full = dir.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("thesis.tex"), "").unwrap();
    let message = refusal(options(&full));
    assert!(message.contains("full exists and is not empty") && message.contains("--force"), "{message}");

    let file = full.join("thesis.tex");
    assert!(refusal(options(&file)).contains("is not a directory"));
    let orphan = dir.path().join("no/such");
    assert!(refusal(options(&orphan)).contains("parent directory does not exist"));
    assert!(!dir.path().join("no").exists());

    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    create(&empty);
}

#[test]
fn force_removes_a_dataset_and_nothing_else() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let force = Options { force: true, ..options(&path) };
    let mut writer = create(&path);
    (0..25).for_each(|id| writer.push(link(id)).unwrap());
    drop(writer);
    fs::write(path.join("notes.txt"), "mine").unwrap();
    let message = refusal(force);
    assert!(message.contains("'notes.txt'"), "{message}");
    assert_eq!(parts(&path, "block_links").len(), 4, "nothing was removed");
    fs::rename(path.join("notes.txt"), path.join("results.parquet")).unwrap();
    assert!(refusal(force).contains("'results.parquet'"));
    fs::remove_file(path.join("results.parquet")).unwrap();

    let mut writer = DatasetWriter::create_with(force, SMALL, false).unwrap();
    writer.push(link(7)).unwrap();
    writer.finish().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(links(&dataset), [7]);
    assert_eq!(dataset.warnings(), []);
}

#[test]
fn a_link_is_refused_when_privileged() {
    let dir = TempDir::new().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    for path in [link.clone(), link.join("")] {
        let Err(error) = Directory::create(&path, false, None, true) else { panic!("{} was followed", path.display()) };
        assert!(error.to_string().contains("is a symbolic link"), "{error}");
    }
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
    assert!(Directory::create(&link, false, None, false).is_ok());

    let dangling = dir.path().join("dangling");
    symlink(dir.path().join("nothing"), &dangling).unwrap();
    assert!(refusal(options(&dangling)).contains("link to nothing"));
}

#[test]
fn a_planted_link_is_not_followed() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let mut writer = create(&path);
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, path.join("block_links-00002.parquet.inprogress")).unwrap();
    let error = format!("{:#}", writer.push(link(1)).unwrap_err());
    assert!(error.contains("block_links-00002.parquet.inprogress") && error.contains("21 closed parts"), "{error}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_second_writer_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t");
    let first = create(&path);
    let message = refusal(Options { force: true, ..options(&path) });
    assert!(message.contains("is being written by another iotrace-bpf"), "{message}");
    first.finish().unwrap();
    assert!(DatasetWriter::create_with(Options { force: true, ..options(&path) }, SMALL, false).is_ok());
}

#[test]
fn what_is_no_dataset_is_refused() {
    let dir = TempDir::new().unwrap();
    let message = |path: &Path| format!("{:#}", Dataset::open(path).err().unwrap());
    assert!(message(dir.path()).contains("is no dataset"));
    assert!(message(&dir.path().join("missing")).contains("missing"));
    fs::write(dir.path().join("spans-00001.parquet"), "PAR1 not really").unwrap();
    let found = message(dir.path());
    assert!(found.contains("no part of") && found.contains("spans-00001.parquet"), "{found}");
    assert!(message(&dir.path().join("spans-00001.parquet")).contains("is not a directory"));
}

#[test]
fn another_schema_is_refused() {
    let dir = TempDir::new().unwrap();
    let file = OsFile::create(dir.path().join("meta-00001.parquet")).unwrap();
    let mut facts = properties::<Meta>("node1", 10).unwrap().key_value_metadata().unwrap().clone();
    facts[0].value = Some("2".to_owned());
    let newer = properties::<Meta>("node1", 10).unwrap().into_builder().set_key_value_metadata(Some(facts)).build();
    ArrowWriter::try_new(file, schema::<Meta>(), Some(newer)).unwrap().close().unwrap();
    let message = Dataset::open(dir.path()).err().unwrap().to_string();
    assert!(message.contains("has schema 2") && message.contains("reads schema 1"), "{message}");
}

#[test]
fn a_full_disk_is_distinguished_from_other_failures() {
    let device = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let rows = [Meta { key: "k".to_owned(), value: "v".to_owned() }];
    let mut writer =
        ArrowWriter::try_new(device, schema::<Meta>(), Some(properties::<Meta>("node1", 10).unwrap())).unwrap();
    let written = writer.write(&batch("node1", &rows));
    let error = written.and_then(|()| writer.finish().map(drop)).unwrap_err();
    assert_eq!(full(&anyhow::Error::new(error).context("cannot write meta")), Some("no space left"));
    assert_eq!(full(&anyhow::Error::new(nix::errno::Errno::EDQUOT)), Some("the quota is used up"));
    assert_eq!(full(&anyhow::anyhow!("something else")), None);
}

#[test]
fn a_writer_may_move_to_another_thread() {
    fn moves<T: Send>() {}
    moves::<DatasetWriter>();
}

/// Calls that were summed up: none so far.
pub(crate) fn sums(layer: Layer, op: &'static str, kind: Kind) -> FileRollup {
    FileRollup {
        from_ns: 0,
        to_ns: 1_000_000_000,
        layer,
        op,
        kind,
        process_ix: Some(1),
        pid: Some(100),
        rank: None,
        file_id: Some(1),
        object_id: None,
        device: None,
        other: false,
        calls_error: None,
        calls: 0,
        nested_calls: 0,
        errors: 0,
        unknown_calls: 0,
        bytes: 0,
        req_bytes: 0,
        dur_ns: 0,
        self_ns: 0,
        max_ns: 0,
        slowest_ns: None,
        first_ns: None,
        last_ns: None,
        end_offset: None,
        sequential: 0,
        consecutive: 0,
        switches: 0,
        unaligned: 0,
        miss_bytes: 0,
        ahead_bytes: 0,
        wait_ns: 0,
        cpu_ns: 0,
        runq_ns: 0,
        lock_ns: 0,
        sizes: None,
        durations: None,
        common_sizes: None,
        common_size_calls: None,
        other_sizes: 0,
        common_strides: None,
        common_stride_calls: None,
        other_strides: 0,
    }
}
