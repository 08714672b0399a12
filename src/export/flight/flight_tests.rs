//! What is kept in memory is the last of a trace, within its bounds, and a whole dataset whenever it is written.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use crate::event::FileKey;
use crate::export::dataset::table::GROUP_ROWS;
use crate::export::flight::window::{Window, WindowSnapshot};
use crate::export::flight::{FlightWriter, Length, Why};
use crate::export::rotating::rotation_tests::{
    at, bytes_of, call, datasets, facts, file, handle, meta, named, names, object, process, rows, thread,
};
use crate::export::{Dataset, Moment, Options};
use crate::inflight::{InFlight, Open, Operation, OperationKind};
use crate::rows::{
    BlockBytes, CallPath, Coverage, File, FilePath, Handle, Hist, Loss, Metric, Object, Process, Rollup, Row, Span,
    Thread, span_id,
};
use crate::vocabulary::{Kind, Layer, flag};

const MEMORY: u64 = 1 << 20;
const HOUR: Duration = Duration::from_hours(1);
const SECOND: i64 = 1_000_000_000;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What would be written: calls by number, and what was lost.
fn written(snapshot: WindowSnapshot) -> (Vec<u32>, i64) {
    let (mut calls, mut lost) = (Vec::new(), 0);
    snapshot
        .rows(Vec::new(), |row| {
            match row {
                Row::Span(span) => calls.push(span.span_id as u32),
                Row::Loss(loss) => lost += loss.count,
                _ => {}
            }
            Ok(())
        })
        .unwrap();
    calls.sort_unstable();
    (calls, lost)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Calls come one after the other. What came since `from` is there and nothing else, and `from` is as long ago as was asked
    /// for, less a chunk, unless there was no memory.
    #[test]
    fn the_last_of_the_trace_is_kept(
        steps in proptest::collection::vec((1..400_u64, 0..300_u32), 1..80),
        ceiling in prop_oneof![Just(20_000_usize), Just(1 << 30)],
    ) {
        const LENGTH: Duration = Duration::from_secs(4);
        let mut window = Window::new(LENGTH, ceiling);
        let (mut now, mut seq, mut came) = (0, 0, Vec::new());
        for (pause, calls) in steps {
            now += pause;
            for _ in 0..calls {
                seq += 1;
                came.push((now, seq));
                window.push(call(seq, i64::from(seq), None, None, None));
            }
            if window.is_due(millis(now)) {
                window.seal(millis(now)).unwrap();
            }
            prop_assert!(ceiling > 1 << 20 || window.bytes() <= ceiling, "{} of {ceiling}", window.bytes());
        }
        window.seal(millis(now)).unwrap();
        let snapshot = window.snapshot();
        let from = snapshot.from;
        let (calls, lost) = written(snapshot);
        // What came at the very moment at which a chunk ended is in that.
        let since: Vec<u32> = came.iter().filter(|(at, _)| millis(*at) > from).map(|(_, seq)| *seq).collect();
        let before = came.iter().filter(|(at, _)| millis(*at) <= from).count();
        prop_assert!(calls.ends_with(&since) || from == Duration::ZERO, "{from:?}");
        if from == Duration::ZERO {
            prop_assert_eq!(calls.len(), came.len());
        } else {
            prop_assert_eq!(&calls, &since);
        }
        let old = came.iter().filter(|(at, _)| millis(*at) + LENGTH <= millis(now)).count();
        if ceiling > 1 << 20 {
            prop_assert!(from + LENGTH <= millis(now) || from == Duration::ZERO);
            prop_assert!(from + LENGTH + millis(800) > millis(now));
            prop_assert_eq!(lost, 0);
        } else if from > Duration::ZERO {
            // Whatever went though it was new enough is counted as lost. Chunks are as old as their last call.
            prop_assert!(lost as usize <= before);
            prop_assert!(lost as usize + old + calls.len() >= came.len());
        }
    }
}

#[test]
fn the_oldest_goes_first_when_the_memory_is_used_up() {
    let mut window = Window::new(HOUR, 100_000);
    for seq in 1..=100_000 {
        window.push(call(seq, i64::from(seq) * 1000, Some(1), Some(1), None));
        if window.is_due(millis(u64::from(seq))) {
            window.seal(millis(u64::from(seq))).unwrap();
        }
        assert!(window.bytes() <= 100_000);
    }
    window.seal(millis(100_000)).unwrap();
    let (calls, lost) = written(window.snapshot());
    assert!(!calls.is_empty() && calls.len() < 50_000, "{}", calls.len());
    let expected: Vec<u32> = (100_001 - calls.len() as u32..=100_000).collect();
    assert_eq!(calls, expected);
    assert_eq!(lost as usize + calls.len(), 100_000);
}

