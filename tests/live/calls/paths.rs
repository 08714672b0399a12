//! The paths that calls name are those that strace sees, whatever comes of the calls.

use crate::common::live::{self, Data};
use crate::common::tools::strace;
use crate::common::{programs, sql, ways};
use iotrace_bpf::catalog::{self, Family, Row};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A call, the paths that it names, and its error.
type Named = (String, [Option<String>; 2], String);

/// How often each was there.
fn counted(calls: impl Iterator<Item = Named>) -> BTreeMap<Named, usize> {
    let mut counts = BTreeMap::new();
    calls.for_each(|call| *counts.entry(call).or_default() += 1);
    counts
}

/// An absolute path by its text.
fn absolute(base: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Path argument `path` of a call that strace shows with `-y`, seen from the descriptor in `base`.
fn path(args: &[String], path: Option<u8>, base: Option<u8>, cwd: &str) -> Option<String> {
    let given = args[usize::from(path?)].trim_end_matches("...").strip_prefix('"')?.strip_suffix('"')?;
    let base = base.map_or(Some(cwd), |at| args[usize::from(at)].split_once('<')?.1.strip_suffix('>'));
    match (given, base) {
        ("", _) => None,
        (given, Some(base)) => Some(absolute(base, given)),
        (given, None) => Some(given.to_owned()),
    }
}

/// What strace sees of a command that works in `dir`.
fn straced(work: &Path, dir: &Path, command: &[PathBuf]) -> BTreeMap<Named, usize> {
    let rows: BTreeMap<&str, Row> = catalog::rows()
        .into_iter()
        .filter(|row| row.family == Family::Syscall && row.path.is_some())
        .map(|row| (row.symbol, row))
        .collect();
    let (_, calls) = strace::run(&work.join("strace"), &["-y", "-e", "trace=%file"], command);
    let unknown: BTreeSet<&str> =
        calls.iter().map(|c| c.name.as_str()).filter(|name| !rows.contains_key(name)).collect();
    assert!(unknown.is_subset(&["getcwd"].into()), "{unknown:?}");
    let cwd = dir.to_str().unwrap();
    // The first one is strace's own.
    let calls = calls.iter().skip(1).filter_map(|c| Some((c, rows.get(c.name.as_str())?)));
    let named = calls.map(|(c, row)| {
        let paths = [path(&c.args, row.path, row.base, cwd), path(&c.args, row.path2, row.base2, cwd)];
        (c.name.clone(), paths, c.error.clone().unwrap_or_default())
    });
    // Without a path it is about a descriptor.
    counted(named.filter(|(_, paths, _)| paths[0].is_some()))
}

fn error(span: &Span) -> String {
    if span.errno == 0 { String::new() } else { format!("{:?}", Errno::from_raw(span.errno.into())) }
}

/// What was recorded.
fn recorded(data: &Data) -> BTreeMap<Named, usize> {
    let names = |span: &Span| [span.path_id, span.path2_id].map(|id| id.map(|id| data.named[&id].clone()));
    let names_paths: BTreeSet<&str> = catalog::rows()
        .iter()
        .filter(|row| row.family == Family::Syscall && row.path.is_some())
        .map(|row| row.op)
        .collect();
    let calls = data.layer(Layer::Syscall).filter(|s| names_paths.contains(s.op));
    let (calls, nameless): (Vec<_>, Vec<_>) = calls.partition(|s| s.path_id.is_some());
    // The script opens an empty path once.
    assert_eq!(nameless.iter().filter(|s| s.errno != 0).map(|s| s.op).collect::<Vec<_>>(), ["openat"]);
    counted(calls.into_iter().map(|s| (s.op.to_owned(), names(s), error(s))))
}

/// The script that names paths, which works in this directory.
fn script(dir: &Path) -> Vec<PathBuf> {
    fs::create_dir(dir).unwrap();
    [&[ways::python()][..], &["-I", "-B"].map(PathBuf::from), &[ways::script("paths.py"), dir.to_owned()]].concat()
}

#[test]
fn calls_have_the_paths_that_strace_sees() {
    let work = live::scratch();
    let (first, second) = (work.path().join("first"), work.path().join("second"));
    let data = live::trace(work.path(), &[], &script(&first)).data().lossless();
    let theirs = straced(work.path(), &second, &script(&second));
    // In a directory of another name.
    let here = |path: &Option<String>| path.as_ref().map(|p| p.replacen("/second", "/first", 1));
    let theirs: BTreeMap<Named, usize> =
        theirs.into_iter().map(|((op, [a, b], e), n)| ((op, [here(&a), here(&b)], e), n)).collect();
    let ours = recorded(&data);
    let differ = |a: &BTreeMap<Named, usize>, b: &BTreeMap<Named, usize>| -> Vec<String> {
        a.iter().filter(|(call, n)| b.get(*call) != Some(*n)).map(|(call, n)| format!("{n} {call:?}")).collect()
    };
    let (only_ours, only_theirs) = (differ(&ours, &theirs), differ(&theirs, &ours));
    assert!(only_ours.is_empty() && only_theirs.is_empty(), "ours {only_ours:#?}\nstrace's {only_theirs:#?}");
    // Neither may be empty, and errors and calls of all kinds are among them.
    let has = |op: &str, error: &str| ours.keys().any(|(o, p, e)| o == op && e == error && p[0].is_some());
    for (op, error) in [
        ("openat", "ENOENT"),
        ("openat", "EISDIR"),
        ("openat", "EBADF"),
        ("newfstatat", "ENOENT"),
        ("newfstatat", "ENOTDIR"),
        ("mkdir", ""),
        ("mkdir", "EEXIST"),
        ("rename", "ENOENT"),
        ("unlink", "EISDIR"),
        ("readlink", "EINVAL"),
        ("execve", "ENOENT"),
        ("execve", ""),
    ] {
        assert!(has(op, error), "{op} {error}");
    }
    assert!(ours.keys().any(|(op, [_, new], _)| op == "rename" && new.as_deref() == first.join("moved").to_str()));

    // The report and the view name the directories, most failures first.
    let sql = sql::query(
        &work.path().join("run.iotrace"),
        "SELECT directory, errno, calls FROM v_failed_lookups ORDER BY calls DESC, directory",
    );
    let failed = |directory: &str, errno: Errno| {
        let paths = ours.iter().filter(|((_, _, e), _)| *e == format!("{errno:?}"));
        let inside = |path: &String| Path::new(path).parent() == Some(Path::new(directory));
        paths.filter(|((_, [path, _], _), _)| path.as_ref().is_some_and(inside)).map(|(_, n)| n).sum::<usize>()
    };
    let mut compared = 0;
    for row in &sql {
        let Some(directory) = row["directory"].as_str() else { continue };
        let errno = Errno::from_raw(row["errno"].as_i64().unwrap() as i32);
        assert_eq!(row["calls"], failed(directory, errno), "{directory} {errno:?}");
        compared += 1;
    }
    assert!(compared > 5, "{sql:?}");
    sql::compare(&work.path().join("run.iotrace"));
}

#[test]
fn the_report_names_where_it_was_looked_in_vain() {
    let work = live::scratch();
    let missing = work.path().join("nowhere");
    let script = format!("i=0; while [ $i -lt 40 ]; do test -e {}/$i || i=$((i+1)); done", missing.display());
    let traced = live::trace(work.path(), &["--layers", "syscall"], &["sh", "-c", &script]);
    let (report, data) = (live::report_of(&work.path().join("run.iotrace"), "lookups"), traced.data().lossless());
    let line = report.lines().find(|line| line.ends_with(missing.to_str().unwrap()));
    let words: Vec<&str> = line.unwrap_or_else(|| panic!("{report}")).split_whitespace().collect();
    assert_eq!(words[..3], ["ENOENT", "40", "40"], "{report}");
    // Each path once, whatever was asked of it.
    let paths: BTreeSet<&str> = data.named.values().map(String::as_str).collect();
    assert_eq!(paths.len(), data.named.len());
}

#[test]
fn readers_of_proc_are_recorded() {
    let work = live::scratch();
    let phases = ["--phase", "look_by_stream", "--phase", "look_by_descriptor"];
    let traced = live::trace(work.path(), &phases, &[programs::build("looks")]);
    let data = &traced.data().lossless();
    let output: Vec<i64> = traced.stdout.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [pid, streams, descriptors] = output[..] else { panic!("{}", traced.stdout) };

    let named = |op: &'static str, path: &str| -> Vec<&Span> {
        data.calls(op).filter(|s| s.path_id.is_some_and(|id| data.named[&id] == path)).collect()
    };
    let origin = |span: &Span| data.ancestors(span).find(|s| s.layer == Layer::App).map(|s| s.op);
    let opens = named("openat", "/proc/self/maps");
    // The C library may look as well, of its own accord.
    let by = |phase: &str| opens.iter().filter(|s| origin(s) == Some(phase)).count();
    assert_eq!([by("look_by_stream"), by("look_by_descriptor")], [3, 2]);
    let streams_of = named("fopen", "/proc/self/maps");
    assert_eq!(streams_of.len(), 3);
    for span in opens.iter().chain(&streams_of).filter(|s| origin(s).is_some()) {
        let file = &data.files[&span.file_id.unwrap()];
        let path = format!("/proc/{pid}/maps");
        assert_eq!((file.path.as_deref(), file.role), (Some(path.as_str()), "proc"), "{span:?}");
    }
    // What was read is what the program counted, and is about that file.
    let read = |layer: Layer, phase: &str| -> i64 {
        let own = data.layer(layer).filter(|s| s.kind == Kind::Read && s.layer_top && origin(s) == Some(phase));
        own.inspect(|s| assert!(data.path(s).unwrap().ends_with("maps"))).filter_map(|s| s.bytes).sum()
    };
    assert_eq!(read(Layer::Stdio, "look_by_stream"), streams);
    assert_eq!(read(Layer::Syscall, "look_by_stream"), streams);
    assert_eq!(read(Layer::Syscall, "look_by_descriptor"), descriptors);
    assert!(streams > 0 && descriptors > 0);
    // What is not there, as well.
    let failed = |op: &'static str, path: &str| named(op, path).iter().map(|s| s.errno).collect::<Vec<_>>();
    assert_eq!(failed("access", "/sys/kernel/no/such"), [Errno::ENOENT as i16]);
    assert_eq!(failed("openat", "/proc/self/no/such"), [Errno::ENOENT as i16]);
    assert_eq!(failed("fopen", "/proc/self/no/such"), [-1]);
}

