//! `iotrace-bpf replay-code` on recorded datasets: what is refused, and a program of 4 ranks that both MPI libraries compile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::programs;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn replay_code(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).arg("replay-code").arg(dir).args(args).output().unwrap()
}

fn text_of(out: &Output) -> String {
    text(&[out.stdout.as_slice(), out.stderr.as_slice()].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_of_a_trace_compiles() {
    let work = tempfile::tempdir().unwrap();
    let out = work.path().join("out");
    let made = replay_code(&fixture("mpi_hdf5"), &["--keep-time", "-o", out.to_str().unwrap()]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let source = fs::read_to_string(out.join("replay.c")).unwrap();
    for part in ["H5Dwrite", "64 * rank", "think(", "static void ranks_from_0(void)"] {
        assert!(source.contains(part), "{part} in {source}");
    }
    let readme = fs::read_to_string(out.join("README.md")).unwrap();
    assert!(readme.contains("at the interface HDF5, with"), "{readme}");
    let cc = format!("CC={}", programs::openmpi("mpicc"));
    let compiled = Command::new("make").arg("-C").arg(&out).arg(cc).output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled.stderr));

    let again = replay_code(&fixture("mpi_hdf5"), &["-o", out.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(125));
    assert!(text(&again.stderr).contains("cannot make the directory"), "{}", text(&again.stderr));
}

#[test]
fn a_description_becomes_a_program_of_each_interface() {
    let work = tempfile::tempdir().unwrap();
    let description = work.path().join("field.toml");
    for interface in ["posix", "mpiio", "hdf5", "pnetcdf", "netcdf"] {
        let text = format!(
            "interface = '{interface}'\nranks = 4\nfile = 'field.dat'\n[[variable]]\nname = 'field'\n\
             dims = [64, 32]\ndecomposition = [2, 2]\npattern = ['write', 'read']\ncollective = true\n"
        );
        fs::write(&description, text).unwrap();
        let out = work.path().join(interface);
        let made = replay_code(&description, &["-o", out.to_str().unwrap()]);
        assert_eq!(made.status.code(), Some(0), "{}", text_of(&made));
        let cc = format!("CC={}", programs::openmpi("mpicc"));
        let compiled = Command::new("make").arg("-C").arg(&out).arg(cc).output().unwrap();
        assert!(compiled.status.success(), "{}", text_of(&compiled));
        let ran = Command::new(programs::openmpi("mpirun"))
            .args(["--allow-run-as-root", "--oversubscribe", "-np", "4"])
            .arg(out.join("replay"))
            .arg(&out)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", text_of(&ran));
        let least = if interface.contains("netcdf") || interface == "hdf5" { 64 * 32 * 8 + 1 } else { 64 * 32 * 8 };
        assert!(out.join("field.dat").metadata().unwrap().len() >= least, "{interface}");
    }
}

#[test]
fn lower_layers_of_the_same_trace_compile_with_both_libraries() {
    let work = tempfile::tempdir().unwrap();
    for layer in ["mpiio", "posix"] {
        for cc in [programs::openmpi("mpicc"), programs::mpich("mpicc")] {
            let out = work.path().join(format!("{layer}-{cc}"));
            let made = replay_code(&fixture("mpi_hdf5"), &["--layer", layer, "-o", out.to_str().unwrap()]);
            assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
            let compiled = Command::new("make").arg("-C").arg(&out).arg(format!("CC={cc}")).output().unwrap();
            assert!(compiled.status.success(), "{}", text(&compiled.stderr));
        }
    }
}

#[test]
fn what_cannot_be_replayed_is_refused_with_a_way_out() {
    let work = tempfile::tempdir().unwrap();
    let out = work.path().join("out");
    let out = out.to_str().unwrap();
    for (dir, args, code, why) in [
        ("aggregate", vec!["-o", out], 125, "--aggregate"),
        ("mpi_hdf5", vec!["-o", out, "--file", "/nowhere/*"], 125, "--file PATTERN"),
        ("mpi_hdf5", vec!["-o", out, "--layer", "pnetcdf"], 125, "no calls of layer pnetcdf"),
        ("mpi_hdf5", vec!["-o", out, "--limit", "1"], 125, "--limit"),
        ("mpi_hdf5", vec!["-o", out, "--layer", "tape"], 2, "interfaces are"),
    ] {
        let refused = replay_code(&fixture(dir), &args);
        assert_eq!(refused.status.code(), Some(code), "{args:?}: {}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(why), "{args:?}: {}", text(&refused.stderr));
        assert!(!Path::new(out).exists());
    }
}
