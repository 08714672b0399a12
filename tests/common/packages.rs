//! Packages of the tracer under test, made as `cargo xtask dist` makes those of a release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
pub const TRACER: &str = env!("CARGO_BIN_EXE_iotrace-bpf");

/// Makes all of them in a directory.
pub fn make(dir: &Path) {
    let mut cargo = Command::new("cargo");
    cargo.args(["xtask", "dist", "--tracer", TRACER, "--output"]).arg(dir).current_dir(ROOT);
    // Two tests may do this at a time; each has its own directory to work in, beside its packages.
    output(&mut cargo);
}

/// The one whose name ends so.
pub fn ending(dir: &Path, end: &str) -> PathBuf {
    let mut all = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    all.find(|path| path.to_str().unwrap().ends_with(end)).unwrap_or_else(|| panic!("no {end} in {}", dir.display()))
}

/// What a program that must succeed writes.
pub fn output(command: &mut Command) -> String {
    let out =
        command.output().unwrap_or_else(|e| panic!("{}: {e}: cargo xtask setup", command.get_program().display()));
    let [text, errors] = [out.stdout, out.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(out.status.success(), "{command:?}: {}\n{text}\n{errors}", out.status);
    text
}
