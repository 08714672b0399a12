//! C standard I/O as the tracer records it is what a program called, down to the system calls that its buffers caused.

use crate::common::live::{self, Data};
use crate::common::programs;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn stdio_mix(work: &Path, program: &str) -> (PathBuf, Value, Data) {
    let dir = work.join("mix");
    fs::create_dir(&dir).unwrap();
    let traced = live::trace(work, &[], &[programs::build(program).as_path(), &dir]);
    let truth = serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap();
    (dir, truth, traced.data().lossless())
}

#[test]
fn calls_and_bytes_are_the_programs_own() {
    calls_and_bytes("stdio_mix");
}

#[test]
fn what_a_fortified_program_calls_goes_by_the_plain_names() {
    calls_and_bytes("stdio_mix_fortified");
    let symbols = Command::new("nm").arg("-D").arg(programs::build("stdio_mix_fortified")).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    for name in ["__fprintf_chk", "__vfprintf_chk"] {
        assert!(symbols.contains(name), "{name} is not what this compiler makes of it");
    }
}

fn calls_and_bytes(program: &str) {
    let work = live::scratch();
    let (dir, truth, data) = stdio_mix(work.path(), program);
    let seen = Data::totals(data.layer(Layer::Stdio));

    // In the GNU C library most 64-bit functions are other names of the same code.
    let merged = |calls: Vec<(&str, i64)>| {
        let mut all: BTreeMap<String, i64> = BTreeMap::new();
        for (name, n) in calls {
            *all.entry(name.trim_end_matches("64").to_owned()).or_default() += n;
        }
        all
    };
    let calls = truth["calls"].as_object().unwrap().iter().map(|(name, n)| (name.as_str(), n.as_i64().unwrap()));
    assert_eq!(merged(seen.iter().map(|(op, t)| (op.as_str(), t.calls)).collect()), merged(calls.collect()));

    let moved = |kind| data.layer(Layer::Stdio).filter(|s| s.kind == kind).filter_map(|s| s.bytes).sum::<i64>();
    assert_eq!(Some(moved(Kind::Read)), truth["read"].as_i64());
    assert_eq!(Some(moved(Kind::Write)), truth["written"].as_i64());

    // The program counts the fgets at the end of the file too, which is not an error.
    let failed: Vec<&str> = data.layer(Layer::Stdio).filter(|s| s.errno != 0).map(|s| s.op).collect();
    assert_eq!(failed, ["fseek", "fopen"]);
    assert_eq!(truth["failed"].as_i64(), Some(3));
    let last = data.calls("fgets").max_by_key(|s| s.start_ns).unwrap();
    assert_eq!(last.bytes.unwrap_or(0), 0);

    // Each call knows its file.
    for (name, op, n) in [("lines.txt", "fprintf", 100), ("lines.txt", "fgets", 301), ("blocks.dat", "fwrite", 64)] {
        assert_eq!(data.calls(op).filter(|s| data.path(s) == Some(&dir.join(name))).count(), n, "{op} of {name}");
    }
}

