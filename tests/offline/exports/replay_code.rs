//! `iotrace-bpf replay-code` on recorded datasets and descriptions: what is refused, and programs in C and Fortran.

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

fn make(out: &Path, compiler: &str) {
    let compiled = Command::new("make").arg("-C").arg(out).arg(compiler).output().unwrap();
    assert!(compiled.status.success(), "{}", text_of(&compiled));
}

fn fortran() -> String {
    format!("FC={}", programs::openmpi("mpif90"))
}

fn run(program: &Path, args: &[&str], dir: &Path) -> Output {
    Command::new(programs::openmpi("mpirun"))
        .args(["--allow-run-as-root", "--oversubscribe", "-np", "4"])
        .arg(program)
        .args(args)
        .arg(dir)
        .output()
        .unwrap()
}

/// What a program prints about a file, without the line that has its name.
fn dump(command: &[&str], file: &Path) -> String {
    let out = Command::new(command[0]).args(&command[1..]).arg(file).output().unwrap();
    assert!(out.status.success(), "{}", text_of(&out));
    text(&out.stdout).lines().skip(1).collect::<Vec<_>>().join("\n")
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
    make(&out, &format!("CC={}", programs::openmpi("mpicc")));

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
        make(&out, &format!("CC={}", programs::openmpi("mpicc")));
        let ran = run(&out.join("replay"), &[], &out);
        assert!(ran.status.success(), "{}", text_of(&ran));
        let least = if interface.contains("netcdf") || interface == "hdf5" { 64 * 32 * 8 + 1 } else { 64 * 32 * 8 };
        assert!(out.join("field.dat").metadata().unwrap().len() >= least, "{interface}");
    }
}

/// The same file as of the program in C: dimensions have the opposite order in Fortran.
#[test]
fn a_description_becomes_a_program_in_fortran() {
    let work = tempfile::tempdir().unwrap();
    let description = work.path().join("field.toml");
    for (interface, dump_of) in [("hdf5", &["h5dump"][..]), ("pnetcdf", &["ncdump"])] {
        fs::write(
            &description,
            format!(
                "interface = '{interface}'\nranks = 4\nfile = 'run/field.dat'\n\
                 [[variable]]\nname = 'field'\ndims = [64, 32]\ndecomposition = [2, 2]\n\
                 pattern = ['write', 'read']\ncollective = true\nsteps = 3\nchunk = [32, 16]\n\
                 [[variable]]\nname = 'rows'\ndims = [4, 6, 2]\nelement = 2\ndecomposition = [4, 1, 1]\n"
            ),
        )
        .unwrap();
        let files = ["c", "fortran"].map(|language| {
            let out = work.path().join(format!("{interface}-{language}"));
            let made = replay_code(&description, &["--language", language, "-o", out.to_str().unwrap()]);
            assert_eq!(made.status.code(), Some(0), "{}", text_of(&made));
            let compiler = if language == "c" { format!("CC={}", programs::openmpi("mpicc")) } else { fortran() };
            make(&out, &compiler);
            if language == "fortran" {
                insta::assert_snapshot!(
                    format!("fortran_{interface}"),
                    fs::read_to_string(out.join("replay.f90")).unwrap()
                );
            }
            for args in [&["-p"][..], &[]] {
                let ran = run(&out.join("replay"), args, &out);
                assert!(ran.status.success(), "{}", text_of(&ran));
            }
            out.join("field.dat")
        });
        let [c, fortran] = files.each_ref().map(|file| dump(dump_of, file));
        assert!(c.contains("field") && c.contains("rows") && c == fortran, "{c}\n{fortran}");
        if interface == "pnetcdf" {
            // HDF5 has times in its files.
            let [c, fortran] = files.map(|file| fs::read(file).unwrap());
            assert!(c == fortran);
        }
    }
}

#[test]
fn a_program_of_a_trace_compiles_in_fortran() {
    let work = tempfile::tempdir().unwrap();
    let out = work.path().join("out");
    let args = ["--keep-time", "--language", "fortran", "-o", out.to_str().unwrap()];
    let made = replay_code(&fixture("mpi_hdf5"), &args);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let source = fs::read_to_string(out.join("replay.f90")).unwrap();
    for part in ["call h5dwrite_f(", "64 * rank", "call think(", "subroutine ranks_from_0()"] {
        assert!(source.contains(part), "{part} in {source}");
    }
    let readme = fs::read_to_string(out.join("README.md")).unwrap();
    assert!(readme.contains("at the interface HDF5, with"), "{readme}");
    make(&out, &fortran());
}

