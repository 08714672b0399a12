//! Programs that `replay-code` makes: compiled, run and traced again, they make the calls of the first trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::live::{self, Data};
use crate::common::programs;
use crate::common::tools::ncdump;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer};

fn mpirun(ranks: &str, command: &[&Path]) -> Vec<PathBuf> {
    let own = ["--allow-run-as-root", "--oversubscribe", "-np", ranks].map(PathBuf::from);
    let mpirun = [PathBuf::from(programs::openmpi("mpirun"))].into_iter().chain(own);
    mpirun.chain(command.iter().map(|part| part.to_path_buf())).collect()
}

fn well(out: &Output) -> String {
    let text = [out.stdout.as_slice(), out.stderr.as_slice()].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(out.status.success(), "{text}");
    text
}

/// A call without times and numbers of the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    op: String,
    /// The file, or the object in it.
    of: String,
    offset: Option<i64>,
    bytes: Option<i64>,
    asked: Option<i64>,
}

/// What a program is compared by: calls that move data or have a position, of each rank in their order.
fn calls(data: &Data, dir: &Path, layer: Layer) -> BTreeMap<i32, Vec<Call>> {
    let mut spans: Vec<&Span> = data.layer(layer).filter(|s| s.layer_top && s.rank.is_some()).collect();
    spans.sort_by_key(|s| s.start_ns);
    let mut ranks = BTreeMap::<i32, Vec<Call>>::new();
    for span in spans {
        let Some(name) = data.path(span).and_then(|path| path.strip_prefix(dir).ok()) else { continue };
        // Objects of HDF5 may be opened and made by other functions of the same effect.
        let other = layer == Layer::Hdf5 && span.kind == Kind::Open;
        if other || !matches!(span.kind, Kind::Open | Kind::Close | Kind::Read | Kind::Write | Kind::Sync | Kind::Seek)
        {
            continue;
        }
        let object = span.object_id.map(|id| data.objects[&id].name.clone()).unwrap_or_default();
        let of = format!("{} {object}", name.display());
        let call = Call { op: span.op.into(), of, offset: span.offset, bytes: span.bytes, asked: span.req_bytes };
        ranks.entry(span.rank.unwrap()).or_default().push(call);
    }
    ranks
}

/// Where the data of a library's transfers went: positions in the file, of each rank in their order.
fn transfers(data: &Data, layer: Layer) -> BTreeMap<i32, Vec<(Kind, i64, i64)>> {
    let mut ranks = BTreeMap::<i32, Vec<(i64, (Kind, i64, i64))>>::new();
    for span in data.layer(Layer::Syscall).filter(|s| matches!(s.kind, Kind::Read | Kind::Write)) {
        let inside = data.ancestors(span).any(|s| s.layer == layer && s.kind == span.kind);
        if let (true, Some(rank), Some(offset), Some(bytes)) = (inside, span.rank, span.offset, span.bytes) {
            ranks.entry(rank).or_default().push((span.start_ns, (span.kind, offset, bytes)));
        }
    }
    let in_order = |mut calls: Vec<(i64, (Kind, i64, i64))>| {
        calls.sort_by_key(|(start, _)| *start);
        calls.into_iter().map(|(_, call)| call).collect()
    };
    ranks.into_iter().map(|(rank, calls)| (rank, in_order(calls))).collect()
}

struct Case {
    _work: tempfile::TempDir,
    source: String,
    ranks: usize,
    /// The directories of the program and of the one that was made of it.
    dirs: [PathBuf; 2],
    data: [Data; 2],
}