#[test]
fn system_calls_stand_below_the_calls_that_caused_them() {
    let work = live::scratch();
    let (dir, _, data) = stdio_mix(work.path(), "stdio_mix");
    let writes = |name: &str| -> Vec<&Span> {
        let path = dir.join(name);
        data.calls("write").filter(|s| data.path(s) == Some(&path)).collect()
    };
    let size = |name: &str| fs::metadata(dir.join(name)).unwrap().len() as i64;
    let bytes = |spans: &[&Span]| spans.iter().filter_map(|s| s.bytes).sum::<i64>();
    let parents = |spans: &[&Span]| -> Vec<&str> { spans.iter().map(|s| data.parent(s).unwrap().op).collect() };

    // Less than a buffer: nothing is written before fflush, then four bytes at the end.
    let lines = writes("lines.txt");
    assert_eq!(bytes(&lines), size("lines.txt"));
    assert_eq!(parents(&lines), ["fflush", "fclose"]);

    let blocks = writes("blocks.dat");
    assert_eq!(bytes(&blocks), size("blocks.dat"));
    assert!(parents(&blocks).iter().all(|op| ["fwrite", "fseek"].contains(op)), "{:?}", parents(&blocks));
    assert!(parents(&blocks).contains(&"fwrite"));

    // What a call contains lies within it, and its own time is the rest.
    for call in data.layer(Layer::Stdio) {
        let inside: Vec<&Span> = data.spans.iter().filter(|s| s.parent_id == Some(call.span_id)).collect();
        let end = |s: &Span| s.start_ns + s.dur_ns;
        assert!(inside.iter().all(|s| s.start_ns >= call.start_ns && end(s) <= end(call)), "{}", call.op);
        assert_eq!(call.self_ns + inside.iter().map(|s| s.net_ns()).sum::<i64>(), call.net_ns(), "{}", call.op);
    }

    // A FILE is the handle its descriptor hangs below.
    let opened = data.calls("fopen").min_by_key(|s| s.start_ns).unwrap();
    let file = opened.handle_id.unwrap();
    let descriptors: Vec<_> = data.handles.values().filter(|h| h.parent_handle_id == Some(file)).collect();
    assert_eq!(descriptors.iter().map(|h| h.layer).collect::<Vec<_>>(), [Layer::Syscall]);
    assert_eq!(descriptors[0].file_id, data.handles[&file].file_id);
}

/// The C++ library opens with `fopen` and reads and writes past the stream; `cout` writes through it.
#[test]
fn streams_of_cpp_are_tied_to_what_is_below_them() {
    let work = live::scratch();
    let dir = work.path().join("streams");
    fs::create_dir(&dir).unwrap();
    let traced = live::trace(work.path(), &[], &[programs::build("streams").as_path(), &dir]);
    let truth = traced.stderr.lines().find(|l| l.starts_with('{')).unwrap();
    let truth: Value = serde_json::from_str(truth).unwrap();
    let data = traced.data().lossless();

    let lines = dir.join("lines.txt");
    let on = |op| data.calls(op).filter(|s| data.path(s) == Some(&lines)).collect::<Vec<_>>();
    assert_eq!((on("fopen").len(), on("fclose").len(), on("fwrite").len(), on("fread").len()), (2, 2, 0, 0));
    let written: i64 = [on("write"), on("writev")].concat().iter().filter_map(|s| s.bytes).sum();
    assert_eq!(Some(written), truth["written"].as_i64());
    // Each descriptor below its stream.
    let stream_of = |s: &Span| data.handles[&data.handles[&s.handle_id.unwrap()].parent_handle_id.unwrap()].clone();
    let opened: Vec<_> = on("fopen").iter().map(|s| s.handle_id.unwrap()).collect();
    for call in [on("write"), on("writev"), on("read")].concat() {
        assert!(opened.contains(&stream_of(call).handle_id), "{}", call.op);
    }

    // What was printed is in stdout, which no traced process opened: it was flushed in one go.
    let out = work.path().join("stdout");
    let printed: Vec<_> =
        data.layer(Layer::Stdio).filter(|s| data.path(s) == Some(&out) && s.bytes.is_some()).collect();
    assert_eq!(Some(printed.iter().filter_map(|s| s.bytes).sum()), truth["printed"].as_i64());
    assert_eq!(printed.len(), 200);
    let flush: Vec<_> = data.calls("write").filter(|s| data.path(s) == Some(&out)).collect();
    assert_eq!(flush.len(), 1);
    let stream = stream_of(flush[0]);
    assert_eq!((stream.layer, stream.flags, stream.open_span_id), (Layer::Stdio, 1, None));
    assert!(printed.iter().all(|s| s.handle_id == Some(stream.handle_id)));
    // One after the other.
    let places: Vec<_> = printed.iter().map(|s| (s.offset.unwrap(), s.bytes.unwrap())).collect();
    assert!(places.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0), "{places:?}");
}
