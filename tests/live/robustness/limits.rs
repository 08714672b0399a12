//! Limits of resources that the caller has set: they are the command's, and a trace that they do not allow names them.

use crate::common::live::{self, Data};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// What the kernel has of the command: its limits and its masks of signals.
const SHOWN: [&str; 3] = ["sh", "-c", "cat /proc/self/limits; grep ^Sig[BIC] /proc/self/status; ulimit -a"];
/// Without the right to raise a hard limit.
const UNABLE: &[&str] = &["setpriv", "--bounding-set=-sys_resource"];

/// Runs a program below a shell that sets limits.
fn limited(limits: &str, before: &[&str], command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limits}; exec \"$@\""), "sh"]).args(before);
    shell.arg(command.get_program()).args(command.get_args());
    for name in ["SUDO_UID", "SUDO_GID"] {
        shell.env_remove(name);
    }
    shell
}

/// Traces the command below such a shell.
fn traced(limits: &str, before: &[&str], dataset: &Path, command: &[&str]) -> Output {
    let mut tracer = live::tracer();
    tracer.args(["--force", "-o"]).arg(dataset).arg("--").args(command);
    limited(limits, before, &tracer).output().unwrap()
}

fn output(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn the_command_has_the_limits_of_the_caller_and_the_tracer_its_own() {
    let work = live::scratch();
    let [dataset, file] = ["run.iotrace", "file"].map(|name| work.path().join(name));
    let cases: [(&str, &[&str]); 3] = [
        ("ulimit -S -n 64; ulimit -S -f 40", &[]),
        ("ulimit -S -n 64; ulimit -S -f 40", UNABLE),
        ("trap '' XFSZ; ulimit -S -n 64; ulimit -H -f 1000000; ulimit -S -f 40", &[]),
    ];
    for (limits, before) in cases {
        let mut plain = Command::new(SHOWN[0]);
        plain.args(&SHOWN[1..]);
        let plain = limited(limits, before, &plain).output().unwrap();
        let out = traced(limits, before, &dataset, &SHOWN);
        assert_eq!(out.status.code(), Some(0), "{}", output(&out));
        assert_eq!(String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&plain.stdout), "{limits}");
        // What the tracer writes is larger than what the command may, which is ended for it.
        let dd = format!("dd if=/dev/zero of={} bs=1 count=100000 status=none", file.display());
        let out = traced(limits, before, &dataset, &["sh", "-c", &format!("{dd}; echo $?")]);
        let code: i32 = String::from_utf8_lossy(&out.stdout).trim().parse().unwrap();
        assert_eq!(code, if limits.contains("trap") { 1 } else { 128 + 25 }, "{}", output(&out));
        assert_eq!((out.status.code(), fs::metadata(&file).unwrap().len()), (Some(0), 40 * 512), "{}", output(&out));
        let data = Data::read(&dataset).lossless();
        let written = data.calls("write").filter(|s| data.path(s) == Some(&file)).filter_map(|s| s.bytes).sum::<i64>();
        assert_eq!(written, 40 * 512);
        let largest = fs::read_dir(&dataset).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).max();
        assert!(largest > Some(40 * 512), "{largest:?}: this test needs more calls");
    }
}

#[test]
fn a_limit_that_is_in_the_way_is_named() {
    let work = live::scratch();
    let [dataset, file] = ["run.iotrace", "file"].map(|name| work.path().join(name));
    let out = traced("ulimit -n 64", UNABLE, &dataset, &["touch", file.to_str().unwrap()]);
    let why = output(&out);
    assert_eq!(out.status.code(), Some(125), "{why}");
    assert!(why.contains("64 open files are allowed (ulimit -n)") && why.contains("limits.conf"), "{why}");
    assert!(!why.contains("kernel does not") && !file.exists(), "{why}");

    // Too small for what every dataset has; and for the calls.
    let dd = format!("dd if=/dev/zero of={} bs=1 count=100000 status=none && echo done", file.display());
    for (blocks, begins) in [(40, false), (400, true)] {
        let out = traced(&format!("ulimit -f {blocks}"), UNABLE, &dataset, &["sh", "-c", &dd]);
        let why = output(&out);
        assert_eq!(out.status.code(), Some(125), "{why}");
        assert!(why.contains(&format!("no file may be larger than {} bytes (ulimit -f)", blocks * 512)), "{why}");
        assert!(why.contains("limits.conf") && why.contains("File too large") && !why.contains("panicked"), "{why}");
        // A command that has begun is not to blame, and goes on to its end.
        assert_eq!(String::from_utf8_lossy(&out.stdout), if begins { "done\n" } else { "" });
        assert_eq!(fs::metadata(&file).ok().map(|m| m.len()), begins.then_some(100_000));
    }

    let mut doctor = live::tracer();
    let out = limited("ulimit -n 64", UNABLE, doctor.arg("doctor")).output().unwrap();
    let checks = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.code() == Some(1) && checks.contains("64 open files are allowed"), "{checks}");
    let out = limited("ulimit -S -n 64", UNABLE, live::tracer().arg("doctor")).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
}
