//! System calls of other kinds: that copy from file to file, that signals interrupt, of 32-bit programs, on sockets and pipes.

use crate::common::live::{self, Data, Traced};
use crate::common::tools::strace;
use crate::common::{programs, sql};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A program in the directory `work/files`, traced.
fn run(work: &Path, program: &str, options: &[&str]) -> (PathBuf, Traced) {
    let dir = work.join("files");
    fs::create_dir(&dir).unwrap();
    let traced = live::trace(work, options, &[programs::build(program).as_path(), &dir]);
    (dir, traced)
}

/// (offset, bytes asked for, bytes moved) of the successful calls of a function on a file.
fn places(data: &Data, op: &str, path: &Path) -> Vec<(Option<i64>, Option<i64>, Option<i64>)> {
    let mut spans: Vec<&Span> =
        data.calls(op).filter(|s| s.errno == 0 && data.path(s).is_some_and(|p| p == path)).collect();
    spans.sort_by_key(|s| s.start_ns);
    spans.into_iter().map(|s| (s.offset, s.req_bytes, s.bytes)).collect()
}

const fn at(offset: i64, asked: i64, moved: i64) -> (Option<i64>, Option<i64>, Option<i64>) {
    (Some(offset), Some(asked), Some(moved))
}

#[test]
fn what_a_call_copies_is_read_of_one_file_and_written_to_the_other() {
    let work = live::scratch();
    let (dir, traced) = run(work.path(), "copies", &["--layers", "syscall"]);
    let data = traced.data().lossless();
    let on = |op: &str, name: &str| places(&data, op, &dir.join(name));
    assert_eq!(on("copy_file_range", "copied"), [at(0, 40000, 40000), at(5000, 3000, 3000)]);
    assert_eq!(on("copy_file_range.read", "from"), [at(0, 40000, 40000), at(1000, 3000, 3000)]);
    assert_eq!(on("sendfile", "sent"), [at(0, 20000, 20000)]);
    assert_eq!(on("sendfile.read", "from"), [at(7, 20000, 20000)]);
    // To a socket, which is left out: a call that reads the file. So with a pipe.
    assert_eq!(on("sendfile", "from"), [at(20007, 600, 600)]);
    assert_eq!(on("splice", "from"), [at(4000, 5000, 5000)]);
    assert_eq!(on("splice", "spliced"), [at(0, 4000, 4000)]);
    assert_eq!(data.calls("splice.read").count(), 0);
    assert_eq!(data.calls("tee").count() + data.calls("sendmsg").count() + data.calls("recvfrom").count(), 0);
    for half in data.spans.iter().filter(|s| s.op.split_once('.').is_some_and(|(_, part)| part == "read")) {
        let whole = data.parent(half).unwrap();
        assert_eq!((whole.kind, half.kind), (Kind::Write, Kind::Read));
        assert_eq!((whole.start_ns, whole.dur_ns, half.self_ns), (half.start_ns, half.dur_ns, 0));
        assert!(whole.layer_top && half.layer_top && half.async_id.is_none());
    }

    // Every byte once in each direction, in the program's own sums and by file.
    let moved = |kind: Kind| -> i64 {
        data.spans.iter().filter(|s| s.layer_top && s.kind == kind).filter_map(|s| s.bytes).sum()
    };
    assert_eq!(moved(Kind::Read), 40000 + 3000 + 20000 + 600 + 5000);
    assert_eq!(moved(Kind::Write), 100_000 + 40000 + 3000 + 20000 + 4000);
    sql::compare(&traced.dir);
    let files = sql::query(
        &traced.dir,
        "SELECT f.path, coalesce(sum(s.bytes) FILTER (s.kind = 'read'), 0)::BIGINT AS r,
                coalesce(sum(s.bytes) FILTER (s.kind = 'write'), 0)::BIGINT AS w
         FROM spans s JOIN files f USING (file_id) WHERE s.kind IN ('read', 'write') GROUP BY f.path",
    );
    let of = |name: &str| {
        let path = dir.join(name);
        let row = files.iter().find(|f| f["path"].as_str() == path.to_str()).unwrap();
        (row["r"].as_i64().unwrap(), row["w"].as_i64().unwrap())
    };
    assert_eq!([of("from"), of("copied"), of("sent")], [(68600, 100_000), (0, 43000), (0, 20000)]);
}

