//! After a trace nothing of it is left: no program, link or map in the kernel, by its own list, and no probe in the process
//! that was traced, byte by byte.

use crate::common::live::{self, Data, Running};
use crate::common::programs;
use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the kernel has of a process: numbers of programs, links, maps.
type Objects = [BTreeSet<u32>; 3];

/// All that there is.
fn in_kernel() -> Objects {
    [
        ProgInfoIter::default().map(|p| p.id).collect(),
        LinkInfoIter::default().map(|l| l.id).collect(),
        MapInfoIter::default().map(|m| m.id).collect(),
    ]
}

/// What a process holds by descriptors.
fn held_by(pid: u32) -> Objects {
    let mut all = Objects::default();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        for (of, key) in all.iter_mut().zip(["prog_id:", "link_id:", "map_id:"]) {
            of.extend(text.lines().filter_map(|l| l.strip_prefix(key)?.trim().parse::<u32>().ok()));
        }
    }
    all
}

fn both(a: &Objects, b: &Objects) -> [usize; 3] {
    [0, 1, 2].map(|n| a[n].intersection(&b[n]).count())
}

/// The C library that this program has, in a file of its own: no other probes are in it.
fn own_libc(work: &Path) -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().find_map(|line| line.split_whitespace().nth(5).filter(|path| path.ends_with("/libc.so.6")));
    let copy = work.join("libc.so.6");
    fs::copy(libc.unwrap(), &copy).unwrap();
    copy
}

/// The code of a file in a process as it is now, and where in the file it begins.
fn code(pid: u32, file: &Path) -> (usize, Vec<u8>) {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let fields = maps.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let code = |f: &Vec<&str>| f[1] == "r-xp" && f.get(5).is_some_and(|path| Path::new(path) == file);
    let [line] = &fields.filter(code).collect::<Vec<_>>()[..] else { panic!("{maps}") };
    let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let (start, end) = line[0].split_once('-').unwrap();
    let mut bytes = vec![0; hex(end) - hex(start)];
    fs::File::open(format!("/proc/{pid}/mem")).unwrap().read_exact_at(&mut bytes, hex(start) as u64).unwrap();
    (hex(line[2]), bytes)
}

/// Where in the file they differ, and what stands there now.
fn changes(from: usize, before: &[u8], now: &[u8]) -> Vec<(usize, u8)> {
    let all = before.iter().zip(now).enumerate();
    all.filter(|(_, (before, now))| before != now).map(|(at, (_, now))| (from + at, *now)).collect()
}

/// The probes in a file on places where functions are left.
fn exits(file: &Path) -> usize {
    let out = live::tracer().args(["probes", "check", "--json"]).arg(file).output().unwrap();
    let files: Value = serde_json::from_slice(&out.stdout).unwrap();
    let functions = files[0]["functions"].as_array().unwrap().iter();
    let places: u64 = functions.filter(|f| f["returns"] == "place").filter_map(|f| f["places"].as_u64()).sum();
    assert!(places > 0, "{files}");
    places as usize
}

#[test]
fn nothing_is_left_of_a_trace_whatever_ends_it() {
    let work = live::scratch();
    let (libc, truth) = (own_libc(work.path()), work.path().join("truth"));
    let mut looper = Command::new(programs::build("looper"));
    looper.args([work.path(), &truth]).arg("300").env("LD_LIBRARY_PATH", work.path());
    let mut target = Running::spawn(&mut looper);
    live::until("looper", || live::truth(&truth).pwrites > 5);
    let (from, untouched) = code(target.pid(), &libc);

    for (n, end) in [None, Some(Signal::SIGINT), Some(Signal::SIGKILL)].into_iter().enumerate() {
        let (dataset, output) = (work.path().join(format!("run.{n}")), work.path().join("stderr"));
        let mut tracer = live::tracer();
        tracer.args(if end.is_none() { &["--duration", "2s"][..] } else { &[] });
        tracer.arg("-o").arg(&dataset).arg("-p").arg(target.pid().to_string());
        let mut guard = Running::spawn(tracer.stdout(Stdio::null()).stderr(fs::File::create(&output).unwrap()));
        let tracer = live::child_of(guard.pid());
        live::until_it_traces(tracer, &output);
        let objects = held_by(tracer);
        assert!(objects.iter().all(|of| !of.is_empty()), "{objects:?}");
        assert_eq!(both(&objects, &in_kernel()), [0, 1, 2].map(|n| objects[n].len()));
        let probes = changes(from, &untouched, &code(target.pid(), &libc).1);
        // Breakpoints, in place of the first byte of an instruction.
        assert!(!probes.is_empty() && probes.iter().all(|(_, byte)| *byte == 0xcc), "{probes:?}");

        if let Some(signal) = end {
            live::send(tracer, signal);
        }
        let status = guard.wait();
        assert_eq!(status.success(), end != Some(Signal::SIGKILL), "{status:?}");
        // The kernel frees them soon after.
        live::until("the end of all programs", || both(&objects, &in_kernel()) == [0; 3]);
        live::until("the end of all probes", || code(target.pid(), &libc).1 == untouched);
        let before = live::truth(&truth).pwrites;
        live::until("looper to go on", || live::truth(&truth).pwrites > before + 5);
        if end != Some(Signal::SIGKILL) {
            // Each is one that the trace recorded as set.
            let data = Data::read(&dataset).lossless();
            let printed = data.coverage.iter().filter(|c| Path::new(&c.target) == libc && c.status == "attached");
            let printed: BTreeSet<usize> = printed.map(|c| c.offset.unwrap() as usize).collect();
            let probes: BTreeSet<usize> = probes.iter().map(|(at, _)| *at).collect();
            assert!(printed.is_subset(&probes), "{printed:?} {probes:?}");
            // Those on longjmp and its like record nothing: longjmp, __longjmp_chk, setcontext. Functions that are left in
            // places that have probes are printed once.
            assert_eq!(probes.len() - printed.len(), 3 + exits(&libc), "{printed:?} {probes:?}");
        }
    }

    // Its work is what it would have been.
    live::send(target.pid(), Signal::SIGTERM);
    target.wait();
    let made = live::truth(&truth);
    for (name, records) in [("looper.dat", made.pwrites), ("looper.txt", made.fwrites)] {
        let written = fs::read(work.path().join(name)).unwrap();
        assert!(written.iter().all(|byte| *byte == b'r'), "{name}");
        // What a stream still has in its buffer is lost with the program.
        let buffered = if name == "looper.txt" { 4096 } else { 0 };
        let expected = records as usize * 4096;
        assert!(
            (expected - buffered..=expected + 4096).contains(&written.len()),
            "{name}: {} of {expected}",
            written.len()
        );
    }
}
