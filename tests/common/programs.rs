//! Compiles the small programs in `tests/programs` that the demo and the live tests trace, and those of `tests/cases`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// How a program is compiled, and what with.
#[derive(Clone, Copy)]
enum Needs {
    Libc,
    /// For 32-bit x86, without any library: the compiler's own are enough for that.
    Short,
    /// With a sanitizer, which takes the place of many functions of the C library.
    Asan,
    /// Without the loader, which makes system calls of its own.
    StaticLibc,
    /// The same, at any address.
    StaticPie,
    StaticMusl,
    /// The same, without symbols.
    StrippedLibc,
    /// As distributions compile: calls that could overrun a buffer become others that check.
    FortifiedLibc,
    /// Another C library, which is its own loader.
    Musl,
    /// HDF5 without MPI.
    Hdf5,
    MpiAndHdf5,
    OpenMpi,
    /// Version 5, from the environment of Python packages.
    OpenMpi5,
    Mpich,
    Cxx,
    OpenMpiFortran,
    MpichFortran,
    MpiAndHdf5Fortran,
    Netcdf,
    MpiAndNetcdf,
    Pnetcdf,
    NetcdfFortran,
    Rust,
    /// Without any C.
    Go,
    Cgo,
}

/// Name, source, needs.
const PROGRAMS: &[(&str, &str, Needs)] = &[
    ("aio_mix", "aio_mix.c", Needs::Libc),
    ("async_kernel", "async_kernel.c", Needs::Libc),
    ("brief", "brief.c", Needs::Libc),
    ("chatty", "chatty.c", Needs::OpenMpi),
    ("callbacks", "callbacks.c", Needs::Libc),
    ("copies", "copies.c", Needs::StaticLibc),
    ("crowd", "crowd.c", Needs::Libc),
    ("cgo_stdio", "cgo_stdio.go", Needs::Cgo),
    ("costs", "costs.c", Needs::Libc),
    ("detailed", "detailed.c", Needs::Libc),
    ("demo", "demo.c", Needs::MpiAndHdf5),
    ("fibers", "fibers.c", Needs::Libc),
    ("filtered", "filtered.c", Needs::Libc),
    ("files_go", "files.go", Needs::Go),
    ("first_call", "first_call.c", Needs::Libc),
    ("first_h5", "first_h5.c", Needs::MpiAndHdf5),
    ("flood", "flood.c", Needs::Libc),
    ("flood_h5", "flood.c", Needs::Hdf5),
    ("forked", "forked.c", Needs::Libc),
    ("fstreams", "fstreams.cc", Needs::Cxx),
    ("halves", "halves.c", Needs::OpenMpi),
    ("harmless", "harmless.c", Needs::Libc),
    ("harmless_asan", "harmless.c", Needs::Asan),
    ("harmless_musl", "harmless.c", Needs::StaticMusl),
    ("harmless_static", "harmless.c", Needs::StaticLibc),
    ("harmless_static_pie", "harmless.c", Needs::StaticPie),
    ("hdf5_all", "hdf5_all.c", Needs::Hdf5),
    ("hdf5_mix", "hdf5_mix.c", Needs::Hdf5),
    ("hdf5_mix_mpi", "hdf5_mix.c", Needs::MpiAndHdf5),
    ("interrupted", "interrupted.c", Needs::StaticLibc),
    ("into", "into.c", Needs::Libc),
    ("counted", "counted.c", Needs::Libc),
    ("summed", "summed.c", Needs::Libc),
    ("late_exec", "late_exec.c", Needs::Libc),
    ("late_h5", "late_h5.c", Needs::Libc),
    ("looper", "looper.c", Needs::Libc),
    ("many_files", "many_files.c", Needs::Libc),
    ("map_stuck", "map_stuck.c", Needs::Libc),
    ("mapped", "mapped.c", Needs::Libc),
    ("marks", "marks.c", Needs::Libc),
    ("metered", "metered.c", Needs::Libc),
    ("mpi_io", "mpi_io.c", Needs::Mpich),
    ("mpiio_async", "mpiio_async.c", Needs::OpenMpi),
    ("mpiio_async_mpich", "mpiio_async.c", Needs::Mpich),
    ("mpiio_f", "mpiio_f.f90", Needs::OpenMpiFortran),
    ("mpiio_f_mpich", "mpiio_f.f90", Needs::MpichFortran),
    ("mpiio_groups", "mpiio_groups.c", Needs::OpenMpi),
    ("mpiio_groups_mpich", "mpiio_groups.c", Needs::Mpich),
    ("mpiio_groups_openmpi5", "mpiio_groups.c", Needs::OpenMpi5),
    ("mpiio_mix", "mpiio_mix.c", Needs::OpenMpi),
    ("mpiio_mix_mpich", "mpiio_mix.c", Needs::Mpich),
    ("mpiio_mix_openmpi5", "mpiio_mix.c", Needs::OpenMpi5),
    ("net", "net.c", Needs::MpiAndHdf5),
    ("netcdf_f", "netcdf_f.f90", Needs::NetcdfFortran),
    ("netcdf_f90", "netcdf.f90", Needs::NetcdfFortran),
    ("netcdf_mix", "netcdf_mix.c", Needs::Netcdf),
    ("netcdf_par", "netcdf_par.c", Needs::MpiAndNetcdf),
    ("parallel_f90", "parallel.f90", Needs::MpiAndHdf5Fortran),
    ("patterns", "patterns.c", Needs::Libc),
    ("paused", "paused.c", Needs::Libc),
    ("pending", "pending.c", Needs::Libc),
    ("looks", "looks.c", Needs::Libc),
    ("phases", "phases.c", Needs::Libc),
    ("pnetcdf_lists", "pnetcdf_lists.c", Needs::Pnetcdf),
    ("pnetcdf_mix", "pnetcdf_mix.c", Needs::Pnetcdf),
    ("posix_all", "posix_all.c", Needs::StaticLibc),
    ("posix_mix", "posix_mix.c", Needs::StaticLibc),
    ("ranked", "ranked.c", Needs::Libc),
    ("seccomp", "seccomp.c", Needs::Libc),
    ("segments", "segments.c", Needs::OpenMpi),
    ("segments_h5", "segments_h5.c", Needs::MpiAndHdf5),
    ("segments_nc", "segments_nc.c", Needs::Pnetcdf),
    ("segments_nc4", "segments_nc4.c", Needs::MpiAndNetcdf),
    ("short32", "short.c", Needs::Short),
    ("slow_calls", "slow_calls.c", Needs::Libc),
    ("soak", "soak.c", Needs::Libc),
    ("soak_musl", "soak.c", Needs::Musl),
    ("stacks", "stacks.c", Needs::Libc),
    ("std_io", "std_io.rs", Needs::Rust),
    ("stdio_all", "stdio_all.c", Needs::Libc),
    ("stdio_all_static", "stdio_all.c", Needs::StaticLibc),
    ("stdio_mix", "stdio_mix.c", Needs::Libc),
    ("stdio_mix_fortified", "stdio_mix.c", Needs::FortifiedLibc),
    ("stdio_static", "stdio_mix.c", Needs::StaticLibc),
    ("stdio_stripped", "stdio_mix.c", Needs::StrippedLibc),
    ("streams", "streams.cc", Needs::Cxx),
    ("stuck", "stuck.c", Needs::Libc),
    ("swarm", "swarm.c", Needs::StaticLibc),
    ("switched", "switched.c", Needs::Libc),
    ("threads", "threads.c", Needs::Libc),
    ("thrown", "thrown.cc", Needs::Cxx),
];

