//! `iotrace-bpf sql`: answers from any directory by what there is of `DuckDB`, and names how to get it where there is
//! none.

use crate::common::sql;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use tempfile::TempDir;

/// The recorded dataset with the parts that it was stored without, because they are empty.
pub fn dataset(path: &Path) {
    let options = Options { path, host: "vm", force: false, owner: None, views: VIEWS };
    DatasetWriter::create(options).unwrap().finish().unwrap();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5")).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, path.join(from.file_name().unwrap())).unwrap();
    }
}

/// A directory with nothing but these programs.
fn programs(dir: &TempDir, all: &[(&str, &str)]) -> PathBuf {
    let path = dir.path().join("bin");
    fs::create_dir_all(&path).unwrap();
    for (name, script) in all {
        fs::write(path.join(name), script).unwrap();
        fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    path
}

fn venv() -> PathBuf {
    sql::python().parent().unwrap().to_owned()
}

/// Asks from another directory.
fn ask(path: &Path, dir: &Path, query: &[&str], input: &str) -> Output {
    let elsewhere = tempfile::tempdir().unwrap();
    // What is of the same name there is not taken for DuckDB.
    fs::write(elsewhere.path().join("duckdb.py"), "raise SystemExit(77)").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
    command.arg("sql").arg(dir).args(query).env("PATH", path).current_dir(elsewhere.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_query_is_answered_from_any_directory() {
    let dir = tempfile::tempdir().unwrap();
    // Of names that quotes and patterns are made of, too.
    for name in ["run.iotrace", "it's", "run[1]*"] {
        let path = dir.path().join(name);
        dataset(&path);
        let layers = sql::query(&path, "SELECT layer, calls FROM v_layers");
        assert!(layers.len() > 3);
        let lines = layers.iter().map(|row| format!("{},{}\n", row["layer"].as_str().unwrap(), row["calls"]));
        let truth = format!("layer,calls\n{}", lines.collect::<String>());
        let output = ask(&venv(), &path, &["SELECT layer, calls FROM v_layers"], "");
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(0), truth.clone()),
            "{name}: {}",
            text(&output.stderr)
        );
        // What is piped is answered, too.
        let piped = ask(&venv(), &path, &[], "SET threads = 1; SELECT layer, calls FROM v_layers;");
        assert_eq!((piped.status.code(), text(&piped.stdout)), (Some(0), truth), "{}", text(&piped.stderr));
    }
    let wrong = ask(&venv(), &dir.path().join("it's"), &["SELECT nothing FROM v_layers"], "");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("nothing") && wrong.stdout.is_empty(), "{}", text(&wrong.stderr));
}

#[test]
fn the_program_is_taken_first_and_gets_the_views() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    dataset(&path);
    let script = "#!/bin/sh\necho \"$1 $3 $4|$5\"; read -r first < \"$2\"; echo \"$first\"; exit 7\n";
    let bin = programs(&dir, &[("duckdb", script), ("python3", "#!/bin/sh\nexit 0\n")]);
    let output = ask(&bin, &path, &["FROM v_ops"], "");
    let expected = format!("-init -csv -c|FROM v_ops\nSET VARIABLE iotrace_dir = '{}';\n", path.display());
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), expected), "{}", text(&output.stderr));
}

#[test]
fn without_duckdb_the_error_has_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    dataset(&path);
    for bin in [&[][..], &[("python3", "#!/bin/sh\nexit 1\n")]] {
        let output = ask(&programs(&dir, bin), &path, &["FROM v_ops"], "");
        assert_eq!(output.status.code(), Some(125));
        assert!(text(&output.stderr).contains("pip install duckdb"), "{}", text(&output.stderr));
    }
    let none = ask(&venv(), dir.path().parent().unwrap().join("nothing-here").as_path(), &["FROM v_ops"], "");
    assert_eq!(none.status.code(), Some(125));
    assert!(text(&none.stderr).contains("holds no dataset"), "{}", text(&none.stderr));
}
