//! Functions of a layer that are chosen by name: their calls are as in a trace of all, with what they need, and the coverage
//! has the reason for the others.

use crate::common::live::{self, Data};
use crate::common::programs;
use iotrace_bpf::catalog::{self, Row};
use iotrace_bpf::vocabulary::Layer;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a call did, but for its times: the function, the file, and bytes and offset.
type Did = (&'static str, Option<PathBuf>, Option<i64>, Option<i64>);

fn traced(layers: &str, command: &dyn Fn(&Path) -> Vec<PathBuf>, layer: Layer) -> (Data, BTreeMap<Did, usize>) {
    let work = live::scratch();
    let data = live::trace(work.path(), &["--layers", layers], &command(work.path())).data().lossless();
    let mut calls = BTreeMap::new();
    for span in data.layer(layer) {
        let path = data.path(span).and_then(|path| path.file_name()).map(PathBuf::from);
        *calls.entry((span.op, path, span.bytes, span.offset)).or_default() += 1;
    }
    (data, calls)
}

/// Traces all of a layer, and then what a pattern chooses, which must be the same calls.
fn agrees(layer: Layer, prefix: &str, command: &dyn Fn(&Path) -> Vec<PathBuf>) -> BTreeMap<Did, usize> {
    let (_, all) = traced(&format!("{layer},syscall"), command, layer);
    let pattern = format!("{layer}:{prefix}*");
    let (data, chosen) = traced(&format!("{pattern},syscall"), command, layer);
    let rows = catalog::rows();
    // What finds file I/O complete is of another layer, too.
    let wanted = |row: &&Row| row.layers().contains(&layer) && (row.symbol.starts_with(prefix) || !row.stands_alone());
    let ops: BTreeSet<&str> = rows.iter().filter(wanted).map(|row| row.op).collect();
    let expected: BTreeMap<Did, usize> = all.into_iter().filter(|((op, ..), _)| ops.contains(op)).collect();
    assert_eq!(chosen, expected);
    let reason = format!("not asked for: --layers {pattern}");
    let of_layer = || data.coverage.iter().filter(|c| c.layer == layer && !c.symbol.is_empty());
    assert!(of_layer().any(|c| c.status == "skipped" && c.reason.as_deref() == Some(&reason)));
    for c in of_layer().filter(|c| c.status == "attached") {
        assert!(
            rows.iter().filter(|row| row.symbol == c.symbol).any(|row| wanted(&row) || row.inner().is_some()),
            "{c:?}"
        );
    }
    chosen
}

#[test]
fn datasets_of_hdf5_alone_have_their_bytes_and_files() {
    let chosen = agrees(Layer::Hdf5, "H5D", &|work| {
        let out = Command::new(programs::build("hdf5_mix")).arg(work).arg("before").output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        vec![programs::build("hdf5_mix"), work.to_owned()]
    });
    let moved =
        |op| chosen.keys().any(|(of, path, bytes, _)| *of == op && path.is_some() && bytes.is_some_and(|n| n > 0));
    assert!(moved("H5Dwrite") && moved("H5Dread"), "{chosen:?}");
    assert!(!chosen.keys().any(|(op, ..)| op.starts_with("H5Aread")));
}

#[test]
fn writes_of_mpi_io_alone_have_their_offsets() {
    let mpirun = [&programs::openmpi("mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", "2"];
    let mpirun = mpirun.map(PathBuf::from);
    let chosen = agrees(Layer::Mpiio, "MPI_File_write", &|work| {
        [&mpirun[..], &[programs::build("mpiio_mix"), work.to_owned()]].concat()
    });
    let somewhere = |op: &str| {
        let at = |(of, path, _, offset): &Did| *of == op && path.is_some() && offset.is_some_and(|at| at > 0);
        chosen.keys().any(at)
    };
    assert!(somewhere("MPI_File_seek") && somewhere("MPI_File_write_at"), "{chosen:?}");
    assert!(!chosen.keys().any(|(op, ..)| *op == "MPI_File_read_at"), "{chosen:?}");
}

#[test]
fn a_pattern_that_fits_nothing_is_an_error_with_names_near_it() {
    let out = live::tracer().args(["--layers", "hdf5:H5Dwrit", "--", "true"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("no function of layer hdf5 is like H5Dwrit; near it: H5Dwrite"), "{stderr}");
}
