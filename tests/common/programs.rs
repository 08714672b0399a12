//! Compiles the small C programs in `tests/programs` that the demo and the live tests trace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// What a program is compiled and linked with.
#[derive(Clone, Copy)]
enum Needs {
    Libc,
    /// Without the loader, which makes system calls of its own.
    StaticLibc,
    MpiAndHdf5,
}

const PROGRAMS: &[(&str, Needs)] = &[
    ("demo", Needs::MpiAndHdf5),
    ("first_call", Needs::Libc),
    ("first_h5", Needs::MpiAndHdf5),
    ("looper", Needs::Libc),
    ("phases", Needs::Libc),
    ("posix_mix", Needs::StaticLibc),
    ("stdio_mix", Needs::Libc),
];

/// Calls stay the calls that the source names (`-fno-builtin` keeps `fprintf` from becoming `fwrite`).
const FLAGS: &[&str] =
    &["-std=gnu11", "-O1", "-g", "-fno-builtin", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra", "-Werror"];

/// Compilations that this process began.
static TURN: AtomicU32 = AtomicU32::new(0);

/// The compiled program `tests/programs/NAME.c`. Panics with the reason when it cannot be compiled.
pub fn build(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    compile(root, &target, name).unwrap_or_else(|error| panic!("{error}"))
}

/// Compiles `ROOT/tests/programs/NAME.c` to `TARGET/programs/NAME`, unless that is newer than its source.
pub fn compile(root: &Path, target: &Path, name: &str) -> Result<PathBuf, String> {
    let Some((_, needs)) = PROGRAMS.iter().find(|(program, _)| *program == name) else {
        return Err(format!("there is no test program {name}"));
    };
    let sources = root.join("tests/programs");
    let source = sources.join(name).with_extension("c");
    let directory = target.join("programs");
    let program = directory.join(name);
    if is_newer(&program, &[&source, &sources.join("truth.h"), &root.join("tests/common/programs.rs")]) {
        return Ok(program);
    }
    fs::create_dir_all(&directory).map_err(|e| format!("cannot make {}: {e}", directory.display()))?;

    // Another test may compile, or already run, the same program: it appears under its name when it is complete.
    // Tests are threads of one process, or processes.
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let unfinished = directory.join(format!("{name}.{}.{turn}", process::id()));
    let (compiler, libraries) = match needs {
        Needs::Libc => ("cc", Vec::new()),
        Needs::StaticLibc => ("cc", vec!["-static".to_string()]),
        Needs::MpiAndHdf5 => ("mpicc", hdf5_flags()?),
    };
    let mut command = Command::new(compiler);
    command.args(FLAGS).arg("-o").arg(&unfinished).arg(&source).args(libraries);
    output(&mut command)?;
    fs::rename(&unfinished, &program).map_err(|e| format!("cannot write {}: {e}", program.display()))?;
    Ok(program)
}

fn is_newer(program: &Path, sources: &[&Path]) -> bool {
    let time = |path: &Path| path.metadata().and_then(|m| m.modified());
    let Ok(built) = time(program) else { return false };
    sources.iter().all(|source| time(source).is_ok_and(|changed| changed < built))
}

fn hdf5_flags() -> Result<Vec<String>, String> {
    let flags = output(Command::new("pkg-config").args(["--cflags", "--libs", "hdf5-openmpi"]))?;
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
