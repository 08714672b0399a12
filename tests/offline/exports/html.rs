//! `report --html`: the page opens in a browser without an error, and what it shows is what `DuckDB` finds in the dataset.

use crate::common::sql;
use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::process::Output;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures").join(name)
}

fn report(dir: &Path, page: &Path) -> Output {
    let mut command = Command::cargo_bin("iotrace-bpf").unwrap();
    command.arg("report").arg(dir).arg("--html").arg(page).output().unwrap()
}

/// Runs a script of `tests/common/html`.
fn script(name: &str, args: &[&Path]) -> String {
    let script = root().join("tests/common/html").join(name);
    let out = std::process::Command::new(sql::python()).arg(script).args(args).output().unwrap();
    let (output, erred) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{name}: {output}{erred}");
    output.into_owned()
}

/// Makes the page of a dataset, lets a browser open it, and returns its size.
fn check(dir: &Path) -> u64 {
    let work = tempfile::tempdir().unwrap();
    let page = work.path().join("page.html");
    let out = report(dir, &page);
    assert!(out.status.success() && out.stdout.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    print!("{}", script("check.py", &[&page, dir]));
    page.metadata().unwrap().len()
}

fn synthetic(ranks: &str, steps: &str) -> u64 {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("synthetic");
    script("synthetic.py", &[&fixture("mpi_hdf5"), &dir, Path::new(ranks), Path::new(steps)]);
    check(&dir)
}

#[test]
fn a_recorded_parallel_run_is_shown() {
    let size = check(&fixture("mpi_hdf5"));
    assert!(size < 600_000, "{size}");
}

#[test]
fn sums_are_shown() {
    let size = check(&fixture("aggregate"));
    assert!(size < 600_000, "{size}");
}

#[test]
fn sixty_ranks_are_shown_one_by_one() {
    let size = synthetic("60", "50");
    assert!(size < 5_000_000, "{size}");
}

#[test]
fn thousands_of_ranks_are_shown() {
    let size = synthetic("4096", "3");
    assert!(size < 5_000_000, "{size}");
}

#[test]
fn nodes_of_a_job_are_shown_in_one_page() {
    let work = tempfile::tempdir().unwrap();
    for node in ["0", "1", "2"] {
        let args = ["4", "20", node].map(Path::new);
        let dir = work.path().join("nodes").join(node);
        script("synthetic.py", &[&[&*fixture("mpi_hdf5"), &*dir], &args[..]].concat());
    }
    check(&work.path().join("nodes"));
}

#[test]
fn a_file_that_exists_is_not_replaced() {
    let work = tempfile::tempdir().unwrap();
    let page = work.path().join("page.html");
    std::fs::write(&page, "mine").unwrap();
    let out = report(&fixture("mpi_hdf5"), &page);
    let erred = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(125) && erred.contains("page.html exists"), "{erred}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "mine");
}

#[test]
fn runs_that_have_nothing_to_do_with_each_other_are_refused() {
    let work = tempfile::tempdir().unwrap();
    let page = work.path().join("page.html");
    let out = report(&root().join("tests/fixtures"), &page);
    let erred = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(125) && erred.contains("give one: "), "{erred}");
    assert!(!page.exists());
}