#[test]
fn a_chunk_ends_before_packing_it_takes_long() {
    let mut window = Window::new(HOUR, 1 << 40);
    for seq in 1..=GROUP_ROWS as u32 {
        assert!(!window.is_due(millis(1)));
        window.push(call(seq, i64::from(seq), None, None, None));
    }
    assert!(window.is_due(millis(1)));
}

#[test]
fn figures_of_the_node_and_totals_are_those_of_what_is_kept() {
    let metric = |t_ns, name, value| Row::Metric(Metric { t_ns, name, label: None, value });
    let mut window = Window::new(Duration::from_secs(10), 1 << 20);
    // Each chunk counts its own.
    window.push(metric(1, "node_a", 1.0));
    window.push(metric(1, "node_b", 5.0));
    window.push(metric(1, "excluded_calls", 3.0));
    window.seal(millis(5000)).unwrap();
    window.push(metric(2, "node_a", 2.0));
    window.push(metric(2, "excluded_calls", 4.0));
    window.push(metric(3, "excluded_calls", 6.0));
    window.seal(millis(10_000)).unwrap();
    window.push(metric(4, "excluded_calls", 1.0));
    window.seal(millis(16_000)).unwrap();
    let mut seen = Vec::new();
    window
        .snapshot()
        .rows(Vec::new(), |row| {
            if let Row::Metric(m) = row {
                seen.push((m.t_ns, m.name, m.value as i64));
            }
            Ok(())
        })
        .unwrap();
    let total = "excluded_calls";
    assert_eq!(
        seen,
        [(1, "node_a", 1), (1, "node_b", 5), (2, "node_a", 2), (2, total, 4), (3, total, 6), (4, total, 7)]
    );
}

/// Messages that the writer gave.
type Messages = Arc<Mutex<Vec<String>>>;

fn create(path: &Path, time: Duration) -> (FlightWriter, Messages) {
    create_with(path, time, None, "SELECT 1;\n")
}

fn create_with(path: &Path, time: Duration, keep: Option<u64>, views: &str) -> (FlightWriter, Messages) {
    let options = Options { path, host: "node1", force: false, owner: None, views };
    let messages = Messages::default();
    let to = Arc::clone(&messages);
    let notify = move |what: &str| to.lock().unwrap().push(what.to_owned());
    let mut writer = FlightWriter::create(options, Length { time, memory: MEMORY }, keep, notify).unwrap();
    writer.push(meta("t0_ns", "5000000000000"));
    writer.push(meta("command", "-p 1"));
    (writer, messages)
}

fn why(text: &str, millis: i64) -> Why {
    Why { text: text.to_owned(), at_ns: millis * 1_000_000, span_id: Some(span_id(1, 3)) }
}

fn write(writer: &mut FlightWriter, moment: Moment, text: &str, in_flight: Option<&InFlight>) {
    writer.ask(why(text, moment.elapsed.as_millis() as i64), in_flight.cloned().map(Arc::new));
    writer.write(moment).unwrap();
    while !writer.is_idle() {
        std::thread::yield_now();
    }
}

/// A call on a file that has not returned.
fn operation(id: i64, op: &str, file: &str) -> Operation {
    let call = Open {
        id,
        layer: Layer::Syscall,
        op: op.to_owned(),
        kind: Kind::Write,
        start_ns: 17 * SECOND,
        file: Some(file.to_owned()),
        bytes: Some(8),
        offset: None,
    };
    Operation {
        kind: OperationKind::Calls,
        id,
        start_ns: 17 * SECOND,
        age_ns: 2 * SECOND,
        pid: 102,
        tid: 102,
        comm: "app".to_owned(),
        rank: None,
        calls: vec![call],
        kernel: Vec::new(),
        user: Vec::new(),
    }
}

