//! `iotrace-bpf tune` on recorded datasets: what it refuses, and where there is nothing to try.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tune(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).arg("tune").args(arguments).output().unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/report").join(name)
}

#[test]
fn wrong_command_lines_are_refused() {
    for (arguments, why) in [
        (&[][..], "required"),
        (&["--runs", "1", "--", "true"], "1 is not in 2.."),
        (&["x", "--prepare", "true"], "required"),
        (&["x", "--dir", "/tmp", "--", "true"], "cannot be used with"),
    ] {
        let out = tune(arguments);
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(why), "{arguments:?}: {stderr}");
    }
    let out = tune(&["/nowhere", "--", "true"]);
    assert_eq!(out.status.code(), Some(125));
    assert!(String::from_utf8(out.stderr).unwrap().contains("/nowhere"));
}

#[test]
fn what_no_setting_changes_is_named() {
    let dataset = fixture("sqlite");
    let marker = tempfile::tempdir().unwrap();
    let ran = marker.path().join("ran");
    let out = tune(&[dataset.to_str().unwrap(), "--", "touch", ran.to_str().unwrap()]);
    let stdout = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{stdout}");
    let first = stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("No setting changes what was found: ") && first.contains("sync-per-record"), "{stdout}");
    assert!(stdout.contains("iotrace-bpf tune DIR"), "{stdout}");
    // Nothing to try: the command is not run at all.
    assert!(!ran.exists());
}
