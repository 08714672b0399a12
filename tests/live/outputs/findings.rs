//! The first part of the report names what is wrong with a real program, and is silent about the same one fixed.

use crate::common::live;
use crate::common::machine::device::{Device, run};
use crate::common::ways;
use iotrace_bpf::analysis::findings::rules::RULES;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Flushes a log after each of so many records, or once.
const LOG: &str = "import os, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)
for record in range(4000):
    os.write(log, b'x' * 128)
    if sys.argv[2] == 'each':
        os.fsync(log)
os.fsync(log)";

fn trace(work: &Path, how: &str, options: &[&str]) -> PathBuf {
    let log = work.join("log");
    let command = [ways::python(), "-I".into(), "-S".into(), "-c".into(), LOG.into(), log, how.into()];
    let traced = live::trace(work, options, &command);
    assert_eq!(traced.code, Some(0), "{}", traced.stderr);
    traced.dir
}

fn with_duckdb() -> Command {
    let python = crate::common::sql::python();
    let path = format!("{}:{}", python.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut tracer = live::tracer();
    tracer.env("PATH", path);
    tracer
}

fn report(dataset: &Path, options: &[&str]) -> Output {
    with_duckdb().arg("report").arg(dataset).args(options).output().unwrap()
}

fn rules(dataset: &Path) -> Vec<String> {
    let json: Value = serde_json::from_slice(&report(dataset, &["--json"]).stdout).unwrap();
    json["findings"].as_array().unwrap().iter().map(|f| f["rule"].as_str().unwrap().to_owned()).collect()
}

fn code(dataset: &Path, options: &[&str]) -> Option<i32> {
    report(dataset, options).status.code()
}

#[test]
fn a_program_that_flushes_each_record_is_told_apart_from_one_that_does_not() {
    let (each, once) = (live::scratch(), live::scratch());
    let (bad, good) = (trace(each.path(), "each", &[]), trace(once.path(), "once", &[]));
    assert_eq!(rules(&bad).first().map(String::as_str), Some("sync-per-record"));
    assert!(!rules(&good).contains(&"sync-per-record".to_owned()), "{:?}", rules(&good));

    let text = String::from_utf8(report(&bad, &[]).stdout).unwrap();
    // Behind the head, which has a line more where the kernel did not run our program for the end of a request.
    let (head, found) = text.split_once("\n\nFindings\n").unwrap();
    assert!(head.lines().count() <= 3 && head.starts_with("command "), "{text}");
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines[0].contains("sync-per-record"), "{text}");
    assert!(lines[1].contains("4001 flushes by fsync") && lines[1].contains("/log"), "{text}");

    for limit in ["sync-per-record", "warn"] {
        assert_eq!([&bad, &good].map(|dir| code(dir, &["--fail-on", limit])), [Some(3), Some(0)], "{limit}");
    }
    let settings = each.path().join("rules.toml");
    fs::write(&settings, "[sync-per-record]\ncalls = 10000\n").unwrap();
    let settings = settings.to_str().unwrap();
    assert_eq!(code(&bad, &["--rules", settings, "--fail-on", "sync-per-record"]), Some(0));
    assert_eq!(code(&bad, &["--rules", "/nowhere", "--json"]), Some(2));
    let own = "[mine]\nadvice = 'do not'\nsql = \"SELECT count(*) || ' flushes' AS what, 1.5 AS seconds, any_value(path) AS path \
               FROM v_calls WHERE op = 'fsync';\"\n[wrong]\nsql = 'FROM nothing'\n";
    let settings = each.path().join("own.toml");
    fs::write(&settings, own).unwrap();
    let json = report(&bad, &["--json", "--rules", settings.to_str().unwrap()]).stdout;
    let json: Value = serde_json::from_slice(&json).unwrap();
    let mine = json["findings"].as_array().unwrap().iter().find(|f| f["rule"] == "mine").unwrap();
    assert_eq!((mine["title"].as_str(), mine["advice"].as_str()), (Some("4001 flushes"), Some("do not")));
    assert!(mine["evidence"]["files"][0].as_str().unwrap().ends_with("/log"), "{mine}");
    let wrong = json["not_evaluated"].as_array().unwrap().iter().find(|r| r["rule"] == "wrong").unwrap();
    assert!(wrong["why"].as_str().unwrap().contains("nothing"), "{wrong}");
}

#[test]
fn sums_decide_the_rules_that_need_no_single_calls() {
    let work = live::scratch();
    let dataset = trace(work.path(), "each", &["--aggregate"]);
    assert_eq!(rules(&dataset).first().map(String::as_str), Some("sync-per-record"));
    let json: Value = serde_json::from_slice(&report(&dataset, &["--json"]).stdout).unwrap();
    let skipped = json["not_evaluated"].as_array().unwrap();
    assert!(
        skipped.iter().any(|rule| rule["rule"] == "reread" && rule["why"].as_str().unwrap().contains("--aggregate"))
    );
}

/// The query of each rule is one that `DuckDB` takes: over the views of a real dataset.
#[test]
fn the_queries_of_all_rules_run() {
    let work = live::scratch();
    let dataset = trace(work.path(), "once", &[]);
    let all: Vec<&str> = RULES.iter().map(|rule| rule.sql).collect();
    let out = with_duckdb().arg("sql").arg(&dataset).arg(all.join(";\n")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// The title of what a rule found.
fn title(dataset: &Path, rule: &str) -> Option<String> {
    let json: Value = serde_json::from_slice(&report(dataset, &["--json"]).stdout).unwrap();
    let found = json["findings"].as_array().unwrap().iter().find(|f| f["rule"] == rule)?;
    Some(found["title"].as_str().unwrap().to_owned())
}

#[test]
fn another_program_on_the_same_device_is_named() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let file = device.mount.join("file");
    fs::write(&file, vec![1; 192 << 20]).unwrap();
    run("sync", &[]);
    let input = format!("if={}", file.display());
    let reads = |name: &str| {
        let into = work.path().join(name);
        fs::create_dir(&into).unwrap();
        let command: [std::ffi::OsString; 6] =
            ["dd", &input, "of=/dev/null", "bs=64K", "iflag=direct", "status=none"].map(Into::into);
        let traced = live::trace(&into, &[], &command);
        assert_eq!(traced.code, Some(0), "{}", traced.stderr);
        traced.dir
    };
    let alone = reads("alone");
    assert_eq!(title(&alone, "interference"), None);

    let mut other = Command::new("fio")
        .args(["--name=other", "--thread", "--rw=randread", "--bs=1M", "--direct=1", "--time_based", "--runtime=300"])
        .arg(format!("--filename={}", device.name))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let before = device.counters()[0];
    live::until("the other program to read", || device.counters()[0] > before + 100);
    let beside = reads("beside");
    let _ = other.kill();
    let _ = other.wait();
    let found = title(&beside, "interference").unwrap();
    assert!(found.starts_with(&format!("process {} moved ", other.id())), "{found}");
}