#[test]
fn each_dataset_is_complete_and_has_the_last_rows() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    let (mut writer, messages) = create(&path, Duration::from_secs(10));
    let entities = [process(1, None), thread(1, 1), process(2, None), thread(2, 2), file(1), file(2), file(3)];
    let more = [
        handle(1, None, 1, None, None),
        handle(2, Some(1), 2, Some(1), None),
        object(1, 2, 2),
        named(1),
        named(2),
        Row::FilePath(FilePath { file_id: 2, path: "/f2".to_owned(), from_ns: 7 }),
        call(1, SECOND, Some(2), Some(2), Some(1)),
        call(2, SECOND, None, Some(3), None),
    ];
    entities.into_iter().chain(more).for_each(|row| writer.push(row));
    for second in 1..=18 {
        writer.tick(Duration::from_secs(second)).unwrap();
    }
    // Nothing is there any more of the beginning, but of what is described in it.
    writer.push(call(3, 18 * SECOND + 5, Some(2), Some(2), Some(1)));
    // The one has returned since it was looked at, the other has not.
    let operations = [operation(span_id(1, 3), "read", "/f2"), operation(span_id(2, 9), "write", "/f1")].into();
    let now = InFlight { at_ns: 19 * SECOND, operations };
    write(&mut writer, at(20_400), "SIGUSR2", Some(&now));
    // Soon after: what is kept is in both.
    writer.push(call(4, 21 * SECOND, None, Some(1), None));
    write(&mut writer, at(22_000), "slow: a call", None);
    writer.finish().unwrap();

    assert_eq!(names(&path), ["2026-11-22T10-30-20Z", "2026-11-22T10-30-22Z"]);
    let messages = messages.lock().unwrap().join("\n");
    assert!(messages.contains("SIGUSR2: 2 calls of the last ") && messages.contains("T10-30-20Z"), "{messages}");
    let [first, second] = datasets(&path).try_into().unwrap();
    let (first, second) = (Dataset::open(&first).unwrap(), Dataset::open(&second).unwrap());
    let numbers = |d: &Dataset| rows::<Span>(d).iter().map(|s| s.span_id as u32).collect::<BTreeSet<_>>();
    assert_eq!((numbers(&first), numbers(&second)), ([3, 9].into(), [3, 4].into()));
    for dataset in [&first, &second] {
        assert_eq!(dataset.warnings(), []);
        let files = dataset.last_by_id::<File>().unwrap();
        let handles = dataset.last_by_id::<Handle>().unwrap();
        let processes = dataset.last_by_id::<Process>().unwrap();
        let threads = dataset.last_by_id::<Thread>().unwrap();
        for span in rows::<Span>(dataset) {
            assert!(files.contains_key(&span.file_id.unwrap()) && processes.contains_key(&span.process_ix), "{span:?}");
            assert!(span.handle_id.is_none_or(|id| handles.contains_key(&id)));
            assert!(threads.contains_key(&((span.span_id >> 33) as i32)));
        }
        assert!(handles.contains_key(&1) && files.contains_key(&1) && !files.contains_key(&3));
        assert_eq!(rows::<Object>(dataset).len(), 1);
        assert_eq!(rows::<CallPath>(dataset).iter().map(|p| p.path_id).collect::<Vec<_>>(), [2]);
        // Sums are of what is there.
        let calls = rows::<Rollup>(dataset).iter().map(|r| r.calls).sum::<i64>();
        assert_eq!(calls, 2);
        assert_eq!(rows::<Hist>(dataset).iter().filter(|h| h.what == "latency").map(|h| h.n).sum::<i64>(), 2);
        assert_eq!(rows::<Loss>(dataset), []);
    }
    // Times count from a whole second, at or before the oldest that is there.
    let facts = (facts(&first), facts(&second));
    let began = 5_000_000_000_000 + 10 * SECOND;
    assert_eq!(facts.0["t0_ns"], began.to_string());
    assert_eq!((facts.0["end_ns"].as_str(), facts.0["trigger_ns"].as_str()), ("10400000000", "10400000000"));
    assert_eq!((facts.0["flight_ns"].as_str(), facts.0["flight_from_ns"].as_str()), ("10000000000", "0"));
    assert_eq!((facts.0["trigger"].as_str(), facts.0["run_t0_ns"].as_str()), ("SIGUSR2", "5000000000000"));
    assert_eq!((facts.1["trigger"].as_str(), facts.1["command"].as_str()), ("slow: a call", "-p 1"));
    assert_eq!(facts.0["trigger_span_id"], span_id(1, 3).to_string());
    // What had not returned as well.
    let dump = "in flight 9.00 s after the beginning: 2\n";
    assert!(facts.0["in_flight"].starts_with(dump), "{}", facts.0["in_flight"]);
    assert!(facts.0["in_flight"].contains(&format!("write bytes 8 /f1  [{} for 2.00 s]", span_id(2, 9))));
    assert!(!facts.1.contains_key("in_flight"));
    let spans = rows::<Span>(&first);
    let unfinished: Vec<&Span> = spans.iter().filter(|s| s.flags & flag::UNFINISHED != 0).collect();
    let [stuck] = unfinished.as_slice() else { panic!("{unfinished:?}") };
    assert_eq!((stuck.op, stuck.file_id, stuck.process_ix, stuck.dur_ns), ("write", Some(1), 2, 2 * SECOND));
    assert_eq!(stuck.start_ns, 17 * SECOND - 10 * SECOND);
}

