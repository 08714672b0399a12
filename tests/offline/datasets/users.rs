//! A dataset with processes of several users, as `--system` records it: the copy for one of them, by the query of docs/security.md.

use crate::common::sql;
use crate::common::synthetic::trace::{Trace, file, meta, process};
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::{Process, Row};
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The user of the query, and another one.
const MINE: i32 = 1000;
const OTHERS: i32 = 1001;

/// The views of the dataset, the query, and what it has copied: calls, their time, and files, by user.
const COPY: &str = r#"
import duckdb, json, sys
db = duckdb.connect()
db.execute(open("views.sql").read())
db.execute(sys.argv[1])
columns = [column[0] for column in db.execute("FROM spans LIMIT 0").description]
copied = db.execute("FROM 'mine.parquet' LIMIT 0").description
assert [column[0] for column in copied] == columns, copied
print(json.dumps(db.execute("""SELECT p.uid, count(*), sum(c.dur_ns)::BIGINT, list(DISTINCT c.file_id ORDER BY c.file_id)
    FROM 'mine.parquet' c JOIN processes p USING (host, process_ix) GROUP BY ALL ORDER BY ALL""").fetchall()))
"#;

#[test]
fn the_copy_for_a_user_has_all_calls_of_that_user_and_no_other() {
    let mut t = Trace::default();
    for (key, value) in [("t0_ns", "5"), ("run_t0_ns", "5"), ("t0_wall_ns", "1795320368281144293"), ("end_ns", "9000")]
    {
        t.row(meta(key, value));
    }
    // Threads are processes here; those of both users take turns, and one of each has called nothing.
    for (ix, uid) in [(1, MINE), (2, OTHERS), (3, MINE), (4, OTHERS), (5, MINE)] {
        let Row::Process(row) = process(ix, None) else { panic!("no process") };
        t.row(Row::Process(Box::new(Process { uid, ..*row })));
    }
    for id in 1..=4 {
        t.row(file(id, &format!("/home/{id}")));
    }
    for round in 0..10 {
        for thread in 1..=4 {
            let write = (Layer::Syscall, "write", Kind::Write);
            let at = t.call(thread, None, write, round * 100 + i64::from(thread), 10_i64.pow(thread));
            t.moved(at, thread as i32, 4096);
        }
    }
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("run");
    let options = Options { path: &dir, host: "n1", force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    t.finish().into_iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();

    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md")).unwrap();
    let query = text.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(query.contains(&format!("p.uid = {MINE}")), "{query}");
    let copied = |query: &str| -> Value {
        let mut python = Command::new(sql::python());
        let out = python.args(["-c", COPY, query]).current_dir(&dir).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    assert_eq!(copied(query), serde_json::json!([[MINE, 20, 10 * (10 + 1000), [1, 3]]]));
    let others = query.replace(&MINE.to_string(), &OTHERS.to_string());
    assert_eq!(copied(&others), serde_json::json!([[OTHERS, 20, 10 * (100 + 10_000), [2, 4]]]));
}