/// The same of the programs of `cargo xtask cases`, in `tests/cases`.
const CASES: &[(&str, &str, Needs)] = &[
    ("case_again", "again.c", Needs::Libc),
    ("case_busy", "busy.c", Needs::Libc),
    ("case_chunks", "chunks.c", Needs::Hdf5),
    ("case_classic", "classic.c", Needs::Netcdf),
    ("case_locks", "locks.c", Needs::Libc),
    ("case_names", "names.c", Needs::Libc),
    ("case_paged", "paged.c", Needs::Libc),
    ("case_puts", "puts.c", Needs::Pnetcdf),
    ("case_ranks", "ranks.c", Needs::OpenMpi),
    ("case_ranks_mpich", "ranks.c", Needs::Mpich),
    ("case_reads", "reads.c", Needs::Libc),
    ("case_records", "records.c", Needs::Libc),
    ("case_update", "update.c", Needs::Libc),
    ("case_writes", "writes.c", Needs::Libc),
];

/// Calls stay the calls that the source names (`-fno-builtin` keeps `fprintf` from becoming `fwrite`).
const C_FLAGS: &[&str] =
    &["-std=gnu11", "-O1", "-g", "-fno-builtin", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra", "-Werror"];
/// Of two options of a kind the last one counts.
const FORTIFIED: &[&str] = &["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"];
const SHORT_FLAGS: &[&str] = &[
    "-m32",
    "-std=gnu11",
    "-O1",
    "-g",
    "-nostdlib",
    "-static",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-pic",
    "-no-pie",
    "-Wall",
    "-Wextra",
    "-Werror",
];
const CXX_FLAGS: &[&str] = &["-std=c++17", "-O1", "-g", "-fno-builtin", "-pthread", "-Wall", "-Wextra", "-Werror"];
const FORTRAN_FLAGS: &[&str] = &["-O1", "-g", "-Wall", "-Werror", "-ffree-line-length-none"];
/// The names of mpif.h have no signatures, so the same function called with different types looks wrong.
const MPIF_FLAGS: &[&str] = &["-O1", "-g", "-w", "-fallow-argument-mismatch"];

/// Compilations that this process began.
static TURN: AtomicU32 = AtomicU32::new(0);

/// The compiled program of that name. Panics with the reason when it cannot be compiled.
pub fn build(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    compile(root, &target, name).unwrap_or_else(|error| panic!("{error}"))
}

/// The names of all programs of `tests/programs`.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|(name, ..)| *name)
}

