//! `iotrace-bpf compare`: what changed between runs.

use crate::common::synthetic::flushes::flushes;
use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

/// Datasets of so many flushes each.
fn datasets(work: &Path, times: &[i64]) -> Vec<String> {
    let made = times.iter().map(|n| {
        let path = work.join(format!("{n}.iotrace"));
        flushes(&path, *n);
        path.to_str().unwrap().to_owned()
    });
    made.collect()
}

/// Exit status, standard output, standard error.
fn compare(args: &[&str]) -> (Option<i32>, String, String) {
    let out = Command::cargo_bin("iotrace-bpf").unwrap().arg("compare").args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

fn figure<'a>(json: &'a Value, name: &str) -> &'a Value {
    let all = json["figures"].as_array().unwrap();
    all.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("no {name} in {all:#?}"))
}

#[test]
fn what_changed_between_two_runs_is_shown() {
    let work = tempfile::tempdir().unwrap();
    let made = datasets(work.path(), &[200, 2]);
    let (code, text, _) = compare(&[&made[0], &made[1]]);
    assert_eq!(code, Some(0));
    let line = |name: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("time"), "time 1.20 s 11.0 ms -99.1%");
    assert_eq!(line("syscall.time"), "syscall.time 1.00 s 10.0 ms -99.0%");
    assert_eq!(line("file./data/log"), "file./data/log 1.00 s 10.0 ms -99.0%");
    assert_eq!(line("sync-per-record"), "sync-per-record 1.00 s - gone");
    let (_, json, _) = compare(&[&made[1], &made[0], "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let calls = figure(&json, "syscall.calls");
    assert_eq!((calls["a"]["median"].as_f64(), calls["b"]["median"].as_f64()), (Some(2.0), Some(200.0)));
    assert_eq!((calls["change"].as_f64(), calls["noise"].as_str()), (Some(99.0), Some("unknown")));
    assert_eq!((json["findings"][0]["a_runs"].as_i64(), json["findings"][0]["b_runs"].as_i64()), (Some(0), Some(1)));
}

#[test]
fn of_several_runs_only_what_is_beyond_their_noise_fails() {
    let work = tempfile::tempdir().unwrap();
    let made = datasets(work.path(), &[100, 120, 110, 115, 125, 300, 310]);
    let runs = |from: usize, to: usize| made[from..to].iter().map(String::as_str).collect::<Vec<_>>();
    let code = |a: Vec<&str>, b: Vec<&str>, limit: &str| {
        let (code, text, _) = compare(&[&a[..], &["--fail-if", limit, "--"], &b[..]].concat());
        (code, text.contains("FAILED"))
    };
    assert_eq!(code(runs(0, 3), runs(3, 5), "time>1%"), (Some(0), false));
    assert_eq!(code(runs(0, 3), runs(5, 7), "time>1%"), (Some(3), true));
    assert_eq!(code(runs(0, 3), runs(5, 7), "time>500%"), (Some(0), false));
    assert_eq!(code(runs(5, 7), runs(0, 3), "syscall.time<-50%"), (Some(3), true));
    let (_, text, _) = compare(&[&runs(0, 3)[..], &["--"], &runs(3, 5)[..]].concat());
    assert!(text.contains("differ by no more than runs of one side do") && text.contains("within the noise"), "{text}");
}

#[test]
fn wrong_usage_is_named() {
    let work = tempfile::tempdir().unwrap();
    let made = datasets(work.path(), &[2]);
    for (args, code, why) in [
        (vec![made[0].as_str()], 2, "give two datasets: iotrace-bpf compare A B"),
        (vec![&made[0], "/nowhere"], 125, "/nowhere"),
        (vec![&made[0], &made[0], "--fail-if", "times>1%"], 2, "no figure times"),
        (vec![&made[0], &made[0], "--fail-if", "time"], 2, "expected a figure and a change"),
    ] {
        let (got, _, error) = compare(&args);
        assert!(got == Some(code) && error.contains(why), "{args:?}: {got:?} {error}");
    }
}

#[test]
fn two_ranks_of_one_dataset_stand_side_by_side() {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mpi_hdf5");
    let both = |a: &str, b: &str| compare(&[fixture, "--process", a, "--process", b, "--json"]);
    let (code, json, errors) = both("rank=0", "rank=1");
    assert_eq!(code, Some(0), "{errors}");
    let json: Value = serde_json::from_str(&json).unwrap();
    // The figures of each are those of the report on the whole.
    let report = Command::cargo_bin("iotrace-bpf").unwrap().args(["report", fixture, "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let row = |rank: i64| {
        let rows = report["ranks"]["rows"].as_array().unwrap();
        rows.iter().find(|row| row["rank"] == rank).unwrap_or_else(|| panic!("no rank {rank}"))
    };
    for (side, rank) in [("a", 0), ("b", 1)] {
        for layer in ["syscall", "mpiio", "hdf5"] {
            let ours = figure(&json, &format!("{layer}.time"))[side]["median"].as_f64().unwrap();
            let ns = row(rank)["exclusive_ns"][layer].as_i64().unwrap();
            assert!((ours - ns as f64 / 1e9).abs() < 1e-9, "{layer} of rank {rank}: {ours} s, {ns} ns");
        }
        let time = figure(&json, "time")[side]["median"].as_f64().unwrap();
        assert!((time - row(rank)["wall_ns"].as_i64().unwrap() as f64 / 1e9).abs() < 1e-9);
    }
    // A process is found by its number, too.
    let pid = row(1)["pids"][0].as_i64().unwrap();
    let (code, other, errors) = both("rank=0", &format!("pid={pid}"));
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(figure(&serde_json::from_str(&other).unwrap(), "syscall.time"), figure(&json, "syscall.time"));
    let (code, _, errors) = both("rank=0", "rank=9999");
    assert!(code == Some(2) && errors.contains("rank=9999 made no call"), "{errors}");
    let (code, _, errors) = compare(&[fixture, "--process", "rank=0"]);
    assert!(code == Some(2) && errors.contains("one dataset and two processes"), "{errors}");
    assert_eq!(both("rank=0", "node=1").0, Some(2));
}
