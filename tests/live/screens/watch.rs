//! What is wrong while a trace goes on: metrics, `--trigger finding` and `--detail finding` on a real program.

use crate::common::live::{self, Data, Running, datasets};
use crate::common::tools::prometheus::get;
use crate::common::ways;
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;

/// Flushes each record of a log, a thousand a second at most, until a file is there.
const LOG: &str = "import os, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)
end = time.monotonic() + 60
while not os.path.exists(sys.argv[2]) and time.monotonic() < end:
    os.write(log, b'x' * 128)
    os.fsync(log)
    time.sleep(0.001)";

/// Reads a byte from the page cache now and then, until a file is there.
const READER: &str = "import os, sys, time
file = os.open('/proc/self/exe', os.O_RDONLY)
end = time.monotonic() + 60
while not os.path.exists(sys.argv[2]) and time.monotonic() < end:
    os.pread(file, 1, 0)
    time.sleep(0.005)";

fn python(script: &str, work: &Path) -> Vec<OsString> {
    let [log, end] = ["log", "end"].map(|name| work.join(name).into());
    [ways::python().into(), "-I".into(), "-S".into(), "-c".into(), script.into(), log, end].into()
}

/// A tracer with these options of a command; its output is in `stderr`.
fn start(work: &Path, options: &[&str], command: &[OsString]) -> Running {
    let mut tracer = live::tracer();
    tracer.args(options).arg("-o").arg(work.join("all")).arg("--").args(command);
    Running::spawn(tracer.stderr(File::create(work.join("stderr")).unwrap()))
}

fn output(work: &Path) -> String {
    fs::read_to_string(work.join("stderr")).unwrap()
}

fn end(work: &Path, mut running: Running) {
    File::create(work.join("end")).unwrap();
    assert!(running.wait().success(), "{}", output(work));
}

#[test]
fn metrics_have_the_seconds_that_causes_cost() {
    let work = live::scratch();
    let work = work.path();
    let running = start(work, &["--metrics", "127.0.0.1:0"], &python(LOG, work));
    let address = || {
        let output = output(work);
        let (_, rest) = output.split_once("metrics at http://")?;
        rest.split_once('/')?.0.parse::<SocketAddr>().ok()
    };
    live::until("an address", || address().is_some());
    let value = |rule: &str| {
        let (_, body) = get(address().unwrap(), "/metrics", "").ok()?;
        let sample = format!("iotrace_finding_seconds{{rule=\"{rule}\"}} ");
        body.lines().find_map(|line| line.strip_prefix(&sample)?.parse::<f64>().ok())
    };
    live::until("a finding", || value("sync-per-record").is_some_and(|seconds| seconds > 0.2));
    assert_eq!(value("copy-up"), Some(0.0));
    assert!(value("sync-per-record").is_some_and(|seconds| seconds <= 60.0));
    end(work, running);
}

#[test]
fn the_flight_recorder_writes_what_led_to_a_finding() {
    let work = live::scratch();
    let work = work.path();
    let options = ["--flight", "30s", "--trigger", "finding=sync-per-record"];
    let running = start(work, &options, &python(LOG, work));
    live::until("a dataset", || output(work).contains(" calls of the last "));
    end(work, running);
    let all = datasets(&work.join("all"));
    let data = Data::read(&all[0]);
    let why = &data.meta["trigger"];
    assert!(why.starts_with("finding: sync-per-record: ") && why.ends_with("/log"), "{why}");
    let call: i64 = data.meta["trigger_span_id"].parse().unwrap();
    assert!(data.calls("fsync").any(|span| span.span_id == call), "{why}");
    // It holds on: nothing new.
    assert_eq!(all.len(), 1);
}

#[test]
fn only_the_processes_that_a_finding_is_about_are_recorded_one_by_one() {
    let work = live::scratch();
    let work = work.path();
    let quote = |command: &[OsString]| {
        let words: Vec<String> =
            command.iter().map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"))).collect();
        words.join(" ")
    };
    let both = format!("{} & {}; wait", quote(&python(READER, work)), quote(&python(LOG, work)));
    let running = start(work, &["--detail", "finding"], &["sh".into(), "-c".into(), both.into()]);
    let grows = || fs::metadata(work.join("log")).map_or(0, |log| log.len());
    live::until("the log", || grows() > 0);
    std::thread::sleep(std::time::Duration::from_secs(5));
    end(work, running);
    let data = Data::read(&work.join("all"));
    let flushes: Vec<_> = data.calls("fsync").collect();
    let (first, of) = (flushes.first().expect("flushes"), flushes[0].process_ix);
    assert!(
        data.spans.iter().all(|span| span.process_ix == of),
        "{:?}",
        data.spans.iter().find(|s| s.process_ix != of)
    );
    assert!(first.start_ns > 1_500_000_000, "there was no finding before: {first:?}");
}