#[test]
fn a_call_in_flight_is_on_the_last_file_that_has_its_path() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    let (mut writer, _) = create(&path, Duration::from_secs(30));
    writer.push(process(2, None));
    writer.push(thread(2, 2));
    // A request of a device has a number of its own, which may be that of a call.
    let request = Operation { kind: OperationKind::Request, ..operation(span_id(2, 9), "write", "/f30") };
    for (file_id, unlinked) in (1..=20).map(|id| (id, false)).chain([(21, true), (22, true)]) {
        let key = FileKey { ino: file_id as u64, ..FileKey::default() };
        writer.push(Row::File(Box::new(File {
            path: Some("/f".to_owned()),
            unlinked,
            ..File::placeholder(file_id, key)
        })));
    }
    writer.push(file(30));
    let operations = vec![operation(span_id(2, 9), "write", "/f"), request];
    write(&mut writer, at(19_000), "SIGUSR2", Some(&InFlight { at_ns: 19 * SECOND, operations }));
    writer.finish().unwrap();
    let dataset = Dataset::open(&datasets(&path)[0]).unwrap();
    assert_eq!(rows::<Span>(&dataset).iter().map(|s| s.file_id).collect::<Vec<_>>(), [Some(20)]);
}

#[test]
fn what_is_over_is_remembered_for_what_comes_late() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    let (mut writer, _) = create(&path, Duration::from_secs(4));
    writer.push(process(1, Some(5)));
    writer.push(file(1));
    // Chunks of a quarter of a second.
    for quarter in 1..=6 {
        writer.tick(millis(quarter * 250)).unwrap();
    }
    writer.push(bytes_of(1, 1));
    write(&mut writer, at(8000), "SIGUSR2", None);
    writer.finish().unwrap();
    let [dataset] = datasets(&path).try_into().unwrap();
    let dataset = Dataset::open(&dataset).unwrap();
    assert_eq!(rows::<BlockBytes>(&dataset).len(), 1);
    assert!(dataset.last_by_id::<Process>().unwrap().contains_key(&1));
    assert!(dataset.last_by_id::<File>().unwrap().contains_key(&1));
}

/// A message follows each dataset, and here it blocks the thread that writes.
#[test]
fn a_slow_disk_costs_no_dataset_its_rows() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    let (go_on, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let options = Options { path: &path, host: "node1", force: false, owner: None, views: "SELECT 1;\n" };
    let length = Length { time: Duration::from_secs(4), memory: MEMORY };
    let mut writer = FlightWriter::create(options, length, None, move |_: &str| {
        let _ = blocked.lock().unwrap().recv();
    })
    .unwrap();
    writer.push(process(1, None));
    let layer = Coverage {
        target: String::new(),
        layer: Layer::Hdf5,
        symbol: String::new(),
        status: "absent",
        tier: None,
        reason: None,
        offset: None,
        insn: None,
    };
    let mut now = 0;
    let mut ask = |writer: &mut FlightWriter, seq: u32, text: &str| {
        now += 1000;
        writer.push(call(seq, now * 1_000_000, None, None, None));
        // Asked what it saw twice.
        writer.push(Row::Coverage(layer.clone()));
        writer.push(Row::Coverage(layer.clone()));
        writer.ask(why(text, now), None);
        let room = writer.has_room();
        if room {
            writer.write(at(now as u64)).unwrap();
        }
        room
    };
    assert!(ask(&mut writer, 1, "first") && ask(&mut writer, 2, "second"));
    // All that they have is forgotten by then.
    for second in 3..=9 {
        writer.tick(Duration::from_secs(second)).unwrap();
    }
    assert!(!ask(&mut writer, 3, "third") && !ask(&mut writer, 4, "fourth") && !ask(&mut writer, 5, "third"));
    // At the end there is no other time for it.
    writer.ask(Why { text: "crash".to_owned(), at_ns: 7, span_id: None }, None);
    writer.write(at(11_000)).unwrap();
    drop(go_on);
    writer.finish().unwrap();
    let all: Vec<_> = datasets(&path).iter().map(|d| Dataset::open(d).unwrap()).collect();
    let seen: Vec<_> = all.iter().map(|d| (facts(d)["trigger"].clone(), calls(d), rows::<Coverage>(d).len())).collect();
    let expected = [("first", vec![1], 1), ("second", vec![1, 2], 1), ("third; fourth; crash", vec![3, 4, 5], 1)];
    assert_eq!(seen, expected.map(|(trigger, calls, verdicts)| (trigger.to_owned(), calls, verdicts)));
}

