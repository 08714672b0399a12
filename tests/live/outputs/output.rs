//! What is printed, and where: the standard output of a command is the command's, to the last byte.

use crate::common::live::{self, Running};
use crate::common::programs;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs it with its output in a file, as a shell does; what is in the file then, and the rest.
fn into_file(mut command: Command, file: &Path) -> (Vec<u8>, Output) {
    let out = command.stdout(fs::File::create(file).unwrap()).stderr(Stdio::piped()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (fs::read(file).unwrap(), out)
}

fn report_of(dataset: &Path) -> String {
    let out = live::tracer().arg("report").arg(dataset).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_standard_output_of_a_command_is_its_own() {
    let work = live::scratch();
    let [file, out, dataset] = ["file", "out", "run.iotrace"].map(|name| work.path().join(name));
    fs::write(&file, (0..20_000).fold(String::new(), |all, n| all + &format!("line {n}\n"))).unwrap();
    let file = file.to_str().unwrap();
    for command in [&["gzip", "-nc", file][..], &["printf", "a,b\n1,2\n"]] {
        let mut plain = Command::new(command[0]);
        plain.args(&command[1..]);
        let (plain, _) = into_file(plain, &out);
        for options in
            [&[][..], &["--batch", "--delay", "100ms"], &["--batch", "--json"], &["--quiet"], &["--aggregate"]]
        {
            let mut tracer = live::tracer();
            tracer.args(options).args(["--force", "-o"]).arg(&dataset).arg("--").args(command);
            let (traced, rest) = into_file(tracer, &out);
            assert!(traced == plain, "{options:?} {command:?}: {}", String::from_utf8_lossy(&traced));
            let text_out = String::from_utf8(rest.stderr).unwrap();
            match options {
                ["--quiet"] => assert_eq!(text_out, ""),
                ["--batch", ..] => assert!(text_out.contains("calls"), "{text_out}"),
                // The report, and where the dataset is.
                _ => assert!(text_out.contains(&report_of(&dataset)), "{text_out}"),
            }
        }
    }
}

#[test]
fn the_report_goes_where_it_is_sent() {
    let work = live::scratch();
    let [dataset, report] = ["run.iotrace", "report"].map(|name| work.path().join(name));
    let run = |options: &[&str], to: &Path| {
        let mut tracer = live::tracer();
        tracer.args(options).args(["--force", "-o"]).arg(&dataset).arg("--report").arg(to);
        let out = tracer.args(["--", "printf", "out"]).output().unwrap();
        let [text_out, erred] = [out.stdout, out.stderr].map(|text_out| String::from_utf8(text_out).unwrap());
        assert!(out.status.success(), "{erred}");
        (text_out, erred)
    };
    let dataset_in = format!("iotrace-bpf: dataset in {}\n", dataset.display());
    // What was in the file before is not kept.
    for (options, erred) in [(&[][..], dataset_in.as_str()), (&["--quiet"], "")] {
        fs::write(&report, "old\n".repeat(10_000)).unwrap();
        assert_eq!(run(options, &report), ("out".to_owned(), erred.to_owned()));
        assert_eq!(fs::read_to_string(&report).unwrap(), report_of(&dataset));
    }
    let (text_out, erred) = run(&[], Path::new("-"));
    assert_eq!((text_out, erred), (format!("out{}", report_of(&dataset)), dataset_in.clone()));
    // Ticks are figures, too.
    let (text_out, erred) = run(&["--batch", "--json"], &report);
    assert_eq!((text_out.as_str(), erred), ("out", dataset_in));
    let ticks = fs::read_to_string(&report).unwrap();
    assert!(ticks.lines().all(|tick| serde_json::from_str::<serde_json::Value>(tick).is_ok()), "{ticks}");
}

#[test]
fn a_report_that_cannot_be_written_costs_no_run() {
    let work = live::scratch();
    let [dataset, begun, file] = ["run.iotrace", "begun", "file"].map(|name| work.path().join(name));
    fs::write(&file, "").unwrap();
    for report in [work.path().to_owned(), work.path().join("no/report"), file.join("report")] {
        let mut tracer = live::tracer();
        tracer.arg("-o").arg(&dataset).arg("--report").arg(&report).args(["--quiet", "--", "touch"]).arg(&begun);
        let out = tracer.output().unwrap();
        let text_out = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(125), "{text_out}");
        assert!(text_out.contains("cannot write") && text_out.contains(report.to_str().unwrap()), "{text_out}");
        assert!(!begun.exists() && !dataset.exists());
    }
}

#[test]
fn without_a_command_the_report_is_on_standard_output() {
    let work = live::scratch();
    let (dataset, truth) = (work.path().join("run.iotrace"), work.path().join("truth"));
    let mut looper = Command::new(programs::build("looper"));
    let looper = Running::spawn(looper.args([work.path(), &truth]).arg("60").stdout(Stdio::null()));
    live::until("the program", || live::truth(&truth).ready);
    for (options, is_there) in [(&[][..], true), (&["--quiet"], false)] {
        let mut tracer = live::tracer();
        tracer.args(options).args(["--no-tui", "--duration", "1s", "--force", "-o"]).arg(&dataset);
        let out = tracer.args(["-p", &looper.pid().to_string()]).output().unwrap();
        let [text_out, erred] = [out.stdout, out.stderr].map(|text_out| String::from_utf8(text_out).unwrap());
        assert!(out.status.success(), "{erred}");
        assert_eq!(text_out, if is_there { report_of(&dataset) } else { String::new() });
        assert_eq!(erred.is_empty(), !is_there, "{erred}");
    }
}