/// What a program is made in.
struct Language {
    name: &'static str,
    source: &'static str,
    /// The compiler, by its name in the `Makefile`.
    compiler: [&'static str; 2],
}

const C: Language = Language { name: "c", source: "replay.c", compiler: ["CC", "mpicc"] };
const FORTRAN: Language = Language { name: "fortran", source: "replay.f90", compiler: ["FC", "mpif90"] };

/// Traces a program with 2 ranks, makes one in C of the trace, and traces that.
fn replayed(program: &str, mode: &[&str]) -> Case {
    replayed_in(&C, "2", program, mode)
}

/// The same in a language.
fn replayed_in(language: &Language, ranks: &str, program: &str, mode: &[&str]) -> Case {
    let work = live::scratch();
    let [first, second, code] = ["first", "second", "code"].map(|name| work.path().join(name));
    for dir in [first.join("files/own"), second.join("files")] {
        fs::create_dir_all(dir).unwrap();
    }
    let dirs = [first.join("files"), second.join("files")];
    fs::write(dirs[0].join("input.dat"), vec![b'i'; 50_000]).unwrap();
    let program = programs::build(program);
    let command: Vec<&Path> =
        [program.as_path()].into_iter().chain(mode.iter().map(Path::new)).chain([dirs[0].as_path()]).collect();
    let traced = live::trace(&first, &[], &mpirun(ranks, &command));
    let pattern = format!("{}/*", dirs[0].display());
    let args = ["replay-code", "--language", language.name, "--file", &pattern, "-o"];
    let made = live::tracer().args(args).arg(&code).arg(&traced.dir).output().unwrap();
    well(&made);
    let [name, compiler] = language.compiler;
    let compiler = format!("{name}={}", programs::openmpi(compiler));
    well(&Command::new("make").arg("-C").arg(&code).arg(compiler).output().unwrap());
    let replay = code.join("replay");
    let prepare = mpirun(ranks, &[&replay, Path::new("-p"), &dirs[1]]);
    well(&Command::new(&prepare[0]).args(&prepare[1..]).output().unwrap());
    let again = live::trace(&second, &[], &mpirun(ranks, &[&replay, &dirs[1]]));
    let data = [traced.data().lossless(), again.data().lossless()];
    let ranks = ranks.parse().unwrap();
    Case { source: fs::read_to_string(code.join(language.source)).unwrap(), ranks, _work: work, dirs, data }
}

impl Case {
    fn same_calls(&self, layer: Layer, at_least: usize) {
        let [first, second] = [0, 1].map(|at| calls(&self.data[at], &self.dirs[at], layer));
        assert!(first.len() == self.ranks && first.values().all(|calls| calls.len() >= at_least), "{first:?}");
        assert_eq!(first, second);
    }
}

fn dump(program: &str, file: &Path) -> String {
    let text = well(&Command::new(program).arg("-H").arg(file).output().unwrap());
    // The first line has the name of the file.
    text.lines().skip(1).collect::<Vec<_>>().join("\n")
}

#[test]
fn system_calls_of_a_program() {
    let case = replayed("segments", &["posix"]);
    case.same_calls(Layer::Syscall, 290);
    assert!(case.source.lines().count() < 100, "{}", case.source);
    let sizes =
        |dir: &Path| ["shared.dat", "own/0.dat", "own/1.dat"].map(|name| dir.join(name).metadata().unwrap().len());
    assert_eq!(sizes(&case.dirs[0]), sizes(&case.dirs[1]));
}

#[test]
fn mpi_io_of_a_program() {
    let case = replayed("segments", &["mpiio"]);
    case.same_calls(Layer::Mpiio, 220);
    assert_eq!(transfers(&case.data[0], Layer::Mpiio), transfers(&case.data[1], Layer::Mpiio));
}

#[test]
fn hdf5_of_a_program() {
    let case = replayed("segments_h5", &[]);
    case.same_calls(Layer::Hdf5, 120);
    assert_eq!(transfers(&case.data[0], Layer::Hdf5), transfers(&case.data[1], Layer::Hdf5));
    let [first, second] = [0, 1].map(|at| dump("h5dump", &case.dirs[at].join("segments.h5")));
    assert_eq!(first, second);
}

#[test]
fn pnetcdf_and_netcdf_of_a_program() {
    for (program, layer) in [("segments_nc", Layer::Pnetcdf), ("segments_nc4", Layer::Netcdf)] {
        let case = replayed(program, &[]);
        case.same_calls(layer, 40);
        assert_eq!(transfers(&case.data[0], layer), transfers(&case.data[1], layer));
        let [first, second] = [0, 1].map(|at| ncdump::variables(&case.dirs[at].join("segments.nc")));
        assert!(first["/field"] == [40, 64], "{first:?}");
        assert_eq!(first, second);
    }
}

#[test]
fn directories_that_a_loader_searched_are_no_files() {
    let work = live::scratch();
    let [library, log, code, data] = ["lib", "log", "code", "data"].map(|name| work.path().join(name));
    fs::create_dir(&library).unwrap();
    fs::create_dir(&data).unwrap();
    let mut tracer = live::tracer();
    tracer.env("LD_LIBRARY_PATH", &library);
    let script = format!("echo line > {}", log.display());
    let traced = live::trace_by(tracer, work.path(), &[], &["sh", "-c", &script]);
    well(&live::tracer().arg("replay-code").arg(&traced.dir).arg("-o").arg(&code).output().unwrap());
    let cc = format!("CC={}", programs::openmpi("mpicc"));
    well(&Command::new("make").arg("-C").arg(&code).arg(cc).output().unwrap());
    let readme = fs::read_to_string(code.join("README.md")).unwrap();
    assert!(readme.contains("lib/glibc-hwcaps"), "{readme}");
    // Twice: over what an earlier run left, too.
    let prepare = mpirun("1", &[&code.join("replay"), Path::new("-p"), &data]);
    for _ in 0..2 {
        well(&Command::new(&prepare[0]).args(&prepare[1..]).output().unwrap());
    }
}

/// The interfaces of Fortran call the functions that the trace has.
#[test]
fn hdf5_of_a_program_in_fortran() {
    let case = replayed_in(&FORTRAN, "4", "segments_h5", &[]);
    assert!(case.source.contains("call h5dwrite_f("), "{}", case.source);
    case.same_calls(Layer::Hdf5, 120);
    assert_eq!(transfers(&case.data[0], Layer::Hdf5), transfers(&case.data[1], Layer::Hdf5));
    let [first, second] = [0, 1].map(|at| dump("h5dump", &case.dirs[at].join("segments.h5")));
    assert_eq!(first, second);
}

#[test]
fn pnetcdf_of_a_program_in_fortran() {
    let case = replayed_in(&FORTRAN, "4", "segments_nc", &[]);
    assert!(case.source.contains("nfmpi_put_vara_double_all("), "{}", case.source);
    case.same_calls(Layer::Pnetcdf, 40);
    assert_eq!(transfers(&case.data[0], Layer::Pnetcdf), transfers(&case.data[1], Layer::Pnetcdf));
    let [first, second] = [0, 1].map(|at| ncdump::variables(&case.dirs[at].join("segments.nc")));
    assert!(first["/field"] == [80, 64], "{first:?}");
    assert_eq!(first, second);
}
