//! Datasets as archives of OTF2 and logs of Darshan, and what their own programs read in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::sql;

/// `iotrace-bpf export`, with the Python of the tests first in PATH.
pub fn export(dir: &Path, to: &str, output: &Path) -> Output {
    let bin = sql::python().parent().unwrap().to_owned();
    let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())));
    let mut command = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
    command.arg("export").arg(dir).args(["--to", to, "-o"]).arg(output).env("PATH", path.unwrap());
    command.output().unwrap()
}

fn exported(dir: &Path, to: &str, work: &Path) -> PathBuf {
    let output = work.join(format!("export.{to}"));
    let out = export(dir, to, &output);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // Nothing is left beside it.
    let hidden =
        std::fs::read_dir(work).unwrap().filter(|e| e.as_ref().unwrap().file_name().as_encoded_bytes()[0] == b'.');
    assert_eq!(hidden.count(), 0);
    output
}

/// What a script says of an export, in the directory of its dataset.
fn checked(script: &str, dir: &Path, export: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/readers").join(script);
    let out = Command::new(sql::python()).arg(script).arg(export).current_dir(dir).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Compares what `otf2-print` shows of a dataset with its rows; how many events of each kind there are.
pub fn otf2(dir: &Path, work: &Path) -> Value {
    let archive = exported(dir, "otf2", work);
    serde_json::from_str(&checked("otf2_counts.py", dir, &archive)).unwrap()
}

/// Compares what `PyDarshan` reads of a dataset with its rows; the log, and the counters of all records.
pub fn darshan(dir: &Path, work: &Path) -> (PathBuf, Value) {
    let log = exported(dir, "darshan", work);
    let read = checked("darshan_log.py", dir, &log);
    (log, serde_json::from_str(&read).unwrap())
}
