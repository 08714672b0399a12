//! The SQL that the dashboard shows for its tables and rows runs on the dataset that is looked at, and gives what the screens show.

use crate::common::sql;
use std::fs;
use std::path::Path;
use std::time::Duration;

use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::replay::Replay;
use iotrace_bpf::summary::view::{Grouping, Snapshot, Sums};
use iotrace_bpf::tui::{Dashboard, Key, Request, Theme};
use ratatui::layout::Size;
use serde_json::Value;
use tempfile::TempDir;

const SIZE: Size = Size { width: 120, height: 40 };

/// The recorded dataset with the parts that it was stored without, because they are empty.
fn dataset() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    let options = Options { path: &path, host: "node1", force: false, owner: None, views: VIEWS };
    DatasetWriter::create(options).unwrap().finish().unwrap();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5")).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, path.join(from.file_name().unwrap())).unwrap();
    }
    dir
}

/// A dashboard on it.
struct Shown {
    dir: TempDir,
    replay: Replay,
    dashboard: Dashboard,
}

impl Shown {
    fn new() -> Self {
        let dir = dataset();
        let mut replay = Replay::open(&dir.path().join("run.iotrace")).unwrap();
        let dashboard = Dashboard::new(&mut replay, Theme::default(), None);
        let mut shown = Self { dir, replay, dashboard };
        shown.settle();
        shown
    }

    fn settle(&mut self) {
        while self.dashboard.snapshot().loading.is_some() {
            std::thread::sleep(Duration::from_millis(5));
            self.dashboard.look(&mut self.replay);
        }
    }

    fn keys(&mut self, keys: &str) {
        for c in keys.chars() {
            let key = match c {
                '\n' => Key::Enter,
                '\t' => Key::Tab,
                '\x1b' => Key::Esc,
                c => Key::Char(c),
            };
            assert!(self.dashboard.key(key, &mut self.replay, SIZE));
            self.settle();
        }
    }

    /// The SQL that is copied after these keys.
    fn copied(&mut self, keys: &str) -> Option<String> {
        self.dashboard.request();
        self.keys(keys);
        let asked = self.dashboard.request();
        self.keys("\x1b");
        asked.map(|r| match r {
            Request::Copy(text) => text,
            Request::Save(text) => panic!("a layout was kept: {text}"),
        })
    }

    /// What the table that keys go to is asked with, answered.
    fn table(&mut self) -> Vec<Value> {
        let sql = self.copied("Sy").unwrap();
        sql::query(&self.dir.path().join("run.iotrace"), &sql)
    }

    fn now(&self) -> &Snapshot {
        self.dashboard.snapshot()
    }
}

fn number(row: &Value, name: &str) -> i64 {
    row[name].as_i64().unwrap_or_else(|| panic!("{name} of {row}"))
}

fn sums(row: &Value, time: &str) -> (i64, i64, i64, i64) {
    (number(row, "calls"), number(row, "read"), number(row, "written"), number(row, time))
}

fn of(s: &Sums) -> (i64, i64, i64, i64) {
    (s.calls, s.bytes_read, s.bytes_written, s.dur_ns)
}

/// Of what each table shows, and how many tables it is beside.
const TABLES: [(&str, usize); 10] = [
    ("1o", 3),
    ("2", 1),
    ("2f", 2),
    ("3", 1),
    ("3/file=demo.h5\n\n", 3),
    ("4", 1),
    ("4\n", 3),
    ("5", 1),
    ("7", 1),
    ("8", 3),
];

#[test]
fn every_table_and_its_rows_are_asked_in_sql() {
    // What it is, its SQL, and whether there are rows.
    let mut asked: Vec<(String, String, bool)> = Vec::new();
    let mut s = Shown::new();
    let mut ask = |s: &mut Shown, what: &str, rows: bool| {
        asked.push((format!("table, {what}"), s.copied("Sy").unwrap(), rows));
        if rows {
            asked.push((format!("row, {what}"), s.copied("y").unwrap(), true));
        }
    };
    for (keys, tables) in TABLES {
        s.keys("\x1b\x1b\x1b");
        s.keys(keys);
        for table in 0..tables {
            ask(&mut s, &format!("{table} after {keys:?}"), true);
            s.keys("\t");
        }
    }
    s.keys("\x1b\x1b");
    for keys in ["4i", "i5\nb", "4\n\t\n"] {
        s.keys(keys);
        ask(&mut s, keys, true);
        s.keys("\x1b\x1b");
    }
    // In a dataset nothing is in flight; of this one nothing was lost, and some probes are absent.
    s.keys("6");
    assert_eq!(s.copied("Sy"), None);
    s.keys("9");
    ask(&mut s, "coverage", true);
    s.keys("\t");
    ask(&mut s, "losses", false);
    s.keys("\t");
    ask(&mut s, "refused", true);
    let sql: Vec<String> = asked.iter().map(|(_, sql, _)| sql.clone()).collect();
    let answers = sql::queries(&s.dir.path().join("run.iotrace"), &sql);
    for ((what, sql, rows), answer) in asked.iter().zip(answers) {
        assert_eq!(!answer.is_empty(), *rows, "{what}: {sql}");
    }
}

