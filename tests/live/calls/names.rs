//! Names of files as they may be, hostile and as long as the kernel allows: recorded whole, and shown without doing anything.

use crate::common::live;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longest name of a file, and longest path with its end (limits.h).
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4096;

/// Title, colour, clear screen, lines, right-to-left override, delete, and bytes that are no UTF-8.
const HOSTILE: &[u8] = b"a\x1b]0;owned\x07\x1b[31m\x1b[2J\r\nb\xe2\x80\xaec\x7f\xff\x9b31m";

/// A name of this length that begins in a hostile way.
fn name(len: usize) -> Vec<u8> {
    let mut name = HOSTILE.to_vec();
    name.resize(len, b'x');
    name
}

/// How a dataset has it: only what is no UTF-8 is written otherwise.
fn recorded(path: &Path) -> String {
    let chunks = path.as_os_str().as_bytes().utf8_chunks();
    chunks
        .map(|chunk| {
            let others = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")).collect::<Vec<_>>().concat();
            chunk.valid().to_owned() + &others
        })
        .collect()
}

/// A file with the longest path below a directory.
fn deepest(work: &Path) -> PathBuf {
    let mut path = work.to_owned();
    let left = |path: &Path| PATH_MAX - 1 - path.as_os_str().len();
    while left(&path) > 2 * (NAME_MAX + 1) {
        path.push(OsStr::from_bytes(&name(NAME_MAX)));
    }
    path.push("d".repeat(left(&path) / 2 - 1));
    fs::create_dir_all(&path).unwrap();
    path.push("f".repeat(left(&path) - 1));
    fs::write(&path, "deep").unwrap();
    assert_eq!(path.as_os_str().len(), PATH_MAX - 1);
    path
}

fn does_nothing(output: &[u8]) -> String {
    let output = String::from_utf8(output.to_vec()).unwrap();
    let acts = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!output.contains(acts), "{output:?}");
    output
}

#[test]
fn hostile_and_long_names_are_recorded_completely_and_do_nothing() {
    let work = live::scratch();
    let dir = fs::canonicalize(work.path()).unwrap();
    let program = dir.join(OsStr::from_bytes(&name(NAME_MAX)));
    fs::copy("/usr/bin/head", &program).unwrap();
    let short = dir.join(OsStr::from_bytes(HOSTILE));
    fs::write(&short, "short").unwrap();
    let deep = deepest(&dir.join("deep"));
    let script = "exec \"$0\" -c 100 < \"$1\"";
    let mut all = Vec::new();
    for file in [&short, &deep] {
        let command = ["sh".as_ref(), "-c".as_ref(), script.as_ref(), program.as_os_str(), file.as_os_str()];
        let traced = live::trace(work.path(), &["--force"], &command);
        let data = traced.data();
        all.push(does_nothing(traced.stdout.as_bytes()) + &does_nothing(traced.stderr.as_bytes()));
        let whole = recorded(file);
        let read: Vec<_> = data.calls("read").filter(|s| s.bytes > Some(0)).map(|s| data.path(s)).collect();
        assert!(read.contains(&Some(Path::new(&whole))), "{whole}: {read:?}");
        assert!(data.processes.values().any(|p| p.exe.as_deref() == Some(&recorded(&program))), "{:?}", data.processes);
        for shows in [&["report"][..], &["report", "--json"], &["replay", "--batch"], &["replay", "--batch", "--json"]]
        {
            let out = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).args(shows).arg(&traced.dir).output().unwrap();
            assert_eq!(out.status.code(), Some(0), "{shows:?}");
            all.push(does_nothing(&out.stdout) + &does_nothing(&out.stderr));
        }
        // While the trace goes on, too.
        for shows in [&["--batch"][..], &["--batch", "--json"]] {
            let out = live::tracer().args(shows).arg("--").args(command).output().unwrap();
            assert_eq!(out.status.code(), Some(0), "{shows:?}");
            all.push(does_nothing(&out.stdout) + &does_nothing(&out.stderr));
        }
    }
    assert!(all.iter().any(|output| output.contains("\\x1b]0;owned\\x07\\x1b[31m")), "{all:?}");
}