/// Names are data: of objects in the source, and of directories that the program makes.
#[test]
fn hostile_names_are_names_in_fortran() {
    let work = tempfile::tempdir().unwrap();
    let description = work.path().join("field.toml");
    let name = "it's \"&! $(id) \u{fc}\n'x";
    fs::write(
        &description,
        format!(
            "interface = 'hdf5'\nranks = 4\nfile = 'field.h5'\n[[variable]]\nname = {}\ndims = [4]\n\
             decomposition = [4]\n",
            serde_json::to_string(name).unwrap()
        ),
    )
    .unwrap();
    let out = work.path().join("out");
    let made = replay_code(&description, &["--language", "fortran", "-o", out.to_str().unwrap()]);
    assert_eq!(made.status.code(), Some(0), "{}", text_of(&made));
    make(&out, &fortran());
    let dir = work.path().join(" a;touch b `c` ");
    fs::create_dir(&dir).unwrap();
    for args in [&["-p"][..], &[]] {
        let ran = run(&out.join("replay"), args, &dir);
        assert!(ran.status.success(), "{}", text_of(&ran));
    }
    let list = Command::new("h5ls").arg("-S").arg(dir.join("field.h5")).output().unwrap();
    assert!(text(&list.stdout).contains("it's") && text(&list.stdout).contains("$(id)"), "{}", text_of(&list));
    // Nothing else was made of the names.
    let names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["field.h5"]);
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 3);
}

#[test]
fn programs_in_fortran_end_with_a_message() {
    let work = tempfile::tempdir().unwrap();
    let description = work.path().join("field.toml");
    let field = "ranks = 4\nfile = 'a/field.nc'\n[[variable]]\nname = 'field'\ndims = [4]\ndecomposition = [4]\n";
    fs::write(&description, format!("interface = 'pnetcdf'\n{field}")).unwrap();
    let out = work.path().join("out");
    let made = replay_code(&description, &["--language", "fortran", "-o", out.to_str().unwrap()]);
    assert_eq!(made.status.code(), Some(0), "{}", text_of(&made));
    make(&out, &fortran());
    let program = out.join("replay");
    for (args, dir, why) in [
        (&[][..], work.path().join("nowhere"), "ncmpi_create: "),
        (&["x", "y"], work.path().into(), "usage: replay [-p] DIRECTORY"),
    ] {
        let ran = run(&program, args, &dir);
        assert!(!ran.status.success() && text_of(&ran).contains(why), "{why}: {}", text_of(&ran));
    }
    let alone = Command::new(&program).arg(work.path()).env("OMPI_ALLOW_RUN_AS_ROOT", "1").output().unwrap();
    let why = "started with 1 processes and made for 4: mpirun -n 4";
    assert!(!alone.status.success() && text_of(&alone).contains(why), "{}", text_of(&alone));

    // Other interfaces have none.
    fs::write(&description, format!("interface = 'mpiio'\n{field}")).unwrap();
    let other = work.path().join("other");
    let refused = replay_code(&description, &["--language", "fortran", "-o", other.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text_of(&refused).contains("made for hdf5 and pnetcdf, not for mpiio"), "{}", text_of(&refused));
    assert!(!other.exists());
}

#[test]
fn lower_layers_of_the_same_trace_compile_with_both_libraries() {
    let work = tempfile::tempdir().unwrap();
    for layer in ["mpiio", "posix"] {
        for cc in [programs::openmpi("mpicc"), programs::mpich("mpicc")] {
            let out = work.path().join(format!("{layer}-{cc}"));
            let made = replay_code(&fixture("mpi_hdf5"), &["--layer", layer, "-o", out.to_str().unwrap()]);
            assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
            make(&out, &format!("CC={cc}"));
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
        ("mpi_hdf5", vec!["-o", out, "--file", "/nowhere/*"], 2, "files that fit /nowhere/* (--file PATTERN)"),
        ("mpi_hdf5", vec!["-o", out, "--layer", "pnetcdf"], 2, "no calls of layer pnetcdf"),
        ("mpi_hdf5", vec!["-o", out, "--limit", "1"], 125, "--limit"),
        ("mpi_hdf5", vec!["-o", out, "--layer", "tape"], 2, "interfaces are"),
        ("mpi_hdf5", vec!["-o", out, "--layer", "posix", "--language", "fortran"], 125, "made for hdf5 and pnetcdf"),
        ("mpi_hdf5", vec!["-o", out, "--language", "pascal"], 2, "possible values: c, fortran"),
    ] {
        let refused = replay_code(&fixture(dir), &args);
        assert_eq!(refused.status.code(), Some(code), "{args:?}: {}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(why), "{args:?}: {}", text(&refused.stderr));
        assert!(!Path::new(out).exists());
    }
}