#[test]
fn cp_asks_for_what_it_copies() {
    const BYTES: i64 = 3_000_001;
    let work = live::scratch();
    let (from, to) = (work.path().join("from"), work.path().join("to"));
    fs::write(&from, vec![b'c'; BYTES as usize]).unwrap();
    let cp = ["cp", from.to_str().unwrap(), to.to_str().unwrap()];
    let traced = live::trace(work.path(), &["--layers", "syscall"], &cp);
    let data = traced.data().lossless();
    let sum = |op: &str, path: &Path| {
        let calls = places(&data, op, path);
        let asked: i64 = calls.iter().filter_map(|(_, asked, _)| *asked).sum();
        (asked, calls.iter().filter_map(|(.., moved)| *moved).sum::<i64>())
    };
    // The last one finds the end.
    assert_eq!(sum("copy_file_range", &to), (BYTES, BYTES));
    assert_eq!(sum("copy_file_range.read", &from), (BYTES, BYTES));
    sql::compare(&traced.dir);
    let steps = sql::query(&traced.dir, "SELECT kind, layer, bytes::BIGINT AS bytes, to_asked FROM v_amplification");
    let step = |kind: &str, layer: &str| {
        let row = steps.iter().find(|r| r["kind"] == kind && r["layer"] == layer).unwrap();
        (row["bytes"].as_i64().unwrap(), row["to_asked"].as_f64().unwrap())
    };
    // All of it is written once. What else is read are the loader's headers of libraries.
    assert_eq!([step("write", "asked"), step("write", "syscall")], [(BYTES, 1.0); 2]);
    let (asked, syscall) = (step("read", "asked"), step("read", "syscall"));
    assert!((BYTES..BYTES + 100_000).contains(&asked.0) && (0.9..=1.0).contains(&syscall.1), "{asked:?} {syscall:?}");
}

#[test]
fn sockets_and_pipes_are_recorded_when_asked_for() {
    let work = live::scratch();
    let (dir, traced) = run(work.path(), "copies", &["--layers", "syscall", "--sockets"]);
    let data = traced.data().lossless();
    let role = |span: &Span| data.files[&span.file_id.unwrap()].role;
    let calls = |op: &str| -> Vec<(&str, i64, Option<i64>)> {
        let mut spans: Vec<&Span> = data.calls(op).filter(|s| s.errno == 0 && s.bytes.is_some()).collect();
        spans.sort_by_key(|s| s.start_ns);
        spans.into_iter().map(|s| (role(s), s.bytes.unwrap(), s.offset)).collect()
    };
    assert_eq!(calls("recvfrom"), [("socket", 100, None)]);
    assert_eq!(calls("sendto"), [("socket", 70, None)]);
    assert_eq!(calls("sendmsg"), [("socket", 123, None)]);
    assert_eq!(calls("recvmsg"), [("socket", 123, None)]);
    assert_eq!(calls("read"), [("socket", 500, None)]);
    assert_eq!(calls("tee"), [("pipe", 2000, None)]);
    assert_eq!(calls("tee.read"), [("pipe", 2000, None)]);
    let spliced: Vec<i64> = calls("splice").iter().map(|c| c.1).collect();
    assert_eq!(spliced, [5000, 4000]);
    assert_eq!((calls("splice")[0].0, calls("splice.read")[1].0), ("pipe", "pipe"));
    assert_eq!(calls("sendfile")[1], ("socket", 600, None));
    assert_eq!(places(&data, "sendfile.read", &dir.join("from"))[1], at(20007, 600, 600));
    let writes = calls("write");
    assert_eq!(writes.last(), Some(&("pipe", 10, None)));
    let named = |span: &Span| data.path(span).unwrap().to_str().unwrap().to_owned();
    assert!(named(data.calls("recvmsg").next().unwrap()).starts_with("socket:["));
    assert!(named(data.calls("tee").next().unwrap()).starts_with("pipe:["));
}

