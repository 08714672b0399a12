//! What the test programs report is what they did: strace and the files that they leave agree.

use crate::common::programs;
use crate::common::tools::strace;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn posix_mix_counts_what_strace_counts() {
    let program = programs::build("posix_mix");
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("strace");
    let (out, calls) = strace::run(&trace, &[], &[program.as_path(), dir.path()]);

    let truth: Value = serde_json::from_slice(&out.stdout).unwrap();
    // Calls, errors and the sum of results.
    let mut seen: HashMap<String, (i64, i64, i64)> = HashMap::new();
    for call in calls {
        let entry = seen.entry(call.name).or_default();
        entry.0 += 1;
        entry.1 += i64::from(call.result < 0);
        entry.2 += call.result.max(0);
    }
    // The last write is the text itself, whose length it does not count.
    seen.get_mut("write").unwrap().2 -= out.stdout.len() as i64;
    for (name, calls) in truth["calls"].as_object().unwrap() {
        let (seen_calls, seen_errors, seen_bytes) = seen[name];
        assert_eq!((calls.as_i64(), truth["errors"][name].as_i64()), (Some(seen_calls), Some(seen_errors)), "{name}");
        if let Some(bytes) = truth["bytes"].get(name) {
            assert_eq!(bytes.as_i64(), Some(seen_bytes), "bytes of {name}");
        }
    }
}

#[test]
fn posix_all_makes_every_call_of_the_catalog() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Command::new(programs::build("posix_all")).arg(dir.path()).status().unwrap().success());
    let truth = read_json(&dir.path().join("truth.json"));
    // These are called by fio: tests/live/calls/async_kernel.rs.
    let elsewhere = |symbol: &str| symbol.starts_with("io_");
    let rows = iotrace_bpf::catalog::rows();
    // Sockets, and the halves of calls that copy: tests/live/calls/syscalls_kinds.rs.
    let rows = rows.iter().filter(|r| !r.sockets && !r.op.contains('.') && r.op != "tee");
    for row in rows.filter(|r| r.family == iotrace_bpf::catalog::Family::Syscall && !elsewhere(r.symbol)) {
        assert!(truth["calls"][row.op].as_i64() > Some(0), "{} is not called", row.op);
    }
}

#[test]
fn stdio_mix_moves_the_documented_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let out = Command::new(programs::build("stdio_mix")).arg(dir.path()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let truth: Value = serde_json::from_slice(&out.stdout).unwrap();
    let size = |name: &str| fs::metadata(dir.path().join(name)).unwrap().len();
    assert_eq!(truth["written"].as_u64(), Some(size("lines.txt") + size("blocks.dat")));
}

#[test]
fn metered_matches_strace_and_moves_the_documented_bytes() {
    let program = programs::build("metered");
    // Past the page cache of a disk.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let trace = dir.path().join("strace");
    let select = ["--trace=pwritev,preadv,fdatasync"];
    let (out, calls) = strace::run(&trace, &select, &[program.as_path(), dir.path()]);
    let truth: Value = serde_json::from_slice(&out.stdout).unwrap();
    let of = |name: &str| calls.iter().filter(|c| c.name == name).map(|c| c.result).collect::<Vec<_>>();
    for name in ["pwritev", "preadv", "fdatasync"] {
        assert_eq!(truth["posix"][name].as_u64(), Some(of(name).len() as u64), "{name}");
    }
    let moved = |name: &str| Some(of(name).into_iter().filter(|n| *n > 0).sum::<i64>());
    let printed = |group: &str, at: usize| truth["bytes"][group][at].as_i64();
    assert_eq!([printed("direct", 0), printed("direct", 1)], [moved("preadv"), moved("pwritev")]);
    let size = |name: &str| Some(fs::metadata(dir.path().join(name)).unwrap().len() as i64);
    assert_eq!([printed("stdio", 1), printed("direct", 1)], [size("text"), size("direct")]);
}

#[test]
fn patterns_are_where_strace_sees_them() {
    let program = programs::build("patterns");
    let dir = tempfile::tempdir().unwrap();
    let (out, calls) = strace::run(&dir.path().join("strace"), &["-y"], &[program.as_path(), dir.path()]);
    let truth: Value = serde_json::from_slice(&out.stdout).unwrap();
    // Calls, bytes, those that begin where the last one ended, and those that begin before.
    let mut seen: HashMap<String, [i64; 4]> = HashMap::new();
    let mut ends: HashMap<String, i64> = HashMap::new();
    for call in calls {
        let kind = match call.name.as_str() {
            "pread64" => "read",
            "write" | "pwrite64" => "write",
            _ => continue,
        };
        let Some(file) = call.args[0].split("/sys_").nth(1) else { continue };
        let name = format!("sys_{} {kind}", file.trim_end_matches('>'));
        let before = ends.get(&name).copied();
        let offset = call.args.get(3).map_or(before.unwrap_or(0), |at| at.parse().unwrap());
        ends.insert(name.clone(), offset + call.result);
        let sums = seen.entry(name).or_default();
        let jump = before.map(|end| offset - end);
        for (sum, n) in sums.iter_mut().zip([
            1,
            call.result,
            i64::from(jump == Some(0)),
            i64::from(jump.is_some_and(|jump| jump < 0)),
        ]) {
            *sum += n;
        }
    }
    let printed = truth.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("sys_"));
    let printed = printed.map(|(name, n)| {
        let figures = ["calls", "bytes", "consecutive", "random"].map(|figure| n[figure].as_i64().unwrap());
        (name.clone(), figures)
    });
    assert_eq!(seen, printed.collect());
}

