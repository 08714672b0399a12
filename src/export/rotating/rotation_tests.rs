//! One dataset after the other: each describes what its rows refer to, none has a row of another, and only our files are removed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use crate::event::FileKey;
use crate::export::dataset::stream::Limits;
use crate::export::dataset::tests::span;
use crate::export::rotating::{Moment, RotatingWriter};
use crate::export::{Dataset, Options, Table};
use crate::rows::{
    BlockBytes, CallPath, Coverage, File, FilePath, Handle, Loss, Meta, Metric, Object, Process, Row, SEQ_BITS, Span,
    Thread,
};
use crate::vocabulary::Layer;

const SMALL: Limits = Limits { group_rows: 4, part_rows: 10, entities: 16 };
/// 2026-11-22 10:30:00 UTC.
pub(crate) const WALL: u64 = 1_795_343_400_000_000_000;

fn create(path: &Path, keep: Option<u64>, wall: u64) -> RotatingWriter {
    let options = Options { path, host: "node1", force: false, owner: None, views: "SELECT 1;\n" };
    RotatingWriter::create_with(options, SMALL, true, keep, wall, Arc::default(), Arc::new(|_: &str| {})).unwrap()
}

pub(crate) fn at(millis: u64) -> Moment {
    let elapsed = Duration::from_millis(millis);
    let ns = millis * 1_000_000;
    Moment { elapsed, monotonic: 5_000_000_000_000 + ns, wall: WALL + ns }
}

pub(crate) fn meta(key: &str, value: &str) -> Row {
    Row::Meta(Meta { key: key.to_owned(), value: value.to_owned() })
}

fn start(writer: &mut RotatingWriter) {
    writer.push(meta("t0_ns", "5000000000000")).unwrap();
    writer.push(meta("command", "-p 1")).unwrap();
}

pub(crate) fn process(process_ix: i32, end_ns: Option<i64>) -> Row {
    let (cmdline, exit_code) = (vec!["app".to_owned()], end_ns.map(|_| 0));
    Row::Process(Box::new(Process {
        pid: 100 + process_ix,
        end_ns,
        cmdline,
        exit_code,
        ..Process::placeholder(process_ix, 0)
    }))
}

pub(crate) fn thread(thread_ix: i32, process_ix: i32) -> Row {
    Row::Thread(Thread { thread_ix, process_ix, pid: 100 + process_ix, tid: 100 + thread_ix, comm: "app".to_owned() })
}

pub(crate) fn file(file_id: i32) -> Row {
    let key = FileKey { ino: file_id as u64, ..FileKey::default() };
    Row::File(Box::new(File { path: Some(format!("/f{file_id}")), ..File::placeholder(file_id, key) }))
}

pub(crate) fn handle(
    handle_id: i32,
    parent_handle_id: Option<i32>,
    file_id: i32,
    object_id: Option<i32>,
    end_ns: Option<i64>,
) -> Row {
    Row::Handle(Handle {
        handle_id,
        parent_handle_id,
        layer: Layer::Syscall,
        file_id: Some(file_id),
        object_id,
        process_ix: 1,
        pid: 101,
        raw: 3,
        mode: None,
        flags: 0,
        comm_size: None,
        comm_ranks: None,
        implementation: None,
        hints: None,
        open_span_id: None,
        close_span_id: None,
        start_ns: 10,
        end_ns,
    })
}

pub(crate) fn named(path_id: i32) -> Row {
    Row::CallPath(CallPath { path_id, path: format!("/p{path_id}") })
}

pub(crate) fn object(object_id: i32, handle_id: i32, file_id: i32) -> Row {
    Row::Object(Object {
        object_id,
        handle_id: Some(handle_id),
        file_id: Some(file_id),
        name: format!("/o{object_id}"),
        class: "dataset",
        dims: None,
        chunk: None,
        elem_size: None,
        filters: None,
    })
}

