//! Programs that are not in C: what their run-time libraries ask of the C library, of HDF5 and MPI and of the kernel.

use crate::common::live::{self, Data};
use crate::common::programs;
use crate::common::ways::{self, Counts};
use iotrace_bpf::vocabulary::{Kind, Layer};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const LINES: usize = 3000;

/// A program that is given a directory and a number of lines, traced with each of its calls. Its system calls are those
/// that strace sees.
fn run(name: &str) -> (TempDir, PathBuf, String, Data) {
    let work = live::scratch();
    let dir = work.path().join("first");
    fs::create_dir(&dir).unwrap();
    let program = programs::build(name);
    let command = |dir: &Path| vec![program.clone(), dir.to_owned(), LINES.to_string().into()];
    let traced = live::trace(work.path(), &["--max-overhead", "none"], &command(&dir));
    let data = traced.data().lossless();
    ways::as_strace_sees(&data, work.path(), &dir, command);
    (work, dir, traced.report, data)
}

/// The bytes of a directory's files.
fn sizes(dir: &Path) -> i64 {
    fs::read_dir(dir).unwrap().map(|e| e.unwrap().metadata().unwrap().len() as i64).sum()
}

fn moved(data: &Data, dir: &Path, layer: Layer, kind: Kind) -> i64 {
    let below = data.layer(layer).filter(|s| s.kind == kind && data.path(s).is_some_and(|p| p.starts_with(dir)));
    below.filter_map(|s| s.bytes).sum()
}

#[test]
fn streams_of_cxx_open_with_stdio_and_move_data_themselves() {
    let (_work, dir, _, data) = run("fstreams");
    let counts = Counts::of(&data);
    for name in ["text", "blocks"] {
        // Written and read.
        assert_eq!((counts.get("fopen", &dir.join(name)), counts.get("fclose", &dir.join(name))), (2, 2), "{name}");
    }
    let failed = data.calls("fopen").filter(|s| s.errno != 0).count();
    assert_eq!(failed, 1);
    assert_eq!(moved(&data, &dir, Layer::Stdio, Kind::Write), 0);
    assert_eq!(moved(&data, &dir, Layer::Syscall, Kind::Write), sizes(&dir));
    assert_eq!(moved(&data, &dir, Layer::Syscall, Kind::Read), sizes(&dir));
    // A write that is larger than the buffer goes out with what was in it.
    assert!(counts.get("writev", &dir.join("blocks")) > 0);
}

#[test]
fn rust_programs_make_system_calls_through_the_c_library() {
    let (_work, dir, _, data) = run("std_io");
    // The C library reads /proc/self/maps when a thread asks for its stack.
    assert!(data.layer(Layer::Stdio).all(|s| data.path(s).is_none_or(|p| !p.starts_with(&dir))));
    assert!(data.coverage.iter().any(|c| (c.layer, c.status) == (Layer::Stdio, "attached")));
    // BufWriter of 1000 bytes.
    let text = dir.join("text");
    let writes: Vec<i64> =
        data.calls("write").filter(|s| data.path(s) == Some(&text)).map(|s| s.bytes.unwrap()).collect();
    assert_eq!(writes.iter().sum::<i64>(), fs::metadata(&text).unwrap().len() as i64);
    assert!(writes.iter().all(|n| *n <= 1000) && writes.len() > 20);
    // The removed file: by the thread that is not the main one.
    let other: Vec<_> = data.calls("pwrite64").collect();
    assert_eq!(
        other.iter().map(|s| s.offset.unwrap()).collect::<Vec<_>>(),
        (0..10).map(|i| i * 4096).collect::<Vec<_>>()
    );
    assert!(other.iter().all(|s| s.tid != s.pid && data.files[&s.file_id.unwrap()].unlinked));
}

#[test]
fn go_programs_get_no_return_probes_and_their_system_calls_are_traced() {
    let (_work, dir, report, data) = run("files_go");
    assert_eq!(data.layer(Layer::Stdio).count(), 0);
    let verdicts: Vec<_> = data.coverage.iter().filter(|c| c.target.ends_with("files_go")).collect();
    assert_eq!(verdicts.iter().map(|c| (c.layer, c.status)).collect::<Vec<_>>(), [(Layer::App, "skipped")]);
    let reason = verdicts[0].reason.as_deref().unwrap();
    assert!(reason.contains("Go program") && report.contains(reason), "{report}");
    for k in 0..4 {
        let path = dir.join(k.to_string());
        let writes = data.calls("write").filter(|s| data.path(s) == Some(&path));
        assert_eq!(writes.map(|s| s.bytes.unwrap()).sum::<i64>(), 12 * LINES as i64);
    }
}

