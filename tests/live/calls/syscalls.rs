//! System calls as the tracer records them are those that programs make: their own counts and strace's are the same.

use crate::common::live::{self, Data, Total};
use crate::common::programs;
use crate::common::tools::strace;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::Layer;
use nix::errno::Errno;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Calls by name and error.
fn errors<'a>(calls: impl Iterator<Item = (&'a str, String)>) -> BTreeMap<(String, String), i64> {
    let mut errors = BTreeMap::new();
    for (name, error) in calls {
        *errors.entry((name.to_owned(), error)).or_default() += 1;
    }
    errors
}

/// `posix_mix` in a new directory below `work`, traced; what it reported, and what was recorded.
fn posix_mix(work: &Path) -> (PathBuf, Value, i64, Data) {
    let dir = work.join("mix");
    fs::create_dir(&dir).unwrap();
    let traced = live::trace(work, &["--layers", "syscall"], &[programs::build("posix_mix").as_path(), &dir]);
    let output = traced.stdout.lines().next().unwrap();
    (dir, serde_json::from_str(output).unwrap(), output.len() as i64 + 1, traced.data().lossless())
}

/// Without what the C library looks at on its own account.
fn system_calls(data: &Data) -> impl Iterator<Item = &Span> {
    let own = move |s: &Span| s.path_id.is_some_and(|id| data.named[&id] == "/proc/self/exe") && s.op == "readlink";
    data.layer(Layer::Syscall).filter(move |s| !own(s))
}

#[test]
fn every_call_of_posix_mix_is_recorded_once() {
    let work = live::scratch();
    let (_, truth, text, data) = posix_mix(work.path());
    let mut seen = Data::totals(system_calls(&data));
    // The last write is the text itself, whose length it does not count.
    seen.get_mut("write").unwrap().moved -= text;
    let of = |what: &str, name: &str| truth[what][name].as_i64().unwrap_or(0);
    for name in truth["calls"].as_object().unwrap().keys() {
        let total = seen.remove(name).unwrap_or_default();
        assert_eq!((total.calls, total.errors), (of("calls", name), of("errors", name)), "{name}");
        if truth["bytes"].get(name).is_some() {
            assert_eq!(total.moved, of("bytes", name), "bytes of {name}");
        }
    }
    // How it shares its counts, and becomes another one.
    seen.retain(|name, _| !["memfd_create", "mmap", "execve"].contains(&name.as_str()));
    assert_eq!(seen, BTreeMap::new(), "calls it did not make");
}

#[test]
fn strace_sees_the_same_calls_errors_and_sizes() {
    let work = live::scratch();
    let (_, truth, _, data) = posix_mix(work.path());
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("strace");
    let (_, calls) = strace::run(&trace, &[], &[programs::build("posix_mix").as_path(), dir.path()]);

    // What the C library calls besides is compared for `posix_all`.
    let known = |name: &str| truth["calls"].get(name).is_some();
    let calls: Vec<_> = calls.into_iter().filter(|c| known(&c.name)).collect();
    let theirs = calls.iter().map(|c| (c.name.as_str(), c.error.clone().unwrap_or_default()));
    let name = |errno: i16| if errno == 0 { String::new() } else { format!("{:?}", Errno::from_raw(errno.into())) };
    let ours = system_calls(&data).filter(|s| known(s.op));
    assert_eq!(errors(ours.map(|s| (s.op, name(s.errno)))), errors(theirs));

    // Requested bytes; the text is not as long in every run, as it holds process ids.
    let mut asked: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for call in calls.iter().filter(|c| ["read", "write"].iter().any(|kind| c.name.contains(kind))) {
        asked.entry(call.name.clone()).or_default().push(call.asked());
    }
    for (name, theirs) in &mut asked {
        let mut ours: Vec<i64> = data.calls(name).map(|s| s.req_bytes.unwrap()).collect();
        ours.sort_unstable();
        theirs.sort_unstable();
        let text = |sizes: &mut Vec<i64>| (name == "write").then(|| sizes.retain(|n| [0, 100, 4096].contains(n)));
        assert_eq!(text(&mut ours), text(theirs));
        assert_eq!(&ours, theirs, "bytes asked of {name}");
    }
}

