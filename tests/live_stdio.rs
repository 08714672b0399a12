//! C standard I/O as the tracer records it is what a program called, down to the system calls that its buffers caused.

#![allow(clippy::unwrap_used, reason = "what a test does not expect is a failure")]

#[path = "common/live.rs"]
mod live;
#[path = "common/programs.rs"]
mod programs;

use iotrace_bpf::correlate::rows::Span;
use iotrace_bpf::words::{Kind, Layer};
use live::Data;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn stdio_mix(work: &Path) -> (PathBuf, Value, Data) {
    let dir = work.join("mix");
    fs::create_dir(&dir).unwrap();
    let traced = live::trace(work, &[], &[programs::build("stdio_mix").as_path(), &dir]);
    let truth = serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap();
    (dir, truth, traced.data().lossless())
}

#[test]
fn calls_and_bytes_are_the_programs_own() {
    let work = live::scratch();
    let (dir, truth, data) = stdio_mix(work.path());
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
    let (dir, _, data) = stdio_mix(work.path());
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
        assert_eq!(call.self_ns + inside.iter().map(|s| s.dur_ns).sum::<i64>(), call.dur_ns, "{}", call.op);
    }

    // A FILE is the handle its descriptor hangs below.
    let opened = data.calls("fopen").min_by_key(|s| s.start_ns).unwrap();
    let file = opened.handle_id.unwrap();
    let descriptors: Vec<_> = data.handles.values().filter(|h| h.parent_handle_id == Some(file)).collect();
    assert_eq!(descriptors.iter().map(|h| h.layer).collect::<Vec<_>>(), [Layer::Syscall]);
    assert_eq!(descriptors[0].file_id, data.handles[&file].file_id);
}