#[test]
fn c_functions_that_go_calls_are_traced() {
    let (_work, dir, _, data) = run("cgo_stdio");
    let counts = Counts::of(&data);
    for k in 0..4 {
        let path = dir.join(k.to_string());
        let calls = ["fopen", "fprintf", "fclose"].map(|op| counts.get(op, &path));
        assert_eq!(calls, [1, LINES, 1], "{}", path.display());
    }
    assert_eq!(moved(&data, &dir, Layer::Stdio, Kind::Write), 4 * 12 * LINES as i64);
    // Libraries are probed, the program is not.
    assert!(data.coverage.iter().all(|c| !c.target.ends_with("cgo_stdio") || c.status == "skipped"));
}

/// What a rank of `parallel.f90` does.
const ROUNDS: usize = 4;
const DOUBLES: i64 = 1000 * 8;
const LOG: i64 = 200 * 12;

#[test]
fn fortran_programs_use_mpi_and_hdf5_like_others() {
    const RANKS: i32 = 2;
    let work = live::scratch();
    let dir = work.path().join("out");
    fs::create_dir(&dir).unwrap();
    let ranks = RANKS.to_string();
    let mpirun = [&programs::openmpi("mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", &ranks];
    let command = [&mpirun.map(PathBuf::from)[..], &[programs::build("parallel_f90"), dir.clone()]].concat();
    let data = live::trace(work.path(), &[], &command).data().lossless();
    for rank in 0..RANKS {
        let of = |path: &Path| -> BTreeMap<(Layer, &'static str), usize> {
            let mut calls = BTreeMap::new();
            let own = data.spans.iter().filter(|s| s.rank == Some(rank) && s.layer_top && data.path(s) == Some(path));
            // Not what HDF5 makes of its calls.
            for span in own.filter(|s| s.layer == Layer::Hdf5 || data.ancestors(s).all(|a| a.layer != Layer::Hdf5)) {
                *calls.entry((span.layer, span.op)).or_default() += 1;
            }
            calls
        };
        let mpi = of(&dir.join("mpi.dat"));
        let calls =
            ["MPI_File_open", "MPI_File_write_at", "MPI_File_write_at_all", "MPI_File_read_at", "MPI_File_close"]
                .map(|op| mpi[&(Layer::Mpiio, op)]);
        assert_eq!(calls, [1, ROUNDS, ROUNDS, 1, 1], "rank {rank}");
        let hdf5 = of(&dir.join("field.h5"));
        let calls = ["H5Fcreate", "H5Dcreate2", "H5Dwrite", "H5Dread", "H5Dclose", "H5Fclose"]
            .map(|op| hdf5[&(Layer::Hdf5, op)]);
        assert_eq!(calls, [1, 1, ROUNDS, 1, 1, 1], "rank {rank}");

        let path = dir.join("mpi.dat");
        let own = || data.spans.iter().filter(|s| s.rank == Some(rank) && data.path(s) == Some(&path));
        let written = own().filter(|s| s.layer == Layer::Mpiio && s.kind == Kind::Write);
        assert!(written.clone().all(|s| s.bytes == Some(DOUBLES)));
        assert_eq!(written.count(), 2 * ROUNDS);
        // The status is ignored, so only the system calls show how much was read.
        let read = own().filter(|s| s.layer == Layer::Syscall && s.kind == Kind::Read);
        assert_eq!(read.filter_map(|s| s.bytes).sum::<i64>(), DOUBLES);
        // Fortran's own files: its run-time library needs no stdio.
        let log = of(&dir.join(format!("log.{rank}")));
        assert!(log.keys().all(|(layer, _)| *layer == Layer::Syscall), "{log:?}");
        let log = dir.join(format!("log.{rank}"));
        assert_eq!(fs::metadata(&log).unwrap().len() as i64, LOG);
        assert_eq!(moved(&data, &log, Layer::Syscall, Kind::Write), LOG);
    }
}

#[test]
fn netcdf_fortran_reaches_hdf5() {
    let work = live::scratch();
    let path = work.path().join("v.nc");
    let data = live::trace(work.path(), &[], &[programs::build("netcdf_f90").as_path(), &path]).data().lossless();
    let counts = Counts::of(&data);
    let calls = ["H5Fcreate", "H5Dwrite", "H5Dread", "H5Fclose"].map(|op| counts.get(op, &path));
    assert_eq!(calls, [1, 5, 2, 1]);
}