fn calls(dataset: &Dataset) -> Vec<u32> {
    let mut calls: Vec<_> = rows::<Span>(dataset).iter().map(|s| s.span_id as u32).collect();
    calls.sort_unstable();
    calls
}

#[test]
fn a_directory_that_cannot_be_written_to_costs_one_dataset() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    let (mut writer, messages) = create(&path, Duration::from_secs(10));
    writer.push(process(1, None));
    writer.push(thread(1, 1));
    writer.push(call(1, 5, None, None, None));
    // Removed: it is made again.
    fs::remove_dir(&path).unwrap();
    write(&mut writer, at(1000), "first", None);
    assert_eq!(names(&path), ["2026-11-22T10-30-01Z"]);
    // Something else is where it was.
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "mine").unwrap();
    write(&mut writer, at(2000), "second", None);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::remove_file(&path).unwrap();
    write(&mut writer, at(3000), "third", None);
    assert_eq!(names(&path), ["2026-11-22T10-30-03Z"]);
    assert_eq!(rows::<Span>(&Dataset::open(&datasets(&path)[0]).unwrap()).len(), 1);
    let failure = format!("{:#}", writer.finish().unwrap_err());
    assert!(
        failure.contains("1 of 3 datasets could not be written") && failure.contains("is not a directory"),
        "{failure}"
    );
    let messages = messages.lock().unwrap();
    assert!(messages[1].contains("second: warning: no dataset could be written to"), "{messages:?}");
    assert_eq!(messages.len(), 3);
}

#[test]
fn the_oldest_datasets_go_when_all_are_too_large() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    // Most of a dataset, which is no part of it.
    let views = format!("-- {}\n", "x".repeat(1 << 20));
    let keep = 5 << 19;
    let (mut writer, messages) = create_with(&path, Duration::from_secs(30), Some(keep), &views);
    writer.push(call(1, 5, None, None, None));
    for second in 1..=4 {
        write(&mut writer, at(second * 1000), "SIGUSR2", None);
    }
    writer.finish().unwrap();
    assert_eq!(names(&path), ["2026-11-22T10-30-03Z", "2026-11-22T10-30-04Z"]);
    let all: u64 = datasets(&path)
        .iter()
        .flat_map(|d| fs::read_dir(d).unwrap())
        .map(|f| f.unwrap().metadata().unwrap().len())
        .sum();
    assert!(all > 1 << 21 && all <= keep, "{all}");
    assert!(messages.lock().unwrap().iter().all(|line| !line.contains("warning")), "{messages:?}");

    // One that is too large by itself stays, with one warning.
    let (mut writer, messages) = create_with(&path, Duration::from_secs(30), Some(1 << 20), &views);
    for second in 5..=6 {
        write(&mut writer, at(second * 1000), "SIGUSR2", None);
    }
    writer.finish().unwrap();
    assert_eq!(names(&path), ["2026-11-22T10-30-06Z"]);
    let messages = messages.lock().unwrap();
    let warnings: Vec<_> = messages.iter().filter(|line| line.starts_with("warning: ")).collect();
    let [first, second] = warnings.as_slice() else { panic!("{messages:?}") };
    assert!(first.contains("all/2026-11-22T10-30-05Z alone has 1."), "{first}");
    assert!(second.contains("T10-30-06Z alone has "), "{second}");
}

#[test]
fn nothing_is_written_when_nothing_asks() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("all");
    let (mut writer, messages) = create(&path, Duration::from_secs(1));
    writer.push(call(1, 5, None, None, None));
    writer.tick(Duration::from_secs(9)).unwrap();
    writer.finish().unwrap();
    assert_eq!(names(&path), <[&str; 0]>::default());
    assert_eq!(*messages.lock().unwrap(), ["no dataset was written: nothing asked for one"]);
}