#[test]
fn stdio_all_moves_the_documented_bytes() {
    let dir = tempfile::tempdir().unwrap();
    for program in ["stdio_all", "stdio_all_static"] {
        assert!(Command::new(programs::build(program)).arg(dir.path()).output().unwrap().status.success());
        let truth = read_json(&dir.path().join("truth.json"));
        let size = |name: &str| fs::metadata(dir.path().join(name)).unwrap().len();
        let bytes = |names: &[&str]| names.iter().map(|name| truth["bytes"][*name].as_u64().unwrap()).sum::<u64>();
        assert_eq!(bytes(&["dprintf", "__dprintf_chk", "vdprintf", "__vdprintf_chk"]), size("dprintf"));
        // All that only that file is read with.
        assert_eq!(bytes(&["fscanf", "__isoc99_fscanf", "vfscanf", "__isoc99_vfscanf"]), size("scanf"));
        let stdin = ["getchar", "getchar_unlocked", "gets", "__gets_chk", "scanf", "__isoc99_scanf", "vscanf"];
        assert_eq!(bytes(&stdin) + bytes(&["__isoc99_vscanf"]), size("stdin"));
    }
}

#[test]
fn phases_counts_what_strace_counts() {
    let program = programs::build("phases");
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("strace");
    let (out, calls) = strace::run(&trace, &["-e", "trace=pwrite64,read"], &[program.as_path(), dir.path()]);
    let truth: Value = serde_json::from_slice(&out.stdout).unwrap();
    let moved = |name: &str, size: &str| -> i64 {
        calls.iter().filter(|c| c.name == name && c.args[2] == size).map(|c| c.result).sum()
    };
    // The child writes a block that the parent does not count.
    assert_eq!(truth["phases"]["save"]["written"].as_i64(), Some(moved("pwrite64", "4096") - 4096));
    assert_eq!(truth["phases"]["load"]["read"].as_i64(), Some(moved("read", "4096")));
}

#[test]
fn the_demo_verifies_its_own_data() {
    let dir = tempfile::tempdir().unwrap();
    let out_dir = dir.path().join("out");
    let mut mpirun = Command::new(programs::openmpi("mpirun"));
    mpirun.args(["--allow-run-as-root", "--oversubscribe", "-np", "4"]).arg(programs::build("demo")).arg(&out_dir);
    let out = mpirun.output().expect("mpirun is installed");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let size = |name: &str| fs::metadata(out_dir.join(name)).unwrap().len();
    let mut stdio = 0;
    for rank in 0..4 {
        let truth = read_json(&out_dir.join(format!("truth.{rank}.json")));
        assert_eq!(truth["rank"], rank);
        assert_eq!(truth["hdf5"]["H5Dwrite"], 8);
        assert_eq!(truth["stdio_bytes_written"].as_u64(), Some(size(&format!("log.{rank}"))));
        stdio += truth["stdio_bytes_written"].as_u64().unwrap();
    }
    assert!(stdio > 0);
    assert!(size("demo.h5") > 2 * 1024 * 256 * 8, "two datasets of 1024 x 256 doubles");
}

#[test]
fn programs_that_do_nothing_before_their_first_call_work() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["first_call", "first_h5"] {
        let file = dir.path().join(name);
        assert!(Command::new(programs::build(name)).arg(&file).status().unwrap().success(), "{name}");
        assert!(file.metadata().unwrap().len() > 0, "{name}");
    }
}

#[test]
fn looper_keeps_its_truth_current() {
    let dir = tempfile::tempdir().unwrap();
    let truth = dir.path().join("truth");
    let mut looper = Command::new(programs::build("looper"));
    assert!(looper.arg(dir.path()).arg(&truth).arg("0.1").status().unwrap().success());
    let bytes = fs::read(&truth).unwrap();
    let numbers: Vec<i64> = bytes.chunks_exact(8).map(|b| i64::from_ne_bytes(b.try_into().unwrap())).collect();
    let [_pid, ready, fwrites, pwrites, fwrite_bytes, pwrite_bytes, _stop] = numbers[..] else { panic!("{numbers:?}") };
    assert_eq!(ready, 1);
    assert!(fwrites > 0);
    assert_eq!((fwrites, fwrite_bytes), (pwrites, pwrite_bytes));
    assert_eq!(dir.path().join("looper.dat").metadata().unwrap().len() as i64, pwrite_bytes);
    assert_eq!(dir.path().join("looper.txt").metadata().unwrap().len() as i64, fwrite_bytes);
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