#[test]
fn the_sql_of_layers_processes_and_files_gives_what_is_shown() {
    // All calls; those of a filter, with every kind of condition; those of a window.
    let filter = "1/not (layer=mpi,app or op~*seek?) and (file=demo.h5 or dur>2us) and bytes!=7 and rank=0..7\n";
    for keys in ["1", filter, "1z++"] {
        let mut s = Shown::new();
        s.keys(keys);
        let answer = s.table();
        let layers = &s.now().overview.layers;
        let shown: Vec<_> = layers.iter().filter(|l| l.sums != Sums::default()).collect();
        // A layer that had only calls inside its own is in SQL, too.
        for row in &shown {
            let name = row.layer.unwrap().name();
            let asked = answer.iter().find(|a| a["layer"] == name).unwrap_or_else(|| panic!("{name} after {keys:?}"));
            if keys.contains('z') {
                // A window is filled up to whole samples.
                assert!(number(asked, "calls") <= row.sums.calls, "{name} after {keys:?}: {asked}");
            } else {
                assert_eq!(sums(asked, "incl_ns"), of(&row.sums), "{name} after {keys:?}");
            }
        }
        if keys.contains('z') {
            continue;
        }
        for by in Grouping::ALL {
            let group = by.plural();
            s.keys(if by == Grouping::Process { "2" } else { "p" });
            let mut answer: Vec<_> = s.table().iter().map(|row| sums(row, "io_ns")).collect();
            let rows = &s.now().processes.rows;
            let mut shown: Vec<_> = rows.iter().map(|r| of(&r.sums)).collect();
            if matches!(by, Grouping::Process | Grouping::Thread) {
                answer.sort_unstable();
                shown.sort_unstable();
                assert_eq!(answer, shown, "{group} after {keys:?}");
            } else {
                let add =
                    |a: (i64, i64, i64, i64), b: &(i64, i64, i64, i64)| (a.0 + b.0, a.1 + b.1, a.2 + b.2, a.3 + b.3);
                let all = |all: &[(i64, i64, i64, i64)]| all.iter().fold((0, 0, 0, 0), add);
                assert_eq!(all(&answer), all(&shown), "{group} after {keys:?}");
            }
        }
        s.keys("3");
        let answer = s.table();
        let files = &s.now().files.rows;
        assert_eq!(answer.len(), files.len());
        for file in files {
            let asked = answer.iter().find(|a| number(a, "file_id") == i64::from(file.file_id)).unwrap();
            assert_eq!(sums(asked, "time_ns"), of(&file.sums), "{} after {keys:?}", file.path);
            let more = |name| number(asked, name);
            assert_eq!(
                (more("small"), more("opens"), more("syncs")),
                (file.small, file.opens, file.syncs),
                "{}",
                file.path
            );
            let users = (i64::from(file.readers), i64::from(file.writers));
            assert_eq!((more("readers"), more("writers"), more("failed")), (users.0, users.1, file.sums.errors));
        }
    }
}

#[test]
fn the_sql_of_the_call_tree_and_of_devices_gives_what_is_shown() {
    let mut s = Shown::new();
    s.keys("4");
    let answer = s.table();
    let nodes = &s.now().tree.nodes;
    let mut asked: Vec<_> = answer
        .iter()
        .map(|a| {
            (a["call"].as_str().unwrap().to_owned(), number(a, "calls"), number(a, "incl_ns"), number(a, "device"))
        })
        .collect();
    let mut shown: Vec<_> = nodes
        .iter()
        .map(|n| (format!("{}{}", "  ".repeat(n.depth), n.op), n.sums.calls, n.sums.dur_ns, n.device_bytes))
        .collect();
    asked.sort();
    shown.sort();
    assert_eq!(asked, shown);
    // Its slowest calls, and all calls of the node.
    s.keys("jj\n\t");
    let answer: Vec<_> = s.table().iter().map(|a| (number(a, "net_ns"), number(a, "span_id"))).collect();
    let shown: Vec<_> = s.now().node.as_ref().unwrap().slowest.iter().map(|e| e.dur_ns).collect();
    assert_eq!(answer.iter().map(|a| a.0).collect::<Vec<_>>(), shown);
    s.keys("8");
    let answer = s.table();
    for device in &s.now().devices.rows {
        let asked = answer.iter().find(|a| number(a, "dev") == i64::from(device.dev)).unwrap();
        let figures = (number(asked, "requests"), number(asked, "read"), number(asked, "written"));
        assert_eq!(figures, (device.requests, device.bytes_read, device.bytes_written), "{}", device.name);
    }
}