pub(crate) fn call(
    seq: u32,
    start_ns: i64,
    handle_id: Option<i32>,
    file_id: Option<i32>,
    object_id: Option<i32>,
) -> Row {
    // With the handle of that number it names a path of that number.
    Row::Span(Box::new(Span {
        process_ix: 1,
        handle_id,
        file_id,
        object_id,
        path2_id: handle_id,
        ..span(1, seq, start_ns)
    }))
}

/// A request of the process and the file of this number.
pub(crate) fn bytes_of(req_id: i64, id: i32) -> Row {
    let (process_ix, file_id) = (Some(id), Some(id));
    Row::BlockBytes(BlockBytes {
        req_id,
        process_ix,
        file_id,
        span_id: None,
        bytes: 512,
        cgroup: None,
        known_by: "range",
    })
}

/// The datasets in a directory, the oldest first.
pub(crate) fn datasets(path: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

pub(crate) fn names(path: &Path) -> Vec<String> {
    datasets(path).iter().map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

pub(crate) fn rows<T: Table>(dataset: &Dataset) -> Vec<T> {
    let mut rows = Vec::new();
    dataset
        .rows(|row| {
            rows.push(row);
            Ok(())
        })
        .unwrap();
    rows
}

pub(crate) fn facts(dataset: &Dataset) -> std::collections::BTreeMap<String, String> {
    rows::<Meta>(dataset).into_iter().map(|m| (m.key, m.value)).collect()
}

#[test]
fn each_dataset_describes_what_its_rows_refer_to() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    let mut writer = create(&path, None, WALL);
    start(&mut writer);
    // A file in an object of a handle in a handle, to which only these refer.
    let entities = [process(1, None), thread(1, 1), file(1), file(2), handle(1, None, 1, None, None)];
    let more = [
        Row::FilePath(FilePath { file_id: 2, path: "/f2".to_owned(), from_ns: 7 }),
        handle(2, Some(1), 2, Some(1), None),
        object(1, 2, 2),
        named(1),
        named(2),
        call(1, 100, Some(2), Some(2), Some(1)),
        Row::Metric(Metric { t_ns: 1, name: "excluded_calls", label: None, value: 5.0 }),
        Row::Metric(Metric { t_ns: 2, name: "node_memory_bytes", label: Some("total".to_owned()), value: 8.0 }),
    ];
    let verdict = |target: &str| Coverage {
        layer: Layer::Stdio,
        target: target.to_owned(),
        symbol: String::new(),
        tier: None,
        status: "absent",
        reason: None,
        offset: None,
        insn: None,
    };
    let verdicts = [Row::Coverage(verdict("/lib/libc.so.6")), Row::Coverage(verdict(""))];
    entities.into_iter().chain(more).chain(verdicts).for_each(|row| writer.push(row).unwrap());
    writer.rotate(at(3500)).unwrap();
    // It had begun before.
    let late = [
        call(2, 2_900_000_000, Some(2), Some(2), Some(1)),
        call(3, 3_700_000_000, Some(2), Some(2), Some(1)),
        Row::Metric(Metric { t_ns: 4_000_000_000, name: "excluded_calls", label: None, value: 12.0 }),
        Row::Loss(Loss { t_ns: 4_000_000_000, layer: None, cpu: None, place: "ring", process_ix: None, count: 1 }),
        meta("end_ns", "9000000000"),
    ];
    for row in late {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap();

    assert_eq!(names(&path), ["2026-11-22T10-30-00Z", "2026-11-22T10-30-03Z"]);
    let [first, second] = datasets(&path).try_into().unwrap();
    let (first, second) = (Dataset::open(&first).unwrap(), Dataset::open(&second).unwrap());
    assert_eq!((first.warnings(), second.warnings()), (vec![], vec![]));
    // Times count from the whole second at which it began.
    let starts = |d: &Dataset| rows::<Span>(d).iter().map(|s| s.start_ns).collect::<Vec<_>>();
    assert_eq!((starts(&first), starts(&second)), (vec![100], vec![-100_000_000, 700_000_000]));
    let ends = |d: &Dataset, key: &str| facts(d)[key].clone();
    assert_eq!((ends(&first, "end_ns").as_str(), ends(&second, "end_ns").as_str()), ("3500000000", "6000000000"));
    assert_eq!((ends(&first, "t0_ns").as_str(), ends(&second, "t0_ns").as_str()), ("5000000000000", "5003000000000"));
    assert_eq!(ends(&second, "t0_wall_ns"), (WALL + 3_000_000_000).to_string());
    assert_eq!(
        (ends(&first, "run_t0_ns"), ends(&second, "run_t0_ns")),
        ("5000000000000".into(), "5000000000000".into())
    );
    assert_eq!(ends(&second, "command"), "-p 1");
    // All that the calls refer to, and what that refers to.
    for dataset in [&first, &second] {
        let ids = |ids: Vec<i32>| ids.into_iter().collect::<BTreeSet<i32>>();
        assert_eq!(ids(rows::<Process>(dataset).iter().map(|p| p.process_ix).collect()), [1].into());
        assert_eq!(ids(rows::<Thread>(dataset).iter().map(|t| t.thread_ix).collect()), [1].into());
        assert_eq!(ids(rows::<File>(dataset).iter().map(|f| f.file_id).collect()), [1, 2].into());
        assert_eq!(ids(rows::<Handle>(dataset).iter().map(|h| h.handle_id).collect()), [1, 2].into());
        assert_eq!(ids(rows::<Object>(dataset).iter().map(|o| o.object_id).collect()), [1].into());
        assert!(rows::<CallPath>(dataset).iter().filter(|p| p.path_id == 2 && p.path == "/p2").count() == 1);
    }
    assert_eq!(rows::<CallPath>(&second).len(), 1, "what only the first one named");
    assert_eq!(rows::<FilePath>(&second)[0].from_ns, 7 - 3_000_000_000);
    // Verdicts on files hold on, those on whole layers do not; totals count from the dataset's start.
    assert_eq!((rows::<Coverage>(&first).len(), rows::<Coverage>(&second).len()), (2, 1));
    // A figure of the node that has not changed is written again, with its time.
    let total = |d: &Dataset| rows::<Metric>(d).iter().map(|m| (m.t_ns, m.value as i64)).collect::<Vec<_>>();
    assert_eq!(total(&first), [(1, 5), (2, 8)]);
    assert_eq!(total(&second), [(2 - 3_000_000_000, 8), (1_000_000_000, 7)]);
    assert_eq!((rows::<Loss>(&first).len(), rows::<Loss>(&second).len()), (0, 1));
}

#[test]
fn what_is_over_is_forgotten_once_a_dataset_was_without_it() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    let mut writer = create(&path, None, WALL);
    start(&mut writer);
    let entities = [process(1, None), thread(1, 1), process(2, Some(50)), file(1), file(2), file(3), object(1, 9, 3)];
    let handles = [handle(1, None, 1, None, None), handle(2, None, 2, None, Some(60))];
    entities.into_iter().chain(handles).for_each(|row| writer.push(row).unwrap());
    let forgotten = writer.rotate(at(2000)).unwrap();
    assert_eq!((forgotten.files, forgotten.objects), (vec![], vec![]));
    // Late requests of a process that has ended.
    writer.push(bytes_of(1, 2)).unwrap();
    let forgotten = writer.rotate(at(4000)).unwrap();
    assert_eq!((forgotten.files, forgotten.objects), (vec![3], vec![1]));
    let mut forgotten = writer.rotate(at(6000)).unwrap();
    forgotten.files.sort_unstable();
    assert_eq!(forgotten.files, [2]);
    // Nothing is known of it any more; what is open is.
    writer.push(bytes_of(2, 2)).unwrap();
    writer.push(call(1, 6_500_000_000, Some(1), Some(1), None)).unwrap();
    writer.finish().unwrap();
    let processes = |d: &PathBuf| rows::<Process>(&Dataset::open(d).unwrap()).iter().map(|p| p.process_ix).collect();
    let seen: Vec<Vec<i32>> = datasets(&path).iter().map(processes).collect();
    assert_eq!(seen, [vec![1, 2], vec![2], vec![], vec![1]]);
    let last = Dataset::open(&datasets(&path)[3]).unwrap();
    assert_eq!(rows::<File>(&last).iter().map(|f| f.file_id).collect::<Vec<_>>(), [1]);
    assert_eq!(rows::<Handle>(&last).iter().map(|h| h.handle_id).collect::<Vec<_>>(), [1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Wherever it is cut, and whatever is forgotten within a dataset, every call is in one dataset, which knows the thread,
    /// process, file and handle of each.
    #[test]
    fn every_row_is_in_one_dataset(steps in proptest::collection::vec((0..14_u32, 1..30_i32), 1..150)) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("all");
        let mut writer = create(&path, None, WALL);
        start(&mut writer);
        let (mut seq, mut millis, mut cuts) = (0, 0, 0);
        writer.push(process(1, None)).unwrap();
        writer.push(thread(1, 1)).unwrap();
        let mut unknown: BTreeSet<i32> = (1..30).collect();
        let mut open = Vec::new();
        for (what, id) in steps {
            millis += 700;
            // As the correlator does: what was forgotten is described again when it is used.
            match what {
                0 | 1 => {
                    unknown.extend(writer.rotate(at(millis)).unwrap().files);
                    cuts += 1;
                }
                2 | 3 => unknown.extend(writer.tick(Duration::from_millis(millis)).unwrap().files),
                _ => {
                    seq += 1;
                    let (mut id, mut handle_id) = (id, seq as i32);
                    if let Some(before) = open.get(id as usize).filter(|_| what < 8) {
                        (id, handle_id) = *before;
                    }
                    if unknown.remove(&id) {
                        writer.push(file(id)).unwrap();
                    }
                    if handle_id == seq as i32 {
                        let end = if what < 8 { None } else { Some(i64::from(seq)) };
                        open.extend(end.is_none().then_some((id, handle_id)));
                        writer.push(handle(handle_id, None, id, None, end)).unwrap();
                    }
                    writer.push(call(seq, i64::from(millis as i32), Some(handle_id), Some(id), None)).unwrap();
                }
            }
        }
        writer.finish().unwrap();
        let datasets = datasets(&path);
        prop_assert_eq!(datasets.len(), cuts + 1);
        let mut calls = Vec::new();
        for dataset in &datasets {
            let dataset = Dataset::open(dataset).unwrap();
            let files = dataset.last_by_id::<File>().unwrap();
            let handles = dataset.last_by_id::<Handle>().unwrap();
            let threads = dataset.last_by_id::<Thread>().unwrap();
            let processes = dataset.last_by_id::<Process>().unwrap();
            for span in rows::<Span>(&dataset) {
                prop_assert!(files.contains_key(&span.file_id.unwrap()));
                prop_assert!(handles.contains_key(&span.handle_id.unwrap()));
                prop_assert!(processes.contains_key(&span.process_ix));
                prop_assert!(threads.contains_key(&((span.span_id >> SEQ_BITS) as i32)));
                calls.push(span.span_id & ((1 << SEQ_BITS) - 1));
            }
        }
        calls.sort_unstable();
        prop_assert_eq!(calls, (1..=i64::from(seq)).collect::<Vec<_>>());
    }
}

fn size(path: &Path) -> u64 {
    fs::read_dir(path).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum()
}

/// Datasets that begin at these seconds.
fn record(path: &Path, keep: Option<u64>, seconds: std::ops::Range<u64>) {
    let mut writer = create(path, keep, WALL + seconds.start * 1_000_000_000);
    start(&mut writer);
    for second in seconds.start + 1..seconds.end {
        writer.rotate(at(second * 1000)).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_restart_goes_on_beside_the_older_ones() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    record(&path, None, 0..2);
    record(&path, None, 1..3);
    let all = names(&path);
    let seconds = ["2026-11-22T10-30-00Z", "2026-11-22T10-30-01Z", "2026-11-22T10-30-01Z-2", "2026-11-22T10-30-02Z"];
    assert_eq!(all, seconds);
    for dataset in datasets(&path) {
        assert_eq!(Dataset::open(&dataset).unwrap().warnings(), []);
    }
    // Neither two at a time, nor datasets in a dataset.
    let writer = create(&path, None, WALL);
    let refusal = |path: &Path| {
        let options = Options { path, host: "n", force: false, owner: None, views: "" };
        let made = RotatingWriter::create(options, None, WALL, Arc::default(), |_: &str| {});
        made.err().unwrap().to_string()
    };
    assert!(refusal(&path).contains("is being written by another iotrace-bpf"));
    assert!(refusal(&datasets(&path)[0]).contains("is a dataset, not a directory of datasets"));
    drop(writer);
}

#[test]
fn the_oldest_are_removed_when_the_clock_was_set_back() {
    let dir = TempDir::new().unwrap();
    let (path, other) = (dir.path().join("all"), dir.path().join("other"));
    record(&other, None, 0..2);
    let one = size(&datasets(&other)[0]);
    let mut writer = create(&path, Some(4 * one), WALL + 100_000_000_000);
    start(&mut writer);
    for second in 1..8 {
        writer.rotate(at(second * 1000)).unwrap();
    }
    writer.finish().unwrap();
    // The first one has the last name.
    let left = names(&path);
    let newest: Vec<String> = (8 - left.len()..8).map(|second| format!("2026-11-22T10-30-0{second}Z")).collect();
    assert!(left.len() < 7 && left == newest, "{left:?}");
}

#[test]
fn the_oldest_complete_ones_are_removed_and_nothing_else() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    record(&path, None, 0..8);
    let one = size(&datasets(&path)[0]);
    let of = |name: &str| path.join(format!("2026-11-22T10-30-0{name}Z"));
    // Not complete: its tracer was killed.
    fs::write(of("0").join("spans-00002.parquet.inprogress"), vec![0; one as usize]).unwrap();
    // Something else in it.
    fs::write(of("1").join("notes.txt"), "mine").unwrap();
    // A link where a part was.
    let precious = dir.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    fs::remove_file(of("2").join("hist-00001.parquet")).unwrap();
    symlink(&precious, of("2").join("hist-00001.parquet")).unwrap();
    // Not ours at all: a name alone, a link to a dataset, other names.
    fs::create_dir(path.join("2026-01-01T00-00-00Z")).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    record(&elsewhere, None, 0..1);
    symlink(&datasets(&elsewhere)[0], path.join("2026-01-02T00-00-00Z")).unwrap();
    fs::rename(of("3"), path.join("kept")).unwrap();
    let before = names(&path);

    // 4 to 7 are complete. With the three that stay, one more of them and the new one have room.
    let keep = size(&of("0")) + size(&of("1")) + size(&of("2")) + 3 * one;
    record(&path, Some(keep), 8..9);
    let gone: Vec<String> = before.iter().filter(|name| !path.join(name).exists()).cloned().collect();
    assert_eq!(gone, ["4", "5"].map(|n| of(n).file_name().unwrap().to_str().unwrap().to_owned()));
    assert!(of("8").exists());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    assert_eq!(Dataset::open(&datasets(&elsewhere)[0]).unwrap().warnings(), []);

    // Less than the one that is written has no effect on that.
    record(&path, Some(1), 9..10);
    assert!(of("9").exists() && !of("8").exists() && !of("7").exists());
    assert!(of("0").exists() && of("1").exists() && of("2").exists());
    assert!(path.join("2026-01-01T00-00-00Z").exists() && path.join("kept").exists());
}