/// Which variant of a call, the number that it was given, and its error.
type Asked = (String, Option<String>, Option<i64>, String);

/// What strace shows of flags, or of a lock, as a number.
fn flags(text: &str) -> Option<i64> {
    let lock = text.strip_prefix("{l_type=").and_then(|lock| lock.split(',').next());
    if let Some(kind) = lock {
        return ["F_RDLCK", "F_WRLCK", "F_UNLCK"].iter().position(|name| *name == kind).map(|n| n as i64);
    }
    let bit = |name: &str| match name {
        "O_RDONLY" => Some(0),
        "FD_CLOEXEC" => Some(1),
        "O_APPEND" => Some(0o2000),
        "O_NONBLOCK" => Some(0o4000),
        number => number.parse().ok(),
    };
    text.split('|').map(bit).sum()
}

#[test]
fn calls_keep_what_they_were_asked_for() {
    let work = live::scratch();
    let file = work.path().join("asked");
    let command: Vec<PathBuf> =
        [&[ways::python()][..], &["-I", "-S", "-B"].map(PathBuf::from), &[ways::script("asked.py"), file.clone()]]
            .concat();
    let data = live::trace(work.path(), &["--layers", "syscall"], &command).data().lossless();
    let (_, calls) =
        strace::run(&work.path().join("strace"), &["-y", "-e", "trace=fcntl,flock,lseek,dup,dup2,dup3"], &command);
    // Standard streams are others there.
    let standard = |fd: i64| (0..3).contains(&fd);
    let mut theirs: BTreeMap<Asked, usize> = BTreeMap::new();
    for call in calls.iter().filter(|c| !standard(c.args[0].split('<').next().unwrap().parse().unwrap())) {
        let named = |word: &String| Some(word.clone()).filter(|word| !word.starts_with("0x"));
        let (cmd, arg) = match call.name.as_str() {
            "fcntl" => {
                let cmd = named(&call.args[1]);
                // Python passes an argument to commands that have none, too.
                let takes = call.args.get(2).filter(|_| cmd.as_ref().is_some_and(|c| !c.starts_with("F_GET")));
                (cmd, takes.and_then(|text| flags(text)).map(|n| i64::from(n as i32)))
            }
            "lseek" => (named(&call.args[2]), call.args[1].parse().ok()),
            "flock" => {
                let operations = [("LOCK_SH", 1), ("LOCK_EX", 2), ("LOCK_NB", 4), ("LOCK_UN", 8)];
                let (words, number) = operations.iter().fold((Vec::new(), 0), |(mut words, number), (name, bit)| {
                    let is_there = call.args[1].split('|').any(|word| word == *name);
                    words.extend((is_there && *name != "LOCK_NB").then_some(*name));
                    (words, number + i64::from(is_there) * bit)
                });
                (words.first().map(|name| (*name).to_owned()), Some(number))
            }
            _ => (None, call.args[0].split('<').next().unwrap().parse().ok()),
        };
        let key = (call.name.clone(), cmd, arg, call.error.clone().unwrap_or_default());
        *theirs.entry(key).or_default() += 1;
    }
    let mut ours: BTreeMap<Asked, usize> = BTreeMap::new();
    let on_standard = |s: &Span| s.handle_id.is_some_and(|id| standard(data.handles[&id].raw));
    let asked = data.spans.iter().filter(|s| ["fcntl", "flock", "lseek", "dup", "dup2", "dup3"].contains(&s.op));
    for span in asked.filter(|s| !on_standard(s)) {
        assert_eq!((span.bytes, span.req_bytes), (None, None), "{span:?}");
        *ours.entry((span.op.to_owned(), span.cmd.map(str::to_owned), span.arg, error(span))).or_default() += 1;
    }
    assert_eq!(ours, theirs);
    let waits = ours.iter().filter(|((_, cmd, ..), _)| cmd.as_deref() == Some("F_SETLKW")).map(|(_, n)| n);
    assert_eq!(waits.sum::<usize>(), 4);

    // Each descriptor leads to the one that it was made of, and is open as that one.
    let raw = |fd: i64| data.handles.values().find(|h| h.raw == fd).unwrap_or_else(|| panic!("descriptor {fd}"));
    let from = |fd: i64| &data.handles[&raw(fd).parent_handle_id.unwrap()];
    assert_eq!(from(301).raw, 300);
    for fd in [100, 200, 300, 301] {
        assert_eq!((from(fd).file_id, from(fd).mode), (raw(fd).file_id, raw(fd).mode), "descriptor {fd}");
        assert_eq!(data.files[&raw(fd).file_id.unwrap()].path.as_deref(), file.to_str());
    }
    assert_eq!([from(100).handle_id, from(200).handle_id], [from(300).handle_id; 2]);
}