#[test]
fn calls_carry_their_file_offset_and_handle() {
    let work = live::scratch();
    let (dir, truth, _, data) = posix_mix(work.path());
    let pid = truth["pid"].as_i64().unwrap() as i32;
    let child = truth["child"].as_i64().unwrap() as i32;
    let on = |op: &'static str, name: &str| -> Vec<&Span> {
        let path = dir.join(name);
        let mut spans: Vec<&Span> = data.calls(op).filter(|s| data.path(s) == Some(&path)).collect();
        spans.sort_by_key(|s| s.span_id);
        spans
    };
    let offsets = |spans: &[&Span]| spans.iter().map(|s| s.offset.unwrap()).collect::<Vec<_>>();

    // At the file position, which every call moves; then one of no bytes at the end of what came before.
    let blocks: Vec<i64> = (0..16).map(|i| i * 4096).collect();
    assert_eq!(offsets(&on("write", "data")), [&blocks[..], &[3000]].concat());
    assert_eq!(offsets(&on("read", "data")), [&blocks[..], &[65536]].concat());
    assert_eq!(offsets(&on("pwrite64", "data")), blocks.iter().map(|b| b * 2).collect::<Vec<_>>());
    assert_eq!(offsets(&on("writev", "data")), [10]);
    assert_eq!(offsets(&on("readv", "data")), [10]);
    assert_eq!(offsets(&on("pwritev", "data")), [5000]);
    // -1 is the file position.
    assert_eq!(offsets(&on("pwritev2", "data")), [9000, 0]);
    assert_eq!(offsets(&on("preadv2", "data")), [9000, 1500]);
    assert_eq!(on("lseek", "data").iter().map(|s| s.ret.unwrap()).collect::<Vec<_>>(), [0, 10, 1510, 10, 0, 3000]);

    // Two threads, each its own half.
    let threads = on("pwrite64", "threads");
    let mut tids: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for span in &threads {
        tids.entry(span.tid).or_default().push(span.offset.unwrap());
    }
    let mut halves: Vec<Vec<i64>> = tids.into_values().collect();
    halves.sort();
    assert_eq!(halves, [(0..50).map(|i| i * 4096).collect::<Vec<i64>>(), (50..100).map(|i| i * 4096).collect()]);

    // The child before and after its exec, on the descriptor it inherited; its other one was closed by the exec.
    let inherited = on("write", "child");
    assert_eq!(
        inherited.iter().map(|s| (s.pid, s.req_bytes)).collect::<Vec<_>>(),
        [(child, Some(100)), (child, Some(4096))]
    );
    assert_eq!(offsets(&inherited), [0, 100]);
    let closed: Vec<&Span> = data.calls("write").filter(|s| s.pid == child && s.errno != 0).collect();
    assert_eq!(closed.len(), 1);
    assert_eq!((closed[0].errno, closed[0].file_id), (Errno::EBADF as i16, None));

    // One open file under six descriptors: the handle shows which one, the file is the same.
    let opens: Vec<_> = data.handles.values().filter(|h| h.pid == pid && h.layer == Layer::Syscall).collect();
    let raw = |fd: i64| opens.iter().find(|h| h.raw == fd).unwrap_or_else(|| panic!("no handle of descriptor {fd}"));
    let first = raw(900);
    for fd in [901, 500, 600] {
        assert_eq!(raw(fd).file_id, first.file_id, "descriptor {fd}");
        assert!(raw(fd).end_ns.is_some(), "descriptor {fd} was closed");
    }
    for op in ["dup", "dup2", "dup3", "fcntl"] {
        let made = |s: &&Span| s.errno == 0 && s.ret != Some(0);
        assert!(data.calls(op).filter(made).all(|s| s.file_id == first.file_id), "{op} is about its file");
    }

    // renamed twice, back and again, and unlinked; then a new file of the old name, unlinked too and still written to.
    let file = &data.files[&first.file_id.unwrap()];
    let paths: Vec<&Path> =
        data.paths.iter().filter(|p| p.file_id == file.file_id).map(|p| Path::new(p.path.as_str())).collect();
    assert_eq!(paths, [dir.join("opens"), dir.join("renamed"), dir.join("opens"), dir.join("renamed")]);
    assert!(file.unlinked);
    let last = data.calls("write").filter(|s| s.pid == pid && data.path(s) == Some(&dir.join("opens"))).last().unwrap();
    assert!(data.files[&last.file_id.unwrap()].unlinked);
    assert_ne!(last.file_id, Some(file.file_id));
    for op in ["stat", "lstat", "newfstatat", "statx", "fstat", "rename", "renameat", "renameat2", "unlink", "truncate"]
    {
        assert!(
            data.calls(op).filter(|s| s.errno == 0 && s.op != "stat").all(|s| s.file_id == Some(file.file_id)),
            "{op}"
        );
    }
}