/// The names of all programs of `tests/cases`.
pub fn cases() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, ..)| *name)
}

/// A command of Open MPI (`mpicc`, `mpirun`): where several MPI libraries are installed, Debian has it under a name that
/// says whose it is, and the plain name may be another's.
pub fn openmpi(command: &str) -> String {
    of("openmpi", command)
}

/// A command of Open MPI 5.
pub fn openmpi5(command: &str) -> String {
    openmpi5_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), command)
}

/// The same, of the environment in this target directory.
fn openmpi5_in(target: &Path, command: &str) -> String {
    let venv = target.join("venv/bin").join(command);
    assert!(venv.exists(), "{} is missing: run `cargo xtask test`", venv.display());
    venv.display().to_string()
}

/// A command of MPICH.
pub fn mpich(command: &str) -> String {
    of("mpich", command)
}

fn of(library: &str, command: &str) -> String {
    let full = format!("{command}.{library}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|dir| dir.join(&full).is_file());
    if there { full } else { command.to_owned() }
}

/// Compiles a program to `TARGET/programs/NAME`, unless that is newer than its source.
pub fn compile(root: &Path, target: &Path, name: &str) -> Result<PathBuf, String> {
    let of = |programs: &'static [(&str, &str, Needs)]| programs.iter().find(|(program, ..)| *program == name);
    let (sources, Some((_, source, needs))) =
        of(PROGRAMS).map_or_else(|| ("tests/cases", of(CASES)), |program| ("tests/programs", Some(program)))
    else {
        return Err(format!("there is no test program {name}"));
    };
    let source = root.join(sources).join(source);
    let directory = target.join("programs");
    let program = directory.join(name);
    let headers = ["programs/truth.h", "programs/uring.h", "cases/case.h", "common/programs.rs"];
    let [truth, uring, case, table] = headers.map(|name| root.join("tests").join(name));
    if is_newer(&program, &[&source, &truth, &uring, &case, &table]) {
        return Ok(program);
    }
    fs::create_dir_all(&directory).map_err(|e| format!("cannot make {}: {e}", directory.display()))?;

    // Another test may compile, or already run, the same program: it appears under its name when it is complete.
    // Tests are threads of one process, or processes.
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let unfinished = directory.join(format!("{name}.{}.{turn}", process::id()));
    let mut command = compiler(*needs, target);
    output(command.arg("-o").arg(&unfinished).args(last(*needs, &source)?))?;
    fs::rename(&unfinished, &program).map_err(|e| format!("cannot write {}: {e}", program.display()))?;
    Ok(program)
}

fn is_newer(program: &Path, sources: &[&Path]) -> bool {
    let time = |path: &Path| path.metadata().and_then(|m| m.modified());
    let Ok(built) = time(program) else { return false };
    sources.iter().all(|source| time(source).is_ok_and(|changed| changed < built))
}

/// The compiler with its options, before the output's name.
fn compiler(needs: Needs, target: &Path) -> Command {
    let with = |program: &str, flags: &[&str]| {
        let mut command = Command::new(program);
        command.args(flags);
        command
    };
    let go = |cgo: &str| {
        let mut command = with("go", &["build"]);
        // No module, no download, nothing outside of the target directory.
        let vars = [("GO111MODULE", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", ""), ("CGO_ENABLED", cgo)];
        command.envs(vars).env("GOCACHE", target.join("go-cache")).env("GOPATH", target.join("go"));
        command
    };
    let mut command = match needs {
        Needs::Libc
        | Needs::Asan
        | Needs::StaticLibc
        | Needs::StaticPie
        | Needs::StrippedLibc
        | Needs::Hdf5
        | Needs::Netcdf => with("cc", C_FLAGS),
        Needs::Short => with("cc", SHORT_FLAGS),
        Needs::Musl | Needs::StaticMusl => with("musl-gcc", C_FLAGS),
        Needs::FortifiedLibc => with("cc", &[C_FLAGS, FORTIFIED].concat()),
        Needs::MpiAndHdf5 | Needs::OpenMpi | Needs::MpiAndNetcdf | Needs::Pnetcdf => with(&openmpi("mpicc"), C_FLAGS),
        Needs::OpenMpi5 => with(&openmpi5_in(target, "mpicc"), C_FLAGS),
        Needs::Mpich => with(&mpich("mpicc"), C_FLAGS),
        Needs::Cxx => with("c++", CXX_FLAGS),
        Needs::OpenMpiFortran => with(&openmpi("mpifort"), MPIF_FLAGS),
        Needs::MpichFortran => with(&mpich("mpifort"), MPIF_FLAGS),
        Needs::MpiAndHdf5Fortran => with(&openmpi("mpifort"), FORTRAN_FLAGS),
        Needs::NetcdfFortran => with("gfortran", FORTRAN_FLAGS),
        Needs::Rust => with("rustc", &["--edition", "2024", "-O"]),
        Needs::Go => go("0"),
        Needs::Cgo => go("1"),
    };
    // Compilers of Fortran leave files of modules where they run.
    command.current_dir(target.join("programs"));
    command
}

/// What comes after the output's name: the source, and libraries, which a linker takes in this order.
fn last(needs: Needs, source: &Path) -> Result<Vec<String>, String> {
    let mut last = vec![source.to_string_lossy().into_owned()];
    match needs {
        Needs::Libc
        | Needs::Short
        | Needs::FortifiedLibc
        | Needs::Musl
        | Needs::OpenMpi
        | Needs::OpenMpi5
        | Needs::Mpich
        | Needs::OpenMpiFortran
        | Needs::MpichFortran
        | Needs::Cxx
        | Needs::Rust
        | Needs::Go
        | Needs::Cgo => {}
        Needs::Hdf5 => last.extend(pkg_config("hdf5-serial")?),
        Needs::Asan => last.push("-fsanitize=address".into()),
        Needs::StaticLibc | Needs::StaticMusl => last.push("-static".into()),
        Needs::StaticPie => last.push("-static-pie".into()),
        Needs::StrippedLibc => last.extend(["-static".into(), "-s".into()]),
        Needs::MpiAndHdf5 => last.extend(pkg_config("hdf5-openmpi")?),
        Needs::MpiAndHdf5Fortran => {
            last.push("-lhdf5_fortran".into());
            let flags = pkg_config("hdf5-openmpi")?;
            // The Fortran library stands in the same directory as the C one.
            last.splice(1..1, flags.iter().filter(|f| f.starts_with("-L") || f.starts_with("-I")).cloned());
            last.extend(flags);
        }
        Needs::Netcdf => last.extend(pkg_config("netcdf")?),
        Needs::Pnetcdf => last.extend(pkg_config("pnetcdf")?),
        Needs::MpiAndNetcdf => {
            // Debian's own flags lead to the headers of the library without MPI.
            let prefix = output(Command::new("pkg-config").args(["--variable=prefix", "netcdf-mpi"]))?;
            last.push(format!("-I{}/include", prefix.trim()));
            last.extend(pkg_config("netcdf-mpi")?);
        }
        // Where its modules are is the compiler's own directory, or in its flags.
        Needs::NetcdfFortran => last.extend(pkg_config("netcdf-fortran")?.into_iter().chain(["-I/usr/include".into()])),
    }
    Ok(last)
}

fn pkg_config(library: &str) -> Result<Vec<String>, String> {
    let flags = output(Command::new("pkg-config").args(["--cflags", "--libs", library]))?;
    Ok(flags.split_whitespace().map(str::to_string).collect())
}

/// What a command prints; when it fails, why, and what is probably missing.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let advice = "`cargo xtask setup` installs what the test programs need";
    let out = command.output().map_err(|e| format!("cannot start {name}: {e}\n{advice}"))?;
    if !out.status.success() {
        return Err(format!("{command:?} failed: {}\n{}{advice}", out.status, String::from_utf8_lossy(&out.stderr)));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
