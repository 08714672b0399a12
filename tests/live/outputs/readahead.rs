//! `--advise-readahead`: what programs read at a fixed distance is in the page cache before they read it, and nothing else of
//! them changes.

use crate::common::live::{self, Traced};
use crate::common::programs;
use iotrace_bpf::rows::{READ_AHEAD, TRACER_PID};
use iotrace_bpf::vocabulary::Kind;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

const BYTES: u64 = 32 << 20;

/// A file of which each page is another one, on the device.
fn file(work: &Path) -> PathBuf {
    let path = work.join("data");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    (0..BYTES / 8).for_each(|n| out.write_all(&n.to_le_bytes()).unwrap());
    out.into_inner().unwrap().sync_all().unwrap();
    path
}

/// Long enough for what is asked for between two reads to be there before many of them.
const PAUSES: [(&str, &str); 3] = [("forward", "0.001"), ("backward", "0.001"), ("down", "0.0001")];

fn command(file: &Path, pause: &str, how: &[&str]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/strided.py");
    let words = ["/usr/bin/python3", script.to_str().unwrap(), file.to_str().unwrap(), pause];
    words.iter().chain(how).map(ToString::to_string).collect()
}

/// What was read in which way.
fn read(stdout: &str) -> Vec<String> {
    stdout.lines().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

fn trace(file: &Path, pause: &str, how: &[&str]) -> (Traced, live::Data) {
    let traced = live::trace(file.parent().unwrap(), &["--advise-readahead", "--force"], &command(file, pause, how));
    let data = traced.data();
    (traced, data)
}

/// Reads of the file that were not in the page cache, and all of them.
fn missed(data: &live::Data, file: &Path) -> (usize, usize) {
    let own = |span: &&iotrace_bpf::rows::Span| span.kind == Kind::Read && data.path(span) == Some(file);
    let reads = || data.spans.iter().filter(own);
    (reads().filter(|span| span.miss_bytes.is_some_and(|n| n > 0)).count(), reads().count())
}

#[test]
fn what_is_read_at_a_fixed_distance_is_read_ahead() {
    let work = live::scratch();
    let file = file(work.path());
    for (how, pause) in PAUSES {
        let reads = if how == "down" { BYTES >> 12 } else { BYTES >> 16 };
        let words = command(&file, pause, &[how]);
        let alone = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        let (traced, data) = trace(&file, pause, &[how]);
        assert_eq!(read(&traced.stdout), read(&String::from_utf8_lossy(&alone.stdout)));
        let (misses, all) = missed(&data, &file);
        assert_eq!(all as u64, reads, "{how}");
        // Without it all of them miss.
        assert!(misses * 2 < all, "{how}: {misses} of {all} missed; {}", data.meta[READ_AHEAD]);
        let advised = &data.meta[READ_AHEAD];
        assert!(advised.contains(" of 1 open file, ") && advised.contains(" saved"), "{advised}");
        assert!(traced.report.contains(&format!("advised   {advised}")), "{}", traced.report);
        // What it reads ahead is no interference by another process.
        let own = format!("process {} moved", data.meta[TRACER_PID]);
        assert!(!traced.report.contains(&own), "{}", traced.report);
    }
}

#[test]
fn what_needs_no_help_gets_none() {
    let work = live::scratch();
    let file = file(work.path());
    let (traced, data) = trace(&file, "0", &["along", "cached"]);
    let expected = "nothing: no reads at a fixed distance missed the page cache again and again";
    assert_eq!(data.meta[READ_AHEAD], expected, "{}", traced.stdout);
}

#[test]
fn it_needs_single_reads() {
    let program = programs::build("posix_mix");
    for options in [&["--aggregate"][..], &["--detail", "slow"]] {
        let mut tracer = live::tracer();
        let out = tracer.arg("--advise-readahead").args(options).arg("--").arg(&program).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{text}");
        assert!(text.contains("--advise-readahead needs reads that are recorded one by one"), "{text}");
    }
    let work = live::scratch();
    let options = ["--advise-readahead", "--aggregate=no"];
    let traced = live::trace(work.path(), &options, &[program.as_os_str(), work.path().as_os_str()]);
    assert!(traced.data().meta.contains_key(READ_AHEAD), "{}", traced.stderr);
}