/// `posix_all` traced, and its directory.
fn posix_all(work: &Path) -> (PathBuf, Data) {
    let dir = work.join("all");
    fs::create_dir(&dir).unwrap();
    let traced = live::trace(work, &["--layers", "syscall"], &[programs::build("posix_all").as_path(), &dir]);
    (dir, traced.data().lossless())
}

#[test]
fn every_call_of_the_catalog_is_recorded_once() {
    let work = live::scratch();
    let (dir, data) = posix_all(work.path());
    let printed = dir.join("truth.json");
    let truth: Value = serde_json::from_slice(&fs::read(&printed).unwrap()).unwrap();
    // The half of a call that reads is no call.
    let counted = || system_calls(&data).filter(|s| data.path(s) != Some(&printed) && !s.op.contains('.'));
    let ours: BTreeMap<String, i64> = Data::totals(counted()).into_iter().map(|(name, t)| (name, t.calls)).collect();
    let theirs: BTreeMap<String, i64> = serde_json::from_value(truth["calls"].clone()).unwrap();
    assert_eq!(ours, theirs);

    // Errors are those that strace sees. It sees more: what is left out.
    let second = work.path().join("second");
    fs::create_dir(&second).unwrap();
    let command = [programs::build("posix_all"), second];
    let (_, calls) = strace::run(&work.path().join("strace"), &["-y"], &command);
    let left_out = ["\"/proc/self/exe", "pipe:[", "\"trut", "/truth.json>", "MAP_ANONYMOUS"];
    // Some of these are on memory without a file.
    let compared = |name: &str| truth["calls"].get(name).is_some() && !["munmap", "madvise"].contains(&name);
    // The first one is strace's own.
    let calls = calls.iter().skip(1).filter(|c| compared(&c.name));
    let left_out = |arg: &String| left_out.iter().any(|what| arg.contains(what));
    let calls = calls.filter(|c| c.name == "splice" || !c.args.iter().any(left_out));
    let name = |errno: i16| if errno == 0 { String::new() } else { format!("{:?}", Errno::from_raw(errno.into())) };
    let ours = counted().filter(|s| compared(s.op)).map(|s| (s.op, name(s.errno)));
    assert_eq!(errors(ours), errors(calls.map(|c| (c.name.as_str(), c.error.clone().unwrap_or_default()))));
}

