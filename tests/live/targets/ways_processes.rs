//! Threads, children and what stands around processes: other launchers, filters of system calls.

use crate::common::live::{self, Data};
use crate::common::programs;
use crate::common::ways::{self, Counts};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn each_thread_has_its_own_calls() {
    const THREADS: usize = 16;
    const ROUNDS: usize = 500;
    let work = live::scratch();
    let dir = work.path().join("out");
    fs::create_dir(&dir).unwrap();
    let command = [&programs::build("threads"), &dir, Path::new("16"), Path::new("500")].map(Path::to_path_buf);
    let data = live::trace(work.path(), &[], &command).data().lossless();
    let counts = Counts::of(&data);
    let mut threads = BTreeSet::new();
    for k in 0..THREADS {
        let [text, blocks] = ["txt", "dat"].map(|kind| dir.join(format!("{k}.{kind}")));
        let stdio = ["fopen", "fwrite", "rewind", "fread", "fclose"].map(|op| counts.get(op, &text));
        assert_eq!(stdio, [1, ROUNDS, 1, ROUNDS, 1], "thread {k}");
        let calls = ["openat", "pwrite64", "pread64", "close"].map(|op| counts.get(op, &blocks));
        assert_eq!(calls, [1, ROUNDS, ROUNDS, 1], "thread {k}");
        let own: Vec<&Span> =
            data.spans.iter().filter(|s| data.path(s) == Some(&text) || data.path(s) == Some(&blocks)).collect();
        assert!(own.iter().all(|s| s.tid == own[0].tid && s.tid != s.pid), "thread {k}");
        assert!(threads.insert(own[0].tid), "thread {k}");
        for kind in [Kind::Read, Kind::Write] {
            let bytes = |layer| -> i64 {
                own.iter().filter(|s| s.layer == layer && s.kind == kind && s.layer_top).filter_map(|s| s.bytes).sum()
            };
            let (records, blocks) = ((ROUNDS * 100) as i64, (ROUNDS * 512) as i64);
            assert_eq!(bytes(Layer::Stdio), records);
            // Each byte of the text once, too: the buffers are written out, and filled, as they are.
            assert_eq!(bytes(Layer::Syscall), records + blocks);
        }
        // What a thread's calls cause is in those calls, and in no other thread's.
        for span in own.iter().filter(|s| s.op == "write") {
            let parent = data.parent(span).unwrap();
            assert_eq!((parent.layer, parent.tid), (Layer::Stdio, span.tid));
        }
    }
}

/// What `seccomp` writes and reads: as many lines.
const LINES: usize = 200;

fn seccomp(how: &str, file: &Path) -> [PathBuf; 4] {
    [&programs::build("seccomp"), Path::new(how), file, Path::new("200")].map(Path::to_path_buf)
}

/// All calls on a program's file are there; where return probes would be its end they are refused, and that is reported.
fn sees_lines(data: &Data, file: &Path, reads: usize) {
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.lines().count(), LINES);
    if !data.coverage.iter().any(|c| (c.layer, c.status) == (Layer::Stdio, "attached")) {
        let refused = data.coverage.iter().find(|c| c.layer == Layer::Stdio && c.status == "skipped").unwrap();
        assert!(refused.reason.as_deref().unwrap().contains("seccomp"), "{refused:?}");
        return;
    }
    let counts = Counts::of(data);
    assert_eq!((counts.get("fprintf", file), counts.get("fgets", file)), (LINES, reads));
    let written = data.layer(Layer::Stdio).filter(|s| s.op == "fprintf").filter_map(|s| s.bytes).sum::<i64>();
    assert_eq!(written, text.len() as i64);
}

#[test]
fn a_seccomp_filter_does_not_end_a_traced_process() {
    let work = live::scratch();
    let file = work.path().join("file");
    let data = live::trace(work.path(), &[], &seccomp("filter", &file)).data().lossless();
    sees_lines(&data, &file, LINES + 1);
}

/// The kernel does not change the mode of a process that has the filter by which it is held.
#[test]
fn the_strict_mode_of_seccomp_is_there_where_nothing_is_held() {
    let work = live::scratch();
    let [held, free, shell] = ["held", "free", "shell"].map(|name| work.path().join(name));
    for (dir, options, code) in [(&held, &[][..], 1), (&free, &["--layers", "syscall,block"][..], 0)] {
        fs::create_dir(dir).unwrap();
        let traced = live::trace(dir, options, &seccomp("strict", &dir.join("file")));
        assert_eq!(traced.code, Some(code), "{}", traced.stderr);
    }
    let bytes = fs::metadata(free.join("file")).unwrap().len() as i64;
    let data = Data::read(&free.join("run.iotrace"));
    assert_eq!(data.calls("write").filter_map(|s| s.bytes).sum::<i64>(), bytes);

    fs::create_dir(&shell).unwrap();
    let file = shell.join("file");
    let mut shell_of = Command::new("sh");
    shell_of.args(["-c", "read go; exec \"$0\" \"$@\""]).args(seccomp("strict", &file)).stdin(Stdio::piped());
    let mut process = live::Running::spawn(&mut shell_of);
    let attached = ways::Attached::to(&shell, &[], process.pid());
    process.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let data = attached.data();
    assert_eq!(process.wait().code(), Some(0));
    sees_lines(&data, &file, 0);
}

#[test]
fn ranks_that_mpich_launches_are_traced() {
    const RANKS: i32 = 3;
    const BLOCKS: i64 = 20;
    let work = live::scratch();
    let file = work.path().join("file");
    let mpirun = [&programs::mpich("mpirun"), "-np", &RANKS.to_string()].map(PathBuf::from);
    let command = [&mpirun[..], &[programs::build("mpi_io"), file.clone(), BLOCKS.to_string().into()]].concat();
    let data: Data = live::trace(work.path(), &[], &command).data().lossless();
    // The launcher, its proxy, the ranks.
    let launchers: Vec<_> = data.processes.values().filter(|p| p.rank.is_none()).collect();
    assert!(launchers.iter().any(|p| p.exe.as_deref().is_some_and(|exe| exe.contains("hydra"))), "{launchers:?}");
    for rank in 0..RANKS {
        let process = data.processes.values().find(|p| p.rank == Some(rank)).unwrap();
        assert_eq!((process.world_size, process.exit_code), (Some(RANKS), Some(0)));
        for (op, kind) in [("pwrite64", Kind::Write), ("pread64", Kind::Read)] {
            let mut calls: Vec<&Span> =
                data.calls(op).filter(|s| s.rank == Some(rank) && data.path(s) == Some(&file)).collect();
            calls.sort_by_key(|s| s.start_ns);
            let offsets: Vec<i64> = calls.iter().map(|s| s.offset.unwrap()).collect();
            let wanted: Vec<i64> = (0..BLOCKS).map(|i| (i * i64::from(RANKS) + i64::from(rank)) * 4096).collect();
            assert_eq!(offsets, wanted, "{op} of rank {rank}");
            assert!(calls.iter().all(|s| (s.bytes, s.kind, s.pid) == (Some(4096), kind, process.pid)));
        }
    }
}