#[test]
fn descriptors_from_before_the_trace_have_their_mode() {
    let work = live::scratch();
    let (dir, file) = (work.path(), work.path().join("open"));
    let script = format!(
        "import os, time
fds = [os.open({file:?}, os.O_CREAT | flags) for flags in (os.O_RDWR | os.O_APPEND, os.O_RDONLY, os.O_WRONLY | os.O_SYNC)]
os.set_inheritable(fds[0], True)
open({pid:?}, 'w').write(str(os.getpid())); os.rename({pid:?}, {ready:?})
while not os.path.exists({go:?}): time.sleep(0.01)
for fd in fds: os.fsync(fd)",
        file = file.to_str().unwrap(),
        pid = dir.join("new").to_str().unwrap(),
        ready = dir.join("pid").to_str().unwrap(),
        go = dir.join("go").to_str().unwrap(),
    );
    let mut program = std::process::Command::new(ways::python());
    let mut running = live::Running::spawn(program.args(["-I", "-S", "-B", "-c", &script]));
    let pid = ways::waits(dir);
    let attached = ways::Attached::to(dir, &["--layers", "syscall"], pid);
    let mut truth: BTreeMap<i64, i32> = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        if fs::read_link(entry.path()).is_ok_and(|to| to == file) {
            let fd = entry.file_name().into_string().unwrap();
            let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap();
            let printed = text.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
            truth.insert(fd.parse().unwrap(), i32::from_str_radix(printed, 8).unwrap() & !OFlag::O_CLOEXEC.bits());
        }
    }
    ways::go(dir);
    assert!(running.wait().success());
    let data = attached.data();
    let synced = data.calls("fsync").filter_map(|s| data.handles.get(&s.handle_id?));
    let modes: BTreeMap<i64, i32> = synced.map(|h| (h.raw, h.mode.unwrap())).collect();
    assert_eq!((modes.len(), &modes), (3, &truth));
    assert!(modes.values().any(|mode| mode & OFlag::O_APPEND.bits() != 0));
}