#[test]
fn calls_on_mappings_attributes_and_descriptors_have_their_file() {
    let work = live::scratch();
    let (dir, data) = posix_all(work.path());
    let file = dir.join("data");
    let about = |op: &'static str| -> Vec<_> {
        let spans = data.calls(op).filter(|s| s.errno == 0 && data.path(s) == Some(&file));
        spans.map(|s| (s.offset, s.req_bytes, s.bytes)).collect()
    };
    assert_eq!(about("mmap"), [(Some(4096), Some(8192), None)]);
    assert_eq!(about("msync"), [(Some(8192), Some(4096), None)]);
    assert_eq!(about("madvise"), [(Some(4096), Some(8192), None)]);
    assert_eq!(about("mremap"), [(Some(4096), Some(8192), None)]);
    assert_eq!(about("munmap"), [(Some(4096), Some(4096), None)]);
    assert_eq!(about("readahead"), [(Some(0), Some(4096), None)]);
    assert_eq!(about("sync_file_range"), [(Some(0), Some(4096), None)]);
    assert_eq!(about("getxattr"), [(None, Some(4096), Some(3))]);
    assert_eq!(about("fgetxattr"), [(None, Some(4096), Some(5))]);
    // By name, and by descriptor without a name.
    for op in ["utimensat", "newfstatat", "statx"] {
        assert_eq!(about(op).len(), 2, "{op}");
    }
    let links: Vec<_> = system_calls(&data).filter(|s| s.op == "readlink").map(|s| (s.ret, s.bytes)).collect();
    assert_eq!(links, [(Some(4), Some(4))]);
    let memory = data.calls("memfd_create").next().unwrap();
    assert_eq!(data.path(memory), Some(Path::new("/memfd:memory")));

    // One call closes three descriptors.
    let by = data.calls("close_range").find(|s| s.errno == 0).unwrap().span_id;
    let closed = data.handles.values().filter(|h| h.close_span_id == Some(by)).map(|h| h.raw);
    assert_eq!(closed.collect::<Vec<_>>(), [301, 302, 303]);
}

/// Reads and writes on files below a directory, as the tracer and strace see them.
fn agree(work: &Path, command: &[&str]) -> BTreeMap<String, Total> {
    let names = ["read", "write", "pread64", "pwrite64", "fsync", "fdatasync", "copy_file_range"];
    let below = work.join("files");
    let data = live::trace(work, &[], command).data().lossless();
    let inside = |s: &&Span| names.contains(&s.op) && data.path(s).is_some_and(|p| p.starts_with(&below));
    let ours = Data::totals(system_calls(&data).filter(inside));

    let select = format!("--trace={}", names.join(","));
    let (_, calls) = strace::run(&work.join("strace"), &["-y", &select], command);
    let mut theirs: BTreeMap<String, Total> = BTreeMap::new();
    for call in calls.iter().filter(|c| c.args[0].contains(below.to_str().unwrap())) {
        let total = theirs.entry(call.name.clone()).or_default();
        total.calls += 1;
        total.errors += i64::from(call.error.is_some());
        if !call.name.contains("sync") {
            total.asked += call.asked();
            total.moved += call.result.max(0);
        }
    }
    assert_eq!(ours, theirs, "{command:?}");
    ours
}

#[test]
fn ordinary_programs_match_strace() {
    let work = live::scratch();
    let below = work.path().join("files");
    fs::create_dir(&below).unwrap();
    let (from, to) = (below.join("from"), below.join("to"));
    fs::write(&from, vec![b'f'; 300_001]).unwrap();
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());

    let dd = ["dd", "if=/dev/zero", &format!("of={to}"), "bs=4096", "count=100", "conv=fsync"];
    let seen = agree(work.path(), &dd);
    assert_eq!(seen["write"], Total { calls: 100, errors: 0, asked: 409_600, moved: 409_600 });
    assert_eq!(seen["fsync"].calls, 1);

    fs::remove_dir_all(work.path().join("run.iotrace")).unwrap();
    let seen = agree(work.path(), &["md5sum", from, from]);
    assert_eq!(seen["read"].moved, 600_002);

    fs::remove_dir_all(work.path().join("run.iotrace")).unwrap();
    let seen = agree(work.path(), &["dd", &format!("if={from}"), &format!("of={to}"), "bs=1000"]);
    assert_eq!((seen["read"].moved, seen["write"].moved, seen["write"].calls), (300_001, 300_001, 301));
}
