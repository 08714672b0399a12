//! Phases that are lines of a source file: their spans and the I/O in them are what the source says, with or without
//! optimisation, in MPI programs and in Fortran.

use crate::common::live::{self, Data};
use crate::common::programs;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Layer, flag};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// `FILE:FIRST-LAST` between the lines that hold these texts.
fn range(file: &str, first: &str, last: &str) -> String {
    let text = fs::read_to_string(source(file)).unwrap();
    let line =
        |of: &str| text.lines().position(|line| line.contains(of)).unwrap_or_else(|| panic!("{of} in {file}")) + 1;
    format!("{file}:{}-{}", line(first), line(last))
}

fn marked(name: &str) -> String {
    range("ranges.c", &format!("/* {name} */"), &format!("/* /{name} */"))
}

fn compile(compiler: &str, flags: &[&str], name: &str, to: &Path) -> PathBuf {
    let out = Command::new(compiler).args(flags).arg("-o").arg(to).arg(source(name)).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    to.to_owned()
}

/// The calls of a phase, in order.
fn spans<'a>(data: &'a Data, op: &str) -> Vec<&'a Span> {
    let mut all: Vec<&Span> = data.layer(Layer::App).filter(|s| s.op == op).collect();
    all.sort_by_key(|s| (s.pid, s.start_ns));
    all
}

/// The bytes of each system call on the file right inside each call of a phase, in order.
fn moved(data: &Data, op: &str) -> Vec<Vec<i64>> {
    let inside = |phase: &&Span| {
        let mut calls: Vec<&Span> = data.layer(Layer::Syscall).filter(|s| s.parent_id == Some(phase.span_id)).collect();
        calls.sort_by_key(|s| s.start_ns);
        calls.iter().filter_map(|s| s.bytes).collect()
    };
    spans(data, op).iter().map(inside).collect()
}

/// Traces `ranges` and compares all of its ranges with the source.
fn agrees(flags: &[&str]) {
    let work = live::scratch();
    let program =
        compile("cc", &[&["-g", "-D_GNU_SOURCE", "-w"], flags].concat(), "ranges.c", &work.path().join("ranges"));
    let [around, body, chosen, left, deep] = ["around", "body", "chosen", "left", "deep"].map(marked);
    let all = [&body, &around, &chosen, &left, &deep];
    let mut options: Vec<&str> = all.iter().flat_map(|range| ["--phase", range.as_str()]).collect();
    options.extend(["--phase", "main"]);
    let traced = live::trace(work.path(), &options, &[program.as_path(), work.path()]);
    let data = traced.data().lossless();
    let attached = |op: &str| data.coverage.iter().any(|c| c.symbol == op && c.status == "attached");
    assert!(
        all.iter().all(|op| attached(op)),
        "{flags:?}: {:?}",
        data.coverage.iter().filter(|c| c.layer == Layer::App).collect::<Vec<_>>()
    );

    // One span around each loop, whose calls are in one for each round.
    assert_eq!(moved(&data, &around).concat(), [0_i64; 0], "{flags:?}");
    assert_eq!(spans(&data, &around).len(), 2, "{flags:?}");
    let (read, not) = (vec![100, 10], vec![100]);
    let rounds = [&read, &read, &not, &read, &read, &not, &read, &read, &not, &read];
    assert_eq!(moved(&data, &body).iter().collect::<Vec<_>>(), rounds, "{flags:?}");
    let of = |op: &str, n: usize| spans(&data, op)[n].span_id;
    let parents: Vec<Option<i64>> = spans(&data, &body).iter().map(|s| s.parent_id).collect();
    assert_eq!(parents, [vec![Some(of(&around, 0)); 6], vec![Some(of(&around, 1)); 4]].concat(), "{flags:?}");
    // It is left by a return, at its end, by a jump.
    assert_eq!(moved(&data, &chosen), [[20], [21], [22], [22], [23], [23]], "{flags:?}");
    // What jumped out of the function never ends; the last one does.
    assert_eq!(moved(&data, &left), [vec![30], vec![30], vec![30], vec![30, 31]], "{flags:?}");
    let unfinished: Vec<&Span> = data.spans.iter().filter(|s| s.flags & flag::UNFINISHED != 0).collect();
    assert_eq!(unfinished.iter().map(|s| s.op).collect::<Vec<_>>(), [left.as_str(); 3], "{flags:?}");
    // Each call of the function has its own.
    assert_eq!(moved(&data, &deep), vec![vec![40, 41]; 4], "{flags:?}");
    let depths: Vec<i8> = spans(&data, &deep).iter().map(|s| s.depth).collect();
    assert_eq!(depths, [1, 2, 3, 4], "{flags:?}");
    // What is in no range is the program's, right below `main`.
    let main = moved(&data, "main");
    let of_main: Vec<i64> = main.concat().into_iter().filter(|n| (1..=6).contains(n)).collect();
    let returns = [vec![3], vec![3, 4, 5], vec![3, 5], vec![3, 5], vec![3, 4, 5], vec![3, 4, 5]].concat();
    assert_eq!(of_main, [vec![1, 2, 1, 2], returns, vec![6; 4]].concat(), "{flags:?}");
}

