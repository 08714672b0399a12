//! Datasets in the formats of other tools: their counters are the programs' own counts.

use serde_json::Value;

use crate::common::live;
use crate::common::programs;
use crate::common::tools::exports;

/// The sum over functions, of calls that succeeded, of bytes.
fn sum(truth: &Value, functions: &[&str]) -> (i64, i64) {
    let of = |what: &str, name: &&str| truth[what][*name].as_i64().unwrap_or(0);
    let calls = functions.iter().map(|name| of("calls", name) - of("errors", name)).sum();
    (calls, functions.iter().map(|name| of("bytes", name)).sum())
}

#[test]
fn darshan_counts_what_posix_mix_counts() {
    let work = live::scratch();
    let dir = work.path().join("mix");
    std::fs::create_dir(&dir).unwrap();
    let traced = live::trace(work.path(), &["--layers", "syscall"], &[programs::build("posix_mix").as_path(), &dir]);
    traced.data().lossless();
    let line = traced.stdout.lines().next().unwrap();
    let truth: Value = serde_json::from_str(line).unwrap();
    let (_, log) = exports::darshan(&traced.dir, work.path());
    let (reads, bytes_read) = sum(&truth, &["read", "pread64", "readv", "preadv", "preadv2"]);
    let (writes, bytes_written) = sum(&truth, &["write", "pwrite64", "writev", "pwritev", "pwritev2"]);
    let (dups, _) = sum(&truth, &["dup", "dup2", "dup3"]);
    let (opens, _) = sum(&truth, &["open", "openat", "openat2", "creat"]);
    let expected = [
        ("POSIX_READS", reads),
        ("POSIX_WRITES", writes),
        ("POSIX_BYTES_READ", bytes_read),
        // The last write is the text itself, whose length it does not count.
        ("POSIX_BYTES_WRITTEN", bytes_written + line.len() as i64 + 1),
        ("POSIX_DUPS", dups),
        // One more for the memory with the counts.
        ("POSIX_OPENS", opens + dups + 1),
        ("POSIX_SEEKS", sum(&truth, &["lseek"]).0),
        ("POSIX_STATS", sum(&truth, &["stat", "lstat", "fstat", "newfstatat", "statx"]).0),
        ("POSIX_FSYNCS", sum(&truth, &["fsync"]).0),
        ("POSIX_FDSYNCS", sum(&truth, &["fdatasync"]).0),
        ("POSIX_RENAME_SOURCES", sum(&truth, &["rename", "renameat", "renameat2"]).0),
    ];
    for (name, value) in expected {
        assert_eq!(log["sums"][name].as_i64().unwrap_or(0), value, "{name}");
    }
    assert!(exports::otf2(&traced.dir, work.path())["IO_OPERATION_COMPLETE"].as_u64().unwrap() > 0);
}

#[test]
fn locks_and_seeks_are_events_of_otf2() {
    let work = live::scratch();
    let dir = work.path().join("all");
    std::fs::create_dir(&dir).unwrap();
    let traced = live::trace(work.path(), &["--layers", "syscall"], &[programs::build("posix_all").as_path(), &dir]);
    traced.data().lossless();
    let events = exports::otf2(&traced.dir, work.path());
    // flock, F_SETLK and F_SETLKW; flock and F_OFD_SETLK.
    for (event, number) in [("IO_ACQUIRE_LOCK", 3), ("IO_RELEASE_LOCK", 2), ("IO_SEEK", 2), ("IO_CHANGE_FLAGS", 2)] {
        assert_eq!(events[event], number, "{event}");
    }
}
