//! The report of recorded runs, as people and programs get it.

use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::cargo::CommandCargoExt as _;
use insta::assert_snapshot;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// What `report` prints of a recorded run, and whether it ends well; what it prints on stderr otherwise.
fn output(name: &str, options: &[&str], variables: &[(&str, &str)]) -> Result<String, String> {
    let mut command = Command::cargo_bin("iotrace-bpf").unwrap();
    command.env_remove("COLUMNS").env_remove("NO_COLOR").envs(variables.iter().copied());
    let out = command.arg("report").arg(fixture(name)).args(options).output().unwrap();
    let (text, erred) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    if out.status.success() { Ok(text) } else { Err(format!("{:?} {erred}", out.status.code())) }
}

fn report(name: &str, options: &[&str]) -> String {
    output(name, options, &[]).unwrap()
}

#[test]
fn sqlite() {
    assert_snapshot!(report("report/sqlite", &["--width", "100"]));
}

#[test]
fn tar() {
    assert_snapshot!(report("report/tar", &["--width", "80"]));
}

#[test]
fn fio() {
    assert_snapshot!(report("report/fio", &["--width", "120"]));
}

#[test]
fn import() {
    assert_snapshot!(report("report/import", &[]));
}

#[test]
fn hdf5_of_four_ranks() {
    assert_snapshot!(report("report/hdf5", &["--width", "120"]));
}

#[test]
fn aggregate() {
    assert_snapshot!(report("aggregate", &["--width", "120"]));
}

#[test]
fn all_sections() {
    assert_snapshot!(report("report/hdf5", &["--width", "120", "--section", "all", "--top", "3"]));
}

#[test]
fn lines_fit_and_have_no_colour_where_there_is_no_terminal() {
    for name in ["report/sqlite", "report/hdf5", "aggregate"] {
        for width in [60, 80, 200] {
            let columns = width.to_string();
            let all = ["--section", "all", "--top", "100"];
            for line in output(name, &all, &[("COLUMNS", &columns)]).unwrap().lines() {
                assert!(line.chars().count() <= width && !line.contains('\x1b'), "{name} {width}: {line}");
            }
            let by_option = report(name, &["--width", &columns]);
            assert_eq!(by_option, output(name, &[], &[("COLUMNS", &columns)]).unwrap());
        }
        assert!(!report(name, &["--section", "files", "--top", "1000"]).contains('…'), "{name}");
    }
}

#[test]
fn sections_are_chosen_in_any_order_and_wrong_names_are_answered() {
    let text = report("report/tar", &["--section", "errors,files"]);
    let (errors, files) = (text.find("\nErrors: ").unwrap(), text.find("\nFiles: ").unwrap());
    assert!(errors < files && !text.contains("Findings"), "{text}");
    let error = output("report/tar", &["--section", "file"], &[]).unwrap_err();
    assert!(error.starts_with("Some(2)") && error.contains("sections are: all, run, findings"), "{error}");
    let error = output("report/tar", &["--where", "durr>1"], &[]).unwrap_err();
    assert!(error.starts_with("Some(2)") && error.contains("is no field"), "{error}");
    let error = output("report/tar", &["--sort", "weight"], &[]).unwrap_err();
    assert!(error.contains("columns are: ") && error.contains("time_ns"), "{error}");
    let error = output("report/tar", &["--format", "csv"], &[]).unwrap_err();
    assert!(error.contains("choose it with --section"), "{error}");
    let error = output("aggregate", &["--where", "dur>1ms"], &[]).unwrap_err();
    assert!(error.contains("by layer, op, kind, file, pid and rank only"), "{error}");
}

/// The rows of a table.
fn csv(name: &str, options: &[&str]) -> Vec<std::collections::BTreeMap<String, String>> {
    let text = report(name, &[&["--format", "csv"], options].concat());
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn csv_has_all_rows_and_the_figures_of_json() {
    let json: serde_json::Value = serde_json::from_str(&report("report/tar", &["--json"])).unwrap();
    assert_eq!(report("report/tar", &["--json"]), report("report/tar", &["--format", "json"]));
    let functions = csv("report/tar", &["--section", "functions"]);
    let layer = &json["layers"].as_array().unwrap()[0];
    assert_eq!(layer["layer"], "syscall");
    assert_eq!(functions.len(), layer["ops"].as_array().unwrap().len());
    for op in layer["ops"].as_array().unwrap() {
        let row = functions.iter().find(|row| row["function"] == op["op"].as_str().unwrap()).unwrap();
        assert_eq!(row["calls"], op["calls"].to_string());
        assert_eq!(row["own_ns"], op["exclusive_ns"].to_string());
        assert_eq!(row["complete"], "true");
    }
    let files = csv("report/tar", &["--section", "files"]);
    assert!(files.len() > 20, "{}", files.len());
    let calls: i64 = files.iter().map(|row| row["calls"].parse::<i64>().unwrap()).sum();
    let largest = csv("report/tar", &["--section", "files", "--sort", "written", "--top", "1"]);
    assert!(calls > 50 && largest[0]["path"].ends_with("/t.tar"), "{largest:?}");
}

#[test]
fn a_filter_restricts_figures_and_is_named() {
    let all = csv("report/tar", &["--section", "functions"]);
    let reads = csv("report/tar", &["--section", "functions", "--where", "kind=read"]);
    let read = |rows: &[std::collections::BTreeMap<String, String>]| {
        rows.iter().find(|row| row["function"] == "read").map(|row| row["calls"].clone())
    };
    assert_eq!(read(&all), read(&reads));
    assert!(all.len() > reads.len() && reads.iter().all(|row| row["function"].contains("read")), "{reads:?}");
    let json: serde_json::Value =
        serde_json::from_str(&report("report/tar", &["--json", "--where", "file~*.tar"])).unwrap();
    assert_eq!(json["filter"], "file~*.tar");
    assert_eq!(json["header"]["files"], 1);
    assert_eq!(
        json["devices"],
        serde_json::from_str::<serde_json::Value>(&report("report/tar", &["--json"])).unwrap()["devices"]
    );
    assert!(report("report/tar", &["--where", "kind=read"]).contains("filtered  calls where kind=read"));
}

#[test]
fn markdown_is_of_the_same_tables() {
    assert_snapshot!(report("report/tar", &["--format", "md", "--section", "files,functions,errors", "--top", "3"]));
}

#[test]
fn the_help_names_all_sections() {
    let help = Command::cargo_bin("iotrace-bpf").unwrap().args(["report", "--help"]).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let names: Vec<_> = iotrace_bpf::export::report::SECTIONS.iter().map(|section| section.name).collect();
    assert!(help.contains(&format!("or all: {}", names.join(", "))), "{help}");
}
