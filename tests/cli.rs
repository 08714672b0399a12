//! The command line: help, wrong usage and what cannot be read; nothing here needs root.
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::str::contains;

fn run(args: &[&str]) -> Assert {
    let mut command = Command::cargo_bin("iotrace-bpf").unwrap();
    // The width that help is wrapped to.
    command.args(args).env_remove("COLUMNS").assert()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

#[test]
fn help() {
    insta::assert_snapshot!(stdout(&run(&["--help"]).success()));
}

#[test]
fn help_of_report() {
    insta::assert_snapshot!(stdout(&run(&["report", "--help"]).success()));
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_is_wrong() {
    let cases: [(&[&str], &str); 14] = [
        (&[], "<COMMAND>..."),
        (&["--frob", "--", "true"], "--frob"),
        (&["./app"], "A command to trace goes after --"),
        (&["-p", "abc"], "expected the number of a process"),
        (&["-p", "1,x"], "'x'"),
        (&["-p", "0"], "expected the number of a process"),
        (&["-p", "1", "--", "true"], "cannot be used with"),
        (&["--layers", "vfs", "--", "true"], "no probes for that layer"),
        (&["--layers", "disk", "--", "true"], "layers are: netcdf"),
        (&["--duration", "1y", "--", "true"], "unknown unit"),
        (&["--ring-size", "1", "--", "true"], "expected 1M to 64G"),
        (&["--force", "--", "true"], "--output"),
        (&["report"], "<DIR>"),
        (&["probes", "frob"], "frob"),
    ];
    for (args, says) in cases {
        run(args).code(2).stderr(contains(says)).stdout("");
    }
}

#[test]
fn what_is_no_dataset_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (missing, file, other) = (dir.path().join("missing"), dir.path().join("file"), dir.path().join("other"));
    std::fs::write(&file, "text").unwrap();
    std::fs::create_dir(&other).unwrap();
    for (path, says) in [(&missing, "No such file"), (&file, "not a directory"), (&other, "is no dataset")] {
        let path = path.to_str().unwrap();
        run(&["report", path]).code(125).stderr(contains(path)).stderr(contains(says)).stdout("");
    }
    std::fs::write(other.join("spans-00001.parquet"), "text").unwrap();
    run(&["report", other.to_str().unwrap()]).code(125).stderr(contains("spans-00001.parquet: not readable"));
}

#[test]
fn the_catalog_is_listed() {
    let list = stdout(&run(&["probes", "list"]).success());
    let line = list.lines().find(|l| l.contains("MPI_File_write_at_all")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["Open", "MPI", "MPI_File_write_at_all", "mpiio", "write"]);
}
