//! `iotrace-bpf whatif` on recorded datasets: ranges, what they are made of, and what is refused.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Exit status, standard output, standard error.
fn whatif(dataset: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("iotrace-bpf").unwrap();
    let out = command.arg("whatif").arg(fixture(dataset)).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

fn answer(dataset: &str, args: &[&str]) -> Value {
    let (code, json, error) = whatif(dataset, &[args, &["--json"]].concat());
    assert_eq!(code, Some(0), "{error}");
    serde_json::from_str(&json).unwrap()
}

fn range(of: &Value) -> (f64, f64) {
    (of["low_s"].as_f64().unwrap(), of["high_s"].as_f64().unwrap())
}

#[test]
fn flushes_of_a_data_base_are_most_of_what_it_waits_for() {
    let args = ["--sync", "off", "--device", "all=2x"];
    let json = answer("report/sqlite", &args);
    let (run, calls) = (json["run_s"].as_f64().unwrap(), json["critical"]["calls_s"].as_f64().unwrap());
    let [sync, device] = [0, 1].map(|at| &json["conditions"][at]);
    assert_eq!((&sync["condition"], &device["condition"]), (&"--sync off".into(), &"--device all=2x".into()));
    let ((low, high), together) = (range(sync), range(&json["together"]));
    assert!(run - calls < low && low < high && high < run, "{json:#}");
    assert!(range(device).0 < run && range(device).1 <= run, "{json:#}");
    assert!(together.0 <= low && together.1 <= high, "{json:#}");
    assert!(sync["model"].as_str().unwrap().contains("flushes took"), "{json:#}");
    let (code, text, _) = whatif("report/sqlite", &args);
    assert_eq!(code, Some(0));
    for line in ["as recorded", "--sync off", "--device all=2x", "all together"] {
        assert!(text.lines().any(|l| l.starts_with(line)), "{line} in {text}");
    }
}

#[test]
fn a_device_as_fast_as_it_was_changes_nothing() {
    let json = answer("report/fio", &["--device", "all=1x"]);
    let run = json["run_s"].as_f64().unwrap();
    assert_eq!(range(&json["together"]), (run, run));
    let slower = answer("report/fio", &["--device", "all=0.1x"]);
    assert!(range(&slower["together"]).0 > run, "{slower:#}");
}

#[test]
fn ranks_of_a_job_write_for_each_other() {
    let json = answer("mpi_hdf5", &["--ranks-writing", "1"]);
    let (low, high) = range(&json["together"]);
    assert!(low <= high && json["critical"]["rank"].is_i64(), "{json:#}");
}

#[test]
fn wrong_options_and_what_a_trace_lacks_have_a_way_out() {
    for (dataset, args, code, why) in [
        ("report/fio", &[][..], 2, "--sync off"),
        ("report/fio", &["--sync", "on"], 2, "off"),
        ("report/fio", &["--cache", "half"], 2, "each read is in the page cache"),
        ("report/fio", &["--device", "sda"], 2, "sda=2x"),
        ("report/fio", &["--device", "sda=2x", "--device", "sda=3x"], 2, "once for each device"),
        ("report/fio", &["--ranks-writing", "0"], 2, "--ranks-writing"),
        ("report/fio", &["--ranks-writing", "2"], 125, "has no ranks"),
        ("report/fio", &["--device", "nothing=2x"], 2, "has no device nothing"),
        ("report/tar", &["--cache", "0"], 125, "page cache"),
        ("report/import", &["--device", "all=2x"], 125, "layer block is not covered"),
        ("mpi_hdf5", &["--ranks-writing", "3"], 2, "has 2 ranks"),
        ("aggregate", &["--sync", "off"], 125, "--aggregate"),
        ("nowhere", &["--sync", "off"], 125, "nowhere"),
    ] {
        let (exit, out, error) = whatif(dataset, args);
        assert_eq!(exit, Some(code), "{dataset} {args:?}: {error}");
        assert!(error.contains(why) && out.is_empty(), "{dataset} {args:?}: {error}");
    }
}
