//! Calls have the rank that the environment of their program has, also those between fork and exec; recorded one by
//! one and summed up alike.

use crate::common::{live, programs, sql};
use std::collections::BTreeMap;
use std::fs;

/// Writes by file and rank: of a launcher that has the rank `own`.
fn written(own: Option<i64>, options: &[&str], table: &str, calls: &str) -> BTreeMap<(String, Option<i64>), i64> {
    let work = live::scratch();
    let dir = work.path().join("data");
    fs::create_dir(&dir).unwrap();
    let env = own.map(|rank| ["env".to_owned(), format!("RANK={rank}")]);
    let program = [programs::build("ranked"), dir.clone()].map(|path| path.display().to_string());
    let command: Vec<String> = env.into_iter().flatten().chain(program).collect();
    let traced = live::trace(work.path(), options, &command);
    traced.data().lossless();
    let sql = format!(
        "SELECT path, rank, {calls}::BIGINT AS calls FROM {table} JOIN files USING (host, file_id)
         WHERE op = 'pwrite64' AND path LIKE '{}/%' GROUP BY path, rank",
        dir.display()
    );
    let rows = sql::query(&traced.dir, &sql);
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let row = |row: &serde_json::Value| {
        ((name(row["path"].as_str().unwrap()), row["rank"].as_i64()), row["calls"].as_i64().unwrap())
    };
    rows.iter().map(row).collect()
}

#[test]
fn calls_between_fork_and_exec_are_the_parents_rank() {
    for own in [None, Some(2)] {
        let truth = [(("after", Some(7)), 4), (("child", own), 5), (("parent", own), 3)];
        let truth: BTreeMap<_, _> = truth.map(|((name, rank), n)| ((name.to_owned(), rank), n)).into();
        assert_eq!(written(own, &[], "spans", "count(*)"), truth, "one by one");
        assert_eq!(written(own, &["--aggregate"], "file_rollup", "sum(calls)"), truth, "summed up");
    }
}