#[test]
fn a_call_that_is_restarted_is_one_call() {
    let work = live::scratch();
    let (dir, traced) = run(work.path(), "interrupted", &["--layers", "syscall"]);
    let data = traced.data().lossless();
    let locked = dir.join("locked");
    let parent = data.processes.values().find(|p| data.processes.values().any(|c| c.ppid == p.pid)).unwrap().pid;
    let calls = |op: &'static str| -> Vec<&Span> {
        let mut spans: Vec<&Span> = data.calls(op).filter(|s| s.pid == parent).collect();
        spans.sort_by_key(|s| s.start_ns);
        spans
    };
    let flocks = calls("flock");
    let results: Vec<_> = flocks.iter().map(|s| (s.errno, s.ret)).collect();
    // Restarted, unlocked twice, interrupted, refused.
    assert_eq!(results, [(0, Some(0)), (0, Some(0)), (0, Some(0)), (4, Some(-4)), (11, Some(-11))]);
    assert_eq!(calls("fcntl").iter().map(|s| s.ret).collect::<Vec<_>>(), [Some(0); 3]);
    assert!(flocks.iter().all(|s| data.path(s) == Some(&locked)));
    // What handlers wrote is in no call, and was written while the call waited.
    let notes: Vec<&Span> = calls("write").into_iter().filter(|s| data.path(s) == Some(&dir.join("notes"))).collect();
    assert_eq!(notes.iter().map(|s| (s.bytes, s.layer_top)).collect::<Vec<_>>(), [(Some(11), true); 3]);
    assert!(notes.iter().all(|s| s.parent_id.is_none()));
    let around = |call: &Span, note: &Span| {
        call.start_ns < note.start_ns && note.start_ns + note.dur_ns < call.start_ns + call.dur_ns
    };
    assert!(around(flocks[0], notes[0]) && around(calls("fcntl")[1], notes[1]) && around(flocks[3], notes[2]));
    // Of x32, whether or not this kernel has it.
    let short: Vec<&Span> = calls("pread64");
    assert_eq!(short.len(), 1);
    assert_eq!(data.path(short[0]), Some(locked.as_path()));
}

#[test]
fn programs_of_32_bits_are_recorded_like_others() {
    let work = live::scratch();
    let (dir, traced) = run(work.path(), "short32", &["--layers", "syscall"]);
    let data = traced.data().lossless();
    let file = dir.join("short");
    let far = 1_i64 << 32;
    let on = |op: &str| places(&data, op, &file);
    assert_eq!(on("write"), [at(0, 8192, 8192)]);
    assert_eq!(on("pwrite64"), [at(far + 4096, 100, 100)]);
    assert_eq!(on("pread64"), [at(far + 4096, 200, 100)]);
    assert_eq!(on("lseek"), [(Some(far + 50), None, None)]);
    let asked: Vec<_> = data.calls("lseek").map(|s| (s.cmd, s.arg)).collect();
    assert_eq!(asked, [(Some("SEEK_SET"), Some(far + 50))]);
    assert_eq!(on("writev"), [at(far + 50, 1500, 1500)]);
    assert_eq!(on("preadv"), [at(far + 50, 1500, 1500)]);
    let output = |offset: i64, asked: Option<i64>| (Some(offset), asked, None);
    assert_eq!(on("ftruncate"), [output(far + 7, None)]);
    assert_eq!(on("truncate"), [output(8192, None)]);
    assert_eq!(on("fallocate"), [output(2 * far + 4096, Some(8192))]);
    assert_eq!(on("readahead"), [output(4096, Some(100))]);
    assert_eq!(on("fadvise64"), [output(3 * far + 4096, Some(far + 8192))]);
    assert_eq!(on("sync_file_range"), [output(4096, Some(100))]);
    assert_eq!(on("mmap"), [output(4096, Some(4096)); 2]);
    assert_eq!(on("munmap"), [output(4096, Some(4096)); 2]);
    assert_eq!(on("sendfile.read"), [at(4096, 1000, 1000)]);
    assert_eq!(on("copy_file_range.read"), [at(5096, 500, 500)]);
    assert_eq!(places(&data, "sendfile", &dir.join("other")), [at(0, 1000, 1000)]);

    // Calls and errors as strace sees them, under the names of the 64-bit calls.
    let second = work.path().join("second");
    fs::create_dir(&second).unwrap();
    let (_, calls) = strace::run(&work.path().join("strace"), &[], &[programs::build("short32"), second]);
    let mut theirs: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for call in calls.iter().filter(|c| !["execve", "exit"].contains(&c.name.as_str())) {
        let name = match call.name.as_str() {
            "_llseek" => "lseek",
            "mmap2" => "mmap",
            "fadvise64_64" => "fadvise64",
            "pread64" | "pwrite64" => &call.name,
            other => other.trim_end_matches("64"),
        };
        let sums = theirs.entry(name.to_owned()).or_default();
        *sums = (sums.0 + 1, sums.1 + i64::from(call.error.is_some()));
    }
    // One mapping is of memory.
    for name in ["mmap", "munmap"] {
        theirs.get_mut(name).unwrap().0 -= 1;
    }
    let own = data.layer(Layer::Syscall).filter(|s| !s.op.contains('.'));
    let ours = Data::totals(own).into_iter().map(|(name, t)| (name, (t.calls, t.errors)));
    assert_eq!(ours.collect::<BTreeMap<_, _>>(), theirs);
}
