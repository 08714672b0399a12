//! `whatif` on a real run: each condition is about the calls that the program made for it.

use std::fs;
use std::path::Path;

use crate::common::machine::device::Device;
use crate::common::{live, ways};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;

/// Flushes each of 200 records, and reads the file twice, first from the device.
const PROGRAM: &str = "import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
for record in range(200):
    os.write(file, b'x' * 65536)
    os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
for run in range(2):
    os.lseek(file, 0, os.SEEK_SET)
    while os.read(file, 65536):
        pass
os.close(file)";

fn answer(dataset: &Path, options: &[&str]) -> Value {
    let out = live::tracer().arg("whatif").arg(dataset).args(options).arg("--json").output().unwrap();
    assert!(out.status.success(), "{options:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn range(of: &Value) -> (f64, f64) {
    (of["low_s"].as_f64().unwrap(), of["high_s"].as_f64().unwrap())
}

#[test]
fn each_condition_is_about_the_calls_that_were_made_for_it() {
    let (work, disk) = (live::scratch(), live::scratch());
    let device = Device::new(disk.path(), "ext4");
    let name = device.name.trim_start_matches("/dev/");
    let command = [ways::python(), "-I".into(), "-S".into(), "-c".into(), PROGRAM.into(), device.mount.join("log")];
    let traced = live::trace(work.path(), &[], &command);
    let data = traced.data();
    let system = || data.layer(Layer::Syscall).filter(|span| span.layer_top && span.errno == 0);
    let flushes: i64 = system().filter(|span| span.kind == Kind::Sync).count() as i64;
    let written: i64 = system().filter(|span| span.kind == Kind::Write).map(Span::net_ns).sum();
    assert_eq!(flushes, 200);

    let json = answer(&traced.dir, &["--sync", "off", "--cache", "0", "--device", &format!("{name}=2x")]);
    let (run, calls) = (json["run_s"].as_f64().unwrap(), json["critical"]["calls_s"].as_f64().unwrap());
    let conditions: Vec<&str> =
        json["conditions"].as_array().unwrap().iter().map(|one| one["condition"].as_str().unwrap()).collect();
    assert_eq!(conditions, ["--cache 0", "--sync off", &format!("--device {name}=2x")]);
    let [cache, sync, faster] = [0, 1, 2].map(|at| &json["conditions"][at]);
    for one in [cache, sync, faster, &json["together"]] {
        let (low, high) = range(one);
        assert!(run - calls <= low && low <= high, "{one:#}");
    }
    // 200 flushes, and the writes to the file that they are of.
    assert_eq!(sync["calls"].as_i64(), Some(400), "{sync:#}");
    assert!(sync["model"].as_str().unwrap().starts_with("200 flushes took"), "{sync:#}");
    // Of the flushes nothing is left, and of the writes all that they took.
    let left = range(sync).1 - (run - sync["seconds"].as_f64().unwrap());
    assert!((left - written as f64 / 1e9).abs() <= written as f64 / 1e10, "{left} {written}");
    assert!(range(cache).0 >= run && range(faster).1 <= run && faster["calls"].as_i64() > Some(0), "{json:#}");

    let same = answer(&traced.dir, &["--device", &format!("{}=1x", device.name)]);
    assert_eq!(range(&same["together"]), (run, run));
    let cached = answer(&traced.dir, &["--cache", "all"]);
    assert!(range(&cached["together"]).1 <= run, "{cached:#}");
    let refused = live::tracer().arg("whatif").arg(&traced.dir).args(["--ranks-writing", "2"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has no ranks"));
    fs::remove_file(device.mount.join("log")).unwrap();
}