#[test]
fn ranges_hold_what_their_lines_do() {
    agrees(&["-O0"]);
    agrees(&["-O0", "-fomit-frame-pointer"]);
}

#[test]
fn ranges_of_optimised_code_hold_what_their_lines_do() {
    agrees(&["-O1", "-fno-inline"]);
    agrees(&["-O2"]);
}

#[test]
fn ranges_of_ranks_hold_their_mpi_io() {
    let work = live::scratch();
    let loops = range("mpi_io.c", "long i = 0", "MPI_File_write_at");
    let program = programs::build("mpi_io");
    let out = work.path().join("mpi.dat");
    let command = [programs::mpich("mpirun"), "-n".into(), "2".into()].map(PathBuf::from);
    let command = [&command[..], &[program, out, "5".into()]].concat();
    let traced = live::trace(work.path(), &["--phase", &loops], &command);
    let data = traced.data().lossless();
    let found = spans(&data, &loops);
    assert_eq!(found.len(), 2, "one on each rank");
    for phase in found {
        let inside: Vec<&Span> = data.layer(Layer::Mpiio).filter(|s| s.parent_id == Some(phase.span_id)).collect();
        assert_eq!(inside.len(), 5);
        assert!(inside.iter().all(|s| s.op == "MPI_File_write_at" && s.bytes == Some(4096)), "{inside:?}");
    }
}

#[test]
fn ranges_of_fortran_hold_its_mpi_io() {
    let work = live::scratch();
    let lines =
        range("mpiio_f.f90", "block, 200, MPI_DOUBLE_PRECISION, status", "block, 200, MPI_DOUBLE_PRECISION, request");
    let program = programs::build("mpiio_f");
    let mpirun = [&programs::openmpi("mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", "2"];
    let command = [&mpirun.map(PathBuf::from)[..], &[program, work.path().to_owned()]].concat();
    let traced = live::trace(work.path(), &["--phase", &lines], &command);
    let data = traced.data().lossless();
    let found = spans(&data, &lines);
    assert_eq!(found.len(), 2, "one on each rank");
    for phase in found {
        let mut ops: Vec<&Span> = data.layer(Layer::Mpiio).filter(|s| s.parent_id == Some(phase.span_id)).collect();
        ops.sort_by_key(|s| s.start_ns);
        assert_eq!(ops.iter().map(|s| s.op).collect::<Vec<_>>(), ["MPI_File_write_at_all", "MPI_File_iread_at"]);
    }
}

#[test]
fn why_there_is_no_range_is_said() {
    let work = live::scratch();
    let program = compile("cc", &["-D_GNU_SOURCE", "-w"], "ranges.c", &work.path().join("plain"));
    let around = marked("around");
    let traced = live::trace(work.path(), &["--phase", &around], &[program.as_path(), work.path()]);
    let expected = "plain has no debug information (compile the program with -g";
    let data = traced.data();
    let row = data.coverage.iter().find(|c| c.symbol == around).unwrap();
    assert!(row.status == "absent" && row.reason.as_deref().unwrap().contains(expected), "{row:?}");
    assert!(traced.stderr.lines().any(|line| line.contains("warning") && line.contains(expected)), "{}", traced.stderr);
    assert_eq!(spans(&data, &around).len(), 0);
}
